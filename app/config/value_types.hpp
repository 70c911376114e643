#pragma once

#include "app/config/schema.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

/// Value types that keys of several sections have. Internal to the declarations.
namespace poisson::app::schema {

/// Names that stand in expressions and in names of files.
[[nodiscard]] bool is_plain_name(std::string const& text);

/// The number of a step of a file, from 0, or the last one (-1).
struct Step {
  Integer number{0, 1'000'000'000};
  [[nodiscard]] std::string allowed() const { return "last; or " + number.allowed(); }
  void read(YamlNode const& node, std::string const& path, std::int64_t& out) const;
  [[nodiscard]] std::string write(std::int64_t value) const { return value < 0 ? "last" : number.write(value); }
  [[nodiscard]] Json json_schema() const { return {{"anyOf", Json::array({Json{{"const", "last"}}, number.json_schema()})}}; }
};

/// A count for all directions, or three of them; null where they are 0.
struct OneOrThree {
  Integer number;
  [[nodiscard]] std::string allowed() const { return number.allowed() + "; or [x, y, z] of them"; }
  void read(YamlNode const& node, std::string const& path, std::array<std::int64_t, 3>& out) const {
    if (node.kind != YamlNode::Kind::list)
      out.fill(number.parse(node, path));
    else
      ThreeOf<Integer>{number}.read(node, path, out);
  }
  [[nodiscard]] std::string write(std::array<std::int64_t, 3> const& value) const {
    if (value[0] == 0)
      return "null";
    return value[0] == value[1] && value[1] == value[2] ? number.write(value[0]) : ThreeOf<Integer>{number}.write(value);
  }
  [[nodiscard]] Json json_schema() const {
    return {{"anyOf", Json::array({number.json_schema(), ThreeOf<Integer>{number}.json_schema()})}};
  }
};

struct PlainName {
  [[nodiscard]] std::string allowed() const { return "name of letters, digits and '_' that begins with no digit"; }
  void read(YamlNode const& node, std::string const& path, std::string& out) const;
  [[nodiscard]] std::string write(std::string const& value) const { return plain_or_quoted(value); }
  [[nodiscard]] Json json_schema() const { return {{"type", "string"}, {"pattern", "^[A-Za-z_][A-Za-z0-9_]{0,59}$"}}; }
};

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
    entries.push_back(write_flow(written_keys(keys, spec)));
  return "[" + join(entries) + "]";
}

/// A list of maps, which have a name each where they are named.
template <class T, bool named>
struct Maps {
  Keys<T> const& (*keys)();
  std::string example;
  [[nodiscard]] std::string allowed() const { return "list of maps such as " + example; }
  void read(YamlNode const& node, std::string const& path, std::vector<T>& out) const {
    if (node.kind != YamlNode::Kind::list)
      reject_value(node, path, allowed());
    read_maps(
        keys(), node, path, "a map such as " + example, out,
        [&]([[maybe_unused]] YamlNode const& item, [[maybe_unused]] std::string const& of_item, [[maybe_unused]] T const& spec) {
          if constexpr (named)
            for (std::size_t j = 0; j + 1 < out.size(); ++j)
              if (out[j].name == spec.name)
                reject(item.origin, of_item + ".name",
                       "the name '" + spec.name + "' belongs to " + path + "[" + std::to_string(j) + "] already");
        });
  }
  [[nodiscard]] std::string write(std::vector<T> const& value) const { return write_maps(keys(), value); }
  [[nodiscard]] Json json_schema() const { return {{"type", "array"}, {"items", json_schema_of(keys(), T{})}}; }
};
template <class T>
using List = Maps<T, false>;
template <class T>
using Named = Maps<T, true>;

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

}  // namespace poisson::app::schema
