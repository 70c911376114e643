#include "assembly/mesh/raw.hpp"
#include "assembly/text.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <map>
#include <set>

/// Readers of mesh formats. deal.II's own are not used: in a release build they run off the end of truncated or damaged files, and
/// name no line. The tests compare these with deal.II's on the meshes that both read.
namespace poisson::assembly {
namespace {

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

std::string in_quotes(std::string_view text) {
  return "'" + std::string(text.substr(0, 40)) + (text.size() > 40 ? "..." : "") + "'";
}

std::string upper(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return result;
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (;;) {
    text = trim(text);
    if (text.empty())
      return words;
    std::size_t n = 0;
    while (n < text.size() && !is_blank(text[n]))
      ++n;
    words.push_back(text.substr(0, n));
    text.remove_prefix(n);
  }
}

/// The number at the end of a name such as "Material-2" or "EB1"; -1 without one.
std::int64_t trailing_number(std::string_view name) {
  std::size_t begin = name.size();
  while (begin > 0 && name[begin - 1] >= '0' && name[begin - 1] <= '9')
    --begin;
  std::int64_t value = -1;
  if (begin == name.size() || name.size() - begin > 9)
    return -1;
  std::from_chars(name.data() + begin, name.data() + name.size(), value);
  return value;
}

/// Ids of named groups: the number that a name ends in; for names without one the least ids from 1 that no other name has.
std::map<std::string, std::int64_t> ids_of_names(std::vector<std::string> const& names) {
  std::map<std::string, std::int64_t> ids;
  std::set<std::int64_t> taken;
  for (std::string const& name : names)
    if (std::int64_t const id = trailing_number(name); id >= 0) {
      ids[name] = id;
      taken.insert(id);
    }
  std::int64_t next = 1;
  for (std::string const& name : names)
    if (!ids.contains(name)) {
      while (taken.contains(next))
        ++next;
      ids[name] = next++;
    }
  return ids;
}

}  // namespace

std::string_view MeshText::word() {
  line_taken_ = false;
  for (;;) {
    if (rest_.empty())
      return {};
    char const c = rest_.front();
    if (c == '\n')
      ++line_;
    else if (!is_blank(c))
      break;
    rest_.remove_prefix(1);
  }
  std::size_t n = 0;
  while (n < rest_.size() && rest_[n] != '\n' && !is_blank(rest_[n]))
    ++n;
  std::string_view const result = rest_.substr(0, n);
  rest_.remove_prefix(n);
  return result;
}

std::string_view MeshText::peek_word() {
  std::string_view const rest = rest_;
  std::int64_t const line = line_;
  bool const taken = line_taken_;
  std::string_view const result = word();
  rest_ = rest;
  line_ = line;
  line_taken_ = taken;
  return result;
}

bool MeshText::next_line(std::string_view& text) {
  if (line_taken_) {
    // rest_ stands at the newline that ends the line given last.
    if (rest_.empty())
      return false;
    rest_.remove_prefix(1);
    ++line_;
  }
  if (rest_.empty())
    return false;
  std::size_t const n = std::min(rest_.find('\n'), rest_.size());
  text = trim(rest_.substr(0, n));
  rest_.remove_prefix(n);
  line_taken_ = true;
  return true;
}

std::int64_t MeshText::to_integer(std::string_view word, char const* what) const {
  std::int64_t value = 0;
  std::string_view const digits = word.starts_with('+') ? word.substr(1) : word;
  auto const [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (word.empty())
    fail(std::string("the file ends, or the line does, where ") + what + " should be");
  if (error != std::errc{} || end != digits.data() + digits.size() || std::abs(value) > (std::int64_t{1} << 60))
    fail(in_quotes(word) + " stands where " + what + " (a whole number) should be");
  return value;
}

double MeshText::to_real(std::string_view word, char const* what) const {
  double value = 0;
  std::string fortran;  // "1.5D+00"
  std::string_view digits = word.starts_with('+') ? word.substr(1) : word;
  if (digits.find_first_of("dD") != std::string_view::npos) {
    fortran = digits;
    std::replace_if(
        fortran.begin(), fortran.end(), [](char c) { return c == 'd' || c == 'D'; }, 'e');
    digits = fortran;
  }
  auto const [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (word.empty())
    fail(std::string("the file ends, or the line does, where ") + what + " should be");
  if (end != digits.data() + digits.size() || error == std::errc::invalid_argument)
    fail(in_quotes(word) + " stands where " + what + " (a number) should be");
  // What is too small for double precision is zero; from_chars does not say which side it was.
  if (error == std::errc::result_out_of_range)
    value = digits.find("e-") != std::string_view::npos || digits.find("E-") != std::string_view::npos ? 0. : INFINITY;
  if (!std::isfinite(value) || std::abs(value) > 1e100)
    fail(std::string(what) + " is " + in_quotes(word) + "; it must be finite and below 1e100");
  return value;
}

std::int64_t MeshText::integer(char const* what) {
  return to_integer(word(), what);
}
double MeshText::real(char const* what) {
  return to_real(word(), what);
}

void RawMeshBuilder::add_vertex(std::int64_t number, double x, double y, double z) {
  if (mesh_.vertices.size() >= 2147483647u)
    text_.fail("there are more than 2147483647 nodes");
  if (!vertex_of_number_.emplace(number, static_cast<int>(mesh_.vertices.size())).second)
    text_.fail("node " + std::to_string(number) + " is defined twice");
  mesh_.vertices.emplace_back(x, y, z);
}

int RawMeshBuilder::vertex(std::int64_t number) const {
  auto const found = vertex_of_number_.find(number);
  if (found == vertex_of_number_.end())
    text_.fail("node " + std::to_string(number) + " is used, but not defined");
  return found->second;
}

void RawMeshBuilder::add_hexahedron(std::array<std::int64_t, 8> const& numbers, std::int64_t material) {
  static constexpr std::array<std::size_t, 8> order{0, 1, 3, 2, 4, 5, 7, 6};
  RawMesh::Cell cell;
  for (std::size_t v = 0; v < 8; ++v)
    cell.vertices[v] = vertex(numbers[order[v]]);
  cell.material = material;
  cell.line = text_.line();
  mesh_.cells.push_back(cell);
}

void RawMeshBuilder::add_quad(std::array<std::int64_t, 4> const& numbers, std::int64_t boundary) {
  RawMesh::Quad quad;
  for (std::size_t v = 0; v < 4; ++v)
    quad.vertices[v] = vertex(numbers[v]);
  quad.boundary = boundary;
  quad.line = text_.line();
  mesh_.quads.push_back(quad);
}

void RawMeshBuilder::add_unsupported(std::string const& name, int dimension) {
  auto const known = std::find_if(unsupported_.begin(), unsupported_.end(), [&](Unsupported const& u) { return u.name == name; });
  if (known != unsupported_.end())
    ++known->count;
  else if (unsupported_.size() < 1000)
    unsupported_.push_back({name, dimension, 1, text_.line()});
}

RawMesh RawMeshBuilder::finish() {
  if (!unsupported_.empty()) {
    Unsupported const& worst = *std::max_element(unsupported_.begin(), unsupported_.end(),
                                                 [](auto const& a, auto const& b) { return a.dimension < b.dimension; });
    text_.fail_at(worst.line, "elements of type " + worst.name + " (" + std::to_string(worst.count) +
                                  " of them, the first in this line) cannot be read: only linear hexahedra (8 nodes), with linear "
                                  "quadrilaterals on the boundary, are; export the mesh as all-hexahedral and of first order");
  }
  return std::move(mesh_);
}

// ---------------------------------------------------------------------------------------------------------------------- Gmsh

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

std::int64_t section_count(MeshText& text, char const* what) {
  std::int64_t const count = text.integer(what);
  if (count < 0)
    text.fail(std::string(what) + " is " + std::to_string(count));
  return count;
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
  std::int64_t const count = section_count(text, "the number of elements");
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
    n = section_count(text, "the number of entities");
  for (std::int64_t dimension = 0; dimension < 4; ++dimension)
    for (std::int64_t i = 0; i < count[static_cast<std::size_t>(dimension)]; ++i) {
      std::int64_t const tag = text.integer("the tag of an entity");
      for (int k = 0; k < (dimension == 0 ? 3 : 6); ++k)
        text.real("a coordinate of an entity");
      std::int64_t const groups = section_count(text, "the number of physical groups");
      for (std::int64_t k = 0; k < groups; ++k)
        physical[{dimension, tag}] = text.integer("the tag of a physical group");
      if (groups > 1 && dimension >= 2)
        text.fail("entity " + std::to_string(tag) + " of dimension " + std::to_string(dimension) + " belongs to " +
                  std::to_string(groups) + " physical groups; it can have one id only");
      if (dimension > 0) {
        std::int64_t const bounds = section_count(text, "the number of bounding entities");
        for (std::int64_t k = 0; k < bounds; ++k)
          text.integer("the tag of a bounding entity");
      }
    }
}

void read_gmsh_4_nodes(MeshText& text, RawMeshBuilder& builder) {
  std::int64_t const blocks = section_count(text, "the number of node blocks");
  for (int k = 0; k < 3; ++k)
    text.integer("the number or the range of the nodes");
  for (std::int64_t b = 0; b < blocks; ++b) {
    std::int64_t const dimension = text.integer("the dimension of an entity");
    text.integer("the tag of an entity");
    std::int64_t const parametric = text.integer("the flag for parametric coordinates");
    std::int64_t const count = section_count(text, "the number of nodes of a block");
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
  std::int64_t const blocks = section_count(text, "the number of element blocks");
  for (int k = 0; k < 3; ++k)
    text.integer("the number or the range of the elements");
  for (std::int64_t b = 0; b < blocks; ++b) {
    std::int64_t const dimension = text.integer("the dimension of an entity");
    std::int64_t const tag = text.integer("the tag of an entity");
    std::int64_t const type = text.integer("the type of the elements");
    std::int64_t const count = section_count(text, "the number of elements of a block");
    auto const group = physical.find({dimension, tag});
    std::string_view rest;
    text.next_line(rest);
    for (std::int64_t i = 0; i < count; ++i)
      add_gmsh_element(builder, text, type, group == physical.end() ? 0 : group->second, element_line(text), 1);
  }
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
        std::int64_t const count = section_count(text, "the number of nodes");
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
    } else if (section == "$Entities" && !version_2) {
      read_gmsh_4_entities(text, physical);
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

// -------------------------------------------------------------------------------------------------------------------- Abaqus

namespace {

class AbaqusReader {
public:
  explicit AbaqusReader(MeshText& text) : text_(text), builder_(text) {}

  RawMesh read() {
    std::string_view line;
    while (text_.next_line(line)) {
      if (line.empty() || line.starts_with("**"))
        continue;
      if (line.front() == '*')
        keyword(line);
      else if (data_)
        (this->*data_)(line);
    }
    if (!pending_.empty())
      text_.fail("the file ends within an element");
    return finish();
  }

private:
  using Handler = void (AbaqusReader::*)(std::string_view);

  void keyword(std::string_view line) {
    if (!pending_.empty())
      text_.fail("an element has only " + std::to_string(pending_.size() - 1) + " nodes");
    parameters_.clear();
    auto const parts = split(line, ',');
    std::string const name = upper(parts[0]);
    for (std::size_t i = 1; i < parts.size(); ++i) {
      auto const equal = parts[i].find('=');
      parameters_[upper(trim(parts[i].substr(0, equal)))] =
          equal == std::string_view::npos ? std::string() : upper(trim(parts[i].substr(equal + 1)));
    }
    data_ = nullptr;
    if (name == "*NODE") {
      data_ = &AbaqusReader::node;
    } else if (name == "*ELEMENT") {
      element_type(parameters_["TYPE"]);
      data_ = &AbaqusReader::element;
    } else if (name == "*ELSET") {
      set_ = parameters_["ELSET"];
      if (set_.empty())
        text_.fail("*ELSET needs ELSET=name");
      data_ = parameters_.contains("GENERATE") ? &AbaqusReader::generated_set : &AbaqusReader::set;
    } else if (name == "*SOLID SECTION") {
      sections_.emplace_back(parameters_["ELSET"], parameters_["MATERIAL"]);
    } else if (name == "*SURFACE") {
      surface_ = parameters_["NAME"];
      if (surface_.empty())
        text_.fail("*SURFACE needs NAME=name");
      if (!parameters_.contains("TYPE") || parameters_["TYPE"] == "ELEMENT")
        data_ = &AbaqusReader::surface;
    } else if (name == "*INSTANCE") {
      if (++instances_ > 1)
        text_.fail("a second *INSTANCE: only one part, placed once, is read; write the mesh as a flat file");
      data_ = &AbaqusReader::instance;
    } else if (name == "*INCLUDE") {
      text_.fail("*INCLUDE is not followed; write the mesh into one file");
    }
  }

  void instance(std::string_view line) {
    for (std::string_view const part : split(line, ','))
      if (!part.empty() && text_.to_real(part, "a translation of the instance") != 0)
        text_.fail("an instance that is moved or turned is not read; write the mesh as a flat file");
  }

  void node(std::string_view line) {
    auto const parts = split(line, ',');
    if (parts.size() < 4)
      text_.fail("a node needs a number and three coordinates");
    double const x = text_.to_real(parts[1], "x of a node"), y = text_.to_real(parts[2], "y of a node"),
                 z = text_.to_real(parts[3], "z of a node");
    builder_.add_vertex(text_.to_integer(parts[0], "a node number"), x, y, z);
  }

  void element_type(std::string const& type) {
    auto const is = [&](std::string_view prefix) {
      return type.starts_with(prefix) &&
             (type.size() == prefix.size() || !(type[prefix.size()] >= '0' && type[prefix.size()] <= '9'));
    };
    type_ = type;
    nodes_ = 0;
    dimension_ = 3;
    if (type.empty())
      text_.fail("*ELEMENT needs TYPE=name");
    if (is("C3D8") || is("DC3D8") || is("AC3D8"))
      nodes_ = 8;
    else if (is("S4") || is("SFM3D4") || is("M3D4") || is("R3D4") || is("DS4") || is("CPS4") || is("CPE4"))
      nodes_ = 4;
    else if (is("MASS") || type.starts_with("T") || type.starts_with("B") || type.starts_with("SPRING") ||
             type.starts_with("DASHPOT") || type.starts_with("CONN") || type.starts_with("RB"))
      dimension_ = 1;  // says nothing about a volume mesh
    else if (type.starts_with("S") || type.starts_with("M3D") || type.starts_with("R3D") || type.starts_with("CP"))
      dimension_ = 2;
  }

  void element(std::string_view line) {
    if (nodes_ == 0) {
      if (dimension_ >= 2)
        builder_.add_unsupported(type_, dimension_);
      return;
    }
    // An element may go on in the next line.
    for (std::string_view const part : split(line, ','))
      if (!part.empty())
        pending_.push_back(text_.to_integer(part, "a node number"));
    if (pending_.size() < nodes_ + 1)
      return;
    if (pending_.size() > nodes_ + 1)
      text_.fail("an element of type " + type_ + " has " + std::to_string(nodes_) + " nodes, not " +
                 std::to_string(pending_.size() - 1));
    std::string const& elset = parameters_["ELSET"];
    if (nodes_ == 8) {
      std::array<std::int64_t, 8> numbers{};
      std::copy(pending_.begin() + 1, pending_.end(), numbers.begin());
      if (!cell_of_number_.emplace(pending_[0], cells_.size()).second)
        text_.fail("element " + std::to_string(pending_[0]) + " is defined twice");
      builder_.add_hexahedron(numbers, 0);
      cells_.push_back({numbers, elset});
    } else {
      builder_.add_quad({pending_[1], pending_[2], pending_[3], pending_[4]}, 0);
      quad_sets_.push_back(elset);
    }
    if (!elset.empty())
      sets_[elset].push_back(pending_[0]);
    pending_.clear();
  }

  void set(std::string_view line) {
    for (std::string_view const part : split(line, ',')) {
      if (part.empty())
        continue;
      if ((part[0] >= '0' && part[0] <= '9') || part[0] == '-') {
        sets_[set_].push_back(text_.to_integer(part, "an element number"));
      } else {
        auto const other = sets_.find(upper(part));
        if (other == sets_.end())
          text_.fail("the element set " + in_quotes(part) + " is not defined");
        std::vector<std::int64_t> const members = other->second;
        if (sets_[set_].size() + members.size() > 100000000)
          text_.fail("the element set " + in_quotes(set_) + " grows beyond all bounds");
        sets_[set_].insert(sets_[set_].end(), members.begin(), members.end());
      }
    }
  }

  void generated_set(std::string_view line) {
    auto const parts = split(line, ',');
    if (parts.size() < 2)
      text_.fail("GENERATE needs a first and a last number");
    std::int64_t const first = text_.to_integer(parts[0], "the first number"), last = text_.to_integer(parts[1], "the last number");
    std::int64_t const step = parts.size() > 2 && !parts[2].empty() ? text_.to_integer(parts[2], "the step") : 1;
    if (step < 1 || last < first || (last - first) / step > 100000000)
      text_.fail("the range " + in_quotes(line) + " is not an ascending one of sensible length");
    for (std::int64_t i = first; i <= last; i += step)
      sets_[set_].push_back(i);
  }

  void surface(std::string_view line) {
    auto const parts = split(line, ',');
    if (parts.size() < 2 || parts[1].empty())
      return;  // a whole set of shells: their own *ELEMENT has them already
    std::string const side = upper(parts[1]);
    if (side.size() != 2 || side[0] != 'S' || side[1] < '1' || side[1] > '6')
      text_.fail("the side " + in_quotes(parts[1]) + " is not one of S1 ... S6");
    static constexpr std::array<std::array<std::size_t, 4>, 6> sides{
        {{0, 1, 2, 3}, {4, 7, 6, 5}, {0, 4, 5, 1}, {1, 5, 6, 2}, {2, 6, 7, 3}, {3, 7, 4, 0}}};
    auto const& corners = sides[static_cast<std::size_t>(side[1] - '1')];
    std::vector<std::int64_t> one;
    std::vector<std::int64_t> const* elements = &one;
    if (auto const found = sets_.find(upper(parts[0])); found != sets_.end())
      elements = &found->second;
    else
      one.push_back(text_.to_integer(parts[0], "an element number or the name of an element set that is defined above"));
    for (std::int64_t const number : *elements) {
      auto const cell = cell_of_number_.find(number);
      if (cell == cell_of_number_.end())
        text_.fail("element " + std::to_string(number) + " of surface " + in_quotes(surface_) +
                   " is not defined, or is no hexahedron");
      auto const& nodes = cells_[cell->second].nodes;
      builder_.add_quad({nodes[corners[0]], nodes[corners[1]], nodes[corners[2]], nodes[corners[3]]}, 0);
      quad_sets_.push_back(surface_);
    }
  }

  RawMesh finish() {
    // A cell's material: of its section when the material's name has a number, else the set that its *ELEMENT names.
    std::vector<std::string> names;
    std::vector<std::string> name_of_cell(cells_.size());
    for (std::size_t c = 0; c < cells_.size(); ++c)
      name_of_cell[c] = cells_[c].elset;
    for (auto const& [elset, material] : sections_)
      if (trailing_number(material) >= 0)
        if (auto const set = sets_.find(elset); set != sets_.end())
          for (std::int64_t const number : set->second)
            if (auto const cell = cell_of_number_.find(number); cell != cell_of_number_.end())
              name_of_cell[cell->second] = material;
    for (std::string const& name : name_of_cell)
      if (!name.empty() && (names.empty() || names.back() != name))
        names.push_back(name);
    auto const materials = ids_of_names(names);
    names.clear();
    for (std::string const& name : quad_sets_)
      if (!name.empty() && (names.empty() || names.back() != name))
        names.push_back(name);
    auto const boundaries = ids_of_names(names);
    RawMesh mesh = builder_.finish();
    for (std::size_t c = 0; c < cells_.size(); ++c)
      mesh.cells[c].material = name_of_cell[c].empty() ? 0 : materials.at(name_of_cell[c]);
    for (std::size_t q = 0; q < quad_sets_.size(); ++q)
      mesh.quads[q].boundary = quad_sets_[q].empty() ? 0 : boundaries.at(quad_sets_[q]);
    return mesh;
  }

  struct Cell {
    std::array<std::int64_t, 8> nodes{};
    std::string elset;
  };
  MeshText& text_;
  RawMeshBuilder builder_;
  Handler data_ = nullptr;
  std::map<std::string, std::string> parameters_;
  std::string type_, set_, surface_;
  std::size_t nodes_ = 0;
  int dimension_ = 0;
  int instances_ = 0;
  std::vector<std::int64_t> pending_;
  std::vector<Cell> cells_;
  std::unordered_map<std::int64_t, std::size_t> cell_of_number_;
  std::vector<std::string> quad_sets_;
  std::map<std::string, std::vector<std::int64_t>> sets_;
  std::vector<std::pair<std::string, std::string>> sections_;
};

}  // namespace

RawMesh read_abaqus(MeshText& text) {
  return AbaqusReader(text).read();
}

// ----------------------------------------------------------------------------------------------------------------------- UCD

RawMesh read_ucd(MeshText& text) {
  RawMeshBuilder builder(text);
  std::string_view line;
  auto const next = [&](char const* what) {
    do
      if (!text.next_line(line))
        text.fail(std::string("the file ends where ") + what + " should be");
    while (line.empty() || line.front() == '#');
    return words_of(line);
  };
  auto const head = next("the numbers of nodes and cells");
  if (head.size() < 2)
    text.fail("this is neither an Abaqus file (it does not begin with '*') nor a UCD file (it has no numbers of nodes and cells)");
  std::int64_t const nodes = text.to_integer(head[0], "the number of nodes");
  std::int64_t const cells = text.to_integer(head[1], "the number of cells");
  if (nodes < 0 || cells < 0)
    text.fail("the numbers of nodes and cells are negative");
  for (std::int64_t i = 0; i < nodes; ++i) {
    auto const words = next("a node");
    if (words.size() < 4)
      text.fail("a node needs a number and three coordinates");
    double const x = text.to_real(words[1], "x of a node"), y = text.to_real(words[2], "y of a node"),
                 z = text.to_real(words[3], "z of a node");
    builder.add_vertex(text.to_integer(words[0], "a node number"), x, y, z);
  }
  for (std::int64_t i = 0; i < cells; ++i) {
    auto const words = next("a cell");
    if (words.size() < 3)
      text.fail("a cell needs a number, a material, a type and nodes");
    std::size_t const wanted = words[2] == "hex" ? 8 : words[2] == "quad" ? 4 : 0;
    if (wanted == 0) {
      if (words[2] == "tri")
        builder.add_unsupported("tri", 2);
      else if (words[2] != "line" && words[2] != "pt")
        builder.add_unsupported(std::string(words[2].substr(0, 20)), 3);
      continue;
    }
    std::int64_t const material = text.to_integer(words[1], "the material");
    if (words.size() != 3 + wanted)
      text.fail("a cell of type " + std::string(words[2]) + " has " + std::to_string(wanted) + " nodes, not " +
                std::to_string(words.size() - 3));
    std::array<std::int64_t, 8> numbers{};
    for (std::size_t v = 0; v < wanted; ++v)
      numbers[v] = text.to_integer(words[3 + v], "a node number");
    if (wanted == 8)
      builder.add_hexahedron(numbers, material);
    else
      builder.add_quad({numbers[0], numbers[1], numbers[2], numbers[3]}, material);
  }
  return builder.finish();
}

// ----------------------------------------------------------------------------------------------------------------------- VTK

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
      std::int64_t const count = section_count(text, "the number of points");
      text.word();  // the type of the numbers
      for (std::int64_t i = 0; i < count; ++i) {
        double const x = text.real("x of a point"), y = text.real("y of a point"), z = text.real("z of a point");
        points.push_back({x, y, z});
      }
    } else if (key == "CELLS") {
      std::int64_t const count = section_count(text, "the number of cells");
      std::int64_t const size = section_count(text, "the size of the cell list");
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
      if (section_count(text, "the number of cell types") != static_cast<std::int64_t>(cells.size()))
        text.fail("the number of cell types differs from the number of cells");
      for (Cell& cell : cells)
        cell.type = text.integer("the type of a cell");
      types = true;
    } else if (key == "CELL_DATA") {
      cells_in_data = section_count(text, "the number of cells");
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

// ----------------------------------------------------------------------------------------------------------------------- UNV

RawMesh read_unv(MeshText& text) {
  RawMeshBuilder builder(text);
  std::string_view line;
  auto const next = [&](char const* what) {
    do
      if (!text.next_line(line))
        text.fail(std::string("the file ends where ") + what + " should be");
    while (line.empty());
    return words_of(line);
  };
  std::unordered_map<std::int64_t, std::pair<bool, std::size_t>> element_of_number;  // (is a cell, index)
  bool nodes = false, elements = false;
  while (text.next_line(line)) {
    if (line.empty())
      continue;
    if (line != "-1")
      text.fail(in_quotes(line) + " stands where a dataset should begin with -1; this is not a UNV file");
    auto const head = next("the number of a dataset");
    if (head.size() != 1)
      text.fail("a dataset begins with its number alone in a line");
    std::int64_t const dataset = text.to_integer(head[0], "the number of a dataset");
    for (;;) {
      auto words = next("the -1 at the end of a dataset");
      if (words.size() == 1 && words[0] == "-1")
        break;
      if (dataset == 2411) {
        nodes = true;
        std::int64_t const number = text.to_integer(words[0], "a node number");
        words = next("the coordinates of a node");
        if (words.size() < 3)
          text.fail("a node needs three coordinates");
        double const x = text.to_real(words[0], "x of a node"), y = text.to_real(words[1], "y of a node"),
                     z = text.to_real(words[2], "z of a node");
        builder.add_vertex(number, x, y, z);
      } else if (dataset == 2412) {
        elements = true;
        if (words.size() < 6)
          text.fail("an element needs six numbers in its first line");
        std::int64_t const number = text.to_integer(words[0], "an element number");
        std::int64_t const type = text.to_integer(words[1], "the type of an element");
        std::int64_t const count = text.to_integer(words[5], "the number of nodes");
        bool const beam = type >= 11 && type <= 24;
        if (count < 1 || count > 1000)
          text.fail("an element cannot have " + std::to_string(count) + " nodes");
        if (beam)
          next("the orientation of a beam");
        std::vector<std::int64_t> numbers;
        while (static_cast<std::int64_t>(numbers.size()) < count)
          for (std::string_view const word : next("the nodes of an element"))
            numbers.push_back(text.to_integer(word, "a node number"));
        if (static_cast<std::int64_t>(numbers.size()) != count)
          text.fail("an element has more nodes than it announces");
        bool const hexahedron = type == 115, quad = type == 44 || type == 94 || type == 64 || type == 54;
        if ((hexahedron && count != 8) || (quad && count != 4))
          text.fail("an element of type " + std::to_string(type) + " cannot have " + std::to_string(count) + " nodes");
        if (hexahedron) {
          std::array<std::int64_t, 8> corners{};
          std::copy(numbers.begin(), numbers.end(), corners.begin());
          builder.add_hexahedron(corners, 0);
          element_of_number[number] = {true, builder.mesh().cells.size() - 1};
        } else if (quad) {
          builder.add_quad({numbers[0], numbers[1], numbers[2], numbers[3]}, 0);
          element_of_number[number] = {false, builder.mesh().quads.size() - 1};
        } else if (!beam && type != 161) {
          char const* const name = type == 111   ? " (tetrahedron)"
                                   : type == 112 ? " (wedge)"
                                   : type == 116 ? " (20-node hexahedron, order 2)"
                                   : type == 118 ? " (10-node tetrahedron, order 2)"
                                                 : "";
          builder.add_unsupported(std::to_string(type) + name, type < 100 ? 2 : 3);
        }
      } else if (dataset == 2467 || dataset == 2477 || dataset == 2452 || dataset == 2435) {
        // A group: eight numbers, its name, then (kind 8: element, number, 0, 0) for each member. Its id is the number at the end
        // of its name, or else its own.
        if (words.size() < 8)
          text.fail("a group needs eight numbers in its first line");
        std::int64_t id = text.to_integer(words[0], "the number of a group");
        std::int64_t const members = text.to_integer(words[7], "the number of members of a group");
        next("the name of a group");
        if (std::int64_t const number = trailing_number(line); number >= 0)
          id = number;
        for (std::int64_t read = 0; read < members;) {
          words = next("the members of a group");
          if (words.size() % 4 != 0)
            text.fail("the members of a group come as four numbers each");
          for (std::size_t k = 0; k + 3 < words.size(); k += 4, ++read) {
            if (text.to_integer(words[k], "the kind of a member") != 8)
              continue;
            auto const found = element_of_number.find(text.to_integer(words[k + 1], "an element number"));
            if (found == element_of_number.end())
              continue;  // a line or a point
            if (found->second.first)
              builder.mesh().cells[found->second.second].material = id;
            else
              builder.mesh().quads[found->second.second].boundary = id;
          }
        }
      }
    }
  }
  if (!nodes || !elements)
    text.fail(std::string("the file has no dataset ") + (nodes ? "2412 (elements)" : "2411 (nodes)"));
  return builder.finish();
}

}  // namespace poisson::assembly
