#pragma once

#include "assembly/mesh/coarse_mesh.hpp"
#include "gpu/core/host_vector.hpp"
#include "gpu/core/lattice_interior.hpp"
#include "gpu/core/lattice_layout.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

namespace poisson::assembly {

/// Where the nodes of lattices are. Either all of them are in memory; or, where nobody is expected to ask for those inside, only
/// the nodes on rims and those of the cells at some sides, and lattices are filled again as they are needed. All copies of a node
/// have the same bits. Threads may use it side by side.
class LatticeNodes {
public:
  /// All of them, of lattices of m nodes a side, with elements of order p.
  LatticeNodes(HostVector<double> all, std::int64_t m, int order) : all_(std::move(all)), has_all_(true), m_(m), order_(order) {}
  /// Keeps 24 bytes for each unknown on rims, and 24 (p + 1) m^2 for each side that is kept: those with is_kept[6 lattice + face].
  /// The tables of the layout are shared.
  /// Copies of a node that `make` makes may differ in their last digits: the first one, by place on rims, tells where it is.
  /// `layout`: with lists of copies, two cells a side or more, and not all_on_rim. `parameters`: of the nodes of an element in one
  /// direction. `fill`: where the lattices are filled; here, some after others, if it is null or has no memory. Throws what `make`
  /// and `fill` throw, Interrupted.
  LatticeNodes(LatticeLayout const& layout, std::vector<double> parameters, MakeLatticeFaces const& make,
               std::vector<std::uint8_t> const& is_kept, FillLattices const& fill = {});

  /// Bytes that the second constructor keeps, with so many sides; and those that faces of lattices take while they are made.
  [[nodiscard]] static std::int64_t bytes_kept(LatticeLayout const& layout, std::int64_t n_sides);
  [[nodiscard]] static std::int64_t bytes_at_once(LatticeLayout const& layout);

  [[nodiscard]] bool has_all() const { return has_all_.load(std::memory_order_acquire); }
  /// All nodes: [(3 lattice + direction) m^3 + node]. They are made now if they are not there, and stay.
  [[nodiscard]] HostVector<double> const& all() const;
  /// The same of some lattices, which are filled again where they are not there.
  [[nodiscard]] HostVector<double> of(std::int64_t first, std::int64_t count) const;
  /// Places the node of an unknown on rims, in all of its copies. `layout`: as in the constructor. Threads may place different
  /// ones.
  void place(LatticeLayout const& layout, std::int64_t unknown, std::array<double, 3> const& x);

  /// The first node of a cell, in steps of p nodes; how many entries later its y and, again, its z are; and which steps lead to the
  /// next node in y and in z: those of the whole lattice (0), or of a side in direction `steps` - 1.
  struct FirstNode {
    double const* x;
    std::int64_t to_next_direction;
    std::size_t steps;
  };
  [[nodiscard]] FirstNode first_node(std::int64_t lattice, std::array<std::int64_t, 3> const& cell) const;
  /// Entries from a node to the next one in y, and in z.
  struct Steps {
    std::int64_t y, z;
  };
  [[nodiscard]] static Steps steps_of(std::int64_t m, int order, std::size_t steps);
  /// Where a node is. For a few nodes inside their lattices are filled again; where more are asked for, all are, and stay.
  [[nodiscard]] std::array<double, 3> point(std::int64_t lattice, std::int64_t node) const;
  /// The least and the largest coordinates of nodes on rims, as those of a mesh are on its boundary. Precondition: !has_all() when
  /// it was made.
  struct Extremes {
    std::array<double, 3> low, high;
  };
  [[nodiscard]] Extremes const& extremes() const { return extremes_; }

private:
  /// Where the nodes of the cells at side `face` of a lattice begin in sides_, p + 1 layers; -1: they are not kept.
  [[nodiscard]] std::int64_t side(std::int64_t lattice, std::size_t face) const {
    std::int32_t const number = side_number_[static_cast<std::size_t>(6 * lattice) + face];
    return number < 0 ? -1 : number * 3 * of_side();
  }
  [[nodiscard]] std::int64_t of_side() const { return (order_ + 1) * m_ * m_; }
  [[nodiscard]] std::int64_t of_lattice() const { return 3 * m_ * m_ * m_; }
  void take_faces(std::int64_t first, HostVector<double> const& faces);
  void fill_sides();

  mutable HostVector<double> all_;
  mutable std::atomic<bool> has_all_{false};
  mutable std::mutex mutex_;
  mutable std::atomic<int> asked_{0};  ///< nodes that point() did not find
  std::int64_t m_ = 0;
  int order_ = 1;
  // Where not all are in memory:
  LatticeLayout layout_;
  std::vector<double> parameters_;
  HostVector<double> on_rims_;             ///< of unknowns on rims, 3 coordinates each
  std::vector<std::int32_t> sides_kept_;   ///< 6 lattice + face, ascending
  std::vector<std::int32_t> side_number_;  ///< by 6 lattice + face: its number among them, or -1
  HostVector<double> sides_;               ///< [(3 number + direction) of_side() + node]
  Extremes extremes_{};
};

}  // namespace poisson::assembly
