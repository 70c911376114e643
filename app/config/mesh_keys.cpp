#include "app/config/key_sections.hpp"
#include "app/config/value_types.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace poisson::app::schema {
namespace {

/// Arguments of a mesh generator, kept in deal.II's notation: arguments apart by ':', elements by ',' and lists of lists by ';'.
struct GeneratorArguments {
  [[nodiscard]] std::string allowed() const {
    return "list of the arguments in order, e.g. [[0, 0, 0], 0.5, 1.0]; or text in deal.II's notation, \"0, 0, 0 : 0.5 : 1.0\"";
  }
  struct Part {
    std::string text;
    std::size_t rank = 0;
  };
  Part convert(YamlNode const& node, std::string const& path) const {
    if (node.kind == YamlNode::Kind::scalar)
      return {node.text, 0};
    if (node.kind != YamlNode::Kind::list)
      reject_value(node, path, allowed());
    constexpr std::array<std::string_view, 4> separators{", ", " ; ", " | ", " % "};
    std::vector<std::string> parts;
    std::size_t rank = 0;
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      Part part = convert(node.items[i], path + "[" + std::to_string(i) + "]");
      rank = std::max(rank, part.rank);
      parts.push_back(std::move(part.text));
    }
    if (rank >= separators.size())
      reject(node.origin, path, "lists nested deeper than any generator takes; allowed: " + allowed());
    return {join(parts, separators[rank]), rank + 1};
  }
  void read(YamlNode const& node, std::string const& path, std::string& out) const {
    if (node.kind == YamlNode::Kind::list) {
      std::vector<std::string> parts;
      for (std::size_t i = 0; i < node.items.size(); ++i)
        parts.push_back(convert(node.items[i], path + "[" + std::to_string(i) + "]").text);
      out = join(parts, " : ");
    } else
      out = convert(node, path).text;
  }
  [[nodiscard]] std::string write(std::string const& value) const { return quoted_text(value); }
  [[nodiscard]] Json json_schema() const { return {{"type", {"array", "string", "number", "boolean"}}}; }
};

/// Coordinates of the vertices of a box: a map from x, y and z to lists; origin, extent and cells of these directions follow.
struct BoxCoordinates {
  static constexpr std::string_view names = "xyz";
  static constexpr char const* list = "list of two or more increasing numbers, e.g. [0, 0.1, 0.5, 1]";
  [[nodiscard]] std::string allowed() const { return std::string("a map from x, y or z, each: ") + list; }
  void read(YamlNode const& node, std::string const& path, assembly::MeshSpec& out) const {
    if (node.kind != YamlNode::Kind::map || node.items.empty())
      reject_value(node, path, allowed());
    for (std::size_t i = 0; i < node.keys.size(); ++i) {
      std::string const &name = node.keys[i].name, of_key = path + "." + shorten(name);
      if (name.size() != 1 || names.find(name[0]) == std::string_view::npos)
        reject(node.keys[i].origin, of_key, "is no direction; allowed: x, y and z");
      YamlNode const& item = node.items[i];
      if (item.kind == YamlNode::Kind::null)
        continue;
      if (item.kind != YamlNode::Kind::list || item.items.size() < 2)
        reject_value(item, of_key, list);
      std::vector<double> x;
      for (std::size_t k = 0; k < item.items.size(); ++k) {
        std::string const of_item = of_key + "[" + std::to_string(k) + "]";
        double value = 0;
        Number{}.read(item.items[k], of_item, value);
        if (!x.empty() && !(value > x.back()))
          reject(item.items[k].origin, of_item,
                 "found " + found(item.items[k]) + ", which is not larger than " + Number{}.write(x.back()) +
                     " before it; coordinates increase");
        x.push_back(value);
      }
      out.coordinates[names.find(name[0])] = std::move(x);
    }
  }
  [[nodiscard]] std::string write(assembly::MeshSpec const& mesh) const {
    std::vector<std::string> entries;
    for (std::size_t d = 0; d < 3; ++d) {
      std::vector<std::string> numbers;
      for (double const x : mesh.coordinates[d])
        numbers.push_back(Number{}.write(x));
      if (!numbers.empty())
        entries.push_back(std::string(1, names[d]) + ": [" + join(numbers) + "]");
    }
    return entries.empty() ? "null" : "{" + join(entries) + "}";
  }
  [[nodiscard]] Json json_schema() const {
    Json const numbers{{"type", {"array", "null"}}, {"items", Number{}.json_schema()}, {"minItems", 2}};
    return {{"type", "object"}, {"additionalProperties", numbers}, {"minProperties", 1}};
  }
};

