#pragma once

#include "gpu/core/host_device.hpp"

#include <cmath>
#include <concepts>
#include <cstdint>

namespace poisson {

namespace detail {

/// a * b rounded: compilers for devices must not fuse it with an addition.
[[nodiscard]] POISSON_HOST_DEVICE inline double rounded_product(double a, double b) {
#ifdef __CUDA_ARCH__
  return __dmul_rn(a, b);
#else
  return a * b;
#endif
}

[[nodiscard]] POISSON_HOST_DEVICE inline bool is_finite(double v) {
  return v - v == 0;
}

}  // namespace detail

struct DoubleDouble;
[[nodiscard]] POISSON_HOST_DEVICE inline DoubleDouble quick_two_sum(double a, double b);

/// An unevaluated sum hi + lo with |lo| <= ulp(hi) / 2: about 32 decimal digits.
///
/// With u = 2^-53, the relative error of every operation is bounded as said beside it, by the algorithms of Joldes, Muller and
/// Popescu, "Tight and rigorous error bounds for basic building blocks of double-word arithmetic", ACM TOMS 44 (2017); algorithm
/// numbers are theirs. Bounds hold while nothing overflows and no product or quotient of high parts is below 2^-969 or so: its low
/// part is then subnormal, and the absolute error is a few 2^-1074. As with double, a result beyond the range is an
/// infinity and an invalid one NaN, and infinite operands behave as in double; the low part is then 0. A result of zero
/// may have either sign.
///
/// Compile without floating-point contraction (-ffp-contract=off): a fused `hi + c` would use bits of a product that `lo` holds
/// again. Device code is safe by itself.
struct DoubleDouble {
  double hi;
  double lo;

  DoubleDouble() = default;  ///< uninitialised, as a double is
  // Implicit, as from int to double: code that is written once for double and DoubleDouble has constants in it.
  POISSON_HOST_DEVICE constexpr DoubleDouble(double high, double low = 0) : hi(high), lo(low) {}
  /// Exact for every integer of 64 bits.
  template <std::integral I>
  POISSON_HOST_DEVICE constexpr DoubleDouble(I i) : hi(static_cast<double>(i)), lo(0) {
    if constexpr (sizeof(I) > 4) {
      // |i - hi| is at most 2^10, and modulo 2^64 that difference is right even where hi is 2^63 or 2^64.
      double const top = 9223372036854775808.0;
      auto const back = hi >= top ? static_cast<std::uint64_t>(hi - top) + (std::uint64_t{1} << 63)
                                  : static_cast<std::uint64_t>(static_cast<std::int64_t>(hi));
      lo = static_cast<double>(static_cast<std::int64_t>(static_cast<std::uint64_t>(i) - back));
    }
  }
  POISSON_HOST_DEVICE explicit constexpr operator double() const { return hi; }

  // Friends, so that an unqualified call with a double never comes here.

