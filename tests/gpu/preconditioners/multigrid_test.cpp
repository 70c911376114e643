#include "gpu/preconditioners/multigrid.hpp"

#include "gpu/core/error.hpp"
#include "gpu/elements/box_operator.hpp"
#include "gpu/elements/box_system.hpp"
#include "gpu/elements/label_operator.hpp"
#include "gpu/formats/half_cds.hpp"
#include "gpu/preconditioners/multigrid_hierarchy.hpp"
#include "gpu/solvers/solver.hpp"
#include "tests/gpu/arrays.hpp"
#include "tests/gpu/cases.hpp"
#include "tests/gpu/elements/functions.hpp"
#include "tests/gpu/matrices.hpp"

#include <array>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

namespace poisson::testing {

namespace {

using Type = BoxProblem::Face::Type;
using Dense = std::vector<std::vector<double>>;

/// A box with u = 0 all around, f = 1.
struct Box {
  std::array<std::int64_t, 3> cells;
  std::vector<Data> k{constant(1)};
  Point extent{1, 1, 1};
  std::array<Type, 6> types{Type::dirichlet, Type::dirichlet, Type::dirichlet, Type::dirichlet, Type::dirichlet, Type::dirichlet};

  [[nodiscard]] BoxProblem problem() const {
    BoxProblem result{cells, {0, 0, 0}, extent, {}, constant(1).code, {}};
    for (Data const& component : k)
      result.coefficient.push_back(component.code);
    for (std::size_t i = 0; i < 6; ++i)
      result.faces[i] = {types[i], static_cast<int>(i), constant(types[i] == Type::robin ? 0.5 : 0).code, constant(2).code};
    return result;
  }
  [[nodiscard]] std::array<std::int64_t, 3> nodes() const { return {cells[0] + 1, cells[1] + 1, cells[2] + 1}; }
};

Data one() {
  return constant(1);
}

/// k = 1, 1, 1000
std::vector<Data> stiff() {
  return {constant(1), constant(1), constant(1000)};
}

/// `high` where sin(a x) sin(b y) + sin(c y) sin(d z) + sin(e z) sin(f x) is positive, else 1: two phases without an order.
std::vector<Data> phases(double high) {
  using I = Instruction;
  std::array<std::pair<Op, double>, 6> const factors{
      {{Op::x, 31}, {Op::y, 37}, {Op::y, 26}, {Op::z, 43}, {Op::z, 29}, {Op::x, 47}}};
  ExpressionCode code;
  for (std::size_t i = 0; i < factors.size(); ++i) {
    for (I const& instruction : {I(factors[i].first), I(Op::constant, factors[i].second), I(Op::multiply), I(Op::sin)})
      code.push_back(instruction);
    if (i % 2 == 1)
      code.push_back(I(Op::multiply));
    if (i == 3 || i == 5)
      code.push_back(I(Op::add));
  }
  return {{one_or(high, code), {}}};
}

constexpr std::array<Type, 6> all_neumann{Type::neumann, Type::neumann, Type::neumann, Type::neumann, Type::neumann, Type::neumann};
constexpr std::array<Type, 6> one_face{Type::dirichlet, Type::neumann, Type::neumann, Type::neumann, Type::neumann, Type::neumann};
constexpr std::array<Type, 6> with_robin{Type::robin, Type::dirichlet, Type::neumann, Type::robin, Type::neumann, Type::neumann};

/// Whether a matrix has a Cholesky factorisation.
bool positive_definite(Dense a) {
  std::size_t const n = a.size();
  for (std::size_t j = 0; j < n; ++j) {
    for (std::size_t k = 0; k < j; ++k)
      a[j][j] -= a[j][k] * a[j][k];
    if (!(a[j][j] > 0))
      return false;
    a[j][j] = std::sqrt(a[j][j]);
    for (std::size_t i = j + 1; i < n; ++i) {
      for (std::size_t k = 0; k < j; ++k)
        a[i][j] -= a[i][k] * a[j][k];
      a[i][j] /= a[j][j];
    }
  }
  return true;
}

Dense product(Dense const& a, Dense const& b) {
  Dense c(a.size(), std::vector<double>(b[0].size(), 0.0));
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t k = 0; k < b.size(); ++k)
      for (std::size_t j = 0; j < b[0].size(); ++j)
        c[i][j] += a[i][k] * b[k][j];
  return c;
}

Dense dense(CsrMatrix const& a) {
  Dense result(static_cast<std::size_t>(a.n_rows), std::vector<double>(static_cast<std::size_t>(a.n_columns), 0.0));
  for (std::int64_t i = 0; i < a.n_rows; ++i)
    for (std::int64_t k = a.row_ptr[i]; k < a.row_ptr[i + 1]; ++k)
      result[static_cast<std::size_t>(i)][static_cast<std::size_t>(a.columns[k])] = a.values[k];
  return result;
}

double largest_of(Dense const& a) {
  double largest = 0;
  for (auto const& row : a)
    for (double const v : row)
      largest = std::max(largest, std::abs(v));
  return largest;
}

/// How a hierarchy is made.
enum class LevelsBy { box, algebraic };

}  // namespace

template <class B>
class Multigrid : public OnBackend<B::value> {
protected:
  PreconditionerOptions options_of(Box const& box, Matrix const& a, LevelsBy kind) {
    PreconditionerOptions options;
    options.kind = PreconditionerKind::multigrid;
    if (kind == LevelsBy::box)
      options.box_nodes = box.nodes();
    else
      options.csr = [csr = std::make_shared<CsrMatrix const>(a.to_csr())] { return csr; };
    return options;
  }

  template <class V>
  MultigridHierarchy<V> hierarchy_of(Matrix const& a, PreconditionerOptions const& options) {
    return options.csr ? algebraic_hierarchy<V>(&a, options.csr, *this->context, options) : box_hierarchy<V>(a, options);
  }

