#include "gpu/elements/lattice_system.hpp"
#include "gpu/elements/order_one.hpp"
#include "gpu/preconditioners/multigrid_hierarchy.hpp"
#include "gpu/solvers/solver.hpp"
#include "tests/gpu/cases.hpp"
#include "tests/gpu/elements/functions.hpp"
#include "tests/gpu/elements/lattice_reference.hpp"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

/// Multigrid on elements of order p, which it lowers to order 1 on the same cells.
namespace poisson::testing {

namespace {

LatticeMesh two_materials(std::int32_t order, std::array<std::int64_t, 3> const& lattices, std::int32_t cells) {
  LatticeMesh mesh;
  mesh.lattices = lattices;
  mesh.cells = cells;
  mesh.order = order;
  mesh.k = {{polynomial(2, 1, 1)}, {constant(50)}};
  mesh.f = sine(1, 3);
  return mesh;
}

std::string text_of(LatticeMesh const& mesh) {
  return "order " + std::to_string(mesh.order) + ", " + std::to_string(mesh.lattices[0]) + " x " +
         std::to_string(mesh.lattices[1]) + " x " + std::to_string(mesh.lattices[2]) + " lattices of " +
         std::to_string(mesh.cells) + " cells" +
         (mesh.tensor_grid  ? ", in a box"
          : mesh.all_on_rim ? ", all in tables"
                            : "");
}

/// A matrix of that order in csr or another format, beside the problem that it is of.
struct OfOrder {
  LatticeReference reference;
  std::shared_ptr<CsrMatrix const> csr;
  explicit OfOrder(LatticeMesh const& mesh) : reference(mesh), csr(std::make_shared<CsrMatrix const>(reference.csr())) {}
};

}  // namespace

template <class B>
class OrderMultigrid : public OnBackend<B::value> {
protected:
  std::unique_ptr<Matrix> matrix_of(OfOrder const& of, Format format) {
    coordinates_ = {};
    if (format == Format::matrix_free) {
      LatticeSystem system(*this->context, of.reference.asked(), format, true);
      coordinates_ = system.take_coordinates();
      return system.take_matrix();
    }
    return make_matrix(format, of.csr, *this->context);
  }

