#include "gpu/kernels/cod_sell_conversion.hpp"

#include "gpu/core/array.hpp"
#include "gpu/kernels/cuda/cuda.cuh"

#include <cub/device/device_scan.cuh>

#include <algorithm>

namespace poisson {

namespace {

constexpr unsigned all = 0xffffffffu;
constexpr int warp = 32;
constexpr std::uint16_t none = 0xffff;
/// Set in an entry of Chunk::list whose group was merged; rows of a chunk need no more than 15 bits.
constexpr std::uint16_t taken = 0x8000;

/// What a row is in its chunk.
constexpr std::uint8_t single = 0, partnered = 1, full = 2;  // full: leads a group of C rows

struct Row {
  std::int32_t const* columns;
  std::int32_t length;
};

struct Pattern {
  std::int32_t size, a_base, b_base;  ///< bases are places in the rows
};

/// The largest of the lanes' values, and the first lane that has it.
__device__ __forceinline__ std::int32_t first_largest(std::int32_t value, int& lane) {
  std::int32_t const largest = __reduce_max_sync(all, value);
  lane = __ffs(static_cast<int>(__ballot_sync(all, value == largest))) - 1;
  return largest;
}

/// As on the host (kernels/cpu/cod_sell_conversion.cpp), by a warp: every lane takes one combination of bases.
/// Precondition: at_least < min(a.length, b.length) - 1.
__device__ Pattern longest_pattern(Row a, Row b, int limit, std::int32_t at_least, int lane) {
  std::int32_t const largest = min(a.length, b.length) - 1;
  if (a.length == b.length) {
    std::int32_t const distance = b.columns[0] - a.columns[0];
    bool same = true;
    for (std::int32_t k = lane; k < a.length && same; k += warp)
      same = b.columns[k] - a.columns[k] == distance;
    if (__all_sync(all, same))
      return {largest, 0, 0};
  }
  Pattern best{at_least, 0, 0};
  auto const b_candidates = static_cast<std::int32_t>(cod_sell::n_candidates(b.length, limit));
  std::int32_t const combinations = static_cast<std::int32_t>(cod_sell::n_candidates(a.length, limit)) * b_candidates;
  for (std::int32_t first = 0; first < combinations && best.size < largest; first += warp) {
    std::int32_t const i = (first + lane) / b_candidates, j = (first + lane) % b_candidates;
    std::int32_t const n_a = a.length - i - 1, n_b = b.length - j - 1;
    std::int32_t size = 0;
    if (first + lane < combinations && min(n_a, n_b) > best.size)
      size = cod_sell::count_common(a.columns + i + 1, n_a, a.columns[i], b.columns + j + 1, n_b, b.columns[j]);
    int where = 0;
    size = first_largest(size, where);
    if (size > best.size)
      best = {size, (first + where) / b_candidates, (first + where) % b_candidates};
  }
  return best;
}

/// Writes the distances a_i - a_base that are among b_j - b_base, ascending; `to` may be `a`, but nothing of `b`. Returns their
/// number. What other lanes wrote before is visible to all after the call.
__device__ std::int32_t intersect(std::int32_t const* a, std::int32_t n_a, std::int32_t a_base, std::int32_t const* b,
                                  std::int32_t n_b, std::int32_t b_base, std::int32_t* to, int lane) {
  std::int32_t common = 0;
  for (std::int32_t first = 0; first < n_a; first += warp) {
    std::int32_t const i = first + lane;
    std::int32_t distance = 0;
    bool found = false;
    if (i < n_a) {
      distance = a[i] - a_base;
      std::int32_t low = 0, high = n_b;  // the first of b that is not smaller
      while (low < high) {
        std::int32_t const middle = low + (high - low) / 2;
        if (b[middle] - b_base < distance)
          low = middle + 1;
        else
          high = middle;
      }
      found = low < n_b && b[low] - b_base == distance;
    }
    unsigned const of_lanes = __ballot_sync(all, found);
    if (found)
      to[common + __popc(of_lanes & ((1u << lane) - 1))] = distance;
    common += __popc(of_lanes);
    __syncwarp();
  }
  return common;
}

/// One chunk, grouped by one warp; the same steps as on the host. Rows are known by their place in the chunk. Pointers from
/// `parent` on are to the block's shared memory.
struct Chunk {
  CsrView a;
  CodSellSearch search;
  CodSellGroups groups;
  std::int32_t const* order;  ///< of this chunk
  std::int32_t* base;         ///< of this chunk, by row; in device memory
  std::int64_t begin;
  std::int32_t n, n_slices;
  int lane;
  // By row.
  std::int32_t* n_shared;      ///< what the group led by a row shares
  std::int32_t* start;         ///< where the rows of a group that is left begin in queue
  std::uint16_t* parent;       ///< the row that a row's group was merged into
  std::uint16_t* queue;        ///< rows of groups that are left
  std::uint16_t* queue_place;  ///< of a row, or none
  std::uint16_t* led;          ///< slice whose first row this is, or none
  std::uint8_t* kind;
  // First rows of groups; lies over `start`, which is needed after it.
  std::uint16_t* list;
  // By slice.
  std::int32_t *slice_shared, *width, *width_in_order, *filled;
  std::uint16_t* leader;

