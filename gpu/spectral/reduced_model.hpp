#pragma once

#include "gpu/core/context.hpp"
#include "gpu/core/linear_operator.hpp"
#include "gpu/spectral/polynomial_fit.hpp"
#include "gpu/spectral/spectrum.hpp"
#include "gpu/spectral/svd.hpp"

#include <cstdint>
#include <span>
#include <vector>

/// Proper orthogonal decomposition, and Galerkin's equations in its modes (Sirovich, Quart. Appl. Math. 45, 1987; Quarteroni,
/// Manzoni, Negri, Reduced Basis Methods for Partial Differential Equations, 2016). All arrays are in host memory. Vectors of
/// length n have an entry for each unknown; the inner product is sum w_i u_i v_i with positive weights w.
namespace poisson {

struct ProperOrthogonalDecomposition {
  DenseMatrix scaled;  ///< W^1/2 X, n x m: what was decomposed
  Svd svd;             ///< its singular value decomposition; svd.values[k] svd.v(j, k) is the coefficient of mode k in snapshot j
  Spectrum spectrum;   ///< of its singular values
  DenseMatrix modes;   ///< W^-1/2 U, n x r with r = min(max_modes, rank): orthonormal in the inner product
};
/// The modes of the snapshots X (one in each column). The SVD runs on the context's backend. Precondition: max_modes >= 0.
/// Throws what svd() throws.
[[nodiscard]] ProperOrthogonalDecomposition proper_orthogonal_decomposition(DenseMatrix snapshots, std::span<double const> weights,
                                                                            std::int64_t max_modes, Context& context);

/// V^T W u: the coefficients in the modes V of the best approximation of u.
[[nodiscard]] std::vector<double> coordinates(DenseMatrix const& modes, std::span<double const> weights, std::span<double const> u);
/// (sum w_i u_i^2)^1/2
[[nodiscard]] double weighted_norm(std::span<double const> weights, std::span<double const> u);
/// u - V c, where c may be shorter than V has columns.
[[nodiscard]] HostVector<double> remainder(std::span<double const> u, DenseMatrix const& modes, std::span<double const> c);

/// Galerkin's equations in r modes: a = V^T A V, r x r, row by row; b = V^T b.
struct ReducedSystem {
  std::vector<double> a, b;
};
/// Precondition: A is symmetric; `a` is an operator of the CPU backend, `host` a context of it.
[[nodiscard]] ReducedSystem project(LinearOperator<double> const& a, std::span<double const> rhs, DenseMatrix const& modes,
                                    Context& host);
/// The coefficients in the first k of its modes; NaN where that system is singular.
[[nodiscard]] std::vector<double> solve_leading(ReducedSystem const& system, std::size_t k);
/// The sum of weights[i] systems[i]. Precondition: there is at least one, and they have one size.
[[nodiscard]] ReducedSystem combine(std::vector<ReducedSystem> const& systems, std::span<double const> weights);

/// The fit that interpolates systems known at `points`: of the lowest degree that meets all matrices, and all right-hand sides,
/// to 1e-10 of their norm; else of the highest (up to 6) that the number of points allows. Arguments as for fit_polynomial.
[[nodiscard]] PolynomialFit fit_systems(std::vector<ReducedSystem> const& systems, DenseMatrix const& points,
                                        std::span<double const> at, Context& host);

/// The solution of a small dense system by elimination with partial pivoting; NaN when it is singular. Row i of a is
/// a[i * n + ...].
[[nodiscard]] std::vector<double> solve_small(std::vector<double> a, std::vector<double> b);

}  // namespace poisson
