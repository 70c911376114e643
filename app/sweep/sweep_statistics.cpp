#include "app/sweep/sweep_statistics.hpp"

#include "app/config/sampling.hpp"
#include "app/io/console.hpp"
#include "app/sweep/greedy_sweep.hpp"
#include "app/sweep/sweep_summary.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>

namespace poisson::app {

using Json = nlohmann::ordered_json;

namespace {

constexpr double normal_95 = 1.959963984540054;  ///< quantile of 0.975
constexpr double probabilities[] = {0.05, 0.25, 0.5, 0.75, 0.95};
constexpr int resamplings = 400;

double mean_of(std::vector<double> const& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// Of the distribution, from a sample of two values or more.
double variance_of(std::vector<double> const& values) {
  double const mean = mean_of(values);
  double sum = 0;
  for (double const v : values)
    sum += (v - mean) * (v - mean);
  return sum / static_cast<double>(values.size() - 1);
}

/// Ranks from 0; equal values share the mean of theirs.
std::vector<double> ranks_of(std::vector<double> const& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (std::size_t i = 0; i < order.size();) {
    std::size_t end = i + 1;
    while (end < order.size() && values[order[end]] == values[order[i]])
      ++end;
    for (std::size_t k = i; k < end; ++k)
      ranks[order[k]] = 0.5 * static_cast<double>(i + end - 1);
    i = end;
  }
  return ranks;
}

std::optional<double> correlation_of(std::vector<double> const& x, std::vector<double> const& y) {
  double const mx = mean_of(x), my = mean_of(y);
  double xy = 0, xx = 0, yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mx) * (y[i] - my);
    xx += (x[i] - mx) * (x[i] - mx);
    yy += (y[i] - my) * (y[i] - my);
  }
  if (!(xx > 0) || !(yy > 0))
    return {};
  return xy / std::sqrt(xx * yy);
}

SampleQuantile quantile_of(std::vector<double> const& sorted, double probability) {
  auto const n = static_cast<double>(sorted.size());
  double const at = probability * (n - 1), part = at - std::floor(at);
  auto const i = static_cast<std::size_t>(at);
  SampleQuantile result{probability, sorted[i]};
  if (part > 0)
    result.value += part * (sorted[i + 1] - sorted[i]);
  // So many values are below the quantile: a binomial number, which is nearly normal.
  double const width = normal_95 * std::sqrt(n * probability * (1 - probability));
  if (double const low = std::floor(n * probability - width); low >= 1)
    result.low = sorted[static_cast<std::size_t>(low) - 1];
  if (double const high = std::ceil(n * probability + width) + 1; high <= n)
    result.high = sorted[static_cast<std::size_t>(high) - 1];
  return result;
}

/// As many equal intervals as the rule of Freedman and Diaconis gives, from 5 to 40.
void add_histogram(std::vector<double> const& sorted, QuantityStatistics& result) {
  double const low = sorted.front(), high = sorted.back();
  if (!(high > low))
    return;
  double const spread = quantile_of(sorted, 0.75).value - quantile_of(sorted, 0.25).value;
  double const wanted = spread > 0 ? (high - low) * std::cbrt(static_cast<double>(sorted.size())) / (2 * spread) : 0;
  auto const n = static_cast<std::size_t>(std::clamp(std::ceil(wanted), 5.0, 40.0));
  result.counts.assign(n, 0);
  for (std::size_t i = 0; i <= n; ++i)
    result.edges.push_back(i == n ? high : low + (high - low) * static_cast<double>(i) / static_cast<double>(n));
  for (double const v : sorted)
    ++result.counts[std::min(static_cast<std::size_t>((v - low) / (high - low) * static_cast<double>(n)), n - 1)];
}

/// The values at one point of Saltelli's plan.
struct PlanPoint {
  double a, b;
  std::vector<double> mixed;  ///< A with the value of B for parameter i
  std::size_t n_known = 0;    ///< how many of all these
};

struct Indices {
  double first, total;
};

/// Of every parameter, from the points `chosen`. Saltelli et al. (2010), table 2: (b) for the first-order index, (f), by Jansen,
/// for the total one. NaN without a variance.
std::vector<Indices> indices_of(std::vector<PlanPoint> const& points, std::vector<std::size_t> const& chosen) {
  std::vector<double> all;
  for (std::size_t const i : chosen)
    all.insert(all.end(), {points[i].a, points[i].b});
  double const mean = mean_of(all), n_variance = static_cast<double>(chosen.size()) * variance_of(all);
  std::vector<Indices> result(points[0].mixed.size(), {0, 0});
  for (std::size_t const i : chosen)
    for (std::size_t p = 0; p < result.size(); ++p) {
      double const change = points[i].mixed[p] - points[i].a;
      result[p].first += (points[i].b - mean) * change;  // the estimate is good where values are about 0
      result[p].total += change * change;
    }
  for (Indices& indices : result) {
    indices.first /= n_variance;
    indices.total /= 2 * n_variance;
  }
  return result;
}

/// The first-order and the total index of every parameter. Precondition: two points or more.
std::vector<std::pair<SobolIndex, SobolIndex>> sobol_of(std::vector<PlanPoint> const& points) {
  std::vector<std::size_t> chosen(points.size());
  std::iota(chosen.begin(), chosen.end(), std::size_t{0});
  std::vector<std::pair<SobolIndex, SobolIndex>> result;
  for (Indices const& found : indices_of(points, chosen))
    result.push_back({{found.first, 0}, {found.total, 0}});
  std::mt19937_64 engine(1);
  std::vector<std::array<double, 4>> sums(result.size(), {0, 0, 0, 0});
  int used = 0;
  for (int r = 0; r < resamplings; ++r) {
    for (std::size_t& i : chosen)
      i = engine() % points.size();
    if (std::all_of(chosen.begin(), chosen.end(), [&](std::size_t i) { return points[i].a == points[chosen[0]].a; }))
      continue;  // there may be no variance
    ++used;
    std::vector<Indices> const found = indices_of(points, chosen);
    for (std::size_t p = 0; p < found.size(); ++p) {
      sums[p][0] += found[p].first;
      sums[p][1] += found[p].first * found[p].first;
      sums[p][2] += found[p].total;
      sums[p][3] += found[p].total * found[p].total;
    }
  }
  auto const half_width = [&](double sum, double squares) {
    return used < 2 ? 0 : normal_95 * std::sqrt(std::max(squares / used - sum / used * (sum / used), 0.0));
  };
  for (std::size_t p = 0; p < result.size(); ++p) {
    result[p].first.half_width = half_width(sums[p][0], sums[p][1]);
    result[p].second.half_width = half_width(sums[p][2], sums[p][3]);
  }
  return result;
}

}  // namespace

