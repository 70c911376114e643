#pragma once

#include "gpu/core/names.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace poisson {

enum class Backend { cpu, cuda };
template <>
struct Names<Backend> {
  static constexpr std::array<Named<Backend>, 2> values{{{Backend::cpu, "cpu"}, {Backend::cuda, "cuda"}}};
};

struct DeviceDescription {
  std::string name;
  std::string compute_capability;  ///< "9.0"; empty for the host
  std::string uuid;                ///< that no other device has; empty for the host
  int multiprocessors = 0;         ///< hardware threads for the host
  std::int64_t memory_total = 0;   ///< bytes
  std::int64_t memory_free = 0;    ///< bytes
};

/// One device of one backend: arrays, matrices and solvers are made with it and run on it. On a device, work is enqueued on one
/// stream and runs in the order of the calls. Not copyable. Precondition: it outlives everything made with it, and is used by one
/// thread at a time, which has called use_in_this_thread() or has made it.
class Context {
public:
  Context() = default;
  Context(Context const&) = delete;
  Context& operator=(Context const&) = delete;
  virtual ~Context() = default;
  [[nodiscard]] virtual Backend backend() const = 0;
  [[nodiscard]] virtual DeviceDescription description() const = 0;
  /// The most bytes allocated at once on a device, since its start or reset_memory_peak; 0 on the host.
  [[nodiscard]] virtual std::int64_t memory_peak() const = 0;
  virtual void reset_memory_peak() = 0;
  [[nodiscard]] virtual std::int64_t memory_used() const = 0;  ///< bytes allocated on a device now; 0 on the host
  virtual void synchronize() = 0;                              ///< waits until all enqueued work is done
  virtual void use_in_this_thread() = 0;                       ///< makes its device the current one of the calling thread

  /// Memory of the backend; use it through core/array.hpp. Host pointers of upload and download need not be pinned.
  /// Throws OutOfMemoryError, whose message tells the bytes needed and the bytes free.
  [[nodiscard]] virtual void* allocate(std::int64_t bytes) = 0;
  virtual void deallocate(void* pointer, std::int64_t bytes) noexcept = 0;
  /// Gives back to the system what was freed and kept for the next arrays, but for a small part: other programs can have it then.
  virtual void return_freed_memory() {}
  virtual void upload(void* to, void const* from_host, std::int64_t bytes) = 0;    ///< returns when `from_host` may be reused
  virtual void download(void* to_host, void const* from, std::int64_t bytes) = 0;  ///< returns when the data is there
  virtual void set_zero(void* pointer, std::int64_t bytes) = 0;
  virtual void copy(void* to, void const* from, std::int64_t bytes) = 0;  ///< within this context's memory
};

}  // namespace poisson
