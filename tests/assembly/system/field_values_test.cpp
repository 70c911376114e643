/// Fields of a box that are made when they are asked for, against a plain formula and against fields that stand by themselves.
#include "assembly/discretization.hpp"
#include "tests/convergence/support.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <vector>

namespace poisson::assembly {
namespace {

using namespace test;

template <class T>
void expect_ranges(FieldValues<T> const& found, FieldValues<T> const& expected) {
  ASSERT_TRUE(found.fill());
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t const first : {0, 1, 2, 7, 10})
    for (std::size_t const n : {std::size_t{1}, std::size_t{2}, std::size_t{5}, std::size_t{8}, found.size() - first}) {
      std::vector<T> values(n);
      found.fill()(static_cast<std::int64_t>(first), static_cast<std::int64_t>(n), values.data());
      EXPECT_TRUE(std::ranges::equal(values, expected.all().subspan(first, n))) << first << ", " << n;
    }
  EXPECT_TRUE(std::ranges::equal(found, expected));
}

TEST(FieldValues, OfABoxAreMadeInRanges) {
  for (bool const varies : {false, true}) {
    ProblemSpec spec;
    spec.mesh = box(3, 4, 5, {1, 2, 3});
    spec.mesh.growth = {1, 1.5, 0.75};
    spec.coefficient = {{-1, {varies ? "1 + x" : "2", "3", "4"}}};
    spec.exact = "x*y";
    spec.boundary = {dirichlet("0")};
    Discretization const discretization(spec);
    std::vector<double> u(4 * 5 * 6);
    for (std::size_t i = 0; i < u.size(); ++i)
      u[i] = std::sin(static_cast<double>(i * i));
    FieldOptions options;
    options.gradient = true;
    SolutionFields const standing = discretization.fields(u, OutputNodes::unknowns, options);
    options.refer_to_u = true;
    SolutionFields const made = discretization.fields(u, OutputNodes::unknowns, options);

    auto const lattice = std::get<NodeLattice>(discretization.output_mesh(OutputNodes::unknowns));
    for (std::size_t cell = 0; cell < 3 * 4 * 5; ++cell) {
      std::array<std::size_t, 3> const index{cell % 3, cell / 3 % 4, cell / 12};
      for (std::size_t d = 0; d < 3; ++d) {
        double difference = 0;
        for (std::size_t corner = 0; corner < 8; ++corner) {
          std::size_t const x = index[0] + (corner & 1), y = index[1] + (corner >> 1 & 1), z = index[2] + (corner >> 2);
          difference += ((corner >> d & 1) != 0 ? 0.25 : -0.25) * u[(z * 5 + y) * 4 + x];
        }
        auto const& nodes = lattice.coordinates[d];
        double const low = nodes[index[d]], high = nodes[index[d] + 1], slope = difference / (high - low);
        double const k = varies && d == 0 ? 1 + (low + high) / 2 : 2 + static_cast<double>(d);
        EXPECT_NEAR(standing.gradient[3 * cell + d], slope, 1e-13 * std::abs(slope) + 1e-13);
        EXPECT_NEAR(standing.flux[3 * cell + d], -k * slope, 1e-13 * std::abs(k * slope) + 1e-13);
      }
    }
    EXPECT_EQ(made.u.all().data(), u.data());
    expect_ranges(made.error, standing.error);
    expect_ranges(made.material, standing.material);
    expect_ranges(made.flux, standing.flux);
    expect_ranges(made.gradient, standing.gradient);
    if (!varies)
      expect_ranges(made.coefficient, standing.coefficient);
    EXPECT_TRUE(std::ranges::equal(made.coefficient, standing.coefficient));

    EXPECT_FALSE(standing.flux.fill() || standing.error.fill() || standing.coefficient.fill());
    double const before = u[7], flux = standing.flux[0];
    std::ranges::fill(u, 99);
    EXPECT_EQ(standing.u[7], before);
    EXPECT_EQ(standing.flux[0], flux);
  }
}

}  // namespace
}  // namespace poisson::assembly
