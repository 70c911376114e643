#pragma once

#include "app/config/run_config.hpp"
#include "app/run/rank_team.hpp"
#include "app/run/rank_ties.hpp"
#include "assembly/discretization.hpp"
#include "assembly/mesh/box_partition.hpp"
#include "assembly/space/lattice_pieces.hpp"
#include "assembly/space/nested_spaces.hpp"
#include "gpu/core/rank_rows.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
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
  std::optional<bool> pure_neumann;  ///< none: known when all parts are assembled
  std::vector<RankTie> ties;         ///< by the unknown
  std::vector<std::string> notes;
  std::shared_ptr<assembly::NestedLattices const> nested;  ///< of lattices, on all ranks
  std::shared_ptr<assembly::LatticePieces const> pieces;   ///< the same; who has which

  /// Whether a row of this rank belongs to an unknown of `around`, for all of these.
  [[nodiscard]] std::vector<std::uint8_t> have_rows() const;
  /// Those of own rows among values at the unknowns of `around`.
  [[nodiscard]] HostVector<double> of_own_rows(std::span<double const> values) const;
  /// The numbers in the whole mesh of own rows.
  [[nodiscard]] std::vector<std::int64_t> row_numbers() const;
  /// The number in the whole mesh of a cell of `own`, and of an unknown of it.
  [[nodiscard]] std::int64_t cell_of_whole(std::int64_t cell) const;
  [[nodiscard]] std::int64_t unknown_of_whole(std::int64_t unknown) const;
  /// The same for an unknown of `around`.
  [[nodiscard]] std::int64_t around_of_whole(std::int64_t unknown) const;

  /// For these numbers. Of a box: own cells, and the order of the elements and cells of the whole.
  assembly::BoxPart part, part_around;
  int order = 1;
  std::array<std::int64_t, 3> cells{};
  std::vector<std::int32_t> own_cells, own_unknowns, around_unknowns;  ///< of other meshes
  std::vector<std::int32_t> around_cells;                              ///< of lattices, until they are assembled
  HostVector<std::int32_t> own_nodes;                                  ///< the same; see PartOfSpace
};

/// What this rank has. Collective. Throws as Discretization.
[[nodiscard]] RankMesh rank_mesh(RunConfig const& config, RankTeam& team);

/// The node of the mesh that is nearest to x; of equally near ones the lowest, by z, then y, then x. Collective.
[[nodiscard]] std::array<double, 3> nearest_node(RankMesh const& mesh, RankTeam& team, std::array<double, 3> const& x);

/// Whether it is so on one rank at least, for every entry of lists of equal length. Collective.
[[nodiscard]] std::vector<bool> any_in_lists(Communicator& ranks, std::vector<bool> const& mine);

}  // namespace poisson::app
