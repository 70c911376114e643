#include "app/io/csv.hpp"

#include <cmath>
#include <gtest/gtest.h>
#include <vector>

namespace poisson::app {
namespace {

TEST(Csv, Text) {
  std::vector<double> const a{1, 0.1, 1e-300}, b{2, std::nan("")};
  EXPECT_EQ(csv_text("i", 0, {{"a", a}, {"b", b}}), "i,a,b\n0,1,2\n1,0.1,\n2,1e-300,\n");
  EXPECT_EQ(csv_field("plain"), "plain");
  EXPECT_EQ(csv_field("a,\"b\""), "\"a,\"\"b\"\"\"");
}

}  // namespace
}  // namespace poisson::app
