#include "gpu/kernels/csr.hpp"

#include "gpu/kernels/host/host.hpp"

namespace poisson {

namespace {

[[nodiscard]] inline double row_product(CsrView const& a, std::int64_t row, double const* __restrict x) {
  double sum = 0;
  std::int64_t const end = a.row_ptr[row + 1];
#pragma omp simd reduction(+ : sum)
  for (std::int64_t e = a.row_ptr[row]; e < end; ++e)
    sum += a.values[e] * x[a.columns[e]];
  return sum;
}

class HostCsr final : public CsrKernels {
public:
  void product(Context&, CsrView const& a, double alpha, double const* x, double beta, double* y) const override {
    host::for_blocks(a.n_rows, [&](std::int64_t begin, std::int64_t end, std::int64_t) {
      for (std::int64_t row = begin; row < end; ++row) {
        double const value = alpha * row_product(a, row, x);
        y[row] = beta == 0 ? value : value + beta * y[row];
      }
    });
  }

  void product_dot(Context& context, CsrView const& a, double const* x, double* y, double* dot,
                   std::int32_t const* stop) const override {
    if (*stop != 0)
      return;
    *dot = host::sum_blocks(context, a.n_rows, [&](std::int64_t begin, std::int64_t end) {
      double sum = 0;
      for (std::int64_t row = begin; row < end; ++row) {
        y[row] = row_product(a, row, x);
        sum += x[row] * y[row];
      }
      return sum;
    });
  }

  void diagonal(Context&, CsrView const& a, double* d) const override {
    host::for_blocks(a.n_rows, [&](std::int64_t begin, std::int64_t end, std::int64_t) {
      for (std::int64_t row = begin; row < end; ++row) {
        std::int32_t const* const first = a.columns + a.row_ptr[row];
        std::int32_t const* const last = a.columns + a.row_ptr[row + 1];
        std::int32_t const* const found = std::lower_bound(first, last, row);
        d[row] = found != last && *found == row ? a.values[found - a.columns] : 0;
      }
    });
  }
};

}  // namespace

CsrKernels const& CsrKernels::host() {
  static HostCsr const kernels;
  return kernels;
}

}  // namespace poisson
