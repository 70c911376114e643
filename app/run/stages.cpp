#include "app/run/stages.hpp"

#include "app/analysis/analysis.hpp"
#include "app/analysis/snapshots.hpp"
#include "app/run/backend_choice.hpp"
#include "app/run/balance.hpp"
#include "app/run/format_choice.hpp"
#include "app/run/pictures.hpp"
#include "app/run/report.hpp"
#include "app/run/report_page.hpp"
#include "app/run/versions.hpp"
#include "gpu/core/memory.hpp"
#include "gpu/core/place_text.hpp"
#include "gpu/core/row_map.hpp"
#include "gpu/core/threads.hpp"
#include "gpu/elements/operator_of_rank.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/device_ranks.hpp"
#include "gpu/kernels/symmetry.hpp"
#include "gpu/solvers/solver.hpp"
#include "output/files/atomic_file.hpp"
#include "output/picture/picture.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iostream>
#include <set>

namespace poisson::app {

namespace fs = std::filesystem;

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

/// Every file that a run or a solve may write.
std::vector<std::string> names_of_files(RunConfig const& config, InternalRunOptions const& internal) {
  std::vector<std::string> names{"residuals.csv", "resolved.yaml"};
  auto const add = [&](bool when, std::initializer_list<char const*> more) {
    if (when)
      names.insert(names.end(), more.begin(), more.end());
  };
  if (config.output.picture && output::pictures_built())
    for (std::string const& ending : config.output.picture_endings())
      names.push_back("residuals" + ending);
  add(config.output.report, {report_file});
  if (config.system) {
    add(true, {"solution.mtx", "solution_low.mtx"});
    return names;
  }
  add(true, {"configuration.yaml"});
  if (config.output.vtk_enabled) {
    names.push_back(vtk_file_name(config));
    add(pvd_may_name(names.back()), {"solution.pvd"});
    if (!internal.team.get().is_alone())  // the file that names the pieces, and these
      add(true, {"solution.pvti", "solution.pvtr", "solution.pvtu", "solution_*"});
  }
  for (std::string const& name : picture_files(config))
    names.push_back(name);
  add(config.output.surface, {"surface.vtp"});
  add(internal.keep_unknowns, {snapshot_file});
  for (std::string const& name : quantity_files(config))
    names.push_back(name);
  for (std::size_t i = 0; i < config.analysis.size(); ++i)
    names.push_back(analysis_prefix(i, config.analysis[i]) + "_*");
  return names;
}

std::string message_of(std::exception_ptr const& error) {
  try {
    std::rethrow_exception(error);
  } catch (std::exception const& e) {
    return e.what();
  }
}

}  // namespace

std::size_t first_not_finite(std::span<double const> values) {
  return static_cast<std::size_t>(std::find_if(values.begin(), values.end(), [](double value) { return !std::isfinite(value); }) -
                                  values.begin());
}

std::string pure_neumann_note(double compatibility_defect) {
  return "pure Neumann: compatibility defect " + number_text(compatibility_defect) +
         " of the data, removed; the solution has mean zero";
}

Stages::Stages(RunConfig const& config, RunOptions const& options, Console& console, std::string const& title,
               InternalRunOptions const& internal)
    : config_(config), console_(console), team_(internal.team) {
  auto const open_directory = [&] {
    directory_.emplace(config.output.directory, "result.json", names_of_files(config, internal), options.overwrite,
                       internal.own_folder);
  };
  team_.together([&] {
    if (team_.is_first())
      open_directory();
  });
  team_.together([&] { set_thread_count(options.threads); });
  BackendChoice const choice = choose_backend(config.backend, team_);
  backend_ = choice.backend;
  // Creating a CUDA context takes a good part of a second: it happens while the matrix is made.
  future_context_ = std::async(backend_ == Backend::cuda ? std::launch::async | std::launch::deferred : std::launch::deferred,
                               [backend = backend_, device = choice.device] { return make_context(backend, device); });
  record.solver = config.solver;
  record.name = config.output.name;
  record.unit = config.output.unit;
  record.title = config.output.title;
  record.provenance = provenance_of(options.command);
  record.result.residual_recursive = std::numeric_limits<double>::quiet_NaN();  // until there is one
  record.backend = name_of(backend_);
  record.threads = thread_count();
  console.line("poisson " POISSON_VERSION ": " + title);
}

