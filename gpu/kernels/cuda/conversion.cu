#include "gpu/kernels/conversion.hpp"

#include "gpu/core/coo_matrix.hpp"
#include "gpu/kernels/csr_search.hpp"
#include "gpu/kernels/cuda/cuda.cuh"
#include "gpu/kernels/symmetry.hpp"

#include <algorithm>
#include <bit>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

namespace poisson {

namespace {

using Count = unsigned long long;  // what atomics add

constexpr int threads = 256;

/// What analyse_kernel finds, in device memory.
struct Found {
  Count row_not_finite;            ///< the smallest; n_rows where there is none
  Count above_with_mirror, below;  ///< entries above the diagonal whose mirror is stored, and entries below
  Count asymmetry;                 ///< the bits of the largest: doubles that are not negative are in the order of their bits
};

/// The row of entry e, going on from an earlier entry's `row`: doubling steps, then bisection, because empty rows may be many.
__device__ __forceinline__ std::int64_t row_from(CsrView const& a, std::int64_t row, std::int64_t e) {
  std::int64_t step = 1;
  while (row + step < a.n_rows && a.row_ptr[row + step] <= e) {
    row += step;
    step *= 2;
  }
  while (step > 1) {
    step /= 2;
    if (row + step < a.n_rows && a.row_ptr[row + step] <= e)
      row += step;
  }
  return row;
}

/// Entries of one warp, 32 neighbours at a time: rows of any length make equal work, and loads are coalesced.
constexpr int entries_per_warp = 2048;

/// Calls visit(row, e) for every entry.
template <class Visit>
__device__ __forceinline__ void for_entries(CsrView const& a, Visit const& visit) {
  std::int64_t const warp = (std::int64_t{blockIdx.x} * threads + threadIdx.x) / 32;
  std::int64_t const begin = warp * entries_per_warp, end = min(a.nnz, begin + entries_per_warp);
  if (begin >= end)
    return;
  // Every lane looks for the row of the first entry, then goes on by itself.
  std::int64_t row = 0;
  for (std::int64_t last = a.n_rows; last - row > 1;) {
    std::int64_t const middle = row + (last - row) / 2;
    if (a.row_ptr[middle] <= begin)
      row = middle;
    else
      last = middle;
  }
  for (std::int64_t e = begin + threadIdx.x % 32; e < end; e += 32) {
    row = row_from(a, row, e);
    visit(row, e);
  }
}

unsigned entry_blocks(CsrView const& a) {
  return cuda::n_blocks(a.nnz, entries_per_warp * (threads / 32));
}

/// Racing threads store the same value; looking first saves the stores.
__device__ __forceinline__ void set(unsigned char* flag) {
  if (*flag == 0)
    *flag = 1;
}

__device__ __forceinline__ void add_warps(Count* total, unsigned value) {
  value = __reduce_add_sync(0xffffffffu, value);
  if (threadIdx.x % 32 == 0 && value != 0)
    atomicAdd(total, Count{value});
}

/// One thread a row.
__global__ void __launch_bounds__(threads) largest_entries_kernel(CsrView const a, double* largest) {
  std::int64_t const row = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (row < a.n_rows)
    largest[row] = largest_entry(a, row);
}

__device__ __forceinline__ void add_asymmetry(double asymmetry, Found* found) {
  for (int distance = 16; distance > 0; distance /= 2)
    asymmetry = fmax(asymmetry, cuda::shuffle_down(asymmetry, distance));
  if (threadIdx.x % 32 == 0 && asymmetry > 0)
    atomicMax(&found->asymmetry, static_cast<Count>(__double_as_longlong(asymmetry)));
}

/// Flags of diagonals by column - row + n_rows, rows that are not finite and, with `symmetry`, entries above the diagonal against
/// their mirrors: 12 bytes an entry, and as many again for mirrors. `largest` entries of rows are read with `symmetry` only.
template <bool symmetry>
__global__ void __launch_bounds__(threads)
    analyse_kernel(CsrView const a, double const* __restrict__ largest, unsigned char* diagonals, Found* found) {
  unsigned above_with_mirror = 0, below = 0;
  double asymmetry = 0;
  for_entries(a, [&](std::int64_t row, std::int64_t e) {
    std::int64_t const column = a.columns[e];
    double const value = a.values[e];
    set(diagonals + (column - row + a.n_rows));
    if (!(value - value == 0))
      atomicMin(&found->row_not_finite, static_cast<Count>(row));
    if constexpr (symmetry) {
      below += column < row;
      if (column > row) {
        CsrEntry const mirror = find_entry(a, column, row, a.row_ptr[column + 1] - 1 - (e - a.row_ptr[row]));
        above_with_mirror += mirror.stored;
        if (value != mirror.value)
          asymmetry = fmax(asymmetry, asymmetry_of(value, mirror.value, largest[row], largest[column]));
      }
    }
  });
  if constexpr (symmetry) {
    add_warps(&found->above_with_mirror, above_with_mirror);
    add_warps(&found->below, below);
    add_asymmetry(asymmetry, found);
  }
}

/// Entries below the diagonal against their mirrors; only needed where some have none.
__global__ void __launch_bounds__(threads) below_kernel(CsrView const a, double const* __restrict__ largest, Found* found) {
  double asymmetry = 0;
  for_entries(a, [&](std::int64_t row, std::int64_t e) {
    std::int64_t const column = a.columns[e];
    if (column < row)
      asymmetry = fmax(asymmetry, asymmetry_of(a.values[e], find_entry(a, column, row, -1).value, largest[row], largest[column]));
  });
  add_asymmetry(asymmetry, found);
}

__global__ void __launch_bounds__(threads) longest_row_kernel(CsrView const a, unsigned* longest) {
  unsigned length = 0;
  for (std::int64_t row = std::int64_t{blockIdx.x} * threads + threadIdx.x; row < a.n_rows;
       row += std::int64_t{gridDim.x} * threads)
    length = max(length, static_cast<unsigned>(a.row_ptr[row + 1] - a.row_ptr[row]));
  length = __reduce_max_sync(0xffffffffu, length);
  if (threadIdx.x % 32 == 0)
    atomicMax(longest, length);
}

__global__ void __launch_bounds__(threads) count_kernel(std::int64_t n, unsigned char const* flags, Count* count) {
  unsigned here = 0;
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < n; i += std::int64_t{gridDim.x} * threads)
    here += flags[i] != 0;
  add_warps(count, here);
}

/// The numbers of the flags that are set, in any order. They are few.
__global__ void __launch_bounds__(threads)
    list_kernel(std::int64_t n, unsigned char const* flags, Count* count, std::int64_t* list) {
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < n; i += std::int64_t{gridDim.x} * threads)
    if (flags[i] != 0)
      list[atomicAdd(count, Count{1})] = i;
}

