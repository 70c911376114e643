#include "app/config/key_sections.hpp"
#include "app/config/value_types.hpp"
#include "assembly/image/image_file.hpp"
#include "assembly/mesh/counts.hpp"
#include "gpu/core/error.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>

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

/// Names of files: one, a pattern or a folder; or a list of slices.
struct ImageFiles {
  static constexpr char const* what =
      "path of an image (.vti, .nrrd, .mha, .tif, .raw), a pattern such as slices/*.tif, or a folder";
  [[nodiscard]] std::string allowed() const { return std::string(what) + "; or a list of slices"; }
  void read(YamlNode const& node, std::string const& path, std::vector<std::string>& out) const {
    out.clear();
    if (node.kind != YamlNode::Kind::list) {
      Text{allowed()}.read(node, path, out.emplace_back());
      return;
    }
    if (node.items.empty())
      reject_value(node, path, allowed());
    for (std::size_t i = 0; i < node.items.size(); ++i)
      Text{"path of an image"}.read(node.items[i], path + "[" + std::to_string(i) + "]", out.emplace_back());
  }
  [[nodiscard]] std::string write(std::vector<std::string> const& value) const {
    std::vector<std::string> files;
    for (std::string const& file : value)
      files.push_back(plain_or_quoted(file));
    return files.empty() ? "null" : files.size() == 1 ? files[0] : "[" + join(files) + "]";
  }
  [[nodiscard]] Json json_schema() const {
    return {{"type", Json::array({"string", "array"})}, {"items", {{"type", "string"}}}, {"minItems", 1}};
  }
};

/// Voxels of each direction that are kept.
struct CropRanges {
  [[nodiscard]] std::string allowed() const {
    return "[x, y, z], each: [first, end] in voxels from 0, without `end`; or null, which keeps all";
  }
  void read(YamlNode const& node, std::string const& path, assembly::Crop& out) const {
    check_list_of_three(node, path, allowed());
    for (std::size_t d = 0; d < 3; ++d) {
      YamlNode const& item = node.items[d];
      std::string const of_item = path + "[" + std::to_string(d) + "]";
      out[d].reset();
      if (item.kind == YamlNode::Kind::null)
        continue;
      std::array<std::int64_t, 2> range{};
      TwoOf<Integer>{{0, 2147483647}, "[first, end]"}.read(item, of_item, range);
      if (range[0] >= range[1])
        reject(item.origin, of_item,
               "found " + std::to_string(range[0]) + " to " + std::to_string(range[1]) + ", which holds no voxel");
      out[d] = {range[0], range[1]};
    }
  }
  [[nodiscard]] std::string write(assembly::Crop const& value) const {
    std::vector<std::string> ranges;
    for (auto const& range : value)
      ranges.push_back(range ? "[" + std::to_string(range->begin) + ", " + std::to_string(range->end) + "]" : "null");
    return value == assembly::Crop{} ? "null" : "[" + join(ranges) + "]";
  }
  [[nodiscard]] Json json_schema() const {
    Json range = TwoOf<Integer>{{0, 2147483647}, ""}.json_schema();
    range["type"] = Json::array({"array", "null"});
    return {{"type", "array"}, {"items", range}, {"minItems", 3}, {"maxItems", 3}};
  }
};

/// One level or several, ascending.
struct Levels {
  [[nodiscard]] std::string allowed() const { return "number, or a list of increasing numbers, e.g. [50, 128]"; }
  void read(YamlNode const& node, std::string const& path, std::vector<double>& out) const {
    out.clear();
    if (node.kind != YamlNode::Kind::list) {
      Number{}.read(node, path, out.emplace_back());
      return;
    }
    if (node.items.empty())
      reject_value(node, path, allowed());
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      double level = 0;
      Number{}.read(node.items[i], path + "[" + std::to_string(i) + "]", level);
      if (!out.empty() && !(level > out.back()))
        reject(node.items[i].origin, path + "[" + std::to_string(i) + "]",
               "found " + found(node.items[i]) + ", which is not larger than " + Number{}.write(out.back()) + " before it");
      out.push_back(level);
    }
  }
  [[nodiscard]] std::string write(std::vector<double> const& value) const {
    std::vector<std::string> levels;
    for (double const level : value)
      levels.push_back(Number{}.write(level));
    return levels.empty() ? "null" : levels.size() == 1 ? levels[0] : "[" + join(levels) + "]";
  }
  [[nodiscard]] Json json_schema() const {
    Json const number = Number{}.json_schema();
    return {{"anyOf", Json::array({number, Json{{"type", "array"}, {"items", number}, {"minItems", 1}}})}};
  }
};

