#include "assembly/system/periodic.hpp"

#include "gpu/core/error.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace poisson::assembly {

namespace {

/// The nodes on a boundary, each once.
std::vector<std::int32_t> nodes_on(Space const& space, std::array<std::vector<int>, 6> const& face_nodes, unsigned boundary) {
  std::vector<std::int32_t> nodes, dofs(space.n_local);
  for (BoundaryFace const& face : space.boundary_faces)
    if (face.boundary_id == boundary) {
      space.dofs(face.cell, dofs.data());
      for (int const i : face_nodes[face.face])
        nodes.push_back(dofs[i]);
    }
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

struct BoundingBox {
  Point3 low{}, high{};
  explicit BoundingBox(Space const& space, std::vector<std::int32_t> const& nodes) {
    low.fill(std::numeric_limits<double>::infinity());
    high.fill(-std::numeric_limits<double>::infinity());
    for (std::int32_t const node : nodes) {
      Point3 const x = space.point(node);
      for (std::size_t d = 0; d < 3; ++d) {
        low[d] = std::min(low[d], x[d]);
        high[d] = std::max(high[d], x[d]);
      }
    }
  }
  [[nodiscard]] double diagonal() const { return std::hypot(high[0] - low[0], high[1] - low[1], high[2] - low[2]); }
};

double distance_of(Point3 const& a, Point3 const& b) {
  return std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
}

/// Points sorted along a direction in which hardly two of a mesh are the same.
class PointIndex {
public:
  PointIndex(Space const& space, std::vector<std::int32_t> const& nodes) {
    for (std::int32_t const node : nodes)
      entries_.push_back({along(space.point(node)), node});
    std::sort(entries_.begin(), entries_.end(), [](Entry const& a, Entry const& b) { return a.place < b.place; });
  }
  /// The node within `tolerance` of x; -1 without one.
  [[nodiscard]] std::int32_t at(Space const& space, Point3 const& x, double tolerance) const {
    double const place = along(x);
    auto entry = std::lower_bound(entries_.begin(), entries_.end(), place - tolerance,
                                  [](Entry const& e, double value) { return e.place < value; });
    for (; entry != entries_.end() && entry->place <= place + tolerance; ++entry)
      if (distance_of(space.point(entry->node), x) <= tolerance)
        return entry->node;
    return -1;
  }

private:
  struct Entry {
    double place;
    std::int32_t node;
  };
  static double along(Point3 const& x) { return 0.542 * x[0] + 0.617 * x[1] + 0.571 * x[2]; }  // a unit vector, nearly
  std::vector<Entry> entries_;
};

/// Nodes that are tied to each other: u = u at the root + offset.
class Ties {
public:
  explicit Ties(std::vector<std::int32_t> nodes) : nodes_(std::move(nodes)), parent_(nodes_.size()), offset_(nodes_.size(), 0) {
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
  }
  [[nodiscard]] std::size_t size() const { return nodes_.size(); }
  [[nodiscard]] std::int32_t node(std::size_t i) const { return nodes_[i]; }
  [[nodiscard]] std::size_t place(std::int32_t node) const {
    return static_cast<std::size_t>(std::lower_bound(nodes_.begin(), nodes_.end(), node) - nodes_.begin());
  }
  /// The root of place i and the offset to it.
  std::pair<std::size_t, double> find(std::size_t i) {
    double offset = 0;
    std::size_t root = i;
    while (parent_[root] != root) {
      offset += offset_[root];
      root = parent_[root];
    }
    parent_[i] = root;  // chains are short: the sides of a box make three links at most
    offset_[i] = i == root ? 0 : offset;
    return {root, offset};
  }
  /// u at b = u at a + jump. Returns the contradiction to what was tied before, 0 for none.
  double tie(std::int32_t a, std::int32_t b, double jump) {
    auto const [root_a, offset_a] = find(place(a));
    auto const [root_b, offset_b] = find(place(b));
    if (root_a == root_b)
      return offset_b - offset_a - jump;
    parent_[root_b] = root_a;
    offset_[root_b] = offset_a + jump - offset_b;
    return 0;
  }

private:
  std::vector<std::int32_t> nodes_;
  std::vector<std::size_t> parent_;
  std::vector<double> offset_;
};

/// Where the first boundary of a condition is moved to.
class Motion {
public:
  Motion(BoundaryData const& condition, BoundingBox const& first, BoundingBox const& second, std::string const& key) {
    if (condition.map) {
      map_ = *condition.map;
      return;
    }
    map_ = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0};
    double const tolerance = 1e-4 * std::max(first.diagonal(), second.diagonal());
    for (std::size_t d = 0; d < 3; ++d) {
      double const low = second.low[d] - first.low[d], high = second.high[d] - first.high[d];
      if (std::abs(high - low) > tolerance)
        throw InputError(key, "boundary " + std::to_string(condition.sides[1]) + " is not boundary " +
                                  std::to_string(condition.sides[0]) + " moved by a translation: they extend from " +
                                  to_text(first.low) + " to " + to_text(first.high) + ", and from " + to_text(second.low) + " to " +
                                  to_text(second.high));
      map_[4 * d + 3] = (low + high) / 2;
    }
  }
  [[nodiscard]] Point3 operator()(Point3 const& x) const {
    Point3 y{};
    for (std::size_t d = 0; d < 3; ++d)
      y[d] = map_[4 * d] * x[0] + map_[4 * d + 1] * x[1] + map_[4 * d + 2] * x[2] + map_[4 * d + 3];
    return y;
  }

private:
  std::array<double, 12> map_;
};

}  // namespace

