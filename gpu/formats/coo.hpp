#pragma once

#include "gpu/core/coo_matrix.hpp"
#include "gpu/core/csr_matrix.hpp"
#include "gpu/formats/csr.hpp"

#include <memory>

namespace poisson {

/// Entries at the same place are summed in the order of the list, so that the result depends neither on threads nor on the
/// backend; zeros are kept. Threaded. Throws InputError naming the first entry whose row or column the matrix does not have.
[[nodiscard]] CsrMatrix csr_from_coo(CooMatrix const& coo);
/// The same, sorted in the context's memory; on a device 32 bytes an entry are needed meanwhile.
/// Throws InputError as above; OutOfMemoryError.
[[nodiscard]] std::unique_ptr<Csr> csr_from_coo(CooMatrix const& coo, Context& context);

}  // namespace poisson
