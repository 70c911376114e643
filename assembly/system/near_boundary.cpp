#include "assembly/system/near_boundary.hpp"

#include "assembly/parallel.hpp"
#include "assembly/system/boundary_flux.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace poisson::assembly {

namespace {

using Numbers = std::vector<std::int32_t>;

/// Marks of numbers from `first` on, which threads set side by side.
class Marks {
public:
  Marks(std::int64_t first, std::int64_t end)
      : first_(first), words_(static_cast<std::size_t>(n_parts(std::max<std::int64_t>(end - first, 0), bits)), 0) {}
  void set(std::int64_t number) {
    std::int64_t const i = number - first_;
    std::atomic_ref(words_[static_cast<std::size_t>(i / bits)]).fetch_or(std::uint64_t{1} << (i % bits), std::memory_order_relaxed);
  }
  [[nodiscard]] bool has(std::int64_t number) const {
    std::int64_t const i = number - first_;
    return i >= 0 && (words_[static_cast<std::size_t>(i / bits)] >> (i % bits) & 1) != 0;
  }
  /// Those that are marked, ascending.
  [[nodiscard]] Numbers numbers() const {
    constexpr std::int64_t at_once = 1 << 14;
    auto const n_words = std::ssize(words_);
    std::vector<std::int64_t> before(static_cast<std::size_t>(n_parts(n_words, at_once)) + 1, 0);
    parallel_for(std::ssize(before) - 1, [&](std::int64_t block) {
      auto const [begin, end] = part(n_words, at_once, block);
      for (std::int64_t word = begin; word < end; ++word)
        before[static_cast<std::size_t>(block) + 1] += std::popcount(words_[static_cast<std::size_t>(word)]);
    });
    std::partial_sum(before.begin(), before.end(), before.begin());
    Numbers result(static_cast<std::size_t>(before.back()));
    parallel_for(std::ssize(before) - 1, [&](std::int64_t block) {
      auto const [begin, end] = part(n_words, at_once, block);
      auto out = result.begin() + before[static_cast<std::size_t>(block)];
      for (std::int64_t word = begin; word < end; ++word)
        for (std::uint64_t left = words_[static_cast<std::size_t>(word)]; left != 0; left &= left - 1)
          *out++ = static_cast<std::int32_t>(first_ + bits * word + std::countr_zero(left));
    });
    return result;
  }

private:
  static constexpr std::int64_t bits = 64;
  std::int64_t first_;
  std::vector<std::uint64_t> words_;
};

constexpr std::int64_t items_at_once = 1024;

/// Calls body(item, scratch) for n items by threads.
template <class Body>
void for_items(std::int64_t n, Body const& body) {
  parallel_for(
      n_parts(n, items_at_once), [] { return Numbers(); },
      [&](Numbers& scratch, std::int64_t block) {
        auto const [begin, end] = part(n, items_at_once, block);
        for (std::int64_t item = begin; item < end; ++item)
          body(item, scratch);
      });
}

/// The cells whose values of u count.
Numbers cells_near_boundary(Space const& space, ReferenceElement const& element, ProblemData const& data,
                            CountedUnknowns const& counted) {
  Marks cells(0, space.n_cells);
  // Unknowns whose residuals count. Boundaries of lattices are on their rims, whose unknowns come last.
  Marks unknowns(space.lattices ? space.lattices->first_face : 0, space.n_dofs);
  std::atomic<bool> any = false;
  std::array<std::vector<int>, 6> nodes_of_face;
  for (int face = 0; face < 6; ++face)
    nodes_of_face[static_cast<std::size_t>(face)] = element.face_nodes(face);
  auto const mark_face = [&](std::int64_t cell, int face, Numbers& dofs) {
    dofs.resize(static_cast<std::size_t>(space.n_local));
    space.dofs(cell, dofs.data());
    for (int const node : nodes_of_face[static_cast<std::size_t>(face)]) {
      std::int32_t const unknown = dofs[static_cast<std::size_t>(node)];
      if (counted && !counted(unknown))
        continue;
      any.store(true, std::memory_order_relaxed);
      unknowns.set(unknown);
      space.for_free(unknown, [&](std::int32_t free, double) { unknowns.set(free); });
    }
  };
  for_items(std::ssize(space.boundary_faces), [&](std::int64_t i, Numbers& dofs) {
    BoundaryFace const& face = space.boundary_faces[static_cast<std::size_t>(i)];
    cells.set(face.cell);
    if (!data.boundary_at(face.boundary_id).is_natural())
      mark_face(face.cell, face.face, dofs);
  });
  for_items(std::ssize(space.inner_faces), [&](std::int64_t i, Numbers& dofs) {
    InnerFace const& face = space.inner_faces[static_cast<std::size_t>(i)];
    for (std::int32_t const cell : face.cells)
      if (cell >= 0)
        cells.set(cell);
    std::size_t const side = face.cells[0] >= 0 ? 0 : 1;  // of a part, one cell may be missing
    mark_face(face.cells[side], face.faces[side], dofs);
  });
  if (any) {
    // The residuals of hanging nodes count for the unknowns that they depend on.
    Numbers hanging;
    for (std::int64_t i = 0; i < space.hanging.size(); ++i)
      if (space.hanging.constrained(i) &&
          std::ranges::any_of(space.hanging.row(i), [&](Constraints::Entry const& entry) { return unknowns.has(entry.unknown); }))
        hanging.push_back(static_cast<std::int32_t>(i));
    for (std::int32_t const unknown : hanging)
      unknowns.set(unknown);
    parallel_for(
        space.n_parts_on_rims(), [&] { return Numbers(static_cast<std::size_t>(space.n_local)); },
        [&](Numbers& of_cell, std::int64_t number) {
          space.for_cells_on_rims(number, [&](std::int64_t cell) {
            space.dofs(cell, of_cell.data());
            if (std::ranges::any_of(of_cell, [&](std::int32_t unknown) { return unknowns.has(unknown); }))
              cells.set(cell);
          });
        });
  }
  return cells.numbers();
}

/// The unknowns of some cells, and those that hanging nodes among them depend on; ascending.
Numbers unknowns_of(Space const& space, Numbers const& cells) {
  Marks unknowns(0, space.n_dofs);
  for_items(std::ssize(cells), [&](std::int64_t i, Numbers& dofs) {
    dofs.resize(static_cast<std::size_t>(space.n_local));
    space.dofs(cells[static_cast<std::size_t>(i)], dofs.data());
    for (std::int32_t const unknown : dofs) {
      unknowns.set(unknown);
      space.for_free(unknown, [&](std::int32_t free, double) { unknowns.set(free); });
    }
  });
  return unknowns.numbers();
}

/// The place of a number in an ascending list, or -1.
std::int32_t place_in(Numbers const& numbers, std::int32_t number) {
  auto const found = std::lower_bound(numbers.begin(), numbers.end(), number);
  return found != numbers.end() && *found == number ? static_cast<std::int32_t>(found - numbers.begin()) : -1;
}

}  // namespace

