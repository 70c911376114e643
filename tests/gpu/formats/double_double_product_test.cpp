#include "tests/gpu/cases.hpp"
#include "tests/gpu/matrices.hpp"
#include "tests/gpu/quad.hpp"

#include "gpu/core/threads.hpp"
#include "gpu/core/vector.hpp"
#include "gpu/kernels/backends.hpp"

#include <algorithm>
#include <limits>

namespace poisson::testing {

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN(), infinite = std::numeric_limits<double>::infinity();
constexpr double u2 = 0x1p-106;

/// Returns the matrix with low values: random ones, alike on both sides of the diagonal.
std::shared_ptr<CsrMatrix> with_low_values(CsrMatrix const& csr) {
  auto result = std::make_shared<CsrMatrix>(csr);
  for (std::int64_t row = 0; row < csr.n_rows; ++row)
    for (auto e = static_cast<std::size_t>(csr.row_ptr[row]); e < static_cast<std::size_t>(csr.row_ptr[row + 1]); ++e) {
      std::int64_t const column = csr.columns[e], mixed = (row + column) * 2654435761 + (row ^ column) * 40503;
      result->low_values.push_back(csr.values[e] * 0x1p-53 * static_cast<double>(mixed % 1999 - 999) / 1000);
    }
  return result;
}

DoubleDouble entry(CsrMatrix const& csr, std::size_t e) {
  return {csr.values[e], csr.low_values.empty() ? 0 : csr.low_values[e]};
}

struct QuadProduct {
  std::vector<Quad> product;
  std::vector<double> size;  ///< sum of |a_ij x_j|
};

QuadProduct reference(CsrMatrix const& csr, std::vector<DoubleDouble> const& x) {
  auto const n = static_cast<std::size_t>(csr.n_rows);
  QuadProduct result{std::vector<Quad>(n), std::vector<double>(n)};
  for (std::size_t row = 0; row < n; ++row)
    for (auto e = static_cast<std::size_t>(csr.row_ptr[row]); e < static_cast<std::size_t>(csr.row_ptr[row + 1]); ++e) {
      Quad const term = quad(entry(csr, e)) * quad(x[static_cast<std::size_t>(csr.columns[e])]);
      result.product[row] += term;
      result.size[row] += size_of(term);
    }
  return result;
}

/// Rounding errors of corrections, which add up at random, as do the corrections; far below the bound of DotSum.
double tolerance_of_row(CsrMatrix const& csr, std::size_t row) {
  return (32 + 2 * static_cast<double>(csr.row_ptr[row + 1] - csr.row_ptr[row])) * u2;
}

template <class C>
class DoubleDoubleProduct : public WithDoubleDouble<OnCase<C>> {
protected:
  Array<std::int32_t> flag(std::int32_t value) {
    return Array<std::int32_t>(*this->context, std::span<std::int32_t const>(&value, 1));
  }

