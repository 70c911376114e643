#pragma once

#include "gpu/formats/diagonals.hpp"
#include "gpu/formats/kernel_matrix.hpp"
#include "gpu/kernels/conversion.hpp"
#include "gpu/kernels/half_cds.hpp"
#include "gpu/kernels/half_cds_columns.hpp"

namespace poisson {

/// The main diagonal and the diagonals below it of a symmetric matrix, n values each (Miura et al. 2015). The main diagonal is
/// always stored. Where the assembled matrix is symmetric only to rounding (kernels/symmetry.hpp: to 1e-10 of the largest entries
/// of its rows), or stores a zero on one side only, its lower triangle stands for both, also in to_csr. As in cds, -0.0 stands
/// where the matrix stores nothing and +0.0 for stored zeros.
class HalfCds final : public ColumnMatrix<HalfCdsKernels, HalfCdsColumnKernels> {
public:
  /// n n_d values (8 bytes each, 16 in double_double, 4 in single) and n_d offsets of 4 bytes, n_d = n_diagonals / 2 + 1. Refused
  /// when the matrix is not symmetric, or when that is more than CSR takes.
  static FormatEstimate estimate(MatrixShape const& shape, FormatOptions const& options);
  static std::unique_ptr<Matrix> convert(Csr const& csr, FormatOptions const& options);
  /// Makes the matrix from the values that an assembly has filled in. They are in the context's memory, laid out as HalfCdsView
  /// says; -0.0 stands where nothing is stored.
  static std::unique_ptr<Matrix> from_diagonals(Context& context, std::int64_t n, std::vector<std::int32_t> offsets,
                                                Array<double> values, double padding_ratio);
  /// Makes the matrix in single precision, from values laid out in the same way.
  static std::unique_ptr<Matrix> from_diagonals(Context& context, std::int64_t n, std::vector<std::int32_t> offsets,
                                                Array<float> values);

  Format format() const override { return Format::half_cds; }
  std::int64_t bytes() const override { return storage_.bytes(); }
  double padding_ratio() const override { return storage_.padding_ratio; }
  std::int64_t n_rows() const override { return view_.n; }
  std::int64_t n_columns() const override { return view_.n; }

  [[nodiscard]] HalfCdsView const& view() const { return view_; }
  bool residual(double const* x, double const* x_low, double const* b, double* r) const override;

protected:
  std::unique_ptr<Matrix> copied_to(Context& target) const override;
  CsrMatrix host_csr() const override;
  void extract_diagonal(double const* values, double* d) const override { extract(values, d); }
  void extract_diagonal(float const* values, float* d) const override { extract(values, d); }
  std::int64_t n_values() const override { return storage_.entries.size(); }

private:
  HalfCds(Context& context, std::int64_t n, DiagonalStorage storage);
  template <class V>
  void extract(V const* values, V* d) const {
    kernels_for<ConversionKernels>(context()).copy_diagonal(context(), view_.n, values, d);
  }

  DiagonalStorage storage_;
};

}  // namespace poisson
