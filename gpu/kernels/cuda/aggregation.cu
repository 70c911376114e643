#include "gpu/kernels/aggregation.hpp"

#include "gpu/core/error.hpp"
#include "gpu/kernels/cuda/cuda.cuh"
#include "gpu/kernels/smoother.hpp"

#include <algorithm>
#include <bit>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <vector>

namespace poisson {

namespace {

using Count = unsigned long long;  // what atomics add
using Key = std::uint32_t;

constexpr int threads = 256;
constexpr int team = 8;  ///< threads that share a row
constexpr int power_steps = 12;
constexpr std::int64_t short_rows = 40;  ///< mean length up to which new roots exclude faster than another round takes
constexpr int rounds_at_once = 2;        ///< of the search for a set, before the host looks whether it has ended
constexpr int most_joins = 5;            ///< passes in which unknowns join their neighbours' aggregates
constexpr std::int32_t open = -2, none = -1;

// What becomes of an unknown in the search for a maximal set of which no two are nearer than three couplings: the upper two bits of
// its key. Below them are 30 bits that look random and are different for all unknowns below 2^30.
constexpr Key undecided = Key{1} << 30, root = Key{2} << 30, new_root = Key{3} << 30, state_bits = Key{3} << 30;

[[nodiscard]] __device__ __forceinline__ Key priority(std::int64_t row) {
  // Each step can be undone among numbers of 30 bits.
  Key bits = static_cast<Key>(row) * 2654435761U & ~state_bits;
  bits = (bits ^ (bits >> 15)) * 2246822519U & ~state_bits;
  return bits ^ (bits >> 13);
}
[[nodiscard]] __device__ __forceinline__ Key state_of(Key key) {
  return key & state_bits;
}

/// The row of this thread's team, below n_rows, and whether the team has one; others go along, for the shuffles.
struct TeamRow {
  std::int64_t row;
  bool live;
  int lane;
  std::int64_t begin, end;

