#include "gpu/core/reader_process.hpp"

#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <gtest/gtest.h>
#include <new>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace poisson {
namespace {

constexpr ReaderLimits plenty{std::int64_t{1} << 40, 1000};

void sleep_for_ever() {
  for (;;)
    pause();
}

TEST(ReaderProcess, PassesTheAnswerOn) {
  ReaderProcess process(1, plenty, [](int descriptor) {
    int const answer = 42;
    write_answer(descriptor, &answer, sizeof answer);
  });
  int answer = 0, more = 0;
  EXPECT_TRUE(process.read(&answer, sizeof answer));
  EXPECT_EQ(answer, 42);
  EXPECT_FALSE(process.read(&more, sizeof more));
  EXPECT_EQ(process.complaint(), "");
}

TEST(ReaderProcess, ACrashIsADamagedFile) {
  for (int const signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE}) {
    ReaderProcess process(1, plenty, [&](int) {
      std::signal(signal, SIG_DFL);
      raise(signal);
    });
    EXPECT_NE(process.complaint().find("damaged"), std::string::npos) << signal;
  }
}

TEST(ReaderProcess, ItsTimeIsLimited) {
  ReaderProcess process(1000, {std::int64_t{1} << 40, 1}, [](int) {
    for (std::atomic<unsigned> i{0};;)
      ++i;
  });
  std::string const complaint = process.complaint();
  EXPECT_NE(complaint.find("more than 1 seconds, for a file of 1000 bytes: it is damaged"), std::string::npos) << complaint;
}

TEST(ReaderProcess, ItsMemoryIsLimited) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer's allocator ends the process";
#endif
  ReaderProcess process(1000, {std::int64_t{1} << 26, 60}, [](int) {
    std::vector<std::vector<char>> much;  // more than what tests before this one have left in the heap
    for (int i = 0; i < 128; ++i)
      much.emplace_back(std::size_t{1} << 26, 'x');
    if (much[getpid() % 100].front() == 'y')
      _exit(0);
  });
  std::string const complaint = process.complaint();
  EXPECT_NE(complaint.find("more than 64"), std::string::npos) << complaint;
  EXPECT_NE(complaint.find("of memory, for a file of 1000 bytes: it is damaged"), std::string::npos) << complaint;
}

TEST(ReaderProcess, LimitsGrowWithTheFile) {
  EXPECT_GE(reader_limits(0).seconds, 10);
  EXPECT_GE(reader_limits(0).bytes, std::int64_t{1} << 28);
  EXPECT_GT(reader_limits(std::int64_t{1} << 30).seconds, 1000);
  EXPECT_GE(reader_limits(std::int64_t{1} << 22).bytes, reader_limits(0).bytes);
}

TEST(ReaderProcess, AnInterruptEndsIt) {
  pid_t child = 0;
  {
    ReaderProcess process(1, plenty, [](int descriptor) {
      pid_t const self = getpid();
      write_answer(descriptor, &self, sizeof self);
      sleep_for_ever();
    });
    ASSERT_TRUE(process.read(&child, sizeof child));
    request_interrupt();
    int more = 0;
    EXPECT_THROW(static_cast<void>(process.read(&more, sizeof more)), Interrupted);
    clear_interrupt();
  }
  EXPECT_EQ(kill(child, 0), -1);
}

/// A program that is killed, here by itself, leaves no reader behind.
TEST(ReaderProcess, ItDiesWithItsParent) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  pid_t const parent = fork();
  if (parent == 0) {
    ReaderProcess process(1, plenty, [](int descriptor) {
      pid_t const self = getpid();
      write_answer(descriptor, &self, sizeof self);
      sleep_for_ever();
    });
    pid_t reader = 0;
    if (process.read(&reader, sizeof reader) && write(ends[1], &reader, sizeof reader) == sizeof reader)
      raise(SIGKILL);
    _exit(1);
  }
  pid_t reader = 0;
  ASSERT_EQ(read(ends[0], &reader, sizeof reader), static_cast<ssize_t>(sizeof reader));
  int status = 0;
  waitpid(parent, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  // The pipe is held open by the reader: its end is seen when it is gone.
  close(ends[1]);
  char byte = 0;
  alarm(60);
  EXPECT_EQ(read(ends[0], &byte, 1), 0);
  alarm(0);
  close(ends[0]);
}

/// Signals that end a program end its reader, whatever handlers the program has.
TEST(ReaderProcess, ItHeedsSigterm) {
  struct sigaction before {
  }, ignoring{};
  ignoring.sa_handler = [](int) {};
  sigaction(SIGTERM, &ignoring, &before);
  ReaderProcess process(1, plenty, [](int descriptor) {
    pid_t const self = getpid();
    write_answer(descriptor, &self, sizeof self);
    sleep_for_ever();
  });
  pid_t child = 0;
  ASSERT_TRUE(process.read(&child, sizeof child));
  kill(child, SIGTERM);
  EXPECT_THROW(static_cast<void>(process.complaint()), EnvironmentError);
  sigaction(SIGTERM, &before, nullptr);
}

}  // namespace
}  // namespace poisson
