#pragma once

#include "gpu/core/csr_matrix.hpp"
#include "gpu/spectral/svd.hpp"

#include <cstdint>
#include <span>
#include <vector>

/// What the analysis of a sparse operator's spectrum needs of its matrix. All matrices are square and in host memory, values are
/// those rounded to double, and low values are ignored.
namespace poisson {

/// ||A - A^T||_F / ||A||_F over the rows i with fixed[i] == 0; 0 for a matrix of zeros. `fixed` has n_rows entries. Precondition:
/// fixed rows and columns have no entries off the diagonal. (kernels/symmetry.hpp measures single entries instead.)
[[nodiscard]] double distance_to_symmetry(CsrMatrix const& a, std::span<std::uint8_t const> fixed);

/// The n x n submatrix of the rows and columns `indices` as a dense matrix: entry (i, j) is s_i a(indices[i], indices[j]) s_j, with
/// s = `scaling` (n entries; empty: ones). Precondition: indices differ, each in [0, n_rows).
[[nodiscard]] DenseMatrix dense_submatrix(CsrMatrix const& a, std::span<std::int64_t const> indices,
                                          std::span<double const> scaling = {});

/// s_i = a_ii^-1/2, for which S A S has a unit diagonal; 1 where a_ii is not stored or not positive. n_rows entries.
[[nodiscard]] std::vector<double> diagonal_scaling(CsrMatrix const& a);
/// S A S with S = diag(scaling), which has n_rows entries. It has no low values. S A S with diagonal_scaling is similar to D^-1 A:
/// it has the eigenvalues that CG with the Jacobi preconditioner sees.
[[nodiscard]] CsrMatrix scaled_symmetrically(CsrMatrix const& a, std::span<double const> scaling);

}  // namespace poisson
