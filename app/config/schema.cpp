#include "app/config/schema.hpp"

#include "assembly/expression/expression.hpp"
#include "gpu/core/nearest_name.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>

namespace poisson::app::schema {

void reject(Origin const& origin, std::string const& path, std::string const& message) {
  throw ConfigError(path, origin.text() + ": " + path + ": " + message);
}

std::string shorten(std::string const& text, std::size_t longest) {
  if (text.size() <= longest)
    return text;
  std::size_t end = longest;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0u) == 0x80u)
    --end;  // not within a UTF-8 character
  return text.substr(0, end) + "...";
}

std::string found(YamlNode const& node) {
  switch (node.kind) {
  case YamlNode::Kind::null:
    return "nothing";
  case YamlNode::Kind::list:
    return "a list of " + std::to_string(node.items.size());
  case YamlNode::Kind::map:
    return "a map (text that contains ': ' needs quotes, an expression with '?' and ':' too, as in --set "
           "'problem.source=\"x > 0.5 ? 1 : 0\"')";
  case YamlNode::Kind::scalar:
    break;
  }
  std::string text = shorten(node.text);
  std::replace(text.begin(), text.end(), '\n', ' ');
  return node.quoted ? "the text \"" + text + "\"" : "'" + text + "'";
}

void reject_value(YamlNode const& node, std::string const& path, std::string const& allowed) {
  reject(node.origin, path, "found " + found(node) + "; allowed: " + allowed);
}

std::string join(std::vector<std::string> const& words, std::string_view separator) {
  std::string out;
  for (auto const& word : words)
    out.append(out.empty() ? "" : separator).append(word);
  return out;
}

