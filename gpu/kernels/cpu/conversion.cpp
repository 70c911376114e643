#include "gpu/kernels/conversion.hpp"

#include "gpu/core/coo_matrix.hpp"
#include "gpu/kernels/cpu/cpu.hpp"
#include "gpu/kernels/symmetry.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>
#include <parallel/algorithm>

namespace poisson {

namespace {

using Flags = std::vector<std::atomic<char>>;

/// Racing threads store the same value; looking first keeps the cache lines shared.
void set(std::atomic<char>& flag) {
  if (flag.load(std::memory_order_relaxed) == 0)
    flag.store(1, std::memory_order_relaxed);
}

bool is_set(std::atomic<char> const& flag) {
  return flag.load(std::memory_order_relaxed) != 0;
}

std::int64_t length_of(CsrView const& a, std::int64_t row) {
  return a.row_ptr[row + 1] - a.row_ptr[row];
}

class CpuConversion final : public ConversionKernels {
public:
  CsrAnalysis analyse(Context&, CsrView const& a, bool symmetry) const override {
    Flags seen(static_cast<std::size_t>(a.n_rows + a.n_columns));
    std::int64_t longest = 0, not_finite = a.n_rows;
#pragma omp parallel for schedule(static) reduction(min : not_finite) reduction(max : longest)
    for (std::int64_t row = 0; row < a.n_rows; ++row) {
      std::int64_t const begin = a.row_ptr[row], end = a.row_ptr[row + 1];
      for (std::int64_t e = begin; e < end; ++e)
        set(seen[static_cast<std::size_t>(a.columns[e] - row + a.n_rows)]);
      // 0 * v is 0 for every finite v, and NaN otherwise: a sum without branches.
      double sum = 0;
#pragma omp simd reduction(+ : sum)
      for (std::int64_t e = begin; e < end; ++e)
        sum += 0 * a.values[e];
      if (sum != 0)
        not_finite = std::min(not_finite, row);
      longest = std::max(longest, end - begin);
    }
    CsrAnalysis result;
    result.n_diagonals = std::count_if(seen.begin(), seen.end(), is_set);
    result.longest_row = longest;
    result.row_not_finite = not_finite < a.n_rows ? not_finite : -1;
    if (symmetry && a.n_rows == a.n_columns) {
      result.asymmetry = find_symmetry(a).asymmetry;
      result.symmetric = result.asymmetry <= symmetry_tolerance;
    }
    return result;
  }

  std::int64_t longest_row(Context&, CsrView const& a) const override {
    std::int64_t longest = 0;
#pragma omp parallel for schedule(static) reduction(max : longest)
    for (std::int64_t row = 0; row < a.n_rows; ++row)
      longest = std::max(longest, length_of(a, row));
    return longest;
  }

  Array<std::int32_t> rows_by_length(Context& context, CsrView const& a, std::int64_t sigma) const override {
    std::int64_t const n = a.n_rows, window = sigma == 0 ? n : std::min(sigma, n);
    Array<std::int32_t> rows(context, n);
    std::int32_t* const first = rows.data();
    std::iota(first, first + n, 0);
    auto const longer = [&](std::int32_t x, std::int32_t y) { return length_of(a, x) > length_of(a, y); };
    if (window == n) {
      __gnu_parallel::stable_sort(first, first + n, longer);
      return rows;
    }
#pragma omp parallel for schedule(dynamic, 16)
    for (std::int64_t begin = 0; begin < n; begin += window)
      std::stable_sort(first + begin, first + std::min(n, begin + window), longer);
    return rows;
  }

  Array<std::int64_t> slice_ptr(Context& context, CsrView const& a, std::int32_t const* rows,
                                std::int64_t slice_size) const override {
    std::int64_t const slices = (a.n_rows + slice_size - 1) / slice_size;
    Array<std::int64_t> result(context, slices + 1);
    std::int64_t* const ptr = result.data();
    ptr[0] = 0;
#pragma omp parallel for schedule(static)
    for (std::int64_t slice = 0; slice < slices; ++slice) {
      std::int64_t width = 0;
      for (std::int64_t place = slice * slice_size; place < std::min(a.n_rows, (slice + 1) * slice_size); ++place)
        width = std::max(width, length_of(a, rows == nullptr ? place : rows[place]));
      ptr[slice + 1] = slice_size * width;
    }
    std::partial_sum(ptr, ptr + slices + 1, ptr);
    return result;
  }

