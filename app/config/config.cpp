#include "app/config/config.hpp"

#include "app/config/config_keys.hpp"
#include "app/config/effective.hpp"
#include "app/config/parameters.hpp"
#include "app/io/hash.hpp"
#include "assembly/expression/expression.hpp"
#include "assembly/image/image_file.hpp"
#include "gpu/core/input_file.hpp"
#include "gpu/core/interrupt.hpp"
#include "gpu/core/nearest_name.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <system_error>
#include <vector>

namespace poisson::app {
namespace {

namespace fs = std::filesystem;

/// A relative mesh file, or one of a field, is looked for from the current directory, then from the configuration's folder; when it
/// is in neither place the name stays as it was, and whoever opens it says so.
std::string find_input_file(std::string const& file, fs::path const& folder) {
  std::error_code ignored;
  if (file.empty() || fs::path(file).is_absolute() || fs::exists(file, ignored))
    return file;
  fs::path const beside = (folder / file).lexically_normal();
  return fs::exists(beside, ignored) ? beside.string() : file;
}

/// The same of an image, which may be a pattern of names: then its folder is looked for.
std::string find_image(std::string const& file, fs::path const& folder) {
  fs::path const path(file);
  if (path.filename().string().find_first_of("*?") == std::string::npos)
    return find_input_file(file, folder);
  fs::path const parent = path.has_parent_path() ? path.parent_path() : fs::path(".");
  // A pattern without a folder is one of files beside the configuration.
  return ((path.has_parent_path() || folder.empty() ? fs::path(find_input_file(parent.string(), folder)) : folder) /
          path.filename())
      .lexically_normal()
      .string();
}

constexpr std::size_t max_bytes = 1 << 20;  ///< of a configuration

[[noreturn]] void refuse_file(fs::path const& path, std::string const& what) {
  throw ConfigError("", path.string() + ": " + what);
}

/// Up to max_bytes + 1 bytes. Interrupts are looked for: signal handlers restart a read, which may wait for a user.
std::string read_stdin() {
  constexpr int wait_ms = 100;
  std::string text(max_bytes + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    if (interrupt_requested())
      throw Interrupted();
    pollfd input{STDIN_FILENO, POLLIN, 0};
    int const ready = poll(&input, 1, wait_ms);
    if (ready == 0 || (ready < 0 && errno == EINTR))
      continue;
    auto const n = ::read(STDIN_FILENO, text.data() + size, text.size() - size);
    if (n == 0)
      break;
    if (n > 0)
      size += static_cast<std::size_t>(n);
    else if (errno != EINTR && errno != EAGAIN)
      refuse_file(stdin_name, std::string("cannot be read: ") + std::strerror(errno));
  }
  text.resize(size);
  return text;
}

template <class Action>
void for_blocks(std::string const& path, Action const& action) {
  std::ifstream file = open_regular_file(path, std::ios::binary);
  for (std::vector<char> block(1 << 16); file.read(block.data(), std::ssize(block)), file.gcount() > 0;)
    action(std::span<char const>(block.data(), static_cast<std::size_t>(file.gcount())));
}

/// The hash of a large file, by words. It is kept for the other cases of a sweep.
std::string digits_of_large(std::string const& path, std::uintmax_t size) {
  static std::mutex mutex;
  static std::map<std::string, std::string> known;
  std::error_code error;
  std::string const key =
      path + '\n' + std::to_string(size) + ' ' + std::to_string(fs::last_write_time(path, error).time_since_epoch().count());
  std::scoped_lock const lock(mutex);
  std::string& digits = known[key];
  if (digits.empty()) {
    Hash hash;
    for_blocks(path, [&](std::span<char const> block) { hash.add_words(block); });
    digits = hash.digits();
  }
  return digits;
}

void add_file(Hash& hash, std::string const& path) {
  constexpr std::uintmax_t large = 1 << 22;
  std::error_code error;  // whoever reads it says what is wrong
  auto const size = fs::is_regular_file(path, error) ? fs::file_size(path, error) : 0;
  if (!error && size > large)
    hash.add_text(digits_of_large(path, size));
  else
    for_blocks(path, [&](std::span<char const> block) { hash.add_text({block.data(), block.size()}); });
}

/// A hash of names, types and allowed values: of a schema without its descriptions.
std::string version_of(schema::Json const& schema) {
  std::function<schema::Json(schema::Json const&)> const without_words = [&](schema::Json const& node) {
    if (!node.is_structured())
      return node;
    schema::Json rest = node.is_array() ? schema::Json::array() : schema::Json::object();
    for (auto const& [name, item] : node.items())
      if (node.is_array())
        rest.push_back(without_words(item));
      else if (name != "description" || !item.is_string())
        rest[name] = without_words(item);
    return rest;
  };
  Hash hash;
  hash.add_text(without_words(schema).dump());
  return hash.digits();
}

/// The text of a configuration file. Throws ConfigError.
std::string read_text(fs::path const& path) {
  std::error_code error;
  auto const status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found)
    refuse_file(path, "there is no such configuration file");
  if (error)
    refuse_file(path, "cannot be read: " + error.message());
  if (status.type() == fs::file_type::directory)
    refuse_file(path, "is a directory; a YAML file is needed");
  if (status.type() != fs::file_type::regular)
    refuse_file(path, "is not a regular file; a YAML file is needed");
  auto const close = [](std::FILE* f) { std::fclose(f); };
  std::unique_ptr<std::FILE, decltype(close)> const file(std::fopen(path.c_str(), "rb"), close);
  if (!file) {
    int const reason = errno;
    require_resources(reason, path);
    refuse_file(path, std::string("cannot be opened: ") + std::strerror(reason));
  }
  std::string text(max_bytes + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  if (std::ferror(file.get()))
    refuse_file(path, "cannot be read");
  if (text.size() > max_bytes)
    refuse_file(path, "is larger than 1 MiB; this is no configuration");
  return text;
}

/// `over` wins; maps are merged, all else is replaced.
void merge(YamlNode& under, YamlNode over) {
  if (under.kind != YamlNode::Kind::map || over.kind != YamlNode::Kind::map) {
    under = std::move(over);
    return;
  }
  for (std::size_t i = 0; i < over.keys.size(); ++i)
    if (YamlNode* const there = under.find(over.keys[i].name))
      merge(*there, std::move(over.items[i]));
    else {
      under.keys.push_back(std::move(over.keys[i]));
      under.items.push_back(std::move(over.items[i]));
    }
}

/// A configuration and the files that it includes, whose keys count where it has none itself. Of a file that is no configuration
/// nothing is shown: an `include` may name any.
class IncludedFiles {
public:
  /// The tree of the text of the file `name`, and of what it includes.
  [[nodiscard]] YamlNode tree_of(std::string_view text, std::string const& name) {
    YamlNode root = parse_yaml(text, name, true, open_.empty());
    if (root.kind != YamlNode::Kind::map)
      return root;
    if (!open_.empty())
      check_sections(root);
    YamlNode const* const include = root.find("include");
    if (include == nullptr)
      return root;
    YamlNode const files = *include;
    auto const at = include - root.items.data();
    root.items.erase(root.items.begin() + at);
    root.keys.erase(root.keys.begin() + at);
    std::vector<YamlNode> const one{files};
    YamlNode merged;
    merged.kind = YamlNode::Kind::map;
    merged.origin = root.origin;
    open_.push_back(canonical(name));
    for (YamlNode const& file : files.kind == YamlNode::Kind::list ? files.items : one)
      merge(merged, included(file, name));
    open_.pop_back();
    merge(merged, std::move(root));
    return merged;
  }

private:
  static constexpr std::size_t most = 100;

