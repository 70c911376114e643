#pragma once

#include "gpu/core/csr_matrix.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace poisson {

/// Which entries of a vector a rank needs of others, and which of its own they need. Its own rows are numbered from 0; entries of
/// others, the ghosts, are numbered from 0 too: those of the first neighbour, those of the next, and so on.
struct RankNeighbor {
  int rank = 0;
  std::vector<std::int32_t> sent;  ///< own rows whose entries the neighbour has as ghosts, in the order of its ghosts
  std::int64_t n_ghosts = 0;       ///< entries that come from it
};

/// The rows of one rank of a square matrix. Rows of several ranks are numbered one after another in the order of the ranks.
struct RankRows {
  std::vector<RankNeighbor> neighbors;      ///< by rank, ascending
  std::shared_ptr<CsrMatrix const> matrix;  ///< own rows; columns are the own rows, then the ghosts

  [[nodiscard]] std::int64_t n_ghosts() const {
    std::int64_t n = 0;
    for (RankNeighbor const& neighbor : neighbors)
      n += neighbor.n_ghosts;
    return n;
  }
};

/// RankRows::matrix in two parts.
struct SplitRows {
  std::shared_ptr<CsrMatrix const> local;      ///< couplings of own rows with each other: square
  std::vector<std::int32_t> rim;               ///< rows that are coupled with ghosts, ascending
  std::shared_ptr<CsrMatrix const> couplings;  ///< of the rim's rows with ghosts, then with own_columns: rim.size() rows
  std::vector<std::int32_t> own_columns{};     ///< own rows with which rows of the rim have couplings that `local` lacks
};

/// Precondition: rows.matrix has n_ghosts() more columns than rows. Throws std::bad_alloc.
[[nodiscard]] SplitRows split(RankRows const& rows);

/// RankRows::matrix again, from the block of own rows and the whole rows of the rim, whose columns are own rows, then ghosts.
[[nodiscard]] CsrMatrix join_rows(CsrMatrix const& local, std::span<std::int32_t const> rim, CsrMatrix const& rim_rows,
                                  std::int64_t n_ghosts);

/// The whole rows of the rim, from the block of own rows and the couplings of the rim with ghosts.
[[nodiscard]] CsrMatrix rows_of_rim(CsrMatrix const& local, std::span<std::int32_t const> rim, CsrMatrix const& couplings);

/// The first row of every rank, and the number of rows: as many entries for each of them as whole rows allow.
[[nodiscard]] std::vector<std::int64_t> share_out_rows(CsrMatrix const& matrix, int ranks);

/// A share of a matrix for each of n_ranks ranks, in blocks of rows; `first_rows` has n_ranks + 1 entries, from 0 to the number of
/// rows. For tests and for matrices from files. Precondition: the matrix is square. Goes through all of its entries.
[[nodiscard]] RankRows rows_of_rank(CsrMatrix const& matrix, std::vector<std::int64_t> const& first_rows, int rank);

}  // namespace poisson
