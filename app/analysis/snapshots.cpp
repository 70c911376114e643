#include "app/analysis/snapshots.hpp"

#include "app/analysis/svd_report.hpp"
#include "app/analysis/sweep_model.hpp"
#include "app/config/problem.hpp"
#include "app/io/csv.hpp"
#include "app/io/matrix_market.hpp"
#include "app/io/output_mesh.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"
#include "gpu/formats/matrix.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/spectral/reduced_model.hpp"
#include "gpu/spectral/residual_model.hpp"
#include "output/files/atomic_file.hpp"
#include "output/vtk/vtk_files.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

namespace poisson::app {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;

void write_snapshot(std::span<double const> u, ResultsDirectory& directory) {
  directory.try_write(snapshot_file, [&](fs::path const& path) { output::write_text_file(path, matrix_market_text(u)); });
}

namespace {

/// A parameter's value where that is a number, in quotes or not; else NaN.
double number_of(std::string text) {
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"')
    text = text.substr(1, text.size() - 2);
  double value = 0;
  auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && std::isfinite(value) ? value : std::nan("");
}

HostVector<double> unknowns_of(Snapshot const& snapshot) {
  fs::path const path = snapshot.directory / snapshot_file;
  if (std::error_code ignored; !fs::exists(path, ignored))
    throw InputError("case " + std::to_string(snapshot.index) + " has no " + snapshot_file + "; run the sweep without --resume");
  return read_matrix_market_vector(path);
}

std::string description_of(Snapshot const& snapshot, std::vector<SweepAxis> const& axes) {
  std::string text = "case " + std::to_string(snapshot.index) + " (";
  for (std::size_t a = 0; a < axes.size(); ++a)
    text += (a > 0 ? ", " : "") + axes[a].path + " = " + snapshot.values[a];
  return text + ")";
}

/// What residuals tell is made while the cases are assembled; no longer where their matrices are no sums of few.
class ResidualsOfCases {
public:
  ResidualsOfCases(std::shared_ptr<CsrMatrix const> reference, bool singular, Context& host)
      : maker_(std::in_place, std::move(reference), singular, tolerance, 0.1 * tolerance, host) {}

  void add(CsrMatrix const& matrix, std::span<double const> rhs) {
    auto const n = static_cast<std::int64_t>(rhs.size());
    if (!maker_ || !fits(12 * matrix.nnz() + 8 * n))
      return;
    try {
      weights_.push_back(maker_->add(matrix, rhs));
    } catch (InputError const&) {  // entries at other places
      maker_.reset();
    }
    if (maker_ && maker_->n_terms() > most_terms)
      maker_.reset();
  }
  /// Of the cases in the order in which they came.
  void give(DenseMatrix const& modes, SweepModel& model) {
    std::size_t const n_rhs = maker_ ? maker_->n_right_hand_sides() : 0;
    if (!maker_ || !fits(8 * modes.n_rows *
                         (modes.n_columns + 2 * static_cast<std::int64_t>(n_rhs) +
                          2 * static_cast<std::int64_t>(maker_->n_terms()) * modes.n_columns)))
      return;
    for (std::int64_t k = 0; k < modes.n_columns; ++k)
      maker_->add_mode({modes.column(k), static_cast<std::size_t>(modes.n_rows)});
    model.residuals = maker_->model();
    std::size_t const n_matrices = model.residuals->a.size();
    model.weights =
        DenseMatrix(static_cast<std::int64_t>(weights_.size()), static_cast<std::int64_t>(n_matrices + model.residuals->b.size()));
    std::fill(model.weights.values.begin(), model.weights.values.end(), 0.0);
    for (std::size_t i = 0; i < weights_.size(); ++i)
      for (auto const& [first, list] :
           {std::pair<std::size_t, std::vector<double> const&>{0, weights_[i].matrix}, {n_matrices, weights_[i].rhs}})
        for (std::size_t t = 0; t < list.size(); ++t)
          model.weights(static_cast<std::int64_t>(i), static_cast<std::int64_t>(first + t)) = list[t];
  }

private:
  /// Else nothing is made.
  bool fits(std::int64_t bytes) {
    try {
      require_host_memory(bytes, "errors from residuals");
    } catch (EnvironmentError const&) {
      maker_.reset();
    }
    return maker_.has_value();
  }

