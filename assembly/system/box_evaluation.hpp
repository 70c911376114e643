#pragma once

#include "assembly/space/space.hpp"
#include "assembly/system/fields.hpp"
#include "assembly/system/problem_data.hpp"

#include <span>

/// Evaluation on boxes, line by line in x, where expressions are evaluated on whole lines. Threaded; the same bits for any number
/// of threads. `u` has space.n_dofs values.
namespace poisson::assembly {

struct BoxIntegrals {
  double u = 0, gradients = 0;  ///< of u, and of grad u . k grad u, by two Gauss points per direction
};
/// Integrates u of trilinear elements on a mesh of one material. Precondition: k is diagonal code.
[[nodiscard]] BoxIntegrals box_integrals(Space const& space, ProblemData const& data, std::span<double const> u);

/// Sets material, coefficient and flux of the cells, and with `gradient` that of u. They are made when they are asked for, from u
/// and k, which outlive them as the space does. Bytes of a cell: 8 of u, and what is written. Throws InputError where k must not
/// have its value.
void set_box_cells(Space const& space, ReferenceElement const& element, ProblemData const& data, FieldValues<double> const& u,
                   bool gradient, SolutionFields& fields);

/// exact - shift at the nodes. Precondition: `exact` is code, here and below.
[[nodiscard]] HostVector<double> box_exact_at_nodes(Space const& space, Function const& exact, double shift);
/// The same, made when it is asked for; NaN where `exact` is not finite. The space and `exact` outlive it.
[[nodiscard]] FieldValues<double> made_exact(Space const& space, Function const& exact, double shift);

/// mean_of_exact by `points` Gauss points per direction.
[[nodiscard]] ExactMean box_mean_of_exact(Space const& space, Function const& exact, int points);

/// error_norms by `points` Gauss points per direction, for elements of any order. Bytes of a cell: 8 of u for each of its
/// nodes; the points are those of a row of cells, and stay in the cache.
[[nodiscard]] ErrorNorms box_error_norms(Space const& space, ReferenceElement const& element, Function const& exact,
                                         std::span<double const> u, double shift, int points);

}  // namespace poisson::assembly
