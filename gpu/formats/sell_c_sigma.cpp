#include "gpu/formats/sell_c_sigma.hpp"

#include "gpu/formats/csr.hpp"
#include "gpu/formats/half_slices.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/conversion.hpp"

#include <numeric>

namespace poisson {

namespace {

struct Layout {
  Array<std::int32_t> rows;  ///< empty when all rows are in place
  Array<std::int64_t> slice_ptr;
  std::int64_t stored = 0;
};

std::int64_t slices_of(std::int64_t n_rows, std::int64_t c) {
  return (n_rows + c - 1) / c;
}

std::int64_t sigma_of(FormatOptions const& options) {
  return options.sigma.value_or(1);
}

Layout layout_of(Csr const& csr, FormatOptions const& options) {
  auto const& kernels = kernels_for<ConversionKernels>(csr.context());
  Layout layout;
  if (sigma_of(options) != 1)
    layout.rows = kernels.rows_by_length(csr.context(), csr.view(), sigma_of(options));
  layout.slice_ptr = kernels.slice_ptr(csr.context(), csr.view(), layout.rows.data(), options.slice_size);
  csr.context().download(&layout.stored, layout.slice_ptr.data() + layout.slice_ptr.size() - 1, sizeof layout.stored);
  return layout;
}

FormatEstimate estimate_of(std::int64_t n_rows, std::int64_t n_columns, std::int64_t nnz, std::int64_t stored,
                           FormatOptions const& options) {
  FormatEstimate result;
  result.format = Format::sell_c_sigma;
  result.bytes = (4 + bytes_of_value(options.precision)) * stored + 8 * (slices_of(n_rows, options.slice_size) + 1) +
                 (sigma_of(options) == 1 ? 0 : 4 * n_rows);
  result.bytes_per_product = result.bytes + 8 * (n_rows + n_columns);
  if (nnz > 0)
    result.padding_ratio = static_cast<double>(stored) / static_cast<double>(nnz);
  return result;
}

}  // namespace

FormatEstimate SellCSigma::estimate(MatrixShape const& shape, FormatOptions const& options) {
  std::int64_t const length = shape.n_rows > 0 ? (shape.nnz + shape.n_rows - 1) / shape.n_rows : 0;
  std::int64_t const places = slices_of(shape.n_rows, options.slice_size) * options.slice_size;
  return estimate_of(shape.n_rows, shape.n_rows, shape.nnz, places * length, options);
}

FormatEstimate SellCSigma::estimate_exact(Csr const& matrix, FormatOptions const& options) {
  return estimate_of(matrix.n_rows(), matrix.n_columns(), matrix.view().nnz, layout_of(matrix, options).stored, options);
}

std::unique_ptr<Matrix> SellCSigma::convert(Csr const& csr, FormatOptions const& options) {
  Context& context = csr.context();
  Layout layout = layout_of(csr, options);
  Array<std::int32_t> columns(context, layout.stored);
  SliceLayout const slices{options.slice_size, layout.rows.data(), layout.slice_ptr.data()};
  auto const fill = [&](CsrView const& from, double* to) {
    kernels_for<ConversionKernels>(context).fill_slices(context, from, slices, columns.data(), to);
  };
  StoredEntries entries = StoredEntries::convert(context, csr.view(), options, layout.stored, fill);
  SellView view;
  view.n_rows = csr.n_rows();
  view.n_slices = slices_of(csr.n_rows(), options.slice_size);
  view.slice_size = options.slice_size;
  view.longest_row = csr.view().longest_row;
  double const padding = csr.view().nnz > 0 ? static_cast<double>(layout.stored) / static_cast<double>(csr.view().nnz) : 1;
  return std::unique_ptr<Matrix>(new SellCSigma(
      context, view, csr.n_columns(), padding,
      std::make_shared<SlicePattern const>(SlicePattern{std::move(layout.rows), std::move(layout.slice_ptr), std::move(columns)}),
      std::move(entries)));
}

SellCSigma::SellCSigma(Context& context, SellView const& like, std::int64_t n_columns, double padding_ratio,
                       std::shared_ptr<SlicePattern const> pattern, StoredEntries entries)
    : KernelMatrix(context, like),
      pattern_(std::move(pattern)),
      entries_(std::move(entries)),
      n_columns_(n_columns),
      padding_ratio_(padding_ratio) {
  view_.slice_ptr = pattern_->slice_ptr.data();
  view_.rows = pattern_->rows.data();
  view_.columns = pattern_->columns.data();
  entries_.set_pointers(view_);
}

std::unique_ptr<Matrix> SellCSigma::copied_to(Context& target) const {
  auto copy = std::make_shared<SlicePattern const>(
      SlicePattern{pattern_->rows.copy_to(target), pattern_->slice_ptr.copy_to(target), pattern_->columns.copy_to(target)});
  return std::unique_ptr<Matrix>(
      new SellCSigma(target, view_, n_columns_, padding_ratio_, std::move(copy), entries_.copy_to(target)));
}

std::unique_ptr<Matrix> SellCSigma::in_single() const {
  if (precision() != MatrixPrecision::double_)
    return nullptr;
  return std::unique_ptr<Matrix>(
      new SellCSigma(context(), view_, n_columns_, padding_ratio_, pattern_, entries_.in_single(context())));
}

std::unique_ptr<Matrix> SellCSigma::in_half() const {
  if (context().backend() == Backend::cpu || precision() != MatrixPrecision::double_ || view_.rows != nullptr ||
      view_.slice_size != HalfSlicesView::slice_size)
    return nullptr;
  return std::make_unique<HalfSlices>(context(), view_, pattern_, padding_ratio_);
}

std::unique_ptr<Csr> SellCSigma::as_csr() const {
  if (precision() != MatrixPrecision::double_)
    return nullptr;
  Array<std::int64_t> row_ptr(context(), view_.n_rows + 1);
  Array<std::int32_t> columns;
  Array<double> values;
  kernels_for<ConversionKernels>(context()).csr_from_slices(
      context(), view_.n_rows, {view_.slice_size, view_.rows, view_.slice_ptr}, view_.columns, view_.values, [&](std::int64_t nnz) {
        columns = Array<std::int32_t>(context(), nnz);
        values = Array<double>(context(), nnz);
        return CsrTarget{row_ptr.data(), columns.data(), values.data()};
      });
  return std::make_unique<Csr>(context(), n_columns_, std::move(row_ptr), std::move(columns), std::move(values));
}

CsrMatrix SellCSigma::host_csr() const {
  std::int64_t const c = view_.slice_size;
  // Calls visit(row, first, end) with where the entries of a place lie, C apart.
  auto const for_places = [&](auto const& visit) {
#pragma omp parallel for schedule(static)
    for (std::int64_t place = 0; place < view_.n_rows; ++place)
      visit(static_cast<std::size_t>(view_.rows == nullptr ? place : view_.rows[place]), view_.slice_ptr[place / c] + place % c,
            view_.slice_ptr[place / c + 1]);
  };
  CsrMatrix result;
  result.n_rows = view_.n_rows;
  result.n_columns = n_columns_;
  result.row_ptr.resize(static_cast<std::size_t>(view_.n_rows) + 1);
  result.row_ptr[0] = 0;
  for_places([&](std::size_t row, std::int64_t first, std::int64_t end) {
    std::int64_t length = 0;
    for (std::int64_t e = first; e < end && view_.columns[e] >= 0; e += c)
      ++length;
    result.row_ptr[row + 1] = length;
  });
  std::partial_sum(result.row_ptr.begin(), result.row_ptr.end(), result.row_ptr.begin());
  result.columns.resize(static_cast<std::size_t>(result.row_ptr.back()));
  result.values.resize(static_cast<std::size_t>(result.row_ptr.back()));
  if (view_.low_values != nullptr)
    result.low_values.resize(result.values.size());
  for_places([&](std::size_t row, std::int64_t first, std::int64_t) {
    std::int64_t from = first;
    for (auto e = static_cast<std::size_t>(result.row_ptr[row]); e < static_cast<std::size_t>(result.row_ptr[row + 1]);
         ++e, from += c) {
      result.columns[e] = view_.columns[from];
      result.values[e] = entries_.value(from);
      if (view_.low_values != nullptr)
        result.low_values[e] = view_.low_values[from];
    }
  });
  return result;
}

}  // namespace poisson
