#include "gpu/elements/box_system.hpp"

#include "gpu/core/double_double.hpp"
#include "gpu/core/host_vector.hpp"
#include "gpu/core/vector.hpp"
#include "gpu/elements/label_operator.hpp"
#include "gpu/solvers/solver.hpp"
#include "tests/gpu/arrays.hpp"
#include "tests/gpu/cases.hpp"
#include "tests/gpu/elements/functions.hpp"
#include "tests/gpu/matrices.hpp"

#include <array>
#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <map>
#include <vector>

/// Boxes that are assembled on a backend, beside a loop over cells that keeps everything in a dense map.
namespace poisson::testing {

namespace {

struct Face {
  BoxProblem::Face::Type type;
  int rank;
  Data value, alpha;
};

struct Case {
  std::array<std::int64_t, 3> cells;
  Point origin, extent;
  std::vector<Data> k;
  Data f;
  std::array<Face, 6> faces;
  std::array<std::vector<double>, 3> coordinates{};  ///< of graded directions; they agree with the extent

  [[nodiscard]] double node(std::size_t d, std::int64_t i) const {
    return coordinates[d].empty() ? origin[d] + extent[d] / static_cast<double>(cells[d]) * static_cast<double>(i)
                                  : coordinates[d][static_cast<std::size_t>(i)];
  }
  [[nodiscard]] double edge(std::size_t d, std::int64_t i) const {
    return coordinates[d].empty() ? extent[d] / static_cast<double>(cells[d]) : node(d, i + 1) - node(d, i);
  }
  [[nodiscard]] BoxProblem problem() const {
    BoxProblem result{cells, origin, extent, {}, f.code, {}, coordinates};
    for (Data const& component : k)
      result.coefficient.push_back(component.code);
    for (std::size_t i = 0; i < 6; ++i)
      result.faces[i] = {faces[i].type, faces[i].rank, faces[i].value.code, faces[i].alpha.code};
    return result;
  }
};

Face dirichlet(int rank, Data const& value) {
  return {BoxProblem::Face::Type::dirichlet, rank, value, {}};
}
Face neumann(Data const& value) {
  return {BoxProblem::Face::Type::neumann, 9, value, {}};
}
Face robin(Data const& alpha, Data const& value) {
  return {BoxProblem::Face::Type::robin, 9, value, alpha};
}

/// The system by the textbook: element matrices, faces, then elimination, in a map of rows.
struct Reference {
  std::vector<std::map<std::int64_t, double>> rows;
  std::vector<double> rhs, fixed;
  std::vector<bool> is_fixed;

