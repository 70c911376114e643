#include "gpu/elements/box_system.hpp"
#include "gpu/formats/rank_matrix.hpp"
#include "gpu/preconditioners/options.hpp"
#include "gpu/solvers/solver.hpp"
#include "gpu/solvers/true_residual.hpp"
#include "tests/gpu/cases.hpp"
#include "tests/gpu/elements/functions.hpp"
#include "tests/gpu/matrices.hpp"

#include <gtest/gtest.h>

#include <map>
#include <utility>

/// Boxes that repeat themselves, whose sides are joined where they are assembled. Truth is C^T A C, by plain loops, with the matrix
/// A of the same box whose sides are free.
namespace poisson::testing {

namespace {

using Type = BoxProblem::Face::Type;
using Counts = std::array<std::int64_t, 3>;
using Entries = std::map<std::pair<std::int64_t, std::int64_t>, double>;

struct Periodic {
  Counts cells;
  std::array<bool, 3> directions;
  std::array<Type, 6> others;  ///< of sides in other directions
  bool graded = false;
  std::array<double, 3> jump{};

  [[nodiscard]] RankBlocks blocks() const {
    RankBlocks result;
    for (std::size_t d = 0; d < 3; ++d)
      result.nodes[d] = cells[d] + 1;
    result.periodic = directions;
    result.own = {result.whole()};
    return result;
  }
  [[nodiscard]] bool holds_first() const {
    bool anchored = false;
    for (std::size_t face = 0; face < 6; ++face)
      anchored = anchored || (!directions[face / 2] && others[face] != Type::neumann);
    return !anchored;
  }
};

constexpr std::array<Type, 6> free_sides{Type::neumann, Type::neumann, Type::neumann, Type::neumann, Type::neumann, Type::neumann};
constexpr std::array<Type, 6> fixed_sides{Type::dirichlet, Type::dirichlet, Type::dirichlet,
                                          Type::dirichlet, Type::dirichlet, Type::dirichlet};
constexpr std::array<Type, 6> mixed_sides{Type::robin, Type::dirichlet, Type::dirichlet,
                                          Type::robin, Type::neumann,   Type::dirichlet};

/// With `joined` sides, or with free ones. Dirichlet values fit the jumps.
BoxProblem problem_of(Periodic const& box, bool joined) {
  BoxProblem problem{box.cells, {0.5, -1, 0}, {1.5, 1, 2}, {polynomial(1, 0.25, 2).code}, sine(2, 3).code, {}};
  if (box.graded)
    for (std::size_t d = 0; d < 3; ++d) {
      double at = problem.origin[d];
      for (std::int64_t i = 0; i <= box.cells[d]; ++i) {
        problem.coordinates[d].push_back(at);
        at += 1.0 + 0.25 * static_cast<double>((i * 7) % 3);
      }
      double const scale = problem.extent[d] / (problem.coordinates[d].back() - problem.origin[d]);
      for (double& x : problem.coordinates[d])
        x = problem.origin[d] + (x - problem.origin[d]) * scale;
    }
  // 0.75 at the first corner, and higher by the jumps at the last nodes.
  ExpressionCode fitting = constant(0.75).code;
  for (std::size_t d = 0; d < 3; ++d)
    if (box.directions[d])
      for (Instruction const& i :
           {Instruction(std::array{Op::x, Op::y, Op::z}[d]), Instruction(Op::constant, -problem.origin[d]), Instruction(Op::add),
            Instruction(Op::constant, box.jump[d] / problem.extent[d]), Instruction(Op::multiply), Instruction(Op::add)})
        fitting.push_back(i);
  for (std::size_t face = 0; face < 6; ++face) {
    bool const periodic = box.directions[face / 2];
    problem.faces[face] = {periodic ? (joined ? Type::periodic : Type::neumann) : box.others[face], static_cast<int>(face),
                           periodic ? constant(joined && face % 2 == 1 ? box.jump[face / 2] : 0).code : fitting, constant(2).code};
  }
  return problem;
}

std::vector<Periodic> periodic_boxes() {
  std::vector<Periodic> result;
  for (int subset = 1; subset < 8; ++subset)
    for (auto const& others : {free_sides, fixed_sides, mixed_sides})
      for (Counts const& cells : {Counts{3, 4, 5}, Counts{6, 3, 4}})
        result.push_back({cells,
                          {(subset & 1) != 0, (subset & 2) != 0, (subset & 4) != 0},
                          others,
                          subset % 2 == 0,
                          others == fixed_sides ? std::array{0., 0., 0.} : std::array{0.5, -2., 1.}});
  return result;
}

struct Folded {
  Entries entries;
  std::vector<double> b;
};

/// C^T A C and C^T (f - A g), where tied nodes keep their diagonal entries.
Folded folded(CsrMatrix const& a, std::span<double const> f, Periodic const& box) {
  RankBlocks const blocks = box.blocks();
  auto const jump_at = [&](std::int64_t number) {
    auto const node = blocks.whole().node(number);
    double jump = 0;
    for (std::size_t d = 0; d < 3; ++d)
      jump += box.directions[d] && node[d] == box.cells[d] ? box.jump[d] : 0;
    return jump;
  };
  // A Dirichlet value is none of the unknowns that have jumps: its column is empty.
  auto const has_value = [&](std::int64_t number) {
    auto const node = blocks.whole().node(number);
    for (std::size_t face = 0; face < 6; ++face)
      if (!box.directions[face / 2] && box.others[face] == Type::dirichlet &&
          node[face / 2] == (face % 2 == 0 ? 0 : box.cells[face / 2]))
        return true;
    return false;
  };
  Folded result{{}, std::vector<double>(static_cast<std::size_t>(a.n_rows), 0.0)};
  for (std::int64_t row = 0; row < a.n_rows; ++row) {
    std::int64_t const to = blocks.root(row);
    result.b[static_cast<std::size_t>(to)] += f[static_cast<std::size_t>(row)];
    for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e) {
      std::int64_t const column = a.columns[e];
      if (!has_value(row) && !has_value(column))
        result.b[static_cast<std::size_t>(to)] -= a.values[e] * jump_at(column);
      std::int64_t const in = blocks.root(column);
      bool const is_held = box.holds_first() && to != in && (to == 0 || in == 0);
      result.entries[{to, in}] += is_held ? 0 : a.values[e];
      if (row == column && row != to)
        result.entries[{row, row}] = a.values[e];
    }
  }
  return result;
}

struct Joined {
  std::unique_ptr<RankMatrix> matrix;
  std::vector<double> b;
  std::int64_t nnz = 0;
};

Joined joined_box(Context& context, Periodic const& box) {
  BoxSystem system(context, problem_of(box, true));
  Joined result;
  result.nnz = system.nnz();
  result.matrix = std::make_unique<RankMatrix>(system.take_matrix(), system.take_rim(), std::vector<RankNeighbor>{}, alone());
  HostVector<double> const b = system.take_rhs().take_host();
  result.b.assign(b.begin(), b.end());
  return result;
}

Entries entries_of(RankMatrix const& a) {
  Entries result;
  CsrMatrix const local = a.local().to_csr(), couplings = a.couplings();
  HostVector<std::int32_t> const rim = a.rim();
  for (std::int64_t row = 0; row < local.n_rows; ++row)
    for (std::int64_t e = local.row_ptr[row]; e < local.row_ptr[row + 1]; ++e)
      result[{row, local.columns[e]}] = local.values[e];
  for (std::int64_t row = 0; row < couplings.n_rows; ++row)
    for (std::int64_t e = couplings.row_ptr[row]; e < couplings.row_ptr[row + 1]; ++e) {
      auto const [entry, is_new] =
          result.emplace(std::pair<std::int64_t, std::int64_t>(rim[static_cast<std::size_t>(row)],
                                                               a.own_columns()[static_cast<std::size_t>(couplings.columns[e])]),
                         couplings.values[e]);
      EXPECT_TRUE(is_new);
    }
  return result;
}

std::string text_of(Periodic const& box) {
  std::string text;
  for (std::size_t d = 0; d < 3; ++d)
    text += std::to_string(box.cells[d]) + (box.directions[d] ? "p " : " ");
  return text;
}

}  // namespace

