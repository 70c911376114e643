#pragma once

#include "gpu/core/context.hpp"
#include "gpu/core/csr_matrix.hpp"
#include "gpu/formats/matrix.hpp"
#include "gpu/preconditioners/preconditioner.hpp"
#include "gpu/spectral/reduced_model.hpp"
#include "gpu/spectral/svd.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

/// Errors of reduced models from their residuals (Quarteroni, Manzoni, Negri 2016, chapter 3), for systems A x = b that are sums of
/// few terms: A = sum theta_q A_q, b = sum phi_p b_p, as where coefficients enter as factors. All arrays are in host memory.
namespace poisson {

/// The theta_q and phi_p of a system. Those that are missing at the end are 0.
struct SystemWeights {
  std::vector<double> matrix, rhs;
};

/// The error e of x = V c has A e = b - A V c. This is solved by Galerkin's equations in a space Z of d vectors: what a cycle of
/// multigrid makes of all parts of the residual, b_p and A_q v_k. The energy norm of that solution is a lower bound of that of e,
/// and near it where the cycle, which is that of one of the systems, is near the inverse of A. Takes no vector of n entries, so
/// that its cost does not depend on n: r modes, Q and P terms, at most P + Q r vectors in Z.
struct ResidualModel {
  std::int64_t modes = 0;                     ///< r
  std::vector<std::vector<double>> a;         ///< V^T A_q V of each term, the lower triangle row by row
  std::vector<std::vector<double>> b;         ///< V^T b_p
  std::vector<std::vector<double>> energies;  ///< Z^T A_q Z, as a
  /// The parts b_0, b_1, ..., then A_0 v_0, A_1 v_0, ..., A_0 v_1, ... in coordinates of which part and Z x have the same product
  /// as their scalar product; those that are missing at the end are 0.
  std::vector<std::vector<double>> parts;

  /// Galerkin's equations in the modes.
  [[nodiscard]] ReducedSystem system(SystemWeights const& weights) const;
  struct Estimate {
    double error = 0;  ///< the energy norm of the error, as found in Z
    double norm = 0;   ///< that of the solution
    [[nodiscard]] double relative() const { return error > 0 ? error / norm : 0; }
  };
  /// Of V c with r coefficients c. The maker's resolution limits what is seen of small errors.
  [[nodiscard]] Estimate estimate(SystemWeights const& weights, std::span<double const> c) const;
  /// The relative ones of Galerkin's solutions of many systems; NaN for none. Threaded.
  [[nodiscard]] std::vector<double> relative_errors(std::span<std::optional<SystemWeights> const> systems) const;
};

/// Makes a ResidualModel. First all systems, then the modes.
class ResidualModelMaker {
public:
  /// What a cycle is made from, and the terms it may find. Entries are compared after the main diagonal of this matrix was scaled
  /// to 1: a term is new where a system misses the others by `tolerance` of its norm. `singular`: constants are the null space.
  /// Of the parts of residuals, what is not in Z is left out below `resolution` of the part; rounding is at 1e-11.
  ResidualModelMaker(std::shared_ptr<CsrMatrix const> reference, bool singular, double tolerance, double resolution, Context& host);

  /// The weights of a symmetric system. Keeps 12 bytes per entry for each term of the matrix, 8 bytes per row for those of the
  /// right-hand side. Throws InputError where the matrix has its entries at other places than the reference.
  [[nodiscard]] SystemWeights add(CsrMatrix const& a, std::span<double const> b);
  /// Terms of the matrix, and of the right-hand side.
  [[nodiscard]] std::size_t n_terms() const { return matrices_.size(); }
  [[nodiscard]] std::size_t n_right_hand_sides() const { return right_hand_sides_.size(); }
  /// A mode, 0 where x is prescribed. Takes Q products, at most Q + P cycles, and Q products for each vector of Z; keeps 16 bytes
  /// per row for each of these.
  void add_mode(std::span<double const> v);

  [[nodiscard]] ResidualModel const& model() const { return model_; }
  /// x . A x
  [[nodiscard]] double squared_energy(SystemWeights const& weights, std::span<double const> x) const;

private:
  /// Weights of `values` in terms that are orthonormal in an inner product; what the terms miss is left in `values`. Returns the
  /// norm of that, where it is too large to be left out; else 0.
  double take_terms(std::span<double> values, std::vector<std::span<double const>> const& terms, std::span<double const> scale,
                    std::vector<double>& weights) const;
  void add_part(HostVector<double> g);
  void extend(std::vector<std::vector<double>>& products, DenseMatrix const& vectors) const;

  Context& host_;
  std::shared_ptr<CsrMatrix const> reference_;
  double tolerance_, resolution_;
  HostVector<double> scale_of_entries_, scale_of_rows_;
  std::vector<std::shared_ptr<CsrMatrix const>> matrices_;
  std::vector<std::unique_ptr<Matrix>> products_;
  std::vector<HostVector<double>> right_hand_sides_;
  std::unique_ptr<Matrix> operator_;  ///< what the cycle is of
  std::unique_ptr<PreconditionerSetup> setup_;
  std::unique_ptr<Preconditioner<double>> cycle_;
  DenseMatrix modes_, parts_, z_;  ///< z = M parts, and parts^T z = 1
  ResidualModel model_;
};

}  // namespace poisson