  static constexpr double tolerance = 1e-10;
  static constexpr std::size_t most_terms = 10;

  std::optional<ResidualModelMaker> maker_;
  std::vector<SystemWeights> weights_;
};

/// Galerkin's equations of an assembled system.
ReducedSystem projected(std::shared_ptr<CsrMatrix const> matrix, std::span<double const> rhs, DenseMatrix const& modes,
                        ResidualsOfCases& residuals, Context& host) {
  residuals.add(*matrix, rhs);
  return project(*make_matrix(Format::csr, std::move(matrix), host), rhs, modes, host);
}

/// The polynomials that interpolate the operators of all cases, seen from the case left out; nothing where a parameter is no
/// number.
std::optional<PolynomialFit> interpolation(std::vector<Snapshot const*> const& training, Snapshot const& at,
                                           std::vector<ReducedSystem> const& systems, Context& host) {
  auto const m = static_cast<std::int64_t>(training.size());
  auto const n_axes = static_cast<std::int64_t>(at.values.size());
  DenseMatrix points(m, n_axes);
  std::vector<double> target;
  for (std::int64_t a = 0; a < n_axes; ++a) {
    target.push_back(number_of(at.values[static_cast<std::size_t>(a)]));
    for (std::int64_t i = 0; i < m; ++i)
      points(i, a) = number_of(training[static_cast<std::size_t>(i)]->values[static_cast<std::size_t>(a)]);
  }
  if (std::any_of(points.values.begin(), points.values.end(), [](double x) { return std::isnan(x); }) ||
      std::any_of(target.begin(), target.end(), [](double x) { return std::isnan(x); }))
    return {};
  return fit_systems(systems, points, target, host);
}

/// The cases that modes are made from: all that converged beside `left_out`. Throws InputError when there are none, or that one did
/// not converge.
std::vector<Snapshot const*> training_cases(std::vector<Snapshot> const& cases, Snapshot const& left_out) {
  if (!left_out.usable)
    throw InputError("case " + std::to_string(left_out.index) + ", which is to be left out, has no solution that converged");
  std::vector<Snapshot const*> training;
  for (auto const& c : cases)
    if (c.usable && c.index != left_out.index)
      training.push_back(&c);
  if (training.empty())
    throw InputError("no case beside case " + std::to_string(left_out.index) + " has a solution that converged");
  return training;
}

/// A solution in each column, 0 where it is prescribed. Throws InputError when one has another number of unknowns than the case
/// left out, Interrupted.
DenseMatrix read_solutions(std::vector<Snapshot const*> const& training, Snapshot const& left_out,
                           std::span<std::uint8_t const> constrained) {
  DenseMatrix solutions(static_cast<std::int64_t>(constrained.size()), static_cast<std::int64_t>(training.size()));
  for (std::size_t j = 0; j < training.size(); ++j) {
    if (interrupt_requested())
      throw Interrupted();
    HostVector<double> const x = unknowns_of(*training[j]);
    if (x.size() != constrained.size())
      throw InputError("case " + std::to_string(training[j]->index) + " has " + std::to_string(x.size()) + " unknowns, and case " +
                       std::to_string(left_out.index) + " has " + std::to_string(constrained.size()) +
                       "; snapshots need one mesh and element");
    double* const column = solutions.column(static_cast<std::int64_t>(j));
    for (std::size_t i = 0; i < x.size(); ++i)
      column[i] = constrained[i] != 0 ? 0 : x[i];
  }
  return solutions;
}

/// Galerkin's systems of the cases, each assembled anew. Throws InputError when one prescribes other unknowns than that which is
/// left out, Interrupted.
std::vector<ReducedSystem> project_all(std::vector<Snapshot const*> const& training, Snapshot const& left_out,
                                       HostVector<std::uint8_t> const& constrained, DenseMatrix const& modes,
                                       ResidualsOfCases& residuals, Context& host, Console& console) {
  std::vector<ReducedSystem> systems;
  for (Snapshot const* const c : training) {
    if (interrupt_requested())
      throw Interrupted();
    console.working("projecting case " + std::to_string(c->index));
    assembly::LinearSystem of_case = assembly::Discretization(problem_of(c->configuration->config())).assemble();
    if (of_case.constraints.mask() != constrained)
      throw InputError("case " + std::to_string(c->index) + " prescribes other unknowns on the boundary than case " +
                       std::to_string(left_out.index) + "; snapshots need the same types of conditions everywhere");
    systems.push_back(projected(std::make_shared<CsrMatrix const>(std::move(of_case.matrix)), of_case.rhs, modes, residuals, host));
  }
  return systems;
}

/// CSV: a row for each case, its parameters and its coefficient in every mode, the case left out last.
std::string coefficients_text(std::vector<SweepAxis> const& axes, std::vector<Snapshot const*> const& training,
                              Snapshot const& left_out, Svd const& pod, std::vector<double> const& of_left_out) {
  std::string text = "case";
  for (auto const& axis : axes)
    text += "," + axis.path;
  for (std::size_t k = 1; k <= of_left_out.size(); ++k)
    text += ",mode_" + std::to_string(k);
  text += '\n';
  auto const row = [&](Snapshot const& c, auto const& coefficient) {
    text += std::to_string(c.index);
    for (auto const& value : c.values)
      text += "," + csv_field(value);
    char word[32];
    for (std::size_t k = 0; k < of_left_out.size(); ++k)
      text.append(",").append(word, std::to_chars(word, word + sizeof word, coefficient(k)).ptr);
    text += '\n';
  };
  for (std::size_t j = 0; j < training.size(); ++j)
    row(*training[j],
        [&](std::size_t k) { return pod.values[k] * pod.v(static_cast<std::int64_t>(j), static_cast<std::int64_t>(k)); });
  row(left_out, [&](std::size_t k) { return of_left_out[k]; });
  return text;
}

/// u with 0 for what is prescribed.
HostVector<double> free_part(HostVector<double> u, std::span<std::uint8_t const> constrained) {
  for (std::size_t i = 0; i < u.size(); ++i)
    if (constrained[i] != 0)
      u[i] = 0;
  return u;
}

/// The modes, the solution left out, what the reduced model finds of it, and the difference.
void write_fields(assembly::Discretization const& discretization, std::span<std::uint8_t const> constrained,
                  DenseMatrix const& modes, HostVector<double> const& u, std::vector<double> const& coefficients,
                  output::VtkOptions const& options, AnalysisOutput const& output) {
  std::vector<assembly::SolutionFields> fields;
  std::vector<std::string> names;
  for (std::int64_t k = 0; k < modes.n_columns; ++k) {
    names.push_back("mode_" + std::to_string(k + 1));
    fields.push_back(discretization.fields({modes.column(k), static_cast<std::size_t>(modes.n_rows)}));
  }
  HostVector<double> const difference = remainder(free_part(u, constrained), modes, coefficients);
  HostVector<double> reduced = u;
  for (std::size_t i = 0; i < u.size(); ++i)
    reduced[i] -= difference[i];
  for (auto const& [name, values] : {std::pair<char const*, HostVector<double> const&>{"left_out", u},
                                     {"reduced_model", reduced},
                                     {"reduced_model_error", difference}}) {
    names.emplace_back(name);
    fields.push_back(discretization.fields(values));
  }
  std::vector<output::Field> points;
  for (std::size_t i = 0; i < fields.size(); ++i)
    points.push_back({names[i], 1, fields[i].u, {}});
  assembly::OutputMesh const mesh = discretization.output_mesh();
  output.directory.write(output.file("modes.vtu"),
                         [&](fs::path const& path) { output::write_vtu(path, as_output(mesh), points, {}, options); });
}

/// The integrals of the basis functions, but none below a thousandth of their mean: on cells far from bricks one may be small, or
/// negative.
HostVector<double> positive_weights(assembly::Discretization const& discretization) {
  HostVector<double> weights = discretization.integration_weights();
  double const mean = std::accumulate(weights.begin(), weights.end(), 0.0) / static_cast<double>(weights.size());
  for (double& weight : weights)
    weight = std::max(weight, 1e-3 * mean);
  return weights;
}

/// Galerkin's equations for the case left out.
struct ReducedModel {
  ReducedSystem own;                    ///< from its own operator
  std::vector<ReducedSystem> training;  ///< those of the other cases,
  std::optional<PolynomialFit> fit;     ///< which this interpolates; nothing where a parameter is no number

