#include "assembly/space/nested_spaces.hpp"

#include "assembly/discretization.hpp"
#include "assembly/space/lattice_pieces.hpp"
#include "assembly/space/reference_element.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

/// Spaces inside that of a mesh of lattices, from what each rank has of them.
namespace poisson::assembly {

namespace {

ProblemSpec with_dirichlet_values(std::string const& generator, std::string const& arguments, int refinements, int order) {
  ProblemSpec spec;
  spec.mesh.generator = generator;
  spec.mesh.arguments = arguments;
  spec.mesh.refinements = refinements;
  spec.order = order;
  spec.coefficient = {{-1, {"1"}}};
  spec.source = "1";
  BoundaryCondition all;
  all.all_ids = true;
  all.type = BoundaryType::dirichlet;
  all.value = "0";
  spec.boundary = {all};
  return spec;
}

/// What a rank has, but for the places of ghosts.
struct Share {
  Share(ProblemSpec const& spec, int rank, int ranks) {
    CheckedProblem problem(spec);
    pieces = problem.share(rank, ranks);
    if (pieces->n_cells() > 0)
      around.emplace(std::move(problem));
  }
  [[nodiscard]] NestedLattices nested() const {
    return {pieces, [this](std::int64_t row) { return around->first_node(row); }, gauss_lobatto_points(pieces->pieces->order + 1)};
  }
  std::shared_ptr<OwnPieces const> pieces;
  std::optional<Discretization> around;
};

/// Rows of P by numbers in the whole mesh.
using Prolongation = std::map<std::int32_t, std::map<std::int32_t, double>>;

/// The rows of all ranks, of each space inside the one before. Tests that they and the columns belong to the ranks that they
/// should.
std::vector<Prolongation> joined(ProblemSpec const& spec, int ranks) {
  std::vector<std::vector<std::int32_t>> rows;  // of every rank their numbers
  std::vector<std::vector<NestedSpace>> spaces;
  std::map<std::int32_t, int> owner;
  for (int rank = 0; rank < ranks; ++rank) {
    Share const share(spec, rank, ranks);
    spaces.push_back(share.nested().make());
    EXPECT_EQ(spaces.back().size(), spaces.front().size());
    rows.emplace_back();
    for (std::int64_t i = 0; i < share.pieces->n_rows; ++i) {
      rows.back().push_back(share.pieces->number_of(share.around->first_node(i)));
      owner[rows.back().back()] = rank;
    }
  }
  std::vector<Prolongation> result(spaces.front().size());
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<std::int32_t> const& numbers = rows[static_cast<std::size_t>(rank)];
    std::vector<std::int32_t> larger = numbers;
    for (std::size_t l = 0; l < result.size(); ++l) {
      NestedSpace const& space = spaces[static_cast<std::size_t>(rank)][l];
      std::vector<std::int32_t> columns;
      for (std::int32_t const unknown : space.unknowns)
        columns.push_back(numbers[static_cast<std::size_t>(unknown)]);
      std::vector<std::int32_t> const smaller = columns;
      for (auto const& other : space.others) {
        EXPECT_EQ(owner.at(other.number), other.rank);
        EXPECT_NE(other.rank, rank);
        columns.push_back(other.number);
      }
      EXPECT_EQ(space.p.n_rows, std::ssize(larger));
      EXPECT_EQ(space.p.n_columns, std::ssize(columns));
      for (std::int64_t row = 0; row < space.p.n_rows; ++row) {
        auto& entries = result[l][larger[static_cast<std::size_t>(row)]];
        EXPECT_TRUE(entries.empty()) << "a row of two ranks";
        for (std::int64_t e = space.p.row_ptr[row]; e < space.p.row_ptr[row + 1]; ++e)
          entries[columns[static_cast<std::size_t>(space.p.columns[e])]] += space.p.values[e];
      }
      larger = smaller;
    }
  }
  return result;
}

std::set<std::int32_t> columns_of(Prolongation const& p) {
  std::set<std::int32_t> result;
  for (auto const& [row, entries] : p)
    for (auto const& [column, value] : entries)
      result.insert(column);
  return result;
}

}  // namespace

