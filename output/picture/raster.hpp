#pragma once

#include "output/picture/surface.hpp"

#include <cstdint>
#include <vector>

namespace poisson::output {

/// A parallel projection with z upwards. Screen positions are in pixels, x to the right, y downwards; depth grows towards the
/// viewer.
class View {
public:
  /// Looks at `box` from the direction `azimuth` (from x towards y) and `elevation`, in radians, and fits it into the
  /// rectangle between (left, top) and (right, bottom).
  View(BoundingBox const& box, double azimuth, double elevation, double left, double top, double right, double bottom);

  /// Screen x, screen y and depth, all in pixels.
  [[nodiscard]] Vec3 project(Vec3 const& x) const;
  [[nodiscard]] Vec3 const& right() const noexcept { return right_; }
  [[nodiscard]] Vec3 const& up() const noexcept { return up_; }
  [[nodiscard]] Vec3 const& towards_viewer() const noexcept { return towards_; }

private:
  Vec3 right_, up_, towards_, center_;
  double scale_ = 1, x_ = 0, y_ = 0;
};

struct RasterOptions {
  double low = 0, high = 1;  ///< values of the first and the last color
  bool mesh_lines = false;
};

/// Renders the triangles of cut_surface on white with a depth buffer, diffuse light and antialiasing: width * height pixels
/// 0xRRGGBB, row by row from the top. The same pixels for any number of threads.
[[nodiscard]] std::vector<std::uint32_t> rasterize(std::span<SurfaceTriangle const> triangles, View const& view,
                                                   Octant const& octant, RasterOptions const& options, int width, int height);

}  // namespace poisson::output
