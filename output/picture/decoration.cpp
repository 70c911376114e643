#include "output/picture/decoration.hpp"

#include "output/picture/axes.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

namespace poisson::output {

namespace {

constexpr Color dark_ink = rgb(0x222222), soft_ink = rgb(0x666666);

/// The text without its last letter, which may be several bytes.
void drop_last_letter(std::string& text) {
  while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xc0) == 0x80)
    text.pop_back();
  if (!text.empty())
    text.pop_back();
}

}  // namespace

void draw_fitting_text(Canvas& canvas, Canvas::Point at, std::string text, double width, Canvas::TextStyle style) {
  double const wanted = canvas.text_width(text, style);
  if (wanted > width)
    style.size = std::max(0.75 * style.size, style.size * width / wanted);
  if (canvas.text_width(text, style) > width) {
    while (!text.empty() && canvas.text_width(text + "\u2026", style) > width)
      drop_last_letter(text);
    text += "\u2026";
  }
  canvas.text(at, text, style);
}

void draw_color_bar(Canvas& canvas, ColorScale const& scale, ValueRange const& range, std::string const& quantity, double left,
                    double top, double bottom, double size) {
  double const w = 1.5 * size;
  // Labels of a field that hardly varies would be long and alike: show what is above the minimum.
  bool const constant = !(scale.low < scale.high);
  bool const relative = range.any && !constant && !scale.logarithmic &&
                        scale.high - scale.low < 1e-4 * std::max(std::abs(scale.low), std::abs(scale.high));
  auto const name = relative ? quantity + " \u2212 min" : quantity;
  Canvas::TextStyle name_style{.size = 1.2 * size, .color = dark_ink, .bold = true};
  bool const wide = canvas.text_width(name, name_style) > canvas.width() - left - size;
  name_style.horizontal = wide ? Align::end : Align::start;
  double const origin = relative ? scale.low : 0;
  std::optional<Axis> axis;
  if (range.any && !constant)
    axis.emplace(scale.low - origin, scale.high - origin, scale.logarithmic, false, 6, true);
  bool const power = axis && axis->exponent() != 0;
  canvas.text({wide ? canvas.width() - size : left, top - (power ? 2.7 : 2.2) * size}, name, name_style);
  Canvas::TextStyle const label{.size = size, .color = dark_ink};
  if (!range.any) {
    canvas.fill_rectangle({left, top}, w, bottom - top, missing_color);
    canvas.rectangle({left, top}, w, bottom - top, dark_ink, 1);
    canvas.text({left + w + 0.6 * size, (top + bottom) / 2}, "no values", label);
    return;
  }
  for (double y = std::floor(top); y < bottom; ++y) {
    double const row_top = std::max(y, top);
    canvas.fill_rectangle({left, row_top}, w, std::min(y + 1, bottom) - row_top,
                          color_at(scale.map, constant ? 0.5 : (bottom - y - 0.5) / (bottom - top)));
  }
  canvas.rectangle({left, top}, w, bottom - top, dark_ink, 1);
  if (constant) {
    double const y = (top + bottom) / 2;
    canvas.line({left + w, y}, {left + w + 0.35 * size, y}, dark_ink, 1);
    canvas.text({left + w + 0.6 * size, y}, format_number(range.low), label);
    return;
  }
  for (auto const& tick : axis->ticks()) {
    double const y = bottom - std::clamp(axis->position(tick.value), 0.0, 1.0) * (bottom - top);
    canvas.line({left + w, y}, {left + w + (tick.label.empty() ? 0.2 : 0.35) * size, y}, dark_ink, 1);
    canvas.text({left + w + 0.6 * size, y}, tick.label, label);
  }
  if (power)
    canvas.text({left + w + 0.6 * size, top - 1.0 * size}, "\u00d7" + format_decade(axis->exponent()), label);
  Canvas::TextStyle const soft{.size = 0.9 * size, .color = soft_ink};
  canvas.text({left, bottom + 1.3 * size}, "min " + format_number(range.low, relative ? 12 : 4), soft);
  if (!relative)
    canvas.text({left, bottom + 2.6 * size}, "max " + format_number(range.high), soft);
}

void draw_legend(Canvas& canvas, std::vector<std::pair<Color, std::string>> const& entries, std::string const& quantity,
                 double left, double right, double top, double bottom, double size) {
  double const row = 1.9 * size;
  auto const room = static_cast<std::size_t>(std::max(1.0, (bottom - top) / row));
  bool const all = entries.size() <= room;
  std::size_t const shown = all ? entries.size() : room - 1;
  double y = (top + bottom) / 2 - 0.5 * row * static_cast<double>(std::min(entries.size(), room));
  canvas.text({left, y - 0.9 * size}, quantity, {.size = 1.2 * size, .color = dark_ink, .bold = true});
  y += 0.5 * row;
  double const box = 1.15 * size;
  for (std::size_t i = 0; i < shown; ++i, y += row) {
    canvas.fill_rectangle({left, y - box / 2}, box, box, entries[i].first);
    canvas.rectangle({left, y - box / 2}, box, box, dark_ink, 1);
    draw_fitting_text(canvas, {left + 1.7 * size, y}, entries[i].second, right - left - 1.7 * size,
                      {.size = size, .color = dark_ink});
  }
  if (!all)
    canvas.text({left, y}, "and " + std::to_string(entries.size() - shown) + " more", {.size = size, .color = soft_ink});
}

