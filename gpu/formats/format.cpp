#include "gpu/formats/format.hpp"

#include "gpu/core/error.hpp"
#include "gpu/core/memory.hpp"
#include "gpu/formats/registry.hpp"
#include "gpu/formats/symmetry.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cassert>
#include <sstream>

namespace poisson {

namespace {

FormatEntry const& entry_of(Format format) {
  auto const entries = format_registry();
  auto const found = std::find_if(entries.begin(), entries.end(), [&](FormatEntry const& e) { return e.format == format; });
  assert(found != entries.end());
  return *found;
}

std::int64_t count_diagonals(CsrMatrix const& matrix) {
  // Racing threads store the same value; looking first keeps the cache lines shared.
  std::vector<std::atomic<char>> seen(static_cast<std::size_t>(matrix.n_rows + matrix.n_columns));
#pragma omp parallel for schedule(static)
  for (std::int64_t row = 0; row < matrix.n_rows; ++row)
    for (std::int64_t e = matrix.row_ptr[row]; e < matrix.row_ptr[row + 1]; ++e) {
      auto& flag = seen[static_cast<std::size_t>(matrix.columns[e] - row + matrix.n_rows)];
      if (flag.load(std::memory_order_relaxed) == 0)
        flag.store(1, std::memory_order_relaxed);
    }
  return std::count_if(seen.begin(), seen.end(), [](auto const& flag) { return flag.load(std::memory_order_relaxed) != 0; });
}

std::int64_t first_row_not_finite(CsrMatrix const& matrix) {
  std::int64_t first = matrix.n_rows;
#pragma omp parallel for schedule(static) reduction(min : first)
  for (std::int64_t row = 0; row < matrix.n_rows; ++row) {
    // 0 * v is 0 for every finite v, and NaN otherwise: a sum without branches.
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t e = matrix.row_ptr[row]; e < matrix.row_ptr[row + 1]; ++e)
      sum += 0 * matrix.values[e];
    if (sum != 0)
      first = std::min(first, row);
  }
  return first < matrix.n_rows ? first : -1;
}

std::string asymmetry_message(Format format, Asymmetry const& a) {
  std::ostringstream text;
  text.precision(17);
  text << name_of(format) << " holds symmetric matrices only, and this one has a(" << a.row << ", " << a.column << ") = " << a.value
       << " but a(" << a.column << ", " << a.row << ") = " << a.mirror << "; use csr";
  return text.str();
}

bool is_power_of_two(std::int64_t value, std::int64_t largest) {
  return value >= 1 && value <= largest && std::has_single_bit(static_cast<std::uint64_t>(value));
}

void require_valid(FormatOptions const& options) {
  if (!is_power_of_two(options.slice_size, 1024))
    throw InputError("matrix.slice_size", "found " + std::to_string(options.slice_size) +
                                              "; allowed: a power of two from 1 to 1024; 32 suits most matrices");
  if (options.sigma < 0)
    throw InputError("matrix.sigma", "found " + std::to_string(options.sigma) +
                                         "; allowed: a number of rows, or 0 for all of them; 1 leaves the rows in place");
  if (options.threads_per_row != 0 && !is_power_of_two(options.threads_per_row, 32))
    throw InputError("matrix.threads_per_row", "found " + std::to_string(options.threads_per_row) +
                                                   "; allowed: a power of two from 1 to 32, or 0 for the format's own choice");
}

FormatEstimate exact_estimate(FormatEntry const& entry, CsrMatrix const& matrix, MatrixShape const& shape,
                              FormatOptions const& options) {
  FormatEstimate result = entry.estimate_exact != nullptr ? entry.estimate_exact(matrix, options) : entry.estimate(shape, options);
  // Shapes do not know the columns; they count x as long as y.
  if (entry.estimate_exact == nullptr)
    result.bytes_per_product += 8 * (matrix.n_columns - matrix.n_rows);
  return result;
}

/// `estimate(entry)` for every format, with refusals for want of symmetry.
template <class Estimate>
std::vector<FormatEstimate> estimate_all(bool symmetric, Estimate const& estimate) {
  std::vector<FormatEstimate> result;
  for (FormatEntry const& entry : format_registry()) {
    result.push_back(estimate(entry));
    if (entry.symmetric_only && !symmetric)
      result.back().refusal = std::string(name_of(entry.format)) + " holds symmetric matrices only; use csr";
  }
  return result;
}

std::vector<FormatEstimate> exact_estimates(CsrMatrix const& matrix, MatrixShape const& shape, FormatOptions const& options) {
  return estimate_all(shape.symmetric, [&](FormatEntry const& entry) { return exact_estimate(entry, matrix, shape, options); });
}

}  // namespace

