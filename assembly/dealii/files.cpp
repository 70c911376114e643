#include "assembly/dealii/mesh.hpp"
#include "assembly/dealii/raw.hpp"
#include "assembly/dealii/sources.hpp"
#include "gpu/core/error.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deal.II/grid/grid_tools.h>
#include <deal.II/grid/tria.h>
#include <deal.II/grid/tria_description.h>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <system_error>

namespace poisson::assembly {
namespace {

constexpr char const* known_formats = ".msh (Gmsh 2.2 or 4.1, ASCII), .inp (Abaqus or UCD), .vtk (legacy, ASCII) and .unv";

std::string lower_extension(std::string const& path) {
  std::string extension = std::filesystem::path(path).extension().string();
  for (char& c : extension)
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return extension;
}

std::string read_text(std::string const& path) {
  std::error_code error;
  auto const status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status))
    fail_in_mesh_file(path, 0, "there is no such mesh file");
  if (std::filesystem::is_directory(status))
    fail_in_mesh_file(path, 0, "this is a directory, not a mesh file");
  // A pipe or a device could keep us waiting for ever.
  if (!std::filesystem::is_regular_file(status))
    fail_in_mesh_file(path, 0, "this is not a regular file");
  std::uintmax_t const size = std::filesystem::file_size(path, error);
  if (!error && size > 0)
    check_memory(static_cast<std::int64_t>(std::min<std::uintmax_t>(size, std::uintmax_t{1} << 60)), "reading the mesh file");
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw EnvironmentError("the mesh file '" + path + "' cannot be opened: " + std::strerror(errno));
  std::string content(error ? 0 : static_cast<std::size_t>(size), '\0');
  file.read(content.data(), static_cast<std::streamsize>(content.size()));
  if (file.bad())
    throw EnvironmentError("the mesh file '" + path + "' cannot be read");
  content.resize(static_cast<std::size_t>(file.gcount()));
  if (content.empty())
    fail_in_mesh_file(path, 0, "the file is empty");
  return content;
}

RawMesh read_raw(std::string const& path) {
  std::string const extension = lower_extension(path);
  auto const is = [&](std::initializer_list<char const*> names) {
    return std::find(names.begin(), names.end(), extension) != names.end();
  };
  std::string content = read_text(path);
  if (is({".e", ".exo", ".ex2", ".exii", ".g", ".gen"}))
    fail_in_mesh_file(
        path, 0, "Exodus files cannot be read: this deal.II was built without SEACAS; convert the mesh to Gmsh 2.2, Abaqus or VTK");
  if (is({".vtu"}))
    fail_in_mesh_file(path, 0, "VTU files are not read as meshes; save the mesh as legacy VTK (.vtk, ASCII)");
  if (!is({".msh", ".inp", ".vtk", ".unv"}))
    fail_in_mesh_file(path, 0,
                      std::string("the ending '") + extension + "' is not that of a mesh format; known are " + known_formats);
  bool const gmsh_binary = content.starts_with("$MeshFormat");
  if (!gmsh_binary && !content.starts_with("# vtk") && content.find('\0') != std::string::npos)
    fail_in_mesh_file(path, 0, std::string("this is a binary file; known are ") + known_formats);
  bool abaqus = false;
  for (std::size_t i = 0; i < content.size();) {
    std::size_t const end = std::min(content.find('\n', i), content.size());
    std::size_t const first = content.find_first_not_of(" \t\r", i);
    if (first < end && content[first] != '#') {
      abaqus = content[first] == '*';
      break;
    }
    i = end + 1;
  }
  MeshText text(path, std::move(content));
  return extension == ".msh"   ? read_gmsh(text)
         : extension == ".vtk" ? read_vtk(text)
         : extension == ".unv" ? read_unv(text)
         : abaqus              ? read_abaqus(text)
                               : read_ucd(text);
}

dealii::Point<3> centre_of(RawMesh const& mesh, RawMesh::Cell const& cell) {
  dealii::Point<3> centre;
  for (int const v : cell.vertices)
    centre += mesh.vertices[static_cast<std::size_t>(v)] / 8.;
  return centre;
}

