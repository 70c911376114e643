#include "gpu/formats/diagonals.hpp"

#include "gpu/core/memory.hpp"
#include "gpu/formats/kernel_matrix.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/conversion.hpp"

#include <cmath>
#include <numeric>
#include <sstream>

namespace poisson {

DiagonalStorage DiagonalStorage::convert(CsrView const& csr, Context& context, bool half, FormatOptions const& options) {
  auto const& kernels = kernels_for<ConversionKernels>(context);
  DiagonalStorage result;
  result.offsets = kernels.diagonals(context, csr, half);
  result.backend_offsets = Array<std::int32_t>(context, result.offsets);
  std::int64_t const size = csr.n_rows * static_cast<std::int64_t>(result.offsets.size());
  std::int64_t taken = 0;  // the same of low values
  result.entries = StoredEntries::convert(context, csr, options, size, [&](CsrView const& from, double* values) {
    taken = kernels.fill_diagonals(context, from, result.offsets, result.backend_offsets.data(), half, values);
  });
  if (taken > 0)
    result.padding_ratio = static_cast<double>(size) / static_cast<double>(taken);
  return result;
}

DiagonalStorage DiagonalStorage::copy_to(Context& target) const {
  return {offsets, backend_offsets.copy_to(target), entries.copy_to(target), padding_ratio};
}

CsrMatrix DiagonalStorage::to_csr(std::int64_t n_rows, std::int64_t n_columns, bool half) const {
  auto const count = static_cast<std::int64_t>(offsets.size());
  // Calls visit(column, place of the value) for what is stored of a row, by ascending column.
  auto const for_row = [&](std::int64_t row, auto const& visit) {
    auto const consider = [&](std::int64_t k, std::int64_t at, std::int64_t column) {
      std::int64_t const place = k * n_rows + at;
      if (double const value = entries.value(place); value != 0 || !std::signbit(value))
        visit(column, place);
    };
    for (std::int64_t j = 0; j < count; ++j) {
      std::int64_t const k = half ? count - 1 - j : j;
      std::int64_t const column = half ? row - offsets[static_cast<std::size_t>(k)] : row + offsets[static_cast<std::size_t>(k)];
      if (column >= 0 && column < n_columns)
        consider(k, row, column);
    }
    for (std::int64_t k = 1; half && k < count; ++k)
      if (std::int64_t const column = row + offsets[static_cast<std::size_t>(k)]; column < n_columns)
        consider(k, column, column);
  };
  CsrMatrix result;
  result.n_rows = n_rows;
  result.n_columns = n_columns;
  result.row_ptr.resize(static_cast<std::size_t>(n_rows) + 1);
  result.row_ptr[0] = 0;
#pragma omp parallel for schedule(static)
  for (std::int64_t row = 0; row < n_rows; ++row) {
    std::int64_t length = 0;
    for_row(row, [&](std::int64_t, std::int64_t) { ++length; });
    result.row_ptr[static_cast<std::size_t>(row) + 1] = length;
  }
  std::partial_sum(result.row_ptr.begin(), result.row_ptr.end(), result.row_ptr.begin());
  result.columns.resize(static_cast<std::size_t>(result.row_ptr.back()));
  result.values.resize(static_cast<std::size_t>(result.row_ptr.back()));
  if (entries.low_values.size() > 0)
    result.low_values.resize(result.values.size());
#pragma omp parallel for schedule(static)
  for (std::int64_t row = 0; row < n_rows; ++row) {
    auto e = static_cast<std::size_t>(result.row_ptr[static_cast<std::size_t>(row)]);
    for_row(row, [&](std::int64_t column, std::int64_t place) {
      result.columns[e] = static_cast<std::int32_t>(column);
      if (entries.low_values.size() > 0)
        result.low_values[e] = entries.low_values.data()[place];
      result.values[e++] = entries.value(place);
    });
  }
  return result;
}

FormatEstimate DiagonalStorage::estimate(Format format, MatrixShape const& shape, FormatOptions const& options,
                                         std::int64_t stored_diagonals, double entries, std::string const& what) {
  FormatEstimate result;
  result.format = format;
  if (shape.n_diagonals == 0 && shape.nnz > 0) {
    result.refusal = std::string(name_of(format)) + " needs a matrix of few diagonals, and this one has many; use csr";
    return result;
  }
  std::int64_t const value = bytes_of_value(options.precision);
  std::int64_t const csr_bytes = CsrMatrix::csr_bytes(shape.n_rows, shape.nnz) + (value - 8) * shape.nnz;
  // The number of stored values is a floating-point number first: many diagonals of a huge matrix overflow 64 bits.
  double const stored = static_cast<double>(shape.n_rows) * static_cast<double>(stored_diagonals);
  result.bytes =
      static_cast<double>(value) * stored > 9e18 ? INT64_MAX / 2 : value * shape.n_rows * stored_diagonals + 4 * stored_diagonals;
  result.bytes_per_product = result.bytes + 16 * shape.n_rows;
  if (shape.nnz > 0)
    result.padding_ratio = stored / entries;
  if (result.bytes > csr_bytes) {
    std::ostringstream text;
    text.precision(3);
    text << name_of(format) << " would store " << stored_diagonals << " diagonals of " << shape.n_rows << " values, "
         << result.padding_ratio << " times the " << what << ": " << format_bytes(result.bytes) << " where csr takes "
         << format_bytes(csr_bytes) << "; use csr";
    result.refusal = text.str();
  }
  return result;
}

}  // namespace poisson
