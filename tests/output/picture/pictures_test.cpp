#if __has_include(<cairo.h>)  // else this build has no pictures

#include "output/picture/axes.hpp"
#include "output/picture/canvas.hpp"
#include "output/picture/colormap.hpp"
#include "output/picture/node_flux.hpp"
#include "output/picture/picture.hpp"
#include "output/picture/raster.hpp"
#include "output/picture/surface.hpp"

#include "tests/output/output_helpers.hpp"

#include <algorithm>
#include <array>
#include <cairo.h>
#include <cmath>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <omp.h>
#include <random>
#include <span>
#include <sstream>

namespace poisson::output::test {

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

/// A PNG as 0xRRGGBB pixels.
struct Image {
  int width = 0, height = 0;
  std::vector<std::uint32_t> pixels;

  explicit Image(std::filesystem::path const& path) {
    auto* const surface = cairo_image_surface_create_from_png(path.c_str());
    EXPECT_EQ(cairo_surface_status(surface), CAIRO_STATUS_SUCCESS);
    width = cairo_image_surface_get_width(surface);
    height = cairo_image_surface_get_height(surface);
    auto const stride = cairo_image_surface_get_stride(surface);
    auto const* const data = cairo_image_surface_get_data(surface);
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x)
        pixels.push_back(*reinterpret_cast<std::uint32_t const*>(data + y * stride + 4 * x) & 0xffffffU);
    cairo_surface_destroy(surface);
  }

  [[nodiscard]] std::uint32_t at(int x, int y) const {
    return pixels[static_cast<std::size_t>(y) * static_cast<std::size_t>(width) + static_cast<std::size_t>(x)];
  }
  template <class Accept>
  [[nodiscard]] std::int64_t count(Accept const& accept, int x0 = 0, int x1 = -1) const {
    std::int64_t n = 0;
    for (int y = 0; y < height; ++y)
      for (int x = x0; x < (x1 < 0 ? width : x1); ++x)
        n += accept(at(x, y));
    return n;
  }
};

std::array<int, 3> parts(std::uint32_t c) {
  return {static_cast<int>(c >> 16 & 255), static_cast<int>(c >> 8 & 255), static_cast<int>(c & 255)};
}
bool close_to(std::uint32_t c, Color const& color, int tolerance) {
  auto const p = parts(c);
  for (std::size_t i = 0; i < 3; ++i)
    if (std::abs(p[i] - static_cast<int>(std::lround(255 * color[i]))) > tolerance)
      return false;
  return true;
}
/// True for the same colour in less light: at least 0.69 of it, and not more than it.
bool shade_of(std::uint32_t c, Color const& color) {
  for (double light = 0.69; light <= 1.0; light += 0.005)
    if (close_to(c, {light * color[0], light * color[1], light * color[2]}, 4))
      return true;
  return false;
}
bool is_grey(std::uint32_t c) {
  auto const p = parts(c);
  return p[0] == p[1] && p[1] == p[2] && p[0] > 90 && p[0] < 160;
}

double bubble(Vec const& x) {
  return 64 * x[0] * x[1] * x[2] * (1 - x[0]) * (1 - x[1]) * (1 - x[2]);
}

Image draw(Block const& block, PictureOptions const& options = {"A title", "u"}) {
  TemporaryDirectory directory;
  write_picture(directory / "u.png", block.grid(), block.u, options);
  EXPECT_EQ(directory.names(), std::set<std::string>{"u.png"});
  return Image(directory / "u.png");
}

// ---------------------------------------------------------------------------------------------------------------- colours

TEST(Viridis, EndsOrderAndMissingValues) {
  EXPECT_EQ(viridis(0), rgb(0x440154));
  EXPECT_EQ(viridis(1), rgb(0xfde725));
  EXPECT_EQ(viridis(-3), viridis(0));
  EXPECT_EQ(viridis(7), viridis(1));
  EXPECT_EQ(viridis(nan), missing_color);
  // Perceptually uniform: the lightness L* of CIELAB rises evenly, by 15 % of its mean step at most away from it.
  auto const lightness = [](Color const& c) {
    auto const linear = [](double v) { return v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4); };
    double const y = 0.2126 * linear(c[0]) + 0.7152 * linear(c[1]) + 0.0722 * linear(c[2]);
    return 116 * std::cbrt(y) - 16;
  };
  double const mean = (lightness(viridis(1)) - lightness(viridis(0))) / 16;
  for (int i = 1; i < 16; ++i)
    EXPECT_NEAR(lightness(viridis((i + 1) / 16.0)) - lightness(viridis(i / 16.0)), mean, 0.15 * mean) << i;
}

// ------------------------------------------------------------------------------------------------------------------- axes

double parse(std::string text) {
  if (auto const minus = text.find("\u2212"); minus != std::string::npos)
    text.replace(minus, std::string("\u2212").size(), "-");
  return std::stod(text);
}

TEST(AxisTicks, RoundStepsThatTheLabelsShow) {
  std::mt19937 random(2);
  std::uniform_real_distribution<double> uniform(-1, 1), exponent(-250, 250);
  for (int trial = 0; trial < 2000; ++trial) {
    double const scale = std::pow(10.0, exponent(random));
    double low = uniform(random) * scale, high = uniform(random) * scale;
    if (high < low)
      std::swap(low, high);
    bool const widen = trial % 2 == 0;
    Axis const axis(low, high, false, widen);
    ASSERT_LE(axis.low(), low + 1e-9 * (high - low));
    ASSERT_GE(axis.high(), high - 1e-9 * (high - low));
    auto const& ticks = axis.ticks();
    ASSERT_GE(ticks.size(), 2U) << low << ' ' << high;
    ASSERT_LE(ticks.size(), 10U);
    double const step = ticks[1].value - ticks[0].value;
    double const mantissa = step / std::pow(10.0, std::floor(std::log10(step) + 1e-9));
    bool round = false;
    for (double const nice : {1.0, 2.0, 2.5, 5.0, 10.0})
      round = round || std::abs(mantissa - nice) < 1e-6;
    ASSERT_TRUE(round) << step;
    for (auto const& tick : ticks)
      ASSERT_NEAR(parse(tick.label), tick.value * std::pow(10.0, -axis.exponent()), 1e-9 * std::pow(10.0, 5)) << tick.label;
    std::set<std::string> labels;
    for (auto const& tick : ticks)
      labels.insert(tick.label);
    ASSERT_EQ(labels.size(), ticks.size());  // enough decimals to tell them apart
    for (std::size_t i = 0; i < ticks.size(); ++i)
      ASSERT_NEAR(parse(ticks[i].label) * std::pow(10.0, axis.exponent()), ticks[i].value, 1e-6 * step);
  }
}

TEST(AxisTicks, Decades) {
  Axis const axis(3e-13, 2.0, true, true);
  EXPECT_DOUBLE_EQ(axis.low(), 1e-13);
  EXPECT_DOUBLE_EQ(axis.high(), 10);
  EXPECT_NEAR(axis.position(1e-6), 0.5, 1e-12);
  bool found = false;
  for (auto const& tick : axis.ticks())
    found = found || tick.label == "10^{\u22126}";
  EXPECT_TRUE(found);
  // A power of ten alone lies in the middle.
  EXPECT_NEAR(Axis(1e-3, 1e-3, true, true).position(1e-3), 0.5, 1e-12);
  for (auto const& [low, high] : {std::pair{1e-307, 1e300}, std::pair{5e-308, 5e-308}, std::pair{1e299, 1e300}}) {
    Axis const wide(low, high, true, true);
    EXPECT_LT(wide.low(), wide.high());
    EXPECT_LE(wide.ticks().size(), 40U);
  }
}

TEST(AxisTicks, EmptyRanges) {
  for (double const value : {0.0, 3.5, -1e-200, 1e290, 1e-308}) {
    Axis const axis(value, value, false, false);
    EXPECT_LT(axis.low(), axis.high());
    EXPECT_TRUE(std::isfinite(axis.position(value)));
    EXPECT_FALSE(axis.ticks().empty());
  }
}

