#pragma once

#include "gpu/core/double_double.hpp"
#include "gpu/core/host_vector.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

namespace poisson {

/// b as the iterations see it: scaled by a power of two, so that squares neither overflow nor underflow, and made orthogonal to the
/// constant vector when that spans the null space. Solving is linear in b, so the scaling changes no digit of the solution.
template <class T>
struct RightHandSide {
  HostVector<T> values;
  int exponent = 0;  ///< b = values * 2^exponent
  bool project = false;

  /// Precondition: b is finite and not zero.
  RightHandSide(std::span<double const> b, bool constant_null_space) : values(b.size()), project(constant_null_space) {
    auto const n = static_cast<std::int64_t>(b.size());
    double largest = 0;
#pragma omp parallel for schedule(static) reduction(max : largest)
    for (std::int64_t i = 0; i < n; ++i)
      largest = std::max(largest, std::abs(b[i]));
    exponent = std::ilogb(largest);
#pragma omp parallel for schedule(static)
    for (std::int64_t i = 0; i < n; ++i)
      values[i] = std::scalbn(b[i], -exponent);
    if (project)
      subtract_mean(values);
  }

  /// Scales x, the solution for `values`, back to that for b; with a constant null space its mean is subtracted first.
  void unscale(HostVector<T>& x) const {
    if (project)
      subtract_mean(x);
    auto const n = static_cast<std::int64_t>(x.size());
    using std::scalbn;
#pragma omp parallel for schedule(static)
    for (std::int64_t i = 0; i < n; ++i)
      x[i] = scalbn(x[i], exponent);
  }

private:
  static void subtract_mean(HostVector<T>& v) {
    // Twice: the first mean is rounded at the size of the entries, the second at the size of what is left.
    for (int pass = 0; pass < 2; ++pass) {
      T sum = 0;
      for (T const& entry : v)
        sum += entry;
      T const mean = sum / static_cast<T>(static_cast<std::int64_t>(v.size()));
      for (T& entry : v)
        entry -= mean;
    }
  }
};

}  // namespace poisson
