#include "app/io/program.hpp"

#include "gpu/core/error.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

namespace poisson::app {
namespace {

namespace fs = std::filesystem;

class ProgramTest : public testing::Test {
protected:
  ~ProgramTest() override { fs::remove_all(folder_); }

  Program shell(std::string const& command) const {
    Program program;
    program.file = "/bin/sh";
    program.words = {"sh", "-c", command};
    program.log = folder_ / "log";
    return program;
  }
  /// Runs the program and returns its exit code.
  static int run(Program const& program) {
    int state = 0;
    EXPECT_GT(waitpid(start(program), &state, 0), 0);
    return WIFEXITED(state) ? WEXITSTATUS(state) : -WTERMSIG(state);
  }
  std::string log() const {
    std::ifstream in(folder_ / "log");
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }

  static fs::path make_folder() {
    std::string name = (fs::temp_directory_path() / "poisson-program-XXXXXX").string();
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    return name;
  }
  fs::path folder_ = make_folder();
};

TEST_F(ProgramTest, HasItsVariablesBesideThoseOfThisProcess) {
  setenv("POISSON_TEST_KEPT", "kept", 1);
  setenv("POISSON_TEST_CHANGED", "before", 1);
  Program program = shell("echo $POISSON_TEST_KEPT $POISSON_TEST_CHANGED $POISSON_TEST_NEW; env | grep -c POISSON_TEST_CHANGED");
  program.environment = {{"POISSON_TEST_CHANGED", "2,3"}, {"POISSON_TEST_NEW", "new"}};
  EXPECT_EQ(run(program), 0);
  EXPECT_EQ(log(), "kept 2,3 new\n1\n");
  EXPECT_STREQ(std::getenv("POISSON_TEST_CHANGED"), "before");
}

TEST_F(ProgramTest, ReadsItsInputAndReplacesItsLog) {
  std::ofstream(folder_ / "log") << "of an earlier program, and longer than what comes now";
  Program program = shell("cat; echo error >&2; exit 7");
  EXPECT_EQ(run(program), 7);
  EXPECT_EQ(log(), "error\n");
  program.input = std::string(200'000, 'x') + "\n";  // more than a pipe holds
  EXPECT_EQ(run(program), 7);
  EXPECT_EQ(log(), program.input + "error\n");
}

TEST_F(ProgramTest, KeepsTheDescriptorThatItIsGiven) {
  std::ofstream(folder_ / "file") << "text";
  int const file = open((folder_ / "file").c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(file, 0);
  Program program = shell("test -e /proc/self/fd/" + std::to_string(file));
  EXPECT_EQ(run(program), 1);
  program.kept_descriptor = file;
  EXPECT_EQ(run(program), 0);
  close(file);
}

TEST_F(ProgramTest, GetsASignalFromItsFirstMomentOn) {
  auto* const before = std::signal(SIGINT, [](int) {});  // which must not take the signal in the new process
  for (int i = 0; i < 50; ++i) {
    pid_t const process = start(shell("exec sleep 60"));
    usleep(static_cast<useconds_t>(20 * i));
    kill(process, SIGINT);
    int state = 0, waited = 0;
    for (; waitpid(process, &state, WNOHANG) == 0 && waited < 1000; ++waited)
      usleep(10'000);
    EXPECT_LT(waited, 1000);
    EXPECT_TRUE(WIFSIGNALED(state) && WTERMSIG(state) == SIGINT);
    if (waited == 1000) {
      kill(process, SIGKILL);
      waitpid(process, &state, 0);
      break;
    }
  }
  std::signal(SIGINT, before);
}

TEST_F(ProgramTest, ThatIsNotThere) {
  Program program = shell("");
  program.file = (folder_ / "missing").string();
  EXPECT_EQ(run(program), 127);
  program.log = folder_ / "missing" / "log";
  EXPECT_THROW(static_cast<void>(start(program)), EnvironmentError);
}

}  // namespace
}  // namespace poisson::app
