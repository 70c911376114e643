#pragma once

#include <vector>

namespace poisson {

/// `optimal` for V-cycles (Lottes 2023, "Optimal polynomial smoothers for multigrid V-cycles"; Phillips and Fischer 2022): it makes
/// sup t p(t)^2 / (1 - p(t)^2) least. Chebyshev's of the fourth kind is nearly as good by that measure, and better in the middle of
/// the spectrum: on boxes of isotropic cells, whose smooth functions the next level represents well, it saves two of nine
/// iterations.
enum class SmootherPolynomial { optimal, fourth_kind };

/// A smoother of `degree` steps x += w_j D^-1 (b - A x) leaves the polynomial p(t) = prod_j (1 - t / t_j) in t = D^-1 A / largest
/// of an error, with w_j = 1 / (t_j largest). These are the roots t_j, in an order in which what the steps have done so far stays
/// small (Leja's), from the largest root on. Beyond degree 6 they are always those of the fourth kind. Precondition: degree > 0.
[[nodiscard]] std::vector<double> smoother_roots(int degree, SmootherPolynomial polynomial);

}  // namespace poisson
