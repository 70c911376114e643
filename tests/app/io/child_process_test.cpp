#include "app/io/child_process.hpp"

#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace poisson::app {
namespace {

namespace fs = std::filesystem;

class ChildProcessTest : public testing::Test {
protected:
  ~ChildProcessTest() override { fs::remove_all(folder_); }

  ChildProcess child(std::function<int()> body) const { return {folder_ / "log", {}, std::move(body)}; }
  /// Its exit code, or the negative of the signal that ended it.
  static int run(ChildProcess const& process) {
    int state = 0;
    EXPECT_GT(waitpid(start(process), &state, 0), 0);
    return WIFEXITED(state) ? WEXITSTATUS(state) : -WTERMSIG(state);
  }
  std::string log() const {
    std::ifstream in(folder_ / "log");
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }

  static fs::path make_folder() {
    std::string name = (fs::temp_directory_path() / "poisson-child-XXXXXX").string();
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    return name;
  }
  fs::path folder_ = make_folder();
};

std::string variable(char const* name) {
  char const* const value = std::getenv(name);
  return value ? value : "none";
}

TEST_F(ChildProcessTest, HasItsVariablesBesideThoseOfThisProcess) {
  setenv("POISSON_TEST_KEPT", "kept", 1);
  setenv("POISSON_TEST_CHANGED", "before", 1);
  ChildProcess process = child([] {
    std::cout << variable("POISSON_TEST_KEPT") << " " << variable("POISSON_TEST_CHANGED") << " " << variable("POISSON_TEST_NEW");
    return 0;
  });
  process.environment = {{"POISSON_TEST_CHANGED", "2,3"}, {"POISSON_TEST_NEW", "new"}};
  EXPECT_EQ(run(process), 0);
  EXPECT_EQ(log(), "kept 2,3 new");
  EXPECT_EQ(variable("POISSON_TEST_CHANGED"), "before");
}

TEST_F(ChildProcessTest, HasEmptyInputAndReplacesItsLog) {
  std::ofstream(folder_ / "log") << "of an earlier process, and longer than what comes now";
  std::cout << "";
  EXPECT_EQ(run(child([] {
              std::string word;
              std::cerr << ((std::cin >> word) ? "input" : "no input") << std::endl;
              return 7;
            })),
            7);
  EXPECT_EQ(log(), "no input\n");
}

TEST_F(ChildProcessTest, KeepsDescriptors) {
  int const file = open((folder_ / "file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  ASSERT_GE(file, 0);
  EXPECT_EQ(run(child([file] { return fcntl(file, F_GETFD) >= 0 ? 0 : 1; })), 0);
  close(file);
}

TEST_F(ChildProcessTest, GetsASignalFromItsFirstMomentOn) {
  auto* const before = std::signal(SIGINT, [](int) { request_interrupt(); });
  for (int i = 0; i < 50; ++i) {
    pid_t const process = start(child([] {
      for (int waited = 0; waited < 2000; ++waited) {
        if (interrupt_requested())
          return 130;
        usleep(5'000);
      }
      return 0;
    }));
    usleep(static_cast<useconds_t>(20 * i));
    kill(process, SIGINT);
    int state = 0;
    EXPECT_EQ(waitpid(process, &state, 0), process);
    EXPECT_TRUE(WIFEXITED(state) && WEXITSTATUS(state) == 130);
  }
  EXPECT_FALSE(interrupt_requested()) << "in this process";
  std::signal(SIGINT, before);
}

TEST_F(ChildProcessTest, ThatCrashesEndsAlone) {
  EXPECT_EQ(run(child([]() -> int {
              std::signal(SIGABRT, SIG_DFL);
              std::abort();
            })),
            -SIGABRT);
  ChildProcess process = child([] { return 0; });
  process.log = folder_ / "missing" / "log";
  EXPECT_THROW(static_cast<void>(start(process)), EnvironmentError);
}

TEST_F(ChildProcessTest, CountsForThisOne) {
  static int here = 0;
  EXPECT_EQ(counted_by_child([] { return ++here + 4; }), 5);
  EXPECT_EQ(here, 0);
}

}  // namespace
}  // namespace poisson::app
