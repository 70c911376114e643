#pragma once

#include "assembly/problem.hpp"
#include "gpu/core/csr_matrix.hpp"

#include <array>
#include <cstdint>
#include <memory>
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

struct LinearSystem {
  /// Dirichlet rows and columns hold only their (natural) diagonal entry, and their right-hand side is 0.
  CsrMatrix matrix;
  HostVector<double> rhs;
  /// Dirichlet values on constrained unknowns, 0 elsewhere: u = solution of the system + lift.
  HostVector<double> lift;
  HostVector<std::uint8_t> constrained;  ///< 1 for unknowns that a Dirichlet condition fixes, 0 for free ones
  bool pure_neumann = false;             ///< the constant vector spans the null space
  double compatibility_defect =
      0;  ///< pure Neumann: (int f + int g) / (int |f| + int |g|), as assembled; the rhs was made orthogonal to 1
  double integral_f = 0;  ///< of the source, by the quadrature of the assembly
  /// Not empty where the mesh is too coarse for the source, so that quadrature misses a good part of it: says how much, and what to do.
  std::string source_warning;
};

struct ErrorNorms {
  double l2 = 0, h1_seminorm = 0, linf = 0;  ///< absolute; linf over quadrature points and nodes
};

/// What a solution amounts to. Integrals are over the mesh, by the quadrature of the assembly: Gauss points, order + 1 per direction.
struct Quantities {
  double min = 0, max = 0;                    ///< of u at the nodes
  std::array<double, 3> min_at{}, max_at{};   ///< the first such node
  double mean = 0, integral_u = 0;            ///< mean: integral over volume
  double energy = 0;                          ///< 1/2 int k |grad u|^2
};

/// The mesh and the solution as output needs them; every node once.
struct SolutionFields {
  int order = 1;
  HostVector<double> points;        ///< x y z of each node
  HostVector<std::int64_t> cells;   ///< (order + 1)^3 nodes of each cell, lexicographic (x fastest)
  HostVector<double> u;             ///< per node
  HostVector<double> exact, error;  ///< per node; empty without `exact`
  HostVector<int> material;         ///< per cell
  HostVector<double> coefficient;   ///< per cell at the centre; 1 or 3 components
  int coefficient_components = 1;
  HostVector<double> flux;  ///< per cell at the centre, 3 components: -k grad u
};

struct Extent {
  std::array<double, 3> low{}, high{};
};

/// Points in space: low + (i hx, j hy, k hz), x fastest; one point in a direction where n is 1.
struct Lattice {
  std::array<double, 3> low{}, spacing{};
  std::array<std::int64_t, 3> n{1, 1, 1};

  [[nodiscard]] std::int64_t size() const { return n[0] * n[1] * n[2]; }
};

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
  /// Pure Neumann: shifts u so that its integral is zero. `u` has one entry per unknown.
  void make_mean_free(std::span<double> u) const;
  /// Precondition: the specification has `exact`. With pure Neumann the mean of `exact` is taken out first.
  [[nodiscard]] ErrorNorms errors(std::span<double const> u) const;
  /// Threaded; the same bits whatever the number of threads. Precondition: u is finite.
  [[nodiscard]] Quantities quantities(std::span<double const> u) const;
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
/// Names of the generators that `problem.mesh.generator` takes, `box` first.
[[nodiscard]] std::vector<std::string> generator_names();

}  // namespace poisson::assembly
