#pragma once

#include "app/config/run_config.hpp"
#include "app/io/results_directory.hpp"
#include "app/results/result_record.hpp"
#include "assembly/discretization.hpp"
#include "output/vtk/vtk_files.hpp"

#include <optional>
#include <string>
#include <vector>

namespace poisson::app {

struct Solution;

/// Loads the libraries that files and analyses of a configuration need: where one is missing, that is told before there is work to
/// lose. Throws EnvironmentError.
void load_libraries(RunConfig const& config);

/// What output.vtk.format: auto stands for.
[[nodiscard]] output::VtkFormat vtk_format(RunConfig const& config);
/// The name of the solution's file for ParaView, by output.vtk.format and the mesh.
[[nodiscard]] std::string vtk_file_name(RunConfig const& config);
/// Whether a .pvd may name that file: ParaView reads only VTK's XML formats from one.
[[nodiscard]] bool pvd_may_name(std::string const& vtk_file);

/// The solution on the nodes and cells of a mesh, or of a part of it, as the configuration's file takes them. The fields may be
/// made from the solution, which outlives them, when they are asked for.
struct SolutionOutput {
  assembly::OutputMesh nodes;
  assembly::SolutionFields fields;
  std::vector<assembly::SolutionFields> of_others{};   ///< those of Solution::others
  std::vector<HostVector<double>> values_of_others{};  ///< on several ranks, of which these are made
};
/// That of own cells; none on a rank without cells. Collective. Throws InputError where `exact` is not finite.
[[nodiscard]] std::optional<SolutionOutput> solution_output(Solution const& solution, RunConfig const& config);
/// The nodes of that file: Lagrange cells need equidistant ones; all else takes those of the unknowns.
[[nodiscard]] assembly::OutputNodes output_nodes(RunConfig const& config);
/// Whether files and pictures take the mesh as lists of nodes and cells, and not as a grid.
[[nodiscard]] bool lists_nodes(RunConfig const& config);

/// What files for ParaView tell of the whole: the names of materials and boundaries (the sides of a box are -x, +x ...), and an
/// array of one value for every key that a sweep's case has, by its path.
[[nodiscard]] std::vector<output::WholeArray> whole_arrays(RunConfig const& config, assembly::MeshSummary const& mesh);

/// The convergence history: residuals.csv and, with `picture`, its plot.
[[nodiscard]] std::vector<std::string> residual_files(OutputSpec const& output);
/// Writes residuals.csv. Throws EnvironmentError.
void write_residuals(ResultRecord const& record, ResultsDirectory& directory);
/// Draws the plot, where pictures are wanted. Throws EnvironmentError.
void plot_residuals(ResultRecord const& record, OutputSpec const& output, ResultsDirectory& directory);

}  // namespace poisson::app
