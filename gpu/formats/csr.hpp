#pragma once

#include "gpu/core/array.hpp"
#include "gpu/formats/matrix.hpp"
#include "gpu/kernels/csr.hpp"

namespace poisson {

/// Compressed sparse rows, as csr or as crs_t (Yoshizawa, Takahashi 2012): the same arrays and kernels, but for crs_t
/// the number of threads that share a row on a GPU can be asked for. On the host that number has no meaning, both are one loop, and
/// the arrays are those that the matrix was made from.
class Csr final : public Matrix {
public:
  static FormatEstimate estimate(MatrixShape const& shape, FormatOptions const& options);
  static std::unique_ptr<Matrix> make(std::shared_ptr<CsrMatrix const> csr, Context& context, FormatOptions const& options);

  static FormatEstimate estimate_crs_t(MatrixShape const& shape, FormatOptions const& options);
  static std::unique_ptr<Matrix> make_crs_t(std::shared_ptr<CsrMatrix const> csr, Context& context, FormatOptions const& options);

  Format format() const override { return format_; }
  std::int64_t bytes() const override { return CsrMatrix::csr_bytes(view_.n_rows, view_.nnz); }
  double padding_ratio() const override { return 1; }
  std::int64_t n_rows() const override { return view_.n_rows; }
  std::int64_t n_columns() const override { return n_columns_; }
  std::int64_t bytes_per_product() const override { return bytes() + 8 * (n_columns_ + view_.n_rows); }
  void product(double alpha, double const* x, double beta, double* y) const override;
  void product_dot(double const* x, double* y, double* dot, std::int32_t const* stop) const override;
  void diagonal(double* d) const override;

private:
  Csr(Format format, std::shared_ptr<CsrMatrix const> csr, Context& context, int threads_per_row);

  Format format_;
  Context& context_;
  CsrKernels const& kernels_;
  std::shared_ptr<CsrMatrix const> host_;  ///< what view_ points into on the host; null on a device
  Array<std::int64_t> row_ptr_;
  Array<std::int32_t> columns_;
  Array<double> values_;
  CsrView view_;
  std::int64_t n_columns_;
};

}  // namespace poisson
