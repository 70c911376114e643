#pragma once

#include "gpu/core/expression_code.hpp"
#include "gpu/core/field_data.hpp"
#include "gpu/core/host_vector.hpp"
#include "gpu/core/lattice_layout.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace poisson {

/// The cells of a mesh of lattices and k on them: what is needed to ask a solution.
struct LatticeGeometry {
  bool isoparametric = false;                 ///< as in LatticeProblem
  LatticeLayout layout;                       ///< lists of copies may be empty
  std::array<HostVector<double>, 3> lines{};  ///< as in LatticeProblem
  /// By unknown of the layout: its number in the solution. Empty: it is the same one.
  HostVector<std::int32_t> numbers;
  /// Where the node of an unknown of the solution is, unless there are lines. Threads call it side by side.
  std::function<std::array<double, 3>(std::int64_t number)> point;
  std::vector<std::vector<ExpressionCode>> coefficients;  ///< k of each material, as in BoxProblem
  /// Of each lattice, or of each cell, lattice by lattice and x fastest, an index of `coefficients`; may be empty for one.
  std::vector<std::int32_t> material;
};

/// Whether numbers in the order of LatticeGeometry::material are those of cells, and not of lattices.
[[nodiscard]] inline bool is_by_cell(LatticeLayout const& layout, std::vector<std::int32_t> const& numbers) {
  return std::ssize(numbers) > layout.n_lattices;
}

/// -div(k grad u) = f with elements of order p on a mesh of lattices, with data on what bounds it: what gpu/elements assembles.
/// Nodes of a cell are the Gauss-Lobatto points; m = p n + 1 of them lie on a side of a lattice.
struct LatticeProblem {
  bool isoparametric = false;  ///< cells are images under Q_p maps of their nodes; otherwise trilinear ones of their vertices
  LatticeLayout layout;
  std::int64_t couplings = 0;  ///< pairs of unknowns that share a cell, an unknown and itself included
  /// Of the nodes: [(3 lattice + direction) m^3 + node], x fastest. The mesh may share them.
  std::shared_ptr<HostVector<double> const> coordinates = std::make_shared<HostVector<double> const>();
  /// Where `coordinates` are empty: makes those of `count` lattices from `first` on, in the same layout.
  std::function<HostVector<double>(std::int64_t first, std::int64_t count)> make_coordinates{};
  std::array<HostVector<double>, 3> lines{};  ///< of a box (LatticeLayout): the coordinates of its nodes in every direction
  std::vector<std::vector<ExpressionCode>> coefficients;                   ///< k of each material, as in BoxProblem
  std::vector<std::int32_t> material;                                      ///< as in LatticeGeometry
  std::vector<ExpressionCode> sources = {{Instruction(Op::constant, 0)}};  ///< f, of one or several materials
  std::vector<std::int32_t> source_of;                                     ///< an index of `sources`, in the order of `material`

  // Of the unknowns on rims, from n_inner on; of a box, of those at its surface (LatticeLayout::on_boundary).
  HostVector<std::uint8_t> fixed;        ///< 1 where there is a Dirichlet value
  HostVector<double> fixed_value;        ///< that value, 0 elsewhere
  HostVector<double> rim_load;           ///< what Neumann and Robin values contribute
  std::vector<std::int32_t> mass_faces;  ///< 6 lattice + face, of the faces of lattices with Robin conditions
  HostVector<double> face_mass;          ///< weight times alpha at the (p + 1)^2 Gauss points of the cells at these faces: see
                                         ///< LatticeElements::face_mass
  FieldSums boundary;                    ///< integrals of the Neumann and Robin values and of their absolute values
  bool pure_neumann = false;             ///< the constant vector spans the null space
};

}  // namespace poisson
