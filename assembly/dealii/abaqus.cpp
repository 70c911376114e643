#include "assembly/dealii/raw.hpp"
#include "assembly/text.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>

namespace poisson::assembly {
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
    quads_ = false;
    for (std::size_t const n : {8, 20, 27})
      for (char const* kind : {"C3D", "DC3D", "AC3D"})
        if (is(kind + std::to_string(n)))
          nodes_ = n;
    if (nodes_ > 0)
      return;
    std::size_t corners_and_middles = 0;
    for (char const* kind : {"S", "M3D", "SFM3D", "CPS", "CPE", "DS"})
      for (std::size_t const n : {8, 9})
        if (is(kind + std::to_string(n)))
          corners_and_middles = n;
    if (corners_and_middles > 0) {
      quads_ = true;
      nodes_ = corners_and_middles;
    } else if (is("S4") || is("SFM3D4") || is("M3D4") || is("R3D4") || is("DS4") || is("CPS4") || is("CPE4")) {
      quads_ = true;
      nodes_ = 4;
    } else if (is("MASS") || type.starts_with("T") || type.starts_with("B") || type.starts_with("SPRING") ||
               type.starts_with("DASHPOT") || type.starts_with("CONN") || type.starts_with("RB")) {
      dimension_ = 1;  // says nothing about a volume mesh
    } else if (type.starts_with("S") || type.starts_with("M3D") || type.starts_with("R3D") || type.starts_with("CP")) {
      dimension_ = 2;
    }
  }

  /// What advice goes by.
  [[nodiscard]] std::string shape_of_type() const {
    auto const nodes = trailing_number(type_.substr(0, type_.find_last_of("0123456789") + 1));
    return dimension_ == 2             ? ""
           : nodes == 4 || nodes == 10 ? " (tetrahedron)"
           : nodes == 6 || nodes == 15 ? " (wedge)"
           : nodes == 5 || nodes == 13 ? " (pyramid)"
                                       : "";
  }

  void element(std::string_view line) {
    if (nodes_ == 0) {
      if (dimension_ >= 2)
        builder_.add_unsupported(type_ + shape_of_type(), dimension_);
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
    if (!quads_) {
      std::array<std::int64_t, 8> numbers{};
      std::copy_n(pending_.begin() + 1, 8, numbers.begin());
      if (!cell_of_number_.emplace(pending_[0], cells_.size()).second)
        text_.fail("element " + std::to_string(pending_[0]) + " is defined twice");
      if (nodes_ == 8)
        builder_.add_hexahedron(numbers, 0);
      else
        builder_.add_hexahedron(std::span(pending_).subspan(1), nodes_ == 20 ? vtk_hexahedron_20() : abaqus_hexahedron_27(), 0);
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
    for (auto const& [name, id] : materials)
      mesh.material_names[id] = name;
    for (auto const& [name, id] : boundaries)
      mesh.boundary_names[id] = name;
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
  bool quads_ = false;  ///< the elements are faces
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

}  // namespace poisson::assembly
