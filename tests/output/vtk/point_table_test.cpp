#include "gpu/core/error.hpp"
#include "output/vtk/hdf_steps.hpp"
#include "output/vtk/hdf_storage.hpp"
#include "output/vtk/point_field.hpp"

#include <filesystem>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <sstream>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace poisson::output {
namespace {

namespace fs = std::filesystem;

class PointTable : public testing::Test {
protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "poisson-table-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path write(std::string const& text) const {
    std::ofstream(folder_ / "t.csv", std::ios::binary) << text;
    return folder_ / "t.csv";
  }
  PointField open(std::string const& text, std::string const& array = "") const {
    return open_point_field(write(text), array, FieldInterpolation::linear);
  }
  std::string refusal(std::string const& text, std::string const& array = "") const {
    try {
      static_cast<void>(open(text, array));
    } catch (InputError const& error) {
      return error.what();
    }
    return "accepted";
  }
  fs::path folder_;
};

double k(double x, double y, double z) {
  return 1 + x + 2 * y + 4 * z;
}

/// Eight points; `row` gives the cells of a line for x, y, z, k and the number of the point.
std::string table(std::string const& header, std::string const& order, char separator = ',') {
  std::string text = header + "\n";
  int number = 0;
  for (int z = 0; z < 2; ++z)
    for (int y = 0; y < 2; ++y)
      for (int x = 0; x < 2; ++x, ++number) {
        std::string line;
        for (char const column : order) {
          std::ostringstream cell;
          cell << (column == 'x'   ? x
                   : column == 'y' ? y
                   : column == 'z' ? z
                   : column == 'k' ? k(x, y, z)
                   : column == 'n' ? number
                                   : 77);
          line += (line.empty() ? "" : std::string(1, separator)) + cell.str();
        }
        text += line + "\n";
      }
  return text;
}

struct Named {
  char const *header, *order;
  char separator = ',';
  char const* array = "";
};

TEST_F(PointTable, ColumnsAreFoundByTheirNames) {
  for (Named const& t :
       {Named{"x,y,z,k", "xyzk"},
        {"z,y,x,k", "zyxk"},
        {"id,x,y,z,k", "nxyzk"},
        {",x,y,z,k", "nxyzk"},                                                 // pandas
        {"\"k\",\"Points:0\",\"Points:1\",\"Points:2\"", "kxyz"},              // ParaView
        {"Point ID,Points_0,Points_1,Points_2,Points_Magnitude,k", "nxyz7k"},  // ParaView's spreadsheet
        {"K,Z,X,Y", "kzxy"},
        {"X [m];Y [m];Z [m];T [K]", "xyzk", ';'},
        {"Node Number\tX Location (mm)\tY Location (mm)\tZ Location (mm)\tTemperature (C)", "nxyzk", '\t'},  // Ansys
        {"x-coordinate, z-coordinate, y-coordinate, pressure", "xzyk"},
        {"\xef\xbb\xbfx,y,z,k", "xyzk"},
        {"% Model: a.mph\n% z y x T (K)", "zyxk", ' '},  // COMSOL
        {"# z y x k", "zyxk", ' '},                      // numpy
        {"# by hand, of x and y", "xyzk", ' '},
        {"x y z other k", "xyz7k", ' ', "k"},
        {"other,u,x,y,z", "7kxyz"},
        {"k,x,y,z,other", "kxyz7", ',', "k"},
        {"k [W/m],x,y,z,other", "kxyz7", ',', "k"}}) {
    PointField const field = open(table(t.header, t.order, t.separator), t.array);
    EXPECT_NEAR(field({0.25, 0.5, 0.125}), k(0.25, 0.5, 0.125), 1e-12) << t.header;
    EXPECT_NEAR(field({1, 0, 0.5}), k(1, 0, 0.5), 1e-12) << t.header;
  }
}

