#include "gpu/core/lattice_layout.hpp"

#include <algorithm>
#include <cassert>
#include <utility>
#include <vector>

namespace poisson {

namespace {

/// Returns the layout of order 1 on every step-th node.
LatticeLayout every_node(LatticeView const& fine, std::int32_t step, std::vector<std::int32_t>& number) {
  LatticeLayout coarse;
  coarse.n_lattices = fine.n_lattices;
  coarse.cells = (fine.m - 1) / step;
  coarse.all_on_rim = fine.all_on_rim;
  LatticeRim const rim = coarse.rim(), rim_of_fine = fine.rim();
  std::int64_t const places = coarse.n_lattices * rim.size();
  RimTables tables;
  tables.kind_first.assign(1, 0);
  tables.rim_unknowns.resize(static_cast<std::size_t>(places));

  // First the numbers of the fine unknowns, then their places among those that stay.
  number.assign(static_cast<std::size_t>(fine.n_rim()), -1);
  std::int64_t const fine_first = fine.n_inner();
#pragma omp parallel for schedule(static)
  for (std::int64_t place = 0; place < places; ++place) {
    LatticeRim::Node const node = rim.node(place % rim.size());
    tables.rim_unknowns[static_cast<std::size_t>(place)] =
        fine.rim_unknowns[place / rim.size() * rim_of_fine.size() + rim_of_fine.place(step * node.i, step * node.j, step * node.k)];
  }
  for (std::int32_t const unknown : tables.rim_unknowns)
    number[static_cast<std::size_t>(unknown - fine_first)] = 0;
  std::int64_t const n_inner = coarse.n_inner();
  coarse.n_unknowns = n_inner;
  for (std::int32_t& of_unknown : number)
    if (of_unknown == 0)
      of_unknown = static_cast<std::int32_t>(coarse.n_unknowns++);
  for (std::int32_t& unknown : tables.rim_unknowns)
    unknown = number[static_cast<std::size_t>(unknown - fine_first)];
  list_copies(coarse, tables);
  coarse.set_tables(std::move(tables));
  return coarse;
}

}  // namespace

LatticeLayout coarse_layout(LatticeView const& fine, std::vector<std::int32_t>* coarse_of) {
  assert(fine.order == 1 && fine.cells % 2 == 0 && !fine.all_on_rim);
  std::vector<std::int32_t> own;
  return every_node(fine, 2, coarse_of != nullptr ? *coarse_of : own);
}

void list_copies(LatticeLayout const& layout, RimTables& tables) {
  std::int64_t const n_inner = layout.n_inner();
  tables.copy_offsets.assign(static_cast<std::size_t>(layout.n_unknowns - n_inner) + 1, 0);
  for (std::int32_t const unknown : tables.rim_unknowns)
    ++tables.copy_offsets[static_cast<std::size_t>(unknown - n_inner) + 1];
  for (std::size_t i = 1; i < tables.copy_offsets.size(); ++i)
    tables.copy_offsets[i] += tables.copy_offsets[i - 1];
  tables.copies.resize(tables.rim_unknowns.size());
  std::vector<std::int64_t> next(tables.copy_offsets.begin(), tables.copy_offsets.end() - 1);
  for (std::size_t place = 0; place < tables.rim_unknowns.size(); ++place)
    tables.copies[static_cast<std::size_t>(next[static_cast<std::size_t>(tables.rim_unknowns[place] - n_inner)]++)] =
        static_cast<std::int32_t>(place);
}

HostVector<std::uint8_t> first_copies(LatticeLayout const& layout) {
  RimTables const& tables = *layout.tables;
  HostVector<std::uint8_t> first(tables.rim_unknowns.size(), 0);
  for (std::size_t i = 0; i + 1 < tables.copy_offsets.size(); ++i)
    if (tables.copy_offsets[i] < tables.copy_offsets[i + 1])
      first[static_cast<std::size_t>(tables.copies[static_cast<std::size_t>(tables.copy_offsets[i])])] = 1;
  return first;
}

Array<std::uint8_t> on_rims(Context& context, LatticeLayout const& layout, std::span<std::uint8_t const> on_boundary) {
  if (!layout.is_box())
    return Array<std::uint8_t>(context, on_boundary);
  constexpr std::int64_t bytes_at_once = std::int64_t{1} << 20;
  Array<std::uint8_t> result(context, layout.n_unknowns);
  BoxSurface const surface = layout.surface();
  std::int64_t const plane = surface.plane(), at_once = std::max<std::int64_t>(bytes_at_once / plane, 1);
  std::int64_t place = 0;
  for (std::int64_t k = 0; k < surface.n[2]; k += at_once) {
    std::int64_t const first = k * plane, end = std::min(k + at_once, surface.n[2]) * plane;
    HostVector<std::uint8_t> planes(static_cast<std::size_t>(end - first), 0);
    for (; place < surface.size() && surface.node(place) < end; ++place)
      planes[static_cast<std::size_t>(surface.node(place) - first)] = on_boundary[static_cast<std::size_t>(place)];
    context.upload(result.data() + first, planes.data(), end - first);
  }
  return result;
}

HostVector<std::uint8_t> vertices_at_surface(LatticeLayout const& box, std::span<std::uint8_t const> at_surface) {
  BoxSurface const all = box.surface(), vertices = layout_of_box({box.box[0], box.box[1], box.box[2]}, 1).surface();
  std::int64_t const p = box.order;
  HostVector<std::uint8_t> result(static_cast<std::size_t>(vertices.size()));
  for (std::int64_t i = 0; i < vertices.size(); ++i) {
    std::int64_t const node = vertices.node(i);
    std::int64_t const place =
        all.place(p * (node % vertices.n[0]), p * (node / vertices.n[0] % vertices.n[1]), p * (node / vertices.plane()));
    result[static_cast<std::size_t>(i)] = at_surface[static_cast<std::size_t>(place)];
  }
  return result;
}

LatticeLayout layout_of_box(std::array<std::int64_t, 3> const& cells, std::int32_t order) {
  LatticeLayout layout;
  layout.order = order;
  layout.cells = 1;
  layout.all_on_rim = true;
  layout.n_lattices = layout.n_unknowns = 1;
  for (std::size_t d = 0; d < 3; ++d) {
    layout.box[d] = static_cast<std::int32_t>(cells[d]);
    layout.n_lattices *= cells[d];
    layout.n_unknowns *= order * cells[d] + 1;
  }
  RimTables tables;
  tables.kind_first.assign(static_cast<std::size_t>(order * order * order), 0);
  layout.set_tables(std::move(tables));
  return layout;
}

LatticeLayout layout_of_vertices(LatticeView const& fine, std::vector<std::int32_t>* coarse_of) {
  if (fine.is_box())
    return layout_of_box({fine.box[0], fine.box[1], fine.box[2]}, 1);
  std::vector<std::int32_t> own;
  return every_node(fine, fine.order, coarse_of != nullptr ? *coarse_of : own);
}

}  // namespace poisson
