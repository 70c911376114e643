#include "app/pipeline.hpp"

#include "app/analysis.hpp"
#include "app/format_choice.hpp"
#include "app/matrix_market.hpp"
#include "app/results_directory.hpp"
#include "app/snapshots.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"
#include "gpu/core/place_text.hpp"
#include "gpu/formats/coo.hpp"
#include "gpu/formats/symmetry.hpp"
#include "gpu/kernels/csr.hpp"
#include "output/atomic_file.hpp"
#include "output/picture.hpp"
#include "output/vtk_files.hpp"

#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <future>
#include <sstream>

namespace poisson {

namespace fs = std::filesystem;

namespace {

/// Most bytes of memory that the process has held since reset_host_peak, or since its start.
std::int64_t host_peak_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == "VmHWM:") {
      std::int64_t kibibytes = 0;
      status >> kibibytes;
      return 1024 * kibibytes;
    }
  return 0;
}

void reset_host_peak() {
  malloc_trim(0);  // what is free and not given back would count again
  std::ofstream("/proc/self/clear_refs") << "5";
}

std::string file_text(std::string const& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string residuals_csv(std::vector<double> const& history) {
  std::ostringstream out;
  out.imbue(std::locale::classic());
  out.precision(17);
  out << "iteration,relative_residual\n";
  for (std::size_t i = 0; i < history.size(); ++i)
    out << i << "," << history[i] << "\n";
  return out.str();
}

/// The copy bandwidth of the run's backend, once. The arrays of that measurement are not the run's: they count in neither peak.
void measure_bandwidth(Backend backend, ResultRecord& record) {
  if (record.copy_bandwidth > 0)
    return;
  record.host_peak_bytes = std::max(record.host_peak_bytes, host_peak_bytes());
  record.copy_bandwidth = measure_copy_bandwidth(*make_context(backend));
  reset_host_peak();
}

/// The matrix in the format of the configuration, or in that which `auto` takes; the console then shows what it decided from.
std::unique_ptr<Matrix> store(RunConfig const& config, std::shared_ptr<CsrMatrix const> matrix, Context& context,
                              ResultRecord& record, Console& console) {
  constexpr std::int64_t worth_measuring = 1 << 26;  // below, seconds are too short for the difference to a nominal bandwidth
  if (config.matrix.format)
    return make_matrix(*config.matrix.format, std::move(matrix), context, config.matrix.format_options());
  Forecast forecast = forecast_of(config.matrix, config.solver, matrix->n_rows);
  if (matrix->bytes() > worth_measuring) {
    Timer const timer;
    measure_bandwidth(context.backend(), record);
    record.times.verify = timer.seconds();
  }
  forecast.bandwidth = record.copy_bandwidth;
  record.format_reason = "auto, for " + with_thousands(static_cast<std::int64_t>(forecast.products)) + " products";
  auto stored = make_matrix(forecast, std::move(matrix), context, config.matrix.format_options(), record.choice.emplace());
  console.grid(table_of(*record.choice));
  return stored;
}

void write_solution_files(Discretization const& discretization, std::span<double const> u, RunConfig const& config,
                          ResultRecord const& record, ResultsDirectory& directory) {
  if (!config.output.vtk_enabled && !(config.output.picture && pictures_built()))
    return;
  SolutionFields const f = discretization.fields(u);
  Grid const grid{f.order, f.points, f.cells};
  if (config.output.vtk_enabled) {
    std::vector<Field> points{{"u", 1, f.u, {}}};
    if (!f.exact.empty()) {
      points.push_back({"exact", 1, f.exact, {}});
      points.push_back({"error", 1, f.error, {}});
    }
    std::vector<Field> const cells{
        {"material", 1, {}, f.material}, {"coefficient", f.coefficient_components, f.coefficient, {}}, {"flux", 3, f.flux, {}}};
    directory.write("solution.vtu", [&](fs::path const& path) { write_vtu(path, grid, points, cells, config.output.vtk); });
    directory.write("solution.pvd", [&](fs::path const& path) { write_pvd(path, {{0.0, "solution.vtu"}}); });
  }
  if (config.output.picture && pictures_built()) {
    PictureOptions options;
    options.title = fs::path(record.configuration_file).stem().string() + ": " + with_thousands(record.mesh.cells) +
                    " cells of order " + std::to_string(record.order) + (record.status == "converged" ? "" : ", " + record.status);
    options.quantity = "u";
    directory.write("solution.png", [&](fs::path const& path) { write_picture(path, grid, f.u, options); });
  }
}

void write_residual_files(ResultRecord const& record, bool picture, ResultsDirectory& directory) {
  auto const& history = record.result.history;
  directory.write("residuals.csv", [&](fs::path const& path) { write_text_file(path, residuals_csv(history)); });
  if (!picture || !pictures_built())
    return;
  Curve curve{std::string(name_of(record.solver.method)), {}, history};
  for (std::size_t i = 0; i < history.size(); ++i)
    curve.x.push_back(static_cast<double>(i));
  PlotOptions options;
  options.title = "Relative residual";
  options.x_label = "iteration";
  options.y_label = "||r|| / ||b||";
  options.reference_y = record.solver.tolerance;
  directory.write("residuals.png", [&](fs::path const& path) { write_plot(path, {curve}, options); });
}

void closing_table(ResultRecord const& r, fs::path const& directory, Console& console) {
  double const share = r.copy_bandwidth > 0 ? r.bandwidth() / r.copy_bandwidth : 0;
  std::vector<std::pair<std::string, std::string>> rows{
      {"status", r.status + (r.reason.empty() ? "" : ": " + r.reason)},
      r.system
          ? std::pair<std::string, std::string>("system", "A = " + r.system->matrix + ", b = " + r.system->rhs_name())
          : std::pair<std::string, std::string>("cells", with_thousands(r.mesh.cells) + " of order " + std::to_string(r.order)),
      {"unknowns", with_thousands(r.dofs)},
      {"non-zeros", with_thousands(r.nnz)},
      {"matrix", std::string(name_of(r.format)) + ", " + bytes_text(static_cast<double>(r.matrix_bytes)) + ", " +
                     number_text(100.0 * static_cast<double>(r.matrix_bytes) / static_cast<double>(r.csr_bytes)) + " % of csr" +
                     (r.format_reason.empty() ? "" : " (" + r.format_reason + ")")},
      {"iterations", with_thousands(r.result.iterations) + " of " + std::string(name_of(r.solver.method)) + ", preconditioner " +
                         std::string(name_of(r.solver.preconditioner))},
      {"residual", number_text(r.result.residual_recursive) + " recursive, " + number_text(r.residual_true) + " true (tolerance " +
                       number_text(r.solver.tolerance) + ")"}};
  if (r.errors)
    rows.emplace_back("error", "L2 " + number_text(r.errors->l2, 4) + ", H1 seminorm " + number_text(r.errors->h1_seminorm, 4) +
                                   ", max " + number_text(r.errors->linf, 4));
  rows.emplace_back("solve",
                    seconds_text(r.result.seconds) + ", " +
                        (r.result.iterations > 0
                             ? seconds_text(r.result.seconds / static_cast<double>(r.result.iterations)) + " an iteration, "
                             : "") +
                        number_text(r.bandwidth() / 1e9) + " GB/s" +
                        (share > 0 ? ", " + number_text(100 * share) + " % of the measured copy bandwidth of " +
                                         number_text(r.copy_bandwidth / 1e9) + " GB/s"
                                   : ""));
  rows.emplace_back("total", seconds_text(r.times.total));
  rows.emplace_back(
      "memory",
      bytes_text(static_cast<double>(r.host_peak_bytes)) + " on the host at most" +
          (r.device_peak_bytes > 0 ? ", " + bytes_text(static_cast<double>(r.device_peak_bytes)) + " on the device" : ""));
  std::string files;
  for (auto const& name : r.files)
    files += (files.empty() ? "" : ", ") + name;
  rows.emplace_back("files", directory.string() + "/ " + files);
  console.line();
  console.table(rows);
}

/// The first index whose value is not finite; the size when all are.
std::size_t first_not_finite(std::span<double const> values) {
  return static_cast<std::size_t>(std::find_if(values.begin(), values.end(), [](double value) { return !std::isfinite(value); }) -
                                  values.begin());
}

/// What every solve shares, wherever its matrix comes from: the results directory, the backend, the record, and the stages from
/// the assembled matrix on.
class Stages {
public:
  /// Throws InputError (results are there already), EnvironmentError (directory, device).
  Stages(RunConfig const& config, RunOptions const& options, Console& console, std::string const& title)
      : config_(config), console_(console), directory_(config.output.directory, "result.json", options.overwrite) {
    set_thread_count(options.threads);
    std::string const no_cuda = config.backend == Backend::cpu ? "" : why_no_cuda();
    if (config.backend == Backend::cuda && !no_cuda.empty())
      throw EnvironmentError("backend cuda: " + no_cuda);
    Backend const backend = config.backend.value_or(no_cuda.empty() ? Backend::cuda : Backend::cpu);
    // Creating a CUDA context takes a good part of a second: it happens while the matrix is made.
    future_context_ = std::async(backend == Backend::cuda ? std::launch::async : std::launch::deferred,
                                 [backend] { return make_context(backend); });
    record.solver = config.solver;
    record.backend = name_of(backend);
    record.threads = thread_count();
    console.line("poisson " POISSON_VERSION ": " + title);
  }

  ResultRecord record;

  /// A file that cannot be written costs neither the other files nor the record; the first such error ends the run, after them.
  template <class Write>
  void attempt(Write&& write) {
    try {
      write(directory_);
    } catch (EnvironmentError const&) {
      if (!output_error_)
        output_error_ = std::current_exception();
    }
  }

  /// All stages; after an interrupt the record tells which of them there were.
  template <class Body>
  void unless_interrupted(Body&& body) {
    try {
      body();
    } catch (Interrupted const&) {
      if (record.result.history.empty())
        record.reason = "interrupted before the solve";
      record.status = "interrupted";
    }
  }

  void convert(std::shared_ptr<CsrMatrix const> matrix) {
    Timer const timer;
    matrix_ = std::move(matrix);
    context_ = future_context_.get();
    record.device = context_->description().name;
    stored_ = store(config_, matrix_, *context_, record, console_);
    record.format = stored_->format();
    record.matrix_bytes = stored_->bytes();
    record.padding_ratio = stored_->padding_ratio();
    record.times.transfer = stored_->transfer_seconds;
    record.times.convert = timer.seconds() - stored_->transfer_seconds - record.times.verify;
    console_.stage("convert", record.times.convert,
                   std::string(name_of(record.format)) + ", " + bytes_text(static_cast<double>(record.matrix_bytes)));
    if (context_->backend() == Backend::cuda)
      console_.stage("transfer", record.times.transfer, "to " + record.device);
  }

  /// The solution of A x = b for the matrix that was converted.
  [[nodiscard]] HostVector<double> solve(std::span<double const> b, bool constant_null_space) {
    Timer const timer;
    HostVector<double> x(static_cast<std::size_t>(matrix_->n_rows));
    SolverOptions solver = config_.solver;
    solver.constant_null_space = constant_null_space;
    solver.csr = matrix_.get();
    solver.monitor = [&](std::int64_t iteration, double residual) { console_.progress(iteration, residual, solver.tolerance); };
    record.result = poisson::solve(*stored_, b, x, solver, *context_);
    clear_interrupt();
    console_.end_progress();
    record.status = name_of(record.result.status);
    record.reason = record.result.reason;
    if (std::size_t const row = first_not_finite(x); record.status == "converged" && row < x.size()) {
      record.status = name_of(SolverStatus::diverged);
      record.reason = "the solution is too large for double precision, first in " + row_text(static_cast<std::int64_t>(row));
    }
    record.times.solve = timer.seconds();
    record.device_peak_bytes = context_->memory_peak();
    console_.stage("solve", record.times.solve,
                   with_thousands(record.result.iterations) + " iterations on " + record.device + ": " + record.status);
    return x;
  }

  /// The true residual of x, then `more`: what else is to be known of the solution, which it may change.
  template <class More>
  void verify(std::span<double const> b, std::span<double const> x, More&& more) {
    Timer const timer;
    record.residual_true = true_residual(*matrix_, x, b, record.result.x_low);
    more();
    measure_bandwidth(context_->backend(), record);
    record.times.verify += timer.seconds();
    console_.stage("verify", record.times.verify, "true residual " + number_text(record.residual_true));
  }

  /// The history, and `write_solution(directory)`.
  template <class WriteSolution>
  void output(WriteSolution&& write_solution) {
    Timer const timer;
    attempt([&](ResultsDirectory& directory) { write_residual_files(record, config_.output.picture, directory); });
    attempt(write_solution);
    record.times.output = timer.seconds();
    console_.stage("output", record.times.output, directory_.path().string());
  }

  /// What `run(stored matrix, context, directory)` finds in the solution, which is written by now. It returns a failure that is to
  /// end the run when all else is done.
  template <class Run>
  void analysis(Run&& run) {
    Timer const timer;
    try {
      std::exception_ptr const failure = run(*stored_, *context_, directory_);
      if (!output_error_)
        output_error_ = failure;
    } catch (Interrupted const&) {
      clear_interrupt();
      record.status = "interrupted";
      record.reason = "interrupted in the analysis; the solution is complete";
    }
    record.times.analysis = timer.seconds();
    console_.end_progress();
    console_.stage("analysis", record.times.analysis, std::to_string(record.analysis.size()) + " of singular values");
  }

  /// The record and the closing table; then throws what an attempt threw.
  [[nodiscard]] ExitCode finish() {
    attempt([&](ResultsDirectory& directory) {
      record.files = directory.files();
      record.files.emplace_back("result.json");
      record.host_peak_bytes = std::max(record.host_peak_bytes, host_peak_bytes());
      record.times.total = total_.seconds();
      directory.write("result.json", [&](fs::path const& path) { write_text_file(path, to_json(record)); });
      directory.remove_stale();
    });
    record.files = directory_.files();
    closing_table(record, directory_.path(), console_);
    if (output_error_)
      std::rethrow_exception(output_error_);
    return record.status == "converged" ? exit_done : exit_not_converged;
  }

private:
  Timer total_;
  RunConfig const& config_;
  Console& console_;
  ResultsDirectory directory_;
  std::exception_ptr output_error_;
  std::future<std::unique_ptr<Context>> future_context_;
  std::unique_ptr<Context> context_;
  std::shared_ptr<CsrMatrix const> matrix_;
  std::unique_ptr<Matrix> stored_;
};

/// Throws InputError when it is not square or holds a value that is not finite. Rows are counted from 1, as in the file.
CsrMatrix read_square_matrix(std::string const& path) {
  CooMatrix const coo = read_matrix_market(path);
  if (coo.n_rows != coo.n_columns)
    throw InputError(path + ": the matrix has " + std::to_string(coo.n_rows) + " rows and " + std::to_string(coo.n_columns) +
                     " columns; a system to solve needs as many rows as columns");
  CsrMatrix matrix = csr_from_coo(coo);
  // Every entry of the file is finite, but those at the same place were added.
  auto const bad = static_cast<std::int64_t>(first_not_finite(matrix.values));
  if (bad < matrix.nnz()) {
    auto const row = std::upper_bound(matrix.row_ptr.begin(), matrix.row_ptr.end(), bad) - matrix.row_ptr.begin();
    throw InputError(path + ": entries of the matrix at row " + std::to_string(row) + ", column " +
                     std::to_string(matrix.columns[static_cast<std::size_t>(bad)] + 1) +
                     " are given more than once and add up to a number too large for double precision");
  }
  return matrix;
}

/// Throws InputError when its length is not that of the matrix or it holds a value that is not finite.
HostVector<double> read_rhs(SystemSpec const& system, std::int64_t n_rows) {
  if (system.rhs.empty())
    return HostVector<double>(static_cast<std::size_t>(n_rows), 1.0);
  HostVector<double> b = read_matrix_market_vector(system.rhs);
  if (static_cast<std::int64_t>(b.size()) != n_rows)
    throw InputError(system.rhs + ": the right-hand side has " + std::to_string(b.size()) + " rows, and the matrix " +
                     system.matrix + " has " + std::to_string(n_rows) + "; both need the same number");
  if (std::size_t const row = first_not_finite(b); row < b.size())
    throw InputError(system.rhs + ": the values of the right-hand side at row " + std::to_string(row + 1) +
                     " are given more than once and add up to a number too large for double precision");
  return b;
}

/// The names of the choices that take unsymmetric matrices.
template <class E>
std::string names_for_unsymmetric() {
  std::string names;
  for (auto const& [value, name] : Names<E>::values)
    if (!needs_symmetry(value))
      names += (names.empty() ? "" : " or ") + std::string(name);
  return names;
}

/// Throws InputError when the method or the preconditioner needs a symmetric matrix and this is none.
void require_suitable(SolverOptions const& solver, CsrMatrix const& matrix, std::string const& path) {
  bool const by_method = needs_symmetry(solver.method);
  if (!by_method && !needs_symmetry(solver.preconditioner))
    return;
  auto const asymmetry = find_asymmetry(view_of(matrix));
  if (!asymmetry)
    return;
  int digits = 4;  // as many as show the difference
  while (digits < 17 && number_text(asymmetry->value, digits) == number_text(asymmetry->mirror, digits))
    ++digits;
  std::string const row = std::to_string(asymmetry->row + 1), column = std::to_string(asymmetry->column + 1);
  std::string const key = by_method ? "solver.method" : "solver.preconditioner";
  throw InputError(key, std::string(by_method ? name_of(solver.method) : name_of(solver.preconditioner)) +
                            " needs a symmetric matrix, and " + path + " has " + number_text(asymmetry->value, digits) +
                            " in row " + row + ", column " + column + " but " + number_text(asymmetry->mirror, digits) +
                            " in row " + column + ", column " + row + "; use --set " + key + "=" +
                            (by_method ? names_for_unsymmetric<Method>() : names_for_unsymmetric<PreconditionerKind>()));
}

}  // namespace

