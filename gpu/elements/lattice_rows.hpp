#pragma once

#include "gpu/core/communicator.hpp"
#include "gpu/core/rank_lattices.hpp"
#include "gpu/elements/block_system.hpp"
#include "gpu/formats/matrix.hpp"

#include <cstdint>
#include <memory>
#include <span>

namespace poisson {

/// The rows of one rank of a mesh of lattices that several share.
struct LatticeRows {
  BlockSystem block;  ///< half_cds on the lattices here, without the unknowns of others
  std::int64_t emptied =
      0;  ///< couplings in rows and columns of own unknowns with Dirichlet values, but for their diagonal entries
};

/// Of the lattices here, as if there were no others, the matrix in half_cds and the right-hand side. Sets lattices.added. `fixed`:
/// of the unknowns on rims, then of ghosts; 1 where there is a Dirichlet value. Collective. Throws OutOfMemoryError.
[[nodiscard]] LatticeRows rows_of_lattices(Communicator& ranks, RankLattices& lattices, std::unique_ptr<Matrix> matrix,
                                           HostVector<double> const& rhs, std::span<std::uint8_t const> fixed);

/// The same without entries: the operator on the lattices here (elements/operator_of_rank.hpp). Moves `matrix`, a LatticeOperator.
[[nodiscard]] BlockSystem rows_of_operator(Communicator& ranks, std::shared_ptr<RankLattices const> lattices,
                                           std::unique_ptr<Matrix> matrix, HostVector<double> const& rhs,
                                           HostVector<std::uint8_t> fixed);

}  // namespace poisson
