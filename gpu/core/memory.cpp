#include "gpu/core/memory.hpp"

#include "gpu/core/error.hpp"

#include <fstream>
#include <malloc.h>
#include <sstream>
#include <unistd.h>

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
  constexpr std::int64_t small = 16 << 20;  // to ask a device takes some time, and an allocation tells it, without advice
  if (context.backend() == Backend::cpu || bytes <= small)
    return;
  std::int64_t const free = context.description().memory_free;
  if (bytes > free)
    throw OutOfMemoryError(what + " needs " + format_bytes(bytes) + " of device memory, and " + format_bytes(free) + " are free; " +
                           advice);
}

std::int64_t host_bytes_held() {
  std::int64_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;  // what VmRSS tells, without the rest of /proc/self/status
  return resident * ::sysconf(_SC_PAGESIZE);
}

std::int64_t host_peak_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == "VmHWM:") {
      std::int64_t kibibytes = 0;
      status >> kibibytes;
      return 1024 * kibibytes;
    }
  return 0;
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
