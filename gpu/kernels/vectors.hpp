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
