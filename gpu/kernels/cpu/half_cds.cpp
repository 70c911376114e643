#include "gpu/kernels/half_cds.hpp"

#include "gpu/kernels/cpu/cpu.hpp"
#include "gpu/kernels/cpu/half_cds_part.hpp"

#include <omp.h>

namespace poisson {

namespace {

using cpu::block_rows, cpu::complete_rows;

/// One part for each thread.
template <bool scaled, class T, class Values, class Start, class Done>
void run_parts(HalfCdsView const& a, Values values, T alpha, ConstPointer<T> x, Pointer<T> y, Start const& start,
               Done const& done) {
  std::int64_t const blocks = cpu::n_blocks(a.n);
  cpu::HalfDiagonals const diagonals{a.n, a.n, a.offsets};
  auto const groups = cpu::groups_of(a.offsets);
#pragma omp parallel if (blocks > 1 && 2 * a.n * std::ssize(a.offsets) * cpu::work_of <T> >= cpu::work_worth_threads)
  {
    std::int64_t const threads = omp_get_num_threads(), thread = omp_get_thread_num();
    cpu::HalfCdsPart<scaled, T, Values>(diagonals, values, groups, alpha, x, y, blocks * thread / threads,
                                        blocks * (thread + 1) / threads)
        .run(start, done);
  }
}

class CpuHalfCds final : public ProductsByTemplates<HalfCdsKernels, CpuHalfCds> {
public:
  void smooth(Context&, HalfCdsView const& a, SmoothingStep<float> const& step, float const* x,
              std::int32_t const* stop) const override {
    take_steps(a, step, x, stop);
  }
  void smooth(Context&, HalfCdsView const& a, SmoothingStep<double> const& step, double const* x,
              std::int32_t const* stop) const override {
    take_steps(a, step, x, stop);
  }
  void subtract_product(Context&, HalfCdsView const& a, float const* b, float const* x, float* r,
                        std::int32_t const* stop) const override {
    residual(a, b, x, r, stop);
  }
  void subtract_product(Context&, HalfCdsView const& a, double const* b, double const* x, double* r,
                        std::int32_t const* stop) const override {
    residual(a, b, x, r, stop);
  }

  template <class T, class Values>
  static void multiply(Context&, HalfCdsView const& a, Values values, T alpha, ConstPointer<T> x, T beta, Pointer<T> y) {
    auto const zero = [](std::int64_t) { return T(0); };
    auto const complete = [=, n = a.n](std::int64_t block) { complete_rows(n, block, y); };
    if (beta != 0)
      run_parts<true>(
          a, values, alpha, x, y, [=](std::int64_t i) { return beta * load(y, i); }, complete);
    else if (alpha != 1)
      run_parts<true>(a, values, alpha, x, y, zero, complete);
    else
      run_parts<false>(a, values, alpha, x, y, zero, complete);
  }

  template <class T, class Values>
  static void multiply_dot(Context& context, HalfCdsView const& a, Values values, ConstPointer<T> x, Pointer<T> y, T* dot,
                           std::int32_t const* stop) {
    if (*stop != 0)
      return;
    using Sum = std::conditional_t<std::is_same_v<T, float>, double, T>;
    Sum* const partial = static_cast<cpu::CpuContext&>(context).partial_sums<Sum>(cpu::n_blocks(a.n));
    auto const zero = [](std::int64_t) { return T(0); };
    run_parts<false>(a, values, T(1), x, y, zero, [=, n = a.n](std::int64_t block) {
      complete_rows(n, block, y);
      partial[block] = cpu::dot_of_rows(block * block_rows, std::min(n, (block + 1) * block_rows), x, ConstPointer<T>(y));
    });
    Sum sum = 0;
    for (std::int64_t block = 0; block < cpu::n_blocks(a.n); ++block)
      sum += partial[block];
    *dot = static_cast<T>(sum);
  }

private:
  /// y = A x, and row(i) for every row soon after it is complete.
  template <class V, class Row>
  static void for_products(HalfCdsView const& a, V const* x, V* y, Row const& row) {
    with_stored_values<V>(
        a,
        [&](auto values) {
          run_parts<false>(
              a, values, V(1), x, y, [](std::int64_t) { return V(0); },
              [&row, n = a.n](std::int64_t block) {
                std::int64_t const end = std::min(n, (block + 1) * block_rows);
#pragma omp simd
                for (std::int64_t i = block * block_rows; i < end; ++i)
                  row(i);
              });
        },
        ValuePairs());
  }
  template <class V>
  static void take_steps(HalfCdsView const& a, SmoothingStep<V> const& step, V const* x, std::int32_t const* stop) {
    if (*stop == 0 && a.n > 0)
      for_products(a, x, step.x_after, [step, x](std::int64_t i) { take_step(step, i, step.x_after[i], x[i]); });
  }
  template <class V>
  static void residual(HalfCdsView const& a, V const* b, V const* x, V* r, std::int32_t const* stop) {
    if (*stop == 0 && a.n > 0)
      for_products(a, x, r, [b, r](std::int64_t i) { r[i] = b[i] - r[i]; });
  }
};

}  // namespace

HalfCdsKernels const& HalfCdsKernels::cpu() {
  static CpuHalfCds const kernels;
  return kernels;
}

}  // namespace poisson
