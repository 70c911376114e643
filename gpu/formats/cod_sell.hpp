#pragma once

#include "gpu/core/array.hpp"
#include "gpu/formats/kernel_matrix.hpp"
#include "gpu/kernels/cod_sell.hpp"

namespace poisson {

/// CoD-SELL (Murakami 2024): slices of C rows that share a pattern of column distances, which is stored once for the slice. Rows
/// are sorted by descending length in windows of sigma (by default all of them), then grouped as CodSellConversion says. Any
/// matrix; x and y keep its order. Conversion::sequential groups all rows in one go, the others by chunks of max(1024, 32 C) sorted
/// rows: in threads, or by one warp a chunk on a device, with the same result.
///
/// Smaller chunks cost compression, larger ones parallelism. Against the sequential conversion chunks of that size took from 2.0 %
/// of the CSR bytes less (what does not fit together stays in its chunk) to 0.47 % more over 33 matrices with C from 4 to 32, and
/// from 2.2 % less to 0.66 % more over eight of them with C from 64 to 256; chunks half as large up to 1.3 % more.
class CodSell final : public KernelMatrix<CodSellKernels> {
public:
  /// Whether C is one that the format has; estimates refuse others, and convert does not take them.
  static bool has_slice_size(int c) { return c >= 2 && c <= 256; }
  /// With few diagonals (no more than 1.25 times the mean row length) all rows share one pattern; else as SELL, with equal rows.
  static FormatEstimate estimate(MatrixShape const& shape, FormatOptions const& options);
  /// A prediction, but for small matrices (2^18 entries, 8 samples of rows): values and padding as the sorted rows give them when
  /// they are cut in order, and the share of columns that dictionaries save in 8 samples of max(512, 4 C) consecutive rows. Takes
  /// about as long as the conversion of these rows. Over 24 matrices, C = 4, 8, 32, it was at most 2.8 % of the CSR bytes off, but
  /// for one (5.8 % too much); bytes() of the matrix is exact.
  static FormatEstimate estimate_exact(Csr const& matrix, FormatOptions const& options);
  /// No padding, and every slice one pattern.
  static FormatEstimate estimate_least(MatrixShape const& shape, FormatOptions const& options);
  static std::unique_ptr<Matrix> convert(Csr const& csr, FormatOptions const& options);

  Format format() const override { return Format::cod_sell; }
  /// 8 a value (16 in double_double, 4 in single), 4 a column and a distance, 4 a row, 16 a slice and 16 more.
  std::int64_t bytes() const override;
  double padding_ratio() const override { return padding_ratio_; }
  std::int64_t n_rows() const override { return view_.n_rows; }
  std::int64_t n_columns() const override { return view_.n_columns; }

  /// Where everything is; for tests and tools.
  [[nodiscard]] CodSellView const& view() const { return view_; }

protected:
  std::unique_ptr<Matrix> copied_to(Context& target) const override;
  CsrMatrix host_csr() const override;
  void take_diagonal(double const* values, double* d) const override { kernels_.diagonal(context(), view_, values, d); }
  void take_diagonal(float const* values, float* d) const override { kernels_.diagonal(context(), view_, values, d); }
  std::int64_t n_values() const override { return storage_.entries.size(); }

private:
  struct Storage {
    Array<std::int64_t> value_ptr, dictionary_ptr;
    Array<std::int32_t> rows, columns, dictionary;
    StoredEntries entries;
  };
  /// Takes sizes and C from `like`.
  CodSell(Context& context, CodSellView const& like, double padding_ratio, Storage storage);

  Storage storage_;
  double padding_ratio_;
};

}  // namespace poisson