/// Turns cells inside out that are numbered the other way round; what is then not good has a wrong shape.
void check_shapes(std::string const& path, RawMesh& mesh) {
  std::int64_t inverted = 0, degenerate = 0;
  RawMesh::Cell const* first_inverted = nullptr;
  RawMesh::Cell const* first_degenerate = nullptr;
  for (RawMesh::Cell& cell : mesh.cells) {
    std::array<dealii::Point<3>, 8> corners;
    auto const shape = [&] {
      for (std::size_t v = 0; v < 8; ++v)
        corners[v] = mesh.vertices[static_cast<std::size_t>(cell.vertices[v])];
      return cell_shape(corners);
    };
    CellShape found = shape();
    if (found == CellShape::inverted) {
      std::swap_ranges(cell.vertices.begin(), cell.vertices.begin() + 4, cell.vertices.begin() + 4);
      found = shape();
    }
    if (found == CellShape::inverted && inverted++ == 0)
      first_inverted = &cell;
    if (found == CellShape::degenerate && degenerate++ == 0)
      first_degenerate = &cell;
  }
  std::string const total = " of " + std::to_string(mesh.cells.size()) + " cells ";
  if (degenerate > 0)
    fail_in_mesh_file(path, first_degenerate->line,
                      std::to_string(degenerate) + total + "have no volume, the first with its centre at " +
                          to_text(centre_of(mesh, *first_degenerate)));
  if (inverted > 0)
    fail_in_mesh_file(path, first_inverted->line,
                      std::to_string(inverted) + total +
                          "are inverted (their Jacobian changes sign), the first with its centre at " +
                          to_text(centre_of(mesh, *first_inverted)) + "; repair the mesh where it was made");
}

struct Face {
  std::array<int, 4> key{};       ///< vertices in ascending order
  std::array<int, 4> vertices{};  ///< around the face, seen from outside of its cell
  std::size_t cell = 0;
};

std::array<int, 4> sorted(std::array<int, 4> vertices) {
  std::sort(vertices.begin(), vertices.end());
  return vertices;
}

/// All faces of all cells, ascending by key. Every face has one or two cells, which see it from opposite sides.
std::vector<Face> check_faces(std::string const& path, RawMesh const& mesh) {
  static constexpr std::array<std::array<std::size_t, 4>, 6> corners{
      {{0, 4, 6, 2}, {1, 3, 7, 5}, {0, 1, 5, 4}, {2, 6, 7, 3}, {0, 2, 3, 1}, {4, 5, 7, 6}}};
  std::vector<Face> faces;
  faces.reserve(6 * mesh.cells.size());
  for (std::size_t c = 0; c < mesh.cells.size(); ++c) {
    auto const& vertices = mesh.cells[c].vertices;
    auto all = vertices;
    std::sort(all.begin(), all.end());
    if (std::adjacent_find(all.begin(), all.end()) != all.end())
      fail_in_mesh_file(path, mesh.cells[c].line, "a cell has the same node twice");
    for (auto const& corner : corners) {
      Face face;
      for (std::size_t v = 0; v < 4; ++v)
        face.vertices[v] = vertices[corner[v]];
      face.key = sorted(face.vertices);
      face.cell = c;
      faces.push_back(face);
    }
  }
  std::sort(faces.begin(), faces.end(),
            [](Face const& a, Face const& b) { return a.key != b.key ? a.key < b.key : a.cell < b.cell; });
  for (std::size_t i = 0; i + 1 < faces.size(); ++i) {
    Face const &a = faces[i], &b = faces[i + 1];
    if (a.key != b.key)
      continue;
    dealii::Point<3> centre;
    for (int const v : a.key)
      centre += mesh.vertices[static_cast<std::size_t>(v)] / 4.;
    if (i + 2 < faces.size() && faces[i + 2].key == a.key)
      fail_in_mesh_file(path, mesh.cells[faces[i + 2].cell].line,
                        "the mesh is not a manifold: the face with its centre at " + to_text(centre) +
                            " belongs to more than two cells");
    std::size_t const start =
        static_cast<std::size_t>(std::find(b.vertices.begin(), b.vertices.end(), a.vertices[0]) - b.vertices.begin());
    for (std::size_t v = 0; v < 4; ++v)
      if (b.vertices[(start + 4 - v) % 4] != a.vertices[v])
        fail_in_mesh_file(path, mesh.cells[b.cell].line,
                          "two cells overlap: both lie on the same side of their common face with its centre at " +
                              to_text(centre) + ", or their edges cross there");
  }
  return faces;
}

