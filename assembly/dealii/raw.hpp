#pragma once

#include "assembly/dealii/scanner.hpp"

#include <array>
#include <cstdint>
#include <deal.II/base/point.h>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

/// The mesh of a file before deal.II checks and orders it. Shared by files.cpp and the readers (one per format) only.
namespace poisson::assembly {

struct RawMesh {
  struct Cell {
    std::array<int, 8> vertices{};  ///< in deal.II's order: x runs fastest, then y, then z
    std::int64_t material = 0;
    std::int64_t line = 0;  ///< line of the file, from 1
  };
  struct Quad {
    std::array<int, 4> vertices{};  ///< in cyclic order around the face
    std::int64_t boundary = 0;
    std::int64_t line = 0;
  };
  std::vector<dealii::Point<3>> vertices;
  std::vector<Cell> cells;
  std::vector<Quad> quads;
  std::map<std::int64_t, std::string> boundary_names, material_names;  ///< by id, where the file has names
};

/// Collects vertices and elements, which a file refers to by arbitrary numbers.
class RawMeshBuilder {
public:
  explicit RawMeshBuilder(MeshText const& text) : text_(text) {}

  void add_vertex(std::int64_t number, double x, double y, double z);
  /// Vertices in the order of nearly all formats: around the bottom, then around the top.
  void add_hexahedron(std::array<std::int64_t, 8> const& numbers, std::int64_t material);
  void add_quad(std::array<std::int64_t, 4> const& numbers, std::int64_t boundary);
  /// Notes an element of an unsupported type; finish() reports those of the highest dimension in its error.
  void add_unsupported(std::string const& name, int dimension);

  [[nodiscard]] RawMesh& mesh() noexcept { return mesh_; }
  /// The mesh. Throws InputError when it has unsupported elements.
  [[nodiscard]] RawMesh finish();

private:
  int vertex(std::int64_t number) const;

  MeshText const& text_;
  RawMesh mesh_;
  std::unordered_map<std::int64_t, int> vertex_of_number_;
  struct Unsupported {
    std::string name;
    int dimension = -1;
    std::int64_t count = 0, line = 0;
  };
  std::vector<Unsupported> unsupported_;
};

/// The number at the end of a name such as "Material-2" or "EB1"; -1 without one.
[[nodiscard]] std::int64_t trailing_number(std::string_view name);
/// Ids of named groups: the number that a name ends in; for names without one the least ids from 1 that no other name has.
[[nodiscard]] std::map<std::string, std::int64_t> ids_of_names(std::vector<std::string> const& names);

/// Readers. They throw InputError, with the line, for anything wrong in the text. deal.II's readers are not used: in a release
/// build they read beyond the end of truncated or damaged files, and report no line. Tests compare both on the meshes that both
/// read.
[[nodiscard]] RawMesh read_gmsh(MeshText& text);
[[nodiscard]] RawMesh read_abaqus(MeshText& text);
[[nodiscard]] RawMesh read_ucd(MeshText& text);
[[nodiscard]] RawMesh read_vtk(MeshText& text);
[[nodiscard]] RawMesh read_unv(MeshText& text);

}  // namespace poisson::assembly
