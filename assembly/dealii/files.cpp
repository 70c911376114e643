#include "assembly/dealii/cell_shapes.hpp"
#include "assembly/dealii/drawing.hpp"
#include "assembly/dealii/joined_nodes.hpp"
#include "assembly/dealii/mesh.hpp"
#include "assembly/dealii/mesh_groups.hpp"
#include "assembly/dealii/other_process.hpp"
#include "assembly/dealii/raw.hpp"
#include "assembly/dealii/sources.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/input_file.hpp"
#include "gpu/core/temporary_file.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstring>
#include <deal.II/grid/grid_tools.h>
#include <deal.II/grid/tria.h>
#include <deal.II/grid/tria_description.h>
#include <filesystem>
#include <fstream>
#include <set>
#include <system_error>
#include <tuple>
#include <zlib.h>

namespace poisson::assembly {
namespace {

constexpr char const* known_formats =
    ".msh (Gmsh), .inp (Abaqus or UCD), .ucd, .e, .exo (Exodus), .mesh (Medit or MFEM), .unv, .vtk, .vtu and .hdf (VTK), each of "
    "them but .hdf also compressed (.gz); and drawings and surfaces: .step, .stp, .brep, .geo, .stl";

bool is_exodus(std::string const& extension) {
  static constexpr std::array<char const*, 6> endings{".e", ".exo", ".ex2", ".exii", ".g", ".gen"};
  return std::find(endings.begin(), endings.end(), extension) != endings.end();
}

/// What gzip compressed, one or several members.
std::string inflated(std::string const& path, std::string const& compressed) {
  struct Stream : z_stream {
    Stream() : z_stream() {
      if (inflateInit2(this, 15 + 16) != Z_OK)  // with gzip's header
        throw std::bad_alloc();
    }
    ~Stream() { inflateEnd(this); }
  } stream;
  std::string content;
  std::size_t read = 0, written = 0;
  auto const most = static_cast<std::size_t>(most_unpacked_bytes(static_cast<std::int64_t>(compressed.size())));
  for (;;) {
    if (written == content.size()) {
      std::size_t const size = std::max<std::size_t>(2 * content.size(), std::size_t{1} << 16);
      check_memory(static_cast<std::int64_t>(size), "reading the compressed mesh file");
      content.resize(size);
    }
    // zlib counts in 32 bits.
    auto const part = [](std::size_t n) { return static_cast<uInt>(std::min<std::size_t>(n, 1U << 30)); };
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(compressed.data() + read));
    stream.avail_in = part(compressed.size() - read);
    stream.next_out = reinterpret_cast<Bytef*>(content.data() + written);
    stream.avail_out = part(content.size() - written);
    uInt const in = stream.avail_in, out = stream.avail_out;
    int const status = inflate(&stream, Z_NO_FLUSH);
    read += in - stream.avail_in;
    written += out - stream.avail_out;
    if (written > most)
      fail_in_mesh_file(path, 0,
                        "the compressed data (gzip) unpack to more than " + std::to_string(most) + " bytes, " +
                            std::to_string(most / compressed.size()) +
                            " times the file: no mesh does. Unpack it first if it is one");
    if (status == Z_STREAM_END) {
      // Another member may follow; zeros that pad the file say nothing.
      if (read == compressed.size() || compressed.find_first_not_of('\0', read) == std::string::npos) {
        content.resize(written);
        return content;
      }
      inflateReset(&stream);
    } else if (status == Z_MEM_ERROR) {
      throw std::bad_alloc();
    } else if (status == Z_BUF_ERROR) {  // there is room, so what is missing is input
      fail_in_mesh_file(path, 0, "the compressed data (gzip) end too early");
    } else if (status != Z_OK) {
      fail_in_mesh_file(path, 0, "the compressed data (gzip) are damaged");
    }
  }
}

std::string read_text(std::string const& path) {
  require_mesh_file(path);
  std::error_code error;
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
  if (content.starts_with("\x1f\x8b"))
    content = inflated(path, content);
  if (content.empty())
    fail_in_mesh_file(path, 0, "the file is empty");
  return content;
}

RawMesh read_raw(MeshSpec const& spec) {
  std::string const& path = spec.file;
  if (is_drawing(spec))
    return read_drawing(spec);
  std::string const extension = ending_of_mesh_file(path);
  auto const is = [&](std::initializer_list<char const*> names) {
    return std::find(names.begin(), names.end(), extension) != names.end();
  };
  std::string content = spec.content ? *spec.content : read_text(path);
  bool const exodus = is_exodus(extension), by_vtk = is_read_by_vtk(spec), vtkhdf = is({".hdf", ".vtkhdf"});
  for (auto const& [key, array] :
       {std::pair("problem.mesh.array", &spec.array), {"problem.mesh.boundary_array", &spec.boundary_array}})
    if (!array->empty() && !by_vtk)
      throw InputError(key, "found " + in_quotes(*array) + ", which is for the files of VTK only (.vtk, .vtu, .hdf): '" + path +
                                "' has no arrays");
  if (exodus || by_vtk) {
    if (vtkhdf && !content.starts_with("\x89HDF"))
      fail_in_mesh_file(path, 0, "this is no HDF5 file");
    MeshText text(path, std::move(content));
    text.has_no_lines();
    std::optional<TemporaryFile> step;
    if (spec.content)
      step.emplace(*spec.content);
    return read_in_other_process(text, [&] {
      return exodus         ? read_exodus(text)
             : vtkhdf       ? read_vtkhdf(text, spec, step ? step->path() : path)
             : is({".vtk"}) ? read_vtk(text, spec)
                            : read_vtu(text, spec);
    });
  }
  if (is_surface(spec)) {
    MeshText text(path, std::move(content));
    return read_stl(text, spec);
  }
  if (!is({".msh", ".inp", ".ucd", ".unv", ".mesh"}))
    fail_in_mesh_file(path, 0, std::string("the ending '") + extension + "' belongs to no mesh format; known are " + known_formats);
  if (!content.starts_with("$MeshFormat") && content.find('\0') != std::string::npos)
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
  bool const mfem = content.starts_with("MFEM");
  MeshText text(path, std::move(content));
  return extension == ".msh"             ? read_gmsh(text)
         : extension == ".mesh"          ? mfem ? read_mfem(text) : read_medit(text)
                  : extension == ".unv" ? read_unv(text)
         : extension == ".inp" && abaqus ? read_abaqus(text)
                                         : read_ucd(text);
}

/// Multiplies the coordinates of vertices, of the nodes of curved cells, and of the translations between periodic boundaries.
void multiply_coordinates(RawMesh& mesh, double scale) {
  for (auto* const points : {&mesh.vertices, &mesh.shape_nodes})
    for (dealii::Point<3>& point : *points)
      point *= scale;
  for (PeriodicPair& pair : mesh.periodic)
    if (pair.map)
      for (std::size_t row = 0; row < 3; ++row)
        (*pair.map)[4 * row + 3] *= scale;
  if (mesh.surface) {
    for (double* const area : {&mesh.surface->area, &mesh.surface->voxels_area})
      *area *= scale * scale;
    for (double* const volume : {&mesh.surface->volume, &mesh.surface->voxels_volume})
      *volume *= scale * scale * scale;
  }
}

/// All faces of all cells, ascending by key. Every face has one or two cells, which see it from opposite sides. Errors end with
/// `advice`.
std::vector<RawFace> check_faces(std::string const& path, RawMesh const& mesh, std::string const& advice) {
  static constexpr std::array<std::array<std::size_t, 4>, 6> corners{
      {{0, 4, 6, 2}, {1, 3, 7, 5}, {0, 1, 5, 4}, {2, 6, 7, 3}, {0, 2, 3, 1}, {4, 5, 7, 6}}};
  std::vector<RawFace> faces;
  faces.reserve(6 * mesh.cells.size());
  for (std::size_t c = 0; c < mesh.cells.size(); ++c) {
    auto const& vertices = mesh.cells[c].vertices;
    auto all = vertices;
    std::sort(all.begin(), all.end());
    if (std::adjacent_find(all.begin(), all.end()) != all.end())
      fail_in_mesh_file(path, mesh.cells[c].line, "a cell has the same node twice");
    for (auto const& corner : corners) {
      RawFace face;
      for (std::size_t v = 0; v < 4; ++v)
        face.vertices[v] = vertices[corner[v]];
      face.key = face.vertices;
      std::sort(face.key.begin(), face.key.end());
      face.cell = c;
      faces.push_back(face);
    }
  }
  std::sort(faces.begin(), faces.end(),
            [](RawFace const& a, RawFace const& b) { return a.key != b.key ? a.key < b.key : a.cell < b.cell; });
  for (std::size_t i = 0; i + 1 < faces.size(); ++i) {
    RawFace const &a = faces[i], &b = faces[i + 1];
    if (a.key != b.key)
      continue;
    dealii::Point<3> centre;
    for (int const v : a.key)
      centre += mesh.vertices[static_cast<std::size_t>(v)] / 4.;
    if (i + 2 < faces.size() && faces[i + 2].key == a.key)
      fail_in_mesh_file(path, mesh.cells[faces[i + 2].cell].line,
                        "the mesh is not a manifold: the face with its centre at " + to_text(centre) +
                            " belongs to more than two cells" + advice);
    std::size_t const start =
        static_cast<std::size_t>(std::find(b.vertices.begin(), b.vertices.end(), a.vertices[0]) - b.vertices.begin());
    for (std::size_t v = 0; v < 4; ++v)
      if (b.vertices[(start + 4 - v) % 4] != a.vertices[v])
        fail_in_mesh_file(path, mesh.cells[b.cell].line,
                          "two cells overlap: both lie on the same side of their common face with its centre at " +
                              to_text(centre) + ", or their edges cross there" + advice);
  }
  return faces;
}

/// The shapes of the cells, unless all are straight.
std::optional<CurvedCells> curved_cells(RawMesh& mesh) {
  CurvedCells cells{mesh.order, std::move(mesh.shape_nodes)};
  for (std::size_t c = 0; c < mesh.cells.size(); ++c)
    if (!is_trilinear(cells.order, cells.of_cell(c)))
      return cells;
  return {};
}

/// Turns the shapes, which are in the frames of the file's cells, into those of the triangulation's.
void turn_frames(CurvedCells& curved, std::vector<dealii::CellData<3>> const& in_file,
                 dealii::Triangulation<3> const& triangulation) {
  std::size_t const n_nodes = curved.nodes.size() / in_file.size();
  for (auto const& cell : triangulation.active_cell_iterators()) {
    std::size_t const c = cell->active_cell_index();
    auto const& old = in_file[c].vertices;
    std::array<int, 8> corners{};
    for (unsigned v = 0; v < 8; ++v) {
      auto const found = std::find(old.begin(), old.end(), cell->vertex_index(v));
      assert(found != old.end());
      corners[v] = static_cast<int>(found - old.begin());
    }
    turn_frame(curved.order, corners, std::span(curved.nodes).subspan(c * n_nodes, n_nodes));
  }
}

/// The vertices of faces inside the mesh, as the cells have them now.
std::vector<std::set<unsigned>> corners_of(std::vector<FaceGroups::Inner> const& faces,
                                           std::vector<dealii::CellData<3>> const& cells) {
  std::vector<std::set<unsigned>> result;
  for (FaceGroups::Inner const& face : faces) {
    std::set<unsigned>& corners = result.emplace_back();
    for (int const corner : face.corners)
      corners.insert(cells[face.cell].vertices[static_cast<std::size_t>(corner)]);
  }
  return result;
}

/// These faces, ascending by cell, as deal.II numbers them.
std::vector<Mesh::InnerFace> find_inner_faces(std::vector<FaceGroups::Inner> const& faces,
                                              std::vector<std::set<unsigned>> const& corners,
                                              dealii::Triangulation<3> const& triangulation) {
  std::vector<Mesh::InnerFace> result;
  std::size_t next = 0;
  for (auto const& cell : triangulation.active_cell_iterators())
    for (; next < faces.size() && faces[next].cell == cell->active_cell_index(); ++next)
      for (unsigned const f : cell->face_indices()) {
        std::set<unsigned> of_face;
        for (unsigned v = 0; v < 4; ++v)
          of_face.insert(cell->face(f)->vertex_index(v));
        if (of_face == corners[next])
          result.push_back({static_cast<int>(faces[next].cell), static_cast<int>(f), faces[next].id});
      }
  assert(result.size() == faces.size());
  std::sort(result.begin(), result.end(),
            [](auto const& a, auto const& b) { return std::tie(a.cell, a.face) < std::tie(b.cell, b.face); });
  return result;
}

/// Joins nodes at the same place, and says so. Returns what to add to messages about a mesh that is wrong then.
std::string join_coinciding_nodes(RawMesh& mesh) {
  JoinedNodes const nodes = join_nodes(mesh);
  auto const coincide = [](std::int64_t n) {
    return std::to_string(n) + (n == 1 ? " node coincides with another and was" : " nodes coincide with others and were");
  };
  if (nodes.joined > 0)
    mesh.notes.push_back(coincide(nodes.joined) + " joined with " + (nodes.joined == 1 ? "it" : "them") +
                         "; problem.mesh.join: false keeps such nodes apart");
  if (nodes.kept > 0)
    mesh.notes.push_back(coincide(nodes.kept) + " not joined, since a cell would have the same node twice");
  return nodes.joined == 0 ? std::string()
                           : "; " + coincide(nodes.joined) + " joined before: problem.mesh.join: false keeps such nodes apart";
}

/// Says how many parts the mesh has, where it has several.
void add_note_on_parts(RawMesh const& mesh, std::vector<std::string>& notes) {
  std::vector<std::int64_t> const parts = separate_parts(mesh);
  if (parts.size() < 2)
    return;
  std::string sizes;
  for (std::size_t i = 0; i < std::min<std::size_t>(parts.size(), 5); ++i)
    sizes += (i == 0 ? "" : i + 1 == parts.size() ? " and " : ", ") + std::to_string(parts[i]);
  notes.push_back("the mesh has " + std::to_string(parts.size()) + " parts that have no node in common, of " + sizes +
                  (parts.size() > 5 ? ", ..." : "") + " cells: nothing flows from one to another");
}

}  // namespace

