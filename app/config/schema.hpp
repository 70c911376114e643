#pragma once

#include "app/config/config.hpp"
#include "app/config/config_tree.hpp"
#include "gpu/core/names.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Declarations of keys. One statement per key, in app/config/config_keys.cpp, defines its reader, its checks, and its lines in the
/// schema and in the resolved configuration. Internal to the configuration.
///
/// A value type is a small class with
///   std::string allowed() const                                          what may be written, for messages and the schema
///   void read(YamlNode const&, std::string const& path, V& out) const    throws ConfigError
///   std::string write(V const&) const                                    YAML on one line
namespace poisson::app::schema {

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
};

/// A finite number in the open interval (above, below).
struct Number {
  double above = -std::numeric_limits<double>::infinity(), below = std::numeric_limits<double>::infinity();
  bool or_equal = false;  ///< `above` itself is allowed
  [[nodiscard]] std::string allowed() const;
  void read(YamlNode const& node, std::string const& path, double& out) const;
  [[nodiscard]] std::string write(double value) const;
};

/// A finite number, or `auto` (no value).
struct OptionalNumber {
  [[nodiscard]] std::string allowed() const { return "auto, " + Number{}.allowed(); }
  void read(YamlNode const& node, std::string const& path, std::optional<double>& out) const;
  [[nodiscard]] std::string write(std::optional<double> value) const { return value ? Number{}.write(*value) : "auto"; }
};

struct Boolean {
  [[nodiscard]] std::string allowed() const { return "true or false"; }
  void read(YamlNode const& node, std::string const& path, bool& out) const;
  [[nodiscard]] std::string write(bool value) const { return value ? "true" : "false"; }
};

/// Non-empty text; an empty one is written as null.
struct Text {
  std::string what;
  [[nodiscard]] std::string allowed() const { return what; }
  void read(YamlNode const& node, std::string const& path, std::string& out) const;
  [[nodiscard]] std::string write(std::string const& value) const { return value.empty() ? "null" : plain_or_quoted(value); }
};

/// The text of an expression, or a finite number. The expression is compiled, and checked, by assembly/.
struct ExpressionText {
  [[nodiscard]] std::string allowed() const { return "expression in x, y, z, or number"; }
  void read(YamlNode const& node, std::string const& path, std::string& out) const;
  void read(YamlNode const& node, std::string const& path, std::optional<std::string>& out) const;
  [[nodiscard]] std::string write(std::string const& value) const { return quoted_text(value); }
  [[nodiscard]] std::string write(std::optional<std::string> const& value) const { return value ? write(*value) : "null"; }
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
};

/// The declaration of a key of a configuration of type T; without `read`, of a section.
template <class T>
struct Key {
  std::string path;     ///< relative to T: "solver.tolerance"
  std::string unit;     ///< empty where there is none
  std::string meaning;  ///< one or two sentences
  std::string allowed;
  std::function<void(YamlNode const&, std::string const&, T&)> read;
  std::function<std::string(T const&)> write;
  std::function<std::string(std::string const& indent)> document;  ///< schema lines of a value that has keys itself
  std::vector<std::string> inner_keys;                             ///< keys of each element of a list
  std::string absent;                                              ///< meaning of null; empty: null is an error
  std::string condition;                                           ///< when the key is allowed, "with type: robin"
  std::function<bool(T const&)> applies = [](T const&) { return true; };
  std::function<bool(T const&)> required = [](T const&) { return false; };
  std::string required_text;

  Key&& or_null(std::string meaning_of_null) && {
    absent = std::move(meaning_of_null);
    return std::move(*this);
  }
  Key&& only(std::string text, std::function<bool(T const&)> predicate) && {
    condition = std::move(text);
    applies = std::move(predicate);
    return std::move(*this);
  }
  Key&& must_be_given(
      std::string text, std::function<bool(T const&)> predicate = [](T const&) { return true; }) && {
    required_text = std::move(text);
    required = std::move(predicate);
    return std::move(*this);
  }
};
template <class T>
using Keys = std::vector<Key<T>>;

template <class T>
[[nodiscard]] Key<T> section(std::string path, std::string meaning) {
  Key<T> key;
  key.path = std::move(path);
  key.meaning = std::move(meaning);
  return key;
}

/// Declares a key of value type `Type`. `access` returns the member of a T& or T const&.
template <class T, class Type, class Access>
[[nodiscard]] Key<T> key(std::string path, Type type, Access access, std::string unit, std::string meaning) {
  Key<T> result = section<T>(std::move(path), std::move(meaning));
  result.unit = std::move(unit);
  result.allowed = type.allowed();
  result.read = [type, access](YamlNode const& node, std::string const& full, T& out) { type.read(node, full, access(out)); };
  result.write = [type, access](T const& value) { return type.write(access(value)); };
  return result;
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
    YamlNode const* const node = k.read ? descend(map, k.path) : nullptr;
    if (!node)
      continue;
    if (node->kind != YamlNode::Kind::null) {
      k.read(*node, full(k), out);
      given[i] = node;
    } else if (k.absent.empty() && k.condition.empty())
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

template <class T>
[[nodiscard]] std::string write_keys(Keys<T> const& keys, T const& value) {
  Layout layout("");
  for (auto const& k : keys) {
    if (!k.read)
      layout.heading(k.path);
    else
      layout.value(k.path, k.applies(value) ? k.write(value) : "null");
  }
  return layout.text();
}

/// "{a: 1, b: 2}", for keys without sections; those that do not apply are omitted.
template <class T>
[[nodiscard]] std::string write_flow(Keys<T> const& keys, T const& value) {
  std::vector<std::string> parts;
  for (auto const& k : keys)
    if (k.applies(value))
      parts.push_back(k.path + ": " + k.write(value));
  return "{" + join(parts) + "}";
}

template <class T>
[[nodiscard]] std::string document_keys(Keys<T> const& keys, T const& defaults, std::string const& indent) {
  Layout layout(indent);
  for (auto const& k : keys) {
    layout.comment(k.path, k.meaning + (k.unit.empty() ? "" : " Unit: " + k.unit + "."));
    if (k.read)
      layout.comment(k.path, "Allowed: " + k.allowed + "." + (k.absent.empty() ? "" : " null: " + k.absent + ".") +
                                 (k.condition.empty() ? "" : " Only " + k.condition + ".") +
                                 (k.required_text.empty() ? "" : " Required."));
    if (!k.read)
      layout.heading(k.path);
    else if (k.document)
      layout.block(k.path, k.document(layout.indent(k.path) + "  "));
    else
      layout.value(k.path, k.applies(defaults) ? k.write(defaults) : "null");
  }
  return layout.text();
}

/// Throws ConfigError for the first key of the tree that is not one of `paths` ("problem.boundary[].ids" below a list), suggesting
/// a similar one, and for the first section that is not a map.
void check_names(YamlNode const& root, std::vector<std::string> const& paths);

}  // namespace poisson::app::schema
