#include "tests/gpu/cases.hpp"
#include "tests/gpu/matrices.hpp"
#include "tests/gpu/quad.hpp"

#include "gpu/formats/matrix.hpp"
#include "gpu/kernels/backends.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

/// Passes over a matrix for several columns against those for one, which product_test.cpp and others compare with plain loops.
namespace poisson::testing {

namespace {

constexpr double written_before = -7;

double high_part(float v) {
  return v;
}
double high_part(double v) {
  return v;
}
double high_part(DoubleDouble v) {
  return v.hi;
}

/// To the last bit, or to a share of the largest entry.
template <class T>
void expect_columns_near(std::vector<T> const& found, std::vector<T> const& expected, double rounding) {
  ASSERT_EQ(found.size(), expected.size());
  if (rounding == 0) {
    EXPECT_EQ(std::memcmp(found.data(), expected.data(), sizeof(T) * found.size()), 0) << "other bits";
    return;
  }
  double largest = 0, difference = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    largest = std::max(largest, std::abs(high_part(expected[i])));
    double const d = std::abs(high_part(found[i] - expected[i]));
    difference = d <= difference ? difference : d;  // NaN counts
  }
  EXPECT_LE(difference, rounding * largest);
}

/// Columns with their vectors; column 1 is stopped.
template <class T>
struct ColumnVectors {
  std::vector<Vector<T>> x, b, y, alone;
  std::vector<Array<std::int32_t>> stop;

  ColumnVectors(Context& context, std::int64_t n, std::size_t count) {
    std::vector<T> const before(static_cast<std::size_t>(n), T(written_before));
    for (std::size_t j = 0; j < count; ++j) {
      auto const seed = static_cast<unsigned>(10 * j);
      x.emplace_back(context, std::span<T const>(random_numbers<T>(n, seed)));
      b.emplace_back(context, std::span<T const>(random_numbers<T>(n, seed + 1)));
      y.emplace_back(context, std::span<T const>(before));
      alone.emplace_back(context, std::span<T const>(before));
      std::int32_t const stopped = j == 1 ? 1 : 0;
      stop.emplace_back(context, std::span<std::int32_t const>(&stopped, 1));
    }
  }
  void expect_alike(double rounding) const {
    for (std::size_t j = 0; j < x.size(); ++j) {
      SCOPED_TRACE("column " + std::to_string(j) + " of " + std::to_string(x.size()));
      auto const found = download(y[j]);
      expect_columns_near(found, download(alone[j]), rounding);
      if (j == 1) {
        EXPECT_TRUE(std::ranges::all_of(found, [](T v) { return high_part(v) == written_before; })) << "a stopped column";
      }
    }
  }
};

template <class T>
void compare_product_dots(Matrix const& a, std::size_t count, double rounding) {
  Context& context = a.context();
  ColumnVectors<T> v(context, a.n_rows(), count);
  Array<T> dots(context, static_cast<std::int64_t>(count)), alone(context, static_cast<std::int64_t>(count));
  std::vector<T> const before(count, T(written_before));
  dots.upload(before);
  alone.upload(before);
  LinearOperator<T> const& product = a;
  std::vector<ProductColumn<T>> columns;
  for (std::size_t j = 0; j < count; ++j) {
    columns.push_back({v.x[j].data(), v.y[j].data(), dots.data() + j, v.stop[j].data()});
    product.product_dot(v.x[j].data(), v.alone[j].data(), alone.data() + j, v.stop[j].data());
  }
  product.product_dots(columns);
  v.expect_alike(rounding);
  std::vector<T> of_dots(count), of_alone(count);
  dots.download(std::span<T>(of_dots));
  alone.download(std::span<T>(of_alone));
  for (std::size_t j = 0; j < count; ++j) {
    // The sum of n numbers of either sign.
    double const scale = std::sqrt(static_cast<double>(a.n_rows())) + std::abs(high_part(of_alone[j]));
    EXPECT_LE(std::abs(high_part(of_dots[j] - of_alone[j])), 100 * rounding * scale) << j;
  }
}

template <class V>
void compare_smoothing(Matrix const& a, std::size_t count, double rounding) {
  Context& context = a.context();
  std::int64_t const n = a.n_rows();
  Vector<V> diagonal(context, n);
  a.diagonal(diagonal.data());
  auto of_host = download(diagonal);
  std::ranges::replace(of_host, V(0), V(1));  // a smoother divides by it
  diagonal = Vector<V>(context, std::span<V const>(of_host));
  for (bool const outside : {false, true}) {
    ColumnVectors<V> v(context, n, count);
    ColumnVectors<double> z(context, outside ? n : 0, count);
    std::vector<SmoothingColumn<V>> columns;
    bool has = true;
    for (std::size_t j = 0; j < count; ++j) {
      SmoothingStep<V> step{diagonal.data(), v.b[j].data(), V(0.3), v.alone[j].data(), outside ? z.alone[j].data() : nullptr};
      has = a.smooth(step, v.x[j].data(), v.stop[j].data());
      step.x_after = v.y[j].data();
      step.outside = outside ? z.y[j].data() : nullptr;
      columns.push_back({step, v.x[j].data(), v.stop[j].data()});
    }
    EXPECT_EQ(a.smooth_all(columns), has);
    if (outside)
      z.expect_alike(rounding);
    else
      v.expect_alike(rounding);
  }
  ColumnVectors<V> v(context, n, count);
  std::vector<ResidualColumn<V>> columns;
  bool has = true;
  for (std::size_t j = 0; j < count; ++j) {
    has = a.subtract_product(v.b[j].data(), v.x[j].data(), v.alone[j].data(), v.stop[j].data());
    columns.push_back({v.b[j].data(), v.x[j].data(), v.y[j].data(), v.stop[j].data()});
  }
  EXPECT_EQ(a.subtract_products(columns), has);
  v.expect_alike(rounding);
}

template <class C>
class ColumnPasses : public OnCase<C> {
protected:
  /// Rounding that may be between columns and one of them alone.
  static constexpr double of_double() { return C::backend == Backend::cpu ? 0 : 1e-14; }
  static constexpr double of_float() { return C::backend == Backend::cpu ? 0 : 1e-5; }

