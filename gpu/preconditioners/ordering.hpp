#pragma once

#include "gpu/core/communicator.hpp"
#include "gpu/core/csr_matrix.hpp"
#include "gpu/core/host_vector.hpp"
#include "gpu/core/rank_rows.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace poisson {

/// An order of elimination of the rows of a matrix. Where several ranks share them it is that of own rows and ghosts, which follow
/// own rows in number.
struct RowOrder {
  HostVector<std::int32_t> rows;   ///< rows[i]: the row that comes i-th
  HostVector<std::int32_t> place;  ///< place[rows[i]] == i
  HostVector<std::int32_t> color;  ///< by row; empty in the natural order
  std::int64_t n_colors = 0;       ///< of all ranks
};

/// Returns the order of the numbers that rows have in the whole matrix.
[[nodiscard]] RowOrder natural_order(std::span<std::int64_t const> numbers);

/// Greedy multicolor ordering (Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., 12.4): every row gets the least color
/// that no row coupled with it, and before it in the natural order, has; rows are then ordered by color, and in their natural order
/// within one. If the pattern is symmetric, rows of one color are not coupled. A box of Q1 elements has 8 colors. Collective.
[[nodiscard]] RowOrder multicolor_order(Communicator& ranks, RankRows const& rows, RowOrder const& natural);

/// Returns P A P^T: row and column i of the result are row and column order.rows[i] of `a`. Columns ascend. Rows of ghosts are
/// those of `of_ghosts`. Precondition: `a` is square, or its further columns are the ghosts.
[[nodiscard]] CsrMatrix reordered(CsrMatrix const& a, RowOrder const& order, CsrMatrix const& of_ghosts = {});

/// The levels of own rows and ghosts in the dependence graph of a triangular solve (level scheduling, Saad, 2nd ed., 11.6): level 0
/// for rows that depend on no other, else one more than the highest level among the rows that a row depends on.
struct RowLevels {
  HostVector<std::int32_t> level;
  std::int64_t n_levels = 0;  ///< of all ranks
};
/// Returns the levels of the lower triangle in this order, or of the upper one if `upper`. Collective.
[[nodiscard]] RowLevels levels_of(Communicator& ranks, RankRows const& rows, RowOrder const& order, bool upper);

/// Returns the fewest levels before which ranks must exchange what they have, ascending and the same on all: a row of a level gets
/// what it needs of others in one of these exchanges. Collective.
[[nodiscard]] std::vector<std::int64_t> exchange_points(Communicator& ranks, RankRows const& rows, RowOrder const& order,
                                                        RowLevels const& levels, bool upper);

}  // namespace poisson
