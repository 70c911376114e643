#pragma once

#include "gpu/kernels/smoothing_step.hpp"

namespace poisson::cuda {

// What a kernel does with y = (A x)_i and x = x_i besides a product. What `load` reads may be asked for before y is known; with
// `diagonal` where that entry is known.

template <class V>
struct SmoothingRow {
  SmoothingStep<V> step;
  using Terms = StepTerms<V>;
  [[nodiscard]] __device__ Terms load(std::int64_t i) const { return step_terms(step, i); }
  [[nodiscard]] __device__ Terms load(std::int64_t i, V diagonal) const { return step_terms(step, i, diagonal); }
  __device__ void operator()(std::int64_t i, V y, V x, Terms const& terms) const { take_step(step, i, y, x, terms); }
  __device__ void operator()(std::int64_t i, V y, V x) const { take_step(step, i, y, x); }
};

template <class V>
struct ResidualRow {
  V const* __restrict__ b;
  V* __restrict__ r;
  using Terms = V;
  [[nodiscard]] __device__ Terms load(std::int64_t i) const { return b[i]; }
  [[nodiscard]] __device__ Terms load(std::int64_t i, V) const { return b[i]; }
  __device__ void operator()(std::int64_t i, V y, V, Terms const& own) const { r[i] = own - y; }
  __device__ void operator()(std::int64_t i, V y, V x) const { (*this)(i, y, x, load(i)); }
};

}  // namespace poisson::cuda
