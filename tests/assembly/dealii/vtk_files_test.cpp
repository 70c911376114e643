#include "tests/assembly/dealii/mesh_files.hpp"

#include <vtkCellData.h>
#include <vtkCellType.h>
#include <vtkDataArray.h>
#include <vtkFloatArray.h>
#include <vtkIntArray.h>
#include <vtkNew.h>
#include <vtkPointData.h>
#include <vtkPoints.h>
#include <vtkSmartPointer.h>
#include <vtkUnsignedCharArray.h>
#include <vtkUnstructuredGrid.h>
#include <vtkUnstructuredGridWriter.h>
#include <vtkXMLUnstructuredGridWriter.h>

namespace poisson::assembly {
namespace {

using namespace test;

class VtkFiles : public MeshFiles {};

/// Two cells in x, of materials 1 and 2, with quadrilaterals 11 at x = 0 and 12 at x = 2.
vtkSmartPointer<vtkUnstructuredGrid> two_cells() {
  vtkNew<vtkPoints> points;
  for (double const z : {0., 1.})
    for (double const y : {0., 1.})
      for (double const x : {0., 1., 2.})
        points->InsertNextPoint(x, y, z);
  auto grid = vtkSmartPointer<vtkUnstructuredGrid>::New();
  grid->SetPoints(points);
  for (vtkIdType const c : {0, 1}) {
    std::array<vtkIdType, 8> const nodes{c, c + 1, c + 4, c + 3, c + 6, c + 7, c + 10, c + 9};
    grid->InsertNextCell(VTK_HEXAHEDRON, 8, nodes.data());
  }
  for (vtkIdType const c : {0, 2}) {
    std::array<vtkIdType, 4> const nodes{c, c + 3, c + 9, c + 6};
    grid->InsertNextCell(VTK_QUAD, 4, nodes.data());
  }
  return grid;
}

void add_array(vtkUnstructuredGrid& grid, char const* name, std::array<int, 4> const& values) {
  vtkNew<vtkIntArray> array;
  array->SetName(name);
  for (int const value : values)
    array->InsertNextValue(value);
  grid.GetCellData()->AddArray(array);
}

std::string as_vtu(vtkUnstructuredGrid& grid, int mode = vtkXMLWriter::Ascii, bool compressed = false) {
  vtkNew<vtkXMLUnstructuredGridWriter> writer;
  writer->SetInputData(&grid);
  writer->WriteToOutputStringOn();
  writer->SetDataMode(mode);
  if (!compressed)
    writer->SetCompressorTypeToNone();
  writer->Write();
  return writer->GetOutputString();
}

std::string as_legacy(vtkUnstructuredGrid& grid, bool binary, bool version_42) {
  vtkNew<vtkUnstructuredGridWriter> writer;
  writer->SetInputData(&grid);
  writer->WriteToOutputStringOn();
  writer->SetFileVersion(version_42 ? vtkDataWriter::VTK_LEGACY_READER_VERSION_4_2 : vtkDataWriter::VTK_LEGACY_READER_VERSION_5_1);
  if (binary)
    writer->SetFileTypeToBinary();
  writer->Write();
  return writer->GetOutputStdString();
}

using Ids = std::set<unsigned>;

TEST_F(VtkFiles, ArraysOfOtherProgramsHoldMaterials) {
  for (char const* const name :
       {"MaterialIDs", "MaterialID", "material", "gmsh:physical", "CellEntityIds", "ElementBlockIds", "mat_id", "medit:ref",
        "ObjectId", "ObjectIds", "attribute", "cell_tags", "RegionId", "subdomain_id", "avsucd:material"}) {
    auto const grid = two_cells();
    add_array(*grid, "porosity class", {5, 6, 7, 8});
    add_array(*grid, name, {1, 2, 11, 12});
    Mesh const mesh = read(write("a.vtu", as_vtu(*grid)));
    EXPECT_EQ(mesh.material_ids, (Ids{1, 2})) << name;
    EXPECT_EQ(mesh.boundary_ids, (Ids{0, 11, 12})) << name;
    EXPECT_TRUE(mesh.notes.empty()) << name << ": " << mesh.notes.front();
  }
}

TEST_F(VtkFiles, MaterialsAndBoundariesCanHaveArraysOfTheirOwn) {
  auto const grid = two_cells();
  add_array(*grid, "boundary_id", {0, 0, 3, 4});
  add_array(*grid, "material", {1, 2, 77, 77});
  add_array(*grid, "zone", {8, 9, 21, 22});
  std::string const path = write("a.vtu", as_vtu(*grid));
  Mesh mesh = read(path);
  EXPECT_EQ(mesh.material_ids, (Ids{1, 2}));
  EXPECT_EQ(mesh.boundary_ids, (Ids{0, 3, 4}));
  MeshSpec spec;
  spec.file = path;
  spec.array = "zone";
  mesh = make_mesh(spec);
  EXPECT_EQ(mesh.material_ids, (Ids{8, 9}));
  EXPECT_EQ(mesh.boundary_ids, (Ids{0, 21, 22}));
  spec.boundary_array = "boundary_id";
  mesh = make_mesh(spec);
  EXPECT_EQ(mesh.material_ids, (Ids{8, 9}));
  EXPECT_EQ(mesh.boundary_ids, (Ids{0, 3, 4}));
  spec.array = "zones";
  try {
    static_cast<void>(make_mesh(spec));
    ADD_FAILURE();
  } catch (InputError const& error) {
    EXPECT_EQ(error.key(), "problem.mesh.array");
    EXPECT_NE(std::string(error.what()).find("no cell data 'zones'; it has: boundary_id, material, zone"), std::string::npos)
        << error.what();
  }
}

TEST_F(VtkFiles, CopiesOfCellsArePassedOver) {
  auto const grid = two_cells();
  std::array<vtkIdType, 8> const again{1, 2, 5, 4, 7, 8, 11, 10};
  grid->InsertNextCell(VTK_HEXAHEDRON, 8, again.data());
  vtkNew<vtkUnsignedCharArray> ghosts;
  ghosts->SetName("vtkGhostType");
  for (int const value : {0, 0, 0, 0, 1})
    ghosts->InsertNextValue(static_cast<unsigned char>(value));
  grid->GetCellData()->AddArray(ghosts);
  Mesh const mesh = read(write("a.vtu", as_vtu(*grid)));
  EXPECT_EQ(mesh.triangulation->n_active_cells(), 2u);
  ASSERT_EQ(mesh.notes.size(), 1u);
  EXPECT_NE(mesh.notes[0].find("1 cells are copies of others'"), std::string::npos) << mesh.notes[0];
}

TEST_F(VtkFiles, UnknownArraysAreListed) {
  auto const grid = two_cells();
  add_array(*grid, "zone", {8, 9, 21, 22});
  Mesh const mesh = read(write("a.vtk", as_legacy(*grid, true, false)));
  EXPECT_EQ(mesh.material_ids, (Ids{0}));
  ASSERT_EQ(mesh.notes.size(), 1u);
  EXPECT_NE(mesh.notes[0].find("cell data: zone; none is known to hold materials"), std::string::npos) << mesh.notes[0];
}

/// What is cut off changes ids, or leaves nodes out: every length but that of the whole file is refused, or gives the whole mesh.
TEST_F(VtkFiles, FilesThatEndTooEarlyAreRefused) {
  auto const grid = two_cells();
  vtkNew<vtkFloatArray> temperature;
  temperature->SetName("T");
  temperature->SetNumberOfComponents(3);
  for (int i = 0; i < 36; ++i)
    temperature->InsertNextValue(0.1F * static_cast<float>(i));
  temperature->SetNumberOfComponents(3);
  grid->GetPointData()->AddArray(temperature);
  add_array(*grid, "material", {1, 2, 11, 12});
  struct Kind {
    char const* name;
    std::string text;
  };
  std::vector<Kind> const kinds{{"new.vtk", as_legacy(*grid, true, false)},
                                {"old.vtk", as_legacy(*grid, true, true)},
                                {"text.vtk", as_legacy(*grid, false, false)},
                                {"appended.vtu", as_vtu(*grid, vtkXMLWriter::Appended)},
                                {"packed.vtu", as_vtu(*grid, vtkXMLWriter::Appended, true)},
                                {"inline.vtu", as_vtu(*grid, vtkXMLWriter::Binary)}};
  for (Kind const& kind : kinds) {
    Mesh const whole = read(write(kind.name, kind.text));
    EXPECT_EQ(whole.material_ids, (Ids{1, 2})) << kind.name;
    EXPECT_EQ(whole.boundary_ids, (Ids{0, 11, 12})) << kind.name;
    int refused = 0;
    for (std::size_t const cut : {1U, 3U, 7U, 20U, 50U, 90U, 140U, 200U, 300U, 500U}) {
      if (cut + 100 > kind.text.size())
        continue;
      std::string const path = write(std::string("cut") + kind.name, kind.text.substr(0, kind.text.size() - cut));
      try {
        Mesh const mesh = read(path);
        EXPECT_EQ(mesh.material_ids, (Ids{1, 2})) << kind.name << " without " << cut;
        EXPECT_EQ(mesh.boundary_ids, (Ids{0, 11, 12})) << kind.name << " without " << cut;
        EXPECT_EQ(mesh.triangulation->n_used_vertices(), 12u) << kind.name << " without " << cut;
      } catch (InputError const& error) {
        EXPECT_EQ(std::string(error.what()).find("out of memory"), std::string::npos);
        ++refused;
      }
    }
    EXPECT_GE(refused, 6) << kind.name;
  }
}

TEST_F(VtkFiles, WhatAHeaderPromisesMustBeThere) {
  std::string const head = "# vtk DataFile Version 3.0\nx\n";
  expect_error(write("a.vtk", head + "ASCII\nDATASET UNSTRUCTURED_GRID\nPOINTS 8 double\n0 0 0 1 0 0"),
               "the file ends where points should be: 6 of 24 numbers are there");
  expect_error(write("b.vtk", head + "BINARY\nDATASET UNSTRUCTURED_GRID\nPOINTS 1000000000 double\n" + std::string(100, '\1')),
               "the file ends where points should be");
}

}  // namespace
}  // namespace poisson::assembly
