#include "output/vtk/data_array.hpp"

#include <algorithm>

namespace poisson::output {

std::size_t size_of(ScalarType type) {
  switch (type) {
  case ScalarType::uint8:
    return 1;
  case ScalarType::int32:
  case ScalarType::float32:
    return 4;
  case ScalarType::int64:
  case ScalarType::float64:
    break;
  }
  return 8;
}

std::span<unsigned char const> block_of(DataArray const& array, std::size_t block_bytes, std::size_t i,
                                        HostVector<unsigned char>& memory) {
  std::size_t const at = i * block_bytes, size = std::min(block_bytes, array.bytes() - at), value_bytes = size_of(array.type);
  if (array.data != nullptr)
    return {static_cast<unsigned char const*>(array.data) + at, size};
  memory.resize(block_bytes);
  array.fill(static_cast<std::int64_t>(at / value_bytes), static_cast<std::int64_t>(size / value_bytes), memory.data());
  return {memory.data(), size};
}

std::size_t blocks_of_a_batch(std::size_t block_bytes) {
  std::size_t const least = std::max(std::size_t{4} << 20, 8 * block_bytes);
  return std::max(static_cast<std::size_t>(omp_get_max_threads()) << 20, least) / block_bytes;
}

}  // namespace poisson::output
