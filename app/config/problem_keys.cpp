#include "app/config/key_sections.hpp"
#include "app/config/value_types.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

namespace poisson::app::schema {
namespace {

/// `ids` of a boundary condition: two members at once, hence the whole condition.
struct BoundaryIds {
  [[nodiscard]] std::string allowed() const {
    return "integer >= 0, or a list of them, e.g. [0, 1]; or all, every id that no other entry names";
  }
  void read(YamlNode const& node, std::string const& path, assembly::BoundaryCondition& out) const {
    if (node.kind == YamlNode::Kind::scalar && node.text == "all") {
      out.all_ids = true;
      return;
    }
    Integer const id{0, 4294967294};  // deal.II reserves the largest 32-bit number for interior faces
    auto const add = [&](YamlNode const& item, std::string const& of_item) {
      if (item.kind == YamlNode::Kind::scalar && is_plain_name(item.text) &&
          !(item.parameters && item.parameters->contains(item.text)))
        reject(item.origin, of_item,
               "found " + found(item) + "; allowed: an integer, or all. Boundaries are called by their names as names: [" +
                   item.text + "]");
      id.read(item, of_item, out.ids.emplace_back());
    };
    if (node.kind == YamlNode::Kind::scalar) {
      add(node, path);
      return;
    }
    if (node.kind != YamlNode::Kind::list || node.items.empty())
      reject_value(node, path, allowed());
    for (std::size_t i = 0; i < node.items.size(); ++i)
      add(node.items[i], path + "[" + std::to_string(i) + "]");
  }
  [[nodiscard]] std::string write(assembly::BoundaryCondition const& value) const {
    if (value.all_ids)
      return "all";
    std::vector<std::string> ids;
    for (unsigned const id : value.ids)
      ids.push_back(std::to_string(id));
    return "[" + join(ids) + "]";
  }
  [[nodiscard]] Json json_schema() const {
    Json const ids{{"type", "array"}, {"items", Integer{0, 4294967294}.json_schema()}, {"minItems", 1}};
    Json const id{{"type", "integer"}, {"minimum", 0}, {"maximum", 4294967294}};
    return {{"anyOf", Json::array({Json{{"const", "all"}}, id, ids})}};
  }
};

/// Names of boundaries.
struct NameList {
  [[nodiscard]] std::string allowed() const { return "list of names, e.g. [heater, inlet]"; }
  void read(YamlNode const& node, std::string const& path, std::vector<std::string>& out) const {
    if (node.kind != YamlNode::Kind::list || node.items.empty())
      reject_value(node, path, allowed());
    out.clear();
    for (std::size_t i = 0; i < node.items.size(); ++i)
      Text{"a name"}.read(node.items[i], path + "[" + std::to_string(i) + "]", out.emplace_back());
  }
  [[nodiscard]] std::string write(std::vector<std::string> const& value) const {
    std::vector<std::string> names;
    for (std::string const& name : value)
      names.push_back(quoted_text(name));
    return "[" + join(names) + "]";
  }
  [[nodiscard]] Json json_schema() const { return {{"type", "array"}, {"items", {{"type", "string"}}}, {"minItems", 1}}; }
};

Keys<assembly::BoundaryCondition> const& boundary_keys() {
  auto const robin = [](assembly::BoundaryCondition const& b) { return b.type == assembly::BoundaryType::robin; };
  static Keys<assembly::BoundaryCondition> const keys{
      key<assembly::BoundaryCondition>(
          "ids", BoundaryIds{}, [](auto& b) -> auto& { return b; }, "", "Boundary ids of the mesh that this entry is for.")
          .only("without names, or beside them", [](auto const& b) { return b.all_ids || !b.ids.empty() || b.names.empty(); })
          .must_be_given("say which boundary ids, or all, or names", [](auto const& b) { return b.names.empty(); }),
      key<assembly::BoundaryCondition>(
          "names", NameList{}, [](auto& b) -> auto& { return b.names; }, "",
          "Names that this entry is for, from the mesh file or problem.mesh.boundaries. Surfaces inside the mesh take "
          "dirichlet, and neumann for a source on the surface.")
          .only("with names", [](auto const& b) { return !b.names.empty(); }),
      key<assembly::BoundaryCondition>(
          "type", Choice<assembly::BoundaryType>{}, [](auto& b) -> auto& { return b.type; }, "",
          "dirichlet: u = value; neumann: k du/dn = value (flux into the domain); robin: k du/dn + alpha u = value; periodic: of "
          "two "
          "boundaries, one a translation of the other, u on the second = u on the first + value.")
          .must_be_given("dirichlet, neumann, robin or periodic"),
      key<assembly::BoundaryCondition>(
          "value", ExpressionText{}, [](auto& b) -> auto& { return b.value; },
          "as u (dirichlet, periodic), as k u / length (neumann, robin)", "Right-hand side of the condition."),
      key<assembly::BoundaryCondition>(
          "alpha", ExpressionText{}, [](auto& b) -> auto& { return b.alpha; }, "as k / length", "Transfer coefficient, >= 0.")
          .only("with type: robin", robin)
          .must_be_given("a robin condition needs it", robin),
  };
  return keys;
}

struct BoundaryList {
  [[nodiscard]] std::string allowed() const { return "list of conditions"; }
  void read(YamlNode const& node, std::string const& path, std::vector<assembly::BoundaryCondition>& out) const {
    if (node.kind != YamlNode::Kind::list || node.items.empty())
      reject_value(node, path, "list of conditions such as {ids: all, type: dirichlet, value: \"0\"}");
    read_maps(boundary_keys(), node, path, "a condition such as {ids: all, type: dirichlet, value: \"0\"}", out,
              [](auto const&...) {});
  }
  [[nodiscard]] std::string write(std::vector<assembly::BoundaryCondition> const& value) const {
    return write_maps(boundary_keys(), value);
  }
  [[nodiscard]] Json json_schema() const {
    Json entry = json_schema_of(boundary_keys(), assembly::BoundaryCondition{});
    Json const robin{{"properties", {{"type", {{"const", "robin"}}}}}, {"required", Json::array({"type"})}};
    auto const has = [](char const* key) { return Json{{"required", Json::array({key})}}; };
    entry.update({{"required", Json::array({"type"})},
                  {"anyOf", Json::array({has("ids"), has("names")})},
                  {"if", robin},
                  {"then", {{"required", Json::array({"alpha"})}}},
                  {"else", {{"properties", {{"alpha", {{"type", "null"}}}}}}}});
    return {{"type", "array"}, {"items", entry}, {"minItems", 1}};
  }
};

/// The condition that the schema shows.
assembly::BoundaryCondition any_boundary() {
  assembly::BoundaryCondition example;
  example.all_ids = true;
  return example;
}

/// A map from material ids, names and `default` (id -1) to what `read_value(item, path)` returns.
template <class Value, class ReadValue>
void read_by_material(YamlNode const& node, std::string const& path, std::map<int, Value>& of_material,
                      std::map<std::string, Value>& of_name, ReadValue const& read_value) {
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    std::string const& name = node.keys[i].name;
    if (name.find_first_of("<>=?&|^*") != std::string::npos)  // an expression without its quotes
      reject_value(node, path, "expression; or a map from material ids, names and default");
    int id = -1;
    auto const [end, error] = std::from_chars(name.data(), name.data() + name.size(), id);
    bool const number = error == std::errc{} && end == name.data() + name.size();
    if (name.empty() || (number && id < 0))
      reject(node.keys[i].origin, path, "found the key '" + name + "'; allowed: material ids (integers >= 0), names and default");
    auto value = read_value(node.items[i], path + (number ? "[" + name + "]" : "." + name));
    if (!number && name != "default")
      of_name.emplace(name, std::move(value));
    else if (!of_material.emplace(number ? id : -1, std::move(value)).second)
      reject(node.keys[i].origin, path, "material " + name + " is given twice");
  }
}
template <class Value, class WriteValue>
std::string write_by_material(std::map<int, Value> const& of_material, std::map<std::string, Value> const& of_name,
                              WriteValue const& write_value) {
  std::vector<std::string> entries;
  for (auto const& [name, value] : of_name)
    entries.push_back(quoted_text(name) + ": " + write_value(value));
  for (auto const& [id, value] : of_material)
    entries.push_back((id == -1 ? "default" : std::to_string(id)) + ": " + write_value(value));
  return "{" + join(entries) + "}";
}
Json json_schema_by_material(Json const& value) {
  return {{"type", "object"}, {"additionalProperties", value}, {"minProperties", 1}};
}

/// {file: ..., array: ..., interpolation: ...} where an expression may stand: a field of its own, and its name as the expression.
struct FieldFile {
  static bool is(YamlNode const& node) { return node.kind == YamlNode::Kind::map && node.find("file") != nullptr; }
  static std::string read(YamlNode const& node, std::string const& path, std::vector<FieldSpec>& fields) {
    FieldSpec field;
    for (std::size_t i = 0; i < node.keys.size(); ++i) {
      std::string const& key = node.keys[i].name;
      std::string const of_key = path + "." + key;
      if (key == "file")
        Text{"path of a file"}.read(node.items[i], of_key, field.file);
      else if (key == "array")
        Text{"name of an array or a column"}.read(node.items[i], of_key, field.array);
      else if (key == "interpolation")
        Choice<output::FieldInterpolation>{}.read(node.items[i], of_key, field.interpolation);
      else if (key == "step")
        AutoOr<Step>{}.read(node.items[i], of_key, field.step);
      else
        reject(node.keys[i].origin, of_key, "is not known beside file; allowed: file, array, interpolation and step");
    }
    auto const same = [&](FieldSpec const& other) {
      return other.file == field.file && other.array == field.array && other.interpolation == field.interpolation &&
             other.step == field.step;
    };
    if (auto const there = std::find_if(fields.begin(), fields.end(), same); there != fields.end())
      return there->name;
    field.name = "file_" + std::to_string(fields.size() + 1);
    field.key = path;
    fields.push_back(field);
    return field.name;
  }
  [[nodiscard]] static Json json_schema() {
    return {{"type", "object"},
            {"properties",
             {{"file", {{"type", "string"}}},
              {"array", {{"type", "string"}}},
              {"interpolation", Choice<output::FieldInterpolation>{}.json_schema()},
              {"step", AutoOr<Step>{}.json_schema()}}},
            {"required", Json::array({"file"})},
            {"additionalProperties", false}};
  }
};

/// k of one material, or a map from material ids or names to such: members of the problem, and fields.
struct Coefficient {
  static constexpr char const* forms =
      "expression or number; [kx, ky, kz]; [xx, yy, zz, xy, xz, yz]; {frame: name, principal: [k1, k2, k3]}; or {file: path}";
  [[nodiscard]] std::string allowed() const {
    return std::string(forms) + "; or {material id or name: any of these or void, ..., default: any of these}";
  }
  static bool in_frame(YamlNode const& node) { return node.kind == YamlNode::Kind::map && node.find("principal") != nullptr; }
  static void read_list(YamlNode const& node, std::string const& path, assembly::CoefficientExpressions& out) {
    for (std::size_t i = 0; i < node.items.size(); ++i)
      ExpressionText{}.read(node.items[i], path + "[" + std::to_string(i) + "]", out.emplace_back());
  }
  static assembly::CoefficientExpressions read_expressions(YamlNode const& node, std::string const& path,
                                                           std::vector<FieldSpec>& fields) {
    assembly::CoefficientExpressions out;
    if (FieldFile::is(node)) {
      out.push_back(FieldFile::read(node, path, fields));
    } else if (in_frame(node)) {
      for (auto const& key : node.keys)
        if (key.name != "frame" && key.name != "principal")
          reject(key.origin, path + "." + key.name, "is not known beside principal; allowed: frame and principal");
      YamlNode const *const frame = node.find("frame"), *const principal = node.find("principal");
      if (frame == nullptr)
        reject(node.origin, path + ".frame", "must be given: a name of problem.frames");
      Text{"name of problem.frames"}.read(*frame, path + ".frame", out.frame);
      check_list_of_three(*principal, path + ".principal", "list of three, the values along the axes of the frame");
      read_list(*principal, path + ".principal", out);
    } else if (node.kind == YamlNode::Kind::list) {
      if (node.items.size() != 3 && node.items.size() != 6)
        reject_value(node, path, forms);
      read_list(node, path, out);
    } else {
      ExpressionText{}.read(node, path, out.emplace_back());
    }
    return out;
  }
  void read(YamlNode const& node, std::string const& path, RunConfig& out) const {
    auto& of_material = out.problem.coefficient;
    auto& of_name = out.problem.coefficient_of_name;
    of_material.clear();
    of_name.clear();
    out.problem.mesh.void_ids.clear();
    out.problem.mesh.void_names.clear();
    if (node.kind != YamlNode::Kind::map || in_frame(node) || FieldFile::is(node)) {
      of_material[-1] = read_expressions(node, path, out.fields);
      return;
    }
    if (node.items.empty())
      reject_value(node, path, allowed());
    read_by_material(node, path, of_material, of_name,
                     [&](YamlNode const& item, std::string const& of_item) { return read_expressions(item, of_item, out.fields); });
    // Cells that are not there have no coefficient: the mesh is told.
    assembly::CoefficientExpressions const nothing{"void"};
    for (auto const& [id, expressions] : of_material)
      if (expressions == nothing && id == -1)
        reject(node.origin, path + ".default", "cannot be void; name the materials that are");
      else if (expressions == nothing)
        out.problem.mesh.void_ids.insert(id);
    for (auto const& [name, expressions] : of_name)
      if (expressions == nothing)
        out.problem.mesh.void_names.insert(name);
    auto const is_void = [&](auto const& entry) { return entry.second == nothing; };
    std::erase_if(of_material, is_void);
    std::erase_if(of_name, is_void);
  }
  [[nodiscard]] static std::string write_expressions(assembly::CoefficientExpressions const& value) {
    std::vector<std::string> quoted;
    for (auto const& expression : value)
      quoted.push_back(quoted_text(expression));
    if (!value.frame.empty())
      return "{frame: " + plain_or_quoted(value.frame) + ", principal: [" + join(quoted) + "]}";
    return value.size() == 1 ? quoted.front() : "[" + join(quoted) + "]";
  }
  [[nodiscard]] std::string write(RunConfig const& value) const {
    auto of_material = value.problem.coefficient;
    auto of_name = value.problem.coefficient_of_name;
    for (int const id : value.problem.mesh.void_ids)
      of_material[id] = {"void"};
    for (std::string const& name : value.problem.mesh.void_names)
      of_name[name] = {"void"};
    if (of_name.empty() && of_material.size() == 1 && of_material.begin()->first == -1)
      return write_expressions(of_material.begin()->second);
    return write_by_material(of_material, of_name, write_expressions);
  }
  [[nodiscard]] Json json_schema() const {
    Json const one = ExpressionText{}.json_schema(), three = ThreeOf<ExpressionText>{}.json_schema();
    Json const six{{"type", "array"}, {"items", one}, {"minItems", 6}, {"maxItems", 6}};
    Json const framed{{"type", "object"},
                      {"properties", {{"frame", {{"type", "string"}}}, {"principal", three}}},
                      {"required", Json::array({"frame", "principal"})},
                      {"additionalProperties", false}};
    Json const file = FieldFile::json_schema(), any{{"anyOf", Json::array({one, three, six, framed, file})}};
    return {{"anyOf", Json::array({one, three, six, framed, file, json_schema_by_material(any)})}};
  }
};

/// An expression, or a map from material ids or names to expressions: three members of the problem, and fields.
struct Source {
  [[nodiscard]] std::string allowed() const {
    return "expression or number; {file: path}; or {material id or name: either, ..., default: either}, where the default is 0";
  }
  void read(YamlNode const& node, std::string const& path, RunConfig& config) const {
    assembly::ProblemSpec& out = config.problem;
    out.source = "0";
    out.source_of_material.clear();
    out.source_of_name.clear();
    auto const read_value = [&](YamlNode const& item, std::string const& of_item) {
      if (FieldFile::is(item))
        return FieldFile::read(item, of_item, config.fields);
      std::string text;
      ExpressionText{}.read(item, of_item, text);
      return text;
    };
    if (node.kind == YamlNode::Kind::list || (node.kind == YamlNode::Kind::map && node.items.empty()))
      reject_value(node, path, allowed());
    if (node.kind != YamlNode::Kind::map || FieldFile::is(node)) {
      out.source = read_value(node, path);
      return;
    }
    read_by_material(node, path, out.source_of_material, out.source_of_name, read_value);
    if (auto const rest = out.source_of_material.extract(-1); !rest.empty())
      out.source = rest.mapped();
  }
  [[nodiscard]] std::string write(RunConfig const& config) const {
    assembly::ProblemSpec const& value = config.problem;
    if (value.has_one_source())
      return quoted_text(value.source);
    auto all = value.source_of_material;
    all.emplace(-1, value.source);
    return write_by_material(all, value.source_of_name, quoted_text);
  }
  [[nodiscard]] Json json_schema() const {
    Json const one = ExpressionText{}.json_schema(), file = FieldFile::json_schema();
    Json const either{{"anyOf", Json::array({one, file})}};
    return {{"anyOf", Json::array({one, file, json_schema_by_material(either)})}};
  }
};

Keys<FieldSpec> const& field_keys() {
  static Keys<FieldSpec> const keys{
      key<FieldSpec>(
          "name", PlainName{}, [](auto& f) -> auto& { return f.name; }, "", "For expressions.")
          .must_be_given("a field has a name"),
      key<FieldSpec>(
          "file", Text{"path of a file"}, [](auto& f) -> auto& { return f.file; }, "",
          "Where it is, relative to the current directory or to this file.")
          .must_be_given("say which file"),
      key<FieldSpec>(
          "array", Text{"name of an array or a column"}, [](auto& f) -> auto& { return f.array; }, "",
          "Which array of the file, or column of the table.")
          .or_null("the only one, or u"),
      key<FieldSpec>(
          "interpolation", Choice<output::FieldInterpolation>{}, [](auto& f) -> auto& { return f.interpolation; }, "",
          "linear: the functions of its cells, or a fit to the nearest points; nearest: the value of the nearest point."),
      key<FieldSpec>(
          "step", AutoOr<Step>{}, [](auto& f) -> auto& { return f.step; }, "",
          "Of a VTKHDF file with several steps, which one, from 0. auto: it has one."),
  };
  return keys;
}

Keys<assembly::FrameSpec> const& frame_keys() {
  static Keys<assembly::FrameSpec> const keys{
      key<assembly::FrameSpec>(
          "name", PlainName{}, [](auto& f) -> auto& { return f.name; }, "", "For {frame: name} in problem.coefficient.")
          .must_be_given("a frame has a name"),
      key<assembly::FrameSpec>(
          "axis", ThreeOf<Number>{}, [](auto& f) -> auto& { return f.axis; }, "", "The direction that it is turned about.")
          .must_be_given("say about which axis, [x, y, z]"),
      key<assembly::FrameSpec>(
          "angle", Number{}, [](auto& f) -> auto& { return f.angle; }, "degrees",
          "By how much: counterclockwise when the axis points at you.")
          .must_be_given("say by which angle, in degrees"),
  };
  return keys;
}

Keys<assembly::PointSource> const& point_source_keys() {
  static Keys<assembly::PointSource> const keys{
      key<assembly::PointSource>(
          "at", ThreeOf<Number>{}, [](auto& s) -> auto& { return s.at; }, "length", "The point, which must be in the mesh.")
          .must_be_given("say where, [x, y, z]"),
      key<assembly::PointSource>(
          "value", Number{}, [](auto& s) -> auto& { return s.value; }, "as k u length", "What enters there.")
          .must_be_given("say how much enters there"),
  };
  return keys;
}

Keys<assembly::LineSource> const& line_source_keys() {
  static Keys<assembly::LineSource> const keys{
      key<assembly::LineSource>(
          "from", ThreeOf<Number>{}, [](auto& s) -> auto& { return s.from; }, "length", "Where the line begins, in the mesh.")
          .must_be_given("say where, [x, y, z]"),
      key<assembly::LineSource>(
          "to", ThreeOf<Number>{}, [](auto& s) -> auto& { return s.to; }, "length", "Where it ends; it must not leave the mesh.")
          .must_be_given("say where, [x, y, z]"),
      key<assembly::LineSource>(
          "value", ExpressionText{}, [](auto& s) -> auto& { return s.value; }, "as k u", "What enters for each unit of length.")
          .must_be_given("say how much enters for each unit of length"),
  };
  return keys;
}

}  // namespace

