#include "assembly/system/lattice_problem.hpp"

#include "assembly/parallel.hpp"
#include "assembly/system/system.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace poisson::assembly {

namespace {

/// Returns the layout of so many cells, each of which is a lattice with all of its nodes in the tables. Its tables are empty.
LatticeLayout shape_of_cells(std::int64_t n_cells, std::int64_t n_unknowns, int order) {
  LatticeLayout layout;
  layout.n_lattices = n_cells;
  layout.n_unknowns = n_unknowns;
  layout.order = order;
  layout.cells = 1;
  layout.all_on_rim = true;
  return layout;
}
/// The same of the cells of a space.
LatticeLayout shape_of_cells(Space const& space) {
  if (space.n_cells > std::numeric_limits<std::int32_t>::max() / space.n_local)
    throw InputError("matrix.format", "matrix_free needs 32-bit indices for the nodes of all cells of this mesh, and " +
                                          std::to_string(space.n_cells) + " cells have too many");
  return shape_of_cells(space.n_cells, space.n_dofs, space.order);
}

enum class Copies { listed, left_out };

/// Every cell of a space as a lattice, all of whose nodes are in the tables. `number`: of the unknowns of the space, of which the
/// layout has `n_unknowns`; empty where these are the same.
LatticeLayout layout_of_cells(Space const& space, Copies copies, std::span<std::int32_t const> number, std::int64_t n_unknowns) {
  LatticeLayout layout = shape_of_cells(space);
  layout.n_unknowns = n_unknowns;
  RimTables tables;
  tables.kind_first.assign(static_cast<std::size_t>(space.order * space.order * space.order), 0);
  tables.rim_unknowns.resize(static_cast<std::size_t>(space.n_cells * space.n_local));
  parallel_for(n_parts(space.n_cells, space.cells_per_part), [&](std::int64_t i) {
    auto const [begin, end] = part(space.n_cells, space.cells_per_part, i);
    for (std::int64_t cell = begin; cell < end; ++cell)
      space.dofs(cell, tables.rim_unknowns.data() + cell * space.n_local);
  });
  if (!number.empty())
    for (std::int32_t& unknown : tables.rim_unknowns)
      unknown = number[unknown];
  if (copies == Copies::listed)
    list_copies(layout, tables);
  layout.set_tables(std::move(tables));
  return layout;
}
LatticeLayout layout_of_cells(Space const& space, Copies copies) {
  return layout_of_cells(space, copies, {}, space.n_dofs);
}

/// Writes the coordinates of the nodes of all cells.
void write_coordinates(Space const& space, double* out) {
  std::int64_t const n = space.n_local;
  parallel_for(
      n_parts(space.n_cells, space.cells_per_part), [&] { return std::vector<std::int32_t>(static_cast<std::size_t>(n)); },
      [&](std::vector<std::int32_t>& dofs, std::int64_t const number) {
        auto const [begin, end] = part(space.n_cells, space.cells_per_part, number);
        for (std::int64_t cell = begin; cell < end; ++cell) {
          space.dofs(cell, dofs.data());
          for (std::int64_t i = 0; i < n; ++i) {
            Point3 const x = space.point(dofs[i]);
            for (int d = 0; d < 3; ++d)
              out[(3 * cell + d) * n + i] = x[d];
          }
        }
      });
}

/// Sets where the nodes of the lattices of a space are: those of all, if they are in memory.
void set_nodes(LatticeProblem& problem, Space const& space) {
  auto nodes = space.nodes_of_lattices();
  if (nodes->has_all())
    problem.coordinates = std::shared_ptr<HostVector<double> const>(nodes, &nodes->all());
  else
    problem.make_coordinates = [nodes](std::int64_t first, std::int64_t count) { return nodes->of(first, count); };
}

/// Returns room for the coordinates of all nodes of the lattices.
HostVector<double> coordinates_for(LatticeLayout const& layout) {
  std::int64_t const m = layout.nodes();
  return HostVector<double>(static_cast<std::size_t>(3 * layout.n_lattices * m * m * m));
}

/// number_of(material) of the first cells of a space, which are in lattices of so many: one number a lattice, or, where those of a
/// lattice differ, which regions may do, one a cell.
template <class NumberOf>
std::vector<std::int32_t> numbers_of_materials(Space const& space, std::int64_t n_lattices, std::int64_t cells_of_lattice,
                                               NumberOf const& number_of) {
  std::vector<std::int32_t> of_lattices(static_cast<std::size_t>(n_lattices));
  std::atomic<bool> differ = false;
  // Calls take(cell, number) for all cells.
  auto const for_cells = [&](std::int64_t n_cells, std::int64_t step, auto const& take) {
    constexpr std::int64_t at_once = 1 << 14;
    parallel_for(n_parts(n_cells, at_once), [&](std::int64_t i) {
      auto const [begin, end] = part(n_cells, at_once, i);
      unsigned last = space.material(begin * step);
      std::int32_t number = number_of(last);
      for (std::int64_t cell = begin; cell < end; ++cell) {
        if (unsigned const material = space.material(cell * step); material != last) {
          last = material;
          number = number_of(material);
        }
        take(cell, number);
      }
    });
  };
  for_cells(n_lattices, cells_of_lattice, [&](std::int64_t lattice, std::int32_t number) { of_lattices[lattice] = number; });
  if (cells_of_lattice == 1 || space.has_materials_of_lattices())
    return of_lattices;
  std::int64_t const n_cells = n_lattices * cells_of_lattice;
  for_cells(n_cells, 1, [&](std::int64_t cell, std::int32_t number) {
    if (number != of_lattices[cell / cells_of_lattice])
      differ.store(true, std::memory_order_relaxed);
  });
  if (!differ)
    return of_lattices;
  std::vector<std::int32_t> of_cells(static_cast<std::size_t>(n_cells));
  for_cells(n_cells, 1, [&](std::int64_t cell, std::int32_t number) { of_cells[cell] = number; });
  return of_cells;
}

/// Coefficients of all materials, and the sources, if any. The problem's lattices have the first cells of the space.
void set_data(LatticeProblem& problem, Space const& space, ProblemData const& data, bool with_source = true) {
  std::int64_t const n = problem.layout.n_lattices, of_lattice = problem.layout.cells * problem.layout.cells * problem.layout.cells;
  auto const numbers = [&](std::map<unsigned, std::size_t> const& of_material) {
    return numbers_of_materials(space, n, of_lattice,
                                [&](unsigned material) { return static_cast<std::int32_t>(of_material.at(material)); });
  };
  for (Coefficient const& coefficient : data.coefficients)
    problem.coefficients.push_back(coefficient.codes());
  if (data.coefficients.size() > 1)
    problem.material = numbers(data.coefficient_of);
  if (!with_source)
    return;
  problem.sources.clear();
  for (Function const& source : data.sources)
    problem.sources.push_back(source.code());
  if (data.sources.size() > 1)
    problem.source_of = numbers(data.source_of);
}

struct CellOfLattice {
  std::int64_t lattice;  ///< -1: none here
  std::array<std::int64_t, 3> index;
};
/// The Robin faces of `boundary`; `place_of(cell)` is a CellOfLattice.
template <class PlaceOf>
void set_face_masses(LatticeProblem& problem, Space const& space, BoundaryTerms const& boundary, PlaceOf const& place_of) {
  std::int64_t const n = problem.layout.cells;
  std::int64_t const of_cell = (space.order + 1) * (space.order + 1), of_face = of_cell * n * n;
  std::map<std::int32_t, std::int32_t> numbers;
  for (std::size_t i = 0; i < boundary.robin_faces.size(); ++i) {
    BoundaryFace const& face = space.boundary_faces[boundary.robin_faces[i]];
    CellOfLattice const cell = place_of(face.cell);
    if (cell.lattice < 0)
      continue;
    auto const of_lattice = static_cast<std::int32_t>(6 * cell.lattice + face.face);
    auto const [found, is_new] = numbers.try_emplace(of_lattice, static_cast<std::int32_t>(numbers.size()));
    std::int32_t const number = found->second;
    if (is_new) {
      problem.mass_faces.push_back(of_lattice);
      problem.face_mass.resize(numbers.size() * static_cast<std::size_t>(of_face), 0.0);
    }
    std::copy_n(boundary.robin_weights.begin() + of_cell * static_cast<std::ptrdiff_t>(i), of_cell,
                problem.face_mass.begin() + number * of_face +
                    of_cell * (n * cell.index[face_v(face.face)] + cell.index[face_u(face.face)]));
  }
}

/// The coordinates of the nodes of a box in every direction.
std::array<HostVector<double>, 3> lines_of(Space const& space) {
  std::array<HostVector<double>, 3> lines;
  for (int d = 0; d < 3; ++d)
    for (std::int64_t i = 0; i < space.box_nodes[d]; ++i)
      lines[d].push_back(space.box_coordinate(d, i));
  return lines;
}

/// What lattices are, in a problem.
enum class Lattices {
  of_space,  ///< those of the space
  in_box,    ///< the cells of a box, without tables
  cells      ///< the cells, without tables
};

/// lattice_problem of a space.
LatticeProblem problem_of(Space const& space, ReferenceElement const& element, ProblemData const& data, Lattices lattices,
                          bool with_source = true) {
  LatticeProblem problem;
  problem.layout = lattices == Lattices::of_space ? space.lattices->layout
                   : lattices == Lattices::in_box ? layout_of_box(space.box->cells, space.order)
                                                  : shape_of_cells(space);
  problem.isoparametric = space.isoparametric;
  std::int64_t const n = problem.layout.cells;
  if (lattices == Lattices::of_space) {
    set_nodes(problem, space);
  } else if (lattices == Lattices::in_box) {
    problem.lines = lines_of(space);
  } else {
    HostVector<double> coordinates = coordinates_for(problem.layout);
    write_coordinates(space, coordinates.data());
    problem.coordinates = std::make_shared<HostVector<double> const>(std::move(coordinates));
  }
  set_data(problem, space, data, with_source);

  BoundaryTerms const boundary = boundary_terms(space, element, data);
  problem.pure_neumann = !boundary.anchored;
  problem.boundary = boundary.values;
  std::int64_t const n_on_boundary = problem.layout.n_on_boundary();
  problem.fixed.resize(static_cast<std::size_t>(n_on_boundary));
  problem.fixed_value.resize(static_cast<std::size_t>(n_on_boundary));
  problem.rim_load.resize(static_cast<std::size_t>(n_on_boundary));
  for (std::int64_t i = 0; i < n_on_boundary; ++i) {
    std::int64_t const place = boundary.places.place(problem.layout.on_boundary(i));
    bool const may_have = place >= 0;
    problem.fixed[i] = may_have && boundary.constraints.constrained(place) ? 1 : 0;
    problem.fixed_value[i] = may_have ? boundary.constraints.value(place) : 0;
    problem.rim_load[i] = may_have ? boundary.rhs[place] : 0;
  }

  set_face_masses(problem, space, boundary, [n](std::int64_t cell) -> CellOfLattice {
    std::int64_t const in_lattice = cell % (n * n * n);
    return {cell / (n * n * n), {in_lattice % n, in_lattice / n % n, in_lattice / (n * n)}};
  });
  return problem;
}

}  // namespace

