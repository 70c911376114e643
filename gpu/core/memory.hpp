#pragma once

#include "gpu/core/context.hpp"

#include <cstdint>
#include <string>

namespace poisson {

/// A number of bytes as text: "12.3 GiB (13207024435 bytes)", or "96 bytes".
[[nodiscard]] std::string format_bytes(std::int64_t bytes);

/// Throws OutOfMemoryError when the context's device has less free memory than `bytes`: "`what` needs ... ; ... are free;
/// `advice`". Does not look on the host, where the system decides, nor for 16 MiB or less: an allocation tells that, without
/// advice.
void require_memory(Context const& context, std::int64_t bytes, std::string const& what, std::string const& advice);

/// Bytes of memory that the process holds now, its code and that of its libraries included; 0 where the system does not tell.
[[nodiscard]] std::int64_t host_bytes_held();
/// The most that it has held since its start, or since reset_host_peak.
[[nodiscard]] std::int64_t host_peak_bytes();
void reset_host_peak();
/// Gives the system back what was freed: arrays that are smaller than 32 MiB may otherwise stay with the process, and what comes
/// next may not fit into the gaps.
void return_freed_memory();
/// All threads allocate from one heap from now on. glibc's own heaps of threads keep what was freed at their top, also from
/// return_freed_memory. Call it before there are threads.
void share_one_heap();

/// Gives the memory of a vector back. To assign an empty list in braces would keep it.
template <class Vector>
void free_memory(Vector& values) {
  values = Vector();
}

/// std::memcpy by all threads of the CPU backend.
void parallel_copy(void* to, void const* from, std::int64_t bytes);

}  // namespace poisson
