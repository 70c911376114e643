#pragma once

#include "assembly/space/constraints.hpp"
#include "gpu/core/csr_matrix.hpp"

#include <string>

namespace poisson::assembly {

/// C^T A C x = C^T (f - A g). Its solution gives u = C x + g, with C and g the constraints.
struct LinearSystem {
  /// n_dofs x n_dofs. Row and column of a constrained unknown have only the diagonal entry, that of A; its right-hand side is 0.
  CsrMatrix matrix;
  HostVector<double> rhs;
  Constraints constraints;
  bool pure_neumann = false;  ///< the constant vector spans the null space
  /// Pure Neumann: (int f + int g) / (int |f| + int |g|), as assembled. The rhs was then made orthogonal to the constant vector.
  double compatibility_defect = 0;
  double integral_f = 0;  ///< of the source, with the assembly's quadrature
  /// A message for the user where the mesh is too coarse for the source, so that quadrature misses a considerable part of it; else
  /// empty.
  std::string source_warning;
};

}  // namespace poisson::assembly
