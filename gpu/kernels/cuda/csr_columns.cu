#include "gpu/kernels/csr_columns.hpp"

#include "gpu/kernels/cuda/columns.cuh"
#include "gpu/kernels/cuda/cuda.cuh"
#include "gpu/kernels/cuda/krylov.cuh"

namespace poisson {

namespace {

using cuda::ColumnPointers, cuda::ColumnRows, cuda::DotOutputs, cuda::StopFlags;

constexpr int threads = cuda::pass_threads;

/// Calls finish(row, y, x) with (A x)_row and x_row of all columns, in one thread for every row. `team` neighbouring threads, a
/// power of two up to 32, share a row: entries and their columns are loaded once, and x of every column beside them.
template <class V, int columns, class Finish>
__device__ __forceinline__ void for_csr_rows(CsrView const& a, V const* __restrict__ values, int team,
                                             ColumnPointers<V, columns> const& x, Finish const& finish) {
  int const phase = static_cast<int>(threadIdx.x) % team, rows = threads / team;
  for (std::int64_t first = std::int64_t{blockIdx.x} * rows; first < a.n_rows; first += std::int64_t{gridDim.x} * rows) {
    std::int64_t const row = first + static_cast<int>(threadIdx.x) / team;
    bool const live = row < a.n_rows;
    DotSum<V> sum[columns];
#pragma unroll
    for (int c = 0; c < columns; ++c)
      sum[c] = {};
    if (live) {
      std::int64_t const end = __ldg(a.row_ptr + row + 1);
#pragma unroll 2
      for (std::int64_t e = __ldg(a.row_ptr + row) + phase; e < end; e += team) {
        V const v = __ldg(values + e);
        std::int32_t const at = __ldg(a.columns + e);
#pragma unroll
        for (int c = 0; c < columns; ++c)
          sum[c].add(v, __ldg(x.of[c] + at));
      }
    }
    for (int distance = team / 2; distance > 0; distance /= 2)
#pragma unroll
      for (int c = 0; c < columns; ++c)
        sum[c].add(cuda::shuffle_down(sum[c], distance));
    if (live && phase == 0) {
      V y[columns], own[columns];
#pragma unroll
      for (int c = 0; c < columns; ++c) {
        y[c] = sum[c].value();
        own[c] = __ldg(x.of[c] + row);
      }
      finish(row, y, own);
    }
  }
}

template <int columns>
__global__ void __launch_bounds__(threads)
    csr_dots_kernel(CsrView const a, int team, ColumnPointers<double, columns> const x, DotOutputs<columns> const to,
                    StopFlags<columns> const stop, double* partial, unsigned* counter) {
  unsigned const running = stop.running();
  if (running == 0)
    return;
  double sums[columns] = {};
  for_csr_rows<double, columns>(a, a.values, team, x,
                                [&](std::int64_t row, double const(&y)[columns], double const(&own)[columns]) {
#pragma unroll
                                  for (int c = 0; c < columns; ++c)
                                    if (running >> c & 1U) {
                                      to.y[c][row] = y[c];
                                      sums[c] = fma(own[c], y[c], sums[c]);
                                    }
                                });
  to.finish(running, sums, partial, counter);
}

template <class V, int columns, class Row>
__global__ void __launch_bounds__(threads)
    csr_rows_kernel(CsrView const a, V const* __restrict__ values, int team, ColumnPointers<V, columns> const x,
                    ColumnRows<Row, columns> const rows, StopFlags<columns> const stop) {
  unsigned const running = stop.running();
  if (running == 0)
    return;
  for_csr_rows<V, columns>(a, values, team, x, [&](std::int64_t row, V const(&y)[columns], V const(&own)[columns]) {
#pragma unroll
    for (int c = 0; c < columns; ++c)
      if (running >> c & 1U)
        rows.of[c](row, y[c], own[c]);
  });
}

/// As for one column, without regard to how many threads fill the device.
int team_of(CsrView const& a) {
  if (a.threads_per_row != 0)
    return a.threads_per_row;
  std::int64_t const mean = a.nnz / a.n_rows;
  int team = 1;
  while (team < 32 && 4 * team < mean)
    team *= 2;
  return team;
}

class CudaCsrColumns final : public CsrColumnKernels {
public:
  void product_dots(Context& context, CsrView const& a, std::span<ProductColumn<double> const> given) const override {
    if (given.size() < 2 || a.values == nullptr || a.n_rows == 0)
      return one_by_one(context, a, given);
    auto& device = cuda::of(context);
    int const team = team_of(a);
    unsigned const blocks = cuda::reduction_blocks(device, team * a.n_rows);
    cuda::with_columns(given.size(), [&](auto number) {
      constexpr int columns = number;
      double* const partial = device.partial_sums<double>(std::int64_t{columns} * blocks);
      csr_dots_kernel<columns>
          <<<blocks, threads, 0, device.stream()>>>(a, team, cuda::x_of<columns, double>(given), cuda::outputs_of<columns>(given),
                                                    cuda::stops_of<columns>(given), partial, device.block_counter());
      POISSON_CUDA_CHECK(cudaGetLastError());
    });
  }
  void product_dots(Context& context, CsrView const& a, std::span<ProductColumn<DoubleDouble> const> given) const override {
    one_by_one(context, a, given);
  }
  void smooth(Context& context, CsrView const& a, std::span<SmoothingColumn<float> const> given) const override {
    take_rows<float>(context, a, a.single_values, given);
  }
  void smooth(Context& context, CsrView const& a, std::span<SmoothingColumn<double> const> given) const override {
    take_rows<double>(context, a, a.values, given);
  }
  void subtract_products(Context& context, CsrView const& a, std::span<ResidualColumn<float> const> given) const override {
    take_rows<float>(context, a, a.single_values, given);
  }
  void subtract_products(Context& context, CsrView const& a, std::span<ResidualColumn<double> const> given) const override {
    take_rows<double>(context, a, a.values, given);
  }

private:
  template <class T>
  static void one_by_one(Context& context, CsrView const& a, std::span<ProductColumn<T> const> given) {
    for (ProductColumn<T> const& column : given)
      CsrKernels::cuda().product_dot(context, a, column.x, column.y, column.dot, column.stop);
  }

  /// What SmoothingColumns or ResidualColumns ask for. Values that are stored in another precision have no kernel here.
  template <class V, class Column>
  static void take_rows(Context& context, CsrView const& a, V const* values, std::span<Column const> given) {
    if (given.size() < 2 || values == nullptr || a.n_rows == 0) {
      for (Column const& column : given)
        cuda::take_alone(CsrKernels::cuda(), context, a, column);
      return;
    }
    int const team = team_of(a);
    cuda::with_columns(given.size(), [&](auto number) {
      constexpr int columns = number;
      using Row = decltype(cuda::row_of(given[0]));
      csr_rows_kernel<V, columns, Row><<<cuda::n_blocks(team * a.n_rows, threads), threads, 0, cuda::of(context).stream()>>>(
          a, values, team, cuda::x_of<columns, V>(given), cuda::rows_of<columns>(given), cuda::stops_of<columns>(given));
      POISSON_CUDA_CHECK(cudaGetLastError());
    });
  }
};

}  // namespace

CsrColumnKernels const& CsrColumnKernels::cuda() {
  static CudaCsrColumns const kernels;
  return kernels;
}

}  // namespace poisson
