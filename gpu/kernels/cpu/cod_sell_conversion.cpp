#include "gpu/kernels/cod_sell_conversion.hpp"

#include "gpu/kernels/cpu/cpu.hpp"

#include <cstring>
#include <limits>
#include <vector>

namespace poisson {

namespace {

using std::size_t;

/// Keeps in `a` (already distances: a_base = 0, or columns) the distances that are also in `b`; `to` may be `a`. Returns their
/// number.
std::int32_t intersect(std::int32_t const* a, std::int64_t n_a, std::int32_t a_base, std::int32_t const* b, std::int64_t n_b,
                       std::int32_t b_base, std::int32_t* to) {
  std::int32_t common = 0;
  for (std::int64_t i = 0, j = 0; i < n_a && j < n_b;) {
    std::int32_t const of_a = a[i] - a_base, of_b = b[j] - b_base;
    to[common] = of_a;
    common += of_a == of_b;
    i += of_a <= of_b;
    j += of_b <= of_a;
  }
  return common;
}

/// Whether b is a shifted by one distance.
bool is_shift(std::int32_t const* a, std::int32_t const* b, std::int64_t length) {
  std::int32_t const distance = b[0] - a[0];
  std::int32_t differences = 0;
  for (std::int64_t k = 0; k < length; ++k)
    differences |= b[k] - a[k] - distance;
  return differences == 0;
}

struct Row {
  std::int32_t const* columns;
  std::int64_t length;
};

struct Pattern {
  std::int32_t size = 0;
  std::int64_t a_base = 0, b_base = 0;  ///< places in the rows
};

/// Algorithm 4, for patterns of more than `at_least` distances; size `at_least` and no bases where there is none.
Pattern longest_pattern(Row a, Row b, int limit, std::int32_t at_least) {
  Pattern best{at_least, 0, 0};
  std::int64_t const largest = std::min(a.length, b.length) - 1;
  if (a.length == b.length && is_shift(a.columns, b.columns, a.length))
    return largest > at_least ? Pattern{static_cast<std::int32_t>(largest), 0, 0} : best;
  std::int64_t const a_candidates = cod_sell::n_candidates(a.length, limit), b_candidates = cod_sell::n_candidates(b.length, limit);
  for (std::int64_t i = 0; i < a_candidates; ++i)
    for (std::int64_t j = 0; j < b_candidates; ++j) {
      std::int64_t const n_a = a.length - i - 1, n_b = b.length - j - 1;
      if (std::min(n_a, n_b) <= best.size)
        break;  // the same goes for every j that follows
      std::int32_t const size = cod_sell::count_common(a.columns + i + 1, n_a, a.columns[i], b.columns + j + 1, n_b, b.columns[j]);
      if (size > best.size)
        best = {size, i, j};
      if (best.size == largest)
        return best;
    }
  return best;
}

/// Groups one chunk. Rows are known by their place in the chunk.
class Chunk {
public:
  Chunk(CsrView const& a, CodSellSearch const& search, CodSellGroups const& groups) : a_(a), search_(search), groups_(groups) {}

  /// Groups order[begin ... end - 1]; begin is a multiple of C.
  void run(std::int32_t const* order, std::int64_t begin, std::int64_t end) {
    order_ = order + begin;
    n_ = static_cast<std::int32_t>(end - begin);
    begin_ = begin;
    parent_.resize(static_cast<size_t>(n_));
    base_.resize(static_cast<size_t>(n_));
    n_shared_.assign(static_cast<size_t>(n_), 0);
    partnered_.assign(static_cast<size_t>(n_), 0);
    for (std::int32_t i = 0; i < n_; ++i)
      parent_[at(i)] = i;
    left_.clear();
    pair_rows();
    for (std::int32_t size = 2; size < search_.slice_size; size *= 2)
      merge_groups();
    make_slices();
  }

private:
  [[nodiscard]] static size_t at(std::int64_t i) { return static_cast<size_t>(i); }
  [[nodiscard]] std::int64_t row(std::int64_t i) const { return order_[i]; }
  [[nodiscard]] std::int64_t length(std::int64_t i) const { return a_.row_ptr[row(i) + 1] - a_.row_ptr[row(i)]; }
  [[nodiscard]] Row columns(std::int64_t i) const { return {a_.columns + a_.row_ptr[row(i)], length(i)}; }
  /// The distances of the group led by i; there is room for as many as its row has entries.
  [[nodiscard]] std::int32_t* shared(std::int64_t i) const { return groups_.shared + a_.row_ptr[row(i)]; }
  [[nodiscard]] std::int32_t root(std::int32_t i) const {
    while (parent_[at(i)] != i)
      i = parent_[at(i)];
    return i;
  }

