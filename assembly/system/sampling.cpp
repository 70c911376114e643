#include "assembly/system/sampling.hpp"

#include "assembly/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

namespace poisson::assembly {

namespace {

/// How far outside its reference cell a point may come to lie by rounding, or because two curved cells do not quite touch there.
constexpr double slack = 1e-8;

/// Lagrange functions of one direction at a point of [0, 1], and their derivatives.
void evaluate_1d(std::vector<double> const& nodes, double x, double* values, double* derivatives) {
  std::size_t const n = nodes.size();
  for (std::size_t a = 0; a < n; ++a) {
    double value = 1, derivative = 0;
    for (std::size_t b = 0; b < n; ++b)
      if (b != a) {
        double const scale = 1 / (nodes[a] - nodes[b]);
        derivative = derivative * (x - nodes[b]) * scale + value * scale;
        value *= (x - nodes[b]) * scale;
      }
    values[a] = value;
    derivatives[a] = derivative;
  }
}

/// Cells one after the other, and where points lie in them.
class Locator {
public:
  Locator(Space const& space, ReferenceElement const& element)
      : dofs(static_cast<std::size_t>(space.n_local)),
        space_(space),
        element_(element),
        nodes_(geometry_nodes_1d(space, element)),
        geometry_(space),
        values_(3 * std::max(nodes_.size(), element.nodes.size())),
        derivatives_(values_.size()),
        functions_(static_cast<std::size_t>(geometry_.n_nodes())),
        gradients_(3 * functions_.size()) {}

  void reset(std::int64_t cell) {
    space_.dofs(cell, dofs.data());
    geometry_.reset(cell, dofs.data());
    for (std::size_t d = 0; d < 3; ++d) {
      auto const* const begin = geometry_.nodes(static_cast<int>(d));
      auto const [low, high] = std::minmax_element(begin, begin + geometry_.n_nodes());
      // A trilinear cell stays within its vertices; a curved one leaves the box of its nodes by little.
      double const margin = (space_.isoparametric ? 0.1 : slack) * (*high - *low);
      low_[d] = *low - margin;
      high_[d] = *high + margin;
    }
  }
  [[nodiscard]] double low(std::size_t d) const { return low_[d]; }
  [[nodiscard]] double high(std::size_t d) const { return high_[d]; }
  /// The middle of the current cell.
  [[nodiscard]] Point3 middle() const { return geometry_.middle(); }

  /// Reference coordinates of a point in the cell, by Newton's method from the middle; nothing when the cell does not hold it.
  [[nodiscard]] std::optional<Point3> find(Point3 const& x) {
    constexpr int most_steps = 30;
    constexpr double far_out = 2;  // the map of a cell means nothing there
    Point3 at{0.5, 0.5, 0.5};
    for (int step = 0; step < most_steps; ++step) {
      tabulate_map(at);
      Point3 const there = geometry_.point(functions_.data());
      auto const j = geometry_.jacobian(gradients_.data());
      auto const c = cofactors(j);
      double const det = j[0] * c[0] + j[1] * c[1] + j[2] * c[2];
      if (!(std::abs(det) > 0))
        return {};
      double largest = 0;
      for (std::size_t d = 0; d < 3; ++d) {
        double change = 0;  // cofactors / det is the transposed inverse
        for (std::size_t e = 0; e < 3; ++e)
          change += c[3 * e + d] * (x[e] - there[e]);
        change /= det;
        largest = std::max(largest, std::abs(change));
        at[d] = std::clamp(at[d] + change, -far_out, 1 + far_out);
      }
      if (largest < 1e-13 || (largest < 1e-10 && step > most_steps / 2)) {
        for (double& coordinate : at) {
          if (coordinate < -slack || coordinate > 1 + slack)
            return {};
          coordinate = std::clamp(coordinate, 0.0, 1.0);
        }
        return at;
      }
    }
    return {};
  }

