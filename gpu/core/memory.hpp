#pragma once

#include "gpu/core/context.hpp"

#include <cstdint>
#include <string>

namespace poisson {

/// A number of bytes as text: "12.3 GiB (13207024435 bytes)", or "96 bytes".
[[nodiscard]] std::string format_bytes(std::int64_t bytes);

/// Throws OutOfMemoryError when the context's device has less free memory than `bytes`: "`what` needs ... ; ... are free;
/// `advice`". Does nothing on the host, where the operating system decides.
void require_memory(Context const& context, std::int64_t bytes, std::string const& what, std::string const& advice);

/// std::memcpy by all threads of the CPU backend.
void parallel_copy(void* to, void const* from, std::int64_t bytes);

}  // namespace poisson
