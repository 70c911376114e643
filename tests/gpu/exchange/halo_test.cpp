#include "gpu/exchange/halo.hpp"

#include "gpu/exchange/whole_vector.hpp"
#include "gpu/kernels/backends.hpp"
#include "tests/gpu/arrays.hpp"
#include "tests/gpu/cases.hpp"
#include "tests/gpu/thread_ranks.hpp"

#include <algorithm>
#include <cstdint>
#include <gtest/gtest.h>
#include <vector>

/// What goes from vectors into messages and back, and vectors that ranks share.
namespace poisson::testing {

namespace {

std::vector<double> counted(std::int64_t n, double first = 0) {
  std::vector<double> result;
  for (std::int64_t i = 0; i < n; ++i)
    result.push_back(first + static_cast<double>(i));
  return result;
}

/// A box of 7 x 5 x 4 nodes in so many blocks along x; the last rank has none.
std::vector<NodeBox> blocks_of(NodeBox const& whole, int ranks) {
  std::vector<NodeBox> own;
  for (std::int64_t r = 0; r + 1 < ranks; ++r) {
    NodeBox& block = own.emplace_back(whole);
    block.low[0] = whole.high[0] * r / (ranks - 1);
    block.high[0] = whole.high[0] * (r + 1) / (ranks - 1);
  }
  own.push_back({});
  return own;
}

double entry(std::int64_t vector, std::int64_t number) {
  return static_cast<double>(1000 * vector + number);
}

}  // namespace

template <class B>
class HaloKernels : public OnBackend<B::value> {};
TYPED_TEST_SUITE(HaloKernels, Backends, BackendNames);

TYPED_TEST(HaloKernels, PackAndPutSeveralVectors) {
  auto const& kernels = kernels_for<RimKernels<double>>(*this->context);
  std::vector<std::int32_t> const listed{7, 0, 299, 31, -1, 33, 150};
  std::int64_t const n = std::ssize(listed), step = 300;
  for (bool const has_list : {true, false})
    for (int const vectors : {1, 2, 14}) {
      std::vector<double> const x = counted(vectors * step);
      std::vector<double> message(static_cast<std::size_t>(vectors * n)), put(x.size(), -1.0);
      for (std::int64_t i = 0; i < n; ++i)
        for (int v = 0; v < vectors; ++v) {
          std::int64_t const place = has_list ? listed[static_cast<std::size_t>(i)] : i;
          double const value = place < 0 ? -5 : x[static_cast<std::size_t>(v * step + place)];
          message[static_cast<std::size_t>(i * vectors + v)] = value;
          if (place >= 0)
            put[static_cast<std::size_t>(v * step + place)] = value;
        }
      Array<double> to = uploaded(*this->context, std::vector<double>(x.size(), -1.0));
      Array<double> const come = uploaded(*this->context, message), from = uploaded(*this->context, x);
      Array<std::int32_t> const there = uploaded(*this->context, listed);
      kernels.put(*this->context, n, has_list ? there.data() : nullptr, come.data(), to.data(), vectors, step);
      EXPECT_EQ(downloaded(to), put);
      // Packed are those with a place.
      std::vector<std::int32_t> places = listed;
      std::replace(places.begin(), places.end(), -1, 32);
      for (int v = 0; has_list && v < vectors; ++v)
        message[static_cast<std::size_t>(4 * vectors + v)] = x[static_cast<std::size_t>(v * step + 32)];
      Array<std::int32_t> const from_there = uploaded(*this->context, places);
      Array<double> packed(*this->context, vectors * n);
      kernels.pack(*this->context, n, has_list ? from_there.data() : nullptr, from.data(), packed.data(), vectors, step);
      EXPECT_EQ(downloaded(packed), message);
    }
}

TEST(Halo, BringsNodesOfSeveralVectorsFromTheirOwners) {
  NodeBox const whole{{}, {7, 5, 4}};
  for (int const size : {2, 3, 5})
    ThreadRanks::run(size, [&](Communicator& ranks) {
      auto const context = make_context(Backend::cpu);
      auto const me = static_cast<std::size_t>(ranks.rank());
      std::vector<NodeBox> const own = blocks_of(whole, size);
      std::vector<NodeBox> needed = own;
      for (NodeBox& box : needed)
        if (box.size() > 0) {
          box.low[0] = std::max<std::int64_t>(box.low[0] - 2, 0);
          box.high[0] = std::min<std::int64_t>(box.high[0] + 1, 7);
        }
      NodeBox const around = own[me].size() > 0 ? whole : NodeBox{};
      std::vector<double> x, expected;
      for (int v = 0; v < 3; ++v)
        around.for_all([&](auto const& node) {
          NodeBox const at{node, {node[0] + 1, node[1] + 1, node[2] + 1}};
          expected.push_back(common(at, needed[me]).size() > 0 ? entry(v, whole.index(node)) : -1);
          x.push_back(common(at, own[me]).size() > 0 ? entry(v, whole.index(node)) : -1);
        });
      Halo<double> halo(*context, ranks, HaloPlaces(ranks.rank(), own, needed, around), HaloDirection::to_ghosts, 3, around.size());
      halo.fill(x.data());
      EXPECT_EQ(x, expected);
    });
}

TEST(Halo, PutsGhostsBehindOwnEntries) {
  constexpr int size = 4, without_rows = 2;
  ThreadRanks::run(size, [&](Communicator& ranks) {
    auto const context = make_context(Backend::cpu);
    auto const entries = [](int rank) { return counted(rank == without_rows ? 0 : 3, 10.0 * rank); };
    std::vector<RankNeighbor> neighbors;
    std::vector<double> expected = entries(ranks.rank());
    for (int other = 0; other < size && ranks.rank() != without_rows; ++other)
      if (other != ranks.rank() && other != without_rows) {
        neighbors.push_back({other, {2, 0}, 2});
        expected.insert(expected.end(), {10.0 * other + 2, 10.0 * other});
      }
    EXPECT_EQ(downloaded(with_ghosts(*context, ranks, neighbors, uploaded(*context, entries(ranks.rank())))), expected);
  });
}

// Every rank has a ghost of each row of rank 1. In another order the sums would have other bits.
TEST(Halo, AddsWhatComesInTheOrderOfRanks) {
  constexpr int size = 5, owner = 1;
  ThreadRanks::run(size, [&](Communicator& ranks) {
    auto const context = make_context(Backend::cpu);
    std::vector<RankNeighbor> neighbors;
    if (ranks.rank() == owner)
      for (int const other : {0, 2, 3, 4})
        neighbors.push_back({other, {2, 0}, 0});
    else
      neighbors.push_back({owner, {}, 2});
    std::vector<double> const parts{1.0, 0.0, 1e16, 1.0, -1e16};  // of ranks
    double const mine = parts[static_cast<std::size_t>(ranks.rank())];
    std::int64_t const n_own = ranks.rank() == owner ? 3 : 1;
    std::vector<double> x(static_cast<std::size_t>(n_own), 1.0), sums = x;
    x.insert(x.end(), {mine, 2 * mine});
    Halo<double> halo(*context, ranks, HaloPlaces(n_own, neighbors), HaloDirection::to_owners);
    halo.start(x.data());
    halo.add(3.0, sums.data());
    double const sum = ((1.0 + 1e16) + 1.0) - 1e16;
    EXPECT_EQ(sum, 0.0);
    if (ranks.rank() == owner)
      EXPECT_EQ(sums, (std::vector<double>{1 + 3 * (2 * sum), 1, 1 + 3 * sum}));
    else
      EXPECT_EQ(sums, std::vector<double>{1});
  });
}

TEST(WholeVector, IsTheSameOnAllRanks) {
  NodeBox const whole{{}, {7, 5, 4}};
  for (int const size : {2, 3, 5})
    ThreadRanks::run(size, [&](Communicator& ranks) {
      auto const context = make_context(Backend::cpu);
      auto const me = static_cast<std::size_t>(ranks.rank());
      std::vector<NodeBox> const own = blocks_of(whole, size);
      NodeBox part = own[me];  // and nodes around it
      if (part.size() > 0)
        part.high[2] += 1;
      for (std::int32_t const vectors : {1, 14}) {
        std::vector<double> x, expected, mine, taken(static_cast<std::size_t>(own[me].size()));
        for (int v = 0; v < vectors; ++v) {
          part.for_all([&](auto const& node) { x.push_back(node[2] < 4 ? entry(v, whole.index(node)) : -1); });
          whole.for_all([&](auto const& node) { expected.push_back(entry(v, whole.index(node))); });
        }
        own[me].for_all([&](auto const& node) { mine.push_back(entry(0, whole.index(node))); });
        std::vector<double> all(expected.size(), -1);
        WholeVector<double> of_box(*context, ranks, own, part, whole, vectors);
        of_box.gather(x.data(), all.data());
        EXPECT_EQ(all, expected);
        of_box.own_entries(all.data(), taken.data());
        EXPECT_EQ(taken, mine);
      }
      // Rows of unequal shares, in the opposite order.
      std::vector<std::int64_t> first{0};
      for (int r = 0; r < size; ++r)
        first.push_back(first.back() + 2 * r);
      std::vector<std::int32_t> places;
      for (std::int64_t i = 0; i < first.back(); ++i)
        places.push_back(static_cast<std::int32_t>(first.back() - 1 - i));
      std::vector<double> const rows = counted(2 * ranks.rank(), static_cast<double>(first[me]));
      std::vector<double> all(places.size()), taken(rows.size()), expected = counted(first.back());
      WholeVector<double>(*context, ranks, first).gather(rows.data(), all.data());
      EXPECT_EQ(all, expected);
      std::reverse(expected.begin(), expected.end());
      WholeVector<double> turned(*context, ranks, first, places);
      turned.gather(rows.data(), all.data());
      EXPECT_EQ(all, expected);
      turned.own_entries(all.data(), taken.data());
      EXPECT_EQ(taken, rows);
    });
}

}  // namespace poisson::testing