/// The copy bandwidth of the run's backend, where a run has taken so long that measuring it is at most 2 % of it; elsewhere the
/// record has none. The arrays of that measurement are not the run's: they count in neither peak.
void Stages::measure_bandwidth() {
  // Half of the 2 % is for the piece of the measurement that the end of its time cuts into.
  constexpr double share = 0.01, shortest = 0.05;
  double const seconds = share * record.clock.total();
  if (seconds < shortest)
    return;
  record.clock.time(Stage::verify, [&] {
    record.host_peak_bytes = std::max(record.host_peak_bytes, host_peak_bytes());
    record.copy_bandwidth = measure_copy_bandwidth(*make_context(context_->backend()), seconds);
    reset_host_peak();
  });
}

/// The matrix in the format of the configuration, or in that which `auto` takes. That goes by a nominal bandwidth: the order of the
/// formats hardly depends on it, and measuring one takes longer than many a run.
std::unique_ptr<Matrix> Stages::store() {
  if (config_.matrix.format)
    return make_configured_matrix(*config_.matrix.format, matrix_, *context_, config_.matrix.format_options());
  Forecast const forecast = forecast_of(config_.matrix, config_.solver, matrix_->n_rows);
  auto stored = make_configured_matrix(forecast, matrix_, *context_, config_.matrix.format_options(), record.choice.emplace());
  tell_choice(*record.choice);
  return stored;
}

void Stages::tell_choice(FormatChoice const& choice) {
  record.format_reason =
      "auto, " + (choice.note.empty() ? "for " + with_thousands(static_cast<std::int64_t>(choice.forecast.products)) + " products"
                                      : choice.note);
  if (console_.verbose())
    console_.grid(table_of(choice));
}

Context& Stages::context() {
  if (context_ == nullptr) {
    record.clock.time(Stage::device, [&] { context_ = future_context_.get(); });
    context_->use_in_this_thread();  // another one has made it
    record.device = context_->description().name;
  }
  return *context_;
}

void Stages::convert(std::shared_ptr<CsrMatrix const> matrix) {
  static_cast<void>(context());
  record.clock.time(Stage::convert, [&] {
    matrix_ = std::move(matrix);
    stored_ = store();
  });
  record.clock.move(Stage::convert, Stage::transfer, stored_->transfer_seconds);
  if (stored_->asymmetry > rounding_asymmetry)
    console_.warning("the matrix is symmetric only to " + number_text(stored_->asymmetry) + " of the largest entry of a row; " +
                     std::string(name_of(stored_->format())) + " stores its lower triangle and takes that for the upper one");
  record_matrix();
  report_stage(Stage::convert, std::string(name_of(record.format)) + ", " + bytes_text(static_cast<double>(record.matrix_bytes)));
  if (context_->backend() == Backend::cuda)
    report_stage(Stage::transfer, "to " + record.device);
}

void Stages::adopt(std::unique_ptr<Matrix> matrix, std::optional<FormatChoice> choice) {
  stored_ = std::move(matrix);
  record.choice = std::move(choice);
  if (record.choice)
    tell_choice(*record.choice);
  record_matrix();
}

