#pragma once

#include "gpu/core/csr_matrix.hpp"
#include "gpu/core/names.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace poisson {

/// matrix_free stores no matrix: it is made from a problem (gpu/elements), and nothing is converted to it.
enum class Format { csr, crs_t, sell_c_sigma, cod_sell, cds, half_cds, matrix_free };
template <>
struct Names<Format> {
  static constexpr std::array<Named<Format>, 7> values{{{Format::csr, "csr"},
                                                        {Format::crs_t, "crs_t"},
                                                        {Format::sell_c_sigma, "sell_c_sigma"},
                                                        {Format::cod_sell, "cod_sell"},
                                                        {Format::cds, "cds"},
                                                        {Format::half_cds, "half_cds"},
                                                        {Format::matrix_free, "matrix_free"}}};
};

/// Formats that a matrix can be converted to: the first so many.
inline constexpr std::size_t n_stored_formats = Names<Format>::values.size() - 1;

/// Where a matrix is converted from CSR:
/// `sequential`  by one thread of the host, the reference algorithm (of cod_sell; for other formats the same as `host`),
/// `host`        by all threads of the host,
/// `device`      on the device that the matrix will live on,
/// `automatic`   on that device where its memory holds CSR, the result and scratch at once, else on the host.
enum class Conversion { automatic, sequential, host, device };
template <>
struct Names<Conversion> {
  static constexpr std::array<Named<Conversion>, 4> values{{{Conversion::automatic, "automatic"},
                                                            {Conversion::sequential, "sequential"},
                                                            {Conversion::host, "host"},
                                                            {Conversion::device, "device"}}};
};

/// The precision in which entries are stored, whatever solvers compute in: 8 bytes, 16 in double_double, or 4 in single, to which
/// they are rounded. (Single is for preconditioners. It has no name, because users cannot choose it.)
enum class MatrixPrecision { double_, double_double, single };
template <>
struct Names<MatrixPrecision> {
  static constexpr std::array<Named<MatrixPrecision>, 2> values{
      {{MatrixPrecision::double_, "double"}, {MatrixPrecision::double_double, "double_double"}}};
};
[[nodiscard]] constexpr std::int64_t bytes_of_value(MatrixPrecision precision) {
  return precision == MatrixPrecision::single ? 4 : precision == MatrixPrecision::double_ ? 8 : 16;
}

/// Parameters of the formats. A format ignores those that are not its own.
struct FormatOptions {
  int slice_size = 32;  ///< C, rows of a slice: a power of two, from 1 to 1024 for sell_c_sigma, from 2 to 256 for cod_sell
  /// Rows are sorted by length within windows of so many rows: 1 keeps their order, 0 sorts all. std::nullopt: the format's
  /// default, 1 for sell_c_sigma and 0 for cod_sell.
  std::optional<std::int64_t> sigma = std::nullopt;
  int threads_per_row = 0;  ///< a power of two from 1 to 32; 0: chosen by the format's rule
  // cod_sell looks for rows with a common pattern (Murakami 2024, Algorithms 4 and 5); the defaults are the thesis's.
  int pair_window = 4;      ///< rows that follow a row and may become its partner, 1 to 64
  int merge_window = 16;    ///< groups that follow a group and may be merged with it, 1 to 64
  int base_candidates = 0;  ///< leading columns of a row that may be its base, up to 64; 0: floor(log2(its length)) + 1
  Conversion conversion = Conversion::automatic;
  MatrixPrecision precision = MatrixPrecision::double_;
};

/// What a given matrix would take in one format: a row of the table that `auto` chooses from.
struct FormatEstimate {
  Format format{};
  std::int64_t bytes = 0;              ///< of the stored matrix
  std::int64_t conversion_bytes = 0;   ///< that its conversion takes for a while besides CSR and the result
  std::int64_t bytes_per_product = 0;  ///< compulsory: every stored value and index once, x once, y once, both in double
  double padding_ratio = 1;     ///< stored values over the non-zeros that the format must hold (half_cds: of the lower triangle)
  double shared_columns = 0;    ///< of cod_sell: the fraction of columns that dictionaries save
  bool is_lower_bound = false;  ///< the bytes are a lower bound, which was enough to rule the format out
  double product_seconds = 0, conversion_seconds = 0;  ///< predicted, where predict_seconds (formats/cost.hpp) filled them in
  std::string refusal;                                 ///< why the format cannot or should not hold this matrix; empty when it can
};

class Csr;

/// What estimates of bytes depend on; known before a matrix is assembled.
struct MatrixShape {
  std::int64_t n_rows = 0;
  std::int64_t nnz = 0;
  std::int64_t n_diagonals = 0;  ///< distinct values of column - row; 0: not known, taken as many
  bool symmetric = true;
  /// n_lattices and lattice_nodes are for trilinear elements on lattices: how many lattices there are, and their nodes a side.
  /// half_cds then stores diagonals of each lattice.
  std::int64_t n_lattices = 0, lattice_nodes = 0;
  /// n_cells and order are for elements whose system may be made matrix_free: the number of cells, and the elements' order. 0: it
  /// may not.
  std::int64_t n_cells = 0;
  int order = 0;
  /// stencil_faces is for trilinear elements with constant k on a box, of which matrix_free stores the rows of nodes on faces
  /// alone: it is the number of these rows. 0: the elements are others.
  std::int64_t stencil_faces = 0;
  /// label_cells is for trilinear elements on a box of which matrix_free stores a label for every cell alone: it is the number of
  /// cells. 0: the elements are others.
  std::int64_t label_cells = 0;
};

[[nodiscard]] MatrixShape shape_of(CsrMatrix const& matrix);
[[nodiscard]] MatrixShape shape_of(Csr const& matrix);
/// Estimates every format, in the order of Format, from the shape alone: rows are taken as equally long.
[[nodiscard]] std::vector<FormatEstimate> estimate_formats(MatrixShape const& shape, FormatOptions const& options = {});
/// Estimates every format from the matrix. Bytes are exactly those that make_matrix would allocate, but a prediction for cod_sell.
[[nodiscard]] std::vector<FormatEstimate> estimate_formats(CsrMatrix const& matrix, FormatOptions const& options = {});
[[nodiscard]] std::vector<FormatEstimate> estimate_formats(Csr const& matrix, FormatOptions const& options = {});
/// Estimates every format from the matrix in little time. Where an estimate takes long (cod_sell), it is a lower bound.
/// Precondition: `shape` is shape_of(matrix).
[[nodiscard]] std::vector<FormatEstimate> estimate_formats_quickly(Csr const& matrix, MatrixShape const& shape,
                                                                   FormatOptions const& options);
/// Returns one row of estimate_formats(matrix, options).
[[nodiscard]] FormatEstimate estimate_format(Format format, Csr const& matrix, MatrixShape const& shape,
                                             FormatOptions const& options);
/// Advice for the message that a matrix does not fit into `bytes_free` bytes: the smallest format if that fits, else what may help.
[[nodiscard]] std::string advise_format(std::vector<FormatEstimate> const& estimates, std::int64_t bytes_free);

}  // namespace poisson
