#include "gpu/formats/csr.hpp"

#include "gpu/kernels/backends.hpp"

#include <chrono>

namespace poisson {

FormatEstimate Csr::estimate(MatrixShape const& shape, FormatOptions const&) {
  FormatEstimate result;
  result.format = Format::csr;
  result.bytes = CsrMatrix::csr_bytes(shape.n_rows, shape.nnz);
  result.bytes_per_product = result.bytes + 16 * shape.n_rows;
  return result;
}

std::unique_ptr<Matrix> Csr::make(std::shared_ptr<CsrMatrix const> csr, Context& context, FormatOptions const&) {
  return std::unique_ptr<Matrix>(new Csr(std::move(csr), context));
}

Csr::Csr(std::shared_ptr<CsrMatrix const> csr, Context& context)
    : context_(context), kernels_(kernels_for<CsrKernels>(context)), n_columns_(csr->n_columns) {
  view_ = {csr->n_rows, csr->nnz(), csr->row_ptr.data(), csr->columns.data(), csr->values.data()};
  if (context.backend() == Backend::cpu) {
    host_ = std::move(csr);
    return;
  }
  auto const start = std::chrono::steady_clock::now();
  row_ptr_ = Array<std::int64_t>(context, csr->row_ptr);
  columns_ = Array<std::int32_t>(context, csr->columns);
  values_ = Array<double>(context, csr->values);
  view_.row_ptr = row_ptr_.data();
  view_.columns = columns_.data();
  view_.values = values_.data();
  context.synchronize();
  transfer_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void Csr::product(double alpha, double const* x, double beta, double* y) const {
  kernels_.product(context_, view_, alpha, x, beta, y);
}

void Csr::product_dot(double const* x, double* y, double* dot, std::int32_t const* stop) const {
  kernels_.product_dot(context_, view_, x, y, dot, stop);
}

void Csr::diagonal(double* d) const {
  kernels_.diagonal(context_, view_, d);
}

}  // namespace poisson
