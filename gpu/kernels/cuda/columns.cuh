#pragma once

#include "gpu/kernels/columns.hpp"
#include "gpu/kernels/cuda/krylov.cuh"

#include <cstddef>
#include <span>
#include <type_traits>

// Columns as arguments of kernels. There are kernels for 4 columns and for 8. For what is not asked for the first column stands in,
// which is in a cache, and is not written. Columns that are stopped are read, and not written either.

namespace poisson::cuda {

/// Calls call with the number of columns that there is a kernel for.
template <class Call>
void with_columns(std::size_t count, Call const& call) {
  if (count <= 4)
    call(std::integral_constant<int, 4>{});
  else
    call(std::integral_constant<int, 8>{});
}

template <class V, int columns>
struct ColumnPointers {
  V const* of[columns];
};

template <int columns>
struct StopFlags {
  std::int32_t const* of[columns];
  int count;
#ifdef __CUDACC__
  /// A bit for every column that is asked for and not stopped.
  [[nodiscard]] __device__ __forceinline__ unsigned running() const {
    unsigned result = 0;
#pragma unroll
    for (int c = 0; c < columns; ++c)
      if (c < count && *of[c] == 0)
        result |= 1U << c;
    return result;
  }
#endif
};

/// What is done with the rows of every column: a SmoothingRow or ResidualRow. Columns have the same diagonal.
template <class Row, int columns>
struct ColumnRows {
  Row of[columns];
};

template <int columns>
struct DotOutputs {
  double* y[columns];
  double* dot[columns];
#ifdef __CUDACC__
  /// The end of a kernel in blocks of `threads`: the dots of the columns that are running, from the sums of every thread.
  template <int threads = pass_threads>
  __device__ __forceinline__ void finish(unsigned running, double (&sums)[columns], double* partial, unsigned* counter) const {
    if (grid_sum<threads>(sums, partial, counter))
#pragma unroll
      for (int c = 0; c < columns; ++c)
        if (running >> c & 1U)
          *dot[c] = sums[c];
  }
#endif
};

template <int columns, class V, class Column>
ColumnPointers<V, columns> x_of(std::span<Column const> given) {
  ColumnPointers<V, columns> x;
  for (std::size_t c = 0; c < columns; ++c)
    x.of[c] = given[c < given.size() ? c : 0].x;
  return x;
}
template <int columns, class Column>
StopFlags<columns> stops_of(std::span<Column const> given) {
  StopFlags<columns> stop;
  stop.count = static_cast<int>(given.size());
  for (std::size_t c = 0; c < columns; ++c)
    stop.of[c] = given[c < given.size() ? c : 0].stop;
  return stop;
}
template <int columns>
DotOutputs<columns> outputs_of(std::span<ProductColumn<double> const> given) {
  DotOutputs<columns> to{};
  for (std::size_t c = 0; c < given.size(); ++c) {
    to.y[c] = given[c].y;
    to.dot[c] = given[c].dot;
  }
  return to;
}

template <class V>
SmoothingRow<V> row_of(SmoothingColumn<V> const& column) {
  return {column.step};
}
template <class V>
ResidualRow<V> row_of(ResidualColumn<V> const& column) {
  return {column.b, column.r};
}
template <int columns, class Column>
auto rows_of(std::span<Column const> given) {
  ColumnRows<decltype(row_of(given[0])), columns> rows{};
  for (std::size_t c = 0; c < columns; ++c)
    rows.of[c] = row_of(given[c < given.size() ? c : 0]);
  return rows;
}

/// A column by the kernels for one.
template <class Kernels, class View, class V>
void take_alone(Kernels const& kernels, Context& context, View const& a, SmoothingColumn<V> const& column) {
  kernels.smooth(context, a, column.step, column.x, column.stop);
}
template <class Kernels, class View, class V>
void take_alone(Kernels const& kernels, Context& context, View const& a, ResidualColumn<V> const& column) {
  kernels.subtract_product(context, a, column.b, column.x, column.r, column.stop);
}

}  // namespace poisson::cuda
