#include "gpu/kernels/ilu.hpp"
#include "gpu/core/threads.hpp"

#include "gpu/kernels/cpu/cpu.hpp"
#include "gpu/kernels/ilu_elimination.hpp"

#include <atomic>

namespace poisson {

namespace {

/// Levels with fewer rows than this for every thread cost more in barriers than threads save.
constexpr std::int64_t rows_worth_a_thread = 256;
/// What a row of a level costs when rows before and behind it in memory are of other levels, over one row after the other: a box of
/// 101^3 nodes takes 53 ms an iteration row by row, and 90 to 113 ms by level in two threads.
constexpr int cost_apart = 4;

bool fills_threads(std::int64_t n_rows, std::int64_t n_levels) {
  return thread_count() > 1 && n_rows >= thread_count() * rows_worth_a_thread * n_levels;
}

/// Calls body(row) for the rows of these levels, level by level, in threads where that pays.
template <class Body>
void for_rows_of_levels(LevelSchedule const& schedule, std::int64_t first, std::int64_t end, Body const& body) {
  std::int64_t const* const level_ptr = schedule.level_ptr;
#pragma omp parallel if (fills_threads(level_ptr[end] - level_ptr[first], end - first))
  for (std::int64_t level = first; level < end; ++level) {
#pragma omp for schedule(static)
    for (std::int64_t slot = level_ptr[level]; slot < level_ptr[level + 1]; ++slot)
      body(schedule.rows[slot]);
  }
}

/// Calls body(row) for every row after all rows that it needs: level by level in threads where that pays, else one after the
/// other, which the order of rows allows. The results are the same.
template <bool upper, class Body>
void for_rows_in_order(LevelSchedule const& schedule, std::int64_t n_rows, Body const& body) {
  if (fills_threads(n_rows, schedule.n_levels) && (schedule.side_by_side || thread_count() > cost_apart)) {
    for_rows_of_levels(schedule, 0, schedule.n_levels, body);
    return;
  }
  for (std::int64_t i = 0; i < n_rows; ++i)
    body(upper ? n_rows - 1 - i : i);
}

class CpuIlu final : public IluKernels {
public:
  BadPivot factorize(Context&, IluView const& a, bool positive) const override {
    std::atomic<std::int64_t> first_bad{a.n_rows};
    HostVector<double> bad_value(1);
    auto const eliminate = [&](std::int64_t row) {
      if (auto const pivot = bad_pivot_of(a, row, positive)) {
#pragma omp critical(poisson_ilu_bad_pivot)
        if (row < first_bad) {
          first_bad = row;
          bad_value[0] = *pivot;
        }
      }
    };
    for_rows_in_order<false>(a.lower, a.n_rows, eliminate);
    return first_bad < a.n_rows ? BadPivot{first_bad, bad_value[0]} : BadPivot{};
  }
};

template <class T>
class CpuIluSolve final : public IluSolveKernels<T> {
public:
  void prepare(Context&, std::int64_t, Pointer<T>) const override {}

  void solve(Context&, IluView const& a, ConstPointer<T> r, Pointer<T> z, Pointer<T> work,
             std::int32_t const* stop) const override {
    if (*stop != 0)
      return;
    for_rows_in_order<false>(a.lower, a.n_rows, [=](std::int64_t row) { lower_row(a, row, r, work); });
    Pointer<T> const ordered_z = a.order == nullptr ? z : work + a.n_rows;
    for_rows_in_order<true>(a.upper, a.n_rows, [=](std::int64_t row) { upper_row(a, row, work, ordered_z, z); });
  }
  void lower(Context&, IluView const& a, std::int64_t first, std::int64_t end, ConstPointer<T> r, Pointer<T> work,
             std::int32_t const* stop) const override {
    if (*stop == 0)
      for_rows_of_levels(a.lower, first, end, [=](std::int64_t row) { lower_row(a, row, r, work); });
  }
  void upper(Context&, IluView const& a, std::int64_t first, std::int64_t end, ConstPointer<T> work, Pointer<T> ordered_z,
             Pointer<T> z, std::int32_t const* stop) const override {
    if (*stop == 0)
      for_rows_of_levels(a.upper, first, end, [=](std::int64_t row) { upper_row(a, row, work, ordered_z, z); });
  }

private:
  static void lower_row(IluView const& a, std::int64_t row, ConstPointer<T> r, Pointer<T> work) {
    std::int64_t const of_r = a.order == nullptr ? row : a.order[row];
    store(work, row, load(r, of_r) - sum_of(a, a.row_ptr[row], a.diagonal[row], work));
  }
  static void upper_row(IluView const& a, std::int64_t row, ConstPointer<T> work, Pointer<T> ordered_z, Pointer<T> z) {
    std::int64_t const diagonal = a.diagonal[row];
    T const value = a.values[diagonal] * (load(work, row) - sum_of(a, diagonal + 1, a.row_ptr[row + 1], ordered_z));
    store(ordered_z, row, value);
    if (a.order != nullptr)
      store(z, a.order[row], value);
  }
  static T sum_of(IluView const& a, std::int64_t begin, std::int64_t end, ConstPointer<T> x) {
    DotSum<T> sum{};
    for (std::int64_t e = begin; e < end; ++e)
      sum.add(a.values[e], load(x, a.columns[e]));
    return sum.value();
  }
};

}  // namespace

IluKernels const& IluKernels::cpu() {
  static CpuIlu const kernels;
  return kernels;
}
template <>
IluSolveKernels<double> const& IluSolveKernels<double>::cpu() {
  static CpuIluSolve<double> const kernels;
  return kernels;
}
template <>
IluSolveKernels<DoubleDouble> const& IluSolveKernels<DoubleDouble>::cpu() {
  static CpuIluSolve<DoubleDouble> const kernels;
  return kernels;
}

}  // namespace poisson
