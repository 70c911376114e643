#pragma once

#include "gpu/core/double_double.hpp"

namespace poisson {

/// PlainSum accumulates a dot product without the care that DotSum (below) takes: it sums in V itself. Smoothers use it, because
/// the next residual sees their errors.
template <class V>
struct PlainSum {
  V sum;

  POISSON_HOST_DEVICE void add(V a, V b) { sum = std::fma(a, b, sum); }
  [[nodiscard]] POISSON_HOST_DEVICE V value() const { return sum; }
};

/// Accumulates a dot product, the sum of a_i b_i, of vectors of T. `DotSum<T> sum{}` is zero.
template <class T>
struct DotSum;

/// Accumulates a dot product of vectors in single precision. Products are exact in double, and summed in double, so that value()
/// has hardly more than the error of one rounding to float, whatever the length. Memory bounds such loops, so the conversions cost
/// no time.
template <>
struct DotSum<float> {
  double sum;

  POISSON_HOST_DEVICE void add(float a, float b) { sum = std::fma(static_cast<double>(a), static_cast<double>(b), sum); }
  POISSON_HOST_DEVICE void add(DotSum other) { sum += other.sum; }
  [[nodiscard]] POISSON_HOST_DEVICE float value() const { return static_cast<float>(sum); }
};

template <>
struct DotSum<double> {
  double sum;

  POISSON_HOST_DEVICE void add(double a, double b) { sum = std::fma(a, b, sum); }
  POISSON_HOST_DEVICE void add(DotSum other) { sum += other.sum; }
  [[nodiscard]] POISSON_HOST_DEVICE double value() const { return sum; }
};

/// The compensated dot product Dot2 of Ogita, Rump and Oishi, "Accurate sum and dot product", SIAM J. Sci. Comput. 26 (2005),
/// extended to factors with low parts: `sum` adds up rounded products, `correction` all rounding errors, in double. 11 or 12
/// operations a term, where a sum of DoubleDouble takes 26 or more. After n terms, with u = 2^-53,
///   |value - exact| <= 4 (n + 1)^2 u^2 sum |a_i b_i|,
/// and usually n in place of 4 (n + 1)^2. Where a product overflows, or a factor is infinite or NaN, the result is that of double.
template <>
struct DotSum<DoubleDouble> {
  double sum, correction;

  POISSON_HOST_DEVICE void add(double a, DoubleDouble b) {
    DoubleDouble const product = two_prod(a, b.hi);
    correction = std::fma(a, b.lo, correction);
    add_exact(product);
  }
  POISSON_HOST_DEVICE void add(DoubleDouble a, DoubleDouble b) {
    DoubleDouble product = two_prod(a.hi, b.hi);
    product.lo = std::fma(a.lo, b.hi, std::fma(a.hi, b.lo, product.lo));
    add_exact(product);
  }
  POISSON_HOST_DEVICE void add(DotSum other) { add_exact({other.sum, other.correction}); }
  [[nodiscard]] POISSON_HOST_DEVICE DoubleDouble value() const {
    return detail::is_finite(sum) ? two_sum(sum, correction) : DoubleDouble(sum);
  }

private:
  POISSON_HOST_DEVICE void add_exact(DoubleDouble term) {
    DoubleDouble const next = two_sum(sum, term.hi);
    sum = next.hi;
    correction += next.lo + term.lo;
  }
};

}  // namespace poisson
