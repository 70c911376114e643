#pragma once

#include "gpu/kernels/cpu/cpu.hpp"
#include "gpu/kernels/product.hpp"
#include "gpu/kernels/smoothing_step.hpp"

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace poisson::cpu {

/// Calls launch with C as an integral constant where it is one of `sizes`, else with 0.
template <int... sizes, class Launch>
void with_slice_size(int c, std::integer_sequence<int, sizes...>, Launch const& launch) {
  auto const launch_if = [&](auto size) {
    if (size() != c)
      return false;
    launch(size);
    return true;
  };
  if (!(... || launch_if(std::integral_constant<int, sizes>{})))
    launch(std::integral_constant<int, 0>{});
}

/// The products of a format in slices of C rows, which `Slices` knows by static members:
///   largest_slice                                          the largest C
///   FixedSizes                                             values of C that get loops of their own, as an integer_sequence
///   row_at(a, place)                                       the row at a place of the storage
///   n_values(a)                                            stored values, padding included
///   slice_product<fixed, T>(a, values, slice, x, sums)     sums_lane (see load_sum) = the product of the slice's rows with x;
///   `fixed`
///                                                          is C known to the compiler, or 0
template <class Kernels, class Slices>
class ProductsBySlices : public SmoothingByTemplates<ProductsByTemplates<Kernels, ProductsBySlices<Kernels, Slices>>,
                                                     ProductsBySlices<Kernels, Slices>> {
  using View = typename Kernels::View;
  static_assert(block_rows % Slices::largest_slice == 0, "blocks hold whole slices");

public:
  template <class T, class Values>
  static void multiply(Context&, View const& a, Values values, T alpha, ConstPointer<T> x, T beta, Pointer<T> y) {
    with_slice_size(a.slice_size, typename Slices::FixedSizes{}, [&](auto c) {
      for_blocks(a.n_rows, Slices::n_values(a) * work_of<T>, [&](std::int64_t begin, std::int64_t end, std::int64_t) {
        for_rows<c(), T>(a, values, x, begin, end, [&](std::int64_t row, T sum) {
          store(y, row, beta == 0 ? alpha * sum : alpha * sum + beta * load(y, row));
        });
      });
    });
  }

  template <class T, class Values>
  static void multiply_dot(Context& context, View const& a, Values values, ConstPointer<T> x, Pointer<T> y, T* dot,
                           std::int32_t const* stop) {
    if (*stop != 0)
      return;
    with_slice_size(a.slice_size, typename Slices::FixedSizes{}, [&](auto c) {
      *dot = sum_blocks_to<T>(context, a.n_rows, Slices::n_values(a) * work_of<T>, [&](std::int64_t begin, std::int64_t end) {
        RowDot<T> total{};
        for_rows<c(), T>(a, values, x, begin, end, [&](std::int64_t row, T sum) {
          store(y, row, sum);
          total.add(load(x, row), sum);
        });
        return total.value();
      });
    });
  }

  template <class V, class Finish>
  static void finish_rows(Context&, View const& a, V const* x, Finish const& finish, std::int32_t const* stop) {
    if (*stop != 0)
      return;
    with_stored_values<V>(
        a,
        [&](auto values) {
          with_slice_size(a.slice_size, typename Slices::FixedSizes{}, [&](auto c) {
            for_blocks(a.n_rows, Slices::n_values(a), [&](std::int64_t begin, std::int64_t end, std::int64_t) {
              for_rows<c(), V>(a, values, x, begin, end, [&](std::int64_t row, V sum) { finish(row, sum, x[row]); });
            });
          });
        },
        ValuePairs());
  }

private:
  /// Calls row(i, (A x)_i) for the rows at places begin ... end - 1; begin is a multiple of C.
  template <int fixed, class T, class Values, class Row>
  static void for_rows(View const& a, Values values, ConstPointer<T> x, std::int64_t begin, std::int64_t end, Row const& row) {
    int const c = fixed > 0 ? fixed : a.slice_size;
    SumBuffer<T, fixed != 0 ? fixed : Slices::largest_slice> buffer;
    SumPointer<T> const sums = buffer.data();
    for (std::int64_t first = begin; first < end; first += c) {
      Slices::template slice_product<fixed, T>(a, values, first / c, x, sums);
      std::int64_t const lanes = std::min<std::int64_t>(c, end - first);
      for (std::int64_t lane = 0; lane < lanes; ++lane)
        row(Slices::row_at(a, first + lane), finished_sum<T>(sums, lane));
    }
  }
};

}  // namespace poisson::cpu
