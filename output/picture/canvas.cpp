#include "output/picture/canvas.hpp"

#include "gpu/core/error.hpp"

#include <algorithm>
#include <cairo-pdf.h>
#include <cairo-svg.h>
#include <cairo.h>
#include <cstring>
#include <iterator>
#include <utility>

namespace poisson::output {

struct Canvas::Impl {
  std::string bytes;  ///< of SVG and PDF, which Cairo writes as they are drawn
  cairo_surface_t* surface = nullptr;
  cairo_t* cairo = nullptr;
  ~Impl() {
    cairo_destroy(cairo);
    cairo_surface_destroy(surface);
  }
  void color(Color const& c, double opacity = 1) const { cairo_set_source_rgba(cairo, c[0], c[1], c[2], opacity); }
};

namespace {

/// Cairo stops drawing for good at the first byte that is not UTF-8.
std::string valid_utf8(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    auto const c = static_cast<unsigned char>(text[i]);
    std::size_t const n = c < 0x80 ? 1 : c >= 0xc2 && c < 0xe0 ? 2 : c >= 0xe0 && c < 0xf0 ? 3 : c >= 0xf0 && c < 0xf5 ? 4 : 0;
    bool good = n > 0 && c != 0 && i + n <= text.size();
    std::uint32_t code = n > 1 ? c & (0xffU >> (n + 1)) : c;
    for (std::size_t k = 1; good && k < n; ++k) {
      auto const next = static_cast<unsigned char>(text[i + k]);
      good = (next & 0xc0) == 0x80;
      code = code << 6 | (next & 0x3f);
    }
    good = good && !(n == 3 && (code < 0x800 || (code >= 0xd800 && code < 0xe000))) &&
           !(n == 4 && (code < 0x10000 || code > 0x10ffff));
    if (good)
      result += text.substr(i, n);
    else
      result += '?';
    i += good ? n : 1;
  }
  return result;
}

struct Run {
  std::string text;
  bool raised = false;
};

std::vector<Run> runs_of(std::string_view text) {
  std::vector<Run> runs;
  while (!text.empty()) {
    auto const open = text.find("^{");
    auto const close = open == std::string_view::npos ? open : text.find('}', open);
    if (close == std::string_view::npos) {
      runs.push_back({valid_utf8(text), false});
      break;
    }
    if (open > 0)
      runs.push_back({valid_utf8(text.substr(0, open)), false});
    runs.push_back({valid_utf8(text.substr(open + 2, close - open - 2)), true});
    text.remove_prefix(close + 1);
  }
  return runs;
}

constexpr double superscript_scale = 0.72, superscript_rise = 0.38;

void select_font(cairo_t* cairo, Canvas::TextStyle const& style, bool raised) {
  cairo_select_font_face(cairo, "sans-serif", CAIRO_FONT_SLANT_NORMAL,
                         style.bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
  cairo_set_font_size(cairo, style.size * (raised ? superscript_scale : 1));
}

/// The text as the selected font can show it. Without any font on the machine Cairo draws strokes of its own, which are ASCII only.
std::string drawable(cairo_t* cairo, std::string const& text) {
  if (cairo_scaled_font_get_type(cairo_get_scaled_font(cairo)) != CAIRO_FONT_TYPE_USER)
    return text;
  static constexpr std::pair<char const*, char const*> replacements[] = {
      {"\u2212", "-"}, {"\u00d7", "x"}, {"\u00b7", "."}, {"\u2026", "..."}, {"\u2207", "grad "}};
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    if (static_cast<unsigned char>(text[i]) < 0x80) {
      result += text[i++];
      continue;
    }
    std::size_t length = 1;
    while (i + length < text.size() && (static_cast<unsigned char>(text[i + length]) & 0xc0) == 0x80)
      ++length;
    auto const* const known = std::find_if(std::begin(replacements), std::end(replacements),
                                           [&](auto const& r) { return text.compare(i, length, r.first) == 0; });
    result += known != std::end(replacements) ? known->second : "?";
    i += length;
  }
  return result;
}

double advance(cairo_t* cairo, Run const& run, Canvas::TextStyle const& style) {
  select_font(cairo, style, run.raised);
  cairo_text_extents_t extents;
  cairo_text_extents(cairo, drawable(cairo, run.text).c_str(), &extents);
  return extents.x_advance;
}

cairo_status_t append(void* closure, unsigned char const* data, unsigned n) {
  static_cast<std::string*>(closure)->append(reinterpret_cast<char const*>(data), n);
  return CAIRO_STATUS_SUCCESS;
}

}  // namespace

