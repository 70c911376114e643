// Factorisation and triangular solves without synchronisation between levels: one launch takes all rows by level, and a row that
// needs another waits for that row alone. (Solves of few and large levels take a launch each instead: then nothing waits.) Blocks
// take their rows by a ticket, so that those that wait do so only for blocks that run already, whatever order the device starts
// blocks in. Rows that share a warp are of one level and do not wait for each other. Every sum is added in an order of its own;
// timing decides when, never what.
#include "gpu/kernels/ilu.hpp"

#include "gpu/core/array.hpp"
#include "gpu/kernels/cuda/rows.cuh"

#include <algorithm>
#include <cmath>
#include <span>

namespace poisson {

namespace {

constexpr int threads = 256;

/// The block's turn: 0, 1, ... in the order in which blocks began. `counter` is 0 between kernels.
__device__ std::int64_t draw_ticket(unsigned* counter) {
  __shared__ unsigned ticket;
  if (threadIdx.x == 0)
    ticket = atomicInc(counter, gridDim.x - 1);
  __syncthreads();
  return ticket;
}

// ---- factorisation: a warp takes a row

/// What is written by one multiprocessor and read by another goes by L2.
__device__ double read(double const* p) {
  return __ldcg(p);
}
__device__ void write(double* p, double v) {
  __stcg(p, v);
}

__device__ void wait_for(int const* done) {
  int const volatile* const flag = done;
  while (*flag == 0)
    __nanosleep(20);
}

/// Place of `column` among the ascending columns[begin ... end - 1], or -1.
__device__ std::int64_t find(std::int32_t const* __restrict__ columns, std::int64_t begin, std::int64_t end, std::int32_t column) {
  while (begin < end) {
    std::int64_t const middle = begin + (end - begin) / 2;
    std::int32_t const there = __ldg(columns + middle);
    if (there == column)
      return middle;
    if (there < column)
      begin = middle + 1;
    else
      end = middle;
  }
  return -1;
}

/// done[row] is set when its row is complete. Rows that cannot be divided by are counted in *first_bad, by the least.
__global__ void __launch_bounds__(threads)
    factorize_kernel(IluView a, bool positive, int* done, unsigned long long* first_bad, double* pivots, unsigned* counter) {
  std::int64_t const slot = draw_ticket(counter) * (threads / 32) + threadIdx.x / 32;
  int const lane = static_cast<int>(threadIdx.x % 32);
  std::int64_t const row = slot < a.lower.n_slots ? a.lower.rows[slot] : -1;
  if (row < 0)
    return;
  std::int64_t const begin = a.row_ptr[row], diagonal = a.diagonal[row], end = a.row_ptr[row + 1];
  double largest = 0;
  for (std::int64_t e = begin + lane; e < end; e += 32)
    largest = fmax(largest, fabs(a.values[e]));
  for (int distance = 16; distance > 0; distance /= 2)
    largest = fmax(largest, cuda::shuffle_down(largest, distance));
  for (std::int64_t e = begin; e < diagonal; ++e) {
    std::int64_t const k = __ldg(a.columns + e);
    if (lane == 0)
      wait_for(done + k);
    __syncwarp();
    __threadfence();  // the flag of row k first, its numbers after
    std::int64_t const diagonal_k = __ldg(a.diagonal + k), end_k = __ldg(a.row_ptr + k + 1);
    double const factor = read(a.values + e) * read(a.values + diagonal_k);
    __syncwarp();
    if (lane == 0)
      write(a.values + e, factor);
    for (std::int64_t from = diagonal_k + 1 + lane; from < end_k; from += 32)
      if (std::int64_t const to = find(a.columns, e + 1, end, __ldg(a.columns + from)); to >= 0)
        write(a.values + to, fma(-factor, read(a.values + from), read(a.values + to)));
    __syncwarp();
  }
  if (lane == 0) {
    double const pivot = read(a.values + diagonal);
    write(a.values + diagonal, 1 / pivot);
    pivots[row] = pivot;
    if (!((positive ? pivot : fabs(pivot)) > smallest_pivot * largest) || !(pivot - pivot == 0))
      atomicMin(first_bad, static_cast<unsigned long long>(row));
  }
  __threadfence();  // every lane's numbers first, the flag after
  __syncwarp();
  if (lane == 0)
    *const_cast<int volatile*>(done + row) = 1;
}

// ---- solves: a number that is not there yet says so itself

/// The bits of a NaN that no arithmetic produces: what set_zero's counterpart for bytes of all ones leaves.
constexpr unsigned long long not_there = ~0ULL;

/// Waits until the number is there. It comes whole, and nothing else is read on its account, so no fence is needed.
__device__ double await(double const* p) {
  auto const* const bits = reinterpret_cast<unsigned long long const volatile*>(p);
  unsigned long long v = *bits;
  while (v == not_there) {
    __nanosleep(20);
    v = *bits;
  }
  return __longlong_as_double(static_cast<long long>(v));
}
__device__ DoubleDouble await(ConstPointer<DoubleDouble> p) {
  double const hi = await(p.hi);
  return {hi, await(p.lo)};
}

__device__ void announce(double* p, double v) {
  auto bits = static_cast<unsigned long long>(__double_as_longlong(v));
  if (bits == not_there)
    bits -= 1;  // some other NaN
  *reinterpret_cast<unsigned long long volatile*>(p) = bits;
}
__device__ void announce(Pointer<DoubleDouble> p, DoubleDouble v) {
  announce(p.hi, v.hi);
  announce(p.lo, v.lo);
}

__device__ void withdraw(double* p) {
  *reinterpret_cast<unsigned long long*>(p) = not_there;
}
__device__ void withdraw(Pointer<DoubleDouble> p) {
  withdraw(p.hi);
  withdraw(p.lo);
}

/// Terms that a thread loads together where nothing waits.
constexpr int batch = 4;

/// How a row gets what it needs of `out`: it waits for it, or it was written by launches before.
enum class Needs { wait, there };

/// Slots first ... end - 1 of one triangle: `out` from `in`. `out` is withdrawn everywhere before the kernel. Of the other vector,
/// `withdrawn`, a row's place is withdrawn when the row is done: the lower triangle prepares the upper one's `out`, the upper one
/// the work vector for the next solve. Of factors in another order the lower triangle gathers `in`, and the upper one scatters
/// `out` to `scattered` too.
template <class T, bool upper, Needs needs, int threads_per_row>
__global__ void __launch_bounds__(threads)
    solve_kernel(IluView a, std::int64_t first, std::int64_t end_slot, ConstPointer<T> in, Pointer<T> out, Pointer<T> withdrawn,
                 Pointer<T> scattered, std::int32_t const* stop, unsigned* counter) {
  if (*stop != 0)
    return;
  std::int64_t const block = needs == Needs::wait ? draw_ticket(counter) : blockIdx.x;
  std::int64_t const slot = first + (block * threads + threadIdx.x) / threads_per_row;
  int const lane = static_cast<int>(threadIdx.x % threads_per_row);
  std::int64_t const row = slot < end_slot ? __ldg((upper ? a.upper : a.lower).rows + slot) : -1;
  std::int64_t diagonal = 0;
  DotSum<T> sum{};
  if (row >= 0) {
    diagonal = __ldg(a.diagonal + row);
    std::int64_t const begin = upper ? diagonal + 1 : __ldg(a.row_ptr + row), end = upper ? __ldg(a.row_ptr + row + 1) : diagonal;
    if constexpr (needs == Needs::wait) {
      for (std::int64_t e = begin + lane; e < end; e += threads_per_row)
        sum.add(__ldg(a.values + e), await(ConstPointer<T>(out + __ldg(a.columns + e))));
    } else  // no place that is read is written by this launch
      sum = cuda::add_terms<batch, false, cuda::Beyond::skipped>(
          sum, lane, static_cast<std::int32_t>(end - begin), threads_per_row,
          [&](std::int32_t j) { return __ldg(a.values + begin + j); }, [&](std::int32_t j) { return __ldg(a.columns + begin + j); },
          ConstPointer<T>(out));
  }
  __syncwarp();
  for (int distance = threads_per_row / 2; distance > 0; distance /= 2)
    sum.add(cuda::shuffle_down(sum, distance));
  if (row < 0 || lane != 0)
    return;
  std::int64_t const of_a = a.order == nullptr ? row : __ldg(a.order + row);
  T value = load(in, upper ? row : of_a) - sum.value();
  if constexpr (upper)
    value = __ldg(a.values + diagonal) * value;
  if constexpr (needs == Needs::wait) {
    announce(out + row, value);
    withdraw(withdrawn + row);
  } else
    store(out, row, value);
  if (upper && a.order != nullptr)
    store(scattered, of_a, value);
}

template <class T, bool upper, Needs needs>
void enqueue_slots(cuda::CudaContext& device, IluView const& a, std::int64_t first, std::int64_t end, ConstPointer<T> in,
                   Pointer<T> out, Pointer<T> withdrawn, Pointer<T> scattered, std::int32_t const* stop) {
  auto const kernel = [&] {
    switch (a.threads_per_row) {
    case 1:
      return solve_kernel<T, upper, needs, 1>;
    case 2:
      return solve_kernel<T, upper, needs, 2>;
    case 4:
      return solve_kernel<T, upper, needs, 4>;
    case 8:
      return solve_kernel<T, upper, needs, 8>;
    case 16:
      return solve_kernel<T, upper, needs, 16>;
    default:
      return solve_kernel<T, upper, needs, 32>;
    }
  }();
  kernel<<<cuda::n_blocks((end - first) * a.threads_per_row, threads), threads, 0, device.stream()>>>(
      a, first, end, in, out, withdrawn, scattered, stop, device.block_counter());
  POISSON_CUDA_CHECK(cudaGetLastError());
}

/// Of levels first ... end - 1, each by a launch.
template <class T, bool upper>
void enqueue_levels(cuda::CudaContext& device, IluView const& a, std::int64_t first, std::int64_t end, ConstPointer<T> in,
                    Pointer<T> out, Pointer<T> scattered, std::int32_t const* stop) {
  std::int64_t const* const level_ptr = (upper ? a.upper : a.lower).level_ptr;
  for (std::int64_t level = first; level < end; ++level)
    if (level_ptr[level] < level_ptr[level + 1])
      enqueue_slots<T, upper, Needs::there>(device, a, level_ptr[level], level_ptr[level + 1], in, out, {}, scattered, stop);
}

template <class T, bool upper>
void enqueue_solve(cuda::CudaContext& device, IluView const& a, ConstPointer<T> in, Pointer<T> out, Pointer<T> withdrawn,
                   Pointer<T> scattered, std::int32_t const* stop) {
  LevelSchedule const& schedule = upper ? a.upper : a.lower;
  if (a.level_launches)
    enqueue_levels<T, upper>(device, a, 0, schedule.n_levels, in, out, scattered, stop);
  else
    enqueue_slots<T, upper, Needs::wait>(device, a, 0, schedule.n_slots, in, out, withdrawn, scattered, stop);
}

class CudaIlu final : public IluKernels {
public:
  BadPivot factorize(Context& context, IluView const& a, bool positive) const override {
    if (a.n_rows == 0)
      return {};
    auto& device = cuda::of(context);
    Array<int> done(context, a.n_rows);
    Array<double> pivots(context, a.n_rows);
    done.set_zero();
    unsigned long long first_bad = static_cast<unsigned long long>(a.n_rows);
    Array<unsigned long long> device_first_bad(context, std::span<unsigned long long const>(&first_bad, 1));
    factorize_kernel<<<cuda::n_blocks(a.lower.n_slots * 32, threads), threads, 0, device.stream()>>>(
        a, positive, done.data(), device_first_bad.data(), pivots.data(), device.block_counter());
    POISSON_CUDA_CHECK(cudaGetLastError());
    device_first_bad.download(std::span<unsigned long long>(&first_bad, 1));
    auto const row = static_cast<std::int64_t>(first_bad);
    if (row == a.n_rows)
      return {};
    BadPivot bad{row, 0};
    context.download(&bad.value, pivots.data() + row, sizeof(double));
    return bad;
  }
};

template <class T>
class CudaIluSolve final : public IluSolveKernels<T> {
public:
  void prepare(Context& context, std::int64_t n, Pointer<T> work) const override {
    if constexpr (std::is_same_v<T, double>)
      withdraw_all(context, n, work);
    else {
      withdraw_all(context, n, work.hi);
      withdraw_all(context, n, work.lo);
    }
  }