template <bool half>
__global__ void __launch_bounds__(threads) diagonals_kernel(CsrView const a, unsigned char* diagonals) {
  for_entries(a, [&](std::int64_t row, std::int64_t e) {
    std::int64_t const column = a.columns[e];
    if (!half || column <= row)
      set(diagonals + (column - row + a.n_rows));
  });
}

template <class Key>
__global__ void __launch_bounds__(threads)
    length_keys_kernel(CsrView const a, std::int64_t window, int length_bits, unsigned longest, Key* keys, std::int32_t* rows) {
  std::int64_t const row = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (row >= a.n_rows)
    return;
  auto const length = static_cast<unsigned>(a.row_ptr[row + 1] - a.row_ptr[row]);
  // With one window all of a 32-bit key may be length bits.
  keys[row] = (a.n_rows <= window ? Key{0} : static_cast<Key>(row / window) << length_bits) | (longest - length);
  rows[row] = static_cast<std::int32_t>(row);
}

/// min(C, 32) threads a slice.
__global__ void __launch_bounds__(threads) slice_width_kernel(CsrView const a, std::int32_t const* rows, std::int64_t slice_size,
                                                              std::int64_t slices, int team, std::int64_t* widths) {
  std::int64_t const slice = (std::int64_t{blockIdx.x} * threads + threadIdx.x) / team;
  std::int64_t width = 0;
  std::int64_t const end = min(a.n_rows, (slice + 1) * slice_size);
  for (std::int64_t place = slice * slice_size + threadIdx.x % team; place < end; place += team) {
    std::int64_t const row = rows == nullptr ? place : rows[place];
    width = max(width, a.row_ptr[row + 1] - a.row_ptr[row]);
  }
  for (int distance = team / 2; distance > 0; distance /= 2)
    width = max(width, __shfl_down_sync(0xffffffffu, width, distance, team));
  if (slice < slices && threadIdx.x % team == 0)
    widths[slice] = slice_size * width;
}

