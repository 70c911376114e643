#include "gpu/core/error.hpp"
#include "gpu/core/memory.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/cuda/cuda.cuh"

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <sstream>

namespace poisson {

namespace {

__global__ void probe() {}

/// All but the memory that is free. It does not change, and is asked for once: the driver looks all properties up anew each time.
DeviceDescription describe(int device) {
  static std::mutex mutex;
  static std::map<int, DeviceDescription> known;
  std::scoped_lock const lock(mutex);
  if (auto const found = known.find(device); found != known.end())
    return found->second;
  cudaDeviceProp properties{};
  POISSON_CUDA_CHECK(cudaGetDeviceProperties(&properties, device));
  DeviceDescription result;
  result.name = properties.name;
  result.compute_capability = std::to_string(properties.major) + "." + std::to_string(properties.minor);
  result.multiprocessors = properties.multiProcessorCount;
  result.memory_total = static_cast<std::int64_t>(properties.totalGlobalMem);
  for (char const byte : properties.uuid.bytes) {
    constexpr char const* digits = "0123456789abcdef";
    auto const value = static_cast<unsigned char>(byte);
    result.uuid += {digits[value / 16], digits[value % 16]};
  }
  known.emplace(device, result);
  return result;
}

/// Where arrays come from: memory that was freed is kept for the next arrays, up to half of the device's. The driver takes longer
/// to map memory than kernels to fill it, and on several devices of one process it maps for one after another: of 135 million
/// unknowns a setup of multigrid takes 45 ms, and 70 where it has to map; on four devices 21 and 44.
constexpr std::int64_t share_of_pool = 2;
constexpr std::int64_t share_when_idle = 32;  ///< see Context::return_freed_memory

/// Null where the device has no pools.
cudaMemPool_t pool_of(int device) {
  int has_pools = 0;
  if (cudaDeviceGetAttribute(&has_pools, cudaDevAttrMemoryPoolsSupported, device) != cudaSuccess || has_pools == 0)
    return nullptr;
  cudaMemPool_t pool = nullptr;
  POISSON_CUDA_CHECK(cudaDeviceGetDefaultMemPool(&pool, device));
  return pool;
}

/// What can be allocated; of the pool's memory what is in no array.
std::int64_t free_memory(cudaMemPool_t pool) {
  std::size_t free = 0, total = 0;
  POISSON_CUDA_CHECK(cudaMemGetInfo(&free, &total));
  std::uint64_t reserved = 0, used = 0;
  if (pool != nullptr) {
    POISSON_CUDA_CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved));
    POISSON_CUDA_CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
  }
  return static_cast<std::int64_t>(free + reserved - used);
}

/// Two events of the current device.
struct Events {
  Events() {
    POISSON_CUDA_CHECK(cudaEventCreate(&start));
    POISSON_CUDA_CHECK(cudaEventCreate(&stop));
  }
  Events(Events const&) = delete;
  Events& operator=(Events const&) = delete;
  ~Events() {
    static_cast<void>(cudaEventDestroy(start));
    static_cast<void>(cudaEventDestroy(stop));
  }
  cudaEvent_t start = nullptr, stop = nullptr;
};

/// Makes a device the current one, as long as this object exists.
class CurrentDevice {
public:
  explicit CurrentDevice(int device) {
    POISSON_CUDA_CHECK(cudaGetDevice(&before_));
    POISSON_CUDA_CHECK(cudaSetDevice(device));
  }
  CurrentDevice(CurrentDevice const&) = delete;
  CurrentDevice& operator=(CurrentDevice const&) = delete;
  ~CurrentDevice() { static_cast<void>(cudaSetDevice(before_)); }

private:
  int before_ = 0;
};

/// Memory of a device that other devices may read and write, which that of a pool is not.
struct PeerBuffer {
  PeerBuffer(int device, std::size_t bytes) {
    CurrentDevice const current(device);
    POISSON_CUDA_CHECK(cudaMalloc(&data, bytes));
  }
  PeerBuffer(PeerBuffer const&) = delete;
  PeerBuffer& operator=(PeerBuffer const&) = delete;
  ~PeerBuffer() { static_cast<void>(cudaFree(data)); }
  void* data = nullptr;
};

}  // namespace

bool cuda_built() {
  return true;
}

int cuda_device_count() {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess)
    return count;
  cudaGetLastError();  // clears it
  return 0;
}

