#include "app/analysis/sweep_model.hpp"

#include "app/io/console.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/nearest_name.hpp"
#include "output/files/atomic_file.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <numeric>
#include <optional>

namespace poisson::app {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;

namespace {

constexpr char const* model_format = "poisson sweep model";
constexpr int model_version = 2;
constexpr int highest_degree = 6;
constexpr std::size_t most_tried = 40;
constexpr double most_error = std::numeric_limits<double>::max();  // of a rule that cannot be tried; JSON has no infinity

using CaseRows = std::vector<std::size_t>;

/// The number of monomials in `n` variables up to a total degree.
double n_monomials(std::int64_t n, int degree) {
  double count = 1;
  for (int d = 1; d <= degree; ++d)
    count *= static_cast<double>(n + d) / d;
  return count;
}

DenseMatrix rows_of(DenseMatrix const& matrix, CaseRows const& rows) {
  DenseMatrix some(static_cast<std::int64_t>(rows.size()), matrix.n_columns);
  for (std::int64_t j = 0; j < matrix.n_columns; ++j)
    for (std::size_t i = 0; i < rows.size(); ++i)
      some(static_cast<std::int64_t>(i), j) = matrix(static_cast<std::int64_t>(rows[i]), j);
  return some;
}

std::vector<double> row_of(DenseMatrix const& matrix, std::size_t row) {
  std::vector<double> values;
  for (std::int64_t j = 0; j < matrix.n_columns; ++j)
    values.push_back(matrix(static_cast<std::int64_t>(row), j));
  return values;
}

/// The sum of weights[i] times row rows[i].
std::vector<double> weighted_row(DenseMatrix const& matrix, CaseRows const& rows, std::vector<double> const& weights) {
  std::vector<double> sum(static_cast<std::size_t>(matrix.n_columns), 0.0);
  for (std::size_t j = 0; j < sum.size(); ++j)
    for (std::size_t i = 0; i < rows.size(); ++i)
      sum[j] += weights[i] * matrix(static_cast<std::int64_t>(rows[i]), static_cast<std::int64_t>(j));
  return sum;
}

/// Weights of these cases, whose sum with their values is the polynomial through them at a place; nothing where they do not
/// determine it. What has one value in all of them is no variable.
std::optional<std::vector<double>> polynomial_weights(SweepModel const& model, ModelRule const& rule, CaseRows const& rows,
                                                      std::vector<double> const& at, Context& host) {
  DenseMatrix const& all = rule.variables == ModelVariables::coefficients ? model.coefficients : model.points;
  DenseMatrix const some = rows_of(all, rows);
  auto const value = [&](double x) { return rule.variables == ModelVariables::logarithms ? std::log(x) : x; };
  DenseMatrix points(some.n_rows, 0);
  std::vector<double> place;
  for (std::int64_t j = 0; j < some.n_columns; ++j) {
    double const* const column = some.column(j);
    if (std::all_of(column, column + some.n_rows, [&](double x) { return x == column[0]; }))
      continue;
    for (std::int64_t i = 0; i < some.n_rows; ++i)
      points.values.push_back(value(column[i]));
    ++points.n_columns;
    place.push_back(value(at[static_cast<std::size_t>(j)]));
  }
  if (n_monomials(points.n_columns, rule.degree) > static_cast<double>(rows.size()))
    return {};
  PolynomialFit const fit = fit_polynomial(points, place, rule.degree, host);
  if (fit.range.n_columns < fit.terms)
    return {};
  return fit.weights;
}

/// The coefficients of the modes, by a rule, from some of the cases; nothing where these do not determine them.
std::optional<std::vector<double>> coefficients_by(SweepModel const& model, ModelRule const& rule, CaseRows const& rows,
                                                   std::vector<double> const& at, Context& host) {
  auto const weights = polynomial_weights(model, rule, rows, at, host);
  if (!weights)
    return {};
  if (!rule.by_equations)
    return weighted_row(model.coefficients, rows, *weights);
  std::vector<ReducedSystem> systems;
  for (std::size_t const row : rows)
    systems.push_back(model.systems[row]);
  return solve_leading(combine(systems, *weights), static_cast<std::size_t>(model.modes()));
}

/// A case, and those that it is predicted from.
struct Trial {
  std::size_t of;
  CaseRows others;
};

/// Every case is predicted from those with other values of a key, for every key that varies: on a grid of values those with the
/// same value would hide what happens between values.
std::vector<Trial> trials_of(SweepModel const& model) {
  std::vector<Trial> all;
  std::size_t const m = model.cases.size();
  for (std::size_t i = 0; i < m; ++i)
    for (std::int64_t a = 0; a < model.points.n_columns; ++a) {
      Trial trial{i, {}};
      for (std::size_t j = 0; j < m; ++j)
        if (model.points(static_cast<std::int64_t>(j), a) != model.points(static_cast<std::int64_t>(i), a))
          trial.others.push_back(j);
      bool const known =
          std::any_of(all.begin(), all.end(), [&](Trial const& other) { return other.of == i && other.others == trial.others; });
      if (!trial.others.empty() && !known)
        all.push_back(std::move(trial));
    }
  if (all.size() <= most_tried)
    return all;
  std::vector<Trial> some;
  for (std::size_t i = 0; i < most_tried; ++i)
    some.push_back(all[i * (all.size() - 1) / (most_tried - 1)]);
  return some;
}

CaseRows all_rows(SweepModel const& model) {
  CaseRows rows(model.cases.size());
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  return rows;
}

/// The polynomials that may be of use, the simplest ones first.
std::vector<ModelRule> polynomial_rules(SweepModel const& model, bool by_equations, bool in_coefficients, Context& host) {
  std::vector<ModelRule> rules;
  auto const everything = all_rows(model);
  auto const add = [&](ModelVariables variables, int highest) {
    auto const at = row_of(variables == ModelVariables::coefficients ? model.coefficients : model.points, 0);
    for (int degree = 0; degree <= highest; ++degree)
      if (ModelRule const rule{by_equations, variables, degree, 0}; polynomial_weights(model, rule, everything, at, host))
        rules.push_back(rule);
  };
  add(ModelVariables::keys, highest_degree);
  if (std::all_of(model.points.values.begin(), model.points.values.end(), [](double x) { return x > 0; }))
    add(ModelVariables::logarithms, highest_degree);
  if (in_coefficients)
    add(ModelVariables::coefficients, 2);
  return rules;
}

double distance_of(std::vector<double> const& a, std::vector<double> const& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum);
}

/// Weights of a row, or of what was interpolated between rows.
SystemWeights weights_from(std::vector<double> const& row, std::size_t n_matrices) {
  auto const middle = row.begin() + static_cast<std::ptrdiff_t>(n_matrices);
  return {{row.begin(), middle}, {middle, row.end()}};
}

/// The larger of the relative errors of the matrix and the right-hand side.
double error_of_weights(SystemWeights const& found, SystemWeights const& known) {
  auto const relative = [](std::vector<double> const& a, std::vector<double> const& b) {
    double const norm = distance_of(b, std::vector<double>(b.size(), 0.0));
    return norm > 0 ? distance_of(a, b) / norm : 0;
  };
  return std::max(relative(found.matrix, known.matrix), relative(found.rhs, known.rhs));
}

void choose_rule_of_weights(SweepModel& model, std::vector<Trial> const& trials, Context& host) {
  model.of_weights = {false, ModelVariables::keys, 0, most_error};
  std::size_t const n_matrices = model.residuals->a.size();
  for (ModelRule& rule : polynomial_rules(model, false, false, host)) {
    for (Trial const& trial : trials) {
      auto const polynomial = polynomial_weights(model, rule, trial.others, row_of(model.points, trial.of), host);
      rule.error = polynomial
                       ? std::max(rule.error,
                                  error_of_weights(weights_from(weighted_row(model.weights, trial.others, *polynomial), n_matrices),
                                                   weights_from(row_of(model.weights, trial.of), n_matrices)))
                       : most_error;
      if (rule.error >= most_error)
        break;
    }
    if (rule.error < 0.5 * model.of_weights.error)
      model.of_weights = rule;
  }
}

json json_of_rule(ModelRule const& rule) {
  return {{"equations", rule.by_equations}, {"variables", name_of(rule.variables)}, {"degree", rule.degree}, {"error", rule.error}};
}

ModelRule rule_from(json const& entry, bool of_solution) {
  auto const variables = parse_name<ModelVariables>(entry.at("variables").get<std::string>());
  ModelRule const rule{entry.at("equations").get<bool>(), variables.value_or(ModelVariables::keys), entry.at("degree").get<int>(),
                       entry.at("error").get<double>()};
  if (!variables || rule.degree < 0 || rule.degree > highest_degree ||
      (of_solution ? rule.variables == ModelVariables::coefficients : rule.by_equations))
    throw InputError("a rule is unknown");
  return rule;
}

std::vector<double> numbers_from(json const& list, std::size_t count) {
  auto const numbers = list.get<std::vector<double>>();
  if (numbers.size() != count || std::any_of(numbers.begin(), numbers.end(), [](double x) { return !std::isfinite(x); }))
    throw InputError("a list has " + std::to_string(numbers.size()) + " numbers in place of " + std::to_string(count));
  return numbers;
}

json json_of_residuals(SweepModel const& model) {
  ResidualModel const& residuals = *model.residuals;
  json all{{"a", residuals.a},
           {"b", residuals.b},
           {"energies", residuals.energies},
           {"parts", residuals.parts},
           {"rule", json_of_rule(model.of_weights)},
           {"weights", json::array()}};
  for (std::size_t i = 0; i < model.cases.size(); ++i)
    all["weights"].push_back(row_of(model.weights, i));
  return all;
}

void put_row(DenseMatrix& matrix, std::size_t row, std::vector<double> const& values) {
  for (std::size_t j = 0; j < values.size(); ++j)
    matrix(static_cast<std::int64_t>(row), static_cast<std::int64_t>(j)) = values[j];
}

void read_residuals(json const& all, SweepModel& model) {
  ResidualModel& residuals = model.residuals.emplace();
  residuals.modes = model.modes();
  auto const lists = [](json const& entry, auto const& size_of) {
    std::vector<std::vector<double>> result;
    for (json const& list : entry)
      result.push_back(numbers_from(list, size_of(list)));
    return result;
  };
  auto const r = static_cast<std::size_t>(residuals.modes);
  auto const of_size = [](std::size_t size) { return [size](json const&) { return size; }; };
  residuals.a = lists(all.at("a"), of_size(r * (r + 1) / 2));
  residuals.b = lists(all.at("b"), of_size(r));
  residuals.parts = lists(all.at("parts"), [](json const& list) { return list.size(); });
  std::size_t d = 0;
  for (auto const& part : residuals.parts)
    d = std::max(d, part.size());
  residuals.energies = lists(all.at("energies"), of_size(d * (d + 1) / 2));
  std::size_t const n_terms = residuals.a.size() + residuals.b.size();
  if (residuals.a.empty() || residuals.energies.size() != residuals.a.size() ||
      residuals.parts.size() != residuals.b.size() + r * residuals.a.size() || all.at("weights").size() != model.cases.size())
    throw InputError("what it has for residuals does not fit together");
  model.of_weights = rule_from(all.at("rule"), true);
  model.weights = DenseMatrix(static_cast<std::int64_t>(model.cases.size()), static_cast<std::int64_t>(n_terms));
  for (std::size_t i = 0; i < model.cases.size(); ++i)
    put_row(model.weights, i, numbers_from(all.at("weights")[i], n_terms));
}

SweepModel model_from(json const& all) {
  SweepModel model;
  json const& cases = all.at("cases");
  std::size_t const m = cases.size(), r = all.at("modes");
  model.keys = all.at("keys").get<std::vector<std::string>>();
  for (json const& entry : all.at("quantities")) {
    model.quantities.push_back(entry.at("name"));
    model.of_quantities.push_back(rule_from(entry, false));
  }
  model.of_solution = rule_from(all.at("solution"), true);
  if (m < fewest_model_cases || model.keys.empty() || r == 0)
    throw InputError("it has no cases, keys or modes");
  auto const rows = static_cast<std::int64_t>(m);
  model.points = DenseMatrix(rows, static_cast<std::int64_t>(model.keys.size()));
  model.coefficients = DenseMatrix(rows, static_cast<std::int64_t>(r));
  model.values = DenseMatrix(rows, static_cast<std::int64_t>(model.quantities.size()));
  for (std::size_t i = 0; i < m; ++i) {
    json const& entry = cases[i];
    model.cases.push_back(entry.at("case"));
    put_row(model.points, i, numbers_from(entry.at("at"), model.keys.size()));
    put_row(model.coefficients, i, numbers_from(entry.at("coefficients"), r));
    put_row(model.values, i, numbers_from(entry.at("quantities"), model.quantities.size()));
    model.missed.push_back(entry.at("missed"));
    model.norms.push_back(entry.at("norm"));
    model.systems.push_back({numbers_from(entry.at("a"), r * r), numbers_from(entry.at("b"), r)});
  }
  if (all.contains("residuals"))
    read_residuals(all["residuals"], model);
  return model;
}

/// The file of the model: in a directory the only one.
fs::path file_of_model(fs::path const& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored))
    throw InputError("'" + path.string() + "' does not exist; give the results directory of a sweep");
  if (!fs::is_directory(path, ignored))
    return path;
  std::vector<fs::path> found;
  for (auto const& entry : fs::directory_iterator(path, ignored))
    if (std::string const name = entry.path().filename().string();
        name.starts_with("svd") && name.ends_with(std::string("_snapshots_") + sweep_model_file))
      found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  if (found.empty())
    throw InputError(
        "'" + path.string() +
        "' has no model; 'poisson sweep' makes one where analysis.svd has {of: snapshots}, all swept keys are numbers, "
        "and " +
        std::to_string(fewest_model_cases) + " cases or more have converged");
  if (found.size() > 1)
    throw InputError("'" + path.string() + "' has " + std::to_string(found.size()) + " models; give the file of one, such as " +
                     found.front().string());
  return found.front();
}

