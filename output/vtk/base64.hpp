#pragma once

#include <cstddef>

namespace poisson::output {

/// Characters that n bytes take in base64 (RFC 4648), padding included.
[[nodiscard]] constexpr std::size_t base64_size(std::size_t n) {
  return (n + 2) / 3 * 4;
}

/// Writes the base64_size(n) characters of n bytes; '=' fills up the last group.
void encode_base64(unsigned char const* in, std::size_t n, char* out);

}  // namespace poisson::output
