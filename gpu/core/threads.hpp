#pragma once

namespace poisson {

/// Sets the number of threads of the CPU backend; n = 0: usable_threads(). From then on waiting threads sleep after microseconds
/// instead of spinning, unless OMP_WAIT_POLICY or GOMP_SPINCOUNT is set.
void set_thread_count(int n);
[[nodiscard]] int thread_count();
/// How many threads can run at once: processors that the affinity of the process and the cgroup's quota allow.
[[nodiscard]] int usable_threads();

}  // namespace poisson
