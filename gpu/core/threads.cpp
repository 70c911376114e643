#include "gpu/core/threads.hpp"

#include <omp.h>

#include <cmath>
#include <fstream>
#include <string>

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

}  // namespace

int usable_threads() {
  int const affinity = omp_get_num_procs();
  int const quota = cgroup_quota();
  return quota > 0 && quota < affinity ? quota : affinity;
}

void set_thread_count(int n) {
  omp_set_dynamic(0);
  omp_set_num_threads(n > 0 ? n : usable_threads());
}

int thread_count() {
  return omp_get_max_threads();
}

}  // namespace poisson
