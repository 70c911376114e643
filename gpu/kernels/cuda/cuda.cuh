#pragma once

#include "gpu/core/context.hpp"
#include "gpu/core/dot_sum.hpp"
#include "gpu/core/vector.hpp"

#include <algorithm>
#include <cstdint>
#include <cuda_runtime.h>
#include <memory>
#include <string>
#include <utility>

namespace poisson::cuda {

/// The one checker of every CUDA call: throws EnvironmentError with the call, the error and where it happened.
void check(cudaError_t error, char const* call, char const* file, int line);
#define POISSON_CUDA_CHECK(call) ::poisson::cuda::check((call), #call, __FILE__, __LINE__)

/// One stream, on which everything is enqueued in order; memory with its high-water mark; pinned buffers for transfers.
class CudaContext final : public Context {
public:
  /// On the device with this number, which becomes the current one of this thread; -1: on the current one.
  explicit CudaContext(int index);
  ~CudaContext() override;
  Backend backend() const override { return Backend::cuda; }
  DeviceDescription description() const override;
  std::int64_t memory_peak() const override { return peak_; }
  void reset_memory_peak() override { peak_ = used_; }
  std::int64_t memory_used() const override { return used_; }
  void synchronize() override;
  void use_in_this_thread() override;
  void* allocate(std::int64_t bytes) override;
  void deallocate(void* pointer, std::int64_t bytes) noexcept override;
  void return_freed_memory() override;
  void upload(void* to, void const* from_host, std::int64_t bytes) override;
  void download(void* to_host, void const* from, std::int64_t bytes) override;
  void set_zero(void* pointer, std::int64_t bytes) override;
  void copy(void* to, void const* from, std::int64_t bytes) override;

  [[nodiscard]] int index() const { return index_; }  ///< of the device
  [[nodiscard]] cudaStream_t stream() const { return stream_; }
  [[nodiscard]] int multiprocessors() const { return multiprocessors_; }
  [[nodiscard]] std::int64_t l2_bytes() const { return l2_bytes_; }
  [[nodiscard]] int shared_memory_per_block() const { return shared_memory_per_block_; }  ///< bytes, what kernels may opt in to
  /// A buffer for `count` partial sums of T, and the counter of finished blocks that belongs to it: 0 between kernels.
  template <class T = double>
  [[nodiscard]] T* partial_sums(std::int64_t count) {
    return static_cast<T*>(partial_sums_buffer(count * std::int64_t{sizeof(T)}));
  }
  [[nodiscard]] unsigned* block_counter() const { return block_counter_; }
  /// Where blas.cu keeps its handle, from its first use until the context ends.
  [[nodiscard]] std::shared_ptr<void>& blas() { return blas_; }
  /// Where nccl.cu keeps what it has made, until the context ends.
  [[nodiscard]] std::shared_ptr<void>& rank_transports() { return rank_transports_; }

private:
  static constexpr std::int64_t staging_bytes = std::int64_t{16} << 20;
  struct Staging {
    void* host = nullptr;
    cudaEvent_t free = nullptr;
  };
  void make_staging();
  void release(void* pointer) noexcept;
  [[nodiscard]] void* partial_sums_buffer(std::int64_t bytes);

  int index_ = 0;  ///< of the device
  cudaStream_t stream_ = nullptr;
  cudaMemPool_t pool_ = nullptr;  ///< from which arrays are; null where the device has none
  int multiprocessors_ = 1, l2_bytes_ = 0, shared_memory_per_block_ = 0;
  std::int64_t used_ = 0, peak_ = 0;
  Staging staging_[2];
  void* partial_sums_ = nullptr;
  std::int64_t partial_sums_bytes_ = 0;
  unsigned* block_counter_ = nullptr;
  std::shared_ptr<void> blas_, rank_transports_;
};

[[nodiscard]] inline CudaContext& of(Context& context) {
  return static_cast<CudaContext&>(context);
}

/// Blocks of `threads` for n items; n must be positive and the count fits the grid for every n of 32-bit columns.
[[nodiscard]] inline unsigned n_blocks(std::int64_t n, int threads) {
  return static_cast<unsigned>((n + threads - 1) / threads);
}

/// Blocks of `threads` that the device holds at once: what kernels want that take their work in turns.
template <class... Parameters>
[[nodiscard]] unsigned resident_blocks(CudaContext const& device, void (*kernel)(Parameters...), int threads,
                                       std::size_t shared_bytes = 0) {
  int of_multiprocessor = 1;
  POISSON_CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&of_multiprocessor, kernel, threads, shared_bytes));
  return static_cast<unsigned>(of_multiprocessor * device.multiprocessors());
}

