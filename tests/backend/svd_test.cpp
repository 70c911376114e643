#include "gpu/svd/svd.hpp"

#include "cases.hpp"
#include "gpu/core/error.hpp"

#include <cmath>
#include <limits>
#include <random>

namespace poisson::testing {
namespace {

class SvdCpu : public OnBackend<Backend::cpu> {};

TEST_F(SvdCpu, KnownValuesOfASmallMatrix) {
  DenseMatrix a(2, 2);
  a(0, 0) = 3;
  a(0, 1) = 0;
  a(1, 0) = 4;
  a(1, 1) = 5;
  Svd const result = svd(a, {}, *context);
  ASSERT_EQ(result.values.size(), 2u);
  EXPECT_NEAR(result.values[0], std::sqrt(45.0), 1e-14);
  EXPECT_NEAR(result.values[1], std::sqrt(5.0), 1e-14);
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j)
      EXPECT_NEAR(result.u(i, 0) * result.values[0] * result.v(j, 0) + result.u(i, 1) * result.values[1] * result.v(j, 1), a(i, j),
                  1e-14);
}

TEST_F(SvdCpu, RefusesWhatIsNotFiniteByItsPlace) {
  DenseMatrix a(3, 4);
  std::fill(a.values.begin(), a.values.end(), 1.0);
  a(2, 1) = std::numeric_limits<double>::quiet_NaN();
  try {
    static_cast<void>(svd(a, {}, *context));
    FAIL();
  } catch (InputError const& error) {
    expect_contains(error.what(), {"NaN", "row 2", "column 1"});
  }
  EXPECT_THROW(static_cast<void>(svd(DenseMatrix(), {}, *context)), InputError);
}

}  // namespace
}  // namespace poisson::testing
