/// u = C x + g: systems of hand-made constraints against dense algebra.
#include "assembly/space/constraints.hpp"
#include "assembly/space/space.hpp"
#include "assembly/system/problem_data.hpp"
#include "assembly/system/system.hpp"
#include "gpu/core/threads.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>
#include <memory>
#include <stdexcept>
#include <vector>

namespace poisson::assembly {
namespace {

using Entries = std::vector<Constraints::Entry>;
using Dense = std::vector<std::vector<double>>;

Dense zeros(std::size_t n) {
  return Dense(n, std::vector<double>(n, 0.0));
}

Dense dense(CsrMatrix const& a) {
  auto result = zeros(static_cast<std::size_t>(a.n_rows));
  for (std::int64_t row = 0; row < a.n_rows; ++row)
    for (auto i = a.row_ptr[row]; i < a.row_ptr[row + 1]; ++i)
      result[row][a.columns[i]] = a.values[i];
  return result;
}

/// Gauss with partial pivoting.
std::vector<double> solve_dense(Dense a, std::vector<double> b) {
  std::size_t const n = b.size();
  for (std::size_t k = 0; k < n; ++k) {
    std::size_t pivot = k;
    for (std::size_t i = k + 1; i < n; ++i)
      pivot = std::abs(a[i][k]) > std::abs(a[pivot][k]) ? i : pivot;
    std::swap(a[k], a[pivot]);
    std::swap(b[k], b[pivot]);
    for (std::size_t i = k + 1; i < n; ++i) {
      double const factor = a[i][k] / a[k][k];
      for (std::size_t j = k; j < n; ++j)
        a[i][j] -= factor * a[k][j];
      b[i] -= factor * b[k];
    }
  }
  for (std::size_t k = n; k-- > 0;) {
    for (std::size_t j = k + 1; j < n; ++j)
      b[k] -= a[k][j] * b[j];
    b[k] /= a[k][k];
  }
  return b;
}

BoundaryCondition condition(BoundaryType type, std::vector<unsigned> ids, std::string value, std::string alpha = "0") {
  return {false, std::move(ids), {}, type, std::move(value), std::move(alpha)};
}

struct Problem {
  Problem(std::array<std::int64_t, 3> cells, int order, std::vector<BoundaryCondition> boundary)
      : element(order), space(BoxGrid{{0, 0, 0}, {1, 1.5, 0.75}, cells}, element) {
    ProblemSpec spec;
    spec.order = order;
    spec.coefficient = {{-1, {"1 + x*y"}}};
    spec.source = "1 + z";
    spec.boundary = std::move(boundary);
    data = std::make_unique<ProblemData>(spec, PlaceNames(space.boundary_ids, space.material_ids));
  }
  [[nodiscard]] LinearSystem assemble(Constraints constraints = Constraints()) const {
    return assemble_system(space, element, *data, std::move(constraints));
  }
  [[nodiscard]] std::int32_t node(std::int64_t x, std::int64_t y, std::int64_t z) const {
    return static_cast<std::int32_t>((z * space.box_nodes[1] + y) * space.box_nodes[0] + x);
  }

