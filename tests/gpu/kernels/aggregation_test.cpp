#include "gpu/kernels/aggregation.hpp"

#include "gpu/formats/csr.hpp"
#include "tests/gpu/cases.hpp"
#include "tests/gpu/matrices.hpp"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <memory>
#include <random>
#include <vector>

namespace poisson::testing {

template <class B>
class Aggregation : public OnBackend<B::value> {
protected:
  [[nodiscard]] AggregationKernels const& kernels() const { return kernels_for<AggregationKernels>(*this->context); }
  [[nodiscard]] std::unique_ptr<Csr> on_backend(std::shared_ptr<CsrMatrix const> a) {
    return std::make_unique<Csr>(std::move(a), *this->context);
  }
  template <class T>
  [[nodiscard]] static std::vector<T> downloaded(Array<T> const& array) {
    std::vector<T> result(static_cast<std::size_t>(array.size()));
    array.download(result);
    return result;
  }
  [[nodiscard]] CsrMatrix downloaded(SparseArrays const& a) {
    CsrMatrix result;
    result.n_rows = a.row_ptr.size() - 1;
    result.n_columns = a.n_columns;
    result.row_ptr.resize(static_cast<std::size_t>(a.row_ptr.size()));
    result.columns.resize(static_cast<std::size_t>(a.columns.size()));
    result.values.resize(static_cast<std::size_t>(a.values.size()));
    a.row_ptr.download(result.row_ptr);
    a.columns.download(result.columns);
    a.values.download(result.values);
    return result;
  }
};
TYPED_TEST_SUITE(Aggregation, Backends, BackendNames);

namespace {

void expect_ascending(CsrMatrix const& a) {
  ASSERT_EQ(a.row_ptr[static_cast<std::size_t>(a.n_rows)], a.nnz());
  for (std::int64_t i = 0; i < a.n_rows; ++i)
    for (std::int64_t k = a.row_ptr[i] + 1; k < a.row_ptr[i + 1]; ++k)
      ASSERT_LT(a.columns[k - 1], a.columns[k]) << i;
}

Entries entries_of(CsrMatrix const& a) {
  Entries result;
  for (std::int64_t i = 0; i < a.n_rows; ++i)
    for (std::int64_t k = a.row_ptr[i]; k < a.row_ptr[i + 1]; ++k)
      result[{i, a.columns[k]}] = a.values[k];
  return result;
}

void expect_product(CsrMatrix const& found, CsrMatrix const& a, CsrMatrix const& b) {
  Entries expected;
  for (std::int64_t i = 0; i < a.n_rows; ++i)
    for (std::int64_t k = a.row_ptr[i]; k < a.row_ptr[i + 1]; ++k)
      for (std::int64_t l = b.row_ptr[a.columns[k]]; l < b.row_ptr[a.columns[k] + 1]; ++l)
        expected[{i, b.columns[l]}] += a.values[k] * b.values[l];
  expect_ascending(found);
  EXPECT_EQ(found.nnz(), std::ssize(expected));
  for (auto const& [place, value] : entries_of(found)) {
    auto const at = expected.find(place);
    ASSERT_NE(at, expected.end()) << place.first << ' ' << place.second;
    EXPECT_NEAR(value, at->second, 1e-12) << place.first << ' ' << place.second;
  }
}

/// Row i has lengths[i] entries at random columns.
std::shared_ptr<CsrMatrix> with_lengths(std::vector<std::int64_t> const& lengths, std::int64_t n_columns, unsigned seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  Entries entries;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    std::vector<std::int64_t> columns(static_cast<std::size_t>(n_columns));
    for (std::size_t c = 0; c < columns.size(); ++c)
      columns[c] = static_cast<std::int64_t>(c);
    std::shuffle(columns.begin(), columns.end(), random);
    for (std::int64_t k = 0; k < lengths[i]; ++k)
      entries[{static_cast<std::int64_t>(i), columns[static_cast<std::size_t>(k)]}] = uniform(random);
  }
  return to_csr(std::ssize(lengths), n_columns, entries);
}

/// Coupled rows of a box, and at the ends two that are coupled to none.
std::shared_ptr<CsrMatrix> box_between_lone_rows() {
  Entries entries;
  for (auto const& [place, value] : entries_of(*box27(13, 11, 9, true, 0.05)))
    entries[{place.first + 1, place.second + 1}] = value;
  std::int64_t const n = 13 * 11 * 9 + 2;
  entries[{0, 0}] = entries[{n - 1, n - 1}] = 3;
  return to_csr(n, entries);
}

}  // namespace