LatticeProblem lattice_problem(Space const& space, ReferenceElement const& element, ProblemData const& data) {
  LatticeProblem problem = problem_of(space, element, data,
                                      space.lattices ? Lattices::of_space
                                      : space.box    ? Lattices::in_box
                                                     : Lattices::cells);
  if (!space.lattices && !space.box)
    problem.layout = layout_of_cells(space, Copies::listed);
  return problem;
}

namespace {

/// The geometry of these lattices, whose nodes are those of a space. They have the first cells of `with_cells`.
LatticeGeometry geometry_of(Space const& space, LatticeLayout layout, ProblemData const& data, Space const& with_cells) {
  LatticeGeometry result;
  result.isoparametric = space.isoparametric;
  result.layout = std::move(layout);
  result.point = [&space](std::int64_t unknown) { return space.point(unknown); };
  std::map<unsigned, std::int32_t> index;
  for (unsigned const material : space.material_ids) {
    result.coefficients.push_back(data.coefficient(material).codes());
    index.emplace(material, static_cast<std::int32_t>(index.size()));
  }
  std::int64_t const n = result.layout.cells;
  if (index.size() > 1)
    result.material = numbers_of_materials(with_cells, result.layout.n_lattices, n * n * n,
                                           [&](unsigned material) { return index.at(material); });
  return result;
}

}  // namespace

