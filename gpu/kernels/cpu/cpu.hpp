#pragma once

#include "gpu/core/context.hpp"
#include "gpu/core/dot_sum.hpp"
#include "gpu/core/host_vector.hpp"
#include "gpu/core/vector.hpp"
#include "gpu/kernels/backends.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace poisson::cpu {

/// Rows in the unit of work and of summation. The partition into blocks depends on nothing but n, and partial sums are added
/// in order, so sums have the same bits whatever the number of threads. 1024 rows of x, y and one diagonal fit the first-level
/// cache.
inline constexpr std::int64_t block_rows = 1024;

[[nodiscard]] inline std::int64_t n_blocks(std::int64_t n) {
  return (n + block_rows - 1) / block_rows;
}

class CpuContext final : public Context {
public:
  Backend backend() const override { return Backend::cpu; }
  DeviceDescription description() const override { return cpu_description(); }
  std::int64_t memory_peak() const override { return 0; }
  void reset_memory_peak() override {}
  std::int64_t memory_used() const override { return 0; }
  void synchronize() override {}
  void use_in_this_thread() override {}
  void* allocate(std::int64_t bytes) override;
  void deallocate(void* pointer, std::int64_t bytes) noexcept override;
  void upload(void* to, void const* from_host, std::int64_t bytes) override;
  void download(void* to_host, void const* from, std::int64_t bytes) override;
  void set_zero(void* pointer, std::int64_t bytes) override;
  void copy(void* to, void const* from, std::int64_t bytes) override;

