#pragma once

#include "app/config/run_config.hpp"
#include "app/io/results_directory.hpp"
#include "app/run/result_record.hpp"
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

/// Writes the solution for ParaView, pictures, slices and contours, as far as the configuration asks for them. `u` has a value per
/// unknown. Captions of pictures go to the record. Returns notes on contours and slices that are empty. Throws EnvironmentError.
[[nodiscard]] std::vector<std::string> write_solution_files(assembly::Discretization const& discretization,
                                                            std::span<double const> u, RunConfig const& config,
                                                            ResultRecord& record, ResultsDirectory& directory);

/// The fields of a piece without their values.
struct PieceFields {
  std::vector<output::Field> points, cells;
};
/// Writes the solution on a part of a box, as a piece of the whole, to `path`, in the format of the configuration (not hdf).
/// Returns what write_pieces needs to know of it. Throws EnvironmentError.
[[nodiscard]] PieceFields write_piece(assembly::Discretization const& part, std::span<double const> u, RunConfig const& config,
                                      std::filesystem::path const& path, output::PiecePlace const& place);

/// Writes the boundary alone (surface.vtp). Precondition: u is finite.
void write_surface(assembly::Discretization const& discretization, std::span<double const> u, RunConfig const& config,
                   ResultsDirectory& directory);

/// Writes residuals.csv and, with `picture`, its plot. Throws EnvironmentError.
void write_residual_files(ResultRecord const& record, bool picture, ResultsDirectory& directory);

}  // namespace poisson::app