TEST(FormatNumber, FourDigits) {
  EXPECT_EQ(format_number(0), "0");
  EXPECT_EQ(format_number(1), "1");
  EXPECT_EQ(format_number(-0.12345), "\u22120.1235");
  EXPECT_EQ(format_number(12345), "12345");
  EXPECT_EQ(format_number(99999.9), "1\u00d710^{5}");
  EXPECT_EQ(format_number(1.25e-7), "1.25\u00d710^{\u22127}");
  EXPECT_EQ(format_number(0.001), "0.001");
  EXPECT_EQ(format_number(100), "100");
  EXPECT_EQ(format_number(1.0000000001, 12), "1.0000000001");
}

// ---------------------------------------------------------------------------------------------------------------- surface

/// Faces by their sorted corners, counted.
std::vector<BoundaryFace> naive_boundary(Grid const& grid) {
  int const p = grid.order;
  std::map<std::array<std::int64_t, 4>, std::vector<BoundaryFace>> faces;
  for (std::int64_t cell = 0; cell < grid.n_cells(); ++cell)
    for (int face = 0; face < 6; ++face) {
      std::array<std::int64_t, 4> corners{};
      for (int i = 0; i < 4; ++i) {
        int place[3];
        place[face / 2] = face % 2 * p;
        place[(face / 2 + 1) % 3] = i % 2 * p;
        place[(face / 2 + 2) % 3] = i / 2 * p;
        corners[static_cast<std::size_t>(i)] = grid.cells[static_cast<std::size_t>(cell * grid.nodes_per_cell() + place[0] +
                                                                                   (p + 1) * (place[1] + (p + 1) * place[2]))];
      }
      std::sort(corners.begin(), corners.end());
      faces[corners].push_back({cell, face});
    }
  std::vector<BoundaryFace> result;
  for (auto const& [corners, owners] : faces)
    if (owners.size() == 1)
      result.push_back(owners.front());
  std::sort(result.begin(), result.end(),
            [](auto const& a, auto const& b) { return std::pair(a.cell, a.face) < std::pair(b.cell, b.face); });
  return result;
}

TEST(BoundaryFaces, OfABox) {
  auto const block = make_block(3, 4, 5, 1, bubble);
  EXPECT_EQ(boundary_faces(block.grid()).size(), 2U * (12 + 20 + 15));
  EXPECT_EQ(boundary_faces(block.grid()), naive_boundary(block.grid()));
}

TEST(BoundaryFaces, WhateverTheShapeTheOrderAndTheNumbering) {
  std::mt19937 random(9);
  for (int p = 1; p <= 3; ++p)
    for (int trial = 0; trial < 5; ++trial) {
      auto block = make_block(
          6, 5, 4, p, bubble, [](Vec const& x) { return x; },
          [&](int, int, int) { return random() % 3 != 0; });  // holes, edges and corners that only touch
      auto const n = block.grid().n_cells();
      auto const nodes = static_cast<std::size_t>(block.grid().nodes_per_cell());
      std::vector<std::size_t> order(static_cast<std::size_t>(n));
      std::iota(order.begin(), order.end(), 0);
      std::shuffle(order.begin(), order.end(), random);
      std::vector<std::int64_t> number(block.u.size()), cells;
      std::iota(number.begin(), number.end(), 0);
      std::shuffle(number.begin(), number.end(), random);
      for (auto const c : order)
        for (std::size_t i = 0; i < nodes; ++i)
          cells.push_back(number[static_cast<std::size_t>(block.cells[c * nodes + i])]);
      block.cells = cells;
      EXPECT_EQ(boundary_faces(block.grid()), naive_boundary(block.grid()));
    }
}

TEST(CutSurface, LiesOnThePlanesAndHasTheRightValues) {
  // An affine map: the value as a function of the place is linear, and cuts reproduce it.
  auto const map = [](Vec const& x) { return Vec{2 * x[0] + 0.3 * x[1], x[1] - 0.2 * x[2], x[2] + 0.1 * x[0]}; };
  auto const linear = [](Vec const& x) { return 1 + 2 * x[0] - 3 * x[1] + 0.5 * x[2]; };
  for (int const p : {1, 2, 3})
    for (int const subdivisions : {p, p + 2}) {
      auto const block = make_block(
          4, 3, 5, p, [&](Vec const& x) { return linear(map(x)); }, map);
      auto const grid = block.grid();
      auto const box = bounding_box(grid);
      CutAway octant;
      octant.sign = {1, -1, 1};
      for (std::size_t d = 0; d < 3; ++d)
        octant.corner[d] = 0.53 * box.low[d] + 0.47 * box.high[d];
      auto const faces = boundary_faces(grid);
      auto const triangles = cut_surface(grid, block.u, octant, faces, subdivisions);
      std::array<int, 4> n{};
      for (auto const& triangle : triangles) {
        ++n[static_cast<std::size_t>(triangle.plane + 1)];
        for (auto const& v : triangle.vertex) {
          ASSERT_NEAR(v.value, linear(v.position), 1e-11);
          if (triangle.plane >= 0) {
            auto const axis = static_cast<std::size_t>(triangle.plane);
            ASSERT_NEAR(v.position[axis], octant.corner[axis], 1e-12);
          }
          for (auto const r : v.reference) {
            ASSERT_GE(r, -1e-6F);
            ASSERT_LE(r, 1 + 1e-6F);
          }
        }
      }
      EXPECT_EQ(n[0], static_cast<int>(faces.size()) * 2 * subdivisions * subdivisions);
      for (std::size_t i = 1; i < 4; ++i)
        EXPECT_GT(n[i], 0);
    }
}

TEST(CutSurface, CoversTheCutExactlyOnce) {
  // With the octant's corner at a corner of the box, one plane cuts the whole cross section, of area 1, mesh faces included.
  auto const block = make_block(4, 4, 4, 1, bubble);
  for (double const at : {0.5, 0.37}) {
    CutAway octant;
    octant.corner = {at, -1, -1};
    double area = 0;
    for (auto const& triangle : cut_surface(block.grid(), block.u, octant, {}, 1)) {
      ASSERT_EQ(triangle.plane, 0);
      auto const& [a, b, c] = triangle.vertex;
      area += 0.5 * std::abs((b.position[1] - a.position[1]) * (c.position[2] - a.position[2]) -
                             (c.position[1] - a.position[1]) * (b.position[2] - a.position[2]));
    }
    EXPECT_NEAR(area, 1, 1e-12) << at;
  }
}

TEST(CutSurface, CurvedCellsAreDrawnCurved) {
  // A quarter of a tube in four cells of order 4: points between the nodes stay close to the circle.
  auto const map = [](Vec const& x) {
    double const angle = 1.5707963267948966 * x[0], r = 1 + x[1];
    return Vec{r * std::cos(angle), r * std::sin(angle), -x[2]};
  };
  auto const block = make_block(4, 1, 1, 4, bubble, map);
  std::vector<BoundaryFace> outside;
  for (std::int64_t c = 0; c < 4; ++c)
    outside.push_back({c, 3});
  for (auto const& triangle : cut_surface(block.grid(), block.u, {.corner = {9, 9, 9}}, outside, 7))
    for (auto const& v : triangle.vertex)
      EXPECT_NEAR(std::hypot(v.position[0], v.position[1]), 2, 2e-6);
}

TEST(BoundingBox, LeavesOutWhatIsNotFinite) {
  auto block = make_block(2, 2, 2, 1, bubble, [](Vec const& x) { return Vec{x[0] - 3, 2 * x[1], 5}; });
  block.points[0] = nan;
  block.points[1] = infinity;
  auto const box = bounding_box(block.grid());
  EXPECT_EQ(box.low, (Vec{-3, 0, 5}));
  EXPECT_EQ(box.high, (Vec{-2, 2, 5}));
}

