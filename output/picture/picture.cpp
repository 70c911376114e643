#include "output/picture/picture.hpp"

#include "output/files/atomic_file.hpp"
#include "output/picture/axes.hpp"
#include "output/picture/canvas.hpp"
#include "output/picture/decoration.hpp"
#include "output/picture/node_flux.hpp"
#include "output/picture/raster.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

namespace poisson::output {

namespace {

constexpr double degree = 3.14159265358979323846 / 180;

/// Cells along an edge of a cube with so many faces on its boundary.
double cells_across(double n_faces) {
  return std::sqrt(n_faces / 6);
}
/// Parts of a cell along its edges that are drawn as flat.
int subdivisions_of(double n_faces, int order) {
  double const across = order > 1 ? 48 : 20;  // cells of higher order may be curved, and a circle should be none of corners
  return std::max(order, static_cast<int>(std::ceil(across / std::max(cells_across(n_faces), 1.0))));
}

/// Finds the range of n values.
template <class Value>
ValueRange range_of(std::int64_t n, Value const& value_at, bool positive) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
#pragma omp parallel for reduction(min : low) reduction(max : high)
  for (std::int64_t i = 0; i < n; ++i) {
    double const v = value_at(i);
    if (std::abs(v) < 1e300 && (v > 0 || !positive)) {  // differences of larger ones overflow
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

/// The colors of values in that range, unless the options say more. `from_zero`: a linear scale begins at 0. `all_decades`: a
/// logarithmic one begins at the least value; else at most six decades are shown, as values near 0 may be rounding.
ColorScale scale_of(ValueRange const& range, PictureOptions const& options, bool from_zero, bool all_decades) {
  constexpr double share_shown = 1e-6;
  ColorScale scale;
  scale.map = options.colors;
  scale.logarithmic = options.logarithmic && (range.any || options.range);
  if (options.range) {
    scale.low = (*options.range)[0];
    scale.high = (*options.range)[1];
    return scale;
  }
  scale.low = range.low;
  scale.high = range.constant ? range.low : range.high;
  if (scale.logarithmic)
    scale.low = all_decades ? scale.low : std::max(scale.low, share_shown * scale.high);
  else if (from_zero)
    scale.low = std::min(0.0, scale.low), scale.high = range.high;
  else if (options.colors == ColorMap::diverging && scale.low < 0 && scale.high > 0) {
    scale.high = std::max(-scale.low, scale.high);
    scale.low = -scale.high;
  }
  return scale;
}

/// Factors for directions in which the box is thin: 1, 2, 5, 10 ... Thinner than an eighth of the longest side, its inside, ticks
/// and colors could hardly be seen.
Vec3 stretch_of(BoundingBox const& box) {
  constexpr double thinnest = 1.0 / 8;
  Vec3 length{}, stretch{1, 1, 1};
  for (std::size_t d = 0; d < 3; ++d)
    length[d] = box.high[d] - box.low[d];
  double const longest = *std::max_element(length.begin(), length.end());
  for (std::size_t d = 0; d < 3; ++d) {
    double const factor = thinnest * longest / length[d];
    if (!(length[d] > 0 && factor > 1.4 && factor < 1e12))
      continue;
    double const power = std::pow(10.0, std::floor(std::log10(factor))), digit = factor / power;
    stretch[d] = (digit < 1.4 ? 1 : digit < 3.2 ? 2 : digit < 7.1 ? 5 : 10) * power;
  }
  return stretch;
}

/// "y and z drawn 10 times larger"
std::string stretch_text(Vec3 const& stretch) {
  std::string text;
  for (std::size_t d = 0; d < 3; ++d) {
    if (stretch[d] == 1)
      continue;
    std::string names(1, "xyz"[d]);
    bool told = false;
    for (std::size_t e = 0; e < 3; ++e)
      if (e != d && stretch[e] == stretch[d]) {
        told = told || e < d;
        names += std::string(" and ") + "xyz"[e];
      }
    if (!told)
      text += (text.empty() ? "" : ", ") + names + " drawn " + format_number(stretch[d]) + " times larger";
  }
  return text;
}

struct Eye {
  double azimuth = -57 * degree, elevation = 27 * degree;  ///< at +x, -y, +z
  std::array<int, 3> side{1, -1, 1};
};
Eye eye_of(PictureOptions const& options) {
  Eye eye;
  Vec3 towards{};
  if (options.view)
    towards = *options.view;
  else if (options.plane)  // from the front, with x to the right or z upwards
    towards[options.plane->axis] = options.plane->axis == 1 ? -1 : 1;
  else
    return eye;
  double const flat = std::hypot(towards[0], towards[1]);
  eye.azimuth = flat > 0 ? std::atan2(towards[1], towards[0]) : -90 * degree;
  eye.elevation = std::atan2(towards[2], flat);
  for (std::size_t d = 0; d < 3; ++d)
    eye.side[d] = towards[d] > 0 ? 1 : towards[d] < 0 ? -1 : eye.side[d];
  return eye;
}

/// The direction to the viewer, where the picture draws lengths along the axes larger by `stretch`: a triangle of the mesh looks
/// that way where the one that is drawn looks to the viewer.
Vec3 towards_viewer(Eye const& eye, Vec3 const& stretch) {
  return {std::cos(eye.azimuth) * std::cos(eye.elevation) / stretch[0],
          std::sin(eye.azimuth) * std::cos(eye.elevation) / stretch[1], std::sin(eye.elevation) / stretch[2]};
}

/// What is cut away. Planes that run along faces of cells would leave slivers, or skins of cells, so they lie a little beside.
CutAway cut_of(BoundingBox const& box, PictureOptions const& options, Eye const& eye) {
  CutAway cut;
  if (!options.plane) {
    cut.sign = eye.side;
    for (std::size_t d = 0; d < 3; ++d)
      cut.corner[d] = box.low[d] / 2 + box.high[d] / 2 - eye.side[d] * 3.7e-5 * (box.high[d] - box.low[d]);
    return cut;
  }
  auto const axis = options.plane->axis;
  double const gap = 1e-7 * (box.high[axis] - box.low[axis]);
  cut.sign = {0, 0, 0};
  cut.sign[axis] = eye.side[axis];
  cut.corner[axis] = std::clamp(options.plane->at - eye.side[axis] * gap, box.low[axis] + gap, box.high[axis] - gap);
  return cut;
}

using Legend = std::vector<std::pair<Color, std::string>>;

/// The size of a picture, where its parts are, and what surrounds the surface. Letters and margins keep their size in a picture
/// that shrinks.
struct Frame {
  double size;  ///< of letters
  std::string note;
  double left, top, beside;
  int width, height;
  View view;

  Frame(BoundingBox const& box, Eye const& eye, PictureOptions const& options, bool flat, Legend entries, bool may_stretch = true)
      : size(std::max(9.0, 17 * std::min(std::max(options.width, 240) / 1200.0, std::max(options.height, 180) / 900.0))),
        note(options.note),
        left((flat ? 7 : 5.5) * size),
        top((options.title.empty() ? 2 : 4.5) * size),
        beside(9 * size),  // for the color bar or the legend
        width(std::max(options.width, 240)),
        height(std::max(options.height, 180)),
        view(box, 0, 0, 0, 0, 1, 1),
        options_(options),
        box_(box),
        legend_(std::move(entries)) {
    Vec3 const stretch = may_stretch ? stretch_of(box) : Vec3{1, 1, 1};
    std::string const stretched = stretch_text(stretch);
    note += (note.empty() || stretched.empty() ? "" : "; ") + stretched;
    if (!note.empty())
      top += 1.3 * size;
    if (!legend_.empty()) {
      auto const measure = open_canvas(8, 8);
      double widest = measure->text_width(options.quantity, {.size = 1.2 * size, .bold = true}) - 1.7 * size;
      for (auto const& [color, name] : legend_)
        widest = std::max(widest, measure->text_width(name, {.size = size}));
      beside = std::min(widest + 3 * size, 0.3 * width);
    }
    double gap = 2.5 * size, across = left + beside + gap;
    double const upright = top + 4.5 * size;
    auto const [box_wide, box_high] = View(box, eye.azimuth, eye.elevation, 0, 0, 1, 1, stretch).extent();
    if (!flat && (width - across) * box_high < (height - upright) * box_wide) {  // labels of y would reach the bar
      gap += 1.5 * size;
      across += 1.5 * size;
    }
    if (options.shrink && box_wide > 0 && box_high > 0) {
      double const scale = std::min((width - across) / box_wide, (height - upright) / box_high);
      double const used_wide = scale * box_wide + across, used_high = scale * box_high + upright;
      if (used_high < 0.8 * height)
        height = static_cast<int>(std::max(used_high, 0.45 * height));
      if (used_wide < 0.7 * width)
        width = static_cast<int>(std::max(used_wide, 0.55 * width));
    }
    view = View(box, eye.azimuth, eye.elevation, left, top, width - beside - gap, height - 4.5 * size, stretch);
  }

  void draw(Canvas& canvas, std::array<std::string, 3> const& names, ColorScale const& scale, ValueRange const& range) const {
    draw_axes(canvas, view, box_, names, size);
    double const bar_left = width - beside;
    double const bar_height = std::min(0.6 * height, height - 12 * size);
    double const bar_top = (height - bar_height) / 2 + (note.empty() ? 0 : 0.6 * size);
    if (!legend_.empty())
      draw_legend(canvas, legend_, options_.quantity, bar_left, width - 0.8 * size, top, height - 3 * size, size);
    else
      draw_color_bar(canvas, scale, range, options_.quantity, bar_left, bar_top, bar_top + bar_height, size);
    draw_fitting_text(canvas, {width / 2.0, 2.1 * size}, options_.title, width - 2 * size,
                      {.size = 1.35 * size, .color = rgb(0x222222), .horizontal = Align::middle, .bold = true});
    draw_fitting_text(canvas, {width / 2.0, (options_.title.empty() ? 2.1 : 4.0) * size}, note, width - 2 * size,
                      {.size = size, .color = rgb(0x555555), .horizontal = Align::middle});
  }

private:
  PictureOptions const& options_;
  BoundingBox box_;
  Legend legend_;
};

/// The directions of a vector field on a section, drawn at the points of a grid on the screen.
class Arrows {
public:
  Arrows(std::span<SurfaceTriangle const> triangles, View const& view, int width, int height)
      : view_(view), spacing_(std::max(14.0, std::max(width, height) / 34.0)), columns_(static_cast<int>(width / spacing_)) {
    int const rows = static_cast<int>(height / spacing_);
    place_.resize(static_cast<std::size_t>(columns_) * static_cast<std::size_t>(rows));
    for (std::size_t t = 0; t < triangles.size(); ++t) {
      std::array<Vec3, 3> s;
      for (std::size_t i = 0; i < 3; ++i)
        s[i] = view.project(triangles[t].vertex[i].position);
      double const area = (s[1][0] - s[0][0]) * (s[2][1] - s[0][1]) - (s[2][0] - s[0][0]) * (s[1][1] - s[0][1]);
      if (!(std::abs(area) > 1e-9))
        continue;
      auto const [left, right] = std::minmax({s[0][0], s[1][0], s[2][0]});
      auto const [top, bottom] = std::minmax({s[0][1], s[1][1], s[2][1]});
      for (int row = std::max(0, index(top)); row <= std::min(rows - 1, index(bottom)); ++row)
        for (int column = std::max(0, index(left)); column <= std::min(columns_ - 1, index(right)); ++column) {
          double const x = coordinate(column) - s[0][0], y = coordinate(row) - s[0][1];
          double const b1 = (x * (s[2][1] - s[0][1]) - y * (s[2][0] - s[0][0])) / area;
          double const b2 = (y * (s[1][0] - s[0][0]) - x * (s[1][1] - s[0][1])) / area;
          if (Place& place = place_[static_cast<std::size_t>(row * columns_ + column)];
              !place.covered && b1 >= 0 && b2 >= 0 && b1 + b2 <= 1)
            place = {true, t, {1 - b1 - b2, b1, b2}, {}};
        }
    }
  }

  /// Takes a component of the field from triangles that are the same but for their values.
  void take(std::span<SurfaceTriangle const> triangles, std::size_t component) {
    for (Place& place : place_)
      for (std::size_t i = 0; place.covered && i < 3; ++i)
        place.vector[component] += place.weight[i] * triangles[place.triangle].vertex[i].value;
  }

  void draw(Canvas& canvas) const {
    double largest = 0;
    for (Place const& place : place_)
      if (double const length = norm(place.vector); std::isfinite(length))
        largest = std::max(largest, length);
    for (std::size_t i = 0; i < place_.size(); ++i) {
      Place const& place = place_[i];
      double const length = norm(place.vector);
      if (!place.covered || !(length > 1e-6 * largest) || !std::isfinite(length))
        continue;
      // On the screen it runs along the field also where a direction is stretched.
      double across = 0, up = 0, x = 0, y = 0;
      for (std::size_t d = 0; d < 3; ++d) {
        across += view_.right()[d] * place.vector[d] / length;
        up += view_.up()[d] * place.vector[d] / length;
        x += view_.right()[d] * view_.stretch()[d] * place.vector[d] / length;
        y -= view_.up()[d] * view_.stretch()[d] * place.vector[d] / length;
      }
      double const part = std::hypot(across, up), on_screen = std::hypot(x, y);
      if (on_screen > 0)
        draw_arrow(canvas, {coordinate(static_cast<int>(i) % columns_), coordinate(static_cast<int>(i) / columns_)},
                   {x / on_screen, y / on_screen}, 0.78 * spacing_ * part);
    }
  }

private:
  struct Place {
    bool covered = false;
    std::size_t triangle = 0;
    Vec3 weight{}, vector{};
  };
  static double norm(Vec3 const& v) { return std::hypot(v[0], v[1], v[2]); }
  [[nodiscard]] double coordinate(int i) const { return (i + 0.5) * spacing_; }
  [[nodiscard]] int index(double x) const { return static_cast<int>(std::clamp(std::floor(x / spacing_ + 0.5), -1.0, 1e6)) - 1; }

  static void draw_arrow(Canvas& canvas, Canvas::Point center, Canvas::Point along, double length) {
    if (length < 3)
      return;
    double const head = std::min(0.42 * length, 6.5), half = length / 2;
    auto const at = [&](double forwards, double sideways) {
      return Canvas::Point{center.first + forwards * along.first - sideways * along.second,
                           center.second + forwards * along.second + sideways * along.first};
    };
    // Light under dark: seen on any color.
    for (bool const under : {true, false}) {
      Color const color = under ? rgb(0xffffff) : rgb(0x111111);
      double const thickness = under ? 3.2 : 1.3;
      canvas.line(at(-half, 0), at(half, 0), color, thickness);
      canvas.polyline({at(half - head, 0.55 * head), at(half, 0), at(half - head, -0.55 * head)}, color, thickness);
    }
  }

  View const& view_;
  double spacing_;
  int columns_;
  std::vector<Place> place_;
};

BoundingBox box_of(std::span<SurfaceTriangle const> triangles, BoundingBox const& of_mesh) {
  if (triangles.empty())
    return of_mesh;
  BoundingBox box{triangles.front().vertex.front().position, triangles.front().vertex.front().position};
  for (auto const& triangle : triangles)
    for (auto const& vertex : triangle.vertex)
      for (std::size_t d = 0; d < 3; ++d) {
        box.low[d] = std::min(box.low[d], vertex.position[d]);
        box.high[d] = std::max(box.high[d], vertex.position[d]);
      }
  return box;
}

/// The values at the nodes of some cells, of which nothing else is asked for. A bit for each node of the mesh, and 8 bytes for 512
/// of them.
class ValuesOfCells {
public:
  ValuesOfCells(Mesh const& mesh, std::span<std::int64_t const> cells, PointValues const& points) {
    constexpr std::int64_t of_word = 64;
    marks_.resize(static_cast<std::size_t>(mesh.n_points() / of_word + 1), 0);
    std::vector<std::int64_t> of_cell(static_cast<std::size_t>(mesh.nodes_per_cell()));
    for (std::int64_t const cell : cells) {
      mesh.nodes(cell, of_cell.data());
      for (std::int64_t const node : of_cell)
        marks_[static_cast<std::size_t>(node / of_word)] |= std::uint64_t{1} << (node % of_word);
    }
    std::vector<std::int64_t> nodes;
    for (std::size_t word = 0; word < marks_.size(); ++word) {
      if (word % words_counted == 0)
        before_.push_back(std::ssize(nodes));
      for (std::uint64_t bits = marks_[word]; bits != 0; bits &= bits - 1)
        nodes.push_back(static_cast<std::int64_t>(word) * of_word + std::countr_zero(bits));
    }
    values_.resize(nodes.size());
    points.get(nodes, values_.data());
  }

  /// At a node of these cells.
  [[nodiscard]] double at(std::int64_t number) const {
    auto const node = static_cast<std::uint64_t>(number);
    std::size_t const word = node / 64;
    auto place = static_cast<std::size_t>(before_[word / words_counted]);
    for (std::size_t w = word / words_counted * words_counted; w < word; ++w)
      place += static_cast<std::size_t>(std::popcount(marks_[w]));
    std::uint64_t const below = (std::uint64_t{1} << (node % 64)) - 1;
    return values_[place + static_cast<std::size_t>(std::popcount(marks_[word] & below))];
  }

private:
  static constexpr std::size_t words_counted = 8;
  std::vector<std::uint64_t> marks_;
  std::vector<std::int64_t> before_;  ///< marked nodes before every eighth word
  std::vector<double> values_;
};

/// The cells of faces and those that are cut, each once, ascending.
std::vector<std::int64_t> drawn_cells(std::span<BoundaryFace const> faces, std::vector<std::int64_t> cells) {
  for (auto const& face : faces)
    cells.push_back(face.cell);
  std::sort(cells.begin(), cells.end());
  cells.erase(std::unique(cells.begin(), cells.end()), cells.end());
  return cells;
}

/// The ids that cells have, ascending.
std::vector<int> ids_of(CellClasses const& field) {
  std::set<int> found;
  int last = 0;
  for (int const id : field.classes)
    if (found.empty() || id != last)
      found.insert(last = id);
  return {found.begin(), found.end()};
}

Legend legend_of(std::vector<int> const& ids, std::map<int, std::string> const& names) {
  Legend legend;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    auto const name = names.find(ids[i]);
    legend.emplace_back(class_color(i), name == names.end() ? std::to_string(ids[i]) : name->second);
  }
  return legend;
}

// What parts of a mesh have together; where one rank has all of it, what is given.

BoundingBox merged(BoundingBox box, bool any, Communicator& ranks) {
  struct Part {
    BoundingBox box;
    bool any;
  };
  auto const add = [](Part& whole, Part const& part) {
    if (!whole.any)
      whole = part;
    for (std::size_t d = 0; part.any && d < 3; ++d) {
      whole.box.low[d] = std::min(whole.box.low[d], part.box.low[d]);
      whole.box.high[d] = std::max(whole.box.high[d], part.box.high[d]);
    }
  };
  return combined(ranks, Part{box, any}, add, Communicator::Order::of_ranks).box;
}

ValueRange merged(ValueRange const& mine, Communicator& ranks) {
  std::vector<double> ends;
  for (ValueRange const& part : gather(ranks, mine))
    if (part.any)
      ends.insert(ends.end(), {part.low, part.high});
  return range_of(
      static_cast<std::int64_t>(ends.size()), [&](std::int64_t i) { return ends[static_cast<std::size_t>(i)]; }, false);
}

std::vector<int> merged(std::vector<int> const& mine, Communicator& ranks) {
  std::vector<int> const lists = gather_lists(ranks, mine);
  std::set<int> const all(lists.begin(), lists.end());
  return {all.begin(), all.end()};
}

std::vector<SurfaceTriangle> merged(std::vector<SurfaceTriangle> triangles, Communicator& ranks) {
  return joined_on_first(ranks, std::move(triangles));
}

void require_size(std::size_t found, std::int64_t wanted, char const* of) {
  if (found != static_cast<std::size_t>(wanted))
    throw std::invalid_argument("a picture of " + std::to_string(wanted) + of + " was given " + std::to_string(found) + " values");
}

double mean_component(CellValues const& field, std::int64_t cell) {
  auto const at = static_cast<std::size_t>(cell) * static_cast<std::size_t>(field.components);
  return field.components == 1 ? field.values[at] : (field.values[at] + field.values[at + 1] + field.values[at + 2]) / 3;
}

/// What the triangles are colored by, and its range, as far as that does not depend on what is drawn.
struct Painting {
  CellField field;
  ValueRange range;
  std::vector<int> classes;
  std::optional<NodeFlux> flux;

  Painting(Mesh const& mesh, PictureField const& what, bool positive, std::span<BoundaryFace const> faces,
           std::vector<std::int64_t> const& cut_through, PicturePart const* part) {
    Communicator& ranks = part != nullptr ? part->ranks : alone();
    int const n_local = mesh.nodes_per_cell();
    auto const in_cells = [n_local](auto const& value_of) {
      return CellField{1, [n_local, value_of](std::int64_t cell, double* out) { std::fill_n(out, n_local, value_of(cell)); }};
    };
    auto const at_nodes = [&mesh, n_local](auto const& value_at) {
      return CellField{1, [&mesh, n_local, value_at](std::int64_t cell, double* out) {
                         std::vector<std::int64_t> nodes(static_cast<std::size_t>(n_local));
                         mesh.nodes(cell, nodes.data());
                         for (std::int64_t const node : nodes)
                           *out++ = value_at(node);
                       }};
    };
    if (auto const* const points = std::get_if<PointValues>(&what); points != nullptr && points->get) {
      auto const values = std::make_shared<ValuesOfCells const>(mesh, drawn_cells(faces, cut_through), *points);
      field = at_nodes([values](std::int64_t node) { return values->at(node); });
      auto const end = [points](std::int64_t i) { return points->ends[static_cast<std::size_t>(i)]; };
      range = merged(range_of(2, end, positive), ranks);
    } else if (points != nullptr) {
      require_size(points->values.size(), mesh.n_points(), " nodes");
      auto const value_at = [values = points->values, absolute = points->absolute](std::int64_t i) {
        double const value = values[static_cast<std::size_t>(i)];
        return absolute ? std::abs(value) : value;
      };
      field = at_nodes(value_at);
      range = merged(range_of(mesh.n_points(), value_at, positive), ranks);
    } else if (auto const* const cells = std::get_if<CellValues>(&what)) {
      require_size(cells->values.size(), mesh.n_cells() * cells->components, " values of cells");
      auto const value_of = [of_cells = *cells](std::int64_t cell) { return mean_component(of_cells, cell); };
      field = in_cells(value_of);
      range = merged(range_of(mesh.n_cells(), value_of, positive), ranks);
    } else if (auto const* const ids = std::get_if<CellClasses>(&what)) {
      require_size(ids->classes.size(), mesh.n_cells(), " cells");
      classes = merged(ids_of(*ids), ranks);
      field = in_cells([this, of_cells = ids->classes](std::int64_t cell) {
        return static_cast<double>(std::lower_bound(classes.begin(), classes.end(), of_cells[static_cast<std::size_t>(cell)]) -
                                   classes.begin());
      });
    } else {
      FluxData const& data = std::get<FluxLength>(what).data;
      if (!data.get)
        require_size(data.u.size(), mesh.n_points(), " nodes");
      require_size(data.coefficient.size(), mesh.n_cells() * data.coefficient_components, " values of cells");
      flux.emplace(mesh, data, drawn_cells(faces, cut_through), part);
      field = flux->field();
    }
  }
  Painting(Painting const&) = delete;
  Painting& operator=(Painting const&) = delete;
};

}  // namespace

std::int64_t picture_bytes(std::int64_t n_cells, std::int64_t n_boundary_faces, int order, std::int64_t n_nodes,
                           PictureOptions const& options, bool flux) {
  double const faces = static_cast<double>(n_boundary_faces);
  int const s = subdivisions_of(faces, order);
  // Planes cut a cell into about 8 triangles for each part of a face that they cross; a quarter of each plane is seen. A plane
  // through a ball of lattices has 1.4 times the cells of one through a box; boxes around curved cells are enlarged.
  double const cut = 0.75 * std::pow(static_cast<double>(n_cells), 2.0 / 3) * (n_nodes > 0 ? 1.4 : 1) * (order > 1 ? 1.2 : 1);
  double const triangles = s * s * (2 * faces + 8 * cut);
  // A vector that grows holds half as much again while it moves. The canvas and the drawing; numbers of triangles by bands of rows.
  std::int64_t const pixels = 2 * 4 * std::int64_t{options.width} * options.height;
  // Cells at the boundary and those that are cut.
  auto const drawn = static_cast<std::int64_t>(faces + cut);
  // The flux is made before there are triangles.
  NodeFlux::Bytes const of_flux = flux ? NodeFlux::bytes(drawn, order, n_nodes) : NodeFlux::Bytes{0, 0};
  return pixels +
         std::max(of_flux.making, static_cast<std::int64_t>((1.5 * sizeof(SurfaceTriangle) + 8) * triangles) + of_flux.kept);
}

PictureSurface picture_surface(Mesh const& mesh, PictureField const& what, PictureOptions const& options, PicturePart const* part) {
  Communicator& ranks = part != nullptr ? part->ranks : alone();
  auto const mesh_box = merged(bounding_box(mesh), mesh.n_points() > 0, ranks);
  Eye const eye = eye_of(options);
  bool const section = options.plane && !options.view;  // the plane alone
  PictureSurface result;
  result.cut = cut_of(mesh_box, options, eye);

  std::vector<BoundaryFace> faces;
  if (!section)
    faces = part != nullptr ? std::vector<BoundaryFace>(part->faces.begin(), part->faces.end()) : boundary_faces(mesh);
  auto const cut_through = cut_cells(mesh, result.cut);
  result.n_faces = static_cast<double>(sum_over(ranks, static_cast<std::int64_t>(section ? 6 * cut_through.size() : faces.size())));
  int const subdivisions = subdivisions_of(result.n_faces, mesh.order());
  Painting painting(mesh, what, options.logarithmic, faces, cut_through, part);
  result.box = mesh_box;
  if (options.plane && !section) {  // what is left
    auto const axis = options.plane->axis;
    (result.cut.sign[axis] > 0 ? result.box.high : result.box.low)[axis] = result.cut.corner[axis];
  }
  std::optional<Vec3> towards;  // not of a flux, whose range is that of all triangles
  if (!section && !painting.flux)
    towards = towards_viewer(eye, stretch_of(result.box));
  auto const triangles = [&](CellField const& field) {
    return merged(cut_surface(mesh, field, result.cut, faces, cut_through, subdivisions, towards), ranks);
  };
  result.triangles = triangles(painting.field);
  if (auto const* const flux = std::get_if<FluxLength>(&what); flux != nullptr && flux->arrows && section)
    for (std::size_t component = 0; component < 3; ++component) {
      CellField of_component = painting.field;
      of_component.component = static_cast<int>(component);
      result.components[component] = triangles(of_component);
    }

  if (section)
    result.box = box_of(result.triangles, mesh_box);
  result.range = painting.range;
  if (painting.flux)
    result.range = range_of(
        static_cast<std::int64_t>(3 * result.triangles.size()),
        [&](std::int64_t i) {
          return result.triangles[static_cast<std::size_t>(i / 3)].vertex[static_cast<std::size_t>(i % 3)].value;
        },
        options.logarithmic);
  result.classes = std::move(painting.classes);
  return result;
}

std::string picture_png(PictureSurface const& surface, PictureField const& what, PictureOptions const& options) {
  bool const section = options.plane && !options.view;
  auto const* const classes = std::get_if<CellClasses>(&what);
  Legend const legend = classes != nullptr ? legend_of(surface.classes, classes->names) : Legend{};
  Frame const frame(surface.box, eye_of(options), options, section, legend);
  RasterOptions raster;
  raster.colors =
      scale_of(surface.range, options, std::holds_alternative<FluxLength>(what), std::holds_alternative<CellValues>(what));
  for (auto const& [color, name] : legend)
    raster.colors.classes.push_back(color);
  raster.mesh_lines = options.mesh_lines.value_or(cells_across(surface.n_faces) < 40);
  raster.lit = !section;

  auto const canvas = open_canvas(frame.width, frame.height, options.format);
  canvas->image({0, 0}, frame.width, frame.height,
                rasterize(surface.triangles, frame.view, surface.cut, raster, frame.width, frame.height));
  if (!surface.components[0].empty()) {
    Arrows arrows(surface.triangles, frame.view, frame.width, frame.height);
    for (std::size_t component = 0; component < 3; ++component)
      arrows.take(surface.components[component], component);
    arrows.draw(*canvas);
  }
  frame.draw(*canvas, {"x", "y", "z"}, raster.colors, surface.range);
  return canvas->bytes();
}

std::string picture_png(Mesh const& mesh, PictureField const& field, PictureOptions const& options) {
  return picture_png(picture_surface(mesh, field, options), field, options);
}

std::string plane_png(PlaneValues const& plane, PictureOptions const& options) {
  auto const [n, m] = plane.n;
  require_size(plane.values.size(), n * m, " points");
  // Coordinates in the plane: along the first edge, and at right angles to it.
  double const length = std::sqrt(dot(plane.first, plane.first)), along = dot(plane.second, plane.first) / length;
  double const across = std::sqrt(std::max(0.0, dot(plane.second, plane.second) - along * along));
  // The direction of an edge along a coordinate axis, which then gives name and values.
  auto const axis_of = [](Vec3 const& edge) {
    for (std::size_t d = 0; d < 3; ++d)
      if (edge[d] > 0 && edge[(d + 1) % 3] == 0 && edge[(d + 2) % 3] == 0)
        return static_cast<int>(d);
    return -1;
  };
  int const first_axis = axis_of(plane.first), second_axis = axis_of(plane.second);
  bool const named = first_axis >= 0 && second_axis >= 0;
  std::array<std::string, 3> names{"distance", "distance", ""};
  Vec3 start{};
  if (named) {
    names = {std::string(1, "xyz"[first_axis]), std::string(1, "xyz"[second_axis]), ""};
    start = {plane.origin[static_cast<std::size_t>(first_axis)], plane.origin[static_cast<std::size_t>(second_axis)], 0};
  }
  auto const vertex = [&](std::int64_t i, std::int64_t j) {
    double const s = static_cast<double>(i) / static_cast<double>(n - 1), t = static_cast<double>(j) / static_cast<double>(m - 1);
    SurfaceVertex v;
    v.position = {start[0] + s * length + t * along, start[1] + t * across, 0};
    v.value = plane.values[static_cast<std::size_t>(j * n + i)];
    return v;
  };
  std::vector<SurfaceTriangle> triangles;
  auto const add = [&](SurfaceVertex const& a, SurfaceVertex const& b, SurfaceVertex const& c) {
    if (std::isfinite(a.value) && std::isfinite(b.value) && std::isfinite(c.value))
      triangles.push_back({{a, b, c}});
  };
  for (std::int64_t j = 0; j + 1 < m; ++j)
    for (std::int64_t i = 0; i + 1 < n; ++i) {
      add(vertex(i, j), vertex(i + 1, j), vertex(i + 1, j + 1));
      add(vertex(i, j), vertex(i + 1, j + 1), vertex(i, j + 1));
    }
  BoundingBox whole{start, start};
  for (auto const& v : {vertex(0, 0), vertex(n - 1, 0), vertex(0, m - 1), vertex(n - 1, m - 1)})
    for (std::size_t d = 0; d < 2; ++d) {
      whole.low[d] = std::min(whole.low[d], v.position[d]);
      whole.high[d] = std::max(whole.high[d], v.position[d]);
    }
  BoundingBox const box = box_of(triangles, whole);
  PictureOptions seen = options;
  seen.plane = PicturePlane{2, 0};  // from the front
  seen.view.reset();
  Frame const frame(box, eye_of(seen), seen, true, {}, false);
  ValueRange const range = range_of(
      n * m, [&](std::int64_t i) { return plane.values[static_cast<std::size_t>(i)]; }, options.logarithmic);
  RasterOptions raster;
  raster.colors = scale_of(range, options, false, false);
  raster.lit = false;
  auto const canvas = open_canvas(frame.width, frame.height, options.format);
  canvas->image({0, 0}, frame.width, frame.height,
                rasterize(triangles, frame.view, {{}, {0, 0, 0}}, raster, frame.width, frame.height));
  frame.draw(*canvas, names, raster.colors, range);
  return canvas->bytes();
}

void write_picture(std::filesystem::path const& path, Mesh const& mesh, std::span<double const> u, PictureOptions const& options) {
  write_text_file(path, picture_png(mesh, PointValues{u}, options));
}

}  // namespace poisson::output
