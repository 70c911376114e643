#include "assembly/space/void_cells.hpp"
#include "assembly/dealii/sources.hpp"
#include "assembly/dealii/triangulation_cells.hpp"
#include "gpu/core/error.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <deal.II/base/point.h>
#include <deal.II/grid/manifold_lib.h>
#include <deal.II/grid/tria.h>
#include <deal.II/grid/tria_description.h>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace poisson::assembly {
namespace {

/// Manifolds are those of the old triangulation. The transfinite ones interpolate between others, so they come last.
void copy_manifolds(dealii::Triangulation<3> const& from, dealii::Triangulation<3>& to) {
  using Transfinite = dealii::TransfiniteInterpolationManifold<3>;
  auto const each = [&](bool transfinite) {
    for (auto const id : from.get_manifold_ids()) {
      if (id == dealii::numbers::flat_manifold_id)
        continue;
      dealii::Manifold<3> const& manifold = from.get_manifold(id);
      if ((dynamic_cast<Transfinite const*>(&manifold) != nullptr) != transfinite)
        continue;
      if (!transfinite) {
        to.set_manifold(id, manifold);
        continue;
      }
      Transfinite renewed;
      renewed.initialize(to);
      to.set_manifold(id, renewed);
    }
  };
  each(false);
  each(true);
}

/// Numbers the vertices that cells have anew, in their order, and returns them.
std::vector<dealii::Point<3>> keep_used_vertices(MeshCells const& all, std::vector<dealii::CellData<3>>& cells,
                                                 dealii::SubCellData& parts) {
  constexpr unsigned unused = 0xffffffffU;
  std::vector<unsigned> number(static_cast<std::size_t>(all.n_vertices()), unused);
  for (auto const& cell : cells)
    for (unsigned const v : cell.vertices)
      number[v] = 0;
  std::vector<dealii::Point<3>> result;
  for (std::size_t v = 0; v < number.size(); ++v)
    if (number[v] != unused) {
      number[v] = static_cast<unsigned>(result.size());
      Point3 const x = all.vertex(static_cast<unsigned>(v));
      result.emplace_back(x[0], x[1], x[2]);
    }
  auto const renumber = [&](auto& of) {
    for (auto& part : of)
      for (unsigned& v : part.vertices)
        v = number[v];
  };
  renumber(cells);
  renumber(parts.boundary_quads);
  renumber(parts.boundary_lines);
  return result;
}

/// Makes a triangulation of what is left of one, and returns the ids of surfaces inside of the mesh that are now on its boundary.
std::set<unsigned> keep_cells(Mesh& mesh, TriangulationCells const& all, VoidCells const& found) {
  using dealii::numbers::internal_face_boundary_id;
  std::vector<dealii::CellData<3>> cells;
  dealii::SubCellData parts;
  CurvedCells curved;
  std::set<std::array<unsigned, 2>> lines;
  std::set<unsigned> exposed;
  mesh.inner_faces.clear();
  for (std::int64_t cell = 0; cell < all.size(); ++cell) {
    if (found.of(cell) != VoidCells::stays)
      continue;
    dealii::CellData<3>& kept = cells.emplace_back();
    std::array<unsigned, 8> const vertices = all.vertices(cell);
    kept.vertices.assign(vertices.begin(), vertices.end());
    kept.material_id = all.material(cell);
    kept.manifold_id = all.manifold(cell);
    if (mesh.curved_cells) {
      auto const nodes = mesh.curved_cells->of_cell(static_cast<std::size_t>(cell));
      curved.nodes.insert(curved.nodes.end(), nodes.begin(), nodes.end());
    }
    for (unsigned f = 0; f < 6; ++f) {
      MeshCells::Neighbor const neighbor = all.neighbor(cell, f);
      bool const outside = neighbor.cell < 0;
      std::uint16_t const beyond = outside ? VoidCells::stays : found.of(neighbor.cell);
      bool const at_boundary = outside || beyond != VoidCells::stays;
      bool const is_first = at_boundary || cell < neighbor.cell;  // of the two cells that have the face
      // A surface inside of the mesh keeps its id, also where it bounds what is left.
      std::optional<unsigned> const inner = outside ? std::nullopt : all.inner_id(cell, f, neighbor);
      if (inner && !at_boundary && is_first)
        mesh.inner_faces.push_back({static_cast<int>(cells.size()) - 1, static_cast<int>(f), *inner});
      dealii::types::manifold_id const manifold = all.manifold_of_face(cell, f);
      if (!is_first || (!at_boundary && manifold == dealii::numbers::flat_manifold_id))
        continue;
      dealii::CellData<2>& quad = parts.boundary_quads.emplace_back();
      for (unsigned v = 0; v < 4; ++v)
        quad.vertices[v] = vertices[dealii::GeometryInfo<3>::face_to_cell_vertices(f, v)];
      quad.manifold_id = manifold;
      quad.boundary_id = !at_boundary ? internal_face_boundary_id
                         : outside    ? all.boundary_id(cell, f)
                         : inner      ? *inner
                                      : found.first_id + beyond - 1;
      if (inner && at_boundary)
        exposed.insert(*inner);
    }
    for (dealii::CellData<1>& line : all.curved_lines(cell))
      if (lines.insert({line.vertices[0], line.vertices[1]}).second) {
        line.boundary_id = internal_face_boundary_id;
        parts.boundary_lines.push_back(std::move(line));
      }
  }

  std::vector<dealii::Point<3>> const vertices = keep_used_vertices(all, cells, parts);
  auto renewed = std::make_unique<dealii::Triangulation<3>>();
  renewed->create_triangulation(vertices, cells, parts);
  copy_manifolds(*mesh.triangulation, *renewed);
  mesh.triangulation = std::move(renewed);
  if (mesh.curved_cells)
    mesh.curved_cells->nodes = std::move(curved.nodes);
  return exposed;
}

}  // namespace

