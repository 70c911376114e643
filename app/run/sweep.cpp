#include "app/run/sweep.hpp"

#include "app/analysis/snapshots.hpp"
#include "app/io/csv.hpp"
#include "app/io/results_directory.hpp"
#include "app/run/exit_code.hpp"
#include "app/run/mesh_convergence.hpp"
#include "app/run/solution_files.hpp"
#include "gpu/core/interrupt.hpp"
#include "gpu/core/threads.hpp"
#include "gpu/kernels/backends.hpp"
#include "output/files/atomic_file.hpp"
#include "output/vtk/vtk_files.hpp"

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <sstream>

namespace poisson::app {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

constexpr char const* case_log = "log.txt";  ///< what a case's process says, in its folder

struct Case {
  std::vector<std::string> values;  ///< one per axis
  std::string fingerprint;
  std::string directory;  ///< relative to the sweep's
  std::string error;      ///< why there is no result
  int exit_code = -1;     ///< -1: not run
  bool reused = false;
  double seconds = 0;
  std::optional<Configuration> configuration;
  Json result;  ///< result.json, or null
};

std::vector<std::vector<std::string>> combinations(SweepSpec const& sweep) {
  std::vector<std::vector<std::string>> cases;
  if (sweep.mode == SweepMode::zip) {
    for (std::size_t i = 0; i < sweep.axes.front().values.size(); ++i) {
      cases.emplace_back();
      for (auto const& axis : sweep.axes)
        cases.back().push_back(axis.values[i]);
    }
    return cases;
  }
  cases.emplace_back();
  for (auto const& axis : sweep.axes) {  // the last axis changes fastest
    std::vector<std::vector<std::string>> longer;
    for (auto const& begun : cases)
      for (auto const& value : axis.values) {
        longer.push_back(begun);
        longer.back().push_back(value);
      }
    cases = std::move(longer);
  }
  return cases;
}

Json read_json(fs::path const& path) {
  std::ifstream in(path);
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

double number(Json const& result, char const* pointer) {
  Json::json_pointer const p(pointer);
  if (result.is_object() && result.contains(p) && result[p].is_number())
    return result[p].get<double>();
  return std::numeric_limits<double>::quiet_NaN();
}

std::string text_of(Json const& result, char const* pointer) {
  Json::json_pointer const p(pointer);
  if (!result.is_object() || !result.contains(p))
    return "";
  return result[p].is_string() ? result[p].get<std::string>() : result[p].dump();
}

/// Runs one case in this (forked) process; does not return.
[[noreturn]] void child(Case const& c, RunOptions const& options, InternalRunOptions const& internal, fs::path const& log,
                        pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent)
    _exit(exit_environment);
  int const out = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (out < 0 || dup2(out, STDOUT_FILENO) < 0 || dup2(out, STDERR_FILENO) < 0)
    _exit(exit_environment);
  int const code = exit_code_of(&*c.configuration, [&] {
    Console console(false, options.verbose);
    return run_case(*c.configuration, options, console, internal);
  });
  std::cout << std::flush;
  _exit(code);
}

std::string last_line(fs::path const& log) {
  std::ifstream in(log);
  std::string line, last;
  while (std::getline(in, line))
    if (!line.empty())
      last = line;
  return last;
}

/// The part of the error that follows "poisson: error: " in the log, which may have several lines.
std::string error_of(fs::path const& log) {
  std::ifstream in(log);
  std::stringstream text;
  text << in.rdbuf();
  std::string const mark = "poisson: error: ";
  auto const at = text.str().rfind(mark);
  if (at == std::string::npos)
    return last_line(log);
  std::string error = text.str().substr(at + mark.size());
  while (!error.empty() && error.back() == '\n')
    error.pop_back();
  return error;
}

/// Observed order between two cases: how the error falls with the mesh width, h ~ cells^(-1/3), or, on one mesh, with
/// unknowns^(-1/3) when the element order changes.
double observed_order(Json const& coarse, Json const& fine, char const* error) {
  char const* const size = number(coarse, "/mesh/cells") != number(fine, "/mesh/cells") ? "/mesh/cells" : "/dofs";
  double const ratio = std::cbrt(number(fine, size) / number(coarse, size));
  double const order = std::log(number(coarse, error) / number(fine, error)) / std::log(ratio);
  return std::isfinite(order) ? order : std::numeric_limits<double>::quiet_NaN();
}

/// The earlier case that differs from case `i` in axes which change the mesh, or failing that the element order, only;
/// cases.size() if there is none.
std::size_t coarser_case(std::vector<Case> const& cases, std::vector<SweepAxis> const& axes, std::size_t i) {
  auto const is_mesh = [](std::string const& path) { return path.rfind("problem.mesh", 0) == 0; };
  auto const is_order = [](std::string const& path) { return path == "problem.element.order" || path == "problem.element"; };
  bool const any_mesh = std::any_of(axes.begin(), axes.end(), [&](auto const& axis) { return is_mesh(axis.path); });
  std::size_t best = cases.size();
  double const cells = number(cases[i].result, "/mesh/cells"), dofs = number(cases[i].result, "/dofs");
  for (std::size_t j = 0; j < cases.size(); ++j) {
    bool comparable = cases[j].result.is_object();
    for (std::size_t a = 0; a < axes.size() && comparable; ++a)
      comparable = cases[i].values[a] == cases[j].values[a] || (any_mesh ? is_mesh(axes[a].path) : is_order(axes[a].path));
    if (!comparable)
      continue;
    double const other = number(cases[j].result, any_mesh ? "/mesh/cells" : "/dofs");
    if (other < (any_mesh ? cells : dofs) &&
        (best == cases.size() || other > number(cases[best].result, any_mesh ? "/mesh/cells" : "/dofs")))
      best = j;
  }
  return best;
}

std::string short_name(std::string const& path) {
  auto const dot = path.rfind('.');
  return dot == std::string::npos ? path : path.substr(dot + 1);
}

std::string values_text(Case const& c, std::vector<SweepAxis> const& axes) {
  std::string text;
  for (std::size_t a = 0; a < axes.size(); ++a)
    text += (a > 0 ? ", " : "") + short_name(axes[a].path) + " = " + c.values[a];
  return text;
}

struct Column {
  char const* name;     ///< in sweep.csv
  char const* pointer;  ///< in result.json
};
constexpr Column columns[] = {{"cells", "/mesh/cells"},
                              {"dofs", "/dofs"},
                              {"nnz", "/nnz"},
                              {"format", "/matrix/format"},
                              {"matrix_bytes", "/matrix/bytes"},
                              {"backend", "/backend"},
                              {"iterations", "/solver/iterations"},
                              {"residual_recursive", "/solver/residual_recursive"},
                              {"residual_true", "/solver/residual_true"},
                              {"solver_seconds", "/solver/seconds"},
                              {"total_seconds", "/timing/total"},
                              {"error_l2", "/errors/l2"},
                              {"error_h1_seminorm", "/errors/h1_seminorm"},
                              {"error_linf", "/errors/linf"}};
constexpr Column order_columns[] = {
    {"order_l2", "/errors/l2"}, {"order_h1_seminorm", "/errors/h1_seminorm"}, {"order_linf", "/errors/linf"}};

/// What the analyses of snapshots found, for sweep.json, and the first that failed.
struct SweepAnalysis {
  Json entries = Json::array();
  std::exception_ptr failure;
  double seconds = 0;
};

bool has_snapshots(RunConfig const& config) {
  return std::any_of(config.analysis.begin(), config.analysis.end(),
                     [](AnalysisSpec const& spec) { return spec.of == AnalysisOf::snapshots; });
}

SweepAnalysis analyse_cases(std::vector<Case> const& cases, RunConfig const& config, RunOptions const& options,
                            ResultsDirectory& directory, Console& console) {
  SweepAnalysis result;
  Timer const timer;
  std::vector<Snapshot> snapshots;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    Case const& c = cases[i];
    snapshots.push_back({i, c.values, c.configuration ? &*c.configuration : nullptr, directory.path() / c.directory,
                         text_of(c.result, "/status") == "converged", number(c.result, "/solver/seconds"),
                         number(c.result, "/timing/total")});
  }
  set_thread_count(options.threads);
  std::unique_ptr<Context> context;
  for (std::size_t i = 0; i < config.analysis.size(); ++i) {
    AnalysisSpec const& spec = config.analysis[i];
    if (spec.of != AnalysisOf::snapshots)
      continue;
    Json& entry = result.entries.emplace_back(Json{{"of", name_of(spec.of)}});
    AnalysisOutput const output{directory, console, analysis_prefix(i, spec), entry};
    try {
      try_analysis(i, spec, output, result.failure, [&] {
        if (!context)
          context = make_context(config.backend.value_or(why_no_cuda().empty() ? Backend::cuda : Backend::cpu));
        analyse_snapshots(snapshots, config.sweep.axes, spec, *context, output);
      });
    } catch (Interrupted const&) {
      if (!result.failure)
        result.failure = std::current_exception();
      break;
    }
  }
  console.end_progress();
  result.seconds = timer.seconds();
  console.stage("analysis", result.seconds, std::to_string(result.entries.size()) + " of singular values");
  return result;
}

