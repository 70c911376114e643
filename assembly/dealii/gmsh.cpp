#include "assembly/dealii/raw.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

namespace poisson::assembly {
namespace {

struct GmshType {
  int number, dimension;
  std::string_view name;

  /// The number that its name begins with.
  [[nodiscard]] std::int64_t nodes() const { return number_from(name); }
  [[nodiscard]] int order() const {
    auto const at = name.find("order ");
    return at == std::string_view::npos ? 1 : number_from(name.substr(at + 6));
  }
  [[nodiscard]] bool is_quad() const { return name.find("quadrilateral") != std::string_view::npos; }
  /// True for hexahedra of complete polynomials, and for the one of order 2 that has nodes on corners and edges only.
  [[nodiscard]] bool is_hexahedron() const {
    std::int64_t const n = order() + 1;
    return name.find("hexahedron") != std::string_view::npos && (nodes() == n * n * n || nodes() == 20);
  }

private:
  static int number_from(std::string_view text) {
    int number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
  }
};
constexpr std::array<GmshType, 74> gmsh_types{{
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
    {42, 2, "28-node triangle, order 6"},
    {43, 2, "36-node triangle, order 7"},
    {44, 2, "45-node triangle, order 8"},
    {45, 2, "55-node triangle, order 9"},
    {46, 2, "66-node triangle, order 10"},
    {47, 2, "49-node quadrilateral, order 6"},
    {48, 2, "64-node quadrilateral, order 7"},
    {49, 2, "81-node quadrilateral, order 8"},
    {50, 2, "100-node quadrilateral, order 9"},
    {51, 2, "121-node quadrilateral, order 10"},
    {52, 2, "18-node triangle, order 6"},
    {53, 2, "21-node triangle, order 7"},
    {54, 2, "24-node triangle, order 8"},
    {55, 2, "27-node triangle, order 9"},
    {56, 2, "30-node triangle, order 10"},
    {57, 2, "24-node quadrilateral, order 6"},
    {58, 2, "28-node quadrilateral, order 7"},
    {59, 2, "32-node quadrilateral, order 8"},
    {60, 2, "36-node quadrilateral, order 9"},
    {61, 2, "40-node quadrilateral, order 10"},
    {62, 1, "7-node line, order 6"},
    {63, 1, "8-node line, order 7"},
    {64, 1, "9-node line, order 8"},
    {65, 1, "10-node line, order 9"},
    {66, 1, "11-node line, order 10"},
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

/// Reader of all versions, each as text or (from version 2 on) binary. Numbers are of three kinds: "int" of 4 bytes, "size_t" of 8
/// and double; as text there is no difference.
class GmshReader {
public:
  explicit GmshReader(MeshText& text) : text_(text), builder_(text) {}

  RawMesh read() {
    if (text_.peek_word() == "$NOD")
      version_ = 10;
    else
      read_format();
    bool nodes = false, elements = false;
    for (std::string_view section = text_.word(); !section.empty(); section = text_.word()) {
      if (section.front() != '$')
        text_.fail(in_quotes(section) + " stands where a section ($Nodes, $Elements, ...) should begin");
      std::string const end = (version_ == 10 ? "$END" : "$End") + std::string(section.substr(1));
      if (section == "$Nodes" || section == "$NOD" || (section == "$ParametricNodes" && version_ == 22)) {
        is_4() ? read_nodes_4() : read_nodes_2(section == "$ParametricNodes");
        nodes = true;
      } else if (section == "$Elements" || section == "$ELM") {
        if (!nodes)
          text_.fail("$Elements comes before $Nodes");
        is_4() ? read_elements_4() : version_ == 10 ? read_elements_1() : read_elements_2();
        elements = true;
      } else if (section == "$PhysicalNames") {
        read_names();
      } else if (section == "$Entities" && is_4()) {
        read_entities();
      } else if (section == "$Periodic") {
        read_periodic();
      } else if (section == "$PartitionedEntities") {
        text_.fail("partitioned Gmsh files are not read; save the mesh in one piece");
      } else if (!text_.go_to(end)) {
        text_.fail("the file ends within its section " + in_quotes(section));
      }
      if (std::string_view const found = text_.word(); found != end)
        text_.fail(found.empty() ? "the file ends where " + end + " should be"
                                 : in_quotes(found) + " stands where " + end + " should be");
    }
    if (!nodes || !elements)
      text_.fail(std::string("the file has no section ") + (nodes ? "$Elements" : "$Nodes"));
    return builder_.finish();
  }

private:
  [[nodiscard]] bool is_4() const { return version_ >= 40; }

  void read_format() {
    if (text_.word() != "$MeshFormat")
      text_.fail("this is not a Gmsh file: it begins neither with $MeshFormat nor with $NOD, as version 1 does");
    std::string_view const version = text_.word();
    version_ = version == "2" || version == "2.0" || version == "2.1" || version == "2.2" ? 22
               : version == "4" || version == "4.0"                                       ? 40
               : version == "4.1"                                                         ? 41
                                                                                          : 0;
    if (version_ == 0)
      text_.fail("Gmsh version " + in_quotes(version) + " is not read; save the mesh as version 4.1 or 2.2");
    std::int64_t const type = text_.integer("the file type"), size = text_.integer("the size of a number");
    if (type != 0 && type != 1)
      text_.fail("the file type is " + std::to_string(type) + "; it must be 0 (text) or 1 (binary)");
    if (type == 1) {
      if (size != 8)
        text_.fail("the size of a number is " + std::to_string(size) + " bytes; it must be 8");
      text_.end_of_line();
      binary_ = true;
      std::string_view const one = text_.bytes(1, 4, "the number 1");
      swapped_ = one == std::string_view("\0\0\0\1", 4);
      if (!swapped_ && one != std::string_view("\1\0\0\0", 4))
        text_.fail("the number 1 that tells the order of bytes is missing");
    }
    if (text_.word() != "$EndMeshFormat")
      text_.fail("$EndMeshFormat is missing");
  }

  template <class T>
  T binary(char const* what) {
    std::array<char, sizeof(T)> bytes{};
    std::memcpy(bytes.data(), text_.bytes(1, sizeof(T), what).data(), sizeof(T));
    if (swapped_ != (std::endian::native == std::endian::big))
      std::reverse(bytes.begin(), bytes.end());
    return std::bit_cast<T>(bytes);
  }
  std::int64_t integer(char const* what) { return binary_ ? binary<std::int32_t>(what) : text_.integer(what); }
  std::int64_t wide(char const* what) {
    std::int64_t const value = binary_ ? binary<std::int64_t>(what) : text_.integer(what);
    if (std::abs(value) > std::int64_t{1} << 60)
      text_.fail(std::string(what) + " is " + std::to_string(value));
    return value;
  }
  std::int64_t count(char const* what) {
    std::int64_t const value = wide(what);
    if (value < 0)
      text_.fail(std::string(what) + " is " + std::to_string(value));
    return value;
  }
  /// The tag of a node or an element, which version 4.1 made wide.
  std::int64_t tag(char const* what) { return version_ == 41 ? wide(what) : integer(what); }
  double real(char const* what) { return binary_ ? text_.finite(binary<double>(what), what) : text_.real(what); }
  /// What stands at the head of a section of version 2, as text in any case.
  std::int64_t count_as_text(char const* what) {
    std::int64_t const value = text_.count(what);
    if (binary_)
      text_.end_of_line();
    return value;
  }
  /// What begins a section of version 4.
  void begin_section() {
    if (binary_)
      text_.end_of_line();
  }

  void read_names() {
    std::int64_t const names = text_.count("the number of physical names");
    for (std::int64_t i = 0; i < names; ++i) {
      std::int64_t const dimension = text_.integer("the dimension of a physical name"),
                         tag = text_.integer("the tag of a physical name");
      std::string_view line;
      text_.next_line(line);
      if (line.size() < 2 || line.front() != '"' || line.back() != '"')
        text_.fail(in_quotes(line) + " stands where a physical name in quotes should be");
      std::string const name(line.substr(1, line.size() - 2));
      if (dimension == 2)
        builder_.mesh().boundary_names[tag] = name;
      else if (dimension == 3)
        builder_.mesh().material_names[tag] = name;
    }
  }

  /// Parametric ones tell behind their coordinates the dimension and the tag of their entity, and of a curve or a surface where on
  /// it they are.
  void read_nodes_2(bool parametric) {
    std::int64_t const nodes = count_as_text("the number of nodes");
    for (std::int64_t i = 0; i < nodes; ++i) {
      read_node(integer("a node number"), 0);
      if (!parametric)
        continue;
      std::int64_t const dimension = integer("the dimension of a node's entity");
      if (dimension < 0 || dimension > 3)
        text_.fail("the dimension of a node's entity is " + std::to_string(dimension) + "; it must be 0 to 3");
      integer("the tag of a node's entity");
      for (std::int64_t k = 0; k < (dimension == 3 ? 0 : dimension); ++k)
        real("a parametric coordinate");
    }
  }

  void read_node(std::int64_t number, std::int64_t parameters) {
    double const x = real("x of a node"), y = real("y of a node"), z = real("z of a node");
    for (std::int64_t k = 0; k < parameters; ++k)
      real("a parametric coordinate");
    builder_.add_vertex(number, x, y, z);
  }

  void read_nodes_4() {
    begin_section();
    std::int64_t const blocks = count("the number of node blocks");
    for (int k = 0; k < (version_ == 41 ? 3 : 1); ++k)
      wide("the number or the range of the nodes");
    for (std::int64_t b = 0; b < blocks; ++b) {
      auto const [dimension, entity] = entity_of_block();
      std::int64_t const parametric = integer("the flag for parametric coordinates");
      std::int64_t const nodes = count("the number of nodes of a block");
      if (dimension < 0 || dimension > 3 || (parametric != 0 && parametric != 1))
        text_.fail("this is not the head of a block of nodes");
      std::int64_t const parameters = parametric == 1 ? dimension : 0;
      std::vector<std::int64_t> numbers;
      if (version_ == 41)
        for (std::int64_t i = 0; i < nodes; ++i)
          numbers.push_back(tag("a node number"));
      for (std::int64_t i = 0; i < nodes; ++i)
        read_node(version_ == 41 ? numbers[static_cast<std::size_t>(i)] : tag("a node number"), parameters);
    }
  }

  /// (dimension, tag); version 4.0 has them the other way round.
  std::pair<std::int64_t, std::int64_t> entity_of_block() {
    std::int64_t const first = integer("the dimension or the tag of an entity"), second = integer("the tag of an entity");
    return version_ == 41 ? std::pair(first, second) : std::pair(second, first);
  }

  void read_entities() {
    begin_section();
    std::array<std::int64_t, 4> entities{};
    for (auto& n : entities)
      n = count("the number of entities");
    for (std::int64_t dimension = 0; dimension < 4; ++dimension)
      for (std::int64_t i = 0; i < entities[static_cast<std::size_t>(dimension)]; ++i) {
        std::int64_t const entity = integer("the tag of an entity");
        for (int k = 0; k < (dimension == 0 && version_ == 41 ? 3 : 6); ++k)
          real("a coordinate of an entity");
        std::int64_t const groups = count("the number of physical groups");
        for (std::int64_t k = 0; k < groups; ++k)
          add_to_group({dimension, entity}, integer("the tag of a physical group"));
        if (dimension > 0) {
          std::int64_t const bounds = count("the number of bounding entities");
          for (std::int64_t k = 0; k < bounds; ++k)
            integer("the tag of a bounding entity");
        }
      }
  }

  void read_elements_1() {
    std::int64_t const elements = text_.count("the number of elements");
    std::string_view rest;
    text_.next_line(rest);
    for (std::int64_t i = 0; i < elements; ++i) {
      auto const words = element_line();
      if (words.size() < 5)
        text_.fail("an element needs a number, a type, two tags, its number of nodes, and these");
      add(type_of(text_.to_integer(words[1], "the type of an element")), {text_.to_integer(words[2], "the physical tag")}, words,
          5);
    }
  }

  void read_elements_2() {
    std::int64_t const elements = count_as_text("the number of elements");
    if (binary_) {
      for (std::int64_t read = 0; read < elements;) {
        GmshType const type = type_of(integer("the type of the elements"));
        std::int64_t const block = integer("the number of elements of a block"), tags = integer("the number of tags");
        if (block < 1 || block > elements - read || tags < 0 || tags > 1000000)
          text_.fail("this is not the head of a block of elements");
        for (std::int64_t i = 0; i < block; ++i, ++read) {
          integer("the number of an element");
          std::int64_t physical = 0;
          for (std::int64_t k = 0; k < tags; ++k) {
            std::int64_t const found = integer("a tag");
            physical = k == 0 ? found : physical;
            if (k == 1 && type.is_quad())
              add_to_group({2, found}, physical);
          }
          add_binary(type, {physical});
        }
      }
      return;
    }
    std::string_view rest;
    text_.next_line(rest);
    for (std::int64_t i = 0; i < elements; ++i) {
      auto const words = element_line();
      if (words.size() < 4)
        text_.fail("an element needs a number, a type, tags and nodes");
      GmshType const type = type_of(text_.to_integer(words[1], "the type of an element"));
      std::int64_t const tags = text_.to_integer(words[2], "the number of tags");
      if (tags < 0 || tags > static_cast<std::int64_t>(words.size()) - 3)
        text_.fail("the number of tags is " + std::to_string(tags) + ", which this line does not have");
      std::int64_t const physical = tags > 0 ? text_.to_integer(words[3], "the physical tag") : 0;
      if (tags > 1 && type.is_quad())
        add_to_group({2, text_.to_integer(words[4], "the tag of the entity")}, physical);
      add(type, {physical}, words, 3 + static_cast<std::size_t>(tags));
    }
  }

  void read_elements_4() {
    begin_section();
    std::int64_t const blocks = count("the number of element blocks");
    for (int k = 0; k < (version_ == 41 ? 3 : 1); ++k)
      wide("the number or the range of the elements");
    for (std::int64_t b = 0; b < blocks; ++b) {
      auto const entity = entity_of_block();
      GmshType const type = type_of(integer("the type of the elements"));
      std::int64_t const elements = count("the number of elements of a block");
      auto const group = physical_.find(entity);
      std::vector<std::int64_t> const physical = group == physical_.end() ? std::vector<std::int64_t>{0} : group->second;
      if (!binary_) {
        std::string_view rest;
        text_.next_line(rest);
      }
      for (std::int64_t i = 0; i < elements; ++i)
        if (binary_) {
          tag("the number of an element");
          add_binary(type, physical);
        } else {
          add(type, physical, element_line(), 1);
        }
    }
  }

  std::vector<std::string_view> element_line() {
    std::string_view line;
    do
      if (!text_.next_line(line))
        text_.fail("the file ends within its list of elements");
    while (line.empty());
    if (line.front() == '$')
      text_.fail("the list of elements ends before all elements that it announces");
    return words_of(line);
  }

  /// Returns the type's row in the table; one without a name for a type that is not in it.
  GmshType type_of(std::int64_t number) {
    auto const known = std::find_if(gmsh_types.begin(), gmsh_types.end(), [&](GmshType const& t) { return t.number == number; });
    if (known != gmsh_types.end())
      return *known;
    if (binary_)
      text_.fail("elements of type " + std::to_string(number) + " are not known here");
    return {static_cast<int>(number), 3, {}};
  }

  /// One element, its nodes the words from `nodes` on.
  void add(GmshType const& type, std::vector<std::int64_t> const& physical, std::vector<std::string_view> const& words,
           std::size_t nodes) {
    if (!type.is_hexahedron() && !type.is_quad()) {
      add_other(type);
      return;
    }
    auto const wanted = static_cast<std::size_t>(type.nodes());
    if (words.size() != nodes + wanted)
      text_.fail("an element of type " + std::to_string(type.number) + " has " + std::to_string(wanted) +
                 " nodes, but this line lists " + std::to_string(words.size() < nodes ? 0 : words.size() - nodes));
    numbers_.clear();
    for (std::size_t v = 0; v < wanted; ++v)
      numbers_.push_back(text_.to_integer(words[nodes + v], "a node number"));
    add_numbers(type, physical);
  }

  void add_binary(GmshType const& type, std::vector<std::int64_t> const& physical) {
    numbers_.clear();
    for (std::int64_t v = 0; v < type.nodes(); ++v)
      numbers_.push_back(tag("a node number"));
    if (type.is_hexahedron() || type.is_quad())
      add_numbers(type, physical);
    else
      add_other(type);
  }

  void add_other(GmshType const& type) {
    if (type.name.empty())
      builder_.add_unsupported(std::to_string(type.number) + " (not known here)", 3);
    else if (type.dimension >= 2)
      builder_.add_unsupported(std::to_string(type.number) + " (" + std::string(type.name) + ")", type.dimension);
    // points and lines say nothing about a volume mesh
  }

  /// The element of the nodes in numbers_, once for each of its groups, as files of version 2 list it. A negative tag means a
  /// reversed orientation of the surface.
  void add_numbers(GmshType const& type, std::vector<std::int64_t> const& physical) {
    if (!type.is_quad() && hexahedron_.places.size() != numbers_.size())
      hexahedron_ = type.nodes() == 20 ? gmsh_hexahedron_20() : gmsh_hexahedron(type.order());
    for (std::int64_t const tag : physical)
      if (type.is_quad())  // its corners come first
        builder_.add_quad({numbers_[0], numbers_[1], numbers_[2], numbers_[3]}, std::abs(tag));
      else
        builder_.add_hexahedron(numbers_, hexahedron_, std::abs(tag));
  }

  void add_to_group(std::pair<std::int64_t, std::int64_t> const& entity, std::int64_t tag) {
    auto& groups = physical_[entity];
    if (std::find(groups.begin(), groups.end(), std::abs(tag)) == groups.end())
      groups.push_back(std::abs(tag));
  }

  /// Pairs of entities, the second one the master: x on the first = M x + t on the second. Then come pairs of nodes, which the mesh
  /// tells as well.
  void read_periodic() {
    std::int64_t const line = text_.line();
    if (is_4())
      begin_section();
    std::int64_t const entities =
        is_4() ? count("the number of periodic entities") : text_.count("the number of periodic entities");
    if (binary_ && version_ != 41 && entities > 0)
      text_.fail("$Periodic is read in text, or in binary files of version 4.1; save the mesh in one of these");
    for (std::int64_t i = 0; i < entities; ++i) {
      std::int64_t const dimension = integer("the dimension of a periodic entity"), slave = integer("the tag of a periodic entity"),
                         master = integer("the tag of the entity that it is joined to");
      std::optional<std::array<double, 12>> const map = read_affine();
      for (std::int64_t nodes = count("the number of periodic nodes"); nodes > 0; --nodes) {
        tag("a periodic node");
        tag("the node that it is joined to");
      }
      if (dimension != 2)
        continue;
      // A group that both belong to, such as all of the surface, does not tell them apart.
      std::vector<std::int64_t> const of_master = groups_of(master), of_slave = groups_of(slave);
      auto const own = [](std::vector<std::int64_t> const& groups, std::vector<std::int64_t> const& others) {
        auto const found = std::find_if(groups.begin(), groups.end(), [&](std::int64_t group) {
          return std::find(others.begin(), others.end(), group) == others.end();
        });
        return static_cast<unsigned>(found == groups.end() ? groups.front() : *found);
      };
      unsigned const first = own(of_master, of_slave), second = own(of_slave, of_master);
      if (first == second)
        text_.fail_at(line, "$Periodic joins the surfaces " + std::to_string(slave) + " and " + std::to_string(master) +
                                ", which are one boundary here (id " + std::to_string(first) +
                                "); give each a physical group of its own, or remove the section $Periodic ... $EndPeriodic");
      builder_.mesh().periodic.push_back({first, second, map});
    }
  }

  /// Reads an affine map of 16 numbers, row by row, and returns its first three rows; nothing where the file has no map.
  std::optional<std::array<double, 12>> read_affine() {
    std::int64_t numbers = 0;
    if (version_ == 41) {
      numbers = count("the number of numbers of a map");
    } else if (text_.peek_word() == "Affine") {
      text_.word();
      numbers = 16;
    }
    if (numbers != 0 && numbers != 16)
      text_.fail("an affine map has 16 numbers, not " + std::to_string(numbers));
    std::array<double, 16> all{};
    for (std::int64_t k = 0; k < numbers; ++k)
      all[static_cast<std::size_t>(k)] = real("a number of an affine map");
    if (numbers == 0)
      return std::nullopt;
    std::array<double, 12> map{};
    std::copy_n(all.begin(), 12, map.begin());
    return map;
  }

  /// The groups of the faces of a surface, at least one.
  [[nodiscard]] std::vector<std::int64_t> groups_of(std::int64_t surface) const {
    auto const found = physical_.find({2, surface});
    return found == physical_.end() ? std::vector<std::int64_t>{0} : found->second;
  }

  MeshText& text_;
  RawMeshBuilder builder_;
  int version_ = 0;  ///< 10, 22, 40 or 41
  bool binary_ = false, swapped_ = false;
  /// (dimension, tag) of an entity -> the tags of its physical groups, without signs
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::int64_t>> physical_;
  std::vector<std::int64_t> numbers_;
  HexahedronNodes hexahedron_;
};

}  // namespace

RawMesh read_gmsh(MeshText& text) {
  return GmshReader(text).read();
}

}  // namespace poisson::assembly
