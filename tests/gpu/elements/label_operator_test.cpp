#include "gpu/elements/label_operator.hpp"

#include "gpu/kernels/check.hpp"
#include "tests/gpu/arrays.hpp"
#include "tests/gpu/cases.hpp"
#include "tests/gpu/matrices.hpp"
#include "tests/gpu/quad.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

/// The operator from labels and a table, beside a matrix that is assembled cell by cell from the matrices of edges.
namespace poisson::testing::label_tests {

namespace {

using Type = BoxFace::Type;
constexpr Type dirichlet = Type::dirichlet, neumann = Type::neumann;
using Counts = std::array<std::int64_t, 3>;
using Faces = std::array<Type, 6>;

struct LabelCase {
  char const* name;
  Counts cells;
  std::array<double, 3> cell;  ///< edges
  Faces faces;
  std::int64_t labels;
  bool scalar;
  double jump;  ///< k is 1 to jump
};

constexpr std::array<double, 3> cube{0.25, 0.25, 0.25}, brick{0.5, 0.1, 2};
constexpr Faces free_faces{neumann, neumann, neumann, neumann, neumann, neumann};
constexpr Faces fixed_faces{dirichlet, dirichlet, dirichlet, dirichlet, dirichlet, dirichlet};
constexpr Faces in_x{dirichlet, dirichlet, neumann, neumann, neumann, neumann};
constexpr Faces in_y{neumann, neumann, dirichlet, dirichlet, neumann, neumann};
constexpr Faces in_z{neumann, neumann, neumann, neumann, dirichlet, dirichlet};
constexpr Faces some{neumann, dirichlet, neumann, neumann, dirichlet, neumann};

/// One cell, layers of one cell, odd counts, lines beside those of a warp and more than one strip, walks of several parts.
std::vector<LabelCase> const cases{{"one cell", {1, 1, 1}, cube, free_faces, 1, true, 1},
                                   {"one layer in z", {5, 4, 1}, brick, in_x, 2, true, 1000},
                                   {"one layer in y", {7, 1, 6}, cube, in_z, 3, false, 10},
                                   {"one layer in x", {1, 9, 4}, brick, in_y, 2, false, 1e6},
                                   {"inside only", {3, 3, 3}, cube, fixed_faces, 4, true, 1e6},
                                   {"no inner node", {1, 2, 1}, cube, fixed_faces, 2, true, 10},
                                   {"beside a warp", {29, 15, 5}, cube, in_x, 2, true, 1000},
                                   {"a place more", {30, 16, 7}, brick, some, 5, false, 1e6},
                                   {"two strips", {31, 17, 9}, cube, in_y, 256, true, 1e6},
                                   {"several strips", {67, 34, 35}, brick, free_faces, 256, false, 1e3},
                                   {"long walks", {11, 9, 70}, cube, in_z, 2, true, 1e6},
                                   {"two bytes", {33, 12, 10}, cube, in_z, 257, true, 1e6},
                                   {"many labels", {41, 40, 40}, brick, some, 65536, false, 1e6}};

struct LabelSystem {
  BoxElements box;
  std::vector<std::uint16_t> labels;
  std::vector<std::array<double, 3>> k;

