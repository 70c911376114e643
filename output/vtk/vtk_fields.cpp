#include "output/vtk/vtk_library.hpp"

#include "gpu/core/error.hpp"
#include "output/vtk/hdf_steps.hpp"
#include "output/vtk/hdf_storage.hpp"
#include "output/vtk/hdf_writer.hpp"

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
#include <vtkOutputWindow.h>
#include <vtkPointData.h>
#include <vtkPoints.h>
#include <vtkPolyData.h>
#include <vtkRectilinearGrid.h>
#include <vtkSmartPointer.h>
#include <vtkStaticCellLocator.h>
#include <vtkStaticPointLocator.h>
#include <vtkStringOutputWindow.h>
#include <vtkXMLImageDataReader.h>
#include <vtkXMLRectilinearGridReader.h>
#include <vtkXMLUnstructuredGridReader.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>
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

/// The first error that VTK told; empty: none.
std::string first_error(std::string const& messages) {
  // "ERROR: In FILE, line N\nvtkReader (0x55...): MESSAGE\n\n"
  std::size_t const at = messages.find("ERROR: In");
  if (at == std::string::npos)
    return {};
  std::string error = messages.substr(at, messages.find("\n\n", at) - at);
  if (std::size_t const object = error.find("): "); object != std::string::npos)
    error.erase(0, object + 3);
  std::replace(error.begin(), error.end(), '\n', ' ');
  return error.substr(0, 200);
}

/// `path` is what messages name, `content` what is read.
template <class Reader>
vtkSmartPointer<vtkDataSet> read_with(fs::path const& path, fs::path const& content) {
  QuietHdf const quiet;
  vtkNew<vtkStringOutputWindow> messages;
  vtkOutputWindow::SetInstance(messages);
  vtkNew<Reader> reader;
  reader->SetFileName(content.c_str());
  reader->Update();
  vtkOutputWindow::SetInstance(nullptr);
  std::string const error = first_error(messages->GetOutput());
  auto* const data = vtkDataSet::SafeDownCast(reader->GetOutputDataObject(0));
  if (!error.empty() || reader->GetErrorCode() != vtkErrorCode::NoError || data == nullptr || data->GetNumberOfPoints() == 0)
    refuse(path, "VTK cannot read it" + (error.empty() ? "" : ": " + error));
  return data;
}

/// Points with values, in no order.
struct Table {
  std::vector<Point> points;
  std::vector<double> values;
};

