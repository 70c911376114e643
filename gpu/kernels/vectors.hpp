#pragma once

#include "gpu/core/vector.hpp"

#include <cstdint>

namespace poisson {

/// Vector operations outside the iteration loops. Pointers are in the backend's memory; sums are added in a fixed order, those of
/// float in double where they are long.
template <class T>
class VectorKernels {
public:
  virtual ~VectorKernels() = default;
  virtual void copy(Context& context, std::int64_t n, ConstPointer<T> x, Pointer<T> y) const = 0;  ///< y = x
  virtual void invert(Context& context, std::int64_t n, Pointer<T> x) const = 0;                   ///< x_i = 1 / x_i
  /// y_i = d_i x_i, unless *stop is set. x and y do not overlap.
  virtual void scale(Context& context, std::int64_t n, double const* d, ConstPointer<T> x, Pointer<T> y,
                     std::int32_t const* stop) const = 0;
  virtual void dot(Context& context, std::int64_t n, ConstPointer<T> x, ConstPointer<T> y, T* result) const = 0;
  virtual void distance_squared(Context& context, std::int64_t n, ConstPointer<T> x, ConstPointer<T> y, T* result) const = 0;

  static VectorKernels const& cpu();
  static VectorKernels const& cuda();
};

template <>
VectorKernels<float> const& VectorKernels<float>::cpu();
template <>
VectorKernels<float> const& VectorKernels<float>::cuda();
template <>
VectorKernels<double> const& VectorKernels<double>::cpu();
template <>
VectorKernels<double> const& VectorKernels<double>::cuda();
template <>
VectorKernels<DoubleDouble> const& VectorKernels<DoubleDouble>::cpu();
template <>
VectorKernels<DoubleDouble> const& VectorKernels<DoubleDouble>::cuda();

}  // namespace poisson
