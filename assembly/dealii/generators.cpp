#include "assembly/dealii/mesh.hpp"
#include "assembly/dealii/sources.hpp"
#include "assembly/text.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/nearest_name.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <deal.II/grid/grid_generator.h>
#include <deal.II/grid/tria.h>
#include <deal.II/grid/tria_accessor.h>
#include <deal.II/grid/tria_iterator.h>
#include <numbers>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>
#include <variant>

/// deal.II's generators of volume meshes. Their signatures, default arguments and limits stand in one table below. deal.II's own
/// generate_from_name_and_arguments knows about half of them, takes no defaults, and in a release build checks next to nothing.
namespace poisson::assembly {
namespace {

using Grid = dealii::Triangulation<3>;
using Point = dealii::Point<3>;
namespace generator = dealii::GridGenerator;

enum class Type { real, count, flag, point, counts, integers, points, steps, opening, openings };

struct Opening {
  Point centre;
  double radius = 0;
};
using Value = std::variant<double, unsigned, bool, Point, std::vector<unsigned>, std::vector<int>, std::vector<Point>,
                           std::vector<std::vector<double>>, Opening, std::vector<Opening>>;

struct Argument {
  char const* name;
  Type type;
  char const* standard;  ///< used when the argument is left out, in deal.II's notation
};

/// Thrown by a generator's check: what about the arguments is wrong.
struct Refused {
  std::string why;
};

class Arguments {
public:
  std::vector<Value> values;