LatticeGeometry lattice_geometry(Space const& space, ProblemData const& data) {
  LatticeLayout layout = space.lattices ? space.lattices->layout
                         : space.box    ? layout_of_box(space.box->cells, space.order)
                                        : layout_of_cells(space, Copies::left_out);
  LatticeGeometry result = geometry_of(space, std::move(layout), data, space);
  if (space.box)
    result.lines = lines_of(space);
  return result;
}

LatticeGeometry lattice_geometry(Space const& own, Space const& around, std::span<std::int32_t const> in_around,
                                 ProblemData const& data) {
  return geometry_of(around, layout_of_cells(own, Copies::left_out, in_around, around.n_dofs), data, own);
}

namespace {

/// All unknowns are on rims, and have these Dirichlet values; no loads.
void set_unknowns(LatticeProblem& problem, std::span<double const> dirichlet) {
  problem.fixed.assign(dirichlet.size(), 0);
  problem.fixed_value.assign(dirichlet.size(), 0);
  problem.rim_load.assign(dirichlet.size(), 0);
  for (std::size_t i = 0; i < dirichlet.size(); ++i)
    if (!std::isnan(dirichlet[i])) {
      problem.fixed[i] = 1;
      problem.fixed_value[i] = dirichlet[i];
      problem.pure_neumann = false;
    }
}

}  // namespace

