#include "app/config/config_keys.hpp"
#include "app/config/key_sections.hpp"

namespace poisson::app::schema {
namespace {

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

}  // namespace

Keys<RunConfig> keys_of_sweep() {
  return {
      key<RunConfig>(
          "sweep", Sweep{}, POISSON_MEMBER(sweep), "",
          "For `poisson sweep`: lists of values for any key paths; mode product runs every combination, zip the first values "
          "together, then the second ones and so on."),
  };
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

}  // namespace poisson::app::schema
