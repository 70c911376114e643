#include "gpu/elements/lattice_nodes.hpp"

#include "tests/gpu/cases.hpp"
#include "tests/gpu/lattices.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <gtest/gtest.h>
#include <map>
#include <numeric>
#include <span>
#include <vector>

/// The nodes inside of lattices from those on rims.
namespace poisson::testing {
namespace {

using Point = std::array<double, 3>;
using Index = std::array<std::int64_t, 3>;

/// Nodes of an element in one direction: any that are ascending will do.
std::vector<double> parameters_of(int order) {
  std::vector<double> result;
  for (int i = 0; i <= order; ++i)
    result.push_back(0.5 - 0.5 * std::cos(std::acos(-1.0) * i / order));
  return result;
}

/// LatticesInBox in a box, whose node at (x, y, z) of [0, 1]^3 of the box lies at map(x, y, z).
struct LatticesInBox {
  LatticesInBox(std::array<std::int64_t, 3> const& lattices, std::int32_t cells, std::int32_t order,
                std::function<Point(Point const&)> const& map)
      : box(test::make_lattice_box(lattices, cells, order)), parameters(parameters_of(order)) {
    std::int64_t const m = box.layout.nodes(), n_inner = box.layout.n_inner(), p = order;
    on_rims.resize(static_cast<std::size_t>(3 * (box.layout.n_unknowns - n_inner)));
    for (std::size_t node = 0; node < box.unknown_of.size(); ++node) {
      std::int64_t const unknown = box.unknown_of[node] - n_inner, i = static_cast<std::int64_t>(node);
      Index const at{i % box.nodes[0], i / box.nodes[0] % box.nodes[1], i / (box.nodes[0] * box.nodes[1])};
      Point x;
      for (std::size_t d = 0; d < 3; ++d)
        x[d] = (static_cast<double>(at[d] / p) + parameters[static_cast<std::size_t>(at[d] % p)]) /
               static_cast<double>((box.nodes[d] - 1) / p);
      Point const image = map(x);
      expected.insert(expected.end(), image.begin(), image.end());
      for (std::size_t d = 0; d < 3 && unknown >= 0; ++d)
        on_rims[3 * static_cast<std::size_t>(unknown) + d] = image[d];
    }
    for (std::int32_t side = 0; side < 6 * box.layout.n_lattices; side += side % 3 == 0 ? 1 : 2)
      sides.push_back(side);
    of_sides.resize(sides.size() * static_cast<std::size_t>(3 * (p + 1) * m * m));
  }

  [[nodiscard]] std::vector<double> made(Context& context) {
    Array<double> const nodes = make_lattice_nodes(context, {box.layout, parameters, on_rims, sides}, of_sides);
    std::vector<double> result(static_cast<std::size_t>(nodes.size()));
    nodes.download(std::span<double>(result));
    return result;
  }

