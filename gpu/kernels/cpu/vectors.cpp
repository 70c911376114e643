#include "gpu/kernels/vectors.hpp"

#include "gpu/core/memory.hpp"
#include "gpu/kernels/cpu/cpu.hpp"

namespace poisson {

namespace {

template <class T>
void copy_vector(std::int64_t n, T const* x, T* y) {
  parallel_copy(y, x, n * std::int64_t{sizeof(T)});
}
void copy_vector(std::int64_t n, ConstPointer<DoubleDouble> x, Pointer<DoubleDouble> y) {
  copy_vector(n, x.hi, y.hi);
  copy_vector(n, x.lo, y.lo);
}

template <class T>
double distance_of_rows(std::int64_t begin, std::int64_t end, T const* x, T const* y) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = begin; i < end; ++i) {
    double const difference = static_cast<double>(x[i]) - static_cast<double>(y[i]);
    sum += difference * difference;
  }
  return sum;
}
DoubleDouble distance_of_rows(std::int64_t begin, std::int64_t end, ConstPointer<DoubleDouble> x, ConstPointer<DoubleDouble> y) {
  return cpu::sum_in_lanes(begin, end, [=](auto& sum, std::int64_t i) {
    DoubleDouble const difference = load(x, i) - load(y, i);
    sum.add(difference, difference);
  });
}

template <class T>
class CpuVectors final : public VectorKernels<T> {
public:
  void copy(Context&, std::int64_t n, ConstPointer<T> x, Pointer<T> y) const override { copy_vector(n, x, y); }

  void invert(Context&, std::int64_t n, Pointer<T> x) const override {
    cpu::for_blocks(n, n * cpu::work_of<T>, [=](std::int64_t begin, std::int64_t end, std::int64_t) {
      for (std::int64_t i = begin; i < end; ++i)
        store(x, i, static_cast<T>(1.0 / load(x, i)));
    });
  }

  void scale(Context&, std::int64_t n, double const* d, ConstPointer<T> x, Pointer<T> y, std::int32_t const* stop) const override {
    if (*stop != 0)
      return;
    cpu::for_blocks(n, n * cpu::work_of<T>, [=](std::int64_t begin, std::int64_t end, std::int64_t) {
      for (std::int64_t i = begin; i < end; ++i)
        store(y, i, static_cast<T>(d[i] * load(x, i)));
    });
  }

  void dot(Context& context, std::int64_t n, ConstPointer<T> x, ConstPointer<T> y, T* result) const override {
    *result = cpu::sum_blocks_to<T>(context, n, n * cpu::work_of<T>,
                                    [=](std::int64_t begin, std::int64_t end) { return cpu::dot_of_rows(begin, end, x, y); });
  }

  void distance_squared(Context& context, std::int64_t n, ConstPointer<T> x, ConstPointer<T> y, T* result) const override {
    *result = cpu::sum_blocks_to<T>(context, n, n * cpu::work_of<T>,
                                    [=](std::int64_t begin, std::int64_t end) { return distance_of_rows(begin, end, x, y); });
  }
};

}  // namespace

template <>
VectorKernels<float> const& VectorKernels<float>::cpu() {
  static CpuVectors<float> const kernels;
  return kernels;
}
template <>
VectorKernels<double> const& VectorKernels<double>::cpu() {
  static CpuVectors<double> const kernels;
  return kernels;
}
template <>
VectorKernels<DoubleDouble> const& VectorKernels<DoubleDouble>::cpu() {
  static CpuVectors<DoubleDouble> const kernels;
  return kernels;
}

}  // namespace poisson
