#include "app/run/run.hpp"

#include "app/config/config.hpp"
#include "gpu/core/interrupt.hpp"
#include "tests/gpu/thread_ranks.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>
#include <vector>

/// The whole of a run, from the configuration to the record, on ranks that are threads of this process: what sanitizers see of it.
namespace poisson::app {
namespace {

namespace fs = std::filesystem;

constexpr char const* box = R"yaml(
backend: cpu
problem:
  mesh: {cells: [9, 6, 7], extent: [1, 1, 2], boundaries: [{name: heater, where: "z < 1e-9 && x < 0.6"}]}
  coefficient: "1 + x * y"
  source: "sin(3 * x) + z"
  boundary:
    - {names: [heater], type: dirichlet, value: "x"}
    - {ids: [1], type: robin, alpha: "2", value: "1"}
    - {ids: all, type: neumann, value: "0"}
solver: {tolerance: 1.0e-11}
output:
  picture: false
  surface: true
  probes: [{name: tip, at: [0.3, 0.4, 1.1]}, {name: corner, at: [1, 1, 2]}]
  lines: [{name: axis, from: [0, 0, 0], to: [1, 1, 2], points: 11}]
  slices: [{name: cut, origin: [0.5, 0.5, 1], normal: [1, 0, 1]}]
  contours: [{name: levels, values: [0.2]}]
  quantities: {twice: "2 * max"}
)yaml";

constexpr char const* periodic = R"yaml(
backend: cpu
problem:
  mesh: {cells: [6, 8, 5]}
  source: "cos(2 * pi * x)"
  boundary:
    - {ids: [0, 1], type: periodic}
    - {ids: all, type: neumann, value: "0"}
solver: {tolerance: 1.0e-11}
output: {picture: false, vtk: {enabled: false}}
analysis: {svd: [{of: operator, max_dense: 1000}, {of: field, points: 9}]}
)yaml";

class RunOnThreadRanks : public ::testing::Test {
protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("poisson_run_test_" + std::to_string(::getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  [[nodiscard]] fs::path file(std::string const& text) const {
    std::ofstream(folder_ / "run.yaml") << text;
    return folder_ / "run.yaml";
  }

  /// The exit code and the record of a run by `ranks` threads; 0: by this thread, without ranks.
  [[nodiscard]] std::pair<ExitCode, nlohmann::json> run(std::string const& text, std::vector<std::string> settings,
                                                        int ranks) const {
    fs::path const out = folder_ / ("ranks_" + std::to_string(ranks));
    fs::remove_all(out);
    settings.push_back("output.directory=" + out.string());
    std::string const path = file(text).string();
    auto const run_by = [&](Team& team) {
      Configuration const configuration = load_configuration(path, settings);
      RunOptions options;
      options.path = path;
      options.threads = 1;
      Console console = Console::silent();
      InternalRunOptions internal;
      internal.team = team;
      return run_case(configuration, options, console, internal);
    };
    ExitCode code{};
    if (ranks == 0)
      code = run_by(alone_team());
    else
      testing::ThreadRanks::run(ranks, [&](Communicator& communicator) {
        Team team(communicator);
        ExitCode const mine = run_by(team);
        if (team.is_first())
          code = mine;
      });
    nlohmann::json record;
    std::ifstream(out / "result.json") >> record;
    return {code, record};
  }

  fs::path folder_;
};

void expect_close(nlohmann::json const& one, nlohmann::json const& other, std::string const& name) {
  ASSERT_EQ(one.type(), other.type()) << name;
  if (one.is_structured()) {
    ASSERT_EQ(one.size(), other.size()) << name;
    for (auto const& [key, value] : one.items())
      expect_close(value, one.is_object() ? other.at(key) : other.at(std::stoul(key)), name + "." + key);
  } else if (one.is_number_float() && name.find("balance") == std::string::npos) {
    EXPECT_NEAR(other.get<double>(), one.get<double>(), 1e-8 * std::max(1.0, std::abs(one.get<double>()))) << name;
  } else if (!one.is_number_float()) {
    EXPECT_EQ(one, other) << name;
  }
}

TEST_F(RunOnThreadRanks, GivesWhatOneRankGives) {
  struct Case {
    char const* text;
    std::vector<std::string> settings;
  };
  for (Case const& c : std::vector<Case>{{box, {}},
                                         {box, {"matrix.format=csr", "solver.preconditioner=ic0"}},
                                         {box, {"problem.element.order=2"}},
                                         {box, {"problem.element.order=2", "matrix.format=csr", "problem.coefficient=1"}},
                                         {box, {"output.vtk.format=vtu", "output.vtk.compression=none", "output.surface=false"}},
                                         {periodic, {}}}) {
    auto const [code, one] = run(c.text, c.settings, 0);
    ASSERT_EQ(code, exit_done) << one.dump(1);
    for (int const ranks : {1, 2, 3, 5}) {
      auto const [other_code, other] = run(c.text, c.settings, ranks);
      ASSERT_EQ(other_code, exit_done) << other.dump(1);
      std::string const name = (c.settings.empty() ? "" : c.settings.front()) + " on " + std::to_string(ranks) + " ranks";
      expect_close(one.at("quantities"), other.at("quantities"), name);
      expect_close(one.at("mesh"), other.at("mesh"), name);
      EXPECT_EQ(other.at("ranks"), ranks);
      for (std::size_t i = 0; i < one.value("analysis", nlohmann::json::array()).size(); ++i)
        EXPECT_NEAR(other.at("analysis")[i].at("largest").get<double>(), one.at("analysis")[i].at("largest").get<double>(), 1e-7);
    }
  }
}

TEST_F(RunOnThreadRanks, EndsTogetherWhereOneCannotGoOn) {
  auto const error_of = [&](std::string const& setting, int ranks) -> std::string {
    try {
      static_cast<void>(run(box, {setting}, ranks));
    } catch (InputError const& error) {
      return error.what();
    }
    return "";
  };
  for (auto const& [setting, text] :
       std::vector<std::pair<std::string, std::string>>{{"output.probes[0].at=[5, 0, 0]", "is outside the mesh"},
                                                        {"problem.source=1 / (x - 0.5)^2 / 0", "it must be finite there"}}) {
    std::string const one = error_of(setting, 1), three = error_of(setting, 3);
    EXPECT_NE(one.find(text), std::string::npos) << one;
    EXPECT_NE(three.find(text), std::string::npos) << three;
  }
}

TEST_F(RunOnThreadRanks, AnInterruptKeepsTheRecord) {
  for (int const ranks : {1, 3}) {
    detail::polls_until_interrupt = 60;
    auto const [code, record] = run(box, {"solver.tolerance=1e-14", "solver.preconditioner=none"}, ranks);
    detail::polls_until_interrupt = 0;
    clear_interrupt();
    EXPECT_NE(code, exit_done);
    EXPECT_EQ(record.at("status"), "interrupted");
  }
}

}  // namespace
}  // namespace poisson::app
