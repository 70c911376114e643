#include "gpu/formats/half_slices.hpp"

#include "gpu/formats/csr.hpp"
#include "gpu/solvers/solver.hpp"
#include "tests/gpu/cases.hpp"
#include "tests/gpu/matrices.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>

#ifdef POISSON_TEST_CUDA

namespace poisson::testing {

namespace {

class HalfSlicesOnCuda : public OnBackend<Backend::cuda> {
protected:
  [[nodiscard]] Array<float> upload(std::vector<float> const& v) const { return Array<float>(*context, std::span<float const>(v)); }
  [[nodiscard]] static std::vector<float> download(Array<float> const& v) {
    std::vector<float> host(static_cast<std::size_t>(v.size()));
    v.download(host);
    return host;
  }
  void check(std::shared_ptr<CsrMatrix const> const& a, std::string const& what, bool symmetric = true);
};

/// Entries of D A D.
std::shared_ptr<CsrMatrix> scaled(CsrMatrix const& a) {
  auto result = std::make_shared<CsrMatrix>(a);
  auto const factor = [](std::int64_t i) { return std::pow(10.0, static_cast<double>(i * 7 % 13) - 6); };
  for (std::int64_t i = 0; i < a.n_rows; ++i)
    for (std::int64_t k = a.row_ptr[i]; k < a.row_ptr[i + 1]; ++k)
      result->values[k] *= factor(i) * factor(a.columns[k]);
  return result;
}

}  // namespace

void HalfSlicesOnCuda::check(std::shared_ptr<CsrMatrix const> const& a, std::string const& what, bool symmetric) {
  SCOPED_TRACE(what);
  std::unique_ptr<Matrix> const half_of = Csr(a, *context).in_half();
  Matrix const& half = *half_of;
  std::int64_t const n = a->n_rows;
  LinearOperator<float> const& as_operator = half;
  auto const numbers = [n](unsigned seed) {
    std::vector<double> const wide = random_vector(n, seed);
    return std::vector<float>(wide.begin(), wide.end());
  };
  std::vector<float> const x = numbers(1), b = numbers(2);
  Array<float> const x_there = upload(x), b_there = upload(b);
  Array<float> y_there = upload(std::vector<float>(x.size(), std::numeric_limits<float>::quiet_NaN())), other(*context, n),
               dot(*context, 1), diagonal(*context, n);
  Array<std::int32_t> const running(*context, std::span<std::int32_t const>(std::vector<std::int32_t>{0}));
  as_operator.product(1, x_there.data(), 0, y_there.data());
  std::vector<float> const y = download(y_there);
  // What rounding takes from an entry, its row's diagonal entry gets: an error is that of a difference.
  std::vector<double> size(x.size());
  for (std::int64_t i = 0; i < n; ++i) {
    double sum = 0, bound = 0;
    for (std::int64_t k = a->row_ptr[i]; k < a->row_ptr[i + 1]; ++k) {
      auto const j = static_cast<std::size_t>(a->columns[k]);
      double const x_i = static_cast<double>(x[static_cast<std::size_t>(i)]), x_j = static_cast<double>(x[j]);
      sum += a->values[k] * x_j;
      bound += std::abs(a->values[k]) * 0x1p-11 * std::abs(x_j - x_i);
      size[static_cast<std::size_t>(i)] += std::abs(a->values[k]);
    }
    ASSERT_NEAR(static_cast<double>(y[static_cast<std::size_t>(i)]), sum, bound + 1e-6 * size[static_cast<std::size_t>(i)]) << i;
  }
  // Row sums are those of A.
  Array<float> const ones = upload(std::vector<float>(x.size(), 1));
  as_operator.product(1, ones.data(), 0, other.data());
  std::vector<float> const sums = download(other);
  for (std::int64_t i = 0; i < n; ++i) {
    double sum = 0;
    for (std::int64_t k = a->row_ptr[i]; k < a->row_ptr[i + 1]; ++k)
      sum += a->values[k];
    ASSERT_NEAR(static_cast<double>(sums[static_cast<std::size_t>(i)]), sum, 1e-6 * size[static_cast<std::size_t>(i)]) << i;
  }
  // alpha and beta; the dot; a step of a smoother; a residual.
  as_operator.product(-2, x_there.data(), 0.5F, y_there.data());
  as_operator.product_dot(x_there.data(), other.data(), dot.data(), running.data());
  as_operator.diagonal(diagonal.data());
  std::vector<float> const combined = download(y_there), again = download(other), d = download(diagonal);
  double expected_dot = 0, size_of_dot = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(again[i], y[i]) << i;
    EXPECT_NEAR(combined[i], -1.5F * y[i], 1e-6 * size[i]) << i;
    expected_dot += static_cast<double>(x[i]) * static_cast<double>(y[i]);
    size_of_dot += std::abs(static_cast<double>(x[i])) * size[i];
  }
  EXPECT_NEAR(static_cast<double>(download(dot)[0]), expected_dot, 1e-6 * size_of_dot);
  std::vector<float> divisor = d;
  for (float& v : divisor)
    v = v == 0 ? 1 : v;
  Array<float> const divisor_there = upload(divisor);
  EXPECT_TRUE(
      half.smooth(SmoothingStep<float>{divisor_there.data(), b_there.data(), 0.7F, other.data()}, x_there.data(), running.data()));
  std::vector<float> const after = download(other);
  EXPECT_TRUE(half.subtract_product(b_there.data(), x_there.data(), other.data(), running.data()));
  std::vector<float> const residual = download(other);
  for (std::size_t i = 0; i < x.size(); ++i) {
    EXPECT_NEAR(residual[i], b[i] - y[i], 1e-6 * (1 + size[i])) << i;
    EXPECT_NEAR(after[i], x[i] + 0.7F * (b[i] - y[i]) / divisor[i],
                1e-6 * (1 + (1 + size[i]) / std::abs(static_cast<double>(divisor[i]))))
        << i;
  }
  if (symmetric) {
    as_operator.product(1, b_there.data(), 0, other.data());
    std::vector<float> const of_b = download(other);
    double one = 0, two = 0, all = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      one += static_cast<double>(of_b[i]) * static_cast<double>(x[i]);
      two += static_cast<double>(y[i]) * static_cast<double>(b[i]);
      all += size[i];
    }
    EXPECT_NEAR(one, two, 1e-6 * all);
  }
  Array<double> const wide_x(*context, n);
  Array<double> wide_y(*context, n);
  EXPECT_THROW(half.product(1.0, wide_x.data(), 0.0, wide_y.data()), std::logic_error);
  half.diagonal(wide_y.data());
  std::vector<double> wide(x.size());
  wide_y.download(wide);
  for (std::size_t i = 0; i < x.size(); ++i)
    EXPECT_EQ(wide[i], static_cast<double>(d[i])) << i;
}