  /// Step 1. Leaves the pairs' first rows in list_, rows without a partner in left_.
  void pair_rows() {
    list_.clear();
    for (std::int32_t i = 0; i < n_; ++i) {
      if (partnered_[at(i)] != 0)
        continue;
      Row const a = columns(i);
      Pattern best;
      std::int32_t partner = -1;
      std::int32_t const end = static_cast<std::int32_t>(std::min<std::int64_t>(n_, std::int64_t{i} + search_.pair_window + 1));
      for (std::int32_t j = i + 1; j < end; ++j) {
        if (partnered_[at(j)] != 0)
          continue;
        Row const b = columns(j);
        if (std::min(a.length, b.length) - 1 <= best.size)
          continue;
        Pattern const pattern = longest_pattern(a, b, search_.base_candidates, best.size);
        if (pattern.size > best.size) {
          best = pattern;
          partner = j;
        }
      }
      if (partner < 0) {
        left_.push_back(i);
        continue;
      }
      Row const b = columns(partner);
      partnered_[at(i)] = partnered_[at(partner)] = 1;
      parent_[at(partner)] = i;
      base_[at(i)] = a.columns[best.a_base];
      base_[at(partner)] = b.columns[best.b_base];
      n_shared_[at(i)] = intersect(a.columns + best.a_base + 1, a.length - best.a_base - 1, base_[at(i)],
                                   b.columns + best.b_base + 1, b.length - best.b_base - 1, base_[at(partner)], shared(i));
      list_.push_back(i);
    }
  }

  /// Step 2, one doubling: list_ holds the groups' first rows before and after; those without a partner go to left_.
  void merge_groups() {
    size_t kept = 0;
    taken_.assign(list_.size(), 0);
    for (size_t i = 0; i < list_.size(); ++i) {
      if (taken_[i] != 0)
        continue;
      std::int32_t const leader = list_[i], n_a = n_shared_[at(leader)];
      std::int32_t const* const a = shared(leader);
      std::int32_t best = 0;
      size_t partner = 0;
      for (size_t j = i + 1; j < std::min(list_.size(), i + static_cast<size_t>(search_.merge_window) + 1) && best < n_a; ++j) {
        std::int32_t const other = list_[j], n_b = n_shared_[at(other)];
        if (taken_[j] != 0 || n_b <= best)
          continue;
        bool const equal = n_a == n_b && std::memcmp(a, shared(other), static_cast<size_t>(n_a) * sizeof *a) == 0;
        std::int32_t const size = equal ? n_a : cod_sell::count_common(a, n_a, 0, shared(other), n_b, 0);
        if (size > best) {
          best = size;
          partner = j;
        }
      }
      if (best == 0) {
        left_.push_back(leader);
        continue;
      }
      std::int32_t const other = list_[partner];
      taken_[partner] = 1;
      parent_[at(other)] = leader;
      n_shared_[at(leader)] = intersect(a, n_a, 0, shared(other), n_shared_[at(other)], 0, shared(leader));
      list_[kept++] = leader;
    }
    list_.resize(kept);
  }

  /// Steps 3 to 5.
  void make_slices() {
    std::int32_t const c = search_.slice_size, n_slices = (n_ + c - 1) / c;
    bool const partial = n_ % c != 0;
    // What is left, in order: start_[leader] is where its rows begin in queue_.
    std::sort(left_.begin(), left_.end());
    members_.assign(at(n_), 0);
    for (std::int32_t i = 0; i < n_; ++i)
      ++members_[at(root(i))];
    start_.assign(at(n_), -1);
    std::int32_t n_left = 0;
    for (std::int32_t const leader : left_) {
      start_[at(leader)] = n_left;
      n_left += members_[at(leader)];
    }
    queue_.resize(at(n_left));
    queue_place_.assign(at(n_), -1);
    for (std::int32_t i = 0; i < n_; ++i)
      if (std::int32_t& start = start_[at(root(i))]; start >= 0) {
        queue_place_[at(i)] = start;
        queue_[at(start++)] = i;
      }
    // Slices by their first rows.
    first_of_slice_.assign(at(n_), 0);
    for (std::int32_t const leader : list_)
      first_of_slice_[at(leader)] = 1;
    for (std::int32_t first = 0; first + c <= n_left; first += c)
      first_of_slice_[at(queue_[at(first)])] = 1;
    slice_led_by_.assign(at(n_), -1);
    std::int32_t count = 0;
    for (std::int32_t i = 0; i < n_; ++i)
      if (first_of_slice_[at(i)] != 0)
        slice_led_by_[at(i)] = count++;
    leader_.assign(at(n_slices), 0);
    for (std::int32_t i = 0; i < n_; ++i)
      if (slice_led_by_[at(i)] >= 0)
        leader_[at(slice_led_by_[at(i)])] = i;
    if (partial) {
      leader_[at(n_slices - 1)] = queue_[at(n_left / c * c)];
      slice_led_by_[at(leader_[at(n_slices - 1)])] = n_slices - 1;
    }
    for (std::int32_t first = 0; first < n_left; first += c)
      share(first, std::min(n_left, first + c));
    place_rows(n_slices);
  }

