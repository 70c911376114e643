#include "app/run/balance.hpp"

#include "assembly/system/boundary_flux.hpp"
#include "gpu/core/array.hpp"
#include "gpu/core/double_double.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/box_elements.hpp"
#include "gpu/kernels/fields.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

namespace poisson::app {

namespace {

/// A balance worse than this is told, and one worse than the other is no result; times a factor of the tolerance where that is
/// looser, since it lets residuals through, up to the last one.
constexpr double told = 1e-6, refused = 1e-3, of_tolerance = 1e3, most_let_through = 0.02;
/// Corrections go on until the residuals add up to this share of the flux, times what the tolerance lets through over `told`, and
/// as long as each leaves less than half of them.
constexpr double wanted = 1e-10, progress = 0.5;
constexpr int most_corrections = 40;
/// The system of a correction is solved to this tolerance, if so much is wanted: more digits would be lost to the rounding of the
/// entries.
constexpr double tolerance_of_correction = 1e-6;

double limit_of(double bound, double tolerance) {
  return std::max(bound, std::min(of_tolerance * tolerance, most_let_through));
}

std::string warning_of(Balance const& balance, bool all_given, std::pair<double, double> const& k, SolverOptions const& solver) {
  double const contrast = k.second / k.first;
  std::string const text = (all_given ? "what flows to nodes and from them differs by " : "fluxes and sources differ by ") +
                           number_text(balance.relative) + " of the largest flux" + (all_given ? "" : " (quantities.balance)") +
                           ": fluxes are right to about that at best. k spans from " + number_text(k.first) + " to " +
                           number_text(k.second) + ", a contrast of " + number_text(contrast) + "; ";
  if (contrast > 1e6)
    return text +
           "bring them nearer to each other: a metal need not conduct more than 1e6 times better than what is around it; or try "
           "solver.precision: refined and a smaller solver.tolerance";
  return text + "ask for a solver.tolerance below " + number_text(solver.tolerance) + " or for solver.precision: refined";
}

}  // namespace

void add(Field const& d, double sign, FieldPair& to, bool extends) {
  Context* const context = d.context();
  if (context != nullptr && context == to.high.context() && (extends || !to.low.empty())) {
    if (to.low.empty()) {
      Array<double> low(*context, d.size());
      low.set_zero();
      to.low = Field(std::move(low));
    }
    Array<double> of_d = d.on(*context).copy_to(*context);
    kernels_for<FieldKernels>(*context).add(*context, d.size(), sign, of_d.data(),
                                            {to.high.change_on(*context).data(), to.low.change_on(*context).data()});
    return;
  }
  if (extends && to.low.empty())
    to.low = Field(HostVector<double>(static_cast<std::size_t>(to.high.size()), 0.0));
  std::span<double const> const values = d.host();
  std::span<double> const high = to.high.change_on_host(), low = to.low.change_on_host();
  for (std::size_t i = 0; i < high.size(); ++i) {
    DoubleDouble const sum = DoubleDouble{high[i], low.empty() ? 0 : low[i]} + sign * values[i];
    high[i] = sum.hi;
    if (!low.empty())
      low[i] = sum.lo;
  }
}

void clear_entry(Field& values, std::size_t i) {
  if (Context* const context = values.context())
    context->set_zero(values.change_on(*context).data() + i, sizeof(double));
  else
    values.change_on_host()[i] = 0;
}

namespace {

Field copied(Field const& values) {
  if (Context* const context = values.context())
    return Field(values.on(*context).copy_to(*context));
  std::span<double const> const host = values.host();
  return Field(HostVector<double>(host.begin(), host.end()));
}

/// The sum of what is left in all rows.
double total_of(Field const& r, Communicator& ranks) {
  double sum = 0;
  if (Context* const context = r.context())
    sum = kernels_for<BoxElementKernels>(*context).sums(*context, r.size(), r.on(*context).data()).absolute;
  else
    for (double const value : r.host())
      sum += std::abs(value);
  return sum_over(ranks, sum);
}

/// A correction for the residuals r, whose total is `before`; `enough` is the share of it that may be left. Both become those that
/// are left. Returns false, and nothing has changed, where these would be no less.
bool correct_once(SystemSolver& solver, CorrectedSolution const& solution, double enough, Field& r, double& before) {
  constexpr double loosest = 0.1;
  if (solution.held)
    clear_entry(r, *solution.held);
  Field const d = solver.correction(r, std::clamp(enough, tolerance_of_correction, loosest));
  solution.add(d, 1);
  r = solution.residual();
  double const after = total_of(r, solver.team().communicator());
  if (after < before) {
    before = after;
    return true;
  }
  solution.add(d, -1);
  r = solution.residual();
  return false;
}

/// The share of the largest flux that residuals may add up to.
double aim_of(double tolerance) {
  return wanted * limit_of(told, tolerance) / told;
}

}  // namespace

double let_through(double tolerance) {
  return limit_of(told, tolerance);
}

bool correct_by_elements(SystemSolver& solver, CorrectedSolution const& solution, double scale) {
  double const aim = aim_of(solver.log().record.solver.tolerance);
  Field r = solution.residual();
  double left = total_of(r, solver.team().communicator());
  bool result = false;
  for (int i = 0; i < most_corrections && left > aim * scale; ++i) {
    double const before = left;
    if (!correct_once(solver, solution, 0.5 * aim * scale / before, r, left))
      break;
    result = true;
    if (!(left < progress * before))
      break;
  }
  return result;
}

void settle_balance(SystemSolver& solver, Field const& b, CorrectedSolution const& solution, bool all_given,
                    std::function<std::pair<double, double>()> const& range_of_k, assembly::Quantities& quantities) {
  RunLog& log = solver.log();
  ResultRecord& record = log.record;
  double const tolerance = record.solver.tolerance;
  Communicator& ranks = solver.team().communicator();
  auto const total = [&](Field const& r) { return total_of(r, ranks); };
  // `residuals` gives their total, where that counts.
  auto const find = [&](auto const& residuals) {
    Balance const mine = balance_of(quantities, record.integral_f, tolerance);
    Balance found = of_first(ranks, mine);
    if (all_given)
      found.relative = found.scale > 0 ? residuals() / found.scale : 0;
    return found;
  };
  bool const stagnated = record.status == SolverStatus::stagnated;
  if ((!stagnated && record.status != SolverStatus::converged) || (all_given && !stagnated && !solution.holds_an_unknown))
    return;
  Field r;
  bool has_residual = false;
  auto const make_residual = [&] {
    r = solution.residual();
    has_residual = true;
    return total(r);
  };
  // Of a problem that holds an unknown: what does not balance is all there, since the other rows are solved; its size beside the
  // flux, and whether the rows are solved to the tolerance by their elements, too. The sum of all residuals says less: of a large
  // mesh the tolerance alone makes it large.
  auto const is_let_through = [&] {
    make_residual();
    double at_held = 0;
    Field others = copied(r);
    if (solution.held) {
      auto const place = static_cast<std::int32_t>(*solution.held);
      at_held = std::abs(entries_of(r, std::span<std::int32_t const>(&place, 1)).front());
      clear_entry(others, *solution.held);
    }
    at_held = sum_over(ranks, at_held);
    double const largest = find([] { return 0.0; }).scale;
    ResidualNorms const norms = solver.norms_of(others, b);
    return at_held <= limit_of(told, tolerance) * largest && norms.relative <= 2 * tolerance && norms.scaled <= 2 * tolerance;
  };
  if (all_given && !stagnated && is_let_through())
    return;
  Balance balance = find([&] { return has_residual ? total(r) : make_residual(); });
  auto const is_wrong = [&] { return balance.judged && balance.relative > limit_of(told, tolerance); };
  if (!is_wrong() && !(all_given && stagnated))
    return;
  if (!has_residual)
    make_residual();
  double before = total(r);
  auto const is_solved = [&] {
    solver.record_residual(r, b);
    return record.residual_true <= 2 * tolerance && record.residual_scaled <= 2 * tolerance;
  };
  double const aim = aim_of(tolerance);
  for (int i = 0; i < most_corrections && (before > aim * balance.scale || (stagnated && !is_solved())); ++i) {
    double after = before;
    if (!correct_once(solver, solution, stagnated ? 0 : 0.5 * aim * balance.scale / before, r, after))
      break;
    quantities = solution.quantities();
    balance = find([&] { return after; });
    bool const goes_on = after < progress * before;
    before = after;
    if (!goes_on)
      break;
  }
  if (record.corrections > 0) {
    // Where the stored matrix was all that kept the solver from its goal, there it is.
    if (is_solved() && stagnated && !is_wrong()) {
      record.status = SolverStatus::converged;
      record.reason.clear();
    }
    log.console.line("    fluxes did not balance; corrected " + std::to_string(record.corrections) + " times in " +
                     std::to_string(record.correction_iterations) + " iterations, to " + number_text(balance.relative) +
                     " of the largest flux");
  }
  if (!is_wrong() || record.status != SolverStatus::converged)
    return;
  log.warn(warning_of(balance, all_given, range_of_k(), record.solver));
  if (balance.relative > limit_of(refused, tolerance)) {
    record.status = SolverStatus::stagnated;
    record.reason = "the solver reached its tolerance, but " + record.warnings.back();
  }
}

}  // namespace poisson::app