  void solve(Context& context, IluView const& a, ConstPointer<T> r, Pointer<T> z, Pointer<T> work,
             std::int32_t const* stop) const override {
    if (a.n_rows == 0)
      return;
    auto& device = cuda::of(context);
    Pointer<T> const ordered_z = a.order == nullptr ? z : work + a.n_rows;
    enqueue_solve<T, false>(device, a, r, work, ordered_z, z, stop);
    enqueue_solve<T, true>(device, a, ConstPointer<T>(work), ordered_z, work, z, stop);
  }

  void lower(Context& context, IluView const& a, std::int64_t first, std::int64_t end, ConstPointer<T> r, Pointer<T> work,
             std::int32_t const* stop) const override {
    enqueue_levels<T, false>(cuda::of(context), a, first, end, r, work, {}, stop);
  }
  void upper(Context& context, IluView const& a, std::int64_t first, std::int64_t end, ConstPointer<T> work, Pointer<T> ordered_z,
             Pointer<T> z, std::int32_t const* stop) const override {
    enqueue_levels<T, true>(cuda::of(context), a, first, end, work, ordered_z, z, stop);
  }

private:
  static void withdraw_all(Context& context, std::int64_t n, double* p) {
    POISSON_CUDA_CHECK(cudaMemsetAsync(p, 0xff, static_cast<std::size_t>(n) * sizeof(double), cuda::of(context).stream()));
  }
};

}  // namespace

IluKernels const& IluKernels::cuda() {
  static CudaIlu const kernels;
  return kernels;
}
template <>
IluSolveKernels<double> const& IluSolveKernels<double>::cuda() {
  static CudaIluSolve<double> const kernels;
  return kernels;
}
template <>
IluSolveKernels<DoubleDouble> const& IluSolveKernels<DoubleDouble>::cuda() {
  static CudaIluSolve<DoubleDouble> const kernels;
  return kernels;
}

}  // namespace poisson
