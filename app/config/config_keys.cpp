#include "app/config/config_keys.hpp"

#include "app/config/parameters.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <set>

namespace poisson::app::schema {
namespace {

/// Names that stand in expressions and in names of files.
bool is_plain_name(std::string const& text) {
  auto const letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !text.empty() && text.size() <= 60 && letter(text[0]) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

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

/// A list of maps, each with these keys; `what`: "a condition such as {...}". checked(item, path, spec) sees each when it is read.
template <class T, class Checked>
void read_maps(Keys<T> const& keys, YamlNode const& list, std::string const& path, std::string const& what, std::vector<T>& out,
               Checked const& checked) {
  out.clear();
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    YamlNode const& item = list.items[i];
    std::string const of_item = path + "[" + std::to_string(i) + "]";
    if (item.kind != YamlNode::Kind::map)
      reject_value(item, of_item, what);
    read_keys(keys, item, of_item, out.emplace_back());
    checked(item, of_item, out.back());
  }
}
template <class T>
std::string write_maps(Keys<T> const& keys, std::vector<T> const& value) {
  std::vector<std::string> entries;
  for (T const& spec : value)
    entries.push_back(write_flow(keys, spec));
  return "[" + join(entries) + "]";
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

/// The number of a step of a file, from 0, or the last one (-1).
struct Step {
  Integer number{0, 1'000'000'000};
  [[nodiscard]] std::string allowed() const { return "last; or " + number.allowed(); }
  void read(YamlNode const& node, std::string const& path, std::int64_t& out) const {
    bool const scalar = node.kind == YamlNode::Kind::scalar;
    if (scalar && !node.quoted && node.text == "last")
      out = -1;
    else if (scalar && !node.text.empty() && node.text.find_first_not_of("0123456789") == std::string::npos)
      number.read(node, path, out);
    else
      reject_value(node, path, "auto; or " + allowed());
  }
  [[nodiscard]] std::string write(std::int64_t value) const { return value < 0 ? "last" : number.write(value); }
  [[nodiscard]] Json json_schema() const { return {{"anyOf", Json::array({Json{{"const", "last"}}, number.json_schema()})}}; }
};

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

Keys<AnalysisSpec> const& analysis_keys() {
  using Spec = AnalysisSpec;
  auto const is = [](AnalysisOf of) { return [of](Spec const& a) { return a.of == of; }; };
  auto const on_plane = [](Spec const& a) { return a.of == AnalysisOf::field && a.sample == SampleShape::plane; };
  constexpr std::int64_t largest = 46340;  // squares fit 32 bits, as LAPACK counts
  static Keys<Spec> const keys{
      key<Spec>(
          "of", Choice<AnalysisOf>{}, [](auto& a) -> auto& { return a.of; }, "",
          "operator: the free part of the stiffness matrix; field: the solution on a lattice of points; snapshots: the solutions "
          "of all cases of a sweep on one mesh.")
          .must_be_given("operator, field or snapshots"),
      key<Spec>(
          "modes", Integer{0, 64}, [](auto& a) -> auto& { return a.modes; }, "",
          "operator: so many modes from either end of the spectrum are written; 0 computes values only. snapshots: at most so many "
          "modes are kept, and at least one.")
          .only("with of: operator or of: snapshots", [](Spec const& a) { return a.of != AnalysisOf::field; }),
      key<Spec>(
          "max_dense", Integer{1, largest}, [](auto& a) -> auto& { return a.max_dense; }, "unknowns",
          "Up to so many free unknowns the matrix is decomposed as a dense one; beyond, the extreme values are estimated from the "
          "coefficients of cg.")
          .only("with of: operator", is(AnalysisOf::operator_)),
      key<Spec>(
          "sample", Choice<SampleShape>{}, [](auto& a) -> auto& { return a.sample; }, "",
          "plane: a matrix of points on a plane across the mesh; box: points in the box around the mesh, unfolded in x, y and z.")
          .only("with of: field", is(AnalysisOf::field)),
      key<Spec>(
          "points", Integer{2, 16384, false, true}, [](auto& a) -> auto& { return a.points; }, "",
          "Points in each direction. auto: 256 on a plane, 64 in a box.")
          .only("with of: field", is(AnalysisOf::field)),
      key<Spec>(
          "normal", Choice<Direction>{}, [](auto& a) -> auto& { return a.normal; }, "", "Direction that is normal to the plane.")
          .only("with of: field and sample: plane", on_plane),
      key<Spec>(
          "at", OptionalNumber{}, [](auto& a) -> auto& { return a.at; }, "length",
          "Where the plane cuts that direction. auto: in the middle of the mesh.")
          .only("with of: field and sample: plane", on_plane),
      key<Spec>(
          "error", Number{0, 1}, [](auto& a) -> auto& { return a.error; }, "",
          "The smallest rank is found that has at most this relative error, in the Frobenius norm.")
          .only("with of: field", is(AnalysisOf::field)),
      key<Spec>(
          "leave_out", Integer{0, 99999, false, true}, [](auto& a) -> auto& { return a.leave_out; }, "",
          "Number of the case that the modes are not made from, but tried on. auto: the middle one.")
          .only("with of: snapshots", is(AnalysisOf::snapshots)),
  };
  return keys;
}

/// Some names of an enumeration, at least one.
template <class E>
struct SetOf {
  Choice<E> element;
  [[nodiscard]] std::string allowed() const { return "list of some of: " + element.allowed(); }
  void read(YamlNode const& node, std::string const& path, std::vector<E>& out) const {
    if (node.kind != YamlNode::Kind::list || node.items.empty())
      reject_value(node, path, allowed());
    std::vector<E> read;
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      E value{};
      std::string const item = path + "[" + std::to_string(i) + "]";
      element.read(node.items[i], item, value);
      if (std::find(read.begin(), read.end(), value) != read.end())
        reject(node.items[i].origin, item, "'" + element.write(value) + "' is given twice");
      read.push_back(value);
    }
    out = std::move(read);
  }
  [[nodiscard]] std::string write(std::vector<E> const& value) const {
    std::vector<std::string> names;
    for (E const e : value)
      names.push_back(element.write(e));
    return "[" + join(names) + "]";
  }
  [[nodiscard]] Json json_schema() const {
    return {{"type", "array"}, {"items", element.json_schema()}, {"minItems", 1}, {"uniqueItems", true}};
  }
};

struct Analyses {
  [[nodiscard]] std::string allowed() const { return "list of analyses such as {of: operator} or {of: field, error: 1.0e-6}"; }
  void read(YamlNode const& node, std::string const& path, std::vector<AnalysisSpec>& out) const {
    if (node.kind != YamlNode::Kind::list)
      reject_value(node, path, allowed());
    auto const check = [](YamlNode const& item, std::string const& of_item, AnalysisSpec const& spec) {
      constexpr std::int64_t most_in_box = 512;
      if (spec.of == AnalysisOf::field && spec.sample == SampleShape::box && spec.points_per_direction() > most_in_box)
        reject(item.find("points")->origin, of_item + ".points",
               "found '" + std::to_string(*spec.points) + "'; allowed in a box: integer from 2 to " + std::to_string(most_in_box));
    };
    read_maps(analysis_keys(), node, path, "an analysis such as {of: operator}", out, check);
  }
  [[nodiscard]] std::string write(std::vector<AnalysisSpec> const& value) const { return write_maps(analysis_keys(), value); }
  [[nodiscard]] Json json_schema() const { return {{"type", "array"}, {"items", json_schema_of(analysis_keys(), AnalysisSpec{})}}; }
};

struct PlainName {
  [[nodiscard]] std::string allowed() const { return "name of letters, digits and '_' that begins with no digit"; }
  void read(YamlNode const& node, std::string const& path, std::string& out) const {
    if (node.kind != YamlNode::Kind::scalar || !is_plain_name(node.text))
      reject_value(node, path, allowed());
    out = node.text;
  }
  [[nodiscard]] std::string write(std::string const& value) const { return plain_or_quoted(value); }
  [[nodiscard]] Json json_schema() const { return {{"type", "string"}, {"pattern", "^[A-Za-z_][A-Za-z0-9_]{0,59}$"}}; }
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

Keys<ProbeSpec> const& probe_keys() {
  static Keys<ProbeSpec> const keys{
      key<ProbeSpec>(
          "name", PlainName{}, [](auto& p) -> auto& { return p.name; }, "",
          "The quantities are probe.NAME and probe.NAME.gradient.")
          .must_be_given("a probe has a name"),
      key<ProbeSpec>(
          "at", ThreeOf<Number>{}, [](auto& p) -> auto& { return p.at; }, "length", "The point, which must be in the mesh.")
          .must_be_given("say where, [x, y, z]"),
  };
  return keys;
}

Keys<LineSpec> const& line_keys() {
  static Keys<LineSpec> const keys{
      key<LineSpec>(
          "name", PlainName{}, [](auto& l) -> auto& { return l.name; }, "", "The files are line_NAME.csv and line_NAME.png.")
          .must_be_given("a line has a name"),
      key<LineSpec>(
          "from", ThreeOf<Number>{}, [](auto& l) -> auto& { return l.from; }, "length", "The first point.")
          .must_be_given("say where, [x, y, z]"),
      key<LineSpec>(
          "to", ThreeOf<Number>{}, [](auto& l) -> auto& { return l.to; }, "length", "The last point.")
          .must_be_given("say where, [x, y, z]"),
      key<LineSpec>(
          "points", Integer{2, 1000000}, [](auto& l) -> auto& { return l.points; }, "", "How many, both ends included."),
  };
  return keys;
}

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

/// A list of maps.
template <class T>
struct List {
  Keys<T> const& (*keys)();
  std::string example;
  [[nodiscard]] std::string allowed() const { return "list of maps such as " + example; }
  void read(YamlNode const& node, std::string const& path, std::vector<T>& out) const {
    if (node.kind != YamlNode::Kind::list)
      reject_value(node, path, allowed());
    read_maps(keys(), node, path, "a map such as " + example, out, [](auto const&...) {});
  }
  [[nodiscard]] std::string write(std::vector<T> const& value) const { return write_maps(keys(), value); }
  [[nodiscard]] Json json_schema() const { return {{"type", "array"}, {"items", json_schema_of(keys(), T{})}}; }
};

Keys<CircleSpec> const& circle_keys() {
  static Keys<CircleSpec> const keys{
      key<CircleSpec>(
          "name", PlainName{}, [](auto& c) -> auto& { return c.name; }, "", "The files are circle_NAME.csv and circle_NAME.png.")
          .must_be_given("a circle has a name"),
      key<CircleSpec>(
          "center", ThreeOf<Number>{}, [](auto& c) -> auto& { return c.center; }, "length", "The middle of the circle.")
          .must_be_given("say where, [x, y, z]"),
      key<CircleSpec>(
          "normal", ThreeOf<Number>{}, [](auto& c) -> auto& { return c.normal; }, "",
          "Normal to the circle, of any length. Seen from its tip, angles grow counterclockwise, from the direction of x (of y "
          "where the normal is parallel to x)."),
      key<CircleSpec>(
          "radius", Number{0}, [](auto& c) -> auto& { return c.radius; }, "length", "The radius of the circle.")
          .must_be_given("say how large the circle is"),
      key<CircleSpec>(
          "points", Integer{2, 1000000}, [](auto& c) -> auto& { return c.points; }, "",
          "How many, those at 0 and 360 degrees included."),
  };
  return keys;
}

/// solver.tolerance: a number, or what follows from the discretisation.
struct Tolerance {
  Number number{0, 1, false, "discretization"};
  [[nodiscard]] std::string allowed() const { return number.allowed(); }
  void read(YamlNode const& node, std::string const& path, SolverOptions& out) const {
    out.to_discretization = node.kind == YamlNode::Kind::scalar && !node.quoted && node.text == "discretization";
    if (!out.to_discretization)
      number.read(node, path, out.tolerance);
  }
  [[nodiscard]] std::string write(SolverOptions const& value) const {
    return value.to_discretization ? "discretization" : number.write(value.tolerance);
  }
  [[nodiscard]] Json json_schema() const {
    return {{"anyOf", Json::array({Json{{"const", "discretization"}}, number.json_schema()})}};
  }
};

/// Two values, such as the points along the two edges of a plane.
template <class Type>
struct TwoOf {
  Type type;
  std::string what;  ///< "[n, m]"
  [[nodiscard]] std::string allowed() const { return what + ", each: " + type.allowed(); }
  template <class V>
  void read(YamlNode const& node, std::string const& path, std::array<V, 2>& out) const {
    if (node.kind != YamlNode::Kind::list || node.items.size() != 2)
      reject_value(node, path, allowed());
    for (std::size_t i = 0; i < 2; ++i)
      type.read(node.items[i], path + "[" + std::to_string(i) + "]", out[i]);
  }
  template <class V>
  [[nodiscard]] std::string write(std::array<V, 2> const& value) const {
    return "[" + type.write(value[0]) + ", " + type.write(value[1]) + "]";
  }
  [[nodiscard]] Json json_schema() const {
    return {{"type", "array"}, {"items", type.json_schema()}, {"minItems", 2}, {"maxItems", 2}};
  }
};

Keys<PlaneSpec> const& plane_keys() {
  static Keys<PlaneSpec> const keys{
      key<PlaneSpec>(
          "name", PlainName{}, [](auto& p) -> auto& { return p.name; }, "",
          "The files are plane_NAME.vts, plane_NAME.csv and plane_NAME.png.")
          .must_be_given("a plane has a name"),
      key<PlaneSpec>(
          "origin", ThreeOf<Number>{}, [](auto& p) -> auto& { return p.origin; }, "length", "A corner of the parallelogram.")
          .must_be_given("say where, [x, y, z]"),
      key<PlaneSpec>(
          "first", ThreeOf<Number>{}, [](auto& p) -> auto& { return p.first; }, "length", "The first edge from there, a vector.")
          .must_be_given("say where to, [x, y, z]"),
      key<PlaneSpec>(
          "second", ThreeOf<Number>{}, [](auto& p) -> auto& { return p.second; }, "length", "The second edge, a vector.")
          .must_be_given("say where to, [x, y, z]"),
      key<PlaneSpec>(
          "points", TwoOf<Integer>{{2, 1000}, "[n, m]"}, [](auto& p) -> auto& { return p.points; }, "",
          "How many along the first edge, and along the second one, both ends included."),
  };
  return keys;
}

Keys<SliceSpec> const& slice_keys() {
  static Keys<SliceSpec> const keys{
      key<SliceSpec>(
          "name", PlainName{}, [](auto& s) -> auto& { return s.name; }, "", "The file is slice_NAME.vtp.")
          .must_be_given("a slice has a name"),
      key<SliceSpec>(
          "origin", ThreeOf<Number>{}, [](auto& s) -> auto& { return s.origin; }, "length", "A point of the plane.")
          .must_be_given("say where, [x, y, z]"),
      key<SliceSpec>(
          "normal", ThreeOf<Number>{}, [](auto& s) -> auto& { return s.normal; }, "", "Normal to the plane, of any length."),
  };
  return keys;
}

Keys<PictureSpec> const& picture_keys() {
  auto const plane = [](PictureSpec const& p) { return p.has_plane(); };
  auto const colored = [](PictureSpec const& p) { return p.quantity != PictureQuantity::materials; };
  static Keys<PictureSpec> const keys{
      key<PictureSpec>(
          "name", PlainName{}, [](auto& p) -> auto& { return p.name; }, "", "The file is picture_NAME.png.")
          .must_be_given("a picture has a name"),
      key<PictureSpec>(
          "quantity", Choice<PictureQuantity>{}, [](auto& p) -> auto& { return p.quantity; }, "",
          "u; flux: |k grad u|; arrows: its direction in a plane, over |k grad u|; materials; coefficient: k of every cell, of "
          "three or six components the mean of xx, yy and zz; exact and error (u - exact) with problem.exact."),
      key<PictureSpec>(
          "normal", AutoChoice<Direction>{}, [](auto& p) -> auto& { return p.normal; }, "",
          "Cuts the mesh by a plane normal to this direction and shows the section. auto: the surface without an octant; with "
          "arrows the direction in which the mesh is thinnest."),
      key<PictureSpec>(
          "at", OptionalNumber{}, [](auto& p) -> auto& { return p.at; }, "length",
          "Where the plane cuts that direction. auto: in the middle of the mesh.")
          .only("with normal or quantity: arrows", plane),
      key<PictureSpec>(
          "view", AutoOr<ThreeOf<Number>>{{}, true}, [](auto& p) -> auto& { return p.view; }, "",
          "From where it is seen: a vector from the mesh towards the eye, of any length. With a plane what is in front of the "
          "plane is cut away. auto: three sides; with a plane the section alone, from the front."),
      key<PictureSpec>(
          "colors", AutoChoice<output::ColorMap>{}, [](auto& p) -> auto& { return p.colors; }, "",
          "Map of colors. auto: viridis for u, exact and coefficient, plasma for flux and arrows, diverging (around 0) for error.")
          .only("without quantity: materials", colored),
      key<PictureSpec>(
          "scale", AutoChoice<PictureScale>{}, [](auto& p) -> auto& { return p.scale; }, "",
          "linear; or log, of at most the six decades below the largest value (all of a coefficient), |error| for error. auto: log "
          "for a "
          "coefficient that spans more than two decades, else linear.")
          .only("without quantity: materials", colored),
      key<PictureSpec>(
          "range", AutoOr<TwoOf<Number>>{TwoOf<Number>{Number{}, "[low, high]"}, true}, [](auto& p) -> auto& { return p.range; },
          "as the quantity", "Values of the first and the last color. auto: all values.")
          .only("without quantity: materials", colored),
      key<PictureSpec>(
          "mesh", AutoOr<Boolean>{}, [](auto& p) -> auto& { return p.mesh; }, "",
          "Whether mesh lines are drawn. auto: on coarse meshes."),
      key<PictureSpec>(
          "size", AutoOr<TwoOf<Integer>>{TwoOf<Integer>{Integer{240, 8192}, "[width, height]"}, true},
          [](auto& p) -> auto& { return p.size; }, "pixels", "auto: [1200, 900], less where the mesh leaves much of it empty."),
  };
  return keys;
}

/// Different numbers.
struct Numbers {
  [[nodiscard]] std::string allowed() const { return "list of numbers, e.g. [0.2, 0.4]"; }
  void read(YamlNode const& node, std::string const& path, std::vector<double>& out) const {
    if (node.kind != YamlNode::Kind::list || node.items.empty())
      reject_value(node, path, allowed());
    out.clear();
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      double value = 0;
      Number{}.read(node.items[i], path + "[" + std::to_string(i) + "]", value);
      if (std::find(out.begin(), out.end(), value) != out.end())
        reject(node.items[i].origin, path + "[" + std::to_string(i) + "]", Number{}.write(value) + " is given twice");
      out.push_back(value);
    }
  }
  [[nodiscard]] std::string write(std::vector<double> const& value) const {
    std::vector<std::string> numbers;
    for (double const number : value)
      numbers.push_back(Number{}.write(number));
    return "[" + join(numbers) + "]";
  }
  [[nodiscard]] Json json_schema() const {
    return {{"type", "array"}, {"items", Number{}.json_schema()}, {"minItems", 1}, {"uniqueItems", true}};
  }
};

Keys<ContourSpec> const& contour_keys() {
  static Keys<ContourSpec> const keys{
      key<ContourSpec>(
          "name", PlainName{}, [](auto& c) -> auto& { return c.name; }, "", "The file is contour_NAME.vtp.")
          .must_be_given("contours have a name"),
      key<ContourSpec>(
          "values", Numbers{}, [](auto& c) -> auto& { return c.values; }, "as u", "Values of u.")
          .must_be_given("say which values of u"),
  };
  return keys;
}

/// A list of maps that have a name each.
template <class T>
struct Named {
  Keys<T> const& (*keys)();
  std::string example;
  [[nodiscard]] std::string allowed() const { return "list of maps such as " + example; }
  void read(YamlNode const& node, std::string const& path, std::vector<T>& out) const {
    if (node.kind != YamlNode::Kind::list)
      reject_value(node, path, allowed());
    read_maps(keys(), node, path, "a map such as " + example, out,
              [&](YamlNode const& item, std::string const& of_item, T const& spec) {
                for (std::size_t j = 0; j + 1 < out.size(); ++j)
                  if (out[j].name == spec.name)
                    reject(item.origin, of_item + ".name",
                           "the name '" + spec.name + "' belongs to " + path + "[" + std::to_string(j) + "] already");
              });
  }
  [[nodiscard]] std::string write(std::vector<T> const& value) const { return write_maps(keys(), value); }
  [[nodiscard]] Json json_schema() const { return {{"type", "array"}, {"items", json_schema_of(keys(), T{})}}; }
};

struct Quantities {
  [[nodiscard]] std::string allowed() const { return "map from names to expressions in the names of quantities"; }
  void read(YamlNode const& node, std::string const& path, std::vector<QuantitySpec>& out) const {
    if (node.kind != YamlNode::Kind::map)
      reject_value(node, path, allowed());
    out.clear();
    for (std::size_t i = 0; i < node.keys.size(); ++i) {
      auto const& [name, origin] = node.keys[i];
      std::string const full = path + "." + name;
      if (!is_plain_name(name))
        reject(origin, shorten(full), "allowed: " + PlainName{}.allowed());
      ExpressionText{}.read(node.items[i], full, out.emplace_back(QuantitySpec{name, ""}).value);
    }
  }
  [[nodiscard]] std::string write(std::vector<QuantitySpec> const& value) const {
    std::vector<std::string> entries;
    for (auto const& [name, expression] : value)
      entries.push_back(name + ": " + quoted_text(expression));
    return "{" + join(entries) + "}";
  }
  [[nodiscard]] Json json_schema() const { return {{"type", "object"}, {"additionalProperties", ExpressionText{}.json_schema()}}; }
};

struct Sweep {
  [[nodiscard]] std::string allowed() const {
    return "map from key paths to lists of values, e.g. {problem.element.order: [1, 2], solver.tolerance: [1e-6, 1e-12]}; its key "
           "mode: " +
           mode.allowed();
  }
  Choice<SweepMode> mode;
  void read(YamlNode const& node, std::string const& path, SweepSpec& out) const {
    if (node.kind != YamlNode::Kind::map)
      reject_value(node, path, allowed());
    out = {};
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      std::string const& name = node.keys[i].name;
      YamlNode const& values = node.items[i];
      if (name == "mode") {
        mode.read(values, path + ".mode", out.mode);
        continue;
      }
      if (values.kind != YamlNode::Kind::list || values.items.empty())
        reject_value(values, path + "." + name, "list of one value or more");
      SweepAxis& axis = out.axes.emplace_back();
      axis.path = name;
      for (auto const& value : values.items)
        axis.values.push_back(flow_text(value));
    }
  }
  [[nodiscard]] std::string write(SweepSpec const& value) const {
    std::vector<std::string> entries;
    for (auto const& axis : value.axes)
      entries.push_back(plain_or_quoted(axis.path) + ": [" + join(axis.values) + "]");
    if (!value.axes.empty())
      entries.push_back("mode: " + mode.write(value.mode));
    return "{" + join(entries) + "}";
  }
  [[nodiscard]] Json json_schema() const {
    return {{"type", "object"},
            {"properties", {{"mode", mode.json_schema()}}},
            {"additionalProperties", {{"type", "array"}, {"minItems", 1}}}};
  }
};

/// The member as a function of a RunConfig, const or not.
#define POISSON_MEMBER(member)                                                                                                     \
  [](auto& c) -> auto& {                                                                                                           \
    return c.member;                                                                                                               \
  }

/// Tells the keys of the elements of a list.
template <class T>
void describe_elements(Key<RunConfig>& k, Keys<T> const& keys, T const& example = {}) {
  for (auto const& inner : keys)
    k.inner_keys.push_back(inner.path);
  k.element = [&keys, example](std::string const& indent, std::string const& inner) {
    return document_element(keys, example, indent, inner);
  };
}

/// The schema shows an element in comments, since the list is empty by default.
void show_as_comments(Key<RunConfig>& k) {
  k.document = [element = k.element](std::string const& indent, std::string const& inner) {
    std::string lines = element(indent, inner);
    for (std::size_t at = 0; at < lines.size(); at = lines.find('\n', at) + 1)
      lines.insert(at + indent.size(), "# ");
    return lines;
  };
}

Keys<RunConfig> make_run_keys() {
  auto const generated = [](RunConfig const& c) { return c.problem.mesh.file.empty(); };
  auto const from_file = [](RunConfig const& c) { return !c.problem.mesh.file.empty(); };
  auto const box = [](RunConfig const& c) { return c.problem.mesh.file.empty() && c.problem.mesh.generator == "box"; };
  auto const other_generator = [](RunConfig const& c) { return c.problem.mesh.file.empty() && c.problem.mesh.generator != "box"; };
  std::int64_t const unlimited = std::numeric_limits<std::int64_t>::max();
  auto const declare = [](std::string path, auto type, auto access, std::string unit, std::string meaning) {
    return key<RunConfig>(std::move(path), std::move(type), access, std::move(unit), std::move(meaning));
  };

  Keys<RunConfig> keys{
      declare("parameters", Parameters{}, POISSON_MEMBER(problem.parameters), "",
              "Named constants for every expression and number below, {k_die: 150, t: \"k_die / 2\"}; swept as parameters.k_die. "
              "One that nothing uses is a warning, unless it is from an included file.")
          .or_null("none"),
      section<RunConfig>(
          "problem", "What is solved: -div(k grad u) = f on a mesh of hexahedra. Units are yours, as long as they are consistent."),
      section<RunConfig>("problem.mesh", "Either a generator or a file."),
      declare("problem.mesh.generator", Text{"box, or the name of a deal.II GridGenerator function such as hyper_shell"},
              POISSON_MEMBER(problem.mesh.generator), "",
              "Shape that the program builds; box is a brick, of equal or graded cells.")
          .or_null("box, or none with a file")
          .only("without problem.mesh.file; set one of the two to null", generated),
      declare("problem.mesh.arguments", GeneratorArguments{}, POISSON_MEMBER(problem.mesh.arguments), "",
              "Arguments of that function, without the triangulation.")
          .or_null("its defaults")
          .only("with a generator other than box", other_generator),
      declare("problem.mesh.origin", ThreeOf<Number>{}, POISSON_MEMBER(problem.mesh.origin), "length",
              "Corner of the box with the smallest x, y, z.")
          .or_null("the default")
          .only("with generator: box", box),
      declare("problem.mesh.extent", ThreeOf<Number>{{0}}, POISSON_MEMBER(problem.mesh.extent), "length",
              "Edge lengths of the box.")
          .or_null("the default")
          .only("with generator: box", box),
      declare("problem.mesh.cells", ThreeOf<Integer>{{1, 2147483647}}, POISSON_MEMBER(problem.mesh.cells), "",
              "Cells of the box in x, y, z.")
          .or_null("the default")
          .only("with generator: box", box),
      declare(
          "problem.mesh.growth", ThreeOf<Number>{{0}}, POISSON_MEMBER(problem.mesh.growth), "",
          "Grades the box in x, y, z: every cell is so many times as long as the one before it. 1: equal cells; less than 1: they "
          "shrink. Refinements halve every cell.")
          .or_null("the default")
          .only("with generator: box", box),
      declare("problem.mesh.growth_to", ThreeOf<Choice<assembly::GrowthTo>>{}, POISSON_MEMBER(problem.mesh.growth_to), "",
              "Until where cells grow in x, y, z: to the end of the box, or to its middle, from where on they shrink in the same "
              "way, so that both ends have the same cells.")
          .or_null("the default")
          .only("with generator: box", box),
      declare("problem.mesh.coordinates", BoxCoordinates{}, POISSON_MEMBER(problem.mesh), "length",
              "Where the vertices of the box are in a direction, {z: [0, 0.1, 0.5, 1]}; its origin, extent and cells follow. "
              "Refinements halve every cell.")
          .or_null("origin, extent, cells and growth say it")
          .only("with generator: box", box),
      declare("problem.mesh.file", Text{"path of a mesh file"}, POISSON_MEMBER(problem.mesh.file), "",
              "Mesh file instead of a generator (Gmsh, Abaqus, Exodus, Medit, MFEM, VTK, UCD, UNV; docs/usage.md), relative to the "
              "current directory or to "
              "this file.")
          .or_null("use the generator"),
      declare("problem.mesh.join", Boolean{}, POISSON_MEMBER(problem.mesh.join), "",
              "Whether nodes of the file that coincide (within 1e-9 of the smallest edge) are one. false: they stay apart, as the "
              "two sides of a crack.")
          .or_null("true")
          .only("with problem.mesh.file", from_file),
      declare("problem.mesh.array", Text{"name of an array"}, POISSON_MEMBER(problem.mesh.array), "",
              "Of a VTK file, the cell data with the materials of cells, and the ids of boundary faces unless boundary_array names "
              "others.")
          .or_null("found by usual names: material, MaterialIDs, gmsh:physical, CellEntityIds, ...")
          .only("with problem.mesh.file", from_file),
      declare("problem.mesh.boundary_array", Text{"name of an array"}, POISSON_MEMBER(problem.mesh.boundary_array), "",
              "Of a VTK file, the cell data with the ids of boundary faces, which are its quadrilaterals.")
          .or_null("boundary, boundary_id, ...; else the array of the materials")
          .only("with problem.mesh.file", from_file),
      declare("problem.mesh.step", AutoOr<Step>{}, POISSON_MEMBER(problem.mesh.step), "",
              "Of a VTKHDF file with several steps, which one, from 0. auto: it has one.")
          .only("with problem.mesh.file", from_file),
      declare("problem.mesh.scale", Number{0}, POISSON_MEMBER(problem.mesh.scale), "",
              "Every coordinate of the file is multiplied by it: 1e-3 where the file is in mm and the problem in m.")
          .or_null("the default")
          .only("with problem.mesh.file", from_file),
      declare("problem.mesh.refinements", Integer{0, 12}, POISSON_MEMBER(problem.mesh.refinements), "",
              "Global refinements; each splits every cell in 8."),
      declare("problem.mesh.boundaries", Named<assembly::NamedPlace>{place_keys, "{name: heater, where: \"z > 0.99 && x < 0.5\"}"},
              POISSON_MEMBER(problem.mesh.boundaries), "",
              "Names for the boundary faces whose centre satisfies an expression. If several match, the last one wins.")
          .or_null("none"),
      declare(
          "problem.mesh.regions", Named<assembly::NamedPlace>{region_keys, "{name: die, where: \"z < 0.1\"}"},
          POISSON_MEMBER(problem.mesh.regions), "",
          "Names for the cells whose centre satisfies an expression: materials of their own. If several match, the last one wins.")
          .or_null("none"),
      section<RunConfig>("problem.element", "Finite element."),
      declare("problem.element.order", Integer{1, 8}, POISSON_MEMBER(problem.order), "",
              "Polynomial order p of the element Q_p; 1 is trilinear."),
      declare("problem.quadrature", Integer{2, 20, false, true}, POISSON_MEMBER(problem.quadrature), "",
              "Gauss points in each direction of a cell, order + 1 or more; more see values that jump inside cells better. auto: "
              "order + 1, and more on curved cells of mesh files."),
      declare(
          "problem.fields", Named<FieldSpec>{field_keys, "{name: conductivity, file: k.vti}"}, POISSON_MEMBER(fields), "",
          "Fields in files, which every expression may use by their names: image data and grids of VTK (.vti, .vtr, .vtu, .hdf), "
          "earlier solutions, or tables of points.")
          .or_null("none"),
      key<RunConfig>(
          "problem.coefficient", Coefficient{}, [](auto& c) -> auto& { return c; }, "",
          "k: one > 0, three along x, y, z, the six [xx, yy, zz, xy, xz, yz] of a positive definite tensor, or {frame: name, "
          "principal: [k1, k2, k3]}; or any of these by material id or name of the mesh, or void: cells that are not there, whose "
          "surface is the boundary void_surface."),
      declare("problem.frames", Named<assembly::FrameSpec>{frame_keys, "{name: bedding, axis: [0, 1, 0], angle: 30}"},
              POISSON_MEMBER(problem.frames), "", "Coordinate systems for coefficients, turned about an axis.")
          .or_null("none"),
      key<RunConfig>(
          "problem.source", Source{}, [](auto& c) -> auto& { return c; }, "as k u / length^2",
          "f, the source density: one, or by material id or name of the mesh, 0 where neither that nor default says more."),
      declare("problem.source_total", OptionalNumber{}, POISSON_MEMBER(problem.source_total), "as k u length",
              "The integral of f: f is multiplied by the number that makes it so. auto: f is taken as it is."),
      declare("problem.point_sources", List<assembly::PointSource>{point_source_keys, "{at: [0.5, 0.5, 0.5], value: 1}"},
              POISSON_MEMBER(problem.point_sources), "", "Sources at points, beside f.")
          .or_null("none"),
      declare("problem.line_sources",
              List<assembly::LineSource>{line_source_keys, "{from: [0.5, 0.5, 0], to: [0.5, 0.5, 1], value: 1}"},
              POISSON_MEMBER(problem.line_sources), "", "Sources along straight lines, beside f.")
          .or_null("none"),
      declare("problem.boundary", BoundaryList{}, POISSON_MEMBER(problem.boundary), "",
              "Boundary conditions. Every boundary id of the mesh must be covered; a box has 0 .. 5 = -x +x -y +y -z +z.")
          .must_be_given("a list of conditions such as [{ids: all, type: dirichlet, value: \"0\"}]"),
      declare("problem.exact", ExpressionText{}, POISSON_MEMBER(problem.exact), "as u",
              "Exact solution, where known: errors are then reported.")
          .or_null("not known"),
      section<RunConfig>("matrix", "How the matrix is stored."),
      declare("matrix.format", AutoChoice<Format>{}, POISSON_MEMBER(matrix.format), "",
              "Sparse format; auto estimates conversion and products for every usable format and picks the fastest."),
      declare("matrix.expected_products", Integer{1, unlimited, false, true}, POISSON_MEMBER(matrix.expected_products), "",
              "Products with the matrix that auto expects. auto: 3 cbrt(rows) log10(1 / solver.tolerance) / 12, what cg takes on a "
              "box, and no more than solver.max_iterations."),
      declare("matrix.slice_size", Integer{1, 1024, true}, POISSON_MEMBER(matrix.slice_size), "rows",
              "Rows per slice of the sliced formats; cod_sell takes 2 to 256."),
      declare(
          "matrix.sigma", Integer{0, 2147483648, false, true}, POISSON_MEMBER(matrix.sigma), "rows",
          "Rows of a window that the sliced formats sort by length: 1 keeps all in place, 0 sorts all. auto: 1 of sell_c_sigma, 0 "
          "of cod_sell."),
      declare("matrix.threads_per_row", Integer{0, 32, true}, POISSON_MEMBER(matrix.threads_per_row), "",
              "Threads that share a row in crs_t on a GPU; 0 chooses by the mean length of the rows."),
      declare(
          "matrix.conversion", Choice<Conversion>{}, POISSON_MEMBER(matrix.conversion), "",
          "Where the format is made from csr: sequential by one thread of the host where the algorithm of cod_sell asks for it, "
          "host by all, device on the GPU, automatic on the GPU where its memory suffices."),
      declare("matrix.pair_window", Integer{1, 64}, POISSON_MEMBER(matrix.pair_window), "rows",
              "cod_sell: rows that follow a row and may become its partner."),
      declare("matrix.merge_window", Integer{1, 64}, POISSON_MEMBER(matrix.merge_window), "groups",
              "cod_sell: groups that follow a group and may be merged with it."),
      declare("matrix.base_candidates", Integer{0, 64}, POISSON_MEMBER(matrix.base_candidates), "columns",
              "cod_sell: leading columns of a row that its distances may count from; 0 takes log2 of its length, and one."),
      section<RunConfig>("solver", "How the system is solved."),
      declare("solver.method", Choice<Method>{}, POISSON_MEMBER(solver.method), "",
              "Krylov method: cg for symmetric positive definite matrices, bicgstab for any."),
      declare("solver.precision", Choice<Precision>{}, POISSON_MEMBER(solver.precision), "",
              "Arithmetic of the solver. refined: iterations in double, the solution and its residual in double_double; mixed: the "
              "same until it stagnates, then iterations in double_double; auto: double, and refined once double stagnates."),
      declare("solver.matrix_precision", Choice<MatrixPrecision>{}, POISSON_MEMBER(matrix.precision), "",
              "Precision in which matrix entries are stored, whatever the solver's; entries of assembled matrices are known in "
              "double."),
      declare("solver.preconditioner", Choice<PreconditionerKind>{}, POISSON_MEMBER(solver.preconditioner), "",
              "Preconditioner: the main diagonal (jacobi), an incomplete factorisation without fill (ic0 of symmetric positive "
              "definite matrices, ilu0 of any), or a cycle of multigrid. auto takes none, jacobi or multigrid by predicted time."),
      declare(
          "solver.shift", Number{0, std::numeric_limits<double>::infinity(), true}, POISSON_MEMBER(solver.shift), "",
          "ic0 and ilu0: this times the largest entry of its row is added to every diagonal entry before they are computed; 0.01 "
          "or more where a pivot is zero or negative."),
      declare("solver.ordering", Choice<Ordering>{}, POISSON_MEMBER(solver.ordering), "",
              "ic0 and ilu0: the order in which rows are eliminated. multicolor works on many rows at once, and takes some more "
              "iterations; auto takes it on a GPU where the natural order makes long chains of rows."),
      declare(
          "solver.tolerance", Tolerance{}, POISSON_MEMBER(solver), "",
          "The solver stops at this relative residual ||b - A x|| / ||b||; about 1e-15 is the least that double reaches on easy "
          "systems, and 1e-28 what the other precisions do. discretization: it stops when the algebraic error is far "
          "below the discretisation error, which the levels of multigrid estimate; on boxes of trilinear elements, with initial: "
          "nested."),
      declare("solver.initial", Choice<InitialGuess>{}, POISSON_MEMBER(solver.initial), "",
              "Where iterations begin: at 0, or nested, at what the levels of multigrid find from the coarsest on."),
      declare("solver.max_iterations", Integer{0, unlimited}, POISSON_MEMBER(solver.max_iterations), "",
              "The solver gives up after so many iterations."),
      section<RunConfig>("solver.multigrid", "Details of multigrid; the defaults are good."),
      declare("solver.multigrid.cycle", Choice<MultigridCycle>{}, POISSON_MEMBER(solver.multigrid.cycle), "",
              "Visits of the coarser levels: v one; w two; f a v-cycle after the first, for bicgstab only."),
      declare("solver.multigrid.smoother", Choice<MultigridSmoother>{}, POISSON_MEMBER(solver.multigrid.smoother), "",
              "Chebyshev's polynomial of the fourth kind of the given degree, or as many steps of damped Jacobi."),
      declare("solver.multigrid.degree", Integer{1, 10}, POISSON_MEMBER(solver.multigrid.degree), "",
              "Products with the matrix of a level before its correction, and after it."),
      declare(
          "solver.multigrid.precision", Choice<MultigridPrecision>{}, POISSON_MEMBER(solver.multigrid.precision), "",
          "Precision inside a cycle. half: single, and on a GPU matrices of large levels that were made by aggregation are in half "
          "precision, with the row sums that they have in double; for cells that are not stretched."),
      declare("solver.multigrid.levels", Integer{1, 100}, POISSON_MEMBER(solver.multigrid.levels), "",
              "Most levels, the finest included."),
      declare("solver.multigrid.coarse_size", Integer{1, 2000}, POISSON_MEMBER(solver.multigrid.coarse_size), "unknowns",
              "No coarser level is made of one with so few unknowns; its matrix is inverted."),
      declare("backend", AutoChoice<Backend>{}, POISSON_MEMBER(backend), "",
              "Where to compute; auto takes cuda when there is a device that works."),
      section<RunConfig>("analysis", "What is computed from the result."),
      declare("analysis.svd", Analyses{}, POISSON_MEMBER(analysis), "",
              "Singular value decompositions, one after the other, when the solution is written.")
          .or_null("none"),
      section<RunConfig>("output", "What is written."),
      declare("output.directory", Text{"path of a directory"}, POISSON_MEMBER(output.directory), "", "Where results go.")
          .or_null("results/NAME, NAME being the configuration file's name without extension"),
      declare("output.name", PlainName{}, POISSON_MEMBER(output.name), "",
              "Name of the solution in files for ParaView, tables, pictures and the page, such as temperature."),
      declare("output.unit", Text{"text"}, POISSON_MEMBER(output.unit), "",
              "Its unit, which pictures and the page show behind the name; nothing is converted.")
          .or_null("none"),
      declare("output.title", Text{"text"}, POISSON_MEMBER(output.title), "", "Title of pictures and of the page.")
          .or_null("the name of the configuration file"),
      section<RunConfig>("output.vtk", "Solution for ParaView."),
      declare("output.vtk.enabled", Boolean{}, POISSON_MEMBER(output.vtk_enabled), "", "Whether it is written."),
      declare(
          "output.vtk.format", AutoChoice<output::VtkFormat>{}, POISSON_MEMBER(output.vtk_format), "",
          "vtu: an unstructured grid (.vtu), for any mesh. image: of a box only, the smallest file and the fastest to write: image "
          "data (.vti), from order 2 on, and with graded cells, a rectilinear grid of the nodes (.vtr). hdf: the grid of vtu as "
          "VTKHDF (.hdf), for any "
          "mesh. "
          "auto: image for boxes, else vtu."),
      declare("output.vtk.fields", SetOf<SolutionField>{}, POISSON_MEMBER(output.vtk_fields), "",
              "What is written: u, exact and error at the nodes (exact and error with problem.exact), material, coefficient and "
              "flux on "
              "the cells. Not by default: gradient, the gradient of u on the cells, and flux_points, the flux at the nodes: the "
              "mean over the "
              "cells around each, for streamlines."),
      declare("output.vtk.compression", Choice<output::VtkCompression>{}, POISSON_MEMBER(output.vtk.compression), "",
              "Compression of the file: fast is LZ4, best is LZMA; in .hdf both are deflate."),
      declare("output.vtk.precision", Choice<output::VtkPrecision>{}, POISSON_MEMBER(output.vtk.precision), "",
              "Floating-point numbers in the file."),
      declare("output.picture", Boolean{}, POISSON_MEMBER(output.picture), "",
              "Whether pictures and plots (.png) are drawn: of the solution, of the materials where there are several, of what is "
              "below."),
      declare("output.picture_formats", SetOf<output::PictureFormat>{}, POISSON_MEMBER(output.picture_formats), "",
              "Formats in which pictures and plots are written; png always.")
          .or_null("png alone"),
      declare("output.report", Boolean{}, POISSON_MEMBER(output.report), "",
              "Whether the results are also written as a page to read in a browser (report.html), which needs no other file."),
      declare("output.probes", Named<ProbeSpec>{probe_keys, "{name: tip, at: [0.1, 0.2, 0.3]}"}, POISSON_MEMBER(output.probes), "",
              "Points at which u, its gradient and the flux -k grad u are evaluated, exactly, in cells of any order.")
          .or_null("none"),
      declare("output.lines", Named<LineSpec>{line_keys, "{name: axis, from: [0, 0, 0], to: [0, 0, 1], points: 101}"},
              POISSON_MEMBER(output.lines), "", "Lines along which they are written (.csv) and u is drawn (.png).")
          .or_null("none"),
      declare("output.circles", Named<CircleSpec>{circle_keys, "{name: rim, center: [0, 0, 0], normal: [0, 0, 1], radius: 0.4}"},
              POISSON_MEMBER(output.circles), "", "Circles along which they are written (.csv) and u is drawn (.png).")
          .or_null("none"),
      declare("output.planes",
              Named<PlaneSpec>{plane_keys, "{name: mid, origin: [0, 0, 0.5], first: [1, 0, 0], second: [0, 1, 0]}"},
              POISSON_MEMBER(output.planes), "", "Parallelograms on which they are written (.vts, .csv) and u is drawn (.png).")
          .or_null("none"),
      declare("output.slices", Named<SliceSpec>{slice_keys, "{name: mid, origin: [0, 0, 0.5], normal: [0, 0, 1]}"},
              POISSON_MEMBER(output.slices), "",
              "Planes whose part in the mesh is written as triangles (.vtp), with u, flux, material.")
          .or_null("none"),
      declare("output.contours", Named<ContourSpec>{contour_keys, "{name: levels, values: [0.2, 0.4]}"},
              POISSON_MEMBER(output.contours), "", "Surfaces where u has these values, written as triangles (.vtp).")
          .or_null("none"),
      declare("output.pictures", Named<PictureSpec>{picture_keys, "{name: inside, quantity: flux, normal: x}"},
              POISSON_MEMBER(output.pictures), "",
              "More pictures (.png), of quantities, in planes, by other colors; drawn whatever output.picture says.")
          .or_null("none"),
      declare("output.surface", Boolean{}, POISSON_MEMBER(output.surface), "",
              "Whether the boundary alone is written (surface.vtp): u and the flux at its nodes, ids and the flux outwards on its "
              "faces."),
      declare("output.quantities", Quantities{}, POISSON_MEMBER(output.quantities), "",
              "What else is computed, such as {resistance: \"(max - min) / flux.1\"}: from min, max, mean, energy, integral_u, "
              "integral_f, flux.NAME and area.NAME of every boundary and volume.NAME of every material (or its id; names with "
              "other signs in quotes: flux.\"hot wall\"), probe.NAME, probe.NAME.gradient.x "
              "(.y, .z), parameters and quantities before.")
          .or_null("none"),
      declare("sweep", Sweep{}, POISSON_MEMBER(sweep), "",
              "For `poisson sweep`: lists of values for any key paths; mode product runs every combination, zip the first values "
              "together, then the second ones and so on."),
  };
  for (auto& k : keys)
    if (k.path == "problem.mesh.boundaries")
      describe_elements(k, place_keys());
    else if (k.path == "problem.mesh.regions")
      describe_elements(k, region_keys());
    else if (k.path == "problem.fields")
      describe_elements(k, field_keys());
    else if (k.path == "problem.frames")
      describe_elements(k, frame_keys());
    else if (k.path == "problem.point_sources")
      describe_elements(k, point_source_keys());
    else if (k.path == "problem.line_sources")
      describe_elements(k, line_source_keys());
    else if (k.path == "output.probes")
      describe_elements(k, probe_keys());
    else if (k.path == "output.lines")
      describe_elements(k, line_keys());
    else if (k.path == "output.circles")
      describe_elements(k, circle_keys());
    else if (k.path == "output.planes")
      describe_elements(k, plane_keys());
    else if (k.path == "output.slices")
      describe_elements(k, slice_keys());
    else if (k.path == "output.contours")
      describe_elements(k, contour_keys());
    else if (k.path == "output.pictures") {
      describe_elements(k, picture_keys());
      show_as_comments(k);
    } else if (k.path == "problem.boundary") {
      assembly::BoundaryCondition example;
      example.all_ids = true;
      describe_elements(k, boundary_keys(), example);
      k.document = k.element;
    } else if (k.path == "analysis.svd") {
      describe_elements(k, analysis_keys());
      show_as_comments(k);
    }
  return keys;
}

#undef POISSON_MEMBER

/// The YAML text of a key's default when that is a list, else empty.
std::string default_list(std::string const& path) {
  for (auto const& k : run_keys())
    if (k.read && k.path == path) {
      RunConfig const defaults;
      std::string text = k.write(defaults);
      return text.starts_with('[') && text != "[]" ? text : "";
    }
  return "";
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

void check_sweep(YamlNode const& root, SweepSpec const& sweep) {
  constexpr std::size_t max_cases = 100000;
  std::size_t n_cases = 1;
  for (auto const& axis : sweep.axes) {
    std::string const key = "sweep." + axis.path;
    Origin origin = root.origin;
    YamlNode const* const map = root.find("sweep");
    for (std::size_t i = 0; map && i < map->keys.size(); ++i)
      if (map->keys[i].name == axis.path)
        origin = map->keys[i].origin;
    auto const steps = split_path(axis.path);
    if (steps.empty() || steps[0].name == "sweep" || steps[0].name == "output")
      reject(origin, key,
             "cannot be swept; allowed: key paths of parameters, problem, matrix, solver and backend, e.g. problem.element.order");
    YamlNode changed = root;
    apply_set(changed, axis.path + "=" + axis.values.front(), origin.text() + ": sweep of");
    check_names(changed, run_key_paths());
    if (sweep.mode == SweepMode::zip && axis.values.size() != sweep.axes.front().values.size())
      reject(origin, key,
             "has " + std::to_string(axis.values.size()) + " values, but " + sweep.axes.front().path + " has " +
                 std::to_string(sweep.axes.front().values.size()) + "; with mode: zip all lists have the same length");
    n_cases = sweep.mode == SweepMode::zip ? axis.values.size() : n_cases * axis.values.size();
    if (n_cases > max_cases)
      reject(origin, key, "the sweep has more than " + std::to_string(max_cases) + " cases; shorten its lists, or use mode: zip");
  }
}

/// Snapshots are vectors of one space, and some are needed beside the one that is left out.
void check_snapshots(YamlNode const& root, RunConfig const& config) {
  if (config.sweep.axes.empty())
    return;
  std::int64_t n_cases =
      config.sweep.mode == SweepMode::zip ? static_cast<std::int64_t>(config.sweep.axes.front().values.size()) : 1;
  for (std::size_t a = 0; config.sweep.mode == SweepMode::product && a < config.sweep.axes.size(); ++a)
    n_cases *= static_cast<std::int64_t>(config.sweep.axes[a].values.size());
  for (std::size_t i = 0; i < config.analysis.size(); ++i) {
    AnalysisSpec const& spec = config.analysis[i];
    if (spec.of != AnalysisOf::snapshots)
      continue;
    std::string const path = "analysis.svd[" + std::to_string(i) + "]";
    auto const refuse = [&](std::string const& key, std::string const& what) {
      reject(locate_path(root, path + key).origin, path + key, what);
    };
    for (auto const& axis : config.sweep.axes)
      if (axis.path == "problem" || axis.path.starts_with("problem.mesh") || axis.path.starts_with("problem.element"))
        refuse(".of", "snapshots need one mesh and element in all cases of the sweep, and this one sweeps over " + axis.path);
    if (n_cases < 2)
      refuse(".of", "snapshots need a sweep of two cases or more: all but one make the modes, that one tries them");
    if (spec.leave_out && *spec.leave_out >= n_cases)
      refuse(".leave_out",
             "found '" + std::to_string(*spec.leave_out) + "'; the sweep has cases 0 to " + std::to_string(n_cases - 1));
  }
}

/// A field must have a name that expressions have no other meaning for.
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

void check_initial(YamlNode const& root, RunConfig const& config) {
  SolverOptions const& solver = config.solver;
  auto const refuse = [&](char const* key, std::string const& what) { reject(locate_path(root, key).origin, key, what); };
  bool const levels =
      solver.preconditioner == PreconditionerKind::automatic || solver.preconditioner == PreconditionerKind::multigrid;
  if (solver.initial == InitialGuess::nested && !levels)
    refuse("solver.initial", "nested needs the levels of multigrid; use solver.preconditioner: multigrid, or auto");
  if (!solver.to_discretization)
    return;
  if (solver.initial != InitialGuess::nested)
    refuse("solver.tolerance", "discretization needs solver.initial: nested, from whose levels the error is estimated");
  if (config.system || !config.is_box() || config.problem.order != 1)
    refuse("solver.tolerance", "discretization is for boxes of elements of order 1, whose coarser levels are meshes as well");
  if (config.problem.mesh.is_graded())
    refuse("solver.tolerance", "discretization is for boxes of equal cells, and problem.mesh.growth or coordinates grade this one");
}

void check_output(YamlNode const& root, RunConfig const& config) {
  for (char const* const taken : {"x", "y", "z", "exact", "error", "material", "coefficient", "flux", "flux_points", "gradient",
                                  "point", "distance", "angle"})
    if (config.output.name == taken)
      reject(locate_path(root, "output.name").origin, "output.name",
             "'" + config.output.name + "' is what another column or array is called; choose another name");
  if (config.output.vtk_format == output::VtkFormat::image && !config.is_box())
    reject(locate_path(root, "output.vtk.format").origin, "output.vtk.format",
           "found 'image', which is for generator: box only; allowed for this mesh: auto, vtu, hdf");
  for (std::size_t i = 0; i < config.output.circles.size(); ++i) {
    std::string const path = "output.circles[" + std::to_string(i) + "].normal";
    if (auto const& n = config.output.circles[i].normal; !(std::hypot(n[0], n[1], n[2]) > 0))
      reject(locate_path(root, path).origin, path, "found [0, 0, 0], which has no direction");
  }
  for (std::size_t i = 0; i < config.output.slices.size(); ++i) {
    std::string const path = "output.slices[" + std::to_string(i) + "].normal";
    if (auto const& n = config.output.slices[i].normal; !(std::hypot(n[0], n[1], n[2]) > 0))
      reject(locate_path(root, path).origin, path, "found [0, 0, 0], which has no direction");
  }
  for (std::size_t i = 0; i < config.output.planes.size(); ++i) {
    std::string const path = "output.planes[" + std::to_string(i) + "].second";
    auto const &a = config.output.planes[i].first, &b = config.output.planes[i].second;
    double const lengths = std::hypot(a[0], a[1], a[2]) * std::hypot(b[0], b[1], b[2]);
    double const area = std::hypot(a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]);
    if (!(area > 1e-10 * lengths))
      reject(locate_path(root, path).origin, path, "the edges 'first' and 'second' are zero or parallel; they must span a plane");
  }
}

void check_pictures(YamlNode const& root, RunConfig const& config) {
  for (std::size_t i = 0; i < config.output.pictures.size(); ++i) {
    PictureSpec const& picture = config.output.pictures[i];
    std::string const path = "output.pictures[" + std::to_string(i) + "]";
    auto const refuse = [&](std::string const& key, std::string const& what) {
      reject(locate_path(root, path + key).origin, path + key, what);
    };
    bool const needs_exact = picture.quantity == PictureQuantity::error || picture.quantity == PictureQuantity::exact;
    if (needs_exact && !config.problem.exact)
      refuse(".quantity", "found '" + std::string(name_of(picture.quantity)) + "', which needs problem.exact, the exact solution");
    if (picture.view && !(std::hypot((*picture.view)[0], (*picture.view)[1], (*picture.view)[2]) > 0))
      refuse(".view", "found [0, 0, 0], which has no direction");
    if (picture.view && picture.quantity == PictureQuantity::arrows)
      refuse(".view", "cannot be given with quantity: arrows, which are seen from the front of their plane");
    if (picture.range && !((*picture.range)[0] < (*picture.range)[1]))
      refuse(".range", "found " + TwoOf<Number>{}.write(*picture.range) + "; the first number must be less than the second one");
    if (picture.range && picture.scale == PictureScale::log && !((*picture.range)[0] > 0))
      refuse(".range[0]", "found " + Number{}.write((*picture.range)[0]) + "; with scale: log it must be > 0");
  }
}

/// The first key below `node` that is none of system_keys; a section of theirs is looked into.
void check_system_below(YamlNode const& node, std::string const& path) {
  auto const& keys = system_keys();
  for (std::size_t i = 0; i < node.keys.size(); ++i) {
    std::string const full = path.empty() ? node.keys[i].name : path + "." + node.keys[i].name;
    YamlNode const& item = node.items[i];
    auto const is = [&](auto const& k) { return k.read && k.path == full; };
    if (std::any_of(keys.begin(), keys.end(), is))
      continue;
    auto const below = [&](auto const& k) { return k.path.starts_with(full + "."); };
    bool const section = std::any_of(keys.begin(), keys.end(), below);
    if (item.kind == YamlNode::Kind::map && !item.items.empty())
      check_system_below(item, full);
    else if (!section)
      reject(node.keys[i].origin, full,
             "belongs to a problem on a mesh, and 'poisson solve' has a matrix; allowed: keys of matrix, solver and output "
             "(without vtk), and backend");
  }
}

}  // namespace

Keys<RunConfig> const& run_keys() {
  static Keys<RunConfig> const keys = make_run_keys();
  return keys;
}

Keys<RunConfig> const& system_keys() {
  static Keys<RunConfig> const keys = [] {
    Keys<RunConfig> chosen;
    for (auto const& k : run_keys()) {
      std::string const top = k.path.substr(0, k.path.find('.'));
      bool const solves = top == "matrix" || top == "solver" || top == "backend" || top == "output";
      bool const of_mesh = k.path.starts_with("output.vtk") || k.path == "output.probes" || k.path == "output.lines" ||
                           k.path == "output.circles" || k.path == "output.planes" || k.path == "output.surface" ||
                           k.path == "output.slices" || k.path == "output.contours" || k.path == "output.pictures" ||
                           k.path == "output.quantities" || k.path == "output.name" || k.path == "output.unit";
      if (solves && !of_mesh)
        chosen.push_back(k);
    }
    return chosen;
  }();
  return keys;
}

std::vector<std::string> const& run_key_paths() {
  static std::vector<std::string> const paths = [] {
    std::vector<std::string> all;
    for (auto const& k : run_keys()) {
      if (k.read)
        all.push_back(k.path);
      for (auto const& inner : k.inner_keys)
        all.push_back(k.path + "[]." + inner);
    }
    return all;
  }();
  return paths;
}

void check_solver(YamlNode const& root, RunConfig const& config) {
  check_initial(root, config);
  if (config.solver.multigrid.cycle == MultigridCycle::f && needs_symmetry(config.solver.method))
    reject(locate_path(root, "solver.multigrid.cycle").origin, "solver.multigrid.cycle",
           "found 'f', which is not symmetric, and cg needs that; take v or w, or the method bicgstab");
}

void apply_coordinates(YamlNode const& root, RunConfig& config) {
  check_coordinates(root, config);
  for (std::size_t d = 0; d < 3; ++d)
    if (auto x = config.problem.mesh.coordinates[d]; !x.empty())
      config.problem.mesh.set_coordinates(d, std::move(x));
}

void check_run(YamlNode const& root, RunConfig const& config) {
  check_boundary(root, config.problem);
  check_sweep(root, config.sweep);
  check_snapshots(root, config);
  check_output(root, config);
  check_pictures(root, config);
  check_fields(root, config);
  check_solver(root, config);
}

void check_system(YamlNode const& root) {
  check_system_below(root, "");
}

void apply_set(YamlNode& root, std::string const& set, std::string_view origin) {
  std::string const source = std::string(origin) + " " + shorten(set, 200);
  auto const equals = set.find('=');
  auto const steps = split_path(std::string_view(set).substr(0, std::min(equals, set.size())));
  if (equals == std::string::npos || steps.empty())
    throw ConfigError("", source + ": not of the form key.path=value, e.g. solver.tolerance=1e-8 or problem.boundary[0].value=1");
  YamlNode value = parse_yaml(std::string_view(set).substr(equals + 1), source, false);
  Origin const here = value.origin;

  YamlNode* node = &root;
  std::string path;
  for (auto const& step : steps) {
    if (node->kind == YamlNode::Kind::null) {
      std::string const text = step.index ? default_list(path) : "{}";
      if (!text.empty())
        *node = parse_yaml(text, source, false);
    }
    if (node->kind == YamlNode::Kind::list) {
      std::size_t i = 0;
      auto const [end, error] = std::from_chars(step.name.data(), step.name.data() + step.name.size(), i);
      if (!step.index || error != std::errc{} || end != step.name.data() + step.name.size() || i >= node->items.size())
        reject(here, path + (step.index ? "[" + step.name + "]" : "." + step.name),
               "is not there: " + path + " is a list of " + std::to_string(node->items.size()) + ", numbered from [0]");
      node = &node->items[i];
    } else if (node->kind == YamlNode::Kind::map) {
      YamlNode* next = node->find(step.name);
      if (!next) {
        node->keys.push_back({step.name, here});
        next = &node->items.emplace_back();
        next->origin = here;
      }
      node = next;
    } else {
      reject(here, path + (step.index ? "[" + step.name + "]" : "." + step.name),
             "is not there: " + path + " is " + (node->kind == YamlNode::Kind::null ? "not given" : "the value " + found(*node)) +
                 "; set " + path + " as a whole");
    }
    path += step.index ? "[" + step.name + "]" : (path.empty() ? "" : ".") + step.name;
  }
  *node = std::move(value);
}

}  // namespace poisson::app::schema
