#include "app/sweep/sweep_cases.hpp"

#include "app/io/console.hpp"
#include "app/launch/exit_code.hpp"
#include "app/results/solution_fields.hpp"
#include "app/sweep/case_sync.hpp"
#include "assembly/expression/expression.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/input_file.hpp"
#include "output/files/directory_lock.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

namespace poisson::app {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

constexpr std::string_view exit_code_mark = "exit code ";
constexpr std::string_view folder_prefix = "case_";

/// The values of some axes: number of the axis, number of its value.
using Chosen = std::vector<std::pair<std::size_t, std::size_t>>;

std::vector<Chosen> choices_of(SweepGroup const& group, SweepSpec const& sweep) {
  std::vector<Chosen> all;
  for (std::size_t p = 0; p < group.parts.size(); ++p) {
    SweepPart const& part = group.parts[p];
    std::vector<Chosen> own;
    if (part.group.empty())
      for (std::size_t i = 0; i < sweep.axes[part.axis].values.size(); ++i)
        own.push_back({{part.axis, i}});
    else
      own = choices_of(part.group[0], sweep);
    auto const join = [](Chosen chosen, Chosen const& more) {
      chosen.insert(chosen.end(), more.begin(), more.end());
      return chosen;
    };
    if (p == 0) {
      all = std::move(own);
    } else if (group.mode == SweepMode::zip) {
      for (std::size_t i = 0; i < all.size(); ++i)
        all[i] = join(std::move(all[i]), own[i]);
    } else {  // the last part changes fastest
      std::vector<Chosen> longer;
      for (Chosen const& begun : all)
        for (Chosen const& more : own)
          longer.push_back(join(begun, more));
      all = std::move(longer);
    }
  }
  return all;
}

std::vector<std::string> settings_of(SweepSpec const& sweep, std::vector<std::string> const& values) {
  std::vector<std::string> sets;
  for (std::size_t a = 0; a < sweep.axes.size(); ++a)
    sets.push_back(sweep.axes[a].path + "=" + values[a]);
  return sets;
}

/// Whether `sweep.when` keeps a case. It may use the parameters, and swept keys that are numbers by the last words of their paths.
bool is_wanted(Configuration const& configuration, std::vector<std::string> const& values) {
  SweepSpec const& sweep = configuration.config().sweep;
  if (sweep.when.empty())
    return true;
  assembly::Constants constants;
  for (std::size_t a = 0; a < sweep.axes.size(); ++a)
    if (auto const number = number_of_value(values[a]))
      constants[short_name(sweep.axes[a].path)] = *number;
  try {
    for (auto const& [name, value] : configuration.parameters_with(settings_of(sweep, values)))
      constants[name] = value;
  } catch (ConfigError const&) {
    return true;  // what is wrong is told where the case is made
  }
  assembly::Expression const expression(sweep.when, "sweep.when", constants);
  if (!expression.is_constant())
    throw InputError("sweep.when", "a case has no place; x, y and z have no meaning here");
  return expression(0, 0, 0) != 0;
}

struct Combination {
  std::vector<std::string> values;  ///< of all axes
  std::size_t sample = 0;           ///< SweepCase::sample
};

/// All cases, in their order.
std::vector<Combination> combinations(Configuration const& configuration) {
  SweepSpec const& sweep = configuration.config().sweep;
  std::vector<Combination> cases;
  auto const choices = choices_of(sweep.group, sweep);
  for (Chosen const& chosen : choices) {
    Combination c{std::vector<std::string>(sweep.axes.size())};
    for (auto const& [axis, value] : chosen) {
      c.values[axis] = sweep.axes[axis].values[value];
      if (sweep.axes[axis].is_sampled)
        c.sample = value;
    }
    if (is_wanted(configuration, c.values))
      cases.push_back(std::move(c));
  }
  if (cases.empty())
    throw InputError("sweep.when", "it is 0 in all of the " + std::to_string(choices.size()) + " cases, and leaves none");
  return cases;
}

Json read_json(fs::path const& path) {
  std::ifstream in = open_regular_file(path);
  return in ? Json::parse(in, nullptr, false) : Json();
}

/// Whether the record in this folder is of a case that was done, and all its files are there.
bool finished(Json const& result, fs::path const& folder) {
  try {
    if (!result.is_object() || result.value("status", "interrupted") == "interrupted")
      return false;
    int const code = result.value("exit_code", static_cast<int>(exit_done));  // records of earlier versions have none
    auto const files = result.at("files").get<std::vector<std::string>>();
    std::error_code ignored;
    return (code == exit_done || code == exit_not_converged) &&
           std::all_of(files.begin(), files.end(), [&](auto const& file) { return fs::is_regular_file(folder / file, ignored); });
  } catch (Json::exception const&) {
    return false;
  }
}

/// What a case's process has said.
struct CaseLog {
  std::string error;             ///< what follows "poisson: error: ", which may have several lines; else the last line
  std::optional<int> exit_code;  ///< none: the process has not ended, or was killed
};

CaseLog read_log(fs::path const& path) {
  CaseLog log;
  std::ifstream in = open_regular_file(path);
  std::string const mark = "poisson: error: ";
  bool in_error = false;
  for (std::string line; std::getline(in, line);) {
    int code = 0;
    if (line.starts_with(exit_code_mark) &&
        std::from_chars(line.data() + exit_code_mark.size(), line.data() + line.size(), code).ec == std::errc())
      log.exit_code = code;
    else if (line.starts_with(mark)) {
      in_error = true;
      log.error = line.substr(mark.size());
    } else if (!line.empty())
      log.error = in_error ? log.error + "\n" + line : line;
  }
  return log;
}

/// Settings that all cases need beside their own, since ParaView reads no collection of several kinds of grids.
std::vector<std::string> common_settings(Configuration const& configuration, std::vector<Combination> const& all) {
  OutputSpec const& output = configuration.config().output;
  SweepSpec const& sweep = configuration.config().sweep;
  bool const may_differ = std::any_of(sweep.axes.begin(), sweep.axes.end(), [](SweepAxis const& axis) {
    return axis.path == "problem" || axis.path.starts_with("problem.mesh") || axis.path.starts_with("problem.element") ||
           axis.path.starts_with("parameters");
  });
  if (!output.vtk_enabled || !may_differ)
    return {};
  std::set<std::string> files;
  for (Combination const& combination : all)
    try {
      files.insert(vtk_file_name(configuration.case_with(settings_of(sweep, combination.values)).config()));
    } catch (InputError const&) {  // told where the case is made
    }
  if (files.size() <= 1)
    return {};
  if (output.vtk_format)
    throw InputError("output.vtk.format",
                     "'image' stands for another kind of grid in some cases than in others, and ParaView reads no "
                     "collection of both; allowed for this sweep: auto, vtu, hdf");
  return {"output.vtk.format=vtu"};
}

/// The case, valid or not, with these values.
SweepCase make_case(Configuration const& configuration, std::size_t number, Combination const& combination,
                    std::vector<std::string> sets) {
  SweepCase c;
  c.values = combination.values;
  c.sample = combination.sample;
  auto const own = settings_of(configuration.config().sweep, c.values);
  sets.insert(sets.end(), own.begin(), own.end());
  char index[16];
  std::snprintf(index, sizeof index, "case_%03zu", number);
  try {
    Configuration const of_case = configuration.case_with(sets);
    c.fingerprint = fingerprint(of_case.config());
    c.directory = std::string(cases_folder) + "/" + index + "_" + c.fingerprint.substr(0, 8);
    c.configuration = of_case.in_directory((fs::path(configuration.config().output.directory) / c.directory).string());
  } catch (InputError const& error) {
    c.error = configuration.locate(error);
    c.exit_code = exit_usage;
  }
  return c;
}

void require_axes(Configuration const& configuration) {
  if (configuration.config().sweep.axes.empty())
    throw InputError("sweep",
                     "there is nothing to sweep over: give at least one 'key.path: [values]' under 'sweep', or use 'poisson run'");
}

/// The names of the folders of cases that are there.
std::vector<std::string> folders_in(fs::path const& root) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (auto const& entry : fs::directory_iterator(root / cases_folder, ignored))
    if (auto const name = entry.path().filename().string(); name.starts_with(folder_prefix) && entry.is_directory(ignored))
      names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

/// Whether a folder of this name may hold this case, under whatever number.
bool may_hold(std::string const& name, SweepCase const& c) {
  return c.configuration && name.ends_with("_" + c.fingerprint.substr(0, 8));
}

/// Null where the record is of another configuration.
Json record_of(SweepCase const& c, fs::path const& folder) {
  Json const result = read_json(folder / "result.json");
  return result.is_object() && result.value("fingerprint", "") == c.fingerprint ? result : Json();
}

/// The same of a case that nobody waited for: null, too, where it may be damaged (see lost_since).
Json record_on_disk(SweepCase const& c, fs::path const& folder, std::optional<fs::file_time_type> const& lost) {
  std::error_code error;
  if (lost && fs::last_write_time(folder / "result.json", error) >= *lost)
    return {};
  return record_of(c, folder);
}

/// What has become of a case that nobody waited for.
void collect(SweepCase& c, fs::path const& root) {
  fs::path const folder = root / c.directory;
  CaseLog const log = read_log(folder / case_log);
  auto const lost = lost_since(root / cases_folder);
  Json const result = record_on_disk(c, folder, lost);
  if (lost && !result.is_object())  // it is to be run again
    return;
  if (log.exit_code) {
    take_result(c, *log.exit_code, root);
    return;
  }
  if (result.is_object() && result.value("status", "interrupted") != "interrupted") {  // complete, whatever the log says
    take_result(c, result.value("exit_code", static_cast<int>(exit_done)), root);
    return;
  }
  c.writer = output::writer_of(folder);
  std::error_code ignored;
  if (!c.writer.empty() || !fs::exists(folder / case_log, ignored))
    return;
  c.exit_code = exit_environment;
  c.error = "its process has not ended as it should; the last that it said: " + (log.error.empty() ? "nothing" : log.error);
}

}  // namespace

