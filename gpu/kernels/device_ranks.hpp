#pragma once

#include "gpu/core/communicator.hpp"
#include "gpu/core/context.hpp"
#include "gpu/core/double_double.hpp"

#include <memory>
#include <span>
#include <string>

namespace poisson {

/// The devices of all ranks, which send each other messages without the host. Every function enqueues, and does not wait; all ranks
/// call them in the same order, but for exchanges in which a rank has no messages. On every device the operations then run one
/// after another in the order of the calls, so that no two ranks wait for each other.
class DeviceRanks {
public:
  virtual ~DeviceRanks() = default;
  /// Sends and receives, beside what is enqueued on the context from now on, and behind what was before. Buffers are in the memory
  /// of the device; until finish(), those of sends are not written and those of receives not touched. What one rank sends to
  /// another that one receives, with as many bytes.
  virtual void start(std::span<Message const> sends, std::span<Message const> receives) = 0;
  /// What is enqueued on the context from now on waits for all exchanges that were started.
  virtual void finish() = 0;
  /// Puts the `bytes` bytes of every rank one after another into `all`, in the order of the ranks; in the memory of the device.
  virtual void all_gather(void const* mine, std::int64_t bytes, void* all) = 0;
  /// Replaces `count` numbers in the memory of the device, the same count on every rank, by their sums over the ranks, which are
  /// added in the order of the ranks: all have the same bits in every run.
  virtual void sum(double* numbers, int count) = 0;
  virtual void sum(DoubleDouble* numbers, int count) = 0;
};

/// How data in the memory of contexts goes from rank to rank: between devices, or through host memory and the communicator. Results
/// have the same bits. NCCL takes 0.5 s to connect two devices and 0.9 s for four, longer than many runs: it may connect beside
/// them, while messages go through host memory. Ranks then change over together, at the end of a sum over them.
class RankTransport {
public:
  virtual ~RankTransport() = default;
  /// Null: through host memory. Only decide() changes it.
  [[nodiscard]] DeviceRanks* devices() const { return devices_.get(); }
  /// "NCCL 2.28.9"; or "host memory", and why.
  [[nodiscard]] virtual std::string name() const { return "host memory"; }
  /// What this rank adds to a number that is summed over the ranks; all hand the sum to decide().
  [[nodiscard]] virtual double vote() { return 0; }
  /// Collective. Throws what the communicator throws.
  virtual void decide(double /*votes*/) {}

protected:
  std::unique_ptr<DeviceRanks> devices_;
};

/// When NCCL connects.
enum class Connect {
  soon,           ///< beside what follows
  in_long_solves  ///< when sums through host memory have gone on for half a second
};

/// Empty when NCCL can be loaded; otherwise why not.
[[nodiscard]] std::string why_no_nccl();
/// "2.28.9". Throws EnvironmentError where it cannot be loaded.
[[nodiscard]] std::string nccl_version();

/// That of this context and these ranks, made by the first call: NCCL where the contexts of all ranks are on devices, no two on the
/// same, and all ranks can load it. The environment variable POISSON_NCCL=0, on any rank, keeps to host memory. Preconditions: the
/// contexts of all ranks have the same backend; `ranks` outlives the context. Collective. Throws what the communicator throws.
[[nodiscard]] RankTransport& rank_transport(Context& context, Communicator& ranks);
[[nodiscard]] RankTransport& cuda_rank_transport(Context& context, Communicator& ranks);
/// Lets rank_transport not wait for NCCL, which connects beside what follows. Has no effect where rank_transport was called before.
/// Preconditions: those of rank_transport; every rank is a process. Collective. Throws what the communicator throws.
void connect_beside(Context& context, Communicator& ranks, Connect when);
void connect_cuda_beside(Context& context, Communicator& ranks, Connect when);

}  // namespace poisson