  explicit Reference(Case const& c) {
    std::array<std::int64_t, 3> const m{c.cells[0] + 1, c.cells[1] + 1, c.cells[2] + 1};
    auto const n = static_cast<std::size_t>(m[0] * m[1] * m[2]);
    rows.resize(n);
    rhs.assign(n, 0);
    fixed.assign(n, 0);
    is_fixed.assign(n, false);
    double const g = 0.5 / std::sqrt(3.);
    std::array<double, 2> const gauss{0.5 - g, 0.5 + g};
    auto const node = [&](std::array<std::int64_t, 3> const& i) { return (i[2] * m[1] + i[1]) * m[0] + i[0]; };
    auto const linear = [](int b, double t) { return b == 1 ? t : 1 - t; };
    for (std::int64_t z = 0; z < c.cells[2]; ++z)
      for (std::int64_t y = 0; y < c.cells[1]; ++y)
        for (std::int64_t x = 0; x < c.cells[0]; ++x) {
          std::array<std::int64_t, 3> const cell{x, y, z};
          Point const h{c.edge(0, x), c.edge(1, y), c.edge(2, z)};
          for (int q = 0; q < 8; ++q) {
            Point t{gauss[q & 1], gauss[q >> 1 & 1], gauss[q >> 2]}, at{};
            for (std::size_t d = 0; d < 3; ++d)
              at[d] = c.node(d, cell[d]) + h[d] * t[d];
            double const weight = h[0] * h[1] * h[2] / 8;
            std::array<std::array<double, 3>, 8> gradient{};
            std::array<double, 8> value{};
            std::array<std::int64_t, 8> dof{};
            for (int a = 0; a < 8; ++a) {
              std::array<int, 3> const bits{a & 1, a >> 1 & 1, a >> 2};
              dof[a] = node({x + bits[0], y + bits[1], z + bits[2]});
              value[a] = linear(bits[0], t[0]) * linear(bits[1], t[1]) * linear(bits[2], t[2]);
              for (std::size_t d = 0; d < 3; ++d) {
                gradient[a][d] = (bits[d] == 1 ? 1 : -1) / h[d];
                for (std::size_t e = 0; e < 3; ++e)
                  if (e != d)
                    gradient[a][d] *= linear(bits[e], t[e]);
              }
            }
            for (int a = 0; a < 8; ++a) {
              rhs[dof[a]] += weight * c.f.value(at) * value[a];
              for (int b = 0; b < 8; ++b)
                for (std::size_t d = 0; d < 3; ++d)
                  for (std::size_t e = 0; e < 3; ++e)
                    rows[dof[a]][dof[b]] += weight * tensor_at(c.k, d, e, at) * gradient[a][d] * gradient[b][e];
            }
          }
        }
    for (std::size_t face = 0; face < 6; ++face) {
      std::size_t const d = face / 2, e = d == 0 ? 1 : 0, l = d == 2 ? 1 : 2;
      if (c.faces[face].type == BoxProblem::Face::Type::dirichlet)
        continue;
      std::array<std::int64_t, 3> corner{};
      corner[d] = face % 2 == 0 ? 0 : c.cells[d];
      for (corner[l] = 0; corner[l] < c.cells[l]; ++corner[l])
        for (corner[e] = 0; corner[e] < c.cells[e]; ++corner[e])
          for (int q = 0; q < 4; ++q) {
            Point at{};
            at[d] = c.node(d, corner[d]);
            at[e] = c.node(e, corner[e]) + c.edge(e, corner[e]) * gauss[q & 1];
            at[l] = c.node(l, corner[l]) + c.edge(l, corner[l]) * gauss[q >> 1];
            double const weight = c.edge(e, corner[e]) * c.edge(l, corner[l]) / 4;
            auto const shape = [&](int a) { return linear(a & 1, gauss[q & 1]) * linear(a >> 1, gauss[q >> 1]); };
            auto const dof = [&](int a) {
              auto i = corner;
              i[e] += a & 1;
              i[l] += a >> 1;
              return node(i);
            };
            for (int a = 0; a < 4; ++a) {
              rhs[dof(a)] += weight * c.faces[face].value.value(at) * shape(a);
              for (int b = 0; c.faces[face].type == BoxProblem::Face::Type::robin && b < 4; ++b)
                rows[dof(a)][dof(b)] += weight * c.faces[face].alpha.value(at) * shape(a) * shape(b);
            }
          }
    }
    for (int rank = 8; rank >= 0; --rank)  // the lowest comes last and wins
      for (std::size_t face = 0; face < 6; ++face)
        if (c.faces[face].type == BoxProblem::Face::Type::dirichlet && c.faces[face].rank == rank)
          for (std::int64_t i = 0; i < static_cast<std::int64_t>(n); ++i) {
            std::array<std::int64_t, 3> const at{i % m[0], i / m[0] % m[1], i / (m[0] * m[1])};
            if (at[face / 2] != (face % 2 == 0 ? 0 : c.cells[face / 2]))
              continue;
            is_fixed[i] = true;
            fixed[i] = c.faces[face].value.value({c.node(0, at[0]), c.node(1, at[1]), c.node(2, at[2])});
          }
    for (std::size_t i = 0; i < n; ++i) {
      std::map<std::int64_t, double> kept;
      for (auto const& [j, a] : rows[i])
        if (static_cast<std::int64_t>(i) == j || (!is_fixed[i] && !is_fixed[j]))
          kept[j] = a;
        else if (!is_fixed[i])
          rhs[i] -= a * fixed[j];
      rows[i] = kept;
      if (is_fixed[i])
        rhs[i] = 0;
    }
  }
};

template <class B>
class BoxSystemOn : public OnBackend<B::value> {
protected:
  /// Products, their dots and the residual in every arithmetic, beside sums over the entries.
  void expect_products(Matrix const& a, CsrMatrix const& csr) {
    products_in<double>(a, csr, 2e-15);
    products_in<DoubleDouble>(a, csr, 1e-29);
    if (a.format() == Format::matrix_free)  // stored matrices have products in float when they are stored in single
      products_in<float>(a, csr, 1e-6);
    auto const n = static_cast<std::size_t>(csr.n_rows);
    std::vector<double> const x = random_vector(csr.n_rows, 5), low = random_vector(csr.n_rows, 6),
                              b = random_vector(csr.n_rows, 7);
    std::vector<double> tiny = low, r(n);
    for (double& v : tiny)
      v *= 1e-18;
    Array<double> const on_x(*this->context, std::span<double const>(x)), on_low(*this->context, std::span<double const>(tiny)),
        on_b(*this->context, std::span<double const>(b));
    Array<double> on_r(*this->context, csr.n_rows);
    ASSERT_TRUE(a.residual(on_x.data(), on_low.data(), on_b.data(), on_r.data()));
    on_r.download(std::span<double>(r));
    for (std::size_t i = 0; i < n; ++i) {
      DoubleDouble sum = b[i];
      double scale = std::abs(b[i]);
      for (auto e = csr.row_ptr[i]; e < csr.row_ptr[i + 1]; ++e) {
        sum = sum - csr.values[e] * (DoubleDouble(x[csr.columns[e]]) + tiny[csr.columns[e]]);
        scale += std::abs(csr.values[e]);
      }
      ASSERT_NEAR(r[i], static_cast<double>(sum), 3e-16 * std::abs(r[i]) + 1e-30 * scale) << "residual of row " << i;
    }
  }
  template <class T>
  void products_in(Matrix const& a, CsrMatrix const& csr, double tolerance) {
    auto const n = static_cast<std::size_t>(csr.n_rows);
    HostVector<T> x(n), y(n), result(n);
    auto const numbers = random_vector(2 * csr.n_rows, 3);
    for (std::size_t i = 0; i < n; ++i) {
      x[i] = static_cast<T>(numbers[i]);
      y[i] = static_cast<T>(numbers[n + i]);
    }
    Vector<T> const on_x(*this->context, std::span<T const>(x));
    LinearOperator<T> const& op = a;
    auto const exact = [&](std::size_t i, double& scale) {
      DoubleDouble sum = 0;
      scale = 0;
      for (auto e = csr.row_ptr[i]; e < csr.row_ptr[i + 1]; ++e) {
        sum = sum + csr.values[e] * DoubleDouble(x[csr.columns[e]]);
        scale += std::abs(csr.values[e] * static_cast<double>(x[csr.columns[e]]));
      }
      return sum;
    };
    for (auto const& [alpha, beta] : {std::pair{1.0, 0.0}, {-2.5, 0.75}}) {
      HostVector<T> start = y;
      if (beta == 0)
        std::fill(start.begin(), start.end(), std::numeric_limits<T>::quiet_NaN());
      Vector<T> on_y(*this->context, std::span<T const>(start));
      op.product(static_cast<T>(alpha), on_x.data(), static_cast<T>(beta), on_y.data());
      on_y.download(std::span<T>(result));
      for (std::size_t i = 0; i < n; ++i) {
        double scale = 0;
        DoubleDouble const expected = alpha * exact(i, scale) + (beta == 0 ? DoubleDouble(0) : beta * DoubleDouble(y[i]));
        double const off = static_cast<double>(DoubleDouble(result[i]) - expected);
        ASSERT_LE(std::abs(off), tolerance * (std::abs(alpha) * scale + std::abs(static_cast<double>(y[i])) + 1e-300))
            << "row " << i;
      }
    }
    std::int32_t const no = 0, yes = 1;
    Array<std::int32_t> const running(*this->context, std::span<std::int32_t const>(&no, 1)),
        stopped(*this->context, std::span<std::int32_t const>(&yes, 1));
    Vector<T> on_y(*this->context, std::span<T const>(y));
    T dot = -5;
    Array<T> on_dot(*this->context, std::span<T const>(&dot, 1));
    op.product_dot(on_x.data(), on_y.data(), on_dot.data(), stopped.data());
    on_y.download(std::span<T>(result));
    EXPECT_TRUE(std::equal(result.begin(), result.end(), y.begin())) << "a product that is stopped changes nothing";
    op.product_dot(on_x.data(), on_y.data(), on_dot.data(), running.data());
    on_y.download(std::span<T>(result));
    on_dot.download(std::span<T>(&dot, 1));
    DoubleDouble sum = 0;
    double size = 0;
    for (std::size_t i = 0; i < n; ++i) {
      double scale = 0;
      DoubleDouble const expected = exact(i, scale);
      ASSERT_LE(std::abs(static_cast<double>(DoubleDouble(result[i]) - expected)), tolerance * (scale + 1e-300)) << "row " << i;
      sum = sum + expected * DoubleDouble(x[i]);
      size += scale * std::abs(static_cast<double>(x[i]));
    }
    EXPECT_LE(std::abs(static_cast<double>(DoubleDouble(dot) - sum)), 8 * tolerance * size);
  }

