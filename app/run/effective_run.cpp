#include "app/run/effective_run.hpp"

#include "app/config/effective.hpp"
#include "app/plan/assembly_plan.hpp"
#include "app/run/balance.hpp"
#include "assembly/image/labels.hpp"
#include "assembly/mesh/counts.hpp"
#include "assembly/system/integrals.hpp"
#include "gpu/core/array.hpp"
#include "gpu/core/communicator.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/field.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/vectors.hpp"

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

using Column = std::array<double, 3>;  ///< of a tensor

/// A problem that is solved as in a run of its own, but for the backend.
class OwnRun {
public:
  /// Collective. Throws what System and SystemSolver throw; Interrupted.
  OwnRun(RunConfig of_run, EffectiveParts const& parts)
      : config(std::move(of_run)),
        log(config, parts.options, console_),
        mesh(make_domain(config, parts.team)),
        solver(config, parts.team, parts.device, log) {
    StageClock& clock = parts.solver.log().record.clock;
    log.record.mesh = mesh.whole;
    log.record.dofs = mesh.whole.dofs;
    system = clock.time(Stage::assembly, [&] {
      return std::make_unique<System>(mesh, parts.team, config, plan_for(mesh, parts.team, config, parts.device.backend()),
                                      [&]() -> Context& { return parts.device.context(); });
    });
    log.record.nnz = system->nnz();
    clock.time(Stage::convert, [&] { system->store(solver); });
    if (config.effective.has_periodic())
      solver.keep_setup();
    FieldPair x = clock.time(Stage::solve, [&] {
      return solver.solve(system->rhs(), system->is_singular(), system->order_one(parts.device), system->nested_spaces(),
                          [&] { return mesh.row_numbers(); });
    });
    if (log.record.status == SolverStatus::interrupted)
      throw Interrupted();
    clock.time(Stage::verify, [&] { solver.verify(system->rhs(), x); });
    std::int64_t& peak = parts.solver.log().record.device_peak_bytes;
    peak = std::max(peak, log.record.device_peak_bytes);
    log.record.result.reason = log.record.reason;
    u = {system->reconstruct(std::move(x.high)), {}};
  }
  OwnRun(OwnRun const&) = delete;
  OwnRun& operator=(OwnRun const&) = delete;

private:
  Console console_{true};

public:
  RunConfig config;
  RunLog log;
  Domain mesh;
  SystemSolver solver;
  std::unique_ptr<System> system;
  FieldPair u;
};

double volume_of_cell(assembly::BoxGrid const& grid, std::int64_t cell) {
  std::array<std::int64_t, 3> const place{cell % grid.cells[0], cell / grid.cells[0] % grid.cells[1],
                                          cell / (grid.cells[0] * grid.cells[1])};
  double volume = 1;
  for (std::size_t d = 0; d < 3; ++d) {
    auto const i = static_cast<std::size_t>(place[d]);
    auto const& x = grid.coordinates[d];
    volume *= x.empty() ? grid.extent[d] / static_cast<double>(grid.cells[d]) : x[i + 1] - x[i];
  }
  return volume;
}

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
    bool has_void = false;
    for (EffectivePhase const& phase : result.phases) {
      has_void = has_void || phase.k == 0.0;
      largest_k_ = std::max(largest_k_, phase.k.value_or(0));
    }
    if (spec.has_periodic()) {
      result.periodic.emplace().may_vanish = has_void;
      solve_periodic(*result.periodic);
    }
    if (spec.has_fixed()) {
      result.fixed.emplace().may_vanish = has_void;
      solve_fixed(*result.fixed);
    }
    result.solves = std::move(solves_);
    if (spec.sub_volumes.is_asked())
      solve_sub_volumes(result);
    return result;
  }