  /// M^-1 as a dense matrix, by its columns.
  Dense inverse(Matrix const& a, PreconditionerOptions const& options) {
    auto const setup = make_multigrid(a, options);
    EXPECT_EQ(setup->failure(), "");
    auto const m = setup->applied_in(0.0);
    std::int64_t const n = a.n_rows();
    Array<std::int32_t> stop(*this->context, 1);
    stop.set_zero();
    Dense result(static_cast<std::size_t>(n), std::vector<double>(static_cast<std::size_t>(n)));
    Array<double> z(*this->context, n);
    std::vector<double> column(static_cast<std::size_t>(n));
    for (std::int64_t j = 0; j < n; ++j) {
      std::vector<double> unit(static_cast<std::size_t>(n), 0.0);
      unit[static_cast<std::size_t>(j)] = 1;
      Array<double> const r(*this->context, std::span<double const>(unit));
      m->apply(r.data(), z.data(), stop.data());
      z.download(column);
      for (std::int64_t i = 0; i < n; ++i)
        result[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)] = column[static_cast<std::size_t>(i)];
    }
    return result;
  }

  /// Solves to the tolerance and tests the residual.
  SolverResult solve_box(Box const& box, SolverOptions options, LevelsBy kind = LevelsBy::box, Format format = Format::half_cds) {
    BoxSystem system(*this->context, box.problem(), format);
    HostVector<double> const b = system.take_rhs().take_host();
    HostVector<double> x(b.size());
    options.preconditioner = PreconditionerKind::multigrid;
    options.constant_null_space = system.pure_neumann();
    if (kind == LevelsBy::box)
      options.box_nodes = box.nodes();
    else
      options.csr = [csr = std::make_shared<CsrMatrix const>(system.matrix().to_csr())] { return csr; };
    SolverResult result = solve(system.matrix(), b, x, options);
    EXPECT_EQ(result.status, SolverStatus::converged) << result.reason;
    double const residual = true_residual(StoredResidualCheck(system.matrix()), x, b, result.x_low);
    solution_ = std::move(x);
    EXPECT_LE(residual, 2 * options.tolerance);
    return result;
  }
  HostVector<double> solution_;
};

TYPED_TEST_SUITE(Multigrid, Backends, BackendNames);

namespace {

std::vector<Box> small_boxes() {
  return {{{6, 6, 6}},
          {{5, 7, 4}, {octants(1e3)}},
          {{4, 4, 4}, {ball(100)}},
          {{8, 5, 3}, stiff()},
          {{9, 2, 4}, {one()}, {1, 1, 0.01}},
          {{2, 5, 9}, {one()}, {1, 1, 1}, one_face},
          {{6, 5, 4}, {one()}, {1, 2, 1}, one_face},
          {{4, 5, 6}, {one()}, {1, 1, 1}, with_robin}};
}

std::string text_of(Box const& box) {
  return std::to_string(box.cells[0]) + "x" + std::to_string(box.cells[1]) + "x" + std::to_string(box.cells[2]);
}

}  // namespace

// Two-level theory: M^-1 is symmetric and positive definite, and the eigenvalues of M^-1 A lie in (0, 1], so A - A M^-1 A is
// positive semidefinite.
TYPED_TEST(Multigrid, CycleIsSymmetricWithSpectrumInTheUnitInterval) {
  for (Box const& box : small_boxes())
    for (LevelsBy const kind : {LevelsBy::box, LevelsBy::algebraic})
      for (MultigridCycle const cycle : {MultigridCycle::v, MultigridCycle::w})
        for (MultigridSmoother const smoother : {MultigridSmoother::chebyshev, MultigridSmoother::jacobi}) {
          if (kind == LevelsBy::algebraic && cycle == MultigridCycle::w)
            continue;
          SCOPED_TRACE(text_of(box) + (kind == LevelsBy::box ? " box " : " algebraic ") + std::string(name_of(cycle)) + " " +
                       std::string(name_of(smoother)));
          BoxSystem system(*this->context, box.problem());
          PreconditionerOptions options = this->options_of(box, system.matrix(), kind);
          options.multigrid.precision = MultigridPrecision::double_;
          options.multigrid.coarse_size = 8;
          options.multigrid.cycle = cycle;
          options.multigrid.smoother = smoother;
          Dense const inverse = this->inverse(system.matrix(), options);
          Dense const a = dense(system.matrix().to_csr());
          double const scale = largest_of(inverse);
          for (std::size_t i = 0; i < inverse.size(); ++i)
            for (std::size_t j = 0; j < i; ++j)
              ASSERT_NEAR(inverse[i][j], inverse[j][i], 1e-12 * scale) << i << ", " << j;
          EXPECT_TRUE(positive_definite(inverse));
          Dense defect = product(product(a, inverse), a);
          double const size = largest_of(a);
          for (std::size_t i = 0; i < a.size(); ++i) {
            for (std::size_t j = 0; j < a.size(); ++j)
              defect[i][j] = a[i][j] - defect[i][j];
            defect[i][i] += 1e-11 * size;
          }
          EXPECT_TRUE(positive_definite(defect));
        }
}