void Stages::convert(RankRows rows, std::shared_ptr<RankBlocks const> blocks) {
  if (team_.is_alone())
    return convert(std::move(rows.matrix));
  rows_ = std::move(rows);
  blocks_ = std::move(blocks);
  Communicator& ranks = team_.communicator();
  static_cast<void>(context());
  record.clock.time(Stage::convert, [&] {
    SplitRows parts;
    std::unique_ptr<Matrix> local;
    std::int64_t const n = sum_over(ranks, rows_.matrix->n_rows);
    Format format = config_.matrix.format.value_or(Format::csr);
    FormatOptions const options = config_.matrix.format_options();
    bool const chooses = !config_.matrix.format;
    team_.together([&] {
      parts = split(rows_);
      if (chooses && team_.is_first()) {  // the others take what it takes, as far as they can
        local = make_configured_matrix(forecast_of(config_.matrix, config_.solver, n), parts.local, *context_, options,
                                       record.choice.emplace());
        tell_choice(*record.choice);
        format = local->format();
      }
    });
    format = of_first(ranks, format);
    team_.together([&] {
      if (local != nullptr)
        return;
      if (parts.local->n_rows == 0)
        local = make_configured_matrix(Format::csr, parts.local, *context_, options);
      else
        try {
          local = make_configured_matrix(format, parts.local, *context_, options);
        } catch (InputError const&) {
          if (!chooses)
            throw;
          local = make_configured_matrix(Format::csr, parts.local, *context_, options);
        }
    });
    record.format = format;
    rank_matrix_ = std::make_unique<RankMatrix>(std::move(local), parts, rows_.neighbors, ranks);
  });
  auto const own_entries = static_cast<double>(rows_.matrix->nnz());
  record.padding_ratio = sum_over(ranks, rank_matrix_->local().padding_ratio() * own_entries) / sum_over(ranks, own_entries);
  record_matrix_of_ranks();
}

void Stages::adopt(BlockSystem block, std::vector<RankNeighbor> neighbors, std::shared_ptr<RankBlocks const> blocks,
                   std::shared_ptr<RankLattices const> lattices, std::optional<FormatChoice> choice) {
  blocks_ = std::move(blocks);
  rows_.neighbors = std::move(neighbors);
  rim_ = std::move(block.rows);
  rim_rows_ = std::move(block.rim_rows);
  record.choice = std::move(choice);
  if (record.choice)
    tell_choice(*record.choice);
  record.clock.time(Stage::convert, [&] {
    record.format = block.local->format();
    rank_matrix_ = std::make_unique<RankMatrix>(std::move(block.local), rim_, rows_.neighbors, team_.communicator(), lattices);
  });
  double stored = static_cast<double>(record.dofs);  // nodes
  if (lattices != nullptr) {
    std::int64_t const m = lattices->layout.nodes();
    stored = static_cast<double>(sum_over(team_.communicator(), lattices->layout.n_lattices * m * m * m));
  }
  record.padding_ratio =
      record.format == Format::matrix_free ? 1 : 14.0 * stored / (0.5 * static_cast<double>(record.nnz + record.dofs));
  record_matrix_of_ranks();
}

void Stages::record_matrix_of_ranks() {
  Communicator& ranks = team_.communicator();
  record_devices();
  record.matrix_bytes = sum_over(ranks, rank_matrix_->bytes());
  record.bytes_of_ranks = RankFigures(ranks, static_cast<double>(rank_matrix_->bytes()));
  report_stage(Stage::convert, std::string(name_of(record.format)) + ", " + bytes_text(static_cast<double>(record.matrix_bytes)) +
                                   " on " + std::to_string(team_.size()) + " ranks");
}

/// On several ranks: whose devices they are, and how messages go between them.
void Stages::record_devices() {
  Communicator& ranks = team_.communicator();
  DeviceDescription const mine = context_->description();
  record.devices_of_ranks = gather_texts(ranks, mine.name);
  if (backend_ == Backend::cpu)
    return;
  auto const uuids = gather_texts(ranks, mine.uuid);
  auto const n_devices = std::set<std::string>(uuids.begin(), uuids.end()).size();
  if (n_devices < uuids.size()) {
    record.warnings.push_back(std::to_string(uuids.size()) + " ranks share " + std::to_string(n_devices) +
                              (n_devices == 1 ? " device" : " devices") +
                              ", and wait for each other; start as many ranks as there are");
    console_.warning(record.warnings.back());
  }
  console_.line("    ranks exchange by " + rank_transport(*context_, ranks).name);
}

