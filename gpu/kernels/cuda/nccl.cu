#include "gpu/kernels/device_ranks.hpp"

#include "gpu/core/array.hpp"
#include "gpu/core/dynamic_library.hpp"
#include "gpu/core/error.hpp"
#include "gpu/kernels/cuda/cuda.cuh"
#include "gpu/kernels/cuda/direct_ranks.cuh"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace poisson {

namespace {

// What is needed of nccl.h, so that neither the build nor the start of the program needs NCCL. Constants and signatures are those
// of version 2.7, the first with ncclSend, and of all since.
using NcclResult = int;  // of an enumeration; 0: success
using NcclComm = struct NcclCommunicator*;
struct NcclUniqueId {
  std::array<char, 128> internal;
};
constexpr int nccl_bytes = 0;  // ncclInt8

/// Messages between devices of a machine go through memory that NCCL shares by CUDA's older calls, unless the user decides: on two
/// H200 the first messages then take 0.03 s in place of 0.35 s, and all others as long as before.
DynamicLibrary load_nccl() {
  setenv("NCCL_CUMEM_ENABLE", "0", 0);
  return {"NCCL", {"libnccl.so.2", "libnccl.so", "/usr/local/cuda/lib64/libnccl.so.2", "/usr/local/cuda/lib/libnccl.so.2"}};
}

struct Nccl {
  DynamicLibrary library = load_nccl();
  NcclResult (*GetVersion)(int* version) = nullptr;
  char const* (*GetErrorString)(NcclResult result) = nullptr;
  NcclResult (*GetUniqueId)(NcclUniqueId* id) = nullptr;
  NcclResult (*CommInitRank)(NcclComm* comm, int size, NcclUniqueId id, int rank) = nullptr;
  NcclResult (*CommDestroy)(NcclComm comm) = nullptr;
  NcclResult (*CommAbort)(NcclComm comm) = nullptr;
  NcclResult (*AllGather)(void const* mine, void* all, std::size_t count, int type, NcclComm comm, cudaStream_t stream) = nullptr;
  NcclResult (*Send)(void const* data, std::size_t count, int type, int to, NcclComm comm, cudaStream_t stream) = nullptr;
  NcclResult (*Recv)(void* data, std::size_t count, int type, int from, NcclComm comm, cudaStream_t stream) = nullptr;
  NcclResult (*GroupStart)() = nullptr;
  NcclResult (*GroupEnd)() = nullptr;

