#include "app/sweep/case_workers.hpp"

#include "app/config/schema.hpp"
#include "app/io/child_process.hpp"
#include "app/launch/exit_code.hpp"
#include "app/run/kept.hpp"
#include "app/sweep/case_sync.hpp"
#include "gpu/core/interrupt.hpp"
#include "gpu/core/memory.hpp"
#include "output/files/atomic_file.hpp"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <utility>

namespace poisson::app {

namespace fs = std::filesystem;

namespace {

class CaseWorkers {
public:
  CaseWorkers(std::vector<SweepCase>& cases, WaitingCases& waiting, Configuration const& configuration, SweepOptions const& options,
              Jobs const& jobs, Console& console)
      : cases_(cases),
        waiting_(waiting),
        configuration_(configuration),
        options_(options),
        jobs_(jobs),
        console_(console),
        root_(configuration.config().output.directory),
        time_limit_(configuration.config().sweep.time_limit),
        pace_(cases) {}

  void run();

private:
  /// A process, and the case that it runs.
  struct Job {
    std::unique_ptr<Worker> worker;      ///< null: none yet, or it has ended
    std::optional<std::size_t> running;  ///< the number of the case
    Timer timer;                         ///< of the case
    int n_warnings = 0;                  ///< how often the case was told that its time is over
  };

  [[nodiscard]] fs::path log_of(SweepCase const& c) const { return root_ / c.directory / case_log; }
  [[nodiscard]] Worker::Work work_of(std::size_t place) const;
  /// Gives cases to the jobs that have none.
  void begin_next(std::vector<Job>& jobs);
  /// Gives the next case to a job that has none.
  void begin(Job& job, std::size_t place);
  /// Ends a case whose time is over.
  void limit(Job& job) const;
  /// A case that has ended, and whose result was not read yet.
  struct Ended {
    std::size_t number;
    double seconds;
    int n_warnings;
    TaskEnd how;
  };
  /// Frees a job from its case.
  static Ended end(Job& job, TaskEnd const& how);
  /// Takes the result of a case. `interrupted`: the sweep was.
  void take(Ended const& ended, bool interrupted);
  /// Whether there is one more case when all have ended.
  bool choose();
  /// Tells the waiting cases of one that has its exit code.
  void tell_ended(std::size_t number);

