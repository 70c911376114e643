#include "app/cli/commands.hpp"
#include "app/config/config.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

/// Every key that is declared, with values of the wrong type, kind, number and size: one message that names the key, no crash, no
/// hang. The program runs in a fork of this process, which takes a fifth of the time of a start.
namespace poisson::app {
namespace {

namespace fs = std::filesystem;

/// One entry in every list, so that the keys of its elements can be set.
constexpr char const* every_list = R"(
parameters: {scale: 1}
problem:
  mesh:
    cells: [3, 3, 3]
    extent: [1, 1, "scale"]
    boundaries: [{name: heater, where: "z > 0.9"}]
    regions: [{name: die, where: "z < 0.4"}]
  fields: [{name: measured, file: table.csv}]
  frames: [{name: bedding, axis: [0, 1, 0], angle: 30}]
  coefficient: {die: {frame: bedding, principal: ["1", "2", "3"]}, default: "1 + measured"}
  source: {die: "1", default: "0"}
  point_sources: [{at: [0.5, 0.5, 0.5], value: 1}]
  line_sources: [{from: [0.5, 0.5, 0], to: [0.5, 0.5, 1], value: "1"}]
  boundary:
    - {ids: [0], type: robin, alpha: "1", value: "0"}
    - {names: [heater], type: dirichlet, value: "1"}
    - {ids: all, type: neumann, value: "0"}
analysis: {svd: [{of: field, points: 8}]}
output:
  picture: false
  report: false
  probes: [{name: tip, at: [0.1, 0.2, 0.3]}]
  lines: [{name: axis, from: [0, 0, 0], to: [0, 0, 1], points: 5}]
  circles: [{name: rim, center: [0.5, 0.5, 0.5], normal: [0, 0, 1], radius: 0.4, points: 5}]
  planes: [{name: mid, origin: [0, 0, 0.5], first: [1, 0, 0], second: [0, 1, 0], points: [3, 3]}]
  slices: [{name: cut, origin: [0, 0, 0.5], normal: [1, 0, 1]}]
  contours: [{name: levels, values: [0.2, 0.4]}]
  quantities: {twice: "2 * max"}
)";

std::vector<std::string> const& values() {
  static std::vector<std::string> const all_values{"{}",
                                                   "{file: missing.vti}",
                                                   "[]",
                                                   "[1, 2]",
                                                   "[a, b, c]",
                                                   R"("")",
                                                   "null",
                                                   ".nan",
                                                   "1e300",
                                                   "1e400",
                                                   "9223372036854775808",
                                                   "-1",
                                                   "0",
                                                   "true",
                                                   "nosuchname",
                                                   R"("1/0")",
                                                   "[1e300, 1e300, 1e300]",
                                                   "[-1, .nan, 0]",
                                                   '"' + std::string(5000, 'x') + '"',
                                                   "[{}]"};
  return all_values;
}

/// Every key of a JSON Schema, those of elements of lists as list[0].key.
void add_keys_below(nlohmann::json const& schema, std::string const& path, std::vector<std::string>& keys) {
  if (schema.contains("properties")) {
    for (auto const& [name, inner] : schema["properties"].items())
      add_keys_below(inner, path.empty() ? name : path + "." + name, keys);
    if (!path.empty())
      keys.push_back(path);
    return;
  }
  keys.push_back(path);
  if (schema.contains("items") && schema["items"].contains("properties"))
    for (auto const& [name, inner] : schema["items"]["properties"].items())
      add_keys_below(inner, path + "[0]." + name, keys);
}

std::vector<std::string> declared_keys() {
  std::vector<std::string> keys;
  add_keys_below(nlohmann::json::parse(json_schema_text()), "", keys);
  // A sweep's keys are those of the configuration; output.directory may be any name.
  std::erase_if(keys,
                [](std::string const& key) { return key.starts_with("sweep") || key == "include" || key == "output.directory"; });
  return keys;
}

struct Ended {
  int code;  ///< the exit code; less than 0: the signal that ended it
  std::string errors;
};

std::size_t count(std::string const& text, std::string_view part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size()))
    ++n;
  return n;
}

/// Address space may grow by so much, which sanitizers take many times.
void limit_memory(rlim_t bytes) {
#ifndef __SANITIZE_ADDRESS__
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlim_t const limit = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + bytes;
  rlimit const both{limit, limit};
  setrlimit(RLIMIT_AS, &both);
#else
  static_cast<void>(bytes);
#endif
}

class AllKeys : public testing::Test {
protected:
  AllKeys() {
    std::ofstream(folder_ / "case.yaml") << every_list;
    std::ofstream table(folder_ / "table.csv");
    table << "x,y,z,value\n";
    for (int i = 0; i < 8; ++i)
      table << i / 4 << "," << i / 2 % 2 << "," << i % 2 << "," << i / 4 + i / 2 % 2 << "\n";
  }
  ~AllKeys() override { fs::remove_all(folder_); }

