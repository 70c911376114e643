#include "gpu/elements/lattice_operator.hpp"

#include "gpu/core/threads.hpp"
#include "gpu/elements/lattice_system.hpp"
#include "gpu/formats/csr.hpp"
#include "gpu/solvers/solver.hpp"
#include "tests/gpu/cases.hpp"
#include "tests/gpu/elements/functions.hpp"
#include "tests/gpu/elements/lattice_reference.hpp"
#include "tests/gpu/matrices.hpp"
#include "tests/gpu/quad.hpp"
#include "tests/gpu/systems.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>

/// Matrix-free operators on meshes of lattices, assembled on a backend, beside the reference.
namespace poisson::testing {

namespace {

/// The tolerance of products and dots against entries that are rounded to double, over the sum of absolute terms. Gauss points lie
/// denser for higher orders, and derivatives lose digits.
double tolerance(double unit, std::int32_t order) {
  return 40 * unit * (1 + order * order);
}

/// The material data of most tests.
LatticeMesh mesh_of(std::array<std::int64_t, 3> const& lattices, std::int32_t cells, std::int32_t order, bool isoparametric) {
  return {lattices, cells,        {{polynomial(2, 1, 1), constant(1), sine(2, 3)}, {sine(3, 1)}}, sine(0.1, 5), true, true,
          order,    isoparametric};
}

std::string name_of(LatticeMesh const& c) {
  std::string name = c.isoparametric ? "isoparametric, " : "trilinear, ";
  for (std::int64_t const n : c.lattices)
    name += std::to_string(n) + " x ";
  return name + "lattices of " + std::to_string(c.cells) + " cells of order " + std::to_string(c.order) +
         (c.tensor_grid  ? ", in a box"
          : c.all_on_rim ? ", all in tables"
                         : "");
}

}  // namespace

template <class B>
class LatticeOperatorOn : public OnBackend<B::value> {
protected:
  /// Everything against the reference.
  void check(LatticeMesh const& c) {
    SCOPED_TRACE(name_of(c));
    LatticeReference const expected(c);
    LatticeSystem const system(*this->context, expected.asked(), Format::matrix_free);
    CsrMatrix const csr = expected.csr();
    check_system(expected, csr, system);
    auto const& matrix = static_cast<LatticeOperator const&>(system.matrix());
    EXPECT_EQ(matrix.format(), Format::matrix_free);
    EXPECT_EQ(matrix.precision(), MatrixPrecision::double_);
    check_products<float>(csr, matrix, tolerance(unit_roundoff<float>, c.order));
    check_products<double>(csr, matrix, tolerance(unit_roundoff<double>, c.order));
    check_products<DoubleDouble>(csr, matrix, tolerance(unit_roundoff<double>, c.order));
    check_residual(csr, matrix);
  }

  /// The right-hand side, the entries, and what else the system tells.
  void check_system(LatticeReference const& expected, CsrMatrix const& csr, LatticeSystem const& system) {
    std::int64_t const n = csr.n_rows;
    CsrMatrix const matrix = system.matrix().to_csr();
    EXPECT_EQ(system.nnz(), csr.nnz());
    ASSERT_TRUE(matrix.row_ptr == csr.row_ptr && matrix.columns == csr.columns);
    Array<double> on_device(*this->context, n);
    system.matrix().diagonal(on_device.data());
    std::vector<double> diagonal(static_cast<std::size_t>(n));
    on_device.download(std::span<double>(diagonal));
    for (std::int64_t i = 0; i < n; ++i) {
      double largest = 0;
      for (std::int64_t e = csr.row_ptr[i]; e < csr.row_ptr[i + 1]; ++e)
        largest = std::max(largest, std::abs(csr.values[e]));
      for (std::int64_t e = csr.row_ptr[i]; e < csr.row_ptr[i + 1]; ++e) {
        ASSERT_NEAR(matrix.values[e], csr.values[e], 1e-13 * largest) << "row " << i << ", column " << csr.columns[e];
        if (csr.columns[e] == i) {
          ASSERT_NEAR(diagonal[i], csr.values[e], 1e-13 * largest) << "row " << i;
        }
      }
    }
    HostVector<double> rhs(static_cast<std::size_t>(n));
    system.rhs().download(std::span<double>(rhs));
    double scale = 0;
    for (double const b : expected.rhs)
      scale = std::max(scale, std::abs(b));
    for (std::int64_t i = 0; i < n; ++i)
      ASSERT_NEAR(rhs[i], expected.rhs[i], 1e-13 * scale) << "row " << i;
    std::vector<double> x(static_cast<std::size_t>(n), -7.0);
    system.set_dirichlet(x);
    for (std::int64_t i = 0; i < n; ++i)
      ASSERT_EQ(x[i], expected.is_fixed(i) ? expected.problem.fixed_value[i - expected.box.layout.n_inner()] : -7);
    EXPECT_EQ(system.pure_neumann(), expected.problem.pure_neumann);
    EXPECT_EQ(system.matrix().first_row_not_finite(), -1);
  }