private:
  /// The coordinate along one axis, from the middle of the box, of the unknowns around; of a box that gpu/elements has assembled
  /// on the backend.
  [[nodiscard]] Field coordinate(System const& system, Domain const& mesh, Direction direction) const {
    std::size_t const d = index_of(direction);
    assembly::MeshSpec const& box = parts_.config.problem.mesh;
    double const middle = box.origin[d] + box.extent[d] / 2;
    if (Field on_backend = system.coordinate(d, middle); !on_backend.empty())
      return on_backend;
    HostVector<double> x(mesh.n_around());
    for (std::size_t i = 0; i < x.size(); ++i)
      x[i] = mesh.around->point(static_cast<std::int64_t>(i))[d] - middle;
    return Field(std::move(x));
  }

  /// What forces of own rows do along a displacement of the unknowns around, over the volume.
  [[nodiscard]] double mean_of(Domain const& mesh, Field const& forces, Field const& displacement) const {
    Communicator& ranks = parts_.team.communicator();
    if (Context* const context = forces.context(); context != nullptr && mesh.is_whole()) {
      Array<double> sum(*context, 1);
      kernels_for<VectorKernels<double>>(*context).dot(*context, forces.size(), forces.on(*context).data(),
                                                       displacement.on(*context).data(), sum.data());
      double value = 0;
      sum.download(std::span<double>(&value, 1));
      return -value / volume_;
    }
    HostVector<double> storage;
    if (!mesh.is_whole())
      storage = mesh.of_own_rows(displacement.host());
    std::span<double const> const of_rows = mesh.is_whole() ? displacement.host() : std::span<double const>(storage);
    return -sum_over(ranks, assembly::ordered_dot(of_rows, forces.host())) / volume_;
  }

  [[nodiscard]] Column fluxes_of(System const& system, Domain const& mesh, Field const& forces) const {
    Column fluxes{};
    for (Direction const direction : directions)
      fluxes[index_of(direction)] = mean_of(mesh, forces, coordinate(system, mesh, direction));
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
      u.push_back({coordinate(parts_.system, parts_.mesh, direction), {}});
      Field r = parts_.system.residual(u.back());
      if (auto const held = parts_.system.held())
        clear_entry(r, *held);
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
    std::array<FieldPair const*, 3> solutions{};
    solutions[index_of(first_)] = &parts_.u;
    for (std::size_t i = 0; i < others.size(); ++i)
      solutions[index_of(others[i])] = &u[i];
    auto const measure = [&] {
      for (std::size_t j = 0; j < 3; ++j) {
        Field const forces = parts_.system.forces(*solutions[j]);  // one at a time: each is as large as u
        Column const fluxes = fluxes_of(parts_.system, parts_.mesh, forces);
        for (std::size_t i = 0; i < 3; ++i) {
          tensor.by_flux[i][j] = fluxes[i];
          tensor.by_energy[i][j] = mean_of(parts_.mesh, forces, solutions[i]->high);
        }
      }
    };
    measure();
    bool corrected = false;  // the run's own solution has been, by its balance
    for (std::size_t i = 0; i < others.size(); ++i)
      corrected = correct(tensor, others[i], parts_.system, parts_.solver, u[i]) || corrected;
    if (corrected)
      measure();
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
    Field const forces = system.forces(u);
    Column const fluxes = fluxes_of(system, mesh, forces);
    std::size_t const j = index_of(direction);
    for (std::size_t i = 0; i < 3; ++i)
      tensor.by_flux[i][j] = fluxes[i];
    tensor.by_energy[j][j] = mean_of(mesh, forces, u.high);
  }

  /// A run of its own, but for the backend.
  void solve_fixed_along(Direction direction, EffectiveTensor& tensor) {
    RunConfig config = parts_.config;
    config.effective = {};
    set_effective_problem(config, false, direction);
    OwnRun run(std::move(config), parts_);
    ResultRecord const& record = run.log.record;
    add_solve(false, direction, record.status, record.result, record.residual_true);
    set_fixed(tensor, direction, *run.system, run.mesh, run.u);
    if (correct(tensor, direction, *run.system, run.solver, run.u))
      set_fixed(tensor, direction, *run.system, run.mesh, run.u);
  }

  /// Corrects the solution for a direction where flux and energy differ by more than the tolerance lets through: rounding of stored
  /// entries, which a contrast of k makes large beside what flows. Returns whether it is another one.
  bool correct(EffectiveTensor const& tensor, Direction direction, System const& system, SystemSolver& solver, FieldPair& u) const {
    std::size_t const j = index_of(direction);
    double const flux = tensor.by_flux[j][j], energy = tensor.by_energy[j][j], size = std::max(std::abs(flux), std::abs(energy)),
                 tolerance = solver.log().record.solver.tolerance;
    bool const conducts = !tensor.may_vanish || size > EffectiveTensor::rounding * largest_k_;
    if (solver.log().record.status != SolverStatus::converged || !std::isfinite(size) || !conducts ||
        std::abs(flux - energy) <= let_through(tolerance) * size)
      return false;
    auto const residual = [&] { return system.residual(u); };
    auto const add = [&](Field const& d, double sign) { system.correct(d, sign, u); };
    double const through = size * volume_ / parts_.config.problem.mesh.extent[j];
    return correct_by_elements(solver, {residual, system.holds_an_unknown(), system.held(), add, {}}, through);
  }

  /// Warns where fluxes and energies differ by more than the tolerance lets through, times what a contrast of k makes of it: as for
  /// the balance of a run.
  void judge(EffectiveTensor const& tensor, bool periodic) const {
    RunLog& log = parts_.solver.log();
    double const found = tensor.difference();
    if (!(found <= let_through(log.record.solver.tolerance)))
      log.warn(
          "analysis.effective: the tensors by fluxes and by energies, with " + std::string(periodic ? "periodic" : "fixed") +
          " conditions, differ by " + number_text(found) +
          " of what conducts along their directions: entries are right to about that; ask for a smaller solver.tolerance, or for "
          "solver.precision: refined");
  }

  /// The materials of the cells of a part of the box, by their place among those of the mesh.
  [[nodiscard]] assembly::LabelImage labels_of(assembly::BoxPart const& part) const {
    Domain const& mesh = parts_.mesh;
    assembly::LabelImage image;
    image.cells = part.cells;
    image.labels = {mesh.whole.material_ids.begin(), mesh.whole.material_ids.end()};
    for (unsigned const id : image.labels)
      if (std::string const name = mesh.whole.material_groups.label(id); name != std::to_string(id))
        image.names[id] = name;
    image.large.resize(static_cast<std::size_t>(part.n_cells()), 0U);  // of other ranks' voxels, too
    assembly::BoxPart const own = mesh.is_whole() ? assembly::BoxPart{{}, parts_.config.problem.mesh.refined_cells()} : mesh.part;
    std::size_t voxel = 0;
    for (std::int64_t z = 0; z < part.cells[2]; ++z)
      for (std::int64_t y = 0; y < part.cells[1]; ++y)
        for (std::int64_t x = 0; x < part.cells[0]; ++x, ++voxel) {
          std::array<std::int64_t, 3> const place{part.first[0] + x - own.first[0], part.first[1] + y - own.first[1],
                                                  part.first[2] + z - own.first[2]};
          bool is_own = mesh.own != nullptr;
          for (std::size_t d = 0; d < 3; ++d)
            is_own = is_own && place[d] >= 0 && place[d] < own.cells[d];
          if (!is_own)
            continue;
          unsigned const id = mesh.own->material((place[2] * own.cells[1] + place[1]) * own.cells[0] + place[0]);
          image.large[voxel] = static_cast<std::uint32_t>(std::ranges::lower_bound(image.labels, id) - image.labels.begin());
        }
    combine_lists(parts_.team.communicator(), std::span<std::uint32_t>(image.large),
                  [](std::uint32_t& number, std::uint32_t of_other) { number = std::max(number, of_other); });
    return image;
  }

  /// The problem of a part of the box, whose materials are labels.
  [[nodiscard]] RunConfig config_of(assembly::BoxGrid const& grid, assembly::LabelImage image) const {
    RunConfig config = parts_.config;
    assembly::MeshSpec& box = config.problem.mesh;
    box.origin = grid.origin;
    box.extent = grid.extent;
    box.cells = grid.cells;
    box.growth = {1, 1, 1};
    box.coordinates = grid.coordinates;
    box.refinements = 0;
    box.regions.clear();
    box.image = {};
    auto& coefficient = config.problem.coefficient;
    coefficient.clear();
    for (unsigned const id : image.labels)
      if (auto const* const k = coefficient_of(parts_.config.problem, parts_.mesh.whole, id); k != nullptr)
        coefficient[static_cast<int>(id)] = *k;
    config.problem.coefficient_of_name.clear();
    box.labels = std::make_shared<assembly::LabelImage const>(std::move(image));
    config.effective.sub_volumes = {};
    config.effective.conditions = config.effective.has_periodic() ? EffectiveConditions::periodic : EffectiveConditions::fixed;
    set_effective_problem(config, config.effective.has_periodic(), first_);
    return config;
  }

  /// The tensor of every sub-volume, from runs of their own.
  void solve_sub_volumes(EffectiveResult& result) {
    EffectiveSpec::SubVolumes const& spec = parts_.config.effective.sub_volumes;
    if (parts_.frees_matrix && parts_.solver.has_matrix())
      static_cast<void>(parts_.solver.take_matrix());
    ResultRecord& record = parts_.solver.log().record;
    assembly::BoxGrid const box = *assembly::predict_counts(parts_.config.problem.mesh).box;
    for (auto const& first : sub_volume_places(spec, box.cells)) {
      assembly::BoxPart const part{first, spec.size};
      assembly::LabelImage image = labels_of(part);
      assembly::BoxGrid const grid = assembly::part_of(box, first, spec.size);
      assembly::Quantities of_part;
      for (std::int64_t voxel = 0; voxel < image.size(); ++voxel)
        of_part.volumes[image.label(voxel)] += volume_of_cell(grid, voxel);
      SubVolume& found = result.sub_volumes.emplace_back();
      found.first = first;
      double const volume = grid.extent[0] * grid.extent[1] * grid.extent[2];
      for (unsigned const id : image.labels)
        found.fractions.push_back(of_part.volumes[id] / volume);
      OwnRun run(config_of(grid, std::move(image)), parts_);
      ResultRecord const& of_run = run.log.record;
      if (of_run.status == SolverStatus::converged)
        found.tensor = EffectiveRun({run.config, parts_.options, run.mesh, parts_.team, *run.system, run.solver, parts_.device,
                                     run.u, of_part, true, nullptr})
                           .result()
                           .tensor()
                           .by_flux;
      std::string const name = "sub-volume " + std::to_string(result.sub_volumes.size());
      for (std::string const& warning : of_run.warnings)
        parts_.solver.log().warn(name + ": " + warning);
      if (of_run.status != SolverStatus::converged && record.status == SolverStatus::converged) {
        record.status = of_run.status;
        record.reason = name + " of analysis.effective was not solved" + (of_run.reason.empty() ? "" : ": " + of_run.reason);
      }
    }
  }

  EffectiveParts const& parts_;
  Direction first_;
  double volume_ = 0, largest_k_ = 0;
  std::vector<EffectiveSolve> solves_;
};

}  // namespace

EffectiveResult effective_of_run(EffectiveParts const& parts) {
  return EffectiveRun(parts).result();
}

}  // namespace poisson::app
