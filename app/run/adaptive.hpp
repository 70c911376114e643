#pragma once

#include "app/config/run_config.hpp"
#include "app/domain/domain.hpp"
#include "app/domain/solution_values.hpp"
#include "app/results/quantities.hpp"
#include "app/results/run_log.hpp"
#include "app/run/system.hpp"
#include "app/run/system_solver.hpp"
#include "gpu/core/array.hpp"
#include "gpu/core/host_vector.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace poisson::app {

/// Why a mesh of the next cycle is not made: it would have too many unknowns.
struct TooManyUnknowns {
  std::int64_t unknowns = 0;
};

/// Why there is no memory for a mesh or an estimate, where the exception that is being handled says that; any other is thrown on.
[[nodiscard]] std::string lack_of_memory();

/// What elements of an order need to reach the tolerance, from the last mesh of `record`: cells are refined where the error comes
/// from, so that it falls as N^(-p/3) with N unknowns of order p, that of a target twice as fast. An unknown of orders 3 and 4
/// takes about 2 and 4 times as long as one of order 1 (assembly, cg and estimate, measured on two cores).
[[nodiscard]] TriedOrder needs_of_order(int order, AdaptiveRecord const& record);
/// A lower bound of that work: the first mesh, which has so many unknowns of order 1.
[[nodiscard]] double least_work(int order, std::int64_t dofs_of_order_one);

/// The loop of adaptive refinement (problem.mesh.adaptive), seen from the meshes: it judges the solution on each, says whether
/// there is a next one, and how that is made. It works on one rank.
class AdaptiveRefinement {
public:
  /// Begins the record of the loop. `tells`: what it finds, to the user. The references outlive this.
  AdaptiveRefinement(RunConfig const& config, RunLog& log, RunDevice& device, bool tells = true);

  /// The configuration of the next mesh: its mesh has the refinements so far (MeshSpec::local), and the solver begins at `start`.
  [[nodiscard]] RunConfig const& config() const { return current_; }
  /// The number of the cycle, from 1.
  [[nodiscard]] std::int64_t cycle() const { return std::ssize(log_.record.adaptive->cycles) + 1; }
  /// Throws InputError for a target that there is not, or whose error is not known; TooManyUnknowns.
  void check(assembly::CheckedProblem const& problem) const;

  /// What it takes to judge a solution. `quantities` makes these.
  struct Solved {
    Domain const& mesh;
    System& system;
    SystemSolver& solver;
    SolutionValues const& u;
    std::function<NamedQuantities()> quantities;
    bool converged = false;
  };
  /// Estimates the error of the solution, and tells it. Returns whether there is a next mesh; config() is then of that. Throws
  /// InputError, Interrupted.
  [[nodiscard]] bool goes_on(Solved const& solved);
  /// Where the solver may begin on the next mesh, whose system this is.
  [[nodiscard]] Array<double> start(Domain const& before, SolutionValues const& u, Domain const& next, System const& system) const;
  /// To be called when there is no next mesh: frees what it would have been made from.
  void release_mesh();
  /// Tells that no next mesh was solved on, and why.
  void end(std::string const& how, std::string const& why);

  /// By cell of the last mesh that was judged.
  [[nodiscard]] std::vector<int> levels(Domain const& mesh) const;
  [[nodiscard]] std::vector<double> const& estimator() const { return of_cells_; }

private:
  struct Estimate {
    double value = 0, estimate = 0;
    bool guaranteed = false;
    std::string why_not;
    std::optional<double> error;  ///< where it is known
    std::vector<double> of_cells, marks;
  };
  [[nodiscard]] Estimate of_energy_norm(Solved const& solved, NamedQuantities const& quantities) const;
  [[nodiscard]] Estimate of_target(Solved const& solved, NamedQuantities const& quantities) const;
  /// The solution of the dual problem with this load, and these values on Dirichlet boundaries.
  [[nodiscard]] HostVector<double> dual(Solved const& solved, assembly::LoadOfEstimate const& load,
                                        HostVector<double> lifted) const;
  /// What the estimate of this value's error is to be multiplied by, as the values of cycles before tell; 1 unless that is much.
  [[nodiscard]] double raised_by_values(double value) const;
  [[nodiscard]] bool mark(Domain const& mesh, std::vector<double> const& marks);
  /// A lower bound of the unknowns of the mesh that config() describes: to make it takes as long as all meshes before.
  [[nodiscard]] std::int64_t fewest_unknowns_of_next(Domain const& mesh) const;
  void tell(AdaptiveCycle const& cycle);

  RunConfig const& config_;
  RunLog& log_;
  RunDevice& device_;
  RunConfig current_;
  std::vector<double> of_cells_;
  bool tells_;
  double told_seconds_ = 0;
  std::string told_why_not_;
};

}  // namespace poisson::app
