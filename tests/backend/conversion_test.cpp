#include "tests/backend/cases.hpp"
#include "tests/backend/matrices.hpp"

#include "gpu/core/array.hpp"
#include "gpu/core/error.hpp"
#include "gpu/formats/csr.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>

namespace poisson::testing {

namespace {

void expect_same_bits(CsrMatrix const& a, CsrMatrix const& b, std::string const& what) {
  EXPECT_EQ(a.n_rows, b.n_rows) << what;
  EXPECT_EQ(a.n_columns, b.n_columns) << what;
  EXPECT_TRUE(a.row_ptr == b.row_ptr) << what;
  EXPECT_TRUE(a.columns == b.columns) << what;
  auto const same = [](double x, double y) { return std::bit_cast<std::uint64_t>(x) == std::bit_cast<std::uint64_t>(y); };
  EXPECT_TRUE(std::equal(a.values.begin(), a.values.end(), b.values.begin(), b.values.end(), same)) << what;
}

struct Named {
  std::string what;
  std::shared_ptr<CsrMatrix const> csr;
};

/// Matrices that every format takes.
std::vector<Named> symmetric_matrices() {
  Entries zeros, holes;  // stored zeros beside places where nothing is stored, on the main diagonal and off it
  for (std::int64_t i = 0; i < 900; ++i) {
    zeros[{i, i}] = i % 3 == 0 ? 0.0 : 2.0;
    if (i + 5 < 900 && i % 7 != 1)
      zeros[{i, i + 5}] = zeros[{i + 5, i}] = i % 2 == 0 ? 0.0 : -1.0 / static_cast<double>(i + 1);
    if (i % 64 > 5)
      holes[{i, i}] = static_cast<double>(i) - 10;
  }
  auto all_zero = to_csr(900, holes);
  std::fill(all_zero->values.begin(), all_zero->values.end(), 0.0);
  std::vector<Named> result{
      {"0 x 0", to_csr(0, {})},
      {"1 x 1", to_csr(1, {{{0, 0}, -2.5}})},
      {"explicit zeros", to_csr(900, zeros)},
      {"diagonal with holes", to_csr(900, holes)},
      {"only zeros", all_zero},
      {"box", box27(17, 18, 19, false, 0.5)},
      {"flat box", box27(40, 3, 30, true, 0.5)},
      {"far diagonals", banded(3000, {1, 31, 32, 33, 1023, 1024, 1500}, 5)},
      {"many diagonals", banded(1500, {1,  2,  3,  5,  8,  9,  10, 11, 13, 14, 15, 16, 17, 18, 20, 21, 25, 27, 31,
                                       33, 34, 35, 36, 40, 41, 42, 45, 46, 47, 50, 51, 60, 61, 62, 63, 64, 65, 66},
                                5)}};
  for (std::int64_t const n : {2, 31, 32, 33, 64, 127, 128, 129, 255, 257, 1023, 1025})
    result.push_back({"banded, n = " + std::to_string(n), banded(n, {1, 2}, static_cast<unsigned>(n))});
  return result;
}

std::shared_ptr<CsrMatrix> unsymmetric_band(std::int64_t n_rows, std::int64_t n_columns, std::vector<std::int64_t> const& offsets) {
  Entries entries;
  for (std::int64_t row = 0; row < n_rows; ++row)
    for (std::int64_t const o : offsets)
      if (row + o >= 0 && row + o < n_columns && (row + o) % 13 != 5)
        entries[{row, row + o}] = (row + o) % 11 == 0 ? 0.0 : 1.0 / static_cast<double>(1 + row + 3 * std::abs(o));
  return to_csr(n_rows, n_columns, entries);
}

/// Matrices of few diagonals, square or not.
std::vector<Named> diagonal_matrices() {
  return {{"unsymmetric", unsymmetric_band(700, 700, {-40, -3, 0, 1, 2, 77})},
          {"wide", unsymmetric_band(300, 900, {-7, 0, 5, 500, 600})},
          {"high", unsymmetric_band(900, 300, {-700, -600, -5, 1, 2})},
          {"upper only", unsymmetric_band(300, 300, {3, 4})}};
}

std::vector<Named> any_matrices() {
  std::vector<Named> result{{"no entries", to_csr(70, {})},
                            {"no rows, some columns", to_csr(0, 5, {})},
                            {"no columns", to_csr(5, 0, {})},
                            {"300 x 70", uneven(300, 70, 1)},
                            {"70 x 300", uneven(70, 300, 2)},
                            {"one dense row", uneven(90, 20000, 3)},
                            {"negative zero", to_csr(2, {{{0, 0}, -0.0}, {{1, 0}, 0.0}})}};
  for (std::int64_t const n : {2, 5, 31, 32, 33, 127, 128, 129, 257, 2500})
    result.push_back({"uneven, n = " + std::to_string(n), uneven(n, n, static_cast<unsigned>(n))});
  return result;
}

std::vector<FormatOptions> options_of(Format format) {
  if (format != Format::sell_c_sigma)
    return {{}};
  return {{}, {.slice_size = 1}, {.slice_size = 4, .sigma = 0}, {.slice_size = 8, .sigma = 40}, {.slice_size = 256, .sigma = 100}};
}

template <class C>
class ConversionTest : public OnCase<C> {
protected:
  static std::vector<Named> matrices() {
    std::vector<Named> result = symmetric_matrices();
    for (auto const& [takes, more] :
         {std::pair{!OnCase<C>::symmetric_only, diagonal_matrices()}, {OnCase<C>::any_pattern, any_matrices()}})
      if (takes)
        result.insert(result.end(), more.begin(), more.end());
    return result;
  }
  /// Null where the matrix has too many diagonals for the format, which format_test.cpp tests.
  [[nodiscard]] std::unique_ptr<Matrix> make_or_null(Named const& named, FormatOptions const& options) {
    for (FormatEstimate const& estimate : estimate_formats(*named.csr, options))
      if (estimate.format == C::format && !estimate.refusal.empty())
        return nullptr;
    return this->make(named.csr, options);
  }
};
TYPED_TEST_SUITE(ConversionTest, Cases, CaseNames);

TYPED_TEST(ConversionTest, BackToCsrGivesTheSameBits) {
  int taken = 0;
  for (Named const& named : this->matrices())
    for (FormatOptions const& options : options_of(TypeParam::format)) {
      auto const matrix = this->make_or_null(named, options);
      if (matrix == nullptr)
        continue;
      ++taken;
      expect_same_bits(matrix->to_csr(), *named.csr, named.what);
    }
  EXPECT_GE(taken, 15);
}

TYPED_TEST(ConversionTest, CopiesAreTheSameMatrix) {
  auto const host = make_context(Backend::cpu);
  auto const csr = box27(9, 9, 9, false, 0.5);
  auto const matrix = this->make(csr);
  auto const copy = matrix->copy_to(*host), back = copy->copy_to(*this->context);
  for (Matrix const* const m : {copy.get(), back.get()}) {
    EXPECT_EQ(m->format(), TypeParam::format);
    EXPECT_EQ(m->bytes(), matrix->bytes());
    EXPECT_EQ(m->bytes_per_product(), matrix->bytes_per_product());
    EXPECT_EQ(m->padding_ratio(), matrix->padding_ratio());
    EXPECT_EQ(m->row_not_finite, -1);
    expect_same_bits(m->to_csr(), *csr, "copy");
  }
  EXPECT_EQ(&copy->context(), host.get());
  EXPECT_EQ(&back->context(), this->context.get());
  auto const x = random_vector(csr->n_rows, 3);
  Array<double> const device_x(*this->context, std::span<double const>(x));
  Array<double> y(*this->context, csr->n_rows), y_back(*this->context, csr->n_rows);
  matrix->product(1, device_x.data(), 0, y.data());
  back->product(1, device_x.data(), 0, y_back.data());
  std::vector<double> first(x.size()), second(x.size());
  y.download(first);
  y_back.download(second);
  EXPECT_EQ(first, second);
}

TEST(Conversions, ADeviceIsRefusedWhereThereIsNone) {
  auto const host = make_context(Backend::cpu);
  try {
    static_cast<void>(make_matrix(Format::csr, banded(9, {1}, 2), *host, {.conversion = Conversion::device}));
    FAIL() << "no InputError";
  } catch (InputError const& error) {
    EXPECT_EQ(error.key(), "matrix.conversion");
    expect_contains(error.what(), {"found device", "sequential", "host"});
  }
}

TEST(Conversions, DiagonalsKeepAllButTheSignOfZeros) {
  auto const host = make_context(Backend::cpu);
  auto const csr = to_csr(3, {{{0, 0}, -0.0}, {{1, 1}, 1.0}, {{2, 2}, 0.0}});
  for (Format const format : {Format::cds, Format::half_cds}) {
    CsrMatrix const back = make_matrix(format, csr, *host)->to_csr();
    ASSERT_EQ(back.nnz(), 3);
    EXPECT_FALSE(std::signbit(back.values[0]));
    EXPECT_EQ(back.values[0], 0.0);
  }
}

TEST(Conversions, HalfCdsGivesBackItsLowerTriangle) {
  auto const host = make_context(Backend::cpu);
  double const above = 1 + std::numeric_limits<double>::epsilon();
  auto const csr = to_csr(3, {{{0, 0}, 1.0}, {{0, 1}, above}, {{1, 0}, 1.0}, {{1, 1}, 1.0}, {{2, 2}, 1.0}});
  CsrMatrix const back = make_matrix(Format::half_cds, csr, *host)->to_csr();
  ASSERT_EQ(back.nnz(), 5);
  EXPECT_EQ(back.values[1], 1.0);
}

}  // namespace
}  // namespace poisson::testing
