#pragma once

#include "gpu/core/expression_code.hpp"

#include <array>

namespace poisson {

/// An expression as a function of a function of x, one of y and one of z: sin(x) sin(y) sin(z) is X Y Z with X = sin(x), Y = sin(y)
/// and Z = sin(z). On a tensor product of points the inner functions need few evaluations.
struct SeparatedCode {
  ExpressionCode outer;                 ///< of X, Y and Z, as x, y and z
  std::array<ExpressionCode, 3> inner;  ///< X of x, Y of y, Z of z
};
/// Takes out the largest parts of `code` that depend on one coordinate only. If these differ for a coordinate, as in x + y sin(x),
/// or `code` has branches, the inner function is the coordinate itself. The outer function of the inner ones has the bits of
/// `code`.
[[nodiscard]] SeparatedCode separate(ExpressionCode const& code);

}  // namespace poisson
