#pragma once

#include "gpu/core/coo_matrix.hpp"
#include "gpu/core/csr_matrix.hpp"
#include "gpu/formats/csr.hpp"

#include <memory>

namespace poisson {

/// CSR from a list of entries (COO) in any order. Entries at the same place are summed in the order of the list, so that the result
/// depends neither on threads nor on the backend; zeros are kept. Throws InputError naming the first entry whose row or column is
/// outside the matrix.
[[nodiscard]] CsrMatrix csr_from_coo(CooMatrix const& coo);
/// Makes the same CSR in the context's memory, where the entries are sorted; on a device that takes 32 bytes of scratch memory an
/// entry. Throws InputError naming the first entry whose row or column is outside the matrix; OutOfMemoryError.
[[nodiscard]] std::unique_ptr<Csr> csr_from_coo(CooMatrix const& coo, Context& context);

}  // namespace poisson
