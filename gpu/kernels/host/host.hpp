#pragma once

#include "gpu/core/context.hpp"
#include "gpu/core/dot_sum.hpp"
#include "gpu/core/host_vector.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace poisson::host {

/// Rows in the unit of work and of summation. The partition into blocks depends on nothing but n, and partial sums are added
/// in order, so sums have the same bits whatever the number of threads. 1024 rows of x, y and one diagonal fit the first-level
/// cache.
inline constexpr std::int64_t block_rows = 1024;

[[nodiscard]] inline std::int64_t n_blocks(std::int64_t n) {
  return (n + block_rows - 1) / block_rows;
}

class HostContext final : public Context {
public:
  Backend backend() const override { return Backend::cpu; }
  DeviceDescription description() const override { return host_description(); }
  std::int64_t memory_peak() const override { return 0; }
  std::int64_t memory_used() const override { return 0; }
  void synchronize() override {}
  void* allocate(std::int64_t bytes) override;
  void deallocate(void* pointer, std::int64_t bytes) noexcept override;
  void upload(void* to, void const* from_host, std::int64_t bytes) override;
  void download(void* to_host, void const* from, std::int64_t bytes) override;
  void set_zero(void* pointer, std::int64_t bytes) override;

  /// Room for `count` partial sums of T, reused by every call.
  template <class T = double>
  [[nodiscard]] T* partial_sums(std::int64_t count) {
    std::size_t const bytes = static_cast<std::size_t>(count) * sizeof(T);
    if (partial_sums_.size() < bytes)
      partial_sums_.resize(bytes);
    return reinterpret_cast<T*>(partial_sums_.data());  // bytes become whatever is written to them
  }

private:
  HostVector<std::byte> partial_sums_;
};

/// Calls body(begin, end, block) for every block of rows, threaded.
template <class Body>
void for_blocks(std::int64_t n, Body const& body) {
  std::int64_t const blocks = n_blocks(n);
#pragma omp parallel for schedule(static) if (blocks > 4)
  for (std::int64_t block = 0; block < blocks; ++block)
    body(block * block_rows, std::min(n, (block + 1) * block_rows), block);
}

/// The sum over blocks of what `body(begin, end)` returns for each, added in order.
template <class Body>
[[nodiscard]] auto sum_blocks(Context& context, std::int64_t n, Body const& body) {
  using T = std::invoke_result_t<Body const&, std::int64_t, std::int64_t>;
  T* const partial = static_cast<HostContext&>(context).partial_sums<T>(n_blocks(n));
  for_blocks(n, [&](std::int64_t begin, std::int64_t end, std::int64_t block) { partial[block] = body(begin, end); });
  T sum = 0;
  for (std::int64_t block = 0; block < n_blocks(n); ++block)
    sum += partial[block];
  return sum;
}

/// The sum in DoubleDouble of what add(sum, i) adds for i = begin ... end - 1, in interleaved partial sums, which vectorise.
template <class Add>
[[nodiscard]] DoubleDouble sum_in_lanes(std::int64_t begin, std::int64_t end, Add const& add) {
  constexpr int lanes = 8;
  alignas(64) double sum[lanes] = {}, correction[lanes] = {};
  std::int64_t i = begin;
  for (; i + lanes <= end; i += lanes)
#pragma omp simd
    for (int lane = 0; lane < lanes; ++lane) {
      DotSum<DoubleDouble> of_lane{sum[lane], correction[lane]};
      add(of_lane, i + lane);
      sum[lane] = of_lane.sum;
      correction[lane] = of_lane.correction;
    }
  DotSum<DoubleDouble> total{};
  for (; i < end; ++i)
    add(total, i);
  for (int lane = 0; lane < lanes; ++lane)
    total.add({sum[lane], correction[lane]});
  return total.value();
}

}  // namespace poisson::host
