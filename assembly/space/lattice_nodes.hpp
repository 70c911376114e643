#pragma once

#include "assembly/mesh/coarse_mesh.hpp"
#include "gpu/core/host_vector.hpp"
#include "gpu/core/lattice_layout.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>

namespace poisson::assembly {

/// Makes the coordinates of all nodes of `count` lattices from `first` on: [(3 lattice + direction) m^3 + node]. `room`: any
/// vector, whose memory it takes if that suffices: fresh memory costs more time than the coordinates that are written there.
using MakeLatticeNodes = std::function<HostVector<double>(std::int64_t first, std::int64_t count, HostVector<double> room)>;

/// Where the nodes of lattices are. Either all of them are in memory; or, where nobody is expected to ask for those inside, only
/// the nodes of the cells on rims, and lattices are made again as they are needed. All copies of a node have the same bits. Threads
/// may use it side by side.
class LatticeNodes {
public:
  /// All of them, of lattices of m nodes a side, with elements of order p.
  LatticeNodes(HostVector<double> all, std::int64_t m, int order) : all_(std::move(all)), has_all_(true), m_(m), order_(order) {}
  /// Keeps the nodes of the cells on rims: 24 (p + 1) m^2 bytes for each of the six sides of a lattice, and 24 for each unknown on
  /// rims. Copies of a node that `make` makes may differ in their last digits: the first one, by place on rims, tells where it is.
  /// `layout`: with lists of copies, two cells a side or more, and not all_on_rim. `give`: gets all nodes, unless it is null.
  /// Throws what `make` throws, Interrupted.
  LatticeNodes(LatticeLayout const& layout, MakeLatticeNodes make, TakeLatticeNodes const& give = {});

  /// Bytes that the second constructor keeps, and those of the lattices that are made at once.
  [[nodiscard]] static std::int64_t bytes_on_rims(LatticeLayout const& layout);
  [[nodiscard]] static std::int64_t bytes_at_once(LatticeLayout const& layout);
  [[nodiscard]] static std::int64_t lattices_at_once(LatticeLayout const& layout);

  [[nodiscard]] bool has_all() const { return has_all_.load(std::memory_order_acquire); }
  /// All nodes: [(3 lattice + direction) m^3 + node]. They are made now if they are not there, and stay.
  [[nodiscard]] HostVector<double> const& all() const;
  /// For those who place nodes. Precondition: has_all().
  [[nodiscard]] double* change() { return all_.data(); }
  /// The same of some lattices, which are made again where they are not there.
  [[nodiscard]] HostVector<double> of(std::int64_t first, std::int64_t count) const;

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
  /// Where a node is. For a few nodes inside their lattices are made again; where more are asked for, all are, and stay.
  [[nodiscard]] std::array<double, 3> point(std::int64_t lattice, std::int64_t node) const;
  /// The least and the largest coordinates. Precondition: !has_all() when it was made.
  struct Extremes {
    std::array<double, 3> low, high;
  };
  [[nodiscard]] Extremes const& extremes() const { return extremes_; }

private:
  /// Nodes of the cells at side `face` of a lattice: p + 1 layers.
  [[nodiscard]] double const* side(std::int64_t lattice, std::size_t face) const {
    return sides_.data() + (lattice * 6 + static_cast<std::int64_t>(face)) * 3 * of_side();
  }
  [[nodiscard]] std::int64_t of_side() const { return (order_ + 1) * m_ * m_; }
  [[nodiscard]] std::int64_t of_lattice() const { return 3 * m_ * m_ * m_; }
  void take(LatticeLayout const& layout, std::int64_t first, HostVector<double>& made);
  void put_rims(std::int64_t first, HostVector<double>& made) const;

  mutable HostVector<double> all_;
  mutable std::atomic<bool> has_all_{false};
  mutable std::mutex mutex_;
  mutable std::atomic<int> asked_{0};  ///< nodes that point() did not find
  // Where not all are in memory:
  MakeLatticeNodes make_;
  std::int64_t n_lattices_ = 0, m_ = 0, cells_ = 0, n_inner_ = 0, at_once_ = 1;
  int order_ = 1;
  HostVector<std::int32_t> rim_unknowns_;
  HostVector<double> on_rims_;  ///< of unknowns on rims, 3 coordinates each
  HostVector<double> sides_;    ///< [((6 lattice + face) 3 + direction) of_side() + node]
  Extremes extremes_{};
};

}  // namespace poisson::assembly
