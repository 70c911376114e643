#include "assembly/system/data_check.hpp"

#include "assembly/parallel.hpp"
#include "assembly/space/space.hpp"
#include "assembly/system/periodic.hpp"
#include "assembly/system/problem_data.hpp"
#include "gpu/core/expression_code.hpp"
#include "gpu/core/tensor_entries.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <unordered_map>
#include <unordered_set>

namespace poisson::assembly {
namespace {

/// Points at which k and f are evaluated; beyond it cells are sampled.
constexpr std::int64_t most_points_looked_at = 1 << 24;
constexpr std::int64_t cells_of_a_part = 256;
/// Parts of a face, per direction, for a finer integral of what jumps in it.
constexpr int parts_of_face = 32;
/// The same for an integral of what is smooth, on so many faces.
constexpr int parts_of_sampled_face = 8;
constexpr std::int64_t most_sampled_faces = 2048;
/// Shares of the size from which on a mesh is too coarse for a boundary value: of the whole integral, and of those of faces.
constexpr double told_of_integral = 0.1, told_of_faces = 1. / 3;
/// The same for a Dirichlet value and its interpolation at nodes, of how much it varies.
constexpr double told_of_dirichlet = 1. / 3;
/// Cells in which k is looked at along three lines through the centre: half a layer of n cells. A flat layer of the material is
/// then met by n^(1/3) / 2 of them.
constexpr std::int64_t fewest_cells_with_lines = 64, most_cells_with_lines = 1 << 15;
constexpr int points_of_line = 16;
/// k between Gauss points is told where it is that many times larger, or smaller, than at all of them.
constexpr double unseen_factor = 2;
/// From this alpha h / k on a Robin condition holds u, nearly as a Dirichlet one does; the latter is how large it is where two of
/// them meet. What flows there between two of them is too large by 5 % then, by 30 % at 12, by 90 % at 30; between one and a
/// Dirichlet condition by 10 % at 2, 16 % at 3, 70 % at 12, 180 % at 30 (of 8^2 cells, u = 0 and 1 on two sides, against 256^2).
constexpr double stiff = 2, stiff_pair = 3;

/// Whether two values differ by more than a factor of two, or in sign.
bool differ(double a, double b) {
  return std::abs(a - b) > 0.5 * std::max(std::abs(a), std::abs(b));
}

/// Whether f jumps on the way from a to b, where it has the values fa and fb: by halving the way, towards the larger difference.
bool jumps_between(Function const& f, Point3 a, Point3 b, double fa, double fb) {
  constexpr int halvings = 30;
  double const all = std::abs(fb - fa);
  for (int step = 0; step < halvings; ++step) {
    Point3 middle{};
    for (std::size_t d = 0; d < 3; ++d)
      middle[d] = 0.5 * (a[d] + b[d]);
    double const value = f(middle);
    if (std::abs(value - fa) > std::abs(fb - value)) {
      b = middle;
      fb = value;
    } else {
      a = middle;
      fa = value;
    }
  }
  return differ(fa, fb) && std::abs(fb - fa) > 0.1 * all;
}

/// The first pair (p, q) of neighbours in a tensor product of m points in each of `directions` directions for which action(p, q).
template <class Action>
bool any_neighbors(int m, int directions, Action const& action) {
  int const size = directions == 3 ? m * m * m : m * m;
  for (int q = 0; q < size; ++q)
    for (int d = 0, stride = 1; d < directions; ++d, stride *= m)
      if (q / stride % m + 1 < m && action(q, q + stride))
        return true;
  return false;
}

/// Points of one cell after the other.
struct CellPoints {
  CellPoints(Space const& of, ProblemData const& problem) : space(of), data(problem), geometry(of), dofs(of.n_local) {}
  void reset(std::int64_t cell) {
    space.dofs(cell, dofs.data());
    geometry.reset(cell, dofs.data());
  }
  void place(PointTables const& map) {
    auto const n = static_cast<std::size_t>(geometry.n_nodes());
    x.resize(static_cast<std::size_t>(map.n_points));
    for (std::size_t q = 0; q < x.size(); ++q)
      x[q] = geometry.point(map.values.data() + q * n);
  }
  /// The area of a face for each unit of its reference face.
  [[nodiscard]] double area(PointTables const& map, int face, std::size_t q) const {
    auto const c = cofactors(geometry.jacobian(map.gradients.data() + 3 * q * static_cast<std::size_t>(geometry.n_nodes())));
    int const d = face / 2;
    return std::hypot(c[d], c[3 + d], c[6 + d]);
  }
  /// Of the cell at a face, normal to it, at the only point of `map`, which is in x[0].
  [[nodiscard]] double thickness_over_k(PointTables const& map, BoundaryFace const& face) const {
    auto const jacobian = geometry.jacobian(map.gradients.data());
    auto const c = cofactors(jacobian);
    int const d = face.face / 2;
    double const size = std::hypot(c[d], c[3 + d], c[6 + d]);
    Point3 const normal{c[d] / size, c[3 + d] / size, c[6 + d] / size};
    unsigned const material = space.material(face.cell);
    Point3 const flux = data.coefficient(material).seen_from(geometry.middle(), x[0], material) * normal;
    double const determinant = jacobian[0] * c[0] + jacobian[1] * c[1] + jacobian[2] * c[2];
    return std::abs(determinant) / size / (flux[0] * normal[0] + flux[1] * normal[1] + flux[2] * normal[2]);
  }
  Space const& space;
  ProblemData const& data;
  CellGeometry geometry;
  std::vector<std::int32_t> dofs;
  std::vector<Point3> x;
  std::vector<Tensor> k;
  std::vector<double> values;
};

bool coefficients_differ(Tensor const& a, Tensor const& b) {
  if (differ(a.xx(), b.xx()) || differ(a.yy(), b.yy()) || differ(a.zz(), b.zz()))
    return true;
  constexpr std::array<std::array<int, 2>, 3> pair{{{0, 1}, {0, 2}, {1, 2}}};  // of the entries xy, xz, yz
  for (std::size_t e = 0; e < 3; ++e) {
    auto const scale = [&](Tensor const& t) { return std::sqrt(t.entries[pair[e][0]] * t.entries[pair[e][1]]); };
    if (std::abs(a.entries[3 + e] - b.entries[3 + e]) > 0.5 * std::max(scale(a), scale(b)))
      return true;
  }
  return false;
}

bool k_jumps(CellPoints& cell, std::int64_t number, int m) {
  unsigned const material = cell.space.material(number);
  Coefficient const& coefficient = cell.data.coefficient(material);
  if (coefficient.is_constant())
    return false;
  cell.k.clear();
  for (Point3 const& x : cell.x)
    cell.k.push_back(coefficient(x, material));
  return any_neighbors(m, 3, [&](int p, int q) { return coefficients_differ(cell.k[p], cell.k[q]); });
}

bool value_jumps(CellPoints& cell, Function const& f, int m, int directions) {
  cell.values.clear();
  for (Point3 const& x : cell.x)
    cell.values.push_back(f(x));
  return any_neighbors(m, directions, [&](int p, int q) {
    return differ(cell.values[p], cell.values[q]) && jumps_between(f, cell.x[p], cell.x[q], cell.values[p], cell.values[q]);
  });
}

void count(DataFindings::Jumps& jumps, double weight, Point3 const& where) {
  if (jumps.count == 0)
    jumps.where = where;
  jumps.count += weight;
}

/// Of k, and of f.
struct CellJumps {
  DataFindings::Jumps k, f;
};

std::uint64_t mixed(std::int64_t number) {
  return (static_cast<std::uint64_t>(number) * 0x9E3779B97F4A7C15U) >> 33U;
}

/// Of n cells or rows of them, one in `stride`. Not every n-th: on a box that could be the same plane again and again.
bool is_looked_at(std::int64_t number, std::int64_t stride) {
  return stride <= 1 || static_cast<std::int64_t>(mixed(number)) % stride == 0;
}

/// The Gauss points of the cells of a box, m in each direction of a cell: their coordinates along the axes.
struct PointsOfBox {
  PointsOfBox(Space const& space, ProblemData const& data, PointTables const& map, int points)
      : m(points), cells(space.box->cells) {
    CellPoints cell(space, data);
    std::array<std::int64_t, 3> const stride{1, cells[0], cells[0] * cells[1]};
    std::size_t step = 1;
    for (std::size_t d = 0; d < 3; ++d, step *= static_cast<std::size_t>(m))
      for (std::int64_t c = 0; c < cells[d]; ++c) {
        cell.reset(c * stride[d]);
        cell.place(map);
        for (std::size_t q = 0; q < static_cast<std::size_t>(m); ++q)
          x[d].push_back(cell.x[q * step][d]);
      }
  }
  [[nodiscard]] Point3 point(std::int64_t cx, std::int64_t cy, std::int64_t cz, int q) const {
    return {x[0][static_cast<std::size_t>(cx * m + q % m)], x[1][static_cast<std::size_t>(cy * m + q / m % m)],
            x[2][static_cast<std::size_t>(cz * m + q / (m * m))]};
  }
  int m;
  std::array<std::int64_t, 3> cells;
  std::array<std::vector<double>, 3> x;
};

/// Looks at a box row by row: an expression takes some nanoseconds a point where it is evaluated on lines, and a hundred where it
/// is evaluated at one point after the other.
class RowsOfBox {
public:
  RowsOfBox(Space const& space, ProblemData const& data, PointsOfBox const& points)
      : space_(space),
        data_(data),
        points_(points),
        values_(static_cast<std::size_t>(tensor_entries * points.m * points.m) * points.x[0].size()) {
    auto const add = [&](Function const& f, std::vector<LineEvaluator>& to) {
      to.emplace_back(f.code(), std::ssize(points.x[0]), points.x[0].data());
    };
    k_.resize(data_.coefficients.size());
    for (std::size_t i = 0; i < k_.size(); ++i)
      if (!data_.coefficients[i].is_constant())
        for (Function const& component : data_.coefficients[i].components)
          add(component, k_[i]);
    f_.resize(data_.sources.size());
    for (std::size_t i = 0; i < f_.size(); ++i)
      if (data_.sources[i].can_jump())
        add(data_.sources[i], f_[i]);
  }

