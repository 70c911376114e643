#pragma once

#include "output/grid.hpp"

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace poisson::output {

/// Whether the program was built with Cairo. If not, write_picture and write_plot throw EnvironmentError.
[[nodiscard]] bool pictures_built();

struct PictureOptions {
  std::string title;     ///< above the picture
  std::string quantity;  ///< beside the colour bar, e.g. "u"
  int width = 1200, height = 900;
};

/// Bytes that write_picture takes for a mesh of so many cells, faces of its boundary and nodes: triangles of the surface and of the
/// three cuts, the search for the surface, pixels. `n_nodes` is 0 for grids, where nothing is searched.
[[nodiscard]] std::int64_t picture_bytes(std::int64_t n_cells, std::int64_t n_boundary_faces, int order, std::int64_t n_nodes,
                                         PictureOptions const& options);

/// Writes a PNG of a point field on the mesh, with color bar and axes. `u` has a value per point. The octant nearest to the viewer
/// is cut away, so that the interior is visible. Rendered in software: no display is needed. Values that are not finite are grey.
/// Throws EnvironmentError when the file cannot be written.
void write_picture(std::filesystem::path const& path, Mesh const& mesh, std::span<double const> u, PictureOptions const& options);

/// The points (x_i, y_i) of a curve, joined by lines.
struct Curve {
  std::string label;
  std::vector<double> x, y;  ///< of one length; points that are not finite, or not positive on a logarithmic axis, are skipped
};
struct PlotOptions {
  std::string title, x_label, y_label;
  bool x_log = false, y_log = true;
  int width = 900, height = 600;
  double reference_y = 0;         ///< where > 0: a dashed horizontal line, for instance the tolerance
  std::string reference_label{};  ///< label of that line; empty: its value
};

/// Writes a PNG of line plots with a legend. A skipped point interrupts its line; without any point the plot says "no data". Throws
/// EnvironmentError when the file cannot be written.
void write_plot(std::filesystem::path const& path, std::vector<Curve> const& curves, PlotOptions const& options);

}  // namespace poisson::output
