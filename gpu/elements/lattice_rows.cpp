#include "gpu/elements/lattice_rows.hpp"

#include "gpu/core/array.hpp"
#include "gpu/elements/element_system.hpp"
#include "gpu/elements/lattice_operator.hpp"
#include "gpu/exchange/halo.hpp"
#include "gpu/formats/lattice_half_cds.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/vectors.hpp"

#include <utility>

namespace poisson {

namespace {

/// Returns the entries in own rows of a vector that is a sum over ranks. `parts`, in the backend's memory, is what the lattices of
/// this rank contribute to it, for own unknowns, then for ghosts. Collective.
Array<double> sum_in_rows(Communicator& ranks, SharedLattices const& lattices, Context& context, Array<double> const& parts) {
  Halo<double> sums(context, ranks, HaloPlaces(lattices.n_rows, lattices.neighbors), HaloDirection::to_owners);
  Array<double> result(context, lattices.n_rows);
  kernels_for<VectorKernels<double>>(context).copy(context, result.size(), parts.data(), result.data());
  sums.start(parts.data());
  sums.add(1, result.data());
  return result;
}

}  // namespace

BlockSystem rows_of_lattices(Communicator& ranks, std::shared_ptr<SharedLattices const> lattices, std::unique_ptr<Matrix> matrix,
                             Field const& rhs, HostVector<std::uint8_t> fixed) {
  Context& context = matrix->context();
  BlockSystem result;
  result.rhs = Field(sum_in_rows(ranks, *lattices, context, rhs.on(context)));
  if (auto* const stored = dynamic_cast<LatticeHalfCds*>(matrix.get()); stored != nullptr) {
    stored->share(*lattices, ranks);
  } else {
    auto& here = dynamic_cast<LatticeOperator&>(*matrix);
    Array<double> diagonal(context, here.n_rows());
    here.diagonal(diagonal.data());
    diagonal = sum_in_rows(ranks, *lattices, context, diagonal);
    here.share(std::move(lattices), std::make_shared<HostVector<std::uint8_t> const>(std::move(fixed)), diagonal, ranks);
    here.row_not_finite = lowest_not_finite(context, diagonal.size(), diagonal.data());
  }
  result.local = std::move(matrix);
  return result;
}

}  // namespace poisson
