#include "app/config/config_tree.hpp"

#include "app/config/config.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <sstream>

namespace poisson::app {

std::string Origin::text() const {
  std::string const name = source ? *source : std::string("configuration");
  return line == 0 ? name : name + ":" + std::to_string(line) + ":" + std::to_string(column);
}

YamlNode const* YamlNode::find(std::string_view key) const {
  for (std::size_t i = 0; i < keys.size(); ++i)
    if (keys[i].name == key)
      return &items[i];
  return nullptr;
}

YamlNode* YamlNode::find(std::string_view key) {
  return const_cast<YamlNode*>(std::as_const(*this).find(key));
}

namespace {

constexpr std::size_t max_depth = 32;
constexpr std::size_t max_nodes = 100000;

[[noreturn]] void fail(Origin const& origin, std::string const& message) {
  throw ConfigError("", origin.text() + ": " + message);
}

std::size_t count_nodes(YamlNode const& node) {
  std::size_t n = 1;
  for (auto const& item : node.items)
    n += count_nodes(item);
  return n;
}

/// Collects the parser's events into a tree.
class TreeBuilder : public YAML::EventHandler {
public:
  TreeBuilder(std::shared_ptr<std::string const> source, bool with_lines, bool quotes)
      : source_(std::move(source)), with_lines_(with_lines), quotes_(quotes) {}

  [[nodiscard]] Origin at(YAML::Mark const& mark) const {
    return with_lines_ && mark.line >= 0 ? Origin{source_, mark.line + 1, mark.column + 1} : Origin{source_, 0, 0};
  }
  [[nodiscard]] YamlNode take() { return std::move(root_); }

