#include "app/pipeline.hpp"

#include "app/format_choice.hpp"
#include "app/results_directory.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"
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
      {"cells", with_thousands(r.mesh.cells) + " of order " + std::to_string(r.order)},
      {"unknowns", with_thousands(r.mesh.dofs)},
      {"non-zeros", with_thousands(r.mesh.nnz)},
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

}  // namespace

ExitCode run_case(Configuration const& configuration, RunOptions const& options, Console& console) {
  Timer const total;
  RunConfig const& config = configuration.config();
  ResultsDirectory directory(config.output.directory, "result.json", options.overwrite);

  set_thread_count(options.threads);
  std::string const no_cuda = config.backend == Backend::cpu ? "" : why_no_cuda();
  if (config.backend == Backend::cuda && !no_cuda.empty())
    throw EnvironmentError("backend cuda: " + no_cuda);
  Backend const backend = config.backend.value_or(no_cuda.empty() ? Backend::cuda : Backend::cpu);
  // Creating a CUDA context takes a good part of a second: it happens while the mesh is built.
  auto future_context = std::async(backend == Backend::cuda ? std::launch::async : std::launch::deferred,
                                   [backend] { return make_context(backend); });

  ResultRecord record;
  record.configuration_file = options.path;
  record.fingerprint = fingerprint(config);
  record.order = config.problem.order;
  record.solver = config.solver;
  record.backend = name_of(backend);
  record.threads = thread_count();
  console.line("poisson " POISSON_VERSION ": " + options.path);

  // A file that cannot be written costs neither the other files nor the record; the first such error ends the run, after them.
  std::exception_ptr output_error;
  auto const attempt = [&](auto&& write) {
    try {
      write();
    } catch (EnvironmentError const&) {
      if (!output_error)
        output_error = std::current_exception();
    }
  };

  try {
    Timer timer;
    Discretization discretization(config.problem);
    record.mesh = discretization.summary();
    record.times.mesh = timer.seconds();
    console.stage("mesh", record.times.mesh,
                  with_thousands(record.mesh.cells) + " cells, " + with_thousands(record.mesh.dofs) + " unknowns");

    timer = Timer();
    LinearSystem system = discretization.assemble();
    auto const matrix = std::make_shared<CsrMatrix const>(std::move(system.matrix));
    record.mesh.nnz = matrix->nnz();
    record.csr_bytes = matrix->bytes();
    record.times.assembly = timer.seconds();
    console.stage("assembly", record.times.assembly, with_thousands(record.mesh.nnz) + " non-zeros");
    if (system.pure_neumann) {
      record.compatibility_defect = system.compatibility_defect;
      console.line("    pure Neumann: compatibility defect " + number_text(system.compatibility_defect) +
                   " of the data, removed; the solution has mean zero");
    }

    timer = Timer();
    std::unique_ptr<Context> const context = future_context.get();
    record.device = context->description().name;
    auto const stored = store(config, matrix, *context, record, console);
    record.format = stored->format();
    record.matrix_bytes = stored->bytes();
    record.padding_ratio = stored->padding_ratio();
    record.times.transfer = stored->transfer_seconds;
    record.times.convert = timer.seconds() - stored->transfer_seconds - record.times.verify;
    console.stage("convert", record.times.convert,
                  std::string(name_of(record.format)) + ", " + bytes_text(static_cast<double>(record.matrix_bytes)));
    if (backend == Backend::cuda)
      console.stage("transfer", record.times.transfer, "to " + record.device);

    timer = Timer();
    HostVector<double> u(static_cast<std::size_t>(matrix->n_rows));
    SolverOptions solver = config.solver;
    solver.constant_null_space = system.pure_neumann;
    solver.monitor = [&](std::int64_t iteration, double residual) { console.progress(iteration, residual, solver.tolerance); };
    record.result = solve(*stored, system.rhs, u, solver, *context);
    clear_interrupt();
    console.end_progress();
    record.status = name_of(record.result.status);
    record.reason = record.result.reason;
    record.times.solve = timer.seconds();
    record.device_peak_bytes = context->memory_peak();
    console.stage("solve", record.times.solve,
                  with_thousands(record.result.iterations) + " iterations on " + record.device + ": " + record.status);

    timer = Timer();
    record.residual_true = true_residual(*matrix, u, system.rhs);
    for (std::size_t i = 0; i < u.size(); ++i)
      u[i] += system.lift[i];
    if (system.pure_neumann)
      discretization.make_mean_free(u);
    if (config.problem.exact)
      record.errors = discretization.errors(u);
    measure_bandwidth(backend, record);
    record.times.verify += timer.seconds();
    console.stage("verify", record.times.verify, "true residual " + number_text(record.residual_true));

    timer = Timer();
    attempt([&] { write_residual_files(record, config.output.picture, directory); });
    attempt([&] { write_solution_files(discretization, u, config, record, directory); });
    record.times.output = timer.seconds();
    console.stage("output", record.times.output, directory.path().string());
  } catch (Interrupted const&) {
    if (record.result.history.empty())
      record.reason = "interrupted before the solve";
    record.status = "interrupted";
  }

  attempt([&] {
    directory.write("resolved.yaml", [&](fs::path const& path) { write_text_file(path, resolved_yaml(config)); });
    directory.write("configuration.yaml", [&](fs::path const& path) { write_text_file(path, file_text(options.path)); });
  });
  attempt([&] {
    record.files = directory.files();
    record.files.emplace_back("result.json");
    record.host_peak_bytes = std::max(record.host_peak_bytes, host_peak_bytes());
    record.times.total = total.seconds();
    directory.write("result.json", [&](fs::path const& path) { write_text_file(path, to_json(record)); });
    directory.remove_stale();
  });
  record.files = directory.files();
  closing_table(record, directory.path(), console);
  if (output_error)
    std::rethrow_exception(output_error);
  return record.status == "converged" ? exit_done : exit_not_converged;
}

}  // namespace poisson