/// Rows of one block of the kernels that turn rows into columns, and the entries of theirs that shared memory holds: rows are read
/// as they lie in memory, and every thread then walks through its own. More entries than that are read where they are.
constexpr int block_rows = 128;
constexpr int staged_entries = 3712;

/// A gap after every 32 entries keeps rows of 16 or 32 from meeting in the same banks.
__device__ __forceinline__ int staged_place(std::int64_t e) {
  return static_cast<int>(e + e / 32);
}

struct Stage {
  std::int32_t columns[staged_entries + staged_entries / 32];
  double values[staged_entries + staged_entries / 32];
};

/// Entries of the block's rows, from shared memory or from where they are.
template <bool staged>
struct Entries {
  CsrView const& a;
  Stage const& stage;
  std::int64_t begin;
  [[nodiscard]] __device__ std::int32_t column(std::int64_t e) const {
    return staged ? stage.columns[staged_place(e - begin)] : a.columns[e];
  }
  [[nodiscard]] __device__ double value(std::int64_t e) const {
    return staged ? stage.values[staged_place(e - begin)] : a.values[e];
  }
};

/// Calls walk(entries) after loading the entries of the block's rows, if they are neighbours in memory and fit.
template <class Walk>
__device__ __forceinline__ void with_entries(CsrView const& a, bool neighbours, Walk const& walk) {
  __shared__ Stage stage;
  std::int64_t const first_row = std::int64_t{blockIdx.x} * block_rows;
  std::int64_t begin = 0, end = 0;
  if (neighbours && first_row < a.n_rows) {
    begin = a.row_ptr[first_row];
    end = a.row_ptr[min(a.n_rows, first_row + block_rows)];
  }
  if (neighbours && end - begin <= staged_entries) {
    for (std::int64_t e = begin + threadIdx.x; e < end; e += block_rows) {
      stage.columns[staged_place(e - begin)] = __ldcs(a.columns + e);
      stage.values[staged_place(e - begin)] = __ldcs(a.values + e);
    }
    __syncthreads();
    walk(Entries<true>{a, stage, begin});
  } else
    walk(Entries<false>{a, stage, begin});
}

/// One thread a place. 12 bytes an entry read, 12 written, and 12 for every place of padding.
__global__ void __launch_bounds__(block_rows) fill_slices_kernel(CsrView const a, SliceLayout const layout, std::int64_t places,
                                                                 std::int32_t* __restrict__ columns, double* __restrict__ values) {
  with_entries(a, layout.rows == nullptr, [&](auto const& entries) {
    std::int64_t const place = std::int64_t{blockIdx.x} * block_rows + threadIdx.x;
    if (place >= places)
      return;
    std::int64_t e = 0, end = 0;
    if (place < a.n_rows) {
      std::int64_t const row = layout.rows == nullptr ? place : layout.rows[place];
      e = a.row_ptr[row];
      end = a.row_ptr[row + 1];
    }
    std::int64_t const c = layout.slice_size, slice = place / c, slice_end = layout.slice_ptr[slice + 1];
    for (std::int64_t to = layout.slice_ptr[slice] + place % c; to < slice_end; to += c, ++e) {
      bool const inside = e < end;
      columns[to] = inside ? entries.column(e) : -1;
      values[to] = inside ? entries.value(e) : 0.0;
    }
  });
}

/// One thread a row. 12 bytes an entry read, 8 bytes a place of every diagonal written.
__global__ void __launch_bounds__(block_rows)
    fill_diagonals_kernel(CsrView const a, std::int32_t const* __restrict__ offsets, int count, bool half,
                          double* __restrict__ values, Count* taken_in_all) {
  unsigned taken = 0;
  with_entries(a, true, [&](auto const& entries) {
    std::int64_t const row = std::int64_t{blockIdx.x} * block_rows + threadIdx.x;
    if (row >= a.n_rows)
      return;
    constexpr std::int64_t none = INT64_MIN;
    std::int64_t e = a.row_ptr[row];
    std::int64_t const end = a.row_ptr[row + 1];
    std::int64_t next = e < end ? entries.column(e) : none;
    // Columns ascend, and so do the diagonals' column - row, which is -offset from the last to the first with `half`: one walk.
    for (int j = 0; j < count; ++j) {
      int const k = half ? count - 1 - j : j;
      std::int64_t const offset = __ldg(offsets + k), column = half ? row - offset : row + offset;
      double value = -0.0;
      if (next == column) {
        value = entries.value(e);
        value = value == 0 ? 0.0 : value;
        ++e;
        next = e < end ? entries.column(e) : none;
        ++taken;
      }
      __stcs(values + k * a.n_rows + row, value);
    }
  });
  add_warps(taken_in_all, taken);
}