  void OnDocumentStart(YAML::Mark const&) override {}
  void OnDocumentEnd() override {}
  void OnNull(YAML::Mark const& mark, YAML::anchor_t anchor) override {
    YamlNode node;
    node.origin = at(mark);
    add(std::move(node), anchor);
  }
  void OnAlias(YAML::Mark const& mark, YAML::anchor_t anchor) override {
    auto const target = anchors_.find(anchor);
    if (target == anchors_.end())
      fail(at(mark), "this alias refers to a value that contains it");
    YamlNode node = target->second;
    node.origin = at(mark);
    count(count_nodes(node), node.origin);
    place(std::move(node));
  }
  void OnScalar(YAML::Mark const& mark, std::string const& tag, YAML::anchor_t anchor, std::string const& value) override {
    YamlNode node;
    node.origin = at(mark);
    check_tag(tag, {"!", "tag:yaml.org,2002:str", "tag:yaml.org,2002:int", "tag:yaml.org,2002:float", "tag:yaml.org,2002:bool"},
              node.origin);
    node.kind = YamlNode::Kind::scalar;
    node.text = value;
    node.quoted = tag == "!" || tag == "tag:yaml.org,2002:str";
    if (std::any_of(value.begin(), value.end(), [](char c) { return (c >= 0 && c < ' ' && c != '\n' && c != '\t') || c == 127; }))
      fail(node.origin, "text with control characters");
    add(std::move(node), anchor);
  }
  void OnSequenceStart(YAML::Mark const& mark, std::string const& tag, YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
    open(YamlNode::Kind::list, mark, tag, "tag:yaml.org,2002:seq", anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(YAML::Mark const& mark, std::string const& tag, YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
    open(YamlNode::Kind::map, mark, tag, "tag:yaml.org,2002:map", anchor);
  }
  void OnMapEnd() override { close(); }

private:
  struct Open {
    YamlNode node;
    YAML::anchor_t anchor;
    std::optional<YamlNode::Key> key;
  };

  void check_tag(std::string const& tag, std::vector<std::string> const& allowed, Origin const& origin) const {
    if (!tag.empty() && tag != "?" && std::find(allowed.begin(), allowed.end(), tag) == allowed.end())
      fail(origin, "YAML tags" + (quotes_ ? " such as " + tag : "") +
                       " have no meaning here; remove it, or put quotes around text that begins with '!'");
  }
  void count(std::size_t n, Origin const& origin) {
    n_nodes_ += n;
    if (n_nodes_ > max_nodes)
      fail(origin, "more than " + std::to_string(max_nodes) + " values, aliases expanded");
  }
  void open(YamlNode::Kind kind, YAML::Mark const& mark, std::string const& tag, std::string const& allowed_tag,
            YAML::anchor_t anchor) {
    Open entry{{}, anchor, std::nullopt};
    entry.node.kind = kind;
    entry.node.origin = at(mark);
    check_tag(tag, {"!", allowed_tag}, entry.node.origin);
    count(1, entry.node.origin);
    if (stack_.size() >= max_depth)
      fail(entry.node.origin, "nested more than " + std::to_string(max_depth) + " levels deep");
    stack_.push_back(std::move(entry));
  }
  void close() {
    Open entry = std::move(stack_.back());
    stack_.pop_back();
    merge(entry.node);
    remember(entry.node, entry.anchor);
    place(std::move(entry.node));
  }
  /// `<<: *name` or `<<: [*first, *second]` adds the keys of other maps that are not given here; of two maps the first counts.
  static void merge(YamlNode& map) {
    auto const found = std::find_if(map.keys.begin(), map.keys.end(), [](auto const& key) { return key.name == "<<"; });
    if (map.kind != YamlNode::Kind::map || found == map.keys.end())
      return;
    auto const at = found - map.keys.begin();
    YamlNode const value = std::move(map.items[static_cast<std::size_t>(at)]);
    map.items.erase(map.items.begin() + at);
    map.keys.erase(found);
    std::vector<YamlNode> const one{value};
    for (YamlNode const& other : value.kind == YamlNode::Kind::list ? value.items : one) {
      if (other.kind != YamlNode::Kind::map)
        fail(other.origin, "a merge key (<<) takes a map, such as *name, or a list of maps");
      for (std::size_t i = 0; i < other.keys.size(); ++i)
        if (map.find(other.keys[i].name) == nullptr) {
          map.keys.push_back(other.keys[i]);
          map.items.push_back(other.items[i]);
        }
    }
  }
  void add(YamlNode node, YAML::anchor_t anchor) {
    count(1, node.origin);
    remember(node, anchor);
    place(std::move(node));
  }
  void remember(YamlNode const& node, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor)
      anchors_[anchor] = node;
  }
  void place(YamlNode node) {
    if (stack_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = stack_.back();
    if (parent.node.kind == YamlNode::Kind::map && !parent.key) {
      if (node.kind != YamlNode::Kind::scalar)
        fail(node.origin, "a key must be a plain name");
      for (auto const& key : parent.node.keys)
        if (key.name == node.text)
          fail(node.origin,
               "duplicate key" + (quotes_ ? " '" + node.text + "'" : "") + "; the first one is at " + key.origin.text());
      parent.key = YamlNode::Key{node.text, node.origin};
      return;
    }
    if (parent.key) {
      parent.node.keys.push_back(std::move(*parent.key));
      parent.key.reset();
    }
    parent.node.items.push_back(std::move(node));
  }

  std::shared_ptr<std::string const> source_;
  bool with_lines_, quotes_;
  YamlNode root_;
  std::vector<Open> stack_;
  std::map<YAML::anchor_t, YamlNode> anchors_;
  std::size_t n_nodes_ = 0;
};

/// Bytes of the UTF-8 character that begins at `i`, or 0 when there is none (overlong forms and surrogates are none).
std::size_t utf8_length(std::string_view text, std::size_t i) {
  auto const byte = [&](std::size_t k) { return k < text.size() ? static_cast<unsigned char>(text[k]) : 0u; };
  auto const follows = [&](std::size_t k) { return (byte(k) & 0xC0u) == 0x80u; };
  unsigned const lead = byte(i), second = byte(i + 1);
  if (lead < 0x80)
    return 1;
  if (lead >= 0xC2 && lead <= 0xDF)
    return follows(i + 1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF)
    return follows(i + 1) && follows(i + 2) && !(lead == 0xE0 && second < 0xA0) && !(lead == 0xED && second > 0x9F) ? 3 : 0;
  if (lead >= 0xF0 && lead <= 0xF4)
    return follows(i + 1) && follows(i + 2) && follows(i + 3) && !(lead == 0xF0 && second < 0x90) &&
                   !(lead == 0xF4 && second > 0x8F)
               ? 4
               : 0;
  return 0;
}

/// Binary data, and tabs where YAML wants spaces: what the parser would report in words that do not help.
void check_characters(std::string_view text, Origin origin, bool quotes) {
  bool const with_lines = origin.line > 0;
  bool indentation = true, tab_in_indentation = false;
  for (std::size_t i = 0; i < text.size();) {
    auto const c = static_cast<unsigned char>(text[i]);
    std::size_t const length = utf8_length(text, i);
    if (length == 0 || (c < ' ' && c != '\t' && c != '\n' && c != '\r') || c == 127) {
      char hex[8];
      std::snprintf(hex, sizeof hex, "0x%02X", c);
      fail(origin, "not a text file in UTF-8" + (quotes ? std::string(": it holds the byte ") + hex : ""));
    }
    if (with_lines && indentation && c == '\t')
      tab_in_indentation = true;
    else if (c != ' ' && c != '\n' && c != '\r') {
      if (indentation && tab_in_indentation && c != '#')
        fail({origin.source, origin.line, 1}, "tab in the indentation; YAML allows only spaces there");
      indentation = false;
    }
    if (c == '\n' && with_lines) {
      ++origin.line;
      origin.column = 0;
      indentation = true;
      tab_in_indentation = false;
    }
    if (with_lines)
      ++origin.column;
    i += length;
  }
}

/// There is a '?' in a line of YAML, outside of quotes and comments.
bool has_question_mark(std::string_view line) {
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    char const c = line[i];
    if (quote != 0)
      quote = c == quote ? '\0' : quote;
    else if (c == '"' || c == '\'')
      quote = c;
    else if (c == '#' && (i == 0 || line[i - 1] == ' '))
      return false;
    else if (c == '?')
      return true;
  }
  return false;
}

/// The parser's words, and what usually is behind them. `line` is where it stopped.
std::string explain(std::string const& message, std::string_view line, bool on_command_line) {
  std::string text = "YAML syntax: " + message;
  if (has_question_mark(line))
    text += std::string(" (an expression with '?' and ':' needs quotes: ") +
            (on_command_line ? "--set 'problem.source=\"x > 0.5 ? 1 : 0\"'" : "source: \"x > 0.5 ? 1 : 0\"") + ")";
  else if (message.find("anchor") != std::string::npos)
    text += " (text that begins with '*' or '&' needs quotes)";
  else if (message.find("map value") != std::string::npos || message.find("end of map") != std::string::npos)
    text += " (check the indentation; text that contains ': ' or begins with a special character needs quotes)";
  else if (message.find("flow") != std::string::npos || message.find("end of sequence") != std::string::npos)
    text += " (check that every [ and { is closed, and that text within them that contains , [ ] { } is quoted)";
  return text;
}

}  // namespace

namespace {

/// Line `number`, counted from 0; empty where there is none.
std::string_view line_of(std::string_view text, int number) {
  for (; number > 0; --number) {
    auto const end = text.find('\n');
    if (end == std::string_view::npos)
      return {};
    text.remove_prefix(end + 1);
  }
  return number < 0 ? std::string_view() : text.substr(0, text.find('\n'));
}

}  // namespace

YamlNode parse_yaml(std::string_view text, std::string const& source, bool with_lines, bool quotes) {
  auto const shared_source = std::make_shared<std::string const>(source);
  Origin const start{shared_source, with_lines ? 1 : 0, with_lines ? 1 : 0};
  check_characters(text, start, quotes);
  TreeBuilder builder(shared_source, with_lines, quotes);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    if (parser.HandleNextDocument(builder)) {
      TreeBuilder rest(shared_source, with_lines, quotes);
      if (parser.HandleNextDocument(rest)) {
        Origin const second = rest.take().origin;
        fail(second.source ? second : start, "a second document, or text behind the end of the first; one document is allowed");
      }
    }
  } catch (YAML::Exception const& error) {
    std::string const message = quotes ? error.msg : error.msg.substr(0, error.msg.find(": "));  // a name or a character follows
    fail(builder.at(error.mark), explain(message, line_of(text, error.mark.line), !with_lines));
  }
  YamlNode root = builder.take();
  if (!root.origin.source)
    root.origin = start;
  return root;
}

std::string quoted_text(std::string_view text) {
  std::string out = "\"";
  for (char const c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else
      out += c;
  }
  return out + '"';
}

std::string plain_or_quoted(std::string_view text) {
  auto const in = [](char c, std::string_view set) { return set.find(c) != std::string_view::npos; };
  auto const letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; };
  bool plain = !text.empty() && (letter(text[0]) || (text.size() > 1 && in(text[0], "+-.") && (letter(text[1]) || text[1] == '.')));
  for (char const c : text)
    plain = plain && (letter(c) || in(c, "+-./"));
  for (std::string_view const special : {"null", "Null", "NULL", "---", "..."})
    plain = plain && text != special;
  return plain ? std::string(text) : quoted_text(text);
}