LatticeProblem problem_without_cells(int order, std::span<double const> dirichlet) {
  LatticeProblem problem;
  problem.layout = shape_of_cells(0, std::ssize(dirichlet), order);
  RimTables tables;
  tables.kind_first.assign(static_cast<std::size_t>(order * order * order), 0);
  list_copies(problem.layout, tables);
  problem.layout.set_tables(std::move(tables));
  problem.pure_neumann = true;
  set_unknowns(problem, dirichlet);
  return problem;
}

LatticeProblem lattice_problem(Space const& own, ReferenceElement const& element, ProblemData const& data,
                               std::span<std::int32_t const> number, std::span<double const> dirichlet, bool with_source) {
  LatticeProblem problem = problem_of(own, element, data, Lattices::cells, with_source);
  problem.layout = layout_of_cells(own, Copies::listed, number, std::ssize(dirichlet));
  HostVector<double> const loads = std::move(problem.rim_load);
  set_unknowns(problem, dirichlet);
  for (std::size_t i = 0; i < number.size(); ++i)
    if (problem.fixed[number[i]] == 0)
      problem.rim_load[number[i]] = loads[i];
  return problem;
}

LatticeProblem lattice_problem_of_pieces(Space const& around, ReferenceElement const& element, ProblemData const& data,
                                         DirichletValues const& dirichlet) {
  LatticeProblem problem;
  problem.layout = around.lattices->layout;
  problem.isoparametric = around.isoparametric;
  set_nodes(problem, around);
  std::int64_t const n = problem.layout.cells, of_lattice = n * n * n;
  set_data(problem, around, data);

  BoundaryTerms const boundary = boundary_terms(around, element, data);
  std::int64_t const first = problem.layout.n_inner();
  auto const n_rim = static_cast<std::size_t>(problem.layout.n_unknowns - first);
  problem.fixed.assign(n_rim, 0);
  problem.fixed_value.assign(n_rim, 0);
  problem.rim_load.assign(n_rim, 0);
  problem.pure_neumann = !boundary.anchored;
  for (std::size_t i = 0; i < n_rim; ++i) {
    std::int64_t const unknown = first + static_cast<std::int64_t>(i);
    if (dirichlet.has(unknown)) {
      problem.fixed[i] = 1;
      problem.fixed_value[i] = dirichlet[unknown];
      problem.pure_neumann = false;
    } else if (unknown < around.n_own()) {
      problem.rim_load[i] = boundary.rhs[boundary.places.place(unknown)];
    }
  }
  set_face_masses(problem, around, boundary, [&](std::int64_t cell) -> CellOfLattice {
    std::int64_t const in_lattice = cell % of_lattice;
    return {cell < around.n_in_lattices() ? cell / of_lattice : -1, {in_lattice % n, in_lattice / n % n, in_lattice / (n * n)}};
  });
  return problem;
}

