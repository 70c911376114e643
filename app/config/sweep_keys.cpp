#include "app/config/config_keys.hpp"
#include "app/config/key_sections.hpp"
#include "app/config/sampling.hpp"
#include "app/config/value_types.hpp"
#include "app/io/console.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace poisson::app::schema {
namespace {

enum class RangeScale { linear, log };

}  // namespace
}  // namespace poisson::app::schema

template <>
struct poisson::Names<poisson::app::schema::RangeScale> {
  using Scale = poisson::app::schema::RangeScale;
  static constexpr std::array<Named<Scale>, 2> values{{{Scale::linear, "linear"}, {Scale::log, "log"}}};
};

namespace poisson::app::schema {
namespace {

constexpr std::int64_t most_values = 100000;

/// With 15 digits: 0.3 for 0.1 + 2 * 0.1, which is 0.30000000000000004.
std::string rounded_text(double value) {
  return number_text(value, 15);
}

/// Values of an axis that are not listed one by one.
struct Range {
  double from = 0, to = 0;
  std::int64_t count = 0;
  RangeScale scale = RangeScale::linear;
  std::array<std::int64_t, 2> powers_of_two{};
};

constexpr char const* range_text = "list of one value or more, {from: 1, to: 100, count: 20, scale: linear} with scale linear or "
                                   "log, or {powers_of_two: [8, 256]}";

struct RangeKeys {
  Keys<Range> const by_count{
      key<Range>(
          "from", Number{}, [](Range& r) -> auto& { return r.from; }, "", "The first value.")
          .must_be_given("a number"),
      key<Range>(
          "to", Number{}, [](Range& r) -> auto& { return r.to; }, "", "The last value.")
          .must_be_given("a number"),
      key<Range>(
          "count", Integer{2, most_values}, [](Range& r) -> auto& { return r.count; }, "", "How many values.")
          .must_be_given("an integer of 2 or more"),
      key<Range>(
          "scale", Choice<RangeScale>{}, [](Range& r) -> auto& { return r.scale; }, "",
          "linear: equal differences; log: equal ratios."),
  };
  Keys<Range> const by_powers{
      key<Range>(
          "powers_of_two", TwoOf<Integer>{{1, std::int64_t{1} << 31, true}, "[first, last]"},
          [](Range& r) -> auto& { return r.powers_of_two; }, "", "The powers of 2 from the first to the last.")
          .must_be_given("[first, last]"),
  };
};
RangeKeys const& range_keys() {
  static RangeKeys const keys;
  return keys;
}

/// A number as a value of its axis: for the cells of a box it is that of a cube.
std::string value_text(std::string const& axis, std::string const& number) {
  return axis == "problem.mesh.cells" ? "[" + number + ", " + number + ", " + number + "]" : number;
}

/// A map that has these keys alone.
template <class T>
void read_map(Keys<T> const& keys, YamlNode const& node, std::string const& path, T& out) {
  std::vector<std::string> names;
  for (auto const& k : keys)
    names.push_back(k.path);
  check_names(node, path, names);
  read_keys(keys, node, path, out);
}

void read_range(YamlNode const& node, std::string const& path, SweepAxis& axis) {
  Range range;
  bool const powers = node.find("powers_of_two") != nullptr;
  read_map(powers ? range_keys().by_powers : range_keys().by_count, node, path, range);
  axis.given = flow_text(node);
  if (powers) {
    auto const [first, last] = range.powers_of_two;
    if (first > last)
      reject(node.origin, path + ".powers_of_two",
             "found '" + flow_text(*node.find("powers_of_two")) + "'; the first power is larger than the last one");
    for (std::int64_t value = first; value <= last; value *= 2)
      axis.values.push_back(value_text(axis.path, std::to_string(value)));
    return;
  }
  if (range.scale == RangeScale::log && !(range.from > 0 && range.to > 0))
    reject(node.origin, path, "found '" + flow_text(node) + "'; with scale: log both ends must be positive");
  for (std::int64_t i = 0; i < range.count; ++i) {
    double const t = static_cast<double>(i) / static_cast<double>(range.count - 1);
    double const value = i == 0                           ? range.from
                         : i == range.count - 1           ? range.to
                         : range.scale == RangeScale::log ? range.from * std::pow(range.to / range.from, t)
                                                          : (1 - t) * range.from + t * range.to;
    axis.values.push_back(value_text(axis.path, rounded_text(value)));
  }
}

/// uniform: [0, 1], and so on.
struct DistributionOf {
  [[nodiscard]] std::string allowed() const {
    return "map of one distribution: {uniform: [low, high]}, {loguniform: [low, high]}, {normal: [mean, deviation]} or "
           "{lognormal: [mean, deviation]} of the logarithm";
  }
  void read(YamlNode const& node, std::string const& path, SampleSpec::Parameter& out) const {
    if (node.kind != YamlNode::Kind::map || node.items.size() != 1)
      reject_value(node, path, allowed());
    check_names(node, path, Choice<Distribution>::names());
    out.distribution = *parse_name<Distribution>(node.keys[0].name);
    std::string const here = path + "." + node.keys[0].name;
    TwoOf<Number>{{}, "[number, number]"}.read(node.items[0], here, out.numbers);
    auto const [a, b] = out.numbers;
    bool const of_ends = out.distribution == Distribution::uniform || out.distribution == Distribution::loguniform;
    if (of_ends ? !(a < b) : !(b > 0))
      reject_value(node.items[0], here, of_ends ? "[low, high] with low < high" : "[mean, deviation] with a deviation > 0");
    if (out.distribution == Distribution::loguniform && !(a > 0))
      reject_value(node.items[0], here, "[low, high] with 0 < low");
  }
  [[nodiscard]] std::string write(SampleSpec::Parameter const& value) const {
    return "{" + std::string(name_of(value.distribution)) + ": [" + Number{}.write(value.numbers[0]) + ", " +
           Number{}.write(value.numbers[1]) + "]}";
  }
};

/// A map from names of parameters, or key paths, to distributions.
struct SampledParameters {
  [[nodiscard]] std::string allowed() const {
    return "map from names of parameters, or key paths, to distributions, e.g. {k: {uniform: [1, 2]}}";
  }
  void read(YamlNode const& node, std::string const& path, std::vector<SampleSpec::Parameter>& out) const {
    if (node.kind != YamlNode::Kind::map || node.items.empty())
      reject_value(node, path, allowed());
    out.clear();
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      SampleSpec::Parameter& parameter = out.emplace_back();
      std::string const& name = node.keys[i].name;
      parameter.path = name.find_first_of(".[") == std::string::npos ? "parameters." + name : name;
      DistributionOf{}.read(node.items[i], path + "." + name, parameter);
    }
  }
  [[nodiscard]] std::string write(std::vector<SampleSpec::Parameter> const& value) const {
    std::vector<std::string> entries;
    for (auto const& parameter : value)
      entries.push_back(plain_or_quoted(name_of_parameter(parameter)) + ": " + DistributionOf{}.write(parameter));
    return "{" + join(entries) + "}";
  }
  [[nodiscard]] Json json_schema() const {
    Json distributions = Json::object();
    for (std::string const& name : Choice<Distribution>::names())
      distributions[name] = TwoOf<Number>{{}, ""}.json_schema();
    return {{"type", "object"},
            {"minProperties", 1},
            {"additionalProperties",
             {{"type", "object"},
              {"properties", distributions},
              {"additionalProperties", false},
              {"minProperties", 1},
              {"maxProperties", 1}}}};
  }
};

Keys<SampleSpec> const& sample_keys() {
  static Keys<SampleSpec> const keys{
      key<SampleSpec>(
          "method", Choice<SampleMethod>{}, [](SampleSpec & s) -> auto& { return s.method; }, "",
          "latin_hypercube: equal shares of every distribution, paired at random; sobol: a sequence that fills the space evenly; "
          "random: independent values."),
      key<SampleSpec>(
          "count", Integer{1, most_values}, [](SampleSpec & s) -> auto& { return s.count; }, "",
          "How many points. A larger count keeps the points of a smaller one, so that --resume does only what is new.")
          .must_be_given("an integer of 1 or more"),
      key<SampleSpec>(
          "seed", Integer{0, std::int64_t{1} << 53}, [](SampleSpec & s) -> auto& { return s.seed; }, "",
          "Of the random numbers: the same seed gives the same points. sobol: 0 is the sequence itself."),
      key<SampleSpec>(
          "indices", Boolean{}, [](SampleSpec & s) -> auto& { return s.indices; }, "",
          "Whether to find first-order and total Sobol indices, by Saltelli's plan of count (parameters + 2) cases."),
      key<SampleSpec>(
          "parameters", SampledParameters{}, [](SampleSpec & s) -> auto& { return s.parameters; }, "",
          "The distributions of the parameters, which are independent.")
          .must_be_given("a map such as {k: {uniform: [1, 2]}}"),
  };
  return keys;
}

Keys<UntilSpec> const& until_keys() {
  static Keys<UntilSpec> const keys{
      key<UntilSpec>(
          "quantity", Text{"name of a quantity, as result.json has it, e.g. flux.1"},
          [](UntilSpec & u) -> auto& { return u.quantity; }, "", "The quantity, one of the user's own or another of result.json.")
          .must_be_given("the name of a quantity, e.g. flux.1"),
      key<UntilSpec>(
          "relative", Number{0, 1}, [](UntilSpec & u) -> auto& { return u.relative; }, "",
          "The error that is allowed, as a share of the quantity.")
          .must_be_given("a number such as 1e-3"),
  };
  return keys;
}

Keys<GreedySpec> const& greedy_keys() {
  static Keys<GreedySpec> const keys{
      key<GreedySpec>(
          "tolerance", Number{0, 1}, [](GreedySpec & g) -> auto& { return g.tolerance; }, "",
          "The estimated error of predictions that is allowed, over the solution, both in the energy norm.")
          .must_be_given("a number such as 1e-4"),
      key<GreedySpec>(
          "max_cases", Integer{1, most_values}, [](GreedySpec & g) -> auto& { return g.max_cases; }, "",
          "How many cases are solved at most."),
  };
  return keys;
}

Json range_schema() {
  Json const by_count = json_schema_of(range_keys().by_count, Range{}), by_powers = json_schema_of(range_keys().by_powers, Range{});
  return Json::array({by_count, by_powers});
}

struct Sweep {
  [[nodiscard]] std::string allowed() const {
    return "map from key paths to lists of values, e.g. {problem.element.order: [1, 2], solver.tolerance: [1e-6, 1e-12]}, or to "
           "{from, to, count, scale} or {powers_of_two: [first, last]}; its keys mode: " +
           Choice<SweepMode>{}.allowed() +
           "; zip and product: such a map, or a list of them; when: expression; time_limit: seconds; sample, until and greedy: "
           "maps";
  }
  void read(YamlNode const& node, std::string const& path, SweepSpec& out) const {
    if (node.kind != YamlNode::Kind::map)
      reject_value(node, path, allowed());
    out = {};
    read_group(node, path, true, out.group, out);
  }
  [[nodiscard]] std::string write(SweepSpec const& value) const {
    std::vector<std::string> entries = written(value.group, value);
    if (value.sample)
      entries.push_back("sample: " + write_flow(written_keys(sample_keys(), *value.sample)));
    if (value.until)
      entries.push_back("until: " + write_flow(written_keys(until_keys(), *value.until)));
    if (value.greedy)
      entries.push_back("greedy: " + write_flow(written_keys(greedy_keys(), *value.greedy)));
    if (value.time_limit)
      entries.push_back("time_limit: " + time_limit().write(*value.time_limit));
    if (!value.when.empty())
      entries.push_back("when: " + quoted_text(value.when));
    if (!value.axes.empty())
      entries.push_back("mode: " + Choice<SweepMode>{}.write(value.group.mode));
    return "{" + join(entries) + "}";
  }
  [[nodiscard]] Json json_schema() const {
    Json axis = range_schema();
    axis.insert(axis.begin(), Json{{"type", "array"}, {"minItems", 1}});
    Json const group{{"type", "object"}, {"additionalProperties", {{"anyOf", axis}}}};
    Json const groups{{"anyOf", Json::array({group, Json{{"type", "array"}, {"items", group}, {"minItems", 1}}})}};
    return {{"type", "object"},
            {"properties",
             {{"mode", Choice<SweepMode>{}.json_schema()},
              {"zip", groups},
              {"product", groups},
              {"when", ExpressionText{}.json_schema()},
              {"time_limit", time_limit().json_schema()},
              {"sample", json_schema_of(sample_keys(), SampleSpec{})},
              {"until", json_schema_of(until_keys(), UntilSpec{})},
              {"greedy", json_schema_of(greedy_keys(), GreedySpec{})}}},
            {"additionalProperties", {{"anyOf", axis}}}};
  }

private:
  [[nodiscard]] static Number time_limit() { return {.above = 0}; }

