#include "assembly/space/space_partition.hpp"

#include "assembly/discretization.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

/// Parts of a mesh that is no box: their rows are those of the whole, and their figures add up.
namespace poisson::assembly {

namespace {

ProblemSpec ball(int order, int refinements) {
  ProblemSpec spec;
  spec.mesh.generator = "hyper_ball";
  spec.mesh.refinements = refinements;
  spec.order = order;
  spec.coefficient = {{-1, {"1 + x*x + 0.5*y*y"}}};
  spec.source = "sin(3*x) + y*z";
  spec.exact = "x*y + z";
  // A part of the boundary of its own, so that two Dirichlet boundaries and a Robin one share edges.
  spec.mesh.boundaries = {{"top", "z > 0.3"}, {"side", "x > 0.4"}};
  BoundaryCondition top, side, rest;
  top.names = {"top"};
  top.type = BoundaryType::dirichlet;
  top.value = "x + 1";
  side.names = {"side"};
  side.type = BoundaryType::dirichlet;
  side.value = "y";
  rest.all_ids = true;
  rest.type = BoundaryType::robin;
  rest.alpha = "2";
  rest.value = "z";
  spec.boundary = {top, side, rest};
  return spec;
}

/// The last: unknowns numbered by lattices.
std::vector<ProblemSpec> problems() {
  return {ball(1, 1), ball(2, 1), ball(1, 2)};
}

TEST(PartsOfAMesh, AssembleTheRowsOfTheWhole) {
  for (ProblemSpec const& spec : problems()) {
    Discretization whole(spec);
    LinearSystem const system = whole.assemble();
    double const scale = *std::max_element(system.matrix.values.begin(), system.matrix.values.end());
    for (int const ranks : {1, 2, 3, 5}) {
      std::int64_t rows = 0, cells = 0;
      std::map<std::pair<int, int>, std::vector<std::int32_t>> sent, received;
      for (int rank = 0; rank < ranks; ++rank) {
        PartOfSpace const part = whole.divided(ranks).part(rank);
        cells += static_cast<std::int64_t>(part.own_cells.size());
        EXPECT_TRUE(
            std::includes(part.around_cells.begin(), part.around_cells.end(), part.own_cells.begin(), part.own_cells.end()));
        auto ghost = part.unknowns.begin() + part.n_rows;
        for (RankNeighbor const& neighbor : part.neighbors) {
          for (std::int32_t const row : neighbor.sent)
            sent[{rank, neighbor.rank}].push_back(part.unknowns[static_cast<std::size_t>(row)]);
          received[{neighbor.rank, rank}].assign(ghost, ghost + neighbor.n_ghosts);
          ghost += neighbor.n_ghosts;
        }
        EXPECT_EQ(ghost, part.unknowns.end());
        Discretization piece(whole, part.around_cells, part.unknowns);
        LinearSystem const found = piece.assemble();
        for (std::int64_t i = 0; i < part.n_rows; ++i, ++rows) {
          std::int64_t const row = part.unknowns[static_cast<std::size_t>(i)];
          ASSERT_EQ(found.constraints.constrained(i), system.constraints.constrained(row));
          ASSERT_EQ(found.constraints.value(i), system.constraints.value(row));
          ASSERT_NEAR(found.rhs[static_cast<std::size_t>(i)], system.rhs[static_cast<std::size_t>(row)], 1e-13 * scale);
          std::map<std::int32_t, double> entries;
          for (auto e = found.matrix.row_ptr[i]; e < found.matrix.row_ptr[i + 1]; ++e)
            entries[part.unknowns[static_cast<std::size_t>(found.matrix.columns[e])]] = found.matrix.values[e];
          auto const first = system.matrix.row_ptr[row], end = system.matrix.row_ptr[row + 1];
          ASSERT_EQ(static_cast<std::int64_t>(entries.size()), end - first);
          for (auto e = first; e < end; ++e)
            ASSERT_NEAR(entries.at(system.matrix.columns[e]), system.matrix.values[e], 1e-13 * scale);
        }
      }
      EXPECT_EQ(rows, system.matrix.n_rows);
      EXPECT_EQ(cells, whole.summary().cells);
      EXPECT_EQ(sent, received) << "what a rank sends is what another takes for its ghosts, in that order";
    }
  }
}

TEST(PartsOfAMesh, AddUpToTheFiguresOfTheWhole) {
  for (ProblemSpec const& spec : problems()) {
    Discretization const whole(spec);
    HostVector<double> u(static_cast<std::size_t>(whole.summary().dofs));
    for (std::size_t i = 0; i < u.size(); ++i)
      u[i] = std::sin(static_cast<double>(i));
    Quantities const expected = whole.quantities(u);
    ErrorNorms const errors = whole.errors(u);
    for (int const ranks : {2, 5}) {
      double l2 = 0, h1 = 0, linf = 0, energy = 0, integral = 0, source = 0;
      std::map<unsigned, double> areas, fluxes;
      for (int rank = 0; rank < ranks; ++rank) {
        PartOfSpace const part = whole.divided(ranks).part(rank);
        auto const values_of = [&](std::vector<std::int32_t> const& unknowns) {
          HostVector<double> values;
          for (std::int32_t const i : unknowns)
            values.push_back(u[static_cast<std::size_t>(i)]);
          return values;
        };
        std::vector<std::int32_t> own_unknowns;
        for (std::int32_t const place : part.in_own_cells)
          own_unknowns.push_back(part.unknowns[static_cast<std::size_t>(place)]);
        Discretization const around(whole, part.around_cells, part.unknowns);
        std::vector<std::uint8_t> counted(part.unknowns.size(), 0);
        std::fill_n(counted.begin(), part.n_rows, std::uint8_t{1});
        for (auto const& [id, flux] : around.residual_fluxes(values_of(part.unknowns), counted).boundaries)
          fluxes[id] += flux.flux;
        if (part.own_cells.empty())  // where cells are few
          continue;
        Discretization const own(whole, part.own_cells, own_unknowns);
        auto const u_own = values_of(own_unknowns);
        Quantities const q = own.quantities(u_own);
        ErrorNorms const e = own.errors(u_own);
        l2 += e.l2 * e.l2;
        h1 += e.h1_seminorm * e.h1_seminorm;
        linf = std::max(linf, e.linf);
        energy += q.energy;
        integral += q.integral_u;
        source += own.source_integral().sum;
        for (auto const& [id, boundary] : q.boundaries) {
          areas[id] += boundary.area;
          if (own.is_natural(id))
            fluxes[id] += boundary.flux;
        }
      }
      EXPECT_NEAR(std::sqrt(l2), errors.l2, 1e-12 * errors.l2);
      EXPECT_NEAR(std::sqrt(h1), errors.h1_seminorm, 1e-12 * errors.h1_seminorm);
      EXPECT_NEAR(linf, errors.linf, 1e-12 * errors.linf);
      EXPECT_NEAR(energy, expected.energy, 1e-12 * expected.energy);
      EXPECT_NEAR(integral, expected.integral_u, 1e-12);
      EXPECT_NEAR(source, whole.source_integral().sum, 1e-12);
      ASSERT_EQ(areas.size(), expected.boundaries.size());
      for (auto const& [id, boundary] : expected.boundaries) {
        EXPECT_NEAR(areas[id], boundary.area, 1e-12);
        EXPECT_NEAR(fluxes[id], boundary.flux, 1e-11 * expected.energy) << "boundary " << id;
      }
    }
  }
}

}  // namespace
}  // namespace poisson::assembly
