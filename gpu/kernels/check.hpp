#pragma once

#include "gpu/core/context.hpp"
#include "gpu/core/host_device.hpp"
#include "gpu/kernels/csr.hpp"

#include <cmath>

namespace poisson {

/// (b - A (x + x_lo))_i, rounded at the end: products are exact, and sums carry three doubles, so that solutions in double-double
/// can be judged. Compile without contraction on the host; on a device there is no product that it could reach.
[[nodiscard]] inline POISSON_HOST_DEVICE double residual_of_row(CsrView const& a, std::int64_t row, double const* x,
                                                                double const* x_lo, double b) {
  double sum[3] = {b, 0, 0};
  auto const add = [&](double v) {
    for (int i = 0; i < 2; ++i) {  // two_sum (Knuth 1969): v becomes what the sum lost
      double const s = sum[i] + v, of_v = s - sum[i];
      v = (sum[i] - (s - of_v)) + (v - of_v);
      sum[i] = s;
    }
    sum[2] += v;
  };
  auto const add_product = [&](double f, double g) {
    double const product = std::fma(f, g, 0.0);  // and not f * g, which a compiler could fuse with what follows
    add(product);
    add(std::fma(f, g, -product));
  };
  for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e) {
    add_product(-a.values[e], x[a.columns[e]]);
    if (x_lo != nullptr)
      add_product(-a.values[e], x_lo[a.columns[e]]);
  }
  // What cancelled in sum[0] may have left it as large as sum[1].
  double const s = sum[0] + sum[1], of_1 = s - sum[0];
  return s + ((sum[0] - (s - of_1)) + (sum[1] - of_1) + sum[2]);
}

/// Checks of products and solutions, independent of the code under test.
class CheckKernels {
public:
  virtual ~CheckKernels() = default;
  /// The componentwise error: the largest |y - A x|_i / (|A| |x|)_i over all rows, with A x summed in double, entry by entry. 0 / 0
  /// counts as 0; a quotient that is not finite counts as infinity. Pointers are in the context's memory. Waits for the result.
  [[nodiscard]] virtual double largest_error(Context& context, CsrView const& a, double const* x, double const* y) const = 0;

  /// r_i = residual_of_row; x_lo may be null. Pointers are in the context's memory. Enqueues.
  virtual void residual(Context& context, CsrView const& a, double const* x, double const* x_lo, double const* b,
                        double* r) const = 0;

  static CheckKernels const& cpu();
  static CheckKernels const& cuda();
};

}  // namespace poisson
