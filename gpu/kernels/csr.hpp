#pragma once

#include "gpu/core/context.hpp"
#include "gpu/core/csr_matrix.hpp"

#include <cstdint>

namespace poisson {

/// A matrix in compressed sparse rows in a backend's memory.
struct CsrView {
  std::int64_t n_rows = 0;
  std::int64_t n_columns = 0;
  std::int64_t nnz = 0;
  std::int64_t const* row_ptr = nullptr;
  std::int32_t const* columns = nullptr;
  double const* values = nullptr;
  /// Entries of the longest row, or more: long rows take a kernel of their own on a GPU.
  std::int64_t longest_row = INT64_MAX;
  /// Threads that share a row on a GPU, a power of two from 1 to 32; the host gives every row to one thread. A row's terms are
  /// added by every thread in ascending order and the threads' sums in a fixed tree, so results depend on this number, but on
  /// nothing else of the launch.
  int threads_per_row = 1;
};

/// The matrix as it lies in host memory.
[[nodiscard]] inline CsrView view_of(CsrMatrix const& a) {
  return {a.n_rows, a.n_columns, a.nnz(), a.row_ptr.data(), a.columns.data(), a.values.data()};
}

class CsrKernels {
public:
  virtual ~CsrKernels() = default;
  /// y = alpha A x + beta y; y is not read when beta = 0.
  virtual void product(Context& context, CsrView const& a, double alpha, double const* x, double beta, double* y) const = 0;
  /// y = A x and *dot = x . y, unless *stop is set (see Operator::product_dot).
  virtual void product_dot(Context& context, CsrView const& a, double const* x, double* y, double* dot,
                           std::int32_t const* stop) const = 0;
  /// d_i = a_ii, 0 where it is not stored.
  virtual void diagonal(Context& context, CsrView const& a, double* d) const = 0;

  static CsrKernels const& host();
  static CsrKernels const& cuda();
};

}  // namespace poisson