// The matrix of a level is P^T A P, with P and P^T as the cycle applies them.
TYPED_TEST(Multigrid, GalerkinIdentity) {
  struct Way {
    LevelsBy kind;
    Format format;
    std::string text;
  };
  int matrix_free = 0;
  for (Box const& box : small_boxes())
    for (auto const& [kind, format, text] :
         {Way{LevelsBy::box, Format::half_cds, "box"}, Way{LevelsBy::algebraic, Format::half_cds, "algebraic"},
          Way{LevelsBy::box, Format::matrix_free, "matrix-free box"}}) {
      SCOPED_TRACE(text_of(box) + " " + text);
      if (!BoxSystem::can_assemble(box.problem(), format))
        continue;
      BoxSystem system(*this->context, box.problem(), format);
      PreconditionerOptions options = this->options_of(box, system.matrix(), kind);
      options.multigrid.coarse_size = 8;
      matrix_free += format == Format::matrix_free ? 1 : 0;
      auto const hierarchy = this->template hierarchy_of<double>(system.matrix(), options);
      ASSERT_EQ(hierarchy.failure, "");
      ASSERT_GE(hierarchy.levels.size(), 2U);
      Array<std::int32_t> stop(*this->context, 1);
      stop.set_zero();
      for (std::size_t l = 0; l + 1 < hierarchy.levels.size(); ++l) {
        auto const &fine = hierarchy.levels[l], &coarse = hierarchy.levels[l + 1];
        std::vector<double> unit(static_cast<std::size_t>(coarse.n()), 0.0), begun(unit.size()), diagonal(unit.size());
        Array<double> x(*this->context, fine.n()), y(*this->context, fine.n()), r(*this->context, coarse.n()),
            begin(*this->context, coarse.n()), direct(*this->context, coarse.n());
        coarse.diagonal.download(diagonal);
        std::vector<double> by_transfer(unit.size()), by_matrix(unit.size());
        for (std::size_t j = 0; j < unit.size(); ++j) {
          unit[j] = 1;
          Array<double> const e(*this->context, std::span<double const>(unit));
          x.set_zero();
          fine.to_coarse->prolong(e.data(), x.data(), stop.data());
          static_cast<LinearOperator<double> const&>(*fine.matrix).product(1, x.data(), 0, y.data());
          fine.to_coarse->restrict_residual(y.data(), coarse.diagonal.data(), 0.5, r.data(), begin.data(), stop.data());
          static_cast<LinearOperator<double> const&>(*coarse.matrix).product(1, e.data(), 0, direct.data());
          r.download(by_transfer);
          begin.download(begun);
          for (std::size_t i = 0; i < unit.size(); ++i)
            ASSERT_NEAR(begun[i], 0.5 * by_transfer[i] / diagonal[i], 1e-15 * std::abs(by_transfer[i] / diagonal[i]));
          direct.download(by_matrix);
          std::int64_t coupled = 0;
          for (double const entry : by_matrix)
            coupled += entry != 0 ? 1 : 0;
          if (format == Format::matrix_free && coupled == 1) {  // a Dirichlet node, where vectors are 0
            unit[j] = 0;
            continue;
          }
          // Coarse unknowns that are not free have a row of their own.
          if (std::abs(by_matrix[j] - 1) < 1e-15 && by_transfer[j] == 0)
            by_transfer[j] = 1;
          for (std::size_t i = 0; i < unit.size(); ++i)
            ASSERT_NEAR(by_transfer[i], by_matrix[i], 1e-11 * (1 + std::abs(by_matrix[j])))
                << "level " << l << ": " << i << ", " << j;
          unit[j] = 0;
        }
      }
    }
  EXPECT_GE(matrix_free, 3);
}

// Coarser boxes of a matrix-free operator, with one direction halved and with all, have the matrix P^T A P with linear P.
TYPED_TEST(Multigrid, CoarserStencilsAreGalerkinMatrices) {
  std::vector<std::array<bool, 3>> const ways{{true, true, true}, {true, false, false}, {false, false, true}};
  for (auto const& types : {all_neumann, one_face})
    for (std::array<bool, 3> const& halved : ways) {
      Box const box{{8, 4, 12}, stiff(), {1, 2, 3}, types};
      BoxSystem system(*this->context, box.problem(), Format::matrix_free);
      auto const coarse = dynamic_cast<BoxOperator const&>(system.matrix()).coarser(halved);
      ASSERT_NE(coarse, nullptr);
      Dense const a = dense(system.matrix().to_csr()), a_coarse = dense(coarse->to_csr());
      std::array<std::size_t, 3> const fine_nodes{9, 5, 13};
      auto const weight = [&](std::size_t c, std::size_t f) {  // of fine node f in the value at coarse node c
        double result = 1;
        for (std::size_t d = 0; d < 3; ++d) {
          std::size_t const n_coarse = halved[d] ? fine_nodes[d] / 2 + 1 : fine_nodes[d];
          auto const distance = static_cast<double>(f % fine_nodes[d]) - static_cast<double>((halved[d] ? 2 : 1) * (c % n_coarse));
          result *= std::max(0.0, 1 - std::abs(distance) / (halved[d] ? 2 : 1));
          c /= n_coarse;
          f /= fine_nodes[d];
        }
        return result;
      };
      // x = 0 is a Dirichlet face, or none is.
      std::size_t const n_coarse_x = halved[0] ? 5 : 9;
      auto const held = [&](std::size_t c) { return types == one_face && c % n_coarse_x == 0; };
      for (std::size_t i = 0; i < a_coarse.size(); ++i)
        for (std::size_t j = 0; j < a_coarse.size(); ++j) {
          if (held(i) || held(j)) {
            ASSERT_EQ(a_coarse[i][j] != 0, i == j);
            continue;
          }
          double sum = 0;
          for (std::size_t f = 0; f < a.size(); ++f)
            if (double const own = weight(i, f); own != 0)
              for (std::size_t g = 0; g < a.size(); ++g)
                if (a[f][g] != 0)
                  sum += own * a[f][g] * weight(j, g);
          ASSERT_NEAR(a_coarse[i][j], sum, 1e-10) << i << ", " << j;
        }
    }
}

// Where coefficients jump inside cells, rows look as if there were eigenvalues far larger than there are. What the smoother damps
// is a bound all the same, and not much above the largest.
TYPED_TEST(Multigrid, SmoothersCoverTheSpectrumBesideJumps) {
  std::vector<Box> const boxes{
      {{9, 10, 8}, {ball(1e6)}}, {{8, 8, 8}, {ball(1e3)}}, {{9, 9, 9}, {octants(1e6)}, {1, 1, 1}, one_face}};
  for (Box const& box : boxes) {
    SCOPED_TRACE(text_of(box));
    BoxSystem system(*this->context, box.problem());
    PreconditionerOptions options = this->options_of(box, system.matrix(), LevelsBy::box);
    options.multigrid.coarse_size = 60;
    auto const hierarchy = this->template hierarchy_of<double>(system.matrix(), options);
    ASSERT_GE(hierarchy.levels.size(), 2U);
    for (std::size_t l = 0; l + 1 < hierarchy.levels.size(); ++l) {
      Dense const a = dense(hierarchy.levels[l].matrix->to_csr());
      std::size_t const n = a.size();
      std::vector<double> x(n), y(n);
      for (std::size_t i = 0; i < n; ++i)
        x[i] = std::sin(static_cast<double>(17 * i + 1));
      double largest = 0;
      for (int step = 0; step < 3000; ++step) {  // of D^-1/2 A D^-1/2
        double norm = 0;
        for (std::size_t i = 0; i < n; ++i) {
          double sum = 0;
          for (std::size_t j = 0; j < n; ++j)
            if (a[i][j] != 0)
              sum += a[i][j] / std::sqrt(a[i][i] * a[j][j]) * x[j];
          y[i] = sum;
          norm += sum * sum;
        }
        largest = std::sqrt(norm);
        for (std::size_t i = 0; i < n; ++i)
          x[i] = y[i] / largest;
      }
      EXPECT_GE(hierarchy.levels[l].largest, largest) << l;
      EXPECT_LE(hierarchy.levels[l].largest, 1.6 * largest) << l;
    }
  }
}

