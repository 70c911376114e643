#pragma once

#include "gpu/core/csr_matrix.hpp"
#include "gpu/core/host_vector.hpp"
#include "gpu/formats/coo.hpp"
#include "gpu/spectral/svd.hpp"

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace poisson::app {

/// Matrix Market files (Boisvert, Pozo, Remington, "The Matrix Market exchange formats", NISTIR 5935), plain or compressed with
/// gzip, which the content tells. Fields: real, integer and pattern (whose values are 1). Symmetries: general and symmetric (which
/// is expanded to both triangles). Comments and blank lines may stand anywhere after the banner, lines may end in CR LF, numbers
/// may have a leading + and Fortran's exponents.
///
/// Anything wrong with a file is an InputError without key, "FILE:LINE: what is wrong": unsupported kinds (complex,
/// hermitian, skew-symmetric matrices; dense ones where a system is read), indices out of range, entries above the
/// diagonal of a symmetric matrix, values that are not finite, fewer or more entries than announced, sizes that the file cannot
/// hold, damaged gzip. Memory is bounded by the size of the text, not by its header. Interrupted when an interrupt was
/// requested.

/// The entries as they stand in the file; of a symmetric matrix each entry below the diagonal is followed by its mirror image.
[[nodiscard]] CooMatrix read_matrix_market(std::filesystem::path const& path);
/// Reads the entries from uncompressed text in memory as read_matrix_market does from a file. Messages call the text `name`.
[[nodiscard]] CooMatrix parse_matrix_market(std::string_view text, std::string const& name);

/// A matrix of either layout: the entries of a coordinate file, or every value of an array (real and integer; general, or
/// symmetric and then expanded).
using AnyMatrix = std::variant<CooMatrix, DenseMatrix>;
[[nodiscard]] AnyMatrix read_any_matrix_market(std::filesystem::path const& path);
[[nodiscard]] AnyMatrix parse_any_matrix_market(std::string_view text, std::string const& name);

/// A vector: one column in array format, or in coordinate format, where missing entries are 0 and repeated ones are added.
[[nodiscard]] HostVector<double> read_matrix_market_vector(std::filesystem::path const& path);
[[nodiscard]] HostVector<double> parse_matrix_market_vector(std::string_view text, std::string const& name);

/// The text of a vector in array format; values read back to the same bits. Precondition: all are finite.
[[nodiscard]] std::string matrix_market_text(std::span<double const> vector);
/// Header and values (column by column) of an array, for matrices too large for one text.
[[nodiscard]] std::string matrix_market_array_header(std::int64_t n_rows, std::int64_t n_columns);
void append_matrix_market_values(std::string& text, std::span<double const> values);

}  // namespace poisson::app
