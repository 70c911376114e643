#pragma once

#include "assembly/mesh/counts.hpp"
#include "gpu/core/host_vector.hpp"
#include "gpu/core/lattice_interior.hpp"
#include "gpu/core/vtk_readers.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace poisson::assembly {

class Space;
struct ShareOfLattices;
struct ReferenceElement;

/// Makes the nodes on the six faces of `count` lattices from `first` on: [((6 lattice + face) 3 + direction) m^2 + node], the lower
/// direction along the face fastest. `room`: any vector, whose memory it takes if that suffices: fresh memory costs time.
using MakeLatticeFaces = std::function<HostVector<double>(std::int64_t first, std::int64_t count, HostVector<double> room)>;

/// The mesh of a generator or a file before its refinements. Behind this class is all that needs deal.II.
class CoarseMesh {
public:
  CoarseMesh() = default;
  CoarseMesh(CoarseMesh const&) = delete;
  CoarseMesh& operator=(CoarseMesh const&) = delete;
  virtual ~CoarseMesh() = default;

  /// Of a mesh that is refined locally (MeshSpec::local) after all refinements.
  [[nodiscard]] virtual MeshCounts const& counts() const = 0;
  /// Whether its cells, refined, are lattices (LatticeTopology).
  [[nodiscard]] virtual bool has_lattices() const = 0;
  /// Whether space() can leave out nodes inside of lattices, and make them as they are needed.
  [[nodiscard]] virtual bool can_leave_nodes() const = 0;
  /// The space on the mesh after the refinements of the specification: by lattices where they are possible, by a refined
  /// triangulation elsewhere. It may change the mesh, and is called once. Errors: InputError where deal.II cannot place the nodes;
  /// EnvironmentError when the triangulation will not fit in memory; Interrupted.
  /// `leave_nodes`: those inside of lattices, where that is possible (LatticeNodes); then `fill` makes them, unless it is null.
  [[nodiscard]] virtual Space space(ReferenceElement const& element, bool leave_nodes, FillLattices const& fill) = 0;
  /// Makes what one rank of several has of lattices, without the whole space; it is called in place of `space`. Returns nothing
  /// where that is not possible with this mesh on this rank; the mesh must then be opened anew. Errors, `leave_nodes` and `fill`:
  /// those of `space`.
  [[nodiscard]] virtual std::optional<ShareOfLattices> share(ReferenceElement const& element, int rank, int ranks, bool leave_nodes,
                                                             FillLattices const& fill) = 0;
};

/// The counts after the refinements of its specification.
[[nodiscard]] MeshCounts refined_counts(CoarseMesh const& mesh, MeshSpec const& spec);

/// A graph without weights: the neighbours of vertex i are neighbors[offsets[i]] ... neighbors[offsets[i + 1] - 1].
struct Graph {
  std::vector<std::int64_t> offsets;
  std::vector<std::int32_t> neighbors;
};

/// Opens the mesh of a specification that is not a box. The program loads the library poisson_dealii, which must be beside it, on
/// the first call: deal.II and the 150 libraries that Debian's links take almost a second to load, and a box needs none of them,
/// nor what void leaves of it. Errors: InputError with key "problem.mesh.<generator|arguments|file|refinements>"; EnvironmentError
/// when that library cannot be loaded. `names`: those of the expressions of its regions.
[[nodiscard]] std::unique_ptr<CoarseMesh> open_coarse_mesh(MeshSpec const& spec, ExpressionNames const& names = {});
/// The same of a box with void (is_box_with_void), which needs no deal.II.
[[nodiscard]] std::unique_ptr<CoarseMesh> open_box_with_void(MeshSpec const& spec, ExpressionNames const& names);
/// What a program has made of a drawing, in place of its file.
struct MeshContent {
  std::shared_ptr<std::string const> bytes;
  std::vector<std::string> notes;  ///< without the name of the file
};
/// Makes the mesh of a drawing (is_drawing) by the program gmsh, for MeshSpec::content. Of the same drawing the same process makes
/// it once. Errors: those of open_coarse_mesh; EnvironmentError where there is no gmsh; Interrupted.
[[nodiscard]] MeshContent content_of_drawing(MeshSpec const& spec);
/// Divides a graph into parts of equal size, few of whose neighbours are in other parts: by METIS, through deal.II, whose seed is
/// fixed; into runs where deal.II has no METIS. The part of every vertex; parts are numbered in the order of their first vertices,
/// and the last ones have none where there are few vertices. Needs the same library.
[[nodiscard]] std::vector<std::int32_t> divide(Graph const& graph, int n_parts);
/// Loads that library now, if this mesh needs it, and the one by which VTK reads its file, so that no stage of a run is charged
/// with them. Throws EnvironmentError when one cannot be loaded.
void prepare_for(MeshSpec const& spec);
/// VTK's reader of grids, whose library the first call loads. Throws EnvironmentError.
[[nodiscard]] VtkGridReader const& vtk_grids();

/// What the library has: the functions above.
struct DealiiFunctions {
  std::unique_ptr<CoarseMesh> (*open)(MeshSpec const& spec, ExpressionNames const& names);
  std::vector<std::int32_t> (*divide)(Graph const& graph, int n_parts);
  MeshContent (*draw)(MeshSpec const& spec);
};

}  // namespace poisson::assembly

extern "C" poisson::assembly::DealiiFunctions const* poisson_dealii();
