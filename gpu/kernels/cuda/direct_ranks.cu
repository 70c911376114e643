#include "gpu/kernels/cuda/direct_ranks.cuh"

#include "gpu/core/array.hpp"
#include "gpu/core/error.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <map>
#include <optional>
#include <span>
#include <type_traits>
#include <unistd.h>

namespace poisson::cuda {

namespace {

// A rank that has written into another one's memory raises a flag there to the number of the turn. That one waits for it. Each turn
// has flags both ways between two ranks, and messages have two places, taken by turns. So nobody needs to say that a place is free:
// who starts turn k has seen the other's flag of turn k - 1, which came behind all that read what turn k - 2 had brought there.

/// What a rank writes into the memory of another one in each turn.
struct Sent {
  std::byte const* from = nullptr;
  std::byte* to[2] = {};
  std::int64_t bytes = 0;
  unsigned* flag = nullptr;
  unsigned* ended = nullptr;  ///< blocks that have written their share; 0 between turns
};

/// Threads that wait look every so often whether this rank has been given up.
constexpr int looks_between = 256;
constexpr std::int64_t flag_stride = 32;  // numbers from a flag to the next: each has a line of memory to itself

__device__ void raise_flag(unsigned* flag, unsigned turn) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(turn) : "memory");
}
__device__ unsigned flag_at(unsigned const* flag) {
  unsigned value = 0;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
  return value;
}
__device__ unsigned long long nanoseconds() {
  unsigned long long time = 0;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(time));
  return time;
}

/// Whether a wait ends without what it waits for.
struct Patience {
  int const volatile* given_up = nullptr;  ///< in host memory: not 0 once this rank is given up
  unsigned long long nanoseconds = 0;      ///< 0: any time
  [[nodiscard]] __device__ bool ended(unsigned long long since) const {
    return *given_up != 0 || (nanoseconds > 0 && poisson::cuda::nanoseconds() - since > nanoseconds);
  }
};

/// Returns whether the flag came.
__device__ bool wait_for_flag(unsigned const* flag, unsigned turn, Patience const& patience) {
  unsigned long long const since = patience.nanoseconds > 0 ? nanoseconds() : 0;
  for (int look = 1; static_cast<int>(flag_at(flag) - turn) < 0; ++look)
    if (look % looks_between == 0 && patience.ended(since))
      return false;
  return true;
}

/// Bytes: of a message, once over the link. gridDim.y: the messages.
template <class Word>
__global__ void send_kernel(Sent const* messages, int place, unsigned turn) {
  Sent const sent = messages[blockIdx.y];
  auto const* const from = reinterpret_cast<Word const*>(sent.from);
  auto* const to = reinterpret_cast<Word*>(sent.to[place]);
  auto const n = static_cast<std::int64_t>(sent.bytes / sizeof(Word));
  std::int64_t const step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step)
    to[i] = from[i];
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x != 0 || atomicAdd(sent.ended, 1u) + 1 < gridDim.x)
    return;
  *sent.ended = 0;
  __threadfence_system();
  raise_flag(sent.flag, turn);
}

/// A thread for each rank that is waited for.
__global__ void wait_kernel(int n, int const* ranks, unsigned const* flags, unsigned turn, Patience patience) {
  if (int const i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < n)
    wait_for_flag(flags + ranks[i] * flag_stride, turn, patience);
}

/// A number of a rank, where others can write it.
struct alignas(16) Slot {
  double parts[2];
};
__device__ Slot slot_of(double number) {
  return {number, 0};
}
__device__ Slot slot_of(DoubleDouble number) {
  return {number.hi, number.lo};
}
template <class T>
__device__ T number_in(Slot const* slot) {
  double const high = __ldcv(&slot->parts[0]);
  if constexpr (std::is_same_v<T, double>)
    return high;
  else
    return DoubleDouble{high, __ldcv(&slot->parts[1])};
}

constexpr int most_at_once = 32;  // numbers of a sum
constexpr int threads_of_sum = 64;
constexpr std::int64_t smallest_block = std::int64_t{16} << 20;  // bytes

