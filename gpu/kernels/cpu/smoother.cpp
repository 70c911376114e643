#include "gpu/kernels/smoother.hpp"

#include "gpu/kernels/cpu/cpu.hpp"

namespace poisson {

namespace {

template <class Body>
void for_rows(std::int64_t n, Body const& body) {
  cpu::for_blocks(n, 3 * n, [&](std::int64_t begin, std::int64_t end, std::int64_t) {
#pragma omp simd
    for (std::int64_t i = begin; i < end; ++i)
      body(i);
  });
}

template <class V>
class CpuSmoother final : public SmootherKernels<V> {
public:
  void begin(Context&, std::int64_t n, V const* diagonal, V const* b, V factor, V* x, std::int32_t const* stop) const override {
    if (*stop == 0)
      for_rows(n, [=](std::int64_t i) { x[i] = factor * b[i] / diagonal[i]; });
  }
  void fill(Context&, std::int64_t n, V value, V* x) const override {
    for_rows(n, [=](std::int64_t i) { x[i] = value; });
  }
  void fill_pseudo_random(Context&, std::int64_t first, std::int64_t n, V* x) const override {
    for_rows(n, [=](std::int64_t i) { x[i] = static_cast<V>(pseudo_random(first + i)); });
  }
  void begin_from_outside(Context&, std::int64_t n, V const* diagonal, double const* r, V factor, V* b, V* x,
                          std::int32_t const* stop) const override {
    if (*stop == 0)
      for_rows(n, [=](std::int64_t i) {
        b[i] = static_cast<V>(r[i]);
        x[i] = factor * b[i] / diagonal[i];
      });
  }

  void step(Context&, std::int64_t n, SmoothingStep<V> const& step, V const* y, V const* x,
            std::int32_t const* stop) const override {
    if (*stop == 0)
      for_rows(n, [=](std::int64_t i) { take_step(step, i, y[i], x[i]); });
  }

  void lanczos(Context& context, std::int64_t n, LanczosStep<V> const& step) const override {
    auto const factors = step.factors();
    double const norm = cpu::sum_blocks(context, n, 4 * n, [&](std::int64_t begin, std::int64_t end) {
      double sum = 0;
#pragma omp simd reduction(+ : sum)
      for (std::int64_t i = begin; i < end; ++i)
        sum += step.take(i, factors);
      return sum;
    });
    if (n > 0)
      step.norms[step.k + 1] = norm;
  }

  void residual(Context&, std::int64_t n, V const* b, V* y, std::int32_t const* stop) const override {
    if (*stop == 0)
      for_rows(n, [=](std::int64_t i) { y[i] = b[i] - y[i]; });
  }

  void solve_dense(Context&, std::int64_t n, V const* m, V const* b, V* x, std::int32_t const* stop) const override {
    if (*stop != 0)
      return;
    for (std::int64_t i = 0; i < n; ++i) {
      V sum = 0;
#pragma omp simd reduction(+ : sum)
      for (std::int64_t j = 0; j < n; ++j)
        sum += m[i * n + j] * b[j];
      x[i] = sum;
    }
  }

  void to_outside(Context&, std::int64_t n, V const* x, double* z, std::int32_t const* stop) const override {
    if (*stop == 0)
      for_rows(n, [=](std::int64_t i) { z[i] = static_cast<double>(x[i]); });
  }
};

template <class V>
SmootherKernels<V> const& kernels() {
  static CpuSmoother<V> const instance;
  return instance;
}

}  // namespace

template <>
SmootherKernels<float> const& SmootherKernels<float>::cpu() {
  return kernels<float>();
}
template <>
SmootherKernels<double> const& SmootherKernels<double>::cpu() {
  return kernels<double>();
}

}  // namespace poisson