TYPED_TEST(Multigrid, CoarserStencilsEndWhereCellsAreOdd) {
  Box const odd{{8, 6, 3}}, cooled{{8, 8, 8}, {one()}, {1, 1, 1}, with_robin};
  BoxSystem system(*this->context, odd.problem(), Format::matrix_free);
  auto const& fine = dynamic_cast<BoxOperator const&>(system.matrix());
  EXPECT_EQ(fine.coarser({true, true, true}), nullptr);
  auto const coarse = fine.coarser({true, true, false});
  ASSERT_NE(coarse, nullptr);
  EXPECT_EQ(coarse->n_rows(), 5 * 4 * 4);
  EXPECT_EQ(coarse->coarser({false, true, false}), nullptr);
  BoxSystem const robin(*this->context, cooled.problem(), Format::matrix_free);
  EXPECT_EQ(dynamic_cast<BoxOperator const&>(robin.matrix()).coarser({true, true, true}), nullptr);
}

// From labels the second level is made slab by slab: to the last bit that of all diagonals at once. Of the boxes one is halved in
// all directions, one not in z, and of one z alone is.
TYPED_TEST(Multigrid, SlabsOfLabelsMakeTheLevelOfTheWhole) {
  for (std::array<double, 3> const& cell : {std::array<double, 3>{1, 1, 1}, {1, 1, 5}, {5, 5, 1}})
    for (std::int64_t const planes : {71, 40, 12}) {
      BoxElements box;
      box.nodes = {13, 16, planes};
      box.cell = cell;
      box.faces.fill({BoxFace::Type::neumann});
      box.faces[1].type = box.faces[4].type = BoxFace::Type::dirichlet;
      std::vector<std::uint8_t> labels;
      for (std::int64_t i = 0; i < 12 * 15 * (planes - 1); ++i)
        labels.push_back(static_cast<std::uint8_t>(i * 40503 / 977 % 3));
      std::vector<std::array<double, 3>> const k{{1, 1, 1}, {1e6, 1e6, 1e6}, {3, 2, 5}};
      LabelOperator const a(*this->context, box, uploaded(*this->context, labels), k);
      Array<double> diagonals(*this->context, half_stencil::diagonals * a.n_rows());
      a.fill_diagonals(diagonals.data());
      std::vector<std::int32_t> offsets;
      for (int s = 0; s < half_stencil::diagonals; ++s)
        offsets.push_back(static_cast<std::int32_t>(half_stencil::offset(s, 13, 13 * 16)));
      auto const stored = HalfCds::from_diagonals(*this->context, a.n_rows(), offsets, std::move(diagonals), 1);
      PreconditionerOptions options;
      options.kind = PreconditionerKind::multigrid;
      options.box_nodes = box.nodes;
      options.multigrid.coarse_size = 8;
      auto const from_labels = box_hierarchy<double>(a, options), from_all = box_hierarchy<double>(*stored, options);
      ASSERT_EQ(from_labels.failure, "");
      ASSERT_EQ(from_labels.levels.size(), from_all.levels.size());
      EXPECT_EQ(from_labels.levels[0].matrix, &a);
      EXPECT_NEAR(from_labels.levels[0].largest, from_all.levels[0].largest, 0.1 * from_all.levels[0].largest);
      EXPECT_EQ(downloaded(from_labels.levels[0].diagonal), downloaded(from_all.levels[0].diagonal));
      for (std::size_t level = 1; level < from_all.levels.size(); ++level) {
        auto const entries_of = [&](MultigridLevel<double> const& of) {
          std::vector<double> entries(static_cast<std::size_t>(half_stencil::diagonals * of.n()));
          this->context->download(entries.data(), dynamic_cast<HalfCds const&>(*of.matrix).view().values, 8 * std::ssize(entries));
          return entries;
        };
        EXPECT_EQ(entries_of(from_labels.levels[level]), entries_of(from_all.levels[level])) << level;
      }
      Array<std::int32_t> stop(*this->context, 1);
      stop.set_zero();
      std::vector<double> coarse(static_cast<std::size_t>(from_all.levels[1].n()));
      for (std::size_t i = 0; i < coarse.size(); ++i)
        coarse[i] = std::sin(static_cast<double>(i));
      std::vector<std::vector<double>> prolonged;
      for (auto const* const hierarchy : {&from_labels, &from_all}) {
        Array<double> x(*this->context, a.n_rows());
        x.set_zero();
        hierarchy->levels[0].to_coarse->prolong(uploaded(*this->context, coarse).data(), x.data(), stop.data());
        prolonged.push_back(downloaded(x));
      }
      EXPECT_EQ(prolonged[0], prolonged[1]);
    }
}

