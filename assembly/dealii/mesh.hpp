#pragma once

#include "assembly/dealii/curved_cells.hpp"
#include "assembly/mesh/cell_origins.hpp"
#include "assembly/mesh/counts.hpp"
#include "assembly/space/box_cells.hpp"

#include <cstddef>
#include <deal.II/grid/tria.h>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

/// Meshes as deal.II's triangulations. For assembly/dealii and tests only; the rest of assembly/ sees a CoarseMesh.
namespace poisson::assembly {

struct Mesh : MeshNames {
  std::unique_ptr<dealii::Triangulation<3>> triangulation;  ///< none where there are box_cells
  std::optional<BoxCells> box_cells;                        ///< what void left of a box that will be refined
  std::optional<BoxGrid> box;  ///< set when the active cells form a box; their order in the triangulation is unspecified
  bool curved = false;  ///< some cell, face or edge has a manifold that is not flat: higher orders then use isoparametric cells
  /// The shapes of the cells, in their order, where a file gives curved ones; the triangulation knows vertices only. Only
  /// LatticeMesh makes the nodes of such a mesh.
  std::optional<CurvedCells> curved_cells;
  /// Faces between two cells that belong to groups of the file, inner_groups. Ids of the mesh are those of the boundary: one that
  /// has faces of both kinds is the same group.
  struct InnerFace {
    int cell = 0;  ///< a cell of the coarse mesh, the one with the lower number
    int face = 0;  ///< which of its faces, in deal.II's order
    unsigned id = 0;
  };
  std::vector<InnerFace> inner_faces;  ///< ascending by cell, then by face
  bool is_refined_locally = false;
  std::size_t local_cycles = 0;  ///< how many cycles of local refinement were done
  int lowest_level = 0;          ///< of a cell of a mesh that is refined locally
  CellOrigins origins;           ///< of a mesh that was refined locally: of its active cells, from the mesh one cycle before
};

/// The mesh before the refinements of the specification. A box may have several levels all the same; its active cells are those of
/// spec.cells. Of a box from which void is taken out there is no triangulation, but its box_cells, since deal.II takes ten times as
/// long. Errors: InputError with key "problem.mesh.<generator|arguments|file|origin|extent|cells|refinements>".
/// `names`: those of the expressions of void regions, whose cells are taken out of any mesh.
[[nodiscard]] Mesh make_coarse_mesh(MeshSpec const& spec, ExpressionNames const& names = {});

/// Makes a triangulation of the box_cells of a mesh, if it has these. Errors: EnvironmentError when it will not fit in memory.
void triangulate(Mesh& mesh);

/// Counts of an unrefined mesh.
[[nodiscard]] MeshCounts count(Mesh const& coarse);

/// Refines a coarse mesh of `spec`, or one that has had some of its cycles of local refinement, whose cells have no shapes of their
/// own (curved_cells); there is a triangulation then. Errors: those of make_mesh.
void refine_mesh(Mesh& mesh, MeshSpec const& spec);

/// Refines a mesh locally, whose global refinements are done, by the cycles that it has not had yet. Errors: InputError where the
/// mesh has something that this does not know yet; EnvironmentError when the triangulation will not fit in memory; Interrupted
/// between cycles.
void refine_locally(Mesh& mesh, LocalRefinement const& refinement);

/// Makes the refined mesh. Errors: those of make_coarse_mesh and check_index_range; EnvironmentError when the triangulation will
/// not fit in memory; Interrupted between refinements.
[[nodiscard]] Mesh make_mesh(MeshSpec const& spec);

}  // namespace poisson::assembly
