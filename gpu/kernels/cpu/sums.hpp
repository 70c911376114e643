#pragma once

#include "gpu/core/double_double.hpp"
#include "gpu/kernels/cpu/cpu.hpp"

// For `#pragma omp simd reduction(+ : sum)` in code that is written once for double and DoubleDouble.
#pragma omp declare reduction(+ : poisson::DoubleDouble : omp_out += omp_in) initializer(omp_priv = poisson::DoubleDouble(0.0))

namespace poisson::cpu {

/// Several sums in one pass: what `body(begin, end)` returns for each block of rows, combined in order by add(total, of_block).
template <class Sums, class Body, class Add>
[[nodiscard]] Sums combine_blocks(Context& context, std::int64_t n, std::int64_t work, Body const& body, Add const& add) {
  std::int64_t const blocks = n_blocks(n);
  Sums* const partial = static_cast<CpuContext&>(context).partial_sums<Sums>(blocks);
  for_blocks(n, work, [&](std::int64_t begin, std::int64_t end, std::int64_t block) { partial[block] = body(begin, end); });
  Sums total{};
  for (std::int64_t block = 0; block < blocks; ++block)
    add(total, partial[block]);
  return total;
}

}  // namespace poisson::cpu