  void expect_reference(Case const& c, Format format = Format::half_cds) {
    BoxProblem const problem = c.problem();
    Reference const reference(c);
    double const terms = c.k.size() == 6 ? 3 : 1;  // of a sum, for each that there is with a diagonal
    BoxSystem const system(*this->context, problem, format);
    EXPECT_EQ(system.matrix().format(), format);
    CsrMatrix const matrix = system.matrix().to_csr();
    auto const n = static_cast<std::int64_t>(reference.rows.size());
    ASSERT_EQ(matrix.n_rows, n);
    std::int64_t nnz = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      auto const& row = reference.rows[i];
      nnz += static_cast<std::int64_t>(row.size());
      ASSERT_EQ(matrix.row_ptr[i + 1] - matrix.row_ptr[i], static_cast<std::int64_t>(row.size())) << "row " << i;
      double largest = 0;
      for (auto const& [j, a] : row)
        largest = std::max(largest, std::abs(a));
      auto e = matrix.row_ptr[i];
      for (auto const& [j, a] : row) {
        ASSERT_EQ(matrix.columns[e], j);
        ASSERT_NEAR(matrix.values[e], a, terms * 4e-15 * largest) << "row " << i << ", column " << j;
        ++e;
      }
    }
    EXPECT_EQ(system.nnz(), nnz);
    HostVector<double> rhs(static_cast<std::size_t>(n));
    system.rhs().download(std::span<double>(rhs));
    double scale = 0;
    for (double const b : reference.rhs)
      scale = std::max(scale, std::abs(b));
    double total = 0;
    for (double const b : reference.rhs)
      total += system.pure_neumann() ? b : 0;
    double const volume = c.extent[0] * c.extent[1] * c.extent[2];
    std::array<std::int64_t, 3> const m{c.cells[0] + 1, c.cells[1] + 1, c.cells[2] + 1};
    for (std::int64_t i = 0; i < n; ++i) {
      double integral = 1;
      std::array<std::int64_t, 3> const at{i % m[0], i / m[0] % m[1], i / (m[0] * m[1])};
      for (std::size_t d = 0; d < 3; ++d)
        integral *= 0.5 * ((at[d] == 0 ? 0 : c.edge(d, at[d] - 1)) + (at[d] == c.cells[d] ? 0 : c.edge(d, at[d])));
      ASSERT_NEAR(rhs[i], reference.rhs[i] - total / volume * integral, terms * 1e-14 * scale) << "row " << i;
    }
    std::vector<double> host(static_cast<std::size_t>(n), 0.0);
    system.set_dirichlet(host);
    for (std::int64_t i = 0; i < n; ++i)
      ASSERT_NEAR(host[i], reference.fixed[i], 1e-14 * (1 + std::abs(reference.fixed[i]))) << "row " << i;
    expect_products(system.matrix(), matrix);
    BoxSystem const again(*this->context, problem, format);
    CsrMatrix const same = again.matrix().to_csr();
    EXPECT_TRUE(std::equal(matrix.values.begin(), matrix.values.end(), same.values.begin(), same.values.end())) << "other bits";
    BoxSystem const without(*this->context, problem, format, false);
    HostVector<double> same_rhs(rhs.size());
    without.rhs().download(std::span<double>(same_rhs));
    EXPECT_TRUE(std::equal(rhs.begin(), rhs.end(), same_rhs.begin())) << "other bits without a matrix";
    EXPECT_EQ(without.nnz(), system.nnz());
    EXPECT_EQ(without.source().sum, system.source().sum);
  }
};
TYPED_TEST_SUITE(BoxSystemOn, Backends, BackendNames);

std::array<Face, 6> all_dirichlet(Data const& value) {
  return {dirichlet(0, value), dirichlet(0, value), dirichlet(0, value),
          dirichlet(0, value), dirichlet(0, value), dirichlet(0, value)};
}

TYPED_TEST(BoxSystemOn, ConstantsAndDirichlet) {
  this->expect_reference({{5, 4, 6}, {0, 0, 0}, {1, 1, 1}, {constant(2)}, constant(3), all_dirichlet(constant(0))});
}

TYPED_TEST(BoxSystemOn, VariableDataOfAllConditions) {
  std::array<Face, 6> const faces{
      dirichlet(2, polynomial(1, 2, 3)), neumann(sine(0.5, 3)),      robin(polynomial(1, 1, 1), sine(1, 2)),
      dirichlet(1, sine(2, 1)),          dirichlet(0, constant(-3)), robin(constant(0), constant(2))};
  this->expect_reference({{7, 6, 5}, {-0.5, 0.25, 0.1}, {1.5, 0.7, 2}, {polynomial(3, 0.5, 0.25)}, sine(0.1, 5), faces});
}

TYPED_TEST(BoxSystemOn, ThreeComponentsAndBranches) {
  std::array<Face, 6> faces = all_dirichlet(branches(1, 2));
  faces[3] = neumann(constant(1));
  this->expect_reference(
      {{4, 9, 3}, {0, 0, 0}, {1, 3, 1}, {polynomial(1, 1, 1), constant(10), sine(2, 1)}, branches(4, -1), faces});
}

TYPED_TEST(BoxSystemOn, FullTensors) {
  std::array<Face, 6> const mixed{dirichlet(1, polynomial(1, 2, 3)), neumann(constant(1)),      robin(constant(2), sine(1, 2)),
                                  neumann(polynomial(0, 1, 1)),      dirichlet(0, constant(2)), neumann(constant(0))};
  std::vector<Data> const constants{constant(4), constant(3), constant(5), constant(-1), constant(0.5), constant(1.5)};
  for (std::array<std::int64_t, 3> const cells : {std::array<std::int64_t, 3>{2, 2, 2}, {3, 5, 4}, {19, 7, 6}, {6, 33, 5}})
    for (std::vector<double> const& x : {std::vector<double>(), graded(1, 2, cells[0], 1.2)}) {
      this->expect_reference({cells, {1, 0, -1}, {2, 1, 3}, full_tensor(), sine(1, 2), mixed, {x, {}, {}}});
      this->expect_reference({cells, {1, 0, -1}, {2, 1, 3}, constants, polynomial(1, 1, 1), mixed, {x, {}, {}}});
    }
}

TYPED_TEST(BoxSystemOn, TheSmallestAndThinOnes) {
  for (std::array<std::int64_t, 3> const cells :
       {std::array<std::int64_t, 3>{2, 2, 2}, {3, 2, 2}, {2, 3, 4}, {40, 2, 3}, {2, 2, 37}, {3, 33, 2}, {4, 4, 4}, {12, 3, 3}})
    this->expect_reference({cells,
                            {0, 0, 0},
                            {1, 2, 3},
                            {polynomial(1, 1, 1)},
                            polynomial(0, 1, 1),
                            {dirichlet(0, constant(1)), robin(constant(2), constant(1)), neumann(polynomial(1, 0, 1)),
                             neumann(constant(0)), dirichlet(3, sine(0, 1)), neumann(constant(0))}});
}

TYPED_TEST(BoxSystemOn, MatrixFree) {
  std::array<Face, 6> const faces{
      dirichlet(2, polynomial(1, 2, 3)), neumann(sine(0.5, 3)),      robin(polynomial(1, 1, 1), sine(1, 2)),
      dirichlet(1, sine(2, 1)),          dirichlet(0, constant(-3)), robin(constant(0), constant(2))};
  for (std::array<std::int64_t, 3> const cells : {std::array<std::int64_t, 3>{7, 6, 5},
                                                  {2, 2, 2},
                                                  {3, 2, 2},
                                                  {40, 3, 2},
                                                  {2, 3, 40},
                                                  {3, 33, 4},
                                                  {34, 9, 9},
                                                  {33, 17, 38},
                                                  {5, 9, 34}}) {
    SCOPED_TRACE(cells[0]);
    this->expect_reference({cells, {0, 0.5, 0}, {1, 2, 1.5}, {constant(3)}, sine(0.1, 5), faces}, Format::matrix_free);
    this->expect_reference({cells,
                            {0, 0.5, 0},
                            {1, 2, 1.5},
                            {constant(3), constant(1), constant(0.5)},
                            constant(1),
                            all_dirichlet(polynomial(1, 1, 0))},
                           Format::matrix_free);
  }
}

TYPED_TEST(BoxSystemOn, MatrixFreePureNeumann) {
  Face const f = neumann(sine(1, 1));
  this->expect_reference({{9, 8, 7}, {0, 0, 0}, {1, 1, 1}, {constant(1)}, sine(3, 2), {f, f, f, f, f, f}}, Format::matrix_free);
}

TYPED_TEST(BoxSystemOn, MatrixFreeHasCopies) {
  Case const c{{9, 8, 7}, {0, 0, 0}, {1, 1, 1}, {constant(1)}, constant(1), all_dirichlet(constant(0))};
  BoxSystem const system(*this->context, c.problem(), Format::matrix_free);
  auto const host = make_context(Backend::cpu);
  auto const copy = system.matrix().copy_to(*host);
  CsrMatrix const a = system.matrix().to_csr(), b = copy->to_csr();
  EXPECT_TRUE(std::equal(a.values.begin(), a.values.end(), b.values.begin(), b.values.end()));
  EXPECT_LT(copy->bytes(), CsrMatrix::csr_bytes(a.n_rows, a.nnz()));
}

/// Constants by material, as labels and as values at points.
struct ByMaterial {
  Case of;
  std::vector<std::vector<double>> k;  ///< of each material, one or three
  std::vector<std::uint8_t> labels{};

