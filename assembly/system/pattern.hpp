#pragma once

#include "assembly/space/space.hpp"
#include "assembly/system/problem_data.hpp"
#include "gpu/core/csr_matrix.hpp"

#include <array>
#include <cstdint>
#include <vector>

/// Which entries the matrix of a space has. Rows of constrained unknowns have their diagonal alone; the others have no column of a
/// constrained unknown. All values are zero.
namespace poisson::assembly {

/// Couplings of a box by direction: node i couples to nodes lo[i] .. hi[i], those on Dirichlet faces left out. As Dirichlet
/// conditions hold on whole faces, the free nodes are a box too, and so are the columns of every row.
struct BoxCouplings {
  std::array<std::vector<std::int32_t>, 3> lo, hi;

  BoxCouplings(Space const& space, ProblemData const& data);
  [[nodiscard]] std::int64_t width(int d, std::int64_t i) const { return hi[d][i] - lo[d][i] + 1; }
};

/// Precondition: `constraints` are the Dirichlet conditions of the couplings, and nothing else.
[[nodiscard]] CsrMatrix box_pattern(Space const& space, BoxCouplings const& couplings, Constraints const& constraints);

/// Of C^T A C, for any space and constraints.
[[nodiscard]] CsrMatrix general_pattern(Space const& space, Constraints const& constraints);

}  // namespace poisson::assembly
