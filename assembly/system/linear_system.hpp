#pragma once

#include "assembly/space/constraints.hpp"
#include "gpu/core/csr_matrix.hpp"
#include "gpu/core/field_data.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace poisson::assembly {

/// The loads of point and line sources: integrals of the source times the basis functions of unknowns.
struct PointLoads {
  struct Load {
    std::int32_t unknown;
    std::int32_t source;  ///< its number: point sources first, then lines
    double value;
    std::int32_t cell;  ///< that the point was located in; -1: it is not here
  };
  /// A point of the sources: that of a point source, or one of a line.
  struct Place {
    std::size_t source = 0;
    bool of_line = false, found = false;  ///< found: it is here
    std::array<double, 3> at{};
  };
  std::vector<Load> loads;    ///< an unknown may have several
  FieldSums integrals;        ///< of the sources, and of their absolute values
  std::vector<Place> places;  ///< of a part of a mesh: all of them
  std::vector<double> moved;  ///< by source: how far a point of it was moved onto the mesh at most
};

/// What several parts of a mesh must agree on before each has the loads of its own part.
struct SharedPlaces {
  std::vector<std::vector<double>> cuts;  ///< of every line, where it is cut; empty: as far as this part knows
  /// Where points lie that were moved onto the mesh, by their places in PointLoads::places.
  std::map<std::size_t, std::array<double, 3>> moved;
};

/// C^T A C x = C^T (f - A g). Its solution gives u = C x + g, with C and g the constraints.
struct LinearSystem {
  /// n_dofs x n_dofs. Row and column of a constrained unknown have only the diagonal entry, that of A; its right-hand side is 0.
  CsrMatrix matrix;
  HostVector<double> rhs;
  Constraints constraints;
  bool pure_neumann = false;  ///< u is determined up to a constant; of a part of a box never set, since other parts count
  bool anchored = false;      ///< a condition on the boundary here fixes the constant
  /// Then the constant vector spans the null space of the matrix, unless an unknown is held at 0 instead.
  bool holds_an_unknown = false;
  /// Pure Neumann: (int f + int g) / (int |f| + int |g|), as assembled. The rhs was then made orthogonal to the constant vector.
  double compatibility_defect = 0;
  double integral_f = 0;  ///< of all sources, f with the assembly's quadrature
  /// A message for the user where the mesh is too coarse for the source, so that quadrature misses a considerable part of it; else
  /// empty.
  std::string source_warning;
};

/// Whether the constant vector spans the null space of the matrix.
[[nodiscard]] inline bool is_singular(LinearSystem const& system) {
  return system.pure_neumann && !system.holds_an_unknown;
}

}  // namespace poisson::assembly