  [[nodiscard]] static fs::path canonical(fs::path const& path) {
    std::error_code ignored;
    return fs::weakly_canonical(path, ignored);
  }

  /// The tree of one file that `name` includes. It is read once, however often it is included: else files that each include the
  /// next one twice would take a time that doubles with every file.
  [[nodiscard]] YamlNode included(YamlNode const& file, std::string const& name) {
    if (file.kind != YamlNode::Kind::scalar || file.text.empty())
      schema::reject_value(file, "include", "path of a YAML file, relative to this one, or a list of paths");
    fs::path const path = (fs::path(name).parent_path() / file.text).lexically_normal();
    if (std::find(open_.begin(), open_.end(), canonical(path)) != open_.end())
      schema::reject(file.origin, "include", "'" + file.text + "' includes itself, directly or through other files");
    if (auto const known = read_.find(path); known != read_.end())
      return known->second;
    if (++n_files_ > most)
      schema::reject(file.origin, "include",
                     "'" + file.text + "' is one file more than the " + std::to_string(most) + " that a configuration may include");
    YamlNode tree;
    try {
      tree = tree_of(read_text(path), path.string());
    } catch (ConfigError const& error) {
      if (error.key().empty() && std::string_view(error.what()).starts_with(path.string() + ": "))
        schema::reject(file.origin, "include", error.what());
      throw;
    }
    if (tree.kind != YamlNode::Kind::map && tree.kind != YamlNode::Kind::null)
      schema::reject(file.origin, "include", "'" + file.text + "' holds no map of keys");
    tree.kind = YamlNode::Kind::map;
    return read_.emplace(path, std::move(tree)).first->second;
  }

