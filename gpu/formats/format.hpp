#pragma once

#include "gpu/core/csr_matrix.hpp"
#include "gpu/core/names.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace poisson {

enum class Format { csr, crs_t, sell_c_sigma, cod_sell, cds, half_cds };
template <>
struct Names<Format> {
  static constexpr std::array<Named<Format>, 6> values{{{Format::csr, "csr"},
                                                        {Format::crs_t, "crs_t"},
                                                        {Format::sell_c_sigma, "sell_c_sigma"},
                                                        {Format::cod_sell, "cod_sell"},
                                                        {Format::cds, "cds"},
                                                        {Format::half_cds, "half_cds"}}};
};

/// Where a matrix is converted from CSR: `sequential` by one thread of the host (the reference; only cod_sell makes a difference,
/// the others take `host`), `host` by all its threads, `device` on the device that the matrix will live on, `automatic` there as
/// well where device memory holds CSR, format and scratch at once, else on the host.
enum class Conversion { automatic, sequential, host, device };
template <>
struct Names<Conversion> {
  static constexpr std::array<Named<Conversion>, 4> values{{{Conversion::automatic, "automatic"},
                                                            {Conversion::sequential, "sequential"},
                                                            {Conversion::host, "host"},
                                                            {Conversion::device, "device"}}};
};

/// In what a matrix is stored, whatever solvers compute in: with double_double every entry has a low part as well, 8 bytes more; in
/// single it is rounded to 4 bytes, which preconditioners may do. (The latter has no name, because users cannot ask for it.)
enum class MatrixPrecision { double_, double_double, single };
template <>
struct Names<MatrixPrecision> {
  static constexpr std::array<Named<MatrixPrecision>, 2> values{
      {{MatrixPrecision::double_, "double"}, {MatrixPrecision::double_double, "double_double"}}};
};
[[nodiscard]] constexpr std::int64_t bytes_of_value(MatrixPrecision precision) {
  return precision == MatrixPrecision::single ? 4 : precision == MatrixPrecision::double_ ? 8 : 16;
}

/// What the formats can be tuned by; a format looks at its own part only.
struct FormatOptions {
  int slice_size = 32;  ///< C, rows of a slice: a power of two from 1 to 1024, of cod_sell from 2 to 256
  /// Rows of a window sorted by length before slices are cut: 1 keeps all in place, 0 sorts all rows. Nothing: the format's own,
  /// 1 of sell_c_sigma and 0 of cod_sell.
  std::optional<std::int64_t> sigma = std::nullopt;
  int threads_per_row = 0;  ///< a power of two from 1 to 32; 0: chosen by the format's rule
  // cod_sell looks for rows with a common pattern (Murakami 2024, Algorithms 4 and 5); the defaults are the thesis's.
  int pair_window = 4;    ///< rows that follow a row and may become its partner, 1 to 64
  int merge_window = 16;  ///< groups that follow a group and may be merged with it, 1 to 64
  int base_candidates =
      0;  ///< leading columns of a row that its distances may count from, up to 64; 0: log2 of its length, and one
  Conversion conversion = Conversion::automatic;
  MatrixPrecision precision = MatrixPrecision::double_;
};

/// What one format would take for a given matrix; the row of the table that `auto` decides from.
struct FormatEstimate {
  Format format{};
  std::int64_t bytes = 0;              ///< of the stored matrix
  std::int64_t bytes_per_product = 0;  ///< compulsory: every stored value and index once, x once, y once, both in double
  double padding_ratio = 1;   ///< stored values over the non-zeros that the format must hold (half_cds: of the lower triangle)
  double shared_columns = 0;  ///< of cod_sell: the share of stored columns that a dictionary saves
  bool at_least = false;      ///< a lower bound, which was enough to decide; nothing was estimated
  double product_seconds = 0, conversion_seconds = 0;  ///< predicted, where predict_seconds (formats/cost.hpp) filled them in
  std::string refusal;                                 ///< why the format cannot or should not hold this matrix; empty when it can
};

class Csr;

/// The shape that bytes depend on, known before anything is assembled.
struct MatrixShape {
  std::int64_t n_rows = 0;
  std::int64_t nnz = 0;
  std::int64_t n_diagonals = 0;  ///< distinct column - row; 0: unknown, and many
  bool symmetric = true;
};

[[nodiscard]] MatrixShape shape_of(CsrMatrix const& matrix);
[[nodiscard]] MatrixShape shape_of(Csr const& matrix);
/// From the shape alone, before anything is assembled. A format whose bytes depend on the rows' lengths takes them as equal.
[[nodiscard]] std::vector<FormatEstimate> estimate_formats(MatrixShape const& shape, FormatOptions const& options = {});
/// From the matrix: to the byte what make_matrix would allocate, where the format does not refuse; of cod_sell a prediction.
[[nodiscard]] std::vector<FormatEstimate> estimate_formats(CsrMatrix const& matrix, FormatOptions const& options = {});
[[nodiscard]] std::vector<FormatEstimate> estimate_formats(Csr const& matrix, FormatOptions const& options = {});
/// The same in little time: where an estimate takes long (cod_sell) a lower bound, with at_least. `shape` is shape_of(matrix).
[[nodiscard]] std::vector<FormatEstimate> estimate_formats_quickly(Csr const& matrix, MatrixShape const& shape,
                                                                   FormatOptions const& options);
/// One row of estimate_formats(matrix, options).
[[nodiscard]] FormatEstimate estimate_format(Format format, Csr const& matrix, MatrixShape const& shape,
                                             FormatOptions const& options);
/// What to say when a matrix does not fit into `bytes_free`: the smallest admissible format if that fits, else what else helps.
[[nodiscard]] std::string advise_format(std::vector<FormatEstimate> const& estimates, std::int64_t bytes_free);

}  // namespace poisson
