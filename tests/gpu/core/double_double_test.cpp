#include "tests/gpu/cases.hpp"
#include "tests/gpu/multiprecision.hpp"

#include "gpu/core/dot_sum.hpp"
#include "gpu/core/threads.hpp"
#include "gpu/core/vector.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/vectors.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <random>
#include <vector>

namespace poisson::testing {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
constexpr double largest = std::numeric_limits<double>::max(), smallest = std::numeric_limits<double>::denorm_min();
constexpr double u = 0x1p-53, u2 = u * u;

/// Numbers of many kinds, normalised: random bits; few bits; powers of two and their neighbours; low parts that are zero, at the
/// half-way point, of either sign, or far below; exponents in [-range, range].
class Numbers {
public:
  explicit Numbers(unsigned seed, int range) : random_(seed), exponent_(-range, range) {}

  double next() {
    double value = 0;
    switch (random_() % 4) {
    case 0:
    case 1:
      value = 1 + uniform_(random_);
      break;
    case 2:  // around a power of two
      value = std::nextafter(1.0, static_cast<double>(random_() % 3));
      break;
    default:  // few bits
      value = 1 + static_cast<double>(random_() % 8) / 8;
    }
    return std::scalbn(random_() % 2 == 0 ? value : -value, exponent_(random_));
  }
  DoubleDouble next_pair() {
    double const hi = next(), half_ulp = std::scalbn(1.0, std::ilogb(hi) - 53);
    double lo = 0;
    switch (random_() % 6) {
    case 0:
      break;
    case 1:  // ties, where rounding to even keeps them
      lo = half_ulp;
      break;
    case 2:
      lo = std::scalbn(half_ulp, -static_cast<int>(random_() % 100));
      break;
    default:
      lo = half_ulp * uniform_(random_);
    }
    DoubleDouble const pair = quick_two_sum(hi, random_() % 2 == 0 ? lo : -lo);
    return pair;
  }
  /// A partner for a: sometimes close to -a, sometimes to a, sometimes anything.
  DoubleDouble partner(DoubleDouble a) {
    switch (random_() % 5) {
    case 0:
      return {-a.hi, next_pair().lo == 0 ? 0 : std::scalbn(a.lo, -static_cast<int>(random_() % 50))};
    case 1:
      return quick_two_sum(-a.hi * (1 + 0x1p-52 * static_cast<double>(random_() % 5)), a.lo);
    case 2:
      return {a.hi, -a.lo};
    default:
      return next_pair();
    }
  }

private:
  std::mt19937_64 random_;
  std::uniform_int_distribution<int> exponent_;
  std::uniform_real_distribution<double> uniform_{0, 1};
};

void expect_normalised(DoubleDouble v) {
  ASSERT_EQ(v.hi + v.lo, v.hi) << v.hi << " + " << v.lo;
}

TEST(DoubleDouble, TransformationsAreExact) {
  Numbers numbers(1, 300);
  for (int i = 0; i < 100000; ++i) {
    double const a = numbers.next(), b = numbers.next();
    ASSERT_EQ(Mp(two_sum(a, b)), Mp(a) + Mp(b)) << a << ' ' << b;
    ASSERT_EQ(Mp(two_prod(a, b)), Mp(a) * Mp(b)) << a << ' ' << b;
    double const more = std::max(std::abs(a), std::abs(b)), less = std::min(std::abs(a), std::abs(b));
    ASSERT_EQ(Mp(quick_two_sum(more, -less)), Mp(more) - Mp(less));
  }
  // Sums and products are exact at both ends of the range too.
  EXPECT_EQ(Mp(two_sum(largest, -0.5 * largest)), Mp(largest) - Mp(0.5 * largest));
  EXPECT_EQ(Mp(two_sum(smallest, -0x1p-1022)), Mp(smallest) - Mp(0x1p-1022));
  EXPECT_EQ(Mp(two_prod(0x1.123456789abcdp-480, 0x1.fedcba9876543p-489)), Mp(0x1.123456789abcdp-480) * Mp(0x1.fedcba9876543p-489));
}

TEST(DoubleDouble, ErrorsStayWithinTheBounds) {
  struct Operation {
    char const* name;
    double bound;  ///< in units of u^2, with a little for what is O(u^3)
    int range;     ///< of exponents
    DoubleDouble (*apply)(DoubleDouble, DoubleDouble);
    Mp (*exact)(Mp const&, Mp const&);
  };
  // Operations with a double take the second operand's high part.
  Operation const operations[] = {
      {"a + b", 3, 480, [](DoubleDouble a, DoubleDouble b) { return a + b; }, [](Mp const& a, Mp const& b) { return a + b; }},
      {"a - b", 3, 20, [](DoubleDouble a, DoubleDouble b) { return a - b; }, [](Mp const& a, Mp const& b) { return a - b; }},
      {"a * b", 5, 480, [](DoubleDouble a, DoubleDouble b) { return a * b; }, [](Mp const& a, Mp const& b) { return a * b; }},
      {"a / b", 15, 400, [](DoubleDouble a, DoubleDouble b) { return a / b; }, [](Mp const& a, Mp const& b) { return a / b; }},
      {"sqrt(|a|)", 3.125, 800, [](DoubleDouble a, DoubleDouble) { return sqrt(abs(a)); },
       [](Mp const& a, Mp const&) { return sqrt(abs(a)); }},
  };
  Operation const mixed[] = {
      {"a + double", 2, 20, [](DoubleDouble a, DoubleDouble b) { return a + b.hi; },
       [](Mp const& a, Mp const& b) { return a + b; }},
      {"double - a", 2, 480, [](DoubleDouble a, DoubleDouble b) { return b.hi - a; },
       [](Mp const& a, Mp const& b) { return b - a; }},
      {"double * a", 2, 480, [](DoubleDouble a, DoubleDouble b) { return b.hi * a; },
       [](Mp const& a, Mp const& b) { return a * b; }},
      {"a / double", 3, 400, [](DoubleDouble a, DoubleDouble b) { return a / b.hi; },
       [](Mp const& a, Mp const& b) { return a / b; }},
      {"double / a", 15, 400, [](DoubleDouble a, DoubleDouble b) { return b.hi / a; },
       [](Mp const& a, Mp const& b) { return b / a; }},
  };
  auto const check = [](Operation const& operation, bool with_double) {
    SCOPED_TRACE(operation.name);
    Numbers numbers(2, operation.range);
    double worst = 0;
    for (int i = 0; i < 60000; ++i) {
      DoubleDouble const a = numbers.next_pair(), b = numbers.partner(a);
      DoubleDouble const result = operation.apply(a, b);
      double const error = relative_error(result, operation.exact(a, with_double ? Mp(b.hi) : Mp(b))) / u2;
      worst = std::max(worst, error);
      ASSERT_LE(error, operation.bound * (1 + 1e-10)) << a.hi << " + " << a.lo << ", " << b.hi << " + " << b.lo;
      expect_normalised(result);
    }
    RecordProperty(operation.name, std::to_string(worst));
    EXPECT_GT(worst, operation.bound / 100) << "the numbers are too easy";
  };
  for (Operation const& operation : operations)
    check(operation, false);
  for (Operation const& operation : mixed)
    check(operation, true);
}

TEST(DoubleDouble, CancellationToTheLastBits) {
  DoubleDouble const a{1, 0x1p-60}, b{-1, 0x1p-106};
  EXPECT_EQ(Mp(a + b), Mp(0x1p-60) + Mp(0x1p-106));
  EXPECT_EQ(a - a, 0);
  EXPECT_EQ(a + -1.0, 0x1p-60);
  // (1 + e)(1 - e) - 1 = -e^2, and nothing of it is in the high parts of the product.
  DoubleDouble const e = 0x1p-40;
  EXPECT_EQ((1 + e) * (1 - e) - 1, -0x1p-80);
}

TEST(DoubleDouble, InfinitiesNanAndOverflow) {
  auto const is = [](DoubleDouble v, double hi) {
    EXPECT_EQ(v.hi, hi);
    EXPECT_EQ(v.lo, 0);
  };
  DoubleDouble const one{1, 0x1p-60}, big{largest, largest * 0x1p-54};
  for (double const inf : {infinity, -infinity}) {
    is(inf + one, inf);
    is(one + DoubleDouble(inf), inf);
    is(one - DoubleDouble(inf), -inf);
    is(DoubleDouble(inf) + DoubleDouble(inf), inf);
    is(one * inf, inf);
    is(DoubleDouble(inf) * -one, -inf);
    is(inf / one, inf);
    is(DoubleDouble(inf) / one.hi, inf);
    is(one / inf, 0);
    is(one / DoubleDouble(inf), 0);
    EXPECT_TRUE(std::isnan((DoubleDouble(inf) - inf).hi));
    EXPECT_TRUE(std::isnan((DoubleDouble(inf) * 0.0).hi));
    EXPECT_TRUE(std::isnan((DoubleDouble(inf) / inf).hi));
    EXPECT_FALSE(isfinite(DoubleDouble(inf)));
  }
  is(one / 0.0, infinity);
  is(one / DoubleDouble(-0.0), -infinity);
  EXPECT_TRUE(std::isnan((DoubleDouble(0) / DoubleDouble(0)).hi));
  // Beyond the range.
  is(big + big, infinity);
  is(-big - big, -infinity);
  is(big * 2.0, infinity);
  is(big * big, infinity);
  is(big * -big, -infinity);
  is(big / 0.5, infinity);
  is(big / DoubleDouble(0x1p-600), infinity);
  is(sqrt(DoubleDouble(infinity)), infinity);
  EXPECT_TRUE(std::isnan(sqrt(-one).hi));
  EXPECT_TRUE(std::isnan((one + nan).hi));
  EXPECT_TRUE(std::isnan((nan * one).hi));
  EXPECT_TRUE(std::isnan((one / nan).hi));
  EXPECT_TRUE(std::isnan(sqrt(DoubleDouble(nan)).hi));
  EXPECT_FALSE(isfinite(DoubleDouble(nan)));
  EXPECT_TRUE(isfinite(big));
}

TEST(DoubleDouble, TinyNumbersAndZeros) {
  // Below 2^-969 the low part of a product is subnormal: an absolute error of some 2^-1074 is left, and never more.
  Numbers numbers(3, 60);
  for (int i = 0; i < 20000; ++i) {
    DoubleDouble const a = scalbn(numbers.next_pair(), -500), b = scalbn(numbers.next_pair(), -500);
    Mp const exact = Mp(a) * Mp(b);
    double const error = static_cast<double>(abs(Mp(a * b) - exact));
    ASSERT_LE(error, 5 * u2 * static_cast<double>(abs(exact)) + 6 * smallest) << a.hi << ' ' << b.hi;
  }
  // Sums of subnormal numbers are exact.
  EXPECT_EQ(DoubleDouble(smallest) + DoubleDouble(3 * smallest), 4 * smallest);
  DoubleDouble const subnormal_low{0x1p-1000, 0x1p-1060};
  EXPECT_EQ(Mp(subnormal_low + subnormal_low), Mp(0x1p-999) + Mp(0x1p-1059));
  EXPECT_EQ(Mp(subnormal_low - 0x1p-1000), Mp(0x1p-1060));
  for (double const zero : {0.0, -0.0}) {
    EXPECT_EQ(DoubleDouble(zero) + DoubleDouble(zero), 0);
    EXPECT_EQ(DoubleDouble(zero) * 3.0, 0);
    EXPECT_EQ(DoubleDouble(zero) / DoubleDouble(3), 0);
    EXPECT_EQ(DoubleDouble(1, 0x1p-60) + zero, DoubleDouble(1, 0x1p-60));
    EXPECT_EQ(sqrt(DoubleDouble(zero)), 0);
    EXPECT_FALSE(std::signbit(abs(DoubleDouble(zero)).hi));
    EXPECT_EQ(std::signbit((-DoubleDouble(zero)).hi), !std::signbit(zero));
  }
}

TEST(DoubleDouble, OrderAndMagnitude) {
  Numbers numbers(4, 3);
  for (int i = 0; i < 20000; ++i) {
    DoubleDouble const a = numbers.next_pair(), b = numbers.partner(a);
    Mp const exact_a = a, exact_b = b;
    ASSERT_EQ(a < b, exact_a < exact_b);
    ASSERT_EQ(b > a, exact_a < exact_b);
    ASSERT_EQ(a <= b, !(exact_b < exact_a));
    ASSERT_EQ(b >= a, !(exact_b < exact_a));
    ASSERT_EQ(a == b, exact_a == exact_b);
    ASSERT_EQ(Mp(abs(a)), abs(exact_a));
    ASSERT_EQ(Mp(scalbn(a, 17)), exact_a * Mp(0x1p17));
    ASSERT_EQ(static_cast<double>(a), a.hi);
  }
  EXPECT_LT(DoubleDouble(1, -0x1p-80), 1);
  EXPECT_GT(DoubleDouble(1, 0x1p-80), 1);
  EXPECT_FALSE(DoubleDouble(nan) < 1);
  EXPECT_FALSE(DoubleDouble(nan) >= 1);
  EXPECT_NE(DoubleDouble(nan), DoubleDouble(nan));
}

TEST(DoubleDouble, HoldsEveryInteger) {
  auto const check = [](auto i, double hi, double lo) {
    DoubleDouble const v = i;
    EXPECT_EQ(v.hi, hi);
    EXPECT_EQ(v.lo, lo);
  };
  check(7, 7, 0);
  check(-3L, -3, 0);
  check((std::int64_t{1} << 53) + 1, 0x1p53, 1);
  check(-(std::int64_t{1} << 60) - 5, -0x1p60, -5);
  check(std::numeric_limits<std::int64_t>::max(), 0x1p63, -1);
  check(std::numeric_limits<std::int64_t>::min(), -0x1p63, 0);
  check(std::numeric_limits<std::int64_t>::min() + 1, -0x1p63, 1);
  check(std::numeric_limits<std::uint64_t>::max(), 0x1p64, -1);
  check(std::uint64_t{0x8000000000000001}, 0x1p63, 1);
}

/// A dot product of 2 n terms with condition 2 sum |a_i b_i| / |a . b| of about `condition` (after Ogita, Rump, Oishi 2005,
/// algorithm 6.1): the second half cancels what the first has summed to, down to smaller and smaller numbers.
struct IllConditioned {
  std::vector<DoubleDouble> a, b;
  Mp exact, absolute;