// ----------------------------------------------------------------------------------------------------------------- raster

TEST(CutSurface, LeavesOutWhatCannotBeSeen) {
  // Seen from all sides, also where cells are mirror images of the reference cell; with stretched lengths, whole and cut.
  auto const skewed = [](Vec const& x) { return Vec{2 * x[0] + 0.3 * x[1], x[1] - 0.2 * x[2], x[2] + 0.1 * x[0]}; };
  auto const mirrored = [](Vec const& x) { return Vec{-2 * x[0] + 0.3 * x[1], x[1] - 0.2 * x[2], x[2] + 0.1 * x[0]}; };
  auto const bent = [](Vec const& x) { return Vec{(1 + x[1]) * std::cos(2 * x[0]), (1 + x[1]) * std::sin(2 * x[0]), x[2]}; };
  Vec3 const stretch{1, 5, 2};
  for (std::function<Vec(Vec const&)> const& map : {std::function<Vec(Vec const&)>(skewed), {mirrored}, {bent}})
    for (int const p : {1, 2}) {
      auto const block = make_block(
          6, 5, 4, p, [](Vec const& x) { return x[0] * x[1] + x[2]; }, map);
      auto const grid = block.grid();
      auto const box = bounding_box(grid);
      auto const faces = boundary_faces(grid);
      for (double const azimuth : {-1.0, 0.4, 2.5})
        for (double const elevation : {-0.6, 0.5})
          for (bool const cuts : {false, true}) {
            View const view(box, azimuth, elevation, 10, 10, 190, 140, stretch);
            CutAway cut;
            Vec3 towards{};
            for (std::size_t d = 0; d < 3; ++d) {
              towards[d] = view.towards_viewer()[d] / stretch[d];
              cut.sign[d] = cuts ? (towards[d] > 0 ? 1 : -1) : 0;
              cut.corner[d] = 0.51 * box.low[d] + 0.49 * box.high[d];
            }
            auto const crossed = cut_cells(grid, cut);
            auto const all = cut_surface(grid, field_of_points(grid, block.u), cut, faces, crossed, 2),
                       some = cut_surface(grid, field_of_points(grid, block.u), cut, faces, crossed, 2, towards);
            EXPECT_LT(some.size(), 0.8 * static_cast<double>(all.size()));
            EXPECT_EQ(rasterize(some, view, cut, {}, 200, 150), rasterize(all, view, cut, {}, 200, 150))
                << azimuth << ' ' << elevation;
          }
    }
}

TEST(Rasterize, ShowsTheValuesWhereTheyAre) {
  auto const block = make_block(8, 8, 8, 1, [](Vec const& x) { return x[1]; });
  CutAway octant;
  octant.corner = {0.4999, 0.5001, 0.4999};
  octant.sign = {1, -1, 1};
  auto const faces = boundary_faces(block.grid());
  auto const triangles = cut_surface(block.grid(), block.u, octant, faces, 1);
  View const view(bounding_box(block.grid()), -1.0, 0.5, 20, 10, 380, 290);
  auto const pixels = rasterize(triangles, view, octant, {}, 400, 300);
  auto const at = [&](Vec const& x) {
    auto const s = view.project(x);
    return pixels[static_cast<std::size_t>(s[1]) * 400 + static_cast<std::size_t>(s[0])];
  };
  // Points lie on the three cut planes, and on the three faces of the box that face the viewer.
  for (Vec const& x :
       {Vec{0.5, 0.2, 0.7}, Vec{0.8, 0.5, 0.8}, Vec{0.8, 0.2, 0.5}, Vec{0.2, 0, 0.3}, Vec{1, 0.7, 0.3}, Vec{0.3, 0.8, 1}})
    EXPECT_TRUE(shade_of(at(x), viridis(x[1]))) << x[0] << ' ' << x[1] << ' ' << x[2] << " is " << std::hex << at(x);
  EXPECT_EQ(pixels.front(), 0xffffffU);
  EXPECT_EQ(pixels.back(), 0xffffffU);
  // No holes: in each row, what is covered is covered without gaps.
  for (std::size_t row = 0; row < 300; ++row) {
    int changes = 0;
    for (std::size_t column = 1; column < 400; ++column)
      changes += (pixels[row * 400 + column] == 0xffffffU) != (pixels[row * 400 + column - 1] == 0xffffffU);
    EXPECT_TRUE(changes == 0 || changes == 2) << row;
  }
}

// --------------------------------------------------------------------------------------------------------------- pictures

TEST(Picture, HasItsSizeAMeshAndAColorBar) {
  auto const image = draw(make_block(16, 16, 16, 1, bubble));
  EXPECT_EQ(image.width, 1200);
  EXPECT_EQ(image.height, 900);
  auto const n = image.width * image.height;
  auto const white = image.count([](auto c) { return c == 0xffffff; });
  EXPECT_GT(white, n / 4);
  EXPECT_LT(white, 3 * n / 4);
  // In the bar's columns, colours run through the whole map from top to bottom.
  int const x = 1200 - 9 * 17 + 12;
  std::vector<int> rows;
  for (int i = 0; i <= 10; ++i)
    for (int y = 0; y < image.height; ++y)
      if (close_to(image.at(x, y), viridis(1 - (i + 0.02) / 10.4), 3)) {
        rows.push_back(y);
        break;
      }
  ASSERT_EQ(rows.size(), 11U);
  EXPECT_TRUE(std::is_sorted(rows.begin(), rows.end()));
  EXPECT_GT(rows.back() - rows.front(), 400);
}

TEST(Picture, TheInsideShows) {
  // Zero on the boundary and positive inside: bright colours left of the bar exist only thanks to the cut.
  auto const image = draw(make_block(16, 16, 16, 1, bubble));
  EXPECT_GT(image.count([](auto c) { return shade_of(c, viridis(0.95)); }, 0, 1000), 500);
  EXPECT_GT(image.count([](auto c) { return shade_of(c, viridis(0)); }, 0, 1000), 100000);
}

TEST(Picture, MeshLinesOnlyOnCoarseMeshes) {
  // The faces of a constant field are all lighter than this, and text is grey.
  auto const dark = [](auto c) { return parts(c)[1] < 92 && parts(c)[1] > parts(c)[0] + 20; };
  auto const constant = [](Vec const&) { return 1.0; };
  EXPECT_GT(draw(make_block(8, 8, 8, 1, constant)).count(dark, 0, 1000), 2000);
  EXPECT_LT(draw(make_block(48, 48, 48, 1, constant)).count(dark, 0, 1000), 200);
}

TEST(Picture, IsTheSameWhateverTheThreads) {
  auto const block = make_block(20, 20, 20, 1, bubble);
  TemporaryDirectory directory;
  int const before = omp_get_max_threads();
  for (int const threads : {1, 2, 5}) {
    omp_set_num_threads(threads);
    write_picture(directory / (std::to_string(threads) + ".png"), block.grid(), block.u, {"t", "u"});
  }
  omp_set_num_threads(before);
  EXPECT_TRUE(text_of(directory / "1.png") == text_of(directory / "2.png"));
  EXPECT_TRUE(text_of(directory / "1.png") == text_of(directory / "5.png"));
}

TEST(Picture, ConstantField) {
  auto const image = draw(make_block(3, 3, 3, 1, [](Vec const&) { return 2.5; }));
  // One colour in the bar and on the mesh, in different light.
  EXPECT_GT(image.count([](auto c) { return close_to(c, viridis(0.5), 1); }, 1040), 10000);
  EXPECT_EQ(image.count([](auto c) { return close_to(c, viridis(0), 3) || close_to(c, viridis(1), 3); }), 0);
}

