#include "gpu/kernels/cpu/cpu.hpp"

#include "gpu/core/error.hpp"
#include "gpu/core/memory.hpp"
#include "gpu/core/threads.hpp"
#include "gpu/kernels/backends.hpp"

#include <omp.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <fstream>
#include <new>
#include <sstream>
#include <string>
#include <unistd.h>

namespace poisson {

namespace {

std::string read_cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.rfind("model name", 0) == 0)
      if (auto const colon = line.find(": "); colon != std::string::npos)
        return line.substr(colon + 2);
  return "CPU";
}

std::int64_t available_memory() {
  std::ifstream info("/proc/meminfo");
  for (std::string line; std::getline(info, line);)
    if (line.rfind("MemAvailable:", 0) == 0)
      return std::stoll(line.substr(13)) * 1024;
  return std::int64_t{sysconf(_SC_AVPHYS_PAGES)} * sysconf(_SC_PAGESIZE);
}

}  // namespace

std::string cpu_kernels() {
  return POISSON_PROCESSOR;
}

DeviceDescription cpu_description() {
  DeviceDescription result;
  static std::string const name = read_cpu_name();
  result.name = name;
  result.multiprocessors = usable_threads();
  result.memory_total = std::int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  result.memory_free = available_memory();
  return result;
}

void parallel_copy(void* to, void const* from, std::int64_t bytes) {
  constexpr std::int64_t chunk = std::int64_t{1} << 20;
  std::int64_t const chunks = (bytes + chunk - 1) / chunk;
  if (chunks <= 2) {  // a parallel region of one thread takes longer than a few bytes
    if (bytes > 0)
      std::memcpy(to, from, static_cast<std::size_t>(bytes));
    return;
  }
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < chunks; ++i)
    std::memcpy(static_cast<char*>(to) + i * chunk, static_cast<char const*>(from) + i * chunk,
                static_cast<std::size_t>(std::min(chunk, bytes - i * chunk)));
}

std::unique_ptr<Context> make_cpu_context() {
  return std::make_unique<cpu::CpuContext>();
}

double measure_cpu_copy_bandwidth(double seconds) {
  auto const begin = std::chrono::steady_clock::now();
  auto const spent = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() >= seconds; };
  constexpr std::int64_t bytes = std::int64_t{1} << 27;  // beyond the last-level cache of common machines, and 0.1 s of work
  HostVector<char> from(bytes), to(bytes);
  // Pages are touched piece by piece: that takes most of the time on some machines.
  constexpr std::int64_t piece = bytes / 16;
  for (std::int64_t first = 0; first < bytes; first += piece) {
    if (spent())
      return 0;
#pragma omp parallel for schedule(static)
    for (std::int64_t i = first; i < first + piece; i += 4096)
      from[static_cast<std::size_t>(i)] = to[static_cast<std::size_t>(i)] = static_cast<char>(i >> 12);
  }
  double best = 0;
  for (int repeat = 0; repeat < 4 && !spent(); ++repeat) {
    auto const start = std::chrono::steady_clock::now();
    parallel_copy(to.data(), from.data(), bytes);
    std::chrono::duration<double> const taken = std::chrono::steady_clock::now() - start;
    best = std::max(best, 2.0 * static_cast<double>(bytes) / taken.count());
  }
  return best;
}

namespace cpu {

void* CpuContext::allocate(std::int64_t bytes) {
  if (bytes == 0)
    return nullptr;
  try {
    return allocate_uninitialized(static_cast<std::size_t>(bytes));
  } catch (std::bad_alloc const&) {
    throw OutOfMemoryError("out of memory: " + format_bytes(bytes) + " needed on the host, " + format_bytes(available_memory()) +
                           " available; use a coarser mesh or a machine with more memory");
  }
}

void CpuContext::deallocate(void* pointer, std::int64_t) noexcept {
  deallocate_uninitialized(pointer);
}

void CpuContext::upload(void* to, void const* from_host, std::int64_t bytes) {
  parallel_copy(to, from_host, bytes);
}

void CpuContext::download(void* to_host, void const* from, std::int64_t bytes) {
  parallel_copy(to_host, from, bytes);
}

void CpuContext::set_zero(void* pointer, std::int64_t bytes) {
  for_blocks(bytes, bytes / 8, [&](std::int64_t begin, std::int64_t end, std::int64_t) {
    std::memset(static_cast<char*>(pointer) + begin, 0, static_cast<std::size_t>(end - begin));
  });
}

void CpuContext::copy(void* to, void const* from, std::int64_t bytes) {
  parallel_copy(to, from, bytes);
}

}  // namespace cpu
}  // namespace poisson
