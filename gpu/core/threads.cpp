#include "gpu/core/threads.hpp"

#include "gpu/core/error.hpp"

#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <latch>
#include <mutex>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace poisson {

namespace {

/// CPUs that the cgroup's quota allows, rounded up; 0 when there is no quota.
int quota_of(std::string const& folder) {
  if (std::ifstream v2(folder + "/cpu.max"); v2) {
    std::string quota;
    double period = 0;
    if (v2 >> quota >> period && quota != "max" && period > 0)
      return static_cast<int>(std::ceil(std::stod(quota) / period));
    return 0;
  }
  std::ifstream quota_file(folder + "/cpu.cfs_quota_us"), period_file(folder + "/cpu.cfs_period_us");
  double quota = 0, period = 0;
  if (quota_file >> quota && period_file >> period && quota > 0 && period > 0)
    return static_cast<int>(std::ceil(quota / period));
  return 0;
}

/// The tightest quota on the way from this process's cgroup to the root; 0 when there is none.
int cgroup_quota() {
  int tightest = 0;
  auto const consider = [&](int quota) {
    if (quota > 0 && (tightest == 0 || quota < tightest))
      tightest = quota;
  };
  std::ifstream cgroups("/proc/self/cgroup");
  for (std::string line; std::getline(cgroups, line);) {
    auto const first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos)
      continue;
    std::string const controllers = line.substr(first + 1, second - first - 1);
    if (!controllers.empty() && controllers.find("cpu") == std::string::npos)
      continue;
    std::string const root = controllers.empty() ? "/sys/fs/cgroup" : "/sys/fs/cgroup/" + controllers;
    for (std::string path = line.substr(second + 1);; path.erase(path.rfind('/'))) {
      consider(quota_of(root + path));
      if (path.rfind('/') == std::string::npos)
        break;
    }
  }
  return tightest;
}

/// How many of n more threads the system makes now; they end at once. Where OpenMP cannot make a thread it ends the program, so
/// whether it can must be tried before.
int makeable_threads(int n) {
  std::latch all_made(1);
  std::vector<std::thread> made;
  std::vector<pid_t> ids(static_cast<std::size_t>(n));
  sigset_t all, mask;  // signals are for the threads that work
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &mask);
  try {
    made.reserve(static_cast<std::size_t>(n));
    for (int i = 0; i < n; ++i)
      made.emplace_back([&all_made, &id = ids[static_cast<std::size_t>(i)]] {
        id = gettid();
        all_made.wait();
      });
  } catch (std::exception const&) {  // of the system, or there is no memory; those that were made must be joined
  }
  pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  all_made.count_down();
  for (std::thread& thread : made)
    thread.join();
  // A thread that was joined counts against limits a moment longer. Others may come and go meanwhile.
  ids.resize(made.size());
  auto const is_there = [](pid_t id) { return access(("/proc/self/task/" + std::to_string(id)).c_str(), F_OK) == 0; };
  for (int wait = 0; wait < 100 && std::ranges::any_of(ids, is_there); ++wait)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return static_cast<int>(made.size());
}

/// GNU's OpenMP reads how long a waiting thread spins from the environment before main, and has no call for it. By default that is
/// some milliseconds, in which a thread on a busy machine holds the processor that the thread it waits for would need. But where a
/// process has more OpenMP threads than processors, waiting threads go to sleep within microseconds. So some threads are added that
/// only sleep: as many as make more than there are processors when n threads work. What the user's environment says has precedence.
void let_waiting_threads_sleep(int n) {
  if (n < 2 || std::getenv("OMP_WAIT_POLICY") != nullptr || std::getenv("GOMP_SPINCOUNT") != nullptr)
    return;
  static std::mutex mutex;
  static int added = 0;
  std::scoped_lock const lock(mutex);
  int const missing = omp_get_num_procs() + 1 - n - added;
  if (missing <= 0 || makeable_threads(missing + 1) <= missing)  // without them threads wait as they did, and results are the same
    return;
  sigset_t all, before;  // signals are for the threads that work
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::latch there(1);
    std::thread([missing, &there] {
#pragma omp parallel num_threads(missing + 1)
      static_cast<void>(omp_get_thread_num());  // the compiler leaves out an empty region
      there.count_down();
      for (;;)  // OpenMP keeps a thread's team as long as the thread lives
        pause();
    }).detach();
    there.wait();
    added += missing;
  } catch (std::exception const&) {  // something else took the last one, or the memory, meanwhile
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

/// `spare`: threads that must be possible beside these, for others that make some at the same time.
void take_threads(int threads, int spare) {
  thread_local int tried = 1;  // what this thread has, or had
  if (threads > tried) {
    if (int const possible = 1 + makeable_threads(threads - 1 + spare) - spare; possible < threads)
      throw EnvironmentError("the system makes only " + std::to_string(std::max(possible, 1)) + " of " + std::to_string(threads) +
                             " threads (limits are shown by 'ulimit -u' and 'ulimit -v'); --threads N takes fewer");
    tried = threads;
  }
  omp_set_dynamic(0);
  omp_set_num_threads(threads);
#pragma omp parallel num_threads(threads)
  static_cast<void>(omp_get_thread_num());  // the compiler leaves out an empty region
  let_waiting_threads_sleep(threads);
}

}  // namespace

int usable_threads() {
  int const affinity = omp_get_num_procs();
  static int const quota = cgroup_quota();
  return quota > 0 && quota < affinity ? quota : affinity;
}

void set_thread_count(int n) {
  take_threads(n > 0 ? n : usable_threads(), 0);
}

void set_thread_count_or_one(int n) noexcept {
  constexpr int spare = 4;
  try {
    take_threads(n, spare);
  } catch (std::exception const&) {
    omp_set_num_threads(1);
  }
}

int thread_count() {
  return omp_get_max_threads();
}

}  // namespace poisson
