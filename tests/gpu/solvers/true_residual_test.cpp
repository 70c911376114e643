#include "tests/gpu/matrices.hpp"

#include "gpu/core/context.hpp"
#include "gpu/core/double_double.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/threads.hpp"
#include "gpu/solvers/solver.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace poisson::testing {

namespace {

__extension__ using Quad = __float128;  // 113 bits

double quad_residual(CsrMatrix const& a, std::vector<double> const& x, std::vector<double> const& b) {
  Quad r_squared = 0, b_squared = 0;
  for (std::size_t row = 0; row < b.size(); ++row) {
    Quad r = b[row];
    for (auto e = static_cast<std::size_t>(a.row_ptr[row]); e < static_cast<std::size_t>(a.row_ptr[row + 1]); ++e)
      r -= static_cast<Quad>(a.values[e]) * x[static_cast<std::size_t>(a.columns[e])];
    r_squared += r * r;
    b_squared += static_cast<Quad>(b[row]) * b[row];
  }
  return std::sqrt(static_cast<double>(r_squared / b_squared));
}

TEST(TrueResidual, AgreesWithQuadruplePrecision) {
  auto const csr = box27(9, 8, 7, false, 0.5);
  auto const x = random_vector(csr->n_rows, 1), b = random_vector(csr->n_rows, 2);
  double const expected = quad_residual(*csr, x, b);
  EXPECT_NEAR(true_residual(*csr, x, b), expected, 1e-15 * expected);
}

TEST(TrueResidual, SurvivesCancellation) {
  // b is A x rounded: what remains are the rounding errors of b alone, which plain arithmetic buries under its own.
  auto const csr = banded(5000, {1, 2, 50}, 7);
  auto const x = random_vector(csr->n_rows, 1);
  auto const b = naive_product(*csr, x);
  double const expected = quad_residual(*csr, x, b);
  ASSERT_GT(expected, 1e-17);
  ASSERT_LT(expected, 2e-16);
  EXPECT_NEAR(true_residual(*csr, x, b), expected, 1e-12 * expected);

  auto const hard = to_csr(1, 4, {{{0, 0}, 1e16}, {{0, 1}, 1.0}, {{0, 2}, -1e16}, {{0, 3}, 3.0}});
  EXPECT_DOUBLE_EQ(true_residual(*hard, std::vector<double>{1, 1e-8, 1, 0}, std::vector<double>{1}), 1 - 1e-8);
}

TEST(TrueResidual, AnyScaleAndZero) {
  auto const csr = to_csr(2, {{{0, 0}, 1.0}, {{1, 1}, 1.0}});
  EXPECT_DOUBLE_EQ(true_residual(*csr, std::vector<double>{0, 2e-300}, std::vector<double>{0, 4e-300}), 0.5);
  EXPECT_DOUBLE_EQ(true_residual(*csr, std::vector<double>{0, 2e300}, std::vector<double>{0, 4e300}), 0.5);
  EXPECT_EQ(true_residual(*csr, std::vector<double>{0, 0}, std::vector<double>{0, 0}), 0);
  EXPECT_DOUBLE_EQ(true_residual(*csr, std::vector<double>{3, 4}, std::vector<double>{0, 0}), 5);
  EXPECT_EQ(true_residual(*to_csr(0, {}), std::vector<double>{}, std::vector<double>{}), 0);
  EXPECT_TRUE(std::isnan(true_residual(*csr, std::vector<double>{NAN, 1}, std::vector<double>{1, 1})));
  EXPECT_THROW(static_cast<void>(true_residual(*csr, std::vector<double>{1}, std::vector<double>{1, 1})), InputError);
}

TEST(TrueResidual, SameBitsForAnyThreadCount) {
  int const threads = thread_count();
  auto const csr = box27(30, 29, 28, false, 0.5);
  auto const x = random_vector(csr->n_rows, 1), b = random_vector(csr->n_rows, 2);
  set_thread_count(1);
  double const one = true_residual(*csr, x, b);
  set_thread_count(3);
  EXPECT_EQ(true_residual(*csr, x, b), one);
  set_thread_count(threads);
}

TEST(DoubleDoubleTest, ErrorFreeTransformations) {
  auto const values = random_vector(2000, 5);
  for (std::size_t i = 0; i + 1 < values.size(); i += 2) {
    double const a = values[i] * 1e7, b = values[i + 1];
    DoubleDouble const sum = two_sum(a, b), product = two_prod(a, b);
    ASSERT_EQ(static_cast<Quad>(sum.hi) + sum.lo, static_cast<Quad>(a) + b);
    ASSERT_EQ(static_cast<Quad>(product.hi) + product.lo, static_cast<Quad>(a) * b);
    ASSERT_EQ(sum.hi, a + b);
    DoubleDouble const quick = quick_two_sum(a * 10, b);
    ASSERT_EQ(static_cast<Quad>(quick.hi) + quick.lo, static_cast<Quad>(a * 10) + b);
  }
}

TEST(DoubleDoubleTest, SumAndProductKeep100Bits) {
  auto const values = random_vector(4000, 6);
  auto const quad = [](DoubleDouble v) { return static_cast<Quad>(v.hi) + v.lo; };
  auto const size = [](Quad v) { return v < 0 ? -v : v; };
  Quad const bound = static_cast<Quad>(std::ldexp(1.0, -100));
  for (std::size_t i = 0; i + 3 < values.size(); i += 4) {
    DoubleDouble const a = two_sum(values[i], values[i + 1] * 1e-17), b = two_sum(-values[i + 2], values[i + 3] * 1e-17);
    ASSERT_LE(size(quad(a + b) - (quad(a) + quad(b))), bound * size(quad(a) + quad(b)));
    ASSERT_LE(size(quad(a * b) - quad(a) * quad(b)), bound * size(quad(a) * quad(b)));
  }
}

}  // namespace
}  // namespace poisson::testing
