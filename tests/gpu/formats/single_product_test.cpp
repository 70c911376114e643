#include "tests/gpu/cases.hpp"
#include "tests/gpu/matrices.hpp"
#include "tests/gpu/quad.hpp"

#include "gpu/core/threads.hpp"
#include "gpu/core/vector.hpp"
#include "gpu/kernels/vectors.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>

namespace poisson::testing {

namespace {

constexpr double unit_in_float = 0x1p-24;  // rounding in float

/// Rounds numbers to float, and returns them in float or in double.
template <class T>
std::vector<T> rounded_to_float(std::vector<double> const& v) {
  std::vector<T> result;
  for (double const entry : v)
    result.push_back(static_cast<T>(static_cast<float>(entry)));
  return result;
}

std::shared_ptr<CsrMatrix> rounded_to_float(CsrMatrix const& csr) {
  auto result = std::make_shared<CsrMatrix>(csr);
  for (double& value : result->values)
    value = static_cast<double>(static_cast<float>(value));
  return result;
}

template <class C>
class SingleProduct : public OnCase<C> {
protected:
  static constexpr FormatOptions single{.precision = MatrixPrecision::single};

  void check(std::shared_ptr<CsrMatrix const> const& csr, std::string const& what, FormatOptions options = {}) {
    SCOPED_TRACE(what);
    options.precision = MatrixPrecision::single;
    if (!estimate_formats(shape_of(*csr), options)[static_cast<std::size_t>(C::format)].refusal.empty())
      return;  // too much padding
    auto const matrix = this->make(csr, options);
    if (csr->nnz() > 0) {  // without entries there is no array that tells it
      EXPECT_EQ(matrix->precision(), MatrixPrecision::single);
    }
    check_in<float>(*csr, *matrix);
    check_in<double>(*csr, *matrix);
  }

