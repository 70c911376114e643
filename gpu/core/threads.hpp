#pragma once

namespace poisson {

/// Sets the number of threads of the CPU backend; n = 0: usable_threads(). From then on waiting threads sleep after microseconds
/// instead of spinning, unless OMP_WAIT_POLICY or GOMP_SPINCOUNT is set. The threads are made now: later, OpenMP would end the
/// program where it cannot have them. Throws EnvironmentError where the system does not make as many.
void set_thread_count(int n);
/// Sets the number of threads as set_thread_count does, in a thread that works beside others. It is one where the system does not
/// make n.
void set_thread_count_or_one(int n) noexcept;
[[nodiscard]] int thread_count();
/// How many threads can run at once: processors that the affinity of the process and the cgroup's quota allow.
[[nodiscard]] int usable_threads();

}  // namespace poisson
