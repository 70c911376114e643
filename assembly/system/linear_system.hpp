#pragma once

#include "assembly/space/constraints.hpp"
#include "gpu/core/csr_matrix.hpp"

#include <string>

namespace poisson::assembly {

/// C^T A C x = C^T (f - A g), from which u = C x + g.
struct LinearSystem {
  /// Rows and columns of constrained unknowns hold only their (natural) diagonal entry, and their right-hand side is 0.
  CsrMatrix matrix;
  HostVector<double> rhs;
  Constraints constraints;
  bool pure_neumann = false;  ///< the constant vector spans the null space
  double compatibility_defect =
      0;                  ///< pure Neumann: (int f + int g) / (int |f| + int |g|), as assembled; the rhs was made orthogonal to 1
  double integral_f = 0;  ///< of the source, by the quadrature of the assembly
  /// Not empty where the mesh is too coarse for the source, so that quadrature misses a good part of it: says how much, and what to
  /// do.
  std::string source_warning;
};

}  // namespace poisson::assembly
