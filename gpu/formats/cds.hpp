#pragma once

#include "gpu/formats/diagonals.hpp"
#include "gpu/formats/kernel_matrix.hpp"
#include "gpu/kernels/cds.hpp"

namespace poisson {

/// Compressed diagonal storage, also called DIA (Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., 3.4): n_rows values
/// for every diagonal that holds an entry. It takes any matrix, square or not, but pays only for few diagonals. Products read whole
/// diagonals: an infinity in x makes NaN of a row that stores nothing, or a zero, there. To tell the two apart, -0.0 stands where
/// the matrix stores nothing, and +0.0 for a stored zero of either sign (to_csr loses the sign of a stored -0.0).
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
  void extract_diagonal(double const* values, double* d) const override { extract(values, d); }
  void extract_diagonal(float const* values, float* d) const override { extract(values, d); }
  std::int64_t n_values() const override { return storage_.entries.size(); }

private:
  Cds(Context& context, std::int64_t n_rows, std::int64_t n_columns, DiagonalStorage storage);
  template <class V>
  void extract(V const* values, V* d) const;

  DiagonalStorage storage_;
};

}  // namespace poisson
