#pragma once

#include "gpu/core/vector.hpp"

#include <cstdint>

namespace poisson {

/// What a solver needs to know of a linear map in the arithmetic T, double or DoubleDouble. Pointers are in the memory of the
/// operator's backend; calls are enqueued, and finish in order.
template <class T>
class Operator {
public:
  virtual ~Operator() = default;
  [[nodiscard]] virtual std::int64_t n_rows() const = 0;
  [[nodiscard]] virtual std::int64_t n_columns() const = 0;
  /// Bytes of stored values and indices that a product in T reads; of the argument only the type counts.
  [[nodiscard]] virtual std::int64_t bytes_read(T) const = 0;
  /// Compulsory bytes of one product: every stored value and index once, x once, y once.
  [[nodiscard]] std::int64_t bytes_per_product() const {
    return bytes_read(T(0)) + std::int64_t{sizeof(T)} * (n_rows() + n_columns());
  }
  /// y = alpha A x + beta y; y is not read when beta = 0. x and y do not overlap.
  virtual void product(T alpha, ConstPointer<T> x, T beta, Pointer<T> y) const = 0;
  /// y = A x and *dot = x . y in one pass. Does nothing when *stop (in the backend's memory) is not 0. Square operators only.
  virtual void product_dot(ConstPointer<T> x, Pointer<T> y, T* dot, std::int32_t const* stop) const = 0;
  /// d_i = a_ii, 0 where nothing is stored.
  virtual void diagonal(Pointer<T> d) const = 0;
};

}  // namespace poisson