/// The values of a key that predictions are made for.
struct KeyRange {
  double low, high;           ///< of the cases
  double from = 0, upto = 0;  ///< a tenth beyond
};
KeyRange range_of_key(SweepModel const& model, std::size_t key) {
  auto const column = static_cast<std::int64_t>(key);
  auto const [low, high] = std::minmax_element(model.points.column(column), model.points.column(column) + model.points.n_rows);
  KeyRange range{*low, *high};
  constexpr double beyond = 0.1;
  if (*low > 0 && *high >= 10 * *low) {
    double const factor = std::pow(*high / *low, beyond);
    range.from = *low / factor;
    range.upto = *high * factor;
  } else {
    double const width = beyond * (*high - *low);
    range.from = *low - width;
    range.upto = *high + width;
    if (*low > 0)  // what is positive may have to be
      range.from = std::max(range.from, 0.1 * *low);
  }
  return range;
}

std::string listed_keys(SweepModel const& model) {
  std::string text;
  for (std::size_t a = 0; a < model.keys.size(); ++a) {
    KeyRange const range = range_of_key(model, a);
    text += (text.empty() ? "" : ", ") + model.keys[a] + " (from " + number_text(range.low, 6) + " to " +
            number_text(range.high, 6) + ")";
  }
  return text;
}

}  // namespace

