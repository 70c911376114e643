#pragma once

#include "gpu/core/error.hpp"
#include "gpu/kernels/aggregation.hpp"
#include "gpu/kernels/cuda/teams.cuh"

#include <cub/device/device_radix_sort.cuh>
#include <utility>

namespace poisson::cuda::teams {

// Products A B of sparse matrices. Rows of the result are made in tables of columns and sums in shared memory, short ones by a team
// of eight threads, others by a warp, which take the rows of B one after another, a thread an entry. So every sum has one order.
// The length of a row is known when it is made, where it goes only when all are: rows wait in a store, wherever there is a place.
//
// A Factor is A:
//   n_rows, row_ptr()   which tells rows of like length
//   begin(row), end(row), row_of_b(row, k), factor(row, k)   the entries of a row: which row of B (-1: none), times what
// Rows is B:
//   one_entry           whether rows have one entry at most
//   begin(row), end(row), column(k), value(k)

using Count = unsigned long long;  // what atomics add

/// What a kernel does with rows: it makes and stores them; or, where the store is too small, counts their columns only (what the
/// long rows do first) and writes them once it is known where to.
enum class Pass { store, count, write };

/// Rows of a product in the making, in any order. `filled` goes on beyond `capacity`: what has no place is not stored.
struct RowStore {
  std::int64_t capacity;
  Count* filled;
  std::int64_t* starts;  ///< by row; -1: not here
  std::int32_t* columns;
  double* values;
};

/// Where a product goes, in the pass for which it is: the store, or the result.
struct Target {
  std::int64_t* row_ptr;    ///< of the result: in row_ptr[row + 1] first its length
  std::int32_t* long_rows;  ///< those that are too long for the table
  Count* n_long;
  RowStore store;
  std::int32_t* columns;  ///< of the result
  double* values;
  bool sorted;
};

/// The entries of a matrix as a factor.
struct CsrFactor {
  CsrView a;
  [[nodiscard]] std::int64_t n_rows() const { return a.n_rows; }
  [[nodiscard]] std::int64_t const* row_ptr() const { return a.row_ptr; }
  [[nodiscard]] __device__ std::int64_t begin(std::int64_t row) const { return a.row_ptr[row]; }
  [[nodiscard]] __device__ std::int64_t end(std::int64_t row) const { return a.row_ptr[row + 1]; }
  [[nodiscard]] __device__ std::int32_t row_of_b(std::int64_t, std::int64_t k) const { return a.columns[k]; }
  [[nodiscard]] __device__ double factor(std::int64_t, std::int64_t k) const { return a.values[k]; }
};
struct CsrRows {
  static constexpr bool one_entry = false;
  CsrView b;
  [[nodiscard]] __device__ std::int64_t begin(std::int32_t row) const { return b.row_ptr[row]; }
  [[nodiscard]] __device__ std::int64_t end(std::int32_t row) const { return b.row_ptr[row + 1]; }
  [[nodiscard]] __device__ std::int32_t column(std::int64_t k) const { return b.columns[k]; }
  [[nodiscard]] __device__ double value(std::int64_t k) const { return b.values[k]; }
};

/// Entries that are loaded together: one after another would wait for memory each.
inline constexpr int ahead = 4;
/// Places of a table that lie side by side, and are looked at together: tables become three quarters full, and from place to place
/// a warp would take as long as the thread that searches longest.
inline constexpr int bucket = 4;

/// The rows of a product where its store has them; `lengths` are by row.
struct StoredRows {
  static constexpr bool one_entry = false;
  std::int64_t const* starts;
  std::int64_t const* lengths;
  std::int32_t const* columns;
  double const* values;
  [[nodiscard]] __device__ std::int64_t begin(std::int32_t row) const { return starts[row]; }
  [[nodiscard]] __device__ std::int64_t end(std::int32_t row) const { return starts[row] + lengths[row]; }
  [[nodiscard]] __device__ std::int32_t column(std::int64_t k) const { return columns[k]; }
  [[nodiscard]] __device__ double value(std::int64_t k) const { return values[k]; }
};

/// The threads that make a row, and the places in its table. Rows that are too long for a table go on to a larger one.
struct Tier {
  int size, capacity, block;
  int at_once = ahead * size;  ///< columns that may be found before the next look at their number
  /// Columns, beyond which a search takes long.
  [[nodiscard]] constexpr int limit() const { return std::min(capacity / 4 * 3, capacity - at_once); }
};
inline constexpr Tier tiers[] = {{team, 128, 128}, {32, 512, 128}, {32, 2048, 32}};
inline constexpr int n_tiers = 3;
/// Where rows of B have one entry, those of the result are short: more blocks then have a place.
template <int tier, class Rows>
inline constexpr Tier tier_of =
    tier == 0 && Rows::one_entry ? Tier{tiers[tier].size, 32, tiers[tier].block, tiers[tier].size} : tiers[tier];

/// The rows a launch is for: those of a list, or all.
struct RowList {
  std::int32_t const* rows;
  std::int64_t n;
  [[nodiscard]] __device__ std::int64_t row(std::int64_t place) const { return rows != nullptr ? rows[place] : place; }
};

/// Where a column is in a table.
struct Place {
  std::int32_t at = -1;
  bool is_new = false;
};

/// The places of a bucket, from `at` on.
struct Bucket {
  int4 columns;
  __device__ Bucket(std::int32_t const* table, std::int32_t at) : columns(*reinterpret_cast<int4 const*>(table + at)) {}
  /// The last place of the column, or -1. No branches: threads look for different columns.
  [[nodiscard]] __device__ __forceinline__ int last(std::int32_t column) const {
    int place = columns.x == column ? 0 : -1;
    place = columns.y == column ? 1 : place;
    place = columns.z == column ? 2 : place;
    return columns.w == column ? 3 : place;
  }
  /// The first free place, or `bucket`: free ones follow those that are taken.
  [[nodiscard]] __device__ __forceinline__ int free() const {
    return (columns.x >= 0) + (columns.y >= 0) + (columns.z >= 0) + (columns.w >= 0);
  }
};

/// Finds the column, or puts it into the first free place of its bucket, or of the next one that has any. Precondition: the table
/// has a free place.
__device__ __forceinline__ Place place_of(std::int32_t column, std::int32_t* columns, std::int32_t capacity) {
  std::int32_t const mask = capacity - bucket;
  auto at = static_cast<std::int32_t>((static_cast<std::uint32_t>(column) * 2654435761U) >> 7) & mask;
  Bucket there(columns, at);
  int place = there.last(column);
  while (place < 0) {
    if (int const free = there.free(); free == bucket)
      at = (at + bucket) & mask;
    else {
      std::int32_t const before = atomicCAS(columns + at + free, -1, column);
      if (before == -1 || before == column)  // else another thread has taken the place
        return {at + free, before == -1};
    }
    there = Bucket(columns, at);
    place = there.last(column);
  }
  return {at + place, false};
}

/// A team takes all terms of its row into its table, and ends soon after that has more than `limit` columns. Returns their number.
/// Called by whole warps; those threads go along that are not `live`.
template <int size, Pass pass, class Factor, class Rows>
__device__ __forceinline__ int gather_row(Factor const& factor, Rows const& b, std::int64_t row, bool live, std::int32_t* columns,
                                          double* sums, std::int32_t capacity, int limit) {
  constexpr bool with_values = pass != Pass::count;
  int const lane = static_cast<int>(threadIdx.x % size);
  std::int64_t const end = live ? factor.end(row) : 0;
  std::int64_t first = live ? factor.begin(row) : 0;
  int own_count = 0, count = 0;
  for (; __any_sync(whole_warp, first < end && count <= limit); first += size) {
    std::int64_t const k = first + lane;
    std::int32_t const of_b = k < end && count <= limit ? factor.row_of_b(row, k) : -1;
    std::int64_t const own_begin = of_b >= 0 ? b.begin(of_b) : 0;
    auto const own_length = of_b >= 0 ? static_cast<std::int32_t>(b.end(of_b) - own_begin) : 0;
    double const own_factor = with_values && of_b >= 0 ? factor.factor(row, k) : 0;
    if constexpr (Rows::one_entry) {  // places at once, then sums one after another
      Place place;
      if (own_length > 0)
        place = place_of(b.column(own_begin), columns, capacity);
      double const term = with_values && own_length > 0 ? own_factor * b.value(own_begin) : 0;
      if (with_values && place.is_new)
        sums[place.at] = 0;
      own_count += place.is_new;
      __syncwarp();
      if constexpr (with_values)
        for (int j = 0; j < size; ++j) {
          if (j == lane && place.at >= 0)
            sums[place.at] += term;
          __syncwarp();
        }
      count = team_sum<size>(own_count);
    } else {
      // Every thread has looked up one row of B. The team takes these one after another, `size` entries at once.
      int here = count <= limit ? static_cast<int>(min(std::int64_t{size}, end - first)) : 0, source = 0;
      std::int32_t from = 0;
      while (__any_sync(whole_warp, source < here)) {
        std::int32_t loaded_columns[ahead];
        double loaded_values[ahead], factors[ahead];
#pragma unroll
        for (int i = 0; i < ahead; ++i) {
          std::int32_t const length = __shfl_sync(whole_warp, own_length, source, size);
          auto const begin = static_cast<std::int64_t>(__shfl_sync(whole_warp, static_cast<long long>(own_begin), source, size));
          factors[i] = with_values ? __shfl_sync(whole_warp, own_factor, source, size) : 0;
          bool const there = source < here && from + lane < length;
          loaded_columns[i] = there ? b.column(begin + from + lane) : -1;
          loaded_values[i] = with_values && there ? b.value(begin + from + lane) : 0;
          from += size;
          if (from >= length) {
            from = 0;
            ++source;
          }
        }
#pragma unroll
        for (int i = 0; i < ahead; ++i) {
          // Columns of a team's threads are different.
          if (loaded_columns[i] >= 0) {
            Place const place = place_of(loaded_columns[i], columns, capacity);
            own_count += place.is_new;
            if constexpr (with_values)
              sums[place.at] = (place.is_new ? 0 : sums[place.at]) + factors[i] * loaded_values[i];
          }
          __syncwarp();
        }
        count = team_sum<size>(own_count);
        if (count > limit)
          here = source;
      }
    }
  }
  return count;
}

template <int tier, Pass pass, class Factor, class Rows>
__global__ void __launch_bounds__(tiers[tier].block)
    product_kernel(Factor const factor, Rows const b, RowList const list, Target const target) {
  constexpr bool with_values = pass != Pass::count;
  constexpr Tier t = tier_of<tier, Rows>;
  constexpr int size = t.size, rows = t.block / size;
  static_assert(t.limit() + t.at_once <= t.capacity);
  __shared__ alignas(16) std::int32_t table_columns[rows * t.capacity];
  __shared__ double table_sums[with_values ? rows * t.capacity : 1];
  int const of_block = static_cast<int>(threadIdx.x) / size, lane = static_cast<int>(threadIdx.x) % size,
            of_warp = static_cast<int>(threadIdx.x) % 32;
  std::int64_t const place = std::int64_t{blockIdx.x} * rows + of_block;
  bool live = place < list.n;
  std::int64_t const row = live ? list.row(place) : 0;
  std::int64_t begin = 0;
  if (pass == Pass::write && live) {
    begin = target.row_ptr[row];
    std::int64_t const length = target.row_ptr[row + 1] - begin;
    live = length > 0 && length <= t.limit();
  }
  std::int32_t* const columns = table_columns + of_block * t.capacity;
  double* const sums = with_values ? table_sums + of_block * t.capacity : nullptr;
  for (int i = lane; i < t.capacity; i += size)
    columns[i] = -1;
  __syncwarp();
  int const count = gather_row<size, pass>(factor, b, row, live, columns, sums, t.capacity, t.limit());
  bool const fits = live && count <= t.limit();
  if (pass != Pass::write && live && lane == 0) {
    target.row_ptr[row + 1] = fits ? count : 0;
    if (!fits)
      target.long_rows[atomicAdd(target.n_long, Count{1})] = static_cast<std::int32_t>(row);
  }
  bool writes = pass == Pass::write && live;
  if constexpr (pass == Pass::store) {
    // The rows of a warp lie one after another.
    int const own = fits ? count : 0;
    int before = 0, all = 0;
#pragma unroll
    for (int first = 0; first < 32; first += size) {
      int const length = __shfl_sync(whole_warp, own, first);
      before += first + size <= of_warp ? length : 0;
      all += length;
    }
    Count start = 0;
    if (of_warp == 0 && all > 0)
      start = atomicAdd(target.store.filled, static_cast<Count>(all));
    begin = static_cast<std::int64_t>(__shfl_sync(whole_warp, start, 0)) + before;
    writes = own > 0 && begin + own <= target.store.capacity;
    if (live && lane == 0)
      target.store.starts[row] = writes ? begin : -1;
  }
  if constexpr (with_values) {
    std::int32_t* const result_columns = pass == Pass::store ? target.store.columns : target.columns;
    double* const result_values = pass == Pass::store ? target.store.values : target.values;
    // To be sorted, the entries move to the front of the table; then each finds how many columns are before its own.
    int filled = 0;
    for (int first = 0; first < t.capacity; first += size) {
      std::int32_t const column = columns[first + lane];
      bool const there = writes && column >= 0;
      double const sum = there ? sums[first + lane] : 0;
      unsigned const all = __ballot_sync(whole_warp, there);
      int const to = filled + __popc(all & bits_before<size>());
      filled += __popc(all & team_bits<size>());
      if (there && target.sorted) {
        columns[to] = column;
        sums[to] = sum;
      } else if (there) {
        result_columns[begin + to] = column;
        result_values[begin + to] = sum;
      }
      __syncwarp();
    }
    if (target.sorted)
      for (int i = lane; i < filled; i += size) {
        std::int32_t const column = columns[i];
        int rank = 0;
        for (int j = 0; j < filled; ++j)
          rank += columns[j] < column;
        result_columns[begin + rank] = column;
        result_values[begin + rank] = sums[i];
      }
  }
}

/// The same for rows that no table in shared memory holds: a block of one warp goes through its share of the list, with a place for
/// every column of the result in global memory, and finds the columns in order there.
template <Pass pass, class Factor, class Rows>
__global__ void __launch_bounds__(32)
    long_rows_kernel(Factor const factor, Rows const b, RowList const list, std::int64_t n_columns, std::uint8_t* marks,
                     double* sums, Target const target) {
  static_assert(pass != Pass::store);
  constexpr bool with_values = pass == Pass::write;
  std::uint8_t* const marked = marks + std::int64_t{blockIdx.x} * n_columns;
  double* const sum = with_values ? sums + std::int64_t{blockIdx.x} * n_columns : nullptr;
  auto const lane = static_cast<int>(threadIdx.x);
  for (std::int64_t at = blockIdx.x; at < list.n; at += gridDim.x) {
    std::int64_t const row = list.row(at);
    for (std::int64_t i = lane; i < n_columns; i += 32) {
      marked[i] = 0;
      if (with_values)
        sum[i] = 0;
    }
    __syncwarp();
    for (std::int64_t k = factor.begin(row); k < factor.end(row); ++k) {
      std::int32_t const of_b = factor.row_of_b(row, k);
      if (of_b < 0)
        continue;
      double const f = with_values ? factor.factor(row, k) : 0;
      for (std::int64_t l = b.begin(of_b) + lane; l < b.end(of_b); l += 32) {
        marked[b.column(l)] = 1;
        if (with_values)
          sum[b.column(l)] += f * b.value(l);
      }
      __syncwarp();
    }
    std::int64_t filled = with_values ? target.row_ptr[row] : 0;
    for (std::int64_t first = 0; first < n_columns; first += 32) {
      bool const there = first + lane < n_columns && marked[first + lane] != 0;
      unsigned const all = __ballot_sync(whole_warp, there);
      if (with_values && there) {
        std::int64_t const to = filled + __popc(all & bits_before<32>());
        target.columns[to] = static_cast<std::int32_t>(first + lane);
        target.values[to] = sum[first + lane];
      }
      filled += __popc(all);
    }
    if (!with_values && lane == 0)
      target.row_ptr[row + 1] = filled;
    __syncwarp();
  }
}

/// Rows go from the store to their places: 24 bytes an entry.
static __global__ void __launch_bounds__(threads) unload_kernel(std::int64_t n_rows, Target const target) {
  TeamRow const at(n_rows, target.row_ptr);
  std::int64_t const start = target.store.starts[at.row];
  if (!at.live || start < 0)
    return;
  for (std::int64_t k = at.begin + at.lane; k < at.end; k += team) {
    target.columns[k] = target.store.columns[start + k - at.begin];
    target.values[k] = target.store.values[start + k - at.begin];
  }
}

static __global__ void __launch_bounds__(threads) count_up_kernel(std::int64_t n, std::int32_t* numbers) {
  if (std::int64_t const i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < n)
    numbers[i] = static_cast<std::int32_t>(i);
}

/// Long rows first.
static __global__ void __launch_bounds__(threads)
    length_keys_kernel(std::int64_t n_rows, std::int64_t const* __restrict__ row_ptr, std::uint8_t* keys) {
  if (std::int64_t const i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < n_rows)
    keys[i] = static_cast<std::uint8_t>(255 - min(std::int64_t{255}, row_ptr[i + 1] - row_ptr[i]));
}

/// The rows by length, those of about the same length in their order.
inline Array<std::int32_t> rows_by_length(Context& context, std::int64_t n_rows, std::int64_t const* row_ptr) {
  Array<std::int32_t> rows(context, n_rows), result(context, n_rows);
  Array<std::uint8_t> keys(context, n_rows), sorted(context, n_rows);
  launch(context, count_up_kernel, n_rows, n_rows, rows.data());
  launch(context, length_keys_kernel, n_rows, n_rows, row_ptr, keys.data());
  with_scratch(context, [&](void* scratch, std::size_t& bytes) {
    return cub::DeviceRadixSort::SortPairs(scratch, bytes, keys.data(), sorted.data(), rows.data(), result.data(), n_rows, 0, 8,
                                           of(context).stream());
  });
  return result;
}

/// A product in the making: its rows, tier by tier, into a store that is large enough for most matrices, and from there to their
/// places. Where it is not, or there is no memory for it, rows are made once more.
template <class Factor, class Rows>
class Product {
public:
  /// `few_entries`: that the store has a place for.
  Product(Context& context, Factor const& factor, Rows const& b, std::int64_t n_columns, int first_tier, bool sorted,
          std::int64_t few_entries)
      : context_(context),
        stream_(of(context).stream()),
        factor_(factor),
        b_(b),
        n_columns_(n_columns),
        first_tier_(first_tier),
        n_rows_(factor.n_rows()),
        row_ptr_(context, n_rows_ + 1),
        starts_(context, n_rows_),
        counts_(context, 2) {
    row_ptr_.set_zero();
    counts_.set_zero();
    target_.row_ptr = row_ptr_.data();
    target_.n_long = counts_.data();
    target_.sorted = sorted;
    target_.store.filled = counts_.data() + 1;
    target_.store.starts = starts_.data();
    try {
      stored_columns_ = Array<std::int32_t>(context_, few_entries);
      stored_values_ = Array<double>(context_, few_entries);
      target_.store.capacity = few_entries;
      target_.store.columns = stored_columns_.data();
      target_.store.values = stored_values_.data();
    } catch (OutOfMemoryError const&) {
      stored_columns_ = {};
    }
    make_rows();
  }

