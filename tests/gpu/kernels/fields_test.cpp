#include "gpu/kernels/fields.hpp"

#include "gpu/core/array.hpp"
#include "gpu/core/double_double.hpp"
#include "gpu/core/field.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/solvers/right_hand_side.hpp"
#include "tests/gpu/arrays.hpp"
#include "tests/gpu/cases.hpp"

#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

/// What is done with whole vectors, beside plain loops in long double.
namespace poisson::testing {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();

std::vector<double> scaled_numbers(std::int64_t n, double scale = 1) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < n; ++i)
    values.push_back(scale * std::sin(static_cast<double>(3 * i + 1)) * std::exp(static_cast<double>(i % 7) - 3));
  return values;
}

}  // namespace

template <class B>
class Fields : public OnBackend<B::value> {
protected:
  FieldKernels const& kernels() { return kernels_for<FieldKernels>(*this->context); }
  double norm(std::vector<double> const& values, DiagonalWeights weights = {}) {
    Array<double> const x = uploaded(*this->context, values);
    return norm_of(*this->context, x.size(), x.data(), weights);
  }
};
TYPED_TEST_SUITE(Fields, Backends, BackendNames);

TYPED_TEST(Fields, Norms) {
  for (std::int64_t const n : {0, 1, 31, 1000, 70001})
    for (double const scale : {1.0, 1e-200, 1e200}) {
      std::vector<double> const values = scaled_numbers(n, scale);
      long double sum = 0;
      for (double const value : values)
        sum += static_cast<long double>(value) * static_cast<long double>(value);
      double const expected = static_cast<double>(std::sqrt(sum));
      EXPECT_NEAR(this->norm(values), expected, 1e-15 * expected) << n << " entries times " << scale;
    }
  EXPECT_EQ(this->norm({3, -4}), 5);
  EXPECT_EQ(this->norm({3e300, -4e300}), 5e300);
  EXPECT_TRUE(std::isnan(this->norm({1, nan, 2})));
  EXPECT_TRUE(std::isnan(this->norm({1, -infinity, 2})));
}

TYPED_TEST(Fields, NormsWithTheWeightsOfADiagonal) {
  std::vector<double> const diagonal{4, -1, 0, 16};
  Array<double> const d = uploaded(*this->context, diagonal);
  // The weights are 2, 4, 1 and 1.
  EXPECT_EQ(this->norm({1.5, 1, 0, 0}, {d.data(), 16}), 5);
  EXPECT_EQ(this->norm({0, 0, 3, 4}, {d.data(), 16}), 5);
}

TYPED_TEST(Fields, LargestAndFirstNotFinite) {
  for (std::int64_t const n : {1, 500, 70001}) {
    std::vector<double> values = scaled_numbers(n);
    values.back() = -100;
    EXPECT_EQ(largest_of(*this->context, n, uploaded(*this->context, values).data()), 100);
    EXPECT_EQ(first_not_finite(*this->context, n, uploaded(*this->context, values).data()), n);
    EXPECT_TRUE(is_finite(Field(uploaded(*this->context, values))));
    values.back() = nan;
    EXPECT_TRUE(std::isnan(largest_of(*this->context, n, uploaded(*this->context, values).data())));
    values[static_cast<std::size_t>(n / 2)] = infinity;
    EXPECT_EQ(first_not_finite(*this->context, n, uploaded(*this->context, values).data()), n / 2);
    EXPECT_FALSE(is_finite(Field(uploaded(*this->context, values))));
    EXPECT_FALSE(is_finite(Field(HostVector<double>(values.begin(), values.end()))));
  }
  EXPECT_EQ(largest_of(*this->context, 0, nullptr), 0);
  EXPECT_EQ(first_not_finite(*this->context, 0, nullptr), 0);
}

TYPED_TEST(Fields, FirstThatFails) {
  std::vector<double> const values{3, infinity, -2, -0.0, nan};
  Array<double> const x = uploaded(*this->context, values);
  auto const first = [&](std::int64_t begin, EntryCheck check) {
    return begin + first_failing(*this->context, x.size() - begin, x.data() + begin, check);
  };
  EXPECT_EQ(first(0, EntryCheck::finite), 1);
  EXPECT_EQ(first(2, EntryCheck::finite), 4);
  EXPECT_EQ(first(0, EntryCheck::positive), 2);
  EXPECT_EQ(first(3, EntryCheck::positive), 3);
  EXPECT_EQ(first(4, EntryCheck::positive), 4);
  EXPECT_EQ(first(0, EntryCheck::not_zero), 3);
  EXPECT_EQ(first(4, EntryCheck::not_zero), 5);
}

