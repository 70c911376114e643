#pragma once

#include "app/analysis/analysis.hpp"
#include "app/config/config.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace poisson::app {

/// The file of a case's unknowns, in its folder: a Matrix Market vector.
inline constexpr char const* snapshot_file = "solution.mtx";

/// The results of one case of a sweep.
struct Snapshot {
  std::size_t index = 0;            ///< of the case
  std::vector<std::string> values;  ///< of the parameters, as YAML text
  Configuration const* configuration = nullptr;
  std::filesystem::path directory;
  bool usable = false;       ///< converged
  double solve_seconds = 0;  ///< of its full solve
  double total_seconds = 0;  ///< of its whole run
};

/// Proper orthogonal decomposition of the solutions of a sweep on one mesh, and the reduced model in its modes (Sirovich 1987;
/// Quarteroni, Manzoni, Negri, Reduced Basis Methods for Partial Differential Equations, 2016): modes that are orthonormal in the
/// inner product sum w_i u_i v_i, w the integrals of the basis functions; Galerkin's equations V^T A V c = V^T b for the case that
/// was left out, with its own operator and, where all parameters are numbers, with one interpolated from those of the other cases,
/// which takes no assembly. Throws InputError when there are not enough cases or they do not share a mesh, EnvironmentError,
/// Interrupted.
void analyse_snapshots(std::vector<Snapshot> const& cases, std::vector<SweepAxis> const& axes, AnalysisSpec const& spec,
                       Context& context, AnalysisOutput output);

}  // namespace poisson::app
