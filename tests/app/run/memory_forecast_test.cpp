#include "app/run/memory_forecast.hpp"

#include "app/config/config.hpp"
#include "app/config/problem.hpp"

#include <cstdint>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace poisson::app {
namespace {

MemoryForecast forecast_of_ball(Backend backend, std::vector<std::string> sets, bool with_files = false, int ranks = 1) {
  for (char const* const output : {"output.vtk.enabled=", "output.picture=", "output.report="})
    sets.push_back(output + std::string(with_files ? "true" : "false"));
  Configuration const configuration = parse_configuration("problem:\n  mesh: {generator: hyper_ball, refinements: 7}\n  source: 6\n"
                                                          "  boundary: [{ids: all, type: robin, alpha: 1, value: 0}]\n",
                                                          "case.yaml", sets);
  assembly::CheckedProblem const problem(problem_of(configuration.config()));
  return forecast_memory(configuration.config(), backend, problem, ranks);
}

TEST(MemoryForecast, HostHasNoNodesInsideOfLatticesUnlessItIsAsked) {
  constexpr std::int64_t nodes = 24LL * 7 * 129 * 129 * 129;
  // 0.6 GB + 0.1 byte an unknown, of which code and libraries take 0.3: they take more with sanitizers, and are left out here.
  constexpr std::int64_t most = 300'000'000 + 14'700'000 / 10;
  MemoryForecast const alone = forecast_of_ball(Backend::cuda, {});
  EXPECT_TRUE(alone.plan.leaves_nodes);
  EXPECT_EQ(alone.plan.into(), assembly::AssembledInto::half_cds_on_device_alone);
  EXPECT_LT(alone.host_peak().bytes - alone.program, most);
  MemoryForecast const of_order_2 = forecast_of_ball(Backend::cuda, {"problem.element.order=2", "problem.mesh.refinements=6"});
  EXPECT_EQ(of_order_2.plan.into(), assembly::AssembledInto::matrix_free_on_device_alone);
  EXPECT_LT(of_order_2.host_peak().bytes - of_order_2.program, most);
  for (auto const& set : {"problem.source=x", "problem.exact=1 - x*x", "problem.mesh.refinements=4", "output.surface=true"}) {
    MemoryForecast const asked = forecast_of_ball(Backend::cuda, {set});
    EXPECT_FALSE(asked.plan.leaves_nodes) << set;
  }
  EXPECT_FALSE(forecast_of_ball(Backend::cuda, {}, true).plan.leaves_nodes);
  EXPECT_GT(forecast_of_ball(Backend::cuda, {}, true).host_peak().bytes, alone.host_peak().bytes + nodes / 2);
  EXPECT_FALSE(forecast_of_ball(Backend::cpu, {}).plan.leaves_nodes);
}

TEST(MemoryForecast, TablesOfRimsAreOnARankOnce) {
  MemoryForecast const ball = forecast_of_ball(Backend::cuda, {"problem.mesh.refinements=8"}, false, 2);
  EXPECT_TRUE(ball.plan.leaves_nodes);
  // Of 56 pieces both ranks have 28, with 20 faces between them.
  constexpr std::int64_t n = 128, unknowns = 117'638'401;
  EXPECT_NEAR(static_cast<double>(ball.rows), unknowns / 2.0 + 10 * n * n, 4.0 * n * n);
  EXPECT_NEAR(static_cast<double>(ball.ghosts), 20.0 * n * n, 4.0 * n * n);
  // As above.
  EXPECT_LT(ball.host_peak().bytes - ball.program, 300'000'000 + unknowns / 10);
}

TEST(MemoryForecast, AutoTakesWhatFits) {
  auto const forecast = [](std::string const& materials, std::vector<std::string> const& sets, std::int64_t device_memory) {
    Configuration const configuration =
        parse_configuration("problem:\n  mesh: {cells: [200, 200, 200], regions: [{name: die, where: z < 0.3}]}\n"
                            "  boundary: [{ids: all, type: dirichlet, value: 0}]\n" +
                                materials,
                            "case.yaml", sets);
    assembly::CheckedProblem const problem(problem_of(configuration.config()));
    return forecast_that_fits(configuration.config(), Backend::cuda, problem, 1,
                              [&](MemoryForecast const& of) { return of.device_peak() <= device_memory; });
  };
  std::string const constants = "  coefficient: {die: 100, default: 1}\n", functions = "  coefficient: {die: 1 + x, default: 1}\n";
  constexpr std::int64_t much = std::int64_t{1} << 40, none = 1;
  MemoryForecast const planned = forecast(constants, {}, much);
  EXPECT_EQ(planned.plan.format, Format::half_cds);
  std::int64_t const too_little = planned.device_peak() - 1;
  MemoryForecast const lean = forecast(constants, {}, too_little);
  EXPECT_EQ(lean.plan.format, Format::matrix_free);
  EXPECT_EQ(lean.plan.route, Route::box);
  ASSERT_TRUE(lean.plan.choice.has_value());
  EXPECT_EQ(lean.plan.choice->format, Format::matrix_free);
  EXPECT_EQ(lean.plan.choice->note, "the others do not fit into memory");
  EXPECT_LT(lean.device_peak(), planned.device_peak() / 2);
  for (char const* const of_entries : {"solver.preconditioner=ic0", "solver.preconditioner=ilu0"})
    EXPECT_NE(forecast(constants, {of_entries}, too_little).plan.format, Format::matrix_free);
  // A format that is given stays, and where none fits the plan does.
  EXPECT_EQ(forecast(constants, {"matrix.format=half_cds"}, too_little).plan.format, Format::half_cds);
  EXPECT_EQ(forecast(constants, {}, none).plan.format, Format::half_cds);
  // Tables of cells take more than the diagonals.
  EXPECT_EQ(forecast(functions, {}, too_little).plan.format, Format::half_cds);
}

}  // namespace
}  // namespace poisson::app
