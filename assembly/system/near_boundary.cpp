#include "assembly/system/near_boundary.hpp"

#include "assembly/parallel.hpp"
#include "assembly/system/boundary_flux.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

namespace poisson::assembly {

namespace {

using Numbers = std::vector<std::int32_t>;

/// The unknowns of a face of a cell. `dofs` is scratch.
void append_unknowns(Space const& space, ReferenceElement const& element, std::int64_t cell, int face, Numbers& dofs,
                     Numbers& unknowns) {
  dofs.resize(static_cast<std::size_t>(space.n_local));
  space.dofs(cell, dofs.data());
  for (int const node : element.face_nodes(face))
    unknowns.push_back(dofs[static_cast<std::size_t>(node)]);
}

/// The cells whose values of u count.
Numbers cells_near_boundary(Space const& space, ReferenceElement const& element, ProblemData const& data,
                            std::span<std::uint8_t const> counted) {
  Numbers cells, unknowns, dofs;  // unknowns whose residuals count
  for (BoundaryFace const& face : space.boundary_faces) {
    cells.push_back(face.cell);
    if (!data.boundary_at(face.boundary_id).is_natural())
      append_unknowns(space, element, face.cell, face.face, dofs, unknowns);
  }
  for (InnerFace const& face : space.inner_faces) {
    std::copy_if(face.cells.begin(), face.cells.end(), std::back_inserter(cells), [](std::int32_t cell) { return cell >= 0; });
    std::size_t const side = face.cells[0] >= 0 ? 0 : 1;  // of a part, one cell may be missing
    append_unknowns(space, element, face.cells[side], face.faces[side], dofs, unknowns);
  }
  if (!counted.empty())
    std::erase_if(unknowns, [&](std::int32_t unknown) { return counted[static_cast<std::size_t>(unknown)] == 0; });
  if (!unknowns.empty()) {
    // Boundaries of lattices are on their rims, whose unknowns come last.
    std::int64_t const first = space.lattices ? space.lattices->first_face : 0;
    std::vector<std::uint8_t> marked(static_cast<std::size_t>(space.n_dofs - first), 0);
    for (std::int32_t const unknown : unknowns) {
      marked[static_cast<std::size_t>(unknown - first)] = 1;
      space.for_free(unknown, [&](std::int32_t free, double) { marked[static_cast<std::size_t>(free - first)] = 1; });
    }
    // The residuals of hanging nodes count for the unknowns that they depend on.
    std::vector<std::int32_t> hanging;
    for (std::int64_t i = 0; i < space.hanging.size(); ++i)
      if (space.hanging.constrained(i) && std::ranges::any_of(space.hanging.row(i), [&](Constraints::Entry const& entry) {
            return marked[static_cast<std::size_t>(entry.unknown)] != 0;
          }))
        hanging.push_back(static_cast<std::int32_t>(i));
    for (std::int32_t const unknown : hanging)
      marked[static_cast<std::size_t>(unknown)] = 1;
    std::vector<Numbers> of_parts(static_cast<std::size_t>(space.n_parts_on_rims()));
    parallel_for(
        std::ssize(of_parts), [&] { return Numbers(static_cast<std::size_t>(space.n_local)); },
        [&](Numbers& of_cell, std::int64_t number) {
          space.for_cells_on_rims(number, [&](std::int64_t cell) {
            space.dofs(cell, of_cell.data());
            if (std::any_of(of_cell.begin(), of_cell.end(), [&](std::int32_t unknown) {
                  return unknown >= first && marked[static_cast<std::size_t>(unknown - first)] != 0;
                }))
              of_parts[static_cast<std::size_t>(number)].push_back(static_cast<std::int32_t>(cell));
          });
        });
    for (Numbers const& of_part : of_parts)
      cells.insert(cells.end(), of_part.begin(), of_part.end());
  }
  std::sort(cells.begin(), cells.end());
  cells.erase(std::unique(cells.begin(), cells.end()), cells.end());
  return cells;
}

/// The unknowns of some cells, and those that hanging nodes among them depend on; ascending.
Numbers unknowns_of(Space const& space, Numbers const& cells) {
  constexpr std::int64_t bits = 64;
  std::vector<std::uint64_t> marks(static_cast<std::size_t>(n_parts(space.n_dofs, bits)), 0);
  Numbers dofs(static_cast<std::size_t>(space.n_local)), unknowns;
  for (std::int32_t const cell : cells) {
    space.dofs(cell, dofs.data());
    for (std::int32_t const unknown : dofs) {
      marks[static_cast<std::size_t>(unknown / bits)] |= std::uint64_t{1} << (unknown % bits);
      space.for_free(unknown, [&](std::int32_t free, double) {
        marks[static_cast<std::size_t>(free / bits)] |= std::uint64_t{1} << (free % bits);
      });
    }
  }
  for (std::size_t word = 0; word < marks.size(); ++word)
    for (std::uint64_t left = marks[word]; left != 0; left &= left - 1)
      unknowns.push_back(static_cast<std::int32_t>(bits * static_cast<std::int64_t>(word) + std::countr_zero(left)));
  return unknowns;
}

/// The place of a number in an ascending list, or -1.
std::int32_t place_in(Numbers const& numbers, std::int32_t number) {
  auto const found = std::lower_bound(numbers.begin(), numbers.end(), number);
  return found != numbers.end() && *found == number ? static_cast<std::int32_t>(found - numbers.begin()) : -1;
}

}  // namespace

BoundaryFluxes fluxes_near_boundary(Space const& space, ReferenceElement const& element, ProblemData const& data,
                                    ValuesOfUnknowns const& u, ValuesOfUnknowns const& u_low,
                                    std::span<std::uint8_t const> counted) {
  Numbers const cells = cells_near_boundary(space, element, data, counted), unknowns = unknowns_of(space, cells);
  Space const near(space, cells, unknowns);
  ProblemData of_near = data;
  for (PointLoads::Load& load : of_near.point_loads.loads) {
    load.unknown = place_in(unknowns, load.unknown);
    load.cell = place_in(cells, load.cell);
  }
  std::erase_if(of_near.point_loads.loads, [](PointLoads::Load const& load) { return load.unknown < 0; });
  HostVector<double> const high = u(unknowns), low = u_low ? u_low(unknowns) : HostVector<double>();
  std::vector<std::uint8_t> counted_near;
  for (std::size_t i = 0; i < unknowns.size() && !counted.empty(); ++i)
    counted_near.push_back(counted[static_cast<std::size_t>(unknowns[i])]);
  BoundaryFluxes result = boundary_fluxes(near, element, of_near, high, counted_near, low);
  for (PeriodicFlux& flux : result.periodic)
    flux.node.number = unknowns[static_cast<std::size_t>(flux.node.number)];
  if (!result.periodic.empty() && counted.empty())
    add_periodic_fluxes(result.periodic, data, result);
  return result;
}

}  // namespace poisson::assembly