void Stages::record_matrix() {
  record.format = stored_->format();
  record.matrix_bytes = stored_->bytes();
  record.padding_ratio = stored_->padding_ratio();
}

std::shared_ptr<CsrMatrix const> Stages::csr() const {
  return matrix_ != nullptr ? matrix_ : std::make_shared<CsrMatrix const>(stored_->to_csr());
}

RankRows Stages::rank_rows() const {
  if (team_.is_alone())
    return {{}, csr()};
  if (rows_.matrix != nullptr)
    return rows_;
  if (auto const* const shared = dynamic_cast<OperatorOfRank const*>(&rank_matrix_->local()); shared != nullptr)
    return {rows_.neighbors, std::make_shared<CsrMatrix const>(shared->own_rows())};
  return {rows_.neighbors,
          std::make_shared<CsrMatrix const>(join_rows(rank_matrix_->local().to_csr(), rim_.rim, rim_rows_, rows_.n_ghosts()))};
}

HostVector<double> Stages::solve(std::span<double const> b, bool constant_null_space, OrderOneProvider order_one,
                                 RankNestedProvider nested_spaces, std::function<std::vector<std::int64_t>()> row_numbers) {
  MultiPrecisionOperator const& a = solved_matrix();
  HostVector<double> x(static_cast<std::size_t>(a.n_rows()));
  SolverOptions solver = solver_options(config_);
  if (box_nodes[0] > 0)
    solver.box_nodes = box_nodes;
  SetupSteps steps;
  if (console_.verbose())
    solver.setup_steps = &steps;
  solver.constant_null_space = constant_null_space;
  solver.csr = [this] { return csr(); };
  solver.order_one = std::move(order_one);
  solver.element_order = config_.problem.order;
  Communicator& ranks = team_.communicator();
  if (!ranks.is_alone()) {
    solver.ranks = ranks;
    solver.blocks = blocks_;
    solver.box_nodes = {};
    solver.csr = {};
    solver.rows_of_rank = [this, row_numbers] {
      return NumberedRows{rank_rows(), row_numbers ? row_numbers() : std::vector<std::int64_t>{}};
    };
    solver.nested_spaces = std::move(nested_spaces);
  }
  double const tolerance = solver.tolerance;
  solver.monitor = [this, tolerance](std::int64_t iteration, double residual) {
    console_.progress(iteration, residual, tolerance);
  };
  record.clock.time(Stage::solve, [&] { record.result = poisson::solve(a, b, x, solver); });
  record.result.bytes_per_iteration = sum_over(ranks, record.result.bytes_per_iteration);
  clear_interrupt();
  console_.end_progress();
  for (std::string const& note : record.result.notes)
    console_.line("    " + note);
  record.solver.precision = record.result.precision;
  if (record.result.tolerance > 0)
    record.solver.tolerance = record.result.tolerance;
  if (record.result.discretization_error >= 0)
    console_.line("    discretisation error about " + number_text(record.result.discretization_error) +
                  " in the energy norm, algebraic " + number_text(record.result.algebraic_error));
  record.solver.preconditioner = record.result.preconditioner;
  if (config_.solver.preconditioner == PreconditionerKind::automatic && !record.result.estimates.empty() && console_.verbose())
    console_.grid(table_of(record.result.estimates));
  if (!steps.seconds().empty()) {
    std::string text = "    setup of multigrid:";
    for (auto const& [name, seconds] : steps.seconds())
      text += (text.back() == ':' ? " " : ", ") + name + " " + seconds_text(seconds);
    console_.line(text);
  }
  record.status = record.result.status;
  record.reason = record.result.reason;
  std::size_t const row = first_not_finite(x);
  std::string const too_large = first_message(ranks, row == x.size() ? ""
                                                                     : "the solution is too large for double precision, first in " +
                                                                           row_text(static_cast<std::int64_t>(row)));
  if (record.status == SolverStatus::converged && !too_large.empty()) {
    record.status = SolverStatus::diverged;
    record.reason = too_large;
  }
  solver_ = std::move(solver);
  solver_.setup_steps = nullptr;
  record.device_peak_bytes = context_->memory_peak();
  context_->return_freed_memory();
  report_stage(Stage::solve, with_thousands(record.result.iterations) + " iterations on " + record.device + ": " +
                                 std::string(name_of(record.status)));
  return x;
}