void choose_rules(SweepModel& model, Context& host) {
  auto const trials = trials_of(model);
  auto candidates = polynomial_rules(model, true, false, host);
  auto const direct = polynomial_rules(model, false, false, host);
  candidates.insert(candidates.end(), direct.begin(), direct.end());
  model.of_solution = {false, ModelVariables::keys, 0, most_error};
  std::vector<std::vector<double>> found(trials.size(), row_of(model.coefficients, 0));  // coefficients, as predicted
  for (ModelRule& rule : candidates) {
    std::vector<std::vector<double>> coefficients;
    for (Trial const& trial : trials) {
      auto predicted = coefficients_by(model, rule, trial.others, row_of(model.points, trial.of), host);
      double const error = predicted
                               ? std::hypot(distance_of(*predicted, row_of(model.coefficients, trial.of)), model.missed[trial.of])
                               : most_error;
      double const norm = model.norms[trial.of];
      rule.error = std::isfinite(error) && error < most_error ? std::max(rule.error, norm > 0 ? error / norm : 0.0) : most_error;
      if (rule.error >= most_error)
        break;
      coefficients.push_back(std::move(*predicted));
    }
    if (rule.error < 0.5 * model.of_solution.error) {
      model.of_solution = rule;
      found = std::move(coefficients);
    }
  }

  if (model.residuals)
    choose_rule_of_weights(model, trials, host);

  model.of_quantities.assign(model.quantities.size(), {false, ModelVariables::keys, 0, most_error});
  for (ModelRule const& candidate : polynomial_rules(model, false, true, host)) {
    std::vector<double> errors(model.quantities.size(), 0.0);
    for (std::size_t t = 0; t < trials.size(); ++t) {
      Trial const& trial = trials[t];
      auto const weights =
          polynomial_weights(model, candidate, trial.others,
                             candidate.variables == ModelVariables::coefficients ? found[t] : row_of(model.points, trial.of), host);
      if (!weights) {
        errors.assign(errors.size(), most_error);
        break;
      }
      auto const values = weighted_row(model.values, trial.others, *weights);
      for (std::size_t q = 0; q < errors.size(); ++q) {
        double const error = std::abs(values[q] - model.values(static_cast<std::int64_t>(trial.of), static_cast<std::int64_t>(q)));
        errors[q] = std::isfinite(error) ? std::max(errors[q], error) : most_error;
      }
    }
    for (std::size_t q = 0; q < errors.size(); ++q)
      if (errors[q] < 0.5 * model.of_quantities[q].error)
        model.of_quantities[q] = {false, candidate.variables, candidate.degree, errors[q]};
  }
}