  ByMaterial(Case c, std::vector<std::vector<double>> constants) : of(std::move(c)), k(std::move(constants)) {
    std::int64_t const n = of.cells[0] * of.cells[1] * of.cells[2];
    for (std::int64_t cell = 0; cell < n; ++cell)
      labels.push_back(static_cast<std::uint8_t>((cell * 7919 / 13 + cell % of.cells[0] / 3) % std::ssize(k)));
  }
  [[nodiscard]] BoxProblem problem(bool with_materials) const {
    BoxProblem result = of.problem();
    std::size_t const components = std::ranges::max_element(k, {}, &std::vector<double>::size)->size();
    result.coefficient.resize(components, result.coefficient.front());
    std::int64_t const nx = of.cells[0], ny = of.cells[1];
    result.coefficient_on_host = [this, nx, ny](std::int64_t first, std::int64_t count, int c, double* values) {
      for (std::int64_t z = 0; z < 2 * count; ++z)
        for (std::int64_t y = 0; y < 2 * ny; ++y)
          for (std::int64_t x = 0; x < 2 * nx; ++x) {
            auto const& of_label = k[labels[static_cast<std::size_t>(((first + z / 2) * ny + y / 2) * nx + x / 2)]];
            auto const at = static_cast<std::size_t>(c);
            values[(z * 2 * ny + y) * 2 * nx + x] = of_label.size() == 1 && c < 3 ? of_label[0]
                                                    : at < of_label.size()        ? of_label[at]
                                                                                  : 0;
          }
    };
    if (!with_materials)
      return result;
    BoxProblem::Materials& materials = result.materials.emplace();
    for (auto const& of_label : k) {
      materials.coefficients.emplace_back();
      for (double const value : of_label)
        materials.coefficients.back().push_back(constant(value).code);
    }
    materials.of_planes = [this, nx, ny](std::int64_t first, std::int64_t count, std::uint8_t* numbers) {
      std::copy_n(labels.begin() + first * nx * ny, count * nx * ny, numbers);
    };
    return result;
  }
};
std::vector<ByMaterial> by_material() {
  std::array<Face, 6> mixed{dirichlet(1, polynomial(1, 2, 3)), neumann(constant(1)), dirichlet(0, constant(2)),
                            neumann(polynomial(0, 1, 1)),      neumann(constant(0)), dirichlet(2, polynomial(1, 1, 1))};
  return {{{{9, 7, 5}, {0, 0, 0}, {0.9, 0.7, 0.5}, {constant(1)}, polynomial(1, 1, 1), mixed}, {{1}, {1e6}}},
          {{{12, 16, 33}, {1, 0, 0}, {2, 1, 3}, {constant(1)}, constant(2), mixed}, {{1, 2, 3}, {10}, {0.1, 5, 0.3}}},
          {{{24, 24, 24}, {0, 0, 0}, {1, 1, 1}, {constant(1)}, constant(1), all_dirichlet(constant(0))}, {{1}, {1000}}}};
}

/// The same bits, whether the values at points come from the host or from labels.
TYPED_TEST(BoxSystemOn, MaterialsAreValuesAtPoints) {
  for (ByMaterial const& of : by_material()) {
    BoxSystem const points(*this->context, of.problem(false)), labels(*this->context, of.problem(true));
    CsrMatrix const a = points.matrix().to_csr(), b = labels.matrix().to_csr();
    EXPECT_EQ(a.columns, b.columns);
    EXPECT_EQ(a.values, b.values);
    EXPECT_EQ(downloaded(points.rhs()), downloaded(labels.rhs()));
  }
}

/// Without entries it is the same system to rounding, and multigrid takes as many iterations.
TYPED_TEST(BoxSystemOn, MaterialsWithoutEntries) {
  for (ByMaterial const& of : by_material()) {
    EXPECT_FALSE(BoxSystem::can_assemble(of.problem(false), Format::matrix_free));
    ASSERT_TRUE(BoxSystem::can_assemble(of.problem(true), Format::matrix_free));
    BoxSystem const stored(*this->context, of.problem(true)), free(*this->context, of.problem(true), Format::matrix_free);
    ASSERT_NE(dynamic_cast<LabelOperator const*>(&free.matrix()), nullptr);
    EXPECT_LT(free.matrix().bytes(), std::ssize(of.labels) + 1000);
    CsrMatrix const a = stored.matrix().to_csr(), b = free.matrix().to_csr();
    ASSERT_EQ(a.columns, b.columns);
    EXPECT_EQ(stored.nnz(), free.nnz());
    for (std::int64_t row = 0; row < a.n_rows; ++row) {
      double diagonal = 0;
      for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e)
        diagonal = a.columns[e] == row ? a.values[e] : diagonal;
      for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e)
        ASSERT_NEAR(a.values[e], b.values[e], 1e-14 * diagonal) << row << ", " << a.columns[e];
    }
    auto const rhs = downloaded(free.rhs());
    ASSERT_EQ(downloaded(stored.rhs()), rhs);
    SolverOptions options;
    options.preconditioner = PreconditionerKind::multigrid;
    options.tolerance = 1e-10;
    for (std::size_t d = 0; d < 3; ++d)
      options.box_nodes[d] = of.of.cells[d] + 1;
    std::vector<double> x(rhs.size()), y(rhs.size());
    SolverResult const with = solve(stored.matrix(), rhs, x, options), without = solve(free.matrix(), rhs, y, options);
    EXPECT_EQ(with.status, SolverStatus::converged) << with.reason;
    EXPECT_EQ(without.status, SolverStatus::converged) << without.reason;
    EXPECT_NEAR(static_cast<double>(without.iterations), static_cast<double>(with.iterations), 1);
    double const largest = std::abs(*std::ranges::max_element(x, {}, [](double v) { return std::abs(v); }));
    for (std::size_t i = 0; i < x.size(); ++i)
      ASSERT_NEAR(x[i], y[i], 1e-7 * largest) << i;
  }
}

