#pragma once

#include "assembly/problem.hpp"
#include "assembly/system/fields.hpp"
#include "assembly/system/linear_system.hpp"
#include "gpu/core/box_problem.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace poisson::assembly {

struct MeshSummary {
  std::int64_t cells = 0;
  std::int64_t vertices = 0;
  std::int64_t dofs = 0;
  std::int64_t nnz = 0;          ///< of the assembled matrix; in an estimate: before Dirichlet rows are emptied
  std::int64_t n_diagonals = 0;  ///< of a lexicographically numbered box; 0 elsewhere
  bool lexicographic = false;
  bool exact_counts = true;  ///< of every conforming mesh, refined or not, closed forms give dofs and nnz
  std::set<unsigned> boundary_ids;
  std::set<unsigned> material_ids;
};

/// What `check` needs: validates expressions, generator or file, boundary cover and material cover on the unrefined mesh, and
/// predicts counts and the host bytes that mesh, matrix and output will need, without refining, distributing or assembling.
struct Estimate {
  MeshSummary mesh;
  std::int64_t host_bytes = 0;
};
[[nodiscard]] Estimate estimate(ProblemSpec const& spec);

/// A Galerkin discretisation of -div(k grad u) = f with Q_p elements: the only class that deal.II stands behind.
/// Constructing it builds the mesh (a box needs none: everything follows from the indices) and numbers the unknowns
/// (lexicographically on boxes, Cuthill-McKee elsewhere). Errors: InputError with the key path for anything wrong in the
/// specification or the mesh file; EnvironmentError when the memory that `estimate` predicts is not there; Interrupted at safe
/// points.
class Discretization {
public:
  explicit Discretization(ProblemSpec spec);
  ~Discretization();
  Discretization(Discretization&&) noexcept;

  [[nodiscard]] MeshSummary const& summary() const;
  /// Threaded; the same bits whatever the number of threads.
  [[nodiscard]] LinearSystem assemble();
  /// The same problem for the assembly on the backend (gpu/elements), when it is one of trilinear elements on a box.
  [[nodiscard]] std::optional<BoxProblem> box_problem() const;
  /// What that assembly found wrong with the data, in the words of the assembly here: throws InputError.
  [[noreturn]] void refuse(BoxDataError const& error) const;
  /// u = C x + g from the solution x of a system of this discretisation; with pure Neumann shifted so that its integral is zero.
  [[nodiscard]] HostVector<double> reconstruct(LinearSystem const& system, HostVector<double> x) const;
  /// Precondition: the specification has `exact`. With pure Neumann the mean of `exact` is taken out first.
  [[nodiscard]] ErrorNorms errors(std::span<double const> u) const;
  /// Threaded; the same bits whatever the number of threads. Precondition: u is finite.
  [[nodiscard]] Quantities quantities(std::span<double const> u) const;
  /// The mesh as output needs it, and u on it.
  [[nodiscard]] OutputMesh output_mesh() const;
  [[nodiscard]] SolutionFields fields(std::span<double const> u) const;
  /// The smallest box around all nodes.
  [[nodiscard]] Extent extent() const;
  /// u at the points of a lattice; NaN at those outside the mesh. A point that several cells share is taken from the first.
  [[nodiscard]] HostVector<double> sample(std::span<double const> u, Lattice const& lattice) const;
  /// The integral of each unknown's basis function: weights for which the sum of w u v is close to the integral of u v.
  [[nodiscard]] HostVector<double> integration_weights() const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Version string of deal.II, for `poisson info`.
[[nodiscard]] std::string dealii_version();

}  // namespace poisson::assembly