void write_sweep_model(fs::path const& path, SweepModel const& model) {
  json all{{"format", model_format},      {"version", model_version}, {"poisson_version", POISSON_VERSION},
           {"keys", model.keys},          {"modes", model.modes()},   {"solution", json_of_rule(model.of_solution)},
           {"quantities", json::array()}, {"cases", json::array()}};
  for (std::size_t q = 0; q < model.quantities.size(); ++q) {
    json entry{{"name", model.quantities[q]}};
    entry.update(json_of_rule(model.of_quantities[q]));
    all["quantities"].push_back(entry);
  }
  for (std::size_t i = 0; i < model.cases.size(); ++i)
    all["cases"].push_back({{"case", model.cases[i]},
                            {"at", row_of(model.points, i)},
                            {"coefficients", row_of(model.coefficients, i)},
                            {"missed", model.missed[i]},
                            {"norm", model.norms[i]},
                            {"quantities", row_of(model.values, i)},
                            {"a", model.systems[i].a},
                            {"b", model.systems[i].b}});
  if (model.residuals)
    all["residuals"] = json_of_residuals(model);
  output::write_text_file(path, all.dump() + "\n");
}

SweepModel read_sweep_model(fs::path const& path) {
  fs::path const file = file_of_model(path);
  std::ifstream in(file);
  json const all = json::parse(in, nullptr, false);
  if (!all.is_object() || !all.contains("format") || all["format"] != model_format)
    throw InputError("'" + file.string() + "' is no model of a sweep");
  if (!all.contains("version") || all["version"] != model_version)
    throw InputError("'" + file.string() + "' has version " + (all.contains("version") ? all["version"].dump() : "none") +
                     " of models, and this program reads version " + std::to_string(model_version) +
                     "; 'poisson sweep CONFIG --resume' makes it anew");
  try {
    return model_from(all);
  } catch (json::exception const& error) {
    throw InputError("'" + file.string() + "' is damaged: " + error.what());
  } catch (InputError const& error) {
    throw InputError("'" + file.string() + "' is damaged: " + error.what());
  }
}

