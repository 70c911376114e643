#pragma once

#include "assembly/space/space.hpp"
#include "assembly/system/problem_data.hpp"
#include "gpu/core/csr_matrix.hpp"

#include <array>
#include <cstdint>
#include <vector>

/// Sparsity patterns of system matrices, as CSR matrices whose values are all zero. Rows of constrained unknowns have the diagonal
/// entry only; other rows have no column of a constrained unknown.
namespace poisson::assembly {

/// Couplings of a box, direction by direction: node i is coupled to nodes lo[d][i] ... hi[d][i] of direction d, except those on
/// Dirichlet faces. Dirichlet conditions hold on whole faces, so the free nodes are a box too, and the columns of each row as well.
struct BoxCouplings {
  std::array<std::vector<std::int32_t>, 3> lo, hi;

  BoxCouplings(Space const& space, ProblemData const& data);
  /// Number of these nodes.
  [[nodiscard]] std::int64_t width(int d, std::int64_t i) const { return hi[d][i] - lo[d][i] + 1; }
};

/// The pattern of a box. Precondition: `constraints` are the Dirichlet conditions that the couplings were made with, and no others.
[[nodiscard]] CsrMatrix box_pattern(Space const& space, BoxCouplings const& couplings, Constraints const& constraints);

/// The pattern of C^T A C for any space and closed constraints.
[[nodiscard]] CsrMatrix general_pattern(Space const& space, Constraints const& constraints);

}  // namespace poisson::assembly
