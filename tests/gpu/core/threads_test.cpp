#include "gpu/core/threads.hpp"

#include "gpu/core/error.hpp"

#include <gtest/gtest.h>

#include <omp.h>

#include <cstdlib>
#include <string>
#include <sys/resource.h>
#include <unistd.h>

namespace poisson::testing {

namespace {

/// How often threads of this process went to sleep.
long sleeps() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nvcsw;
}

/// While one thread works alone for about 0.1 ms, the others would spin if they were left to themselves; they sleep.
TEST(Threads, SleepWhileTheyWait) {
  if (usable_threads() < 2)
    GTEST_SKIP() << "one thread waits for nobody";
  if (std::getenv("OMP_WAIT_POLICY") != nullptr || std::getenv("GOMP_SPINCOUNT") != nullptr)
    GTEST_SKIP() << "the environment says how threads wait";
  int const before = thread_count();
  set_thread_count(0);
  int threads = 0;
  double volatile sum = 0;
  constexpr int rounds = 1000;
  long const first = sleeps();
  for (int round = 0; round < rounds; ++round) {
#pragma omp parallel
    if (omp_get_thread_num() == 0)
      threads = omp_get_num_threads();
    for (int i = 0; i < 50000; ++i)
      sum = sum + i;
  }
  long const slept = sleeps() - first;
  set_thread_count(before);
  ASSERT_GT(threads, 1);
  EXPECT_GT(slept, rounds / 2);
}

TEST(Threads, CountsAreAsAsked) {
  int const before = thread_count();
  for (int const n : {1, 3, 2}) {
    set_thread_count(n);
    EXPECT_EQ(thread_count(), n);
    int threads = 0;
#pragma omp parallel
    if (omp_get_thread_num() == 0)
      threads = omp_get_num_threads();
    EXPECT_EQ(threads, n);
  }
  set_thread_count(0);
  EXPECT_EQ(thread_count(), usable_threads());
  set_thread_count(before);
}

/// Runs in a process of its own. It ends with 0 where set_thread_count refuses, and a thread beside others then works alone.
[[noreturn]] void try_threads_that_cannot_be_made() {
  // The limit is on the threads of a user, and none for root.
  if (getuid() == 0 && setuid(65534) != 0)
    _exit(10);
  rlimit const one{1, 1};
  if (setrlimit(RLIMIT_NPROC, &one) != 0)
    _exit(11);
  try {
    set_thread_count(64);
    _exit(1);
  } catch (EnvironmentError const& error) {
    if (std::string(error.what()).find("of 64 threads") == std::string::npos)
      _exit(2);
  }
  set_thread_count_or_one(64);
  _exit(thread_count() == 1 ? 0 : 3);
}

TEST(ThreadsDeathTest, ThatCannotBeMadeAreAnError) {
  EXPECT_EXIT(try_threads_that_cannot_be_made(), ::testing::ExitedWithCode(0), "");
}

}  // namespace

}  // namespace poisson::testing
