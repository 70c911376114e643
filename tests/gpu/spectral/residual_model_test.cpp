/// Errors of reduced models from residuals, against errors of systems that are solved.
#include "gpu/spectral/residual_model.hpp"

#include "gpu/core/error.hpp"
#include "gpu/kernels/backends.hpp"

#include <cmath>
#include <gtest/gtest.h>
#include <memory>

namespace poisson {
namespace {

/// -(k u')' = 1 + shift sin(3 x) on (0, 1), with k = k1 on the left and k2 on the right, and u = 0 at both ends.
struct TwoLayers {
  CsrMatrix a;
  std::vector<double> b;

  TwoLayers(std::size_t n, double k1, double k2, double shift) {
    double const h = 1 / static_cast<double>(n + 1);
    a.n_rows = a.n_columns = static_cast<std::int64_t>(n);
    a.row_ptr.push_back(0);
    auto const k = [&](std::size_t cell) { return (cell < n / 2 ? k1 : k2) / h; };  // cell i lies left of node i
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = i > 0 ? i - 1 : 0; j <= std::min(i + 1, n - 1); ++j) {
        a.columns.push_back(static_cast<std::int32_t>(j));
        a.values.push_back(i == j ? k(i) + k(i + 1) : -k(std::max(i, j)));
      }
      a.row_ptr.push_back(static_cast<std::int64_t>(a.columns.size()));
      b.push_back(h * (1 + shift * std::sin(3 * h * static_cast<double>(i + 1))));
    }
  }

  [[nodiscard]] double at(std::size_t i, std::size_t j) const {
    for (auto e = static_cast<std::size_t>(a.row_ptr[i]); e < static_cast<std::size_t>(a.row_ptr[i + 1]); ++e)
      if (a.columns[e] == static_cast<std::int32_t>(j))
        return a.values[e];
    return 0;
  }

  /// Thomas' algorithm.
  [[nodiscard]] std::vector<double> solution() const {
    std::size_t const n = b.size();
    std::vector<double> d(n), x = b;
    for (std::size_t i = 0; i < n; ++i) {
      d[i] = at(i, i);
      if (i > 0) {
        d[i] -= at(i, i - 1) / d[i - 1] * at(i - 1, i);
        x[i] -= at(i, i - 1) / d[i - 1] * x[i - 1];
      }
    }
    for (std::size_t i = n; i-- > 0;)
      x[i] = (x[i] - (i + 1 < n ? at(i, i + 1) * x[i + 1] : 0)) / d[i];
    return x;
  }

  [[nodiscard]] double energy(std::vector<double> const& x) const {
    double sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i)
      for (std::size_t j = i > 0 ? i - 1 : 0; j <= std::min(i + 1, x.size() - 1); ++j)
        sum += x[i] * at(i, j) * x[j];
    return std::sqrt(sum);
  }
};

struct Errors {
  double estimate, error;  ///< relative ones of Galerkin's solution
};
Errors errors_of(ResidualModelMaker const& maker, SystemWeights const& weights, TwoLayers const& system,
                 std::vector<std::vector<double>> const& modes) {
  auto const c = solve_leading(maker.model().system(weights), modes.size());
  auto const u = system.solution();
  std::vector<double> e = u;
  for (std::size_t k = 0; k < modes.size(); ++k)
    for (std::size_t i = 0; i < e.size(); ++i)
      e[i] -= c[k] * modes[k][i];
  auto const estimate = maker.model().estimate(weights, c);
  EXPECT_NEAR(std::sqrt(std::abs(maker.squared_energy(weights, u))), system.energy(u), 1e-7 * system.energy(u));
  return {estimate.relative(), system.energy(e) / system.energy(u)};
}

class ResidualModelOfSize : public ::testing::TestWithParam<std::size_t> {};

TEST_P(ResidualModelOfSize, EstimatesAreNearTheErrors) {
  auto const host = make_context(Backend::cpu);
  std::size_t const n = GetParam();
  ResidualModelMaker maker(std::make_shared<CsrMatrix const>(TwoLayers(n, 1, 1, 0).a), false, 1e-10, 1e-11, *host);
  std::vector<TwoLayers> systems;
  std::vector<SystemWeights> weights;
  for (double const k2 : {0.01, 0.1, 1.0, 7.0, 100.0})
    for (double const shift : {0.0, 1.0, 2.0}) {
      systems.emplace_back(n, 1, k2, shift);
      weights.push_back(maker.add(systems.back().a, systems.back().b));
    }
  EXPECT_EQ(maker.n_terms(), 2U);
  EXPECT_EQ(weights.back().rhs.size(), 2U);
  std::vector<std::vector<double>> modes;
  int checked = 0;
  for (std::size_t const solved : {std::size_t{0}, std::size_t{7}}) {
    modes.push_back(systems[solved].solution());
    maker.add_mode(modes.back());
    for (std::size_t i = 0; i < systems.size(); ++i) {
      auto const [estimate, error] = errors_of(maker, weights[i], systems[i], modes);
      if (error > 1e-7) {  // the cycle is of k2 = 1, and the first three have 0.01
        EXPECT_GT(estimate, (i < 3 ? 0.2 : 0.9) * error) << i << " of " << modes.size();
        ++checked;
      }
      EXPECT_LT(estimate, 1.001 * error + 1e-8) << i << " of " << modes.size();
    }
  }
  EXPECT_GT(checked, 20);
  // Coefficients that are not Galerkin's have an error of their own: here x = 0.
  std::vector<double> const none(modes.size(), 0.0);
  auto const of_none = maker.model().estimate(weights[8], none);
  EXPECT_NEAR(of_none.relative(), 1, 1e-12);
  EXPECT_NEAR(of_none.error, systems[8].energy(systems[8].solution()), 0.01 * of_none.error);
}

TEST_P(ResidualModelOfSize, ErrorsThatAreRoundingAreSmall) {
  auto const host = make_context(Backend::cpu);
  std::size_t const n = GetParam();
  ResidualModelMaker maker(std::make_shared<CsrMatrix const>(TwoLayers(n, 1, 1, 0).a), false, 1e-10, 1e-11, *host);
  std::vector<TwoLayers> systems;
  std::vector<SystemWeights> weights;
  for (double const k2 : {0.1, 0.5, 1.0, 3.0, 10.0}) {
    systems.emplace_back(n, 1, k2, 0);
    weights.push_back(maker.add(systems.back().a, systems.back().b));
  }
  // u is a sum of three functions, whose factors depend on k2.
  std::vector<std::vector<double>> modes;
  for (std::size_t const solved : {std::size_t{0}, std::size_t{4}, std::size_t{2}}) {
    modes.push_back(systems[solved].solution());
    maker.add_mode(modes.back());
  }
  for (std::size_t i = 0; i < systems.size(); ++i) {
    auto const [estimate, error] = errors_of(maker, weights[i], systems[i], modes);
    EXPECT_LT(error, 1e-8);
    EXPECT_LT(estimate, 1e-8);
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, ResidualModelOfSize, ::testing::Values(60, 2000));  // the cycle is the inverse; it has levels

TEST(ResidualModel, OtherPlacesOfEntriesAreRefused) {
  auto const host = make_context(Backend::cpu);
  ResidualModelMaker maker(std::make_shared<CsrMatrix const>(TwoLayers(10, 1, 1, 0).a), false, 1e-10, 1e-11, *host);
  TwoLayers const other(11, 1, 1, 0);
  EXPECT_THROW(static_cast<void>(maker.add(other.a, other.b)), InputError);
}

}  // namespace
}  // namespace poisson
