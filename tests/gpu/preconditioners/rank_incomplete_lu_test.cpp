#include "gpu/preconditioners/incomplete_lu.hpp"

#include "gpu/core/rank_rows.hpp"
#include "gpu/kernels/krylov.hpp"
#include "gpu/preconditioners/ordering.hpp"
#include "gpu/preconditioners/triangular_solve.hpp"
#include "tests/gpu/cases.hpp"
#include "tests/gpu/matrices.hpp"
#include "tests/gpu/thread_ranks.hpp"

#include <cmath>
#include <type_traits>

/// Incomplete factors whose rows several ranks share, which are threads here, against those of one rank: the same to the last bit.
namespace poisson::testing {

namespace {

/// Which rank has which rows of a matrix: by rank, rows in ascending order.
using Division = std::vector<std::vector<std::int32_t>>;

/// Deals out pieces of so many rows to one rank after the other.
Division in_turns(std::int64_t n, int ranks, std::int64_t piece) {
  Division result(static_cast<std::size_t>(ranks));
  for (std::int64_t row = 0; row < n; ++row)
    result[static_cast<std::size_t>(row / piece % ranks)].push_back(static_cast<std::int32_t>(row));
  return result;
}

/// Blocks, turns that cut every line of a box, single rows, and one rank that has none.
std::vector<Division> divisions(std::int64_t n) {
  std::vector<Division> result;
  for (int const ranks : {1, 2, 3, 5})
    for (std::int64_t const piece : {n / ranks + 1, std::int64_t{4}, std::int64_t{1}})
      result.push_back(in_turns(n, ranks, piece));
  Division with_empty = in_turns(n, 3, 7);
  with_empty.insert(with_empty.begin() + 1, std::vector<std::int32_t>{});
  result.push_back(with_empty);
  return result;
}

/// Rows of ranks one after another.
struct Divided {
  CsrMatrix matrix;
  RowOrder order;
  std::vector<std::int64_t> first{0};
};
Divided divided(CsrMatrix const& a, Division const& division) {
  Divided result;
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(a.n_rows));
  for (auto const& rows : division) {
    result.first.push_back(result.first.back());
    for (std::int32_t const row : rows)
      numbers[static_cast<std::size_t>(row)] = result.first.back()++;
  }
  result.order = natural_order(numbers);
  result.matrix = reordered(a, result.order);
  return result;
}

NumberedRows rows_with_numbers(Divided const& whole, int rank) {
  auto const r = static_cast<std::size_t>(rank);
  return {rows_of_rank(whole.matrix, whole.first, rank),
          {whole.order.rows.begin() + whole.first[r], whole.order.rows.begin() + whole.first[r + 1]}};
}

struct Factored {
  std::int64_t levels = 0;
  std::size_t exchanges = 0;  ///< of the lower triangle
};

/// z = M^-1 r on ranks, twice, as the second finds what the first has left; rows as in the whole.
template <class T>
HostVector<T> solved_on_ranks(CsrMatrix const& a, Division const& division, Ordering ordering, HostVector<T> const& r,
                              Backend backend, Factored& factored) {
  Divided const whole = divided(a, division);
  HostVector<T> result(r.size());
  std::vector<Factored> of_ranks(division.size());
  ThreadRanks::run(static_cast<int>(division.size()), [&](Communicator& ranks) {
    auto const context = make_context(backend);
    auto const me = static_cast<std::size_t>(ranks.rank());
    IncompleteLu const factors(rows_with_numbers(whole, ranks.rank()), 0.01, false, ordering, *context, ranks);
    EXPECT_EQ(factors.bad_pivot().row, -1);
    EXPECT_EQ(factors.ordering(), ordering);
    of_ranks[me] = {factors.view().lower.n_levels, factors.lower().exchanges.size()};
    TriangularSolve<T> solve(factors, *context);
    std::vector<std::int32_t> const running{0};
    Array<std::int32_t> const stop(*context, std::span<std::int32_t const>(running));
    auto const& own = division[me];
    HostVector<T> mine;
    for (std::int32_t const row : own)
      mine.push_back(r[static_cast<std::size_t>(row)]);
    Vector<T> const device_r(*context, std::span<T const>(mine));
    Vector<T> z(*context, std::ssize(own));
    for (int repeat = 0; repeat < 2; ++repeat) {
      z.set_zero();
      solve.apply(device_r.data(), z.data(), stop.data());
      z.download(std::span<T>(mine));
    }
    for (std::size_t i = 0; i < own.size(); ++i)
      result[static_cast<std::size_t>(own[i])] = mine[i];
  });
  factored = of_ranks[0];
  for (Factored const& of_rank : of_ranks) {
    EXPECT_EQ(of_rank.levels, factored.levels);
    EXPECT_EQ(of_rank.exchanges, factored.exchanges);
  }
  return result;
}

template <class T>
HostVector<T> solved_on_one(CsrMatrix const& a, Ordering ordering, HostVector<T> const& r) {
  auto const context = make_context(Backend::cpu);
  IncompleteLu const factors({{{}, std::make_shared<CsrMatrix const>(a)}}, 0.01, false, ordering, *context);
  TriangularSolve<T> solve(factors, *context);
  std::int32_t const running = 0;
  Vector<T> const of_r(*context, std::span<T const>(r));
  Vector<T> z(*context, a.n_rows);
  solve.apply(of_r.data(), z.data(), &running);
  HostVector<T> result(r.size());
  z.download(std::span<T>(result));
  return result;
}

template <class T>
double norm_of(HostVector<T> const& x) {
  double sum = 0;
  for (T const value : x)
    sum += rounded(value) * rounded(value);
  return std::sqrt(sum);
}

/// A device adds up the terms of a row in another order than the host.
template <class T>
void expect_equal(HostVector<T> const& z, HostVector<T> const& expected, Backend backend) {
  for (std::size_t i = 0; i < z.size(); ++i)
    if (backend == Backend::cpu) {
      ASSERT_TRUE(z[i] == expected[i]) << "row " << i;
    } else {
      ASSERT_LE(std::abs(rounded(z[i] - expected[i])), (std::is_same_v<T, double> ? 1e-12 : 1e-28) * norm_of(expected))
          << "row " << i;
    }
}

template <class T>
void expect_those_of_one_rank(CsrMatrix const& a, Backend backend) {
  HostVector<T> r;
  for (double const value : random_vector(a.n_rows, 9))
    r.push_back(T(value) / T(3));
  for (Ordering const ordering : {Ordering::natural, Ordering::multicolor}) {
    auto const one = solved_on_one(a, ordering, r);
    for (Division const& division : divisions(a.n_rows)) {
      SCOPED_TRACE(std::to_string(division.size()) + " ranks, " + std::to_string(division[0].size()) + " rows of the first, " +
                   std::string(name_of(ordering)));
      Factored factored;
      expect_equal(solved_on_ranks(a, division, ordering, r, backend, factored), one, backend);
      EXPECT_LT(factored.exchanges, static_cast<std::size_t>(factored.levels));
    }
  }
}

/// Returns the matrix without the diagonal entry of every third row.
CsrMatrix without_some_diagonals(CsrMatrix const& a) {
  Entries entries;
  for (std::int64_t row = 0; row < a.n_rows; ++row)
    for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e)
      if (a.columns[e] != row || row % 3 != 0)
        entries[{row, a.columns[e]}] = a.values[e];
  return *to_csr(a.n_rows, entries);
}