/// The name of the file that lists the solutions of all cases for ParaView.
std::string collection_name(RunConfig const& config, std::string const& sweep) {
  return sweep + (pvd_may_name(vtk_file_name(config)) ? ".pvd" : ".hdf.series");
}

/// ParaView's list of files that one reader reads, with their times.
std::string series_text(std::vector<output::PvdEntry> const& steps) {
  Json files = Json::array();
  for (auto const& step : steps)
    files.push_back({{"name", step.file}, {"time", step.time}});
  return Json{{"file-series-version", "1.0"}, {"files", files}}.dump(2) + "\n";
}

/// The names of all numbers among the quantities of the cases.
std::vector<std::string> quantity_names(std::vector<Case> const& cases) {
  std::vector<std::string> names;
  for (Case const& c : cases)
    if (c.result.is_object() && c.result.contains("quantities"))
      for (auto const& [name, value] : c.result["quantities"].items())
        if (value.is_number() && std::find(names.begin(), names.end(), name) == names.end())
          names.push_back(name);
  return names;
}

/// What the quantities tend to on finer meshes.
std::vector<MeshConvergence> convergence_of(std::vector<Case> const& cases, SweepSpec const& sweep) {
  std::vector<CaseOnMesh> converged;
  for (std::size_t i = 0; i < cases.size(); ++i)
    if (Case const& c = cases[i]; c.configuration && text_of(c.result, "/status") == "converged" && c.result.contains("quantities"))
      converged.push_back({i, c.values, &c.configuration->config(), &c.result["quantities"]});
  return mesh_convergence(sweep.axes, converged);
}

