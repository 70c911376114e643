#pragma once

#include "gpu/kernels/product.hpp"
#include "gpu/kernels/smoothing_step.hpp"

#include <cstdint>

namespace poisson {

/// A matrix in CoD-SELL (Murakami 2024, section 3.2) in a backend's memory: slices of C rows with one dictionary of column
/// distances each. Place p of the storage is lane p % C of slice p / C, and holds row rows[p].
///
/// Slice s has R = (value_ptr[s + 1] - value_ptr[s]) / C columns of values, each C wide, and D - 1 = dictionary_ptr[s + 1] -
/// dictionary_ptr[s] distances (none where R = 0). Column 0 of the values are the base terms; columns 1 ... D - 1 belong to the
/// distances, which ascend: the term's column is the row's base plus the distance; columns D ... R - 1 are the other terms of the
/// row by ascending column. Its columns start at value_ptr[s] - C dictionary_ptr[s]: C (R - D + 1) of them, C wide: first the base
/// of each row, then the other terms' columns. A column of -1 stands where there is no term, its value is 0: where a row's other
/// terms have ended, and as the base of empty rows and of lanes beyond the last row. Such rows stand only in slices of D = 1, where
/// bases are the rows' first columns; but lanes beyond the last row stand in any, and have values of 0 throughout.
struct CodSellView {
  std::int64_t n_rows = 0;
  std::int64_t n_columns = 0;
  std::int64_t n_slices = 0;
  std::int32_t slice_size = 32;                  ///< C
  std::int64_t const* value_ptr = nullptr;       ///< n_slices + 1
  std::int64_t const* dictionary_ptr = nullptr;  ///< n_slices + 1
  std::int32_t const* rows = nullptr;            ///< n_rows
  std::int32_t const* columns = nullptr;         ///< value_ptr[n_slices] - C dictionary_ptr[n_slices]
  std::int32_t const* dictionary = nullptr;      ///< dictionary_ptr[n_slices]
  double const* values = nullptr;                ///< value_ptr[n_slices]
  double const* low_values = nullptr;            ///< see stored_values
  float const* single_values = nullptr;          ///< the same
  std::int64_t longest_row = INT64_MAX;          ///< as in CsrView
  std::int64_t n_values = 0;                     ///< value_ptr[n_slices]
};

/// Terms of a row are added in the order of storage, so that results depend neither on the number of threads nor on the launch. An
/// entry of x affects only rows that store an entry in its column, also if it is infinite or NaN.
class CodSellKernels : public ProductKernels<CodSellView>, public SmoothingKernels<CodSellView> {
public:
  using View = CodSellView;
  /// d_i = a_ii of the matrix with these values in place of its own, 0 where it is not stored.
  virtual void diagonal(Context& context, CodSellView const& a, double const* values, double* d) const = 0;
  virtual void diagonal(Context& context, CodSellView const& a, float const* values, float* d) const = 0;

  static CodSellKernels const& cpu();
  static CodSellKernels const& cuda();
};

}  // namespace poisson