/// Returns the matrix with the lower triangle of every second row only, and with values that are not symmetric either.
CsrMatrix of_unsymmetric_pattern(CsrMatrix const& a) {
  Entries entries;
  for (std::int64_t row = 0; row < a.n_rows; ++row)
    for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e)
      if (a.columns[e] >= row || row % 2 == 0)
        entries[{row, a.columns[e]}] = a.values[e] * (1 + 0.1 * std::sin(static_cast<double>(3 * row + a.columns[e])));
  return *to_csr(a.n_rows, entries);
}

template <class B>
class RankFactors : public OnBackend<B::value> {};
TYPED_TEST_SUITE(RankFactors, Backends, BackendNames);

TYPED_TEST(RankFactors, AreThoseOfOneRank) {
  auto const box = box27(6, 5, 4, false, 0.4);
  for (CsrMatrix const& a : {*box, *banded(90, {1, 2, 17}, 3, true), of_unsymmetric_pattern(*box), without_some_diagonals(*box),
                             *banded(1, {}, 3, true), *banded(90, {}, 3, true)}) {
    expect_those_of_one_rank<double>(a, TypeParam::value);
    expect_those_of_one_rank<DoubleDouble>(a, TypeParam::value);
  }
}

TYPED_TEST(RankFactors, ExchangeAsOftenAsRanksNeedEachOther) {
  HostVector<double> const r(90, 1.0);
  Factored factored;
  // In a chain of rows every rank needs the one before it, once.
  static_cast<void>(
      solved_on_ranks(*banded(90, {1}, 3, true), in_turns(90, 5, 18), Ordering::natural, r, TypeParam::value, factored));
  EXPECT_EQ(factored.levels, 90);
  EXPECT_EQ(factored.exchanges, 4U);
  // Where neighbours in the chain are on different ranks, all of the rows do.
  static_cast<void>(
      solved_on_ranks(*banded(90, {1}, 3, true), in_turns(90, 2, 1), Ordering::natural, r, TypeParam::value, factored));
  EXPECT_EQ(factored.exchanges, 89U);
  // Two colors exchange once.
  static_cast<void>(
      solved_on_ranks(*banded(90, {1}, 3, true), in_turns(90, 2, 1), Ordering::multicolor, r, TypeParam::value, factored));
  EXPECT_EQ(factored.levels, 2);
  EXPECT_EQ(factored.exchanges, 1U);
}