// With constant k and natural conditions P of a box interpolates linear functions exactly.
TYPED_TEST(Multigrid, LinearFunctionsAreInterpolatedExactly) {
  for (std::array<std::int64_t, 3> const cells : {std::array<std::int64_t, 3>{8, 8, 8}, {6, 10, 4}, {12, 4, 8}}) {
    Box const box{cells, {one()}, {1, 1, 1}, all_neumann};
    BoxSystem system(*this->context, box.problem());
    PreconditionerOptions options = this->options_of(box, system.matrix(), LevelsBy::box);
    options.multigrid.coarse_size = 8;
    options.multigrid.levels = 2;
    auto const hierarchy = this->template hierarchy_of<double>(system.matrix(), options);
    ASSERT_EQ(hierarchy.levels.size(), 2U);
    auto const nodes = box.nodes();
    std::array<std::int64_t, 3> coarse{};
    std::int64_t n_coarse = 1;
    for (std::size_t d = 0; d < 3; ++d) {
      bool const halved = nodes[d] > 3 && hierarchy.levels[1].n() < system.matrix().n_rows();
      coarse[d] = halved ? nodes[d] / 2 + 1 : nodes[d];
      n_coarse *= coarse[d];
    }
    if (n_coarse != hierarchy.levels[1].n())
      continue;  // only some directions were halved
    auto const function = [](double x, double y, double z) { return 1 + 2 * x - 3 * y + 0.5 * z; };
    std::vector<double> e;
    for (std::int64_t k = 0; k < coarse[2]; ++k)
      for (std::int64_t j = 0; j < coarse[1]; ++j)
        for (std::int64_t i = 0; i < coarse[0]; ++i)
          e.push_back(function(static_cast<double>(2 * i), static_cast<double>(2 * j), static_cast<double>(2 * k)));
    Array<double> const coarse_x(*this->context, std::span<double const>(e));
    Array<double> x(*this->context, system.matrix().n_rows());
    x.set_zero();
    Array<std::int32_t> stop(*this->context, 1);
    stop.set_zero();
    hierarchy.levels[0].to_coarse->prolong(coarse_x.data(), x.data(), stop.data());
    std::vector<double> fine(static_cast<std::size_t>(x.size()));
    x.download(fine);
    std::size_t at = 0;
    for (std::int64_t k = 0; k < nodes[2]; ++k)
      for (std::int64_t j = 0; j < nodes[1]; ++j)
        for (std::int64_t i = 0; i < nodes[0]; ++i, ++at)
          ASSERT_NEAR(fine[at], function(static_cast<double>(i), static_cast<double>(j), static_cast<double>(k)), 1e-11);
  }
}

TYPED_TEST(Multigrid, IterationsDoNotDependOnTheSize) {
  std::vector<std::int64_t> iterations;
  for (std::int64_t const n : {8, 16, 32, 48}) {
    SolverOptions const options;
    iterations.push_back(this->solve_box({{n, n, n}}, options).iterations);
    EXPECT_LE(iterations.back(), 11) << n;
  }
  EXPECT_LE(iterations.back(), iterations[1] + 2);
  // This box is so large that the second level is matrix-free as well.
  EXPECT_LE(this->solve_box({{96, 100, 96}}, SolverOptions{}, LevelsBy::box, Format::matrix_free).iterations, 11);
}

TYPED_TEST(Multigrid, JumpsStretchingAndOddSizes) {
  struct Trial {
    Box box;
    std::int64_t most;
  };
  std::vector<Trial> const trials{{{{16, 16, 16}, {octants(1e6)}}, 16},
                                  {{{17, 23, 13}, {octants(1e6)}}, 22},
                                  {{{16, 16, 16}, {ball(1e3)}}, 18},
                                  {{{21, 18, 23}, {ball(1e4)}}, 18},
                                  {{{16, 16, 16}, stiff()}, 20},
                                  {{{24, 24, 24}, {one()}, {1, 1, 0.01}}, 20},
                                  {{{24, 20, 28}, {one()}, {100, 1, 1}}, 20},
                                  {{{31, 37, 29}}, 14},
                                  {{{2, 40, 40}}, 14},
                                  {{{2, 3, 64}}, 14},
                                  {{{16, 16, 16}, {one()}, {1, 1, 1}, all_neumann}, 14},
                                  {{{19, 16, 21}, {one()}, {1, 1, 1}, one_face}, 14},
                                  {{{16, 20, 16}, {one()}, {1, 1, 1}, with_robin}, 14}};
  for (Trial const& trial : trials) {
    SCOPED_TRACE(text_of(trial.box));
    SolverOptions options;
    options.tolerance = 1e-10;
    EXPECT_LE(this->solve_box(trial.box, options).iterations, trial.most);
  }
}

// Where k jumps coarse levels have parts that P hardly reaches. With two steps on every level it takes 19 iterations.
TYPED_TEST(Multigrid, CoarserLevelsTakeMoreStepsBesideJumps) {
  auto const steps = [&](Box const& box, int degree) {
    BoxSystem system(*this->context, box.problem());
    PreconditionerOptions options = this->options_of(box, system.matrix(), LevelsBy::box);
    options.multigrid.degree = degree;
    options.multigrid.coarse_size = 50;
    std::vector<int> result;
    for (auto const& level : this->template hierarchy_of<float>(system.matrix(), options).levels)
      result.push_back(degree + level.more_steps);
    return result;
  };
  Box const two_phases{{64, 64, 64}, phases(1e3)};
  // The last level is not smoothed, and in the one before hardly anything is left of the jumps.
  EXPECT_EQ(steps(two_phases, 2), (std::vector<int>{2, 4, 8, 16, 2, 2}));
  EXPECT_EQ(steps(two_phases, 1), (std::vector<int>{1, 2, 4, 8, 1, 1}));
  for (std::vector<Data> const& k : {std::vector<Data>{one()}, stiff()})
    for (int const of_level : steps({{32, 32, 32}, k}, 2))
      EXPECT_EQ(of_level, 2);
  SolverOptions solver;
  solver.tolerance = 1e-10;
  EXPECT_LE(this->solve_box(two_phases, solver).iterations, 15);
}

TYPED_TEST(Multigrid, SmallestBoxes) {
  std::vector<Box> const boxes{{{2, 2, 2}, {one()}, {1, 1, 1}, one_face}, {{2, 2, 2}}, {{2, 2, 5}, {one()}, {1, 1, 1}, one_face}};
  for (Box const& box : boxes)
    for (LevelsBy const kind : {LevelsBy::box, LevelsBy::algebraic}) {
      SCOPED_TRACE(text_of(box));
      SolverOptions const options;
      EXPECT_LE(this->solve_box(box, options, kind).iterations, 3);
    }
}

