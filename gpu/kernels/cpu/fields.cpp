#include "gpu/kernels/fields.hpp"

#include "gpu/core/double_double.hpp"
#include "gpu/kernels/cpu/cpu.hpp"
#include "gpu/kernels/field_values.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace poisson {

namespace {

class CpuFields final : public FieldKernels {
public:
  void add(Context&, std::int64_t n, double sign, double* d, Pointer<DoubleDouble> x) const override {
    cpu::for_blocks(n, n * cpu::work_of<DoubleDouble>, [=](std::int64_t begin, std::int64_t end, std::int64_t) {
      for (std::int64_t i = begin; i < end; ++i) {
        store(x, i, load(x, i) + sign * d[i]);
        d[i] = 0;
      }
    });
  }

  void scale(Context&, std::int64_t n, int exponent, double const* x, double* y) const override {
    PowerOfTwo const power(exponent);
    cpu::for_blocks(n, n, [=](std::int64_t begin, std::int64_t end, std::int64_t) {
      for (std::int64_t i = begin; i < end; ++i)
        y[i] = power.times(x[i]);
    });
  }

  void subtract(Context&, std::int64_t n, DoubleDouble const* value, Pointer<DoubleDouble> x) const override {
    cpu::for_blocks(n, n * cpu::work_of<DoubleDouble>, [=](std::int64_t begin, std::int64_t end, std::int64_t) {
      for (std::int64_t i = begin; i < end; ++i) {
        DoubleDouble const rest = DoubleDouble{x.hi[i], x.lo != nullptr ? x.lo[i] : 0.0} - *value;
        x.hi[i] = rest.hi;
        if (x.lo != nullptr)
          x.lo[i] = rest.lo;
      }
    });
  }

  void set_where(Context&, std::int64_t n, std::uint8_t const* marks, double const* values, double* x) const override {
    cpu::for_blocks(n, n, [=](std::int64_t begin, std::int64_t end, std::int64_t) {
      for (std::int64_t i = begin; i < end; ++i)
        if (marks[i] != 0)
          x[i] = values[i];
    });
  }

  void largest(Context&, std::int64_t n, double const* x, DiagonalWeights weights, double* result) const override {
    double largest = 0;
    bool number = true;
#pragma omp parallel for schedule(static) reduction(max : largest) reduction(&& : number) if (n >= cpu::work_worth_threads)
    for (std::int64_t i = 0; i < n; ++i) {
      double const value = std::abs(weighted_value(x, weights, i));
      number = number && value == value;
      largest = std::max(largest, value);
    }
    *result = number ? largest : std::numeric_limits<double>::quiet_NaN();
  }

  void first_failing(Context&, std::int64_t n, double const* x, EntryCheck check, std::int64_t* result) const override {
    std::int64_t first = n;
#pragma omp parallel for schedule(static) reduction(min : first) if (n >= cpu::work_worth_threads)
    for (std::int64_t i = 0; i < n; ++i)
      if (!passes(check, x[i]))
        first = std::min(first, i);
    *result = first;
  }

  void sum(Context& context, std::int64_t n, ConstPointer<DoubleDouble> x, DoubleDouble* result) const override {
    *result = cpu::sum_blocks(context, n, n * cpu::work_of<DoubleDouble>, [=](std::int64_t begin, std::int64_t end) {
      DoubleDouble sum = 0;
      for (std::int64_t i = begin; i < end; ++i)
        sum += DoubleDouble{x.hi[i], x.lo != nullptr ? x.lo[i] : 0.0};
      return sum;
    });
  }

  void squares(Context& context, std::int64_t n, double const* x, DiagonalWeights weights, int exponent,
               DoubleDouble* result) const override {
    PowerOfTwo const power(exponent);
    *result = cpu::sum_blocks(context, n, n * cpu::work_of<DoubleDouble>, [=](std::int64_t begin, std::int64_t end) {
      return cpu::sum_in_lanes(begin, end, [=](auto& sum, std::int64_t i) {
        DoubleDouble const value = power.times(weighted_value(x, weights, i));
        sum.add(value, value);
      });
    });
  }
};

}  // namespace

FieldKernels const& FieldKernels::cpu() {
  static CpuFields const kernels;
  return kernels;
}

}  // namespace poisson
