#include "gpu/spectral/svd.hpp"

#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"
#include "gpu/kernels/backends.hpp"
#include "tests/gpu/svd_support.hpp"

#include <cmath>
#include <limits>
#include <utility>

namespace poisson::testing {
namespace {

constexpr double rounding = 2.3e-16;

template <class B>
class SvdWhole : public OnBackend<B::value> {
protected:
  /// Orthogonality, residual and values no worse than twice LAPACK's, up to what a few rounding errors make of small matrices.
  void expect_as_good_as_lapack(DenseMatrix const& a, SvdOptions const& options, std::string const& what) {
    SCOPED_TRACE(what + ", " + std::to_string(a.n_rows) + " x " + std::to_string(a.n_columns) + ", band " +
                 std::to_string(options.band_width));
    Svd const reference = lapack_of(a), result = svd(a, options, *this->context);
    std::int64_t const k = std::min(a.n_rows, a.n_columns);
    ASSERT_EQ(static_cast<std::int64_t>(result.values.size()), k);
    double const norm = reference.values[0], floor = 4 * rounding * std::sqrt(static_cast<double>(std::max(a.n_rows, a.n_columns)));
    for (std::size_t i = 0; i < result.values.size(); ++i) {
      ASSERT_GE(result.values[i], 0);
      ASSERT_TRUE(i == 0 || result.values[i] <= result.values[i - 1]);
    }
    EXPECT_LE(largest_difference(result.values, reference.values), 4 * floor * norm);
    if (!options.vectors) {
      EXPECT_EQ(result.u.values.size() + result.v.values.size(), 0u);
      return;
    }
    ASSERT_TRUE(result.u.n_rows == a.n_rows && result.u.n_columns == k && result.v.n_rows == a.n_columns &&
                result.v.n_columns == k);
    double const root = std::sqrt(static_cast<double>(k));
    EXPECT_LE(distance_from_orthogonal(result.u), 2 * distance_from_orthogonal(reference.u) + floor * root);
    EXPECT_LE(distance_from_orthogonal(result.v), 2 * distance_from_orthogonal(reference.v) + floor * root);
    EXPECT_LE(residual(a, result), 2 * residual(a, reference) + floor * root * norm);
  }
};
TYPED_TEST_SUITE(SvdWhole, Backends, BackendNames);

DenseMatrix kahan(std::int64_t n) {
  DenseMatrix a = zeros(n, n);
  double const s = std::sin(1.2), c = std::cos(1.2);
  for (std::int64_t i = 0; i < n; ++i) {
    a(i, i) = std::pow(s, static_cast<double>(i));
    for (std::int64_t j = i + 1; j < n; ++j)
      a(i, j) = -c * std::pow(s, static_cast<double>(i));
  }
  return a;
}

DenseMatrix scaled(DenseMatrix a, double factor) {
  for (double& value : a.values)
    value *= factor;
  return a;
}

TYPED_TEST(SvdWhole, AllShapes) {
  for (auto const& [m, n] : std::initializer_list<std::pair<int, int>>{{1, 1},
                                                                       {2, 2},
                                                                       {3, 3},
                                                                       {1, 5},
                                                                       {5, 1},
                                                                       {2, 3},
                                                                       {4, 3},
                                                                       {31, 31},
                                                                       {33, 33},
                                                                       {34, 34},
                                                                       {65, 65},
                                                                       {66, 64},
                                                                       {64, 66},
                                                                       {100, 100},
                                                                       {200, 70},
                                                                       {70, 200},
                                                                       {300, 300}})
    for (int const band : {0, 1, 16, 1000})
      for (bool const vectors : {true, false})
        this->expect_as_good_as_lapack(uniform(m, n, 11), {vectors, 0, band}, "uniform");
}

TYPED_TEST(SvdWhole, AllKinds) {
  for (int const n : {2, 3, 50, 130}) {
    DenseMatrix graded = uniform(n, n, 12), repeated = identity(n, n), spike = zeros(n, n);
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t i = 0; i < n; ++i)
        graded(i, j) *= std::pow(10.0, -0.2 * static_cast<double>(i + j));
    spike(n - 1, 0) = -3;
    DenseMatrix const deficient = uniform(n, n / 2, 13) * uniform(n / 2, n, 14);
    for (int const band : {0, 8}) {
      SvdOptions const options{true, 0, band};
      this->expect_as_good_as_lapack(zeros(n, n), options, "zero");
      this->expect_as_good_as_lapack(uniform(n, 1, 15) * uniform(1, n, 16), options, "rank one");
      this->expect_as_good_as_lapack(deficient, options, "half the rank");
      this->expect_as_good_as_lapack(repeated, options, "identity");
      this->expect_as_good_as_lapack(lapack_of(uniform(n, n, 17)).u, options, "orthogonal");
      this->expect_as_good_as_lapack(graded, options, "graded");
      this->expect_as_good_as_lapack(kahan(n), options, "Kahan");
      this->expect_as_good_as_lapack(spike, options, "one entry");
    }
  }
}

TYPED_TEST(SvdWhole, ScalesDoNotMatter) {
  DenseMatrix const a = uniform(70, 70, 18);
  HostVector<double> const values = svd(a, {}, *this->context).values;
  for (int const exponent : {-1000, -90, 90, 1000}) {
    Svd const result = svd(scaled(a, std::ldexp(1.0, exponent)), {}, *this->context);
    for (std::size_t i = 0; i < values.size(); ++i)
      EXPECT_NEAR(std::ldexp(result.values[i], -exponent), values[i], 1e-14);
    EXPECT_LT(distance_from_orthogonal(result.u) + distance_from_orthogonal(result.v), 1e-12);
  }
  Svd const denormal = svd(scaled(a, 1e-310), {}, *this->context);
  EXPECT_NEAR(denormal.values[0] / 1e-310, values[0], 1e-10);
  EXPECT_LT(distance_from_orthogonal(denormal.u) + distance_from_orthogonal(denormal.v), 1e-12);
}

TYPED_TEST(SvdWhole, LeadingOnes) {
  for (auto const& [m, n] : std::initializer_list<std::pair<int, int>>{{90, 90}, {120, 60}, {60, 120}}) {
    DenseMatrix const a = uniform(m, n, 19);
    Svd const all = svd(a, {}, *this->context);
    for (int const k : {1, 7, 60, 500}) {
      Svd const some = svd(a, {true, k, 0}, *this->context), only_values = svd(a, {false, k, 0}, *this->context);
      std::int64_t const kept = std::min({m, n, k});
      ASSERT_EQ(static_cast<std::int64_t>(some.values.size()), kept);
      ASSERT_EQ(only_values.values.size(), some.values.size());
      ASSERT_EQ(some.u.n_columns, kept);
      ASSERT_EQ(some.v.n_columns, kept);
      for (std::int64_t j = 0; j < kept; ++j) {
        EXPECT_NEAR(some.values[static_cast<std::size_t>(j)], all.values[static_cast<std::size_t>(j)], 1e-13);
        EXPECT_NEAR(only_values.values[static_cast<std::size_t>(j)], all.values[static_cast<std::size_t>(j)], 1e-13);
      }
      EXPECT_LT(distance_from_orthogonal(some.u) + distance_from_orthogonal(some.v), 1e-12);
      DenseMatrix const av = a * some.v;
      for (std::int64_t j = 0; j < kept; ++j)
        for (std::int64_t i = 0; i < m; ++i)
          ASSERT_NEAR(av(i, j), some.u(i, j) * some.values[static_cast<std::size_t>(j)], 1e-12);
    }
  }
}

TYPED_TEST(SvdWhole, SameBitsTwice) {
  DenseMatrix const a = uniform(150, 150, 20);
  Svd const first = svd(a, {}, *this->context), second = svd(a, {}, *this->context);
  EXPECT_EQ(first.values, second.values);
  EXPECT_EQ(first.u.values, second.u.values);
  EXPECT_EQ(first.v.values, second.v.values);
}

TYPED_TEST(SvdWhole, RefusesWhatIsNotFiniteByItsPlace) {
  DenseMatrix a = uniform(3, 4, 21);
  a(2, 1) = std::numeric_limits<double>::quiet_NaN();
  try {
    static_cast<void>(svd(a, {}, *this->context));
    FAIL();
  } catch (InputError const& error) {
    expect_contains(error.what(), {"NaN", "row 3", "column 2"});
  }
  a(2, 1) = 0;
  a(0, 3) = -std::numeric_limits<double>::infinity();
  try {
    static_cast<void>(svd(a, {}, *this->context));
    FAIL();
  } catch (InputError const& error) {
    expect_contains(error.what(), {"infinity", "row 1", "column 4"});
  }
  EXPECT_THROW(static_cast<void>(svd(DenseMatrix(), {}, *this->context)), InputError);
  EXPECT_THROW(static_cast<void>(svd(uniform(2, 2, 1), {true, -1, 0}, *this->context)), InputError);
  EXPECT_THROW(static_cast<void>(svd(uniform(2, 2, 1), {true, 0, -1}, *this->context)), InputError);
}

TYPED_TEST(SvdWhole, StopsWhenAsked) {
  DenseMatrix const a = uniform(500, 500, 23);
  HostVector<double> const values = svd(a, {}, *this->context).values;
  std::int64_t const used = this->context->memory_used();
  // It is stopped at the first poll, the second, the fourth ... until the SVD is done before so many polls.
  int stopped = 0;
  for (std::int64_t polls = 1;; polls *= 2) {
    detail::polls_until_interrupt = polls;
    try {
      EXPECT_EQ(svd(a, {}, *this->context).values, values);
      break;
    } catch (Interrupted const&) {
      ++stopped;
    }
    clear_interrupt();
    EXPECT_EQ(this->context->memory_used(), used);
  }
  detail::polls_until_interrupt = 0;
  clear_interrupt();
  EXPECT_GT(stopped, 3);
  EXPECT_EQ(svd(a, {}, *this->context).values, values);
}

class SvdOverlap : public OnBackend<Backend::cuda> {};

/// V is large enough to travel while the device works on U.
TEST_F(SvdOverlap, ChangesNoBit) {
  DenseMatrix const a = uniform(3000, 3100, 24);
  Svd const with = svd(a, {true, 0, 0, true}, *context), without = svd(a, {true, 0, 0, false}, *context);
  EXPECT_EQ(with.values, without.values);
  EXPECT_EQ(with.u.values, without.u.values);
  EXPECT_EQ(with.v.values, without.v.values);
}

class SvdMemory : public OnBackend<Backend::cuda> {};

TEST_F(SvdMemory, StaysWithinWhatItAnnounces) {
  for (auto const& [m, n] :
       std::initializer_list<std::pair<int, int>>{{700, 700}, {1000, 700}, {1500, 400}, {400, 1500}, {20000, 50}})
    for (SvdOptions const options : {SvdOptions{true, 0, 0}, SvdOptions{false, 0, 0}, SvdOptions{true, 20, 0}}) {
      auto const fresh = make_context(Backend::cuda);
      std::int64_t const before = fresh->memory_used();
      static_cast<void>(svd(uniform(m, n, 22), options, *fresh));
      std::int64_t const announced = svd_bytes(*fresh, m, n, options);
      EXPECT_LE(fresh->memory_peak() - before, announced + (1 << 20));
      EXPECT_GE(fresh->memory_peak() - before, announced / 2) << "announces far more than it takes";
    }
}

}  // namespace
}  // namespace poisson::testing