  /// Step 3: leaves in the first row's place what the rows queue_[begin ... end - 1] share, and sets their bases.
  void share(std::int32_t begin, std::int32_t end) {
    std::int32_t const first = queue_[at(begin)], first_root = root(first);
    std::int32_t* const to = shared(first);
    std::int32_t n_shared = 0;
    std::int32_t before = -1;
    for (std::int32_t k = begin; k < end; ++k) {
      std::int32_t const i = queue_[at(k)], group = root(i);
      if (group == before)
        continue;
      before = group;
      Row const r = columns(group);
      if (partnered_[at(group)] != 0) {
        std::int32_t const* const of_group = shared(group);
        n_shared = group == first_root ? n_shared_[at(group)] : intersect(to, n_shared, 0, of_group, n_shared_[at(group)], 0, to);
        if (group == first_root && to != of_group)
          std::copy(of_group, of_group + n_shared, to);
      } else if (group == first_root) {
        for (std::int64_t e = 1; e < r.length; ++e)
          to[n_shared++] = r.columns[e] - r.columns[0];
        if (r.length > 0)
          base_[at(i)] = r.columns[0];
      } else {
        std::int64_t const candidates = cod_sell::n_candidates(r.length, search_.base_candidates);
        std::int64_t base = 0;
        std::int32_t best = 0;
        for (std::int64_t j = 0; j < candidates && best < n_shared; ++j) {
          std::int32_t const size = cod_sell::count_common(to, n_shared, 0, r.columns + j + 1, r.length - j - 1, r.columns[j]);
          if (size > best) {
            best = size;
            base = j;
          }
        }
        if (best == 0) {
          n_shared = 0;
          break;
        }
        base_[at(i)] = r.columns[base];
        n_shared = intersect(to, n_shared, 0, r.columns + base + 1, r.length - base - 1, r.columns[base], to);
      }
      if (n_shared == 0)
        break;
    }
    slice_shared_.resize(std::max(slice_shared_.size(), at((n_ + search_.slice_size - 1) / search_.slice_size)));
    slice_shared_[at(slice_led_by_[at(first)])] = n_shared;
    if (n_shared == 0)
      for (std::int32_t k = begin; k < end; ++k)
        base_[at(queue_[at(k)])] = first_column(queue_[at(k)]);
  }

  [[nodiscard]] std::int32_t first_column(std::int32_t i) const {
    Row const r = columns(i);
    return r.length > 0 ? r.columns[0] : -1;
  }

  /// Steps 4 and 5.
  void place_rows(std::int32_t n_slices) {
    std::int32_t const c = search_.slice_size;
    slice_shared_.resize(at(n_slices));
    for (std::int32_t const leader : list_)
      slice_shared_[at(slice_led_by_[at(leader)])] = n_shared_[at(leader)];
    width_.assign(at(n_slices), 0);
    slice_of_.resize(at(n_));
    for (std::int32_t i = 0; i < n_; ++i) {
      std::int32_t const first = queue_place_[at(i)] >= 0 ? queue_[at(queue_place_[at(i)] / c * c)] : root(i);
      std::int32_t const slice = slice_led_by_[at(first)];
      slice_of_[at(i)] = slice;
      width_[at(slice)] = std::max(width_[at(slice)], length(i));
    }
    std::int64_t grouped = 0, in_order = 0;  // indices and twice the values: a quarter of the bytes
    for (std::int32_t slice = 0; slice < n_slices; ++slice)
      grouped += 3 * c * width_[at(slice)] - (c - 1) * std::int64_t{slice_shared_[at(slice)]};
    for (std::int32_t first = 0; first < n_; first += c) {
      std::int64_t width = 0;
      for (std::int32_t i = first; i < std::min(n_, first + c); ++i)
        width = std::max(width, length(i));
      in_order += 3 * c * width;
    }
    if (grouped > in_order)
      cut_in_order(n_slices);
    std::int64_t const first_slice = begin_ / c;
    filled_.assign(at(n_slices), 0);
    for (std::int32_t i = 0; i < n_; ++i) {
      std::int32_t const slice = slice_of_[at(i)];
      std::int64_t const place = (first_slice + slice) * c + filled_[at(slice)]++;
      groups_.rows[place] = order_[i];
      groups_.bases[place] = base_[at(i)];
    }
    for (std::int32_t slice = 0; slice < n_slices; ++slice) {
      groups_.value_ptr[first_slice + slice] = c * width_[at(slice)];
      groups_.dictionary_ptr[first_slice + slice] = slice_shared_[at(slice)];
      groups_.shared_at[first_slice + slice] = a_.row_ptr[row(leader_[at(slice)])];
    }
  }