void take_out_void(Mesh& mesh, MeshSpec const& spec, ExpressionNames const& names) {
  std::unique_ptr<TriangulationCells const> const all = cells_of_triangulation(mesh);
  VoidCells const found = find_void_cells(mesh, *all, spec, names);
  std::int64_t const n_left = std::count(found.surface.begin(), found.surface.end(), VoidCells::stays);
  check_memory(4 * all->n_vertices() + n_left * bytes_per_created_cell, "the mesh");
  std::set<unsigned> const materials = all->materials();
  std::set<unsigned> const exposed = keep_cells(mesh, *all, found);
  mesh.box.reset();
  describe(mesh);
  std::set<unsigned> inside;
  for (Mesh::InnerFace const& face : mesh.inner_faces)
    inside.insert(face.id);
  name_what_is_left(mesh, found, materials, exposed, inside);
}

void triangulate(Mesh& mesh) {
  if (!mesh.box_cells)
    return;
  BoxCells const& left = *mesh.box_cells;
  auto const n = std::ssize(left.numbers);
  std::unique_ptr<MeshCells const> const all = cells_of_box(left.box, nullptr);
  check_memory(4 * all->n_vertices() + n * bytes_per_created_cell, "the mesh");
  std::vector<dealii::CellData<3>> cells(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < cells.size(); ++i) {
    std::array<unsigned, 8> const vertices = all->vertices(left.numbers[i]);
    cells[i].vertices.assign(vertices.begin(), vertices.end());
    cells[i].material_id = left.materials[i];
  }
  dealii::SubCellData parts;
  for (BoundaryFace const& face : left.boundary_faces) {
    dealii::CellData<2>& quad = parts.boundary_quads.emplace_back();
    auto const& of_cell = cells[static_cast<std::size_t>(face.cell)].vertices;
    for (unsigned v = 0; v < 4; ++v)
      quad.vertices[v] = of_cell[dealii::GeometryInfo<3>::face_to_cell_vertices(static_cast<unsigned>(face.face), v)];
    quad.boundary_id = face.boundary_id;
  }
  std::vector<dealii::Point<3>> const vertices = keep_used_vertices(*all, cells, parts);
  mesh.triangulation = std::make_unique<dealii::Triangulation<3>>();
  mesh.triangulation->create_triangulation(vertices, cells, parts);
  mesh.box_cells.reset();
}

}  // namespace poisson::assembly
