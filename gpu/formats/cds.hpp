#pragma once

#include "gpu/formats/diagonals.hpp"
#include "gpu/formats/matrix.hpp"
#include "gpu/kernels/cds.hpp"

namespace poisson {

/// Compressed diagonal storage: n_rows values for every diagonal that holds an entry. Any matrix, symmetric, square or not; for few
/// diagonals. All entries of a diagonal count as stored: an infinity in x makes NaN of a row that has a zero there. Where the
/// matrix stores nothing the value is -0.0, and stored zeros are +0.0 (a -0.0 among them too: the one bit that to_csr does not give
/// back).
class Cds final : public Matrix {
public:
  /// 8 n_rows n_diagonals bytes and 4 n_diagonals for the offsets; refused when that is more than CSR takes.
  static FormatEstimate estimate(MatrixShape const& shape, FormatOptions const& options);
  static std::unique_ptr<Matrix> convert(Csr const& csr, FormatOptions const& options);

  Format format() const override { return Format::cds; }
  std::int64_t bytes() const override { return storage_.bytes(); }
  double padding_ratio() const override { return storage_.padding_ratio; }
  std::int64_t n_rows() const override { return view_.n_rows; }
  std::int64_t n_columns() const override { return view_.n_columns; }
  std::int64_t bytes_per_product() const override { return bytes() + 8 * (view_.n_rows + view_.n_columns); }
  void product(double alpha, double const* x, double beta, double* y) const override;
  void product_dot(double const* x, double* y, double* dot, std::int32_t const* stop) const override;
  void diagonal(double* d) const override;

protected:
  std::unique_ptr<Matrix> copied_to(Context& target) const override;
  CsrMatrix host_csr() const override;

private:
  Cds(Context& context, std::int64_t n_rows, std::int64_t n_columns, DiagonalStorage storage);

  CdsKernels const& kernels_;
  DiagonalStorage storage_;
  CdsView view_;
};

}  // namespace poisson
