#include "gpu/core/error.hpp"
#include "gpu/formats/lattice_half_cds.hpp"
#include "gpu/preconditioners/multigrid.hpp"
#include "gpu/preconditioners/multigrid_hierarchy.hpp"
#include "gpu/solvers/solver.hpp"
#include "tests/gpu/cases.hpp"
#include "tests/gpu/lattice_cases.hpp"
#include "tests/gpu/lattices.hpp"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

namespace poisson::testing {

template <class B>
class LatticeMultigrid : public OnBackend<B::value> {
protected:
  std::unique_ptr<Matrix> matrix_of(LatticeCase const& which) {
    auto const box = test::make_lattice_box(which.lattices, which.cells);
    HostVector<double> const values = laplacian(box, which);
    return LatticeHalfCds::from_diagonals(*this->context, LatticeArrays(*this->context, box.layout),
                                          Array<double>(*this->context, std::span<double const>(values)));
  }

  /// Solves with b = 1 on free unknowns, and tests the residual.
  SolverResult solve_case(LatticeCase const& which, SolverOptions options = {}) {
    auto const box = test::make_lattice_box(which.lattices, which.cells);
    auto const matrix = matrix_of(which);
    HostVector<double> b(static_cast<std::size_t>(matrix->n_rows()), 1.0);
    for (std::int64_t node = 0; node < std::ssize(box.unknown_of); ++node) {
      std::array<std::int64_t, 3> const at{node % box.nodes[0], node / box.nodes[0] % box.nodes[1],
                                           node / (box.nodes[0] * box.nodes[1])};
      if (which.fixed(at, {box.nodes[0] - 1, box.nodes[1] - 1, box.nodes[2] - 1}))
        b[static_cast<std::size_t>(box.unknown_of[static_cast<std::size_t>(node)])] = 0;
    }
    if (options.constant_null_space) {
      for (std::size_t i = 0; i < b.size(); ++i)
        b[i] = std::sin(static_cast<double>(i));
      double const mean = std::accumulate(b.begin(), b.end(), 0.0) / static_cast<double>(b.size());
      for (double& entry : b)
        entry -= mean;
    }
    HostVector<double> x(b.size());
    options.preconditioner = PreconditionerKind::multigrid;
    SolverResult result = solve(*matrix, b, x, options);
    EXPECT_EQ(result.status, SolverStatus::converged) << which.text() << ": " << result.reason;
    EXPECT_LE(true_residual(StoredResidualCheck(*matrix), x, b, result.x_low), 2 * options.tolerance) << which.text();
    solution_ = std::move(x);
    return result;
  }
  HostVector<double> solution_;
};

TYPED_TEST_SUITE(LatticeMultigrid, Backends, BackendNames);

TEST(CoarseLayout, IsThatOfABoxWithHalfTheCells) {
  for (std::array<std::int64_t, 3> const lattices : {std::array<std::int64_t, 3>{1, 1, 1}, {2, 1, 1}, {2, 3, 2}}) {
    auto const fine = test::make_lattice_box(lattices, 8), expected = test::make_lattice_box(lattices, 4);
    LatticeLayout const coarse = coarse_layout(fine.layout.view());
    EXPECT_EQ(coarse.n_unknowns, expected.layout.n_unknowns);
    EXPECT_EQ(coarse.cells, 4);
    EXPECT_TRUE(std::ranges::equal(coarse.tables->rim_unknowns, expected.layout.tables->rim_unknowns));
    EXPECT_TRUE(std::ranges::equal(coarse.tables->copies, expected.layout.tables->copies));
    EXPECT_TRUE(std::ranges::equal(coarse.tables->copy_offsets, expected.layout.tables->copy_offsets));
  }
}

// The matrix of a level is P^T A P, with P and P^T as the cycle applies them; P interpolates linear functions exactly.
TYPED_TEST(LatticeMultigrid, GalerkinIdentity) {
  std::vector<LatticeCase> const cases{{{1, 1, 1}, 8},
                                       {{2, 1, 1}, 4, on_first_face},
                                       {{2, 2, 2}, 4, nowhere},
                                       {{1, 2, 2}, 4, all_around, [](std::int64_t l) { return l == 1 ? 1000.0 : 1.0; }}};
  for (LatticeCase const& which : cases) {
    SCOPED_TRACE(which.text());
    auto const matrix = this->matrix_of(which);
    PreconditionerOptions options;
    options.kind = PreconditionerKind::multigrid;
    options.multigrid.coarse_size = 8;
    auto const hierarchy = lattice_hierarchy<double>(static_cast<LatticeHalfCds const&>(*matrix), options);
    ASSERT_EQ(hierarchy.failure, "");
    ASSERT_GE(hierarchy.levels.size(), 2U);
    Array<std::int32_t> stop(*this->context, 1);
    stop.set_zero();
    auto const &fine = hierarchy.levels[0], &coarse = hierarchy.levels[1];
    auto const n = static_cast<std::size_t>(coarse.n());
    std::vector<double> unit(n, 0.0), begun(n), diagonal(n), by_transfer(n), by_matrix(n);
    Array<double> x(*this->context, fine.n()), y(*this->context, fine.n()), r(*this->context, coarse.n()),
        begin(*this->context, coarse.n()), direct(*this->context, coarse.n());
    coarse.diagonal.download(diagonal);
    for (std::size_t j = 0; j < n; ++j) {
      unit[j] = 1;
      Array<double> const e(*this->context, std::span<double const>(unit));
      x.set_zero();
      fine.to_coarse->prolong(e.data(), x.data(), stop.data());
      static_cast<LinearOperator<double> const&>(*fine.matrix).product(1, x.data(), 0, y.data());
      fine.to_coarse->restrict_residual(y.data(), coarse.diagonal.data(), 0.5, r.data(), begin.data(), stop.data());
      static_cast<LinearOperator<double> const&>(*coarse.matrix).product(1, e.data(), 0, direct.data());
      r.download(by_transfer);
      begin.download(begun);
      direct.download(by_matrix);
      unit[j] = 0;
      if (std::count(by_matrix.begin(), by_matrix.end(), 0.0) + 1 == std::ssize(by_matrix)) {  // a Dirichlet value
        ASSERT_GT(by_matrix[j], 0);
        ASSERT_EQ(by_transfer[j], 0);
        continue;
      }
      for (std::size_t i = 0; i < n; ++i) {
        ASSERT_NEAR(begun[i], 0.5 * by_transfer[i] / diagonal[i], 1e-15 * std::abs(by_transfer[i] / diagonal[i]));
        ASSERT_NEAR(by_transfer[i], by_matrix[i], 1e-12 * diagonal[j]) << i << ", " << j;
      }
    }
  }
}

TYPED_TEST(LatticeMultigrid, LinearFunctionsAreInterpolatedExactly) {
  LatticeCase const which{{2, 1, 2}, 8, nowhere};
  auto const fine_box = test::make_lattice_box(which.lattices, 8), coarse_box = test::make_lattice_box(which.lattices, 4);
  auto const matrix = this->matrix_of(which);
  PreconditionerOptions options;
  options.multigrid.coarse_size = 8;
  auto const hierarchy = lattice_hierarchy<double>(static_cast<LatticeHalfCds const&>(*matrix), options);
  auto const values_of = [](test::LatticeBox const& box, double step) {
    std::vector<double> values(static_cast<std::size_t>(box.layout.n_unknowns));
    for (std::size_t node = 0; node < box.unknown_of.size(); ++node) {
      auto const at = static_cast<std::int64_t>(node);
      values[static_cast<std::size_t>(box.unknown_of[node])] =
          1 + step * (2 * static_cast<double>(at % box.nodes[0]) - 3 * static_cast<double>(at / box.nodes[0] % box.nodes[1]) +
                      0.5 * static_cast<double>(at / (box.nodes[0] * box.nodes[1])));
    }
    return values;
  };
  std::vector<double> const coarse = values_of(coarse_box, 2), expected = values_of(fine_box, 1);
  Array<double> const e(*this->context, std::span<double const>(coarse));
  Array<double> x(*this->context, std::ssize(expected));
  Array<std::int32_t> stop(*this->context, 1);
  x.set_zero();
  stop.set_zero();
  hierarchy.levels[0].to_coarse->prolong(e.data(), x.data(), stop.data());
  std::vector<double> found(expected.size());
  x.download(found);
  for (std::size_t i = 0; i < found.size(); ++i)
    ASSERT_NEAR(found[i], expected[i], 1e-12);
}

TYPED_TEST(LatticeMultigrid, IterationsDoNotDependOnTheSize) {
  std::vector<std::int64_t> iterations;
  for (std::int32_t const cells : {4, 8, 16, 32})
    iterations.push_back(this->solve_case({{2, 1, 2}, cells}).iterations);
  for (std::int64_t const found : iterations)
    EXPECT_LE(found, 11);
  EXPECT_LE(iterations.back(), iterations[1] + 2);
}

TYPED_TEST(LatticeMultigrid, ConditionsAndMaterials) {
  EXPECT_LE(this->solve_case({{3, 2, 1}, 8, on_first_face}).iterations, 12);
  EXPECT_LE(this->solve_case({{2, 2, 2}, 8, all_around, [](std::int64_t l) { return l % 2 == 0 ? 1e6 : 1.0; }}).iterations, 16);
  EXPECT_LE(
      this->solve_case({{2, 2, 2}, 8, on_first_face, [](std::int64_t l) { return std::pow(10.0, double(l) - 3); }}).iterations, 20);
  SolverOptions options;
  options.constant_null_space = true;
  EXPECT_LE(this->solve_case({{2, 2, 1}, 8, nowhere}, options).iterations, 12);
}

TYPED_TEST(LatticeMultigrid, EveryPrecisionAndCycle) {
  LatticeCase const which{{2, 1, 1}, 16};
  for (auto const& [precision, name] : Names<Precision>::values)
    for (auto const& [in_cycle, cycle_name] : Names<MultigridPrecision>::values) {
      SolverOptions options;
      options.precision = precision;
      options.multigrid.precision = in_cycle;
      if (precision == Precision::refined || precision == Precision::mixed || precision == Precision::double_double)
        options.tolerance = 1e-24;
      EXPECT_LE(this->solve_case(which, options).iterations, 30) << name << " " << cycle_name;
    }
  SolverOptions options;
  options.multigrid.cycle = MultigridCycle::w;
  EXPECT_LE(this->solve_case(which, options).iterations, 11);
}

// Few unknowns, two levels, one lattice of many cells; lattices without levels go by aggregation.
TYPED_TEST(LatticeMultigrid, SmallAndOdd) {
  SolverOptions options;
  options.multigrid.coarse_size = 1;
  for (LatticeCase const& which : {LatticeCase{{1, 1, 1}, 4}, LatticeCase{{1, 1, 1}, 6}, LatticeCase{{5, 1, 1}, 4, on_first_face},
                                   LatticeCase{{1, 1, 1}, 64}, LatticeCase{{3, 1, 1}, 12}})
    EXPECT_LE(this->solve_case(which, options).iterations, 14) << which.text();
  auto const matrix = this->matrix_of({{2, 1, 1}, 5});
  EXPECT_FALSE(has_levels(static_cast<LatticeHalfCds const&>(*matrix)));
}

TYPED_TEST(LatticeMultigrid, SameBitsEveryRun) {
  LatticeCase const which{{2, 2, 1}, 16};
  this->solve_case(which);
  HostVector<double> const first = this->solution_;
  this->solve_case(which);
  EXPECT_EQ(std::memcmp(first.data(), this->solution_.data(), first.size() * sizeof(double)), 0);
}

}  // namespace poisson::testing