QuantityStatistics statistics_of(std::string name, SampleSpec const& sample, SampledQuantity const& quantity) {
  QuantityStatistics result;
  result.name = std::move(name);
  std::size_t const n_parameters = sample.parameters.size(), of_point = cases_of_point(sample);
  result.effects.resize(n_parameters);
  std::vector<double> values;
  std::vector<std::vector<double>> parameters(n_parameters);
  std::map<std::size_t, PlanPoint> plan;
  for (std::size_t i = 0; i < quantity.values.size(); ++i) {
    double const v = quantity.values[i];
    if (!std::isfinite(v))
      continue;
    std::size_t const place = quantity.places[i] % of_point, point = quantity.places[i] / of_point;
    if (sample.indices) {
      PlanPoint& p = plan.try_emplace(point, PlanPoint{0, 0, std::vector<double>(n_parameters)}).first->second;
      (place == 0 ? p.a : place == 1 ? p.b : p.mixed[place - 2]) = v;
      ++p.n_known;
    }
    if (place > 1)
      continue;
    values.push_back(v);
    for (std::size_t p = 0; p < n_parameters; ++p)
      parameters[p].push_back(quantity.parameters[i][p]);
  }
  result.count = values.size();
  if (values.empty())
    return result;
  std::vector<double> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  result.min = sorted.front();
  result.max = sorted.back();
  result.mean = std::clamp(mean_of(values), result.min, result.max);
  for (double const probability : probabilities)
    result.quantiles.push_back(quantile_of(sorted, probability));
  // What rounding does to a quantity that does not depend on the parameters is no spread.
  double const size = std::max(std::abs(result.min), std::abs(result.max));
  if (values.size() < 2 || result.max - result.min <= 1e-12 * size)
    return result;
  result.deviation = std::sqrt(variance_of(values));
  result.mean_error = result.deviation / std::sqrt(static_cast<double>(values.size()));
  add_histogram(sorted, result);
  for (std::size_t p = 0; p < n_parameters; ++p) {
    result.effects[p].correlation = correlation_of(parameters[p], values);
    result.effects[p].rank_correlation = correlation_of(ranks_of(parameters[p]), ranks_of(values));
  }
  std::vector<PlanPoint> points;
  for (auto const& [point, of_plan] : plan)
    if (of_plan.n_known == of_point)
      points.push_back(of_plan);
  if (points.size() >= 2) {
    auto const indices = sobol_of(points);
    for (std::size_t p = 0; p < n_parameters; ++p)
      if (std::isfinite(indices[p].first.value)) {
        result.effects[p].first = indices[p].first;
        result.effects[p].total = indices[p].second;
      }
  }
  return result;
}