  /// A point of the cell near x, which is at a small distance outside: by Newton's method whose steps stay in the reference cell.
  [[nodiscard]] LocatedPoint nearest(Point3 const& x) {
    Point3 at{0.5, 0.5, 0.5};
    LocatedPoint best;
    best.moved = std::numeric_limits<double>::infinity();
    for (int step = 0; step < 20; ++step) {
      tabulate_map(at);
      Point3 const there = geometry_.point(functions_.data());
      double const distance = std::hypot(x[0] - there[0], x[1] - there[1], x[2] - there[2]);
      if (distance < best.moved) {
        best.x = there;
        best.reference = at;
        best.moved = distance;
      }
      auto const j = geometry_.jacobian(gradients_.data());
      auto const c = cofactors(j);
      double const det = j[0] * c[0] + j[1] * c[1] + j[2] * c[2];
      if (!(std::abs(det) > 0))
        break;
      for (std::size_t d = 0; d < 3; ++d) {
        double change = 0;
        for (std::size_t e = 0; e < 3; ++e)
          change += c[3 * e + d] * (x[e] - there[e]);
        at[d] = std::clamp(at[d] + change / det, 0.0, 1.0);
      }
    }
    return best;
  }

  /// The function with these values at the unknowns, at a point of the current cell.
  [[nodiscard]] double value(std::span<double const> u, Point3 const& at) {
    std::size_t const n = element_.nodes.size();
    for (std::size_t d = 0; d < 3; ++d)
      evaluate_1d(element_.nodes, at[d], values_.data() + d * n, derivatives_.data() + d * n);
    double sum = 0;
    std::size_t a = 0;
    for (std::size_t k = 0; k < n; ++k)
      for (std::size_t j = 0; j < n; ++j) {
        double line = 0;
        for (std::size_t i = 0; i < n; ++i)
          line += values_[i] * u[static_cast<std::size_t>(dofs[a++])];
        sum += values_[n + j] * values_[2 * n + k] * line;
      }
    return sum;
  }

  /// The gradient of u at a point of the cell.
  [[nodiscard]] Point3 gradient(std::span<double const> u, Point3 const& at) {
    std::size_t const n = element_.nodes.size();
    for (std::size_t d = 0; d < 3; ++d)
      evaluate_1d(element_.nodes, at[d], values_.data() + d * n, derivatives_.data() + d * n);
    double const *const x = values_.data(), *const y = x + n, *const z = y + n;
    double const *const dx = derivatives_.data(), *const dy = dx + n, *const dz = dy + n;
    Point3 reference{};
    std::size_t a = 0;
    for (std::size_t k = 0; k < n; ++k)
      for (std::size_t j = 0; j < n; ++j)
        for (std::size_t i = 0; i < n; ++i) {
          double const value = u[static_cast<std::size_t>(dofs[a++])];
          reference[0] += dx[i] * y[j] * z[k] * value;
          reference[1] += x[i] * dy[j] * z[k] * value;
          reference[2] += x[i] * y[j] * dz[k] * value;
        }
    tabulate_map(at);
    auto const j = geometry_.jacobian(gradients_.data());
    auto const c = cofactors(j);
    double const det = j[0] * c[0] + j[1] * c[1] + j[2] * c[2];
    Point3 result{};
    for (std::size_t d = 0; d < 3; ++d)
      result[d] = (c[3 * d] * reference[0] + c[3 * d + 1] * reference[1] + c[3 * d + 2] * reference[2]) / det;
    return result;
  }

  std::vector<std::int32_t> dofs;

private:
  void tabulate_map(Point3 const& at) {
    std::size_t const n = nodes_.size(), all = functions_.size();
    for (std::size_t d = 0; d < 3; ++d)
      evaluate_1d(nodes_, at[d], values_.data() + d * n, derivatives_.data() + d * n);
    double const *const x = values_.data(), *const y = x + n, *const z = y + n;
    double const *const dx = derivatives_.data(), *const dy = dx + n, *const dz = dy + n;
    std::size_t a = 0;
    for (std::size_t k = 0; k < n; ++k)
      for (std::size_t j = 0; j < n; ++j)
        for (std::size_t i = 0; i < n; ++i, ++a) {
          functions_[a] = x[i] * y[j] * z[k];
          gradients_[a] = dx[i] * y[j] * z[k];
          gradients_[all + a] = x[i] * dy[j] * z[k];
          gradients_[2 * all + a] = x[i] * y[j] * dz[k];
        }
  }