  static void read_group(YamlNode const& node, std::string const& path, bool outermost, SweepGroup& group, SweepSpec& out) {
    if (node.kind != YamlNode::Kind::map || (!outermost && node.items.empty()))
      reject_value(node, path, "map from key paths to lists of values, or a list of such maps");
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      std::string const& name = node.keys[i].name;
      YamlNode const& value = node.items[i];
      std::string const here = path + "." + name;
      if (auto const mode = parse_name<SweepMode>(name)) {
        bool const several = value.kind == YamlNode::Kind::list;
        if (several && value.items.empty())
          reject_value(value, here, "map from key paths to lists of values, or a list of such maps");
        for (std::size_t k = 0; k < (several ? value.items.size() : 1); ++k) {
          SweepGroup inner{*mode, {}};
          read_group(several ? value.items[k] : value, several ? here + "[" + std::to_string(k) + "]" : here, false, inner, out);
          group.parts.push_back({0, {std::move(inner)}});
        }
      } else if (outermost && name == "mode") {
        Choice<SweepMode>{}.read(value, here, group.mode);
      } else if (outermost && name == "when") {
        ExpressionText{}.read(value, here, out.when);
      } else if (outermost && name == "time_limit") {
        time_limit().read(value, here, out.time_limit.emplace());
      } else if (outermost && name == "sample") {
        read_sample(value, here, group, out);
      } else if (outermost && name == "until") {
        if (value.kind != YamlNode::Kind::map)
          reject_value(value, here, "map such as {quantity: flux.1, relative: 1e-3}");
        read_map(until_keys(), value, here, out.until.emplace());
      } else if (outermost && name == "greedy") {
        if (value.kind != YamlNode::Kind::map)
          reject_value(value, here, "map such as {tolerance: 1e-4, max_cases: 20}");
        read_map(greedy_keys(), value, here, out.greedy.emplace());
      } else {
        SweepAxis& axis = out.axes.emplace_back();
        group.parts.push_back({out.axes.size() - 1, {}});
        axis.path = name;
        if (value.kind == YamlNode::Kind::map)
          read_range(value, here, axis);
        else if (value.kind != YamlNode::Kind::list || value.items.empty())
          reject_value(value, here, range_text);
        for (auto const& item : value.kind == YamlNode::Kind::list ? value.items : std::vector<YamlNode>{})
          axis.values.push_back(item.kind == YamlNode::Kind::list ? flow_text(item) : value_text(axis.path, flow_text(item)));
      }
    }
  }

