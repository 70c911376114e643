#include "assembly/space/space.hpp"

#include "assembly/dealii/mesh.hpp"
#include "assembly/parallel.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <deal.II/dofs/dof_handler.h>
#include <deal.II/dofs/dof_tools.h>
#include <deal.II/fe/fe_q.h>
#include <deal.II/fe/fe_tools.h>
#include <deal.II/fe/mapping_q.h>
#include <deal.II/grid/cell_id.h>
#include <deal.II/lac/affine_constraints.h>
#include <map>
#include <optional>
#include <utility>

namespace poisson::assembly {
namespace {

/// Support points of a curved cell, which deal.II computes from the manifolds; it offers them to derived classes only.
struct CurvedNodes : dealii::MappingQ<3> {
  using dealii::MappingQ<3>::MappingQ;
  using dealii::MappingQ<3>::compute_mapping_support_points;
};

/// The faces of the cells on the surfaces inside the mesh, from both sides.
std::vector<BoundaryFace> inner_sides(Mesh const& mesh) {
  std::vector<BoundaryFace> sides;
  if (mesh.inner_faces.empty())
    return sides;
  dealii::Triangulation<3> const& triangulation = *mesh.triangulation;
  std::map<std::pair<unsigned, int>, unsigned> of_coarse;  // ids by cell and face
  for (Mesh::InnerFace const& face : mesh.inner_faces) {
    dealii::Triangulation<3>::cell_iterator const cell(&triangulation, 0, face.cell);
    of_coarse[{static_cast<unsigned>(face.cell), face.face}] = face.id;
    of_coarse[{static_cast<unsigned>(cell->neighbor(face.face)->index()),
               static_cast<int>(cell->neighbor_of_neighbor(face.face))}] = face.id;
  }
  std::int32_t c = 0;
  for (auto const& cell : triangulation.active_cell_iterators()) {
    dealii::CellId const id = cell->id();
    for (int face = 0; face < 6; ++face) {
      auto const found = of_coarse.find({static_cast<unsigned>(id.get_coarse_cell_id()), face});
      auto const children = id.get_child_indices();
      if (found != of_coarse.end() &&
          std::all_of(children.begin(), children.end(), [&](auto child) { return (child >> (face / 2) & 1) == face % 2; }))
        sides.push_back({c, found->second, face});
    }
    ++c;
  }
  return sides;
}

/// Points of active cells whose coarse cells have the shapes of a file: a part of the coarse cell.
class PointsOfParts {
public:
  explicit PointsOfParts(CurvedCells const& cells) : image_(cells) {}
  /// The image of a place in [0, 1]^3 of the active cell.
  [[nodiscard]] dealii::Point<3> operator()(dealii::CellId const& cell, Point3 place) {
    auto const children = cell.get_child_indices();
    for (std::size_t i = children.size(); i-- > 0;)
      for (unsigned d = 0; d < 3; ++d)
        place[d] = (place[d] + static_cast<double>(static_cast<unsigned>(children[i]) >> d & 1U)) / 2;
    return image_(cell.get_coarse_cell_id(), place);
  }

private:
  CurvedImages image_;
};

/// deal.II's constraints of hanging nodes.
Constraints hanging_nodes(dealii::DoFHandler<3> const& dof_handler) {
  Constraints result(dof_handler.n_dofs());
  if (!dof_handler.get_triangulation().has_hanging_nodes())
    return result;
  dealii::AffineConstraints<double> found;
  dealii::DoFTools::make_hanging_node_constraints(dof_handler, found);
  found.close();
  std::vector<Constraints::Entry> entries;
  for (auto const& line : found.get_lines()) {
    entries.clear();
    for (auto const& [unknown, weight] : line.entries)
      entries.push_back({static_cast<std::int32_t>(unknown), weight});
    result.set(static_cast<std::int32_t>(line.index), 0, entries);
  }
  result.close();
  return result;
}

/// What Space keeps of the active cells of a mesh that is refined locally, in their order.
LocalCells cells_of_levels(Mesh const& mesh) {
  LocalCells result;
  std::int32_t number = 0;
  for (auto const& cell : mesh.triangulation->active_cell_iterators()) {
    result.active.push_back(number);
    result.levels.push_back(static_cast<std::uint8_t>(cell->level()));
    for (int face = 0; face < 6; ++face) {
      auto const f = static_cast<unsigned>(face);
      if (cell->at_boundary(f) || cell->neighbor(face)->has_children())
        continue;
      auto const other = cell->neighbor(face);
      auto const index = static_cast<std::int32_t>(other->active_cell_index());
      if (cell->neighbor_is_coarser(f))
        result.faces.push_back({{number, index}, {face, static_cast<int>(cell->neighbor_of_coarser_neighbor(f).first)}});
      else if (number < index)
        result.faces.push_back({{number, index}, {face, static_cast<int>(cell->neighbor_of_neighbor(f))}});
    }
    ++number;
  }
  result.origins = mesh.origins;
  return result;
}

/// What the faces of the boundary miss of the surfaces of the manifolds, for which polynomials of two orders more stand: those of
/// one more would leave out what is largest where faces of even order are symmetric.
std::vector<LocalCells::SurfaceGap> gaps_of(Space const& space, ReferenceElement const& element, Mesh const& mesh) {
  unsigned const order = static_cast<unsigned>(space.order) + 2;
  ReferenceElement const rule(static_cast<int>(order));
  CurvedNodes const curved_nodes(order);
  auto const lexicographic = dealii::FETools::hierarchic_to_lexicographic_numbering<3>(order);
  std::vector<PointTables> of_mesh, of_surface;
  for (std::vector<Point3> const& points : rule.face_points) {
    of_mesh.push_back(tabulate(geometry_nodes_1d(space, element), points));
    of_surface.push_back(tabulate(rule.nodes, points));
  }
  std::vector<dealii::Triangulation<3>::active_cell_iterator> cells;
  for (auto const& cell : mesh.triangulation->active_cell_iterators())
    cells.push_back(cell);
  std::vector<LocalCells::SurfaceGap> gaps(space.boundary_faces.size());
  struct State {
    CellGeometry cell;
    std::vector<std::int32_t> dofs;
    std::vector<Point3> nodes;
  };
  auto const make_state = [&] {
    return State{CellGeometry(space), std::vector<std::int32_t>(static_cast<std::size_t>(space.n_local)),
                 std::vector<Point3>(lexicographic.size())};
  };
  constexpr std::int64_t at_once = 64;
  parallel_for(n_parts(std::ssize(gaps), at_once), make_state, [&](State& state, std::int64_t const p) {
    auto const [begin, end] = part(std::ssize(gaps), at_once, p);
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      BoundaryFace const& face = space.boundary_faces[i];
      auto const number = static_cast<std::size_t>(space.local.active[static_cast<std::size_t>(face.cell)]);
      auto const in_hierarchy = curved_nodes.compute_mapping_support_points(cells[number]);
      for (std::size_t node = 0; node < in_hierarchy.size(); ++node)
        for (unsigned d = 0; d < 3; ++d)
          state.nodes[lexicographic[node]][d] = in_hierarchy[node][d];
      space.dofs(face.cell, state.dofs.data());
      state.cell.reset(face.cell, state.dofs.data());
      PointTables const &here = of_mesh[static_cast<std::size_t>(face.face)],
                        &there = of_surface[static_cast<std::size_t>(face.face)];
      double const outwards = face.face % 2 == 0 ? -1 : 1;
      auto const normal_of = [&](std::array<double, 9> const& jacobian) {
        auto const c = cofactors(jacobian);
        auto const d = static_cast<std::size_t>(face.face / 2);
        return Point3{outwards * c[d], outwards * c[3 + d], outwards * c[6 + d]};
      };
      auto const size_of = [](Point3 const& x) { return std::hypot(x[0], x[1], x[2]); };
      for (std::size_t q = 0; q < rule.face_weights.size(); ++q) {
        std::size_t const n = state.nodes.size();
        Point3 missing{};
        std::array<double, 9> jacobian{};
        for (std::size_t a = 0; a < n; ++a)
          for (std::size_t d = 0; d < 3; ++d) {
            missing[d] += there.values[q * n + a] * state.nodes[a][d];
            for (std::size_t e = 0; e < 3; ++e)
              jacobian[3 * d + e] += there.gradients[(3 * q + e) * n + a] * state.nodes[a][d];
          }
        auto const m = static_cast<std::size_t>(state.cell.n_nodes());
        Point3 const x = state.cell.point(here.values.data() + q * m),
                     normal = normal_of(state.cell.jacobian(here.gradients.data() + 3 * q * m));
        double distance = 0;  // along the normal, times dS
        for (std::size_t d = 0; d < 3; ++d)
          distance += normal[d] * (missing[d] - x[d]);
        gaps[i].volume += rule.face_weights[q] * distance;
        gaps[i].area += rule.face_weights[q] * (size_of(normal_of(jacobian)) - size_of(normal));
      }
    }
  });
  return gaps;
}

}  // namespace

