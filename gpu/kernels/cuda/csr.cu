#include "gpu/kernels/csr.hpp"

#include "gpu/kernels/cuda/rows.cuh"

namespace poisson {

namespace {

/// Entries that a thread loads together.
constexpr int batch = 4;

constexpr int threads = 256;

template <class T, class Values>
struct CsrSource : CsrView {
  using Number = T;
  static constexpr int threads = poisson::threads, minimum_blocks = 6, unit = 1;
  static constexpr bool splits = true;
  Values entries;
  [[nodiscard]] __host__ __device__ std::int64_t n_units() const { return n_rows; }
  [[nodiscard]] __device__ std::int64_t row(std::int64_t place) const { return place; }
  [[nodiscard]] __device__ std::int64_t width(std::int64_t row) const { return __ldg(row_ptr + row + 1) - __ldg(row_ptr + row); }

  template <int phases>
  [[nodiscard]] __device__ __forceinline__ DotSum<T> partial(std::int64_t row, bool live, int, int phase, ConstPointer<T> x) const {
    if (live) {
      std::int64_t const begin = __ldg(row_ptr + row);
      auto const length = static_cast<std::int32_t>(__ldg(row_ptr + row + 1) - begin);  // at most the number of columns
      Values const v = entries + begin;
      std::int32_t const* const c = columns + begin;
      return cuda::add_terms<batch, false, cuda::Beyond::skipped>(
          DotSum<T>{}, phase, length, phases, [&](std::int32_t e) { return cuda::load_constant(v, e); },
          [&](std::int32_t e) { return __ldg(c + e); }, x);
    }
    return {};
  }
};

template <class V>
__global__ void diagonal_kernel(CsrView a, V const* values, V* d) {
  std::int64_t const row = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (row >= a.n_rows)
    return;
  std::int64_t first = a.row_ptr[row];
  std::int64_t const end = a.row_ptr[row + 1];
  for (std::int64_t last = end; first < last;) {
    std::int64_t const middle = first + (last - first) / 2;
    if (a.columns[middle] < row)
      first = middle + 1;
    else
      last = middle;
  }
  d[row] = first < end && a.columns[first] == row ? values[first] : 0;
}

/// One batch of entries for each thread, and more threads where the device would be idle and the longest row is long. The rule of
/// Yoshizawa and Takahashi 2012 looks at the longest row (16 from 32 entries on, else 2^(ceil(log2 longest) - 2), at least 1).
/// Where rows differ in length the mean tells more. Measured on an H200, T = 4, 8, 16: box of 256^3 nodes 1.59, 1.47, 2.0 ms; band
/// of 32 17.6, 16.5, 20.1 us; 32 random columns 42.8, 38.2, 35.4 us; ball of order 2 (64 a row) 460, 395, 396 us.
int team_for(Context& context, CsrView const& a) {
  if (a.threads_per_row != 0)
    return a.threads_per_row;
  std::int64_t const mean = a.n_rows > 0 ? a.nnz / a.n_rows : 0;
  int team = 1;
  while (team < 32 && batch * team < mean)
    team *= 2;
  while (team < 32 && team < a.longest_row && cuda::leaves_device_idle(context, team * a.n_rows / 2))
    team *= 2;
  return team;
}

/// Calls launch with an integral constant, the threads that share a row.
template <class Launch>
void with_team(Context& context, CsrView const& a, Launch const& launch) {
  switch (team_for(context, a)) {
  case 1:
    return launch(std::integral_constant<int, 1>{});
  case 2:
    return launch(std::integral_constant<int, 2>{});
  case 4:
    return launch(std::integral_constant<int, 4>{});
  case 8:
    return launch(std::integral_constant<int, 8>{});
  case 16:
    return launch(std::integral_constant<int, 16>{});
  default:
    return launch(std::integral_constant<int, 32>{});
  }
}

class CudaCsr final : public SmoothingByTemplates<ProductsByTemplates<CsrKernels, CudaCsr>, CudaCsr> {
public:
  template <class T, class Values>
  static void multiply(Context& context, CsrView const& a, Values values, T alpha, ConstPointer<T> x, T beta, Pointer<T> y) {
    CsrSource<T, Values> const source{a, values};
    with_team(context, a, [&](auto team) { cuda::rows_product<team()>(context, source, alpha, x, beta, y); });
  }

  template <class T, class Values>
  static void multiply_dot(Context& context, CsrView const& a, Values values, ConstPointer<T> x, Pointer<T> y, T* dot,
                           std::int32_t const* stop) {
    CsrSource<T, Values> const source{a, values};
    with_team(context, a, [&](auto team) { cuda::rows_product_dot<team()>(context, source, x, y, dot, stop); });
  }

  template <class V, class Finish>
  static void finish_rows(Context& context, CsrView const& a, V const* x, Finish const& finish, std::int32_t const* stop) {
    with_stored_values<V>(
        a,
        [&](auto values) {
          CsrSource<V, decltype(values)> const source{a, values};
          with_team(context, a, [&](auto team) { cuda::rows_finish<team()>(context, source, x, finish, stop); });
        },
        ValuePairs());
  }

  void diagonal(Context& context, CsrView const& a, double const* values, double* d) const override {
    find_diagonal(context, a, values, d);
  }
  void diagonal(Context& context, CsrView const& a, float const* values, float* d) const override {
    find_diagonal(context, a, values, d);
  }

private:
  template <class V>
  static void find_diagonal(Context& context, CsrView const& a, V const* values, V* d) {
    if (a.n_rows == 0)
      return;
    diagonal_kernel<<<cuda::n_blocks(a.n_rows, threads), threads, 0, cuda::of(context).stream()>>>(a, values, d);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }
};

}  // namespace

CsrKernels const& CsrKernels::cuda() {
  static CudaCsr const kernels;
  return kernels;
}

}  // namespace poisson