  Space const& space_;
  ReferenceElement const& element_;
  std::vector<double> const& nodes_;
  CellGeometry geometry_;
  std::vector<double> values_, derivatives_, functions_, gradients_;
  Point3 low_{}, high_{};
};

/// Calls body(index of the point, point) for the points of the lattice in the box around the current cell.
template <class Body>
void for_points_near(Locator const& locator, Lattice const& lattice, Body const& body) {
  std::array<std::int64_t, 3> first{}, last{};
  for (std::size_t d = 0; d < 3; ++d) {
    double const h = lattice.spacing[d];
    auto const index = [&](double x, std::int64_t beyond) {
      double const i = h > 0 ? (x - lattice.low[d]) / h : x <= lattice.low[d] ? -1.0 : 1.0;
      return static_cast<std::int64_t>(std::clamp(std::floor(i), -1.0, static_cast<double>(lattice.n[d]))) + beyond;
    };
    // One more on either side: the test that counts is that of the reference coordinates.
    first[d] = std::max<std::int64_t>(index(locator.low(d), 0), 0);
    last[d] = std::min<std::int64_t>(index(locator.high(d), 1), lattice.n[d] - 1);
    if (lattice.n[d] == 1 && (lattice.low[d] < locator.low(d) || lattice.low[d] > locator.high(d)))
      return;
    if (lattice.n[d] == 1)
      first[d] = last[d] = 0;
  }
  for (auto k = first[2]; k <= last[2]; ++k)
    for (auto j = first[1]; j <= last[1]; ++j)
      for (auto i = first[0]; i <= last[0]; ++i)
        body((k * lattice.n[1] + j) * lattice.n[0] + i, Point3{lattice.low[0] + static_cast<double>(i) * lattice.spacing[0],
                                                               lattice.low[1] + static_cast<double>(j) * lattice.spacing[1],
                                                               lattice.low[2] + static_cast<double>(k) * lattice.spacing[2]});
}

}  // namespace

Extent extent_of(Space const& space) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  Extent extent{{infinity, infinity, infinity}, {-infinity, -infinity, -infinity}};
  if (space.box) {
    for (std::size_t d = 0; d < 3; ++d) {
      extent.low[d] = space.box_coordinate(static_cast<int>(d), 0);
      extent.high[d] = space.box_coordinate(static_cast<int>(d), space.box_nodes[d] - 1);
    }
    return extent;
  }
  constexpr std::int64_t at_once = 1 << 16;
  if (space.lattices) {
    if (!space.nodes_of_lattices()->has_all()) {
      auto const& [low, high] = space.nodes_of_lattices()->extremes();
      return {low, high};
    }
    HostVector<double> const& nodes = space.nodes_of_lattices()->all();
    std::int64_t const size = std::ssize(nodes) / (3 * space.lattices->layout.n_lattices), parts = n_parts(size, at_once);
    std::vector<Extent> of_lattices(static_cast<std::size_t>(space.lattices->layout.n_lattices * parts), extent);
    parallel_for(std::ssize(of_lattices), [&](std::int64_t const p) {
      auto const [begin, end] = part(size, at_once, p % parts);
      for (std::size_t d = 0; d < 3; ++d) {
        double const* const x = nodes.data() + (3 * (p / parts) + static_cast<std::int64_t>(d)) * size;
        auto const [low, high] = std::minmax_element(x + begin, x + end);
        of_lattices[static_cast<std::size_t>(p)].low[d] = *low;
        of_lattices[static_cast<std::size_t>(p)].high[d] = *high;
      }
    });
    for (Extent const& of_lattice : of_lattices)
      extent.add(of_lattice);
    return extent;
  }
  std::vector<Extent> of_parts(static_cast<std::size_t>(n_parts(space.n_dofs, at_once)), extent);
  parallel_for(std::ssize(of_parts), [&](std::int64_t const p) {
    auto const [begin, end] = part(space.n_dofs, at_once, p);
    Extent of_part = of_parts[static_cast<std::size_t>(p)];
    for (auto dof = begin; dof < end; ++dof)
      of_part.add(space.point(dof));
    of_parts[static_cast<std::size_t>(p)] = of_part;
  });
  for (Extent const& of_part : of_parts)
    extent.add(of_part);
  return extent;
}

