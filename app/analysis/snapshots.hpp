#pragma once

#include "app/analysis/analysis.hpp"
#include "app/config/config.hpp"

#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace poisson::app {

/// Name of the file with the solution of a case, in its folder: a Matrix Market vector, one value per unknown.
inline constexpr char const* snapshot_file = "solution.mtx";

/// Writes it; what fails is kept by the directory.
void write_snapshot(std::span<double const> u, ResultsDirectory& directory);

/// The results of one case of a sweep.
struct Snapshot {
  std::size_t index = 0;            ///< of the case
  std::vector<std::string> values;  ///< of the sweep's parameters, as YAML text
  Configuration const* configuration = nullptr;
  std::filesystem::path directory;
  bool usable = false;                                       ///< the solve converged
  double solve_seconds = 0;                                  ///< of the solve of the full system
  double total_seconds = 0;                                  ///< of the whole run
  std::vector<std::pair<std::string, double>> quantities{};  ///< those of its record that are numbers
};

/// Proper orthogonal decomposition (POD) of the solutions of a sweep on one mesh, and the reduced-order model in its modes
/// (Sirovich 1987; Quarteroni, Manzoni, Negri, Reduced Basis Methods for Partial Differential Equations, 2016). The modes V are
/// orthonormal in the inner product sum w_i u_i v_i, with w the integrals of the basis functions. The Galerkin system V^T A V c =
/// V^T b is solved for the case that was left out: with A and b of that case, and, where all parameters are numbers, with V^T A V
/// and V^T b interpolated from the other cases, which needs no assembly. All these systems together are written as a model for
/// `poisson predict`. Throws InputError when there are too few cases or they do
/// not share a mesh, EnvironmentError, Interrupted.
void analyse_snapshots(std::vector<Snapshot> const& cases, std::vector<SweepAxis> const& axes, AnalysisSpec const& spec,
                       Context& context, AnalysisOutput output);

}  // namespace poisson::app
