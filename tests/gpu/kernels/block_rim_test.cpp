#include "gpu/kernels/block_rim.hpp"

#include "tests/gpu/arrays.hpp"
#include "tests/gpu/cases.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

/// The rim of a rank's block against loops over all nodes and their neighbours.
namespace poisson::testing {

namespace {

using Counts = std::array<std::int64_t, 3>;

/// Places where a box is cut, in each direction; a node belongs to the block that begins with it or before it.
struct CutBox {
  Counts nodes;
  std::array<std::vector<std::int64_t>, 3> cuts;
  std::array<bool, 6> dirichlet;
};

std::vector<CutBox> cut_boxes() {
  constexpr std::array<bool, 6> none{}, all{true, true, true, true, true, true}, some{true, false, false, true, true, false};
  std::vector<CutBox> boxes;
  for (auto const& dirichlet : {none, all, some}) {
    boxes.push_back({{6, 5, 7}, {{{}, {}, {3}}}, dirichlet});
    boxes.push_back({{7, 8, 9}, {{{3}, {4}, {3, 6}}}, dirichlet});
    boxes.push_back({{9, 3, 5}, {{{2, 5}, {}, {1, 2, 4}}}, dirichlet});  // of one plane, one of them beside Dirichlet values
    boxes.push_back({{4, 4, 4}, {{{1, 2, 3}, {1, 3}, {2}}}, dirichlet});
  }
  return boxes;
}

RankBlocks blocks_of(CutBox const& box) {
  RankBlocks blocks{box.nodes, {}};
  std::array<std::vector<std::int64_t>, 3> ends;
  for (std::size_t d = 0; d < 3; ++d) {
    ends[d] = {0};
    ends[d].insert(ends[d].end(), box.cuts[d].begin(), box.cuts[d].end());
    ends[d].push_back(box.nodes[d]);
  }
  for (std::size_t z = 1; z < ends[2].size(); ++z)
    for (std::size_t y = 1; y < ends[1].size(); ++y)
      for (std::size_t x = 1; x < ends[0].size(); ++x)
        blocks.own.push_back({{ends[0][x - 1], ends[1][y - 1], ends[2][z - 1]}, {ends[0][x], ends[1][y], ends[2][z]}});
  return blocks;
}

/// A number for each coupling of two nodes of the whole box.
double coupling(NodeBox const& whole, Counts const& a, Counts const& b) {
  return static_cast<double>(1 + whole.index(a) + 1000 * whole.index(b));
}

}  // namespace

template <class B>
class BlockRims : public OnBackend<B::value> {};
TYPED_TEST_SUITE(BlockRims, Backends, BackendNames);

TYPED_TEST(BlockRims, HaveTheCouplingsOfTheirNodesWithGhosts) {
  for (CutBox const& box : cut_boxes()) {
    RankBlocks const blocks = blocks_of(box);
    NodeBox const whole = blocks.whole();
    auto const is_free = [&](Counts const& node) {
      for (std::size_t d = 0; d < 3; ++d)
        if ((node[d] == 0 && box.dirichlet[2 * d]) || (node[d] == box.nodes[d] - 1 && box.dirichlet[2 * d + 1]))
          return false;
      return true;
    };
    for (std::size_t me = 0; me < blocks.own.size(); ++me) {
      NodeBox const& own = blocks.own[me];
      NodeBox around = own;
      std::array<bool, 6> dirichlet{};
      for (std::size_t d = 0; d < 3; ++d) {
        around.low[d] = std::max<std::int64_t>(own.low[d] - 1, 0);
        around.high[d] = std::min(own.high[d] + 1, box.nodes[d]);
        dirichlet[2 * d] = box.dirichlet[2 * d] && around.low[d] == 0;
        dirichlet[2 * d + 1] = box.dirichlet[2 * d + 1] && around.high[d] == box.nodes[d];
      }
      BlockPlaces const places(around, blocks, me);
      std::int64_t const n = own.size();

      std::vector<std::int32_t> rows, columns;
      std::vector<std::int64_t> row_ptr{0};
      std::vector<double> values;
      own.for_all([&](Counts const& node) {
        std::vector<std::pair<std::int32_t, double>> row;
        around.for_all([&](Counts const& other) {
          bool beside = true;
          for (std::size_t d = 0; d < 3; ++d)
            beside = beside && std::abs(node[d] - other[d]) <= 1;
          if (beside && is_free(node) && is_free(other) && places.at(other) >= n)
            row.emplace_back(static_cast<std::int32_t>(places.at(other) - n), coupling(whole, node, other));
        });
        if (row.empty())
          return;
        std::ranges::sort(row);
        rows.push_back(static_cast<std::int32_t>(own.index(node)));
        for (auto const& [column, value] : row) {
          columns.push_back(column);
          values.push_back(value);
        }
        row_ptr.push_back(std::ssize(columns));
      });

      // The matrix around in half_cds; a symmetric one.
      HostVector<double> diagonals(static_cast<std::size_t>(14 * around.size()), -0.0);
      around.for_all([&](Counts const& node) {
        for (int s = 0; s < 14; ++s) {
          Counts const other{node[0] - half_stencil::dx(s), node[1] - half_stencil::dy(s), node[2] - half_stencil::dz(s)};
          if (around.holds(other) && is_free(node) && is_free(other))
            diagonals[static_cast<std::size_t>(s * around.size() + around.index(node))] =
                coupling(whole, node, other) + coupling(whole, other, node);
        }
      });
      Context& memory = *this->context;
      Array<double> const matrix(memory, std::span<double const>(diagonals));
      BlockRim const rim(places, dirichlet);
      ASSERT_EQ(rim.size(), std::ssize(rows));
      ASSERT_EQ(rim.n_couplings(), std::ssize(columns));
      ASSERT_EQ(rim.n_own(), n);
      Array<std::int32_t> found_rows(memory, rim.size()), found_columns(memory, rim.n_couplings());
      Array<std::int64_t> found_row_ptr(memory, rim.size() + 1), not_finite(memory, 1);
      Array<double> found_values(memory, rim.n_couplings());
      std::int64_t lowest = std::numeric_limits<std::int64_t>::max();
      not_finite.upload(std::span<std::int64_t const>(&lowest, 1));
      auto const fill = [&](double const* around_values) {
        kernels_for<BlockRimKernels>(memory).fill(
            memory, rim, {around.count(0), around.count(1), around.count(2)}, around_values,
            {found_rows.data(), found_row_ptr.data(), found_columns.data(), found_values.data()}, not_finite.data());
        not_finite.download(std::span<std::int64_t>(&lowest, 1));
      };
      fill(matrix.data());
      EXPECT_EQ(lowest, std::numeric_limits<std::int64_t>::max());
      EXPECT_EQ(downloaded(found_rows), rows);
      EXPECT_EQ(downloaded(found_row_ptr), row_ptr);
      EXPECT_EQ(downloaded(found_columns), columns);
      std::vector<double> const found = downloaded(found_values);
      for (std::size_t t = 0; t < rows.size(); ++t) {
        Counts const node = own.node(rows[t]);
        for (auto e = static_cast<std::size_t>(row_ptr[t]); e < static_cast<std::size_t>(row_ptr[t + 1]); ++e) {
          Counts other{};
          around.for_all([&](Counts const& at) { other = places.at(at) == n + columns[e] ? at : other; });
          EXPECT_EQ(found[e], values[e] + coupling(whole, other, node));
        }
      }
      if (rows.empty())
        continue;
      // The lowest row with an entry that is not finite is told: all are when every entry is infinite.
      std::ranges::fill(diagonals, std::numeric_limits<double>::infinity());
      fill(Array<double>(memory, std::span<double const>(diagonals)).data());
      EXPECT_EQ(lowest, rows.front());
    }
  }
}

}  // namespace poisson::testing
