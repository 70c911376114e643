#pragma once

#include "gpu/core/double_double.hpp"
#include "gpu/core/vector.hpp"
#include "tests/gpu/matrices.hpp"

#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

/// Numbers of 113 bits to compare with, random ones of every precision, and arrays on the host.
namespace poisson::testing {

__extension__ using Quad = __float128;

inline Quad quad(double v) {
  return static_cast<Quad>(v);
}
inline Quad quad(DoubleDouble v) {
  return static_cast<Quad>(v.hi) + static_cast<Quad>(v.lo);
}
inline double size_of(Quad v) {
  return static_cast<double>(v < 0 ? -v : v);
}

/// n numbers whose low parts count.
template <class T>
std::vector<T> random_numbers(std::int64_t n, unsigned seed) {
  auto const high = random_vector(n, seed), low = random_vector(n, seed + 1);
  std::vector<T> v;
  for (std::size_t i = 0; i < high.size(); ++i)
    if constexpr (std::is_same_v<T, DoubleDouble>)
      v.push_back(two_sum(high[i], high[i] * low[i] * 0x1p-53));
    else
      v.push_back(static_cast<T>(high[i]));
  return v;
}

template <class T>
std::vector<T> download(Vector<T> const& v) {
  std::vector<T> host(static_cast<std::size_t>(v.size()));
  v.download(std::span<T>(host));
  return host;
}
/// The first entry.
template <class T>
T download(Array<T> const& v) {
  T value = std::numeric_limits<double>::quiet_NaN();
  v.download(std::span<T>(&value, 1));
  return value;
}

}  // namespace poisson::testing
