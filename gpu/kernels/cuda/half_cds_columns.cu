#include "gpu/kernels/half_cds_columns.hpp"

#include "gpu/kernels/cuda/columns.cuh"
#include "gpu/kernels/cuda/cuda.cuh"
#include "gpu/kernels/cuda/half_cds_march.cuh"
#include "gpu/kernels/cuda/krylov.cuh"
#include "gpu/kernels/cuda/offsets.cuh"

#include <algorithm>
#include <optional>
#include <type_traits>

namespace poisson {

namespace {

using march::diagonals, march::dx, march::dy, march::first_between_planes;

using cuda::ColumnPointers, cuda::ColumnRows, cuda::DotOutputs, cuda::StopFlags;

// Large boxes: the march of half_cds_march.cuh. Windows of values are as there, and each column has a window of x. A plane stays in
// shared memory while the next one is worked on, so that x below a row is there and needs no registers; four columns at a time take
// what registers there are.

using ColumnTile = march::Tile<32, 8, 4>;
constexpr int columns_at_a_time = 4;

template <class V, int columns>
struct ColumnLayout {
  using Places = march::Layout<V, V, ColumnTile>;
  static constexpr int window_bytes = ColumnTile::x_size * static_cast<int>(sizeof(V));
  static constexpr int plane_bytes = Places::x_begin + Places::aligned(static_cast<std::size_t>(columns) * window_bytes);
  static constexpr int shared_bytes = ColumnTile::stages * plane_bytes;
  /// Blocks that a multiprocessor holds.
  static constexpr int blocks_at_once = static_cast<int>(sizeof(double) / sizeof(V));
};

/// Calls row(i, column, (A x)_i, x_i) for every row of this thread and every column, whose number is an integral constant. What
/// row.load(i) asks for, where there is such a thing, travels while the row below is worked on; row gets it then as well. (Where
/// rows waited for it column by column, a smoothing step of 8 columns took 1.8 ms in place of 1.26 at 256^3.) The terms of a row
/// are added in the order of HalfCdsKernels.
template <class V, class Accumulator, int columns, class Row>
__device__ __forceinline__ void for_column_rows(march::Box const& box, V const* __restrict__ values,
                                                ColumnPointers<V, columns> const& x, Row const& row) {
  using Tile = ColumnTile;
  using Layout = ColumnLayout<V, columns>;
  using Places = typename Layout::Places;
  constexpr int width = Tile::width, height = Tile::height, threads = Tile::threads, stages = Tile::stages, x_pitch = Tile::x_pitch;
  extern __shared__ double shared[];
  auto const shared_address = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  int const tx = threadIdx.x % width, ty = threadIdx.x / width;
  static_assert(threads == width * height);
  int const x0 = static_cast<int>(blockIdx.x) % box.tiles_x * box.tile_width;
  int const y0 = static_cast<int>(blockIdx.x) / box.tiles_x * box.tile_height;
  int const first = static_cast<int>(blockIdx.y) * box.chunk, last = min(first + box.chunk, box.planes);  // [first, last)
  std::int64_t const in_plane = std::int64_t{y0 + ty} * box.line + x0 + tx;
  bool const in_tile = tx < box.tile_width && ty < box.tile_height;
  bool const has_row = in_tile && x0 + tx < box.line && y0 + ty < box.lines && in_plane < box.plane;

  constexpr int n_windows = diagonals + 1, n_rims = (Tile::all_rims(n_windows) + threads - 1) / threads;
  march::RimEntry rim[n_rims];
#pragma unroll
  for (int r = 0; r < n_rims; ++r)
    rim[r] = march::rim_entry<Tile, V, n_windows>(box, values, x.of[0], x0, y0, static_cast<int>(threadIdx.x) + r * threads);

  // Plane z with its values, or of a plane beside those of the chunk what its rows need: the plane below is read for its x only.
  auto const copy_plane = [&](int z) {
    if (z <= last && z < box.planes) {
      bool const own_rows = z >= first && z < last, has_values = z >= first;
      unsigned const stage = shared_address + static_cast<unsigned>((z + stages) % stages * Layout::plane_bytes);
      std::int64_t const plane = z * box.plane, i = plane + in_plane;
      if (in_tile) {
        bool const exists = i >= 0 && i < box.n;
        if (has_values)
          march::unrolled<0, diagonals>([&](auto diagonal) {
            constexpr int k = diagonal, at = Tile::origin(k), step = Tile::pitch(k);
            if (k >= first_between_planes || own_rows)
              march::copy_async(stage + static_cast<unsigned>(Places::byte_of(k, at + ty * step + tx)), values + k * box.n, i,
                                exists);
          });
        march::unrolled<0, columns>([&](auto column) {
          constexpr int c = column, at = Tile::origin(diagonals);
          march::copy_async(
              stage + static_cast<unsigned>(Places::byte_of(diagonals, at + ty * x_pitch + tx) + c * Layout::window_bytes), x.of[c],
              i, exists);
        });
      }
#pragma unroll
      for (int r = 0; r < n_rims; ++r)
        if (rim[r].from != nullptr && (rim[r].of_x || (has_values && (rim[r].between_planes || own_rows)))) {
          std::int64_t const j = plane + rim[r].in_plane;
          unsigned const to = stage + static_cast<unsigned>(rim[r].to);
          bool const exists = j >= 0 && j < box.n;
          if (rim[r].of_x)
            march::unrolled<0, columns>([&](auto column) {
              constexpr int c = column;
              march::copy_async(to + static_cast<unsigned>(c * Layout::window_bytes), x.of[c], j, exists);
            });
          else
            march::copy_async(to, static_cast<V const*>(rim[r].from), j, exists);
        }
    }
    asm volatile("cp.async.commit_group;\n");
  };
  // In use are two planes, on their way stages - 2.
  march::unrolled<0, stages - 1>([&](auto s) { copy_plane(first - 1 + s); });

  Accumulator sum[columns];
#pragma unroll
  for (int c = 0; c < columns; ++c)
    sum[c] = {};
  [[maybe_unused]] cuda::TermsOf<Row> terms{};
  for (int z = first; z <= last; ++z) {
    asm volatile("cp.async.wait_group %0;\n" ::"n"(stages - 3));
    __syncthreads();  // planes z - 1 and z are there for all, and nobody reads plane z - 2 any more
    copy_plane(z + stages - 2);
    std::int64_t const below = (std::int64_t{z} - 1) * box.plane + in_plane;
    bool const completes = has_row && z > first && below < box.n;
    char const* const stages_begin = reinterpret_cast<char const*>(shared);
    char const* const stage = stages_begin + z % stages * Layout::plane_bytes;
    char const* const stage_below = stages_begin + (z + stages - 1) % stages * Layout::plane_bytes;
    auto const* const plane = reinterpret_cast<V const*>(stage);
    V const* const x_window = reinterpret_cast<V const*>(stage + Places::x_begin) + ty * x_pitch + tx;
    V const* const x_window_below = reinterpret_cast<V const*>(stage_below + Places::x_begin) + ty * x_pitch + tx;
    auto const complete = [&](auto column) {
      constexpr int c = column;
      V const x_i = x_window_below[c * Tile::x_size + x_pitch + 1];
      if constexpr (cuda::LoadsEarly<Row>)
        row(below, column, sum[c].value(), x_i, terms);
      else
        row(below, column, sum[c].value(), x_i);
    };
    if (z == box.planes) {  // above the last plane there is nothing
      if (completes) {
        march::add_wrapped(box, values, below, in_plane, [&](V v, std::int64_t j) {
#pragma unroll
          for (int c = 0; c < columns; ++c)
            sum[c].add(v, __ldg(x.of[c] + j));
        });
        march::unrolled<0, columns>(complete);
      }
      break;
    }
    // The value of diagonal k in the row of the node at (+shift dx, +shift dy).
    auto const value = [&](auto diagonal, auto shift) {
      constexpr int k = diagonal, step = Tile::pitch(k), at = Tile::origin(k) + shift * (dy(k) * step + dx(k));
      return plane[at + ty * step + tx];
    };
    constexpr std::integral_constant<int, 0> own{};
    constexpr std::integral_constant<int, 1> upper{};
    march::unrolled<0, columns / columns_at_a_time>([&](auto group) {
      constexpr int from = group * columns_at_a_time;
      V x_here[columns_at_a_time][9];
#pragma unroll
      for (int c = 0; c < columns_at_a_time; ++c)
#pragma unroll
        for (int d = 0; d < 9; ++d)
          x_here[c][d] = x_window[(from + c) * Tile::x_size + d / 3 * x_pitch + d % 3];
      auto const add = [&](V v, int d) {
#pragma unroll
        for (int c = 0; c < columns_at_a_time; ++c)
          sum[from + c].add(v, x_here[c][d]);
      };
      if (z > first) {
        march::unrolled<first_between_planes, diagonals>([&](auto k) { add(value(k, upper), (1 + dy(k)) * 3 + 1 + dx(k)); });
        if (completes)
          march::unrolled<from, from + columns_at_a_time>(complete);
      }
      if (z < last) {
#pragma unroll
        for (int c = 0; c < columns_at_a_time; ++c)
          sum[from + c] = {};
        add(value(std::integral_constant<int, 0>{}, own), 4);
        march::unrolled<1, first_between_planes>([&](auto k) { add(value(k, own), (1 - dy(k)) * 3 + 1 - dx(k)); });
        march::unrolled<first_between_planes, diagonals>([&](auto k) {
          constexpr int d = (1 - dy(k)) * 3 + 1 - dx(k);
          V const v = value(k, own);
#pragma unroll
          for (int c = 0; c < columns_at_a_time; ++c)
            sum[from + c].add(v, x_window_below[(from + c) * Tile::x_size + d / 3 * x_pitch + d % 3]);
        });
        march::unrolled<1, first_between_planes>([&](auto k) { add(value(k, upper), (1 + dy(k)) * 3 + 1 + dx(k)); });
      }
    });
    if constexpr (cuda::LoadsEarly<Row>)
      if (std::int64_t const i = z * box.plane + in_plane; z < last && has_row && i < box.n)
        terms = row.load(i);
  }
}

template <int columns>
__global__ void __launch_bounds__(ColumnTile::threads, 1)
    march_dots_kernel(march::Box const box, double const* __restrict__ values, ColumnPointers<double, columns> const x,
                      DotOutputs<columns> const to, StopFlags<columns> const stop, double* partial, unsigned* counter) {
  unsigned const running = stop.running();
  if (running == 0)
    return;
  double sums[columns] = {};
  for_column_rows<double, DotSum<double>, columns>(box, values, x, [&](std::int64_t i, auto column, double y, double x_i) {
    constexpr int c = column;
    if (running >> c & 1U) {
      cuda::store_streaming(to.y[c], i, y);
      sums[c] = fma(x_i, y, sums[c]);
    }
  });
  to.template finish<ColumnTile::threads>(running, sums, partial, counter);
}

/// The rows of the columns whose bits are set; the others are read, too.
template <class Row, int columns>
struct RunningRows {
  ColumnRows<Row, columns> const& rows;
  unsigned running;
  struct Terms {
    typename Row::Terms of[columns];
  };
  [[nodiscard]] __device__ __forceinline__ Terms load(std::int64_t i) const {
    Terms terms;
    auto const diagonal = rows.of[0].diagonal(i);
#pragma unroll
    for (int c = 0; c < columns; ++c)
      terms.of[c] = rows.of[c].load(i, diagonal);
    return terms;
  }
  template <class V>
  __device__ __forceinline__ void operator()(std::int64_t i, auto column, V y, V x_i, Terms const& terms) const {
    constexpr int c = column;
    if (running >> c & 1U)
      rows.of[c](i, y, x_i, terms.of[c]);
  }
};

template <class V, int columns, class Row>
__global__ void __launch_bounds__(ColumnTile::threads, ColumnLayout<V, columns>::blocks_at_once)
    march_column_rows_kernel(march::Box const box, V const* __restrict__ values, ColumnPointers<V, columns> const x,
                             ColumnRows<Row, columns> const rows, StopFlags<columns> const stop) {
  unsigned const running = stop.running();
  if (running == 0)
    return;
  for_column_rows<V, PlainSum<V>, columns>(box, values, x, RunningRows<Row, columns>{rows, running});
}

// Everything else: a thread a row, which asks for a stored value once for all columns.

constexpr int row_threads = cuda::pass_threads;

template <class V, class Accumulator, int columns, class Offsets>
__device__ __forceinline__ void column_products(std::int64_t n, V const* __restrict__ values, Offsets const& offsets,
                                                ColumnPointers<V, columns> const& x, std::int64_t i, V (&y)[columns],
                                                V (&x_i)[columns]) {
  Accumulator sum[columns];
  auto const add = [&](V v, std::int64_t j) {
#pragma unroll
    for (int c = 0; c < columns; ++c)
      sum[c].add(v, __ldg(x.of[c] + j));
  };
  V const diagonal = __ldg(values + i);
#pragma unroll
  for (int c = 0; c < columns; ++c) {
    sum[c] = {};
    x_i[c] = __ldg(x.of[c] + i);
    sum[c].add(diagonal, x_i[c]);
  }
#pragma unroll
  for (int k = 1; k < offsets.size(); ++k)
    if (std::int64_t const o = offsets[k]; i >= o)
      add(__ldg(values + k * n + i), i - o);
#pragma unroll
  for (int k = 1; k < offsets.size(); ++k)
    if (std::int64_t const o = offsets[k]; i + o < n)
      add(__ldg(values + k * n + i + o), i + o);
#pragma unroll
  for (int c = 0; c < columns; ++c)
    y[c] = sum[c].value();
}

template <int columns, class Offsets>
__global__ void __launch_bounds__(row_threads)
    column_dots_kernel(std::int64_t n, double const* __restrict__ values, Offsets const offsets,
                       ColumnPointers<double, columns> const x, DotOutputs<columns> const to, StopFlags<columns> const stop,
                       double* partial, unsigned* counter) {
  unsigned const running = stop.running();
  if (running == 0)
    return;
  double sums[columns] = {};
  for (std::int64_t i = cuda::first_item(1); i < n; i += cuda::item_stride(1)) {
    double y[columns], x_i[columns];
    column_products<double, DotSum<double>>(n, values, offsets, x, i, y, x_i);
#pragma unroll
    for (int c = 0; c < columns; ++c)
      if (running >> c & 1U) {
        cuda::store_streaming(to.y[c], i, y[c]);
        sums[c] = fma(x_i[c], y[c], sums[c]);
      }
  }
  to.finish(running, sums, partial, counter);
}

template <class V, int columns, class Offsets, class Row>
__global__ void __launch_bounds__(row_threads)
    column_rows_kernel(std::int64_t n, V const* __restrict__ values, Offsets const offsets, ColumnPointers<V, columns> const x,
                       ColumnRows<Row, columns> const rows, StopFlags<columns> const stop) {
  std::int64_t const i = cuda::first_item(1);
  unsigned const running = stop.running();
  if (i >= n || running == 0)
    return;
  V y[columns], x_i[columns];
  column_products<V, PlainSum<V>>(n, values, offsets, x, i, y, x_i);
#pragma unroll
  for (int c = 0; c < columns; ++c)
    if (running >> c & 1U)
      rows.of[c](i, y[c], x_i[c]);
}

/// The tiles of a box that is marched through, shared out for this tile; nothing for other matrices.
template <class V, int columns>
std::optional<march::Box> box_of(HalfCdsView const& a, cuda::CudaContext const& device) {
  using Layout = ColumnLayout<V, columns>;
  auto const box = march::box_of<V, V>(a, device);
  if (!box || device.shared_memory_per_block() < Layout::shared_bytes)
    return std::nullopt;
  return march::share_out<ColumnTile>(a.n, box->line, box->plane, std::int64_t{Layout::blocks_at_once} * device.multiprocessors())
      .box;
}

class CudaHalfCdsColumns final : public HalfCdsColumnKernels {
public:
  void product_dots(Context& context, HalfCdsView const& a, std::span<ProductColumn<double> const> given) const override {
    if (given.size() < 2 || a.values == nullptr || a.n == 0)
      return one_by_one(context, a, given);
    auto& device = cuda::of(context);
    cuda::with_columns(given.size(), [&](auto number) {
      constexpr int columns = number;
      auto const x = cuda::x_of<columns, double>(given);
      auto const stop = cuda::stops_of<columns>(given);
      auto const to = cuda::outputs_of<columns>(given);
      if (auto const box = box_of<double, columns>(a, device)) {
        constexpr int shared_bytes = ColumnLayout<double, columns>::shared_bytes;
        dim3 const grid = box->grid();
        double* const partial = device.partial_sums<double>(std::int64_t{columns} * grid.x * grid.y);
        march::allow_shared_memory(march_dots_kernel<columns>, shared_bytes);
        march_dots_kernel<columns><<<grid, ColumnTile::threads, shared_bytes, device.stream()>>>(*box, a.values, x, to, stop,
                                                                                                 partial, device.block_counter());
      } else {
        unsigned const blocks = cuda::reduction_blocks(device, a.n);
        double* const partial = device.partial_sums<double>(std::int64_t{columns} * blocks);
        cuda::with_offsets<14>(a.offsets, a.backend_offsets, [&](auto const& offsets) {
          column_dots_kernel<columns>
              <<<blocks, row_threads, 0, device.stream()>>>(a.n, a.values, offsets, x, to, stop, partial, device.block_counter());
        });
      }
      POISSON_CUDA_CHECK(cudaGetLastError());
    });
  }
  void product_dots(Context& context, HalfCdsView const& a, std::span<ProductColumn<DoubleDouble> const> given) const override {
    one_by_one(context, a, given);
  }
  void smooth(Context& context, HalfCdsView const& a, std::span<SmoothingColumn<float> const> given) const override {
    take_rows<float>(context, a, a.single_values, given);
  }
  void smooth(Context& context, HalfCdsView const& a, std::span<SmoothingColumn<double> const> given) const override {
    take_rows<double>(context, a, a.values, given);
  }
  void subtract_products(Context& context, HalfCdsView const& a, std::span<ResidualColumn<float> const> given) const override {
    take_rows<float>(context, a, a.single_values, given);
  }
  void subtract_products(Context& context, HalfCdsView const& a, std::span<ResidualColumn<double> const> given) const override {
    take_rows<double>(context, a, a.values, given);
  }

private:
  template <class T>
  static void one_by_one(Context& context, HalfCdsView const& a, std::span<ProductColumn<T> const> given) {
    for (ProductColumn<T> const& column : given)
      HalfCdsKernels::cuda().product_dot(context, a, column.x, column.y, column.dot, column.stop);
  }

