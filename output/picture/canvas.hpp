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

/// A drawing area that becomes a PNG, SVG or PDF: white at first, coordinates in pixels, origin at the top left.
class Canvas {
public:
  Canvas(int width, int height) : width_(width), height_(height) {}
  Canvas(Canvas const&) = delete;
  Canvas& operator=(Canvas const&) = delete;
  virtual ~Canvas() = default;

  [[nodiscard]] int width() const noexcept { return width_; }
  [[nodiscard]] int height() const noexcept { return height_; }

  using Point = std::pair<double, double>;
  void line(Point from, Point to, Color const& color, double thickness) { polyline({from, to}, color, thickness); }
  /// `dashes`: on and off lengths in pixels; empty: solid.
  virtual void polyline(std::vector<Point> const& points, Color const& color, double thickness,
                        std::vector<double> const& dashes = {}) = 0;
  virtual void disc(Point center, double radius, Color const& color) = 0;
  virtual void fill_rectangle(Point corner, double w, double h, Color const& color, double opacity = 1) = 0;
  virtual void rectangle(Point corner, double w, double h, Color const& color, double thickness) = 0;
  /// Paints an image of w * h pixels 0xRRGGBB, row by row from the top, with its top left corner at `corner`.
  virtual void image(Point corner, int w, int h, std::vector<std::uint32_t> const& pixels) = 0;

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
  virtual void text(Point at, std::string_view text, TextStyle const& style) = 0;
  [[nodiscard]] virtual double text_width(std::string_view text, TextStyle const& style) = 0;

  /// The bytes of the file; nothing can be drawn afterwards. Throws EnvironmentError when Cairo has run out of memory.
  [[nodiscard]] virtual std::string bytes() = 0;

private:
  int width_, height_;
};

/// What the library poisson_cairo has: it alone uses Cairo.
struct CairoFunctions {
  std::unique_ptr<Canvas> (*open)(int width, int height, PictureFormat format);
};

/// A new canvas. Loads the library as load_pictures (picture.hpp) does. Throws EnvironmentError where it cannot be loaded, or when
/// there is not enough memory.
[[nodiscard]] std::unique_ptr<Canvas> open_canvas(int width, int height, PictureFormat format = PictureFormat::png);

}  // namespace poisson::output

extern "C" poisson::output::CairoFunctions const* poisson_cairo();
