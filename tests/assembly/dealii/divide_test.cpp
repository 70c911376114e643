#include "assembly/mesh/coarse_mesh.hpp"

#include <deal.II/base/config.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <set>

/// Division of graphs: equal parts with few neighbours in others, the same every time.
namespace poisson::assembly {

namespace {

/// n^3 vertices, each with up to six neighbours.
Graph cube_graph(int n) {
  Graph graph{{0}, {}};
  for (int i = 0; i < n * n * n; ++i) {
    std::array<int, 3> const at{i % n, i / n % n, i / (n * n)}, stride{1, n, n * n};
    for (std::size_t d = 0; d < 3; ++d) {
      if (at[d] > 0)
        graph.neighbors.push_back(i - stride[d]);
      if (at[d] < n - 1)
        graph.neighbors.push_back(i + stride[d]);
    }
    graph.offsets.push_back(static_cast<std::int64_t>(graph.neighbors.size()));
  }
  return graph;
}

std::int64_t cut_edges(Graph const& graph, std::vector<std::int32_t> const& part) {
  std::int64_t cut = 0;
  for (std::size_t i = 0; i < part.size(); ++i)
    for (auto e = graph.offsets[i]; e < graph.offsets[i + 1]; ++e)
      cut += part[i] < part[static_cast<std::size_t>(graph.neighbors[static_cast<std::size_t>(e)])] ? 1 : 0;
  return cut;
}

TEST(Divide, GivesEqualPartsInTheOrderOfTheirFirstVertices) {
  Graph const graph = cube_graph(8);
  for (int const n : {1, 2, 3, 5, 8, 16}) {
    auto const part = divide(graph, n);
    ASSERT_EQ(part.size(), 512U);
    EXPECT_EQ(part, divide(graph, n));
    std::vector<int> size(static_cast<std::size_t>(n), 0);
    std::int32_t seen = 0;
    for (std::int32_t const p : part) {
      ASSERT_LE(p, seen);
      seen += p == seen ? 1 : 0;
      ++size[static_cast<std::size_t>(p)];
    }
    EXPECT_LE(*std::max_element(size.begin(), size.end()), 1.08 * 512 / n + 1);
    EXPECT_GT(*std::min_element(size.begin(), size.end()), 0);
  }
}

TEST(Divide, CutsFewEdges) {
#ifdef DEAL_II_WITH_METIS
  Graph const graph = cube_graph(8);
  EXPECT_LT(cut_edges(graph, divide(graph, 8)), 300) << "three planes of 64 at best, seven where the cube is cut into runs";
#else
  GTEST_SKIP() << "deal.II was built without METIS";
#endif
}

TEST(Divide, LeavesPartsEmptyWhereVerticesAreFew) {
  auto const part = divide(cube_graph(2), 11);
  EXPECT_EQ(std::set<std::int32_t>(part.begin(), part.end()).size(), 8U);
  EXPECT_EQ(part.front(), 0);
  EXPECT_EQ(part.back(), 7);
}

}  // namespace

}  // namespace poisson::assembly
