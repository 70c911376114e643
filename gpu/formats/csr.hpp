#pragma once

#include "gpu/core/array.hpp"
#include "gpu/formats/matrix.hpp"
#include "gpu/kernels/csr.hpp"

namespace poisson {

/// Compressed sparse rows, as csr or as crs_t (Yoshizawa, Takahashi 2012): the same arrays and kernels, but for crs_t
/// the number of threads that share a row on a GPU can be asked for. On the host that number has no meaning, both are one loop, and
/// the arrays are those that the matrix was made from. Every other format is converted from a Csr on the backend that it will live
/// on; what is converted to csr and crs_t shares the arrays.
class Csr final : public Matrix {
public:
  static FormatEstimate estimate(MatrixShape const& shape, FormatOptions const& options);
  static std::unique_ptr<Matrix> convert(Csr const& csr, FormatOptions const& options);

  static FormatEstimate estimate_crs_t(MatrixShape const& shape, FormatOptions const& options);
  static std::unique_ptr<Matrix> convert_to_crs_t(Csr const& csr, FormatOptions const& options);

  /// On the host the arrays are shared, on a device they are uploaded (transfer_seconds).
  Csr(std::shared_ptr<CsrMatrix const> csr, Context& context);
  /// From arrays in the context's memory: n_rows + 1 offsets, nnz columns and values. Columns ascend within a row, each at most
  /// once.
  Csr(Context& context, std::int64_t n_columns, Array<std::int64_t> row_ptr, Array<std::int32_t> columns, Array<double> values);

  [[nodiscard]] CsrView const& view() const { return view_; }
  Format format() const override { return format_; }
  std::int64_t bytes() const override { return CsrMatrix::csr_bytes(view_.n_rows, view_.nnz); }
  double padding_ratio() const override { return 1; }
  std::int64_t n_rows() const override { return view_.n_rows; }
  std::int64_t n_columns() const override { return view_.n_columns; }
  std::int64_t bytes_per_product() const override { return bytes() + 8 * (view_.n_columns + view_.n_rows); }
  void product(double alpha, double const* x, double beta, double* y) const override;
  void product_dot(double const* x, double* y, double* dot, std::int32_t const* stop) const override;
  void diagonal(double* d) const override;

protected:
  std::unique_ptr<Matrix> copied_to(Context& target) const override;
  CsrMatrix host_csr() const override;

private:
  struct Storage {
    std::shared_ptr<CsrMatrix const> host;  ///< what the view points into; or null, and then the arrays are it
    Array<std::int64_t> row_ptr;
    Array<std::int32_t> columns;
    Array<double> values;
  };
  Csr(Format format, Csr const& other, int threads_per_row);
  void describe_rows();
  void point_to_arrays(std::int64_t n_columns);

  Format format_;
  CsrKernels const& kernels_;
  std::shared_ptr<Storage const> storage_;
  CsrView view_;
};

}  // namespace poisson
