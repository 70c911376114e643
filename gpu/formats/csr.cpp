#include "gpu/formats/csr.hpp"

#include "gpu/formats/sell_c_sigma.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/conversion.hpp"

#include <algorithm>
#include <chrono>

namespace poisson {

FormatEstimate Csr::estimate(MatrixShape const& shape, FormatOptions const& options) {
  FormatEstimate result;
  result.format = Format::csr;
  result.bytes = CsrMatrix::csr_bytes(shape.n_rows, shape.nnz) + (bytes_of_value(options.precision) - 8) * shape.nnz;
  result.bytes_per_product = result.bytes + 16 * shape.n_rows;
  return result;
}

std::unique_ptr<Matrix> Csr::convert(Csr const& csr, FormatOptions const& options) {
  return std::unique_ptr<Matrix>(new Csr(Format::csr, csr, 0, options.precision));
}

FormatEstimate Csr::estimate_crs_t(MatrixShape const& shape, FormatOptions const& options) {
  FormatEstimate result = estimate(shape, options);
  result.format = Format::crs_t;
  return result;
}

std::unique_ptr<Matrix> Csr::convert_to_crs_t(Csr const& csr, FormatOptions const& options) {
  return std::unique_ptr<Matrix>(new Csr(Format::crs_t, csr, options.threads_per_row, options.precision));
}

Csr::Csr(std::shared_ptr<CsrMatrix const> csr, Context& context, MatrixPrecision precision)
    : ColumnMatrix(context, view_of(*csr)), format_(Format::csr) {
  bool const has_low = precision == MatrixPrecision::double_double && view_.low_values != nullptr;
  auto pattern = std::make_shared<Pattern>();
  if (context.backend() == Backend::cpu) {
    pattern->host = std::move(csr);
    pattern_ = std::move(pattern);
    if (!has_low)
      view_.low_values = nullptr;
  } else {
    auto const start = std::chrono::steady_clock::now();
    auto values = std::make_shared<Values>();
    pattern->row_ptr = Array<std::int64_t>(context, csr->row_ptr);
    pattern->columns = Array<std::int32_t>(context, csr->columns);
    values->values = Array<double>(context, csr->values);
    if (has_low)
      values->low_values = Array<double>(context, csr->low_values);
    pattern_ = std::move(pattern);
    values_ = std::move(values);
    point_to_arrays(csr->n_columns);
    context.synchronize();
    transfer_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  view_.longest_row = kernels_for<ConversionKernels>(context).longest_row(context, view_);
}

Csr::Csr(Context& context, std::int64_t n_columns, Array<std::int64_t> row_ptr, Array<std::int32_t> columns, Array<double> values,
         Array<double> low_values)
    : ColumnMatrix(context, {}), format_(Format::csr) {
  auto pattern = std::make_shared<Pattern>();
  pattern->row_ptr = std::move(row_ptr);
  pattern->columns = std::move(columns);
  pattern_ = std::move(pattern);
  values_ = std::make_shared<Values const>(Values{std::move(values), std::move(low_values)});
  point_to_arrays(n_columns);
  view_.longest_row = kernels_for<ConversionKernels>(context).longest_row(context, view_);
}

Csr::Csr(Format format, Csr const& other, int threads_per_row)
    : ColumnMatrix(other.context(), other.view_), format_(format), pattern_(other.pattern_), values_(other.values_) {
  view_.threads_per_row = threads_per_row;
}

Csr::Csr(Format format, Csr const& other, int threads_per_row, MatrixPrecision precision) : Csr(format, other, threads_per_row) {
  if (precision == MatrixPrecision::single) {
    single_values_ = Array<float>(context(), view_.nnz);
    kernels_for<ConversionKernels>(context()).round(context(), view_.nnz, view_.values, single_values_.data());
    context().synchronize();  // the values may go with their last owner
    values_.reset();
    view_.values = view_.low_values = nullptr;
    view_.single_values = single_values_.data();
  } else if (precision == MatrixPrecision::double_)
    view_.low_values = nullptr;
  else if (view_.low_values == nullptr && view_.nnz > 0) {
    low_zeros_ = Array<double>(context(), view_.nnz);
    low_zeros_.set_zero();
    view_.low_values = low_zeros_.data();
  }
}

Csr::Csr(Format format, Context& context, CsrView const& like, std::shared_ptr<Pattern const> pattern, Array<float> single_values)
    : ColumnMatrix(context, like), format_(format), pattern_(std::move(pattern)), single_values_(std::move(single_values)) {
  view_.row_ptr = pattern_->host != nullptr ? pattern_->host->row_ptr.data() : pattern_->row_ptr.data();
  view_.columns = pattern_->host != nullptr ? pattern_->host->columns.data() : pattern_->columns.data();
  view_.single_values = single_values_.data();
}

std::unique_ptr<Matrix> Csr::in_half() const {
  if (context().backend() == Backend::cpu || precision() != MatrixPrecision::double_)
    return nullptr;
  return SellCSigma::convert(*this, {})->in_half();
}

std::unique_ptr<Matrix> Csr::in_single() const {
  if (precision() != MatrixPrecision::double_)
    return nullptr;
  return std::unique_ptr<Matrix>(new Csr(format_, *this, view_.threads_per_row, MatrixPrecision::single));
}

std::unique_ptr<Csr> Csr::as_csr() const {
  if (precision() != MatrixPrecision::double_)
    return nullptr;
  return std::unique_ptr<Csr>(new Csr(Format::csr, *this, 0));
}

void Csr::point_to_arrays(std::int64_t n_columns) {
  view_ = {pattern_->row_ptr.size() - 1, n_columns,
           values_->values.size(),       pattern_->row_ptr.data(),
           pattern_->columns.data(),     values_->values.data(),
           values_->low_values.data()};
}

std::unique_ptr<Matrix> Csr::copied_to(Context& target) const {
  if (precision() == MatrixPrecision::single) {
    auto pattern = std::make_shared<Pattern>();
    if (pattern_->host == nullptr) {
      pattern->row_ptr = pattern_->row_ptr.copy_to(target);
      pattern->columns = pattern_->columns.copy_to(target);
    } else if (target.backend() == Backend::cpu) {
      pattern->host = pattern_->host;
    } else {
      pattern->row_ptr = Array<std::int64_t>(target, pattern_->host->row_ptr);
      pattern->columns = Array<std::int32_t>(target, pattern_->host->columns);
    }
    return std::unique_ptr<Matrix>(new Csr(format_, target, view_, std::move(pattern), single_values_.copy_to(target)));
  }
  if (pattern_->host != nullptr) {
    Csr const copy(pattern_->host, target, precision());
    return std::unique_ptr<Matrix>(new Csr(format_, copy, view_.threads_per_row, precision()));
  }
  Array<double> low;
  if (view_.low_values != nullptr)
    low = (low_zeros_.size() > 0 ? low_zeros_ : values_->low_values).copy_to(target);
  Array<double> values;  // of a matrix without entries that was rounded there are none
  if (values_ != nullptr)
    values = values_->values.copy_to(target);
  Csr const copy(target, view_.n_columns, pattern_->row_ptr.copy_to(target), pattern_->columns.copy_to(target), std::move(values),
                 std::move(low));
  return std::unique_ptr<Matrix>(new Csr(format_, copy, view_.threads_per_row));
}

CsrMatrix Csr::host_csr() const {
  auto const nnz = static_cast<std::size_t>(view_.nnz);
  CsrMatrix result;
  if (pattern_->host != nullptr)
    result = *pattern_->host;
  else {
    result.n_rows = view_.n_rows;
    result.n_columns = view_.n_columns;
    result.row_ptr.resize(static_cast<std::size_t>(view_.n_rows) + 1);
    result.columns.resize(nnz);
    result.values.resize(nnz);
    pattern_->row_ptr.download(result.row_ptr);
    pattern_->columns.download(result.columns);
    if (values_ != nullptr)
      values_->values.download(result.values);
  }
  if (precision() == MatrixPrecision::single)
    std::copy_n(view_.single_values, nnz, result.values.begin());
  if (view_.low_values != nullptr)
    result.low_values.assign(view_.low_values, view_.low_values + nnz);
  else
    result.low_values.clear();
  return result;
}

}  // namespace poisson
