#pragma once

#include "app/io/console.hpp"
#include "app/run/result_record.hpp"

#include <filesystem>

namespace poisson::app {

/// The table that a run ends with.
void closing_table(ResultRecord const& record, std::filesystem::path const& directory, Console& console);

}  // namespace poisson::app
