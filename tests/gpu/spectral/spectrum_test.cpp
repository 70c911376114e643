#include "gpu/spectral/spectrum.hpp"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

namespace poisson {
namespace {

TEST(Spectrum, RankAndCondition) {
  std::vector<double> const values{4, 2, 1e-17, 0};
  Spectrum const s = spectrum_of(values, 4, 6);
  EXPECT_EQ(s.rank, 2);
  EXPECT_EQ(s.condition, 2);
  EXPECT_EQ(s.largest, 4);
  EXPECT_EQ(s.smallest, 2);
  EXPECT_EQ(s.threshold, 6 * 4 * std::numeric_limits<double>::epsilon());
  std::vector<double> const zero{0, 0};
  EXPECT_EQ(spectrum_of(zero, 2, 2).rank, 0);
  EXPECT_TRUE(std::isnan(spectrum_of(zero, 2, 2).condition));
}

TEST(Spectrum, ErrorsByRank) {
  for (double const scale : {1.0, 1e300, 1e-300}) {  // squares of the last two are out of range
    std::vector<double> const values{12 * scale, 4 * scale, 3 * scale};
    auto const errors = errors_by_rank(values);
    ASSERT_EQ(errors.size(), 4u);
    EXPECT_NEAR(errors[0], 1, 1e-15);
    EXPECT_NEAR(errors[1], 5.0 / 13, 1e-15);
    EXPECT_NEAR(errors[2], 3.0 / 13, 1e-15);
    EXPECT_EQ(errors[3], 0);
    EXPECT_EQ(smallest_rank(errors, 0.3), 2);
    EXPECT_EQ(smallest_rank(errors, 0.99), 1);
    EXPECT_EQ(smallest_rank(errors, 1e-9), 3);
  }
  std::vector<double> const zero{0, 0};
  EXPECT_EQ(smallest_rank(errors_by_rank(zero), 1e-9), 0);
}

}  // namespace
}  // namespace poisson
