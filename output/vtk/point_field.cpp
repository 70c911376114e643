#include "output/vtk/point_field.hpp"

#include "gpu/core/error.hpp"
#include "output/vtk/hdf_storage.hpp"

#include <vtkAbstractCellLocator.h>
#include <vtkCellData.h>
#include <vtkDataArray.h>
#include <vtkDataSet.h>
#include <vtkErrorCode.h>
#include <vtkGenericCell.h>
#include <vtkHDFReader.h>
#include <vtkIdList.h>
#include <vtkImageData.h>
#include <vtkNew.h>
#include <vtkObject.h>
#include <vtkPointData.h>
#include <vtkPoints.h>
#include <vtkPolyData.h>
#include <vtkRectilinearGrid.h>
#include <vtkSmartPointer.h>
#include <vtkStaticCellLocator.h>
#include <vtkStaticPointLocator.h>
#include <vtkXMLImageDataReader.h>
#include <vtkXMLRectilinearGridReader.h>
#include <vtkXMLUnstructuredGridReader.h>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <csignal>
#include <fstream>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace poisson::output {
namespace {

namespace fs = std::filesystem;
using Point = std::array<double, 3>;

[[noreturn]] void refuse(fs::path const& path, std::string const& what) {
  throw InputError("", path.string() + ": " + what);
}

/// Values at a tensor product of coordinates, x fastest.
struct TensorGrid {
  std::array<std::vector<double>, 3> coordinates;  ///< ascending
  std::vector<double> values;

