#pragma once

#include "app/config/run_config.hpp"
#include "app/launch/run_options.hpp"
#include "app/launch/team.hpp"
#include "app/results/run_log.hpp"
#include "app/run/checkpoints.hpp"
#include "app/run/run_device.hpp"
#include "app/run/system_solver.hpp"
#include "gpu/core/array.hpp"
#include "gpu/core/field.hpp"
#include "gpu/core/rank_rows.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace poisson::app {

/// Solves on all ranks what the first one alone has: the systems of meshes that are refined locally. The first rank makes meshes,
/// judges solutions and writes files; the others wait for systems, and solve them with it. Every rank makes one of these.
class SolvesOnRanks {
public:
  /// `checkpoints`: as SystemSolver has them. `options`: for the numbers of threads. The references outlive this. Tells the user
  /// who does what.
  SolvesOnRanks(RunConfig const& config, RunOptions const& options, Team& ranks, RunDevice& device, RunLog& log,
                Checkpoints& checkpoints);

  /// Calls body() on the first rank, which may call the functions below there; meanwhile the others do their part of these. What
  /// body() throws, all throw. Collective.
  void lead(std::function<void()> const& body);

  /// Lets the ranks do what the solver is asked for, unless there are no others. `keeps_matrix`: it has the matrix, too. `order`:
  /// of the elements.
  void solve_for(SystemSolver& solver, int order, bool keeps_matrix);

  // As those of SystemSolver, with vectors of the whole system. To be called by the first rank, in body() of lead(). What the ranks
  // throw together they throw here; what one throws alone ends all of them.
  void convert(RankRows rows);
  [[nodiscard]] FieldPair solve(Field const& b, bool constant_null_space, Array<double> const* start, bool keeps_setup);
  void verify(Field const& b, FieldPair& x);
  [[nodiscard]] std::vector<SystemSolver::Solved> solve_more(std::vector<Array<double>> b);
  [[nodiscard]] ResidualNorms norms_of(Field const& r, Field const& b);
  [[nodiscard]] Field correction(Field const& r, double tolerance);

private:
  enum class Call : std::int32_t { convert, solve, verify, solve_more, norms_of, correction, end };

  /// All get what the first rank says, for which the others may wait long.
  [[nodiscard]] Call told(Call call);
  /// On the first rank: while the others wait it uses their threads.
  void set_threads(bool alone) const;
  /// The first rank tells the others what they are to do now, and does it with them.
  template <class Action>
  auto together(Call call, Action const& action);
  void serve();
  void obey(Call call);
  // These are collective. On other ranks than the first what they take and give of the whole is empty.
  void convert_here(RankRows rows);
  [[nodiscard]] FieldPair solve_here(Field const& b, bool constant_null_space, Array<double> const* start, bool keeps_setup);
  void verify_here(Field const& b, FieldPair& x);
  [[nodiscard]] std::vector<SystemSolver::Solved> solve_more_here(std::vector<Array<double>> b);
  [[nodiscard]] ResidualNorms norms_here(Field const& r, Field const& b);
  [[nodiscard]] Field correction_here(Field const& r, double tolerance);
  /// A vector of own rows, and the whole one of these.
  [[nodiscard]] Field shared_out(Field const& whole);
  [[nodiscard]] FieldPair shared_out(FieldPair const& whole);
  [[nodiscard]] Field gathered(Field const& own);
  [[nodiscard]] FieldPair gathered(FieldPair const& own);

  RunConfig config_;  ///< its solver begins where the first rank's does
  Team& ranks_;
  RunDevice& device_;
  RunLog& log_;
  Checkpoints& checkpoints_;
  bool is_alone_;  ///< there are no other ranks
  int threads_, threads_alone_;
  bool told_devices_ = false;
  std::optional<SystemSolver> solver_;    ///< of the system that was converted last
  std::vector<std::int64_t> first_rows_;  ///< of ranks, and the number of all
};

}  // namespace poisson::app
