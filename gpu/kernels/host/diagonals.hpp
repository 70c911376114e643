#pragma once

#include <cmath>
#include <cstdint>

namespace poisson::host {

#ifndef PASS
#define PASS 512
#endif
#ifndef AHEAD
#define AHEAD 512
#endif
#ifndef FUSED
#define FUSED 4
#endif
#ifndef HINT
#define HINT 2
#endif
/// Rows that are worked on before the next diagonals are; a divisor of `block_rows`. So many streams of stored values are more
/// than the processor's prefetcher follows, and it begins anew with every run of rows: the values of the pass that is
/// `rows_ahead` later are asked for while this one is worked on, evenly, so that memory is never idle. 27 diagonals of two
/// passes are 220 KB, which the second-level cache holds.
inline constexpr std::int64_t pass_rows = PASS;
inline constexpr std::int64_t rows_ahead = AHEAD;
inline constexpr std::int64_t line_rows = 8;  ///< numbers in a cache line

/// A run of one diagonal: its i-th term is values[i] * x[i]. `ahead` is asked for at the same pace, or a share of it.
struct Term {
  double const* values;
  double const* x;
  double const* ahead;
};

inline void prefetch(double const* p) {
  __builtin_prefetch(p, 0, HINT);
}

/// y_i += alpha sum_k values_k,i x_k,i for `count` terms, one fused multiply-add after the other; alpha is 1 unless `scaled`.
/// Of `ahead`, n / share numbers are asked for.
template <int count, bool scaled, int share>
void add_terms(std::int64_t n, double alpha, Term const* terms, double* __restrict y) {
  double const* values[count];
  double const* x[count];
  double const* ahead[count];
  for (int k = 0; k < count; ++k) {
    values[k] = terms[k].values;
    x[k] = terms[k].x;
    ahead[k] = terms[k].ahead;
  }
  auto const add = [&](std::int64_t i) {
    double sum = y[i];
#pragma GCC unroll 8
    for (int k = 0; k < count; ++k)
      sum = std::fma(scaled ? alpha * values[k][i] : values[k][i], x[k][i], sum);
    y[i] = sum;
  };
  constexpr std::int64_t step = share * line_rows;
  std::int64_t i = 0;
  for (; i + step <= n; i += step) {
#pragma GCC unroll 8
    for (int k = 0; k < count; ++k)
      prefetch(ahead[k] + i / share);
#pragma omp simd
    for (std::int64_t j = i; j < i + step; ++j)
      add(j);
  }
  for (; i < n; ++i)
    add(i);
}

/// The same for any count: several terms in one pass over y.
template <bool scaled, int share>
void add_terms(int count, std::int64_t n, double alpha, Term const* terms, double* y) {
  for (; count >= FUSED; count -= FUSED, terms += FUSED)
    add_terms<FUSED, scaled, share>(n, alpha, terms, y);
  if (count >= 4 && FUSED > 4) {
    add_terms<4, scaled, share>(n, alpha, terms, y);
    count -= 4, terms += 4;
  }
  for (; count >= 2; count -= 2, terms += 2)
    add_terms<2, scaled, share>(n, alpha, terms, y);
  if (count == 1)
    add_terms<1, scaled, share>(n, alpha, terms, y);
}

}  // namespace poisson::host
