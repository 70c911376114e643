#include "gpu/formats/foreign_rows.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace poisson {
namespace {

TEST(NumberSet, TellsPlacesOfNumbers) {
  std::vector<std::int32_t> const numbers{0, 1, 63, 64, 65, 300, 319};  // at both ends of words, and words without any
  NumberSet set(320);
  for (auto number = numbers.rbegin(); number != numbers.rend(); ++number) {
    set.add(*number);
    set.add(*number);
  }
  EXPECT_EQ(set.close(), numbers);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    EXPECT_EQ(set.place(numbers[i]), static_cast<std::int32_t>(i));
  NumberSet none(0);
  EXPECT_TRUE(none.close().empty());
}

TEST(FirstEntries, AreSumsOfCounts) {
  EXPECT_EQ(first_entries(4, [](std::int64_t row) { return 3 - row; }), (std::vector<std::int64_t>{0, 3, 5, 6, 6}));
  EXPECT_EQ(first_entries(0, [](std::int64_t) { return std::int64_t{1}; }), (std::vector<std::int64_t>{0}));
}

}  // namespace
}  // namespace poisson