  static void read_sample(YamlNode const& node, std::string const& path, SweepGroup& group, SweepSpec& out) {
    if (node.kind != YamlNode::Kind::map)
      reject_value(node, path, "map such as {count: 64, parameters: {k: {uniform: [1, 2]}}}");
    SampleSpec sample;
    read_map(sample_keys(), node, path, sample);
    std::size_t const n = sample.parameters.size(), n_cases = static_cast<std::size_t>(sample.count) * cases_of_point(sample);
    if (n_cases > most_values)
      reject(node.origin, path + ".count",
             "the sample has more than " + std::to_string(most_values) + " cases: count times parameters + 2, for indices");
    if (sample.method == SampleMethod::sobol && (sample.indices ? 2 : 1) * n > most_sobol_dimensions)
      reject(node.origin, path + ".parameters", "there are too many of them for method: sobol; take latin_hypercube or random");
    SweepGroup axes{SweepMode::zip, {}};
    auto const values = sampled_values(sample);
    for (std::size_t p = 0; p < n; ++p) {
      SweepAxis& axis = out.axes.emplace_back();
      axes.parts.push_back({out.axes.size() - 1, {}});
      axis.path = sample.parameters[p].path;
      axis.is_sampled = true;
      for (auto const& of_case : values)
        axis.values.push_back(Number{}.write(of_case[p]));
    }
    group.parts.push_back({0, {std::move(axes)}});
    out.sample = std::move(sample);
  }

