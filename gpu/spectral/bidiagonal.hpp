#pragma once

#include "gpu/core/array.hpp"
#include "gpu/core/context.hpp"
#include "gpu/core/host_vector.hpp"

#include <cstdint>
#include <span>

namespace poisson {

/// The `leading` largest singular values (0: all), descending, of the upper bidiagonal matrix with diagonal d (n >= 1 entries) and
/// superdiagonal e (n - 1 entries), both in host memory. On a device by bisection, on the host by LAPACK's dqds or, for few values,
/// bisection. Values down to 1e-290 times the largest have a small relative error; smaller ones may be returned as 0. Precondition:
/// entries are finite. Throws OutOfMemoryError; Interrupted.
[[nodiscard]] HostVector<double> bidiagonal_values(Context& context, std::span<double const> d, std::span<double const> e,
                                                   std::int64_t leading = 0);

struct BidiagonalSvd {
  HostVector<double> values;  ///< k of them, descending, none negative
  Array<double> u, v;         ///< n x k each, column-major, in the context's memory; B = U diag(values) V^T
};

/// The singular value decomposition of the upper bidiagonal B with diagonal d (n >= 1 entries) and superdiagonal e (n - 1 entries)
/// in host memory, by divide and conquer (Gu, Eisenstat, SIAM J. Matrix Anal. Appl. 16, 1995). k = `leading` largest triplets, or
/// k = n when `leading` is 0 or larger than n. Errors of values are small relative to the largest value. Without `overlap` a device
/// is idle while the host deflates (to measure what overlap gains). Precondition: entries are finite. Throws OutOfMemoryError;
/// Interrupted.
[[nodiscard]] BidiagonalSvd bidiagonal_svd(Context& context, std::span<double const> d, std::span<double const> e,
                                           std::int64_t leading = 0, bool overlap = true);

/// Peak of the bytes in the context's memory that bidiagonal_svd allocates, including its result.
[[nodiscard]] std::int64_t bidiagonal_svd_bytes(std::int64_t n, std::int64_t leading = 0);

}  // namespace poisson
