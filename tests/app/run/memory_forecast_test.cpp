#include "app/run/memory_forecast.hpp"

#include "app/config/config.hpp"
#include "app/config/problem.hpp"

#include <cstdint>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace poisson::app {
namespace {

MemoryForecast forecast_of_ball(Backend backend, std::vector<std::string> sets, bool with_files = false) {
  for (char const* const output : {"output.vtk.enabled=", "output.picture=", "output.report="})
    sets.push_back(output + std::string(with_files ? "true" : "false"));
  Configuration const configuration = parse_configuration("problem:\n  mesh: {generator: hyper_ball, refinements: 7}\n  source: 6\n"
                                                          "  boundary: [{ids: all, type: robin, alpha: 1, value: 0}]\n",
                                                          "case.yaml", sets);
  assembly::CheckedProblem const problem(problem_of(configuration.config()));
  return forecast_memory(configuration.config(), backend, problem, 1);
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

}  // namespace
}  // namespace poisson::app
