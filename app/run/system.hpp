#pragma once

#include "app/config/run_config.hpp"
#include "app/domain/domain.hpp"
#include "app/launch/team.hpp"
#include "app/plan/assembly_plan.hpp"
#include "assembly/space/constraints.hpp"
#include "assembly/system/source_findings.hpp"
#include "gpu/core/array.hpp"
#include "gpu/core/field.hpp"
#include "gpu/core/host_vector.hpp"
#include "gpu/core/lattice_problem.hpp"
#include "gpu/core/node_box.hpp"
#include "gpu/core/rank_rows.hpp"
#include "gpu/core/shared_lattices.hpp"
#include "gpu/elements/block_system.hpp"
#include "gpu/elements/box_residual.hpp"
#include "gpu/elements/box_system.hpp"
#include "gpu/elements/element_solution.hpp"
#include "gpu/elements/element_system.hpp"
#include "gpu/elements/order_one.hpp"
#include "gpu/preconditioners/options.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace poisson::app {

class RunDevice;
class SystemSolver;

/// The system A x = b of a run, however it was assembled. Every rank has rows of it, and one without others has all. u are values
/// at the unknowns of Domain::around, x, r and d those of own rows. Functions that are not said to be local are
/// collective.
class System {
public:
  /// Assembles the system of a mesh as the plan says. In a pure Neumann problem the parts of `mesh` get the mean of the exact
  /// solution. The mesh, the team, the configuration and what `context` gives outlive the system. Throws InputError where the data
  /// are not admissible, or the matrix cannot be what was asked for; EnvironmentError, Interrupted. `has_matrix`: the solver of
  /// `store` has the matrix (SystemSolver::use), and none is made where b can be made without.
  System(Domain& mesh, Team& team, RunConfig const& config, AssemblyPlan plan, ContextProvider const& context,
         bool has_matrix = false);
  System(System const&) = delete;  // another thread may look at it
  System& operator=(System const&) = delete;

  // These are local.
  [[nodiscard]] std::int64_t nnz() const { return nnz_; }          ///< entries of the matrix, of all ranks
  [[nodiscard]] Field const& rhs() const { return b_; }            ///< of own rows
  [[nodiscard]] double integral_f() const { return integral_f_; }  ///< of all sources over the whole mesh
  /// Only in a pure Neumann problem: how far the data were from having a solution, as in LinearSystem.
  [[nodiscard]] std::optional<double> compatibility_defect() const { return compatibility_defect_; }
  [[nodiscard]] bool pure_neumann() const { return compatibility_defect_.has_value(); }
  /// Whether the constant vector spans the null space of the matrix.
  [[nodiscard]] bool is_singular() const { return pure_neumann() && !holds_an_unknown_; }
  /// Whether an unknown is held instead of its equation, in a pure Neumann problem, and which row that is, if this rank has it.
  [[nodiscard]] bool holds_an_unknown() const { return holds_an_unknown_; }
  [[nodiscard]] std::optional<std::size_t> held() const;
  /// Whether the source is still being checked, on the host while the device solves; the same on all ranks.
  [[nodiscard]] bool checks_source() const { return checks_source_; }
  /// 1 for own rows of unknowns that are given or tied to others, 0 for those that are free.
  [[nodiscard]] HostVector<double> fixed_rows() const;
  /// Moves the rows of a system that was assembled into CSR out of it, for benchmarks.
  [[nodiscard]] RankRows take_rows() { return std::move(rows_); }

  /// Empty, or how much of the source the quadrature misses. Waits for the check; one that an interrupt has ended says nothing.
  [[nodiscard]] std::string source_warning();

  /// Gives the matrix to the solver, which converts it where that is needed.
  void store(SystemSolver& solver);
  /// Gives multigrid the same problem with elements of order 1; empty where there is none. This object and the device outlive the
  /// provider.
  [[nodiscard]] OrderOneProvider order_one(RunDevice& device) const;
  /// Gives multigrid from rows of several ranks its spaces: elements of order 1 inside those of a higher one, and on lattices those
  /// on larger cells. Empty where boundaries are periodic, and where a rank has the whole mesh.
  [[nodiscard]] RankNestedProvider nested_spaces() const;

