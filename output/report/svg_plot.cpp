#include "output/picture/axes.hpp"
#include "output/picture/colormap.hpp"
#include "output/report/page.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

namespace poisson::output {

namespace {

// These lengths are in units of the drawing, which a page scales to its column.
constexpr double svg_width = 480, svg_height = 300, right_margin = 14, top_margin = 12, bottom_margin = 46,
                 inner_height = svg_height - top_margin - bottom_margin;
constexpr double width_of_character = 6.8;
/// More points than pixels only make the page large.
constexpr std::size_t most_points = 600;
/// Beyond that many points of a plot the page is small rather than telling the numbers of each.
constexpr std::size_t most_told_points = 300;

/// Numbers do not depend on the locale.
std::string short_number(double value) {
  std::array<char, 400> buffer{};
  return {buffer.data(), std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed, 1).ptr};
}
std::string six_digits(double value) {
  std::array<char, 40> buffer{};
  return {buffer.data(), std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::general, 6).ptr};
}

/// A label of axes.hpp, "10^{-3}", with its superscript raised.
std::string superscripts(std::string const& label) {
  auto const open = label.find("^{"), close = label.find('}');
  if (open == std::string::npos || close == std::string::npos || close < open)
    return html_text(label);
  return html_text(label.substr(0, open)) + R"(<tspan dy="-0.45em" font-size="75%">)" +
         html_text(label.substr(open + 2, close - open - 2)) + "</tspan>" + html_text(label.substr(close + 1));
}

std::string text_at(double x, double y, char const* anchor, std::string const& content, char const* more = "") {
  return "<text x=\"" + short_number(x) + "\" y=\"" + short_number(y) + "\" text-anchor=\"" + anchor + "\"" + more + ">" + content +
         "</text>";
}

std::string line_between(double x0, double y0, double x1, double y1, char const* style) {
  return "<line x1=\"" + short_number(x0) + "\" y1=\"" + short_number(y0) + "\" x2=\"" + short_number(x1) + "\" y2=\"" +
         short_number(y1) + "\" class=\"" + style + "\"/>";
}

struct PlotRange {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

/// The label of an axis, with the power of ten of its ticks.
std::string label_with_power(std::string const& label, Axis const& axis) {
  return html_text(label) + (axis.exponent() != 0 ? " · " + superscripts(format_decade(axis.exponent())) : "");
}

class SvgPlot {
public:
  SvgPlot(PagePlot const& plot, PlotRange const& x, PlotRange const& y)
      : plot_(plot), x_(x.low, x.high, plot.x_log, true, ticks_for(plot, x)), y_(y.low, y.high, plot.y_log, true, 5) {
    std::size_t longest = 4;  // characters of a label
    for (Tick const& tick : y_.ticks())
      longest = std::max(longest, tick.label.find('^') == std::string::npos ? tick.label.size() : 5);
    std::size_t n_points = 0;
    for (Curve const& c : plot.curves)
      n_points += c.x.size();
    told_ = n_points <= most_told_points;
    left_ = 32 + width_of_character * static_cast<double>(std::min<std::size_t>(longest, 18));
  }

  [[nodiscard]] std::string text() const {
    std::string svg = "<svg viewBox=\"0 0 " + short_number(svg_width) + " " + short_number(svg_height) +
                      R"(" role="img" aria-label=")" + html_text(plot_.title) + "\">";
    svg += frame();
    if (plot_.reference_y > 0 && plot_.reference_y >= y_.low() && plot_.reference_y <= y_.high()) {
      double const at = y(plot_.reference_y);
      svg += line_between(left_, at, left_ + inner_width(), at, "reference") +
             text_at(left_ + 4, at - 4, "start", html_text(plot_.reference_label), " class=\"small\"");
    }
    for (std::size_t c = 0; c < plot_.curves.size(); ++c)
      svg += curve(c);
    return svg + "</svg>";
  }

private:
  /// Few integers, such as orders, have ticks at integers only.
  static int ticks_for(PagePlot const& plot, PlotRange const& x) {
    bool const integers = std::all_of(plot.curves.begin(), plot.curves.end(), [](Curve const& c) {
      return std::all_of(c.x.begin(), c.x.end(), [](double value) { return value == std::round(value); });
    });
    return integers && x.high - x.low <= 5 ? std::max(2, static_cast<int>(x.high - x.low)) : 5;
  }
  [[nodiscard]] double inner_width() const { return svg_width - left_ - right_margin; }
  [[nodiscard]] double x(double value) const { return left_ + inner_width() * x_.position(value); }
  [[nodiscard]] double y(double value) const { return top_margin + inner_height * (1 - y_.position(value)); }
  [[nodiscard]] bool drawn(double px, double py) const {
    return std::isfinite(px) && std::isfinite(py) && !(plot_.x_log && px <= 0) && !(plot_.y_log && py <= 0);
  }

