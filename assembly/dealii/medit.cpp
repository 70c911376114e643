#include "assembly/dealii/raw.hpp"
#include "assembly/text.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

namespace poisson::assembly {
namespace {

struct MeditSection {
  std::size_t numbers;  ///< integers of an entry
  char const* unsupported = nullptr;
  int dimension = 0;
};

/// Sections that are passed over, and elements that are named in an error.
std::map<std::string, MeditSection> const& medit_sections() {
  static std::map<std::string, MeditSection> const sections{{"EDGES", {3}},
                                                            {"EDGESP2", {4}},
                                                            {"CORNERS", {1}},
                                                            {"REQUIREDVERTICES", {1}},
                                                            {"REQUIREDEDGES", {1}},
                                                            {"REQUIREDTRIANGLES", {1}},
                                                            {"REQUIREDQUADRILATERALS", {1}},
                                                            {"RIDGES", {1}},
                                                            {"NORMALATVERTICES", {2}},
                                                            {"TANGENTATVERTICES", {2}},
                                                            {"TRIANGLES", {4, "triangle", 2}},
                                                            {"TRIANGLESP2", {7, "triangle, order 2", 2}},
                                                            {"TETRAHEDRA", {5, "tetrahedron", 3}},
                                                            {"TETRAHEDRAP2", {11, "tetrahedron, order 2", 3}},
                                                            {"PRISMS", {7, "prism", 3}},
                                                            {"PYRAMIDS", {6, "pyramid", 3}}};
  return sections;
}

}  // namespace

RawMesh read_medit(MeshText& text) {
  RawMeshBuilder builder(text);
  // The next word that is not in a comment, which # begins.
  auto const next = [&] {
    std::string_view word = text.word();
    while (word.starts_with('#')) {
      std::string_view rest;
      text.next_line(rest);
      word = text.word();
    }
    return word;
  };
  if (upper(next()) != "MESHVERSIONFORMATTED")
    text.fail("this is neither a Medit file (it does not begin with MeshVersionFormatted) nor one of MFEM");
  next();
  bool vertices = false;
  for (std::string key = upper(next()); !key.empty() && key != "END"; key = upper(next())) {
    if (key == "DIMENSION") {
      if (std::int64_t const dimension = text.integer("the dimension"); dimension != 3)
        text.fail("this is a mesh in " + std::to_string(dimension) + " dimensions; three are needed");
      continue;
    }
    std::int64_t const count = text.count("the number of entries of a section");
    auto const numbers = [&](std::size_t n) {
      std::vector<std::int64_t> result(n);
      for (auto& number : result)
        number = text.integer("a number of a vertex, or a reference");
      return result;
    };
    if (key == "VERTICES") {
      vertices = true;
      for (std::int64_t i = 1; i <= count; ++i) {
        double const x = text.real("x of a vertex"), y = text.real("y of a vertex"), z = text.real("z of a vertex");
        text.integer("the reference of a vertex");
        builder.add_vertex(i, x, y, z);
      }
    } else if (key == "HEXAHEDRA") {
      for (std::int64_t i = 0; i < count; ++i) {
        auto const cell = numbers(9);
        std::array<std::int64_t, 8> corners{};
        std::copy_n(cell.begin(), 8, corners.begin());
        builder.add_hexahedron(corners, cell[8]);
      }
    } else if (key == "HEXAHEDRAQ2") {
      builder.add_unsupported("HexahedraQ2 (27-node hexahedron)", 3);
      for (std::int64_t i = 0; i < count; ++i)
        numbers(28);
    } else if (key == "QUADRILATERALS" || key == "QUADRILATERALSQ2") {
      for (std::int64_t i = 0; i < count; ++i) {
        auto const quad = numbers(key == "QUADRILATERALS" ? 5 : 10);
        builder.add_quad({quad[0], quad[1], quad[2], quad[3]}, quad.back());
      }
    } else if (key == "NORMALS" || key == "TANGENTS") {
      for (std::int64_t i = 0; i < 3 * count; ++i)
        text.real("a component of a vector");
    } else if (auto const section = medit_sections().find(key); section != medit_sections().end()) {
      for (std::int64_t i = 0; i < count; ++i) {
        if (section->second.unsupported != nullptr)
          builder.add_unsupported(section->second.unsupported, section->second.dimension);
        numbers(section->second.numbers);
      }
    } else {
      text.fail("the section " + in_quotes(key) + " is not known");
    }
  }
  if (!vertices)
    text.fail("the file has no section Vertices");
  return builder.finish();
}

}  // namespace poisson::assembly