template <class B>
class PeriodicBoxes : public OnBackend<B::value> {};
TYPED_TEST_SUITE(PeriodicBoxes, Backends, BackendNames);

TYPED_TEST(PeriodicBoxes, HaveTheRowsOfFreeSidesAddedUp) {
  for (Periodic const& box : periodic_boxes()) {
    SCOPED_TRACE(text_of(box));
    BoxSystem free(*this->context, problem_of(box, false));
    CsrMatrix const a = free.matrix().to_csr();
    HostVector<double> const f = free.take_rhs().take_host();
    Folded const expected = folded(a, f, box);
    Joined const found = joined_box(*this->context, box);
    Entries const entries = entries_of(*found.matrix);
    ASSERT_EQ(entries.size(), expected.entries.size());
    EXPECT_EQ(found.nnz, std::ssize(entries));
    for (auto const& [place, value] : entries) {
      auto const of_sum = expected.entries.find(place);
      ASSERT_NE(of_sum, expected.entries.end()) << place.first << ", " << place.second;
      EXPECT_NEAR(value, of_sum->second, 1e-13) << place.first << ", " << place.second;
      auto const other = entries.find({place.second, place.first});
      ASSERT_NE(other, entries.end());
      EXPECT_EQ(value, other->second);  // to the last bit
    }
    for (std::size_t i = 0; i < found.b.size(); ++i)
      EXPECT_NEAR(found.b[i], expected.b[i], 1e-12) << i;
  }
}

