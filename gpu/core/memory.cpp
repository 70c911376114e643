#include "gpu/core/memory.hpp"

#include "gpu/core/error.hpp"

#include <sstream>

namespace poisson {

std::string format_bytes(std::int64_t bytes) {
  std::ostringstream text;
  if (bytes < 1024) {
    text << bytes << " bytes";
    return text.str();
  }
  char const* const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = static_cast<double>(bytes) / 1024;
  int unit = 0;
  for (; value >= 1024 && unit < 4; ++unit)
    value /= 1024;
  text.precision(4);
  text << value << ' ' << units[unit] << " (" << bytes << " bytes)";
  return text.str();
}

void require_memory(Context const& context, std::int64_t bytes, std::string const& what, std::string const& advice) {
  if (context.backend() == Backend::cpu)
    return;
  std::int64_t const free = context.description().memory_free;
  if (bytes > free)
    throw OutOfMemoryError(what + " needs " + format_bytes(bytes) + " of device memory, and " + format_bytes(free) + " are free; " +
                           advice);
}

}  // namespace poisson
