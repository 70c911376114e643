#pragma once

#include "app/domain/domain.hpp"
#include "app/launch/team.hpp"
#include "app/run/assembled_system.hpp"
#include "assembly/space/constraints.hpp"
#include "gpu/core/host_vector.hpp"
#include "gpu/core/rank_lattices.hpp"
#include "gpu/core/rank_rows.hpp"
#include "gpu/elements/block_system.hpp"
#include "gpu/elements/box_system.hpp"
#include "gpu/elements/order_one.hpp"
#include "gpu/preconditioners/options.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace poisson::app {

/// The system of a problem on several ranks, each with its rows.
class RankSystem final : public System {
public:
  /// Assembles it as the plan says. The parts of `mesh` get the mean of the exact solution in a pure Neumann problem. Errors:
  /// as Discretization::assemble. The arguments outlive this.
  RankSystem(Domain& mesh, Team& team, RunConfig const& config, AssemblyPlan plan, Context& context);
  /// Moves the rows of a system that was assembled into CSR out of it, for benchmarks.
  [[nodiscard]] RankRows take_rows() { return std::move(rows_); }
  void store(SystemSolver& solver) override;
  [[nodiscard]] std::int64_t nnz() const override { return nnz_; }
  [[nodiscard]] HostVector<double> const& rhs() const override { return b_; }
  [[nodiscard]] double integral_f() const override { return integral_f_; }
  [[nodiscard]] std::optional<double> compatibility_defect() const override { return compatibility_defect_; }
  [[nodiscard]] std::string source_warning() override;
  [[nodiscard]] bool is_singular() const override { return pure_neumann() && !has_ties_; }
  [[nodiscard]] HostVector<double> fixed_rows() const override;
  /// Gives multigrid from rows its spaces: elements of order 1 inside those of a higher one, and on lattices those on larger cells.
  /// Empty where boundaries are periodic.
  [[nodiscard]] RankNestedProvider nested_spaces() const override;
  /// Gives multigrid the problem with elements of order 1, where the matrix is matrix_free on lattices or on a box; empty
  /// elsewhere.
  [[nodiscard]] OrderOneProvider order_one(RunDevice& device) const override;
  [[nodiscard]] HostVector<double> reconstruct(HostVector<double> x) const override;
  [[nodiscard]] bool holds_an_unknown() const override { return pure_neumann() && has_ties_; }
  [[nodiscard]] std::optional<std::size_t> held() const override;
  [[nodiscard]] HostVector<double> residual(std::span<double const> u, std::span<double const> u_low) const override;
  void correct(std::span<double const> d, double sign, std::span<double> u, std::span<double> u_low) const override;

private:
  struct Empty {};
  RankSystem(Domain& mesh, Team& team, RunConfig const& config, AssemblyPlan plan, Empty)
      : mesh_(mesh), team_(team), config_(config), plan_(std::move(plan)) {}
  void assemble_rows(Context& context);
  void assemble_block(Context& context);
  void assemble_lattices(int order, Context& context);
  [[nodiscard]] LatticeProblem problem_of_cells(int order, std::span<double const> around) const;
  [[nodiscard]] assembly::SourceLines source_lines() const;
  [[nodiscard]] OrderOne order_one_of_box(Context& context) const;
  void add_point_loads();
  void assemble();
  [[nodiscard]] FieldSums source_of_own_cells() const;
  void sum_sources();
  void make_compatible();
  /// Takes a constant source off, whose integral over the whole mesh is `total`; `weights` as weights_, of free unknowns.
  void subtract_constant_source(std::span<double> f, double total, std::span<double const> weights) const;
  /// Shifts values of the unknowns of mesh.around so that their integral is 0. Collective.
  void subtract_mean(std::span<double> u) const;
  /// The values at the unknowns of mesh.around, from those of own rows; tied ones get those that they are tied to. Collective.
  [[nodiscard]] HostVector<double> around_of_rows(std::span<double const> x) const;
  [[nodiscard]] RankNestedSpace space_of_order_one() const;
  [[nodiscard]] RankNestedSpaces nested_lattices() const;

  Domain& mesh_;
  Team& team_;
  RunConfig const& config_;
  AssemblyPlan plan_;
  std::int64_t nnz_ = 0;                        ///< of all ranks
  HostVector<double> b_;                        ///< of own rows
  double integral_f_ = 0;                       ///< of all sources, over the whole mesh
  std::optional<double> compatibility_defect_;  ///< pure Neumann only
  RankRows rows_;
  std::optional<BlockSystem> block_;
  std::unique_ptr<BoxSystem> box_system_;  ///< of a block of a box: for Dirichlet values
  std::shared_ptr<RankLattices const> lattices_;
  FieldSums source_;                       ///< of own lattices
  HostVector<double> largest_of_lines_{};  ///< where blocks or lattices were assembled: ElementSystem::largest_source_of_lines
  // Where the matrix is matrix_free and multigrid may ask for order 1:
  std::optional<LoweredProblem> lowered_;  ///< of pieces of lattices
  HostVector<std::uint8_t> fixed_;         ///< of cells of a box: see OrderOne
  assembly::Constraints constraints_;
  // These members are about periodic boundaries: see TiedRows.
  bool has_ties_ = false;  ///< some rank has
  std::vector<RankNeighbor> neighbors_;
  HostVector<std::int32_t> places_;
  HostVector<double> offsets_;
  bool anchored_ = false;       ///< a condition here fixes the constant
  HostVector<double> weights_;  ///< pure Neumann only: the integrals of the basis functions of own rows
  double volume_ = 0;           ///< their sum over all ranks
};

}  // namespace poisson::app