  /// u from the solution x. In a pure Neumann problem the mean of u is 0.
  [[nodiscard]] Field reconstruct(Field x) const;
  /// What is asked of u on the backend, of this rank's cells; null without such. The host is asked, and this is null, where
  /// asks_host_about says so, and where a device has no memory for the coordinates of lattices. It is local. The system and the
  /// mesh outlive it.
  [[nodiscard]] std::unique_ptr<ElementSolution> element_solution();
  /// C^T of the residual of u from the elements, low parts included (assembly's solution_residual), which is zero in rows of
  /// Dirichlet values and tied unknowns; in pure Neumann problems after it was made to sum to zero, as the right-hand side was.
  [[nodiscard]] Field residual(FieldPair const& u) const;
  /// f - A u of own rows by the elements, Dirichlet and tied unknowns included, and with sources as they are given: what flows
  /// through boundaries. Of a whole box that gpu/elements has assembled it is on the backend, as residual().
  [[nodiscard]] Field forces(FieldPair const& u) const;
  /// A coordinate of the nodes of a whole box that gpu/elements has assembled, from `origin` on, on the backend; empty elsewhere.
  /// It is local.
  [[nodiscard]] Field coordinate(std::size_t direction, double origin) const;
  /// C^T f of values of all unknowns, where a rank has the whole mesh: a right-hand side whose Dirichlet values are 0. And x with 0
  /// in the rows of unknowns that are given or tied. They are local.
  [[nodiscard]] HostVector<double> restricted(HostVector<double> f) const;
  [[nodiscard]] HostVector<double> unconstrained(HostVector<double> x) const;
  /// u += sign C d, low parts included, for the solution d of the system with such a right-hand side (`correction`).
  void correct(Field const& correction, double sign, FieldPair& u) const;

private:
  struct RowsAlone {};
  /// Assembles own rows without what must be known of the whole.
  System(Domain& mesh, Team& team, RunConfig const& config, AssemblyPlan plan, ContextProvider const& context, bool has_matrix,
         RowsAlone);
  void assemble();
  void assemble_box(Context& context);
  void assemble_void_box(Context& context);
  void assemble_lattices(Context& context);
  void assemble_own_lattices(Context& context);
  void require_memory_for(Context& context, std::int64_t bytes) const;
  [[nodiscard]] BoxProblem problem_of_box() const;
  [[nodiscard]] LatticeProblem problem_of_cells(std::span<double const> around) const;
  [[nodiscard]] OrderOne order_one_of_box(Context& context) const;
  void add_point_loads();
  [[nodiscard]] LatticeGeometry lattice_geometry() const;
  /// Of a whole box that gpu/elements has assembled: what its elements leave; null elsewhere.
  [[nodiscard]] BoxResidual const* residual_of_box() const;
  /// forces() of what void left of a box, by the whole box.
  [[nodiscard]] Field forces_in_void_box(FieldPair const& u) const;
  /// Gives unknowns that are given or tied their values, where u is.
  void set_constrained(Field& u) const;

  [[nodiscard]] FieldSums source_of_own_cells() const;
  [[nodiscard]] assembly::SourceLines source_lines() const;
  void sum_sources();
  void check_source(bool beside);
  void make_compatible();
  /// Takes a constant source off f, so that f sums to 0 over all ranks. `weights` are the integrals of the basis functions, of free
  /// unknowns where f is.
  void subtract_constant_source(std::span<double> f, std::span<double const> weights) const;
  /// Shifts values of the unknowns around so that their integral over the whole mesh is 0.
  void subtract_mean(std::span<double> u) const;
  /// The integrals of the basis functions of own rows.
  [[nodiscard]] HostVector<double> weights() const;
  /// The values at the unknowns around, from those of own rows; tied ones get those that they are tied to.
  [[nodiscard]] Field around_of_rows(Field x) const;
  /// C^T f of values f at own rows, with the C of periodic boundaries. Collective.
  void fold(HostVector<double>& f) const;
  /// Calls action(tied, the unknown that it is tied to) where ties_of_box_ tell.
  template <class Action>
  void for_tied(Action const& action) const;
  /// 1 for unknowns around that have Dirichlet values, or are tied to others by the constraints; 0 for all others. It is local.
  [[nodiscard]] HostVector<double> fixed_around() const;

  Domain& mesh_;
  Team& team_;
  RunConfig const& config_;
  AssemblyPlan plan_;
  ContextProvider context_;
  bool has_matrix_;  ///< the solver
  std::int64_t nnz_ = 0;
  Field b_;
  double integral_f_ = 0;
  std::optional<double> compatibility_defect_;
  bool holds_an_unknown_ = false;
  bool anchored_ = false;             ///< a condition here fixes the constant
  RankRows rows_;                     ///< of an assembly into CSR
  std::optional<BlockSystem> block_;  ///< of one by gpu/elements
  /// What was assembled on the whole mesh, or on the block of a box: it keeps the Dirichlet values.
  std::unique_ptr<ElementSystem> elements_;
  BoxSystem const* whole_box_ = nullptr;  ///< elements_, where that is a whole box
  /// Of what void left of a box, where no Neumann values are given: the problem on the box, and the nodes of the unknowns in it.
  std::optional<BoxProblem> void_box_;
  Array<std::int32_t> void_box_nodes_;
  mutable std::unique_ptr<BoxResidual> void_box_residual_;
  mutable std::unique_ptr<BoxResidual> box_residual_;  ///< made when it is asked for
  assembly::Constraints constraints_;                  ///< of unknowns around, of an assembly into CSR
  assembly::ListedValues given_;                       ///< of unknowns around, where ranks share lattices
  std::shared_ptr<SharedLattices const> lattices_;
  // These are of an assembly by gpu/elements.
  std::optional<FieldSums> source_;        ///< of own cells
  HostVector<double> largest_of_lines_{};  ///< ElementSystem::largest_source_of_lines
  Array<double> coordinates_{};            ///< of lattices, where a device keeps them for element_solution
  ElementSystem::SourceLattice source_lattice_{};
  std::optional<LoweredProblem> lowered_;  ///< for order_one, where it was at hand
  HostVector<std::uint8_t> fixed_of_box_;  ///< of cells of a box: see OrderOne
  /// Of a box that repeats itself, and was assembled by gpu/elements on one rank.
  std::optional<RankBlocks> ties_of_box_;
  // These are about periodic boundaries on several ranks: see TiedRows.
  bool has_ties_ = false;  ///< some rank has
  std::vector<RankNeighbor> neighbors_;
  HostVector<std::int32_t> places_;
  HostVector<double> offsets_;

  std::string source_warning_;  ///< what Discretization::assemble has found
  bool checks_source_ = false;
  std::future<assembly::SourceFindings> findings_;  ///< of own cells. It is last: what it reads goes after it
};

}  // namespace poisson::app
