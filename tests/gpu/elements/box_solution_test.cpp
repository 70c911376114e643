#include "gpu/elements/box_solution.hpp"

#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"
#include "gpu/core/threads.hpp"
#include "tests/gpu/arrays.hpp"
#include "tests/gpu/cases.hpp"
#include "tests/gpu/elements/functions.hpp"
#include "tests/gpu/matrices.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <optional>
#include <string>
#include <vector>

/// What is asked of a solution on a box, beside loops over cells and points in long double.
namespace poisson::testing {

namespace {

using Long = long double;
using Index = std::array<std::int64_t, 3>;

struct BoxCase {
  Index cells;
  Point origin{0, 0, 0}, extent{1, 1, 1};
  std::array<std::vector<double>, 3> coordinates{};  ///< of graded directions; they agree with the extent
  std::vector<Data> k{constant(1)};
  bool k_on_host = false;
  std::vector<std::vector<Data>> k_of_materials{};  ///< in place of k, by material_of
  std::optional<BoxProblem::Cells> counted{};
  int material = -1;  ///< the one whose cells count; -1: all

  static constexpr int n_materials = 3;
  /// The lower half in x is of one material, the rest of two in turns.
  [[nodiscard]] int material_of(Index const& cell) const {
    return cell[0] < cells[0] / 2 ? 0 : 1 + static_cast<int>((cell[1] + cell[2]) % 2);
  }
  [[nodiscard]] Data const& k_in(Index const& cell, std::size_t direction) const {
    std::vector<Data> const& here = k_of_materials.empty() ? k : k_of_materials[static_cast<std::size_t>(material_of(cell))];
    return here[here.size() == 1 ? 0 : direction];
  }
  [[nodiscard]] double node(std::size_t d, std::int64_t i) const {
    return coordinates[d].empty() ? origin[d] + extent[d] / static_cast<double>(cells[d]) * static_cast<double>(i)
                                  : coordinates[d][static_cast<std::size_t>(i)];
  }
  [[nodiscard]] std::int64_t number(Index const& i) const { return (i[2] * (cells[1] + 1) + i[1]) * (cells[0] + 1) + i[0]; }
  [[nodiscard]] std::int64_t n() const { return (cells[0] + 1) * (cells[1] + 1) * (cells[2] + 1); }
  [[nodiscard]] BoxProblem problem() const {
    BoxProblem result{cells, origin, extent, {}, constant(0).code, {}, coordinates};
    for (Data const& component : k)
      result.coefficient.push_back(k_on_host ? constant(-1).code : component.code);
    result.cells_in_sums = counted;
    if (!k_of_materials.empty()) {
      BoxProblem::Materials& materials = result.materials.emplace();
      for (auto const& of_material : k_of_materials) {
        materials.coefficients.emplace_back();
        for (Data const& component : of_material)
          materials.coefficients.back().push_back(component.code);
      }
      materials.of_planes = [*this](std::int64_t first, std::int64_t count, std::uint8_t* numbers) {
        for (std::int64_t z = first; z < first + count; ++z)
          for (std::int64_t y = 0; y < cells[1]; ++y)
            for (std::int64_t x = 0; x < cells[0]; ++x)
              *numbers++ = static_cast<std::uint8_t>(material_of({x, y, z}));
      };
    }
    if (k_on_host)
      result.coefficient_on_host = [*this](std::int64_t first, std::int64_t count, int c, double* values) {
        double const t = 0.5 - 0.5 / std::sqrt(3.);
        auto const at = [&](std::size_t d, std::int64_t i) {
          return node(d, i / 2) + (i % 2 == 0 ? t : 1 - t) * (node(d, i / 2 + 1) - node(d, i / 2));
        };
        for (std::int64_t z = 2 * first; z < 2 * (first + count); ++z)
          for (std::int64_t y = 0; y < 2 * cells[1]; ++y)
            for (std::int64_t x = 0; x < 2 * cells[0]; ++x)
              *values++ = k[static_cast<std::size_t>(c)].value({at(0, x), at(1, y), at(2, z)});
      };
    return result;
  }
  [[nodiscard]] std::vector<double> values_of(Data const& f) const {
    std::vector<double> u;
    for (std::int64_t z = 0; z <= cells[2]; ++z)
      for (std::int64_t y = 0; y <= cells[1]; ++y)
        for (std::int64_t x = 0; x <= cells[0]; ++x)
          u.push_back(f.value({node(0, x), node(1, y), node(2, z)}));
    return u;
  }
  /// Calls action(cell) for all cells that count.
  template <class Action>
  void for_cells(Action const& action) const {
    BoxProblem::Cells const all = counted.value_or(BoxProblem::Cells{{0, 0, 0}, cells});
    for (std::int64_t z = all.first[2]; z < all.end[2]; ++z)
      for (std::int64_t y = all.first[1]; y < all.end[1]; ++y)
        for (std::int64_t x = all.first[0]; x < all.end[0]; ++x)
          if (material < 0 || material_of({x, y, z}) == material)
            action(Index{x, y, z});
  }
  [[nodiscard]] std::string text() const {
    return std::to_string(cells[0]) + "x" + std::to_string(cells[1]) + "x" + std::to_string(cells[2]) +
           (coordinates[0].empty() ? "" : " graded") + (counted ? " in part" : "") + (k_on_host ? " k on host" : "");
  }
};

/// Gauss-Legendre points of [0, 1]: roots of the Legendre polynomial, by bisection.
struct Gauss {
  std::vector<Long> point, weight;
  explicit Gauss(int n) {
    auto const legendre = [n](Long x) {
      Long before = 1, value = x;
      for (int k = 2; k <= n; ++k) {
        Long const next = ((2 * k - 1) * x * value - (k - 1) * before) / k;
        before = value;
        value = next;
      }
      return std::pair(value, before);
    };
    constexpr int steps = 1001;
    for (int i = 0; i < steps; ++i) {
      Long low = -1 + 2 * static_cast<Long>(i) / steps, high = -1 + 2 * static_cast<Long>(i + 1) / steps;
      bool const rises = legendre(low).first < 0;
      if (rises == (legendre(high).first < 0))
        continue;
      for (int j = 0; j < 80; ++j) {
        Long const middle = (low + high) / 2;
        ((legendre(middle).first < 0) == rises ? low : high) = middle;
      }
      Long const slope = n * legendre(low).second / (1 - low * low);
      point.push_back((1 + low) / 2);
      weight.push_back(1 / ((1 - low * low) * slope * slope));
    }
  }
  /// The derivative of Lagrange function i at point q.
  [[nodiscard]] Long derivative(std::size_t q, std::size_t i) const {
    Long sum = 0;
    for (std::size_t a = 0; a < point.size(); ++a) {
      if (a == i)
        continue;
      Long product = 1 / (point[i] - point[a]);
      for (std::size_t b = 0; b < point.size(); ++b)
        product *= b == i || b == a ? 1 : (point[q] - point[b]) / (point[i] - point[b]);
      sum += product;
    }
    return sum;
  }
};

/// u and its derivatives at a point of a cell, in coordinates t of [0, 1].
struct AtPoint {
  Long value = 0;
  std::array<Long, 3> gradient{};
  AtPoint(BoxCase const& box, std::vector<double> const& u, Index const& cell, std::array<Long, 3> const& t) {
    for (int corner = 0; corner < 8; ++corner) {
      Long const at =
          u[static_cast<std::size_t>(box.number({cell[0] + (corner & 1), cell[1] + (corner >> 1 & 1), cell[2] + (corner >> 2)}))];
      std::array<Long, 3> f{}, slope{};
      for (std::size_t d = 0; d < 3; ++d) {
        bool const upper = (corner >> d & 1) == 1;
        f[d] = upper ? t[d] : 1 - t[d];
        slope[d] = (upper ? 1 : -1) / (static_cast<Long>(box.node(d, cell[d] + 1)) - box.node(d, cell[d]));
      }
      value += at * f[0] * f[1] * f[2];
      gradient[0] += at * slope[0] * f[1] * f[2];
      gradient[1] += at * f[0] * slope[1] * f[2];
      gradient[2] += at * f[0] * f[1] * slope[2];
    }
  }
};

Point place(BoxCase const& box, Index const& cell, std::array<Long, 3> const& t) {
  Point x{};
  for (std::size_t d = 0; d < 3; ++d)
    x[d] = static_cast<double>((1 - t[d]) * box.node(d, cell[d]) + t[d] * box.node(d, cell[d] + 1));
  return x;
}

Long volume_of(BoxCase const& box, Index const& cell) {
  Long volume = 1;
  for (std::size_t d = 0; d < 3; ++d)
    volume *= static_cast<Long>(box.node(d, cell[d] + 1)) - box.node(d, cell[d]);
  return volume;
}

BoxSolution::Integrals integrals_of(BoxCase const& box, std::vector<double> const& u) {
  Gauss const gauss(2);
  Long volume = 0, integral = 0, gradients = 0;
  box.for_cells([&](Index const& cell) {
    volume += volume_of(box, cell);
    for (std::size_t q = 0; q < 8; ++q) {
      std::array<Long, 3> const t{gauss.point[q & 1], gauss.point[q >> 1 & 1], gauss.point[q >> 2]};
      AtPoint const at(box, u, cell, t);
      integral += volume_of(box, cell) / 8 * at.value;
      for (std::size_t d = 0; d < 3; ++d)
        gradients += volume_of(box, cell) / 8 * box.k[box.k.size() == 1 ? 0 : d].value(place(box, cell, t)) * at.gradient[d] *
                     at.gradient[d];
    }
  });
  return {static_cast<double>(volume), static_cast<double>(integral), static_cast<double>(gradients)};
}

BoxSolution::Errors errors_of(BoxCase const& box, std::vector<double> const& u, Data const& exact, double shift, int points) {
  Gauss const gauss(points);
  auto const m = static_cast<std::size_t>(points);
  std::vector<Long> derivative;
  for (std::size_t q = 0; q < m; ++q)
    for (std::size_t i = 0; i < m; ++i)
      derivative.push_back(gauss.derivative(q, i));
  std::vector<Long> values(m * m * m);
  Long squares = 0, of_gradients = 0, largest = 0;
  box.for_cells([&](Index const& cell) {
    auto const t_of = [&](std::size_t q) {
      return std::array<Long, 3>{gauss.point[q % m], gauss.point[q / m % m], gauss.point[q / (m * m)]};
    };
    for (std::size_t q = 0; q < values.size(); ++q)
      values[q] = static_cast<Long>(exact.value(place(box, cell, t_of(q)))) - shift;
    for (std::size_t q = 0; q < values.size(); ++q) {
      AtPoint const at(box, u, cell, t_of(q));
      Long const weight = volume_of(box, cell) * gauss.weight[q % m] * gauss.weight[q / m % m] * gauss.weight[q / (m * m)];
      Long const e = at.value - values[q];
      squares += weight * e * e;
      largest = std::max(largest, std::abs(e));
      std::size_t stride = 1;
      for (std::size_t d = 0; d < 3; ++d, stride *= m) {
        std::size_t const here = q / stride % m, first = q - here * stride;
        Long slope = 0;
        for (std::size_t i = 0; i < m; ++i)
          slope += derivative[here * m + i] * values[first + i * stride];
        Long const edge = static_cast<Long>(box.node(d, cell[d] + 1)) - box.node(d, cell[d]);
        Long const difference = at.gradient[d] - slope / edge;
        of_gradients += weight * difference * difference;
      }
    }
    for (int corner = 0; corner < 8; ++corner) {
      Index const node{cell[0] + (corner & 1), cell[1] + (corner >> 1 & 1), cell[2] + (corner >> 2)};
      Long const e = u[static_cast<std::size_t>(box.number(node))] -
                     (static_cast<Long>(exact.value({box.node(0, node[0]), box.node(1, node[1]), box.node(2, node[2])})) - shift);
      largest = std::max(largest, std::abs(e));
    }
  });
  return {static_cast<double>(squares), static_cast<double>(of_gradients), static_cast<double>(largest)};
}

/// Boxes of many shapes, with equal and graded cells, all or some of which count.
std::vector<BoxCase> boxes() {
  std::vector<BoxCase> result;
  for (Index const& cells : {Index{1, 1, 1}, Index{2, 3, 4}, Index{9, 5, 7}, Index{40, 2, 3}, Index{3, 33, 2}, Index{2, 1, 37}})
    for (bool const is_graded : {false, true})
      for (bool const in_part : {false, true}) {
        BoxCase box{cells, {-0.5, 0.25, 0.1}, {1.5, 0.7, 2}};
        if (is_graded)
          box.coordinates = {graded(-0.5, 1.5, cells[0], 1.1), {}, graded(0.1, 2, cells[2], 0.8)};
        if (in_part)
          box.counted = {{cells[0] / 3, cells[1] / 4, cells[2] / 2}, {cells[0] - cells[0] / 5, cells[1], cells[2] - cells[2] / 7}};
        result.push_back(box);
      }
  return result;
}

/// What BoxSolution::of_side finds, and the sum of the sizes of what the flux is made of.
struct SideOfBox {
  BoxSolution::OfSide of;
  Long sizes = 0;
};
SideOfBox side_of(BoxCase const& box, std::vector<double> const& u, int side, bool fixed, Data const& f, Data const& value,
                  Data const& alpha, BoxProblem::Cells const& faces, BoxProblem::Cells const& nodes) {
  Gauss const gauss(2);
  auto const d = static_cast<std::size_t>(side / 2), a = (d + 1) % 3, b = (d + 2) % 3;
  bool const upper = side % 2 == 1;
  auto const holds = [&](BoxProblem::Cells const& range, Index const& i) {
    return range.first[a] <= i[a] && i[a] < range.end[a] && range.first[b] <= i[b] && i[b] < range.end[b];
  };
  SideOfBox found{{0, {0, 0, std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()}}};
  Long area = 0, integral = 0, flux = 0;
  Index cell{};
  cell[d] = upper ? box.cells[d] - 1 : 0;
  for (cell[a] = 0; cell[a] < box.cells[a]; ++cell[a])
    for (cell[b] = 0; cell[b] < box.cells[b]; ++cell[b]) {
      std::array<Long, 3> edge{};
      for (std::size_t e = 0; e < 3; ++e)
        edge[e] = static_cast<Long>(box.node(e, cell[e] + 1)) - box.node(e, cell[e]);
      for (std::size_t q = 0; q < 4 && holds(faces, cell); ++q) {
        std::array<Long, 3> t{};
        t[d] = upper ? 1 : 0;
        t[a] = gauss.point[q & 1];
        t[b] = gauss.point[q >> 1];
        Long const weight = edge[a] * edge[b] / 4, at = AtPoint(box, u, cell, t).value;
        area += weight;
        integral += weight * at;
        if (!fixed) {
          Point const x = place(box, cell, t);
          flux -= weight * (value.value(x) - alpha.value(x) * at);
          found.sizes += weight * (std::abs(value.value(x)) + std::abs(alpha.value(x) * at));
        }
      }
      for (int corner = 0; corner < 8; ++corner) {
        Index const node{cell[0] + (corner & 1), cell[1] + (corner >> 1 & 1), cell[2] + (corner >> 2)};
        if (node[d] != (upper ? box.cells[d] : 0))
          continue;
        double const here = u[static_cast<std::size_t>(box.number(node))];
        if (holds(faces, cell)) {
          found.of.sums.min = std::min(found.of.sums.min, here);
          found.of.sums.max = std::max(found.of.sums.max, here);
        }
        for (std::size_t q = 0; q < 8 && fixed && holds(nodes, node); ++q) {
          std::array<Long, 3> const t{gauss.point[q & 1], gauss.point[q >> 1 & 1], gauss.point[q >> 2]};
          std::array<Long, 3> basis{}, slope{};
          for (std::size_t e = 0; e < 3; ++e) {
            bool const high = (corner >> e & 1) == 1;
            basis[e] = high ? t[e] : 1 - t[e];
            slope[e] = (high ? 1 : -1) / edge[e];
          }
          AtPoint const at(box, u, cell, t);
          Point const x = place(box, cell, t);
          Long const weight = edge[0] * edge[1] * edge[2] / 8;
          for (std::size_t e = 0; e < 3; ++e) {
            Long const part =
                weight * box.k_in(cell, e).value(x) * at.gradient[e] * slope[e] * basis[(e + 1) % 3] * basis[(e + 2) % 3];
            flux -= part;
            found.sizes += std::abs(part);
          }
          Long const load = weight * f.value(x) * basis[0] * basis[1] * basis[2];
          flux += load;
          found.sizes += std::abs(load);
        }
      }
    }
  found.of.area = static_cast<double>(area);
  found.of.sums.u = static_cast<double>(integral);
  found.of.sums.flux = static_cast<double>(flux);
  return found;
}

/// sqrt(at - x), or of y or z.
Data root_of(double at, Op coordinate) {
  using I = Instruction;
  auto const d = static_cast<std::size_t>(coordinate == Op::x ? 0 : coordinate == Op::y ? 1 : 2);
  return {{I(Op::constant, at), I(coordinate), I(Op::subtract), I(Op::sqrt)}, [=](Point const& p) { return std::sqrt(at - p[d]); }};
}

template <class B>
class BoxSolutionOn : public OnBackend<B::value> {
protected:
  [[nodiscard]] BoxSolution solution(BoxCase const& box) { return BoxSolution(*this->context, box.problem()); }
  [[nodiscard]] Array<double> upload(std::vector<double> const& u) { return uploaded(*this->context, u); }

