#pragma once

#include "assembly/mesh/coarse_mesh.hpp"
#include "assembly/mesh/lattice_topology.hpp"
#include "gpu/core/host_vector.hpp"

#include <memory>
#include <span>
#include <utility>

namespace poisson::assembly {

/// A globally refined mesh as lattices, without a fine triangulation: the nodes of Q_p elements on all cells of every lattice. A
/// lattice has n = 2^r cells and m = p n + 1 nodes a side and keeps all m^3 of them, those on its rim included, lexicographic
/// (x fastest) in the frame of its coarse cell. Copies of a node in several lattices have the same bits.
///
/// The places are those of deal.II's refine_global(r), up to rounding. A lattice whose entities all have flat manifolds is the
/// trilinear image of a regular grid: there successive midpoints are the same. Elsewhere each level halves edges, then faces, then
/// cells by their manifolds, with the weights of transfinite interpolation; new entities inherit the manifold of what they lie in.
/// deal.II's transfinite manifolds invert their maps only to about 1e-11 of a coarse cell, and depend on the order of the points
/// that they are given; this is deal.II's order, too. Nodes inside cells and on their edges and faces (p >= 2) are those of
/// MappingQ(p) where the mesh is curved, otherwise trilinear. On a face between curved cells whose manifolds differ deal.II's two
/// cells can disagree about such nodes. As in Space, the node is then that of the cell that comes first. Coarse cells of a file
/// that have a shape of their own (Mesh::curved_cells) are the images of regular grids under their polynomials.
class LatticeMesh {
public:
  /// `coarse`: as make_coarse_mesh makes it; it is not needed afterwards. `nodes`: p + 1 Gauss-Lobatto points of [0, 1], ascending.
  /// refinements >= 0, and few enough that 32-bit indices suffice for the unknowns (check_index_range). When `obstacle` is not
  /// empty, the mesh cannot be made in this way, and there are no nodes. Errors: EnvironmentError when the nodes do not fit in
  /// memory, Interrupted.
  LatticeMesh(Mesh const& coarse, int refinements, std::vector<double> const& nodes);
  /// The nodes of these lattices only, ascending; coordinates(i, d) are then those of lattice of[i]. Copies of a node in several
  /// lattices agree up to rounding; the first of all lattices that have it (LatticeTopology::first_copy) tells its place.
  LatticeMesh(Mesh const& coarse, std::shared_ptr<LatticeTopology const> topology, int refinements,
              std::vector<double> const& nodes, std::vector<std::int32_t> const& of);

  /// Whether nodes inside of lattices follow from those on rims (gpu/core/lattice_interior.hpp): all cells are flat inside, and no
  /// lattice meets itself.
  [[nodiscard]] static bool is_made_easily(Mesh const& coarse, LatticeTopology const& topology);

  std::string obstacle;  ///< why the caller must refine the triangulation instead
  std::shared_ptr<LatticeTopology const> topology;
  int refinements, order;
  std::int64_t n, m;           ///< cells and nodes a side
  bool isoparametric = false;  ///< cells are images under Q_p maps; otherwise trilinear

  [[nodiscard]] std::int32_t n_lattices() const { return topology->n_lattices(); }
  /// The m^3 coordinates in direction 0, 1 or 2 of the nodes of a lattice.
  [[nodiscard]] std::span<double const> coordinates(std::int32_t lattice, int direction) const {
    auto const size = static_cast<std::size_t>(m * m * m);
    return {points_.data() + (3 * static_cast<std::size_t>(lattice) + static_cast<std::size_t>(direction)) * size, size};
  }
  /// Gives the nodes away, of all lattices: [(3 lattice + direction) m^3 + node].
  [[nodiscard]] HostVector<double> take_points() { return std::move(points_); }

private:
  void make_nodes(Mesh const& coarse, std::vector<double> const& nodes, std::vector<std::int32_t> const& of, bool share);
  void share_rims();

  HostVector<double> points_;  ///< (lattice, direction, node)
};

/// Makes the nodes on the faces of some lattices of a mesh that is made easily. `shape`: without obstacle; its nodes are not read.
/// `of`: numbers of lattices, ascending; `first` and `count` are places in this list. All outlive the result, which throws
/// InputError where deal.II cannot place a node.
[[nodiscard]] MakeLatticeFaces maker_of_faces(Mesh const& coarse, LatticeMesh const& shape, std::vector<double> const& nodes,
                                              std::vector<std::int32_t> const& of);

}  // namespace poisson::assembly
