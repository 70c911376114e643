#pragma once

#include "gpu/core/double_double.hpp"
#include "gpu/core/host_vector.hpp"

#include <cmath>
#include <cstdint>
#include <span>

namespace poisson {

/// b as the iterations see it: scaled by a power of two, so that squares neither overflow nor vanish, and orthogonal to the
/// constant vector when that is the null space. Solving is linear in b, so the scaling changes no digit of the solution.
template <class T>
struct RightHandSide {
  HostVector<T> values;
  T norm = 0;        ///< of the scaled b before the projection
  int exponent = 0;  ///< b = values * 2^exponent
  bool project = false;

  /// Precondition: b is finite and not zero.
  RightHandSide(std::span<double const> b, bool constant_null_space) : values(b.size()), project(constant_null_space) {
    double largest = 0;
    for (double const v : b)
      largest = std::max(largest, std::abs(v));
    exponent = std::ilogb(largest);
    T sum = 0;
    T squares = 0;
    for (std::size_t i = 0; i < b.size(); ++i) {
      values[i] = std::scalbn(b[i], -exponent);
      sum += values[i];
      squares += values[i] * values[i];
    }
    norm = std::sqrt(squares);
    if (project)
      subtract_mean(values, sum);
  }

  /// x in the caller's scale, and mean-free when the constant vector is the null space.
  void take_back(HostVector<T>& solution, std::span<double> x) const {
    if (project) {
      T sum = 0;
      for (T const v : solution)
        sum += v;
      subtract_mean(solution, sum);
    }
    for (std::size_t i = 0; i < x.size(); ++i)
      x[i] = static_cast<double>(std::scalbn(solution[i], exponent));
  }

private:
  static void subtract_mean(HostVector<T>& v, T sum) {
    // Twice: the first mean is rounded at the size of the entries, the second at the size of what is left.
    for (int pass = 0; pass < 2; ++pass) {
      T const mean = sum / static_cast<T>(v.size());
      sum = 0;
      for (T& entry : v)
        sum += (entry -= mean);
    }
  }
};

}  // namespace poisson