Space::Space(Mesh const& mesh, ReferenceElement const& element)
    : order(element.order),
      n_local(element.n_nodes),
      isoparametric(mesh.curved && element.order > 1),
      boundary_ids(mesh.boundary_ids),
      material_ids(mesh.material_ids) {
  dealii::Triangulation<3> const& triangulation = *mesh.triangulation;
  if (mesh.curved_cells) {
    isoparametric = true;
    map_order = mesh.curved_cells->order > order ? mesh.curved_cells->order : 0;
    map_nodes_1d_ = gauss_lobatto_points(mesh.curved_cells->order + 1);
  }
  n_cells = triangulation.n_active_cells();
  n_vertices = triangulation.n_used_vertices();
  cells_per_part = std::max<std::int64_t>(n_parts(n_cells, 512), 64);

  dealii::FE_Q<3> const fe(order);
  dealii::DoFHandler<3> dof_handler(triangulation);
  dof_handler.distribute_dofs(fe);
  n_dofs = dof_handler.n_dofs();
  auto const lexicographic = dealii::FETools::hierarchic_to_lexicographic_numbering<3>(order);

  std::vector<dealii::DoFHandler<3>::active_cell_iterator> cells;
  cells.reserve(n_cells);
  cell_dofs_.resize(n_cells * n_local);
  material_.resize(n_cells);
  std::vector<dealii::types::global_dof_index> indices(n_local);
  for (auto const& cell : dof_handler.active_cell_iterators()) {
    auto const c = static_cast<std::int64_t>(cells.size());
    cells.push_back(cell);
    cell->get_dof_indices(indices);
    for (int i = 0; i < n_local; ++i)
      cell_dofs_[c * n_local + lexicographic[i]] = static_cast<std::int32_t>(indices[i]);
    material_[c] = cell->material_id();
    if (cell->at_boundary())
      for (unsigned const face : cell->face_indices())
        if (cell->face(face)->at_boundary())
          boundary_faces.push_back({static_cast<std::int32_t>(c), cell->face(face)->boundary_id(), static_cast<int>(face)});
  }
  if (interrupt_requested())
    throw Interrupted();

  points_.resize(3 * n_dofs);
  if (map_order > 0)
    map_nodes_.resize(n_cells * map_size());
  auto const owner = owners();
  CurvedNodes const curved_nodes(order);
  std::vector<Point3> reference_nodes;
  for (int i = 0; i < n_local; ++i)
    reference_nodes.push_back(element.node(i));
  auto const trilinear = tabulate({0, 1}, reference_nodes);
  parallel_for(n_parts(n_cells, 256), [&](std::int64_t const p) {
    auto const [begin, end] = part(n_cells, 256, p);
    std::optional<PointsOfParts> parts;
    if (mesh.curved_cells)
      parts.emplace(*mesh.curved_cells);
    for (std::int64_t c = begin; c < end; ++c) {
      std::vector<dealii::Point<3>> curved;
      if (map_order > 0) {
        double* out = map_nodes_.data() + c * map_size();
        std::int64_t const n = map_size() / 3;
        std::int64_t i = 0;
        for (double const z : map_nodes_1d_)
          for (double const y : map_nodes_1d_)
            for (double const x : map_nodes_1d_) {
              auto const image = (*parts)(cells[c]->id(), {x, y, z});
              for (unsigned d = 0; d < 3; ++d)
                out[d * n + i] = image[d];
              ++i;
            }
      }
      if (isoparametric && !parts)
        curved = curved_nodes.compute_mapping_support_points(cells[c]);
      for (int i = 0; i < n_local; ++i) {
        int const l = static_cast<int>(lexicographic[i]);
        auto const dof = cell_dofs_[c * n_local + l];
        if (owner[dof] != c)
          continue;
        dealii::Point<3> x;
        if (parts)
          x = (*parts)(cells[c]->id(), reference_nodes[static_cast<std::size_t>(l)]);
        else if (i < 8)
          x = cells[c]->vertex(i);
        else if (isoparametric)
          x = curved[i];
        else
          for (unsigned v = 0; v < 8; ++v)
            x += trilinear.values[l * 8 + v] * cells[c]->vertex(v);
        for (int d = 0; d < 3; ++d)
          points_[3 * dof + d] = x[d];
      }
    }
  });
  set_inner_faces(inner_sides(mesh));
  if (mesh.is_refined_locally) {
    hanging = hanging_nodes(dof_handler);
    local = cells_of_levels(mesh);
    if (mesh.curved && !mesh.curved_cells)  // parts of polynomials meet without gaps
      place_hanging_nodes();
  }
  number_and_sort_cells();
  if (mesh.is_refined_locally && mesh.curved && !mesh.curved_cells)
    local.gaps = gaps_of(*this, element, mesh);
}

}  // namespace poisson::assembly
