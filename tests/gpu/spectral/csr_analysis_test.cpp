#include "gpu/spectral/csr_analysis.hpp"

#include "tests/gpu/matrices.hpp"

#include <cmath>
#include <cstddef>
#include <gtest/gtest.h>
#include <vector>

namespace poisson {
namespace {

TEST(CsrAnalysis, DistanceToSymmetry) {
  std::vector<std::uint8_t> const none(3, 0);
  auto const symmetric = testing::to_csr(3, {{{0, 0}, 2}, {{0, 2}, -1}, {{1, 1}, 5}, {{2, 0}, -1}, {{2, 2}, 3}});
  EXPECT_EQ(distance_to_symmetry(*symmetric, none), 0);
  // A - A^T has the entries 2 and -2
  auto const general = testing::to_csr(3, {{{0, 0}, 1}, {{0, 1}, 3}, {{1, 0}, 1}, {{1, 1}, 2}, {{2, 2}, 1}});
  EXPECT_DOUBLE_EQ(distance_to_symmetry(*general, none), std::sqrt(8.0 / 16));
  std::vector<std::uint8_t> const fixed{0, 0, 1};
  EXPECT_DOUBLE_EQ(distance_to_symmetry(*general, fixed), std::sqrt(8.0 / 15));
  auto const one_sided = testing::to_csr(3, {{{0, 1}, 2}});
  EXPECT_DOUBLE_EQ(distance_to_symmetry(*one_sided, none), std::sqrt(8.0 / 4));
  auto const zero = testing::to_csr(3, {{{1, 1}, 0}});
  EXPECT_EQ(distance_to_symmetry(*zero, none), 0);
}

TEST(CsrAnalysis, DenseSubmatrix) {
  auto const a = testing::to_csr(4, {{{0, 0}, 1}, {{0, 3}, 2}, {{1, 1}, 3}, {{2, 0}, 4}, {{2, 2}, 5}, {{3, 0}, 6}, {{3, 3}, 7}});
  std::vector<std::int64_t> const indices{3, 0, 2};  // the order is kept
  std::vector<double> const scaling{2, 3, 5};
  double const expected[3][3] = {{7, 6, 0}, {2, 1, 0}, {0, 4, 5}};
  DenseMatrix const plain = dense_submatrix(*a, indices), scaled = dense_submatrix(*a, indices, scaling);
  ASSERT_EQ(plain.n_rows, 3);
  ASSERT_EQ(plain.n_columns, 3);
  for (std::int64_t i = 0; i < 3; ++i)
    for (std::int64_t j = 0; j < 3; ++j) {
      EXPECT_EQ(plain(i, j), expected[i][j]) << i << ' ' << j;
      EXPECT_EQ(scaled(i, j), scaling[static_cast<std::size_t>(i)] * expected[i][j] * scaling[static_cast<std::size_t>(j)])
          << i << ' ' << j;
    }
}

TEST(CsrAnalysis, DiagonalScaling) {
  // row 1 has no diagonal entry, row 2 a negative one
  auto a = testing::to_csr(4, {{{0, 0}, 4}, {{0, 3}, 8}, {{1, 0}, 3}, {{2, 2}, -9}, {{3, 0}, 8}, {{3, 3}, 64}});
  a->low_values.assign(a->values.size(), 1e-20);
  auto const s = diagonal_scaling(*a);
  EXPECT_EQ(s, (std::vector<double>{0.5, 1, 1, 0.125}));
  CsrMatrix const scaled = scaled_symmetrically(*a, s);
  std::vector<double> const expected{1, 0.5, 1.5, -9, 0.5, 1};
  ASSERT_EQ(scaled.values.size(), expected.size());
  for (std::size_t e = 0; e < expected.size(); ++e) {
    EXPECT_EQ(scaled.values[e], expected[e]) << e;
    EXPECT_EQ(scaled.columns[e], a->columns[e]) << e;
  }
  EXPECT_TRUE(scaled.low_values.empty());
}

}  // namespace
}  // namespace poisson