std::vector<double> model_point(SweepModel const& model, std::vector<std::string> const& settings) {
  std::vector<std::optional<double>> given(model.keys.size());
  for (std::string const& setting : settings) {
    std::size_t const equals = setting.find('=');
    std::string const key = setting.substr(0, equals);
    std::size_t const a = static_cast<std::size_t>(std::find(model.keys.begin(), model.keys.end(), key) - model.keys.begin());
    if (a == model.keys.size()) {
      std::string const near = nearest_name(key, model.keys);
      throw InputError(key, "the model does not know this key" + (near.empty() ? "" : "; did you mean '" + near + "'?") +
                                "; it has " + listed_keys(model));
    }
    std::string const text = equals == std::string::npos ? "" : setting.substr(equals + 1);
    double value = 0;
    auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
      throw InputError(key, "found '" + text + "'; allowed: a number, as in --set " + key + "=" +
                                number_text(range_of_key(model, a).low, 6));
    if (given[a])
      throw InputError(key, "is given twice");
    KeyRange const range = range_of_key(model, a);
    double const rounding = 1e-12 * std::max(std::abs(range.low), std::abs(range.high));
    if (value < range.from - rounding || value > range.upto + rounding)
      throw InputError(key, "found " + text + "; the cases of the sweep reach from " + number_text(range.low, 6) + " to " +
                                number_text(range.high, 6) + ", and predictions at most a tenth of that beyond, from " +
                                number_text(range.from, 6) + " to " + number_text(range.upto, 6));
    given[a] = value;
  }
  std::vector<double> at;
  for (std::size_t a = 0; a < given.size(); ++a) {
    KeyRange const range = range_of_key(model, a);
    if (!given[a] && range.low < range.high)
      throw InputError(model.keys[a], "has no value; give it by --set " + model.keys[a] + "=VALUE, from " +
                                          number_text(range.low, 6) + " to " + number_text(range.high, 6));
    at.push_back(given[a].value_or(range.low));
  }
  return at;
}

