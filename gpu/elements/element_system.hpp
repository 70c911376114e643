#pragma once

#include "gpu/core/array.hpp"
#include "gpu/core/expression_code.hpp"
#include "gpu/core/field.hpp"
#include "gpu/core/field_data.hpp"
#include "gpu/core/host_vector.hpp"
#include "gpu/formats/matrix.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>

namespace poisson {

/// A Galerkin system that was assembled where it will be solved, without CSR. Rows and columns of unknowns with Dirichlet values
/// keep their diagonal entry only, and their right-hand side is 0.
class ElementSystem {
public:
  /// The context outlives it.
  explicit ElementSystem(Context& context) : context_(context) {}
  virtual ~ElementSystem() = default;

  [[nodiscard]] Context& context() const { return context_; }
  [[nodiscard]] Matrix const& matrix() const { return *matrix_; }
  /// Gives the matrix away.
  [[nodiscard]] std::unique_ptr<Matrix> take_matrix() { return std::move(matrix_); }
  [[nodiscard]] Array<double> const& rhs() const { return rhs_; }
  /// Gives the right-hand side away, which is in the backend's memory.
  [[nodiscard]] Field take_rhs() { return Field(std::move(rhs_)); }
  [[nodiscard]] std::int64_t nnz() const { return nnz_; }  ///< of the full matrix
  /// Neither Dirichlet values nor an alpha > 0: the constant vector spans the null space.
  [[nodiscard]] bool pure_neumann() const { return pure_neumann_; }
  [[nodiscard]] FieldSums const& source() const { return source_; }      ///< integrals of f and |f| over the cells that count
  [[nodiscard]] FieldSums const& boundary() const { return boundary_; }  ///< of the values of Neumann and Robin conditions
  /// Where f varies: for every line of cells in x the largest integral of |f| over one of its cells, y fastest; else empty. Cells
  /// that do not count in the sums may count here.
  [[nodiscard]] HostVector<double> const& largest_source_of_lines() const { return largest_of_lines_; }
  [[nodiscard]] HostVector<double> take_largest_source_of_lines() { return std::move(largest_of_lines_); }  ///< leaves none
  /// For the same lines the largest |f| at a lattice of `steps` + 1 points per direction of each cell, its vertices among them;
  /// values that are not finite count as 0. Empty where it is not known.
  struct SourceLattice {
    int steps = 1;
    HostVector<double> largest;
  };
  [[nodiscard]] SourceLattice const& source_lattice() const { return source_lattice_; }
  [[nodiscard]] SourceLattice take_source_lattice() { return std::move(source_lattice_); }  ///< leaves none

  /// Writes the Dirichlet values into x, which has an entry for each unknown in the backend's memory.
  virtual void set_dirichlet(double* x) const = 0;
  /// Writes them into host memory.
  void set_dirichlet(std::span<double> x) const;
  /// Writes the values at unknowns that are tied to others, from those at these, where there are such.
  virtual void set_tied(double* /*x*/) const {}

protected:
  Context& context_;
  std::unique_ptr<Matrix> matrix_;
  Array<double> rhs_;
  std::int64_t nnz_ = 0;
  bool pure_neumann_ = false;
  FieldSums source_, boundary_;
  HostVector<double> largest_of_lines_;
  SourceLattice source_lattice_;
};

/// Whether an expression is one number.
[[nodiscard]] bool is_constant(ExpressionCode const& code);

/// Returns the lowest unknown_of(i) of the n entries of a diagonal, in the context's memory, that are not finite, or -1; without a
/// function the lowest i. |a_ij| <= sqrt(a_ii a_jj), so the diagonal tells whether an entry has overflowed. Waits. 8 bytes an
/// entry.
[[nodiscard]] std::int64_t lowest_not_finite(Context& context, std::int64_t n, double const* diagonal,
                                             std::function<std::int64_t(std::int64_t)> const& unknown_of = {});

/// Remembers the lowest number at which a kernel found something that is not admissible.
class LowestFailure {
public:
  explicit LowestFailure(Context& context);
  /// What kernels lower; in the context's memory.
  [[nodiscard]] std::int64_t* data() { return lowest_.data(); }
  /// The lowest number, or -1 for none. Waits.
  [[nodiscard]] std::int64_t found() const;

private:
  Array<std::int64_t> lowest_;
};

}  // namespace poisson