HostVector<double> Stages::true_residual_of(std::span<double const> b, std::span<double const> x) {
  std::span<double const> const x_low = record.result.x_low;
  if (team_.is_alone())
    return matrix_ != nullptr ? residual_of(CsrResidualCheck(*matrix_), x, b, x_low)
                              : residual_of(StoredResidualCheck(*stored_), x, b, x_low);
  Communicator& ranks = team_.communicator();
  auto const with_ghosts = [&](std::span<double const> own) {
    auto const ghosts = values_of_ghosts<double>(ranks, rows_.neighbors, own);
    HostVector<double> all(own.begin(), own.end());
    all.insert(all.end(), ghosts.begin(), ghosts.end());
    return all;
  };
  bool const extended = any_of_ranks(ranks, !x_low.empty());
  HostVector<double> const all = with_ghosts(x), low = extended ? with_ghosts(x_low) : HostVector<double>{};
  Matrix const& local = rank_matrix_->local();
  if (rows_.matrix != nullptr || local.n_rows() == 0)
    return residual_of(CsrResidualCheck(rows_.matrix != nullptr ? *rows_.matrix : rim_rows_), all, b, low);
  if (dynamic_cast<OperatorOfRank const*>(&local) != nullptr)
    return residual_of(StoredResidualCheck(local), all, b, low);
  return residual_of(BlockResidualCheck(local, rim_.rim, rim_rows_), all, b, low);
}

void Stages::record_residual(HostVector<double> r, std::span<double const> b) {
  HostVector<double> diagonal(r.size());
  {
    Array<double> on_backend(*context_, std::ssize(diagonal));
    static_cast<LinearOperator<double> const&>(solved_matrix()).diagonal(on_backend.data());
    on_backend.download(std::span<double>(diagonal));
  }
  auto const norms = residual_norms(r, b, diagonal, team_.communicator());
  record.residual_true = norms.relative;
  record.residual_scaled = norms.scaled;
}

void Stages::verify(std::span<double const> b, std::span<double> x) {
  // What a solver calls `converged`.
  auto const small = [&] { return record.residual_true <= 2 * record.solver.tolerance; };
  record.clock.time(Stage::verify, [&] { measure_residual(b, x); });
  if (record.status == SolverStatus::converged && !small() && std::isfinite(record.residual_true)) {
    HostVector<double> const d = correction(record.clock.time(Stage::verify, [&] { return true_residual_of(b, x); }),
                                            record.solver.tolerance / record.residual_true);
    HostVector<double>& low = record.result.x_low;
    for (std::size_t i = 0; i < d.size(); ++i)
      if (low.empty())
        x[i] += d[i];
      else
        add_to_pair(d[i], x[i], low[i]);
    record.clock.time(Stage::verify, [&] { measure_residual(b, x); });
    if (!small()) {
      record.status = SolverStatus::stagnated;
      record.reason = "||b - A x|| / ||b||, computed in double-double arithmetic, is " + number_text(record.residual_true) +
                      ", more than twice the tolerance " + number_text(record.solver.tolerance) +
                      ": what the solver saw was rounding; ask for a tolerance above that, or for the precision refined";
    }
  }
  if (team_.is_alone())
    measure_bandwidth();
  report_stage(Stage::verify, "true residual " + number_text(record.residual_true) + ", scaled by the diagonal " +
                                  number_text(record.residual_scaled));
}

