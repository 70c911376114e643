#include "gpu/kernels/ilu.hpp"
#include "gpu/core/threads.hpp"

#include "gpu/kernels/cpu/cpu.hpp"

#include <atomic>
#include <cmath>

namespace poisson {

namespace {

/// Levels with fewer rows than this for every thread cost more in barriers than threads save.
constexpr std::int64_t rows_worth_a_thread = 256;

bool worth_threads(LevelSchedule const& schedule, std::int64_t n_rows) {
  return thread_count() > 1 && n_rows >= thread_count() * rows_worth_a_thread * schedule.n_levels;
}

/// Calls body(row) for every row after all rows that it needs: level by level in threads where that pays, else one after the
/// other, which the order of rows allows. The results are the same.
template <bool upper, class Body>
void for_rows_in_order(LevelSchedule const& schedule, std::int64_t n_rows, Body const& body) {
  if (!worth_threads(schedule, n_rows)) {
    for (std::int64_t i = 0; i < n_rows; ++i)
      body(upper ? n_rows - 1 - i : i);
    return;
  }
#pragma omp parallel
  for (std::int64_t level = 0; level < schedule.n_levels; ++level) {
#pragma omp for schedule(static)
    for (std::int64_t slot = schedule.level_ptr[level]; slot < schedule.level_ptr[level + 1]; ++slot)
      body(schedule.rows[slot]);
  }
}

class CpuIlu final : public IluKernels {
public:
  BadPivot factorize(Context&, IluView const& a, bool positive) const override {
    std::atomic<std::int64_t> first_bad{a.n_rows};
    HostVector<double> bad_value(1);
    auto const eliminate = [&](std::int64_t row) {
      std::int64_t const begin = a.row_ptr[row], diagonal = a.diagonal[row], end = a.row_ptr[row + 1];
      double largest = 0;
      for (std::int64_t e = begin; e < end; ++e)
        largest = std::max(largest, std::abs(a.values[e]));
      for (std::int64_t e = begin; e < diagonal; ++e) {
        std::int64_t const k = a.columns[e];
        double const factor = a.values[e] * a.values[a.diagonal[k]];
        a.values[e] = factor;
        std::int64_t to = e + 1;
        for (std::int64_t from = a.diagonal[k] + 1; from < a.row_ptr[k + 1]; ++from) {
          while (to < end && a.columns[to] < a.columns[from])
            ++to;
          if (to == end)
            break;
          if (a.columns[to] == a.columns[from])
            a.values[to] = std::fma(-factor, a.values[from], a.values[to]);
        }
      }
      double const pivot = a.values[diagonal];
      a.values[diagonal] = 1 / pivot;
      if (!((positive ? pivot : std::abs(pivot)) > smallest_pivot * largest) || !std::isfinite(pivot)) {
#pragma omp critical(poisson_ilu_bad_pivot)
        if (row < first_bad) {
          first_bad = row;
          bad_value[0] = pivot;
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
    for_rows_in_order<false>(a.lower, a.n_rows, [=](std::int64_t row) {
      std::int64_t const of_r = a.order == nullptr ? row : a.order[row];
      store(work, row, load(r, of_r) - sum_of(a, a.row_ptr[row], a.diagonal[row], work));
    });
    Pointer<T> const ordered_z = a.order == nullptr ? z : work + a.n_rows;
    for_rows_in_order<true>(a.upper, a.n_rows, [=](std::int64_t row) {
      std::int64_t const diagonal = a.diagonal[row];
      T const value = a.values[diagonal] * (load(work, row) - sum_of(a, diagonal + 1, a.row_ptr[row + 1], ordered_z));
      store(ordered_z, row, value);
      if (a.order != nullptr)
        store(z, a.order[row], value);
    });
  }

private:
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
