#pragma once

#include "app/config/schema.hpp"

namespace poisson::app::schema {

/// Every key of a run, in the order of the schema and of the resolved configuration.
[[nodiscard]] Keys<RunConfig> const& run_keys();
/// The keys that apply to a system from files: matrix, solver, backend, and output without vtk.
[[nodiscard]] Keys<RunConfig> const& system_keys();
/// Throws ConfigError at the first key of the tree, all of them known, that is not one of system_keys.
void check_system(YamlNode const& root);
/// The paths of run_keys, with those of list elements ("problem.boundary[].ids").
[[nodiscard]] std::vector<std::string> const& run_key_paths();
/// Sets origin, extent and cells of the directions of a box that have coordinates. Throws ConfigError where they are given and do
/// not agree.
void apply_coordinates(YamlNode const& root, RunConfig& config);
/// Reads the headers of an image, if there is one: origin, extent and cells of the box follow. Throws ConfigError, and what
/// assembly::box_of_image throws but InputError.
void apply_image(YamlNode const& root, RunConfig& config);
/// Checks conditions between several keys, as far as they do not need the mesh. (Single values are checked when they are read.)
/// Throws ConfigError.
void check_run(YamlNode const& root, RunConfig const& config);
/// The part of it that is about `solver`.
void check_solver(YamlNode const& root, RunConfig const& config);
/// Applies "key.path=value" to the tree; `origin` names the setting in messages. Throws ConfigError.
void apply_set(YamlNode& root, std::string const& set, std::string_view origin);

}  // namespace poisson::app::schema
