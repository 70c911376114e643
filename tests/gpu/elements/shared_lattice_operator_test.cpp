#include "gpu/core/csr_entries.hpp"
#include "gpu/elements/lattice_operator.hpp"
#include "gpu/elements/lattice_rows.hpp"
#include "gpu/elements/lattice_system.hpp"
#include "gpu/elements/order_one.hpp"
#include "gpu/formats/rank_matrix.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/solvers/solver.hpp"
#include "gpu/solvers/true_residual.hpp"
#include "tests/gpu/elements/lattice_reference.hpp"
#include "tests/gpu/rank_devices.hpp"
#include "tests/gpu/shared_lattices.hpp"
#include "tests/gpu/thread_ranks.hpp"

#include <cmath>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <utility>
#include <vector>

/// Matrix-free operators on lattices that ranks share, against dense element matrices and against one rank.
namespace poisson::testing {

namespace {

struct SharedMesh {
  LatticeMesh mesh;
  std::vector<int> rank_of;  ///< by lattice

  [[nodiscard]] int n_ranks() const { return 1 + *std::max_element(rank_of.begin(), rank_of.end()); }
  [[nodiscard]] std::string text() const {
    return "order " + std::to_string(mesh.order) + ", " + std::to_string(rank_of.size()) + " lattices of " +
           std::to_string(mesh.cells) + " cells";
  }
};

/// On one cell every node is in the tables.
LatticeMesh mesh_of_order(std::int32_t order, std::array<std::int64_t, 3> const& lattices, std::int32_t cells) {
  LatticeMesh mesh{lattices, cells, {{polynomial(2, 1, 1)}, {sine(3, 1)}}, sine(0.1, 5)};
  mesh.order = order;
  mesh.isoparametric = order > 1;
  mesh.all_on_rim = cells == 1;
  return mesh;
}

std::vector<SharedMesh> shared_meshes() {
  std::vector<SharedMesh> result;
  result.push_back({mesh_of_order(1, {2, 2, 1}, 4), {0, 1, 1, 0}});
  result.push_back({mesh_of_order(2, {2, 1, 1}, 4), {0, 1}});
  result.push_back({mesh_of_order(2, {2, 2, 1}, 4), {0, 1, 1, 0}});  // own unknowns that meet in another rank's lattice only
  result.push_back({mesh_of_order(2, {3, 1, 2}, 4), {0, 1, 2, 2, 0, 1}});
  result.push_back({mesh_of_order(3, {2, 1, 2}, 4), {1, 0, 0, 2}});
  result.push_back({mesh_of_order(4, {1, 2, 1}, 4), {1, 0}});
  result.push_back({mesh_of_order(2, {3, 2, 1}, 4), {4, 3, 2, 1, 0, 0}});
  // Cells of a box.
  result.push_back({mesh_of_order(2, {4, 3, 2}, 1), {0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1}});
  result.push_back({mesh_of_order(3, {3, 1, 2}, 1), {0, 1, 2, 0, 1, 2}});
  result.push_back({mesh_of_order(4, {2, 1, 1}, 1), {0, 1}});
  return result;
}

/// The problem of some lattices; unknowns on their rims as `share` numbers them.
LatticeProblem part_of(LatticeProblem const& whole, test::ShareOfBox const& share) {
  LatticeProblem part;
  part.isoparametric = whole.isoparametric;
  part.layout = share.lattices.layout;
  part.coefficients = whole.coefficients;
  part.sources = whole.sources;
  std::int64_t const m = part.layout.nodes(), of_lattice = 3 * m * m * m, n = part.layout.cells, p1 = part.layout.order + 1,
                     of_face = n * n * p1 * p1;
  HostVector<double> coordinates;
  for (std::size_t l = 0; l < share.own.size(); ++l) {
    std::int64_t const of = share.own[l];
    coordinates.insert(coordinates.end(), whole.coordinates->begin() + of * of_lattice,
                       whole.coordinates->begin() + (of + 1) * of_lattice);
    part.material.push_back(whole.material[static_cast<std::size_t>(of)]);
    for (std::size_t face = 0; face < 6; ++face)
      if (auto const found = std::find(whole.mass_faces.begin(), whole.mass_faces.end(),
                                       static_cast<std::int32_t>(6 * static_cast<std::size_t>(of) + face));
          found != whole.mass_faces.end()) {
        std::int64_t const number = found - whole.mass_faces.begin();
        part.mass_faces.push_back(static_cast<std::int32_t>(6 * l + face));
        part.face_mass.insert(part.face_mass.end(), whole.face_mass.begin() + number * of_face,
                              whole.face_mass.begin() + (number + 1) * of_face);
      }
  }
  part.coordinates = std::make_shared<HostVector<double> const>(std::move(coordinates));
  std::int64_t const n_inner = whole.layout.n_inner();
  auto const add = [&](std::int32_t unknown, bool own) {
    bool const is_inner = unknown < n_inner;  // of another rank's lattice, in a cell with own unknowns
    auto const on_rim = static_cast<std::size_t>(is_inner ? 0 : unknown - n_inner);
    part.fixed.push_back(is_inner ? 0 : whole.fixed[on_rim]);
    part.fixed_value.push_back(is_inner ? 0 : whole.fixed_value[on_rim]);
    part.rim_load.push_back(own ? whole.rim_load[on_rim] : 0);
  };
  for (std::int64_t row = part.layout.n_inner(); row < share.lattices.n_rows; ++row)
    add(share.rows[static_cast<std::size_t>(row)], true);
  for (std::int32_t const ghost : share.ghosts)
    add(ghost, false);
  return part;
}

struct RankOperator {
  test::ShareOfBox share;
  LatticeProblem problem;
  std::unique_ptr<RankMatrix> matrix;
  HostVector<double> rhs;
};
RankOperator rank_operator(SharedMesh const& which, LatticeReference const& of, Communicator& ranks, Context& context) {
  RankOperator result;
  result.share = test::share_of(of.box, which.rank_of, ranks.rank());
  result.problem = part_of(of.problem, result.share);
  LatticeSystem system(context, result.problem, Format::matrix_free);
  auto lattices = std::make_shared<SharedLattices>(result.share.lattices);
  Field const rhs = system.take_rhs();
  BlockSystem block = rows_of_lattices(ranks, lattices, system.take_matrix(), rhs, result.problem.fixed);
  result.rhs = block.rhs.take_host();
  result.matrix = std::make_unique<RankMatrix>(std::move(block.local), lattices, ranks);
  return result;
}

double sine_of(std::int64_t i) {
  return std::sin(static_cast<double>(7 * i % 1001));
}

void test_products(SharedMesh const& which, LatticeReference const& of, Communicator& ranks, Context& context) {
  RankOperator const rank = rank_operator(which, of, ranks, context);
  RankMatrix const& matrix = *rank.matrix;
  CsrMatrix const csr = of.csr();
  auto const n = static_cast<std::size_t>(csr.n_rows);
  std::vector<double> x(n), expected(n, 0.0), size(n, 0.0), diagonal(n);
  for (std::size_t i = 0; i < n; ++i)
    x[i] = sine_of(static_cast<std::int64_t>(i));
  double dot_of_whole = 0;
  for (std::size_t i = 0; i < n; ++i) {
    for (auto e = static_cast<std::size_t>(csr.row_ptr[i]); e < static_cast<std::size_t>(csr.row_ptr[i + 1]); ++e) {
      auto const column = static_cast<std::size_t>(csr.columns[e]);
      expected[i] += csr.values[e] * x[column];
      size[i] += std::abs(csr.values[e] * x[column]);
      if (column == i)
        diagonal[i] = csr.values[e];
    }
    dot_of_whole += x[i] * expected[i];
  }
  auto const& rows = rank.share.rows;
  std::vector<double> mine;
  for (std::int32_t const unknown : rows)
    mine.push_back(x[static_cast<std::size_t>(unknown)]);
  std::vector<double> const none(mine.size(), std::nan(""));
  Array<double> const x_here(context, std::span<double const>(mine));
  Array<double> y(context, std::span<double const>(none)), dot(context, 1);
  std::int32_t const running = 0;
  Array<std::int32_t> const go_on(context, std::span<std::int32_t const>(&running, 1));
  auto const expect_rows = [&](std::vector<double> const& of_whole, double factor, std::string const& what) {
    std::vector<double> found(mine.size());
    y.download(found);
    for (std::size_t row = 0; row < found.size(); ++row) {
      auto const unknown = static_cast<std::size_t>(rows[row]);
      ASSERT_NEAR(found[row], factor * of_whole[unknown], 1e-12 * (size[unknown] + diagonal[unknown]))
          << what << " of " << which.text() << ", rank " << ranks.rank() << ", row " << row;
    }
  };
  matrix.product(2.0, x_here.data(), 0.0, y.data());  // whatever y was
  expect_rows(expected, 2, "product");
  matrix.product(-1.0, x_here.data(), 0.5, y.data());
  expect_rows(expected, 0, "product with beta");
  matrix.product_dot(x_here.data(), y.data(), dot.data(), go_on.data());
  expect_rows(expected, 1, "product with dot");
  std::vector<double> found(1);
  dot.download(found);
  EXPECT_NEAR(sum_over(ranks, found[0]), dot_of_whole, 1e-11 * std::abs(dot_of_whole)) << which.text();
  matrix.diagonal(y.data());
  expect_rows(diagonal, 1, "diagonal");

  // Products in double-double are checked too.
  auto const n_mine = std::ssize(mine);
  Vector<DoubleDouble> wide_x(context, n_mine), wide_y(context, n_mine);
  wide_x.upload(std::span<double const>(mine));
  matrix.product(DoubleDouble(1), wide_x.data(), DoubleDouble(0), wide_y.data());
  std::vector<double> high(mine.size()), low(mine.size());
  wide_y.download(high, low);
  y.upload(std::span<double const>(high));
  expect_rows(expected, 1, "product in double-double");
  // The residual is made by other loops: with b = A x it is what the product in double-double is rounded by.
  auto const& local = dynamic_cast<LatticeOperator const&>(matrix.local());
  std::vector<double> whole_x = mine;
  for (std::int32_t const ghost : rank.share.ghosts)
    whole_x.push_back(x[static_cast<std::size_t>(ghost)]);
  std::vector<double> r(mine.size());
  StoredResidualCheck(local).residual(whole_x, {}, high, r);
  for (std::size_t row = 0; row < r.size(); ++row)
    ASSERT_NEAR(r[row], -low[row], 1e-27 * size[static_cast<std::size_t>(rows[row])]) << which.text() << ", row " << row;

  // Rows by entries, and the right-hand side.
  CsrMatrix const own = matrix.rows_of_lattices();
  ASSERT_EQ(own.n_rows, n_mine);
  std::vector<std::int32_t> unknowns = rows;
  unknowns.insert(unknowns.end(), rank.share.ghosts.begin(), rank.share.ghosts.end());
  for (std::size_t row = 0; row < mine.size(); ++row) {
    auto const& of_row = of.rows[static_cast<std::size_t>(rows[row])];
    ASSERT_EQ(own.row_ptr[row + 1] - own.row_ptr[row], std::ssize(of_row)) << which.text() << ", row " << row;
    for (auto e = static_cast<std::size_t>(own.row_ptr[row]); e < static_cast<std::size_t>(own.row_ptr[row + 1]); ++e) {
      auto const match = of_row.find(unknowns[static_cast<std::size_t>(own.columns[e])]);
      ASSERT_NE(match, of_row.end());
      ASSERT_NEAR(own.values[e], match->second, 1e-12 * diagonal[static_cast<std::size_t>(rows[row])]);
    }
    ASSERT_NEAR(rank.rhs[row], of.rhs[static_cast<std::size_t>(rows[row])], 1e-11) << which.text() << ", row " << row;
  }
}

/// Elements of order 1 on the cells of a box, by rows: own vertices in the order of own unknowns.
std::unique_ptr<RankMatrix> rows_of_order_one(SharedMesh const& which, LatticeReference const& of, Communicator& ranks,
                                              Context& context) {
  std::vector<std::int32_t> vertex_of;  // by unknown
  static_cast<void>(layout_of_vertices(of.problem.layout.view(), &vertex_of));
  auto const host = make_context(Backend::cpu);
  CsrMatrix const by_vertex = LatticeSystem(*host, with_order_one(of.problem), Format::matrix_free).take_matrix()->to_csr();
  std::vector<std::int64_t> first{0};
  std::vector<std::int32_t> vertices, row_of(static_cast<std::size_t>(by_vertex.n_rows));
  for (int rank = 0; rank < ranks.size(); ++rank) {
    for (std::int32_t const unknown : test::share_of(of.box, which.rank_of, rank).rows)
      if (std::int32_t const vertex = vertex_of[static_cast<std::size_t>(unknown)]; vertex >= 0) {
        row_of[static_cast<std::size_t>(vertex)] = static_cast<std::int32_t>(vertices.size());
        vertices.push_back(vertex);
      }
    first.push_back(std::ssize(vertices));
  }
  std::vector<MatrixEntry> entries;
  for (std::int32_t const vertex : vertices)
    for (auto e = static_cast<std::size_t>(by_vertex.row_ptr[vertex]); e < static_cast<std::size_t>(by_vertex.row_ptr[vertex + 1]);
         ++e)
      entries.push_back(
          {row_of[static_cast<std::size_t>(vertex)], row_of[static_cast<std::size_t>(by_vertex.columns[e])], by_vertex.values[e]});
  RankRows const rows = rows_of_rank(csr_of_entries(by_vertex.n_rows, by_vertex.n_rows, entries), first, ranks.rank());
  SplitRows const parts = split(rows);
  return std::make_unique<RankMatrix>(make_matrix(Format::csr, parts.local, context), parts, rows.neighbors, ranks);
}

SolverOptions multigrid_options(LatticeProblem const& problem, Context& context) {
  SolverOptions options;
  options.preconditioner = PreconditionerKind::multigrid;
  options.tolerance = 1e-10;
  options.multigrid.coarse_size = 20;
  options.element_order = problem.layout.order;
  options.order_one = [&problem, &context] { return make_order_one(context, LoweredProblem(problem)); };
  return options;
}

std::int64_t iterations_of_one_rank(LatticeReference const& of) {
  auto const context = make_context(Backend::cpu);
  LatticeSystem system(*context, of.problem, Format::matrix_free);
  auto const matrix = system.take_matrix();
  HostVector<double> const b(of.rhs.begin(), of.rhs.end());
  HostVector<double> x(b.size());
  return solve(*matrix, b, x, multigrid_options(of.problem, *context)).iterations;
}

void test_solve(SharedMesh const& which, LatticeReference const& of, std::int64_t expected, MultigridPrecision precision,
                std::int64_t gathered, Communicator& ranks, Context& context) {
  RankOperator const rank = rank_operator(which, of, ranks, context);
  SolverOptions options = multigrid_options(rank.problem, context);
  options.ranks = ranks;
  options.multigrid.precision = precision;
  options.multigrid.gathered_size = gathered;
  if (which.mesh.all_on_rim)
    options.order_one = [&] {
      OrderOne order_one;
      order_one.fixed = rank.problem.fixed;
      order_one.own_rows = rows_of_order_one(which, of, ranks, context);
      return order_one;
    };
  HostVector<double> x(rank.rhs.size());
  SolverResult const result = solve(*rank.matrix, rank.rhs, x, options);
  EXPECT_EQ(result.status, SolverStatus::converged) << which.text() << ": " << result.reason;
  EXPECT_EQ(result.preconditioner, PreconditionerKind::multigrid);
  EXPECT_LE(std::abs(result.iterations - expected), 1) << which.text() << ", gathered from " << gathered;
  // The equations hold.
  auto const host = make_context(Backend::cpu);
  std::vector<double> all(x.begin(), x.end());
  all.resize(x.size() + rank.share.ghosts.size());
  Halo<double>(*host, ranks, HaloPlaces(std::ssize(x), rank.share.lattices.neighbors)).fill(all.data());
  EXPECT_LE(true_residual(StoredResidualCheck(rank.matrix->local()), all, rank.rhs, {}, ranks), 2e-10) << which.text();
}

/// The second of three ranks has no cells: its operator has no rows.
void test_without_cells(Backend backend) {
  SharedMesh const which{mesh_of_order(2, {2, 1, 1}, 1), {0, 2}};
  LatticeReference const of(which.mesh);
  ThreadRanks::run(which.n_ranks(), [&](Communicator& ranks) {
    auto const context = make_context(backend);
    test_products(which, of, ranks, *context);
    RankOperator const rank = rank_operator(which, of, ranks, *context);
    SolverOptions options;
    options.preconditioner = PreconditionerKind::jacobi;
    options.ranks = ranks;
    HostVector<double> x(rank.rhs.size());
    SolverResult const result = solve(*rank.matrix, rank.rhs, x, options);
    EXPECT_EQ(result.status, SolverStatus::converged) << result.reason;
    EXPECT_EQ(x.empty(), ranks.rank() == 1);
  });
}

}  // namespace

TEST(SharedLatticeOperator, ProductsAreThoseOfElementMatrices) {
  for (SharedMesh const& which : shared_meshes()) {
    LatticeReference const of(which.mesh);
    ThreadRanks::run(which.n_ranks(), [&](Communicator& ranks) {
      auto const context = make_context(Backend::cpu);
      test_products(which, of, ranks, *context);
    });
  }
}

TEST(SharedLatticeOperator, RankWithoutCells) {
  test_without_cells(Backend::cpu);
}
// Ranks make their halos together, whatever a rank has.
TEST(SharedLatticeOperator, MultigridWithARankWithoutCells) {
  SharedMesh const which{mesh_of_order(2, {2, 1, 1}, 1), {0, 2}};
  LatticeReference const of(which.mesh);
  std::int64_t const expected = iterations_of_one_rank(of);
  for (auto const precision : {MultigridPrecision::single, MultigridPrecision::double_})
    ThreadRanks::run(which.n_ranks(), [&](Communicator& ranks) {
      auto const context = make_context(Backend::cpu);
      test_solve(which, of, expected, precision, 0, ranks, *context);
    });
}

// Levels on ranks down to the last that halving makes, and gathered from the second or third on; in single and in double.
TEST(SharedLatticeOperator, MultigridTakesTheIterationsOfOneRank) {
  for (SharedMesh const& which : shared_meshes()) {
    LatticeReference const of(which.mesh);
    std::int64_t const expected = iterations_of_one_rank(of);
    for (std::int64_t const gathered : {0, 200, 1 << 20})
      for (auto const precision : {MultigridPrecision::single, MultigridPrecision::double_})
        ThreadRanks::run(which.n_ranks(), [&](Communicator& ranks) {
          auto const context = make_context(Backend::cpu);
          test_solve(which, of, expected, precision, gathered, ranks, *context);
        });
  }
}

class SharedLatticeOperatorOnDevices : public OnDevices {};

TEST_F(SharedLatticeOperatorOnDevices, ProductsAndIterationsAreThoseOfOneRank) {
  for (Way const way : ways)
    for (SharedMesh const& which : shared_meshes()) {
      if (which.n_ranks() > n_devices)
        continue;
      LatticeReference const of(which.mesh);
      std::int64_t const expected = iterations_of_one_rank(of);
      run(which.n_ranks(), way, [&](Communicator& ranks, Context& context) {
        test_products(which, of, ranks, context);
        test_solve(which, of, expected, MultigridPrecision::single, 200, ranks, context);
      });
    }
}

#ifdef POISSON_TEST_CUDA
// Ranks that share a device, through host memory.
TEST(SharedLatticeOperatorCuda, ProductsAndIterationsAreThoseOfOneRank) {
  if (cuda_device_count() == 0)
    GTEST_SKIP() << "there is no CUDA device";
  for (SharedMesh const& which : shared_meshes()) {
    LatticeReference const of(which.mesh);
    std::int64_t const expected = iterations_of_one_rank(of);
    for (std::int64_t const gathered : {0, 200})
      ThreadRanks::run(which.n_ranks(), [&](Communicator& ranks) {
        auto const context = make_context(Backend::cuda);
        test_products(which, of, ranks, *context);
        test_solve(which, of, expected, MultigridPrecision::double_, gathered, ranks, *context);
      });
  }
}

TEST(SharedLatticeOperatorCuda, RankWithoutCells) {
  if (cuda_device_count() == 0)
    GTEST_SKIP() << "there is no CUDA device";
  test_without_cells(Backend::cuda);
}
#endif

}  // namespace poisson::testing
