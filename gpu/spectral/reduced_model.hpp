#pragma once

#include "gpu/core/context.hpp"
#include "gpu/core/linear_operator.hpp"
#include "gpu/spectral/polynomial_fit.hpp"
#include "gpu/spectral/spectrum.hpp"
#include "gpu/spectral/svd.hpp"

#include <cstdint>
#include <span>
#include <vector>

/// Proper orthogonal decomposition (POD) and the Galerkin projection onto its modes (Sirovich, Quart. Appl. Math. 45, 1987;
/// Quarteroni, Manzoni, Negri, Reduced Basis Methods for Partial Differential Equations, 2016). All arrays are in host memory.
/// Vectors have n entries, one for each unknown; the inner product is the sum of w_i u_i v_i with positive weights w, W = diag(w).
namespace poisson {

struct ProperOrthogonalDecomposition {
  DenseMatrix scaled;  ///< W^1/2 X, n x m: the matrix that is decomposed
  Svd svd;             ///< its singular value decomposition; svd.values[k] svd.v(j, k) is the coefficient of mode k in snapshot j
  Spectrum spectrum;   ///< of its singular values
  DenseMatrix modes;   ///< W^-1/2 U, n x r with r = min(max_modes, rank): orthonormal in the inner product
};
/// The POD of the snapshots X, n x m, one in each column. The SVD runs on the context's backend. Preconditions: `weights` has n
/// entries; max_modes >= 0. Throws what svd() throws.
[[nodiscard]] ProperOrthogonalDecomposition proper_orthogonal_decomposition(DenseMatrix snapshots, std::span<double const> weights,
                                                                            std::int64_t max_modes, Context& context);

/// V^T W u: the coefficients of the best approximation of u by the modes V.
[[nodiscard]] std::vector<double> coordinates(DenseMatrix const& modes, std::span<double const> weights, std::span<double const> u);
/// (sum w_i u_i^2)^1/2
[[nodiscard]] double weighted_norm(std::span<double const> weights, std::span<double const> u);
/// u - V c; with fewer coefficients c than modes, the first modes.
[[nodiscard]] HostVector<double> remainder(std::span<double const> u, DenseMatrix const& modes, std::span<double const> c);

/// The Galerkin projection of A x = b onto r modes V: a = V^T A V, r x r and row-major; b = V^T b.
struct ReducedSystem {
  std::vector<double> a, b;
};
/// Preconditions: A is symmetric; `a` is an operator of the CPU backend and `host` a context of it.
[[nodiscard]] ReducedSystem project(LinearOperator<double> const& a, std::span<double const> rhs, DenseMatrix const& modes,
                                    Context& host);
/// The solution in the first k modes: k coefficients, NaN where that system is singular. Precondition: k <= r.
[[nodiscard]] std::vector<double> solve_leading(ReducedSystem const& system, std::size_t k);
/// The linear combination of systems, sum of weights[i] systems[i]. Precondition: at least one system, all of one size.
[[nodiscard]] ReducedSystem combine(std::vector<ReducedSystem> const& systems, std::span<double const> weights);

/// The polynomial fit that interpolates the systems known at `points` to the point `at` (see fit_polynomial): of the lowest degree
/// that reproduces all matrices and all right-hand sides to 1e-10 of their norm, else of the highest degree (up to 6) that the
/// number of points determines.
[[nodiscard]] PolynomialFit fit_systems(std::vector<ReducedSystem> const& systems, DenseMatrix const& points,
                                        std::span<double const> at, Context& host);

/// The solution of a small dense n x n system by Gaussian elimination with partial pivoting; NaN when it is singular. `a` is
/// row-major.
[[nodiscard]] std::vector<double> solve_small(std::vector<double> a, std::vector<double> b);

}  // namespace poisson
