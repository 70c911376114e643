#include "assembly/system/lattice_problem.hpp"

#include "assembly/parallel.hpp"
#include "assembly/system/system.hpp"

#include <algorithm>
#include <limits>
#include <string>

namespace poisson::assembly {

namespace {

/// Every cell of a space as a lattice, all of whose nodes are in the tables.
LatticeLayout layout_of_cells(Space const& space) {
  if (space.n_cells > std::numeric_limits<std::int32_t>::max() / space.n_local)
    throw InputError("matrix.format", "matrix_free needs 32-bit indices for the nodes of all cells of this mesh, and " +
                                          std::to_string(space.n_cells) + " cells have too many");
  LatticeLayout layout;
  layout.n_lattices = space.n_cells;
  layout.n_unknowns = space.n_dofs;
  layout.order = space.order;
  layout.cells = 1;
  layout.all_on_rim = true;
  layout.kind_first.assign(static_cast<std::size_t>(space.order * space.order * space.order), 0);
  layout.rim_unknowns.resize(static_cast<std::size_t>(space.n_cells * space.n_local));
  parallel_for(n_parts(space.n_cells, space.cells_per_part), [&](std::int64_t i) {
    auto const [begin, end] = part(space.n_cells, space.cells_per_part, i);
    for (std::int64_t cell = begin; cell < end; ++cell)
      space.dofs(cell, layout.rim_unknowns.data() + cell * space.n_local);
  });
  list_copies(layout);
  return layout;
}

}  // namespace

LatticeProblem lattice_problem(Space const& space, ReferenceElement const& element, ProblemData const& data) {
  LatticeProblem problem;
  problem.layout = space.lattices ? space.lattices->layout() : layout_of_cells(space);
  problem.isoparametric = space.isoparametric;
  std::int64_t const n = problem.layout.cells, m = problem.layout.nodes(), nodes = m * m * m;
  std::int64_t const n_lattices = problem.layout.n_lattices;

  problem.coordinates.resize(static_cast<std::size_t>(3 * n_lattices * nodes));
  std::int64_t const n_planes = n_lattices * m, planes_of_part = space.lattices ? 1 : m * space.cells_per_part;
  parallel_for(
      n_parts(n_planes, planes_of_part), [&] { return std::vector<std::int32_t>(static_cast<std::size_t>(m * m)); },
      [&](std::vector<std::int32_t>& listed, std::int64_t const number) {
        auto const [begin, end] = part(n_planes, planes_of_part, number);
        for (std::int64_t plane = begin; plane < end; ++plane) {
          std::int64_t const lattice = plane / m, k = plane % m;
          std::int32_t const* unknowns = listed.data();
          if (space.lattices)
            space.lattices->unknowns(static_cast<std::int32_t>(lattice), k, k + 1, listed.data());
          else
            unknowns = problem.layout.rim_unknowns.data() + plane * m * m;
          double* const out = problem.coordinates.data() + 3 * lattice * nodes + k * m * m;
          for (std::int64_t i = 0; i < m * m; ++i) {
            Point3 const x = space.point(unknowns[i]);
            for (int d = 0; d < 3; ++d)
              out[d * nodes + i] = x[d];
          }
        }
      });

  for (Coefficient const& coefficient : data.coefficients) {
    problem.coefficients.emplace_back();
    for (Function const& component : coefficient.components)
      problem.coefficients.back().push_back(component.code());
  }
  for (std::int64_t lattice = 0; lattice < n_lattices; ++lattice)
    problem.material.push_back(static_cast<std::int32_t>(data.coefficient_of.at(space.material(lattice * n * n * n))));
  problem.source = data.source(space.material(0)).code();

  BoundaryTerms const boundary = boundary_terms(space, element, data);
  problem.pure_neumann = boundary.pure_neumann;
  problem.boundary = boundary.values;
  std::int64_t const first = problem.layout.n_inner(), n_rim = problem.layout.n_unknowns - first;
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