HostVector<double> Stages::correction(std::span<double const> r, double tolerance) {
  HostVector<double> d(r.size());
  SolverOptions options = solver_;
  options.tolerance = std::clamp(tolerance, 1e-14, 0.5);
  options.initial = InitialGuess::zero;
  options.to_discretization = false;
  SolverResult result;
  record.clock.time(Stage::solve, [&] { result = poisson::solve(solved_matrix(), r, d, options); });
  console_.end_progress();
  if (result.status == SolverStatus::interrupted)
    throw Interrupted();
  context_->return_freed_memory();
  record.device_peak_bytes = std::max(record.device_peak_bytes, context_->memory_peak());
  record.corrections += 1;
  record.correction_iterations += result.iterations;
  return d;
}

/// Peaks are those of the rank that has most; times of stages are those of the first rank, beside those of all.
void Stages::gather_figures() {
  Communicator& ranks = team_.communicator();
  record.ranks = ranks.size();
  for (auto const& [stage, name] : Names<Stage>::values)
    record.seconds_of_ranks.emplace_back(stage, RankFigures(ranks, record.clock.seconds(stage)));
  record.host_peak_of_ranks = RankFigures(ranks, static_cast<double>(host_peak_bytes()));
  record.rows_of_ranks = RankFigures(ranks, static_cast<double>(rank_matrix_ != nullptr ? rank_matrix_->n_rows() : 0));
  record.host_peak_bytes = static_cast<std::int64_t>(record.host_peak_of_ranks.largest);
  record.device_peak_bytes = max_over(ranks, record.device_peak_bytes);
}

void Stages::write_configuration(Configuration const& configuration) {
  attempt([&](ResultsDirectory& directory) {
    directory.try_write("resolved.yaml", [&](fs::path const& path) {
      output::write_text_file(path, resolved_yaml(with_absolute_files(configuration.config())));
    });
    directory.try_write("configuration.yaml",
                        [&](fs::path const& path) { output::write_text_file(path, configuration.text_with_sets()); });
  });
}

ExitCode Stages::finish() {
  if (team_.is_alone())
    return finish_on_first();
  gather_figures();
  share_interrupt(team_.communicator());
  ExitCode code = exit_done;
  team_.on_first([&] { code = finish_on_first(); });
  return of_first(team_.communicator(), code);
}

ExitCode Stages::finish_on_first() {
  directory_->ensure_writable();
  keep(directory_->failure());
  record.host_peak_bytes = std::max(record.host_peak_bytes, host_peak_bytes());
  if (config_.output.report)
    attempt([&](ResultsDirectory& directory) {
      record.files = directory.files();
      record.files.emplace_back("result.json");
      if (output_error_)
        record.error = message_of(output_error_);
      directory.try_write(report_file, [&](fs::path const& path) {
        output::write_text_file(path, report_of_run(config_, record, directory.path()));
      });
    });
  keep(directory_->failure());
  ExitCode const code = output_error_                                ? exit_code_of(output_error_)
                        : record.status == SolverStatus::converged   ? exit_done
                        : record.status == SolverStatus::interrupted ? interrupted_code()
                                                                     : exit_not_converged;
  record.exit_code = code;
  if (output_error_)
    record.error = message_of(output_error_);
  record.files = directory_->files();
  record.files.emplace_back("result.json");
  record.files_failed = directory_->failures();
  directory_->write_record(to_json(record));
  keep(directory_->failure());
  record.files = directory_->files();
  print_closing_table(record, directory_->path(), console_);
  if (output_error_)
    std::rethrow_exception(output_error_);
  if (code != exit_done && console_.quiet())
    std::cerr << "poisson: " << name_of(record.status) << (record.reason.empty() ? "" : ": " + record.reason) << std::endl;
  return code;
}

}  // namespace poisson::app
