#include "gpu/elements/lattice_solution.hpp"

#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"
#include "gpu/core/threads.hpp"
#include "gpu/kernels/quadrature.hpp"
#include "tests/gpu/arrays.hpp"
#include "tests/gpu/cases.hpp"
#include "tests/gpu/elements/functions.hpp"
#include "tests/gpu/lattices.hpp"
#include "tests/gpu/matrices.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

/// What is asked of a solution on lattices, beside loops over cells and points in long double.
namespace poisson::testing {

namespace {

using Long = long double;

struct LatticeCase {
  std::array<std::int64_t, 3> lattices{2, 1, 1};
  std::int32_t cells = 2, order = 1;
  bool isoparametric = false, all_on_rim = false;
  int materials = 1;
  bool tensor_grid = false;   ///< with all_on_rim: a box without tables
  bool cells_differ = false;  ///< materials are those of cells, and not of lattices

  [[nodiscard]] std::string text() const {
    return "order " + std::to_string(order) + ", " + std::to_string(cells) + " cells, " + std::to_string(materials) + " materials" +
           (cells_differ ? " of cells" : "") + (isoparametric ? ", curved" : "") +
           (tensor_grid  ? ", in a box"
            : all_on_rim ? ", all on rims"
                         : "");
  }
};

std::vector<LatticeCase> cases() {
  std::vector<LatticeCase> result;
  for (std::int32_t order = 1; order <= 4; ++order)
    for (bool const curved : {false, true}) {
      if (order == 1 && curved)
        continue;
      result.push_back({{2, 1, 1}, order < 3 ? 3 : 2, order, curved, false, 1});
      for (bool const cells_differ : {false, true})
        result.push_back({{2, 2, 1}, 2, order, curved, false, 4, false, cells_differ});
      result.push_back({{3, 2, 1}, 1, order, curved, true, 2});
      if (!curved)
        for (int const materials : {1, 4})
          result.push_back({{3, 2, 4}, 1, order, curved, true, materials, true});
    }
  result.push_back({{1, 2, 1}, 8, 1, false, false, 2});  // more cells than a batch or a block of groups has
  result.push_back({{1, 2, 1}, 8, 1, false, false, 3, false, true});
  result.push_back({{1, 1, 1}, 1, 8, true, true, 1});
  return result;
}

/// Such a mesh whose nodes are moved a little, and its loops.
struct Mesh {
  explicit Mesh(LatticeCase const& c) : box(test::make_lattice_box(c.lattices, c.cells, c.order, c.all_on_rim)), asked(c) {
    std::vector<std::vector<Data>> const all{
        {polynomial(2, 1, 0.5)}, {constant(3)}, {sine(2, 3), constant(0.5), branches(4, 2)}, full_tensor()};
    k.assign(all.begin(), all.begin() + c.materials);
    std::int64_t const m = box.layout.nodes(), p = c.order;
    std::vector<double> const lobatto = lobatto_rule(c.order + 1).point;
    coordinates.resize(static_cast<std::size_t>(3 * m * m * m * box.layout.n_lattices));
    for (std::int64_t l = 0; l < box.layout.n_lattices; ++l)
      for (std::int64_t i = 0; i < m * m * m; ++i) {
        std::int64_t const node = box.node(l, i % m, i / m % m, i / (m * m));
        std::array<std::int64_t, 3> const index{node % box.nodes[0], node / box.nodes[0] % box.nodes[1],
                                                node / (box.nodes[0] * box.nodes[1])};
        for (std::size_t d = 0; d < 3; ++d) {
          // Vertices of a tensor grid are not equally far from each other.
          auto const vertex = [&](std::int64_t number) {
            auto const x = static_cast<double>(number);
            return c.tensor_grid ? x + 0.1 * static_cast<double>(d) * x * x : x;
          };
          double const low = vertex(index[d] / p), high = vertex(index[d] / p + 1);
          double at = low + lobatto[static_cast<std::size_t>(index[d] % p)] * (high - low);
          if (!c.tensor_grid)
            at += 0.1 / static_cast<double>(p * p) * std::sin(static_cast<double>(7 * node + static_cast<std::int64_t>(d)));
          coordinates[(3 * static_cast<std::size_t>(l) + d) * static_cast<std::size_t>(m * m * m) + static_cast<std::size_t>(i)] =
              at / static_cast<double>(c.cells);
        }
      }
    of_material = c.cells_differ ? 1 : std::int64_t{c.cells} * c.cells * c.cells;
    // Of cells runs of three, some of which are longer than a group.
    for (std::int64_t i = 0; i < box.layout.n_lattices * c.cells * c.cells * c.cells / of_material; ++i)
      material.push_back(static_cast<std::int32_t>((c.cells_differ ? i % 40 / 3 : i * 7) % c.materials));
  }