  /// The matrix in double, and with low values in double_double.
  void check(std::shared_ptr<CsrMatrix const> const& csr, std::string const& what, FormatOptions options = {}) {
    MatrixShape const shape = shape_of(*csr);
    for (MatrixPrecision const precision : {MatrixPrecision::double_, MatrixPrecision::double_double}) {
      SCOPED_TRACE(what + ", stored in " + std::string(name_of(precision)));
      options.precision = precision;
      if (!estimate_formats(shape, options)[static_cast<std::size_t>(C::format)].refusal.empty())
        continue;  // too much padding
      check_one(precision == MatrixPrecision::double_ ? csr : with_low_values(*csr), options);
    }
  }

private:
  void check_one(std::shared_ptr<CsrMatrix const> const& csr, FormatOptions const& options) {
    auto const matrix = this->make(csr, options);
    auto const n = static_cast<std::size_t>(csr->n_rows);
    auto const x = random_numbers<DoubleDouble>(csr->n_columns, 17), y = random_numbers<DoubleDouble>(csr->n_rows, 23);
    QuadProduct const expected = reference(*csr, x);
    auto const device_x = this->upload(x);
    DoubleDouble const third = DoubleDouble(1) / 3;
    for (auto const& [alpha, beta] : {std::pair{DoubleDouble(1), DoubleDouble(0)}, {-third, 0}, {1, 1}, {third, -7 * third}}) {
      SCOPED_TRACE("alpha " + std::to_string(alpha.hi) + " beta " + std::to_string(beta.hi));
      auto device_y = this->upload(beta == 0 ? std::vector<DoubleDouble>(n, not_a_number) : y);
      matrix->product(alpha, device_x.data(), beta, device_y.data());
      auto const result = this->download(device_y);
      for (std::size_t i = 0; i < n; ++i) {
        Quad const wanted = quad(alpha) * expected.product[i] + (beta == 0 ? Quad(0) : quad(beta) * quad(y[i]));
        double const scale = std::abs(alpha.hi) * expected.size[i] + std::abs(beta.hi * y[i].hi);
        ASSERT_LE(size_of(quad(result[i]) - wanted), tolerance_of_row(*csr, i) * scale) << "row " << i;
        ASSERT_EQ(result[i].hi, result[i].hi + result[i].lo) << "row " << i << " is not normalised";
      }
    }
    Vector<DoubleDouble> diagonal(*this->context, csr->n_rows);
    matrix->diagonal(diagonal.data());
    auto const d = this->download(diagonal);
    for (std::size_t row = 0; row < n; ++row) {
      DoubleDouble wanted = 0;
      for (auto e = static_cast<std::size_t>(csr->row_ptr[row]); e < static_cast<std::size_t>(csr->row_ptr[row + 1]); ++e)
        if (static_cast<std::size_t>(csr->columns[e]) == row)
          wanted = entry(*csr, e);
      ASSERT_EQ(d[row], wanted) << "row " << row;
    }
    if (csr->n_rows != csr->n_columns || n == 0)
      return;
    auto device_y = this->upload(std::vector<DoubleDouble>(n, not_a_number));
    Array<DoubleDouble> dot(*this->context, 1);
    DoubleDouble const before = -5;
    dot.upload(std::span<DoubleDouble const>(&before, 1));
    matrix->product_dot(device_x.data(), device_y.data(), dot.data(), flag(1).data());
    EXPECT_TRUE(std::isnan(this->download(device_y)[n / 2].hi)) << "a stopped product must leave y alone";
    EXPECT_EQ(this->scalar(dot), before);
    matrix->product_dot(device_x.data(), device_y.data(), dot.data(), flag(0).data());
    auto const result = this->download(device_y);
    Quad sum = 0;
    double size = 0;
    for (std::size_t i = 0; i < n; ++i) {
      ASSERT_LE(size_of(quad(result[i]) - expected.product[i]), tolerance_of_row(*csr, i) * expected.size[i]) << "row " << i;
      sum += quad(x[i]) * expected.product[i];
      size += std::abs(x[i].hi) * expected.size[i];
    }
    EXPECT_LE(size_of(quad(this->scalar(dot)) - sum), 200 * u2 * size);
  }
};

TYPED_TEST_SUITE(DoubleDoubleProduct, Cases, CaseNames);

TYPED_TEST(DoubleDoubleProduct, DiagonalsAndBoxes) {
  for (std::int64_t const n : {1, 2, 31, 33, 64, 255, 257, 513, 1023, 1024, 1025, 2049, 5121})
    this->check(banded(n, {1, 2}, static_cast<unsigned>(n)), "banded, n = " + std::to_string(n));
  this->check(banded(7000, {1, 31, 32, 33, 1023, 1024, 1025, 3000, 6999}, 5), "far diagonals");
  this->check(box27(17, 16, 15, false, 0.5), "17 x 16 x 15");
  this->check(box27(40, 3, 30, true, 0.5), "40 x 3 x 30");
  this->check(large_box27(69, 61, 9), "planes of 69 x 61");
  this->check(banded(30001, {1, 70, 71, 72, 4900, 4901, 4902, 4999, 5000, 5001, 5100, 5101, 5102}, 3),
              "14 diagonals, not of a box");
  this->check(to_csr(0, {}), "0 x 0");
  this->check(to_csr(300, {}), "no entries");
}

TYPED_TEST(DoubleDoubleProduct, BoxesBeyondTheDeviceCache) {
  // Kernels of CUDA that smaller matrices do not reach.
  if (TypeParam::backend == Backend::cpu)
    GTEST_SKIP() << "about kernels of a device";
  this->check(large_box27(96, 88, 61), "96 x 88 x 61");
  if (TypeParam::format != Format::half_cds)
    return;
  this->check(large_box27(97, 83, 65), "97 x 83 x 65");
  this->check(large_box27(33, 9, 1800), "33 x 9 x 1800");
  this->check(large_box27(257, 129, 15, 257 * 129 * 15 - 300), "257 x 129 x 15 without the last 300 rows");
}

TYPED_TEST(DoubleDoubleProduct, IrregularBeyondTheDeviceCache) {
  if (TypeParam::backend == Backend::cpu || (TypeParam::format != Format::sell_c_sigma && TypeParam::format != Format::cod_sell))
    GTEST_SKIP() << "about kernels of a device for slices";
  this->check(large_irregular(140'003, 9, 9000), "9 a row, one long, C = 4", {.slice_size = 4});
  this->check(large_irregular(140'003, 9, 9), "9 a row, C = 8", {.slice_size = 8});
  this->check(large_irregular(34'003, 70, 70), "70 a row, C = 8", {.slice_size = 8});
}

TYPED_TEST(DoubleDoubleProduct, AnyPattern) {
  if (!this->any_pattern)
    GTEST_SKIP() << "the format holds few diagonals only";
  for (std::int64_t const n : {1, 5, 32, 33, 257, 2500})
    this->check(uneven(n, n, static_cast<unsigned>(n)), "uneven, n = " + std::to_string(n));
  this->check(uneven(300, 70, 1), "300 x 70");
  this->check(uneven(70, 300, 2), "70 x 300");
  this->check(uneven(900, 9000, 4), "one dense row of 9000");
  for (int const c : {2, 4, 8, 16, 64, 128})
    for (std::int64_t const sigma : {1, 0})
      this->check(uneven(700, 700, 3), "C = " + std::to_string(c),
                  {.slice_size = c, .sigma = sigma, .threads_per_row = std::min(c, 32)});
  this->check(box27(9, 8, 7, false, 0.5), "C = 4, a box", {.slice_size = 4});
}

TYPED_TEST(DoubleDoubleProduct, CancellationKeepsWhatDoubleLoses) {
  // Row sums are zero, and x is 3 and a little: of A x = A (x - 3) the product in double has no digit.
  std::int64_t const n = 4000;
  Entries entries;
  std::vector<std::int64_t> const offsets{1, 7, 60};
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t const o : offsets)
      if (i >= o) {
        auto const weight = static_cast<double>(1 + (i * o) % 1000);
        entries[{i, i - o}] = entries[{i - o, i}] = -weight;
        entries[{i, i}] += weight;
        entries[{i - o, i - o}] += weight;
      }
  auto const csr = to_csr(n, entries);
  auto const little = random_vector(n, 5);
  std::vector<DoubleDouble> x;
  for (double const v : little)
    x.emplace_back(3, v * 0x1p-54);
  auto const matrix = this->make(csr);
  auto const device_x = this->upload(x);
  Vector<DoubleDouble> y(*this->context, n);
  matrix->product(1, device_x.data(), 0, y.data());
  auto const result = this->download(y);
  QuadProduct const expected = reference(*csr, x);
  double smallest_size = infinite;
  for (std::size_t i = 0; i < result.size(); ++i) {
    ASSERT_LE(size_of(quad(result[i]) - expected.product[i]), 24 * u2 * expected.size[i]);
    smallest_size = std::min(smallest_size, size_of(expected.product[i]) / expected.size[i]);
  }
  EXPECT_LT(smallest_size, 1e-18);
  Vector<double> high(*this->context, std::span<double const>(std::vector<double>(static_cast<std::size_t>(n), 3.0)));
  Vector<double> lost(*this->context, n);
  matrix->product(1, high.data(), 0, lost.data());
  std::vector<double> in_double(static_cast<std::size_t>(n));
  lost.download(std::span<double>(in_double));
  EXPECT_EQ(in_double, std::vector<double>(static_cast<std::size_t>(n), 0.0));
}

TYPED_TEST(DoubleDoubleProduct, InfinityStaysInTheRowsThatTouchIt) {
  auto const csr = banded(700, {1, 5}, 3);
  for (double const value : {infinite, not_a_number})
    for (std::size_t const place : {0, 300, 699}) {
      auto x = random_numbers<DoubleDouble>(csr->n_columns, 17);
      x[place] = value;
      auto const device_x = this->upload(x);
      Vector<DoubleDouble> y(*this->context, csr->n_rows);
      this->make(csr)->product(1, device_x.data(), 0, y.data());
      auto const result = this->download(y);
      for (std::size_t row = 0; row < result.size(); ++row) {
        auto const first = csr->columns.begin() + csr->row_ptr[row], last = csr->columns.begin() + csr->row_ptr[row + 1];
        bool const touches = std::find(first, last, static_cast<std::int32_t>(place)) != last;
        EXPECT_EQ(isfinite(result[row]), !touches) << "row " << row;
        bool const is_infinite = std::isinf(result[row].hi) && result[row].lo == 0;
        EXPECT_EQ(is_infinite, touches && !std::isnan(value)) << "row " << row;
      }
    }
}

TYPED_TEST(DoubleDoubleProduct, SameBitsEveryTimeAndForAnyThreadCount) {
  int const threads = thread_count();
  auto const csr = box27(31, 30, 29, false, 0.5);
  auto const matrix = this->make(csr);
  auto const x = this->upload(random_numbers<DoubleDouble>(csr->n_rows, 3));
  Vector<DoubleDouble> y(*this->context, csr->n_rows);
  Array<DoubleDouble> dot(*this->context, 1);
  auto const running = this->flag(0);
  std::vector<DoubleDouble> first_y, dots;
  for (int const count : {1, 2, 3, 1, 7}) {
    set_thread_count(count);
    matrix->product_dot(x.data(), y.data(), dot.data(), running.data());
    dots.push_back(this->scalar(dot));
    if (first_y.empty())
      first_y = this->download(y);
    EXPECT_EQ(this->download(y), first_y) << count << " threads";
    EXPECT_EQ(dots.back(), dots.front()) << count << " threads";
  }
  set_thread_count(threads);
}

TYPED_TEST(DoubleDoubleProduct, BytesAndRoundTripsOfLowValues) {
  auto const plain = box27(12, 11, 10, false, 0.5);
  auto const csr = with_low_values(*plain);
  FormatOptions const both{.precision = MatrixPrecision::double_double};
  auto const in_double = this->make(plain), matrix = this->make(csr, both);
  EXPECT_EQ(in_double->precision(), MatrixPrecision::double_);
  EXPECT_EQ(matrix->precision(), MatrixPrecision::double_double);
  // A low value beside every value: as many as the padding says.
  std::int64_t const taken = this->symmetric_only ? (csr->nnz() + csr->n_rows) / 2 : csr->nnz();
  auto const stored = std::llround(matrix->padding_ratio() * static_cast<double>(taken));
  EXPECT_EQ(matrix->bytes(), in_double->bytes() + 8 * stored);
  if (TypeParam::format != Format::cod_sell) {
    auto const estimates = estimate_formats(*csr, both);
    EXPECT_EQ(estimates[static_cast<std::size_t>(TypeParam::format)].bytes, matrix->bytes());
  }
  // A product reads low values in DoubleDouble only.
  EXPECT_EQ(matrix->bytes_per_product(), in_double->bytes() + 16 * csr->n_rows);
  LinearOperator<DoubleDouble> const& of_matrix = *matrix;
  LinearOperator<DoubleDouble> const& of_double = *in_double;
  EXPECT_EQ(of_matrix.bytes_per_product(), matrix->bytes() + 32 * csr->n_rows);
  EXPECT_EQ(of_double.bytes_per_product(), in_double->bytes() + 32 * csr->n_rows);
  auto const same_values = [&](CsrMatrix const& back, HostVector<double> const& low) {
    EXPECT_EQ(back.row_ptr, csr->row_ptr);
    EXPECT_EQ(back.columns, csr->columns);
    EXPECT_EQ(back.values, csr->values);
    EXPECT_EQ(back.low_values, low);
  };
  same_values(matrix->to_csr(), csr->low_values);
  same_values(in_double->to_csr(), {});
  auto const host = make_context(Backend::cpu);
  auto const copy = matrix->copy_to(*host);
  EXPECT_EQ(copy->bytes(), matrix->bytes());
  same_values(copy->to_csr(), csr->low_values);
  same_values(copy->copy_to(*this->context)->to_csr(), csr->low_values);
  // Low values are dropped, or zero, where they are not asked for or not there.
  same_values(this->make(csr)->to_csr(), {});
  auto const zeros = this->make(plain, both);
  EXPECT_EQ(zeros->bytes(), matrix->bytes());
  same_values(zeros->to_csr(), HostVector<double>(csr->values.size(), 0.0));
  same_values(zeros->copy_to(*host)->to_csr(), HostVector<double>(csr->values.size(), 0.0));
  if (TypeParam::backend == Backend::cuda)
    same_values(this->make(csr, {.conversion = Conversion::host, .precision = both.precision})->to_csr(), csr->low_values);
  // In double both are the same matrix.
  Vector<double> const x(*this->context, std::span<double const>(random_vector(csr->n_rows, 3)));
  std::vector<std::vector<double>> results;
  for (Matrix const* const m : {in_double.get(), matrix.get()}) {
    Vector<double> y(*this->context, csr->n_rows);
    m->product(1, x.data(), 0, y.data());
    y.download(std::span<double>(results.emplace_back(static_cast<std::size_t>(csr->n_rows))));
  }
  EXPECT_EQ(results[0], results[1]);
}

}  // namespace
}  // namespace poisson::testing
