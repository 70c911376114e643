#include "gpu/core/error.hpp"
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

TEST_F(PointTable, FilesOfSeveralStepsAreRefused) {
  EXPECT_NO_THROW(try_one_step(hdf_with_steps(folder_ / "one.hdf", 1)));
  auto const two = hdf_with_steps(folder_ / "two.hdf", 2);
  for (auto const& open : {std::function<void()>([&] { try_one_step(two); }),
                           std::function<void()>([&] { try_point_field(two, "", FieldInterpolation::linear); })})
    try {
      open();
      ADD_FAILURE();
    } catch (InputError const& error) {
      EXPECT_NE(std::string(error.what()).find("two.hdf: has 2 steps, and one is needed"), std::string::npos) << error.what();
    }
}

}  // namespace
}  // namespace poisson::output
