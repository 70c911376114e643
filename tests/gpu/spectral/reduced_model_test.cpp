/// Proper orthogonal decomposition and Galerkin's equations in its modes.
#include "gpu/spectral/reduced_model.hpp"

#include "gpu/formats/matrix.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/spectral/random_matrix.hpp"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <memory>

namespace poisson {
namespace {

TEST(ReducedModel, SmallSystems) {
  // needs a swap of rows
  auto const x = solve_small({0, 2, 1, 1, 0, 0, 0, 1, 1}, {7, 1, 5});
  EXPECT_NEAR(x[0], 1, 1e-15);
  EXPECT_NEAR(x[1], 2, 1e-15);
  EXPECT_NEAR(x[2], 3, 1e-15);
  EXPECT_TRUE(std::isnan(solve_small({1, 1, 1, 1}, {1, 2})[1]));
}

/// The matrix with `diagonal` on the diagonal and -1 beside it.
std::unique_ptr<Matrix> tridiagonal(std::vector<double> const& diagonal, Context& host) {
  CsrMatrix a;
  auto const n = static_cast<std::int64_t>(diagonal.size());
  a.n_rows = a.n_columns = n;
  a.row_ptr.push_back(0);
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = std::max<std::int64_t>(i - 1, 0); j <= std::min(i + 1, n - 1); ++j) {
      a.columns.push_back(static_cast<std::int32_t>(j));
      a.values.push_back(i == j ? diagonal[static_cast<std::size_t>(i)] : -1);
    }
    a.row_ptr.push_back(static_cast<std::int64_t>(a.columns.size()));
  }
  return make_matrix(Format::csr, std::make_shared<CsrMatrix const>(std::move(a)), host);
}

std::vector<double> weights_for(std::int64_t n) {
  std::vector<double> weights;
  for (std::int64_t i = 0; i < n; ++i)
    weights.push_back(1 + 0.5 * static_cast<double>(i % 3));
  return weights;
}

TEST(ReducedModel, ModesAreOrthonormalAndHoldTheSnapshots) {
  auto const host = make_context(Backend::cpu);
  constexpr std::int64_t n = 40;
  auto const w = weights_for(n);
  // Five snapshots in the span of two vectors.
  DenseMatrix const basis = random_matrix(n, 2, 3), mix = random_matrix(2, 5, 4);
  DenseMatrix x(n, 5);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < 5; ++j)
      x(i, j) = basis(i, 0) * mix(0, j) + basis(i, 1) * mix(1, j);
  auto const pod = proper_orthogonal_decomposition(x, w, 4, *host);
  EXPECT_EQ(pod.spectrum.rank, 2);
  ASSERT_EQ(pod.modes.n_columns, 2);
  for (std::int64_t k = 0; k < 2; ++k)
    for (std::int64_t l = 0; l < 2; ++l) {
      double sum = 0;
      for (std::int64_t i = 0; i < n; ++i)
        sum += w[static_cast<std::size_t>(i)] * pod.modes(i, k) * pod.modes(i, l);
      EXPECT_NEAR(sum, k == l, 1e-13);
    }
  for (std::int64_t j = 0; j < 5; ++j) {
    std::span<double const> const u(x.column(j), n);
    auto const c = coordinates(pod.modes, w, u);
    EXPECT_LT(weighted_norm(w, remainder(u, pod.modes, c)), 1e-13);
    EXPECT_GT(weighted_norm(w, remainder(u, pod.modes, std::span(c).first(1))), 1e-6);
    for (std::size_t k = 0; k < 2; ++k)
      EXPECT_NEAR(c[k], pod.svd.values[k] * pod.svd.v(j, static_cast<std::int64_t>(k)), 1e-13);
  }
  EXPECT_EQ(proper_orthogonal_decomposition(x, w, 1, *host).modes.n_columns, 1);
}

TEST(ReducedModel, ASolutionInTheSpanOfTheModesIsFound) {
  auto const host = make_context(Backend::cpu);
  constexpr std::int64_t n = 30;
  auto const a = tridiagonal(std::vector<double>(n, 3.0), *host);
  auto const w = weights_for(n);
  auto const pod = proper_orthogonal_decomposition(random_matrix(n, 3, 5), w, 3, *host);
  std::vector<double> const expected{2, -1, 0.5};
  std::vector<double> x(n, 0.0), b(n);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t k = 0; k < 3; ++k)
      x[static_cast<std::size_t>(i)] += expected[static_cast<std::size_t>(k)] * pod.modes(i, k);
  a->product(1, x.data(), 0, b.data());
  ReducedSystem const reduced = project(*a, b, pod.modes, *host);
  auto const found = solve_leading(reduced, 3);
  for (std::size_t k = 0; k < 3; ++k)
    EXPECT_NEAR(found[k], expected[k], 1e-12);
  EXPECT_EQ(reduced.a[1], reduced.a[3]);
  // With one mode v the solution is (v . b) / (v . A v).
  EXPECT_NEAR(solve_leading(reduced, 1)[0], reduced.b[0] / reduced.a[0], 1e-14);
}

TEST(ReducedModel, OperatorsAffineInAParameterAreInterpolatedExactly) {
  auto const host = make_context(Backend::cpu);
  constexpr std::int64_t n = 20;
  auto const matrix = [&](double mu) { return tridiagonal(std::vector<double>(n, 2 + mu), *host); };
  auto const pod = proper_orthogonal_decomposition(random_matrix(n, 3, 6), weights_for(n), 3, *host);
  DenseMatrix points(4, 1);
  std::vector<ReducedSystem> systems;
  for (std::int64_t i = 0; i < 4; ++i) {
    points(i, 0) = 1 + static_cast<double>(i * i);
    std::vector<double> const rhs(n, points(i, 0));
    systems.push_back(project(*matrix(points(i, 0)), rhs, pod.modes, *host));
  }
  std::vector<double> const target{6.5};
  PolynomialFit const fit = fit_systems(systems, points, target, *host);
  EXPECT_EQ(fit.degree, 1);
  ReducedSystem const interpolated = combine(systems, fit.weights);
  ReducedSystem const expected = project(*matrix(6.5), std::vector<double>(n, 6.5), pod.modes, *host);
  for (std::size_t e = 0; e < 9; ++e)
    EXPECT_NEAR(interpolated.a[e], expected.a[e], 1e-12);
  for (std::size_t e = 0; e < 3; ++e)
    EXPECT_NEAR(interpolated.b[e], expected.b[e], 1e-12);

  // Quadratic in the parameter: a higher degree is found.
  for (std::size_t i = 0; i < 4; ++i)
    systems[i].a[0] += points(static_cast<std::int64_t>(i), 0) * points(static_cast<std::int64_t>(i), 0);
  EXPECT_EQ(fit_systems(systems, points, target, *host).degree, 2);
}

}  // namespace
}  // namespace poisson