  static __host__ __device__ std::size_t bytes(std::int64_t rows, std::int64_t slices) {
    return static_cast<std::size_t>(rows * (2 * 4 + 4 * 2 + 1) + slices * (4 * 4 + 2));
  }

  /// Divides `memory`, bytes(rows, slices) of it and aligned to 4, among the arrays; `rows` is a multiple of C and at least 2.
  __device__ void partition(char* memory, std::int64_t rows, std::int64_t slices) {
    n_shared = reinterpret_cast<std::int32_t*>(memory);
    start = n_shared + rows;
    list = reinterpret_cast<std::uint16_t*>(start);
    slice_shared = start + rows;
    width = slice_shared + slices;
    width_in_order = width + slices;
    filled = width_in_order + slices;
    parent = reinterpret_cast<std::uint16_t*>(filled + slices);
    queue = parent + rows;
    queue_place = queue + rows;
    led = queue_place + rows;
    leader = led + rows;
    kind = reinterpret_cast<std::uint8_t*>(leader + slices);
  }

  __device__ std::int64_t first_entry(std::int32_t i) const { return a.row_ptr[order[i]]; }
  __device__ Row row(std::int32_t i) const {
    std::int64_t const first = a.row_ptr[order[i]];
    return {a.columns + first, static_cast<std::int32_t>(a.row_ptr[order[i] + 1] - first)};
  }
  __device__ std::int32_t* shared(std::int32_t i) const { return groups.shared + first_entry(i); }
  __device__ std::int32_t root(std::int32_t i) const {
    while (parent[i] != i)
      i = parent[i];
    return i;
  }
  __device__ std::int32_t first_column(std::int32_t i) const {
    Row const r = row(i);
    return r.length > 0 ? r.columns[0] : -1;
  }

  __device__ void run() {
    for (std::int32_t i = lane; i < n; i += warp) {
      parent[i] = static_cast<std::uint16_t>(i);
      n_shared[i] = 0;
      kind[i] = single;
    }
    __syncwarp();
    std::int32_t count = pair_rows();
    for (std::int32_t size = 2; size < search.slice_size; size *= 2)
      count = merge_groups(count);
    for (std::int32_t i = lane; i < count; i += warp)
      kind[list[i]] = full;
    __syncwarp();
    std::int32_t const n_left = queue_what_is_left();
    number_slices(n_left);
    for (std::int32_t first = 0; first < n_left; first += search.slice_size)
      share(first, min(n_left, first + search.slice_size));
    place_rows();
  }

