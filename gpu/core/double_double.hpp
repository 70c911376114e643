#pragma once

#include <cmath>

namespace poisson {

/// An unevaluated sum hi + lo with |lo| <= ulp(hi) / 2: about 32 decimal digits.
/// Compile without floating-point contraction (-ffp-contract=off): a fused `hi + c` would use bits of a product that `lo` holds
/// again.
struct DoubleDouble {
  double hi = 0;
  double lo = 0;
};

/// a + b exactly (Knuth 1969).
[[nodiscard]] inline DoubleDouble two_sum(double a, double b) {
  double const s = a + b;
  double const bb = s - a;
  return {s, (a - (s - bb)) + (b - bb)};
}

/// a + b exactly when |a| >= |b| or a = 0 (Dekker 1971).
[[nodiscard]] inline DoubleDouble quick_two_sum(double a, double b) {
  double const s = a + b;
  return {s, b - (s - a)};
}

/// a * b exactly, barring underflow.
[[nodiscard]] inline DoubleDouble two_prod(double a, double b) {
  double const p = a * b;
  return {p, std::fma(a, b, -p)};
}

/// Relative error at most 3 * 2^-106 even under cancellation (Joldes, Muller, Popescu 2017, algorithm 6).
[[nodiscard]] inline DoubleDouble operator+(DoubleDouble a, DoubleDouble b) {
  DoubleDouble s = two_sum(a.hi, b.hi);
  DoubleDouble const t = two_sum(a.lo, b.lo);
  s = quick_two_sum(s.hi, s.lo + t.hi);
  return quick_two_sum(s.hi, s.lo + t.lo);
}

[[nodiscard]] inline DoubleDouble operator*(DoubleDouble a, DoubleDouble b) {
  DoubleDouble p = two_prod(a.hi, b.hi);
  p.lo += std::fma(a.hi, b.lo, a.lo * b.hi);
  return quick_two_sum(p.hi, p.lo);
}

}  // namespace poisson