  /// Solves with the right-hand side of the problem, and tests the residual.
  SolverResult solve_case(OfOrder const& of, Format format, SolverOptions options = {}) {
    auto const matrix = matrix_of(of, format);
    HostVector<double> b(of.reference.rhs.begin(), of.reference.rhs.end()), x(b.size());
    if (options.constant_null_space) {
      double const mean = std::accumulate(b.begin(), b.end(), 0.0) / static_cast<double>(b.size());
      for (double& entry : b)
        entry -= mean;
    }
    options.preconditioner = PreconditionerKind::multigrid;
    options.element_order = of.reference.problem.layout.order;
    options.order_one = [&] { return make_order_one(*this->context, LoweredProblem(of.reference.asked()), coordinates_); };
    SolverResult result = solve(*matrix, b, x, options);
    EXPECT_EQ(result.status, SolverStatus::converged) << result.reason;
    // Tables of matrix_free and the reference are rounded apart.
    EXPECT_LE(true_residual(*of.csr, x, b, result.x_low),
              format == Format::matrix_free ? std::max(2 * options.tolerance, 1e-11) : 2 * options.tolerance);
    solution_ = std::move(x);
    return result;
  }
  HostVector<double> solution_;
  Array<double> coordinates_;  ///< of the nodes, where the matrix is matrix-free
};

TYPED_TEST_SUITE(OrderMultigrid, Backends, BackendNames);

TEST(LayoutOfVertices, IsThatOfABoxWithOrderOne) {
  for (bool const all_on_rim : {false, true})
    for (std::int32_t const order : {1, 2, 3, 5})
      for (std::array<std::int64_t, 3> const lattices : {std::array<std::int64_t, 3>{1, 1, 1}, {2, 1, 1}, {2, 3, 2}}) {
        std::int32_t const cells = all_on_rim ? 1 : 4;
        auto const fine = test::make_lattice_box(lattices, cells, order, all_on_rim),
                   expected = test::make_lattice_box(lattices, cells, 1, all_on_rim);
        LatticeLayout const coarse = layout_of_vertices(fine.layout.view());
        EXPECT_EQ(coarse.n_unknowns, expected.layout.n_unknowns);
        EXPECT_EQ(coarse.cells, cells);
        EXPECT_EQ(coarse.order, 1);
        EXPECT_EQ(coarse.all_on_rim, all_on_rim);
        EXPECT_TRUE(std::ranges::equal(coarse.tables->rim_unknowns, expected.layout.tables->rim_unknowns));
        EXPECT_TRUE(std::ranges::equal(coarse.tables->copies, expected.layout.tables->copies));
        EXPECT_TRUE(std::ranges::equal(coarse.tables->copy_offsets, expected.layout.tables->copy_offsets));
      }
}

TEST(LayoutOfVertices, OfABoxWithoutTables) {
  LatticeLayout const coarse = layout_of_vertices(layout_of_box({2, 3, 4}, 3).view());
  EXPECT_EQ(coarse.box, (std::array<std::int32_t, 3>{2, 3, 4}));
  EXPECT_EQ(coarse.order, 1);
  EXPECT_EQ(coarse.n_unknowns, 60);
  EXPECT_EQ(coarse.tables->rim_unknowns.size(), 0U);
}

TEST(WithOrderOne, KeepsVerticesOfABox) {
  LatticeMesh mesh = two_materials(3, {2, 3, 2}, 1);
  mesh.all_on_rim = mesh.tensor_grid = true;
  LatticeReference const of(mesh);
  LatticeProblem const lowered = with_order_one(of.in_box()), expected = with_order_one(of.problem);
  EXPECT_EQ(lowered.lines[1].size(), 4U);
  for (std::int64_t i = 0; i < lowered.layout.n_on_boundary(); ++i)
    EXPECT_EQ(lowered.fixed[static_cast<std::size_t>(i)], expected.fixed[static_cast<std::size_t>(lowered.layout.on_boundary(i))]);
  EXPECT_EQ(lowered.mass_faces, expected.mass_faces);
}

TEST(WithOrderOne, KeepsVerticesConditionsAndWeights) {
  for (std::int32_t const order : {1, 2, 3, 4}) {
    LatticeReference const of(two_materials(order, {2, 1, 1}, 4));
    LatticeProblem const lowered = with_order_one(of.problem);
    LatticeView const fine = of.problem.layout.view(), coarse = lowered.layout.view();
    std::int64_t const m = coarse.m, m_fine = fine.m;
    for (std::int64_t lattice = 0; lattice < 2; ++lattice)
      for (std::int32_t k = 0; k < m; ++k)
        for (std::int32_t j = 0; j < m; ++j)
          for (std::int32_t i = 0; i < m; ++i) {
            for (std::int64_t d = 3 * lattice; d < 3 * lattice + 3; ++d)
              ASSERT_EQ((*lowered.coordinates)[static_cast<std::size_t>(d * m * m * m + (k * m + j) * m + i)],
                        (*of.problem.coordinates)[static_cast<std::size_t>(d * m_fine * m_fine * m_fine +
                                                                           ((k * m_fine + j) * m_fine + i) * order)]);
            if (!coarse.rim().holds(i, j, k))
              continue;
            ASSERT_EQ(
                lowered.fixed[static_cast<std::size_t>(coarse.unknown(lattice, i, j, k) - coarse.n_inner())],
                of.problem
                    .fixed[static_cast<std::size_t>(fine.unknown(lattice, i * order, j * order, k * order) - fine.n_inner())]);
          }
    auto const sum = [](HostVector<double> const& values) { return std::accumulate(values.begin(), values.end(), 0.0); };
    EXPECT_GT(sum(lowered.face_mass), 0);
    EXPECT_NEAR(sum(lowered.face_mass), sum(of.problem.face_mass), 1e-12 * sum(lowered.face_mass));
    EXPECT_EQ(lowered.face_mass.size() * static_cast<std::size_t>((order + 1) * (order + 1)), of.problem.face_mass.size() * 4);
  }
}

TEST(WithOrderOne, KeepsMaterialsOfCells) {
  LatticeMesh mesh = two_materials(2, {2, 1, 1}, 3);
  mesh.cells_differ = true;
  LatticeReference const of(mesh);
  EXPECT_EQ(with_order_one(of.problem).material, of.problem.material);
}

// P evaluates trilinear functions at the nodes, and P^T is its transpose; both are 0 at Dirichlet values.
TYPED_TEST(OrderMultigrid, Transfers) {
  for (int const kind : {0, 1, 2})  // lattices, cells in tables, cells of a box
    for (std::int32_t const order : {2, 3, 5}) {
      bool const all_on_rim = kind > 0;
      LatticeMesh mesh =
          two_materials(order, all_on_rim ? std::array<std::int64_t, 3>{2, 2, 1} : std::array<std::int64_t, 3>{2, 1, 1},
                        all_on_rim   ? 1
                        : order == 2 ? 4
                                     : 3);
      mesh.all_on_rim = all_on_rim;
      mesh.tensor_grid = kind == 2;
      SCOPED_TRACE(text_of(mesh));
      OfOrder const of(mesh);
      auto const matrix = this->matrix_of(of, Format::csr);
      PreconditionerOptions options;
      auto const hierarchy =
          order_hierarchy<double>(*matrix, make_order_one(*this->context, LoweredProblem(of.reference.asked())), options);
      ASSERT_EQ(hierarchy.failure, "");
      ASSERT_GE(hierarchy.levels.size(), 2U);
      auto const &fine = hierarchy.levels[0], &coarse = hierarchy.levels[1];
      auto const coarse_box = test::make_lattice_box(mesh.lattices, mesh.cells, 1, all_on_rim);
      auto const& fine_box = of.reference.box;
      LatticeProblem const lowered = with_order_one(of.reference.problem);
      auto const is_fixed = [](LatticeProblem const& problem, std::size_t unknown) {
        std::int64_t const on_rim = static_cast<std::int64_t>(unknown) - problem.layout.n_inner();
        return on_rim >= 0 && problem.fixed[static_cast<std::size_t>(on_rim)] != 0;
      };
      Quadrature1D const lobatto = lobatto_quadrature(order + 1);
      std::vector<double> e(static_cast<std::size_t>(coarse.n())), expected(static_cast<std::size_t>(fine.n())),
          found(expected.size());
      // 1 + 2 x - 3 y + x y z in cells of size 1, and 0 at Dirichlet values: compared where none is near.
      auto const function = [](double x, double y, double z) { return 1 + 2 * x - 3 * y + x * y * z; };
      auto const place = [&](std::int64_t index, std::int64_t p) {
        return static_cast<double>(index / p) + (p == 1 ? 0 : lobatto.point[static_cast<std::size_t>(index % p)]);
      };
      auto const fill = [&](test::LatticeBox const& box, std::int64_t p, std::vector<double>& values) {
        for (std::size_t node = 0; node < box.unknown_of.size(); ++node) {
          auto const at = static_cast<std::int64_t>(node);
          values[static_cast<std::size_t>(box.unknown_of[node])] =
              function(place(at % box.nodes[0], p), place(at / box.nodes[0] % box.nodes[1], p),
                       place(at / (box.nodes[0] * box.nodes[1]), p));
        }
      };
      fill(coarse_box, 1, e);
      fill(fine_box, order, expected);
      Array<std::int32_t> stop(*this->context, 1);
      stop.set_zero();
      Array<double> const coarse_values(*this->context, std::span<double const>(e));
      Array<double> x(*this->context, fine.n());
      x.set_zero();
      fine.to_coarse->prolong(coarse_values.data(), x.data(), stop.data());
      x.download(found);
      std::int64_t n_fixed = 0;
      for (std::size_t i = 0; i < found.size(); ++i)
        if (is_fixed(of.reference.problem, i)) {
          ASSERT_EQ(found[i], 0);
          ++n_fixed;
        } else {
          ASSERT_NEAR(found[i], expected[i], 1e-13 * 50);
        }
      ASSERT_GT(n_fixed, 0);

      // e . P^T r = r . P e, entry by entry of the coarse level.
      for (std::size_t i = 0; i < expected.size(); ++i)
        expected[i] = std::sin(1.0 + static_cast<double>(i));
      Array<double> const r(*this->context, std::span<double const>(expected));
      Array<double> b(*this->context, coarse.n()), begun(*this->context, coarse.n());
      fine.to_coarse->restrict_residual(r.data(), coarse.diagonal.data(), 0.5, b.data(), begun.data(), stop.data());
      std::vector<double> restricted(e.size()), begin(e.size()), diagonal(e.size());
      b.download(restricted);
      begun.download(begin);
      coarse.diagonal.download(diagonal);
      std::vector<double> unit(e.size(), 0.0);
      for (std::size_t j = 0; j < e.size(); ++j) {
        ASSERT_NEAR(begin[j], 0.5 * restricted[j] / diagonal[j], 1e-15 * std::abs(restricted[j] / diagonal[j]));
        if (is_fixed(lowered, j)) {
          ASSERT_EQ(restricted[j], 0);
          continue;
        }
        unit[j] = 1;
        Array<double> const of_unit(*this->context, std::span<double const>(unit));
        unit[j] = 0;
        x.set_zero();
        fine.to_coarse->prolong(of_unit.data(), x.data(), stop.data());
        x.download(found);
        ASSERT_NEAR(restricted[j], std::inner_product(found.begin(), found.end(), expected.begin(), 0.0), 1e-12);
      }
    }
}

TYPED_TEST(OrderMultigrid, IterationsByOrder) {
  std::array<std::int64_t, 5> const most{0, 0, 16, 20, 22};
  for (std::int32_t const order : {2, 3, 4}) {
    OfOrder const of(two_materials(order, {order == 2 ? 2 : 1, 1, 2}, order == 2 ? 6 : 4));
    for (Format const format : {Format::csr, Format::crs_t, Format::sell_c_sigma, Format::cod_sell, Format::matrix_free})
      EXPECT_LE(this->solve_case(of, format).iterations, most[static_cast<std::size_t>(order)])
          << "order " << order << ", " << name_of(format);
  }
}

TYPED_TEST(OrderMultigrid, ConditionsAndMeshes) {
  LatticeMesh mesh = two_materials(2, {3, 3, 2}, 1);
  mesh.all_on_rim = true;
  EXPECT_LE(this->solve_case(OfOrder(mesh), Format::matrix_free).iterations, 16);
  mesh = two_materials(3, {3, 2, 3}, 1);
  mesh.all_on_rim = mesh.tensor_grid = true;
  for (bool const dirichlet : {true, false}) {
    mesh.dirichlet = dirichlet;
    EXPECT_LE(this->solve_case(OfOrder(mesh), Format::matrix_free).iterations, 20);
  }
  mesh = two_materials(2, {1, 1, 1}, 4);
  mesh.isoparametric = true;
  EXPECT_LE(this->solve_case(OfOrder(mesh), Format::cod_sell).iterations, 16);
  mesh.dirichlet = false;  // Robin alone
  EXPECT_LE(this->solve_case(OfOrder(mesh), Format::matrix_free).iterations, 16);
  mesh.robin = false;
  SolverOptions options;
  options.constant_null_space = true;
  EXPECT_LE(this->solve_case(OfOrder(mesh), Format::matrix_free, options).iterations, 16);
  // Order 1 in a format from which multigrid makes no levels.
  EXPECT_LE(this->solve_case(OfOrder(two_materials(1, {2, 1, 1}, 8)), Format::cod_sell).iterations, 14);
  EXPECT_LE(this->solve_case(OfOrder(two_materials(1, {2, 1, 1}, 8)), Format::matrix_free).iterations, 14);
}

TYPED_TEST(OrderMultigrid, EveryPrecision) {
  OfOrder const of(two_materials(2, {2, 1, 1}, 4));
  for (Format const format : {Format::cod_sell, Format::matrix_free})
    for (auto const& [precision, name] : Names<Precision>::values)
      for (auto const& [in_cycle, cycle_name] : Names<MultigridPrecision>::values) {
        SolverOptions options;
        options.precision = precision;
        options.multigrid.precision = in_cycle;
        if (format != Format::matrix_free &&
            (precision == Precision::refined || precision == Precision::mixed || precision == Precision::double_double))
          options.tolerance = 1e-24;
        EXPECT_LE(this->solve_case(of, format, options).iterations, 36) << name_of(format) << " " << name << " " << cycle_name;
      }
}

TYPED_TEST(OrderMultigrid, LevelsAndSameBits) {
  OfOrder const of(two_materials(3, {2, 1, 1}, 4));
  SolverOptions options;
  options.multigrid.coarse_size = 1;
  SolverResult const result = this->solve_case(of, Format::matrix_free, options);
  ASSERT_GE(result.multigrid_levels.size(), 3U);
  EXPECT_EQ(result.multigrid_levels[0].rows, of.csr->n_rows);
  EXPECT_EQ(result.multigrid_levels[1].rows, 9 * 5 * 5);
  HostVector<double> const first = this->solution_;
  this->solve_case(of, Format::matrix_free, options);
  EXPECT_EQ(std::memcmp(first.data(), this->solution_.data(), first.size() * sizeof(double)), 0);
  options.multigrid.levels = 2;
  EXPECT_EQ(this->solve_case(of, Format::matrix_free, options).multigrid_levels.size(), 2U);
}

// Where there is none, the levels are made from the entries.
TYPED_TEST(OrderMultigrid, GoesOnWithoutOrderOne) {
  OfOrder const of(two_materials(2, {2, 1, 1}, 4));
  auto const matrix = this->matrix_of(of, Format::cod_sell);
  HostVector<double> const b(of.reference.rhs.begin(), of.reference.rhs.end());
  HostVector<double> x(b.size());
  SolverOptions options;
  options.preconditioner = PreconditionerKind::multigrid;
  options.csr = [&] { return of.csr; };
  options.order_one = [] { return OrderOne{}; };
  EXPECT_EQ(solve(*matrix, b, x, options).status, SolverStatus::converged);
}

TYPED_TEST(OrderMultigrid, MatricesInSingle) {
  OfOrder const of(two_materials(2, {1, 1, 1}, 4));
  std::int64_t const n = of.csr->n_rows;
  std::vector<float> host(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < host.size(); ++i)
    host[i] = static_cast<float>(std::sin(static_cast<double>(i)));
  Array<float> const x(*this->context, std::span<float const>(host));
  for (Format const format : {Format::csr, Format::crs_t, Format::sell_c_sigma, Format::cod_sell}) {
    SCOPED_TRACE(name_of(format));
    FormatOptions options;
    options.precision = MatrixPrecision::single;
    auto const converted = make_matrix(format, of.csr, *this->context, options);
    auto const rounded = this->matrix_of(of, format)->in_single();
    ASSERT_NE(rounded, nullptr);
    EXPECT_EQ(rounded->precision(), MatrixPrecision::single);
    EXPECT_EQ(rounded->bytes(), converted->bytes());
    EXPECT_EQ(rounded->in_single(), nullptr);
    Array<float> expected(*this->context, n), found(*this->context, n);
    static_cast<LinearOperator<float> const&>(*converted).product(1, x.data(), 0, expected.data());
    static_cast<LinearOperator<float> const&>(*rounded).product(1, x.data(), 0, found.data());
    std::vector<float> a(host.size()), b(host.size());
    expected.download(a);
    found.download(b);
    EXPECT_EQ(a, b);
  }
}

}  // namespace poisson::testing