  void compare(std::shared_ptr<CsrMatrix> const& csr, std::vector<std::size_t> const& counts) {
    for (MatrixPrecision const precision : {MatrixPrecision::double_, MatrixPrecision::single, MatrixPrecision::double_double}) {
      SCOPED_TRACE(std::string(name_of(precision)));
      FormatOptions options;
      options.precision = precision;
      auto const matrix = this->make(csr, options);
      for (std::size_t const count : counts) {
        compare_product_dots<double>(*matrix, count, of_double());
        compare_smoothing<double>(*matrix, count, of_double());
        if (precision == MatrixPrecision::single) {
          compare_product_dots<float>(*matrix, count, of_float());
          compare_smoothing<float>(*matrix, count, of_float());
        } else
          compare_product_dots<DoubleDouble>(*matrix, count, of_double());
      }
    }
  }
};
TYPED_TEST_SUITE(ColumnPasses, Cases, CaseNames);

TYPED_TEST(ColumnPasses, AreProductsAndStepsOfEachAlone) {
  this->compare(box27(12, 11, 10, false, 0.3), {1, 2, 3, 4, 5, 8});
}

TYPED_TEST(ColumnPasses, OfManyRows) {
  this->compare(large_box27(31, 29, 9), {3, 8});
  this->compare(banded(3000, {1, 7, 40, 900}, 2, true), {5});
}

TYPED_TEST(ColumnPasses, OfRowsOfDifferentLengths) {
  if (!this->any_pattern)
    GTEST_SKIP() << "the format takes few diagonals";
  this->compare(uneven(700, 700, 3), {2, 7});
}

/// Boxes beyond the caches of a device, whose lines fill tiles or do not, and whose last plane is not complete; one wraps around
/// lines and planes.
TYPED_TEST(ColumnPasses, OfLargeBoxes) {
  if (TypeParam::backend == Backend::cpu || TypeParam::format == Format::cds)
    GTEST_SKIP() << "the host has one loop for all sizes";
  for (auto const& csr : {large_box27(128, 130, 72), large_box27(129, 127, 75), large_box27(97, 200, 64, 97 * 200 * 64 - 1234),
                          wrapped_box27(100, 90, 100 * 90 * 130 - 60)})
    for (MatrixPrecision const precision : {MatrixPrecision::double_, MatrixPrecision::single}) {
      FormatOptions options;
      options.precision = precision;
      auto const matrix = this->make(csr, options);
      for (std::size_t const count : {2U, 8U}) {
        if (precision == MatrixPrecision::double_) {
          compare_product_dots<double>(*matrix, count, this->of_double());
          compare_smoothing<double>(*matrix, count, this->of_double());
        } else
          compare_smoothing<float>(*matrix, count, this->of_float());
      }
    }
}

}  // namespace

}  // namespace poisson::testing
