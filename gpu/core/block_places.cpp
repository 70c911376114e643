#include "gpu/core/block_places.hpp"

namespace poisson {

HostVector<std::int32_t> BlockPlaces::list() const {
  HostVector<std::int32_t> result(size());
  std::int64_t const n = around_.size();
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < n; ++i)
    result[static_cast<std::size_t>(i)] = (*this)[static_cast<std::size_t>(i)];
  return result;
}

}  // namespace poisson