  /// Products with vectors of T against loops over CSR.
  template <class T>
  void check_products(CsrMatrix const& csr, Matrix const& matrix, double bound) {
    SCOPED_TRACE("vectors of " + std::to_string(sizeof(T)) + " bytes");
    auto const n = static_cast<std::size_t>(csr.n_rows);
    auto const x = random_numbers<T>(csr.n_rows, 17), y = random_numbers<T>(csr.n_rows, 23);
    std::vector<Quad> expected(n);
    std::vector<double> scale(n);
    Quad dot_expected = 0;
    double dot_scale = 0;
    for (std::size_t row = 0; row < n; ++row) {
      for (auto e = static_cast<std::size_t>(csr.row_ptr[row]); e < static_cast<std::size_t>(csr.row_ptr[row + 1]); ++e) {
        Quad const term = quad(csr.values[e]) * quad(x[static_cast<std::size_t>(csr.columns[e])]);
        expected[row] += term;
        scale[row] += size_of(term);
      }
      dot_expected += quad(x[row]) * expected[row];
      dot_scale += size_of(quad(x[row])) * scale[row];
    }
    Vector<T> const device_x(*this->context, std::span<T const>(x));
    T const third = T(1) / T(3), nan = std::numeric_limits<double>::quiet_NaN();
    for (auto const& [alpha, beta] : {std::pair<T, T>{T(1), T(0)}, {-third, T(0)}, {T(1), T(1)}, {third, T(-7) * third}}) {
      Vector<T> device_y(*this->context, std::span<T const>(beta == T(0) ? std::vector<T>(n, nan) : y));
      matrix.product(alpha, device_x.data(), beta, device_y.data());
      auto const result = download(device_y);
      for (std::size_t i = 0; i < n; ++i) {
        Quad const from_y = beta == T(0) ? Quad(0) : quad(beta) * quad(y[i]);
        ASSERT_LE(size_of(quad(result[i]) - (quad(alpha) * expected[i] + from_y)),
                  bound * (size_of(quad(alpha)) * scale[i] + size_of(from_y)))
            << "row " << i << ", alpha " << static_cast<double>(alpha) << ", beta " << static_cast<double>(beta);
      }
    }
    Vector<T> device_y(*this->context, std::span<T const>(std::vector<T>(n, nan)));
    T const before = T(-5);
    Array<T> dot(*this->context, std::span<T const>(&before, 1));
    auto const flag = [&](std::int32_t value) {
      return Array<std::int32_t>(*this->context, std::span<std::int32_t const>(&value, 1));
    };
    matrix.product_dot(device_x.data(), device_y.data(), dot.data(), flag(1).data());
    for (T const entry : download(device_y))
      ASSERT_TRUE(std::isnan(static_cast<double>(entry))) << "a stopped product must leave y alone";
    EXPECT_EQ(download(dot), before);
    matrix.product_dot(device_x.data(), device_y.data(), dot.data(), flag(0).data());
    auto const result = download(device_y);
    T const result_dot = download(dot);
    for (std::size_t i = 0; i < n; ++i)
      ASSERT_LE(size_of(quad(result[i]) - expected[i]), bound * scale[i]) << "row " << i;
    EXPECT_LE(size_of(quad(result_dot) - dot_expected), bound * dot_scale);
    matrix.product_dot(device_x.data(), device_y.data(), dot.data(), flag(0).data());
    EXPECT_TRUE(download(device_y) == result && download(dot) == result_dot) << "other bits the second time";
  }

