#pragma once

#include "gpu/core/communicator.hpp"
#include "gpu/core/rank_lattices.hpp"
#include "gpu/core/rank_rows.hpp"
#include "gpu/formats/matrix.hpp"

#include <cstdint>
#include <memory>
#include <span>

namespace poisson {

/// The rows of one rank of a mesh of lattices that several share, for RankMatrix.
struct LatticeRows {
  std::unique_ptr<Matrix> local;  ///< half_cds on the lattices here, without the unknowns of others
  SplitRows rows;                 ///< the rim's, without `local`
  std::int64_t emptied =
      0;  ///< couplings in rows and columns of own unknowns with Dirichlet values, but for their diagonal entries
};

/// Sets lattices.added. `assembled`: half_cds of the lattices here, as if there were no others. `fixed`: of the unknowns on rims,
/// then of ghosts; 1 where there is a Dirichlet value. Collective. Throws OutOfMemoryError.
[[nodiscard]] LatticeRows rows_of_lattices(Communicator& ranks, RankLattices& lattices, std::unique_ptr<Matrix> assembled,
                                           std::span<std::uint8_t const> fixed);

/// Of a vector of own unknowns and ghosts, to which every rank contributes what its lattices do, the sums in own rows. Collective.
[[nodiscard]] HostVector<double> sum_in_rows(Communicator& ranks, RankLattices const& lattices, HostVector<double> const& parts);

}  // namespace poisson
