#include "assembly/mesh/box_partition.hpp"

#include "assembly/discretization.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>

/// Parts of a box: who owns what, and that the parts assemble the rows of the whole.
namespace poisson::assembly {

namespace {

using Cells = std::array<std::int64_t, 3>;

TEST(BoxPartition, TakesBlocksOfFewCellsAndLittleSurface) {
  EXPECT_EQ(BoxPartition({8, 8, 8}, 1, 8).blocks(), (std::array<int, 3>{2, 2, 2}));
  EXPECT_EQ(BoxPartition({30, 30, 30}, 1, 4).n_used(), 4);
  EXPECT_EQ(BoxPartition({100, 10, 10}, 1, 5).blocks(), (std::array<int, 3>{5, 1, 1}));
  EXPECT_EQ(BoxPartition({100, 100, 100}, 1, 7).n_used(), 7) << "a prime number of ranks";
  EXPECT_EQ(BoxPartition({2, 1, 1}, 1, 5).blocks(), (std::array<int, 3>{2, 1, 1})) << "more ranks than cells";
  EXPECT_EQ(BoxPartition({2048, 2048, 2048}, 1, 64).blocks(), (std::array<int, 3>{4, 4, 4}));
  EXPECT_EQ(BoxPartition({2047, 2047, 2047}, 1, 64).blocks(), (std::array<int, 3>{4, 4, 4})) << "slabs have some cells less";
}

TEST(BoxPartition, GivesEveryCellAndNodeOneOwnerAndPairsMessages) {
  for (Cells const& cells : {Cells{5, 4, 3}, Cells{1, 7, 2}, Cells{1, 1, 1}})
    for (int const order : {1, 2})
      for (int const ranks : {1, 2, 3, 5, 8, 13}) {
        BoxPartition const partition(cells, order, ranks);
        std::int64_t n_cells = 0, n_rows = 0;
        std::map<std::pair<int, int>, std::int64_t> sent, received;
        for (int rank = 0; rank < ranks; ++rank) {
          n_cells += partition.cells(rank).n_cells();
          n_rows += partition.n_rows(rank);
          std::int64_t ghosts = 0;
          for (RankNeighbor const& neighbor : partition.neighbors(rank)) {
            EXPECT_NE(neighbor.rank, rank);
            sent[{rank, neighbor.rank}] = static_cast<std::int64_t>(neighbor.sent.size());
            received[{neighbor.rank, rank}] = neighbor.n_ghosts;
            ghosts += neighbor.n_ghosts;
          }
          auto places = partition.places(rank).list();
          EXPECT_EQ(static_cast<std::int64_t>(places.size()), partition.n_rows(rank) + ghosts);
          std::sort(places.begin(), places.end());
          for (std::size_t i = 0; i < places.size(); ++i)
            ASSERT_EQ(places[i], static_cast<std::int32_t>(i)) << "a place for every node, and no other";
        }
        EXPECT_EQ(n_cells, cells[0] * cells[1] * cells[2]);
        EXPECT_EQ(n_rows, (order * cells[0] + 1) * (order * cells[1] + 1) * (order * cells[2] + 1));
        EXPECT_EQ(sent, received);
      }
}

TEST(BoxPartition, TellsARankOfManyItsNeighboursAlone) {
  BoxPartition const partition({8192, 8192, 8192}, 1, 4096);
  EXPECT_EQ(partition.blocks(), (std::array<int, 3>{16, 16, 16}));
  int const inside = (7 * 16 + 8) * 16 + 9, corner = 0;
  std::int64_t ghosts = 0;
  for (RankNeighbor const& neighbor : partition.neighbors(inside))
    ghosts += neighbor.n_ghosts;
  EXPECT_EQ(partition.neighbors(inside).size(), 26U);
  EXPECT_EQ(ghosts, 514 * 514 * 514 - 512 * 512 * 512);
  EXPECT_EQ(partition.neighbors(corner).size(), 7U);
}

/// All conditions, a coefficient and a source that vary.
ProblemSpec problem(Cells const& cells, int order) {
  ProblemSpec spec;
  spec.mesh.origin = {-0.3, 0.1, 0.7};
  spec.mesh.extent = {1.3, 0.9, 1.7};
  spec.mesh.cells = cells;
  spec.order = order;
  spec.coefficient = {{-1, {"1 + x*x + 0.5*y*z"}}};
  spec.source = "sin(3*x) + y*z";
  auto const add = [&](std::vector<unsigned> ids, BoundaryType type, char const* value, char const* alpha = "0") {
    BoundaryCondition condition;
    condition.ids = std::move(ids);
    condition.type = type;
    condition.value = value;
    condition.alpha = alpha;
    spec.boundary.push_back(condition);
  };
  add({0, 3}, BoundaryType::dirichlet, "x + 2*y - z");
  add({1}, BoundaryType::neumann, "y");
  add({2, 4}, BoundaryType::robin, "1 - x", "2 + z");
  add({5}, BoundaryType::dirichlet, "1");
  return spec;
}

TEST(BoxParts, AssembleTheRowsOfTheWhole) {
  for (int const order : {1, 2, 3}) {
    Cells const cells = order == 1 ? Cells{6, 5, 7} : Cells{3, 2, 4};
    ProblemSpec const spec = problem(cells, order);
    Discretization whole(spec);
    LinearSystem const system = whole.assemble();
    double const scale = *std::max_element(system.matrix.values.begin(), system.matrix.values.end());
    Cells const n{order * cells[0] + 1, order * cells[1] + 1, order * cells[2] + 1};
    for (int const ranks : {1, 2, 3, 5, 8}) {
      BoxPartition const partition(cells, order, ranks);
      std::int64_t rows = 0;
      for (int rank = 0; rank < partition.n_used(); ++rank) {
        ProblemSpec own = spec;
        own.mesh.part = partition.assembled_cells(rank);
        BoxPart const part = *own.mesh.part;
        Discretization piece(own);
        LinearSystem const found = piece.assemble();
        auto const places = partition.places(rank);
        Cells const m{order * part.cells[0] + 1, order * part.cells[1] + 1, order * part.cells[2] + 1};
        auto const of_whole = [&](std::int64_t node) {
          return ((order * part.first[2] + node / (m[0] * m[1])) * n[1] + order * part.first[1] + node / m[0] % m[1]) * n[0] +
                 order * part.first[0] + node % m[0];
        };
        for (std::int64_t node = 0; node < found.matrix.n_rows; ++node) {
          if (places[static_cast<std::size_t>(node)] >= partition.n_rows(rank))
            continue;
          ++rows;
          std::int64_t const row = of_whole(node);
          ASSERT_EQ(found.constraints.constrained(node), system.constraints.constrained(row));
          ASSERT_EQ(found.constraints.value(node), system.constraints.value(row)) << "coordinates have the same bits";
          ASSERT_NEAR(found.rhs[static_cast<std::size_t>(node)], system.rhs[static_cast<std::size_t>(row)], 1e-13 * scale);
          auto const first = found.matrix.row_ptr[node], end = found.matrix.row_ptr[node + 1], other = system.matrix.row_ptr[row];
          ASSERT_EQ(end - first, system.matrix.row_ptr[row + 1] - other);
          for (auto e = first; e < end; ++e) {
            ASSERT_EQ(of_whole(found.matrix.columns[e]), system.matrix.columns[other + e - first]);
            ASSERT_NEAR(found.matrix.values[e], system.matrix.values[other + e - first], 1e-14 * scale);
          }
        }
      }
      EXPECT_EQ(rows, system.matrix.n_rows);
    }
  }
}

TEST(BoxParts, AddUpToTheFiguresOfTheWhole) {
  for (int const order : {1, 2}) {
    Cells const cells{5, 4, 6};
    ProblemSpec spec = problem(cells, order);
    spec.exact = "x*y + z*z";
    Discretization const whole(spec);
    // Any u: a polynomial at the nodes.
    auto const u_of = [](Discretization const& on, ProblemSpec const& of) {
      BoxPart const part = of.mesh.part.value_or(BoxPart{{}, of.mesh.cells});
      Cells m{};
      for (std::size_t d = 0; d < 3; ++d)
        m[d] = of.order * part.cells[d] + 1;
      HostVector<double> u(static_cast<std::size_t>(on.summary().dofs));
      for (std::size_t i = 0; i < u.size(); ++i) {
        auto const node = static_cast<std::int64_t>(i);
        auto const x = static_cast<double>(of.order * part.first[0] + node % m[0]),
                   y = static_cast<double>(of.order * part.first[1] + node / m[0] % m[1]),
                   z = static_cast<double>(of.order * part.first[2] + node / (m[0] * m[1]));
        u[i] = 0.1 * x * y - 0.3 * z + 0.01 * x * z * z;
      }
      return u;
    };
    auto const u = u_of(whole, spec);
    Quantities const expected = whole.quantities(u);
    ErrorNorms const errors = whole.errors(u);
    double const source = whole.source_integral().sum;
    for (int const ranks : {2, 3, 7}) {
      BoxPartition const partition(cells, order, ranks);
      Quantities sum;
      double l2 = 0, h1 = 0, linf = 0, f = 0;
      sum.min = 1e300;
      for (int rank = 0; rank < partition.n_used(); ++rank) {
        ProblemSpec own = spec;
        own.mesh.part = partition.cells(rank);
        Discretization const piece(own);
        auto const u_own = u_of(piece, own);
        Quantities const q = piece.quantities(u_own);
        ErrorNorms const e = piece.errors(u_own);
        l2 += e.l2 * e.l2;
        h1 += e.h1_seminorm * e.h1_seminorm;
        linf = std::max(linf, e.linf);
        f += piece.source_integral().sum;
        sum.integral_u += q.integral_u;
        sum.energy += q.energy;
        sum.volumes[0] += q.volumes.at(0);
        sum.min = std::min(sum.min, q.min);
        for (auto const& [id, flux] : q.boundaries) {
          sum.boundaries[id].area += flux.area;
          sum.boundaries[id].flux += flux.flux;
        }
      }
      EXPECT_NEAR(std::sqrt(l2), errors.l2, 1e-12 * errors.l2);
      EXPECT_NEAR(std::sqrt(h1), errors.h1_seminorm, 1e-12 * errors.h1_seminorm);
      EXPECT_NEAR(linf, errors.linf, 1e-12 * errors.linf);
      EXPECT_NEAR(f, source, 1e-12 * std::abs(source));
      EXPECT_NEAR(sum.integral_u, expected.integral_u, 1e-12 * std::abs(expected.integral_u));
      EXPECT_NEAR(sum.energy, expected.energy, 1e-12 * expected.energy);
      EXPECT_NEAR(sum.volumes[0], expected.volumes.at(0), 1e-12);
      EXPECT_EQ(sum.min, expected.min);
      for (auto const& [id, flux] : expected.boundaries) {
        EXPECT_NEAR(sum.boundaries[id].area, flux.area, 1e-12);
        EXPECT_NEAR(sum.boundaries[id].flux, flux.flux, 1e-11 * expected.energy) << "boundary " << id;
      }
    }
  }
}

}  // namespace
}  // namespace poisson::assembly
