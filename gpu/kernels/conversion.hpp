#pragma once

#include "gpu/core/array.hpp"
#include "gpu/core/host_device.hpp"
#include "gpu/kernels/csr.hpp"

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace poisson {

/// Properties of a matrix that formats and solvers need before it is converted.
struct CsrAnalysis {
  std::int64_t n_diagonals = 0;      ///< distinct column - row
  std::int64_t longest_row = 0;      ///< entries
  std::int64_t row_not_finite = -1;  ///< the first with a NaN or an infinity, or -1
  bool symmetric = false;            ///< square, and asymmetry <= symmetry_tolerance; false when not asked for
  double asymmetry = 0;              ///< of a square matrix, see kernels/symmetry.hpp; 0 when not asked for
};

/// Where the entries of a matrix go in SELL-C-sigma, cod_sell and the like; see SellView.
struct SliceLayout {
  std::int64_t slice_size = 32;             ///< C
  std::int32_t const* rows = nullptr;       ///< the row at every place; null: rows are in place
  std::int64_t const* slice_ptr = nullptr;  ///< offsets of slices into the entries, n_slices + 1 of them
};

/// v in single precision; +0.0 where it is not 0 but rounds to it.
[[nodiscard]] POISSON_HOST_DEVICE inline float rounded_entry(double v) {
  float const rounded = static_cast<float>(v);
  return rounded == 0 && v != 0 ? 0.0F : rounded;
}

struct CooMatrix;

/// Where a matrix in CSR is to be written.
struct CsrTarget {
  std::int64_t* row_ptr = nullptr;
  std::int32_t* columns = nullptr;
  double* values = nullptr;
};

/// The passes of which conversions from CSR consist. All pointers and arrays are in the context's memory; both backends give the
/// same bits. Scratch memory is freed before a call returns. Throws OutOfMemoryError when scratch or result do not fit.
class ConversionKernels {
public:
  virtual ~ConversionKernels() = default;
  /// Analyses the matrix. With `symmetry` it also checks symmetry, which takes as long as all the rest.
  virtual CsrAnalysis analyse(Context& context, CsrView const& a, bool symmetry) const = 0;

  /// Number of entries of the longest row, also part of analyse.
  virtual std::int64_t longest_row(Context& context, CsrView const& a) const = 0;

  /// The rows by descending length, stably, within windows of sigma rows; sigma = 0: one window of all rows.
  /// Precondition: fewer than 2^31 rows.
  virtual Array<std::int32_t> rows_by_length(Context& context, CsrView const& a, std::int64_t sigma) const = 0;
  /// SliceLayout::slice_ptr: every slice is as wide as its longest row. `rows` may be null. `slice_size` is a power of two.
  virtual Array<std::int64_t> slice_ptr(Context& context, CsrView const& a, std::int32_t const* rows,
                                        std::int64_t slice_size) const = 0;
  /// Entries of rows in slices, column by column; every place is written, with column -1 and value 0 where a row has ended.
  virtual void fill_slices(Context& context, CsrView const& a, SliceLayout const& layout, std::int32_t* columns,
                           double* values) const = 0;

  /// The offsets column - row of all entries, ascending; with `half`, the offsets row - column of entries on or below the diagonal,
  /// ascending, and 0 in any case.
  virtual std::vector<std::int32_t> diagonals(Context& context, CsrView const& a, bool half) const = 0;
  /// values[k * n_rows + i] = a(i, i + offsets[k]), with `half` a(i, i - offsets[k]); `offsets` as from `diagonals`, on the host
  /// and in the backend's memory. Places where nothing is stored hold -0.0, and stored zeros of either sign +0.0, so that the way
  /// back finds what was stored. Returns the number of stored entries taken.
  virtual std::int64_t fill_diagonals(Context& context, CsrView const& a, std::span<std::int32_t const> offsets,
                                      std::int32_t const* backend_offsets, bool half, double* values) const = 0;
  /// d = values, with 0 for the -0.0 of places where nothing is stored.
  virtual void copy_diagonal(Context& context, std::int64_t n, double const* values, double* d) const = 0;
  virtual void copy_diagonal(Context& context, std::int64_t n, float const* values, float* d) const = 0;

  /// y = x, rounded to single precision. What is not 0 but rounds to it becomes +0.0, so that -0.0 keeps its meaning.
  virtual void round(Context& context, std::int64_t n, double const* x, float* y) const = 0;
  /// y = x
  virtual void widen(Context& context, std::int64_t n, float const* x, double* y) const = 0;

  /// The matrix in CSR, entries at the same place summed in the order of the list. Calls target(nnz) once, for memory of the
  /// backend to write to. Precondition: rows and columns are within the matrix.
  virtual void csr_from_coo(Context& context, CooMatrix const& coo,
                            std::function<CsrTarget(std::int64_t nnz)> const& target) const = 0;

  /// The way back from fill_slices, in `layout` with `n_rows` rows: rows end with their first column of -1. Calls target(nnz) once,
  /// for memory of the backend to write to.
  virtual void csr_from_slices(Context& context, std::int64_t n_rows, SliceLayout const& layout, std::int32_t const* columns,
                               double const* values, std::function<CsrTarget(std::int64_t nnz)> const& target) const = 0;

  static ConversionKernels const& cpu();
  static ConversionKernels const& cuda();
};

}  // namespace poisson