struct WithoutSignOfZero {
  template <class V>
  __device__ V operator()(V v) const {
    return v == 0 ? V(0) : v;
  }
};
struct Rounded {
  __device__ float operator()(double v) const { return rounded_entry(v); }
};
struct Widened {
  __device__ double operator()(float v) const { return v; }
};

template <class X, class Y, class Change>
__global__ void __launch_bounds__(threads)
    transform_kernel(std::int64_t n, X const* __restrict__ x, Y* __restrict__ y, Change const change) {
  std::int64_t const i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i < n)
    y[i] = change(x[i]);
}

// COO to CSR: keys are row << column_bits | column, sorted stably, so that entries at the same place stay in their order.

__global__ void __launch_bounds__(threads)
    coo_keys_kernel(std::int64_t nnz, std::int32_t const* rows, std::int32_t const* columns, int column_bits, Count* keys) {
  std::int64_t const i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i < nnz)
    keys[i] = (static_cast<Count>(rows[i]) << column_bits) | static_cast<Count>(columns[i]);
}

/// 1 where a key differs from the one before.
__global__ void __launch_bounds__(threads) coo_heads_kernel(std::int64_t nnz, Count const* keys, Count* heads) {
  std::int64_t const i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i < nnz)
    heads[i] = i == 0 || keys[i] != keys[i - 1];
}

/// `numbers` are the heads added up: entry i goes to place numbers[i] - 1.
__global__ void __launch_bounds__(threads)
    coo_sum_kernel(std::int64_t nnz, Count const* __restrict__ keys, Count const* __restrict__ numbers,
                   double const* __restrict__ values, int column_bits, CsrTarget const to) {
  std::int64_t const i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i >= nnz)
    return;
  Count const key = keys[i];
  if (i > 0 && keys[i - 1] == key)
    return;
  double sum = values[i];
  for (std::int64_t j = i + 1; j < nnz && keys[j] == key; ++j)
    sum += values[j];
  to.columns[numbers[i] - 1] = static_cast<std::int32_t>(key & ((Count{1} << column_bits) - 1));
  to.values[numbers[i] - 1] = sum;
}

__global__ void __launch_bounds__(threads)
    coo_row_ptr_kernel(std::int64_t n_rows, std::int64_t nnz, Count const* __restrict__ keys, Count const* __restrict__ numbers,
                       int column_bits, std::int64_t* row_ptr) {
  std::int64_t const row = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (row > n_rows)
    return;
  Count const wanted = static_cast<Count>(row) << column_bits;
  std::int64_t first = 0;
  for (std::int64_t last = row == n_rows ? 0 : nnz; first < last;) {
    std::int64_t const middle = first + (last - first) / 2;
    if (keys[middle] < wanted)
      first = middle + 1;
    else
      last = middle;
  }
  if (row == n_rows)
    first = nnz;
  row_ptr[row] = static_cast<std::int64_t>(first < nnz ? numbers[first] - 1 : nnz > 0 ? numbers[nnz - 1] : 0);
}

/// Calls algorithm(scratch, bytes), a CUB algorithm, for the bytes it needs and then with them.
template <class Algorithm>
void with_scratch(Context& context, Algorithm const& algorithm) {
  std::size_t bytes = 0;
  POISSON_CUDA_CHECK(algorithm(nullptr, bytes));
  // A null pointer would only ask for the bytes again.
  Array<char> scratch(context, std::max<std::int64_t>(1, static_cast<std::int64_t>(bytes)));
  POISSON_CUDA_CHECK(algorithm(scratch.data(), bytes));
}