TEST_F(PointTable, NumbersWithCommas) {
  PointField const field = open("sep=;\nx;y;z;k\n0,5;0;0;1,5\n1,5;0;0;2,5\n");
  EXPECT_NEAR(field({1, 0, 0}), 2, 1e-12);
}

TEST_F(PointTable, WhatFitsNothingIsRefused) {
  EXPECT_NE(refusal(table("a,b,c,k", "xyzk")).find("no column is named x (or X, Points:0"), std::string::npos);
  EXPECT_NE(refusal(table("x,y,k,l", "xyzk")).find("no column is named z"), std::string::npos);
  EXPECT_NE(refusal(table("x,y,z,k,l", "xyzk7")).find("say by `array` which column is meant; the columns are x, y, z, k, l"),
            std::string::npos);
  EXPECT_NE(refusal(table("x,y,z,k", "xyzk"), "m").find("has no column 'm'; the columns are x, y, z, k"), std::string::npos);
  EXPECT_NE(refusal(table("x_coord,coord_x,y,z,k", "xxyzk")).find("several columns may be x"), std::string::npos);
  EXPECT_NE(refusal(table("# nothing", "nxyzk")).find("without a line of names a table of points has four"), std::string::npos);
  EXPECT_NE(refusal(table("# x y z", "xyzk")).find("the comment before names 3: x, y, z"), std::string::npos);
  EXPECT_NE(refusal(table("x,y,z", "xyz")).find("the columns are x, y, z"), std::string::npos);
}

TEST_F(PointTable, ATableThatEndsInALineIsRefused) {
  std::string const whole = table("x,y,z,k,note", "xyzk7");
  EXPECT_NE(refusal(whole.substr(0, whole.size() - 4), "k").find("line 9 has 4 columns, those before have 5"), std::string::npos);
  EXPECT_NE(refusal(whole.substr(0, whole.size() - 8), "k").find("line 9 has "), std::string::npos);
}

TEST_F(PointTable, APipeIsNoFile) {
  fs::path const pipe = folder_ / "pipe.csv";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THROW(static_cast<void>(open_point_field(pipe, "", FieldInterpolation::linear)), InputError);
}