  /// The residual against the product in double-double: loops of their own for the same numbers.
  void check_residual(CsrMatrix const& csr, LatticeOperator const& matrix) {
    auto const n = static_cast<std::size_t>(csr.n_rows);
    auto const x = random_numbers<DoubleDouble>(csr.n_rows, 5);
    std::vector<double> high(n), low(n), scale(n), b(n);
    for (std::size_t i = 0; i < n; ++i) {
      high[i] = x[i].hi;
      low[i] = x[i].lo;
    }
    for (std::size_t row = 0; row < n; ++row)
      for (auto e = static_cast<std::size_t>(csr.row_ptr[row]); e < static_cast<std::size_t>(csr.row_ptr[row + 1]); ++e)
        scale[row] += std::abs(csr.values[e] * high[static_cast<std::size_t>(csr.columns[e])]);
    Vector<double> const device_high(*this->context, std::span<double const>(high)),
        device_low(*this->context, std::span<double const>(low));
    for (bool const with_low : {false, true}) {
      Vector<DoubleDouble> device_x(*this->context, std::span<DoubleDouble const>(x)), product(*this->context, csr.n_rows);
      if (!with_low)
        device_x.upload(std::span<double const>(high));
      matrix.product(DoubleDouble(1), device_x.data(), DoubleDouble(0), product.data());
      auto const exact = download(product);
      for (std::size_t row = 0; row < n; ++row)
        b[row] = exact[row].hi;  // nearly all digits cancel
      Vector<double> const device_b(*this->context, std::span<double const>(b));
      Vector<double> r(*this->context, csr.n_rows);
      ASSERT_TRUE(matrix.residual(device_high.data(), with_low ? device_low.data() : nullptr, device_b.data(), r.data()));
      auto const result = download(r);
      for (std::size_t row = 0; row < n; ++row)
        ASSERT_NEAR(result[row], -exact[row].lo, 0x1p-90 * scale[row]) << "row " << row;
    }
  }
};
TYPED_TEST_SUITE(LatticeOperatorOn, Backends, BackendNames);

TYPED_TEST(LatticeOperatorOn, OneLattice) {
  for (std::int32_t order = 1; order <= 4; ++order)
    for (bool const isoparametric : {false, true})
      for (std::int32_t const cells : {1, 2, 3})
        this->check(mesh_of({1, 1, 1}, cells, order, isoparametric));
}

TYPED_TEST(LatticeOperatorOn, SeveralLatticesAndMaterials) {
  for (std::int32_t order = 1; order <= 4; ++order)
    this->check(mesh_of({2, 2, 1}, order == 4 ? 2 : 4, order, order % 2 == 0));
  this->check(mesh_of({3, 2, 1}, 5, 1, true));
  this->check(mesh_of({1, 2, 3}, 3, 2, false));
  this->check(mesh_of({1, 1, 2}, 9, 1, false));
}

TYPED_TEST(LatticeOperatorOn, CellsOfALatticeDiffer) {
  for (std::int32_t order = 1; order <= 4; ++order) {
    LatticeMesh mesh = mesh_of({2, 1, 2}, order < 3 ? 3 : 2, order, order % 2 == 0);
    mesh.k.push_back(full_tensor());
    mesh.more_sources = {constant(3), polynomial(1, 1, 0)};
    mesh.cells_differ = true;
    mesh.dirichlet = mesh.robin = order != 3;
    this->check(mesh);
  }
}

TYPED_TEST(LatticeOperatorOn, LongLines) {
  // Lines of cells that are longer than a batch, or than the lanes of a vector.
  this->check(mesh_of({1, 1, 1}, 11, 2, false));
  this->check(mesh_of({1, 1, 1}, 34, 1, false));
}

TYPED_TEST(LatticeOperatorOn, HighOrders) {
  for (std::int32_t const order : {5, 6})
    this->check(mesh_of({2, 1, 1}, order == 5 ? 2 : 1, order, true));
}

TYPED_TEST(LatticeOperatorOn, OtherConditions) {
  for (bool const dirichlet : {false, true}) {
    LatticeMesh mesh = mesh_of({2, 1, 2}, 2, 3, true);
    mesh.dirichlet = dirichlet;
    mesh.robin = !dirichlet;
    this->check(mesh);
  }
  for (std::int32_t order = 1; order <= 3; ++order) {
    LatticeMesh mesh = mesh_of({2, 2, 1}, 3, order, false);
    mesh.dirichlet = mesh.robin = false;
    this->check(mesh);
  }
}

TYPED_TEST(LatticeOperatorOn, FullTensors) {
  for (std::int32_t order = 1; order <= 4; ++order) {
    LatticeMesh mesh = mesh_of({2, 1, 2}, order < 3 ? 3 : 2, order, order == 2);
    mesh.k = {full_tensor(), {sine(3, 1)}};
    this->check(mesh);
  }
}

TYPED_TEST(LatticeOperatorOn, AllNodesInTables) {
  for (std::int32_t order = 1; order <= 5; ++order)
    for (bool const dirichlet : {true, false}) {
      LatticeMesh mesh = mesh_of({5, 3, 3}, 1, order, order == 2);
      mesh.all_on_rim = true;
      mesh.dirichlet = dirichlet;
      this->check(mesh);
    }
}

TYPED_TEST(LatticeOperatorOn, InBox) {
  for (std::int32_t order = 1; order <= 5; ++order)
    for (bool const dirichlet : {true, false}) {
      LatticeMesh mesh = mesh_of({11, 3, 4}, 1, order, false);
      if (order > 2)
        mesh.lattices = dirichlet ? std::array<std::int64_t, 3>{5, 1, 2} : std::array<std::int64_t, 3>{1, 3, 2};
      mesh.all_on_rim = mesh.tensor_grid = true;
      mesh.dirichlet = dirichlet;
      this->check(mesh);
      mesh.robin = false;  // one material of a constant
      mesh.k = {{constant(3)}};
      this->check(mesh);
      mesh.k = {{constant(3), constant(2), constant(0.5)}, {constant(7)}};
      this->check(mesh);
      mesh.k = {full_tensor(), {constant(7)}};
      this->check(mesh);
    }
}

/// The nodes at the surface of a box by loops over all nodes.
TEST(BoxSurfaceTest, NumbersNodesInOrder) {
  for (std::array<std::int64_t, 3> const& n : {std::array<std::int64_t, 3>{2, 2, 2}, {2, 3, 4}, {5, 2, 3}, {4, 5, 2}, {5, 4, 6}}) {
    BoxSurface const surface{{n[0], n[1], n[2]}};
    std::int64_t place = 0;
    for (std::int64_t node = 0; node < n[0] * n[1] * n[2]; ++node) {
      std::int64_t const i = node % n[0], j = node / n[0] % n[1], k = node / (n[0] * n[1]);
      bool const inside = i > 0 && i + 1 < n[0] && j > 0 && j + 1 < n[1] && k > 0 && k + 1 < n[2];
      ASSERT_EQ(surface.place(node), inside ? -1 : place);
      if (!inside) {
        ASSERT_EQ(surface.node(place), node);
        ++place;
      }
    }
    ASSERT_EQ(surface.size(), place);
  }
}

TYPED_TEST(LatticeOperatorOn, InSinglePrecision) {
  for (std::int32_t const kind : {1, 2, 3, 4, 5, -1, -2, -3, -4, -5}) {  // orders; negative: in a box
    std::int32_t const order = std::abs(kind);
    LatticeMesh mesh = kind > 0 ? mesh_of({2, 1, 1}, 2, order, true) : mesh_of({3, 2, 2}, 1, order, false);
    mesh.all_on_rim = mesh.tensor_grid = kind < 0;
    LatticeReference const expected(mesh);
    LatticeSystem const system(*this->context, expected.asked(), Format::matrix_free);
    auto const matrix = static_cast<LatticeOperator const&>(system.matrix()).in_single();
    EXPECT_EQ(matrix->precision(), MatrixPrecision::single);
    EXPECT_LT(matrix->bytes(), system.matrix().bytes());
    CsrMatrix const csr = expected.csr();
    this->template check_products<float>(csr, *matrix, 2 * tolerance(unit_roundoff<float>, order));
    this->template check_products<double>(csr, *matrix, 2 * tolerance(unit_roundoff<float>, order));
    EXPECT_FALSE(matrix->residual(nullptr, nullptr, nullptr, nullptr));
    EXPECT_TRUE(matrix->to_csr().columns == csr.columns);
  }
}

TYPED_TEST(LatticeOperatorOn, IsTheMatrixInHalfCds) {
  LatticeReference const expected(mesh_of({2, 2, 1}, 6, 1, false));
  LatticeSystem const stored(*this->context, expected.problem), free(*this->context, expected.problem, Format::matrix_free);
  EXPECT_EQ(stored.nnz(), free.nnz());
  CsrMatrix const a = stored.matrix().to_csr(), b = free.matrix().to_csr();
  ASSERT_TRUE(a.row_ptr == b.row_ptr && a.columns == b.columns);
  for (std::size_t e = 0; e < a.values.size(); ++e)
    ASSERT_NEAR(a.values[e], b.values[e], 1e-14);
  this->template check_products<double>(a, free.matrix(), tolerance(unit_roundoff<double>, 1));
  std::vector<double> b_stored(static_cast<std::size_t>(a.n_rows)), b_free(b_stored.size());
  stored.rhs().download(std::span<double>(b_stored));
  free.rhs().download(std::span<double>(b_free));
  EXPECT_LE(distance(b_stored, b_free), 1e-14 * norm(b_stored));
  EXPECT_NEAR(stored.source().sum, free.source().sum, 1e-14);
}

TYPED_TEST(LatticeOperatorOn, CopiesBetweenBackends) {
  LatticeReference const expected(mesh_of({2, 1, 1}, 3, 3, true));
  LatticeSystem const system(*this->context, expected.problem, Format::matrix_free);
  auto const host = make_context(Backend::cpu);
  auto const copy = system.matrix().copy_to(*host), there = copy->copy_to(*this->context);
  CsrMatrix const csr = system.matrix().to_csr();
  for (Matrix const* const m : {copy.get(), there.get()}) {
    EXPECT_EQ(m->format(), Format::matrix_free);
    EXPECT_EQ(m->bytes(), system.matrix().bytes());
    EXPECT_TRUE(m->to_csr().values == csr.values);
  }
  this->template check_products<double>(csr, *there, tolerance(unit_roundoff<double>, 3));
}

TYPED_TEST(LatticeOperatorOn, EntriesAreSymmetric) {
  LatticeReference const expected(mesh_of({2, 1, 2}, 2, 3, true));
  LatticeSystem const system(*this->context, expected.problem, Format::matrix_free);
  CsrMatrix const csr = system.matrix().to_csr();
  std::map<std::pair<std::int64_t, std::int64_t>, double> entries;
  for (std::int64_t row = 0; row < csr.n_rows; ++row)
    for (std::int64_t e = csr.row_ptr[row]; e < csr.row_ptr[row + 1]; ++e)
      entries[{row, csr.columns[e]}] = csr.values[e];
  for (auto const& [place, value] : entries)
    ASSERT_EQ(value, (entries[{place.second, place.first}])) << "row " << place.first << ", column " << place.second;
}

TYPED_TEST(LatticeOperatorOn, SolvesByCg) {
  for (std::int32_t order = 1; order <= 4; ++order) {
    SCOPED_TRACE("order " + std::to_string(order));
    LatticeReference const expected(mesh_of({2, 1, 1}, order < 3 ? 4 : 2, order, true));
    LatticeSystem const system(*this->context, expected.problem, Format::matrix_free);
    auto const by_csr = make_matrix(Format::csr, std::make_shared<CsrMatrix const>(expected.csr()), *this->context);
    for (Precision const precision : {Precision::double_, Precision::double_double}) {
      if (precision == Precision::double_double && order != 2)
        continue;
      SolverOptions options;
      options.precision = precision;
      options.preconditioner = PreconditionerKind::jacobi;
      std::vector<double> x(expected.rhs.size()), reference(x.size());
      SolverResult const result = poisson::solve(system.matrix(), expected.rhs, x, options);
      EXPECT_EQ(result.status, SolverStatus::converged) << result.reason;
      SolverResult const of_csr = poisson::solve(*by_csr, expected.rhs, reference, options);
      EXPECT_EQ(of_csr.status, SolverStatus::converged) << of_csr.reason;
      EXPECT_NEAR(static_cast<double>(result.iterations), static_cast<double>(of_csr.iterations), 2);
      EXPECT_LE(distance(x, reference), 1e-9 * norm(reference));
    }
  }
}

TYPED_TEST(LatticeOperatorOn, SameBitsWithAnyNumberOfThreads) {
  int const threads = thread_count();
  LatticeReference const expected(mesh_of({2, 1, 1}, 6, 3, true));
  std::vector<double> first;
  for (int const count : {1, 2, 3}) {
    set_thread_count(count);
    LatticeSystem const system(*this->context, expected.problem, Format::matrix_free);
    auto const n = system.matrix().n_rows();
    Array<double> const x(*this->context, std::span<double const>(random_vector(n, 3)));
    Array<double> y(*this->context, n), dot(*this->context, 1);
    Array<std::int32_t> stop(*this->context, 1);
    stop.set_zero();
    static_cast<LinearOperator<double> const&>(system.matrix()).product_dot(x.data(), y.data(), dot.data(), stop.data());
    std::vector<double> result(static_cast<std::size_t>(n));
    y.download(std::span<double>(result));
    result.push_back(download(dot));
    std::vector<double> rhs(static_cast<std::size_t>(n));
    system.rhs().download(std::span<double>(rhs));
    result.insert(result.end(), rhs.begin(), rhs.end());
    if (first.empty())
      first = result;
    EXPECT_TRUE(result == first) << count << " threads";
  }
  set_thread_count(threads);
}

TYPED_TEST(LatticeOperatorOn, PlacesOfBadData) {
  LatticeMesh mesh = mesh_of({2, 1, 1}, 2, 3, true);
  mesh.k = {{polynomial(-0.5, 0, 1)}};
  LatticeReference const bad(mesh);
  try {
    LatticeSystem const system(*this->context, bad.problem, Format::matrix_free);
    FAIL() << "k is negative where z < 0.5";
  } catch (DataError const& error) {
    EXPECT_EQ(error.quantity, DataError::Quantity::coefficient);
    EXPECT_EQ(error.part, 0) << "the first cell";
    EXPECT_LT(error.at[2], 0.25) << "the first point in order";
  }
  mesh.k = {{constant(1)}};
  LatticeReference inverted(mesh);
  std::int64_t const nodes = 7 * 7 * 7;
  HostVector<double> mirrored = *inverted.problem.coordinates;
  for (std::int64_t i = 0; i < nodes; ++i)  // the second lattice
    mirrored[static_cast<std::size_t>(3 * nodes + i)] *= -1;
  inverted.problem.coordinates = std::make_shared<HostVector<double> const>(std::move(mirrored));
  try {
    LatticeSystem const system(*this->context, inverted.problem, Format::matrix_free);
    FAIL() << "cells are inverted";
  } catch (DataError const& error) {
    EXPECT_EQ(error.quantity, DataError::Quantity::determinant);
    EXPECT_EQ(error.part, 2 * 2 * 2) << "the first cell of the second lattice";
    EXPECT_LT(error.value, 0);
  }
}

TYPED_TEST(LatticeOperatorOn, Bytes) {
  LatticeReference const expected(mesh_of({2, 1, 1}, 2, 2, false));
  LatticeSystem const system(*this->context, expected.problem, Format::matrix_free);
  std::int64_t const rows = expected.box.layout.n_unknowns, n_rim = rows - expected.box.layout.n_inner();
  std::int64_t const tables = std::ssize(expected.problem.layout.tables->copies) * 8 + 8 * (n_rim + 1) + 4 * 8;
  std::int64_t const faces = 4 * 3 + 8 * std::ssize(expected.problem.face_mass);  // 3 with Robin conditions
  std::int64_t const tensors = 8 * 6 * 27 * 32;                                   // one batch
  EXPECT_EQ(system.matrix().bytes(), tensors + tables + faces + n_rim + 8 * rows);
  EXPECT_EQ(system.matrix().bytes_per_product(), tensors + tables + faces + n_rim + 16 * rows);
}

}  // namespace poisson::testing
