#include "assembly/dealii/triangulation_cells.hpp"

#include <deal.II/base/point.h>
#include <deal.II/grid/tria_accessor.h>
#include <deal.II/grid/tria_iterator.h>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace poisson::assembly {
namespace {

class CellsOfTriangulation final : public TriangulationCells {
public:
  explicit CellsOfTriangulation(Mesh const& mesh) : triangulation_(*mesh.triangulation) {
    cells_.reserve(triangulation_.n_active_cells());
    for (auto const& cell : triangulation_.active_cell_iterators())
      cells_.push_back(cell);
    if (mesh.curved_cells)
      image_.emplace(*mesh.curved_cells);
    for (Mesh::InnerFace const& face : mesh.inner_faces)
      inner_ids_[{face.cell, static_cast<unsigned>(face.face)}] = face.id;
  }

  std::int64_t size() const override { return std::ssize(cells_); }
  std::int64_t n_vertices() const override { return triangulation_.n_vertices(); }
  Point3 vertex(unsigned number) const override { return to_point(triangulation_.get_vertices()[number]); }
  std::set<unsigned> boundary_ids() const override {
    auto const ids = triangulation_.get_boundary_ids();
    return {ids.begin(), ids.end()};
  }
  std::set<unsigned> materials() const override {
    std::set<unsigned> result;
    for (auto const& cell : cells_)
      result.insert(cell->material_id());
    return result;
  }

  std::array<unsigned, 8> vertices(std::int64_t cell) const override {
    std::array<unsigned, 8> result{};
    for (unsigned v = 0; v < 8; ++v)
      result[v] = of(cell)->vertex_index(v);
    return result;
  }
  unsigned material(std::int64_t cell) const override { return of(cell)->material_id(); }
  double volume(std::int64_t cell) const override { return of(cell)->measure(); }
  Point3 at(std::int64_t cell, Point3 const& place) const override {
    if (image_)
      return to_point((*image_)(static_cast<std::size_t>(cell), place));
    dealii::Point<3> x;
    for (unsigned v = 0; v < 8; ++v)
      x += of(cell)->vertex(v) * dealii::GeometryInfo<3>::d_linear_shape_function({place[0], place[1], place[2]}, v);
    return to_point(x);
  }
  Neighbor neighbor(std::int64_t cell, unsigned face) const override {
    if (of(cell)->face(face)->at_boundary())
      return {};
    return {of(cell)->neighbor(face)->active_cell_index(), of(cell)->neighbor_of_neighbor(face)};
  }
  unsigned boundary_id(std::int64_t cell, unsigned face) const override { return of(cell)->face(face)->boundary_id(); }

  std::set<unsigned> inner_ids() const override {
    std::set<unsigned> result;
    for (auto const& [face, id] : inner_ids_)
      result.insert(id);
    return result;
  }
  std::optional<unsigned> inner_id(std::int64_t cell, unsigned face, Neighbor const& neighbor) const override {
    if (inner_ids_.empty())
      return std::nullopt;
    auto const known = inner_ids_.find(cell < neighbor.cell ? std::pair(cell, face) : std::pair(neighbor.cell, neighbor.face));
    return known == inner_ids_.end() ? std::nullopt : std::optional(known->second);
  }

  dealii::types::manifold_id manifold(std::int64_t cell) const override { return of(cell)->manifold_id(); }
  dealii::types::manifold_id manifold_of_face(std::int64_t cell, unsigned face) const override {
    return of(cell)->face(face)->manifold_id();
  }
  std::vector<dealii::CellData<1>> curved_lines(std::int64_t cell) const override {
    std::vector<dealii::CellData<1>> result;
    for (unsigned const l : of(cell)->line_indices()) {
      auto const line = of(cell)->line(l);
      if (line->manifold_id() == dealii::numbers::flat_manifold_id)
        continue;
      dealii::CellData<1>& curved = result.emplace_back();
      curved.vertices = {line->vertex_index(0), line->vertex_index(1)};
      curved.manifold_id = line->manifold_id();
    }
    return result;
  }

private:
  [[nodiscard]] static Point3 to_point(dealii::Point<3> const& x) { return {x[0], x[1], x[2]}; }
  [[nodiscard]] dealii::Triangulation<3>::active_cell_iterator const& of(std::int64_t cell) const {
    return cells_[static_cast<std::size_t>(cell)];
  }

  dealii::Triangulation<3> const& triangulation_;
  std::vector<dealii::Triangulation<3>::active_cell_iterator> cells_;
  std::map<std::pair<std::int64_t, unsigned>, unsigned> inner_ids_;  ///< by the cell with the lower number, and its face
  mutable std::optional<CurvedImages> image_;                        // which keeps the cell that it was asked about last
};

}  // namespace

std::unique_ptr<TriangulationCells> cells_of_triangulation(Mesh const& mesh) {
  return std::make_unique<CellsOfTriangulation>(mesh);
}

}  // namespace poisson::assembly
