#include "gpu/formats/half_cds.hpp"

#include "gpu/formats/csr.hpp"
#include "gpu/formats/lattice_half_cds.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/check.hpp"
#include "gpu/kernels/conversion.hpp"

namespace poisson {

FormatEstimate HalfCds::estimate(MatrixShape const& shape, FormatOptions const& options) {
  if (shape.n_lattices > 0)
    return LatticeHalfCds::estimate(shape, options);
  return DiagonalStorage::estimate(Format::half_cds, shape, options, shape.n_diagonals / 2 + 1,
                                   0.5 * static_cast<double>(shape.nnz + shape.n_rows), "non-zeros of the lower triangle");
}

std::unique_ptr<Matrix> HalfCds::convert(Csr const& csr, FormatOptions const& options) {
  return std::unique_ptr<Matrix>(
      new HalfCds(csr.context(), csr.n_rows(), DiagonalStorage::convert(csr.view(), csr.context(), true, options)));
}

std::unique_ptr<Matrix> HalfCds::from_diagonals(Context& context, std::int64_t n, std::vector<std::int32_t> offsets,
                                                Array<double> values, double padding_ratio) {
  DiagonalStorage storage;
  storage.offsets = std::move(offsets);
  storage.backend_offsets = Array<std::int32_t>(context, storage.offsets);
  storage.entries.values = std::move(values);
  storage.padding_ratio = padding_ratio;
  return std::unique_ptr<Matrix>(new HalfCds(context, n, std::move(storage)));
}

std::unique_ptr<Matrix> HalfCds::from_diagonals(Context& context, std::int64_t n, std::vector<std::int32_t> offsets,
                                                Array<float> values) {
  DiagonalStorage storage;
  storage.offsets = std::move(offsets);
  storage.backend_offsets = Array<std::int32_t>(context, storage.offsets);
  storage.entries.single_values = std::move(values);
  return std::unique_ptr<Matrix>(new HalfCds(context, n, std::move(storage)));
}

HalfCds::HalfCds(Context& context, std::int64_t n, DiagonalStorage storage)
    : ColumnMatrix(context, {}), storage_(std::move(storage)) {
  view_.n = n;
  view_.offsets = storage_.offsets;
  view_.backend_offsets = storage_.backend_offsets.data();
  storage_.entries.set_pointers(view_);
}

bool HalfCds::residual(double const* x, double const* x_low, double const* b, double* r) const {
  if (precision() == MatrixPrecision::single)
    return false;
  kernels_for<CheckKernels>(context()).residual(context(), view_, x, x_low, b, r);
  return true;
}

std::unique_ptr<Matrix> HalfCds::copied_to(Context& target) const {
  return std::unique_ptr<Matrix>(new HalfCds(target, view_.n, storage_.copy_to(target)));
}

CsrMatrix HalfCds::host_csr() const {
  return storage_.to_csr(view_.n, view_.n, true);
}

}  // namespace poisson
