#include "tests/gpu/cases.hpp"
#include "tests/gpu/matrices.hpp"

#include "gpu/core/array.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/preconditioners/ordering.hpp"
#include "gpu/preconditioners/triangular_solve.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

/// The multicolor ordering, and incomplete factors in it. krylov_test.cpp has solvers with them.
namespace poisson::testing {

namespace {

RankRows rows_of(CsrMatrix const& a) {
  return {{}, std::make_shared<CsrMatrix const>(a)};
}
RowOrder natural_order_of(CsrMatrix const& a) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(a.n_rows));
  std::iota(numbers.begin(), numbers.end(), 0);
  return natural_order(numbers);
}
RowOrder colored(CsrMatrix const& a) {
  return multicolor_order(alone(), rows_of(a), natural_order_of(a));
}
std::int64_t lower_levels(CsrMatrix const& a) {
  return levels_of(alone(), rows_of(a), natural_order_of(a), false).n_levels;
}

/// No two rows of a color that couple; rows ascend within a color; colors are as many as said.
void expect_colored(CsrMatrix const& a, RowOrder const& order) {
  std::vector<std::int32_t> sorted(order.rows.begin(), order.rows.end()), expected(sorted.size());
  std::sort(sorted.begin(), sorted.end());
  std::iota(expected.begin(), expected.end(), 0);
  ASSERT_EQ(sorted, expected) << "every row once";
  // Colors begin where rows descend, at the latest.
  std::int64_t descents = 0;
  for (std::size_t i = 1; i < order.rows.size(); ++i)
    descents += order.rows[i] < order.rows[i - 1] ? 1 : 0;
  EXPECT_LE(descents, std::max<std::int64_t>(order.n_colors, 1) - 1);
  EXPECT_EQ(lower_levels(reordered(a, order)), order.n_colors) << "rows of a color couple, or a color has no reason";
}

TEST(Ordering, ColorsOfABoxAreEight) {
  auto const csr = box27(7, 6, 5, true);
  RowOrder const order = colored(*csr);
  EXPECT_EQ(order.n_colors, 8);
  expect_colored(*csr, order);
  // The first color is the nodes with even indices.
  std::size_t place = 0;
  for (std::int32_t z = 0; z < 5; z += 2)
    for (std::int32_t y = 0; y < 6; y += 2)
      for (std::int32_t x = 0; x < 7; x += 2)
        EXPECT_EQ(order.rows[place++], (z * 6 + y) * 7 + x);
}

TEST(Ordering, OfOtherPatterns) {
  expect_colored(*banded(90, {1, 2, 17}, 3, true), colored(*banded(90, {1, 2, 17}, 3, true)));
  Entries one{{{0, 0}, 2}}, none, diagonal, dense, arrow;
  for (std::int64_t i = 0; i < 40; ++i) {
    diagonal[{i, i}] = 1;
    arrow[{i, i}] = 40;
    arrow[{i, 0}] = arrow[{0, i}] = 1;
    for (std::int64_t j = 0; j < 40; ++j)
      dense[{i, j}] = i == j ? 50 : 1;
  }
  struct Expected {
    std::shared_ptr<CsrMatrix> matrix;
    std::int64_t colors;
  };
  for (auto const& [matrix, colors] :
       {Expected{to_csr(1, one), 1}, Expected{to_csr(0, none), 0}, Expected{to_csr(40, diagonal), 1},
        Expected{to_csr(40, dense), 40}, Expected{to_csr(40, arrow), 2}, Expected{to_csr(5, none), 1}}) {
    RowOrder const order = colored(*matrix);
    EXPECT_EQ(order.n_colors, colors);
    expect_colored(*matrix, order);
  }
}

TEST(Ordering, LevelsOfABox) {
  // A node waits for the last of the line before it and of the plane before it: x + 2 y + 4 z.
  EXPECT_EQ(lower_levels(*box27(7, 6, 5, true)), 6 + 2 * 5 + 4 * 4 + 1);
  EXPECT_EQ(lower_levels(*box27(1, 1, 1, true)), 1);
}

TEST(Ordering, ReorderedIsTheSameMatrixByOtherNames) {
  auto const csr = banded(70, {1, 3, 20}, 5, true);
  RowOrder const order = colored(*csr);
  CsrMatrix const b = reordered(*csr, order);
  auto const x = random_vector(70, 2);
  std::vector<double> ordered_x(70);
  for (std::size_t i = 0; i < 70; ++i)
    ordered_x[i] = x[static_cast<std::size_t>(order.rows[i])];
  auto const y = naive_product(*csr, x), ordered_y = naive_product(b, ordered_x);
  for (std::size_t i = 0; i < 70; ++i) {
    EXPECT_NEAR(ordered_y[i], y[static_cast<std::size_t>(order.rows[i])], 1e-14);
    EXPECT_TRUE(std::is_sorted(b.columns.begin() + b.row_ptr[i], b.columns.begin() + b.row_ptr[i + 1]));
  }
}

