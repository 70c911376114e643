#include "assembly/dealii/raw.hpp"
#include "assembly/text.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <string>
#include <vector>

namespace poisson::assembly {
namespace {

/// A file of Medit, or of the library GMF, in text. Comments go from # to the end of a line.
class MeditReader {
public:
  explicit MeditReader(MeshText& text) : text_(text), builder_(text) {}

  RawMesh read() {
    if (upper(text_.word_before_comment()) != "MESHVERSIONFORMATTED")
      text_.fail("this is neither a Medit file (it does not begin with MeshVersionFormatted) nor one of MFEM");
    text_.word_before_comment();  // the version
    bool vertices = false, ended = false;
    while (!ended) {
      std::string const key = upper(text_.word_before_comment());
      if (key.empty())
        break;
      ended = key == "END";
      if (key == "DIMENSION") {
        if (std::int64_t const dimension = integer("the dimension"); dimension != 3)
          text_.fail("this is a mesh in " + std::to_string(dimension) + " dimensions; three are needed");
      } else if (key == "VERTICES") {
        vertices = true;
        read_vertices();
      } else if (key == "HEXAHEDRA" || key == "HEXAEDRA") {
        read_hexahedra();
      } else if (key == "QUADRILATERALS" || key == "QUADRANGLES" || key == "QUADS") {
        read_quadrilaterals(5);
      } else if (key == "QUADRILATERALSQ2") {
        read_quadrilaterals(10);
      } else if (auto const found = elements().find(key); found != elements().end()) {
        std::int64_t const count = count_of_section();
        for (std::int64_t i = 0; i < count; ++i) {
          builder_.add_unsupported(found->second.name, found->second.dimension);
          numbers(found->second.numbers);
        }
      } else if (!ended) {
        pass_over(key);
      }
    }
    if (!vertices)
      text_.fail("the file has no section Vertices");
    if (!ended && !text_.has_last_end_of_line())
      builder_.mesh().notes.emplace_back(MeshText::note_of_cut_line);
    return builder_.finish();
  }

private:
  struct Elements {
    std::size_t numbers;  ///< vertices and the reference
    char const* name;
    int dimension;
  };

  /// Elements that are counted for the message that names them.
  static std::map<std::string, Elements> const& elements() {
    static std::map<std::string, Elements> const all{
        {"TRIANGLES", {4, "triangle", 2}},     {"TRIANGLESP2", {7, "triangle, order 2", 2}},
        {"TETRAHEDRA", {5, "tetrahedron", 3}}, {"TETRAHEDRAP2", {11, "tetrahedron, order 2", 3}},
        {"PRISMS", {7, "prism", 3}},           {"PENTAHEDRA", {7, "prism", 3}},
        {"PYRAMIDS", {6, "pyramid", 3}},       {"HEXAHEDRAQ2", {28, "HexahedraQ2 (curved)", 3}}};
    return all;
  }

  std::int64_t integer(char const* what) { return text_.to_integer(text_.word_before_comment(), what); }
  double real(char const* what) { return text_.to_real(text_.word_before_comment(), what); }

  std::int64_t count_of_section() {
    std::int64_t const count = integer("the number of entries of a section");
    if (count < 0)
      text_.fail("the number of entries of a section is " + std::to_string(count));
    return count;
  }

  std::vector<std::int64_t> numbers(std::size_t n) {
    std::vector<std::int64_t> result(n);
    for (auto& number : result)
      number = integer("a number of a vertex, or a reference");
    return result;
  }

  void read_vertices() {
    std::int64_t const count = count_of_section();
    for (std::int64_t i = 1; i <= count; ++i) {
      double const x = real("x of a vertex"), y = real("y of a vertex"), z = real("z of a vertex");
      integer("the reference of a vertex");
      builder_.add_vertex(i, x, y, z);
    }
  }

  void read_hexahedra() {
    std::int64_t const count = count_of_section();
    for (std::int64_t i = 0; i < count; ++i) {
      auto const cell = numbers(9);
      std::array<std::int64_t, 8> corners{};
      std::copy_n(cell.begin(), 8, corners.begin());
      builder_.add_hexahedron(corners, cell[8]);
    }
  }

  void read_quadrilaterals(std::size_t n) {
    std::int64_t const count = count_of_section();
    for (std::int64_t i = 0; i < count; ++i) {
      auto const quad = numbers(n);
      builder_.add_quad({quad[0], quad[1], quad[2], quad[3]}, quad.back());
    }
  }

  /// Passes over a section up to the next keyword, which is the next word that begins with a letter.
  void pass_over(std::string const& key) {
    auto const begins = [&](std::initializer_list<char const*> words) {
      return std::any_of(words.begin(), words.end(), [&](char const* word) { return key.starts_with(word); });
    };
    if (!std::isalpha(static_cast<unsigned char>(key[0])))
      text_.fail(in_quotes(key) + " stands where the name of a section should be");
    if (key == "INCLUDEFILE")
      text_.fail("IncludeFile is not followed; write the mesh into one file");
    if (key == "IDENTIFIER" || key == "GEOMETRY") {
      // A name, in this line or the next one.
      std::string_view name;
      text_.next_line(name);
      if (name.empty())
        text_.next_line(name);
      return;
    }
    if (begins({"HEXAHEDRA", "TETRAHEDRA", "PRISMS", "PYRAMIDS", "POLYHEDRA"}) && !key.ends_with("ORDERING"))
      builder_.add_unsupported(key, 3);
    else if (!begins({"EDGE", "CORNERS", "REQUIRED", "RIDGES", "NORMAL", "TANGENT", "SUBDOMAINFROM", "VERTEXON", "VERTICESON",
                      "ANGLEOFCORNERBOUND", "BOUNDINGBOX", "COMMENT", "FAULT", "BEGIN", "TIME", "ITERATIONS", "REFERENCESTRINGS"}))
      builder_.mesh().notes.push_back("the section " + key + " (line " + std::to_string(text_.line()) + ") is passed over");
    for (;;) {
      std::string_view const next = text_.peek_word();
      if (next.empty() || std::isalpha(static_cast<unsigned char>(next[0])))
        return;
      if (next.starts_with('"')) {
        std::string_view rest;
        text_.next_line(rest);
      } else {
        static_cast<void>(text_.word_before_comment());
      }
    }
  }

  MeshText& text_;
  RawMeshBuilder builder_;
};

}  // namespace

RawMesh read_medit(MeshText& text) {
  return MeditReader(text).read();
}

}  // namespace poisson::assembly
