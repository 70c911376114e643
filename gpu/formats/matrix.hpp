#pragma once

#include "gpu/core/context.hpp"
#include "gpu/core/csr_matrix.hpp"
#include "gpu/core/linear_operator.hpp"
#include "gpu/formats/cost.hpp"
#include "gpu/formats/format.hpp"

#include <memory>

namespace poisson {

/// A stored matrix: an operator that knows its format and its bytes. It has the products that kernels/product.hpp lists: stored in
/// double or double_double it is an operator in double and double-double, stored in single in float and double; others throw
/// std::logic_error. Its diagonal there is in all.
class Matrix : public MultiPrecisionOperator, public LinearOperator<float> {
public:
  explicit Matrix(Context& context) : context_(&context) {}
  [[nodiscard]] std::int64_t n_rows() const override = 0;
  [[nodiscard]] std::int64_t n_columns() const override = 0;
  using LinearOperator<float>::product, MultiPrecisionOperator::product;
  using LinearOperator<float>::product_dot, MultiPrecisionOperator::product_dot;
  using LinearOperator<float>::diagonal, MultiPrecisionOperator::diagonal;
  using LinearOperator<float>::bytes_read, MultiPrecisionOperator::bytes_read;
  using MultiPrecisionOperator::bytes_per_product;  // the others' by LinearOperator<float>, LinearOperator<DoubleDouble>

  [[nodiscard]] virtual MatrixPrecision precision() const = 0;
  [[nodiscard]] virtual Format format() const = 0;
  [[nodiscard]] virtual std::int64_t bytes() const = 0;  ///< exactly what is allocated for it on its backend
  [[nodiscard]] virtual double padding_ratio() const = 0;
  [[nodiscard]] Context& context() const final { return *context_; }  ///< in whose memory it is
  [[nodiscard]] std::int64_t first_row_not_finite() const final { return row_not_finite; }
  /// The same matrix in another context's memory, of either backend; its transfer_seconds are those of this copy.
  /// Throws OutOfMemoryError.
  [[nodiscard]] std::unique_ptr<Matrix> copy_to(Context& target) const;
  /// The matrix that this one was converted from, in host memory, bit for bit, explicit zeros included; with low values when it
  /// is stored in double_double, and rounded when it is in single. Two formats cannot keep
  /// all: cds and half_cds give zeros a positive sign, and half_cds gives a matrix that is symmetric only to rounding (or stores a
  /// zero on one side only) its lower triangle on both sides.
  [[nodiscard]] CsrMatrix to_csr() const;

  /// Seconds that conversion from CSR took, on whichever backend, and that moving CSR or the result to the device took (0 on the
  /// host).
  double convert_seconds = 0;
  double transfer_seconds = 0;
  /// First row of the assembled matrix that holds a NaN or an infinity, or -1: solvers refuse such a matrix.
  std::int64_t row_not_finite = -1;
  /// How far the assembled matrix is from symmetric (kernels/symmetry.hpp), where the format stores one triangle only; else 0.
  double asymmetry = 0;

protected:
  /// copy_to, without seconds, row_not_finite and asymmetry.
  [[nodiscard]] virtual std::unique_ptr<Matrix> copied_to(Context& target) const = 0;
  /// to_csr of a matrix in host memory.
  [[nodiscard]] virtual CsrMatrix host_csr() const = 0;

private:
  Context* context_;
};

/// Converts and moves as options.conversion says. csr and crs_t on the host share the arrays and copy nothing.
/// Throws InputError, with the name of the option as its key, when an option is out of range, whatever the format ("slice_size",
/// "sigma" ...), or when a device is asked for and the context has none ("conversion"); InputError (key "format") when the format
/// refuses the matrix, with the figures and a format that fits; OutOfMemoryError when device memory does not
/// suffice, naming the bytes needed, the bytes free and a format that would fit.
[[nodiscard]] std::unique_ptr<Matrix> make_matrix(Format format, std::shared_ptr<CsrMatrix const> csr, Context& context,
                                                  FormatOptions const& options = {});
/// `auto`: the same in the format that choose_format (formats/cost.hpp) takes for that forecast, with what it decided from in
/// `choice`. It looks at the copy of CSR that will be converted, in the memory in which it will be.
[[nodiscard]] std::unique_ptr<Matrix> make_matrix(Forecast const& forecast, std::shared_ptr<CsrMatrix const> csr, Context& context,
                                                  FormatOptions const& options, FormatChoice& choice);
/// The same from CSR in a backend's memory, in which the result will be too; csr and crs_t share the source's arrays. Errors as
/// above.
[[nodiscard]] std::unique_ptr<Matrix> make_matrix(Format format, Csr const& source, FormatOptions const& options = {});

}  // namespace poisson
