#include "output/picture/canvas.hpp"

#include "gpu/core/error.hpp"

#include <algorithm>
#include <cairo-pdf.h>
#include <cairo-svg.h>
#include <cairo.h>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <sys/mman.h>
#include <utility>

namespace poisson::output {

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

/// What finds fonts for Cairo (Fontconfig) does not look whether it has the memory that it asks for, and crashes without. So what
/// it takes is asked for here before.
void require_memory_for_fonts() {
  constexpr std::size_t enough = std::size_t{32} << 20;  // bytes: files of fonts and lists of them
  void* const memory = mmap(nullptr, enough, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    throw OutOfMemoryError("cannot draw a picture: out of memory");
  munmap(memory, enough);
}

class CairoCanvas final : public Canvas {
public:
  CairoCanvas(int width, int height, PictureFormat format) : Canvas(width, height) {
    require_memory_for_fonts();
    switch (format) {
    case PictureFormat::png:
      surface_ = cairo_image_surface_create(CAIRO_FORMAT_RGB24, width, height);
      break;
    case PictureFormat::svg:
      surface_ = cairo_svg_surface_create_for_stream(append, &bytes_, width, height);
      break;
    case PictureFormat::pdf:
      surface_ = cairo_pdf_surface_create_for_stream(append, &bytes_, width, height);
      // The date is fixed, so that a picture has the same bytes whenever it is drawn.
      cairo_pdf_surface_set_metadata(surface_, CAIRO_PDF_METADATA_CREATE_DATE, "2000-01-01T00:00:00Z");
      break;
    }
    cairo_ = cairo_create(surface_);
    if (cairo_status_t const status = cairo_status(cairo_); status != CAIRO_STATUS_SUCCESS) {
      destroy();
      throw EnvironmentError("cannot draw a picture of " + std::to_string(width) + " x " + std::to_string(height) +
                             " pixels: " + cairo_status_to_string(status));
    }
    cairo_set_line_cap(cairo_, CAIRO_LINE_CAP_ROUND);
    cairo_set_line_join(cairo_, CAIRO_LINE_JOIN_ROUND);
    set_color({1, 1, 1});
    cairo_paint(cairo_);
    // Grey antialiasing of unhinted letters: the same pixels on every screen.
    auto* const options = cairo_font_options_create();
    cairo_font_options_set_antialias(options, CAIRO_ANTIALIAS_GRAY);
    cairo_font_options_set_hint_style(options, CAIRO_HINT_STYLE_NONE);
    cairo_font_options_set_hint_metrics(options, CAIRO_HINT_METRICS_OFF);
    cairo_set_font_options(cairo_, options);
    cairo_font_options_destroy(options);
  }
  ~CairoCanvas() override { destroy(); }

  void polyline(std::vector<Point> const& points, Color const& color, double thickness,
                std::vector<double> const& dashes) override {
    if (points.size() < 2)
      return;
    auto* const c = cairo_;
    set_color(color);
    cairo_set_line_width(c, thickness);
    cairo_set_dash(c, dashes.data(), static_cast<int>(dashes.size()), 0);
    cairo_move_to(c, points.front().first, points.front().second);
    for (std::size_t i = 1; i < points.size(); ++i)
      cairo_line_to(c, points[i].first, points[i].second);
    cairo_stroke(c);
  }

  void disc(Point center, double radius, Color const& color) override {
    set_color(color);
    cairo_arc(cairo_, center.first, center.second, radius, 0, 6.283185307179586);
    cairo_fill(cairo_);
  }

  void fill_rectangle(Point corner, double w, double h, Color const& color, double opacity) override {
    set_color(color, opacity);
    cairo_rectangle(cairo_, corner.first, corner.second, w, h);
    cairo_fill(cairo_);
  }

  void rectangle(Point corner, double w, double h, Color const& color, double thickness) override {
    set_color(color);
    cairo_set_line_width(cairo_, thickness);
    cairo_set_dash(cairo_, nullptr, 0, 0);
    cairo_rectangle(cairo_, corner.first, corner.second, w, h);
    cairo_stroke(cairo_);
  }

  void image(Point corner, int w, int h, std::vector<std::uint32_t> const& pixels) override {
    auto* const picture = cairo_image_surface_create(CAIRO_FORMAT_RGB24, w, h);
    cairo_status_t const status = cairo_surface_status(picture);
    if (status == CAIRO_STATUS_SUCCESS) {
      cairo_surface_flush(picture);
      auto* const data = cairo_image_surface_get_data(picture);
      auto const stride = static_cast<std::size_t>(cairo_image_surface_get_stride(picture));
      for (std::size_t row = 0; row < static_cast<std::size_t>(h); ++row)
        std::memcpy(data + row * stride, pixels.data() + row * static_cast<std::size_t>(w), static_cast<std::size_t>(w) * 4);
      cairo_surface_mark_dirty(picture);
      cairo_set_source_surface(cairo_, picture, corner.first, corner.second);
      cairo_rectangle(cairo_, corner.first, corner.second, w, h);
      cairo_fill(cairo_);
    }
    cairo_surface_destroy(picture);
    require_success(status);
  }

  [[nodiscard]] double text_width(std::string_view text, TextStyle const& style) override {
    double width = 0;
    for (auto const& run : runs_of(text))
      width += advance(cairo_, run, style);
    return width;
  }

  void text(Point at, std::string_view text, TextStyle const& style) override {
    auto* const c = cairo_;
    double const width = text_width(text, style);
    double x = style.horizontal == Align::start ? 0 : style.horizontal == Align::middle ? -width / 2 : -width;
    // Letters of one size stand on one line, whatever they are.
    double const y = style.vertical == Align::start ? 0.75 * style.size : style.vertical == Align::middle ? 0.36 * style.size : 0;
    cairo_save(c);
    cairo_translate(c, at.first, at.second);
    if (style.upwards)
      cairo_rotate(c, -1.5707963267948966);
    set_color(style.color);
    for (auto const& run : runs_of(text)) {
      double const step = advance(c, run, style);
      cairo_move_to(c, x, run.raised ? y - superscript_rise * style.size : y);
      cairo_show_text(c, drawable(c, run.text).c_str());
      x += step;
    }
    cairo_restore(c);
  }

  [[nodiscard]] std::string bytes() override {
    auto status = cairo_status(cairo_);
    if (status == CAIRO_STATUS_SUCCESS && cairo_surface_get_type(surface_) == CAIRO_SURFACE_TYPE_IMAGE) {
      status = cairo_surface_write_to_png_stream(surface_, append, &bytes_);
    } else if (status == CAIRO_STATUS_SUCCESS) {
      cairo_surface_finish(surface_);
      status = cairo_surface_status(surface_);
    }
    require_success(status);
    return std::move(bytes_);
  }

private:
  static void require_success(cairo_status_t status) {
    if (status != CAIRO_STATUS_SUCCESS)
      throw EnvironmentError(std::string("cannot draw a picture: ") + cairo_status_to_string(status));
  }
  void destroy() {
    cairo_destroy(cairo_);
    cairo_surface_destroy(surface_);
  }
  void set_color(Color const& c, double opacity = 1) const { cairo_set_source_rgba(cairo_, c[0], c[1], c[2], opacity); }

  std::string bytes_;  ///< of SVG and PDF, which Cairo writes as they are drawn
  cairo_surface_t* surface_ = nullptr;
  cairo_t* cairo_ = nullptr;
};

std::unique_ptr<Canvas> open_canvas_of_cairo(int width, int height, PictureFormat format) {
  return std::make_unique<CairoCanvas>(width, height, format);
}

}  // namespace

}  // namespace poisson::output

poisson::output::CairoFunctions const* poisson_cairo() {
  static constexpr poisson::output::CairoFunctions functions{poisson::output::open_canvas_of_cairo};
  return &functions;
}
