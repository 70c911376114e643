#pragma once

#include "gpu/core/array.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace poisson::testing {

template <class V>
Array<V> uploaded(Context& context, std::vector<V> const& v) {
  return Array<V>(context, std::span<V const>(v));
}
template <class V>
std::vector<V> downloaded(Array<V> const& v) {
  std::vector<V> result(static_cast<std::size_t>(v.size()));
  v.download(std::span<V>(result));
  return result;
}

}  // namespace poisson::testing
