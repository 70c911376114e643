#include "assembly/system/lattice_problem.hpp"

#include "assembly/parallel.hpp"
#include "assembly/system/system.hpp"

#include <algorithm>
#include <cassert>

namespace poisson::assembly {

LatticeProblem lattice_problem(Space const& space, ReferenceElement const& element, ProblemData const& data) {
  assert(space.lattices);
  LatticeNumbering const& numbering = *space.lattices;
  std::int64_t const m = numbering.m, n = (m - 1) / space.order, nodes = m * m * m, n_lattices = space.n_cells / (n * n * n);
  LatticeProblem problem;
  problem.layout = numbering.layout();
  problem.isoparametric = space.isoparametric;

  problem.coordinates.resize(static_cast<std::size_t>(3 * n_lattices * nodes));
  parallel_for(
      n_lattices * m, [&] { return std::vector<std::int32_t>(static_cast<std::size_t>(m * m)); },
      [&](std::vector<std::int32_t>& unknowns, std::int64_t const plane) {
        std::int64_t const lattice = plane / m, k = plane % m;
        numbering.unknowns(static_cast<std::int32_t>(lattice), k, k + 1, unknowns.data());
        double* const out = problem.coordinates.data() + 3 * lattice * nodes + k * m * m;
        for (std::int64_t i = 0; i < m * m; ++i) {
          Point3 const x = space.point(unknowns[i]);
          for (int d = 0; d < 3; ++d)
            out[d * nodes + i] = x[d];
        }
      });

  for (Coefficient const& coefficient : data.coefficients) {
    problem.coefficients.emplace_back();
    for (Function const& component : coefficient.components)
      problem.coefficients.back().push_back(component.code());
  }
  for (std::int64_t lattice = 0; lattice < n_lattices; ++lattice)
    problem.material.push_back(static_cast<std::int32_t>(data.coefficient_of.at(space.material(lattice * n * n * n))));
  problem.source = data.source.code();

  BoundaryTerms const boundary = boundary_terms(space, element, data);
  problem.pure_neumann = boundary.pure_neumann;
  problem.boundary = boundary.values;
  std::int64_t const n_rim = numbering.n_rim(), first = numbering.first_face;
  problem.fixed.resize(static_cast<std::size_t>(n_rim));
  problem.fixed_value.resize(static_cast<std::size_t>(n_rim));
  problem.rim_load.resize(static_cast<std::size_t>(n_rim));
  for (std::int64_t i = 0; i < n_rim; ++i) {
    problem.fixed[i] = boundary.constraints.constrained(first + i) ? 1 : 0;
    problem.fixed_value[i] = boundary.constraints.value(first + i);
    problem.rim_load[i] = boundary.rhs[first + i];
  }

  problem.mass_face.assign(static_cast<std::size_t>(6 * n_lattices), -1);
  std::int64_t const of_cell = (space.order + 1) * (space.order + 1), of_face = of_cell * n * n;
  std::int32_t n_faces = 0;
  for (std::size_t i = 0; i < boundary.robin_faces.size(); ++i) {
    BoundaryFace const& face = space.boundary_faces[boundary.robin_faces[i]];
    std::int64_t const lattice = face.cell / (n * n * n), cell = face.cell % (n * n * n);
    std::array<std::int64_t, 3> const index{cell % n, cell / n % n, cell / (n * n)};
    std::int32_t& number = problem.mass_face[6 * lattice + face.face];
    if (number < 0) {
      number = n_faces++;
      problem.face_mass.resize(static_cast<std::size_t>(n_faces * of_face), 0.0);
    }
    std::copy_n(boundary.robin_weights.begin() + of_cell * static_cast<std::ptrdiff_t>(i), of_cell,
                problem.face_mass.begin() + number * of_face + of_cell * (n * index[face_v(face.face)] + index[face_u(face.face)]));
  }
  return problem;
}

}  // namespace poisson::assembly