  __device__ __forceinline__ TeamRow(std::int64_t n_rows, std::int64_t const* row_ptr) {
    row = (std::int64_t{blockIdx.x} * threads + threadIdx.x) / team;
    live = row < n_rows;
    row = live ? row : n_rows - 1;
    lane = static_cast<int>(threadIdx.x % team);
    begin = row_ptr[row];
    end = row_ptr[row + 1];
  }
  [[nodiscard]] __device__ bool writes() const { return live && lane == 0; }
};

template <class T>
[[nodiscard]] __device__ __forceinline__ T team_sum(T v) {
#pragma unroll
  for (int distance = team / 2; distance > 0; distance /= 2)
    v += __shfl_xor_sync(0xffffffffU, v, distance);
  return v;
}
template <class T>
[[nodiscard]] __device__ __forceinline__ T team_max(T v) {
#pragma unroll
  for (int distance = team / 2; distance > 0; distance /= 2)
    v = max(v, __shfl_xor_sync(0xffffffffU, v, distance));
  return v;
}

/// What couplings_kernel finds of all rows.
struct Found {
  Count bound;    ///< the bits of the largest: doubles that are not negative are in the order of their bits
  Count bad_row;  ///< the smallest
};

/// 12 bytes an entry.
__global__ void __launch_bounds__(threads)
    couplings_kernel(CsrView const a, bool positive, double* __restrict__ diagonal, double* __restrict__ strongest, Found* found) {
  TeamRow const at(a.n_rows, a.row_ptr);
  double own = 0, most = 0, least = 0, sum = 0;
  for (std::int64_t k = at.begin + at.lane; k < at.end; k += team) {
    double const value = a.values[k];
    sum += fabs(value);
    if (a.columns[k] == at.row)
      own = value;
    else {
      most = fmax(most, value);
      least = fmin(least, value);
    }
  }
  own = team_sum(own);
  sum = team_sum(sum);
  most = team_max(most);
  least = -team_max(-least);
  double bound = sum / fabs(own);
  if (at.writes()) {
    diagonal[at.row] = own;
    strongest[at.row] = own < 0 ? most : -least;
    if (is_bad_diagonal(own, positive))
      atomicMin(&found->bad_row, static_cast<Count>(at.row));
  }
#pragma unroll
  for (int distance = 16; distance >= team; distance /= 2)
    bound = fmax(bound, __shfl_xor_sync(0xffffffffU, bound, distance));
  if (threadIdx.x % 32 == 0 && bound > 0)
    atomicMax(&found->bound, static_cast<Count>(__double_as_longlong(bound)));
}

/// The columns of strong couplings, -1 in the places of others: 16 bytes an entry.
__global__ void __launch_bounds__(threads) strong_kernel(CsrView const a, double const* __restrict__ diagonal,
                                                         double const* __restrict__ strongest, std::int32_t* strong) {
  TeamRow const at(a.n_rows, a.row_ptr);
  double const sign = diagonal[at.row] < 0 ? 1 : -1, of_row = strongest[at.row];
  if (at.live)
    for (std::int64_t k = at.begin + at.lane; k < at.end; k += team) {
      std::int32_t const column = a.columns[k];
      strong[k] = column != at.row && is_strong(sign * a.values[k], of_row, strongest[column]) ? column : -1;
    }
}

/// Where the strong couplings of a matrix are.
struct Graph {
  std::int64_t n_rows;
  std::int64_t const* row_ptr;
  std::int32_t const* strong;
};

__global__ void __launch_bounds__(threads) begin_kernel(std::int64_t n, double const* __restrict__ strongest, std::int32_t* of) {
  if (std::int64_t const i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < n)
    of[i] = strongest[i] > 0 ? open : none;
}

/// Candidates are rows that are open, and in the second search have a third of their neighbours open.
__global__ void __launch_bounds__(threads) keys_kernel(Graph const graph, bool second, std::int32_t const* __restrict__ of,
                                                       Key* __restrict__ keys, std::uint8_t* __restrict__ active) {
  TeamRow const at(graph.n_rows, graph.row_ptr);
  bool candidate = of[at.row] == open;
  if (second) {
    int neighbours = 0, free = 0;
    if (candidate)
      for (std::int64_t k = at.begin + at.lane; k < at.end; k += team)
        if (std::int32_t const column = graph.strong[k]; column >= 0) {
          ++neighbours;
          free += of[column] == open;
        }
    neighbours = team_sum(neighbours);
    free = team_sum(free);
    candidate = candidate && free > 0 && 3 * free >= neighbours;
  }
  if (at.writes()) {
    active[at.row] = 1;
    keys[at.row] = candidate ? undecided | priority(at.row) : 0;
  }
}

/// around[i] = the largest key of open row i and its open neighbours, else 0. Keys of rows that are not open are 0. Where none of
/// them is undecided that stays so: the row is no longer active.
__global__ void __launch_bounds__(threads)
    around_kernel(Graph const graph, std::int32_t const* __restrict__ of, Key const* __restrict__ keys, Key* __restrict__ around,
                  std::uint8_t* __restrict__ active) {
  TeamRow const at(graph.n_rows, graph.row_ptr);
  bool const looks = at.live && active[at.row] != 0;
  Key largest = 0;
  int waits = 0;
  if (looks && of[at.row] == open) {
    largest = keys[at.row];
    waits = state_of(largest) == undecided;
    for (std::int64_t k = at.begin + at.lane; k < at.end; k += team)
      if (std::int32_t const column = graph.strong[k]; column >= 0) {
        Key const key = keys[column];
        largest = max(largest, key);
        waits |= state_of(key) == undecided;
      }
  }
  largest = team_max(largest);
  waits = team_max(waits);
  if (looks && at.lane == 0) {
    around[at.row] = largest;
    if (waits == 0)
      active[at.row] = 0;
  }
}

/// Undecided rows with the largest key within two couplings become roots, in the state `becomes`; those with a root there are out.
__global__ void __launch_bounds__(threads)
    decide_kernel(Graph const graph, Key const* __restrict__ around, Key becomes, Key* __restrict__ keys, int* left) {
  TeamRow const at(graph.n_rows, graph.row_ptr);
  Key const own = keys[at.row];
  bool const candidate = state_of(own) == undecided;
  Key largest = 0;
  if (candidate) {
    largest = around[at.row];
    for (std::int64_t k = at.begin + at.lane; k < at.end; k += team)
      if (std::int32_t const column = graph.strong[k]; column >= 0)
        largest = max(largest, around[column]);
  }
  largest = team_max(largest);
  if (!candidate || !at.writes())
    return;
  if (largest == own)
    keys[at.row] = becomes | (own & ~state_bits);
  else if (state_of(largest) >= root)
    keys[at.row] = 0;
  else if (*left == 0)
    *left = 1;
}

/// New roots put those out that are within two couplings of them, which decide_kernel would do a round later. Where couplings are
/// not mutual it still does.
__global__ void __launch_bounds__(threads) exclude_kernel(Graph const graph, Key* keys) {
  TeamRow const at(graph.n_rows, graph.row_ptr);
  Key const own = keys[at.row];
  if (!at.live || state_of(own) != new_root)
    return;
  auto const exclude = [keys](std::int32_t row) {
    if (state_of(keys[row]) == undecided)
      keys[row] = 0;
  };
  for (std::int64_t k = at.begin + at.lane; k < at.end; k += team)
    if (std::int32_t const near = graph.strong[k]; near >= 0) {
      exclude(near);
      std::int64_t const end = graph.row_ptr[near + 1];
#pragma unroll 4
      for (std::int64_t l = graph.row_ptr[near]; l < end; ++l)
        if (std::int32_t const far = graph.strong[l]; far >= 0)
          exclude(far);
    }
  if (at.lane == 0)
    keys[at.row] = root | (own & ~state_bits);
}

/// For the scan that numbers roots, or rows that are open still.
__global__ void __launch_bounds__(threads) flags_kernel(std::int64_t n, Key const* __restrict__ keys,
                                                        std::int32_t const* __restrict__ of, std::int32_t* __restrict__ flags) {
  if (std::int64_t const i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < n)
    flags[i] = keys != nullptr ? state_of(keys[i]) == root : of[i] == open;
}
__global__ void __launch_bounds__(threads)
    number_kernel(std::int64_t n, std::int32_t before, std::int32_t const* __restrict__ sums, std::int32_t* __restrict__ of) {
  if (std::int64_t const i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < n)
    if (sums[i] != (i > 0 ? sums[i - 1] : 0))
      of[i] = before + sums[i] - 1;
}

/// Open rows join the neighbouring root with the largest key. Only entries of roots are read.
__global__ void __launch_bounds__(threads) join_root_kernel(Graph const graph, Key const* __restrict__ keys, std::int32_t* of) {
  TeamRow const at(graph.n_rows, graph.row_ptr);
  bool const free = of[at.row] == open;
  unsigned long long largest = 0;  // a key, and where it is
  if (free)
    for (std::int64_t k = at.begin + at.lane; k < at.end; k += team)
      if (std::int32_t const column = graph.strong[k]; column >= 0)
        if (Key const key = keys[column]; state_of(key) == root)
          largest = max(largest, static_cast<unsigned long long>(key) << 32 | static_cast<std::uint32_t>(column));
  largest = team_max(largest);
  if (at.writes() && largest != 0)
    of[at.row] = of[largest & 0xffffffffU];
}

/// Open rows join the aggregate of the neighbour that they are coupled to most, of several the first.
__global__ void __launch_bounds__(threads)
    join_kernel(Graph const graph, double const* __restrict__ values, std::int32_t const* __restrict__ of,
                std::int32_t* __restrict__ joined, int* left) {
  TeamRow const at(graph.n_rows, graph.row_ptr);
  std::int32_t const own = of[at.row];
  double most = 0;
  std::int64_t first = INT64_MAX;
  if (own == open)
    for (std::int64_t k = at.begin + at.lane; k < at.end; k += team)
      if (std::int32_t const column = graph.strong[k]; column >= 0 && of[column] >= 0)
        if (double const coupling = fabs(values[k]); coupling > most) {
          most = coupling;
          first = k;
        }
#pragma unroll
  for (int distance = team / 2; distance > 0; distance /= 2) {
    double const other = __shfl_xor_sync(0xffffffffU, most, distance);
    auto const place = static_cast<std::int64_t>(__shfl_xor_sync(0xffffffffU, static_cast<long long>(first), distance));
    if (other > most || (other == most && place < first)) {
      most = other;
      first = place;
    }
  }
  if (!at.writes())
    return;
  bool const found = own == open && first != INT64_MAX;
  joined[at.row] = found ? of[graph.strong[first]] : own;
  if (own == open && !found && *left == 0)
    *left = 1;
}

/// y = D^-1 A x in the norm of |D|: 12 bytes an entry.
__global__ void __launch_bounds__(threads)
    power_kernel(CsrView const a, double const* __restrict__ diagonal, double const* __restrict__ x, double* __restrict__ y,
                 double* partial, unsigned* counter, double* norms) {
  TeamRow const at(a.n_rows, a.row_ptr);
  double sum = 0;
#pragma unroll 4
  for (std::int64_t k = at.begin + at.lane; k < at.end; k += team)
    sum += a.values[k] * x[a.columns[k]];
  sum = team_sum(sum);
  double sums[2] = {0, 0};
  if (at.writes()) {
    double const d = diagonal[at.row], own = x[at.row], next = sum / d;
    y[at.row] = next;
    sums[0] = fabs(d) * own * own;
    sums[1] = fabs(d) * next * next;
  }
  if (cuda::grid_sum<threads>(sums, partial, counter)) {
    norms[0] = sums[0];
    norms[1] = sums[1];
  }
}
__global__ void __launch_bounds__(threads)
    normalise_kernel(std::int64_t n, double const* __restrict__ norms, double const* __restrict__ y, double* __restrict__ x) {
  if (std::int64_t const i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < n)
    x[i] = norms[1] > 0 ? y[i] * rsqrt(norms[1]) : 0;
}
__global__ void __launch_bounds__(threads) random_kernel(std::int64_t n, double* x) {
  std::int64_t const i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i >= n)
    return;
  x[i] = pseudo_random(i + 1);
}

/// D of the prolongation: the diagonal and the weak couplings.
__global__ void __launch_bounds__(threads) lumped_kernel(CsrView const a, std::int32_t const* __restrict__ strong,
                                                         double const* __restrict__ diagonal, double* __restrict__ lumped) {
  TeamRow const at(a.n_rows, a.row_ptr);
  double sum = 0;
  for (std::int64_t k = at.begin + at.lane; k < at.end; k += team)
    if (strong[k] < 0)
      sum += a.values[k];
  sum = team_sum(sum);
  if (at.writes()) {
    double const whole = diagonal[at.row];
    lumped[at.row] = sum / whole > least_share_of_diagonal ? sum : whole;
  }
}

// Products. Rows of the result are made in tables of columns and sums in shared memory: short ones by a thread each, others by a
// warp, which takes the rows of B one after another, a thread an entry. So every sum has one order. The length of a row is known
// when it is made, where it goes only when all are: rows wait in a store, wherever there is a place.

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

/// A row of the left factor: calls for the row of B that belongs to its entry k, with its factor.
struct GeneralFactor {
  CsrView a;
  [[nodiscard]] __device__ std::int32_t row_of_b(std::int64_t, std::int64_t k) const { return a.columns[k]; }
  [[nodiscard]] __device__ double factor(std::int64_t, std::int64_t k) const { return a.values[k]; }
};
/// I - damping D^-1 A' without its rows that belong to no aggregate.
struct SmoothingFactor {
  CsrView a;
  std::int32_t const* strong;
  double const* lumped;
  std::int32_t const* of;
  double damping;
  [[nodiscard]] __device__ std::int32_t row_of_b(std::int64_t row, std::int64_t k) const {
    if (of[row] < 0)
      return -1;
    return a.columns[k] == row ? static_cast<std::int32_t>(row) : strong[k];
  }
  [[nodiscard]] __device__ double factor(std::int64_t row, std::int64_t k) const {
    return a.columns[k] == row ? 1 - damping : -damping * a.values[k] / lumped[row];
  }
};
struct GeneralRows {
  static constexpr bool one_entry = false;  ///< at most
  CsrView b;
  [[nodiscard]] __device__ std::int64_t begin(std::int32_t row) const { return b.row_ptr[row]; }
  [[nodiscard]] __device__ std::int64_t end(std::int32_t row) const { return b.row_ptr[row + 1]; }
  [[nodiscard]] __device__ std::int32_t column(std::int64_t k) const { return b.columns[k]; }
  [[nodiscard]] __device__ double value(std::int64_t k) const { return b.values[k]; }
};
/// T: a 1 in the column of the aggregate.
struct AggregateRows {
  static constexpr bool one_entry = true;
  std::int32_t const* of;
  [[nodiscard]] __device__ std::int64_t begin(std::int32_t row) const { return row; }
  [[nodiscard]] __device__ std::int64_t end(std::int32_t row) const { return of[row] >= 0 ? row + 1 : row; }
  [[nodiscard]] __device__ std::int32_t column(std::int64_t k) const { return of[k]; }
  [[nodiscard]] __device__ double value(std::int64_t) const { return 1; }
};

/// Rows that are too long for a table go on to a larger one. The first is for rows that a thread makes.
struct Tier {
  int log_capacity, block;
  [[nodiscard]] constexpr int capacity() const { return 1 << log_capacity; }
  [[nodiscard]] constexpr int limit() const { return capacity() * 3 / 4; }
};
constexpr Tier tiers[] = {{6, 32}, {8, 128}, {9, 128}, {11, 32}};
constexpr int n_tiers = 4;

/// The rows a launch is for: those of a list, or all.
struct RowList {
  std::int32_t const* rows;
  std::int64_t n;
  [[nodiscard]] __device__ std::int64_t row(std::int64_t place) const { return rows != nullptr ? rows[place] : place; }
};

[[nodiscard]] __device__ __forceinline__ std::int32_t first_place(std::int32_t column, std::int32_t mask) {
  return static_cast<std::int32_t>((static_cast<std::uint32_t>(column) * 2654435761U) >> 7) & mask;
}

/// A row of the product by a thread of its own. The tables of the 32 threads of a block are interleaved, so that they meet in no
/// bank.
template <Pass pass, class Factor, class Rows>
__global__ void __launch_bounds__(tiers[0].block)
    short_rows_kernel(Factor const factor, Rows const b, RowList const list, Target const target) {
  static_assert(tiers[0].block == 32);
  // A row of P meets few aggregates; more blocks then have a place.
  constexpr int capacity = Rows::one_entry ? tiers[0].capacity() / 2 : tiers[0].capacity();
  constexpr int limit = capacity * 3 / 4, stride = tiers[0].block;
  constexpr bool with_values = pass != Pass::count;
  __shared__ std::int32_t table_columns[stride * capacity];
  __shared__ double table_sums[with_values ? stride * capacity : 1];
  std::int64_t const place_in_list = std::int64_t{blockIdx.x} * stride + threadIdx.x;
  bool const live = place_in_list < list.n;
  if (pass != Pass::store && !live)
    return;
  std::int64_t const row = live ? list.row(place_in_list) : 0;
  std::int64_t begin = pass == Pass::write ? target.row_ptr[row] : 0;
  if (pass == Pass::write)
    if (std::int64_t const length = target.row_ptr[row + 1] - begin; length > limit || length == 0)
      return;
  std::int32_t* const columns = table_columns + threadIdx.x;
  double* const sums = with_values ? table_sums + threadIdx.x : nullptr;
#pragma unroll 8
  for (int i = 0; i < capacity; ++i)
    columns[stride * i] = -1;
  int count = 0;
  auto const add = [&](std::int32_t column, double term) {
    std::int32_t place = first_place(column, capacity - 1), there = columns[stride * place];
    while (there != column && there != -1) {
      place = (place + 1) & (capacity - 1);
      there = columns[stride * place];
    }
    if (there == column) {
      if (with_values)
        sums[stride * place] += term;
    } else if (count++ < limit) {
      columns[stride * place] = column;
      if (with_values)
        sums[stride * place] = term;
    }
  };
  // What is far away is asked for several entries at once.
  constexpr int ahead = 4;
  std::int64_t const end = live ? factor.a.row_ptr[row + 1] : 0;
  for (std::int64_t k = live ? factor.a.row_ptr[row] : 0; k < end && count <= limit; k += ahead) {
    std::int32_t of_b[ahead], lengths[ahead], first_columns[ahead];
    std::int64_t begins[ahead];
    double f[ahead], first_values[ahead];
#pragma unroll
    for (int j = 0; j < ahead; ++j)
      of_b[j] = k + j < end ? factor.row_of_b(row, k + j) : -1;
#pragma unroll
    for (int j = 0; j < ahead; ++j) {
      bool const there = of_b[j] >= 0;
      begins[j] = there ? b.begin(of_b[j]) : 0;
      lengths[j] = there ? static_cast<std::int32_t>(b.end(of_b[j]) - begins[j]) : 0;
      f[j] = with_values && there ? factor.factor(row, k + j) : 0;
    }
#pragma unroll
    for (int j = 0; j < ahead; ++j) {
      first_columns[j] = lengths[j] > 0 ? b.column(begins[j]) : -1;
      first_values[j] = with_values && lengths[j] > 0 ? b.value(begins[j]) : 0;
    }
#pragma unroll
    for (int j = 0; j < ahead; ++j) {
      std::int32_t column = first_columns[j];
      double value = first_values[j];
      for (std::int32_t l = 1; l <= lengths[j]; ++l) {
        std::int32_t const own = column;
        double const term = f[j] * value;
        if (!Rows::one_entry && l < lengths[j]) {
          column = b.column(begins[j] + l);
          value = with_values ? b.value(begins[j] + l) : 0;
        }
        add(own, term);
      }
    }
  }
  if (pass != Pass::write && live) {
    target.row_ptr[row + 1] = count <= limit ? count : 0;
    if (count > limit)
      target.long_rows[atomicAdd(target.n_long, Count{1})] = static_cast<std::int32_t>(row);
  }
  if constexpr (pass == Pass::store) {
    // The rows of a warp lie one after another.
    int const own = live && count <= limit ? count : 0;
    int before = own;
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2)
      if (int const other = __shfl_up_sync(0xffffffffU, before, static_cast<unsigned>(distance));
          static_cast<int>(threadIdx.x) >= distance)
        before += other;
    Count first = 0;
    if (threadIdx.x == 31)
      first = atomicAdd(target.store.filled, static_cast<Count>(before));
    begin = static_cast<std::int64_t>(__shfl_sync(0xffffffffU, first, 31)) + before - own;
    bool const has_place = own > 0 && begin + own <= target.store.capacity;
    if (live)
      target.store.starts[row] = has_place ? begin : -1;
    if (!has_place)
      return;
  }
  if constexpr (with_values) {
    std::int32_t* const result_columns = pass == Pass::store ? target.store.columns : target.columns;
    double* const result_values = pass == Pass::store ? target.store.values : target.values;
    // The entries move to the front of the table; then each finds how many columns are before its own.
    int filled = 0;
    for (int i = 0; i < capacity; ++i)
      if (std::int32_t const column = columns[stride * i]; column >= 0) {
        if (target.sorted) {
          columns[stride * filled] = column;
          sums[stride * filled] = sums[stride * i];
        } else {
          result_columns[begin + filled] = column;
          result_values[begin + filled] = sums[stride * i];
        }
        ++filled;
      }
    if (!target.sorted)
      return;
    for (int i = 0; i < filled; ++i) {
      std::int32_t const column = columns[stride * i];
      int rank = 0;
#pragma unroll 4
      for (int j = 0; j < filled; ++j)
        rank += columns[stride * j] < column;
      result_columns[begin + rank] = column;
      result_values[begin + rank] = sums[stride * i];
    }
  }
}

