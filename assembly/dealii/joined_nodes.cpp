#include "assembly/dealii/joined_nodes.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <numeric>

namespace poisson::assembly {
namespace {

using Key = std::array<std::int64_t, 3>;

std::size_t hash_of(Key const& key) {
  std::uint64_t hash = 0;
  for (std::int64_t const k : key) {
    hash = (hash ^ static_cast<std::uint64_t>(k)) * 0x9e3779b97f4a7c15U;
    hash ^= hash >> 29;
  }
  return hash;
}

/// Finds for every vertex in use the first one at its place. Every other vertex is mapped to itself.
class SamePlaces {
public:
  explicit SamePlaces(RawMesh const& mesh) : mesh_(mesh), first_(mesh.vertices.size()) {
    std::iota(first_.begin(), first_.end(), 0);
    measure();
    if (!(edge_ > 0))
      return;
    // Nodes are filed by boxes that are smaller than cells, so that few share one, and larger than the tolerance, so that a node
    // seldom looks into two.
    box_ = 1e-2 * edge_;
    heads_.assign(std::bit_ceil(2 * first_.size()), -1);
    next_.assign(first_.size(), -1);
    seen_.assign(first_.size(), false);
    for (auto const& cell : mesh.cells)
      for (int const v : cell.vertices)
        add(v);
    for (auto const& quad : mesh.quads)
      for (int const v : quad.vertices)
        add(v);
  }
  [[nodiscard]] std::vector<int>& first() { return first_; }

private:
  [[nodiscard]] dealii::Point<3> const& at(int v) const { return mesh_.vertices[static_cast<std::size_t>(v)]; }

  void measure() {
    dealii::Point<3> high;
    for (unsigned d = 0; d < 3; ++d) {
      low_[d] = std::numeric_limits<double>::infinity();
      high[d] = -low_[d];
    }
    double largest = 0;
    for (auto const& cell : mesh_.cells)
      for (int const v : cell.vertices)
        for (unsigned d = 0; d < 3; ++d) {
          low_[d] = std::min(low_[d], at(v)[d]);
          high[d] = std::max(high[d], at(v)[d]);
          largest = std::max(largest, std::abs(at(v)[d]));
        }
    // Edges of collapsed cells have no length.
    double const least = mesh_.cells.empty() ? 0 : 1e-12 * (high - low_).norm();
    edge_ = std::numeric_limits<double>::infinity();
    for (auto const& cell : mesh_.cells)
      for (std::size_t v = 0; v < 8; ++v)
        for (std::size_t const step : {1U, 2U, 4U})
          if ((v & step) == 0)
            if (double const length = at(cell.vertices[v]).distance(at(cell.vertices[v | step])); length > least)
              edge_ = std::min(edge_, length);
    if (!std::isfinite(edge_))
      edge_ = 0;
    tolerance_ = std::max(1e-9 * edge_, std::min(1e-3 * edge_, 4 * std::numeric_limits<double>::epsilon() * largest));
    // A quadrilateral may lie outside.
    for (auto const& quad : mesh_.quads)
      for (int const v : quad.vertices)
        for (unsigned d = 0; d < 3; ++d)
          low_[d] = std::min(low_[d], at(v)[d]);
  }

  [[nodiscard]] std::int64_t index(double x, unsigned d) const {
    return static_cast<std::int64_t>(std::clamp(std::floor((x - low_[d]) / box_), -1., 9e18));
  }

  void add(int v) {
    auto const i = static_cast<std::size_t>(v);
    if (seen_[i])
      return;
    seen_[i] = true;
    Key from{}, to{}, key{};
    for (unsigned d = 0; d < 3; ++d) {
      from[d] = index(at(v)[d] - tolerance_, d);
      to[d] = index(at(v)[d] + tolerance_, d);
    }
    for (key[0] = from[0]; key[0] <= to[0]; ++key[0])
      for (key[1] = from[1]; key[1] <= to[1]; ++key[1])
        for (key[2] = from[2]; key[2] <= to[2]; ++key[2])
          for (int other = heads_[hash_of(key) & (heads_.size() - 1)]; other >= 0; other = next_[static_cast<std::size_t>(other)])
            if (at(v).distance(at(other)) <= tolerance_) {
              first_[i] = other;
              return;
            }
    for (unsigned d = 0; d < 3; ++d)
      key[d] = index(at(v)[d], d);
    int& head = heads_[hash_of(key) & (heads_.size() - 1)];
    next_[i] = head;
    head = v;
  }

  RawMesh const& mesh_;
  std::vector<int> first_, heads_, next_;  ///< lists of vertices by the hash of their box, without those that have an earlier one
  std::vector<bool> seen_;
  dealii::Point<3> low_;
  double edge_ = 0, tolerance_ = 0, box_ = 1;
};

}  // namespace

JoinedNodes join_nodes(RawMesh& mesh) {
  SamePlaces places(mesh);
  std::vector<int>& first = places.first();
  auto const of = [&](int v) -> int& { return first[static_cast<std::size_t>(v)]; };
  // Where two corners of a cell are at one place, as in cells that are collapsed to wedges, all nodes there stay as they are.
  std::vector<bool> stays(first.size(), false);
  bool some_stay = false;
  for (auto const& cell : mesh.cells)
    for (std::size_t a = 0; a < 8; ++a)
      for (std::size_t b = 0; b < a; ++b)
        if (cell.vertices[a] != cell.vertices[b] && of(cell.vertices[a]) == of(cell.vertices[b]))
          some_stay = stays[static_cast<std::size_t>(of(cell.vertices[a]))] = true;
  JoinedNodes result;
  for (std::size_t v = 0; v < first.size(); ++v)
    if (first[v] != static_cast<int>(v)) {
      bool const stay = some_stay && stays[static_cast<std::size_t>(first[v])];
      ++(stay ? result.kept : result.joined);
      if (stay)
        first[v] = static_cast<int>(v);
    }
  if (result.joined == 0)
    return result;
  for (auto& cell : mesh.cells)
    for (int& v : cell.vertices)
      v = of(v);
  for (auto& quad : mesh.quads)
    for (int& v : quad.vertices)
      v = of(v);
  for (auto& group : mesh.node_groups)
    for (std::size_t& v : group.members)
      v = static_cast<std::size_t>(first[v]);
  return result;
}

std::vector<std::int64_t> separate_parts(RawMesh const& mesh) {
  // Vertices of one cell are connected. Each points to one with a lower number, or to itself.
  std::vector<int> to(mesh.vertices.size());
  std::iota(to.begin(), to.end(), 0);
  auto const root = [&](int v) {
    while (to[static_cast<std::size_t>(v)] != v)
      v = to[static_cast<std::size_t>(v)] = to[static_cast<std::size_t>(to[static_cast<std::size_t>(v)])];
    return v;
  };
  for (auto const& cell : mesh.cells)
    for (int const v : cell.vertices) {
      int const a = root(cell.vertices[0]), b = root(v);
      to[static_cast<std::size_t>(std::max(a, b))] = std::min(a, b);
    }
  std::vector<std::int64_t> cells(mesh.vertices.size(), 0);
  for (auto const& cell : mesh.cells)
    ++cells[static_cast<std::size_t>(root(cell.vertices[0]))];
  std::erase(cells, 0);
  std::sort(cells.begin(), cells.end(), std::greater<>());
  return cells;
}

}  // namespace poisson::assembly
