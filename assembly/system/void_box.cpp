#include "assembly/system/void_box.hpp"

#include "assembly/mesh/counts.hpp"
#include "assembly/parallel.hpp"
#include "assembly/system/system.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

namespace poisson::assembly {

namespace {

constexpr unsigned n_sides = 6;

/// Calls action(state, cell, its number in these planes) for the cells of the space in `count` planes of cells of the box from
/// `first` on, by threads.
template <class MakeState, class Action>
void for_cells_in_planes(PlacesInBox const& places, std::int64_t first, std::int64_t count, MakeState const& make_state,
                         Action const& action) {
  std::int64_t const of_plane = places.box.cells[0] * places.box.cells[1];
  auto const cells_before = [&](std::int64_t plane) {
    return std::ranges::lower_bound(places.cells, plane * of_plane) - places.cells.begin();
  };
  constexpr std::int64_t at_once = 4096;
  std::int64_t const before = cells_before(first), n = cells_before(first + count) - before;
  parallel_for(n_parts(n, at_once), make_state, [&](auto& state, std::int64_t i) {
    auto const [begin, end] = part(n, at_once, i);
    for (std::int64_t cell = before + begin; cell < before + end; ++cell)
      action(state, cell, places.cells[static_cast<std::size_t>(cell)] - first * of_plane);
  });
}

/// f at the Gauss points of planes of cells, which is 0 in void.
BoxProblem::PlaneValues source_in_planes(Space const& space, ProblemData const& data) {
  double const low = 0.5 - 0.5 / std::sqrt(3.);
  return [&space, &data, low](std::int64_t first, std::int64_t count, int /*component*/, double* values) {
    PlacesInBox const& places = *space.in_box;
    std::int64_t const nx = places.box.cells[0], ny = places.box.cells[1], of_line = 2 * nx, of_plane = 4 * nx * ny;
    parallel_for(2 * count, [&](std::int64_t plane) { std::fill_n(values + plane * of_plane, of_plane, 0.0); });
    struct State {
      ProblemData data;
      std::vector<std::int32_t> dofs;
    };
    for_cells_in_planes(
        places, first, count,
        [&] {
          return State{data, std::vector<std::int32_t>(static_cast<std::size_t>(space.n_local))};
        },
        [&](State& state, std::int64_t cell, std::int64_t in_planes) {
          space.dofs(cell, state.dofs.data());
          Point3 const a = space.point(state.dofs.front()), b = space.point(state.dofs.back());
          Function const& f = state.data.source(space.material(cell));
          std::int64_t const x = in_planes % nx, y = in_planes / nx % ny, z = in_planes / (nx * ny);
          for (int q = 0; q < 8; ++q) {
            Point3 at{};
            for (int d = 0; d < 3; ++d) {
              double const t = (q >> d & 1) != 0 ? 1 - low : low;
              at[d] = (1 - t) * a[d] + t * b[d];
            }
            values[(2 * z + (q >> 2)) * of_plane + (2 * y + (q >> 1 & 1)) * of_line + 2 * x + (q & 1)] = f.finite(at, "the source");
          }
        });
  };
}

}  // namespace

bool is_for_void_box(MeshSpec const& mesh, int order, ProblemData const& data, std::set<unsigned> const& materials) {
  bool dirichlet = false, others = false;
  for (auto const& [id, index] : data.boundary_of) {
    BoundaryData const& condition = data.boundary[index];
    bool const given = condition.type == BoundaryType::dirichlet;
    dirichlet = dirichlet || given;
    others =
        others || (given && (id >= n_sides || !condition.value.is_code())) || (!given && condition.type != BoundaryType::neumann);
  }
  return is_box_with_void(mesh) && order == 1 && !mesh.is_graded() && mesh.boundaries.empty() && !mesh.shared && !mesh.part &&
         materials.size() < BoxProblem::most_materials && data.constant_coefficient() && data.diagonal_code() &&
         data.inner_of.empty() && !data.has_periodic_boundaries() && dirichlet && !others;
}

VoidBoxProblem void_box_problem(Space const& space, ReferenceElement const& element, ProblemData const& data) {
  PlacesInBox const& places = *space.in_box;
  BoxGrid const& box = places.box;
  ExpressionCode const zero{Instruction(Op::constant, 0)};
  VoidBoxProblem result;
  result.nodes = std::span<std::int32_t const>(places.nodes);
  BoundaryTerms terms = boundary_terms(space, element, data);
  assert(std::ssize(terms.rhs) == space.n_dofs);
  bool const has_values = std::ranges::any_of(data.boundary, [](BoundaryData const& condition) {
    return condition.type == BoundaryType::neumann && !(condition.value.is_constant() && condition.value(Point3{}) == 0);
  });
  if (has_values)
    result.loads = std::move(terms.rhs);
  result.constraints = std::move(terms.constraints);

  BoxProblem& problem = result.box;
  problem.cells = box.cells;
  problem.origin = box.origin;
  problem.extent = box.extent;
  auto const components = static_cast<std::size_t>(data.coefficient_components());
  problem.coefficient.assign(components, zero);
  problem.coefficient_on_host = [](std::int64_t, std::int64_t, int, double*) { assert(false); };  // materials say it all
  problem.source = zero;
  bool const has_source = !std::ranges::all_of(data.sources, [](Function const& f) { return f.is_constant() && f(Point3{}) == 0; });
  if (has_source)
    problem.source_on_host = source_in_planes(space, data);
  BoxProblem::Materials& materials = problem.materials.emplace();
  materials.has_void = true;
  materials.coefficients.push_back({zero});
  std::vector<unsigned> const ids(space.material_ids.begin(), space.material_ids.end());
  for (unsigned const id : ids)
    materials.coefficients.push_back(data.coefficient(id).codes());
  materials.sources = data.constant_sources(space.material_ids);
  if (!materials.sources.empty())
    materials.sources.insert(materials.sources.begin(), 0);  // of void
  materials.of_planes = [&space, ids](std::int64_t first, std::int64_t count, std::uint8_t* numbers) {
    PlacesInBox const& in_box = *space.in_box;
    std::int64_t const of_plane = in_box.box.cells[0] * in_box.box.cells[1];
    parallel_for(count, [&](std::int64_t plane) { std::fill_n(numbers + plane * of_plane, of_plane, std::uint8_t{0}); });
    for_cells_in_planes(
        in_box, first, count,
        [] {
          return std::pair{~0U, std::uint8_t{0}};
        },
        [&](std::pair<unsigned, std::uint8_t>& last, std::int64_t cell, std::int64_t in_planes) {
          if (unsigned const id = space.material(cell); id != last.first)
            last = {id, static_cast<std::uint8_t>(1 + (std::ranges::lower_bound(ids, id) - ids.begin()))};
          numbers[in_planes] = last.second;
        });
  };
  for (unsigned side = 0; side < n_sides; ++side) {
    using Type = BoxProblem::Face::Type;
    problem.faces[side] = {Type::neumann, 0, zero, {}};
    auto const found = data.boundary_of.find(side);
    if (found != data.boundary_of.end() && data.boundary[found->second].type == BoundaryType::dirichlet)
      problem.faces[side] = {Type::dirichlet, static_cast<int>(found->second), data.boundary[found->second].value.code(), {}};
  }
  return result;
}

}  // namespace poisson::assembly
