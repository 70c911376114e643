#pragma once

#include "gpu/kernels/cpu/cpu.hpp"
#include "gpu/kernels/cpu/diagonals.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace poisson::cpu {

/// Diagonals first ... last - 1 whose offsets are near each other.
struct DiagonalGroup {
  static constexpr int most = 64;              ///< diagonals
  static constexpr std::int64_t reach = 2048;  ///< between offsets, so that what is read a second time is still in a cache near by
  int first, last;
};

/// The off-diagonals in groups, by ascending offset.
[[nodiscard]] inline std::vector<DiagonalGroup> groups_of(std::span<std::int32_t const> offsets) {
  std::vector<DiagonalGroup> groups;
  for (int k = 1; k < static_cast<int>(offsets.size()); ++k)
    if (groups.empty() || offsets[k] - offsets[groups.back().first] > DiagonalGroup::reach ||
        k - groups.back().first == DiagonalGroup::most)
      groups.push_back({k, k + 1});
    else
      groups.back().last = k + 1;
  return groups;
}

/// Diagonals of a symmetric matrix of n rows, as HalfCdsView says, but one begins `stride` values after the one before: the matrix
/// may be a block of a larger one's diagonal.
struct HalfDiagonals {
  std::int64_t n, stride;
  std::span<std::int32_t const> offsets;
};

/// The rows of one thread. A stored value is read from memory once: the lower term of its row uses it when its pass comes, and the
/// upper terms of the rows about `offset` before follow soon after, group by group, while it is in a cache. Only where
/// those rows belong to the thread before are values read a second time, by that thread. Bytes per row of D stored diagonals:
/// 8 D of values, 8 of x, and y written and read for ownership (in DoubleDouble twice that of x and y); x and y of the rows within
/// the reach of the diagonals stay in the caches. Until a row is complete its place in y holds a sum in the making
/// (load_sum).
template <bool scaled, class T, class Values>
class HalfCdsPart {
public:
  HalfCdsPart(HalfDiagonals const& a, Values values, std::span<DiagonalGroup const> groups, T alpha, ConstPointer<T> x,
              Pointer<T> y, std::int64_t first_block, std::int64_t last_block)
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
        n_diagonals_(static_cast<int>(a.offsets.size())),
        next_done_(first_block) {}

  /// y = alpha A x + start for the part, where `start(i)` is what y_i begins with, read before row i is written;
  /// `done(block)` is called once for each block, in order, soon after its rows are complete.
  template <class Start, class Done>
  void run(Start const& start, Done const& done) {
    for (std::int64_t begin = first_; begin < last_; begin += pass_rows)
      pass(begin, start, done);
    finish(done);
  }

  /// The steps of `run`, for several columns in turn: a pass that begins with a row, in ascending order, and the end.
  template <class Start, class Done>
  void pass(std::int64_t begin, Start const& start, Done const& done) {
    std::int64_t const reach = a_.offsets.back(), end = std::min(last_, begin + pass_rows);
    begin_rows(begin, end, start);
    lower(begin, end);
    for (DiagonalGroup const group : groups_) {
      std::int64_t const lag = a_.offsets[group.last - 1];
      std::int64_t const from = std::max(first_, begin - lag);
      if (from < end - lag)
        upper(group, from, end - lag);
    }
    for (; next_done_ + 1 < last_block_ && (next_done_ + 1) * block_rows <= end - reach; ++next_done_)
      done(next_done_);
  }
  template <class Done>
  void finish(Done const& done) {
    for (DiagonalGroup const group : groups_)
      upper_beyond(group, std::max(first_, last_ - a_.offsets[group.last - 1]));
    for (; next_done_ < last_block_; ++next_done_)
      done(next_done_);
  }

private:
  using Term = cpu::Term<Values, ConstPointer<T>>;

  [[nodiscard]] Values diagonal(int k) const { return values_ + k * a_.stride; }

  template <class Start>
  void begin_rows(std::int64_t begin, std::int64_t end, Start const& start) const {
    for (std::int64_t i = begin; i < end; i += line_rows) {
      prefetch(values_ + (i + pass_rows));
      prefetch(x_ + (i + pass_rows));
      prefetch_to_write(y_ + (i + pass_rows));
    }
#pragma omp simd
    for (std::int64_t i = begin; i < end; ++i)
      store(y_, i, start(i));
  }

  /// The main diagonal and the terms on its left. These ask for the first half of the pass to come, `upper` for the second.
  void lower(std::int64_t begin, std::int64_t end) const {
    Term terms[DiagonalGroup::most];
    int k = 0;
    while (k < n_diagonals_ && a_.offsets[k] <= begin) {
      int count = 0;
      for (; count < DiagonalGroup::most && k < n_diagonals_ && a_.offsets[k] <= begin; ++k)
        terms[count++] = {diagonal(k) + begin, x_ + (begin - a_.offsets[k]), diagonal(k) + (begin + pass_rows)};
      add_terms<scaled, 2>(count, end - begin, alpha_, terms, y_ + begin);
    }
    for (; k < n_diagonals_ && a_.offsets[k] < end; ++k) {
      std::int64_t const from = a_.offsets[k];
      Term const term{diagonal(k) + from, x_, diagonal(k) + (from + pass_rows)};
      add_terms<scaled, 1>(1, end - from, alpha_, &term, y_ + from);
    }
  }

  /// A group's terms on the right, all of which exist, of rows whose stored values were all read before.
  void upper(DiagonalGroup group, std::int64_t from, std::int64_t to) const {
    Term terms[DiagonalGroup::most];
    int count = 0;
    Values const ahead = values_ + (from + a_.offsets[group.last - 1] + pass_rows + pass_rows / 2);
    for (int k = group.first; k < group.last; ++k)
      terms[count++] = {diagonal(k) + (from + a_.offsets[k]), x_ + (from + a_.offsets[k]), ahead + k * a_.stride};
    add_terms<scaled, 2>(count, to - from, alpha_, terms, y_ + from);
  }

  /// Adds a group's terms on the right for the last rows of the part. Where their stored values exist at all, they are in rows
  /// after the part.
  void upper_beyond(DiagonalGroup group, std::int64_t from) const {
    for (int k = group.first; k < group.last; ++k) {
      std::int64_t const o = a_.offsets[k];
      Term const term{diagonal(k) + (from + o), x_ + (from + o), diagonal(k) + (from + o + pass_rows)};
      if (std::int64_t const count = std::min(last_, a_.n - o) - from; count > 0)
        add_terms<scaled, 1>(1, count, alpha_, &term, y_ + from);
    }
  }

  HalfDiagonals const& a_;
  Values values_;
  std::span<DiagonalGroup const> groups_;
  T alpha_;
  ConstPointer<T> x_;
  Pointer<T> y_;
  std::int64_t first_block_, last_block_, first_, last_;
  int n_diagonals_;
  std::int64_t next_done_;  ///< block
};

/// Turns the sums in the making of a block of rows into numbers.
inline void complete_rows(std::int64_t, std::int64_t, float*) {}
inline void complete_rows(std::int64_t, std::int64_t, double*) {}
inline void complete_rows(std::int64_t n, std::int64_t block, Pointer<DoubleDouble> y) {
  std::int64_t const end = std::min(n, (block + 1) * block_rows);
#pragma omp simd
  for (std::int64_t i = block * block_rows; i < end; ++i)
    store(y, i, load_sum(y, i).value());
}

}  // namespace poisson::cpu
