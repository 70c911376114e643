#pragma once

#include "gpu/core/context.hpp"

#include <cstdint>

namespace poisson {

/// One step of Newton and Schulz, X = X + X (I - X^T X) / 2, towards the nearest matrix with orthonormal columns: the error in
/// orthogonality, d, becomes about d^2 and a rounding error. X is m x k with m >= k, column-major with leading dimension m, and d
/// well below 1. 3.1 m k^2 flops for large k, all in products: of the symmetric product only the blocks above the diagonal are
/// made, `block_columns` wide.
void refine_orthogonality(Context& context, std::int64_t m, std::int64_t k, double* x, std::int64_t block_columns = 512);

/// Bytes of scratch memory that refine_orthogonality takes.
[[nodiscard]] std::int64_t refine_orthogonality_bytes(std::int64_t m, std::int64_t k);

}  // namespace poisson