TEST_F(HalfSlicesOnCuda, ProductsAreThoseOfTheMatrixOnDifferences) {
  check(box27(9, 8, 7, false, 0.3), "box");
  check(box27(5, 5, 5, true, 0.3), "row sums of zero");
  check(scaled(*box27(7, 6, 5, false, 0.3)), "entries from 1e-12 to 1e12");
  check(to_csr(1, {{{0, 0}, 3.1}}), "one row");
  check(to_csr(33, {{{0, 32}, 1e-3}, {{32, 0}, 1e-3}, {{7, 7}, 2}}), "empty rows");
  check(uneven(77, 77, 3), "uneven", false);
  check(large_irregular(2000, 40, 900), "a long row", false);
}

TEST_F(HalfSlicesOnCuda, AreMadeOfMatricesInDoubleInTheSameSlices) {
  auto const a = box27(6, 5, 4);
  auto const half_of = [&](FormatOptions const& options) {
    return make_matrix(Format::sell_c_sigma, a, *context, options)->in_half();
  };
  std::unique_ptr<Matrix> const of_slices = half_of({}), of_csr = Csr(a, *context).in_half();
  Array<float> const x = upload(std::vector<float>(120, 0.3F));
  Array<float> one(*context, 120), two(*context, 120);
  of_slices->product(1.0F, x.data(), 0.0F, one.data());
  of_csr->product(1.0F, x.data(), 0.0F, two.data());
  EXPECT_EQ(download(one), download(two));
  EXPECT_EQ(of_slices->bytes(), of_csr->bytes());
  EXPECT_EQ(half_of({.precision = MatrixPrecision::single}), nullptr);
  EXPECT_EQ(half_of({.slice_size = 16}), nullptr);
  EXPECT_EQ(half_of({.sigma = 64}), nullptr);
  EXPECT_EQ(Csr(a, *make_cpu_context()).in_half(), nullptr);
}

TEST_F(HalfSlicesOnCuda, CyclesTakeTheIterationsOfSingle) {
  auto const a = box27(52, 52, 52);  // a level in slices
  HostVector<double> const b(static_cast<std::size_t>(a->n_rows), 1.0);
  auto const matrix = make_matrix(Format::sell_c_sigma, a, *context);
  std::int64_t iterations[2] = {};
  std::int64_t bytes[2] = {};
  for (bool const in_half : {false, true}) {
    SolverOptions options;
    options.preconditioner = PreconditionerKind::multigrid;
    options.multigrid.precision = in_half ? MultigridPrecision::half : MultigridPrecision::single;
    options.csr = [&] { return a; };
    HostVector<double> x(b.size());
    SolverResult const result = solve(*matrix, b, x, options);
    EXPECT_EQ(result.status, SolverStatus::converged);
    EXPECT_LT(result.residual_recursive, 1e-12);
    iterations[in_half] = result.iterations;
    bytes[in_half] = result.multigrid_levels.front().bytes;
  }
  EXPECT_LE(std::abs(iterations[1] - iterations[0]), 1);
  EXPECT_LT(static_cast<double>(bytes[1]), 0.9 * static_cast<double>(bytes[0]));
}

}  // namespace poisson::testing

#endif
