#include "gpu/spectral/accuracy.hpp"
#include "gpu/spectral/orthonormal.hpp"

#include "gpu/core/array.hpp"
#include "tests/gpu/cases.hpp"

#include <cmath>
#include <random>
#include <utility>
#include <vector>

namespace poisson::testing {

namespace {

template <class B>
class SvdMeasures : public OnBackend<B::value> {};
TYPED_TEST_SUITE(SvdMeasures, Backends, BackendNames);

/// I - 2 x x^T / x.x without its columns from n on: orthonormal columns.
DenseMatrix orthonormal(std::int64_t m, std::int64_t n, double phase) {
  std::vector<double> x(static_cast<std::size_t>(m));
  double squared = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = std::sin(phase + static_cast<double>(i));
    squared += x[i] * x[i];
  }
  DenseMatrix q(m, n);
  for (std::int64_t j = 0; j < n; ++j)
    for (std::int64_t i = 0; i < m; ++i)
      q(i, j) = (i == j ? 1 : 0) - 2 * x[static_cast<std::size_t>(i)] * x[static_cast<std::size_t>(j)] / squared;
  return q;
}

struct KnownSvd {
  DenseMatrix a;
  Svd svd;
};

/// A matrix with values n, n - 1, ..., times `scale`, of which k are in the decomposition.
KnownSvd example(std::int64_t m, std::int64_t n, std::int64_t k, double scale) {
  std::int64_t const smaller = std::min(m, n);
  DenseMatrix const u = orthonormal(m, smaller, 0.3), v = orthonormal(n, smaller, 1.7);
  KnownSvd result{DenseMatrix(m, n), {}};
  for (std::int64_t j = 0; j < n; ++j)
    for (std::int64_t i = 0; i < m; ++i) {
      double sum = 0;
      for (std::int64_t l = 0; l < smaller; ++l)
        sum += u(i, l) * static_cast<double>(smaller - l) * v(j, l);
      result.a(i, j) = scale * sum;
    }
  result.svd.u = orthonormal(m, k, 0.3);
  result.svd.v = orthonormal(n, k, 1.7);
  for (std::int64_t l = 0; l < k; ++l)
    result.svd.values.push_back(scale * static_cast<double>(smaller - l));
  return result;
}

TYPED_TEST(SvdMeasures, AreSmallForTheTrueDecomposition) {
  struct Size {
    std::int64_t m, n, k;
  };
  for (Size const size : {Size{1, 1, 1}, {7, 5, 5}, {5, 7, 5}, {40, 30, 12}, {30, 620, 30}, {600, 530, 530}, {30, 620, 4}})
    for (double const scale : {1.0, 1e-300, 1e300 / 1e4}) {
      if (scale != 1 && size.k > 500)
        continue;
      KnownSvd const e = example(size.m, size.n, size.k, scale);
      SvdAccuracy const accuracy = svd_accuracy(*this->context, e.a, e.svd);
      double const bound = 1e-14 * std::sqrt(static_cast<double>(size.k));
      EXPECT_LE(accuracy.orthogonality_u, bound);
      EXPECT_LE(accuracy.orthogonality_v, bound);
      EXPECT_LE(accuracy.residual_relative, 2e-14);
      EXPECT_LE(accuracy.residual, 1e-13 * e.svd.values[0] * static_cast<double>(size.k));
    }
}

TYPED_TEST(SvdMeasures, SeeWhatIsWrong) {
  for (std::int64_t const k : {40, 11}) {
    KnownSvd const right = example(600, 40, k, 1);
    KnownSvd wrong = right;
    for (std::int64_t i = 0; i < 600; ++i)
      wrong.svd.u(i, 3) *= 1 + 1e-6;
    SvdAccuracy accuracy = svd_accuracy(*this->context, wrong.a, wrong.svd);
    EXPECT_NEAR(accuracy.orthogonality_u, 2e-6, 1e-9);  // one diagonal entry
    EXPECT_LE(accuracy.orthogonality_v, 1e-13);
    EXPECT_NEAR(accuracy.residual, 37e-6, 1e-9);
    wrong = right;
    wrong.svd.values[0] += 1e-3;
    accuracy = svd_accuracy(*this->context, wrong.a, wrong.svd);
    EXPECT_NEAR(accuracy.residual, 1e-3, 1e-9);
    EXPECT_NEAR(accuracy.residual_relative, 1e-3 / std::sqrt(40 * 41 * 81 / 6), 1e-9);
    EXPECT_NEAR(largest_value_error(wrong.svd.values, right.svd.values), 1e-3, 1e-14);
    wrong = right;
    for (std::int64_t i = 0; i < 40; ++i)
      std::swap(wrong.svd.v(i, 0), wrong.svd.v(i, 1));
    accuracy = svd_accuracy(*this->context, wrong.a, wrong.svd);
    EXPECT_LE(accuracy.orthogonality_v, 1e-13);
    EXPECT_GE(accuracy.residual, 1);
  }
}

TYPED_TEST(SvdMeasures, RefinedColumnsAreOrthonormal) {
  struct Size {
    std::int64_t m, k;
  };
  for (Size const size : {Size{1, 1}, {7, 3}, {600, 600}, {2100, 515}, {2050, 40}}) {
    DenseMatrix const exact = orthonormal(size.m, size.k, 0.3);
    DenseMatrix disturbed = exact;
    for (std::size_t i = 0; i < disturbed.values.size(); ++i)
      disturbed.values[i] += 1e-9 * std::sin(static_cast<double>(7 * i)) / std::sqrt(static_cast<double>(size.m));
    Array<double> x(*this->context, std::span<double const>(disturbed.values));
    refine_orthogonality(*this->context, size.m, size.k, x.data());
    DenseMatrix refined(size.m, size.k);
    x.download(refined.values);
    double furthest = 0;
    for (std::size_t i = 0; i < refined.values.size(); ++i)
      furthest = std::max(furthest, std::abs(refined.values[i] - exact.values[i]));
    EXPECT_LE(furthest, 1e-8 / std::sqrt(static_cast<double>(size.m)));
    // Measured by a decomposition of the columns themselves.
    Svd svd;
    svd.u = refined;
    svd.v = orthonormal(size.k, size.k, 1.7);
    svd.values.assign(static_cast<std::size_t>(size.k), 1.0);
    EXPECT_LE(svd_accuracy(*this->context, refined, svd).orthogonality_u, 2e-15 * std::sqrt(static_cast<double>(size.k)))
        << size.m << " x " << size.k;
  }
}

class SvdOnCuda : public OnBackend<Backend::cuda> {};

TEST_F(SvdOnCuda, LargeOnesAreAsOrthogonalAsLapacks) {
  // LAPACK's dgesdd: 1.1e-13 for n = 1000, uniform in [-0.5, 0.5].
  for (auto const& [m, n] : {std::pair{1100, 1100}, std::pair{2000, 1030}}) {
    DenseMatrix a(m, n);
    std::mt19937_64 engine(1);
    std::uniform_real_distribution<double> uniform(-0.5, 0.5);
    for (double& entry : a.values)
      entry = uniform(engine);
    for (std::int64_t const leading : {0, 200}) {
      SvdAccuracy const accuracy = svd_accuracy(*context, a, svd(a, {true, leading, 0}, *context));
      EXPECT_LE(accuracy.orthogonality_u, 1.2e-13);
      EXPECT_LE(accuracy.orthogonality_v, 1.2e-13);
      EXPECT_LE(accuracy.residual_relative, 1e-14);
    }
  }
}

TYPED_TEST(SvdMeasures, ZeroMatrix) {
  KnownSvd e = example(4, 3, 3, 1);
  std::fill(e.a.values.begin(), e.a.values.end(), 0.0);
  std::fill(e.svd.values.begin(), e.svd.values.end(), 0.0);
  SvdAccuracy const accuracy = svd_accuracy(*this->context, e.a, e.svd);
  EXPECT_EQ(accuracy.residual, 0);
  EXPECT_EQ(accuracy.residual_relative, 0);
}

}  // namespace

}  // namespace poisson::testing
