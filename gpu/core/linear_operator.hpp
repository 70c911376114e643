#pragma once

#include "gpu/core/context.hpp"
#include "gpu/core/vector.hpp"

#include <cstdint>

namespace poisson {

/// What a solver needs to know of a linear map in the arithmetic T, double or DoubleDouble. Pointers are in the memory of the
/// operator's backend; calls are enqueued, and finish in order.
template <class T>
class LinearOperator {
public:
  virtual ~LinearOperator() = default;
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

/// One linear map in both precisions, with the context in whose memory it works: what `solve` takes. It need not store a matrix.
class MultiPrecisionOperator : public LinearOperator<double>, public LinearOperator<DoubleDouble> {
public:
  [[nodiscard]] std::int64_t n_rows() const override = 0;
  [[nodiscard]] std::int64_t n_columns() const override = 0;
  using LinearOperator<double>::product, LinearOperator<DoubleDouble>::product;
  using LinearOperator<double>::product_dot, LinearOperator<DoubleDouble>::product_dot;
  using LinearOperator<double>::diagonal, LinearOperator<DoubleDouble>::diagonal;
  using LinearOperator<double>::bytes_read, LinearOperator<DoubleDouble>::bytes_read;
  using LinearOperator<double>::bytes_per_product;  // the other one's by LinearOperator<DoubleDouble>

  [[nodiscard]] virtual Context& context() const = 0;
  /// First row with a NaN or an infinity, or -1: solvers refuse such an operator.
  [[nodiscard]] virtual std::int64_t first_row_not_finite() const { return -1; }
};

}  // namespace poisson
