#include "assembly/dealii/raw.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

namespace poisson::assembly {
namespace {

struct GmshType {
  int number, dimension;
  char const* name;
};
constexpr std::array<GmshType, 50> gmsh_types{{
    {1, 1, "2-node line"},
    {2, 2, "3-node triangle"},
    {3, 2, "4-node quadrilateral"},
    {4, 3, "4-node tetrahedron"},
    {5, 3, "8-node hexahedron"},
    {6, 3, "6-node prism"},
    {7, 3, "5-node pyramid"},
    {8, 1, "3-node line, order 2"},
    {9, 2, "6-node triangle, order 2"},
    {10, 2, "9-node quadrilateral, order 2"},
    {11, 3, "10-node tetrahedron, order 2"},
    {12, 3, "27-node hexahedron, order 2"},
    {13, 3, "18-node prism, order 2"},
    {14, 3, "14-node pyramid, order 2"},
    {15, 0, "1-node point"},
    {16, 2, "8-node quadrilateral, order 2"},
    {17, 3, "20-node hexahedron, order 2"},
    {18, 3, "15-node prism, order 2"},
    {19, 3, "13-node pyramid, order 2"},
    {20, 2, "9-node triangle, order 3"},
    {21, 2, "10-node triangle, order 3"},
    {22, 2, "12-node triangle, order 4"},
    {23, 2, "15-node triangle, order 4"},
    {24, 2, "15-node triangle, order 5"},
    {25, 2, "21-node triangle, order 5"},
    {26, 1, "4-node line, order 3"},
    {27, 1, "5-node line, order 4"},
    {28, 1, "6-node line, order 5"},
    {29, 3, "20-node tetrahedron, order 3"},
    {30, 3, "35-node tetrahedron, order 4"},
    {31, 3, "56-node tetrahedron, order 5"},
    {36, 2, "16-node quadrilateral, order 3"},
    {37, 2, "25-node quadrilateral, order 4"},
    {38, 2, "36-node quadrilateral, order 5"},
    {39, 2, "12-node quadrilateral, order 3"},
    {40, 2, "16-node quadrilateral, order 4"},
    {41, 2, "20-node quadrilateral, order 5"},
    {62, 1, "7-node line, order 6"},
    {90, 3, "40-node prism, order 3"},
    {91, 3, "75-node prism, order 4"},
    {92, 3, "64-node hexahedron, order 3"},
    {93, 3, "125-node hexahedron, order 4"},
    {94, 3, "216-node hexahedron, order 5"},
    {95, 3, "343-node hexahedron, order 6"},
    {96, 3, "512-node hexahedron, order 7"},
    {97, 3, "729-node hexahedron, order 8"},
    {98, 3, "1000-node hexahedron, order 9"},
    {99, 3, "32-node hexahedron, order 3"},
    {100, 3, "44-node hexahedron, order 4"},
    {118, 3, "30-node pyramid, order 3"},
}};

/// One element of a Gmsh file, its nodes the words from `nodes` on.
void add_gmsh_element(RawMeshBuilder& builder, MeshText const& text, std::int64_t type, std::int64_t tag,
                      std::vector<std::string_view> const& words, std::size_t nodes) {
  std::size_t const wanted = type == 5 ? 8 : type == 3 ? 4 : 0;
  if (wanted == 0) {
    auto const known = std::find_if(gmsh_types.begin(), gmsh_types.end(), [&](GmshType const& t) { return t.number == type; });
    if (known == gmsh_types.end())
      builder.add_unsupported(std::to_string(type) + " (not known here)", 3);
    else if (known->dimension >= 2)
      builder.add_unsupported(std::to_string(type) + " (" + known->name + ")", known->dimension);
    return;  // points and lines say nothing about a volume mesh
  }
  if (words.size() != nodes + wanted)
    text.fail("an element of type " + std::to_string(type) + " has " + std::to_string(wanted) + " nodes, but this line lists " +
              std::to_string(words.size() < nodes ? 0 : words.size() - nodes));
  std::array<std::int64_t, 8> numbers{};
  for (std::size_t v = 0; v < wanted; ++v)
    numbers[v] = text.to_integer(words[nodes + v], "a node number");
  // A negative tag means a reversed orientation of the surface.
  if (wanted == 8)
    builder.add_hexahedron(numbers, std::abs(tag));
  else
    builder.add_quad({numbers[0], numbers[1], numbers[2], numbers[3]}, std::abs(tag));
}

std::vector<std::string_view> element_line(MeshText& text) {
  std::string_view line;
  do
    if (!text.next_line(line))
      text.fail("the file ends within its list of elements");
  while (line.empty());
  if (line.front() == '$')
    text.fail("the list of elements ends before all elements that it announces");
  return words_of(line);
}

void read_gmsh_2_elements(MeshText& text, RawMeshBuilder& builder) {
  std::int64_t const count = text.count("the number of elements");
  std::string_view rest;
  text.next_line(rest);
  for (std::int64_t i = 0; i < count; ++i) {
    auto const words = element_line(text);
    if (words.size() < 4)
      text.fail("an element needs a number, a type, tags and nodes");
    std::int64_t const type = text.to_integer(words[1], "the type of an element");
    std::int64_t const tags = text.to_integer(words[2], "the number of tags");
    if (tags < 0 || tags > static_cast<std::int64_t>(words.size()) - 3)
      text.fail("the number of tags is " + std::to_string(tags) + ", which this line does not have");
    std::int64_t const physical = tags > 0 ? text.to_integer(words[3], "the physical tag") : 0;
    add_gmsh_element(builder, text, type, physical, words, 3 + static_cast<std::size_t>(tags));
  }
}

using GmshEntities = std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t>;  ///< (dimension, tag) -> physical tag

void read_gmsh_4_entities(MeshText& text, GmshEntities& physical) {
  std::array<std::int64_t, 4> count{};
  for (auto& n : count)
    n = text.count("the number of entities");
  for (std::int64_t dimension = 0; dimension < 4; ++dimension)
    for (std::int64_t i = 0; i < count[static_cast<std::size_t>(dimension)]; ++i) {
      std::int64_t const tag = text.integer("the tag of an entity");
      for (int k = 0; k < (dimension == 0 ? 3 : 6); ++k)
        text.real("a coordinate of an entity");
      std::int64_t const groups = text.count("the number of physical groups");
      for (std::int64_t k = 0; k < groups; ++k)
        physical[{dimension, tag}] = text.integer("the tag of a physical group");
      if (groups > 1 && dimension >= 2)
        text.fail("entity " + std::to_string(tag) + " of dimension " + std::to_string(dimension) + " belongs to " +
                  std::to_string(groups) + " physical groups; it can have one id only");
      if (dimension > 0) {
        std::int64_t const bounds = text.count("the number of bounding entities");
        for (std::int64_t k = 0; k < bounds; ++k)
          text.integer("the tag of a bounding entity");
      }
    }
}

void read_gmsh_4_nodes(MeshText& text, RawMeshBuilder& builder) {
  std::int64_t const blocks = text.count("the number of node blocks");
  for (int k = 0; k < 3; ++k)
    text.integer("the number or the range of the nodes");
  for (std::int64_t b = 0; b < blocks; ++b) {
    std::int64_t const dimension = text.integer("the dimension of an entity");
    text.integer("the tag of an entity");
    std::int64_t const parametric = text.integer("the flag for parametric coordinates");
    std::int64_t const count = text.count("the number of nodes of a block");
    if (dimension < 0 || dimension > 3 || (parametric != 0 && parametric != 1))
      text.fail("this is not the head of a block of nodes");
    std::vector<std::int64_t> numbers;
    for (std::int64_t i = 0; i < count; ++i)
      numbers.push_back(text.integer("a node number"));
    for (std::int64_t const number : numbers) {
      double const x = text.real("x of a node"), y = text.real("y of a node"), z = text.real("z of a node");
      for (std::int64_t k = 0; parametric == 1 && k < dimension; ++k)
        text.real("a parametric coordinate");
      builder.add_vertex(number, x, y, z);
    }
  }
}

void read_gmsh_4_elements(MeshText& text, RawMeshBuilder& builder, GmshEntities const& physical) {
  std::int64_t const blocks = text.count("the number of element blocks");
  for (int k = 0; k < 3; ++k)
    text.integer("the number or the range of the elements");
  for (std::int64_t b = 0; b < blocks; ++b) {
    std::int64_t const dimension = text.integer("the dimension of an entity");
    std::int64_t const tag = text.integer("the tag of an entity");
    std::int64_t const type = text.integer("the type of the elements");
    std::int64_t const count = text.count("the number of elements of a block");
    auto const group = physical.find({dimension, tag});
    std::string_view rest;
    text.next_line(rest);
    for (std::int64_t i = 0; i < count; ++i)
      add_gmsh_element(builder, text, type, group == physical.end() ? 0 : group->second, element_line(text), 1);
  }
}

/// The section without any entity, which says nothing.
void refuse_periodic(MeshText& text) {
  std::int64_t const line = text.line(), entities = text.count("the number of periodic entities");
  if (entities > 0)
    text.fail_at(line, "$Periodic joins " + std::to_string(entities) +
                           " entities of this mesh, and periodic faces are not supported yet; to solve without them, remove the "
                           "section $Periodic ... $EndPeriodic and give these faces boundary conditions of their own");
}

}  // namespace

RawMesh read_gmsh(MeshText& text) {
  if (text.word() != "$MeshFormat")
    text.fail("this is not a Gmsh file of version 2.2 or 4.1: it does not begin with $MeshFormat");
  std::string_view const version = text.word();
  bool const version_2 = version == "2" || version == "2.0" || version == "2.1" || version == "2.2";
  if (!version_2 && version != "4.1")
    text.fail("Gmsh version " + in_quotes(version) + " is not read; save the mesh as version 2.2 or 4.1, ASCII");
  if (text.integer("the file type") != 0)
    text.fail("binary Gmsh files are not read; save the mesh as ASCII");
  RawMeshBuilder builder(text);
  GmshEntities physical;
  bool nodes = false, elements = false;
  text.word();
  if (text.word() != "$EndMeshFormat")
    text.fail("$EndMeshFormat is missing");
  for (std::string_view section = text.word(); !section.empty(); section = text.word()) {
    if (section.front() != '$')
      text.fail(in_quotes(section) + " stands where a section ($Nodes, $Elements, ...) should begin");
    if (section == "$Nodes") {
      if (version_2) {
        std::int64_t const count = text.count("the number of nodes");
        for (std::int64_t i = 0; i < count; ++i) {
          std::int64_t const number = text.integer("a node number");
          double const x = text.real("x of a node"), y = text.real("y of a node"), z = text.real("z of a node");
          builder.add_vertex(number, x, y, z);
        }
      } else {
        read_gmsh_4_nodes(text, builder);
      }
      nodes = true;
    } else if (section == "$Elements") {
      if (!nodes)
        text.fail("$Elements comes before $Nodes");
      version_2 ? read_gmsh_2_elements(text, builder) : read_gmsh_4_elements(text, builder, physical);
      elements = true;
    } else if (section == "$PhysicalNames") {
      std::int64_t const count = text.count("the number of physical names");
      for (std::int64_t i = 0; i < count; ++i) {
        std::int64_t const dimension = text.integer("the dimension of a physical name"),
                           tag = text.integer("the tag of a physical name");
        std::string_view line;
        text.next_line(line);
        if (line.size() < 2 || line.front() != '"' || line.back() != '"')
          text.fail(in_quotes(line) + " stands where a physical name in quotes should be");
        std::string const name(line.substr(1, line.size() - 2));
        if (dimension == 2)
          builder.mesh().boundary_names[tag] = name;
        else if (dimension == 3)
          builder.mesh().material_names[tag] = name;
      }
    } else if (section == "$Entities" && !version_2) {
      read_gmsh_4_entities(text, physical);
    } else if (section == "$Periodic") {
      refuse_periodic(text);
    } else if (section == "$PartitionedEntities") {
      text.fail("partitioned Gmsh files are not read; save the mesh in one piece");
    } else {
      std::string const end = "$End" + std::string(section.substr(1));
      std::string_view line;
      do
        if (!text.next_line(line))
          text.fail("the file ends within its section " + in_quotes(section));
      while (line != end);
      continue;
    }
    std::string const end = "$End" + std::string(section.substr(1));
    if (std::string_view const found = text.word(); found != end)
      text.fail(found.empty() ? "the file ends where " + end + " should be"
                              : in_quotes(found) + " stands where " + end + " should be");
  }
  if (!nodes || !elements)
    text.fail(std::string("the file has no section ") + (nodes ? "$Elements" : "$Nodes"));
  return builder.finish();
}

}  // namespace poisson::assembly
