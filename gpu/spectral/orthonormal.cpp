#include "gpu/spectral/orthonormal.hpp"

#include "gpu/core/array.hpp"
#include "gpu/core/safe_point.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/blas.hpp"
#include "gpu/kernels/qr.hpp"
#include "gpu/kernels/svd.hpp"

#include <algorithm>
#include <cassert>

namespace poisson {

namespace {

using Index = std::int64_t;

constexpr Index block_rows = 2048;

}  // namespace

void refine_orthogonality(Context& context, Index m, Index k, double* x, Index block_columns) {
  assert(m >= k && block_columns > 0);
  auto const& kernels = kernels_for<SvdKernels>(context);
  Array<double> defect(context, k * k), rows(context, std::min(block_rows, m) * k);
  SafePoint safe_point(context);
  // (I - X^T X) / 2 is small: its product with X is added to X with one rounding.
  for (Index first = 0; first < k; first += block_columns) {
    Index const columns = std::min(block_columns, k - first);
    double* const block = defect.data() + first * k;
    gemm(context, true, false, first + columns, columns, m, -0.5, x, m, x + first * m, m, 0, block, k);
    if (first > 0)
      kernels.transpose(context, first, columns, block, k, defect.data() + first, k);
    safe_point(2 * static_cast<double>(first + columns) * static_cast<double>(columns * m));
  }
  kernels_for<QrKernels>(context).add_to_diagonal(context, k, 0.5, defect.data(), k);
  for (Index first = 0; first < m; first += block_rows) {
    Index const count = std::min(block_rows, m - first);
    kernels.copy(context, count, k, x + first, m, rows.data(), count);
    gemm(context, false, false, count, k, k, 1, rows.data(), count, defect.data(), k, 1, x + first, m);
    safe_point(2 * static_cast<double>(count) * static_cast<double>(k * k));
  }
  context.synchronize();
}

Index refine_orthogonality_bytes(Index m, Index k) {
  return 8 * (k * k + std::min(block_rows, m) * k);
}

}  // namespace poisson
