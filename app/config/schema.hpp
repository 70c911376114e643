#pragma once

#include "app/config/config.hpp"
#include "app/config/config_tree.hpp"
#include "gpu/core/names.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

/// Declarations of keys. One statement per key, in app/config/*_keys.cpp, defines its reader, its checks, and its lines in the
/// schema, in the JSON Schema and in the resolved configuration. Internal to the configuration.
///
/// A value type is a small class with
///   std::string allowed() const                                          what may be written, for messages and the schema
///   void read(YamlNode const&, std::string const& path, V& out) const    throws ConfigError
///   std::string write(V const&) const                                    YAML on one line
///   Json json_schema() const                                             what may be written, as JSON Schema
namespace poisson::app::schema {

using Json = nlohmann::ordered_json;

[[noreturn]] void reject(Origin const& origin, std::string const& path, std::string const& message);
/// The text, truncated to at most `longest` bytes with an ellipsis.
[[nodiscard]] std::string shorten(std::string const& text, std::size_t longest = 60);
/// Describes a value in messages: 'abc', the text "1", a list, a map, nothing.
[[nodiscard]] std::string found(YamlNode const& node);
[[noreturn]] void reject_value(YamlNode const& node, std::string const& path, std::string const& allowed);
[[nodiscard]] std::string join(std::vector<std::string> const& words, std::string_view separator = ", ");

/// The value of a scalar that is an expression without x, y and z, "2*pi" or one with the parameters of the tree; none for a plain
/// number. Where it has no value `why` says why, if the text looks like an expression.
[[nodiscard]] std::optional<double> evaluate(YamlNode const& node, std::string& why);

/// An integer in [lowest, highest]. With `or_auto` also `auto`, for which an optional has no value.
struct Integer {
  std::int64_t lowest, highest;
  bool power_of_two = false;  ///< or 0, if that is `lowest`
  bool or_auto = false;
  [[nodiscard]] std::string allowed() const;
  [[nodiscard]] std::int64_t parse(YamlNode const& node, std::string const& path) const;
  template <class I>
  void read(YamlNode const& node, std::string const& path, I& out) const {
    out = static_cast<I>(parse(node, path));
  }
  template <class I>
  void read(YamlNode const& node, std::string const& path, std::optional<I>& out) const {
    if (node.kind == YamlNode::Kind::scalar && !node.quoted && node.text == "auto")
      out.reset();
    else
      out = static_cast<I>(parse(node, path));
  }
  [[nodiscard]] std::string write(std::int64_t value) const { return std::to_string(value); }
  [[nodiscard]] std::string write(std::optional<std::int64_t> value) const { return value ? write(*value) : "auto"; }
  [[nodiscard]] Json json_schema() const;
};

/// A finite number in the open interval (above, below).
struct Number {
  double above = -std::numeric_limits<double>::infinity(), below = std::numeric_limits<double>::infinity();
  bool or_equal = false;  ///< `above` itself is allowed
  std::string or_word{};  ///< what else is allowed, for messages; who declares it reads it
  [[nodiscard]] std::string allowed() const;
  void read(YamlNode const& node, std::string const& path, double& out) const;
  [[nodiscard]] std::string write(double value) const;
  [[nodiscard]] Json json_schema() const;
};

/// A finite number, or `auto` (no value).
struct OptionalNumber {
  [[nodiscard]] std::string allowed() const { return "auto, " + Number{}.allowed(); }
  void read(YamlNode const& node, std::string const& path, std::optional<double>& out) const;
  [[nodiscard]] std::string write(std::optional<double> value) const { return value ? Number{}.write(*value) : "auto"; }
  [[nodiscard]] Json json_schema() const;
};

struct Boolean {
  [[nodiscard]] std::string allowed() const { return "true or false"; }
  void read(YamlNode const& node, std::string const& path, bool& out) const;
  [[nodiscard]] std::string write(bool value) const { return value ? "true" : "false"; }
  [[nodiscard]] Json json_schema() const { return {{"type", "boolean"}}; }
};

/// Non-empty text; an empty one is written as null.
struct Text {
  std::string what;
  [[nodiscard]] std::string allowed() const { return what; }
  void read(YamlNode const& node, std::string const& path, std::string& out) const;
  [[nodiscard]] std::string write(std::string const& value) const { return value.empty() ? "null" : plain_or_quoted(value); }
  [[nodiscard]] Json json_schema() const;
};

/// The text of an expression, or a finite number. The expression is compiled, and checked, by assembly/.
struct ExpressionText {
  [[nodiscard]] std::string allowed() const { return "expression in x, y, z, or number"; }
  void read(YamlNode const& node, std::string const& path, std::string& out) const;
  void read(YamlNode const& node, std::string const& path, std::optional<std::string>& out) const;
  [[nodiscard]] std::string write(std::string const& value) const { return quoted_text(value); }
  [[nodiscard]] std::string write(std::optional<std::string> const& value) const { return value ? write(*value) : "null"; }
  [[nodiscard]] Json json_schema() const { return Text{}.json_schema(); }
};

[[nodiscard]] std::string parse_choice(YamlNode const& node, std::string const& path, std::vector<std::string> const& names,
                                       std::vector<std::string> const& planned);

/// A value of an enumeration with Names<E>. `planned`: names that are known but not supported, which get their own error message.
template <class E>
struct Choice {
  std::vector<std::string> planned = {};
  [[nodiscard]] static std::vector<std::string> names() {
    std::vector<std::string> all;
    for (auto const& entry : Names<E>::values)
      all.emplace_back(entry.name);
    return all;
  }
  [[nodiscard]] std::string allowed() const { return join(names()); }
  void read(YamlNode const& node, std::string const& path, E& out) const {
    out = *parse_name<E>(parse_choice(node, path, names(), planned));
  }
  [[nodiscard]] std::string write(E value) const { return std::string(name_of(value)); }
  [[nodiscard]] Json json_schema() const { return {{"type", "string"}, {"enum", names()}}; }
};

/// The same, or `auto` (no value).
template <class E>
struct AutoChoice {
  std::vector<std::string> planned = {};
  [[nodiscard]] static std::vector<std::string> names() {
    auto all = Choice<E>::names();
    all.insert(all.begin(), "auto");
    return all;
  }
  [[nodiscard]] std::string allowed() const { return join(names()); }
  void read(YamlNode const& node, std::string const& path, std::optional<E>& out) const {
    out = parse_name<E>(parse_choice(node, path, names(), planned));
  }
  [[nodiscard]] std::string write(std::optional<E> value) const { return value ? std::string(name_of(*value)) : "auto"; }
  [[nodiscard]] Json json_schema() const { return {{"type", "string"}, {"enum", names()}}; }
};

void check_list_of_three(YamlNode const& node, std::string const& path, std::string const& allowed);

template <class Type>
struct ThreeOf {
  Type type;
  [[nodiscard]] std::string allowed() const { return "[x, y, z], each: " + type.allowed(); }
  template <class V>
  void read(YamlNode const& node, std::string const& path, std::array<V, 3>& out) const {
    check_list_of_three(node, path, allowed());
    for (std::size_t i = 0; i < 3; ++i)
      type.read(node.items[i], path + "[" + std::to_string(i) + "]", out[i]);
  }
  template <class V>
  [[nodiscard]] std::string write(std::array<V, 3> const& value) const {
    return "[" + type.write(value[0]) + ", " + type.write(value[1]) + ", " + type.write(value[2]) + "]";
  }
  [[nodiscard]] Json json_schema() const {
    return {{"type", "array"}, {"items", type.json_schema()}, {"minItems", 3}, {"maxItems", 3}};
  }
};

/// A value of another type, or `auto` (no value).
template <class Type>
struct AutoOr {
  Type type;
  bool list = false;  ///< whether it is one
  [[nodiscard]] std::string allowed() const { return "auto; or " + type.allowed(); }
  template <class V>
  void read(YamlNode const& node, std::string const& path, std::optional<V>& out) const {
    out.reset();
    if (node.kind == YamlNode::Kind::scalar && !node.quoted && node.text == "auto")
      return;
    if (list && node.kind != YamlNode::Kind::list)
      reject_value(node, path, allowed());
    V value{};
    type.read(node, path, value);
    out = value;
  }
  template <class V>
  [[nodiscard]] std::string write(std::optional<V> const& value) const {
    return value ? type.write(*value) : "auto";
  }
  [[nodiscard]] Json json_schema() const { return {{"anyOf", Json::array({Json{{"const", "auto"}}, type.json_schema()})}}; }
};

/// What is said about a key, whatever it is a key of.
struct KeyText {
  using Lines = std::function<std::string(std::string const& indent, std::string const& inner)>;
  std::string path;     ///< relative to the map: "solver.tolerance"
  std::string unit;     ///< empty where there is none
  std::string meaning;  ///< one or two sentences
  std::string allowed;
  /// Schema lines of a value that has keys itself; of the key `inner` only, unless that is empty.
  Lines document;
  std::vector<std::string> inner_keys;  ///< keys of each element of a list
  /// Schema lines of an element of a list, or of its key `inner` only; for lists without `document`.
  Lines element;
  std::string absent;     ///< meaning of null; empty: null is an error
  std::string condition;  ///< when the key is allowed, "with type: robin"
  std::string required_text;

