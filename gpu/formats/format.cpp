#include "gpu/formats/format.hpp"

#include "gpu/core/error.hpp"
#include "gpu/core/memory.hpp"
#include "gpu/core/place_text.hpp"
#include "gpu/formats/cod_sell.hpp"
#include "gpu/formats/cost.hpp"
#include "gpu/formats/csr.hpp"
#include "gpu/formats/registry.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/conversion.hpp"
#include "gpu/kernels/symmetry.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <chrono>
#include <limits>
#include <sstream>

namespace poisson {

namespace {

FormatEntry const& entry_of(Format format) {
  auto const entries = format_registry();
  auto const found = std::find_if(entries.begin(), entries.end(), [&](FormatEntry const& e) { return e.format == format; });
  assert(found != entries.end());
  return *found;
}

CsrAnalysis analyse(Csr const& matrix, bool symmetry) {
  return kernels_for<ConversionKernels>(matrix.context()).analyse(matrix.context(), matrix.view(), symmetry);
}

MatrixShape shape_of(Csr const& matrix, CsrAnalysis const& found) {
  return {matrix.n_rows(), matrix.view().nnz, found.n_diagonals, found.symmetric};
}

std::string asymmetry_message(Format format, Asymmetry const& a) {
  std::ostringstream text;
  text.precision(17);
  text << name_of(format) << " holds symmetric matrices only, and this one has " << a.value << " in row " << a.row + 1
       << ", column " << a.column + 1 << " but " << a.mirror << " in " << place_text(a.column, a.row) << "; use csr";
  return text.str();
}

bool is_power_of_two(std::int64_t value, std::int64_t largest) {
  return value >= 1 && value <= largest && std::has_single_bit(static_cast<std::uint64_t>(value));
}

void require_valid(Format format, FormatOptions const& options, Context const& context) {
  if (format == Format::matrix_free)
    throw InputError("format", "matrix_free is made from a problem, and there is only a matrix here; use csr, or auto");
  if (options.conversion == Conversion::device && context.backend() == Backend::cpu)
    throw InputError("conversion", "found device, but the matrix will live on the cpu backend; allowed there: automatic, "
                                   "sequential, host; or use the cuda backend");
  if (!is_power_of_two(options.slice_size, 1024))
    throw InputError("slice_size", "found " + std::to_string(options.slice_size) +
                                       "; allowed: a power of two from 1 to 1024; 32 suits most matrices");
  if (format == Format::cod_sell && !CodSell::has_slice_size(options.slice_size))
    throw InputError("slice_size", "found " + std::to_string(options.slice_size) +
                                       "; allowed with cod_sell: a power of two from 2 to 256; 32 suits most matrices");
  if (options.sigma.value_or(0) < 0)
    throw InputError("sigma", "found " + std::to_string(*options.sigma) +
                                  "; allowed: a number of rows, or 0 for all of them; 1 leaves the rows in place");
  if (options.threads_per_row != 0 && !is_power_of_two(options.threads_per_row, 32))
    throw InputError("threads_per_row", "found " + std::to_string(options.threads_per_row) +
                                            "; allowed: a power of two from 1 to 32, or 0 for the format's own choice");
  auto const require_range = [](char const* key, int value, int smallest, char const* zero) {
    if (value < smallest || value > 64)
      throw InputError(key, "found " + std::to_string(value) + "; allowed: " + std::to_string(smallest) + " to 64" + zero);
  };
  require_range("pair_window", options.pair_window, 1, "; 4 suits most matrices");
  require_range("merge_window", options.merge_window, 1, "; 16 suits most matrices");
  require_range("base_candidates", options.base_candidates, 0, ", where 0 takes log2 of the row's length, and one");
}

/// Shapes do not know the columns; they count x as long as y.
FormatEstimate with_columns(FormatEstimate estimate, Csr const& matrix) {
  estimate.bytes_per_product += 8 * (matrix.n_columns() - matrix.n_rows());
  return estimate;
}

FormatEstimate exact_estimate(FormatEntry const& entry, Csr const& matrix, MatrixShape const& shape, FormatOptions const& options) {
  if (entry.estimate_exact != nullptr)
    return entry.estimate_exact(matrix, options);
  return with_columns(entry.estimate(shape, options), matrix);
}

FormatEstimate quick_estimate(FormatEntry const& entry, Csr const& matrix, MatrixShape const& shape, FormatOptions const& options) {
  if (entry.estimate_lower_bound != nullptr)
    return with_columns(entry.estimate_lower_bound(shape, options), matrix);
  return exact_estimate(entry, matrix, shape, options);
}

/// `estimate(entry)`, with the refusal for want of symmetry.
template <class Estimate>
FormatEstimate estimate_one(FormatEntry const& entry, bool symmetric, Estimate const& estimate) {
  FormatEstimate result = estimate(entry);
  if (entry.symmetric_only && !symmetric)
    result.refusal = std::string(name_of(entry.format)) + " holds symmetric matrices only; use csr";
  return result;
}

template <class Estimate>
std::vector<FormatEstimate> estimate_all(bool symmetric, Estimate const& estimate) {
  std::vector<FormatEstimate> result;
  for (FormatEntry const& entry : format_registry())
    result.push_back(estimate_one(entry, symmetric, estimate));
  return result;
}

std::vector<FormatEstimate> exact_estimates(Csr const& matrix, MatrixShape const& shape, FormatOptions const& options) {
  return estimate_all(shape.symmetric, [&](FormatEntry const& entry) { return exact_estimate(entry, matrix, shape, options); });
}

/// A matrix on the host that its owner keeps.
Csr borrowed(CsrMatrix const& matrix, Context& host) {
  return Csr(std::shared_ptr<CsrMatrix const>(std::shared_ptr<void>(), &matrix), host);
}

/// Throws InputError when the format holds symmetric matrices only, and this is none.
void require_symmetry(FormatEntry const& entry, Csr const& matrix, CsrAnalysis const& found) {
  if (!entry.symmetric_only || found.symmetric)
    return;
  if (matrix.n_rows() != matrix.n_columns())
    throw InputError("format", std::string(name_of(entry.format)) + " holds square matrices only, and this one has " +
                                   std::to_string(matrix.n_rows()) + " rows and " + std::to_string(matrix.n_columns()) +
                                   " columns; use csr");
  bool const on_host = matrix.context().backend() == Backend::cpu;
  CsrMatrix const copy = on_host ? CsrMatrix() : matrix.to_csr();
  if (auto const asymmetry = find_symmetry(on_host ? matrix.view() : view_of(copy)).first)
    throw InputError("format", asymmetry_message(entry.format, *asymmetry));
}

/// Throws OutOfMemoryError, with a format that would fit, when `target` has no room for so many bytes.
void require_fits(FormatEntry const& entry, std::string const& how, std::int64_t bytes, Csr const& matrix, CsrAnalysis found,
                  FormatOptions const& options, Context const& target) {
  if (target.backend() == Backend::cpu)
    return;
  std::int64_t const free = target.description().memory_free;
  if (bytes <= free)
    return;
  found.symmetric = found.symmetric || analyse(matrix, true).symmetric;
  require_memory(target, bytes, "a matrix in " + std::string(name_of(entry.format)) + how,
                 advise_format(exact_estimates(matrix, shape_of(matrix, found), options), free));
}

/// Throws what makes the conversion impossible: InputError when the format refuses the matrix, OutOfMemoryError when `target`,
/// where the result will be, has no room for it.
CsrAnalysis require_possible(FormatEntry const& entry, Csr const& matrix, FormatOptions const& options, Context const& target) {
  CsrAnalysis found = analyse(matrix, entry.symmetric_only);
  require_symmetry(entry, matrix, found);
  // For cod_sell the estimate is a lower bound: what does not fit even so is refused. The rest shows when the matrix is converted.
  FormatEstimate const estimate = quick_estimate(entry, matrix, shape_of(matrix, found), options);
  if (!estimate.refusal.empty())
    throw InputError("format", estimate.refusal);
  if (!entry.shares_csr || &target != &matrix.context())
    require_fits(entry, estimate.is_lower_bound ? ", at its best compression," : "", estimate.bytes, matrix, found, options,
                 target);
  return found;
}

std::unique_ptr<Matrix> convert(FormatEntry const& entry, Csr const& matrix, FormatOptions const& options,
                                CsrAnalysis const& found) {
  auto const start = std::chrono::steady_clock::now();
  auto result = entry.convert(matrix, options);
  matrix.context().synchronize();
  result->convert_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  result->row_not_finite = found.row_not_finite;
  result->asymmetry = entry.symmetric_only ? found.asymmetry : 0;
  return result;
}

/// Converted on the host, and copied to `target`.
std::unique_ptr<Matrix> convert_for(Context& target, FormatEntry const& entry, Csr const& matrix, FormatOptions const& options,
                                    CsrAnalysis const& found) {
  auto const result = convert(entry, matrix, options, found);
  require_fits(entry, "", result->bytes(), matrix, found, options, target);
  return result->copy_to(target);
}

/// Whether to convert on the device that the matrix will live on.
bool on_device(FormatOptions const& options) {
  return options.conversion == Conversion::automatic || options.conversion == Conversion::device;
}

/// `pick(source, bytes)` is asked for the format where the conversion will happen; `bytes` are those that the result may take.
template <class Pick>
std::unique_ptr<Matrix> make_picked(Pick const& pick, std::shared_ptr<CsrMatrix const> csr, Context& context,
                                    FormatOptions const& options) {
  if (context.backend() == Backend::cpu) {
    Csr const source(std::move(csr), context, options.precision);
    return make_matrix(pick(source, std::numeric_limits<std::int64_t>::max()), source, options);
  }
  if (on_device(options))
    try {
      require_memory(context, csr->bytes(), "a matrix in csr, which the device converts from,",
                     "set conversion to automatic, and the host converts");
      Csr const source(csr, context, options.precision);
      // Beside CSR, or in its place when the host converts.
      FormatEntry const& entry = entry_of(pick(source, context.description().memory_free + csr->bytes()));
      CsrAnalysis const found = require_possible(entry, source, options, context);
      auto result = convert(entry, source, options, found);
      result->transfer_seconds = source.transfer_seconds;
      return result;
    } catch (OutOfMemoryError const&) {
      if (options.conversion == Conversion::device)
        throw;
    }
  auto const host = make_context(Backend::cpu);
  Csr const source(std::move(csr), *host, options.precision);
  FormatEntry const& entry = entry_of(pick(source, context.description().memory_free));
  return convert_for(context, entry, source, options, require_possible(entry, source, options, context));
}

}  // namespace

MatrixShape shape_of(CsrMatrix const& matrix) {
  auto const host = make_context(Backend::cpu);
  return shape_of(borrowed(matrix, *host));
}

MatrixShape shape_of(Csr const& matrix) {
  return shape_of(matrix, analyse(matrix, true));
}

std::vector<FormatEstimate> estimate_formats(MatrixShape const& shape, FormatOptions const& options) {
  return estimate_all(shape.symmetric, [&](FormatEntry const& entry) { return entry.estimate(shape, options); });
}

std::vector<FormatEstimate> estimate_formats(CsrMatrix const& matrix, FormatOptions const& options) {
  auto const host = make_context(Backend::cpu);
  return estimate_formats(borrowed(matrix, *host), options);
}

std::vector<FormatEstimate> estimate_formats(Csr const& matrix, FormatOptions const& options) {
  return exact_estimates(matrix, shape_of(matrix), options);
}

std::vector<FormatEstimate> estimate_formats_quickly(Csr const& matrix, MatrixShape const& shape, FormatOptions const& options) {
  return estimate_all(shape.symmetric, [&](FormatEntry const& entry) { return quick_estimate(entry, matrix, shape, options); });
}

FormatEstimate estimate_format(Format format, Csr const& matrix, MatrixShape const& shape, FormatOptions const& options) {
  return estimate_one(entry_of(format), shape.symmetric,
                      [&](FormatEntry const& entry) { return exact_estimate(entry, matrix, shape, options); });
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
  require_valid(format, options, context);
  return make_picked([format](Csr const&, std::int64_t) { return format; }, std::move(csr), context, options);
}

std::unique_ptr<Matrix> make_matrix(Forecast const& forecast, std::shared_ptr<CsrMatrix const> csr, Context& context,
                                    FormatOptions const& options, FormatChoice& choice) {
  require_valid(Format::csr, options, context);
  auto const pick = [&](Csr const& source, std::int64_t bytes_free) {
    choice = choose_format(source, options, context.backend(), forecast, bytes_free);
    return choice.format;
  };
  return make_picked(pick, std::move(csr), context, options);
}

std::unique_ptr<Matrix> make_matrix(Format format, Csr const& source, FormatOptions const& options) {
  Context& context = source.context();
  require_valid(format, options, context);
  FormatEntry const& entry = entry_of(format);
  CsrAnalysis const found = require_possible(entry, source, options, context);
  if (context.backend() == Backend::cpu)
    return convert(entry, source, options, found);
  if (on_device(options))
    try {
      return convert(entry, source, options, found);
    } catch (OutOfMemoryError const&) {  // no room for scratch
      if (options.conversion == Conversion::device)
        throw;
    }
  auto const host = make_context(Backend::cpu);
  auto const copy = source.copy_to(*host);
  auto result = convert_for(context, entry, static_cast<Csr const&>(*copy), options, found);
  result->transfer_seconds += copy->transfer_seconds;
  return result;
}

}  // namespace poisson