  /// Step 1. Leaves the pairs' first rows in list, and returns their number.
  __device__ std::int32_t pair_rows() {
    std::int32_t count = 0;
    for (std::int32_t i = 0; i < n; ++i) {
      if (kind[i] != single)
        continue;
      Row const of_i = row(i);
      Pattern best{0, 0, 0};
      std::int32_t partner = -1;
      for (std::int32_t j = i + 1; j < min(n, i + search.pair_window + 1); ++j) {
        if (kind[j] != single)
          continue;
        Row const of_j = row(j);
        if (min(of_i.length, of_j.length) - 1 <= best.size)
          continue;
        Pattern const pattern = longest_pattern(of_i, of_j, search.base_candidates, best.size, lane);
        if (pattern.size > best.size) {
          best = pattern;
          partner = j;
        }
      }
      if (partner < 0)
        continue;
      Row const of_j = row(partner);
      std::int32_t const base_i = of_i.columns[best.a_base], base_j = of_j.columns[best.b_base];
      std::int32_t const size = intersect(of_i.columns + best.a_base + 1, of_i.length - best.a_base - 1, base_i,
                                          of_j.columns + best.b_base + 1, of_j.length - best.b_base - 1, base_j, shared(i), lane);
      __syncwarp();  // all have read kind
      if (lane == 0) {
        kind[i] = kind[partner] = partnered;
        parent[partner] = static_cast<std::uint16_t>(i);
        base[i] = base_i;
        base[partner] = base_j;
        n_shared[i] = size;
        list[count] = static_cast<std::uint16_t>(i);
      }
      ++count;
      __syncwarp();
    }
    return count;
  }

  /// Step 2, one doubling: `list` holds the groups' first rows before and after. Returns their number.
  __device__ std::int32_t merge_groups(std::int32_t count) {
    std::int32_t kept = 0;
    for (std::int32_t i = 0; i < count; ++i) {
      std::int32_t const first = list[i];
      if ((first & taken) != 0)
        continue;
      std::int32_t* const of_first = shared(first);
      std::int32_t const n_first = n_shared[first];
      std::int32_t best = 0, partner = 0;
      for (std::int32_t from = i + 1; from < min(count, i + search.merge_window + 1) && best < n_first; from += warp) {
        // Every lane takes one group.
        std::int32_t const j = from + lane;
        std::int32_t other = j < min(count, i + search.merge_window + 1) ? list[j] : taken;
        bool const candidate = (other & taken) == 0;
        unsigned const candidates = __ballot_sync(all, candidate);
        if (candidates == 0)
          continue;
        // Neighbours in a regular mesh share all: the first candidate is looked at by the whole warp.
        int const nearest = __ffs(static_cast<int>(candidates)) - 1;
        std::int32_t const near = __shfl_sync(all, other, nearest);
        if (best == 0 && n_shared[near] == n_first) {
          std::int32_t const* const of_near = shared(near);
          bool same = true;
          for (std::int32_t k = lane; k < n_first && same; k += warp)
            same = of_first[k] == of_near[k];
          if (__all_sync(all, same)) {
            best = n_first;
            partner = from + nearest;
            break;
          }
        }
        std::int32_t size = candidate && n_shared[other] > best
                                ? cod_sell::count_common(of_first, n_first, 0, shared(other), n_shared[other], 0)
                                : 0;
        int where = 0;
        size = first_largest(size, where);
        if (size > best) {
          best = size;
          partner = from + where;
        }
      }
      if (best == 0)
        continue;
      std::int32_t const other = list[partner];
      std::int32_t const size = intersect(of_first, n_first, 0, shared(other), n_shared[other], 0, of_first, lane);
      __syncwarp();  // all have read list and n_shared
      if (lane == 0) {
        parent[other] = static_cast<std::uint16_t>(first);
        n_shared[first] = size;
        list[partner] = static_cast<std::uint16_t>(other | taken);
        list[kept] = static_cast<std::uint16_t>(first);
      }
      ++kept;
      __syncwarp();
    }
    return kept;
  }

  /// Step 3: fills queue and queue_place. Returns the number of rows that are left.
  __device__ std::int32_t queue_what_is_left() {
    for (std::int32_t i = lane; i < n; i += warp)
      start[i] = 0;
    __syncwarp();
    for (std::int32_t i = lane; i < n; i += warp)
      if (std::int32_t const r = root(i); kind[r] != full)
        atomicAdd(start + r, 1);
    __syncwarp();
    std::int32_t n_left = 0;
    for (std::int32_t first = 0; first < n; first += warp) {
      std::int32_t const i = first + lane, own = i < n ? start[i] : 0;
      std::int32_t sum = own;
      for (int distance = 1; distance < warp; distance *= 2) {
        std::int32_t const before = __shfl_up_sync(all, sum, distance);
        sum += lane >= distance ? before : 0;
      }
      if (i < n)
        start[i] = n_left + sum - own;
      n_left += __shfl_sync(all, sum, warp - 1);
    }
    __syncwarp();
    for (std::int32_t first = 0; first < n; first += warp) {
      std::int32_t const i = first + lane, r = i < n ? root(i) : 0;
      bool const left = i < n && kind[r] != full;
      unsigned const group = __match_any_sync(all, left ? r : -1 - lane);
      int const rank = __popc(group & ((1u << lane) - 1));
      std::int32_t const at = left ? start[r] + rank : 0;
      if (i < n)
        queue_place[i] = left ? static_cast<std::uint16_t>(at) : none;
      if (left)
        queue[at] = static_cast<std::uint16_t>(i);
      __syncwarp();
      if (left && rank == 0)
        start[r] += __popc(group);
      __syncwarp();
    }
    return n_left;
  }

