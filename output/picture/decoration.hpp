#pragma once

#include "output/picture/canvas.hpp"
#include "output/picture/raster.hpp"
#include "output/picture/surface.hpp"

#include <array>
#include <string>
#include <utility>
#include <vector>

namespace poisson::output {

/// What stands beside the surface in a picture. Lengths are in pixels; `size` is that of letters.

/// A color bar with ticks, and under it the range of the values, which the colors may not cover.
void draw_color_bar(Canvas& canvas, ColorScale const& scale, ValueRange const& range, std::string const& quantity, double left,
                    double top, double bottom, double size);

/// Colors and what they mean, as many as there is room for. Names are cut off where they would reach beyond `right`.
void draw_legend(Canvas& canvas, std::vector<std::pair<Color, std::string>> const& entries, std::string const& quantity,
                 double left, double right, double top, double bottom, double size);

/// Three edges of a box that lie on its outline, with ticks and names; those that are seen from their end are left out.
void draw_axes(Canvas& canvas, View const& view, BoundingBox const& box, std::array<std::string, 3> const& names, double size);

/// Text that is made smaller, and then cut off, where it is wider than `width`.
void draw_fitting_text(Canvas& canvas, Canvas::Point at, std::string text, double width, Canvas::TextStyle style);

}  // namespace poisson::output
