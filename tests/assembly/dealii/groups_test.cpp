// Groups of mesh files: several for one face or cell, ids that do not come from names, sets of nodes, surfaces inside the mesh.
#include "tests/assembly/dealii/mesh_files.hpp"

#include "assembly/discretization.hpp"

#include <netcdf.h>

#include <cstring>

namespace poisson::assembly {
namespace {

using namespace test;

using Sizes = std::map<std::string, double>;

/// The area of every boundary, and the volume of every material, by name or id.
Sizes sizes(IdGroups const& groups, std::map<unsigned, double> const& of_parts) {
  std::set<unsigned> parts;
  for (auto const& [id, size] : of_parts)
    parts.insert(id);
  Sizes result;
  for (auto const& group : groups.labelled(parts))
    for (unsigned const id : group.parts)
      result[group.label] += of_parts.at(id);
  return result;
}
Sizes areas(Mesh const& mesh) {
  std::map<unsigned, double> of_parts;
  for (auto const& face : mesh.triangulation->active_face_iterators())
    if (face->at_boundary())
      of_parts[face->boundary_id()] += face->measure();
  return sizes(mesh.boundary_groups, of_parts);
}
Sizes volumes(Mesh const& mesh) {
  std::map<unsigned, double> of_parts;
  for (auto const& cell : mesh.triangulation->active_cell_iterators())
    of_parts[cell->material_id()] += cell->measure();
  return sizes(mesh.material_groups, of_parts);
}

/// The node (x, y, z) of the bar [0, 2] x [0, 1] x [0, 1] of two cubes.
int node(int x, int y, int z) {
  return 1 + x + 3 * (y + 2 * z);
}
/// Lines "number x y z" of its nodes, with something behind each.
std::string nodes_of_bar(std::string const& behind = "") {
  std::ostringstream text;
  for (int n = 0; n < 12; ++n)
    text << n + 1 << ' ' << n % 3 << ' ' << n / 3 % 2 << ' ' << n / 6 << behind << '\n';
  return text.str();
}
std::vector<int> cube_of_row(int i) {
  return {node(i, 0, 0), node(i + 1, 0, 0), node(i + 1, 1, 0), node(i, 1, 0),
          node(i, 0, 1), node(i + 1, 0, 1), node(i + 1, 1, 1), node(i, 1, 1)};
}
/// The square x = i.
std::vector<int> square(int i) {
  return {node(i, 0, 0), node(i, 1, 0), node(i, 1, 1), node(i, 0, 1)};
}
std::string words(std::vector<int> const& numbers) {
  std::string text;
  for (int const n : numbers)
    text += " " + std::to_string(n);
  return text;
}

constexpr char const* names_of_bar =
    "$PhysicalNames\n8\n2 1 \"in\"\n2 2 \"out\"\n2 3 \"ends\"\n2 4 \"middle\"\n2 5 \"nothing\"\n3 1 \"left\"\n3 2 \"right\"\n"
    "3 3 \"all\"\n$EndPhysicalNames\n";

/// Version 2.2, as Gmsh writes it: an element of two groups comes twice.
std::string bar_22(bool parametric = false) {
  std::ostringstream text;
  std::string const section = parametric ? "ParametricNodes" : "Nodes";
  text << "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n"
       << names_of_bar << "$" << section << "\n12\n"
       << nodes_of_bar(parametric ? " 2 1 0.25 0.75" : "") << "$End" << section << "\n$Elements\n9\n";
  int n = 0;
  for (auto const& [group, i] : {std::pair(1, 0), std::pair(3, 0), std::pair(2, 2), std::pair(3, 2), std::pair(4, 1)})
    text << ++n << " 3 2 " << group << ' ' << i + 1 << words(square(i)) << '\n';
  for (auto const& [group, i] : {std::pair(1, 0), std::pair(3, 0), std::pair(2, 1), std::pair(3, 1)})
    text << ++n << " 5 2 " << group << ' ' << i + 1 << words(cube_of_row(i)) << '\n';
  text << "$EndElements\n";
  return text.str();
}

/// Version 4.1: entities list their groups.
std::string bar_41() {
  std::ostringstream text;
  text << "$MeshFormat\n4.1 0 8\n$EndMeshFormat\n"
       << names_of_bar << "$Entities\n0 0 3 2\n"
       << "1 0 0 0 1 1 1 2 1 3 0\n2 0 0 0 1 1 1 1 4 0\n3 0 0 0 1 1 1 2 -3 2 0\n"
       << "1 0 0 0 1 1 1 2 1 3 0\n2 0 0 0 1 1 1 2 2 3 0\n$EndEntities\n$Nodes\n1 12 1 12\n3 1 0 12\n";
  for (int i = 1; i <= 12; ++i)
    text << i << '\n';
  for (int i = 0; i < 12; ++i)
    text << i % 3 << ' ' << i / 3 % 2 << ' ' << i / 6 << '\n';
  text << "$EndNodes\n$Elements\n5 5 1 5\n";
  for (int i = 0; i < 3; ++i)
    text << "2 " << i + 1 << " 3 1\n" << i + 1 << words(square(i)) << '\n';
  for (int i = 0; i < 2; ++i)
    text << "3 " << i + 1 << " 5 1\n" << i + 4 << words(cube_of_row(i)) << '\n';
  text << "$EndElements\n";
  return text.str();
}

TEST_F(MeshFiles, GroupsOfGmshOverlap) {
  for (std::string const& path : {write("a.msh", bar_22()), write("parametric.msh", bar_22(true)), write("b.msh", bar_41())}) {
    SCOPED_TRACE(path);
    Mesh const mesh = read(path);
    EXPECT_EQ(mesh.triangulation->n_active_cells(), 2U);
    EXPECT_EQ(areas(mesh), (Sizes{{"0", 8}, {"in", 1}, {"out", 1}, {"ends", 2}}));
    EXPECT_EQ(volumes(mesh), (Sizes{{"left", 1}, {"right", 1}, {"all", 2}}));
    // The square in the middle is no boundary; it is kept with its name.
    EXPECT_TRUE(mesh.boundary_groups.with_name("middle").empty());
    EXPECT_TRUE(mesh.boundary_groups.has_name("nothing"));
    EXPECT_FALSE(mesh.inner_groups.has_name("nothing"));
    ASSERT_EQ(mesh.inner_faces.size(), 1U);
    EXPECT_EQ(mesh.inner_groups.with_name("middle"), std::set<unsigned>{mesh.inner_faces[0].id});
    auto cell = mesh.triangulation->begin_active();
    std::advance(cell, mesh.inner_faces[0].cell);
    EXPECT_NEAR(cell->face(static_cast<unsigned>(mesh.inner_faces[0].face))->center()[0], 1, 1e-14);
    EXPECT_EQ(count(mesh).refined(1).inner_faces_with_id.at(mesh.inner_faces[0].id), 4);
  }
}

/// A file of version 2.2 may give two surfaces that are joined a group in common.
TEST_F(MeshFiles, PeriodicSurfacesOfSeveralGroups) {
  Mesh const mesh = read(write("a.msh", bar_22() + "$Periodic\n1\n2 3 1\n1\n3 1\n$EndPeriodic\n"));
  ASSERT_EQ(mesh.periodic.size(), 1U);
  EXPECT_EQ(std::pair(mesh.periodic[0].first, mesh.periodic[0].second), std::pair(1U, 2U));
}

std::string unv_dataset(int number, std::string const& content) {
  return "    -1\n  " + std::to_string(number) + "\n" + content + "    -1\n";
}
std::string unv_bar(std::string const& groups) {
  std::ostringstream nodes, elements;
  for (int n = 0; n < 12; ++n)
    nodes << n + 1 << " 1 1 11\n" << n % 3 << ' ' << n / 3 % 2 << ' ' << n / 6 << '\n';
  for (int i = 0; i < 3; ++i)
    elements << i + 1 << " 94 2 1 7 4\n" << words(square(i)) << '\n';
  for (int i = 0; i < 2; ++i)
    elements << i + 4 << " 115 2 1 7 8\n" << words(cube_of_row(i)) << '\n';
  elements << "6 11 2 1 7 2\n0 1 1\n1 2\n";
  return unv_dataset(2411, nodes.str()) + unv_dataset(2412, elements.str()) + unv_dataset(2467, groups);
}

TEST_F(MeshFiles, GroupsOfUnvHaveTheirNumbersAndNames) {
  // Digits at the end of names say nothing; the last group lists what others have, a line, and nodes beside elements.
  Mesh const mesh = read(write("a.unv", unv_bar("7 0 0 0 0 0 0 1\ninlet_1\n8 1 0 0\n9 0 0 0 0 0 0 1\noutlet_1\n8 3 0 0\n"
                                                "2 0 0 0 0 0 0 3\nends\n8 1 0 0 8 3 0 0\n8 6 0 0\n"
                                                "4 0 0 0 0 0 0 2\nstart_1\n8 4 0 0 7 1 0 0\n"
                                                "5 0 0 0 0 0 0 4\nnodes\n7 1 0 0 7 4 0 0\n7 7 0 0 7 10 0 0\n"
                                                "6 0 0 0 0 0 0 2\nalone\n7 1 0 0 7 2 0 0\n"
                                                "8 0 0 0 0 0 0 1\n\n8 2 0 0\n")));
  EXPECT_EQ(areas(mesh), (Sizes{{"0", 8}, {"inlet_1", 1}, {"outlet_1", 1}, {"ends", 2}, {"nodes", 1}}));
  EXPECT_EQ(volumes(mesh), (Sizes{{"start_1", 1}, {"0", 1}}));
  std::set<unsigned> boundary;
  for (auto const& [id, faces] : count(mesh).faces_with_id)
    boundary.insert(id);
  EXPECT_EQ(mesh.boundary_groups.with_id(7, boundary), mesh.boundary_groups.with_name("inlet_1"));
  EXPECT_EQ(mesh.boundary_groups.with_id(9, boundary), mesh.boundary_groups.with_name("outlet_1"));
  ASSERT_EQ(mesh.inner_faces.size(), 1U);  // of the group 8, which has no name
  EXPECT_EQ(mesh.inner_faces[0].id, 8U);
  ASSERT_EQ(mesh.notes.size(), 2U);
  EXPECT_NE(mesh.notes[0].find("'ends' 1 members"), std::string::npos) << mesh.notes[0];
  EXPECT_NE(mesh.notes[1].find("'alone' (2 nodes) holds no face of the boundary"), std::string::npos) << mesh.notes[1];
}

TEST_F(MeshFiles, AGroupOnTheBoundaryAndInsideIsTold) {
  // Two cubes along z, each face of the group 7: the bottom, and the one between them.
  std::string const text =
      "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n12\n1 0 0 0\n2 1 0 0\n3 1 1 0\n4 0 1 0\n5 0 0 1\n6 1 0 1\n7 1 1 1\n8 0 1 1\n"
      "9 0 0 2\n10 1 0 2\n11 1 1 2\n12 0 1 2\n$EndNodes\n$Elements\n4\n1 5 2 1 1 1 2 3 4 5 6 7 8\n2 5 2 1 1 5 6 7 8 9 10 11 12\n"
      "3 3 2 7 1 1 2 3 4\n4 3 2 7 2 5 6 7 8\n$EndElements\n";
  Mesh const mesh = read(write("a.msh", text));
  ASSERT_EQ(mesh.notes.size(), 1u);
  EXPECT_NE(mesh.notes[0].find("the boundary group 7 has 1 face between cells, too"), std::string::npos) << mesh.notes[0];
}

TEST_F(MeshFiles, UnvCellsAndFacesOfOrderTwo) {
  // The unit cube whose map moves the middle of every edge: x = s + 0.1 s (1 - s) t (1 - t) would vanish on the edges, so the
  // upright edges at s = 1 bulge by 4 * 0.1 * t (1 - t) in x instead.
  std::vector<std::array<int, 3>> const places{{0, 0, 0}, {1, 0, 0}, {2, 0, 0}, {2, 1, 0}, {2, 2, 0}, {1, 2, 0}, {0, 2, 0},
                                               {0, 1, 0}, {0, 0, 1}, {2, 0, 1}, {2, 2, 1}, {0, 2, 1}, {0, 0, 2}, {1, 0, 2},
                                               {2, 0, 2}, {2, 1, 2}, {2, 2, 2}, {1, 2, 2}, {0, 2, 2}, {0, 1, 2}};
  std::ostringstream nodes, elements;
  std::vector<int> all;
  for (std::size_t n = 0; n < places.size(); ++n) {
    auto const& [x, y, z] = places[n];
    nodes << n + 1 << " 1 1 11\n" << x / 2. + (x == 2 && z == 1 ? 0.1 : 0) << ' ' << y / 2. << ' ' << z / 2. << '\n';
    all.push_back(static_cast<int>(n) + 1);
  }
  elements << "1 116 2 1 7 20\n" << words({all.begin(), all.begin() + 8}) << '\n' << words({all.begin() + 8, all.end()}) << '\n';
  elements << "2 95 2 1 7 8\n" << words({3, 4, 5, 11, 17, 16, 15, 10}) << '\n';  // x = 1
  Mesh const mesh = read(write("a.unv", unv_dataset(2411, nodes.str()) + unv_dataset(2412, elements.str()) +
                                            unv_dataset(2467, "3 0 0 0 0 0 0 1\nbulge\n8 2 0 0\n")));
  ASSERT_TRUE(mesh.curved_cells.has_value());
  ASSERT_EQ(mesh.curved_cells->order, 2);
  EXPECT_EQ(areas(mesh), (Sizes{{"0", 5}, {"bulge", 1}}));  // of the straight cell
  // The side x = 1 of the quadratic cell is x = 1 + 0.4 z (1 - z), so that the volume is 1 + 0.4 / 6.
  ProblemSpec spec;
  spec.mesh.file = (folder_ / "a.unv").string();
  spec.order = 2;
  spec.coefficient[-1] = {"1"};
  BoundaryCondition condition;
  condition.all_ids = true;
  condition.type = BoundaryType::dirichlet;
  spec.boundary = {condition};
  auto const parts = Discretization(spec).parts();
  EXPECT_NEAR(parts.materials.at(0).size, 1 + 0.4 / 6, 1e-12);
}

/// k1.e of libexodusii in small: two cubes, a block of shells on x = 2 with the id of a side set, and sets of nodes, elements and
/// faces.
void write_bar_exodus(std::string const& path) {
  int file = 0;
  auto const check = [](int status) { ASSERT_EQ(status, NC_NOERR) << nc_strerror(status); };
  check(nc_create(path.c_str(), NC_CLOBBER, &file));
  auto const dimension = [&](char const* name, std::size_t length) {
    int id = 0;
    check(nc_def_dim(file, name, length, &id));
    return id;
  };
  std::vector<std::pair<int, std::vector<int>>> lists;
  auto const integers = [&](char const* name, std::vector<int> const& dimensions, std::vector<int> const& values) {
    int id = 0;
    check(nc_def_var(file, name, NC_INT, static_cast<int>(dimensions.size()), dimensions.data(), &id));
    lists.emplace_back(id, values);
    return id;
  };
  std::vector<std::pair<int, std::vector<std::string>>> texts;
  int const length = dimension("len_name", 16);
  auto const names = [&](char const* name, int count, std::vector<std::string> const& values) {
    std::array<int, 2> const dimensions{count, length};
    int id = 0;
    check(nc_def_var(file, name, NC_CHAR, 2, dimensions.data(), &id));
    texts.emplace_back(id, values);
  };
  auto const type = [&](int variable, char const* name) {
    check(nc_put_att_text(file, variable, "elem_type", std::strlen(name), name));
  };
  dimension("num_dim", 3);
  int const n_nodes = dimension("num_nodes", 12), blocks = dimension("num_el_blk", 2), sides = dimension("num_side_sets", 2),
            node_sets = dimension("num_node_sets", 3), element_sets = dimension("num_elem_sets", 3),
            face_sets = dimension("num_face_sets", 1);
  std::array<int, 3> coordinates{};
  for (std::size_t d = 0; d < 3; ++d)
    check(nc_def_var(file, (std::string("coord") + "xyz"[d]).c_str(), NC_DOUBLE, 1, &n_nodes, &coordinates[d]));
  std::vector<int> cells = cube_of_row(0);
  for (int const n : cube_of_row(1))
    cells.push_back(n);
  type(integers("connect1", {dimension("num_el_in_blk1", 2), dimension("num_nod_per_el1", 8)}, cells), "HEX8");
  type(integers("connect2", {dimension("num_el_in_blk2", 1), dimension("num_nod_per_el2", 4)}, square(2)), "SHELL4");
  integers("eb_prop1", {blocks}, {4, 5});
  names("eb_names", blocks, {"bar", ""});
  integers("ss_prop1", {sides}, {5, 6});
  names("ss_names", sides, {"x low", "x high"});
  int const one = dimension("num_side_ss1", 1), two = dimension("num_side_ss2", 2);
  integers("elem_ss1", {one}, {1});
  integers("side_ss1", {one}, {4});
  integers("elem_ss2", {two}, {3, 3});
  integers("side_ss2", {two}, {1, 3});  // the shell itself, and one of its edges
  integers("ns_prop1", {node_sets}, {1, 6, 3});
  names("ns_names", node_sets, {"ground", "x nodes", "x low"});
  integers("node_ns1", {dimension("num_nod_ns1", 6)}, {1, 2, 3, 4, 5, 6});  // z = 0
  integers("node_ns2", {dimension("num_nod_ns2", 4)}, square(0));
  integers("node_ns3", {dimension("num_nod_ns3", 1)}, {1});
  integers("els_prop1", {element_sets}, {7, 8, 9});
  names("els_names", element_sets, {"left", "plate", "nothing"});
  integers("elem_els1", {dimension("num_ele_els1", 1)}, {1});
  integers("elem_els2", {dimension("num_ele_els2", 1)}, {3});  // the shell
  dimension("num_fa_blk", 2);
  integers("fbconn1", {dimension("num_fa_in_blk1", 1), dimension("num_nod_per_fa1", 3)}, {1, 2, 4});
  integers("fbconn2", {dimension("num_fa_in_blk2", 1), dimension("num_nod_per_fa2", 4)}, square(1));
  integers("fs_prop1", {face_sets}, {11});
  names("fs_names", face_sets, {"middle"});
  integers("face_fs1", {dimension("num_face_fs1", 2)}, {1, 2});
  check(nc_enddef(file));
  for (std::size_t d = 0; d < 3; ++d) {
    std::vector<double> x;
    for (int n = 0; n < 12; ++n)
      x.push_back(d == 0 ? n % 3 : d == 1 ? n / 3 % 2 : n / 6);
    check(nc_put_var_double(file, coordinates[d], x.data()));
  }
  for (auto const& [id, values] : lists)
    check(nc_put_var_int(file, id, values.data()));
  for (auto const& [id, values] : texts)
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::array<std::size_t, 2> const start{i, 0}, count{1, values[i].size()};
      if (!values[i].empty())
        check(nc_put_vara_text(file, id, start.data(), count.data(), values[i].c_str()));
    }
  check(nc_close(file));
}

TEST_F(MeshFiles, ShellsAndSetsOfExodusAreGroups) {
  std::string const path = (folder_ / "bar.e").string();
  write_bar_exodus(path);
  Mesh const mesh = read(path);
  // The block of shells has the id 5 of the first side set, and no name: it gets 1, the first free one.
  Sizes const found = areas(mesh);
  EXPECT_EQ(found.at("x low"), 1);
  EXPECT_EQ(found.at("x high"), 1);
  EXPECT_EQ(found.at("ground"), 2);
  EXPECT_EQ(found.at("x nodes"), 1);
  EXPECT_EQ(found.at("plate"), 1);
  EXPECT_EQ(volumes(mesh), (Sizes{{"bar", 2}, {"left", 1}}));
  EXPECT_TRUE(mesh.material_groups.has_name("nothing"));  // and holds no cell
  ASSERT_EQ(mesh.inner_faces.size(), 1U);
  EXPECT_EQ(mesh.inner_groups.with_name("middle"), (std::set<unsigned>{mesh.inner_faces[0].id}));
  std::set<unsigned> ids;
  for (auto const& [id, faces] : count(mesh).faces_with_id)
    ids.insert(id);
  EXPECT_EQ(mesh.boundary_groups.with_id(5, ids), mesh.boundary_groups.with_name("x low"));
  EXPECT_EQ(mesh.boundary_groups.with_id(6, ids), mesh.boundary_groups.with_name("x high"));
  EXPECT_EQ(mesh.boundary_groups.with_id(1, ids), mesh.boundary_groups.with_name("ground"));
  EXPECT_EQ(mesh.boundary_groups.with_id(8, ids), mesh.boundary_groups.with_name("plate"));
  EXPECT_EQ(mesh.boundary_groups.ids_of(ids).size(), 7U);  // 0, x low, x high, ground, the shells, plate, x nodes
  std::string notes;
  for (std::string const& note : mesh.notes)
    notes += note + "\n";
  for (char const* const part :
       {"of side set 'x high' 1 sides that are no faces", "of face set 'middle' 1 faces that are no quadrilaterals",
        "'x low' has the name of a set of faces", "without a name has the number 5 in the file",
        "'x nodes' has the number 6 in the file"})
    EXPECT_NE(notes.find(part), std::string::npos) << notes;
}

// ------------------------------------------------------------------------------------------------ conditions and coefficients

class Groups : public MeshFiles {
protected:
  ProblemSpec spec() {
    ProblemSpec result;
    result.mesh.file = write("bar.msh", bar_22());
    result.coefficient[-1] = {"1"};
    result.boundary = {condition({}, {"ends"}, "1"), {}};
    result.boundary[1].all_ids = true;
    result.boundary[1].type = BoundaryType::neumann;
    return result;
  }
  static BoundaryCondition condition(std::vector<unsigned> ids, std::vector<std::string> names, std::string const& value) {
    BoundaryCondition result;
    result.ids = std::move(ids);
    result.names = std::move(names);
    result.type = BoundaryType::dirichlet;
    result.value = value;
    return result;
  }
  static void expect(ProblemSpec const& spec, std::string const& key, std::string const& part) {
    try {
      CheckedProblem const checked(spec);
      ADD_FAILURE() << "accepted";
    } catch (InputError const& error) {
      EXPECT_EQ(error.key(), key);
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  }
};

TEST_F(Groups, ContradictionsAreErrorsAndOverlapsAreNot) {
  ProblemSpec good = spec();
  good.boundary.push_back(condition({1}, {}, "1"));  // "in" is a part of "ends", and says the same
  good.coefficient_of_name["all"] = {"2"};
  good.coefficient[2] = {"2"};
  good.source_of_name["all"] = "3";
  good.source_of_material[1] = "3";
  EXPECT_NO_THROW(CheckedProblem{good});
  ProblemSpec two = spec();
  two.boundary.push_back(condition({}, {"out"}, "0"));
  expect(two, "problem.boundary[2].names[0]", "problem.boundary[0]");
  ProblemSpec k = good;
  k.coefficient_of_name["left"] = {"7"};
  expect(k, "problem.coefficient.left", "material left + all has another coefficient by problem.coefficient.all");
  ProblemSpec f = good;
  f.source_of_name["right"] = "4";
  expect(f, "problem.source.right", "material right + all has another source, '3', by problem.source.all");
}

TEST_F(Groups, NamesThatHoldNoBoundaryFaceAreErrors) {
  ProblemSpec inner = spec();
  for (BoundaryType const type : {BoundaryType::robin, BoundaryType::periodic}) {
    inner.boundary.push_back(condition({}, {"middle"}, "0"));
    inner.boundary.back().type = type;
    expect(inner, "problem.boundary[2].names[0]", "'middle' lies inside the mesh");
    inner.boundary.back() = condition({4}, {}, "0");
    inner.boundary.back().type = type;
    expect(inner, "problem.boundary[2].ids", "the surface with the id 4 lies inside the mesh");
    inner.boundary.pop_back();
  }
  inner.boundary.push_back(condition({}, {"middle"}, "0"));
  EXPECT_NO_THROW(CheckedProblem{inner});
  inner.boundary.push_back(condition({4}, {}, "1"));
  expect(inner, "problem.boundary[3].ids", "another condition by problem.boundary[2]");
  ProblemSpec nothing = spec();
  nothing.boundary.push_back(condition({}, {"nothing"}, "0"));
  expect(nothing, "problem.boundary[2].names[0]", "'nothing' holds no face");
  nothing.boundary.back() = condition({5}, {}, "0");
  expect(nothing, "problem.boundary[2].ids", "the mesh has no boundary id 5; it has: 0, 1, 2, 3");
}

TEST_F(Groups, AllOverridesPeriodicPairsOfTheFile) {
  ProblemSpec periodic = spec();
  periodic.mesh.file = write("joined.msh", bar_22() + "$Periodic\n1\n2 3 1\n1\n3 1\n$EndPeriodic\n");
  periodic.boundary.erase(periodic.boundary.begin());
  periodic.boundary[0].type = BoundaryType::dirichlet;
  CheckedProblem const overridden(periodic);
  EXPECT_FALSE(overridden.mesh().periodic);
  ASSERT_EQ(overridden.notes().size(), 1U);
  EXPECT_NE(overridden.notes()[0].find("joins the boundaries 1 and 2 ($Periodic)"), std::string::npos) << overridden.notes()[0];
  BoundaryCondition joined;
  joined.ids = {1, 2};
  joined.type = BoundaryType::periodic;
  periodic.boundary.push_back(joined);
  EXPECT_TRUE(CheckedProblem(periodic).mesh().periodic);
  // Without a condition for what is left the file's word counts.
  periodic.boundary = {condition({0}, {}, "0")};
  EXPECT_TRUE(CheckedProblem(periodic).mesh().periodic);
}

}  // namespace
}  // namespace poisson::assembly