  [[nodiscard]] LatticeGeometry geometry() const {
    LatticeGeometry result;
    result.isoparametric = asked.isoparametric;
    result.layout = box.layout;
    std::vector<Point> points(static_cast<std::size_t>(n()));
    for_nodes([&](std::int32_t unknown, Point const& x) { points[static_cast<std::size_t>(unknown)] = x; });
    if (asked.tensor_grid) {
      result.layout = layout_of_box(box.lattices, asked.order);
      std::size_t step = 1;  // from one node to the next in a direction
      for (std::size_t d = 0; d < 3; step *= static_cast<std::size_t>(box.nodes[d++]))
        for (std::int64_t i = 0; i < box.nodes[d]; ++i)
          result.lines[d].push_back(points[step * static_cast<std::size_t>(i)][d]);
    } else {
      result.point = [points](std::int64_t unknown) { return points[static_cast<std::size_t>(unknown)]; };
    }
    for (auto const& of : k) {
      result.coefficients.emplace_back();
      for (Data const& component : of)
        result.coefficients.back().push_back(component.code);
    }
    result.material = material;
    return result;
  }
  [[nodiscard]] std::int64_t n() const { return box.layout.n_unknowns; }
  [[nodiscard]] Point place(std::int64_t l, std::int64_t i, std::int64_t j, std::int64_t of_k) const {
    auto const m = static_cast<std::size_t>(box.layout.nodes());
    Point x{};
    for (std::size_t d = 0; d < 3; ++d)
      x[d] = coordinates[((3 * static_cast<std::size_t>(l) + d) * m + static_cast<std::size_t>(of_k)) * m * m +
                         static_cast<std::size_t>(j) * m + static_cast<std::size_t>(i)];
    return x;
  }
  /// Calls action(unknown, place) for all nodes of lattices.
  template <class Action>
  void for_nodes(Action const& action) const {
    std::int64_t const m = box.layout.nodes();
    for (std::int64_t l = 0; l < box.layout.n_lattices; ++l)
      for (std::int64_t i = 0; i < m * m * m; ++i)
        action(box.unknown_of[static_cast<std::size_t>(box.node(l, i % m, i / m % m, i / (m * m)))],
               place(l, i % m, i / m % m, i / (m * m)));
  }

  [[nodiscard]] std::int32_t material_of(std::int64_t lattice, std::int64_t cell) const {
    std::int64_t const n = box.layout.cells;
    return material[static_cast<std::size_t>((lattice * n * n * n + cell) / of_material)];
  }