TYPED_TEST(Aggregation, ProductsAgreeWithTheTextbook) {
  std::vector<std::pair<std::shared_ptr<CsrMatrix>, std::shared_ptr<CsrMatrix>>> const pairs{
      {uneven(37, 23, 1), uneven(23, 41, 2)},
      {uneven(1, 1, 1), uneven(1, 1, 2)},
      {uneven(33, 1, 1), uneven(1, 500, 2)},
      {to_csr(5, 4, {}), uneven(4, 6, 3)},
      {box27(9, 8, 7, false, 0.1), box27(9, 8, 7, true, 0.2)},
      // Rows of the result around the sizes of tables, and longer than all of them.
      {with_lengths({0, 3, 15, 16, 17, 40, 100, 127, 130, 400, 500, 513, 700, 1999}, 2000, 1),
       with_lengths(std::vector<std::int64_t>(2000, 3), 5000, 2)},
      {with_lengths({2, 1, 0, 2}, 3, 1), with_lengths({48, 49, 3000}, 4000, 2)}};
  for (auto const& [a, b] : pairs) {
    auto const left = this->on_backend(a), right = this->on_backend(b);
    SparseArrays const product = this->kernels().product(*this->context, left->view(), right->view(), true);
    EXPECT_EQ(product.n_columns, b->n_columns);
    CsrMatrix const found = this->downloaded(product);
    expect_product(found, *a, *b);
    CsrMatrix const again = this->downloaded(this->kernels().product(*this->context, left->view(), right->view(), true));
    EXPECT_EQ(found.columns, again.columns);
    EXPECT_EQ(found.values, again.values);
    CsrMatrix const unsorted = this->downloaded(this->kernels().product(*this->context, left->view(), right->view(), false));
    EXPECT_EQ(unsorted.row_ptr, found.row_ptr);
    EXPECT_EQ(entries_of(unsorted), entries_of(found));
    SparseArrays const transposed = this->kernels().transposed(*this->context, left->view());
    expect_product(
        this->downloaded(this->kernels().galerkin_product(*this->context, transposed.view(), left->view(), right->view())),
        this->downloaded(transposed), found);
  }
}

TYPED_TEST(Aggregation, TransposesExactly) {
  for (auto const& a : {uneven(37, 23, 1), uneven(1, 70, 2), to_csr(3, 5, {}), with_lengths({0, 1, 600, 0}, 1000, 3)}) {
    CsrMatrix const t = this->downloaded(this->kernels().transposed(*this->context, this->on_backend(a)->view()));
    expect_ascending(t);
    EXPECT_EQ(t.n_rows, a->n_columns);
    EXPECT_EQ(t.n_columns, a->n_rows);
    Entries swapped;
    for (auto const& [place, value] : entries_of(t))
      swapped[{place.second, place.first}] = value;
    EXPECT_EQ(swapped, entries_of(*a));
  }
}

