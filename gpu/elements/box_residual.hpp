#pragma once

#include "gpu/core/array.hpp"
#include "gpu/core/box_problem.hpp"
#include "gpu/kernels/box_solution.hpp"

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

namespace poisson {

/// What a solution of a BoxProblem leaves at the nodes, from its elements and not from stored entries: f and g as they are given,
/// less what flows. Nodes of Dirichlet values and of periodic sides are nodes as all others: their residuals are what flows through
/// the boundary there. Besides u, the backend's memory holds a number a node where there are sources, of materials with constant k
/// a byte a cell, and k at the points of some planes of cells where it varies.
class BoxResidual {
public:
  /// Robin faces and full tensors are not known here.
  [[nodiscard]] static bool knows(BoxProblem const& problem);
  /// `loads` of nodes are added to those of f and g. Preconditions: knows(problem); BoxSystem::fits; what the problem refers to,
  /// and the context, outlive it. Throws what BoxSystem throws.
  BoxResidual(Context& context, BoxProblem const& problem, std::vector<std::pair<std::int64_t, double>> const& loads);

  /// r_i = int f phi_i + int g phi_i - int k grad(u + u_low) . grad phi_i for every node i. `u_low` may be null. Only differences
  /// of u within a cell count, so that rounding is relative to what flows there, however large k is. Throws Interrupted. Bytes of a
  /// cell: see BoxSolutionKernels::subtract_product.
  void operator()(double const* u, double const* u_low, double* r) const;

private:
  void subtract_slabs(double const* u, double const* u_low, double* r) const;

  Context& context_;
  BoxProblem problem_;
  Array<double> loads_;  ///< empty: all are 0
  std::array<Array<double>, 3> edges_, gauss_coordinates_;
  BoxCells box_;
  BoxCellCoefficient k_;  ///< where it is constant in cells
  bool is_constant_in_cells_ = false;
  Array<std::uint8_t> labels_;
  std::vector<Array<double>> tables_;
};

}  // namespace poisson
