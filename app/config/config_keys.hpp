#pragma once

#include "app/config/schema.hpp"

namespace poisson::app::schema {

/// Every key of a run, in the order of the schema and of the resolved configuration.
[[nodiscard]] Keys<RunConfig> const& run_keys();
/// Those of them that mean something for a system from files: matrix, solver, backend, and output without vtk.
[[nodiscard]] Keys<RunConfig> const& system_keys();
/// Throws ConfigError at the first key of the tree, all of them known, that is not one of system_keys.
void check_system(YamlNode const& root);
/// The paths of run_keys, with those of list elements ("problem.boundary[].ids").
[[nodiscard]] std::vector<std::string> const& run_key_paths();
/// What one key's value says by itself is checked when it is read; here: what several say together, short of what needs the mesh.
void check_run(YamlNode const& root, RunConfig const& config);
/// "key.path=value" put into the tree; `origin` is how messages call it.
void apply_set(YamlNode& root, std::string const& set, std::string_view origin);

}  // namespace poisson::app::schema
