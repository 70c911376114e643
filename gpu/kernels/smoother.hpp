#pragma once

#include "gpu/core/context.hpp"

#include <cstdint>

namespace poisson {

/// The steps of a multigrid cycle that need no grid, in the arithmetic V: float or double. Pointers are in the backend's memory; on
/// a device calls enqueue work. Nothing is done when *stop is not 0. Bytes are those of a row where V is float.
template <class V>
class SmootherKernels {
public:
  virtual ~SmootherKernels() = default;
  /// b = r in V, and d = x = factor D^-1 b: the first step of a smoother from x = 0. r is in V where it comes from another level
  /// (20 bytes), in double where it comes from outside (24 bytes).
  virtual void begin(Context& context, std::int64_t n, V const* diagonal, V const* r, V factor, V* b, V* d, V* x,
                     std::int32_t const* stop) const = 0;
  virtual void begin_from_outside(Context& context, std::int64_t n, V const* diagonal, double const* r, V factor, V* b, V* d, V* x,
                                  std::int32_t const* stop) const = 0;
  /// A step of Chebyshev's method, where y = A x: d = keep d + factor D^-1 (b - y), x += d. d is not read where keep = 0. 28 bytes.
  virtual void step(Context& context, std::int64_t n, V const* diagonal, V const* b, V const* y, V keep, V factor, V* d, V* x,
                    std::int32_t const* stop) const = 0;
  /// y = b - y. 12 bytes.
  virtual void residual(Context& context, std::int64_t n, V const* b, V* y, std::int32_t const* stop) const = 0;
  /// x = M b with a dense matrix of n x n.
  virtual void solve_dense(Context& context, std::int64_t n, V const* m, V const* b, V* x, std::int32_t const* stop) const = 0;
  /// z = x. 12 bytes.
  virtual void to_outside(Context& context, std::int64_t n, V const* x, double* z, std::int32_t const* stop) const = 0;

  static SmootherKernels const& cpu();
  static SmootherKernels const& cuda();
};

template <>
SmootherKernels<float> const& SmootherKernels<float>::cpu();
template <>
SmootherKernels<float> const& SmootherKernels<float>::cuda();
template <>
SmootherKernels<double> const& SmootherKernels<double>::cpu();
template <>
SmootherKernels<double> const& SmootherKernels<double>::cuda();

}  // namespace poisson