void write_summary(std::vector<Case> const& cases, SweepSpec const& sweep, RunOptions const& options, bool complete, int exit_code,
                   std::string const& collection, SweepAnalysis const& analysis, ResultsDirectory& directory) {
  std::ostringstream csv;
  csv << "case";
  for (auto const& axis : sweep.axes)
    csv << "," << csv_field(axis.path);
  csv << ",status,exit_code";
  for (auto const& column : columns)
    csv << "," << column.name;
  for (auto const& column : order_columns)
    csv << "," << column.name;
  std::vector<std::string> const quantities = quantity_names(cases);
  for (auto const& name : quantities)
    csv << "," << csv_field(name);
  csv << ",directory,error\n";

  Json list = Json::array();
  std::vector<output::PvdEntry> steps;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    Case const& c = cases[i];
    Json parameters = Json::object(), orders = Json::object();
    csv << i;
    for (std::size_t a = 0; a < sweep.axes.size(); ++a) {
      csv << "," << csv_field(c.values[a]);
      parameters[sweep.axes[a].path] = c.values[a];
    }
    std::string const status = c.result.is_object() ? text_of(c.result, "/status") : c.exit_code < 0 ? "not_run" : "failed";
    csv << "," << status << "," << c.exit_code;
    for (auto const& column : columns)
      csv << "," << csv_field(text_of(c.result, column.pointer));
    std::size_t const j = coarser_case(cases, sweep.axes, i);
    for (auto const& column : order_columns) {
      double const order =
          j < cases.size() ? observed_order(cases[j].result, c.result, column.pointer) : std::numeric_limits<double>::quiet_NaN();
      csv << "," << (std::isnan(order) ? "" : number_text(order, 5));
      if (!std::isnan(order))
        orders[std::string(column.name).substr(6)] = order;
    }
    for (auto const& name : quantities) {
      Json const value =
          c.result.is_object() && c.result.contains("quantities") ? c.result["quantities"].value(name, Json()) : Json();
      csv << "," << (value.is_number() ? value.dump() : "");
    }
    csv << "," << csv_field(c.directory) << "," << csv_field(c.error) << "\n";
    Json row = {{"case", i},          {"parameters", parameters},     {"status", status},        {"exit_code", c.exit_code},
                {"reused", c.reused}, {"fingerprint", c.fingerprint}, {"directory", c.directory}};
    if (!c.error.empty())
      row["error"] = c.error;
    if (!orders.empty())
      row["observed_orders"] = orders;
    row["result"] = c.result;
    list.push_back(row);
    if (!c.result.is_object() || !c.configuration)
      continue;
    if (std::string const file = c.directory + "/" + vtk_file_name(c.configuration->config()); fs::exists(directory.path() / file))
      steps.push_back({static_cast<double>(i), file});
  }
  directory.try_write("sweep.csv", [&](fs::path const& path) { output::write_text_file(path, csv.str()); });
  directory.try_write(collection, [&](fs::path const& path) {
    if (path.extension() == ".pvd")
      output::write_pvd(path, steps);
    else
      output::write_text_file(path, series_text(steps));
  });
  Json axes = Json::object();
  for (auto const& axis : sweep.axes)
    axes[axis.path] = axis.values;
  Json all = {{"poisson_version", POISSON_VERSION},
              {"configuration", options.path},
              {"complete", complete},
              {"exit_code", directory.failure() ? std::max<int>(exit_code, exit_environment) : exit_code},
              {"mode", name_of(sweep.mode)},
              {"axes", axes},
              {"cases", list}};
  if (auto const convergence = convergence_of(cases, sweep); !convergence.empty())
    all["extrapolation"] = to_json(convergence);
  if (!analysis.entries.empty())
    all.update({{"analysis", analysis.entries}, {"analysis_seconds", analysis.seconds}});
  auto files = directory.files();
  files.emplace_back("sweep.json");
  all["files"] = files;
  all["files_failed"] = json_of(directory.failures());
  directory.write_record(all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

void closing_grid(std::vector<Case> const& cases, SweepSpec const& sweep, Console& console) {
  bool const errors =
      std::any_of(cases.begin(), cases.end(), [](Case const& c) { return !std::isnan(number(c.result, "/errors/l2")); });
  std::vector<std::vector<std::string>> rows(1);
  rows[0] = {"case"};
  for (auto const& axis : sweep.axes)
    rows[0].push_back(short_name(axis.path));
  for (auto const* name : {"status", "unknowns", "iterations", "true residual", "seconds"})
    rows[0].emplace_back(name);
  if (errors)
    for (auto const* name : {"L2 error", "order", "H1 error", "order"})
      rows[0].emplace_back(name);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    Case const& c = cases[i];
    std::vector<std::string> row{std::to_string(i)};
    row.insert(row.end(), c.values.begin(), c.values.end());
    row.push_back(c.result.is_object() ? text_of(c.result, "/status") : c.exit_code < 0 ? "not run" : "failed");
    row.push_back(number_text(number(c.result, "/dofs"), 10));
    row.push_back(number_text(number(c.result, "/solver/iterations"), 10));
    row.push_back(number_text(number(c.result, "/solver/residual_true")));
    row.push_back(number_text(number(c.result, "/timing/total")));
    if (errors) {
      std::size_t const j = coarser_case(cases, sweep.axes, i);
      for (auto const* error : {"/errors/l2", "/errors/h1_seminorm"}) {
        row.push_back(number_text(number(c.result, error), 4));
        row.push_back(j < cases.size() ? number_text(observed_order(cases[j].result, c.result, error)) : "-");
      }
    }
    rows.push_back(row);
  }
  console.line();
  console.grid(rows);
  for (MeshConvergence const& group : convergence_of(cases, sweep)) {
    if (group.cases.size() < 3)
      continue;
    std::string of;
    for (auto const& [path, value] : group.parameters)
      of += ", " + short_name(path) + " = " + value;
    console.line();
    console.line("  Richardson extrapolation" + of + (group.note.empty() ? "" : ": none, " + group.note));
    if (group.note.empty())
      console.grid(table_of(group));
  }
  for (std::size_t i = 0; i < cases.size(); ++i)
    if (!cases[i].error.empty())
      console.line("  case " + std::to_string(i) + " failed: " + cases[i].error);
}

