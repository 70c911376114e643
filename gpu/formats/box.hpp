#pragma once

#include "gpu/formats/csr.hpp"

#include <cstdint>
#include <memory>

namespace poisson {

/// The Q1 stiffness matrix of the Laplacian on nx x ny x nz interior nodes of a uniform box with zero Dirichlet values around,
/// times the mesh width; 27 entries in inner rows, the zeros of face neighbours among them. Built in the context's memory, where it
/// may be larger than the host holds: 12 (3 nx - 2)(3 ny - 2)(3 nz - 2) bytes and 8 a row. Throws InputError when a number of nodes
/// is not positive or all together are 2^31 or more; OutOfMemoryError.
[[nodiscard]] std::unique_ptr<Csr> box_laplacian(Context& context, std::int64_t nx, std::int64_t ny, std::int64_t nz);

/// y = A x of the same matrix without the matrix, to check products with: shares nothing with the formats. x and y are in the
/// context's memory. Throws InputError as above.
void box_laplacian_product(Context& context, std::int64_t nx, std::int64_t ny, std::int64_t nz, double const* x, double* y);

}  // namespace poisson
