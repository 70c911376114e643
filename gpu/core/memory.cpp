#include "gpu/core/memory.hpp"

#include "gpu/core/error.hpp"

#include <fstream>
#include <malloc.h>
#include <sstream>

namespace poisson {

namespace {

/// Reads the bytes from the line "name: number kB" of /proc/self/status; 0 where there is no such line.
std::int64_t status_bytes(char const* name) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == name) {
      std::int64_t kibibytes = 0;
      status >> kibibytes;
      return 1024 * kibibytes;
    }
  return 0;
}

}  // namespace

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

std::int64_t host_bytes_held() {
  return status_bytes("VmRSS:");
}

std::int64_t host_peak_bytes() {
  return status_bytes("VmHWM:");
}

void reset_host_peak() {
  return_freed_memory();  // it would count again
  std::ofstream("/proc/self/clear_refs") << "5";
}

void return_freed_memory() {
  constexpr std::size_t not_worth_it = 4 << 20;  // bytes: to have them again takes longer than a small run has
  if (::mallinfo2().fordblks > not_worth_it)
    ::malloc_trim(0);
}

void share_one_heap() {
  ::mallopt(M_ARENA_MAX, 1);
}

}  // namespace poisson
