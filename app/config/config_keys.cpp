#include "app/config/config_keys.hpp"

#include "app/config/key_sections.hpp"
#include "app/config/parameters.hpp"

#include <algorithm>
#include <charconv>

namespace poisson::app::schema {
namespace {

/// The YAML text of a key's default when that is a list, else empty.
std::string default_list(std::string const& path) {
  for (auto const& k : run_keys())
    if (!k.is_section() && k.path == path) {
      RunConfig const defaults;
      std::string text = k.value->write(defaults);
      return text.starts_with('[') && text != "[]" ? text : "";
    }
  return "";
}

/// The first key below `node` that is none of system_keys; a section of theirs is looked into.
void check_system_below(YamlNode const& node, std::string const& path) {
  auto const& keys = system_keys();
  for (std::size_t i = 0; i < node.keys.size(); ++i) {
    std::string const full = path.empty() ? node.keys[i].name : path + "." + node.keys[i].name;
    YamlNode const& item = node.items[i];
    auto const is = [&](auto const& k) { return !k.is_section() && k.path == full; };
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
  static Keys<RunConfig> const all = [] {
    Keys<RunConfig> keys{
        key<RunConfig>(
            "parameters", Parameters{}, POISSON_MEMBER(problem.parameters), "",
            "Named constants for every expression and number below, {k_die: 150, t: \"k_die / 2\"}; swept as parameters.k_die. "
            "One that nothing uses is a warning, unless it is from an included file.")
            .or_null("none"),
        section<RunConfig>(
            "problem",
            "What is solved: -div(k grad u) = f on a mesh of hexahedra. Units are yours, as long as they are consistent."),
    };
    for (auto const& section :
         {keys_of_mesh, keys_of_adaptive, keys_of_problem, keys_of_solver, keys_of_analysis, keys_of_output, keys_of_sweep})
      for (auto& k : section())
        keys.push_back(std::move(k));
    return keys;
  }();
  return all;
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
      if (!k.is_section())
        all.push_back(k.path);
      for (auto const& inner : k.inner_keys)
        all.push_back(k.path + "[]." + inner);
    }
    return all;
  }();
  return paths;
}

void check_run(YamlNode const& root, RunConfig const& config) {
  check_boundary(root, config.problem);
  if (root.find("sweep")) {  // a case of a sweep has none
    check_sweep(root, config.sweep);
    check_snapshots(root, config);
  }
  check_output(root, config);
  check_pictures(root, config);
  check_fields(root, config);
  check_effective(root, config);
  check_adaptive(root, config);
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
