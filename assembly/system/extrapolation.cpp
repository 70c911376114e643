#include "assembly/system/extrapolation.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdio>
#include <limits>

namespace poisson::assembly {
namespace {

constexpr double none = std::numeric_limits<double>::quiet_NaN();
/// Changes below this share of the quantity are the solver's.
constexpr double rounding = 1e-10;
constexpr double highest_order = 20;
/// Orders of one quantity that differ by more do not belong to one power of h.
constexpr double largest_spread = 0.25;

/// (h1^p - h2^p) / (h2^p - h3^p), which grows with p.
double ratio_of_changes(std::span<double const> h, double p) {
  double const a = std::pow(h[0] / h[2], p), b = std::pow(h[1] / h[2], p);
  return (a - b) / (b - 1);
}

/// The p for which three values are q0 + C h^p. NaN where there is none in (0, highest_order].
double order_of(std::span<double const> h, std::span<double const> q) {
  double const ratio = (q[0] - q[1]) / (q[1] - q[2]);
  double low = 1e-6, high = highest_order;
  if (!(ratio > ratio_of_changes(h, low)) || !(ratio <= ratio_of_changes(h, high)))
    return none;
  for (int step = 0; step < 100; ++step) {
    double const middle = 0.5 * (low + high);
    (ratio_of_changes(h, middle) < ratio ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

std::string two_digits(double x) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.2g", x);
  return buffer;
}

}  // namespace

Extrapolation extrapolate(std::span<double const> h, std::span<double const> q) {
  assert(!q.empty() && h.size() == q.size());
  std::size_t const n = q.size();
  Extrapolation result{q[n - 1], none, none, ""};
  if (!std::all_of(q.begin(), q.end(), [](double x) { return std::isfinite(x); })) {
    result.note = "a value is not finite";
    return result;
  }
  if (n < 3) {
    result.note = "takes three meshes";
    return result;
  }
  auto const last_h = h.last(3), last = q.last(3);
  double const scale = std::max({std::abs(last[0]), std::abs(last[1]), std::abs(last[2])});
  double const before = last[0] - last[1], change = last[1] - last[2];
  if (std::abs(change) <= rounding * scale) {
    result.error = std::abs(change);
    result.note = "does not change";
    return result;
  }
  if (before * change <= 0) {
    result.note = "not monotone";
    return result;
  }
  result.order = order_of(last_h, last);
  if (std::isnan(result.order)) {
    result.note = std::abs(before) > std::abs(change) ? "falls too fast for a power of h" : "does not converge on these meshes";
    return result;
  }
  double const share = 1 / (std::pow(last_h[1] / last_h[2], result.order) - 1);
  result.value = last[2] - share * change;
  result.error = std::abs(share * change);
  if (n > 3) {
    double const earlier = order_of(h.subspan(n - 4, 3), q.subspan(n - 4, 3));
    if (!(std::abs(earlier - result.order) <= largest_spread * std::max(result.order, 1.)))
      result.note =
          std::isnan(earlier) ? "the coarsest of four meshes does not fit" : "order " + two_digits(earlier) + " before: too coarse";
  }
  return result;
}

}  // namespace poisson::assembly
