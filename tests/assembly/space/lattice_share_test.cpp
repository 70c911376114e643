#include "assembly/discretization.hpp"
#include "assembly/space/space_partition.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

/// Shares of meshes of lattices, which no rank makes as a whole: their rows are those of the whole.
namespace poisson::assembly {

namespace {

ProblemSpec on_lattices(std::string const& generator, std::string const& arguments, int order, int refinements) {
  ProblemSpec spec;
  spec.mesh.generator = generator;
  spec.mesh.arguments = arguments;
  spec.mesh.refinements = refinements;
  spec.order = order;
  spec.coefficient = {{-1, {"1 + x*x + 0.5*y*y"}}};
  spec.source = "sin(3*x) + y*z";
  spec.mesh.boundaries = {{"top", "z > 0.3"}};
  spec.mesh.regions = {{"side", "x > 0.2"}};
  spec.source_of_name = {{"side", "1"}};
  BoundaryCondition top, rest;
  top.names = {"top"};
  top.type = BoundaryType::dirichlet;
  top.value = "x + 1";
  rest.all_ids = true;
  rest.type = BoundaryType::robin;
  rest.alpha = "2";
  rest.value = "z";
  spec.boundary = {top, rest};
  return spec;
}

std::vector<ProblemSpec> lattice_problems() {
  return {on_lattices("hyper_ball", "", 1, 2), on_lattices("hyper_ball", "", 2, 2),
          on_lattices("hyper_shell", "0,0,0 : 0.5 : 1 : 6", 1, 3), on_lattices("hyper_shell", "0,0,0 : 0.5 : 1 : 12", 3, 2)};
}

struct TestedShare {
  PartOfSpace part;
  std::optional<Discretization> around;
};

/// Makes the shares of all ranks, as the ranks do it one beside the other (app/domain/domain.cpp).
std::vector<TestedShare> lattice_shares(ProblemSpec const& spec, int ranks) {
  std::vector<CheckedProblem> problems;
  std::vector<TestedShare> shares;
  std::map<std::pair<int, int>, std::vector<double>> points;  // from a rank to another
  PlaceCounts all;
  all.boundaries.resize(1);
  all.regions.resize(1);
  for (int rank = 0; rank < ranks; ++rank) {
    CheckedProblem& problem = problems.emplace_back(spec);
    auto part = problem.share(rank, ranks);
    if (!part)
      throw std::logic_error("not a mesh of lattices");
    TestedShare share;
    share.part = std::move(*part);
    for (RankNeighbor const& neighbor : share.part.neighbors)
      points[{rank, neighbor.rank}] = problem.points_of_rows(neighbor.sent);
    shares.push_back(std::move(share));
  }
  for (int rank = 0; rank < ranks; ++rank) {
    CheckedProblem& problem = problems[static_cast<std::size_t>(rank)];
    PartOfSpace const& part = shares[static_cast<std::size_t>(rank)].part;
    std::vector<double> of_ghosts;
    for (RankNeighbor const& neighbor : part.neighbors)
      of_ghosts.insert(of_ghosts.end(), points[{neighbor.rank, rank}].begin(), points[{neighbor.rank, rank}].end());
    problem.set_points_of_ghosts(part.n_rows, of_ghosts);
    if (part.own_cells.empty())
      continue;
    PlaceCounts const counts = problem.places(part).counts;
    all.boundaries[0].held += counts.boundaries[0].held;
    all.regions[0].held += counts.regions[0].held;
    all.boundary_ids.insert(counts.boundary_ids.begin(), counts.boundary_ids.end());
    all.material_ids.insert(counts.material_ids.begin(), counts.material_ids.end());
  }
  for (std::size_t rank = 0; rank < shares.size(); ++rank) {
    problems[rank].set_places_of_whole(all);
    if (!shares[rank].part.around_cells.empty())
      shares[rank].around.emplace(std::move(problems[rank]));
  }
  return shares;
}

/// Who sends an unknown to whom, in order.
using Messages = std::map<std::pair<int, int>, std::vector<std::int32_t>>;

void add_messages(PartOfSpace const& part, int rank, Messages& sent, Messages& received) {
  auto ghost = part.unknowns.begin() + part.n_rows;
  for (RankNeighbor const& neighbor : part.neighbors) {
    for (std::int32_t const row : neighbor.sent)
      sent[{rank, neighbor.rank}].push_back(part.unknowns[static_cast<std::size_t>(row)]);
    received[{neighbor.rank, rank}].assign(ghost, ghost + neighbor.n_ghosts);
    ghost += neighbor.n_ghosts;
  }
  EXPECT_EQ(ghost, part.unknowns.end());
}

std::int64_t n_ghosts(PartOfSpace const& part) {
  return static_cast<std::int64_t>(part.unknowns.size()) - part.n_rows;
}

TEST(LatticeShares, AssembleTheRowsOfTheWhole) {
  for (ProblemSpec const& spec : lattice_problems()) {
    Discretization whole(spec);
    std::vector<double> const fixed = whole.dirichlet_values();
    LinearSystem const system = whole.assemble();
    double const scale = *std::max_element(system.matrix.values.begin(), system.matrix.values.end());
    for (int const ranks : {1, 3, 8}) {
      std::set<std::int32_t> rows, cells;
      std::int64_t n_cells = 0;
      Messages sent, received;
      std::vector<TestedShare> shares = lattice_shares(spec, ranks);
      for (int rank = 0; rank < ranks; ++rank) {
        TestedShare& share = shares[static_cast<std::size_t>(rank)];
        PartOfSpace const& part = share.part;
        n_cells += static_cast<std::int64_t>(part.own_cells.size());
        cells.insert(part.own_cells.begin(), part.own_cells.end());
        add_messages(part, rank, sent, received);
        std::vector<double> values;
        for (std::int32_t const unknown : part.unknowns)
          values.push_back(fixed[static_cast<std::size_t>(unknown)]);
        share.around->set_dirichlet_values(values);
        LinearSystem const found = share.around->assemble();
        for (std::int64_t i = 0; i < part.n_rows; ++i) {
          std::int64_t const row = part.unknowns[static_cast<std::size_t>(i)];
          ASSERT_TRUE(rows.insert(static_cast<std::int32_t>(row)).second) << "row " << row << " has two ranks";
          ASSERT_EQ(found.constraints.constrained(i), system.constraints.constrained(row));
          ASSERT_NEAR(found.rhs[static_cast<std::size_t>(i)], system.rhs[static_cast<std::size_t>(row)], 1e-12 * scale);
          std::map<std::int32_t, double> entries;
          for (auto e = found.matrix.row_ptr[i]; e < found.matrix.row_ptr[i + 1]; ++e)
            entries[part.unknowns[static_cast<std::size_t>(found.matrix.columns[e])]] = found.matrix.values[e];
          auto const first = system.matrix.row_ptr[row], end = system.matrix.row_ptr[row + 1];
          ASSERT_EQ(static_cast<std::int64_t>(entries.size()), end - first);
          for (auto e = first; e < end; ++e)
            ASSERT_NEAR(entries.at(system.matrix.columns[e]), system.matrix.values[e], 1e-12 * scale);
        }
      }
      EXPECT_EQ(static_cast<std::int64_t>(rows.size()), system.matrix.n_rows);
      EXPECT_EQ(static_cast<std::int64_t>(cells.size()), whole.summary().cells);
      EXPECT_EQ(n_cells, whole.summary().cells) << "every cell has one owner";
      EXPECT_EQ(sent, received) << "what a rank sends is what another takes for its ghosts, in that order";
    }
  }
}

TEST(LatticeShares, AreTheSameWhoeverMakesThem) {
  ProblemSpec const spec = on_lattices("hyper_ball", "", 1, 3);
  PartOfSpace const one = *CheckedProblem(spec).share(3, 5), other = *CheckedProblem(spec).share(3, 5);
  EXPECT_EQ(one.unknowns, other.unknowns);
  EXPECT_EQ(one.own_cells, other.own_cells);
}

TEST(LatticeShares, AreEqualInSizeWithLittleSurface) {
  ProblemSpec const spec = on_lattices("hyper_ball", "", 1, 4);
  Discretization const whole(spec);
  int const ranks = 8;
  std::int64_t most_rows = 0, ghosts = 0, of_cells = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    PartOfSpace const part = *CheckedProblem(spec).share(rank, ranks);
    most_rows = std::max(most_rows, part.n_rows);
    ghosts += n_ghosts(part);
    of_cells += n_ghosts(whole.divided(ranks).part(rank));
  }
  EXPECT_LT(static_cast<double>(most_rows), 1.25 * static_cast<double>(whole.summary().dofs) / ranks) << "rims go to first pieces";
  EXPECT_LT(static_cast<double>(ghosts), 1.4 * static_cast<double>(of_cells)) << "of METIS on all cells";
}

TEST(LatticeShares, LeaveRanksIdleWhereThereAreFewCells) {
  ProblemSpec const spec = on_lattices("hyper_ball", "", 1, 2);
  int const ranks = 460;  // and 448 cells
  std::set<std::int32_t> cells;
  std::int64_t rows = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    PartOfSpace const part = *CheckedProblem(spec).share(rank, ranks);
    cells.insert(part.own_cells.begin(), part.own_cells.end());
    rows += part.n_rows;
    if (rank == 0) {
      EXPECT_FALSE(part.own_cells.empty());
    }
    if (rank == ranks - 1) {
      EXPECT_TRUE(part.around_cells.empty());
    }
  }
  EXPECT_EQ(cells.size(), 448U);
  EXPECT_EQ(rows, CheckedProblem(spec).mesh().dofs);
}

TEST(LatticeShares, AreOfLatticesOnly) {
  ProblemSpec spec = on_lattices("hyper_ball", "", 1, 1);
  EXPECT_FALSE(CheckedProblem(spec).share(0, 2)) << "unknowns of small lattices are numbered otherwise";
}

}  // namespace

}  // namespace poisson::assembly
