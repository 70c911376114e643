#include "gpu/core/csr_entries.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>
#include <utility>
#include <vector>

namespace poisson {
namespace {

TEST(CsrEntries, AreAddedInTheOrderInWhichTheyStand) {
  // (1e16 + 1) - 1e16 = 0 in this order, and 1 if the large ones were added first. Row 1 is empty.
  CsrMatrix const a = csr_of_entries(3, 4, {{2, 3, 1e16}, {0, 1, 5}, {2, 3, 1}, {2, 0, 7}, {2, 3, -1e16}});
  EXPECT_EQ(a.n_columns, 4);
  EXPECT_EQ(std::vector<std::int64_t>(a.row_ptr.begin(), a.row_ptr.end()), (std::vector<std::int64_t>{0, 1, 1, 3}));
  EXPECT_EQ(std::vector<std::int32_t>(a.columns.begin(), a.columns.end()), (std::vector<std::int32_t>{1, 0, 3}));
  EXPECT_EQ(std::vector<double>(a.values.begin(), a.values.end()), (std::vector<double>{5, 7, 0}));
}

TEST(CsrEntries, OfManyRowsShortAndLong) {
  std::mt19937 random(1);
  for (std::int64_t const n : {1, 7, 200}) {
    std::map<std::pair<std::int64_t, std::int32_t>, double> expected;
    std::vector<MatrixEntry> entries;
    for (int i = 0; i < 20000; ++i) {
      MatrixEntry const entry{static_cast<std::int64_t>(random() % static_cast<unsigned>(n)),
                              static_cast<std::int32_t>(random() % 90), 1.0 / static_cast<double>(1 + random() % 1000)};
      entries.push_back(entry);
      expected[{entry.row, entry.column}] += entry.value;
    }
    std::map<std::pair<std::int64_t, std::int32_t>, double> found;
    std::int64_t before = -1;
    for_entries(csr_of_entries(n, 90, entries), [&](std::int64_t row, std::int32_t column, double value) {
      EXPECT_LT(before, row * 90 + column) << "rows and columns ascend";
      before = row * 90 + column;
      found[{row, column}] = value;
    });
    EXPECT_EQ(found, expected) << n << " rows";
  }
}

TEST(CsrEntries, OfNone) {
  CsrMatrix const a = csr_of_entries(2, 5, {});
  EXPECT_EQ(std::vector<std::int64_t>(a.row_ptr.begin(), a.row_ptr.end()), (std::vector<std::int64_t>{0, 0, 0}));
  EXPECT_EQ(a.nnz(), 0);
}

}  // namespace
}  // namespace poisson
