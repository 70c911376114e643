#pragma once

#include "gpu/core/csr_matrix.hpp"
#include "gpu/core/host_vector.hpp"

#include <cstdint>

namespace poisson {

/// The rows of a matrix in an order of their own.
struct RowOrder {
  HostVector<std::int32_t> rows;  ///< the row at every place
  std::int64_t n_colors = 0;
};

/// Multicolor ordering (Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., 12.4): every row gets the least color that
/// none of the rows before it has that it couples with, and rows are taken color by color, in their own order within each. Rows of
/// one color do not couple with each other where the pattern of `a` is symmetric. 8 colors on a box of Q1 elements.
[[nodiscard]] RowOrder multicolor_order(CsrMatrix const& a);

/// P A P^T: row and column i of the result are row and column rows[i] of `a`. Columns ascend. Precondition: a is square.
[[nodiscard]] CsrMatrix reordered(CsrMatrix const& a, RowOrder const& order);

/// For every row the number of its level, from 0, in the lower or upper triangle of `a`: one more than the highest of the rows that
/// it needs.
struct RowLevels {
  HostVector<std::int32_t> level;
  std::int64_t n_levels = 0;
};
[[nodiscard]] RowLevels levels_of(CsrMatrix const& a, bool upper);

}  // namespace poisson
