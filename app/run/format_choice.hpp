#pragma once

#include "app/config/run_config.hpp"
#include "gpu/formats/cost.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace poisson::app {

/// How many products `auto` counts on: matrix.expected_products, or what the solver is expected to need. Without bandwidth.
[[nodiscard]] Forecast forecast_of(MatrixOptions const& matrix, SolverOptions const& solver, std::int64_t n_rows);

/// The table that `auto` decided from, for Console::grid; the first row is the header.
[[nodiscard]] std::vector<std::vector<std::string>> table_of(FormatChoice const& choice);

}  // namespace poisson::app
