#pragma once

#include "gpu/core/context.hpp"
#include "gpu/core/csr_matrix.hpp"
#include "gpu/core/linear_operator.hpp"
#include "gpu/formats/cost.hpp"
#include "gpu/formats/format.hpp"
#include "gpu/kernels/columns.hpp"
#include "gpu/kernels/smoothing_step.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <span>

namespace poisson {

/// A sparse matrix in one of the formats. Which products it has depends on the precision of its entries (ValuePairs in
/// kernels/product.hpp): in double or double_double those with vectors of double and DoubleDouble, in single those with vectors of
/// float and double; others throw std::logic_error. diagonal() works in every arithmetic.
class Matrix : public MultiPrecisionOperator, public LinearOperator<float> {
public:
  explicit Matrix(Context& context) : context_(&context) {}
  [[nodiscard]] std::int64_t n_rows() const override = 0;
  [[nodiscard]] std::int64_t n_columns() const override = 0;
  using LinearOperator<float>::product, MultiPrecisionOperator::product;
  using LinearOperator<float>::product_dot, MultiPrecisionOperator::product_dot;
  using LinearOperator<float>::product_dots, MultiPrecisionOperator::product_dots;
  using LinearOperator<float>::diagonal, MultiPrecisionOperator::diagonal;
  using LinearOperator<float>::bytes_read, MultiPrecisionOperator::bytes_read;
  using MultiPrecisionOperator::bytes_per_product;  // the others' by LinearOperator<float>, LinearOperator<DoubleDouble>

  [[nodiscard]] virtual MatrixPrecision precision() const = 0;
  [[nodiscard]] virtual Format format() const = 0;
  [[nodiscard]] virtual std::int64_t bytes() const = 0;               ///< exactly what is allocated for it on its backend
  [[nodiscard]] virtual double padding_ratio() const = 0;             ///< see FormatEstimate
  [[nodiscard]] Context& context() const final { return *context_; }  ///< in whose memory the matrix is
  [[nodiscard]] std::int64_t first_row_not_finite() const final { return row_not_finite; }
  /// Copies the matrix to another context's memory, of either backend. The copy's transfer_seconds are those of this copy. Throws
  /// OutOfMemoryError.
  [[nodiscard]] std::unique_ptr<Matrix> copy_to(Context& target) const;
  /// The matrix that this one was converted from, bit for bit, explicit zeros included; with low values in double_double, rounded
  /// in single. Two exceptions: cds and half_cds return stored zeros with positive sign, and half_cds returns its lower triangle on
  /// both sides where the matrix was symmetric only to rounding or stored a zero on one side only.
  [[nodiscard]] CsrMatrix to_csr() const;

  /// Returns what the cells of this rank contribute to a matrix that is their sum over ranks, in host memory. Rows and columns are
  /// own unknowns, then ghosts. -0.0 stands where it is nothing. See RankMatrix.
  [[nodiscard]] virtual CsrMatrix rows_of_cells() const { return to_csr(); }

  /// Returns this matrix, in the same memory, with entries that are rounded to single precision. Null where its precision is
  /// another than double, or where its format has no short way to do it. Throws OutOfMemoryError.
  [[nodiscard]] virtual std::unique_ptr<Matrix> in_single() const { return nullptr; }

  /// Returns this matrix in half precision for smoothers (formats/half_slices.hpp), in the same memory. Null on the host, where its
  /// precision is another than double, or where its format has no short way to do it. Precondition: it is square. Throws
  /// OutOfMemoryError.
  [[nodiscard]] virtual std::unique_ptr<Matrix> in_half() const { return nullptr; }

  /// Returns this matrix in CSR, in the same memory, in double. Null where its precision is another, or where its format has no
  /// short way to do it. Throws OutOfMemoryError.
  [[nodiscard]] virtual std::unique_ptr<Csr> as_csr() const;

  /// r = b - A (x + x_low), rounded at the end, straight from the stored entries by code that products do not share
  /// (kernels/check.hpp); x_low may be null. Pointers are in the backend's memory. False, and nothing is done, where a format has
  /// no such loop: then to_csr tells the entries.
  [[nodiscard]] virtual bool residual(double const* x, double const* x_low, double const* b, double* r) const {
    static_cast<void>(x), static_cast<void>(x_low), static_cast<void>(b), static_cast<void>(r);
    return false;
  }