  [[nodiscard]] ReducedSystem interpolated() const { return combine(training, fit->weights); }
};

/// Relative errors of the case left out in 1, 2, ... modes.
struct ModelErrors {
  std::vector<double> projection;    ///< of its best approximation, which is `best`
  std::vector<double> galerkin;      ///< of the reduced model with its own operator
  std::vector<double> interpolated;  ///< of that with the interpolated operator; empty where there is none
};

ModelErrors model_errors_of(ReducedModel const& model, DenseMatrix const& modes, std::span<double const> weights,
                            std::span<double const> free, std::span<double const> best, double norm) {
  auto const error_of = [&](std::span<double const> coefficients) {
    return weighted_norm(weights, remainder(free, modes, coefficients)) / (norm > 0 ? norm : 1);
  };
  ModelErrors errors;
  for (std::size_t k = 1; k <= best.size(); ++k) {
    errors.projection.push_back(error_of(best.first(k)));
    errors.galerkin.push_back(error_of(solve_leading(model.own, k)));
    if (model.fit)
      errors.interpolated.push_back(error_of(solve_leading(model.interpolated(), k)));
  }
  return errors;
}

/// What the model says of a case.
struct ModelledCase {
  Snapshot const* snapshot;
  ReducedSystem const* system;
  std::vector<double> coefficients;
  double missed, norm;
};

/// The model of all cases, the one left out among them; nothing where there are too few.
std::optional<SweepModel> model_of(std::vector<ModelledCase> const& modelled, std::vector<SweepAxis> const& axes,
                                   DenseMatrix const& modes, ResidualsOfCases& residuals, Context& host) {
  if (modelled.size() < fewest_model_cases)
    return {};
  auto const rows = static_cast<std::int64_t>(modelled.size());
  SweepModel model;
  for (SweepAxis const& axis : axes)
    model.keys.push_back(axis.path);
  auto const value_in = [](Snapshot const& snapshot, std::string const& name) {
    auto const found = std::find_if(snapshot.quantities.begin(), snapshot.quantities.end(),
                                    [&](auto const& quantity) { return quantity.first == name; });
    return found == snapshot.quantities.end() ? std::nan("") : found->second;
  };
  for (auto const& quantity : modelled.front().snapshot->quantities)
    if (std::all_of(modelled.begin(), modelled.end(),
                    [&](ModelledCase const& c) { return std::isfinite(value_in(*c.snapshot, quantity.first)); }))
      model.quantities.push_back(quantity.first);
  auto const& own = modelled.front().snapshot->configuration->config().output.quantities;
  std::stable_partition(model.quantities.begin(), model.quantities.end(), [&](std::string const& name) {
    return std::any_of(own.begin(), own.end(), [&](QuantitySpec const& quantity) { return quantity.name == name; });
  });
  model.points = DenseMatrix(rows, static_cast<std::int64_t>(axes.size()));
  model.coefficients = DenseMatrix(rows, static_cast<std::int64_t>(modelled.front().coefficients.size()));
  model.values = DenseMatrix(rows, static_cast<std::int64_t>(model.quantities.size()));
  for (std::int64_t i = 0; i < rows; ++i) {
    ModelledCase const& c = modelled[static_cast<std::size_t>(i)];
    model.cases.push_back(c.snapshot->index);
    model.systems.push_back(*c.system);
    model.missed.push_back(c.missed);
    model.norms.push_back(c.norm);
    for (std::int64_t a = 0; a < model.points.n_columns; ++a)
      model.points(i, a) = number_of(c.snapshot->values[static_cast<std::size_t>(a)]);
    for (std::int64_t k = 0; k < model.coefficients.n_columns; ++k)
      model.coefficients(i, k) = c.coefficients[static_cast<std::size_t>(k)];
    for (std::int64_t q = 0; q < model.values.n_columns; ++q)
      model.values(i, q) = value_in(*c.snapshot, model.quantities[static_cast<std::size_t>(q)]);
  }
  if (std::all_of(modelled.begin(), modelled.end(),
                  [&](ModelledCase const& c) { return c.snapshot->values == modelled.front().snapshot->values; }))
    return {};
  residuals.give(modes, model);
  choose_rules(model, host);
  return model;
}

/// The cases that modes were made from: coefficients, and what the modes kept miss, follow from the decomposition.
std::vector<ModelledCase> modelled_training(std::vector<Snapshot const*> const& training, std::vector<ReducedSystem> const& systems,
                                            Svd const& pod, std::int64_t modes) {
  std::vector<ModelledCase> all;
  for (std::size_t j = 0; j < training.size(); ++j) {
    ModelledCase c{training[j], &systems[j], {}, 0, 0};
    for (std::size_t k = 0; k < pod.values.size(); ++k) {
      double const coefficient = pod.values[k] * pod.v(static_cast<std::int64_t>(j), static_cast<std::int64_t>(k));
      c.norm = std::hypot(c.norm, coefficient);
      if (static_cast<std::int64_t>(k) < modes)
        c.coefficients.push_back(coefficient);
      else
        c.missed = std::hypot(c.missed, coefficient);
    }
    all.push_back(std::move(c));
  }
  return all;
}

/// The errors over the number of modes.
void write_error_plot(std::span<double const> training_errors, ModelErrors const& errors, OutputSpec const& formats,
                      AnalysisOutput const& output) {
  output::PlotOptions plot;
  plot.title = "Proper orthogonal decomposition of the sweep";
  plot.x_label = "modes";
  plot.y_label = "relative error";
  std::vector<output::Curve> curves{curve_of("runs the modes were made from", training_errors.subspan(1)),
                                    curve_of("run left out, projected", errors.projection),
                                    curve_of("run left out, reduced model", errors.galerkin)};
  if (!errors.interpolated.empty())
    curves.push_back(curve_of("the same, operators interpolated", errors.interpolated));
  write_plots(output, formats, "spectrum", curves, plot);
}

}  // namespace

void analyse_snapshots(std::vector<Snapshot> const& cases, std::vector<SweepAxis> const& axes, AnalysisSpec const& spec,
                       Context& context, AnalysisOutput output) {
  json& out = output.json;
  auto const host = make_context(Backend::cpu);
  std::size_t const left_out = spec.leave_out ? static_cast<std::size_t>(*spec.leave_out) : cases.size() / 2;
  Snapshot const& test = cases.at(left_out);
  std::vector<Snapshot const*> const training = training_cases(cases, test);
  auto const m = static_cast<std::int64_t>(training.size());

  // Only the free unknowns are reduced: what is prescribed on the boundary is known in every case.
  output.console.working("reading " + std::to_string(m + 1) + " solutions");
  assembly::Discretization discretization(problem_of(test.configuration->config()));
  Timer timer;
  assembly::LinearSystem system = discretization.assemble();
  double const assembly_seconds = timer.seconds();
  HostVector<double> const u = unknowns_of(test);
  auto const n = static_cast<std::int64_t>(u.size());
  if (n != discretization.summary().dofs)
    throw InputError("case " + std::to_string(left_out) + " has " + std::to_string(n) + " unknowns, and its problem has " +
                     std::to_string(discretization.summary().dofs));
  auto const constrained = system.constraints.mask();
  std::int64_t const most = std::max<std::int64_t>(1, std::min(spec.modes, m));
  require_host_memory(8 * n * (m + 2 * most) + svd_host_bytes(n, m, true),
                      "the decomposition of " + std::to_string(m) + " solutions");
  HostVector<double> const weights = positive_weights(discretization);

  DenseMatrix solutions = read_solutions(training, test, constrained);
  output.console.working("decomposing the solutions");
  auto const decomposition = proper_orthogonal_decomposition(std::move(solutions), weights, most, context);
  auto const& [scaled, pod, spectrum, modes] = decomposition;
  auto const training_errors = errors_by_rank(pod.values);
  std::int64_t const r = modes.n_columns;
  if (r == 0)
    throw InputError("all solutions are zero; there are no modes");

  // The case left out: how near the modes come to it, and what Galerkin's equations find.
  HostVector<double> const free = free_part(u, constrained);
  std::vector<double> const best = coordinates(modes, weights, free);
  ReducedModel model;
  auto const matrix = std::make_shared<CsrMatrix const>(std::move(system.matrix));
  ResidualsOfCases residuals(matrix, is_singular(system), *host);
  timer = Timer();
  model.own = projected(matrix, system.rhs, modes, residuals, *host);
  double const projection_seconds = timer.seconds();
  model.training = project_all(training, test, constrained, modes, residuals, *host, output.console);
  model.fit = interpolation(training, test, model.training, *host);
  auto const& fit = model.fit;
  ModelErrors const errors = model_errors_of(model, modes, weights, free, best, weighted_norm(weights, u));
  auto const& [projection_errors, galerkin_errors, model_errors] = errors;

  // The online part, often enough to be timed.
  constexpr int repeats = 20;
  std::vector<double> coefficients;
  timer = Timer();
  for (int i = 0; i < repeats; ++i)
    coefficients = solve_leading(fit ? model.interpolated() : model.own, static_cast<std::size_t>(r));
  double const online_seconds = timer.seconds() / repeats;

  out["n"] = n;
  out["snapshots"] = m;
  out["left_out"] = left_out;
  out["modes"] = r;
  put({"snapshots", n, m, pod.band_width, true, spectrum, pod.seconds, svd_accuracy(*host, scaled, pod), output.file("values.csv")},
      out);
  out["energy_missed"] = std::pow(training_errors[static_cast<std::size_t>(r)], 2);
  out["projection_error"] = projection_errors.back();
  out["reduced_model"] = {{"error", galerkin_errors.back()},
                          {"assembly_and_projection_seconds", assembly_seconds + projection_seconds}};
  if (fit)
    out["reduced_model"].update(
        {{"interpolated_error", model_errors.back()}, {"interpolation_degree", fit->degree}, {"interpolation_terms", fit->terms}});
  out["reduced_model"].update(
      {{"solve_seconds", online_seconds}, {"full_solve_seconds", test.solve_seconds}, {"full_run_seconds", test.total_seconds}});

  write_csv(output.directory, output.file("values.csv"), "i", 1,
            {{"singular_value", pod.values},
             {"error_of_rank", std::span(training_errors).subspan(1)},
             {"projection_error", projection_errors},
             {"reduced_model_error", galerkin_errors},
             {"interpolated_model_error", model_errors}});
  output.directory.write(output.file("coefficients.csv"), [&, &of_pod = pod](fs::path const& path) {
    output::write_text_file(path, coefficients_text(axes, training, test, of_pod, best));
  });
  std::optional<SweepModel> online;
  if (fit) {
    std::vector<ModelledCase> modelled{
        {&test, &model.own, best, weighted_norm(weights, remainder(free, modes, best)), weighted_norm(weights, free)}};
    for (ModelledCase& c : modelled_training(training, model.training, pod, r))
      modelled.push_back(std::move(c));
    online = model_of(modelled, axes, modes, residuals, *host);
  }
  if (online) {
    output.directory.write(output.file(sweep_model_file), [&](fs::path const& path) { write_sweep_model(path, *online); });
    out["model"] = {{"file", output.file(sweep_model_file)}, {"cases", online->cases.size()}, {"error", online->of_solution.error}};
  }
  RunConfig const& config = test.configuration->config();
  write_error_plot(training_errors, errors, config.output, output);
  write_fields(discretization, constrained, modes, u, coefficients, config.output.vtk, output);

  output.console.line("    snapshots: " + std::to_string(r) + " modes leave out " +
                      number_text(out["energy_missed"].get<double>()) + " of the energy of " + std::to_string(m) + " runs, and " +
                      number_text(projection_errors.back()) + " of " + description_of(test, axes) +
                      ", which they were not made from");
  output.console.line("    the reduced model finds that one to " + number_text(fit ? model_errors.back() : galerkin_errors.back()) +
                      " in " + seconds_text(online_seconds) +
                      (fit ? " (operators interpolated, degree " + std::to_string(fit->degree) + ")"
                           : " after " + seconds_text(assembly_seconds) + " of assembly and " + seconds_text(projection_seconds) +
                                 " of projection") +
                      "; the full solve took " + seconds_text(test.solve_seconds));
  if (online)
    output.console.line("    'poisson predict' finds each of the " + std::to_string(online->cases.size()) +
                        " solutions from those at other values to " + number_text(online->of_solution.error));
}

}  // namespace poisson::app
