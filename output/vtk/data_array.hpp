#pragma once

#include "gpu/core/host_vector.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <omp.h>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace poisson::output {

enum class ScalarType { uint8, int32, int64, float32, float64 };
[[nodiscard]] std::size_t size_of(ScalarType type);

/// The values of an array of a file: in memory, or made piece by piece.
struct DataArray {
  std::string name;
  ScalarType type = ScalarType::float64;
  int components = 1;
  std::int64_t n_values = 0;   ///< components included
  void const* data = nullptr;  ///< n_values values; null: `fill` makes them
  /// Writes the values first ... first + n - 1 to `out`. Called by several threads at once; must not throw.
  std::function<void(std::int64_t first, std::int64_t n, void* out)> fill{};

  [[nodiscard]] std::size_t bytes() const { return size_of(type) * static_cast<std::size_t>(n_values); }
};

/// Block i of an array that is cut into blocks of `block_bytes`; the last one may be shorter. `memory` is used where the values
/// have to be made.
[[nodiscard]] std::span<unsigned char const> block_of(DataArray const& array, std::size_t block_bytes, std::size_t i,
                                                      HostVector<unsigned char>& memory);

/// How many blocks are packed before they are written: 1 MiB for each thread, but at least 4 MiB and 8 blocks, so that threads
/// hardly wait for each other at the end of a batch.
[[nodiscard]] std::size_t blocks_of_a_batch(std::size_t block_bytes);

/// Threads pack the blocks first ... first + count - 1 of an array; they take them in this order. `memory` has an entry for every
/// thread. `pack(thread, block)` returns the bytes of a block as they stand in the file; they are valid until the thread's next
/// call. `take(b, packed)` is called with those of block first + b, by the same thread, and must not throw. If a block cannot be
/// packed, it is taken as empty, and what `pack` threw is thrown when all blocks are taken.
template <class Pack, class Take>
void pack_blocks(DataArray const& array, std::size_t block_bytes, std::size_t first, std::size_t count,
                 std::vector<HostVector<unsigned char>>& memory, Pack const& pack, Take const& take) {
  std::atomic<std::size_t> taken = 0;
  std::exception_ptr failure;
#pragma omp parallel if (count > 1)
  for (std::size_t b = taken++; b < count; b = taken++) {
    auto const thread = static_cast<std::size_t>(omp_get_thread_num());
    std::span<unsigned char const> packed;
    try {
      packed = pack(thread, block_of(array, block_bytes, first + b, memory[thread]));
    } catch (...) {
#pragma omp critical(poisson_output_pack_blocks)
      failure = std::current_exception();
    }
    take(b, packed);
  }
  if (failure)
    std::rethrow_exception(std::move(failure));
}

}  // namespace poisson::output
