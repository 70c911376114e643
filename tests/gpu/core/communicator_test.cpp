#include "gpu/core/communicator.hpp"

#include "gpu/core/node_box.hpp"
#include "gpu/core/row_map.hpp"
#include "tests/gpu/thread_ranks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace poisson {
namespace {

TEST(Alone, IsOneRankThatHasAll) {
  Communicator& ranks = alone();
  EXPECT_TRUE(ranks.is_alone());
  EXPECT_EQ(&ranks, &alone());
  EXPECT_EQ(ranks.rank(), 0);
  EXPECT_EQ(ranks.size(), 1);
  ranks.barrier();
  EXPECT_EQ(gather(ranks, 7), std::vector<int>{7});
  EXPECT_EQ(gather_texts(ranks, "mine"), std::vector<std::string>{"mine"});
  EXPECT_EQ(gather_texts(ranks, ""), std::vector<std::string>{""});
  std::vector<int> const list{3, 1, 2};
  EXPECT_EQ(gather_lists(ranks, list), list);
  EXPECT_EQ(gather_lists(ranks, std::vector<int>{}), std::vector<int>{});
  EXPECT_EQ(joined_on_first(ranks, list), list);
  EXPECT_EQ(gather_on_first(ranks, list), std::vector<std::vector<int>>{list});
  RankLists<int> lists;
  lists[0] = list;
  EXPECT_EQ(swap_lists(ranks, lists).joined(), list);
}

TEST(Alone, SumsAreTheOwnValueBitForBit) {
  Communicator& ranks = alone();
  EXPECT_TRUE(std::signbit(sum_over(ranks, -0.0)));
  EXPECT_EQ(sum_over(ranks, 4), 4);
  EXPECT_EQ(max_over(ranks, -2.5), -2.5);
  EXPECT_TRUE(std::isnan(max_over(ranks, std::numeric_limits<double>::quiet_NaN())));
  EXPECT_TRUE(any_of_ranks(ranks, true));
  EXPECT_FALSE(any_of_ranks(ranks, false));
  EXPECT_EQ(first_message(ranks, "wrong"), "wrong") << "no number of a rank";
  EXPECT_EQ(first_message(ranks, ""), "");
}

TEST(Alone, HasNoOtherRankToWriteTo) {
  int number = 0;
  std::vector<Message> const messages{{1, &number, sizeof number}};
  EXPECT_THROW(static_cast<void>(alone().make_exchange(messages, {})), std::logic_error);
  EXPECT_THROW(static_cast<void>(alone().make_exchange({}, messages)), std::logic_error);
  auto const exchange = alone().make_exchange({}, {});
  exchange->start();
  exchange->finish();
}

TEST(Alone, IsNotATeamOfOne) {
  testing::ThreadRanks::run(1, [](Communicator& ranks) { EXPECT_FALSE(ranks.is_alone()); });
}

// --- thread ranks

/// Numbers whose sum depends on the order.
double number_of(int rank) {
  return std::sin(1.0 + rank) * std::pow(10.0, rank % 9);
}

TEST(Communicators, AddInTheOrderOfTheRanksAndThenOfBlocksOfThem) {
  auto const in_order = [](int first, int last) {
    double sum = number_of(first);
    for (int rank = first + 1; rank < last; ++rank)
      sum += number_of(rank);
    return sum;
  };
  ASSERT_EQ(Communicator::ranks_of_block, 64);
  double const few = in_order(0, 5), many = in_order(0, 64) + in_order(64, 70);
  EXPECT_NE(many, in_order(0, 70)) << "or the order of blocks is not tested";
  for (auto const& [n, sum] : {std::pair(5, few), std::pair(64, in_order(0, 64)), std::pair(70, many)})
    testing::ThreadRanks::run(n, [expected = sum](Communicator& ranks) {
      double const mine = number_of(ranks.rank());
      EXPECT_EQ(sum_over(ranks, mine), expected);
      std::array<double, 2> both{mine, -2 * mine};
      sum_lists(ranks, std::span<double>(both));
      EXPECT_EQ(both, (std::array{expected, -2 * expected}));
    });
}

TEST(Communicators, FindMaximaAndLowestRanks) {
  testing::ThreadRanks::run(3, [](Communicator& ranks) {
    EXPECT_EQ(max_over(ranks, std::int64_t{-7} + ranks.rank()), -5);
    EXPECT_FALSE(std::signbit(max_over(ranks, ranks.rank() == 1 ? 0.0 : -0.0)));
    EXPECT_TRUE(std::signbit(max_over(ranks, -0.0)));
    EXPECT_FALSE(std::signbit(sum_over(ranks, -0.0)));
    EXPECT_EQ(of_rank(ranks, 2, 10 * ranks.rank()), 20);
    EXPECT_EQ(of_first(ranks, 10 * ranks.rank()), 0);
    EXPECT_EQ(text_of_rank(ranks, 1, std::string(static_cast<std::size_t>(ranks.rank()), 'x')), "x");
    EXPECT_EQ(first_message(ranks, "all say it"), "all say it");
    EXPECT_EQ(first_message(ranks, ranks.rank() == 2 ? "two says it" : ""), "rank 2: two says it");
    int const first = combined(
        ranks, ranks.rank() + 5, [](int& one, int other) { one = one < 6 ? other : one; }, Communicator::Order::of_ranks);
    EXPECT_EQ(first, 6) << "of the lowest rank that has one";
  });
}

TEST(Communicators, SendListsToRanksThatDoNotKnowOfThem) {
  testing::ThreadRanks::run(5, [](Communicator& ranks) {
    int const me = ranks.rank();
    for (int round = 0; round < 3; ++round) {  // one right after the other
      RankLists<int> to;
      to[(me + 1) % 5] = {me, round};
      if (me == 3)
        to[me] = {7};
      if (me == 4)
        to[1].clear();  // as if it was not there
      RankLists<int> const from = swap_lists(ranks, to);
      int const before = (me + 4) % 5;
      EXPECT_EQ(from[before], (std::vector<int>{before, round}));
      EXPECT_EQ(from[me], me == 3 ? std::vector<int>{7} : std::vector<int>());
      EXPECT_EQ(std::distance(from.begin(), from.end()), me == 3 ? 2 : 1);
      EXPECT_EQ(from.joined(), me == 3 ? (std::vector<int>{2, round, 7}) : (std::vector<int>{before, round}));
    }
  });
}

/// Counts what a rank sends, and what it gets of all ranks.
class CountingRanks final : public Communicator {
public:
  explicit CountingRanks(Communicator& ranks) : ranks_(ranks) {}
  int rank() const override { return ranks_.rank(); }
  int size() const override { return ranks_.size(); }
  void all_gather(void const* mine, std::int64_t bytes, void* all) override {
    bytes_of_all += bytes * size();
    ranks_.all_gather(mine, bytes, all);
  }
  void barrier() override { ranks_.barrier(); }
  void broadcast(int from, void* data, std::int64_t bytes) override { ranks_.broadcast(from, data, bytes); }
  void combine(void* values, std::int64_t count, std::int64_t size, Combine into, Order order) override {
    ranks_.combine(values, count, size, into, order);
  }
  void deliver(std::span<Message const> sends, Room const& room) override {
    messages += std::ssize(sends);
    for (Message const& message : sends)
      bytes_sent += message.bytes;
    ranks_.deliver(sends, room);
  }
  std::unique_ptr<Exchange> make_exchange(std::span<Message const> sends, std::span<Message const> receives) override {
    return ranks_.make_exchange(sends, receives);
  }
  void end_all(int exit_code) override { ranks_.end_all(exit_code); }

