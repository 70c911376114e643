#pragma once

#include "app/config/run_config.hpp"
#include "assembly/discretization.hpp"
#include "assembly/mesh/box_partition.hpp"
#include "gpu/core/csr_matrix.hpp"
#include "gpu/core/rank_rows.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace poisson::app {

/// What this rank has of the mesh, and the rows that follow from it.
struct RankMesh {
  assembly::MeshSummary whole;
  std::optional<assembly::BoxPartition> box;            ///< of a box
  std::optional<assembly::Discretization> around, own;  ///< the cells around own rows; own cells. None without cells
  std::int64_t n_rows = 0;
  HostVector<std::int32_t> places;   ///< of the unknowns around: the row, or n_rows and the ghost
  std::vector<std::int32_t> in_own;  ///< the unknowns of own cells among those around
  std::vector<RankNeighbor> neighbors;
  bool pure_neumann = false;  ///< of a box that is known when it is assembled
  std::vector<std::string> notes;

  /// The number in the whole mesh of a cell of `own`, and of an unknown of it.
  [[nodiscard]] std::int64_t cell_of_whole(std::int64_t cell) const;
  [[nodiscard]] std::int64_t unknown_of_whole(std::int64_t unknown) const;

  /// For these numbers. Of a box: own cells, and the order of the elements and cells of the whole.
  assembly::BoxPart part;
  int order = 1;
  std::array<std::int64_t, 3> cells{};
  std::vector<std::int32_t> own_cells, own_unknowns;  ///< of other meshes
};

/// What rank `rank` of `ranks` has. Throws as Discretization.
[[nodiscard]] RankMesh rank_mesh(RunConfig const& config, int rank, int ranks);

/// The rows of this rank from the matrix of the cells around them, whose unknowns have these places (RankMesh::places). Columns
/// ascend.
[[nodiscard]] std::shared_ptr<CsrMatrix const> rows_in(CsrMatrix const& assembled, HostVector<std::int32_t> const& places,
                                                       std::int64_t n_rows, std::int64_t n_ghosts);

}  // namespace poisson::app