  test::LatticeBox box;
  std::vector<double> parameters, on_rims, of_sides, expected;  ///< expected: 3 of every node of the box
  std::vector<std::int32_t> sides;
};

Point curved(Point const& x) {
  return {x[0] + 0.1 * x[1] * x[1] * x[2], x[1] + 0.1 * std::sin(x[0] + x[2]), x[2] + 0.1 * x[0] * x[1] * x[1]};
}
Point trilinear(Point const& x) {
  return {1 + 2 * x[0] + 0.3 * x[1] * x[2], x[1] - 0.1 * x[0] * x[2], 3 * x[2] + 0.2 * x[0] * x[1] * x[2]};
}

/// The nodes of a lattice as simply as it can be said: a point for each position, level by level; then nodes of elements.
class HalvedLattice {
public:
  HalvedLattice(LatticesInBox const& of, std::int64_t lattice) : m_(of.box.layout.nodes()), p_(of.box.layout.order), of_(of) {
    for (Index at{}; at[2] < m_; ++at[2])
      for (at[1] = 0; at[1] < m_; ++at[1])
        for (at[0] = 0; at[0] < m_; ++at[0])
          if (at[0] == 0 || at[1] == 0 || at[2] == 0 || at[0] == m_ - 1 || at[1] == m_ - 1 || at[2] == m_ - 1) {
            auto const node = static_cast<std::size_t>(of.box.node(lattice, at[0], at[1], at[2]));
            points_[at] = {of.expected[3 * node], of.expected[3 * node + 1], of.expected[3 * node + 2]};
          }
    for (std::int64_t half = (m_ - 1) / 2; half >= p_; half /= 2)
      halve(half);
    for (int dimension = 1; dimension <= 3 && p_ > 1; ++dimension)
      for (Index at{}; at[2] < m_; ++at[2])
        for (at[1] = 0; at[1] < m_; ++at[1])
          for (at[0] = 0; at[0] < m_; ++at[0]) {
            Index low = at, high = at;
            Point t{};
            int extent = 0;
            for (std::size_t d = 0; d < 3; ++d)
              if (std::int64_t const in_cell = at[d] % p_; in_cell != 0) {
                low[d] -= in_cell;
                high[d] += p_ - in_cell;
                t[d] = of.parameters[static_cast<std::size_t>(in_cell)];
                ++extent;
              }
            if (extent == dimension && !points_.contains(at))
              points_[at] = blend(at, low, high, t);
          }
  }
  [[nodiscard]] Point at(Index const& index) const { return points_.at(index); }

private:
  /// Gordon and Thiel: I - (I - P_x)(I - P_y)(I - P_z), where P_d is linear between the ends in direction d.
  [[nodiscard]] Point blend(Index const& at, Index const& low, Index const& high, Point const& t) const {
    Point sum{};
    for (int ends = 1; ends < 27; ++ends) {  // of each direction: stay, low, high
      Index index = at;
      double weight = -1;
      bool exists = true;
      for (std::size_t d = 0; d < 3; ++d) {
        int const end = ends / (d == 0 ? 1 : d == 1 ? 3 : 9) % 3;
        if (end == 0)
          continue;
        exists = exists && low[d] != high[d];
        index[d] = end == 1 ? low[d] : high[d];
        weight *= -(end == 1 ? 1 - t[d] : t[d]);
      }
      for (std::size_t d = 0; d < 3 && exists; ++d)
        sum[d] += weight * points_.at(index)[d];
    }
    return sum;
  }
  void halve(std::int64_t half) {
    for (int dimension = 1; dimension <= 3; ++dimension)
      for (Index at{}; at[2] < m_; at[2] += half)
        for (at[1] = 0; at[1] < m_; at[1] += half)
          for (at[0] = 0; at[0] < m_; at[0] += half) {
            Index low = at, high = at;
            int extent = 0;
            for (std::size_t d = 0; d < 3; ++d)
              if (at[d] / half % 2 == 1) {
                low[d] -= half;
                high[d] += half;
                ++extent;
              }
            if (extent == dimension && !points_.contains(at))
              points_[at] = blend(at, low, high, {0.5, 0.5, 0.5});
          }
  }
  std::int64_t m_, p_;
  LatticesInBox const& of_;
  std::map<Index, Point> points_;
};

template <class T>
class LatticeNodesOnBackend : public OnBackend<T::value> {};
TYPED_TEST_SUITE(LatticeNodesOnBackend, Backends, BackendNames);

TYPED_TEST(LatticeNodesOnBackend, AreTheImageOfATrilinearMap) {
  for (auto const& [cells, order] : {std::pair{2, 1}, {8, 1}, {4, 2}, {2, 3}, {2, 8}}) {
    LatticesInBox lattices({2, 1, 1}, cells, order, trilinear);
    std::vector<double> const made = lattices.made(*this->context);
    std::int64_t const m = lattices.box.layout.nodes(), size = m * m * m;
    for (std::int64_t i = 0; i < std::ssize(made); ++i) {
      std::int64_t const node = i % size, at = lattices.box.node(i / (3 * size), node % m, node / m % m, node / (m * m));
      ASSERT_NEAR(made[static_cast<std::size_t>(i)], lattices.expected[static_cast<std::size_t>(3 * at + i / size % 3)], 1e-14)
          << "order " << order << ", node " << node;
    }
  }
}

TYPED_TEST(LatticeNodesOnBackend, FollowFromCurvedRims) {
  for (auto const& [cells, order] : {std::pair{4, 1}, {8, 1}, {4, 2}, {2, 3}}) {
    LatticesInBox lattices({1, 2, 1}, cells, order, curved);
    std::vector<double> const made = lattices.made(*this->context);
    std::int64_t const m = lattices.box.layout.nodes(), size = m * m * m, layers = order + 1, of_side = layers * m * m;
    for (std::int64_t lattice = 0; lattice < 2; ++lattice) {
      HalvedLattice const reference(lattices, lattice);
      for (std::int64_t node = 0; node < size; ++node)
        for (std::size_t d = 0; d < 3; ++d)
          ASSERT_NEAR(made[static_cast<std::size_t>((3 * lattice + static_cast<std::int64_t>(d)) * size + node)],
                      reference.at({node % m, node / m % m, node / (m * m)})[d], 2e-15)
              << "order " << order << ", node " << node;
    }
    for (std::size_t i = 0; i < lattices.sides.size(); ++i) {
      std::int32_t const lattice = lattices.sides[i] / 6, face = lattices.sides[i] % 6;
      auto const d = static_cast<std::size_t>(face / 2);
      Index count{m, m, m}, first{};
      count[d] = layers;
      first[d] = face % 2 == 0 ? 0 : m - layers;
      for (std::int64_t at = 0; at < 3 * of_side; ++at) {
        std::int64_t const in = at % of_side, x = first[0] + in % count[0], y = first[1] + in / count[0] % count[1],
                           z = first[2] + in / (count[0] * count[1]);
        ASSERT_EQ(lattices.of_sides[static_cast<std::size_t>(static_cast<std::int64_t>(i) * 3 * of_side + at)],
                  made[static_cast<std::size_t>((3 * lattice + at / of_side) * size + (z * m + y) * m + x)])
            << "side " << face << ", entry " << at;
      }
    }
  }
}

TYPED_TEST(LatticeNodesOnBackend, ArePlacedAnewInAllCopies) {
  LatticesInBox lattices({2, 2, 1}, 2, 2, trilinear);
  Array<double> nodes = make_lattice_nodes(*this->context, {lattices.box.layout, lattices.parameters, lattices.on_rims}, {});
  LatticeLayout const& layout = lattices.box.layout;
  std::int64_t const first = layout.n_inner() + 10, n = layout.n_unknowns - first - 3, m = layout.nodes();
  std::vector<double> x(static_cast<std::size_t>(3 * n));
  std::iota(x.begin(), x.end(), 100.0);
  place_lattice_nodes(*this->context, layout, first, x, nodes);
  std::vector<double> made(static_cast<std::size_t>(nodes.size()));
  nodes.download(std::span<double>(made));
  for (std::int64_t lattice = 0; lattice < layout.n_lattices; ++lattice)
    for (std::int64_t node = 0; node < m * m * m; ++node) {
      std::int64_t const at = lattices.box.node(lattice, node % m, node / m % m, node / (m * m)),
                         unknown = lattices.box.unknown_of[static_cast<std::size_t>(at)];
      bool const is_placed = unknown >= first && unknown < first + n;
      for (std::int64_t d = 0; d < 3; ++d)
        ASSERT_NEAR(made[static_cast<std::size_t>((3 * lattice + d) * m * m * m + node)],
                    is_placed ? x[static_cast<std::size_t>(3 * (unknown - first) + d)]
                              : lattices.expected[static_cast<std::size_t>(3 * at + d)],
                    1e-14);
    }
}

}  // namespace
}  // namespace poisson::testing