HostVector<double> sample(Space const& space, ReferenceElement const& element, std::span<double const> u, Lattice const& lattice,
                          HostVector<std::int64_t>* cells_of_points) {
  // First the lowest-numbered cell of every point, by atomic minima, so that threads do not show in the values.
  auto const none = std::numeric_limits<std::int64_t>::max();
  std::vector<std::atomic<std::int64_t>> cells(static_cast<std::size_t>(lattice.size()));
  for (auto& cell : cells)
    cell.store(none, std::memory_order_relaxed);
  auto const make_locator = [&] { return Locator(space, element); };
  parallel_for(n_parts(space.n_cells, space.cells_per_part), make_locator, [&](Locator& locator, std::int64_t const p) {
    auto const [begin, end] = part(space.n_cells, space.cells_per_part, p);
    for (auto cell = begin; cell < end; ++cell) {
      locator.reset(cell);
      for_points_near(locator, lattice, [&](std::int64_t const index, Point3 const& x) {
        auto& lowest = cells[static_cast<std::size_t>(index)];
        auto const is_before = [&](std::int64_t other) { return other == none || space.order_of(cell) < space.order_of(other); };
        std::int64_t seen = lowest.load(std::memory_order_relaxed);
        if (!is_before(seen) || !locator.find(x))
          return;
        while (is_before(seen) && !lowest.compare_exchange_weak(seen, cell, std::memory_order_relaxed)) {
        }
      });
    }
  });

  if (cells_of_points != nullptr) {
    cells_of_points->clear();
    cells_of_points->reserve(cells.size());
    for (auto const& cell : cells)
      cells_of_points->push_back(cell.load(std::memory_order_relaxed) == none ? -1 : cell.load(std::memory_order_relaxed));
  }
  HostVector<double> values(cells.size(), std::numeric_limits<double>::quiet_NaN());
  constexpr std::int64_t size = 1024;
  parallel_for(n_parts(lattice.size(), size), make_locator, [&](Locator& locator, std::int64_t const p) {
    auto const [begin, end] = part(lattice.size(), size, p);
    std::int64_t current = -1;
    for (auto index = begin; index < end; ++index) {
      std::int64_t const cell = cells[static_cast<std::size_t>(index)].load(std::memory_order_relaxed);
      if (cell == none)
        continue;
      if (cell != current)
        locator.reset(current = cell);
      std::int64_t const i = index % lattice.n[0], j = index / lattice.n[0] % lattice.n[1],
                         k = index / (lattice.n[0] * lattice.n[1]);
      auto const at = locator.find({lattice.low[0] + static_cast<double>(i) * lattice.spacing[0],
                                    lattice.low[1] + static_cast<double>(j) * lattice.spacing[1],
                                    lattice.low[2] + static_cast<double>(k) * lattice.spacing[2]});
      values[static_cast<std::size_t>(index)] = locator.value(u, *at);
    }
  });
  return values;
}

namespace {

/// The number of the cell of a box, in one direction, that holds a coordinate or is beside the one that does; less than 0 or too
/// large outside.
double place_in_box(BoxGrid const& box, std::size_t d, double x) {
  if (std::vector<double> const& vertices = box.coordinates[d]; !vertices.empty())
    return static_cast<double>(std::upper_bound(vertices.begin(), vertices.end(), x) - vertices.begin() - 1);
  return std::floor((x - box.origin[d]) / box.extent[d] * static_cast<double>(box.cells[d]));
}

}  // namespace