TYPED_TEST(Aggregation, CouplingsOfAHandCheckedMatrix) {
  //  2 -1  .     the strongest couplings are 1 and 1; row 3 has none, since 0.5 is of the other sign
  // -1  4 -0.1
  //  .  0.5 3
  auto const a = this->on_backend(
      to_csr(3, {{{0, 0}, 2}, {{0, 1}, -1}, {{1, 0}, -1}, {{1, 1}, 4}, {{1, 2}, -0.1}, {{2, 1}, 0.5}, {{2, 2}, 3}}));
  Couplings const couplings = this->kernels().couplings(*this->context, a->view(), true);
  EXPECT_EQ(this->downloaded(couplings.diagonal), (std::vector<double>{2, 4, 3}));
  EXPECT_EQ(this->downloaded(couplings.strongest), (std::vector<double>{1, 1, 0}));
  EXPECT_EQ(couplings.bad_row, -1);
  EXPECT_DOUBLE_EQ(couplings.bound, 1.5);
}

TYPED_TEST(Aggregation, NamesTheFirstBadDiagonal) {
  Entries entries = entries_of(*box27(6, 5, 4));
  entries[{70, 70}] = entries[{81, 81}] = -2;
  auto const a = this->on_backend(to_csr(120, entries));
  Couplings const couplings = this->kernels().couplings(*this->context, a->view(), true);
  EXPECT_EQ(couplings.bad_row, 70);
  EXPECT_EQ(couplings.bad_value, -2);
  EXPECT_EQ(this->kernels().couplings(*this->context, a->view(), false).bad_row, -1);
  entries.erase({99, 99});
  auto const b = this->on_backend(to_csr(120, entries));
  EXPECT_EQ(this->kernels().couplings(*this->context, b->view(), false).bad_row, 99);
}

TYPED_TEST(Aggregation, EveryCoupledUnknownBelongsToOneConnectedAggregate) {
  for (auto const& matrix : {box_between_lone_rows(), box27(20, 1, 1, true), box27(40, 30, 1), box27(1, 1, 1), box27(2, 1, 1),
                             box27(24, 23, 22, true, 0.3)}) {
    std::int64_t const n = matrix->n_rows;
    SCOPED_TRACE(n);
    auto const a = this->on_backend(matrix);
    Couplings const couplings = this->kernels().couplings(*this->context, a->view(), true);
    Aggregates const aggregates = this->kernels().aggregate(*this->context, a->view(), couplings);
    std::vector<std::int32_t> const of = this->downloaded(aggregates.of);
    std::vector<double> const strongest = this->downloaded(couplings.strongest);
    auto const neighbours = [&](std::int64_t i, auto const& visit) {
      for (std::int64_t k = matrix->row_ptr[i]; k < matrix->row_ptr[i + 1]; ++k)
        if (std::int32_t const j = matrix->columns[k];
            j != i && is_strong(-matrix->values[k], strongest[static_cast<std::size_t>(i)], strongest[static_cast<std::size_t>(j)]))
          visit(static_cast<std::size_t>(j));
    };
    std::vector<std::vector<std::int64_t>> members(static_cast<std::size_t>(aggregates.count));
    std::int64_t coupled = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      std::int32_t const own = of[static_cast<std::size_t>(i)];
      bool const lone = !(strongest[static_cast<std::size_t>(i)] > 0);
      EXPECT_EQ(own < 0, lone) << i;
      coupled += lone ? 0 : 1;
      if (lone)
        continue;
      ASSERT_LT(own, aggregates.count);
      members[static_cast<std::size_t>(own)].push_back(i);
    }
    for (auto const& aggregate : members) {
      ASSERT_FALSE(aggregate.empty());
      std::vector<std::int64_t> reached{aggregate.front()};
      std::vector<bool> seen(static_cast<std::size_t>(n));
      seen[static_cast<std::size_t>(aggregate.front())] = true;
      for (std::size_t at = 0; at < reached.size(); ++at)
        neighbours(reached[at], [&](std::size_t j) {
          if (!seen[j] && of[j] == of[static_cast<std::size_t>(aggregate.front())]) {
            seen[j] = true;
            reached.push_back(static_cast<std::int64_t>(j));
          }
        });
      EXPECT_EQ(reached.size(), aggregate.size());
    }
    if (n > 2000) {  // a coarser level is worth its work, and not too coarse
      EXPECT_LE(8 * aggregates.count, coupled);
      EXPECT_GE(80 * aggregates.count, coupled);
    }
    Aggregates const again = this->kernels().aggregate(*this->context, a->view(), couplings);
    EXPECT_EQ(this->downloaded(again.of), of);
  }
}