  /// Whether it is neither infinite nor NaN.
  [[nodiscard]] POISSON_HOST_DEVICE friend bool isfinite(DoubleDouble a) { return detail::is_finite(a.hi); }
  [[nodiscard]] POISSON_HOST_DEVICE friend DoubleDouble abs(DoubleDouble a) {
    return std::signbit(a.hi) ? DoubleDouble(-a.hi, -a.lo) : a;
  }
  /// a * 2^exponent, exact unless a part becomes subnormal.
  [[nodiscard]] POISSON_HOST_DEVICE friend DoubleDouble scalbn(DoubleDouble a, int exponent) {
    return {std::scalbn(a.hi, exponent), std::scalbn(a.lo, exponent)};
  }
  /// 25/8 u^2 (Lefevre, Louvet, Muller, Picot, Rideau 2023). NaN of negative numbers.
  [[nodiscard]] POISSON_HOST_DEVICE friend DoubleDouble sqrt(DoubleDouble a) {
    double const s = std::sqrt(a.hi);
    DoubleDouble const r = quick_two_sum(s, (std::fma(-s, s, a.hi) + a.lo) / (2 * s));
    return s > 0 && detail::is_finite(s) ? r : DoubleDouble(s);
  }
};

/// Unit roundoff of T: the relative error of one rounding.
template <class T>
inline constexpr double unit_roundoff = 0x1p-53;
template <>
inline constexpr double unit_roundoff<float> = 0x1p-24;
template <>
inline constexpr double unit_roundoff<DoubleDouble> = 0x1p-106;

/// a + b exactly (Knuth 1969). Where a + b is not finite, lo is NaN.
[[nodiscard]] POISSON_HOST_DEVICE inline DoubleDouble two_sum(double a, double b) {
  double const s = a + b;
  double const bb = s - a;
  return {s, (a - (s - bb)) + (b - bb)};
}

/// a + b exactly when |a| >= |b| or a = 0 (Dekker 1971).
[[nodiscard]] POISSON_HOST_DEVICE inline DoubleDouble quick_two_sum(double a, double b) {
  double const s = a + b;
  return {s, b - (s - a)};
}

/// a * b exactly, barring underflow (|a b| >= 2^-969 suffices). Where a * b is not finite, neither is lo.
[[nodiscard]] POISSON_HOST_DEVICE inline DoubleDouble two_prod(double a, double b) {
  double const p = detail::rounded_product(a, b);
  return {p, std::fma(a, b, -p)};
}

[[nodiscard]] POISSON_HOST_DEVICE inline DoubleDouble operator-(DoubleDouble a) {
  return {-a.hi, -a.lo};
}

/// 3 u^2 + O(u^3), even under cancellation (algorithm 6).
[[nodiscard]] POISSON_HOST_DEVICE inline DoubleDouble operator+(DoubleDouble a, DoubleDouble b) {
  DoubleDouble const s = two_sum(a.hi, b.hi);
  DoubleDouble const t = two_sum(a.lo, b.lo);
  DoubleDouble const v = quick_two_sum(s.hi, s.lo + t.hi);
  DoubleDouble const r = quick_two_sum(v.hi, v.lo + t.lo);
  return detail::is_finite(s.hi) ? r : DoubleDouble(s.hi);
}

/// 2 u^2 (algorithm 4).
[[nodiscard]] POISSON_HOST_DEVICE inline DoubleDouble operator+(DoubleDouble a, double b) {
  DoubleDouble const s = two_sum(a.hi, b);
  DoubleDouble const r = quick_two_sum(s.hi, a.lo + s.lo);
  return detail::is_finite(s.hi) ? r : DoubleDouble(s.hi);
}
[[nodiscard]] POISSON_HOST_DEVICE inline DoubleDouble operator+(double a, DoubleDouble b) {
  return b + a;
}

[[nodiscard]] POISSON_HOST_DEVICE inline DoubleDouble operator-(DoubleDouble a, DoubleDouble b) {
  return a + -b;
}
[[nodiscard]] POISSON_HOST_DEVICE inline DoubleDouble operator-(DoubleDouble a, double b) {
  return a + -b;
}
[[nodiscard]] POISSON_HOST_DEVICE inline DoubleDouble operator-(double a, DoubleDouble b) {
  return -b + a;
}

/// 5 u^2 (algorithm 12).
[[nodiscard]] POISSON_HOST_DEVICE inline DoubleDouble operator*(DoubleDouble a, DoubleDouble b) {
  DoubleDouble const p = two_prod(a.hi, b.hi);
  double const cross = std::fma(a.lo, b.hi, std::fma(a.hi, b.lo, detail::rounded_product(a.lo, b.lo)));
  DoubleDouble const r = quick_two_sum(p.hi, p.lo + cross);
  return detail::is_finite(p.hi) ? r : DoubleDouble(p.hi);
}

/// 2 u^2 (algorithm 9).
[[nodiscard]] POISSON_HOST_DEVICE inline DoubleDouble operator*(DoubleDouble a, double b) {
  DoubleDouble const p = two_prod(a.hi, b);
  DoubleDouble const r = quick_two_sum(p.hi, std::fma(a.lo, b, p.lo));
  return detail::is_finite(p.hi) ? r : DoubleDouble(p.hi);
}
[[nodiscard]] POISSON_HOST_DEVICE inline DoubleDouble operator*(double a, DoubleDouble b) {
  return b * a;
}

/// 3 u^2 (algorithm 15).
[[nodiscard]] POISSON_HOST_DEVICE inline DoubleDouble operator/(DoubleDouble a, double b) {
  double const q = a.hi / b;
  DoubleDouble const p = two_prod(q, b);
  DoubleDouble const r = quick_two_sum(q, (((a.hi - p.hi) - p.lo) + a.lo) / b);
  return detail::is_finite(q) && detail::is_finite(b) ? r : DoubleDouble(q);
}

/// 15 u^2 + O(u^3) (algorithm 17).
[[nodiscard]] POISSON_HOST_DEVICE inline DoubleDouble operator/(DoubleDouble a, DoubleDouble b) {
  double const q = a.hi / b.hi;
  DoubleDouble const p = b * q;
  DoubleDouble const r = quick_two_sum(q, ((a.hi - p.hi) + (a.lo - p.lo)) / b.hi);
  return detail::is_finite(q) && detail::is_finite(b.hi) ? r : DoubleDouble(q);
}
[[nodiscard]] POISSON_HOST_DEVICE inline DoubleDouble operator/(double a, DoubleDouble b) {
  return DoubleDouble(a) / b;
}

POISSON_HOST_DEVICE inline DoubleDouble& operator+=(DoubleDouble& a, DoubleDouble b) {
  return a = a + b;
}
POISSON_HOST_DEVICE inline DoubleDouble& operator+=(DoubleDouble& a, double b) {
  return a = a + b;
}
POISSON_HOST_DEVICE inline DoubleDouble& operator-=(DoubleDouble& a, DoubleDouble b) {
  return a = a - b;
}
POISSON_HOST_DEVICE inline DoubleDouble& operator*=(DoubleDouble& a, DoubleDouble b) {
  return a = a * b;
}
POISSON_HOST_DEVICE inline DoubleDouble& operator*=(DoubleDouble& a, double b) {
  return a = a * b;
}
POISSON_HOST_DEVICE inline DoubleDouble& operator/=(DoubleDouble& a, DoubleDouble b) {
  return a = a / b;
}

[[nodiscard]] POISSON_HOST_DEVICE inline bool operator==(DoubleDouble a, DoubleDouble b) {
  return a.hi == b.hi && a.lo == b.lo;
}
[[nodiscard]] POISSON_HOST_DEVICE inline bool operator<(DoubleDouble a, DoubleDouble b) {
  return a.hi < b.hi || (a.hi == b.hi && a.lo < b.lo);
}
[[nodiscard]] POISSON_HOST_DEVICE inline bool operator>(DoubleDouble a, DoubleDouble b) {
  return b < a;
}
[[nodiscard]] POISSON_HOST_DEVICE inline bool operator<=(DoubleDouble a, DoubleDouble b) {
  return a.hi < b.hi || (a.hi == b.hi && a.lo <= b.lo);
}
[[nodiscard]] POISSON_HOST_DEVICE inline bool operator>=(DoubleDouble a, DoubleDouble b) {
  return b <= a;
}

}  // namespace poisson
