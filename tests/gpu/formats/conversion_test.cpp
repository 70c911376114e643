#include "tests/gpu/cases.hpp"
#include "tests/gpu/matrices.hpp"

#include "gpu/core/array.hpp"
#include "gpu/core/error.hpp"
#include "gpu/formats/box.hpp"
#include "gpu/formats/coo.hpp"
#include "gpu/formats/csr.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/conversion.hpp"
#include "gpu/kernels/symmetry.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <set>
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

TYPED_TEST(ConversionTest, BackToCsrInTheSameMemoryGivesTheSameBits) {
  Format const format = TypeParam::format;
  bool const has = format == Format::csr || format == Format::crs_t || format == Format::sell_c_sigma;
  int taken = 0;
  for (Named const& named : this->matrices())
    for (FormatOptions const& options : options_of(format)) {
      auto const matrix = this->make_or_null(named, options);
      if (matrix == nullptr)
        continue;
      auto const csr = matrix->as_csr();
      ASSERT_EQ(csr != nullptr, has && matrix->precision() == MatrixPrecision::double_) << named.what;
      if (csr == nullptr)
        continue;
      ++taken;
      EXPECT_EQ(&csr->context(), this->context.get());
      expect_same_bits(csr->to_csr(), *named.csr, named.what);
    }
  if (has) {
    EXPECT_GE(taken, 15);
  }
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

TYPED_TEST(ConversionTest, EveryWayGivesTheSameMatrix) {
  auto const host = make_context(Backend::cpu);
  for (Named const& named : this->matrices())
    for (FormatOptions options : options_of(TypeParam::format)) {
      auto const reference = this->make_or_null(named, options);
      if (reference == nullptr)
        continue;
      SCOPED_TRACE(named.what);
      Csr const source(named.csr, *this->context);
      auto const x = random_vector(named.csr->n_columns, 17);
      Array<double> const device_x(*this->context, std::span<double const>(x));
      auto const product_of = [&](Matrix const& matrix) {
        Array<double> y(*this->context, named.csr->n_rows);
        std::vector<double> result(static_cast<std::size_t>(named.csr->n_rows));
        matrix.product(1, device_x.data(), 0, y.data());
        y.download(result);
        return result;
      };
      auto const expected = product_of(*reference);
      for (auto const& value : Names<Conversion>::values) {
        if (value.value == Conversion::device && TypeParam::backend == Backend::cpu)
          continue;
        SCOPED_TRACE(value.name);
        options.conversion = value.value;
        for (auto const& matrix : {this->make(named.csr, options), make_matrix(TypeParam::format, source, options)}) {
          expect_same_bits(matrix->to_csr(), *named.csr, "back to csr");
          EXPECT_EQ(&matrix->context(), this->context.get());
          // The sequential conversion of cod_sell groups other rows; cod_sell_test.cpp compares their bytes.
          if (TypeParam::format == Format::cod_sell && value.value == Conversion::sequential)
            continue;
          EXPECT_EQ(matrix->bytes(), reference->bytes());
          EXPECT_EQ(matrix->padding_ratio(), reference->padding_ratio());
          EXPECT_TRUE(product_of(*matrix) == expected);
        }
      }
    }
}

template <class C>
class ShortMemory : public OnCase<C> {};
TYPED_TEST_SUITE(ShortMemory, Cases, CaseNames);

TYPED_TEST(ShortMemory, LeavesTheConversionToTheHost) {
  if (TypeParam::backend == Backend::cpu || TypeParam::format == Format::csr || TypeParam::format == Format::crs_t)
    GTEST_SKIP() << "only a device has its own memory, and csr is not converted";
  auto const host = make_context(Backend::cpu);
  auto const csr = std::make_shared<CsrMatrix const>(box_laplacian(*host, 64, 64, 64)->to_csr());
  std::int64_t const bytes = this->make(csr)->bytes();
  // Room for either, but not for both.
  std::int64_t const left = csr->bytes() + bytes / 2;
  Array<char> rest(*this->context, this->context->description().memory_free - left);
  std::int64_t const before = this->context->memory_used();
  EXPECT_THROW(static_cast<void>(this->make(csr, {.conversion = Conversion::device})), OutOfMemoryError);
  EXPECT_EQ(this->context->memory_used(), before);
  auto const matrix = this->make(csr);
  EXPECT_EQ(this->context->memory_used() - before, bytes);
  EXPECT_EQ(matrix->bytes(), bytes);
  rest = Array<char>();
  expect_same_bits(matrix->to_csr(), *csr, "converted on the host");
}

TYPED_TEST(ShortMemory, NamesAFormatThatFits) {
  if (TypeParam::backend == Backend::cpu || TypeParam::format == Format::half_cds)
    GTEST_SKIP() << "only a device has its own memory, and no format is smaller than half_cds";
  auto const host = make_context(Backend::cpu);
  auto const csr = std::make_shared<CsrMatrix const>(box_laplacian(*host, 64, 64, 64)->to_csr());
  std::int64_t const left = std::int64_t{40} << 20;  // half_cds takes 28 MiB, the others 54 or more
  Array<char> const rest(*this->context, this->context->description().memory_free - left);
  for (Conversion const conversion : {Conversion::automatic, Conversion::host}) {
    try {
      static_cast<void>(this->make(csr, {.conversion = conversion}));
      FAIL() << "no OutOfMemoryError";
    } catch (OutOfMemoryError const& error) {
      expect_contains(error.what(), {"a matrix in", "are free", "half_cds would fit with"});
    }
  }
}

TEST(Conversions, ADeviceIsRefusedWhereThereIsNone) {
  auto const host = make_context(Backend::cpu);
  try {
    static_cast<void>(make_matrix(Format::csr, banded(9, {1}, 2), *host, {.conversion = Conversion::device}));
    FAIL() << "no InputError";
  } catch (InputError const& error) {
    EXPECT_EQ(error.key(), "conversion");
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

template <class C>
class ConversionKernelTest : public OnBackend<C::backend> {};
TYPED_TEST_SUITE(ConversionKernelTest, CsrCases, CaseNames);

TYPED_TEST(ConversionKernelTest, AnalysisAgainstNaiveLoops) {
  std::vector<Named> matrices = symmetric_matrices();
  for (auto const& more : {diagonal_matrices(), any_matrices()})
    matrices.insert(matrices.end(), more.begin(), more.end());
  // Asymmetric in a value, in one far away, in a stored zero (which is none), in the pattern above or below alone.
  auto near = banded(5000, {1, 7}, 3), far = banded(5000, {1, 4999}, 3), rounded = banded(500, {1}, 3), nan = banded(500, {1}, 3);
  near->values[static_cast<std::size_t>(near->row_ptr[4321])] += 1e-9;
  far->values[static_cast<std::size_t>(far->row_ptr[4999])] += 1;
  rounded->values[static_cast<std::size_t>(rounded->row_ptr[77])] *= 1 + std::numeric_limits<double>::epsilon();
  for (std::int64_t const row : {401, 300, 402})
    nan->values[static_cast<std::size_t>(nan->row_ptr[row])] = std::numeric_limits<double>::quiet_NaN();
  Entries above, below, zero, infinite;
  for (std::int64_t i = 0; i < 3000; ++i)
    above[{i, i}] = below[{i, i}] = zero[{i, i}] = infinite[{i, i}] = 1;
  above[{2, 2999}] = below[{2999, 2}] = 0.5;
  zero[{2999, 2}] = zero[{3, 5}] = 0;
  infinite[{1700, 1700}] = infinite[{2999, 2999}] = -std::numeric_limits<double>::infinity();
  Entries one_infinite = infinite;
  one_infinite[{5, 2999}] = std::numeric_limits<double>::infinity();
  one_infinite[{2999, 5}] = 1;
  // Far more empty rows than entries, and entries of one row in more than one warp's share.
  Entries sparse{{{7, 3}, 1.0}, {{199000, 4}, 2.0}};
  for (std::int64_t j = 0; j < 9000; ++j)
    sparse[{100000, j}] = 1;
  matrices.insert(matrices.end(), {{"near", near},
                                   {"far", far},
                                   {"rounded", rounded},
                                   {"NaN", nan},
                                   {"above", to_csr(3000, above)},
                                   {"below", to_csr(3000, below)},
                                   {"zero", to_csr(3000, zero)},
                                   {"infinite", to_csr(3000, infinite)},
                                   {"infinite on one side", to_csr(3000, one_infinite)},
                                   {"mostly empty", to_csr(200000, 9000, sparse)}});
  auto const& kernels = kernels_for<ConversionKernels>(*this->context);
  int symmetric = 0;
  for (Named const& named : matrices) {
    SCOPED_TRACE(named.what);
    CsrMatrix const& a = *named.csr;
    std::set<std::int64_t> diagonals, lower{0};
    std::map<std::pair<std::int64_t, std::int64_t>, double> entries;
    std::int64_t longest = 0, not_finite = -1;
    std::map<std::int64_t, double> largest;  // finite entry of a row
    for (std::int64_t row = 0; row < a.n_rows; ++row) {
      longest = std::max(longest, a.row_ptr[static_cast<std::size_t>(row) + 1] - a.row_ptr[static_cast<std::size_t>(row)]);
      for (auto e = static_cast<std::size_t>(a.row_ptr[static_cast<std::size_t>(row)]);
           e < static_cast<std::size_t>(a.row_ptr[static_cast<std::size_t>(row) + 1]); ++e) {
        diagonals.insert(a.columns[e] - row);
        if (a.columns[e] <= row)
          lower.insert(row - a.columns[e]);
        entries[{row, a.columns[e]}] = a.values[e];
        if (std::isfinite(a.values[e]))
          largest[row] = std::max(largest[row], std::abs(a.values[e]));
        if (not_finite < 0 && !std::isfinite(a.values[e]))
          not_finite = row;
      }
    }
    bool expected = a.n_rows == a.n_columns;
    double asymmetry = 0;
    auto const at = [&](std::int64_t row, std::int64_t column) {
      auto const found = entries.find({row, column});
      return found == entries.end() ? 0.0 : found->second;
    };
    for (auto const& [place, value] : entries) {
      double const mirror = at(place.second, place.first);
      if (value == mirror || (std::isnan(value) && std::isnan(mirror)))
        continue;
      double const difference = std::abs(value - mirror), scale = std::max(largest[place.first], largest[place.second]);
      asymmetry = std::max(asymmetry, std::isfinite(difference) ? difference / scale : std::numeric_limits<double>::infinity());
    }
    expected = expected && asymmetry <= 1e-10;
    symmetric += expected;
    Csr const source(named.csr, *this->context);
    CsrAnalysis const found = kernels.analyse(*this->context, source.view(), true);
    EXPECT_EQ(found.n_diagonals, static_cast<std::int64_t>(diagonals.size()));
    EXPECT_EQ(found.longest_row, longest);
    EXPECT_EQ(found.row_not_finite, not_finite);
    EXPECT_EQ(found.symmetric, expected);
    if (a.n_rows == a.n_columns) {
      EXPECT_EQ(found.asymmetry, asymmetry);
    }
    EXPECT_FALSE(kernels.analyse(*this->context, source.view(), false).symmetric);
    EXPECT_EQ(shape_of(source).symmetric, expected);
    EXPECT_EQ(shape_of(source).n_diagonals, shape_of(a).n_diagonals);
    EXPECT_EQ(kernels.diagonals(*this->context, source.view(), false),
              std::vector<std::int32_t>(diagonals.begin(), diagonals.end()));
    if (a.n_rows == a.n_columns) {
      EXPECT_EQ(kernels.diagonals(*this->context, source.view(), true), std::vector<std::int32_t>(lower.begin(), lower.end()));
    }
    auto const mine = estimate_formats(source, {.sigma = 0}), hosts = estimate_formats(a, {.sigma = 0});
    ASSERT_EQ(mine.size(), hosts.size());
    for (std::size_t i = 0; i < mine.size(); ++i) {
      EXPECT_EQ(mine[i].bytes, hosts[i].bytes);
      EXPECT_EQ(mine[i].refusal, hosts[i].refusal);
    }
  }
  EXPECT_GE(symmetric, 20);
}

TYPED_TEST(ConversionKernelTest, SymmetricToRoundingIsSymmetric) {
  double const nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  struct {
    std::string what;
    Entries entries;
    double from, to;  ///< where its asymmetry lies
  } const cases[] = {
      {"a matrix of a file with 14 digits",
       {{{0, 0}, 7.0}, {{0, 1}, -3.6368387841934}, {{1, 0}, -3.6368387841933}, {{1, 1}, 9.0}},
       1.10e-14,
       1.13e-14},
      {"14 digits, and no entry larger", {{{0, 1}, -3.6368387841934}, {{1, 0}, -3.6368387841933}}, 2.7e-14, 2.8e-14},
      {"below 1e-14", {{{0, 0}, 1.0}, {{0, 1}, 0.25}, {{1, 0}, 0.25 + 9.9e-15}}, 9.8e-15, 1e-14},
      {"above 1e-14", {{{0, 0}, 1.0}, {{0, 1}, 0.25}, {{1, 0}, 0.25 + 1.01e-14}}, 1.0001e-14, 1.02e-14},
      {"below 1e-10", {{{1, 1}, -2.0}, {{0, 1}, 0.25}, {{1, 0}, 0.25 + 1.99e-10}}, 9.9e-11, 1e-10},
      {"above 1e-10", {{{1, 1}, -2.0}, {{0, 1}, 0.25}, {{1, 0}, 0.25 + 2.01e-10}}, 1.001e-10, 1.01e-10},
      {"the largest entry of either row counts", {{{0, 1}, 1e-5}, {{1, 0}, 2e-5}, {{1, 2}, 1e6}, {{2, 1}, 1e6}}, 9e-12, 1.1e-11},
      {"another row's does not", {{{0, 1}, 1e-5}, {{1, 0}, 2e-5}, {{2, 2}, 1e6}}, 0.49, 0.51},
      {"stored above only", {{{0, 0}, 1.0}, {{0, 2}, 1e-12}, {{2, 2}, 1.0}}, 1e-12, 1e-12},
      {"stored below only", {{{0, 0}, 1.0}, {{2, 0}, 1e-12}, {{2, 2}, 1.0}}, 1e-12, 1e-12},
      {"far too much below only", {{{0, 0}, 1.0}, {{2, 0}, 1e-9}, {{2, 2}, 1.0}}, 1e-9, 1e-9},
      {"zeros on one side, empty rows", {{{0, 2}, 0.0}, {{2, 1}, -0.0}}, 0, 0},
      {"no entries", {}, 0, 0},
      {"NaN on both sides", {{{0, 1}, nan}, {{1, 0}, nan}}, 0, 0},
      {"NaN on one side", {{{0, 1}, nan}, {{1, 0}, 1.0}}, infinity, infinity},
      {"NaN alone", {{{2, 1}, nan}}, infinity, infinity},
      {"infinity on one side", {{{0, 1}, infinity}, {{1, 0}, 1.0}}, infinity, infinity},
      {"infinity beside it hides nothing", {{{0, 0}, infinity}, {{0, 1}, 1.0}, {{1, 0}, 1.5}}, 0.33, 0.34},
      {"tiny", {{{0, 1}, 5e-324}, {{1, 0}, 1e-323}}, 0.49, 0.51},
      {"huge", {{{0, 1}, 1.7e308}, {{1, 0}, -1.7e308}}, infinity, infinity}};
  auto const& kernels = kernels_for<ConversionKernels>(*this->context);
  for (auto const& one : cases) {
    SCOPED_TRACE(one.what);
    auto const csr = to_csr(3, one.entries);
    CsrAnalysis const found = kernels.analyse(*this->context, Csr(csr, *this->context).view(), true);
    EXPECT_GE(found.asymmetry, one.from);
    EXPECT_LE(found.asymmetry, one.to);
    EXPECT_EQ(found.symmetric, one.to <= 1e-10);
    Symmetry const of_host = find_symmetry(view_of(*csr));
    EXPECT_EQ(of_host.asymmetry, found.asymmetry);
    EXPECT_EQ(of_host.first.has_value(), !found.symmetric);
  }
  Symmetry const below = find_symmetry(view_of(*to_csr(3, {{{0, 0}, 1.0}, {{2, 0}, 1e-9}, {{2, 2}, 1.0}})));
  EXPECT_EQ(below.first.value().row, 2);
  EXPECT_EQ(below.first.value().column, 0);
  EXPECT_EQ(below.first.value().value, 1e-9);
  EXPECT_EQ(below.first.value().mirror, 0);
}

TYPED_TEST(ConversionKernelTest, RowsAreSortedStablyWithinWindows) {
  auto csr = std::make_shared<CsrMatrix>();  // lengths and windows that together need more than 32 bits
  csr->n_rows = 140001;
  csr->n_columns = 70000;
  csr->row_ptr.push_back(0);
  for (std::int64_t row = 0; row < csr->n_rows; ++row) {
    std::int64_t const length = row == 139999 ? 70000 : row * 7919 % 4;
    for (std::int64_t j = 0; j < length; ++j)
      csr->columns.push_back(static_cast<std::int32_t>(j));
    csr->row_ptr.push_back(static_cast<std::int64_t>(csr->columns.size()));
  }
  csr->values.assign(csr->columns.size(), 1.0);
  auto const small = uneven(300, 300, 4), equal = banded(2000, {1}, 3), empty = to_csr(100, {});
  for (auto const& a : {csr, small, equal, empty})
    for (std::int64_t const sigma : {std::int64_t{0}, std::int64_t{2}, std::int64_t{100}, std::int64_t{1} << 40}) {
      std::vector<std::int32_t> expected(static_cast<std::size_t>(a->n_rows));
      std::iota(expected.begin(), expected.end(), 0);
      auto const length = [&](std::int32_t row) {
        return a->row_ptr[static_cast<std::size_t>(row) + 1] - a->row_ptr[static_cast<std::size_t>(row)];
      };
      std::int64_t const window = sigma == 0 ? a->n_rows : sigma;
      for (std::int64_t first = 0; first < a->n_rows; first += window)
        std::stable_sort(expected.begin() + first, expected.begin() + std::min(a->n_rows, first + window),
                         [&](std::int32_t x, std::int32_t y) { return length(x) > length(y); });
      Csr const source(a, *this->context);
      auto const rows = kernels_for<ConversionKernels>(*this->context).rows_by_length(*this->context, source.view(), sigma);
      std::vector<std::int32_t> found(static_cast<std::size_t>(rows.size()));
      rows.download(found);
      EXPECT_TRUE(found == expected) << a->n_rows << " rows, sigma " << sigma;
    }
}

/// The naive way: a map of sums.
CsrMatrix naive_csr(CooMatrix const& coo) {
  Entries sums;
  for (std::size_t i = 0; i < coo.values.size(); ++i) {
    auto const [place, is_new] = sums.try_emplace({coo.rows[i], coo.columns[i]}, coo.values[i]);
    if (!is_new)
      place->second += coo.values[i];
  }
  return *to_csr(coo.n_rows, coo.n_columns, sums);
}

TYPED_TEST(ConversionKernelTest, CooInAnyOrderWithDuplicates) {
  std::mt19937_64 random(12);
  for (auto const& [n_rows, n_columns, count] : {std::array<std::int64_t, 3>{1, 1, 1},
                                                 {1, 1, 300},
                                                 {5, 1, 40},
                                                 {1, 5, 40},
                                                 {300, 200, 0},
                                                 {0, 0, 0},
                                                 {4, 0, 0},
                                                 {300, 200, 100},
                                                 {300, 200, 30000},
                                                 {64, 64, 4096},
                                                 {70000, 3, 5000},
                                                 {3, 70000, 5000},
                                                 {40000, 40000, 120000}}) {
    CooMatrix coo;
    coo.n_rows = n_rows;
    coo.n_columns = n_columns;
    for (std::int64_t i = 0; i < count; ++i) {
      coo.rows.push_back(static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(n_rows)));
      coo.columns.push_back(static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(n_columns)));
      // Values are of such different size that another order of summation gives other bits.
      coo.values.push_back(std::ldexp(static_cast<double>(random() % 2001) - 1000, static_cast<int>(random() % 80)));
    }
    std::string const what = std::to_string(n_rows) + " x " + std::to_string(n_columns) + ", " + std::to_string(count) + " entries";
    std::unique_ptr<Csr> const csr = csr_from_coo(coo, *this->context);
    expect_same_bits(csr->to_csr(), naive_csr(coo), what);
    EXPECT_EQ(&csr->context(), this->context.get());
    if (TypeParam::backend == Backend::cpu)
      expect_same_bits(csr_from_coo(coo), naive_csr(coo), what);
  }
}

TYPED_TEST(ConversionKernelTest, CooOutOfRangeIsNamed) {
  for (auto const& [row, column] : {std::pair{3, 0}, {-1, 0}, {0, 2}, {0, -1}}) {
    CooMatrix coo;
    coo.n_rows = 3;
    coo.n_columns = 2;
    coo.rows = {0, row, row};
    coo.columns = {1, column, column};
    coo.values = {1, 1, 1};
    try {
      static_cast<void>(csr_from_coo(coo, *this->context));
      FAIL() << "no InputError";
    } catch (InputError const& error) {
      std::string const place = "row " + std::to_string(row + 1) + ", column " + std::to_string(column + 1) + " (counted from 1)";
      expect_contains(error.what(), {"entry 2 is at", place.c_str(), "3 rows", "2 columns"});
    }
  }
}

TYPED_TEST(ConversionKernelTest, BoxAgainstATripleLoop) {
  double const weight[] = {8.0 / 3, 0, -1.0 / 6, -1.0 / 12};
  for (auto const& [nx, ny, nz] : {std::array<int, 3>{1, 1, 1},
                                   {2, 1, 1},
                                   {1, 2, 1},
                                   {1, 1, 3},
                                   {2, 2, 2},
                                   {3, 3, 3},
                                   {5, 4, 3},
                                   {1, 7, 2},
                                   {9, 10, 11},
                                   {33, 2, 5}}) {
    Entries entries;
    for (int z = 0; z < nz; ++z)
      for (int y = 0; y < ny; ++y)
        for (int x = 0; x < nx; ++x)
          for (int z2 = 0; z2 < nz; ++z2)
            for (int y2 = 0; y2 < ny; ++y2)
              for (int x2 = 0; x2 < nx; ++x2)
                if (std::abs(x - x2) <= 1 && std::abs(y - y2) <= 1 && std::abs(z - z2) <= 1)
                  entries[{(z * ny + y) * nx + x, (z2 * ny + y2) * nx + x2}] = weight[(x != x2) + (y != y2) + (z != z2)];
    std::int64_t const n = std::int64_t{nx} * ny * nz;
    auto const expected = to_csr(n, entries);
    std::string const what = std::to_string(nx) + " x " + std::to_string(ny) + " x " + std::to_string(nz);
    auto const csr = box_laplacian(*this->context, nx, ny, nz);
    expect_same_bits(csr->to_csr(), *expected, what);

    auto const x = random_vector(n, 5);
    Array<double> const device_x(*this->context, std::span<double const>(x));
    Array<double> y(*this->context, n);
    box_laplacian_product(*this->context, nx, ny, nz, device_x.data(), y.data());
    std::vector<double> result(x.size());
    y.download(result);
    auto const product = naive_product(*expected, x), scale = absolute_product(*expected, x);
    for (std::size_t i = 0; i < x.size(); ++i)
      ASSERT_NEAR(result[i], product[i], 4e-15 * scale[i]) << what << ", row " << i;
  }
}

TYPED_TEST(ConversionKernelTest, BoxesThatAreNoneAreRefused) {
  for (auto const& [nx, ny, nz] :
       {std::array<std::int64_t, 3>{0, 1, 1}, {1, -1, 1}, {1, 1, 0}, {1291, 1291, 1291}, {1LL << 40, 1LL << 40, 1}})
    EXPECT_THROW(static_cast<void>(box_laplacian(*this->context, nx, ny, nz)), InputError);
}

TYPED_TEST(ConversionTest, BoxesFromTheDeviceAgainstTheirProductWithoutMatrix) {
  auto const box = box_laplacian(*this->context, 41, 37, 43);
  std::int64_t const n = box->n_rows();
  auto const x = random_vector(n, 8);
  Array<double> const device_x(*this->context, std::span<double const>(x));
  Array<double> y(*this->context, n), y_free(*this->context, n);
  auto const matrix = make_matrix(TypeParam::format, *box);
  matrix->product(1, device_x.data(), 0, y.data());
  box_laplacian_product(*this->context, 41, 37, 43, device_x.data(), y_free.data());
  std::vector<double> result(x.size()), expected(x.size());
  y.download(result);
  y_free.download(expected);
  for (std::size_t i = 0; i < x.size(); ++i)
    ASSERT_NEAR(result[i], expected[i], 4e-14) << "row " << i;
}

}  // namespace
}  // namespace poisson::testing
