#include "output/picture/raster.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace poisson::output {

namespace {

constexpr int samples = 3;  // per pixel and direction
constexpr int band_rows = 16;
constexpr std::size_t n_colors = 1024;

Vec3 normalized(Vec3 const& a) {
  double const length = std::sqrt(dot(a, a));
  return length > 0 ? Vec3{a[0] / length, a[1] / length, a[2] / length} : Vec3{0, 0, 1};
}

struct Sample {
  float depth = -std::numeric_limits<float>::infinity();
  std::uint8_t red = 255, green = 255, blue = 255;
};

/// A linear function on the screen.
struct Affine {
  double at_origin = 0, dx = 0, dy = 0;
  [[nodiscard]] double operator()(double x, double y) const { return at_origin + dx * x + dy * y; }
};

class Band {
public:
  Band(View const& view, CutAway const& cut, RasterOptions const& options, int width, int first_row, int rows)
      : view_(view),
        cut_(cut),
        options_(options),
        width_(width * samples),
        first_(first_row * samples),
        rows_(rows * samples),
        samples_(static_cast<std::size_t>(width_) * static_cast<std::size_t>(rows_)) {
    for (std::size_t i = 0; i < n_colors; ++i)
      colors_[i] = color_at(options.colors.map, static_cast<double>(i) / (n_colors - 1));
    auto const& t = view.towards_viewer();
    for (std::size_t d = 0; d < 3; ++d)
      light_[d] = 0.75 * t[d] + 0.5 * view.up()[d] - 0.35 * view.right()[d];
    light_ = normalized(light_);
  }

  void draw(SurfaceTriangle const& triangle) {
    std::array<Vec3, 3> s;
    for (std::size_t i = 0; i < 3; ++i) {
      s[i] = view_.project(triangle.vertex[i].position);
      s[i][0] *= samples;
      s[i][1] *= samples;
    }
    double const area = (s[1][0] - s[0][0]) * (s[2][1] - s[0][1]) - (s[2][0] - s[0][0]) * (s[1][1] - s[0][1]);
    if (!(std::abs(area) > 1e-9))  // seen from the side, or not a number
      return;
    auto const coverage = cover(triangle);
    if (coverage == Coverage::nothing)
      return;

    // Barycentric coordinates of the second and third vertex; everything else is linear in them.
    Affine b1, b2;
    b1.dx = (s[2][1] - s[0][1]) / area;
    b1.dy = -(s[2][0] - s[0][0]) / area;
    b1.at_origin = -b1.dx * s[0][0] - b1.dy * s[0][1];
    b2.dx = -(s[1][1] - s[0][1]) / area;
    b2.dy = (s[1][0] - s[0][0]) / area;
    b2.at_origin = -b2.dx * s[0][0] - b2.dy * s[0][1];
    auto const linear = [&](double v0, double v1, double v2) {
      return Affine{v0 + (v1 - v0) * b1.at_origin + (v2 - v0) * b2.at_origin, (v1 - v0) * b1.dx + (v2 - v0) * b2.dx,
                    (v1 - v0) * b1.dy + (v2 - v0) * b2.dy};
    };
    auto const& v = triangle.vertex;
    auto const depth = linear(s[0][2], s[1][2], s[2][2]);
    // Interpolated linearly on the screen: the number of a class, the share of the largest value, or the position in the map.
    ColorScale const& scale = options_.colors;
    auto const color_of = [&](double value) {
      if (!(std::abs(value) < 1e300))
        return std::numeric_limits<double>::quiet_NaN();
      return !scale.classes.empty() ? value : scale.logarithmic ? value / scale.high : scale.position(value);
    };
    double const decades = scale.logarithmic && scale.low < scale.high ? std::log10(scale.high / scale.low) : 0;
    auto const color = linear(color_of(v[0].value), color_of(v[1].value), color_of(v[2].value));
    std::array<Affine, 3> position;
    if (coverage == Coverage::part)
      for (std::size_t d = 0; d < 3; ++d)
        position[d] = linear(v[0].position[d], v[1].position[d], v[2].position[d]);
    std::array<Affine, 6> lines;
    std::size_t const n_lines = options_.mesh_lines ? find_lines(v, linear, lines) : 0;
    double const shade = shading(v[0].position, v[1].position, v[2].position);

    auto const [x_low, x_high] = std::minmax({s[0][0], s[1][0], s[2][0]});
    auto const [y_low, y_high] = std::minmax({s[0][1], s[1][1], s[2][1]});
    int const x_first = static_cast<int>(std::clamp(std::ceil(x_low - 0.5), 0.0, static_cast<double>(width_)));
    int const x_end = static_cast<int>(std::clamp(std::floor(x_high - 0.5) + 1, 0.0, static_cast<double>(width_)));
    int const y_first = static_cast<int>(std::clamp(std::ceil(y_low - 0.5) - first_, 0.0, static_cast<double>(rows_)));
    int const y_end = static_cast<int>(std::clamp(std::floor(y_high - 0.5) + 1 - first_, 0.0, static_cast<double>(rows_)));
    constexpr double slack = -1e-7;  // no gaps between neighbours
    for (int row = y_first; row < y_end; ++row) {
      double const y = row + first_ + 0.5;
      auto* const out = samples_.data() + static_cast<std::size_t>(row) * static_cast<std::size_t>(width_);
      for (int column = x_first; column < x_end; ++column) {
        double const x = column + 0.5;
        double const u = b1(x, y), w = b2(x, y);
        if (u < slack || w < slack || u + w > 1 - slack)
          continue;
        auto const z = static_cast<float>(depth(x, y));
        if (!(z > out[column].depth))
          continue;
        if (coverage == Coverage::part && !kept({position[0](x, y), position[1](x, y), position[2](x, y)}, triangle.plane))
          continue;
        double factor = shade;
        for (std::size_t i = 0; i < n_lines; ++i)
          if (std::abs(lines[i](x, y)) < line_half_width)
            factor = 0.55 * shade;
        double in_map = color(x, y);
        if (scale.logarithmic && !std::isnan(in_map))
          in_map = decades == 0 ? 0.5 : in_map > 0 ? 1 + std::log10(in_map) / decades : 0;
        store(out[column], z, in_map, factor);
      }
    }
  }

