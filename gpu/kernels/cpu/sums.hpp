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

/// The sums of CgSums (kernels/cg.hpp) over what value(i) returns, which is called once for every i. `inverse_diagonal` may be
/// null.
template <class T, class Value>
[[nodiscard]] std::array<T, 4> residual_sums(Context& context, std::int64_t n, double const* inverse_diagonal, Value const& value) {
  return sum_arrays<T, 4>(context, n, vector_pass_work<T>(n), [=](std::int64_t first, std::int64_t last) {
    T sum_r = 0, sum_rr = 0, sum_dr = 0, sum_drr = 0;
    if (inverse_diagonal == nullptr) {
#pragma omp simd reduction(+ : sum_r, sum_rr)
      for (std::int64_t i = first; i < last; ++i) {
        T const ri = value(i);
        sum_r += ri;
        sum_rr += ri * ri;
      }
    } else {
#pragma omp simd reduction(+ : sum_r, sum_rr, sum_dr, sum_drr)
      for (std::int64_t i = first; i < last; ++i) {
        T const ri = value(i), dr = inverse_diagonal[i] * ri;
        sum_r += ri;
        sum_rr += ri * ri;
        sum_dr += dr;
        sum_drr += dr * ri;
      }
    }
    return std::array{sum_r, sum_rr, sum_dr, sum_drr};
  });
}

/// The sums of z and of r z.
template <class T>
[[nodiscard]] std::array<T, 2> sums_of_z(Context& context, std::int64_t n, ConstPointer<T> r, ConstPointer<T> z) {
  return sum_arrays<T, 2>(context, n, vector_pass_work<T>(n), [=](std::int64_t first, std::int64_t last) {
    T sum_z = 0, sum_rz = 0;
#pragma omp simd reduction(+ : sum_z, sum_rz)
    for (std::int64_t i = first; i < last; ++i) {
      sum_z += load(z, i);
      sum_rz += load(r, i) * load(z, i);
    }
    return std::array{sum_z, sum_rz};
  });
}

/// The sum of 1 / m_ii of a diagonal preconditioner; 0 where that is null.
[[nodiscard]] inline double sum_of_diagonal(Context& context, std::int64_t n, double const* inverse_diagonal) {
  if (inverse_diagonal == nullptr)
    return 0;
  return sum_blocks(context, n, n, [=](std::int64_t first, std::int64_t last) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = first; i < last; ++i)
      sum += inverse_diagonal[i];
    return sum;
  });
}

}  // namespace poisson::cpu
