#include "assembly/mesh/lattice_mesh.hpp"

#include "gpu/core/error.hpp"
#include "tests/assembly/lattice_oracle.hpp"
#include "tests/source_dir.hpp"

#include <cstdlib>
#include <deal.II/grid/grid_generator.h>
#include <deal.II/grid/manifold_lib.h>
#include <filesystem>
#include <set>

namespace poisson::assembly {
namespace {

namespace fs = std::filesystem;
using dealii::Point;

/// All refinements and orders for which the mesh has about 100000 nodes at most.
void expect_all(MeshSpec spec, int most_refinements = 2) {
  SCOPED_TRACE(spec.generator + " " + spec.arguments + spec.file);
  int cases = 0;
  for (int refinements = 0; refinements <= most_refinements; ++refinements) {
    spec.refinements = refinements;
    Mesh const coarse = make_coarse_mesh(spec), refined = make_mesh(spec);
    for (int order = 1; order <= 3; ++order)
      if (static_cast<std::int64_t>(refined.triangulation->n_active_cells()) * order * order * order <= 100000) {
        test::expect_as_dealii(coarse, refined, refinements, order);
        ++cases;
      }
  }
  EXPECT_GE(cases, 3);
}

MeshSpec generator_spec(std::string const& generator, std::string const& arguments = "") {
  MeshSpec spec;
  spec.generator = generator;
  spec.arguments = arguments;
  return spec;
}

TEST(LatticeMesh, EveryGeneratorIsRefinedAsByDealii) {
  auto const names = generator_names();
  EXPECT_GE(names.size(), 30u);
  for (std::string const& name : names)
    if (name != "box")
      expect_all(generator_spec(name));
}

TEST(LatticeMesh, VariantsOfGenerators) {
  expect_all(generator_spec("hyper_ball", "1,2,3 : 2 : true"), 3);
  expect_all(generator_spec("hyper_shell", "0,0,0 : 1 : 2 : 12 : true"));
  expect_all(generator_spec("hyper_shell", "100,0,0 : 1 : 2"), 3);
  expect_all(generator_spec("torus", "2 : 0.5 : 4 : 3.141592653589793"));
  expect_all(generator_spec("pipe_junction", "2,0,0 : 1; 0,2,0 : 1; 0,0,2 : 1 : 0,0,0 : 1 : 0.5"));
  expect_all(generator_spec("hyper_cross", "1,1,1,1,1,1 : true"));
  expect_all(generator_spec("enclosed_hyper_cube", "0 : 1 : 1 : true"));
  expect_all(generator_spec("hyper_cube_slit", "0 : 2 : true"), 3);
  expect_all(generator_spec("general_cell", "0,0,0; 2,0,0.2; 0,1,0; 2,1,0; 0,0.3,1; 2,0,1; 0.1,1,1; 2.5,1.5,1.2 : true"), 3);
  expect_all(generator_spec("simplex", "0,0,0; 1,0,0; 0,1,0; 0,0,1"), 3);
  for (int rotations = 0; rotations < 5; ++rotations)
    expect_all(generator_spec("moebius", "5 : " + std::to_string(rotations) + " : 2 : 0.5"));
  for (int flags = 0; flags < 16; ++flags) {
    auto const flag = [&](int bit) { return flags >> bit & 1 ? std::string("true") : std::string("false"); };
    expect_all(generator_spec("non_standard_orientation_mesh", flag(0) + " : " + flag(1) + " : " + flag(2) + " : " + flag(3)));
  }
}

TEST(LatticeMesh, Files) {
  for (auto const& file : project_meshes()) {
    MeshSpec spec;
    spec.file = file.string();
    expect_all(spec);
  }
}

TEST(LatticeMesh, RealFiles) {
  char const* const root = std::getenv("POISSON_REAL_DATA");
  if (!root)
    GTEST_SKIP() << "POISSON_REAL_DATA is not set";
  for (char const* const name : {"sphere_r6.msh", "grid_in_msh_01.3da.v41.msh", "3d_test_abaqus.inp",
                                 "3d_test_cube_two_materials.inp", "grid_in_vtk_3d_04.vtk"}) {
    MeshSpec spec;
    spec.file = (fs::path(root) / "meshes" / name).string();
    expect_all(spec);
  }
}

/// The 24 ways to number the vertices of a hexahedron without turning it inside out.
std::vector<std::array<unsigned, 8>> rotations() {
  std::vector<std::array<unsigned, 8>> result;
  std::array<int, 3> axes{0, 1, 2};
  do {
    for (unsigned signs = 0; signs < 8; ++signs) {
      bool const odd = (axes[0] > axes[1]) != ((axes[0] > axes[2]) != (axes[1] > axes[2]));
      bool const mirrored = ((signs & 1) + (signs >> 1 & 1) + (signs >> 2 & 1)) % 2 != 0;
      if (odd != mirrored)
        continue;
      std::array<unsigned, 8> vertices{};
      for (unsigned v = 0; v < 8; ++v) {
        unsigned old = 0;
        for (int d = 0; d < 3; ++d)
          old |= ((v >> d & 1) ^ (signs >> d & 1)) << axes[d];
        vertices[v] = old;
      }
      result.push_back(vertices);
    }
  } while (std::next_permutation(axes.begin(), axes.end()));
  return result;
}

/// Two cells side by side in x, each with its vertices in any order.
Mesh two_cells(std::array<unsigned, 8> const& left, std::array<unsigned, 8> const& right, bool curved) {
  std::vector<Point<3>> vertices;
  for (unsigned v = 0; v < 12; ++v)
    vertices.emplace_back(0.9 * (v % 3) + 0.03 * (v == 4), v / 3 % 2 + 0.05 * (v == 7), 1.1 * (v / 6) + 0.04 * (v == 1));
  std::vector<dealii::CellData<3>> cells(2);
  for (unsigned v = 0; v < 8; ++v) {
    auto const vertex = [](unsigned corner, unsigned shift) {
      return (corner & 1) + shift + 3 * (corner >> 1 & 1) + 6 * (corner >> 2);
    };
    cells[0].vertices[v] = vertex(left[v], 0);
    cells[1].vertices[v] = vertex(right[v], 1);
  }
  cells[1].material_id = 7;
  Mesh mesh;
  mesh.triangulation = std::make_unique<dealii::Triangulation<3>>();
  mesh.triangulation->create_triangulation(vertices, cells, dealii::SubCellData());
  for (auto const& cell : mesh.triangulation->active_cell_iterators())
    for (unsigned const f : cell->face_indices())
      if (cell->at_boundary(f))
        cell->face(f)->set_boundary_id(f + 6 * cell->index());
  if (curved) {
    mesh.curved = true;
    mesh.triangulation->set_all_manifold_ids(3);
    mesh.triangulation->set_manifold(3, dealii::SphericalManifold<3>(Point<3>(-2, 0.4, 0.3)));
  }
  return mesh;
}

TEST(LatticeMesh, TwoCellsInAllOrientations) {
  auto const all = rotations();
  ASSERT_EQ(all.size(), 24u);
  std::set<int> orientations;
  std::set<bool> reversed;
  for (auto const& left : {all[0], all[11]})
    for (auto const& right : all)
      for (bool const curved : {false, true}) {
        Mesh const coarse = two_cells(left, right, curved), refined = two_cells(left, right, curved);
        for (int refinements = 0; refinements <= 2; ++refinements) {
          if (refinements > 0)
            refined.triangulation->refine_global(1);
          for (int order = 1; order <= 3; ++order)
            test::expect_as_dealii(coarse, refined, refinements, order);
        }
        LatticeTopology const topology(coarse);
        for (auto const& lattice : topology.lattices)
          for (int f = 0; f < 6; ++f)
            if (lattice.boundary_ids[f] == LatticeTopology::no_boundary) {
              orientations.insert(lattice.orientations[f]);
              reversed.insert(lattice.reversed_edges != 0);
            }
      }
  EXPECT_EQ(orientations.size(), 8u);
  EXPECT_EQ(reversed.size(), 2u);
}

TEST(LatticeMesh, OrientationsAreInvertible) {
  for (FaceOrientation orientation = 0; orientation < 8; ++orientation) {
    std::set<std::array<std::int64_t, 2>> images;
    for (std::int64_t u = 0; u <= 3; ++u)
      for (std::int64_t v = 0; v <= 3; ++v) {
        auto const own = to_own(orientation, u, v, 3);
        EXPECT_EQ(from_own(orientation, own[0], own[1], 3), (std::array{u, v}));
        images.insert(own);
      }
    EXPECT_EQ(images.size(), 16u);
  }
}

/// One curved cell, face or edge among straight ones; flat manifolds with and without a period.
TEST(LatticeMesh, ManifoldsOfSomeEntitiesOnly) {
  auto const make = [](int which) {
    Mesh mesh;
    mesh.triangulation = std::make_unique<dealii::Triangulation<3>>();
    mesh.curved = which < 3;
    dealii::GridGenerator::subdivided_hyper_cube(*mesh.triangulation, 2);
    auto const cell = mesh.triangulation->begin_active();
    if (which == 0)
      cell->set_manifold_id(1);
    else if (which == 1)
      cell->face(1)->set_manifold_id(1);
    else if (which == 2)
      cell->line(5)->set_manifold_id(1);
    else
      mesh.triangulation->set_all_manifold_ids(1);
    if (which < 3)
      mesh.triangulation->set_manifold(1, dealii::SphericalManifold<3>(Point<3>(-1, 0.2, 0.3)));
    else
      mesh.triangulation->set_manifold(1, dealii::FlatManifold<3>(dealii::Tensor<1, 3>({0, which == 3 ? 4. : 0., 0})));
    return mesh;
  };
  for (int which = 0; which < 5; ++which) {
    SCOPED_TRACE(which);
    Mesh const coarse = make(which), refined = make(which);
    for (int refinements = 0; refinements <= 2; ++refinements) {
      if (refinements > 0)
        refined.triangulation->refine_global(1);
      for (int order = 1; order <= 4; ++order)
        test::expect_as_dealii(coarse, refined, refinements, order);
    }
  }
}

/// Its lines are not halved by get_new_point.
struct Crooked : dealii::Manifold<3> {
  std::unique_ptr<dealii::Manifold<3>> clone() const override { return std::make_unique<Crooked>(); }
  Point<3> get_new_point_on_line(dealii::Triangulation<3>::line_iterator const& line) const override {
    return line->vertex(0) + 0.4 * (line->vertex(1) - line->vertex(0));
  }
};

TEST(LatticeMesh, WhatCannotBeDoneIsSaid) {
  std::vector<double> const nodes{0, 1};
  Mesh refined = make_mesh(generator_spec("hyper_L"));
  refined.triangulation->refine_global(1);
  EXPECT_NE(LatticeMesh(refined, 1, nodes).obstacle.find("refined cells"), std::string::npos);
  Mesh crooked = make_mesh(generator_spec("hyper_L"));
  crooked.triangulation->set_all_manifold_ids(5);
  crooked.triangulation->set_manifold(5, Crooked());
  EXPECT_NE(LatticeMesh(crooked, 1, nodes).obstacle.find("manifold 5"), std::string::npos);
  Mesh const fine = make_mesh(generator_spec("hyper_L"));
  EXPECT_THROW(LatticeMesh(fine, 13, nodes), EnvironmentError);  // 158 TB
}

}  // namespace
}  // namespace poisson::assembly