TEST(Picture, HardlyVaryingFieldStillHasColors) {
  auto const image = draw(make_block(4, 4, 4, 1, [](Vec const& x) { return 300 + 1e-8 * x[0]; }));
  EXPECT_GT(image.count([](auto c) { return shade_of(c, viridis(0.02)); }, 0, 1000), 1000);
  EXPECT_GT(image.count([](auto c) { return shade_of(c, viridis(0.98)); }, 0, 1000), 1000);
}

TEST(Picture, MissingValuesAreGrey) {
  auto const some =
      draw(make_block(8, 8, 8, 1, [](Vec const& x) { return x[0] > 0.7 ? (x[1] > 0.5 ? nan : infinity) : x[0] + x[1]; }));
  auto const n = some.count(is_grey, 0, 1000);
  EXPECT_GT(n, 20000);
  EXPECT_GT(some.count([](auto c) { return c != 0xffffff && !is_grey(c); }, 0, 1000), 20000);
  auto const all = draw(make_block(4, 4, 4, 1, [](Vec const&) { return nan; }));
  EXPECT_GT(all.count(is_grey), 2 * n);
}

TEST(Picture, HigherOrderAndSingleCell) {
  for (int p = 1; p <= 8; ++p) {
    auto const image = draw(make_block(1, 1, 1, p, bubble), {"t", "u", 400, 300});
    EXPECT_GT(image.count([](auto c) { return c != 0xffffff; }), 20000) << p;
  }
}

TEST(Picture, DegenerateShapes) {
  auto const value = [](Vec const& x) { return x[0]; };
  std::vector<std::function<Vec(Vec const&)>> const maps{[](Vec const& x) {
                                                           return Vec{x[0], x[1], 0};
                                                         },
                                                         [](Vec const& x) {
                                                           return Vec{x[0], 0, 0};
                                                         },
                                                         [](Vec const&) {
                                                           return Vec{1, 1, 1};
                                                         },
                                                         [](Vec const& x) {
                                                           return Vec{1e6 * x[0], x[1], 1e-6 * x[2]};
                                                         },
                                                         [](Vec const& x) {
                                                           return Vec{1e200 * x[0], x[1], x[2]};
                                                         },
                                                         [](Vec const&) {
                                                           return Vec{nan, nan, nan};
                                                         },
                                                         [](Vec const& x) {
                                                           return Vec{1e12 + x[0], x[1], x[2]};
                                                         }};
  for (auto const& map : maps)
    EXPECT_EQ(draw(make_block(2, 2, 2, 1, value, map), {"t", "u", 300, 200}).width, 300);
  EXPECT_EQ(draw({}, {"t", "u", 300, 200}).height, 200);
}

TEST(Picture, TextThatIsNotUtf8) {
  auto const block = make_block(2, 2, 2, 1, bubble);
  TemporaryDirectory directory;
  write_picture(directory / "bad.png", block.grid(), block.u, {"a\xff\xc3 \xe2\x82 b", "u\x80"});
  write_picture(directory / "good.png", block.grid(), block.u, {"a?? ?? b", "u?"});
  EXPECT_TRUE(text_of(directory / "bad.png") == text_of(directory / "good.png"));
}

TEST(Picture, LatticeLooksLikeItsHexahedra) {
  ImageGrid const image{{1, -2, 0.5}, {0.25, 0.5, 0.125}, {5, 3, 9}};
  auto const block = make_block(
      4, 2, 8, 1, [](Vec const& x) { return x[0] * x[1] + x[2]; },
      [](Vec const& x) -> Vec {
        return {1 + x[0], -2 + x[1], 0.5 + x[2]};
      });  // exact in binary
  EXPECT_EQ(boundary_faces(image), naive_boundary(block.grid()));
  auto const box = bounding_box(image), expected = bounding_box(block.grid());
  EXPECT_EQ(box.low, expected.low);
  EXPECT_EQ(box.high, expected.high);
  TemporaryDirectory directory;
  write_picture(directory / "image.png", image, block.u, {"t", "u"});
  write_picture(directory / "arrays.png", block.grid(), block.u, {"t", "u"});
  EXPECT_FALSE(text_of(directory / "image.png").empty());
  EXPECT_TRUE(text_of(directory / "image.png") == text_of(directory / "arrays.png"));
}

// Curved cells, some of which are missing.
TEST(Picture, OfAMeshThatIsMadeIsTheSame) {
  auto const keep = [](int i, int j, int k) { return i != 2 || j != 1 || k > 1; };
  auto const map = [](Vec const& x) -> Vec { return {x[0] + 0.2 * x[1] * x[1], x[1] - 0.1 * x[2], x[2]}; };
  for (int const order : {1, 2}) {
    auto const block = make_block(7, 5, 4, order, bubble, map, keep);
    Grid const made = block.made_grid();
    EXPECT_EQ(bounding_box(made).low, bounding_box(block.grid()).low);
    EXPECT_EQ(bounding_box(made).high, bounding_box(block.grid()).high);
    EXPECT_EQ(boundary_faces(made), naive_boundary(block.grid()));
    CutAway const cut{{0.5, 0.4, 0.3}, {1, -1, 1}};
    EXPECT_EQ(cut_cells(made, cut), cut_cells(block.grid(), cut));
    std::vector<double> const k(block.cells.size(), 2);
    FluxData const flux{block.u, std::span(k).first(static_cast<std::size_t>(made.n_cells())), 1, {}};
    for (PictureField const& field : {PictureField(PointValues{block.u}), PictureField(FluxLength{flux})}) {
      std::string const expected = picture_png(block.grid(), field, {"t", "u"});
      EXPECT_TRUE(picture_png(made, field, {"t", "u"}) == expected);
      Grid known = made;  // of which nothing is searched
      auto const faces = boundary_faces(made);
      known.boundary = faces;
      EXPECT_TRUE(picture_png(known, field, {"t", "u"}) == expected);
    }
  }
}

// Of values that are elsewhere only those at the nodes of what is drawn are asked for.
TEST(Picture, OfValuesThatAreAskedForIsTheSame) {
  ImageGrid const image{{1, -2, 0.5}, {0.25, 0.5, 0.125}, {41, 23, 39}};
  std::vector<double> u;
  for (std::int64_t i = 0; i < image.n_points(); ++i) {
    auto const x = image.point(i);
    u.push_back(std::sin(3 * x[0]) * x[1] + x[2]);
  }
  auto const [low, high] = std::ranges::minmax(u);
  for (bool const section : {false, true}) {
    PictureOptions options{"t", "u"};
    if (section)
      options.plane = PicturePlane{1, 3};
    std::size_t asked = 0;
    auto const get = [&](std::span<std::int64_t const> points, double* out) {
      EXPECT_TRUE(std::ranges::is_sorted(points));
      asked = points.size();
      for (std::size_t i = 0; i < points.size(); ++i)
        out[i] = u[static_cast<std::size_t>(points[i])];
    };
    PointValues const values{{}, false, get, {low, high}};
    EXPECT_TRUE(picture_png(image, values, options) == picture_png(image, PointValues{u}, options));
    EXPECT_GT(asked, 0U);
    EXPECT_LT(asked, u.size() / 2);
  }
}

