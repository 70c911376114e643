#include "output/picture/picture.hpp"

#include "output/picture/axes.hpp"
#include "output/picture/canvas.hpp"
#include "output/picture/raster.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace poisson::output {

namespace {

constexpr double degree = 3.14159265358979323846 / 180;
constexpr double azimuth = -57 * degree, elevation = 27 * degree;  // the viewer is at +x, -y, +z
constexpr std::array<int, 3> viewer_side{1, -1, 1};

/// Cells along an edge of a cube with so many faces on its boundary.
double cells_across(double n_faces) {
  return std::sqrt(n_faces / 6);
}
/// Parts of a cell along its edges that are drawn as flat.
int subdivisions_of(double n_faces, int order) {
  return std::max(order, static_cast<int>(std::ceil(20 / std::max(cells_across(n_faces), 1.0))));
}

struct ValueRange {
  double low = 0, high = 0;
  bool any = false;       ///< at least one finite value
  bool constant = false;  ///< up to rounding
};

ValueRange range_of(std::span<double const> u) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  auto const n = static_cast<std::int64_t>(u.size());
#pragma omp parallel for reduction(min : low) reduction(max : high)
  for (std::int64_t i = 0; i < n; ++i) {
    double const v = u[static_cast<std::size_t>(i)];
    if (std::abs(v) < 1e300) {  // differences of larger ones overflow
      low = std::min(low, v);
      high = std::max(high, v);
    }
  }
  ValueRange range;
  range.any = low <= high;
  if (range.any) {
    range.low = low;
    range.high = high;
    range.constant = high - low <= 1e-12 * std::max(std::abs(low), std::abs(high));
  }
  return range;
}

void draw_color_bar(Canvas& canvas, ValueRange const& range, std::string const& quantity, double left, double top, double bottom,
                    double size) {
  double const w = 1.5 * size;
  Color const ink = rgb(0x222222);
  // Labels of a field that hardly varies would be long and alike: show what is above the minimum.
  bool const relative =
      range.any && !range.constant && range.high - range.low < 1e-4 * std::max(std::abs(range.low), std::abs(range.high));
  auto const name = relative ? quantity + " \u2212 min" : quantity;
  Canvas::TextStyle name_style{.size = 1.2 * size, .color = ink, .bold = true};
  bool const wide = canvas.text_width(name, name_style) > canvas.width() - left - size;
  name_style.horizontal = wide ? Align::end : Align::start;
  canvas.text({wide ? canvas.width() - size : left, top - 2.2 * size}, name, name_style);
  if (!range.any) {
    canvas.fill_rectangle({left, top}, w, bottom - top, missing_color);
    canvas.rectangle({left, top}, w, bottom - top, ink, 1);
    canvas.text({left + w + 0.6 * size, (top + bottom) / 2}, "no values", {.size = size, .color = ink});
    return;
  }
  for (double y = std::floor(top); y < bottom; ++y) {
    double const row_top = std::max(y, top);
    canvas.fill_rectangle({left, row_top}, w, std::min(y + 1, bottom) - row_top,
                          range.constant ? viridis(0.5) : viridis((bottom - y - 0.5) / (bottom - top)));
  }
  canvas.rectangle({left, top}, w, bottom - top, ink, 1);
  if (range.constant) {
    double const y = (top + bottom) / 2;
    canvas.line({left + w, y}, {left + w + 0.35 * size, y}, ink, 1);
    canvas.text({left + w + 0.6 * size, y}, format_number(range.low), {.size = size, .color = ink});
    return;
  }
  double const origin = relative ? range.low : 0;
  Axis const axis(range.low - origin, range.high - origin, false, false, 6);
  for (auto const& tick : axis.ticks()) {
    double const y = bottom - std::clamp(axis.position(tick.value), 0.0, 1.0) * (bottom - top);
    canvas.line({left + w, y}, {left + w + 0.35 * size, y}, ink, 1);
    canvas.text({left + w + 0.6 * size, y}, tick.label, {.size = size, .color = ink});
  }
  if (axis.exponent() != 0)
    canvas.text({left + w + 0.6 * size, top - 1.0 * size}, "\u00d7" + format_decade(axis.exponent()), {.size = size, .color = ink});
  Color const soft = rgb(0x666666);
  canvas.text({left, bottom + 1.3 * size}, "min " + format_number(range.low, relative ? 12 : 4),
              {.size = 0.9 * size, .color = soft});
  if (!relative)
    canvas.text({left, bottom + 2.6 * size}, "max " + format_number(range.high), {.size = 0.9 * size, .color = soft});
}

