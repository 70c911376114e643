#include "app/analysis/analysis.hpp"
#include "app/analysis/svd_report.hpp"
#include "app/io/output_mesh.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"
#include "gpu/spectral/cg_bound.hpp"
#include "gpu/spectral/csr_analysis.hpp"
#include "gpu/spectral/lanczos.hpp"
#include "gpu/spectral/svd.hpp"
#include "output/vtk/vtk_files.hpp"

#include <algorithm>
#include <cmath>

namespace poisson::app {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;

namespace {

void write_convergence(CgBound const& bound, AnalysisInput const& input, AnalysisOutput const& output) {
  auto const& history = input.result.history;
  std::vector<double> error_bound(history.size()), residual_bound(history.size());
  for (std::size_t i = 0; i < history.size(); ++i) {
    residual_bound[i] = bound.residual(static_cast<std::int64_t>(i));
    error_bound[i] = 2 * residual_bound[i] / bound.factor;
  }
  write_csv(output.directory, output.file("convergence.csv"), "iteration", 0,
            {{"relative_residual", history}, {"residual_bound", residual_bound}, {"energy_error_bound", error_bound}});
  output::PlotOptions plot;
  plot.title = "What cg did, and what it had to do";
  plot.x_label = "iteration";
  plot.y_label = "relative to the start";
  plot.reference_y = input.config.solver.tolerance;
  write_plots(output, input.config.output, "convergence",
              {curve_of("||r||, measured", history, 0), curve_of("bound on ||r||", residual_bound, 0),
               curve_of("bound on the error in the energy norm", error_bound, 0)},
              plot);
}

/// The first and the last vectors as fields on the mesh, scaled to a largest value of 1.
void write_modes(DenseMatrix const& v, std::span<std::int64_t const> free, std::int64_t n_modes, AnalysisInput const& input,
                 AnalysisOutput const& output) {
  std::int64_t const n = v.n_columns, from_either_end = std::min(n_modes, n);
  std::vector<std::pair<std::string, std::int64_t>> modes;
  for (std::int64_t i = 0; i < from_either_end; ++i)
    modes.emplace_back("largest_" + std::to_string(i + 1), i);
  for (std::int64_t i = 0; i < from_either_end; ++i)
    modes.emplace_back("smallest_" + std::to_string(i + 1), n - 1 - i);
  assembly::Discretization const& discretization = input.discretization();
  HostVector<double> u(static_cast<std::size_t>(discretization.summary().dofs), 0.0);
  std::vector<assembly::SolutionFields> fields;
  std::vector<output::Field> points;
  for (auto const& [name, column] : modes) {
    double const* const mode = v.column(column);
    double const largest = *std::max_element(mode, mode + v.n_rows, [](double a, double b) { return std::abs(a) < std::abs(b); });
    for (std::size_t i = 0; i < free.size(); ++i)
      u[static_cast<std::size_t>(free[i])] = mode[i] / largest;
    fields.push_back(discretization.fields(u));
  }
  for (std::size_t i = 0; i < modes.size(); ++i)
    points.push_back({modes[i].first, 1, fields[i].u, {}});
  assembly::OutputMesh const mesh = discretization.output_mesh();
  output.directory.write(output.file("modes.vtu"), [&](fs::path const& path) {
    output::write_vtu(path, as_output(mesh), points, {}, input.config.output.vtk);
  });
}

/// cg as the theory knows it, in one go: other methods and preconditioners have no bound here.
bool has_bound(SolverOptions const& solver) {
  return solver.method == Method::cg && (solver.precision == Precision::double_ || solver.precision == Precision::double_double) &&
         (solver.preconditioner == PreconditionerKind::none || solver.preconditioner == PreconditionerKind::jacobi);
}

json json_of(CgBound const& bound, double condition, SolverOptions const& solver, SolverResult const& result) {
  return {{"condition", condition},
          {"rate", bound.rate},
          {"bound_iterations", bound.iterations(solver.tolerance)},
          {"iterations", result.iterations}};
}

std::string text_of(CgBound const& bound, SolverOptions const& solver, SolverResult const& result) {
  return "cg has to reach " + number_text(solver.tolerance) + " within " + with_thousands(bound.iterations(solver.tolerance)) +
         " iterations, and took " + with_thousands(result.iterations);
}

std::string no_bound(SolverOptions const& solver) {
  return "no bound is known for " + std::string(name_of(solver.method)) + " with the preconditioner " +
         std::string(name_of(solver.preconditioner)) + " in the precision " + std::string(name_of(solver.precision));
}

/// The solver as it was, without `auto`.
SolverOptions solver_of(AnalysisInput const& input) {
  SolverOptions solver = input.config.solver;
  solver.precision = input.result.precision;
  solver.preconditioner = input.result.preconditioner;
  solver.method = input.result.method;
  return solver;
}

/// What can be said of a matrix that is too large to be decomposed.
void estimate_extremes(AnalysisInput const& input, AnalysedSystem const& system, AnalysisSpec const& spec, std::int64_t n,
                       double asymmetry, AnalysisOutput const& output) {
  if (asymmetry > 1e-12)
    throw InputError("the operator is not symmetric, and too large to be decomposed (max_dense is " +
                     with_thousands(spec.max_dense) + ")");
  SolverOptions const solver = solver_of(input);
  json& out = output.json;
  out["matrix"] = {{"name", "operator"}, {"n_rows", n}, {"n_columns", n}};
  out["method"] = "lanczos";
  output.console.working("estimating the ends of the spectrum");
  Timer const timer;
  std::vector<double> null_vector(system.is_singular ? system.fixed.size() : 0, 1.0);
  ExtremeEigenvalues const values = extreme_eigenvalues(system.stored, system.fixed, null_vector, input.context);
  double const condition = values.largest / values.smallest;
  out.update({{"estimated", true},
              {"condition", condition},
              {"largest", values.largest},
              {"smallest", values.smallest},
              {"lanczos_iterations", values.iterations},
              {"settled", values.converged}});
  std::string second = no_bound(solver);
  if (has_bound(solver)) {
    double preconditioned = condition;
    if (solver.preconditioner == PreconditionerKind::jacobi) {
      auto const scaling = diagonal_scaling(system.matrix);
      for (std::size_t i = 0; i < null_vector.size(); ++i)
        null_vector[i] = 1 / scaling[i];
      auto const scaled =
          make_matrix(Format::csr, std::make_shared<CsrMatrix const>(scaled_symmetrically(system.matrix, scaling)), input.context);
      ExtremeEigenvalues const of_scaled = extreme_eigenvalues(*scaled, system.fixed, null_vector, input.context);
      preconditioned = of_scaled.largest / of_scaled.smallest;
    }
    CgBound const bound = cg_bound(condition, preconditioned);
    out["cg"] = json_of(bound, preconditioned, solver, input.result);
    write_convergence(bound, input, output);
    second = text_of(bound, solver, input.result);
  }
  out["seconds"] = {{"total", timer.seconds()}};
  output.console.line("    operator: " + with_thousands(n) + " free unknowns, more than max_dense; estimates after " +
                      with_thousands(values.iterations) + " iterations" + (values.converged ? "" : ", not settled") +
                      ": eigenvalues " + number_text(values.largest) + " to " + number_text(values.smallest) +
                      ", condition about " + number_text(condition) + ", symmetric to " + number_text(asymmetry));
  output.console.line("    " + second);
}

}  // namespace

void analyse_operator(AnalysisInput const& input, AnalysisSpec const& spec, AnalysisOutput output) {
  AnalysedSystem const system = input.system();
  CsrMatrix const& a = system.matrix;
  SolverOptions const solver = solver_of(input);
  json& out = output.json;
  std::vector<std::int64_t> free;
  for (std::int64_t i = 0; i < a.n_rows; ++i)
    if (system.fixed[static_cast<std::size_t>(i)] == 0)
      free.push_back(i);
  auto const n = static_cast<std::int64_t>(free.size());
  out["n"] = n;
  if (n == 0)
    throw InputError("every unknown is fixed by a Dirichlet condition; there is no operator to look at");
  double const asymmetry = distance_to_symmetry(a, system.fixed);
  out["distance_to_symmetry"] = asymmetry;
  if (n > spec.max_dense) {
    estimate_extremes(input, system, spec, n, asymmetry, output);
    return;
  }
  bool const vectors = spec.modes > 0;
  require_host_memory(8 * n * n + svd_host_bytes(n, n, vectors), "the dense operator of " + with_thousands(n) + " unknowns");
  DenseMatrix const dense = dense_submatrix(a, free);
  output.console.working("decomposing the operator");
  SvdOptions options;
  options.vectors = vectors;
  Svd const result = svd(dense, options, input.context);
  Spectrum const spectrum = spectrum_of(result.values, n, n);
  bool const bounded = has_bound(solver);
  double preconditioned = spectrum.condition;
  if (bounded && solver.preconditioner == PreconditionerKind::jacobi) {
    if (interrupt_requested())
      throw Interrupted();
    std::vector<double> scaling(free.size());
    for (std::int64_t i = 0; i < n; ++i)
      scaling[static_cast<std::size_t>(i)] = 1 / std::sqrt(dense(i, i));
    options.vectors = false;
    preconditioned = spectrum_of(svd(dense_submatrix(a, free, scaling), options, input.context).values, n, n).condition;
  }

  SvdSummary summary{"operator", n, n, result.band_width, vectors, spectrum, result.seconds, {}, output.file("values.csv")};
  if (vectors)
    summary.accuracy = svd_accuracy(input.context, dense, result);
  put(summary, out);
  out["null_space"] = {{"dimension", n - spectrum.rank}, {"expected", system.is_singular ? 1 : 0}};
  std::string null_space;
  if (spectrum.rank < n) {
    null_space = ", null space of dimension " + std::to_string(n - spectrum.rank);
    if (vectors && n - spectrum.rank == 1) {
      double sum = 0;
      for (std::int64_t i = 0; i < n; ++i)
        sum += result.v(i, n - 1);
      double const cosine = std::abs(sum) / std::sqrt(static_cast<double>(n));
      out["null_space"]["cosine_to_constant"] = cosine;
      null_space += cosine > 1 - 1e-10 ? ", the constants" : "";
    }
  }

  write_csv(output.directory, output.file("values.csv"), "i", 1, {{"singular_value", result.values}});
  output::PlotOptions plot;
  plot.title = "Singular values of the operator";
  plot.x_label = "i";
  write_plots(output, input.config.output, "spectrum", {curve_of("", result.values)}, plot);
  std::string second = no_bound(solver);
  if (bounded && spectrum.rank > 0) {
    CgBound const bound = cg_bound(spectrum.condition, preconditioned);
    out["cg"] = json_of(bound, preconditioned, solver, input.result);
    write_convergence(bound, input, output);
    second = text_of(bound, solver, input.result);
  }
  if (vectors)
    write_modes(result.v, free, spec.modes, input, output);
  output.console.line("    operator: " + with_thousands(n) + " free unknowns, singular values " +
                      number_text(result.values.front()) + " to " + number_text(spectrum.smallest) + ", condition " +
                      number_text(spectrum.condition) + null_space + ", symmetric to " + number_text(asymmetry));
  output.console.line("    " + second);
}

}  // namespace poisson::app
