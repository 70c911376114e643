#include "app/analysis/snapshots.hpp"

#include "app/io/csv.hpp"
#include "app/io/matrix_market.hpp"
#include "app/analysis/svd_report.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"
#include "gpu/formats/matrix.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/blas.hpp"
#include "gpu/spectral/svd.hpp"
#include "output/files/atomic_file.hpp"
#include "output/vtk/vtk_files.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

namespace poisson::app {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;

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

std::string told(Snapshot const& snapshot, std::vector<SweepAxis> const& axes) {
  std::string text = "case " + std::to_string(snapshot.index) + " (";
  for (std::size_t a = 0; a < axes.size(); ++a)
    text += (a > 0 ? ", " : "") + axes[a].path + " = " + snapshot.values[a];
  return text + ")";
}

/// sum w u v
double weighted_dot(std::span<double const> w, std::span<double const> u, std::span<double const> v) {
  double sum = 0;
  for (std::size_t i = 0; i < u.size(); ++i)
    sum += w[i] * u[i] * v[i];
  return sum;
}

/// Galerkin's system in r modes: a of r x r, row by row, then b.
struct ReducedSystem {
  std::vector<double> a, b;
};

ReducedSystem project(assembly::LinearSystem system, DenseMatrix const& modes, Context& host) {
  std::int64_t const n = modes.n_rows, r = modes.n_columns;
  auto const matrix = make_matrix(Format::csr, std::make_shared<CsrMatrix const>(std::move(system.matrix)), host);
  DenseMatrix images(n, r);
  for (std::int64_t k = 0; k < r; ++k)
    matrix->product(1, modes.column(k), 0, images.column(k));
  ReducedSystem reduced{std::vector<double>(static_cast<std::size_t>(r * r)), std::vector<double>(static_cast<std::size_t>(r))};
  gemm(host, true, false, r, r, n, 1, modes.values.data(), n, images.values.data(), n, 0, reduced.a.data(), r);
  gemm(host, true, false, r, 1, n, 1, modes.values.data(), n, system.rhs.data(), n, 0, reduced.b.data(), r);
  for (std::int64_t i = 0; i < r; ++i)  // symmetric to the last bit; then rows and columns are the same
    for (std::int64_t j = 0; j < i; ++j) {
      double& lower = reduced.a[static_cast<std::size_t>(i * r + j)];
      double& upper = reduced.a[static_cast<std::size_t>(j * r + i)];
      lower = upper = (lower + upper) / 2;
    }
  return reduced;
}

/// The coefficients in the first k of r modes.
std::vector<double> solve_leading(ReducedSystem const& system, std::size_t k) {
  std::size_t const r = system.b.size();
  std::vector<double> a(k * k), b(system.b.begin(), system.b.begin() + static_cast<std::ptrdiff_t>(k));
  for (std::size_t i = 0; i < k; ++i)
    std::copy_n(system.a.begin() + static_cast<std::ptrdiff_t>(i * r), k, a.begin() + static_cast<std::ptrdiff_t>(i * k));
  return solve_small(std::move(a), std::move(b));
}

ReducedSystem combine(std::vector<ReducedSystem> const& systems, std::span<double const> weights) {
  ReducedSystem sum{std::vector<double>(systems.front().a.size(), 0.0), std::vector<double>(systems.front().b.size(), 0.0)};
  for (std::size_t i = 0; i < systems.size(); ++i) {
    for (std::size_t e = 0; e < sum.a.size(); ++e)
      sum.a[e] += weights[i] * systems[i].a[e];
    for (std::size_t e = 0; e < sum.b.size(); ++e)
      sum.b[e] += weights[i] * systems[i].b[e];
  }
  return sum;
}

/// How much of the values, one list for each case, no polynomial of the fit can be, relative to all of them.
template <class Get>
double misfit(PolynomialFit const& fit, std::vector<ReducedSystem> const& systems, Get const& get) {
  double all = 0, missed = 0;
  std::size_t const m = systems.size();
  for (std::size_t e = 0; e < get(systems.front()).size(); ++e) {
    std::vector<double> rest(m);
    for (std::size_t i = 0; i < m; ++i)
      all += std::pow(rest[i] = get(systems[i])[e], 2);
    for (std::int64_t j = 0; j < fit.range.n_columns; ++j) {
      double const* const q = fit.range.column(j);
      double const along = std::inner_product(rest.begin(), rest.end(), q, 0.0);
      for (std::size_t i = 0; i < m; ++i)
        rest[i] -= along * q[i];
    }
    missed += std::inner_product(rest.begin(), rest.end(), rest.begin(), 0.0);
  }
  return all > 0 ? std::sqrt(missed / all) : 0;
}

/// The lowest degree that fits what the cases have, else the highest that their number allows.
std::optional<PolynomialFit> best_fit(std::vector<Snapshot const*> const& training, Snapshot const& at,
                                      std::vector<ReducedSystem> const& systems, Context& host) {
  constexpr int highest = 6;
  constexpr double exact = 1e-10;
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
  std::optional<PolynomialFit> best;
  for (int degree = 0; degree <= highest; ++degree) {
    PolynomialFit fit = fit_polynomial(points, target, degree, host);
    if (best && fit.terms > m)
      break;
    best = std::move(fit);
    if (best->terms < m &&
        misfit(
            *best, systems, [](ReducedSystem const& s) -> auto const& { return s.a; }) < exact &&
        misfit(
            *best, systems, [](ReducedSystem const& s) -> auto const& { return s.b; }) < exact)
      break;
  }
  return best;
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

/// A solution in each column, times the square roots of the weights; 0 where it is prescribed. Throws InputError when one has
/// another number of unknowns than that which is left out, Interrupted.
DenseMatrix scaled_solutions(std::vector<Snapshot const*> const& training, Snapshot const& left_out,
                             std::span<std::uint8_t const> constrained, std::span<double const> weights) {
  DenseMatrix scaled(static_cast<std::int64_t>(weights.size()), static_cast<std::int64_t>(training.size()));
  for (std::size_t j = 0; j < training.size(); ++j) {
    if (interrupt_requested())
      throw Interrupted();
    HostVector<double> const x = unknowns_of(*training[j]);
    if (x.size() != weights.size())
      throw InputError("case " + std::to_string(training[j]->index) + " has " + std::to_string(x.size()) + " unknowns, and case " +
                       std::to_string(left_out.index) + " has " + std::to_string(weights.size()) +
                       "; snapshots need one mesh and element");
    double* const column = scaled.column(static_cast<std::int64_t>(j));
    for (std::size_t i = 0; i < x.size(); ++i)
      column[i] = constrained[i] != 0 ? 0 : std::sqrt(weights[i]) * x[i];
  }
  return scaled;
}

/// Galerkin's systems of the cases, each assembled anew. Throws InputError when one prescribes other unknowns than that which is
/// left out, Interrupted.
std::vector<ReducedSystem> project_all(std::vector<Snapshot const*> const& training, Snapshot const& left_out,
                                       HostVector<std::uint8_t> const& constrained, DenseMatrix const& modes, Context& host,
                                       Console& console) {
  std::vector<ReducedSystem> systems;
  for (Snapshot const* const c : training) {
    if (interrupt_requested())
      throw Interrupted();
    console.working("projecting case " + std::to_string(c->index));
    assembly::LinearSystem of_case = assembly::Discretization(c->configuration->config().problem).assemble();
    if (of_case.constrained != constrained)
      throw InputError("case " + std::to_string(c->index) + " prescribes other unknowns on the boundary than case " +
                       std::to_string(left_out.index) + "; snapshots need the same types of conditions everywhere");
    systems.push_back(project(std::move(of_case), modes, host));
  }
  return systems;
}

/// CSV: a row for each case, its parameters and what of every mode its solution holds, the case left out last.
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

/// The modes, the solution left out, what the reduced model finds of it, and the difference.
void write_fields(assembly::Discretization const& discretization, std::span<std::uint8_t const> constrained, DenseMatrix const& modes,
                  HostVector<double> const& u, std::vector<double> const& coefficients, output::VtkOptions const& options,
                  AnalysisOutput const& output) {
  std::vector<assembly::SolutionFields> fields;
  std::vector<std::string> names;
  for (std::int64_t k = 0; k < modes.n_columns; ++k) {
    names.push_back("mode_" + std::to_string(k + 1));
    fields.push_back(discretization.fields({modes.column(k), static_cast<std::size_t>(modes.n_rows)}));
  }
  HostVector<double> reduced = u, difference(u.size());
  for (std::int64_t i = 0; i < modes.n_rows; ++i) {
    auto const at = static_cast<std::size_t>(i);
    if (constrained[at] == 0) {
      reduced[at] = 0;
      for (std::int64_t k = 0; k < modes.n_columns; ++k)
        reduced[at] += coefficients[static_cast<std::size_t>(k)] * modes(i, k);
    }
    difference[at] = u[at] - reduced[at];
  }
  for (auto const& [name, values] : {std::pair<char const*, HostVector<double> const&>{"left_out", u},
                                     {"reduced_model", reduced},
                                     {"reduced_model_error", difference}}) {
    names.emplace_back(name);
    fields.push_back(discretization.fields(values));
  }
  std::vector<output::Field> points;
  for (std::size_t i = 0; i < fields.size(); ++i)
    points.push_back({names[i], 1, fields[i].u, {}});
  output::Grid const grid{fields.front().order, fields.front().points, fields.front().cells};
  output.directory.write(output.file("modes.vtu"), [&](fs::path const& path) { output::write_vtu(path, grid, points, {}, options); });
}

}  // namespace

std::vector<double> solve_small(std::vector<double> a, std::vector<double> b) {
  std::size_t const n = b.size();
  for (std::size_t k = 0; k < n; ++k) {
    std::size_t pivot = k;
    for (std::size_t i = k + 1; i < n; ++i)
      if (std::abs(a[i * n + k]) > std::abs(a[pivot * n + k]))
        pivot = i;
    for (std::size_t j = k; j < n; ++j)
      std::swap(a[k * n + j], a[pivot * n + j]);
    std::swap(b[k], b[pivot]);
    for (std::size_t i = k + 1; i < n; ++i) {
      double const factor = a[k * n + k] != 0 ? a[i * n + k] / a[k * n + k] : std::nan("");
      for (std::size_t j = k + 1; j < n; ++j)
        a[i * n + j] -= factor * a[k * n + j];
      b[i] -= factor * b[k];
    }
  }
  for (std::size_t k = n; k-- > 0;) {
    for (std::size_t j = k + 1; j < n; ++j)
      b[k] -= a[k * n + j] * b[j];
    b[k] = a[k * n + k] != 0 ? b[k] / a[k * n + k] : std::nan("");
  }
  return b;
}

PolynomialFit fit_polynomial(DenseMatrix const& points, std::span<double const> at, int degree, Context& host) {
  std::int64_t const m = points.n_rows, n_axes = points.n_columns;
  // Parameters over [-1, 1], so that powers stay of one size.
  auto const scaled = [&](std::int64_t axis, double x) {
    auto const [low, high] = std::minmax_element(points.column(axis), points.column(axis) + m);
    return *high > *low ? (2 * x - *low - *high) / (*high - *low) : 0.0;
  };
  std::vector<std::vector<int>> exponents{std::vector<int>(static_cast<std::size_t>(n_axes), 0)};
  for (std::size_t a = 0; a < static_cast<std::size_t>(n_axes); ++a) {
    std::vector<std::vector<int>> longer;
    for (auto const& e : exponents)
      for (int power = 0; power + std::accumulate(e.begin(), e.end(), 0) <= degree; ++power) {
        longer.push_back(e);
        longer.back()[a] = power;
      }
    exponents = std::move(longer);
  }
  PolynomialFit fit;
  fit.degree = degree;
  fit.terms = static_cast<std::int64_t>(exponents.size());
  auto const monomial = [&](std::int64_t term, auto const& coordinate) {
    double value = 1;
    for (std::int64_t a = 0; a < n_axes; ++a)
      value *= std::pow(scaled(a, coordinate(a)), exponents[static_cast<std::size_t>(term)][static_cast<std::size_t>(a)]);
    return value;
  };
  DenseMatrix table(m, fit.terms);
  std::vector<double> target;
  for (std::int64_t t = 0; t < fit.terms; ++t) {
    for (std::int64_t i = 0; i < m; ++i)
      table(i, t) = monomial(t, [&](std::int64_t a) { return points(i, a); });
    target.push_back(monomial(t, [&](std::int64_t a) { return at[static_cast<std::size_t>(a)]; }));
  }
  Svd const decomposed = svd(table, {}, host);
  std::int64_t const rank = spectrum_of(decomposed.values, m, fit.terms).rank;
  fit.range = DenseMatrix(m, rank);
  fit.weights.assign(static_cast<std::size_t>(m), 0.0);
  for (std::int64_t k = 0; k < rank; ++k) {
    std::copy_n(decomposed.u.column(k), m, fit.range.column(k));
    double const along = std::inner_product(target.begin(), target.end(), decomposed.v.column(k), 0.0) /
                         decomposed.values[static_cast<std::size_t>(k)];
    for (std::int64_t i = 0; i < m; ++i)
      fit.weights[static_cast<std::size_t>(i)] += along * decomposed.u(i, k);
  }
  return fit;
}

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
  assembly::Discretization discretization(test.configuration->config().problem);
  Timer timer;
  assembly::LinearSystem system = discretization.assemble();
  double const assembly_seconds = timer.seconds();
  HostVector<double> const u = unknowns_of(test);
  auto const n = static_cast<std::int64_t>(u.size());
  if (n != discretization.summary().dofs)
    throw InputError("case " + std::to_string(left_out) + " has " + std::to_string(n) + " unknowns, and its problem has " +
                     std::to_string(discretization.summary().dofs));
  auto const constrained = system.constrained;
  std::int64_t const most = std::max<std::int64_t>(1, std::min(spec.modes, m));
  require_host_memory(8 * n * (m + 2 * most) + svd_host_bytes(n, m, true),
                      "the decomposition of " + std::to_string(m) + " solutions");
  HostVector<double> weights = discretization.integration_weights();
  double const mean = std::accumulate(weights.begin(), weights.end(), 0.0) / static_cast<double>(n);
  for (double& weight : weights)
    weight = std::max(weight, 1e-3 * mean);  // on cells far from bricks an integral may be small, or negative
  DenseMatrix const scaled = scaled_solutions(training, test, constrained, weights);

