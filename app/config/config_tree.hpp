#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

/// A YAML document as a tree in which every node knows where it came from. Internal to the configuration.
namespace poisson::app {

/// Where a node was written: "configs/first.yaml:12:5", or "--set solver.tolerance=abc".
struct Origin {
  std::shared_ptr<std::string const> source;
  int line = 0;  ///< 1-based; 0: the source is no file
  int column = 0;
  [[nodiscard]] std::string text() const;
};

struct YamlNode {
  enum class Kind { null, scalar, list, map };
  struct Key {
    std::string name;
    Origin origin;
  };

  Kind kind = Kind::null;
  std::string text;     ///< of a scalar
  bool quoted = false;  ///< a scalar in quotes is text, whatever it looks like
  Origin origin;
  std::vector<YamlNode> items;  ///< elements of a list, values of a map
  std::vector<Key> keys;        ///< of a map, unique, in the order of the file

  [[nodiscard]] YamlNode const* find(std::string_view key) const;
  [[nodiscard]] YamlNode* find(std::string_view key);
};

/// Reads one document whose texts are UTF-8 without control characters other than line breaks and tabs. Throws ConfigError naming
/// the place for everything that is not that: syntax errors, duplicate keys, several documents, binary data, tags of other types,
/// nesting beyond 32 levels, more than 10^5 nodes after aliases are expanded. `source` is how messages call it; `with_lines`:
/// positions follow it. An empty document is a null node.
[[nodiscard]] YamlNode parse_yaml(std::string_view text, std::string const& source, bool with_lines);

/// The value on one line, so that it reads back to the same tree.
[[nodiscard]] std::string flow_text(YamlNode const& node);
/// A double-quoted YAML scalar.
[[nodiscard]] std::string quoted_text(std::string_view text);
/// A scalar as it is where YAML reads that back as the same text, double-quoted otherwise.
[[nodiscard]] std::string plain_or_quoted(std::string_view text);

/// One step of a key path: a name, or an index in brackets (which also names an integer key of a map).
struct PathStep {
  std::string name;
  bool index = false;
};
/// "problem.boundary[0].value" in steps; empty when it is not a key path. What follows "sweep." is one step: its keys are paths.
[[nodiscard]] std::vector<PathStep> split_path(std::string_view path);

/// What is there under a key path, and where; stops at the first step that is not there.
struct Located {
  YamlNode const* node = nullptr;  ///< the node of the whole path, or null
  Origin origin;                   ///< of the longest part of the path that is there
  std::size_t depth = 0;           ///< steps that are there
};
[[nodiscard]] Located locate_path(YamlNode const& root, std::string_view path);

}  // namespace poisson::app
