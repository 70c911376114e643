#pragma once

#include "app/domain/domain.hpp"
#include "app/domain/solution_values.hpp"
#include "app/io/console.hpp"
#include "app/io/results_directory.hpp"
#include "app/launch/team.hpp"
#include "app/results/result_record.hpp"
#include "app/run/shared_matrix.hpp"
#include "app/run/system.hpp"
#include "gpu/core/context.hpp"

#include <exception>

namespace poisson::app {

/// What every rank has for the analyses of a run.
struct AnalysedParts {
  RunConfig const& config;
  Domain const& mesh;
  Team& team;
  System const& system;
  SharedMatrix const& matrix;
  SolutionValues const& u;
  assembly::Extent extent;  ///< of the whole mesh
};

/// The analyses of a run. The first rank makes them, into record.analysis and its directory, which is null on the others; these
/// wait, and send what it asks for. Returns, on the first rank, the first failure. Collective. Throws Interrupted on all ranks.
[[nodiscard]] std::exception_ptr analyse_run(AnalysedParts const& parts, ResultRecord& record, Context& context,
                                             ResultsDirectory* directory, Console& console);

}  // namespace poisson::app
