#include "output/axes.hpp"
#include "output/canvas.hpp"
#include "output/picture.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace poisson {

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

}  // namespace

void write_plot(std::filesystem::path const& path, std::vector<Curve> const& curves, PlotOptions const& options) {
  int const width = std::max(options.width, 240), height = std::max(options.height, 180);
  Canvas canvas(width, height);
  double const unit = std::min(width / 900.0, height / 600.0);
  double const size = std::max(9.0, 16 * unit);
  Color const ink = rgb(0x222222), grid_color = rgb(0xd9d9d9), minor_color = rgb(0xf0f0f0);

  Range x_range, y_range;
  for (auto const& curve : curves)
    for (std::size_t i = 0; i < std::min(curve.x.size(), curve.y.size()); ++i)
      if (drawable(curve.x[i], options.x_log) && drawable(curve.y[i], options.y_log)) {
        x_range.add(curve.x[i]);
        y_range.add(curve.y[i]);
      }
  bool const empty = x_range.low > x_range.high;
  bool const reference = options.reference_y > 0 && drawable(options.reference_y, options.y_log);
  if (reference)
    y_range.add(options.reference_y);
  if (empty) {
    x_range = {options.x_log ? 1.0 : 0.0, options.x_log ? 10.0 : 1.0};
    if (!reference)
      y_range = {options.y_log ? 1.0 : 0.0, options.y_log ? 10.0 : 1.0};
  }
  Axis const x_axis(x_range.low, x_range.high, options.x_log, false, std::max(3, static_cast<int>(width / (6.5 * size))));
  Axis const y_axis(y_range.low, y_range.high, options.y_log, true, std::max(3, static_cast<int>(height / (4.5 * size))));

  Canvas::TextStyle const tick_style{.size = size, .color = ink};
  double label_width = 0;
  for (auto const& tick : y_axis.ticks())
    label_width = std::max(label_width, canvas.text_width(tick.label, tick_style));
  double const left = label_width + (options.y_label.empty() ? 1.6 : 3.2) * size;
  double const right = width - 1.6 * size;
  double const top = (options.title.empty() ? 1.6 : 3.2) * size;
  double const bottom = height - (options.x_label.empty() ? 2.4 : 4.2) * size;
  auto const px = [&](double x) { return left + x_axis.position(x) * (right - left); };
  auto const py = [&](double y) { return bottom - y_axis.position(y) * (bottom - top); };

  // Grid lines in the middle of pixels, so that they stay thin.
  auto const crisp = [](double v) { return std::floor(v) + 0.5; };
  for (bool const minor : {true, false}) {
    for (auto const& tick : x_axis.ticks())
      if (tick.label.empty() == minor)
        canvas.line({crisp(px(tick.value)), top}, {crisp(px(tick.value)), bottom}, minor ? minor_color : grid_color, 1);
    for (auto const& tick : y_axis.ticks())
      if (tick.label.empty() == minor)
        canvas.line({left, crisp(py(tick.value))}, {right, crisp(py(tick.value))}, minor ? minor_color : grid_color, 1);
  }

  // Curves, and where on the plot they leave room for the legend.
  std::array<double, 4> crowd{};  // points in the corners: top right, bottom left, bottom right, top left
  for (std::size_t c = 0; c < curves.size(); ++c) {
    auto const& curve = curves[c];
    auto const n = std::min(curve.x.size(), curve.y.size());
    bool const marked = n <= 40;
    std::vector<double> const dashes = c < 7 ? std::vector<double>{} : std::vector<double>{3.0 + static_cast<double>(c / 7) * 4, 4};
    Points piece;
    double drawn = 0;
    std::array<double, 4> corner{};
    auto const finish = [&] {
      canvas.polyline(thinned(piece), curve_color(c), 2 * std::max(unit, 0.7), dashes);
      if (marked || piece.size() == 1)
        for (auto const& p : piece)
          canvas.disc(p, 3.5 * std::max(unit, 0.7), curve_color(c));
      piece.clear();
    };
    for (std::size_t i = 0; i < n; ++i) {
      if (!drawable(curve.x[i], options.x_log) || !drawable(curve.y[i], options.y_log)) {
        finish();
        continue;
      }
      double const x = px(curve.x[i]), y = py(curve.y[i]);
      piece.emplace_back(x, y);
      drawn += 1;
      bool const at_right = x > left + 0.6 * (right - left), at_left = x < left + 0.4 * (right - left);
      bool const at_top = y<top + 0.4 * (bottom - top), at_bottom = y> top + 0.6 * (bottom - top);
      corner[0] += at_right && at_top;
      corner[1] += at_left && at_bottom;
      corner[2] += at_right && at_bottom;
      corner[3] += at_left && at_top;
    }
    finish();
    for (std::size_t k = 0; k < 4 && drawn > 0; ++k)
      crowd[k] += corner[k] / drawn;
  }
  if (reference)
    canvas.polyline({{left, py(options.reference_y)}, {right, py(options.reference_y)}}, rgb(0x555555), 1.5, {8, 5});
  if (reference) {
    auto const label = options.reference_label.empty() ? format_number(options.reference_y) : options.reference_label;
    // Above the line, unless there is no room.
    double const y = py(options.reference_y);
    bool const above = y - 1.4 * size > top;
    canvas.text({left + 0.6 * size, y + (above ? -0.4 : 0.5) * size}, label,
                {.size = size, .color = rgb(0x555555), .vertical = above ? Align::end : Align::start});
  }
  if (empty)
    canvas.text({(left + right) / 2, (top + bottom) / 2}, "no data",
                {.size = 1.4 * size, .color = rgb(0x777777), .horizontal = Align::middle});
  canvas.rectangle({crisp(left), crisp(top)}, std::floor(right - left), std::floor(bottom - top), ink, 1);

  // Axes.
  for (auto const& tick : x_axis.ticks()) {
    canvas.line({crisp(px(tick.value)), bottom}, {crisp(px(tick.value)), bottom + (tick.label.empty() ? 3 : 6) * unit}, ink, 1);
    canvas.text({px(tick.value), bottom + 0.7 * size}, tick.label,
                {.size = size, .color = ink, .horizontal = Align::middle, .vertical = Align::start});
  }
  for (auto const& tick : y_axis.ticks()) {
    canvas.line({left - (tick.label.empty() ? 3 : 6) * unit, crisp(py(tick.value))}, {left, crisp(py(tick.value))}, ink, 1);
    canvas.text({left - 0.6 * size, py(tick.value)}, tick.label, {.size = size, .color = ink, .horizontal = Align::end});
  }
  auto const scaled = [](std::string label, Axis const& axis) {
    return axis.exponent() == 0 ? label : label + (label.empty() ? "" : "  ") + "(\u00d7" + format_decade(axis.exponent()) + ")";
  };
  canvas.text({(left + right) / 2, height - 1.2 * size}, scaled(options.x_label, x_axis),
              {.size = 1.1 * size, .color = ink, .horizontal = Align::middle});
  canvas.text({1.3 * size, (top + bottom) / 2}, scaled(options.y_label, y_axis),
              {.size = 1.1 * size, .color = ink, .horizontal = Align::middle, .upwards = true});
  canvas.text({(left + right) / 2, 1.7 * size}, options.title,
              {.size = 1.25 * size, .color = ink, .horizontal = Align::middle, .bold = true});

  // Legend, in the corner with the fewest points.
  std::size_t named = 0;
  double text_width = 0;
  for (auto const& curve : curves) {
    named += !curve.label.empty();
    text_width = std::max(text_width, canvas.text_width(curve.label, tick_style));
  }
  if (named > 0) {
    auto const corner = std::min_element(crowd.begin(), crowd.end()) - crowd.begin();
    double const w = text_width + 4 * size, h = (1.5 * static_cast<double>(named) + 0.5) * size;
    double const x = corner == 0 || corner == 2 ? right - w - 0.6 * size : left + 0.6 * size;
    double const y = corner == 0 || corner == 3 ? top + 0.6 * size : bottom - h - 0.6 * size;
    canvas.fill_rectangle({x, y}, w, h, {1, 1, 1}, 0.88);
    canvas.rectangle({crisp(x), crisp(y)}, std::floor(w), std::floor(h), grid_color, 1);
    double row = y + size;
    for (std::size_t c = 0; c < curves.size(); ++c)
      if (!curves[c].label.empty()) {
        std::vector<double> const dashes =
            c < 7 ? std::vector<double>{} : std::vector<double>{3.0 + static_cast<double>(c / 7) * 4, 4};
        canvas.polyline({{x + 0.6 * size, row}, {x + 2.8 * size, row}}, curve_color(c), 2 * std::max(unit, 0.7), dashes);
        canvas.text({x + 3.3 * size, row}, curves[c].label, tick_style);
        row += 1.5 * size;
      }
  }
  canvas.write_png(path);
}

}  // namespace poisson