TYPED_TEST(BoxSystemOn, GradedCells) {
  std::array<Face, 6> const faces{
      dirichlet(2, polynomial(1, 2, 3)), neumann(sine(0.5, 3)),      robin(polynomial(1, 1, 1), sine(1, 2)),
      dirichlet(1, sine(2, 1)),          dirichlet(0, constant(-3)), robin(constant(0), constant(2))};
  Point const origin{-0.5, 0.25, 0.1}, extent{1.5, 0.7, 2};
  for (std::array<std::int64_t, 3> const cells :
       {std::array<std::int64_t, 3>{7, 6, 5}, {2, 2, 2}, {3, 2, 4}, {23, 5, 4}, {13, 4, 17}})
    for (int const directions : {1, 6, 7}) {
      SCOPED_TRACE(std::to_string(cells[0]) + ", directions " + std::to_string(directions));
      std::array<std::vector<double>, 3> x;
      for (std::size_t d = 0; d < 3; ++d)
        if ((directions >> d & 1) != 0)
          x[d] = graded(origin[d], extent[d], cells[d], d == 1 ? 0.8 : 1.15);
      this->expect_reference({cells, origin, extent, {polynomial(3, 0.5, 0.25)}, sine(0.1, 5), faces, x});
      this->expect_reference({cells, origin, extent, {constant(3)}, constant(2), faces, x});
      this->expect_reference({cells, origin, extent, {polynomial(1, 1, 1), constant(10), sine(2, 1)}, branches(4, -1), faces, x});
    }
}

