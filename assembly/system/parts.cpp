#include "assembly/system/parts.hpp"

#include "assembly/parallel.hpp"
#include "assembly/system/integrals.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

namespace poisson::assembly {
namespace {

constexpr std::int64_t faces_of_part = 256;
using Parts = std::map<unsigned, MeshPart>;

/// Adds up what pieces of the mesh have found, in their order.
Parts sum_of(std::vector<Parts> const& pieces) {
  Parts sum;
  for (Parts const& piece : pieces)
    for (auto const& [id, part] : piece) {
      MeshPart& total = sum[id];
      total.count += part.count;
      total.size += part.size;
      total.extent.add(part.extent);
    }
  return sum;
}

/// One cell after the other.
struct PlacedCell {
  explicit PlacedCell(Space const& of) : space(of), geometry(of), dofs(of.n_local) {}
  void reset(std::int64_t cell) {
    space.dofs(cell, dofs.data());
    geometry.reset(cell, dofs.data());
  }
  [[nodiscard]] std::array<double, 9> cofactors_at(PointTables const& map, std::size_t q) const {
    return cofactors(jacobian(map, q));
  }
  [[nodiscard]] std::array<double, 9> jacobian(PointTables const& map, std::size_t q) const {
    return geometry.jacobian(map.gradients.data() + 3 * q * static_cast<std::size_t>(geometry.n_nodes()));
  }
  Space const& space;
  CellGeometry geometry;
  std::vector<std::int32_t> dofs;
};

}  // namespace

MeshParts mesh_parts(Space const& space, ReferenceElement const& element) {
  auto const& map_nodes = geometry_nodes_1d(space, element);
  std::array<PointTables, 6> face_maps;
  std::array<std::vector<int>, 6> face_nodes;
  for (int face = 0; face < 6; ++face) {
    face_maps[face] = tabulate(map_nodes, element.face_points[face]);
    face_nodes[face] = element.face_nodes(face);
  }
  auto const make_cell = [&] { return PlacedCell(space); };
  auto const add_face = [&](PlacedCell& cell, std::int64_t c, int face, MeshPart& of_id) {
    cell.reset(c);
    ++of_id.count;
    for (std::size_t q = 0; q < element.face_weights.size(); ++q) {
      auto const j = cell.cofactors_at(face_maps[face], q);
      int const d = face / 2;
      of_id.size += element.face_weights[q] * std::hypot(j[d], j[3 + d], j[6 + d]);
    }
    for (int const node : face_nodes[face])
      of_id.extent.add(space.point(cell.dofs[node]));
  };
  auto const n_faces = static_cast<std::int64_t>(space.boundary_faces.size());
  std::vector<Parts> of_faces(n_parts(n_faces, faces_of_part));
  parallel_for(static_cast<std::int64_t>(of_faces.size()), make_cell, [&](PlacedCell& cell, std::int64_t const p) {
    auto const [begin, end] = part(n_faces, faces_of_part, p);
    for (auto i = begin; i < end; ++i) {
      BoundaryFace const& face = space.boundary_faces[i];
      add_face(cell, face.cell, face.face, of_faces[p][face.boundary_id]);
    }
  });
  Parts surfaces;
  PlacedCell beside = make_cell();
  for (InnerFace const& face : space.inner_faces) {
    std::size_t const side = face.cells[0] >= 0 ? 0 : 1;
    add_face(beside, face.cells[side], face.faces[side], surfaces[face.id]);
  }

  PointTables const map = tabulate(map_nodes, element.volume_points);
  std::vector<Parts> of_cells(n_parts(space.n_cells, space.cells_per_part));
  parallel_for(static_cast<std::int64_t>(of_cells.size()), make_cell, [&](PlacedCell& cell, std::int64_t const p) {
    auto const [begin, end] = part(space.n_cells, space.cells_per_part, p);
    for (auto c = begin; c < end; ++c) {
      cell.reset(c);
      MeshPart& of_id = of_cells[p][space.material(c)];
      ++of_id.count;
      for (std::size_t q = 0; q < element.weights.size(); ++q) {
        double const det = determinant(cell.jacobian(map, q));
        if (!(det > 0))
          throw_inverted_cell(cell.geometry.point(map.values.data() + q * static_cast<std::size_t>(cell.geometry.n_nodes())), det);
        of_id.size += element.weights[q] * det;
      }
      for (std::int32_t const dof : cell.dofs)
        of_id.extent.add(space.point(dof));
    }
  });
  return {sum_of(of_faces), sum_of(of_cells), std::move(surfaces)};
}

std::vector<MeshPart> component_sizes(Space const& space, ReferenceElement const& element) {
  PointTables const map = tabulate(geometry_nodes_1d(space, element), element.volume_points);
  std::vector<MeshPart> parts(static_cast<std::size_t>(space.n_components));
  PlacedCell cell(space);
  for (std::int64_t c = 0; c < space.n_cells; ++c) {
    MeshPart& part = parts[static_cast<std::size_t>(space.component(c))];
    cell.reset(c);
    ++part.count;
    for (std::size_t q = 0; q < element.weights.size(); ++q)
      part.size += element.weights[q] * determinant(cell.jacobian(map, q));
  }
  return parts;
}

}  // namespace poisson::assembly
