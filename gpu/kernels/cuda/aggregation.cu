#include "gpu/kernels/aggregation.hpp"

#include "gpu/kernels/cuda/sparse_product.cuh"
#include "gpu/kernels/cuda/teams.cuh"
#include "gpu/kernels/smoother.hpp"

#include <algorithm>
#include <bit>
#include <vector>

namespace poisson {

namespace {

using namespace cuda::teams;
using Key = std::uint32_t;

constexpr int power_steps = 12;
constexpr std::int64_t short_rows = 40;  ///< strong couplings up to which new roots exclude faster than another round takes
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
    bound = fmax(bound, __shfl_xor_sync(whole_warp, bound, distance));
  if (threadIdx.x % 32 == 0 && bound > 0)
    atomicMax(&found->bound, static_cast<Count>(__double_as_longlong(bound)));
}

/// Whether entry k of the row is a strong coupling.
struct IsStrong {
  CsrView a;
  double const* strongest;
  double sign;
  double of_row;
  std::int64_t row;

  __device__ IsStrong(CsrView const& a_, double const* diagonal, double const* strongest_, std::int64_t row_)
      : a(a_), strongest(strongest_), sign(diagonal[row_] < 0 ? 1 : -1), of_row(strongest_[row_]), row(row_) {}
  [[nodiscard]] __device__ __forceinline__ bool operator()(std::int64_t k) const {
    std::int32_t const column = a.columns[k];
    return column != row && is_strong(sign * a.values[k], of_row, strongest[column]);
  }
};

/// Counts the strong couplings of row i in row_ptr[i + 1], and adds the weak ones to the diagonal in rest[i]: 20 bytes an entry.
__global__ void __launch_bounds__(threads)
    count_strong_kernel(CsrView const a, double const* __restrict__ diagonal, double const* __restrict__ strongest,
                        std::int64_t* __restrict__ row_ptr, double* __restrict__ rest) {
  TeamRow const at(a.n_rows, a.row_ptr);
  IsStrong const is_strong_entry(a, diagonal, strongest, at.row);
  int count = 0;
  double sum = 0;
  for (std::int64_t k = at.begin + at.lane; k < at.end; k += team)
    if (is_strong_entry(k))
      ++count;
    else
      sum += a.values[k];
  count = team_sum(count);
  sum = team_sum(sum);
  if (at.writes()) {
    double const whole = diagonal[at.row];
    row_ptr[at.row + 1] = count;
    rest[at.row] = sum / whole > least_share_of_diagonal ? sum : whole;
  }
}

/// 20 bytes an entry, and 12 a strong one.
__global__ void __launch_bounds__(threads)
    strong_kernel(CsrView const a, double const* __restrict__ diagonal, double const* __restrict__ strongest,
                  std::int64_t const* __restrict__ row_ptr, std::int32_t* __restrict__ columns, double* __restrict__ values) {
  TeamRow const at(a.n_rows, a.row_ptr);
  if (!at.live)
    return;
  IsStrong const is_strong_entry(a, diagonal, strongest, at.row);
  std::int64_t to = row_ptr[at.row];
  for (std::int64_t first = at.begin; first < at.end; first += team) {
    std::int64_t const k = first + at.lane;
    bool const strong = k < at.end && is_strong_entry(k);
    unsigned const all = __ballot_sync(team_bits(), strong) & team_bits();
    if (strong) {
      columns[to + __popc(all & bits_before())] = a.columns[k];
      values[to + __popc(all & bits_before())] = a.values[k];
    }
    to += __popc(all);
  }
}

/// The strong couplings of a matrix by rows.
struct Graph {
  std::int64_t n_rows;
  std::int64_t const* row_ptr;
  std::int32_t const* columns;
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
    int free = 0;
    if (candidate)
      for (std::int64_t k = at.begin + at.lane; k < at.end; k += team)
        free += of[graph.columns[k]] == open;
    free = team_sum(free);
    candidate = candidate && free > 0 && 3 * free >= at.end - at.begin;
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
    for (std::int64_t k = at.begin + at.lane; k < at.end; k += team) {
      Key const key = keys[graph.columns[k]];
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
      largest = max(largest, around[graph.columns[k]]);
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

/// New roots put those out that are within two couplings of them, where decide_kernel does it a round later. They do so through
/// rows that belong to an aggregate already, too; where couplings are not mutual decide_kernel finds the rest.
__global__ void __launch_bounds__(threads) exclude_kernel(Graph const graph, Key* keys) {
  TeamRow const at(graph.n_rows, graph.row_ptr);
  Key const own = keys[at.row];
  __syncwarp();  // before the first thread of a team changes the key
  if (!at.live || state_of(own) != new_root)
    return;
  auto const exclude = [keys](std::int32_t row) {
    if (state_of(keys[row]) == undecided)
      keys[row] = 0;
  };
  for (std::int64_t k = at.begin + at.lane; k < at.end; k += team) {
    std::int32_t const near = graph.columns[k];
    exclude(near);
    std::int64_t const end = graph.row_ptr[near + 1];
#pragma unroll 4
    for (std::int64_t l = graph.row_ptr[near]; l < end; ++l)
      exclude(graph.columns[l]);
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
    for (std::int64_t k = at.begin + at.lane; k < at.end; k += team) {
      std::int32_t const column = graph.columns[k];
      if (Key const key = keys[column]; state_of(key) == root)
        largest = max(largest, static_cast<unsigned long long>(key) << 32 | static_cast<std::uint32_t>(column));
    }
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
      if (of[graph.columns[k]] >= 0)
        if (double const coupling = fabs(values[k]); coupling > most) {
          most = coupling;
          first = k;
        }
#pragma unroll
  for (int distance = team / 2; distance > 0; distance /= 2) {
    double const other = __shfl_xor_sync(whole_warp, most, distance);
    auto const place = static_cast<std::int64_t>(__shfl_xor_sync(whole_warp, static_cast<long long>(first), distance));
    if (other > most || (other == most && place < first)) {
      most = other;
      first = place;
    }
  }
  if (!at.writes())
    return;
  bool const found = own == open && first != INT64_MAX;
  joined[at.row] = found ? of[graph.columns[first]] : own;
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

/// I - damping D^-1 A' without its rows that belong to no aggregate. A row begins with its diagonal entry, in front of the place of
/// its first strong coupling.
struct SmoothingFactor {
  Graph strong;
  double const* values;
  double const* rest;
  std::int32_t const* of;
  double damping;
  [[nodiscard]] std::int64_t n_rows() const { return strong.n_rows; }
  [[nodiscard]] std::int64_t const* row_ptr() const { return strong.row_ptr; }
  [[nodiscard]] __device__ std::int64_t begin(std::int64_t row) const { return strong.row_ptr[row] - 1; }
  [[nodiscard]] __device__ std::int64_t end(std::int64_t row) const { return of[row] >= 0 ? strong.row_ptr[row + 1] : begin(row); }
  [[nodiscard]] __device__ std::int32_t row_of_b(std::int64_t row, std::int64_t k) const {
    return k < strong.row_ptr[row] ? static_cast<std::int32_t>(row) : strong.columns[k];
  }
  [[nodiscard]] __device__ double factor(std::int64_t row, std::int64_t k) const {
    return k < strong.row_ptr[row] ? 1 - damping : -damping * values[k] / rest[row];
  }
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
    result.strong = strong_couplings(context, a, couplings);
    Graph const graph = graph_of(result.strong);
    launch(context, begin_kernel, n, n, couplings.strongest.data(), of);
    Array<std::int32_t> scratch(context, n);
    Array<int> left(context, 1);
    {
      Array<Key> keys(context, n), around(context, n);
      Array<std::uint8_t> active(context, n);
      bool const excludes = result.strong.columns.size() <= short_rows * n;
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
      launch(context, join_kernel, team * n, graph, result.strong.values.data(), result.of.data(), scratch.data(), left.data());
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

  SparseArrays prolongation(Context& context, CsrView const& a, Couplings const&, Aggregates const& aggregates,
                            double damping) const override {
    StrongCouplings const& strong = aggregates.strong;
    SmoothingFactor const factor{graph_of(strong), strong.values.data(), strong.rest.data(), aggregates.of.data(), damping};
    std::int64_t const few_entries = std::min(strong.columns.size(), a.nnz / 3) + a.n_rows;
    return Product(context, factor, AggregateRows{aggregates.of.data()}, aggregates.count, 0, true, few_entries).packed();
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
    return product_with(context, a, CsrRows{b}, b, sorted).packed();
  }
  SparseArrays galerkin_product(Context& context, CsrView const& r, CsrView const& a, CsrView const& p) const override {
    auto ap = product_with(context, a, CsrRows{p}, p, false);
    if (!ap.is_stored()) {
      SparseArrays const packed = ap.packed();
      return product(context, r, packed.view(), true);
    }
    CsrView shape{};  // of A P: its rows lie apart
    shape.n_rows = a.n_rows;
    shape.n_columns = p.n_columns;
    shape.nnz = ap.n_stored();
    return product_with(context, r, ap.rows(), shape, true).packed();
  }

private:
  /// A B, where B has these rows and the counts of `shape`.
  template <class Rows>
  static Product<CsrFactor, Rows> product_with(Context& context, CsrView const& a, Rows const& rows, CsrView const& shape,
                                               bool sorted) {
    // A column of a row of A P has about 8 terms, of P^T A P about 22.
    constexpr double terms_of_column = 12;
    double const terms = a.n_rows > 0 && shape.n_rows > 0 ? static_cast<double>(a.nnz) / static_cast<double>(a.n_rows) *
                                                                static_cast<double>(shape.nnz) / static_cast<double>(shape.n_rows)
                                                          : 0;
    int tier = 0;
    while (tier + 1 < n_tiers && terms > terms_of_column * tiers[tier].limit())
      ++tier;
    // Of the levels of balls and boxes A P has a fifth to a half of the entries of A, and P^T A P one to two times those of P^T.
    std::int64_t const few_entries = std::max(a.nnz / 4 * 3, 3 * std::min(a.nnz, shape.nnz)) + a.n_rows;
    return {context, CsrFactor{a}, rows, shape.n_columns, tier, sorted, few_entries};
  }
  static StrongCouplings strong_couplings(Context& context, CsrView const& a, Couplings const& couplings) {
    std::int64_t const n = a.n_rows;
    StrongCouplings result;
    result.row_ptr = Array<std::int64_t>(context, n + 1);
    result.row_ptr.set_zero();
    result.rest = Array<double>(context, n);
    launch(context, count_strong_kernel, team * n, a, couplings.diagonal.data(), couplings.strongest.data(), result.row_ptr.data(),
           result.rest.data());
    running_sums(context, result.row_ptr.data() + 1, n);
    std::int64_t const nnz = fetch(context, result.row_ptr.data() + n);
    result.columns = Array<std::int32_t>(context, nnz);
    result.values = Array<double>(context, nnz);
    launch(context, strong_kernel, team * n, a, couplings.diagonal.data(), couplings.strongest.data(), result.row_ptr.data(),
           result.columns.data(), result.values.data());
    return result;
  }
  static Graph graph_of(StrongCouplings const& strong) {
    return {strong.row_ptr.size() - 1, strong.row_ptr.data(), strong.columns.data()};
  }

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
