#include "gpu/kernels/half_cds.hpp"

#include "gpu/kernels/cpu/cpu.hpp"
#include "gpu/kernels/cpu/diagonals.hpp"

#include <omp.h>

#include <vector>

namespace poisson {

namespace {

using cpu::block_rows, cpu::pass_rows;

/// Diagonals first ... last - 1 whose offsets are near each other.
struct Group {
  static constexpr int most = 64;              ///< diagonals
  static constexpr std::int64_t reach = 2048;  ///< between offsets, so that what is read a second time is still in a cache near by
  int first, last;
};

/// The off-diagonals in groups, by ascending offset.
[[nodiscard]] std::vector<Group> groups_of(std::span<std::int32_t const> offsets) {
  std::vector<Group> groups;
  for (int k = 1; k < static_cast<int>(offsets.size()); ++k)
    if (groups.empty() || offsets[k] - offsets[groups.back().first] > Group::reach || k - groups.back().first == Group::most)
      groups.push_back({k, k + 1});
    else
      groups.back().last = k + 1;
  return groups;
}

/// The rows of one thread. A stored value is read from memory once: the lower term of its row uses it when its pass comes, and the
/// upper terms of the rows about `offset` before follow soon after, group by group, while it is in a cache. Only where
/// those rows belong to the thread before are values read a second time, by that thread. Bytes per row of D stored diagonals:
/// 8 D of values, 8 of x, and y written and read for ownership (in DoubleDouble twice that of x and y); x and y of the rows within
/// the reach of the diagonals stay in the caches. Until a row is complete its place in y holds a sum in the making
/// (host::load_sum).
template <bool scaled, class T, class Values>
class Part {
public:
  Part(HalfCdsView const& a, Values values, std::span<Group const> groups, T alpha, ConstPointer<T> x, Pointer<T> y,
       std::int64_t first_block, std::int64_t last_block)
      : a_(a),
        values_(values),
        groups_(groups),
        alpha_(alpha),
        x_(x),
        y_(y),
        first_block_(first_block),
        last_block_(last_block),
        first_(first_block * block_rows),
        last_(std::min(a.n, last_block * block_rows)),
        n_diagonals_(static_cast<int>(a.offsets.size())) {}

  /// y = alpha A x + start for the part, where `start(i)` is what y_i begins with, read before row i is written;
  /// `done(block)` is called once for each block, in order, soon after its rows are complete.
  template <class Start, class Done>
  void run(Start const& start, Done const& done) const {
    std::int64_t next_done = first_block_;
    std::int64_t const reach = a_.offsets.back();
    for (std::int64_t begin = first_; begin < last_; begin += pass_rows) {
      std::int64_t const end = std::min(last_, begin + pass_rows);
      begin_rows(begin, end, start);
      lower(begin, end);
      for (Group const group : groups_) {
        std::int64_t const lag = a_.offsets[group.last - 1];
        std::int64_t const from = std::max(first_, begin - lag);
        if (from < end - lag)
          upper(group, from, end - lag);
      }
      for (; next_done + 1 < last_block_ && (next_done + 1) * block_rows <= end - reach; ++next_done)
        done(next_done);
    }
    for (Group const group : groups_)
      upper_beyond(group, std::max(first_, last_ - a_.offsets[group.last - 1]));
    for (; next_done < last_block_; ++next_done)
      done(next_done);
  }

private:
  using Term = cpu::Term<Values, ConstPointer<T>>;

  [[nodiscard]] Values diagonal(int k) const { return values_ + k * a_.n; }

  template <class Start>
  void begin_rows(std::int64_t begin, std::int64_t end, Start const& start) const {
    for (std::int64_t i = begin; i < end; i += cpu::line_rows) {
      cpu::prefetch(values_ + (i + pass_rows));
      cpu::prefetch(x_ + (i + pass_rows));
      cpu::prefetch_to_write(y_ + (i + pass_rows));
    }
#pragma omp simd
    for (std::int64_t i = begin; i < end; ++i)
      store(y_, i, start(i));
  }

  /// The main diagonal and the terms on its left. These ask for the first half of the pass to come, `upper` for the second.
  void lower(std::int64_t begin, std::int64_t end) const {
    Term terms[Group::most];
    int k = 0;
    while (k < n_diagonals_ && a_.offsets[k] <= begin) {
      int count = 0;
      for (; count < Group::most && k < n_diagonals_ && a_.offsets[k] <= begin; ++k)
        terms[count++] = {diagonal(k) + begin, x_ + (begin - a_.offsets[k]), diagonal(k) + (begin + pass_rows)};
      cpu::add_terms<scaled, 2>(count, end - begin, alpha_, terms, y_ + begin);
    }
    for (; k < n_diagonals_ && a_.offsets[k] < end; ++k) {
      std::int64_t const from = a_.offsets[k];
      Term const term{diagonal(k) + from, x_, diagonal(k) + (from + pass_rows)};
      cpu::add_terms<scaled, 1>(1, end - from, alpha_, &term, y_ + from);
    }
  }

