#include "gpu/kernels/inclusions.hpp"

#include "gpu/core/array.hpp"
#include "gpu/kernels/cuda/cuda.cuh"

namespace poisson {

namespace {

constexpr int threads = 256;
constexpr unsigned all_lanes = 0xffffffffU;

/// Calls body(i) for first <= i < end, with a thread for each.
template <class Body>
__global__ void __launch_bounds__(threads) inclusion_kernel(std::int64_t first, std::int64_t end, Body const body) {
  if (std::int64_t const i = first + std::int64_t{blockIdx.x} * threads + threadIdx.x; i < end)
    body(i);
}
template <class Body>
void for_each(Context& context, std::int64_t first, std::int64_t end, Body const& body) {
  if (end <= first)
    return;
  inclusion_kernel<<<cuda::n_blocks(end - first, threads), threads, 0, cuda::of(context).stream()>>>(first, end, body);
  POISSON_CUDA_CHECK(cudaGetLastError());
}

struct Links {
  __device__ std::int32_t load(std::int32_t* place) const { return *static_cast<std::int32_t volatile*>(place); }
  __device__ void store(std::int32_t* place, std::int32_t value) const { *static_cast<std::int32_t volatile*>(place) = value; }
  __device__ std::int32_t exchange(std::int32_t* place, std::int32_t expected, std::int32_t value) const {
    return atomicCAS(place, expected, value);
  }
};

template <class V>
struct FindJump {
  std::int64_t n, line, plane;
  V const* diagonal;
  double ratio;
  std::int32_t* found;
  __device__ void operator()(std::int64_t i) const {
    if (inclusion_rows::has_jump(n, line, plane, diagonal, ratio, i))
      *static_cast<std::int32_t volatile*>(found) = 1;
  }
};
struct Begin {
  std::int32_t* parent;
  __device__ void operator()(std::int64_t i) const { parent[i] = static_cast<std::int32_t>(i); }
};
struct Join {
  BoxSlab slab;
  double strong;
  std::int32_t* parent;
  __device__ void operator()(std::int64_t row) const { inclusion_rows::join_row(Links(), slab, strong, row, parent); }
};
struct FindRoot {
  std::int32_t* parent;
  __device__ void operator()(std::int64_t i) const {
    Links().store(parent + i, inclusion_rows::root_of(Links(), parent, static_cast<std::int32_t>(i)));
  }
};
struct MarkAnchored {
  BoxSlab slab;
  double weak;
  std::int32_t const* root;
  std::uint8_t* anchored;
  __device__ void operator()(std::int64_t row) const {
    std::uint8_t volatile* const mark = anchored + root[row + slab.shift()];
    if (*mark == 0 && inclusion_rows::is_anchored(slab, weak, row, root))
      *mark = 1;
  }
};
struct Collect {
  std::int32_t const* root;
  std::uint8_t const* anchored;
  unsigned long long capacity;
  std::int32_t* found;
  unsigned long long* count;
  __device__ void operator()(std::int64_t i) const {
    if (anchored[root[i]] != 0)
      return;
    unsigned long long const place = atomicAdd(count, 1ULL);
    if (place < capacity) {
      found[2 * place] = static_cast<std::int32_t>(i);
      found[2 * place + 1] = root[i];
    }
  }
};
struct TakeRows {
  BoxSlab slab;
  std::int32_t const* nodes;
  double* entries;
  __device__ void operator()(std::int64_t c) const {
    std::int64_t const node = nodes[c], plane = slab.plane();
    if (node >= slab.begin * plane && node < slab.end * plane)
      inclusion_rows::take_row(slab, node - slab.shift(), entries + 27 * c);
  }
};

__device__ double sum_of_warp(double sum) {
  for (int distance = 16; distance > 0; distance /= 2)
    sum += __shfl_xor_sync(all_lanes, sum, distance);
  return sum;
}

/// A warp takes a chunk.
__global__ void __launch_bounds__(threads) sum_chunks(InclusionView const inclusions, double const* r, std::int32_t const* stop) {
  auto const c = static_cast<std::int32_t>(blockIdx.x * (threads / 32) + threadIdx.x / 32),
             lane = static_cast<std::int32_t>(threadIdx.x % 32);
  if (c >= inclusions.n_chunks || *stop != 0)
    return;
  double sum = 0;
  for (std::int32_t i = inclusions.chunk_first[c] + lane; i < inclusions.chunk_first[c + 1]; i += 32)
    sum += inclusions.values[i] * r[inclusions.nodes[i]];
  sum = sum_of_warp(sum);
  if (lane == 0)
    inclusions.sums[c] = sum;
}
/// A warp takes an inclusion.
__global__ void __launch_bounds__(threads) add_chunks(InclusionView const inclusions, std::int32_t const* stop) {
  auto const i = static_cast<std::int32_t>(blockIdx.x * (threads / 32) + threadIdx.x / 32),
             lane = static_cast<std::int32_t>(threadIdx.x % 32);
  if (i >= inclusions.n_inclusions || *stop != 0)
    return;
  double sum = 0;
  for (std::int32_t c = inclusions.chunks_of[i] + lane; c < inclusions.chunks_of[i + 1]; c += 32)
    sum += inclusions.sums[c];
  sum = sum_of_warp(sum);
  if (lane == 0)
    inclusions.factors[i] = inclusions.inverse_energy[i] * sum;
}
/// A thread takes a node.
__global__ void __launch_bounds__(threads) add_rows(InclusionView const inclusions, double* z, std::int32_t const* stop) {
  auto const k = static_cast<std::int32_t>(blockIdx.x * threads + threadIdx.x);
  if (k >= inclusions.n_rows || *stop != 0)
    return;
  double sum = 0;
  for (std::int32_t j = inclusions.row_first[k]; j < inclusions.row_first[k + 1]; ++j)
    sum += inclusions.row_values[j] * inclusions.factors[inclusions.of_row[j]];
  z[inclusions.rows[k]] += sum;
}

class CudaInclusions final : public InclusionKernels {
public:
  bool has_jump(Context& context, std::int64_t n, std::int64_t line, std::int64_t plane, float const* diagonal,
                double ratio) const override {
    return finds_jump(context, n, line, plane, diagonal, ratio);
  }
  bool has_jump(Context& context, std::int64_t n, std::int64_t line, std::int64_t plane, double const* diagonal,
                double ratio) const override {
    return finds_jump(context, n, line, plane, diagonal, ratio);
  }
  void begin(Context& context, std::int64_t n, std::int32_t* parent) const override { for_each(context, 0, n, Begin{parent}); }
  void join(Context& context, BoxSlab const& slab, double strong, std::int32_t* parent) const override {
    for_rows(context, slab, Join{slab, strong, parent});
  }
  void find_roots(Context& context, std::int64_t n, std::int32_t* parent) const override {
    for_each(context, 0, n, FindRoot{parent});
  }
  void mark_anchored(Context& context, BoxSlab const& slab, double weak, std::int32_t const* root,
                     std::uint8_t* anchored) const override {
    for_rows(context, slab, MarkAnchored{slab, weak, root, anchored});
  }
  std::int64_t collect(Context& context, std::int64_t n, std::int32_t const* root, std::uint8_t const* anchored,
                       std::int64_t capacity, std::int32_t* found) const override {
    Array<unsigned long long> counter(context, 1);
    counter.set_zero();
    for_each(context, 0, n, Collect{root, anchored, static_cast<unsigned long long>(capacity), found, counter.data()});
    unsigned long long count = 0;
    counter.download(std::span<unsigned long long>(&count, 1));
    return static_cast<std::int64_t>(count);
  }
  void rows(Context& context, BoxSlab const& slab, std::int64_t count, std::int32_t const* nodes, double* entries) const override {
    for_each(context, 0, count, TakeRows{slab, nodes, entries});
  }
  void add(Context& context, InclusionView const& inclusions, double const* r, double* z, std::int32_t const* stop) const override {
    constexpr int warps = threads / 32;
    cudaStream_t const stream = cuda::of(context).stream();
    sum_chunks<<<cuda::n_blocks(inclusions.n_chunks, warps), threads, 0, stream>>>(inclusions, r, stop);
    POISSON_CUDA_CHECK(cudaGetLastError());
    add_chunks<<<cuda::n_blocks(inclusions.n_inclusions, warps), threads, 0, stream>>>(inclusions, stop);
    POISSON_CUDA_CHECK(cudaGetLastError());
    add_rows<<<cuda::n_blocks(inclusions.n_rows, threads), threads, 0, stream>>>(inclusions, z, stop);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

private:
  template <class V>
  static bool finds_jump(Context& context, std::int64_t n, std::int64_t line, std::int64_t plane, V const* diagonal, double ratio) {
    Array<std::int32_t> found(context, 1);
    found.set_zero();
    for_each(context, 0, n, FindJump<V>{n, line, plane, diagonal, ratio, found.data()});
    std::int32_t result = 0;
    found.download(std::span<std::int32_t>(&result, 1));
    return result != 0;
  }
  template <class Body>
  static void for_rows(Context& context, BoxSlab const& slab, Body const& body) {
    std::int64_t const plane = slab.plane();
    for_each(context, (slab.begin - slab.first_plane) * plane, (slab.end - slab.first_plane) * plane, body);
  }
};

}  // namespace

InclusionKernels const& InclusionKernels::cuda() {
  static CudaInclusions const kernels;
  return kernels;
}

}  // namespace poisson