Prediction predict(SweepModel const& model, std::vector<double> const& at, Context& host) {
  auto const rows = all_rows(model);
  auto const damaged = [] { return InputError("the model is damaged: its cases do not determine its polynomials"); };
  Prediction result;
  auto coefficients = coefficients_by(model, model.of_solution, rows, at, host);
  if (!coefficients)
    throw damaged();
  result.coefficients = std::move(*coefficients);
  if (model.residuals) {
    auto const polynomial = polynomial_weights(model, model.of_weights, rows, at, host);
    if (!polynomial)
      throw damaged();
    auto const weights = weights_from(weighted_row(model.weights, rows, *polynomial), model.residuals->a.size());
    result.residual_error = model.residuals->estimate(weights, result.coefficients).relative();
  }
  std::map<std::pair<ModelVariables, int>, std::vector<double>> values;  // of all quantities by a rule
  for (std::size_t q = 0; q < model.quantities.size(); ++q) {
    ModelRule const& rule = model.of_quantities[q];
    auto& of_rule = values[{rule.variables, rule.degree}];
    if (of_rule.empty()) {
      auto const weights =
          polynomial_weights(model, rule, rows, rule.variables == ModelVariables::coefficients ? result.coefficients : at, host);
      if (!weights)
        throw damaged();
      of_rule = weighted_row(model.values, rows, *weights);
    }
    result.quantities.push_back(of_rule[q]);
  }
  return result;
}

std::string text_of(ModelRule const& rule) {
  std::string const degree = "degree " + std::to_string(rule.degree);
  std::string const in = rule.variables == ModelVariables::keys         ? " in the keys"
                         : rule.variables == ModelVariables::logarithms ? " in their logarithms"
                                                                        : " in the modes";
  if (rule.degree == 0)
    return rule.by_equations ? "equations, constant" : "constant";
  return (rule.by_equations ? "equations of " : "") + degree + in;
}

}  // namespace poisson::app
