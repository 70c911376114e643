#pragma once

#include "assembly/mesh/counts.hpp"

#include <cstdint>
#include <vector>

namespace poisson::assembly {

/// Some cells of a box as runs along x, and which of them belong together: runs that share a vertex are of one part.
class BoxRuns {
public:
  explicit BoxRuns(Counts3 const& cells);
  /// Adds the cells with begin <= x < end of row y + z n_y. Precondition: runs come ascending, and do not touch each other in a
  /// row.
  void add(std::int64_t row, std::int64_t begin, std::int64_t end);
  /// Finds the parts of all runs that were added; once.
  void find_parts();
  /// Calls action(row, begin, end, part) for all runs, ascending. Parts are numbered from 0 in the order of their first runs.
  template <class Action>
  void for_each(Action const& action) const {
    std::size_t i = 0;
    for (std::int64_t row = 0; row + 1 < std::ssize(first_); ++row)
      for (; i < static_cast<std::size_t>(first_[static_cast<std::size_t>(row) + 1]); ++i)
        action(row, runs_[i].begin, runs_[i].end, runs_[i].part);
  }

private:
  struct Run {
    std::int32_t begin, end, part;
  };
  std::int32_t root(std::int32_t run);
  void join_rows(std::size_t a, std::size_t b);

  Counts3 cells_;
  std::vector<Run> runs_;            ///< `part` is another run of it until find_parts is done
  std::vector<std::int64_t> first_;  ///< run of every row, and behind the last
  std::int64_t n_rows_begun_ = 0;
};

}  // namespace poisson::assembly
