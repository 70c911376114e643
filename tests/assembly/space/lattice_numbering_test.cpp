#include "assembly/space/lattice_numbering.hpp"

#include "assembly/dealii/mesh.hpp"
#include "assembly/problem.hpp"

#include <algorithm>
#include <array>
#include <gtest/gtest.h>
#include <numeric>
#include <set>

namespace poisson::assembly {
namespace {

TEST(LatticeNumbering, KindsOfALine) {
  // p = 3, 3 cells: corners 3, 6; then first nodes 1, 4, 7; then second nodes 2, 5, 8.
  NodeKinds<1> const kinds(3, 3);
  EXPECT_EQ(kinds.size(), 8);
  std::vector<std::int64_t> const order{3, 6, 1, 4, 7, 2, 5, 8};
  for (std::size_t i = 0; i < order.size(); ++i)
    EXPECT_EQ(kinds.place({order[i]}), static_cast<std::int64_t>(i));
}

TEST(LatticeNumbering, KindsOfALattice) {
  // p = 2, 2 cells: 5 nodes a side, inner ones 1 to 3, corners at 2 only. Edges along x, along y, faces normal to z, edges along z,
  // ...
  NodeKinds<3> const kinds(2, 2);
  EXPECT_EQ(kinds.size(), 27);
  EXPECT_EQ(kinds.place({2, 2, 2}), 0);
  EXPECT_EQ(kinds.place({1, 2, 2}), 1);
  EXPECT_EQ(kinds.place({3, 2, 2}), 2);
  EXPECT_EQ(kinds.place({2, 1, 2}), 3);
  EXPECT_EQ(kinds.place({2, 2, 3}), 6);
  EXPECT_EQ(kinds.place({1, 1, 2}), 7);
  EXPECT_EQ(kinds.place({3, 1, 2}), 8);
  EXPECT_EQ(kinds.place({1, 3, 2}), 9);
  EXPECT_EQ(kinds.place({1, 1, 1}), 19);
  EXPECT_EQ(kinds.place({3, 3, 3}), 26);
  std::vector<std::int64_t> firsts;
  for (auto const& kind : kinds.kinds())
    firsts.push_back(kind.first);
  EXPECT_EQ(firsts, (std::vector<std::int64_t>{0, 1, 3, 5, 7, 11, 15, 19}));
}

TEST(LatticeNumbering, PlacesAreAPermutation) {
  for (std::int64_t p = 1; p <= 5; ++p)
    for (std::int64_t n = 1; n <= 4; ++n) {
      NodeKinds<3> const kinds(p, n);
      std::int64_t const inner = p * n - 1;
      ASSERT_EQ(kinds.size(), inner * inner * inner);
      std::vector<int> seen(kinds.size(), 0);
      for (std::int64_t k = 1; k <= inner; ++k)
        for (std::int64_t j = 1; j <= inner; ++j)
          for (std::int64_t i = 1; i <= inner; ++i)
            ++seen.at(kinds.place({i, j, k}));
      EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), kinds.size());
    }
}

TEST(LatticeNumbering, LatticesFacesEdgesVertices) {
  MeshSpec spec;
  spec.generator = "subdivided_hyper_rectangle";
  spec.arguments = "2, 1, 1";
  Mesh const mesh = make_coarse_mesh(spec);
  auto const topology = std::make_shared<LatticeTopology const>(mesh);
  LatticeNumbering const numbering(topology, 1, 1);  // 3 x 3 x 3 nodes each
  EXPECT_EQ(numbering.first_face, 2);
  EXPECT_EQ(numbering.first_edge, 2 + 11);
  EXPECT_EQ(numbering.first_vertex, 2 + 11 + 20);
  EXPECT_EQ(numbering.n_unknowns, 45);
  EXPECT_EQ(numbering.unknown(0, 1, 1, 1), 0);
  EXPECT_EQ(numbering.unknown(1, 1, 1, 1), 1);
  std::int64_t const shared = numbering.unknown(0, 2, 1, 1);
  EXPECT_EQ(shared, 3);  // the second face that is come upon
  EXPECT_EQ(numbering.unknown(1, 0, 1, 1), shared);
  LatticeLayout const& layout = numbering.layout;
  LatticeRim const rim = layout.rim();
  auto const at = layout.tables->copy_offsets[shared - numbering.first_face];
  EXPECT_EQ(layout.tables->copy_offsets[shared - numbering.first_face + 1] - at, 2);
  EXPECT_EQ(layout.tables->copies[at], rim.place(2, 1, 1));
  EXPECT_EQ(layout.tables->copies[at + 1], rim.size() + rim.place(0, 1, 1));
  EXPECT_EQ(numbering.first_node(shared), (LatticeNode{0, 14}));
  // 27 nodes in each lattice but for the inner one.
  EXPECT_EQ(layout.tables->copy_offsets.back(), 52);
}

TEST(LatticeNumbering, FewUnknownsShareTheTables) {
  MeshSpec spec;
  spec.generator = "subdivided_hyper_rectangle";
  spec.arguments = "2, 1, 1";
  Mesh const mesh = make_coarse_mesh(spec);
  LatticeNumbering const all(std::make_shared<LatticeTopology const>(mesh), 1, 1);
  std::int64_t const first = all.first_vertex;
  std::vector<std::int32_t> const kept{static_cast<std::int32_t>(first + 2), static_cast<std::int32_t>(first + 4),
                                       static_cast<std::int32_t>(first + 11)};
  LatticeNumbering const few = all.with_few(first, kept);
  EXPECT_EQ(few.n_unknowns, first + 3);
  EXPECT_EQ(few.layout.tables, all.layout.tables);
  std::array<std::int32_t, 8> of_all{}, of_few{};
  std::set<std::int32_t> found;
  for (std::int64_t cell = 0; cell < 16; ++cell) {
    all.unknowns_of_cell(cell, of_all.data());
    few.unknowns_of_cell(cell, of_few.data());
    for (std::size_t i = 0; i < of_all.size(); ++i)
      if (of_all[i] < first) {
        EXPECT_EQ(of_few[i], of_all[i]);
      } else if (auto const at = std::find(kept.begin(), kept.end(), of_all[i]); at != kept.end()) {
        EXPECT_EQ(of_few[i], first + (at - kept.begin()));
        found.insert(of_few[i]);
      }
  }
  EXPECT_EQ(found.size(), 3U);
  EXPECT_EQ(few.first_node(3), all.first_node(3));
  for (std::size_t i = 0; i < kept.size(); ++i)
    EXPECT_EQ(few.first_node(first + static_cast<std::int64_t>(i)), all.first_node(kept[i]));
}

}  // namespace
}  // namespace poisson::assembly