  [[nodiscard]] std::string frame() const {
    std::string svg;
    if (plot_.x_names.empty()) {
      for (Tick const& tick : x_.ticks())
        if (!tick.label.empty())
          svg += line_between(x(tick.value), top_margin, x(tick.value), top_margin + inner_height, "grid") +
                 text_at(x(tick.value), top_margin + inner_height + 16, "middle", superscripts(tick.label));
    } else {
      // At most eight names are drawn: more would not find room.
      std::size_t const step = (plot_.x_names.size() + 7) / 8;
      for (std::size_t i = 0; i < plot_.x_names.size(); i += step)
        svg += text_at(x(static_cast<double>(i)), top_margin + inner_height + 16, "middle", html_text(plot_.x_names[i]));
    }
    for (Tick const& tick : y_.ticks())
      if (!tick.label.empty())
        svg += line_between(left_, y(tick.value), left_ + inner_width(), y(tick.value), "grid") +
               text_at(left_ - 6, y(tick.value) + 4, "end", superscripts(tick.label));
    svg += line_between(left_, top_margin, left_, top_margin + inner_height, "axis") +
           line_between(left_, top_margin + inner_height, left_ + inner_width(), top_margin + inner_height, "axis");
    svg += text_at(left_ + inner_width() / 2, svg_height - 8, "middle",
                   plot_.x_names.empty() ? label_with_power(plot_.x_label, x_) : html_text(plot_.x_label));
    std::string const turned = " transform=\"rotate(-90 14 " + short_number(top_margin + inner_height / 2) + ")\"";
    return svg + text_at(14, top_margin + inner_height / 2, "middle", label_with_power(plot_.y_label, y_), turned.c_str());
  }

  [[nodiscard]] std::string curve(std::size_t number) const {
    Curve const& c = plot_.curves[number];
    std::size_t const n = std::min(c.x.size(), c.y.size()), step = std::max<std::size_t>(1, n / most_points);
    std::string path, dots;
    bool in_line = false;
    for (std::size_t next = 0; next < n; next += step) {
      std::size_t const i = next + step < n ? next : n - 1;  // the last point in any case
      if (!drawn(c.x[i], c.y[i])) {
        in_line = false;
        continue;
      }
      std::string const at = short_number(x(c.x[i])) + " " + short_number(y(c.y[i]));
      path += (in_line ? "L" : "M") + at;
      in_line = true;
      if (plot_.markers && !told_)
        dots += "M" + at + "h0";
      else if (plot_.markers) {
        auto const index = static_cast<std::size_t>(std::max(c.x[i], 0.0));
        std::string const where = index < plot_.x_names.size() ? plot_.x_names[index] : six_digits(c.x[i]);
        dots += "<circle cx=\"" + short_number(x(c.x[i])) + "\" cy=\"" + short_number(y(c.y[i])) + "\" r=\"4\"><title>" +
                html_text((c.label.empty() ? "" : c.label + ": ") + where + ", " + six_digits(c.y[i])) + "</title></circle>";
      }
    }
    std::string const stroke = "stroke=\"" + html_color(curve_color(number)) + "\" d=\"";
    std::string result = plot_.lines ? "<path class=\"curve\" " + stroke + path + "\"/>" : "";
    if (told_)
      result += dots.empty() ? "" : "<g fill=\"" + html_color(curve_color(number)) + "\">" + dots + "</g>";
    else if (!plot_.lines || path.find('L') == std::string::npos)  // dots on many lines hide them
      result += "<path class=\"dots\" " + stroke + dots + "\"/>";
    return result;
  }

  PagePlot const& plot_;
  Axis x_, y_;
  bool told_ = true;  ///< dots show their numbers
  double left_ = 0;   ///< of the plane, which begins right of its labels
};

}  // namespace

std::string svg_plot(PagePlot const& plot) {
  PlotRange x, y;
  for (Curve const& c : plot.curves)
    for (std::size_t i = 0; i < std::min(c.x.size(), c.y.size()); ++i)
      if (std::isfinite(c.x[i]) && std::isfinite(c.y[i]) && !(plot.x_log && c.x[i] <= 0) && !(plot.y_log && c.y[i] <= 0)) {
        x.add(c.x[i]);
        y.add(c.y[i]);
      }
  if (!(x.low <= x.high))
    return "";
  if (!plot.x_names.empty()) {
    x.low = -0.5;
    x.high = static_cast<double>(plot.x_names.size()) - 0.5;
  }
  if (plot.reference_y > 0)
    y.add(plot.reference_y);
  return SvgPlot(plot, x, y).text();
}

}  // namespace poisson::output
