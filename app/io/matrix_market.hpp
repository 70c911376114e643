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
/// gzip, as the content shows. Fields real, integer and pattern (ones); general and symmetric (expanded).
/// Comments and blank lines may stand anywhere after the banner, lines may end in CR LF, numbers may have a leading + and Fortran's
/// exponents.
///
/// Everything that can be wrong with a file is an InputError without key, "FILE:LINE: what is wrong": unsupported kinds (complex,
/// hermitian, skew-symmetric matrices; dense ones where a system is read), indices out of range, entries above the
/// diagonal of a symmetric matrix, values that are not finite, fewer or more entries than announced, sizes that the file cannot
/// hold, damaged gzip. Memory is bounded by the size of the text, whatever its header announces. Interrupted when an interrupt was
/// requested.

/// The entries as they stand in the file; of a symmetric matrix each entry below the diagonal is followed by its mirror image.
[[nodiscard]] CooMatrix read_matrix_market(std::filesystem::path const& path);
/// The same from text that is in memory and not compressed; `name` stands for the file in messages.
[[nodiscard]] CooMatrix parse_matrix_market(std::string_view text, std::string const& name);

/// A matrix of either layout: the entries of a coordinate file, or every value of an array (real and integer; general, or
/// symmetric and then expanded).
using AnyMatrix = std::variant<CooMatrix, DenseMatrix>;
[[nodiscard]] AnyMatrix read_any_matrix_market(std::filesystem::path const& path);
[[nodiscard]] AnyMatrix parse_any_matrix_market(std::string_view text, std::string const& name);

/// A vector, for instance a right-hand side: one column in array format, or in coordinate format, where what is not given is 0 and
/// what is given twice is added.
[[nodiscard]] HostVector<double> read_matrix_market_vector(std::filesystem::path const& path);
[[nodiscard]] HostVector<double> parse_matrix_market_vector(std::string_view text, std::string const& name);

/// One column in array format; every value reads back to the same bits. Precondition: all values are finite.
[[nodiscard]] std::string matrix_market_text(std::span<double const> vector);
/// The two pieces that an array consists of, for matrices too large for one text: values column by column.
[[nodiscard]] std::string matrix_market_array_header(std::int64_t n_rows, std::int64_t n_columns);
void append_matrix_market_values(std::string& text, std::span<double const> values);

}  // namespace poisson::app
