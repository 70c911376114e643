#include "gpu/kernels/sell_c_sigma.hpp"

#include "gpu/kernels/cpu/slices.hpp"

namespace poisson {

namespace {

/// Adds values[lane] * x[columns[lane]] to the sums of neighbouring lanes of a slice. Gathers are slow: where the columns follow
/// each other, which rows of a mesh's neighbouring nodes do, x is read without them.
template <int lanes, class T, class Values>
void add_lanes(std::int32_t const* __restrict columns, cpu::Restrict<Values> values, cpu::Restrict<ConstPointer<T>> x,
               cpu::Restrict<cpu::SumPointer<T>> sums) {
  cpu::prefetch_ahead(values, columns);
  std::uint32_t const first = static_cast<std::uint32_t>(columns[0]);
  std::uint32_t different = first >> 31;  // padding
#pragma omp simd reduction(| : different)
  for (int lane = 0; lane < lanes; ++lane)
    different |= static_cast<std::uint32_t>(columns[lane]) ^ (first + static_cast<std::uint32_t>(lane));
  if (different == 0) {
    cpu::Restrict<ConstPointer<T>> const from = x + first;
#pragma omp simd
    for (int lane = 0; lane < lanes; ++lane)
      cpu::add_product(sums, lane, load(values, lane), load(from, lane));
  } else {
    // A lane that has ended loads x_0 and drops it, whatever it is: a select vectorises, a branch does not.
#pragma omp simd
    for (int lane = 0; lane < lanes; ++lane) {
      std::int32_t const column = columns[lane];
      T const loaded = load(x, column < 0 ? 0 : column);
      cpu::add_product(sums, lane, load(values, lane), cpu::select(column >= 0, loaded));
    }
  }
}

struct SellSlices {
  static constexpr int largest_slice = 1024;
  using FixedSizes = std::integer_sequence<int, 4, 8, 16, 32>;
  static std::int64_t row_at(SellView const& a, std::int64_t place) { return a.rows == nullptr ? place : a.rows[place]; }
  static std::int64_t n_values(SellView const& a) { return a.slice_ptr[a.n_slices]; }

  /// sums_lane (see cpu::load_sum) = the product of the slice's rows with x. `fixed` is C known to the compiler, or 0. Bytes per
  /// stored entry: 12, and 8 of x per row where rows share their neighbours; 16 in DoubleDouble.
  template <int fixed, class T, class Values>
  static void slice_product(SellView const& a, Values values, std::int64_t slice, ConstPointer<T> x, cpu::SumPointer<T> sums) {
    int const c = fixed > 0 ? fixed : a.slice_size;
    cpu::fill_zero(sums, c);
    std::int64_t const end = a.slice_ptr[slice + 1];
    for (std::int64_t first = a.slice_ptr[slice]; first < end; first += c) {
      std::int32_t const* const columns = a.columns + first;
      Values const values_of = values + first;
      constexpr int together = fixed == 4 ? 4 : 8;
      int lane = 0;
      for (; lane + together <= c; lane += together)
        add_lanes<together, T, Values>(columns + lane, values_of + lane, x, sums + lane);
      for (; fixed == 0 && lane < c; ++lane)
        add_lanes<1, T, Values>(columns + lane, values_of + lane, x, sums + lane);
    }
  }
};

class CpuSell final : public cpu::ProductsBySlices<SellKernels, SellSlices> {
public:
  void diagonal(Context&, SellView const& a, double const* values, double* d) const override { find_diagonal(a, values, d); }
  void diagonal(Context&, SellView const& a, float const* values, float* d) const override { find_diagonal(a, values, d); }

private:
  template <class V>
  static void find_diagonal(SellView const& a, V const* values, V* d) {
    cpu::for_blocks(a.n_rows, a.slice_ptr[a.n_slices], [&](std::int64_t begin, std::int64_t end, std::int64_t) {
      for (std::int64_t place = begin; place < end; ++place) {
        std::int64_t const slice = place / a.slice_size, row = a.rows == nullptr ? place : a.rows[place];
        V value = 0;
        for (std::int64_t e = a.slice_ptr[slice] + place % a.slice_size; e < a.slice_ptr[slice + 1]; e += a.slice_size)
          if (a.columns[e] == row)
            value = values[e];
        d[row] = value;
      }
    });
  }
};

}  // namespace

SellKernels const& SellKernels::cpu() {
  static CpuSell const kernels;
  return kernels;
}

}  // namespace poisson
