#include "assembly/system/periodic.hpp"

#include "assembly/system/estimate_cells.hpp"
#include "gpu/core/error.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace poisson::assembly {

namespace {

struct BoundingBox {
  Point3 low{}, high{};
  explicit BoundingBox(std::vector<PeriodicNode> const& nodes) {
    low.fill(std::numeric_limits<double>::infinity());
    high.fill(-std::numeric_limits<double>::infinity());
    for (PeriodicNode const& node : nodes)
      for (std::size_t d = 0; d < 3; ++d) {
        low[d] = std::min(low[d], node.at[d]);
        high[d] = std::max(high[d], node.at[d]);
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
  explicit PointIndex(std::vector<PeriodicNode> const& nodes) {
    for (PeriodicNode const& node : nodes)
      entries_.push_back({along(node.at), &node});
    std::sort(entries_.begin(), entries_.end(), [](Entry const& a, Entry const& b) { return a.place < b.place; });
  }
  /// The nearest node within `tolerance` of x that hangs, or does not; null without one.
  [[nodiscard]] PeriodicNode const* at(Point3 const& x, double tolerance, bool hangs) const {
    double const place = along(x);
    auto entry = std::lower_bound(entries_.begin(), entries_.end(), place - tolerance,
                                  [](Entry const& e, double value) { return e.place < value; });
    PeriodicNode const* nearest = nullptr;
    double least = tolerance;
    for (; entry != entries_.end() && entry->place <= place + tolerance; ++entry)
      if (double const distance = distance_of(entry->node->at, x); distance <= least && entry->node->hangs == hangs) {
        least = distance;
        nearest = entry->node;
      }
    return nearest;
  }

private:
  struct Entry {
    double place;
    PeriodicNode const* node;
  };
  static double along(Point3 const& x) { return 0.542 * x[0] + 0.617 * x[1] + 0.571 * x[2]; }  // a unit vector, nearly
  std::vector<Entry> entries_;
};

/// Nodes that are tied to each other: u = u at the root + offset.
class Ties {
public:
  explicit Ties(std::vector<std::int64_t> nodes) : nodes_(std::move(nodes)), parent_(nodes_.size()), offset_(nodes_.size(), 0) {
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
  }
  [[nodiscard]] std::size_t size() const { return nodes_.size(); }
  [[nodiscard]] std::int64_t node(std::size_t i) const { return nodes_[i]; }
  [[nodiscard]] std::size_t place(std::int64_t node) const {
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
  double tie(std::int64_t a, std::int64_t b, double jump) {
    auto const [root_a, offset_a] = find(place(a));
    auto const [root_b, offset_b] = find(place(b));
    if (root_a == root_b)
      return offset_b - offset_a - jump;
    parent_[root_b] = root_a;
    offset_[root_b] = offset_a + jump - offset_b;
    return 0;
  }

private:
  std::vector<std::int64_t> nodes_;
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

std::vector<PeriodicNode> periodic_nodes(Space const& space, ReferenceElement const& element, ProblemData const& data) {
  std::set<unsigned> sides;
  for (BoundaryData const& condition : data.boundary)
    if (condition.type == BoundaryType::periodic)
      sides.insert(condition.sides.begin(), condition.sides.end());
  std::vector<std::pair<unsigned, std::int32_t>> found;
  std::set<std::int32_t> fixed;
  std::vector<std::int32_t> dofs(space.n_local);
  for (BoundaryFace const& face : space.boundary_faces) {
    bool const is_side = sides.contains(face.boundary_id);
    if (!is_side && (sides.empty() || data.boundary_at(face.boundary_id).type != BoundaryType::dirichlet))
      continue;
    space.dofs(face.cell, dofs.data());
    for (int const i : element.face_nodes(face.face)) {
      if (is_side)
        found.emplace_back(face.boundary_id, dofs[i]);
      else
        fixed.insert(dofs[i]);
    }
  }
  for (InnerFace const& face : space.inner_faces) {
    BoundaryData const* const condition = sides.empty() ? nullptr : data.inner_at(face.id);
    if (condition == nullptr || condition->type != BoundaryType::dirichlet)
      continue;
    std::size_t const side = face.cells[0] >= 0 ? 0 : 1;
    space.dofs(face.cells[side], dofs.data());
    for (int const i : element.face_nodes(face.faces[side]))
      fixed.insert(dofs[i]);
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  std::vector<PeriodicNode> nodes;
  for (auto const& [boundary, unknown] : found)
    nodes.push_back({boundary, fixed.contains(unknown), unknown, space.point(unknown),
                     space.hanging.size() > 0 && space.hanging.constrained(unknown)});
  return nodes;
}

std::vector<PeriodicNodePair> periodic_pairs(std::span<PeriodicNode const> list, ProblemData const& data) {
  std::map<unsigned, std::vector<PeriodicNode>> nodes;
  for (PeriodicNode const& node : list)
    nodes[node.boundary].push_back(node);
  for (auto& [boundary, of_side] : nodes)
    std::sort(of_side.begin(), of_side.end(), [](auto const& a, auto const& b) { return a.number < b.number; });

  std::vector<PeriodicNodePair> pairs;
  for (std::size_t c = 0; c < data.boundary.size(); ++c) {
    BoundaryData const& condition = data.boundary[c];
    if (condition.type != BoundaryType::periodic)
      continue;
    std::string const key = "problem.boundary[" + std::to_string(c) + "]";
    auto const &first = nodes[condition.sides[0]], &second = nodes[condition.sides[1]];
    BoundingBox const box(first);
    Motion const motion(condition, box, BoundingBox(second), key);
    // A small part of the distance of neighbours on a surface of so many nodes.
    double const tolerance = 1e-3 * box.diagonal() / std::sqrt(static_cast<double>(first.size()));
    auto const name = [&](std::size_t side) { return "boundary " + std::to_string(condition.sides[side]); };
    if (first.size() != second.size())
      throw InputError(key, name(0) + " has " + std::to_string(first.size()) + " nodes and " + name(1) + " has " +
                                std::to_string(second.size()) + "; periodic boundaries need meshes that match");
    PointIndex const index(second);
    for (PeriodicNode const& node : first) {
      Point3 const image = motion(node.at);
      PeriodicNode const* const partner = index.at(image, tolerance, node.hangs);
      if (partner == nullptr)
        throw InputError(key, "the node of " + name(0) + " at " + to_text(node.at) + " would be moved to " + to_text(image) +
                                  ", where " + name(1) + " has no node; periodic boundaries need meshes that match");
      pairs.push_back({c, node.number, partner->number, partner->at});
    }
  }
  return pairs;
}

std::vector<PeriodicTie> periodic_ties(std::span<PeriodicNode const> list, ProblemData const& data) {
  std::vector<std::int64_t> all;
  for (PeriodicNode const& node : list)
    all.push_back(node.number);
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  Ties ties(std::move(all));
  for (PeriodicNodePair const& pair : periodic_pairs(list, data)) {
    double const jump = data.boundary[pair.condition].value.finite(pair.at_second, "the value");
    if (double const wrong = ties.tie(pair.first, pair.second, jump);
        std::abs(wrong) > 1e-9 * (std::abs(jump) + std::abs(wrong)) + 1e-14)
      throw InputError("problem.boundary[" + std::to_string(pair.condition) + "].value",
                       "the values of the periodic conditions contradict each other by " + to_text(wrong, 6) + " at " +
                           to_text(pair.at_second));
  }

  // The one that stays: with a Dirichlet value where one has, of several the first by z, then y, then x, whatever their numbers
  // are; else that of the lowest number.
  std::vector<bool> fixed(ties.size(), false);
  std::vector<Point3> at(ties.size());
  for (PeriodicNode const& node : list) {
    std::size_t const place = ties.place(node.number);
    at[place] = node.at;
    fixed[place] = fixed[place] || node.fixed;
  }
  auto const comes_before = [&](std::size_t i, std::size_t j) {
    return std::lexicographical_compare(at[i].rbegin(), at[i].rend(), at[j].rbegin(), at[j].rend());
  };
  constexpr auto none = std::numeric_limits<std::size_t>::max();
  std::vector<std::size_t> chosen(ties.size(), none);
  for (std::size_t i = 0; i < ties.size(); ++i)
    if (std::size_t& choice = chosen[ties.find(i).first];
        choice == none || (fixed[i] && (!fixed[choice] || comes_before(i, choice))))
      choice = i;
  std::vector<PeriodicTie> result;
  for (std::size_t i = 0; i < ties.size(); ++i) {
    auto const [root, offset] = ties.find(i);
    std::size_t const choice = chosen[root];
    if (choice != i)
      result.push_back({ties.node(i), ties.node(choice), offset - ties.find(choice).second});
  }
  return result;
}

Constraints periodic_constraints(Space const& space, ReferenceElement const& element, ProblemData const& data) {
  if (!data.has_periodic_boundaries())
    return Constraints();
  // What hangs does so on both sides, and follows nodes that are tied.
  Constraints constraints = space.hanging.size() > 0 ? space.hanging : Constraints(space.n_dofs);
  for (PeriodicTie const& tie : periodic_ties(periodic_nodes(space, element, data), data)) {
    if (constraints.constrained(tie.number))
      continue;
    Constraints::Entry const entry{static_cast<std::int32_t>(tie.to), 1};
    constraints.set(static_cast<std::int32_t>(tie.number), tie.offset, {&entry, 1});
  }
  return constraints;
}

void join_periodic_faces(Space& space, ReferenceElement const& element, ProblemData const& data) {
  auto const nodes = periodic_nodes(space, element, data);
  auto const pairs = periodic_pairs(nodes, data);  // by condition, then the first
  std::map<unsigned, std::vector<BoundaryFace>> faces_of;
  for (BoundaryFace const& face : space.boundary_faces)
    faces_of[face.boundary_id].push_back(face);
  std::vector<std::int32_t> dofs(static_cast<std::size_t>(space.n_local));
  for (std::size_t c = 0; c < data.boundary.size(); ++c) {
    BoundaryData const& condition = data.boundary[c];
    if (condition.type != BoundaryType::periodic)
      continue;
    std::string const key = "problem.boundary[" + std::to_string(c) + "]";
    if (condition.map)
      for (std::size_t i = 0; i < 9; ++i)
        if (std::abs((*condition.map)[4 * (i / 3) + i % 3] - (i % 4 == 0 ? 1 : 0)) > 1e-9)
          throw InputError(key, "boundaries that a rotation joins are not refined locally yet; run without problem.mesh.adaptive");
    auto const image_of = [&](std::int32_t unknown) {
      auto const found = std::lower_bound(pairs.begin(), pairs.end(), std::pair{c, static_cast<std::int64_t>(unknown)},
                                          [](PeriodicNodePair const& pair, std::pair<std::size_t, std::int64_t> const& at) {
                                            return std::pair{pair.condition, pair.first} < at;
                                          });
      return static_cast<std::int32_t>(found->second);
    };
    std::map<std::array<std::int32_t, 4>, BoundaryFace> second;
    for (BoundaryFace const& face : faces_of[condition.sides[1]]) {
      auto corners = face_corners(space, face.cell, face.face, dofs);
      std::sort(corners.begin(), corners.end());
      second.emplace(corners, face);
    }
    for (BoundaryFace const& face : faces_of[condition.sides[0]]) {
      std::array<std::int32_t, 4> images = face_corners(space, face.cell, face.face, dofs);
      for (std::int32_t& corner : images)
        corner = image_of(corner);
      std::array<std::int32_t, 4> sorted = images;
      std::sort(sorted.begin(), sorted.end());
      auto const other = second.find(sorted);
      if (other == second.end())
        throw InputError(key, "periodic boundaries need meshes that match: a face near " + to_text(space.point(images[0])) +
                                  " has no counterpart");
      space.local.faces.push_back({{face.cell, other->second.cell}, {face.face, other->second.face}});
      space.local.images.push_back(images);
    }
  }
}

}  // namespace poisson::assembly