/// Every combination of the values, valid or not, with further settings `sets_of_all`.
std::vector<Case> cases_with(Configuration const& configuration, std::vector<std::string> const& sets_of_all) {
  SweepSpec const& sweep = configuration.config().sweep;
  std::vector<Case> cases;
  for (auto& values : combinations(sweep)) {
    Case c;
    c.values = std::move(values);
    std::vector<std::string> sets = sets_of_all;
    for (std::size_t a = 0; a < sweep.axes.size(); ++a)
      sets.push_back(sweep.axes[a].path + "=" + c.values[a]);
    char index[16];
    std::snprintf(index, sizeof index, "case_%03zu", cases.size());
    try {
      c.fingerprint = fingerprint(configuration.with(sets, "sweep").config());
      c.directory = std::string("cases/") + index + "_" + c.fingerprint.substr(0, 8);
      sets.push_back("output.directory=" + Json((fs::path(configuration.config().output.directory) / c.directory).string()).dump());
      c.configuration = configuration.with(sets, "sweep");
    } catch (InputError const& error) {
      c.error = configuration.locate(error);
      c.exit_code = exit_usage;
    }
    cases.push_back(std::move(c));
  }
  return cases;
}

/// Every combination of the values, valid or not. Throws InputError where none is valid.
std::vector<Case> cases_of(Configuration const& configuration) {
  std::vector<Case> cases = cases_with(configuration, {});
  // ParaView reads no collection of several kinds of grids.
  std::set<std::string> files;
  for (Case const& c : cases)
    if (c.configuration)
      files.insert(vtk_file_name(c.configuration->config()));
  if (OutputSpec const& output = configuration.config().output; output.vtk_enabled && files.size() > 1) {
    if (output.vtk_format)
      throw InputError("output.vtk.format",
                       "'image' stands for another kind of grid in some cases than in others, and ParaView reads no "
                       "collection of both; allowed for this sweep: auto, vtu, hdf");
    cases = cases_with(configuration, {"output.vtk.format=vtu"});
  }
  if (std::none_of(cases.begin(), cases.end(), [](Case const& c) { return c.configuration.has_value(); }))
    throw InputError("sweep", "no case of the sweep is a valid configuration; the first: " + cases.front().error);
  return cases;
}

