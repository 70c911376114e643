#pragma once

#include "gpu/core/context.hpp"
#include "gpu/core/vector.hpp"

#include <cstdint>

namespace poisson {

/// Vector operations between cycles of iterations: the update of iterative refinement.
class RefinementKernels {
public:
  virtual ~RefinementKernels() = default;
  /// x += sign d, then d = 0. 48 bytes a row.
  virtual void add(Context& context, std::int64_t n, double sign, double* d, Pointer<DoubleDouble> x) const = 0;
  /// *result = max |x_i|, 0 without entries; entries that are NaN do not count.
  virtual void largest(Context& context, std::int64_t n, double const* x, double* result) const = 0;

  static RefinementKernels const& cpu();
  static RefinementKernels const& cuda();
};

}  // namespace poisson
