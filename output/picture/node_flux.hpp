#pragma once

#include "output/picture/flux_data.hpp"
#include "output/picture/surface.hpp"

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace poisson::output {

/// The flux at the nodes of some cells: the mean over all cells of the mesh around a node that have the material of the cell, since
/// the flux along an interface jumps from material to material. In every cell it is that of the cell's polynomials. Memory: of the
/// size of `cells`, and a bit for every point.
class NodeFlux {
public:
  /// `cells` ascend. Mesh and data must outlive this. Of a `part` of a mesh it is collective, and the means are those of the whole.
  NodeFlux(Mesh const& mesh, FluxData const& data, std::span<std::int64_t const> cells, PicturePart const* part = nullptr);
  /// Three components, for these cells only. Precondition: this outlives it.
  [[nodiscard]] CellField field() const;
  /// Bytes that an object takes at most while it is made, and then.
  struct Bytes {
    std::int64_t making, kept;
  };
  [[nodiscard]] static Bytes bytes(std::int64_t n_cells, int order, std::int64_t n_points);

private:
  using Key = std::pair<std::int64_t, int>;  ///< node and material

  [[nodiscard]] int material(std::int64_t cell) const {
    return data_.material.empty() ? 0 : data_.material[static_cast<std::size_t>(cell)];
  }
  /// Writes 3 * nodes_per_cell values, as CellField::get; `nodes` are those of the cell.
  void flux_in_cell(std::int64_t cell, std::span<std::int64_t const> nodes, std::vector<double>& out) const;
  /// Asks for u at the nodes of these cells, where it is not there.
  void fetch(std::vector<std::vector<std::int64_t>> const& cells);
  [[nodiscard]] double u(std::int64_t node) const;

  Mesh const& mesh_;
  FluxData data_;
  std::vector<std::uint64_t> is_fetched_;     ///< a bit for each node whose u was asked for
  std::vector<std::int64_t> fetched_before_;  ///< how many of them are before a word of these bits
  std::vector<double> u_fetched_;             ///< u there
  std::vector<double> derivative_;            ///< (order + 1) x (order + 1): of the Lagrange polynomials at the nodes
  std::vector<Key> keys_;                     ///< ascending
  std::vector<Vec3> flux_;                    ///< of each key
};

}  // namespace poisson::output