  explicit LabelSystem(LabelCase const& of) {
    for (std::size_t d = 0; d < 3; ++d) {
      box.nodes[d] = of.cells[d] + 1;
      box.cell[d] = of.cell[d];
    }
    for (std::size_t face = 0; face < 6; ++face)
      box.faces[face].type = of.faces[face];
    std::mt19937 random(7);
    std::uniform_real_distribution<double> exponent(0, std::log(of.jump));
    for (std::int64_t label = 0; label < of.labels; ++label) {
      std::array<double, 3>& values = k.emplace_back();
      for (double& value : values)
        value = std::exp(exponent(random));
      if (of.scalar)
        values.fill(values[0]);
    }
    std::int64_t const n_cells = of.cells[0] * of.cells[1] * of.cells[2];
    std::uniform_int_distribution<int> any(0, static_cast<int>(of.labels - 1));
    for (std::int64_t cell = 0; cell < n_cells; ++cell)
      labels.push_back(static_cast<std::uint16_t>(cell == n_cells - 1 ? of.labels - 1 : any(random)));
  }
  [[nodiscard]] LabelOperator on(Context& context) const {
    if (k.size() > 256)
      return {context, box, uploaded(context, labels), k};
    return {context, box, uploaded(context, std::vector<std::uint8_t>(labels.begin(), labels.end())), k};
  }
  [[nodiscard]] bool is_fixed(std::int64_t row) const {
    std::int64_t const at[3] = {row % box.nodes[0], row / box.nodes[0] % box.nodes[1], row / (box.nodes[0] * box.nodes[1])};
    for (std::size_t d = 0; d < 3; ++d)
      if ((at[d] == 0 && box.faces[2 * d].type == dirichlet) ||
          (at[d] == box.nodes[d] - 1 && box.faces[2 * d + 1].type == dirichlet))
        return true;
    return false;
  }
  /// Calls add(row, column, cell, a, b) for all pairs of corners of all cells that the matrix has an entry of.
  template <class Add>
  void for_entries(Add const& add) const {
    std::int64_t const nx = box.nodes[0], ny = box.nodes[1];
    for (std::int64_t cell = 0; cell < std::ssize(labels); ++cell) {
      std::int64_t const x = cell % (nx - 1), y = cell / (nx - 1) % (ny - 1), z = cell / ((nx - 1) * (ny - 1));
      auto const node = [&](int a) { return ((z + (a >> 2)) * ny + y + (a >> 1 & 1)) * nx + x + (a & 1); };
      for (int a = 0; a < 8; ++a)
        for (int b = 0; b < 8; ++b)
          if (a == b || (!is_fixed(node(a)) && !is_fixed(node(b))))
            add(node(a), node(b), cell, a, b);
    }
  }
  /// By rows: columns and values, from mass and stiffness matrices of edges.
  [[nodiscard]] std::vector<std::map<std::int64_t, double>> rows() const {
    std::vector<std::map<std::int64_t, double>> result(static_cast<std::size_t>(box.n_rows()));
    for_entries([&](std::int64_t row, std::int64_t column, std::int64_t cell, int a, int b) {
      auto const& of = k[labels[static_cast<std::size_t>(cell)]];
      double value = 0;
      for (std::size_t d = 0; d < 3; ++d) {
        double term = of[d];
        for (std::size_t e = 0; e < 3; ++e) {
          bool const same = (a >> e & 1) == (b >> e & 1);
          term *= e == d ? (same ? 1 : -1) / box.cell[e] : box.cell[e] / (same ? 3 : 6);
        }
        value += term;
      }
      result[static_cast<std::size_t>(row)][column] += value;
    });
    return result;
  }
};

}  // namespace

template <class B>
class LabelOperators : public OnBackend<B::value> {
protected:
  /// Products, dots, steps of the smoother and residuals in V.
  template <class V>
  void check_in(LabelOperator const& a, CsrMatrix const& csr) {
    std::int64_t const n = a.n_rows();
    auto const size = static_cast<std::size_t>(n);
    // Sums of modes have the error of the largest term of a cell, and cells may be far from cubes.
    double const tolerance = 40 * static_cast<double>(std::numeric_limits<V>::epsilon());
    auto const x = random_numbers<V>(n, 3), b = random_numbers<V>(n, 5);
    std::vector<double> expected(size, 0), sizes(size, 0), diagonal(size, 0);
    double dot = 0, size_of_dot = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t e = csr.row_ptr[i]; e < csr.row_ptr[i + 1]; ++e) {
        auto const column = static_cast<std::size_t>(csr.columns[e]);
        expected[static_cast<std::size_t>(i)] += csr.values[e] * static_cast<double>(x[column]);
        if (csr.columns[e] == i)
          diagonal[static_cast<std::size_t>(i)] = csr.values[e];
      }
      sizes[static_cast<std::size_t>(i)] = 8 * diagonal[static_cast<std::size_t>(i)];  // times the largest |x|, 1
      dot += static_cast<double>(x[static_cast<std::size_t>(i)]) * expected[static_cast<std::size_t>(i)];
      size_of_dot += sizes[static_cast<std::size_t>(i)];
    }
    std::vector<double> errors(size, 0);
    for (std::size_t i = 0; i < size; ++i)
      errors[i] = tolerance * sizes[i];
    Array<V> const x_there = uploaded(*this->context, x), b_there = uploaded(*this->context, b);
    Array<V> y = uploaded(*this->context, b), d(*this->context, n), of_dot(*this->context, 1);
    Array<std::int32_t> const stop = uploaded(*this->context, std::vector<std::int32_t>{0}),
                              stopped = uploaded(*this->context, std::vector<std::int32_t>{1});
    auto const near = [&](std::vector<V> const& found, auto const& value, double scale, char const* what) {
      for (std::size_t i = 0; i < size; ++i)
        ASSERT_NEAR(static_cast<double>(found[i]), value(i), scale * errors[i] + tolerance) << what << ", row " << i;
    };
    LinearOperator<V> const& in_v = a;
    in_v.product(V(1), x_there.data(), V(0), y.data());
    near(
        downloaded(y), [&](std::size_t i) { return expected[i]; }, 1, "product");
    y.upload(std::span<V const>(b));
    in_v.product(V(-2), x_there.data(), V(0.5), y.data());
    near(
        downloaded(y), [&](std::size_t i) { return 0.5 * static_cast<double>(b[i]) - 2 * expected[i]; }, 2, "with factors");
    y.upload(std::span<V const>(b));
    in_v.product_dot(x_there.data(), y.data(), of_dot.data(), stopped.data());
    EXPECT_EQ(downloaded(y), b);
    in_v.product_dot(x_there.data(), y.data(), of_dot.data(), stop.data());
    near(
        downloaded(y), [&](std::size_t i) { return expected[i]; }, 1, "product of a dot");
    EXPECT_NEAR(static_cast<double>(downloaded(of_dot)[0]), dot, tolerance * size_of_dot);
    in_v.diagonal(d.data());
    near(
        downloaded(d), [&](std::size_t i) { return diagonal[i]; }, 1, "diagonal");

