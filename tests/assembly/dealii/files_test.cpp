#include "tests/assembly/dealii/mesh_files.hpp"
#include "tests/source_dir.hpp"

#include <deal.II/grid/grid_in.h>
#include <deal.II/grid/grid_tools.h>
#include <random>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace poisson::assembly {
namespace {

using namespace test;

fs::path const meshes = source_dir() / "meshes";

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
  // ParaView 5.11 writes files like this one. It has one cell, whose four-sided faces are absent.
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
  EXPECT_EQ(sections.material_ids.size(), 2u);
  EXPECT_EQ(sections.material_groups.names(), (std::set<std::string>{"Mat-4", "Mat-6", "low", "high", "both"}));
  EXPECT_EQ(sections.material_groups.with_name("Mat-4"), sections.material_groups.with_name("low"));
  EXPECT_EQ(sections.material_groups.with_name("both"), sections.material_ids);
  EXPECT_EQ(sections.boundary_ids, (std::set<unsigned>{0, 1, 2}));  // 0: faces of no surface
  EXPECT_EQ(sections.boundary_groups.with_name("Rest-5"), (std::set<unsigned>{2}));
  EXPECT_EQ(sections.triangulation->n_used_vertices(), 12u);  // node 99 belongs to nothing
  expect_error(write("b.inp", nodes + elements + "*Surface, name=s\n3, S1\n"), "element 3");
  expect_error(write("c.inp", nodes + elements + "*Surface, name=s\n1, S7\n"), "S1 ... S6");
  expect_error(write("d.inp", nodes + elements + "*Elset, elset=a\nunknown\n"), "'unknown' is not defined");
  expect_error(write("e.inp", nodes + "*Element, type=C3D20R\n1, 1,2,3,4,5,6,7,8\n"), "within an element");
  expect_error(write("e.inp", nodes + "*Element, type=C3D15\n1, 1,2,3,4,5,6\n"), "C3D15 (wedge)");
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
std::string const unit_cell = " 5 2 1 1 1 2 3 4 5 6 7 8\n";

std::string one_cube(std::string nodes) {
  return nodes.append("1\n1").append(unit_cell).append("$EndElements\n");
}

TEST_F(MeshFiles, WrongFiles) {
  expect_error((folder_ / "none.msh").string(), "no such mesh file");
  fs::create_directory(folder_ / "dir.msh");
  expect_error((folder_ / "dir.msh").string(), "directory");
  expect_error(write("empty.msh", ""), "empty");
  for (char const* const ending : {".msh", ".inp", ".vtk", ".unv", ".mesh", ".ucd"}) {
    expect_error(write(std::string("blank") + ending, "\n\n  \n"), "");
    std::string rubbish = "\x7f";
    rubbish += "ELF";
    std::mt19937 random(1);
    for (int i = 0; i < 5000; ++i)
      rubbish += static_cast<char>(random() & 0xffu);
    expect_error(write(std::string("rubbish") + ending, rubbish),
                 std::string(ending) == ".vtk" ? "not a legacy VTK file" : "binary");
    expect_error(write(std::string("prose") + ending, "Once upon a time\nthere was a mesh.\n"), "");
  }
  expect_error(write("a.stl", "solid"), "'facet'");
  expect_error(write("noending", "solid"), "known are .msh");
  expect_error(write("a.vtu", "<VTKFile>"), "VTK cannot read it");
  expect_error(write("a.vtk", "# vtk DataFile Version 2.0\n\nASCII\nDATASET STRUCTURED_POINTS\n"), "VTK cannot read it");
  expect_error(write("a.hdf", "no HDF5"), "no HDF5 file");
  expect_error(write("a.exo", "CDF"), "netCDF");
  expect_error(write("a.msh.gz", "\x1f\x8b\x08 and no more"), "gzip");
  expect_error("/dev/zero", "not a regular file");
}

TEST_F(MeshFiles, GmshErrorsNameTheLine) {
  expect_error(write("a.msh", "$MeshFormat\n5 0 8\n$EndMeshFormat\n"), "version '5' is not read");
  expect_error(write("b.msh", "$NOD\n1\n1 0 0 0\n$ENDNOD\n"), "no section $Elements");
  expect_error(write("c.msh", "$MeshFormat\n2.2 1 8\n"), "the number 1");
  expect_error(write("d.msh", unit_nodes + "1\n1" + unit_cell), "$EndElements");
  expect_error(write("e.msh", unit_nodes + "2\n1" + unit_cell + "$EndElements\n"), "before all elements");
  expect_error(write("f.msh", unit_nodes + "0\n$EndElements\n"), "no hexahedra");
  expect_error(write("g.msh", unit_nodes + "1\n1 4 2 1 1 1 2 3 5\n$EndElements\n"), "4-node tetrahedron");
  expect_error(write("h.msh", unit_nodes + "2\n1" + unit_cell + "2 6 2 1 1 5 6 7 9 10 11\n$EndElements\n"),
               "line 22: elements of type 6 (6-node prism)");
  expect_error(write("i.msh", unit_nodes + "1\n1 5 2 1 1 1 2 3 4 5 6 7\n$EndElements\n"),
               "line 21: an element of type 5 has 8 nodes");
  expect_error(write("j.msh", unit_nodes + "1\n1 5 2 1 1 1 2 3 4 5 6 7 13\n$EndElements\n"), "node 13 is used");
  expect_error(write("k.msh", unit_nodes + "1\n1 5 2 1 1 1 2 3 4 5 6 7 7\n$EndElements\n"), "");
  expect_error(write("l.msh", unit_nodes + "1\n1 5 99999 1 1 1 2 3 4 5 6 7 8\n$EndElements\n"), "number of tags");
  expect_error(write("m.msh", unit_nodes + "2\n1" + unit_cell + "2 3 2 4 4 9 10 11 12\n$EndElements\n"),
               "not a face of any hexahedron");
  // Two other cells on the side of a face where there is one.
  std::string more_nodes = unit_nodes;
  more_nodes.replace(more_nodes.find("\n12\n1 0"), 4, "\n13\n13 1 1 3\n");
  std::string const above = " 5 2 1 1 5 6 7 8 9 10 11 12\n", higher = " 5 2 1 1 5 6 7 8 9 10 13 12\n";
  expect_error(write("o.msh", more_nodes + "3\n1" + unit_cell + "2" + above + "3" + higher + "$EndElements\n"),
               "more than two cells");
  expect_error(write("p.msh", more_nodes + "2\n1" + above + "2" + higher + "$EndElements\n"), "overlap");
  // Periodic faces: a condition of the file that must not be lost. A section without any says nothing.
  std::string const cube_alone = one_cube(unit_nodes);
  EXPECT_EQ(read(write("no_periodic.msh", cube_alone + "$Periodic\n0\n$EndPeriodic\n")).triangulation->n_active_cells(), 1u);
  std::string const periodic = write("periodic.msh", cube_alone + "$Periodic\n1\n2 2 1\nAffine 1 0 0 0\n1\n5 9\n$EndPeriodic\n");
  expect_error(periodic, "a number of an affine map");
  expect_error(write("periodic.msh", cube_alone + "$Periodic\n1\n2 2 1\n1\n5 9\n$EndPeriodic\n"),
               "line 23: $Periodic joins the surfaces 2 and 1, which are one boundary");
  expect_error(write("cut.msh", cube_alone + "$Periodic\n"), "periodic entities");
  std::string with_sides = unit_nodes + "3\n1" + unit_cell + "2 3 2 4 11 1 2 3 4\n3 3 2 5 12 5 6 7 8\n$EndElements\n";
  Mesh const joined = read(write("joined.msh", with_sides + "$Periodic\n2\n2 12 11\n1\n5 1\n1 1 2\n0\n$EndPeriodic\n"));
  ASSERT_EQ(joined.periodic.size(), 1u);
  EXPECT_EQ(std::pair(joined.periodic[0].first, joined.periodic[0].second), std::pair(4u, 5u));
  EXPECT_FALSE(joined.periodic[0].map.has_value());
  std::string nan = unit_nodes;
  nan.replace(nan.find("7 1 1 1"), 7, "7 1 nan 1");
  expect_error(write("q.msh", one_cube(nan)), "line 12: y of a node is 'nan'");
  std::string twice = unit_nodes;
  twice.replace(twice.find("12 0 1 2"), 8, "11 0 1 2");
  expect_error(write("r.msh", one_cube(twice)), "node 11 is defined twice");
  // Interior quadrilaterals and unused nodes are harmless.
  Mesh const two =
      read(write("s.msh", unit_nodes + "3\n1" + unit_cell + "2 5 2 7 7 5 6 7 8 9 10 11 12\n3 3 2 3 3 5 6 7 8\n$EndElements\n"));
  EXPECT_EQ(two.boundary_ids, (std::set<unsigned>{0}));
  EXPECT_EQ(two.material_ids, (std::set<unsigned>{1, 7}));
}

TEST_F(MeshFiles, InvertedAndFlatCells) {
  // Vertex 7 pulled through the opposite corner.
  std::string inverted = unit_nodes;
  inverted.replace(inverted.find("7 1 1 1"), 7, "7 -1 -1 -1");
  std::string const message = error_of(write("a.msh", one_cube(inverted)));
  EXPECT_NE(message.find("line 21: 1 of 1 cells are inverted"), std::string::npos) << message;
  EXPECT_NE(message.find("centre is at (0.25, 0.25, 0.25)"), std::string::npos) << message;
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
  Mesh const periodic = read(torus.string());
  ASSERT_EQ(periodic.periodic.size(), 1u);  // of the five surfaces of each side one pair of ids
  EXPECT_EQ(std::pair(periodic.periodic[0].first, periodic.periodic[0].second), std::pair(1u, 2u));
  ASSERT_TRUE(periodic.periodic[0].map.has_value());
  EXPECT_NEAR((*periodic.periodic[0].map)[0], 0.5, 1e-12);  // a rotation by 60 degrees
  std::ifstream file(torus, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  auto const begin = text.find("$Periodic"), end = text.find("$EndPeriodic");
  ASSERT_TRUE(begin < end && end != std::string::npos);
  text.erase(begin, end + std::string("$EndPeriodic\n").size() - begin);
  auto const without = write("torus.msh", text);
  Mesh const curved = read(without);
  ASSERT_TRUE(curved.curved_cells.has_value());
  EXPECT_EQ(curved.curved_cells->order, 3);
  EXPECT_EQ(curved.triangulation->n_active_cells(), 36u);
  expect_error((folder / "five-3d.e").string(), "the Exodus file has no hexahedra, only 5 quadrilaterals: a surface");
  expect_error((folder / "Cube_With_Sidesets.e").string(), "BEX_HEX of Exodus (54 nodes");
}

// ---------------------------------------------------------------------------------------------------------------------- fuzz

TEST_F(MeshFiles, DamagedFilesNeverCrashOrHang) {
  Grid block;
  make_block(block, 2);
  std::map<std::string, std::string> files{{"d.inp", by_dealii(block, dealii::GridOut::ucd)},
                                           {"e.vtk", by_dealii(block, dealii::GridOut::vtk)},
                                           {"f.unv", unv(block)},
                                           {"a.msh", gmsh_22(block)},
                                           {"b.msh", gmsh_41(block)},
                                           {"c.inp", abaqus(block)}};
  auto const [accepted, refused] = expect_no_crash(files, 60);
  EXPECT_EQ(accepted + refused, 360);
  EXPECT_GT(accepted, 10);  // e.g. another digit in a coordinate
  EXPECT_GT(refused, 150);
}

}  // namespace
}  // namespace poisson::assembly