  struct Sums {
    Long volume = 0, values = 0, squares = 0, gradients = 0, largest = 0;
  };
  /// The integrals over the lattices of a material (-1: all) of v = u - (exact - shift), which is interpolated at the points.
  [[nodiscard]] Sums integrate(std::vector<double> const& u, Data const& exact, double shift, int points, int material_asked,
                               std::vector<Data> const& of_k) const {
    std::int64_t const n_cells = box.layout.cells, p = box.layout.order;
    std::size_t const n1 = static_cast<std::size_t>(p) + 1, m = static_cast<std::size_t>(points);
    QuadratureRule const gauss = gauss_rule(points);
    std::vector<double> const of_element = lobatto_rule(static_cast<int>(n1)).point, linear{0, 1},
                              &of_map = asked.isoparametric ? of_element : linear;
    std::int64_t const step = asked.isoparametric ? 1 : p;
    auto const table = [&](std::vector<double> const& functions) {
      std::vector<std::vector<LagrangeValue>> result;
      for (double const t : gauss.point) {
        result.emplace_back();
        for (std::size_t a = 0; a < functions.size(); ++a)
          result.back().push_back(lagrange(functions, a, t));
      }
      return result;
    };
    auto const element = table(of_element), map = table(of_map), collocation = table(gauss.point);
    /// Value and derivatives of the sum of numbers times functions, `size` a direction.
    auto const sum_at = [&](auto const& functions, std::size_t size, std::array<std::size_t, 3> const& q, auto const& number) {
      std::array<Long, 4> sums{};
      for (std::size_t a = 0; a < size * size * size; ++a) {
        LagrangeValue const x = functions[q[0]][a % size], y = functions[q[1]][a / size % size],
                            z = functions[q[2]][a / (size * size)];
        Long const of_a = number(a);
        sums[0] += of_a * x.value * y.value * z.value;
        sums[1] += of_a * x.derivative * y.value * z.value;
        sums[2] += of_a * x.value * y.derivative * z.value;
        sums[3] += of_a * x.value * y.value * z.derivative;
      }
      return sums;
    };
    Sums sums;
    for (std::int64_t l = 0; l < box.layout.n_lattices; ++l)
      for (std::int64_t cell = 0; cell < n_cells * n_cells * n_cells; ++cell) {
        if (material_asked >= 0 && material_of(l, cell) != material_asked)
          continue;
        std::array<std::int64_t, 3> const first{p * (cell % n_cells), p * (cell / n_cells % n_cells),
                                                p * (cell / (n_cells * n_cells))};
        auto const unknown = [&](std::size_t a) {
          return box.unknown_of[static_cast<std::size_t>(box.node(l, first[0] + static_cast<std::int64_t>(a % n1),
                                                                  first[1] + static_cast<std::int64_t>(a / n1 % n1),
                                                                  first[2] + static_cast<std::int64_t>(a / (n1 * n1))))];
        };
        std::size_t const g = of_map.size();
        auto const node = [&](std::size_t a) {
          return place(l, first[0] + step * static_cast<std::int64_t>(a % g),
                       first[1] + step * static_cast<std::int64_t>(a / g % g),
                       first[2] + step * static_cast<std::int64_t>(a / (g * g)));
        };
        std::vector<Long> v;
        std::vector<Point> places;
        std::vector<std::array<std::array<Long, 4>, 3>> maps;
        for (std::size_t q = 0; q < m * m * m; ++q) {
          std::array<std::size_t, 3> const at{q % m, q / m % m, q / (m * m)};
          std::array<std::array<Long, 4>, 3> of_map_at{};
          Point x{};
          for (std::size_t d = 0; d < 3; ++d) {
            of_map_at[d] = sum_at(map, g, at, [&](std::size_t a) { return static_cast<Long>(node(a)[d]); });
            x[d] = static_cast<double>(of_map_at[d][0]);
          }
          maps.push_back(of_map_at);
          places.push_back(x);
          Long const value = u.empty() ? Long{0} : sum_at(element, n1, at, [&](std::size_t a) {
            return static_cast<Long>(u[static_cast<std::size_t>(unknown(a))]);
          })[0];
          v.push_back(value - (exact.value(x) - shift));
        }
        for (std::size_t q = 0; q < m * m * m; ++q) {
          std::array<std::size_t, 3> const at{q % m, q / m % m, q / (m * m)};
          std::array<Long, 3> slopes{};  // along lines of points
          for (std::size_t a = 0; a < m; ++a) {
            slopes[0] += collocation[at[0]][a].derivative * v[(at[2] * m + at[1]) * m + a];
            slopes[1] += collocation[at[1]][a].derivative * v[(at[2] * m + a) * m + at[0]];
            slopes[2] += collocation[at[2]][a].derivative * v[(a * m + at[1]) * m + at[0]];
          }
          auto const j = [&](std::size_t i, std::size_t d) { return maps[q][i][d + 1]; };
          auto const minor = [&](std::size_t r, std::size_t s) {
            std::size_t const r1 = (r + 1) % 3, r2 = (r + 2) % 3, s1 = (s + 1) % 3, s2 = (s + 2) % 3;
            return j(r1, s1) * j(r2, s2) - j(r1, s2) * j(r2, s1);
          };
          Long const det = j(0, 0) * minor(0, 0) + j(0, 1) * minor(0, 1) + j(0, 2) * minor(0, 2);
          Long const weight = det * gauss.weight[at[0]] * gauss.weight[at[1]] * gauss.weight[at[2]];
          sums.volume += weight;
          sums.values += weight * v[q];
          sums.squares += weight * v[q] * v[q];
          auto const slope = [&](std::size_t i) {
            return (minor(i, 0) * slopes[0] + minor(i, 1) * slopes[1] + minor(i, 2) * slopes[2]) / det;
          };
          for (std::size_t i = 0; i < 3; ++i)
            for (std::size_t e = 0; e < 3; ++e)
              sums.gradients += weight * tensor_at(of_k, i, e, places[q]) * slope(i) * slope(e);
          sums.largest = std::max(sums.largest, std::abs(v[q]));
        }
      }
    return sums;
  }

