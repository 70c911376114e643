#pragma once

#include "gpu/core/array.hpp"
#include "gpu/formats/matrix.hpp"
#include "gpu/kernels/cds.hpp"

namespace poisson {

/// Compressed diagonal storage: n_rows values for every diagonal that holds an entry. Any matrix, symmetric, square or not; for few
/// diagonals. All entries of a diagonal count as stored: an infinity in x makes NaN of a row that has a zero there.
class Cds final : public Matrix {
public:
  /// 8 n_rows n_diagonals bytes and 4 n_diagonals for the offsets; refused when that is more than CSR takes.
  static FormatEstimate estimate(MatrixShape const& shape, FormatOptions const& options);
  static std::unique_ptr<Matrix> make(std::shared_ptr<CsrMatrix const> csr, Context& context, FormatOptions const& options);

  Format format() const override { return Format::cds; }
  std::int64_t bytes() const override { return values_.bytes() + backend_offsets_.bytes(); }
  double padding_ratio() const override { return padding_ratio_; }
  std::int64_t n_rows() const override { return view_.n_rows; }
  std::int64_t n_columns() const override { return view_.n_columns; }
  std::int64_t bytes_per_product() const override { return bytes() + 8 * (view_.n_rows + view_.n_columns); }
  void product(double alpha, double const* x, double beta, double* y) const override;
  void product_dot(double const* x, double* y, double* dot, std::int32_t const* stop) const override;
  void diagonal(double* d) const override;

private:
  Cds(CsrMatrix const& csr, Context& context);

  Context& context_;
  CdsKernels const& kernels_;
  std::vector<std::int32_t> offsets_;
  Array<std::int32_t> backend_offsets_;
  Array<double> values_;
  CdsView view_;
  double padding_ratio_ = 1;
};

}  // namespace poisson
