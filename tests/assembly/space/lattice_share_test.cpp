#include "assembly/discretization.hpp"
#include "assembly/space/lattice_pieces.hpp"
#include "assembly/space/space_partition.hpp"
#include "gpu/elements/lattice_nodes.hpp"
#include "gpu/kernels/backends.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
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
  std::shared_ptr<OwnPieces const> pieces;
  std::optional<Discretization> around;

  /// The numbers in the whole mesh of own rows, then of ghosts.
  [[nodiscard]] std::vector<std::int32_t> unknowns() const {
    std::vector<std::int32_t> result;
    for (std::int64_t row = 0; row < pieces->n_rows; ++row)
      result.push_back(pieces->number_of(around->first_node(row)));
    result.insert(result.end(), pieces->ghosts.begin(), pieces->ghosts.end());
    return result;
  }
};

std::vector<std::int32_t> own_cells(OwnPieces const& pieces) {
  std::vector<std::int32_t> cells;
  for (std::int64_t cell = 0; cell < pieces.n_own_cells(); ++cell)
    cells.push_back(static_cast<std::int32_t>(pieces.cell_of_whole(cell)));
  return cells;
}

/// Makes the shares of all ranks, as the ranks do it one beside the other (app/domain/domain.cpp). `nodes`: of every rank, where
/// they are made on a device.
std::vector<TestedShare> lattice_shares(ProblemSpec const& spec, int ranks, std::vector<Array<double>>* nodes = nullptr,
                                        Context* device = nullptr) {
  std::vector<CheckedProblem> problems;
  std::vector<TestedShare> shares;
  std::map<std::pair<int, int>, std::vector<double>> points;  // from a rank to another
  PlaceCounts all;
  all.boundaries.resize(1);
  all.regions.resize(1);
  for (int rank = 0; rank < ranks; ++rank) {
    CheckedProblem& problem = problems.emplace_back(spec);
    TestedShare share;
    if (nodes == nullptr)
      share.pieces = problem.share(rank, ranks);
    else
      share.pieces = problem.share(rank, ranks, AssembledInto::half_cds_on_device_alone,
                                   [&](LatticesToFill const& lattices, std::span<double> of_sides) {
                                     nodes->at(static_cast<std::size_t>(rank)) = make_lattice_nodes(*device, lattices, of_sides);
                                     return true;
                                   });
    if (share.pieces == nullptr)
      throw std::logic_error("not a mesh of lattices");
    for (RankNeighbor const& neighbor : share.pieces->neighbors)
      points[{rank, neighbor.rank}] = problem.points_of_rows(neighbor.sent);
    shares.push_back(std::move(share));
  }
  for (int rank = 0; rank < ranks; ++rank) {
    CheckedProblem& problem = problems[static_cast<std::size_t>(rank)];
    OwnPieces const& part = *shares[static_cast<std::size_t>(rank)].pieces;
    std::vector<double> of_ghosts;
    for (RankNeighbor const& neighbor : part.neighbors)
      of_ghosts.insert(of_ghosts.end(), points[{neighbor.rank, rank}].begin(), points[{neighbor.rank, rank}].end());
    problem.set_points_of_ghosts(part.n_rows, of_ghosts);
    if (nodes != nullptr && nodes->at(static_cast<std::size_t>(rank)).size() > 0)
      place_lattice_nodes(*device, problem.lattices_of_pieces(), part.n_rows, of_ghosts, nodes->at(static_cast<std::size_t>(rank)));
    if (part.own.empty() || !spec.mesh.has_places())
      continue;
    PlaceCounts const counts = problem.places().counts;
    all.boundaries[0].held += counts.boundaries[0].held;
    all.regions[0].held += counts.regions[0].held;
    all.boundary_ids.insert(counts.boundary_ids.begin(), counts.boundary_ids.end());
    all.material_ids.insert(counts.material_ids.begin(), counts.material_ids.end());
  }
  for (std::size_t rank = 0; rank < shares.size(); ++rank) {
    if (spec.mesh.has_places())
      problems[rank].set_places_of_whole(all);
    if (shares[rank].pieces->n_cells() > 0)
      shares[rank].around.emplace(std::move(problems[rank]));
  }
  return shares;
}

