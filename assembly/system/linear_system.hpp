#pragma once

#include "assembly/space/constraints.hpp"
#include "gpu/core/csr_matrix.hpp"

namespace poisson::assembly {

/// C^T A C x = C^T (f - A g), from which u = C x + g.
struct LinearSystem {
  /// Rows and columns of constrained unknowns hold only their (natural) diagonal entry, and their right-hand side is 0.
  CsrMatrix matrix;
  HostVector<double> rhs;
  Constraints constraints;
  bool pure_neumann = false;  ///< the constant vector spans the null space
  double compatibility_defect =
      0;  ///< pure Neumann: (int f + int g) / (int |f| + int |g|), as assembled; the rhs was made orthogonal to 1
};

}  // namespace poisson::assembly