  [[nodiscard]] double at(Point const& x, FieldInterpolation interpolation) const {
    std::array<std::size_t, 3> low{}, high{};
    Point share{};
    for (std::size_t d = 0; d < 3; ++d) {
      auto const& c = coordinates[d];
      auto const above = static_cast<std::size_t>(std::upper_bound(c.begin(), c.end(), x[d]) - c.begin());
      low[d] = above == 0 ? 0 : above - 1;
      high[d] = std::min(above, c.size() - 1);
      if (low[d] < high[d])
        share[d] = (x[d] - c[low[d]]) / (c[high[d]] - c[low[d]]);
      if (interpolation == FieldInterpolation::nearest)
        share[d] = share[d] < 0.5 ? 0 : 1;
    }
    double sum = 0;
    for (unsigned corner = 0; corner < 8; ++corner) {
      double weight = 1;
      std::array<std::size_t, 3> i{};
      for (unsigned d = 0; d < 3; ++d) {
        bool const upper = (corner >> d & 1U) != 0;
        weight *= upper ? share[d] : 1 - share[d];
        i[d] = upper ? high[d] : low[d];
      }
      if (weight != 0)
        sum += weight * values[(i[2] * coordinates[1].size() + i[1]) * coordinates[0].size() + i[0]];
    }
    return sum;
  }
};

/// The array that is asked for, of points or of cells.
struct Array {
  vtkDataArray* values;
  bool of_points;
};

Array find_array(vtkDataSet& data, std::string const& name, fs::path const& path) {
  std::vector<std::pair<std::string, Array>> all;
  auto const add = [&](vtkDataSetAttributes& attributes, bool of_points) {
    for (int i = 0; i < attributes.GetNumberOfArrays(); ++i)
      if (vtkDataArray* const array = attributes.GetArray(i); array != nullptr && array->GetNumberOfComponents() == 1)
        all.emplace_back(array->GetName() != nullptr ? array->GetName() : "", Array{array, of_points});
  };
  add(*data.GetPointData(), true);
  add(*data.GetCellData(), false);
  std::string names;
  for (auto const& [known, array] : all) {
    if (known == (name.empty() ? "u" : name))
      return array;
    names += (names.empty() ? "" : ", ") + known;
  }
  if (name.empty() && all.size() == 1)
    return all.front().second;
  refuse(path, (name.empty() ? "say which array is meant" : "has no array '" + name + "' of one component") +
                   (names.empty() ? "; it has none" : "; it has: " + names));
}

std::vector<double> values_of(vtkDataArray& array) {
  std::vector<double> values(static_cast<std::size_t>(array.GetNumberOfTuples()));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = array.GetComponent(static_cast<vtkIdType>(i), 0);
  return values;
}

/// The middles of neighbours, of more than one coordinate.
std::vector<double> centres(std::vector<double> const& coordinates) {
  if (coordinates.size() == 1)
    return coordinates;
  std::vector<double> result;
  for (std::size_t i = 0; i + 1 < coordinates.size(); ++i)
    result.push_back(0.5 * (coordinates[i] + coordinates[i + 1]));
  return result;
}

PointField grid_field(std::array<std::vector<double>, 3> nodes, Array const& array, FieldInterpolation interpolation,
                      fs::path const& path) {
  TensorGrid grid;
  std::size_t size = 1;
  for (std::size_t d = 0; d < 3; ++d) {
    grid.coordinates[d] = array.of_points ? std::move(nodes[d]) : centres(nodes[d]);
    size *= grid.coordinates[d].size();
  }
  grid.values = values_of(*array.values);
  if (grid.values.size() != size || size == 0)
    refuse(path, "its array has " + std::to_string(grid.values.size()) + " values where its grid has " + std::to_string(size));
  return [grid = std::make_shared<TensorGrid const>(std::move(grid)), interpolation](Point const& x) {
    return grid->at(x, interpolation);
  };
}

PointField image_field(vtkSmartPointer<vtkImageData> const& image, Array const& array, FieldInterpolation interpolation,
                       fs::path const& path) {
  std::array<int, 6> extent{};
  image->GetExtent(extent.data());
  std::array<std::vector<double>, 3> indices;
  for (std::size_t d = 0; d < 3; ++d)
    for (int i = extent[2 * d]; i <= extent[2 * d + 1]; ++i)
      indices[d].push_back(i);
  PointField const in_indices = grid_field(std::move(indices), array, interpolation, path);
  return [image, in_indices](Point const& x) {
    Point index{};
    image->TransformPhysicalPointToContinuousIndex(x.data(), index.data());
    return in_indices(index);
  };
}

PointField rectilinear_field(vtkRectilinearGrid& grid, Array const& array, FieldInterpolation interpolation, fs::path const& path) {
  return grid_field({values_of(*grid.GetXCoordinates()), values_of(*grid.GetYCoordinates()), values_of(*grid.GetZCoordinates())},
                    array, interpolation, path);
}

/// Values on cells of any kind.
class CellsField {
public:
  CellsField(vtkSmartPointer<vtkDataSet> data, Array const& array, FieldInterpolation interpolation)
      : data_(std::move(data)), values_(values_of(*array.values)), of_points_(array.of_points), interpolation_(interpolation) {
    locator_->SetDataSet(data_);
    locator_->BuildLocator();
    vtkNew<vtkGenericCell> cell;
    data_->GetCell(0, cell.Get());  // what is made by the first call must not be made by threads
    most_points_ = static_cast<std::size_t>(data_->GetMaxCellSize());
  }
  double operator()(Point const& at) {
    thread_local vtkNew<vtkGenericCell> cell;
    thread_local std::vector<double> weights;
    weights.resize(std::max(weights.size(), most_points_));
    Point x = at, reference{}, closest{};
    int part = 0;
    double distance = 0;
    vtkIdType id = locator().FindCell(x.data(), 0.0, cell.Get(), reference.data(), weights.data());
    if (id < 0) {
      locator_->FindClosestPoint(x.data(), closest.data(), cell.Get(), id, part, distance);
      if (id < 0)
        return std::nan("");
      x = closest;
      cell->EvaluatePosition(x.data(), closest.data(), part, reference.data(), distance, weights.data());
    }
    if (!of_points_)
      return values_[static_cast<std::size_t>(id)];
    auto const n = cell->GetNumberOfPoints();
    auto const value = [&](vtkIdType i) { return values_[static_cast<std::size_t>(cell->GetPointId(static_cast<int>(i)))]; };
    if (interpolation_ == FieldInterpolation::nearest) {
      vtkIdType nearest = 0;
      double least = std::numeric_limits<double>::infinity();
      for (vtkIdType i = 0; i < n; ++i) {
        double const* const node = cell->GetPoints()->GetPoint(i);
        double const here = std::hypot(node[0] - at[0], node[1] - at[1], node[2] - at[2]);
        if (here < least) {
          least = here;
          nearest = i;
        }
      }
      return value(nearest);
    }
    double sum = 0;
    for (vtkIdType i = 0; i < n; ++i)
      sum += weights[static_cast<std::size_t>(i)] * value(i);
    return sum;
  }

private:
  /// Versions of VTK differ in what the derived class hides.
  [[nodiscard]] vtkAbstractCellLocator& locator() const { return *locator_; }

