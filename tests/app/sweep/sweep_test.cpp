#include "app/sweep/greedy_sweep.hpp"
#include "app/sweep/sweep.hpp"
#include "app/sweep/waiting_cases.hpp"

#include <gtest/gtest.h>

#include <cmath>

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

TEST(Greedy, TheLargestEstimateIsNextUntilAllAreSmall) {
  double const none = std::nan("");
  GreedySpec const spec{1e-3, 4};
  auto const step = [&](std::vector<double> const& estimates, std::size_t n_tried) {
    return greedy_step(estimates, n_tried, spec);
  };
  EXPECT_EQ(step({0.1, none, 0.3, 0.2}, 1).next, 2U);
  EXPECT_EQ(step({0.1, none, 0.3, 0.2}, 1).largest, 0.3);
  EXPECT_EQ(step({0.1, 0.3 - 1e-9, 0.3, 0.2}, 1).next, 1U) << "equal but for rounding";
  EXPECT_EQ(step({0.1, 0.2, std::numeric_limits<double>::infinity()}, 1).next, 2U);
  EXPECT_EQ(step({1e-3, none, 1e-4}, 2).end, "tolerance");
  EXPECT_FALSE(step({1e-3, none, 1e-4}, 2).next);
  EXPECT_EQ(step({1e-4, none, 1e-5}, 1).next, 0U) << "nothing has been checked";
  EXPECT_EQ(step({0.1, none}, 4).end, "max_cases");
  EXPECT_EQ(step({1e-3, none}, 4).end, "tolerance");
  EXPECT_EQ(step({none, none}, 2).end, "no candidates");
  EXPECT_EQ(greedy_step(std::vector<double>{1e-4, none}, 1, {1e-3, 1}).end, "max_cases");
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

/// The values of the axes in all cases, as "a b, a b".
std::string cases_of(std::string const& sweep) {
  Configuration const configuration = parse_configuration("parameters: {k: 1, twice: 2 * k}\nproblem: {coefficient: k, source: "
                                                          "twice, boundary: [{ids: all, type: dirichlet, value: 0}]}\n"
                                                          "sweep: " +
                                                              sweep + "\n",
                                                          "sweep.yaml");
  std::string text;
  for (SweepCase const& c : sweep_cases(configuration)) {
    text += text.empty() ? "" : ", ";
    for (std::size_t a = 0; a < c.values.size(); ++a)
      text += (a > 0 ? " " : "") + c.values[a];
  }
  return text;
}

TEST(SweepCases, RangesInPlaceOfLists) {
  EXPECT_EQ(cases_of("{parameters.k: {from: 1, to: 2, count: 5}}"), "1, 1.25, 1.5, 1.75, 2");
  EXPECT_EQ(cases_of("{parameters.k: {from: 0.1, to: 0.4, count: 4, scale: linear}}"), "0.1, 0.2, 0.3, 0.4");
  EXPECT_EQ(cases_of("{parameters.k: {from: 1, to: 1000, count: 4, scale: log}}"), "1, 10, 100, 1000");
  EXPECT_EQ(cases_of("{parameters.k: {from: 3, to: 1, count: 3}}"), "3, 2, 1");
  EXPECT_EQ(cases_of("{problem.element.order: {powers_of_two: [1, 4]}}"), "1, 2, 4");
  EXPECT_EQ(cases_of("{problem.mesh.cells: {powers_of_two: [8, 16]}}"), "[8, 8, 8], [16, 16, 16]");
  EXPECT_EQ(cases_of("{problem.mesh.cells: [8, [8, 8, 16], 16]}"), "[8, 8, 8], [8, 8, 16], [16, 16, 16]");
  for (char const* const wrong : {"{parameters.k: {from: 1, to: 2}}", "{parameters.k: {from: 0, to: 2, count: 3, scale: log}}",
                                  "{parameters.k: {powers_of_two: [8, 4]}}", "{parameters.k: {powers_of_two: [3, 4]}}",
                                  "{parameters.k: {from: 1, to: 2, cuont: 3}}", "{parameters.k: {from: 1, to: 2, count: 1}}",
                                  "{parameters.k: 3}", "{parameters.k: []}", "{parameters.k: {from: 1, to: 2, count: 100001}}"})
    EXPECT_THROW(static_cast<void>(cases_of(wrong)), InputError) << wrong;
}

TEST(SweepCases, GroupsOfAxes) {
  EXPECT_EQ(cases_of("{problem.element.order: [1, 2], zip: {parameters.k: [3, 4], solver.tolerance: [1e-6, 1e-7]}}"),
            "1 3 1e-6, 1 4 1e-7, 2 3 1e-6, 2 4 1e-7");
  EXPECT_EQ(
      cases_of("{mode: zip, parameters.k: [3, 4, 5, 6], product: {problem.element.order: [1, 2], solver.max_iterations: [7, 8]}}"),
      "3 1 7, 4 1 8, 5 2 7, 6 2 8");
  EXPECT_EQ(cases_of("{zip: [{problem.element.order: [1, 2], parameters.k: [3, 4]}, {solver.tolerance: [1e-6, 1e-7], "
                     "solver.max_iterations: [7, 8]}]}"),
            "1 3 1e-6 7, 1 3 1e-7 8, 2 4 1e-6 7, 2 4 1e-7 8");
  for (char const* const wrong : {"{zip: {parameters.k: [1, 2], problem.element.order: [1]}}", "{zip: {}}", "{zip: []}",
                                  "{zip: [1]}", "{parameters.k: [1, 2], zip: {parameters.k: [1, 2]}}", "{zip: {mode: zip}}"})
    EXPECT_THROW(static_cast<void>(cases_of(wrong)), InputError) << wrong;
}

TEST(SweepCases, WhenLeavesCasesOut) {
  EXPECT_EQ(cases_of("{parameters.k: [1, 2, 3], problem.element.order: [1, 2], when: k > order}"), "2 1, 3 1, 3 2");
  EXPECT_EQ(cases_of("{parameters.k: [1, 2, 3], when: twice == 4}"), "2");
  EXPECT_EQ(cases_of("{problem.mesh.cells: [[4, 4, 4], [8, 8, 8]], when: cells > 4}"), "[8, 8, 8]");
  for (char const* const wrong : {"{parameters.k: [1, 2], when: k > 2}", "{parameters.k: [1, 2], when: kk > 1}",
                                  "{parameters.k: [1, 2], when: x > 1}", "{parameters.k: [1, 2], when: k >}"})
    EXPECT_THROW(static_cast<void>(cases_of(wrong)), InputError) << wrong;
}

TEST(SweepCases, SamplesAreAxesInAZip) {
  std::string const sample = "sample: {count: 4, seed: 1, parameters: {k: {uniform: [1, 2]}, problem.source: {normal: [0, 1]}}}";
  Configuration const configuration =
      parse_configuration("parameters: {k: 1}\nproblem: {coefficient: k, boundary: [{ids: all, type: "
                          "dirichlet, value: 0}]}\nsweep: {" +
                              sample + ", problem.element.order: [1, 2]}\n",
                          "sweep.yaml");
  auto const cases = sweep_cases(configuration);
  ASSERT_EQ(cases.size(), 8U);
  for (std::size_t i = 0; i < 8; ++i) {
    ASSERT_TRUE(cases[i].configuration) << cases[i].error;
    EXPECT_EQ(cases[i].sample, i / 2);
    EXPECT_EQ(cases[i].values[2], i % 2 == 0 ? "1" : "2");
  }
  EXPECT_EQ(cases[6].configuration->config().sweep.axes.size(), 3U);
  EXPECT_EQ(*cases[6].configuration->config().sweep.axes[0].of_case, cases[6].values[0]);
  std::string const resolved = resolved_yaml(configuration.config());
  EXPECT_EQ(resolved_yaml(parse_configuration(resolved, "sweep.yaml").config()), resolved);
  auto const more = sweep_cases(configuration.with({"sweep.sample.count=6"}));
  ASSERT_EQ(more.size(), 12U);
  for (std::size_t i = 0; i < 8; ++i)
    EXPECT_EQ(more[i].fingerprint, cases[i].fingerprint) << "done already";
  for (char const* const wrong :
       {"{sample: {parameters: {k: {uniform: [1, 2]}}}}", "{sample: {count: 2}}", "{sample: {count: 2, parameters: {}}}",
        "{sample: {count: 2, parameters: {q: {uniform: [1, 2]}}}}", "{sample: {count: 2, parameters: {k: {uniform: [2, 1]}}}}",
        "{sample: {count: 2, parameters: {k: {normal: [1, 0]}}}}", "{sample: {count: 2, parameters: {k: {loguniform: [0, 1]}}}}",
        "{sample: {count: 2, parameters: {k: {unifrom: [1, 2]}}}}",
        "{sample: {count: 2, method: halton, parameters: {k: {uniform: [1, 2]}}}}",
        "{sample: {count: 2, parameters: {k: {uniform: [1, 2]}}}, parameters.k: [1, 2]}",
        "{sample: {count: 90000, indices: true, parameters: {k: {uniform: [1, 2]}}}}"})
    EXPECT_THROW(static_cast<void>(cases_of(wrong)), InputError) << wrong;
}

/// A sweep whose cases find what a test says.
struct Study {
  explicit Study(std::string const& sweep)
      : configuration(parse_configuration("problem: {boundary: [{ids: all, type: dirichlet, value: 0}]}\nsweep: {" + sweep + "}\n",
                                          "sweep.yaml")),
        cases(sweep_cases(configuration)) {}

  [[nodiscard]] SweepSpec const& sweep() const { return configuration.config().sweep; }
  /// q = 2 + c h^p, where h is 1 / cells.
  void solve(std::size_t i, double c, double p) {
    double const h = 1 / static_cast<double>(cases[i].configuration->config().problem.mesh.cells[0]);
    cases[i].exit_code = 0;
    cases[i].result = {{"status", "converged"}, {"quantities", {{"q", 2 + c * std::pow(h, p)}, {"vector", {1, 2, 3}}}}};
  }

  Configuration configuration;
  std::vector<SweepCase> cases;
};
constexpr char const* until_text = "problem.mesh.cells: [16, 4, 8, 32, 64], problem.element.order: [1, 2], until: {quantity: q, "
                                   "relative: 1e-3}";

TEST(SweepUntil, AStudyEndsWhenItsErrorIsSmall) {
  Study study(until_text);
  WaitingCases waiting(study.cases, study.sweep());
  waiting.largest_first();  // without effect
  std::vector<std::size_t> order;
  EXPECT_EQ(waiting.size(), 2U) << "one of each study";
  while (!waiting.empty()) {
    order.push_back(waiting.take());
    bool const first_order = order.back() % 2 == 0;
    study.solve(order.back(), first_order ? 1 : 5, first_order ? 2 : 4);
    waiting.ended(order.back());
  }
  // Order 1: errors h^2 are 1/256 of 4^3 cells and 1/1024 of 16^3, 4.9e-4 of 2; with three meshes the last change, 0.0117, counts,
  // so that 32^3 with 9.8e-4 / 2 is done. Order 2: changes of 5 h^4 are 0.018 and 0.00114, 5.7e-4 of 2: three are enough.
  EXPECT_EQ(order, (std::vector<std::size_t>{2, 4, 0, 6, 3, 5, 1}));
  for (std::size_t const i : {8U, 7U, 9U}) {
    EXPECT_TRUE(study.cases[i].left_out) << i;
    EXPECT_EQ(study.cases[i].exit_code, 0);
  }
  auto const studies = studies_until(study.cases, study.sweep());
  StudyProgress const progress = progress_of(studies[0], study.cases, *study.sweep().until);
  EXPECT_TRUE(progress.reached);
  EXPECT_EQ(progress.meshes, 4U);
  EXPECT_NEAR(progress.value, 2, 1e-9);
  EXPECT_NEAR(progress.error, 1. / 1024, 1e-9);
  auto const json = until_json(study.cases, study.sweep());
  EXPECT_EQ(json["studies"][1]["cases"], (std::vector<int>{3, 5, 1}));
  EXPECT_EQ(json["studies"][1]["left_out"], (std::vector<int>{7, 9}));
  EXPECT_EQ(json["studies"][1]["parameters"]["problem.element.order"], "2");
  auto const table = until_table(study.cases, study.sweep());
  EXPECT_EQ(table[1].back(), "accurate enough, 1 finer left out");
}

TEST(SweepUntil, FailuresAndOddOrdersDoNotEndIt) {
  Study study("problem.mesh.cells: [4, 8, 16, 32], until: {quantity: q, relative: 1e-3}");
  WaitingCases waiting(study.cases, study.sweep());
  for (double const q : {1.0, 3.0, 2.0})  // not monotone
    if (std::size_t const i = waiting.take(); i < 3) {
      study.solve(i, 0, 1);
      study.cases[i].result["quantities"]["q"] = q;
      waiting.ended(i);
    }
  ASSERT_EQ(waiting.take(), 3U);
  study.cases[3].exit_code = 3;
  study.cases[3].error = "out of memory";
  waiting.ended(3);
  EXPECT_TRUE(waiting.empty());
  auto const table = until_table(study.cases, study.sweep());
  EXPECT_EQ(table[1].back(), "no finer mesh; not reached: not monotone");
  for (SweepCase const& c : study.cases)
    EXPECT_FALSE(c.left_out);
}

TEST(SweepUntil, WhatIsThereCountsAndIsKept) {
  Study study("problem.mesh.cells: [4, 8, 16, 32, 64], until: {quantity: q, relative: 1e-2}");
  for (std::size_t const i : {0U, 1U, 2U, 4U})
    study.solve(i, 1, 3);
  WaitingCases const waiting(study.cases, study.sweep());
  EXPECT_TRUE(waiting.empty());
  EXPECT_TRUE(study.cases[3].left_out);
  EXPECT_FALSE(study.cases[4].left_out);
  EXPECT_EQ(mesh_convergence(study.cases, study.sweep().axes)[0].study.cases, (std::vector<std::size_t>{0, 1, 2, 4}));
}

TEST(SweepUntil, WrongOnesAreRefused) {
  for (char const* const wrong :
       {"parameters.k: [1, 2], until: {quantity: max, relative: 1e-3}", "problem.mesh.cells: [4, 8, 16], until: max",
        "problem.mesh.cells: [4, 8, 16], until: {quantity: max}", "problem.mesh.cells: [4, 8, 16], until: {relative: 1e-3}",
        "problem.mesh.cells: [4, 8, 16], until: {quantity: max, relative: 0}",
        "problem.mesh.cells: [4, 8, 16], until: {quantity: max, relative: 1}",
        "problem.mesh.cells: [4, 8, 16], until: {quantity: max, relatve: 1e-3}",
        "problem.mesh.cells: [4, 8, 16], until: {quantity: max, relative: 1e-3}, sample: {count: 2, parameters: {problem.source: "
        "{uniform: [1, 2]}}}"})
    EXPECT_THROW(static_cast<void>(Study(wrong)), InputError) << wrong;
  std::string const until = ", until: {quantity: q, relative: 1e-3}";
  for (char const* const wrong :
       {"problem.mesh.cells: [4, 8]", "problem.mesh.cells: [[4, 4, 4], [8, 4, 4], [16, 4, 4]]", "problem.mesh.cells: [4, 8, 8, 16]",
        "mode: zip, problem.mesh.cells: [4, 8, 16], solver.tolerance: [1e-6, 1e-7, 1e-8]"}) {
    Study study(wrong + until);
    EXPECT_THROW(static_cast<void>(WaitingCases(study.cases, study.sweep())), InputError) << wrong;
  }
  for (char const* const unknown : {"Q1", "vectors"}) {
    Study study(std::string("problem.mesh.cells: [4, 8, 16], until: {relative: 1e-3, quantity: ") + unknown + "}");
    WaitingCases waiting(study.cases, study.sweep());
    std::size_t const i = waiting.take();
    study.solve(i, 1, 1);
    EXPECT_THROW(waiting.ended(i), InputError);
  }
}

TEST(WaitingCases, TheLargestMayBeFirst) {
  Study study("problem.mesh.cells: [8, 4, 16], problem.element.order: [1, 2]");
  study.solve(4, 1, 1);
  for (bool const sorted : {false, true}) {
    WaitingCases waiting(study.cases, study.sweep());
    if (sorted)
      waiting.largest_first();
    std::vector<std::size_t> order;
    while (!waiting.empty())
      order.push_back(waiting.take());
    EXPECT_EQ(order, sorted ? (std::vector<std::size_t>{5, 1, 0, 3, 2}) : (std::vector<std::size_t>{0, 1, 2, 3, 5}));
  }
}

}  // namespace
}  // namespace poisson::app