Keys<RunConfig> keys_of_problem() {
  return {
      section<RunConfig>("problem.element", "Finite element."),
      key<RunConfig>("problem.element.order", Integer{1, 8}, POISSON_MEMBER(problem.order), "",
                     "Polynomial order p of the element Q_p; 1 is trilinear."),
      key<RunConfig>(
          "problem.quadrature", Integer{2, 20, false, true}, POISSON_MEMBER(problem.quadrature), "",
          "Gauss points in each direction of a cell, order + 1 or more; more see values that jump inside cells better. auto: "
          "order + 1, and more on curved cells of mesh files."),
      key<RunConfig>(
          "problem.fields", Named<FieldSpec>{field_keys, "{name: conductivity, file: k.vti}"}, POISSON_MEMBER(fields), "",
          "Fields in files, which every expression may use by their names: image data and grids of VTK (.vti, .vtr, .vtu, .hdf), "
          "earlier solutions, or tables of points.")
          .or_null("none")
          .with_elements(field_keys()),
      key<RunConfig>(
          "problem.coefficient", Coefficient{}, [](auto& c) -> auto& { return c; }, "",
          "k: one > 0, three along x, y, z, the six [xx, yy, zz, xy, xz, yz] of a positive definite tensor, or {frame: name, "
          "principal: [k1, k2, k3]}; or any of these by material id or name of the mesh, or void: cells that are not there, whose "
          "surface is the boundary void_surface."),
      key<RunConfig>("problem.frames", Named<assembly::FrameSpec>{frame_keys, "{name: bedding, axis: [0, 1, 0], angle: 30}"},
                     POISSON_MEMBER(problem.frames), "", "Coordinate systems for coefficients, turned about an axis.")
          .or_null("none")
          .with_elements(frame_keys()),
      key<RunConfig>(
          "problem.source", Source{}, [](auto& c) -> auto& { return c; }, "as k u / length^2",
          "f, the source density: one, or by material id or name of the mesh, 0 where neither that nor default says more."),
      key<RunConfig>("problem.source_total", OptionalNumber{}, POISSON_MEMBER(problem.source_total), "as k u length",
                     "The integral of f: f is multiplied by the number that makes it so. auto: f is taken as it is."),
      key<RunConfig>("problem.point_sources", List<assembly::PointSource>{point_source_keys, "{at: [0.5, 0.5, 0.5], value: 1}"},
                     POISSON_MEMBER(problem.point_sources), "", "Sources at points, beside f.")
          .or_null("none")
          .with_elements(point_source_keys()),
      key<RunConfig>("problem.line_sources",
                     List<assembly::LineSource>{line_source_keys, "{from: [0.5, 0.5, 0], to: [0.5, 0.5, 1], value: 1}"},
                     POISSON_MEMBER(problem.line_sources), "", "Sources along straight lines, beside f.")
          .or_null("none")
          .with_elements(line_source_keys()),
      key<RunConfig>("problem.boundary", BoundaryList{}, POISSON_MEMBER(problem.boundary), "",
                     "Boundary conditions. Every boundary id of the mesh must be covered; a box has 0 .. 5 = -x +x -y +y -z +z.")
          .must_be_given("a list of conditions such as [{ids: all, type: dirichlet, value: \"0\"}]",
                         [](RunConfig const& c) { return !c.effective.is_asked(); })
          .only("without analysis.effective, whose problems have conditions of their own",
                [](RunConfig const& c) { return !c.effective.is_asked(); })
          .with_elements(boundary_keys(), any_boundary())
          .shown_as_element(),
      key<RunConfig>("problem.exact", ExpressionText{}, POISSON_MEMBER(problem.exact), "as u",
                     "Exact solution, where known: errors are then reported.")
          .or_null("not known"),
  };
}

