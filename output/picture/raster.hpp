#pragma once

#include "output/picture/colormap.hpp"
#include "output/picture/surface.hpp"

#include <cstdint>
#include <vector>

namespace poisson::output {

/// How values become colors.
struct ColorScale {
  ColorMap map = ColorMap::viridis;
  double low = 0, high = 1;         ///< values of the first and the last color; equal: all values have the middle one
  bool logarithmic = false;         ///< 0 < low <= high then; values that are not positive have the first color
  std::vector<Color> classes = {};  ///< not empty: values are numbers of these colors

  /// The position of a value in the map, from 0 to 1 between low and high.
  [[nodiscard]] double position(double value) const;
};

/// A parallel projection with z upwards. Screen positions are in pixels, x to the right, y downwards; depth grows towards the
/// viewer.
class View {
public:
  /// Looks at `box` from the direction `azimuth` (from x towards y) and `elevation`, in radians, and fits it into the
  /// rectangle between (left, top) and (right, bottom). Lengths along the axes are multiplied by `stretch`.
  View(BoundingBox const& box, double azimuth, double elevation, double left, double top, double right, double bottom,
       Vec3 const& stretch = {1, 1, 1});

  /// Screen x, screen y and depth, all in pixels.
  [[nodiscard]] Vec3 project(Vec3 const& x) const;
  [[nodiscard]] Vec3 const& right() const noexcept { return right_; }
  [[nodiscard]] Vec3 const& up() const noexcept { return up_; }
  [[nodiscard]] Vec3 const& towards_viewer() const noexcept { return towards_; }
  [[nodiscard]] Vec3 const& stretch() const noexcept { return stretch_; }
  /// Width and height of the box in units of its stretched lengths.
  [[nodiscard]] std::array<double, 2> extent() const noexcept { return {width_, height_}; }

private:
  Vec3 right_, up_, towards_, stretch_, center_;
  double scale_ = 1, x_ = 0, y_ = 0, width_ = 0, height_ = 0;
};

struct RasterOptions {
  ColorScale colors = {};
  bool mesh_lines = false;
  bool lit = true;  ///< surfaces are darker the more they turn from the light
};

/// Renders the triangles of cut_surface on white with a depth buffer, diffuse light and antialiasing: width * height pixels
/// 0xRRGGBB, row by row from the top. The same pixels for any number of threads.
[[nodiscard]] std::vector<std::uint32_t> rasterize(std::span<SurfaceTriangle const> triangles, View const& view, CutAway const& cut,
                                                   RasterOptions const& options, int width, int height);

}  // namespace poisson::output