  void expect_integrals(BoxCase const& box, std::vector<double> const& u) {
    SCOPED_TRACE(box.text());
    Array<double> const on_backend = upload(u);
    BoxSolution const asked = solution(box);
    auto const found = asked.integrals(on_backend.data()), expected = integrals_of(box, u),
               again = asked.integrals(on_backend.data());
    std::vector<double> sizes = u;
    for (double& v : sizes)
      v = std::abs(v);
    EXPECT_NEAR(found.volume, expected.volume, 1e-14 * expected.volume);
    EXPECT_NEAR(found.u, expected.u, 1e-14 * integrals_of(box, sizes).u);
    EXPECT_NEAR(found.gradients, expected.gradients, 1e-13 * expected.gradients);
    EXPECT_EQ(found.u, again.u);
    EXPECT_EQ(found.gradients, again.gradients);
  }
  void expect_errors(BoxCase const& box, std::vector<double> const& u, Data const& exact, double shift, int points) {
    SCOPED_TRACE(box.text() + ", " + std::to_string(points) + " points");
    Array<double> const on_backend = upload(u);
    BoxSolution const asked = solution(box);
    auto const found = asked.errors(on_backend.data(), exact.code, shift, points),
               expected = errors_of(box, u, exact, shift, points);
    EXPECT_NEAR(found.squares, expected.squares, 1e-13 * expected.squares);
    EXPECT_NEAR(found.squares_of_gradients, expected.squares_of_gradients, 1e-11 * expected.squares_of_gradients);
    EXPECT_NEAR(found.largest, expected.largest, 1e-13 * expected.largest);
    auto const again = asked.errors(on_backend.data(), exact.code, shift, points);
    EXPECT_EQ(found.squares, again.squares);
    EXPECT_EQ(found.squares_of_gradients, again.squares_of_gradients);
    EXPECT_EQ(found.largest, again.largest);
  }
  /// `call` throws DataError at this place.
  template <class Call>
  void expect_refused_at(Point const& expected, Call const& call) {
    try {
      static_cast<void>(call());
      FAIL() << "exact is not finite";
    } catch (DataError const& error) {
      EXPECT_EQ(error.quantity, DataError::Quantity::exact);
      for (std::size_t d = 0; d < 3; ++d)
        EXPECT_NEAR(error.at[d], expected[d], 1e-15) << d;
    }
  }
};
TYPED_TEST_SUITE(BoxSolutionOn, Backends, BackendNames);

TYPED_TEST(BoxSolutionOn, QuantitiesOfMaterials) {
  for (BoxCase box : boxes()) {
    SCOPED_TRACE(box.text());
    // Of the first one k is no number in the others.
    box.k_of_materials = {
        {root_of(box.node(0, box.cells[0] / 2), Op::x)}, {constant(3)}, {polynomial(2, 1, 0.5), constant(0.5), sine(2, 3)}};
    BoxProblem const problem = box.problem();
    std::vector<double> const u = random_vector(box.n(), 21);
    Array<double> const on_backend = this->upload(u);
    auto const found = BoxSolution(*this->context, problem).of_materials(on_backend.data());
    ASSERT_EQ(std::ssize(found), BoxCase::n_materials);
    for (box.material = 0; box.material < BoxCase::n_materials; ++box.material) {
      auto const m = static_cast<std::size_t>(box.material);
      box.k = box.k_of_materials[m];
      auto const expected = integrals_of(box, u);
      EXPECT_NEAR(found[m].volume, expected.volume, 1e-14 * (1 + expected.volume));
      EXPECT_NEAR(found[m].u, expected.u, 1e-13 * (1 + expected.volume));
      EXPECT_NEAR(found[m].gradients, expected.gradients, 1e-13 * expected.gradients);
      double low = std::numeric_limits<double>::infinity(), high = -low;
      box.for_cells([&](Index const& cell) {
        for (int corner = 0; corner < 8; ++corner) {
          double const v = u[static_cast<std::size_t>(
              box.number({cell[0] + (corner & 1), cell[1] + (corner >> 1 & 1), cell[2] + (corner >> 2)}))];
          low = std::min(low, v);
          high = std::max(high, v);
        }
      });
      EXPECT_EQ(found[m].min, low);
      EXPECT_EQ(found[m].max, high);
    }
  }
}

TYPED_TEST(BoxSolutionOn, OneCellByHand) {
  BoxCase box{{1, 1, 1}};
  auto const by_hand = [&](std::vector<double> const& u, double integral, double gradients) {
    Array<double> const on_backend = this->upload(u);
    auto const found = this->solution(box).integrals(on_backend.data());
    EXPECT_NEAR(found.volume, box.extent[0], 1e-15);
    EXPECT_NEAR(found.u, integral, 1e-15);
    EXPECT_NEAR(found.gradients, gradients, 1e-15);
  };
  by_hand({0, 1, 0, 1, 0, 1, 0, 1}, 0.5, 1);              // x
  by_hand({0, 0, 0, 0, 0, 0, 0, 1}, 1. / 8, 3 * 1. / 9);  // x y z: the integral of (y z)^2 is 1/9
  box.k = {constant(1), constant(2), constant(4)};
  by_hand({0, 0, 0, 0, 0, 0, 0, 1}, 1. / 8, 7. / 9);
  box.extent[0] = 2;
  by_hand({0, 0, 0, 0, 0, 0, 0, 1}, 2. / 8, (1. / 2 + 2 * 2 + 4 * 2) / 9);

  Array<double> const u = this->upload({0, 0, 0, 0, 0, 0, 0, 1});
  auto const found = this->solution(box).errors(u.data(), constant(0).code, 0, 4);
  EXPECT_NEAR(found.squares, 2. / 27, 1e-15);  // the integral of (x y z)^2
  EXPECT_NEAR(found.squares_of_gradients, (1. / 2 + 2 + 2) / 9, 1e-14);
  EXPECT_EQ(found.largest, 1);
}

TYPED_TEST(BoxSolutionOn, EnergyOfALinearSolution) {
  for (BoxCase box : boxes()) {
    if (box.counted)
      continue;
    SCOPED_TRACE(box.text());
    std::vector<double> u;
    for (std::int64_t i = 0; i < box.n(); ++i) {
      std::int64_t const nx = box.cells[0] + 1, ny = box.cells[1] + 1;
      u.push_back(1 + 2 * box.node(0, i % nx) - 3 * box.node(1, i / nx % ny) + box.node(2, i / (nx * ny)));
    }
    Array<double> const on_backend = this->upload(u);
    double const volume = 1.5 * 0.7 * 2;  // centre (0.25, 0.6, 1.1)
    box.k = {polynomial(2, 0, 3)};        // of z, linearly
    auto const found = this->solution(box).integrals(on_backend.data());
    EXPECT_NEAR(found.volume, volume, 1e-14);
    EXPECT_NEAR(found.u, volume * (1 + 2 * 0.25 - 3 * 0.6 + 1.1), 1e-13);
    EXPECT_NEAR(found.gradients, volume * 14 * (2 + 3 * 1.1), 1e-12);
    box.k = {constant(1), polynomial(2, 0, 3), constant(5)};
    EXPECT_NEAR(this->solution(box).integrals(on_backend.data()).gradients, volume * (4 + 9 * (2 + 3 * 1.1) + 5), 1e-12);
  }
}

TYPED_TEST(BoxSolutionOn, IntegralsAreThoseOfPlainLoops) {
  for (BoxCase box : boxes()) {
    std::vector<double> const u = random_vector(box.n(), 3);
    for (bool const on_host : {false, true})
      for (std::vector<Data> const& k : {std::vector<Data>{constant(3)},
                                         {polynomial(3, 0.5, 0.25)},
                                         {polynomial(3, 1, 1), constant(10), sine(2, 1)},
                                         {branches(4, 7)},
                                         {constant(1), constant(2), constant(0.5)}}) {
        box.k = k;
        box.k_on_host = on_host;
        this->expect_integrals(box, u);
      }
  }
}

TYPED_TEST(BoxSolutionOn, ErrorsAreThoseOfPlainLoops) {
  for (BoxCase const& box : boxes()) {
    std::vector<double> const u = random_vector(box.n(), 4);
    for (Data const& exact : {sine(0.5, 3), polynomial(1, 2, -3), constant(0.25), branches(3, 2)})
      this->expect_errors(box, u, exact, 0.125, 4);
  }
  for (int const points : {2, 5, 9, most_box_points})
    this->expect_errors(boxes()[5], random_vector(boxes()[5].n(), 4), sine(0.5, 3), 0, points);
}

TYPED_TEST(BoxSolutionOn, SidesAreThoseOfPlainLoops) {
  using Condition = BoxProblem::Face::Type;
  Data const f = sine(2, 3), value = polynomial(1, 2, 3), alpha = sine(2, 1);
  for (BoxCase box : boxes()) {
    if (box.counted)
      continue;
    std::vector<double> const u = random_vector(box.n(), 3);
    Array<double> const on_backend = this->upload(u);
    for (std::vector<std::vector<Data>> const& k : {std::vector<std::vector<Data>>{{constant(3)}},
                                                    {{polynomial(3, 1, 1), constant(10), sine(2, 1)}},
                                                    {{branches(4, 7)}},
                                                    {{constant(3)}, {constant(7), constant(0.5), constant(20)}, {constant(11)}}}) {
      box.k = k.front();
      box.k_of_materials = k.size() == 1 ? std::vector<std::vector<Data>>{} : k;
      BoxProblem problem = box.problem();
      problem.source = f.code;
      for (int side = 0; side < 6; ++side)
        for (Condition const type : {Condition::dirichlet, Condition::neumann, Condition::robin}) {
          SCOPED_TRACE(box.text() + ", side " + std::to_string(side) + ", condition " + std::to_string(static_cast<int>(type)));
          problem.faces[static_cast<std::size_t>(side)] = {type, 0, value.code, alpha.code};
          BoxSolution const asked(*this->context, problem);
          ASSERT_TRUE(asked.has_sides());
          BoxProblem::Cells all{{0, 0, 0}, box.cells}, nodes{{1, 1, 1}, box.cells}, some = all;
          for (std::size_t e = 0; e < 3; ++e) {
            some.first[e] = box.cells[e] / 3;
            some.end[e] = std::max(some.first[e] + 1, box.cells[e] - box.cells[e] / 4);
          }
          for (BoxProblem::Cells const& faces : {all, some}) {
            SideOfBox const expected = side_of(box, u, side, type == Condition::dirichlet, f, value,
                                               type == Condition::robin ? alpha : constant(0), faces, nodes);
            auto const found = asked.of_side(on_backend.data(), side, faces, nodes);
            EXPECT_NEAR(found.area, expected.of.area, 1e-14 * expected.of.area);
            EXPECT_NEAR(found.sums.u, expected.of.sums.u, 1e-14 * expected.of.area);
            EXPECT_EQ(found.sums.min, expected.of.sums.min);
            EXPECT_EQ(found.sums.max, expected.of.sums.max);
            EXPECT_NEAR(found.sums.flux, expected.of.sums.flux, 1e-14 * static_cast<double>(expected.sizes));
            EXPECT_EQ(found.sums.flux, asked.of_side(on_backend.data(), side, faces, nodes).sums.flux);
          }
        }
    }
  }
}

TYPED_TEST(BoxSolutionOn, FluxOfALinearSolution) {
  // u = x + 2 y - 3 z and k = 2: what leaves through a node is k du/dn times its share of the side, which has 3 x 3 cells.
  BoxCase box{{3, 3, 3}};
  box.k = {constant(2)};
  std::vector<double> u;
  for (std::int64_t i = 0; i < box.n(); ++i)
    u.push_back(box.node(0, i % 4) + 2 * box.node(1, i / 4 % 4) - 3 * box.node(2, i / 16));
  Array<double> const on_backend = this->upload(u);
  BoxSolution const asked(*this->context, box.problem());
  for (std::size_t d = 0; d < 3; ++d)
    for (int const upper : {0, 1}) {
      double const slope = std::array{1., 2., -3.}[d];
      auto const found =
          asked.of_side(on_backend.data(), 2 * static_cast<int>(d) + upper, {{1, 1, 1}, {2, 2, 2}}, {{1, 1, 1}, {3, 3, 3}});
      EXPECT_NEAR(found.area, 1. / 9, 1e-15);
      EXPECT_NEAR(found.sums.flux, (upper == 1 ? -2 : 2) * slope * 4 / 9, 1e-14);
    }
}

TYPED_TEST(BoxSolutionOn, SlabsOfPlanes) {
  BoxCase box{{131, 128, 6}};  // several slabs on the host
  box.coordinates = {graded(0, 1, 131, 1.01), {}, graded(0, 1, 6, 1.3)};
  std::vector<double> const u = random_vector(box.n(), 5);
  this->expect_errors(box, u, sine(0.5, 3), 0, 2);
  for (bool const on_host : {false, true}) {
    box.k = {polynomial(3, 0.5, 0.25)};
    box.k_on_host = on_host;
    this->expect_integrals(box, u);
  }
}

TYPED_TEST(BoxSolutionOn, TheInterpolantOfATrilinearFunctionHasNoError) {
  for (BoxCase const& box : boxes()) {
    SCOPED_TRACE(box.text());
    Data const f = polynomial(1, 2, 3);
    std::vector<double> u = box.values_of(f);
    for (double& v : u)
      v -= 0.5;
    Array<double> const on_backend = this->upload(u);
    auto const found = this->solution(box).errors(on_backend.data(), f.code, 0.5, 4);
    EXPECT_LT(std::sqrt(found.squares), 1e-14);
    EXPECT_LT(std::sqrt(found.squares_of_gradients), 1e-11);
    EXPECT_LT(found.largest, 1e-14);
  }
}

TYPED_TEST(BoxSolutionOn, ErrorsOfInterpolantsConverge) {
  Data const f = sine(0.5, 3);
  std::vector<BoxSolution::Errors> found;
  for (std::int64_t const n : {8, 16, 32}) {
    BoxCase const box{{n, n, n}};
    Array<double> const u = this->upload(box.values_of(f));
    found.push_back(this->solution(box).errors(u.data(), f.code, 0, 4));
  }
  for (std::size_t i = 1; i < found.size(); ++i) {
    EXPECT_NEAR(std::log2(found[i - 1].squares / found[i].squares) / 2, 2, 0.02);
    EXPECT_NEAR(std::log2(found[i - 1].squares_of_gradients / found[i].squares_of_gradients) / 2, 1, 0.02);
    EXPECT_NEAR(std::log2(found[i - 1].largest / found[i].largest), 2, 0.1);
  }
}

TYPED_TEST(BoxSolutionOn, SumsOfPartsAreTheWhole) {
  BoxCase box{{9, 5, 7}, {0, 0, 0}, {1, 1, 1}, {graded(0, 1, 9, 1.2), {}, {}}, {polynomial(3, 0.5, 0.25)}};
  std::vector<double> const u = random_vector(box.n(), 6);
  Array<double> const on_backend = this->upload(u);
  Data const exact = sine(0, 2);
  auto const whole = this->solution(box).integrals(on_backend.data());
  auto const errors = this->solution(box).errors(on_backend.data(), exact.code, 0, 4);
  auto const mean = this->solution(box).mean_of_exact(exact.code, 4);
  BoxSolution::Integrals sum;
  BoxSolution::Errors of_parts;
  BoxSolution::Mean of_exact;
  for (BoxProblem::Cells const& cells : {BoxProblem::Cells{{0, 0, 0}, {4, 5, 7}}, BoxProblem::Cells{{4, 0, 0}, {9, 5, 2}},
                                         BoxProblem::Cells{{4, 0, 2}, {9, 5, 7}}}) {
    box.counted = cells;
    auto const part = this->solution(box).integrals(on_backend.data());
    sum = {sum.volume + part.volume, sum.u + part.u, sum.gradients + part.gradients};
    auto const e = this->solution(box).errors(on_backend.data(), exact.code, 0, 4);
    of_parts = {of_parts.squares + e.squares, of_parts.squares_of_gradients + e.squares_of_gradients,
                std::max(of_parts.largest, e.largest)};
    auto const m = this->solution(box).mean_of_exact(exact.code, 4);
    of_exact = {of_exact.integral + m.integral, of_exact.volume + m.volume};
  }
  EXPECT_NEAR(sum.volume, whole.volume, 1e-14);
  EXPECT_NEAR(sum.u, whole.u, 1e-14);
  EXPECT_NEAR(sum.gradients, whole.gradients, 1e-13 * whole.gradients);
  EXPECT_NEAR(of_parts.squares, errors.squares, 1e-14 * errors.squares);
  EXPECT_NEAR(of_parts.squares_of_gradients, errors.squares_of_gradients, 1e-13 * errors.squares_of_gradients);
  EXPECT_EQ(of_parts.largest, errors.largest);
  EXPECT_NEAR(of_exact.integral, mean.integral, 1e-14);
  EXPECT_NEAR(of_exact.volume, mean.volume, 1e-14);
}

TYPED_TEST(BoxSolutionOn, MeanOfExact) {
  for (BoxCase const& box : boxes()) {
    SCOPED_TRACE(box.text());
    // The integral of 1 + 2 x y + 3 z over the cells that count.
    BoxProblem::Cells const all = box.counted.value_or(BoxProblem::Cells{{0, 0, 0}, box.cells});
    Point low{}, high{};
    for (std::size_t d = 0; d < 3; ++d) {
      low[d] = box.node(d, all.first[d]);
      high[d] = box.node(d, all.end[d]);
    }
    double const volume = (high[0] - low[0]) * (high[1] - low[1]) * (high[2] - low[2]);
    double const mean = 1 + 2 * (low[0] + high[0]) * (low[1] + high[1]) / 4 + 3 * (low[2] + high[2]) / 2;
    auto const found = this->solution(box).mean_of_exact(polynomial(1, 2, 3).code, 4);
    EXPECT_NEAR(found.integral, volume * mean, 1e-13);
    EXPECT_NEAR(found.volume, volume, 1e-14);
  }
  BoxCase const box{{8, 4, 8}};  // sin(3 x + z)
  double const integral = (std::sin(4) - std::sin(3) - std::sin(1)) / -3;
  EXPECT_NEAR(this->solution(box).mean_of_exact(sine(0, 3).code, 6).integral, integral, 1e-14);
  EXPECT_NEAR(this->solution(box).mean_of_exact(constant(2).code, 4).integral, 2, 1e-14);
}

TYPED_TEST(BoxSolutionOn, RangeAndPlaces) {
  BoxCase const box{{19, 16, 8}};
  BoxSolution const asked = this->solution(box);
  std::vector<double> u(static_cast<std::size_t>(box.n()), 0.5);
  auto const expect = [&](double min, double max, bool finite, std::int64_t low, std::int64_t high) {
    Array<double> const on_backend = this->upload(u);
    ValueRange const range = asked.range(on_backend.data());
    EXPECT_EQ(range.min, min);
    EXPECT_EQ(range.max, max);
    EXPECT_EQ(range.finite, finite);
    ExtremeNodes const places = asked.first_places(on_backend.data(), range.min, range.max);
    EXPECT_EQ(places.low, low);
    EXPECT_EQ(places.high, high);
  };
  expect(0.5, 0.5, true, 0, 0);
  u[77] = u[1500] = u[3059] = -2;
  u[2900] = u[1499] = 1e300;
  expect(-2, 1e300, true, 77, 1499);
  u[0] = 1e300;
  u[77] = 3;
  expect(-2, 1e300, true, 1500, 0);
  for (double& v : u)
    v = -std::abs(v) - 1;
  u[2222] = -1e-310;
  expect(-1e300, -1e-310, true, 0, 2222);
  u[40] = std::numeric_limits<double>::quiet_NaN();
  expect(-1e300, -1e-310, false, 0, 2222);
  u[3059] = std::numeric_limits<double>::infinity();
  expect(-1e300, std::numeric_limits<double>::infinity(), false, 0, 3059);

  // Values that tie with the extremes but for rounding.
  std::fill(u.begin(), u.end(), 0.5);
  u[1000] = 1e-12;
  u[2000] = 0;
  u[1200] = 1;
  u[1100] = 1 - 1e-12;
  Array<double> const on_backend = this->upload(u);
  ExtremeNodes const near = asked.first_places(on_backend.data(), 1e-9, 1 - 1e-9),
                     none = asked.first_places(on_backend.data(), -1, 2);
  EXPECT_EQ(near.low, 1000);
  EXPECT_EQ(near.high, 1100);
  EXPECT_EQ(none.low, -1);
  EXPECT_EQ(none.high, -1);
  u[2000] = -0.0;
  Array<double> const with_zero = this->upload(u);
  EXPECT_FALSE(std::signbit(asked.range(with_zero.data()).min));
}

TYPED_TEST(BoxSolutionOn, PlacesWhereExactIsNotFinite) {
  double const g = 0.5 - 0.5 / std::sqrt(3.);  // two points
  for (bool const in_part : {false, true}) {
    BoxCase box{{8, 4, 4}};
    if (in_part)
      box.counted = {{2, 1, 2}, {8, 4, 4}};
    Array<double> const u = this->upload(box.values_of(constant(0)));
    BoxSolution const asked = this->solution(box);
    double const x = in_part ? 2. / 8 : 0, y = in_part ? 1. / 4 : 0, z = in_part ? 2. / 4 : 0;
    auto const expect = [&](Data const& exact, Point const& at) {
      this->expect_refused_at(at, [&] { return asked.errors(u.data(), exact.code, 0, 2); });
      this->expect_refused_at(at, [&] { return asked.mean_of_exact(exact.code, 2); });
    };
    expect(root_of(-1, Op::x), {x + g / 8, y + g / 4, z + g / 4});         // nowhere finite
    expect(root_of(0.66, Op::x), {6. / 8 + g / 8, y + g / 4, z + g / 4});  // first the first points of all cells of the row
    expect(root_of(0.65, Op::y), {x + g / 8, 0.75 - g / 4, z + g / 4});    // the second point of the third cell
    expect(root_of(0.9, Op::z), {x + g / 8, y + g / 4, 1 - g / 4});
    // Finite at the points, and not at the nodes of the last plane.
    this->expect_refused_at({x, y, 1}, [&] { return asked.errors(u.data(), root_of(0.99, Op::z).code, 0, 2); });
    EXPECT_NO_THROW(static_cast<void>(asked.mean_of_exact(root_of(0.99, Op::z).code, 2)));
    // What does not count is not looked at.
    using I = Instruction;
    ExpressionCode const root{I(Op::z), I(Op::constant, -0.5), I(Op::add), I(Op::sqrt)};
    if (in_part)
      EXPECT_NO_THROW(static_cast<void>(asked.errors(u.data(), root, 0, 2)));
    else
      this->expect_refused_at({g / 8, g / 4, g / 4}, [&] { return asked.errors(u.data(), root, 0, 2); });
  }
  // 1 / (1 / x + y) is 0 at x = 0, where a part of it is not finite.
  using I = Instruction;
  ExpressionCode const quotient{I(Op::constant, 1), I(Op::constant, 1), I(Op::x),     I(Op::divide),
                                I(Op::y),           I(Op::add),         I(Op::divide)};
  BoxCase const box{{8, 4, 4}};
  Array<double> const u = this->upload(box.values_of(constant(0)));
  EXPECT_NO_THROW(static_cast<void>(this->solution(box).errors(u.data(), quotient, 0, 4)));
}

TYPED_TEST(BoxSolutionOn, Copies) {
  BoxCase const box{{6, 5, 4}};
  std::vector<double> const u = random_vector(box.n(), 8);
  Array<double> const on_backend = this->upload(u);
  BoxSolution const asked = this->solution(box);
  HostVector<double> out;
  auto const expect = [&](Index const& first, Index const& count) {
    asked.copy_part(on_backend.data(), first, count, out);
    ASSERT_EQ(out.size(), static_cast<std::size_t>(count[0] * count[1] * count[2]));
    std::size_t next = 0;
    for (std::int64_t z = 0; z < count[2]; ++z)
      for (std::int64_t y = 0; y < count[1]; ++y)
        for (std::int64_t x = 0; x < count[0]; ++x)
          ASSERT_EQ(out[next++], u[static_cast<std::size_t>(box.number({first[0] + x, first[1] + y, first[2] + z}))])
              << first[0] << ' ' << first[1] << ' ' << first[2] << ": " << x << ' ' << y << ' ' << z;
  };
  expect({0, 0, 0}, {7, 6, 5});  // all
  for (std::int64_t const upper : {0, 1}) {
    expect({upper * 6, 0, 0}, {1, 6, 5});  // faces
    expect({0, upper * 5, 0}, {7, 1, 5});
    expect({0, 0, upper * 4}, {7, 6, 1});
    expect({upper * 6, 5, 0}, {1, 1, 5});  // edges
    expect({0, upper * 5, 4}, {7, 1, 1});
    expect({6, 0, upper * 4}, {1, 6, 1});
  }
  expect({0, 0, 1}, {7, 6, 3});
  expect({0, 2, 1}, {7, 3, 1});
  expect({2, 1, 1}, {3, 4, 2});
  expect({3, 2, 1}, {1, 1, 1});
  expect({1, 2, 3}, {2, 0, 1});
}

TYPED_TEST(BoxSolutionOn, CopiesOfPartsThatComeInPieces) {
  BoxCase const box{{900, 900, 3}};
  std::vector<double> u(static_cast<std::size_t>(box.n()));
  for (std::size_t i = 0; i < u.size(); ++i)
    u[i] = static_cast<double>(i);
  Array<double> const on_backend = this->upload(u);
  HostVector<double> out;
  this->solution(box).copy_part(on_backend.data(), {0, 1, 0}, {901, 900, 4}, out);
  std::size_t next = 0;
  for (std::int64_t z = 0; z < 4; ++z)
    for (std::int64_t line = 901; line < 901 * 901; ++line)
      ASSERT_EQ(out[next++], static_cast<double>(z * 901 * 901 + line));
}

TYPED_TEST(BoxSolutionOn, Interrupts) {
  BoxCase const box{{4, 4, 4}};
  Array<double> const u = this->upload(random_vector(box.n(), 9));
  BoxSolution const asked = this->solution(box);
  request_interrupt();
  EXPECT_THROW(static_cast<void>(asked.integrals(u.data())), Interrupted);
  EXPECT_THROW(static_cast<void>(asked.errors(u.data(), sine(1, 1).code, 0, 4)), Interrupted);
  EXPECT_THROW(static_cast<void>(asked.mean_of_exact(sine(1, 1).code, 4)), Interrupted);
  clear_interrupt();
}

TEST(BoxSolution, AnyNumberOfThreadsHasTheSameBits) {
  auto const context = make_context(Backend::cpu);
  BoxCase box{{50, 40, 30}, {0, 0, 0}, {1, 1, 1}, {}, {polynomial(3, 0.5, 0.25)}};
  std::vector<double> const u = random_vector(box.n(), 7);
  BoxSolution const asked(*context, box.problem());
  auto const numbers = [&] {
    auto const integrals = asked.integrals(u.data());
    auto const errors = asked.errors(u.data(), sine(0, 2).code, 0, 4), others = asked.errors(u.data(), sine(0, 2).code, 0, 3);
    ValueRange const range = asked.range(u.data());
    return std::vector<double>{integrals.u,
                               integrals.gradients,
                               errors.squares,
                               errors.squares_of_gradients,
                               errors.largest,
                               others.squares,
                               others.squares_of_gradients,
                               asked.mean_of_exact(sine(0, 2).code, 4).integral,
                               range.min,
                               range.max};
  };
  int const threads = thread_count();
  set_thread_count(1);
  std::vector<double> const alone = numbers();
  set_thread_count(3);
  EXPECT_EQ(numbers(), alone);
  set_thread_count(threads);
}

}  // namespace

}  // namespace poisson::testing
