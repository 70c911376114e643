#include "app/results/run_log.hpp"

#include "app/plan/format_choice.hpp"
#include "app/results/versions.hpp"

#include <limits>

namespace poisson::app {

RunLog::RunLog(RunConfig const& config, RunOptions const& options, Console& console_of_user) : console(console_of_user) {
  record.solver = config.solver;
  record.name = config.output.name;
  record.unit = config.output.unit;
  record.title = config.output.title;
  record.provenance = provenance_of(options.command);
  record.result.residual_recursive = std::numeric_limits<double>::quiet_NaN();  // until there is one
}

void RunLog::begin(std::string const& title) {
  console.line("poisson " POISSON_VERSION ": " + title);
}

void RunLog::tell_choice(FormatChoice const& choice) {
  record.choice = choice;
  record.format_reason =
      "auto, " + (choice.note.empty() ? "for " + with_thousands(static_cast<std::int64_t>(choice.forecast.products)) + " products"
                                      : choice.note);
  if (console.verbose())
    console.grid(table_of(choice));
}

}  // namespace poisson::app