  KeyText(std::string_view path, std::string_view unit, std::string_view meaning, std::string allowed);
  // These functions are defined in schema.cpp, so that they are compiled once and not for the keys of every type.
  KeyText(KeyText const&);
  KeyText(KeyText&&) noexcept;
  KeyText& operator=(KeyText const&);
  KeyText& operator=(KeyText&&) noexcept;
  ~KeyText();
  [[nodiscard]] std::string explanation() const;
  [[nodiscard]] std::string rules() const;
  [[nodiscard]] bool may_be_null() const { return !absent.empty() || !condition.empty(); }

protected:
  [[nodiscard]] static Lines in_comments(Lines lines);
};

/// Reads, writes and describes the value of a key of a configuration of type T.
template <class T>
class KeyValue {
public:
  KeyValue() = default;
  KeyValue(KeyValue const&) = delete;
  KeyValue& operator=(KeyValue const&) = delete;
  virtual ~KeyValue() = default;
  virtual void read(YamlNode const& node, std::string const& path, T& out) const = 0;
  [[nodiscard]] virtual std::string write(T const& value) const = 0;
  [[nodiscard]] virtual Json json_schema() const = 0;
};

/// By a value type, for the member that `access` returns. All members of one type share what is compiled.
template <class T, class Type, class Member>
class MemberValue final : public KeyValue<T> {
public:
  using Access = Member& (*)(T&);
  MemberValue(Type type, Access access) : type_(std::move(type)), access_(access) {}
  void read(YamlNode const& node, std::string const& path, T& out) const override { type_.read(node, path, access_(out)); }
  [[nodiscard]] std::string write(T const& value) const override {
    return type_.write(std::as_const(access_(const_cast<T&>(value))));
  }
  [[nodiscard]] Json json_schema() const override { return type_.json_schema(); }

private:
  Type type_;
  Access access_;
};

/// The declaration of a key of a configuration of type T, or of a section.
template <class T>
struct Key : KeyText {
  using Predicate = bool (*)(T const&);
  std::shared_ptr<KeyValue<T> const> value;  ///< null of a section
  Predicate applies = [](T const&) { return true; };
  Predicate required = [](T const&) { return false; };