TYPED_TEST(BoxSystemOn, ZeroValuesOnFaces) {
  std::array<Face, 6> const faces{
      dirichlet(0, constant(0)),       neumann(sine(0.5, 3)),     robin(polynomial(1, 1, 1), constant(0)),
      robin(constant(0), constant(2)), dirichlet(0, constant(0)), neumann(constant(0))};
  for (std::array<std::int64_t, 3> const cells :
       {std::array<std::int64_t, 3>{17, 4, 5}, {8, 3, 2}, {9, 5, 4}, {2, 2, 2}, {10, 3, 6}})
    for (std::vector<double> const& x : {std::vector<double>(), graded(0, 1, cells[0], 1.2)})
      for (auto const& f : {constant(2), sine(0.1, 5)}) {
        this->expect_reference({cells, {0, 0, 0}, {1, 1, 1}, {polynomial(1, 1, 0)}, f, faces, {x, {}, {}}});
        this->expect_reference({cells, {0, 0, 0}, {1, 1, 1}, {constant(3)}, f, all_dirichlet(constant(0)), {x, {}, {}}});
      }
}

TYPED_TEST(BoxSystemOn, GradedCellsWithNeumannOnlyAndSumsOfTheData) {
  std::array<Face, 6> const faces{neumann(constant(1)), neumann(sine(1, 1)),  neumann(constant(0)),
                                  neumann(constant(0)), neumann(constant(2)), robin(constant(0), constant(1))};
  std::array<std::vector<double>, 3> const x{graded(0, 1, 14, 1.2), {}, graded(0, 2, 7, 0.5)};
  this->expect_reference({{14, 5, 7}, {0, 0, 0}, {1, 1, 2}, {polynomial(1, 1, 0)}, sine(3, 2), faces, x});
  this->expect_reference({{14, 5, 7}, {0, 0, 0}, {1, 1, 2}, {constant(2)}, constant(1), faces, x});

  Case const c{{8, 6, 2},
               {0, 0, 0},
               {2, 1, 3},
               {constant(1)},
               polynomial(-1, 0, 2),
               all_dirichlet(constant(0)),
               {graded(0, 2, 8, 1.3), {}, {0, 1, 3}}};
  BoxSystem const system(*this->context, c.problem());
  EXPECT_NEAR(system.source().sum, 2 * (9 - 3), 1e-13);  // int 2 z - 1
  // The integral of 2 z - 1 over the layer from 1 to 3 is 6. Each line has that of its largest cell.
  ASSERT_EQ(system.largest_source_of_lines().size(), 12U);
  for (std::size_t line = 6; line < 12; ++line)
    EXPECT_NEAR(system.largest_source_of_lines()[line], 6 * c.edge(0, 7) / 6, 1e-13);
  EXPECT_FALSE(BoxSystem::can_assemble(c.problem(), Format::matrix_free)) << "rows differ";
}