ExitCode run_case(Configuration const& configuration, RunOptions const& options, Console& console) {
  RunConfig const& config = configuration.config();
  Stages stages(config, options, console, options.path);
  ResultRecord& record = stages.record;
  record.configuration_file = options.path;
  record.fingerprint = fingerprint(config);
  record.order = config.problem.order;

  stages.unless_interrupted([&] {
    Timer timer;
    Discretization discretization(config.problem);
    record.mesh = discretization.summary();
    record.dofs = record.mesh.dofs;
    record.times.mesh = timer.seconds();
    console.stage("mesh", record.times.mesh,
                  with_thousands(record.mesh.cells) + " cells, " + with_thousands(record.dofs) + " unknowns");

    timer = Timer();
    LinearSystem system = discretization.assemble();
    auto const matrix = std::make_shared<CsrMatrix const>(std::move(system.matrix));
    record.nnz = matrix->nnz();
    record.csr_bytes = matrix->bytes();
    record.times.assembly = timer.seconds();
    console.stage("assembly", record.times.assembly, with_thousands(record.nnz) + " non-zeros");
    if (system.pure_neumann) {
      record.compatibility_defect = system.compatibility_defect;
      console.line("    pure Neumann: compatibility defect " + number_text(system.compatibility_defect) +
                   " of the data, removed; the solution has mean zero");
    }

    stages.convert(matrix);
    HostVector<double> u = stages.solve(system.rhs, system.pure_neumann);
    stages.verify(system.rhs, u, [&] {
      for (std::size_t i = 0; i < u.size(); ++i)
        u[i] += system.lift[i];
      if (system.pure_neumann)
        discretization.make_mean_free(u);
      if (config.problem.exact)
        record.errors = discretization.errors(u);
    });
    stages.output([&](ResultsDirectory& directory) {
      if (options.keep_unknowns && first_not_finite(u) == u.size())
        directory.write(snapshot_file, [&](fs::path const& path) { write_text_file(path, matrix_market_text(u)); });
      write_solution_files(discretization, u, config, record, directory);
    });
    if (!config.analysis.empty() && record.status != "interrupted")
      stages.analysis([&](Matrix const& stored, Context& context, ResultsDirectory& directory) {
        return analyse({config, discretization, system, *matrix, stored, u, record.result, context}, directory, record, console);
      });
  });

  stages.attempt([&](ResultsDirectory& directory) {
    directory.write("resolved.yaml", [&](fs::path const& path) { write_text_file(path, resolved_yaml(config)); });
    directory.write("configuration.yaml", [&](fs::path const& path) { write_text_file(path, file_text(options.path)); });
  });
  return stages.finish();
}

