#include "gpu/kernels/check.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace poisson {

namespace {

class CpuCheck final : public CheckKernels {
public:
  double largest_error(Context&, CsrView const& a, double const* x, double const* y) const override {
    double largest = 0;
#pragma omp parallel for schedule(static) reduction(max : largest)
    for (std::int64_t row = 0; row < a.n_rows; ++row) {
      double sum = 0, absolute = 0;
      for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e) {
        double const term = a.values[e] * x[a.columns[e]];
        sum += term;
        absolute += std::abs(term);
      }
      double const difference = std::abs(y[row] - sum);
      double const error = difference == 0 ? 0 : difference / absolute;
      largest = std::max(largest, std::isfinite(error) ? error : std::numeric_limits<double>::infinity());
    }
    return largest;
  }

  void residual(Context&, CsrView const& a, double const* x, double const* x_lo, double const* b, double* r) const override {
#pragma omp parallel for schedule(static)
    for (std::int64_t row = 0; row < a.n_rows; ++row)
      r[row] = residual_of_row(a, row, x, x_lo, b[row]);
  }

  void residual(Context&, HalfCdsView const& a, double const* x, double const* x_lo, double const* b, double* r) const override {
    auto const n_offsets = static_cast<std::int64_t>(a.offsets.size());
#pragma omp parallel for schedule(static)
    for (std::int64_t row = 0; row < a.n; ++row)
      r[row] = residual_of_row(a, n_offsets, row, x, x_lo, b[row]);
  }

  void residual(Context&, LatticeHalfCdsView const& a, double const* x, double const* x_lo, double const* b,
                double* r) const override {
#pragma omp parallel for schedule(static)
    for (std::int64_t row = 0; row < a.lattices.n_unknowns; ++row)
      r[row] = residual_of_row(a, row, x, x_lo, b[row]);
  }
};

}  // namespace

CheckKernels const& CheckKernels::cpu() {
  static CpuCheck const kernels;
  return kernels;
}

}  // namespace poisson