  /// Means over the samples of each pixel.
  void resolve(std::uint32_t* pixels) const {
    constexpr unsigned n = samples * samples;
    for (int row = 0; row < rows_ / samples; ++row)
      for (int column = 0; column < width_ / samples; ++column) {
        unsigned red = n / 2, green = n / 2, blue = n / 2;
        for (int j = 0; j < samples; ++j)
          for (int i = 0; i < samples; ++i) {
            auto const& s = samples_[static_cast<std::size_t>(row * samples + j) * static_cast<std::size_t>(width_) +
                                     static_cast<std::size_t>(column * samples + i)];
            red += s.red;
            green += s.green;
            blue += s.blue;
          }
        *pixels++ = red / n << 16 | green / n << 8 | blue / n;
      }
  }

private:
  static constexpr double line_half_width = 0.36 * samples;

  enum class Coverage { nothing, part, all };

  /// Distances on the screen from where a reference coordinate is 0 or 1, that is, from edges of the cell.
  template <class Linear>
  static std::size_t find_lines(std::array<SurfaceVertex, 3> const& v, Linear const& linear, std::array<Affine, 6>& lines) {
    std::size_t n = 0;
    for (std::size_t d = 0; d < 3; ++d) {
      auto const [low, high] = std::minmax({v[0].reference[d], v[1].reference[d], v[2].reference[d]});
      if (high - low < 1e-4F)  // the triangle lies in that face of the cell
        continue;
      for (float const edge : {0.0F, 1.0F}) {
        auto f = linear(v[0].reference[d] - edge, v[1].reference[d] - edge, v[2].reference[d] - edge);
        double const slope = std::hypot(f.dx, f.dy);
        if (edge == 0 ? low > line_half_width * slope : 1 - high > line_half_width * slope)
          continue;
        f.at_origin /= slope;
        f.dx /= slope;
        f.dy /= slope;
        lines[n++] = f;
      }
    }
    return n;
  }

  [[nodiscard]] double shading(Vec3 const& a, Vec3 const& b, Vec3 const& c) const {
    if (!options_.lit)
      return 1;
    auto const edge = [&](Vec3 const& to) {
      Vec3 e = minus(to, a);
      for (std::size_t d = 0; d < 3; ++d)
        e[d] *= view_.stretch()[d];
      return e;
    };
    return 0.7 + 0.3 * std::abs(dot(normalized(cross(edge(b), edge(c))), light_));
  }

  /// On the boundary of the mesh: what is not cut away. On a plane of the cut: what is beyond the others.
  [[nodiscard]] bool kept(Vec3 const& x, int plane) const {
    for (std::size_t a = 0; a < 3; ++a) {
      if (cut_.sign[a] == 0 || static_cast<int>(a) == plane)
        continue;
      double const d = cut_.beyond(x, a);
      if (plane < 0 ? d <= 0 : d < 0)
        return plane < 0;
    }
    return plane >= 0;
  }

  [[nodiscard]] Coverage cover(SurfaceTriangle const& t) const {
    if (!cut_.cuts())
      return Coverage::all;
    bool all_inside_somewhere = false;  // boundary: not cut away for sure; cut: dropped for sure
    bool all_beyond = true;
    for (std::size_t a = 0; a < 3; ++a) {
      if (cut_.sign[a] == 0 || static_cast<int>(a) == t.plane)
        continue;
      bool before = true;
      for (auto const& v : t.vertex) {
        double const d = cut_.beyond(v.position, a);
        before = before && d <= 0;
        all_beyond = all_beyond && d > 0;
      }
      all_inside_somewhere = all_inside_somewhere || before;
    }
    if (t.plane < 0)
      return all_inside_somewhere ? Coverage::all : all_beyond ? Coverage::nothing : Coverage::part;
    return all_beyond ? Coverage::all : Coverage::part;
  }

