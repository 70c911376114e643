#pragma once

#include "gpu/core/communicator.hpp"
#include "gpu/core/double_double.hpp"
#include "gpu/core/host_vector.hpp"
#include "gpu/core/vector.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <type_traits>

namespace poisson {

/// b as the iterations in T see it: scaled by a power of two, so that squares neither overflow nor underflow, and made orthogonal
/// to the constant vector when that spans the null space. Solving is linear in b, so the scaling changes no digit of the solution.
template <class T>
class RightHandSide {
public:
  /// b holds the entries of this rank; `ranks` share them, and outlive this. Preconditions: b is finite, and not
  /// zero on all ranks. Collective.
  RightHandSide(std::span<double const> b, bool constant_null_space, Communicator& ranks = alone())
      : high_(b.size()), project_(constant_null_space), ranks_(ranks) {
    auto const n = static_cast<std::int64_t>(b.size());
    double largest = 0;
#pragma omp parallel for schedule(static) reduction(max : largest)
    for (std::int64_t i = 0; i < n; ++i)
      largest = std::max(largest, std::abs(b[i]));
    exponent_ = std::ilogb(max_over(ranks, largest));
#pragma omp parallel for schedule(static)
    for (std::int64_t i = 0; i < n; ++i)
      high_[i] = std::scalbn(b[i], -exponent_);
    if (project_) {
      if constexpr (extended) {
        low_.resize(b.size());
        std::fill(low_.begin(), low_.end(), 0.0);
      }
      subtract_mean(high_, low_);
    }
  }

  /// Returns the exponent of the scaling: b is this right-hand side times 2^exponent.
  [[nodiscard]] int exponent() const {
    return exponent_;
  }
  [[nodiscard]] bool is_projected() const {
    return project_;
  }
  [[nodiscard]] Vector<T> upload(Context& context) const {
    if constexpr (extended)
      if (project_) {
        HostVector<DoubleDouble> both(high_.size());
        for (std::size_t i = 0; i < both.size(); ++i)
          both[i] = {high_[i], low_[i]};
        return Vector<T>(context, std::span<DoubleDouble const>(both));
      }
    return Vector<T>(context, std::span<double const>(high_));
  }

  /// Scales the solution for this right-hand side back to that for b; with a constant null space its mean is subtracted first.
  /// `low`: its low parts in DoubleDouble, else empty. Collective.
  void unscale(std::span<double> high, std::span<double> low) const {
    if (project_)
      subtract_mean(high, low);
    for (std::span<double> const part : {high, low}) {
      auto const n = static_cast<std::int64_t>(part.size());
#pragma omp parallel for schedule(static)
      for (std::int64_t i = 0; i < n; ++i)
        part[i] = std::scalbn(part[i], exponent_);
    }
  }

private:
  static constexpr bool extended = std::is_same_v<T, DoubleDouble>;

  void subtract_mean(std::span<double> high, std::span<double> low) const {
    std::int64_t const n = sum_over(ranks_, static_cast<std::int64_t>(high.size()));
    auto const at = [&](std::size_t i) {
      if constexpr (extended)
        return DoubleDouble{high[i], low[i]};
      else
        return high[i];
    };
    // Twice: the first mean is rounded at the size of the entries, the second at the size of what is left.
    for (int pass = 0; pass < 2; ++pass) {
      T sum = 0;
      for (std::size_t i = 0; i < high.size(); ++i)
        sum += at(i);
      T const mean = sum_over(ranks_, sum) / static_cast<T>(n);
      for (std::size_t i = 0; i < high.size(); ++i) {
        T const rest = at(i) - mean;
        if constexpr (extended) {
          high[i] = rest.hi;
          low[i] = rest.lo;
        } else
          high[i] = rest;
      }
    }
  }

  HostVector<double> high_, low_;  ///< low parts are empty where all are 0
  int exponent_ = 0;
  bool project_;
  Communicator& ranks_;
};

}  // namespace poisson
