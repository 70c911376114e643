#include "assembly/discretization.hpp"
#include "tests/assembly/dealii/mesh_files.hpp"

#include <functional>
#include <sstream>

namespace poisson::assembly {
namespace {

using namespace test;
using Place = std::array<double, 3>;

class JoinedNodes : public MeshFiles {
protected:
  static Mesh read_kept_apart(std::string const& path) {
    MeshSpec spec;
    spec.file = path;
    spec.join = false;
    return make_mesh(spec);
  }
};

constexpr std::array<Place, 8> cube{{{0, 0, 0}, {1, 0, 0}, {1, 1, 0}, {0, 1, 0}, {0, 0, 1}, {1, 0, 1}, {1, 1, 1}, {0, 1, 1}}};

/// Cells [0, 1]^3 + shift, each with eight nodes of its own, moved by `noise` times its number in all directions.
std::vector<Place> nodes_of_cubes(std::vector<Place> const& shifts, double noise = 0) {
  std::vector<Place> nodes;
  for (std::size_t c = 0; c < shifts.size(); ++c)
    for (Place const& x : cube) {
      nodes.push_back(x);
      for (std::size_t d = 0; d < 3; ++d)
        nodes.back()[d] += shifts[c][d] + noise * static_cast<double>(c);
    }
  return nodes;
}

std::string text_of(std::vector<Place> const& nodes, bool numbered) {
  std::ostringstream text;
  text << std::setprecision(17);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (numbered)
      text << i + 1 << ' ';
    text << nodes[i][0] << ' ' << nodes[i][1] << ' ' << nodes[i][2] << '\n';
  }
  return text.str();
}
std::string cell(std::size_t c, int first) {
  std::string text;
  for (std::size_t v = 0; v < 8; ++v)
    text += ' ' + std::to_string(8 * c + v + static_cast<std::size_t>(first));
  return text;
}

std::string as_gmsh(std::vector<Place> const& nodes) {
  std::string text = "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n" + std::to_string(nodes.size()) + "\n" + text_of(nodes, true) +
                     "$EndNodes\n$Elements\n" + std::to_string(nodes.size() / 8) + "\n";
  for (std::size_t c = 0; c < nodes.size() / 8; ++c)
    text += std::to_string(c + 1) + " 5 2 1 1" + cell(c, 1) + "\n";
  return text + "$EndElements\n";
}
std::string as_ucd(std::vector<Place> const& nodes) {
  std::string text = std::to_string(nodes.size()) + " " + std::to_string(nodes.size() / 8) + " 0 0 0\n" + text_of(nodes, true);
  for (std::size_t c = 0; c < nodes.size() / 8; ++c)
    text += std::to_string(c + 1) + " 1 hex" + cell(c, 1) + "\n";
  return text;
}
std::string as_abaqus(std::vector<Place> const& nodes) {
  std::string text = "*NODE\n" + text_of(nodes, true) + "*ELEMENT, TYPE=C3D8, ELSET=all\n";
  for (std::size_t c = 0; c < nodes.size() / 8; ++c)
    text += std::to_string(c + 1) + cell(c, 1) + "\n";
  // Blanks between numbers become commas.
  std::string result;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with('*'))
      std::replace(line.begin(), line.end(), ' ', ',');
    result += line + '\n';
  }
  return result;
}
std::string as_vtk(std::vector<Place> const& nodes) {
  std::size_t const n = nodes.size() / 8;
  std::string text = "# vtk DataFile Version 3.0\ncubes\nASCII\nDATASET UNSTRUCTURED_GRID\nPOINTS " + std::to_string(nodes.size()) +
                     " double\n" + text_of(nodes, false) + "CELLS " + std::to_string(n) + " " + std::to_string(9 * n) + "\n";
  for (std::size_t c = 0; c < n; ++c)
    text += "8" + cell(c, 0) + "\n";
  text += "CELL_TYPES " + std::to_string(n) + "\n";
  for (std::size_t c = 0; c < n; ++c)
    text += "12\n";
  return text;
}
/// A piece for each cell.
std::string as_vtu(std::vector<Place> const& nodes) {
  std::string text = "<VTKFile type=\"UnstructuredGrid\" version=\"0.1\" byte_order=\"LittleEndian\"><UnstructuredGrid>\n";
  for (std::size_t c = 0; c < nodes.size() / 8; ++c)
    text += "<Piece NumberOfPoints=\"8\" NumberOfCells=\"1\"><Points><DataArray type=\"Float64\" NumberOfComponents=\"3\" "
            "format=\"ascii\">\n" +
            text_of({nodes.begin() + static_cast<std::ptrdiff_t>(8 * c), nodes.begin() + static_cast<std::ptrdiff_t>(8 * c + 8)},
                    false) +
            "</DataArray></Points><Cells><DataArray type=\"Int64\" Name=\"connectivity\" format=\"ascii\">" + cell(0, 0) +
            "</DataArray><DataArray type=\"Int64\" Name=\"offsets\" format=\"ascii\">8</DataArray><DataArray type=\"UInt8\" "
            "Name=\"types\" format=\"ascii\">12</DataArray></Cells></Piece>\n";
  return text + "</UnstructuredGrid></VTKFile>\n";
}