TYPED_TEST(BoxSystemOn, SumsOfSomeCellsOnly) {
  std::array<std::vector<double>, 3> const equal{}, differing{graded(0, 1, 6, 1.2), {}, graded(0, 2, 7, 0.5)};
  for (auto const& x : {equal, differing})
    for (Data const& f : {constant(-3), polynomial(-1, 0, 2)}) {
      Case const c{{6, 5, 7}, {0, 0, 0}, {1, 1, 2}, {constant(1)}, f, all_dirichlet(constant(0)), x};
      BoxProblem problem = c.problem();
      BoxSystem const of_all(*this->context, problem);
      FieldSums const whole = of_all.source();
      FieldSums parts;
      for (std::int64_t const cut : {0, 4}) {
        problem.cells_in_sums = {{cut, 0, 0}, {cut == 0 ? 4 : 6, 5, 7}};
        BoxSystem const system(*this->context, problem);
        ASSERT_EQ(system.largest_source_of_lines().size(), f.code.size() == 1 ? 0U : 35U);
        // f does not depend on x, and graded cells that do not count are left out.
        double const share = x[0].empty() || cut == 4 ? 1 : c.edge(0, 3) / c.edge(0, 5);
        for (std::size_t line = 0; line < system.largest_source_of_lines().size(); ++line)
          EXPECT_NEAR(system.largest_source_of_lines()[line], share * of_all.largest_source_of_lines()[line], 1e-14);
        parts.sum += system.source().sum;
        parts.absolute += system.source().absolute;
      }
      EXPECT_NEAR(parts.sum, whole.sum, 1e-13);
      EXPECT_NEAR(parts.absolute, whole.absolute, 1e-13);
      problem.cells_in_sums = {{2, 1, 3}, {3, 3, 6}};  // int -3, and int 2 z - 1, each over the cells
      double const z0 = c.node(2, 3), z1 = c.node(2, 6);
      double const area = c.edge(0, 2) * 0.4;
      EXPECT_NEAR(BoxSystem(*this->context, problem).source().sum,
                  area * (f.code.size() == 1 ? -3 * (z1 - z0) : z1 * z1 - z1 - z0 * z0 + z0), 1e-14);
    }
}

TYPED_TEST(BoxSystemOn, SlabsOfPlanesOfGradedCells) {
  this->expect_reference({{130, 128, 5},
                          {0, 0, 0},
                          {1, 1, 1},
                          {sine(2, 1)},
                          polynomial(1, 1, 0),
                          {dirichlet(0, constant(1)), neumann(constant(1)), neumann(constant(1)), neumann(constant(0)),
                           neumann(constant(0)), dirichlet(1, constant(2))},
                          {graded(0, 1, 130, 1.01), {}, graded(0, 1, 5, 1.3)}});
}

TYPED_TEST(BoxSystemOn, SlabsOfPlanes) {
  // Several slabs on the host.
  this->expect_reference({{130, 128, 5},
                          {0, 0, 0},
                          {1, 1, 1},
                          {sine(2, 1)},
                          polynomial(1, 1, 0),
                          {dirichlet(0, constant(1)), neumann(constant(1)), neumann(constant(1)), neumann(constant(0)),
                           neumann(constant(0)), dirichlet(1, constant(2))}});
}

TYPED_TEST(BoxSystemOn, PureNeumannIsMadeCompatible) {
  std::array<Face, 6> faces{neumann(constant(1)), neumann(sine(1, 1)),  neumann(constant(0)),
                            neumann(constant(0)), neumann(constant(2)), robin(constant(0), constant(1))};
  Case const c{{6, 5, 7}, {0, 0, 0}, {1, 1, 2}, {polynomial(1, 1, 0)}, sine(3, 2), faces};
  BoxSystem const system(*this->context, c.problem());
  EXPECT_TRUE(system.pure_neumann());
  this->expect_reference(c);
}

