#include "gpu/formats/half_cds.hpp"

#include "gpu/formats/csr.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/conversion.hpp"

namespace poisson {

FormatEstimate HalfCds::estimate(MatrixShape const& shape, FormatOptions const&) {
  return DiagonalStorage::estimate(Format::half_cds, shape, shape.n_diagonals / 2 + 1,
                                   0.5 * static_cast<double>(shape.nnz + shape.n_rows), "non-zeros of the lower triangle");
}

std::unique_ptr<Matrix> HalfCds::convert(Csr const& csr, FormatOptions const&) {
  return std::unique_ptr<Matrix>(
      new HalfCds(csr.context(), csr.n_rows(), DiagonalStorage::convert(csr.view(), csr.context(), true)));
}

HalfCds::HalfCds(Context& context, std::int64_t n, DiagonalStorage storage)
    : Matrix(context),
      kernels_(kernels_for<HalfCdsKernels>(context)),
      storage_(std::move(storage)),
      view_{n, storage_.offsets, storage_.backend_offsets.data(), storage_.values.data()} {}

std::unique_ptr<Matrix> HalfCds::copied_to(Context& target) const {
  return std::unique_ptr<Matrix>(new HalfCds(target, view_.n, storage_.copy_to(target)));
}

CsrMatrix HalfCds::host_csr() const {
  return storage_.to_csr(view_.n, view_.n, true);
}

void HalfCds::product(double alpha, double const* x, double beta, double* y) const {
  kernels_.product(context(), view_, alpha, x, beta, y);
}

void HalfCds::product_dot(double const* x, double* y, double* dot, std::int32_t const* stop) const {
  kernels_.product_dot(context(), view_, x, y, dot, stop);
}

void HalfCds::diagonal(double* d) const {
  kernels_for<ConversionKernels>(context()).copy_diagonal(context(), view_.n, view_.values, d);
}

}  // namespace poisson
