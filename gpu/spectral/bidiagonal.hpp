#pragma once

#include "gpu/core/array.hpp"
#include "gpu/core/context.hpp"
#include "gpu/core/host_vector.hpp"

#include <cstdint>
#include <span>

namespace poisson {

/// The `leading` largest singular values (0 = all), descending, of the upper bidiagonal matrix with diagonal d (n >= 1 entries) and
/// superdiagonal e (n - 1), in host memory. Values have small relative error down to 1e-290 times the largest; the smaller ones of
/// singular matrices come out as 0 or as small. Entries are finite.
[[nodiscard]] HostVector<double> bidiagonal_values(Context& context, std::span<double const> d, std::span<double const> e,
                                                   std::int64_t leading = 0);

struct BidiagonalSvd {
  HostVector<double> values;  ///< k of them, descending, none negative
  Array<double> u, v;         ///< n x k each, column-major, in the context's memory; B = U diag(values) V^T
};

/// The singular value decomposition of the upper bidiagonal B with diagonal d (n >= 1 entries) and superdiagonal e (n - 1), in host
/// memory; the k = `leading` largest triplets only, unless that is 0. Values have small error relative to the largest. Entries are
/// finite. Without `overlap` a device waits while the host deflates (to measure what overlap gains). Throws OutOfMemoryError.
[[nodiscard]] BidiagonalSvd bidiagonal_svd(Context& context, std::span<double const> d, std::span<double const> e,
                                           std::int64_t leading = 0, bool overlap = true);

/// Bytes in the context's memory that bidiagonal_svd takes at its peak, its result included.
[[nodiscard]] std::int64_t bidiagonal_svd_bytes(std::int64_t n, std::int64_t leading = 0);

}  // namespace poisson
