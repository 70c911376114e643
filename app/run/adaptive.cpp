#include "app/run/adaptive.hpp"

#include "app/config/problem.hpp"
#include "app/io/console.hpp"
#include "app/run/adaptive_target.hpp"
#include "app/run/run_device.hpp"
#include "assembly/space/space.hpp"
#include "assembly/system/error_estimate.hpp"
#include "assembly/system/integrals.hpp"
#include "gpu/core/error.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <new>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <utility>

namespace poisson::app {

namespace {

constexpr char const* key_of_target = "problem.mesh.adaptive.target";
constexpr char const* energy_norm = "energy_norm";

/// Parts of the error of a target cancel by chance on coarse meshes: the estimate is no less than this share of the sum of parts.
constexpr double least_share = 0.05;

/// By order, beside that of order 1.
constexpr std::array<double, 4> work_of_unknown{1, 1, 2, 4};

/// Whether squares of the energy norms of u and of the solutions on nested meshes differ by the square of the error: as they are
/// orthogonal where one value is given wherever u is given, and where nothing but given u makes it vary. Precondition: the
/// expressions are right, as they are where a mesh was made.
bool has_energies_of_errors(assembly::ProblemSpec const& spec) {
  auto const constant = [&](std::string const& text) { return constant_value(spec, text); };
  auto const is_zero = [&](std::string const& text) { return constant(text) == 0.0; };
  auto const are_zero = [&](auto const& list) {
    return std::ranges::all_of(list, [&](auto const& entry) { return is_zero(entry.second); });
  };
  bool nothing_enters = !spec.source_total && spec.point_sources.empty() && spec.line_sources.empty() && is_zero(spec.source) &&
                        are_zero(spec.source_of_material) && are_zero(spec.source_of_name);
  std::set<double> given;
  for (assembly::BoundaryCondition const& condition : spec.boundary)
    switch (condition.type) {
    case assembly::BoundaryType::dirichlet:
      if (auto const value = constant(condition.value))
        given.insert(*value);
      else
        return false;
      break;
    case assembly::BoundaryType::neumann:
      nothing_enters = nothing_enters && is_zero(condition.value);
      break;
    case assembly::BoundaryType::robin:
    case assembly::BoundaryType::periodic:
      return false;
    }
  return nothing_enters || given.size() <= 1;
}

}  // namespace

std::string lack_of_memory() {
  try {
    throw;
  } catch (EnvironmentError const& error) {
    return error.what();
  } catch (std::bad_alloc const&) {
    return "memory is exhausted";
  }
}

TriedOrder needs_of_order(int order, AdaptiveRecord const& record) {
  AdaptiveCycle const& last = record.cycles.back();
  TriedOrder result{order, last.dofs, last.estimate};
  double const goal = record.tolerance.value * (record.tolerance.relative ? std::abs(last.value) : 1),
               rate = (record.target == energy_norm ? 1 : 2) * order / 3.0;
  result.dofs_needed = static_cast<double>(last.dofs) * std::max(1.0, std::pow(last.estimate / goal, 1 / rate));
  result.work = work_of_unknown[static_cast<std::size_t>(order - 1)] * result.dofs_needed;
  if (!std::isfinite(result.work))
    result.work = std::numeric_limits<double>::infinity();
  return result;
}

double least_work(int order, std::int64_t dofs_of_order_one) {
  return work_of_unknown[static_cast<std::size_t>(order - 1)] * order * order * order * static_cast<double>(dofs_of_order_one);
}

AdaptiveRefinement::AdaptiveRefinement(RunConfig const& config, RunLog& log, RunDevice& device, bool tells)
    : config_(config), log_(log), device_(device), current_(config), tells_(tells) {
  AdaptiveRecord& record = log.record.adaptive.emplace();
  record.target = config.adaptive.target.empty() ? energy_norm : config.adaptive.target;
  record.tolerance = *config.adaptive.tolerance;
  assembly::LocalRefinement none_yet;
  none_yet.kept = std::make_shared<assembly::KeptMesh>();
  current_.problem.mesh.local = std::make_shared<assembly::LocalRefinement const>(std::move(none_yet));
  if (tells && config.adaptive.estimator == assembly::Estimator::residual && !config.adaptive.target.empty())
    log.warn("problem.mesh.adaptive.estimator: 'residual' is for the energy norm, and has no effect with a target: local problems "
             "are solved");
}

void AdaptiveRefinement::check(assembly::CheckedProblem const& problem) const {
  assembly::MeshSummary const& mesh = problem.mesh();
  if (static_cast<double>(mesh.dofs) > config_.adaptive.max_unknowns && cycle() > 1)
    throw TooManyUnknowns{mesh.dofs};
  check_refinement(config_, mesh);
}

HostVector<double> AdaptiveRefinement::dual(Solved const& solved, assembly::LoadOfEstimate const& load,
                                            HostVector<double> lifted) const {
  HostVector<double> const rhs = solved.system.restricted(solved.mesh.around->load_vector(load, lifted));
  if (std::all_of(rhs.begin(), rhs.end(), [](double value) { return value == 0; }))
    return lifted;
  std::vector<Array<double>> b;
  b.push_back(std::move(Field(HostVector<double>(rhs)).change_on(device_.context())));
  auto found = solved.solver.solve_more(std::move(b));
  FieldPair z{Field(std::move(lifted)), {}};
  solved.system.correct(found.front().x.high, 1, z);
  auto const values = z.high.host();
  return {values.begin(), values.end()};
}

AdaptiveRefinement::Estimate AdaptiveRefinement::of_energy_norm(Solved const& solved, NamedQuantities const& quantities) const {
  assembly::Discretization const& mesh = *solved.mesh.around;
  Estimate result;
  auto const found = mesh.estimate_error(config_.adaptive.estimator, solved.u.host());
  result.marks.assign(found.squares.begin(), found.squares.end());
  result.guaranteed = found.is_bound;
  result.why_not = found.why_no_bound;
  if (result.guaranteed && !solved.system.source_warning().empty()) {  // what no point has seen is in no bound
    result.guaranteed = false;
    result.why_not = "the mesh is too coarse for the source";
  }
  result.estimate = std::sqrt(std::accumulate(result.marks.begin(), result.marks.end(), 0.0));
  for (double const square : result.marks)
    result.of_cells.push_back(std::sqrt(square));
  result.value = std::sqrt(2 * quantities.number("energy").value());
  if (mesh.has_exact())
    result.error = mesh.energy_of_error(solved.u.host());
  return result;
}

AdaptiveRefinement::Estimate AdaptiveRefinement::of_target(Solved const& solved, NamedQuantities const& quantities) const {
  assembly::Discretization const& mesh = *solved.mesh.around;
  std::string const& target = config_.adaptive.target;
  if (solved.system.pure_neumann())
    throw InputError(key_of_target, "the error of '" + target +
                                        "' is not known where u is fixed nowhere; leave the target out, or fix u somewhere");
  DualProblem problem = dual_problem_of(config_, mesh, quantities);
  Estimate result;
  auto const value = quantities.number(target);
  if (!value)
    throw InputError(key_of_target, "there is no quantity '" + target + "' of this problem");
  result.value = *value;
  HostVector<double> const z = dual(solved, problem.load, std::move(problem.lifted));
  auto const found = mesh.estimate_error(config_.adaptive.estimator, solved.u.host(), z, problem.load);
  double sum = 0, size = 0;
  for (std::size_t i = 0; i < found.weights.size(); ++i) {
    // Where given u alone makes u vary, the square is all of the error of the energy.
    double const square = problem.energy * found.squares[i] / 2, part = found.signed_[i] - square;
    sum += part;
    size += std::abs(part);
    result.marks.push_back(found.weights[i] + std::abs(square));
    result.of_cells.push_back(std::sqrt(found.squares[i]));
  }
  // Both are estimates: that they cancel would be chance.
  auto const total_of = [](HostVector<double> const& parts) { return std::accumulate(parts.begin(), parts.end(), 0.0); };
  double const of_edges = total_of(found.of_edges), larger = std::max(std::abs(sum), std::abs(of_edges));
  for (double const part : found.of_edges)
    size += std::abs(part);
  constexpr double least_of_larger = 0.5;
  result.estimate =
      std::max({std::abs(sum + of_edges), least_of_larger * larger, least_share * size}) + std::abs(total_of(found.of_shape));
  if (auto const exact = quantities.number(target + ".exact"))
    result.error = std::abs(result.value - *exact);
  return result;
}

double AdaptiveRefinement::raised_by_values(double value) const {
  auto const& before = log_.record.adaptive->cycles;
  constexpr std::size_t fewest = 3, most = 6;
  bool const squares = config_.adaptive.target.empty();
  if (before.size() < fewest || (squares && !has_energies_of_errors(config_.problem)))
    return 1;
  std::vector<double> ratios;
  for (AdaptiveCycle const& cycle : std::span(before).last(std::min(before.size(), most))) {
    // Of squares less is left of the digits that the solver gives.
    double const difference =
                     squares ? std::sqrt(std::abs(value * value - cycle.value * cycle.value)) : std::abs(value - cycle.value),
                 rounding = (squares ? 1e-5 : 1e-9) * std::abs(value), estimate = cycle.estimate / cycle.raised;
    ratios.push_back(difference > rounding && estimate > 0 ? difference / estimate : 0);
  }
  // Parts of the error of a target cancel in some cycles, and the first ones may have missed what u depends on.
  auto const middle = ratios.begin() + std::ssize(ratios) / 2;
  std::nth_element(ratios.begin(), middle, ratios.end());
  double const least = squares ? 1.5 : 2;
  return std::isfinite(*middle) && *middle > least ? *middle : 1;
}

void AdaptiveRefinement::tell(AdaptiveCycle const& cycle) {
  if (!tells_)
    return;
  Console& console = log_.console;
  std::string text =
      "  cycle " + std::to_string(log_.record.adaptive->cycles.size()) + ": " + with_thousands(cycle.dofs) + " unknowns";
  text += ", " + log_.record.adaptive->target + " = " + cycle.answer();
  if (cycle.error)
    text += ", error " + number_text(*cycle.error, 2) +
            (*cycle.error > 0 ? ", effectivity " + number_text(cycle.estimate / *cycle.error, 2) : "");
  console.line(text + ", " + seconds_text(cycle.seconds));
  if (cycle.raised != 1)
    console.line("  this estimate was raised " + number_text(cycle.raised, 2) +
                 " times: values of the cycles before differ by more than their estimates");
}

bool AdaptiveRefinement::goes_on(Solved const& solved) {
  AdaptiveSpec const& spec = config_.adaptive;
  AdaptiveRecord& record = *log_.record.adaptive;
  of_cells_.clear();  // they are of the mesh before, should this be interrupted
  Estimate found;
  std::string failure;  // the solution is there all the same
  NamedQuantities quantities;
  try {
    quantities = solved.quantities();
    found = spec.target.empty() ? of_energy_norm(solved, quantities) : of_target(solved, quantities);
  } catch (...) {
    failure = lack_of_memory();
  }
  if (!failure.empty())
    found.value = found.estimate = std::numeric_limits<double>::quiet_NaN();
  double const raised = found.guaranteed ? 1 : raised_by_values(found.value);
  found.estimate *= raised;
  of_cells_ = found.of_cells;
  AdaptiveCycle cycle;
  cycle.cells = solved.mesh.whole.cells;
  cycle.dofs = solved.mesh.whole.dofs;
  auto const& levels = solved.mesh.around->local_cells().levels;
  cycle.levels = levels.empty() ? 0 : *std::max_element(levels.begin(), levels.end());
  cycle.value = found.value;
  cycle.estimate = found.estimate;
  cycle.raised = raised;
  cycle.guaranteed = found.guaranteed;
  cycle.why_not = found.why_not;
  cycle.error = found.error;
  cycle.iterations = log_.record.result.iterations;
  double const now = log_.record.clock.total();
  cycle.seconds = now - std::exchange(told_seconds_, now);
  record.cycles.push_back(cycle);
  tell(cycle);
  if (tells_ && !cycle.why_not.empty() && told_why_not_ != cycle.why_not)
    log_.console.line("  the estimate is no proven bound: " + cycle.why_not);
  told_why_not_ = cycle.why_not;

  double const goal = spec.tolerance->value * (spec.tolerance->relative ? std::abs(found.value) : 1);
  auto const ends = [&](std::string const& how, std::string const& why) {
    end(how, why);
    return false;
  };
  if (!failure.empty())
    return ends("memory", "the error could not be estimated: " + failure);
  if (!solved.converged)
    return ends("solver", "the solver did not reach its tolerance");
  if (!std::isfinite(found.estimate))
    return ends("rounding", "the estimate is not finite");
  if (found.estimate <= goal)
    return ends("tolerance", "the estimate is within the tolerance");
  std::size_t const n = record.cycles.size();
  auto const stays = [&](std::size_t i) { return record.cycles[i].estimate >= record.cycles[i - 1].estimate; };
  constexpr double rounding = 1e-10;
  // Where u is constant, the value of the norm is rounding itself.
  double const least = quantities.number("min").value(), largest = quantities.number("max").value();
  double const size = std::max(std::abs(least), std::abs(largest));
  bool const is_rounding = found.estimate <= rounding * std::abs(found.value) || largest - least <= rounding * size;
  if (n > 2 && is_rounding && stays(n - 1) && stays(n - 2))
    return ends("rounding", "two estimates one after the other did not become smaller: they are rounding");
  if (std::ssize(record.cycles) >= spec.max_cycles)
    return ends("cycles", "problem.mesh.adaptive.max_cycles is reached");
  if (!mark(solved.mesh, found.marks))
    return ends("levels", "the cells to be refined have all of problem.mesh.adaptive.max_levels");
  if (std::int64_t const fewest = fewest_unknowns_of_next(solved.mesh); static_cast<double>(fewest) > spec.max_unknowns)
    return ends("unknowns",
                "the next mesh has at least " + with_thousands(fewest) + " unknowns, more than problem.mesh.adaptive.max_unknowns");
  return true;
}

bool AdaptiveRefinement::mark(Domain const& mesh, std::vector<double> const& marks) {
  AdaptiveSpec const& spec = config_.adaptive;
  assembly::LocalCells const& cells = mesh.around->local_cells();
  bool const by_number = spec.marking == Marking::fixed_fraction;
  double const fraction = spec.fraction.value_or(by_number ? 0.15 : 0.5);
  std::vector<std::int32_t> refine = assembly::largest_cells(marks, fraction, by_number), coarsen;
  std::int64_t const lowest = config_.problem.mesh.refinements;
  std::erase_if(refine, [&](std::int32_t cell) {
    return cells.levels[static_cast<std::size_t>(cell)] >= lowest + spec.max_levels || !(marks[static_cast<std::size_t>(cell)] > 0);
  });
  if (refine.empty())
    return false;
  if (spec.coarsen_fraction > 0) {
    std::vector<double> small(marks.size());
    std::transform(marks.begin(), marks.end(), small.begin(), [](double mark) { return -mark; });
    coarsen = assembly::largest_cells(small, spec.coarsen_fraction, true);
    std::erase_if(coarsen, [&](std::int32_t cell) { return std::binary_search(refine.begin(), refine.end(), cell); });
  }
  auto const by_active = [&](std::vector<std::int32_t> list) {
    for (std::int32_t& cell : list)
      cell = cells.active[static_cast<std::size_t>(cell)];
    std::sort(list.begin(), list.end());
    return list;
  };
  auto next = std::make_shared<assembly::LocalRefinement>(*current_.problem.mesh.local);
  next->cycles.push_back({by_active(std::move(refine)), by_active(std::move(coarsen)), mesh.around->cells_alike()});
  current_.problem.mesh.local = std::move(next);
  current_.solver.initial = InitialGuess::neighbour;
  return true;
}

std::int64_t AdaptiveRefinement::fewest_unknowns_of_next(Domain const& mesh) const {
  // Neighbours that must follow are more cells still, and of those to be merged deal.II merges eight or none. A cell has p^3
  // unknowns of its own, with those that hang and those at the boundary there are more.
  auto const& marked = current_.problem.mesh.local->cycles.back();
  std::int64_t const p = config_.problem.order,
                     cells = mesh.whole.cells + 7 * (std::ssize(marked.refine) - std::ssize(marked.coarsen) / 8);
  return p * p * p * cells;
}

Array<double> AdaptiveRefinement::start(Domain const& before, SolutionValues const& u, Domain const& next,
                                        System const& system) const {
  Field x(system.unconstrained(before.around->transferred_to(*next.around, u.host())));
  return std::move(x.change_on(device_.context()));
}

void AdaptiveRefinement::release_mesh() {
  current_.problem.mesh.local->kept->mesh.reset();
}

void AdaptiveRefinement::end(std::string const& how, std::string const& why) {
  AdaptiveRecord& record = *log_.record.adaptive;
  record.ended = how;
  record.reason = why;
  if (!tells_)
    return;
  log_.console.line("  ended by " + how + ": " + why);
  AdaptiveCycle const& last = record.cycles.back();
  if (how != "tolerance")
    log_.warn("problem.mesh.adaptive ended before the tolerance was met: " + why + "; " + record.target + " = " + last.answer());
}

std::vector<int> AdaptiveRefinement::levels(Domain const& mesh) const {
  auto const& levels = mesh.around->local_cells().levels;
  return {levels.begin(), levels.end()};
}

}  // namespace poisson::app
