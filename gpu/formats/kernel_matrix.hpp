#pragma once

#include "gpu/core/array.hpp"
#include "gpu/formats/matrix.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/conversion.hpp"
#include "gpu/kernels/csr.hpp"

namespace poisson {

/// A matrix or operator whose products are ProductKernels on a view. One that stores no entries is in double.
template <class Kernels>
class ProductsOfKernels : public Matrix {
public:
  using View = typename Kernels::View;

  void product(float alpha, float const* x, float beta, float* y) const override {
    kernels_.product(context(), view_, alpha, x, beta, y);
  }
  void product(double alpha, double const* x, double beta, double* y) const override {
    kernels_.product(context(), view_, alpha, x, beta, y);
  }
  void product(DoubleDouble alpha, ConstPointer<DoubleDouble> x, DoubleDouble beta, Pointer<DoubleDouble> y) const override {
    kernels_.product(context(), view_, alpha, x, beta, y);
  }
  void product_dot(float const* x, float* y, float* dot, std::int32_t const* stop) const override {
    kernels_.product_dot(context(), view_, x, y, dot, stop);
  }
  void product_dot(double const* x, double* y, double* dot, std::int32_t const* stop) const override {
    kernels_.product_dot(context(), view_, x, y, dot, stop);
  }
  void product_dot(ConstPointer<DoubleDouble> x, Pointer<DoubleDouble> y, DoubleDouble* dot,
                   std::int32_t const* stop) const override {
    kernels_.product_dot(context(), view_, x, y, dot, stop);
  }
  bool smooth(SmoothingStep<float> const& step, float const* x, std::int32_t const* stop) const override {
    return smooth_by_kernels(step, x, stop);
  }
  bool smooth(SmoothingStep<double> const& step, double const* x, std::int32_t const* stop) const override {
    return smooth_by_kernels(step, x, stop);
  }
  bool subtract_product(float const* b, float const* x, float* r, std::int32_t const* stop) const override {
    return subtract_by_kernels(b, x, r, stop);
  }
  bool subtract_product(double const* b, double const* x, double* r, std::int32_t const* stop) const override {
    return subtract_by_kernels(b, x, r, stop);
  }
  MatrixPrecision precision() const final {
    if constexpr (requires(View const& view) { view.single_values; })
      return view_.single_values != nullptr ? MatrixPrecision::single
             : view_.low_values != nullptr  ? MatrixPrecision::double_double
                                            : MatrixPrecision::double_;
    else
      return MatrixPrecision::double_;
  }

protected:
  ProductsOfKernels(Context& context, View const& view) : Matrix(context), kernels_(kernels_for<Kernels>(context)), view_(view) {}

  Kernels const& kernels_;
  View view_;

private:
  static constexpr bool smooths = std::is_base_of_v<SmoothingKernels<View>, Kernels>;
  template <class V>
  bool smooth_by_kernels(SmoothingStep<V> const& step, V const* x, std::int32_t const* stop) const {
    if constexpr (smooths)
      kernels_.smooth(context(), view_, step, x, stop);
    return smooths;
  }
  template <class V>
  bool subtract_by_kernels(V const* b, V const* x, V* r, std::int32_t const* stop) const {
    if constexpr (smooths)
      kernels_.subtract_product(context(), view_, b, x, r, stop);
    return smooths;
  }
};

/// Base class of most formats: their products, and once for all what depends on the precision of storage.
template <class Kernels>
class KernelMatrix : public ProductsOfKernels<Kernels> {
  using Base = ProductsOfKernels<Kernels>;

public:
  using Base::bytes, Base::context, Base::n_rows, Base::precision;
  using typename Base::View;

  void diagonal(float* d) const final {
    if (precision() == MatrixPrecision::single)
      return extract_diagonal(view_.single_values, d);
    Array<double> wide(context(), n_rows());
    extract_diagonal(view_.values, wide.data());
    kernels_for<ConversionKernels>(context()).round(context(), n_rows(), wide.data(), d);
  }
  void diagonal(double* d) const final {
    if (precision() != MatrixPrecision::single)
      return extract_diagonal(view_.values, d);
    Array<float> narrow(context(), n_rows());
    extract_diagonal(view_.single_values, narrow.data());
    kernels_for<ConversionKernels>(context()).widen(context(), n_rows(), narrow.data(), d);
  }
  void diagonal(Pointer<DoubleDouble> d) const final {
    diagonal(d.hi);
    if (view_.low_values != nullptr)
      extract_diagonal(view_.low_values, d.lo);
    else if (n_rows() > 0)
      context().set_zero(d.lo, 8 * n_rows());
  }
  std::int64_t bytes_read(float) const final { return bytes() - low_bytes(); }
  std::int64_t bytes_read(double) const final { return bytes() - low_bytes(); }
  std::int64_t bytes_read(DoubleDouble) const final { return bytes(); }

protected:
  using Base::Base, Base::view_;

