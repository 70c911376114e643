#pragma once

#include "app/run/stages.hpp"
#include "assembly/discretization.hpp"
#include "gpu/elements/box_system.hpp"
#include "gpu/elements/lattice_system.hpp"
#include "gpu/elements/order_one.hpp"

#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>

namespace poisson::app {

/// How the matrix of a run is made.
struct MatrixPlan {
  assembly::AssembledInto into = assembly::AssembledInto::csr;
  std::optional<FormatChoice> choice{};  ///< what `auto` decided from, where it took half_cds before anything is assembled
  bool may_lower = false;                ///< multigrid may ask for elements of order 1
};

/// The shape of the matrix, as far as it is known before it is assembled.
[[nodiscard]] MatrixShape shape_of(RunConfig const& config, assembly::MeshSummary const& mesh);

/// Trilinear elements on boxes and lattices are assembled by gpu/elements straight into half_cds where that is the format, given or
/// taken by `auto`; matrix_free is made there for any mesh and element, and `auto` takes it for higher orders on boxes and refined
/// meshes where multigrid may be taken. Everything else is assembled into CSR and converted; so are
/// entries in double_double, matrices that an analysis needs, and those for which matrix.conversion asks for a way of converting.
/// Errors: InputError for matrix_free with an analysis or another precision.
[[nodiscard]] MatrixPlan plan_matrix(RunConfig const& config, Backend backend, assembly::MeshSummary const& mesh);

/// Whether multigrid can be given the same problem with elements of order 1 (OrderOne), assembled by gpu/elements.
[[nodiscard]] bool has_order_one(RunConfig const& config, assembly::MeshSummary const& mesh);

/// The system of a run, however it was assembled.
class AssembledSystem {
public:
  /// Assembles. Throws InputError where the data are not admissible, EnvironmentError, Interrupted.
  AssembledSystem(assembly::Discretization& discretization, MatrixPlan const& plan, Stages& stages);
  AssembledSystem(AssembledSystem const&) = delete;  // another thread may look at it

  /// Gives the matrix to the stages, converted where that is needed.
  void store(MatrixPlan const& plan, Stages& stages);

  /// For the preconditioner of the matrix in the stages; empty where there is no such problem. This object and the stages outlive
  /// it.
  [[nodiscard]] OrderOneProvider order_one(RunConfig const& config, Stages& stages) const;

  [[nodiscard]] HostVector<double> const& rhs() const { return system_.rhs; }
  [[nodiscard]] bool pure_neumann() const { return system_.pure_neumann; }
  /// Whether the constant vector spans the null space of the matrix.
  [[nodiscard]] bool is_singular() const { return assembly::is_singular(system_); }
  [[nodiscard]] double compatibility_defect() const { return system_.compatibility_defect; }
  [[nodiscard]] double integral_f() const { return system_.integral_f; }
  [[nodiscard]] std::int64_t nnz() const { return nnz_; }
  /// Whether the source is still being checked, on the host while the device solves.
  [[nodiscard]] bool checks_source() const { return source_warning_.valid(); }
  /// Empty, or how much of the source the quadrature misses. Waits for the check; one that an interrupt has ended says nothing.
  [[nodiscard]] std::string source_warning();
  /// u from the solution x.
  [[nodiscard]] HostVector<double> reconstruct(HostVector<double> x) const;
  /// C^T of the residual of u + u_low from the elements (assembly's solution_residual), which is zero in rows of Dirichlet values
  /// and tied unknowns; in pure Neumann problems after it was made to sum to zero, as the right-hand side was.
  [[nodiscard]] HostVector<double> residual(std::span<double const> u, std::span<double const> u_low) const;
  /// The unknown that is held instead of its equation, as LinearSystem::holds_an_unknown says.
  [[nodiscard]] std::optional<std::size_t> held() const;
  /// u + u_low += sign C d, for the solution d of the system with such a right-hand side.
  void correct(std::span<double const> d, double sign, std::span<double> u, std::span<double> u_low) const;

  /// For analyses. Precondition: the plan was to assemble into CSR. The system is without its matrix.
  [[nodiscard]] assembly::LinearSystem const& system() const { return system_; }
  [[nodiscard]] CsrMatrix const& matrix() const { return *matrix_; }

private:
  /// By gpu/elements. False, and nothing is done, where it cannot.
  bool assemble_elements(MatrixPlan const& plan, Stages& stages);
  /// To the right-hand side of elements_.
  void add_point_loads();
  /// NaN at unknowns without a Dirichlet value, of elements_.
  [[nodiscard]] HostVector<double> fixed_values() const;

  assembly::Discretization const& discretization_;
  assembly::LinearSystem system_;  ///< of elements_ its right-hand side and numbers only
  std::shared_ptr<CsrMatrix const> matrix_;
  std::unique_ptr<ElementSystem> elements_;
  std::optional<LoweredProblem> lowered_;  ///< for order_one, where it was at hand
  std::int64_t nnz_ = 0;
  std::future<std::string> source_warning_;
};

}  // namespace poisson::app
