#include "gpu/kernels/measure.hpp"

#include "gpu/core/array.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/host_vector.hpp"
#include "gpu/core/interrupt.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/vectors.hpp"

#include <algorithm>
#include <chrono>
#include <vector>

namespace poisson {

double monotonic_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Seconds measure_seconds(Context& context, std::function<void()> const& call, int samples, std::function<double()> const& clock,
                        Communicator& ranks) {
  auto const mean_of = [&](int count) {
    context.synchronize();
    if (any_of_ranks(ranks, interrupt_requested()))
      throw Interrupted();
    double const start = clock();
    for (int i = 0; i < count; ++i)
      call();
    context.synchronize();
    return max_over(ranks, (clock() - start) / count);
  };
  double const first = mean_of(1);  // loads code, touches pages
  double const estimate = first > 0.02 ? mean_of(1) : mean_of(3);
  int const count = static_cast<int>(std::clamp(0.02 / std::max(estimate, 1e-9), 1.0, 200.0));
  int const affordable = static_cast<int>(std::min(2.0 / std::max(estimate * count, 1e-9), 1e6));
  int const taken = std::clamp(affordable, std::min(5, samples), samples);
  std::vector<double> seconds;
  for (int sample = 0; sample < taken; ++sample)
    seconds.push_back(mean_of(count));
  std::sort(seconds.begin(), seconds.end());
  return {seconds[seconds.size() / 2], seconds.front(), taken};
}

namespace {

/// The sum of 2^25 numbers on the host: 256 MiB, beyond the last-level cache of common machines.
double host_read_bandwidth(Context& context) {
  constexpr std::int64_t n = std::int64_t{1} << 25, chunk = std::int64_t{1} << 14;
  HostVector<double> v(n);
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < n; ++i)
    v[static_cast<std::size_t>(i)] = 1;
  double total = 0;
  Seconds const seconds = measure_seconds(context, [&] {
    double sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
    for (std::int64_t first = 0; first < n; first += chunk) {
      double const* const p = v.data() + first;
      double s = 0;  // in any order: the order of a plain sum would make latency the bound
#pragma omp simd reduction(+ : s)
      for (std::int64_t i = 0; i < chunk; ++i)
        s += p[i];
      sum += s;
    }
    total = sum;
  });
  return total == static_cast<double>(n) ? 8.0 * total / seconds.min : 0;  // the sum is used, so that it is made
}

}  // namespace

double measure_read_bandwidth(Context& context) {
  if (context.backend() == Backend::cpu)
    return host_read_bandwidth(context);
  std::int64_t const n = std::min(std::int64_t{1} << 28, std::max<std::int64_t>(context.description().memory_free / 32, 1024));
  Array<double> v(context, n), sum(context, 1);
  v.set_zero();
  auto const& vectors = kernels_for<VectorKernels<double>>(context);
  Seconds const seconds = measure_seconds(context, [&] { vectors.dot(context, n, v.data(), v.data(), sum.data()); });
  return 8.0 * static_cast<double>(n) / seconds.min;
}

}  // namespace poisson
