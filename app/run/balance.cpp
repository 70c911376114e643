#include "app/run/balance.hpp"

#include "assembly/system/boundary_flux.hpp"
#include "gpu/core/double_double.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace poisson::app {

namespace {

/// A balance worse than this is told, and one worse than the other is no result; times a factor of the tolerance where that is
/// looser, since it lets residuals through.
constexpr double told = 1e-6, refused = 1e-3, of_tolerance = 1e3;
/// Corrections go on until the residuals add up to this share of the flux, and as long as each leaves less than half of them.
constexpr double wanted = 1e-10, progress = 0.5;
constexpr int most_corrections = 20;
/// Of a correction's solve: more digits would be lost to the entries' rounding.
constexpr double tolerance_of_correction = 1e-6;

double limit_of(double bound, double tolerance) {
  return std::max(bound, of_tolerance * tolerance);
}

std::string warning_of(Balance const& balance, std::pair<double, double> const& k, SolverOptions const& solver) {
  double const contrast = k.second / k.first;
  std::string const text = "fluxes and sources differ by " + number_text(balance.relative) +
                           " of the largest flux (quantities.balance): fluxes are right to about that. k spans from " +
                           number_text(k.first) + " to " + number_text(k.second) + ", a contrast of " + number_text(contrast) +
                           "; ";
  if (contrast > 1e6)
    return text +
           "bring them nearer to each other: a metal need not conduct more than 1e6 times better than what is around it; or try "
           "solver.precision: refined and a smaller solver.tolerance";
  return text + "ask for a solver.tolerance below " + number_text(solver.tolerance) + " or for solver.precision: refined";
}

}  // namespace

std::pair<double, double> range_of_k(assembly::Discretization const& discretization, std::span<double const> u) {
  auto const residual = discretization.residual(u, {});
  return {residual.smallest_k, residual.largest_k};
}

void add_to_pair(double value, double& high, double& low) {
  DoubleDouble const sum = DoubleDouble{high, low} + value;
  high = sum.hi;
  low = sum.lo;
}

void settle_balance(Stages& stages, Console& console, std::span<double const> b, CorrectedSolution const& solution,
                    bool can_correct, std::function<std::pair<double, double>()> const& range_of_k,
                    assembly::Quantities& quantities) {
  ResultRecord& record = stages.record;
  double const tolerance = record.solver.tolerance;
  Communicator* const ranks = stages.ranks();
  auto const find = [&] {
    Balance const mine = balance_of(quantities, record.integral_f, tolerance);
    return ranks != nullptr ? gather(*ranks, mine).front() : mine;
  };
  Balance balance = find();
  bool const may_be_solved = record.status == SolverStatus::converged || record.status == SolverStatus::stagnated;
  if (!may_be_solved || !balance.judged || !(balance.relative > limit_of(told, tolerance)))
    return;
  if (can_correct) {
    auto const total = [&](std::span<double const> r) {
      double sum = 0;
      for (double const value : r)
        sum += std::abs(value);
      return sum_over(ranks, sum);
    };
    HostVector<double> r = solution.residual();
    double before = total(r);
    for (int i = 0; i < most_corrections && before > wanted * balance.scale; ++i) {
      HostVector<double> const d = stages.correction(r, tolerance_of_correction);
      solution.add(d, 1);
      r = solution.residual();
      double const after = total(r);
      if (!(after < before)) {
        solution.add(d, -1);
        r = solution.residual();
        break;
      }
      quantities = solution.quantities();
      balance = find();
      if (!(after < progress * before))
        break;
      before = after;
    }
    if (record.corrections > 0) {
      stages.record_residual(std::move(r), b);
      // Where the stored matrix was all that kept the solver from its goal, there it is.
      bool const solved = record.residual_true <= 2 * tolerance && record.residual_scaled <= 2 * tolerance;
      if (record.status == SolverStatus::stagnated && solved && balance.relative <= limit_of(told, tolerance)) {
        record.status = SolverStatus::converged;
        record.reason.clear();
      }
      console.line("    fluxes did not balance; corrected " + std::to_string(record.corrections) + " times in " +
                   std::to_string(record.correction_iterations) + " iterations, to " + number_text(balance.relative) +
                   " of the largest flux");
    }
  }
  if (!(balance.relative > limit_of(told, tolerance)) || record.status != SolverStatus::converged)
    return;
  record.warnings.push_back(warning_of(balance, range_of_k(), record.solver));
  console.warning(record.warnings.back());
  if (balance.relative > limit_of(refused, tolerance)) {
    record.status = SolverStatus::stagnated;
    record.reason = "the solver reached its tolerance, but " + record.warnings.back();
  }
}

}  // namespace poisson::app
