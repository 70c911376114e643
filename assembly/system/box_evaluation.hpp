#pragma once

#include "assembly/space/space.hpp"
#include "assembly/system/fields.hpp"
#include "assembly/system/problem_data.hpp"

#include <span>

/// Evaluation on boxes of trilinear elements, line by line in x, where expressions are evaluated on whole lines. Threaded; the same
/// bits for any number of threads. `u` has space.n_dofs values.
namespace poisson::assembly {

struct BoxIntegrals {
  double u = 0, gradients = 0;  ///< of u, and of grad u . k grad u, by two Gauss points per direction
};
[[nodiscard]] BoxIntegrals box_integrals(Space const& space, ProblemData const& data, std::span<double const> u);

/// Coefficient, material and flux on the cells. Bytes of a cell: 8 of u, and what is written.
void fill_box_cells(Space const& space, ProblemData const& data, std::span<double const> u, SolutionFields& fields);

}  // namespace poisson::assembly
