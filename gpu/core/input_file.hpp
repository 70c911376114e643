#pragma once

#include "gpu/core/error.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <ios>
#include <system_error>

/// Files that a user names. A pipe or a device in place of one could keep the program waiting for ever, and compressed data could
/// fill the memory.
namespace poisson {

/// Throws EnvironmentError where a file cannot be opened because of the machine, and not of the file: `error`, a value of errno,
/// says that memory or file descriptors are missing.
inline void require_resources(int error, std::filesystem::path const& path) {
  if (error == ENOMEM || error == EMFILE || error == ENFILE)
    throw EnvironmentError("cannot open '" + path.string() + "': " + std::generic_category().message(error) +
                           (error == ENOMEM ? "" : "; the limit is shown by 'ulimit -n'"));
}

/// Opens a file; what is there and no regular file is not opened. Throws what require_resources throws.
[[nodiscard]] inline std::ifstream open_regular_file(std::filesystem::path const& path, std::ios::openmode mode = std::ios::in) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored))
    return {};
  errno = 0;
  std::ifstream file(path, mode);
  if (!file)
    require_resources(errno, path);
  return file;
}

/// The most bytes that a compressed file may unpack to: 200 times its size, or 64 MiB. Meshes and matrices are compressed to a
/// tenth; zlib can compress what never changes to a thousandth.
constexpr std::int64_t largest_unpacking_ratio = 200;
[[nodiscard]] constexpr std::int64_t most_unpacked_bytes(std::int64_t compressed_bytes) {
  constexpr std::int64_t always = std::int64_t{1} << 26;
  return std::max(always, compressed_bytes * largest_unpacking_ratio);
}

}  // namespace poisson
