#pragma once

#include "app/config/run_config.hpp"
#include "assembly/system/extrapolation.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace poisson::app {

/// A converged case of a sweep.
struct CaseOnMesh {
  std::size_t number;
  std::vector<std::string> values;  ///< one per axis
  RunConfig const* config;
  nlohmann::ordered_json const* quantities;  ///< of its record
};

/// Cases that differ in their meshes only, from the coarsest to the finest, and what their quantities tend to.
struct MeshConvergence {
  std::vector<std::pair<std::string, std::string>> parameters;  ///< the values of all other axes, by key path
  std::vector<std::size_t> cases;
  std::string note;  ///< why nothing is extrapolated; empty: see below
  std::vector<std::pair<std::string, assembly::Extrapolation>> quantities;
};

/// The groups of two cases or more whose meshes differ in problem.mesh.cells or problem.mesh.refinements. Empty where the sweep has
/// no such axis.
[[nodiscard]] std::vector<MeshConvergence> mesh_convergence(std::vector<SweepAxis> const& axes,
                                                            std::vector<CaseOnMesh> const& cases);

/// Converts the groups for sweep.json.
[[nodiscard]] nlohmann::ordered_json to_json(std::vector<MeshConvergence> const& groups);
/// Makes a table for the terminal of the quantities that change from mesh to mesh.
[[nodiscard]] std::vector<std::vector<std::string>> table_of(MeshConvergence const& group);

}  // namespace poisson::app
