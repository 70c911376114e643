#include "gpu/kernels/backends.hpp"
#include "gpu/spectral/bidiagonal.hpp"

#include "tests/gpu/cases.hpp"

#include "gpu/kernels/blas.hpp"
#include "gpu/kernels/cpu/lapack.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <tuple>
#include <vector>

namespace poisson::testing {

namespace {

constexpr double epsilon = std::numeric_limits<double>::epsilon();

template <class B>
class Bidiagonal : public OnBackend<B::value> {};
TYPED_TEST_SUITE(Bidiagonal, Backends, BackendNames);

struct Input {
  std::string name;
  std::vector<double> d, e;
  [[nodiscard]] std::size_t n() const { return d.size(); }
};

Input random_bidiagonal(std::size_t n, unsigned seed) {
  std::mt19937_64 engine(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  Input input{"random", std::vector<double>(n), std::vector<double>(n - 1)};
  for (double& x : input.d)
    x = uniform(engine);
  for (double& x : input.e)
    x = uniform(engine);
  return input;
}

Input made(std::string name, std::size_t n, std::function<double(double)> const& d, std::function<double(double)> const& e) {
  Input input{std::move(name), std::vector<double>(n), std::vector<double>(n - 1)};
  for (std::size_t i = 0; i < n; ++i)
    input.d[i] = d(static_cast<double>(i));
  for (std::size_t i = 0; i + 1 < n; ++i)
    input.e[i] = e(static_cast<double>(i));
  return input;
}

/// Every kind that has troubled a bidiagonal SVD somewhere.
std::vector<Input> inputs(std::size_t n) {
  auto const constant = [](double c) { return [c](double) { return c; }; };
  std::vector<Input> all{random_bidiagonal(n, 1)};
  all.push_back(made("zero", n, constant(0), constant(0)));
  all.push_back(made("identity", n, constant(1), constant(0)));
  all.push_back(made(
      "diagonal", n, [](double i) { return std::cos(i); }, constant(0)));
  all.push_back(made("second difference", n, constant(1), constant(-1)));
  all.push_back(made("one cluster", n, constant(1), constant(1e-9)));
  all.push_back(made("zero diagonal", n, constant(0), [](double i) { return 1 + std::sin(i); }));
  all.push_back(made(
      "rank one", n, [](double i) { return i == 0 ? 3.0 : 0.0; }, [](double i) { return i == 0 ? 4.0 : 0.0; }));
  all.push_back(made(
      "graded", n, [](double i) { return std::pow(0.8, i); }, [](double i) { return std::pow(0.8, i); }));
  all.push_back(made(
      "graded upwards", n, [n](double i) { return std::pow(0.8, static_cast<double>(n) - i); },
      [n](double i) { return std::pow(0.8, static_cast<double>(n) - i); }));
  all.push_back(made(
      "steep", n, [n](double i) { return std::pow(10.0, -140 * i / static_cast<double>(n)); },
      [n](double i) { return std::pow(10.0, -140 * (i + 0.3) / static_cast<double>(n)); }));
  // Bidiagonal factor of Wilkinson's matrix glued from copies: pairs of values that agree to many digits.
  all.push_back(made(
      "glued Wilkinson", n, [](double i) { return 1 + std::abs(std::fmod(i, 21) - 10); },
      [](double i) { return std::fmod(i, 21) == 20 ? 1e-8 : 1.0; }));
  all.push_back(made(
      "Kahan", n, [](double i) { return std::pow(std::sin(1.2), i); },
      [](double i) { return -std::cos(1.2) * std::pow(std::sin(1.2), i); }));
  Input holes = random_bidiagonal(n, 2);
  holes.name = "holes";
  for (std::size_t i = 0; i < n; i += 7)
    holes.d[i] = 0;
  for (std::size_t i = 3; i + 1 < n; i += 5)
    holes.e[i] = 0;
  all.push_back(holes);
  Input spread = random_bidiagonal(n, 3);
  spread.name = "spread over exponents";
  for (std::size_t i = 0; i < n; ++i)
    spread.d[i] *= std::pow(10.0, -20 * std::abs(std::sin(static_cast<double>(3 * i))));
  all.push_back(spread);
  for (double const scale : {1e-300, 1e300}) {
    Input scaled = random_bidiagonal(n, 4);
    scaled.name = scale < 1 ? "tiny entries" : "huge entries";
    for (std::vector<double>* const x : {&scaled.d, &scaled.e})
      for (double& value : *x)
        value *= scale;
    all.push_back(scaled);
  }
  return all;
}

/// Returns the singular values of LAPACK's dqds, which keeps relative accuracy.
std::vector<double> reference_values(Input const& input) {
  std::vector<double> d = input.d, e = input.e, work(4 * d.size());
  e.push_back(0);
  int const n = static_cast<int>(d.size());
  int info = 0;
  lapack().dlasq1(&n, d.data(), e.data(), work.data(), &info);
  EXPECT_EQ(info, 0);
  return d;
}

struct Defects {
  double u = 0, v = 0, residual = 0;  ///< largest entries of I - U^T U, I - V^T V, and of U^T B V - S relative to S's largest
};

Defects defects(Input const& input, std::vector<double> const& values, std::vector<double> const& u, std::vector<double> const& v) {
  std::size_t const n = input.n(), k = values.size();
  Defects result;
  double const largest = std::max(values[0], std::numeric_limits<double>::min());
  std::vector<double> bv(n);
  for (std::size_t j = 0; j < k; ++j) {
    // Scaled, so that sums neither overflow nor vanish.
    for (std::size_t i = 0; i < n; ++i)
      bv[i] = input.d[i] / largest * v[i + j * n] + (i + 1 < n ? input.e[i] / largest * v[i + 1 + j * n] : 0);
    for (std::size_t i = 0; i < n; ++i)
      result.residual = std::max(result.residual, std::abs(bv[i] - values[j] / largest * u[i + j * n]));
  }
  auto const host = make_context(Backend::cpu);
  auto const size = static_cast<std::int64_t>(n), columns = static_cast<std::int64_t>(k);
  std::vector<double> product(k * k);
  for (auto const& [x, defect] : {std::tie(u, result.u), std::tie(v, result.v)}) {
    gemm(*host, true, false, columns, columns, size, 1, x.data(), size, x.data(), size, 0, product.data(), columns);
    for (std::size_t j = 0; j < k * k; ++j)
      defect = std::max(defect, std::abs(product[j] - (j % (k + 1) == 0 ? 1 : 0)));
  }
  return result;
}

std::vector<double> on_host(Array<double> const& array) {
  std::vector<double> host(static_cast<std::size_t>(array.size()));
  array.download(host);
  return host;
}

/// These are sizes of leaves (40 rows), of merges, of warps and blocks, and their neighbours.
constexpr std::size_t sizes_around_parts[] = {1, 2, 3, 5, 31, 32, 33, 40, 41, 42, 63, 81, 82, 100, 129, 163, 164, 257, 400};

/// Relative errors where LAPACK keeps them too; what is smaller some of its builds round to 0.
void expect_close(Input const& input, HostVector<double> const& values, std::vector<double> const& expected) {
  double const relative = 4 * epsilon * static_cast<double>(input.n());
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_NEAR(values[i], expected[i], std::max(relative * expected[i], 1e-120 * expected[0]))
        << input.name << ", n = " << input.n() << ", value " << i << " of " << values.size();
}

/// The product of all values is that of the diagonal: small values count as much as large ones.
void expect_product(Input const& input, HostVector<double> const& values) {
  double sum = 0, expected = 0;
  for (std::size_t i = 0; i < input.n(); ++i) {
    sum += std::log(values[i] / values[0]);
    expected += std::log(std::abs(input.d[i]) / values[0]);
  }
  if (values.back() > 1e-280 * values[0] && values.back() > 2 * std::numeric_limits<double>::min()) {
    EXPECT_NEAR(sum, expected, 1e-15 * static_cast<double>(input.n()) * (700 + static_cast<double>(input.n())))
        << input.name << ", n = " << input.n();
  }
}

TYPED_TEST(Bidiagonal, ValuesAgainstLapack) {
  for (std::size_t const n : sizes_around_parts)
    for (Input const& input : inputs(n)) {
      std::vector<double> const expected = reference_values(input);
      HostVector<double> const values = bidiagonal_values(*this->context, input.d, input.e);
      ASSERT_EQ(values.size(), n);
      ASSERT_TRUE(std::is_sorted(values.begin(), values.end(), std::greater<>()));
      expect_close(input, values, expected);
      expect_product(input, values);
      auto const leading = static_cast<std::int64_t>(n / 3 + 1);
      HostVector<double> const first = bidiagonal_values(*this->context, input.d, input.e, leading);
      ASSERT_EQ(std::ssize(first), std::min<std::int64_t>(leading, std::ssize(values)));
      expect_close(input, first, expected);
    }
}

TYPED_TEST(Bidiagonal, VectorsAreOrthogonalAndGiveTheMatrix) {
  for (std::size_t const n : sizes_around_parts)
    for (Input const& input : inputs(n)) {
      std::vector<double> const expected = reference_values(input);
      BidiagonalSvd const result = bidiagonal_svd(*this->context, input.d, input.e);
      std::vector<double> const values(result.values.begin(), result.values.end()), u = on_host(result.u), v = on_host(result.v);
      ASSERT_EQ(values.size(), n);
      ASSERT_EQ(u.size(), n * n);
      ASSERT_EQ(v.size(), n * n);
      double const bound = 3 * epsilon * (20 + std::sqrt(static_cast<double>(n)));
      Defects const found = defects(input, values, u, v);
      EXPECT_TRUE(found.u <= bound && found.v <= bound && found.residual <= bound)
          << input.name << ", n = " << n << ": " << found.u << ' ' << found.v << ' ' << found.residual;
      for (std::size_t i = 0; i < n; ++i) {
        ASSERT_GE(values[i], 0);
        if (i > 0) {
          ASSERT_LE(values[i], values[i - 1]);
        }
        ASSERT_NEAR(values[i], expected[i], bound * expected[0]) << input.name << ", n = " << n << ", value " << i;
      }
    }
}

TYPED_TEST(Bidiagonal, LeadingVectorsAreTheFirstOfAll) {
  for (std::size_t const n : {30UL, 100UL, 257UL})
    for (Input const& input : inputs(n)) {
      BidiagonalSvd const all = bidiagonal_svd(*this->context, input.d, input.e);
      for (std::size_t const k : {std::size_t{1}, n / 4, n - 1, n + 5}) {
        BidiagonalSvd const result = bidiagonal_svd(*this->context, input.d, input.e, static_cast<std::int64_t>(k));
        std::size_t const count = std::min(k, n);
        ASSERT_EQ(result.values.size(), count);
        std::vector<double> const u = on_host(result.u), v = on_host(result.v), all_u = on_host(all.u), all_v = on_host(all.v);
        ASSERT_EQ(u.size(), n * count);
        for (std::size_t i = 0; i < count; ++i)
          ASSERT_EQ(result.values[i], all.values[i]);
        for (std::size_t i = 0; i < u.size(); ++i) {
          ASSERT_NEAR(u[i], all_u[i], 1e-14) << input.name << ' ' << k;
          ASSERT_NEAR(v[i], all_v[i], 1e-14) << input.name << ' ' << k;
        }
      }
    }
}

TYPED_TEST(Bidiagonal, SignsChangeNothing) {
  Input const input = random_bidiagonal(200, 5);
  Input flipped = input;
  for (std::size_t i = 0; i < input.n(); i += 3)
    flipped.d[i] = -flipped.d[i];
  for (std::size_t i = 0; i + 1 < input.n(); i += 2)
    flipped.e[i] = -flipped.e[i];
  BidiagonalSvd const a = bidiagonal_svd(*this->context, input.d, input.e),
                      b = bidiagonal_svd(*this->context, flipped.d, flipped.e);
  HostVector<double> const values = bidiagonal_values(*this->context, input.d, input.e),
                           of_flipped = bidiagonal_values(*this->context, flipped.d, flipped.e);
  double squares = 0, sum = 0;
  for (std::size_t i = 0; i < input.n(); ++i) {
    EXPECT_NEAR(a.values[i], b.values[i], 1e-14);
    EXPECT_EQ(values[i], of_flipped[i]);
    sum += values[i] * values[i];
    squares += input.d[i] * input.d[i] + (i + 1 < input.n() ? input.e[i] * input.e[i] : 0);
  }
  EXPECT_NEAR(sum, squares, 1e-12);
}

TYPED_TEST(Bidiagonal, TransposeReversedHasTheSameValues) {
  for (Input const& input : inputs(150)) {
    Input reversed = input;  // J B^T J, with J the reversal of the order
    std::reverse(reversed.d.begin(), reversed.d.end());
    std::reverse(reversed.e.begin(), reversed.e.end());
    HostVector<double> const a = bidiagonal_values(*this->context, input.d, input.e),
                             b = bidiagonal_values(*this->context, reversed.d, reversed.e),
                             c = bidiagonal_svd(*this->context, reversed.d, reversed.e).values;
    for (std::size_t i = 0; i < a.size(); ++i) {
      ASSERT_NEAR(a[i], b[i], 600 * epsilon * a[i] + 1e-290 * a[0]) << input.name;
      ASSERT_NEAR(a[i], c[i], 100 * epsilon * a[0]) << input.name;
    }
  }
}

TYPED_TEST(Bidiagonal, Large) {
  // The last merges are products of the backend's library; the second has hundreds of rotations.
  for (Input const& input : {random_bidiagonal(1100, 8), inputs(1100)[11], inputs(1100)[4]}) {
    std::vector<double> const expected = reference_values(input);
    BidiagonalSvd const result = bidiagonal_svd(*this->context, input.d, input.e);
    std::vector<double> const values(result.values.begin(), result.values.end());
    Defects const found = defects(input, values, on_host(result.u), on_host(result.v));
    EXPECT_LE(found.u, 100 * epsilon) << input.name;
    EXPECT_LE(found.v, 100 * epsilon) << input.name;
    EXPECT_LE(found.residual, 100 * epsilon) << input.name;
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_NEAR(values[i], expected[i], 100 * epsilon * expected[0]) << input.name << ", value " << i;
  }
}

TYPED_TEST(Bidiagonal, KnownValues) {
  // 1 on the diagonal and -1 beside it: B^T B has a known spectrum, 2 cos(pi j / (2 n + 1)).
  std::size_t const n = 300;
  Input const input = made(
      "second difference", n, [](double) { return 1.0; }, [](double) { return -1.0; });
  HostVector<double> const values = bidiagonal_values(*this->context, input.d, input.e);
  HostVector<double> const with_vectors = bidiagonal_svd(*this->context, input.d, input.e).values;
  for (std::size_t j = 0; j < n; ++j) {
    // cos near its zero by the sine of the complement
    double const complement = M_PI * (0.5 - static_cast<double>(j + 1) / static_cast<double>(2 * n + 1));
    EXPECT_NEAR(values[j], 2 * std::sin(complement), 1e-13 * values[j]);
    EXPECT_NEAR(with_vectors[j], 2 * std::sin(complement), 1e-14);
  }
}

TYPED_TEST(Bidiagonal, SameBitsTwice) {
  Input const input = random_bidiagonal(333, 6);
  BidiagonalSvd const a = bidiagonal_svd(*this->context, input.d, input.e), b = bidiagonal_svd(*this->context, input.d, input.e);
  EXPECT_TRUE(std::equal(a.values.begin(), a.values.end(), b.values.begin()));
  EXPECT_EQ(on_host(a.u), on_host(b.u));
  EXPECT_EQ(on_host(a.v), on_host(b.v));
}

TYPED_TEST(Bidiagonal, TakesTheBytesItSays) {
  if (this->context->backend() == Backend::cpu)
    GTEST_SKIP() << "the host does not count";
  for (std::int64_t const leading : {0, 10}) {
    Input const input = random_bidiagonal(500, 7);
    auto const fresh = make_context(Backend::cuda);
    std::int64_t const before = fresh->memory_used();
    BidiagonalSvd const result = bidiagonal_svd(*fresh, input.d, input.e, leading);
    EXPECT_LE(fresh->memory_peak() - before, bidiagonal_svd_bytes(500, leading));
  }
}

}  // namespace

}  // namespace poisson::testing
