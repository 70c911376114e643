#include "app/results/results.hpp"

#include "app/analysis/analysis.hpp"
#include "app/results/report.hpp"
#include "app/results/report_page.hpp"
#include "gpu/core/communicator.hpp"
#include "gpu/core/memory.hpp"
#include "output/files/atomic_file.hpp"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <vector>

namespace poisson::app {

namespace fs = std::filesystem;

namespace {

std::string message_of(std::exception_ptr const& error) {
  try {
    std::rethrow_exception(error);
  } catch (std::exception const& e) {
    return e.what();
  }
}

}  // namespace

Results::Results(RunConfig const& config, RunOptions const& options, InternalRunOptions const& internal,
                 std::vector<std::string> names, Team& writers)
    : config_(config), team_(internal.team), writers_(writers) {
  for (std::string const& name : residual_files(config.output))
    names.push_back(name);
  names.emplace_back("resolved.yaml");
  if (config.output.report)
    names.emplace_back(report_file);
  if (!config.system)
    names.emplace_back("configuration.yaml");
  for (std::size_t i = 0; i < config.analysis.size(); ++i)
    names.push_back(analysis_prefix(i, config.analysis[i]) + "_*");
  team_.on_first([&] {
    load_libraries(config);
    directory_.emplace(config.output.directory, "result.json", std::move(names), options.overwrite, internal.own_folder);
  });
}

fs::path Results::path_of(Team& team) {
  if (directory_)
    directory_->ensure_writable();
  return team.of_first(directory_ ? fs::absolute(directory_->path()).string() : "");
}

/// Peaks are those of the rank that has most; times of stages are those of the first rank, beside those of all.
void Results::gather_figures(ResultRecord& record) const {
  Communicator& ranks = team_.communicator();
  record.ranks = ranks.size();
  for (auto const& [stage, name] : Names<Stage>::values)
    record.seconds_of_ranks.emplace_back(stage, RankFigures(ranks, record.clock.seconds(stage)));
  record.host_peak_of_ranks = RankFigures(ranks, static_cast<double>(std::max(record.host_peak_bytes, host_peak_bytes())));
  record.host_peak_bytes = static_cast<std::int64_t>(record.host_peak_of_ranks.largest);
  record.device_peak_bytes = max_over(ranks, record.device_peak_bytes);
}

ExitCode Results::finish(RunLog& log) {
  gather_figures(log.record);
  share_interrupt(team_.communicator());
  ExitCode code = exit_done;
  team_.on_first([&] { code = finish_on_first(log); });
  return of_first(team_.communicator(), code);
}

ExitCode Results::finish_on_first(RunLog& log) {
  ResultRecord& record = log.record;
  directory_->ensure_writable();
  keep(directory_->failure());
  if (config_.output.report)
    attempt([&](ResultsDirectory& directory) {
      record.files = directory.files();
      record.files.emplace_back("result.json");
      if (failure_)
        record.error = message_of(failure_);
      directory.try_write(report_file, [&](fs::path const& path) {
        output::write_text_file(path, report_of_run(config_, record, directory.path()));
      });
    });
  keep(directory_->failure());
  ExitCode const code = failure_                                     ? exit_code_of(failure_)
                        : record.status == SolverStatus::converged   ? exit_done
                        : record.status == SolverStatus::interrupted ? interrupted_code()
                                                                     : exit_not_converged;
  record.exit_code = code;
  if (failure_)
    record.error = message_of(failure_);
  record.files = directory_->files();
  record.files.emplace_back("result.json");
  record.files_failed = directory_->failures();
  directory_->write_record(to_json(record));
  keep(directory_->failure());
  record.files = directory_->files();
  print_closing_table(record, directory_->path(), log.console);
  if (failure_)
    std::rethrow_exception(failure_);
  if (code != exit_done && log.console.quiet())
    std::cerr << "poisson: " << name_of(record.status) << (record.reason.empty() ? "" : ": " + record.reason) << std::endl;
  return code;
}

void write_configuration(Configuration const& configuration, Results& results) {
  results.attempt([&](ResultsDirectory& directory) {
    directory.try_write("resolved.yaml", [&](fs::path const& path) {
      output::write_text_file(path, resolved_yaml(with_absolute_files(configuration.config())));
    });
    directory.try_write("configuration.yaml",
                        [&](fs::path const& path) { output::write_text_file(path, configuration.text_with_sets()); });
  });
}

}  // namespace poisson::app