  [[nodiscard]] static std::vector<std::string> written(SweepGroup const& group, SweepSpec const& sweep) {
    std::vector<std::string> entries;
    std::map<SweepMode, std::vector<std::string>> groups;
    for (SweepPart const& part : group.parts) {
      if (part.group.empty()) {
        SweepAxis const& axis = sweep.axes[part.axis];
        if (!axis.is_sampled)
          entries.push_back(plain_or_quoted(axis.path) + ": " + (axis.given.empty() ? "[" + join(axis.values) + "]" : axis.given));
      } else if (auto const inner = written(part.group[0], sweep); !inner.empty()) {
        groups[part.group[0].mode].push_back("{" + join(inner) + "}");
      }
    }
    for (auto const& [mode, texts] : groups)
      entries.push_back(std::string(name_of(mode)) + ": " + (texts.size() == 1 ? texts[0] : "[" + join(texts) + "]"));
    return entries;
  }
};

/// Where an axis is in the tree of `sweep`, or of a group there.
std::optional<Origin> origin_of_axis(YamlNode const& node, SweepAxis const& axis) {
  if (node.kind == YamlNode::Kind::list)
    for (YamlNode const& item : node.items)
      if (auto const found = origin_of_axis(item, axis))
        return found;
  for (std::size_t i = 0; node.kind == YamlNode::Kind::map && i < node.keys.size(); ++i) {
    std::string const& name = node.keys[i].name;
    if (axis.is_sampled ? name == "sample" : name == axis.path)
      return node.keys[i].origin;
    if (parse_name<SweepMode>(name))
      if (auto const found = origin_of_axis(node.items[i], axis))
        return found;
  }
  return {};
}