  ReferenceElement element;
  Space space;
  std::unique_ptr<ProblemData> data;
};

TEST(Constraints, ChainsEndInFreeUnknowns) {
  Constraints c(8);
  c.set(0, 1, Entries{{1, 0.5}, {2, 0.5}});  // of a constrained and a free unknown
  c.set(1, 2, Entries{{3, 2.0}, {2, -1.0}});
  c.set(3, 7);
  c.set(5, 4);
  c.set(5, 0, Entries{{6, 1.0}});  // replaces
  c.close();
  EXPECT_EQ(c.mask(), (HostVector<std::uint8_t>{1, 1, 0, 1, 0, 1, 0, 0}));
  HostVector<double> x{99, 99, 10, 99, 20, 99, 30, 40};
  c.expand(x);
  EXPECT_EQ(x, (HostVector<double>{1 + 0.5 * (2 + 14 - 10) + 5, 2 + 14 - 10, 10, 7, 20, 30, 30, 40}));
  ASSERT_EQ(c.row(0).size(), 1U);  // both ways lead to unknown 2
  EXPECT_EQ(c.row(0)[0].unknown, 2);
  EXPECT_EQ(c.row(0)[0].weight, 0);
  HostVector<double> f{1, 2, 3, 4, 5, 6, 7, 8};
  c.restrict_to_free(f);
  EXPECT_EQ(f, (HostVector<double>{0, 0, 3 - 2, 0, 5, 0, 7 + 6, 8}));
  for (std::int64_t i : {2, 4, 6, 7})
    EXPECT_EQ(c.value(i), 0);

  Constraints circle(3);
  circle.set(0, 0, Entries{{1, 1.0}});
  circle.set(1, 0, Entries{{0, 1.0}});
  EXPECT_THROW(circle.close(), std::logic_error);
}

TEST(Constraints, SystemIsThatOfDenseAlgebra) {
  for (int const order : {1, 2})
    for (bool const fixed : {false, true}) {
      auto const robin = condition(BoundaryType::robin, {1}, "x + 2", "1 + y");
      auto const neumann = condition(BoundaryType::neumann, {2, 3, 4, 5}, "y - z");
      // A face is Dirichlet, or has no flux: then nothing of it is in A and f.
      Problem const free({3, 2, 2}, order, {robin, neumann, condition(BoundaryType::neumann, {0}, "0")});
      Problem const problem(
          {3, 2, 2}, order,
          {robin, neumann, condition(fixed ? BoundaryType::dirichlet : BoundaryType::neumann, {0}, fixed ? "3 + y" : "0")});
      auto const n = static_cast<std::size_t>(problem.space.n_dofs);
      auto const [nx, ny, nz] = problem.space.box_nodes;

      // Periodic with a jump of 0.25 from z low to z high; some nodes hang between two others, one of which is periodic itself.
      Constraints constraints(problem.space.n_dofs);
      for (std::int64_t y = 0; y < ny; ++y)
        for (std::int64_t x = 0; x < nx; ++x)
          constraints.set(problem.node(x, y, nz - 1), 0.25, Entries{{problem.node(x, y, 0), 1.0}});
      constraints.set(problem.node(1, 1, 1), 0, Entries{{problem.node(1, 0, 0), 0.375}, {problem.node(1, 2, nz - 1), 0.625}});
      constraints.set(problem.node(2, 0, 1), -1, Entries{{problem.node(3, ny - 1, 1), 0.5}, {problem.node(0, 0, 1), 0.5}});
      LinearSystem const system = problem.assemble(constraints);

      // C and g as everybody would write them: what the rows above say, put in again and again until only free unknowns are left.
      auto c = zeros(n);
      std::vector<double> g(n, 0.0);
      std::vector<bool> is_free(n, true);
      auto const set = [&](std::int32_t unknown, double value, Entries const& entries) {
        is_free[unknown] = false;
        g[unknown] = value;
        for (auto const& [other, weight] : entries)
          c[unknown][other] = weight;
      };
      for (std::int64_t z = 0; fixed && z < nz; ++z)
        for (std::int64_t y = 0; y < ny; ++y)
          set(problem.node(0, y, z), 3 + problem.space.point(problem.node(0, y, z))[1], {});
      for (std::int64_t y = 0; y < ny; ++y)
        for (std::int64_t x = 0; x < nx; ++x) {
          c[problem.node(x, y, nz - 1)].assign(n, 0.0);
          set(problem.node(x, y, nz - 1), 0.25, {{problem.node(x, y, 0), 1.0}});
        }
      set(problem.node(1, 1, 1), 0, {{problem.node(1, 0, 0), 0.375}, {problem.node(1, 2, nz - 1), 0.625}});
      set(problem.node(2, 0, 1), -1, {{problem.node(3, ny - 1, 1), 0.5}, {problem.node(0, 0, 1), 0.5}});
      for (int repeat = 0; repeat < 3; ++repeat) {
        auto const rows = c;
        auto const values = g;
        for (std::size_t i = 0; i < n; ++i)
          for (std::size_t j = 0; j < n; ++j)
            if (rows[i][j] != 0 && !is_free[j]) {
              c[i][j] -= rows[i][j];
              g[i] += rows[i][j] * values[j];
              for (std::size_t k = 0; k < n; ++k)
                c[i][k] += rows[i][j] * rows[j][k];
            }
      }
      for (std::size_t i = 0; i < n; ++i)
        if (is_free[i])
          c[i][i] = 1;

      LinearSystem const unconstrained = free.assemble();
      auto const a = dense(unconstrained.matrix);
      auto reduced = zeros(n);
      std::vector<double> rhs(n, 0.0);
      for (std::size_t i = 0; i < n; ++i) {
        double load = unconstrained.rhs[i];
        for (std::size_t j = 0; j < n; ++j)
          load -= a[i][j] * g[j];
        for (std::size_t k = 0; k < n; ++k) {
          rhs[k] += c[i][k] * load;
          if (c[i][k] != 0)
            for (std::size_t j = 0; j < n; ++j)
              if (a[i][j] != 0)
                for (std::size_t l = 0; l < n; ++l)
                  reduced[k][l] += c[i][k] * a[i][j] * c[j][l];
        }
      }
      for (std::size_t i = 0; i < n; ++i)
        if (!is_free[i])
          reduced[i][i] = a[i][i];

      auto const found = dense(system.matrix);
      for (std::size_t i = 0; i < n; ++i) {
        EXPECT_EQ(system.constraints.constrained(static_cast<std::int64_t>(i)), !is_free[i]);
        EXPECT_NEAR(system.rhs[i], rhs[i], 1e-13);
        for (std::size_t j = 0; j < n; ++j)
          ASSERT_NEAR(found[i][j], reduced[i][j], 1e-13) << "order " << order << ", row " << i << ", column " << j;
        if (!is_free[i]) {
          EXPECT_EQ(system.rhs[i], 0);
          EXPECT_EQ(system.matrix.row_ptr[i + 1] - system.matrix.row_ptr[i], 1);
        }
      }

      // The solution keeps the constraints, and its residual is orthogonal to what they leave free.
      auto const x = solve_dense(found, {system.rhs.begin(), system.rhs.end()});
      HostVector<double> u(x.begin(), x.end());
      system.constraints.expand(u);
      EXPECT_NEAR(u[problem.node(2, 1, nz - 1)] - u[problem.node(2, 1, 0)], 0.25, 1e-13);
      EXPECT_NEAR(u[problem.node(1, 1, 1)], 0.375 * u[problem.node(1, 0, 0)] + 0.625 * u[problem.node(1, 2, nz - 1)], 1e-13);
      if (fixed) {
        EXPECT_NEAR(u[problem.node(0, ny - 1, 1)], 4.5, 1e-13);
      }
      HostVector<double> residual(n);
      for (std::size_t i = 0; i < n; ++i) {
        residual[i] = unconstrained.rhs[i];
        for (std::size_t j = 0; j < n; ++j)
          residual[i] -= a[i][j] * u[j];
      }
      system.constraints.restrict_to_free(residual);
      for (double const r : residual)
        EXPECT_NEAR(r, 0, 1e-12);
    }
}

TEST(Constraints, PeriodicWithoutAnythingFixedIsMadeCompatible) {
  Problem problem({3, 2, 4}, 1, {condition(BoundaryType::neumann, {0, 1, 2, 3, 4, 5}, "0")});
  ProblemSpec spec;
  spec.source = "x - 0.5";
  spec.boundary = {condition(BoundaryType::neumann, {0, 1, 2, 3, 4, 5}, "0")};
  problem.data = std::make_unique<ProblemData>(spec, PlaceNames(problem.space.boundary_ids, problem.space.material_ids));
  Constraints constraints(problem.space.n_dofs);
  for (std::int64_t y = 0; y < 3; ++y)
    for (std::int64_t x = 0; x < 4; ++x)
      constraints.set(problem.node(x, y, 4), 0, Entries{{problem.node(x, y, 0), 1.0}});
  auto const system = problem.assemble(constraints);
  ASSERT_TRUE(system.pure_neumann);
  ASSERT_TRUE(system.holds_an_unknown);  // the first free one, at 0; but for it the constant is in the null space
  std::int64_t held = 0;
  while (system.constraints.constrained(held))
    ++held;
  EXPECT_EQ(system.rhs[held], 0);
  double size = 0;
  for (std::int64_t row = 0; row < system.matrix.n_rows; ++row) {
    size += std::abs(system.rhs[row]);
    if (system.constraints.constrained(row)) {
      EXPECT_EQ(system.rhs[row], 0);
      continue;
    }
    double of_row = 0;
    bool is_neighbour = false;
    for (auto i = system.matrix.row_ptr[row]; i < system.matrix.row_ptr[row + 1]; ++i) {
      of_row += system.matrix.values[i];
      is_neighbour = is_neighbour || system.matrix.columns[i] == held;
      if ((row == held) != (system.matrix.columns[i] == held)) {
        EXPECT_EQ(system.matrix.values[i], 0);
      }
    }
    if (!is_neighbour) {
      EXPECT_NEAR(of_row, 0, 1e-13);
    }
  }
  EXPECT_GT(size, 0.01);
  EXPECT_NEAR(system.compatibility_defect, 0, 1e-14);
}

// Cells that share no unknown write to the same row when their unknowns are tied: threads must not meet there.
TEST(Constraints, SameBitsWhateverTheNumberOfThreads) {
  Problem const problem({8, 8, 64}, 1, {condition(BoundaryType::robin, {0, 1, 2, 3, 4, 5}, "0", "1")});
  Constraints constraints(problem.space.n_dofs);
  for (std::int64_t z = 1; z <= 64; ++z)  // every node of the edge x = y = 0 is the lowest one
    constraints.set(problem.node(0, 0, z), 0, Entries{{problem.node(0, 0, 0), 1.0}});
  int const before = thread_count();
  std::vector<LinearSystem> systems;
  for (int const threads : {1, 2, 3}) {
    set_thread_count(threads);
    systems.push_back(problem.assemble(constraints));
  }
  set_thread_count(before);
  for (std::size_t i = 1; i < systems.size(); ++i) {
    EXPECT_EQ(systems[0].matrix.columns, systems[i].matrix.columns);
    EXPECT_EQ(systems[0].matrix.values, systems[i].matrix.values);
    EXPECT_EQ(systems[0].rhs, systems[i].rhs);
  }
}

TEST(Constraints, ListedValuesAreThoseThatWereGiven) {
  double const none = std::numeric_limits<double>::quiet_NaN();
  DirichletValues const given{5, {none, 0.0, 3.5, none, -1.0, none}};
  ListedValues const listed(given);
  EXPECT_EQ(listed.unknowns, (std::vector<std::int32_t>{6, 7, 9}));
  DirichletValues const all = listed.all();
  EXPECT_EQ(all.first, given.first);
  ASSERT_EQ(all.end(), given.end());
  for (std::int64_t unknown = 0; unknown < given.end(); ++unknown) {
    ASSERT_EQ(all.has(unknown), given.has(unknown)) << unknown;
    if (given.has(unknown)) {
      EXPECT_EQ(all[unknown], given[unknown]);
    }
  }
  EXPECT_EQ(ListedValues().all().end(), 0);
}

}  // namespace
}  // namespace poisson::assembly