  /// Whether all rows are in the store.
  [[nodiscard]] bool is_stored() const { return fits_ && lists_[n_tiers].n == 0; }
  /// Precondition: is_stored(). They are there as long as this object.
  [[nodiscard]] StoredRows rows() const {
    return {starts_.data(), row_ptr_.data() + 1, stored_columns_.data(), stored_values_.data()};
  }
  [[nodiscard]] std::int64_t n_stored() const { return n_stored_; }

  /// Once.
  SparseArrays packed() {
    SparseArrays result;
    result.n_columns = n_columns_;
    if (n_rows_ > 0) {
      run_long<Pass::count>(lists_[n_tiers]);
      running_sums(context_, target_.row_ptr + 1, n_rows_);
      std::int64_t const nnz = fetch(context_, target_.row_ptr + n_rows_);
      result.columns = Array<std::int32_t>(context_, nnz);
      result.values = Array<double>(context_, nnz);
      target_.columns = result.columns.data();
      target_.values = result.values.data();
      if (fits_)
        launch(context_, unload_kernel, team * n_rows_, n_rows_, target_);
      else
        for (int t = first_tier_; t < n_tiers; ++t)
          run_tier<Pass::write>(t, lists_[t]);
      run_long<Pass::write>(lists_[n_tiers]);
    }
    result.row_ptr = std::move(row_ptr_);
    return result;
  }

private:
  static constexpr std::int64_t many_rows = std::int64_t{1} << 16;