namespace {

/// Moves points that no cell holds onto the nearest of the cells that have them within `near` times their size; the first of equal
/// ones.
void move_onto_cells(Space const& space, ReferenceElement const& element, double near, std::vector<LocatedPoint>& points) {
  std::vector<std::size_t> outside;
  for (std::size_t i = 0; i < points.size(); ++i)
    if (points[i].cell < 0)
      outside.push_back(i);
  if (outside.empty())
    return;
  struct Nearest {
    std::size_t point;
    LocatedPoint found;
  };
  // Only cells at the surface can be near a point outside, and there are few of them.
  std::vector<std::int64_t> cells;
  for (BoundaryFace const& face : space.boundary_faces)
    if (cells.empty() || cells.back() != face.cell)
      cells.push_back(face.cell);
  std::sort(cells.begin(), cells.end());
  cells.erase(std::unique(cells.begin(), cells.end()), cells.end());
  std::sort(cells.begin(), cells.end(), [&](std::int64_t a, std::int64_t b) { return space.order_of(a) < space.order_of(b); });
  constexpr std::int64_t size = 64;
  std::vector<std::vector<Nearest>> parts(static_cast<std::size_t>(n_parts(std::ssize(cells), size)));
  parallel_for(
      std::ssize(parts), [&] { return Locator(space, element); },
      [&](Locator& locator, std::int64_t const p) {
        auto const [begin, end] = part(std::ssize(cells), size, p);
        for (auto c = begin; c < end; ++c) {
          locator.reset(cells[static_cast<std::size_t>(c)]);
          double edge = 0;
          for (std::size_t d = 0; d < 3; ++d)
            edge = std::max(edge, locator.high(d) - locator.low(d));
          for (std::size_t const i : outside) {
            bool close = true;
            for (std::size_t d = 0; d < 3; ++d)
              close = close && points[i].x[d] >= locator.low(d) - near * edge && points[i].x[d] <= locator.high(d) + near * edge;
            if (!close)
              continue;
            LocatedPoint at = locator.nearest(points[i].x);
            at.cell = cells[static_cast<std::size_t>(c)];
            if (at.moved <= near * edge)
              parts[static_cast<std::size_t>(p)].push_back({i, at});
          }
        }
      });
  for (auto const& of_part : parts)
    for (Nearest const& candidate : of_part)
      if (LocatedPoint& best = points[candidate.point]; best.cell < 0 || candidate.found.moved < best.moved)
        best = candidate.found;
}

}  // namespace