/// What is done with rows may read something that is known before the row's sum is: see SmoothingRow.
template <class Row>
concept LoadsEarly = requires {
  typename Row::Terms;
};

namespace detail {
struct NoTerms {};
template <class Row>
struct Terms {
  using type = NoTerms;
};
template <LoadsEarly Row>
struct Terms<Row> {
  using type = typename Row::Terms;
};
}  // namespace detail
/// What that is.
template <class Row>
using TermsOf = typename detail::Terms<Row>::type;

#ifdef __CUDACC__

// From compute capability 9.0 on, a kernel launched by launch_early may start before the kernel ahead of it in the stream has
// ended: once all blocks of that one have called let_next_start or ended. The gap between the two is then used. Rules for such a
// kernel:
//   - Before wait_for_last a thread writes nothing to global memory, and reads only what was there when the last kernel before it
//     that was launched in the ordinary way started.
//   - All blocks but those without any work wait, also where `stop` is set: kernels behind it rely on it having waited.
//   - What the kernel ahead has written is read by load_from_l2, or where nobody can have read it into L1 before; never by
//     load_constant.
// Other kernels wait for everything ahead of them, as ever. In graphs it is the same.

/// Lets the next kernel start, if it is launched early. Without effect before compute capability 9.0.
__device__ __forceinline__ void let_next_start() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
/// Waits until the kernel ahead has ended, and its writes can be read. Returns at once in kernels launched in the ordinary way.
__device__ __forceinline__ void wait_for_last() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// Launches a kernel that keeps to the rules above.
template <class... Parameters, class... Arguments>
void launch_early(CudaContext const& device, void (*kernel)(Parameters...), dim3 grid, int threads, int shared_bytes,
                  Arguments&&... arguments) {
  // Code for older devices does not wait, not even when it is compiled for a newer one on loading.
  cudaFuncAttributes attributes{};
  POISSON_CUDA_CHECK(cudaFuncGetAttributes(&attributes, kernel));
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = static_cast<std::size_t>(shared_bytes);
  config.stream = device.stream();
  config.attrs = &early;
  config.numAttrs = attributes.ptxVersion >= 90 ? 1 : 0;
  POISSON_CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...));
}

// What kernels that are written once for T need of float, double and DoubleDouble.

/// v of the thread `distance` further in the warp, as __shfl_down_sync gives it.
__device__ inline float shuffle_down(float v, int distance) {
  return __shfl_down_sync(0xffffffffu, v, distance);
}
__device__ inline double shuffle_down(double v, int distance) {
  return __shfl_down_sync(0xffffffffu, v, distance);
}
__device__ inline DoubleDouble shuffle_down(DoubleDouble v, int distance) {
  return {shuffle_down(v.hi, distance), shuffle_down(v.lo, distance)};
}
__device__ inline DotSum<float> shuffle_down(DotSum<float> v, int distance) {
  return {shuffle_down(v.sum, distance)};
}
__device__ inline DotSum<double> shuffle_down(DotSum<double> v, int distance) {
  return {shuffle_down(v.sum, distance)};
}
__device__ inline DotSum<DoubleDouble> shuffle_down(DotSum<DoubleDouble> v, int distance) {
  return {shuffle_down(v.sum, distance), shuffle_down(v.correction, distance)};
}

/// A load from L2, for what other blocks have just written.
__device__ inline float load_from_l2(float const* p) {
  return __ldcg(p);
}
__device__ inline double load_from_l2(double const* p) {
  return __ldcg(p);
}
__device__ inline DoubleDouble load_from_l2(DoubleDouble const* p) {
  return {__ldcg(&p->hi), __ldcg(&p->lo)};
}

/// A load of what no thread writes meanwhile.
__device__ inline float load_constant(float const* p, std::int64_t i) {
  return __ldg(p + i);
}
__device__ inline double load_constant(double const* p, std::int64_t i) {
  return __ldg(p + i);
}
__device__ inline DoubleDouble load_constant(ConstPointer<DoubleDouble> p, std::int64_t i) {
  return {__ldg(p.hi + i), __ldg(p.lo + i)};
}