template <class B>
class OrderedFactors : public OnBackend<B::value> {};
TYPED_TEST_SUITE(OrderedFactors, Backends, BackendNames);

/// z = M^-1 r by the factors of `a`, twice, as the second finds what the first has left.
template <class T>
HostVector<T> solved(CsrMatrix const& a, Ordering ordering, HostVector<T> const& r, Context& context) {
  IncompleteLu const factors({rows_of(a)}, 0.01, false, ordering, context);
  EXPECT_EQ(factors.bad_pivot().row, -1);
  EXPECT_EQ(factors.ordering(), ordering);
  TriangularSolve<T> solve(factors, context);
  std::vector<std::int32_t> const running{0};
  Array<std::int32_t> const stop(context, std::span<std::int32_t const>(running));
  Vector<T> const device_r(context, std::span<T const>(r));
  Vector<T> z(context, a.n_rows);
  HostVector<T> result(static_cast<std::size_t>(a.n_rows));
  for (int repeat = 0; repeat < 2; ++repeat) {
    z.set_zero();
    solve.apply(device_r.data(), z.data(), stop.data());
    z.download(std::span<T>(result));
  }
  return result;
}

template <class T>
void expect_factors_of_the_reordered(CsrMatrix const& a, Context& context) {
  RowOrder const order = colored(a);
  HostVector<T> r(static_cast<std::size_t>(a.n_rows)), ordered_r(r.size());
  auto const random = random_vector(a.n_rows, 9);
  for (std::size_t i = 0; i < r.size(); ++i)
    r[i] = T(random[i]) / T(3);
  for (std::size_t i = 0; i < r.size(); ++i)
    ordered_r[i] = r[static_cast<std::size_t>(order.rows[i])];
  auto const z = solved(a, Ordering::multicolor, r, context);
  auto const ordered_z = solved(reordered(a, order), Ordering::natural, ordered_r, context);
  for (std::size_t i = 0; i < r.size(); ++i)
    ASSERT_TRUE(z[static_cast<std::size_t>(order.rows[i])] == ordered_z[i]) << i;
}

TYPED_TEST(OrderedFactors, AreThoseOfTheReorderedMatrix) {
  for (auto const& csr :
       {box27(9, 7, 6, false, 0.4), banded(90, {1, 2, 17}, 3, true), large_box27(33, 9, 5), banded(1, {}, 3, true)}) {
    expect_factors_of_the_reordered<double>(*csr, *this->context);
    expect_factors_of_the_reordered<DoubleDouble>(*csr, *this->context);
  }
}

TYPED_TEST(OrderedFactors, LargeLevelsAreThoseOfSmallOnes) {
  // A device takes a launch for each of so large levels; the host's rows come one after another.
  auto const csr = large_box27(96, 80, 72);
  auto const host = make_context(Backend::cpu);
  HostVector<double> r(static_cast<std::size_t>(csr->n_rows));
  auto const random = random_vector(csr->n_rows, 9);
  std::copy(random.begin(), random.end(), r.begin());
  auto const here = solved(*csr, Ordering::multicolor, r, *this->context), there = solved(*csr, Ordering::multicolor, r, *host);
  double largest = 0, distance = 0;
  for (std::size_t i = 0; i < r.size(); ++i) {
    largest = std::max(largest, std::abs(there[i]));
    distance = std::max(distance, std::abs(here[i] - there[i]));
  }
  EXPECT_LE(distance, 1e-13 * largest);
}

TYPED_TEST(OrderedFactors, BadPivotIsNamedByItsRow) {
  Entries entries;
  for (std::int64_t i = 0; i < 50; ++i) {
    entries[{i, i}] = i == 37 ? 0 : 4;
    if (i > 0)
      entries[{i, i - 1}] = entries[{i - 1, i}] = i == 37 || i == 38 ? 0 : -1;
  }
  auto const csr = to_csr(50, entries);
  for (Ordering const ordering : {Ordering::natural, Ordering::multicolor})
    EXPECT_EQ(IncompleteLu({rows_of(*csr)}, 0, true, ordering, *this->context).bad_pivot().row, 37);
}

TYPED_TEST(OrderedFactors, AutoAvoidsLongChainsOnADevice) {
  bool const device = TypeParam::value == Backend::cuda;
  IncompleteLu const of_box({rows_of(*large_box27(40, 30, 20))}, 0, true, Ordering::automatic, *this->context);
  EXPECT_EQ(of_box.ordering(), device ? Ordering::multicolor : Ordering::natural);
  EXPECT_EQ(of_box.levels(), device ? 8 : 39 + 2 * 29 + 4 * 19 + 1);
  IncompleteLu const of_little({rows_of(*box27(4, 4, 4))}, 0, true, Ordering::automatic, *this->context);
  EXPECT_EQ(of_little.ordering(), Ordering::natural);
}

}  // namespace
}  // namespace poisson::testing
