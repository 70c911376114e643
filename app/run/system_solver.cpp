#include "app/run/system_solver.hpp"

#include "app/config/problem.hpp"
#include "app/plan/format_choice.hpp"
#include "app/run/balance.hpp"
#include "app/run/solves_on_ranks.hpp"
#include "gpu/core/communicator.hpp"
#include "gpu/core/memory.hpp"
#include "gpu/core/place_text.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/device_ranks.hpp"
#include "gpu/kernels/fields.hpp"
#include "gpu/kernels/symmetry.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

namespace poisson::app {

namespace {

/// The matrix that make_matrix makes of these arguments. Options of formats are keys under `matrix`: an error names them so.
template <class... Arguments>
std::unique_ptr<Matrix> make_configured_matrix(Arguments&&... arguments) {
  try {
    return make_matrix(std::forward<Arguments>(arguments)...);
  } catch (InputError const& error) {
    if (error.key().empty())
      throw;
    throw InputError("matrix." + error.key(), error.what());
  }
}

}  // namespace

void SystemSolver::convert(RankRows rows, std::shared_ptr<RankBlocks const> blocks, RowNumbers const& numbers,
                           bool whole_is_taken) {
  if (SolvesOnRanks* const ranks = std::exchange(on_ranks, nullptr); ranks != nullptr) {
    if (keeps_matrix)
      convert({{}, rows.matrix}, blocks, numbers, whole_is_taken);
    ranks->convert(std::move(rows));
    on_ranks = ranks;
    return;
  }
  ResultRecord& record = log_.record;
  Communicator& ranks = team_.communicator();
  static_cast<void>(device_.context());
  auto const own_entries = static_cast<double>(rows.matrix->nnz());
  bool const makes = stored_ == nullptr;
  record.clock.time(Stage::convert, [&] {
    if (!makes)
      return;
    SplitRows parts;
    std::optional<FormatChoice> made_choice;
    std::unique_ptr<Matrix> local;
    std::int64_t const n = sum_over(ranks, rows.matrix->n_rows);
    Format format = config_.matrix.format.value_or(Format::csr);
    bool const chooses = !config_.matrix.format;
    team_.together([&] {
      parts = split(rows);
      if (chooses && team_.is_first()) {  // the others take what it takes, as far as they can
        // By a nominal bandwidth: the order of the formats hardly depends on it, and measuring one takes longer than many a run.
        FormatChoice& choice = made_choice.emplace();
        local = make_configured_matrix(forecast_of(config_.matrix, config_.solver, n), parts.local, device_.context(),
                                       config_.matrix.format_options(), choice);
        format = local->format();
      }
    });
    format = of_first(ranks, format);
    bool const is_block = !chooses && !team_.is_alone();
    std::string const refusal = is_block && !whole_is_taken
                                    ? refusal_of_whole(format, rows, numbers ? numbers() : std::vector<std::int64_t>{},
                                                       config_.matrix.format_options(), team_)
                                    : "";
    bool in_csr = false;  // the block has too many diagonals for its size
    team_.together([&] {
      if (!refusal.empty())
        throw InputError("matrix.format", refusal);
      in_csr =
          is_block && parts.local->n_rows > 0 && !refusal_of_block(format, *parts.local, config_.matrix.format_options()).empty();
      if (local == nullptr)
        local = converted(parts.local, in_csr ? Format::csr : format, chooses);
    });
    if (auto const n_others = sum_over(ranks, std::int64_t{in_csr ? 1 : 0}); n_others > 0)
      log_.console.line("    " + std::to_string(n_others) + " of " + std::to_string(team_.size()) +
                        " ranks store their rows in csr, since " + std::string(name_of(format)) + " would take more");
    stored_ = std::make_unique<StoredMatrix>(StoredMatrix{SharedMatrix(team_, std::move(rows), std::move(parts), std::move(local)),
                                                          std::move(blocks), std::move(made_choice), format});
  });
  tell_stored();
  Matrix const& local = matrix().local();
  if (makes)
    record.clock.move(Stage::convert, Stage::transfer, local.transfer_seconds);
  if (double const asymmetry = max_over(ranks, local.asymmetry); asymmetry > rounding_asymmetry)
    log_.console.warning("the matrix is symmetric only to " + number_text(asymmetry) + " of the largest entry of a row; " +
                         std::string(name_of(record.format)) + " stores its lower triangle and takes that for the upper one");
  record.padding_ratio = local.padding_ratio();  // or their mean by entries, where ranks have others
  if (any_of_ranks(ranks, record.padding_ratio != of_first(ranks, record.padding_ratio)))
    record.padding_ratio = sum_over(ranks, record.padding_ratio * own_entries) / sum_over(ranks, own_entries);
  record_matrix();
  report_matrix();
  if (device_.backend() == Backend::cuda)
    log_.report(Stage::transfer, "to " + record.device);
}

std::unique_ptr<Matrix> SystemSolver::converted(std::shared_ptr<CsrMatrix const> const& own, Format format, bool chosen) {
  FormatOptions const options = config_.matrix.format_options();
  try {
    return make_configured_matrix(own->n_rows == 0 ? Format::csr : format, own, device_.context(), options);
  } catch (InputError const&) {
    if (!chosen)
      throw;
    return make_configured_matrix(Format::csr, own, device_.context(), options);
  }
}

void SystemSolver::adopt(BlockSystem block, std::vector<RankNeighbor> neighbors, std::shared_ptr<RankBlocks const> blocks,
                         std::shared_ptr<SharedLattices const> lattices, std::optional<FormatChoice> choice) {
  ResultRecord& record = log_.record;
  Communicator& ranks = team_.communicator();
  auto const take = [&] {
    if (stored_ != nullptr)
      return;
    Format const format = block.local->format();
    stored_ = std::make_unique<StoredMatrix>(StoredMatrix{SharedMatrix(team_, std::move(block), std::move(neighbors), lattices),
                                                          std::move(blocks), std::move(choice), format});
  };
  if (team_.is_alone()) {
    take();
    tell_stored();
    record.padding_ratio = matrix().local().padding_ratio();
    record_matrix();
  } else {
    record.clock.time(Stage::convert, take);
    tell_stored();
    double stored = static_cast<double>(record.dofs);  // nodes
    if (lattices != nullptr) {
      std::int64_t const m = lattices->layout.nodes();
      stored = static_cast<double>(sum_over(ranks, lattices->layout.n_lattices * m * m * m));
    }
    record.padding_ratio =
        record.format == Format::matrix_free ? 1 : 14.0 * stored / (0.5 * static_cast<double>(record.nnz + record.dofs));
    record_matrix();
    report_matrix();
  }
}

/// What was decided when the matrix was stored.
void SystemSolver::tell_stored() {
  if (stored_->choice)
    log_.tell_choice(*stored_->choice);
  log_.record.format = stored_->format;
}

void SystemSolver::report_matrix() {
  log_.report(Stage::convert, std::string(name_of(log_.record.format)) + ", " +
                                  bytes_text(static_cast<double>(log_.record.matrix_bytes)) + team_.on_ranks());
}

void SystemSolver::record_matrix() {
  ResultRecord& record = log_.record;
  Communicator& ranks = team_.communicator();
  record_devices();
  record.matrix_bytes = sum_over(ranks, matrix().bytes());
  record.bytes_of_ranks = RankFigures(ranks, static_cast<double>(matrix().bytes()));
  record.rows_of_ranks = RankFigures(ranks, static_cast<double>(matrix().for_solver().n_rows()));
}

/// On several ranks: whose devices they are, and how messages go between them.
void SystemSolver::record_devices() {
  ResultRecord& record = log_.record;
  Communicator& ranks = team_.communicator();
  if (team_.is_alone() || !tells_devices)
    return;
  DeviceDescription const mine = device_.context().description();
  record.devices_of_ranks = gather_texts(ranks, mine.name);
  if (device_.backend() == Backend::cpu)
    return;
  auto const uuids = gather_texts(ranks, mine.uuid);
  auto const n_devices = std::set<std::string>(uuids.begin(), uuids.end()).size();
  if (n_devices < uuids.size()) {
    log_.warn(std::to_string(uuids.size()) + " ranks share " + std::to_string(n_devices) +
              (n_devices == 1 ? " device" : " devices") + ", and wait for each other; start as many ranks as there are");
  }
  log_.console.line("    ranks exchange by " + rank_transport(device_.context(), ranks).name());
}

namespace {

/// Whether u is 0 wherever it is given.
bool gives_only_zero(assembly::ProblemSpec const& problem) {
  return std::ranges::all_of(problem.boundary, [&](assembly::BoundaryCondition const& condition) {
    return condition.type != assembly::BoundaryType::dirichlet || constant_value(problem, condition.value) == 0.0;
  });
}

}  // namespace

FieldPair SystemSolver::solve(Field const& b, bool constant_null_space, OrderOneProvider order_one,
                              RankNestedProvider nested_spaces, RowNumbers row_numbers) {
  if (on_ranks != nullptr)
    return on_ranks->solve(b, constant_null_space, start, keeps_setup_);
  ResultRecord& record = log_.record;
  MultiPrecisionOperator const& a = matrix().for_solver();
  Context& context = device_.context();
  Array<double> x, x_low;
  SolverOptions solver = solver_options(config_);
  if (solver.falls_back && needs_any_method)
    solver.method = Method::bicgstab;
  if (box_nodes[0] > 0)
    solver.box_nodes = box_nodes;
  SetupSteps steps;
  if (log_.console.verbose())
    solver.setup_steps = &steps;
  if (keeps_setup_)
    solver.kept = &stored_->setup;
  else
    stored_->setup = {};
  if (start != nullptr && start->size() == b.size() && start->context() == &context)
    solver.start = start;
  solver.levels_tell_error = gives_only_zero(config_.problem);
  if (solver.to_discretization && !solver.levels_tell_error)
    log_.warn(
        "solver.tolerance: discretization follows from coarser levels, which have boundary values of 0 only; others are given "
        "here, and the tolerance is " +
        number_text(solver.tolerance));
  solver.constant_null_space = constant_null_space;
  solver.csr = [this] { return matrix().rows().matrix; };
  solver.order_one = std::move(order_one);
  solver.element_order = config_.problem.order;
  Communicator& ranks = team_.communicator();
  solver.blocks = stored_->blocks;
  if (solver.blocks != nullptr) {
    solver.box_nodes = {};
    solver.rows_of_rank = [this] { return NumberedRows{matrix().rows(), {}}; };
  }
  if (!ranks.is_alone()) {
    solver.ranks = ranks;
    solver.box_nodes = {};
    solver.csr = {};
    solver.rows_of_rank = [this, row_numbers] {
      return NumberedRows{matrix().rows(), row_numbers ? row_numbers() : std::vector<std::int64_t>{}};
    };
  }
  solver.nested_spaces = std::move(nested_spaces);
  double const tolerance = solver.tolerance;
  solver.monitor = [this, tolerance](std::int64_t iteration, double residual) {
    log_.console.progress(iteration, residual, tolerance);
  };
  std::optional<Array<double>> from_checkpoint;
  if (checkpoints != nullptr && checkpoints->are_used()) {
    from_checkpoint = checkpoints->begin_solve(context, b.size(), row_numbers);
    solver.checkpoints = checkpoints;
  }
  if (from_checkpoint) {
    solver.initial = InitialGuess::neighbour;
    solver.start = &*from_checkpoint;
  }
  record.clock.time(Stage::solve, [&] { record.result = poisson::solve(a, b.on(context), x, x_low, solver); });
  if (from_checkpoint && !record.result.began_at_start) {
    record.resumed.reset();
    log_.warn("the saved solution leaves a larger residual than 0 does: iterations began anew");
  }
  record.result.bytes_per_iteration = sum_over(ranks, record.result.bytes_per_iteration);
  clear_interrupt();
  log_.console.end_progress();
  for (std::string const& note : record.result.notes)
    log_.console.line("    " + note);
  record.solver.precision = record.result.precision;
  if (record.result.tolerance > 0)
    record.solver.tolerance = record.result.tolerance;
  if (record.result.discretization_error >= 0)
    log_.console.line("    discretisation error about " + number_text(record.result.discretization_error) +
                      " in the energy norm, algebraic " + number_text(record.result.algebraic_error));
  record.solver.preconditioner = record.result.preconditioner;
  record.solver.method = record.result.method;
  record.solver.shift = record.result.shift;
  if (config_.solver.preconditioner == PreconditionerKind::automatic && !record.result.estimates.empty() && log_.console.verbose())
    log_.console.grid(table_of(record.result.estimates));
  if (!steps.seconds().empty()) {
    std::string text = "    setup of multigrid:";
    for (auto const& [name, seconds] : steps.seconds())
      text += (text.back() == ':' ? " " : ", ") + name + " " + seconds_text(seconds);
    log_.console.line(text);
  }
  record.status = record.result.status;
  record.reason = record.result.reason;
  std::int64_t const row = first_not_finite(context, x.size(), x.data());
  std::string const too_large =
      first_message(ranks, row == x.size() ? "" : "the solution is too large for double precision, first in " + row_text(row));
  if (record.status == SolverStatus::converged && !too_large.empty()) {
    record.status = SolverStatus::diverged;
    record.reason = too_large;
  }
  solver_ = std::move(solver);
  solver_.setup_steps = nullptr;
  solver_.start = nullptr;
  solver_.checkpoints = nullptr;
  record.device_peak_bytes = context.memory_peak();
  context.return_freed_memory();
  log_.report(Stage::solve, with_thousands(record.result.iterations) + " iterations on " + record.device + ": " +
                                std::string(name_of(record.status)));
  return {Field(std::move(x)), Field(std::move(x_low))};
}

ResidualNorms SystemSolver::norms_of(Field const& r, Field const& b) const {
  if (on_ranks != nullptr)
    return on_ranks->norms_of(r, b);
  Context& context = device_.context();
  Array<double> diagonal(context, r.size());
  static_cast<LinearOperator<double> const&>(matrix().for_solver()).diagonal(diagonal.data());
  return residual_norms(context, r.on(context), b.on(context), diagonal, team_.communicator());
}

void SystemSolver::record_residual(Field const& r, Field const& b) {
  ResultRecord& record = log_.record;
  ResidualNorms const norms = norms_of(r, b);
  record.residual_true = norms.relative;
  record.residual_scaled = norms.scaled;
}

void SystemSolver::verify(Field const& b, FieldPair& x) {
  if (on_ranks != nullptr)
    return on_ranks->verify(b, x);
  ResultRecord& record = log_.record;
  // What a solver calls `converged`.
  auto const small = [&] { return record.residual_true <= 2 * record.solver.tolerance; };
  Field r;
  auto const measure = [&] {
    record.clock.time(Stage::verify, [&] {
      r = matrix().true_residual(b, x);
      record_residual(r, b);
    });
  };
  return_freed_memory();  // of the solve
  measure();
  if (record.status == SolverStatus::converged && !small() && std::isfinite(record.residual_true)) {
    Field const d = correction(r, record.solver.tolerance / record.residual_true);
    record.clock.time(Stage::verify, [&] { add(d, 1, x); });
    measure();
    if (!small()) {
      record.status = SolverStatus::stagnated;
      record.reason = "||b - A x|| / ||b||, computed in double-double arithmetic, is " + number_text(record.residual_true) +
                      ", more than twice the tolerance " + number_text(record.solver.tolerance) +
                      ": what the solver saw was rounding; ask for a tolerance above that, or for the precision refined";
    }
  }
  if (team_.is_alone())
    measure_bandwidth();
  log_.report(Stage::verify, "true residual " + number_text(record.residual_true) + ", scaled by the diagonal " +
                                 number_text(record.residual_scaled));
}

std::vector<SystemSolver::Solved> SystemSolver::solve_more(std::vector<Array<double>> b) {
  if (on_ranks != nullptr)
    return on_ranks->solve_more(std::move(b));
  ResultRecord& record = log_.record;
  Context& context = device_.context();
  std::vector<Array<double>> x(b.size()), x_low(b.size());
  SolverOptions options = solver_;
  if (options.initial == InitialGuess::neighbour)
    options.initial = InitialGuess::zero;
  auto results = record.clock.time(Stage::solve, [&] { return solve_block(matrix().for_solver(), b, x, x_low, options); });
  log_.console.end_progress();
  std::vector<Solved> list;
  for (std::size_t j = 0; j < b.size(); ++j) {
    if (results[j].status == SolverStatus::interrupted)
      throw Interrupted();
    Solved& solved = list.emplace_back(Solved{{Field(std::move(x[j])), Field(std::move(x_low[j]))}, std::move(results[j])});
    Field const of_b(std::move(b[j]));
    Field r;
    auto const measure = [&] {
      record.clock.time(Stage::verify, [&] {
        r = matrix().true_residual(of_b, solved.x);
        solved.residual_true = norms_of(r, of_b).relative;
      });
    };
    double const tolerance = std::max(solved.result.tolerance, options.tolerance);
    auto const small = [&] { return solved.residual_true <= 2 * tolerance; };
    measure();
    if (solved.result.status != SolverStatus::converged || small())
      continue;
    add(correction(r, tolerance / solved.residual_true), 1, solved.x);
    measure();
    if (!small())
      solved.result.status = SolverStatus::stagnated;
  }
  context.return_freed_memory();
  record.device_peak_bytes = std::max(record.device_peak_bytes, context.memory_peak());
  return list;
}

Field SystemSolver::correction(Field const& r, double tolerance) {
  if (on_ranks != nullptr)
    return on_ranks->correction(r, tolerance);
  ResultRecord& record = log_.record;
  Array<double> d, d_low;
  SolverOptions options = solver_;
  options.tolerance = std::clamp(tolerance, 1e-14, 0.5);
  options.initial = InitialGuess::zero;
  options.to_discretization = false;
  SolverResult result;
  record.clock.time(Stage::solve,
                    [&] { result = poisson::solve(matrix().for_solver(), r.on(device_.context()), d, d_low, options); });
  log_.console.end_progress();
  if (result.status == SolverStatus::interrupted)
    throw Interrupted();
  device_.context().return_freed_memory();
  record.device_peak_bytes = std::max(record.device_peak_bytes, device_.context().memory_peak());
  record.corrections += 1;
  record.correction_iterations += result.iterations;
  return Field(std::move(d));
}

/// The copy bandwidth of the run's backend, where a run has taken so long that measuring it is at most 2 % of it; elsewhere the
/// record has none. The arrays of that measurement are not the run's: they count in neither peak.
void SystemSolver::measure_bandwidth() {
  ResultRecord& record = log_.record;
  // Half of the 2 % is for the piece of the measurement that the end of its time cuts into.
  constexpr double share = 0.01, shortest = 0.05;
  double const seconds = share * record.clock.total();
  if (seconds < shortest)
    return;
  record.clock.time(Stage::verify, [&] {
    record.host_peak_bytes = std::max(record.host_peak_bytes, host_peak_bytes());
    record.copy_bandwidth = measure_copy_bandwidth(*make_context(device_.context().backend()), seconds);
    reset_host_peak();
  });
}

}  // namespace poisson::app
