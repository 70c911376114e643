#pragma once

#include "gpu/core/communicator.hpp"
#include "gpu/core/shared_lattices.hpp"
#include "gpu/elements/block_system.hpp"
#include "gpu/formats/matrix.hpp"

#include <cstdint>
#include <memory>

namespace poisson {

/// Makes the rows of one rank of a mesh of lattices that several share. `matrix`, half_cds or matrix_free, and the right-hand side
/// are what the lattices here have, as if there were no others; both are in the memory of one backend. `fixed` has an entry for
/// each of the unknowns on rims, then for each ghost: 1 where there is a Dirichlet value. Collective. Throws OutOfMemoryError.
[[nodiscard]] BlockSystem rows_of_lattices(Communicator& ranks, std::shared_ptr<SharedLattices const> lattices,
                                           std::unique_ptr<Matrix> matrix, Field const& rhs, HostVector<std::uint8_t> fixed);

}  // namespace poisson
