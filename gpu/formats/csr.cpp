#include "gpu/formats/csr.hpp"

#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/conversion.hpp"

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
    : KernelMatrix(context, view_of(*csr)), format_(Format::csr) {
  bool const has_low = precision == MatrixPrecision::double_double && view_.low_values != nullptr;
  auto storage = std::make_shared<Storage>();
  if (context.backend() == Backend::cpu) {
    storage->host = std::move(csr);
    storage_ = std::move(storage);
    if (!has_low)
      view_.low_values = nullptr;
  } else {
    auto const start = std::chrono::steady_clock::now();
    storage->row_ptr = Array<std::int64_t>(context, csr->row_ptr);
    storage->columns = Array<std::int32_t>(context, csr->columns);
    storage->values = Array<double>(context, csr->values);
    if (has_low)
      storage->low_values = Array<double>(context, csr->low_values);
    storage_ = std::move(storage);
    point_to_arrays(csr->n_columns);
    context.synchronize();
    transfer_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  view_.longest_row = kernels_for<ConversionKernels>(context).longest_row(context, view_);
}

Csr::Csr(Context& context, std::int64_t n_columns, Array<std::int64_t> row_ptr, Array<std::int32_t> columns, Array<double> values,
         Array<double> low_values)
    : KernelMatrix(context, {}), format_(Format::csr) {
  auto storage = std::make_shared<Storage>();
  storage->row_ptr = std::move(row_ptr);
  storage->columns = std::move(columns);
  storage->values = std::move(values);
  storage->low_values = std::move(low_values);
  storage_ = std::move(storage);
  point_to_arrays(n_columns);
  view_.longest_row = kernels_for<ConversionKernels>(context).longest_row(context, view_);
}

Csr::Csr(Format format, Csr const& other, int threads_per_row)
    : KernelMatrix(other.context(), other.view_), format_(format), storage_(other.storage_) {
  view_.threads_per_row = threads_per_row;
}

Csr::Csr(Format format, Csr const& other, int threads_per_row, MatrixPrecision precision) : Csr(format, other, threads_per_row) {
  if (precision == MatrixPrecision::double_)
    view_.low_values = nullptr;
  else if (view_.low_values == nullptr && view_.nnz > 0) {
    low_zeros_ = Array<double>(context(), view_.nnz);
    low_zeros_.set_zero();
    view_.low_values = low_zeros_.data();
  }
}

void Csr::point_to_arrays(std::int64_t n_columns) {
  view_ = {storage_->row_ptr.size() - 1, n_columns,
           storage_->values.size(),      storage_->row_ptr.data(),
           storage_->columns.data(),     storage_->values.data(),
           storage_->low_values.data()};
}

std::unique_ptr<Matrix> Csr::copied_to(Context& target) const {
  if (storage_->host != nullptr) {
    Csr const copy(storage_->host, target, precision());
    return std::unique_ptr<Matrix>(new Csr(format_, copy, view_.threads_per_row, precision()));
  }
  Array<double> low;
  if (view_.low_values != nullptr)
    low = (low_zeros_.size() > 0 ? low_zeros_ : storage_->low_values).copy_to(target);
  Csr const copy(target, view_.n_columns, storage_->row_ptr.copy_to(target), storage_->columns.copy_to(target),
                 storage_->values.copy_to(target), std::move(low));
  return std::unique_ptr<Matrix>(new Csr(format_, copy, view_.threads_per_row));
}

CsrMatrix Csr::host_csr() const {
  auto const nnz = static_cast<std::size_t>(view_.nnz);
  CsrMatrix result;
  if (storage_->host != nullptr)
    result = *storage_->host;
  else {
    result.n_rows = view_.n_rows;
    result.n_columns = view_.n_columns;
    result.row_ptr.resize(static_cast<std::size_t>(view_.n_rows) + 1);
    result.columns.resize(nnz);
    result.values.resize(nnz);
    storage_->row_ptr.download(result.row_ptr);
    storage_->columns.download(result.columns);
    storage_->values.download(result.values);
  }
  if (view_.low_values != nullptr)
    result.low_values.assign(view_.low_values, view_.low_values + nnz);
  else
    result.low_values.clear();
  return result;
}

void Csr::take_diagonal(double const* values, double* d) const {
  CsrView with_values = view_;
  with_values.values = values;
  kernels_.diagonal(context(), with_values, d);
}

}  // namespace poisson