  [[nodiscard]] double real(std::size_t i) const { return std::get<double>(values[i]); }
  [[nodiscard]] unsigned count(std::size_t i) const { return std::get<unsigned>(values[i]); }
  [[nodiscard]] bool flag(std::size_t i) const { return std::get<bool>(values[i]); }
  [[nodiscard]] Point const& point(std::size_t i) const { return std::get<Point>(values[i]); }
  [[nodiscard]] std::vector<unsigned> const& counts(std::size_t i) const { return std::get<std::vector<unsigned>>(values[i]); }
  [[nodiscard]] std::vector<int> const& integers(std::size_t i) const { return std::get<std::vector<int>>(values[i]); }
  [[nodiscard]] std::vector<Point> const& points(std::size_t i) const { return std::get<std::vector<Point>>(values[i]); }
  [[nodiscard]] std::vector<std::vector<double>> const& steps(std::size_t i) const {
    return std::get<std::vector<std::vector<double>>>(values[i]);
  }
  [[nodiscard]] Opening const& opening(std::size_t i) const { return std::get<Opening>(values[i]); }
  [[nodiscard]] std::vector<Opening> const& openings(std::size_t i) const { return std::get<std::vector<Opening>>(values[i]); }
};

struct Generator {
  char const* name;
  std::vector<Argument> arguments;
  /// Throws Refused for arguments that deal.II would crash, hang or build nonsense on; returns (an upper bound for) the number of
  /// cells.
  double (*check)(Arguments const&);
  void (*build)(Grid&, Arguments const&);
};

void require(bool condition, char const* rule) {
  if (!condition)
    throw Refused{std::string("it must be that ") + rule};
}

bool valid_shell_count(unsigned n) {
  if (n == 0 || n == 6 || n == 12 || n == 24 || n == 48 || n == 96)
    return true;
  return n % 192 == 0 && ((n / 192) & (n / 192 - 1)) == 0;
}
constexpr char const* shell_counts = "n_cells is 0, 6, 12, 24, 48, 96 or 192, 384, 768, ...";

void check_positive_counts(std::vector<unsigned> const& counts, std::size_t size, char const* rule) {
  require(counts.size() == size && std::find(counts.begin(), counts.end(), 0u) == counts.end(), rule);
}
double product(std::vector<unsigned> const& counts) {
  double result = 1;
  for (unsigned const n : counts)
    result *= n;
  return result;
}
double box_volume(Point const& p, Point const& q) {
  return (q[0] - p[0]) * (q[1] - p[1]) * (q[2] - p[2]);
}
void check_corners(Point const& p, Point const& q) {
  require(box_volume(p, q) != 0, "the two corners differ in every coordinate");
}
void check_interval(Arguments const& a, std::size_t i) {
  require(a.real(i) < a.real(i + 1), "left < right");
}
void check_radii(double inner, double outer) {
  require(inner > 0 && outer > inner, "0 < inner_radius < outer_radius");
}

void check_edges(std::vector<Point> const& corners) {
  require(corners.size() == 3, "corners are 3 points, separated by ';'");
  auto const &a = corners[0], &b = corners[1], &c = corners[2];
  double const volume =
      a[0] * (b[1] * c[2] - b[2] * c[1]) + a[1] * (b[2] * c[0] - b[0] * c[2]) + a[2] * (b[0] * c[1] - b[1] * c[0]);
  require(volume > 1e-12 * a.norm() * b.norm() * c.norm(), "the 3 edges span a volume and form a right-handed system");
}

/// deal.II 9.4's own function makes no holes in 3D. Here, as it documents: cells of size 1, every second one in each direction
/// removed.
void build_cheese(Grid& grid, Arguments const& a) {
  std::vector<unsigned> cells;
  Point corner;
  for (unsigned d = 0; d < 3; ++d) {
    cells.push_back(2 * a.counts(0)[d] + 1);
    corner[d] = cells[d];
  }
  Grid full;
  generator::subdivided_hyper_rectangle(full, cells, Point(), corner);
  std::set<Grid::active_cell_iterator> holes;
  for (auto const& cell : full.active_cell_iterators()) {
    Point const centre = cell->center();
    if (std::all_of(centre.begin_raw(), centre.end_raw(), [](double x) { return static_cast<std::int64_t>(x) % 2 == 1; }))
      holes.insert(cell);
  }
  generator::create_triangulation_with_removed_cells(full, holes, grid);
}

std::vector<Generator> make_table() {
  constexpr Type real = Type::real, count = Type::count, flag = Type::flag, point = Type::point, counts = Type::counts,
                 points = Type::points;
  Argument const colorize{"colorize", flag, "false"};
  Argument const centre{"center", point, "0, 0, 0"};
  return {
      {"hyper_cube",
       {{"left", real, "0"}, {"right", real, "1"}, colorize},
       [](Arguments const& a) {
         check_interval(a, 0);
         return 1.;
       },
       [](Grid& grid, Arguments const& a) { generator::hyper_cube(grid, a.real(0), a.real(1), a.flag(2)); }},
      {"subdivided_hyper_cube",
       {{"repetitions", count, "4"}, {"left", real, "0"}, {"right", real, "1"}, colorize},
       [](Arguments const& a) {
         require(a.count(0) >= 1, "repetitions >= 1");
         check_interval(a, 1);
         return std::pow(a.count(0), 3.);
       },
       [](Grid& grid, Arguments const& a) { generator::subdivided_hyper_cube(grid, a.count(0), a.real(1), a.real(2), a.flag(3)); }},
      {"hyper_rectangle",
       {{"p1", point, "0, 0, 0"}, {"p2", point, "1, 1, 1"}, colorize},
       [](Arguments const& a) {
         check_corners(a.point(0), a.point(1));
         return 1.;
       },
       [](Grid& grid, Arguments const& a) { generator::hyper_rectangle(grid, a.point(0), a.point(1), a.flag(2)); }},
      {"subdivided_hyper_rectangle",
       {{"repetitions", counts, "4, 4, 4"}, {"p1", point, "0, 0, 0"}, {"p2", point, "1, 1, 1"}, colorize},
       [](Arguments const& a) {
         check_positive_counts(a.counts(0), 3, "repetitions are 3 numbers >= 1");
         check_corners(a.point(1), a.point(2));
         return product(a.counts(0));
       },
       [](Grid& grid, Arguments const& a) {
         generator::subdivided_hyper_rectangle(grid, a.counts(0), a.point(1), a.point(2), a.flag(3));
       }},
      // deal.II's second function of this name: the widths of the cells. It is meant when the first argument has a ';'.
      {"subdivided_hyper_rectangle",
       {{"step_sizes", Type::steps, "0.5, 0.5; 0.5, 0.5; 0.5, 0.5"}, {"p1", point, "0, 0, 0"}, {"p2", point, "1, 1, 1"}, colorize},
       [](Arguments const& a) {
         require(a.steps(0).size() == 3, "step_sizes are 3 lists, separated by ';'");
         double cells = 1;
         for (unsigned d = 0; d < 3; ++d) {
           double sum = 0;
           for (double const h : a.steps(0)[d]) {
             require(h > 0, "step_sizes > 0");
             sum += h;
           }
           double const width = a.point(2)[d] - a.point(1)[d];
           require(width > 0, "p1 < p2 in every coordinate");
           require(std::abs(sum - width) <= 1e-10 * width, "the step_sizes of each direction add up to p2 - p1");
           cells *= static_cast<double>(a.steps(0)[d].size());
         }
         return cells;
       },
       [](Grid& grid, Arguments const& a) {
         generator::subdivided_hyper_rectangle(grid, a.steps(0), a.point(1), a.point(2), a.flag(3));
       }},
      {"cheese",
       {{"holes", counts, "1, 1, 1"}},
       [](Arguments const& a) {
         check_positive_counts(a.counts(0), 3, "holes are 3 numbers >= 1");
         double cells = 1;
         for (unsigned const n : a.counts(0))
           cells *= 2. * n + 1;
         return cells;
       },
       build_cheese},
      {"plate_with_a_hole",
       {{"inner_radius", real, "0.4"},
        {"outer_radius", real, "1"},
        {"pad_bottom", real, "2"},
        {"pad_top", real, "2"},
        {"pad_left", real, "1"},
        {"pad_right", real, "1"},
        centre,
        {"polar_manifold_id", count, "0"},
        {"tfi_manifold_id", count, "1"},
        {"L", real, "1"},
        {"n_slices", count, "2"},
        colorize},
       [](Arguments const& a) {
         check_radii(a.real(0), a.real(1));
         for (std::size_t i = 2; i <= 5; ++i)
           require(a.real(i) >= 0, "pad_bottom, pad_top, pad_left and pad_right >= 0");
         require(a.real(2) + a.real(3) + a.real(4) + a.real(5) > 0, "one of pad_bottom, pad_top, pad_left, pad_right > 0");
         require(a.count(7) != a.count(8) && a.count(7) < 1000000 && a.count(8) < 1000000,
                 "polar_manifold_id and tfi_manifold_id differ (and are below 1000000)");
         require(a.real(9) > 0, "L > 0");
         require(a.count(10) >= 2, "n_slices >= 2");
         double const r = a.real(1);
         return (8 + (a.real(4) / r + a.real(5) / r + 4) * (a.real(2) / r + a.real(3) / r + 4)) * a.count(10);
       },
       [](Grid& grid, Arguments const& a) {
         generator::plate_with_a_hole(grid, a.real(0), a.real(1), a.real(2), a.real(3), a.real(4), a.real(5), a.point(6),
                                      a.count(7), a.count(8), a.real(9), a.count(10), a.flag(11));
       }},
      {"channel_with_cylinder",
       {{"shell_region_width", real, "0.03"}, {"n_shells", count, "2"}, {"skewness", real, "2"}, colorize},
       [](Arguments const& a) {
         require(a.real(0) > 0 && a.real(0) < 0.05, "0 < shell_region_width < 0.05");
         require(a.real(2) >= 0 && a.real(2) <= 20, "0 <= skewness <= 20");
         return 4 * (108. + 8. * a.count(1));
       },
       [](Grid& grid, Arguments const& a) { generator::channel_with_cylinder(grid, a.real(0), a.count(1), a.real(2), a.flag(3)); }},
      {"general_cell",
       {{"vertices", points, "0,0,0; 1,0,0; 0,1,0; 1,1,0; 0,0,1; 1,0,1; 0,1,1; 1,1,1"}, colorize},
       [](Arguments const& a) {
         require(a.points(0).size() == 8, "vertices are 8 points, separated by ';'");
         return 1.;
       },
       [](Grid& grid, Arguments const& a) { generator::general_cell<3, 3>(grid, a.points(0), a.flag(1)); }},
      {"parallelepiped",
       {{"corners", points, "1,0,0; 0,1,0; 0,0,1"}, colorize},
       [](Arguments const& a) {
         check_edges(a.points(0));
         return 1.;
       },
       [](Grid& grid, Arguments const& a) {
         Point const corners[3] = {a.points(0)[0], a.points(0)[1], a.points(0)[2]};
         generator::parallelepiped<3>(grid, corners, a.flag(1));
       }},
      {"subdivided_parallelepiped",
       {{"n_subdivisions", counts, "4"}, {"corners", points, "1,0,0; 0,1,0; 0,0,1"}, colorize},
       [](Arguments const& a) {
         check_positive_counts(a.counts(0), a.counts(0).size() == 1 ? 1 : 3, "n_subdivisions are 1 or 3 numbers >= 1");
         check_edges(a.points(1));
         return a.counts(0).size() == 1 ? std::pow(a.counts(0)[0], 3.) : product(a.counts(0));
       },
       [](Grid& grid, Arguments const& a) {
         std::vector<unsigned> n = a.counts(0);
         n.resize(3, n[0]);
         std::array<dealii::Tensor<1, 3>, 3> const edges{a.points(1)[0], a.points(1)[1], a.points(1)[2]};
         generator::subdivided_parallelepiped<3, 3>(grid, Point(), edges, n, a.flag(2));
       }},
      {"enclosed_hyper_cube",
       {{"left", real, "0"}, {"right", real, "1"}, {"thickness", real, "1"}, colorize},
       [](Arguments const& a) {
         check_interval(a, 0);
         require(a.real(2) > 0, "thickness > 0");
         return 27.;
       },
       [](Grid& grid, Arguments const& a) { generator::enclosed_hyper_cube(grid, a.real(0), a.real(1), a.real(2), a.flag(3)); }},
      {"hyper_ball",
       {centre, {"radius", real, "1"}, {"attach_spherical_manifold_on_boundary_cells", flag, "false"}},
       [](Arguments const& a) {
         require(a.real(1) > 0, "radius > 0");
         return 7.;
       },
       [](Grid& grid, Arguments const& a) { generator::hyper_ball(grid, a.point(0), a.real(1), a.flag(2)); }},
      {"hyper_ball_balanced",
       {centre, {"radius", real, "1"}},
       [](Arguments const& a) {
         require(a.real(1) > 0, "radius > 0");
         return 32.;
       },
       [](Grid& grid, Arguments const& a) { generator::hyper_ball_balanced(grid, a.point(0), a.real(1)); }},
      {"quarter_hyper_ball",
       {centre, {"radius", real, "1"}},
       [](Arguments const& a) {
         require(a.real(1) > 0, "radius > 0");
         return 4.;
       },
       [](Grid& grid, Arguments const& a) { generator::quarter_hyper_ball(grid, a.point(0), a.real(1)); }},
      {"half_hyper_ball",
       {centre, {"radius", real, "1"}},
       [](Arguments const& a) {
         require(a.real(1) > 0, "radius > 0");
         return 6.;
       },
       [](Grid& grid, Arguments const& a) { generator::half_hyper_ball(grid, a.point(0), a.real(1)); }},
      {"non_standard_orientation_mesh",
       {{"face_orientation", flag, "true"},
        {"face_flip", flag, "false"},
        {"face_rotation", flag, "false"},
        {"manipulate_left_cube", flag, "false"}},
       [](Arguments const&) { return 2.; },
       [](Grid& grid, Arguments const& a) {
         generator::non_standard_orientation_mesh(grid, a.flag(0), a.flag(1), a.flag(2), a.flag(3));
       }},
      {"cylinder",
       {{"radius", real, "1"}, {"half_length", real, "1"}},
       [](Arguments const& a) {
         require(a.real(0) > 0 && a.real(1) > 0, "radius > 0 and half_length > 0");
         return 10.;
       },
       [](Grid& grid, Arguments const& a) { generator::cylinder(grid, a.real(0), a.real(1)); }},
      {"subdivided_cylinder",
       {{"x_subdivisions", count, "2"}, {"radius", real, "1"}, {"half_length", real, "1"}},
       [](Arguments const& a) {
         require(a.count(0) >= 1, "x_subdivisions >= 1");
         require(a.real(1) > 0 && a.real(2) > 0, "radius > 0 and half_length > 0");
         return 5. * a.count(0);
       },
       [](Grid& grid, Arguments const& a) { generator::subdivided_cylinder(grid, a.count(0), a.real(1), a.real(2)); }},
      {"truncated_cone",
       {{"radius_0", real, "1"}, {"radius_1", real, "0.5"}, {"half_length", real, "1"}},
       [](Arguments const& a) {
         require(a.real(0) > 0 && a.real(1) > 0 && a.real(2) > 0, "radius_0 > 0, radius_1 > 0 and half_length > 0");
         // deal.II stacks cells along the cone in proportion to its slenderness.
         return 10 * (4 + 4 * a.real(2) / std::min(a.real(0), a.real(1)) + std::abs(std::log2(a.real(0) / a.real(1))));
       },
       [](Grid& grid, Arguments const& a) { generator::truncated_cone(grid, a.real(0), a.real(1), a.real(2)); }},
      {"pipe_junction",
       {{"openings", Type::openings, "-2,0,0 : 1; 0,2,0 : 1; 2,0,0 : 1"},
        {"bifurcation", Type::opening, "0,0,0 : 1"},
        {"aspect_ratio", real, "0.5"}},
       [](Arguments const& a) {
         auto const& openings = a.openings(0);
         require(openings.size() == 3, "there are 3 openings, separated by ';'");
         require(a.real(2) > 0, "aspect_ratio > 0");
         double smallest = a.opening(1).radius, longest = 0;
         for (Opening const& opening : openings) {
           smallest = std::min(smallest, opening.radius);
           longest = std::max(longest, opening.centre.distance(a.opening(1).centre));
           require(opening.centre.distance(a.opening(1).centre) > 0, "no opening lies at the bifurcation");
         }
         require(smallest > 0, "all radii are > 0");
         auto const crossing = [](dealii::Tensor<1, 3> const& u, dealii::Tensor<1, 3> const& v) {
           return dealii::cross_product_3d(u, v).norm();
         };
         dealii::Tensor<1, 3> const u = openings[1].centre - openings[0].centre, v = openings[2].centre - openings[0].centre;
         require(crossing(u, v) > 1e-10 * u.norm() * v.norm(), "the 3 openings do not lie on a line");
         return 3. * 12. * (4 + longest / smallest * (2 + 2 * a.real(2)) * 4);
       },
       [](Grid& grid, Arguments const& a) {
         std::vector<std::pair<Point, double>> openings;
         for (Opening const& opening : a.openings(0))
           openings.emplace_back(opening.centre, opening.radius);
         generator::pipe_junction(grid, openings, std::make_pair(a.opening(1).centre, a.opening(1).radius), a.real(2));
       }},
      {"hyper_cross",
       {{"sizes", counts, "1, 1, 1, 1, 1, 1"}, {"colorize_cells", flag, "false"}},
       [](Arguments const& a) {
         require(a.counts(0).size() == 6, "sizes are 6 numbers >= 0");
         double cells = 1;
         for (unsigned const n : a.counts(0))
           cells += n;
         return cells;
       },
       [](Grid& grid, Arguments const& a) { generator::hyper_cross(grid, a.counts(0), a.flag(1)); }},
      {"hyper_L",
       {{"left", real, "-1"}, {"right", real, "1"}, colorize},
       [](Arguments const& a) {
         check_interval(a, 0);
         require(!a.flag(2), "colorize is false (deal.II numbers the sides of hyper_L in 2D only)");
         return 7.;
       },
       [](Grid& grid, Arguments const& a) { generator::hyper_L(grid, a.real(0), a.real(1), false); }},
      {"subdivided_hyper_L",
       {{"repetitions", counts, "4, 4, 4"},
        {"bottom_left", point, "0, 0, 0"},
        {"top_right", point, "1, 1, 1"},
        {"n_cells_to_remove", Type::integers, "2, 2, 2"}},
       [](Arguments const& a) {
         check_positive_counts(a.counts(0), 3, "repetitions are 3 numbers >= 1");
         for (unsigned d = 0; d < 3; ++d)
           require(a.point(1)[d] < a.point(2)[d], "bottom_left < top_right in every coordinate");
         require(a.integers(3).size() == 3, "n_cells_to_remove are 3 whole numbers");
         bool all = true;
         for (std::size_t d = 0; d < 3; ++d) {
           double const n = std::abs(static_cast<double>(a.integers(3)[d]));
           require(n <= a.counts(0)[d], "n_cells_to_remove is at most the number of repetitions, in every direction");
           all = all && n == a.counts(0)[d];
         }
         require(!all, "not all cells are removed");
         return product(a.counts(0));
       },
       [](Grid& grid, Arguments const& a) {
         generator::subdivided_hyper_L(grid, a.counts(0), a.point(1), a.point(2), a.integers(3));
       }},
      {"hyper_cube_slit",
       {{"left", real, "0"}, {"right", real, "1"}, colorize},
       [](Arguments const& a) {
         check_interval(a, 0);
         return 4.;
       },
       [](Grid& grid, Arguments const& a) { generator::hyper_cube_slit(grid, a.real(0), a.real(1), a.flag(2)); }},
      {"hyper_shell",
       {centre, {"inner_radius", real, "0.5"}, {"outer_radius", real, "1"}, {"n_cells", count, "0"}, colorize},
       [](Arguments const& a) {
         check_radii(a.real(1), a.real(2));
         require(valid_shell_count(a.count(3)), shell_counts);
         return std::max(6., static_cast<double>(a.count(3)));
       },
       [](Grid& grid, Arguments const& a) {
         generator::hyper_shell(grid, a.point(0), a.real(1), a.real(2), a.count(3), a.flag(4));
       }},
      {"eccentric_hyper_shell",
       {{"inner_center", point, "0.1, 0, 0"},
        {"outer_center", point, "0, 0, 0"},
        {"inner_radius", real, "0.5"},
        {"outer_radius", real, "1"},
        {"n_cells", count, "12"}},
       [](Arguments const& a) {
         check_radii(a.real(2), a.real(3));
         require(a.point(0).distance(a.point(1)) + a.real(2) < a.real(3), "the inner ball lies inside the outer one");
         require(valid_shell_count(a.count(4)), shell_counts);
         return std::max(6., static_cast<double>(a.count(4)));
       },
       [](Grid& grid, Arguments const& a) {
         generator::eccentric_hyper_shell(grid, a.point(0), a.point(1), a.real(2), a.real(3), a.count(4));
       }},
      {"half_hyper_shell",
       {centre, {"inner_radius", real, "0.5"}, {"outer_radius", real, "1"}, {"n_cells", count, "0"}, colorize},
       [](Arguments const& a) {
         check_radii(a.real(1), a.real(2));
         require(a.count(3) == 0 || a.count(3) == 5, "n_cells is 0 or 5");
         return 5.;
       },
       [](Grid& grid, Arguments const& a) { generator::half_hyper_shell(grid, a.point(0), a.real(1), a.real(2), 0, a.flag(4)); }},
      {"quarter_hyper_shell",
       {centre, {"inner_radius", real, "0.5"}, {"outer_radius", real, "1"}, {"n_cells", count, "0"}, colorize},
       [](Arguments const& a) {
         check_radii(a.real(1), a.real(2));
         require(a.count(3) == 0 || a.count(3) == 3, "n_cells is 0 or 3");
         return 3.;
       },
       [](Grid& grid, Arguments const& a) {
         generator::quarter_hyper_shell(grid, a.point(0), a.real(1), a.real(2), a.count(3), a.flag(4));
       }},
      {"cylinder_shell",
       {{"length", real, "2"},
        {"inner_radius", real, "0.5"},
        {"outer_radius", real, "1"},
        {"n_radial_cells", count, "0"},
        {"n_axial_cells", count, "0"}},
       [](Arguments const& a) {
         require(a.real(0) > 0, "length > 0");
         check_radii(a.real(1), a.real(2));
         require(a.count(3) == 0 || a.count(3) >= 3, "n_radial_cells is 0 or at least 3");
         double const thickness = a.real(2) - a.real(1);
         double const around = a.count(3) > 0 ? a.count(3) : 4 + 2 * std::numbers::pi * a.real(2) / thickness;
         double const along = a.count(4) > 0 ? a.count(4) : 4 + 2 * a.real(0) * around / (2 * std::numbers::pi * a.real(1));
         return around * along;
       },
       [](Grid& grid, Arguments const& a) {
         generator::cylinder_shell(grid, a.real(0), a.real(1), a.real(2), a.count(3), a.count(4));
       }},
      {"torus",
       {{"R", real, "2"}, {"r", real, "0.5"}, {"n_cells_toroidal", count, "6"}, {"phi", real, "6.283185307179586"}},
       [](Arguments const& a) {
         require(a.real(1) > 0 && a.real(0) > a.real(1), "R > r > 0");
         require(a.real(3) > 0 && a.real(3) <= 2 * std::numbers::pi * (1 + 1e-14), "0 < phi <= 2 pi = 6.283185307179586");
         bool const closed = a.real(3) >= 2 * std::numbers::pi * (1 - 1e-14);
         require(a.count(2) >= (closed ? 3u : 1u), closed ? "n_cells_toroidal >= 3" : "n_cells_toroidal >= 1");
         require(closed || a.real(3) / a.count(2) < std::numbers::pi, "each of the n_cells_toroidal layers spans less than pi");
         return 5. * a.count(2);
       },
       [](Grid& grid, Arguments const& a) {
         double const full = 2 * std::numbers::pi;
         generator::torus<3, 3>(grid, a.real(0), a.real(1), a.count(2),
                                std::abs(a.real(3) - full) <= 1e-14 * full ? full : a.real(3));
       }},
      {"hyper_cube_with_cylindrical_hole",
       {{"inner_radius", real, "0.25"}, {"outer_radius", real, "0.5"}, {"L", real, "0.5"}, {"repetitions", count, "1"}, colorize},
       [](Arguments const& a) {
         check_radii(a.real(0), a.real(1));
         require(a.real(2) > 0, "L > 0");
         require(a.count(3) >= 1, "repetitions >= 1");
         return 8. * a.count(3);
       },
       [](Grid& grid, Arguments const& a) {
         generator::hyper_cube_with_cylindrical_hole(grid, a.real(0), a.real(1), a.real(2), a.count(3), a.flag(4));
       }},
      {"concentric_hyper_shells",
       {centre,
        {"inner_radius", real, "0.125"},
        {"outer_radius", real, "0.25"},
        {"n_shells", count, "1"},
        {"skewness", real, "0.1"},
        {"n_cells_per_shell", count, "0"},
        colorize},
       [](Arguments const& a) {
         check_radii(a.real(1), a.real(2));
         require(a.count(3) >= 1, "n_shells >= 1");
         require(a.real(4) >= 0 && a.real(4) <= 20, "0 <= skewness <= 20");
         unsigned const n = a.count(5);
         require(n == 0 || n == 6 || n == 12 || n == 96, "n_cells_per_shell is 0, 6, 12 or 96");
         return std::max(12., static_cast<double>(n)) * a.count(3);
       },
       [](Grid& grid, Arguments const& a) {
         generator::concentric_hyper_shells(grid, a.point(0), a.real(1), a.real(2), a.count(3), a.real(4), a.count(5), a.flag(6));
       }},
      {"moebius",
       {{"n_cells", count, "16"}, {"n_rotations", count, "1"}, {"R", real, "2"}, {"r", real, "0.5"}},
       [](Arguments const& a) {
         require(a.count(0) > 4, "n_cells > 4");
         require(a.real(3) > 0 && a.real(2) > a.real(3), "R > r > 0");
         return static_cast<double>(a.count(0));
       },
       [](Grid& grid, Arguments const& a) { generator::moebius(grid, a.count(0), a.count(1), a.real(2), a.real(3)); }},
      {"simplex",
       {{"vertices", points, "0,0,0; 1,0,0; 0,1,0; 0,0,1"}},
       [](Arguments const& a) {
         require(a.points(0).size() == 4, "vertices are 4 points, separated by ';'");
         std::vector<Point> edges;
         for (std::size_t i = 1; i < 4; ++i)
           edges.emplace_back(a.points(0)[i] - a.points(0)[0]);
         check_edges(edges);
         return 4.;
       },
       [](Grid& grid, Arguments const& a) { generator::simplex<3>(grid, a.points(0)); }},
  };
}

std::vector<Generator> const& table() {
  static std::vector<Generator> const generators = make_table();
  return generators;
}

/// What GridGenerator also has, and why it makes no mesh for this program.
constexpr std::array<std::pair<std::string_view, std::string_view>, 17> refused_generators{{
    {"hyper_sphere", "makes the surface of a ball; use hyper_ball for its volume"},
    {"parallelogram", "makes a 2D mesh; use parallelepiped"},
    {"reference_cell", "makes a single reference cell; use hyper_cube"},
    {"subdivided_hyper_rectangle_with_simplices", "makes tetrahedra; use subdivided_hyper_rectangle"},
    {"subdivided_hyper_cube_with_simplices", "makes tetrahedra; use subdivided_hyper_cube"},
    {"convert_hypercube_to_simplex_mesh", "makes tetrahedra"},
    {"airfoil", "makes a 2D mesh"},
    {"Airfoil::create_triangulation", "makes a 2D mesh"},
    {"implicit_function", "makes tetrahedra from a function"},
    {"surface_mesh_to_volumetric_mesh", "makes tetrahedra from a surface"},
    {"merge_triangulations", "works on other meshes"},
    {"replicate_triangulation", "works on another mesh"},
    {"create_union_triangulation", "works on other meshes"},
    {"create_triangulation_with_removed_cells", "works on another mesh"},
    {"extrude_triangulation", "works on another mesh"},
    {"flatten_triangulation", "works on another mesh"},
    {"extract_boundary_mesh", "works on another mesh"},
}};

char const* type_name(Type type) {
  switch (type) {
  case Type::real:
    return "number";
  case Type::count:
    return "whole number";
  case Type::flag:
    return "true|false";
  case Type::point:
    return "x, y, z";
  case Type::counts:
    return "whole numbers, separated by ','";
  case Type::integers:
    return "whole numbers (of any sign), separated by ','";
  case Type::points:
    return "points x, y, z, separated by ';'";
  case Type::steps:
    return "lists of numbers, separated by ';'";
  case Type::opening:
    return "x, y, z : radius";
  case Type::openings:
    return "x, y, z : radius, separated by ';'";
  }
  return "?";
}

std::string signature(Generator const& generator) {
  std::string text = std::string(generator.name) + " takes, separated by ':',";
  for (std::size_t i = 0; i < generator.arguments.size(); ++i) {
    Argument const& argument = generator.arguments[i];
    text +=
        std::string(i ? "; " : " ") + argument.name + " (" + type_name(argument.type) + "; default \"" + argument.standard + "\")";
  }
  return text;
}

template <class Number>
Number parse_number(std::string_view text, char const* what) {
  Number value{};
  std::string_view const digits = text.starts_with('+') ? text.substr(1) : text;
  auto const [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || end != digits.data() + digits.size())
    throw Refused{"'" + std::string(text.substr(0, 60)) + "' is not " + what};
  if constexpr (std::is_floating_point_v<Number>)
    if (!std::isfinite(value) || std::abs(value) > 1e100)
      throw Refused{"'" + std::string(text.substr(0, 60)) + "' is not a number below 1e100"};
  return value;
}
double parse_real(std::string_view text) {
  return parse_number<double>(text, "a number");
}
unsigned parse_count(std::string_view text) {
  return parse_number<unsigned>(text, "a whole number from 0 to 4294967295");
}

Point parse_point(std::string_view text) {
  auto const parts = split(text, ',');
  if (parts.size() != 3)
    throw Refused{"a point has 3 coordinates, 'x, y, z', not '" + std::string(text.substr(0, 60)) + "'"};
  return {parse_real(parts[0]), parse_real(parts[1]), parse_real(parts[2])};
}

Opening parse_opening(std::string_view text) {
  auto const parts = split(text, ':');
  if (parts.size() != 2)
    throw Refused{"'" + std::string(text.substr(0, 60)) + "' is not 'x, y, z : radius'"};
  return {parse_point(parts[0]), parse_real(parts[1])};
}

template <class Parse>
auto parse_list(std::string_view text, char separator, Parse&& parse) {
  std::vector<decltype(parse(text))> list;
  for (std::string_view const part : split(text, separator))
    list.push_back(parse(part));
  return list;
}

Value parse_value(Type type, std::string_view text) {
  switch (type) {
  case Type::real:
    return parse_real(text);
  case Type::count:
    return parse_count(text);
  case Type::flag:
    if (text != "true" && text != "false")
      throw Refused{"'" + std::string(text.substr(0, 60)) + "' is neither true nor false"};
    return text == "true";
  case Type::point:
    return parse_point(text);
  case Type::counts:
    return parse_list(text, ',', parse_count);
  case Type::integers:
    return parse_list(text, ',', [](std::string_view part) { return parse_number<int>(part, "a whole number"); });
  case Type::points:
    return parse_list(text, ';', parse_point);
  case Type::steps:
    return parse_list(text, ';', [](std::string_view part) { return parse_list(part, ',', parse_real); });
  case Type::opening:
    return parse_opening(text);
  case Type::openings:
    return parse_list(text, ';', parse_opening);
  }
  return {};
}

/// Splits at ':'; an opening ("x, y, z : radius") has a ':' of its own, and a list of them has one for each.
std::vector<std::string> split_arguments(Generator const& generator, std::string_view text) {
  std::vector<std::string> result;
  if (trim(text).empty())
    return result;
  auto const parts = split(text, ':');
  std::size_t next = 0;
  while (next < parts.size()) {
    std::string piece(parts[next++]);
    if (result.size() < generator.arguments.size()) {
      Type const type = generator.arguments[result.size()].type;
      if (type == Type::opening && next < parts.size())
        piece.append(" : ").append(parts[next++]);
      // "a : r; b : r; c : r : next": all parts but the last of the list hold a ';'.
      while (type == Type::openings && next < parts.size()) {
        bool const last = parts[next].find(';') == std::string_view::npos;
        piece.append(" : ").append(parts[next++]);
        if (last)
          break;
      }
    }
    result.push_back(std::move(piece));
  }
  return result;
}

Arguments parse_arguments(Generator const& generator, std::string const& text) {
  std::vector<std::string> const given = split_arguments(generator, text);
  if (given.size() > generator.arguments.size())
    throw Refused{"there are " + std::to_string(given.size()) + " arguments, but " + generator.name + " takes at most " +
                  std::to_string(generator.arguments.size())};
  Arguments arguments;
  for (std::size_t i = 0; i < generator.arguments.size(); ++i) {
    Argument const& argument = generator.arguments[i];
    try {
      arguments.values.push_back(parse_value(argument.type, i < given.size() ? given[i] : std::string_view(argument.standard)));
    } catch (Refused const& refused) {
      throw Refused{std::string("argument ") + argument.name + ": " + refused.why};
    }
  }
  return arguments;
}

Generator const& find_generator(MeshSpec const& spec) {
  auto const named = [&](Generator const& candidate) { return spec.generator == candidate.name; };
  auto found = std::find_if(table().begin(), table().end(), named);
  if (found != table().end()) {
    // Where two functions have one name, the second takes lists of lists.
    auto const second = std::find_if(found + 1, table().end(), named);
    bool const lists = std::string_view(spec.arguments).substr(0, spec.arguments.find(':')).find(';') != std::string_view::npos;
    return second != table().end() && lists ? *second : *found;
  }
  std::string message = "there is no mesh generator '" + spec.generator.substr(0, 60) + "'";
  for (auto const& [name, why] : refused_generators)
    if (spec.generator == name)
      message = "the generator '" + spec.generator + "' " + std::string(why) + ", and cannot be used here";
  std::vector<std::string> const names = generator_names();
  if (std::string const near = nearest_name(spec.generator, names); !near.empty())
    message += "; did you mean '" + near + "'?";
  else
    message += ".";
  message += " Available are:";
  for (std::string const& name : names)
    message += (name == names.front() ? " " : ", ") + name;
  throw InputError("problem.mesh.generator", message);
}

}  // namespace

std::vector<std::string> generator_names() {
  std::vector<std::string> names{"box"};
  for (Generator const& generator : table())
    if (names.back() != generator.name)
      names.emplace_back(generator.name);
  return names;
}

std::unique_ptr<Grid> generate_mesh(MeshSpec const& spec) {
  Generator const& generator = find_generator(spec);
  char const* const key = "problem.mesh.arguments";
  auto const refuse = [&](std::string const& why) {
    throw InputError(key, "wrong arguments of the generator " + spec.generator + ": " + why + ". " + signature(generator));
  };
  try {
    Arguments const arguments = parse_arguments(generator, spec.arguments);
    double const cells = generator.check(arguments);
    if (!(cells < 2147483647.)) {
      std::ostringstream text;
      text << "they ask for up to " << cells << " cells; at most 2147483647 (2^31 - 1) can be indexed";
      throw Refused{text.str()};
    }
    check_memory(static_cast<std::int64_t>(cells) * bytes_per_created_cell, "the mesh");
    auto grid = std::make_unique<Grid>();
    generator.build(*grid, arguments);
    std::int64_t bad = 0;
    Point first;
    for (auto const& cell : grid->active_cell_iterators()) {
      std::array<Point, 8> vertices;
      for (unsigned v = 0; v < 8; ++v)
        vertices[v] = cell->vertex(v);
      if (cell_shape(vertices) != CellShape::good && bad++ == 0)
        first = cell->center();
    }
    if (bad > 0 || grid->n_active_cells() == 0)
      throw Refused{std::to_string(bad) + " of " + std::to_string(grid->n_active_cells()) +
                    " cells would have no volume or be folded over, the first at " + to_text(first)};
    return grid;
  } catch (Refused const& refused) {
    refuse(refused.why);
  } catch (InputError const&) {
    throw;
  } catch (EnvironmentError const&) {
    throw;
  } catch (std::bad_alloc const&) {
    throw;
  } catch (std::exception const& exception) {
    refuse("deal.II says: " + brief_message(exception));
  }
  return nullptr;
}

}  // namespace poisson::assembly
