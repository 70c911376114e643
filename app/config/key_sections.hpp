#pragma once

#include "app/config/schema.hpp"

/// The keys of a run by section, each in a file of its own, and the checks between several of them. Internal to the declarations;
/// run_keys() and check_run() (app/config/config_keys.hpp) are all of them.
namespace poisson::app::schema {

/// The member as a function of a RunConfig.
#define POISSON_MEMBER(member)                                                                                                     \
  [](RunConfig & c) -> auto& {                                                                                                     \
    return c.member;                                                                                                               \
  }

[[nodiscard]] Keys<RunConfig> keys_of_mesh();      ///< problem.mesh
[[nodiscard]] Keys<RunConfig> keys_of_adaptive();  ///< problem.mesh.adaptive
[[nodiscard]] Keys<RunConfig> keys_of_problem();   ///< the rest of problem
[[nodiscard]] Keys<RunConfig> keys_of_solver();    ///< matrix, solver and backend
[[nodiscard]] Keys<RunConfig> keys_of_analysis();  ///< analysis
[[nodiscard]] Keys<RunConfig> keys_of_output();    ///< output
[[nodiscard]] Keys<RunConfig> keys_of_sweep();     ///< sweep

/// Throws ConfigError where an id has two conditions.
void check_boundary(YamlNode const& root, assembly::ProblemSpec const& problem);
/// The problems of analysis.effective are on a box, and have neither sources nor an exact solution. Throws ConfigError.
void check_effective(YamlNode const& root, RunConfig const& config);
/// Throws ConfigError for what does not go with adaptive refinement.
void check_adaptive(YamlNode const& root, RunConfig const& config);
/// A field must have a name that expressions have no other meaning for. Throws ConfigError.
void check_fields(YamlNode const& root, RunConfig const& config);
/// Throws ConfigError for axes that cannot be swept, of different lengths, or with too many cases.
void check_sweep(YamlNode const& root, SweepSpec const& sweep);
/// Snapshots are vectors of one space, and some are needed beside the one that is left out. Throws ConfigError.
void check_snapshots(YamlNode const& root, RunConfig const& config);
/// Throws ConfigError for names that are taken, formats that the mesh does not allow, and directions of length 0.
void check_output(YamlNode const& root, RunConfig const& config);
/// Throws ConfigError for pictures that need what is not given, or contradict themselves.
void check_pictures(YamlNode const& root, RunConfig const& config);

}  // namespace poisson::app::schema