/// x, y, z, or several of them.
struct Directions {
  static constexpr std::string_view names = "xyz";
  [[nodiscard]] std::string allowed() const { return "x, y or z; or a list of them"; }
  void read(YamlNode const& node, std::string const& path, std::array<bool, 3>& out) const {
    out = {};
    auto const add = [&](YamlNode const& item, std::string const& of_item) {
      if (item.kind != YamlNode::Kind::scalar || item.text.size() != 1 || names.find(item.text[0]) == std::string_view::npos)
        reject_value(item, of_item, allowed());
      bool& direction = out[names.find(item.text[0])];
      if (direction)
        reject(item.origin, of_item, "names " + item.text + " a second time");
      direction = true;
    };
    if (node.kind != YamlNode::Kind::list)
      add(node, path);
    else
      for (std::size_t i = 0; i < node.items.size(); ++i)
        add(node.items[i], path + "[" + std::to_string(i) + "]");
  }
  [[nodiscard]] std::string write(std::array<bool, 3> const& value) const {
    std::vector<std::string> directions;
    for (std::size_t d = 0; d < 3; ++d)
      if (value[d])
        directions.emplace_back(1, names[d]);
    return directions.empty() ? "null" : "[" + join(directions) + "]";
  }
  [[nodiscard]] Json json_schema() const {
    Json const direction{{"enum", Json::array({"x", "y", "z"})}};
    return {{"anyOf", Json::array({direction, Json{{"type", "array"}, {"items", direction}}})}};
  }
};

/// A map from labels to names.
struct LabelNames {
  [[nodiscard]] std::string allowed() const { return "map from labels to names, e.g. {1: pore, 2: solid}"; }
  void read(YamlNode const& node, std::string const& path, std::map<unsigned, std::string>& out) const {
    out.clear();
    if (node.kind != YamlNode::Kind::map || node.items.empty())
      reject_value(node, path, allowed());
    for (std::size_t i = 0; i < node.keys.size(); ++i) {
      std::string const& label = node.keys[i].name;
      unsigned id = 0;
      auto const [end, error] = std::from_chars(label.data(), label.data() + label.size(), id);
      if (error != std::errc{} || end != label.data() + label.size() || id > 2147483647)
        reject(node.keys[i].origin, path, "found the key '" + shorten(label) + "'; labels are integers from 0 to 2147483647");
      std::string name;
      PlainName{}.read(node.items[i], path + "[" + label + "]", name);
      if (name == "default" || name == "void")
        reject(node.items[i].origin, path + "[" + label + "]",
               "the name '" + name + "' has a meaning of its own; choose another one");
      for (auto const& [other, taken] : out)
        if (taken == name)
          reject(node.items[i].origin, path + "[" + label + "]",
                 "the name '" + name + "' belongs to the label " + std::to_string(other) + " already");
      if (!out.emplace(id, std::move(name)).second)
        reject(node.keys[i].origin, path, "label " + label + " is given twice");
    }
  }
  [[nodiscard]] std::string write(std::map<unsigned, std::string> const& value) const {
    std::vector<std::string> entries;
    for (auto const& [label, name] : value)
      entries.push_back(std::to_string(label) + ": " + plain_or_quoted(name));
    return entries.empty() ? "null" : "{" + join(entries) + "}";
  }
  [[nodiscard]] Json json_schema() const {
    return {{"type", "object"}, {"additionalProperties", PlainName{}.json_schema()}, {"minProperties", 1}};
  }
};

/// Edges of a voxel, where they are given.
struct Spacing {
  ThreeOf<Number> three{{0}};
  [[nodiscard]] std::string allowed() const { return three.allowed() + "; or one number for all"; }
  void read(YamlNode const& node, std::string const& path, std::array<double, 3>& out) const {
    if (node.kind == YamlNode::Kind::list) {
      three.read(node, path, out);
      return;
    }
    three.type.read(node, path, out[0]);
    out[1] = out[2] = out[0];
  }
  [[nodiscard]] std::string write(std::array<double, 3> const& value) const { return value[0] > 0 ? three.write(value) : "null"; }
  [[nodiscard]] Json json_schema() const { return {{"anyOf", Json::array({three.type.json_schema(), three.json_schema()})}}; }
};

