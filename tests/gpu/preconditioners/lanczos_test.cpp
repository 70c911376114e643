#include "gpu/preconditioners/lanczos.hpp"

#include "gpu/formats/csr.hpp"
#include "tests/gpu/arrays.hpp"
#include "tests/gpu/cases.hpp"
#include "tests/gpu/matrices.hpp"

#include <cmath>
#include <gtest/gtest.h>
#include <memory>
#include <vector>

namespace poisson::testing {

TEST(LargestOfTridiagonal, IsThatOfClosedForms) {
  std::vector<double> const one{3.5};
  EXPECT_EQ(largest_of_tridiagonal(one, {}), 3.5);
  EXPECT_NEAR(largest_of_tridiagonal(std::vector<double>{1, 1}, std::vector<double>{4}), 3, 1e-15 * 3);
  // Its leading block has the eigenvalue 2, where bisection looks.
  EXPECT_NEAR(largest_of_tridiagonal(std::vector<double>{1, 1, 0}, std::vector<double>{1, 4}), 2.9032119259115532, 4e-15)
      << "the largest root of t^3 - 2 t^2 - 4 t + 4";
  EXPECT_EQ(largest_of_tridiagonal(std::vector<double>{1, 5, 2}, std::vector<double>{0, 0}), 5);
  for (std::size_t n : {2U, 3U, 6U, 17U}) {
    std::vector<double> const diagonal(n, 2), squares(n - 1, 1);
    double const exact = 2 + 2 * std::cos(std::acos(-1.0) / static_cast<double>(n + 1));
    EXPECT_NEAR(largest_of_tridiagonal(diagonal, squares), exact, 4e-15) << n;
  }
}

template <class B>
class Lanczos : public OnBackend<B::value> {
protected:
  /// Estimates the largest eigenvalue of D^-1 A in V, from below. A has `bands` b_k beside its diagonal d, at the distances k = 1,
  /// 2, ...
  template <class V>
  double estimate(std::vector<double> const& diagonal, std::vector<double> const& bands) {
    auto const n = std::ssize(diagonal);
    Entries entries;
    for (std::int64_t i = 0; i < n; ++i) {
      entries[{i, i}] = diagonal[static_cast<std::size_t>(i)];
      for (std::int64_t k = 1; k <= std::ssize(bands); ++k)
        if (i >= k)
          entries[{i, i - k}] = entries[{i - k, i}] = bands[static_cast<std::size_t>(k - 1)];
    }
    return estimate_of<V>(to_csr(n, entries));
  }
  template <class V>
  double estimate_of(std::shared_ptr<CsrMatrix const> const& a) {
    MultigridLevel<V> level;
    level.own = std::make_unique<Csr>(a, *this->context);
    level.matrix = level.own.get();
    if constexpr (std::is_same_v<V, float>) {
      level.own = level.matrix->in_single();
      level.matrix = level.own.get();
    }
    level.diagonal = Array<V>(*this->context, level.n());
    static_cast<LinearOperator<V> const&>(*level.matrix).diagonal(level.diagonal.data());
    return largest_by_lanczos(level, pseudo_random_vector<V>(*this->context, level.n()));
  }
};
TYPED_TEST_SUITE(Lanczos, Backends, BackendNames);

TYPED_TEST(Lanczos, EstimatesFromBelow) {
  for (std::size_t n : {1U, 2U, 5U, 6U, 7U, 31U, 255U, 256U, 257U, 3000U}) {
    double const exact = 1 + std::cos(std::acos(-1.0) / static_cast<double>(n + 1));  // of D^-1 A
    std::vector<double> const diagonal(n, 2);
    for (double const found : {this->template estimate<double>(diagonal, {-1}), this->template estimate<float>(diagonal, {-1})}) {
      EXPECT_LE(found, exact * (1 + 1e-5)) << n;
      EXPECT_GE(found, (n <= 6 ? 1 - 1e-5 : 0.9) * exact) << n;  // six steps find all of six eigenvalues
    }
  }
}

TYPED_TEST(Lanczos, DoesNotDependOnScales) {
  std::vector<double> diagonal(500, 2);
  double const expected = this->template estimate<double>(diagonal, {-1, 0.25});
  for (double const scale : {1e-12, 1e12}) {
    std::vector<double> const scaled(500, 2 * scale);
    EXPECT_NEAR(this->template estimate<double>(scaled, {-scale, 0.25 * scale}), expected, 1e-12);
    EXPECT_NEAR(this->template estimate<float>(scaled, {-scale, 0.25 * scale}), expected, 1e-5);
  }
}

TYPED_TEST(Lanczos, EndsWhereNothingIsLeft) {
  // D^-1 A = I: the first step finds all there is.
  std::vector<double> diagonal(300);
  for (std::size_t i = 0; i < diagonal.size(); ++i)
    diagonal[i] = 1 + static_cast<double>(i % 7);
  EXPECT_NEAR(this->template estimate<double>(diagonal, {}), 1, 1e-12);
  EXPECT_NEAR(this->template estimate<float>(diagonal, {}), 1, 1e-5);
}

TYPED_TEST(Lanczos, FindsThatAMatrixIsNotPositive) {
  std::vector<double> const diagonal(100, 1);
  EXPECT_TRUE(std::isnan(this->template estimate<double>(diagonal, {-20}))) << "eigenvalues of both signs";
  EXPECT_TRUE(std::isnan(this->template estimate<double>(std::vector<double>(100, -1), {}))) << "a negative diagonal";
}

TYPED_TEST(Lanczos, TheSameBitsTwice) {
  std::vector<double> const diagonal(5000, 4);
  EXPECT_EQ(this->template estimate<float>(diagonal, {-1, -0.5}), this->template estimate<float>(diagonal, {-1, -0.5}));
}

}  // namespace poisson::testing
