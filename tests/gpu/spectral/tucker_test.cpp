#include "gpu/spectral/tucker.hpp"

#include "gpu/kernels/backends.hpp"
#include "gpu/spectral/random_matrix.hpp"

#include <cmath>
#include <gtest/gtest.h>

namespace poisson {
namespace {

double relative_distance(std::span<double const> a, std::span<double const> b) {
  double difference = 0, all = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    all += a[i] * a[i];
  }
  return std::sqrt(difference / all);
}

/// The sum of products f(x) g(y) h(z) over pairs of columns, with rank 1 in z: ranks 2, 2 and 1.
std::vector<double> low_rank_tensor(std::array<std::int64_t, 3> const& n) {
  DenseMatrix const f = random_matrix(n[0], 2, 1), g = random_matrix(n[1], 2, 2), h = random_matrix(n[2], 1, 3);
  std::vector<double> tensor;
  for (std::int64_t k = 0; k < n[2]; ++k)
    for (std::int64_t j = 0; j < n[1]; ++j)
      for (std::int64_t i = 0; i < n[0]; ++i)
        tensor.push_back((f(i, 0) * g(j, 0) + f(i, 1) * g(j, 1)) * h(k, 0));
  return tensor;
}

TEST(Tucker, FindsTheRanksOfATensor) {
  auto const host = make_context(Backend::cpu);
  std::array<std::int64_t, 3> const shape{7, 5, 6};
  auto const tensor = low_rank_tensor(shape);
  auto const result = truncated_tucker(tensor, shape, 1e-10, *host);
  EXPECT_EQ(result.ranks, (std::vector<std::int64_t>{2, 2, 1}));
  EXPECT_EQ(result.numbers_stored, 2 * 2 * 1 + 7 * 2 + 5 * 2 + 6 * 1);
  EXPECT_LT(relative_distance(tensor, result.approximation), 1e-14);
  EXPECT_LT(result.relative_error, 1e-14);
  EXPECT_LT(result.accuracy.residual_relative, 1e-13);
}

TEST(Tucker, KeepsTheErrorAskedFor) {
  auto const host = make_context(Backend::cpu);
  std::array<std::int64_t, 3> const shape{6, 8, 5};
  auto const& tensor = random_matrix(6, 40, 7).values;
  std::int64_t before = 0;
  for (double const error : {0.7, 0.4, 1e-12}) {
    auto const result = truncated_tucker(tensor, shape, error, *host);
    double const reached = relative_distance(tensor, result.approximation);
    EXPECT_LE(reached, error);
    EXPECT_NEAR(result.relative_error, reached, 1e-14);
    EXPECT_GT(result.numbers_stored, before);
    before = result.numbers_stored;
    for (std::size_t i = 0; i < tensor.size(); ++i)
      EXPECT_EQ(result.error[i], tensor[i] - result.approximation[i]);
  }
}

TEST(Tucker, OfAMatrixIsItsTruncatedSvd) {
  auto const host = make_context(Backend::cpu);
  // diag(4, 2, 1) in a 4 x 3 matrix: rank 2 leaves 1 / sqrt(21) behind.
  std::vector<double> tensor(12, 0.0);
  tensor[0] = 4;
  tensor[5] = 2;
  tensor[10] = 1;
  auto const result = truncated_tucker(tensor, {4, 3, 1}, 0.3, *host);
  EXPECT_EQ(result.ranks, std::vector<std::int64_t>{2});
  EXPECT_EQ(result.numbers_stored, 2 * (4 + 3));
  EXPECT_NEAR(result.relative_error, 1 / std::sqrt(21.0), 1e-14);
  EXPECT_NEAR(result.spectrum.condition, 4, 1e-13);
  EXPECT_NEAR(result.approximation[10], 0, 1e-14);
}

TEST(Tucker, OfZerosHasRankZero) {
  auto const host = make_context(Backend::cpu);
  auto const result = truncated_tucker(std::vector<double>(24, 0.0), {2, 3, 4}, 1e-3, *host);
  EXPECT_EQ(result.ranks, (std::vector<std::int64_t>{0, 0, 0}));
  EXPECT_EQ(result.relative_error, 0);
}

}  // namespace
}  // namespace poisson
