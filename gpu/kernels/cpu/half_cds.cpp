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
};

}  // namespace

HalfCdsKernels const& HalfCdsKernels::cpu() {
  static CpuHalfCds const kernels;
  return kernels;
}

}  // namespace poisson