  /// Step 4: fills led and leader.
  __device__ void number_slices(std::int32_t n_left) {
    std::int32_t const c = search.slice_size;
    for (std::int32_t i = lane; i < n; i += warp)
      led[i] = kind[i] == full ? 0 : none;
    __syncwarp();
    for (std::int32_t first = lane * c; first + c <= n_left; first += warp * c)
      led[queue[first]] = 0;
    __syncwarp();
    std::int32_t count = 0;
    for (std::int32_t first = 0; first < n; first += warp) {
      std::int32_t const i = first + lane;
      bool const leads = i < n && led[i] != none;
      unsigned const leading = __ballot_sync(all, leads);
      if (leads) {
        std::int32_t const slice = count + __popc(leading & ((1u << lane) - 1));
        led[i] = static_cast<std::uint16_t>(slice);
        leader[slice] = static_cast<std::uint16_t>(i);
      }
      count += __popc(leading);
    }
    if (n % c != 0 && lane == 0) {
      std::int32_t const first = queue[n_left / c * c];
      leader[n_slices - 1] = static_cast<std::uint16_t>(first);
      led[first] = static_cast<std::uint16_t>(n_slices - 1);
    }
    __syncwarp();
  }

  /// Step 3: what the rows queue[from ... end - 1] share, and their bases.
  __device__ void share(std::int32_t from, std::int32_t end) {
    std::int32_t const first = queue[from], first_root = root(first);
    std::int32_t* const to = shared(first);
    std::int32_t count = 0, before = -1;
    for (std::int32_t k = from; k < end; ++k) {
      std::int32_t const i = queue[k], group = root(i);
      if (group == before)
        continue;
      before = group;
      if (kind[group] != single) {
        std::int32_t const* const of_group = shared(group);
        if (group != first_root)
          count = intersect(to, count, 0, of_group, n_shared[group], 0, to, lane);
        else {
          count = n_shared[group];
          if (to != of_group)
            for (std::int32_t e = lane; e < count; e += warp)
              to[e] = of_group[e];
        }
      } else {
        Row const r = row(i);
        std::int32_t own_base = -1;
        if (group == first_root) {
          count = max(r.length - 1, 0);
          for (std::int32_t e = lane; e < count; e += warp)
            to[e] = r.columns[e + 1] - r.columns[0];
          if (r.length > 0)
            own_base = r.columns[0];
        } else {
          auto const candidates = static_cast<std::int32_t>(cod_sell::n_candidates(r.length, search.base_candidates));
          std::int32_t best = 0, place = 0;
          for (std::int32_t j = 0; j < candidates && best < count; j += warp) {
            std::int32_t size = 0;
            if (j + lane < candidates)
              size = cod_sell::count_common(to, count, 0, r.columns + j + lane + 1, r.length - j - lane - 1, r.columns[j + lane]);
            int where = 0;
            size = first_largest(size, where);
            if (size > best) {
              best = size;
              place = j + where;
            }
          }
          if (best == 0) {
            count = 0;
            break;
          }
          own_base = r.columns[place];
          count = intersect(to, count, 0, r.columns + place + 1, r.length - place - 1, own_base, to, lane);
        }
        if (lane == 0)
          base[i] = own_base;
      }
      __syncwarp();
      if (count == 0)
        break;
    }
    __syncwarp();
    if (lane == 0)
      slice_shared[led[first]] = count;
    if (count == 0)
      for (std::int32_t k = from + lane; k < end; k += warp)
        base[queue[k]] = first_column(queue[k]);
    __syncwarp();
  }