TYPED_TEST(BoxSystemOn, PlacesOfBadData) {
  Case c{{4, 4, 4}, {0, 0, 0}, {1, 1, 1}, {polynomial(-0.5, 0, 1)}, constant(1), all_dirichlet(constant(0))};
  try {
    BoxSystem const system(*this->context, c.problem());
    FAIL() << "k is negative where z < 0.5";
  } catch (DataError const& error) {
    EXPECT_EQ(error.quantity, DataError::Quantity::coefficient);
    EXPECT_NEAR(error.at[2], (0.5 - 0.5 / std::sqrt(3.)) / 4, 1e-15) << "the first point in order";
  }
  c.k = {constant(1), constant(2), constant(1), polynomial(0, 0, 2), constant(0), constant(0)};  // det is 2 - 4 z^2
  try {
    BoxSystem const system(*this->context, c.problem());
    FAIL() << "k is not positive definite where z > 0.7";
  } catch (DataError const& error) {
    EXPECT_EQ(error.quantity, DataError::Quantity::coefficient);
    EXPECT_NEAR(error.at[2], 0.75 + (0.5 - 0.5 / std::sqrt(3.)) / 4, 1e-15) << "the first point in order";
  }
  c.k = {constant(1)};
  c.faces[2] = robin(polynomial(-0.5, 0, 1), constant(0));
  try {
    BoxSystem const system(*this->context, c.problem());
    FAIL() << "alpha is negative";
  } catch (DataError const& error) {
    EXPECT_EQ(error.quantity, DataError::Quantity::alpha);
    EXPECT_EQ(error.part, 2);
    EXPECT_EQ(error.at[1], 0);
  }
  c.faces = all_dirichlet(constant(0));
  c.f = {{Instruction(Op::constant, 1), Instruction(Op::x), Instruction(Op::constant, 0), Instruction(Op::multiply),
          Instruction(Op::divide)},
         {}};
  EXPECT_THROW(BoxSystem(*this->context, c.problem()), DataError);
}

TYPED_TEST(BoxSystemOn, SumsOfTheData) {
  Case const c{{8, 6, 4}, {0, 0, 0}, {2, 1, 1}, {constant(1)}, polynomial(-1, 0, 2), all_dirichlet(constant(0))};
  BoxSystem const system(*this->context, c.problem());
  EXPECT_NEAR(system.source().sum, 0, 1e-14);
  EXPECT_NEAR(system.source().absolute, 1, 0.02);  // int |2 z - 1| = 1/2 over the volume of 2
  EXPECT_FALSE(system.pure_neumann());
  // |2 z - 1| is largest in the first and last layers, and the same in every line of a layer.
  ASSERT_EQ(system.largest_source_of_lines().size(), 24U);
  for (std::size_t line = 0; line < 24; ++line)
    EXPECT_NEAR(system.largest_source_of_lines()[line], (line / 6 == 0 || line / 6 == 3 ? 0.75 : 0.25) * 2. / (8 * 6 * 4), 1e-15);
}

// Peaks lie at vertices, and between them where the lattice has more points.
TYPED_TEST(BoxSystemOn, LatticeOfTheSource) {
  using Lattice = std::pair<std::array<std::int64_t, 3>, int>;
  for (auto const& [cells, steps] : {Lattice{{3, 4, 2}, 8}, Lattice{{20, 40, 30}, 1}}) {
    Case const c{cells, {0, 0, 0}, {2, 1, 3}, {constant(1)}, sine(2, 1), all_dirichlet(constant(0))};
    BoxSystem const system(*this->context, c.problem());
    auto const& lattice = system.source_lattice();
    ASSERT_EQ(lattice.steps, steps);
    ASSERT_EQ(lattice.largest.size(), static_cast<std::size_t>(cells[1] * cells[2]));
    auto const at = [&, cells = cells, steps = steps](std::size_t d, std::int64_t i) {
      return c.extent[d] * static_cast<double>(i) / static_cast<double>(cells[d] * steps);
    };
    for (std::int64_t z = 0; z < cells[2]; ++z)
      for (std::int64_t y = 0; y < cells[1]; ++y) {
        double most = 0;
        for (std::int64_t k = z * steps; k <= (z + 1) * steps; ++k)
          for (std::int64_t j = y * steps; j <= (y + 1) * steps; ++j)
            for (std::int64_t i = 0; i <= cells[0] * steps; ++i)
              most = std::max(most, std::abs(c.f.value({at(0, i), at(1, j), at(2, k)})));
        EXPECT_NEAR(lattice.largest[static_cast<std::size_t>(z * cells[1] + y)], most, 1e-13);
      }
  }
}

TYPED_TEST(BoxSystemOn, LatticeWhereTheSourceIsNotFinite) {
  Case c{{4, 4, 4}, {0, 0, 0}, {1, 1, 1}, {constant(1)}, constant(0), all_dirichlet(constant(0))};
  c.f = {{Instruction(Op::constant, 1), Instruction(Op::x), Instruction(Op::divide)}, {}};  // no point of the quadrature has x = 0
  BoxSystem const system(*this->context, c.problem());
  double const step = 0.25 / system.source_lattice().steps;
  ASSERT_EQ(system.source_lattice().largest.size(), 16U);
  for (double const largest : system.source_lattice().largest)
    EXPECT_NEAR(largest, 1 / step, 1e-12);
}

}  // namespace

}  // namespace poisson::testing
