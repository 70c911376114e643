#include "assembly/dealii/raw.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace poisson::assembly {
namespace {

std::string vtk_type_name(std::int64_t type) {
  switch (type) {
  case 5:
    return "5 (triangle)";
  case 8:
    return "8 (pixel)";
  case 10:
    return "10 (tetrahedron)";
  case 11:
    return "11 (voxel)";
  case 13:
    return "13 (wedge)";
  case 14:
    return "14 (pyramid)";
  case 23:
    return "23 (quadratic quadrilateral, 8 nodes)";
  case 24:
    return "24 (quadratic tetrahedron)";
  case 25:
    return "25 (quadratic hexahedron, 20 nodes)";
  case 28:
    return "28 (biquadratic quadrilateral, 9 nodes)";
  case 29:
    return "29 (triquadratic hexahedron, 27 nodes)";
  case 70:
    return "70 (Lagrange quadrilateral)";
  case 72:
    return "72 (Lagrange hexahedron)";
  default:
    return std::to_string(type) + " (see VTK's list of cell types)";
  }
}

}  // namespace

RawMesh read_vtk(MeshText& text) {
  std::string_view line;
  if (!text.next_line(line) || !line.starts_with("# vtk DataFile Version"))
    text.fail("this is not a legacy VTK file: its first line is not '# vtk DataFile Version ...'");
  text.next_line(line);  // the title, anything
  std::string const encoding = upper(text.word());
  if (encoding != "ASCII")
    text.fail(encoding == "BINARY" ? "binary VTK files are not read; save the mesh as ASCII" : "the third line must be ASCII");
  if (upper(text.word()) != "DATASET" || upper(text.word()) != "UNSTRUCTURED_GRID")
    text.fail("only DATASET UNSTRUCTURED_GRID is read");

  struct Cell {
    std::vector<std::int64_t> nodes;
    std::int64_t line = 0, type = 0, id = 0;
  };
  std::vector<Cell> cells;
  std::vector<std::array<double, 3>> points;
  bool types = false, ids = false;
  std::int64_t cells_in_data = -1;  // of the CELL_DATA that we are in; -1 outside
  auto const read_ids = [&](std::int64_t components) {
    if (components != 1 || ids)
      text.fail("the cell data with the materials must be one field of one component");
    for (Cell& cell : cells) {
      double const value = text.real("a material");
      if (value != std::floor(value) || std::abs(value) > 5e9)
        text.fail("a material must be a whole number");
      cell.id = static_cast<std::int64_t>(value);
    }
    ids = true;
  };
  auto const is_material = [](std::string_view name) {
    std::string const known = upper(name);
    return known == "MATERIALID" || known == "MATERIAL" || known == "MATERIAL_ID" || known == "CELLENTITYIDS";
  };
  for (std::string key = upper(text.word()); !key.empty(); key = upper(text.word())) {
    if (key == "POINTS") {
      std::int64_t const count = text.count("the number of points");
      text.word();  // the type of the numbers
      for (std::int64_t i = 0; i < count; ++i) {
        double const x = text.real("x of a point"), y = text.real("y of a point"), z = text.real("z of a point");
        points.push_back({x, y, z});
      }
    } else if (key == "CELLS") {
      std::int64_t const count = text.count("the number of cells");
      std::int64_t const size = text.count("the size of the cell list");
      if (upper(text.peek_word()) == "OFFSETS") {  // version 5: count offsets, the first one 0, and a list of nodes
        text.word();
        text.word();
        std::vector<std::int64_t> offsets;
        for (std::int64_t i = 0; i < count; ++i) {
          offsets.push_back(text.integer("an offset"));
          if (offsets.back() < (i > 0 ? offsets[static_cast<std::size_t>(i - 1)] : 0) || offsets.back() > size)
            text.fail("the offsets of the cells do not ascend, or exceed the list");
        }
        if (upper(text.word()) != "CONNECTIVITY")
          text.fail("CONNECTIVITY is missing");
        text.word();
        std::vector<std::int64_t> nodes;
        std::vector<std::int64_t> lines;
        for (std::int64_t i = 0; i < size; ++i) {
          nodes.push_back(text.integer("a node"));
          lines.push_back(text.line());
        }
        for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
          Cell cell;
          cell.line = offsets[i] < size ? lines[static_cast<std::size_t>(offsets[i])] : text.line();
          cell.nodes.assign(nodes.begin() + offsets[i], nodes.begin() + offsets[i + 1]);
          cells.push_back(std::move(cell));
        }
      } else {
        for (std::int64_t i = 0; i < count; ++i) {
          Cell cell;
          std::int64_t const nodes = text.integer("the number of nodes of a cell");
          if (nodes < 0 || nodes > size)
            text.fail("a cell cannot have " + std::to_string(nodes) + " nodes");
          for (std::int64_t k = 0; k < nodes; ++k)
            cell.nodes.push_back(text.integer("a node"));
          cell.line = text.line();
          cells.push_back(std::move(cell));
        }
      }
    } else if (key == "CELL_TYPES") {
      if (text.count("the number of cell types") != static_cast<std::int64_t>(cells.size()))
        text.fail("the number of cell types differs from the number of cells");
      for (Cell& cell : cells)
        cell.type = text.integer("the type of a cell");
      types = true;
    } else if (key == "CELL_DATA") {
      cells_in_data = text.count("the number of cells");
      if (cells_in_data != static_cast<std::int64_t>(cells.size()))
        text.fail("CELL_DATA is for " + std::to_string(cells_in_data) + " cells, but there are " + std::to_string(cells.size()));
    } else if (key == "POINT_DATA") {
      cells_in_data = -1;
      text.word();
    } else if (key == "SCALARS" && cells_in_data >= 0 && is_material(text.peek_word())) {
      text.word();
      text.word();
      std::int64_t components = 1;
      if (upper(text.peek_word()) != "LOOKUP_TABLE")
        components = text.integer("the number of components");
      if (upper(text.word()) != "LOOKUP_TABLE")
        text.fail("LOOKUP_TABLE is missing");
      text.word();
      read_ids(components);
    } else if (cells_in_data >= 0 && is_material(key)) {  // an array of FIELD: name, components, tuples, type
      std::int64_t const components = text.integer("the number of components");
      if (text.integer("the number of values") != static_cast<std::int64_t>(cells.size()))
        text.fail("the number of values differs from the number of cells");
      text.word();
      read_ids(components);
    }
    // Anything else (other fields and their numbers, METADATA) is passed over word by word.
  }
  if (points.empty() || cells.empty() || !types)
    text.fail("the file ends without POINTS, CELLS and CELL_TYPES");

  RawMeshBuilder builder(text);
  for (std::size_t i = 0; i < points.size(); ++i)
    builder.add_vertex(static_cast<std::int64_t>(i), points[i][0], points[i][1], points[i][2]);
  for (Cell const& cell : cells) {
    std::size_t const wanted = cell.type == 12 ? 8 : cell.type == 9 ? 4 : 0;
    if (wanted == 0) {
      bool const surface = (cell.type >= 5 && cell.type <= 8) || cell.type == 22 || cell.type == 23 || cell.type == 28 ||
                           cell.type == 30 || cell.type == 69 || cell.type == 70;
      bool const line_or_point = (cell.type >= 0 && cell.type <= 4) || cell.type == 21 || cell.type == 35 || cell.type == 68;
      if (!line_or_point)
        builder.add_unsupported(vtk_type_name(cell.type), surface ? 2 : 3);
      continue;
    }
    if (cell.nodes.size() != wanted)
      text.fail_at(cell.line, "a cell of type " + std::to_string(cell.type) + " has " + std::to_string(wanted) + " nodes, not " +
                                  std::to_string(cell.nodes.size()));
    for (std::int64_t const node : cell.nodes)
      if (node < 0 || node >= static_cast<std::int64_t>(points.size()))
        text.fail_at(cell.line, "point " + std::to_string(node) + " is used, but there are points 0 to " +
                                    std::to_string(points.size() - 1) + " only");
    std::array<std::int64_t, 8> numbers{};
    std::copy(cell.nodes.begin(), cell.nodes.end(), numbers.begin());
    if (wanted == 8) {
      builder.add_hexahedron(numbers, cell.id);
      builder.mesh().cells.back().line = cell.line;
    } else if (cell.id != -1) {  // -1: a face that deal.II wrote for its manifold only
      builder.add_quad({numbers[0], numbers[1], numbers[2], numbers[3]}, cell.id);
      builder.mesh().quads.back().line = cell.line;
    }
  }
  return builder.finish();
}

}  // namespace poisson::assembly