  /// What SmoothingColumns or ResidualColumns ask for. Values that are stored in another precision have no kernel here.
  template <class V, class Column>
  static void take_rows(Context& context, HalfCdsView const& a, V const* values, std::span<Column const> given) {
    if (given.size() < 2 || values == nullptr || a.n == 0) {
      for (Column const& column : given)
        cuda::take_alone(HalfCdsKernels::cuda(), context, a, column);
      return;
    }
    auto& device = cuda::of(context);
    cuda::with_columns(given.size(), [&](auto number) {
      constexpr int columns = number;
      using Row = decltype(cuda::row_of(given[0]));
      auto const x = cuda::x_of<columns, V>(given);
      auto const stop = cuda::stops_of<columns>(given);
      auto const rows = cuda::rows_of<columns>(given);
      if (auto const box = box_of<V, columns>(a, device)) {
        constexpr int shared_bytes = ColumnLayout<V, columns>::shared_bytes;
        march::allow_shared_memory(march_column_rows_kernel<V, columns, Row>, shared_bytes);
        march_column_rows_kernel<V, columns, Row>
            <<<box->grid(), ColumnTile::threads, shared_bytes, device.stream()>>>(*box, values, x, rows, stop);
      } else
        cuda::with_offsets<14>(a.offsets, a.backend_offsets, [&](auto const& offsets) {
          column_rows_kernel<V, columns>
              <<<cuda::n_blocks(a.n, row_threads), row_threads, 0, device.stream()>>>(a.n, values, offsets, x, rows, stop);
        });
      POISSON_CUDA_CHECK(cudaGetLastError());
    });
  }
};

}  // namespace

HalfCdsColumnKernels const& HalfCdsColumnKernels::cuda() {
  static CudaHalfCdsColumns const kernels;
  return kernels;
}

}  // namespace poisson
