#pragma once

#include <array>
#include <cstdint>
#include <deal.II/base/point.h>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

/// A mesh as a file states it, before deal.II sees it: shared by assembly/mesh_files.cpp and assembly/mesh_formats.cpp only.
namespace poisson::assembly {

struct RawMesh {
  struct Cell {
    std::array<int, 8> vertices{};  ///< in deal.II's order: x runs fastest, then y, then z
    std::int64_t material = 0;
    std::int64_t line = 0;  ///< of the file
  };
  struct Quad {
    std::array<int, 4> vertices{};  ///< around the face
    std::int64_t boundary = 0;
    std::int64_t line = 0;
  };
  std::vector<dealii::Point<3>> vertices;
  std::vector<Cell> cells;
  std::vector<Quad> quads;
};

/// Throws the InputError for a mesh file. `line` 0: the file as a whole.
[[noreturn]] void fail_in_mesh_file(std::string const& path, std::int64_t line, std::string const& message);

/// Text of a mesh file, taken word by word or line by line; knows its line numbers and no locale.
class MeshText {
public:
  MeshText(std::string path, std::string content) : path_(std::move(path)), content_(std::move(content)), rest_(content_) {}
  MeshText(MeshText const&) = delete;
  MeshText& operator=(MeshText const&) = delete;

  [[noreturn]] void fail(std::string const& message) const { fail_in_mesh_file(path_, line_, message); }
  [[noreturn]] void fail_at(std::int64_t line, std::string const& message) const { fail_in_mesh_file(path_, line, message); }

  [[nodiscard]] std::int64_t line() const noexcept { return line_; }
  /// The next word, or an empty one at the end of the file.
  std::string_view word();
  [[nodiscard]] std::string_view peek_word();
  std::int64_t integer(char const* what);
  double real(char const* what);
  /// The rest of the current line when words were taken from it, else the next line; without surrounding blanks. False at the end.
  bool next_line(std::string_view& text);

  std::int64_t to_integer(std::string_view word, char const* what) const;
  double to_real(std::string_view word, char const* what) const;

private:
  std::string path_;
  std::string content_;
  std::string_view rest_;
  std::int64_t line_ = 1;
  bool line_taken_ = false;  ///< next_line() gave line `line_`, and rest_ stands at its end
};

/// Collects the parts of a mesh under the numbers that the file gives them.
class RawMeshBuilder {
public:
  explicit RawMeshBuilder(MeshText const& text) : text_(text) {}

  void add_vertex(std::int64_t number, double x, double y, double z);
  /// Vertices in the order of nearly all formats: around the bottom, then around the top.
  void add_hexahedron(std::array<std::int64_t, 8> const& numbers, std::int64_t material);
  void add_quad(std::array<std::int64_t, 4> const& numbers, std::int64_t boundary);
  /// An element that cannot be read; finish() names those of the highest dimension.
  void add_unsupported(std::string const& name, int dimension);

  [[nodiscard]] RawMesh& mesh() noexcept { return mesh_; }
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

/// Readers; all throw InputError for whatever is wrong, and look at nothing but the text.
[[nodiscard]] RawMesh read_gmsh(MeshText& text);
[[nodiscard]] RawMesh read_abaqus(MeshText& text);
[[nodiscard]] RawMesh read_ucd(MeshText& text);
[[nodiscard]] RawMesh read_vtk(MeshText& text);
[[nodiscard]] RawMesh read_unv(MeshText& text);

}  // namespace poisson::assembly
