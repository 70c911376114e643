#pragma once

#include "app/io/child_process.hpp"
#include "app/sweep/sweep.hpp"
#include "app/sweep/waiting_cases.hpp"

#include <string>
#include <vector>

namespace poisson::app {

/// What runs side by side.
struct Jobs {
  int count = 1;
  std::vector<std::string> devices{};  ///< values of CUDA_VISIBLE_DEVICES; none: cases find a device
  ProcessEnvironment environment{};    ///< of all jobs
};

/// Runs what is waiting, `jobs.count` cases at a time. Each job is a process (Worker), which takes case after case and keeps what
/// serves the next one (Kept). A case that ends with anything but a result ends its process, too, and the job gets another one. The
/// j-th job has a device of `jobs.devices` of its own, or shares it where there are fewer. An interrupt is passed on to the cases
/// that run, and they are waited for. A case that takes longer than `sweep.time_limit` is interrupted; it has as long again, but at
/// most a minute, to write what it has. Throws what WaitingCases throws, once all that ran have ended.
void run_cases(std::vector<SweepCase>& cases, WaitingCases& waiting, Configuration const& configuration,
               SweepOptions const& options, Jobs const& jobs, Console& console);

}  // namespace poisson::app