// Where ranks have a chain of rows in blocks, they wait a few times on the host. Where rows go to them in turns, they wait for
// every row. A device waits for every row in both cases.
TYPED_TEST(RankFactors, ChooseTheOrderByWaits) {
  auto const chain = *banded(90, {1}, 3, true);
  for (std::int64_t const piece : {30, 1}) {
    Divided const whole = divided(chain, in_turns(90, 3, piece));
    ThreadRanks::run(3, [&](Communicator& ranks) {
      auto const own = make_context(TypeParam::value);
      IncompleteLu const factors(rows_with_numbers(whole, ranks.rank()), 0, false, Ordering::automatic, *own, ranks);
      EXPECT_EQ(factors.ordering(), piece == 30 && TypeParam::value == Backend::cpu ? Ordering::natural : Ordering::multicolor);
    });
  }
}

// Rows of a diagonal matrix need no rows of others: every rank factorises its own on the backend.
TYPED_TEST(RankFactors, TellTheFirstBadPivotOfAllRanks) {
  for (CsrMatrix a : {*box27(6, 5, 4, false, 0.4), *banded(120, {}, 3, true)}) {
    for (std::int64_t const row : {37, 80})
      for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e)
        if (a.columns[e] == row)
          a.values[e] = -5;
    for (Ordering const ordering : {Ordering::natural, Ordering::multicolor}) {
      auto const host = make_context(Backend::cpu);
      BadPivot const expected = IncompleteLu({{{}, std::make_shared<CsrMatrix const>(a)}}, 0, true, ordering, *host).bad_pivot();
      ASSERT_GE(expected.row, 0);
      for (Division const& division : divisions(a.n_rows)) {
        Divided const whole = divided(a, division);
        ThreadRanks::run(static_cast<int>(division.size()), [&](Communicator& ranks) {
          auto const own = make_context(TypeParam::value);
          BadPivot const found = IncompleteLu(rows_with_numbers(whole, ranks.rank()), 0, true, ordering, *own, ranks).bad_pivot();
          EXPECT_EQ(found.row, expected.row);
          EXPECT_EQ(found.value, expected.value);
        });
      }
    }
  }
}

}  // namespace
}  // namespace poisson::testing