  /// Counts the cells of a row where k, or f, jumps, each `weight` times.
  void look_at(std::int64_t row, double weight, CellJumps& found) {
    for (std::size_t i = 0; i < k_.size(); ++i)
      if (!k_[i].empty())
        look(
            row, k_[i], weight, found.k, [&](unsigned material) { return data_.coefficient_of.at(material) == i; },
            [](Point3 const&, Point3 const&, double, double) { return true; });
    for (std::size_t i = 0; i < f_.size(); ++i)
      if (!f_[i].empty())
        look(
            row, f_[i], weight, found.f, [&](unsigned material) { return &data_.source(material) == &data_.sources[i]; },
            [&](Point3 const& a, Point3 const& b, double at_a, double at_b) {
              return jumps_between(data_.sources[i], a, b, at_a, at_b);
            });
  }

private:
  template <class Has, class Jumps>
  void look(std::int64_t row, std::vector<LineEvaluator>& components, double weight, DataFindings::Jumps& found, Has const& has,
            Jumps const& jumps) {
    int const m = points_.m;
    std::int64_t const nx = points_.cells[0], cy = row % points_.cells[1], cz = row / points_.cells[1];
    has_.clear();
    bool const one = space_.material_ids.size() == 1;
    bool any = false;
    for (std::int64_t c = 0; c < nx; ++c) {
      has_.push_back(one && c > 0 ? has_[0] : has(space_.material(row * nx + c)));
      any = any || has_.back();
    }
    if (!any)
      return;
    std::size_t const line = points_.x[0].size(), size = static_cast<std::size_t>(m * m) * line;
    for (std::size_t e = 0; e < components.size(); ++e)
      for (int z = 0; z < m; ++z)
        for (int y = 0; y < m; ++y)
          components[e](points_.x[1][static_cast<std::size_t>(cy * m + y)], points_.x[2][static_cast<std::size_t>(cz * m + z)],
                        values_.data() + e * size + static_cast<std::size_t>(z * m + y) * line);
    for (std::int64_t c = 0; c < nx; ++c) {
      if (!has_[static_cast<std::size_t>(c)])
        continue;
      double const* const of_cell = values_.data() + c * m;
      auto const value = [&](std::size_t e, int q) {
        return of_cell[e * size + static_cast<std::size_t>(q / m) * line + static_cast<std::size_t>(q % m)];
      };
      auto const tensor = [&](int q) {
        Tensor k;
        for (std::size_t e = 0; e < k.entries.size(); ++e)
          k.entries[e] = value(e, q);
        return k;
      };
      bool const found_one = any_neighbors(m, 3, [&](int p, int q) {
        if (components.size() == tensor_entries)
          return coefficients_differ(tensor(p), tensor(q));
        for (std::size_t e = 0; e < components.size(); ++e)
          if (differ(value(e, p), value(e, q)) &&
              jumps(points_.point(c, cy, cz, p), points_.point(c, cy, cz, q), value(e, p), value(e, q)))
            return true;
        return false;
      });
      if (found_one)
        count(found, weight, points_.point(c, cy, cz, m * m * m / 2));
    }
  }