MatrixShape shape_of(CsrMatrix const& matrix) {
  return {matrix.n_rows, matrix.nnz(), count_diagonals(matrix),
          matrix.n_rows == matrix.n_columns && !find_asymmetry(matrix).has_value()};
}

std::vector<FormatEstimate> estimate_formats(MatrixShape const& shape, FormatOptions const& options) {
  return estimate_all(shape.symmetric, [&](FormatEntry const& entry) { return entry.estimate(shape, options); });
}

std::vector<FormatEstimate> estimate_formats(CsrMatrix const& matrix, FormatOptions const& options) {
  return exact_estimates(matrix, shape_of(matrix), options);
}

Format choose_format(std::vector<FormatEstimate> const& estimates) {
  FormatEstimate const* best = nullptr;
  for (FormatEstimate const& estimate : estimates)
    if (estimate.refusal.empty() && (best == nullptr || estimate.bytes_per_product < best->bytes_per_product))
      best = &estimate;
  assert(best != nullptr && "csr holds every matrix");
  return best->format;
}

std::string advise_format(std::vector<FormatEstimate> const& estimates, std::int64_t bytes_free) {
  FormatEstimate const* best = nullptr;
  for (FormatEstimate const& estimate : estimates)
    if (estimate.refusal.empty() && (best == nullptr || estimate.bytes < best->bytes))
      best = &estimate;
  if (best == nullptr || best->bytes > bytes_free)
    return "no format fits: use a coarser mesh, a device with more memory, or the cpu backend";
  return std::string(name_of(best->format)) + " would fit with " + format_bytes(best->bytes);
}

std::unique_ptr<Matrix> make_matrix(Format format, std::shared_ptr<CsrMatrix const> csr, Context& context,
                                    FormatOptions const& options) {
  require_valid(options);
  FormatEntry const& entry = entry_of(format);
  MatrixShape shape{csr->n_rows, csr->nnz(), count_diagonals(*csr), true};
  if (entry.symmetric_only) {
    if (csr->n_rows != csr->n_columns)
      throw InputError("matrix.format", std::string(name_of(format)) + " holds square matrices only, and this one has " +
                                            std::to_string(csr->n_rows) + " rows and " + std::to_string(csr->n_columns) +
                                            " columns; use csr");
    if (auto const asymmetry = find_asymmetry(*csr))
      throw InputError("matrix.format", asymmetry_message(format, *asymmetry));
  }
  FormatEstimate const estimate = exact_estimate(entry, *csr, shape, options);
  if (!estimate.refusal.empty())
    throw InputError("matrix.format", estimate.refusal);
  if (context.backend() != Backend::cpu) {
    shape.symmetric = entry.symmetric_only || (csr->n_rows == csr->n_columns && !find_asymmetry(*csr));
    require_memory(context, estimate.bytes, "a matrix in " + std::string(name_of(format)),
                   advise_format(exact_estimates(*csr, shape, options), context.description().memory_free));
  }
  auto matrix = entry.make(csr, context, options);
  matrix->row_not_finite = first_row_not_finite(*csr);
  return matrix;
}

}  // namespace poisson
