#pragma once

#include "output/grid.hpp"

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace poisson::output {

/// Whether this build can draw (it was built with Cairo). Without, write_picture and write_plot throw EnvironmentError.
[[nodiscard]] bool pictures_built();

struct PictureOptions {
  std::string title;     ///< above the picture
  std::string quantity;  ///< beside the colour bar, e.g. "u"
  int width = 1200, height = 900;
};

/// A PNG of a point field on the mesh with the octant nearest the viewer cut away, so that the inside shows; colour bar and
/// axes. Drawn in software: needs no display. Values that are not finite are grey. Throws EnvironmentError on a file that
/// cannot be written.
void write_picture(std::filesystem::path const& path, Mesh const& mesh, std::span<double const> u, PictureOptions const& options);

struct Curve {
  std::string label;
  std::vector<double> x, y;  ///< values that are not finite, or not positive on a logarithmic axis, are left out
};
struct PlotOptions {
  std::string title, x_label, y_label;
  bool x_log = false, y_log = true;
  int width = 900, height = 600;
  double reference_y = 0;         ///< a dashed line (the tolerance, say) when > 0
  std::string reference_label{};  ///< at that line; empty: its value
};

/// A PNG of line plots with a legend. A value that is left out breaks the line; no value at all gives the axes and "no data".
/// Throws EnvironmentError on a file that cannot be written.
void write_plot(std::filesystem::path const& path, std::vector<Curve> const& curves, PlotOptions const& options);

}  // namespace poisson::output