/// Who sends an unknown to whom, in order.
using Messages = std::map<std::pair<int, int>, std::vector<std::int32_t>>;

void add_messages(TestedShare const& share, int rank, Messages& sent, Messages& received) {
  std::vector<std::int32_t> const unknowns = share.unknowns();
  auto ghost = unknowns.begin() + share.pieces->n_rows;
  for (RankNeighbor const& neighbor : share.pieces->neighbors) {
    for (std::int32_t const row : neighbor.sent)
      sent[{rank, neighbor.rank}].push_back(unknowns[static_cast<std::size_t>(row)]);
    received[{neighbor.rank, rank}].assign(ghost, ghost + neighbor.n_ghosts);
    ghost += neighbor.n_ghosts;
  }
  EXPECT_EQ(ghost, unknowns.end());
}

TEST(LatticeShares, LeaveNodesInsideOfPieces) {
  auto const context = make_context(Backend::cpu);
  for (int const order : {1, 2})
    for (int const ranks : {2, 5}) {
      ProblemSpec spec = on_lattices("hyper_ball", "", order, 3);
      spec.mesh.boundaries.clear();
      spec.mesh.regions.clear();
      spec.source_of_name.clear();
      spec.boundary.erase(spec.boundary.begin());
      std::vector<Array<double>> nodes(static_cast<std::size_t>(ranks));
      std::vector<TestedShare> all = lattice_shares(spec, ranks), left = lattice_shares(spec, ranks, &nodes, context.get());
      for (auto* const shares : {&all, &left})
        for (TestedShare& share : *shares)
          share.around->set_dirichlet_on_rims(share.around->dirichlet_on_rims());
      std::map<std::int32_t, std::array<double, 3>> points;  // by number in the whole
      for (std::size_t rank = 0; rank < left.size(); ++rank) {
        LatticeProblem const problem = left[rank].around->lattice_problem_of_pieces(),
                             with = all[rank].around->lattice_problem_of_pieces();
        ASSERT_TRUE(problem.make_coordinates);
        HostVector<double> const made = problem.make_coordinates(0, problem.layout.n_lattices);
        HostVector<double> on_device(made.size());
        nodes[rank].download(std::span<double>(on_device));
        ASSERT_EQ(made.size(), with.coordinates->size());
        for (std::size_t i = 0; i < made.size(); ++i) {
          ASSERT_NEAR(made[i], (*with.coordinates)[i], 1e-14);
          ASSERT_NEAR(made[i], on_device[i], 1e-14);
        }
        for (std::size_t i = 0; i < problem.rim_load.size(); ++i)
          ASSERT_NEAR(problem.rim_load[i], with.rim_load[i], 1e-14);
        LatticeRim const rim = problem.layout.rim();
        std::int64_t const m = problem.layout.nodes();
        std::vector<std::int32_t> const unknowns = left[rank].unknowns();
        for (std::int64_t place = 0; place < std::ssize(problem.layout.tables->rim_unknowns); ++place) {
          LatticeRim::Node const at = rim.node(place % rim.size());
          std::array<double, 3> x{};
          for (std::size_t d = 0; d < 3; ++d)
            x[d] = on_device[static_cast<std::size_t>((3 * (place / rim.size()) + static_cast<std::int64_t>(d)) * m * m * m +
                                                      (at.k * m + at.j) * m + at.i)];
          std::int32_t const unknown = problem.layout.tables->rim_unknowns[static_cast<std::size_t>(place)];
          auto const known = points.emplace(unknowns[static_cast<std::size_t>(unknown)], x).first;
          ASSERT_EQ(x, known->second) << "all copies on all ranks have the same bits";
          ASSERT_EQ(left[rank].around->point(unknown), x);
        }
        for (std::int64_t unknown = left[rank].pieces->n_rows; unknown < std::ssize(unknowns); ++unknown)
          ASSERT_EQ(left[rank].around->point(unknown),
                    points.emplace(unknowns[static_cast<std::size_t>(unknown)], left[rank].around->point(unknown)).first->second);
      }
    }
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
        std::vector<std::int32_t> const unknowns = share.unknowns(), own = own_cells(*share.pieces);
        n_cells += share.pieces->n_own_cells();
        cells.insert(own.begin(), own.end());
        add_messages(share, rank, sent, received);
        std::vector<double> values;
        for (std::int32_t const unknown : unknowns)
          values.push_back(fixed[static_cast<std::size_t>(unknown)]);
        share.around->set_dirichlet_values(values);
        LinearSystem const found = share.around->assemble();
        for (std::int64_t i = 0; i < share.pieces->n_rows; ++i) {
          std::int64_t const row = unknowns[static_cast<std::size_t>(i)];
          ASSERT_TRUE(rows.insert(static_cast<std::int32_t>(row)).second) << "row " << row << " has two ranks";
          ASSERT_EQ(found.constraints.constrained(i), system.constraints.constrained(row));
          ASSERT_NEAR(found.rhs[static_cast<std::size_t>(i)], system.rhs[static_cast<std::size_t>(row)], 1e-12 * scale);
          std::map<std::int32_t, double> entries;
          for (auto e = found.matrix.row_ptr[i]; e < found.matrix.row_ptr[i + 1]; ++e)
            entries[unknowns[static_cast<std::size_t>(found.matrix.columns[e])]] = found.matrix.values[e];
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

/// Nodes have the bits of their first copy, wherever a rank looks for them; unknowns of own pieces are found by their numbers.
TEST(LatticeShares, HaveTheNodesOfTheWhole) {
  for (ProblemSpec const& spec : lattice_problems()) {
    Discretization const whole(spec);
    for (int const ranks : {2, 7}) {
      std::map<std::int32_t, std::array<double, 3>> nodes;
      for (TestedShare const& share : lattice_shares(spec, ranks)) {
        std::vector<std::int32_t> const unknowns = share.unknowns();
        for (std::int64_t i = 0; i < std::ssize(unknowns); ++i) {
          std::int32_t const number = unknowns[static_cast<std::size_t>(i)];
          auto const x = share.around->point(i), expected = whole.point(number);
          for (std::size_t d = 0; d < 3; ++d)
            ASSERT_NEAR(x[d], expected[d], 1e-10);
          ASSERT_EQ(nodes.emplace(number, x).first->second, x) << "on all ranks";
        }
        Discretization const own(*share.around, *share.pieces);
        for (std::int64_t i = 0; i < share.pieces->n_in_pieces(); ++i)
          ASSERT_EQ(own.point(i), share.around->point(share.pieces->in_pieces(i)));
      }
    }
  }
}

TEST(LatticeShares, AreTheSameWhoeverMakesThem) {
  ProblemSpec const spec = on_lattices("hyper_ball", "", 1, 3);
  std::vector<TestedShare> const one = lattice_shares(spec, 5), other = lattice_shares(spec, 5);
  EXPECT_EQ(one[3].unknowns(), other[3].unknowns());
  EXPECT_EQ(own_cells(*one[3].pieces), own_cells(*other[3].pieces));
}

TEST(LatticeShares, AreEqualInSizeWithLittleSurface) {
  ProblemSpec const spec = on_lattices("hyper_ball", "", 1, 4);
  Discretization const whole(spec);
  int const ranks = 8;
  std::int64_t most_rows = 0, ghosts = 0, of_cells = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    auto const pieces = CheckedProblem(spec).share(rank, ranks);
    most_rows = std::max(most_rows, pieces->n_rows);
    ghosts += std::ssize(pieces->ghosts);
    PartOfSpace const part = whole.divided(ranks).part(rank);
    of_cells += std::ssize(part.unknowns) - part.n_rows;
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
    auto const pieces = CheckedProblem(spec).share(rank, ranks);
    std::vector<std::int32_t> const own = own_cells(*pieces);
    cells.insert(own.begin(), own.end());
    rows += pieces->n_rows;
    if (rank == 0) {
      EXPECT_FALSE(own.empty());
    }
    if (rank == ranks - 1) {
      EXPECT_EQ(pieces->n_cells(), 0);
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
