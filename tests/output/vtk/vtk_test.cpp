#include "output/vtk/level_set.hpp"
#include "output/vtk/vtk_files.hpp"

#include "output/vtk/base64.hpp"
#include "tests/output/output_helpers.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <fstream>
#include <limits>
#include <locale>
#include <map>
#include <omp.h>
#include <random>
#include <sstream>
#include <tuple>
#include <vtkCell.h>
#include <vtkCellArray.h>
#include <vtkCellData.h>
#include <vtkCellType.h>
#include <vtkDataArray.h>
#include <vtkDoubleArray.h>
#include <vtkFieldData.h>
#include <vtkFloatArray.h>
#include <vtkHDFReader.h>
#include <vtkImageData.h>
#include <vtkIntArray.h>
#include <vtkNew.h>
#include <vtkPointData.h>
#include <vtkPolyData.h>
#include <vtkRectilinearGrid.h>
#include <vtkSmartPointer.h>
#include <vtkUnstructuredGrid.h>
#include <vtkVariant.h>
#include <vtkXMLImageDataReader.h>
#include <vtkXMLPolyDataReader.h>
#include <vtkXMLRectilinearGridReader.h>
#include <vtkXMLUnstructuredGridReader.h>

namespace poisson::output::test {

namespace {

/// Reads a file with one of VTK's readers.
template <class Reader>
auto read(std::filesystem::path const& path) {
  vtkNew<Reader> reader;
  reader->SetFileName(path.c_str());
  reader->Update();
  EXPECT_EQ(reader->GetErrorCode(), 0U);
  return vtkSmartPointer(reader->GetOutput());
}

vtkSmartPointer<vtkUnstructuredGrid> read_vtu(std::filesystem::path const& path) {
  return read<vtkXMLUnstructuredGridReader>(path);
}

vtkSmartPointer<vtkUnstructuredGrid> read_hdf(std::filesystem::path const& path) {
  vtkNew<vtkHDFReader> reader;
  EXPECT_EQ(reader->CanReadFile(path.c_str()), 1);
  reader->SetFileName(path.c_str());
  reader->Update();
  EXPECT_EQ(reader->GetErrorCode(), 0U);
  return vtkUnstructuredGrid::SafeDownCast(reader->GetOutputAsDataSet());
}

/// A format of unstructured grids.
struct Unstructured {
  char const* name;
  std::string file;
  decltype(&write_hdf) write;
  vtkSmartPointer<vtkUnstructuredGrid> (*read)(std::filesystem::path const&);
};
void PrintTo(Unstructured const& format, std::ostream* out) {
  *out << format.name;
}
auto const formats =
    testing::Values(Unstructured{"vtu", "u.vtu", write_vtu, read_vtu}, Unstructured{"hdf", "u.hdf", write_hdf, read_hdf});

/// Degree p in each variable, every monomial present with its own weight.
double polynomial(Vec const& x, int p) {
  double sum = 0;
  for (int k = 0; k <= p; ++k)
    for (int j = 0; j <= p; ++j)
      for (int i = 0; i <= p; ++i)
        sum += std::pow(x[0] - 0.3, i) * std::pow(x[1] - 0.6, j) * std::pow(x[2] - 0.45, k) / (1 + i + 2 * j + 3 * k);
  return sum;
}

/// Curved, of degree min(p, 2) in each variable, invertible, and different along all axes.
Vec curved(Vec const& x, int p) {
  double const c = p >= 2 ? 0.15 : 0;
  return {1.5 * x[0] + c * x[1] * x[1] + 0.2 * x[1], x[1] + 0.1 * x[2] + c * x[2] * x[2] - c * x[0] * x[0],
          0.8 * x[2] + 0.3 * x[0] + c * x[0] * x[0] * x[1]};
}

class EveryOrder : public testing::TestWithParam<std::tuple<int, Unstructured>> {};

// The node order is right exactly when VTK's own shape functions reproduce a polynomial map and a polynomial field.
TEST_P(EveryOrder, VtkInterpolatesThePolynomialsThatTheNodesSample) {
  auto const& [p, format] = GetParam();
  int const n[3] = {3, 2, 2};
  auto const map = [p = p](Vec const& x) { return curved(x, p); };
  auto const block = make_block(
      n[0], n[1], n[2], p, [p = p](Vec const& x) { return polynomial(x, p); }, map);
  TemporaryDirectory directory;
  format.write(directory / format.file, block.grid(), {{"u", 1, block.u, {}}}, {}, {}, {});
  auto const mesh = format.read(directory / format.file);
  ASSERT_NE(mesh, nullptr);
  ASSERT_EQ(mesh->GetNumberOfCells(), 12);
  auto* const u = mesh->GetPointData()->GetArray("u");
  ASSERT_NE(u, nullptr);
  std::mt19937 random(7);
  std::uniform_real_distribution<double> uniform(0, 1);
  for (vtkIdType c = 0; c < 12; ++c) {
    auto* const cell = mesh->GetCell(c);
    int const at[3] = {static_cast<int>(c) % n[0], static_cast<int>(c) / n[0] % n[1], static_cast<int>(c) / n[0] / n[1]};
    std::vector<double> weights(static_cast<std::size_t>(cell->GetNumberOfPoints()));
    for (int trial = 0; trial < 8; ++trial) {
      double place[3] = {uniform(random), uniform(random), uniform(random)};
      Vec reference{}, x{};
      for (std::size_t d = 0; d < 3; ++d)
        reference[d] = (at[d] + place[d]) / n[d];
      int sub = 0;
      cell->EvaluateLocation(sub, place, x.data(), weights.data());
      auto const expected = map(reference);
      for (std::size_t d = 0; d < 3; ++d)
        EXPECT_NEAR(x[d], expected[d], 1e-11) << "cell " << c;
      double value = 0;
      for (vtkIdType i = 0; i < cell->GetNumberOfPoints(); ++i)
        value += weights[static_cast<std::size_t>(i)] * u->GetTuple1(cell->GetPointId(static_cast<int>(i)));
      EXPECT_NEAR(value, polynomial(reference, p), 1e-10) << "cell " << c;

      // Positive volume: the three tangents form a right-handed frame.
      std::array<Vec, 3> tangent{};
      for (std::size_t d = 0; d < 3; ++d) {
        double const h = 1e-5;
        Vec low{}, high{};
        double moved[3] = {place[0], place[1], place[2]};
        moved[d] = place[d] - h;
        cell->EvaluateLocation(sub, moved, low.data(), weights.data());
        moved[d] = place[d] + h;
        cell->EvaluateLocation(sub, moved, high.data(), weights.data());
        for (std::size_t e = 0; e < 3; ++e)
          tangent[d][e] = (high[e] - low[e]) / (2 * h);
      }
      auto const& [a, b, t] = tangent;
      double const volume =
          a[0] * (b[1] * t[2] - b[2] * t[1]) - a[1] * (b[0] * t[2] - b[2] * t[0]) + a[2] * (b[0] * t[1] - b[1] * t[0]);
      EXPECT_GT(volume, 0.01);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Vtk, EveryOrder, testing::Combine(testing::Range(1, 9), formats), [](auto const& test) {
  return "Q" + std::to_string(std::get<0>(test.param)) + "_" + std::get<1>(test.param).name;
});

class RoundTrip : public testing::TestWithParam<std::tuple<int, VtkCompression, VtkPrecision, Unstructured>> {};

template <class Array>
void expect_same(vtkDataArray* found, std::span<double const> expected) {
  auto* const array = Array::SafeDownCast(found);
  ASSERT_NE(array, nullptr);
  ASSERT_EQ(array->GetNumberOfValues(), static_cast<vtkIdType>(expected.size()));
  using Value = typename Array::ValueType;
  using Bits = std::conditional_t<sizeof(Value) == 8, std::uint64_t, std::uint32_t>;
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < expected.size(); ++i)
    wrong +=
        std::bit_cast<Bits>(array->GetValue(static_cast<vtkIdType>(i))) != std::bit_cast<Bits>(static_cast<Value>(expected[i]));
  EXPECT_EQ(wrong, 0U);
}

TEST_P(RoundTrip, EveryArrayComesBack) {
  auto const [p, compression, precision, format] = GetParam();
  auto const expect = [precision = precision](vtkDataArray* found, std::span<double const> expected) {
    if (precision == VtkPrecision::single)
      expect_same<vtkFloatArray>(found, expected);
    else
      expect_same<vtkDoubleArray>(found, expected);
  };
  auto block = make_block(
      4, 3, 5, p, [](Vec const& x) { return std::sin(5 * x[0]) * std::exp(x[1] - x[2]); },
      [](Vec const& x) { return curved(x, 2); });
  block.u[0] = std::numeric_limits<double>::infinity();
  block.u[1] = -0.0;
  block.u[2] = 1e-310;
  std::mt19937 random(5);
  std::normal_distribution<double> normal;
  auto const n_cells = static_cast<std::size_t>(block.grid().n_cells());
  std::vector<double> error(block.u.size()), coefficient(n_cells), flux(3 * n_cells);
  std::vector<int> material(n_cells);
  for (auto* values : {&error, &coefficient, &flux})
    for (auto& v : *values)
      v = normal(random);
  for (std::size_t i = 0; i < n_cells; ++i)
    material[i] = static_cast<int>(i % 7) - 1;

  TemporaryDirectory directory;
  format.write(directory / format.file, block.grid(), {{"u", 1, block.u, {}}, {"error", 1, error, {}}},
               {{"material", 1, {}, material}, {"coefficient", 1, coefficient, {}}, {"flux", 3, flux, {}}},
               {compression, precision}, {});
  EXPECT_EQ(directory.names(), std::set<std::string>{format.file});
  // The ParaView of an up-to-date Debian 12 cannot read appended data.
  EXPECT_EQ(text_of(directory / format.file).find("<AppendedData"), std::string::npos);

  auto const mesh = format.read(directory / format.file);
  ASSERT_NE(mesh, nullptr);
  ASSERT_EQ(mesh->GetNumberOfCells(), static_cast<vtkIdType>(n_cells));
  ASSERT_EQ(mesh->GetNumberOfPoints(), block.grid().n_points());  // shared nodes stay shared
  expect(mesh->GetPoints()->GetData(), block.points);
  auto* const points = mesh->GetPointData();
  auto* const cells = mesh->GetCellData();
  ASSERT_EQ(points->GetNumberOfArrays(), 2);
  ASSERT_EQ(cells->GetNumberOfArrays(), 3);
  expect(points->GetArray("u"), block.u);
  expect(points->GetArray("error"), error);
  expect(cells->GetArray("coefficient"), coefficient);
  expect(cells->GetArray("flux"), flux);
  ASSERT_NE(cells->GetArray("flux"), nullptr);
  EXPECT_EQ(cells->GetArray("flux")->GetNumberOfComponents(), 3);
  auto* const ids = vtkIntArray::SafeDownCast(cells->GetArray("material"));
  ASSERT_NE(ids, nullptr);
  for (std::size_t i = 0; i < n_cells; ++i)
    ASSERT_EQ(ids->GetValue(static_cast<vtkIdType>(i)), material[i]);
  if (format.write == write_vtu) {
    ASSERT_NE(points->GetScalars(), nullptr);
    EXPECT_STREQ(points->GetScalars()->GetName(), "u");
  }

  // Each cell has its own nodes, whatever their order.
  for (vtkIdType c = 0; c < mesh->GetNumberOfCells(); ++c) {
    EXPECT_EQ(mesh->GetCellType(c), p == 1 ? VTK_HEXAHEDRON : VTK_LAGRANGE_HEXAHEDRON);
    auto const nodes = block.grid().nodes_per_cell();
    std::set<std::int64_t> const expected(block.cells.begin() + c * nodes, block.cells.begin() + (c + 1) * nodes);
    std::set<std::int64_t> found;
    auto* const list = mesh->GetCell(c)->GetPointIds();
    for (vtkIdType i = 0; i < list->GetNumberOfIds(); ++i)
      found.insert(list->GetId(i));
    ASSERT_EQ(found, expected);
  }
}
INSTANTIATE_TEST_SUITE_P(Vtk, RoundTrip,
                         testing::Combine(testing::Range(1, 5),
                                          testing::Values(VtkCompression::none, VtkCompression::fast, VtkCompression::best),
                                          testing::Values(VtkPrecision::single, VtkPrecision::double_), formats),
                         [](auto const& test) {
                           return "Q" + std::to_string(std::get<0>(test.param)) + "_" +
                                  std::string(name_of(std::get<1>(test.param))) + "_" +
                                  std::string(name_of(std::get<2>(test.param))) + "_" + std::get<3>(test.param).name;
                         });

/// Fields of any numbers on so many points and cells.
struct RandomFields {
  RandomFields(std::int64_t n_points, std::int64_t n_cells) : u(n_points), error(n_points), flux(3 * n_cells), material(n_cells) {
    std::mt19937 random(5);
    std::normal_distribution<double> normal;
    for (auto* values : {&u, &error, &flux})
      for (auto& v : *values)
        v = normal(random);
    for (std::size_t i = 0; i < material.size(); ++i)
      material[i] = static_cast<int>(i % 7) - 1;
    u[0] = std::numeric_limits<double>::infinity();
    u[1] = -0.0;
    u[2] = 1e-310;
  }
  [[nodiscard]] std::vector<Field> points() const { return {{"u", 1, u, {}}, {"error", 1, error, {}}}; }
  [[nodiscard]] std::vector<Field> cells() const { return {{"material", 1, {}, material}, {"flux", 3, flux, {}}}; }

  std::vector<double> u, error, flux;
  std::vector<int> material;
};

void expect_values(vtkDataArray* found, std::span<double const> expected, VtkPrecision precision) {
  if (precision == VtkPrecision::single)
    expect_same<vtkFloatArray>(found, expected);
  else
    expect_same<vtkDoubleArray>(found, expected);
}

class Lattices : public testing::TestWithParam<std::tuple<VtkCompression, VtkPrecision>> {};
INSTANTIATE_TEST_SUITE_P(Vtk, Lattices,
                         testing::Combine(testing::Values(VtkCompression::none, VtkCompression::fast, VtkCompression::best),
                                          testing::Values(VtkPrecision::single, VtkPrecision::double_)),
                         [](auto const& test) {
                           return std::string(name_of(std::get<0>(test.param))) + "_" +
                                  std::string(name_of(std::get<1>(test.param)));
                         });

TEST_P(Lattices, ImageDataComeBack) {
  auto const [compression, precision] = GetParam();
  ImageGrid const image{{0.1, -2, 1e-7}, {1.0 / 3, 0.5, 0.125}, {5, 3, 4}};
  RandomFields const fields(image.n_points(), image.n_cells());
  TemporaryDirectory directory;
  write_vti(directory / "u.vti", image, fields.points(), fields.cells(), {compression, precision});
  EXPECT_EQ(directory.names(), std::set<std::string>{"u.vti"});
  EXPECT_EQ(text_of(directory / "u.vti").find("<AppendedData"), std::string::npos);
  auto const data = read<vtkXMLImageDataReader>(directory / "u.vti");
  for (int d = 0; d < 3; ++d) {
    EXPECT_EQ(data->GetDimensions()[d], image.n[static_cast<std::size_t>(d)]);
    EXPECT_EQ(data->GetOrigin()[d], image.low[static_cast<std::size_t>(d)]);
    EXPECT_EQ(data->GetSpacing()[d], image.spacing[static_cast<std::size_t>(d)]);
  }
  EXPECT_EQ(data->GetPointData()->GetNumberOfArrays(), 2);
  EXPECT_EQ(data->GetCellData()->GetNumberOfArrays(), 2);
  expect_values(data->GetPointData()->GetArray("u"), fields.u, precision);
  expect_values(data->GetPointData()->GetArray("error"), fields.error, precision);
  expect_values(data->GetCellData()->GetArray("flux"), fields.flux, precision);
  EXPECT_EQ(data->GetCellData()->GetArray("flux")->GetNumberOfComponents(), 3);
  auto* const material = vtkIntArray::SafeDownCast(data->GetCellData()->GetArray("material"));
  ASSERT_NE(material, nullptr);
  for (std::size_t i = 0; i < fields.material.size(); ++i)
    ASSERT_EQ(material->GetValue(static_cast<vtkIdType>(i)), fields.material[i]);
  ASSERT_NE(data->GetPointData()->GetScalars(), nullptr);
  EXPECT_STREQ(data->GetPointData()->GetScalars()->GetName(), "u");
}

// Every cuboid between nodes has the values of the cell that it is a part of.
TEST_P(Lattices, RectilinearGridsComeBack) {
  auto const [compression, precision] = GetParam();
  // Two cells of order 3 in x, one in y and three in z, with the Gauss-Lobatto nodes of order 3.
  auto const nodes = [](double low, double h, int cells) {
    std::vector<double> x{low};
    for (int c = 0; c < cells; ++c)
      for (double const at : {0.5 - std::sqrt(0.05), 0.5 + std::sqrt(0.05), 1.0})
        x.push_back(low + h * (c + at));
    return x;
  };
  std::vector<double> const x = nodes(-1, 0.3, 2), y = nodes(0, 1, 1), z = nodes(5, 0.1, 3);
  RectilinearGrid const grid{3, {x, y, z}};
  ASSERT_EQ(grid.n_points(), 7 * 4 * 10);
  ASSERT_EQ(grid.n_cells(), 6);
  RandomFields const fields(grid.n_points(), grid.n_cells());
  TemporaryDirectory directory;
  write_vtr(directory / "u.vtr", grid, fields.points(), fields.cells(), {compression, precision});
  EXPECT_EQ(text_of(directory / "u.vtr").find("<AppendedData"), std::string::npos);
  auto const data = read<vtkXMLRectilinearGridReader>(directory / "u.vtr");
  expect_values(data->GetXCoordinates(), x, precision);
  expect_values(data->GetYCoordinates(), y, precision);
  expect_values(data->GetZCoordinates(), z, precision);
  expect_values(data->GetPointData()->GetArray("u"), fields.u, precision);
  ASSERT_EQ(data->GetNumberOfCells(), 6 * 27);
  std::vector<double> flux;
  auto* const material = vtkIntArray::SafeDownCast(data->GetCellData()->GetArray("material"));
  ASSERT_NE(material, nullptr);
  for (int k = 0; k < 9; ++k)
    for (int j = 0; j < 3; ++j)
      for (int i = 0; i < 6; ++i) {
        int const cell = i / 3 + 2 * (k / 3);
        ASSERT_EQ(material->GetValue(i + 6 * (j + 3 * k)), fields.material[static_cast<std::size_t>(cell)]);
        flux.insert(flux.end(), fields.flux.begin() + 3 * cell, fields.flux.begin() + 3 * cell + 3);
      }
  expect_values(data->GetCellData()->GetArray("flux"), flux, precision);
  EXPECT_EQ(data->GetCellData()->GetArray("flux")->GetNumberOfComponents(), 3);
}

// Arrays that several threads compress in several batches, and that end within a block and within a group of base64.
TEST(Vtk, LargeArraysComeBackWhateverTheThreads) {
  ImageGrid const image{{0, 0, 0}, {1, 1, 1}, {101, 103, 117}};
  RandomFields const fields(image.n_points(), image.n_cells());
  TemporaryDirectory directory;
  for (VtkCompression const compression : {VtkCompression::none, VtkCompression::fast}) {
    int const before = omp_get_max_threads();
    for (int const threads : {1, 5}) {
      omp_set_num_threads(threads);
      write_vti(directory / ("u" + std::to_string(threads)), image, fields.points(), fields.cells(),
                {compression, VtkPrecision::double_});
    }
    omp_set_num_threads(before);
    EXPECT_TRUE(text_of(directory / "u1") == text_of(directory / "u5"));
    auto const data = read<vtkXMLImageDataReader>(directory / "u5");
    expect_same<vtkDoubleArray>(data->GetPointData()->GetArray("error"), fields.error);
    expect_same<vtkDoubleArray>(data->GetCellData()->GetArray("flux"), fields.flux);
  }
}

/// The fields as functions that make their values.
std::vector<Field> made(std::vector<Field> list) {
  for (Field& field : list) {
    field.n_made = field.n_values();
    auto const copy = [](auto const& values) {
      return [values](std::int64_t first, std::int64_t n, auto* out) { std::copy_n(values.begin() + first, n, out); };
    };
    if (field.has_integers())
      field.make_integers = copy(field.integers);
    else
      field.make_values = copy(field.values);
    field.values = {};
    field.integers = {};
  }
  return list;
}

TEST(Vtk, FieldsThatAreMadeGiveTheFilesOfArraysOnCellsOfEveryOrder) {
  TemporaryDirectory directory;
  std::vector<double> x, y, z;
  for (int i = 0; i <= 24; ++i) {
    x.push_back(i + 0.1 * i * i);
    y.push_back(i < 13 ? 2 * i : 26 + i);
    z.push_back(0.5 * i);
  }
  for (int const order : {1, 2, 3, 4}) {
    RectilinearGrid const grid{order, {x, std::span(y).first(13), z}};
    RandomFields const fields(grid.n_points(), grid.n_cells());
    for (VtkPrecision const precision : {VtkPrecision::single, VtkPrecision::double_}) {
      VtkOptions const options{VtkCompression::fast, precision};
      write_vtr(directory / "arrays.vtr", grid, fields.points(), fields.cells(), options);
      write_vtr(directory / "made.vtr", grid, made(fields.points()), made(fields.cells()), options);
      EXPECT_TRUE(text_of(directory / "arrays.vtr") == text_of(directory / "made.vtr")) << order << ' ' << name_of(precision);
    }
  }
}

TEST(Vtk, MeshesThatAreMadeGiveTheFilesOfArrays) {
  for (int const order : {1, 3}) {
    auto const block = make_block(5, 4, 3, order, [](Vec const& x) { return x[0] - x[1]; });
    TemporaryDirectory directory;
    for (VtkPrecision const precision : {VtkPrecision::single, VtkPrecision::double_}) {
      VtkOptions options;
      options.precision = precision;
      std::vector<Field> const u{{"u", 1, block.u, {}}};
      write_vtu(directory / "arrays.vtu", block.grid(), u, {}, options);
      write_vtu(directory / "made.vtu", block.made_grid(), u, {}, options);
      EXPECT_TRUE(text_of(directory / "arrays.vtu") == text_of(directory / "made.vtu"));
      write_hdf(directory / "arrays.hdf", block.grid(), u, {}, options);
      write_hdf(directory / "made.hdf", block.made_grid(), u, {}, options);
      EXPECT_TRUE(text_of(directory / "arrays.hdf") == text_of(directory / "made.hdf"));
    }
  }
}

// x + 2 y + z/2 = 1: the triangles of a mesh that is made are those of arrays, and lie in that plane.
TEST(LevelSet, OfAMeshThatIsMadeIsTheSame) {
  auto const block = make_block(5, 4, 3, 2, [](Vec const& x) { return x[0] + 2 * x[1] + x[2] / 2; });
  auto const values = [&](std::span<std::int64_t const> nodes, double* out) {
    for (std::int64_t const node : nodes)
      *out++ = block.u[static_cast<std::size_t>(node)];
  };
  LevelSet const of_arrays = level_set(block.grid(), values, 1), of_made = level_set(block.made_grid(), values, 1);
  ASSERT_FALSE(of_arrays.triangles.empty());
  EXPECT_EQ(of_made.triangles, of_arrays.triangles);
  EXPECT_EQ(of_made.cells, of_arrays.cells);
  ASSERT_EQ(of_made.points.size(), of_arrays.points.size());
  for (std::size_t i = 0; i < of_made.points.size(); ++i) {
    LevelSet::Point const& point = of_made.points[i];
    EXPECT_EQ(point.share, of_arrays.points[i].share);
    auto const a = block.made_grid().point(point.first), b = block.made_grid().point(point.second);
    auto const at = [&](std::size_t d) { return point.interpolate(a[d], b[d]); };
    EXPECT_NEAR(at(0) + 2 * at(1) + at(2) / 2, 1, 1e-14);
  }
  auto const fails = [](std::span<std::int64_t const>, double*) { throw EnvironmentError("no values"); };
  EXPECT_THROW(static_cast<void>(level_set(block.grid(), fails, 1)), EnvironmentError);
}

TEST(Vtk, FieldsThatAreMadeGiveTheFilesOfArrays) {
  ImageGrid const image{{0, 0, 0}, {1, 1, 1}, {41, 33, 27}};
  RandomFields const fields(image.n_points(), image.n_cells());
  TemporaryDirectory directory;
  for (VtkCompression const compression : {VtkCompression::none, VtkCompression::fast, VtkCompression::best})
    for (VtkPrecision const precision : {VtkPrecision::single, VtkPrecision::double_}) {
      VtkOptions const options{compression, precision};
      for (auto const& [ending, write] : {std::pair<std::string, std::function<void(std::filesystem::path const&, bool)>>{
                                              ".vti",
                                              [&](auto const&path, bool from_arrays) {
                                                write_vti(path, image, from_arrays ? fields.points() : made(fields.points()),
                                                          from_arrays ? fields.cells() : made(fields.cells()), options);
                                              }},
                                          {".hdf", [&](auto const&path, bool from_arrays) {
                                             write_hdf(path, image, from_arrays ? fields.points() : made(fields.points()),
                                                       from_arrays ? fields.cells() : made(fields.cells()), options);
                                           }}}) {
        write(directory / ("arrays" + ending), true);
        write(directory / ("made" + ending), false);
        EXPECT_TRUE(text_of(directory / ("arrays" + ending)) == text_of(directory / ("made" + ending)))
            << ending << ' ' << name_of(compression) << ' ' << name_of(precision);
      }
    }
  std::vector<Field> const few{{"u", 1, {}, {}, [](std::int64_t, std::int64_t, double*) {}, {}, 5}};
  EXPECT_THROW(write_vti(directory / "few.vti", image, few, {}, {}), std::invalid_argument);
}

TEST(Hdf, LargeArraysComeBackWhateverTheThreads) {
  ImageGrid const image{{0, 0, 0}, {1, 1, 1}, {101, 83, 117}};
  RandomFields const fields(image.n_points(), image.n_cells());
  TemporaryDirectory directory;
  for (VtkCompression const compression : {VtkCompression::none, VtkCompression::fast})
    for (VtkPrecision const precision : {VtkPrecision::single, VtkPrecision::double_}) {
      int const before = omp_get_max_threads();
      for (int const threads : {1, 5}) {
        omp_set_num_threads(threads);
        write_hdf(directory / ("u" + std::to_string(threads) + ".hdf"), image, fields.points(), fields.cells(),
                  {compression, precision});
      }
      omp_set_num_threads(before);
      EXPECT_TRUE(text_of(directory / "u1.hdf") == text_of(directory / "u5.hdf"));
      auto const mesh = read_hdf(directory / "u5.hdf");
      ASSERT_NE(mesh, nullptr);
      expect_values(mesh->GetPointData()->GetArray("error"), fields.error, precision);
      expect_values(mesh->GetCellData()->GetArray("flux"), fields.flux, precision);
      auto* const material = vtkIntArray::SafeDownCast(mesh->GetCellData()->GetArray("material"));
      ASSERT_NE(material, nullptr);
      ASSERT_EQ(mesh->GetNumberOfCells(), image.n_cells());
      for (vtkIdType c = 0; c < mesh->GetNumberOfCells(); ++c) {
        ASSERT_EQ(material->GetValue(c), fields.material[static_cast<std::size_t>(c)]);
        ASSERT_EQ(mesh->GetCellType(c), VTK_HEXAHEDRON);
        vtkIdType n = 0;
        vtkIdType const* nodes = nullptr;
        mesh->GetCellPoints(c, n, nodes);
        ASSERT_EQ(n, 8);
        ASSERT_EQ(nodes[0], image.node(c, 0));
        ASSERT_EQ(nodes[6], image.node(c, 7));
      }
      for (vtkIdType i = 0; i < mesh->GetNumberOfPoints(); i += 1009)
        for (std::size_t d = 0; d < 3; ++d)
          ASSERT_EQ(mesh->GetPoint(i)[d], image.point(i)[d]);
    }
}

/// What VTK's reader has of the values of the whole file.
std::map<std::string, std::vector<std::string>> whole_values(vtkDataSet& data) {
  std::map<std::string, std::vector<std::string>> result;
  auto* const fields = data.GetFieldData();
  for (int a = 0; a < fields->GetNumberOfArrays(); ++a) {
    auto* const array = fields->GetAbstractArray(a);
    EXPECT_EQ(array->GetNumberOfComponents(), 1);
    for (vtkIdType i = 0; i < array->GetNumberOfValues(); ++i)
      result[array->GetName()].push_back(array->GetVariantValue(i).ToString());
  }
  return result;
}

TEST(Vtk, ValuesOfAllAreInEveryFormat) {
  auto const block = make_block(2, 1, 1, 1, [](Vec const& x) { return x[0]; });
  std::vector<double> const u(8, 1.0);
  std::array<std::vector<double>, 3> const x{{{0, 1}, {0, 1}, {0, 1}}};
  std::vector<std::int64_t> const face{0, 1, 3, 2};
  std::vector<std::string> const words{"die", "", "heat sink", "\u00e9 <a&\"b\">"};
  std::vector<WholeArray> const all{{"material_ids", std::vector<int>{1, -2, 7, 8}},
                                    {"material_names", words},
                                    {"parameters.k", std::vector<double>{0.125}},
                                    {"a/b", std::vector<std::string>{"[1, 2]"}}};
  std::map<std::string, std::vector<std::string>> expected{
      {"material_ids", {"1", "-2", "7", "8"}}, {"material_names", words}, {"parameters.k", {"0.125"}}, {"a/b", {"[1, 2]"}}};
  TemporaryDirectory directory;
  for (VtkCompression const compression : {VtkCompression::none, VtkCompression::best}) {
    VtkOptions const options{compression, VtkPrecision::double_};
    write_vtu(directory / "u.vtu", block.grid(), {{"u", 1, block.u, {}}}, {}, options, all);
    EXPECT_EQ(whole_values(*read_vtu(directory / "u.vtu")), expected);
    write_vti(directory / "u.vti", {{}, {1, 1, 1}, {2, 2, 2}}, {{"u", 1, u, {}}}, {}, options, nullptr, all);
    EXPECT_EQ(whole_values(*read<vtkXMLImageDataReader>(directory / "u.vti")), expected);
    write_vtr(directory / "u.vtr", {1, {x[0], x[1], x[2]}}, {{"u", 1, u, {}}}, {}, options, nullptr, all);
    EXPECT_EQ(whole_values(*read<vtkXMLRectilinearGridReader>(directory / "u.vtr")), expected);
    write_vtp(directory / "u.vtp", block.points, face, 4, {{"u", 1, block.u, {}}}, {}, options, all);
    EXPECT_EQ(whole_values(*read<vtkXMLPolyDataReader>(directory / "u.vtp")), expected);
    auto in_hdf = expected;
    in_hdf["a_b"] = in_hdf["a/b"];  // HDF5 has no slash in names
    in_hdf.erase("a/b");
    write_hdf(directory / "u.hdf", block.grid(), {{"u", 1, block.u, {}}}, {}, options, all);
    auto const mesh = read_hdf(directory / "u.hdf");
    ASSERT_NE(mesh, nullptr);
    EXPECT_EQ(whole_values(*mesh), in_hdf);
    expect_same<vtkDoubleArray>(mesh->GetPointData()->GetArray("u"), block.u);
  }
}

TEST(Hdf, OneCell) {
  for (VtkCompression const compression : {VtkCompression::none, VtkCompression::fast, VtkCompression::best})
    for (int p = 1; p <= 4; ++p) {
      auto const block = make_block(
          1, 1, 1, p, [](Vec const& x) { return x[0] + 2 * x[1] + 4 * x[2]; }, [p](Vec const& x) { return curved(x, p); });
      std::vector<double> const flux{1, 2, 3};
      std::vector<int> const material{7};
      TemporaryDirectory directory;
      write_hdf(directory / "u.hdf", block.grid(), {{"u", 1, block.u, {}}}, {{"flux", 3, flux, {}}, {"material", 1, {}, material}},
                {compression, VtkPrecision::double_});
      auto const mesh = read_hdf(directory / "u.hdf");
      ASSERT_NE(mesh, nullptr);
      ASSERT_EQ(mesh->GetNumberOfCells(), 1);
      ASSERT_EQ(mesh->GetCell(0)->GetNumberOfPoints(), (p + 1) * (p + 1) * (p + 1));
      expect_same<vtkDoubleArray>(mesh->GetPoints()->GetData(), block.points);
      expect_same<vtkDoubleArray>(mesh->GetPointData()->GetArray("u"), block.u);
      expect_same<vtkDoubleArray>(mesh->GetCellData()->GetArray("flux"), flux);
      ASSERT_NE(mesh->GetCellData()->GetArray("material"), nullptr);
      EXPECT_EQ(mesh->GetCellData()->GetArray("material")->GetTuple1(0), 7);
    }
}

TEST(Hdf, FieldsStayInTheirOrder) {
  auto const block = make_block(2, 2, 2, 1, [](Vec const& x) { return x[0]; });
  TemporaryDirectory directory;
  write_hdf(directory / "u.hdf", block.grid(), {{"u", 1, block.u, {}}, {"exact", 1, block.u, {}}, {"error", 1, block.u, {}}}, {},
            {});
  auto const mesh = read_hdf(directory / "u.hdf");
  ASSERT_EQ(mesh->GetPointData()->GetNumberOfArrays(), 3);
  EXPECT_STREQ(mesh->GetPointData()->GetArrayName(0), "u");
}

TEST(Hdf, CompressionMakesSmallerFiles) {
  auto const block = make_block(20, 20, 20, 1, [](Vec const& x) { return x[0] * x[1]; });
  TemporaryDirectory directory;
  auto const size = [&](VtkCompression compression) {
    write_hdf(directory / "u.hdf", block.grid(), {{"u", 1, block.u, {}}}, {}, {compression, VtkPrecision::double_});
    return std::filesystem::file_size(directory / "u.hdf");
  };
  auto const none = size(VtkCompression::none), fast = size(VtkCompression::fast), best = size(VtkCompression::best);
  EXPECT_LT(fast, none / 2);
  EXPECT_LE(best, fast);
  // 9261 points of 24 bytes, u, and 8000 cells of 8 nodes and an offset of 8 bytes each and a type byte; little besides.
  EXPECT_LT(none, 9261U * 32U + 8000U * 73U + 16000U);
}

TEST(Base64, EveryLengthAndEveryByte) {
  std::vector<unsigned char> bytes(300);
  std::mt19937 random(3);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<unsigned char>(i < 256 ? i : random());
  std::string const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (std::size_t n = 0; n <= bytes.size(); ++n) {
    std::string expected;  // bit by bit
    for (std::size_t bit = 0; bit < 8 * n; bit += 6) {
      unsigned six = 0;
      for (std::size_t b = bit; b < bit + 6; ++b)
        six = 2 * six + (b < 8 * n ? bytes[b / 8] >> (7 - b % 8) & 1U : 0U);
      expected += alphabet[six];
    }
    expected.resize((expected.size() + 3) / 4 * 4, '=');
    std::string found(base64_size(n), '?');
    encode_base64(bytes.data(), n, found.data());
    ASSERT_EQ(found, expected) << n << " bytes";
  }
}

TEST(Vtk, CompressionMakesSmallerFiles) {
  auto const block = make_block(20, 20, 20, 1, [](Vec const& x) { return x[0] * x[1]; });
  TemporaryDirectory directory;
  auto const size = [&](VtkCompression compression) {
    write_vtu(directory / "u.vtu", block.grid(), {{"u", 1, block.u, {}}}, {}, {compression, VtkPrecision::double_});
    return std::filesystem::file_size(directory / "u.vtu");
  };
  auto const none = size(VtkCompression::none), fast = size(VtkCompression::fast), best = size(VtkCompression::best);
  EXPECT_LT(fast, none);
  EXPECT_LT(best, fast);
  // 9261 points of 24 bytes, u, and 8000 cells of 8 32-bit nodes, a 32-bit offset and a type byte, in base64; little besides.
  EXPECT_LT(none, (9261U * 32U + 8000U * 37U) * 4U / 3U + 4000U);
}

// Node order and file version belong together: readers renumber the nodes of files older than 2.2.
TEST(Vtk, LagrangeCellsAreMarkedWithTheVersionOfTheirNodeOrder) {
  auto const block = make_block(1, 1, 1, 3, [](Vec const& x) { return x[0]; });
  TemporaryDirectory directory;
  write_vtu(directory / "u.vtu", block.grid(), {{"u", 1, block.u, {}}}, {}, {});
  EXPECT_NE(text_of(directory / "u.vtu").find("version=\"2.2\""), std::string::npos);
}

TEST(Vtk, LatticeIsWrittenAsItsHexahedra) {
  ImageGrid const image{{1, -2, 0.5}, {0.25, 0.5, 0.125}, {4, 3, 5}};
  // `block` is the same block as arrays. The coordinates are exact in binary.
  auto const block = make_block(
      3, 2, 4, 1, [](Vec const& x) { return x[0] + 10 * x[1] + 100 * x[2]; },
      [](Vec const& x) -> Vec {
        return {1 + std::round(3 * x[0]) / 4, -2 + std::round(2 * x[1]) / 2, 0.5 + std::round(4 * x[2]) / 8};
      });
  std::vector<double> cell_values(24);
  for (std::size_t i = 0; i < cell_values.size(); ++i)
    cell_values[i] = static_cast<double>(i);
  TemporaryDirectory directory;
  write_vtu(directory / "image.vtu", image, {{"u", 1, block.u, {}}}, {{"c", 1, cell_values, {}}}, {});
  write_vtu(directory / "arrays.vtu", block.grid(), {{"u", 1, block.u, {}}}, {{"c", 1, cell_values, {}}}, {});
  EXPECT_FALSE(text_of(directory / "image.vtu").empty());
  EXPECT_EQ(text_of(directory / "image.vtu"), text_of(directory / "arrays.vtu"));
  write_hdf(directory / "image.hdf", image, {{"u", 1, block.u, {}}}, {{"c", 1, cell_values, {}}}, {});
  write_hdf(directory / "arrays.hdf", block.grid(), {{"u", 1, block.u, {}}}, {{"c", 1, cell_values, {}}}, {});
  EXPECT_TRUE(text_of(directory / "image.hdf") == text_of(directory / "arrays.hdf"));
}

TEST(Vtk, EmptyGridAndNoFields) {
  TemporaryDirectory directory;
  write_vtu(directory / "u.vtu", {}, {}, {}, {});
  auto const mesh = read_vtu(directory / "u.vtu");
  EXPECT_EQ(mesh->GetNumberOfCells(), 0);
  EXPECT_EQ(mesh->GetNumberOfPoints(), 0);
  write_hdf(directory / "u.hdf", {}, {}, {}, {});
}

TEST(Vtk, NotANumberSurvives) {
  auto block = make_block(2, 2, 2, 1, [](Vec const& x) { return x[0]; });
  block.u[3] = std::numeric_limits<double>::quiet_NaN();
  TemporaryDirectory directory;
  write_vtu(directory / "u.vtu", block.grid(), {{"u", 1, block.u, {}}}, {}, {});
  auto const mesh = read_vtu(directory / "u.vtu");
  EXPECT_TRUE(std::isnan(mesh->GetPointData()->GetArray("u")->GetTuple1(3)));
  EXPECT_EQ(mesh->GetPointData()->GetArray("u")->GetTuple1(5), block.u[5]);
}

TEST(Vtk, FieldOfTheWrongSizeIsRefused) {
  auto const block = make_block(2, 2, 2, 1, [](Vec const& x) { return x[0]; });
  TemporaryDirectory directory;
  std::vector<double> const few(26);
  EXPECT_THROW(write_vtu(directory / "u.vtu", block.grid(), {{"u", 1, few, {}}}, {}, {}), std::invalid_argument);
  EXPECT_THROW(write_vtu(directory / "u.vtu", block.grid(), {}, {{"u", 1, block.u, {}}}, {}), std::invalid_argument);
  EXPECT_THROW(write_hdf(directory / "u.hdf", block.grid(), {{"u", 1, few, {}}}, {}, {}), std::invalid_argument);
  EXPECT_THROW(write_hdf(directory / "u.hdf", block.grid(), {{"u/v", 1, block.u, {}}}, {}, {}), std::invalid_argument);
  EXPECT_THROW(write_vti(directory / "u.vti", {{}, {1, 1, 1}, {3, 3, 3}}, {}, {{"u", 1, few, {}}}, {}), std::invalid_argument);
  EXPECT_TRUE(directory.names().empty());
}

struct Comma : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

TEST(Vtk, TheLocaleDoesNotMatter) {
  auto const block = make_block(12, 12, 12, 1, [](Vec const& x) { return x[0] + 0.5; });
  TemporaryDirectory directory;
  write_vtu(directory / "plain.vtu", block.grid(), {{"u", 1, block.u, {}}}, {}, {});
  auto const before = std::locale::global(std::locale(std::locale::classic(), new Comma));
  write_vtu(directory / "comma.vtu", block.grid(), {{"u", 1, block.u, {}}}, {}, {});
  write_pvd(directory / "comma.pvd", {{1234.5, "a.vtu"}});
  std::locale::global(before);
  EXPECT_EQ(text_of(directory / "comma.vtu"), text_of(directory / "plain.vtu"));
  EXPECT_NE(text_of(directory / "comma.pvd").find("timestep=\"1234.5\""), std::string::npos);
}

TEST(Pvd, NamesEveryFileWithItsTime) {
  TemporaryDirectory directory;
  write_pvd(directory / "all.pvd", {{0, "u.vtu"}, {0.1, "case 2/<a&\"b\">.vtu", "k = \"a\""}, {1e300, "c.vtu"}});
  EXPECT_EQ(text_of(directory / "all.pvd"), "<?xml version=\"1.0\"?>\n"
                                            "<VTKFile type=\"Collection\" version=\"0.1\" byte_order=\"LittleEndian\">\n"
                                            "  <Collection>\n"
                                            "    <DataSet timestep=\"0\" group=\"\" part=\"0\" file=\"u.vtu\"/>\n"
                                            "    <DataSet timestep=\"0.1\" group=\"\" part=\"0\" name=\"k = &quot;a&quot;\" "
                                            "file=\"case 2/&lt;a&amp;&quot;b&quot;&gt;.vtu\"/>\n"
                                            "    <DataSet timestep=\"1e+300\" group=\"\" part=\"0\" file=\"c.vtu\"/>\n"
                                            "  </Collection>\n"
                                            "</VTKFile>\n");
}

}  // namespace

}  // namespace poisson::output::test
