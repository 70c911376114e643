#include "gpu/elements/lattice_nodes.hpp"

#include "gpu/core/context.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/lattice_nodes.hpp"

#include <cstddef>
#include <vector>

namespace poisson {

Array<double> make_lattice_nodes(Context& context, LatticesToFill const& lattices, std::span<double> of_sides) {
  auto const& kernels = kernels_for<LatticeNodeKernels>(context);
  LatticeLayout const& layout = lattices.lattices;
  std::int64_t const m = layout.nodes();
  Array<double> nodes(context, 3 * layout.n_lattices * m * m * m);
  Array<double> const on_rims(context, lattices.on_rims);
  Array<std::int32_t> const rim_unknowns(context, layout.tables->rim_unknowns);
  LatticeView view = layout.view();
  view.rim_unknowns = rim_unknowns.data();
  kernels.put_rims(context, view, on_rims.data(), nodes.data());
  lattice_interior::for_passes(layout, layout.n_lattices, lattices.parameters,
                               [&](LatticeInterior const& pass) { kernels.make(context, pass, nodes.data()); });
  Array<std::int32_t> const sides(context, lattices.sides);
  Array<double> packed(context, std::ssize(of_sides));
  kernels.copy_sides(context, view, sides.size(), sides.data(), nodes.data(), packed.data());
  packed.download(of_sides);
  return nodes;
}

void place_lattice_nodes(Context& context, LatticeLayout const& lattices, std::int64_t first, std::span<double const> coordinates,
                         Array<double>& nodes) {
  auto const& kernels = kernels_for<LatticeNodeKernels>(context);
  RimTables const& tables = *lattices.tables;
  std::vector<std::int32_t> copies, of;
  for (std::int64_t i = 0; i < std::ssize(coordinates) / 3; ++i) {
    auto const on_rim = static_cast<std::size_t>(first + i - lattices.n_inner());
    for (std::int64_t c = tables.copy_offsets[on_rim]; c < tables.copy_offsets[on_rim + 1]; ++c) {
      copies.push_back(tables.copies[static_cast<std::size_t>(c)]);
      of.push_back(static_cast<std::int32_t>(i));
    }
  }
  Array<std::int32_t> const places(context, copies), of_places(context, of);
  Array<double> const x(context, coordinates);
  kernels.place(context, lattices.view(), places.size(), places.data(), of_places.data(), x.data(), nodes.data());
  context.synchronize();
}

}  // namespace poisson
