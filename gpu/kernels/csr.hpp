#pragma once

#include "gpu/core/csr_matrix.hpp"
#include "gpu/kernels/product.hpp"
#include "gpu/kernels/smoothing_step.hpp"

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
  double const* low_values = nullptr;  ///< see stored_values
  /// Entries of the longest row, or more: long rows take a kernel of their own on a GPU.
  std::int64_t longest_row = INT64_MAX;
  /// Threads that share a row on a GPU, a power of two from 1 to 32, or 0: as many as suit the matrix and the device. The host
  /// gives every row to one thread. A row's terms are added by every thread in ascending order and the threads' sums in a fixed
  /// tree, so results depend on this number, but on nothing else of the launch.
  int threads_per_row = 0;
  float const* single_values = nullptr;  ///< see stored_values
};

/// The matrix as it lies in host memory.
[[nodiscard]] inline CsrView view_of(CsrMatrix const& a) {
  return {a.n_rows,
          a.n_columns,
          a.nnz(),
          a.row_ptr.data(),
          a.columns.data(),
          a.values.data(),
          a.low_values.empty() ? nullptr : a.low_values.data()};
}

class CsrKernels : public ProductKernels<CsrView>, public SmoothingKernels<CsrView> {
public:
  using View = CsrView;
  /// d_i = a_ii of the matrix with these values in place of its own, 0 where it is not stored.
  virtual void diagonal(Context& context, CsrView const& a, double const* values, double* d) const = 0;
  virtual void diagonal(Context& context, CsrView const& a, float const* values, float* d) const = 0;

  static CsrKernels const& cpu();
  static CsrKernels const& cuda();
};

}  // namespace poisson
