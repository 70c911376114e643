#pragma once

#include "app/config/run_config.hpp"
#include "app/run/result_record.hpp"
#include "app/run/sweep_summary.hpp"

#include <filesystem>
#include <string>
#include <vector>

/// report.html, the results as a page that opens anywhere.
namespace poisson::app {

inline constexpr char const* report_file = "report.html";

/// The page of a run, with the pictures among record.files of the directory.
[[nodiscard]] std::string report_of_run(RunConfig const& config, ResultRecord const& record,
                                        std::filesystem::path const& directory);

/// The page of a sweep: its table, and plots of what its cases found against what was swept. `record` is sweep.json.
[[nodiscard]] std::string report_of_sweep(RunConfig const& config, std::vector<SweepCase> const& cases,
                                          nlohmann::ordered_json const& record);

}  // namespace poisson::app
