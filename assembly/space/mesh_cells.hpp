#pragma once

#include "assembly/image/labels.hpp"
#include "assembly/mesh/counts.hpp"
#include "assembly/space/reference_element.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

namespace poisson::assembly {

/// The cells of a coarse mesh, by number, before some of them are taken out. Vertices and faces of a cell are in lexicographic
/// order: x fastest; -x +x -y +y -z +z.
class MeshCells {
public:
  struct Neighbor {
    std::int64_t cell = -1;  ///< -1: the face is on the boundary
    unsigned face = 0;       ///< which of its faces it is
  };

  virtual ~MeshCells() = default;
  [[nodiscard]] virtual std::int64_t size() const = 0;
  [[nodiscard]] virtual std::int64_t n_vertices() const = 0;
  [[nodiscard]] virtual Point3 vertex(unsigned number) const = 0;
  [[nodiscard]] virtual std::set<unsigned> boundary_ids() const = 0;
  [[nodiscard]] virtual std::set<unsigned> materials() const = 0;  ///< that cells have

  [[nodiscard]] virtual std::array<unsigned, 8> vertices(std::int64_t cell) const = 0;
  [[nodiscard]] virtual unsigned material(std::int64_t cell) const = 0;
  [[nodiscard]] virtual double volume(std::int64_t cell) const = 0;
  /// The point at a place in [0, 1]^3.
  [[nodiscard]] virtual Point3 at(std::int64_t cell, Point3 const& place) const = 0;
  [[nodiscard]] virtual Neighbor neighbor(std::int64_t cell, unsigned face) const = 0;
  /// Precondition: the face has no neighbour.
  [[nodiscard]] virtual unsigned boundary_id(std::int64_t cell, unsigned face) const = 0;

  /// Whether several threads may ask at a time.
  [[nodiscard]] virtual bool is_for_threads() const { return false; }
  /// The parts that the cells with mark 0 make: cells that share a vertex are of one. The part of each, from 0 on in the order of
  /// their first cells; -1: it has another mark.
  [[nodiscard]] virtual std::vector<std::int32_t> parts(std::span<std::uint16_t const> marks) const;

  /// Surfaces inside the mesh: their ids, and that of a face, whose neighbour is given; nothing where it belongs to none.
  [[nodiscard]] virtual std::set<unsigned> inner_ids() const { return {}; }
  [[nodiscard]] virtual std::optional<unsigned> inner_id(std::int64_t /*cell*/, unsigned /*face*/,
                                                         Neighbor const& /*neighbor*/) const {
    return std::nullopt;
  }
};

/// Those of a box, without a triangulation: that of all voxels of an image takes far more time and memory than what is left of it.
/// `labels`: the materials, or null, where all are 0. Cells and vertices have x fastest. The result refers to the labels.
[[nodiscard]] std::unique_ptr<MeshCells> cells_of_box(BoxGrid const& box, LabelImage const* labels);

}  // namespace poisson::assembly
