#pragma once

#include "gpu/core/expression_code.hpp"

#include <cstdint>
#include <type_traits>

namespace poisson::cuda {

/// One copy of the interpreter for all kernels of a file: it is much code, and takes longer than a call.
template <int stack_size>
__device__ __noinline__ double value_of(ExpressionView code, double x, double y, double z) {
  return evaluate<stack_size>(code, x, y, z);
}

/// Calls launch(size) with the size of a stack as a constant: 0 where there is no code. The stack is in local memory: a small one
/// stays in L1.
template <class Launch>
void with_stack(std::int32_t depth, Launch const& launch) {
  if (depth == 0)
    launch(std::integral_constant<int, 0>());
  else if (depth <= 4)
    launch(std::integral_constant<int, 4>());
  else if (depth <= 16)
    launch(std::integral_constant<int, 16>());
  else
    launch(std::integral_constant<int, expression_stack_size>());
}

}  // namespace poisson::cuda
