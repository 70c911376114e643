#pragma once

#include "gpu/kernels/cpu/cpu.hpp"

#include <cmath>
#include <cstdint>

namespace poisson::cpu {

/// Rows that are worked on before the next diagonals are. So many streams of stored values are more than the processor's prefetcher
/// follows, and with every run of rows it begins anew: the values of the pass to come are asked for while this one is worked on, at
/// an even pace, because memory that idles between bursts is the bound. The 14 diagonals of a 27-point matrix take 230 KB in two
/// passes, which the second-level cache holds.
inline constexpr std::int64_t pass_rows = block_rows;
inline constexpr std::int64_t line_rows = 8;  ///< numbers in a cache line

/// A run of one diagonal: its i-th term is values[i] * x[i]. `ahead` is asked for at the same pace, or a share of it.
/// Values and X are ConstPointers.
template <class Values, class X>
struct Term {
  Values values;
  X x;
  Values ahead;
};

inline void prefetch(float const* p) {
  __builtin_prefetch(p, 0, 2);
}
inline void prefetch(double const* p) {
  __builtin_prefetch(p, 0, 2);  // into the second-level cache
}
inline void prefetch(ConstPointer<DoubleDouble> p) {
  prefetch(p.hi);
  prefetch(p.lo);
}

inline void prefetch_to_write(float* p) {
  __builtin_prefetch(p, 1, 2);
}
inline void prefetch_to_write(double* p) {
  __builtin_prefetch(p, 1, 2);
}
inline void prefetch_to_write(Pointer<DoubleDouble> p) {
  prefetch_to_write(p.hi);
  prefetch_to_write(p.lo);
}

/// Adds alpha sum_k values_k,i x_k,i to sums_i (see load_sum) for `count` terms, one after the other; alpha is 1 unless `scaled`.
/// It asks for n / share numbers of `ahead`.
template <int count, bool scaled, int share, class T, class Values>
void add_terms(std::int64_t n, T alpha, Term<Values, ConstPointer<T>> const* terms, Restrict<Pointer<T>> sums) {
  Values values[count];
  ConstPointer<T> x[count];
  Values ahead[count];
  for (int k = 0; k < count; ++k) {
    values[k] = terms[k].values;
    x[k] = terms[k].x;
    ahead[k] = terms[k].ahead;
  }
  auto const add = [&](std::int64_t i) {
    auto sum = load_sum(sums, i);
#pragma GCC unroll 4
    for (int k = 0; k < count; ++k)
      if constexpr (scaled)
        sum.add(alpha * load(values[k], i), load(x[k], i));
      else
        sum.add(load(values[k], i), load(x[k], i));
    store_sum(sums, i, sum);
  };
  constexpr std::int64_t step = share * line_rows;
  std::int64_t i = 0;
  for (; i + step <= n; i += step) {
#pragma GCC unroll 4
    for (int k = 0; k < count; ++k)
      prefetch(ahead[k] + i / share);
#pragma omp simd
    for (std::int64_t j = i; j < i + step; ++j)
      add(j);
  }
  for (; i < n; ++i)
    add(i);
}

/// Adds any number of terms to `sums` in the same way. One pass over `sums` adds four of them, whose pointers fit the registers.
template <bool scaled, int share, class T, class Values>
void add_terms(int count, std::int64_t n, T alpha, Term<Values, ConstPointer<T>> const* terms, Pointer<T> sums) {
  for (; count >= 4; count -= 4, terms += 4)
    add_terms<4, scaled, share>(n, alpha, terms, sums);
  if (count >= 2) {
    add_terms<2, scaled, share>(n, alpha, terms, sums);
    count -= 2;
    terms += 2;
  }
  if (count == 1)
    add_terms<1, scaled, share>(n, alpha, terms, sums);
}

}  // namespace poisson::cpu