// One cell in some directions, one unknown, and formats that are not half_cds, or cannot be.
TYPED_TEST(Multigrid, BoxesInOtherFormats) {
  for (std::array<int, 3> const nodes : {std::array<int, 3>{1, 1, 1}, {2, 2, 2}, {2, 5, 7}, {1, 9, 8}, {12, 11, 13}}) {
    SCOPED_TRACE(std::to_string(nodes[0]) + "x" + std::to_string(nodes[1]) + "x" + std::to_string(nodes[2]));
    auto const csr = box27(nodes[0], nodes[1], nodes[2]);
    auto const a = make_matrix(Format::csr, csr, *this->context);
    std::vector<double> const b = random_vector(csr->n_rows, 3);
    std::vector<double> x(b.size());
    SolverOptions options;
    options.preconditioner = PreconditionerKind::multigrid;
    options.box_nodes = {nodes[0], nodes[1], nodes[2]};
    options.csr = [&] { return csr; };
    SolverResult const result = solve(*a, b, x, options);
    EXPECT_EQ(result.status, SolverStatus::converged) << result.reason;
    EXPECT_LE(result.iterations, 12);
  }
}

// No entry is stored of the finest matrix; the levels below are those of the stored one.
TYPED_TEST(Multigrid, MatrixFreeBoxesAsStoredOnes) {
  std::vector<Box> const boxes{{{16, 16, 16}},
                               {{31, 37, 29}},
                               {{24, 24, 24}, {one()}, {1, 1, 0.01}},
                               {{16, 16, 16}, stiff()},
                               {{2, 2, 2}, {one()}, {1, 1, 1}, one_face},
                               {{2, 3, 30}},
                               {{16, 16, 16}, {one()}, {1, 1, 1}, all_neumann},
                               {{16, 20, 16}, {one()}, {1, 1, 1}, with_robin}};
  for (Box const& box : boxes)
    for (MultigridPrecision const inside : {MultigridPrecision::single, MultigridPrecision::double_})
      for (auto const& [precision, tolerance] : {std::pair{Precision::double_, 1e-10}, {Precision::refined, 1e-18}}) {
        SCOPED_TRACE(text_of(box) + " " + std::string(name_of(precision)) + " with " + std::string(name_of(inside)));
        SolverOptions options;
        options.multigrid.precision = inside;
        options.precision = precision;
        options.tolerance = tolerance;
        SolverResult const stored = this->solve_box(box, options);
        HostVector<double> const x = std::move(this->solution_);
        SolverResult const free = this->solve_box(box, options, LevelsBy::box, Format::matrix_free);
        EXPECT_LE(std::abs(free.iterations - stored.iterations), 1);
        ASSERT_EQ(free.multigrid_levels.size(), stored.multigrid_levels.size());
        for (std::size_t l = 0; l < stored.multigrid_levels.size(); ++l) {
          EXPECT_EQ(free.multigrid_levels[l].rows, stored.multigrid_levels[l].rows);
          // The largest eigenvalue is that of the stencil; where every row is beside a Dirichlet face, none reaches it.
          EXPECT_GE(free.multigrid_levels[l].largest, stored.multigrid_levels[l].largest - 1e-3);
          if (box.cells[0] >= 16) {
            EXPECT_LE(free.multigrid_levels[l].largest, stored.multigrid_levels[l].largest + 1e-3);
          }
        }
        double largest = 0;
        for (double const value : x)
          largest = std::max(largest, std::abs(value));
        for (std::size_t i = 0; i < x.size(); ++i)
          ASSERT_NEAR(this->solution_[i], x[i], 1e-8 * largest) << i;
      }
}

TYPED_TEST(Multigrid, EveryPrecision) {
  std::vector<std::pair<Precision, double>> const precisions{{Precision::double_, 1e-13},
                                                             {Precision::refined, 1e-18},
                                                             {Precision::double_double, 1e-28},
                                                             {Precision::mixed, 1e-26},
                                                             {Precision::automatic, 1e-20}};
  for (MultigridPrecision const inside : {MultigridPrecision::single, MultigridPrecision::double_})
    for (auto const& [precision, tolerance] : precisions) {
      SCOPED_TRACE(std::string(name_of(precision)) + " with " + std::string(name_of(inside)));
      SolverOptions options;
      options.precision = precision;
      options.tolerance = tolerance;
      options.multigrid.precision = inside;
      EXPECT_LE(this->solve_box({{12, 14, 10}}, options).iterations, 30);
    }
}

TYPED_TEST(Multigrid, EveryCycleAndSmoother) {
  for (LevelsBy const kind : {LevelsBy::box, LevelsBy::algebraic})
    for (MultigridCycle const cycle : {MultigridCycle::v, MultigridCycle::w, MultigridCycle::f})
      for (MultigridSmoother const smoother : {MultigridSmoother::chebyshev, MultigridSmoother::jacobi})
        for (int const degree : {1, 2, 4}) {
          SCOPED_TRACE(std::string(name_of(cycle)) + " " + std::string(name_of(smoother)) + " " + std::to_string(degree));
          SolverOptions options;
          options.method = cycle == MultigridCycle::f ? Method::bicgstab : Method::cg;
          options.tolerance = 1e-10;
          options.multigrid.cycle = cycle;
          options.multigrid.smoother = smoother;
          options.multigrid.degree = degree;
          options.multigrid.coarse_size = 50;
          EXPECT_LE(this->solve_box({{16, 12, 18}}, options, kind).iterations, 40);
        }
  SolverOptions options;
  options.preconditioner = PreconditionerKind::multigrid;
  options.multigrid.cycle = MultigridCycle::f;
  Box const box{{4, 4, 4}};
  BoxSystem system(*this->context, box.problem());
  HostVector<double> const b = system.take_rhs().take_host();
  HostVector<double> x(b.size());
  options.box_nodes = {5, 5, 5};
  EXPECT_THROW(static_cast<void>(solve(system.matrix(), b, x, options)), InputError);
}

