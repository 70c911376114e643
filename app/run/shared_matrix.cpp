#include "app/run/shared_matrix.hpp"

#include "gpu/core/communicator.hpp"
#include "gpu/core/csr_entries.hpp"
#include "gpu/exchange/halo.hpp"
#include "gpu/solvers/true_residual.hpp"

#include <utility>
#include <vector>

namespace poisson::app {

SharedMatrix::SharedMatrix(Team& team, RankRows rows, SplitRows parts, std::unique_ptr<Matrix> local)
    : team_(team), rows_(std::move(rows)) {
  if (team_.is_alone())
    whole_ = std::move(local);
  else
    part_ = std::make_unique<RankMatrix>(std::move(local), parts, rows_.neighbors, team_.communicator());
}

SharedMatrix::SharedMatrix(Team& team, BlockSystem block, std::vector<RankNeighbor> neighbors,
                           std::shared_ptr<SharedLattices const> lattices)
    : team_(team), rows_{std::move(neighbors), nullptr}, is_block_(block.rim.couplings != nullptr) {
  Communicator& ranks = team_.communicator();
  if (is_block_)
    part_ = std::make_unique<RankMatrix>(std::move(block.local), std::move(block.rim), rows_.neighbors, ranks);
  else if (lattices != nullptr)
    part_ = std::make_unique<RankMatrix>(std::move(block.local), std::move(lattices), ranks);
  else
    whole_ = std::move(block.local);
}

RankRows SharedMatrix::rows() const {
  if (rows_.matrix != nullptr)
    return rows_;
  if (part_ != nullptr && part_->lattices() != nullptr)
    return {rows_.neighbors, std::make_shared<CsrMatrix const>(part_->rows_of_lattices())};
  CsrMatrix own = local().to_csr();
  if (part_ != nullptr && !part_->own_columns().empty()) {
    HostVector<std::int32_t> const rim = part_->rim();
    CsrMatrix couplings = part_->couplings();
    std::vector<MatrixEntry> entries;
    entries.reserve(static_cast<std::size_t>(own.nnz() + couplings.nnz()));
    for_entries(own, [&](std::int64_t row, std::int32_t column, double value) { entries.push_back({row, column, value}); });
    std::int64_t const n_ghosts = part_->n_ghosts();
    for_entries(couplings, [&](std::int64_t row, std::int32_t column, double value) {
      bool const is_own = column >= n_ghosts;
      entries.push_back({rim[static_cast<std::size_t>(row)],
                         is_own ? part_->own_columns()[static_cast<std::size_t>(column - n_ghosts)]
                                : static_cast<std::int32_t>(own.n_rows + column),
                         value});
    });
    return {rows_.neighbors, std::make_shared<CsrMatrix const>(csr_of_entries(own.n_rows, own.n_rows + n_ghosts, entries))};
  }
  if (rows_.neighbors.empty())
    return {{}, std::make_shared<CsrMatrix const>(std::move(own))};
  HostVector<std::int32_t> const rim = part_->rim();
  CsrMatrix const of_rim = rows_of_rim(own, rim, part_->couplings());
  return {rows_.neighbors, std::make_shared<CsrMatrix const>(join_rows(own, rim, of_rim, rows_.n_ghosts()))};
}

Field SharedMatrix::true_residual(Field const& b, FieldPair const& solution) const {
  FieldPair all;
  FieldPair const* x = &solution;
  if (part_ != nullptr) {
    Communicator& ranks = team_.communicator();
    Context& context = local().context();
    auto const extend = [&](Field const& own) {
      return Field(is_block_ ? part_->with_columns(own.on(context))
                             : with_ghosts(context, ranks, rows_.neighbors, own.on(context)));
    };
    all.high = extend(solution.high);
    if (any_of_ranks(ranks, !solution.low.empty()))
      all.low = extend(solution.low);
    x = &all;
  }
  if (rows_.matrix != nullptr)
    return Field(residual_of(CsrResidualCheck(*rows_.matrix), x->high.host(), b.host(), x->low.host()));
  if (!is_block_)
    return stored_residual(local(), b, x->high, x->low);
  if (local().n_rows() == 0)
    return Field(HostVector<double>());
  return stored_residual(local(), part_->formulas_of_rim(), part_->stored_couplings(), b, x->high, x->low);
}

}  // namespace poisson::app
