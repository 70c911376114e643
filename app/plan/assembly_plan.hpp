#pragma once

#include "app/config/run_config.hpp"
#include "app/domain/domain.hpp"
#include "app/launch/team.hpp"
#include "assembly/discretization.hpp"
#include "gpu/core/context.hpp"
#include "gpu/formats/cost.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace poisson::app {

/// Which code makes the matrix: `csr` the assembly on the host, the others gpu/elements in the memory of the backend, each in the
/// format that it is solved in.
enum class Route {
  csr,       ///< Discretization::assemble
  box,       ///< BoxSystem: trilinear elements on a box, or on blocks of it
  void_box,  ///< make_void_box: trilinear elements on what void left of a box
  lattices,  ///< LatticeSystem on the lattices of a refined mesh, or on pieces of them
  cells      ///< LatticeSystem, every cell a lattice by itself
};

/// What a division of the mesh leaves to every rank. One rank is a division into one part.
struct Division {
  int ranks = 1;
  int with_cells = 1;  ///< ranks that have cells
  /// In a box, these are extremes over the ranks with cells, in every direction: the fewest nodes that a rank owns, and the fewest
  /// and the most cells around own nodes.
  std::array<std::int64_t, 3> fewest_nodes{}, fewest_cells{}, most_cells{};
  std::int64_t piece_cells = 0;  ///< of lattices: cells a side of their pieces, of which every rank has some; 0: no such pieces

  friend bool operator==(Division const&, Division const&) = default;
};

/// The division of a mesh by its configuration. For boxes it is exact. Of lattices it takes for granted that every rank gets a
/// piece where there are enough.
[[nodiscard]] Division division_of(RunConfig const& config, assembly::MeshSummary const& mesh, int ranks);

/// How the matrix of a run is made, and why so.
struct AssemblyPlan {
  Route route = Route::csr;
  Format format = Format::csr;  ///< in which it is made: half_cds or matrix_free by gpu/elements
  Backend backend = Backend::cpu;
  Division division{};                   ///< that it is for
  std::optional<FormatChoice> choice{};  ///< what `auto` decided from, where it decided before anything is assembled
  bool may_lower = false;                ///< the preconditioner is multigrid, or may become it
  bool has_order_one = false;            ///< multigrid can be given the same problem with elements of order 1 (OrderOne)
  /// The unknowns are the nodes of a box of order 1, from whose entries multigrid makes levels of boxes.
  bool has_box_levels = false;
  bool whole_is_taken = false;  ///< one rank would make the format without CSR: it takes the matrix, whatever the blocks are like
  /// The right-hand side is the host's, since gpu/elements does not know the source.
  bool source_on_host = false;
  /// The host is not expected to ask where nodes inside of lattices are (forecast_memory).
  bool leaves_nodes = false;
  std::string why;  ///< in words, for people

  [[nodiscard]] assembly::AssembledInto into() const;
  /// Names the format and says why it is taken, as in "half_cds, as it is stored (a box of order 1)".
  [[nodiscard]] std::string text() const;
};

/// The one decision about the matrix, a function of its arguments alone.
///
/// Trilinear elements on boxes and lattices are assembled by gpu/elements straight into half_cds where that is the format, given or
/// taken by `auto`; matrix_free is made there for any mesh and element, and `auto` takes it for higher orders on boxes and refined
/// meshes where multigrid may be taken. Everything else is assembled into CSR and converted; so are entries in double_double,
/// matrices that an analysis needs, and those for which matrix.conversion asks for a way of converting. What matrix_free takes
/// depends on the problem alone: where blocks or pieces are too small for the faster routes every cell is a lattice. Errors:
/// InputError where matrix_free is given and the problem does not allow it, and those of require_preconditioner_for.
[[nodiscard]] AssemblyPlan plan_assembly(RunConfig const& config, Backend backend, assembly::MeshSummary const& mesh,
                                         Division const& division);

/// The plan for a mesh that was made. That is `expected`, unless the mesh was divided in another way than this expects. Collective.
[[nodiscard]] AssemblyPlan plan_for(Domain const& mesh, Team& team, RunConfig const& config, Backend backend,
                                    std::optional<AssemblyPlan> expected = {});

/// Whether the host is asked about a solution, from the whole of u, on a mesh that is no box of order 1. Of boxes it evaluates
/// expressions line by line, which on the cpu backend takes less time than a point after the other. It alone knows full tensors,
/// fields from files, other quadratures and curved cells of a higher order; and of boxes periodic boundaries.
[[nodiscard]] bool asks_host_about(RunConfig const& config, assembly::MeshSummary const& mesh, AssemblyPlan const& plan);

/// Throws InputError where the preconditioner that is asked for is not made on so many ranks.
void require_preconditioner_for(RunConfig const& config, int ranks);

/// Whether the preconditioner that is asked for is made from the entries of the matrix, which matrix_free has not.
[[nodiscard]] bool solver_needs_entries(RunConfig const& config);

/// Whether the unknowns are the nodes of a box of order 1, of which ranks have blocks, and its entries those of neighbours.
[[nodiscard]] bool has_blocks(RunConfig const& config);

/// Whether multigrid makes levels from rows by spaces in each other (RankNestedSpaces): on several ranks, and on one that has the
/// whole mesh (`is_whole`) where nodes hang. `has_pieces`: every rank has pieces of lattices.
[[nodiscard]] bool has_nested_spaces(RunConfig const& config, assembly::MeshSummary const& mesh, Route route, bool is_whole,
                                     bool has_pieces);

/// The shape of the matrix, as far as it is known before it is assembled.
[[nodiscard]] MatrixShape shape_of(RunConfig const& config, assembly::MeshSummary const& mesh, Division const& division);

/// Smaller pieces of lattices have most of their nodes on rims, and no levels.
inline constexpr std::int64_t fewest_cells_of_piece = 4;

}  // namespace poisson::app