namespace {

/// All cells that hold points. Precondition: there are points.
std::vector<LocatedPoint> find_cells(Space const& space, ReferenceElement const& element, std::span<Point3 const> points) {
  std::vector<LocatedPoint> result(points.size());
  Extent around{points[0], points[0]};
  for (std::size_t i = 0; i < points.size(); ++i) {
    result[i].x = points[i];
    around.add(points[i]);
  }
  struct Held {
    std::size_t point;
    std::int64_t cell;
  };
  std::vector<std::vector<Held>> held;  // by part; cells ascend
  auto const make_locator = [&] { return Locator(space, element); };
  auto const look = [&](Locator& locator, std::int64_t const cell, std::size_t const i, std::int64_t const p) {
    bool close = true;
    for (std::size_t d = 0; d < 3; ++d)
      close = close && points[i][d] >= locator.low(d) && points[i][d] <= locator.high(d);
    if (close && locator.find(points[i]))
      held[static_cast<std::size_t>(p)].push_back({i, cell});
  };
  if (space.box) {
    // The cells follow from the coordinates; those beside them count too, where a point is on a face.
    constexpr std::int64_t size = 256;
    auto const n_points = static_cast<std::int64_t>(points.size());
    held.resize(static_cast<std::size_t>(n_parts(n_points, size)));
    parallel_for(std::ssize(held), make_locator, [&](Locator& locator, std::int64_t const p) {
      auto const [begin, end] = part(n_points, size, p);
      for (auto point = begin; point < end; ++point) {
        auto const i = static_cast<std::size_t>(point);
        for (int dz = -1; dz <= 1; ++dz)
          for (int dy = -1; dy <= 1; ++dy)
            for (int dx = -1; dx <= 1; ++dx) {
              std::array<int, 3> const beside{dx, dy, dz};
              std::array<std::int64_t, 3> at{};
              bool inside = true;
              for (std::size_t d = 0; d < 3; ++d) {
                auto const count = static_cast<double>(space.box->cells[d]);
                double const place = place_in_box(*space.box, d, points[i][d]) + beside[d];
                inside = inside && place >= 0 && place < count;
                at[d] = inside ? static_cast<std::int64_t>(place) : 0;
              }
              if (!inside)
                continue;
              std::int64_t const cell = (at[2] * space.box->cells[1] + at[1]) * space.box->cells[0] + at[0];
              locator.reset(cell);
              look(locator, cell, i, p);
            }
      }
    });
  } else {
    // A cell looks only at the points that lie within it in the direction in which all points extend farthest.
    std::size_t along = 0;
    for (std::size_t d = 1; d < 3; ++d)
      if (around.high[d] - around.low[d] > around.high[along] - around.low[along])
        along = d;
    std::vector<std::size_t> order(points.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) { return points[i][along] < points[j][along]; });
    held.resize(static_cast<std::size_t>(n_parts(space.n_cells, space.cells_per_part)));
    parallel_for(std::ssize(held), make_locator, [&](Locator& locator, std::int64_t const p) {
      auto const [begin, end] = part(space.n_cells, space.cells_per_part, p);
      for (auto cell = begin; cell < end; ++cell) {
        locator.reset(cell);
        bool apart = false;
        for (std::size_t d = 0; d < 3; ++d)
          apart = apart || locator.high(d) < around.low[d] || locator.low(d) > around.high[d];
        if (apart)
          continue;
        auto const first = std::lower_bound(order.begin(), order.end(), locator.low(along),
                                            [&](std::size_t i, double low) { return points[i][along] < low; });
        for (auto i = first; i != order.end() && points[*i][along] <= locator.high(along); ++i)
          look(locator, cell, *i, p);
      }
    });
  }

  Locator locator(space, element);
  for (auto const& of_part : held)
    for (Held const& found : of_part) {
      LocatedPoint& point = result[found.point];
      if (point.cell >= 0 && space.order_of(point.cell) < space.order_of(found.cell)) {
        point.others.push_back(found.cell);
        continue;
      }
      if (point.cell >= 0)
        point.others.push_back(point.cell);
      locator.reset(point.cell = found.cell);
      point.reference = *locator.find(point.x);
    }
  return result;
}

}  // namespace

std::vector<LocatedPoint> locate(Space const& space, ReferenceElement const& element, std::span<Point3 const> points, double near) {
  if (points.empty())  // the search would visit every cell all the same
    return {};
  std::vector<LocatedPoint> result = find_cells(space, element, points);
  if (!(near > 0))
    return result;
  move_onto_cells(space, element, near, result);
  // Where they are now, several cells may hold them.
  std::vector<std::size_t> moved;
  std::vector<Point3> places;
  for (std::size_t i = 0; i < result.size(); ++i)
    if (result[i].moved > 0) {
      moved.push_back(i);
      places.push_back(result[i].x);
    }
  if (moved.empty())
    return result;
  auto again = find_cells(space, element, places);
  for (std::size_t i = 0; i < moved.size(); ++i)
    if (again[i].cell >= 0) {
      again[i].moved = result[moved[i]].moved;
      result[moved[i]] = std::move(again[i]);
    }
  return result;
}

namespace {

/// Where the cells of a box have faces in a direction; of a part of a box those of the whole.
std::vector<double> faces_of_box(Space const& space, std::size_t d) {
  if (!space.box->whole) {
    std::vector<double> faces;
    for (std::int64_t i = 0; i <= space.box->cells[d]; ++i)
      faces.push_back(space.box_coordinate(static_cast<int>(d), i * space.order));
    return faces;
  }
  return vertex_coordinates(*space.box->whole, d);
}

}  // namespace

