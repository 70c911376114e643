#include "gpu/core/lattice_layout.hpp"

#include "gpu/kernels/backends.hpp"
#include "tests/gpu/lattices.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <vector>

namespace poisson {
namespace {

TEST(LatticeRim, NumbersEveryNodeOfTheRimOnce) {
  for (std::int64_t const m : {2, 3, 4, 5, 9}) {
    LatticeRim const rim{m};
    std::vector<int> seen(static_cast<std::size_t>(rim.size()), 0);
    for (std::int64_t k = 0; k < m; ++k)
      for (std::int64_t j = 0; j < m; ++j)
        for (std::int64_t i = 0; i < m; ++i)
          if (rim.holds(i, j, k)) {
            ASSERT_LT(rim.place(i, j, k), rim.size());
            ++seen[static_cast<std::size_t>(rim.place(i, j, k))];
            LatticeRim::Node const node = rim.node(rim.place(i, j, k));
            EXPECT_TRUE(node.i == i && node.j == j && node.k == k);
          }
    EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), rim.size()) << m;
    EXPECT_EQ(rim.size(), m * m * m - (m - 2) * (m - 2) * (m - 2));
  }
}

TEST(LatticeView, GivesEveryNodeItsUnknown) {
  auto const context = make_context(Backend::cpu);
  for (std::int32_t const order : {1, 2, 3})
    for (std::int32_t const cells : {0, 1, 2, 4}) {  // 0: one cell, all of whose nodes are in the tables
      auto const box = test::make_lattice_box({2, 1, 3}, std::max(cells, 1), order, cells == 0);
      LatticeArrays const arrays(*context, box.layout);
      LatticeView const view = arrays.view();
      ASSERT_EQ(view.n_unknowns, box.nodes[0] * box.nodes[1] * box.nodes[2]);
      std::vector<int> seen(static_cast<std::size_t>(view.n_unknowns), 0);
      for (std::int32_t const unknown : box.unknown_of)
        ++seen[static_cast<std::size_t>(unknown)];
      EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), view.n_unknowns);
      for (std::int64_t l = 0; l < view.n_lattices; ++l)
        for (std::int32_t k = 0; k < view.m; ++k)
          for (std::int32_t j = 0; j < view.m; ++j)
            for (std::int32_t i = 0; i < view.m; ++i) {
              ASSERT_EQ(view.unknown(l, i, j, k), box.unknown_of[static_cast<std::size_t>(box.node(l, i, j, k))]);
              if (view.rim().holds(i, j, k))
                continue;
              LatticeView::Node const node = view.inner_node(view.unknown(l, i, j, k));
              ASSERT_TRUE(node.lattice == l && node.i == i && node.j == j && node.k == k);
            }
    }
}

}  // namespace
}  // namespace poisson
