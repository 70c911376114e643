#pragma once

#include "app/config/run_config.hpp"
#include "app/launch/team.hpp"
#include "gpu/core/rank_rows.hpp"
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
/// Why a format does not take a matrix whose rows several ranks share; empty where it does. It is a property of the whole matrix: a
/// block of it may have more diagonals for its size, or fewer. `numbers`: as in NumberedRows. Collective.
[[nodiscard]] std::string refusal_of_whole(Format format, RankRows const& rows, std::vector<std::int64_t> numbers,
                                           FormatOptions const& options, Team& team);
/// Why a format does not take the block of one rank; empty where it does. Symmetry is not looked at: the conversion does that.
[[nodiscard]] std::string refusal_of_block(Format format, CsrMatrix const& block, FormatOptions const& options);

/// The keys of `solver`, with what they mean for this problem.
[[nodiscard]] SolverOptions solver_options(RunConfig const& config);
/// What the preconditioner `auto` was chosen from.
[[nodiscard]] std::vector<std::vector<std::string>> table_of(std::vector<PreconditionerEstimate> const& estimates);

}  // namespace poisson::app
