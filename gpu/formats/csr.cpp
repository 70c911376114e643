#include "gpu/formats/csr.hpp"

#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/conversion.hpp"

#include <chrono>

namespace poisson {

namespace {

/// About eight entries for each thread. The paper's rule for crs_t looks at the longest row instead (16 from 32 entries on, else
/// 2^(ceil(log2 longest) - 2), at least 1) and takes 8 threads for the 27 entries of a box's rows, where the mean gives 4. Measured
/// on an H200 at 192^3 nodes, T = 1 2 4 8 16 32: 2.11 1.13 0.74 0.88 1.01 1.49 ms. So crs_t goes by the mean as well.
int threads_by_mean_length(CsrView const& csr) {
  std::int64_t const mean = csr.n_rows > 0 ? csr.nnz / csr.n_rows : 0;
  return mean <= 8 ? 1 : mean <= 16 ? 2 : mean <= 48 ? 4 : mean <= 96 ? 8 : mean <= 192 ? 16 : 32;
}

}  // namespace

FormatEstimate Csr::estimate(MatrixShape const& shape, FormatOptions const&) {
  FormatEstimate result;
  result.format = Format::csr;
  result.bytes = CsrMatrix::csr_bytes(shape.n_rows, shape.nnz);
  result.bytes_per_product = result.bytes + 16 * shape.n_rows;
  return result;
}

std::unique_ptr<Matrix> Csr::convert(Csr const& csr, FormatOptions const&) {
  return std::unique_ptr<Matrix>(new Csr(Format::csr, csr, threads_by_mean_length(csr.view_)));
}

FormatEstimate Csr::estimate_crs_t(MatrixShape const& shape, FormatOptions const& options) {
  FormatEstimate result = estimate(shape, options);
  result.format = Format::crs_t;
  return result;
}

std::unique_ptr<Matrix> Csr::convert_to_crs_t(Csr const& csr, FormatOptions const& options) {
  int const threads = options.threads_per_row != 0 ? options.threads_per_row : threads_by_mean_length(csr.view_);
  return std::unique_ptr<Matrix>(new Csr(Format::crs_t, csr, threads));
}

Csr::Csr(std::shared_ptr<CsrMatrix const> csr, Context& context)
    : Matrix(context), format_(Format::csr), kernels_(kernels_for<CsrKernels>(context)), view_(view_of(*csr)) {
  auto storage = std::make_shared<Storage>();
  if (context.backend() == Backend::cpu) {
    storage->host = std::move(csr);
    storage_ = std::move(storage);
  } else {
    auto const start = std::chrono::steady_clock::now();
    storage->row_ptr = Array<std::int64_t>(context, csr->row_ptr);
    storage->columns = Array<std::int32_t>(context, csr->columns);
    storage->values = Array<double>(context, csr->values);
    storage_ = std::move(storage);
    point_to_arrays(csr->n_columns);
    context.synchronize();
    transfer_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  describe_rows();
}

Csr::Csr(Context& context, std::int64_t n_columns, Array<std::int64_t> row_ptr, Array<std::int32_t> columns, Array<double> values)
    : Matrix(context), format_(Format::csr), kernels_(kernels_for<CsrKernels>(context)) {
  auto storage = std::make_shared<Storage>();
  storage->row_ptr = std::move(row_ptr);
  storage->columns = std::move(columns);
  storage->values = std::move(values);
  storage_ = std::move(storage);
  point_to_arrays(n_columns);
  describe_rows();
}

Csr::Csr(Format format, Csr const& other, int threads_per_row)
    : Matrix(other.context()), format_(format), kernels_(other.kernels_), storage_(other.storage_), view_(other.view_) {
  view_.threads_per_row = threads_per_row;
}

void Csr::describe_rows() {
  view_.threads_per_row = threads_by_mean_length(view_);
  view_.longest_row = kernels_for<ConversionKernels>(context()).longest_row(context(), view_);
}

void Csr::point_to_arrays(std::int64_t n_columns) {
  view_ = {storage_->row_ptr.size() - 1, n_columns, storage_->values.size(), storage_->row_ptr.data(), storage_->columns.data(),
           storage_->values.data()};
}

std::unique_ptr<Matrix> Csr::copied_to(Context& target) const {
  if (storage_->host != nullptr) {
    Csr const copy(storage_->host, target);
    return std::unique_ptr<Matrix>(new Csr(format_, copy, view_.threads_per_row));
  }
  Csr const copy(target, view_.n_columns, storage_->row_ptr.copy_to(target), storage_->columns.copy_to(target),
                 storage_->values.copy_to(target));
  return std::unique_ptr<Matrix>(new Csr(format_, copy, view_.threads_per_row));
}

CsrMatrix Csr::host_csr() const {
  if (storage_->host != nullptr)
    return *storage_->host;
  CsrMatrix result;
  result.n_rows = view_.n_rows;
  result.n_columns = view_.n_columns;
  result.row_ptr.resize(static_cast<std::size_t>(view_.n_rows) + 1);
  result.columns.resize(static_cast<std::size_t>(view_.nnz));
  result.values.resize(static_cast<std::size_t>(view_.nnz));
  storage_->row_ptr.download(result.row_ptr);
  storage_->columns.download(result.columns);
  storage_->values.download(result.values);
  return result;
}

void Csr::product(double alpha, double const* x, double beta, double* y) const {
  kernels_.product(context(), view_, alpha, x, beta, y);
}

void Csr::product_dot(double const* x, double* y, double* dot, std::int32_t const* stop) const {
  kernels_.product_dot(context(), view_, x, y, dot, stop);
}

void Csr::diagonal(double* d) const {
  kernels_.diagonal(context(), view_, d);
}

}  // namespace poisson