  /// A buffer for `count` partial sums of T, reused by every call.
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

/// Less work than this, counted in multiplications and additions of doubles, is done by one thread: it takes some tens of
/// microseconds, about as long as other threads need to wake up, and on a busy machine they may have to wait for a processor first.
inline constexpr std::int64_t work_worth_threads = 65536;

/// What one multiplication and addition of T counts as.
template <class T>
inline constexpr std::int64_t work_of = std::is_same_v<T, DoubleDouble> ? 8 : 1;

/// What a pass of a Krylov method over n entries counts as: it reads and writes some four vectors, which takes longer than its
/// arithmetic.
template <class T>
[[nodiscard]] constexpr std::int64_t vector_pass_work(std::int64_t n) {
  return 4 * n * work_of<T>;
}

/// Calls body(begin, end, block) for every block of rows, threaded where all of them together are worth it.
template <class Body>
void for_blocks(std::int64_t n, std::int64_t work, Body const& body) {
  std::int64_t const blocks = n_blocks(n);
#pragma omp parallel for schedule(static) if (blocks > 1 && work >= work_worth_threads)
  for (std::int64_t block = 0; block < blocks; ++block)
    body(block * block_rows, std::min(n, (block + 1) * block_rows), block);
}

/// The sum over blocks of what `body(begin, end)` returns for each, added in order.
template <class Body>
[[nodiscard]] auto sum_blocks(Context& context, std::int64_t n, std::int64_t work, Body const& body) {
  using T = std::invoke_result_t<Body const&, std::int64_t, std::int64_t>;
  T* const partial = static_cast<CpuContext&>(context).partial_sums<T>(n_blocks(n));
  for_blocks(n, work, [&](std::int64_t begin, std::int64_t end, std::int64_t block) { partial[block] = body(begin, end); });
  T sum = 0;
  for (std::int64_t block = 0; block < n_blocks(n); ++block)
    sum += partial[block];
  return sum;
}

/// Returns the sum of sum_blocks in T, rounded from what the blocks are summed in.
template <class T, class Body>
[[nodiscard]] T sum_blocks_to(Context& context, std::int64_t n, std::int64_t work, Body const& body) {
  return static_cast<T>(sum_blocks(context, n, work, body));
}

/// A pointer of which the compiler may assume that no other one leads to the same numbers.
template <class P>
using Restrict = std::conditional_t<std::is_pointer_v<P>, std::remove_pointer_t<P>* __restrict, P>;

// Sums in the making that lie side by side, one for each lane or row, as loops over them vectorise. A DotSum<DoubleDouble> takes
// the places of a number's high and low part, and a DotSum<float> that of a double. In a vector of float itself sums are in float.

struct SumInFloat {
  float sum;
  void add(float a, float b) { sum = std::fma(a, b, sum); }
};

/// Pointer to such sums in a kernel's own buffer.
template <class T>
using SumPointer = std::conditional_t<std::is_same_v<T, float>, double*, Pointer<T>>;

[[nodiscard]] inline SumInFloat load_sum(float const* sums, std::int64_t i) {
  return {sums[i]};
}
[[nodiscard]] inline DotSum<double> load_sum(double const* sums, std::int64_t i) {
  return {sums[i]};
}
[[nodiscard]] inline DotSum<DoubleDouble> load_sum(ConstPointer<DoubleDouble> sums, std::int64_t i) {
  return {sums.hi[i], sums.lo[i]};
}
inline void store_sum(float* sums, std::int64_t i, SumInFloat sum) {
  sums[i] = sum.sum;
}
inline void store_sum(double* sums, std::int64_t i, DotSum<double> sum) {
  sums[i] = sum.sum;
}
inline void store_sum(Pointer<DoubleDouble> sums, std::int64_t i, DotSum<DoubleDouble> sum) {
  sums.hi[i] = sum.sum;
  sums.lo[i] = sum.correction;
}
/// Adds a b to sum i; in double it is not fused.
inline void add_product(double* sums, std::int64_t i, double a, double b) {
  sums[i] += a * b;
}
template <class A>
void add_product(Pointer<DoubleDouble> sums, std::int64_t i, A a, DoubleDouble b) {
  DotSum<DoubleDouble> sum = load_sum(sums, i);
  sum.add(a, b);
  store_sum(sums, i, sum);
}

/// v, or 0 unless `taken`.
[[nodiscard]] inline float select(bool taken, float v) {
  return taken ? v : 0.0F;
}
[[nodiscard]] inline double select(bool taken, double v) {
  return taken ? v : 0.0;
}
[[nodiscard]] inline DoubleDouble select(bool taken, DoubleDouble v) {
  return {taken ? v.hi : 0.0, taken ? v.lo : 0.0};
}

/// The number in T that a sum has come to.
template <class T>
[[nodiscard]] T finished_sum(SumPointer<T> sums, std::int64_t i) {
  return static_cast<T>(load_sum(sums, i).value());
}

/// Prefetches into the first-level cache.
inline void prefetch_l1(float const* p) {
  __builtin_prefetch(p);
}
inline void prefetch_l1(double const* p) {
  __builtin_prefetch(p);
}
inline void prefetch_l1(ConstPointer<DoubleDouble> p) {
  prefetch_l1(p.hi);
  prefetch_l1(p.lo);
}

/// The distance of prefetches in entries: stored entries are read from begin to end, but the hardware prefetcher stops at every
/// page.
inline constexpr std::int64_t entries_ahead = 512;

/// Prefetches the entries at that distance.
template <class Values>
void prefetch_ahead(Values values, std::int32_t const* columns) {
  prefetch_l1(values + entries_ahead);
  __builtin_prefetch(columns + entries_ahead);
}

/// x . y while the rows of y are made; in double not fused.
template <class T>
struct RowDot : DotSum<T> {};
template <>
struct RowDot<float> {
  double sum;
  void add(float x, float y) { sum += static_cast<double>(x) * static_cast<double>(y); }
  [[nodiscard]] double value() const { return sum; }
};
template <>
struct RowDot<double> {
  double sum;
  void add(double x, double y) { sum += x * y; }
  [[nodiscard]] double value() const { return sum; }
};

/// A buffer for n such sums.
template <class T, int n>
struct SumBuffer {
  alignas(64) double numbers[n];
  [[nodiscard]] SumPointer<T> data() { return numbers; }
};
template <int n>
struct SumBuffer<DoubleDouble, n> {
  alignas(64) double high[n], low[n];
  [[nodiscard]] Pointer<DoubleDouble> data() { return {high, low}; }
};

/// A buffer for n numbers of T in which partial sums are kept.
template <class T, int n>
struct NumberBuffer : SumBuffer<T, n> {};
template <int n>
struct NumberBuffer<float, n> {
  alignas(64) float numbers[n];
  [[nodiscard]] float* data() { return numbers; }
};

inline void fill_zero(float* p, std::int64_t n) {
  std::fill(p, p + n, 0.0F);
}
inline void fill_zero(double* p, std::int64_t n) {
  std::fill(p, p + n, 0.0);
}
inline void fill_zero(Pointer<DoubleDouble> p, std::int64_t n) {
  fill_zero(p.hi, n);
  fill_zero(p.lo, n);
}

/// The sum in DoubleDouble of what add(sum, i) adds for i = begin ... end - 1, in interleaved partial sums, which vectorise.
template <int lanes = 8, class Add>
[[nodiscard]] DoubleDouble sum_in_lanes(std::int64_t begin, std::int64_t end, Add const& add) {
  SumBuffer<DoubleDouble, lanes> buffer;
  Pointer<DoubleDouble> const sums = buffer.data();
  fill_zero(sums, lanes);
  std::int64_t i = begin;
  for (; i + lanes <= end; i += lanes)
#pragma omp simd
    for (int lane = 0; lane < lanes; ++lane) {
      DotSum<DoubleDouble> of_lane = load_sum(sums, lane);
      add(of_lane, i + lane);
      store_sum(sums, lane, of_lane);
    }
  for (int half = lanes / 2; half > 0; half /= 2)
    for (int lane = 0; lane < half; ++lane) {
      DotSum<DoubleDouble> of_lane = load_sum(sums, lane);
      of_lane.add(load_sum(sums, lane + half));
      store_sum(sums, lane, of_lane);
    }
  DotSum<DoubleDouble> total = load_sum(sums, 0);
  for (; i < end; ++i)
    add(total, i);
  return total.value();
}

/// Sum of x_i y_i over rows begin ... end - 1. Inlined, so that every kernel's file compiles it as it does its own loops.
[[gnu::always_inline]] inline double dot_of_rows(std::int64_t begin, std::int64_t end, double const* x, double const* y) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = begin; i < end; ++i)
    sum += x[i] * y[i];
  return sum;
}
[[gnu::always_inline]] inline double dot_of_rows(std::int64_t begin, std::int64_t end, float const* x, float const* y) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = begin; i < end; ++i)
    sum += static_cast<double>(x[i]) * static_cast<double>(y[i]);
  return sum;
}
[[gnu::always_inline]] inline DoubleDouble dot_of_rows(std::int64_t begin, std::int64_t end, ConstPointer<DoubleDouble> x,
                                                       ConstPointer<DoubleDouble> y) {
  return sum_in_lanes(begin, end, [=](auto& sum, std::int64_t i) { sum.add(load(x, i), load(y, i)); });
}

}  // namespace poisson::cpu
