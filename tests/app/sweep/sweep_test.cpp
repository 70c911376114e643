#include "app/sweep/sweep.hpp"

#include <gtest/gtest.h>

namespace poisson::app {
namespace {

using Names = std::vector<std::string>;

TEST(DevicesForCases, ACountOrAList) {
  EXPECT_EQ(devices_for_cases("1", 4, nullptr), (Names{"0"}));
  EXPECT_EQ(devices_for_cases("3", 4, nullptr), (Names{"0", "1", "2"}));
  EXPECT_EQ(devices_for_cases("3,1", 4, nullptr), (Names{"3", "1"}));
}

TEST(DevicesForCases, NumbersAreThoseOfThisProcess) {
  EXPECT_EQ(devices_for_cases("2", 3, "5,GPU-a1b2,7"), (Names{"5", "GPU-a1b2"}));
  EXPECT_EQ(devices_for_cases("2,0", 3, "5,GPU-a1b2,7"), (Names{"7", "5"}));
}

TEST(DevicesForCases, WhatIsNotThereIsRefused) {
  for (char const* const wrong : {"0", "5", "-1", "0,4", "1,1", "a", "1,", ",1", "", "1;2", "2 "}) {
    EXPECT_THROW(static_cast<void>(devices_for_cases(wrong, 4, nullptr)), InputError) << wrong;
  }
}

constexpr char const* sweep_text = R"(
problem:
  boundary: [{ids: all, type: dirichlet, value: "0"}]
sweep:
  problem.element.order: [1, 2]
  problem.mesh.cells: [[2, 2, 2], [4, 4, 4], [8, 8, 8]]
)";

TEST(SweepCases, OneAloneIsThatOfAll) {
  for (char const* const more : {"", "output: {vtk: {enabled: false}}\n"}) {
    Configuration const configuration = parse_configuration(sweep_text + std::string(more), "sweep.yaml");
    auto const cases = sweep_cases(configuration);
    ASSERT_EQ(cases.size(), 6U);
    for (std::size_t i = 0; i < cases.size(); ++i)
      for (std::string const& name : {std::to_string(i), name_of_case(cases[i])}) {
        NumberedCase const one = sweep_case(configuration, name);
        EXPECT_EQ(one.number, i);
        EXPECT_EQ(one.of, 6U);
        EXPECT_EQ(one.sweep_case.fingerprint, cases[i].fingerprint);
        EXPECT_EQ(one.sweep_case.directory, cases[i].directory);
        EXPECT_EQ(resolved_yaml(one.sweep_case.configuration->config()), resolved_yaml(cases[i].configuration->config()));
      }
  }
}

TEST(ProgramOfCase, HasItsDeviceAndItsName) {
  Configuration const configuration = parse_configuration(sweep_text, "sweep.yaml", {"output.directory=out"});
  auto const cases = sweep_cases(configuration);
  SweepOptions options;
  options.run.path = "sweep.yaml";
  options.run.threads = 3;
  options.words = {"sweep.yaml", "--set=output.directory=out"};
  for (std::size_t place = 0; place < 5; ++place) {
    Program const program = program_of_case(cases[2], configuration, options, {"4", "GPU-a1b2"}, place);
    ASSERT_EQ(program.environment.size(), 1U);
    EXPECT_EQ(program.environment[0].first, "CUDA_VISIBLE_DEVICES");
    EXPECT_EQ(program.environment[0].second, place % 2 == 0 ? "4" : "GPU-a1b2");
  }
  Program const program = program_of_case(cases[2], configuration, options, {}, 0);
  EXPECT_TRUE(program.environment.empty());
  EXPECT_EQ(program.words, (Names{"poisson", "sweep", "sweep.yaml", "--set=output.directory=out", "--case", name_of_case(cases[2]),
                                  "--overwrite", "--threads=3"}));
  EXPECT_EQ(program.log, "out/" + cases[2].directory + "/log.txt");
  EXPECT_EQ(program.input, "");
  options.run.path = stdin_name;
  EXPECT_EQ(program_of_case(cases[2], configuration, options, {}, 0).input, sweep_text);
}

TEST(SweepCases, AMeshMayBeSweptByParameters) {
  // The last case is a rectilinear grid, the others are image data: all are written as vtu, also when one is made alone.
  Configuration const configuration = parse_configuration(R"(
parameters: {p: 1}
problem:
  element: {order: p}
  boundary: [{ids: all, type: dirichlet, value: "0"}]
sweep: {parameters.p: [1, 2]}
)",
                                                          "sweep.yaml");
  auto const cases = sweep_cases(configuration);
  EXPECT_EQ(cases[0].configuration->config().output.vtk_format, output::VtkFormat::vtu);
  EXPECT_EQ(sweep_case(configuration, "0").sweep_case.fingerprint, cases[0].fingerprint);
}

TEST(SweepCases, NamesThatAreNotOfThisSweep) {
  Configuration const configuration = parse_configuration(sweep_text, "sweep.yaml");
  std::string const name = name_of_case(sweep_cases(configuration)[1]);
  for (std::string const& wrong :
       {std::string("6"), std::string("-1"), std::string(""), std::string("1x"), std::string("99999999999999999999"),
        std::string("case_"), std::string("case_001_00000000"), name + "0", "case_002" + name.substr(8)}) {
    EXPECT_THROW(static_cast<void>(sweep_case(configuration, wrong)), InputError) << wrong;
  }
  Configuration const changed = configuration.with({"problem.source=2"});
  EXPECT_THROW(static_cast<void>(sweep_case(changed, name)), InputError);
  EXPECT_NO_THROW(static_cast<void>(sweep_case(changed, "1")));
}

}  // namespace
}  // namespace poisson::app