/// What ranks write into the memory of a rank for sums: by place, rank and number; and a flag for each rank.
struct SumPlace {
  Slot* slots = nullptr;
  unsigned* flags = nullptr;
  [[nodiscard]] __device__ Slot* of(int place, int ranks, int rank) const {
    return slots + (std::int64_t{place} * ranks + rank) * most_at_once;
  }
};

/// One block: gives the numbers of this rank to all, waits for those of the others, adds. *failed = 1 where one did not come.
template <class T>
__global__ void sum_kernel(SumPlace const* places, int me, int ranks, int count, int place, unsigned turn, T* numbers,
                           Patience patience, int* failed) {
  int const t = static_cast<int>(threadIdx.x);
  for (int i = t; i < ranks * count; i += threads_of_sum)
    places[i / count].of(place, ranks, me)[i % count] = slot_of(numbers[i % count]);
  __threadfence_system();
  __syncthreads();
  for (int r = t; r < ranks; r += threads_of_sum)
    raise_flag(places[r].flags + me * flag_stride, turn);
  SumPlace const mine = places[me];
  for (int r = t; r < ranks; r += threads_of_sum)
    if (!wait_for_flag(mine.flags + r * flag_stride, turn, patience))
      *failed = 1;
  __syncthreads();
  if (t < count)
    numbers[t] = sum_of_ranks<T>(ranks, [&](int r) { return number_in<T>(mine.of(place, ranks, r) + t); });
}

std::int64_t rounded_up(std::int64_t bytes) {
  constexpr std::int64_t line = 256;
  return (bytes + line - 1) / line * line;
}

/// Memory of the current device that other devices may write, which that of a pool is not.
class SharedBlock {
public:
  SharedBlock(CudaContext& device, std::int64_t bytes) : bytes_(bytes) {
    void* data = nullptr;
    if (cudaMalloc(&data, static_cast<std::size_t>(bytes)) == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      device.return_freed_memory();
      POISSON_CUDA_CHECK(cudaMalloc(&data, static_cast<std::size_t>(bytes)));
    }
    data_ = static_cast<std::byte*>(data);
  }
  SharedBlock(SharedBlock const&) = delete;
  SharedBlock& operator=(SharedBlock const&) = delete;
  ~SharedBlock() { static_cast<void>(cudaFree(data_)); }

  [[nodiscard]] std::byte* data() const { return data_; }
  /// Where so many bytes are free, and taken from now on; none where there are not so many.
  [[nodiscard]] std::optional<std::int64_t> take(std::int64_t bytes) {
    if (used_ + bytes > bytes_)
      return {};
    ++n_taken_;
    used_ += bytes;
    return used_ - bytes;
  }
  /// What is free is taken again once nothing is taken.
  void give_back() {
    if (--n_taken_ == 0)
      used_ = 0;
  }

private:
  std::byte* data_ = nullptr;
  std::int64_t bytes_, used_ = 0, n_taken_ = 0;
};

/// What a rank tells all others of memory that it has taken for them.
struct Told {
  cudaIpcMemHandle_t handle{};  ///< of the block, if it is new
  std::byte* data = nullptr;    ///< the same, for ranks of the same process
  std::int64_t block = 0;       ///< its number
  std::int64_t first = 0;       ///< where in the block
  std::int64_t of_place = 0;    ///< bytes
  std::int32_t is_new = 0, failed = 0;
};