  output.console.working("decomposing the solutions");
  Svd const pod = svd(scaled, {}, context);
  Spectrum const spectrum = spectrum_of(pod.values, n, m);
  auto const training_errors = errors_by_rank(pod.values);
  std::int64_t const r = std::min(most, spectrum.rank);
  if (r == 0)
    throw InputError("all solutions are zero; there are no modes");
  DenseMatrix modes(n, r);
  for (std::int64_t k = 0; k < r; ++k)
    for (std::int64_t i = 0; i < n; ++i)
      modes(i, k) = pod.u(i, k) / std::sqrt(weights[static_cast<std::size_t>(i)]);

  // The case left out: how near the modes come to it, and what Galerkin's equations find.
  std::vector<double> best(static_cast<std::size_t>(r));
  HostVector<double> free = u;
  for (std::int64_t i = 0; i < n; ++i)
    if (constrained[static_cast<std::size_t>(i)] != 0)
      free[static_cast<std::size_t>(i)] = 0;
  for (std::int64_t k = 0; k < r; ++k)
    best[static_cast<std::size_t>(k)] = weighted_dot(weights, free, {modes.column(k), static_cast<std::size_t>(n)});
  double const size = std::sqrt(weighted_dot(weights, u, u));
  auto const error_of = [&](std::vector<double> const& coefficients) {
    HostVector<double> rest = free;
    for (std::size_t k = 0; k < coefficients.size(); ++k)
      for (std::int64_t i = 0; i < n; ++i)
        rest[static_cast<std::size_t>(i)] -= coefficients[k] * modes(i, static_cast<std::int64_t>(k));
    return std::sqrt(weighted_dot(weights, rest, rest)) / (size > 0 ? size : 1);
  };
  timer = Timer();
  ReducedSystem const exact = project(std::move(system), modes, *host);
  double const projection_seconds = timer.seconds();
  std::vector<ReducedSystem> const systems = project_all(training, test, constrained, modes, *host, output.console);
  auto const fit = best_fit(training, test, systems, *host);

