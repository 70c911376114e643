#pragma once

#include "gpu/core/array.hpp"
#include "gpu/core/host_vector.hpp"
#include "gpu/formats/matrix.hpp"
#include "gpu/kernels/box_stencil.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

namespace poisson {

/// The matrix of trilinear elements with constant k on a box, matrix-free: a stencil, and the stored rows of nodes on faces, 216
/// bytes each. An operator in float, double and double-double.
class BoxOperator final : public Matrix {
public:
  /// k is the constant of `k`, or with three components its constants kx, ky, kz; the data of `box` on Robin faces are in the
  /// context's memory, and not needed later. Precondition: three nodes or more in every direction.
  BoxOperator(Context& context, BoxElements const& box, int components, BoxField const& k);

  /// The same where rows of nodes on faces are given, laid out as BoxStencilView::face_rows, in the context's memory: of a part of
  /// a larger box, say. Of `box` the types of its faces count.
  BoxOperator(Context& context, BoxElements const& box, int components, BoxField const& k, Array<double> face_rows);

  /// The same problem with cells twice as long in the directions that are `halved`. Its matrix is P^T A P with linear interpolation
  /// P, because its elements are contained in these. Null where that is not known: an odd number of cells in such a direction,
  /// fewer than three nodes left, or a Robin face, whose alpha may vary.
  [[nodiscard]] std::unique_ptr<BoxOperator> coarser(std::array<bool, 3> const& halved) const;
  /// What the coarser box is, where there is one.
  [[nodiscard]] static std::optional<BoxElements> coarser(BoxElements const& box, std::array<bool, 3> const& halved);
  [[nodiscard]] BoxStencilView const& view() const { return view_; }
  [[nodiscard]] int components() const { return components_; }
  [[nodiscard]] BoxField const& coefficient() const { return k_; }  ///< its constants
  /// Laid out as BoxStencilView says, in host memory: there already, or copied to `copy`.
  [[nodiscard]] std::span<double const> face_rows(HostVector<double>& copy) const;

  Format format() const override { return Format::matrix_free; }
  MatrixPrecision precision() const override { return MatrixPrecision::double_; }
  std::int64_t bytes() const override { return face_rows_.bytes(); }
  double padding_ratio() const override { return 1; }
  std::int64_t n_rows() const override { return view_.box.n_rows(); }
  std::int64_t n_columns() const override { return view_.box.n_rows(); }
  std::int64_t bytes_read(float) const override { return bytes(); }
  std::int64_t bytes_read(double) const override { return bytes(); }
  std::int64_t bytes_read(DoubleDouble) const override { return bytes(); }

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
  void diagonal(float* d) const override { kernels_.diagonal(context(), view_, d); }
  void diagonal(double* d) const override { kernels_.diagonal(context(), view_, d); }
  void diagonal(Pointer<DoubleDouble> d) const override;
  bool residual(double const* x, double const* x_low, double const* b, double* r) const override;
  bool smooth(SmoothingStep<float> const& step, float const* x, std::int32_t const* stop) const override {
    kernels_.smooth(context(), view_, step, x, stop);
    return true;
  }
  bool smooth(SmoothingStep<double> const& step, double const* x, std::int32_t const* stop) const override {
    kernels_.smooth(context(), view_, step, x, stop);
    return true;
  }
  bool subtract_product(float const* b, float const* x, float* r, std::int32_t const* stop) const override {
    kernels_.subtract_product(context(), view_, b, x, r, stop);
    return true;
  }
  bool subtract_product(double const* b, double const* x, double* r, std::int32_t const* stop) const override {
    kernels_.subtract_product(context(), view_, b, x, r, stop);
    return true;
  }
  /// The diagonals of half_stencil, laid out as HalfCdsView says; -0.0 where nothing is stored.
  void fill_diagonals(float* values) const { kernels_.fill_diagonals(context(), view_, values); }
  void fill_diagonals(double* values) const { kernels_.fill_diagonals(context(), view_, values); }

protected:
  std::unique_ptr<Matrix> copied_to(Context& target) const override;
  CsrMatrix host_csr() const override;

private:
  BoxOperator(Context& context, BoxOperator const& other);
  void set_stencil(BoxElements const& box);

  BoxStencilKernels const& kernels_;
  int components_;
  BoxField k_;
  BoxStencilView view_;
  Array<double> face_rows_;
};

}  // namespace poisson
