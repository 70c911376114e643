#pragma once

#include "gpu/core/communicator.hpp"
#include "gpu/core/context.hpp"
#include "gpu/core/double_double.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace poisson {

/// The same messages between devices again and again. Every start() is followed by one finish(). Both enqueue, and do not wait.
class DeviceExchange {
public:
  virtual ~DeviceExchange() = default;
  /// Sends what is in the buffers of the sends, which are not written until finish(). Returns where the messages of others will
  /// stand, one after another in the order of the receives, and then the room behind them, until the next start(). What is enqueued
  /// after finish() finds the messages there.
  virtual std::byte* start() = 0;
  virtual void finish() = 0;
};

/// The devices of all ranks, which send each other messages without the host. Functions enqueue, and do not wait; all ranks call
/// them, and those of their exchanges, in the same order. On every device the operations then run one after another in the order of
/// the calls, so that no two ranks wait for each other.
class DeviceRanks {
public:
  virtual ~DeviceRanks() = default;
  /// Buffers of the sends are in the memory of the device; those of the receives are not looked at. What one rank sends to another
  /// that one receives, with as many bytes, a multiple of 4; at most one message each way between two ranks. `behind`: bytes of
  /// room behind the messages that come. Buffers and this outlive the result. Collective. Throws EnvironmentError.
  [[nodiscard]] virtual std::unique_ptr<DeviceExchange> make_exchange(std::span<Message const> sends,
                                                                      std::span<Message const> receives, std::int64_t behind) = 0;
  /// An exchange that puts the `bytes` bytes of every rank, a multiple of 4, one after another in the order of the ranks.
  [[nodiscard]] virtual std::unique_ptr<DeviceExchange> make_gather(void* mine, std::int64_t bytes) = 0;
  /// Replaces `count` numbers in the memory of the device, the same count on every rank, by their sums over the ranks, which are
  /// added in the order of the ranks: all have the same bits in every run.
  virtual void sum(double* numbers, int count) = 0;
  virtual void sum(DoubleDouble* numbers, int count) = 0;
};

/// How data in the memory of contexts goes from rank to rank: devices of one host write into each other's memory, where they can;
/// others exchange by NCCL; else messages go through host memory and the communicator. Results have the same bits. NCCL takes 0.5 s
/// to connect two devices and 0.9 s for four, longer than many runs: it may connect beside them, while messages go through host
/// memory. Ranks then change over together, at the end of a sum over them.
class RankTransport {
public:
  virtual ~RankTransport() = default;
  /// Null: through host memory. Only decide() changes it.
  [[nodiscard]] DeviceRanks* devices() const { return devices_.get(); }
  /// "direct writes between devices"; "NCCL 2.28.9"; or "host memory", and why.
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

/// That of this context and these ranks, made by the first call. Between devices where the contexts of all ranks are on devices, no
/// two on the same: by direct writes where all can open each other's memory, by NCCL where all can load that. The environment
/// variable POISSON_NCCL, on any rank, keeps to host memory if it is 0, to NCCL if it is 1. Preconditions: the contexts of all
/// ranks have the same backend; `ranks` outlives the context. Collective. Throws what the communicator throws.
[[nodiscard]] RankTransport& rank_transport(Context& context, Communicator& ranks);
[[nodiscard]] RankTransport& cuda_rank_transport(Context& context, Communicator& ranks);
/// Lets rank_transport not wait for NCCL, which connects beside what follows. Has no effect where rank_transport was called before.
/// Preconditions: those of rank_transport; every rank is a process. Collective. Throws what the communicator throws.
void connect_beside(Context& context, Communicator& ranks, Connect when);
void connect_cuda_beside(Context& context, Communicator& ranks, Connect when);

}  // namespace poisson