class DirectRanks final : public DeviceRanks {
public:
  /// What can fail on one rank alone; nothing of it waits for others. Where ranks are threads, a thread that allocates pinned
  /// memory or loads code may wait for kernels of all devices, which may wait for that thread: all of this happens here.
  DirectRanks(CudaContext& device, Communicator& ranks, std::vector<RankPlace> const& places)
      : device_(device), ranks_(ranks), me_(ranks.rank()), size_(ranks.size()), places_(places), blocks_of_(places.size()) {
    auto const is_mine = [&](RankPlace const& place) { return place.same_process(places_[static_cast<std::size_t>(me_)]); };
    shares_no_process_ = std::ranges::count_if(places_, is_mine) == 1;
    void* flag = nullptr;
    POISSON_CUDA_CHECK(cudaHostAlloc(&flag, sizeof(int), cudaHostAllocMapped));
    given_up_ = static_cast<int*>(flag);
    *given_up_ = 0;
    POISSON_CUDA_CHECK(cudaHostGetDevicePointer(&flag, given_up_, 0));
    patience_.given_up = static_cast<int const*>(flag);
    for (void const* const kernel :
         {reinterpret_cast<void const*>(send_kernel<std::uint32_t>), reinterpret_cast<void const*>(send_kernel<uint2>),
          reinterpret_cast<void const*>(send_kernel<uint4>), reinterpret_cast<void const*>(wait_kernel),
          reinterpret_cast<void const*>(sum_kernel<double>), reinterpret_cast<void const*>(sum_kernel<DoubleDouble>)}) {
      cudaFuncAttributes attributes{};
      POISSON_CUDA_CHECK(cudaFuncGetAttributes(&attributes, kernel));
    }
    number_ = Array<DoubleDouble>(device, 1);
    failed_ = Array<int>(device, 1);
    failed_.set_zero();
    DoubleDouble const number = 0;
    number_.upload(std::span<DoubleDouble const>(&number, 1));
    device.synchronize();
  }

  /// All ranks end at about the same time, or by an exception that ends all of them: then nobody waits for the others.
  ~DirectRanks() override {
    if (std::uncaught_exceptions() > 0)
      *given_up_ = 1;
    static_cast<void>(cudaStreamSynchronize(device_.stream()));
    for (std::size_t r = 0; r < blocks_of_.size(); ++r)
      if (!places_[r].same_process(places_[static_cast<std::size_t>(me_)]))
        for (std::byte* const block : blocks_of_[r])
          static_cast<void>(cudaIpcCloseMemHandle(block));
    static_cast<void>(cudaFreeHost(given_up_));
  }