TYPED_TEST(Multigrid, AggregationKeepsIterationsLow) {
  for (std::int64_t const n : {12, 24, 36}) {
    SolverOptions const options;
    EXPECT_LE(this->solve_box({{n, n, n}}, options, LevelsBy::algebraic).iterations, 20) << n;
  }
  SolverOptions options;
  options.tolerance = 1e-8;
  EXPECT_LE(this->solve_box({{20, 20, 20}, {octants(1e6)}}, options, LevelsBy::algebraic).iterations, 25);
  EXPECT_LE(this->solve_box({{16, 16, 16}, {one()}, {1, 1, 1}, all_neumann}, options, LevelsBy::algebraic).iterations, 20);
}

// f = 1 on a cube: ||u - u_h|| in the energy norm is the same fraction of h for all boxes, odd numbers of cells as well.
TYPED_TEST(Multigrid, NestedIterationEstimatesTheDiscretisationError) {
  double fraction = 0;
  for (Format const format : {Format::half_cds, Format::matrix_free})
    for (std::int64_t const n : {32, 25, 31, 40, 33}) {
      Box const box{{n, n, n}};
      BoxSystem system(*this->context, box.problem(), format);
      HostVector<double> const b = system.take_rhs().take_host();
      HostVector<double> x(b.size()), exact(b.size());
      SolverOptions options;
      options.preconditioner = PreconditionerKind::multigrid;
      options.box_nodes = box.nodes();
      SolverResult const from_zero = solve(system.matrix(), b, exact, options);
      options.initial = InitialGuess::nested;
      options.to_discretization = true;
      SolverResult const result = solve(system.matrix(), b, x, options);
      EXPECT_EQ(result.status, SolverStatus::converged) << n;
      EXPECT_LT(result.iterations, from_zero.iterations / 2) << n;
      EXPECT_EQ(from_zero.discretization_error, -1);
      EXPECT_EQ(from_zero.tolerance, 1e-12);
      double const scaled = result.discretization_error * static_cast<double>(n);
      if (fraction == 0)
        fraction = scaled;
      EXPECT_NEAR(scaled, fraction, 0.05 * fraction) << n;
      // ||x - exact|| / ||exact|| in the energy norm, where exact is the solution.
      double energy = 0, error = 0;
      std::vector<double> difference(b.size());
      for (std::size_t i = 0; i < b.size(); ++i) {
        difference[i] = x[i] - exact[i];
        energy += b[i] * exact[i];
      }
      Array<double> const d(*this->context, std::span<double const>(difference));
      Array<double> product(*this->context, std::ssize(difference));
      static_cast<LinearOperator<double> const&>(system.matrix()).product(1, d.data(), 0, product.data());
      std::vector<double> of_difference(b.size());
      product.download(of_difference);
      for (std::size_t i = 0; i < b.size(); ++i)
        error += difference[i] * of_difference[i];
      error = std::sqrt(error / energy);
      EXPECT_NEAR(result.algebraic_error, error, 0.2 * error) << n;
      EXPECT_LT(error, 0.05 * result.discretization_error) << n;
    }
}

TYPED_TEST(Multigrid, NestedIterationOnOneLevelBeginsAtZero) {
  SolverOptions options;
  options.initial = InitialGuess::nested;
  options.to_discretization = true;
  SolverResult const result = this->solve_box({{2, 2, 2}}, options);
  EXPECT_EQ(result.discretization_error, -1);
  EXPECT_EQ(result.tolerance, options.tolerance);
}

TYPED_TEST(Multigrid, NestedIterationNeedsLevels) {
  Box const box{{8, 8, 8}};
  BoxSystem system(*this->context, box.problem());
  HostVector<double> const b = system.take_rhs().take_host();
  HostVector<double> x(b.size());
  SolverOptions options;
  options.preconditioner = PreconditionerKind::jacobi;
  options.initial = InitialGuess::nested;
  EXPECT_THROW(static_cast<void>(solve(system.matrix(), b, x, options)), InputError);
}

TYPED_TEST(Multigrid, SameBitsEveryRun) {
  for (LevelsBy const kind : {LevelsBy::box, LevelsBy::algebraic}) {
    Box const box{{20, 17, 23}, {octants(100)}};
    BoxSystem system(*this->context, box.problem());
    HostVector<double> const b = system.take_rhs().take_host();
    SolverOptions options;
    options.preconditioner = PreconditionerKind::multigrid;
    PreconditionerOptions const of = this->options_of(box, system.matrix(), kind);
    options.box_nodes = of.box_nodes;
    options.csr = of.csr;
    HostVector<double> first(b.size()), second(b.size());
    static_cast<void>(solve(system.matrix(), b, first, options));
    static_cast<void>(solve(system.matrix(), b, second, options));
    EXPECT_EQ(std::memcmp(first.data(), second.data(), first.size() * sizeof(double)), 0);
  }
}

TYPED_TEST(Multigrid, LevelsAreTold) {
  SolverOptions const options;
  SolverResult const result = this->solve_box({{32, 32, 32}}, options);
  ASSERT_EQ(result.multigrid_levels.size(), 4U);
  EXPECT_EQ(result.multigrid_levels[0].rows, 33 * 33 * 33);
  EXPECT_EQ(result.multigrid_levels[1].rows, 17 * 17 * 17);
  EXPECT_EQ(result.multigrid_levels[3].rows, 5 * 5 * 5);
  std::int64_t bytes = 0;
  for (auto const& level : result.multigrid_levels) {
    EXPECT_GT(level.largest, 1);
    EXPECT_LT(level.largest, 2.5);
    bytes += level.bytes;
  }
  SolverOptions predicted;
  predicted.preconditioner = PreconditionerKind::multigrid;
  predicted.box_nodes = {33, 33, 33};
  SolverOptions none;
  none.preconditioner = PreconditionerKind::none;
  std::int64_t const n = 33 * 33 * 33;
  EXPECT_NEAR(static_cast<double>(solver_bytes(n, 27 * n, predicted) - solver_bytes(n, 27 * n, none)) -
                  8.0 * static_cast<double>(n),
              static_cast<double>(bytes), 0.15 * static_cast<double>(bytes));
}