// The nodes of a rectilinear grid need not be equidistant: its cells' polynomials are those through its nodes.
TEST(CutSurface, RectilinearGridsHaveThePolynomialsOfTheirNodes) {
  auto const nodes = [](double low, double h, int cells) {
    std::vector<double> x{low};
    for (int c = 0; c < cells; ++c)
      for (double const at : {0.5 - std::sqrt(0.05), 0.5 + std::sqrt(0.05), 1.0})
        x.push_back(low + h * (c + at));
    return x;
  };
  std::vector<double> const x = nodes(-1, 0.5, 4), y = nodes(0, 1, 2), z = nodes(2, 0.25, 3);
  RectilinearGrid const grid{3, {x, y, z}};
  auto const value = [](Vec3 const& at) {
    return at[0] * at[0] * at[0] - 2 * at[1] * at[1] * at[2] + at[0] * at[2] * at[2] * at[2];
  };
  std::vector<double> u;
  std::vector<double> points;
  std::vector<std::int64_t> cells;
  for (std::int64_t i = 0; i < grid.n_points(); ++i) {
    u.push_back(value(grid.point(i)));
    for (double const coordinate : grid.point(i))
      points.push_back(coordinate);
  }
  for (std::int64_t cell = 0; cell < grid.n_cells(); ++cell)
    for (int i = 0; i < grid.nodes_per_cell(); ++i)
      cells.push_back(grid.node(cell, i));
  EXPECT_EQ(boundary_faces(grid), naive_boundary({3, points, cells}));
  auto const box = bounding_box(grid), expected = bounding_box(Grid{3, points, cells});
  EXPECT_EQ(box.low, expected.low);
  EXPECT_EQ(box.high, expected.high);

  // Vertices on the boundary are where the polynomials are evaluated; those on the cuts lie between such.
  auto const triangles = cut_surface(grid, u, {.corner = {0.1, 0.7, 2.3}}, boundary_faces(grid), 5);
  std::size_t on_cuts = 0;
  for (auto const& triangle : triangles)
    for (auto const& vertex : triangle.vertex) {
      EXPECT_NEAR(vertex.value, value(vertex.position), triangle.plane < 0 ? 1e-12 : 0.1);
      on_cuts += triangle.plane < 0 ? 0 : 1;
    }
  EXPECT_GT(on_cuts, 0U);
}

TEST(Picture, ValuesMustMatchTheGrid) {
  auto const block = make_block(2, 2, 2, 1, bubble);
  TemporaryDirectory directory;
  EXPECT_THROW(write_picture(directory / "u.png", block.grid(), std::span(block.u).first(5), {}), std::invalid_argument);
  EXPECT_TRUE(directory.names().empty());
}

// --------------------------------------------------------------------------------------------------- quantities and planes

double lightness(Color const& c) {
  auto const linear = [](double v) { return v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4); };
  return 116 * std::cbrt(0.2126 * linear(c[0]) + 0.7152 * linear(c[1]) + 0.0722 * linear(c[2])) - 16;
}

TEST(ColorMaps, LightnessTellsTheOrder) {
  for (auto const& [map, name] : Names<ColorMap>::values) {
    EXPECT_EQ(color_at(map, nan), missing_color) << name;
    EXPECT_EQ(color_at(map, -1), color_at(map, 0)) << name;
    for (int i = 0; i < 16; ++i) {
      double const step = lightness(color_at(map, (i + 1) / 16.0)) - lightness(color_at(map, i / 16.0));
      EXPECT_TRUE(map == ColorMap::diverging && i >= 8 ? step < 0 : step > 0) << name << ' ' << i;
    }
  }
  // Grey is even; the two halves of the diverging map are equally dark.
  double const step = (lightness(color_at(ColorMap::grey, 1)) - lightness(color_at(ColorMap::grey, 0))) / 16;
  for (int i = 0; i < 16; ++i)
    EXPECT_NEAR(lightness(color_at(ColorMap::grey, (i + 1) / 16.0)) - lightness(color_at(ColorMap::grey, i / 16.0)), step, 0.5);
  EXPECT_NEAR(lightness(color_at(ColorMap::diverging, 0)), lightness(color_at(ColorMap::diverging, 1)), 2);
}

TEST(ClassColors, ThirtyDiffer) {
  for (std::size_t i = 0; i < 30; ++i)
    for (std::size_t j = 0; j < i; ++j) {
      auto const a = class_color(i), b = class_color(j);
      EXPECT_GT(std::abs(a[0] - b[0]) + std::abs(a[1] - b[1]) + std::abs(a[2] - b[2]), 0.1) << i << ' ' << j;
    }
  EXPECT_EQ(class_color(30), class_color(0));
}

TEST(AxisTicks, LogarithmicWithExactEnds) {
  for (auto const& [low, high] : {std::pair{3e-5, 250.0}, {2.0, 8.0}, {1.0, 1.001}, {5e-300, 1e300}, {0.02, 0.7}, {1e-3, 1e3}}) {
    Axis const axis(low, high, true, false, 6, true);
    EXPECT_EQ(axis.low(), low);
    EXPECT_EQ(axis.high(), high);
    EXPECT_NEAR(axis.position(std::sqrt(low) * std::sqrt(high)), 0.5, 1e-9);
    int named = 0;
    for (auto const& tick : axis.ticks()) {
      EXPECT_GE(axis.position(tick.value), -0.01);
      EXPECT_LE(axis.position(tick.value), 1.01);
      named += tick.label.empty() ? 0 : 1;
    }
    EXPECT_GE(named, 2) << low;
    EXPECT_LE(named, 10) << low;
  }
}

/// All cells of a mesh.
std::vector<std::int64_t> all_cells(Mesh const& mesh) {
  std::vector<std::int64_t> cells(static_cast<std::size_t>(mesh.n_cells()));
  std::iota(cells.begin(), cells.end(), 0);
  return cells;
}

TEST(NodeFlux, OfLinearFunctionsIsExact) {
  auto const map = [](Vec const& x) {
    return Vec{x[0] + 0.3 * x[1] + 0.1 * x[0] * x[2], 2 * x[1] - 0.2 * x[2], 0.5 * x[2] + 0.1 * x[0]};
  };
  auto const value = [&](Vec const& at) {
    auto const x = map(at);
    return 2 * x[0] - 3 * x[1] + 0.5 * x[2] + 7;
  };
  std::vector<double> const tensor{2, 1, 3, 0.5, 0.1, -0.2};  // xx, yy, zz, xy, yz, xz
  Vec const expected{-(2 * 2 + 0.5 * -3 - 0.2 * 0.5), -(0.5 * 2 + 1 * -3 + 0.1 * 0.5), -(-0.2 * 2 + 0.1 * -3 + 3 * 0.5)};
  for (int p = 1; p <= 4; ++p) {
    auto const block = make_block(3, 2, 2, p, value, map);
    Mesh const mesh = block.grid();
    std::vector<double> k;
    for (int cell = 0; cell < 12; ++cell)
      k.insert(k.end(), tensor.begin(), tensor.end());
    NodeFlux const flux(mesh, {block.u, k, 6, {}}, all_cells(mesh));
    auto const field = flux.field();
    std::vector<double> out(static_cast<std::size_t>(3 * mesh.nodes_per_cell()));
    for (std::int64_t cell = 0; cell < 12; ++cell) {
      field.get(cell, out.data());
      for (std::size_t i = 0; i < out.size(); ++i)
        ASSERT_NEAR(out[i], expected[i / (out.size() / 3)], 1e-10) << p << ' ' << cell << ' ' << i;
    }
  }
}

TEST(NodeFlux, IsTheMeanAroundANodeButNotAcrossMaterials) {
  // u = x^2 on four cells in x of order 1: slopes 1/4, 3/4, 5/4, 7/4. The materials meet at x = 1/2.
  auto const block = make_block(4, 1, 1, 1, [](Vec const& x) { return x[0] * x[0]; });
  Mesh const mesh = block.grid();
  std::vector<double> const k{1, 1, 10, 10};
  std::vector<int> const material{5, 5, 2, 2};
  auto const at_low_ends = [&](FluxData const& data, std::vector<std::int64_t> const& cells) {
    NodeFlux const flux(mesh, data, cells);
    std::vector<double> out(24), result;
    for (auto const cell : cells) {
      flux.field().get(cell, out.data());
      result.push_back(out[0]);
      for (std::size_t i = 8; i < 24; ++i)
        EXPECT_NEAR(out[i], 0, 1e-14);
    }
    return result;
  };
  auto const expect = [](std::vector<double> const& found, std::vector<double> const& wanted) {
    ASSERT_EQ(found.size(), wanted.size());
    for (std::size_t i = 0; i < found.size(); ++i)
      EXPECT_NEAR(found[i], wanted[i], 1e-14) << i;
  };
  expect(at_low_ends({block.u, k, 1, material}, {0, 1, 2, 3}), {-0.25, -0.5, -12.5, -15});
  expect(at_low_ends({block.u, k, 1, {}}, {0, 1, 2, 3}), {-0.25, -0.5, -(0.75 + 12.5) / 2, -15});
  expect(at_low_ends({block.u, k, 1, material}, {1, 3}), {-0.5, -15});  // cells that are not asked for count as well
}