Keys<assembly::NamedPlace> const& place_keys() {
  static Keys<assembly::NamedPlace> const keys{
      key<assembly::NamedPlace>(
          "name", PlainName{}, [](auto& p) -> auto& { return p.name; }, "", "For problem.boundary[].names, or problem.coefficient.")
          .must_be_given("a place has a name"),
      key<assembly::NamedPlace>(
          "where", ExpressionText{}, [](auto& p) -> auto& { return p.where; }, "",
          "Selects what has its centre where the expression is not zero.")
          .must_be_given("say where, such as \"z > 0.99\""),
  };
  return keys;
}

/// Those of regions.
Keys<assembly::NamedPlace> const& region_keys() {
  static Keys<assembly::NamedPlace> const keys = [] {
    Keys<assembly::NamedPlace> all = place_keys();
    all.push_back(key<assembly::NamedPlace>(
        "void", Boolean{}, [](auto& p) -> auto& { return p.is_void; }, "",
        "The cells are taken out of the unrefined mesh. Their surface is a boundary of the region's name, insulated unless a "
        "condition "
        "says more."));
    return all;
  }();
  return keys;
}

/// Whether an entry of the list of three at a path is given.
bool is_given(YamlNode const& root, std::string const& path, std::size_t entry) {
  YamlNode const* const node = descend(root, path);
  return node != nullptr && node->kind == YamlNode::Kind::list && entry < node->items.size();
}

/// What is given beside coordinates must agree with them.
void check_coordinates(YamlNode const& root, RunConfig const& config) {
  assembly::MeshSpec const& mesh = config.problem.mesh;
  for (std::size_t d = 0; d < 3; ++d) {
    std::vector<double> const& x = mesh.coordinates[d];
    if (x.empty())
      continue;
    std::string const of = std::string("problem.mesh.coordinates.") + "xyz"[d];
    auto const require = [&](char const* name, double value, double follows, double tolerance) {
      std::string const list = std::string("problem.mesh.") + name, key = list + "[" + std::to_string(d) + "]";
      if (is_given(root, list, d) && !(std::abs(value - follows) <= tolerance))
        reject(locate_path(root, key).origin, key,
               "found " + Number{}.write(value) + ", and " + of + " makes it " + Number{}.write(follows) + "; leave " + name +
                   " out, or let them agree");
    };
    double const length = x.back() - x.front(), tolerance = 1e-12 * std::max({length, std::abs(x.front()), std::abs(x.back())});
    require("origin", mesh.origin[d], x.front(), tolerance);
    require("extent", mesh.extent[d], length, tolerance);
    require("cells", static_cast<double>(mesh.cells[d]), static_cast<double>(x.size()) - 1, 0);
    require("growth", mesh.growth[d], 1, 0);
  }
}

}  // namespace

