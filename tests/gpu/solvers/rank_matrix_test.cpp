#include "gpu/formats/rank_matrix.hpp"

#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"
#include "gpu/kernels/krylov.hpp"
#include "tests/gpu/cases.hpp"
#include "tests/gpu/matrices.hpp"
#include "tests/gpu/systems.hpp"
#include "tests/gpu/thread_ranks.hpp"

#include <algorithm>
#include <cstring>

/// Rows of a matrix on several ranks, which are threads here: products, dots and solves against those of one rank.
namespace poisson::testing {

namespace {

using Rows = std::vector<std::int64_t>;

/// Rows on ranks that do not divide them, and on one more that has none.
std::vector<Rows> partitions(std::int64_t n) {
  std::vector<Rows> result;
  for (int const ranks : {1, 2, 3, 5}) {
    Rows first;
    for (int r = 0; r <= ranks; ++r)
      first.push_back(n * r / ranks);
    result.push_back(first);
  }
  result.push_back({0, n / 3, n / 3, n / 3 + 1, n});
  return result;
}

int n_ranks(Rows const& first) {
  return static_cast<int>(first.size()) - 1;
}

/// The rows of the rank, in the case's format; where there are none, in csr.
std::unique_ptr<RankMatrix> rows_on_rank(CsrMatrix const& csr, Rows const& first, Format format, Context& context,
                                         Communicator& ranks, MatrixPrecision precision = MatrixPrecision::double_) {
  RankRows const rows = rows_of_rank(csr, first, ranks.rank());
  SplitRows const parts = split(rows);
  FormatOptions options;
  options.precision = precision;
  auto local = make_matrix(parts.local->n_rows > 0 ? format : Format::csr, parts.local, context, options);
  return std::make_unique<RankMatrix>(std::move(local), parts, rows.neighbors, ranks);
}

/// Positive definite, or with natural boundary conditions; of few diagonals for cds, which refuses parts of a small box.
std::shared_ptr<CsrMatrix> test_matrix(Format format, bool natural, double noise) {
  if (format != Format::cds)
    return box27(3, 3, 40, natural, noise);
  Entries entries;
  constexpr std::int64_t n = 360;
  for (std::int64_t i = 0; i < n; ++i) {
    entries[{i, i}] += natural ? 0 : 0.05;
    for (std::int64_t const offset : {1, 9, 10})
      if (i >= offset) {
        double const coupling = 1 + noise * std::sin(static_cast<double>(i * offset));
        entries[{i, i - offset}] = entries[{i - offset, i}] = -coupling;
        entries[{i, i}] += coupling;
        entries[{i - offset, i - offset}] += coupling;
      }
  }
  return to_csr(n, entries);
}

TEST(RankRows, AreJoinedFromTheirParts) {
  auto const csr = box27(3, 3, 9, false, 0.1);
  for (Rows const& first : partitions(csr->n_rows))
    for (int rank = 0; rank < n_ranks(first); ++rank) {
      RankRows const rows = rows_of_rank(*csr, first, rank);
      CsrMatrix const& whole = *rows.matrix;
      SplitRows const parts = split(rows);
      CsrMatrix rim_rows;
      rim_rows.row_ptr.push_back(0);
      for (std::int32_t const row : parts.rim) {
        for (auto e = whole.row_ptr[row]; e < whole.row_ptr[row + 1]; ++e) {
          rim_rows.columns.push_back(whole.columns[e]);
          rim_rows.values.push_back(whole.values[e]);
        }
        rim_rows.row_ptr.push_back(rim_rows.nnz());
      }
      CsrMatrix const joined = join_rows(*parts.local, parts.rim, rim_rows, rows.n_ghosts());
      EXPECT_EQ(joined.n_columns, whole.n_columns);
      EXPECT_EQ(joined.row_ptr, whole.row_ptr);
      EXPECT_EQ(joined.columns, whole.columns);
      EXPECT_EQ(joined.values, whole.values);
    }
}

template <class T>
std::vector<T> part(std::vector<T> const& all, Rows const& first, int rank) {
  return {all.begin() + first[static_cast<std::size_t>(rank)], all.begin() + first[static_cast<std::size_t>(rank) + 1]};
}

template <class C>
class RankProducts : public OnCase<C> {};
TYPED_TEST_SUITE(RankProducts, Cases, CaseNames);

template <class T>
std::vector<T> entries(std::int64_t n, unsigned seed) {
  auto const high = random_vector(n, seed), low = random_vector(n, seed + 100);
  std::vector<T> result;
  for (std::size_t i = 0; i < high.size(); ++i)
    if constexpr (std::is_same_v<T, DoubleDouble>)
      result.push_back(two_sum(high[i], 0x1p-55 * low[i]));
    else
      result.push_back(high[i]);
  return result;
}

template <class T>
double difference(T a, T b) {
  return std::abs(rounded(a - b));
}

/// y = alpha A x + beta y and the dot of all rows, in T, against those of csr on one rank.
template <class T>
void compare_products(Format format, CsrMatrix const& csr, Context& context, double rounding, MatrixPrecision precision) {
  std::int64_t const n = csr.n_rows;
  auto const x = entries<T>(n, 3), y = entries<T>(n, 4);
  FormatOptions options;
  options.precision = precision;
  auto const whole = make_matrix(Format::csr, std::make_shared<CsrMatrix const>(csr), context, options);
  LinearOperator<T> const& reference = *whole;
  Vector<T> of_x(context, std::span<T const>(x)), of_y(context, std::span<T const>(y));
  Array<T> dot(context, 1);
  std::int32_t const no = 0, yes = 1;
  Array<std::int32_t> const running(context, std::span<std::int32_t const>(&no, 1)),
      stopped(context, std::span<std::int32_t const>(&yes, 1));
  reference.product(T(2), of_x.data(), T(-3), of_y.data());
  std::vector<T> expected(y.size()), expected_product(y.size());
  of_y.download(std::span<T>(expected));
  reference.product_dot(of_x.data(), of_y.data(), dot.data(), running.data());
  of_y.download(std::span<T>(expected_product));
  T expected_dot{};
  dot.download(std::span<T>(&expected_dot, 1));
  for (Rows const& first : partitions(n))
    ThreadRanks::run(n_ranks(first), [&](Communicator& ranks) {
      auto const own = make_context(context.backend());
      auto const matrix = rows_on_rank(csr, first, format, *own, ranks, precision);
      LinearOperator<T> const& a = *matrix;
      auto const x_own = part(x, first, ranks.rank()), y_own = part(y, first, ranks.rank());
      Vector<T> u(*own, std::span<T const>(x_own)), v(*own, std::span<T const>(y_own));
      a.product(T(2), u.data(), T(-3), v.data());
      std::vector<T> found(y_own.size());
      v.download(std::span<T>(found));
      auto const right = part(expected, first, ranks.rank());
      for (std::size_t i = 0; i < found.size(); ++i)
        ASSERT_LE(difference(found[i], right[i]), rounding) << "row " << i << " of rank " << ranks.rank();
      Array<T> sum(*own, 1);
      auto const product = part(expected_product, first, ranks.rank());
      for (bool const of_columns : {false, true}) {
        // What is there does not count: a rank without rows writes 0.
        T const other = 7;
        sum.upload(std::span<T const>(&other, 1));
        v.upload(std::span<T const>(y_own));
        ProductColumn<T> const column{u.data(), v.data(), sum.data(), running.data()};
        if (of_columns)
          a.product_dots(std::span(&column, 1));
        else
          a.product_dot(column.x, column.y, column.dot, column.stop);
        v.download(std::span<T>(found));
        for (std::size_t i = 0; i < found.size(); ++i)
          ASSERT_LE(difference(found[i], product[i]), rounding);
        T of_rank{};
        sum.download(std::span<T>(&of_rank, 1));
        T of_all = 0;
        for (T const& term : gather(ranks, of_rank))
          of_all = of_all + term;
        EXPECT_LE(difference(of_all, expected_dot), 10 * rounding * static_cast<double>(n)) << of_columns;
      }
      // Nothing changes once a solver has stopped.
      v.upload(std::span<T const>(y_own));
      a.product_dot(u.data(), v.data(), sum.data(), stopped.data());
      v.download(std::span<T>(found));
      EXPECT_TRUE(found.empty() || std::memcmp(found.data(), y_own.data(), found.size() * sizeof(T)) == 0);
    });
}

TYPED_TEST(RankProducts, AreThoseOfOneRankInDouble) {
  compare_products<double>(TypeParam::format, *test_matrix(TypeParam::format, false, 0.3), *this->context, 1e-14,
                           MatrixPrecision::double_);
}
TYPED_TEST(RankProducts, AreThoseOfOneRankInDoubleDouble) {
  auto csr = test_matrix(TypeParam::format, false, 0.3);
  compare_products<DoubleDouble>(TypeParam::format, *csr, *this->context, 1e-30, MatrixPrecision::double_);
  auto const n = csr->values.size();
  csr->low_values.resize(n);
  for (std::int64_t row = 0; row < csr->n_rows; ++row)
    for (std::int64_t e = csr->row_ptr[row]; e < csr->row_ptr[row + 1]; ++e)
      csr->low_values[e] = 0x1p-56 * csr->values[e] * std::sin(static_cast<double>(row + csr->columns[e]));
  compare_products<DoubleDouble>(TypeParam::format, *csr, *this->context, 1e-30, MatrixPrecision::double_double);
}

struct OfRanks {
  SolverResult result;
  std::vector<double> x;
};

/// The results of all ranks must be alike; their x is put together.
OfRanks solve_on_ranks(CsrMatrix const& csr, std::vector<double> const& b, Rows const& first, Format format, Backend backend,
                       SolverOptions const& options) {
  OfRanks found;
  found.x.resize(b.size());
  std::vector<SolverResult> results(first.size() - 1);
  ThreadRanks::run(n_ranks(first), [&](Communicator& ranks) {
    auto const own = make_context(backend);
    auto const matrix = rows_on_rank(csr, first, format, *own, ranks);
    SolverOptions with_ranks = options;
    with_ranks.ranks = ranks;
    with_ranks.rows_of_rank = [&] { return NumberedRows{rows_of_rank(csr, first, ranks.rank())}; };
    auto const r = static_cast<std::size_t>(ranks.rank());
    auto const b_own = part(b, first, ranks.rank());
    results[r] = poisson::solve(*matrix, b_own, std::span<double>(found.x.data() + first[r], b_own.size()), with_ranks);
  });
  for (SolverResult const& other : results) {
    EXPECT_EQ(other.status, results[0].status);
    EXPECT_EQ(other.reason, results[0].reason);
    EXPECT_EQ(other.history, results[0].history) << "other bits";
    EXPECT_EQ(other.notes, results[0].notes);
  }
  found.result = std::move(results[0]);
  return found;
}

double iterations_to(double residual, SolverResult const& result) {
  auto const reached = std::ranges::find_if(result.history, [&](double value) { return value <= residual; });
  return static_cast<double>(reached - result.history.begin());
}

template <class C>
class RankSolves : public SolvesOnCase<C> {};
TYPED_TEST_SUITE(RankSolves, Cases, CaseNames);

TYPED_TEST(RankSolves, FindTheSolutionOfOneRank) {
  auto const csr = test_matrix(TypeParam::format, false, 0.4);
  auto const b = random_vector(csr->n_rows, 5);
  Deal deal(TypeParam::format);
  for (auto const& [method, name] : Names<Method>::values)
    for (PreconditionerKind const kind :
         {PreconditionerKind::none, PreconditionerKind::jacobi,
          needs_symmetry(method) ? PreconditionerKind::ic0 : PreconditionerKind::ilu0, PreconditionerKind::automatic})
      for (Precision const precision : {Precision::double_, Precision::refined, Precision::double_double}) {
        if (!deal.next())
          continue;
        SCOPED_TRACE(std::string(name) + " " + std::string(name_of(kind)) + " " + std::string(name_of(precision)));
        SolverOptions options;
        options.method = method;
        options.preconditioner = kind;
        options.ordering = Ordering::natural;
        options.precision = precision;
        options.tolerance = precision == Precision::double_ ? 1e-12 : 1e-20;
        SolverOptions of_one = options;
        if (kind == PreconditionerKind::automatic)
          of_one.preconditioner = PreconditionerKind::none;
        auto const one = this->solve(csr, b, of_one);
        ASSERT_EQ(one.status, SolverStatus::converged) << one.reason;
        for (Rows const& first : partitions(csr->n_rows)) {
          SCOPED_TRACE(std::to_string(n_ranks(first)) + " ranks");
          auto const found = solve_on_ranks(*csr, b, first, TypeParam::format, TypeParam::backend, options);
          ASSERT_EQ(found.result.status, SolverStatus::converged) << found.result.reason;
          EXPECT_LE(distance(found.x, this->solution), 1e-9 * norm(this->solution));
          // Roundings drift apart: in bicgstab soon, in refined cg, whose cycles keep their directions, below what double reaches.
          if (method == Method::cg) {
            EXPECT_NEAR(iterations_to(1e-12, found.result), iterations_to(1e-12, one), 1);
          }
          auto const iterations = static_cast<double>(one.iterations);
          double const drift = method == Method::bicgstab ? 0.2 : precision == Precision::refined ? 0.1 : 0;
          EXPECT_NEAR(static_cast<double>(found.result.iterations), iterations, std::max(1.0, drift * iterations));
          EXPECT_NEAR(found.result.history[3], one.history[3], 1e-9 * one.history[3]);
          if (kind != PreconditionerKind::jacobi)
            continue;
          auto const again = solve_on_ranks(*csr, b, first, TypeParam::format, TypeParam::backend, options);
          EXPECT_EQ(again.x, found.x) << "other bits in a second run";
        }
      }
}

TYPED_TEST(RankSolves, RemoveTheConstantOfAllRanks) {
  auto const csr = test_matrix(TypeParam::format, true, 0.2);
  auto b = random_vector(csr->n_rows, 6);
  double const mean = std::accumulate(b.begin(), b.end(), 0.0) / static_cast<double>(b.size());
  for (double& value : b)
    value -= mean;
  SolverOptions options;
  options.constant_null_space = true;
  options.tolerance = 1e-10;
  for (Precision const precision : {Precision::double_, Precision::refined}) {
    options.precision = precision;
    auto const one = this->solve(csr, b, options);
    ASSERT_EQ(one.status, SolverStatus::converged) << one.reason;
    for (Rows const& first : partitions(csr->n_rows)) {
      auto const found = solve_on_ranks(*csr, b, first, TypeParam::format, TypeParam::backend, options);
      ASSERT_EQ(found.result.status, SolverStatus::converged) << found.result.reason;
      EXPECT_NEAR(std::accumulate(found.x.begin(), found.x.end(), 0.0), 0, 1e-9 * norm(found.x));
      EXPECT_LE(distance(found.x, this->solution), 1e-8 * norm(this->solution));
    }
  }
}

template <class B>
class RankDecisions : public OnBackend<B::value> {
protected:
  Rows first{0, 40, 41, 120};
};
TYPED_TEST_SUITE(RankDecisions, Backends, BackendNames);

std::string message_on_ranks(CsrMatrix const& csr, std::vector<double> const& b, Rows const& first, Backend backend,
                             SolverOptions const& options) {
  try {
    static_cast<void>(solve_on_ranks(csr, b, first, Format::csr, backend, options));
  } catch (InputError const& error) {
    return error.what();
  }
  return "";
}

TYPED_TEST(RankDecisions, TellTheRankOfWrongInput) {
  auto csr = box27(5, 4, 6);
  auto b = random_vector(csr->n_rows, 7);
  b[40] = std::numeric_limits<double>::quiet_NaN();
  expect_contains(message_on_ranks(*csr, b, this->first, TypeParam::value, {}), {"rank 1: ", "right-hand side", "row 1"});
  b[40] = 1;
  csr->values[csr->row_ptr[41]] = std::numeric_limits<double>::infinity();  // a coupling with another rank
  expect_contains(message_on_ranks(*csr, b, this->first, TypeParam::value, {}), {"rank 2: ", "the matrix has a NaN"});
}

TYPED_TEST(RankDecisions, StopTogetherWhenOneIsInterrupted) {
  auto const csr = box27(5, 4, 6);
  auto const b = random_vector(csr->n_rows, 8);
  SolverOptions options;
  options.tolerance = 1e-30;  // no arithmetic ends before the interrupt
  options.precision = Precision::double_double;
  detail::polls_until_interrupt = 2;  // rank 0, 1 or 2, before any iteration: the others may have polled, and not seen it
  auto const found = solve_on_ranks(*csr, b, this->first, Format::csr, TypeParam::value, options);
  clear_interrupt();
  EXPECT_EQ(found.result.status, SolverStatus::interrupted);
}

TYPED_TEST(RankDecisions, AnEmptyRightHandSideOfOneRankIsNotZero) {
  auto const csr = box27(5, 4, 6);
  std::vector<double> b(120, 0.0);
  b[119] = 1;
  auto const found = solve_on_ranks(*csr, b, this->first, Format::csr, TypeParam::value, {});
  EXPECT_EQ(found.result.status, SolverStatus::converged);
  EXPECT_GT(found.result.iterations, 3);
  EXPECT_NE(found.x[0], 0) << "it reaches the first rank";
  b[119] = 0;
  EXPECT_EQ(solve_on_ranks(*csr, b, this->first, Format::csr, TypeParam::value, {}).result.iterations, 0);
}

TYPED_TEST(RankDecisions, JacobiRefusesADiagonalThatIsNotPositiveOnOneRank) {
  auto csr = box27(5, 4, 6);
  for (std::int64_t e = csr->row_ptr[40]; e < csr->row_ptr[41]; ++e)
    if (csr->columns[e] == 40)
      csr->values[e] = -1;
  SolverOptions options;
  options.preconditioner = PreconditionerKind::jacobi;
  auto const found = solve_on_ranks(*csr, random_vector(120, 9), this->first, Format::csr, TypeParam::value, options);
  EXPECT_EQ(found.result.status, SolverStatus::breakdown);
  expect_contains(found.result.reason, {"rank 1: ", "jacobi", "positive"});
}

TEST(Communicators, GatherAndDecide) {
  ThreadRanks::run(3, [](Communicator& ranks) {
    EXPECT_EQ(gather(ranks, 10 * ranks.rank()), (std::vector<int>{0, 10, 20}));
    EXPECT_EQ(gather_texts(ranks, std::string(static_cast<std::size_t>(ranks.rank()), 'x')),
              (std::vector<std::string>{"", "x", "xx"}));
    EXPECT_EQ(sum_over(ranks, std::int64_t{1} << ranks.rank()), 7);
    EXPECT_EQ(max_over(ranks, -1.0 - ranks.rank()), -1);
    EXPECT_TRUE(std::isnan(max_over(ranks, ranks.rank() == 1 ? std::numeric_limits<double>::quiet_NaN() : 5.0)));
    EXPECT_TRUE(any_of_ranks(ranks, ranks.rank() == 2));
    EXPECT_FALSE(any_of_ranks(ranks, false));
    EXPECT_EQ(first_message(ranks, ranks.rank() == 0 ? "" : "wrong"), "rank 1: wrong");
    EXPECT_EQ(first_message(ranks, ""), "");
  });
  EXPECT_THROW(ThreadRanks::run(3,
                                [](Communicator& ranks) {
                                  if (ranks.rank() == 1)
                                    throw std::runtime_error("one failed");
                                  ranks.barrier();
                                }),
               std::runtime_error);
}

TEST(Communicators, GatherListsOnTheFirstRank) {
  ThreadRanks::run(4, [](Communicator& ranks) {
    std::vector<double> mine;  // rank r has r numbers, but rank 2 none
    for (int i = 0; i < ranks.rank() && ranks.rank() != 2; ++i)
      mine.push_back(10 * ranks.rank() + i);
    auto const all = gather_on_first(ranks, mine);
    std::vector<std::int64_t> sizes;
    EXPECT_EQ(joined_on_first(ranks, mine, &sizes),
              ranks.rank() > 0 ? std::vector<double>() : (std::vector<double>{10, 30, 31, 32}));
    EXPECT_EQ(sizes, (std::vector<std::int64_t>{0, 1, 0, 3}));
    if (ranks.rank() > 0) {
      EXPECT_TRUE(all.empty());
    } else {
      EXPECT_EQ(all, (std::vector<std::vector<double>>{{}, {10}, {}, {30, 31, 32}}));
    }
  });
}

TEST(RanksOfRows, SplitsAHandCheckedMatrix) {
  // 2 -1 . .      rank 0: rows 0 and 1; rank 1: rows 2 and 3
  // -1 2 -1 .
  // . -1 2 -1
  // . . -1 2
  auto const csr = banded(4, {1}, 1);
  RankRows const rows = rows_of_rank(*csr, {0, 2, 4}, 1);
  ASSERT_EQ(rows.neighbors.size(), 1U);
  EXPECT_EQ(rows.neighbors[0].rank, 0);
  EXPECT_EQ(rows.neighbors[0].sent, std::vector<std::int32_t>{0});
  EXPECT_EQ(rows.neighbors[0].n_ghosts, 1);
  EXPECT_EQ(rows.matrix->n_columns, 3);
  SplitRows const parts = split(rows);
  EXPECT_EQ(parts.local->nnz(), 4);
  EXPECT_EQ(parts.rim, std::vector<std::int32_t>{0});
  ASSERT_EQ(parts.couplings->nnz(), 1);
  EXPECT_EQ(parts.couplings->columns[0], 0);
  EXPECT_EQ(parts.couplings->values[0], csr->values[csr->row_ptr[2]]);
}

}  // namespace
}  // namespace poisson::testing
