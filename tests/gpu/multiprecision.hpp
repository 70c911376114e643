#pragma once

#include "gpu/core/double_double.hpp"

#include <mpfr.h>

namespace poisson::testing {

/// A number of 640 bits: every operation on a few doubles of similar size is exact or nearly so.
class Mp {
public:
  Mp(double v = 0) {
    mpfr_init2(value_, 640);
    mpfr_set_d(value_, v, MPFR_RNDN);
  }
  Mp(DoubleDouble v) : Mp(v.hi) { mpfr_add_d(value_, value_, v.lo, MPFR_RNDN); }
  Mp(Mp const& other) : Mp(0.0) { mpfr_set(value_, other.value_, MPFR_RNDN); }
  Mp& operator=(Mp const& other) {
    mpfr_set(value_, other.value_, MPFR_RNDN);
    return *this;
  }
  ~Mp() { mpfr_clear(value_); }

  friend Mp operator+(Mp const& a, Mp const& b) { return of(mpfr_add, a, b); }
  friend Mp operator-(Mp const& a, Mp const& b) { return of(mpfr_sub, a, b); }
  friend Mp operator*(Mp const& a, Mp const& b) { return of(mpfr_mul, a, b); }
  friend Mp operator/(Mp const& a, Mp const& b) { return of(mpfr_div, a, b); }
  friend Mp sqrt(Mp const& a) {
    Mp result;
    mpfr_sqrt(result.value_, a.value_, MPFR_RNDN);
    return result;
  }
  friend Mp abs(Mp const& a) {
    Mp result;
    mpfr_abs(result.value_, a.value_, MPFR_RNDN);
    return result;
  }
  Mp& operator+=(Mp const& other) { return *this = *this + other; }
  friend bool operator<(Mp const& a, Mp const& b) { return mpfr_less_p(a.value_, b.value_) != 0; }
  friend bool operator==(Mp const& a, Mp const& b) { return mpfr_equal_p(a.value_, b.value_) != 0; }
  explicit operator double() const { return mpfr_get_d(value_, MPFR_RNDN); }
  /// Rounded to the nearest double, and what that leaves out likewise.
  explicit operator DoubleDouble() const {
    auto const hi = static_cast<double>(*this);
    return {hi, static_cast<double>(*this - Mp(hi))};
  }

private:
  template <class Operation>
  static Mp of(Operation const& operation, Mp const& a, Mp const& b) {
    Mp result;
    operation(result.value_, a.value_, b.value_, MPFR_RNDN);
    return result;
  }

  mpfr_t value_;
};

/// |a - exact| / |exact|; 0 where they are equal.
inline double relative_error(Mp const& a, Mp const& exact) {
  return a == exact ? 0 : static_cast<double>(abs(a - exact) / abs(exact));
}

}  // namespace poisson::testing