namespace {

std::string last_name(std::string const& path) {
  return path.substr(path.find_last_of('.') + 1);
}

enum class Numeral { none, finite, infinite };
Numeral parse_number(YamlNode const& node, double& value) {
  if (node.kind != YamlNode::Kind::scalar || node.quoted)
    return Numeral::none;
  std::string text = node.text;
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::string_view digits = text;
  if (digits.starts_with('+') || (digits.starts_with('-') && digits.substr(1) == ".inf"))
    digits.remove_prefix(1);
  if (digits == ".nan" || digits == ".inf" || digits == "nan" || digits == "inf")
    return Numeral::infinite;
  if (digits.empty() || (digits != text && digits[0] == '-'))
    return Numeral::none;
  auto const [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (end != digits.data() + digits.size() || error == std::errc::invalid_argument)
    return Numeral::none;
  return error == std::errc::result_out_of_range || !std::isfinite(value) ? Numeral::infinite : Numeral::finite;
}

/// reject_value, with what is wrong with the expression, if it is one.
[[noreturn]] void reject_number(YamlNode const& node, std::string const& path, std::string const& allowed, std::string const& why) {
  reject_value(node, path, allowed + (why.empty() ? "" : "; or an expression in the parameters, and as such: " + why));
}

}  // namespace

std::optional<double> evaluate(YamlNode const& node, std::string& why) {
  YamlNode plain = node;
  plain.quoted = false;
  double number = 0;
  if (node.kind != YamlNode::Kind::scalar || parse_number(plain, number) != Numeral::none)
    return std::nullopt;
  static assembly::Constants const none;
  assembly::Constants const& constants = node.parameters ? *node.parameters : none;
  try {
    assembly::Expression const expression(node.text, "", constants);
    if (expression.is_constant() && std::isfinite(expression(0, 0, 0)))
      return expression(0, 0, 0);
    why = expression.is_constant() ? "it is not finite" : "x, y and z have no meaning here";
  } catch (InputError const& error) {
    if (!constants.empty() || node.text.find_first_of("+*/^(", 1) != std::string::npos)
      why = std::string(error.what()).substr(0, std::string_view(error.what()).find('\n'));
  }
  return std::nullopt;
}

std::string Integer::allowed() const {
  std::string const kind = std::string(or_auto ? "auto, " : "") + (!power_of_two ? "integer"
                                                                   : lowest == 0 ? "0 or a power of two"
                                                                                 : "power of two");
  if (highest == std::numeric_limits<std::int64_t>::max())
    return kind + " >= " + std::to_string(lowest);
  return kind + " from " + std::to_string(power_of_two ? std::max<std::int64_t>(lowest, 1) : lowest) + " to " +
         std::to_string(highest);
}

std::int64_t Integer::parse(YamlNode const& node, std::string const& path) const {
  std::string why;
  if (auto const computed = evaluate(node, why)) {
    YamlNode rounded = node;
    rounded.quoted = false;
    rounded.text = Number{}.write(*computed);
    if (std::abs(*computed) < 9e18 && std::abs(*computed - std::round(*computed)) <= 1e-9 * std::abs(*computed))
      rounded.text = std::to_string(static_cast<std::int64_t>(std::round(*computed)));
    try {
      return parse(rounded, path);
    } catch (ConfigError const&) {
      reject(node.origin, path, "found " + found(node) + ", which is " + rounded.text + "; allowed: " + allowed());
    }
  }
  if (node.kind != YamlNode::Kind::scalar || node.quoted)
    reject_number(node, path, allowed(), why);
  std::string_view digits = node.text;
  if (digits.size() > 1 && digits[0] == '+' && digits[1] != '-')
    digits.remove_prefix(1);
  std::int64_t value = 0;
  auto const [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (end != digits.data() + digits.size() || error != std::errc{} || value < lowest || value > highest ||
      (power_of_two && (value & (value - 1)) != 0))
    reject_number(node, path, allowed(), why);
  return value;
}

std::string Number::allowed() const {
  std::vector<std::string> bounds;
  if (std::isfinite(above))
    bounds.push_back((or_equal ? ">= " : "> ") + write(above));
  if (std::isfinite(below))
    bounds.push_back("< " + write(below));
  return (or_word.empty() ? "" : or_word + ", ") + "finite number" + (bounds.empty() ? "" : " " + join(bounds, " and "));
}

void Number::read(YamlNode const& node, std::string const& path, double& out) const {
  double value = 0;
  std::string why;
  auto const computed = evaluate(node, why);
  auto const within = [&](double number) { return (or_equal ? number >= above : number > above) && number < below; };
  if (computed && !within(*computed))
    reject(node.origin, path, "found " + found(node) + ", which is " + write(*computed) + "; allowed: " + allowed());
  if (!computed && (parse_number(node, value) != Numeral::finite || !within(value)))
    reject_number(node, path, allowed(), why);
  out = computed.value_or(value);
}

void OptionalNumber::read(YamlNode const& node, std::string const& path, std::optional<double>& out) const {
  if (node.kind == YamlNode::Kind::scalar && !node.quoted && node.text == "auto") {
    out.reset();
    return;
  }
  double value = 0;
  std::string why;
  auto const computed = evaluate(node, why);
  if (!computed && parse_number(node, value) != Numeral::finite)
    reject_number(node, path, allowed(), why);
  out = computed.value_or(value);
}

std::string Number::write(double value) const {
  std::array<char, 32> buffer{};
  auto const end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  std::string text(buffer.data(), end);
  // YAML 1.1 readers (PyYAML) take 1e-12 for a string, 1.0e-12 for a number.
  if (auto const exponent = text.find('e'); exponent != std::string::npos && text.find('.') == std::string::npos)
    text.insert(exponent, ".0");
  return text;
}

void Boolean::read(YamlNode const& node, std::string const& path, bool& out) const {
  bool const scalar = node.kind == YamlNode::Kind::scalar && !node.quoted;
  if (scalar && (node.text == "true" || node.text == "True" || node.text == "TRUE"))
    out = true;
  else if (scalar && (node.text == "false" || node.text == "False" || node.text == "FALSE"))
    out = false;
  else
    reject_value(node, path, allowed());
}

void Text::read(YamlNode const& node, std::string const& path, std::string& out) const {
  if (node.kind != YamlNode::Kind::scalar || node.text.empty() || node.text.find('\n') != std::string::npos)
    reject_value(node, path, allowed());
  out = node.text;
}

void ExpressionText::read(YamlNode const& node, std::string const& path, std::string& out) const {
  double value = 0;
  if (node.kind != YamlNode::Kind::scalar || node.text.find_first_not_of(" \t\n") == std::string::npos)
    reject_value(node, path, allowed());
  if (parse_number(node, value) == Numeral::infinite)
    reject(node.origin, path, "found " + found(node) + ", which is not finite in double precision; allowed: " + allowed());
  out = node.text;
}

void ExpressionText::read(YamlNode const& node, std::string const& path, std::optional<std::string>& out) const {
  read(node, path, out.emplace());
}

std::string parse_choice(YamlNode const& node, std::string const& path, std::vector<std::string> const& names,
                         std::vector<std::string> const& planned) {
  auto const has = [&](std::vector<std::string> const& list) {
    return std::find(list.begin(), list.end(), node.text) != list.end();
  };
  if (node.kind != YamlNode::Kind::scalar)
    reject_value(node, path, join(names));
  if (has(names))
    return node.text;
  if (has(planned))
    reject(node.origin, path, "'" + node.text + "' is not available in this version; allowed: " + join(names));
  std::string const near = nearest_name(node.text, names);
  reject(node.origin, path,
         "found " + found(node) + (near.empty() ? "" : "; did you mean '" + near + "'?") +
             (near.empty() ? "; allowed: " : " Allowed: ") + join(names));
}

void check_list_of_three(YamlNode const& node, std::string const& path, std::string const& allowed) {
  if (node.kind != YamlNode::Kind::list || node.items.size() != 3)
    reject_value(node, path, allowed);
}

namespace {

/// The value that YAML's core schema gives a node.
Json json_of(YamlNode const& node) {
  switch (node.kind) {
  case YamlNode::Kind::null:
    return nullptr;
  case YamlNode::Kind::list: {
    Json list = Json::array();
    for (auto const& item : node.items)
      list.push_back(json_of(item));
    return list;
  }
  case YamlNode::Kind::map: {
    Json map = Json::object();
    for (std::size_t i = 0; i < node.items.size(); ++i)
      map[node.keys[i].name] = json_of(node.items[i]);
    return map;
  }
  case YamlNode::Kind::scalar:
    break;
  }
  if (node.quoted)
    return node.text;
  if (node.text == "true" || node.text == "false")
    return node.text == "true";
  std::int64_t integer = 0;
  auto const* const end = node.text.data() + node.text.size();
  if (auto const parsed = std::from_chars(node.text.data(), end, integer); parsed.ec == std::errc{} && parsed.ptr == end)
    return integer;
  if (double number = 0; parse_number(node, number) == Numeral::finite)
    return number;
  return node.text;
}

Json json_auto_or(Json other) {
  return {{"anyOf", Json::array({Json{{"const", "auto"}}, std::move(other)})}};
}

void allow_null(Json& schema) {
  if (schema.contains("anyOf")) {
    schema["anyOf"].push_back(Json{{"type", "null"}});
    return;
  }
  Json& type = schema["type"];
  if (!type.is_array())
    type = Json::array({type});
  type.push_back("null");
  if (schema.contains("enum"))
    schema["enum"].push_back(nullptr);
}

/// A number may be an expression in the parameters; digits alone in quotes are none.
constexpr char const* expression_pattern = "[^-+.0-9eE ]";

}  // namespace

Json Integer::json_schema() const {
  Json schema{{"type", {"integer", "string"}}, {"pattern", expression_pattern}};
  if (power_of_two) {
    Json values = Json::array();
    if (lowest == 0)
      values.push_back(0);
    for (std::int64_t value = 1; value <= highest; value *= 2)
      if (value >= lowest)
        values.push_back(value);
    schema = {{"type", "integer"}, {"enum", std::move(values)}};
  } else {
    schema["minimum"] = lowest;
    if (highest != std::numeric_limits<std::int64_t>::max())
      schema["maximum"] = highest;
  }
  return or_auto ? json_auto_or(std::move(schema)) : schema;
}

Json Number::json_schema() const {
  Json schema{{"type", {"number", "string"}}, {"pattern", expression_pattern}};
  if (std::isfinite(above))
    schema[or_equal ? "minimum" : "exclusiveMinimum"] = above;
  if (std::isfinite(below))
    schema["exclusiveMaximum"] = below;
  return schema;
}

Json OptionalNumber::json_schema() const {
  return json_auto_or(Number{}.json_schema());
}

Json Text::json_schema() const {
  return {{"type", {"string", "number"}}, {"minLength", 1}};  // a number is text too, as it is written
}

Json& JsonMap::owner(std::string const& path, bool required) {
  Json* map = &root_;
  for (std::size_t begin = 0;;) {
    std::size_t const end = path.find('.', begin);
    std::string const name = path.substr(begin, end - begin);
    if (required) {
      (*map)["type"] = "object";
      Json& names = (*map)["required"];
      if (std::find(names.begin(), names.end(), Json(name)) == names.end())
        names.push_back(name);
    }
    if (end == std::string::npos)
      return *map;
    map = &(*map)["properties"][name];
    begin = end + 1;
  }
}

KeyText::KeyText(std::string_view path_, std::string_view unit_, std::string_view meaning_, std::string allowed_)
    : path(path_), unit(unit_), meaning(meaning_), allowed(std::move(allowed_)) {}

KeyText::KeyText(KeyText const&) = default;
KeyText::KeyText(KeyText&&) noexcept = default;
KeyText& KeyText::operator=(KeyText const&) = default;
KeyText& KeyText::operator=(KeyText&&) noexcept = default;
KeyText::~KeyText() = default;

std::string KeyText::explanation() const {
  return meaning + (unit.empty() ? "" : " Unit: " + unit + ".");
}

std::string KeyText::rules() const {
  return "Allowed: " + allowed + "." + (absent.empty() ? "" : " null: " + absent + ".") +
         (condition.empty() ? "" : " Only " + condition + ".") + (required_text.empty() ? "" : " Required.");
}

KeyText::Lines KeyText::in_comments(Lines element) {
  return [element = std::move(element)](std::string const& indent, std::string const& inner) {
    std::string lines = element(indent, inner);
    for (std::size_t at = 0; at < lines.size(); at = lines.find('\n', at) + 1)
      lines.insert(at + indent.size(), "# ");
    return lines;
  };
}

void JsonMap::section(std::string const& path, std::string const& description) {
  owner(path, false)["properties"][last_name(path)] = {
      {"description", description}, {"type", {"object", "null"}}, {"additionalProperties", false}, {"properties", Json::object()}};
}

void JsonMap::value(std::string const& path, Value value) {
  Json schema{{"description", std::move(value.description)}};
  if (value.may_be_null)
    allow_null(value.schema);
  schema.update(value.schema);
  if (!value.initial.empty())
    schema["default"] = json_of(parse_yaml(value.initial, path, false));
  owner(path, value.required)["properties"][last_name(path)] = std::move(schema);
}

YamlNode const* descend(YamlNode const& map, std::string_view path) {
  YamlNode const* node = &map;
  while (node && !path.empty()) {
    auto const end = std::min(path.find('.'), path.size());
    node = node->find(path.substr(0, end));
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return node;
}

std::string Layout::indent(std::string const& path) const {
  return base_ + std::string(2 * static_cast<std::size_t>(std::count(path.begin(), path.end(), '.')), ' ');
}

void Layout::comment(std::string const& path, std::string const& text) {
  constexpr std::size_t width = 110;
  std::string const start = indent(path) + "#";
  std::string line = start;
  std::size_t i = 0;
  while (i < text.size()) {
    auto const end = std::min(text.find(' ', i), text.size());
    if (line.size() > start.size() && line.size() + 1 + (end - i) > width) {
      out_ += line + "\n";
      line = start;
    }
    line.append(1, ' ').append(text, i, end - i);
    i = end + 1;
  }
  out_ += line + "\n";
}

void Layout::heading(std::string const& path) {
  out_ += indent(path) + last_name(path) + ":\n";
}
void Layout::value(std::string const& path, std::string const& text) {
  out_ += indent(path) + last_name(path) + ": " + text + "\n";
}
void Layout::block(std::string const& path, std::string const& lines) {
  heading(path);
  out_ += lines;
}

std::string write_keys(std::vector<WrittenKey> const& keys) {
  Layout layout("");
  for (auto const& [key, is_section, value] : keys)
    if (is_section)
      layout.heading(key.path);
    else
      layout.value(key.path, value.value_or("null"));
  return layout.text();
}

std::string write_flow(std::vector<WrittenKey> const& keys) {
  std::vector<std::string> parts;
  for (auto const& [key, is_section, value] : keys)
    if (value)
      parts.push_back(key.path + ": " + *value);
  return "{" + join(parts) + "}";
}

std::string document_keys(std::vector<WrittenKey> const& keys, std::string const& indent) {
  Layout layout(indent);
  for (auto const& [key, is_section, value] : keys) {
    layout.comment(key.path, key.explanation());
    if (!is_section)
      layout.comment(key.path, key.rules());
    if (is_section)
      layout.heading(key.path);
    else if (key.document)
      layout.block(key.path, key.document(layout.indent(key.path) + "  ", ""));
    else
      layout.value(key.path, value.value_or("null"));
  }
  return layout.text();
}

std::string document_element(std::vector<WrittenKey> const& keys, std::string const& indent, std::string const& inner) {
  std::vector<WrittenKey> chosen;
  for (auto const& written : keys)
    if (inner.empty() || written.key.path == inner)
      chosen.push_back(written);
  std::string lines = document_keys(chosen, indent + "  ");
  std::string const first = indent + "  " + chosen.front().key.path;
  lines.replace(lines.find("\n" + first) + 1, indent.size() + 2, indent + "- ");
  return lines;
}
namespace {

/// `below`: what of `paths` is below the node, such as "vtk.enabled", or "[].at" of the items of a list.
void check_names_below(YamlNode const& node, std::vector<std::string_view> const& below, std::string const& shown,
                       std::vector<std::string> const& paths) {
  constexpr std::string_view of_items = "[].";
  std::vector<std::string> here;  // names of keys and sections at this level
  std::vector<std::string_view> in_items;
  for (std::string_view const path : below) {
    if (path.starts_with(of_items)) {
      in_items.push_back(path.substr(of_items.size()));
      continue;
    }
    std::string_view const name = path.substr(0, path.find_first_of(".["));
    if (std::find(here.begin(), here.end(), name) == here.end())
      here.emplace_back(name);
  }
  if (!in_items.empty() && node.kind == YamlNode::Kind::list)
    for (std::size_t i = 0; i < node.items.size(); ++i)
      check_names_below(node.items[i], in_items, shown + "[" + std::to_string(i) + "]", paths);
  if (here.empty() || node.kind == YamlNode::Kind::null)
    return;
  if (node.kind != YamlNode::Kind::map)
    reject(node.origin, shown.empty() ? "(whole file)" : shown,
           "found " + found(node) + "; allowed: a map with the keys " + join(here));
  for (std::size_t i = 0; i < node.keys.size(); ++i) {
    auto const& [name, origin] = node.keys[i];
    std::string const full = shown.empty() ? name : shown + "." + name;
    if (std::find(here.begin(), here.end(), name) != here.end()) {
      std::vector<std::string_view> of_name;
      for (std::string_view const path : below)
        if (char const next = path.starts_with(name) && path.size() > name.size() ? path[name.size()] : ' ';
            next == '.' || next == '[')
          of_name.push_back(path.substr(name.size() + (next == '.' ? 1 : 0)));
      check_names_below(node.items[i], of_name, full, paths);
      continue;
    }
    std::string suggestion;
    std::size_t best = 1000;
    for (auto const& candidate : here)
      if (std::size_t const distance = name_distance(name, candidate); distance < best) {
        best = distance;
        suggestion = candidate;
      }
    // The right name at another level counts as one letter off; of several the one at the least depth. Keys in the lists of other
    // sections are not meant.
    std::string const section = full.substr(0, full.find_first_of(".["));
    std::size_t depth = std::numeric_limits<std::size_t>::max();
    for (auto const& path : paths)
      for (std::size_t end = path.find('.');; end = path.find('.', end + 1)) {
        std::string const candidate = path.substr(0, end);
        auto const levels = static_cast<std::size_t>(std::count(candidate.begin(), candidate.end(), '.'));
        bool const elsewhere = candidate.find('[') != std::string::npos && !candidate.starts_with(section);
        std::size_t const distance = name_distance(name, last_name(candidate)) + 1;
        if (levels > 0 && !elsewhere && (distance < best || (distance == best && levels < depth))) {
          best = distance;
          depth = levels;
          suggestion = candidate;
        }
        if (end == std::string::npos)
          break;
      }
    reject(origin, shorten(full),
           "unknown key" + (suggestion.empty() ? std::string(".") : "; did you mean '" + suggestion + "'?") +
               " Allowed here: " + join(here) +
               (node.items[i].kind != YamlNode::Kind::null && name.find_first_of("()+*/^?<>=! ") == std::string::npos
                    ? ""
                    : ". If this is a part of an expression: one that contains ',' or ': ' needs quotes, inside { } above all"));
  }
}

}  // namespace

void check_names(YamlNode const& root, std::vector<std::string> const& paths) {
  check_names_below(root, {paths.begin(), paths.end()}, "", paths);
}

void check_names(YamlNode const& map, std::string const& shown, std::vector<std::string> const& paths) {
  check_names_below(map, {paths.begin(), paths.end()}, shown, paths);
}

}  // namespace poisson::app::schema