  IllConditioned(std::size_t n, double condition, bool with_low_parts, unsigned seed) {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> uniform(-1, 1);
    auto const factor = [&](double exponent) {
      double const hi = uniform(random) * std::exp2(exponent);
      return with_low_parts ? two_sum(hi, hi * u * uniform(random)) : DoubleDouble(hi);
    };
    double const size = std::log2(condition);
    for (std::size_t i = 0; i < n; ++i) {
      double const exponent = i == 0 ? size / 2 : std::round(size / 2 * std::abs(uniform(random)));
      a.push_back(factor(exponent));
      b.push_back(factor(exponent));
      exact += Mp(a.back()) * Mp(b.back());
    }
    for (std::size_t i = 0; i < n; ++i) {
      double const exponent = std::round(size / 2 * (1 - static_cast<double>(i) / static_cast<double>(n - 1)));
      a.push_back(factor(exponent));
      Mp const wanted = (Mp(factor(exponent)) - exact) / Mp(a.back());
      b.push_back(with_low_parts ? static_cast<DoubleDouble>(wanted) : DoubleDouble(static_cast<double>(wanted)));
      exact += Mp(a.back()) * Mp(b.back());
    }
    std::vector<std::size_t> order(a.size());
    for (std::size_t i = 0; i < order.size(); ++i)
      order[i] = i;
    std::shuffle(order.begin(), order.end(), random);
    auto const before_a = a, before_b = b;
    for (std::size_t i = 0; i < order.size(); ++i) {
      a[i] = before_a[order[i]];
      b[i] = before_b[order[i]];
      absolute += abs(Mp(a[i]) * Mp(b[i]));
    }
  }
  [[nodiscard]] double condition() const { return 2 * static_cast<double>(absolute / abs(exact)); }
};

TEST(DoubleDouble, DotSumsOfAnyCondition) {
  double hardest = 0;
  for (bool const with_low_parts : {false, true})
    for (std::size_t const n : {2, 7, 50, 1000})
      for (double const condition : {1e5, 1e16, 1e24, 1e30}) {
        IllConditioned const dot(n, condition, with_low_parts, static_cast<unsigned>(n));
        hardest = std::max(hardest, dot.condition());
        DotSum<DoubleDouble> sum{}, mixed{};
        Mp exact_mixed;
        DoubleDouble plain = 0;
        for (std::size_t i = 0; i < dot.a.size(); ++i) {
          sum.add(dot.a[i], dot.b[i]);
          mixed.add(dot.a[i].hi, dot.b[i]);
          exact_mixed += Mp(dot.a[i].hi) * Mp(dot.b[i]);
          plain += dot.a[i] * dot.b[i];
        }
        double const terms = static_cast<double>(dot.a.size()), size = static_cast<double>(dot.absolute);
        double const bound = 4 * (terms + 1) * (terms + 1) * u2 * size;
        EXPECT_LE(static_cast<double>(abs(Mp(sum.value()) - dot.exact)), bound);
        EXPECT_LE(static_cast<double>(abs(Mp(mixed.value()) - exact_mixed)), bound * (1 + 1e-15));
        EXPECT_LE(static_cast<double>(abs(Mp(plain) - dot.exact)), 9 * terms * u2 * size);
        // What is seen: errors that add up at random.
        EXPECT_LE(static_cast<double>(abs(Mp(sum.value()) - dot.exact)), (8 + std::sqrt(terms)) * u2 * size);
        expect_normalised(sum.value());
      }
  EXPECT_GE(hardest, 1e30);
}

TEST(DoubleDouble, DotSumsEndAsInDouble) {
  auto const sum_of = [](std::vector<double> const& terms) {
    DotSum<DoubleDouble> sum{};
    for (double const term : terms)
      sum.add(term, DoubleDouble(1));
    return sum.value();
  };
  EXPECT_EQ(sum_of({1, infinity, 2}), infinity);
  EXPECT_EQ(sum_of({-infinity, 2}), -infinity);
  EXPECT_TRUE(std::isnan(sum_of({-infinity, 2, infinity}).hi));
  EXPECT_TRUE(std::isnan(sum_of({nan, 2}).hi));
  EXPECT_EQ(sum_of({largest, largest, 1}), infinity);
  EXPECT_EQ(sum_of({}), 0);
  EXPECT_EQ(sum_of({1, 0x1p-100, -1}), 0x1p-100);
}

template <class C>
class Vectors : public WithDoubleDouble<OnBackend<C::value>> {
protected:
  static std::vector<DoubleDouble> random_vector(std::int64_t n, unsigned seed) {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> uniform(-1, 1);
    std::vector<DoubleDouble> v;
    for (std::int64_t i = 0; i < n; ++i) {
      double const hi = uniform(random);
      v.push_back(two_sum(hi, hi * u * uniform(random)));
    }
    return v;
  }
};

TYPED_TEST_SUITE(Vectors, Backends, BackendNames);

TYPED_TEST(Vectors, TravelInTwoArrays) {
  for (std::int64_t const n : {0, 1, 77}) {
    auto const host = this->random_vector(n, 1);
    auto const v = this->upload(host);
    EXPECT_EQ(v.size(), n);
    EXPECT_EQ(v.bytes(), 16 * n);
    EXPECT_EQ(this->download(v), host);
    std::vector<double> high(static_cast<std::size_t>(n));
    v.download(std::span<double>(high));
    for (std::size_t i = 0; i < high.size(); ++i)
      EXPECT_EQ(high[i], host[i].hi);
    // A vector that is made from doubles has low parts of zero.
    Vector<DoubleDouble> const of_double(*this->context, std::span<double const>(high));
    EXPECT_EQ(this->download(of_double), std::vector<DoubleDouble>(high.begin(), high.end()));
    Vector<double> const plain(*this->context, std::span<double const>(high));
    EXPECT_EQ(plain.bytes(), 8 * n);
  }
}

TYPED_TEST(Vectors, SumsAndInversesToTwiceTheDigits) {
  auto const& kernels = kernels_for<VectorKernels<DoubleDouble>>(*this->context);
  for (std::int64_t const n : {0, 1, 2, 7, 8, 9, 255, 1023, 1024, 1025, 5000, 300001}) {
    SCOPED_TRACE(n);
    auto const x = this->random_vector(n, 2), y = this->random_vector(n, 3);
    auto const device_x = this->upload(x), device_y = this->upload(y);
    Mp dot, dot_size, distance;
    for (std::size_t i = 0; i < x.size(); ++i) {
      dot += Mp(x[i]) * Mp(y[i]);
      dot_size += abs(Mp(x[i]) * Mp(y[i]));
      distance += (Mp(x[i]) - Mp(y[i])) * (Mp(x[i]) - Mp(y[i]));
    }
    Array<DoubleDouble> result(*this->context, 1);
    kernels.dot(*this->context, n, device_x.data(), device_y.data(), result.data());
    EXPECT_LE(static_cast<double>(abs(Mp(this->scalar(result)) - dot)), 50 * u2 * static_cast<double>(dot_size));
    kernels.distance_squared(*this->context, n, device_x.data(), device_y.data(), result.data());
    EXPECT_LE(static_cast<double>(abs(Mp(this->scalar(result)) - distance)), 50 * u2 * static_cast<double>(distance));
    Vector<DoubleDouble> copy(*this->context, n);
    kernels.copy(*this->context, n, device_x.data(), copy.data());
    EXPECT_EQ(this->download(copy), x);
    kernels.invert(*this->context, n, copy.data());
    auto const inverse = this->download(copy);
    for (std::size_t i = 0; i < x.size(); ++i)
      ASSERT_LE(relative_error(inverse[i], Mp(1.0) / Mp(x[i])), 15 * u2);
  }
}

TYPED_TEST(Vectors, IllConditionedDot) {
  auto const& kernels = kernels_for<VectorKernels<DoubleDouble>>(*this->context);
  for (double const condition : {1e16, 1e24, 1e30}) {
    IllConditioned const dot(3000, condition, true, 5);
    auto const a = this->upload(dot.a), b = this->upload(dot.b);
    Array<DoubleDouble> result(*this->context, 1);
    kernels.dot(*this->context, a.size(), a.data(), b.data(), result.data());
    EXPECT_LE(static_cast<double>(abs(Mp(this->scalar(result)) - dot.exact)), 8 * u2 * static_cast<double>(dot.absolute));
  }
}

TYPED_TEST(Vectors, SameBitsEveryTimeAndForAnyThreadCount) {
  int const threads = thread_count();
  auto const& kernels = kernels_for<VectorKernels<DoubleDouble>>(*this->context);
  std::int64_t const n = 200003;
  auto const x = this->upload(this->random_vector(n, 2)), y = this->upload(this->random_vector(n, 3));
  Array<DoubleDouble> result(*this->context, 1);
  std::vector<DoubleDouble> results;
  for (int const count : {1, 2, 3, 1}) {
    set_thread_count(count);
    kernels.dot(*this->context, n, x.data(), y.data(), result.data());
    results.push_back(this->scalar(result));
    EXPECT_EQ(results.back(), results.front());
  }
  set_thread_count(threads);
}

}  // namespace
}  // namespace poisson::testing