// The matrix of a convection with little diffusion, upwind.
TYPED_TEST(Multigrid, UnsymmetricMatricesWithBicgstab) {
  std::int64_t const m = 40;
  Entries entries;
  for (std::int64_t j = 0; j < m; ++j)
    for (std::int64_t i = 0; i < m; ++i) {
      std::int64_t const row = j * m + i;
      double const wind = 0.5;
      entries[{row, row}] = 4 + 2 * wind;
      if (i > 0)
        entries[{row, row - 1}] = -1 - wind;
      if (i + 1 < m)
        entries[{row, row + 1}] = -1;
      if (j > 0)
        entries[{row, row - m}] = -1 - wind;
      if (j + 1 < m)
        entries[{row, row + m}] = -1;
    }
  auto const csr = to_csr(m * m, entries);
  auto const a = make_matrix(Format::csr, csr, *this->context);
  std::vector<double> const b(static_cast<std::size_t>(m * m), 1.0);
  std::vector<double> x(b.size());
  SolverOptions options;
  options.method = Method::bicgstab;
  options.preconditioner = PreconditionerKind::multigrid;
  options.csr = [&] { return csr; };
  SolverResult const result = solve(*a, b, x, options);
  EXPECT_EQ(result.status, SolverStatus::converged) << result.reason;
  EXPECT_LE(result.iterations, 30);
}

TYPED_TEST(Multigrid, TellsWhatItCannotDo) {
  Entries entries;
  for (std::int64_t i = 0; i < 10; ++i)
    entries[{i, i}] = i == 6 ? -1 : 1;
  auto const csr = to_csr(10, entries);
  auto const a = make_matrix(Format::csr, csr, *this->context);
  std::vector<double> const b(10, 1.0);
  std::vector<double> x(10);
  SolverOptions options;
  options.preconditioner = PreconditionerKind::multigrid;
  EXPECT_THROW(static_cast<void>(solve(*a, b, x, options)), InputError);
  options.csr = [&] { return csr; };
  SolverResult const result = solve(*a, b, x, options);
  EXPECT_EQ(result.status, SolverStatus::breakdown);
  expect_contains(result.reason, {"positive diagonal", "row 7", "-1"});
}

// `automatic`.

TYPED_TEST(Multigrid, AutomaticTakesItWhereItIsWorthIts) {
  SolverOptions options;
  options.preconditioner = PreconditionerKind::automatic;
  options.precision = Precision::automatic;
  Box const box{{40, 40, 40}};
  BoxSystem system(*this->context, box.problem());
  HostVector<double> const b = system.take_rhs().take_host();
  HostVector<double> x(b.size());
  options.box_nodes = box.nodes();
  SolverResult const result = solve(system.matrix(), b, x, options);
  EXPECT_EQ(result.status, SolverStatus::converged);
  EXPECT_EQ(result.precision, Precision::double_);
  ASSERT_EQ(result.estimates.size(), 2U);
  EXPECT_EQ(result.estimates[0].kind, result.preconditioner);
  EXPECT_TRUE(result.notes.empty());
  EXPECT_LE(result.estimates[0].seconds(), result.estimates[1].seconds());
}

// Double gets no further than about 1e-10 with k between 1 and 1e6 in a ball that follows no cell.
TYPED_TEST(Multigrid, AutomaticPrecisionGoesOnAsRefined) {
  Box const box{{16, 16, 16}, {ball(1e6)}};
  BoxSystem system(*this->context, box.problem());
  HostVector<double> const b = system.take_rhs().take_host();
  HostVector<double> x(b.size());
  SolverOptions options;
  options.box_nodes = box.nodes();
  options.preconditioner = PreconditionerKind::multigrid;
  options.precision = Precision::double_;
  SolverResult const in_double = solve(system.matrix(), b, x, options);
  EXPECT_EQ(in_double.status, SolverStatus::stagnated);
  options.precision = Precision::automatic;
  SolverResult const result = solve(system.matrix(), b, x, options);
  EXPECT_GE(result.bytes_per_iteration, in_double.bytes_per_iteration);  // over all iterations, also those in double
  EXPECT_EQ(result.status, SolverStatus::converged) << result.reason;
  EXPECT_EQ(result.precision, Precision::refined);
  ASSERT_EQ(result.notes.size(), 1U);
  expect_contains(result.notes[0], {"double precision got no further after", "went on as refined"});
  EXPECT_LE(true_residual(StoredResidualCheck(system.matrix()), x, b, result.x_low), 2e-12);
}

// A zero on the main diagonal: multigrid, which is predicted to be faster, cannot be set up; bicgstab needs no preconditioner.
TYPED_TEST(Multigrid, AutomaticGivesUpWhatFails) {
  Box const box{{63, 63, 63}};
  BoxSystem system(*this->context, box.problem());
  auto csr = std::make_shared<CsrMatrix>(system.matrix().to_csr());
  std::int64_t const row = (32 * 64 + 32) * 64 + 32;
  for (std::int64_t k = csr->row_ptr[row]; k < csr->row_ptr[row + 1]; ++k)
    if (csr->columns[k] == row)
      csr->values[k] = 0;
  auto const a = make_matrix(Format::half_cds, csr, *this->context);
  HostVector<double> const b = system.take_rhs().take_host();
  HostVector<double> x(b.size());
  SolverOptions options;
  options.method = Method::bicgstab;
  options.preconditioner = PreconditionerKind::automatic;
  options.box_nodes = box.nodes();
  options.tolerance = 1e-10;
  SolverResult const result = solve(*a, b, x, options);
  EXPECT_EQ(result.status, SolverStatus::converged) << result.reason;
  EXPECT_EQ(result.estimates.at(0).kind, PreconditionerKind::multigrid);
  EXPECT_EQ(result.preconditioner, PreconditionerKind::none);
  ASSERT_EQ(result.notes.size(), 1U);
  expect_contains(result.notes[0], {"the preconditioner multigrid failed", "went on with none"});
}

}  // namespace poisson::testing
