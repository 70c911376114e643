#pragma once

#include "assembly/space/reference_element.hpp"
#include "assembly/space/space.hpp"
#include "gpu/core/csr_matrix.hpp"

namespace poisson::assembly {

/// P from elements of order 1 on the same cells, n_dofs x n_dofs: columns of unknowns at vertices hold the values of their
/// trilinear functions at the nodes, others are empty. What several cells have is the same in each. Of free unknowns that depend on
/// vertices that hang, what these vertices follow from stands in their place, so that functions are continuous; rows of unknowns
/// that hang are those of their cell, and columns of such vertices have the unit row alone, but for these.
[[nodiscard]] CsrMatrix prolongation_of_order_one(Space const& space, ReferenceElement const& element);

}  // namespace poisson::assembly
