#include "gpu/kernels/check.hpp"

#include "gpu/kernels/cpu/accurate_sums.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace poisson {

namespace {

/// Rows whose residuals are summed side by side.
constexpr int rows_together = 32;

/// What residual_of_row gives for rows first <= row < end, at most `rows_together` of them.
void residual_of_rows(HalfCdsView const& a, std::int64_t first, std::int64_t end, double const* x, double const* x_lo,
                      double const* b, double* r) {
  cpu::AccurateSums<rows_together> sums(static_cast<int>(end - first), b + first);
  // Of rows from <= row < to, whose entries are at values[row + place], and their columns at row + distance.
  auto const add = [&](std::int64_t from, std::int64_t to, std::int64_t place, std::int64_t distance) {
    if (from >= to)
      return;
    auto const subtract = [&](double const* values, double const* of_x) {
      double const* const entries = values + (from + place);
      sums.add_products(
          static_cast<int>(from - first), static_cast<int>(to - from), [=](int i) { return -entries[i]; },
          of_x + (from + distance));
    };
    subtract(a.values, x);
    if (x_lo != nullptr)
      subtract(a.values, x_lo);
    if (a.low_values != nullptr)
      subtract(a.low_values, x);
  };
  for (std::size_t k = 0; k < a.offsets.size(); ++k) {
    std::int64_t const offset = a.offsets[k], diagonal = static_cast<std::int64_t>(k) * a.n;
    add(std::max(first, offset), end, diagonal, -offset);
    if (offset > 0)
      add(first, std::min(end, a.n - offset), diagonal + offset, offset);
  }
  sums.store_values(static_cast<int>(end - first), r + first);
}

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
#pragma omp parallel for schedule(static)
    for (std::int64_t row = 0; row < a.n; row += rows_together)
      residual_of_rows(a, row, std::min(row + rows_together, a.n), x, x_lo, b, r);
  }

  void residual(Context&, LatticeHalfCdsView const& a, double const* x, double const* x_lo, double const* b,
                double* r) const override {
#pragma omp parallel for schedule(static)
    for (std::int64_t row = 0; row < a.lattices.n_unknowns; ++row)
      r[row] = residual_of_row(a, row, x, x_lo, b[row]);
  }
  void products_at(Context&, LatticeHalfCdsView const& a, std::int64_t n, std::int32_t const* unknowns, double const* x,
                   double const* x_lo, DoubleDouble* out) const override {
#pragma omp parallel for schedule(static)
    for (std::int64_t i = 0; i < n; ++i)
      out[i] = product_at(a, unknowns[i], x, x_lo);
  }
};

}  // namespace

CheckKernels const& CheckKernels::cpu() {
  static CpuCheck const kernels;
  return kernels;
}

}  // namespace poisson