/// Whether cases have other meshes or elements.
bool changes_unknowns(SweepAxis const& axis) {
  return axis.path == "problem" || axis.path.starts_with("problem.mesh") || axis.path.starts_with("problem.element");
}

/// How many cases a group has, at most one more than most_values. Throws ConfigError where parts of a zip differ.
std::size_t cases_of(SweepGroup const& group, SweepSpec const& sweep, YamlNode const& root) {
  std::size_t total = 1;
  std::string first;
  for (std::size_t i = 0; i < group.parts.size(); ++i) {
    SweepPart const& part = group.parts[i];
    SweepGroup const* inner = part.group.empty() ? nullptr : part.group.data();
    std::size_t const n = inner ? cases_of(*inner, sweep, root) : sweep.axes[part.axis].values.size();
    while (inner && !inner->parts.empty() && !inner->parts[0].group.empty())
      inner = inner->parts[0].group.data();
    SweepAxis const& axis = sweep.axes[inner ? inner->parts[0].axis : part.axis];
    std::string const name = (part.group.empty() ? "" : "the group of ") + axis.path;
    if (group.mode == SweepMode::product) {
      total = std::min<std::size_t>(total * n, most_values + 1);
    } else if (i == 0) {
      total = n;
      first = name;
    } else if (n != total) {
      YamlNode const* const map = root.find("sweep");
      auto const origin = map ? origin_of_axis(*map, axis) : std::nullopt;
      reject(origin.value_or(root.origin), "sweep." + axis.path,
             (part.group.empty() ? "has " : "begins a group that has ") + std::to_string(n) + " values, but " + first + " has " +
                 std::to_string(total) + "; in a zip all have the same length");
    }
  }
  return total;
}

}  // namespace