  std::vector<SweepCase>& cases_;
  WaitingCases& waiting_;
  Configuration const& configuration_;
  SweepOptions const& options_;
  Jobs const& jobs_;
  Console& console_;
  fs::path root_;
  std::optional<double> time_limit_;
  Pace pace_;
  std::exception_ptr wrong_;
};

Worker::Work CaseWorkers::work_of(std::size_t place) const {
  Worker::Work work;
  work.environment = jobs_.environment;
  if (!jobs_.devices.empty())
    work.environment.emplace_back("CUDA_VISIBLE_DEVICES", jobs_.devices[place % jobs_.devices.size()]);
  work.task = [this, kept = std::make_shared<Kept>(), sync = std::make_shared<CaseSync>(root_ / cases_folder)](std::size_t number) {
    output::sync_each_file(false);
    SweepCase const& c = cases_[number];
    return exit_code_of(&*c.configuration, [&]() -> int {
      write_output_to(log_of(c));
      reset_host_peak();  // the figures of a case are its own
      RunOptions of_case = options_.run;
      of_case.overwrite = true;
      of_case.resume = options_.resume;
      of_case.command = options_.command_of_case + " --case " + name_of_case(c) + " --overwrite" +
                        (of_case.threads > 0 ? " --threads=" + std::to_string(of_case.threads) : "");
      Console console(false, of_case.verbose);
      int const code = run_known_case(configuration_, {number, cases_.size(), c}, of_case, console, alone_team(), kept.get());
      for (auto const& [backend, context] : kept->contexts)
        if (context)
          context->return_freed_memory();  // others may share the device
      sync->case_has_ended();
      return code;
    });
  };
  // After anything else a device may be lost, or an interrupt be in force.
  work.goes_on = [](int code) { return code == exit_done || code == exit_not_converged; };
  return work;
}

void CaseWorkers::begin(Job& job, std::size_t place) {
  std::size_t const number = waiting_.take();
  SweepCase& c = cases_[number];
  try {
    std::error_code ignored;
    fs::create_directories(log_of(c).parent_path(), ignored);
    if (!std::ofstream(log_of(c)))
      throw EnvironmentError("cannot write the log '" + log_of(c).string() + "'");
    if (job.worker == nullptr || !job.worker->begin(number)) {
      job.worker = std::make_unique<Worker>(work_of(place));
      if (!job.worker->begin(number))
        throw EnvironmentError("a process that was started has ended at once");
    }
    job.running = number;
    job.timer = {};
    job.n_warnings = 0;
  } catch (std::exception const& error) {
    job.worker.reset();
    c.error = error.what();
    c.exit_code = exit_code_of(std::current_exception());
    tell_ended(number);
  }
}

void CaseWorkers::limit(Job& job) const {
  if (!time_limit_ || job.timer.seconds() <= *time_limit_)
    return;
  double const grace = std::clamp(*time_limit_, 1.0, 60.0);
  if (job.n_warnings == 0 || (job.n_warnings == 1 && job.timer.seconds() > *time_limit_ + grace))
    job.worker->send(job.n_warnings++ == 0 ? SIGTERM : SIGKILL);
}

CaseWorkers::Ended CaseWorkers::end(Job& job, TaskEnd const& how) {
  Ended const ended{*std::exchange(job.running, std::nullopt), job.timer.seconds(), job.n_warnings, how};
  if (!how.goes_on || job.n_warnings > 0)
    job.worker.reset();
  return ended;
}

/// The first line of an error, and of that the beginning: the whole is told once, when all cases have ended.
std::string in_short(std::string const& error) {
  return schema::shorten(error.substr(0, error.find('\n')), 200);
}

void CaseWorkers::take(Ended const& ended, bool interrupted) {
  auto const& [number, seconds, n_warnings, how] = ended;
  SweepCase& c = cases_[number];
  c.seconds = seconds;
  bool const was_stopped = how.signal != 0 || how.code > 128;
  std::error_code ignored;
  if (interrupted && was_stopped && !fs::exists(root_ / c.directory / "result.json", ignored))
    return;  // it had just been started; it is not run
  bool const took_too_long = was_stopped && n_warnings > 0;
  if (took_too_long)  // as collect_cases finds it, too
    std::ofstream(log_of(c), std::ios::app) << "poisson: error: it took longer than sweep.time_limit, " << number_text(*time_limit_)
                                            << " s, and was " << (how.signal != 0 ? "killed\n" : "interrupted\n")
                                            << exit_code_text(exit_environment) << "\n";
  take_result(c, took_too_long || how.signal != 0 ? exit_environment : how.code, root_);
  if (how.signal != 0 && !took_too_long)
    c.error = std::string("the process was ended by signal ") + std::to_string(how.signal) + " (" + strsignal(how.signal) + ")";
  tell_ended(number);
  auto const n_ended = std::count_if(cases_.begin(), cases_.end(), [](SweepCase const& each) { return each.exit_code >= 0; });
  SweepSpec const& sweep = configuration_.config().sweep;
  std::string const of = sweep.greedy ? "" : "/" + std::to_string(cases_.size());
  console_.stage(std::to_string(n_ended) + of, c.seconds,
                 values_text(c, sweep.axes) + ": " +
                     (c.error.empty() ? text_in(c.result, "/status") : "failed: " + in_short(c.error)) +
                     (sweep.greedy ? "" : pace_.after(c, sweep.until.has_value())));
}

void CaseWorkers::tell_ended(std::size_t number) {
  try {
    waiting_.ended(number);
  } catch (InputError const&) {
    wrong_ = std::current_exception();
  }
}

bool CaseWorkers::choose() {
  try {
    return waiting_.choose();
  } catch (std::exception const&) {
    wrong_ = std::current_exception();
    return false;
  }
}

void CaseWorkers::begin_next(std::vector<Job>& jobs) {
  for (std::size_t place = 0; place < jobs.size(); ++place)
    while (!jobs[place].running && !interrupt_requested() && !wrong_ && !waiting_.empty())
      begin(jobs[place], place);
}

void CaseWorkers::run() {
  std::vector<Job> jobs(static_cast<std::size_t>(jobs_.count));
  bool interrupted = false;
  CasesToDisk to_disk(root_ / cases_folder);
  while (true) {
    begin_next(jobs);
    bool const passes_on = !interrupted && interrupt_requested();
    interrupted = interrupted || passes_on;
    std::vector<Worker*> busy;
    for (Job& job : jobs)
      if (job.running) {
        busy.push_back(job.worker.get());
        if (passes_on)
          job.worker->send(SIGINT);  // a terminal has sent it to them already; a second one is harmless
        limit(job);
      }
    if (busy.empty() && (interrupted || wrong_ || !choose()))
      break;
    if (busy.empty())
      continue;
    constexpr std::chrono::milliseconds pause{10};  // an interrupt that comes before the wait is seen after it
    Worker::wait_for(busy, pause);
    std::vector<Ended> ended;
    for (Job& job : jobs)
      if (job.running)
        if (auto const how = job.worker->ended())
          ended.push_back(end(job, *how));
    if (!waiting_.needs_results())  // the next cases are computed while these are read
      begin_next(jobs);
    for (Ended const& each : ended)
      take(each, interrupted);
  }
  jobs.clear();
  to_disk.finish();
  if (wrong_)
    std::rethrow_exception(wrong_);
}

}  // namespace

void run_cases(std::vector<SweepCase>& cases, WaitingCases& waiting, Configuration const& configuration,
               SweepOptions const& options, Jobs const& jobs, Console& console) {
  CaseWorkers(cases, waiting, configuration, options, jobs, console).run();
}

}  // namespace poisson::app