Constraints periodic_constraints(Space const& space, ReferenceElement const& element, ProblemData const& data) {
  auto const is_periodic = [](BoundaryData const& condition) { return condition.type == BoundaryType::periodic; };
  if (std::none_of(data.boundary.begin(), data.boundary.end(), is_periodic))
    return Constraints();
  std::array<std::vector<int>, 6> face_nodes;
  for (int face = 0; face < 6; ++face)
    face_nodes[face] = element.face_nodes(face);

  std::vector<std::int32_t> all;
  std::map<unsigned, std::vector<std::int32_t>> nodes;
  for (BoundaryData const& condition : data.boundary)
    if (is_periodic(condition))
      for (unsigned const side : condition.sides) {
        nodes[side] = nodes_on(space, face_nodes, side);
        all.insert(all.end(), nodes[side].begin(), nodes[side].end());
      }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  Ties ties(std::move(all));

  for (std::size_t c = 0; c < data.boundary.size(); ++c) {
    BoundaryData const& condition = data.boundary[c];
    if (!is_periodic(condition))
      continue;
    std::string const key = "problem.boundary[" + std::to_string(c) + "]";
    auto const &first = nodes[condition.sides[0]], &second = nodes[condition.sides[1]];
    BoundingBox const box(space, first);
    Motion const motion(condition, box, BoundingBox(space, second), key);
    // A small part of the distance of neighbours on a surface of so many nodes.
    double const tolerance = 1e-3 * box.diagonal() / std::sqrt(static_cast<double>(first.size()));
    auto const name = [&](std::size_t side) { return "boundary " + std::to_string(condition.sides[side]); };
    if (first.size() != second.size())
      throw InputError(key, name(0) + " has " + std::to_string(first.size()) + " nodes and " + name(1) + " has " +
                                std::to_string(second.size()) + "; periodic boundaries need meshes that match");
    PointIndex const index(space, second);
    for (std::int32_t const node : first) {
      Point3 const x = space.point(node), image = motion(x);
      std::int32_t const partner = index.at(space, image, tolerance);
      if (partner < 0)
        throw InputError(key, "the node of " + name(0) + " at " + to_text(x) + " would be moved to " + to_text(image) + ", where " +
                                  name(1) + " has no node; periodic boundaries need meshes that match");
      double const jump = condition.value.finite(space.point(partner), "the value");
      if (double const wrong = ties.tie(node, partner, jump); std::abs(wrong) > 1e-9 * (std::abs(jump) + std::abs(wrong)) + 1e-14)
        throw InputError(key + ".value", "the values of the periodic conditions contradict each other by " + to_text(wrong, 6) +
                                             " at " + to_text(space.point(partner)));
    }
  }

  // The one that stays: with a Dirichlet value where one has, else that of the lowest number.
  std::vector<bool> fixed(ties.size(), false);
  std::vector<std::int32_t> dofs(space.n_local);
  for (BoundaryFace const& face : space.boundary_faces)
    if (data.boundary_at(face.boundary_id).type == BoundaryType::dirichlet) {
      space.dofs(face.cell, dofs.data());
      for (int const i : face_nodes[face.face])
        if (std::size_t const place = ties.place(dofs[i]); place < ties.size() && ties.node(place) == dofs[i])
          fixed[place] = true;
    }
  constexpr auto none = std::numeric_limits<std::size_t>::max();
  std::vector<std::size_t> chosen(ties.size(), none);
  for (std::size_t i = 0; i < ties.size(); ++i)
    if (std::size_t& choice = chosen[ties.find(i).first]; choice == none || (fixed[i] && !fixed[choice]))
      choice = i;
  Constraints constraints(space.n_dofs);
  for (std::size_t i = 0; i < ties.size(); ++i) {
    auto const [root, offset] = ties.find(i);
    std::size_t const choice = chosen[root];
    if (choice == i)
      continue;
    Constraints::Entry const entry{ties.node(choice), 1};
    constraints.set(ties.node(i), offset - ties.find(choice).second, {&entry, 1});
  }
  return constraints;
}

}  // namespace poisson::assembly
