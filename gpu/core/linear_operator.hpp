#pragma once

#include "gpu/core/context.hpp"
#include "gpu/core/vector.hpp"

#include <cstdint>
#include <span>

namespace poisson {

/// Columns that are multiplied at once at most.
inline constexpr int most_columns = 8;

/// One of several products with the same operator: y = A x and *dot = x . y, unless *stop is not 0. Columns lie anywhere, so that
/// those that are done can be left out of the next block.
template <class T>
struct ProductColumn {
  ConstPointer<T> x;
  Pointer<T> y;
  T* dot;
  std::int32_t const* stop;
};

/// A linear map A of n_rows x n_columns in the arithmetic T: float, double or DoubleDouble. Vectors and scalars behind pointers are
/// in the memory of the operator's backend. On a device calls enqueue work and return; it runs in the order of the calls.
template <class T>
class LinearOperator {
public:
  virtual ~LinearOperator() = default;
  [[nodiscard]] virtual std::int64_t n_rows() const = 0;
  [[nodiscard]] virtual std::int64_t n_columns() const = 0;
  /// Bytes of stored values and indices that a product in T reads. The argument only selects the type.
  [[nodiscard]] virtual std::int64_t bytes_read(T) const = 0;
  /// Compulsory bytes of one product: every stored value and index once, x once, y once.
  [[nodiscard]] std::int64_t bytes_per_product() const {
    return bytes_read(T(0)) + std::int64_t{sizeof(T)} * (n_rows() + n_columns());
  }
  /// y = alpha A x + beta y with n_columns entries of x and n_rows of y; y is not read when beta = 0. Precondition: x and y do not
  /// overlap.
  virtual void product(T alpha, ConstPointer<T> x, T beta, Pointer<T> y) const = 0;
  /// y = A x and *dot = x . y in one pass. Does nothing when *stop is not 0. Preconditions: A is square; x and y do not overlap.
  virtual void product_dot(ConstPointer<T> x, Pointer<T> y, T* dot, std::int32_t const* stop) const = 0;
  /// product_dot of 1 to most_columns columns. Formats that have a loop for it read their entries once for all columns; the others
  /// take one column after another. On the host every column has the bits of product_dot; on a device y has them, and the sum in
  /// *dot may be added in another order. Preconditions: as product_dot's; no y overlaps another column.
  virtual void product_dots(std::span<ProductColumn<T> const> columns) const {
    for (ProductColumn<T> const& column : columns)
      product_dot(column.x, column.y, column.dot, column.stop);
  }
  /// d_i = a_ii for i < n_rows; 0 where nothing is stored. Precondition: A is square.
  virtual void diagonal(Pointer<T> d) const = 0;
};

/// One linear map in double and in double-double, with the context in whose memory it works: the operator that `solve` takes. It
/// may be matrix-free.
class MultiPrecisionOperator : public LinearOperator<double>, public LinearOperator<DoubleDouble> {
public:
  [[nodiscard]] std::int64_t n_rows() const override = 0;
  [[nodiscard]] std::int64_t n_columns() const override = 0;
  using LinearOperator<double>::product, LinearOperator<DoubleDouble>::product;
  using LinearOperator<double>::product_dot, LinearOperator<DoubleDouble>::product_dot;
  using LinearOperator<double>::product_dots, LinearOperator<DoubleDouble>::product_dots;
  using LinearOperator<double>::diagonal, LinearOperator<DoubleDouble>::diagonal;
  using LinearOperator<double>::bytes_read, LinearOperator<DoubleDouble>::bytes_read;
  using LinearOperator<double>::bytes_per_product;  // the other one's by LinearOperator<DoubleDouble>

  [[nodiscard]] virtual Context& context() const = 0;
  /// The first row (from 0) with a NaN or an infinity, or -1 when there is none. Solvers refuse an operator that has one.
  [[nodiscard]] virtual std::int64_t first_row_not_finite() const { return -1; }
};

}  // namespace poisson