  /// The program with these arguments, in a process of its own that has one thread, 2 GiB and so many seconds.
  Ended poisson(std::vector<std::string> const& words, unsigned seconds) const {
    std::string const errors = folder_ / "errors";
    std::vector<char const*> arguments{"poisson"};
    for (std::string const& word : words)
      arguments.push_back(word.c_str());
    arguments.insert(arguments.end(), {"--threads", "1", "--backend", "cpu"});  // OpenMP's other threads are not there after a fork
    std::fflush(nullptr);
    pid_t const child = fork();
    if (child == 0) {
      int const nothing = open("/dev/null", O_RDWR), file = open(errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      bool const ready = chdir(folder_.c_str()) == 0 && dup2(nothing, STDIN_FILENO) >= 0 && dup2(nothing, STDOUT_FILENO) >= 0 &&
                         dup2(file, STDERR_FILENO) >= 0;
      limit_memory(rlim_t{2} << 30);
      alarm(seconds);
      int code = 99;
      try {
        code = ready ? run_command_line(static_cast<int>(arguments.size()), arguments.data()) : 98;
      } catch (...) {
        std::fputs("an exception leaves the program\n", stderr);
      }
      _exit(code);
    }
    int state = 0;
    EXPECT_EQ(waitpid(child, &state, 0), child);
    std::ifstream in(errors);
    return {WIFEXITED(state) ? WEXITSTATUS(state) : -WTERMSIG(state), {std::istreambuf_iterator<char>(in), {}}};
  }

  fs::path folder_ = [] {
    std::string name = (fs::temp_directory_path() / "poisson-keys-XXXXXX").string();
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    return fs::path(name);
  }();
};

class EveryKey : public AllKeys, public testing::WithParamInterface<std::string> {};

/// What an error may name: the key, or the element that it belongs to. A wrong value of keys that define what others use may show
/// at the keys that need it: another mesh has other boundaries, another name is not found.
std::vector<std::string> names_for(std::string const& key) {
  std::vector<std::string> names{key};
  if (key.find('[') != std::string::npos)
    names.push_back(key.substr(0, key.rfind('.')));
  for (char const* const defines : {"parameters", "problem.mesh", "problem.fields", "problem.frames"})
    if (key.starts_with(defines))
      names.insert(names.end(), {"problem.", "parameters."});
  return names;
}

TEST_P(EveryKey, IsNamedWhereItsValueIsWrong) {
  std::string const& key = GetParam();
  std::vector<std::string> const names = names_for(key);
  for (std::string const& value : values()) {
    std::string const setting = key + "=" + value;
    SCOPED_TRACE(setting.substr(0, 200));
    Ended done = poisson({"check", "case.yaml", "--set", setting}, 30);
    ASSERT_TRUE(done.code == 0 || done.code == 1 || done.code == 3) << done.code << "\n" << done.errors;
    if (done.code == 0) {
      std::string const soon = key == "solver.max_iterations" ? "solver.tolerance=0.1" : "solver.max_iterations=50";
      done = poisson({"run", "case.yaml", "--output", "out", "--overwrite", "--quiet", "--set", setting, "--set", soon}, 60);
      ASSERT_TRUE(done.code >= 0 && done.code <= 3) << done.code << "\n" << done.errors;
    }
    EXPECT_EQ(count(done.errors, "runtime error: "), 0) << done.errors;  // of a sanitizer
    if (done.code != 1 && done.code != 3)
      continue;
    // What only the solution tells, such as a contour that it does not have, may be said before.
    EXPECT_TRUE(done.errors.starts_with("poisson: error: ") || done.errors.starts_with("poisson: warning: ")) << done.errors;
    EXPECT_EQ(count(done.errors, "poisson: error: "), 1) << done.errors;
    EXPECT_EQ(count(done.errors, "terminate") + count(done.errors, "Assertion"), 0) << done.errors;
    EXPECT_TRUE(std::any_of(names.begin(), names.end(), [&](auto const& name) { return count(done.errors, name) > 0; }))
        << done.errors;
    EXPECT_LT(done.errors.size(), 3000) << done.errors;
  }
}

std::string test_name(testing::TestParamInfo<std::string> const& info) {
  std::string name = info.param;
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Declared, EveryKey, testing::ValuesIn(declared_keys()), test_name);

/// All keys at once must be good: else the test above would find errors everywhere.
TEST_F(AllKeys, AtOnceAreGood) {
  Ended const done = poisson({"run", "case.yaml", "--output", "out", "--quiet"}, 60);
  EXPECT_EQ(done.code, 0) << done.errors;
}

}  // namespace
}  // namespace poisson::app