    ASSERT_TRUE(a.subtract_product(b_there.data(), x_there.data(), y.data(), stop.data()));
    near(
        downloaded(y), [&](std::size_t i) { return static_cast<double>(b[i]) - expected[i]; }, 1, "residual");
    for (bool const goes_outside : {false, true}) {
      Array<V> after = uploaded(*this->context, b);
      Array<double> outside(*this->context, n);
      SmoothingStep<V> step;
      step.diagonal = d.data();
      step.b = b_there.data();
      step.factor = V(0.75);
      step.x_after = after.data();
      step.outside = goes_outside ? outside.data() : nullptr;
      ASSERT_TRUE(a.smooth(step, x_there.data(), stopped.data()));
      EXPECT_EQ(downloaded(after), b);
      ASSERT_TRUE(a.smooth(step, x_there.data(), stop.data()));
      auto const inside = downloaded(after);
      auto const beyond = downloaded(outside);
      for (std::size_t i = 0; i < size; ++i)
        ASSERT_NEAR(goes_outside ? beyond[i] : static_cast<double>(inside[i]),
                    static_cast<double>(x[i]) + 0.75 * (static_cast<double>(b[i]) - expected[i]) / diagonal[i],
                    (errors[i] + tolerance) / diagonal[i] + tolerance)
            << i;
    }
    if (a.view().box.nodes[0] < 3 || a.view().box.nodes[1] < 3)
      return;
    Array<V> values = Array<V>(*this->context, half_stencil::diagonals * n);
    a.fill_diagonals(values.data());
    auto const found = downloaded(values);
    std::int64_t const nx = a.view().box.nodes[0], ny = a.view().box.nodes[1];
    std::int64_t stored = 0;
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t e = csr.row_ptr[i]; e < csr.row_ptr[i + 1]; ++e)
        if (csr.columns[e] <= i)
          for (int k = 0; k < half_stencil::diagonals; ++k)
            if (half_stencil::offset(k, nx, nx * ny) == i - csr.columns[e]) {
              ASSERT_EQ(found[static_cast<std::size_t>(k * n + i)], static_cast<V>(csr.values[e]));
              ++stored;
            }
    EXPECT_EQ(std::count_if(found.begin(), found.end(), [](V v) { return v != 0 || !std::signbit(v); }), stored);
  }

  /// Products in double-double, and the check of residuals, are those of the matrix that the tables define, exactly.
  void check_exactly(LabelSystem const& system, LabelOperator const& a) {
    std::int64_t const n = a.n_rows();
    auto const size = static_cast<std::size_t>(n);
    std::vector<double> entries(8 * (system.k.size() + 1));
    this->context->download(entries.data(), a.view().entries, 8 * std::ssize(entries));
    auto const x = random_numbers<DoubleDouble>(n, 11);
    auto const b = random_numbers<double>(n, 13);
    std::vector<Quad> expected(size, 0);
    std::vector<double> sizes(size, 0);
    system.for_entries([&](std::int64_t row, std::int64_t column, std::int64_t cell, int at, int other) {
      double const entry = entries[static_cast<std::size_t>(8 * system.labels[static_cast<std::size_t>(cell)] + (at ^ other))];
      expected[static_cast<std::size_t>(row)] += quad(entry) * quad(x[static_cast<std::size_t>(column)]);
      if (at == other)
        sizes[static_cast<std::size_t>(row)] += 8 * entry;
    });
    Vector<DoubleDouble> const x_there(*this->context, std::span<DoubleDouble const>(x));
    Vector<DoubleDouble> y(*this->context, n);
    Array<DoubleDouble> dot(*this->context, 1);
    Array<std::int32_t> const stop = uploaded(*this->context, std::vector<std::int32_t>{0});
    a.product_dot(x_there.data(), y.data(), dot.data(), stop.data());
    auto const found = download(y);
    Quad sum = 0;
    double size_of_sum = 0;
    for (std::size_t i = 0; i < size; ++i) {
      ASSERT_LE(size_of(quad(found[i]) - expected[i]), 0x1p-98 * sizes[i]) << i;
      sum += quad(x[i]) * expected[i];
      size_of_sum += sizes[i];
    }
    EXPECT_LE(size_of(quad(download(dot)) - sum), 0x1p-96 * size_of_sum);
    a.product(DoubleDouble(3), x_there.data(), DoubleDouble(0), y.data());
    auto const thrice = download(y);
    for (std::size_t i = 0; i < size; ++i)
      ASSERT_LE(size_of(quad(thrice[i]) - 3 * expected[i]), 0x1p-96 * sizes[i]) << i;

    Array<double> const b_there = uploaded(*this->context, b);
    Array<double> r(*this->context, n);
    for (bool const with_low : {true, false}) {
      ASSERT_TRUE(a.residual(x_there.data().hi, with_low ? x_there.data().lo : nullptr, b_there.data(), r.data()));
      auto const residual = downloaded(r);
      std::vector<Quad> exact(size, 0);
      system.for_entries([&](std::int64_t row, std::int64_t column, std::int64_t cell, int at, int other) {
        DoubleDouble const of_x = x[static_cast<std::size_t>(column)];
        exact[static_cast<std::size_t>(row)] +=
            quad(entries[static_cast<std::size_t>(8 * system.labels[static_cast<std::size_t>(cell)] + (at ^ other))]) *
            (with_low ? quad(of_x) : quad(of_x.hi));
      });
      for (std::size_t i = 0; i < size; ++i) {
        Quad const value = quad(b[i]) - exact[i];
        ASSERT_LE(size_of(quad(residual[i]) - value), 0x1p-53 * size_of(value) + 0x1p-104 * sizes[i]) << i;
      }
    }
  }
};
TYPED_TEST_SUITE(LabelOperators, Backends, BackendNames);