  __device__ std::int32_t slice_of(std::int32_t i) const {
    return led[queue_place[i] != none ? queue[queue_place[i] / search.slice_size * search.slice_size] : root(i)];
  }

  /// Steps 4 and 5.
  __device__ void place_rows() {
    std::int32_t const c = search.slice_size;
    for (std::int32_t slice = lane; slice < n_slices; slice += warp)
      width[slice] = width_in_order[slice] = filled[slice] = 0;
    for (std::int32_t i = lane; i < n; i += warp)
      if (kind[i] == full)
        slice_shared[led[i]] = n_shared[i];
    __syncwarp();
    for (std::int32_t i = lane; i < n; i += warp) {
      std::int32_t const length = row(i).length;
      atomicMax(width + slice_of(i), length);
      atomicMax(width_in_order + i / c, length);
    }
    __syncwarp();
    std::int64_t excess = 0;  // of the groups over rows in order: indices and twice the values, a quarter of the bytes
    for (std::int32_t slice = lane; slice < n_slices; slice += warp)
      excess += 3 * std::int64_t{c} * (width[slice] - width_in_order[slice]) - (c - 1) * std::int64_t{slice_shared[slice]};
    for (int distance = warp / 2; distance > 0; distance /= 2)
      excess += __shfl_xor_sync(all, excess, distance);
    bool const in_order = excess > 0;
    if (in_order) {
      for (std::int32_t slice = lane; slice < n_slices; slice += warp) {
        width[slice] = width_in_order[slice];
        slice_shared[slice] = 0;
      }
      for (std::int32_t i = lane; i < n; i += warp)
        base[i] = first_column(i);
    }
    __syncwarp();
    std::int64_t const first_slice = begin / c;
    for (std::int32_t first = 0; first < n; first += warp) {
      std::int32_t const i = first + lane;
      std::int32_t const slice = i < n ? (in_order ? i / c : slice_of(i)) : -1 - lane;
      unsigned const same = __match_any_sync(all, slice);
      int const rank = __popc(same & ((1u << lane) - 1));
      if (i < n) {
        std::int64_t const place = (first_slice + slice) * c + filled[slice] + rank;
        groups.rows[place] = order[i];
        groups.bases[place] = base[i];
      }
      __syncwarp();
      if (i < n && rank == 0)
        filled[slice] += __popc(same);
      __syncwarp();
    }
    for (std::int32_t slice = lane; slice < n_slices; slice += warp) {
      groups.value_ptr[first_slice + slice] = std::int64_t{c} * width[slice];
      groups.dictionary_ptr[first_slice + slice] = slice_shared[slice];
      groups.shared_at[first_slice + slice] = first_entry(leader[slice]);
    }
  }
};

__global__ void __launch_bounds__(warp)
    group_kernel(CsrView a, std::int32_t const* order, CodSellSearch search, CodSellGroups groups, std::int32_t* base) {
  extern __shared__ std::int32_t memory[];
  Chunk chunk;
  chunk.a = a;
  chunk.search = search;
  chunk.groups = groups;
  chunk.begin = std::int64_t{blockIdx.x} * search.chunk_rows;
  chunk.order = order + chunk.begin;
  chunk.base = base + chunk.begin;
  chunk.n = static_cast<std::int32_t>(min(search.chunk_rows, a.n_rows - chunk.begin));
  chunk.n_slices = (chunk.n + search.slice_size - 1) / search.slice_size;
  chunk.lane = static_cast<int>(threadIdx.x);
  chunk.partition(reinterpret_cast<char*>(memory), search.chunk_rows, search.chunk_rows / search.slice_size);
  chunk.run();
}

constexpr int fill_threads = 256;

/// One thread a row; writes of a slice's lanes stand beside each other.
__global__ void __launch_bounds__(fill_threads) fill_kernel(CsrView a, std::int64_t places, int c, CodSellGroups groups,
                                                            std::int32_t* columns, std::int32_t* dictionary, double* values) {
  std::int64_t const place = std::int64_t{blockIdx.x} * fill_threads + threadIdx.x;
  if (place >= places)
    return;
  std::int64_t const slice = place / c, lane = place % c;
  std::int64_t const first_value = groups.value_ptr[slice], width = (groups.value_ptr[slice + 1] - first_value) / c;
  if (width == 0)
    return;
  std::int64_t const first_shared = groups.dictionary_ptr[slice], n_shared = groups.dictionary_ptr[slice + 1] - first_shared;
  std::int32_t const* const shared = groups.shared + groups.shared_at[slice];
  for (std::int64_t k = lane; k < n_shared; k += c)
    dictionary[first_shared + k] = shared[k];
  std::int32_t const base = place < a.n_rows ? groups.bases[place] : -1;
  double* const v = values + first_value + lane;
  std::int32_t* const k = columns + (first_value - c * first_shared) + lane;
  k[0] = base;
  std::int64_t other = 0;  // terms outside the pattern
  if (base < 0) {
    for (std::int64_t j = 0; j <= n_shared; ++j)
      v[j * c] = 0;
  } else {
    std::int64_t const row = groups.rows[place], end = a.row_ptr[row + 1];
    std::int64_t next = 0;
    std::int32_t distance = n_shared > 0 ? shared[0] : -1;
    for (std::int64_t e = a.row_ptr[row]; e < end; ++e) {
      std::int32_t const column = a.columns[e];
      double const value = a.values[e];
      if (column == base)
        v[0] = value;
      else if (column > base && column - base == distance) {
        v[++next * c] = value;
        distance = next < n_shared ? shared[next] : -1;
      } else {
        ++other;
        v[(n_shared + other) * c] = value;
        k[other * c] = column;
      }
    }
  }
  for (++other; other < width - n_shared; ++other) {
    v[(n_shared + other) * c] = 0;
    k[other * c] = -1;
  }
}

void exclusive_sum(cuda::CudaContext& device, std::int64_t* p, std::int64_t n) {
  std::size_t bytes = 0;
  POISSON_CUDA_CHECK(cub::DeviceScan::ExclusiveSum(nullptr, bytes, p, p, n, device.stream()));
  Array<char> scratch(device, static_cast<std::int64_t>(bytes));
  POISSON_CUDA_CHECK(cub::DeviceScan::ExclusiveSum(scratch.data(), bytes, p, p, n, device.stream()));
}

class CudaConversion final : public CodSellConversion {
public:
  void group(Context& context, CsrView const& a, std::int32_t const* order, CodSellSearch const& search,
             CodSellGroups const& groups) const override {
    auto& device = cuda::of(context);
    std::int64_t const n_slices = (a.n_rows + search.slice_size - 1) / search.slice_size;
    device.set_zero(groups.value_ptr + n_slices, sizeof(std::int64_t));
    device.set_zero(groups.dictionary_ptr + n_slices, sizeof(std::int64_t));
    if (a.n_rows > 0) {
      Array<std::int32_t> base(context, a.n_rows);
      std::size_t const bytes = Chunk::bytes(search.chunk_rows, search.chunk_rows / search.slice_size);
      POISSON_CUDA_CHECK(cudaFuncSetAttribute(group_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)));
      auto const chunks = static_cast<unsigned>((a.n_rows + search.chunk_rows - 1) / search.chunk_rows);
      group_kernel<<<chunks, warp, bytes, device.stream()>>>(a, order, search, groups, base.data());
      POISSON_CUDA_CHECK(cudaGetLastError());
    }
    exclusive_sum(device, groups.value_ptr, n_slices + 1);
    exclusive_sum(device, groups.dictionary_ptr, n_slices + 1);
  }

  void fill(Context& context, CsrView const& a, CodSellSearch const& search, CodSellGroups const& groups, std::int32_t* columns,
            std::int32_t* dictionary, double* values) const override {
    std::int64_t const c = search.slice_size, places = (a.n_rows + c - 1) / c * c;
    if (places == 0)
      return;
    fill_kernel<<<cuda::n_blocks(places, fill_threads), fill_threads, 0, cuda::of(context).stream()>>>(
        a, places, search.slice_size, groups, columns, dictionary, values);
    POISSON_CUDA_CHECK(cudaGetLastError());
  }
};

}  // namespace

CodSellConversion const& CodSellConversion::cuda() {
  static CudaConversion const conversion;
  return conversion;
}

}  // namespace poisson