std::int64_t boundary_faces(Mesh const& mesh) {
  return count(mesh).boundary_faces;
}

bool says(Mesh const& mesh, std::string const& part) {
  return std::any_of(mesh.notes.begin(), mesh.notes.end(),
                     [&](std::string const& note) { return note.find(part) != std::string::npos; });
}

std::vector<Place> const two_by_two{{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {1, 1, 0}, {0, 0, 1}, {1, 0, 1}, {0, 1, 1}, {1, 1, 1}};

TEST_F(JoinedNodes, CellsWithNodesOfTheirOwnAreOneMeshInEveryFormat) {
  auto const nodes = nodes_of_cubes(two_by_two, 1e-12);
  for (std::string const& path : {write("a.msh", as_gmsh(nodes)), write("b.inp", as_ucd(nodes)), write("c.inp", as_abaqus(nodes)),
                                  write("d.vtk", as_vtk(nodes)), write("e.vtu", as_vtu(nodes))}) {
    Mesh const mesh = read(path);
    EXPECT_EQ(mesh.triangulation->n_used_vertices(), 27u) << path;
    EXPECT_EQ(boundary_faces(mesh), 24) << path;
    EXPECT_TRUE(says(mesh, path + "': 37 nodes coincide with others and were joined")) << path;
    EXPECT_FALSE(says(mesh, "parts")) << path;
    Mesh const apart = read_kept_apart(path);
    EXPECT_EQ(boundary_faces(apart), 48) << path;
    EXPECT_TRUE(says(apart, "8 parts that have no node in common, of 1, 1, 1, 1, 1, ... cells")) << path;
    EXPECT_FALSE(says(apart, "joined")) << path;
  }
}

TEST_F(JoinedNodes, WhatIsFurtherApartStaysApart) {
  Mesh const mesh = read(write("a.msh", as_gmsh(nodes_of_cubes({{0, 0, 0}, {1, 0, 0}}, 1e-8))));
  EXPECT_EQ(boundary_faces(mesh), 12);
  EXPECT_TRUE(says(mesh, "2 parts that have no node in common, of 1 and 1 cells"));
  // Far from the origin coordinates are rounded more than that.
  Mesh const far = read(write("b.msh", as_gmsh(nodes_of_cubes({{1e8, 0, 0}, {1e8 + 1, 0, 0}}, 1.5e-8))));
  EXPECT_EQ(boundary_faces(far), 10);
  // A mesh that is whole has nothing to say.
  EXPECT_TRUE(read(write("c.msh", as_gmsh(nodes_of_cubes({{0, 0, 0}})))).notes.empty());
}

TEST_F(JoinedNodes, OneConditionFixesAllThatIsJoined) {
  ProblemSpec spec;
  spec.mesh.file = write("two.vtu", as_vtu(nodes_of_cubes({{0, 0, 0}, {1, 0, 0}})));
  spec.mesh.boundaries = {{"low", "x < 1e-6"}};
  BoundaryCondition low, sides;
  low.names = {"low"};
  sides.all_ids = true;
  sides.type = BoundaryType::neumann;
  spec.boundary = {low, sides};
  auto const assemble = [&] {
    Discretization discretization(CheckedProblem(spec), AssembledInto::csr);
    static_cast<void>(discretization.assemble());
  };
  EXPECT_NO_THROW(assemble());
  spec.mesh.join = false;
  EXPECT_THROW(assemble(), InputError);
}

/// A hexahedron whose edge 0-4 has no length: its two nodes must not become one.
TEST_F(JoinedNodes, CollapsedCellsKeepTheirNodes) {
  auto nodes = nodes_of_cubes({{0, 0, 0}});
  nodes[4] = nodes[0];
  nodes[7] = nodes[3];
  Mesh const mesh = read(write("a.msh", as_gmsh(nodes)));
  EXPECT_EQ(mesh.triangulation->n_used_vertices(), 8u);
  EXPECT_TRUE(says(mesh, "2 nodes coincide with others and were not joined, since a cell would have the same node twice"));
}

/// Cells at one place that were never meant to be joined: the error names the remedy, and the remedy works.
TEST_F(JoinedNodes, WhatIsWrongOnceJoinedIsToldWithTheRemedy) {
  auto const longer = [](std::vector<Place> nodes) {  // the last cell
    for (std::size_t v : {1U, 2U, 5U, 6U})
      nodes[nodes.size() - 8 + v][0] += 1;
    return nodes;
  };
  std::string const three = write("three.msh", as_gmsh(longer(nodes_of_cubes({{0, 0, 0}, {1, 0, 0}, {1, 0, 0}}))));
  std::string const two = write("two.msh", as_gmsh(longer(nodes_of_cubes({{0, 0, 0}, {0, 0, 0}}))));
  expect_error(three, "not a manifold");
  expect_error(three, "; 8 nodes coincide with others and were joined before: problem.mesh.join: false keeps such nodes apart");
  expect_error(two, "two cells overlap");
  expect_error(two, "; 4 nodes coincide with others and were joined before: problem.mesh.join: false keeps such nodes apart");
  EXPECT_EQ(boundary_faces(read_kept_apart(three)), 18);
  EXPECT_EQ(boundary_faces(read_kept_apart(two)), 12);
}

}  // namespace
}  // namespace poisson::assembly