ExitCode solve_system(Configuration const& configuration, RunOptions const& options, Console& console) {
  RunConfig const& config = configuration.config();
  SystemSpec const& system = *config.system;
  for (auto const& path : {system.matrix, system.rhs})
    if (std::error_code ignored; !path.empty() && !fs::is_regular_file(path, ignored))
      static_cast<void>(read_matrix_market(path));  // says what is wrong, before any other file is read or a directory is made
  Stages stages(config, options, console, system.matrix);
  ResultRecord& record = stages.record;
  record.system = system;

  stages.unless_interrupted([&] {
    Timer const timer;
    auto const matrix = std::make_shared<CsrMatrix const>(read_square_matrix(system.matrix));
    HostVector<double> const b = read_rhs(system, matrix->n_rows);
    require_suitable(config.solver, *matrix, system.matrix);
    record.dofs = matrix->n_rows;
    record.nnz = matrix->nnz();
    record.csr_bytes = matrix->bytes();
    record.fingerprint = fingerprint(config);
    record.times.read = timer.seconds();
    console.stage("read", record.times.read,
                  with_thousands(record.dofs) + " unknowns, " + with_thousands(record.nnz) + " non-zeros");

    stages.convert(matrix);
    HostVector<double> const x = stages.solve(b, false);
    stages.verify(b, x, [] {});
    stages.output([&](ResultsDirectory& directory) {
      if (std::size_t const row = first_not_finite(x); row < x.size())
        console.warning("solution.mtx is not written: row " + std::to_string(row + 1) +
                        " of the solution (counted from 1) is not finite");
      else {
        directory.write("solution.mtx", [&](fs::path const& path) { write_text_file(path, matrix_market_text(x)); });
        if (auto const& low = record.result.x_low; !low.empty())
          directory.write("solution_low.mtx", [&](fs::path const& path) { write_text_file(path, matrix_market_text(low)); });
      }
    });
  });

  stages.attempt([&](ResultsDirectory& directory) {
    directory.write("resolved.yaml", [&](fs::path const& path) { write_text_file(path, resolved_yaml(config)); });
  });
  return stages.finish();
}

}  // namespace poisson
