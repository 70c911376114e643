#pragma once

#include "gpu/core/array.hpp"
#include "gpu/formats/kernel_matrix.hpp"
#include "gpu/kernels/cod_sell.hpp"

namespace poisson {

/// CoD-SELL (Murakami 2024): slices of C rows. Column distances from the first column of a row that all rows of a slice share are
/// stored once for the slice, in its dictionary. It takes any matrix; x and y keep the matrix's order. Rows are sorted by
/// descending length in windows of sigma rows (by default one window), then grouped into slices as CodSellConversion says:
/// Conversion::sequential groups all rows at once; the others group chunks of max(1024, 32 C) sorted rows, by threads on the host
/// or one warp a chunk on a device, with the same result.
///
/// Smaller chunks cost compression, larger ones parallelism. In percent of the CSR bytes, chunks of that size took from 2.0 less to
/// 0.47 more than the sequential conversion on 33 matrices with C from 4 to 32, and from 2.2 less to 0.66 more on eight matrices
/// with C from 64 to 256; chunks half as large up to 1.3 more.
class CodSell final : public KernelMatrix<CodSellKernels> {
public:
  /// Whether the format supports slices of c rows; estimates refuse others, and it is a precondition of convert.
  static bool has_slice_size(int c) { return c >= 2 && c <= 256; }
  /// Assumes that all rows share one pattern where there are few diagonals (at most 1.25 times the mean row length), else that
  /// nothing is shared; and that rows are equally long.
  static FormatEstimate estimate(MatrixShape const& shape, FormatOptions const& options);
  /// Exact for small matrices (at most 2^18 entries, and no more rows than the samples have), else a prediction: values and padding
  /// are those of sorted rows cut in order, and the fraction of columns that dictionaries save is that of 8 samples of max(512, 4
  /// C) consecutive rows. It takes about as long as converting the samples. For 24 matrices and C = 4, 8, 32 its error was at
  /// most 2.8 % of the CSR bytes, but for one matrix (5.8 % too many).
  static FormatEstimate estimate_exact(Csr const& matrix, FormatOptions const& options);
  /// A lower bound: no padding, and all rows of a slice share their whole pattern.
  static FormatEstimate estimate_lower_bound(MatrixShape const& shape, FormatOptions const& options);
  static std::unique_ptr<Matrix> convert(Csr const& csr, FormatOptions const& options);

  Format format() const override { return Format::cod_sell; }
  /// 8 for each stored value (16 in double_double, 4 in single), 4 for each stored column and each distance, 4 a row, 16 a slice,
  /// and 16.
  std::int64_t bytes() const override;
  double padding_ratio() const override { return padding_ratio_; }
  std::int64_t n_rows() const override { return view_.n_rows; }
  std::int64_t n_columns() const override { return view_.n_columns; }

  std::unique_ptr<Matrix> in_single() const override;

  /// The arrays, in the context's memory; for tests and tools.
  [[nodiscard]] CodSellView const& view() const { return view_; }

protected:
  std::unique_ptr<Matrix> copied_to(Context& target) const override;
  CsrMatrix host_csr() const override;
  void extract_diagonal(double const* values, double* d) const override { kernels_.diagonal(context(), view_, values, d); }
  void extract_diagonal(float const* values, float* d) const override { kernels_.diagonal(context(), view_, values, d); }
  std::int64_t n_values() const override { return storage_.entries.size(); }

private:
  struct Storage {
    Array<std::int64_t> value_ptr, dictionary_ptr;
    Array<std::int32_t> rows, columns, dictionary;
    StoredEntries entries;
  };
  /// The arrays but for the entries, which are given.
  [[nodiscard]] Storage storage_with(StoredEntries entries, Context& target) const;
  /// Takes sizes and C from `like`.
  CodSell(Context& context, CodSellView const& like, double padding_ratio, Storage storage);

  Storage storage_;
  double padding_ratio_;
};

}  // namespace poisson
