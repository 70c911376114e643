#include "app/sweep/multi_process_service.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace poisson::app {
namespace {

namespace fs = std::filesystem;

/// A stand-in for NVIDIA's program, which writes down what it is told. It cannot serve devices; those are counted by the tests.
class MultiProcessServiceTest : public ::testing::Test {
protected:
  MultiProcessServiceTest() {
    std::string name = (fs::temp_directory_path() / "poisson-service-XXXXXX").string();
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    fs::create_directory(folder_ / "tmp");
    setenv("TMPDIR", (folder_ / "tmp").c_str(), 1);
    setenv("PATH", (folder_.string() + ":" + path_).c_str(), 1);
    unsetenv("CUDA_MPS_PIPE_DIRECTORY");
  }
  ~MultiProcessServiceTest() override {
    unsetenv("TMPDIR");
    unsetenv("CUDA_MPS_PIPE_DIRECTORY");
    setenv("PATH", path_.c_str(), 1);
    fs::remove_all(folder_);
  }
  void install(std::string const& when_started) const {
    fs::path const program = folder_ / "nvidia-cuda-mps-control";
    std::ofstream(program) << "#!/bin/sh\nlog=" << (folder_ / "log").string()
                           << "\nif [ \"$1\" != -f ]; then read command; echo \"$command\" >> $log; "
                              "touch $CUDA_MPS_PIPE_DIRECTORY/quit; exit; fi\n"
                           << when_started;
    fs::permissions(program, fs::perms::owner_all);
  }
  void install() const {
    install("echo started ${CUDA_VISIBLE_DEVICES:-all} >> $log; touch $CUDA_MPS_PIPE_DIRECTORY/control\n"
            "while [ ! -e $CUDA_MPS_PIPE_DIRECTORY/quit ]; do sleep 0.01; done; echo ended >> $log\n");
  }
  [[nodiscard]] std::string log() const {
    std::ifstream in(folder_ / "log");
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }
  /// Waits for the keeper: whether its folder goes.
  [[nodiscard]] bool leaves_nothing() const {
    for (int i = 0; i < 1000 && !fs::is_empty(folder_ / "tmp"); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return fs::is_empty(folder_ / "tmp");
  }

  std::string path_ = std::getenv("PATH");
  fs::path folder_;
};

TEST_F(MultiProcessServiceTest, IsThereUntilItsEnd) {
  install();
  setenv("CUDA_VISIBLE_DEVICES", "3", 1);  // by which the jobs go, but not the service
  {
    MultiProcessService const service([] { return std::getenv("CUDA_MPS_PIPE_DIRECTORY") != nullptr ? 1 : 0; });
    EXPECT_EQ(service.obstacle(), "");
    ASSERT_EQ(service.environment().size(), 2);
    EXPECT_EQ(service.environment()[0].first, "CUDA_MPS_PIPE_DIRECTORY");
    EXPECT_TRUE(fs::exists(fs::path(service.environment()[0].second) / "control"));
    EXPECT_EQ(log(), "started all\n");
    EXPECT_EQ(std::getenv("CUDA_MPS_PIPE_DIRECTORY"), nullptr);  // of the jobs alone
  }
  unsetenv("CUDA_VISIBLE_DEVICES");
  EXPECT_TRUE(leaves_nothing());
  EXPECT_EQ(log(), "started all\nquit -t 1\nended\n");
}

TEST_F(MultiProcessServiceTest, EndsWithAProcessThatIsKilled) {
  install();
  pid_t const process = fork();
  if (process == 0) {
    MultiProcessService const service([] { return 1; });
    kill(getpid(), SIGKILL);
  }
  waitpid(process, nullptr, 0);
  EXPECT_TRUE(leaves_nothing());
  EXPECT_EQ(log(), "started all\nquit -t 1\nended\n");
}

TEST_F(MultiProcessServiceTest, SaysWhyThereIsNone) {
  auto const obstacle = [] { return MultiProcessService([] { return 0; }).obstacle(); };
  setenv("PATH", (folder_ / "tmp").c_str(), 1);
  EXPECT_EQ(obstacle(), "there is no program nvidia-cuda-mps-control in PATH");
  setenv("PATH", (folder_.string() + ":" + path_).c_str(), 1);
  install("exit 1\n");
  EXPECT_EQ(obstacle(), "the program " + (folder_ / "nvidia-cuda-mps-control").string() + " does not start");
  install();
  EXPECT_EQ(obstacle(), "it serves no device here");
  EXPECT_TRUE(leaves_nothing());
  EXPECT_EQ(log(), "started all\nquit -t 1\nended\n");
}

TEST_F(MultiProcessServiceTest, LeavesServicesOfOthersAlone) {
  install();
  fs::create_directory(folder_ / "others");
  std::ofstream(folder_ / "others" / "control") << "";
  setenv("CUDA_MPS_PIPE_DIRECTORY", (folder_ / "others").c_str(), 1);
  MultiProcessService const service([] { return 1; });
  EXPECT_EQ(service.obstacle(), "");
  EXPECT_TRUE(service.environment().empty());
  EXPECT_EQ(log(), "");
}

}  // namespace
}  // namespace poisson::app