/// A VTKHDF file of nothing but a number of steps.
fs::path hdf_with_steps(fs::path const& path, std::int64_t steps) {
  HdfHandle const file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), H5Fclose);
  HdfHandle const root(H5Gcreate2(file.get(), "VTKHDF", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Gclose);
  HdfHandle const group(H5Gcreate2(root.get(), "Steps", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Gclose);
  HdfHandle const scalar(H5Screate(H5S_SCALAR), H5Sclose);
  HdfHandle const attribute(H5Acreate2(group.get(), "NSteps", H5T_STD_I64LE, scalar.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  EXPECT_GE(H5Awrite(attribute.get(), H5T_NATIVE_INT64, &steps), 0);
  return path;
}

TEST_F(PointTable, FilesOfSeveralStepsNeedOne) {
  EXPECT_EQ(try_step_of_hdf(hdf_with_steps(folder_ / "one.hdf", 1), {}), "");
  EXPECT_EQ(try_step_of_hdf(hdf_with_steps(folder_ / "one.hdf", 1), 0), "");
  auto const two = hdf_with_steps(folder_ / "two.hdf", 2);
  for (auto const& open : {std::function<void()>([&] { static_cast<void>(try_step_of_hdf(two, {})); }),
                           std::function<void()>([&] { try_point_field(two, "", FieldInterpolation::linear); })})
    try {
      open();
      ADD_FAILURE();
    } catch (InputError const& error) {
      EXPECT_NE(std::string(error.what()).find("two.hdf: has 2 steps, and one is needed: `step` says which, from 0 to 1, or last"),
                std::string::npos)
          << error.what();
    }
}

/// Writes VTKHDF files of version 2.0 with steps, array by array.
class StepsFile {
public:
  StepsFile(fs::path const& path, std::int64_t n)
      : file_(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), H5Fclose),
        root_(H5Gcreate2(file_.get(), "VTKHDF", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Gclose) {
    std::string const type = "UnstructuredGrid";
    HdfHandle const text(H5Tcopy(H5T_C_S1), H5Tclose);
    H5Tset_size(text.get(), type.size());
    HdfHandle const scalar(H5Screate(H5S_SCALAR), H5Sclose);
    HdfHandle const named(H5Acreate2(root_.get(), "Type", text.get(), scalar.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
    EXPECT_GE(H5Awrite(named.get(), text.get(), type.c_str()), 0);
    hsize_t const two = 2;
    std::int64_t const version[2] = {2, 0};
    HdfHandle const pair(H5Screate_simple(1, &two, nullptr), H5Sclose);
    HdfHandle const numbers(H5Acreate2(root_.get(), "Version", H5T_NATIVE_INT64, pair.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
    EXPECT_GE(H5Awrite(numbers.get(), H5T_NATIVE_INT64, version), 0);
    for (char const* const name : {"Steps", "Steps/PointDataOffsets", "Steps/CellDataOffsets", "PointData", "CellData"})
      HdfHandle(H5Gcreate2(root_.get(), name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Gclose);
    HdfHandle const steps(
        H5Acreate_by_name(root_.get(), "Steps", "NSteps", H5T_STD_I64LE, scalar.get(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
        H5Aclose);
    EXPECT_GE(H5Awrite(steps.get(), H5T_NATIVE_INT64, &n), 0);
  }
  void add(char const* name, std::vector<double> const& values, hsize_t columns = 1, hid_t type = H5T_STD_I64LE) {
    hsize_t const size[2] = {values.size() / columns, columns};
    HdfHandle const space(H5Screate_simple(columns > 1 ? 2 : 1, size, nullptr), H5Sclose);
    HdfHandle const set(H5Dcreate2(root_.get(), name, type, space.get(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Dclose);
    EXPECT_GE(H5Dwrite(set.get(), H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
  }
  /// Cubes [x, x + 1] x [0, 1]^2, one for each x, with points of their own.
  void add_cubes(std::vector<double> const& lows) {
    std::vector<double> points, types(lows.size(), 12);
    for (double const x : lows)
      for (int i = 0; i < 8; ++i)
        points.insert(points.end(), {x + (i & 1), static_cast<double>(i >> 1 & 1), static_cast<double>(i >> 2)});
    add("Points", points, 3, H5T_IEEE_F32LE);
    add("Types", types, 1, H5T_STD_U8LE);
  }

private:
  HdfHandle file_, root_;
};

/// The mesh stays, u changes: u = 1 + x at first, then 2 + x, 3 + x; v is the same at all steps, and c a value of the cell.
fs::path of_one_mesh(fs::path const& path) {
  StepsFile file(path, 3);
  file.add("NumberOfPoints", {8});
  file.add("NumberOfCells", {1});
  file.add("NumberOfConnectivityIds", {8});
  file.add_cubes({0});
  file.add("Connectivity", {0, 1, 3, 2, 4, 5, 7, 6});
  file.add("Offsets", {0, 8});
  std::vector<double> u, v;
  for (int step = 0; step < 3; ++step)
    for (int i = 0; i < 8; ++i)
      u.push_back(step + 1 + (i & 1));
  for (int i = 0; i < 8; ++i)
    v.push_back(7 + (i & 1));
  file.add("PointData/u", u, 1, H5T_IEEE_F64LE);
  file.add("PointData/v", v, 1, H5T_IEEE_F32LE);
  file.add("CellData/c", {10, 20, 30}, 1, H5T_STD_I32LE);
  for (char const* const name : {"PartOffsets", "PointOffsets", "CellOffsets", "ConnectivityIdOffsets", "PointDataOffsets/v"})
    file.add((std::string("Steps/") + name).c_str(), {0, 0, 0});
  file.add("Steps/NumberOfParts", {1, 1, 1});
  file.add("Steps/PointDataOffsets/u", {0, 8, 16});
  file.add("Steps/CellDataOffsets/c", {0, 1, 2});
  return path;
}

TEST_F(PointTable, StepsOfAMeshThatStays) {
  fs::path const path = of_one_mesh(folder_ / "u.hdf");
  auto const at = [&](char const* array, std::int64_t step) {
    try_point_field(path, array, FieldInterpolation::linear, step);
    return open_point_field(path, array, FieldInterpolation::linear, step)({0.25, 0.5, 0.5});
  };
  for (int step = 0; step < 3; ++step) {
    EXPECT_NEAR(at("u", step), step + 1.25, 1e-12);
    EXPECT_NEAR(at("v", step), 7.25, 1e-6);
    EXPECT_EQ(at("c", step), 10 * (step + 1));
  }
  EXPECT_NEAR(at("u", last_step), 3.25, 1e-12);
  try {
    static_cast<void>(at("u", 3));
    ADD_FAILURE();
  } catch (InputError const& error) {
    EXPECT_NE(std::string(error.what()).find("u.hdf: has 3 steps, counted from 0; there is no step 3"), std::string::npos)
        << error.what();
  }
  EXPECT_THROW(static_cast<void>(open_point_field(write("x,y,z,k\n0,0,0,1\n"), "", FieldInterpolation::linear, 0)), InputError);
}

/// A cube at first; then three in two parts, [1, 2] and [2, 3], [3, 4]. The cells tell their numbers through all steps.
fs::path of_two_meshes(fs::path const& path, std::vector<double> const& cell_offsets = {0, 1}) {
  StepsFile file(path, 2);
  file.add("NumberOfPoints", {8, 8, 16});
  file.add("NumberOfCells", {1, 1, 2});
  file.add("NumberOfConnectivityIds", {8, 8, 16});
  file.add_cubes({0, 1, 2, 3});
  std::vector<double> ids, c;
  for (int const first : {0, 0, 0, 8})
    for (int const v : {0, 1, 3, 2, 4, 5, 7, 6})
      ids.push_back(first + v);
  file.add("Connectivity", ids);
  file.add("Offsets", {0, 8, 0, 8, 0, 8, 16});
  file.add("CellData/c", {1, 2, 3, 4}, 1, H5T_STD_I32LE);
  file.add("Steps/PartOffsets", {0, 1});
  file.add("Steps/NumberOfParts", {1, 2});
  file.add("Steps/PointOffsets", {0, 8});
  file.add("Steps/CellOffsets", cell_offsets);
  file.add("Steps/ConnectivityIdOffsets", {0, 8});
  return path;
}

TEST_F(PointTable, StepsWithMeshesOfTheirOwn) {
  fs::path const path = of_two_meshes(folder_ / "c.hdf");
  PointField const first = open_point_field(path, "c", FieldInterpolation::linear, 0);
  PointField const second = open_point_field(path, "c", FieldInterpolation::linear, 1);
  EXPECT_EQ(first({0.5, 0.5, 0.5}), 1);
  EXPECT_EQ(first({3.5, 0.5, 0.5}), 1);  // outside: the nearest place
  for (int cell = 1; cell < 4; ++cell)
    EXPECT_EQ(second({cell + 0.5, 0.5, 0.5}), cell + 1);
  EXPECT_EQ(second({0.5, 0.5, 0.5}), 2);
  // What a step promises must be there.
  for (auto const& [offsets, part] :
       std::vector<std::pair<std::vector<double>, std::string>>{{{0, 2}, "step 1 wants the rows 2 to 5 of Types, which has 4"},
                                                                {{0, -1}, "wants the rows -1 to 2"},
                                                                {{0}, "1 rows for 2 steps"}})
    try {
      static_cast<void>(try_step_of_hdf(of_two_meshes(folder_ / "bad.hdf", offsets), 1));
      ADD_FAILURE() << part;
    } catch (InputError const& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
}

}  // namespace
}  // namespace poisson::output
