#include "gpu/kernels/cds.hpp"

#include "gpu/kernels/host/host.hpp"

namespace poisson {

namespace {

/// sums[i - begin] = (A x)_i for one block of rows: diagonal by diagonal, while the sums stay in the first-level cache.
void block_product(CdsView const& a, double const* __restrict x, std::int64_t begin, std::int64_t end, double* __restrict sums) {
  std::fill(sums, sums + (end - begin), 0.0);
  for (std::size_t k = 0; k < a.offsets.size(); ++k) {
    std::int64_t const o = a.offsets[k];
    std::int64_t const from = std::max(begin, -o), to = std::min(end, a.n_columns - o);
    double const* __restrict const values = a.values + static_cast<std::int64_t>(k) * a.n_rows;
#pragma omp simd
    for (std::int64_t i = from; i < to; ++i)
      sums[i - begin] += values[i] * x[i + o];
  }
}

class HostCds final : public CdsKernels {
public:
  void product(Context&, CdsView const& a, double alpha, double const* x, double beta, double* y) const override {
    host::for_blocks(a.n_rows, [&](std::int64_t begin, std::int64_t end, std::int64_t) {
      alignas(64) double sums[host::block_rows];
      block_product(a, x, begin, end, sums);
      if (beta == 0)
        for (std::int64_t i = begin; i < end; ++i)
          y[i] = alpha * sums[i - begin];
      else
        for (std::int64_t i = begin; i < end; ++i)
          y[i] = alpha * sums[i - begin] + beta * y[i];
    });
  }

  void product_dot(Context& context, CdsView const& a, double const* x, double* y, double* dot,
                   std::int32_t const* stop) const override {
    if (*stop != 0)
      return;
    *dot = host::sum_blocks(context, a.n_rows, [&](std::int64_t begin, std::int64_t end) {
      alignas(64) double sums[host::block_rows];
      block_product(a, x, begin, end, sums);
      std::copy(sums, sums + (end - begin), y + begin);
      double total = 0;
#pragma omp simd reduction(+ : total)
      for (std::int64_t i = begin; i < end; ++i)
        total += x[i] * sums[i - begin];
      return total;
    });
  }
};

}  // namespace

CdsKernels const& CdsKernels::host() {
  static HostCds const kernels;
  return kernels;
}

}  // namespace poisson