std::vector<SampleStatistics> sample_statistics(std::span<SweepCase const> cases, RunConfig const& config) {
  std::vector<SampleStatistics> result;
  SweepSpec const& sweep = config.sweep;
  if (!sweep.sample)
    return result;
  std::vector<std::vector<std::string>> seen;  // values of the axes that are not sampled, of each entry of the result
  std::vector<std::vector<SweepCase const*>> members;
  for (SweepCase const& c : cases) {
    std::vector<std::string> others;
    std::vector<std::pair<std::string, std::string>> named;
    for (std::size_t a = 0; a < sweep.axes.size(); ++a)
      if (!sweep.axes[a].is_sampled) {
        others.push_back(c.values[a]);
        named.emplace_back(sweep.axes[a].path, c.values[a]);
      }
    auto const at = static_cast<std::size_t>(std::find(seen.begin(), seen.end(), others) - seen.begin());
    if (at == seen.size()) {
      seen.push_back(others);
      members.emplace_back();
      result.push_back({std::move(named)});
    }
    ++result[at].n_cases;
    bool const predicted = is_predicted(c);
    result[at].n_predicted += predicted ? 1 : 0;
    if ((predicted || text_in(c.result, "/status") == "converged") && c.result.contains("quantities"))
      members[at].push_back(&c);
  }
  for (std::size_t g = 0; g < result.size(); ++g) {
    result[g].n_used = members[g].size();
    std::vector<std::vector<double>> parameters;
    std::vector<std::size_t> places;
    std::vector<std::string> names;
    for (QuantitySpec const& own : config.output.quantities)
      names.push_back(own.name);
    for (SweepCase const* const c : members[g]) {
      places.push_back(c->sample);
      std::vector<double>& values = parameters.emplace_back();
      for (auto const& parameter : sweep.sample->parameters)
        for (std::size_t a = 0; a < sweep.axes.size(); ++a)
          if (sweep.axes[a].path == parameter.path)
            values.push_back(number_of_value(c->values[a]).value_or(std::numeric_limits<double>::quiet_NaN()));
      for (auto const& [name, value] : c->result["quantities"].items())
        if (value.is_number() && std::find(names.begin(), names.end(), name) == names.end())
          names.push_back(name);
    }
    for (std::string const& name : names) {
      std::vector<double> values;
      for (SweepCase const* const c : members[g])
        values.push_back(number_in(c->result, ("/quantities/" + name).c_str()));
      if (auto statistics = statistics_of(name, *sweep.sample, {values, parameters, places}); statistics.count > 0)
        result[g].quantities.push_back(std::move(statistics));
    }
  }
  return result;
}