std::string why_no_cuda(int device) {
  int count = 0;
  cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess && count == 0)
    error = cudaErrorNoDevice;
  if (error == cudaSuccess && device >= 0)
    error = cudaSetDevice(device);
  if (error != cudaSuccess) {
    cudaGetLastError();  // clears it
    return std::string("no CUDA device can be used: ") + cudaGetErrorString(error) +
           "; use the cpu backend, or check the driver with nvidia-smi";
  }
  cudaFuncAttributes attributes{};
  error = cudaFuncGetAttributes(&attributes, probe);
  if (error != cudaSuccess) {
    cudaGetLastError();
    return std::string("the CUDA device cannot run this program: ") + cudaGetErrorString(error) +
           "; build with -DCMAKE_CUDA_ARCHITECTURES set to its compute capability";
  }
  return {};
}

std::vector<DeviceDescription> cuda_devices() {
  int const count = cuda_device_count();
  if (count == 0)
    return {};
  int current = 0;
  POISSON_CUDA_CHECK(cudaGetDevice(&current));
  std::vector<DeviceDescription> result;
  for (int device = 0; device < count; ++device) {
    POISSON_CUDA_CHECK(cudaSetDevice(device));
    result.push_back(describe(device));
    result.back().memory_free = free_memory(pool_of(device));
  }
  POISSON_CUDA_CHECK(cudaSetDevice(current));
  return result;
}

std::unique_ptr<Context> make_cuda_context(int device) {
  return std::make_unique<cuda::CudaContext>(device);
}

double measure_cuda_copy_bandwidth(Context& context, double seconds) {
  auto const start = std::chrono::steady_clock::now();
  auto const spent = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() >= seconds; };
  if (spent())
    return 0;
  auto& device = cuda::of(context);
  // Well beyond the second-level cache, and a quarter of what is free at most.
  std::int64_t const bytes =
      std::min<std::int64_t>(std::int64_t{1} << 30, device.description().memory_free / 8) & ~std::int64_t{255};
  struct Buffers {
    explicit Buffers(cuda::CudaContext& c, std::int64_t n) : context(c), size(n), from(c.allocate(n)), to(c.allocate(n)) {}
    ~Buffers() {
      context.deallocate(to, size);
      context.deallocate(from, size);
    }
    cuda::CudaContext& context;
    std::int64_t size;
    void *from, *to;
  } const buffers(device, bytes);
  Events const events;
  device.set_zero(buffers.from, bytes);
  double best = 0;
  for (int repeat = 0; repeat < 8 && !spent(); ++repeat) {
    POISSON_CUDA_CHECK(cudaEventRecord(events.start, device.stream()));
    POISSON_CUDA_CHECK(
        cudaMemcpyAsync(buffers.to, buffers.from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToDevice, device.stream()));
    POISSON_CUDA_CHECK(cudaEventRecord(events.stop, device.stream()));
    POISSON_CUDA_CHECK(cudaEventSynchronize(events.stop));
    float milliseconds = 0;
    POISSON_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, events.start, events.stop));
    best = std::max(best, 2e3 * static_cast<double>(bytes) / static_cast<double>(milliseconds));
  }
  return best;
}

PeerBandwidth measure_cuda_peer_bandwidth(int from, int to) {
  constexpr std::size_t bytes = std::size_t{1} << 28;
  CurrentDevice const current(from);
  int can_access = 0;
  POISSON_CUDA_CHECK(cudaDeviceCanAccessPeer(&can_access, from, to));
  if (can_access != 0) {
    cudaError_t const error = cudaDeviceEnablePeerAccess(to, 0);
    if (error == cudaErrorPeerAccessAlreadyEnabled)
      cudaGetLastError();
    else
      POISSON_CUDA_CHECK(error);
  }
  PeerBuffer const source(from, bytes), target(to, bytes);
  Events const events;
  PeerBandwidth result{0, can_access != 0};
  for (int repeat = 0; repeat < 6; ++repeat) {  // the first is slower, and does not count as the best
    POISSON_CUDA_CHECK(cudaEventRecord(events.start, nullptr));
    POISSON_CUDA_CHECK(cudaMemcpyPeerAsync(target.data, to, source.data, from, bytes, nullptr));
    POISSON_CUDA_CHECK(cudaEventRecord(events.stop, nullptr));
    POISSON_CUDA_CHECK(cudaEventSynchronize(events.stop));
    float milliseconds = 0;
    POISSON_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, events.start, events.stop));
    result.bytes_per_second =
        std::max(result.bytes_per_second, 1e3 * static_cast<double>(bytes) / static_cast<double>(milliseconds));
  }
  return result;
}

