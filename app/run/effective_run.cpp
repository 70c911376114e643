#include "app/run/effective_run.hpp"

#include "app/config/effective.hpp"
#include "app/plan/assembly_plan.hpp"
#include "app/run/balance.hpp"
#include "assembly/system/integrals.hpp"
#include "gpu/core/communicator.hpp"
#include "gpu/core/error.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace poisson::app {

namespace {

constexpr std::array directions{Direction::x, Direction::y, Direction::z};

std::size_t index_of(Direction direction) {
  return static_cast<std::size_t>(direction);
}

/// The solutions of periodic problems and their forces, f - A u of all unknowns, at own rows.
struct OfProblem {
  HostVector<double> u, forces;
};
using Column = std::array<double, 3>;  ///< of a tensor

class EffectiveRun {
public:
  explicit EffectiveRun(EffectiveParts const& parts) : parts_(parts), first_(parts.config.effective.direction) {}

  EffectiveResult result() {
    ResultRecord& record = parts_.solver.log().record;
    EffectiveResult result = expected_effective(parts_.config, parts_.mesh.whole);
    std::array<double, 3> const& lengths = parts_.config.problem.mesh.extent;
    volume_ = lengths[0] * lengths[1] * lengths[2];
    set_fractions(result, parts_.quantities.volumes, volume_);
    EffectiveSpec const& spec = parts_.config.effective;
    add_solve(spec.has_periodic(), first_, record.status, record.result, record.residual_true);
    if (spec.has_periodic())
      solve_periodic(result.periodic.emplace());
    if (spec.has_fixed())
      solve_fixed(result.fixed.emplace());
    result.solves = std::move(solves_);
    return result;
  }

private:
  /// The coordinate along one axis, from the middle of the box, of the unknowns around.
  [[nodiscard]] HostVector<double> coordinate(Domain const& mesh, Direction direction) const {
    std::size_t const d = index_of(direction);
    assembly::MeshSpec const& box = parts_.config.problem.mesh;
    double const middle = box.origin[d] + box.extent[d] / 2;
    HostVector<double> x(mesh.n_around());
    for (std::size_t i = 0; i < x.size(); ++i)
      x[i] = mesh.around->point(static_cast<std::int64_t>(i))[d] - middle;
    return x;
  }

  /// What forces do along a displacement of own rows, over the volume.
  [[nodiscard]] double mean_of(std::span<double const> forces, std::span<double const> displacement) const {
    return -sum_over(parts_.team.communicator(), assembly::ordered_dot(displacement, forces)) / volume_;
  }

  [[nodiscard]] Column fluxes_of(Domain const& mesh, std::span<double const> forces) const {
    Column fluxes{};
    for (Direction const direction : directions)
      fluxes[index_of(direction)] = mean_of(forces, mesh.of_own_rows(coordinate(mesh, direction)));
    return fluxes;
  }

  void add_solve(bool periodic, Direction direction, SolverStatus status, SolverResult const& solved, double residual_true) {
    solves_.push_back({periodic, direction, status, solved.iterations, residual_true, solved.seconds});
    ResultRecord& record = parts_.solver.log().record;
    if (status == SolverStatus::converged || record.status != SolverStatus::converged)
      return;
    record.status = status;
    record.reason = "the problem of analysis.effective with " + std::string(periodic ? "periodic" : "fixed") +
                    " conditions along " + std::string(name_of(direction)) + " was not solved to the tolerance" +
                    (solved.reason.empty() ? "" : ": " + solved.reason);
  }

  /// u = (the coordinate) + C d, where d makes up for the forces of the coordinate.
  void solve_periodic(EffectiveTensor& tensor) {
    std::vector<FieldPair> u;
    std::vector<Array<double>> b;
    std::vector<Direction> others;
    for (Direction const direction : directions) {
      if (direction == first_)
        continue;
      others.push_back(direction);
      u.push_back({Field(coordinate(parts_.mesh, direction)), {}});
      Field r = parts_.system.residual(u.back());
      if (auto const held = parts_.system.held())
        r.change_on_host()[*held] = 0;
      b.push_back(std::move(r.change_on(parts_.device.context())));
    }
    auto const solved = parts_.solver.solve_more(std::move(b));
    for (std::size_t i = 0; i < solved.size(); ++i) {
      auto const& [x, result, residual_true] = solved[i];
      parts_.system.correct(x.high, 1, u[i]);
      if (!x.low.empty())
        parts_.system.correct(x.low, 1, u[i]);
      add_solve(true, others[i], result.status, result, residual_true);
    }
    std::array<OfProblem, 3> problems;
    auto const set = [&](Direction direction, FieldPair const& solution) {
      problems[index_of(direction)] = {parts_.mesh.of_own_rows(solution.high.host()), parts_.system.forces(solution)};
    };
    set(first_, parts_.u);
    for (std::size_t i = 0; i < others.size(); ++i)
      set(others[i], u[i]);
    for (std::size_t j = 0; j < 3; ++j) {
      Column const fluxes = fluxes_of(parts_.mesh, problems[j].forces);
      for (std::size_t i = 0; i < 3; ++i) {
        tensor.by_flux[i][j] = fluxes[i];
        tensor.by_energy[i][j] = mean_of(problems[j].forces, problems[i].u);
      }
    }
    judge(tensor, true);
    for (std::size_t i = 0; i < others.size() && parts_.others != nullptr; ++i)
      parts_.others->emplace_back(name_of(others[i]), std::move(u[i].high));
  }

