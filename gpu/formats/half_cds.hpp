#pragma once

#include "gpu/core/array.hpp"
#include "gpu/formats/matrix.hpp"
#include "gpu/kernels/half_cds.hpp"

namespace poisson {

/// The main diagonal and the diagonals on its left of a symmetric matrix, n values each (Miura et al. 2015). The main diagonal is
/// always there; any set of others may be. Where the assembled matrix is symmetric only to rounding, its lower triangle counts.
class HalfCds final : public Matrix {
public:
  /// n n_d values and n_d offsets of 4 bytes, with n_d = n_diagonals / 2 + 1; refused when that is more than CSR takes.
  static FormatEstimate estimate(MatrixShape const& shape, FormatOptions const& options);
  static std::unique_ptr<Matrix> make(std::shared_ptr<CsrMatrix const> csr, Context& context, FormatOptions const& options);

  Format format() const override { return Format::half_cds; }
  std::int64_t bytes() const override { return values_.bytes() + backend_offsets_.bytes(); }
  double padding_ratio() const override { return padding_ratio_; }
  std::int64_t n_rows() const override { return view_.n; }
  std::int64_t n_columns() const override { return view_.n; }
  std::int64_t bytes_per_product() const override { return bytes() + 16 * view_.n; }
  void product(double alpha, double const* x, double beta, double* y) const override;
  void product_dot(double const* x, double* y, double* dot, std::int32_t const* stop) const override;
  void diagonal(double* d) const override;

private:
  HalfCds(CsrMatrix const& csr, Context& context);

  Context& context_;
  HalfCdsKernels const& kernels_;
  std::vector<std::int32_t> offsets_;
  Array<std::int32_t> backend_offsets_;
  Array<double> values_;
  HalfCdsView view_;
  double padding_ratio_ = 1;
};

}  // namespace poisson