Image image_of(Mesh const& mesh, PictureField const& field, PictureOptions const& options) {
  TemporaryDirectory directory;
  std::ofstream(directory / "p.png", std::ios::binary) << picture_png(mesh, field, options);
  return Image(directory / "p.png");
}
PictureOptions section_of(std::size_t axis, double at) {
  PictureOptions options{"", "q", 600, 450};
  options.plane = PicturePlane{axis, at};
  options.mesh_lines = false;
  return options;
}
/// The positions in the map of the colors of a row, as (column, position); other colors are left out.
std::vector<std::pair<int, double>> profile(Image const& image, int row, ColorMap map, int end) {
  std::vector<std::pair<int, double>> found;
  for (int x = 0; x < end; ++x) {
    auto const c = parts(image.at(x, row));
    double best = 4, position = 0;
    for (int i = 0; i <= 1000; ++i) {
      Color const color = color_at(map, i / 1000.0);
      double distance = 0;
      for (std::size_t d = 0; d < 3; ++d)
        distance = std::max(distance, std::abs(c[d] - 255 * color[d]));
      if (distance < best) {
        best = distance;
        position = i / 1000.0;
      }
    }
    if (best < 4)
      found.emplace_back(x, position);
  }
  return found;
}

TEST(Section, ShowsTheValuesOfThePlaneFromTheFront) {
  // A section of normal x shows y to the right and z upwards; one of normal y shows x and z; one of normal z shows x and y. u is
  // the coordinate to the right, then the one upwards.
  auto const block = [](std::size_t direction) {
    return make_block(12, 12, 12, 1, [direction](Vec const& x) { return x[direction]; });
  };
  std::array<std::array<std::size_t, 2>, 3> const seen{{{1, 2}, {0, 2}, {0, 1}}};
  for (std::size_t axis = 0; axis < 3; ++axis)
    for (double const at : {0.5, 0.3, 0.0, 1.0}) {
      auto const to_the_right = block(seen[axis][0]), upwards = block(seen[axis][1]);
      auto const options = section_of(axis, at);
      auto const across = image_of(to_the_right.grid(), PointValues{to_the_right.u}, options);
      auto const row = profile(across, across.height / 2, ColorMap::viridis, 480);
      ASSERT_GT(row.size(), 200U) << axis << ' ' << at;
      EXPECT_LT(row.front().second, 0.01);
      EXPECT_GT(row.back().second, 0.99);
      for (auto const& [x, t] : row)
        EXPECT_NEAR(t, static_cast<double>(x - row.front().first) / (row.back().first - row.front().first), 0.01);
      auto const up = image_of(upwards.grid(), PointValues{upwards.u}, options);
      int const middle = (row.front().first + row.back().first) / 2;
      EXPECT_TRUE(close_to(up.at(middle, 50), viridis(1 - 32.5 / 391.5), 8));  // from row 18 to row 409.5
      EXPECT_TRUE(close_to(up.at(middle, 395), viridis(14.0 / 391.5), 8));
    }
}

TEST(Section, LogarithmicColors) {
  auto const block = make_block(64, 4, 4, 1, [](Vec const& x) { return x[0] < 0.25 ? -x[1] : std::pow(10.0, 4 * x[0] - 2); });
  auto options = section_of(2, 0.5);
  options.logarithmic = true;
  options.range = std::array<double, 2>{1e-1, 1e2};
  auto const image = image_of(block.grid(), PointValues{block.u}, options);
  auto const row = profile(image, image.height / 2, ColorMap::viridis, 480);
  ASSERT_GT(row.size(), 200U);
  int const first = row.front().first, last = row.back().first;
  for (auto const& [x, t] : row) {
    double const place = static_cast<double>(x - first) / (last - first);
    if (place < 0.24) {
      EXPECT_EQ(t, 0);  // not positive
    } else if (place > 0.27) {
      EXPECT_NEAR(t, (4 * place - 1) / 3, 0.015) << place;
    }
  }
}

TEST(Section, RangesAndMaps) {
  auto const block = make_block(16, 4, 4, 1, [](Vec const& x) { return x[0] - 0.25; });
  auto options = section_of(2, 0.5);
  options.colors = ColorMap::diverging;  // 0 in the middle: from -0.75 to 0.75
  auto const image = image_of(block.grid(), PointValues{block.u}, options);
  auto const row = profile(image, image.height / 2, ColorMap::diverging, 480);
  ASSERT_GT(row.size(), 200U);
  EXPECT_NEAR(row.front().second, 0.5 / 1.5, 0.01);
  EXPECT_NEAR(row.back().second, 1, 0.01);
  options.range = std::array<double, 2>{0, 0.5};
  auto const narrow = image_of(block.grid(), PointValues{block.u}, options);
  auto const clamped = profile(narrow, narrow.height / 2, ColorMap::diverging, 480);
  EXPECT_EQ(clamped[clamped.size() / 8].second, 0);
  EXPECT_EQ(clamped[7 * clamped.size() / 8].second, 1);
  EXPECT_NEAR(clamped[clamped.size() / 2].second, 0.5, 0.02);
}

TEST(Section, MaterialsHaveTheColorsOfTheirLegend) {
  auto const block = make_block(8, 4, 4, 1, bubble);
  std::vector<int> material;
  for (int cell = 0; cell < 128; ++cell)
    material.push_back(cell % 8 < 2 ? 7 : 3);  // a quarter, to the left
  auto const image = image_of(block.grid(), CellClasses{material, {{3, "core"}}}, section_of(2, 0.5));
  auto const count = [&](std::size_t color, int from, int to) {
    return image.count([&](auto c) { return close_to(c, class_color(color), 1); }, from, to);
  };
  // Ascending ids: 3 has the first color.
  auto const right = count(0, 0, 520), left = count(1, 0, 520);
  EXPECT_NEAR(static_cast<double>(right) / static_cast<double>(left), 3, 0.05);
  EXPECT_GT(left, 10000);
  EXPECT_GT(count(0, 520, 600), 50);
  EXPECT_GT(count(1, 520, 600), 50);
  EXPECT_EQ(count(2, 0, 600), 0);
}

TEST(Section, CellsOfBothSidesOfAPlaneBetweenThem) {
  // The plane between two layers of cells shows the lower one, whole.
  auto const block = make_block(4, 4, 4, 1, bubble);
  std::vector<double> layer;
  for (int cell = 0; cell < 64; ++cell)
    layer.push_back(cell / 16);
  auto const colors = [&](double at) {
    auto options = section_of(2, at);
    options.range = std::array<double, 2>{0, 3};
    auto const image = image_of(block.grid(), CellValues{layer}, options);
    std::set<int> found;
    for (int i = 0; i < 4; ++i)
      if (image.count([&](auto c) { return close_to(c, viridis(i / 3.0), 1); }, 150, 400) > 20000)
        found.insert(i);
    return found;
  };
  EXPECT_EQ(colors(0.5), std::set<int>{1});
  EXPECT_EQ(colors(0.51), std::set<int>{2});
  EXPECT_EQ(colors(0), std::set<int>{0});
  EXPECT_EQ(colors(1), std::set<int>{3});
}