  void solve_fixed(EffectiveTensor& tensor) {
    for (Direction const direction : directions)
      if (direction == first_ && !parts_.config.effective.has_periodic())
        set_fixed(tensor, direction, parts_.system, parts_.mesh, parts_.u);
    if (parts_.frees_matrix)
      static_cast<void>(parts_.solver.take_matrix());
    for (Direction const direction : directions)
      if (direction != first_ || parts_.config.effective.has_periodic())
        solve_fixed_along(direction, tensor);
    judge(tensor, false);
  }

  void set_fixed(EffectiveTensor& tensor, Direction direction, System const& system, Domain const& mesh, FieldPair const& u) const {
    HostVector<double> const forces = system.forces(u);
    Column const fluxes = fluxes_of(mesh, forces);
    std::size_t const j = index_of(direction);
    for (std::size_t i = 0; i < 3; ++i)
      tensor.by_flux[i][j] = fluxes[i];
    tensor.by_energy[j][j] = mean_of(forces, mesh.of_own_rows(u.high.host()));
  }

  /// A run of its own, but for the backend.
  void solve_fixed_along(Direction direction, EffectiveTensor& tensor) {
    RunConfig config = parts_.config;
    set_effective_problem(config, false, direction);
    Team& team = parts_.team;
    Console console(true);
    RunLog log(config, parts_.options, console);
    ResultRecord& of_run = parts_.solver.log().record;
    Domain mesh = make_domain(config, team);
    SystemSolver solver(config, team, parts_.device, log);
    log.record.mesh = mesh.whole;
    log.record.dofs = mesh.whole.dofs;
    auto const system = of_run.clock.time(Stage::assembly, [&] {
      return std::make_unique<System>(mesh, team, config, plan_for(mesh, team, config, parts_.device.backend()),
                                      [&]() -> Context& { return parts_.device.context(); });
    });
    log.record.nnz = system->nnz();
    of_run.clock.time(Stage::convert, [&] { system->store(solver); });
    FieldPair x = of_run.clock.time(Stage::solve, [&] {
      return solver.solve(system->rhs(), system->is_singular(), system->order_one(parts_.device), system->nested_spaces(),
                          [&] { return mesh.row_numbers(); });
    });
    if (log.record.status == SolverStatus::interrupted)
      throw Interrupted();
    of_run.clock.time(Stage::verify, [&] { solver.verify(system->rhs(), x); });
    of_run.device_peak_bytes = std::max(of_run.device_peak_bytes, log.record.device_peak_bytes);
    log.record.result.reason = log.record.reason;
    add_solve(false, direction, log.record.status, log.record.result, log.record.residual_true);
    set_fixed(tensor, direction, *system, mesh, {system->reconstruct(std::move(x.high)), {}});
  }

  /// Warns where fluxes and energies differ by more than the tolerance lets through, times what a contrast of k makes of it: as for
  /// the balance of a run.
  void judge(EffectiveTensor const& tensor, bool periodic) const {
    RunLog& log = parts_.solver.log();
    double const allowed = std::max(1e-6, 1e3 * log.record.solver.tolerance), found = tensor.difference();
    if (!(found <= allowed))
      log.warn("analysis.effective: the tensors by fluxes and by energies, with " + std::string(periodic ? "periodic" : "fixed") +
               " conditions, differ by " + number_text(found) +
               " of the largest entry: entries are right to about that; ask for a smaller solver.tolerance, or for "
               "solver.precision: refined");
  }

  EffectiveParts const& parts_;
  Direction first_;
  double volume_ = 0;
  std::vector<EffectiveSolve> solves_;
};

}  // namespace

EffectiveResult effective_of_run(EffectiveParts const& parts) {
  return EffectiveRun(parts).result();
}

}  // namespace poisson::app
