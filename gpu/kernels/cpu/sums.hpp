#pragma once

#include "gpu/core/double_double.hpp"
#include "gpu/kernels/cpu/cpu.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

// This lets `#pragma omp simd reduction(+ : sum)` stand in code that is written once for double and DoubleDouble.
#pragma omp declare reduction(+ : poisson::DoubleDouble : omp_out += omp_in) initializer(omp_priv = poisson::DoubleDouble(0.0))

namespace poisson::cpu {

/// Several sums of T in one pass: the elementwise sum, in order, of the std::array<T, count> that `body(begin, end)` returns for
/// each block of rows.
template <class T, std::size_t count, class Body>
[[nodiscard]] std::array<T, count> sum_arrays(Context& context, std::int64_t n, std::int64_t work, Body const& body) {
  using Sums = std::array<T, count>;
  std::int64_t const blocks = n_blocks(n);
  Sums* const partial = static_cast<CpuContext&>(context).partial_sums<Sums>(blocks);
  for_blocks(n, work, [&](std::int64_t begin, std::int64_t end, std::int64_t block) { partial[block] = body(begin, end); });
  Sums total{};
  for (std::int64_t block = 0; block < blocks; ++block)
    for (std::size_t k = 0; k < count; ++k)
      total[k] += partial[block][k];
  return total;
}

/// The end of a solver's pass: its scalar step, or its sums left in `local` (see kernels/cg.hpp).
template <class Pass, class Scalars, class T, std::size_t count>
void finish_pass(Pass pass, Scalars* scalars, std::array<T, count> const& sums, double* history, T* local) {
  if (local != nullptr)
    std::copy_n(sums.begin(), n_sums(pass), local);
  else
    scalar_step_of(pass, *scalars, sums.data(), history);
}

}  // namespace poisson::cpu