  /// Products and diagonal of the matrix with rounded entries, against naive loops. Sums of vectors in float may be rounded
  /// after every term.
  template <class T>
  void check_in(CsrMatrix const& csr, Matrix const& matrix) {
    SCOPED_TRACE(sizeof(T) == sizeof(float) ? "vectors in float" : "vectors in double");
    auto const exact = rounded_to_float(csr);
    auto const n = static_cast<std::size_t>(csr.n_rows);
    auto const x = rounded_to_float<T>(random_vector(csr.n_columns, 17)), y = rounded_to_float<T>(random_vector(csr.n_rows, 19));
    std::vector<double> const wide_x(x.begin(), x.end());
    auto const expected = naive_product(*exact, wide_x), scale = absolute_product(*exact, wide_x);
    auto const tolerance = [&](std::size_t row) {
      return std::is_same_v<T, float> ? (4 + static_cast<double>(csr.row_ptr[row + 1] - csr.row_ptr[row])) * unit_in_float : 4e-15;
    };
    Vector<T> const device_x(*this->context, std::span<T const>(x));
    T const nan = std::numeric_limits<T>::quiet_NaN();
    for (auto const& [alpha, beta] : {std::pair{1.0, 0.0}, {-2.5, 0.0}, {1.0, 1.0}, {-1.0, 0.75}}) {
      SCOPED_TRACE("alpha " + std::to_string(alpha) + " beta " + std::to_string(beta));
      Vector<T> device_y(*this->context, std::span<T const>(beta == 0 ? std::vector<T>(n, nan) : y));
      matrix.product(static_cast<T>(alpha), device_x.data(), static_cast<T>(beta), device_y.data());
      auto const result = download(device_y);
      for (std::size_t i = 0; i < n; ++i) {
        double const from_y = beta == 0 ? 0 : beta * static_cast<double>(y[i]);
        ASSERT_NEAR(static_cast<double>(result[i]), alpha * expected[i] + from_y,
                    tolerance(i) * (std::abs(alpha) * scale[i] + std::abs(from_y)))
            << "row " << i;
      }
    }
    Vector<T> diagonal(*this->context, csr.n_rows);
    matrix.diagonal(diagonal.data());
    auto const d = download(diagonal);
    for (std::size_t row = 0; row < n; ++row) {
      double wanted = 0;
      for (auto e = static_cast<std::size_t>(csr.row_ptr[row]); e < static_cast<std::size_t>(csr.row_ptr[row + 1]); ++e)
        if (static_cast<std::size_t>(csr.columns[e]) == row)
          wanted = exact->values[e];
      ASSERT_EQ(static_cast<double>(d[row]), wanted) << "row " << row;
    }
    if (csr.n_rows != csr.n_columns || n == 0)
      return;
    std::int32_t const no = 0, yes = 1;
    Array<std::int32_t> const running(*this->context, std::span<std::int32_t const>(&no, 1));
    Array<std::int32_t> const stopped(*this->context, std::span<std::int32_t const>(&yes, 1));
    Vector<T> device_y(*this->context, std::span<T const>(std::vector<T>(n, nan)));
    Vector<T> dot(*this->context, std::span<T const>(std::vector<T>{-5}));
    matrix.product_dot(device_x.data(), device_y.data(), dot.data(), stopped.data());
    EXPECT_TRUE(std::isnan(download(device_y)[n / 2])) << "a stopped product must leave y alone";
    EXPECT_EQ(download(dot)[0], T(-5));
    matrix.product_dot(device_x.data(), device_y.data(), dot.data(), running.data());
    auto const result = download(device_y);
    long double sum = 0;  // a million terms, one after another, lose too much in double
    double size = 0;
    for (std::size_t i = 0; i < n; ++i) {
      ASSERT_NEAR(static_cast<double>(result[i]), expected[i], tolerance(i) * scale[i]) << "row " << i;
      sum += static_cast<long double>(wide_x[i]) * expected[i];
      size += std::abs(wide_x[i]) * scale[i];
    }
    EXPECT_NEAR(static_cast<double>(download(dot)[0]), static_cast<double>(sum),
                (std::is_same_v<T, float> ? 64 * unit_in_float : 1e-14) * size);
  }
};

TYPED_TEST_SUITE(SingleProduct, Cases, CaseNames);

TYPED_TEST(SingleProduct, DiagonalsAndBoxes) {
  for (std::int64_t const n : {1, 2, 31, 33, 64, 257, 513, 1023, 1025, 5121})
    this->check(banded(n, {1, 2}, static_cast<unsigned>(n)), "banded, n = " + std::to_string(n));
  this->check(banded(7000, {1, 31, 32, 33, 1023, 1024, 1025, 3000, 6999}, 5), "far diagonals");
  this->check(box27(17, 16, 15, false, 0.5), "17 x 16 x 15");
  this->check(large_box27(69, 61, 9), "planes of 69 x 61");
  this->check(to_csr(0, {}), "0 x 0");
  this->check(to_csr(300, {}), "no entries");
}

// Rows that other ranks add nothing to are such a matrix.
TYPED_TEST(SingleProduct, WithoutEntriesIsCopiedBetweenBackends) {
  auto const csr = to_csr(300, {});
  if (!estimate_formats(shape_of(*csr), this->single)[static_cast<std::size_t>(TypeParam::format)].refusal.empty())
    GTEST_SKIP() << "too much padding";
  auto const matrix = this->make(csr, this->single);
  auto const host = make_context(Backend::cpu);
  EXPECT_EQ(matrix->copy_to(*host)->to_csr().n_rows, 300);
  EXPECT_EQ(matrix->copy_to(*host)->copy_to(*this->context)->to_csr().nnz(), 0);
}

TYPED_TEST(SingleProduct, BeyondTheDeviceCache) {
  if (TypeParam::backend == Backend::cpu)
    GTEST_SKIP() << "about kernels of a device";
  this->check(large_box27(96, 88, 61), "96 x 88 x 61");
  if (TypeParam::format == Format::half_cds) {  // marches through planes; twice the rows of the boxes in double have the same bytes
    this->check(large_box27(128, 96, 80), "128 x 96 x 80");
    this->check(large_box27(97, 83, 120), "97 x 83 x 120");
    this->check(large_box27(33, 9, 3200), "33 x 9 x 3200");  // in wide tiles, as the next one
    this->check(large_box27(65, 66, 290), "65 x 66 x 290");
    this->check(large_box27(257, 129, 29, 257 * 129 * 29 - 300), "257 x 129 x 29 without the last 300 rows");
    this->check(wrapped_box27(82, 82, 82 * 82 * 150), "82 x 82 x 150, wrapped");
  }
  if (this->any_pattern)
    for (int const c : {4, 8, 32})
      this->check(large_irregular(34'003, 70, 9000), "70 a row, one long, C = " + std::to_string(c), {.slice_size = c});
}

TYPED_TEST(SingleProduct, AnyPattern) {
  if (!this->any_pattern)
    GTEST_SKIP() << "the format holds few diagonals only";
  for (std::int64_t const n : {5, 32, 257, 2500})
    this->check(uneven(n, n, static_cast<unsigned>(n)), "uneven, n = " + std::to_string(n));
  this->check(uneven(300, 70, 1), "300 x 70");
  this->check(uneven(900, 9000, 4), "one dense row of 9000");
  for (int const c : {2, 4, 8, 16, 64, 128})
    this->check(uneven(700, 700, 3), "C = " + std::to_string(c), {.slice_size = c, .threads_per_row = std::min(c, 32)});
}

TYPED_TEST(SingleProduct, SameBitsEveryTimeAndForAnyThreadCount) {
  int const threads = thread_count();
  auto const csr = box27(31, 30, 29, false, 0.5);
  auto const matrix = this->make(csr, this->single);
  Vector<float> const x(*this->context, std::span<float const>(rounded_to_float<float>(random_vector(csr->n_rows, 3))));
  Vector<float> y(*this->context, csr->n_rows), dot(*this->context, 1);
  std::int32_t const no = 0;
  Array<std::int32_t> const running(*this->context, std::span<std::int32_t const>(&no, 1));
  std::vector<float> first_y, first_dot;
  for (int const count : {1, 2, 3, 1, 7}) {
    set_thread_count(count);
    matrix->product_dot(x.data(), y.data(), dot.data(), running.data());
    if (first_y.empty()) {
      first_y = download(y);
      first_dot = download(dot);
    }
    EXPECT_EQ(download(y), first_y) << count << " threads";
    EXPECT_EQ(download(dot), first_dot) << count << " threads";
  }
  set_thread_count(threads);
}

TYPED_TEST(SingleProduct, BytesAndRoundTrips) {
  auto csr = box27(12, 11, 10, false, 0.5);
  // Off the diagonal on both sides: what rounds to nothing stays an entry.
  for (std::size_t const place : {csr->row_ptr[1], csr->row_ptr[0] + 1})
    csr->values[static_cast<std::size_t>(place)] = -1e-60;
  auto const in_double = this->make(csr), matrix = this->make(csr, this->single);
  std::int64_t const taken = this->symmetric_only ? (csr->nnz() + csr->n_rows) / 2 : csr->nnz();
  auto const stored = std::llround(matrix->padding_ratio() * static_cast<double>(taken));
  EXPECT_EQ(matrix->bytes(), in_double->bytes() - 4 * stored);
  if (TypeParam::format != Format::cod_sell) {
    EXPECT_EQ(estimate_formats(*csr, this->single)[static_cast<std::size_t>(TypeParam::format)].bytes, matrix->bytes());
  }
  LinearOperator<float> const& in_float = *matrix;
  EXPECT_EQ(in_float.bytes_per_product(), matrix->bytes() + 8 * csr->n_rows);
  EXPECT_EQ(matrix->bytes_per_product(), matrix->bytes() + 16 * csr->n_rows);
  auto const exact = rounded_to_float(*csr);
  auto const same = [&](CsrMatrix const& back) {
    EXPECT_EQ(back.row_ptr, csr->row_ptr);
    EXPECT_EQ(back.columns, csr->columns);
    EXPECT_EQ(back.values, exact->values);
    EXPECT_TRUE(back.low_values.empty());
  };
  same(matrix->to_csr());
  auto const host = make_context(Backend::cpu);
  auto const copy = matrix->copy_to(*host);
  EXPECT_EQ(copy->bytes(), matrix->bytes());
  EXPECT_EQ(copy->precision(), MatrixPrecision::single);
  same(copy->to_csr());
  auto const there = copy->copy_to(*this->context);
  same(there->to_csr());
  this->template check_in<float>(*csr, *there);
  if (TypeParam::backend == Backend::cuda)
    same(this->make(csr, {.conversion = Conversion::host, .precision = MatrixPrecision::single})->to_csr());
}

TYPED_TEST(SingleProduct, PairsThatAreNotListedAreRefused) {
  auto const csr = banded(50, {1}, 3);
  auto const in_double = this->make(csr), matrix = this->make(csr, this->single);
  Vector<float> x(*this->context, std::span<float const>(std::vector<float>(50, 1.0F))), y(*this->context, 50);
  EXPECT_THROW(in_double->product(1.0F, x.data(), 0.0F, y.data()), std::logic_error);
  Vector<DoubleDouble> wide(*this->context, 50), result(*this->context, 50);
  wide.set_zero();
  EXPECT_THROW(matrix->product(DoubleDouble(1), wide.data(), DoubleDouble(0), result.data()), std::logic_error);
}

template <class B>
class SingleVectors : public OnBackend<B::value> {};
TYPED_TEST_SUITE(SingleVectors, Backends, BackendNames);

TYPED_TEST(SingleVectors, SumsAndCopies) {
  auto const& kernels = kernels_for<VectorKernels<float>>(*this->context);
  for (std::int64_t const n : {1, 33, 1025, 300'007}) {
    SCOPED_TRACE(n);
    auto x = rounded_to_float<float>(random_vector(n, 3)), y = rounded_to_float<float>(random_vector(n, 4));
    for (float& entry : x)
      entry = 1.0F + std::abs(entry);  // sums that grow show what adding in float would lose
    double dot = 0, size = 0, distance = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      double const a = static_cast<double>(x[i]), b = static_cast<double>(y[i]);
      dot += a * b;
      size += std::abs(a * b);
      distance += (a - b) * (a - b);
    }
    Vector<float> const device_x(*this->context, std::span<float const>(x)), device_y(*this->context, std::span<float const>(y));
    Vector<float> result(*this->context, 1), copy(*this->context, n);
    kernels.dot(*this->context, n, device_x.data(), device_y.data(), result.data());
    EXPECT_NEAR(static_cast<double>(download(result)[0]), dot, 32 * unit_in_float * size);
    kernels.distance_squared(*this->context, n, device_x.data(), device_y.data(), result.data());
    EXPECT_NEAR(static_cast<double>(download(result)[0]), distance, 32 * unit_in_float * distance);
    kernels.copy(*this->context, n, device_x.data(), copy.data());
    EXPECT_EQ(download(copy), x);
    kernels.invert(*this->context, n, copy.data());
    auto const inverse = download(copy);
    for (std::size_t i = 0; i < x.size(); ++i)
      ASSERT_NEAR(static_cast<double>(inverse[i]) * static_cast<double>(x[i]), 1, 2 * unit_in_float);
  }
}

}  // namespace
}  // namespace poisson::testing
