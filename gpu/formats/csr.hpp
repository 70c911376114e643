#pragma once

#include "gpu/core/array.hpp"
#include "gpu/formats/kernel_matrix.hpp"
#include "gpu/kernels/csr.hpp"
#include "gpu/kernels/csr_columns.hpp"

namespace poisson {

/// Compressed sparse rows: the formats csr and crs_t (Yoshizawa, Takahashi 2012). Both have the same arrays and kernels; for crs_t
/// the number of threads that share a row on a GPU is an option, which the host ignores. On the host the arrays are those of the
/// CsrMatrix, shared. Every other format is converted from a Csr on the backend that it will live on; csr and crs_t made from it
/// share its arrays.
class Csr final : public ColumnMatrix<CsrKernels, CsrColumnKernels> {
public:
  static FormatEstimate estimate(MatrixShape const& shape, FormatOptions const& options);
  static std::unique_ptr<Matrix> convert(Csr const& csr, FormatOptions const& options);

  static FormatEstimate estimate_crs_t(MatrixShape const& shape, FormatOptions const& options);
  static std::unique_ptr<Matrix> convert_to_crs_t(Csr const& csr, FormatOptions const& options);

  /// On the host the arrays are shared, on a device they are uploaded (see transfer_seconds). With double_double the low values of
  /// `csr`, if it has any, are included, else left out. This matrix itself is never in single; only matrices converted from it are.
  /// Throws OutOfMemoryError.
  Csr(std::shared_ptr<CsrMatrix const> csr, Context& context, MatrixPrecision precision = MatrixPrecision::double_);
  /// Makes the matrix from arrays in the context's memory: n_rows + 1 offsets, nnz columns and values, and nnz low values or none.
  /// Precondition: within a row columns ascend and are distinct.
  Csr(Context& context, std::int64_t n_columns, Array<std::int64_t> row_ptr, Array<std::int32_t> columns, Array<double> values,
      Array<double> low_values = {});

  [[nodiscard]] CsrView const& view() const { return view_; }
  Format format() const override { return format_; }
  std::int64_t bytes() const override {
    return CsrMatrix::csr_bytes(view_.n_rows, view_.nnz) + low_bytes() - (view_.single_values != nullptr ? 4 * view_.nnz : 0);
  }
  double padding_ratio() const override { return 1; }
  std::int64_t n_rows() const override { return view_.n_rows; }
  std::int64_t n_columns() const override { return view_.n_columns; }
  std::unique_ptr<Matrix> in_single() const override;
  std::unique_ptr<Matrix> in_half() const override;
  std::unique_ptr<Csr> as_csr() const override;

protected:
  std::unique_ptr<Matrix> copied_to(Context& target) const override;
  CsrMatrix host_csr() const override;
  void extract_diagonal(double const* values, double* d) const override { kernels_.diagonal(context(), view_, values, d); }
  void extract_diagonal(float const* values, float* d) const override { kernels_.diagonal(context(), view_, values, d); }
  std::int64_t n_values() const override { return view_.nnz; }

private:
  struct Pattern {
    std::shared_ptr<CsrMatrix const> host;  ///< the view points into it; null: the view points into the arrays
    Array<std::int64_t> row_ptr;
    Array<std::int32_t> columns;
  };
  struct Values {
    Array<double> values, low_values;
  };
  /// Shares the arrays of `other`, in its precision or in the given one: values are rounded for single, and low values of 0 are
  /// added for double_double where `other` has none.
  Csr(Format format, Csr const& other, int threads_per_row);
  Csr(Format format, Csr const& other, int threads_per_row, MatrixPrecision precision);
  /// Makes a matrix in single with this pattern, whose only values are `single_values`.
  Csr(Format format, Context& context, CsrView const& like, std::shared_ptr<Pattern const> pattern, Array<float> single_values);
  void point_to_arrays(std::int64_t n_columns);

  Format format_;
  std::shared_ptr<Pattern const> pattern_;
  std::shared_ptr<Values const> values_;  ///< on a device; null in single
  Array<double> low_zeros_;               ///< the low values of a matrix that has none
  Array<float> single_values_;            ///< in single, the only values
};

}  // namespace poisson