/// Makes the folder of the cases, anew or as an earlier sweep left it. Anew, files that no sweep has written stay.
void make_cases_folder(fs::path const& folder, bool anew) {
  std::error_code ignored, made;
  std::vector<fs::path> earlier;
  if (anew)
    for (auto const& entry : fs::directory_iterator(folder, ignored))
      if (entry.is_directory(ignored) && !entry.is_symlink(ignored) && entry.path().filename().string().starts_with("case_"))
        earlier.push_back(entry.path());
  for (auto const& directory : earlier) {
    for (auto const& name : files_of_earlier_run(directory))
      fs::remove(directory / name, ignored);
    fs::remove(directory / case_log, ignored);
    fs::remove(directory, ignored);  // fails, as it should, when there is something in it
  }
  fs::create_directories(folder, made);
  if (made)
    throw EnvironmentError("cannot create '" + folder.string() + "': " + made.message());
}

/// Takes over the results of cases that an earlier run has finished, whatever their number was.
void reuse_finished(std::vector<Case>& cases, fs::path const& root) {
  std::error_code ignored;
  std::map<std::string, fs::path> done;  // fingerprint -> folder
  for (auto const& entry : fs::directory_iterator(root / "cases", ignored)) {
    Json const result = read_json(entry.path() / "result.json");
    if (finished(result, entry.path()))
      done[result.value("fingerprint", "")] = entry.path();
  }
  for (auto& c : cases)
    if (auto const found = done.find(c.fingerprint); c.configuration && found != done.end()) {
      c.directory = "cases/" + found->second.filename().string();
      c.result = read_json(found->second / "result.json");
      c.exit_code = c.result.value("status", "") == "converged" ? exit_done : exit_not_converged;
      c.reused = true;
    }
}

