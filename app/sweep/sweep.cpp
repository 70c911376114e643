#include "app/sweep/sweep.hpp"

#include "app/analysis/snapshots.hpp"
#include "app/io/child_process.hpp"
#include "app/io/results_directory.hpp"
#include "app/launch/exit_code.hpp"
#include "app/results/report_page.hpp"
#include "app/results/solution_fields.hpp"
#include "app/sweep/case_workers.hpp"
#include "app/sweep/greedy_sweep.hpp"
#include "app/sweep/mesh_convergence.hpp"
#include "app/sweep/multi_process_service.hpp"
#include "app/sweep/sweep_summary.hpp"
#include "app/sweep/waiting_cases.hpp"
#include "gpu/core/threads.hpp"
#include "gpu/kernels/backends.hpp"
#include "output/files/directory_lock.hpp"
#include "output/vtk/vtk_files.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <system_error>

namespace poisson::app {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

/// The quantities of a record that are numbers.
std::vector<std::pair<std::string, double>> numeric_quantities(Json const& result) {
  std::vector<std::pair<std::string, double>> found;
  if (result.is_object() && result.contains("quantities"))
    for (auto const& [name, value] : result["quantities"].items())
      if (value.is_number())
        found.emplace_back(name, value.get<double>());
  return found;
}

SweepAnalysis analyse_cases(std::vector<SweepCase> const& cases, RunConfig const& config, RunOptions const& options,
                            ResultsDirectory& directory, Console& console) {
  SweepAnalysis result;
  Timer const timer;
  std::vector<Snapshot> snapshots;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    SweepCase const& c = cases[i];
    snapshots.push_back({i, c.values, c.configuration ? &*c.configuration : nullptr, directory.path() / c.directory,
                         text_in(c.result, "/status") == "converged", number_in(c.result, "/solver/seconds"),
                         number_in(c.result, "/timing/total"), numeric_quantities(c.result)});
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

/// Removes what an earlier sweep has written into these folders of its cases, and those that are empty then. Threads do it, which
/// have ended when this returns: records are read, and to remove many small files takes longer.
void remove_cases(std::vector<fs::path> const& folders) {
  std::atomic<std::size_t> next{0};
  auto const remove_some = [&] {
    std::error_code ignored;
    for (std::size_t i = next++; i < folders.size(); i = next++) {
      for (auto const& name : files_of_earlier_run(folders[i]))
        fs::remove(folders[i] / name, ignored);
      fs::remove(folders[i] / case_log, ignored);
      fs::remove(folders[i], ignored);  // fails, as it should, when there is something in it
    }
  };
  constexpr std::size_t most_threads = 16, fewest_folders = 8;  // of a thread
  std::size_t const n =
      std::min({most_threads, static_cast<std::size_t>(std::max(usable_threads(), 1)), folders.size() / fewest_folders});
  std::vector<std::future<void>> others;
  try {
    for (std::size_t i = 1; i < n; ++i)
      others.push_back(std::async(std::launch::async, remove_some));
  } catch (std::system_error const&) {  // the system makes no more threads
  }
  remove_some();
  for (auto& other : others)
    other.get();
}

/// Makes the folder of the cases, anew or as an earlier sweep left it. Anew, files that no sweep has written stay.
void make_cases_folder(fs::path const& folder, bool anew) {
  std::error_code ignored, made;
  std::vector<fs::path> earlier;
  if (anew)
    for (auto const& entry : fs::directory_iterator(folder, ignored))
      if (entry.is_directory(ignored) && !entry.is_symlink(ignored) && entry.path().filename().string().starts_with("case_"))
        earlier.push_back(entry.path());
  for (auto const& directory : earlier)
    if (std::string const writer = output::writer_of(directory); !writer.empty())
      throw InputError("output.directory", "'" + directory.string() + "' is being written to by another run (" + writer +
                                               "); wait for its end, or choose another directory with --output DIR");
  remove_cases(earlier);
  fs::create_directories(folder, made);
  if (made)
    throw EnvironmentError("cannot create '" + folder.string() + "': " + made.message());
}

/// The name of the file that lists the solutions of all cases for ParaView.
std::string collection_name(RunConfig const& config, std::string const& configuration_file) {
  std::string const stem = configuration_stem(configuration_file);
  return (stem.empty() ? "sweep" : stem) + (pvd_may_name(vtk_file_name(config)) ? ".pvd" : ".hdf.series");
}

/// All that a sweep writes into its directory, beside sweep.json and the cases.
std::vector<std::string> names_of_summary(RunConfig const& config, std::string const& configuration_file) {
  std::vector<std::string> names{"sweep.csv", collection_name(config, configuration_file)};
  if (config.output.report)
    names.emplace_back(report_file);
  for (std::size_t i = 0; i < config.analysis.size(); ++i)
    if (auto const& spec = config.analysis[i]; spec.of == AnalysisOf::snapshots)
      names.push_back(analysis_prefix(i, spec) + "_*");
  return names;
}

/// What a summary says of cases without a result.
struct Incomplete {
  int exit_code;
  std::string advice;
  std::string error;  ///< empty: none
};

/// Writes and tells what the cases have given, and returns the exit code. `greedy` may be null; `failure` ended the
/// sweep early, or is of files that did not come to disk: it is thrown, or told, when all is written.
ExitCode summarize(std::vector<SweepCase> const& cases, RunConfig const& config, RunOptions const& options,
                   ResultsDirectory& directory, Console& console, Incomplete const& incomplete, GreedySweep const* greedy,
                   std::exception_ptr const& failure) {
  bool const complete = std::none_of(cases.begin(), cases.end(), [](SweepCase const& c) {
    return c.exit_code < 0 || (c.error.empty() && c.result.is_object() && c.result.value("status", "") == "interrupted");
  });
  SweepAnalysis analysis;
  if (complete && has_snapshots(config))
    analysis = analyse_cases(cases, config, options, directory, console);
  if (failure)
    analysis.failure = failure;
  if (greedy != nullptr) {
    analysis.greedy = greedy->json();
    analysis.greedy_text = greedy->text();
  }
  analysis.statistics = sample_statistics(cases, config);
  int code = complete && !analysis.failure ? exit_done : analysis.failure ? exit_code_of(analysis.failure) : incomplete.exit_code;
  for (auto const& c : cases)
    code = std::max(code, c.exit_code);
  if (!complete && was_interrupted())
    code = interrupted_code();  // the cases may have ended by another signal
  directory.ensure_writable();
  write_summary(cases, config, options.path, {complete, code}, collection_name(config, options.path), analysis, directory);
  if (directory.failure())
    code = std::max<int>(code, exit_environment);
  print_summary(cases, config, analysis, console);
  if (!complete)
    console.line(incomplete.advice);
  std::string files;
  for (auto const& file : directory.files())
    files += file + ", ";
  console.line("  files: " + directory.path().string() + "/ " + files + cases_folder + "/");

  auto const failed = std::find_if(cases.begin(), cases.end(), [](SweepCase const& c) { return !c.error.empty(); });
  if (failed != cases.end()) {
    auto const count = std::count_if(cases.begin(), cases.end(), [](SweepCase const& c) { return !c.error.empty(); });
    std::cerr << "poisson: error: " << count << " of " << cases.size() << " cases failed; case " << failed - cases.begin() << ": "
              << failed->error << std::endl;
    if (failure)
      tell_failure(failure_of(nullptr, failure).message);
  } else if (analysis.failure)
    std::rethrow_exception(analysis.failure);
  else if (directory.failure())
    std::rethrow_exception(directory.failure());
  else if (!incomplete.error.empty())
    tell_failure(incomplete.error);
  else if (console.quiet() && code != exit_done) {
    auto const bad = std::find_if(cases.begin(), cases.end(), [](SweepCase const& c) { return c.exit_code != exit_done; });
    auto const count = std::count_if(cases.begin(), cases.end(), [](SweepCase const& c) { return c.exit_code != exit_done; });
    std::cerr << "poisson: " << count << " of " << cases.size() << " cases are not converged; case " << bad - cases.begin() << ": "
              << (bad->exit_code < 0 ? status_of(*bad) : text_in(bad->result, "/status") + ": " + text_in(bad->result, "/reason"))
              << std::endl;
  }
  return static_cast<ExitCode>(code);
}

bool asks_for_cpu(std::vector<SweepCase> const& cases) {
  return std::all_of(cases.begin(), cases.end(),
                     [](SweepCase const& c) { return !c.configuration || c.configuration->config().backend == Backend::cpu; });
}

/// The devices that --gpus shares out; none without it. Takes no memory of any.
std::vector<std::string> devices_of(SweepOptions const& options, std::vector<SweepCase> const& cases) {
  if (options.gpus.empty())
    return {};
  if (asks_for_cpu(cases))
    throw InputError("backend", "is cpu, where --gpus has nothing to share out; leave --gpus out, or take backend auto or cuda");
  int const present = counted_by_child(cuda_device_count);  // a process that has used CUDA cannot start those of the cases
  if (present == 0)
    throw EnvironmentError("--gpus: " + why_no_cuda());
  return devices_for_cases(options.gpus, present, std::getenv("CUDA_VISIBLE_DEVICES"));
}

/// What lets jobs share devices, where there are fewer of these; else null.
std::unique_ptr<MultiProcessService> service_for(std::vector<SweepCase> const& cases, int jobs, std::size_t devices,
                                                 Console& console) {
  if (static_cast<std::size_t>(jobs) <= std::max<std::size_t>(devices, 1) || asks_for_cpu(cases))
    return nullptr;
  auto service = std::make_unique<MultiProcessService>(cuda_device_count);
  bool const may_have_device = fs::exists("/dev/nvidiactl");  // else no process is worth while that looks for one
  if (!service->obstacle().empty() && may_have_device && counted_by_child(cuda_device_count) > 0)
    console.warning("jobs that share a device have it by turns, and are no faster than one: NVIDIA's Multi-Process Service cannot "
                    "be used: " +
                    service->obstacle());
  return service;
}

}  // namespace

std::vector<std::string> devices_for_cases(std::string const& gpus, int present, char const* visible) {
  std::vector<std::string> names;  // of the devices in this process, for others that start with the same numbering
  if (visible != nullptr) {
    std::istringstream list(visible);
    for (std::string name; std::getline(list, name, ',');)
      names.push_back(name);
  }
  for (auto number = static_cast<int>(names.size()); number < present; ++number)
    names.push_back(std::to_string(number));
  auto const refuse = [&] {
    throw InputError("--gpus must be how many devices to use, from 1 to " + std::to_string(present) +
                     ", or the numbers of two or more, from 0 to " + std::to_string(present - 1) +
                     ", separated by commas; found '" + gpus + "'");
  };
  std::vector<int> numbers;
  for (std::size_t begin = 0; begin <= gpus.size();) {
    std::size_t const end = std::min(gpus.find(',', begin), gpus.size());
    int number = 0;
    auto const [stop, error] = std::from_chars(gpus.data() + begin, gpus.data() + end, number);
    if (error != std::errc() || stop != gpus.data() + end || std::find(numbers.begin(), numbers.end(), number) != numbers.end())
      refuse();
    numbers.push_back(number);
    begin = end + 1;
  }
  if (numbers.size() == 1) {
    if (numbers[0] < 1 || numbers[0] > present)
      refuse();
    names.resize(static_cast<std::size_t>(numbers[0]));
    return names;
  }
  std::vector<std::string> chosen;
  for (int const number : numbers) {
    if (number < 0 || number >= present)
      refuse();
    chosen.push_back(names[static_cast<std::size_t>(number)]);
  }
  return chosen;
}

ExitCode run_sweep(Configuration const& configuration, SweepOptions const& given, Console& console) {
  SweepOptions options = given;
  RunConfig const& config = configuration.config();
  fs::path const root = config.output.directory;
  std::vector<SweepCase> cases = sweep_cases(configuration);
  if (config.sweep.until)
    static_cast<void>(studies_until(cases, config.sweep));  // before anything is written
  auto const devices = devices_of(options, cases);
  ResultsDirectory directory(root, "sweep.json", names_of_summary(config, options.run.path),
                             options.run.overwrite || options.resume);
  std::error_code ignored;
  if (!options.resume && !options.run.overwrite && fs::exists(root / cases_folder, ignored))
    throw InputError("output.directory",
                     "'" + root.string() +
                         "' holds the cases of an earlier sweep; go on with it by --resume, choose another with --output DIR, or "
                         "replace it with --overwrite");
  make_cases_folder(root / cases_folder, options.run.overwrite && !options.resume);
  if (options.resume)
    reuse_finished(cases, root);

  std::optional<GreedySweep> greedy;
  if (config.sweep.greedy)
    greedy.emplace(cases, config, options.run.threads, console);
  WaitingCases waiting(cases, config.sweep, greedy ? [&] { return greedy->next(); } : WaitingCases::Choice());
  auto const to_do = std::count_if(cases.begin(), cases.end(), [](SweepCase const& c) { return c.exit_code < 0; });
  int const wanted = options.jobs > 0 ? options.jobs : std::max(static_cast<int>(devices.size()), 1);
  int const jobs = std::clamp(wanted, 1, std::max(static_cast<int>(waiting.size()), 1));
  if (jobs > 1)
    waiting.largest_first();
  if (options.run.threads == 0 && jobs > 1)
    options.run.threads = std::max(1, usable_threads() / jobs);
  console.line("poisson " POISSON_VERSION ": sweep of " + std::to_string(cases.size()) + " cases from " + options.run.path +
               (greedy           ? ", of which at most " + std::to_string(config.sweep.greedy->max_cases) + " are solved"
                : options.resume ? (config.sweep.until ? ", at most " : ", ") + std::to_string(to_do) + " to do"
                                 : ""));
  for (std::string const& warning : configuration.warnings())
    console.warning(warning);
  for (auto const& [error, numbers] : reasons_of_failures(cases))
    console.line(numbers.size() == 1
                     ? "  case " + std::to_string(numbers[0]) + " (" + values_text(cases[numbers[0]], config.sweep.axes) +
                           ") is not valid, and is not run: " + error
                     : "  cases " + ranges_text(numbers) + " are not valid, and are not run: " + error);
  // Once, for all cases, which are copies of this process.
  load_libraries(config);
  static_cast<void>(cpu_description());
  std::exception_ptr failure;
  try {
    auto const service = service_for(cases, jobs, devices.size(), console);
    run_cases(cases, waiting, configuration, options, {jobs, devices, service ? service->environment() : ProcessEnvironment{}},
              console);
    if (greedy)
      greedy->predict();
  } catch (std::exception const&) {
    failure = std::current_exception();  // told when what was solved is written
  }
  return summarize(cases, config, given.run, directory, console,
                   {was_interrupted() ? interrupted_code() : exit_not_converged,
                    "  The sweep is not complete; --resume does what is missing.", ""},
                   greedy ? &*greedy : nullptr, failure);
}

ExitCode collect_sweep(Configuration const& configuration, RunOptions const& options, Console& console) {
  RunConfig const& config = configuration.config();
  fs::path const root = config.output.directory;
  std::vector<SweepCase> cases = sweep_cases(configuration);
  std::error_code ignored;
  if (!fs::is_directory(root / cases_folder, ignored))
    throw InputError("output.directory",
                     "'" + root.string() +
                         "' has no cases to collect; name the directory of the sweep by --output DIR, or run its "
                         "cases with --case K");
  ResultsDirectory directory(root, "sweep.json", names_of_summary(config, options.path), true);
  auto const others = collect_cases(cases, root);
  if (config.sweep.until)
    for (MeshStudy const& study : studies_until(cases, config.sweep))
      leave_out_finer(study, cases, *config.sweep.until);
  console.line("poisson " POISSON_VERSION ": results of " + std::to_string(cases.size()) + " cases from " + options.path +
               ", as they are in " + root.string());
  for (std::string const& name : others)
    console.warning((root / cases_folder / name).string() + " is of another configuration, and not collected");
  std::optional<GreedySweep> greedy;
  std::optional<std::size_t> next;
  if (config.sweep.greedy) {
    greedy.emplace(cases, config, options.threads, console);
    next = greedy->next();
    greedy->predict();
  }
  std::vector<std::size_t> missing;
  if (next)
    missing.push_back(*next);
  for (std::size_t i = 0; i < cases.size(); ++i)
    if (SweepCase const& c = cases[i]; c.exit_code < 0 && (!next || !c.writer.empty())) {
      if (!next)
        missing.push_back(i);
      if (!c.writer.empty())
        console.line("  case " + std::to_string(i) + " is still running: " + c.writer);
    }
  return summarize(cases, config, options, directory, console,
                   {exit_environment, "  The sweep is not complete; run what is missing with --case, and collect again.",
                    missing.empty() ? ""
                    : next          ? "the case to be solved next is " + std::to_string(*next)
                                    : std::to_string(missing.size()) + " of " + std::to_string(cases.size()) +
                                 " cases have no result: " + ranges_text(missing)},
                   greedy ? &*greedy : nullptr, nullptr);
}

void list_sweep(Configuration const& configuration) {
  SweepSpec const& sweep = configuration.config().sweep;
  std::vector<SweepCase> const cases = sweep_cases(configuration);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    SweepCase const& c = cases[i];
    std::cout << i << '\t' << (c.configuration ? name_of_case(c) : "-");
    for (std::size_t a = 0; a < sweep.axes.size(); ++a)
      std::cout << '\t' << sweep.axes[a].path << '=' << c.values[a];
    std::cout << '\n';
    if (!c.configuration)
      std::cerr << "poisson: warning: case " << i << " is not valid: " << c.error << '\n';
  }
  std::cout << std::flush;
}

}  // namespace poisson::app
