// Mesh files of all other formats: against the same block in Gmsh's, and curved cells against the map that bends them.
#include "tests/assembly/dealii/mesh_files.hpp"

#include "assembly/dealii/raw.hpp"
#include "assembly/mesh/lattice_mesh.hpp"
#include "assembly/space/reference_element.hpp"

#include <netcdf.h>
#include <vtkCellData.h>
#include <vtkDoubleArray.h>
#include <vtkIntArray.h>
#include <vtkLagrangeHexahedron.h>
#include <vtkNew.h>
#include <vtkPoints.h>
#include <vtkQuadraticHexahedron.h>
#include <vtkTriQuadraticHexahedron.h>
#include <vtkUnstructuredGrid.h>
#include <vtkUnstructuredGridWriter.h>
#include <vtkXMLUnstructuredGridWriter.h>
#include <zlib.h>

#include <cstring>
#include <deal.II/base/quadrature_lib.h>
#include <random>

namespace poisson::assembly {
namespace {

using namespace test;

// ------------------------------------------------------------------------------------------------------- writers, linear cells

std::string medit(Grid const& grid) {
  std::ostringstream text, quads, cells;
  text << "MeshVersionFormatted 2\n# a comment\nDimension 3\nVertices\n" << grid.n_vertices() << '\n';
  for (std::size_t v = 0; v < grid.n_vertices(); ++v)
    text << coordinates(grid, v, ' ') << " 0\n";
  std::size_t n_quads = 0;
  for_boundary(grid, [&](unsigned id, auto const& nodes) {
    quads << list(nodes) << ' ' << id << '\n';
    ++n_quads;
  });
  for_cells(grid, [&](unsigned id, auto const& nodes) { cells << list(nodes) << ' ' << id << '\n'; });
  text << "Edges\n1\n1 2 7\nQuadrilaterals\n"
       << n_quads << '\n'
       << quads.str() << "Hexahedra\n"
       << grid.n_active_cells() << '\n'
       << cells.str() << "End\n";
  return text.str();
}

std::string from_zero(std::vector<unsigned> nodes) {
  for (unsigned& node : nodes)
    --node;
  return list(nodes);
}

std::string mfem(Grid const& grid) {
  std::ostringstream text, quads;
  std::size_t n_quads = 0;
  for_boundary(grid, [&](unsigned id, auto const& nodes) {
    quads << id << " 3 " << from_zero(nodes) << '\n';
    ++n_quads;
  });
  text << "MFEM mesh v1.0\n\n# a comment\n\ndimension\n3\n\nelements\n" << grid.n_active_cells() << '\n';
  for_cells(grid, [&](unsigned id, auto const& nodes) { text << id << " 5 " << from_zero(nodes) << '\n'; });
  text << "\nboundary\n" << n_quads << '\n' << quads.str() << "\nvertices\n" << grid.n_vertices() << "\n3\n";
  for (std::size_t v = 0; v < grid.n_vertices(); ++v)
    text << coordinates(grid, v, ' ') << '\n';
  return text.str();
}

std::string gmsh_1(Grid const& grid) {
  std::ostringstream text, elements;
  text << "$NOD\n" << grid.n_vertices() << '\n';
  for (std::size_t v = 0; v < grid.n_vertices(); ++v)
    text << v + 1 << ' ' << coordinates(grid, v, ' ') << '\n';
  unsigned n = 0;
  for_boundary(
      grid, [&](unsigned id, auto const& nodes) { elements << ++n << " 3 " << id << ' ' << id << " 4 " << list(nodes) << '\n'; });
  for_cells(grid,
            [&](unsigned id, auto const& nodes) { elements << ++n << " 5 " << id << ' ' << id << " 8 " << list(nodes) << '\n'; });
  text << "$ENDNOD\n$ELM\n" << n << '\n' << elements.str() << "$ENDELM\n";
  return text.str();
}

/// Bytes of numbers, in the order of this machine or, `swapped`, the other one.
class Bytes {
public:
  explicit Bytes(bool swapped) : swapped_(swapped) {}
  template <class T>
  Bytes& operator<<(T value) {
    std::string bytes(sizeof value, '\0');
    std::memcpy(bytes.data(), &value, sizeof value);
    if (swapped_)
      std::reverse(bytes.begin(), bytes.end());
    text_ += bytes;
    return *this;
  }
  [[nodiscard]] std::string const& text() const { return text_; }

private:
  std::string text_;
  bool swapped_;
};

/// Version 2.2: one block for each element, with two tags.
std::string gmsh_22_binary(Grid const& grid, bool swapped) {
  Bytes one(swapped), nodes(swapped), elements(swapped);
  one << std::int32_t{1};
  for (std::size_t v = 0; v < grid.n_vertices(); ++v) {
    nodes << static_cast<std::int32_t>(v + 1);
    for (unsigned d = 0; d < 3; ++d)
      nodes << grid.get_vertices()[v][d];
  }
  std::int32_t n = 0;
  auto const add = [&](std::int32_t type) {
    return [&, type](unsigned id, std::vector<unsigned> const& of_element) {
      elements << type << std::int32_t{1} << std::int32_t{2} << ++n << static_cast<std::int32_t>(id) << std::int32_t{9};
      for (unsigned const node : of_element)
        elements << static_cast<std::int32_t>(node);
    };
  };
  for_boundary(grid, add(3));
  for_cells(grid, add(5));
  return "$MeshFormat\n2.2 1 8\n" + one.text() + "\n$EndMeshFormat\n$Nodes\n" + std::to_string(grid.n_vertices()) + "\n" +
         nodes.text() + "\n$EndNodes\n$Elements\n" + std::to_string(n) + "\n" + elements.text() + "\n$EndElements\n";
}

/// Version 4.0 or 4.1, one entity for each id.
std::string gmsh_4_binary(Grid const& grid, bool version_41) {
  Bytes one(false), entities(false), nodes(false), elements(false);
  one << std::int32_t{1};
  std::map<unsigned, std::vector<std::vector<unsigned>>> surfaces, volumes;
  for_boundary(grid, [&](unsigned id, auto const& of_face) { surfaces[id].push_back(of_face); });
  for_cells(grid, [&](unsigned id, auto const& of_cell) { volumes[id].push_back(of_cell); });
  entities << std::uint64_t{0} << std::uint64_t{0} << std::uint64_t{surfaces.size()} << std::uint64_t{volumes.size()};
  for (auto const& group : {surfaces, volumes})
    for (auto const& [id, of_group] : group) {
      entities << static_cast<std::int32_t>(id + 100);
      for (double const x : {0., 0., 0., 2., 1., 1.})
        entities << x;
      entities << std::uint64_t{1} << static_cast<std::int32_t>(id) << std::uint64_t{0};
    }
  std::uint64_t const n = grid.n_vertices();
  std::int32_t const volume = static_cast<std::int32_t>(volumes.begin()->first + 100);
  nodes << std::uint64_t{1} << n;
  if (version_41)
    nodes << std::uint64_t{1} << n << std::int32_t{3} << volume;
  else
    nodes << volume << std::int32_t{3};
  nodes << std::int32_t{0} << n;
  for (std::uint64_t v = 0; v < n; ++v)
    if (version_41)
      nodes << v + 1;
  for (std::uint64_t v = 0; v < n; ++v) {
    if (!version_41)
      nodes << static_cast<std::int32_t>(v + 1);
    for (unsigned d = 0; d < 3; ++d)
      nodes << grid.get_vertices()[v][d];
  }
  std::uint64_t const all = grid.n_active_cells() + [&] {
    std::uint64_t faces = 0;
    for (auto const& [id, of_group] : surfaces)
      faces += of_group.size();
    return faces;
  }();
  elements << std::uint64_t{surfaces.size() + volumes.size()} << all;
  if (version_41)
    elements << std::uint64_t{1} << all;
  std::uint64_t number = 0;
  auto const add = [&](auto const& groups, std::int32_t dimension, std::int32_t type) {
    for (auto const& [id, of_group] : groups) {
      auto const tag = static_cast<std::int32_t>(id + 100);
      elements << (version_41 ? dimension : tag) << (version_41 ? tag : dimension) << type << std::uint64_t{of_group.size()};
      for (auto const& of_element : of_group) {
        if (version_41)
          elements << ++number;
        else
          elements << static_cast<std::int32_t>(++number);
        for (unsigned const node : of_element)
          if (version_41)
            elements << std::uint64_t{node};
          else
            elements << static_cast<std::int32_t>(node);
      }
    }
  };
  add(surfaces, 2, 3);
  add(volumes, 3, 5);
  return std::string("$MeshFormat\n") + (version_41 ? "4.1" : "4") + " 1 8\n" + one.text() + "\n$EndMeshFormat\n$Entities\n" +
         entities.text() + "\n$EndEntities\n$Nodes\n" + nodes.text() + "\n$EndNodes\n$Elements\n" + elements.text() +
         "\n$EndElements\n";
}

/// Cells and faces with their ids as an unstructured grid.
vtkSmartPointer<vtkUnstructuredGrid> as_vtk(Grid const& grid) {
  vtkNew<vtkUnstructuredGrid> result;
  vtkNew<vtkPoints> points;
  points->SetDataTypeToDouble();
  for (auto const& v : grid.get_vertices())
    points->InsertNextPoint(v[0], v[1], v[2]);
  result->SetPoints(points);
  vtkNew<vtkIntArray> ids;
  ids->SetName("material");
  auto const add = [&](int type) {
    return [&, type](unsigned id, std::vector<unsigned> const& nodes) {
      std::vector<vtkIdType> numbers;
      for (unsigned const node : nodes)
        numbers.push_back(node - 1);
      result->InsertNextCell(type, static_cast<vtkIdType>(numbers.size()), numbers.data());
      ids->InsertNextValue(static_cast<int>(id));
    };
  };
  for_cells(grid, add(VTK_HEXAHEDRON));
  for_boundary(grid, add(VTK_QUAD));
  vtkNew<vtkDoubleArray> other;  // readers must pass over it
  other->SetName("pressure");
  other->SetNumberOfComponents(3);
  other->SetNumberOfTuples(ids->GetNumberOfTuples());
  other->Fill(0.5);
  result->GetCellData()->AddArray(other);
  result->GetCellData()->AddArray(ids);
  return result;
}

std::string legacy_vtk(vtkUnstructuredGrid* grid, bool binary, bool version_42) {
  vtkNew<vtkUnstructuredGridWriter> writer;
  writer->SetInputData(grid);
  writer->SetWriteToOutputString(true);
  writer->SetFileVersion(version_42 ? vtkDataWriter::VTK_LEGACY_READER_VERSION_4_2 : vtkDataWriter::VTK_LEGACY_READER_VERSION_5_1);
  binary ? writer->SetFileTypeToBinary() : writer->SetFileTypeToASCII();
  writer->Write();
  return writer->GetOutputStdString();
}

std::string vtu(vtkUnstructuredGrid* grid, bool ascii) {
  vtkNew<vtkXMLUnstructuredGridWriter> writer;
  writer->SetInputData(grid);
  writer->WriteToOutputStringOn();
  ascii ? writer->SetDataModeToAscii() : writer->SetDataModeToAppended();
  writer->Write();
  return writer->GetOutputString();
}

/// A list of elements with ids: by block of one id.
using Blocks = std::map<unsigned, std::vector<std::vector<unsigned>>>;

void write_exodus(std::string const& path, std::vector<dealii::Point<3>> const& nodes, Blocks const& blocks, char const* type,
                  std::map<unsigned, std::vector<std::pair<int, int>>> const& sides, int format) {
  int file = 0;
  auto const check = [](int status) { ASSERT_EQ(status, NC_NOERR) << nc_strerror(status); };
  check(nc_create(path.c_str(), NC_CLOBBER | format, &file));
  auto const dimension = [&](std::string const& name, std::size_t length) {
    int id = 0;
    check(nc_def_dim(file, name.c_str(), length, &id));
    return id;
  };
  auto const variable = [&](std::string const& name, nc_type kind, std::vector<int> const& dimensions) {
    int id = 0;
    check(nc_def_var(file, name.c_str(), kind, static_cast<int>(dimensions.size()), dimensions.data(), &id));
    return id;
  };
  dimension("num_dim", 3);
  int const n_nodes = dimension("num_nodes", nodes.size()), length = dimension("len_name", 16);
  int const n_blocks = dimension("num_el_blk", blocks.size()), n_sets = dimension("num_side_sets", sides.size());
  std::array<int, 3> coordinates{};
  for (std::size_t d = 0; d < 3; ++d)
    coordinates[d] = variable(std::string("coord") + "xyz" [d], NC_DOUBLE, { n_nodes });
  int const block_ids = variable("eb_prop1", NC_INT, {n_blocks}), set_ids = variable("ss_prop1", NC_INT, {n_sets});
  int const block_names = variable("eb_names", NC_CHAR, {n_blocks, length});
  std::vector<std::array<int, 2>> connects, sets;
  int number = 0;
  for (auto const& [id, elements] : blocks) {
    std::string const n = std::to_string(++number);
    int const connect =
        variable("connect" + n, NC_INT,
                 {dimension("num_el_in_blk" + n, elements.size()), dimension("num_nod_per_el" + n, elements[0].size())});
    check(nc_put_att_text(file, connect, "elem_type", std::strlen(type), type));
    connects.push_back({connect, static_cast<int>(id)});
  }
  number = 0;
  for (auto const& [id, of_set] : sides) {
    std::string const n = std::to_string(++number);
    int const size = dimension("num_side_ss" + n, of_set.size());
    int const elements = variable("elem_ss" + n, NC_INT, {size});
    sets.push_back({elements, variable("side_ss" + n, NC_INT, {size})});
  }
  check(nc_enddef(file));
  for (unsigned d = 0; d < 3; ++d) {
    std::vector<double> x;
    for (auto const& node : nodes)
      x.push_back(node[d]);
    check(nc_put_var_double(file, coordinates[d], x.data()));
  }
  std::size_t index = 0;
  for (auto const& [id, elements] : blocks) {
    std::vector<int> all;
    for (auto const& element : elements)
      all.insert(all.end(), element.begin(), element.end());
    check(nc_put_var_int(file, connects[index][0], all.data()));
    check(nc_put_var1_int(file, block_ids, &index, &connects[index][1]));
    std::string const name = "part " + std::to_string(id);
    std::array<std::size_t, 2> const start{index++, 0}, count{1, name.size()};
    check(nc_put_vara_text(file, block_names, start.data(), count.data(), name.c_str()));
  }
  index = 0;
  for (auto const& [id, of_set] : sides) {
    std::vector<int> elements, side_numbers;
    for (auto const& [element, side] : of_set) {
      elements.push_back(element);
      side_numbers.push_back(side);
    }
    int const as_int = static_cast<int>(id);
    check(nc_put_var_int(file, sets[index][0], elements.data()));
    check(nc_put_var_int(file, sets[index][1], side_numbers.data()));
    check(nc_put_var1_int(file, set_ids, &index, &as_int));
    ++index;
  }
  check(nc_close(file));
}

void write_exodus(std::string const& path, Grid const& grid, int format) {
  static constexpr std::array<int, 6> side_of_face{4, 2, 1, 3, 5, 6};
  Blocks blocks;
  for_cells(grid, [&](unsigned id, auto const& nodes) { blocks[id].push_back(nodes); });
  // Elements are counted through the blocks.
  std::map<unsigned, int> next;
  int begin = 1;
  for (auto const& [id, elements] : blocks) {
    next[id] = begin;
    begin += static_cast<int>(elements.size());
  }
  std::map<unsigned, std::vector<std::pair<int, int>>> sides;
  for (auto const& cell : grid.active_cell_iterators()) {
    int const number = next[cell->material_id()]++;
    for (unsigned const f : cell->face_indices())
      if (cell->at_boundary(f))
        sides[cell->face(f)->boundary_id()].emplace_back(number, side_of_face[f]);
  }
  write_exodus(path, grid.get_vertices(), blocks, "HEX8", sides, format);
}

std::string compressed(std::string const& text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string result(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(result.data());
  stream.avail_out = static_cast<uInt>(result.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  result.resize(stream.total_out);
  deflateEnd(&stream);
  return result;
}

using MeshFormats = MeshFiles;

TEST_F(MeshFormats, EveryFormatKeepsGeometryAndIds) {
  Grid block;
  make_block(block, 2);
  Description const expected = describe(block, 1e-6);
  auto const grid = as_vtk(block);
  std::vector<std::string> paths{
      write("medit.mesh", medit(block)),
      write("mfem.mesh", mfem(block)),
      write("one.msh", gmsh_1(block)),
      write("little.msh", gmsh_22_binary(block, false)),
      write("big.msh", gmsh_22_binary(block, true)),
      write("40.msh", gmsh_4_binary(block, false)),
      write("41.msh", gmsh_4_binary(block, true)),
      write("text.vtk", legacy_vtk(grid, false, false)),
      write("old.vtk", legacy_vtk(grid, false, true)),
      write("binary.vtk", legacy_vtk(grid, true, false)),
      write("oldbinary.vtk", legacy_vtk(grid, true, true)),
      write("text.vtu", vtu(grid, true)),
      write("binary.vtu", vtu(grid, false)),
      write("packed.msh.gz", compressed(gmsh_22(block))),
      write("parts.msh.gz", compressed(gmsh_22(block).substr(0, 300)) + compressed(gmsh_22(block).substr(300))),
      write("packed.inp.GZ", compressed(abaqus(block))),
      write("packed.vtk.gz", compressed(legacy_vtk(grid, true, false)))};
  for (int const format : {0, NC_64BIT_OFFSET, NC_NETCDF4})
    write_exodus(paths.emplace_back((folder_ / ("exodus" + std::to_string(format) + ".exo")).string()), block, format);
  paths.push_back(write("packed.e.gz", compressed(content_of(folder_ / "exodus0.exo"))));
  for (auto const& path : paths) {
    SCOPED_TRACE(path);
    Mesh const mesh = read(path);
    EXPECT_EQ(describe(*mesh.triangulation, 1e-6), expected);
    EXPECT_EQ(mesh.boundary_ids, (std::set<unsigned>{1, 2, 3}));
    EXPECT_EQ(mesh.material_ids, (std::set<unsigned>{1, 2}));
    EXPECT_TRUE(mesh.notes.empty());
    EXPECT_FALSE(mesh.curved);
    EXPECT_EQ(mesh.material_groups.with_name("part 2") == std::set<unsigned>{2},
              path.find("exodus") != std::string::npos || path.find(".e.gz") != std::string::npos);
  }
}

TEST_F(MeshFormats, InlineMeshOfMfem) {
  Mesh const mesh =
      read(write("a.mesh", "MFEM INLINE mesh v1.0\n\ntype = hex\nnx = 2\nny = 3\nnz = 4\nsx = 1.0\nsy = 1.5\nsz = 8\n"));
  EXPECT_EQ(mesh.triangulation->n_active_cells(), 24u);
  std::map<unsigned, dealii::Point<3>> centres;
  for (auto const& [place, id] : describe(*mesh.triangulation, 1e-6).faces)
    centres[id] = dealii::Point<3>(1e-6 * static_cast<double>(place[0]), 1e-6 * static_cast<double>(place[1]),
                                   1e-6 * static_cast<double>(place[2]));
  EXPECT_NEAR(centres.at(1)[2], 0, 1e-9);
  EXPECT_NEAR(centres.at(2)[1], 0, 1e-9);
  EXPECT_NEAR(centres.at(3)[0], 1, 1e-9);
  EXPECT_NEAR(centres.at(4)[1], 1.5, 1e-9);
  EXPECT_NEAR(centres.at(5)[0], 0, 1e-9);
  EXPECT_NEAR(centres.at(6)[2], 8, 1e-9);
}

TEST_F(MeshFormats, SectionsOfMeditThatSayNothingAboutTheMesh) {
  Grid block;
  make_block(block, 2);
  Description const expected = describe(block, 1e-6);
  std::string const plain = medit(block);
  auto const with = [&](std::string const& before, std::string const& more) {
    std::string text = plain;
    text.insert(text.find(before), more);
    return read(write("a.mesh", text));
  };
  for (std::string const more :
       {"SubDomainFromMesh\n1\n3 1 1 1\n", "VertexOnGeometricVertex\n2\n1 1\n2 2\n",
        "Identifier \"a name\"\nGeometry\n\"b.geom\"\n", "VertexOnGeometricEdge\n1\n1 2 0.25e0\n",
        "RequiredVertices # of the user\n1 # one\n4\n", "NormalAtVertices\n1\n1 1\n", "Normals\n1\n0 0 1\n"}) {
    Mesh const mesh = with("Edges", more);
    EXPECT_EQ(describe(*mesh.triangulation, 1e-6), expected) << more;
    EXPECT_TRUE(mesh.notes.empty()) << more;
  }
  Mesh const unknown = with("Edges", "ExtraVerticesAtHexahedra\n1\n1 1 9\n");
  EXPECT_EQ(describe(*unknown.triangulation, 1e-6), expected);
  ASSERT_EQ(unknown.notes.size(), 1u);
  EXPECT_NE(unknown.notes[0].find("EXTRAVERTICESATHEXAHEDRA"), std::string::npos) << unknown.notes[0];
  Mesh const triangles = with("Edges", "Triangles\n2\n1 2 3 7\n1 2 4 7\n");
  ASSERT_EQ(triangles.notes.size(), 1u);
  EXPECT_NE(triangles.notes[0].find("2 faces of type triangle"), std::string::npos) << triangles.notes[0];
  // Other names of the same sections, and comments behind numbers.
  std::string other = plain;
  for (auto const& [from, to] :
       {std::pair("Quadrilaterals", "QUADS"), std::pair("Vertices\n", "Vertices # all\n"), std::pair(" 0\n", " 0 # x\n")})
    other.replace(other.find(from), std::string(from).size(), to);
  EXPECT_EQ(describe(*read(write("b.mesh", other)).triangulation, 1e-6), expected);
  // Cut off: what a count promises is missing; behind all counts, a note.
  expect_error(write("c.mesh", plain.substr(0, plain.rfind("\nEnd") - 12)), "a number of a vertex, or a reference");
  Mesh const cut = read(write("d.mesh", plain.substr(0, plain.rfind("\nEnd"))));
  ASSERT_EQ(cut.notes.size(), 1u);
  EXPECT_NE(cut.notes[0].find("cut off"), std::string::npos) << cut.notes[0];
  for (char const* const more : {"HexahedraQ2\n1\n1 2 3\n", "IncludeFile \"more.mesh\"\n", "HexahedraQ3\n1\n1 2 3\n", "7\n"}) {
    std::string text = plain;
    text.insert(text.find("Edges"), more);
    error_of(write("e.mesh", text));
  }
}

TEST_F(MeshFormats, SetsOfAttributesOfMfem) {
  Grid block;
  make_block(block, 2);
  std::string text = mfem(block);
  text.replace(text.find("v1.0"), 4, "v1.3");
  text.insert(text.find("\nboundary"), "\nattribute_sets\n2\n\"all of it\"\n2\n1 2\nleft\n1\n1\n");
  text.insert(text.find("\nvertices"), "\nbdr_attribute_sets\n1\n\"the \\\"ends\\\"\"\n2\n1 2\n");
  MeshText content("a.mesh", text + "\nmfem_mesh_end\n");
  RawMesh const raw = read_mfem(content);
  ASSERT_EQ(raw.cell_groups.size(), 2u);
  EXPECT_EQ(raw.cell_groups[0].name, "all of it");
  EXPECT_EQ(raw.cell_groups[0].members.size(), 16u);
  EXPECT_EQ(raw.cell_groups[1].name, "left");
  EXPECT_EQ(raw.cell_groups[1].members.size(), 8u);
  for (std::size_t const c : raw.cell_groups[1].members)
    EXPECT_EQ(raw.cells[c].material, 1);
  ASSERT_EQ(raw.quad_groups.size(), 1u);
  EXPECT_EQ(raw.quad_groups[0].name, "the \"ends\"");
  EXPECT_EQ(raw.quad_groups[0].members.size(), 8u);
  for (std::size_t const q : raw.quad_groups[0].members)
    EXPECT_TRUE(raw.quads[q].boundary == 1 || raw.quads[q].boundary == 2);
  Mesh const mesh = read(write("a.mesh", text + "\nmfem_mesh_end\n"));
  EXPECT_EQ(mesh.triangulation->n_active_cells(), 16u);
  expect_error(write("b.mesh", text), "before mfem_mesh_end");
  expect_error(write("c.mesh", text + "\nmfem_serial_mesh_end\n"), "SaveAsOne");
  std::string v12 = mfem(block);
  v12.replace(v12.find("v1.0"), 4, "v1.2");
  EXPECT_EQ(describe(*read(write("d.mesh", v12 + "\nmfem_mesh_end\n")).triangulation, 1e-6), describe(block, 1e-6));
  std::string const v10 = mfem(block);
  Mesh const cut = read(write("e.mesh", v10.substr(0, v10.size() - 1)));
  ASSERT_EQ(cut.notes.size(), 1u);
  EXPECT_NE(cut.notes[0].find("no end"), std::string::npos);
}

TEST_F(MeshFormats, LeftHandedCellsAreTurnedWithANote) {
  Grid block;
  make_block(block, 1);
  Grid mirrored;
  std::string text = gmsh_22(block);
  // z -> -z turns every cell over.
  std::istringstream in(text);
  std::ostringstream out;
  std::string line;
  bool nodes = false;
  while (std::getline(in, line)) {
    if (line == "$Nodes" || line == "$EndNodes")
      nodes = line == "$Nodes";
    std::istringstream words(line);
    double number = 0, x = 0, y = 0, z = 0;
    if (nodes && words >> number >> x >> y >> z)
      out << number << ' ' << x << ' ' << y << ' ' << -z << '\n';
    else
      out << line << '\n';
  }
  Mesh const mesh = read(write("a.msh", out.str()));
  ASSERT_EQ(mesh.notes.size(), 1u);
  EXPECT_NE(mesh.notes[0].find("2 of 2 cells are left-handed"), std::string::npos);
  double volume = 0;
  for (auto const& cell : mesh.triangulation->active_cell_iterators())
    volume += cell->measure();
  EXPECT_NEAR(volume, 2, 1e-12);
}

// --------------------------------------------------------------------------------------------------------------- curved cells

/// A map that polynomials of order p describe exactly, for p = 2 also those with nodes on corners and edges only.
dealii::Point<3> bent(dealii::Point<3> const& x, int order) {
  dealii::Point<3> result(x[0] + 0.1 * x[1] * x[1] - 0.05 * x[2], x[1] + 0.05 * x[0] * x[2], x[2] + 0.1 * x[0] * x[0]);
  if (order >= 3)
    result[1] += 0.02 * x[0] * x[0] * x[0];
  if (order >= 4)
    result[2] -= 0.01 * x[1] * x[1] * x[1] * x[1];
  return result;
}

/// A format's list of the nodes of a cell: their places in [0, 1]^3.
using NodePlaces = std::vector<dealii::Point<3>>;

NodePlaces places_of(double const* parametric, int n) {
  NodePlaces places;
  for (int i = 0; i < n; ++i)
    places.emplace_back(parametric[3 * i], parametric[3 * i + 1], parametric[3 * i + 2]);
  return places;
}
NodePlaces lagrange_places(int order) {
  vtkNew<vtkLagrangeHexahedron> cell;
  int const n = (order + 1) * (order + 1) * (order + 1);
  cell->GetPointIds()->SetNumberOfIds(n);
  cell->GetPoints()->SetNumberOfPoints(n);
  cell->SetOrder(order, order, order);
  return places_of(cell->GetParametricCoords(), n);
}
NodePlaces quadratic_places(bool complete) {
  if (complete)
    return places_of(vtkNew<vtkTriQuadraticHexahedron>()->GetParametricCoords(), 27);
  return places_of(vtkNew<vtkQuadraticHexahedron>()->GetParametricCoords(), 20);
}

/// Two bent cells side by side, the second one turned: its frame's x is the block's z. Nodes that they share are there once.
struct BentCells {
  std::vector<dealii::Point<3>> nodes;
  std::vector<std::vector<unsigned>> cells;  ///< numbers of nodes, from 1

  BentCells(NodePlaces const& places, int order) {
    std::map<std::array<long, 3>, unsigned> known;
    for (int const c : {0, 1}) {
      cells.emplace_back();
      for (auto const& p : places) {
        dealii::Point<3> const x = c == 0 ? p : dealii::Point<3>(1 + p[1], p[2], p[0]);
        std::array<long, 3> const key{std::lround(1e6 * x[0]), std::lround(1e6 * x[1]), std::lround(1e6 * x[2])};
        auto const [at, fresh] = known.emplace(key, static_cast<unsigned>(nodes.size() + 1));
        if (fresh)
          nodes.push_back(bent(x, order));
        cells.back().push_back(at->second);
      }
    }
  }
};

std::string gmsh_bent(BentCells const& bent_cells, int type) {
  std::ostringstream text;
  text << std::setprecision(17) << "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n" << bent_cells.nodes.size() << '\n';
  for (std::size_t v = 0; v < bent_cells.nodes.size(); ++v)
    text << v + 1 << ' ' << bent_cells.nodes[v] << '\n';
  text << "$EndNodes\n$Elements\n2\n";
  for (std::size_t c = 0; c < 2; ++c)
    text << c + 1 << ' ' << type << " 2 1 1 " << list(bent_cells.cells[c]) << '\n';
  text << "$EndElements\n";
  return text.str();
}

std::string abaqus_bent(BentCells const& bent_cells) {
  std::ostringstream text;
  text << std::setprecision(17) << "*NODE\n";
  for (std::size_t v = 0; v < bent_cells.nodes.size(); ++v)
    text << v + 1 << ", " << bent_cells.nodes[v][0] << ", " << bent_cells.nodes[v][1] << ", " << bent_cells.nodes[v][2] << '\n';
  text << "*ELEMENT, TYPE=C3D" << bent_cells.cells[0].size() << (bent_cells.cells[0].size() == 20 ? "R" : "") << "\n";
  for (std::size_t c = 0; c < 2; ++c) {
    // Sixteen numbers in a line at most.
    text << c + 1;
    for (std::size_t i = 0; i < bent_cells.cells[c].size(); ++i)
      text << (i % 12 == 11 ? ",\n" : ", ") << bent_cells.cells[c][i];
    text << '\n';
  }
  return text.str();
}

vtkSmartPointer<vtkUnstructuredGrid> vtk_bent(BentCells const& bent_cells, int type) {
  vtkNew<vtkUnstructuredGrid> grid;
  vtkNew<vtkPoints> points;
  points->SetDataTypeToDouble();
  for (auto const& x : bent_cells.nodes)
    points->InsertNextPoint(x[0], x[1], x[2]);
  grid->SetPoints(points);
  for (auto const& cell : bent_cells.cells) {
    std::vector<vtkIdType> numbers;
    for (unsigned const node : cell)
      numbers.push_back(node - 1);
    grid->InsertNextCell(type, static_cast<vtkIdType>(numbers.size()), numbers.data());
  }
  return grid;
}

/// Every cell with nodes of its own, at Gauss-Lobatto points.
std::string mfem_bent_l2(int order, bool by_node) {
  BentCells const corners(NodePlaces{{0, 0, 0}, {1, 0, 0}, {1, 1, 0}, {0, 1, 0}, {0, 0, 1}, {1, 0, 1}, {1, 1, 1}, {0, 1, 1}},
                          order);
  std::ostringstream text;
  text << std::setprecision(17) << "MFEM mesh v1.0\ndimension\n3\nelements\n2\n1 5 " << from_zero(corners.cells[0]) << "\n1 5 "
       << from_zero(corners.cells[1])
       << "\nboundary\n0\nvertices\n12\n\nnodes\nFiniteElementSpace\nFiniteElementCollection: L2_T1_3D_P" << order
       << "\nVDim: 3\nOrdering: " << by_node << "\n\n";
  dealii::QGaussLobatto<1> const rule(static_cast<unsigned>(order + 1));
  NodePlaces nodes;
  for (int const c : {0, 1})
    for (auto const& z : rule.get_points())
      for (auto const& y : rule.get_points())
        for (auto const& x : rule.get_points())
          nodes.push_back(bent(c == 0 ? dealii::Point<3>(x[0], y[0], z[0]) : dealii::Point<3>(1 + y[0], z[0], x[0]), order));
  if (by_node) {
    for (auto const& x : nodes)
      text << x << '\n';
  } else {
    for (unsigned d = 0; d < 3; ++d)
      for (auto const& x : nodes)
        text << x[d] << '\n';
  }
  return text.str();
}

/// One cell in the space H1: corners, edges from the lower to the higher vertex, faces in their own frames, the inside. `cubic`: in
/// the older space of order 3, whose nodes are equidistant, and those inside go around the bottom, then around the top.
std::string mfem_bent_h1(int order, bool cubic = false) {
  dealii::QGaussLobatto<1> const rule(static_cast<unsigned>(order + 1));
  std::vector<double> t;
  for (auto const& x : rule.get_points())
    t.push_back(x[0]);
  if (cubic)
    t = {0, 1. / 3, 2. / 3, 1};
  std::array<dealii::Point<3>, 8> const corner{
      dealii::Point<3>(0, 0, 0), {1, 0, 0}, {1, 1, 0}, {0, 1, 0}, {0, 0, 1}, {1, 0, 1}, {1, 1, 1}, {0, 1, 1}};
  NodePlaces nodes(corner.begin(), corner.end());
  auto const between = [](dealii::Point<3> const& a, dealii::Point<3> const& b, double s) { return a + s * (b - a); };
  for (auto const& [a, b] : std::array<std::array<std::size_t, 2>, 12>{
           {{0, 1}, {1, 2}, {2, 3}, {0, 3}, {4, 5}, {5, 6}, {6, 7}, {4, 7}, {0, 4}, {1, 5}, {2, 6}, {3, 7}}})
    for (int i = 1; i < order; ++i)
      nodes.push_back(between(corner[a], corner[b], t[static_cast<std::size_t>(i)]));
  for (auto const& f : std::array<std::array<std::size_t, 4>, 6>{
           {{3, 2, 1, 0}, {0, 1, 5, 4}, {1, 2, 6, 5}, {2, 3, 7, 6}, {3, 0, 4, 7}, {4, 5, 6, 7}}})
    for (int j = 1; j < order; ++j)
      for (int i = 1; i < order; ++i)
        nodes.push_back(corner[f[0]] + t[static_cast<std::size_t>(i)] * (corner[f[1]] - corner[f[0]]) +
                        t[static_cast<std::size_t>(j)] * (corner[f[3]] - corner[f[0]]));
  for (int k = 1; k < order; ++k)
    for (int j = 1; j < order; ++j)
      for (int i = 1; i < order; ++i)
        nodes.emplace_back(t[static_cast<std::size_t>(cubic && j == 2 ? 3 - i : i)], t[static_cast<std::size_t>(j)],
                           t[static_cast<std::size_t>(k)]);
  std::ostringstream text;
  text << std::setprecision(17)
       << "MFEM mesh v1.0\ndimension\n3\nelements\n1\n1 5 0 1 2 3 4 5 6 7\nboundary\n0\nvertices\n8\n\nnodes\nFiniteElementSpace\n"
          "FiniteElementCollection: "
       << (cubic ? "Cubic" : "H1_3D_P" + std::to_string(order)) << "\nVDim: 3\nOrdering: 1\n\n";
  for (auto const& x : nodes)
    text << bent(x, order) << '\n';
  return text.str();
}

std::set<std::array<long, 3>> rounded(std::vector<dealii::Point<3>> const& points) {
  std::set<std::array<long, 3>> result;
  for (auto const& x : points)
    result.insert({std::lround(1e7 * x[0]), std::lround(1e7 * x[1]), std::lround(1e7 * x[2])});
  return result;
}

/// The nodes of the mesh after one refinement, of elements of order 2, are the images of those of the straight one.
void expect_bent(std::string const& path, int order, int cells = 2) {
  SCOPED_TRACE(path);
  Mesh const mesh = read(path);
  ASSERT_TRUE(mesh.curved_cells.has_value());
  EXPECT_TRUE(mesh.curved);
  EXPECT_EQ(mesh.curved_cells->order, order);
  LatticeMesh const lattices(mesh, 1, {0, 0.5, 1});
  ASSERT_EQ(lattices.obstacle, "");
  std::vector<dealii::Point<3>> found, expected;
  for (std::int32_t l = 0; l < lattices.n_lattices(); ++l)
    for (std::size_t i = 0; i < lattices.coordinates(l, 0).size(); ++i)
      found.emplace_back(lattices.coordinates(l, 0)[i], lattices.coordinates(l, 1)[i], lattices.coordinates(l, 2)[i]);
  for (int k = 0; k <= 4; ++k)
    for (int j = 0; j <= 4; ++j)
      for (int i = 0; i <= 4 * cells; ++i)
        expected.push_back(bent({0.25 * i, 0.25 * j, 0.25 * k}, order));
  EXPECT_EQ(rounded(found), rounded(expected));
}

TEST_F(MeshFormats, CurvedCellsOfOrderTwo) {
  // Corners, then edges and faces as the formats' manuals list them, by the corners around them.
  NodePlaces const corners{{0, 0, 0}, {1, 0, 0}, {1, 1, 0}, {0, 1, 0}, {0, 0, 1}, {1, 0, 1}, {1, 1, 1}, {0, 1, 1}};
  auto const middles = [&](std::vector<std::vector<std::size_t>> const& of) {
    NodePlaces places = corners;
    for (auto const& entity : of) {
      dealii::Point<3> sum;
      for (std::size_t const v : entity)
        sum += corners[v];
      places.emplace_back(sum / static_cast<double>(entity.size()));
    }
    return places;
  };
  std::vector<std::vector<std::size_t>> gmsh{{0, 1}, {0, 3}, {0, 4}, {1, 2}, {1, 5}, {2, 3},
                                             {2, 6}, {3, 7}, {4, 5}, {4, 7}, {5, 6}, {6, 7}};
  expect_bent(write("20.msh", gmsh_bent({middles(gmsh), 2}, 17)), 2);
  for (auto const& face : std::vector<std::vector<std::size_t>>{
           {0, 1, 2, 3}, {0, 1, 4, 5}, {0, 3, 4, 7}, {1, 2, 5, 6}, {2, 3, 6, 7}, {4, 5, 6, 7}, {0, 1, 2, 3, 4, 5, 6, 7}})
    gmsh.push_back(face);
  expect_bent(write("27.msh", gmsh_bent({middles(gmsh), 2}, 12)), 2);

  std::vector<std::vector<std::size_t>> abaqus{{0, 1}, {1, 2}, {2, 3}, {3, 0}, {4, 5}, {5, 6},
                                               {6, 7}, {7, 4}, {0, 4}, {1, 5}, {2, 6}, {3, 7}};
  expect_bent(write("20.inp", abaqus_bent({middles(abaqus), 2})), 2);
  for (auto const& face : std::vector<std::vector<std::size_t>>{
           {0, 1, 2, 3, 4, 5, 6, 7}, {0, 1, 2, 3}, {4, 5, 6, 7}, {0, 1, 4, 5}, {1, 2, 5, 6}, {2, 3, 6, 7}, {3, 0, 7, 4}})
    abaqus.push_back(face);
  expect_bent(write("27.inp", abaqus_bent({middles(abaqus), 2})), 2);

  std::vector<std::vector<std::size_t>> exodus{{0, 1}, {1, 2}, {2, 3}, {3, 0}, {0, 4}, {1, 5},
                                               {2, 6}, {3, 7}, {4, 5}, {5, 6}, {6, 7}, {7, 4}};
  auto const as_exodus = [&](char const* name, char const* type) {
    BentCells const cells(middles(exodus), 2);
    std::string const path = (folder_ / name).string();
    write_exodus(path, cells.nodes, {{1, cells.cells}}, type, {}, 0);
    return path;
  };
  expect_bent(as_exodus("20.exo", "HEX20"), 2);
  for (auto const& face : std::vector<std::vector<std::size_t>>{
           {0, 1, 2, 3, 4, 5, 6, 7}, {0, 1, 2, 3}, {4, 5, 6, 7}, {0, 3, 4, 7}, {1, 2, 5, 6}, {0, 1, 4, 5}, {2, 3, 6, 7}})
    exodus.push_back(face);
  expect_bent(as_exodus("27.exo", "HEX"), 2);

  expect_bent(write("20.vtk", legacy_vtk(vtk_bent({quadratic_places(false), 2}, VTK_QUADRATIC_HEXAHEDRON), true, false)), 2);
  expect_bent(write("27.vtu", vtu(vtk_bent({quadratic_places(true), 2}, VTK_TRIQUADRATIC_HEXAHEDRON), false)), 2);
}

TEST_F(MeshFormats, CurvedCellsOfAnyOrder) {
  for (int const order : {2, 3, 4}) {
    auto const grid = vtk_bent({lagrange_places(order), order}, VTK_LAGRANGE_HEXAHEDRON);
    expect_bent(write("lagrange.vtk", legacy_vtk(grid, false, false)), order);
    expect_bent(write("lagrange.vtu", vtu(grid, false)), order);
    expect_bent(write("l2.mesh", mfem_bent_l2(order, true)), order);
    expect_bent(write("l2.mesh", mfem_bent_l2(order, false)), order);
    expect_bent(write("h1.mesh", mfem_bent_h1(order)), order, 1);
  }
  expect_bent(write("cubic.mesh", mfem_bent_h1(3, true)), 3, 1);
  expect_bent(write("many.vtu", vtu(vtk_bent({lagrange_places(9), 9}, VTK_LAGRANGE_HEXAHEDRON), false)), 9);
}

TEST_F(MeshFormats, StraightCellsOfHigherOrderAreNotCurved) {
  auto cells = BentCells(lagrange_places(3), 3);
  auto const straight = [](dealii::Point<3> const& x) { return dealii::Point<3>(x[0] + 0.3 * x[1], x[1], x[2]); };
  std::map<std::array<long, 3>, unsigned> known;
  cells.nodes.clear();
  cells.cells.clear();
  for (int const c : {0, 1}) {
    cells.cells.emplace_back();
    for (auto const& p : lagrange_places(3)) {
      dealii::Point<3> const x(c + p[0], p[1], p[2]);
      auto const [at, fresh] =
          known.emplace(std::array<long, 3>{std::lround(1e6 * x[0]), std::lround(1e6 * x[1]), std::lround(1e6 * x[2])},
                        static_cast<unsigned>(cells.nodes.size() + 1));
      if (fresh)
        cells.nodes.push_back(straight(x));
      cells.cells.back().push_back(at->second);
    }
  }
  Mesh const mesh = read(write("a.vtu", vtu(vtk_bent(cells, VTK_LAGRANGE_HEXAHEDRON), false)));
  EXPECT_FALSE(mesh.curved_cells.has_value());
  EXPECT_FALSE(mesh.curved);
  EXPECT_EQ(mesh.triangulation->n_active_cells(), 2u);
}

TEST_F(MeshFormats, WhatCannotBeReadIsNamed) {
  expect_error(write("a.mesh", "MFEM NURBS mesh v1.0\n"), "SetCurvature");
  expect_error(write("b.mesh", "MFEM NC mesh v1.0\n"), "hanging nodes");
  expect_error(write("c.mesh", "MFEM mesh v1.0\ndimension\n2\n"), "2 dimensions");
  expect_error(write("d.mesh", "MFEM mesh v1.0\ndimension\n3\nelements\n1\n1 4 0 1 2 3\nboundary\n0\nvertices\n4\n3\n0 0 0\n1 0 0\n"
                               "0 1 0\n0 0 1\n"),
               "tetrahedron");
  expect_error(write("e.mesh",
                     "MeshVersionFormatted 2\nDimension 3\nVertices\n4\n0 0 0 0\n1 0 0 0\n0 1 0 0\n0 0 1 0\nTetrahedra\n1\n"
                     "1 2 3 4 0\nEnd\n"),
               "SubdivisionAlgorithm");
  expect_error(write("f.mesh", "MeshVersionFormatted 2\nDimension 2\n"), "2 dimensions");
  expect_error(write("g.mesh",
                     "MFEM mesh v1.0\ndimension\n3\nelements\n1\n1 5 0 1 2 3 4 5 6 9\nboundary\n0\nvertices\n8\n3\n0 0 0\n1 0 0\n"
                     "1 1 0\n0 1 0\n0 0 1\n1 0 1\n1 1 1\n0 1 1\n"),
               "vertex 9 is used");
  vtkNew<vtkUnstructuredGrid> grid;
  vtkNew<vtkPoints> points;
  for (double const x : {0., 1., 2., 3.})
    points->InsertNextPoint(x, x * x, x * x * x);
  grid->SetPoints(points);
  std::array<vtkIdType, 4> const corners{0, 1, 2, 3};
  grid->InsertNextCell(VTK_TETRA, 4, corners.data());
  expect_error(write("h.vtu", vtu(grid, true)), "10 (tetrahedron)");
}

/// Compressed blanks: 64 MiB at most, or 200 times the file.
TEST_F(MeshFormats, CompressedFilesThatUnpackToNearlyNothingButSize) {
  std::string const blanks = compressed(std::string((std::size_t{1} << 26) + (1U << 20), ' '));
  ASSERT_LT(blanks.size(), std::size_t{1} << 18);
  expect_error(write("a.msh.gz", blanks), "unpack to more than 67108864 bytes");
}

// ------------------------------------------------------------------------------------------------------------------------ fuzz

TEST_F(MeshFormats, LengthsThatAVtuFileCannotHave) {
  Grid block;
  make_block(block, 2);
  auto const grid = as_vtk(block);
  std::string text = vtu(grid, false);
  text.replace(text.find('_', text.find("<AppendedData")) + 1, 6, "//////");  // in base64
  expect_error(write("a.vtu", text), "binary data begin with the length 4294967295");
}

TEST_F(MeshFormats, DamagedFilesNeverCrashOrHang) {
  Grid block;
  make_block(block, 2);
  auto const grid = as_vtk(block);
  write_exodus((folder_ / "good.exo").string(), block, 0);
  write_exodus((folder_ / "good4.exo").string(), block, NC_NETCDF4);
  std::map<std::string, std::string> const files{{"a.mesh", medit(block)},
                                                 {"b.mesh", mfem(block)},
                                                 {"c.mesh", mfem_bent_h1(3)},
                                                 {"d.mesh", mfem_bent_l2(2, false)},
                                                 {"e.msh", gmsh_1(block)},
                                                 {"f.msh", gmsh_22_binary(block, false)},
                                                 {"g.msh", gmsh_4_binary(block, false)},
                                                 {"h.msh", gmsh_4_binary(block, true)},
                                                 {"i.vtk", legacy_vtk(grid, false, true)},
                                                 {"j.vtk", legacy_vtk(grid, true, false)},
                                                 {"k.vtu", vtu(grid, true)},
                                                 {"l.vtu", vtu(grid, false)},
                                                 {"m.exo", content_of(folder_ / "good.exo")},
                                                 {"n.exo", content_of(folder_ / "good4.exo")},
                                                 {"o.msh.gz", compressed(gmsh_22(block))},
                                                 {"p.vtu", vtu(vtk_bent({lagrange_places(3), 3}, VTK_LAGRANGE_HEXAHEDRON), true)}};
  expect_no_crash(files, 25);
}

}  // namespace
}  // namespace poisson::assembly