namespace cuda {

void check(cudaError_t error, char const* call, char const* file, int line) {
  if (error == cudaSuccess)
    return;
  cudaGetLastError();  // clears an error that is not sticky
  std::ostringstream text;
  text << "CUDA: " << call << " failed: " << cudaGetErrorString(error) << " (" << cudaGetErrorName(error) << ", " << file << ':'
       << line << ')';
  throw EnvironmentError(text.str());
}

CudaContext::CudaContext(int index) : index_(index) {
  if (index_ >= 0)
    use_in_this_thread();
  else
    POISSON_CUDA_CHECK(cudaGetDevice(&index_));
  POISSON_CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors_, cudaDevAttrMultiProcessorCount, index_));
  POISSON_CUDA_CHECK(cudaDeviceGetAttribute(&l2_bytes_, cudaDevAttrL2CacheSize, index_));
  POISSON_CUDA_CHECK(cudaDeviceGetAttribute(&shared_memory_per_block_, cudaDevAttrMaxSharedMemoryPerBlockOptin, index_));
  POISSON_CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  pool_ = pool_of(index_);
  if (pool_ != nullptr) {
    std::size_t free = 0, total = 0;
    POISSON_CUDA_CHECK(cudaMemGetInfo(&free, &total));
    std::uint64_t kept = total / share_of_pool;
    POISSON_CUDA_CHECK(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &kept));
  }
  block_counter_ = static_cast<unsigned*>(allocate(sizeof(unsigned)));
  set_zero(block_counter_, sizeof(unsigned));
}

CudaContext::~CudaContext() {
  rank_transports_.reset();  // first: what waits for other ranks may have to be given up
  // Errors of calls enqueued before cannot be reported from here.
  static_cast<void>(cudaStreamSynchronize(stream_));
  blas_.reset();  // while its stream is there
  for (Staging& staging : staging_) {
    if (staging.free != nullptr)
      static_cast<void>(cudaEventDestroy(staging.free));
    static_cast<void>(cudaFreeHost(staging.host));
  }
  for (void* const pointer : {partial_sums_, static_cast<void*>(block_counter_)})
    release(pointer);
  static_cast<void>(cudaStreamSynchronize(stream_));
  static_cast<void>(cudaStreamDestroy(stream_));
}

DeviceDescription CudaContext::description() const {
  DeviceDescription result = describe(index_);
  POISSON_CUDA_CHECK(cudaStreamSynchronize(stream_));  // memory is free once kernels have ended
  result.memory_free = free_memory(pool_);
  return result;
}

void CudaContext::synchronize() {
  POISSON_CUDA_CHECK(cudaStreamSynchronize(stream_));
}

void CudaContext::use_in_this_thread() {
  POISSON_CUDA_CHECK(cudaSetDevice(index_));
}

void* CudaContext::allocate(std::int64_t bytes) {
  if (bytes == 0)
    return nullptr;
  void* pointer = nullptr;
  auto const size = static_cast<std::size_t>(bytes);
  cudaError_t error = pool_ != nullptr ? cudaMallocAsync(&pointer, size, stream_) : cudaMalloc(&pointer, size);
  if (error == cudaErrorMemoryAllocation && pool_ != nullptr) {  // what is kept may be in pieces
    cudaGetLastError();
    POISSON_CUDA_CHECK(cudaStreamSynchronize(stream_));
    POISSON_CUDA_CHECK(cudaMemPoolTrimTo(pool_, 0));
    error = cudaMallocAsync(&pointer, size, stream_);
  }
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    throw OutOfMemoryError("out of device memory: " + format_bytes(bytes) + " needed, " + format_bytes(free_memory(pool_)) +
                           " free; use a format that takes less, a coarser mesh, or the cpu backend");
  }
  check(error, "the allocation of memory", __FILE__, __LINE__);
  used_ += bytes;
  peak_ = std::max(peak_, used_);
#ifdef POISSON_NAN_MEMORY  // see allocate_uninitialized
  check(cudaMemsetAsync(pointer, 0xff, static_cast<std::size_t>(bytes), stream_), "cudaMemsetAsync", __FILE__, __LINE__);
