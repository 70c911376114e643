#pragma once

#include "gpu/core/csr_matrix.hpp"

namespace poisson {

/// A^T, on all threads; low values are left out. Columns ascend within rows.
[[nodiscard]] CsrMatrix transposed(CsrMatrix const& a);

/// A B by rows (Gustavson 1978), on all threads; low values are left out. Columns ascend within rows; an entry's terms are summed
/// in the order of A's columns, so the same bits come out every time. Precondition: a.n_columns == b.n_rows.
[[nodiscard]] CsrMatrix sparse_product(CsrMatrix const& a, CsrMatrix const& b);

}  // namespace poisson
