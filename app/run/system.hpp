#pragma once

#include "app/analysis/analysis.hpp"
#include "app/config/run_config.hpp"
#include "app/domain/domain.hpp"
#include "app/launch/team.hpp"
#include "gpu/core/host_vector.hpp"
#include "gpu/elements/order_one.hpp"
#include "gpu/preconditioners/options.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace poisson::app {

class RunDevice;
class SystemSolver;
struct AssemblyPlan;

/// The system A x = b of a run, however it was assembled: this rank has rows of it. Functions are collective. u and u_low are
/// values at the unknowns of Domain::around, x, r and d those of own rows.
class System {
public:
  System() = default;
  System(System const&) = delete;  // another thread may look at it
  System& operator=(System const&) = delete;
  virtual ~System() = default;

  /// The entries of the matrix, of all ranks.
  [[nodiscard]] virtual std::int64_t nnz() const = 0;
  /// The right-hand side of own rows.
  [[nodiscard]] virtual HostVector<double> const& rhs() const = 0;
  /// The integral of all sources over the whole mesh.
  [[nodiscard]] virtual double integral_f() const = 0;
  /// Only in a pure Neumann problem: how far the data were from having a solution, as in LinearSystem.
  [[nodiscard]] virtual std::optional<double> compatibility_defect() const = 0;
  [[nodiscard]] bool pure_neumann() const { return compatibility_defect().has_value(); }
  /// Whether the constant vector spans the null space of the matrix.
  [[nodiscard]] virtual bool is_singular() const = 0;
  /// Whether the source is still being checked, on the host while the device solves.
  [[nodiscard]] virtual bool checks_source() const { return false; }
  /// Empty, or how much of the source the quadrature misses. Waits for the check; one that an interrupt has ended says nothing.
  [[nodiscard]] virtual std::string source_warning() = 0;

  /// Gives the matrix to the solver, which converts it where that is needed.
  virtual void store(SystemSolver& solver) = 0;
  /// Gives multigrid the same problem with elements of order 1; empty where there is none. This object and the device outlive the
  /// provider.
  [[nodiscard]] virtual OrderOneProvider order_one(RunDevice& device) const = 0;
  /// Gives multigrid spaces inside that of the elements, on several ranks where the matrix has entries. Empty where there are none.
  [[nodiscard]] virtual RankNestedProvider nested_spaces() const { return {}; }

  /// u from the solution x. In a pure Neumann problem the mean of u is 0.
  [[nodiscard]] virtual HostVector<double> reconstruct(HostVector<double> x) const = 0;
  /// C^T of the residual of u + u_low from the elements (assembly's solution_residual), which is zero in rows of Dirichlet values
  /// and tied unknowns; in pure Neumann problems after it was made to sum to zero, as the right-hand side was.
  [[nodiscard]] virtual HostVector<double> residual(std::span<double const> u, std::span<double const> u_low) const = 0;
  /// Whether an unknown is held instead of its equation, in a pure Neumann problem, and which row that is, if this rank has it.
  [[nodiscard]] virtual bool holds_an_unknown() const = 0;
  [[nodiscard]] virtual std::optional<std::size_t> held() const = 0;
  /// u + u_low += sign C d, for the solution d of the system with such a right-hand side.
  virtual void correct(std::span<double const> d, double sign, std::span<double> u, std::span<double> u_low) const = 0;

  /// 1 for own rows of unknowns that are given or tied to others, 0 for those that are free.
  [[nodiscard]] virtual HostVector<double> fixed_rows() const = 0;
};

/// Assembles the system of a mesh. `plan`: of plan_for. The other arguments outlive the system. Collective. Throws InputError where
/// the data are not admissible, or the matrix cannot be what was asked for; EnvironmentError, Interrupted.
[[nodiscard]] std::unique_ptr<System> assemble(Domain& mesh, Team& team, RunConfig const& config, AssemblyPlan plan,
                                               RunDevice& device);

}  // namespace poisson::app
