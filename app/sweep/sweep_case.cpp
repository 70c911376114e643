// One case of a sweep, in this process.
#include "app/io/output_log.hpp"
#include "app/launch/exit_code.hpp"
#include "app/launch/launch.hpp"
#include "app/sweep/sweep.hpp"
#include "output/files/directory_lock.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>

namespace poisson::app {

namespace fs = std::filesystem;

namespace {

/// "HOST", with the devices that this process may use where a launcher or a sweep has chosen them.
std::string place_of_case() {
  std::string place = host_name();
  if (char const* const devices = std::getenv("CUDA_VISIBLE_DEVICES"))
    place += ", CUDA_VISIBLE_DEVICES=" + std::string(devices);
  return place;
}

/// Makes the folder of a case that is to be run. Throws InputError where another process runs it.
void make_folder(fs::path const& folder) {
  std::error_code made;
  fs::create_directories(folder, made);
  if (made)
    throw EnvironmentError("cannot create '" + folder.string() + "': " + made.message());
  if (std::string const writer = output::writer_of(folder); !writer.empty())
    throw InputError("output.directory", "'" + folder.string() + "' is being written to by another run (" + writer +
                                             "), of the same case; wait for its end");
}

}  // namespace

ExitCode run_sweep_case(Configuration const& configuration, std::string const& name, RunOptions const& options, Console& console,
                        Team& team) {
  std::optional<NumberedCase> found;
  team.together([&] {
    found = sweep_case(configuration, name);
    if (!found->sweep_case.configuration)
      throw ConfigError("", "case " + std::to_string(found->number) + " is not valid: " + found->sweep_case.error);
  });
  return run_known_case(configuration, std::move(*found), options, console, team);
}

ExitCode run_known_case(Configuration const& configuration, NumberedCase found, RunOptions const& options, Console& console,
                        Team& team, Kept* kept) {
  fs::path const root = configuration.config().output.directory;
  SweepCase& c = found.sweep_case;
  std::string const text = "case " + std::to_string(found.number) + " of " + std::to_string(found.of) + " (" +
                           values_text(c, configuration.config().sweep.axes) + ")";
  bool const is_first = team.is_first();
  auto const on_first = [&](auto&& body) {
    team.together([&] {
      if (is_first)
        body();
    });
  };

  if (!options.overwrite)
    on_first([&] { reuse_finished({&c, 1}, root); });
  std::string const known = c.reused ? std::to_string(c.exit_code) : "";
  if (std::string const code = team.of_first(known); !code.empty()) {
    console.line(text + " is finished, in " + (root / c.directory).string() + "; --overwrite runs it again");
    return static_cast<ExitCode>(std::stoi(code));
  }
  std::optional<OutputLog> log;
  on_first([&] {
    make_folder(root / c.directory);
    log.emplace(root / c.directory / case_log);
  });
  console.line(text + " on " + place_of_case());
  RunOptions case_options = options;
  case_options.overwrite = true;
  case_options.resume = options.resume || !options.overwrite;
  InternalRunOptions internal;
  internal.team = team;
  internal.kept = kept;
  internal.name = name_of_case(c);
  internal.own_folder = true;
  internal.keep_unknowns = has_snapshots(configuration.config()) || configuration.config().sweep.greedy;
  try {
    ExitCode const code = run_case(*c.configuration, case_options, console, internal);
    if (log)
      log->line(exit_code_text(code));
    return code;
  } catch (...) {
    Failure const failure = failure_of(&*c.configuration, std::current_exception());
    if (!team.agreed()) {  // the caller tells it, and ends the other ranks
      std::ofstream(root / c.directory / case_log, std::ios::app)
          << "poisson: error: " << told_by(team.rank(), failure.message) << "\n"
          << exit_code_text(failure.code) << std::endl;
      if (failure.code == exit_usage)
        throw ConfigError("", failure.message);  // with its place in the configuration of the case
      throw;
    }
    if (is_first)
      tell_failure(failure.message);
    if (log)
      log->line(exit_code_text(failure.code));
    return failure.code;
  }
}

}  // namespace poisson::app
