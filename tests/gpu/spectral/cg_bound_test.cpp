#include "gpu/spectral/cg_bound.hpp"

#include <gtest/gtest.h>

namespace poisson {
namespace {

TEST(CgBound, HalvesWithEveryIterationForConditionNine) {
  CgBound const bound = cg_bound(9, 9);  // q = (3 - 1) / (3 + 1)
  EXPECT_EQ(bound.rate, 0.5);
  EXPECT_EQ(bound.residual(0), 6);
  EXPECT_EQ(bound.residual(2), 1.5);
  EXPECT_EQ(bound.iterations(1), 3);  // 6 / 8 is the first below 1
  EXPECT_EQ(cg_bound(100, 9).residual(1), 10);
}

TEST(CgBound, OneIterationWithThePerfectPreconditioner) {
  EXPECT_EQ(cg_bound(1e6, 1).iterations(1e-12), 1);
}

}  // namespace
}  // namespace poisson