  std::int64_t messages = 0, bytes_sent = 0, bytes_of_all = 0;

private:
  Communicator& ranks_;
};

/// Blocks of 4^3 nodes, n^3 of them: what a rank sends and keeps.
void expect_descriptions_of_neighbours_alone(int n) {
  constexpr std::int64_t side = 4, rows = side * side * side;
  testing::ThreadRanks::run(n * n * n, [n](Communicator& all_ranks) {
    CountingRanks ranks(all_ranks);
    auto const block_of = [&](int rank) { return std::array<std::int64_t, 3>{rank % n, rank / n % n, rank / (n * n)}; };
    auto const own_of = [&](int rank) {
      NodeBox box;
      for (std::size_t d = 0; d < 3; ++d) {
        box.low[d] = side * block_of(rank)[d];
        box.high[d] = box.low[d] + side;
      }
      return box;
    };
    NodeBox const own = own_of(ranks.rank());
    NodeBox around = own;
    std::int64_t n_neighbors = 1;
    for (std::size_t d = 0; d < 3; ++d) {
      around.low[d] = std::max<std::int64_t>(own.low[d] - 1, 0);
      around.high[d] = std::min<std::int64_t>(own.high[d] + 1, side * n);
      n_neighbors *= (around.high[d] - around.low[d] - side) + 1;
    }
    --n_neighbors;
    RowMap const own_rows(ranks, rows);
    EXPECT_EQ(ranks.bytes_of_all, 8 * ranks.size()) << "the first row of every rank, and nothing else";
    std::vector<std::int64_t> needed;
    around.for_all([&](std::array<std::int64_t, 3> const& node) {
      auto const rank = static_cast<int>((node[2] / side * n + node[1] / side) * n + node[0] / side);
      if (rank != ranks.rank())
        needed.push_back(own_rows.first[static_cast<std::size_t>(rank)] + own_of(rank).index(node));
    });
    RowMap const map = own_rows.with_ghosts(ranks, needed);
    EXPECT_EQ(std::ssize(map.neighbors), n_neighbors);
    EXPECT_EQ(ranks.messages, n_neighbors);
    std::int64_t const n_ghosts = around.size() - own.size();
    EXPECT_EQ(ranks.bytes_sent, 4 * n_ghosts);
    std::int64_t n_sent = 0;
    for (RankNeighbor const& neighbor : map.neighbors)
      n_sent += std::ssize(neighbor.sent);
    EXPECT_EQ(n_sent, n_ghosts) << "blocks of one size need of each other what they give";

    std::sort(needed.begin(), needed.end());
    EXPECT_EQ(map.ghosts, needed);
    std::vector<std::int64_t> numbers(rows);
    std::iota(numbers.begin(), numbers.end(), rows * ranks.rank());
    EXPECT_EQ(values_of_ghosts<std::int64_t>(ranks, map.neighbors, numbers), needed) << "as their owners number them";
    EXPECT_EQ(map.n_here(), rows + n_ghosts);
    for (std::int64_t place = 0; place < map.n_here(); ++place)
      ASSERT_EQ(map.place(map.number_at(place)), place);
    EXPECT_EQ(ranks.messages, 2 * n_neighbors);
    EXPECT_EQ(ranks.bytes_sent, 4 * n_ghosts + 8 * n_sent);
    EXPECT_EQ(sum_over<double>(ranks, 1), ranks.size());
    EXPECT_TRUE(any_of_ranks(ranks, ranks.rank() == 5));
    EXPECT_EQ(ranks.bytes_of_all, 8 * ranks.size()) << "sums and conditions gather nothing";
  });
}

TEST(Communicators, ARankKnowsItsNeighboursOfHoweverManyRanks) {
  for (int const n : {2, 4})
    expect_descriptions_of_neighbours_alone(n);
}

}  // namespace
}  // namespace poisson