/// A copy of one or several integers into shared memory if i < end. Of many conditional loads in a row, compilers wait for the
/// first ones before they ask for the last ones, because they keep each condition in one of seven predicates until the store; here
/// each step has a condition of its own (2 i < 2 end is a new one to them). No thread writes the integers meanwhile; end < 2^30.
template <class E>
struct StagedCopy;
template <>
struct StagedCopy<std::int32_t> {
  std::int32_t v;
  __device__ __forceinline__ void load(std::int32_t i, std::int32_t end, std::int32_t const* from) {
    asm volatile("{ .reg .pred p; setp.lt.s32 p, %1, %2; @p ld.global.nc.s32 %0, [%3]; }" : "=r"(v) : "r"(i), "r"(end), "l"(from));
  }
  __device__ __forceinline__ void store(std::int32_t i, std::int32_t end, std::uint32_t to) const {
    asm volatile("{ .reg .pred p; setp.lt.s32 p, %0, %1; @p st.shared.s32 [%2], %3; }" ::"r"(2 * i), "r"(2 * end), "r"(to), "r"(v)
                 : "memory");
  }
};
template <>
struct StagedCopy<int2> {
  int2 v;
  __device__ __forceinline__ void load(std::int32_t i, std::int32_t end, int2 const* from) {
    asm volatile("{ .reg .pred p; setp.lt.s32 p, %2, %3; @p ld.global.nc.v2.s32 {%0, %1}, [%4]; }"
                 : "=r"(v.x), "=r"(v.y)
                 : "r"(i), "r"(end), "l"(from));
  }
  __device__ __forceinline__ void store(std::int32_t i, std::int32_t end, std::uint32_t to) const {
    asm volatile("{ .reg .pred p; setp.lt.s32 p, %0, %1; @p st.shared.v2.s32 [%2], {%3, %4}; }" ::"r"(2 * i), "r"(2 * end), "r"(to),
                 "r"(v.x), "r"(v.y)
                 : "memory");
  }
};
template <>
struct StagedCopy<int4> {
  int4 v;
  __device__ __forceinline__ void load(std::int32_t i, std::int32_t end, int4 const* from) {
    asm volatile("{ .reg .pred p; setp.lt.s32 p, %4, %5; @p ld.global.nc.v4.s32 {%0, %1, %2, %3}, [%6]; }"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "r"(i), "r"(end), "l"(from));
  }
  __device__ __forceinline__ void store(std::int32_t i, std::int32_t end, std::uint32_t to) const {
    asm volatile("{ .reg .pred p; setp.lt.s32 p, %0, %1; @p st.shared.v4.s32 [%2], {%3, %4, %5, %6}; }" ::"r"(2 * i), "r"(2 * end),
                 "r"(to), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
                 : "memory");
  }
};

/// A thread's share of a copy into shared memory by `lanes` threads, `rounds` entries at most: those at 0, lanes, 2 lanes ... below
/// n, counted from its first one. First all are asked for, and other work can follow; then all are stored.
template <class E, int rounds, int lanes>
struct StagedCopies {
  StagedCopy<E> of[std::max(1, rounds)];
  /// from: its first entry; next: how far on the entry is that is `lanes` further.
  __device__ __forceinline__ void load(std::int32_t n, E const* from, std::int64_t next) {
#pragma unroll
    for (int r = 0; r < rounds; ++r)
      of[r].load(r * lanes, n, from + r * next);
  }
  __device__ __forceinline__ void store(std::int32_t n, E* to) const {
    auto const address = static_cast<std::uint32_t>(__cvta_generic_to_shared(to));
#pragma unroll
    for (int r = 0; r < rounds; ++r)
      of[r].store(r * lanes, n, address + r * lanes * static_cast<std::uint32_t>(sizeof(E)));
  }
};

/// p, of which the compiler does not know what it was made of. It would form addresses from that at every use, to save registers.
template <class E>
__device__ __forceinline__ E* opaque(E* p) {
  asm volatile("" : "+l"(p));
  return p;
}
__device__ __forceinline__ ConstPointer<DoubleDouble> opaque(ConstPointer<DoubleDouble> p) {
  return {opaque(p.hi), opaque(p.lo)};
}

/// A store of what is not read again soon.
__device__ inline void store_streaming(float* p, std::int64_t i, float v) {
  __stcs(p + i, v);
}
__device__ inline void store_streaming(double* p, std::int64_t i, double v) {
  __stcs(p + i, v);
}
__device__ inline void store_streaming(Pointer<DoubleDouble> p, std::int64_t i, DoubleDouble v) {
  __stcs(p.hi + i, v.hi);
  __stcs(p.lo + i, v.lo);
}
__device__ inline void store_streaming(float* p, float v) {
  __stcs(p, v);
}
__device__ inline void store_streaming(double* p, double v) {
  __stcs(p, v);
}
__device__ inline void store_streaming(DoubleDouble* p, DoubleDouble v) {
  __stcs(&p->hi, v.hi);
  __stcs(&p->lo, v.lo);
}

