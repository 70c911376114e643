#include "app/results/quantities.hpp"

#include "app/config/config.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

namespace poisson::app {
namespace {

RunConfig with_own(std::string const& quantities) {
  return parse_configuration("problem:\n  mesh: {cells: [4, 4, 4]}\n  boundary: [{ids: all, type: dirichlet, value: \"0\"}]\n"
                             "parameters: {c: 3}\noutput: {quantities: {" +
                                 quantities + "}}\n",
                             "case.yaml", {})
      .config();
}

/// Own quantities are made of others, of names that the record leaves out, and of own ones before.
TEST(OwnQuantities, HaveDerivatives) {
  RunConfig const config = with_own("a: 2*flux.4 + c, b: a^2 + c*mean*mean.3, d: 1 / none, e: 5*c");
  NamedQuantities quantities;
  quantities.table = {{"mean", 0.5}, {"flux.4", -2.0}, {"area.4", 1.0}, {"none", 0.0}, {"a", -1.0}};
  quantities.more = {{"mean.3", 4.0}};
  std::map<std::string, double> const of_b = derivatives_of(config, quantities, "b");
  ASSERT_EQ(of_b.size(), 3U);
  EXPECT_NEAR(of_b.at("flux.4"), 2 * 2 * (2 * -2.0 + 3), 1e-8);  // a = -1
  EXPECT_NEAR(of_b.at("mean"), 3 * 4, 1e-8);
  EXPECT_NEAR(of_b.at("mean.3"), 3 * 0.5, 1e-8);
  EXPECT_TRUE(derivatives_of(config, quantities, "e").empty());
  EXPECT_EQ(quantities.number("mean.3"), 4.0);
  EXPECT_EQ(quantities.number("mean.5"), std::nullopt);
}

}  // namespace
}  // namespace poisson::app
