#include "gpu/kernels/block.hpp"

#include "gpu/core/array.hpp"
#include "gpu/kernels/backends.hpp"
#include "tests/gpu/arrays.hpp"
#include "tests/gpu/cases.hpp"

#include <cstdint>
#include <gtest/gtest.h>
#include <span>
#include <vector>

/// Entries of nodes of a box, of one vector or several, beside loops over the nodes.
namespace poisson::testing {

namespace {

struct Boxes {
  NodeBox nodes, from, to;
};

/// Common nodes: all of both boxes, whole planes, whole lines of some planes, parts of lines, one node, none.
std::vector<Boxes> pairs_of_boxes() {
  NodeBox const large{{0, 0, 0}, {33, 17, 9}};
  return {{large, large, large},
          {{{0, 0, 3}, {33, 17, 7}}, large, {{0, 0, 2}, {33, 17, 8}}},
          {{{0, 5, 3}, {33, 9, 7}}, large, {{0, 5, 3}, {33, 9, 7}}},
          {{{0, 5, 3}, {33, 9, 7}}, {{0, 4, 1}, {33, 12, 9}}, large},
          {{{4, 5, 3}, {20, 9, 7}}, {{4, 4, 1}, {33, 12, 9}}, {{2, 5, 3}, {20, 9, 8}}},
          {{{4, 5, 3}, {5, 9, 7}}, large, {{4, 5, 3}, {5, 9, 7}}},
          {{{32, 16, 8}, {33, 17, 9}}, large, {{32, 16, 8}, {33, 17, 9}}},
          {{}, large, large}};
}

double entry(std::int64_t vector, std::array<std::int64_t, 3> const& node) {
  return static_cast<double>(1 + vector + 20 * (node[0] + 40 * (node[1] + 40 * node[2])));
}

}  // namespace

template <class B>
class Block : public OnBackend<B::value> {};
TYPED_TEST_SUITE(Block, Backends, BackendNames);

TYPED_TEST(Block, CopiesNodesOfSeveralVectors) {
  auto const& kernels = kernels_for<BlockKernels<float>>(*this->context);
  for (Boxes const& boxes : pairs_of_boxes())
    for (int const vectors : {1, 3, 14}) {
      std::vector<double> from;
      std::vector<float> expected(static_cast<std::size_t>(vectors * boxes.to.size()), -1.0F);
      for (int v = 0; v < vectors; ++v) {
        boxes.from.for_all([&](auto const& node) { from.push_back(entry(v, node)); });
        boxes.nodes.for_all([&](auto const& node) {
          expected[static_cast<std::size_t>(v * boxes.to.size() + boxes.to.index(node))] = static_cast<float>(entry(v, node));
        });
      }
      CommonNodes const nodes = common_nodes(boxes.nodes, boxes.from, boxes.to, vectors);
      EXPECT_EQ(joined(nodes).size(), boxes.nodes.size());
      Array<double> const from_double = uploaded(*this->context, from);
      Array<float> const from_float = uploaded(*this->context, std::vector<float>(from.begin(), from.end()));
      Array<float> to = uploaded(*this->context, std::vector<float>(expected.size(), -1.0F)), rounded = to.copy_to(*this->context);
      kernels.copy(*this->context, nodes, from_float.data(), to.data());
      kernels.copy_from_double(*this->context, nodes, from_double.data(), rounded.data());
      EXPECT_EQ(downloaded(to), expected);
      EXPECT_EQ(downloaded(rounded), expected);
    }
}

TYPED_TEST(Block, ListsPlacesOfNodes) {
  auto const& kernels = kernels_for<BlockKernels<double>>(*this->context);
  for (Boxes const& boxes : pairs_of_boxes()) {
    std::vector<std::int32_t> expected;
    boxes.nodes.for_all([&](auto const& node) { expected.push_back(static_cast<std::int32_t>(boxes.to.index(node))); });
    CommonNodes const nodes = common_nodes(boxes.nodes, boxes.from, boxes.to);
    for (CommonNodes const& described : {nodes, joined(common_nodes(boxes.nodes, boxes.nodes, boxes.to))}) {
      Array<std::int32_t> places(*this->context, boxes.nodes.size());
      kernels.list(*this->context, described, places.data());
      EXPECT_EQ(downloaded(places), expected);
    }
  }
}

}  // namespace poisson::testing
