#pragma once

#include "gpu/core/csr_matrix.hpp"
#include "gpu/core/host_vector.hpp"

#include <cstdint>

namespace poisson {

/// A permutation of the rows of a matrix.
struct RowOrder {
  HostVector<std::int32_t> rows;  ///< rows[i]: the row that comes i-th
  std::int64_t n_colors = 0;
};

/// Greedy multicolor ordering (Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., 12.4): every row gets the least color
/// that no earlier row coupled with it has; rows are then ordered by color, and in their natural order within one. If the pattern
/// of `a` is symmetric, rows of one color are not coupled. A box of Q1 elements has 8 colors.
[[nodiscard]] RowOrder multicolor_order(CsrMatrix const& a);

/// P A P^T: row and column i of the result are row and column rows[i] of `a`. Columns ascend. Precondition: a is square.
[[nodiscard]] CsrMatrix reordered(CsrMatrix const& a, RowOrder const& order);

/// The levels of the rows in the dependence graph of a triangular solve (level scheduling, Saad, 2nd ed., 11.6): level 0 for rows
/// that depend on no other, else one more than the highest level among the rows that a row depends on.
struct RowLevels {
  HostVector<std::int32_t> level;
  std::int64_t n_levels = 0;
};
/// Returns the levels of the lower triangle of `a`, or of the upper one if `upper`.
[[nodiscard]] RowLevels levels_of(CsrMatrix const& a, bool upper);

}  // namespace poisson
