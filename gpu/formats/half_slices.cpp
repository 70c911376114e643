#include "gpu/formats/half_slices.hpp"

#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/conversion.hpp"

#include <stdexcept>

namespace poisson {

namespace {

[[noreturn]] void refuse_half() {
  throw std::logic_error("a matrix in half precision has products with vectors in single precision only");
}

}  // namespace

HalfSlices::HalfSlices(Context& context, SellView const& a, std::shared_ptr<SlicePattern const> pattern, double padding_ratio)
    : Matrix(context),
      kernels_(HalfSlicesKernels::cuda()),
      pattern_(std::move(pattern)),
      values_(context, pattern_->columns.size()),
      scales_(context, a.n_rows),
      diagonal_(context, a.n_rows),
      view_{a.n_rows,     pattern_->slice_ptr.data(), pattern_->columns.data(), values_.data(), scales_.data(), diagonal_.data(),
            a.longest_row},
      padding_ratio_(padding_ratio) {
  kernels_.round(context, view_, a.values, {values_.data(), scales_.data(), diagonal_.data()});
}

std::int64_t HalfSlices::bytes() const {
  return pattern_->bytes() + values_.bytes() + scales_.bytes() + diagonal_.bytes();
}

void HalfSlices::product(float alpha, float const* x, float beta, float* y) const {
  kernels_.product(context(), view_, alpha, x, beta, y);
}
void HalfSlices::product_dot(float const* x, float* y, float* dot, std::int32_t const* stop) const {
  kernels_.product_dot(context(), view_, x, y, dot, stop);
}
bool HalfSlices::smooth(SmoothingStep<float> const& step, float const* x, std::int32_t const* stop) const {
  kernels_.smooth(context(), view_, step, x, stop);
  return true;
}
bool HalfSlices::subtract_product(float const* b, float const* x, float* r, std::int32_t const* stop) const {
  kernels_.subtract_product(context(), view_, b, x, r, stop);
  return true;
}
void HalfSlices::diagonal(float* d) const {
  context().copy(d, view_.diagonal, diagonal_.bytes());
}
void HalfSlices::diagonal(double* d) const {
  kernels_for<ConversionKernels>(context()).widen(context(), view_.n_rows, view_.diagonal, d);
}
void HalfSlices::diagonal(Pointer<DoubleDouble>) const {
  refuse_half();
}
void HalfSlices::product(double, double const*, double, double*) const {
  refuse_half();
}
void HalfSlices::product(DoubleDouble, ConstPointer<DoubleDouble>, DoubleDouble, Pointer<DoubleDouble>) const {
  refuse_half();
}
void HalfSlices::product_dot(double const*, double*, double*, std::int32_t const*) const {
  refuse_half();
}
void HalfSlices::product_dot(ConstPointer<DoubleDouble>, Pointer<DoubleDouble>, DoubleDouble*, std::int32_t const*) const {
  refuse_half();
}
std::unique_ptr<Matrix> HalfSlices::copied_to(Context&) const {
  refuse_half();
}
CsrMatrix HalfSlices::host_csr() const {
  refuse_half();
}

}  // namespace poisson
