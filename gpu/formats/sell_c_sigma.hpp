#pragma once

#include "gpu/core/array.hpp"
#include "gpu/core/host_vector.hpp"
#include "gpu/formats/kernel_matrix.hpp"
#include "gpu/kernels/sell_c_sigma.hpp"

namespace poisson {

/// SELL-C-sigma (Kreutzer et al. 2014): slices of C rows, each as wide as its longest row and stored column by column. With sigma
/// other than 1 the rows of every window of sigma rows are first sorted by descending length, stably; x and y keep the matrix's
/// order. Any matrix; the last slice is as high as the others.
class SellCSigma final : public KernelMatrix<SellKernels> {
public:
  /// As if all rows were as long as the mean, rounded up.
  static FormatEstimate estimate(MatrixShape const& shape, FormatOptions const& options);
  /// 12 bytes a stored entry (20 in double_double, 8 in single), 8 (n_slices + 1), and 4 a row when sigma is not 1.
  static FormatEstimate estimate_exact(Csr const& matrix, FormatOptions const& options);
  static std::unique_ptr<Matrix> convert(Csr const& csr, FormatOptions const& options);

  Format format() const override { return Format::sell_c_sigma; }
  std::int64_t bytes() const override {
    return storage_.entries.bytes() + storage_.columns.bytes() + storage_.slice_ptr.bytes() + storage_.rows.bytes();
  }
  double padding_ratio() const override { return padding_ratio_; }
  std::int64_t n_rows() const override { return view_.n_rows; }
  std::int64_t n_columns() const override { return n_columns_; }

protected:
  std::unique_ptr<Matrix> copied_to(Context& target) const override;
  CsrMatrix host_csr() const override;
  void take_diagonal(double const* values, double* d) const override { kernels_.diagonal(context(), view_, values, d); }
  void take_diagonal(float const* values, float* d) const override { kernels_.diagonal(context(), view_, values, d); }
  std::int64_t n_values() const override { return storage_.entries.size(); }

private:
  struct Storage {
    Array<std::int32_t> rows;  ///< empty when all rows are in place
    Array<std::int64_t> slice_ptr;
    Array<std::int32_t> columns;
    StoredEntries entries;
  };
  /// Takes from `like` what is not in the arrays: sizes, C and whether rows are in place.
  SellCSigma(Context& context, SellView const& like, std::int64_t n_columns, double padding_ratio, Storage storage);

  Storage storage_;
  std::int64_t n_columns_;
  double padding_ratio_;
};

}  // namespace poisson