#endif
  return pointer;
}

void CudaContext::deallocate(void* pointer, std::int64_t bytes) noexcept {
  release(pointer);
  used_ -= bytes;
}

/// Once kernels that use it have ended. An error would have shown, or will, in a call that can throw.
void CudaContext::release(void* pointer) noexcept {
  if (pointer != nullptr)
    static_cast<void>(pool_ != nullptr ? cudaFreeAsync(pointer, stream_) : cudaFree(pointer));
}

void CudaContext::return_freed_memory() {
  if (pool_ == nullptr)
    return;
  auto const kept = static_cast<std::uint64_t>(describe(index_).memory_total / share_when_idle);
  std::uint64_t reserved = 0;
  POISSON_CUDA_CHECK(cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrReservedMemCurrent, &reserved));
  if (reserved <= kept)
    return;
  POISSON_CUDA_CHECK(cudaStreamSynchronize(stream_));
  POISSON_CUDA_CHECK(cudaMemPoolTrimTo(pool_, static_cast<std::size_t>(kept)));
}

void CudaContext::make_staging() {
  for (Staging& staging : staging_)
    if (staging.host == nullptr) {
      POISSON_CUDA_CHECK(cudaEventCreateWithFlags(&staging.free, cudaEventDisableTiming));
      POISSON_CUDA_CHECK(cudaMallocHost(&staging.host, static_cast<std::size_t>(staging_bytes)));
    }
}

// Pageable memory crosses the bus through two pinned buffers: while one travels, the host's threads fill or empty the other.

void CudaContext::upload(void* to, void const* from_host, std::int64_t bytes) {
  make_staging();
  int turn = 0;
  for (std::int64_t done = 0; done < bytes; done += staging_bytes, turn ^= 1) {
    std::int64_t const size = std::min(staging_bytes, bytes - done);
    Staging& staging = staging_[turn];
    POISSON_CUDA_CHECK(cudaEventSynchronize(staging.free));
    parallel_copy(staging.host, static_cast<char const*>(from_host) + done, size);
    POISSON_CUDA_CHECK(cudaMemcpyAsync(static_cast<char*>(to) + done, staging.host, static_cast<std::size_t>(size),
                                       cudaMemcpyHostToDevice, stream_));
    POISSON_CUDA_CHECK(cudaEventRecord(staging.free, stream_));
  }
}

void CudaContext::download(void* to_host, void const* from, std::int64_t bytes) {
  make_staging();
  std::int64_t const chunks = (bytes + staging_bytes - 1) / staging_bytes;
  auto const size_of = [&](std::int64_t chunk) { return std::min(staging_bytes, bytes - chunk * staging_bytes); };
  for (std::int64_t chunk = 0; chunk <= chunks; ++chunk) {
    if (chunk < chunks) {
      Staging& staging = staging_[chunk % 2];
      POISSON_CUDA_CHECK(cudaMemcpyAsync(staging.host, static_cast<char const*>(from) + chunk * staging_bytes,
                                         static_cast<std::size_t>(size_of(chunk)), cudaMemcpyDeviceToHost, stream_));
      POISSON_CUDA_CHECK(cudaEventRecord(staging.free, stream_));
    }
    if (chunk > 0) {
      Staging& staging = staging_[(chunk - 1) % 2];
      POISSON_CUDA_CHECK(cudaEventSynchronize(staging.free));
      parallel_copy(static_cast<char*>(to_host) + (chunk - 1) * staging_bytes, staging.host, size_of(chunk - 1));
    }
  }
}

void CudaContext::set_zero(void* pointer, std::int64_t bytes) {
  POISSON_CUDA_CHECK(cudaMemsetAsync(pointer, 0, static_cast<std::size_t>(bytes), stream_));
}

void CudaContext::copy(void* to, void const* from, std::int64_t bytes) {
  POISSON_CUDA_CHECK(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToDevice, stream_));
}

void* CudaContext::partial_sums_buffer(std::int64_t bytes) {
  if (partial_sums_bytes_ < bytes) {
    if (partial_sums_ != nullptr)
      deallocate(partial_sums_, partial_sums_bytes_);
    partial_sums_ = nullptr;
    partial_sums_bytes_ = 0;
    partial_sums_ = allocate(bytes);
    partial_sums_bytes_ = bytes;
  }
  return partial_sums_;
}

}  // namespace cuda
}  // namespace poisson