/// Adds up in place, n > 0.
template <class T>
void inclusive_sum(Context& context, T* data, std::int64_t n) {
  with_scratch(context, [&](void* scratch, std::size_t& bytes) {
    return cub::DeviceScan::InclusiveSum(scratch, bytes, data, data, n, cuda::of(context).stream());
  });
}

/// Sorts stably by the lowest `bits` bits of the keys; the results are in keys[0] and values[0]. The other arrays are scratch.
template <class Key, class Value>
void sort_pairs(Context& context, Array<Key> (&keys)[2], Array<Value> (&values)[2], int bits) {
  cub::DoubleBuffer<Key> key_buffer(keys[0].data(), keys[1].data());
  cub::DoubleBuffer<Value> value_buffer(values[0].data(), values[1].data());
  with_scratch(context, [&](void* scratch, std::size_t& bytes) {
    return cub::DeviceRadixSort::SortPairs(scratch, bytes, key_buffer, value_buffer, keys[0].size(), 0, std::max(1, bits),
                                           cuda::of(context).stream());
  });
  if (key_buffer.selector != 0)
    std::swap(keys[0], keys[1]);
  if (value_buffer.selector != 0)
    std::swap(values[0], values[1]);
}

template <class T>
T fetch(Context& context, T const* device) {
  T value{};
  context.download(&value, device, sizeof value);
  return value;
}

int bits_for(std::int64_t values) {
  return values > 1 ? std::bit_width(static_cast<std::uint64_t>(values - 1)) : 0;
}

/// A place of the slices: its row, and where its entries lie, slice_size apart.
struct SlicedRow {
  std::int64_t row, first, end;
  __device__ SlicedRow(SliceLayout const& layout, std::int64_t place) {
    row = layout.rows == nullptr ? place : layout.rows[place];
    std::int64_t const slice = place / layout.slice_size;
    first = layout.slice_ptr[slice] + place % layout.slice_size;
    end = layout.slice_ptr[slice + 1];
  }
};
/// Entries come before padding, so bisection finds where they end.
__global__ void __launch_bounds__(threads) sliced_lengths_kernel(std::int64_t n_rows, SliceLayout const layout,
                                                                 std::int32_t const* __restrict__ columns, std::int64_t* row_ptr) {
  std::int64_t const place = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (place == 0)
    row_ptr[0] = 0;
  if (place >= n_rows)
    return;
  SlicedRow const at(layout, place);
  std::int64_t length = 0, longest = (at.end - at.first + layout.slice_size - 1) / layout.slice_size;
  while (length < longest) {
    std::int64_t const middle = (length + longest) / 2;
    if (columns[at.first + middle * layout.slice_size] >= 0)
      length = middle + 1;
    else
      longest = middle;
  }
  row_ptr[at.row + 1] = length;
}
constexpr int slices_threads = 64;
/// 24 bytes an entry. Entries of 32 rows, 32 of each, are read as they lie in slices and written as they lie in rows.
__global__ void __launch_bounds__(slices_threads)
    from_slices_kernel(std::int64_t n_rows, SliceLayout const layout, std::int32_t const* __restrict__ columns,
                       double const* __restrict__ values, CsrTarget const to) {
  constexpr int warps = slices_threads / 32;
  constexpr unsigned all = 0xffffffffU;
  __shared__ std::int32_t columns_of_warp[warps][32][33];  // by entry, row; 33 against bank conflicts
  __shared__ double values_of_warp[warps][32][33];
  std::int64_t const place = std::int64_t{blockIdx.x} * slices_threads + threadIdx.x;
  int const lane = static_cast<int>(threadIdx.x % 32);
  auto& columns_here = columns_of_warp[threadIdx.x / 32];
  auto& values_here = values_of_warp[threadIdx.x / 32];
  bool const live = place < n_rows;
  SlicedRow const at(layout, live ? place : n_rows - 1);
  std::int64_t const own_begin = to.row_ptr[at.row];
  int const own_length = live ? static_cast<int>(to.row_ptr[at.row + 1] - own_begin) : 0;
  int const longest = __reduce_max_sync(all, own_length);
  for (int from = 0; from < longest; from += 32) {
#pragma unroll 8
    for (int j = 0; j < 32; ++j)
      if (from + j < own_length) {
        columns_here[j][lane] = columns[at.first + (from + j) * layout.slice_size];
        values_here[j][lane] = values[at.first + (from + j) * layout.slice_size];
      }
    __syncwarp();
#pragma unroll 8
    for (int row = 0; row < 32; ++row) {
      auto const begin = static_cast<std::int64_t>(__shfl_sync(all, static_cast<long long>(own_begin), row));
      if (from + lane < __shfl_sync(all, own_length, row)) {
        to.columns[begin + from + lane] = columns_here[lane][row];
        to.values[begin + from + lane] = values_here[lane][row];
      }
    }
    __syncwarp();
  }
}

