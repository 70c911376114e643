#pragma once

#include "app/config/run_config.hpp"
#include "app/sweep/sweep_summary.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace poisson::app {

/// The page of a sweep: its table, and plots of what its cases found against what was swept. `record` is sweep.json.
[[nodiscard]] std::string report_of_sweep(RunConfig const& config, std::vector<SweepCase> const& cases,
                                          SweepAnalysis const& analysis, nlohmann::ordered_json const& record);

}  // namespace poisson::app