  using KeyText::KeyText;
  [[nodiscard]] bool is_section() const { return value == nullptr; }

  Key&& or_null(std::string_view meaning_of_null) && {
    absent = meaning_of_null;
    return std::move(*this);
  }
  Key&& only(std::string_view text, Predicate predicate) && {
    condition = text;
    applies = predicate;
    return std::move(*this);
  }
  Key&& must_be_given(
      std::string_view text, Predicate predicate = [](T const&) { return true; }) && {
    required_text = text;
    required = predicate;
    return std::move(*this);
  }
  /// Tells the keys of the elements of a list, which live as long as the program.
  template <class Element>
  Key&& with_elements(std::vector<Key<Element>> const& keys, Element const& example = {}) &&;
  /// The schema shows an element, since that is the default.
  Key&& shown_as_element() && {
    document = element;
    return std::move(*this);
  }
  /// The schema shows an element in comments, since the list is empty by default.
  Key&& shown_as_comments() && {
    document = in_comments(element);
    return std::move(*this);
  }
};
template <class T>
using Keys = std::vector<Key<T>>;

template <class T>
[[nodiscard]] Key<T> section(std::string_view path, std::string_view meaning) {
  return {path, "", meaning, ""};
}

template <class T>
[[nodiscard]] Key<T> key_of_value(std::string_view path, std::string_view unit, std::string_view meaning, std::string allowed,
                                  std::unique_ptr<KeyValue<T> const> value) {
  Key<T> result{path, unit, meaning, std::move(allowed)};
  result.value = std::move(value);
  return result;
}

/// Declares a key of value type `Type`. `access`, a lambda without captures, returns the member of a T&.
template <class T, class Type, class Access>
[[nodiscard]] Key<T> key(std::string_view path, Type type, Access access, std::string_view unit, std::string_view meaning) {
  using Value = MemberValue<T, Type, std::remove_reference_t<decltype(access(std::declval<T&>()))>>;
  std::string allowed = type.allowed();
  return key_of_value<T>(path, unit, meaning, std::move(allowed), std::make_unique<Value const>(std::move(type), access));
}

/// The node at a relative path of names, or null.
[[nodiscard]] YamlNode const* descend(YamlNode const& map, std::string_view path);

/// Reads the keys of `map` into `out`; then checks that each is allowed, and that all required ones are there. `path` is that of
/// `map`. Throws ConfigError.
template <class T>
void read_keys(Keys<T> const& keys, YamlNode const& map, std::string const& path, T& out) {
  auto const full = [&](Key<T> const& k) { return path.empty() ? k.path : path + "." + k.path; };
  std::vector<YamlNode const*> given(keys.size(), nullptr);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    Key<T> const& k = keys[i];
    YamlNode const* const node = k.is_section() ? nullptr : descend(map, k.path);
    if (!node)
      continue;
    if (node->kind != YamlNode::Kind::null) {
      k.value->read(*node, full(k), out);
      given[i] = node;
    } else if (!k.may_be_null())
      reject(node->origin, full(k), "has no value; allowed: " + k.allowed + "; or leave the key out");
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    Key<T> const& k = keys[i];
    if (given[i] && !k.applies(out))
      reject(given[i]->origin, full(k), "cannot be given here (found " + found(*given[i]) + "); it is allowed only " + k.condition);
    if (!given[i] && k.required(out))
      reject(map.origin, full(k), "is missing; " + k.required_text);
  }
}