  /// A file of which a key is none of ours may be anything, such as a list of passwords: its keys are not shown.
  static void check_sections(YamlNode const& root) {
    std::vector<std::string_view> sections{"include"};
    for (std::string const& path : schema::run_key_paths())
      sections.push_back(std::string_view(path).substr(0, path.find_first_of(".[")));
    for (YamlNode::Key const& key : root.keys)
      if (std::find(sections.begin(), sections.end(), key.name) == sections.end()) {
        std::string const meant = nearest_name(key.name, sections);
        schema::reject(key.origin, "include",
                       "here is a key that no configuration has" + (meant.empty() ? "" : "; did you mean '" + meant + "'?"));
      }
  }

  std::map<fs::path, YamlNode> read_;
  std::vector<fs::path> open_;  ///< that include each other down to the one that is read
  std::size_t n_files_ = 0;
};

}  // namespace

Configuration::Configuration(std::shared_ptr<YamlNode const> root, std::string name, std::optional<SystemSpec> system,
                             SweepSpec of_case)
    : root_(std::move(root)), name_(std::move(name)) {
  config_.system = std::move(system);
  config_.sweep = std::move(of_case);
  schema::check_names(*root_, schema::run_key_paths());
  auto const with_parameters = std::make_shared<YamlNode>(*root_);
  schema::set_parameters(*with_parameters);
  root_ = with_parameters;
  fs::path path(name_);
  if (config_.system) {
    schema::check_system(*root_);
    schema::read_keys(schema::system_keys(), *root_, "", config_);
    schema::check_solver(*root_, config_);
    if (path.extension() == ".gz")
      path = path.stem();
  } else {
    schema::read_keys(schema::run_keys(), *root_, "", config_);
    schema::apply_coordinates(*root_, config_);
    schema::check_run(*root_, config_);
    warnings_ = schema::unused_parameters(*root_, name_);
    schema::drop_unused_parameters(config_);
    config_.problem.mesh.file = find_input_file(config_.problem.mesh.file, path.parent_path());
    for (std::string& file : config_.problem.mesh.image.files)
      file = find_image(file, path.parent_path());
    schema::apply_image(*root_, config_);
    if (config_.effective.is_asked())
      set_effective_problem(config_, config_.effective.has_periodic(), config_.effective.direction);
    if (config_.adaptive.is_asked())
      config_.problem.mesh.local = std::make_shared<assembly::LocalRefinement const>();
    for (FieldSpec& field : config_.fields)
      field.file = find_input_file(field.file, path.parent_path());
  }
  if (config_.output.directory.empty())
    config_.output.directory = (fs::path("results") / configuration_stem(path.string())).string();
}

std::string Configuration::text_with_sets() const {
  std::string text = text_;
  if (sets_.empty())
    return text;
  text += (text.empty() || text.ends_with('\n') ? "" : "\n") + std::string("# Set beside this file:\n");
  for (std::string const& set : sets_) {
    std::string line = set;
    std::replace(line.begin(), line.end(), '\n', ' ');
    text += "#   --set " + plain_or_quoted(line) + "\n";
  }
  return text;
}

std::string Configuration::locate(InputError const& error) const {
  if (dynamic_cast<ConfigError const*>(&error))
    return error.what();
  if (config_.effective.is_asked() && error.key().starts_with("problem.boundary"))  // which is not in the file
    return locate(InputError("analysis.effective", std::string("its conditions do not fit this mesh: ") + error.what()));
  std::string const message = (error.key().empty() ? "" : error.key() + ": ") + error.what();
  Located const located = locate_path(*root_, error.key());
  if (config_.system && (located.depth == 0 || located.node == nullptr))
    return message;  // of a default, or of one of two files, and says which
  return (located.depth == 0 ? name_ : located.origin.text()) + ": " + message;
}

Configuration Configuration::changed(YamlNode root, std::vector<std::string> const& sets, std::string_view origin,
                                     SweepSpec of_case) const {
  for (auto const& set : sets)
    schema::apply_set(root, set, origin);
  Configuration changed(std::make_shared<YamlNode const>(std::move(root)), name_, config_.system, std::move(of_case));
  changed.text_ = text_;
  changed.sets_ = sets_;
  changed.sets_.insert(changed.sets_.end(), sets.begin(), sets.end());
  return changed;
}

Configuration Configuration::with(std::vector<std::string> const& sets, std::string_view origin) const {
  return changed(*root_, sets, origin, {});
}

Configuration Configuration::case_with(std::vector<std::string> const& sets) const {
  YamlNode root = *root_;
  if (auto const at = std::find_if(root.keys.begin(), root.keys.end(), [](auto const& key) { return key.name == "sweep"; });
      at != root.keys.end()) {  // which has been checked, and may be long
    root.items.erase(root.items.begin() + (at - root.keys.begin()));
    root.keys.erase(at);
  }
  SweepSpec of_case;
  for (SweepAxis const& axis : config_.sweep.axes)
    for (std::string const& set : sets)
      if (set.starts_with(axis.path + "=")) {
        std::string const value = set.substr(axis.path.size() + 1);
        of_case.group.parts.push_back({of_case.axes.size(), {}});
        of_case.axes.push_back({.path = axis.path, .values = {value}, .of_case = value});
      }
  return changed(std::move(root), sets, "sweep", std::move(of_case));
}

Configuration Configuration::in_directory(std::string const& directory) const {
  std::string const set = "output.directory=" + schema::Json(directory).dump();
  YamlNode root = *root_;
  schema::apply_set(root, set, "sweep");
  Configuration moved = *this;
  moved.root_ = std::make_shared<YamlNode const>(std::move(root));
  moved.sets_.push_back(set);
  moved.config_.output.directory = directory;
  return moved;
}

std::map<std::string, double> Configuration::parameters_with(std::vector<std::string> const& sets) const {
  YamlNode root;
  root.kind = YamlNode::Kind::map;
  if (YamlNode const* const parameters = root_->find("parameters")) {
    root.keys.push_back({"parameters", parameters->origin});
    root.items.push_back(*parameters);
  }
  for (std::string const& set : sets)
    if (set.starts_with("parameters."))
      schema::apply_set(root, set, "sweep");
  return schema::values_of_parameters(root);
}

Configuration parse_configuration(std::string_view text, std::string const& name, std::vector<std::string> const& sets) {
  auto root = std::make_shared<YamlNode>(IncludedFiles().tree_of(text, name));
  if (root->kind == YamlNode::Kind::null)
    throw ConfigError("", name + ": the " + (name == stdin_name ? "input" : "file") +
                              " is empty; it needs at least problem.boundary (`poisson schema` shows every key)");
  schema::check_names(*root, schema::run_key_paths());  // before anything is set in what may not even be a map
  for (auto const& set : sets)
    schema::apply_set(*root, set, "--set");
  Configuration configuration(std::move(root), name);
  configuration.text_ = text;
  configuration.sets_ = sets;
  return configuration;
}

std::string configuration_stem(std::string const& file) {
  return file == stdin_name ? "stdin" : fs::path(file).stem().string();
}

Configuration load_configuration(fs::path const& path, std::vector<std::string> const& sets) {
  if (path == "-") {
    std::string const text = read_stdin();
    if (text.size() > max_bytes)
      refuse_file(stdin_name, "is larger than 1 MiB; this is no configuration");
    return parse_configuration(text, stdin_name, sets);
  }
  return parse_configuration(read_text(path), path.string(), sets);
}

Configuration system_configuration(SystemSpec system, std::vector<std::string> const& sets) {
  auto root = std::make_shared<YamlNode>();
  for (auto const& set : sets)
    schema::apply_set(*root, set, "--set");
  std::string const name = system.matrix;
  return {std::move(root), name, std::move(system)};
}

std::vector<std::string const*> expressions_of(RunConfig const& config) {
  assembly::ProblemSpec const& problem = config.problem;
  std::vector<std::string const*> texts{&problem.source};
  for (auto const& [material, text] : problem.source_of_material)
    texts.push_back(&text);
  for (auto const& [name, text] : problem.source_of_name)
    texts.push_back(&text);
  for (auto const& source : problem.line_sources)
    texts.push_back(&source.value);
  for (auto const& [material, expressions] : problem.coefficient)
    for (auto const& expression : expressions)
      texts.push_back(&expression);
  for (auto const& [name, expressions] : problem.coefficient_of_name)
    for (auto const& expression : expressions)
      texts.push_back(&expression);
  for (auto const* const places : {&problem.mesh.boundaries, &problem.mesh.regions})
    for (auto const& place : *places)
      texts.push_back(&place.where);
  for (auto const& condition : problem.boundary) {
    texts.push_back(&condition.value);
    texts.push_back(&condition.alpha);
  }
  if (problem.exact)
    texts.push_back(&*problem.exact);
  for (auto const& quantity : config.output.quantities)
    texts.push_back(&quantity.value);
  return texts;
}

std::string schema_text() {
  schema::Layout expressions("");
  expressions.comment(
      "", "`include: common.yaml` (or a list) takes the keys of other files, relative to this one, where it has none itself. "
          "Anchors (&name), aliases (*name) and merge keys (<<: *name) are YAML's.");
  expressions.comment("", "Expressions stand in quotes. Operators: + - * / ^, < <= > >= == !=, && || !, a ? b : c. Names: " +
                              assembly::expression_names() + ". log is the natural logarithm, step(a) is 1 where a >= 0.");
  return "# Reference configuration: every key with its default. All keys may be left out but problem.boundary.\n" +
         expressions.text() + schema::document_keys(schema::written_keys(schema::run_keys(), RunConfig{}), "");
}

namespace {

/// Every key and section that `poisson schema` knows, those of list elements as "problem.boundary.type".
std::vector<std::string> schema_paths() {
  std::vector<std::string> paths;
  for (auto const& k : schema::run_keys()) {
    paths.push_back(k.path);
    for (auto const& inner : k.inner_keys)
      paths.push_back(k.path + "." + inner);
  }
  return paths;
}

std::string last_name(std::string const& path) {
  return path.substr(path.find_last_of('.') + 1);
}

[[noreturn]] void refuse_key(std::string const& key) {
  std::vector<std::string> const paths = schema_paths();
  std::string meant, sections;
  for (auto const& path : paths) {
    if (last_name(path) == last_name(key))  // the right name at another level, or at several
      meant += (meant.empty() ? "'" : " or '") + path + "'";
    if (path.find('.') == std::string::npos)
      sections += (sections.empty() ? "" : ", ") + path;
  }
  if (meant.empty()) {
    std::size_t best = too_distant;
    auto const try_name = [&](std::string const& path, std::size_t distance) {
      if (distance < best) {
        best = distance;
        meant = "'" + path + "'";
      }
    };
    for (auto const& path : paths)
      try_name(path, name_distance(key, path));
    for (auto const& path : paths)
      try_name(path, name_distance(last_name(key), last_name(path)) + 1);
  }
  throw InputError("unknown key '" + schema::shorten(key) + "'" + (meant.empty() ? "" : "; did you mean " + meant + "?") +
                   (meant.empty() ? "; there are " : " There are ") + sections + ", and what `poisson schema` shows below them");
}

}  // namespace

std::string schema_text(std::string const& key) {
  std::string path;  // without indices: all elements of a list have the same keys
  for (std::size_t i = 0; i < key.size(); ++i)
    if (key[i] == '[' && key.find(']', i) != std::string::npos)
      i = key.find(']', i);
    else
      path += key[i];
  schema::Keys<RunConfig> chosen;
  std::string element;
  for (auto const& k : schema::run_keys()) {
    if (k.path == path || k.path.starts_with(path + "."))
      chosen.push_back(k);
    for (auto const& inner : k.inner_keys)
      if (k.path + "." + inner == path)
        element = (k.document ? k.document : k.element)(schema::Layout("").indent(path), inner);
  }
  if (path.empty() || (chosen.empty() && element.empty()))
    refuse_key(key);
  schema::Layout sections("");
  for (std::size_t end = path.find('.'); end != std::string::npos; end = path.find('.', end + 1))
    sections.heading(path.substr(0, end));
  if (element.empty() && chosen.size() == 1 && chosen[0].path == path && chosen[0].element && !chosen[0].document) {
    schema::Layout layout("");  // the keys of an element, where the whole reference has an empty list
    layout.comment(path, chosen[0].explanation());
    layout.comment(path, chosen[0].rules());
    layout.block(path, chosen[0].element(layout.indent(path) + "  ", ""));
    element = layout.text();
  }
  return sections.text() + (element.empty() ? schema::document_keys(schema::written_keys(chosen, RunConfig{}), "") : element);
}

std::string json_schema_text() {
  using schema::Json;
  Json root{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
            {"title", "poisson"},
            {"description", "Configuration of poisson: -div(k grad u) = f on hexahedral meshes"}};
  root.update(schema::json_schema_of(schema::run_keys(), RunConfig{}));
  // The conditions are missing, unless the problems of analysis.effective bring theirs.
  Json& required = root["properties"]["problem"]["required"];
  required.erase(std::find(required.begin(), required.end(), "boundary"));
  Json const asked{{"enum", Json::array({"periodic", "fixed", "both"})}};
  auto const with = [](char const* name, Json const& inner) {
    return Json{{"type", "object"}, {"required", Json::array({name})}, {"properties", {{name, inner}}}};
  };
  root["if"] = with("analysis", with("effective", with("conditions", asked)));
  root["else"] = {{"properties", {{"problem", {{"required", Json::array({"boundary"})}}}}}};
  Json const& forms = root["properties"]["sweep"]["additionalProperties"]["anyOf"];
  root["$defs"] = {{"range", forms[1]}, {"powers_of_two", forms[2]}};
  // An axis of a sweep holds values of the key that it names.
  Json& axes = root["properties"]["sweep"]["properties"];
  for (auto const& k : schema::run_keys()) {
    if (k.is_section() || k.path == "sweep" || k.path.starts_with("output."))
      continue;
    std::string pointer = "#";
    for (auto const& step : split_path(k.path))
      pointer += "/properties/" + step.name;
    Json items{{"$ref", pointer}};
    if (k.path == "problem.mesh.cells")  // also numbers, for cubes
      items = {{"if", {{"type", "array"}}}, {"then", {{"$ref", pointer}}}, {"else", {{"$ref", pointer + "/items"}}}};
    Json const list{{"type", "array"}, {"items", items}, {"minItems", 1}};
    // Not anyOf, which would tell nothing of a value that is wrong.
    axes[k.path] = {{"type", Json::array({"array", "object"})},
                    {"if", {{"type", "object"}}},
                    {"then", {{"anyOf", Json::array({Json{{"$ref", "#/$defs/range"}}, Json{{"$ref", "#/$defs/powers_of_two"}}})}}},
                    {"else", list}};
  }
  Json identified{{"$schema", root["$schema"]}, {"$id", "urn:poisson:configuration:" POISSON_VERSION ":" + version_of(root)}};
  identified.update(root);
  return identified.dump(2) + "\n";
}

std::string resolved_yaml(RunConfig const& config) {
  if (config.system)
    return "system:\n  matrix: " + plain_or_quoted(config.system->matrix) +
           "\n  rhs: " + plain_or_quoted(config.system->rhs_name()) + "\n" +
           schema::write_keys(schema::written_keys(schema::system_keys(), config));
  return schema::write_keys(schema::written_keys(schema::run_keys(), config));
}

RunConfig with_absolute_files(RunConfig config) {
  auto const make_absolute = [](std::string& file) {
    std::error_code error;
    fs::path const path = fs::absolute(file, error).lexically_normal();
    if (!file.empty() && !error)
      file = path.string();
  };
  make_absolute(config.problem.mesh.file);
  for (std::string& file : config.problem.mesh.image.files)
    make_absolute(file);
  for (FieldSpec& field : config.fields)
    make_absolute(field.file);
  if (config.system) {
    make_absolute(config.system->matrix);
    make_absolute(config.system->rhs);
  }
  return config;
}

namespace {

/// The files of a mesh or an image.
std::vector<std::string> mesh_files(assembly::MeshSpec const& mesh) {
  return mesh.image.is_given() ? assembly::files_of_image(mesh.image) : std::vector<std::string>{mesh.file};
}

}  // namespace

std::string fingerprint(RunConfig const& config) {
  RunConfig identity = config;
  identity.output.directory.clear();
  // Whatever computes it: cases that are listed on one machine are run on another.
  if (std::none_of(config.sweep.axes.begin(), config.sweep.axes.end(),
                   [](SweepAxis const& axis) { return axis.path == "backend"; }))
    identity.backend.reset();
  identity.sweep = {};
  identity.checkpoint = {};
  auto const keep_name = [](std::string& file) { file = fs::path(file).filename().string(); };
  keep_name(identity.problem.mesh.file);
  for (std::string& file : identity.problem.mesh.image.files)
    keep_name(file);
  for (FieldSpec& field : identity.fields)
    keep_name(field.file);
  if (identity.system) {
    keep_name(identity.system->matrix);
    keep_name(identity.system->rhs);
  }
  Hash hash;
  hash.add_text(resolved_yaml(identity));
  std::vector<std::string> files = mesh_files(config.problem.mesh);
  for (FieldSpec const& field : config.fields)
    files.push_back(field.file);
  if (config.system)
    files = {config.system->matrix, config.system->rhs};
  for (auto const& file : files)  // an edited file is another problem
    if (!file.empty())
      add_file(hash, file);
  return hash.digits();
}

std::string problem_fingerprint(RunConfig const& config) {
  RunConfig identity = config;
  identity.sweep = {};
  identity.output = {};
  identity.analysis.clear();
  return fingerprint(identity);
}

std::string mesh_text(RunConfig const& config) {
  std::vector<schema::WrittenKey> keys;
  for (schema::WrittenKey const& written : schema::written_keys(schema::run_keys(), config))
    if (written.key.path.starts_with("problem.mesh.") || written.key.path.starts_with("problem.element."))
      keys.push_back(written);
  return schema::write_flow(keys);
}

std::string matrix_text(RunConfig const& config) {
  RunConfig of_matrix = config;
  of_matrix.sweep = {};
  of_matrix.output = {};
  of_matrix.analysis.clear();
  assembly::ProblemSpec& problem = of_matrix.problem;
  problem.source = "0";
  problem.source_of_material.clear();
  problem.source_of_name.clear();
  problem.source_total.reset();
  problem.point_sources.clear();
  problem.line_sources.clear();
  problem.exact.reset();
  for (assembly::BoundaryCondition& condition : problem.boundary)
    condition.value = "0";
  schema::drop_unused_parameters(of_matrix);
  of_matrix.parameters = problem.parameters;
  std::string text = resolved_yaml(of_matrix);
  std::vector<std::string> files = mesh_files(config.problem.mesh);
  for (FieldSpec const& field : config.fields)
    files.push_back(field.file);
  for (std::string const& file : files)
    if (std::error_code error; !file.empty())
      text += file + " " + std::to_string(fs::last_write_time(file, error).time_since_epoch().count()) + " " +
              std::to_string(fs::file_size(file, error)) + "\n";
  return text;
}

}  // namespace poisson::app
