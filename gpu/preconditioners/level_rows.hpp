#pragma once

#include "gpu/core/communicator.hpp"
#include "gpu/core/csr_matrix.hpp"
#include "gpu/core/row_map.hpp"
#include "gpu/exchange/halo.hpp"
#include "gpu/formats/csr.hpp"
#include "gpu/formats/rank_matrix.hpp"
#include "gpu/kernels/aggregation.hpp"
#include "gpu/kernels/smoother.hpp"
#include "gpu/preconditioners/lanczos.hpp"
#include "gpu/preconditioners/multigrid_hierarchy.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

/// Levels of multigrid by rows, of any matrix, on one rank or shared by several. Functions are collective.
namespace poisson {

/// The rows of a level that this rank has, with entries in double. Columns are own ones, then ghosts.
struct LevelRows {
  RowMap rows;                 ///< RowMap::is_shared: the matrix is in host memory; else it is where the next level is made
  std::unique_ptr<Csr> own{};  ///< null where the matrix is the caller's
  Csr const* matrix = own.get();

  LevelRows() = default;
  LevelRows(RowMap of_rows, std::unique_ptr<Csr> of_matrix) : rows(std::move(of_rows)), own(std::move(of_matrix)) {}
};

/// Returns the rows of the finest level, in the memory of `host`.
[[nodiscard]] LevelRows finest_rows(RankMatrix const& a, Context& host);

/// Makes the halo of vectors of own entries, then ghosts.
template <class V>
std::unique_ptr<Halo<V>> halo_of(Context& context, Communicator& ranks, RowMap const& rows) {
  return std::make_unique<Halo<V>>(context, ranks, HaloPlaces(rows.n_own(), rows.neighbors));
}

/// Returns an estimate of the largest eigenvalue of D^-1 A for a symmetric positive definite A, by largest_by_lanczos, on the
/// backend of A.
template <class V>
double largest_of_symmetric(Communicator& ranks, MultigridLevel<V> const& level, RowMap const& rows) {
  Context& context = level.matrix->context();
  return largest_by_lanczos(level, pseudo_random_vector<V>(context, level.n(), rows.first[rows.me]), ranks);
}
/// Returns an estimate of the largest |eigenvalue| of D^-1 A by the power method in the norm of D; NaN where it finds none. On the
/// host, for rows that ranks share.
[[nodiscard]] double largest_of_any(Communicator& ranks, LevelRows const& level, double const* diagonal);

/// Returns the matrix with entries in V. It is converted on the host: a device never sees more than what it will keep.
template <class V>
[[nodiscard]] std::unique_ptr<Matrix> in_precision(std::shared_ptr<CsrMatrix const> rows, Context& context) {
  FormatOptions options;
  options.precision = std::is_same_v<V, float> ? MatrixPrecision::single : MatrixPrecision::double_;
  options.conversion = Conversion::host;
  return make_matrix(Format::csr, std::move(rows), context, options);
}
[[nodiscard]] std::unique_ptr<Csr> as_matrix(Context& context, SparseArrays arrays);
/// Returns the matrix with entries in V, in the memory of `context`.
template <class V>
[[nodiscard]] std::unique_ptr<Matrix> stored_as(Format format, Csr const& matrix, Context& context);

/// Returns the rows of all ranks, on every rank, from own ones whose columns are own ones, then ghosts.
[[nodiscard]] std::shared_ptr<CsrMatrix const> whole_matrix(Communicator& ranks, CsrView const& own, RowMap const& rows,
                                                            RowMap const& columns);

/// A coarser level with P and P^T, which are where the matrix of the finer level is.
struct Coarser {
  LevelRows level;
  std::unique_ptr<Csr> p, r;
  RowMap of_p, of_r;  ///< the columns of P, and of P^T
};
/// Makes P^T A P: of a level of one rank where its matrix is, of one that is shared on the context's backend. `p`: own rows of P;
/// its columns are `of_p`, own unknowns of the coarser level and ghosts.
[[nodiscard]] Coarser coarser_level(Communicator& ranks, Context& context, LevelRows const& fine, std::unique_ptr<Csr> p,
                                    RowMap of_p, PreconditionerOptions const& options);

/// A smaller space inside that of the level before: own rows of P, whose columns are `of_p`.
struct NestedLevel {
  std::shared_ptr<CsrMatrix const> p;
  RowMap of_p;
};
/// Returns the levels of `nested`, without what follows from unknowns that are coupled to no others in the finest matrix: they go
/// on alone. `finest` is in the host's memory.
[[nodiscard]] std::vector<NestedLevel> nested_levels(Communicator& ranks, CsrView const& finest, RankNestedSpaces nested);

/// Returns these rows as a matrix.
[[nodiscard]] RankMatrix matrix_of_rows(Context& context, Communicator& ranks, RankRows const& rows);
/// Returns the level as a matrix that has all nodes of `blocks` beside own ones among the ghosts, as one that was assembled has
/// them.
[[nodiscard]] RankMatrix matrix_of_blocks(Context& context, Communicator& ranks, RankBlocks const& blocks, LevelRows const& level);

}  // namespace poisson