/// The place of a column in a table, which has room; counts the new ones.
__device__ __forceinline__ std::int32_t place_of(std::int32_t column, std::int32_t* columns, std::int32_t mask, int* count) {
  for (std::int32_t place = first_place(column, mask);; place = (place + 1) & mask) {
    std::int32_t const there = *static_cast<std::int32_t volatile*>(columns + place);
    if (there == column)
      return place;
    if (there == -1) {
      std::int32_t const before = atomicCAS(columns + place, -1, column);
      if (before == -1) {
        atomicAdd(count, 1);
        return place;
      }
      if (before == column)
        return place;
    }
  }
}

/// A warp takes all terms of a row into the table. Returns false, as soon as it has more than `limit` columns, which in Pass::write
/// it has not.
template <Pass pass, class Factor, class Rows>
__device__ __forceinline__ bool gather_row(Factor const& factor, Rows const& b, std::int64_t row, std::int32_t* columns,
                                           double* sums, std::int32_t mask, int limit, int* count) {
  constexpr unsigned all = 0xffffffffU;
  constexpr bool with_values = pass != Pass::count, can_be_too_long = pass != Pass::write;
  int const lane = static_cast<int>(threadIdx.x % 32);
  std::int64_t const begin = factor.a.row_ptr[row], end = factor.a.row_ptr[row + 1];
  auto const is_too_long = [&] {  // all threads see the same count, because none goes on before
    return __any_sync(all, *static_cast<int volatile*>(count) > limit) != 0;
  };
  for (std::int64_t first = begin; first < end; first += 32) {
    int const here = static_cast<int>(min(std::int64_t{32}, end - first));
    if constexpr (Rows::one_entry) {  // places at once, then sums one after another
      std::int32_t place = -1;
      double term = 0;
      if (std::int64_t const k = first + lane; k < end)
        if (std::int32_t const of_b = factor.row_of_b(row, k); of_b >= 0 && b.begin(of_b) < b.end(of_b)) {
          place = place_of(b.column(b.begin(of_b)), columns, mask, count);
          if (with_values)
            term = factor.factor(row, k) * b.value(b.begin(of_b));
        }
      if (can_be_too_long && is_too_long())
        return false;
      if (with_values)
        for (int j = 0; j < here; ++j) {
          if (j == lane && place >= 0)
            sums[place] += term;
          __syncwarp();
        }
      continue;
    }
    // Every thread looks up one row of B.
    std::int64_t own_begin = 0;
    std::int32_t own_length = 0;
    double own_factor = 0;
    if (std::int64_t const k = first + lane; k < end)
      if (std::int32_t const of_b = factor.row_of_b(row, k); of_b >= 0) {
        own_begin = b.begin(of_b);
        own_length = static_cast<std::int32_t>(b.end(of_b) - own_begin);
        if (with_values)
          own_factor = factor.factor(row, k);
      }
    for (int j = 0; j < here; ++j) {
      auto const b_begin = static_cast<std::int64_t>(__shfl_sync(all, static_cast<long long>(own_begin), j));
      std::int32_t const length = __shfl_sync(all, own_length, j);
      double const f = with_values ? __shfl_sync(all, own_factor, j) : 0;
      for (std::int32_t from = 0; from < length; from += 32) {
        if (from + lane < length) {
          std::int32_t const place = place_of(b.column(b_begin + from + lane), columns, mask, count);
          if (with_values)
            sums[place] += f * b.value(b_begin + from + lane);
        }
        __syncwarp();
        if (can_be_too_long && is_too_long())
          return false;
      }
    }
  }
  return true;
}

