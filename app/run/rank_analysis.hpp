#pragma once

#include "app/io/console.hpp"
#include "app/io/results_directory.hpp"
#include "app/run/rank_mesh.hpp"
#include "app/run/rank_team.hpp"
#include "app/run/result_record.hpp"
#include "app/run/shared_matrix.hpp"
#include "app/run/system.hpp"
#include "gpu/core/context.hpp"

#include <exception>
#include <span>

namespace poisson::app {

/// What every rank has for the analyses of a run.
struct AnalysedParts {
  RunConfig const& config;
  RankMesh const& mesh;
  RankTeam& team;
  System const& system;
  SharedMatrix const& matrix;
  std::span<double const> u;  ///< of the unknowns of own cells
  assembly::Extent extent;    ///< of the whole mesh
};

/// The analyses of a run. The first rank makes them, into record.analysis and its directory, which is null on the others; these
/// wait, and send what it asks for. Returns, on the first rank, the first failure. Collective. Throws Interrupted on all ranks.
[[nodiscard]] std::exception_ptr analyse_run(AnalysedParts const& parts, ResultRecord& record, Context& context,
                                             ResultsDirectory* directory, Console& console);

}  // namespace poisson::app