std::vector<SweepCase> sweep_cases(Configuration const& configuration) {
  require_axes(configuration);
  auto const all = combinations(configuration);
  auto const common = common_settings(configuration, all);
  std::vector<SweepCase> cases;
  for (Combination const& combination : all)
    cases.push_back(make_case(configuration, cases.size(), combination, common));
  if (std::none_of(cases.begin(), cases.end(), [](SweepCase const& c) { return c.configuration.has_value(); }))
    throw InputError("sweep", "no case of the sweep is a valid configuration; the first: " + cases.front().error);
  return cases;
}

NumberedCase sweep_case(Configuration const& configuration, std::string const& name) {
  require_axes(configuration);
  auto const all = combinations(configuration);
  bool const is_folder = name.starts_with(folder_prefix);
  std::string_view digits = name;
  if (is_folder)
    digits = digits.substr(folder_prefix.size(), digits.find('_', folder_prefix.size()) - folder_prefix.size());
  std::size_t number = all.size();
  auto const [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  bool const is_number = error == std::errc() && stop == digits.data() + digits.size() && number < all.size();
  if (is_number) {
    SweepCase c = make_case(configuration, number, all[number], common_settings(configuration, all));
    if (!is_folder || name == name_of_case(c))
      return {number, all.size(), std::move(c)};
  }
  if (is_folder)
    throw InputError("this sweep has no case '" + name +
                     "': the configuration is not the one that this name is from; 'poisson sweep CONFIG --list' tells its cases");
  throw InputError("--case must be from 0 to " + std::to_string(all.size() - 1) +
                   ", or a name that 'poisson sweep CONFIG --list' tells; found '" + name + "'");
}

bool change_together(SweepGroup const& group, std::size_t a, std::size_t b) {
  auto const holds = [](auto const& self, SweepGroup const& of, std::size_t axis) -> bool {
    return std::any_of(of.parts.begin(), of.parts.end(), [&](SweepPart const& part) {
      return part.group.empty() ? part.axis == axis : self(self, part.group[0], axis);
    });
  };
  for (SweepPart const& part : group.parts)
    if (!part.group.empty() && holds(holds, part.group[0], a) && holds(holds, part.group[0], b))
      return change_together(part.group[0], a, b);
  return group.mode == SweepMode::zip;
}

std::optional<double> number_of_value(std::string text) {
  std::optional<double> number;
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '[' || c == ']' || c == ','; }, ' ');
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    double value = 0;
    auto const [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size() || (number && *number != value))
      return {};
    number = value;
  }
  return number;
}

