#pragma once

#include "app/config/run_config.hpp"
#include "app/io/results_directory.hpp"
#include "app/results/pictures.hpp"
#include "app/results/result_record.hpp"
#include "assembly/discretization.hpp"
#include "output/vtk/vtk_files.hpp"

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace poisson::app {

/// What output.vtk.format: auto stands for.
[[nodiscard]] output::VtkFormat vtk_format(RunConfig const& config);
/// The name of the solution's file for ParaView, by output.vtk.format and the mesh.
[[nodiscard]] std::string vtk_file_name(RunConfig const& config);
/// Whether a .pvd may name that file: ParaView reads only VTK's XML formats from one.
[[nodiscard]] bool pvd_may_name(std::string const& vtk_file);

/// Whether the configuration asks for slices or contours; for anything that is written from fields.
[[nodiscard]] bool cuts_solution(RunConfig const& config);
[[nodiscard]] bool needs_fields(RunConfig const& config);

/// The solution on the nodes and cells of a mesh, or of a part of it, as the configuration's file takes them.
struct SolutionOutput {
  assembly::OutputMesh nodes;
  assembly::SolutionFields fields;
};
[[nodiscard]] SolutionOutput solution_output(assembly::Discretization const& discretization, std::span<double const> u,
                                             RunConfig const& config);
/// The nodes of that file: Lagrange cells need equidistant ones; all else takes those of the unknowns.
[[nodiscard]] assembly::OutputNodes output_nodes(RunConfig const& config);

/// What files for ParaView tell of a sweep's case: an array of one value for every swept key, by its path.
[[nodiscard]] std::vector<output::WholeArray> arrays_of_case(RunConfig const& config);
/// The same, and the names of materials and boundaries of the whole mesh; the sides of a box are -x, +x ...
[[nodiscard]] std::vector<output::WholeArray> whole_arrays(RunConfig const& config, assembly::MeshSummary const& mesh);

/// The fields of a file or a piece.
struct PieceFields {
  std::vector<output::Field> points, cells;
};
/// Those that the configuration asks for. `fields` outlive the result.
[[nodiscard]] PieceFields solution_fields(assembly::SolutionFields const& fields, RunConfig const& config);
/// Writes these fields on a mesh to `path`, in the format of the configuration; with a place, on a part as a piece of the mesh that
/// `summary` tells of (not hdf). Throws EnvironmentError.
void write_vtk(std::filesystem::path const& path, output::Mesh const& mesh, PieceFields const& fields, RunConfig const& config,
               assembly::MeshSummary const& summary, output::PiecePlace const* place = nullptr);

/// The title of pictures.
[[nodiscard]] std::string picture_title(ResultRecord const& record);

/// Writes the boundary alone (surface.vtp).
void write_surface(assembly::BoundarySurface const& surface, assembly::MeshSummary const& mesh, RunConfig const& config,
                   ResultsDirectory& directory);

/// Writes the pictures that were drawn, and notes their captions.
void write_drawn(std::vector<DrawnPicture> const& pictures, ResultRecord& record, ResultsDirectory& directory);

/// Writes residuals.csv and, with `picture`, its plot. Throws EnvironmentError.
void write_residual_files(ResultRecord const& record, OutputSpec const& output, ResultsDirectory& directory);

}  // namespace poisson::app