std::string_view trimmed(std::string_view text, std::string_view blanks = " \t\r") {
  std::size_t const first = text.find_first_not_of(blanks);
  return first == std::string_view::npos ? std::string_view() : text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

/// What stands between the cells of a line: a semicolon, a comma, a tabulator, or blanks. Excel writes semicolons where numbers
/// have commas.
char separator_of(std::string_view line) {
  for (char const separator : {';', ',', '\t'})
    if (line.find(separator) != std::string_view::npos)
      return separator;
  return ' ';
}

/// The cells of a line, without blanks and quotes around them. Nothing behind the last separator is no cell.
std::vector<std::string_view> cells_of(std::string_view line, char separator) {
  std::string_view const blanks = separator == '\t' ? " \r" : " \t\r";
  std::vector<std::string_view> cells;
  for (line = trimmed(line, blanks); !line.empty();) {
    bool const quoted = line.front() == '"';
    std::size_t const close = quoted ? line.find('"', 1) : 0;
    if (close == std::string_view::npos)
      break;
    std::size_t const end =
        std::min(separator == ' ' ? line.find_first_of(" \t", close) : line.find(separator, close), line.size());
    cells.push_back(trimmed(quoted ? line.substr(1, close - 1) : line.substr(0, end)));
    line = end == line.size() ? std::string_view() : trimmed(line.substr(end + 1), blanks);
  }
  return cells;
}

std::optional<double> number_of(std::string_view word, char separator) {
  std::string point;
  if (separator == ';' && word.find(',') != std::string_view::npos && word.find('.') == std::string_view::npos) {
    point = word;
    std::replace(point.begin(), point.end(), ',', '.');
    word = point;
  }
  if (word.starts_with('+'))
    word.remove_prefix(1);
  double value = 0;
  auto const [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  return error == std::errc{} && end == word.data() + word.size() && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

/// A name of a column without its unit, "X Location (mm)" or "x [m]".
std::string_view without_unit(std::string_view name) {
  if (name.ends_with(')') || name.ends_with(']'))
    if (std::size_t const open = name.find_last_of("(["); open != std::string_view::npos && open > 0)
      return trimmed(name.substr(0, open));
  return name;
}

/// Reduces a name without its unit to letters and digits, in small letters.
std::string bare(std::string_view name) {
  std::string result;
  for (char const c : without_unit(name))
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

/// The direction that a column is the coordinate of: x, Y, "Points:0", Points_0, "X Coordinate", coord_x; 3: of none.
std::size_t direction_of(std::string_view name) {
  std::string rest = bare(name);
  bool is_place = false;
  for (std::string_view const word :
       {"coordinates", "coordinate", "coords", "coord", "points", "point", "position", "pos", "location"}) {
    if (rest.size() != word.size() + 1)
      continue;
    if (rest.starts_with(word))
      rest.erase(0, word.size());
    else if (rest.ends_with(word))
      rest.resize(1);
    else
      continue;
    is_place = true;
    break;
  }
  if (rest.size() != 1)
    return 3;
  std::size_t const letter = std::string_view("xyz").find(rest), digit = std::string_view("012").find(rest);
  return letter != std::string_view::npos ? letter : is_place && digit != std::string_view::npos ? digit : 3;
}

/// Whether a column only numbers the points, or follows from their places; pandas' index has no name.
bool is_counter(std::string_view name) {
  static constexpr std::array<std::string_view, 16> names{"",
                                                          "id",
                                                          "index",
                                                          "no",
                                                          "nr",
                                                          "number",
                                                          "node",
                                                          "nodeid",
                                                          "nodenumber",
                                                          "pointid",
                                                          "pointnumber",
                                                          "row",
                                                          "rowid",
                                                          "unnamed0",
                                                          "vtkoriginalpointids",
                                                          "pointsmagnitude"};
  return std::find(names.begin(), names.end(), bare(name)) != names.end();
}

/// Which columns have x, y, z and the value.
using Columns = std::array<std::size_t, 4>;

std::string list_of(std::vector<std::string_view> const& names) {
  std::string list;
  for (std::string_view const name : names)
    list.append(list.empty() ? "" : ", ").append(name.empty() ? "(no name)" : name.substr(0, 40));
  return list;
}

Columns columns_of(std::vector<std::string_view> const& names, std::string const& array, fs::path const& path) {
  constexpr std::size_t none = std::string_view::npos;
  Columns columns{none, none, none, none};
  for (std::size_t d = 0; d < 3; ++d) {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < names.size(); ++i)
      if (direction_of(names[i]) == d)
        found.push_back(i);
    auto const plain = std::find_if(found.begin(), found.end(), [&](std::size_t i) { return bare(names[i]).size() == 1; });
    if (found.empty())
      refuse(path, std::string("no column is named ") + "xyz"[d] +
                       " (or X, Points:0, \"x [m]\", x_coordinate and so on for x); the columns are " + list_of(names));
    if (found.size() > 1 && plain == found.end())
      refuse(path, std::string("several columns may be ") + "xyz"[d] + "; the columns are " + list_of(names));
    columns[d] = plain != found.end() ? *plain : found.front();
  }
  auto const find = [&](auto const& matches) {
    return static_cast<std::size_t>(std::find_if(names.begin(), names.end(), matches) - names.begin());
  };
  if (!array.empty()) {
    std::size_t column = find([&](std::string_view name) { return name == array; });
    if (column == names.size())
      column = find([&](std::string_view name) { return without_unit(name) == array; });
    if (column == names.size())
      refuse(path, "has no column '" + array + "'; the columns are " + list_of(names));
    columns[3] = column;
    return columns;
  }
  std::vector<std::size_t> others;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (direction_of(names[i]) == 3 && !is_counter(names[i]))
      others.push_back(i);
  if (std::size_t const u = find([](std::string_view name) { return name == "u"; }); others.size() != 1 && u < names.size())
    others = {u};
  if (others.size() != 1)
    refuse(path, "say by `array` which column is meant; the columns are " + list_of(names));
  columns[3] = others.front();
  return columns;
}

/// The names in a comment, as numpy and COMSOL write them above their numbers: "# x y z k", "% x y z T (K)". Empty: it is another.
std::string header_in(std::string_view comment) {
  std::size_t const first = comment.find_first_not_of("#% \t");
  if (first == std::string_view::npos)
    return {};
  comment.remove_prefix(first);
  std::array<bool, 3> found{};
  for (std::string_view const name : cells_of(comment, separator_of(comment)))
    if (std::size_t const d = direction_of(name); d < 3)
      found[d] = true;
  return found[0] && found[1] && found[2] ? std::string(comment) : std::string();
}

/// Names apart by blanks, with their units as a part of them.
std::vector<std::string_view> names_of(std::string_view line, char separator) {
  std::vector<std::string_view> names = cells_of(line, separator);
  if (separator == ' ')
    std::erase_if(names, [](std::string_view name) { return name.starts_with('(') || name.starts_with('['); });
  return names;
}

Table read_table(fs::path const& path, std::string const& array) {
  std::ifstream in(path);
  if (!in)
    refuse(path, "cannot be opened");
  Table table;
  Columns columns{0, 1, 2, 3};
  std::size_t count = 0;
  char separator = ' ';
  std::string line, in_comment;
  for (std::size_t number = 1; std::getline(in, line); ++number) {
    if (number == 1 && line.starts_with("\xef\xbb\xbf"))
      line.erase(0, 3);
    std::string_view const text = trimmed(line);
    if (text.empty() || (number == 1 && text.starts_with("sep=")))
      continue;
    std::string const place = "line " + std::to_string(number);
    if (text.front() == '#' || text.front() == '%') {
      if (std::string header = count == 0 ? header_in(text) : std::string(); !header.empty())
        in_comment = std::move(header);
      continue;
    }
    if (count == 0) {
      separator = separator_of(line);
      auto const first = cells_of(line, separator);
      count = first.size();
      bool const has_names = !number_of(first.front(), separator);
      if (has_names || !in_comment.empty()) {
        auto const names = has_names ? names_of(line, separator) : names_of(in_comment, separator_of(in_comment));
        if (!has_names && names.size() != count)
          refuse(path, place + " has " + std::to_string(count) + " columns, and the comment before names " +
                           std::to_string(names.size()) + ": " + list_of(names));
        count = names.size();
        columns = columns_of(names, array, path);
      } else if (count != 4) {
        refuse(path, place + " has " + std::to_string(count) +
                         " columns; without a line of names a table of points has four, x, y, z and a value");
      } else if (!array.empty()) {
        refuse(path, "has no line of names, in which there could be a column '" + array + "'");
      }
      if (has_names)
        continue;
    }
    auto const cells = cells_of(line, separator);
    if (cells.size() != count)
      refuse(path, place + " has " + std::to_string(cells.size()) + " columns, those before have " + std::to_string(count));
    std::array<double, 4> row{};
    for (std::size_t i = 0; i < 4; ++i) {
      std::string_view const word = cells[columns[i]];
      auto const value = number_of(word, separator);
      if (!value)
        refuse(path, place + ": '" + std::string(word.substr(0, 40)) + "' is no finite number");
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

PointField open_grid_field(fs::path const& path, fs::path const& content, std::string const& array,
                           FieldInterpolation interpolation) {
  std::string const ending = path.extension().string();
  auto const data = ending == ".vti"   ? read_with<vtkXMLImageDataReader>(path, content)
                    : ending == ".vtr" ? read_with<vtkXMLRectilinearGridReader>(path, content)
                    : ending == ".vtu" ? read_with<vtkXMLUnstructuredGridReader>(path, content)
                                       : read_with<vtkHDFReader>(path, content);
  Array const found = find_array(*data, array, path);
  if (auto* const image = vtkImageData::SafeDownCast(data))
    return image_field(image, found, interpolation, path);
  if (auto* const grid = vtkRectilinearGrid::SafeDownCast(data))
    return rectilinear_field(*grid, found, interpolation, path);
  if (data->GetNumberOfCells() == 0)
    refuse(path, "has no cells");
  return shared<CellsField>(data, found, interpolation);
}

PointField open_table_field(fs::path const& path, std::string const& array, FieldInterpolation interpolation) {
  Table table = read_table(path, array);
  if (auto grid = as_grid(table))
    return [grid = std::make_shared<TensorGrid const>(std::move(*grid)), interpolation](Point const& x) {
      return grid->at(x, interpolation);
    };
  return shared<PointsField>(std::move(table), interpolation);
}

std::unique_ptr<HdfFile> open_hdf_writer(fs::path const& path, std::string const& type, VtkOptions const& options) {
  return std::make_unique<HdfWriter>(path, type, options);
}

}  // namespace
}  // namespace poisson::output

poisson::output::VtkFunctions const* poisson_vtk() {
  using namespace poisson::output;
  static constexpr VtkFunctions functions{open_hdf_writer, open_grid_field, open_table_field, step_of_hdf};
  return &functions;
}