  /// A group's terms on the right, all of which exist, of rows whose stored values were all read before.
  void upper(Group group, std::int64_t from, std::int64_t to) const {
    Term terms[Group::most];
    int count = 0;
    Values const ahead = values_ + (from + a_.offsets[group.last - 1] + pass_rows + pass_rows / 2);
    for (int k = group.first; k < group.last; ++k)
      terms[count++] = {diagonal(k) + (from + a_.offsets[k]), x_ + (from + a_.offsets[k]), ahead + k * a_.n};
    cpu::add_terms<scaled, 2>(count, to - from, alpha_, terms, y_ + from);
  }

  /// The same for the last rows of the part: where there are stored values at all, they are in rows after the part.
  void upper_beyond(Group group, std::int64_t from) const {
    for (int k = group.first; k < group.last; ++k) {
      std::int64_t const o = a_.offsets[k];
      Term const term{diagonal(k) + (from + o), x_ + (from + o), diagonal(k) + (from + o + pass_rows)};
      if (std::int64_t const count = std::min(last_, a_.n - o) - from; count > 0)
        cpu::add_terms<scaled, 1>(1, count, alpha_, &term, y_ + from);
    }
  }

  HalfCdsView const& a_;
  Values values_;
  std::span<Group const> groups_;
  T alpha_;
  ConstPointer<T> x_;
  Pointer<T> y_;
  std::int64_t first_block_, last_block_, first_, last_;
  int n_diagonals_;
};

/// One part for each thread.
template <bool scaled, class T, class Values, class Start, class Done>
void run_parts(HalfCdsView const& a, Values values, T alpha, ConstPointer<T> x, Pointer<T> y, Start const& start,
               Done const& done) {
  std::int64_t const blocks = cpu::n_blocks(a.n);
  std::vector<Group> const groups = groups_of(a.offsets);
#pragma omp parallel if (blocks > 1 && 2 * a.n * std::ssize(a.offsets) * cpu::work_of <T> >= cpu::work_worth_threads)
  {
    std::int64_t const threads = omp_get_num_threads(), thread = omp_get_thread_num();
    Part<scaled, T, Values>(a, values, groups, alpha, x, y, blocks * thread / threads, blocks * (thread + 1) / threads)
        .run(start, done);
  }
}

class CpuHalfCds final : public ProductsByTemplates<HalfCdsKernels, CpuHalfCds> {
public:
  template <class T, class Values>
  static void multiply(Context&, HalfCdsView const& a, Values values, T alpha, ConstPointer<T> x, T beta, Pointer<T> y) {
    auto const zero = [](std::int64_t) { return T(0); };
    auto const complete = [=, n = a.n](std::int64_t block) { complete_rows(n, block, y); };
    if (beta != 0)
      run_parts<true>(
          a, values, alpha, x, y, [=](std::int64_t i) { return beta * load(y, i); }, complete);
    else if (alpha != 1)
      run_parts<true>(a, values, alpha, x, y, zero, complete);
    else
      run_parts<false>(a, values, alpha, x, y, zero, complete);
  }

  template <class T, class Values>
  static void multiply_dot(Context& context, HalfCdsView const& a, Values values, ConstPointer<T> x, Pointer<T> y, T* dot,
                           std::int32_t const* stop) {
    if (*stop != 0)
      return;
    using Sum = std::conditional_t<std::is_same_v<T, float>, double, T>;
    Sum* const partial = static_cast<cpu::CpuContext&>(context).partial_sums<Sum>(cpu::n_blocks(a.n));
    auto const zero = [](std::int64_t) { return T(0); };
    run_parts<false>(a, values, T(1), x, y, zero, [=, n = a.n](std::int64_t block) {
      complete_rows(n, block, y);
      partial[block] = cpu::dot_of_rows(block * block_rows, std::min(n, (block + 1) * block_rows), x, ConstPointer<T>(y));
    });
    Sum sum = 0;
    for (std::int64_t block = 0; block < cpu::n_blocks(a.n); ++block)
      sum += partial[block];
    *dot = static_cast<T>(sum);
  }

private:
  /// From sums in the making to numbers.
  static void complete_rows(std::int64_t, std::int64_t, float*) {}
  static void complete_rows(std::int64_t, std::int64_t, double*) {}
  static void complete_rows(std::int64_t n, std::int64_t block, Pointer<DoubleDouble> y) {
    std::int64_t const end = std::min(n, (block + 1) * block_rows);
#pragma omp simd
    for (std::int64_t i = block * block_rows; i < end; ++i)
      store(y, i, cpu::load_sum(y, i).value());
  }
};

}  // namespace

HalfCdsKernels const& HalfCdsKernels::cpu() {
  static CpuHalfCds const kernels;
  return kernels;
}

}  // namespace poisson