  /// Memory for sums. Empty, or why not, the same on all ranks. Collective.
  std::string connect() {
    std::int64_t const slots = rounded_up(2 * size_ * most_at_once * std::int64_t{sizeof(Slot)}),
                       flags = size_ * flag_stride * std::int64_t{sizeof(unsigned)};
    std::string reason;
    std::vector<std::byte*> areas;
    try {
      areas = share(slots + flags, 0, std::vector<std::int64_t>(places_.size()), 0).areas;
    } catch (EnvironmentError const& error) {
      reason = error.what();
    }
    if (std::string const common = first_message(ranks_, reason); !common.empty())
      return common;
    std::vector<SumPlace> places;
    for (std::byte* const area : areas)
      places.push_back({reinterpret_cast<Slot*>(area), reinterpret_cast<unsigned*>(area + slots)});
    sum_places_ = Array<SumPlace>(device_, std::span<SumPlace const>(places));
    // Sums whose values are known. Writes that do not arrive must not leave anybody waiting.
    Patience const patience{patience_.given_up, 5'000'000'000};
    DoubleDouble number = me_ + 1.0;
    number_.upload(std::span<DoubleDouble const>(&number, 1));
    auto* const in_double = reinterpret_cast<double*>(number_.data());
    enqueue_sum(in_double, 1, patience);
    double sum = 0;
    device_.download(&sum, in_double, sizeof sum);
    number_.upload(std::span<DoubleDouble const>(&number, 1));
    enqueue_sum(number_.data(), 1, patience);
    number_.download(std::span<DoubleDouble>(&number, 1));
    int failed = 0;
    failed_.download(std::span<int>(&failed, 1));
    double const expected = 0.5 * size_ * (size_ + 1);
    if (failed != 0 || sum != expected || number.hi != expected)
      reason = "what one device writes into the memory of another one does not arrive";
    return first_message(ranks_, reason);
  }

  std::unique_ptr<DeviceExchange> make_exchange(std::span<Message const> sends, std::span<Message const> receives,
                                                std::int64_t behind) override {
    return std::make_unique<Direct>(*this, sends, receives, behind);
  }
  std::unique_ptr<DeviceExchange> make_gather(void* mine, std::int64_t bytes) override {
    std::vector<Message> to_all;
    for (int rank = 0; rank < size_; ++rank)
      to_all.push_back({rank, mine, bytes});
    return std::make_unique<Direct>(*this, to_all, to_all, 0);
  }

  void sum(double* numbers, int count) override { sum_of(numbers, count); }
  void sum(DoubleDouble* numbers, int count) override { sum_of(numbers, count); }

private:
  class Direct final : public DeviceExchange {
  public:
    Direct(DirectRanks& ranks, std::span<Message const> sends, std::span<Message const> receives, std::int64_t behind)
        : ranks_(ranks), flags_bytes_(ranks.size_ * flag_stride * std::int64_t{sizeof(unsigned)}) {
      std::vector<std::int64_t> first(static_cast<std::size_t>(ranks.size_), 0);  // of the messages that come, in a place
      std::int64_t bytes = 0;
      std::map<int, Sent> sent;  // by rank; those that only send get no bytes, but a flag
      for (Message const& message : receives) {
        first[static_cast<std::size_t>(message.rank)] = bytes;
        bytes += message.bytes;
        sent[message.rank];
      }
      for (Message const& message : sends) {
        sent[message.rank].from = static_cast<std::byte const*>(message.data);
        sent[message.rank].bytes = message.bytes;
      }
      std::int64_t const of_place = rounded_up(bytes + behind);
      Shared const shared = ranks.share(flags_bytes_ + 2 * of_place, of_place, first, smallest_block);
      block_ = shared.block;
      area_ = shared.areas[static_cast<std::size_t>(ranks.me_)];
      for (int place = 0; place < 2; ++place)
        come_[place] = area_ + flags_bytes_ + place * of_place;
      std::vector<Sent> list;
      std::vector<int> from;
      ended_ = Array<unsigned>(ranks.device_, std::ssize(sent));
      ended_.set_zero();
      std::uint64_t together = 16;
      for (auto& [rank, message] : sent) {
        auto const r = static_cast<std::size_t>(rank);
        message.flag = reinterpret_cast<unsigned*>(shared.areas[r]) + ranks.me_ * flag_stride;
        for (int place = 0; place < 2; ++place)
          message.to[place] = shared.areas[r] + flags_bytes_ + place * shared.of_place[r] + shared.first[r];
        message.ended = ended_.data() + list.size();
        list.push_back(message);
        from.push_back(rank);
        longest_ = std::max(longest_, message.bytes);
        together |= static_cast<std::uint64_t>(message.bytes) | reinterpret_cast<std::uintptr_t>(message.from) |
                    reinterpret_cast<std::uintptr_t>(message.to[0]);
      }
      word_ = together % 16 == 0 ? 16 : together % 8 == 0 ? 8 : 4;
      sent_ = Array<Sent>(ranks.device_, std::span<Sent const>(list));
      from_ = Array<int>(ranks.device_, std::span<int const>(from));
    }
    Direct(Direct const&) = delete;
    Direct& operator=(Direct const&) = delete;
    ~Direct() override { block_->give_back(); }

    std::byte* start() override {
      ++turn_;
      int const place = static_cast<int>(turn_ % 2);
      if (sent_.size() > 0) {
        constexpr int threads = 256, words_of_thread = 4;
        constexpr std::int64_t most_blocks = 512;
        std::int64_t const words = longest_ / word_;
        dim3 const grid(static_cast<unsigned>(std::clamp<std::int64_t>(words / (threads * words_of_thread), 1, most_blocks)),
                        static_cast<unsigned>(sent_.size()));
        auto const kernel = word_ == 16 ? send_kernel<uint4> : word_ == 8 ? send_kernel<uint2> : send_kernel<std::uint32_t>;
        kernel<<<grid, threads, 0, ranks_.device_.stream()>>>(sent_.data(), place, turn_);
        POISSON_CUDA_CHECK(cudaGetLastError());
      }
      return come_[place];
    }
    void finish() override {
      if (from_.size() == 0)
        return;
      constexpr int threads = 32;
      wait_kernel<<<n_blocks(from_.size(), threads), threads, 0, ranks_.device_.stream()>>>(
          static_cast<int>(from_.size()), from_.data(), reinterpret_cast<unsigned const*>(area_), turn_, ranks_.patience_);
      POISSON_CUDA_CHECK(cudaGetLastError());
    }

  private:
    DirectRanks& ranks_;
    std::int64_t flags_bytes_, longest_ = 0;
    std::shared_ptr<SharedBlock> block_;
    std::byte* area_ = nullptr;  ///< flags, and messages in two places
    std::byte* come_[2] = {};
    int word_ = 4;  ///< bytes that threads copy at once
    Array<Sent> sent_;
    Array<int> from_;
    Array<unsigned> ended_;
    unsigned turn_ = 0;
  };

  struct Shared {
    std::shared_ptr<SharedBlock> block;  ///< of this rank
    std::vector<std::byte*> areas;       ///< of all ranks, where this one can write
    std::vector<std::int64_t> of_place;  ///< of all ranks
    std::vector<std::int64_t> first;     ///< of all ranks: where in a place the message of this one begins
  };

  /// Takes memory that others may write: `bytes`, which are 0. `of_place`, `first`: told to the others; the latter by rank. A new
  /// block has at least `block_bytes`. Nothing that was enqueued before uses this memory. Collective. Throws EnvironmentError
  /// on all ranks.
  Shared share(std::int64_t bytes, std::int64_t of_place, std::vector<std::int64_t> const& first, std::int64_t block_bytes) {
    Told told;
    told.of_place = of_place;
    Shared shared;
    for (std::size_t b = 0; b < blocks_.size() && shared.block == nullptr; ++b)
      if (auto const taken = blocks_[b]->take(bytes)) {
        shared.block = blocks_[b];
        told.block = static_cast<std::int64_t>(b);
        told.first = *taken;
      }
    std::string reason;
    try {
      if (shared.block == nullptr) {
        shared.block = std::make_shared<SharedBlock>(device_, std::max(bytes, block_bytes));
        static_cast<void>(shared.block->take(bytes));
        told.block = std::ssize(blocks_);
        told.data = shared.block->data();
        told.is_new = 1;
        if (shares_no_process_)
          POISSON_CUDA_CHECK(cudaIpcGetMemHandle(&told.handle, told.data));
        blocks_.push_back(shared.block);
      }
      device_.set_zero(shared.block->data() + told.first, bytes);
      device_.synchronize();
    } catch (EnvironmentError const& error) {
      reason = error.what();
      told.failed = 1;
    }
    // Of every rank: what it tells, and where in its places the messages of each begin.
    auto const n_ranks = static_cast<std::size_t>(size_);
    std::vector<std::byte> mine(sizeof told + n_ranks * sizeof(std::int64_t)), all(mine.size() * n_ranks);
    std::memcpy(mine.data(), &told, sizeof told);
    std::memcpy(mine.data() + sizeof told, first.data(), n_ranks * sizeof(std::int64_t));
    ranks_.all_gather(mine.data(), std::ssize(mine), all.data());
    bool may_fail = false;
    for (std::size_t r = 0; r < n_ranks; ++r) {
      std::byte const* const of_rank = all.data() + r * mine.size();
      std::memcpy(&told, of_rank, sizeof told);
      may_fail = may_fail || told.is_new != 0 || told.failed != 0;
      if (told.failed != 0)
        continue;
      try {
        if (told.is_new != 0)
          blocks_of_[r].push_back(opened(told, static_cast<int>(r)));
        shared.areas.push_back(blocks_of_[r][static_cast<std::size_t>(told.block)] + told.first);
      } catch (EnvironmentError const& error) {
        reason = error.what();
      }
      shared.of_place.push_back(told.of_place);
      std::memcpy(&shared.first.emplace_back(), of_rank + sizeof told + static_cast<std::size_t>(me_) * sizeof(std::int64_t),
                  sizeof(std::int64_t));
    }
    if (may_fail)
      if (std::string const common = first_message(ranks_, reason); !common.empty())
        throw EnvironmentError(common);
    return shared;
  }
  /// A new block of a rank, where this one can write it.
  std::byte* opened(Told const& told, int rank) const {
    if (rank == me_)
      return told.data;
    RankPlace const& place = places_[static_cast<std::size_t>(rank)];
    if (place.same_process(places_[static_cast<std::size_t>(me_)])) {
      if (cudaError_t const error = cudaDeviceEnablePeerAccess(place.index, 0); error == cudaErrorPeerAccessAlreadyEnabled)
        cudaGetLastError();
      else
        POISSON_CUDA_CHECK(error);
      return told.data;
    }
    void* data = nullptr;
    POISSON_CUDA_CHECK(cudaIpcOpenMemHandle(&data, told.handle, cudaIpcMemLazyEnablePeerAccess));
    return static_cast<std::byte*>(data);
  }

  template <class T>
  void enqueue_sum(T* numbers, int count, Patience const& patience) {
    ++turn_;
    sum_kernel<T><<<1, threads_of_sum, 0, device_.stream()>>>(sum_places_.data(), me_, size_, count, static_cast<int>(turn_ % 2),
                                                              turn_, numbers, patience, failed_.data());
    POISSON_CUDA_CHECK(cudaGetLastError());
  }
  template <class T>
  void sum_of(T* numbers, int count) {
    for (int first = 0; first < count; first += most_at_once)
      enqueue_sum(numbers + first, std::min(most_at_once, count - first), patience_);
  }

  CudaContext& device_;
  Communicator& ranks_;
  int me_, size_;
  std::vector<RankPlace> places_;
  bool shares_no_process_;                            ///< with another rank: its memory can be opened by others
  std::vector<std::shared_ptr<SharedBlock>> blocks_;  ///< of this rank
  std::vector<std::vector<std::byte*>> blocks_of_;    ///< of all others, in the order in which they came
  int* given_up_ = nullptr;                           ///< in pinned memory
  Patience patience_;
  Array<SumPlace> sum_places_;
  Array<DoubleDouble> number_;
  Array<int> failed_;
  unsigned turn_ = 0;
};

}  // namespace