Canvas::Canvas(int width, int height, PictureFormat format) : impl_(std::make_unique<Impl>()), width_(width), height_(height) {
  switch (format) {
  case PictureFormat::png:
    impl_->surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, width, height);
    break;
  case PictureFormat::svg:
    impl_->surface = cairo_svg_surface_create_for_stream(append, &impl_->bytes, width, height);
    break;
  case PictureFormat::pdf:
    impl_->surface = cairo_pdf_surface_create_for_stream(append, &impl_->bytes, width, height);
    // The date is fixed, so that a picture has the same bytes whenever it is drawn.
    cairo_pdf_surface_set_metadata(impl_->surface, CAIRO_PDF_METADATA_CREATE_DATE, "2000-01-01T00:00:00Z");
    break;
  }
  impl_->cairo = cairo_create(impl_->surface);
  if (cairo_status(impl_->cairo) != CAIRO_STATUS_SUCCESS)
    throw EnvironmentError("cannot draw a picture of " + std::to_string(width) + " x " + std::to_string(height) +
                           " pixels: " + cairo_status_to_string(cairo_status(impl_->cairo)));
  cairo_set_line_cap(impl_->cairo, CAIRO_LINE_CAP_ROUND);
  cairo_set_line_join(impl_->cairo, CAIRO_LINE_JOIN_ROUND);
  impl_->color({1, 1, 1});
  cairo_paint(impl_->cairo);
  // Grey antialiasing of unhinted letters: the same pixels on every screen.
  auto* const options = cairo_font_options_create();
  cairo_font_options_set_antialias(options, CAIRO_ANTIALIAS_GRAY);
  cairo_font_options_set_hint_style(options, CAIRO_HINT_STYLE_NONE);
  cairo_font_options_set_hint_metrics(options, CAIRO_HINT_METRICS_OFF);
  cairo_set_font_options(impl_->cairo, options);
  cairo_font_options_destroy(options);
}

Canvas::~Canvas() = default;

void Canvas::line(Point from, Point to, Color const& color, double thickness) {
  polyline({from, to}, color, thickness);
}

void Canvas::polyline(std::vector<Point> const& points, Color const& color, double thickness, std::vector<double> const& dashes) {
  if (points.size() < 2)
    return;
  auto* const c = impl_->cairo;
  impl_->color(color);
  cairo_set_line_width(c, thickness);
  cairo_set_dash(c, dashes.data(), static_cast<int>(dashes.size()), 0);
  cairo_move_to(c, points.front().first, points.front().second);
  for (std::size_t i = 1; i < points.size(); ++i)
    cairo_line_to(c, points[i].first, points[i].second);
  cairo_stroke(c);
}

void Canvas::disc(Point center, double radius, Color const& color) {
  impl_->color(color);
  cairo_arc(impl_->cairo, center.first, center.second, radius, 0, 6.283185307179586);
  cairo_fill(impl_->cairo);
}

void Canvas::fill_rectangle(Point corner, double w, double h, Color const& color, double opacity) {
  impl_->color(color, opacity);
  cairo_rectangle(impl_->cairo, corner.first, corner.second, w, h);
  cairo_fill(impl_->cairo);
}

void Canvas::rectangle(Point corner, double w, double h, Color const& color, double thickness) {
  impl_->color(color);
  cairo_set_line_width(impl_->cairo, thickness);
  cairo_set_dash(impl_->cairo, nullptr, 0, 0);
  cairo_rectangle(impl_->cairo, corner.first, corner.second, w, h);
  cairo_stroke(impl_->cairo);
}

void Canvas::image(Point corner, int w, int h, std::vector<std::uint32_t> const& pixels) {
  auto* const picture = cairo_image_surface_create(CAIRO_FORMAT_RGB24, w, h);
  if (cairo_surface_status(picture) == CAIRO_STATUS_SUCCESS) {
    cairo_surface_flush(picture);
    auto* const data = cairo_image_surface_get_data(picture);
    auto const stride = static_cast<std::size_t>(cairo_image_surface_get_stride(picture));
    for (std::size_t row = 0; row < static_cast<std::size_t>(h); ++row)
      std::memcpy(data + row * stride, pixels.data() + row * static_cast<std::size_t>(w), static_cast<std::size_t>(w) * 4);
    cairo_surface_mark_dirty(picture);
    cairo_set_source_surface(impl_->cairo, picture, corner.first, corner.second);
    cairo_rectangle(impl_->cairo, corner.first, corner.second, w, h);
    cairo_fill(impl_->cairo);
  }
  cairo_surface_destroy(picture);
}

double Canvas::text_width(std::string_view text, TextStyle const& style) {
  double width = 0;
  for (auto const& run : runs_of(text))
    width += advance(impl_->cairo, run, style);
  return width;
}

void Canvas::text(Point at, std::string_view text, TextStyle const& style) {
  auto* const c = impl_->cairo;
  double const width = text_width(text, style);
  double x = style.horizontal == Align::start ? 0 : style.horizontal == Align::middle ? -width / 2 : -width;
  // Letters of one size stand on one line, whatever they are.
  double const y = style.vertical == Align::start ? 0.75 * style.size : style.vertical == Align::middle ? 0.36 * style.size : 0;
  cairo_save(c);
  cairo_translate(c, at.first, at.second);
  if (style.upwards)
    cairo_rotate(c, -1.5707963267948966);
  impl_->color(style.color);
  for (auto const& run : runs_of(text)) {
    double const step = advance(c, run, style);
    cairo_move_to(c, x, run.raised ? y - superscript_rise * style.size : y);
    cairo_show_text(c, drawable(c, run.text).c_str());
    x += step;
  }
  cairo_restore(c);
}

std::string Canvas::bytes() {
  auto status = cairo_status(impl_->cairo);
  if (status == CAIRO_STATUS_SUCCESS && cairo_surface_get_type(impl_->surface) == CAIRO_SURFACE_TYPE_IMAGE) {
    status = cairo_surface_write_to_png_stream(impl_->surface, append, &impl_->bytes);
  } else if (status == CAIRO_STATUS_SUCCESS) {
    cairo_surface_finish(impl_->surface);
    status = cairo_surface_status(impl_->surface);
  }
  if (status != CAIRO_STATUS_SUCCESS)
    throw EnvironmentError(std::string("cannot draw a picture: ") + cairo_status_to_string(status));
  return std::move(impl_->bytes);
}

}  // namespace poisson::output