  Nccl() {
    library.find(GetVersion, "ncclGetVersion");
    library.find(GetErrorString, "ncclGetErrorString");
    library.find(GetUniqueId, "ncclGetUniqueId");
    library.find(CommInitRank, "ncclCommInitRank");
    library.find(CommDestroy, "ncclCommDestroy");
    library.find(CommAbort, "ncclCommAbort");
    library.find(AllGather, "ncclAllGather");
    library.find(Send, "ncclSend");
    library.find(Recv, "ncclRecv");
    library.find(GroupStart, "ncclGroupStart");
    library.find(GroupEnd, "ncclGroupEnd");
  }
};

Nccl const& nccl() {
  static Nccl const functions;
  return functions;
}

void check_nccl(NcclResult result, char const* what) {
  if (result == 0)
    return;
  cudaGetLastError();  // clears an error that is not sticky
  throw EnvironmentError(std::string("NCCL: ") + what + " failed: " + nccl().GetErrorString(result) +
                         " (NCCL_DEBUG=WARN tells more; with POISSON_NCCL=0 messages go through host memory)");
}

/// numbers[i] = sum over r of all[r * count + i]; one thread for each.
template <class T>
__global__ void sum_of_ranks_kernel(int ranks, int count, T const* all, T* numbers) {
  if (int const i = static_cast<int>(threadIdx.x); i < count)
    numbers[i] = cuda::sum_of_ranks<T>(ranks, [&](int r) { return all[std::int64_t{r} * count + i]; });
}

/// One NCCL communicator on two streams: sums on the context's own, exchanges on another one with priority. Operations of a
/// communicator must run in one order on all ranks. Here they do: an exchange begins behind all that was enqueued on the context's
/// stream, sums among it, and a sum waits for the exchanges started before it.
class NcclRanks final : public DeviceRanks {
public:
  /// What can fail on one rank alone; nothing of it waits for others. Where ranks are threads, a thread that allocates pinned
  /// memory or loads code may wait for kernels of all devices, which may wait for that thread: all of this happens here.
  NcclRanks(cuda::CudaContext& device, int size, bool shares_process)
      : device_(device),
        size_(size),
        shares_process_(shares_process),
        gathered_(device, std::int64_t{size} * most_at_once),
        number_(device, 1) {
    DoubleDouble number = 0;
    number_.upload(std::span<DoubleDouble const>(&number, 1));
    number_.download(std::span<DoubleDouble>(&number, 1));
    add_up<double>(0, nullptr);
    add_up<DoubleDouble>(0, nullptr);
    device.synchronize();
    int least = 0, greatest = 0;
    POISSON_CUDA_CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    POISSON_CUDA_CHECK(cudaStreamCreateWithPriority(&exchange_stream_, cudaStreamNonBlocking, greatest));
    for (cudaEvent_t* const event : {&packed_, &begun_, &done_})
      POISSON_CUDA_CHECK(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
  }

  /// Waits for all other ranks, which call it too, and sends the first messages, which take longer than others. May be called by a
  /// thread of its own: it leaves the stream of the context alone.
  void connect(NcclUniqueId const& id, int rank) {
    device_.use_in_this_thread();
    check_nccl(nccl().CommInitRank(&comm_, size_, id, rank), "ncclCommInitRank");
    check_nccl(nccl().AllGather(number_.data(), gathered_.data(), sizeof(DoubleDouble), nccl_bytes, comm_, exchange_stream_),
               "ncclAllGather");
    if (size_ <= most_connected) {
      check_nccl(nccl().GroupStart(), "ncclGroupStart");
      NcclResult result = 0;
      for (int other = 0; other < size_; ++other) {
        if (other == rank)
          continue;
        NcclResult const received = nccl().Recv(gathered_.data() + other, 1, nccl_bytes, other, comm_, exchange_stream_),
                         sent = nccl().Send(number_.data(), 1, nccl_bytes, other, comm_, exchange_stream_);
        result = result != 0 ? result : received != 0 ? received : sent;
      }
      NcclResult const ended = nccl().GroupEnd();
      check_nccl(result != 0 ? result : ended, "the first exchange of messages");
    }
    POISSON_CUDA_CHECK(cudaStreamSynchronize(exchange_stream_));
  }

  /// Sums numbers whose sum is known. Collective.
  void check_sums(int rank) {
    // Both before any is looked at: ranks that find something wrong must not leave others waiting.
    double const sum = sum_of_numbers<double>(rank), extended = sum_of_numbers<DoubleDouble>(rank).hi;
    if (double const expected = 0.5 * size_ * (size_ + 1); sum != expected || extended != expected)
      throw EnvironmentError("NCCL: the first sums of numbers are wrong");
  }

  /// All ranks end at about the same time, or by an exception that ends all of them: then nobody waits for the others.
  ~NcclRanks() override {
    if (comm_ != nullptr) {
      if (std::uncaught_exceptions() > 0 || failed_)
        static_cast<void>(nccl().CommAbort(comm_));
      else {
        static_cast<void>(cudaStreamSynchronize(exchange_stream_));
        static_cast<void>(cudaStreamSynchronize(device_.stream()));
        if (shares_process_)  // else the end of the process does it, in less than the 0.4 s that NCCL takes
          static_cast<void>(nccl().CommDestroy(comm_));
      }
    }
    for (cudaEvent_t const event : {packed_, begun_, done_})
      if (event != nullptr)
        static_cast<void>(cudaEventDestroy(event));
    if (exchange_stream_ != nullptr)
      static_cast<void>(cudaStreamDestroy(exchange_stream_));
  }

  /// It did not connect everywhere.
  void give_up() { failed_ = true; }

  std::unique_ptr<DeviceExchange> make_exchange(std::span<Message const> sends, std::span<Message const> receives,
                                                std::int64_t behind) override {
    return std::make_unique<Messages>(*this, sends, receives, behind);
  }
  std::unique_ptr<DeviceExchange> make_gather(void* mine, std::int64_t bytes) override {
    return std::make_unique<Gather>(*this, mine, bytes);
  }

  void sum(double* numbers, int count) override { sum_of(numbers, count); }
  void sum(DoubleDouble* numbers, int count) override { sum_of(numbers, count); }

private:
  class Messages final : public DeviceExchange {
  public:
    Messages(NcclRanks& ranks, std::span<Message const> sends, std::span<Message const> receives, std::int64_t behind)
        : ranks_(ranks), sends_(sends.begin(), sends.end()), receives_(receives.begin(), receives.end()) {
      std::int64_t bytes = 0;
      for (Message const& message : receives_)
        bytes += message.bytes;
      come_ = Array<std::byte>(ranks.device_, bytes + behind);
      bytes = 0;
      for (Message& message : receives_) {
        message.data = come_.data() + bytes;
        bytes += message.bytes;
      }
    }
    std::byte* start() override {
      ranks_.start(sends_, receives_);
      return come_.data();
    }
    void finish() override { ranks_.finish(); }

  private:
    NcclRanks& ranks_;
    std::vector<Message> sends_, receives_;
    Array<std::byte> come_;
  };

  class Gather final : public DeviceExchange {
  public:
    Gather(NcclRanks& ranks, void const* mine, std::int64_t bytes)
        : ranks_(ranks), mine_(mine), bytes_(bytes), all_(ranks.device_, ranks.size_ * bytes) {}
    std::byte* start() override {
      ranks_.all_gather(mine_, bytes_, all_.data());
      return all_.data();
    }
    void finish() override {}

  private:
    NcclRanks& ranks_;
    void const* mine_;
    std::int64_t bytes_;
    Array<std::byte> all_;
  };

  void start(std::span<Message const> sends, std::span<Message const> receives) {
    if (sends.empty() && receives.empty())
      return;
    POISSON_CUDA_CHECK(cudaEventRecord(packed_, device_.stream()));
    POISSON_CUDA_CHECK(cudaStreamWaitEvent(exchange_stream_, packed_, 0));
    // Kernels that follow on the context's stream may fill the device for long: NCCL's is to be there first.
    POISSON_CUDA_CHECK(cudaEventRecord(begun_, exchange_stream_));
    POISSON_CUDA_CHECK(cudaStreamWaitEvent(device_.stream(), begun_, 0));
    // In a group messages wait for no other, so that their order does not matter. A group that was begun must be ended.
    check_nccl(nccl().GroupStart(), "ncclGroupStart");
    NcclResult result = 0;
    for (Message const& message : receives)
      if (result == 0)
        result =
            nccl().Recv(message.data, static_cast<std::size_t>(message.bytes), nccl_bytes, message.rank, comm_, exchange_stream_);
    for (Message const& message : sends)
      if (result == 0)
        result =
            nccl().Send(message.data, static_cast<std::size_t>(message.bytes), nccl_bytes, message.rank, comm_, exchange_stream_);
    NcclResult const ended = nccl().GroupEnd();
    check_nccl(result != 0 ? result : ended, "an exchange of messages");
    POISSON_CUDA_CHECK(cudaEventRecord(done_, exchange_stream_));
    under_way_ = true;
  }

  void finish() {
    if (under_way_)
      POISSON_CUDA_CHECK(cudaStreamWaitEvent(device_.stream(), done_, 0));
    under_way_ = false;
  }

  void all_gather(void const* mine, std::int64_t bytes, void* all) {
    if (under_way_)  // it stays so: who started the exchange calls finish()
      POISSON_CUDA_CHECK(cudaStreamWaitEvent(device_.stream(), done_, 0));
    if (bytes > 0)
      check_nccl(nccl().AllGather(mine, all, static_cast<std::size_t>(bytes), nccl_bytes, comm_, device_.stream()),
                 "ncclAllGather");
  }

  static constexpr int most_at_once = 32;    // a warp
  static constexpr int most_connected = 16;  // ranks that all send each other the first messages

  template <class T>
  T sum_of_numbers(int rank) {
    T number = static_cast<double>(rank + 1);
    T* const on_device = reinterpret_cast<T*>(number_.data());
    device_.upload(on_device, &number, sizeof number);
    sum(on_device, 1);
    device_.download(&number, on_device, sizeof number);
    return number;
  }

  /// Of what is in gathered_.
  template <class T>
  void add_up(int count, T* numbers) {
    auto const* const all = reinterpret_cast<T const*>(gathered_.data());
    sum_of_ranks_kernel<T><<<1, most_at_once, 0, device_.stream()>>>(size_, count, all, numbers);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  template <class T>
  void sum_of(T* numbers, int count) {
    for (int first = 0; first < count; first += most_at_once) {
      int const n = std::min(most_at_once, count - first);
      all_gather(numbers + first, n * std::int64_t{sizeof(T)}, gathered_.data());
      add_up(n, numbers + first);
    }
  }

  cuda::CudaContext& device_;
  int size_;
  bool shares_process_;                    ///< ranks are threads of one process
  Array<DoubleDouble> gathered_, number_;  ///< of the largest type that is summed
  NcclComm comm_ = nullptr;
  cudaStream_t exchange_stream_ = nullptr;
  /// The messages of the context's stream are complete; the exchange is about to start; it is done.
  cudaEvent_t packed_ = nullptr, begun_ = nullptr, done_ = nullptr;
  bool under_way_ = false, failed_ = false;
};

bool is_set_to(char const* variable, char const* value) {
  char const* const text = std::getenv(variable);
  return text != nullptr && std::strcmp(text, value) == 0;
}

/// Why this rank cannot use NCCL, from what all ranks know; empty: it can.
std::string why_no_nccl(std::vector<cuda::RankPlace> const& places, int rank) {
  cuda::RankPlace const& mine = places[static_cast<std::size_t>(rank)];
  for (std::size_t r = 0; r < places.size(); ++r) {
    if (static_cast<int>(r) == rank)
      continue;
    // It then writes into buffers of other threads' devices, which memory of pools does not allow.
    if (mine.same_process(places[r]) && !is_set_to("NCCL_P2P_DIRECT_DISABLE", "1"))
      return "ranks are threads of one process, for which NCCL_P2P_DIRECT_DISABLE must be 1";
  }
  return poisson::why_no_nccl();
}

/// Every step that can fail on one rank alone ends with a common decision, and only then one follows that waits for others.
class CudaTransport final : public RankTransport {
public:
  CudaTransport(cuda::CudaContext& device, Communicator& ranks) : device_(device), ranks_(ranks) {}

  /// Waits until devices are connected, or cannot be. Collective.
  void connect() {
    find_places();
    begin(std::launch::deferred);
    end();
  }
  /// The same, but that NCCL connects beside what follows. Collective.
  void connect_beside(Connect when) {
    find_places();
    if (when == Connect::soon)
      begin(std::launch::async | std::launch::deferred);
  }

  [[nodiscard]] std::string name() const override {
    switch (state_) {
    case State::waiting:
      return "host memory: NCCL connects if the solve takes long" +
             (why_not_direct_.empty() ? "" : ", no direct writes: " + why_not_direct_);
    case State::connecting:
      return "host memory until " + version_ + " is connected";
    case State::connected:
      return version_ + (why_not_direct_.empty() ? "" : ", no direct writes: " + why_not_direct_);
    case State::direct:
      return "direct writes between devices";
    case State::impossible:
      break;
    }
    return "host memory: " + why_not_;
  }

  /// Waiting: whether sums have gone on for long; connecting: whether this rank has ended it.
  [[nodiscard]] double vote() override {
    using namespace std::chrono;
    if (state_ == State::waiting) {
      auto const now = steady_clock::now();
      if (!first_vote_)
        first_vote_ = now;
      return now - *first_vote_ > patience ? 1 : 0;
    }
    return state_ == State::connecting && connecting_.wait_for(seconds(0)) != std::future_status::timeout ? 1 : 0;
  }
  void decide(double votes) override {
    if (state_ == State::waiting && votes > 0)
      begin(std::launch::async | std::launch::deferred);
    else if (state_ == State::connecting && votes == ranks_.size())
      end();
  }

private:
  enum class State { waiting, connecting, connected, direct, impossible };
  static constexpr std::chrono::milliseconds patience{500};  // as long as NCCL takes to connect: then that at most doubles a run

  /// Where ranks are; connects devices that can write into each other's memory.
  void find_places() {
    std::string reason;
    cuda::RankPlace mine;
    try {
      mine = cuda::place_of(device_);
    } catch (EnvironmentError const& error) {
      reason = error.what();
    }
    places_ = gather(ranks_, mine);
    if (ranks_.size() < 2)
      reason = "there is one rank";
    else if (is_set_to("POISSON_NCCL", "0"))
      reason = "POISSON_NCCL is 0";
    for (int r = 0; r < ranks_.size() && reason.empty(); ++r)
      if (r != ranks_.rank() && mine.same_device(places_[static_cast<std::size_t>(r)]))
        reason = "it shares its device with rank " + std::to_string(r);
    if (is_impossible(reason) || any_of_ranks(ranks_, is_set_to("POISSON_NCCL", "1")))
      return;
    devices_ = cuda::make_direct_ranks(device_, ranks_, places_, why_not_direct_);
    if (devices_ != nullptr)
      state_ = State::direct;
  }

  void begin(std::launch how) {
    if (state_ != State::waiting)
      return;
    std::string reason = why_no_nccl(places_, ranks_.rank());
    NcclUniqueId id{};
    if (reason.empty())
      try {
        cuda::RankPlace const& mine = places_[static_cast<std::size_t>(ranks_.rank())];
        bool const shares_process =
            std::ranges::count_if(places_, [&](cuda::RankPlace const& other) { return other.same_process(mine); }) > 1;
        made_ = std::make_unique<NcclRanks>(device_, ranks_.size(), shares_process);
        version_ = "NCCL " + nccl_version();
        if (ranks_.rank() == 0)
          check_nccl(nccl().GetUniqueId(&id), "ncclGetUniqueId");
      } catch (EnvironmentError const& error) {
        reason = error.what();
      }
    if (is_impossible(reason))
      return;
    id = of_first(ranks_, id);
    connecting_ = std::async(how, [devices = made_.get(), id, rank = ranks_.rank()] { devices->connect(id, rank); });
    state_ = State::connecting;
  }

  void end() {
    if (state_ != State::connecting)
      return;
    std::string reason;
    try {
      connecting_.get();
      made_->check_sums(ranks_.rank());
    } catch (EnvironmentError const& error) {
      reason = error.what();
    }
    if (is_impossible(reason))
      return;
    devices_ = std::move(made_);
    state_ = State::connected;
  }

  /// Whether there is a reason on any rank.
  bool is_impossible(std::string const& reason) {
    why_not_ = first_message(ranks_, reason);
    if (why_not_.empty())
      return false;
    if (made_ && state_ == State::connecting)
      made_->give_up();
    made_.reset();
    state_ = State::impossible;
    return true;
  }

  cuda::CudaContext& device_;
  Communicator& ranks_;
  State state_ = State::waiting;
  std::vector<cuda::RankPlace> places_;  ///< of all ranks
  std::optional<std::chrono::steady_clock::time_point> first_vote_;
  std::unique_ptr<NcclRanks> made_;  ///< until it is connected
  std::future<void> connecting_;     ///< of made_: its end is waited for before that of made_
  std::string version_, why_not_, why_not_direct_;
};

using Transports = std::map<Communicator const*, CudaTransport>;

/// Those of the context.
Transports& transports_of(cuda::CudaContext& device) {
  if (device.rank_transports() == nullptr)
    device.rank_transports() = std::make_shared<Transports>();
  return *static_cast<Transports*>(device.rank_transports().get());
}

}  // namespace

std::string why_no_nccl() {
  return nccl().library.missing();
}

std::string nccl_version() {
  if (std::string const why = why_no_nccl(); !why.empty())
    throw EnvironmentError(why);
  int version = 0;
  check_nccl(nccl().GetVersion(&version), "ncclGetVersion");
  int const of_major = version < 10000 ? 1000 : 10000;  // 2708 is 2.7.8, 22809 is 2.28.9
  return std::to_string(version / of_major) + "." + std::to_string(version % of_major / 100) + "." + std::to_string(version % 100);
}

void connect_cuda_beside(Context& context, Communicator& ranks, Connect when) {
  auto& device = cuda::of(context);
  if (auto const [transport, is_new] = transports_of(device).try_emplace(&ranks, device, ranks); is_new)
    transport->second.connect_beside(when);
}

RankTransport& cuda_rank_transport(Context& context, Communicator& ranks) {
  auto& device = cuda::of(context);
  auto const [transport, is_new] = transports_of(device).try_emplace(&ranks, device, ranks);
  if (is_new)
    transport->second.connect();
  return transport->second;
}

}  // namespace poisson
