#pragma once

#include "gpu/core/context.hpp"

#include <cstdint>

namespace poisson {

/// One Newton-Schulz step, X <- X + X (I - X^T X) / 2, towards the nearest matrix with orthonormal columns (the polar factor;
/// Higham, Functions of Matrices, 2008, chapter 8): d = |I - X^T X| becomes about d^2, up to rounding. X is m x k, column-major
/// with leading dimension m, in the context's memory. 3.1 m k^2 flops for large k, all in products: of the symmetric X^T X only the
/// blocks on and above the diagonal are computed, `block_columns` wide. Preconditions: m >= k; d is well below 1. Throws
/// OutOfMemoryError; Interrupted.
void refine_orthogonality(Context& context, std::int64_t m, std::int64_t k, double* x, std::int64_t block_columns = 512);

/// Bytes of scratch memory that refine_orthogonality takes.
[[nodiscard]] std::int64_t refine_orthogonality_bytes(std::int64_t m, std::int64_t k);

}  // namespace poisson