double number_in(Json const& result, char const* pointer) {
  Json::json_pointer const p(pointer);
  if (result.is_object() && result.contains(p) && result[p].is_number())
    return result[p].get<double>();
  return std::numeric_limits<double>::quiet_NaN();
}

std::string text_in(Json const& result, char const* pointer) {
  Json::json_pointer const p(pointer);
  if (!result.is_object() || !result.contains(p))
    return "";
  return result[p].is_string() ? result[p].get<std::string>() : result[p].dump();
}

std::string short_name(std::string const& path) {
  return path.substr(path.rfind('.') + 1);  // npos + 1 is 0
}

std::string shown_value(SweepAxis const& axis, std::string const& value) {
  auto const number = number_of_value(value);
  return number && (axis.is_sampled || (!axis.given.empty() && value.front() != '[')) ? number_text(*number, 6) : value;
}

std::string values_text(SweepCase const& c, std::vector<SweepAxis> const& axes) {
  std::string text;
  for (std::size_t a = 0; a < axes.size(); ++a)
    text += (a > 0 ? ", " : "") + short_name(axes[a].path) + " = " + shown_value(axes[a], c.values[a]);
  return text;
}

std::string ranges_text(std::vector<std::size_t> const& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1)
      ++last;
    text += (text.empty() ? "" : ",") + std::to_string(numbers[i]) + (last > i ? "-" + std::to_string(numbers[last]) : "");
    i = last + 1;
  }
  return text;
}