/// The outline of the bounding box with ticks at the three edges that are always in front of or beside the mesh.
void draw_axes(Canvas& canvas, View const& view, BoundingBox const& box, double size) {
  Color const ink = rgb(0x444444);
  auto const at = [&](double x, double y, double z) {
    auto const p = view.project({x, y, z});
    return Canvas::Point{p[0], p[1]};
  };
  struct Edge {
    std::size_t axis;
    Vec3 start;
    Canvas::Point outwards;  ///< on the screen
    Align align;
    char const* name;
  };
  Vec3 const& l = box.low;
  Vec3 const& h = box.high;
  Edge const edges[] = {{0, {l[0], l[1], l[2]}, {-0.32, 0.95}, Align::end, "x"},
                        {1, {h[0], l[1], l[2]}, {0.62, 0.78}, Align::start, "y"},
                        {2, {l[0], l[1], l[2]}, {-1, 0}, Align::end, "z"}};
  for (auto const& edge : edges) {
    Vec3 end = edge.start;
    end[edge.axis] = h[edge.axis];
    auto const a = at(edge.start[0], edge.start[1], edge.start[2]), b = at(end[0], end[1], end[2]);
    double const length = std::hypot(b.first - a.first, b.second - a.second);
    if (length < 1)
      continue;
    canvas.line(a, b, ink, 1.2);
    auto const shifted = [&](Canvas::Point const& p, double distance) {
      return Canvas::Point{p.first + distance * edge.outwards.first, p.second + distance * edge.outwards.second};
    };
    int const target = std::clamp(static_cast<int>(length / (4.5 * size)), 2, 5);
    Axis const axis(l[edge.axis], h[edge.axis], false, false, target);
    double widest = 0;
    for (auto const& tick : axis.ticks()) {
      if (length < 3.5 * size)  // too short for any
        break;
      double const t = std::clamp(axis.position(tick.value), 0.0, 1.0);
      Canvas::Point const p{a.first + t * (b.first - a.first), a.second + t * (b.second - a.second)};
      canvas.line(p, shifted(p, 0.4 * size), ink, 1.2);
      canvas.text(shifted(p, edge.axis == 2 ? 0.7 * size : 0.95 * size), tick.label,
                  {.size = 0.9 * size, .color = ink, .horizontal = edge.align});
      widest = std::max(widest, canvas.text_width(tick.label, {.size = 0.9 * size}));
    }
    Canvas::Point const middle{(a.first + b.first) / 2, (a.second + b.second) / 2};
    auto const name = axis.exponent() == 0 ? std::string(edge.name) : edge.name + (" \u00d7" + format_decade(axis.exponent()));
    canvas.text(shifted(middle, (edge.axis == 2 ? 1.6 * size + widest : 2.2 * size + 0.75 * widest)), name,
                {.size = 1.1 * size, .color = ink, .horizontal = Align::middle, .bold = true});
  }
}

}  // namespace

bool pictures_built() {
  return true;
}

std::int64_t picture_bytes(std::int64_t n_cells, std::int64_t n_boundary_faces, int order, std::int64_t n_nodes,
                           PictureOptions const& options) {
  double const faces = static_cast<double>(n_boundary_faces);
  int const s = subdivisions_of(faces, order);
  // Planes cut a cell into about 8 triangles for each part of a face that they cross; a quarter of each plane is seen.
  double const triangles = s * s * (2 * faces + 0.75 * 8 * std::pow(static_cast<double>(n_cells), 2.0 / 3));
  // A vector that grows holds half as much again while it moves. The canvas and the drawing; numbers of triangles by bands of rows.
  std::int64_t const pixels = 2 * 4 * std::int64_t{options.width} * options.height;
  return static_cast<std::int64_t>((1.5 * sizeof(SurfaceTriangle) + 8) * triangles) + pixels + 4 * n_nodes;
}

void write_picture(std::filesystem::path const& path, Mesh const& mesh, std::span<double const> u, PictureOptions const& options) {
  if (u.size() != static_cast<std::size_t>(mesh.n_points()))
    throw std::invalid_argument("a picture of " + std::to_string(mesh.n_points()) + " nodes was given " + std::to_string(u.size()) +
                                " values");
  int const width = std::max(options.width, 240), height = std::max(options.height, 180);
  double const size = std::max(9.0, 17 * std::min(width / 1200.0, height / 900.0));
  auto const box = bounding_box(mesh);
  auto const range = range_of(u);

  double const bar_left = width - 9 * size;
  View const view(box, azimuth, elevation, 5.5 * size, (options.title.empty() ? 2 : 4.5) * size, bar_left - 2.5 * size,
                  height - 4.5 * size);
  Octant octant;
  octant.sign = viewer_side;
  // A little more than the octant: planes that run along faces of cells would leave slivers, or skins of cells.
  for (std::size_t d = 0; d < 3; ++d)
    octant.corner[d] = box.low[d] / 2 + box.high[d] / 2 - viewer_side[d] * 3.7e-5 * (box.high[d] - box.low[d]);

  auto const faces = boundary_faces(mesh);
  double const across = cells_across(static_cast<double>(faces.size()));
  int const subdivisions = subdivisions_of(static_cast<double>(faces.size()), mesh.order());
  auto const triangles = cut_surface(mesh, u, octant, faces, subdivisions);
  RasterOptions raster;
  raster.low = range.low;
  raster.high = range.constant ? range.low : range.high;
  raster.mesh_lines = across < 40;

  Canvas canvas(width, height);
  canvas.image({0, 0}, width, height, rasterize(triangles, view, octant, raster, width, height));
  draw_axes(canvas, view, box, size);
  double const bar_height = std::min(0.6 * height, height - 12 * size);
  draw_color_bar(canvas, range, options.quantity, bar_left, (height - bar_height) / 2, (height + bar_height) / 2, size);
  canvas.text({width / 2.0, 2.1 * size}, options.title,
              {.size = 1.35 * size, .color = rgb(0x222222), .horizontal = Align::middle, .bold = true});
  canvas.write_png(path);
}

}  // namespace poisson::output