TYPED_TEST(Aggregation, ProlongationFollowsItsFormula) {
  auto const matrix = box_between_lone_rows();
  std::int64_t const n = matrix->n_rows;
  auto const a = this->on_backend(matrix);
  Couplings const couplings = this->kernels().couplings(*this->context, a->view(), true);
  Aggregates const aggregates = this->kernels().aggregate(*this->context, a->view(), couplings);
  std::vector<std::int32_t> const of = this->downloaded(aggregates.of);
  std::vector<double> const diagonal = this->downloaded(couplings.diagonal), strongest = this->downloaded(couplings.strongest);
  double const damping = 0.6;
  CsrMatrix const p = this->downloaded(this->kernels().prolongation(*this->context, a->view(), couplings, aggregates, damping));
  expect_ascending(p);
  EXPECT_EQ(p.n_columns, aggregates.count);
  Entries expected;
  for (std::int64_t i = 0; i < n; ++i) {
    std::int32_t const own = of[static_cast<std::size_t>(i)];
    if (own < 0)
      continue;
    auto const strong = [&](std::int64_t k) {
      std::int32_t const j = matrix->columns[k];
      return j != i &&
             is_strong(-matrix->values[k], strongest[static_cast<std::size_t>(i)], strongest[static_cast<std::size_t>(j)]);
    };
    double lumped = 0, sum = 0;
    for (std::int64_t k = matrix->row_ptr[i]; k < matrix->row_ptr[i + 1]; ++k)
      lumped += strong(k) ? 0 : matrix->values[k];
    expected[{i, own}] += 1 - damping;
    for (std::int64_t k = matrix->row_ptr[i]; k < matrix->row_ptr[i + 1]; ++k)
      if (strong(k))
        expected[{i, of[static_cast<std::size_t>(matrix->columns[k])]}] -= damping * matrix->values[k] / lumped;
    // The matrix has row sums of 0, and so constants are kept.
    for (std::int64_t k = p.row_ptr[i]; k < p.row_ptr[i + 1]; ++k)
      sum += p.values[k];
    EXPECT_NEAR(sum, 1, 1e-13) << i;
  }
  Entries const found = entries_of(p);
  EXPECT_EQ(found.size(), expected.size());
  for (auto const& [place, value] : expected) {
    ASSERT_EQ(found.count(place), 1U);
    EXPECT_NEAR(found.at(place), value, 1e-14);
  }
}

TYPED_TEST(Aggregation, EstimatesTheLargestEigenvalueFromBelow) {
  int const nodes = 25;
  // A is the second difference on a line: D^-1 A has the eigenvalues 1 - cos(k pi / (n + 1)).
  Entries entries;
  for (std::int64_t i = 0; i < nodes; ++i) {
    entries[{i, i}] = 2;
    if (i > 0)
      entries[{i, i - 1}] = entries[{i - 1, i}] = -1;
  }
  auto const a = this->on_backend(to_csr(nodes, entries));
  Couplings const couplings = this->kernels().couplings(*this->context, a->view(), true);
  double const largest = 1 + std::cos(std::acos(-1.0) / (nodes + 1));
  double const estimate = this->kernels().largest_eigenvalue(*this->context, a->view(), couplings);
  EXPECT_LE(estimate, largest * (1 + 1e-12));
  EXPECT_GE(estimate, 0.9 * largest);
  EXPECT_DOUBLE_EQ(couplings.bound, 2);
}

}  // namespace poisson::testing