std::int64_t lattice_problem_bytes(LatticeLayout const& layout, bool shares_coordinates) {
  // Dirichlet values, marks, loads; while these are made also those of the conditions. Tables of lattices are the mesh's.
  if (layout.is_box())
    return (17 + 19) * layout.n_on_boundary();
  if (shares_coordinates)
    return (17 + 13) * (layout.n_unknowns - layout.n_inner());
  std::int64_t const m = layout.nodes(), rims = layout.n_lattices * layout.rim().size(),
                     on_rims = layout.n_unknowns - layout.n_inner();
  return 24 * layout.n_lattices * m * m * m + 8 * rims + (8 + 17) * on_rims;
}

std::int64_t emptied_entries(Space const& around, DirichletValues const& dirichlet,
                             std::function<bool(std::int64_t)> const& is_row) {
  auto const is_fixed = [&](std::int32_t unknown) { return dirichlet.has(unknown); };
  HostVector<std::int32_t> place;  // of such an unknown among all of these; else -1
  place.resize(dirichlet.values.size(), -1);
  std::int32_t n_fixed = 0;
  for (std::int64_t unknown = dirichlet.first; unknown < dirichlet.end(); ++unknown)
    if (dirichlet.has(unknown) && is_row(unknown))
      place[unknown - dirichlet.first] = n_fixed++;
  if (n_fixed == 0)
    return 0;
  // The unknowns of the cells around each of these, one list after another.
  auto const for_neighbours = [&](auto const& take) {
    parallel_for(
        around.n_parts_on_rims(), [&] { return std::vector<std::int32_t>(static_cast<std::size_t>(around.n_local)); },
        [&](std::vector<std::int32_t>& dofs, std::int64_t number) {
          around.for_cells_on_rims(number, [&](std::int64_t cell) {
            around.dofs(cell, dofs.data());
            for (std::int32_t const unknown : dofs)
              if (unknown >= dirichlet.first && place[unknown - dirichlet.first] >= 0)
                take(static_cast<std::size_t>(place[unknown - dirichlet.first]), dofs);
          });
        });
  };
  std::vector<std::int64_t> first(static_cast<std::size_t>(n_fixed) + 1);
  for_neighbours([&](std::size_t fixed, std::vector<std::int32_t> const& dofs) {
    std::atomic_ref(first[fixed + 1]).fetch_add(std::ssize(dofs), std::memory_order_relaxed);
  });
  std::partial_sum(first.begin(), first.end(), first.begin());
  HostVector<std::int32_t> neighbours(static_cast<std::size_t>(first.back()));
  std::vector<std::int64_t> next(first.begin(), first.end() - 1);
  for_neighbours([&](std::size_t fixed, std::vector<std::int32_t> const& dofs) {
    std::int64_t const at = std::atomic_ref(next[fixed]).fetch_add(std::ssize(dofs), std::memory_order_relaxed);
    std::copy(dofs.begin(), dofs.end(), neighbours.begin() + at);
  });
  constexpr std::int64_t at_once = 4096;
  std::vector<std::int64_t> counts(static_cast<std::size_t>(n_parts(n_fixed, at_once)));
  parallel_for(std::ssize(counts), [&](std::int64_t block) {
    auto const [begin, end] = part(n_fixed, at_once, block);
    for (std::int64_t fixed = begin; fixed < end; ++fixed) {
      auto const low = neighbours.begin() + first[static_cast<std::size_t>(fixed)],
                 high = neighbours.begin() + first[static_cast<std::size_t>(fixed) + 1];
      std::sort(low, high);
      auto const last = std::unique(low, high);
      counts[static_cast<std::size_t>(block)] += 2 * (last - low - 1) - (std::count_if(low, last, is_fixed) - 1);
    }
  });
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

}  // namespace poisson::assembly
