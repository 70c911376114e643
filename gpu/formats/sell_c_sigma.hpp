#pragma once

#include "gpu/core/array.hpp"
#include "gpu/core/host_vector.hpp"
#include "gpu/formats/kernel_matrix.hpp"
#include "gpu/formats/slice_pattern.hpp"
#include "gpu/kernels/sell_c_sigma.hpp"

#include <memory>

namespace poisson {

/// SELL-C-sigma (Kreutzer, Hager, Wellein, Fehske, Bishop, SIAM J. Sci. Comput. 36, 2014): slices of C rows, padded to the longest
/// row of the slice and stored column by column. Unless sigma is 1, rows are first sorted by descending length (stably) within
/// windows of sigma rows; x and y keep the matrix's order. It takes any matrix. The last slice is padded to C rows.
class SellCSigma final : public KernelMatrix<SellKernels> {
public:
  /// Assumes that all rows have the mean length, rounded up.
  static FormatEstimate estimate(MatrixShape const& shape, FormatOptions const& options);
  /// 12 bytes for each stored entry, padding included (20 in double_double, 8 in single), 8 (n_slices + 1), and 4 a row unless
  /// sigma is 1.
  static FormatEstimate estimate_exact(Csr const& matrix, FormatOptions const& options);
  static std::unique_ptr<Matrix> convert(Csr const& csr, FormatOptions const& options);

  Format format() const override { return Format::sell_c_sigma; }
  std::int64_t bytes() const override { return entries_.bytes() + pattern_->bytes(); }
  double padding_ratio() const override { return padding_ratio_; }
  std::int64_t n_rows() const override { return view_.n_rows; }
  std::int64_t n_columns() const override { return n_columns_; }
  std::unique_ptr<Matrix> in_single() const override;
  std::unique_ptr<Matrix> in_half() const override;
  std::unique_ptr<Csr> as_csr() const override;

protected:
  std::unique_ptr<Matrix> copied_to(Context& target) const override;
  CsrMatrix host_csr() const override;
  void extract_diagonal(double const* values, double* d) const override { kernels_.diagonal(context(), view_, values, d); }
  void extract_diagonal(float const* values, float* d) const override { kernels_.diagonal(context(), view_, values, d); }
  std::int64_t n_values() const override { return entries_.size(); }

private:
  /// Takes from `like` what is not in the arrays: sizes, C and whether rows are in place.
  SellCSigma(Context& context, SellView const& like, std::int64_t n_columns, double padding_ratio,
             std::shared_ptr<SlicePattern const> pattern, StoredEntries entries);

  std::shared_ptr<SlicePattern const> pattern_;
  StoredEntries entries_;
  std::int64_t n_columns_;
  double padding_ratio_;
};

}  // namespace poisson
