#pragma once

#include "app/config/run_config.hpp"
#include "app/results/result_record.hpp"

#include <filesystem>
#include <string>
#include <vector>

/// report.html, the results as a page that opens anywhere.
namespace poisson::app {

inline constexpr char const* report_file = "report.html";

/// The page of a run, with the pictures among record.files of the directory.
[[nodiscard]] std::string report_of_run(RunConfig const& config, ResultRecord const& record,
                                        std::filesystem::path const& directory);

}  // namespace poisson::app
