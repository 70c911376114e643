#include "app/io/output_log.hpp"

#include "gpu/core/error.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <unistd.h>

namespace poisson::app {
namespace {

namespace fs = std::filesystem;

class OutputLogTest : public testing::Test {
protected:
  ~OutputLogTest() override { fs::remove(file_); }

  std::string log() const {
    std::ifstream in(file_);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }
  fs::path file_ = fs::temp_directory_path() / ("poisson-output-log-" + std::to_string(getpid()));
};

TEST_F(OutputLogTest, CopiesBothStreamsAndRedrawnLinesOnce) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  {
    OutputLog log(file_);
    std::cout << "stage 1\n\r\033[K  10 %" << std::flush << "\r\033[K  20 %" << std::flush << "\r\033[Kstage 2" << std::endl;
    std::cerr << "warning" << std::endl;
    log.line("exit code 0");
  }
  std::cout << "after" << std::endl;
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "stage 1\n\r\033[K  10 %\r\033[K  20 %\r\033[Kstage 2\nafter\n");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "warning\n");
  EXPECT_EQ(log(), "stage 1\nstage 2\nwarning\nexit code 0\n");
}

TEST_F(OutputLogTest, NothingTwiceWhereOutputIsTheFile) {
  int const before = dup(STDOUT_FILENO), file = open(file_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  std::cout << std::flush;
  ASSERT_GE(dup2(file, STDOUT_FILENO), 0);
  {
    OutputLog log(file_);
    std::cout << "stage 1" << std::endl;
    log.line("exit code 0");
  }
  dup2(before, STDOUT_FILENO);
  close(before);
  close(file);
  EXPECT_EQ(log(), "stage 1\nexit code 0\n");
}

TEST_F(OutputLogTest, InAFolderThatIsNotThere) {
  EXPECT_THROW(OutputLog(file_ / "log"), EnvironmentError);
}

}  // namespace
}  // namespace poisson::app