  void make_rows() {
    if (n_rows_ == 0)
      return;
    if (first_tier_ == 0 && n_rows_ >= many_rows)  // a warp takes as long as the longest row of its teams
      order_ = rows_by_length(context_, n_rows_, factor_.row_ptr());
    lists_[first_tier_] = {order_.data(), n_rows_};
    for (int t = first_tier_; t < n_tiers && lists_[t].n > 0; ++t) {
      long_rows_[t] = Array<std::int32_t>(context_, lists_[t].n);
      target_.long_rows = long_rows_[t].data();
      context_.set_zero(target_.n_long, sizeof(Count));
      if (target_.store.capacity > 0)
        run_tier<Pass::store>(t, lists_[t]);
      else
        run_tier<Pass::count>(t, lists_[t]);
      lists_[t + 1] = {long_rows_[t].data(), static_cast<std::int64_t>(fetch(context_, target_.n_long))};
    }
    n_stored_ = static_cast<std::int64_t>(fetch(context_, target_.store.filled));
    fits_ = target_.store.capacity > 0 && n_stored_ <= target_.store.capacity;
  }
  template <Pass pass>
  void run_tier(int t, RowList const& list) {
    if (list.n == 0)
      return;
    auto const enqueue = [&](auto* kernel) {
      kernel<<<n_blocks(list.n, tiers[t].block / tiers[t].size), tiers[t].block, 0, stream_>>>(factor_, b_, list, target_);
      POISSON_CUDA_CHECK(cudaGetLastError());
    };
    if (t == 0)
      enqueue(product_kernel<0, pass, Factor, Rows>);
    else if (t == 1)
      enqueue(product_kernel<1, pass, Factor, Rows>);
    else
      enqueue(product_kernel<2, pass, Factor, Rows>);
  }
  template <Pass pass>
  void run_long(RowList const& list) {
    if (list.n == 0)
      return;
    constexpr std::int64_t most_bytes = std::int64_t{1} << 28;
    std::int64_t const blocks = std::clamp<std::int64_t>(most_bytes / (9 * n_columns_), 1, std::min<std::int64_t>(list.n, 1024));
    Array<std::uint8_t> marks(context_, blocks * n_columns_);
    Array<double> sums(context_, pass == Pass::write ? blocks * n_columns_ : 0);
    long_rows_kernel<pass>
        <<<static_cast<unsigned>(blocks), 32, 0, stream_>>>(factor_, b_, list, n_columns_, marks.data(), sums.data(), target_);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  Context& context_;
  cudaStream_t stream_;
  Factor factor_;
  Rows b_;
  std::int64_t n_columns_;
  int first_tier_;
  std::int64_t n_rows_;
  Array<std::int64_t> row_ptr_, starts_;
  Array<Count> counts_;  ///< rows that are too long, entries in the store
  Array<std::int32_t> stored_columns_;
  Array<double> stored_values_;
  Array<std::int32_t> long_rows_[n_tiers], order_;
  RowList lists_[n_tiers + 1] = {};
  Target target_{};
  std::int64_t n_stored_ = 0;
  bool fits_ = false;
};

}  // namespace poisson::cuda::teams