TYPED_TEST(PeriodicBoxes, MultiplyAndVerify) {
  for (Periodic const& box : periodic_boxes()) {
    SCOPED_TRACE(text_of(box));
    Joined const system = joined_box(*this->context, box);
    RankMatrix const& a = *system.matrix;
    std::int64_t const n = a.n_rows();
    auto const x = random_vector(n, 3);
    auto low = random_vector(n, 4);
    for (double& v : low)
      v *= 1e-17;
    std::vector<double> expected(static_cast<std::size_t>(n), 0.0);
    for (auto const& [place, value] : entries_of(a))
      expected[static_cast<std::size_t>(place.first)] += value * x[static_cast<std::size_t>(place.second)];
    Array<double> const u(*this->context, std::span<double const>(x));
    Array<double> y(*this->context, n), dot(*this->context, 1);
    Array<std::int32_t> running(*this->context, 1);
    running.set_zero();
    a.product_dot(u.data(), y.data(), dot.data(), running.data());
    std::vector<double> found(static_cast<std::size_t>(n));
    y.download(std::span<double>(found));
    double of_host = 0, of_backend = 0;
    dot.download(std::span<double>(&of_backend, 1));
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_NEAR(found[i], expected[i], 1e-12) << i;
      of_host += x[i] * expected[i];
    }
    EXPECT_NEAR(of_backend, of_host, 1e-11);
    Field const b(HostVector<double>(system.b.begin(), system.b.end()));
    Field const r = stored_residual(a.local(), a.formulas_of_rim(), a.stored_couplings(), b, Field(a.with_columns(u)),
                                    Field(a.with_columns(Array<double>(*this->context, std::span<double const>(low)))));
    for (std::size_t i = 0; i < found.size(); ++i)
      EXPECT_NEAR(r.host()[i], system.b[i] - expected[i], 1e-12) << i;
  }
}

TYPED_TEST(PeriodicBoxes, AreSolvedByMultigridInFewIterations) {
  std::vector<Periodic> const list{{{24, 16, 20}, {true, true, true}, free_sides},
                                   {{16, 12, 10}, {true, false, true}, fixed_sides},
                                   {{12, 24, 16}, {false, true, false}, mixed_sides, true},
                                   {{16, 16, 15}, {true, true, false}, free_sides},
                                   {{7, 8, 9}, {true, true, true}, free_sides},
                                   {{4, 4, 4}, {true, true, true}, free_sides}};
  for (Periodic const& box : list) {
    SCOPED_TRACE(text_of(box));
    Joined system = joined_box(*this->context, box);
    if (box.holds_first())
      system.b[0] = 0;
    Array<double> const b(*this->context, std::span<double const>(system.b));
    auto const solved = [&](PreconditionerKind kind, std::int64_t most) {
      SolverOptions options;
      options.preconditioner = kind;
      options.tolerance = 1e-11;
      options.blocks = std::make_shared<RankBlocks const>(box.blocks());
      options.multigrid.coarse_size = 40;
      Array<double> x, x_low;
      SolverResult const result = solve(*system.matrix, b, x, x_low, options);
      EXPECT_EQ(result.status, SolverStatus::converged) << result.reason;
      EXPECT_LE(result.iterations, most);
      std::vector<double> host(system.b.size());
      x.download(std::span<double>(host));
      return host;
    };
    auto const expected = solved(PreconditionerKind::jacobi, 1000), found = solved(PreconditionerKind::multigrid, 14);
    double largest = 0;
    for (double const value : expected)
      largest = std::max(largest, std::abs(value));
    for (std::size_t i = 0; i < found.size(); ++i)
      EXPECT_NEAR(found[i], expected[i], 1e-8 * largest) << i;
  }
}

}  // namespace poisson::testing
