#include "output/files/atomic_file.hpp"
#include "output/picture/axes.hpp"
#include "output/picture/canvas.hpp"
#include "output/picture/picture.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>

namespace poisson::output {

namespace {

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity();
  void add(double v) {
    low = std::min(low, v);
    high = std::max(high, v);
  }
};

/// Beyond 1e300 differences overflow, and below 1e-300 decades end; nothing real is lost.
bool drawable(double v, bool logarithmic) {
  return std::abs(v) < 1e300 && (!logarithmic || v > 1e-300);
}

using Points = std::vector<Canvas::Point>;

/// At most four points in each column of pixels: first, lowest, highest, last. What is drawn looks the same.
Points thinned(Points const& points) {
  Points result;
  for (std::size_t i = 0; i < points.size();) {
    auto const column = std::floor(points[i].first);
    std::size_t end = i, low = i, high = i;
    for (; end < points.size() && std::floor(points[end].first) == column; ++end) {
      if (points[end].second < points[low].second)
        low = end;
      if (points[end].second > points[high].second)
        high = end;
    }
    std::size_t keep[] = {i, std::min(low, high), std::max(low, high), end - 1};
    for (std::size_t k = 0; k < 4; ++k)
      if (k == 0 || keep[k] != keep[k - 1])
        result.push_back(points[keep[k]]);
    i = end;
  }
  return result;
}

Color const ink = rgb(0x222222), grid_color = rgb(0xd9d9d9), minor_color = rgb(0xf0f0f0), reference_color = rgb(0x555555);

/// The middle of a pixel, where thin lines stay thin.
double crisp(double v) {
  return std::floor(v) + 0.5;
}

/// The colors come again after seven curves, with other dashes.
std::vector<double> dashes_of(std::size_t curve) {
  return curve < 7 ? std::vector<double>{} : std::vector<double>{3.0 + static_cast<double>(curve / 7) * 4, 4};
}

struct Ranges {
  Range x, y;
  bool empty = false, reference = false;  ///< no point to draw; options.reference_y can be drawn
};

Ranges ranges_of(std::vector<Curve> const& curves, PlotOptions const& options) {
  Ranges ranges;
  for (auto const& curve : curves)
    for (std::size_t i = 0; i < std::min(curve.x.size(), curve.y.size()); ++i)
      if (drawable(curve.x[i], options.x_log) && drawable(curve.y[i], options.y_log)) {
        ranges.x.add(curve.x[i]);
        ranges.y.add(curve.y[i]);
      }
  ranges.empty = ranges.x.low > ranges.x.high;
  ranges.reference = options.reference_y > 0 && drawable(options.reference_y, options.y_log);
  if (ranges.reference)
    ranges.y.add(options.reference_y);
  if (ranges.empty) {
    ranges.x = {options.x_log ? 1.0 : 0.0, options.x_log ? 10.0 : 1.0};
    if (!ranges.reference)
      ranges.y = {options.y_log ? 1.0 : 0.0, options.y_log ? 10.0 : 1.0};
  }
  return ranges;
}

/// One picture: drawn in the order of the functions, the later over the earlier.
class Plot {
public:
  Plot(std::vector<Curve> const& curves, PlotOptions const& options, PictureFormat format)
      : curves_(curves),
        options_(options),
        width_(std::max(options.width, 240)),
        height_(std::max(options.height, 180)),
        opened_(open_canvas(width_, height_, format)),
        unit_(std::min(width_ / 900.0, height_ / 600.0)),
        size_(std::max(9.0, 16 * unit_)),
        ranges_(ranges_of(curves, options)),
        x_axis_(ranges_.x.low, ranges_.x.high, options.x_log, false, std::max(3, static_cast<int>(width_ / (6.5 * size_)))),
        y_axis_(ranges_.y.low, ranges_.y.high, options.y_log, true, std::max(3, static_cast<int>(height_ / (4.5 * size_)))),
        tick_style_{.size = size_, .color = ink} {
    double label_width = 0;
    for (auto const& tick : y_axis_.ticks())
      label_width = std::max(label_width, canvas_.text_width(tick.label, tick_style_));
    left_ = label_width + (options.y_label.empty() ? 1.6 : 3.2) * size_;
    right_ = width_ - 1.6 * size_;
    top_ = (options.title.empty() ? 1.6 : 3.2) * size_;
    bottom_ = height_ - (options.x_label.empty() ? 2.4 : 4.2) * size_;
  }

