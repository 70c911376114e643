#include "gpu/kernels/cod_sell.hpp"

#include "gpu/kernels/cpu/slices.hpp"

namespace poisson {

namespace {

struct CodSellSlices {
  static constexpr int largest_slice = 256;
  using FixedSizes = std::integer_sequence<int, 2, 4, 8, 16, 32>;
  static std::int64_t row_at(CodSellView const& a, std::int64_t place) { return a.rows[place]; }
  static std::int64_t n_values(CodSellView const& a) { return a.n_values; }

  /// sums_lane (see cpu::load_sum) = the product of the slice's rows with x. `fixed` is C known to the compiler, which then keeps
  /// the sums in registers, or 0. Bytes per row of R entries with a pattern of D: 8 R of values, 4 (R - D + 1) of columns, and 8 of
  /// x where rows share their neighbours (16 in DoubleDouble); the dictionary stays in the first-level cache.
  template <int fixed, class T, class Values>
  static void slice_product(CodSellView const& a, Values all_values, std::int64_t slice, cpu::Restrict<ConstPointer<T>> x,
                            cpu::SumPointer<T> sums) {
    int const c = fixed > 0 ? fixed : a.slice_size;
    std::int64_t const first = a.value_ptr[slice], n_values = (a.value_ptr[slice + 1] - first) / c;
    std::int64_t const first_shared = a.dictionary_ptr[slice], n_shared = a.dictionary_ptr[slice + 1] - first_shared;
    std::int32_t const* __restrict const dictionary = a.dictionary + first_shared;
    std::int32_t const* __restrict columns = a.columns + (first - c * first_shared);
    std::int32_t const* __restrict const bases = columns;
    cpu::Restrict<Values> values = all_values + first;
    cpu::SumBuffer<T, fixed != 0 ? fixed : largest_slice> buffer;
    cpu::SumPointer<T> const sum = buffer.data();
    cpu::fill_zero(sum, c);
    auto const prefetch_ahead = [&] {
      for (int lane = 0; lane < c; lane += 8)
        cpu::prefetch_l1(values + (lane + cpu::entries_ahead));
    };
    // A lane without a term loads x_0 and drops it, whatever it is: a select vectorises, a branch does not.
    auto const add_columns = [&] {
      prefetch_ahead();
#pragma omp simd
      for (int lane = 0; lane < c; ++lane) {
        std::int32_t const column = columns[lane];
        T const loaded = load(x, column < 0 ? 0 : column);
        cpu::add_product(sum, lane, load(values, lane), cpu::select(column >= 0, loaded));
      }
      values = values + c;
      columns += c;
    };
    if (n_values > 0) {
      std::uint32_t const base = static_cast<std::uint32_t>(bases[0]);
      std::uint32_t out_of_step = base >> 31;  // no base
#pragma omp simd reduction(| : out_of_step)
      for (int lane = 0; lane < c; ++lane)
        out_of_step |= static_cast<std::uint32_t>(bases[lane]) ^ (base + static_cast<std::uint32_t>(lane));
      if (out_of_step == 0) {
        auto const add_shifted = [&](cpu::Restrict<ConstPointer<T>> shifted) {
          prefetch_ahead();
#pragma omp simd
          for (int lane = 0; lane < c; ++lane)
            cpu::add_product(sum, lane, load(values, lane), load(shifted, lane));
          values = values + c;
        };
        cpu::Restrict<ConstPointer<T>> const from_base = x + base;
        add_shifted(from_base);
        columns += c;
        for (std::int64_t k = 0; k < n_shared; ++k)
          add_shifted(from_base + dictionary[k]);
      } else {
        add_columns();
        // Only lanes beyond the last row have no base here; what they add up is not used.
        for (std::int64_t k = 0; k < n_shared; ++k, values = values + c) {
          cpu::Restrict<ConstPointer<T>> const shifted = x + dictionary[k];
          prefetch_ahead();
#pragma omp simd
          for (int lane = 0; lane < c; ++lane)
            cpu::add_product(sum, lane, load(values, lane), load(shifted, bases[lane] < 0 ? 0 : bases[lane]));
        }
      }
      for (std::int64_t k = n_shared + 1; k < n_values; ++k)
        add_columns();
    }
    for (int lane = 0; lane < c; ++lane)
      cpu::store_sum(sums, lane, cpu::load_sum(sum, lane));
  }
};

class CpuCodSell final : public cpu::ProductsBySlices<CodSellKernels, CodSellSlices> {
public:
  void diagonal(Context&, CodSellView const& a, double const* values, double* d) const override { find_diagonal(a, values, d); }
  void diagonal(Context&, CodSellView const& a, float const* values, float* d) const override { find_diagonal(a, values, d); }

private:
  template <class V>
  static void find_diagonal(CodSellView const& a, V const* values, V* d) {
    std::int64_t const c = a.slice_size;
    cpu::for_blocks(a.n_rows, a.n_values, [&](std::int64_t begin, std::int64_t end, std::int64_t) {
      for (std::int64_t place = begin; place < end; ++place) {
        std::int64_t const slice = place / c, lane = place % c, row = a.rows[place];
        std::int64_t const first = a.value_ptr[slice], width = (a.value_ptr[slice + 1] - first) / c;
        std::int64_t const first_shared = a.dictionary_ptr[slice], n_shared = a.dictionary_ptr[slice + 1] - first_shared;
        std::int32_t const* const columns = a.columns + (first - c * first_shared) + lane;
        V const* const of_row = values + first + lane;
        V value = 0;
        if (width > 0 && columns[0] == row)
          value = of_row[0];
        for (std::int64_t k = 0; k < n_shared; ++k)
          if (columns[0] + a.dictionary[first_shared + k] == row)
            value = of_row[(k + 1) * c];
        for (std::int64_t k = 1; k < width - n_shared; ++k)
          if (columns[k * c] == row)
            value = of_row[(n_shared + k) * c];
        d[row] = value;
      }
    });
  }
};

}  // namespace

CodSellKernels const& CodSellKernels::cpu() {
  static CpuCodSell const kernels;
  return kernels;
}

}  // namespace poisson
