#include "gpu/formats/cds.hpp"

#include "gpu/formats/csr.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/conversion.hpp"

#include <algorithm>

namespace poisson {

FormatEstimate Cds::estimate(MatrixShape const& shape, FormatOptions const& options) {
  return DiagonalStorage::estimate(Format::cds, shape, options, shape.n_diagonals, static_cast<double>(shape.nnz), "non-zeros");
}

std::unique_ptr<Matrix> Cds::convert(Csr const& csr, FormatOptions const& options) {
  return std::unique_ptr<Matrix>(
      new Cds(csr.context(), csr.n_rows(), csr.n_columns(), DiagonalStorage::convert(csr.view(), csr.context(), false, options)));
}

Cds::Cds(Context& context, std::int64_t n_rows, std::int64_t n_columns, DiagonalStorage storage)
    : KernelMatrix(context, {}), storage_(std::move(storage)) {
  view_.n_rows = n_rows;
  view_.n_columns = n_columns;
  view_.offsets = storage_.offsets;
  view_.backend_offsets = storage_.backend_offsets.data();
  storage_.entries.set_pointers(view_);
}

std::unique_ptr<Matrix> Cds::copied_to(Context& target) const {
  return std::unique_ptr<Matrix>(new Cds(target, view_.n_rows, view_.n_columns, storage_.copy_to(target)));
}

CsrMatrix Cds::host_csr() const {
  return storage_.to_csr(view_.n_rows, view_.n_columns, false);
}

template <class V>
void Cds::extract(V const* values, V* d) const {
  // Rows beyond the last column have no entry of the main diagonal, and hold zeros in it.
  auto const main = std::lower_bound(view_.offsets.begin(), view_.offsets.end(), 0);
  if (main != view_.offsets.end() && *main == 0)
    kernels_for<ConversionKernels>(context()).copy_diagonal(context(), view_.n_rows,
                                                            values + (main - view_.offsets.begin()) * view_.n_rows, d);
  else if (view_.n_rows > 0)
    context().set_zero(d, std::int64_t{sizeof(V)} * view_.n_rows);
}

template void Cds::extract(double const*, double*) const;
template void Cds::extract(float const*, float*) const;

}  // namespace poisson