std::vector<double> cell_crossings(Space const& space, ReferenceElement const& element, Point3 const& from, Point3 const& to) {
  auto const point = [&](double t) {
    Point3 x{};
    for (std::size_t d = 0; d < 3; ++d)
      x[d] = (1 - t) * from[d] + t * to[d];
    return x;
  };
  std::vector<double> cuts{0, 1};
  if (space.box) {
    for (std::size_t d = 0; d < 3; ++d)
      for (double const face : faces_of_box(space, d))
        if (double const t = (face - from[d]) / (to[d] - from[d]); t > 0 && t < 1)
          cuts.push_back(t);
    std::sort(cuts.begin(), cuts.end());
    return cuts;
  }
  // Points so dense that most cells hold several of them; between two of different cells the faces of both are sought.
  Extent const extent = extent_of(space);
  double longest = 0;
  for (std::size_t d = 0; d < 3; ++d)
    longest = std::max(longest, extent.high[d] - extent.low[d]);
  double const cells =
      std::cbrt(static_cast<double>(space.n_cells)) * std::hypot(to[0] - from[0], to[1] - from[1], to[2] - from[2]) / longest;
  auto const n = static_cast<std::size_t>(std::clamp(16 * cells, 64.0, 65536.0));
  std::vector<Point3> points;
  for (std::size_t i = 0; i <= n; ++i)
    points.push_back(point(static_cast<double>(i) / static_cast<double>(n)));
  auto const located = locate(space, element, points);
  Locator locator(space, element);
  // Where the line leaves the cell that holds it at `inside`, between there and `outside`.
  auto const leaves = [&](std::int64_t cell, double inside, double outside) {
    locator.reset(cell);
    constexpr int halvings = 45;
    for (int step = 0; step < halvings; ++step) {
      double const middle = 0.5 * (inside + outside);
      (locator.find(point(middle)) ? inside : outside) = middle;
    }
    return inside;
  };
  for (std::size_t i = 0; i < n; ++i) {
    std::int64_t const before = located[i].cell, after = located[i + 1].cell;
    if (before == after)
      continue;
    double const first = static_cast<double>(i) / static_cast<double>(n),
                 last = static_cast<double>(i + 1) / static_cast<double>(n);
    if (before >= 0)
      cuts.push_back(leaves(before, first, last));
    if (after >= 0)
      cuts.push_back(leaves(after, last, first));
  }
  std::sort(cuts.begin(), cuts.end());
  return cuts;
}

Point3 nearest_node(Space const& space, Point3 const& x) {
  auto const square = [&](Point3 const& node) {
    double sum = 0;
    for (std::size_t d = 0; d < 3; ++d)
      sum += (node[d] - x[d]) * (node[d] - x[d]);
    return sum;
  };
  Point3 nearest = space.point(0);
  double least = square(nearest);
  for (std::int64_t dof = 1; dof < space.n_dofs; ++dof)
    if (Point3 const node = space.point(dof); square(node) < least) {
      nearest = node;
      least = square(node);
    }
  return nearest;
}

namespace {

/// Whether the point is on the surface of its cell.
bool on_surface(LocatedPoint const& point) {
  return std::any_of(point.reference.begin(), point.reference.end(),
                     [](double coordinate) { return coordinate <= slack || coordinate >= 1 - slack; });
}

}  // namespace

double PointSide::difference(PointSide const& other) const {
  if (surface != 0 && other.surface != 0 && surface != other.surface)
    return std::numeric_limits<double>::infinity();
  double most = 0, largest = 0;
  for (std::size_t e = 0; e < k.size(); ++e) {
    most = std::max(most, std::abs(k[e] - other.k[e]));
    largest = std::max({largest, std::abs(k[e]), std::abs(other.k[e])});
  }
  return most / largest;
}

