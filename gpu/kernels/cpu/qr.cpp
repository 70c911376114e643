#include "gpu/kernels/qr.hpp"

#include "gpu/kernels/cpu/lapack.hpp"

#include <algorithm>
#include <cassert>
#include <vector>

namespace poisson {

namespace {

class CpuQr final : public QrKernels {
public:
  /// A chunk of 32 columns fits the second-level cache.
  std::int64_t rows_of_chunk(std::int64_t n) const override { return n <= 64 ? std::max<std::int64_t>(4096, 2 * n) : 0; }

  void factor_chunks(Context&, RowChunks const& chunks, std::int64_t n, double* a, double* r) const override {
    LapackFunctions const& routines = lapack();  // errors must not be thrown among threads
#pragma omp parallel for schedule(dynamic)
    for (std::int64_t chunk = 0; chunk < chunks.count; ++chunk) {
      int const rows = static_cast<int>(chunks.end(chunk) - chunks.begin(chunk)), columns = static_cast<int>(n),
                leading = static_cast<int>(chunks.m), size = 64 * columns;
      double* const block = a + chunks.begin(chunk);
      std::vector<double> tau(static_cast<std::size_t>(n)), work(static_cast<std::size_t>(size));
      int info = 0;
      routines.dgeqrf(&rows, &columns, block, &leading, tau.data(), work.data(), &size, &info);
      assert(info == 0);
      for (std::int64_t j = 0; j < n; ++j)
        for (std::int64_t i = 0; i < n; ++i)
          r[chunk * n + i + j * chunks.count * n] = i <= j ? block[i + j * chunks.m] : 0;
      routines.dorgqr(&rows, &columns, &columns, block, &leading, tau.data(), work.data(), &size, &info);
      assert(info == 0);
    }
  }

  void add_to_diagonal(Context&, std::int64_t n, double value, double* a, std::int64_t lda) const override {
    for (std::int64_t i = 0; i < n; ++i)
      a[i + i * lda] += value;
  }
};

}  // namespace

QrKernels const& QrKernels::cpu() {
  static CpuQr const kernels;
  return kernels;
}

}  // namespace poisson
