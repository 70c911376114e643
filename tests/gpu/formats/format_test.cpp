#include "tests/gpu/cases.hpp"
#include "tests/gpu/matrices.hpp"

#include "gpu/core/array.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/memory.hpp"
#include "gpu/core/threads.hpp"
#include "gpu/formats/csr.hpp"
#include "gpu/kernels/backends.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

namespace poisson::testing {

namespace {

/// The message of the InputError with key format that making the matrix throws.
std::string refusal(Format format, std::shared_ptr<CsrMatrix const> csr, Context& context) {
  try {
    static_cast<void>(make_matrix(format, std::move(csr), context));
  } catch (InputError const& error) {
    EXPECT_EQ(error.key(), "format");
    return error.what();
  }
  ADD_FAILURE() << "no InputError";
  return "";
}

FormatEstimate estimate_of(Format format, std::vector<FormatEstimate> const& estimates) {
  for (FormatEstimate const& estimate : estimates)
    if (estimate.format == format)
      return estimate;
  ADD_FAILURE() << "no estimate of " << name_of(format);
  return {};
}

/// What auto decides for so many products; the matrix is made as well.
FormatChoice make_auto(std::shared_ptr<CsrMatrix const> csr, Context& context, double products) {
  FormatChoice choice;
  EXPECT_EQ(make_matrix(Forecast{products, 0}, std::move(csr), context, {}, choice)->format(), choice.format);
  return choice;
}

/// Entries that slices of c rows hold after sorting windows of sigma rows, counted slice by slice.
std::int64_t sell_entries(CsrMatrix const& csr, std::int64_t c, std::int64_t sigma) {
  std::vector<std::int64_t> lengths;
  for (std::size_t row = 0; row < static_cast<std::size_t>(csr.n_rows); ++row)
    lengths.push_back(csr.row_ptr[row + 1] - csr.row_ptr[row]);
  std::int64_t const window = sigma == 0 ? std::max<std::int64_t>(1, csr.n_rows) : sigma;
  for (std::int64_t first = 0; first < csr.n_rows; first += window)
    std::sort(lengths.begin() + first, lengths.begin() + std::min(csr.n_rows, first + window), std::greater<>());
  std::int64_t stored = 0;
  while (!lengths.empty()) {
    auto const slice = lengths.begin() + std::min<std::int64_t>(c, static_cast<std::int64_t>(lengths.size()));
    stored += c * *std::max_element(lengths.begin(), slice);
    lengths.erase(lengths.begin(), slice);
  }
  return stored;
}

template <class C>
class FormatTest : public OnCase<C> {};
TYPED_TEST_SUITE(FormatTest, Cases, CaseNames);

TYPED_TEST(FormatTest, UnsymmetricInput) {
  auto csr = banded(50, {1, 7}, 3);
  auto const entry = static_cast<std::size_t>(csr->row_ptr[20]);  // a(20, 13)
  ASSERT_EQ(csr->columns[entry], 13);
  csr->values[entry] = 0.625;
  if (!this->symmetric_only) {
    EXPECT_NO_THROW(static_cast<void>(this->make(csr)));
    return;
  }
  std::string const message = refusal(TypeParam::format, csr, *this->context);
  expect_contains(message, {"in row 14, column 21 but", "0.625 in row 21, column 14 (counted from 1)", "use csr"});
  EXPECT_FALSE(shape_of(*csr).symmetric);
  auto const missing_below = to_csr(3, {{{0, 0}, 1.0}, {{0, 2}, 4.0}, {{1, 1}, 1.0}, {{2, 2}, 1.0}});
  expect_contains(refusal(TypeParam::format, missing_below, *this->context), {"4 in row 1, column 3 but 0 in row 3, column 1"});
  auto const missing_above = to_csr(3, {{{0, 0}, 1.0}, {{2, 0}, 4.0}, {{1, 1}, 1.0}, {{2, 2}, 1.0}});
  expect_contains(refusal(TypeParam::format, missing_above, *this->context), {"row 1, column 3"});
  auto const rectangular = to_csr(3, 2, {{{0, 0}, 1.0}});
  expect_contains(refusal(TypeParam::format, rectangular, *this->context), {"3 rows", "2 columns"});
}

TYPED_TEST(FormatTest, RoundingAndExplicitZerosAreSymmetricEnough) {
  auto csr = banded(40, {1, 2}, 5);
  csr->values[static_cast<std::size_t>(csr->row_ptr[10])] *= 1 + std::numeric_limits<double>::epsilon();
  EXPECT_NO_THROW(static_cast<void>(this->make(csr)));
  EXPECT_TRUE(shape_of(*csr).symmetric);
  auto const zero = to_csr(3, {{{0, 0}, 1.0}, {{0, 1}, 0.0}, {{1, 1}, 1.0}, {{2, 2}, 1.0}});
  EXPECT_NO_THROW(static_cast<void>(this->make(zero)));
  // A matrix of a file with 14 digits; the format that stores one triangle says how far it is from symmetric, and takes the lower.
  double const above = -3.6368387841934, below = -3.6368387841933;
  if (TypeParam::format == Format::cds)
    return;  // refuses so many diagonals of so few rows
  auto const digits = this->make(to_csr(2, {{{0, 0}, 7.0}, {{0, 1}, above}, {{1, 0}, below}, {{1, 1}, 9.0}}));
  EXPECT_NEAR(digits->asymmetry, this->symmetric_only ? 1.11e-14 : 0, 2e-16);
  CsrMatrix const back = digits->to_csr();
  EXPECT_EQ(back.values, (HostVector<double>{7, this->symmetric_only ? below : above, below, 9}));
}

TYPED_TEST(FormatTest, BytesAndPaddingAreExact) {
  if (TypeParam::format == Format::cod_sell)
    GTEST_SKIP() << "in cod_sell_test.cpp";
  int const nx = 7, ny = 6, nz = 5;
  std::int64_t const n = nx * ny * nz, nnz = (3 * nx - 2) * (3 * ny - 2) * (3 * nz - 2);
  auto const csr = box27(nx, ny, nz);
  ASSERT_EQ(csr->nnz(), nnz);
  auto const matrix = this->make(csr);
  EXPECT_EQ(matrix->format(), TypeParam::format);
  std::int64_t bytes = 0;
  double padding = 1;
  if constexpr (TypeParam::format == Format::csr || TypeParam::format == Format::crs_t)
    bytes = 12 * nnz + 8 * (n + 1);
  else if constexpr (TypeParam::format == Format::sell_c_sigma) {
    std::int64_t const stored = sell_entries(*csr, 32, 1);
    bytes = 12 * stored + 8 * (7 + 1);  // 210 rows
    padding = static_cast<double>(stored) / static_cast<double>(nnz);
  } else if constexpr (TypeParam::format == Format::cds) {
    bytes = 27 * 8 * n + 27 * 4;
    padding = 27.0 * static_cast<double>(n) / static_cast<double>(nnz);
  } else {
    bytes = 14 * 8 * n + 14 * 4;
    padding = 14.0 * static_cast<double>(n) / static_cast<double>((nnz + n) / 2);
  }
  EXPECT_EQ(matrix->bytes(), bytes);
  EXPECT_EQ(matrix->bytes_per_product(), bytes + 16 * n);
  EXPECT_DOUBLE_EQ(matrix->padding_ratio(), padding);
  for (FormatEstimate const& estimate : estimate_formats(*csr))
    if (estimate.format == TypeParam::format) {
      EXPECT_EQ(estimate.bytes, bytes);
      EXPECT_EQ(estimate.bytes_per_product, bytes + 16 * n);
      EXPECT_DOUBLE_EQ(estimate.padding_ratio, padding);
      EXPECT_EQ(estimate.refusal, "");
    }
  if (TypeParam::backend == Backend::cuda) {
    EXPECT_GE(this->context->memory_peak(), bytes);
  }
}

TYPED_TEST(FormatTest, BytesOfSlicesAreExact) {
  if (TypeParam::format != Format::sell_c_sigma)
    GTEST_SKIP() << "about slices";
  for (auto const& csr : {uneven(700, 650, 1), uneven(33, 40, 2), uneven(5, 5, 3), to_csr(70, {}), to_csr(0, {})})
    for (int const c : {1, 32, 1024})
      for (std::int64_t const sigma : {1, 100, 0}) {
        SCOPED_TRACE(std::to_string(csr->n_rows) + " rows, C = " + std::to_string(c) + ", sigma = " + std::to_string(sigma));
        FormatOptions const options{.slice_size = c, .sigma = sigma};
        std::int64_t const before = this->context->memory_used();
        auto const matrix = this->make(csr, options);
        std::int64_t const slices = (csr->n_rows + c - 1) / c;
        std::int64_t const bytes = 12 * sell_entries(*csr, c, sigma) + 8 * (slices + 1) + (sigma == 1 ? 0 : 4 * csr->n_rows);
        EXPECT_EQ(matrix->bytes(), bytes);
        EXPECT_EQ(matrix->bytes_per_product(), bytes + 8 * (csr->n_rows + csr->n_columns));
        auto const estimate = estimate_of(TypeParam::format, estimate_formats(*csr, options));
        EXPECT_EQ(estimate.bytes, bytes);
        EXPECT_EQ(estimate.bytes_per_product, matrix->bytes_per_product());
        EXPECT_DOUBLE_EQ(estimate.padding_ratio, matrix->padding_ratio());
        if (TypeParam::backend == Backend::cuda) {
          EXPECT_EQ(this->context->memory_used() - before, bytes);
        }
      }
  // From the shape alone rows are taken as equal: 70 rows of 3 entries, in three slices of 32.
  EXPECT_EQ(estimate_of(TypeParam::format, estimate_formats(MatrixShape{70, 210, 3, true})).bytes, 12 * 96 * 3 + 8 * 4);
}

TYPED_TEST(FormatTest, DeviceMemoryIsWhatIsStored) {
  if (TypeParam::backend == Backend::cpu)
    GTEST_SKIP() << "the host does not count";
  auto const csr = box27(20, 20, 20);
  std::int64_t const before = this->context->memory_used();
  for (Conversion const conversion : {Conversion::automatic, Conversion::host, Conversion::device}) {
    auto const matrix = this->make(csr, {.conversion = conversion});
    EXPECT_EQ(this->context->memory_used() - before, matrix->bytes()) << name_of(conversion);
  }
  EXPECT_EQ(this->context->memory_used(), before);
  // From CSR on the device its own arrays are added, unless they are shared.
  Csr const source(csr, *this->context);
  EXPECT_EQ(this->context->memory_used() - before, csr->bytes());
  auto const matrix = make_matrix(TypeParam::format, source);
  bool const shared = TypeParam::format == Format::csr || TypeParam::format == Format::crs_t;
  EXPECT_EQ(this->context->memory_used() - before, csr->bytes() + (shared ? 0 : matrix->bytes()));
}

TEST(Formats, PaddingBeyondCsrIsRefusedWithFigures) {
  Entries arrow;  // every diagonal is there, with one entry each
  for (std::int64_t i = 0; i < 200; ++i)
    arrow[{i, i}] = arrow[{i, 0}] = arrow[{0, i}] = 1;
  auto const csr = to_csr(200, arrow);
  auto const context = make_context(Backend::cpu);
  std::string const message = refusal(Format::half_cds, csr, *context);
  expect_contains(message, {"200 diagonals of 200 values", "100 times", "(320800 bytes)", "(8784 bytes)", "use csr"});
  // 399 diagonals in all: 638400 bytes and 399 offsets.
  expect_contains(refusal(Format::cds, csr, *context),
                  {"399 diagonals of 200 values", "133 times", "(639996 bytes)", "(8784 bytes)"});
  EXPECT_EQ(make_auto(csr, *context, 1e6).format, Format::csr);
}

TEST(Formats, OptionsOutOfRangeAreRefused) {
  auto const csr = banded(40, {1}, 3);
  auto const context = make_context(Backend::cpu);
  auto const key_of = [&](FormatOptions const& options) -> std::string {
    try {
      static_cast<void>(make_matrix(Format::csr, csr, *context, options));
    } catch (InputError const& error) {
      return error.key();
    }
    return "accepted";
  };
  for (int const size : {-32, 0, 3, 33, 2048})
    EXPECT_EQ(key_of({.slice_size = size}), "slice_size") << size;
  EXPECT_EQ(key_of({.sigma = -1}), "sigma");
  for (int const value : {-1, 0, 65}) {
    EXPECT_EQ(key_of({.pair_window = value}), "pair_window") << value;
    EXPECT_EQ(key_of({.merge_window = value}), "merge_window") << value;
  }
  for (int const value : {-1, 65})
    EXPECT_EQ(key_of({.base_candidates = value}), "base_candidates") << value;
  EXPECT_EQ(key_of({.pair_window = 64, .merge_window = 1, .base_candidates = 64}), "accepted");
  for (int const threads : {-1, 3, 64})
    EXPECT_EQ(key_of({.threads_per_row = threads}), "threads_per_row") << threads;
  EXPECT_EQ(key_of({.slice_size = 1024, .sigma = 0, .threads_per_row = 32}), "accepted");
}

TEST(Formats, EstimatesOfRectangularMatricesCountTheColumns) {
  auto const csr = to_csr(2, 5, {{{0, 4}, 1.0}, {{1, 0}, 1.0}});
  EXPECT_EQ(estimate_formats(*csr)[0].bytes_per_product, 12 * 2 + 8 * 3 + 8 * (2 + 5));
}

template <class C>
class AutoTest : public OnBackend<C::backend> {};
TYPED_TEST_SUITE(AutoTest, CsrCases, CaseNames);

TYPED_TEST(AutoTest, TakesWhatPaysForSoManyProducts) {
  Context& where = *this->context;
  auto const box = box27(40, 40, 40);
  EXPECT_EQ(make_auto(box, where, 1e5).format, Format::half_cds);
  EXPECT_EQ(make_auto(box, where, 1).format, Format::csr);
  auto unsymmetric = std::make_shared<CsrMatrix>(*box);
  unsymmetric->values[1] += 1;
  FormatChoice const choice = make_auto(unsymmetric, where, 1e5);
  EXPECT_EQ(choice.format, Format::cds);
  expect_contains(estimate_of(Format::half_cds, choice.estimates).refusal, {"symmetric matrices only"});
  // Rows of about equal length without a common pattern: dictionaries save nothing, slices hardly pad, and vectors of the host have
  // to gather.
  std::mt19937_64 random(3);
  Entries scattered;
  for (std::int64_t row = 0; row < 6000; ++row)
    for (int k = 0; k < 25; ++k)
      scattered[{row, static_cast<std::int64_t>(random() % 6000)}] = 1;
  EXPECT_EQ(make_auto(to_csr(6000, scattered), where, 1e5).format,
            where.backend() == Backend::cuda ? Format::sell_c_sigma : Format::csr);
  EXPECT_EQ(make_auto(to_csr(0, {}), where, 10).format, Format::csr);
  EXPECT_EQ(make_auto(to_csr(1, {{{0, 0}, 2.0}}), where, 1).format, Format::csr);
}

TYPED_TEST(AutoTest, TheTableIsThatOfTheMatrix) {
  for (auto const& csr : {box27(20, 20, 20), uneven(3000, 2500, 5)}) {
    FormatOptions const options{.slice_size = 8, .sigma = 64};
    FormatChoice choice;
    auto const matrix = make_matrix(Forecast{500, 0}, csr, *this->context, options, choice);
    EXPECT_EQ(matrix->format(), choice.format);
    EXPECT_EQ(choice.forecast.products, 500);
    CsrMatrix const back = matrix->to_csr();
    EXPECT_TRUE(back.columns == csr->columns && back.values == csr->values) << name_of(choice.format);
    ASSERT_EQ(choice.estimates.size(), n_stored_formats);
    for (FormatEstimate const& estimate : choice.estimates) {
      SCOPED_TRACE(std::string(name_of(estimate.format)));
      if (!estimate.refusal.empty())
        continue;
      auto const made = make_matrix(estimate.format, csr, *this->context, options);
      if (estimate.format != Format::cod_sell) {
        EXPECT_EQ(estimate.bytes, made->bytes());
        EXPECT_FALSE(estimate.is_lower_bound);
      } else if (estimate.is_lower_bound) {
        EXPECT_LE(estimate.bytes, made->bytes());
      } else {
        EXPECT_NEAR(static_cast<double>(estimate.bytes), static_cast<double>(made->bytes()),
                    0.05 * static_cast<double>(csr->bytes()));
      }
      EXPECT_GT(estimate.product_seconds, 0);
      bool const shares = estimate.format == Format::csr || estimate.format == Format::crs_t;
      EXPECT_EQ(estimate.conversion_seconds == 0, shares);
      EXPECT_GE(total_seconds(estimate, 500), total_seconds(estimate_of(choice.format, choice.estimates), 500));
    }
  }
}

TYPED_TEST(AutoTest, WhatDoesNotFitIsNotTaken) {
  auto const box = box27(20, 20, 20);
  Csr const csr(box, *this->context);
  std::int64_t const half = 8 * 14 * 8000 + 4 * 14;
  Backend const backend = this->context->backend();
  EXPECT_EQ(choose_format(csr, {}, backend, {1, 0}).format, Format::csr);
  FormatChoice const choice = choose_format(csr, {}, backend, {1, 0}, half);
  EXPECT_EQ(choice.format, Format::half_cds);
  expect_contains(estimate_of(Format::csr, choice.estimates).refusal, {"csr needs", "(896056 bytes) are free"});
  EXPECT_EQ(choose_format(csr, {}, backend, {1, 0}, 1000).format, Format::csr);  // whose conversion then says what is missing
}

TYPED_TEST(AutoTest, BadOptionsAreRefused) {
  FormatChoice choice;
  EXPECT_THROW(static_cast<void>(make_matrix(Forecast{}, banded(40, {1}, 3), *this->context, {.slice_size = 33}, choice)),
               InputError);
  // C that cod_sell does not have leaves the others.
  auto const matrix = make_matrix(Forecast{1e6, 0}, uneven(300, 300, 1), *this->context, {.slice_size = 1024}, choice);
  EXPECT_NE(matrix->format(), Format::cod_sell);
  expect_contains(estimate_of(Format::cod_sell, choice.estimates).refusal, {"2 to 256"});
}

/// Estimates whose seconds are given: a model of conversion and products, without a matrix.
TEST(Auto, ChoosesByTheSumOfConversionAndProducts) {
  std::vector<FormatEstimate> estimates(3);
  estimates[0].format = Format::csr;
  estimates[0].product_seconds = 3;
  estimates[1].format = Format::sell_c_sigma;
  estimates[1].product_seconds = 2;
  estimates[1].conversion_seconds = 10;
  estimates[2].format = Format::cod_sell;
  estimates[2].product_seconds = 1;
  estimates[2].conversion_seconds = 100;
  EXPECT_EQ(choose_format(estimates, 10), Format::csr);  // 30, 30, 110: the first of equal ones
  EXPECT_EQ(choose_format(estimates, 11), Format::sell_c_sigma);
  EXPECT_EQ(choose_format(estimates, 91), Format::cod_sell);
  estimates[2].refusal = "no";
  EXPECT_EQ(choose_format(estimates, 1e9), Format::sell_c_sigma);
  EXPECT_DOUBLE_EQ(total_seconds(estimates[1], 5), 20);
}

TEST(Auto, PredictionsScaleWithBandwidthAndBackend) {
  MatrixShape const shape{1000000, 27000000, 27, true};
  for (Backend const backend : {Backend::cpu, Backend::cuda}) {
    auto slow = estimate_formats(shape), fast = slow;
    predict_seconds(slow, shape, {}, backend, 1e10);
    predict_seconds(fast, shape, {}, backend, 1e11);
    for (std::size_t i = 0; i < slow.size(); ++i) {
      EXPECT_GT(slow[i].product_seconds, 9 * fast[i].product_seconds);  // 10, but for the launch
      EXPECT_LT(slow[i].product_seconds, 10 * fast[i].product_seconds);
      // Within a factor of two of the bare bytes.
      EXPECT_NEAR(std::log2(slow[i].product_seconds / (static_cast<double>(slow[i].bytes_per_product) / 1e10)), 0, 1);
      EXPECT_GE(slow[i].conversion_seconds, fast[i].conversion_seconds);
    }
  }
  // A conversion by one thread of the host takes longer than one on the device, and its products as long.
  auto on_device = estimate_formats(shape), on_host = on_device;
  predict_seconds(on_device, shape, {}, Backend::cuda, 0);
  predict_seconds(on_host, shape, {.conversion = Conversion::sequential}, Backend::cuda, 0);
  for (std::size_t i = 0; i < on_host.size(); ++i) {
    EXPECT_EQ(on_host[i].product_seconds, on_device[i].product_seconds);
    if (on_host[i].format != Format::csr && on_host[i].format != Format::crs_t) {
      EXPECT_GT(on_host[i].conversion_seconds, on_device[i].conversion_seconds);
    }
  }
}

TEST(Auto, FromTheShape) {
  for (Backend const backend : {Backend::cpu, Backend::cuda}) {
    MatrixShape const box{1000000, 26730899, 27, true};
    EXPECT_EQ(choose_format(box, {}, backend, {10000, 0}).format, Format::half_cds);
    EXPECT_EQ(choose_format(box, {}, backend, {1, 0}).format, Format::csr);
    EXPECT_EQ(choose_format({1000000, 26730899, 27, false}, {}, backend, {10000, 0}).format, Format::cds);
    // Many diagonals, equal rows: slices move about the bytes of csr, on a device at a larger share of the bandwidth.
    EXPECT_EQ(choose_format({1000000, 27000000, 0, true}, {}, backend, {10000, 0}).format,
              backend == Backend::cuda ? Format::sell_c_sigma : Format::csr);
  }
}

TEST(Auto, ExpectedProducts) {
  double const products = expected_products(1000000, 1e-12, 10000);
  EXPECT_GT(products, 1);
  EXPECT_GT(expected_products(8000000, 1e-12, 10000), products) << "a finer mesh takes more";
  EXPECT_LT(expected_products(1000000, 1e-6, 10000), products) << "a looser tolerance takes fewer";
  EXPECT_EQ(expected_products(1000000, 1e-12, 50), 50) << "no more than are allowed";
  EXPECT_EQ(expected_products(1, 0.5, 10000), 1);
  EXPECT_EQ(expected_products(0, 0.5, 10000), 1);
  EXPECT_EQ(expected_products(1000, 1e-12, 0), 0);
  // Two products an iteration: more of them than with one, and twice the number of iterations that are allowed.
  EXPECT_GT(expected_products(1000000, 1e-12, 10000, 2), products);
  EXPECT_EQ(expected_products(1000000, 1e-12, 50, 2), 100);
}

TEST(Formats, ShapeCountsDiagonals) {
  EXPECT_EQ(shape_of(*box27(5, 5, 5)).n_diagonals, 27);
  EXPECT_EQ(shape_of(*banded(300, {1, 4, 299}, 2)).n_diagonals, 7);
  EXPECT_EQ(shape_of(*to_csr(5, {})).n_diagonals, 0);
  EXPECT_EQ(shape_of(*to_csr(2, 5, {{{0, 4}, 1.0}, {{1, 0}, 1.0}})).n_diagonals, 2);
}

TEST(Formats, EstimatesBeyond32Bits) {
  std::int64_t const n = 512LL * 512 * 512, nnz = 1534LL * 1534 * 1534;
  auto const estimates = estimate_formats({n, nnz, 27, true});
  EXPECT_EQ(estimate_of(Format::csr, estimates).bytes, 12 * nnz + 8 * (n + 1));
  EXPECT_EQ(estimate_of(Format::half_cds, estimates).bytes, 14 * 8 * n + 56);
  // There are so many diagonals that the byte count leaves 64 bits.
  auto const absurd = estimate_formats({2000000000, 54000000000, 3999999999, true});
  EXPECT_NE(estimate_of(Format::half_cds, absurd).refusal, "");
}

TEST(Formats, AdviceWhenMemoryIsShort) {
  auto const estimates = estimate_formats({1000, 26000, 27, true});
  expect_contains(advise_format(estimates, 200000), {"half_cds would fit"});
  expect_contains(advise_format(estimates, 1000), {"no format fits"});
}

TEST(Formats, BytesForPeople) {
  EXPECT_EQ(format_bytes(96), "96 bytes");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB (1536 bytes)");
  EXPECT_EQ(format_bytes(std::int64_t{3} << 30), "3 GiB (3221225472 bytes)");
}

template <class C>
class Memory : public OnBackend<C::backend> {};
TYPED_TEST_SUITE(Memory, CsrCases, CaseNames);

TYPED_TEST(Memory, TransfersKeepEveryByte) {
  for (std::int64_t const n : {1, 1000, (1 << 21) - 1, 1 << 21, (1 << 22) + 1, 5000001}) {  // around the pinned buffers' size
    auto const data = random_vector(n, 11);
    Array<double> const array(*this->context, std::span<double const>(data));
    std::vector<double> back(data.size());
    array.download(back);
    ASSERT_TRUE(back == data) << n;
  }
}

TYPED_TEST(Memory, TooMuchIsAnErrorWithFigures) {
#ifdef __SANITIZE_ADDRESS__
  if (TypeParam::backend == Backend::cpu)
    GTEST_SKIP() << "AddressSanitizer ends the program on an allocation of this size";
#endif
  try {
    Array<double> const array(*this->context, std::int64_t{1} << 50);
    FAIL() << "no EnvironmentError";
  } catch (EnvironmentError const& error) {
    expect_contains(error.what(), {"(9007199254740992 bytes)", "needed"});
  }
  Array<double> still_works(*this->context, 10);
  still_works.set_zero();
  std::vector<double> host(10, 1);
  still_works.download(host);
  EXPECT_EQ(host, std::vector<double>(10, 0));
}

TYPED_TEST(Memory, PeakIsCounted) {
  if (TypeParam::backend == Backend::cpu) {
    EXPECT_EQ(this->context->memory_peak(), 0);
    return;
  }
  std::int64_t const before = this->context->memory_peak(), used = this->context->memory_used();
  { Array<double> const a(*this->context, 1000), b(*this->context, 500); }
  EXPECT_EQ(this->context->memory_used(), used);
  Array<double> const c(*this->context, 1000);
  EXPECT_EQ(this->context->memory_peak() - before, 12000);
  EXPECT_EQ(this->context->memory_used() - used, 8000);
}

TYPED_TEST(Memory, CopyBandwidthIsPlausible) {
  double const bandwidth = measure_copy_bandwidth(*this->context);
  EXPECT_GT(bandwidth, 1e8);
  EXPECT_LT(bandwidth, 1e14);
  EXPECT_EQ(measure_copy_bandwidth(*this->context, 0.0), 0);  // no time, no figure
}

/// Runs go by the nominal bandwidth: within what CPUs reach, a measured one gives the same format.
TEST(Cost, NominalBandwidthChoosesAsMeasuredOnesDo) {
  for (std::int64_t const nodes : {20, 64, 128, 256})
    for (std::int64_t const row : {27, 64, 125}) {
      std::int64_t const n = nodes * nodes * nodes;
      for (std::int64_t const diagonals : {row, std::int64_t{0}}) {
        MatrixShape const shape{n, n * row, diagonals, true};
        double const products = expected_products(n, 1e-12, 10000);
        Format const nominal = choose_format(shape, {}, Backend::cpu, {products, 0}).format;
        for (double const bandwidth : {1e10, 2e10, 8e10, 1.6e11})
          EXPECT_EQ(name_of(choose_format(shape, {}, Backend::cpu, {products, bandwidth}).format), name_of(nominal))
              << nodes << "^3 nodes, " << row << " entries a row, " << diagonals << " diagonals, " << bandwidth;
      }
    }
}

TEST(ContextTest, ThreadsAndDescriptions) {
  int const before = thread_count();
  set_thread_count(3);
  EXPECT_EQ(thread_count(), 3);
  set_thread_count(0);
  EXPECT_GE(thread_count(), 1);
  EXPECT_EQ(thread_count(), cpu_description().multiprocessors);
  set_thread_count(before);
  EXPECT_GT(cpu_description().memory_total, cpu_description().memory_free);
  EXPECT_NE(cpu_description().name, "");
}

TEST(ContextTest, NoDeviceIsAnEnvironmentError) {
  if (why_no_cuda().empty()) {
    EXPECT_FALSE(cuda_devices().empty());
    return;
  }
  EXPECT_TRUE(cuda_devices().empty());
  try {
    static_cast<void>(make_context(Backend::cuda));
    FAIL() << "no EnvironmentError";
  } catch (EnvironmentError const& error) {
    EXPECT_EQ(error.what(), why_no_cuda());
  }
}

}  // namespace
}  // namespace poisson::testing