void check_boundary(YamlNode const& root, assembly::ProblemSpec const& problem) {
  std::map<unsigned, std::size_t> owner;
  std::optional<std::size_t> all;
  for (std::size_t i = 0; i < problem.boundary.size(); ++i) {
    auto const& condition = problem.boundary[i];
    std::string const path = "problem.boundary[" + std::to_string(i) + "].ids";
    auto const refuse = [&](std::string const& key, std::string const& what, std::size_t first) {
      reject(locate_path(root, key).origin, key,
             what + " already has a condition in problem.boundary[" + std::to_string(first) + "]; an id belongs to one entry");
    };
    if (condition.all_ids && all)
      refuse(path, "all", *all);
    if (condition.all_ids)
      all = i;
    for (std::size_t k = 0; k < condition.ids.size(); ++k)
      if (auto const [entry, is_new] = owner.emplace(condition.ids[k], i); !is_new)
        refuse(path + "[" + std::to_string(k) + "]", "boundary id " + std::to_string(condition.ids[k]), entry->second);
  }
}

void check_fields(YamlNode const& root, RunConfig const& config) {
  for (std::size_t i = 0; i < config.fields.size(); ++i) {
    std::string const& name = config.fields[i].name;
    std::string const key = "problem.fields[" + std::to_string(i) + "].name";
    if (assembly::is_expression_name(name) || config.problem.parameters.contains(name))
      reject(locate_path(root, key).origin, key,
             "'" + name + "' is " +
                 (config.problem.parameters.contains(name) ? "a parameter" : "a name that expressions have already") +
                 "; choose another one");
  }
}

}  // namespace poisson::app::schema
