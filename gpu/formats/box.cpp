#include "gpu/formats/box.hpp"

#include "gpu/core/error.hpp"
#include "gpu/core/memory.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/box.hpp"

#include <limits>
#include <string>

namespace poisson {

namespace {

Box box_of(std::int64_t nx, std::int64_t ny, std::int64_t nz) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  if (nx < 1 || ny < 1 || nz < 1 || nx > most || ny > most || nz > most || nx * ny > most || nx * ny * nz > most)
    throw InputError("found a box of " + std::to_string(nx) + " x " + std::to_string(ny) + " x " + std::to_string(nz) +
                     " nodes; allowed: at least one along each axis, and at most 2147483647 together");
  return {nx, ny, nz};
}

}  // namespace

std::unique_ptr<Csr> box_laplacian(Context& context, std::int64_t nx, std::int64_t ny, std::int64_t nz) {
  Box const box = box_of(nx, ny, nz);
  require_memory(context, CsrMatrix::csr_bytes(box.n_rows(), box.nnz()), "the box's matrix in csr", "use fewer nodes");
  Array<std::int64_t> row_ptr(context, box.n_rows() + 1);
  Array<std::int32_t> columns(context, box.nnz());
  Array<double> values(context, box.nnz());
  kernels_for<BoxKernels>(context).fill(context, box, row_ptr.data(), columns.data(), values.data());
  return std::make_unique<Csr>(context, box.n_rows(), std::move(row_ptr), std::move(columns), std::move(values));
}

void box_laplacian_product(Context& context, std::int64_t nx, std::int64_t ny, std::int64_t nz, double const* x, double* y) {
  kernels_for<BoxKernels>(context).product(context, box_of(nx, ny, nz), x, y);
}

}  // namespace poisson