/// Writes "key: value" lines, indented under their sections.
class Layout {
public:
  explicit Layout(std::string indent) : base_(std::move(indent)) {}
  /// Comment lines above the next line of that path.
  void comment(std::string const& path, std::string const& text);
  void heading(std::string const& path);
  void value(std::string const& path, std::string const& text);
  /// Lines that are already formatted, below the key.
  void block(std::string const& path, std::string const& lines);
  [[nodiscard]] std::string indent(std::string const& path) const;
  [[nodiscard]] std::string const& text() const { return out_; }

private:
  std::string base_, out_;
};

/// A key and the value that a configuration has, as YAML.
struct WrittenKey {
  KeyText const& key;
  bool is_section;
  std::optional<std::string> value;  ///< none of a section, and where the key does not apply
};
template <class T>
[[nodiscard]] std::vector<WrittenKey> written_keys(Keys<T> const& keys, T const& value) {
  std::vector<WrittenKey> written;
  for (auto const& k : keys) {
    written.push_back({k, k.is_section(), {}});
    if (!k.is_section() && k.applies(value))
      written.back().value = k.value->write(value);
  }
  return written;
}

/// "key: value" lines below their sections.
[[nodiscard]] std::string write_keys(std::vector<WrittenKey> const& keys);
/// "{a: 1, b: 2}", for keys without sections; those that do not apply are omitted.
[[nodiscard]] std::string write_flow(std::vector<WrittenKey> const& keys);
/// write_keys with what is said about each key in comments above it; `keys` are those of the defaults.
[[nodiscard]] std::string document_keys(std::vector<WrittenKey> const& keys, std::string const& indent);
/// The lines of one element of a list: document_keys with a dash before the first key. `inner` as for KeyText::document.
[[nodiscard]] std::string document_element(std::vector<WrittenKey> const& keys, std::string const& indent,
                                           std::string const& inner);

template <class T>
template <class Element>
Key<T>&& Key<T>::with_elements(std::vector<Key<Element>> const& keys, Element const& example) && {
  for (auto const& inner : keys)
    inner_keys.push_back(inner.path);
  element = [&keys, example](std::string const& indent, std::string const& inner) {
    return document_element(written_keys(keys, example), indent, inner);
  };
  return std::move(*this);
}

/// Builds the JSON Schema of a map from its sections and keys. Unknown names are errors.
class JsonMap {
public:
  /// A map that may be null instead, as all sections of a configuration.
  void section(std::string const& path, std::string const& description);
  struct Value {
    std::string description;
    Json schema;
    bool may_be_null, required;
    std::string initial;  ///< YAML of the default; empty: none
  };
  void value(std::string const& path, Value value);
  [[nodiscard]] Json take() { return std::move(root_); }

private:
  /// The map that the last name of the path belongs to. With `required` none on the way there may be left out.
  Json& owner(std::string const& path, bool required);
  Json root_{{"type", "object"}, {"additionalProperties", false}, {"properties", Json::object()}};
};

/// The JSON Schema of a map with these keys. Conditions between keys are in descriptions only.
template <class T>
[[nodiscard]] Json json_schema_of(Keys<T> const& keys, T const& defaults) {
  JsonMap map;
  for (auto const& k : keys) {
    if (k.is_section()) {
      map.section(k.path, k.explanation());
      continue;
    }
    bool const has_default = k.applies(defaults) && k.required_text.empty();
    map.value(k.path, {k.explanation() + " " + k.rules(), k.value->json_schema(), k.may_be_null(), k.required(defaults),
                       has_default ? k.value->write(defaults) : ""});
  }
  return map.take();
}

/// Throws ConfigError for the first key of the tree that is not one of `paths` ("problem.boundary[].ids" below a list), suggesting
/// a similar one, and for the first section that is not a map.
void check_names(YamlNode const& root, std::vector<std::string> const& paths);
/// The same for a map whose key path is `shown`; `paths` begin there.
void check_names(YamlNode const& map, std::string const& shown, std::vector<std::string> const& paths);

}  // namespace poisson::app::schema