  void fill_slices(Context&, CsrView const& a, SliceLayout const& layout, std::int32_t* columns, double* values) const override {
    std::int64_t const c = layout.slice_size, slices = (a.n_rows + c - 1) / c;
#pragma omp parallel for schedule(static)
    for (std::int64_t slice = 0; slice < slices; ++slice)
      for (std::int64_t lane = 0; lane < c; ++lane) {
        std::int64_t const place = slice * c + lane;
        std::int64_t to = layout.slice_ptr[slice] + lane;
        if (place < a.n_rows) {
          std::int64_t const row = layout.rows == nullptr ? place : layout.rows[place];
          for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e, to += c) {
            columns[to] = a.columns[e];
            values[to] = a.values[e];
          }
        }
        for (; to < layout.slice_ptr[slice + 1]; to += c) {
          columns[to] = -1;
          values[to] = 0;
        }
      }
  }

  std::vector<std::int32_t> diagonals(Context&, CsrView const& a, bool half) const override {
    // Flag d stands for column - row = d - n_rows; with `half` those above 0 are left out, and what remains is read backwards.
    Flags seen(static_cast<std::size_t>(a.n_rows + (half ? 1 : a.n_columns)));
    if (half)
      seen.back() = 1;
#pragma omp parallel for schedule(static)
    for (std::int64_t row = 0; row < a.n_rows; ++row)
      for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1] && (!half || a.columns[e] <= row); ++e)
        set(seen[static_cast<std::size_t>(a.columns[e] - row + a.n_rows)]);
    std::vector<std::int32_t> offsets;
    for (std::size_t d = 0; d < seen.size(); ++d)
      if (is_set(seen[d]))
        offsets.push_back(static_cast<std::int32_t>(static_cast<std::int64_t>(d) - a.n_rows));
    if (half) {
      std::reverse(offsets.begin(), offsets.end());
      for (std::int32_t& offset : offsets)
        offset = -offset;
    }
    return offsets;
  }

  /// Block by block, so that every thread touches its pages first.
  std::int64_t fill_diagonals(Context&, CsrView const& a, std::span<std::int32_t const> offsets, std::int32_t const*, bool half,
                              double* values) const override {
    std::int64_t const n = a.n_rows, count = static_cast<std::int64_t>(offsets.size());
    std::int64_t taken = 0;
#pragma omp parallel for schedule(static) reduction(+ : taken)
    for (std::int64_t block = 0; block < cpu::n_blocks(n); ++block) {
      std::int64_t const begin = block * cpu::block_rows, end = std::min(n, begin + cpu::block_rows);
      for (std::int64_t k = 0; k < count; ++k)
        std::fill(values + k * n + begin, values + k * n + end, -0.0);
      for (std::int64_t row = begin; row < end; ++row) {
        // Columns ascend, and so do the diagonals' column - row, which is -offset from the last to the first with `half`: one walk.
        std::int64_t k = half ? count - 1 : 0;
        for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1] && (!half || a.columns[e] <= row); ++e) {
          std::int64_t const wanted = half ? row - a.columns[e] : a.columns[e] - row;
          while (offsets[static_cast<std::size_t>(k)] != wanted)
            k += half ? -1 : 1;
          values[k * n + row] = a.values[e] == 0 ? 0.0 : a.values[e];
          ++taken;
        }
      }
    }
    return taken;
  }

  void copy_diagonal(Context&, std::int64_t n, double const* values, double* d) const override {
    transform(n, values, d, [](double v) { return v == 0 ? 0.0 : v; });
  }
  void copy_diagonal(Context&, std::int64_t n, float const* values, float* d) const override {
    transform(n, values, d, [](float v) { return v == 0 ? 0.0F : v; });
  }
  void round(Context&, std::int64_t n, double const* x, float* y) const override {
    transform(n, x, y, rounded_entry);
  }
  void widen(Context&, std::int64_t n, float const* x, double* y) const override {
    transform(n, x, y, [](float v) { return static_cast<double>(v); });
  }

  void csr_from_slices(Context& context, std::int64_t n_rows, SliceLayout const& layout, std::int32_t const* columns,
                       double const* values, std::function<CsrTarget(std::int64_t)> const& target) const override {
    std::int64_t const c = layout.slice_size;
    Array<std::int64_t> row_ptr(context, n_rows + 1);
    auto const row_at = [&](std::int64_t place) { return layout.rows == nullptr ? place : layout.rows[place]; };
    row_ptr.data()[0] = 0;
#pragma omp parallel for schedule(static)
    for (std::int64_t place = 0; place < n_rows; ++place) {
      std::int64_t length = 0;
      for (std::int64_t e = layout.slice_ptr[place / c] + place % c; e < layout.slice_ptr[place / c + 1] && columns[e] >= 0; e += c)
        ++length;
      row_ptr.data()[row_at(place) + 1] = length;
    }
    std::partial_sum(row_ptr.data(), row_ptr.data() + n_rows + 1, row_ptr.data());
    CsrTarget const to = target(row_ptr.data()[n_rows]);
    std::copy_n(row_ptr.data(), n_rows + 1, to.row_ptr);
#pragma omp parallel for schedule(static)
    for (std::int64_t place = 0; place < n_rows; ++place) {
      std::int64_t from = layout.slice_ptr[place / c] + place % c;
      for (std::int64_t e = to.row_ptr[row_at(place)]; e < to.row_ptr[row_at(place) + 1]; ++e, from += c) {
        to.columns[e] = columns[from];
        to.values[e] = values[from];
      }
    }
  }
  void csr_from_coo(Context&, CooMatrix const& coo, std::function<CsrTarget(std::int64_t)> const& target) const override {
    std::int64_t const n = coo.n_rows, count = coo.nnz();
    std::int32_t const* const rows = coo.rows.data();
    std::int32_t const* const columns = coo.columns.data();
    // Entries by row, in whatever order the threads find them, then by column and place in the list within a row.
    std::vector<std::int64_t> ends(static_cast<std::size_t>(n) + 1, 0);
#pragma omp parallel for schedule(static)
    for (std::int64_t i = 0; i < count; ++i)
#pragma omp atomic
      ++ends[static_cast<std::size_t>(rows[i]) + 1];
    std::partial_sum(ends.begin(), ends.end(), ends.begin());
    HostVector<std::int64_t> order(static_cast<std::size_t>(count));
    // ends[row] moves from the row's first place to the place behind its last.
#pragma omp parallel for schedule(static)
    for (std::int64_t i = 0; i < count; ++i) {
      std::int64_t place = 0;
      std::int64_t& next = ends[static_cast<std::size_t>(rows[i])];
#pragma omp atomic capture
      place = next++;
      order[static_cast<std::size_t>(place)] = i;
    }
    std::int64_t* const first = order.data();
    auto const begin_of = [&](std::int64_t row) { return row == 0 ? first : first + ends[static_cast<std::size_t>(row) - 1]; };
    auto const end_of = [&](std::int64_t row) { return first + ends[static_cast<std::size_t>(row)]; };
    HostVector<std::int64_t> row_ptr(static_cast<std::size_t>(n) + 1);
    row_ptr[0] = 0;
#pragma omp parallel for schedule(dynamic, 1024)
    for (std::int64_t row = 0; row < n; ++row) {
      std::sort(begin_of(row), end_of(row),
                [&](std::int64_t x, std::int64_t y) { return columns[x] != columns[y] ? columns[x] < columns[y] : x < y; });
      std::int64_t distinct = 0;
      for (std::int64_t const* i = begin_of(row); i < end_of(row); ++i)
        distinct += i == begin_of(row) || columns[i[0]] != columns[i[-1]];
      row_ptr[static_cast<std::size_t>(row) + 1] = distinct;
    }
    std::partial_sum(row_ptr.begin(), row_ptr.end(), row_ptr.begin());
    CsrTarget const to = target(row_ptr.back());
    to.row_ptr[n] = row_ptr.back();
#pragma omp parallel for schedule(dynamic, 1024)
    for (std::int64_t row = 0; row < n; ++row) {
      std::int64_t e = to.row_ptr[row] = row_ptr[static_cast<std::size_t>(row)];
      for (std::int64_t const* i = begin_of(row); i < end_of(row); ++e) {
        std::int32_t const column = columns[*i];
        double sum = coo.values[static_cast<std::size_t>(*i)];
        for (++i; i < end_of(row) && columns[*i] == column; ++i)
          sum += coo.values[static_cast<std::size_t>(*i)];
        to.columns[e] = column;
        to.values[e] = sum;
      }
    }
  }

private:
  template <class X, class Y, class Change>
  static void transform(std::int64_t n, X const* x, Y* y, Change const& change) {
    cpu::for_blocks(n, n, [&](std::int64_t begin, std::int64_t end, std::int64_t) {
      for (std::int64_t i = begin; i < end; ++i)
        y[i] = change(x[i]);
    });
  }
};

}  // namespace

ConversionKernels const& ConversionKernels::cpu() {
  static CpuConversion const kernels;
  return kernels;
}

}  // namespace poisson
