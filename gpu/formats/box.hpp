#pragma once

#include "gpu/formats/csr.hpp"

#include <cstdint>
#include <memory>

namespace poisson {

/// The Q1 stiffness matrix of the Laplacian on the nx x ny x nz interior nodes of a uniform box with zero Dirichlet values, for
/// mesh width 1: the 27-point stencil of Box::weight (kernels/box.hpp), with explicit zeros for face neighbours. It is built in the
/// context's memory and may be larger than host memory: 12 (3 nx - 2)(3 ny - 2)(3 nz - 2) bytes and 8 a row. Throws InputError when
/// a number of nodes is not positive or their product is 2^31 or more; OutOfMemoryError.
[[nodiscard]] std::unique_ptr<Csr> box_laplacian(Context& context, std::int64_t nx, std::int64_t ny, std::int64_t nz);

/// y = A x with the matrix of box_laplacian, matrix-free and by code that the formats do not share: a reference for products. x and
/// y, nx ny nz entries each, are in the context's memory. Throws InputError as box_laplacian does.
void box_laplacian_product(Context& context, std::int64_t nx, std::int64_t ny, std::int64_t nz, double const* x, double* y);

}  // namespace poisson
