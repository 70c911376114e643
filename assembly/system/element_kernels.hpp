#pragma once

#include <vector>

/// Element matrices. Without deal.II, so that this file can be compiled for the machine's own instruction set.
namespace poisson::assembly {

/// K_ij = sum over points q of grad phi_i(q) . D(q) grad phi_j(q), for symmetric D(q).
class StiffnessKernel {
public:
  /// `gradients`: (3 * point + direction, function) with respect to reference coordinates.
  StiffnessKernel(int n_points, int n_functions, std::vector<double> const& gradients);

  /// `d`: xx, yy, zz, xy, xz, yz per point. `k`: n x n, row-major, overwritten; symmetric to the last bit.
  /// `work` is scratch that is kept between calls.
  void compute(double const* d, double* k, std::vector<double>& work) const;
  /// The six n x n matrices R_c, one after the other, with K = sum_c d[c] R_c where D is constant but for the quadrature weights.
  /// `weights`: one per point.
  [[nodiscard]] std::vector<double> combination_basis(std::vector<double> const& weights) const;

private:
  int n_points_, n_, padded_;
  std::vector<double> gradients_;  ///< rows padded with zeros to a multiple of 8
};

/// out[i] = sum_c d[c] basis[c * n + i] for six matrices of n entries.
void combine(double const* d, double const* basis, std::size_t n, double* out);

}  // namespace poisson::assembly