Keys<RunConfig> keys_of_sweep() {
  return {
      key<RunConfig>(
          "sweep", Sweep{}, POISSON_MEMBER(sweep), "",
          "For `poisson sweep`: values for any key paths, as lists, {from, to, count, scale: linear or log} or "
          "{powers_of_two: [first, last]}. mode product runs every combination, zip the first values together, then the second "
          "ones and so on; the keys zip and product hold groups of key paths that are combined so. when: \"k > 1\" leaves out "
          "cases where the expression is 0. sample: {method, count, seed, indices, parameters: {k: {uniform: [1, 2]}}} draws "
          "uncertain parameters. until: {quantity: flux.1, relative: 1e-3} ends a study over mesh sizes when the estimated error "
          "is small enough. greedy: {tolerance: 1e-4, max_cases: 20} solves a few cases, and predicts the others from these. "
          "time_limit: 60 ends a case after so many seconds."),
  };
}

void check_sweep(YamlNode const& root, SweepSpec const& sweep) {
  YamlNode const* const map = root.find("sweep");
  std::set<std::string> seen;
  for (auto const& axis : sweep.axes) {
    std::string const key = "sweep." + axis.path;
    Origin const origin = (map ? origin_of_axis(*map, axis) : std::nullopt).value_or(root.origin);
    auto const steps = split_path(axis.path);
    if (steps.empty() || steps[0].name == "sweep" || steps[0].name == "output")
      reject(origin, key,
             "cannot be swept; allowed: key paths of parameters, problem, matrix, solver and backend, e.g. problem.element.order");
    if (!seen.insert(axis.path).second)
      reject(origin, key, "is swept over twice");
    if (YamlNode const* const parameters = root.find("parameters");
        axis.is_sampled && axis.path.starts_with("parameters.") &&
        (parameters == nullptr || parameters->find(axis.path.substr(axis.path.find('.') + 1)) == nullptr))
      reject(origin, "sweep.sample." + axis.path, "there is no such parameter; give it a value under 'parameters' first");
    YamlNode changed = root;
    apply_set(changed, axis.path + "=" + axis.values.front(), origin.text() + ": sweep of");
    check_names(changed, run_key_paths());
  }
  if (sweep.until) {
    auto const refuse = [&](std::string const& what) { reject(locate_path(root, "sweep.until").origin, "sweep.until", what); };
    if (std::none_of(sweep.axes.begin(), sweep.axes.end(), [](SweepAxis const& axis) { return axis.is_mesh_size(); }))
      refuse("takes a sweep over problem.mesh.cells or problem.mesh.refinements, with three values or more");
    if (sweep.sample)
      refuse("does not go with a sample, whose points would end on different meshes");
  }
  if (sweep.greedy) {
    auto const refuse = [&](std::string const& what) { reject(locate_path(root, "sweep.greedy").origin, "sweep.greedy", what); };
    if (sweep.until)
      refuse("does not go with until, which compares meshes");
    for (SweepAxis const& axis : sweep.axes)
      if (changes_unknowns(axis))
        refuse("needs one mesh and element in all cases of the sweep, and this one sweeps over " + axis.path);
  }
  if (cases_of(sweep.group, sweep, root) > most_values)
    reject(map ? map->origin : root.origin, "sweep",
           "it has more than " + std::to_string(most_values) + " cases; shorten its lists, or put some of them under 'zip'");
}

void check_snapshots(YamlNode const& root, RunConfig const& config) {
  if (config.sweep.axes.empty())
    return;
  auto const n_cases = static_cast<std::int64_t>(cases_of(config.sweep.group, config.sweep, root));
  for (std::size_t i = 0; i < config.analysis.size(); ++i) {
    AnalysisSpec const& spec = config.analysis[i];
    if (spec.of != AnalysisOf::snapshots)
      continue;
    std::string const path = "analysis.svd[" + std::to_string(i) + "]";
    auto const refuse = [&](std::string const& key, std::string const& what) {
      reject(locate_path(root, path + key).origin, path + key, what);
    };
    for (auto const& axis : config.sweep.axes)
      if (changes_unknowns(axis))
        refuse(".of", "snapshots need one mesh and element in all cases of the sweep, and this one sweeps over " + axis.path);
    if (n_cases < 2)
      refuse(".of", "snapshots need a sweep of two cases or more: all but one make the modes, that one tries them");
    if (spec.leave_out && *spec.leave_out >= n_cases)
      refuse(".leave_out",
             "found '" + std::to_string(*spec.leave_out) + "'; the sweep has cases 0 to " + std::to_string(n_cases - 1));
  }
}

}  // namespace poisson::app::schema
