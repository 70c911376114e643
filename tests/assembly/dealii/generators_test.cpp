#include "assembly/dealii/mesh.hpp"
#include "gpu/core/error.hpp"

#include <cmath>
#include <deal.II/grid/grid_tools.h>
#include <deal.II/grid/tria_accessor.h>
#include <deal.II/grid/tria_iterator.h>
#include <gtest/gtest.h>
#include <numbers>

namespace poisson::assembly {
namespace {

MeshSpec spec_of(std::string const& generator, std::string const& arguments = "", int refinements = 0) {
  MeshSpec spec;
  spec.generator = generator;
  spec.arguments = arguments;
  spec.refinements = refinements;
  return spec;
}

InputError error_of(MeshSpec const& spec) {
  try {
    static_cast<void>(make_mesh(spec));
  } catch (InputError const& error) {
    return error;
  }
  ADD_FAILURE() << "accepted: " << spec.generator << " \"" << spec.arguments << "\"";
  return InputError("");
}

double smallest_volume(Mesh const& mesh) {
  double smallest = INFINITY;
  for (auto const& cell : mesh.triangulation->active_cell_iterators())
    smallest = std::min(smallest, cell->measure());
  return smallest;
}

void expect_counts(MeshCounts const& counts, dealii::Triangulation<3> const& triangulation) {
  EXPECT_EQ(counts.cells, triangulation.n_active_cells());
  EXPECT_EQ(counts.faces, triangulation.n_active_faces());
  EXPECT_EQ(counts.edges, triangulation.n_active_lines());
  EXPECT_EQ(counts.vertices, triangulation.n_used_vertices());
  std::int64_t boundary_faces = 0;
  for (auto const& face : triangulation.active_face_iterators())
    boundary_faces += face->at_boundary();
  EXPECT_EQ(counts.boundary_faces, boundary_faces);
}

TEST(MeshGenerators, EachBuildsWithItsDefaultsAndRefines) {
  std::vector<std::string> const names = generator_names();
  EXPECT_EQ(names.front(), "box");
  EXPECT_GE(names.size(), 30u);
  for (std::string const& name : names) {
    SCOPED_TRACE(name);
    MeshSpec spec = spec_of(name, "", 1);
    spec.cells = {2, 2, 2};
    Mesh const coarse = make_coarse_mesh(spec);
    EXPECT_GT(smallest_volume(coarse), 0);
    MeshCounts const counts = predict_counts(spec);
    Mesh const mesh = make_mesh(spec);
    EXPECT_EQ(mesh.triangulation->n_active_cells(), 8 * coarse.triangulation->n_active_cells());
    EXPECT_GT(smallest_volume(mesh), 0);
    expect_counts(counts, *mesh.triangulation);
    EXPECT_EQ(counts.boundary_ids, mesh.boundary_ids);
    EXPECT_EQ(counts.material_ids, mesh.material_ids);
    EXPECT_FALSE(mesh.boundary_ids.empty());
    EXPECT_FALSE(mesh.material_ids.empty());
    EXPECT_FALSE(mesh.triangulation->has_hanging_nodes());
  }
}

struct Sample {
  char const* name;
  char const* arguments;
  std::size_t cells;
  double volume;  ///< of the exact domain when it is curved; reached as the mesh is refined
  std::set<unsigned> boundary_ids;
};

TEST(MeshGenerators, VolumesAndIdsOfKnownDomains) {
  double const pi = std::numbers::pi;
  // In 3D hyper_cube_slit is half as thick in z as it is wide.
  std::vector<Sample> const flat{
      {"hyper_cube", "-1 : 2 : true", 1, 27, {0, 1, 2, 3, 4, 5}},
      {"hyper_cube", "-1 : 2", 1, 27, {0}},
      {"subdivided_hyper_cube", "3", 27, 1, {0}},
      {"hyper_rectangle", "1, 2, 4 : 0, 0, 0 : true", 1, 8, {0, 1, 2, 3, 4, 5}},
      {"subdivided_hyper_rectangle", "2, 3, 4 : 0,0,0 : 1,2,3 : true", 24, 6, {0, 1, 2, 3, 4, 5}},
      {"subdivided_hyper_rectangle", "0.25, 0.75; 1, 1; 1, 1, 1 : 0,0,0 : 1,2,3 : true", 12, 6, {0, 1, 2, 3, 4, 5}},
      {"cheese", "1, 2, 3", 3 * 5 * 7 - 6, 3 * 5 * 7 - 6, {0}},
      {"general_cell", "0,0,0; 2,0,0; 0,1,0; 2,1,0; 0,0,1; 2,0,1; 0,1,1; 2,1,1 : true", 1, 2, {0, 1, 2, 3, 4, 5}},
      {"parallelepiped", "1,0,0; 1,1,0; 0,0,2 : true", 1, 2, {0, 1, 2, 3, 4, 5}},
      {"subdivided_parallelepiped", "2, 1, 3 : 1,0,0; 1,1,0; 0,0,2 : true", 6, 2, {0, 1, 2, 3, 4, 5}},
      {"subdivided_parallelepiped", "2 : 1,0,0; 1,1,0; 0,0,2", 8, 2, {0}},
      {"enclosed_hyper_cube", "0 : 1 : 0.5", 27, 8, {0}},
      {"non_standard_orientation_mesh", "true : true : true : true", 2, 2, {0}},
      {"hyper_cross", "1, 0, 2, 0, 0, 3", 7, 7, {0}},
      {"hyper_L", "", 7, 7, {0}},
      {"subdivided_hyper_L", "4,4,4 : 0,0,0 : 4,4,4 : 1,-2,3", 58, 58, {0}},
      {"hyper_cube_slit", "0 : 2 : true", 4, 4, {0, 1, 2}},
      {"simplex", "0,0,0; 1,0,0; 0,1,0; 0,0,1", 4, 1. / 6, {0}},
  };
  for (Sample const& sample : flat) {
    SCOPED_TRACE(std::string(sample.name) + " " + sample.arguments);
    Mesh const mesh = make_mesh(spec_of(sample.name, sample.arguments));
    EXPECT_EQ(mesh.triangulation->n_active_cells(), sample.cells);
    EXPECT_NEAR(dealii::GridTools::volume(*mesh.triangulation), sample.volume, 1e-12 * sample.volume);
    EXPECT_EQ(mesh.boundary_ids, sample.boundary_ids);
    EXPECT_FALSE(mesh.curved);
    EXPECT_FALSE(mesh.box.has_value());
  }
  double const channel = 0.41 * (2.2 * 0.41 - pi * 0.05 * 0.05);
  std::vector<Sample> const curved{
      {"hyper_ball", "1,2,3 : 2", 7, 32 * pi / 3, {0}},
      {"hyper_ball", "1,2,3 : 2 : true", 7, 32 * pi / 3, {0}},
      {"hyper_ball_balanced", "", 32, 4 * pi / 3, {0}},
      {"quarter_hyper_ball", "", 4, pi / 6, {0, 1}},
      {"half_hyper_ball", "", 6, 2 * pi / 3, {0, 1}},
      {"cylinder", "1 : 2", 10, 4 * pi, {0, 1, 2}},
      {"subdivided_cylinder", "3 : 1 : 2", 15, 4 * pi, {0, 1, 2}},
      {"truncated_cone", "2 : 1 : 1.5", 0, pi * (4 + 2 + 1), {0, 1, 2}},
      {"hyper_shell", "0,0,0 : 1 : 2 : 12 : true", 12, 28 * pi / 3, {0, 1}},
      {"hyper_shell", "0,0,0 : 1 : 2", 6, 28 * pi / 3, {0}},
      {"eccentric_hyper_shell", "0.2,0,0 : 0,0,0 : 1 : 2 : 12", 12, 28 * pi / 3, {0, 1}},
      {"half_hyper_shell", "0,0,0 : 1 : 2 : 0 : true", 5, 14 * pi / 3, {0, 1, 2}},
      {"quarter_hyper_shell", "0,0,0 : 1 : 2 : 0 : true", 3, 7 * pi / 6, {0, 1, 2, 3, 4}},
      {"cylinder_shell", "2 : 0.5 : 1 : 8 : 3", 24, 1.5 * pi, {0}},
      {"torus", "2 : 0.5", 30, pi * pi, {0}},
      {"torus", "2 : 0.5 : 4 : 3.141592653589793", 20, pi * pi / 2, {0}},
      {"plate_with_a_hole", "0.4 : 1 : 2 : 2 : 1 : 1 : 0,0,0 : 0 : 1 : 1 : 2 : true", 0, 24 - 0.16 * pi, {0, 1, 2, 3, 4, 5, 6}},
      {"channel_with_cylinder", "0.03 : 2 : 2.0 : true", 0, channel, {0, 1, 2, 3}},
      {"hyper_cube_with_cylindrical_hole", "0.25 : 0.5 : 2 : 2 : true", 0, 2 * (1 - pi / 16), {0, 1, 2, 3, 4, 5, 6}},
      {"concentric_hyper_shells", "0,0,0 : 1 : 2 : 3 : 0 : 12 : true", 36, 28 * pi / 3, {0, 1}},
  };
  for (Sample const& sample : curved) {
    SCOPED_TRACE(std::string(sample.name) + " " + sample.arguments);
    Mesh const coarse = make_mesh(spec_of(sample.name, sample.arguments, 1));
    Mesh const fine = make_mesh(spec_of(sample.name, sample.arguments, 2));
    if (sample.cells > 0) {
      EXPECT_EQ(coarse.triangulation->n_active_cells(), 8 * sample.cells);
    }
    double const error_coarse = std::abs(dealii::GridTools::volume(*coarse.triangulation) - sample.volume);
    double const error_fine = std::abs(dealii::GridTools::volume(*fine.triangulation) - sample.volume);
    EXPECT_GT(error_coarse / error_fine, 3);  // second order: the manifold of the generator is kept
    EXPECT_LT(error_fine, 0.07 * sample.volume);
    EXPECT_EQ(fine.boundary_ids, sample.boundary_ids);
    EXPECT_TRUE(fine.curved);
  }
}

TEST(MeshGenerators, PipesAndLoops) {
  Mesh const corner = make_mesh(spec_of("pipe_junction", "2,0,0 : 1; 0,2,0 : 1; 0,0,2 : 1 : 0,0,0 : 1 : 0.5", 1));
  EXPECT_EQ(corner.boundary_ids, (std::set<unsigned>{0, 1, 2, 3}));
  EXPECT_EQ(corner.material_ids, (std::set<unsigned>{0, 1, 2}));
  EXPECT_TRUE(corner.curved);
  for (int rotations = 0; rotations < 5; ++rotations)
    EXPECT_EQ(make_mesh(spec_of("moebius", "20 : " + std::to_string(rotations) + " : 2 : 0.5")).triangulation->n_active_cells(),
              20u);
  Mesh const cross = make_mesh(spec_of("hyper_cross", "1,1,1,1,1,1 : true"));
  EXPECT_EQ(cross.material_ids, (std::set<unsigned>{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_GT(make_mesh(spec_of("enclosed_hyper_cube", "0 : 1 : 1 : true")).material_ids.size(), 20u);
}

TEST(MeshGenerators, UnknownNames) {
  InputError const typo = error_of(spec_of("hyper_bal"));
  EXPECT_EQ(typo.key(), "problem.mesh.generator");
  EXPECT_NE(std::string(typo.what()).find("did you mean 'hyper_ball'"), std::string::npos) << typo.what();
  EXPECT_NE(std::string(typo.what()).find("cheese"), std::string::npos);
  InputError const nothing = error_of(spec_of("qqqqqqqqqqqqqqqq"));
  EXPECT_EQ(std::string(nothing.what()).find("did you mean"), std::string::npos);
  InputError const surface = error_of(spec_of("hyper_sphere"));
  EXPECT_EQ(surface.key(), "problem.mesh.generator");
  EXPECT_NE(std::string(surface.what()).find("surface"), std::string::npos);
  EXPECT_EQ(error_of(spec_of("")).key(), "problem.mesh.generator");
  EXPECT_EQ(error_of(spec_of("box", "1 : 2")).key(), "problem.mesh.arguments");
}

TEST(MeshGenerators, WrongArgumentsNameTheSignature) {
  InputError const error = error_of(spec_of("hyper_shell", "0,0,0 : 1 : 0.5"));
  EXPECT_EQ(error.key(), "problem.mesh.arguments");
  std::string const message = error.what();
  EXPECT_NE(message.find("inner_radius < outer_radius"), std::string::npos) << message;
  EXPECT_NE(message.find("center (x, y, z; default \"0, 0, 0\")"), std::string::npos) << message;
  std::vector<std::pair<char const*, char const*>> const wrong{
      {"hyper_cube", "1 : 0"},
      {"hyper_cube", "a"},
      {"hyper_cube", "0 : 1 : maybe"},
      {"hyper_cube", "0 : 1 : true : 4"},
      {"hyper_cube", "0 : "},
      {"hyper_cube", "nan : 1"},
      {"hyper_cube", "0 : inf"},
      {"hyper_cube", "0 : 1e200"},
      {"subdivided_hyper_cube", "0"},
      {"subdivided_hyper_cube", "-3"},
      {"subdivided_hyper_cube", "2.5"},
      {"subdivided_hyper_cube", "4000000000"},
      {"subdivided_hyper_cube", "99999999999"},
      {"hyper_rectangle", "0,0,0 : 1,1,0"},
      {"hyper_rectangle", "0,0 : 1,1"},
      {"subdivided_hyper_rectangle", "2,2"},
      {"subdivided_hyper_rectangle", "2,0,2"},
      {"subdivided_hyper_rectangle", "1,1; 1; 1 : 0,0,0 : 1,1,1"},
      {"subdivided_hyper_rectangle", "1;1 : 0,0,0 : 1,1,1"},
      {"cheese", "1,1"},
      {"cheese", "0,1,1"},
      {"plate_with_a_hole", "1 : 1"},
      {"plate_with_a_hole", "0.4 : 1 : -1"},
      {"plate_with_a_hole", "0.4 : 1 : 0 : 0 : 0 : 0"},
      {"plate_with_a_hole", "0.4 : 1 : 1e30"},
      {"channel_with_cylinder", "0.2"},
      {"channel_with_cylinder", "-1"},
      {"general_cell", "0,0,0; 1,1,1"},
      {"general_cell", "0,0,0; 2,0,0; 0,1,0; 2,1,0; 0,0,-1; 2,0,-1; 0,1,-1; 2,1,-1"},
      {"parallelepiped", "1,0,0; 0,1,0; 1,1,0"},
      {"parallelepiped", "0,1,0; 1,0,0; 0,0,1"},
      {"subdivided_parallelepiped", "1,2 : 1,0,0; 0,1,0; 0,0,1"},
      {"enclosed_hyper_cube", "0 : 1 : 0"},
      {"hyper_ball", "0,0,0 : 0"},
      {"hyper_ball", "0,0,0 : -1"},
      {"hyper_ball_balanced", "0,0,0 : -1"},
      {"quarter_hyper_ball", "0,0,0 : -1"},
      {"half_hyper_ball", "0,0,0 : -1"},
      {"cylinder", "1 : 0"},
      {"cylinder", "-1"},
      {"subdivided_cylinder", "0"},
      {"truncated_cone", "1 : 0"},
      {"truncated_cone", "1e-30 : 1e-30 : 1e30"},
      {"pipe_junction", "2,0,0 : 1"},
      {"pipe_junction", "2,0,0 : 1; 0,2,0 : 1; 0,0,2 : -1"},
      {"pipe_junction", "1,0,0 : 1; 2,0,0 : 1; 3,0,0 : 1"},
      {"hyper_cross", "1,1"},
      {"hyper_cross", "1,1,1,1,1,4294967295"},
      {"hyper_L", "1 : 0"},
      {"hyper_L", "0 : 1 : true"},
      {"subdivided_hyper_L", "2,2,2 : 0,0,0 : 1,1,1 : 2,2,2"},
      {"subdivided_hyper_L", "2,2,2 : 0,0,0 : 1,1,1 : 3,1,1"},
      {"subdivided_hyper_L", "2,2,2 : 0,0,0 : 1,1,1 : -2147483648,1,1"},
      {"hyper_cube_slit", "1 : 1"},
      {"hyper_shell", "0,0,0 : 0 : 1"},
      {"hyper_shell", "0,0,0 : 1 : 2 : 7"},
      {"hyper_shell", "0,0,0 : 1 : 2 : 4000000000"},
      {"eccentric_hyper_shell", "2,0,0"},
      {"half_hyper_shell", "0,0,0 : 1 : 2 : 3"},
      {"quarter_hyper_shell", "0,0,0 : 1 : 2 : 4"},
      {"cylinder_shell", "-1"},
      {"cylinder_shell", "1 : 1 : 1.0000000000000002"},
      {"cylinder_shell", "1e12 : 1 : 2"},
      {"cylinder_shell", "1 : 1 : 2 : 2"},
      {"torus", "1 : 1"},
      {"torus", "2 : 1 : 2"},
      {"torus", "2 : 1 : 6 : 7"},
      {"torus", "2 : 1 : 6 : 0"},
      {"torus", "2 : 1 : 1 : 6"},
      {"hyper_cube_with_cylindrical_hole", "0.5 : 0.5"},
      {"hyper_cube_with_cylindrical_hole", "0.25 : 0.5 : 1 : 0"},
      {"concentric_hyper_shells", "0,0,0 : 1 : 2 : 0"},
      {"concentric_hyper_shells", "0,0,0 : 1 : 2 : 1 : -1"},
      {"concentric_hyper_shells", "0,0,0 : 1 : 2 : 1 : 1 : 13"},
      {"moebius", "4"},
      {"moebius", "16 : 1 : 1 : 1"},
      {"simplex", "0,0,0; 1,0,0; 0,1,0"},
      {"simplex", "0,0,0; 1,0,0; 0,1,0; 1,1,0"}};
  for (auto const& [name, arguments] : wrong) {
    InputError const found = error_of(spec_of(name, arguments));
    EXPECT_EQ(found.key(), "problem.mesh.arguments") << name << " \"" << arguments << "\": " << found.what();
  }
}

}  // namespace
}  // namespace poisson::assembly
