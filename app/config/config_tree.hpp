#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

/// A YAML document as a tree whose nodes know their places in the file. Internal to the configuration.
namespace poisson::app {

/// The place of a node: "configs/first.yaml:12:5", or "--set solver.tolerance=abc".
struct Origin {
  std::shared_ptr<std::string const> source;
  int line = 0;  ///< from 1; 0: the source is not a file
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
  std::vector<YamlNode> items;                                      ///< elements of a list, values of a map
  std::vector<Key> keys;                                            ///< of a map, unique, in the order of the file
  std::shared_ptr<std::map<std::string, double> const> parameters;  ///< constants that a number may be computed from, or null

  [[nodiscard]] YamlNode const* find(std::string_view key) const;
  [[nodiscard]] YamlNode* find(std::string_view key);
};

/// Parses one YAML document in UTF-8. Throws ConfigError, with the place, for syntax errors, duplicate keys, several documents,
/// control characters other than line breaks and tabs, binary data, tags of other types, nesting beyond 32 levels, and more than
/// 10^5 nodes after aliases are expanded. The maps of a merge key (<<) are merged. `source` names the document in messages,
/// followed by line and column if `with_lines`. With `quotes` they show what is wrong there; of a file that may be anything, and
/// not for the user's eyes, they show its place alone. An empty document gives a null node.
[[nodiscard]] YamlNode parse_yaml(std::string_view text, std::string const& source, bool with_lines, bool quotes = true);

/// The node as YAML on one line; parsing it gives the same tree.
[[nodiscard]] std::string flow_text(YamlNode const& node);
/// A double-quoted YAML scalar.
[[nodiscard]] std::string quoted_text(std::string_view text);
/// A YAML scalar for the text: plain where YAML reads that back as the same text, double-quoted otherwise.
[[nodiscard]] std::string plain_or_quoted(std::string_view text);

/// One step of a key path: a name, or an index in brackets (which also names an integer key of a map).
struct PathStep {
  std::string name;
  bool index = false;
};
/// The steps of "problem.boundary[0].value"; empty when it is not a key path. All that follows "sweep." is one step, because the
/// keys there are key paths themselves; but for its sections zip, product, sample, until and greedy.
[[nodiscard]] std::vector<PathStep> split_path(std::string_view path);

/// The node that a key path leads to, or how far it leads.
struct Located {
  YamlNode const* node = nullptr;  ///< the node of the whole path, or null
  Origin origin;                   ///< place of the longest prefix of the path that exists
  std::size_t depth = 0;           ///< number of steps of that prefix
};
[[nodiscard]] Located locate_path(YamlNode const& root, std::string_view path);

}  // namespace poisson::app
