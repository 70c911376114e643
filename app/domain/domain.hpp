#pragma once

#include "app/config/run_config.hpp"
#include "app/domain/row_places.hpp"
#include "app/domain/ties.hpp"
#include "app/launch/team.hpp"
#include "assembly/discretization.hpp"
#include "assembly/mesh/box_partition.hpp"
#include "assembly/space/lattice_pieces.hpp"
#include "gpu/core/array.hpp"
#include "gpu/core/context.hpp"
#include "gpu/core/rank_rows.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace poisson::app {

/// What this rank has of the mesh, and the rows that follow from it. A rank without others has the whole mesh (is_whole): `around`
/// and `own` are one object then, its unknowns are the rows, and the lists of places and numbers are empty.
struct Domain {
  assembly::MeshSummary whole;
  std::optional<assembly::BoxPartition> box;              ///< of a box
  std::shared_ptr<assembly::Discretization> around, own;  ///< the cells around own rows; own cells. Null without cells
  std::int64_t n_rows = 0;
  RowPlaces places;  ///< of the unknowns around
  std::vector<RankNeighbor> neighbors;
  std::optional<bool> pure_neumann;  ///< none: known when all parts are assembled
  std::vector<RankTie> ties;         ///< by the unknown
  std::vector<std::string> notes;
  std::shared_ptr<assembly::OwnPieces const> pieces;  ///< of a mesh of lattices, on all ranks
  /// Coordinates of the nodes of lattices in the backend's memory, in the order of LatticeProblem, if they were made there. Until a
  /// System takes them.
  Array<double> nodes{};

  [[nodiscard]] bool is_whole() const { return around != nullptr && around == own; }
  /// The unknowns of own cells among those around: how many they are, one of them, and their list.
  [[nodiscard]] std::size_t n_in_own() const;
  [[nodiscard]] std::int32_t in_own(std::int64_t unknown) const;
  [[nodiscard]] std::vector<std::int32_t> list_in_own() const;
  /// The values at the unknowns of `own` among values at those of `around`, where these are two.
  [[nodiscard]] HostVector<double> of_own_cells(std::span<double const> values) const;
  /// How many unknowns `around` has; and the row of one of them, or n_rows and its number among the ghosts.
  [[nodiscard]] std::size_t n_around() const { return is_whole() ? static_cast<std::size_t>(n_rows) : places.size(); }
  [[nodiscard]] std::int64_t place(std::size_t unknown) const {
    return is_whole() ? static_cast<std::int64_t>(unknown) : places[unknown];
  }
  /// Whether a row of this rank belongs to an unknown of `around`; and that for all of these.
  [[nodiscard]] bool has_row(std::size_t unknown) const { return place(unknown) < n_rows; }
  [[nodiscard]] std::vector<std::uint8_t> have_rows() const;
  /// Those of own rows among values at the unknowns of `around`.
  [[nodiscard]] HostVector<double> of_own_rows(std::span<double const> values) const;
  /// The same, of values that are no longer needed: those of a whole mesh are not copied.
  [[nodiscard]] HostVector<double> of_own_rows(HostVector<double>&& values) const;
  /// The numbers in the whole mesh of own rows.
  [[nodiscard]] std::vector<std::int64_t> row_numbers() const;
  /// The number in the whole mesh of a cell of `own`, and of an unknown of it.
  [[nodiscard]] std::int64_t cell_of_whole(std::int64_t cell) const;
  [[nodiscard]] std::int64_t unknown_of_whole(std::int64_t unknown) const;
  /// The number in the whole mesh of an unknown of `around`.
  [[nodiscard]] std::int64_t around_of_whole(std::int64_t unknown) const;

  /// The functions above take the numbers from these members. In a box, `part` has the own cells and `part_around` the cells around
  /// own rows; `order` is that of the elements, and `cells` counts the cells of the whole.
  assembly::BoxPart part, part_around;
  /// The own cells among those of part_around.
  [[nodiscard]] assembly::BoxPart own_in_around() const;
  int order = 1;
  std::array<std::int64_t, 3> cells{};
  std::vector<std::int32_t> own_cells, own_unknowns, around_unknowns;  ///< of meshes that are no boxes and have no pieces
  std::vector<std::int32_t> own_in_list;                               ///< the same; of unknowns of own cells those around
};

/// What is to be known of a problem before its mesh is made: called with the checked problem on every rank that makes the mesh or
/// a part of it. Throws where the run cannot go on. Returns what the matrix will be assembled into, for the check of memory.
using Forecaster = std::function<assembly::AssembledInto(assembly::CheckedProblem const&)>;

[[nodiscard]] Forecaster no_forecast();

/// Gives the context of the backend, and waits for it: an assembly on the host goes on while that is made.
using ContextProvider = std::function<Context&()>;

/// Makes what this rank has. `device`: where Domain::nodes are made; null: nowhere. Collective. Throws what Discretization
/// throws, and what `device` throws.
[[nodiscard]] Domain make_domain(RunConfig const& config, Team& team, Forecaster const& forecast = no_forecast(),
                                 ContextProvider const& device = {});

/// The node of the mesh that is nearest to x; of equally near ones the lowest, by z, then y, then x. Collective.
[[nodiscard]] std::array<double, 3> nearest_node(Domain const& mesh, Team& team, std::array<double, 3> const& x);

/// Whether it is so on one rank at least, for every entry of lists of equal length. Collective.
[[nodiscard]] std::vector<bool> any_in_lists(Communicator& ranks, std::vector<bool> const& mine);

}  // namespace poisson::app
