#include "assembly/dealii/mesh.hpp"
#include "assembly/dealii/mesh_cells.hpp"
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
  Mesh const mesh = make_coarse_mesh(box_with({{"notch", "x > 2 && y > 3 && z > 3", true},
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
    auto const right = cells_of_triangulation(mesh), cells = cells_of_box(*mesh.box, labels.get());
    ASSERT_EQ(cells->size(), right->size());
    ASSERT_EQ(cells->n_vertices(), right->n_vertices());
    EXPECT_EQ(cells->boundary_ids(), right->boundary_ids());
    EXPECT_EQ(cells->materials(), right->materials());
    for (unsigned v = 0; v < 60; ++v)
      EXPECT_LT(cells->vertex(v).distance(right->vertex(v)), 1e-14) << v;
    for (std::int64_t cell = 0; cell < cells->size(); ++cell) {
      SCOPED_TRACE(cell);
      EXPECT_EQ(cells->vertices(cell), right->vertices(cell));
      EXPECT_EQ(cells->material(cell), right->material(cell));
      EXPECT_NEAR(cells->volume(cell), right->volume(cell), 1e-14);
      dealii::Point<3> const place(0.25, 0.5, 0.75);
      EXPECT_LT(cells->at(cell, place).distance(right->at(cell, place)), 1e-14);
      for (unsigned f = 0; f < 6; ++f) {
        MeshCells::Neighbor const found = cells->neighbor(cell, f), expected = right->neighbor(cell, f);
        EXPECT_EQ(found.cell, expected.cell) << f;
        EXPECT_EQ(found.face, expected.face) << f;
        if (found.cell < 0) {
          EXPECT_EQ(cells->boundary_id(cell, f), right->boundary_id(cell, f)) << f;
        }
      }
    }
  }
}

TEST(Void, ALaterRegionGivesCellsBackAndNamesOfACoefficientAreOneSurface) {
  MeshSpec spec = box_with({{"low", "z < 2", false}, {"high", "z > 3", false}, {"chip", "z > 3 && x > 3", false}});
  spec.void_names = {"high"};
  Mesh const mesh = make_coarse_mesh(spec);
  EXPECT_EQ(mesh.triangulation->n_active_cells(), 48u + 4);
  EXPECT_EQ(mesh.boundary_groups.with_name("void_surface"), (std::set<unsigned>{6}));
  EXPECT_EQ(faces_by_id(mesh).at(6), 12 + 4);
  EXPECT_EQ(faces_by_id(mesh).at(5), 4);
}

TEST(Void, WhatIsCutIsTold) {
  Mesh const mesh = make_coarse_mesh(box_with({{"air", "z > 2.4", true}}));
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