  /// d_i = a_ii of the matrix with `values` in place of its own (its low values, say), 0 where nothing is stored.
  virtual void extract_diagonal(double const* values, double* d) const = 0;
  virtual void extract_diagonal(float const* values, float* d) const = 0;
  /// Number of stored values, padding included.
  [[nodiscard]] virtual std::int64_t n_values() const = 0;
  [[nodiscard]] std::int64_t low_bytes() const { return view_.low_values != nullptr ? 8 * n_values() : 0; }
};

/// A KernelMatrix whose format has a loop for several columns: ColumnKernels read the entries once for all of them.
template <class Kernels, class ColumnKernels>
class ColumnMatrix : public KernelMatrix<Kernels> {
  using Base = KernelMatrix<Kernels>;

public:
  using Base::context, Base::product_dots, Base::smooth_all, Base::subtract_products;
  void product_dots(std::span<ProductColumn<double> const> columns) const final { multiply(columns); }
  void product_dots(std::span<ProductColumn<DoubleDouble> const> columns) const final { multiply(columns); }
  bool smooth_all(std::span<SmoothingColumn<float> const> columns) const final { return take_steps(columns); }
  bool smooth_all(std::span<SmoothingColumn<double> const> columns) const final { return take_steps(columns); }
  bool subtract_products(std::span<ResidualColumn<float> const> columns) const final { return subtract(columns); }
  bool subtract_products(std::span<ResidualColumn<double> const> columns) const final { return subtract(columns); }

protected:
  using Base::Base, Base::view_;

private:
  [[nodiscard]] ColumnKernels const& kernels() const { return kernels_for<ColumnKernels>(context()); }
  template <class T>
  void multiply(std::span<ProductColumn<T> const> columns) const {
    if (columns.size() == 1)
      LinearOperator<T>::product_dots(columns);
    else
      kernels().product_dots(context(), view_, columns);
  }
  template <class V>
  bool take_steps(std::span<SmoothingColumn<V> const> columns) const {
    if (columns.size() == 1)
      return Matrix::smooth_all(columns);
    kernels().smooth(context(), view_, columns);
    return true;
  }
  template <class V>
  bool subtract(std::span<ResidualColumn<V> const> columns) const {
    if (columns.size() == 1)
      return Matrix::subtract_products(columns);
    kernels().subtract_products(context(), view_, columns);
    return true;
  }
};

/// The values of a matrix in its precision, in the layout of its format.
struct StoredEntries {
  Array<double> values;        ///< high parts; empty in single
  Array<double> low_values;    ///< low parts in double_double, else empty
  Array<float> single_values;  ///< in single, else empty

  /// The values of `csr` in the precision of `options`. fill(csr, to) writes the values of a view in the format's layout, `size` of
  /// them. For single they are converted in double first, which takes 12 bytes a value meanwhile.
  template <class Fill>
  [[nodiscard]] static StoredEntries convert(Context& context, CsrView csr, FormatOptions const& options, std::int64_t size,
                                             Fill const& fill) {
    StoredEntries result;
    result.values = Array<double>(context, size);
    fill(csr, result.values.data());
    if (options.precision == MatrixPrecision::double_double) {
      result.low_values = Array<double>(context, size);
      if (csr.low_values == nullptr)
        result.low_values.set_zero();
      else {
        csr.values = csr.low_values;
        fill(csr, result.low_values.data());
      }
    } else if (options.precision == MatrixPrecision::single) {
      result.single_values = Array<float>(context, size);
      kernels_for<ConversionKernels>(context).round(context, size, result.values.data(), result.single_values.data());
      result.values = {};
    }
    return result;
  }
  [[nodiscard]] StoredEntries copy_to(Context& target) const {
    return {values.copy_to(target), low_values.copy_to(target), single_values.copy_to(target)};
  }
  /// Rounded. Precondition: they are in double.
  [[nodiscard]] StoredEntries in_single(Context& context) const {
    StoredEntries result;
    result.single_values = Array<float>(context, values.size());
    kernels_for<ConversionKernels>(context).round(context, values.size(), values.data(), result.single_values.data());
    return result;
  }
  [[nodiscard]] std::int64_t bytes() const { return values.bytes() + low_values.bytes() + single_values.bytes(); }
  /// Number of values, padding included.
  [[nodiscard]] std::int64_t size() const { return values.size() + single_values.size(); }
  /// The value at `place` without its low part. Precondition: the arrays are in host memory.
  [[nodiscard]] double value(std::int64_t place) const {
    return single_values.size() > 0 ? static_cast<double>(single_values.data()[place]) : values.data()[place];
  }
  /// Lets the view point to these arrays.
  template <class View>
  void set_pointers(View& view) const {
    view.values = values.data();
    view.low_values = low_values.data();
    view.single_values = single_values.data();
  }
};

}  // namespace poisson