std::string title_of(SampleStatistics const& statistics) {
  std::string title = "Statistics of " + std::to_string(statistics.n_used) + " of " + std::to_string(statistics.n_cases) +
                      " cases" +
                      (statistics.n_predicted > 0 ? ", " + std::to_string(statistics.n_predicted) + " of them predicted" : "");
  for (auto const& [path, value] : statistics.parameters)
    title += ", " + short_name(path) + " = " + value;
  return title;
}

Json to_json(SampleStatistics const& statistics, SampleSpec const& sample) {
  auto const or_null = [](std::optional<double> value) { return value ? Json(*value) : Json(); };
  Json result = Json::object();
  for (QuantityStatistics const& q : statistics.quantities) {
    Json& entry = result[q.name] = {{"count", q.count},         {"mean", q.mean}, {"mean_error", q.mean_error},
                                    {"deviation", q.deviation}, {"min", q.min},   {"max", q.max}};
    for (SampleQuantile const& quantile : q.quantiles)
      entry["quantiles"].push_back({{"probability", quantile.probability},
                                    {"value", quantile.value},
                                    {"low", or_null(quantile.low)},
                                    {"high", or_null(quantile.high)}});
    if (!q.counts.empty())
      entry["histogram"] = {{"edges", q.edges}, {"counts", q.counts}};
    for (std::size_t p = 0; p < q.effects.size(); ++p) {
      ParameterEffect const& effect = q.effects[p];
      std::string const name = name_of_parameter(sample.parameters[p]);
      entry["correlation"][name] = or_null(effect.correlation);
      entry["rank_correlation"][name] = or_null(effect.rank_correlation);
      if (!sample.indices)
        continue;
      auto const add = [&](char const* what, std::optional<SobolIndex> const& index) {
        entry["sobol"][what][name] = index ? Json(index->value) : Json();
        entry["sobol"][std::string(what) + "_half_width"][name] = index ? Json(index->half_width) : Json();
      };
      add("first", effect.first);
      add("total", effect.total);
    }
  }
  return result;
}

std::vector<std::vector<std::string>> table_of(SampleStatistics const& statistics, RunConfig const& config) {
  constexpr std::size_t most_rows = 12;
  SampleSpec const& sample = *config.sweep.sample;
  std::vector<std::vector<std::string>> rows{{"quantity", "mean", "+-", "deviation", "5 %", "median", "95 %"}};
  for (auto const& parameter : sample.parameters) {
    std::string const name = name_of_parameter(parameter);
    if (sample.indices)
      rows[0].insert(rows[0].end(), {"S " + name, "total " + name});
    else
      rows[0].push_back("corr. " + name);
  }
  for (QuantityStatistics const& q : statistics.quantities) {
    bool const own = std::any_of(config.output.quantities.begin(), config.output.quantities.end(),
                                 [&](QuantitySpec const& quantity) { return quantity.name == q.name; });
    if (rows.size() > most_rows || (config.output.quantities.empty() ? q.counts.empty() : !own))
      continue;
    std::vector<std::string> row{q.name, number_text(q.mean, 6), number_text(normal_95 * q.mean_error, 2),
                                 number_text(q.deviation, 4)};
    for (std::size_t const i : {0U, 2U, 4U})
      row.push_back(number_text(q.quantiles[i].value, 5));
    for (ParameterEffect const& effect : q.effects) {
      if (sample.indices)
        for (auto const& index : {effect.first, effect.total})
          row.push_back(index ? number_text(index->value, 3) + " +- " + number_text(index->half_width, 2) : "-");
      else
        row.push_back(effect.correlation ? number_text(*effect.correlation, 3) : "-");
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace poisson::app
