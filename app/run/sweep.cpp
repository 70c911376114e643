#include "app/run/sweep.hpp"

#include "app/analysis/snapshots.hpp"
#include "app/io/results_directory.hpp"
#include "app/run/exit_code.hpp"
#include "app/run/report_page.hpp"
#include "app/run/solution_files.hpp"
#include "app/run/sweep_summary.hpp"
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

/// Runs one case in this (forked) process; does not return.
[[noreturn]] void child(RunningCase const& c, RunOptions const& options, InternalRunOptions const& internal, fs::path const& log,
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

bool has_snapshots(RunConfig const& config) {
  return std::any_of(config.analysis.begin(), config.analysis.end(),
                     [](AnalysisSpec const& spec) { return spec.of == AnalysisOf::snapshots; });
}

SweepAnalysis analyse_cases(std::vector<RunningCase> const& cases, RunConfig const& config, RunOptions const& options,
                            ResultsDirectory& directory, Console& console) {
  SweepAnalysis result;
  Timer const timer;
  std::vector<Snapshot> snapshots;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    RunningCase const& c = cases[i];
    snapshots.push_back({i, c.values, c.configuration ? &*c.configuration : nullptr, directory.path() / c.directory,
                         text_in(c.result, "/status") == "converged", number_in(c.result, "/solver/seconds"),
                         number_in(c.result, "/timing/total")});
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

/// Every combination of the values, valid or not, with further settings `sets_of_all`.
std::vector<RunningCase> cases_with(Configuration const& configuration, std::vector<std::string> const& sets_of_all) {
  SweepSpec const& sweep = configuration.config().sweep;
  std::vector<RunningCase> cases;
  for (auto& values : combinations(sweep)) {
    RunningCase c;
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
std::vector<RunningCase> cases_of(Configuration const& configuration) {
  std::vector<RunningCase> cases = cases_with(configuration, {});
  // ParaView reads no collection of several kinds of grids.
  std::set<std::string> files;
  for (RunningCase const& c : cases)
    if (c.configuration)
      files.insert(vtk_file_name(c.configuration->config()));
  if (OutputSpec const& output = configuration.config().output; output.vtk_enabled && files.size() > 1) {
    if (output.vtk_format)
      throw InputError("output.vtk.format",
                       "'image' stands for another kind of grid in some cases than in others, and ParaView reads no "
                       "collection of both; allowed for this sweep: auto, vtu, hdf");
    cases = cases_with(configuration, {"output.vtk.format=vtu"});
  }
  if (std::none_of(cases.begin(), cases.end(), [](RunningCase const& c) { return c.configuration.has_value(); }))
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
void reuse_finished(std::vector<RunningCase>& cases, fs::path const& root) {
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
void take_result(RunningCase& c, int state, fs::path const& root) {
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
void run_cases(std::vector<RunningCase>& cases, std::vector<SweepAxis> const& axes, fs::path const& root, RunOptions const& options,
               InternalRunOptions const& internal, int jobs, Console& console) {
  struct Running {
    std::size_t index;
    Timer timer;
  };
  std::map<pid_t, Running> running;
  std::size_t next = 0;
  auto ended = std::count_if(cases.begin(), cases.end(), [](RunningCase const& c) { return c.exit_code >= 0; });
  bool stopping = false;
  pid_t const self = getpid();
  while (true) {
    while (!interrupt_requested() && static_cast<int>(running.size()) < jobs && next < cases.size()) {
      RunningCase& c = cases[next++];
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
    RunningCase& c = cases[found->second.index];
    c.seconds = found->second.timer.seconds();
    take_result(c, state, root);
    ++ended;
    console.stage(std::to_string(ended) + "/" + std::to_string(cases.size()), c.seconds,
                  values_text(c, axes) + ": " + (c.error.empty() ? text_in(c.result, "/status") : "failed: " + c.error));
    running.erase(found);
  }
}

}  // namespace

std::vector<SweepCase> sweep_cases(Configuration const& configuration) {
  std::vector<SweepCase> result;
  for (RunningCase& c : cases_of(configuration))
    result.push_back({values_text(c, configuration.config().sweep.axes), std::move(c.configuration), std::move(c.error)});
  return result;
}

ExitCode run_sweep(Configuration const& configuration, SweepOptions const& options, Console& console) {
  SweepSpec const& sweep = configuration.config().sweep;
  if (sweep.axes.empty())
    throw InputError("sweep",
                     "there is nothing to sweep over: give at least one 'key.path: [values]' under 'sweep', or use 'poisson run'");
  fs::path const root = configuration.config().output.directory;
  std::vector<RunningCase> cases = cases_of(configuration);
  std::string name = configuration_stem(options.run.path);
  if (name.empty())
    name = "sweep";
  std::string const collection = collection_name(configuration.config(), name);
  std::vector<std::string> names{"sweep.csv", collection};
  if (configuration.config().output.report)
    names.emplace_back(report_file);
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

  auto const waiting =
      static_cast<int>(std::count_if(cases.begin(), cases.end(), [](RunningCase const& c) { return c.exit_code < 0; }));
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

  bool const complete = std::none_of(cases.begin(), cases.end(), [](RunningCase const& c) {
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
  write_summary(cases, configuration.config(), options.run.path, {complete, code}, collection, analysis, directory);
  if (directory.failure())
    code = std::max<int>(code, exit_environment);
  print_summary(cases, sweep, console);
  if (!complete)
    console.line("  The sweep is not complete; --resume does what is missing.");
  std::string files;
  for (auto const& file : directory.files())
    files += file + ", ";
  console.line("  files: " + directory.path().string() + "/ " + files + "cases/");

  auto const failed = std::find_if(cases.begin(), cases.end(), [](RunningCase const& c) { return !c.error.empty(); });
  if (failed != cases.end()) {
    auto const count = std::count_if(cases.begin(), cases.end(), [](RunningCase const& c) { return !c.error.empty(); });
    std::cerr << "poisson: error: " << count << " of " << cases.size() << " cases failed; case " << failed - cases.begin() << ": "
              << failed->error << std::endl;
  } else if (analysis.failure)
    std::rethrow_exception(analysis.failure);
  else if (directory.failure())
    std::rethrow_exception(directory.failure());
  if (console.quiet() && failed == cases.end() && code != exit_done) {
    auto const bad = std::find_if(cases.begin(), cases.end(), [](RunningCase const& c) { return c.exit_code != exit_done; });
    auto const count = std::count_if(cases.begin(), cases.end(), [](RunningCase const& c) { return c.exit_code != exit_done; });
    std::cerr << "poisson: " << count << " of " << cases.size() << " cases are not converged; case " << bad - cases.begin() << ": "
              << (bad->exit_code < 0 ? "not run" : text_in(bad->result, "/status") + ": " + text_in(bad->result, "/reason"))
              << std::endl;
  }
  return static_cast<ExitCode>(code);
}

}  // namespace poisson::app