  void draw_grid() {
    for (bool const minor : {true, false}) {
      for (auto const& tick : x_axis_.ticks())
        if (tick.label.empty() == minor)
          canvas_.line({crisp(px(tick.value)), top_}, {crisp(px(tick.value)), bottom_}, minor ? minor_color : grid_color, 1);
      for (auto const& tick : y_axis_.ticks())
        if (tick.label.empty() == minor)
          canvas_.line({left_, crisp(py(tick.value))}, {right_, crisp(py(tick.value))}, minor ? minor_color : grid_color, 1);
    }
  }

  void draw_curves() {
    for (std::size_t c = 0; c < curves_.size(); ++c)
      draw_curve(c);
    if (ranges_.empty)
      canvas_.text({(left_ + right_) / 2, (top_ + bottom_) / 2}, "no data",
                   {.size = 1.4 * size_, .color = rgb(0x777777), .horizontal = Align::middle});
  }

  void draw_reference() {
    if (!ranges_.reference)
      return;
    double const y = py(options_.reference_y);
    canvas_.polyline({{left_, y}, {right_, y}}, reference_color, 1.5, {8, 5});
    auto const label = options_.reference_label.empty() ? format_number(options_.reference_y) : options_.reference_label;
    bool const above = y - 1.4 * size_ > top_;  // of the line, unless there is no room
    canvas_.text({left_ + 0.6 * size_, y + (above ? -0.4 : 0.5) * size_}, label,
                 {.size = size_, .color = reference_color, .vertical = above ? Align::end : Align::start});
  }

  void draw_axes() {
    canvas_.rectangle({crisp(left_), crisp(top_)}, std::floor(right_ - left_), std::floor(bottom_ - top_), ink, 1);
    for (auto const& tick : x_axis_.ticks()) {
      double const x = px(tick.value), length = (tick.label.empty() ? 3 : 6) * unit_;
      canvas_.line({crisp(x), bottom_}, {crisp(x), bottom_ + length}, ink, 1);
      canvas_.text({x, bottom_ + 0.7 * size_}, tick.label,
                   {.size = size_, .color = ink, .horizontal = Align::middle, .vertical = Align::start});
    }
    for (auto const& tick : y_axis_.ticks()) {
      double const y = py(tick.value), length = (tick.label.empty() ? 3 : 6) * unit_;
      canvas_.line({left_ - length, crisp(y)}, {left_, crisp(y)}, ink, 1);
      canvas_.text({left_ - 0.6 * size_, y}, tick.label, {.size = size_, .color = ink, .horizontal = Align::end});
    }
    auto const scaled = [](std::string label, Axis const& axis) {
      return axis.exponent() == 0 ? label : label + (label.empty() ? "" : "  ") + "(\u00d7" + format_decade(axis.exponent()) + ")";
    };
    canvas_.text({(left_ + right_) / 2, height_ - 1.2 * size_}, scaled(options_.x_label, x_axis_),
                 {.size = 1.1 * size_, .color = ink, .horizontal = Align::middle});
    canvas_.text({1.3 * size_, (top_ + bottom_) / 2}, scaled(options_.y_label, y_axis_),
                 {.size = 1.1 * size_, .color = ink, .horizontal = Align::middle, .upwards = true});
    canvas_.text({(left_ + right_) / 2, 1.7 * size_}, options_.title,
                 {.size = 1.25 * size_, .color = ink, .horizontal = Align::middle, .bold = true});
  }