std::vector<ChosenSide> choose_sides(std::vector<PointSide> sides) {
  constexpr double jump = 1e-3;  // less is no other gradient
  std::sort(sides.begin(), sides.end(), [](PointSide const& a, PointSide const& b) {
    return std::tie(a.point, a.material, a.cell) < std::tie(b.point, b.material, b.cell);
  });
  std::vector<ChosenSide> result;
  for (PointSide const& side : sides) {
    if (result.empty() || result.back().side.point != side.point) {
      result.push_back({side, {}});
      continue;
    }
    ChosenSide& chosen = result.back();
    double const before = chosen.other ? chosen.side.difference(*chosen.other) : jump;
    if (chosen.side.difference(side) > before)
      chosen.other = side;
  }
  return result;
}

std::vector<PointSide> sides_of(Space const& space, ReferenceElement const& element, ProblemData const& data,
                                std::span<LocatedPoint const> points) {
  bool const can_jump = data.coefficients.size() > 1 || std::any_of(data.coefficients.begin(), data.coefficients.end(),
                                                                    [](Coefficient const& k) { return k.can_jump(); });
  struct SideOfFace {
    int face, side;
  };
  std::multimap<std::int64_t, SideOfFace> at_surfaces;  // by cell, of surfaces with a condition
  for (InnerFace const& face : space.inner_faces)
    for (int side = 0; side < 2 && data.inner_at(face.id) != nullptr; ++side)
      at_surfaces.insert({face.cells[side], {face.faces[side], side + 1}});
  std::vector<PointSide> sides;
  if (!can_jump && at_surfaces.empty())
    return sides;
  Locator locator(space, element);
  for (std::size_t i = 0; i < points.size(); ++i) {
    LocatedPoint const& point = points[i];
    // Where the mesh is a part of one, cells beyond its rim may hold the point too.
    if (point.cell < 0 || (point.others.empty() && !on_surface(point)))
      continue;
    auto const add = [&](std::int64_t cell) {
      locator.reset(cell);
      unsigned const material = space.material(cell);
      Tensor const k = data.coefficient(material).seen_from(locator.middle(), point.x, material);
      PointSide& side = sides.emplace_back(PointSide{static_cast<std::int64_t>(i), cell, material, k.entries});
      auto const [first, last] = at_surfaces.equal_range(cell);
      if (first == last)
        return;
      auto const reference = locator.find(point.x);
      for (auto at = first; at != last && reference; ++at)
        if (std::abs((*reference)[at->second.face / 2] - at->second.face % 2) <= slack)
          side.surface = at->second.side;
    };
    add(point.cell);
    for (std::int64_t const cell : point.others)
      add(cell);
  }
  return sides;
}

void move_to_cell(Space const& space, ReferenceElement const& element, LocatedPoint& point, std::int64_t cell) {
  if (cell == point.cell)
    return;
  Locator locator(space, element);
  locator.reset(point.cell = cell);
  point.reference = *locator.find(point.x);
}

std::vector<PointValues> values_at(Space const& space, ReferenceElement const& element, ProblemData const& data,
                                   ValuesOfUnknowns const& u, double shift, std::span<LocatedPoint const> points) {
  std::vector<PointValues> result;
  Locator locator(space, element);
  std::size_t const n = locator.dofs.size();
  std::vector<std::int32_t> unknowns(n * points.size());
  for (std::size_t i = 0; i < points.size(); ++i)
    space.dofs(points[i].cell, unknowns.data() + n * i);
  HostVector<double> const u_of_cells = u(unknowns);
  for (LocatedPoint const& point : points) {
    locator.reset(point.cell);
    std::iota(locator.dofs.begin(), locator.dofs.end(), 0);
    std::span<double const> const u_of_cell = std::span(u_of_cells).subspan(n * result.size(), n);
    PointValues& values = result.emplace_back();
    values.u = locator.value(u_of_cell, point.reference);
    values.gradient = locator.gradient(u_of_cell, point.reference);
    unsigned const material = space.material(point.cell);
    Coefficient const& k = data.coefficient(material);
    values.flux = (on_surface(point) ? k.seen_from(locator.middle(), point.x, material) : k(point.x, material)) * values.gradient;
    for (double& component : values.flux)
      component = -component;
    if (data.exact)
      values.exact = data.exact->finite(point.x, "the exact solution") - shift;
  }
  return result;
}

}  // namespace poisson::assembly
