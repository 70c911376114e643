#include "gpu/spectral/random_matrix.hpp"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

namespace poisson {
namespace {

TEST(RandomMatrix, EntriesAreUniform) {
  DenseMatrix const a = random_matrix(100, 50, 7);
  double sum = 0, squares = 0, largest = 0;
  for (double const x : a.values) {
    sum += x;
    squares += x * x;
    largest = std::max(largest, std::abs(x));
  }
  EXPECT_LE(largest, 0.5);
  EXPECT_GT(largest, 0.49);
  EXPECT_NEAR(sum / 5000, 0, 0.02);
  EXPECT_NEAR(squares / 5000, 1.0 / 12, 0.005);
  EXPECT_NE(a.values[0], random_matrix(1, 1, 8).values[0]);
  EXPECT_EQ(a.values[0], random_matrix(1, 1, 7).values[0]);
}

}  // namespace
}  // namespace poisson
