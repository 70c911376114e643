#pragma once

namespace poisson {

/// Number of threads of the CPU backend; n = 0 asks for all that the process may use (its affinity and the cgroup's quota counted).
/// Threads that wait then go to sleep within microseconds, unless OMP_WAIT_POLICY or GOMP_SPINCOUNT is set.
void set_thread_count(int n);
[[nodiscard]] int thread_count();
/// Threads that the process may use: its affinity and the cgroup's quota counted.
[[nodiscard]] int usable_threads();

}  // namespace poisson
