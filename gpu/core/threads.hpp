#pragma once

namespace poisson {

/// Number of threads of the CPU backend; n = 0: all that its affinity and the cgroup's quota allow. Threads that wait then go to
/// sleep within microseconds, unless OMP_WAIT_POLICY or GOMP_SPINCOUNT is set.
void set_thread_count(int n);
[[nodiscard]] int thread_count();
/// Threads that the affinity of the process and the cgroup's quota allow.
[[nodiscard]] int usable_threads();

}  // namespace poisson
