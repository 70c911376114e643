#pragma once

#include "gpu/core/context.hpp"
#include "gpu/core/host_device.hpp"
#include "gpu/core/lattice_interior.hpp"
#include "gpu/core/lattice_layout.hpp"

#include <cstdint>

namespace poisson {

/// Which nodes of the cells at a side of a lattice are copied where: p + 1 layers of m x m nodes, x fastest.
struct LatticeSide {
  std::int64_t first[3], count[3];  ///< of its nodes, in every direction
};
[[nodiscard]] POISSON_HOST_DEVICE inline LatticeSide side_of_lattice(std::int64_t m, std::int32_t order, int face) {
  LatticeSide side{{0, 0, 0}, {m, m, m}};
  side.count[face / 2] = order + 1;
  side.first[face / 2] = face % 2 == 0 ? 0 : m - order - 1;
  return side;
}

/// Makes the nodes of lattices where they are used (gpu/core/lattice_interior.hpp). Coordinates: [(3 lattice + direction) m^3 +
/// node], x fastest. Pointers are in the backend's memory.
class LatticeNodeKernels {
public:
  virtual ~LatticeNodeKernels() = default;
  /// Writes those on rims, of which `on_rims` has 3 for each unknown from n_inner() on.
  virtual void put_rims(Context& context, LatticeView const& lattices, double const* on_rims, double* nodes) const = 0;
  /// Writes copies of some nodes, at places on rims: of copy i x[3 of[i]] ... x[3 of[i] + 2].
  virtual void place(Context& context, LatticeView const& lattices, std::int64_t n_copies, std::int32_t const* places,
                     std::int32_t const* of, double const* x, double* nodes) const = 0;
  /// Makes those of a pass. Written: 24 bytes a node; all passes together read about 60.
  virtual void make(Context& context, LatticeInterior const& pass, double* nodes) const = 0;
  /// out[(3 i + direction) (p + 1) m^2 + node]: the nodes of the cells at the sides of lattices, `sides[i]` = 6 lattice + face.
  virtual void copy_sides(Context& context, LatticeView const& lattices, std::int64_t n_sides, std::int32_t const* sides,
                          double const* nodes, double* out) const = 0;

  static LatticeNodeKernels const& cpu();
  static LatticeNodeKernels const& cuda();
};

/// Work items of the functions above, for loops over them.
namespace lattice_nodes {

/// Writes the coordinates `from` at a place on rims.
POISSON_HOST_DEVICE inline void place(LatticeView const& lattices, std::int64_t place, double const* from, double* nodes) {
  LatticeRim const rim = lattices.rim();
  std::int64_t const m = lattices.m, lattice = place / rim.size();
  LatticeRim::Node const at = rim.node(place % rim.size());
  double* const x = nodes + 3 * lattice * m * m * m + (at.k * m + at.j) * m + at.i;
  for (int d = 0; d < 3; ++d)
    x[d * m * m * m] = from[d];
}
POISSON_HOST_DEVICE inline void put_rim(LatticeView const& lattices, double const* on_rims, std::int64_t at, double* nodes) {
  place(lattices, at, on_rims + 3 * (lattices.rim_unknowns[at] - lattices.n_inner()), nodes);
}

[[nodiscard]] POISSON_HOST_DEVICE inline double of_side(LatticeView const& lattices, std::int32_t const* sides, std::int64_t i,
                                                        double const* nodes) {
  std::int64_t const m = lattices.m, of_direction = (lattices.order + 1) * m * m, part = i / of_direction, at = i % of_direction;
  std::int32_t const lattice = sides[part / 3] / 6, face = sides[part / 3] % 6;
  LatticeSide const side = side_of_lattice(m, lattices.order, face);
  std::int64_t const x = side.first[0] + at % side.count[0], y = side.first[1] + at / side.count[0] % side.count[1],
                     z = side.first[2] + at / (side.count[0] * side.count[1]);
  return nodes[(3 * lattice + part % 3) * m * m * m + (z * m + y) * m + x];
}

}  // namespace lattice_nodes
}  // namespace poisson
