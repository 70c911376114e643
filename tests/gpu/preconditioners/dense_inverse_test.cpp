#include "gpu/preconditioners/dense_inverse.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace poisson::testing {

namespace {

/// Entries from -0.5 to 0.5; with `diagonal` more on the diagonal.
std::vector<double> dense_matrix(std::int64_t n, bool symmetric, double diagonal) {
  std::vector<double> a(static_cast<std::size_t>(n * n));
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      std::int64_t const k = symmetric ? std::min(i, j) * n + std::max(i, j) : i * n + j;
      a[static_cast<std::size_t>(i * n + j)] = std::sin(static_cast<double>(17 * k + 3)) / 2 + (i == j ? diagonal : 0);
    }
  return a;
}

/// The largest entry of A B - I.
double distance_from_identity(std::vector<double> const& a, std::vector<double> const& b, std::int64_t n) {
  double largest = 0;
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = i == j ? -1 : 0;
      for (std::int64_t k = 0; k < n; ++k)
        sum += a[static_cast<std::size_t>(i * n + k)] * b[static_cast<std::size_t>(k * n + j)];
      largest = std::max(largest, std::abs(sum));
    }
  return largest;
}

}  // namespace

/// Sizes beside those of blocks.
TEST(DenseInverse, TimesTheMatrixIsTheIdentity) {
  for (std::int64_t const n : {1, 2, 31, 32, 33, 63, 64, 65, 100, 231})
    for (bool const symmetric : {true, false}) {
      std::vector<double> const a = dense_matrix(n, symmetric, static_cast<double>(n)),
                                inverse = dense_inverse(a, n, false, symmetric);
      ASSERT_EQ(std::ssize(inverse), n * n);
      EXPECT_LT(distance_from_identity(a, inverse, n), 1e-13) << n;
      for (std::int64_t i = 0; symmetric && i < n; ++i)
        for (std::int64_t j = 0; j < i; ++j) {
          ASSERT_NEAR(inverse[static_cast<std::size_t>(i * n + j)], inverse[static_cast<std::size_t>(j * n + i)], 1e-15);
        }
    }
}

/// Rows with a diagonal entry only stand between the others.
TEST(DenseInverse, UnknownsThatAreAlone) {
  std::int64_t const n = 80;
  std::vector<double> a = dense_matrix(n, true, 80);
  for (std::int64_t i = 0; i < n; i += 3)
    for (std::int64_t j = 0; j < n; ++j)
      if (i != j)
        a[static_cast<std::size_t>(i * n + j)] = a[static_cast<std::size_t>(j * n + i)] = 0;
  EXPECT_LT(distance_from_identity(a, dense_inverse(a, n, false, true), n), 1e-14);
  a[static_cast<std::size_t>(3 * n + 3)] = 0;
  EXPECT_TRUE(dense_inverse(a, n, false, false).empty());
}

/// A is the matrix of a chain with its null space: A times the inverse takes the mean off, and the inverse has none.
TEST(DenseInverse, WithoutConstants) {
  for (std::int64_t const n : {5, 33, 70}) {
    std::vector<double> a(static_cast<std::size_t>(n * n), 0.0);
    for (std::int64_t i = 0; i + 1 < n; ++i) {
      a[static_cast<std::size_t>(i * n + i)] += 1;
      a[static_cast<std::size_t>((i + 1) * n + i + 1)] += 1;
      a[static_cast<std::size_t>(i * n + i + 1)] = a[static_cast<std::size_t>((i + 1) * n + i)] = -1;
    }
    std::vector<double> const inverse = dense_inverse(a, n, true, true);
    ASSERT_EQ(std::ssize(inverse), n * n);
    for (std::int64_t i = 0; i < n; ++i) {
      double row = 0;
      for (std::int64_t j = 0; j < n; ++j) {
        row += inverse[static_cast<std::size_t>(i * n + j)];
        double sum = 0;
        for (std::int64_t k = 0; k < n; ++k)
          sum += a[static_cast<std::size_t>(i * n + k)] * inverse[static_cast<std::size_t>(k * n + j)];
        EXPECT_NEAR(sum, (i == j ? 1.0 : 0.0) - 1.0 / static_cast<double>(n), 1e-10);
      }
      EXPECT_NEAR(row, 0, 1e-10);
    }
  }
}

/// The bad pivot is in the first block, at its end, or in a later one.
TEST(DenseInverse, BadPivots) {
  for (std::int64_t const at : {0, 31, 32, 50}) {
    std::int64_t const n = 51;
    std::vector<double> a = dense_matrix(n, true, 60);
    a[static_cast<std::size_t>(at * n + at)] = -60;
    EXPECT_TRUE(dense_inverse(a, n, false, true).empty()) << at;
    EXPECT_LT(distance_from_identity(a, dense_inverse(a, n, false, false), n), 1e-13) << at;
    a[static_cast<std::size_t>(at * n + at)] = std::nan("");
    EXPECT_TRUE(dense_inverse(a, n, false, true).empty()) << at;
  }
  EXPECT_TRUE(dense_inverse({0, 0, 0, 0}, 2, false, false).empty());
}

/// Rows that sum to zero: the last pivot is what rounding leaves of 0.
TEST(DenseInverse, SingularToRounding) {
  std::int64_t const n = 40;
  std::vector<double> a(static_cast<std::size_t>(n * n), 0.0);
  for (std::int64_t i = 0; i + 1 < n; ++i) {
    double const c = 1.0 / (3.0 + static_cast<double>(i % 5));
    a[static_cast<std::size_t>(i * n + i)] += c;
    a[static_cast<std::size_t>((i + 1) * n + i + 1)] += c;
    a[static_cast<std::size_t>(i * n + i + 1)] = a[static_cast<std::size_t>((i + 1) * n + i)] = -c;
  }
  EXPECT_TRUE(dense_inverse(a, n, false, true).empty());
  EXPECT_TRUE(dense_inverse(a, n, false, false).empty());
  EXPECT_FALSE(dense_inverse(a, n, true, true).empty());
}

}  // namespace poisson::testing
