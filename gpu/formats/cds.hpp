#pragma once

#include "gpu/formats/diagonals.hpp"
#include "gpu/formats/kernel_matrix.hpp"
#include "gpu/kernels/cds.hpp"

namespace poisson {

/// Compressed diagonal storage: n_rows values for every diagonal that holds an entry. Any matrix, symmetric, square or not; for few
/// diagonals. All entries of a diagonal count as stored: an infinity in x makes NaN of a row that has a zero there. Where the
/// matrix stores nothing the value is -0.0, and stored zeros are +0.0 (a -0.0 among them too: the one bit that to_csr does not give
/// back).
class Cds final : public KernelMatrix<CdsKernels> {
public:
  /// 8 n_rows n_diagonals bytes (16 in double_double, 4 in single) and 4 n_diagonals for the offsets; refused when that is more
  /// than CSR takes.
  static FormatEstimate estimate(MatrixShape const& shape, FormatOptions const& options);
  static std::unique_ptr<Matrix> convert(Csr const& csr, FormatOptions const& options);

  Format format() const override { return Format::cds; }
  std::int64_t bytes() const override { return storage_.bytes(); }
  double padding_ratio() const override { return storage_.padding_ratio; }
  std::int64_t n_rows() const override { return view_.n_rows; }
  std::int64_t n_columns() const override { return view_.n_columns; }

protected:
  std::unique_ptr<Matrix> copied_to(Context& target) const override;
  CsrMatrix host_csr() const override;
  void take_diagonal(double const* values, double* d) const override { take(values, d); }
  void take_diagonal(float const* values, float* d) const override { take(values, d); }
  std::int64_t n_values() const override { return storage_.entries.size(); }

private:
  Cds(Context& context, std::int64_t n_rows, std::int64_t n_columns, DiagonalStorage storage);
  template <class V>
  void take(V const* values, V* d) const;

  DiagonalStorage storage_;
};

}  // namespace poisson