BoundaryFluxes fluxes_near_boundary(Space const& space, ReferenceElement const& element, ProblemData const& data,
                                    ValuesOfUnknowns const& u, ValuesOfUnknowns const& u_low, CountedUnknowns const& counted) {
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
  for (std::size_t i = 0; i < unknowns.size() && counted; ++i)
    counted_near.push_back(counted(unknowns[i]) ? 1 : 0);
  BoundaryFluxes result = boundary_fluxes(near, element, of_near, high, counted_near, low);
  for (PeriodicFlux& flux : result.periodic)
    flux.node.number = unknowns[static_cast<std::size_t>(flux.node.number)];
  if (!result.periodic.empty() && !counted)
    add_periodic_fluxes(result.periodic, data, result);
  return result;
}

BoundarySurface surface_near_boundary(Space const& space, ReferenceElement const& element, ProblemData const& data,
                                      ValuesOfUnknowns const& u) {
  Marks at_boundary(0, space.n_cells);
  for (BoundaryFace const& face : space.boundary_faces)
    at_boundary.set(face.cell);
  Numbers const cells = at_boundary.numbers(), unknowns = unknowns_of(space, cells);
  HostVector<double> const values = u(unknowns);
  BoundarySurface surface = boundary_surface(Space(space, cells, unknowns), element, data, values);
  for (std::int64_t& unknown : surface.unknowns)
    unknown = unknowns[static_cast<std::size_t>(unknown)];
  return surface;
}

}  // namespace poisson::assembly