/// The same as short_rows_kernel by a warp for a row.
template <int tier, Pass pass, class Factor, class Rows>
__global__ void __launch_bounds__(tiers[tier].block)
    product_kernel(Factor const factor, Rows const b, RowList const list, Target const target) {
  constexpr bool with_values = pass != Pass::count;
  constexpr int capacity = tiers[tier].capacity(), limit = tiers[tier].limit(), warps = tiers[tier].block / 32;
  __shared__ std::int32_t table_columns[warps * capacity];
  __shared__ double table_sums[with_values ? warps * capacity : 1];
  __shared__ int counts[warps];
  int const of_block = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x % 32);
  std::int64_t const place = std::int64_t{blockIdx.x} * warps + of_block;
  if (place >= list.n)
    return;
  std::int64_t const row = list.row(place);
  std::int64_t begin = pass == Pass::write ? target.row_ptr[row] : 0;
  if (pass == Pass::write)
    if (std::int64_t const length = target.row_ptr[row + 1] - begin; length > limit || length == 0)
      return;
  std::int32_t* const columns = table_columns + of_block * capacity;
  double* const sums = with_values ? table_sums + of_block * capacity : nullptr;
  for (int i = lane; i < capacity; i += 32) {
    columns[i] = -1;
    if (with_values)
      sums[i] = 0;
  }
  if (lane == 0)
    counts[of_block] = 0;
  __syncwarp();
  bool const fits = gather_row<pass>(factor, b, row, columns, sums, capacity - 1, limit, counts + of_block);
  __syncwarp();
  if (pass != Pass::write && lane == 0) {
    target.row_ptr[row + 1] = fits ? counts[of_block] : 0;
    if (!fits)
      target.long_rows[atomicAdd(target.n_long, Count{1})] = static_cast<std::int32_t>(row);
  }
  if constexpr (pass == Pass::store) {
    int const own = fits ? counts[of_block] : 0;
    Count first = 0;
    if (lane == 0 && own > 0)
      first = atomicAdd(target.store.filled, static_cast<Count>(own));
    begin = static_cast<std::int64_t>(__shfl_sync(0xffffffffU, first, 0));
    bool const has_place = own > 0 && begin + own <= target.store.capacity;
    if (lane == 0)
      target.store.starts[row] = has_place ? begin : -1;
    if (!has_place)
      return;
  }
  if constexpr (with_values) {
    std::int32_t* const result_columns = pass == Pass::store ? target.store.columns : target.columns;
    double* const result_values = pass == Pass::store ? target.store.values : target.values;
    // The entries move to the front of the table; then each finds how many columns are before its own.
    int filled = 0;
    for (int first = 0; first < capacity; first += 32) {
      std::int32_t const column = columns[first + lane];
      double const sum = sums[first + lane];
      unsigned const there = __ballot_sync(0xffffffffU, column >= 0);
      int const before = __popc(there & ((1U << lane) - 1));
      if (column >= 0) {
        columns[filled + before] = column;
        sums[filled + before] = sum;
      }
      filled += __popc(there);
      __syncwarp();
    }
    for (int i = lane; i < filled; i += 32) {
      std::int32_t const column = columns[i];
      int rank = target.sorted ? 0 : i;
      for (int j = 0; target.sorted && j < filled; ++j)
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
    for (std::int64_t k = factor.a.row_ptr[row]; k < factor.a.row_ptr[row + 1]; ++k) {
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
      unsigned const all = __ballot_sync(0xffffffffU, there);
      if (with_values && there) {
        std::int64_t const to = filled + __popc(all & ((1U << lane) - 1));
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
__global__ void __launch_bounds__(threads) unload_kernel(std::int64_t n_rows, Target const target) {
  TeamRow const at(n_rows, target.row_ptr);
  std::int64_t const start = target.store.starts[at.row];
  if (!at.live || start < 0)
    return;
  for (std::int64_t k = at.begin + at.lane; k < at.end; k += team) {
    target.columns[k] = target.store.columns[start + k - at.begin];
    target.values[k] = target.store.values[start + k - at.begin];
  }
}

// The transposed matrix: entries sorted by columns, stably.

__global__ void __launch_bounds__(threads) row_numbers_kernel(CsrView const a, std::int32_t* rows) {
  TeamRow const at(a.n_rows, a.row_ptr);
  if (at.live)
    for (std::int64_t k = at.begin + at.lane; k < at.end; k += team)
      rows[k] = static_cast<std::int32_t>(at.row);
}
/// row_ptr[c] = how many sorted columns are below c.
__global__ void __launch_bounds__(threads) first_places_kernel(std::int64_t nnz, std::int32_t const* __restrict__ sorted,
                                                               std::int64_t n_columns, std::int64_t* __restrict__ row_ptr) {
  std::int64_t const k = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (k > nnz)
    return;
  std::int64_t const from = k == 0 ? 0 : std::int64_t{sorted[k - 1]} + 1, to = k == nnz ? n_columns : sorted[k];
  for (std::int64_t c = from; c <= to; ++c)
    row_ptr[c] = k;
}
__global__ void __launch_bounds__(threads)
    permute_kernel(std::int64_t nnz, std::int32_t const* __restrict__ order, std::int32_t const* __restrict__ rows,
                   double const* __restrict__ values, std::int32_t* __restrict__ columns_after, double* __restrict__ values_after) {
  std::int64_t const k = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (k < nnz) {
    columns_after[k] = rows[order[k]];
    values_after[k] = values[order[k]];
  }
}
__global__ void __launch_bounds__(threads) count_up_kernel(std::int64_t n, std::int32_t* numbers) {
  if (std::int64_t const i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < n)
    numbers[i] = static_cast<std::int32_t>(i);
}

/// Long rows first.
__global__ void __launch_bounds__(threads) length_keys_kernel(CsrView const a, std::uint8_t* keys) {
  if (std::int64_t const i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < a.n_rows)
    keys[i] = static_cast<std::uint8_t>(255 - min(std::int64_t{255}, a.row_ptr[i + 1] - a.row_ptr[i]));
}

/// Calls algorithm(scratch, bytes) of CUB twice: for the bytes, then with scratch memory.
template <class Algorithm>
void with_scratch(Context& context, Algorithm const& algorithm) {
  std::size_t bytes = 0;
  POISSON_CUDA_CHECK(algorithm(nullptr, bytes));
  // A null pointer would only ask for the bytes again.
  Array<char> scratch(context, std::max<std::int64_t>(1, static_cast<std::int64_t>(bytes)));
  POISSON_CUDA_CHECK(algorithm(static_cast<void*>(scratch.data()), bytes));
}

template <class T>
void running_sums(Context& context, T* data, std::int64_t n) {
  with_scratch(context, [&](void* scratch, std::size_t& bytes) {
    return cub::DeviceScan::InclusiveSum(scratch, bytes, data, data, n, cuda::of(context).stream());
  });
}

template <class T>
T fetch(Context& context, T const* device) {
  T value{};
  context.download(&value, device, sizeof value);
  return value;
}

template <class... Parameters, class... Arguments>
void launch(Context& context, void (*kernel)(Parameters...), std::int64_t n_threads, Arguments const&... arguments) {
  if (n_threads == 0)
    return;
  kernel<<<cuda::n_blocks(n_threads, threads), threads, 0, cuda::of(context).stream()>>>(arguments...);
  POISSON_CUDA_CHECK(cudaGetLastError());
}

/// The rows by length, those of about the same length in their order.
Array<std::int32_t> rows_by_length(Context& context, CsrView const& a) {
  Array<std::int32_t> rows(context, a.n_rows), result(context, a.n_rows);
  Array<std::uint8_t> keys(context, a.n_rows), sorted(context, a.n_rows);
  launch(context, count_up_kernel, a.n_rows, a.n_rows, rows.data());
  launch(context, length_keys_kernel, a.n_rows, a, keys.data());
  with_scratch(context, [&](void* scratch, std::size_t& bytes) {
    return cub::DeviceRadixSort::SortPairs(scratch, bytes, keys.data(), sorted.data(), rows.data(), result.data(), a.n_rows, 0, 8,
                                           cuda::of(context).stream());
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
        stream_(cuda::of(context).stream()),
        factor_(factor),
        b_(b),
        n_columns_(n_columns),
        first_tier_(first_tier),
        sorted_(sorted),
        few_entries_(few_entries) {}

  SparseArrays made() {
    std::int64_t const n_rows = factor_.a.n_rows;
    SparseArrays result;
    result.n_columns = n_columns_;
    result.row_ptr = Array<std::int64_t>(context_, n_rows + 1);
    result.row_ptr.set_zero();
    if (n_rows == 0)
      return result;
    Array<Count> counts(context_, 2);  // rows that are too long, entries in the store
    Array<std::int64_t> starts(context_, n_rows);
    Array<std::int32_t> stored_columns;
    Array<double> stored_values;
    Target target{};
    target.row_ptr = result.row_ptr.data();
    target.n_long = counts.data();
    target.sorted = sorted_;
    target.store.filled = counts.data() + 1;
    target.store.starts = starts.data();
    try {
      stored_columns = Array<std::int32_t>(context_, few_entries_);
      stored_values = Array<double>(context_, few_entries_);
      target.store.capacity = few_entries_;
      target.store.columns = stored_columns.data();
      target.store.values = stored_values.data();
    } catch (OutOfMemoryError const&) {
      stored_columns = {};
    }
    counts.set_zero();
    RowList lists[n_tiers + 1] = {};
    Array<std::int32_t> long_rows[n_tiers], order;
    if (first_tier_ == 0 && n_rows >= many_rows)  // a warp takes as long as the longest row of one of its threads
      order = rows_by_length(context_, factor_.a);
    lists[first_tier_] = {order.data(), n_rows};
    for (int t = first_tier_; t < n_tiers && lists[t].n > 0; ++t) {
      long_rows[t] = Array<std::int32_t>(context_, lists[t].n);
      target.long_rows = long_rows[t].data();
      context_.set_zero(target.n_long, sizeof(Count));
      if (target.store.capacity > 0)
        run_tier<Pass::store>(t, lists[t], target);
      else
        run_tier<Pass::count>(t, lists[t], target);
      lists[t + 1] = {long_rows[t].data(), static_cast<std::int64_t>(fetch(context_, target.n_long))};
    }
    run_long<Pass::count>(lists[n_tiers], target);
    running_sums(context_, target.row_ptr + 1, n_rows);
    std::int64_t const nnz = fetch(context_, target.row_ptr + n_rows),
                       n_stored = static_cast<std::int64_t>(fetch(context_, target.store.filled));
    result.columns = Array<std::int32_t>(context_, nnz);
    result.values = Array<double>(context_, nnz);
    target.columns = result.columns.data();
    target.values = result.values.data();
    if (target.store.capacity > 0 && n_stored <= target.store.capacity)
      launch(context_, unload_kernel, team * n_rows, n_rows, target);
    else
      for (int t = first_tier_; t < n_tiers; ++t)
        run_tier<Pass::write>(t, lists[t], target);
    run_long<Pass::write>(lists[n_tiers], target);
    return result;
  }

private:
  static constexpr std::int64_t many_rows = std::int64_t{1} << 16;

  template <Pass pass>
  void run_tier(int t, RowList const& list, Target const& target) {
    if (list.n == 0)
      return;
    auto const enqueue = [&](auto* kernel, int rows_of_block) {
      kernel<<<cuda::n_blocks(list.n, rows_of_block), tiers[t].block, 0, stream_>>>(factor_, b_, list, target);
      POISSON_CUDA_CHECK(cudaGetLastError());
    };
    if (t == 0)
      enqueue(short_rows_kernel<pass, Factor, Rows>, tiers[0].block);
    else if (t == 1)
      enqueue(product_kernel<1, pass, Factor, Rows>, tiers[1].block / 32);
    else if (t == 2)
      enqueue(product_kernel<2, pass, Factor, Rows>, tiers[2].block / 32);
    else
      enqueue(product_kernel<3, pass, Factor, Rows>, tiers[3].block / 32);
  }
  template <Pass pass>
  void run_long(RowList const& list, Target const& target) {
    if (list.n == 0)
      return;
    constexpr std::int64_t most_bytes = std::int64_t{1} << 28;
    std::int64_t const blocks = std::clamp<std::int64_t>(most_bytes / (9 * n_columns_), 1, std::min<std::int64_t>(list.n, 1024));
    Array<std::uint8_t> marks(context_, blocks * n_columns_);
    Array<double> sums(context_, pass == Pass::write ? blocks * n_columns_ : 0);
    long_rows_kernel<pass>
        <<<static_cast<unsigned>(blocks), 32, 0, stream_>>>(factor_, b_, list, n_columns_, marks.data(), sums.data(), target);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }

  Context& context_;
  cudaStream_t stream_;
  Factor factor_;
  Rows b_;
  std::int64_t n_columns_;
  int first_tier_;
  bool sorted_;
  std::int64_t few_entries_;
};

class CudaAggregation final : public AggregationKernels {
public:
  Couplings couplings(Context& context, CsrView const& a, bool positive) const override {
    Couplings result;
    result.diagonal = Array<double>(context, a.n_rows);
    result.strongest = Array<double>(context, a.n_rows);
    Found found{0, static_cast<Count>(a.n_rows)};
    Array<Found> device_found(context, std::span<Found const>(&found, 1));
    launch(context, couplings_kernel, team * a.n_rows, a, positive, result.diagonal.data(), result.strongest.data(),
           device_found.data());
    found = fetch(context, device_found.data());
    result.bound = std::bit_cast<double>(found.bound);
    if (found.bad_row < static_cast<Count>(a.n_rows)) {
      result.bad_row = static_cast<std::int64_t>(found.bad_row);
      result.bad_value = fetch(context, result.diagonal.data() + result.bad_row);
    }
    return result;
  }

  Aggregates aggregate(Context& context, CsrView const& a, Couplings const& couplings) const override {
    std::int64_t const n = a.n_rows;
    Aggregates result{Array<std::int32_t>(context, n)};
    if (n == 0)
      return result;
    std::int32_t* const of = result.of.data();
    result.strong = Array<std::int32_t>(context, a.nnz);
    launch(context, strong_kernel, team * n, a, couplings.diagonal.data(), couplings.strongest.data(), result.strong.data());
    Graph const graph{n, a.row_ptr, result.strong.data()};
    launch(context, begin_kernel, n, n, couplings.strongest.data(), of);
    Array<std::int32_t> scratch(context, n);
    Array<int> left(context, 1);
    {
      Array<Key> keys(context, n), around(context, n);
      Array<std::uint8_t> active(context, n);
      bool const excludes = a.nnz <= short_rows * n;
      for (bool const second : {false, true}) {
        launch(context, keys_kernel, team * n, graph, second, of, keys.data(), active.data());
        do {
          for (int round = 0; round < rounds_at_once; ++round) {
            left.set_zero();
            launch(context, around_kernel, team * n, graph, of, keys.data(), around.data(), active.data());
            launch(context, decide_kernel, team * n, graph, around.data(), excludes ? new_root : root, keys.data(), left.data());
            if (excludes)
              launch(context, exclude_kernel, team * n, graph, keys.data());
          }
        } while (fetch(context, left.data()) != 0);
        result.count = number(context, n, keys.data(), result.count, scratch, of);
        launch(context, join_root_kernel, team * n, graph, keys.data(), of);
      }
    }
    for (int pass = 0;; ++pass) {
      left.set_zero();
      launch(context, join_kernel, team * n, graph, a.values, result.of.data(), scratch.data(), left.data());
      std::swap(result.of, scratch);
      if (fetch(context, left.data()) == 0)
        break;
      if (pass + 1 == most_joins) {  // only where couplings are not mutual
        result.count = number(context, n, nullptr, result.count, scratch, result.of.data());
        break;
      }
    }
    return result;
  }

  double largest_eigenvalue(Context& context, CsrView const& a, Couplings const& couplings) const override {
    std::int64_t const n = a.n_rows;
    if (n == 0)
      return std::nan("");
    Array<double> x(context, n), y(context, n), norms(context, 2);
    launch(context, random_kernel, n, n, x.data());
    auto& device = cuda::of(context);
    double* const partial = device.partial_sums(2 * std::int64_t{cuda::n_blocks(team * n, threads)});
    for (int step = 0; step < power_steps; ++step) {
      launch(context, power_kernel, team * n, a, couplings.diagonal.data(), x.data(), y.data(), partial, device.block_counter(),
             norms.data());
      if (step + 1 < power_steps)
        launch(context, normalise_kernel, n, n, norms.data(), y.data(), x.data());
    }
    std::vector<double> found(2);
    norms.download(found);
    double const estimate = std::sqrt(found[1] / found[0]);
    return found[0] > 0 && found[1] > 0 && std::isfinite(estimate) ? estimate : std::nan("");
  }

  SparseArrays prolongation(Context& context, CsrView const& a, Couplings const& couplings, Aggregates const& aggregates,
                            double damping) const override {
    std::int32_t const *const of = aggregates.of.data(), *const strong = aggregates.strong.data();
    Array<double> lumped(context, a.n_rows);
    launch(context, lumped_kernel, team * a.n_rows, a, strong, couplings.diagonal.data(), lumped.data());
    return Product(context, SmoothingFactor{a, strong, lumped.data(), of, damping}, AggregateRows{of}, aggregates.count, 0, true,
                   a.nnz / 3 + a.n_rows)
        .made();
  }

  SparseArrays transposed(Context& context, CsrView const& a) const override {
    SparseArrays result;
    result.n_columns = a.n_rows;
    result.row_ptr = Array<std::int64_t>(context, a.n_columns + 1);
    result.columns = Array<std::int32_t>(context, a.nnz);
    result.values = Array<double>(context, a.nnz);
    Array<std::int32_t> order(context, a.nnz), sorted(context, a.nnz), rows(context, a.nnz);
    launch(context, count_up_kernel, a.nnz, a.nnz, rows.data());
    with_scratch(context, [&](void* scratch, std::size_t& bytes) {
      return cub::DeviceRadixSort::SortPairs(scratch, bytes, a.columns, sorted.data(), rows.data(), order.data(), a.nnz, 0,
                                             std::max(1, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(a.n_columns)))),
                                             cuda::of(context).stream());
    });
    launch(context, row_numbers_kernel, team * a.n_rows, a, rows.data());
    launch(context, first_places_kernel, a.nnz + 1, a.nnz, sorted.data(), a.n_columns, result.row_ptr.data());
    launch(context, permute_kernel, a.nnz, a.nnz, order.data(), rows.data(), a.values, result.columns.data(), result.values.data());
    return result;
  }

  SparseArrays product(Context& context, CsrView const& a, CsrView const& b, bool sorted) const override {
    // Columns of a row are about as many as terms over the entries of a column of B that meet there.
    constexpr double few_terms = 1000;
    double const terms = a.n_rows > 0 && b.n_rows > 0 ? static_cast<double>(a.nnz) / static_cast<double>(a.n_rows) *
                                                            static_cast<double>(b.nnz) / static_cast<double>(b.n_rows)
                                                      : 0;
    // Of the levels of balls and boxes A P has a fifth to a half of the entries of A, and P^T A P one to two times those of P^T.
    std::int64_t const few_entries = std::max(a.nnz / 4 * 3, 3 * std::min(a.nnz, b.nnz)) + a.n_rows;
    return Product(context, GeneralFactor{a}, GeneralRows{b}, b.n_columns, terms < few_terms ? 0 : 1, sorted, few_entries).made();
  }

private:
  static std::int64_t number(Context& context, std::int64_t n, Key const* keys, std::int64_t before, Array<std::int32_t>& scratch,
                             std::int32_t* of) {
    launch(context, flags_kernel, n, n, keys, of, scratch.data());
    running_sums(context, scratch.data(), n);
    launch(context, number_kernel, n, n, static_cast<std::int32_t>(before), scratch.data(), of);
    return before + fetch(context, scratch.data() + n - 1);
  }
};

}  // namespace

AggregationKernels const& AggregationKernels::cuda() {
  static CudaAggregation const kernels;
  return kernels;
}

}  // namespace poisson
