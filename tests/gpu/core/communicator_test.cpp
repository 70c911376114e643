#include "gpu/core/communicator.hpp"

#include "tests/gpu/thread_ranks.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
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
  EXPECT_EQ(swap_lists(ranks, std::vector<std::vector<int>>{list}), std::vector<std::vector<int>>{list});
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

}  // namespace
}  // namespace poisson