void check_id(std::string const& path, std::int64_t line, std::int64_t id, char const* what) {
  if (id < 0 || id >= std::int64_t{dealii::numbers::internal_face_boundary_id})
    fail_in_mesh_file(path, line,
                      std::string("the ") + what + " id " + std::to_string(id) + " is not in the range 0 to 4294967294");
}

/// The quadrilaterals on the boundary, as deal.II wants them. Those between two cells say nothing about the boundary and are left
/// out.
dealii::SubCellData boundary_of(std::string const& path, RawMesh const& mesh, std::vector<Face> const& faces) {
  dealii::SubCellData data;
  std::vector<std::size_t> order(mesh.quads.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::vector<std::array<int, 4>> keys;
  for (auto const& quad : mesh.quads) {
    check_id(path, quad.line, quad.boundary, "boundary");
    keys.push_back(sorted(quad.vertices));
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return keys[a] < keys[b]; });
  for (std::size_t i = 0; i < order.size(); ++i) {
    RawMesh::Quad const& quad = mesh.quads[order[i]];
    auto const& key = keys[order[i]];
    auto const face = std::lower_bound(faces.begin(), faces.end(), key, [](Face const& f, auto const& k) { return f.key < k; });
    if (face == faces.end() || face->key != key)
      fail_in_mesh_file(path, quad.line, "a quadrilateral is not a face of any hexahedron");
    if (face + 1 != faces.end() && (face + 1)->key == key)
      continue;
    if (i > 0 && keys[order[i - 1]] == key) {
      RawMesh::Quad const& before = mesh.quads[order[i - 1]];
      if (before.boundary != quad.boundary)
        fail_in_mesh_file(path, quad.line,
                          "a boundary face has two ids, " + std::to_string(before.boundary) + " (line " +
                              std::to_string(before.line) + ") and " + std::to_string(quad.boundary));
      continue;
    }
    dealii::CellData<2> cell;
    cell.vertices = {static_cast<unsigned>(face->vertices[0]), static_cast<unsigned>(face->vertices[1]),
                     static_cast<unsigned>(face->vertices[3]), static_cast<unsigned>(face->vertices[2])};
    cell.boundary_id = static_cast<dealii::types::boundary_id>(quad.boundary);
    data.boundary_quads.push_back(cell);
  }
  return data;
}

}  // namespace

void fail_in_mesh_file(std::string const& path, std::int64_t line, std::string const& message) {
  throw InputError("problem.mesh.file",
                   "mesh file '" + path + "'" + (line > 0 ? ", line " + std::to_string(line) : "") + ": " + message);
}

Mesh read_mesh_file(std::string const& path) {
  RawMesh mesh = read_raw(path);
  if (mesh.cells.empty())
    fail_in_mesh_file(path, 0, "the file has no hexahedra");
  check_memory(static_cast<std::int64_t>(mesh.cells.size()) * bytes_per_created_cell, "the mesh");
  check_shapes(path, mesh);
  for (auto const& cell : mesh.cells)
    check_id(path, cell.line, cell.material, "material");
  dealii::SubCellData boundary = boundary_of(path, mesh, check_faces(path, mesh));

  std::vector<dealii::CellData<3>> cells(mesh.cells.size());
  for (std::size_t c = 0; c < cells.size(); ++c) {
    cells[c].vertices.assign(mesh.cells[c].vertices.begin(), mesh.cells[c].vertices.end());
    cells[c].material_id = static_cast<dealii::types::material_id>(mesh.cells[c].material);
  }
  std::vector<dealii::Point<3>> vertices = std::move(mesh.vertices);
  Mesh result;
  for (auto const& [id, name] : mesh.boundary_names)
    result.boundary_names[static_cast<unsigned>(id)] = name;
  for (auto const& [id, name] : mesh.material_names)
    result.material_names[static_cast<unsigned>(id)] = name;
  mesh = {};
  dealii::GridTools::delete_unused_vertices(vertices, cells, boundary);
  dealii::GridTools::consistently_order_cells(cells);
  result.triangulation = std::make_unique<dealii::Triangulation<3>>();
  try {
    result.triangulation->create_triangulation(vertices, cells, boundary);
  } catch (std::bad_alloc const&) {
    throw;
  } catch (std::exception const& exception) {
    fail_in_mesh_file(path, 0, "deal.II cannot build this mesh: " + brief_message(exception));
  }
  return result;
}

}  // namespace poisson::assembly
