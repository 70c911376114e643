#pragma once

#include "app/sweep/sweep_cases.hpp"
#include "assembly/system/extrapolation.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

/// Studies over mesh sizes: what quantities tend to, and when a mesh is fine enough.
namespace poisson::app {

/// Valid cases that differ in problem.mesh.cells or problem.mesh.refinements only.
struct MeshStudy {
  std::vector<std::pair<std::string, std::string>> parameters{};  ///< the values of all other axes, by key path
  std::vector<std::size_t> cases{};                               ///< from the coarsest mesh to the finest
  std::string note{};  ///< why nothing can be extrapolated from these meshes; empty: it can
};

/// A study for each combination of the values of the other axes, whether its cases have run or not. Empty where the sweep has no
/// axis of mesh sizes.
[[nodiscard]] std::vector<MeshStudy> mesh_studies(std::vector<SweepCase> const& cases, std::vector<SweepAxis> const& axes);

/// What the quantities of a study tend to.
struct MeshConvergence {
  MeshStudy study;  ///< of the cases that converged
  std::vector<std::pair<std::string, assembly::Extrapolation>> quantities{};
};

/// Extrapolates the quantities of every study in which two cases or more have converged.
[[nodiscard]] std::vector<MeshConvergence> mesh_convergence(std::vector<SweepCase> const& cases,
                                                            std::vector<SweepAxis> const& axes);

/// How far a study with `sweep.until` has come.
struct StudyProgress {
  std::size_t meshes = 0;  ///< so many of them, from the coarsest, have ended; where the aim is reached, so many were needed
  bool reached = false;    ///< the error is small enough
  double value = 0;        ///< the extrapolated quantity; with a note that of the finest mesh
  double error = 0;        ///< an estimate of the error on the finest of `meshes`; NaN where there is none
  std::string note{};      ///< why there is no estimate; empty: there is one
};

/// The estimate is that of the extrapolation, if it has nothing to say against itself. With three meshes nothing confirms the
/// order, and the last change counts where it is larger.
[[nodiscard]] StudyProgress progress_of(MeshStudy const& study, std::vector<SweepCase> const& cases, UntilSpec const& until);

/// The studies of a sweep with `until`. Throws InputError where no study has three meshes, or one has a note.
[[nodiscard]] std::vector<MeshStudy> studies_until(std::vector<SweepCase> const& cases, SweepSpec const& sweep);
/// Marks the cases that nobody has run on meshes finer than the study needs (SweepCase::left_out), if it is known already which
/// these are. Throws InputError where a case that converged has no such quantity.
void leave_out_finer(MeshStudy const& study, std::vector<SweepCase>& cases, UntilSpec const& until);

/// How many unknowns the mesh and the element have; of meshes that are no boxes for each coarse cell. An estimate.
[[nodiscard]] double estimated_size(RunConfig const& config);

/// Converts the groups for sweep.json.
[[nodiscard]] nlohmann::ordered_json to_json(std::vector<MeshConvergence> const& groups);
/// Makes a table for the terminal of the quantities that change from mesh to mesh.
[[nodiscard]] std::vector<std::vector<std::string>> table_of(MeshConvergence const& group);
/// What came of `sweep.until`, for sweep.json; null without.
[[nodiscard]] nlohmann::ordered_json until_json(std::vector<SweepCase> const& cases, SweepSpec const& sweep);
/// "Until the error of flux.1 is 0.001 of it"
[[nodiscard]] std::string until_title(UntilSpec const& until);
/// The same as a table: value, error, and why each study stopped; empty without.
[[nodiscard]] std::vector<std::vector<std::string>> until_table(std::vector<SweepCase> const& cases, SweepSpec const& sweep);

}  // namespace poisson::app