class CudaConversion final : public ConversionKernels {
public:
  CsrAnalysis analyse(Context& context, CsrView const& a, bool symmetry) const override {
    cudaStream_t const stream = cuda::of(context).stream();
    Array<unsigned char> diagonals(context, a.n_rows + a.n_columns);
    diagonals.set_zero();
    Found found{static_cast<Count>(a.n_rows), 0, 0, 0};
    Array<Found> device_found(context, std::span<Found const>(&found, 1));
    bool const compare = symmetry && a.n_rows == a.n_columns;
    Array<double> largest(context, compare ? a.n_rows : 0);
    if (a.nnz > 0) {
      if (compare) {
        largest_entries_kernel<<<cuda::n_blocks(a.n_rows, threads), threads, 0, stream>>>(a, largest.data());
        POISSON_CUDA_CHECK(cudaGetLastError());
      }
      auto const kernel = compare ? analyse_kernel<true> : analyse_kernel<false>;
      kernel<<<entry_blocks(a), threads, 0, stream>>>(a, largest.data(), diagonals.data(), device_found.data());
      POISSON_CUDA_CHECK(cudaGetLastError());
    }
    CsrAnalysis result;
    result.longest_row = longest_row(context, a);
    result.n_diagonals = count_flags(context, diagonals);
    device_found.download(std::span(&found, 1));
    if (compare && found.above_with_mirror != found.below) {
      below_kernel<<<entry_blocks(a), threads, 0, stream>>>(a, largest.data(), device_found.data());
      POISSON_CUDA_CHECK(cudaGetLastError());
      device_found.download(std::span(&found, 1));
    }
    result.row_not_finite =
        found.row_not_finite < static_cast<Count>(a.n_rows) ? static_cast<std::int64_t>(found.row_not_finite) : -1;
    result.asymmetry = std::bit_cast<double>(found.asymmetry);
    result.symmetric = compare && result.asymmetry <= symmetry_tolerance;
    return result;
  }

  std::int64_t longest_row(Context& context, CsrView const& a) const override {
    if (a.n_rows == 0)
      return 0;
    Array<unsigned> longest(context, 1);
    longest.set_zero();
    longest_row_kernel<<<grid_for(context, a.n_rows), threads, 0, cuda::of(context).stream()>>>(a, longest.data());
    POISSON_CUDA_CHECK(cudaGetLastError());
    return fetch(context, longest.data());
  }

  Array<std::int32_t> rows_by_length(Context& context, CsrView const& a, std::int64_t sigma) const override {
    if (a.n_rows == 0)
      return {};
    std::int64_t const window = sigma == 0 ? a.n_rows : std::min(sigma, a.n_rows);
    auto const longest = static_cast<unsigned>(longest_row(context, a));
    int const length_bits = bits_for(std::int64_t{longest} + 1);
    int const bits = length_bits + bits_for((a.n_rows + window - 1) / window);
    return bits <= 32 ? sorted_rows<unsigned>(context, a, window, longest, length_bits, bits)
                      : sorted_rows<Count>(context, a, window, longest, length_bits, bits);
  }

  Array<std::int64_t> slice_ptr(Context& context, CsrView const& a, std::int32_t const* rows,
                                std::int64_t slice_size) const override {
    std::int64_t const slices = (a.n_rows + slice_size - 1) / slice_size;
    Array<std::int64_t> result(context, slices + 1);
    context.set_zero(result.data(), sizeof(std::int64_t));
    if (slices == 0)
      return result;
    int const team = static_cast<int>(std::min<std::int64_t>(slice_size, 32));
    slice_width_kernel<<<cuda::n_blocks(slices, threads / team), threads, 0, cuda::of(context).stream()>>>(
        a, rows, slice_size, slices, team, result.data() + 1);
    POISSON_CUDA_CHECK(cudaGetLastError());
    inclusive_sum(context, result.data() + 1, slices);
    return result;
  }