void require_mesh_file(std::string const& path) {
  std::error_code error;
  auto const status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status))
    fail_in_mesh_file(path, 0, "there is no such mesh file");
  if (std::filesystem::is_directory(status))
    fail_in_mesh_file(path, 0, "this is a directory, not a mesh file");
  // A pipe or a device could keep us waiting for ever.
  if (!std::filesystem::is_regular_file(status))
    fail_in_mesh_file(path, 0, "this is not a regular file");
}

void fail_in_mesh_file(std::string const& path, std::int64_t line, std::string const& message) {
  throw InputError("problem.mesh.file",
                   "mesh file '" + path + "'" + (line > 0 ? ", line " + std::to_string(line) : "") + ": " + message);
}

Mesh read_mesh_file(MeshSpec const& spec) {
  std::string const& path = spec.file;
  RawMesh mesh = read_raw(spec);
  if (spec.scale != 1)
    multiply_coordinates(mesh, spec.scale);
  if (mesh.cells.empty())
    fail_in_mesh_file(path, 0,
                      std::string("the ") + (is_exodus(ending_of_mesh_file(path)) ? "Exodus " : "") + "file has no hexahedra" +
                          (mesh.quads.empty() ? "" : ", only " + std::to_string(mesh.quads.size()) + " quadrilaterals: a surface"));
  check_memory(static_cast<std::int64_t>(mesh.cells.size()) * bytes_per_created_cell, "the mesh");
  std::string const advice = spec.join ? join_coinciding_nodes(mesh) : std::string();
  Mesh result;
  result.notes = std::move(mesh.notes);
  result.material_groups = resolve_cell_groups(path, mesh, result.notes);
  add_note_on_parts(mesh, result.notes);
  CellShapes const shapes = examine_shapes(mesh);
  require_good_shapes(path, mesh, shapes);
  result.quality = shapes.quality;
  result.surface = mesh.surface;
  std::int64_t const turned = shapes.turned;
  FaceGroups faces = resolve_face_groups(path, mesh, check_faces(path, mesh, advice), result.notes);
  result.boundary_groups = std::move(faces.boundary_groups);
  result.inner_groups = std::move(faces.inner_groups);

  std::vector<dealii::CellData<3>> cells(mesh.cells.size());
  for (std::size_t c = 0; c < cells.size(); ++c) {
    cells[c].vertices.assign(mesh.cells[c].vertices.begin(), mesh.cells[c].vertices.end());
    cells[c].material_id = static_cast<dealii::types::material_id>(mesh.cells[c].material);
  }
  std::vector<dealii::Point<3>> vertices = std::move(mesh.vertices);
  if (turned > 0)
    result.notes.push_back(std::to_string(turned) + " of " + std::to_string(cells.size()) +
                           " cells are left-handed (their nodes are listed from the other side); they were turned over");
  for (std::string& note : result.notes)
    note.insert(0, "mesh file '" + path + "': ");
  if (mesh.order > 1)
    result.curved_cells = curved_cells(mesh);
  for (PeriodicPair const& pair : mesh.periodic)
    if (result.periodic.end() == std::find_if(result.periodic.begin(), result.periodic.end(), [&](PeriodicPair const& known) {
          return known.first == pair.first && known.second == pair.second;
        }))
      result.periodic.push_back(pair);
  mesh = {};
  dealii::GridTools::delete_unused_vertices(vertices, cells, faces.boundary);
  std::vector<std::set<unsigned>> const inner_corners = corners_of(faces.inner, cells);
  std::vector<dealii::CellData<3>> const in_file = result.curved_cells ? cells : std::vector<dealii::CellData<3>>();
  dealii::GridTools::consistently_order_cells(cells);
  result.triangulation = std::make_unique<dealii::Triangulation<3>>();
  try {
    result.triangulation->create_triangulation(vertices, cells, faces.boundary);
  } catch (std::bad_alloc const&) {
    throw;
  } catch (std::exception const& exception) {
    fail_in_mesh_file(path, 0, "deal.II cannot build this mesh: " + brief_message(exception) + advice);
  }
  if (result.curved_cells)
    turn_frames(*result.curved_cells, in_file, *result.triangulation);
  result.inner_faces = find_inner_faces(faces.inner, inner_corners, *result.triangulation);
  return result;
}

}  // namespace poisson::assembly