/// A type of voxels, where it is given.
struct TypeOfVoxels {
  Choice<assembly::VoxelType> choice{};
  [[nodiscard]] std::string allowed() const { return choice.allowed(); }
  void read(YamlNode const& node, std::string const& path, std::optional<assembly::VoxelType>& out) const {
    choice.read(node, path, out.emplace());
  }
  [[nodiscard]] std::string write(std::optional<assembly::VoxelType> const& value) const {
    return value ? choice.write(*value) : "null";
  }
  [[nodiscard]] Json json_schema() const { return choice.json_schema(); }
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
  auto const generated = [](RunConfig const& c) { return c.problem.mesh.file.empty() && !c.problem.mesh.image.is_given(); };
  auto const from_file = [](RunConfig const& c) { return !c.problem.mesh.file.empty(); };
  auto const with_image = [](RunConfig const& c) { return c.problem.mesh.image.is_given(); };
  auto const has_arrays = [](RunConfig const& c) { return !c.problem.mesh.file.empty() || c.problem.mesh.image.is_given(); };
  auto const raw = [](RunConfig const& c) { return c.problem.mesh.image.is_raw(); };
  auto const box = [](RunConfig const& c) {
    return c.problem.mesh.file.empty() && c.problem.mesh.generator == "box" && !c.problem.mesh.image.is_given();
  };
  auto const box_or_voxels = [](RunConfig const& c) {
    assembly::MeshSpec const& mesh = c.problem.mesh;
    if (assembly::is_surface(mesh))
      return !mesh.size;
    return mesh.file.empty() && mesh.generator == "box" && (!mesh.image.is_given() || mesh.image.is_raw());
  };
  auto const drawing = [](RunConfig const& c) { return assembly::is_drawing(c.problem.mesh); };
  auto const drawing_or_surface = [](RunConfig const& c) {
    return assembly::is_drawing(c.problem.mesh) || assembly::is_surface(c.problem.mesh);
  };
  auto const other_generator = [](RunConfig const& c) { return c.problem.mesh.file.empty() && c.problem.mesh.generator != "box"; };
  return {
      section<RunConfig>("problem.mesh", "A generator, a file, or an image."),
      key<RunConfig>("problem.mesh.image", ImageFiles{}, POISSON_MEMBER(problem.mesh.image.files), "",
                     "Image instead of a generator: voxels are cells, labels are materials (docs/usage/images.md). Relative to the "
                     "current directory or to this file.")
          .or_null("none")
          .only("without problem.mesh.file, and with no generator but box",
                [](RunConfig const& c) { return c.problem.mesh.file.empty() && c.problem.mesh.generator == "box"; }),
      key<RunConfig>("problem.mesh.generator", Text{"box, or the name of a deal.II GridGenerator function such as hyper_shell"},
                     POISSON_MEMBER(problem.mesh.generator), "",
                     "Shape that the program builds; box is a brick, of equal or graded cells.")
          .or_null("box, or none with a file")
          .only("without problem.mesh.file and problem.mesh.image; set all but one to null", generated),
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
      key<RunConfig>(
          "problem.mesh.cells", ThreeOf<Integer>{{1, 2147483647}}, [](RunConfig & c) -> auto& {
            return c.problem.mesh.image.is_given() ? c.problem.mesh.image.cells : c.problem.mesh.cells;
          },
          "", "Cells of the box in x, y, z; voxels of a raw image; of a surface (.stl) those of the box around it.")
          .or_null("the default")
          .only("with generator: box, a raw image, or an .stl file without size", box_or_voxels),
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
          "relative to the current directory or to this file. Of a drawing (.step, .brep, .geo) the program gmsh makes the mesh; "
          "the inside of a surface (.stl) becomes voxels.")
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
          "others; of a .vti image, the cell or point data with the labels.")
          .or_null("found by usual names: material, MaterialIDs, gmsh:physical, CellEntityIds, ...; of an image, its only array")
          .only("with problem.mesh.file or problem.mesh.image", has_arrays),
      key<RunConfig>("problem.mesh.boundary_array", Text{"name of an array"}, POISSON_MEMBER(problem.mesh.boundary_array), "",
                     "Of a VTK file, the cell data with the ids of boundary faces, which are its quadrilaterals.")
          .or_null("boundary, boundary_id, ...; else the array of the materials")
          .only("with problem.mesh.file", from_file),
      key<RunConfig>("problem.mesh.step", AutoOr<Step>{}, POISSON_MEMBER(problem.mesh.step), "",
                     "Of a VTKHDF file with several steps, which one, from 0. auto: it has one.")
          .only("with problem.mesh.file", from_file),
      key<RunConfig>("problem.mesh.size", AutoOr<Number>{{0}}, POISSON_MEMBER(problem.mesh.size), "length",
                     "Of a drawing, the edges of cells wanted; of a surface (.stl), the edge of its voxels. auto: what the drawing "
                     "says, or gmsh, a tenth of its extent; of a surface by cells.")
          .only("with a drawing or a surface as problem.mesh.file (.step, .brep, .geo, .stl)", drawing_or_surface),
      key<RunConfig>(
          "problem.mesh.shape_order", Integer{1, 2, false, true}, POISSON_MEMBER(problem.mesh.shape_order), "",
          "Of a drawing, whether cells have straight edges (1) or follow its curves (2). auto: 2 for elements of order 2 "
          "and more.")
          .only("with a drawing as problem.mesh.file (.step, .brep, .geo)", drawing),
      key<RunConfig>("problem.mesh.time_limit", Number{0}, POISSON_MEMBER(problem.mesh.time_limit), "s",
                     "Of a drawing, how long gmsh may take.")
          .or_null("the default")
          .only("with a drawing as problem.mesh.file (.step, .brep, .geo)", drawing),
      key<RunConfig>("problem.mesh.allow_commands", Boolean{}, POISSON_MEMBER(problem.mesh.allow_commands), "",
                     "Whether a .geo file may have commands that start programs or write files.")
          .or_null("false")
          .only("with a drawing as problem.mesh.file (.step, .brep, .geo)", drawing),
      key<RunConfig>("problem.mesh.scale", Number{0}, POISSON_MEMBER(problem.mesh.scale), "",
                     "Every coordinate of the file is multiplied by it: 1e-3 where the file is in mm and the problem in m.")
          .or_null("the default")
          .only("with problem.mesh.file", from_file),
      key<RunConfig>("problem.mesh.type", TypeOfVoxels{}, POISSON_MEMBER(problem.mesh.image.type), "",
                     "Numbers of a raw image, one for each voxel, x fastest.")
          .or_null("not given")
          .only("with a raw image", raw),
      key<RunConfig>("problem.mesh.big_endian", Boolean{}, POISSON_MEMBER(problem.mesh.image.big_endian), "",
                     "Of a raw image whose numbers have several bytes: whether the highest comes first.")
          .or_null("false")
          .only("with a raw image", raw),
      key<RunConfig>("problem.mesh.spacing", Spacing{}, POISSON_MEMBER(problem.mesh.image.spacing), "length",
                     "Edges of a voxel in x, y, z. Raw images and TIFF need it; of others it replaces what the file tells.")
          .or_null("what the file tells")
          .only("with problem.mesh.image", with_image),
      key<RunConfig>("problem.mesh.crop", CropRanges{}, POISSON_MEMBER(problem.mesh.image.crop), "voxels",
                     "Voxels of the image that are kept in x, y, z: [[0, 64], null, [10, 20]]. It comes before flip, threshold and "
                     "coarsen.")
          .or_null("all")
          .only("with problem.mesh.image", with_image),
      key<RunConfig>("problem.mesh.flip", Directions{}, POISSON_MEMBER(problem.mesh.image.flip), "",
                     "Directions in which the order of voxels is turned round; the box stays.")
          .or_null("none")
          .only("with problem.mesh.image", with_image),
      key<RunConfig>("problem.mesh.threshold", Levels{}, POISSON_MEMBER(problem.mesh.image.threshold), "as the grey values",
                     "Makes labels of grey values: with 128, 0 below 128 and 1 from 128 on; with [50, 128], 0, 1 and 2.")
          .or_null("the values are labels")
          .only("with problem.mesh.image", with_image),
      key<RunConfig>("problem.mesh.coarsen", OneOrThree{{1, 1024}}, POISSON_MEMBER(problem.mesh.image.coarsen), "voxels",
                     "So many voxels in each direction become one cell: the most frequent label counts, of equally frequent ones "
                     "the lowest.")
          .or_null("1")
          .only("with problem.mesh.image", with_image),
      key<RunConfig>("problem.mesh.names", LabelNames{}, POISSON_MEMBER(problem.mesh.image.names), "",
                     "Names of labels, for problem.coefficient and quantities: {1: pore, 2: solid}.")
          .or_null("none")
          .only("with problem.mesh.image", with_image),
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

void apply_image(YamlNode const& root, RunConfig& config) {
  assembly::MeshSpec& mesh = config.problem.mesh;
  if (!mesh.image.is_given())
    return;
  try {
    assembly::ImageBox const box = assembly::box_of_image(mesh.image, mesh.array);
    mesh.cells = box.cells;
    mesh.origin = box.origin;
    mesh.extent = box.extent;
  } catch (InputError const& error) {
    reject(locate_path(root, error.key()).origin, error.key(), shorten(error.what(), 1000));
  }
}

void apply_coordinates(YamlNode const& root, RunConfig& config) {
  check_coordinates(root, config);
  for (std::size_t d = 0; d < 3; ++d)
    if (auto x = config.problem.mesh.coordinates[d]; !x.empty())
      config.problem.mesh.set_coordinates(d, std::move(x));
}

}  // namespace poisson::app::schema
