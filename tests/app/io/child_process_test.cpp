#include "app/io/child_process.hpp"

#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <unistd.h>

namespace poisson::app {
namespace {

namespace fs = std::filesystem;

class WorkerTest : public testing::Test {
protected:
  ~WorkerTest() override { fs::remove_all(folder_); }

  /// A worker that goes on after exit code 0 alone.
  static Worker::Work work(std::function<int(std::size_t)> task) {
    return {{}, std::move(task), [](int code) { return code == 0; }};
  }
  static TaskEnd end_of(Worker& worker) {
    Worker* const one[] = {&worker};
    std::optional<TaskEnd> end;
    while (!(end = worker.ended()))
      Worker::wait_for(one, std::chrono::milliseconds(10));
    return *end;
  }
  static TaskEnd run(Worker& worker, std::size_t task) {
    EXPECT_TRUE(worker.begin(task));
    return end_of(worker);
  }
  std::string text(char const* name = "log") const {
    std::ifstream in(folder_ / name);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }

  static fs::path make_folder() {
    std::string name = (fs::temp_directory_path() / "poisson-worker-XXXXXX").string();
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    return name;
  }
  fs::path folder_ = make_folder();
};

std::string variable(char const* name) {
  char const* const value = std::getenv(name);
  return value ? value : "none";
}

TEST_F(WorkerTest, HasItsVariablesBesideThoseOfThisProcess) {
  setenv("POISSON_TEST_KEPT", "kept", 1);
  setenv("POISSON_TEST_CHANGED", "before", 1);
  Worker::Work of = work([this](std::size_t) {
    std::ofstream(folder_ / "log") << variable("POISSON_TEST_KEPT") << " " << variable("POISSON_TEST_CHANGED") << " "
                                   << variable("POISSON_TEST_NEW");
    return 0;
  });
  of.environment = {{"POISSON_TEST_CHANGED", "2,3"}, {"POISSON_TEST_NEW", "new"}};
  Worker worker(of);
  EXPECT_TRUE(run(worker, 0).goes_on);
  EXPECT_EQ(text(), "kept 2,3 new");
  EXPECT_EQ(variable("POISSON_TEST_CHANGED"), "before");
}

TEST_F(WorkerTest, DoesTaskAfterTaskInOneProcess) {
  int count = 0;
  pid_t process = 0;
  Worker worker(work([&](std::size_t task) {
    process = process == 0 ? getpid() : process;
    return task == static_cast<std::size_t>(count++) && process == getpid() && process != getppid() ? 0 : 1;
  }));
  for (std::size_t task = 0; task < 3; ++task) {
    TaskEnd const end = run(worker, task);
    EXPECT_TRUE(end.goes_on && end.code == 0 && end.signal == 0) << task;
  }
  EXPECT_EQ(count, 0) << "in this process";
}

TEST_F(WorkerTest, EndsAfterATaskThatItDoesNotGoOnAfter) {
  Worker worker(work([](std::size_t task) { return static_cast<int>(task); }));
  EXPECT_TRUE(run(worker, 0).goes_on);
  TaskEnd const end = run(worker, 7);
  EXPECT_TRUE(!end.goes_on && end.code == 7 && end.signal == 0);
  EXPECT_FALSE(worker.begin(0));
}

TEST_F(WorkerTest, HasEmptyInputAndWritesTasksToTheirLogs) {
  std::ofstream(folder_ / "0") << "of an earlier process, and longer than what comes now";
  Worker worker(work([this](std::size_t task) {
    write_output_to(folder_ / std::to_string(task));
    std::string word;
    std::cerr << ((std::cin >> word) ? "input" : "no input") << "\n";
    std::cout << "task " << task;
    if (task == 0)
      std::cout.setstate(std::ios::badbit);
    return 0;
  }));
  EXPECT_TRUE(run(worker, 0).goes_on);
  EXPECT_TRUE(run(worker, 1).goes_on);
  EXPECT_EQ(text("0"), "no input\ntask 0");
  EXPECT_EQ(text("1"), "no input\ntask 1");
  EXPECT_THROW(write_output_to(folder_ / "missing" / "log"), EnvironmentError);
}

TEST_F(WorkerTest, KeepsDescriptors) {
  int const file = open((folder_ / "file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  ASSERT_GE(file, 0);
  Worker worker(work([file](std::size_t) { return fcntl(file, F_GETFD) >= 0 ? 0 : 1; }));
  EXPECT_EQ(run(worker, 0).code, 0);
  close(file);
}

TEST_F(WorkerTest, GetsASignalFromItsFirstMomentOn) {
  auto* const before = std::signal(SIGINT, [](int) { request_interrupt(); });
  for (int i = 0; i < 50; ++i) {
    Worker worker(work([](std::size_t) {
      for (int waited = 0; waited < 2000; ++waited) {
        if (interrupt_requested())
          return 130;
        usleep(5'000);
      }
      return 0;
    }));
    EXPECT_TRUE(worker.begin(0));
    usleep(static_cast<useconds_t>(20 * i));
    worker.send(SIGINT);
    EXPECT_EQ(end_of(worker).code, 130);
  }
  EXPECT_FALSE(interrupt_requested()) << "in this process";
  std::signal(SIGINT, before);
}

TEST_F(WorkerTest, ThatCrashesEndsAlone) {
  auto const task = [](std::size_t number) {
    if (number == 1) {
      std::signal(SIGABRT, SIG_DFL);
      std::abort();
    }
    return 0;
  };
  Worker other(work(task));
  {
    Worker worker(work(task));
    EXPECT_TRUE(run(worker, 0).goes_on);
    TaskEnd const end = run(worker, 1);
    EXPECT_TRUE(!end.goes_on && end.signal == SIGABRT);
    EXPECT_FALSE(worker.begin(0));
  }
  EXPECT_TRUE(run(other, 0).goes_on);
}

TEST_F(WorkerTest, ThatIsKilledWithoutATaskTellsSo) {
  Worker worker(work([](std::size_t) { return 0; }));
  worker.send(SIGKILL);
  EXPECT_EQ(end_of(worker).signal, SIGKILL);
  EXPECT_FALSE(worker.begin(0));
}

TEST_F(WorkerTest, EndsWhileLaterOnesGoOn) {
  auto first = std::make_unique<Worker>(work([](std::size_t) { return 0; }));
  Worker later(work([](std::size_t) { return 0; }));  // has a copy of what this process tells the first one by
  EXPECT_TRUE(run(*first, 0).goes_on);
  first.reset();
  EXPECT_TRUE(run(later, 0).goes_on);
}

TEST(CountedByChild, CountsForThisOne) {
  static int here = 0;
  EXPECT_EQ(counted_by_child([] { return ++here + 4; }), 5);
  EXPECT_EQ(here, 0);
}

}  // namespace
}  // namespace poisson::app
