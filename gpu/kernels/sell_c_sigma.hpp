#pragma once

#include "gpu/kernels/product.hpp"
#include "gpu/kernels/smoothing_step.hpp"

#include <cstdint>

namespace poisson {

/// A matrix in slices of `slice_size` rows in a backend's memory. Place p of the storage is lane p % C of slice p / C, and holds
/// row rows[p], or row p without `rows`. Entry j of that row is at slice_ptr[p / C] + j C + p % C; where the row has ended, the
/// column is -1 and the value 0.
struct SellView {
  std::int64_t n_rows = 0;
  std::int64_t n_slices = 0;
  std::int32_t slice_size = 32;             ///< C
  std::int64_t const* slice_ptr = nullptr;  ///< n_slices + 1 offsets into columns and values
  std::int32_t const* rows = nullptr;       ///< n_rows of them; null: rows are in place
  std::int32_t const* columns = nullptr;
  double const* values = nullptr;
  double const* low_values = nullptr;    ///< see stored_values
  float const* single_values = nullptr;  ///< the same
  std::int64_t longest_row = INT64_MAX;  ///< as in CsrView
};

/// The host adds the terms of a row by ascending column. A GPU may share a row among several threads, each of which does so with
/// its part; their number depends on the slice size, the number of rows and the device, and sums on nothing else of the launch. An
/// entry of x affects only rows that store an entry in its column, also if it is infinite or NaN.
class SellKernels : public ProductKernels<SellView>, public SmoothingKernels<SellView> {
public:
  using View = SellView;
  /// d_i = a_ii of the matrix with these values in place of its own, 0 where it is not stored.
  virtual void diagonal(Context& context, SellView const& a, double const* values, double* d) const = 0;
  virtual void diagonal(Context& context, SellView const& a, float const* values, float* d) const = 0;

  static SellKernels const& cpu();
  static SellKernels const& cuda();
};

}  // namespace poisson
