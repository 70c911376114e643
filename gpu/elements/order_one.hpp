#pragma once

#include "gpu/core/array.hpp"
#include "gpu/core/box_problem.hpp"
#include "gpu/core/host_vector.hpp"
#include "gpu/core/lattice_layout.hpp"
#include "gpu/core/lattice_problem.hpp"
#include "gpu/core/node_box.hpp"
#include "gpu/formats/rank_matrix.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

namespace poisson {

class Context;
class Matrix;

/// A problem with elements of order 1: what multigrid goes on with where the matrix has elements of higher order on the same cells,
/// or is of order 1 in a format from which multigrid does not make levels.
struct OrderOne {
  LatticeLayout lattices;          ///< where the unknowns of that matrix are
  HostVector<std::uint8_t> fixed;  ///< as LatticeProblem::fixed
  std::unique_ptr<Matrix> matrix;  ///< of order 1, in the same context; its unknowns are those of layout_of_vertices(lattices)
  std::array<std::int64_t, 3> box_nodes{};  ///< of that matrix, as in PreconditionerOptions
  /// On a box that several ranks share, in place of `matrix`: own rows of order 1, of own vertices in their order; who has which.
  std::unique_ptr<RankMatrix> own_rows;
  std::shared_ptr<RankBlocks const> blocks;
};

/// Returns the same problem with elements of order 1 on the same cells, without loads. Its nodes are the vertices. Weights of Robin
/// faces go to the nearest of the new Gauss points.
[[nodiscard]] LatticeProblem with_order_one(LatticeProblem const& problem);

/// What of a problem its OrderOne is made from: a small part of it, so that it need not be made again.
struct LoweredProblem {
  /// `of_box`: where there is one, the same problem on a box with elements of order 1.
  explicit LoweredProblem(LatticeProblem const& problem, std::optional<BoxProblem> of_box = std::nullopt);

  LatticeLayout lattices;           ///< of the problem
  HostVector<std::uint8_t> fixed;   ///< of the problem
  std::optional<BoxProblem> box{};  ///< which BoxSystem assembles into half_cds; else:
  LatticeProblem vertices;          ///< with_order_one
};

/// What multigrid goes on with from a matrix of the problem, assembled in the context's memory. `coordinates`: those of the
/// problem's nodes, where they are there already (LatticeSystem::take_coordinates); else empty. Throws DataError, OutOfMemoryError,
/// Interrupted.
[[nodiscard]] OrderOne make_order_one(Context& context, LoweredProblem const& lowered, Array<double> const& coordinates = {});
/// Makes the OrderOne with which multigrid goes on where the matrix is of order 1, in any format. Precondition: BoxSystem assembles
/// `box` into half_cds. Throws DataError, OutOfMemoryError, Interrupted.
[[nodiscard]] OrderOne make_order_one(Context& context, BoxProblem const& box);

}  // namespace poisson