  Space const& space_;
  ProblemData const& data_;
  PointsOfBox const& points_;
  std::vector<double> values_;  ///< of a row: by component, then by line of points, z slowest
  std::vector<bool> has_;
  std::vector<std::vector<LineEvaluator>> k_, f_;  ///< by expression, as far as they vary, and may jump
};

void check_cells(Space const& space, ReferenceElement const& element, ProblemData const& data, DataFindings& found) {
  bool const any_source = std::any_of(data.sources.begin(), data.sources.end(), [](Function const& f) { return f.can_jump(); });
  if (data.constant_coefficient() && !any_source)
    return;
  auto const map = tabulate(geometry_nodes_1d(space, element), element.volume_points);
  int const m = element.n_gauss();
  std::int64_t const stride = std::max<std::int64_t>(1, n_parts(space.n_cells * map.n_points, most_points_looked_at));
  std::vector<CellJumps> parts(static_cast<std::size_t>(n_parts(space.n_cells, cells_of_a_part)));
  auto const is_code = [](Function const& f) { return f.is_code() || !f.can_jump(); };
  if (space.box && data.coefficient_code() && std::all_of(data.sources.begin(), data.sources.end(), is_code)) {
    PointsOfBox const points(space, data, map, m);
    std::int64_t const rows = points.cells[1] * points.cells[2];
    std::int64_t const rows_of_a_part = std::max<std::int64_t>(1, cells_of_a_part / points.cells[0]);
    parts.resize(static_cast<std::size_t>(n_parts(rows, rows_of_a_part)));
    parallel_for(
        std::ssize(parts), [&] { return RowsOfBox(space, data, points); },
        [&](RowsOfBox& box, std::int64_t const p) {
          auto const [begin, end] = part(rows, rows_of_a_part, p);
          for (auto row = begin; row < end; ++row)
            if (is_looked_at(row, stride))
              box.look_at(row, static_cast<double>(stride), parts[p]);
        });
  } else {
    parallel_for(
        std::ssize(parts), [&] { return CellPoints(space, data); },
        [&](CellPoints& cell, std::int64_t const p) {
          auto const [begin, end] = part(space.n_cells, cells_of_a_part, p);
          for (auto c = begin; c < end; ++c) {
            if (!is_looked_at(c, stride))
              continue;
            cell.reset(c);
            cell.place(map);
            Point3 const centre = cell.x[cell.x.size() / 2];
            if (k_jumps(cell, c, m))
              count(parts[p].k, static_cast<double>(stride), centre);
            if (any_source)
              if (Function const& f = cell.data.source(space.material(c)); f.can_jump() && value_jumps(cell, f, m, 3))
                count(parts[p].f, static_cast<double>(stride), centre);
          }
        });
  }
  for (CellJumps const& of_part : parts) {
    if (of_part.k.count > 0)
      count(found.jumps[0], of_part.k.count, of_part.k.where);
    if (of_part.f.count > 0)
      count(found.jumps[1], of_part.f.count, of_part.f.where);
  }
}

/// Points on the three lines through the centre of a cell.
std::vector<Point3> points_of_lines() {
  std::vector<Point3> points;
  for (std::size_t d = 0; d < 3; ++d)
    for (int i = 0; i < points_of_line; ++i) {
      Point3& x = points.emplace_back(Point3{0.5, 0.5, 0.5});
      x[d] = (i + 0.5) / points_of_line;
    }
  return points;
}

/// The least and largest entries of k on the diagonal at the points of a cell.
std::array<std::pair<double, double>, 3> range_of_k(CellPoints const& cell, Coefficient const& coefficient, unsigned material) {
  constexpr double infinity = DataFindings::infinity;
  std::array<std::pair<double, double>, 3> range;
  range.fill({infinity, -infinity});
  for (Point3 const& x : cell.x) {
    Tensor const k = coefficient(x, material);
    for (std::size_t d = 0; d < 3; ++d)
      range[d] = {std::min(range[d].first, k.entries[d]), std::max(range[d].second, k.entries[d])};
  }
  return range;
}

/// Looks for layers and particles of k between the Gauss points: any that is flat meets lines in all directions but its own.
void check_between_points(Space const& space, ReferenceElement const& element, ProblemData const& data, DataFindings& found) {
  if (data.constant_coefficient() || space.n_cells == 0)
    return;
  auto const& map_nodes = geometry_nodes_1d(space, element);
  PointTables const gauss = tabulate(map_nodes, element.volume_points), lines = tabulate(map_nodes, points_of_lines());
  auto const half_a_layer = static_cast<std::int64_t>(std::pow(static_cast<double>(space.n_cells), 2. / 3) / 2);
  std::int64_t const n = std::min(space.n_cells, std::clamp(half_a_layer, fewest_cells_with_lines, most_cells_with_lines));
  std::vector<DataFindings::Unseen> parts(static_cast<std::size_t>(n_parts(n, cells_of_a_part)));
  parallel_for(
      std::ssize(parts), [&] { return CellPoints(space, data); },
      [&](CellPoints& cell, std::int64_t const p) {
        auto const [begin, end] = part(n, cells_of_a_part, p);
        for (auto i = begin; i < end; ++i) {
          // Spread over the mesh, and not by a step that could be that of a box.
          std::int64_t const number =
              n == space.n_cells ? i : static_cast<std::int64_t>(mixed(i) % static_cast<std::uint64_t>(space.n_cells));
          unsigned const material = space.material(number);
          Coefficient const& coefficient = data.coefficient(material);
          DataFindings::Unseen& of_part = parts[static_cast<std::size_t>(p)];
          of_part.looked_at += 1;
          if (coefficient.is_constant())
            continue;
          cell.reset(number);
          cell.place(gauss);
          if (k_jumps(cell, number, element.n_gauss()))
            continue;
          auto const seen = range_of_k(cell, coefficient, material);
          cell.place(lines);
          auto const all = range_of_k(cell, coefficient, material);
          for (std::size_t d = 0; d < 3; ++d)
            if (all[d].second > unseen_factor * seen[d].second || unseen_factor * all[d].first < seen[d].first) {
              of_part.add({1, 0, cell.geometry.middle()});
              break;
            }
        }
      });
  for (DataFindings::Unseen const& of_part : parts)
    found.unseen.add(of_part);
}

/// Points in the middle of equal parts of a face, x fastest in its two directions.
std::vector<Point3> middles_of_face(int face, int parts) {
  std::vector<Point3> points;
  std::size_t const d = static_cast<std::size_t>(face) / 2;
  for (int j = 0; j < parts; ++j)
    for (int i = 0; i < parts; ++i) {
      Point3& x = points.emplace_back();
      x[d] = face % 2;
      x[(d + 1) % 3] = (i + 0.5) / parts;
      x[(d + 2) % 3] = (j + 0.5) / parts;
    }
  return points;
}

/// Calls action(face, index of its condition) for the boundary faces, and the faces of surfaces inside the mesh, that have one. Of
/// several parts of a mesh one has the first cell of a face inside.
template <class Action>
void for_faces_with_conditions(Space const& space, ProblemData const& data, Action const& action) {
  auto entry = data.boundary_of.end();  // of the face before: most faces have its id
  for (BoundaryFace const& face : space.boundary_faces) {
    if (entry == data.boundary_of.end() || entry->first != face.boundary_id)
      entry = data.boundary_of.find(face.boundary_id);
    if (entry != data.boundary_of.end())
      action(face, entry->second);
  }
  for (InnerFace const& face : space.inner_faces)
    if (auto const inner = data.inner_of.find(face.id); inner != data.inner_of.end() && face.cells[0] >= 0)
      action(BoundaryFace{face.cells[0], face.id, face.faces[0]}, inner->second);
}

/// Compares a Dirichlet value with its interpolation at the nodes of a face, at the points of `map`, where the cell's points are.
void sample_dirichlet(CellPoints const& cell, PointTables const& map, PointTables const& shape, int face,
                      std::vector<int> const& nodes, Function const& value, DataFindings::Jumps& jumps) {
  std::vector<double> at_nodes;
  for (int const i : nodes)
    at_nodes.push_back(value(cell.space.point(cell.dofs[i])));
  double sum = 0, finer = 0, difference = 0, size = 0, low = DataFindings::infinity, high = -low;
  for (std::size_t q = 0; q < cell.x.size(); ++q) {
    double interpolated = 0;
    for (std::size_t i = 0; i < nodes.size(); ++i)
      interpolated +=
          shape.values[q * static_cast<std::size_t>(shape.n_functions) + static_cast<std::size_t>(nodes[i])] * at_nodes[i];
    double const area = cell.area(map, face, q) / map.n_points, g = value(cell.x[q]);
    size += area;
    sum += area * interpolated;
    finer += area * g;
    difference += area * std::abs(g - interpolated);
    low = std::min({low, g, interpolated});
    high = std::max({high, g, interpolated});
  }
  if (!std::isfinite(sum) || !std::isfinite(finer))
    return;
  jumps.sampled += sum;
  jumps.sampled_finer += finer;
  jumps.sampled_difference += difference;
  jumps.sampled_area += size;
  jumps.sampled_low = std::min(jumps.sampled_low, low);
  jumps.sampled_high = std::max(jumps.sampled_high, high);
}

void check_faces(Space const& space, ReferenceElement const& element, ProblemData const& data, DataFindings& found) {
  auto const& map_nodes = geometry_nodes_1d(space, element);
  std::array<PointTables, 6> gauss, fine, sampled;
  for (int face = 0; face < 6; ++face)
    gauss[face] = tabulate(map_nodes, element.face_points[face]);
  std::array<std::vector<int>, 6> nodes;
  for (int face = 0; face < 6; ++face)
    nodes[face] = element.face_nodes(face);
  std::array<PointTables, 6> interpolation;
  CellPoints cell(space, data);
  DataFindings::Ranges& ranges = found.ranges;
  std::vector<bool> jump, done(data.boundary.size(), false);
  std::vector<std::int64_t> n_faces(data.boundary.size(), 0);
  std::int64_t const one_of = std::ssize(space.boundary_faces) / most_sampled_faces + 1;
  for (BoundaryData const& condition : data.boundary)
    jump.push_back(condition.value.can_jump());
  for_faces_with_conditions(space, data, [&](BoundaryFace const& face, std::size_t entry) {
    if (done[entry])
      return;
    BoundaryData const& condition = data.boundary[entry];
    bool const dirichlet = condition.type == BoundaryType::dirichlet;
    done[entry] = condition.type == BoundaryType::periodic || condition.value.is_constant();  // its first face tells all
    if (condition.type == BoundaryType::periodic || condition.type == BoundaryType::robin)
      ranges.known = 0;
    if (condition.type == BoundaryType::periodic)
      return;
    auto const add_inflow = [&](double g) {
      ranges.inflow_low = std::min(ranges.inflow_low, g);
      ranges.inflow_high = std::max(ranges.inflow_high, g);
    };
    auto const add_value = [&](double u) {
      ranges.dirichlet_low = std::min(ranges.dirichlet_low, u);
      ranges.dirichlet_high = std::max(ranges.dirichlet_high, u);
    };
    if (condition.value.is_constant()) {
      dirichlet ? add_value(condition.value({})) : add_inflow(condition.value({}));
      return;
    }
    cell.reset(face.cell);
    if (dirichlet)
      for (int const i : nodes[face.face])
        add_value(condition.value(space.point(cell.dofs[i])));
    DataFindings::Jumps& jumps = found.jumps[2 + entry];
    jumps.dirichlet = dirichlet ? 1 : 0;
    bool const is_sampled = n_faces[entry]++ % one_of == 0;
    if (dirichlet && is_sampled) {
      PointTables &table = sampled[face.face], &shape = interpolation[face.face];
      if (table.n_points == 0)
        table = tabulate(map_nodes, middles_of_face(face.face, parts_of_sampled_face));
      if (shape.n_points == 0)
        shape = tabulate(element.nodes, middles_of_face(face.face, parts_of_sampled_face));
      cell.place(table);
      sample_dirichlet(cell, table, shape, face.face, nodes[face.face], condition.value, jumps);
    }
    if (dirichlet && !jump[entry])
      return;
    cell.place(gauss[face.face]);
    bool const here = jump[entry] && value_jumps(cell, condition.value, element.n_gauss(), 2);
    if (here)
      count(jumps, 1, cell.x[cell.x.size() / 2]);
    if (dirichlet)
      return;
    double integral = 0;
    for (std::size_t q = 0; q < cell.x.size(); ++q) {
      double const g = condition.value(cell.x[q]);
      add_inflow(g);
      integral += element.face_weights[q] * cell.area(gauss[face.face], face.face, q) * g;
    }
    if (!here && is_sampled) {
      PointTables& table = sampled[face.face];
      if (table.n_points == 0)
        table = tabulate(map_nodes, middles_of_face(face.face, parts_of_sampled_face));
      cell.place(table);
      double sum = 0, size = 0;
      for (std::size_t q = 0; q < cell.x.size(); ++q) {
        double const g = cell.area(table, face.face, q) * condition.value(cell.x[q]) / table.n_points;
        sum += g;
        size += std::abs(g);
      }
      if (std::isfinite(sum)) {
        jumps.sampled += integral;
        jumps.sampled_finer += sum;
        jumps.sampled_size += size;
        jumps.sampled_difference += std::abs(sum - integral);
      }
    }
    double finer = integral;
    if (here) {
      PointTables& table = fine[face.face];
      if (table.n_points == 0)
        table = tabulate(map_nodes, middles_of_face(face.face, parts_of_face));
      cell.place(table);
      finer = 0;
      for (std::size_t q = 0; q < cell.x.size(); ++q)
        finer += cell.area(table, face.face, q) * condition.value(cell.x[q]) / (parts_of_face * parts_of_face);
    }
    jumps.integral += integral;
    jumps.finer += finer;
  });
}

/// Whether a face of a box has a node on another side of it.
bool touches_another_side(Space const& space, BoundaryFace const& face) {
  auto const at = space.box_cell(face.cell);
  for (std::size_t d = 0; d < 3; ++d)
    if (static_cast<int>(d) != face.face / 2 && (at[d] == 0 || at[d] + 1 == space.box->cells[d]))
      return true;
  return false;
}

/// Whether only faces at the edges of a box have nodes with two conditions: a whole side has one.
bool meet_at_edges_alone(Space const& space) {
  return space.box && space.sides_have_ids && space.inner_faces.empty();
}

/// Where Robin conditions that hold u meet others that do.
void check_robin(Space const& space, ReferenceElement const& element, ProblemData const& data,
                 std::function<bool(std::int32_t unknown)> const& counts, DataFindings& found) {
  auto const number_of = [&](BoundaryType type) {
    return std::count_if(data.boundary.begin(), data.boundary.end(), [&](BoundaryData const& of) { return of.type == type; });
  };
  if (number_of(BoundaryType::robin) == 0 || number_of(BoundaryType::robin) + number_of(BoundaryType::dirichlet) < 2)
    return;
  struct Held {
    std::size_t entry;
    double value, stiffness;
  };
  std::unordered_map<std::int32_t, Held> held;
  std::unordered_set<std::int32_t> met;
  std::array<PointTables, 6> middle;
  std::array<std::vector<int>, 6> nodes;
  for (int face = 0; face < 6; ++face) {
    middle[face] = tabulate(geometry_nodes_1d(space, element), middles_of_face(face, 1));
    nodes[face] = element.face_nodes(face);
  }
  CellPoints cell(space, data);
  bool const at_edges_alone = meet_at_edges_alone(space);
  for_faces_with_conditions(space, data, [&](BoundaryFace const& face, std::size_t entry) {
    BoundaryData const& condition = data.boundary[entry];
    bool const is_robin = condition.type == BoundaryType::robin;
    if ((!is_robin && condition.type != BoundaryType::dirichlet) || (at_edges_alone && !touches_another_side(space, face)))
      return;
    cell.reset(face.cell);
    double stiffness = std::numeric_limits<double>::infinity();
    if (is_robin) {
      cell.place(middle[face.face]);
      stiffness = condition.alpha(cell.x[0]) * cell.thickness_over_k(middle[face.face], face) / space.order;
    }
    if (!(stiffness >= stiff))
      return;
    for (int const i : nodes[face.face]) {
      std::int32_t const unknown = cell.dofs[i];
      if (!counts(unknown))
        continue;
      Point3 const x = space.point(unknown);
      double const value = is_robin ? condition.value(x) / condition.alpha(x) : condition.value(x);
      auto const [there, is_new] = held.emplace(unknown, Held{entry, value, stiffness});
      Held const& other = there->second;
      bool const differs = std::abs(value - other.value) > 1e-6 * std::max(std::abs(value), std::abs(other.value));
      double const larger = std::max(stiffness, other.stiffness), smaller = std::min(stiffness, other.stiffness);
      if (is_new || other.entry == entry || !differs || std::isinf(smaller) || (smaller < stiff_pair && !std::isinf(larger)))
        continue;
      bool const is_first = entry < other.entry;
      found.robin_meeting.add(
          {met.insert(unknown).second ? 1. : 0.,
           x,
           {is_first ? value : other.value, is_first ? other.value : value},
           {static_cast<std::int32_t>(std::min(entry, other.entry)), static_cast<std::int32_t>(std::max(entry, other.entry))},
           std::min(stiffness, other.stiffness)});
    }
  });
}

/// Where u has Dirichlet values on both sides of a periodic condition that differ by another number than its jump.
void check_periodic(Space const& space, ReferenceElement const& element, ProblemData const& data,
                    std::function<bool(std::int32_t unknown)> const& counts, DataFindings& found) {
  auto const is_dirichlet = [](BoundaryData const& of) { return of.type == BoundaryType::dirichlet; };
  if (!data.has_periodic_boundaries() || std::none_of(data.boundary.begin(), data.boundary.end(), is_dirichlet))
    return;
  std::array<std::vector<int>, 6> nodes;
  for (int face = 0; face < 6; ++face)
    nodes[face] = element.face_nodes(face);
  std::vector<std::int32_t> dofs(static_cast<std::size_t>(space.n_local));
  std::unordered_map<std::int32_t, std::size_t> condition_at;  // of nodes with Dirichlet values: the condition that counts
  bool const at_edges_alone = meet_at_edges_alone(space);
  auto const for_nodes = [&](auto const& of_condition, auto const& action) {
    for_faces_with_conditions(space, data, [&](BoundaryFace const& face, std::size_t entry) {
      if (!of_condition(data.boundary[entry]) || (at_edges_alone && !touches_another_side(space, face)))
        return;
      space.dofs(face.cell, dofs.data());
      for (int const i : nodes[face.face])
        action(face, entry, dofs[i]);
    });
  };
  for_nodes(is_dirichlet, [&](BoundaryFace const&, std::size_t entry, std::int32_t unknown) {
    std::size_t& held = condition_at.emplace(unknown, entry).first->second;
    held = std::min(held, entry);
  });
  std::unordered_set<std::int32_t> met;
  double const range = found.ranges.dirichlet_high - found.ranges.dirichlet_low;
  auto const compare = [&](std::size_t periodic, std::int32_t unknown, std::size_t of_first, Point3 const& image,
                           std::size_t of_image) {
    Point3 const x = space.point(unknown);
    double const jump = data.boundary[periodic].value(image), here = data.boundary[of_first].value(x),
                 there = data.boundary[of_image].value(image) - jump;
    if (!(std::abs(there - here) > 1e-6 * std::max(range, std::abs(jump))))
      return;
    if (found.periodic_meeting.count == 0)
      found.periodic_meeting = {0, x, {here, there}, {static_cast<std::int32_t>(of_first), static_cast<std::int32_t>(periodic)}, 0};
    found.periodic_meeting.count += met.insert(unknown).second ? 1 : 0;
  };
  auto const is_periodic = [](BoundaryData const& of) { return of.type == BoundaryType::periodic; };
  auto const joins_opposite_sides = [&](BoundaryData const& of) {
    return !is_periodic(of) || (!of.map && (of.sides[0] ^ of.sides[1]) == 1);
  };
  if (space.box && space.sides_have_ids && std::ranges::all_of(data.boundary, joins_opposite_sides)) {
    // A part knows, too: one condition has a whole side, and so both ends of another one.
    for_nodes(is_periodic, [&](BoundaryFace const& face, std::size_t entry, std::int32_t unknown) {
      auto const held = condition_at.find(unknown);
      if (face.boundary_id != data.boundary[entry].sides[0] || held == condition_at.end() || !counts(unknown))
        return;
      auto const d = static_cast<std::size_t>(face.face / 2);
      Point3 image = space.point(unknown);
      image[d] += face.face % 2 == 0 ? space.box->extent[d] : -space.box->extent[d];
      compare(entry, unknown, held->second, image, held->second);
    });
    return;
  }
  if (space.n_cells_of_whole != 0)
    return;
  for (PeriodicNodePair const& pair : periodic_pairs(periodic_nodes(space, element, data), data)) {
    auto const first = condition_at.find(static_cast<std::int32_t>(pair.first)),
               second = condition_at.find(static_cast<std::int32_t>(pair.second));
    if (first != condition_at.end() && second != condition_at.end() && counts(first->first))
      compare(pair.condition, first->first, first->second, pair.at_second, second->second);
  }
}

}  // namespace

void check_nodes(Space const& space, ReferenceElement const& element, ProblemData const& data,
                 std::function<bool(std::int64_t unknown)> const& counted, DataFindings& found) {
  auto const counts = [&](std::int32_t unknown) { return !counted || counted(unknown); };
  check_periodic(space, element, data, counts, found);
  check_robin(space, element, data, counts, found);
  std::vector<std::size_t> conditions;
  for (std::size_t i = 0; i < data.boundary.size(); ++i)
    if (data.boundary[i].type == BoundaryType::dirichlet)
      conditions.push_back(i);
  auto const same = [&](std::size_t i) {
    Function const &a = data.boundary[conditions[0]].value, &b = data.boundary[i].value;
    return a.is_constant() && b.is_constant() && a({}) == b({});
  };
  bool const may_meet = !conditions.empty() && !std::all_of(conditions.begin(), conditions.end(), same);
  for (PointLoads::Load const& load : data.point_loads.loads) {
    if (!counts(load.unknown))
      continue;
    found.sources.resize(std::max<std::size_t>(found.sources.size(), static_cast<std::size_t>(load.source) + 1));
    found.sources[static_cast<std::size_t>(load.source)].all += std::abs(load.value);
  }
  if (conditions.empty() || (!may_meet && data.point_loads.loads.empty()))
    return;
  std::unordered_map<std::int32_t, std::size_t> condition_at;
  std::unordered_set<std::int32_t> met;
  std::array<std::vector<int>, 6> nodes;
  for (int face = 0; face < 6; ++face)
    nodes[face] = element.face_nodes(face);
  std::vector<std::int32_t> dofs(space.n_local);
  bool const at_edges_alone = meet_at_edges_alone(space) && data.point_loads.loads.empty();  // these may lie anywhere
  for_faces_with_conditions(space, data, [&](BoundaryFace const& face, std::size_t entry) {
    if (data.boundary[entry].type != BoundaryType::dirichlet || (at_edges_alone && !touches_another_side(space, face)))
      return;
    space.dofs(face.cell, dofs.data());
    for (int const i : nodes[face.face]) {
      if (!counts(dofs[i]))
        continue;
      auto const [there, is_new] = condition_at.emplace(dofs[i], entry);
      if (is_new || there->second == entry)
        continue;
      Point3 const x = space.point(dofs[i]);
      std::size_t const first = std::min(there->second, entry), second = std::max(there->second, entry);
      double const a = data.boundary[first].value(x), b = data.boundary[second].value(x);
      double const range = found.ranges.dirichlet_high - found.ranges.dirichlet_low;
      there->second = first;
      if (!(std::abs(a - b) > 1e-6 * range))
        continue;
      if (found.meeting.count == 0)
        found.meeting = {0, x, {a, b}, {static_cast<std::int32_t>(first), static_cast<std::int32_t>(second)}, 0};
      found.meeting.count += met.insert(dofs[i]).second ? 1 : 0;
    }
  });
  for (PointLoads::Load const& load : data.point_loads.loads)
    if (condition_at.contains(load.unknown))
      found.sources[static_cast<std::size_t>(load.source)].lost += std::abs(load.value);
}

namespace {

std::string number(double value) {
  return to_text(value, 6);
}

std::string cells(double count, char const* what) {
  return std::to_string(static_cast<std::int64_t>(count)) + " " + what + (count == 1 ? "" : "s");
}

}  // namespace

DataFindings check_data(Space const& space, ReferenceElement const& element, ProblemData const& data) {
  DataFindings found;
  found.jumps.resize(2 + data.boundary.size());
  for (Function const& f : data.sources)
    if (!f.is_constant()) {
      found.ranges.known = 0;
    } else {
      found.ranges.inflow_low = std::min(found.ranges.inflow_low, f({}));
      found.ranges.inflow_high = std::max(found.ranges.inflow_high, f({}));
    }
  for (PointLoads::Load const& load : data.point_loads.loads) {
    found.ranges.inflow_low = std::min(found.ranges.inflow_low, load.value);
    found.ranges.inflow_high = std::max(found.ranges.inflow_high, load.value);
  }
  check_cells(space, element, data, found);
  check_between_points(space, element, data, found);
  check_faces(space, element, data, found);
  if (space.n_cells_of_whole == 0)  // of a part, unknowns on its rim may have their faces elsewhere
    check_nodes(space, element, data, {}, found);
  return found;
}

void DataFindings::add(DataFindings const& part) {
  jumps.resize(std::max(jumps.size(), part.jumps.size()));
  for (std::size_t i = 0; i < part.jumps.size(); ++i)
    jumps[i].add(part.jumps[i]);
  unseen.add(part.unseen);
  ranges.dirichlet_low = std::min(ranges.dirichlet_low, part.ranges.dirichlet_low);
  ranges.dirichlet_high = std::max(ranges.dirichlet_high, part.ranges.dirichlet_high);
  ranges.inflow_low = std::min(ranges.inflow_low, part.ranges.inflow_low);
  ranges.inflow_high = std::max(ranges.inflow_high, part.ranges.inflow_high);
  ranges.known = std::min(ranges.known, part.ranges.known);
  sources.resize(std::max(sources.size(), part.sources.size()));
  for (std::size_t i = 0; i < part.sources.size(); ++i) {
    sources[i].all += part.sources[i].all;
    sources[i].lost += part.sources[i].lost;
  }
  meeting.add(part.meeting);
  periodic_meeting.add(part.periodic_meeting);
  robin_meeting.add(part.robin_meeting);
}

void DataFindings::Jumps::add(Jumps const& part) {
  if (count == 0)
    where = part.where;
  count += part.count;
  integral += part.integral;
  finer += part.finer;
  dirichlet = std::max(dirichlet, part.dirichlet);
  sampled += part.sampled;
  sampled_finer += part.sampled_finer;
  sampled_size += part.sampled_size;
  sampled_difference += part.sampled_difference;
  sampled_area += part.sampled_area;
  sampled_low = std::min(sampled_low, part.sampled_low);
  sampled_high = std::max(sampled_high, part.sampled_high);
}

double DataFindings::Jumps::variation() const {
  double const rounding = 1e-9 * sampled_area * std::max(std::abs(sampled_low), std::abs(sampled_high));
  double const size = std::min(sampled_finer - sampled_low * sampled_area, sampled_high * sampled_area - sampled_finer);
  return size > rounding ? size : infinity;
}

void DataFindings::Unseen::add(Unseen const& part) {
  if (count == 0)
    where = part.where;
  count += part.count;
  looked_at += part.looked_at;
}

void DataFindings::Meeting::add(Meeting const& part) {
  double const before = count, largest = std::max(stiffness, part.stiffness);
  if (part.count == 0)
    return;
  if (before == 0)
    *this = part;
  count = before + part.count;
  stiffness = largest;
}

std::vector<std::pair<std::string, std::string>> DataFindings::warnings(std::size_t n_conditions, std::size_t n_points) const {
  std::vector<std::pair<std::string, std::string>> result;
  std::string const remedy = " (problem.mesh.cells, coordinates), or raise problem.quadrature";
  if (jumps.size() > 1 && jumps[0].count > 0)
    result.emplace_back(
        "problem.coefficient",
        "k varies by more than a factor of 2 between neighbouring Gauss points of " + cells(jumps[0].count, "cell") +
            ", one of them near (x, y, z) = " + to_text(jumps[0].where) +
            ": where it changes inside of a cell is seen only as finely as these points are, and fluxes there may be "
            "wrong by many per cent; name the materials by problem.mesh.regions, let cells end where k jumps" +
            remedy);
  if (unseen.count > 0)
    result.emplace_back("problem.coefficient",
                        "k has values between the Gauss points of " + cells(unseen.count, "cell") + ", of " +
                            cells(unseen.looked_at, "cell") +
                            " that were looked at, that differ by more than a factor of 2 from those "
                            "at the points; one is near (x, y, z) = " +
                            to_text(unseen.where) +
                            ": layers and particles that are thinner than cells are not seen; name them by problem.mesh.regions, "
                            "let cells end where they do" +
                            remedy);
  if (jumps.size() > 1 && jumps[1].count > 0)
    result.emplace_back("problem.source", "f jumps by more than a factor of 2 inside of " + cells(jumps[1].count, "cell") +
                                              ", one of them near (x, y, z) = " + to_text(jumps[1].where) +
                                              ": its integral is known only as finely as the Gauss points are; name the parts by "
                                              "problem.mesh.regions, let cells end where f jumps" +
                                              remedy + ", or give the integral by problem.source_total");
  for (std::size_t i = 2; i < std::min(jumps.size(), n_conditions + 2); ++i) {
    Jumps const& of = jumps[i];
    double const difference = std::abs(of.sampled - of.sampled_finer);
    if (of.dirichlet != 0 && of.count == 0 && std::max(difference, of.sampled_difference) > told_of_dirichlet * of.variation())
      result.emplace_back("problem.boundary[" + std::to_string(i - 2) + "].value",
                          "the mesh is too coarse for this value: over a sample of its faces its mean is " +
                              number(of.sampled / of.sampled_area) + " as u has it, which knows it at nodes, and about " +
                              number(of.sampled_finer / of.sampled_area) + " by many points; take more cells where it varies");
    if (of.dirichlet == 0 && of.count == 0 &&
        (difference > told_of_integral * of.sampled_size || of.sampled_difference > told_of_faces * of.sampled_size))
      result.emplace_back("problem.boundary[" + std::to_string(i - 2) + "].value",
                          "the mesh is too coarse for this value: over a sample of its faces its integral is " +
                              number(of.sampled) + " by the quadrature of the assembly and about " + number(of.sampled_finer) +
                              " by a finer one; take more cells where it is large" + remedy);
    if (!(of.count > 0))
      continue;
    std::string const first = "the value jumps by more than a factor of 2 inside of " + cells(of.count, "boundary face") +
                              ", one of them near (x, y, z) = " + to_text(of.where);
    result.emplace_back(
        "problem.boundary[" + std::to_string(i - 2) + "].value",
        of.dirichlet != 0
            ? first + ": u is continuous and goes from one value to the other across these faces, and the flux there "
                      "grows as they shrink; let faces end where the value jumps (problem.mesh.cells, coordinates)"
            : first + ": its integral over the boundary is " + number(of.integral) +
                  " by the quadrature of the assembly and about " + number(of.finer) +
                  " by a finer one; name the patch by problem.mesh.boundaries, let faces end where the value jumps" + remedy);
  }
  for (std::size_t i = 0; i < sources.size(); ++i)
    if (sources[i].all > 0 && sources[i].lost > 0.999 * sources[i].all)
      result.emplace_back(
          i < n_points ? "problem.point_sources[" + std::to_string(i) + "]"
                       : "problem.line_sources[" + std::to_string(i - n_points) + "]",
          "the source lies on a boundary with Dirichlet values: u is given there, and nothing of the source enters; "
          "move it inside, or give that boundary a Neumann condition");
  if (meeting.count > 0 && static_cast<std::size_t>(meeting.conditions[1]) < n_conditions)
    result.emplace_back(
        "problem.boundary[" + std::to_string(meeting.conditions[1]) + "].value",
        "the Dirichlet values " + number(meeting.values[0]) + " of problem.boundary[" + std::to_string(meeting.conditions[0]) +
            "] and " + number(meeting.values[1]) + " of this one meet at " + cells(meeting.count, "node") +
            ", one of them (x, y, z) = " + to_text(meeting.where) +
            ": the condition that is listed first counts there, and the fluxes near it grow as cells shrink; leave a "
            "gap between the two, or let the values meet");
  if (periodic_meeting.count > 0 && static_cast<std::size_t>(periodic_meeting.conditions[1]) < n_conditions)
    result.emplace_back("problem.boundary[" + std::to_string(periodic_meeting.conditions[1]) + "].value",
                        "problem.boundary[" + std::to_string(periodic_meeting.conditions[0]) + "] holds u at " +
                            number(periodic_meeting.values[0]) + " at (x, y, z) = " + to_text(periodic_meeting.where) +
                            ", and on the other side of this periodic condition, less its jump, "
                            "u is held at " +
                            number(periodic_meeting.values[1]) + ": both cannot be, at " + cells(periodic_meeting.count, "node") +
                            " of the side; the value of the node with the smaller z, then y, then x counts. Let the Dirichlet "
                            "values of the two sides differ by the jump");
  if (auto const [first, second] = robin_meeting.conditions;
      robin_meeting.count > 0 && static_cast<std::size_t>(second) < n_conditions)
    result.emplace_back(
        "problem.boundary[" + std::to_string(second) + "]",
        "alpha h / k is up to " + to_text(robin_meeting.stiffness, 3) + " where this condition and problem.boundary[" +
            std::to_string(first) + "] hold u at different values, " + number(robin_meeting.values[1]) + " and " +
            number(robin_meeting.values[0]) + ", and meet at " + cells(robin_meeting.count, "node") +
            ", one of them (x, y, z) = " + to_text(robin_meeting.where) +
            ": what flows from one to the other there is too large, by 5 to 16 % where alpha h / k is 3, and by far where it is "
            "30; take smaller cells at this edge (h: the edge of a cell, over the order of elements), or hold u by 'dirichlet'");
  return result;
}

std::string DataFindings::range_warning(double low, std::array<double, 3> const& low_at, double high,
                                        std::array<double, 3> const& high_at) const {
  double const slack = 1e-6 * std::max(high - low, ranges.dirichlet_high - ranges.dirichlet_low) +
                       1e-9 * std::max(std::abs(low), std::abs(high));  // rounding, where u is almost constant
  if (ranges.known == 0 || !(ranges.dirichlet_low <= ranges.dirichlet_high))
    return {};
  auto const text = [](char const* which, double value, std::array<double, 3> const& at, char const* than, double bound,
                       char const* rule) {
    return std::string("u is ") + number(value) + " at (x, y, z) = " + to_text(at) + ", " + which + " of its values, and " + than +
           " the " + number(bound) + " that its boundary values allow where " + rule +
           ": cells are too coarse or too stretched there, or k too anisotropic; take more cells, or of more equal edges";
  };
  if (ranges.inflow_low >= 0 && low < ranges.dirichlet_low - slack)
    return text("the least", low, low_at, "less than", ranges.dirichlet_low, "no source is negative");
  if (ranges.inflow_high <= 0 && high > ranges.dirichlet_high + slack)
    return text("the largest", high, high_at, "more than", ranges.dirichlet_high, "no source is positive");
  return {};
}

}  // namespace poisson::assembly