  vtkSmartPointer<vtkDataSet> data_;
  vtkNew<vtkStaticCellLocator> locator_;
  std::vector<double> values_;
  bool of_points_;
  FieldInterpolation interpolation_;
  std::size_t most_points_ = 0;
};

template <class Reader>
vtkSmartPointer<vtkDataSet> read_with(fs::path const& path) {
  vtkObject::GlobalWarningDisplayOff();  // what is wrong shows in the error code
  QuietHdf const quiet;
  vtkNew<Reader> reader;
  reader->SetFileName(path.c_str());
  reader->Update();
  auto* const data = vtkDataSet::SafeDownCast(reader->GetOutputDataObject(0));
  if (reader->GetErrorCode() != vtkErrorCode::NoError || data == nullptr || data->GetNumberOfPoints() == 0)
    refuse(path, "VTK cannot read it");
  return data;
}

/// Points with values, in no order.
struct Table {
  std::vector<Point> points;
  std::vector<double> values;
};

/// The words of a line, apart by commas, semicolons or blanks.
std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  constexpr std::string_view between = ",; \t\r\"";
  for (std::size_t at = line.find_first_not_of(between); at != std::string_view::npos; at = line.find_first_not_of(between, at)) {
    std::size_t const end = std::min(line.find_first_of(between, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

std::optional<double> number_of(std::string_view word) {
  if (word.starts_with('+'))
    word.remove_prefix(1);
  double value = 0;
  auto const [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  return error == std::errc{} && end == word.data() + word.size() && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

Table read_table(fs::path const& path, std::string const& array) {
  std::ifstream in(path);
  if (!in)
    refuse(path, "cannot be opened");
  Table table;
  std::size_t column = 3, count = 0;
  std::string line;
  for (std::size_t number = 1; std::getline(in, line); ++number) {
    auto const words = words_of(line);
    if (words.empty() || words.front().starts_with('#'))
      continue;
    bool const first = count == 0;
    if (first) {
      count = words.size();
      if (count < 4)
        refuse(path, "line " + std::to_string(number) + " has " + std::to_string(count) +
                         " columns; a table of points has x, y, z and a value");
      if (!number_of(words.front())) {
        auto const found = std::find(words.begin() + 3, words.end(), array);
        if (!array.empty() && found == words.end())
          refuse(path, "has no column '" + array + "'; line " + std::to_string(number) + " names: " + line);
        if (!array.empty())
          column = static_cast<std::size_t>(found - words.begin());
        continue;
      }
      if (!array.empty())
        refuse(path, "has no line of names, in which there could be a column '" + array + "'");
    }
    if (words.size() != count)
      refuse(path, "line " + std::to_string(number) + " has " + std::to_string(words.size()) + " columns, those before have " +
                       std::to_string(count));
    std::array<double, 4> row{};
    for (std::size_t i = 0; i < 4; ++i) {
      std::string_view const word = words[i < 3 ? i : column];
      auto const value = number_of(word);
      if (!value)
        refuse(path, "line " + std::to_string(number) + ": '" + std::string(word.substr(0, 40)) + "' is no finite number");
      row[i] = *value;
    }
    table.points.push_back({row[0], row[1], row[2]});
    table.values.push_back(row[3]);
  }
  if (table.points.empty())
    refuse(path, "has no points");
  return table;
}

/// The table as a grid, when its points are the tensor product of their coordinates.
std::optional<TensorGrid> as_grid(Table const& table) {
  TensorGrid grid;
  std::size_t size = 1;
  for (std::size_t d = 0; d < 3; ++d) {
    std::vector<double> all;
    for (Point const& x : table.points)
      all.push_back(x[d]);
    std::sort(all.begin(), all.end());
    double const same = 1e-9 * (all.back() - all.front());
    for (double const x : all)
      if (grid.coordinates[d].empty() || x - grid.coordinates[d].back() > same)
        grid.coordinates[d].push_back(x);
    if (grid.coordinates[d].size() > table.points.size() / size)
      return std::nullopt;
    size *= grid.coordinates[d].size();
  }
  if (size != table.points.size())
    return std::nullopt;
  grid.values.resize(size);
  std::vector<bool> there(size, false);
  for (std::size_t i = 0; i < size; ++i) {
    std::array<std::size_t, 3> index{};
    for (std::size_t d = 0; d < 3; ++d) {
      auto const& c = grid.coordinates[d];
      auto const above = std::upper_bound(c.begin(), c.end(), table.points[i][d]);
      index[d] = static_cast<std::size_t>(above - c.begin()) - 1;  // a coordinate is the least of those that are the same
    }
    std::size_t const at = (index[2] * grid.coordinates[1].size() + index[1]) * grid.coordinates[0].size() + index[0];
    if (there[at])
      return std::nullopt;
    there[at] = true;
    grid.values[at] = table.values[i];
  }
  return grid;
}

/// Points in no order.
class PointsField {
public:
  PointsField(Table table, FieldInterpolation interpolation) : table_(std::move(table)), interpolation_(interpolation) {
    vtkNew<vtkPoints> points;
    points->SetDataTypeToDouble();
    for (Point const& x : table_.points)
      points->InsertNextPoint(x.data());
    data_->SetPoints(points);
    locator_->SetDataSet(data_);
    locator_->BuildLocator();
  }
  double operator()(Point const& x) {
    constexpr int neighbours = 12;
    if (interpolation_ == FieldInterpolation::nearest)
      return table_.values[static_cast<std::size_t>(locator_->FindClosestPoint(x.data()))];
    thread_local vtkNew<vtkIdList> near;
    locator_->FindClosestNPoints(std::min<int>(neighbours, static_cast<int>(table_.points.size())), x.data(), near.Get());
    return fitted(x, *near);
  }

private:
  /// The value at x of the plane through the points that fits best, those close to x most of all (Lancaster and Salkauskas,
  /// Surfaces generated by moving least squares methods, 1981).
  [[nodiscard]] double fitted(Point const& x, vtkIdList& near) const {
    auto const point = [&](vtkIdType i) { return static_cast<std::size_t>(near.GetId(i)); };
    auto const distance = [&](std::size_t p) {
      Point const& at = table_.points[p];
      return std::hypot(at[0] - x[0], at[1] - x[1], at[2] - x[2]);
    };
    vtkIdType const n = near.GetNumberOfIds();
    double const scale = distance(point(n - 1));
    if (!(scale > 0))
      return table_.values[point(0)];
    std::array<std::array<double, 5>, 4> m{};  // normal equations of a + b . (x_i - x) / scale, and their right-hand sides
    for (vtkIdType i = 0; i < n; ++i) {
      std::size_t const p = point(i);
      double const r = distance(p) / scale, weight = 1 / (r * r + 1e-8);
      std::array<double, 5> const row{1, (table_.points[p][0] - x[0]) / scale, (table_.points[p][1] - x[1]) / scale,
                                      (table_.points[p][2] - x[2]) / scale, table_.values[p]};
      for (std::size_t j = 0; j < 4; ++j)
        for (std::size_t k = 0; k < 5; ++k)
          m[j][k] += weight * row[j] * row[k];
    }
    double const total = m[0][0];
    for (std::size_t j = 1; j < 4; ++j)
      m[j][j] += 1e-10 * total;  // points in one plane say nothing of the slope across it: the least one
    // The last unknown that elimination finds is the first, a; the matrix is positive definite.
    for (std::size_t j = 3; j > 0; --j)
      for (std::size_t i = 0; i < j; ++i) {
        double const factor = m[i][j] / m[j][j];
        for (std::size_t k = 0; k <= j; ++k)
          m[i][k] -= factor * m[j][k];
        m[i][4] -= factor * m[j][4];
      }
    return m[0][4] / m[0][0];
  }

  Table table_;
  FieldInterpolation interpolation_;
  vtkNew<vtkPolyData> data_;
  vtkNew<vtkStaticPointLocator> locator_;
};

/// std::function wants what can be copied.
template <class Field, class... Arguments>
PointField shared(Arguments&&... arguments) {
  auto field = std::make_shared<Field>(std::forward<Arguments>(arguments)...);
  return [field](Point const& x) { return (*field)(x); };
}

}  // namespace

namespace {

bool is_of_vtk(std::string const& ending) {
  return ending == ".vti" || ending == ".vtr" || ending == ".vtu" || ending == ".hdf";
}

PointField open_vtk_field(fs::path const& path, std::string const& ending, std::string const& array,
                          FieldInterpolation interpolation) {
  auto const data = ending == ".vti"   ? read_with<vtkXMLImageDataReader>(path)
                    : ending == ".vtr" ? read_with<vtkXMLRectilinearGridReader>(path)
                    : ending == ".vtu" ? read_with<vtkXMLUnstructuredGridReader>(path)
                                       : read_with<vtkHDFReader>(path);
  Array const found = find_array(*data, array, path);
  if (auto* const image = vtkImageData::SafeDownCast(data))
    return image_field(image, found, interpolation, path);
  if (auto* const grid = vtkRectilinearGrid::SafeDownCast(data))
    return rectilinear_field(*grid, found, interpolation, path);
  if (data->GetNumberOfCells() == 0)
    refuse(path, "has no cells");
  return shared<CellsField>(data, found, interpolation);
}

}  // namespace

PointField open_point_field(fs::path const& path, std::string const& array, FieldInterpolation interpolation) {
  std::error_code error;
  if (!fs::is_regular_file(path, error))
    refuse(path, fs::exists(path, error) ? "is no file" : "there is no such file");
  std::string const ending = path.extension().string();
  if (!is_of_vtk(ending)) {
    Table table = read_table(path, array);
    if (auto grid = as_grid(table))
      return [grid = std::make_shared<TensorGrid const>(std::move(*grid)), interpolation](Point const& x) {
        return grid->at(x, interpolation);
      };
    return shared<PointsField>(std::move(table), interpolation);
  }
  return open_vtk_field(path, ending, array, interpolation);
}

void try_point_field(fs::path const& path, std::string const& array, FieldInterpolation interpolation) {
  pid_t const child = is_of_vtk(path.extension().string()) ? fork() : -1;
  if (child < 0)
    return;
  constexpr unsigned longest = 120;  // seconds
  if (child == 0) {
    rlimit const no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    if (int const nowhere = ::open("/dev/null", O_WRONLY); nowhere >= 0)
      dup2(nowhere, STDERR_FILENO);  // what a library says as it crashes
    alarm(longest);
    try {
      static_cast<void>(open_point_field(path, array, interpolation)({0, 0, 0}));
    } catch (...) {  // the first process meets the same error
    }
    _exit(0);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  int const signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  if (signal == SIGSEGV || signal == SIGBUS || signal == SIGABRT || signal == SIGFPE || signal == SIGILL)
    refuse(path, "the library that reads such files fails at this one: it is damaged");
}

}  // namespace poisson::output