TEST(Section, ArrowsPointWhereTheFluxGoes) {
  // Along x through y: arrows are dark strokes on one color, longer in x than in y; out of the plane there is none.
  auto const dark = [](auto c) { return parts(c)[0] < 40 && parts(c)[1] < 40 && parts(c)[2] < 40; };
  auto const ink = [&](std::size_t along, std::size_t normal) {
    auto const block = make_block(8, 8, 8, 1, [along](Vec const& x) { return -x[along]; });
    std::vector<double> const k(512, 1.0);
    auto options = section_of(normal, 0.5);
    options.colors = ColorMap::viridis;  // whose last color is light
    return image_of(block.grid(), FluxLength{{block.u, k, 1, {}}, true}, options);
  };
  auto const image = ink(0, 2);
  EXPECT_GT(image.count(dark, 100, 450), 2000);
  std::int64_t rows = 0;  // runs to the right are long
  for (int y = 0; y < image.height; ++y) {
    int longest = 0, run = 0;
    for (int x = 100; x < 450; ++x)
      longest = std::max(longest, run = dark(image.at(x, y)) ? run + 1 : 0);
    rows += longest >= 8 ? 1 : 0;
  }
  EXPECT_GT(rows, 8);
  EXPECT_EQ(ink(2, 2).count(dark, 150, 400), 0);
}

TEST(Picture, FluxOfAnyQuantityIsTheSameWhateverTheThreads) {
  auto const block = make_block(9, 8, 7, 2, bubble);
  std::vector<double> k;
  std::vector<int> material;
  for (int cell = 0; cell < 504; ++cell) {
    k.push_back(1 + cell % 5);
    material.push_back(cell % 3);
  }
  auto plane = section_of(0, 0.4);
  auto cut = plane;
  cut.view = Vec{1, -1, 0.5};
  std::map<int, std::vector<std::string>> drawn;
  int const before = omp_get_max_threads();
  for (int const threads : {1, 2, 5}) {
    omp_set_num_threads(threads);
    FluxData const data{block.u, k, 1, material};
    drawn[threads] = {picture_png(block.grid(), FluxLength{data, true}, plane),
                      picture_png(block.grid(), FluxLength{data}, {"t", "q"}),
                      picture_png(block.grid(), CellClasses{material, {}}, cut), picture_png(block.grid(), CellValues{k}, plane)};
  }
  omp_set_num_threads(before);
  EXPECT_TRUE(drawn[1] == drawn[2]);
  EXPECT_TRUE(drawn[1] == drawn[5]);

  // u is asked for near the plane only.
  FluxData asked{{}, k, 1, material, {}};
  std::vector<std::int64_t> at;
  asked.get = [&](std::span<std::int64_t const> points, double* out) {
    at.assign(points.begin(), points.end());
    for (std::int64_t const point : points)
      *out++ = block.u[static_cast<std::size_t>(point)];
  };
  EXPECT_EQ(picture_png(block.grid(), FluxLength{asked, true}, plane), drawn[1][0]);
  EXPECT_TRUE(std::ranges::is_sorted(at));
  EXPECT_GT(at.size(), 17U * 15U);
  EXPECT_LT(at.size(), block.u.size() / 2);
  EXPECT_EQ(picture_png(block.grid(), FluxLength{asked}, {"t", "q"}), drawn[1][1]);
}

TEST(Picture, ThinShapesFillIt) {
  auto const share = [](Vec const& lengths, bool shrink, int& height) {
    auto const block = make_block(
        20, 20, 20, 1, [](Vec const& x) { return x[0]; },
        [&](Vec const& x) {
          return Vec{lengths[0] * x[0], lengths[1] * x[1], lengths[2] * x[2]};
        });
    PictureOptions options{"t", "u"};
    options.shrink = shrink;
    auto const image = image_of(block.grid(), PointValues{block.u}, options);
    height = image.height;
    return static_cast<double>(image.count([](auto c) { return c != 0xffffff; })) / (image.width * image.height);
  };
  int height = 0;
  double const cube = share({1, 1, 1}, true, height);
  EXPECT_EQ(height, 900);
  EXPECT_GT(share({1, 1, 0.01}, true, height), 0.6 * cube);
  EXPECT_LT(height, 900);
  EXPECT_GT(share({100, 1, 1}, true, height), 0.25 * cube);
  EXPECT_LT(height, 700);
  EXPECT_GT(share({1, 1, 100}, true, height), 0.25 * cube);
  share({1, 1, 0.01}, false, height);
  EXPECT_EQ(height, 900);
}

/// Where an SVG has its letters, by the texts that they belong to.
std::vector<std::vector<std::array<double, 2>>> letters_of(std::string const& svg) {
  std::vector<std::vector<std::array<double, 2>>> texts;
  std::istringstream in(svg);
  for (std::string line; std::getline(in, line);) {
    if (line.find("<g ") != std::string::npos)
      texts.emplace_back();
    auto const x = line.find(" x=\""), y = line.find(" y=\"");
    if (!texts.empty() && line.find("\"#glyph") != std::string::npos && x != std::string::npos && y != std::string::npos)
      texts.back().push_back({std::stod(line.substr(x + 4)), std::stod(line.substr(y + 4))});
  }
  std::erase_if(texts, [](auto const& text) { return text.empty(); });
  return texts;
}

// Lengths far from 1 have a power of ten in the names of their axes, which are then long.
TEST(Picture, NamesOfAxesAreClearOfTheirTicks) {
  for (Vec const& lengths : {Vec{3e-4, 4e-5, 2e-6}, Vec{2e-4, 1e-4, 2e-5}, Vec{1, 1, 1}, Vec{1e5, 3e6, 1e6}, Vec{1e-5, 0.3, 0.3},
                             Vec{12345, 12345, 99999}, Vec{1e-6, 1e-6, 5e-6}}) {
    auto const block = make_block(
        2, 2, 2, 1, [](Vec const& x) { return x[0]; },
        [&](Vec const& x) {
          return Vec{lengths[0] * x[0], lengths[1] * x[1], lengths[2] * x[2]};
        });
    PictureOptions options{"", "u"};
    options.format = PictureFormat::svg;
    options.shrink = true;
    auto const texts = letters_of(picture_png(block.grid(), PointValues{block.u}, options));
    if (texts.empty())
      GTEST_SKIP() << "there are no fonts";
    for (std::size_t a = 0; a < texts.size(); ++a)
      for (std::size_t b = a + 1; b < texts.size(); ++b)
        for (auto const& p : texts[a])
          for (auto const& q : texts[b])
            EXPECT_GT(std::hypot(p[0] - q[0], p[1] - q[1]), 12)
                << lengths[0] << " x " << lengths[1] << " x " << lengths[2] << " at " << p[0] << ", " << p[1];
  }
}

TEST(Picture, ViewsFromAnywhere) {
  // The side that faces the viewer has the color of its value, whatever the side.
  auto const value = [](Vec const& x) { return x[0] + 2 * x[1] + 4 * x[2]; };
  auto const block = make_block(8, 8, 8, 1, value);
  for (Vec const& view :
       {Vec{1, 0, 0}, Vec{-1, 0, 0}, Vec{0, 3, 0}, Vec{0, -1, 0}, Vec{0, 0, 0.1}, Vec{0, 0, -1}, Vec{-1, 2, -0.5}}) {
    PictureOptions options{"t", "u", 600, 450};
    options.view = view;
    options.mesh_lines = false;
    auto const image = image_of(block.grid(), PointValues{block.u}, options);
    EXPECT_GT(image.count([](auto c) { return c != 0xffffff; }, 0, 480), 40000) << view[0] << ' ' << view[1] << ' ' << view[2];
    options.plane = PicturePlane{0, 0.5};
    EXPECT_GT(image_of(block.grid(), PointValues{block.u}, options).count([](auto c) { return c != 0xffffff; }, 0, 480), 20000);
  }
}

