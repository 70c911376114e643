#include "tests/gpu/cases.hpp"
#include "tests/gpu/matrices.hpp"

#include "gpu/core/array.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/threads.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace poisson::testing {

namespace {

constexpr double quiet_nan = std::numeric_limits<double>::quiet_NaN();

std::vector<double> downloaded(Array<double> const& array) {
  std::vector<double> host(static_cast<std::size_t>(array.size()));
  array.download(host);
  return host;
}

template <class C>
class Product : public OnCase<C> {
protected:
  /// y = alpha A x + beta y, the fused product with its dot, and the diagonal, against naive loops.
  void check(std::shared_ptr<CsrMatrix const> const& csr, std::string const& what, FormatOptions const& options = {}) {
    SCOPED_TRACE(what);
    // Small boxes and the like need more padding than cds takes; format_test.cpp tests that it refuses them.
    if (C::format == Format::cds && 8 * csr->n_rows * shape_of(*csr).n_diagonals + 4 * shape_of(*csr).n_diagonals > csr->bytes())
      return;
    auto const matrix = this->make(csr, options);
    EXPECT_EQ(matrix->n_rows(), csr->n_rows);
    EXPECT_EQ(matrix->n_columns(), csr->n_columns);
    auto const n = static_cast<std::size_t>(csr->n_rows);
    auto const x = random_vector(csr->n_columns, 17), y = random_vector(csr->n_rows, 19);
    auto const expected = naive_product(*csr, x), scale = absolute_product(*csr, x);
    Array<double> const device_x(*this->context, std::span<double const>(x));
    for (auto const& [alpha, beta] : {std::pair{1.0, 0.0}, {-2.5, 0.0}, {1.0, 1.0}, {-1.0, 0.75}, {0.0, 2.0}}) {
      SCOPED_TRACE("alpha " + std::to_string(alpha) + " beta " + std::to_string(beta));
      Array<double> device_y(*this->context, std::span<double const>(beta == 0 ? std::vector<double>(n, quiet_nan) : y));
      matrix->product(alpha, device_x.data(), beta, device_y.data());
      auto const result = downloaded(device_y);
      for (std::size_t i = 0; i < n; ++i) {
        double const wanted = alpha * expected[i] + (beta == 0 ? 0 : beta * y[i]);
        ASSERT_NEAR(result[i], wanted, 4e-15 * (std::abs(alpha) * scale[i] + std::abs(beta * y[i]))) << "row " << i;
      }
    }
    if (csr->n_rows != csr->n_columns)
      return;
    std::vector<std::int32_t> const no{0}, yes{1};
    Array<std::int32_t> const running(*this->context, std::span<std::int32_t const>(no));
    Array<std::int32_t> const stopped(*this->context, std::span<std::int32_t const>(yes));
    Array<double> device_y(*this->context, std::span<double const>(std::vector<double>(n, quiet_nan)));
    Array<double> dot(*this->context, std::span<double const>(std::vector<double>{quiet_nan}));
    if (n > 0) {
      matrix->product_dot(device_x.data(), device_y.data(), dot.data(), stopped.data());
      EXPECT_TRUE(std::isnan(downloaded(device_y)[n / 2])) << "a stopped product must leave y alone";
      EXPECT_TRUE(std::isnan(downloaded(dot)[0]));
      matrix->product_dot(device_x.data(), device_y.data(), dot.data(), running.data());
      auto const result = downloaded(device_y);
      long double sum = 0, size = 0;
      for (std::size_t i = 0; i < n; ++i) {
        ASSERT_NEAR(result[i], expected[i], 4e-15 * scale[i]) << "row " << i;
        sum += static_cast<long double>(x[i]) * expected[i];
        size += static_cast<long double>(std::abs(x[i])) * scale[i];
      }
      EXPECT_NEAR(downloaded(dot)[0], static_cast<double>(sum), 1e-14 * static_cast<double>(size));
    }
    Array<double> diagonal(*this->context, csr->n_rows);
    matrix->diagonal(diagonal.data());
    auto const result = downloaded(diagonal);
    for (std::size_t row = 0; row < n; ++row) {
      double wanted = 0;
      for (auto e = static_cast<std::size_t>(csr->row_ptr[row]); e < static_cast<std::size_t>(csr->row_ptr[row + 1]); ++e)
        if (static_cast<std::size_t>(csr->columns[e]) == row)
          wanted = csr->values[e];
      ASSERT_EQ(result[row], wanted) << "row " << row;
    }
  }
};

TYPED_TEST_SUITE(Product, Cases, CaseNames);

TYPED_TEST(Product, BandedOfSizesAroundWarpsAndBlocks) {
  for (std::int64_t const n : {2, 3, 31, 32, 33, 63, 64, 65, 255, 256, 257, 511, 512, 513, 1023, 1024, 1025, 2049, 5121})
    this->check(banded(n, {1, 2}, static_cast<unsigned>(n)), "banded, n = " + std::to_string(n));
}

TYPED_TEST(Product, DiagonalsOfAnyDistance) {
  this->check(banded(7000, {1, 31, 32, 33, 1023, 1024, 1025, 3000, 6999}, 5), "far diagonals");
  this->check(banded(1500, {1499}, 6), "corner diagonal");
  this->check(banded(20000, {7, 5000, 9999, 15000}, 7), "diagonals that cross every thread's part");
}

TYPED_TEST(Product, Box27) {
  this->check(box27(5, 4, 3, false, 0.5), "5 x 4 x 3");
  this->check(box27(17, 16, 15, false, 0.5), "17 x 16 x 15");
  this->check(box27(2, 2, 2, true, 0.5), "2 x 2 x 2, where diagonals coincide");
  this->check(box27(40, 3, 90, true, 0.5), "40 x 3 x 90");
}

TYPED_TEST(Product, LargePlanes) {
  // Planes above the size from which the CUDA kernel of half_cds walks from plane to plane, with and without whole blocks.
  this->check(large_box27(69, 61, 9), "planes of 69 x 61");
  this->check(large_box27(64, 64, 40), "planes of 64 x 64");
  this->check(banded(30001, {1, 70, 71, 72, 4900, 4901, 4902, 4999, 5000, 5001, 5100, 5101, 5102}, 3),
              "14 diagonals, not of a box");
}

TYPED_TEST(Product, BoxesBeyondTheDeviceCache) {
  // Large enough for the CUDA kernels that small matrices do not reach: half_cds then marches through the planes, tile by tile, and
  // formats by rows give each row its usual number of threads. Lines of even and odd length, whole and broken tiles and planes.
  if (TypeParam::backend == Backend::cpu && TypeParam::format != Format::half_cds)
    GTEST_SKIP() << "about kernels of a device";
  this->check(large_box27(96, 88, 61), "96 x 88 x 61");
  this->check(large_box27(97, 83, 65), "97 x 83 x 65");
  this->check(large_box27(33, 9, 1800), "33 x 9 x 1800");  // in wide tiles, as the next one
  this->check(large_box27(65, 66, 150), "65 x 66 x 150");
  this->check(large_box27(257, 129, 15, 257 * 129 * 15 - 300), "257 x 129 x 15 without the last 300 rows");
  // Not boxes: the last plane whole, less a few rows, less more than a line, and with lines that do not fill tiles.
  this->check(wrapped_box27(82, 82, 82 * 82 * 85), "82 x 82 x 85, wrapped");
  this->check(wrapped_box27(82, 82, 82 * 82 * 85 - 40), "82 x 82 x 85 without the last 40 rows, wrapped");
  this->check(wrapped_box27(82, 82, 82 * 82 * 85 - 84), "82 x 82 x 85 without the last 84 rows, wrapped");
  this->check(wrapped_box27(65, 130, 65 * 130 * 70 - 3000), "65 x 130 x 70 without the last 3000 rows, wrapped");
}

TYPED_TEST(Product, IrregularBeyondTheDeviceCache) {
  // The matrices are large enough for kernels that small ones do not reach, and that are chosen by the length of rows. Some
  // patterns are longer than what a kernel keeps at hand. One matrix has one long row.
  if (TypeParam::backend == Backend::cpu || !this->any_pattern)
    GTEST_SKIP() << "about kernels of a device for any pattern";
  bool const has_slices = TypeParam::format == Format::sell_c_sigma || TypeParam::format == Format::cod_sell;
  struct {
    std::int64_t length, longest;
    std::vector<int> slice_sizes;
  } const cases[] = {{9, 9, {2, 4, 8, 16, 32, 64}}, {70, 70, {2, 4, 8, 16, 32}}, {160, 300, {4, 32}}, {12, 9000, {2, 8, 32}}};
  for (auto const& one : cases) {
    auto const csr = large_irregular(140'003, one.length, one.longest);
    for (int const c : has_slices ? one.slice_sizes : std::vector{32})
      this->check(csr, std::to_string(one.length) + " a row, C = " + std::to_string(c), {.slice_size = c});
  }
}

TYPED_TEST(Product, LongRows) {
  // Longer than the threads of a row may take on a GPU; the whole block then works on them.
  if (!this->any_pattern)
    GTEST_SKIP() << "the format holds few diagonals only";
  this->check(uneven(900, 9000, 4), "one dense row of 9000");
  Entries entries;
  for (std::int64_t row = 0; row < 200; ++row)
    for (std::int64_t j = 0; j < (row % 3 == 0 ? 700 + 50 * row : row % 5); ++j)
      entries[{row, j}] = 1.0 / static_cast<double>(row + j + 1);
  for (int const c : {2, 8, 32, 128})
    this->check(to_csr(200, 11000, entries), "every third row long, C = " + std::to_string(c),
                {.slice_size = c, .threads_per_row = std::min(c, 32)});
}

TYPED_TEST(Product, OneRowNoRowEmptyRows) {
  this->check(to_csr(1, {{{0, 0}, -3.5}}), "1 x 1");
  this->check(to_csr(0, {}), "0 x 0");
  this->check(to_csr(1, {}), "1 x 1 without entries");
  this->check(to_csr(300, {}), "no entries");
  Entries some;
  for (std::int64_t i = 0; i < 2000; ++i)
    some[{i, i}] = 1.0 + static_cast<double>(i);
  for (std::int64_t i : {0, 1, 63, 64, 700, 1999})
    some.erase({i, i});
  this->check(to_csr(2000, some), "diagonal with holes");
}

TYPED_TEST(Product, DiagonalNotStored) {
  Entries entries;
  for (std::int64_t i = 3; i < 1300; ++i)
    entries[{i, i - 3}] = entries[{i - 3, i}] = 1.0 / static_cast<double>(i);
  this->check(to_csr(1300, entries), "two diagonals without the main one");
}

TYPED_TEST(Product, SameBitsEveryTimeAndForAnyThreadCount) {
  int const threads = thread_count();
  auto const csr = box27(31, 30, 29, false, 0.5);
  auto const matrix = this->make(csr);
  auto const x = random_vector(csr->n_rows, 3);
  Array<double> const device_x(*this->context, std::span<double const>(x));
  Array<double> y(*this->context, csr->n_rows), dot(*this->context, 1);
  Array<std::int32_t> const running(*this->context, std::span<std::int32_t const>(std::vector<std::int32_t>{0}));
  std::vector<double> first_y, first_dot;
  for (int const count : {1, 2, 3, 1, 7}) {
    set_thread_count(count);
    matrix->product_dot(device_x.data(), y.data(), dot.data(), running.data());
    if (first_y.empty()) {
      first_y = downloaded(y);
      first_dot = downloaded(dot);
    }
    EXPECT_EQ(downloaded(y), first_y) << count << " threads";
    EXPECT_EQ(downloaded(dot), first_dot) << count << " threads";
  }
  set_thread_count(threads);
}

TYPED_TEST(Product, UnsymmetricWhereTheFormatHoldsIt) {
  if (!this->any_pattern)
    GTEST_SKIP() << "refusals are tested in format_test.cpp";
  std::mt19937_64 random(9);
  for (int const mean : {1, 6, 12, 27, 60, 130, 220}) {  // one for every number of threads a row
    Entries entries;
    for (std::int64_t i = 0; i < 400; ++i)
      for (std::int64_t j = 0; j < 300; ++j)
        if (random() % 300 < static_cast<unsigned>(mean))
          entries[{i, j}] = 1.0 / (1.0 + static_cast<double>(random() % 1000));
    for (std::int64_t j = 0; j < 300; ++j)
      entries[{7, j}] = 0.25;
    this->check(to_csr(400, 300, entries), "rectangular, mean row length " + std::to_string(mean));
  }
  this->check(to_csr(3, 2, {{{0, 1}, 1.0}, {{2, 0}, 2.0}}), "3 x 2");
}

TYPED_TEST(Product, UnsymmetricDiagonals) {
  if (this->symmetric_only)
    GTEST_SKIP() << "half_cds holds symmetric matrices only";
  auto const diagonals = [](std::int64_t n_rows, std::int64_t n_columns, std::vector<std::int64_t> const& offsets) {
    std::mt19937_64 random(8);
    Entries entries;
    for (std::int64_t row = 0; row < n_rows; ++row)
      for (std::int64_t const o : offsets)
        if (row + o >= 0 && row + o < n_columns)
          entries[{row, row + o}] = static_cast<double>(random() % 2001) / 1000 - 1;
    return to_csr(n_rows, n_columns, entries);
  };
  for (std::int64_t const n : {33, 255, 256, 257, 1023, 1025, 3000}) {
    std::string const what = ", n = " + std::to_string(n);
    this->check(diagonals(n, n, {-2, 0, 1, 3}), "four diagonals" + what);
    this->check(diagonals(n, n, {2, 5}), "upper only" + what);
    this->check(diagonals(n, n, {-n / 8, -1}), "lower only" + what);
    this->check(diagonals(n, n + 70, {-2, 0, 33, 60, 70}), "wider than high" + what);
    std::vector<std::int64_t> box;  // 27 diagonals, the number that the CUDA kernel of cds unrolls
    for (std::int64_t const z : {-12, 1, 12})
      for (std::int64_t const y : {-4, 0, 4})
        for (std::int64_t x = -1; x <= 1; ++x)
          box.push_back(z + y + x);
    ASSERT_EQ(shape_of(*diagonals(n + 200, n + 200, box)).n_diagonals, 27);
    this->check(diagonals(n + 200, n + 200, box), "many diagonals" + what);
    this->check(diagonals(n + 200, n + 190, box), "many diagonals, higher than wide" + what);
  }
}

TYPED_TEST(Product, UnevenRows) {
  if (!this->any_pattern)
    GTEST_SKIP() << "the format holds few diagonals only";
  for (std::int64_t const n : {1, 2, 5, 31, 32, 33, 64, 65, 255, 256, 257, 513, 1025, 2500})
    this->check(uneven(n, n, static_cast<unsigned>(n)), "uneven, n = " + std::to_string(n));
  this->check(uneven(300, 70, 1), "300 x 70");
  this->check(uneven(70, 300, 2), "70 x 300");
  this->check(uneven(40, 1, 3), "one column");
}

TYPED_TEST(Product, EverySliceSizeAndWindow) {
  bool const shares = TypeParam::format == Format::cod_sell;
  if (TypeParam::format != Format::sell_c_sigma && !shares)
    GTEST_SKIP() << "about slices";
  for (int c = shares ? 2 : 1; c <= (shares ? 256 : 1024); c *= 2)
    for (std::int64_t const sigma : {1, 7, 0}) {
      std::string const what = "C = " + std::to_string(c) + ", sigma = " + std::to_string(sigma) + ", rows: ";
      FormatOptions const options{.slice_size = c, .sigma = sigma};
      for (std::int64_t const n : {c - 1, c, c + 1, 2 * c + 1})
        if (n > 0)
          this->check(uneven(n, n, static_cast<unsigned>(c)), what + std::to_string(n), options);
      this->check(uneven(300, 170, static_cast<unsigned>(c)), what + "300 x 170", options);
      this->check(banded(400, {1, 40}, 3), what + "400, banded", options);
      this->check(box27(9, 8, 7, false, 0.5), what + "504, a box", options);
    }
}

TYPED_TEST(Product, EveryNumberOfThreadsPerRow) {
  if (TypeParam::format != Format::crs_t)
    GTEST_SKIP() << "about threads per row";
  for (int const threads : {1, 2, 4, 8, 16, 32}) {
    std::string const what = std::to_string(threads) + " threads a row: ";
    FormatOptions const options{.threads_per_row = threads};
    for (int const n : {1, 7, 255 / threads, 256 / threads, 256 / threads + 1, 511, 513, 1030})
      this->check(uneven(n, n, 5), what + "uneven, n = " + std::to_string(n), options);
    this->check(uneven(300, 170, 6), what + "300 x 170", options);
    this->check(banded(300, {1, 2, 3, 7, 8, 9, 100, 101, 110, 111, 115, 120, 121, 130, 140, 150, 160}, 3), what + "banded",
                options);
  }
}

TYPED_TEST(Product, RowLengthChoosesTheThreadsPerRow) {
  if (TypeParam::format != Format::crs_t)
    GTEST_SKIP() << "about threads per row";
  for (std::int64_t const longest : {0, 1, 8, 9, 17, 48, 49, 97, 193})
    for (std::int64_t const others : {std::int64_t{0}, std::min<std::int64_t>(longest, 3), longest}) {
      Entries entries;
      for (std::int64_t row = 0; row < 300; ++row)
        for (std::int64_t j = 0; j < (row == 100 ? longest : others); ++j)
          entries[{row, (row + 3 * j) % 601}] = 1.0 / static_cast<double>(row + j + 1);
      this->check(to_csr(300, 601, entries), "longest row " + std::to_string(longest) + ", others " + std::to_string(others));
    }
}

TYPED_TEST(Product, InfinityStaysInTheRowsThatTouchIt) {
  // Diagonals are full here, so that formats which store whole diagonals store nothing else.
  std::vector<std::shared_ptr<CsrMatrix>> matrices{banded(700, {1, 5}, 3)};
  if (this->any_pattern)
    matrices.push_back(uneven(700, 700, 3));
  for (auto const& csr : matrices)
    for (double const value : {std::numeric_limits<double>::infinity(), quiet_nan})
      for (std::size_t const place : {0, 300, 699}) {
        auto const matrix = this->make(csr, {.sigma = 64});
        auto x = random_vector(csr->n_columns, 17);
        x[place] = 0;
        auto const expected = naive_product(*csr, x), scale = absolute_product(*csr, x);
        x[place] = value;
        Array<double> const device_x(*this->context, std::span<double const>(x));
        Array<double> y(*this->context, csr->n_rows);
        matrix->product(1, device_x.data(), 0, y.data());
        auto const result = downloaded(y);
        for (std::size_t row = 0; row < result.size(); ++row) {
          auto const first = csr->columns.begin() + csr->row_ptr[row], last = csr->columns.begin() + csr->row_ptr[row + 1];
          if (std::find(first, last, static_cast<std::int32_t>(place)) != last)
            EXPECT_FALSE(std::isfinite(result[row])) << "row " << row << ", column " << place;
          else
            EXPECT_NEAR(result[row], expected[row], 4e-15 * scale[row]) << "row " << row << ", column " << place;
        }
      }
}

TYPED_TEST(Product, Permuted) {
  if (!this->any_pattern)
    GTEST_SKIP() << "the format holds few diagonals only";
  auto const csr = box27(9, 9, 9, false, 0.5);
  std::vector<std::int64_t> order(static_cast<std::size_t>(csr->n_rows));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937_64(4));
  Entries entries;
  for (std::size_t row = 0; row < order.size(); ++row)
    for (auto e = static_cast<std::size_t>(csr->row_ptr[row]); e < static_cast<std::size_t>(csr->row_ptr[row + 1]); ++e)
      entries[{order[row], order[static_cast<std::size_t>(csr->columns[e])]}] = csr->values[e];
  this->check(to_csr(csr->n_rows, entries), "permuted box");
}

}  // namespace
}  // namespace poisson::testing
