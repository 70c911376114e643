#pragma once

#include "output/picture/color_map_names.hpp"
#include "output/picture/colormap.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace poisson::output {

enum class Align { start, middle, end };

/// A drawing area that becomes a PNG, SVG or PDF: white at first, coordinates in pixels, origin at the top left. Only this class
/// uses Cairo.
class Canvas {
public:
  Canvas(int width, int height, PictureFormat format = PictureFormat::png);
  ~Canvas();
  Canvas(Canvas const&) = delete;
  Canvas& operator=(Canvas const&) = delete;

  [[nodiscard]] int width() const noexcept { return width_; }
  [[nodiscard]] int height() const noexcept { return height_; }

  using Point = std::pair<double, double>;
  void line(Point from, Point to, Color const& color, double thickness);
  /// `dashes`: on and off lengths in pixels; empty: solid.
  void polyline(std::vector<Point> const& points, Color const& color, double thickness, std::vector<double> const& dashes = {});
  void disc(Point center, double radius, Color const& color);
  void fill_rectangle(Point corner, double w, double h, Color const& color, double opacity = 1);
  void rectangle(Point corner, double w, double h, Color const& color, double thickness);
  /// Paints an image of w * h pixels 0xRRGGBB, row by row from the top, with its top left corner at `corner`.
  void image(Point corner, int w, int h, std::vector<std::uint32_t> const& pixels);

  struct TextStyle {
    double size = 14;  ///< pixels
    Color color = rgb(0x222222);
    Align horizontal = Align::start;
    Align vertical = Align::middle;
    bool bold = false;
    bool upwards = false;  ///< rotated by 90 degrees, reading upwards
  };
  /// Draws UTF-8 text; "^{...}" is a superscript. Invalid bytes are drawn as '?', and so are letters beyond ASCII on a machine
  /// without fonts, but for the signs of numbers.
  void text(Point at, std::string_view text, TextStyle const& style);
  [[nodiscard]] double text_width(std::string_view text, TextStyle const& style);

  /// The bytes of the file; nothing can be drawn afterwards. Throws EnvironmentError when Cairo has run out of memory.
  [[nodiscard]] std::string bytes();

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  int width_, height_;
};

}  // namespace poisson::output
