#include "app/results/output.hpp"

#include "app/config/config.hpp"
#include "output/vtk/vtk_files.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

namespace poisson::app {
namespace {

using Strings = std::vector<std::string>;

RunConfig config_of(Strings sets) {
  sets.emplace_back("output.picture=false");
  return parse_configuration("problem:\n  mesh: {cells: [4, 4, 4]}\n  boundary: [{ids: all, type: dirichlet, value: \"0\"}]\n",
                             "case.yaml", sets)
      .config();
}

Strings names_of(Strings const& sets, int ranks) {
  RunConfig const config = config_of(sets);
  Strings names = Outputs(config, ranks, true).names();
  std::sort(names.begin(), names.end());
  return names;
}

TEST(Outputs, TellAllNamesBeforeAnythingIsComputed) {
  Strings const sets{"output.surface=true", "output.slices=[{name: cut, origin: [0.5, 0.5, 0.5]}]",
                     "output.contours=[{name: level, values: [0.1]}]", "output.lines=[{name: a, from: [0, 0, 0], to: [1, 1, 1]}]",
                     "output.planes=[{name: b, origin: [0, 0, 0.5], first: [1, 0, 0], second: [0, 1, 0]}]"};
  EXPECT_EQ(names_of(sets, 1), (Strings{"contour_level.vtp", "line_a.csv", "plane_b.csv", "plane_b.vts", "slice_cut.vtp",
                                        "solution.mtx", "solution.pvd", "solution.vti", "surface.vtp"}));
  EXPECT_EQ(names_of({}, 3), (Strings{"solution.mtx", "solution.pvd", "solution.pvti", "solution.pvtr", "solution.pvtu",
                                      "solution.vti", "solution_*"}));
  EXPECT_EQ(names_of({"output.vtk.format=hdf"}, 3), (Strings{"solution.hdf", "solution.mtx"}));
}

TEST(Outputs, NumberTheirPointsAfterThoseOfProbes) {
  RunConfig const config =
      config_of({"output.planes=[{name: b, origin: [0, 0, 0.5], first: [1, 0, 0], second: [0, 1, 0], points: [3, 4]}]",
                 "output.probes=[{name: p, at: [0.5, 0.5, 0.5]}]",
                 "output.circles=[{name: c, center: [0.5, 0.5, 0.5], radius: 0.25, points: 5}]",
                 "output.lines=[{name: a, from: [0, 0, 0], to: [1, 0, 0], points: 11}]"});
  Outputs const outputs(config, 1);
  PointSets const& sets = outputs.point_sets();
  auto const points = requested_points(config, sets);
  ASSERT_EQ(sets.size(), 3u);
  EXPECT_EQ(points.size(), 1u + 11 + 5 + 12);
  for (auto const& [set, key, first] : {std::tuple(sets[0], "output.lines[0]", 1u), std::tuple(sets[1], "output.circles[0]", 12u),
                                        std::tuple(sets[2], "output.planes[0]", 17u)}) {
    EXPECT_EQ(set->key, key);
    ASSERT_EQ(set->first, first);
    EXPECT_EQ(points[first], set->points.front());
  }
}

TEST(Outputs, ForecastWhatIsThereAtATime) {
  auto const bytes = [](Strings const& sets, int ranks) {
    RunConfig const config = config_of(sets);
    return Outputs(config, ranks).bytes({1000, 700, 700, 300, 50000, 8000});
  };
  auto const writer = [](std::int64_t largest) {
    return output::writer_bytes(output::VtkFormat::image, output::VtkOptions().compression, largest);
  };
  EXPECT_EQ(bytes({"output.vtk.enabled=false"}, 1), 0);
  EXPECT_EQ(bytes({}, 1), 50000 + writer(8000));
  EXPECT_EQ(bytes({"output.vtk.fields=[u, flux_points]"}, 1), 50000 + 24000 + writer(24000));
  // The surface is made when fields are gone. On several ranks it is there twice while it is gathered, without the cells near it.
  std::int64_t const surface = bytes({"output.vtk.enabled=false", "output.surface=true"}, 1);
  EXPECT_GT(surface, 300 * 100);
  std::int64_t const near = 300 * (8 * 4 + 16 + 2 * 36) + 1700 / 8;
  EXPECT_EQ(bytes({"output.vtk.enabled=false", "output.surface=true"}, 3), 2 * (surface - near));
  EXPECT_EQ(bytes({"output.surface=true"}, 1), std::max(surface, bytes({}, 1)));
}

}  // namespace
}  // namespace poisson::app
