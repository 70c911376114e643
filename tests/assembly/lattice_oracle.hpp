#pragma once

#include "assembly/dealii/mesh.hpp"
#include "assembly/mesh/lattice_mesh.hpp"
#include "assembly/space/lattice_numbering.hpp"
#include "assembly/space/reference_element.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <deal.II/dofs/dof_handler.h>
#include <deal.II/fe/fe_q.h>
#include <deal.II/fe/fe_tools.h>
#include <deal.II/fe/mapping_q.h>
#include <deal.II/grid/tria_accessor.h>
#include <deal.II/grid/tria_iterator.h>
#include <functional>
#include <gtest/gtest.h>
#include <map>
#include <vector>

/// deal.II's own refined mesh and numbering, seen as lattices.
namespace poisson::assembly::test {

using DofCell = dealii::DoFHandler<3>::cell_iterator;

/// Calls action(cell, lattice, {i, j, k}) for all active cells, in deal.II's order; (i, j, k) follows from the children's numbers.
inline void for_lattice_cells(dealii::DoFHandler<3> const& dofs,
                              std::function<void(dealii::DoFHandler<3>::active_cell_iterator const&, int,
                                                 std::array<std::int64_t, 3> const&)> const& action) {
  for (auto const& cell : dofs.active_cell_iterators()) {
    std::array<std::int64_t, 3> index{};
    dealii::Triangulation<3>::cell_iterator ancestor = cell;
    for (std::int64_t width = 1; ancestor->level() > 0; width *= 2) {
      auto const parent = ancestor->parent();
      unsigned child = 0;
      while (parent->child(child) != ancestor)
        ++child;
      for (int d = 0; d < 3; ++d)
        index[d] += width * (child >> d & 1);
      ancestor = parent;
    }
    action(cell, ancestor->index(), index);
  }
}

struct Nodes : dealii::MappingQ<3> {
  using dealii::MappingQ<3>::MappingQ;
  using dealii::MappingQ<3>::compute_mapping_support_points;
};

/// The (p + 1)^3 nodes of a cell, lexicographic.
inline std::vector<dealii::Point<3>> nodes_of(dealii::Triangulation<3>::cell_iterator const& cell, ReferenceElement const& element,
                                              bool isoparametric) {
  std::vector<dealii::Point<3>> nodes(element.n_nodes);
  if (isoparametric) {
    auto const lexicographic = dealii::FETools::hierarchic_to_lexicographic_numbering<3>(element.order);
    auto const found = Nodes(element.order).compute_mapping_support_points(cell);
    for (int i = 0; i < element.n_nodes; ++i)
      nodes[lexicographic[i]] = found[i];
    return nodes;
  }
  for (int i = 0; i < element.n_nodes; ++i) {
    Point3 const x = element.node(i);
    for (unsigned v = 0; v < 8; ++v)
      nodes[i] += (v & 1 ? x[0] : 1 - x[0]) * (v & 2 ? x[1] : 1 - x[1]) * (v & 4 ? x[2] : 1 - x[2]) * cell->vertex(v);
  }
  return nodes;
}

/// Compares lattices and their numbering with deal.II. `refined` is `coarse` after `refinements` global refinements.
inline void expect_as_dealii(Mesh const& coarse, Mesh const& refined, int refinements, int order) {
  SCOPED_TRACE("refinements " + std::to_string(refinements) + ", order " + std::to_string(order));
  ReferenceElement const element(order);
  LatticeMesh const mesh(coarse, refinements, element.nodes);
  ASSERT_EQ(mesh.obstacle, "");
  LatticeNumbering const numbering(mesh.topology, refinements, order);
  std::int64_t const n = mesh.n, m = mesh.m, q = order + 1, size = m * m * m;
  ASSERT_EQ(n, std::int64_t{1} << refinements);
  ASSERT_EQ(m, order * n + 1);
  ASSERT_EQ(numbering.m, m);
  ASSERT_EQ(mesh.n_lattices() * n * n * n, refined.triangulation->n_active_cells());

  dealii::FE_Q<3> const fe(order);
  dealii::DoFHandler<3> dofs(*refined.triangulation);
  dofs.distribute_dofs(fe);
  ASSERT_EQ(numbering.n_unknowns, dofs.n_dofs());
  auto const lexicographic = dealii::FETools::hierarchic_to_lexicographic_numbering<3>(order);
  double extent = 0;
  for (auto const& vertex : coarse.triangulation->get_vertices())
    extent = std::max(extent, vertex.distance(coarse.triangulation->get_vertices().front()));
  double const tolerance = (coarse.curved ? 1e-12 : 1e-13) * extent;

  std::vector<std::int64_t> unknown_of_dof(dofs.n_dofs(), -1), dof_of_unknown(dofs.n_dofs(), -1);
  std::vector<dealii::types::global_dof_index> indices(fe.n_dofs_per_cell());
  std::int64_t wrong = 0, boundary_faces = 0, expected_boundary_faces = 0;
  double distance = 0;
  for_lattice_cells(dofs, [&](auto const& cell, int lattice, std::array<std::int64_t, 3> const& index) {
    cell->get_dof_indices(indices);
    auto const expected = nodes_of(cell, element, mesh.isoparametric);
    for (unsigned l = 0; l < indices.size(); ++l) {
      std::int64_t const local = lexicographic[l];
      std::int64_t const i = index[0] * order + local % q, j = index[1] * order + local / q % q,
                         k = index[2] * order + local / q / q;
      std::int64_t const unknown = numbering.unknown(lattice, i, j, k), dof = indices[l], node = (k * m + j) * m + i;
      if (unknown < 0 || unknown >= numbering.n_unknowns) {
        ++wrong;
        continue;
      }
      // The first one of the cells at a node, in deal.II's order, gives its place.
      bool const first = unknown_of_dof[dof] == -1;
      if (first && dof_of_unknown[unknown] == -1) {
        unknown_of_dof[dof] = unknown;
        dof_of_unknown[unknown] = dof;
      }
      wrong += unknown_of_dof[dof] != unknown || dof_of_unknown[unknown] != dof;
      dealii::Point<3> place;
      for (int d = 0; d < 3; ++d)
        place[d] = mesh.coordinates(lattice, d)[node];
      bool const vertex = local % q % order == 0 && local / q % q % order == 0 && local / q / q % order == 0;
      if (vertex || first)
        distance =
            std::max(distance, place.distance(vertex ? cell->vertex(static_cast<unsigned>(
                                                           (local % q > 0) + 2 * (local / q % q > 0) + 4 * (local / q / q > 0)))
                                                     : expected[local]));
    }
    wrong += mesh.topology->lattices[lattice].material != cell->material_id();
    for (unsigned f = 0; f < 6; ++f) {
      bool const rim = index[f / 2] == (f % 2 == 0 ? 0 : n - 1);
      auto const id = rim ? mesh.topology->lattices[lattice].boundary_ids[f] : LatticeTopology::no_boundary;
      expected_boundary_faces += cell->face(f)->at_boundary();
      boundary_faces += id != LatticeTopology::no_boundary;
      wrong += cell->face(f)->at_boundary() ? id != cell->face(f)->boundary_id() : id != LatticeTopology::no_boundary;
    }
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(distance, tolerance);
  EXPECT_EQ(boundary_faces, expected_boundary_faces);
  EXPECT_EQ(std::count(unknown_of_dof.begin(), unknown_of_dof.end(), -1), 0);

  // Unknowns of cells, and the nodes of unknowns, of which there may be copies with the same bits.
  std::vector<std::int32_t> all(static_cast<std::size_t>(size * mesh.n_lattices()));
  std::int64_t n_rim_nodes = 0;
  for (std::int64_t i = 0; i < std::ssize(all); ++i) {
    all[i] = static_cast<std::int32_t>(numbering.unknown(static_cast<int>(i / size), i % m, i / m % m, i / m / m % m));
    n_rim_nodes += all[i] >= numbering.first_face;
  }
  wrong = 0;
  std::vector<std::int32_t> of_cell(static_cast<std::size_t>(q * q * q));
  for (std::int64_t cell = 0; cell < mesh.n_lattices() * n * n * n; ++cell) {
    numbering.unknowns_of_cell(cell, of_cell.data());
    std::int64_t const lattice = cell / (n * n * n), x = cell % n * order, y = cell / n % n * order, z = cell / (n * n) % n * order;
    for (std::int64_t l = 0; l < q * q * q; ++l)
      wrong += of_cell[l] != all[lattice * size + ((z + l / (q * q)) * m + y + l / q % q) * m + x + l % q];
  }
  EXPECT_EQ(wrong, 0);
  for (std::int64_t i = 0; i < std::ssize(all); ++i) {
    LatticeNode const first = numbering.first_node(all[i]);
    wrong += first.lattice > i / size || all[first.lattice * size + first.node] != all[i];
    for (int d = 0; d < 3; ++d)
      wrong += mesh.coordinates(static_cast<int>(i / size), d)[i % size] != mesh.coordinates(first.lattice, d)[first.node];
  }
  EXPECT_EQ(wrong, 0);
  // All nodes on rims are listed once, ascending.
  LatticeLayout const& layout = numbering.layout;
  LatticeRim const rim = layout.rim();
  ASSERT_EQ(layout.tables->copy_offsets.size(), static_cast<std::size_t>(numbering.n_rim()) + 1);
  EXPECT_EQ(layout.tables->copy_offsets.front(), 0);
  EXPECT_EQ(layout.tables->copy_offsets.back(), n_rim_nodes);
  ASSERT_EQ(static_cast<std::int64_t>(layout.tables->copies.size()), n_rim_nodes);
  ASSERT_EQ(static_cast<std::int64_t>(layout.tables->rim_unknowns.size()), n_rim_nodes);
  wrong = 0;
  for (std::int64_t i = 0; i < numbering.n_rim(); ++i) {
    wrong += layout.tables->copy_offsets[i] >= layout.tables->copy_offsets[i + 1];
    for (auto c = layout.tables->copy_offsets[i]; c < layout.tables->copy_offsets[i + 1]; ++c) {
      auto const node = rim.node(layout.tables->copies[c] % rim.size());
      wrong += all[layout.tables->copies[c] / rim.size() * size + (node.k * m + node.j) * m + node.i] != numbering.first_face + i;
      wrong += layout.tables->rim_unknowns[layout.tables->copies[c]] != numbering.first_face + i;
      wrong += c > layout.tables->copy_offsets[i] && layout.tables->copies[c - 1] >= layout.tables->copies[c];
    }
  }
  EXPECT_EQ(wrong, 0);
}

}  // namespace poisson::assembly::test