void draw_axes(Canvas& canvas, View const& view, BoundingBox const& box, std::array<std::string, 3> const& names, double size) {
  Color const ink = rgb(0x444444);
  auto const on_screen = [&](Vec3 const& x) {
    auto const p = view.project(x);
    return Canvas::Point{p[0], p[1]};
  };
  Vec3 middle_of_box{};
  for (std::size_t d = 0; d < 3; ++d)
    middle_of_box[d] = box.low[d] / 2 + box.high[d] / 2;
  auto const center = on_screen(middle_of_box);

  for (std::size_t axis_number = 0; axis_number < 3; ++axis_number) {
    // The axis is drawn at the lowest of the edges on the outline, or at the leftmost if they are upright.
    Canvas::Point a{}, b{};
    double best = 0;
    bool any = false;
    for (unsigned corner = 0; corner < 4; ++corner) {
      std::size_t const first = (axis_number + 1) % 3, second = (axis_number + 2) % 3;
      double const facing = ((corner & 1U) != 0 ? 1 : -1) * view.towards_viewer()[first] * ((corner & 2U) != 0 ? 1 : -1) *
                            view.towards_viewer()[second];
      if (facing > 1e-9)
        continue;
      Vec3 start = box.low;
      if ((corner & 1U) != 0)
        start[first] = box.high[first];
      if ((corner & 2U) != 0)
        start[second] = box.high[second];
      Vec3 end = start;
      end[axis_number] = box.high[axis_number];
      auto const from = on_screen(start), to = on_screen(end);
      bool const upright = std::abs(to.second - from.second) > std::abs(to.first - from.first);
      double const score = upright ? -(from.first + to.first) : from.second + to.second;
      if (!any || score > best + 1e-6) {
        any = true;
        best = score;
        a = from;
        b = to;
      }
    }
    double const length = std::hypot(b.first - a.first, b.second - a.second);
    if (!any || !(length >= 1))
      continue;
    Canvas::Point outwards{(b.second - a.second) / length, -(b.first - a.first) / length};
    Canvas::Point const middle{(a.first + b.first) / 2, (a.second + b.second) / 2};
    double const side = (middle.first - center.first) * outwards.first + (middle.second - center.second) * outwards.second;
    bool const flipped = std::abs(side) > 1e-6 ? side < 0 : outwards.first > 0 || (outwards.first == 0 && outwards.second < 0);
    if (flipped)
      outwards = {-outwards.first, -outwards.second};
    bool const beside = std::abs(outwards.first) > 0.9, below = std::abs(outwards.second) > 0.97;
    Align const align = outwards.first < -0.2 ? Align::end : outwards.first > 0.2 ? Align::start : Align::middle;
    auto const shifted = [&](Canvas::Point const& p, double distance) {
      return Canvas::Point{p.first + distance * outwards.first, p.second + distance * outwards.second};
    };

    canvas.line(a, b, ink, 1.2);
    // The axis has as many ticks as there is room for their labels.
    Canvas::TextStyle const label_style{.size = 0.9 * size, .color = ink, .horizontal = align};
    int target = std::clamp(static_cast<int>(length / (4.5 * size)), 2, 5);
    Axis axis(box.low[axis_number], box.high[axis_number], false, false, target);
    double widest = 0;
    for (;; axis = Axis(box.low[axis_number], box.high[axis_number], false, false, --target)) {
      widest = 0;
      for (auto const& tick : axis.ticks())
        widest = std::max(widest, canvas.text_width(tick.label, label_style));
      auto const n = static_cast<double>(axis.ticks().size());
      if (target <= 2 || beside || (n - 1) * (widest + size) <= std::abs(b.first - a.first) || !below)
        break;
    }
    for (auto const& tick : axis.ticks()) {
      if (length < 3.5 * size)  // too short for any
        break;
      double const t = std::clamp(axis.position(tick.value), 0.0, 1.0);
      Canvas::Point const p{a.first + t * (b.first - a.first), a.second + t * (b.second - a.second)};
      canvas.line(p, shifted(p, 0.4 * size), ink, 1.2);
      canvas.text(shifted(p, beside ? 0.7 * size : 0.95 * size), tick.label, label_style);
    }
    if (length < 3.5 * size)
      widest = 0;
    auto const name = axis.exponent() == 0 ? names[axis_number] : names[axis_number] + (" \u00d7" + format_decade(axis.exponent()));
    Canvas::TextStyle name_style{.size = 1.1 * size, .color = ink, .horizontal = Align::middle, .bold = true};
    name_style.upwards = beside && canvas.text_width(name, name_style) > 1.6 * size;
    // Beyond the tick labels, wherever they stand along the axis: how far these reach outwards, and the name reaches back.
    double const across = std::abs(outwards.first), along = std::abs(outwards.second);
    double const labels =
        widest == 0 ? 0.4 * size : 0.95 * size + across * (align == Align::middle ? 0.5 : 1) * widest + along * 0.5 * size;
    double const own = across * 0.5 * canvas.text_width(name, name_style) + along * 0.6 * size;
    double const distance = beside ? (name_style.upwards ? 2 : 1.6) * size + widest : labels + 0.3 * size + own;
    canvas.text(shifted(middle, distance), name, name_style);
  }
}

}  // namespace poisson::output
