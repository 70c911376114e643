#pragma once

#include "app/run/system_solver.hpp"
#include "assembly/system/fields.hpp"
#include "gpu/core/field.hpp"

#include <cstddef>
#include <functional>
#include <optional>
#include <utility>

namespace poisson::app {

/// to += sign d. Where `to` has low parts, or shall have them (`extends`), they get what the high ones cannot hold.
void add(Field const& d, double sign, FieldPair& to, bool extends = false);

/// Sets an entry to 0, where the values are.
void clear_entry(Field& values, std::size_t i);

/// A solution u + u_low that can be corrected. Functions are collective.
struct CorrectedSolution {
  /// The residuals of the free unknowns, in rows of the system as the solver has them.
  std::function<Field()> residual;
  /// Whether an unknown is held instead of its equation, in a pure Neumann problem. `held` says which row of this rank that is, if
  /// it has it.
  bool holds_an_unknown = false;
  std::optional<std::size_t> held;
  /// Adds a solution of the system for such a right-hand side, times a sign, to u + u_low.
  std::function<void(Field const& d, double sign)> add;
  /// Computes the quantities of u + u_low.
  std::function<assembly::Quantities()> quantities;
};

/// Judges a solution that is converged, or stagnated, by its balance, which is in quantities. Where it is worse than 1e-6, or what
/// the tolerance lets through, the system is solved for what is left of the sources and the solution corrected, until fluxes
/// balance or that gets no further: the residual is taken from the elements and differences of u, so that the rounding of stored
/// entries, which a contrast of k makes large beside other flows, does not count. `all_given`: in pure Neumann problems the balance
/// is that of the data; residuals count instead, where the solver stagnated or an unknown was held, unless in the latter case the
/// elements' residuals are within the tolerance, and what is left at the held unknown is small beside the largest flux. What
/// stagnated is `converged` once the residual from the elements is as small as was asked for. `range_of_k`: the smallest and the
/// largest k, asked for where there is something to tell. A balance that is still worse than 1e-6 of what is called converged is a
/// warning of the record, and one worse than 1e-3 makes the status `stagnated`. `quantities` become those of the corrected
/// solution; the first rank's count. Collective.
void settle_balance(SystemSolver& solver, Field const& b, CorrectedSolution const& solution, bool all_given,
                    std::function<std::pair<double, double>()> const& range_of_k, assembly::Quantities& quantities);

/// Corrects a solution by what its elements leave, as settle_balance does, until the residuals of all rows add up to 1e-10 of
/// `scale`, times what the tolerance lets through, or that gets no further. Returns whether it is another one. Collective.
bool correct_by_elements(SystemSolver& solver, CorrectedSolution const& solution, double scale);

/// What the tolerance lets fluxes and energies differ, relative to the largest.
[[nodiscard]] double let_through(double tolerance);

}  // namespace poisson::app