Keys<RunConfig> keys_of_mesh() {
  auto const generated = [](RunConfig const& c) { return c.problem.mesh.file.empty(); };
  auto const from_file = [](RunConfig const& c) { return !c.problem.mesh.file.empty(); };
  auto const box = [](RunConfig const& c) { return c.problem.mesh.file.empty() && c.problem.mesh.generator == "box"; };
  auto const other_generator = [](RunConfig const& c) { return c.problem.mesh.file.empty() && c.problem.mesh.generator != "box"; };
  return {
      section<RunConfig>("problem.mesh", "Either a generator or a file."),
      key<RunConfig>("problem.mesh.generator", Text{"box, or the name of a deal.II GridGenerator function such as hyper_shell"},
                     POISSON_MEMBER(problem.mesh.generator), "",
                     "Shape that the program builds; box is a brick, of equal or graded cells.")
          .or_null("box, or none with a file")
          .only("without problem.mesh.file; set one of the two to null", generated),
      key<RunConfig>("problem.mesh.arguments", GeneratorArguments{}, POISSON_MEMBER(problem.mesh.arguments), "",
                     "Arguments of that function, without the triangulation.")
          .or_null("its defaults")
          .only("with a generator other than box", other_generator),
      key<RunConfig>("problem.mesh.origin", ThreeOf<Number>{}, POISSON_MEMBER(problem.mesh.origin), "length",
                     "Corner of the box with the smallest x, y, z.")
          .or_null("the default")
          .only("with generator: box", box),
      key<RunConfig>("problem.mesh.extent", ThreeOf<Number>{{0}}, POISSON_MEMBER(problem.mesh.extent), "length",
                     "Edge lengths of the box.")
          .or_null("the default")
          .only("with generator: box", box),
      key<RunConfig>("problem.mesh.cells", ThreeOf<Integer>{{1, 2147483647}}, POISSON_MEMBER(problem.mesh.cells), "",
                     "Cells of the box in x, y, z.")
          .or_null("the default")
          .only("with generator: box", box),
      key<RunConfig>(
          "problem.mesh.growth", ThreeOf<Number>{{0}}, POISSON_MEMBER(problem.mesh.growth), "",
          "Grades the box in x, y, z: every cell is so many times as long as the one before it. 1: equal cells; less than 1: they "
          "shrink. Refinements halve every cell.")
          .or_null("the default")
          .only("with generator: box", box),
      key<RunConfig>(
          "problem.mesh.growth_to", ThreeOf<Choice<assembly::GrowthTo>>{}, POISSON_MEMBER(problem.mesh.growth_to), "",
          "Until where cells grow in x, y, z: to the end of the box, or to its middle, from where on they shrink in the same "
          "way, so that both ends have the same cells.")
          .or_null("the default")
          .only("with generator: box", box),
      key<RunConfig>(
          "problem.mesh.coordinates", BoxCoordinates{}, POISSON_MEMBER(problem.mesh), "length",
          "Where the vertices of the box are in a direction, {z: [0, 0.1, 0.5, 1]}; its origin, extent and cells follow. "
          "Refinements halve every cell.")
          .or_null("origin, extent, cells and growth say it")
          .only("with generator: box", box),
      key<RunConfig>(
          "problem.mesh.file", Text{"path of a mesh file"}, POISSON_MEMBER(problem.mesh.file), "",
          "Mesh file instead of a generator (Gmsh, Abaqus, Exodus, Medit, MFEM, VTK, UCD, UNV; docs/usage/mesh_files.md), "
          "relative to the current directory or to this file.")
          .or_null("use the generator"),
      key<RunConfig>(
          "problem.mesh.join", Boolean{}, POISSON_MEMBER(problem.mesh.join), "",
          "Whether nodes of the file that coincide (within 1e-9 of the smallest edge) are one. false: they stay apart, as the "
          "two sides of a crack.")
          .or_null("true")
          .only("with problem.mesh.file", from_file),
      key<RunConfig>(
          "problem.mesh.array", Text{"name of an array"}, POISSON_MEMBER(problem.mesh.array), "",
          "Of a VTK file, the cell data with the materials of cells, and the ids of boundary faces unless boundary_array names "
          "others.")
          .or_null("found by usual names: material, MaterialIDs, gmsh:physical, CellEntityIds, ...")
          .only("with problem.mesh.file", from_file),
      key<RunConfig>("problem.mesh.boundary_array", Text{"name of an array"}, POISSON_MEMBER(problem.mesh.boundary_array), "",
                     "Of a VTK file, the cell data with the ids of boundary faces, which are its quadrilaterals.")
          .or_null("boundary, boundary_id, ...; else the array of the materials")
          .only("with problem.mesh.file", from_file),
      key<RunConfig>("problem.mesh.step", AutoOr<Step>{}, POISSON_MEMBER(problem.mesh.step), "",
                     "Of a VTKHDF file with several steps, which one, from 0. auto: it has one.")
          .only("with problem.mesh.file", from_file),
      key<RunConfig>("problem.mesh.scale", Number{0}, POISSON_MEMBER(problem.mesh.scale), "",
                     "Every coordinate of the file is multiplied by it: 1e-3 where the file is in mm and the problem in m.")
          .or_null("the default")
          .only("with problem.mesh.file", from_file),
      key<RunConfig>("problem.mesh.refinements", Integer{0, 12}, POISSON_MEMBER(problem.mesh.refinements), "",
                     "Global refinements; each splits every cell in 8."),
      key<RunConfig>("problem.mesh.boundaries",
                     Named<assembly::NamedPlace>{place_keys, "{name: heater, where: \"z > 0.99 && x < 0.5\"}"},
                     POISSON_MEMBER(problem.mesh.boundaries), "",
                     "Names for the boundary faces whose centre satisfies an expression. If several match, the last one wins.")
          .or_null("none")
          .with_elements(place_keys()),
      key<RunConfig>(
          "problem.mesh.regions", Named<assembly::NamedPlace>{region_keys, "{name: die, where: \"z < 0.1\"}"},
          POISSON_MEMBER(problem.mesh.regions), "",
          "Names for the cells whose centre satisfies an expression: materials of their own. If several match, the last one wins.")
          .or_null("none")
          .with_elements(region_keys()),
  };
}

void apply_coordinates(YamlNode const& root, RunConfig& config) {
  check_coordinates(root, config);
  for (std::size_t d = 0; d < 3; ++d)
    if (auto x = config.problem.mesh.coordinates[d]; !x.empty())
      config.problem.mesh.set_coordinates(d, std::move(x));
}

}  // namespace poisson::app::schema