  void cut_in_order(std::int32_t n_slices) {
    std::int32_t const c = search_.slice_size;
    slice_shared_.assign(at(n_slices), 0);
    width_.assign(at(n_slices), 0);
    for (std::int32_t i = 0; i < n_; ++i) {
      slice_of_[at(i)] = i / c;
      base_[at(i)] = first_column(i);
      width_[at(i / c)] = std::max(width_[at(i / c)], length(i));
    }
  }

  CsrView const& a_;
  CodSellSearch const& search_;
  CodSellGroups const& groups_;
  std::int32_t const* order_ = nullptr;
  std::int64_t begin_ = 0;
  std::int32_t n_ = 0;
  // By row: the row that its group was merged into, its base, and what the group that it leads shares.
  std::vector<std::int32_t> parent_, base_, n_shared_, members_, start_, queue_place_, slice_led_by_, slice_of_;
  std::vector<char> partnered_, taken_, first_of_slice_;
  std::vector<std::int32_t> list_, left_, queue_;
  // By slice.
  std::vector<std::int32_t> leader_, slice_shared_, filled_;
  std::vector<std::int64_t> width_;
};

void exclusive_sum(std::int64_t* p, std::int64_t n) {
  std::int64_t sum = 0;
  for (std::int64_t i = 0; i <= n; ++i) {
    std::int64_t const value = i < n ? p[i] : 0;
    p[i] = sum;
    sum += value;
  }
}

class CpuCodSellConversion final : public CodSellConversion {
public:
  void group(Context&, CsrView const& a, std::int32_t const* order, CodSellSearch const& search,
             CodSellGroups const& groups) const override {
    std::int64_t const chunks = (a.n_rows + search.chunk_rows - 1) / search.chunk_rows;
    if (chunks == 1) {  // large when sequential: what runs out of memory there must not end the program
      Chunk(a, search, groups).run(order, 0, a.n_rows);
    } else {
#pragma omp parallel
      {
        Chunk chunk(a, search, groups);
#pragma omp for schedule(dynamic)
        for (std::int64_t i = 0; i < chunks; ++i)
          chunk.run(order, i * search.chunk_rows, std::min(a.n_rows, (i + 1) * search.chunk_rows));
      }
    }
    std::int64_t const n_slices = (a.n_rows + search.slice_size - 1) / search.slice_size;
    exclusive_sum(groups.value_ptr, n_slices);
    exclusive_sum(groups.dictionary_ptr, n_slices);
  }

  void fill(Context&, CsrView const& a, CodSellSearch const& search, CodSellGroups const& groups, std::int32_t* columns,
            std::int32_t* dictionary, double* values) const override {
    std::int64_t const c = search.slice_size, n_slices = (a.n_rows + c - 1) / c;
#pragma omp parallel for schedule(static)
    for (std::int64_t slice = 0; slice < n_slices; ++slice) {
      std::int64_t const first_value = groups.value_ptr[slice], end_value = groups.value_ptr[slice + 1];
      std::int64_t const first_shared = groups.dictionary_ptr[slice], n_shared = groups.dictionary_ptr[slice + 1] - first_shared;
      if (first_value == end_value)
        continue;
      std::int32_t const* const shared = groups.shared + groups.shared_at[slice];
      std::copy(shared, shared + n_shared, dictionary + first_shared);
      std::int64_t const width = (end_value - first_value) / c;
      std::int32_t* const slice_columns = columns + first_value - c * first_shared;
      for (std::int64_t lane = 0; lane < c; ++lane) {
        std::int64_t const place = slice * c + lane;
        std::int32_t const base = place < a.n_rows ? groups.bases[place] : -1;
        double* const v = values + first_value + lane;
        std::int32_t* const k = slice_columns + lane;
        k[0] = base;
        std::int64_t other = 0;  // terms outside the pattern
        if (base < 0) {
          for (std::int64_t j = 0; j <= n_shared; ++j)
            v[j * c] = 0;
        } else {
          std::int64_t const row = groups.rows[place];
          std::int64_t next = 0;
          for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e) {
            std::int32_t const column = a.columns[e];
            if (column == base)
              v[0] = a.values[e];
            else if (next < n_shared && column - base == shared[next])
              v[++next * c] = a.values[e];
            else {
              ++other;
              v[(n_shared + other) * c] = a.values[e];
              k[other * c] = column;
            }
          }
        }
        for (++other; other < width - n_shared; ++other) {
          v[(n_shared + other) * c] = 0;
          k[other * c] = -1;
        }
      }
    }
  }
};

}  // namespace

CodSellConversion const& CodSellConversion::cpu() {
  static CpuCodSellConversion const conversion;
  return conversion;
}

}  // namespace poisson
