#pragma once

#include "app/io/console.hpp"
#include "app/launch/run_options.hpp"
#include "app/results/result_record.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"

#include <string>

namespace poisson::app {

/// What a run tells: the record with the clock of its stages, and the console of its user. On several ranks the first one's count.
class RunLog {
public:
  /// Begins the record.
  RunLog(RunConfig const& config, RunOptions const& options, Console& console_of_user);

  ResultRecord record;
  Console& console;

  /// Prints the first line, which tells what the run is of.
  void begin(std::string const& title);
  /// Prints a line about a finished stage.
  void report(Stage stage, std::string const& what) {
    console.stage(std::string(name_of(stage)), record.clock.seconds(stage), what);
  }
  /// A warning, for the record and the console.
  void warn(std::string const& text) {
    record.warnings.push_back(text);
    console.warning(text);
  }
  /// The formats that `auto` has weighed, for the record; on the console where it tells details.
  void tell_choice(FormatChoice const& choice);

  /// Calls `body`, which runs the stages. An interrupt ends it and is noted in the record.
  template <class Body>
  void until_interrupted(Body&& body) {
    try {
      body();
    } catch (Interrupted const&) {
      if (record.result.history.empty())
        record.reason = "interrupted before the solve";
      record.status = SolverStatus::interrupted;
    }
  }

  /// Calls `body`, which follows the solve. An interrupt ends it and is noted in the record with its time, and the run goes on: the
  /// solution is there, and is written.
  template <class Body>
  void unless_interrupted(char const* when, Body&& body) {
    try {
      body();
    } catch (Interrupted const&) {  // thrown on all ranks
      clear_interrupt();
      record.status = SolverStatus::interrupted;
      record.reason = std::string("interrupted ") + when + "; the solution is complete";
    }
  }
};

}  // namespace poisson::app