/// Nested spaces have as many unknowns as a mesh that is refined less often. The row of such an unknown has a 1 for itself only.
/// They go down to lattices of two cells a side.
TEST(NestedLattices, HaveTheUnknownsOfLargerCells) {
  for (auto const& [generator, arguments] : {std::pair<std::string, std::string>{"hyper_ball", ""},
                                             std::pair<std::string, std::string>{"hyper_shell", "0,0,0 : 0.5 : 1 : 6"},
                                             std::pair<std::string, std::string>{"torus", "1 : 0.3"}})
    for (int const order : {1, 2, 3}) {
      if (order == 3 && generator != "hyper_ball")
        continue;
      int refinements = 3;
      std::vector<Prolongation> const spaces = joined(with_dirichlet_values(generator, arguments, refinements, order), 3);
      ASSERT_EQ(spaces.size(), order == 1 ? 2U : 3U) << "of 8 cells a side those of 4 and 2";
      for (std::size_t l = 0; l < spaces.size(); ++l) {
        refinements -= order > 1 && l == 0 ? 0 : 1;
        std::set<std::int32_t> const columns = columns_of(spaces[l]);
        EXPECT_EQ(std::ssize(columns), CheckedProblem(with_dirichlet_values(generator, arguments, refinements, 1)).mesh().dofs)
            << generator << " of order " << order;
        for (std::int32_t const column : columns) {
          ASSERT_EQ(spaces[l].at(column).size(), 1U);
          ASSERT_EQ(spaces[l].at(column).at(column), 1);
          if (l + 1 < spaces.size()) {
            ASSERT_TRUE(spaces[l + 1].contains(column));
          }
        }
        if (l + 1 < spaces.size()) {
          ASSERT_EQ(spaces[l + 1].size(), columns.size());
        }
      }
    }
}

TEST(NestedLattices, AreThoseOfOneRank) {
  for (int const order : {1, 2}) {
    ProblemSpec const spec = with_dirichlet_values("hyper_shell", "0,0,0 : 0.5 : 1 : 12", 2, order);
    std::vector<Prolongation> const expected = joined(spec, 1);
    for (int const ranks : {2, 5, 8}) {
      std::vector<Prolongation> const found = joined(spec, ranks);
      ASSERT_EQ(found.size(), expected.size());
      for (std::size_t l = 0; l < found.size(); ++l)
        EXPECT_TRUE(found[l] == expected[l]) << ranks << " ranks, level " << l;
    }
  }
}

/// Cells of an L are cubes, so that x, y and z are trilinear functions on cells of every size.
TEST(NestedLattices, InterpolateLinearFunctions) {
  for (int const order : {1, 2}) {  // whose nodes are those of the output
    ProblemSpec const spec = with_dirichlet_values("hyper_L", "", 3, order);
    Discretization const discretization(spec);
    OutputMesh const mesh = discretization.output_mesh();
    auto const& points = std::get<NodeMesh>(mesh).points;
    std::vector<Prolongation> const spaces = joined(spec, 4);
    ASSERT_GE(spaces.size(), 2U);
    for (Prolongation const& p : spaces)
      for (auto const& [row, entries] : p)
        for (std::size_t d = 0; d < 3; ++d) {
          double sum = 0;
          for (auto const& [column, value] : entries)
            sum += value * points[3 * static_cast<std::size_t>(column) + d];
          ASSERT_NEAR(sum, points[3 * static_cast<std::size_t>(row) + d], 1e-14);
        }
  }
}

TEST(NestedLattices, AreNoneOnTheSmallestLattices) {
  Share const share(with_dirichlet_values("hyper_ball", "", 2, 1), 0, 2);
  EXPECT_EQ(share.nested().make().size(), 1U) << "of 4 cells a side, 2";
}

}  // namespace poisson::assembly