/// What a case's process has left: its record, or why there is none. `state` is waitpid's.
void take_result(Case& c, int state, fs::path const& root) {
  c.exit_code = WIFEXITED(state) ? WEXITSTATUS(state) : exit_environment;
  Json const result = read_json(root / c.directory / "result.json");
  if (result.is_object() && result.value("fingerprint", "") == c.fingerprint)
    c.result = result;
  if (WIFSIGNALED(state))
    c.error =
        std::string("the process was ended by signal ") + std::to_string(WTERMSIG(state)) + " (" + strsignal(WTERMSIG(state)) + ")";
  else if (c.exit_code == exit_usage || c.exit_code == exit_environment || c.result.is_null())
    c.error = error_of(root / c.directory / case_log);
}

/// Runs what is waiting, each case in a process of its own, `jobs` at a time; an interrupt is passed on to them and waited for.
void run_cases(std::vector<Case>& cases, std::vector<SweepAxis> const& axes, fs::path const& root, RunOptions const& options,
               InternalRunOptions const& internal, int jobs, Console& console) {
  struct Running {
    std::size_t index;
    Timer timer;
  };
  std::map<pid_t, Running> running;
  std::size_t next = 0;
  auto ended = std::count_if(cases.begin(), cases.end(), [](Case const& c) { return c.exit_code >= 0; });
  bool stopping = false;
  pid_t const self = getpid();
  while (true) {
    while (!interrupt_requested() && static_cast<int>(running.size()) < jobs && next < cases.size()) {
      Case& c = cases[next++];
      if (c.exit_code >= 0)
        continue;
      fs::path const log = root / c.directory / case_log;
      std::error_code ignored;
      fs::create_directories(root / c.directory, ignored);
      std::cout << std::flush;
      pid_t const pid = fork();
      if (pid < 0) {
        c.error = std::string("cannot start a process: ") + std::strerror(errno);
        c.exit_code = exit_environment;
        continue;
      }
      if (pid == 0)
        child(c, options, internal, log, self);
      running.emplace(pid, Running{next - 1, Timer()});
    }
    if (interrupt_requested() && !stopping) {
      stopping = true;
      for (auto const& [pid, job] : running)
        kill(pid, SIGINT);  // a terminal has sent it to them already; a second one is harmless
    }
    if (running.empty())
      break;
    int state = 0;
    pid_t const pid = waitpid(-1, &state, WNOHANG);
    if (pid <= 0) {  // polled, so that an interrupt is seen at once
      usleep(10'000);
      continue;
    }
    auto const found = running.find(pid);
    if (found == running.end())
      continue;
    Case& c = cases[found->second.index];
    c.seconds = found->second.timer.seconds();
    take_result(c, state, root);
    ++ended;
    console.stage(std::to_string(ended) + "/" + std::to_string(cases.size()), c.seconds,
                  values_text(c, axes) + ": " + (c.error.empty() ? text_of(c.result, "/status") : "failed: " + c.error));
    running.erase(found);
  }
}

}  // namespace

std::vector<SweepCase> sweep_cases(Configuration const& configuration) {
  std::vector<SweepCase> result;
  for (Case& c : cases_of(configuration))
    result.push_back({values_text(c, configuration.config().sweep.axes), std::move(c.configuration), std::move(c.error)});
  return result;
}