std::string flow_text(YamlNode const& node) {
  std::string out;
  switch (node.kind) {
  case YamlNode::Kind::null:
    return "null";
  case YamlNode::Kind::scalar:
    return node.quoted ? quoted_text(node.text) : plain_or_quoted(node.text);
  case YamlNode::Kind::list:
    for (auto const& item : node.items)
      out += (out.empty() ? "" : ", ") + flow_text(item);
    return "[" + out + "]";
  case YamlNode::Kind::map:
    for (std::size_t i = 0; i < node.items.size(); ++i)
      out += (i == 0 ? "" : ", ") + plain_or_quoted(node.keys[i].name) + ": " + flow_text(node.items[i]);
    return "{" + out + "}";
  }
  return out;
}

std::vector<PathStep> split_path(std::string_view path) {
  constexpr std::string_view sweep = "sweep.";
  std::vector<PathStep> steps;
  std::size_t i = 0;
  if (path.starts_with(sweep) && path.size() > sweep.size()) {
    // Its sections have keys of their own, its axes are key paths.
    steps.push_back({"sweep", false});
    i = sweep.size();
    while (path.substr(i).starts_with("zip.") || path.substr(i).starts_with("product.")) {
      std::size_t const end = path.find('.', i);
      steps.push_back({std::string(path.substr(i, end - i)), false});
      i = end + 1;
    }
    if (!path.substr(i).starts_with("sample.") && !path.substr(i).starts_with("until.") && !path.substr(i).starts_with("greedy.")) {
      steps.push_back({std::string(path.substr(i)), false});
      return steps;
    }
  }
  while (i < path.size()) {
    if (path[i] == '[') {
      auto const end = path.find(']', i);
      if (end == std::string_view::npos || end == i + 1 || steps.empty())
        return {};
      steps.push_back({std::string(path.substr(i + 1, end - i - 1)), true});
      i = end + 1;
      if (i < path.size() && path[i] == '.')
        ++i;
      else if (i < path.size() && path[i] != '[')
        return {};
      else
        continue;
    } else {
      auto const end = std::min(path.find_first_of(".[", i), path.size());
      if (end == i)
        return {};
      steps.push_back({std::string(path.substr(i, end - i)), false});
      i = end;
      if (i == path.size() || path[i] == '[')
        continue;
      ++i;
    }
    if (i == path.size())
      return {};  // a point at the end
  }
  return steps;
}

Located locate_path(YamlNode const& root, std::string_view path) {
  Located result{&root, root.origin, 0};
  for (auto const& step : split_path(path)) {
    YamlNode const* next = nullptr;
    Origin origin;
    if (result.node->kind == YamlNode::Kind::map) {
      for (std::size_t i = 0; i < result.node->keys.size(); ++i)
        if (result.node->keys[i].name == step.name) {
          next = &result.node->items[i];
          // A scalar is what is wrong; of a longer value its key is easier to find.
          origin = next->kind == YamlNode::Kind::scalar ? next->origin : result.node->keys[i].origin;
        }
    } else if (result.node->kind == YamlNode::Kind::list && step.index) {
      for (std::size_t i = 0; i < result.node->items.size(); ++i)
        if (std::to_string(i) == step.name) {
          next = &result.node->items[i];
          origin = next->origin;
        }
    }
    if (!next) {
      result.node = nullptr;
      return result;
    }
    result = {next, origin, result.depth + 1};
  }
  return result;
}

}  // namespace poisson::app