/// alpha sum + beta y_i; y is not read when beta = 0.
__device__ inline float combine(float alpha, float sum, float beta, float const* y, std::int64_t i) {
  return beta == 0 ? alpha * sum : fmaf(beta, y[i], alpha * sum);
}
__device__ inline double combine(double alpha, double sum, double beta, double const* y, std::int64_t i) {
  return beta == 0 ? alpha * sum : fma(beta, y[i], alpha * sum);
}
__device__ inline DoubleDouble combine(DoubleDouble alpha, DoubleDouble sum, DoubleDouble beta, ConstPointer<DoubleDouble> y,
                                       std::int64_t i) {
  return beta == 0 ? alpha * sum : alpha * sum + beta * load(y, i);
}

/// Sums v over the block in a fixed tree; the result is valid in thread 0. `threads` is the block size, a multiple of 32.
template <int threads, class T>
__device__ T block_sum(T v) {
  __shared__ T of_warp[threads / 32];
  for (int distance = 16; distance > 0; distance /= 2)
    v += shuffle_down(v, distance);
  __syncthreads();  // the array may still be read by the sum before
  if (threadIdx.x % 32 == 0)
    of_warp[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x < 32) {
    v = threadIdx.x < threads / 32 ? of_warp[threadIdx.x] : T(0.0);
    for (int distance = 16; distance > 0; distance /= 2)
      v += shuffle_down(v, distance);
  }
  return v;
}

/// Adds up `sums` over the whole grid. The block that finishes last adds the blocks' partial sums, always in the same order, so
/// that the result does not depend on timing. Returns true in thread 0 of that block, which then holds the totals in `sums`;
/// by then every other block has read all it wanted. `partial` has room for count times the number of blocks; `counter` is 0 again
/// afterwards. The last block keeps `at_once` loads a thread in flight: more is quicker there, but takes registers from the whole
/// kernel.
template <int threads, int at_once = 4, class T, int count>
__device__ bool grid_sum(T (&sums)[count], T* partial, unsigned* counter) {
  __shared__ bool is_last;
  unsigned const blocks = gridDim.x * gridDim.y, block = blockIdx.y * gridDim.x + blockIdx.x;
#pragma unroll
  for (int k = 0; k < count; ++k) {
    T const sum = block_sum<threads>(sums[k]);
    if (threadIdx.x == 0)
      partial[k * std::int64_t{blocks} + block] = sum;
  }
  if (threadIdx.x == 0) {
    __threadfence();
    is_last = atomicInc(counter, blocks - 1) == blocks - 1;
  }
  __syncthreads();
  if (!is_last)
    return false;
  __threadfence();
#pragma unroll
  for (int k = 0; k < count; ++k) {
    T sum[at_once] = {};
    T const* const of_block = partial + k * std::int64_t{blocks};
    for (std::int64_t first = threadIdx.x; first < blocks; first += at_once * threads)
#pragma unroll
      for (int j = 0; j < at_once; ++j)
        if (first + j * threads < blocks)
          sum[j] += load_from_l2(of_block + first + j * threads);
#pragma unroll
    for (int half = at_once / 2; half > 0; half /= 2)
#pragma unroll
      for (int j = 0; j < half; ++j)
        sum[j] += sum[j + half];
    sums[k] = block_sum<threads>(sum[0]);
  }
  return threadIdx.x == 0;
}

/// Leaves the warp's sum of v in its place of `partial`: see sum_partials. Only the first `unit` of every `size` lanes (both powers
/// of two) have a v that is not 0.
template <int unit = 32, int size = 32, class T>
__device__ void store_warp_sum(T v, T* partial) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2)
    if (distance >= size || distance < unit)
      v += shuffle_down(v, distance);
  if (threadIdx.x % 32 == 0)
    store_streaming(partial + (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / 32, v);
}

#endif

/// Sums that the warps of a grid of blocks x threads leave behind, and room for what their addition leaves.
[[nodiscard]] std::int64_t partials_of_warps(std::int64_t blocks, int threads);
/// *result = the sum of what store_warp_sum left, always in the same order, unless *stop is set.
template <class T>
void sum_partials(CudaContext& device, T* partial, std::int64_t blocks, int threads, T* result, std::int32_t const* stop);

}  // namespace poisson::cuda
