#include "app/domain/mesh_shares.hpp"

#include "assembly/discretization.hpp"

#include <gtest/gtest.h>

namespace poisson::app {
namespace {

using assembly::MeshCounts;

void expect_equal(assembly::SpaceArrays const& a, assembly::SpaceArrays const& b) {
  EXPECT_EQ(a.cell_dofs, b.cell_dofs);
  EXPECT_EQ(a.points, b.points);
  EXPECT_EQ(a.materials, b.materials);
  EXPECT_EQ(a.boundary_ids, b.boundary_ids);
  EXPECT_EQ(a.material_ids, b.material_ids);
  EXPECT_EQ(a.n_cells_of_whole, b.n_cells_of_whole);
  EXPECT_EQ(a.isoparametric, b.isoparametric);
  ASSERT_EQ(a.boundary_faces.size(), b.boundary_faces.size());
  for (std::size_t i = 0; i < a.boundary_faces.size(); ++i) {
    EXPECT_EQ(a.boundary_faces[i].cell, b.boundary_faces[i].cell);
    EXPECT_EQ(a.boundary_faces[i].boundary_id, b.boundary_faces[i].boundary_id);
    EXPECT_EQ(a.boundary_faces[i].face, b.boundary_faces[i].face);
  }
}

TEST(MeshShares, ComeOutOfTheirBytes) {
  assembly::ProblemSpec spec;
  spec.mesh.generator = "hyper_ball";
  spec.mesh.refinements = 1;
  spec.order = 2;
  spec.mesh.boundaries = {{"top", "z > 0.3"}};
  assembly::BoundaryCondition all;
  all.all_ids = true;
  all.type = assembly::BoundaryType::dirichlet;
  all.value = "1";
  spec.boundary = {all};
  assembly::Discretization const whole(spec);
  constexpr int ranks = 70;  // more than there are cells
  auto const divided = whole.divided(ranks);
  std::size_t cells = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    assembly::PartOfSpace const part = divided.part(rank);
    MeshShare const share{part, whole.arrays_of(part.around_cells, part.unknowns)};
    MeshShare const found = unpacked_share(packed(share));
    cells += found.part.own_cells.size();
    EXPECT_EQ(found.part.own_cells, part.own_cells);
    EXPECT_EQ(found.part.around_cells, part.around_cells);
    EXPECT_EQ(found.part.unknowns, part.unknowns);
    EXPECT_EQ(found.part.in_own_cells, part.in_own_cells);
    EXPECT_EQ(found.part.n_rows, part.n_rows);
    ASSERT_EQ(found.part.neighbors.size(), part.neighbors.size());
    for (std::size_t i = 0; i < part.neighbors.size(); ++i) {
      EXPECT_EQ(found.part.neighbors[i].rank, part.neighbors[i].rank);
      EXPECT_EQ(found.part.neighbors[i].sent, part.neighbors[i].sent);
      EXPECT_EQ(found.part.neighbors[i].n_ghosts, part.neighbors[i].n_ghosts);
    }
    expect_equal(found.around, share.around);
  }
  EXPECT_EQ(cells, 56U);
}

TEST(MeshShares, CountsComeOutOfTheirBytes) {
  MeshCounts counts;
  counts.cells = 5;
  counts.faces = 24;
  counts.edges = 36;
  counts.vertices = 18;
  counts.boundary_faces = 16;
  counts.triangulation_bytes = std::int64_t{1} << 40;
  counts.faces_with_id = {{0, 7}, {4000000000U, 9}};
  counts.boundary_ids = {0, 4000000000U};
  counts.material_ids = {3};
  counts.boundary_groups.add({0, "out side", {0}});
  counts.boundary_groups.add({7, "", {0, 4000000000U}});
  counts.boundary_groups.add({8, "nothing", {}});
  counts.material_groups.add({3, "K\xc3\xbchler", {3}});
  counts.inner_groups.add({9, "plate", {9}});
  counts.inner_faces_with_id = {{9, 12}};
  counts.periodic = {{0, 1, std::array<double, 12>{1, 0, 0, 0.5}}, {2, 3, std::nullopt}};
  MeshCounts const found = unpacked_counts(packed(counts));
  EXPECT_EQ(found.cells, counts.cells);
  EXPECT_EQ(found.faces, counts.faces);
  EXPECT_EQ(found.edges, counts.edges);
  EXPECT_EQ(found.vertices, counts.vertices);
  EXPECT_EQ(found.boundary_faces, counts.boundary_faces);
  EXPECT_EQ(found.triangulation_bytes, counts.triangulation_bytes);
  EXPECT_EQ(found.faces_with_id, counts.faces_with_id);
  EXPECT_EQ(found.boundary_ids, counts.boundary_ids);
  EXPECT_EQ(found.material_ids, counts.material_ids);
  EXPECT_EQ(found.boundary_groups, counts.boundary_groups);
  EXPECT_EQ(found.material_groups, counts.material_groups);
  EXPECT_EQ(found.inner_groups, counts.inner_groups);
  EXPECT_EQ(found.inner_faces_with_id, counts.inner_faces_with_id);
  ASSERT_EQ(found.periodic.size(), 2U);
  EXPECT_EQ(found.periodic[0].second, 1U);
  EXPECT_EQ(found.periodic[0].map, counts.periodic[0].map);
  EXPECT_FALSE(found.periodic[1].map.has_value());
}

}  // namespace
}  // namespace poisson::app
