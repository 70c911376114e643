#pragma once

#include "gpu/core/context.hpp"
#include "gpu/kernels/csr.hpp"

namespace poisson {

/// Judges products without the code that makes them.
class CheckKernels {
public:
  virtual ~CheckKernels() = default;
  /// The largest |y - A x|_i / (|A| |x|)_i of all rows, A x being summed anew in double, entry by entry. A row where the divisor is
  /// 0 counts 0 when y_i is 0; whatever is not a finite number counts as infinity. Pointers are in the context's memory. Waits.
  [[nodiscard]] virtual double largest_error(Context& context, CsrView const& a, double const* x, double const* y) const = 0;

  static CheckKernels const& host();
  static CheckKernels const& cuda();
};

}  // namespace poisson
