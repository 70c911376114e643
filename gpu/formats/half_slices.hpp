#pragma once

#include "gpu/core/array.hpp"
#include "gpu/formats/matrix.hpp"
#include "gpu/formats/slice_pattern.hpp"
#include "gpu/kernels/half_slices.hpp"
#include "gpu/kernels/sell_c_sigma.hpp"

#include <memory>

namespace poisson {

/// A matrix in half precision for the smoothers of multigrid on a device; see HalfSlicesView. It has products with vectors of float
/// only; others throw std::logic_error.
class HalfSlices final : public Matrix {
public:
  /// Rounds the matrix `a`, in double on a device, to half precision. `pattern` is that of `a`, whose slices are as in
  /// HalfSlicesView. Throws OutOfMemoryError.
  HalfSlices(Context& context, SellView const& a, std::shared_ptr<SlicePattern const> pattern, double padding_ratio);

  std::int64_t n_rows() const override { return view_.n_rows; }
  std::int64_t n_columns() const override { return view_.n_rows; }
  MatrixPrecision precision() const override { return MatrixPrecision::single; }
  Format format() const override { return Format::sell_c_sigma; }
  std::int64_t bytes() const override;
  double padding_ratio() const override { return padding_ratio_; }
  std::int64_t bytes_read(float) const override { return bytes(); }
  std::int64_t bytes_read(double) const override { return bytes(); }
  std::int64_t bytes_read(DoubleDouble) const override { return bytes(); }

  void product(float alpha, float const* x, float beta, float* y) const override;
  void product(double alpha, double const* x, double beta, double* y) const override;
  void product(DoubleDouble alpha, ConstPointer<DoubleDouble> x, DoubleDouble beta, Pointer<DoubleDouble> y) const override;
  void product_dot(float const* x, float* y, float* dot, std::int32_t const* stop) const override;
  void product_dot(double const* x, double* y, double* dot, std::int32_t const* stop) const override;
  void product_dot(ConstPointer<DoubleDouble> x, Pointer<DoubleDouble> y, DoubleDouble* dot,
                   std::int32_t const* stop) const override;
  bool smooth(SmoothingStep<float> const& step, float const* x, std::int32_t const* stop) const override;
  bool subtract_product(float const* b, float const* x, float* r, std::int32_t const* stop) const override;
  void diagonal(float* d) const override;
  void diagonal(double* d) const override;
  void diagonal(Pointer<DoubleDouble> d) const override;

protected:
  std::unique_ptr<Matrix> copied_to(Context& target) const override;
  CsrMatrix host_csr() const override;

private:
  HalfSlicesKernels const& kernels_;
  std::shared_ptr<SlicePattern const> pattern_;
  Array<std::uint16_t> values_;
  Array<float> scales_, diagonal_;
  HalfSlicesView view_;
  double padding_ratio_;
};

}  // namespace poisson