RankPlace place_of(CudaContext const& device) {
  RankPlace place;
  gethostname(place.host.data(), place.host.size() - 1);
  place.process = getpid();
  place.index = device.index();
  cudaDeviceProp properties{};
  POISSON_CUDA_CHECK(cudaGetDeviceProperties(&properties, device.index()));
  static_assert(sizeof properties.uuid.bytes == sizeof place.device);
  std::memcpy(place.device.data(), properties.uuid.bytes, sizeof place.device);
  place.bus = {properties.pciDomainID, properties.pciBusID, properties.pciDeviceID};
  return place;
}

std::unique_ptr<DeviceRanks> make_direct_ranks(CudaContext& device, Communicator& ranks, std::vector<RankPlace> const& places,
                                               std::string& why_not) {
  constexpr std::size_t most_ranks = 64;  // each writes into the memory of all others
  why_not.clear();
  if (places.size() > most_ranks)
    why_not = "there are more than " + std::to_string(most_ranks) + " ranks";
  else if (std::ranges::any_of(places, [&](RankPlace const& place) { return place.host != places.front().host; }))
    why_not = "ranks are on several hosts";
  if (!why_not.empty())
    return nullptr;
  std::string reason;
  std::unique_ptr<DirectRanks> made;
  try {
    made = std::make_unique<DirectRanks>(device, ranks, places);
  } catch (EnvironmentError const& error) {
    reason = error.what();
  }
  why_not = first_message(ranks, reason);
  if (why_not.empty())
    why_not = made->connect();
  if (!why_not.empty())
    made.reset();
  return made;
}

}  // namespace poisson::cuda
