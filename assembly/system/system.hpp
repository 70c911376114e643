#pragma once

#include "assembly/space/space.hpp"
#include "assembly/system/linear_system.hpp"
#include "assembly/system/problem_data.hpp"
#include "gpu/core/field_data.hpp"

#include <cstddef>
#include <vector>

namespace poisson::assembly {

/// Seconds of the two steps of the assembly, for benchmarks.
struct AssemblyTimes {
  double pattern = 0, values = 0;
};

/// Assembles the system of a problem on a space. `of_space` are the constraints of the space itself (hanging nodes, periodic
/// faces), not closed yet; size 0: there are none. Dirichlet conditions are added to them. Errors: InputError for values that a
/// coefficient, source or condition must not take, for inverted cells, and for problems that have no solution or no unique one.
[[nodiscard]] LinearSystem assemble_system(Space const& space, ReferenceElement const& element, ProblemData const& data,
                                           Constraints of_space = Constraints(), AssemblyTimes* times = nullptr);

/// The unknowns that may be on a boundary, or on a surface inside the mesh, as they are counted in arrays.
struct BoundaryPlaces {
  std::int64_t n_unknowns = 0;  ///< of the space
  std::int64_t first = 0;       ///< of spaces that are numbered by lattices the first unknown on rims, else 0
  BoxSurface surface{};         ///< of a box; else empty

  [[nodiscard]] std::int64_t size() const { return surface.size() > 0 ? surface.size() : n_unknowns - first; }
  /// A negative number: it is none of them.
  [[nodiscard]] std::int64_t place(std::int64_t unknown) const {
    return surface.size() > 0 ? surface.place(unknown) : unknown - first;
  }
  [[nodiscard]] std::int64_t unknown(std::int64_t place) const { return surface.size() > 0 ? surface.node(place) : first + place; }
};

/// What the conditions on the boundary contribute to a system. Arrays are in the order of `places`.
struct BoundaryTerms {
  BoundaryPlaces places;
  Constraints constraints;               ///< Dirichlet values
  HostVector<double> rhs;                ///< integrals of Neumann and Robin values times basis functions; 0 at constrained unknowns
  FieldSums values;                      ///< integrals of these values and of their absolute values
  std::vector<std::size_t> robin_faces;  ///< numbers of the faces (Space::boundary_faces) where alpha is positive somewhere
  std::vector<double> robin_weights;     ///< alpha dS at the points of these faces
  bool pure_neumann = false;
  bool anchored = false;  ///< something here fixes the constant; what tells of a part of a mesh
};
/// Computes what the conditions on the boundary contribute. Errors: those of assemble_system.
[[nodiscard]] BoundaryTerms boundary_terms(Space const& space, ReferenceElement const& element, ProblemData const& data);

/// Whether constants are in the null space: there is no Dirichlet condition, and no Robin condition with alpha > 0 at any
/// quadrature point. Errors: those of assemble_system.
[[nodiscard]] bool is_pure_neumann(Space const& space, ReferenceElement const& element, ProblemData const& data);

/// total / absolute, of the integrals of f and the boundary values and of their absolute values in a pure Neumann problem; 0 where
/// both are 0. Throws InputError when the data contradict each other by more than rounding and quadrature explain.
[[nodiscard]] double compatibility_defect(double total, double absolute);

}  // namespace poisson::assembly