TYPED_TEST(Fields, ScaleByAPowerOfTwo) {
  std::vector<double> const values = scaled_numbers(1000);
  Array<double> x = uploaded(*this->context, values);
  for (int const exponent : {3, -700, 701, -1000, 996}) {  // which together are none
    this->kernels().scale(*this->context, x.size(), exponent, x.data(), x.data());
    if (exponent == 3) {
      EXPECT_EQ(downloaded(x)[7], 8 * values[7]);
    }
  }
  EXPECT_EQ(downloaded(x), values);
}

TYPED_TEST(Fields, SumsAndMeans) {
  // What cancels in double is there in double-double.
  std::vector<double> const high{1e16, 1, -1e16, 0.5}, low{0.25, 0, 0, 0};
  Array<double> of_high = uploaded(*this->context, high), of_low = uploaded(*this->context, low);
  Array<DoubleDouble> sum(*this->context, 1);
  this->kernels().sum(*this->context, 4, {of_high.data(), nullptr}, sum.data());
  EXPECT_EQ(downloaded(sum)[0].hi, 1.5);
  this->kernels().sum(*this->context, 4, {of_high.data(), of_low.data()}, sum.data());
  EXPECT_EQ(downloaded(sum)[0].hi, 1.75);
  this->kernels().subtract(*this->context, 4, sum.data(), {of_high.data(), nullptr});
  EXPECT_EQ(downloaded(of_high), (std::vector<double>{1e16 - 1.75, -0.75, -1e16 - 1.75, -1.25}));
}

TYPED_TEST(Fields, SetWhereMarked) {
  Array<double> x = uploaded(*this->context, std::vector<double>{1, 2, 3, 4});
  Array<std::uint8_t> const marks = uploaded(*this->context, std::vector<std::uint8_t>{0, 1, 0, 2});
  Array<double> const values = uploaded(*this->context, std::vector<double>{5, 6, 7, 8});
  this->kernels().set_where(*this->context, 4, marks.data(), values.data(), x.data());
  EXPECT_EQ(downloaded(x), (std::vector<double>{1, 6, 3, 8}));
}

TYPED_TEST(Fields, StayWhereTheyAreUntilTheyChange) {
  Field field(uploaded(*this->context, std::vector<double>{1, 2, 3}));
  EXPECT_EQ(field.context(), this->context.get());
  EXPECT_EQ(field.host()[2], 3);
  field.change_on_host()[1] = 7;
  EXPECT_EQ(downloaded(field.on(*this->context)), (std::vector<double>{1, 7, 3}));
  this->context->set_zero(field.change_on(*this->context).data(), sizeof(double));
  EXPECT_EQ(field.host()[0], 0);
  EXPECT_EQ(field.take_host(), (HostVector<double>{0, 7, 3}));
  EXPECT_TRUE(field.empty());
  Field const none;
  EXPECT_TRUE(none.host().empty());
}

TYPED_TEST(Fields, RightHandSideIsCopiedOnlyWhereItChanges) {
  for (double const scale : {1.0, 1e-250, 1e250}) {
    std::vector<double> const values{scale, 2 * scale, 6 * scale};
    Array<double> const b = uploaded(*this->context, values);
    RightHandSide<double> const rhs(*this->context, b, false);
    EXPECT_EQ(rhs.data() == b.data(), scale == 1);
    std::vector<double> seen(3);
    this->context->download(seen.data(), rhs.data(), 24);
    Vector<double> x(*this->context, std::span<double const>(seen));
    rhs.unscale(x);
    x.download(seen);
    EXPECT_EQ(seen, values);

    RightHandSide<DoubleDouble> const projected(*this->context, b, true);
    this->context->download(seen.data(), projected.data().hi, 24);
    EXPECT_EQ(seen[0] + seen[1] + seen[2], 0);
    EXPECT_EQ(std::scalbn(seen[0], projected.exponent()), -2 * scale);
  }
}

TYPED_TEST(Fields, EntriesAtPlaces) {
  std::vector<double> const values = scaled_numbers(1000);
  std::vector<std::int32_t> const places{999, 0, 17, 17, 3};
  for (bool const on_backend : {false, true}) {
    Field const x = on_backend ? Field(uploaded(*this->context, values)) : Field(HostVector<double>(values.begin(), values.end()));
    HostVector<double> const found = entries_of(x, places);
    ASSERT_EQ(found.size(), places.size());
    for (std::size_t i = 0; i < places.size(); ++i)
      EXPECT_EQ(found[i], values[static_cast<std::size_t>(places[i])]);
    EXPECT_TRUE(entries_of(x, {}).empty());
  }
}

}  // namespace poisson::testing
