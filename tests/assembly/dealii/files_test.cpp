#include "assembly/dealii/mesh.hpp"
#include "gpu/core/error.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <deal.II/grid/grid_generator.h>
#include <deal.II/grid/grid_in.h>
#include <deal.II/grid/grid_out.h>
#include <deal.II/grid/grid_tools.h>
#include <deal.II/grid/tria_accessor.h>
#include <deal.II/grid/tria_iterator.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <iomanip>
#include <map>
#include <random>
#include <sstream>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace poisson::assembly {
namespace {

namespace fs = std::filesystem;
using Grid = dealii::Triangulation<3>;

fs::path const meshes = fs::path(POISSON_SOURCE_DIR) / "meshes";

/// A file in a directory of its own that vanishes with the test.
class MeshFiles : public testing::Test {
protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "poisson-mesh-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string write(std::string const& name, std::string const& content) const {
    std::ofstream(folder_ / name, std::ios::binary) << content;
    return (folder_ / name).string();
  }
  fs::path folder_;
};

Mesh read(std::string const& path, int refinements = 0) {
  MeshSpec spec;
  spec.file = path;
  spec.refinements = refinements;
  return make_mesh(spec);
}

std::string error_of(std::string const& path) {
  try {
    static_cast<void>(read(path));
  } catch (InputError const& error) {
    EXPECT_EQ(error.key(), "problem.mesh.file");
    EXPECT_NE(std::string(error.what()).find(path), std::string::npos) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "accepted: " << path;
  return {};
}

void expect_error(std::string const& path, std::string const& part) {
  std::string const message = error_of(path);
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

std::string content_of(fs::path const& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// What two meshes have in common when they are equal up to numbering: cells and boundary faces by their centres, with their ids.
struct Description {
  std::map<std::array<long, 3>, unsigned> cells, faces;
  bool operator==(Description const&) const = default;
};

Description describe(Grid const& grid, double unit) {
  Description result;
  auto const rounded = [&](dealii::Point<3> const& p) {
    return std::array<long, 3>{std::lround(p[0] / unit), std::lround(p[1] / unit), std::lround(p[2] / unit)};
  };
  for (auto const& cell : grid.active_cell_iterators()) {
    result.cells[rounded(cell->center())] = cell->material_id();
    for (auto const& face : cell->face_iterators())
      if (face->at_boundary())
        result.faces[rounded(face->center())] = face->boundary_id();
  }
  return result;
}

// ------------------------------------------------------------------------------------------------------------------- writers

constexpr std::array<unsigned, 8> around{0, 1, 3, 2, 4, 5, 7, 6};
constexpr std::array<unsigned, 4> around_face{0, 1, 3, 2};

std::string coordinates(Grid const& grid, std::size_t v, char separator) {
  std::ostringstream text;
  text << std::setprecision(17);
  for (unsigned d = 0; d < 3; ++d)
    text << (d ? std::string(1, separator) : "") << grid.get_vertices()[v][d];
  return text.str();
}

/// Boundary faces and cells with their ids and their nodes around, counted from 1.
void for_boundary(Grid const& grid, std::function<void(unsigned, std::vector<unsigned> const&)> const& action) {
  for (auto const& face : grid.active_face_iterators())
    if (face->at_boundary()) {
      std::vector<unsigned> nodes;
      for (unsigned const v : around_face)
        nodes.push_back(face->vertex_index(v) + 1);
      action(face->boundary_id(), nodes);
    }
}
void for_cells(Grid const& grid, std::function<void(unsigned, std::vector<unsigned> const&)> const& action) {
  for (auto const& cell : grid.active_cell_iterators()) {
    std::vector<unsigned> nodes;
    for (unsigned const v : around)
      nodes.push_back(cell->vertex_index(v) + 1);
    action(cell->material_id(), nodes);
  }
}
std::string list(std::vector<unsigned> const& nodes, char const* separator = " ") {
  std::string text;
  for (unsigned const node : nodes)
    text.append(text.empty() ? "" : separator).append(std::to_string(node));
  return text;
}

std::string gmsh_22(Grid const& grid) {
  std::ostringstream text, elements;
  text << "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n" << grid.n_vertices() << '\n';
  for (std::size_t v = 0; v < grid.n_vertices(); ++v)
    text << v + 1 << ' ' << coordinates(grid, v, ' ') << '\n';
  unsigned n = 0;
  for_boundary(
      grid, [&](unsigned id, auto const& nodes) { elements << ++n << " 3 2 " << id << ' ' << id << ' ' << list(nodes) << '\n'; });
  for_cells(grid,
            [&](unsigned id, auto const& nodes) { elements << ++n << " 5 2 " << id << ' ' << id << ' ' << list(nodes) << '\n'; });
  text << "$EndNodes\n$Elements\n" << n << '\n' << elements.str() << "$EndElements\n";
  return text.str();
}

std::string gmsh_41(Grid const& grid) {
  std::map<unsigned, std::vector<std::vector<unsigned>>> surfaces, volumes;
  for_boundary(grid, [&](unsigned id, auto const& nodes) { surfaces[id].push_back(nodes); });
  for_cells(grid, [&](unsigned id, auto const& nodes) { volumes[id].push_back(nodes); });
  std::ostringstream text;
  // Entity tags differ from physical tags on purpose: 100 more.
  text << "$MeshFormat\n4.1 0 8\n$EndMeshFormat\n$Entities\n0 0 " << surfaces.size() << ' ' << volumes.size() << '\n';
  for (auto const& group : {surfaces, volumes})
    for (auto const& [id, elements] : group)
      text << id + 100 << " 0 0 0 1 1 1 1 " << id << " 0\n";
  std::size_t const n = grid.n_vertices();
  text << "$EndEntities\n$Nodes\n1 " << n << " 1 " << n << "\n3 " << volumes.begin()->first + 100 << " 0 " << n << '\n';
  for (std::size_t v = 0; v < n; ++v)
    text << v + 1 << '\n';
  for (std::size_t v = 0; v < n; ++v)
    text << coordinates(grid, v, ' ') << '\n';
  std::ostringstream blocks;
  std::size_t number = 0;
  auto const write = [&](auto const& groups, int dimension, int type) {
    for (auto const& [id, elements] : groups) {
      blocks << dimension << ' ' << id + 100 << ' ' << type << ' ' << elements.size() << '\n';
      for (auto const& nodes : elements)
        blocks << ++number << ' ' << list(nodes) << '\n';
    }
  };
  write(surfaces, 2, 3);
  write(volumes, 3, 5);
  text << "$EndNodes\n$Elements\n"
       << surfaces.size() + volumes.size() << ' ' << number << " 1 " << number << '\n'
       << blocks.str() << "$EndElements\n";
  return text.str();
}

/// Sets of elements as materials, and surfaces made of element sides, as Cubit and Abaqus write them.
std::string abaqus(Grid const& grid) {
  static constexpr std::array<int, 6> side_of_face{6, 4, 3, 5, 1, 2};
  std::ostringstream text;
  text << "*HEADING\n** written from deal.II\n*NODE\n";
  for (std::size_t v = 0; v < grid.n_vertices(); ++v)
    text << v + 1 << ", " << coordinates(grid, v, ',') << '\n';
  // Numbered in the order of the file, because deal.II's reader relies on that.
  std::map<unsigned, std::vector<Grid::active_cell_iterator>> materials;
  for (auto const& cell : grid.active_cell_iterators())
    materials[cell->material_id()].push_back(cell);
  std::map<unsigned, std::vector<std::string>> surfaces;
  unsigned n = 0;
  for (auto const& [id, cells] : materials) {
    text << "*ELEMENT, TYPE=C3D8R, ELSET=EB" << id << '\n';
    for (auto const& cell : cells) {
      std::vector<unsigned> nodes;
      for (unsigned const v : around)
        nodes.push_back(cell->vertex_index(v) + 1);
      text << ++n << ", " << list(nodes, ", ") << '\n';
      for (unsigned const f : cell->face_indices())
        if (cell->at_boundary(f))
          surfaces[cell->face(f)->boundary_id()].push_back(std::to_string(n) + ", S" + std::to_string(side_of_face[f]));
    }
  }
  for (auto const& [id, lines] : surfaces) {
    text << "*SURFACE, NAME=SS" << id << '\n';
    for (std::string const& line : lines)
      text << line << '\n';
  }
  return text.str();
}

std::string unv(Grid const& grid) {
  std::ostringstream text, elements, groups;
  text << "    -1\n  2411\n";
  for (std::size_t v = 0; v < grid.n_vertices(); ++v) {
    std::string numbers = coordinates(grid, v, ' ');
    std::replace(numbers.begin(), numbers.end(), 'e', 'D');
    text << v + 1 << " 1 1 11\n  " << numbers << '\n';
  }
  unsigned n = 0;
  std::map<unsigned, std::vector<unsigned>> surfaces, volumes;
  for_boundary(grid, [&](unsigned id, auto const& nodes) {
    elements << ++n << " 44 2 1 7 4\n" << list(nodes) << '\n';
    surfaces[id].push_back(n);
  });
  for_cells(grid, [&](unsigned id, auto const& nodes) {
    elements << ++n << " 115 2 1 7 8\n" << list(nodes) << '\n';
    volumes[id].push_back(n);
  });
  unsigned number = 0;
  for (auto const& group : {surfaces, volumes})
    for (auto const& [id, members] : group) {
      groups << ++number << " 0 0 0 0 0 0 " << members.size() << '\n' << id << '\n';
      for (std::size_t i = 0; i < members.size(); ++i)
        groups << "8 " << members[i] << " 0 0" << (i % 2 == 1 || i + 1 == members.size() ? '\n' : ' ');
    }
  text << "    -1\n    -1\n  2412\n" << elements.str() << "    -1\n    -1\n  2467\n" << groups.str() << "    -1\n";
  return text.str();
}

std::string by_dealii(Grid const& grid, dealii::GridOut::OutputFormat format) {
  std::ostringstream text;
  dealii::GridOut out;
  out.set_flags(dealii::GridOutFlags::Ucd(true, true));
  out.set_flags(dealii::GridOutFlags::Vtk(true, true, false, false));
  out.write(grid, text, format);
  return text.str();
}

// ------------------------------------------------------------------------------------------------------------- sample meshes

/// The ball of meshes/ball.msh: the vertices lie on and in the sphere, nothing in the file says that the surface is curved.
void make_ball(Grid& flat) {
  Grid ball;
  dealii::GridGenerator::hyper_ball_balanced(ball);
  ball.refine_global(1);
  dealii::GridGenerator::flatten_triangulation(ball, flat);
  for (auto const& cell : flat.active_cell_iterators())
    cell->set_material_id(1);
  for (auto const& face : flat.active_face_iterators())
    if (face->at_boundary())
      face->set_boundary_id(1);
}

/// The block of meshes/two_materials.*: [0, 2] x [0, 1] x [0, 1]; material 1 where x < 1, else 2; boundary 1 at x = 0, 2 at x = 2,
/// else 3.
void make_block(Grid& block, unsigned n = 4) {
  dealii::GridGenerator::subdivided_hyper_rectangle(block, {2 * n, n, n}, dealii::Point<3>(), dealii::Point<3>(2, 1, 1));
  for (auto const& cell : block.active_cell_iterators()) {
    cell->set_material_id(cell->center()[0] < 1 ? 1 : 2);
    for (unsigned const f : cell->face_indices())
      if (cell->at_boundary(f))
        cell->face(f)->set_boundary_id(f < 2 ? f + 1 : 3);
  }
}

std::map<std::string, std::string> committed_meshes() {
  Grid ball, block;
  make_ball(ball);
  make_block(block);
  return {{"ball.msh", gmsh_22(ball)}, {"two_materials.msh", gmsh_41(block)}, {"two_materials.inp", abaqus(block)}};
}

TEST_F(MeshFiles, CommittedMeshesAreWhatTheyAreSaidToBe) {
  // POISSON_WRITE_MESHES=meshes makes them anew.
  if (char const* const target = std::getenv("POISSON_WRITE_MESHES"))
    for (auto const& [name, content] : committed_meshes())
      std::ofstream(fs::path(target) / name, std::ios::binary) << content;
  Grid ball, block;
  make_ball(ball);
  make_block(block);
  Mesh const from_file = read((meshes / "ball.msh").string());
  EXPECT_EQ(describe(*from_file.triangulation, 1e-6), describe(ball, 1e-6));
  EXPECT_EQ(from_file.boundary_ids, (std::set<unsigned>{1}));
  EXPECT_EQ(from_file.material_ids, (std::set<unsigned>{1}));
  EXPECT_FALSE(from_file.curved);
  EXPECT_FALSE(from_file.box.has_value());
  for (char const* const name : {"two_materials.msh", "two_materials.inp"})
    EXPECT_EQ(describe(*read((meshes / name).string()).triangulation, 1e-6), describe(block, 1e-6)) << name;
}

TEST_F(MeshFiles, EveryFormatKeepsGeometryAndIds) {
  Grid block;
  make_block(block, 2);
  Description const expected = describe(block, 1e-6);
  for (auto const& path : {write("a.msh", gmsh_22(block)), write("b.msh", gmsh_41(block)), write("c.inp", abaqus(block)),
                           write("d.INP", by_dealii(block, dealii::GridOut::ucd)),
                           write("e.vtk", by_dealii(block, dealii::GridOut::vtk)), write("f.unv", unv(block))}) {
    Mesh const mesh = read(path);
    EXPECT_EQ(describe(*mesh.triangulation, 1e-6), expected) << path;
    EXPECT_EQ(mesh.boundary_ids, (std::set<unsigned>{1, 2, 3}));
    EXPECT_EQ(mesh.material_ids, (std::set<unsigned>{1, 2}));
    EXPECT_EQ(read(path, 1).triangulation->n_active_cells(), 8 * block.n_active_cells());
    // Windows line ends.
    std::string dos;
    for (char const c : content_of(path))
      dos += c == '\n' ? std::string("\r\n") : std::string(1, c);
    Mesh const again = read(write("dos" + fs::path(path).extension().string(), dos));
    EXPECT_EQ(describe(*again.triangulation, 1e-6), expected) << path;
  }
}

TEST_F(MeshFiles, SameAsTheReadersOfDealii) {
  Grid block;
  make_block(block, 2);
  using Format = dealii::GridIn<3>::Format;
  std::vector<std::pair<std::string, Format>> const files{{(meshes / "ball.msh").string(), Format::msh},
                                                          {(meshes / "two_materials.msh").string(), Format::msh},
                                                          {(meshes / "two_materials.inp").string(), Format::abaqus},
                                                          {write("d.inp", by_dealii(block, dealii::GridOut::ucd)), Format::ucd},
                                                          {write("e.vtk", by_dealii(block, dealii::GridOut::vtk)), Format::vtk},
                                                          {write("f.unv", unv(block)), Format::unv}};
  for (auto const& [path, format] : files) {
    Grid oracle;
    dealii::GridIn<3> reader(oracle);
    std::ifstream stream(path);
    reader.read(stream, format);
    EXPECT_EQ(describe(*read(path).triangulation, 1e-6), describe(oracle, 1e-6)) << path;
  }
}

TEST_F(MeshFiles, Vtk51AndFieldData) {
  // As ParaView 5.11 writes it; one cell, its four-sided faces absent.
  std::string const text =
      "# vtk DataFile Version 5.1\nvtk output\nASCII\nDATASET UNSTRUCTURED_GRID\nPOINTS 8 double\n"
      "0 0 0 1 0 0 1 1 0 0 1 0 \n0 0 1 1 0 1 1 1 1 0 1 1 \nMETADATA\nINFORMATION 1\nNAME L2_NORM_RANGE LOCATION vtkDataArray\n"
      "DATA 2 0 1.7\n\nCELLS 2 8\nOFFSETS vtktypeint64\n0 8 \nCONNECTIVITY vtktypeint64\n0 1 2 3 4 5 6 7 \n\nCELL_TYPES 1\n12\n"
      "CELL_DATA 1\nFIELD FieldData 2\nother 2 1 double\n5.5 6.5 \nmaterial 1 1 int\n9 \n";
  Mesh const mesh = read(write("a.vtk", text));
  EXPECT_EQ(mesh.triangulation->n_active_cells(), 1u);
  EXPECT_EQ(mesh.material_ids, (std::set<unsigned>{9}));
  EXPECT_NEAR(dealii::GridTools::volume(*mesh.triangulation), 1, 1e-14);
}

TEST_F(MeshFiles, AbaqusSectionsAndSets) {
  std::string const nodes = "*Node\n1, 0,0,0\n2, 1,0,0\n3, 1,1,0\n4, 0,1,0\n5, 0,0,1\n6, 1,0,1\n7, 1,1,1\n8, 0,1,1\n"
                            "9, 0,0,2\n10, 1,0,2\n11, 1,1,2\n12, 0,1,2\n99, 7,7,7\n";
  std::string const elements = "*Element, type=C3D8\n1, 1,2,3,4,5,6,7,8\n2, 5,6,7,8,\n 9,10,11,12\n";
  Mesh const sections =
      read(write("a.inp", nodes + elements +
                              "*Elset, elset=low\n1\n*Elset, elset=high, generate\n2, 2, 1\n*Elset, elset=both\nlow, high\n"
                              "*Solid Section, elset=low, material=Mat-4\n1.,\n*Solid Section, elset=high, material=Mat-6\n"
                              "*Surface, type=ELEMENT, name=top\nhigh, S2\n*Surface, name=Rest-5\nboth, S3\nboth, S4\n1, S1\n"));
  EXPECT_EQ(sections.material_ids, (std::set<unsigned>{4, 6}));
  EXPECT_EQ(sections.boundary_ids, (std::set<unsigned>{0, 1, 5}));  // 0: faces of no surface; 1: "top", which has no number
  EXPECT_EQ(sections.triangulation->n_used_vertices(), 12u);        // node 99 belongs to nothing
  expect_error(write("b.inp", nodes + elements + "*Surface, name=s\n3, S1\n"), "element 3");
  expect_error(write("c.inp", nodes + elements + "*Surface, name=s\n1, S7\n"), "S1 ... S6");
  expect_error(write("d.inp", nodes + elements + "*Elset, elset=a\nunknown\n"), "'unknown' is not defined");
  expect_error(write("e.inp", nodes + "*Element, type=C3D20R\n1, 1,2,3,4,5,6,7,8\n"), "C3D20R");
  expect_error(write("f.inp", nodes + "*Element, type=C3D4\n1, 1,2,3,5\n"), "C3D4");
  expect_error(write("g.inp", nodes + "*Element, type=C3D8\n1, 1,2,3,4,5,6,7\n*End Part\n"), "only 7 nodes");
  expect_error(write("h.inp", nodes + "*Element, type=C3D8\n1, 1,2,3,4,5,6,7,77\n"), "node 77 is used, but not defined");
  expect_error(write("i.inp", nodes), "no hexahedra");
}

TEST_F(MeshFiles, TurnedCellsAreRenumbered) {
  Grid block;
  make_block(block, 2);
  std::string text = gmsh_22(block);
  // The last hexahedron, its bottom and top exchanged.
  std::size_t const begin = text.rfind(" 5 2 ");
  std::istringstream words(text.substr(begin + 5));
  std::array<unsigned, 10> n{};
  for (auto& number : n)
    words >> number;
  std::string const last = list({n[0], n[1], n[6], n[7], n[8], n[9], n[2], n[3], n[4], n[5]});
  text = text.substr(0, begin + 5) + last + "\n$EndElements\n";
  EXPECT_EQ(describe(*read(write("a.msh", text)).triangulation, 1e-6), describe(block, 1e-6));
}

// -------------------------------------------------------------------------------------------------------------------- errors

std::string const unit_nodes =
    "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n12\n1 0 0 0\n2 1 0 0\n3 1 1 0\n4 0 1 0\n5 0 0 1\n6 1 0 1\n7 1 1 1\n"
    "8 0 1 1\n9 0 0 2\n10 1 0 2\n11 1 1 2\n12 0 1 2\n$EndNodes\n$Elements\n";
std::string const cube = " 5 2 1 1 1 2 3 4 5 6 7 8\n";

std::string one_cube(std::string nodes) {
  return nodes.append("1\n1").append(cube).append("$EndElements\n");
}

TEST_F(MeshFiles, WrongFiles) {
  expect_error((folder_ / "none.msh").string(), "no such mesh file");
  fs::create_directory(folder_ / "dir.msh");
  expect_error((folder_ / "dir.msh").string(), "directory");
  expect_error(write("empty.msh", ""), "empty");
  for (char const* const ending : {".msh", ".inp", ".vtk", ".unv"}) {
    expect_error(write(std::string("blank") + ending, "\n\n  \n"), "");
    std::string rubbish = "\x7f";
    rubbish += "ELF";
    std::mt19937 random(1);
    for (int i = 0; i < 5000; ++i)
      rubbish += static_cast<char>(random() & 0xffu);
    expect_error(write(std::string("rubbish") + ending, rubbish), "binary");
    expect_error(write(std::string("prose") + ending, "Once upon a time\nthere was a mesh.\n"), "");
  }
  expect_error(write("a.stl", "solid"), "'.stl'");
  expect_error(write("noending", "solid"), "known are .msh");
  expect_error(write("a.vtu", "<VTKFile>"), "VTU");
  expect_error(write("a.exo", "CDF"), "SEACAS");
  expect_error(write("a.e", "CDF"), "SEACAS");
  expect_error("/dev/zero", "not a regular file");
}

TEST_F(MeshFiles, GmshErrorsNameTheLine) {
  expect_error(write("a.msh", "$MeshFormat\n4 0 8\n$EndMeshFormat\n"), "version '4' is not read");
  expect_error(write("b.msh", "$NOD\n1\n1 0 0 0\n$ENDNOD\n"), "$MeshFormat");
  expect_error(write("c.msh", "$MeshFormat\n2.2 1 8\n"), "binary Gmsh");
  expect_error(write("d.msh", unit_nodes + "1\n1" + cube), "$EndElements");
  expect_error(write("e.msh", unit_nodes + "2\n1" + cube + "$EndElements\n"), "before all elements");
  expect_error(write("f.msh", unit_nodes + "0\n$EndElements\n"), "no hexahedra");
  expect_error(write("g.msh", unit_nodes + "1\n1 4 2 1 1 1 2 3 5\n$EndElements\n"), "4-node tetrahedron");
  expect_error(write("h.msh", unit_nodes + "2\n1" + cube + "2 6 2 1 1 5 6 7 9 10 11\n$EndElements\n"),
               "line 22: elements of type 6 (6-node prism)");
  expect_error(write("i.msh", unit_nodes + "1\n1 5 2 1 1 1 2 3 4 5 6 7\n$EndElements\n"),
               "line 21: an element of type 5 has 8 nodes");
  expect_error(write("j.msh", unit_nodes + "1\n1 5 2 1 1 1 2 3 4 5 6 7 13\n$EndElements\n"), "node 13 is used");
  expect_error(write("k.msh", unit_nodes + "1\n1 5 2 1 1 1 2 3 4 5 6 7 7\n$EndElements\n"), "");
  expect_error(write("l.msh", unit_nodes + "1\n1 5 99999 1 1 1 2 3 4 5 6 7 8\n$EndElements\n"), "number of tags");
  expect_error(write("m.msh", unit_nodes + "2\n1" + cube + "2 3 2 4 4 9 10 11 12\n$EndElements\n"), "not a face of any hexahedron");
  expect_error(write("n.msh", unit_nodes + "3\n1" + cube + "2 3 2 4 4 1 2 3 4\n3 3 2 5 5 4 3 2 1\n$EndElements\n"),
               "two ids, 4 (line 22) and 5");
  expect_error(write("o.msh", unit_nodes + "3\n1" + cube + "2" + cube + "3" + cube + "$EndElements\n"), "more than two cells");
  expect_error(write("p.msh", unit_nodes + "2\n1" + cube + "2" + cube + "$EndElements\n"), "overlap");
  // Periodic faces: a condition of the file that must not be lost. A section without any says nothing.
  std::string const cube_alone = one_cube(unit_nodes);
  EXPECT_EQ(read(write("no_periodic.msh", cube_alone + "$Periodic\n0\n$EndPeriodic\n")).triangulation->n_active_cells(), 1u);
  std::string const periodic = write("periodic.msh", cube_alone + "$Periodic\n1\n2 2 1\nAffine 1 0 0 0\n1\n5 9\n$EndPeriodic\n");
  expect_error(periodic, "line 23: $Periodic joins 1 entities");
  expect_error(periodic, "not supported yet");
  expect_error(write("cut.msh", cube_alone + "$Periodic\n"), "periodic entities");
  std::string nan = unit_nodes;
  nan.replace(nan.find("7 1 1 1"), 7, "7 1 nan 1");
  expect_error(write("q.msh", one_cube(nan)), "line 12: y of a node is 'nan'");
  std::string twice = unit_nodes;
  twice.replace(twice.find("12 0 1 2"), 8, "11 0 1 2");
  expect_error(write("r.msh", one_cube(twice)), "node 11 is defined twice");
  // Interior quadrilaterals and unused nodes are harmless.
  Mesh const two =
      read(write("s.msh", unit_nodes + "3\n1" + cube + "2 5 2 7 7 5 6 7 8 9 10 11 12\n3 3 2 3 3 5 6 7 8\n$EndElements\n"));
  EXPECT_EQ(two.boundary_ids, (std::set<unsigned>{0}));
  EXPECT_EQ(two.material_ids, (std::set<unsigned>{1, 7}));
}

TEST_F(MeshFiles, InvertedAndFlatCells) {
  // Vertex 7 pulled through the opposite corner.
  std::string inverted = unit_nodes;
  inverted.replace(inverted.find("7 1 1 1"), 7, "7 -1 -1 -1");
  std::string const message = error_of(write("a.msh", one_cube(inverted)));
  EXPECT_NE(message.find("line 21: 1 of 1 cells are inverted"), std::string::npos) << message;
  EXPECT_NE(message.find("centre at (0.25, 0.25, 0.25)"), std::string::npos) << message;
  std::string flat = unit_nodes;
  for (char const* const top : {"5 0 0 1", "6 1 0 1", "7 1 1 1", "8 0 1 1"})
    flat[flat.find(top) + 6] = '0';
  expect_error(write("b.msh", one_cube(flat)), "1 of 1 cells have no volume");
}

TEST_F(MeshFiles, TooFineIsRefusedBeforeItIsBuilt) {
  MeshSpec spec;
  spec.file = (meshes / "ball.msh").string();
  spec.refinements = 9;
  auto const peak_kilobytes = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
  };
  long const before = peak_kilobytes();
  try {
    static_cast<void>(make_mesh(spec));
    ADD_FAILURE() << "accepted";
  } catch (InputError const& error) {
    EXPECT_EQ(error.key(), "problem.mesh.refinements");
    EXPECT_NE(std::string(error.what()).find("2147483647"), std::string::npos) << error.what();
  }
  spec.refinements = 7;  // 5e8 cells, 340 GB
  try {
    check_memory(predict_counts(spec).triangulation_bytes * 1000, "the mesh");
    ADD_FAILURE() << "accepted";
  } catch (EnvironmentError const& error) {
    EXPECT_NE(std::string(error.what()).find(" bytes"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("available"), std::string::npos) << error.what();
  }
  EXPECT_LT(peak_kilobytes() - before, 300000) << "a mesh of so many cells takes more than a thousand times that";
}

// ----------------------------------------------------------------------------------------------------------------- real data

/// Cells, boundary faces and ids of the meshes of other programs' test suites, as deal.II reads them.
TEST_F(MeshFiles, RealMeshes) {
  char const* const root = std::getenv("POISSON_REAL_DATA");
  if (!root)
    GTEST_SKIP() << "POISSON_REAL_DATA is not set";
  fs::path const folder = fs::path(root) / "meshes";
  struct Sample {
    char const* name;
    dealii::GridIn<3>::Format format;
    unsigned cells;
    double unit;
  };
  using Format = dealii::GridIn<3>::Format;
  for (Sample const& sample :
       {Sample{"sphere_r6.msh", Format::msh, 4625, 1e-4}, Sample{"grid_in_msh_01.3da.v41.msh", Format::msh, 200, 1e-6},
        Sample{"3d_test_abaqus.inp", Format::abaqus, 375, 1e-6}, Sample{"3d_test_cube_two_materials.inp", Format::abaqus, 8, 1e-6},
        Sample{"grid_in_vtk_3d_04.vtk", Format::vtk, 512, 1e-10}}) {
    SCOPED_TRACE(sample.name);
    Grid oracle;
    dealii::GridIn<3> reader(oracle);
    std::ifstream stream(folder / sample.name);
    reader.read(stream, sample.format);
    Mesh const mesh = read((folder / sample.name).string());
    EXPECT_EQ(mesh.triangulation->n_active_cells(), sample.cells);
    Description const found = describe(*mesh.triangulation, sample.unit), expected = describe(oracle, sample.unit);
    EXPECT_EQ(found.cells, expected.cells);
    EXPECT_EQ(found.faces, expected.faces);
    EXPECT_EQ(found.cells.size(), sample.cells);
    double smallest = INFINITY;
    Mesh const fine = read((folder / sample.name).string(), 1);
    for (auto const& cell : fine.triangulation->active_cell_iterators())
      smallest = std::min(smallest, cell->measure());
    EXPECT_GT(smallest, 0);
  }
  auto const torus = folder / "periodic-torus-sector.msh";
  expect_error(torus.string(), "$Periodic joins 5 entities");
  std::ifstream file(torus, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  auto const begin = text.find("$Periodic"), end = text.find("$EndPeriodic");
  ASSERT_TRUE(begin < end && end != std::string::npos);
  text.erase(begin, end + std::string("$EndPeriodic\n").size() - begin);
  auto const without = write("torus.msh", text);
  expect_error(without, "type 92 (64-node hexahedron, order 3) (36 of them");
  expect_error(without, "only linear hexahedra");
  expect_error((folder / "five-3d.e").string(), "SEACAS");
  expect_error((folder / "Cube_With_Sidesets.e").string(), "SEACAS");
}

// ---------------------------------------------------------------------------------------------------------------------- fuzz

/// Damages a file in one of several ways.
std::string mutate(std::string text, std::mt19937& random) {
  auto const place = [&] { return text.empty() ? 0 : random() % text.size(); };
  static std::vector<std::string> const words{
      "-1", "0", "99999999999999999999", "2147483648", "nan", "1e308", "$", "*", "-", "\n", " ", "\xff", "5", "3"};
  for (auto n = 1 + random() % 3; n > 0; --n)
    switch (random() % 7) {
    case 0:
      text.resize(place());
      break;
    case 1:
      text[place() % std::max<std::size_t>(text.size(), 1)] = static_cast<char>(random() & 0xffu);
      break;
    case 2:
      text.erase(place(), random() % 40);
      break;
    case 3:
      text.insert(place(), words[random() % words.size()]);
      break;
    case 4: {  // a digit becomes another
      std::size_t const digit = text.find_first_of("0123456789", place());
      if (digit != std::string::npos)
        text[digit] = static_cast<char>('0' + random() % 10);
      break;
    }
    case 5: {  // a line vanishes
      std::size_t const begin = text.find('\n', place());
      if (begin != std::string::npos)
        text.erase(begin, text.find('\n', begin + 1) - begin);
      break;
    }
    default: {  // a line comes twice
      std::size_t const begin = text.find('\n', place());
      if (begin != std::string::npos)
        text.insert(begin, text.substr(begin, text.find('\n', begin + 1) - begin));
    }
    }
  return text.empty() ? "x" : text;
}

TEST_F(MeshFiles, DamagedFilesNeverCrashOrHang) {
  Grid block;
  make_block(block, 2);
  std::map<std::string, std::string> files{{"d.inp", by_dealii(block, dealii::GridOut::ucd)},
                                           {"e.vtk", by_dealii(block, dealii::GridOut::vtk)},
                                           {"f.unv", unv(block)},
                                           {"a.msh", gmsh_22(block)},
                                           {"b.msh", gmsh_41(block)},
                                           {"c.inp", abaqus(block)}};
  struct Progress {
    int step, accepted, refused;
  };
  void* const memory = mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  int total_accepted = 0, total_refused = 0;
  for (auto const& [name, content] : files) {
    auto* const progress = static_cast<Progress volatile*>(memory);
    progress->step = 0;
    progress->accepted = 0;
    progress->refused = 0;
    pid_t const child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(60);
      std::mt19937 random(2024);
      for (int i = 0; i < 60; ++i) {
        progress->step = i;
        std::string const path = write(name, mutate(content, random));
        try {
          static_cast<void>(read(path));
          progress->accepted = progress->accepted + 1;
        } catch (InputError const&) {
          progress->refused = progress->refused + 1;
        } catch (...) {
          _exit(2);
        }
      }
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << name << ", mutation " << progress->step << ", status " << status;
    total_accepted += progress->accepted;
    total_refused += progress->refused;
  }
  munmap(memory, sizeof(Progress));
  EXPECT_EQ(total_accepted + total_refused, 360);
  EXPECT_GT(total_accepted, 10);  // e.g. another digit in a coordinate
  EXPECT_GT(total_refused, 150);
}

}  // namespace
}  // namespace poisson::assembly
