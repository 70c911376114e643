#pragma once

#include "gpu/core/communicator.hpp"
#include "gpu/core/shared_lattices.hpp"
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

/// Makes the rank's rows from the matrix in half_cds and the right-hand side that the lattices here have, as if there were no
/// others; both are in the memory of one backend. Sets lattices.added. `fixed` has an entry for each of the unknowns on rims, then
/// for each ghost: 1 where there is a Dirichlet value. Collective. Throws OutOfMemoryError.
[[nodiscard]] LatticeRows rows_of_lattices(Communicator& ranks, SharedLattices& lattices, std::unique_ptr<Matrix> matrix,
                                           Field const& rhs, std::span<std::uint8_t const> fixed);

/// Makes the rank's rows without entries: `local` of the result is the operator on the lattices here
/// (LatticeOperator::share). Moves `matrix`, which is a LatticeOperator. `rhs` and `fixed` are as in rows_of_lattices.
/// Collective. Throws OutOfMemoryError.
[[nodiscard]] BlockSystem rows_of_operator(Communicator& ranks, std::shared_ptr<SharedLattices const> lattices,
                                           std::unique_ptr<Matrix> matrix, Field const& rhs, HostVector<std::uint8_t> fixed);

}  // namespace poisson