  test::LatticeBox box;
  LatticeCase asked;
  std::vector<std::vector<Data>> k;
  std::vector<double> coordinates;
  std::vector<std::int32_t> material;
  std::int64_t of_material = 1;  ///< cells that have one entry there
};

void expect_near(double found, Long expected, double tolerance) {
  EXPECT_NEAR(found, static_cast<double>(expected), tolerance * (1 + std::abs(static_cast<double>(expected))));
}

template <class B>
class LatticeSolutionOn : public OnBackend<B::value> {
protected:
  [[nodiscard]] LatticeSolution solution(Mesh const& mesh) { return LatticeSolution(*this->context, mesh.geometry()); }
  [[nodiscard]] Array<double> upload(std::vector<double> const& u) { return uploaded(*this->context, u); }
};

}  // namespace

TYPED_TEST_SUITE(LatticeSolutionOn, Backends, BackendNames);

TYPED_TEST(LatticeSolutionOn, QuantitiesOfMaterials) {
  for (LatticeCase const& c : cases()) {
    SCOPED_TRACE(c.text());
    Mesh const mesh(c);
    std::vector<double> const u = random_vector(mesh.n(), 5);
    Array<double> const on_backend = this->upload(u);
    auto const found = this->solution(mesh).of_materials(on_backend.data());
    ASSERT_EQ(std::ssize(found), c.materials);
    for (int i = 0; i < c.materials; ++i) {
      auto const at = static_cast<std::size_t>(i);
      auto const expected = mesh.integrate(u, constant(0), 0, c.order + 1, i, mesh.k[at]);
      expect_near(found[at].volume, expected.volume, 1e-14);
      expect_near(found[at].u, expected.values, 1e-14);
      expect_near(found[at].gradients, expected.gradients, 1e-12);
      double low = std::numeric_limits<double>::infinity(), high = -low;
      std::int64_t number = 0;
      mesh.for_nodes([&](std::int32_t unknown, Point const&) {
        std::int64_t const m = mesh.box.layout.nodes(), n = mesh.box.layout.cells, lattice = number / (m * m * m);
        std::array<std::int64_t, 3> const node{number % m, number / m % m, number / (m * m) % m};
        ++number;
        bool has = false;  // whether a cell around the node does
        for (std::int64_t cell = 0; cell < n * n * n; ++cell) {
          std::array<std::int64_t, 3> const place{cell % n, cell / n % n, cell / (n * n)};
          bool around = mesh.material_of(lattice, cell) == i;
          for (std::size_t d = 0; d < 3; ++d)
            around = around && c.order * place[d] <= node[d] && node[d] <= c.order * (place[d] + 1);
          has = has || around;
        }
        if (!has)
          return;
        low = std::min(low, u[static_cast<std::size_t>(unknown)]);
        high = std::max(high, u[static_cast<std::size_t>(unknown)]);
      });
      EXPECT_EQ(found[at].min, low);
      EXPECT_EQ(found[at].max, high);
    }
  }
}

TYPED_TEST(LatticeSolutionOn, ErrorsAndTheMeanOfTheExactSolution) {
  for (LatticeCase const& c : cases())
    for (int const more : {1, 3}) {
      if ((c.order == 8 || c.cells == 8) && more > 1)  // the loops take long
        continue;
      int const points = c.order == 2 && more > 1 ? most_box_points : c.order + more;
      SCOPED_TRACE(c.text() + ", points " + std::to_string(points));
      Mesh const mesh(c);
      Data const exact = c.cells == 3 ? polynomial(1, 2, -1) : sine(0.5, 3);
      std::vector<double> const u = random_vector(mesh.n(), 6);
      Array<double> const on_backend = this->upload(u);
      LatticeSolution const asked = this->solution(mesh);
      double const shift = 0.25;
      auto const found = asked.errors(on_backend.data(), exact.code, shift, points);
      auto const expected = mesh.integrate(u, exact, shift, points, -1, {constant(1)});
      expect_near(found.squares, expected.squares, 1e-13);
      expect_near(found.squares_of_gradients, expected.gradients, 1e-11);
      Long largest = expected.largest;
      mesh.for_nodes([&](std::int32_t unknown, Point const& x) {
        largest = std::max<Long>(largest, std::abs(u[static_cast<std::size_t>(unknown)] - (exact.value(x) - shift)));
      });
      expect_near(found.largest, largest, 1e-14);
      auto const mean = asked.mean_of_exact(exact.code, points);
      auto const of_exact = mesh.integrate({}, exact, 0, points, -1, {constant(1)});
      expect_near(mean.integral, -of_exact.values, 1e-14);
      expect_near(mean.volume, of_exact.volume, 1e-14);
    }
}

TYPED_TEST(LatticeSolutionOn, PlacesOfExtremes) {
  for (LatticeCase const& c : cases()) {
    SCOPED_TRACE(c.text());
    Mesh const mesh(c);
    std::vector<Point> places(static_cast<std::size_t>(mesh.n()));
    mesh.for_nodes([&](std::int32_t unknown, Point const& x) { places[static_cast<std::size_t>(unknown)] = x; });
    LatticeSolution const asked = this->solution(mesh);
    auto const expect = [&](std::vector<double> const& u, double low, double high) {
      std::int64_t first_low = -1, first_high = -1;
      auto const before = [&](std::int64_t i, std::int64_t j) {
        Point const &a = places[static_cast<std::size_t>(i)], &b = places[static_cast<std::size_t>(j)];
        return std::array{a[2], a[1], a[0]} < std::array{b[2], b[1], b[0]};
      };
      for (std::int64_t i = 0; i < mesh.n(); ++i) {
        if (u[static_cast<std::size_t>(i)] <= low && (first_low < 0 || before(i, first_low)))
          first_low = i;
        if (u[static_cast<std::size_t>(i)] >= high && (first_high < 0 || before(i, first_high)))
          first_high = i;
      }
      Array<double> const on_backend = this->upload(u);
      ExtremeNodes const found = asked.first_places(on_backend.data(), low, high);
      EXPECT_EQ(found.low, first_low);
      EXPECT_EQ(found.high, first_high);
      for (std::int64_t const node : {found.low, found.high})
        if (node >= 0) {
          EXPECT_EQ(asked.point_of(node), places[static_cast<std::size_t>(node)]);
        }
    };
    std::vector<double> const u = random_vector(mesh.n(), 8);
    expect(u, *std::min_element(u.begin(), u.end()), *std::max_element(u.begin(), u.end()));
    expect(u, 0, 0.5);
    expect(u, -10, 10);  // none
    expect(std::vector<double>(u.size(), 2.0), 2, 2);
  }
}

TYPED_TEST(LatticeSolutionOn, TellsWhereTheDataAreNotAdmissible) {
  using I = Instruction;
  ExpressionCode const root{I(Op::constant, 0.9), I(Op::x), I(Op::subtract), I(Op::sqrt)};
  for (std::int32_t const order : {1, 2}) {
    Mesh mesh({{2, 1, 1}, 2, order, order == 2, false, 1});
    Array<double> const u = this->upload(random_vector(mesh.n(), 3));
    auto const error_of = [&](ExpressionCode const& exact, bool by_unknown = true) {
      try {
        LatticeSolution const asked(*this->context, mesh.geometry(), by_unknown ? Array<double>() : this->upload(mesh.coordinates));
        static_cast<void>(asked.errors(u.data(), exact, 0, order + 2));
      } catch (DataError const& error) {
        return std::optional(error);
      }
      return std::optional<DataError>();
    };
    auto const off = error_of(root);
    ASSERT_TRUE(off);
    EXPECT_EQ(off->quantity, DataError::Quantity::exact);
    EXPECT_GT(off->at[0], 0.9);
    EXPECT_LT(off->at[0], 2.2);
    // Finite at all points of the quadrature, and not at one of the nodes.
    double highest = 0;
    mesh.for_nodes([&](std::int32_t, Point const& x) { highest = std::max(highest, x[0]); });
    auto const at_node = error_of({I(Op::constant, 1.), I(Op::constant, highest), I(Op::x), I(Op::subtract), I(Op::divide)});
    ASSERT_TRUE(at_node);
    EXPECT_EQ(at_node->quantity, DataError::Quantity::exact);
    EXPECT_EQ(at_node->at[0], highest);
    EXPECT_FALSE(error_of(sine(0, 1).code));
    // A lattice that is turned inside out.
    std::int64_t const of_lattice = std::ssize(mesh.coordinates) / 2;
    for (std::int64_t i = of_lattice; i < of_lattice + of_lattice / 3; ++i)
      mesh.coordinates[static_cast<std::size_t>(i)] = 3 - mesh.coordinates[static_cast<std::size_t>(i)];
    auto const inverted = error_of(sine(0, 1).code, false);
    ASSERT_TRUE(inverted);
    EXPECT_EQ(inverted->quantity, DataError::Quantity::determinant);
    EXPECT_EQ(inverted->part, 2 * 2 * 2) << "the first cell of the second lattice";
    EXPECT_LT(inverted->value, 0);
    EXPECT_GT(inverted->at[0], 0.8);
    LatticeGeometry mirrored = mesh.geometry();
    mirrored.point = [point = mirrored.point](std::int64_t unknown) {
      Point const x = point(unknown);
      return Point{3 - x[0], x[1], x[2]};
    };
    EXPECT_THROW(static_cast<void>(LatticeSolution(*this->context, mirrored).of_materials(u.data())), DataError);
  }
}

/// As on a rank: unknowns in another order, and some of which no cell is here.
TYPED_TEST(LatticeSolutionOn, TakesUnknownsInAnyOrder) {
  for (LatticeCase const& c : cases()) {
    SCOPED_TRACE(c.text());
    Mesh const mesh(c);
    LatticeGeometry const own = mesh.geometry();
    LatticeGeometry other = own;
    std::int64_t const n = mesh.n(), more = own.layout.is_box() ? 0 : 5;  // all unknowns of a box are nodes
    std::vector<double> const u = random_vector(n, 11);
    std::vector<double> in_order(static_cast<std::size_t>(n + more), 100.0);
    std::vector<std::int64_t> of_number(in_order.size(), -1);
    other.layout.n_unknowns = n + more;
    RimTables without_copies = *own.layout.tables;
    without_copies.copy_offsets = {};
    without_copies.copies = {};
    other.layout.set_tables(std::move(without_copies));
    for (std::int64_t i = 0; i < n + more; ++i) {
      std::int64_t const number = (i * 7 + 3) % (n + more);
      other.numbers.push_back(static_cast<std::int32_t>(number));
      if (i < n) {
        in_order[static_cast<std::size_t>(number)] = u[static_cast<std::size_t>(i)];
        of_number[static_cast<std::size_t>(number)] = i;
      }
    }
    if ((n + more) % 7 == 0)
      continue;  // 7 i takes no number twice elsewhere
    other.point = [&](std::int64_t number) {
      std::int64_t const i = of_number[static_cast<std::size_t>(number)];
      return i < 0 ? Point{9, 9, 9} : own.point(i);
    };
    LatticeSolution const asked(*this->context, other), expected(*this->context, own);
    Array<double> const on_backend = this->upload(in_order), as_they_are = this->upload(u);
    auto const found = asked.of_materials(on_backend.data()), of_own = expected.of_materials(as_they_are.data());
    for (std::size_t i = 0; i < of_own.size(); ++i) {
      EXPECT_EQ(found[i].volume, of_own[i].volume);
      EXPECT_EQ(found[i].u, of_own[i].u);
      EXPECT_EQ(found[i].gradients, of_own[i].gradients);
      EXPECT_EQ(found[i].max, of_own[i].max);
    }
    double const low = *std::min_element(u.begin(), u.end());
    ExtremeNodes const places = asked.first_places(on_backend.data(), low, 1000);
    ASSERT_GE(places.low, 0);
    EXPECT_EQ(of_number[static_cast<std::size_t>(places.low)], expected.first_places(as_they_are.data(), low, 1000).low);
    EXPECT_EQ(places.high, -1);
    EXPECT_EQ(asked.point_of(places.low), std::nullopt) << "the mesh of the rank tells";
    auto const errors = asked.errors(on_backend.data(), sine(0, 1).code, 0.5, c.order + 1),
               of_errors = expected.errors(as_they_are.data(), sine(0, 1).code, 0.5, c.order + 1);
    EXPECT_EQ(errors.squares, of_errors.squares);
    EXPECT_EQ(errors.squares_of_gradients, of_errors.squares_of_gradients);
  }
}

TYPED_TEST(LatticeSolutionOn, TakesCoordinatesThatAreThere) {
  Mesh const mesh({{2, 1, 1}, 3, 2, true, false, 1});
  Array<double> const u = this->upload(random_vector(mesh.n(), 4));
  LatticeGeometry without = mesh.geometry();
  without.point = nullptr;
  LatticeSolution const asked(*this->context, without, this->upload(mesh.coordinates));
  auto const found = asked.of_materials(u.data()), expected = this->solution(mesh).of_materials(u.data());
  EXPECT_EQ(found.front().volume, expected.front().volume);
  EXPECT_EQ(found.front().gradients, expected.front().gradients);
}

/// As on a rank: the cells of some ghosts are not here, and neither is their place, which their owners know.
TYPED_TEST(LatticeSolutionOn, LeavesOutUnknownsWithoutAPlace) {
  Mesh const mesh({{2, 1, 1}, 3, 2, true, false, 1});
  LatticeGeometry more = mesh.geometry();
  more.point = nullptr;
  std::int64_t const n = mesh.n();
  more.layout.n_unknowns = n + 2;
  RimTables tables = *more.layout.tables;
  tables.copy_offsets.resize(tables.copy_offsets.size() + 2, std::ssize(tables.copies));
  more.layout.set_tables(std::move(tables));
  std::vector<double> u = random_vector(n, 4);
  double const low = *std::min_element(u.begin(), u.end());
  Array<double> const own = this->upload(u);
  u.insert(u.end(), {-1e6, 1e6});
  Array<double> const with_ghosts = this->upload(u);
  LatticeSolution const asked(*this->context, more, this->upload(mesh.coordinates)),
      expected(*this->context, mesh.geometry(), this->upload(mesh.coordinates));
  ExtremeNodes const places = asked.first_places(with_ghosts.data(), low, 1e5);
  EXPECT_EQ(places.low, expected.first_places(own.data(), low, 1e5).low);
  EXPECT_EQ(places.high, -1);
  auto const errors = asked.errors(with_ghosts.data(), sine(0, 1).code, 0.5, 3),
             of_errors = expected.errors(own.data(), sine(0, 1).code, 0.5, 3);
  EXPECT_EQ(errors.largest, of_errors.largest);
  EXPECT_EQ(errors.squares, of_errors.squares);
}

TYPED_TEST(LatticeSolutionOn, Interrupts) {
  Mesh const mesh({{2, 1, 1}, 2, 2, false, false, 1});
  Array<double> const u = this->upload(random_vector(mesh.n(), 9));
  LatticeSolution const asked = this->solution(mesh);
  request_interrupt();
  EXPECT_THROW(static_cast<void>(asked.of_materials(u.data())), Interrupted);
  EXPECT_THROW(static_cast<void>(asked.errors(u.data(), sine(1, 1).code, 0, 4)), Interrupted);
  clear_interrupt();
}

TEST(LatticeSolution, AnyNumberOfThreadsHasTheSameBits) {
  auto const context = make_context(Backend::cpu);
  Mesh const mesh({{2, 2, 1}, 10, 1, false, false, 2});
  std::vector<double> const u = random_vector(mesh.n(), 7);
  LatticeSolution const asked(*context, mesh.geometry());
  auto const numbers = [&] {
    std::vector<double> result;
    for (auto const& of : asked.of_materials(u.data()))
      result.insert(result.end(), {of.volume, of.u, of.gradients, of.min, of.max});
    auto const errors = asked.errors(u.data(), sine(0, 2).code, 0, 4);
    result.insert(result.end(), {errors.squares, errors.squares_of_gradients, errors.largest});
    return result;
  };
  int const threads = thread_count();
  set_thread_count(1);
  std::vector<double> const alone = numbers();
  set_thread_count(3);
  EXPECT_EQ(numbers(), alone);
  set_thread_count(threads);
}

}  // namespace poisson::testing
