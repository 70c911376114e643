#include "output/vtk/vtk_files.hpp"

#include "output/files/atomic_file.hpp"
#include "output/vtk/hdf_file.hpp"
#include "output/vtk/xml_file.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <exception>
#include <limits>
#include <memory>
#include <numeric>
#include <stdexcept>

namespace poisson::output {

namespace {

/// The shortest text that reads as the same number, whatever the locale.
std::string number(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

/// Numbers of floating point in the precision of the file. `value_of(i)` is value i.
template <class ValueOf>
DataArray floating(std::string name, int components, std::int64_t n, VtkPrecision precision, ValueOf const& value_of) {
  DataArray array{std::move(name), precision == VtkPrecision::single ? ScalarType::float32 : ScalarType::float64, components, n};
  array.fill = [precision, value_of](std::int64_t first, std::int64_t count, void* out) {
    for (std::int64_t i = 0; i < count; ++i)
      if (precision == VtkPrecision::single)
        static_cast<float*>(out)[i] = static_cast<float>(value_of(first + i));
      else
        static_cast<double*>(out)[i] = value_of(first + i);
  };
  return array;
}

DataArray floating(std::string name, int components, std::span<double const> values, VtkPrecision precision) {
  DataArray array = floating(std::move(name), components, static_cast<std::int64_t>(values.size()), precision,
                             [data = values.data()](std::int64_t i) { return data[i]; });
  if (precision == VtkPrecision::double_)
    array.data = values.data();
  return array;
}

DataArray array_of(Field const& field, VtkPrecision precision) {
  if (field.has_integers()) {
    DataArray array{field.name, ScalarType::int32, field.components, field.n_values(), field.integers.data()};
    if (field.make_integers)
      array.fill = [make = field.make_integers](std::int64_t first, std::int64_t count, void* out) {
        make(first, count, static_cast<std::int32_t*>(out));
      };
    return array;
  }
  if (!field.make_values)
    return floating(field.name, field.components, field.values, precision);
  DataArray array{field.name, precision == VtkPrecision::single ? ScalarType::float32 : ScalarType::float64, field.components,
                  field.n_values()};
  array.fill = [precision, make = field.make_values](std::int64_t first, std::int64_t count, void* out) {
    if (precision == VtkPrecision::double_) {
      make(first, count, static_cast<double*>(out));
      return;
    }
    std::array<double, 1024> piece;
    for (std::int64_t done = 0; done < count; done += std::ssize(piece)) {
      std::int64_t const n = std::min<std::int64_t>(std::ssize(piece), count - done);
      make(first + done, n, piece.data());
      for (std::int64_t i = 0; i < n; ++i)
        static_cast<float*>(out)[done + i] = static_cast<float>(piece[static_cast<std::size_t>(i)]);
    }
  };
  return array;
}

/// Writes the values of a field from `first` on: those that are there, or that are made.
void read(Field const& field, std::int64_t first, std::int64_t n, double* out) {
  if (field.make_values)
    field.make_values(first, n, out);
  else
    std::copy_n(field.values.data() + first, n, out);
}
void read(Field const& field, std::int64_t first, std::int64_t n, int* out) {
  if (field.make_integers)
    field.make_integers(first, n, out);
  else
    std::copy_n(field.integers.data() + first, n, out);
}

/// A cell field on the p^3 cuboids of every cell.
DataArray repeated(Field const& field, RectilinearGrid const& grid, VtkPrecision precision) {
  if (grid.order == 1)
    return array_of(field, precision);
  std::int64_t const p = grid.order, c = field.components, nx = grid.n(0) - 1, ny = grid.n(1) - 1, nz = grid.n(2) - 1;
  // p lines of cuboids one after the other have the same cells, whose values are read once.
  auto const repeat = [=, mx = grid.cells(0), my = grid.cells(1)]<class From, class To>(From, std::int64_t first, std::int64_t n,
                                                                                        To* out) {
    std::vector<From> of_cells(static_cast<std::size_t>(mx * c));
    std::int64_t line_of_cells = -1;
    for (std::int64_t value = first; value < first + n;) {
      std::int64_t const line = value / (nx * c), end = std::min((line + 1) * nx * c, first + n);
      if (std::int64_t const its = line / ny / p * my + line % ny / p; its != line_of_cells) {
        read(field, its * mx * c, mx * c, of_cells.data());
        line_of_cells = its;
      }
      for (; value < end; ++value) {
        std::int64_t const in_line = value - line * nx * c;
        *out++ = static_cast<To>(of_cells[static_cast<std::size_t>(in_line / c / p * c + in_line % c)]);
      }
    }
  };
  bool const integers = field.has_integers(), single = precision == VtkPrecision::single;
  DataArray array{field.name,
                  integers ? ScalarType::int32
                  : single ? ScalarType::float32
                           : ScalarType::float64,
                  field.components, nx * ny * nz * c};
  array.fill = [repeat, integers, single](std::int64_t first, std::int64_t n, void* out) {
    if (integers)
      repeat(0, first, n, static_cast<std::int32_t*>(out));
    else if (single)
      repeat(0.0, first, n, static_cast<float*>(out));
    else
      repeat(0.0, first, n, static_cast<double*>(out));
  };
  return array;
}

void check_sizes(std::vector<Field> const& fields, std::int64_t n) {
  for (Field const& field : fields)
    if (auto const size = field.n_values(); field.components < 1 || size != n * field.components)
      throw std::invalid_argument("field '" + field.name + "' has " + std::to_string(size) + " values instead of " +
                                  std::to_string(field.components) + " on each of " + std::to_string(n) + " places");
}

void check_sizes(Mesh const& mesh, std::vector<Field> const& point_fields, std::vector<Field> const& cell_fields) {
  check_sizes(point_fields, mesh.n_points());
  check_sizes(cell_fields, mesh.n_cells());
}

/// `array_on_cells` makes the array of a cell field.
template <class ArrayOnCells>
void write_fields(XmlFile& file, std::vector<Field> const& point_fields, std::vector<Field> const& cell_fields,
                  VtkOptions const& options, ArrayOnCells const& array_on_cells) {
  // ParaView colours by the active scalars when it opens the file.
  bool const scalars = !point_fields.empty() && point_fields.front().components == 1;
  file.text(scalars ? "<PointData Scalars=\"" + xml_escaped(point_fields.front().name) + "\">\n" : std::string("<PointData>\n"));
  for (Field const& field : point_fields)
    file.array(array_of(field, options.precision));
  file.text("</PointData>\n<CellData>\n");
  for (Field const& field : cell_fields)
    file.array(array_on_cells(field));
  file.text("</CellData>\n");
}

/// "0 I 0 J 0 K" for so many points in each direction, from these indices on.
std::string extent_text(std::array<std::int64_t, 3> const& n, std::array<std::int64_t, 3> const& first = {}) {
  std::string text;
  for (std::size_t d = 0; d < 3; ++d)
    text += (d > 0 ? " " : "") + std::to_string(first[d]) + " " + std::to_string(first[d] + n[d] - 1);
  return text;
}

std::string vector_text(std::array<double, 3> const& v) {
  return number(v[0]) + " " + number(v[1]) + " " + number(v[2]);
}

/// A direction of one point has no spacing; VTK wants one.
std::array<double, 3> spacing_for_vtk(std::array<double, 3> spacing) {
  for (double& h : spacing)
    h = h > 0 ? h : 1;
  return spacing;
}

/// order[k]: lexicographic position of VTK's k-th node. VTK has the corners first, then the nodes inside edges, faces, and the cell
/// (vtkHigherOrderHexahedron::PointIndexFromIJK from VTK 9.1 on).
std::vector<int> vtk_node_order(int p) {
  std::vector<int> order;
  auto const add = [&](int i, int j, int k) { order.push_back(i + (p + 1) * (j + (p + 1) * k)); };
  auto const inside = [p](auto const& at) {
    for (int i = 1; i < p; ++i)
      at(i);
  };
  std::array<std::array<int, 2>, 4> const around{{{0, 0}, {p, 0}, {p, p}, {0, p}}};
  for (int const k : {0, p})
    for (auto const& [i, j] : around)
      add(i, j, k);
  for (int const k : {0, p}) {
    inside([&](int i) { add(i, 0, k); });
    inside([&](int j) { add(p, j, k); });
    inside([&](int i) { add(i, p, k); });
    inside([&](int j) { add(0, j, k); });
  }
  for (auto const& corner : around)
    inside([&](int k) { add(corner[0], corner[1], k); });
  for (int const i : {0, p})
    inside([&](int k) { inside([&](int j) { add(i, j, k); }); });
  for (int const j : {0, p})
    inside([&](int k) { inside([&](int i) { add(i, j, k); }); });
  for (int const k : {0, p})
    inside([&](int j) { inside([&](int i) { add(i, j, k); }); });
  inside([&](int k) { inside([&](int j) { inside([&](int i) { add(i, j, k); }); }); });
  return order;
}

/// The precision is that of the file, as everywhere.
DataArray points_of(Mesh const& mesh, VtkPrecision precision) {
  if (Grid const* const grid = mesh.grid())
    return array_of({"Points", 3, grid->points, {}, grid->make_points, {}, grid->n_made_points}, precision);
  return floating("Points", 3, 3 * mesh.n_points(), precision,
                  [image = *mesh.image()](std::int64_t i) { return image.point(i / 3)[static_cast<std::size_t>(i % 3)]; });
}

/// The nodes of all cells, one cell after the other, in VTK's order.
template <class Index>
DataArray connectivity(Mesh const& mesh, char const* name, ScalarType type) {
  DataArray array{name, type, 1, mesh.n_cells() * mesh.nodes_per_cell()};
  array.fill = [mesh, order = vtk_node_order(mesh.order())](std::int64_t first, std::int64_t count, void* out) {
    auto* const nodes = static_cast<Index*>(out);
    constexpr std::int64_t at_once = 64;
    std::int64_t const m = mesh.nodes_per_cell();
    std::vector<std::int64_t> of_cells(static_cast<std::size_t>(m * at_once));
    std::int64_t cell = first / m, first_here = cell, n_here = 0;
    auto k = static_cast<std::size_t>(first % m);
    for (std::int64_t i = 0; i < count; ++cell, k = 0) {
      if (ImageGrid const* const image = mesh.image()) {
        std::int64_t const corner = image->node(cell, 0);
        for (; k < order.size() && i < count; ++k, ++i) {
          int const at = order[k];
          nodes[i] = static_cast<Index>(corner + (at & 1) + ((at >> 1 & 1) + (at >> 2) * image->n[1]) * image->n[0]);
        }
      } else {
        if (cell >= first_here + n_here) {
          first_here = cell;
          n_here = std::min(at_once, mesh.n_cells() - cell);
          mesh.nodes(cell, n_here, of_cells.data());
        }
        std::int64_t const* const own = &of_cells[static_cast<std::size_t>((cell - first_here) * m)];
        for (; k < order.size() && i < count; ++k, ++i)
          nodes[i] = static_cast<Index>(own[order[k]]);
      }
    }
  };
  return array;
}

/// Where the nodes of the cells first, first + 1, ... begin; one behind the last cell, it is where they end.
template <class Index>
DataArray offsets(Mesh const& mesh, char const* name, ScalarType type, std::int64_t first_cell) {
  DataArray array{name, type, 1, mesh.n_cells() + 1 - first_cell};
  array.fill = [m = std::int64_t{mesh.nodes_per_cell()}, first_cell](std::int64_t first, std::int64_t count, void* out) {
    for (std::int64_t i = 0; i < count; ++i)
      static_cast<Index*>(out)[i] = static_cast<Index>((first_cell + first + i) * m);
  };
  return array;
}

DataArray types_of(Mesh const& mesh, char const* name) {
  DataArray array{name, ScalarType::uint8, 1, mesh.n_cells()};
  constexpr unsigned char hexahedron = 12, lagrange_hexahedron = 72;  // of vtkCellType.h
  array.fill = [type = mesh.order() > 1 ? lagrange_hexahedron : hexahedron](std::int64_t, std::int64_t count, void* out) {
    std::fill_n(static_cast<unsigned char*>(out), count, type);
  };
  return array;
}

void check_unstructured(Mesh const& mesh, std::vector<Field> const& point_fields, std::vector<Field> const& cell_fields) {
  if (mesh.rectilinear() != nullptr)
    throw std::invalid_argument("a rectilinear grid has no Lagrange cells: their nodes are equidistant");
  if (mesh.order() < 1 || mesh.order() > 10)
    throw std::invalid_argument("cells of order " + std::to_string(mesh.order()) + " cannot be written");
  check_sizes(mesh, point_fields, cell_fields);
}

/// Field data in plain text; VTK has strings as the codes of their bytes, with a 0 after each.
std::string field_data(std::vector<WholeArray> const& arrays) {
  if (arrays.empty())
    return {};
  std::string text = "<FieldData>\n";
  for (WholeArray const& array : arrays) {
    auto const begin = [&](std::string const& element, char const* type, std::size_t count) {
      text += "<" + element + " type=\"" + type + "\" Name=\"" + xml_escaped(array.name) + "\" NumberOfTuples=\"" +
              std::to_string(count) + "\" format=\"ascii\">";
    };
    if (auto const* const integers = std::get_if<std::vector<int>>(&array.values)) {
      begin("DataArray", "Int32", integers->size());
      for (int const value : *integers)
        text += " " + std::to_string(value);
      text += "</DataArray>\n";
    } else if (auto const* const numbers = std::get_if<std::vector<double>>(&array.values)) {
      begin("DataArray", "Float64", numbers->size());
      for (double const value : *numbers)
        text += " " + number(value);
      text += "</DataArray>\n";
    } else {
      auto const& words = std::get<std::vector<std::string>>(array.values);
      begin("Array", "String", words.size());
      for (std::string const& word : words) {
        for (char const c : word)
          text += " " + std::to_string(static_cast<int>(static_cast<unsigned char>(c)));
        text += " 0";
      }
      text += "</Array>\n";
    }
  }
  return text + "</FieldData>\n";
}

}  // namespace

void write_vtu(std::filesystem::path const& path, Mesh const& mesh, std::vector<Field> const& point_fields,
               std::vector<Field> const& cell_fields, VtkOptions const& options, std::vector<WholeArray> const& of_all) {
  check_unstructured(mesh, point_fields, cell_fields);
  // Readers renumber the nodes of Lagrange cells in files older than 2.2.
  XmlFile file(path, "UnstructuredGrid", mesh.order() > 1 ? "2.2" : "1.0", options);
  file.text("<UnstructuredGrid>\n" + field_data(of_all) + "<Piece NumberOfPoints=\"" + std::to_string(mesh.n_points()) +
            "\" NumberOfCells=\"" + std::to_string(mesh.n_cells()) + "\">\n");
  write_fields(file, point_fields, cell_fields, options, [&](Field const& field) { return array_of(field, options.precision); });

  file.text("<Points>\n");
  file.array(points_of(mesh, options.precision));
  file.text("</Points>\n<Cells>\n");
  // Half the bytes where 32 bits suffice.
  if (std::max(mesh.n_points(), mesh.n_cells() * mesh.nodes_per_cell()) <= std::numeric_limits<std::int32_t>::max()) {
    file.array(connectivity<std::int32_t>(mesh, "connectivity", ScalarType::int32));
    file.array(offsets<std::int32_t>(mesh, "offsets", ScalarType::int32, 1));
  } else {
    file.array(connectivity<std::int64_t>(mesh, "connectivity", ScalarType::int64));
    file.array(offsets<std::int64_t>(mesh, "offsets", ScalarType::int64, 1));
  }
  file.array(types_of(mesh, "types"));
  file.text("</Cells>\n</Piece>\n</UnstructuredGrid>\n");
  file.commit();
}

void write_vti(std::filesystem::path const& path, ImageGrid const& grid, std::vector<Field> const& point_fields,
               std::vector<Field> const& cell_fields, VtkOptions const& options, PiecePlace const* place,
               std::vector<WholeArray> const& of_all) {
  check_sizes(grid, point_fields, cell_fields);
  XmlFile file(path, "ImageData", "1.0", options);
  PiecePlace const at = place != nullptr ? *place : PiecePlace{{}, grid.low};
  std::string const extent = extent_text(grid.n, at.first);
  file.text("<ImageData WholeExtent=\"" + extent + "\" Origin=\"" + vector_text(at.low) + "\" Spacing=\"" +
            vector_text(spacing_for_vtk(grid.spacing)) + "\">\n" + field_data(of_all) + "<Piece Extent=\"" + extent + "\">\n");
  write_fields(file, point_fields, cell_fields, options, [&](Field const& field) { return array_of(field, options.precision); });
  file.text("</Piece>\n</ImageData>\n");
  file.commit();
}

void write_vtr(std::filesystem::path const& path, RectilinearGrid const& grid, std::vector<Field> const& point_fields,
               std::vector<Field> const& cell_fields, VtkOptions const& options, PiecePlace const* place,
               std::vector<WholeArray> const& of_all) {
  check_sizes(grid, point_fields, cell_fields);
  XmlFile file(path, "RectilinearGrid", "1.0", options);
  std::string const extent =
      extent_text({grid.n(0), grid.n(1), grid.n(2)}, place != nullptr ? place->first : std::array<std::int64_t, 3>{});
  file.text("<RectilinearGrid WholeExtent=\"" + extent + "\">\n" + field_data(of_all) + "<Piece Extent=\"" + extent + "\">\n");
  write_fields(file, point_fields, cell_fields, options,
               [&](Field const& field) { return repeated(field, grid, options.precision); });
  file.text("<Coordinates>\n");
  for (std::size_t d = 0; d < 3; ++d)
    file.array(floating(std::string(1, "xyz"[d]), 1, grid.coordinates[d], options.precision));
  file.text("</Coordinates>\n</Piece>\n</RectilinearGrid>\n");
  file.commit();
}

void write_vts(std::filesystem::path const& path, std::array<std::int64_t, 2> const& n, std::span<double const> points,
               std::span<unsigned char const> hidden, std::vector<Field> const& point_fields, VtkOptions const& options) {
  check_sizes(point_fields, n[0] * n[1]);
  check_sizes({{"Points", 3, points, {}}}, n[0] * n[1]);
  XmlFile file(path, "StructuredGrid", "1.0", options);
  std::string const extent = extent_text({n[0], n[1], 1});
  file.text("<StructuredGrid WholeExtent=\"" + extent + "\">\n<Piece Extent=\"" + extent + "\">\n<PointData" +
            (point_fields.empty() ? "" : " Scalars=\"" + xml_escaped(point_fields.front().name) + "\"") + ">\n");
  for (Field const& field : point_fields)
    file.array(array_of(field, options.precision));
  if (std::any_of(hidden.begin(), hidden.end(), [](unsigned char h) { return h != 0; })) {
    DataArray ghosts{"vtkGhostType", ScalarType::uint8, 1, static_cast<std::int64_t>(hidden.size())};
    ghosts.fill = [hidden](std::int64_t first, std::int64_t count, void* out) {
      constexpr unsigned char hidden_point = 2;  // of vtkDataSetAttributes
      for (std::int64_t i = 0; i < count; ++i)
        static_cast<unsigned char*>(out)[i] = hidden[static_cast<std::size_t>(first + i)] != 0 ? hidden_point : 0;
    };
    file.array(ghosts);
  }
  file.text("</PointData>\n<CellData>\n</CellData>\n<Points>\n");
  file.array(floating("Points", 3, points, options.precision));
  file.text("</Points>\n</Piece>\n</StructuredGrid>\n");
  file.commit();
}

void write_vtp(std::filesystem::path const& path, std::span<double const> points, std::span<std::int64_t const> faces, int corners,
               std::vector<Field> const& point_fields, std::vector<Field> const& cell_fields, VtkOptions const& options,
               std::vector<WholeArray> const& of_all) {
  auto const n_points = static_cast<std::int64_t>(points.size() / 3), n_faces = static_cast<std::int64_t>(faces.size()) / corners;
  check_sizes(point_fields, n_points);
  check_sizes(cell_fields, n_faces);
  XmlFile file(path, "PolyData", "1.0", options);
  file.text("<PolyData>\n" + field_data(of_all) + "<Piece NumberOfPoints=\"" + std::to_string(n_points) +
            "\" NumberOfVerts=\"0\" NumberOfLines=\"0\" NumberOfStrips=\"0\" NumberOfPolys=\"" + std::to_string(n_faces) + "\">\n");
  write_fields(file, point_fields, cell_fields, options, [&](Field const& field) { return array_of(field, options.precision); });
  file.text("<Points>\n");
  file.array(floating("Points", 3, points, options.precision));
  file.text("</Points>\n<Polys>\n");
  file.array({"connectivity", ScalarType::int64, 1, static_cast<std::int64_t>(faces.size()), faces.data()});
  DataArray ends{"offsets", ScalarType::int64, 1, n_faces};
  ends.fill = [corners](std::int64_t first, std::int64_t count, void* out) {
    for (std::int64_t i = 0; i < count; ++i)
      static_cast<std::int64_t*>(out)[i] = corners * (first + i + 1);
  };
  file.array(ends);
  file.text("</Polys>\n</Piece>\n</PolyData>\n");
  file.commit();
}

namespace {

/// The arrays of a piece in a VTKHDF file, in the order of the file; a name with a slash is one in a group.
std::vector<DataArray> hdf_arrays(Mesh const& mesh, std::vector<Field> const& point_fields, std::vector<Field> const& cell_fields,
                                  VtkOptions const& options) {
  check_unstructured(mesh, point_fields, cell_fields);
  std::vector<DataArray> arrays;
  auto const add_fields_of = [&](std::string const& group, std::vector<Field> const& fields) {
    for (Field const& field : fields) {
      if (field.name.find('/') != std::string::npos)
        throw std::invalid_argument("'" + field.name + "' cannot be a name in an HDF5 file");
      arrays.push_back(array_of(field, options.precision));
      arrays.back().name = group + "/" + field.name;
    }
  };
  add_fields_of("PointData", point_fields);
  add_fields_of("CellData", cell_fields);
  arrays.push_back(points_of(mesh, options.precision));
  arrays.push_back(connectivity<std::int64_t>(mesh, "Connectivity", ScalarType::int64));
  arrays.push_back(offsets<std::int64_t>(mesh, "Offsets", ScalarType::int64, 0));
  arrays.push_back(types_of(mesh, "Types"));
  return arrays;
}

/// Entities of a piece.
struct HdfCounts {
  std::int64_t points = 0, cells = 0, ids = 0;
};
HdfCounts counts_of(Mesh const& mesh) {
  return {mesh.n_points(), mesh.n_cells(), mesh.n_cells() * mesh.nodes_per_cell()};
}

/// An array has an entry for every piece.
void write_counts(HdfFile& file, std::vector<HdfCounts> const& pieces) {
  auto const write = [&](char const* name, std::int64_t HdfCounts::*member) {
    std::vector<std::int64_t> values;
    for (HdfCounts const& piece : pieces)
      values.push_back(piece.*member);
    file.array({name, ScalarType::int64, 1, std::ssize(values), values.data()});
  };
  write("NumberOfPoints", &HdfCounts::points);
  write("NumberOfCells", &HdfCounts::cells);
  write("NumberOfConnectivityIds", &HdfCounts::ids);
  file.group("PointData");
  file.group("CellData");
}

void write_whole(HdfFile& file, std::vector<WholeArray> const& arrays) {
  if (!arrays.empty())
    file.group("FieldData");
  for (WholeArray const& array : arrays) {
    std::string name = array.name;
    std::replace(name.begin(), name.end(), '/', '_');
    name = "FieldData/" + name;
    if (auto const* const integers = std::get_if<std::vector<int>>(&array.values))
      file.array({name, ScalarType::int32, 1, std::ssize(*integers), integers->data()});
    else if (auto const* const numbers = std::get_if<std::vector<double>>(&array.values))
      file.array({name, ScalarType::float64, 1, std::ssize(*numbers), numbers->data()});
    else
      file.strings(name, std::get<std::vector<std::string>>(array.values));
  }
}

}  // namespace

void write_hdf(std::filesystem::path const& path, Mesh const& mesh, std::vector<Field> const& point_fields,
               std::vector<Field> const& cell_fields, VtkOptions const& options, std::vector<WholeArray> const& of_all) {
  auto const arrays = hdf_arrays(mesh, point_fields, cell_fields, options);
  auto const file = open_hdf_file(path, "UnstructuredGrid", options);
  write_counts(*file, {counts_of(mesh)});
  write_whole(*file, of_all);
  for (DataArray const& array : arrays)
    file->array(array);
  file->commit();
}

void write_hdf_on_ranks(std::filesystem::path const& path, Communicator& ranks, Mesh const* mesh,
                        std::vector<Field> const& point_fields, std::vector<Field> const& cell_fields, VtkOptions const& options,
                        std::vector<WholeArray> const& of_all) {
  constexpr std::size_t message_bytes = std::size_t{1} << 22;
  bool const is_first = ranks.rank() == 0;
  auto const arrays = mesh != nullptr ? hdf_arrays(*mesh, point_fields, cell_fields, options) : std::vector<DataArray>();
  std::vector<HdfCounts> pieces = gather(ranks, mesh != nullptr ? counts_of(*mesh) : HdfCounts());
  std::erase_if(pieces, [](HdfCounts const& piece) { return piece.cells == 0; });
  // A failure of the first rank is told when all have sent what they have: they wait for that.
  std::unique_ptr<HdfFile> file;
  std::exception_ptr failure;
  auto const attempt = [&](auto const& write) {
    if (!is_first || failure)
      return;
    try {
      write();
    } catch (...) {
      failure = std::current_exception();
    }
  };
  attempt([&] {
    file = open_hdf_file(path, "UnstructuredGrid", options);
    write_counts(*file, pieces);
    write_whole(*file, of_all);
  });
  auto const n_arrays = static_cast<std::size_t>(of_first(ranks, std::ssize(arrays)));
  HostVector<unsigned char> memory, received(message_bytes);
  for (std::size_t a = 0; a < n_arrays; ++a) {
    auto const values = gather(ranks, mesh != nullptr ? arrays[a].n_values : 0);
    auto const width = of_first(ranks, static_cast<std::int64_t>(is_first ? size_of(arrays[a].type) : 0));
    auto const block = static_cast<std::int64_t>(message_bytes);  // whole values, of whatever type
    attempt([&] {
      DataArray shape = arrays[a];
      shape.n_values = std::accumulate(values.begin(), values.end(), std::int64_t{0});
      file->begin(shape);
    });
    for (int rank = 0; rank < ranks.size(); ++rank) {
      std::int64_t const bytes = values[static_cast<std::size_t>(rank)] * width;
      for (std::int64_t first = 0; first < bytes; first += block) {
        std::int64_t const count = std::min(block, bytes - first);
        std::span<unsigned char const> own;
        if (rank == ranks.rank())
          own = block_of(arrays[a], static_cast<std::size_t>(block), static_cast<std::size_t>(first / block), memory);
        if (rank > 0) {
          std::vector<Message> sends, receives;
          HostVector<unsigned char> outgoing(own.begin(), own.end());
          if (rank == ranks.rank())
            sends.push_back({0, outgoing.data(), count});
          if (is_first)
            receives.push_back({rank, received.data(), count});
          auto const exchange = ranks.make_exchange(sends, receives);
          exchange->start();
          exchange->finish();
          if (is_first)
            own = {received.data(), static_cast<std::size_t>(count)};
        }
        attempt([&] { file->add(own); });
      }
    }
    attempt([&] { file->end(); });
  }
  attempt([&] { file->commit(); });
  if (failure)
    std::rethrow_exception(failure);
}

std::int64_t writer_bytes(VtkFormat format, VtkCompression compression, std::int64_t largest_array) {
  // One batch of blocks is packed while the other is written; base64 makes 4 characters of 3 bytes. Compression leaves about this
  // of fields of floating-point numbers, and what is not written to takes no memory.
  double const share = compression == VtkCompression::none ? 1 : 0.85;
  std::size_t const block = compression == VtkCompression::best ? std::size_t{1} << 20 : 1;
  std::int64_t const batch = std::min(largest_array, static_cast<std::int64_t>(blocks_of_a_batch(block) * block));
  auto const packed = static_cast<std::int64_t>(share * static_cast<double>(batch));
  // Code and buffers of HDF5 and VTK, which are loaded for such a file.
  std::int64_t const library = std::int64_t{format == VtkFormat::hdf ? 12 : 1} << 20;
  return 2 * (format == VtkFormat::hdf ? packed : packed / 3 * 4) + library;
}

void write_pvd(std::filesystem::path const& path, std::vector<PvdEntry> const& entries) {
  std::string text = "<?xml version=\"1.0\"?>\n"
                     "<VTKFile type=\"Collection\" version=\"0.1\" byte_order=\"LittleEndian\">\n  <Collection>\n";
  for (auto const& entry : entries) {
    std::string const name = entry.name.empty() ? std::string() : "name=\"" + xml_escaped(entry.name) + "\" ";
    text += "    <DataSet timestep=\"" + number(entry.time) + "\" group=\"\" part=\"0\" " + name + "file=\"" +
            xml_escaped(entry.file) + "\"/>\n";
  }
  text += "  </Collection>\n</VTKFile>\n";
  write_text_file(path, text);
}

std::string extension_of(PiecesOfMesh::Kind kind) {
  return kind == PiecesOfMesh::Kind::image ? ".pvti" : kind == PiecesOfMesh::Kind::rectilinear ? ".pvtr" : ".pvtu";
}

void write_pieces(std::filesystem::path const& path, PiecesOfMesh const& mesh, std::vector<Field> const& point_fields,
                  std::vector<Field> const& cell_fields, VtkOptions const& options) {
  using Kind = PiecesOfMesh::Kind;
  std::string const floating_type = options.precision == VtkPrecision::single ? "Float32" : "Float64";
  auto const array = [](std::string const& type, std::string const& name, int components) {
    return "<PDataArray type=\"" + type + "\" Name=\"" + xml_escaped(name) + "\" NumberOfComponents=\"" +
           std::to_string(components) + "\"/>\n";
  };
  auto const arrays = [&](std::vector<Field> const& fields) {
    std::string text;
    for (Field const& field : fields)
      text += array(field.has_integers() ? "Int32" : floating_type, field.name, field.components);
    return text;
  };
  std::string const grid = mesh.kind == Kind::image         ? "PImageData"
                           : mesh.kind == Kind::rectilinear ? "PRectilinearGrid"
                                                            : "PUnstructuredGrid";
  std::string text =
      "<?xml version=\"1.0\"?>\n<VTKFile type=\"" + grid + "\" version=\"1.0\" byte_order=\"LittleEndian\">\n<" + grid;
  if (mesh.kind != Kind::unstructured)
    text += " WholeExtent=\"" + extent_text(mesh.n) + "\"";
  text += " GhostLevel=\"0\"";
  if (mesh.kind == Kind::image)
    text += " Origin=\"" + vector_text(mesh.low) + "\" Spacing=\"" + vector_text(spacing_for_vtk(mesh.spacing)) + "\"";
  bool const scalars = !point_fields.empty() && point_fields.front().components == 1;
  text += scalars ? ">\n<PPointData Scalars=\"" + xml_escaped(point_fields.front().name) + "\">\n" : ">\n<PPointData>\n";
  text += arrays(point_fields) + "</PPointData>\n<PCellData>\n" + arrays(cell_fields) + "</PCellData>\n";
  if (mesh.kind == Kind::rectilinear)
    text += "<PCoordinates>\n" + array(floating_type, "x", 1) + array(floating_type, "y", 1) + array(floating_type, "z", 1) +
            "</PCoordinates>\n";
  if (mesh.kind == Kind::unstructured)
    text += "<PPoints>\n" + array(floating_type, "Points", 3) + "</PPoints>\n";
  for (PiecesOfMesh::Piece const& piece : mesh.pieces)
    text += "<Piece" + (mesh.kind != Kind::unstructured ? " Extent=\"" + extent_text(piece.n, piece.first) + "\"" : std::string()) +
            " Source=\"" + xml_escaped(piece.file) + "\"/>\n";
  write_text_file(path, text + "</" + grid + ">\n</VTKFile>\n");
}

}  // namespace poisson::output