  /// Draws the legend in the corner with the fewest points.
  void draw_legend() {
    std::size_t named = 0;
    double text_width = 0;
    for (auto const& curve : curves_) {
      named += !curve.label.empty();
      text_width = std::max(text_width, canvas_.text_width(curve.label, tick_style_));
    }
    if (named == 0)
      return;
    auto const corner = std::min_element(crowd_.begin(), crowd_.end()) - crowd_.begin();
    double const w = text_width + 4 * size_, h = (1.5 * static_cast<double>(named) + 0.5) * size_;
    double const x = corner == 0 || corner == 2 ? right_ - w - 0.6 * size_ : left_ + 0.6 * size_;
    double const y = corner == 0 || corner == 3 ? top_ + 0.6 * size_ : bottom_ - h - 0.6 * size_;
    canvas_.fill_rectangle({x, y}, w, h, {1, 1, 1}, 0.88);
    canvas_.rectangle({crisp(x), crisp(y)}, std::floor(w), std::floor(h), grid_color, 1);
    double row = y + size_;
    for (std::size_t c = 0; c < curves_.size(); ++c)
      if (!curves_[c].label.empty()) {
        canvas_.polyline({{x + 0.6 * size_, row}, {x + 2.8 * size_, row}}, curve_color(c), 2 * std::max(unit_, 0.7), dashes_of(c));
        canvas_.text({x + 3.3 * size_, row}, curves_[c].label, tick_style_);
        row += 1.5 * size_;
      }
  }

  void write(std::filesystem::path const& path) { write_text_file(path, canvas_.bytes()); }

private:
  [[nodiscard]] double px(double x) const { return left_ + x_axis_.position(x) * (right_ - left_); }
  [[nodiscard]] double py(double y) const { return bottom_ - y_axis_.position(y) * (bottom_ - top_); }

  /// Draws it, and counts where on the plot it leaves room for the legend.
  void draw_curve(std::size_t c) {
    auto const& curve = curves_[c];
    auto const n = std::min(curve.x.size(), curve.y.size());
    bool const marked = n <= 40;
    Points piece;
    double drawn = 0;
    std::array<double, 4> corner{};
    auto const finish = [&] {
      canvas_.polyline(thinned(piece), curve_color(c), 2 * std::max(unit_, 0.7), dashes_of(c));
      if (marked || piece.size() == 1)
        for (auto const& p : piece)
          canvas_.disc(p, 3.5 * std::max(unit_, 0.7), curve_color(c));
      piece.clear();
    };
    for (std::size_t i = 0; i < n; ++i) {
      if (!drawable(curve.x[i], options_.x_log) || !drawable(curve.y[i], options_.y_log)) {
        finish();
        continue;
      }
      double const x = px(curve.x[i]), y = py(curve.y[i]);
      piece.emplace_back(x, y);
      drawn += 1;
      bool const at_right = x > left_ + 0.6 * (right_ - left_), at_left = x < left_ + 0.4 * (right_ - left_);
      bool const at_top = y<top_ + 0.4 * (bottom_ - top_), at_bottom = y> top_ + 0.6 * (bottom_ - top_);
      corner[0] += at_right && at_top;
      corner[1] += at_left && at_bottom;
      corner[2] += at_right && at_bottom;
      corner[3] += at_left && at_top;
    }
    finish();
    for (std::size_t k = 0; k < 4 && drawn > 0; ++k)
      crowd_[k] += corner[k] / drawn;
  }

  std::vector<Curve> const& curves_;
  PlotOptions const& options_;
  int width_, height_;
  std::unique_ptr<Canvas> opened_;
  Canvas& canvas_ = *opened_;
  double unit_, size_;  ///< 1 for 900 x 600 pixels; of text
  Ranges ranges_;
  Axis x_axis_, y_axis_;
  Canvas::TextStyle tick_style_;
  double left_ = 0, right_ = 0, top_ = 0, bottom_ = 0;  ///< of the frame
  std::array<double, 4> crowd_{};                       ///< points in the corners: top right, bottom left, bottom right, top left
};

}  // namespace

void write_plot(std::filesystem::path const& path, std::vector<Curve> const& curves, PlotOptions const& options) {
  PictureFormat const format = path.extension() == ".svg"   ? PictureFormat::svg
                               : path.extension() == ".pdf" ? PictureFormat::pdf
                                                            : PictureFormat::png;
  Plot plot(curves, options, format);
  plot.draw_grid();
  plot.draw_curves();
  plot.draw_reference();
  plot.draw_axes();
  plot.draw_legend();
  plot.write(path);
}

}  // namespace poisson::output