ExitCode run_sweep(Configuration const& configuration, SweepOptions const& options, Console& console) {
  SweepSpec const& sweep = configuration.config().sweep;
  if (sweep.axes.empty())
    throw InputError("sweep",
                     "there is nothing to sweep over: give at least one 'key.path: [values]' under 'sweep', or use 'poisson run'");
  fs::path const root = configuration.config().output.directory;
  std::vector<Case> cases = cases_of(configuration);
  std::string name = configuration_stem(options.run.path);
  if (name.empty())
    name = "sweep";
  std::string const collection = collection_name(configuration.config(), name);
  std::vector<std::string> names{"sweep.csv", collection};
  for (std::size_t i = 0; i < configuration.config().analysis.size(); ++i)
    if (auto const& spec = configuration.config().analysis[i]; spec.of == AnalysisOf::snapshots)
      names.push_back(analysis_prefix(i, spec) + "_*");
  ResultsDirectory directory(root, "sweep.json", std::move(names), options.run.overwrite || options.resume);
  std::error_code ignored;
  if (!options.resume && !options.run.overwrite && fs::exists(root / "cases", ignored))
    throw InputError("output.directory",
                     "'" + root.string() +
                         "' holds the cases of an earlier sweep; go on with it by --resume, choose another with --output DIR, or "
                         "replace it with --overwrite");
  make_cases_folder(root / "cases", options.run.overwrite && !options.resume);
  if (options.resume)
    reuse_finished(cases, root);

  auto const waiting = static_cast<int>(std::count_if(cases.begin(), cases.end(), [](Case const& c) { return c.exit_code < 0; }));
  int const jobs = std::clamp(options.jobs, 1, std::max(waiting, 1));
  RunOptions case_options = options.run;
  case_options.overwrite = true;
  if (case_options.threads == 0 && jobs > 1) {
    set_thread_count(0);
    case_options.threads = std::max(1, thread_count() / jobs);
  }
  console.line("poisson " POISSON_VERSION ": sweep of " + std::to_string(cases.size()) + " cases from " + options.run.path +
               (options.resume ? ", " + std::to_string(waiting) + " to do" : ""));
  run_cases(cases, sweep.axes, root, case_options, {.own_folder = true, .keep_unknowns = has_snapshots(configuration.config())},
            jobs, console);

  bool const complete = std::none_of(cases.begin(), cases.end(), [](Case const& c) {
    return c.exit_code < 0 || (c.result.is_object() && c.result.value("status", "") == "interrupted");
  });
  SweepAnalysis analysis;
  if (complete && has_snapshots(configuration.config()))
    analysis = analyse_cases(cases, configuration.config(), options.run, directory, console);
  int code = complete && !analysis.failure ? exit_done : analysis.failure ? exit_code_of(analysis.failure) : interrupted_code();
  for (auto const& c : cases)
    code = std::max(code, c.exit_code);
  if (!complete && was_interrupted())
    code = interrupted_code();  // the cases may have ended by another signal
  directory.ensure_writable();
  write_summary(cases, sweep, options.run, complete, code, collection, analysis, directory);
  if (directory.failure())
    code = std::max<int>(code, exit_environment);
  closing_grid(cases, sweep, console);
  if (!complete)
    console.line("  The sweep is not complete; --resume does what is missing.");
  std::string files;
  for (auto const& file : directory.files())
    files += file + ", ";
  console.line("  files: " + directory.path().string() + "/ " + files + "cases/");

  auto const failed = std::find_if(cases.begin(), cases.end(), [](Case const& c) { return !c.error.empty(); });
  if (failed != cases.end()) {
    auto const count = std::count_if(cases.begin(), cases.end(), [](Case const& c) { return !c.error.empty(); });
    std::cerr << "poisson: error: " << count << " of " << cases.size() << " cases failed; case " << failed - cases.begin() << ": "
              << failed->error << std::endl;
  } else if (analysis.failure)
    std::rethrow_exception(analysis.failure);
  else if (directory.failure())
    std::rethrow_exception(directory.failure());
  if (console.quiet() && failed == cases.end() && code != exit_done) {
    auto const bad = std::find_if(cases.begin(), cases.end(), [](Case const& c) { return c.exit_code != exit_done; });
    auto const count = std::count_if(cases.begin(), cases.end(), [](Case const& c) { return c.exit_code != exit_done; });
    std::cerr << "poisson: " << count << " of " << cases.size() << " cases are not converged; case " << bad - cases.begin() << ": "
              << (bad->exit_code < 0 ? "not run" : text_of(bad->result, "/status") + ": " + text_of(bad->result, "/reason"))
              << std::endl;
  }
  return static_cast<ExitCode>(code);
}

}  // namespace poisson::app