  /// A step of a smoother, and r = b - A x, in one pass over the matrix (kernels/smoothing_step.hpp). False, and nothing is done,
  /// where the format has no such loop.
  virtual bool smooth(SmoothingStep<float> const&, float const* /*x*/, std::int32_t const* /*stop*/) const { return false; }
  virtual bool smooth(SmoothingStep<double> const&, double const* /*x*/, std::int32_t const* /*stop*/) const { return false; }
  virtual bool subtract_product(float const* /*b*/, float const* /*x*/, float* /*r*/, std::int32_t const* /*stop*/) const {
    return false;
  }
  virtual bool subtract_product(double const* /*b*/, double const* /*x*/, double* /*r*/, std::int32_t const* /*stop*/) const {
    return false;
  }

  /// The same for 1 to most_columns columns, with the same bits; formats that have a loop for it read their entries once for all.
  virtual bool smooth_all(std::span<SmoothingColumn<float> const> columns) const { return one_by_one(columns); }
  virtual bool smooth_all(std::span<SmoothingColumn<double> const> columns) const { return one_by_one(columns); }
  virtual bool subtract_products(std::span<ResidualColumn<float> const> columns) const { return one_by_one(columns); }
  virtual bool subtract_products(std::span<ResidualColumn<double> const> columns) const { return one_by_one(columns); }

  /// Wall-clock seconds of the conversion from CSR, on either backend, and of copying CSR or the result to the device (0 on the
  /// host).
  double convert_seconds = 0;
  double transfer_seconds = 0;
  /// The first row (from 0) of the assembled matrix with a NaN or an infinity, or -1. Solvers refuse a matrix that has one.
  std::int64_t row_not_finite = -1;
  /// How far the assembled matrix is from symmetric (kernels/symmetry.hpp), where the format stores one triangle only; else 0.
  double asymmetry = 0;

protected:
  /// copy_to, without seconds, row_not_finite and asymmetry.
  [[nodiscard]] virtual std::unique_ptr<Matrix> copied_to(Context& target) const = 0;
  /// to_csr of a matrix in host memory.
  [[nodiscard]] virtual CsrMatrix host_csr() const = 0;

private:
  template <class V>
  bool one_by_one(std::span<SmoothingColumn<V> const> columns) const {
    return std::ranges::all_of(columns, [&](SmoothingColumn<V> const& c) { return smooth(c.step, c.x, c.stop); });
  }
  template <class V>
  bool one_by_one(std::span<ResidualColumn<V> const> columns) const {
    return std::ranges::all_of(columns, [&](ResidualColumn<V> const& c) { return subtract_product(c.b, c.x, c.r, c.stop); });
  }

  Context* context_;
};

/// The matrix in the given format in the context's memory, converted where options.conversion says. csr and crs_t on the host share
/// the arrays of `csr`. Throws InputError with the option's name as its key when an option is out of range, whatever the format
/// ("slice_size", "sigma", ...), or when Conversion::device is asked for on the CPU backend ("conversion"); InputError with key
/// "format" when the format refuses the matrix, with the reason and a format that fits; OutOfMemoryError with the bytes needed, the
/// bytes free and a format that would fit.
[[nodiscard]] std::unique_ptr<Matrix> make_matrix(Format format, std::shared_ptr<CsrMatrix const> csr, Context& context,
                                                  FormatOptions const& options = {});
/// Makes the matrix of format `auto`: in the format that choose_format (formats/cost.hpp) chooses for `forecast`, which is returned
/// in `choice`. The choice is made from the copy of CSR that will be converted, on its backend.
[[nodiscard]] std::unique_ptr<Matrix> make_matrix(Forecast const& forecast, std::shared_ptr<CsrMatrix const> csr, Context& context,
                                                  FormatOptions const& options, FormatChoice& choice);
/// Makes the matrix in the given format from CSR in the memory of either backend, where the result will be too. csr and crs_t share
/// the arrays of `source`. Throws InputError and OutOfMemoryError as make_matrix of a CsrMatrix does.
[[nodiscard]] std::unique_ptr<Matrix> make_matrix(Format format, Csr const& source, FormatOptions const& options = {});

}  // namespace poisson
