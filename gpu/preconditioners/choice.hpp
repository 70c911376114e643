#pragma once

#include "gpu/core/context.hpp"
#include "gpu/preconditioners/options.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace poisson {

/// What the choice of a preconditioner depends on.
struct SystemTraits {
  Backend backend{};
  std::int64_t n_rows = 0, nnz = 0;
  std::int64_t bytes_per_iteration = 0;  ///< compulsory, without preconditioner
  double digits = 12;                    ///< of the residual that are asked for
  double diagonal_span = 1;              ///< max |a_ii| / min |a_ii|; infinite where one is 0
  bool is_box = false;                   ///< multigrid has the box's own levels
  std::int64_t box_nodes = 0;       ///< of what void left of a box: nodes of the box, of which multigrid has its levels; else 0
  bool has_lattice_levels = false;  ///< or those of lattices
  int lowered_from = 0;             ///< or it goes on from elements of this order to order 1 (OrderOne); 0: it does not
  bool has_csr = false;             ///< of a device: the matrix is in CSR, or has Matrix::as_csr
  bool general = false;             ///< SolverOptions::general
  bool symmetric = true;            ///< the method needs symmetry
  std::string no_entries;           ///< why multigrid has no entries to be made from; empty where it has
};

/// One that `automatic` considers.
struct PreconditionerEstimate {
  PreconditionerKind kind{};
  std::int64_t iterations = 0;
  double setup_seconds = 0, iteration_seconds = 0;
  std::string refusal;  ///< why it is not considered; then the numbers mean nothing

  [[nodiscard]] double seconds() const { return setup_seconds + static_cast<double>(iterations) * iteration_seconds; }
};

/// Estimates for none, jacobi and multigrid at a nominal bandwidth; the one to take comes first, refused ones last. Without
/// preconditioner, or with jacobi where the main diagonal spans more than a factor of 10, iterations are those on a uniform box
/// (formats/cost.hpp, expected_products), and twice as many where no levels are known; with multigrid they do not depend on the
/// size. The seconds of setups are measured ones per row or entry.
///
/// With traits.general, and no levels that are known, incomplete factors are among them (ic0 or ilu0), and iterations go with the
/// square root of the rows: of a matrix of which nothing is known, that is what public collections of matrices show in the median.
[[nodiscard]] std::vector<PreconditionerEstimate> choose_preconditioner(SystemTraits const& traits);

}  // namespace poisson
