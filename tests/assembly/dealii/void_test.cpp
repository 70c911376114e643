#include "assembly/dealii/mesh.hpp"
#include "assembly/dealii/triangulation_cells.hpp"
#include "assembly/space/reference_element.hpp"
#include "assembly/space/space.hpp"
#include "gpu/core/error.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <deal.II/grid/tria_accessor.h>
#include <deal.II/grid/tria_iterator.h>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace poisson::assembly {
namespace {

MeshSpec box_with(std::vector<NamedPlace> regions) {
  MeshSpec spec;
  spec.cells = {4, 4, 4};
  spec.extent = {4, 4, 4};
  spec.regions = std::move(regions);
  return spec;
}

std::map<unsigned, int> faces_by_id(Mesh const& mesh) {
  std::map<unsigned, int> count;
  for (auto const& face : mesh.triangulation->active_face_iterators())
    if (face->at_boundary())
      ++count[face->boundary_id()];
  return count;
}

TEST(Void, SurfacesHaveIdsBehindThoseOfTheBoxAndTheNamesOfTheirRegions) {
  // A hole of one cell inside, and a notch of two cells at the edge y = z = 4.
  Mesh const mesh = make_mesh(box_with({{"notch", "x > 2 && y > 3 && z > 3", true},
                                        {"iron", "z < 1", false},
                                        {"hole", "x < 2 && x > 1 && y > 1 && y < 2 && z > 1 && z < 2", true}}));
  EXPECT_EQ(mesh.triangulation->n_active_cells(), 61u);
  EXPECT_FALSE(mesh.box.has_value());
  EXPECT_EQ(mesh.void_surfaces, (std::set<unsigned>{6, 7}));
  EXPECT_EQ(mesh.boundary_groups.with_name("notch"), (std::set<unsigned>{6}));
  EXPECT_EQ(mesh.boundary_groups.with_name("hole"), (std::set<unsigned>{7}));
  EXPECT_EQ(mesh.boundary_ids, (std::set<unsigned>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(faces_by_id(mesh), (std::map<unsigned, int>{{0, 16}, {1, 15}, {2, 16}, {3, 14}, {4, 16}, {5, 14}, {6, 5}, {7, 6}}));
  EXPECT_EQ(mesh.triangulation->n_used_vertices(), 125u - 2);  // two on the edge of the box that the notch takes
}

void expect_near(Point3 const& found, Point3 const& expected) {
  for (std::size_t d = 0; d < 3; ++d)
    EXPECT_NEAR(found[d], expected[d], 1e-14);
}

// Formulas against deal.II's triangulation of the same box, in which cells and vertices have x fastest, too.
TEST(Void, CellsOfABoxAreThoseOfItsTriangulation) {
  auto labels = std::make_shared<LabelImage>();
  labels->cells = {3, 4, 2};
  labels->labels = {2, 5, 9};
  for (int i = 0; i < 24; ++i)
    labels->small.push_back(static_cast<std::uint8_t>(i * 7 % 3));
  for (bool const graded : {false, true}) {
    MeshSpec spec = box_with({});
    spec.cells = labels->cells;
    spec.origin = {-1, 0.5, 2};
    spec.extent = {3, 2, 5};
    spec.labels = labels;
    if (graded)
      spec.coordinates[0] = {-1, 0, 0.25, 2};
    Mesh const mesh = make_coarse_mesh(spec);
    auto const right = cells_of_triangulation(mesh);
    auto const cells = cells_of_box(*mesh.box, labels.get());
    ASSERT_EQ(cells->size(), right->size());
    ASSERT_EQ(cells->n_vertices(), right->n_vertices());
    EXPECT_EQ(cells->boundary_ids(), right->boundary_ids());
    EXPECT_EQ(cells->materials(), right->materials());
    for (unsigned v = 0; v < 60; ++v)
      expect_near(cells->vertex(v), right->vertex(v));
    for (std::int64_t cell = 0; cell < cells->size(); ++cell) {
      SCOPED_TRACE(cell);
      EXPECT_EQ(cells->vertices(cell), right->vertices(cell));
      EXPECT_EQ(cells->material(cell), right->material(cell));
      EXPECT_NEAR(cells->volume(cell), right->volume(cell), 1e-14);
      Point3 const place{0.25, 0.5, 0.75};
      expect_near(cells->at(cell, place), right->at(cell, place));
      for (unsigned f = 0; f < 6; ++f) {
        MeshCells::Neighbor const found = cells->neighbor(cell, f), expected = right->neighbor(cell, f);
        EXPECT_EQ(found.cell, expected.cell) << f;
        EXPECT_EQ(found.face, expected.face) << f;
        if (found.cell < 0) {
          EXPECT_EQ(cells->boundary_id(cell, f), right->boundary_id(cell, f)) << f;
        }
      }
    }
    // Parts by runs against parts by vertices, with more and more cells taken out.
    for (int of_nine = 0; of_nine <= 9; ++of_nine) {
      std::vector<std::uint16_t> marks;
      for (int i = 0; i < 24; ++i)
        marks.push_back(i * i * 5 % 11 % 9 < of_nine ? 3 : 0);
      EXPECT_EQ(cells->parts(marks), right->parts(marks)) << of_nine;
    }
  }
}

/// A cell or a face as its nodes, which are sorted, and its material or id: whatever their numbers are.
using Nodes = std::vector<Point3>;
struct Pieces {
  std::vector<std::pair<Nodes, unsigned>> cells, faces;
  std::map<std::int32_t, std::set<std::int32_t>> unknowns_of_component;
};
Pieces pieces_of(Space const& space) {
  Pieces result;
  std::vector<std::int32_t> dofs(static_cast<std::size_t>(space.n_local));
  auto const nodes = [&](auto const& unknowns) {
    Nodes found;
    for (std::int32_t const unknown : unknowns)
      found.push_back(space.point(unknown));
    return found;
  };
  for (std::int64_t cell = 0; cell < space.n_cells; ++cell) {
    space.dofs(cell, dofs.data());
    result.cells.emplace_back(nodes(dofs), space.material(cell));
    result.unknowns_of_component[space.component(cell)].insert(dofs.begin(), dofs.end());
  }
  for (BoundaryFace const& face : space.boundary_faces) {
    Nodes corners = nodes(space.face_vertices(face.cell, face.face));
    std::sort(corners.begin(), corners.end());
    result.faces.emplace_back(corners, face.boundary_id);
  }
  std::sort(result.cells.begin(), result.cells.end());
  std::sort(result.faces.begin(), result.faces.end());
  return result;
}
void expect_near(std::vector<std::pair<Nodes, unsigned>> const& found, std::vector<std::pair<Nodes, unsigned>> const& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(found[i].second, expected[i].second) << i;
    for (std::size_t v = 0; v < found[i].first.size(); ++v)
      for (std::size_t d = 0; d < 3; ++d)
        ASSERT_NEAR(found[i].first[v][d], expected[i].first[v][d], 1e-14) << i << ", node " << v;
  }
}

// Numbers by formulas against deal.II's: cells with the same nodes in the same order, faces, components, and all counts.
TEST(Void, WhatIsLeftOfABoxIsTheSameAsByATriangulation) {
  auto labels = std::make_shared<LabelImage>();
  labels->cells = {7, 5, 6};
  labels->labels = {2, 5, 9};
  for (int i = 0; i < 210; ++i)
    labels->small.push_back(static_cast<std::uint8_t>(i * i * 7 % 11 % 3));
  for (int order = 1; order <= 4; ++order)
    for (std::string const region : {"abs(x - 3) < 0.75", "x > 2 && y < 4", "(x - 3)^2 + y^2 + z^2 < 9", "z > 1 && x < 7"}) {
      SCOPED_TRACE(region + ", order " + std::to_string(order));
      MeshSpec spec = box_with({{"hole", region, true}});
      spec.cells = labels->cells;
      spec.extent = {8, 4, 8};
      if (region[0] == 'z')  // coordinates that halves are exact of, so that sorted nodes are in the same order
        spec.coordinates[0] = {0, 0.5, 1, 2, 3, 3.5, 4, 8};
      else
        spec.labels = labels;
      spec.void_ids = spec.labels != nullptr ? std::set<int>{5} : std::set<int>{};
      Mesh by_formulas = make_coarse_mesh(spec);
      Mesh const by_triangulation = make_mesh(spec);
      ASSERT_TRUE(by_formulas.box_cells && by_triangulation.triangulation != nullptr);
      EXPECT_FALSE(by_triangulation.box_cells.has_value());
      EXPECT_EQ(by_formulas.boundary_ids, by_triangulation.boundary_ids);
      EXPECT_EQ(by_formulas.material_ids, by_triangulation.material_ids);
      EXPECT_EQ(by_formulas.void_surfaces, by_triangulation.void_surfaces);
      EXPECT_EQ(by_formulas.void_materials, by_triangulation.void_materials);
      MeshCounts const counts = count(by_formulas), expected = count(by_triangulation);
      EXPECT_EQ(counts.cells, expected.cells);
      EXPECT_EQ(counts.faces, expected.faces);
      EXPECT_EQ(counts.edges, expected.edges);
      EXPECT_EQ(counts.vertices, expected.vertices);
      EXPECT_EQ(counts.boundary_faces, expected.boundary_faces);
      EXPECT_EQ(counts.faces_with_id, expected.faces_with_id);
      for (std::size_t d = 0; d < 3; ++d) {
        EXPECT_NEAR(counts.low[d], expected.low[d], 1e-14);
        EXPECT_NEAR(counts.high[d], expected.high[d], 1e-14);
      }
      ReferenceElement const element(order);
      Space const right(by_triangulation, element), space(*std::move(by_formulas.box_cells), element);
      EXPECT_EQ(space.n_dofs, counts.unknowns(order));
      EXPECT_EQ(space.n_dofs, right.n_dofs);
      EXPECT_EQ(space.n_vertices, right.n_vertices);
      EXPECT_EQ(space.boundary_ids, right.boundary_ids);
      EXPECT_EQ(space.material_ids, right.material_ids);
      Pieces const found = pieces_of(space), of_right = pieces_of(right);
      expect_near(found.cells, of_right.cells);
      expect_near(found.faces, of_right.faces);
      EXPECT_EQ(space.n_components, right.n_components);
      ASSERT_EQ(std::ssize(found.unknowns_of_component), space.n_components);
      // Components share no unknown, and are as large as the others.
      std::size_t n_unknowns = 0;
      std::multiset<std::size_t> sizes, right_sizes;
      for (auto const& [component, unknowns] : found.unknowns_of_component) {
        n_unknowns += unknowns.size();
        sizes.insert(unknowns.size());
        std::int64_t const cell = space.cell_of_component(component);
        EXPECT_EQ(space.component(cell), component);
      }
      for (auto const& [component, unknowns] : of_right.unknowns_of_component)
        right_sizes.insert(unknowns.size());
      EXPECT_EQ(n_unknowns, static_cast<std::size_t>(space.n_dofs));
      EXPECT_EQ(sizes, right_sizes);
    }
}

TEST(Void, ALaterRegionGivesCellsBackAndNamesOfACoefficientAreOneSurface) {
  MeshSpec spec = box_with({{"low", "z < 2", false}, {"high", "z > 3", false}, {"chip", "z > 3 && x > 3", false}});
  spec.void_names = {"high"};
  Mesh const mesh = make_mesh(spec);
  EXPECT_EQ(mesh.triangulation->n_active_cells(), 48u + 4);
  EXPECT_EQ(mesh.boundary_groups.with_name("void_surface"), (std::set<unsigned>{6}));
  EXPECT_EQ(faces_by_id(mesh).at(6), 12 + 4);
  EXPECT_EQ(faces_by_id(mesh).at(5), 4);
}

TEST(Void, WhatIsCutIsTold) {
  Mesh const mesh = make_mesh(box_with({{"air", "z > 2.4", true}}));
  EXPECT_EQ(mesh.triangulation->n_active_cells(), 32u);
  ASSERT_EQ(mesh.notes.size(), 1u);
  EXPECT_NE(mesh.notes[0].find("'air' cuts 16 cells"), std::string::npos) << mesh.notes[0];
}

TEST(Void, NothingTakenAndNothingLeftAreErrors) {
  auto const error_of = [](std::vector<NamedPlace> regions) -> std::string {
    try {
      static_cast<void>(make_coarse_mesh(box_with(std::move(regions))));
    } catch (InputError const& error) {
      return error.key() + ": " + error.what();
    }
    return "accepted";
  };
  EXPECT_NE(error_of({{"air", "z > 9", true}}).find("problem.mesh.regions[0].where: no cell"), std::string::npos);
  EXPECT_NE(error_of({{"air", "z > 3", true}, {"all", "1", false}}).find("later entries hold them all"), std::string::npos);
  EXPECT_NE(error_of({{"air", "1", true}}).find("nothing is left"), std::string::npos);
}

/// The centres of all cells and faces of a refined mesh, rounded, with the ids of faces.
std::map<std::array<long long, 3>, unsigned> centres(Mesh const& mesh, double size) {
  std::map<std::array<long long, 3>, unsigned> found;
  auto const add = [&](dealii::Point<3> const& x, unsigned id) {
    found[{std::llround(x[0] / size * 1e9), std::llround(x[1] / size * 1e9), std::llround(x[2] / size * 1e9)}] = id;
  };
  for (auto const& cell : mesh.triangulation->active_cell_iterators()) {
    add(cell->center(), 1000 + cell->material_id());
    for (unsigned const f : cell->face_indices())
      if (cell->at_boundary(f))
        add(cell->face(f)->center(), cell->face(f)->boundary_id());
  }
  return found;
}

/// Refined, what is left has the places, materials and boundaries that it has in the whole: manifolds are kept.
TEST(Void, WhatIsLeftOfAGeneratorsMeshIsRefinedAsInTheWhole) {
  int tried = 0;
  for (std::string const& name : generator_names()) {
    MeshSpec spec;
    spec.generator = name;
    spec.cells = {3, 3, 3};
    spec.refinements = 1;
    Mesh const whole = make_mesh(spec);
    dealii::Point<3> low = whole.triangulation->begin_active()->center(), high = low;
    for (auto const& cell : whole.triangulation->active_cell_iterators())
      for (unsigned d = 0; d < 3; ++d) {
        low[d] = std::min(low[d], cell->center()[d]);
        high[d] = std::max(high[d], cell->center()[d]);
      }
    std::string const where = "x + 0.3 * y + 0.1 * z > " + std::to_string(0.55 * (low[0] + high[0]) + 0.15 * (low[1] + high[1]) +
                                                                          0.05 * (low[2] + high[2]) + 1e-3 * (high[0] - low[0]));
    spec.regions = {{"air", where, true}};
    Mesh part;
    try {
      part = make_mesh(spec);
    } catch (InputError const& error) {  // few cells: none of them, or all
      EXPECT_TRUE(std::string(error.what()).find("no cell has") != std::string::npos ||
                  std::string(error.what()).find("nothing is left") != std::string::npos)
          << name << ": " << error.what();
      continue;
    }
    ++tried;
    double const size = high.distance(low);
    auto const all = centres(whole, size);
    for (auto const& [x, id] : centres(part, size)) {
      if (id < 1000 && part.void_surfaces.contains(id))
        continue;
      bool found = false;  // within rounding of the numbers that are compared
      for (long long i = -1; i <= 1 && !found; ++i)
        for (long long j = -1; j <= 1 && !found; ++j)
          for (long long k = -1; k <= 1 && !found; ++k) {
            auto const same = all.find({x[0] + i, x[1] + j, x[2] + k});
            found = same != all.end() && same->second == id;
          }
      ASSERT_TRUE(found) << name << ": " << static_cast<double>(x[0]) * size / 1e9 << ", " << static_cast<double>(x[1]) * size / 1e9
                         << ", " << static_cast<double>(x[2]) * size / 1e9 << ", id " << id;
    }
  }
  EXPECT_GT(tried, 20);
}

}  // namespace
}  // namespace poisson::assembly
