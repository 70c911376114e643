#include "app/run/shared_matrix.hpp"

#include "gpu/core/communicator.hpp"
#include "gpu/core/row_map.hpp"
#include "gpu/elements/lattice_operator.hpp"
#include "gpu/solvers/true_residual.hpp"

#include <utility>

namespace poisson::app {

SharedMatrix::SharedMatrix(Team& team, RankRows rows, SplitRows parts, std::unique_ptr<Matrix> local)
    : team_(team), rows_(std::move(rows)) {
  hold(std::move(local), parts, nullptr);
}

SharedMatrix::SharedMatrix(Team& team, BlockSystem block, std::vector<RankNeighbor> neighbors,
                           std::shared_ptr<SharedLattices const> lattices)
    : team_(team), rows_{std::move(neighbors), nullptr}, rim_(std::move(block.rows)), rim_rows_(std::move(block.rim_rows)) {
  hold(std::move(block.local), rim_, std::move(lattices));
}

void SharedMatrix::hold(std::unique_ptr<Matrix> local, SplitRows const& rim, std::shared_ptr<SharedLattices const> lattices) {
  if (team_.is_alone())
    whole_ = std::move(local);
  else
    part_ = std::make_unique<RankMatrix>(std::move(local), rim, rows_.neighbors, team_.communicator(), std::move(lattices));
}

RankRows SharedMatrix::rows() const {
  if (rows_.matrix != nullptr)
    return rows_;
  if (auto const* const shared = dynamic_cast<LatticeOperator const*>(&local()); shared != nullptr && shared->is_shared())
    return {rows_.neighbors, std::make_shared<CsrMatrix const>(shared->own_rows())};
  CsrMatrix own = local().to_csr();
  if (rows_.neighbors.empty())
    return {{}, std::make_shared<CsrMatrix const>(std::move(own))};
  return {rows_.neighbors, std::make_shared<CsrMatrix const>(join_rows(own, rim_.rim, rim_rows_, rows_.n_ghosts()))};
}

Field SharedMatrix::true_residual(Field const& right, FieldPair const& solution) const {
  if (part_ == nullptr && rows_.matrix == nullptr && local().n_rows() > 0)
    return stored_residual(local(), right, solution.high, solution.low);
  Communicator& ranks = team_.communicator();
  std::span<double const> const b = right.host();
  std::span<double const> x = solution.high.host(), x_low = solution.low.host();
  HostVector<double> all, all_low;  // with ghosts
  if (part_ != nullptr) {
    auto const with_ghosts = [&](std::span<double const> own, HostVector<double>& values) -> std::span<double const> {
      auto const ghosts = values_of_ghosts<double>(ranks, rows_.neighbors, own);
      values.assign(own.begin(), own.end());
      values.insert(values.end(), ghosts.begin(), ghosts.end());
      return values;
    };
    bool const extended = any_of_ranks(ranks, !x_low.empty());
    x = with_ghosts(x, all);
    if (extended)
      x_low = with_ghosts(x_low, all_low);
  }
  if (rows_.matrix != nullptr || local().n_rows() == 0)
    return Field(residual_of(CsrResidualCheck(rows_.matrix != nullptr ? *rows_.matrix : rim_rows_), x, b, x_low));
  if (dynamic_cast<LatticeOperator const*>(&local()) != nullptr)
    return Field(residual_of(StoredResidualCheck(local()), x, b, x_low));
  return Field(residual_of(BlockResidualCheck(local(), rim_.rim, rim_rows_), x, b, x_low));
}

}  // namespace poisson::app
