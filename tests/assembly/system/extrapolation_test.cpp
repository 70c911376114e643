/// Richardson's extrapolation: sequences whose limit and order are known, and sequences that have none.
#include "assembly/system/extrapolation.hpp"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

namespace poisson::assembly {
namespace {

std::vector<double> powers(std::vector<double> const& h, double limit, double c, double p) {
  std::vector<double> q;
  for (double const width : h)
    q.push_back(limit + c * std::pow(width, p));
  return q;
}

TEST(Extrapolation, ByHand) {
  // 1 + h^2 at h = 1, 1/2, 1/4: changes 3/4 and 3/16, so the order is log2(4) and the limit 17/16 - 1/16
  auto const found = extrapolate(std::vector<double>{1, 0.5, 0.25}, std::vector<double>{2, 1.25, 1.0625});
  EXPECT_NEAR(found.order, 2, 1e-12);
  EXPECT_NEAR(found.value, 1, 1e-13);
  EXPECT_NEAR(found.error, 1. / 16, 1e-13);
  EXPECT_EQ(found.note, "");
}

TEST(Extrapolation, AnyRatiosAndOrders) {
  for (double const p : {0.5, 4. / 3, 1., 2., 4., 7.})
    for (double const c : {-3., 0.01})
      for (auto const& h : {std::vector<double>{1, 0.5, 0.25, 0.125}, {1. / 8, 1. / 12, 1. / 20}, {0.3, 0.2, 0.19, 0.1, 0.04}}) {
        auto const found = extrapolate(h, powers(h, 5, c, p));
        if (found.note == "does not change")  // C h^p is below the solver's rounding
          continue;
        EXPECT_EQ(found.note, "") << p << " " << c;
        EXPECT_NEAR(found.order, p, 1e-4 * p);
        EXPECT_NEAR(found.value, 5, 1e-6 * std::abs(c));
      }
}

TEST(Extrapolation, SequencesWithoutALimit) {
  std::vector<double> const h{1, 0.5, 0.25};
  auto const note = [&](std::vector<double> const& q) {
    auto const found = extrapolate(h, q);
    EXPECT_TRUE(std::isnan(found.order));
    EXPECT_EQ(std::isfinite(q[2]) ? found.value : 0, std::isfinite(q[2]) ? q[2] : 0);
    return found.note;
  };
  EXPECT_EQ(note({1, 2, 1.5}), "not monotone");
  EXPECT_EQ(note({1, 2, 4}), "does not converge on these meshes");
  EXPECT_EQ(note({1, 2, 3}), "does not converge on these meshes");
  EXPECT_EQ(note({3, 3, 3}), "does not change");
  EXPECT_EQ(note({0, 0, 0}), "does not change");
  EXPECT_EQ(note({1, 3, 3 + 1e-13}), "does not change");
  EXPECT_EQ(note({1e9, 1, 0.5}), "falls too fast for a power of h");
  EXPECT_EQ(note({1, 2, std::numeric_limits<double>::quiet_NaN()}), "a value is not finite");
  EXPECT_EQ(extrapolate(std::vector<double>{1, 0.5}, std::vector<double>{1, 2}).note, "takes three meshes");
}

TEST(Extrapolation, MeshesThatAreTooCoarseShow) {
  std::vector<double> const h{1, 0.5, 0.25, 0.125};
  auto q = powers(h, 1, 1, 2);
  q[0] -= 0.5;  // a term that only the coarsest mesh has
  auto const found = extrapolate(h, q);
  EXPECT_NEAR(found.order, 2, 1e-9);
  EXPECT_NE(found.note, "");
}

}  // namespace
}  // namespace poisson::assembly
