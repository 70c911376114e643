#pragma once

#include "gpu/core/error.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <unistd.h>

namespace poisson {

/// Bytes in a file of the folder for temporary files, for libraries that read files by their names (HDF5 takes no descriptors, nor
/// files without a name). It goes with the object; processes that were started since must not need it longer.
class TemporaryFile {
public:
  /// Throws EnvironmentError.
  explicit TemporaryFile(std::string_view content) {
    std::error_code ignored;
    std::filesystem::path const folder = std::filesystem::temp_directory_path(ignored);
    path_ = ((ignored ? "/tmp" : folder) / "poisson-XXXXXX").string();
    int const descriptor = mkstemp(path_.data());
    bool good = descriptor >= 0;
    while (good && !content.empty()) {
      ssize_t const n = ::write(descriptor, content.data(), content.size());
      if (n > 0)
        content.remove_prefix(static_cast<std::size_t>(n));
      else
        good = n < 0 && errno == EINTR;
    }
    std::string const reason = std::strerror(errno);
    if (descriptor >= 0)
      close(descriptor);
    if (good)
      return;
    if (descriptor >= 0)
      unlink(path_.c_str());
    throw EnvironmentError("cannot write the temporary file " + path_ + ": " + reason);
  }
  TemporaryFile(TemporaryFile const&) = delete;
  TemporaryFile& operator=(TemporaryFile const&) = delete;
  ~TemporaryFile() { unlink(path_.c_str()); }

  [[nodiscard]] std::string const& path() const { return path_; }

private:
  std::string path_;
};

}  // namespace poisson