  [[nodiscard]] Color color_of(double position) const {
    if (std::isnan(position))
      return missing_color;
    auto const& classes = options_.colors.classes;
    if (!classes.empty())
      return classes[static_cast<std::size_t>(std::clamp(position + 0.5, 0.0, static_cast<double>(classes.size()) - 0.5))];
    return colors_[static_cast<std::size_t>(std::clamp(position, 0.0, 1.0) * (n_colors - 1) + 0.5)];
  }

  void store(Sample& sample, float depth, double t, double factor) const {
    Color const c = color_of(t);
    sample.depth = depth;
    sample.red = static_cast<std::uint8_t>(255 * factor * c[0] + 0.5);
    sample.green = static_cast<std::uint8_t>(255 * factor * c[1] + 0.5);
    sample.blue = static_cast<std::uint8_t>(255 * factor * c[2] + 0.5);
  }

  View const& view_;
  CutAway const& cut_;
  RasterOptions const& options_;
  int width_, first_, rows_;  // in samples
  std::vector<Sample> samples_;
  std::array<Color, n_colors> colors_{};
  Vec3 light_{};
};

}  // namespace

double ColorScale::position(double value) const {
  if (!(low < high))
    return 0.5;
  if (logarithmic)
    return value > 0 ? std::log10(value / low) / std::log10(high / low) : 0;
  return (value - low) / (high - low);
}

View::View(BoundingBox const& box, double azimuth, double elevation, double left, double top, double right, double bottom,
           Vec3 const& stretch)
    : right_{-std::sin(azimuth), std::cos(azimuth), 0},
      towards_{std::cos(azimuth) * std::cos(elevation), std::sin(azimuth) * std::cos(elevation), std::sin(elevation)},
      stretch_(stretch) {
  up_ = cross(towards_, right_);
  for (std::size_t d = 0; d < 3; ++d)
    center_[d] = box.low[d] / 2 + box.high[d] / 2;
  for (std::size_t d = 0; d < 3; ++d) {
    double const length = stretch[d] * (box.high[d] - box.low[d]);
    width_ += length * std::abs(right_[d]);
    height_ += length * std::abs(up_[d]);
  }
  x_ = (left + right) / 2;
  y_ = (top + bottom) / 2;
  double const across = std::max(width_ / (right - left), height_ / (bottom - top));
  scale_ = across > 0 && std::isfinite(1 / across) ? 1 / across : 1;
}

Vec3 View::project(Vec3 const& x) const {
  auto d = minus(x, center_);
  for (std::size_t a = 0; a < 3; ++a)
    d[a] *= stretch_[a];
  return {x_ + scale_ * dot(d, right_), y_ - scale_ * dot(d, up_), scale_ * dot(d, towards_)};
}

std::vector<std::uint32_t> rasterize(std::span<SurfaceTriangle const> triangles, View const& view, CutAway const& cut,
                                     RasterOptions const& options, int width, int height) {
  // Which triangles each band of rows has to look at, in their order.
  int const n_bands = (height + band_rows - 1) / band_rows;
  std::vector<std::vector<std::uint32_t>> in_band(static_cast<std::size_t>(n_bands));
  for (std::size_t i = 0; i < triangles.size(); ++i) {
    double low = std::numeric_limits<double>::infinity(), high = -low;
    for (auto const& v : triangles[i].vertex) {
      double const y = view.project(v.position)[1];
      low = std::min(low, y);
      high = std::max(high, y);
    }
    if (!(high >= 0 && low <= height))
      continue;
    auto const first = static_cast<int>(std::max(low, 0.0)) / band_rows;
    auto const last = std::min(static_cast<int>(std::min(high, static_cast<double>(height))) / band_rows, n_bands - 1);
    for (int b = first; b <= last; ++b)
      in_band[static_cast<std::size_t>(b)].push_back(static_cast<std::uint32_t>(i));
  }
  std::vector<std::uint32_t> pixels(static_cast<std::size_t>(width) * static_cast<std::size_t>(height));
#pragma omp parallel for schedule(dynamic)
  for (int b = 0; b < n_bands; ++b) {
    int const first = b * band_rows;
    Band band(view, cut, options, width, first, std::min(band_rows, height - first));
    for (auto const i : in_band[static_cast<std::size_t>(b)])
      band.draw(triangles[i]);
    band.resolve(pixels.data() + static_cast<std::size_t>(first) * static_cast<std::size_t>(width));
  }
  return pixels;
}

}  // namespace poisson::output
