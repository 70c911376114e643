#include "assembly/dealii/mesh.hpp"

#include "assembly/dealii/sources.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"

#include <algorithm>
#include <cmath>
#include <deal.II/base/exceptions.h>
#include <deal.II/grid/grid_generator.h>
#include <deal.II/grid/manifold.h>
#include <deal.II/grid/tria_accessor.h>
#include <deal.II/grid/tria_iterator.h>
#include <limits>
#include <sstream>

namespace poisson::assembly {
namespace {

void refine(dealii::Triangulation<3>& triangulation, int times_to_refine) {
  for (int r = 0; r < times_to_refine; ++r) {
    if (interrupt_requested())
      throw Interrupted();
    triangulation.refine_global(1);
  }
}

/// `flat`: on one level.
std::unique_ptr<dealii::Triangulation<3>> build_box(BoxGrid const& box, bool flat) {
  auto triangulation = std::make_unique<dealii::Triangulation<3>>();
  std::vector<unsigned> cells(box.cells.begin(), box.cells.end());
  int refinements = 0;
  bool const equal_cells = box.has_equal_cells();
  // Refining is three times as fast as making all cells at once and needs three quarters of the memory.
  while (!flat && equal_cells && cells[0] % 2 == 0 && cells[1] % 2 == 0 && cells[2] % 2 == 0) {
    for (unsigned& n : cells)
      n /= 2;
    ++refinements;
  }
  dealii::Point<3> low, high;
  for (unsigned d = 0; d < 3; ++d) {
    low[d] = box.origin[d];
    high[d] = box.origin[d] + box.extent[d];
  }
  if (equal_cells) {
    dealii::GridGenerator::subdivided_hyper_rectangle(*triangulation, cells, low, high);
  } else {
    std::vector<std::vector<double>> edges(3);
    for (unsigned d = 0; d < 3; ++d) {
      std::vector<double> const& x = box.coordinates[d];
      for (unsigned i = 0; i < cells[d]; ++i)
        edges[d].push_back(x.empty() ? box.extent[d] / cells[d] : x[i + 1] - x[i]);
    }
    dealii::GridGenerator::subdivided_hyper_rectangle(*triangulation, edges, low, high);
  }
  // A face of an axis-aligned cell lies on the side of the box that its number names; edges need no ids.
  for (auto const& cell : triangulation->active_cell_iterators())
    for (unsigned const f : cell->face_indices())
      if (cell->at_boundary(f))
        cell->face(f)->set_boundary_id(f);
  refine(*triangulation, refinements);
  return triangulation;
}

/// Gives the cells of a box, made in one step, the labels of an image.
void set_materials(dealii::Triangulation<3>& box, LabelImage const& image) {
  std::int64_t voxel = 0;  // such cells are numbered as voxels are
  for (auto const& cell : box.active_cell_iterators())
    cell->set_material_id(image.label(voxel++));
}

/// Runs what calls deal.II; anything unexpected that it throws becomes an error of ours.
template <class Action>
auto guarded(char const* key, Action&& action) {
  try {
    return action();
  } catch (InputError const&) {
    throw;
  } catch (EnvironmentError const&) {
    throw;
  } catch (Interrupted const&) {
    throw;
  } catch (std::bad_alloc const&) {
    throw EnvironmentError("memory ran out while the mesh was built; use fewer cells or refinements");
  } catch (std::exception const& exception) {
    throw InputError(key, "the mesh could not be built: " + brief_message(exception));
  }
}

/// Counts the edges and faces that are those of some active cell: beside a hanging node these are the larger and the smaller ones,
/// which all have unknowns.
void count_entities_of_cells(dealii::Triangulation<3> const& triangulation, MeshCounts& counts) {
  std::vector<bool> lines(triangulation.n_raw_lines()), faces(triangulation.n_raw_quads());
  for (auto const& cell : triangulation.active_cell_iterators()) {
    for (unsigned const l : cell->line_indices())
      lines[cell->line_index(l)] = true;
    for (unsigned const f : cell->face_indices())
      faces[static_cast<std::size_t>(cell->face_index(static_cast<int>(f)))] = true;
  }
  counts.edges = std::count(lines.begin(), lines.end(), true);
  counts.faces = std::count(faces.begin(), faces.end(), true);
}

/// Of a mesh that has a triangulation.
void count_cells(Mesh const& mesh, MeshCounts& counts) {
  dealii::Triangulation<3> const& triangulation = *mesh.triangulation;
  counts.cells = triangulation.n_active_cells();
  counts.faces = triangulation.n_active_faces();
  counts.edges = triangulation.n_active_lines();
  counts.vertices = triangulation.n_used_vertices();
  if (triangulation.has_hanging_nodes())
    count_entities_of_cells(triangulation, counts);
  for (auto const& face : triangulation.active_face_iterators())
    if (face->at_boundary()) {
      ++counts.boundary_faces;
      ++counts.faces_with_id[face->boundary_id()];
    }
  counts.low.fill(std::numeric_limits<double>::infinity());
  counts.high.fill(-std::numeric_limits<double>::infinity());
  auto const add = [&](dealii::Point<3> const& x) {
    for (unsigned d = 0; d < 3; ++d) {
      counts.low[d] = std::min(counts.low[d], x[d]);
      counts.high[d] = std::max(counts.high[d], x[d]);
    }
  };
  for (std::size_t v = 0; v < triangulation.get_vertices().size(); ++v)
    if (triangulation.get_used_vertices()[v])
      add(triangulation.get_vertices()[v]);
  if (mesh.curved_cells)
    for (dealii::Point<3> const& node : mesh.curved_cells->nodes)
      add(node);
  counts.shape_order = mesh.curved_cells ? mesh.curved_cells->order : 1;
  counts.curved = mesh.curved;
  counts.triangulation_bytes = counts.cells * bytes_per_created_cell;
}

}  // namespace

void describe(Mesh& mesh) {
  mesh.curved = mesh.curved_cells.has_value();
  mesh.boundary_ids.clear();
  mesh.material_ids.clear();
  dealii::Triangulation<3> const& triangulation = *mesh.triangulation;
  for (unsigned const id : triangulation.get_boundary_ids())
    mesh.boundary_ids.insert(id);
  for (auto const& cell : triangulation.active_cell_iterators())
    if (mesh.material_ids.empty() || *mesh.material_ids.rbegin() != cell->material_id())
      mesh.material_ids.insert(cell->material_id());
  for (auto const id : triangulation.get_manifold_ids())
    if (id != dealii::numbers::flat_manifold_id)
      mesh.curved = mesh.curved || dynamic_cast<dealii::FlatManifold<3> const*>(&triangulation.get_manifold(id)) == nullptr;
}

MeshCounts count(Mesh const& coarse) {
  MeshCounts counts;
  static_cast<MeshNames&>(counts) = coarse;
  if (coarse.box_cells)
    count_cells(*coarse.box_cells, counts);
  else
    count_cells(coarse, counts);
  for (Mesh::InnerFace const& face : coarse.inner_faces)
    ++counts.inner_faces_with_id[face.id];
  return counts;
}

CellShape cell_shape(std::span<dealii::Point<3> const, 8> vertices) {
  auto const determinant = [](dealii::Tensor<1, 3> const& a, dealii::Tensor<1, 3> const& b, dealii::Tensor<1, 3> const& c) {
    return a[0] * (b[1] * c[2] - b[2] * c[1]) + a[1] * (b[2] * c[0] - b[0] * c[2]) + a[2] * (b[0] * c[1] - b[1] * c[0]);
  };
  // Lengths in units of the cell's size, so that no product of three can vanish or overflow.
  double size = 0;
  for (auto const& vertex : vertices)
    size = std::max(
        {size, std::abs(vertex[0] - vertices[0][0]), std::abs(vertex[1] - vertices[0][1]), std::abs(vertex[2] - vertices[0][2])});
  if (!(size > 0) || !std::isfinite(size))
    return CellShape::degenerate;
  dealii::Tensor<1, 3> mean[3];
  bool inverted = false;
  for (unsigned v = 0; v < 8; ++v) {
    dealii::Tensor<1, 3> edge[3];
    for (unsigned d = 0; d < 3; ++d) {
      edge[d] = (vertices[v | (1u << d)] - vertices[v & ~(1u << d)]) / size;
      mean[d] += edge[d] / 8.;
    }
    // At a vertex a determinant of zero is allowed: a cell may have a straight angle there.
    double const volume = determinant(edge[0], edge[1], edge[2]);
    inverted = inverted || !(volume >= -1e-10 * edge[0].norm() * edge[1].norm() * edge[2].norm());
  }
  double const scale = mean[0].norm() * mean[1].norm() * mean[2].norm();
  double const centre = determinant(mean[0], mean[1], mean[2]);
  if (std::abs(centre) <= 1e-12 * scale)
    return CellShape::degenerate;
  return inverted || centre < 0 ? CellShape::inverted : CellShape::good;
}

std::string to_text(dealii::Point<3> const& point) {
  std::ostringstream text;
  text << '(' << point[0] << ", " << point[1] << ", " << point[2] << ')';
  return text.str();
}

std::string brief_message(std::exception const& exception) {
  std::ostringstream full;
  if (auto const* const dealii_exception = dynamic_cast<dealii::ExceptionBase const*>(&exception))
    dealii_exception->print_info(full);
  else
    full << exception.what();
  std::istringstream words(full.str());
  std::string text, word;
  while (words >> word && text.size() < 400)
    text += (text.empty() ? "" : " ") + word;
  return text;
}

Mesh make_coarse_mesh(MeshSpec const& spec, ExpressionNames const& names) {
  check_refinements(spec);
  Mesh mesh;
  return guarded(source_key(spec), [&] {
    bool const is_of_box = spec.file.empty() && spec.generator == "box";
    if (is_of_box && spec.has_void()) {
      mesh.box_cells = take_out_of_box(spec, names, mesh);
      return std::move(mesh);
    }
    if (is_of_box) {
      MeshSpec unrefined = spec;
      unrefined.regions.clear();
      unrefined.local.reset();
      unrefined.refinements = 0;
      MeshCounts const counts = predict_counts(unrefined);
      check_index_range(unrefined, counts, 1);
      check_memory(counts.triangulation_bytes, "the mesh");
      mesh.triangulation = build_box(*counts.box, spec.labels != nullptr || spec.local != nullptr);
      if (spec.labels != nullptr)
        set_materials(*mesh.triangulation, *spec.labels);
      static_cast<MeshNames&>(mesh) = counts;
      mesh.box = counts.box;
    } else {
      if (spec.file.empty())
        mesh.triangulation = generate_mesh(spec);
      else
        mesh = read_mesh_file(spec);
      describe(mesh);
    }
    if (spec.has_void())
      take_out_void(mesh, spec, names);
    return std::move(mesh);
  });
}

Mesh make_mesh(MeshSpec const& spec) {
  if (is_box(spec)) {
    MeshCounts const counts = predict_counts(spec);
    check_index_range(spec, counts, 1);
    // The refinements asked for are nothing else than cells, so that all levels are made in the same way.
    MeshSpec flat = spec;
    flat.cells = counts.box->cells;
    flat.coordinates = counts.box->coordinates;
    flat.growth = {1, 1, 1};
    flat.refinements = 0;
    return make_coarse_mesh(flat);
  }
  Mesh mesh = make_coarse_mesh(spec);
  refine_mesh(mesh, spec);
  return mesh;
}

void refine_mesh(Mesh& mesh, MeshSpec const& spec) {
  if (!mesh.is_refined_locally) {
    MeshCounts const counts = count(mesh).refined(spec.refinements);
    check_index_range(spec, counts, 1);
    guarded(source_key(spec), [&] { triangulate(mesh); });
    if (spec.refinements > 0) {
      check_memory(counts.triangulation_bytes, "the refined mesh");
      guarded("problem.mesh.refinements", [&] { refine(*mesh.triangulation, spec.refinements); });
    }
  }
  if (spec.local != nullptr)
    guarded("problem.mesh.adaptive", [&] { refine_locally(mesh, *spec.local); });
}

}  // namespace poisson::assembly
