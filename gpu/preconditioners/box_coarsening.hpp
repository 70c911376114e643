#pragma once

#include "gpu/elements/box_operator.hpp"
#include "gpu/kernels/box_levels.hpp"
#include "gpu/preconditioners/multigrid_hierarchy.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace poisson {

/// Offsets of the diagonals of half_stencil on a box with lines of nx nodes, ny of them a plane.
[[nodiscard]] std::vector<std::int32_t> box_offsets(std::int64_t nx, std::int64_t ny);

/// The directions that are halved on a level of these nodes, of the whole box. Nothing where it has no more than coarse_size. Where
/// no direction has a coupling, because it is small beside what was lost to Dirichlet values, all are alike.
template <class V>
[[nodiscard]] std::optional<BoxCoarsening<V>> next_coarsening(std::array<std::int64_t, 3> const& nodes,
                                                              BoxLevelAnalysis const& analysis, std::int64_t coarse_size);

/// Returns the analysis of all rows of a matrix-free level. Its rows on faces are parts of the same sums. D^-1 A has no larger
/// eigenvalue than that of an element's matrix, which is the largest value of the stencil's symbol. So this bound holds for every
/// boundary condition.
[[nodiscard]] BoxLevelAnalysis analysis_of(BoxOperator const& stencil);

/// Sets the eigenvalue up to which the smoother of the level damps.
template <class V>
void set_largest(MultigridLevel<V>& level, BoxLevelAnalysis const& analysis);
/// Sets the polynomial of the level's smoother, before a coarser level is made. `bound` is called where a symbol of the rows,
/// beside a jump of the coefficient, says little. It returns what weighted_bound does, and may lower the eigenvalue of set_largest.
/// `stencil` tells that all rows are that of one.
template <class V>
void set_smoother(MultigridLevel<V>& level, BoxLevelAnalysis const& analysis, BoxCoarsening<V> const& coarsening, bool stencil,
                  std::function<double()> const& bound);

/// A bound of the eigenvalues of D^-1 A: Gershgorin's for D^-1/2 A D^-1/2, whose entries beside jumps are not larger than
/// elsewhere, made smaller by some steps towards Perron's vector of |A|. `complete` is called with the vector after every step.
template <class V>
[[nodiscard]] double weighted_bound(Context& context, BoxLevel<V> const& level, Array<V> const& diagonal,
                                    std::function<void(V*)> const& complete);

/// The levels of a box whose finest matrix is given by its diagonals, laid out as HalfCdsView says, in the context's memory;
/// options.box_nodes are its nodes.
template <class V>
[[nodiscard]] MultigridHierarchy<V> levels_of_box(Context& context, Array<V> values, PreconditionerOptions const& options);
/// Makes the levels of a box from its operator, which the levels keep. options.box_nodes are the nodes of the box.
template <class V>
[[nodiscard]] MultigridHierarchy<V> levels_of_stencil(std::unique_ptr<BoxOperator> stencil, PreconditionerOptions const& options);

}  // namespace poisson