std::string name_of_case(SweepCase const& c) {
  return fs::path(c.directory).filename().string();
}

bool has_snapshots(RunConfig const& config) {
  return std::any_of(config.analysis.begin(), config.analysis.end(),
                     [](AnalysisSpec const& spec) { return spec.of == AnalysisOf::snapshots; });
}

void reuse_finished(std::span<SweepCase> cases, fs::path const& root) {
  auto const names = folders_in(root);
  auto const lost = lost_since(root / cases_folder);
  for (SweepCase& c : cases) {
    std::string const own = name_of_case(c);
    for (std::string const& name : names) {
      if (!may_hold(name, c))
        continue;
      fs::path const folder = root / cases_folder / name;
      Json const result = record_on_disk(c, folder, lost);
      if (!finished(result, folder))
        continue;
      c.directory = std::string(cases_folder) + "/" + name;
      c.result = result;
      c.exit_code = c.result.value("status", "") == "converged" ? exit_done : exit_not_converged;
      c.reused = true;
      if (name == own)
        break;
    }
  }
}

std::string exit_code_text(int code) {
  return std::string(exit_code_mark) + std::to_string(code);
}

void take_result(SweepCase& c, int exit_code, fs::path const& root) {
  c.exit_code = exit_code;
  c.result = record_of(c, root / c.directory);
  bool const says_why = exit_code != exit_done && exit_code != exit_not_converged && exit_code <= 128;
  if (!says_why && c.result.is_object())
    return;
  c.error = read_log(root / c.directory / case_log).error;
  if (!says_why || c.error.empty())
    c.error =
        "it ended with exit code " + std::to_string(exit_code) + ", and its record is missing, or belongs to another configuration";
  if (!says_why)
    c.exit_code = std::max<int>(exit_code, exit_environment);
}

std::vector<std::string> collect_cases(std::vector<SweepCase>& cases, fs::path const& root) {
  auto const names = folders_in(root);
  std::set<std::string> unknown(names.begin(), names.end());
  for (SweepCase& c : cases) {
    if (!c.configuration)
      continue;
    reuse_finished({&c, 1}, root);
    unknown.erase(name_of_case(c));
    c.exit_code = -1;
    c.reused = false;
    collect(c, root);
  }
  return {unknown.begin(), unknown.end()};
}

}  // namespace poisson::app