  void fill_slices(Context& context, CsrView const& a, SliceLayout const& layout, std::int32_t* columns,
                   double* values) const override {
    std::int64_t const places = (a.n_rows + layout.slice_size - 1) / layout.slice_size * layout.slice_size;
    if (places == 0)
      return;
    fill_slices_kernel<<<cuda::n_blocks(places, block_rows), block_rows, 0, cuda::of(context).stream()>>>(a, layout, places,
                                                                                                          columns, values);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  std::vector<std::int32_t> diagonals(Context& context, CsrView const& a, bool half) const override {
    Array<unsigned char> flags(context, a.n_rows + (half ? 1 : a.n_columns));
    flags.set_zero();
    if (a.nnz > 0) {
      auto const kernel = half ? diagonals_kernel<true> : diagonals_kernel<false>;
      kernel<<<entry_blocks(a), threads, 0, cuda::of(context).stream()>>>(a, flags.data());
      POISSON_CUDA_CHECK(cudaGetLastError());
    }
    std::vector<std::int64_t> found(static_cast<std::size_t>(count_flags(context, flags)));
    if (!found.empty()) {
      Array<std::int64_t> list(context, static_cast<std::int64_t>(found.size()));
      Array<Count> count(context, 1);
      count.set_zero();
      list_kernel<<<grid_for(context, flags.size()), threads, 0, cuda::of(context).stream()>>>(flags.size(), flags.data(),
                                                                                               count.data(), list.data());
      POISSON_CUDA_CHECK(cudaGetLastError());
      list.download(found);
    }
    std::vector<std::int32_t> offsets;
    for (std::int64_t const flag : found)
      offsets.push_back(static_cast<std::int32_t>(half ? a.n_rows - flag : flag - a.n_rows));
    if (half && std::find(offsets.begin(), offsets.end(), 0) == offsets.end())
      offsets.push_back(0);
    std::sort(offsets.begin(), offsets.end());
    return offsets;
  }

  std::int64_t fill_diagonals(Context& context, CsrView const& a, std::span<std::int32_t const> offsets,
                              std::int32_t const* backend_offsets, bool half, double* values) const override {
    if (a.n_rows == 0)
      return 0;
    Array<Count> taken(context, 1);
    taken.set_zero();
    fill_diagonals_kernel<<<cuda::n_blocks(a.n_rows, block_rows), block_rows, 0, cuda::of(context).stream()>>>(
        a, backend_offsets, static_cast<int>(offsets.size()), half, values, taken.data());
    POISSON_CUDA_CHECK(cudaGetLastError());
    return static_cast<std::int64_t>(fetch(context, taken.data()));
  }

  void copy_diagonal(Context& context, std::int64_t n, double const* values, double* d) const override {
    transform(context, n, values, d, WithoutSignOfZero());
  }
  void copy_diagonal(Context& context, std::int64_t n, float const* values, float* d) const override {
    transform(context, n, values, d, WithoutSignOfZero());
  }
  void round(Context& context, std::int64_t n, double const* x, float* y) const override { transform(context, n, x, y, Rounded()); }
  void widen(Context& context, std::int64_t n, float const* x, double* y) const override { transform(context, n, x, y, Widened()); }

  void csr_from_coo(Context& context, CooMatrix const& coo, std::function<CsrTarget(std::int64_t)> const& target) const override {
    cudaStream_t const stream = cuda::of(context).stream();
    std::int64_t const nnz = coo.nnz();
    int const column_bits = bits_for(coo.n_columns);
    Array<Count> keys[2];
    Array<double> values[2];
    std::int64_t unique = 0;
    if (nnz > 0) {
      keys[0] = Array<Count>(context, nnz);
      {
        Array<std::int32_t> const rows(context, coo.rows), columns(context, coo.columns);
        coo_keys_kernel<<<cuda::n_blocks(nnz, threads), threads, 0, stream>>>(nnz, rows.data(), columns.data(), column_bits,
                                                                              keys[0].data());
        POISSON_CUDA_CHECK(cudaGetLastError());
      }
      keys[1] = Array<Count>(context, nnz);
      values[0] = Array<double>(context, coo.values);
      values[1] = Array<double>(context, nnz);
      sort_pairs(context, keys, values, column_bits + bits_for(coo.n_rows));
      values[1] = Array<double>();
      coo_heads_kernel<<<cuda::n_blocks(nnz, threads), threads, 0, stream>>>(nnz, keys[0].data(), keys[1].data());
      POISSON_CUDA_CHECK(cudaGetLastError());
      inclusive_sum(context, keys[1].data(), nnz);
      unique = static_cast<std::int64_t>(fetch(context, keys[1].data() + nnz - 1));
    }
    CsrTarget const to = target(unique);
    if (nnz > 0)
      coo_sum_kernel<<<cuda::n_blocks(nnz, threads), threads, 0, stream>>>(nnz, keys[0].data(), keys[1].data(), values[0].data(),
                                                                           column_bits, to);
    coo_row_ptr_kernel<<<cuda::n_blocks(coo.n_rows + 1, threads), threads, 0, stream>>>(coo.n_rows, nnz, keys[0].data(),
                                                                                        keys[1].data(), column_bits, to.row_ptr);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  void csr_from_slices(Context& context, std::int64_t n_rows, SliceLayout const& layout, std::int32_t const* columns,
                       double const* values, std::function<CsrTarget(std::int64_t)> const& target) const override {
    cudaStream_t const stream = cuda::of(context).stream();
    Array<std::int64_t> row_ptr(context, n_rows + 1);
    sliced_lengths_kernel<<<cuda::n_blocks(n_rows + 1, threads), threads, 0, stream>>>(n_rows, layout, columns, row_ptr.data());
    POISSON_CUDA_CHECK(cudaGetLastError());
    if (n_rows > 0)
      inclusive_sum(context, row_ptr.data() + 1, n_rows);
    CsrTarget const to = target(fetch(context, row_ptr.data() + n_rows));
    POISSON_CUDA_CHECK(
        cudaMemcpyAsync(to.row_ptr, row_ptr.data(), static_cast<std::size_t>(row_ptr.bytes()), cudaMemcpyDeviceToDevice, stream));
    if (n_rows > 0)
      from_slices_kernel<<<cuda::n_blocks(n_rows, slices_threads), slices_threads, 0, stream>>>(n_rows, layout, columns, values,
                                                                                                to);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

private:
  template <class X, class Y, class Change>
  static void transform(Context& context, std::int64_t n, X const* x, Y* y, Change const& change) {
    if (n == 0)
      return;
    transform_kernel<<<cuda::n_blocks(n, threads), threads, 0, cuda::of(context).stream()>>>(n, x, y, change);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }
  static std::int64_t count_flags(Context& context, Array<unsigned char> const& flags) {
    if (flags.size() == 0)
      return 0;
    Array<Count> count(context, 1);
    count.set_zero();
    count_kernel<<<grid_for(context, flags.size()), threads, 0, cuda::of(context).stream()>>>(flags.size(), flags.data(),
                                                                                              count.data());
    POISSON_CUDA_CHECK(cudaGetLastError());
    return static_cast<std::int64_t>(fetch(context, count.data()));
  }

  /// Blocks for a kernel that strides through n items.
  static unsigned grid_for(Context& context, std::int64_t n) {
    return std::min(cuda::n_blocks(n, threads), static_cast<unsigned>(8 * cuda::of(context).multiprocessors()));
  }

  template <class Key>
  static Array<std::int32_t> sorted_rows(Context& context, CsrView const& a, std::int64_t window, unsigned longest, int length_bits,
                                         int bits) {
    Array<Key> keys[2]{Array<Key>(context, a.n_rows), Array<Key>(context, a.n_rows)};
    Array<std::int32_t> rows[2]{Array<std::int32_t>(context, a.n_rows), Array<std::int32_t>(context, a.n_rows)};
    length_keys_kernel<<<cuda::n_blocks(a.n_rows, threads), threads, 0, cuda::of(context).stream()>>>(
        a, window, length_bits, longest, keys[0].data(), rows[0].data());
    POISSON_CUDA_CHECK(cudaGetLastError());
    sort_pairs(context, keys, rows, bits);
    return std::move(rows[0]);
  }
};

}  // namespace

ConversionKernels const& ConversionKernels::cuda() {
  static CudaConversion const kernels;
  return kernels;
}

}  // namespace poisson