TYPED_TEST(LabelOperators, EntriesAreThoseOfCells) {
  for (LabelCase const& of : cases) {
    SCOPED_TRACE(of.name);
    LabelSystem const system(of);
    LabelOperator const a = system.on(*this->context);
    EXPECT_EQ(a.view().cubic, of.scalar && of.cell == cube);
    CsrMatrix const csr = a.to_csr();
    auto const rows = system.rows();
    ASSERT_EQ(csr.n_rows, a.n_rows());
    for (std::int64_t i = 0; i < csr.n_rows; ++i) {
      auto const& row = rows[static_cast<std::size_t>(i)];
      ASSERT_EQ(csr.row_ptr[i + 1] - csr.row_ptr[i], std::ssize(row)) << "row " << i;
      auto entry = row.begin();
      for (std::int64_t e = csr.row_ptr[i]; e < csr.row_ptr[i + 1]; ++e, ++entry) {
        ASSERT_EQ(csr.columns[e], entry->first);
        ASSERT_NEAR(csr.values[e], entry->second, 4e-15 * row.at(i)) << "row " << i << ", column " << entry->first;
      }
    }
  }
}

TYPED_TEST(LabelOperators, EveryPassInDoubleAndSingle) {
  for (LabelCase const& of : cases) {
    SCOPED_TRACE(of.name);
    LabelSystem const system(of);
    LabelOperator const a = system.on(*this->context);
    CsrMatrix const csr = a.to_csr();
    this->template check_in<double>(a, csr);
    this->template check_in<float>(a, csr);
  }
}

TYPED_TEST(LabelOperators, DoubleDoubleAndTheCheckAreExact) {
  for (LabelCase const& of : cases) {
    SCOPED_TRACE(of.name);
    LabelSystem const system(of);
    this->check_exactly(system, system.on(*this->context));
  }
}

/// The entries of a cell's row have the sum 0 exactly.
TYPED_TEST(LabelOperators, ConstantsHaveNoFlux) {
  LabelSystem const system({"", {12, 9, 10}, brick, free_faces, 100, false, 1e6});
  LabelOperator const a = system.on(*this->context);
  Array<double> const x = uploaded(*this->context, std::vector<double>(static_cast<std::size_t>(a.n_rows()), 3));
  Array<double> y(*this->context, a.n_rows());
  a.product(1.0, x.data(), 0.0, y.data());
  for (double const v : downloaded(y))
    ASSERT_EQ(v, 0);
}

TYPED_TEST(LabelOperators, CopiesAreTheSame) {
  LabelSystem const system(cases[7]);
  LabelOperator const a = system.on(*this->context);
  auto const host = make_context(Backend::cpu);
  auto const copy = a.copy_to(*host);
  EXPECT_EQ(copy->bytes(), a.bytes());
  CsrMatrix const csr = a.to_csr(), of_copy = copy->to_csr();
  EXPECT_EQ(csr.columns, of_copy.columns);
  EXPECT_EQ(csr.values, of_copy.values);
}

}  // namespace poisson::testing::label_tests
