#pragma once

#include "gpu/core/context.hpp"
#include "gpu/core/host_device.hpp"
#include "gpu/kernels/smoothing_step.hpp"

#include <cstdint>

namespace poisson {

/// 32 bits that look random and are different for different i below 2^32.
[[nodiscard]] inline POISSON_HOST_DEVICE std::uint32_t mixed_bits(std::int64_t i) {
  auto bits = static_cast<std::uint32_t>(i) * 2654435761U;
  bits = (bits ^ (bits >> 15)) * 2246822519U;
  return bits ^ (bits >> 13);
}
/// Between -0.5 and 0.5.
[[nodiscard]] inline POISSON_HOST_DEVICE double pseudo_random(std::int64_t i) {
  return static_cast<double>(mixed_bits(i)) / 4294967296.0 - 0.5;
}

/// Step k of Lanczos's method for D^-1 A, which is symmetric in the inner product of D. Vectors are not normalised:
/// u_{k+1} = D^-1 A u_k - (u_k^T A u_k / N_k) u_k - (N_k / N_{k-1}) u_{k-1} with N = u^T D u; step -1 makes u_0 = D^-1 y. Pointers
/// are in the backend's memory. 20 bytes a row in float.
template <class V>
struct LanczosStep {
  int k = -1;
  V const* diagonal = nullptr;
  V const* y = nullptr;         ///< A u_k
  V const* u = nullptr;         ///< u_k
  V* other = nullptr;           ///< u_{k-1}, then u_{k+1}
  V const* energies = nullptr;  ///< u^T A u of 0 to k
  double* norms = nullptr;      ///< N of 0 to k, then to k + 1

  struct Factors {
    V of_u, of_other;
  };
  /// 0 for what is not there, which is not read either.
  [[nodiscard]] POISSON_HOST_DEVICE Factors factors() const {
    Factors result{0, 0};
    if (k >= 0 && norms[k] > 0)
      result.of_u = static_cast<V>(energies[k] / norms[k]);
    if (k >= 1 && norms[k - 1] > 0)
      result.of_other = static_cast<V>(norms[k] / norms[k - 1]);
    return result;
  }
  /// u_{k+1} at unknown i; returns what it adds to N_{k+1}.
  [[nodiscard, gnu::always_inline]] POISSON_HOST_DEVICE double take(std::int64_t i, Factors const& factors) const {
    V next = y[i] / diagonal[i];
    if (k >= 0)
      next -= factors.of_u * u[i];
    if (k >= 1)
      next -= factors.of_other * other[i];
    other[i] = next;
    return static_cast<double>(diagonal[i]) * static_cast<double>(next) * static_cast<double>(next);
  }
};

/// The steps of a multigrid cycle that need no grid, in the arithmetic V: float or double. Pointers are in the backend's memory; on
/// a device calls enqueue work. Nothing is done when *stop is not 0. Bytes are those of a row where V is float.
template <class V>
class SmootherKernels {
public:
  virtual ~SmootherKernels() = default;
  /// x = factor D^-1 b: the first step of a smoother from x = 0. 12 bytes.
  virtual void begin(Context& context, std::int64_t n, V const* diagonal, V const* b, V factor, V* x,
                     std::int32_t const* stop) const = 0;
  /// The same, and b = r, which comes from outside. 20 bytes.
  virtual void begin_from_outside(Context& context, std::int64_t n, V const* diagonal, double const* r, V factor, V* b, V* x,
                                  std::int32_t const* stop) const = 0;
  /// A step where y = A x is known. 28 bytes.
  virtual void step(Context& context, std::int64_t n, SmoothingStep<V> const& step, V const* y, V const* x,
                    std::int32_t const* stop) const = 0;
  /// y = b - y. 12 bytes.
  virtual void residual(Context& context, std::int64_t n, V const* b, V* y, std::int32_t const* stop) const = 0;
  /// x = M b with a dense matrix of n x n.
  virtual void solve_dense(Context& context, std::int64_t n, V const* m, V const* b, V* x, std::int32_t const* stop) const = 0;
  /// z = x. 12 bytes.
  virtual void to_outside(Context& context, std::int64_t n, V const* x, double* z, std::int32_t const* stop) const = 0;
  /// A step of Lanczos's method. With n = 0 norms stay as they are. 20 bytes.
  virtual void lanczos(Context& context, std::int64_t n, LanczosStep<V> const& step) const = 0;
  /// x_i = value. 4 bytes.
  virtual void fill(Context& context, std::int64_t n, V value, V* x) const = 0;
  /// x_i = pseudo_random(first + i). 4 bytes.
  virtual void fill_pseudo_random(Context& context, std::int64_t first, std::int64_t n, V* x) const = 0;

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
