#pragma once

#include "gpu/core/array.hpp"
#include "gpu/formats/matrix.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/csr.hpp"

namespace poisson {

/// What formats have in common whose products are a set of kernels over a view.
template <class Kernels>
class KernelMatrix : public Matrix {
public:
  using View = typename Kernels::View;

  void product(double alpha, double const* x, double beta, double* y) const final {
    kernels_.product(context(), view_, alpha, x, beta, y);
  }
  void product(DoubleDouble alpha, ConstPointer<DoubleDouble> x, DoubleDouble beta, Pointer<DoubleDouble> y) const final {
    kernels_.product(context(), view_, alpha, x, beta, y);
  }
  void product_dot(double const* x, double* y, double* dot, std::int32_t const* stop) const final {
    kernels_.product_dot(context(), view_, x, y, dot, stop);
  }
  void product_dot(ConstPointer<DoubleDouble> x, Pointer<DoubleDouble> y, DoubleDouble* dot, std::int32_t const* stop) const final {
    kernels_.product_dot(context(), view_, x, y, dot, stop);
  }
  void diagonal(double* d) const final { take_diagonal(view_.values, d); }
  void diagonal(Pointer<DoubleDouble> d) const final {
    take_diagonal(view_.values, d.hi);
    if (view_.low_values != nullptr)
      take_diagonal(view_.low_values, d.lo);
    else if (n_rows() > 0)
      context().set_zero(d.lo, 8 * n_rows());
  }
  MatrixPrecision precision() const final {
    return view_.low_values != nullptr ? MatrixPrecision::double_double : MatrixPrecision::double_;
  }
  std::int64_t bytes_read(double) const final { return bytes() - low_bytes(); }
  std::int64_t bytes_read(DoubleDouble) const final { return bytes(); }

protected:
  KernelMatrix(Context& context, View const& view) : Matrix(context), kernels_(kernels_for<Kernels>(context)), view_(view) {}
  /// d_i = a_ii of the matrix with these values, 0 where nothing is stored.
  virtual void take_diagonal(double const* values, double* d) const = 0;
  /// Numbers that `values` of the view holds.
  [[nodiscard]] virtual std::int64_t n_values() const = 0;
  [[nodiscard]] std::int64_t low_bytes() const { return view_.low_values != nullptr ? 8 * n_values() : 0; }

  Kernels const& kernels_;
  View view_;
};

/// The low parts of the entries of `csr`, laid out as the format does it: none when matrices are stored in double.
/// fill(csr, values) converts the entries of a view to `size` values.
template <class Fill>
[[nodiscard]] Array<double> convert_low_values(Context& context, CsrView csr, FormatOptions const& options, std::int64_t size,
                                               Fill const& fill) {
  if (options.precision == MatrixPrecision::double_)
    return {};
  Array<double> low(context, size);
  if (csr.low_values == nullptr)
    low.set_zero();
  else {
    csr.values = csr.low_values;
    fill(csr, low.data());
  }
  return low;
}

}  // namespace poisson
