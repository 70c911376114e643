#pragma once

#include "app/io/console.hpp"
#include "app/results/result_record.hpp"

#include <filesystem>

namespace poisson::app {

/// Prints the table of results at the end of a run.
void print_closing_table(ResultRecord const& record, std::filesystem::path const& directory, Console& console);

}  // namespace poisson::app
