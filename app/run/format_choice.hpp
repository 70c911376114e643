#pragma once

#include "app/config/run_config.hpp"
#include "gpu/formats/cost.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace poisson::app {

/// The forecast for `auto`: the number of products is matrix.expected_products, or an estimate for the solver. Its bandwidth is not
/// set.
[[nodiscard]] Forecast forecast_of(MatrixOptions const& matrix, SolverOptions const& solver, std::int64_t n_rows);

/// The estimates that `auto` compared, as rows for Console::grid.
[[nodiscard]] std::vector<std::vector<std::string>> table_of(FormatChoice const& choice);
/// The keys of `solver`, with what they mean for this problem.
[[nodiscard]] SolverOptions solver_options(RunConfig const& config);
/// What the preconditioner `auto` was chosen from.
[[nodiscard]] std::vector<std::vector<std::string>> table_of(std::vector<PreconditionerEstimate> const& estimates);

}  // namespace poisson::app