TEST(Picture, OfFieldsThatDoNotMatchTheMesh) {
  auto const block = make_block(2, 2, 2, 1, bubble);
  std::vector<double> const short_values(7, 1.0);
  std::vector<int> const short_classes(7, 1);
  EXPECT_THROW(static_cast<void>(picture_png(block.grid(), CellValues{short_values}, {})), std::invalid_argument);
  EXPECT_THROW(static_cast<void>(picture_png(block.grid(), CellClasses{short_classes, {}}, {})), std::invalid_argument);
  EXPECT_THROW(static_cast<void>(picture_png(block.grid(), FluxLength{{block.u, short_values, 1, {}}}, {})), std::invalid_argument);
}

TEST(PlanePicture, ShowsItsValuesAndLeavesOutWhatIsOutside) {
  std::vector<double> values;
  for (int j = 0; j < 11; ++j)
    for (int i = 0; i < 21; ++i)
      values.push_back(i > 15 || (j > 5 && i > 10) ? nan : i);
  PictureOptions const options{"", "u", 600, 450};
  for (bool const oblique : {false, true}) {
    TemporaryDirectory directory;
    std::ofstream(directory / "p.png", std::ios::binary)
        << plane_png({{21, 11}, {1, 2, 3}, {2, 0, 0}, {oblique ? 0.0001 : 0.0, 0, 1}, values}, options);
    Image const image(directory / "p.png");
    auto const row = profile(image, image.height / 2 + 60, ColorMap::viridis, 510);
    ASSERT_GT(row.size(), 200U);
    int const first = row.front().first, last = row.back().first;
    for (auto const& [x, t] : row)
      EXPECT_NEAR(t, static_cast<double>(x - first) / (last - first), 0.01);
    // In the upper part the values end after two thirds of them.
    auto const upper = profile(image, image.height / 2 - 60, ColorMap::viridis, 510);
    EXPECT_NEAR(upper.back().first - upper.front().first, 2.0 / 3 * (last - first), 3);
    EXPECT_EQ(image.at(last + 20, image.height / 2), 0xffffffU);
  }
  EXPECT_THROW(static_cast<void>(plane_png({{21, 12}, {}, {1, 0, 0}, {0, 1, 0}, values}, options)), std::invalid_argument);
}

// ------------------------------------------------------------------------------------------------------------------ plots

Image plot(std::vector<Curve> const& curves, PlotOptions const& options) {
  TemporaryDirectory directory;
  write_plot(directory / "p.png", curves, options);
  return Image(directory / "p.png");
}
std::int64_t colored(Image const& image, std::size_t curve) {
  return image.count([&](auto c) { return close_to(c, curve_color(curve), 8); });
}

TEST(Plot, CurvesAreDrawnWhereTheirValuesAre) {
  // The values lie on decades, so that the axes fit the data: a falling line from the top left to the bottom right corner of the
  // frame.
  Curve curve{"", {}, {}};
  for (int i = 0; i <= 1000; ++i) {
    curve.x.push_back(i);
    curve.y.push_back(std::pow(10.0, -i / 100.0));
  }
  auto const image = plot({curve}, {"", "", "", false, true, 800, 500, 0});
  EXPECT_EQ(image.width, 800);
  EXPECT_EQ(image.height, 500);
  std::vector<std::pair<int, int>> places;
  for (int x = 0; x < image.width; ++x)
    for (int y = 0; y < image.height; ++y)
      if (close_to(image.at(x, y), curve_color(0), 8)) {
        places.emplace_back(x, y);
        break;
      }
  ASSERT_GT(places.size(), 500U);
  auto const [x0, y0] = places.front();
  auto const [x1, y1] = places.back();
  EXPECT_GT(x1 - x0, 600);
  EXPECT_GT(y1 - y0, 350);
  for (auto const& [x, y] : places)
    EXPECT_NEAR(y, y0 + static_cast<double>(y1 - y0) * (x - x0) / (x1 - x0), 2.5);
}

TEST(Plot, EachCurveHasItsColorAndTheLegendItsName) {
  std::vector<Curve> curves;
  for (int c = 0; c < 7; ++c)
    curves.push_back({"curve " + std::to_string(c), {0, 1, 2}, {1.0 + c, 2.0 + c, 1.5 + c}});
  auto const image = plot(curves, {"t", "x", "y", false, false, 900, 600, 0});
  for (std::size_t c = 0; c < 7; ++c)
    EXPECT_GT(colored(image, c), 200) << c;
  // Without names there is no legend, and less is drawn.
  auto unnamed = curves;
  for (auto& curve : unnamed)
    curve.label.clear();
  EXPECT_LT(colored(plot(unnamed, {"t", "x", "y", false, false, 900, 600, 0}), 3), colored(image, 3));
}

TEST(Plot, LeavesOutWhatCannotBeDrawn) {
  Curve const good{"", {1, 2, 3, 4}, {1, 0.1, 0.01, 0.001}};
  Curve const bad{"", {1, 2, 3, 4, 5, 6, -infinity, nan}, {1, 0.1, 0.01, 0.001, nan, -3, 1, 1}};
  TemporaryDirectory directory;
  write_plot(directory / "good.png", {good}, {"t", "x", "y"});
  write_plot(directory / "bad.png", {bad}, {"t", "x", "y"});
  EXPECT_TRUE(text_of(directory / "good.png") == text_of(directory / "bad.png"));
}

TEST(Plot, NothingOnePointAndExtremes) {
  auto const ink = [](Image const& image) { return image.count([](auto c) { return c != 0xffffff; }); };
  auto const empty = plot({}, {"t", "x", "y"});
  EXPECT_GT(ink(empty), 2000);  // axes and "no data"
  EXPECT_EQ(colored(empty, 0), 0);
  EXPECT_EQ(colored(plot({{"", {1, 2}, {nan, -1}}}, {"t", "x", "y"}), 0), 0);
  for (bool const log : {false, true}) {
    EXPECT_GT(colored(plot({{"", {3}, {1e-3}}}, {"t", "x", "y", log, log}), 0), 20);
    EXPECT_GT(colored(plot({{"", {1, 2}, {1e-300, 9e299}}}, {"t", "x", "y", log, log}), 0), 20);
    EXPECT_GT(colored(plot({{"", {1, 2}, {2e-300, 2e-300}}}, {"t", "x", "y", log, log}), 0), 20);
    EXPECT_GT(colored(plot({{"", {1, 1 + 1e-15}, {7, 7 + 1e-15}}}, {"t", "x", "y", log, log}), 0), 20);
  }
  // x and y of different length: the shorter counts.
  EXPECT_GT(colored(plot({{"", {1, 2, 3}, {1, 2}}}, {"t", "x", "y"}), 0), 20);
}

TEST(Plot, ManyPointsLookLikeAllOfThem) {
  // A dense zigzag fills the band between its extremes, wherever its points fall.
  Curve curve{"", {}, {}};
  for (int i = 0; i < 200000; ++i) {
    curve.x.push_back(i);
    curve.y.push_back(i % 2 == 0 ? 1 : 100);
  }
  auto const image = plot({curve}, {"", "", "", false, true, 900, 600, 0});
  EXPECT_GT(colored(image, 0), 900 * 600 * 7 / 10);
}

TEST(Plot, ReferenceLineIsDashed) {
  PlotOptions options{"", "", "", false, true, 900, 600, 1e-4};
  Curve const curve{"", {0, 10}, {1, 1e-8}};
  auto const with = plot({curve}, options);
  std::int64_t longest = 0, dashes = 0;
  for (int y = 0; y < with.height; ++y) {
    std::int64_t in_row = 0, starts = 0;
    for (int x = 1; x < with.width; ++x) {
      auto const grey = [&](int at) { return close_to(with.at(at, y), rgb(0x555555), 60); };
      in_row += grey(x);
      starts += grey(x) && !grey(x - 1);
    }
    if (starts > dashes) {
      dashes = starts;
      longest = in_row;
    }
  }
  EXPECT_GT(dashes, 40);
  EXPECT_GT(longest, 300);
}

}  // namespace

}  // namespace poisson::output::test

#endif