  std::vector<double> projection_errors, galerkin_errors, model_errors;
  for (std::size_t k = 1; k <= static_cast<std::size_t>(r); ++k) {
    projection_errors.push_back(error_of({best.begin(), best.begin() + static_cast<std::ptrdiff_t>(k)}));
    galerkin_errors.push_back(error_of(solve_leading(exact, k)));
    if (fit)
      model_errors.push_back(error_of(solve_leading(combine(systems, fit->weights), k)));
  }
  // The online part, as often as makes a time that can be measured.
  double online_seconds = 0;
  constexpr int repeats = 20;
  std::vector<double> coefficients;
  timer = Timer();
  for (int i = 0; i < repeats; ++i)
    coefficients = solve_leading(fit ? combine(systems, fit->weights) : exact, static_cast<std::size_t>(r));
  online_seconds = timer.seconds() / repeats;

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
  output.directory.write(output.file("coefficients.csv"),
                         [&](fs::path const& path) { output::write_text_file(path, coefficients_text(axes, training, test, pod, best)); });
  RunConfig const& config = test.configuration->config();
  if (config.output.picture && output::pictures_built()) {
    output::PlotOptions plot;
    plot.title = "Proper orthogonal decomposition of the sweep";
    plot.x_label = "modes";
    plot.y_label = "relative error";
    std::vector<output::Curve> curves{curve_of("runs the modes were made from", std::span(training_errors).subspan(1)),
                              curve_of("run left out, projected", projection_errors),
                              curve_of("run left out, reduced model", galerkin_errors)};
    if (fit)
      curves.push_back(curve_of("the same, operators interpolated", model_errors));
    output.directory.write(output.file("spectrum.png"), [&](fs::path const& path) { output::write_plot(path, curves, plot); });
  }
  write_fields(discretization, constrained, modes, u, coefficients, config.output.vtk, output);

  output.console.line("    snapshots: " + std::to_string(r) + " modes leave out " +
                      number_text(out["energy_missed"].get<double>()) + " of the energy of " + std::to_string(m) + " runs, and " +
                      number_text(projection_errors.back()) + " of " + told(test, axes) + ", which they were not made from");
  output.console.line("    the reduced model finds that one to " + number_text(fit ? model_errors.back() : galerkin_errors.back()) +
                      " in " + seconds_text(online_seconds) +
                      (fit ? " (operators interpolated, degree " + std::to_string(fit->degree) + ")"
                           : " after " + seconds_text(assembly_seconds) + " of assembly and " + seconds_text(projection_seconds) +
                                 " of projection") +
                      "; the full solve took " + seconds_text(test.solve_seconds));
}

}  // namespace poisson::app
