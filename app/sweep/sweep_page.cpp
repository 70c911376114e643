#include "app/sweep/sweep_page.hpp"

#include "app/config/config.hpp"
#include "app/io/console.hpp"
#include "app/results/problem_words.hpp"
#include "app/results/quantities.hpp"

#include "app/results/report_page.hpp"
#include "app/results/versions.hpp"
#include "app/sweep/greedy_sweep.hpp"
#include "app/sweep/mesh_convergence.hpp"
#include "app/sweep/sweep_statistics.hpp"
#include "output/report/page.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <set>
#include <string_view>

namespace poisson::app {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

/// A number of a case that is shown and plotted.
struct Shown {
  std::string name;
  char const* pointer;  ///< in result.json; null: a quantity
};

double value_of(SweepCase const& c, Shown const& shown) {
  if (shown.pointer != nullptr)
    return number_in(c.result, shown.pointer);
  if (!c.result.is_object() || !c.result.contains("quantities"))
    return std::numeric_limits<double>::quiet_NaN();
  Json const value = c.result["quantities"].value(shown.name, Json());
  return value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

/// The value of an axis as a number: itself, or for a list of numbers, such as cells, their geometric mean. NaN for other texts.
double axis_number(std::string const& text) {
  Json const value = Json::parse(text, nullptr, false);
  if (value.is_number())
    return value.get<double>();
  if (!value.is_array() || value.empty())
    return std::numeric_limits<double>::quiet_NaN();
  double product = 1;
  for (Json const& part : value) {
    if (!part.is_number() || part.get<double>() <= 0)
      return std::numeric_limits<double>::quiet_NaN();
    product *= part.get<double>();
  }
  return std::pow(product, 1.0 / static_cast<double>(value.size()));
}

/// Whether the values are better seen on a logarithmic axis.
bool spread_over(std::vector<output::Curve> const& curves, std::vector<double> output::Curve::*values, double ratio) {
  double low = std::numeric_limits<double>::infinity(), high = 0;
  for (auto const& curve : curves)
    for (double const value : curve.*values)
      if (std::isfinite(value)) {
        if (value <= 0)
          return false;
        low = std::min(low, value);
        high = std::max(high, value);
      }
  return high >= ratio * low && high > low;
}

/// The exponent a of y ~ x^a through the points, by least squares of the logarithms; NaN with fewer than three different x.
double fitted_exponent(output::Curve const& curve) {
  double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
  std::set<double> places;
  for (std::size_t i = 0; i < curve.x.size(); ++i)
    if (curve.x[i] > 0 && curve.y[i] > 0 && std::isfinite(curve.y[i])) {
      double const x = std::log(curve.x[i]), y = std::log(curve.y[i]);
      places.insert(curve.x[i]);
      n += 1;
      sx += x;
      sy += y;
      sxx += x * x;
      sxy += x * y;
    }
  return places.size() < 3 ? std::numeric_limits<double>::quiet_NaN() : (n * sxy - sx * sy) / (n * sxx - sx * sx);
}

/// A curve for every combination of the values of the axes that `separate` keeps, of y(case) against x(case), by ascending x.
template <class X, class Y>
std::vector<output::Curve> curves_of(std::vector<SweepCase> const& cases, std::vector<SweepAxis> const& axes,
                                     std::vector<bool> const& separate, X const& x, Y const& y) {
  std::vector<std::pair<std::vector<std::string>, std::string>> order;  // values of these axes, and a label
  std::map<std::vector<std::string>, std::vector<std::pair<double, double>>> points;
  for (SweepCase const& c : cases) {
    std::vector<std::string> values;
    std::string label;
    for (std::size_t a = 0; a < axes.size(); ++a)
      if (separate[a]) {
        values.push_back(c.values[a]);
        label += (label.empty() ? "" : ", ") + short_name(axes[a].path) + " = " + shown_value(axes[a], c.values[a]);
      }
    double const at = x(c), value = y(c);
    if (!std::isfinite(at) || !std::isfinite(value))
      continue;
    if (points.find(values) == points.end())
      order.emplace_back(values, label);
    points[values].emplace_back(at, value);
  }
  std::vector<output::Curve> curves;
  for (auto const& [values, label] : order) {
    auto& list = points[values];
    std::stable_sort(list.begin(), list.end(), [](auto const& a, auto const& b) { return a.first < b.first; });
    output::Curve curve{label, {}, {}};
    for (auto const& [at, value] : list) {
      curve.x.push_back(at);
      curve.y.push_back(value);
    }
    curves.push_back(std::move(curve));
  }
  return curves;
}

/// Whether all values are one up to rounding, so that there is nothing to plot.
bool constant(std::vector<output::Curve> const& curves) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (auto const& curve : curves)
    for (double const value : curve.y) {
      low = std::min(low, value);
      high = std::max(high, value);
    }
  return !(high - low > 1e-9 * std::max(std::abs(low), std::abs(high)));
}

class SweepPage {
public:
  SweepPage(RunConfig const& config, std::vector<SweepCase> const& cases, Json const& record)
      : config_(config), axes_(config.sweep.axes), cases_(cases), record_(record) {
    for (SweepCase const& c : cases)
      if (c.result.is_object() && c.result.contains("quantities"))
        for (auto const& [name, value] : c.result["quantities"].items())
          if (value.is_number() && !is_of_part(name) &&
              std::none_of(quantities_.begin(), quantities_.end(), [&, &known = name](Shown const& q) { return q.name == known; }))
            quantities_.push_back({name, nullptr});
    has_errors_ = std::any_of(cases.begin(), cases.end(),
                              [](SweepCase const& c) { return std::isfinite(number_in(c.result, "/errors/l2")); });
    // What the user named comes first.
    auto const others = std::stable_partition(quantities_.begin(), quantities_.end(), [&](Shown const& shown) {
      return std::any_of(config.output.quantities.begin(), config.output.quantities.end(),
                         [&](QuantitySpec const& q) { return q.name == shown.name; });
    });
    n_own_ = static_cast<std::size_t>(others - quantities_.begin());
  }

  void add_cases(output::Page& page) const {
    output::PageTable table;
    table.sortable = true;
    table.head = {"case"};
    for (SweepAxis const& axis : axes_)
      table.head.push_back(short_name(axis.path));
    for (std::size_t i = 0; i < n_own_; ++i)
      table.head.push_back(quantities_[i].name);
    table.head.emplace_back("status");
    if (config_.sweep.greedy)
      table.head.emplace_back("estimate");
    for (char const* name : {"unknowns", "iterations", "true residual", "seconds", "host memory"})
      table.head.emplace_back(name);
    if (has_errors_)
      for (char const* name : {"L2 error", "order", "H1 error", "order"})
        table.head.emplace_back(name);
    for (std::size_t i = n_own_; i < quantities_.size(); ++i)
      table.head.push_back(quantities_[i].name);
    std::vector<std::size_t> shown;
    std::size_t const first = n_own_ > 0 ? 1 + axes_.size() : table.head.size() - quantities_.size();
    for (std::size_t q = 0; q < std::min<std::size_t>(n_own_ > 0 ? n_own_ : quantities_.size(), 4); ++q)
      shown.push_back(first + q);
    if (std::count_if(cases_.begin(), cases_.end(), [](SweepCase const& c) { return c.result.is_object(); }) > 1) {
      page.heading("Cases against each other");
      page.explore(axes_.size(), shown);
    }
    page.heading("Cases");
    for (std::size_t i = 0; i < cases_.size(); ++i)
      table.rows.push_back(row_of(i));
    page.table(table);
    page.paragraph("A click on a column's head sorts by it; a case's number leads to its own page.");
  }

  void add_errors(output::Page& page) const {
    if (!has_errors_)
      return;
    page.heading("Errors");
    std::vector<output::PagePlot> plots;
    for (Shown const& error : {Shown{"L2 error", "/errors/l2"}, Shown{"H1 seminorm of the error", "/errors/h1_seminorm"},
                               Shown{"largest error", "/errors/linf"}})
      // ~ h^a, where h ~ cells^(-1/3)
      plots.push_back(against_size(error, "/mesh/cells", "cells", -3, "order"));
    page.plots(plots);
  }

  void add_cost(output::Page& page) const {
    std::vector<output::PagePlot> plots;
    for (Shown const& cost : {Shown{"iterations", "/solver/iterations"}, Shown{"seconds of the solver", "/solver/seconds"},
                              Shown{"seconds in all", "/timing/total"}, Shown{"bytes of host memory", "/memory/host_peak_bytes"}})
      plots.push_back(against_size(cost, "/dofs", "unknowns", 1, "exponent"));
    std::erase_if(plots, [](output::PagePlot const& plot) { return several_x(plot.curves) == 0; });
    if (plots.empty())
      return;
    page.heading("Cost");
    page.plots(plots);
  }

  /// Every quantity against every axis.
  void add_quantities(output::Page& page) const {
    std::string same;
    for (std::size_t a = 0; a < axes_.size(); ++a) {
      if (axes_[a].values.size() < 2)
        continue;
      std::vector<output::PagePlot> plots;
      for (Shown const& quantity : quantities_) {
        output::PagePlot plot = against_axis(quantity, a);
        if (!constant(plot.curves))
          plots.push_back(std::move(plot));
        else if (a == 0 && !plot.curves.empty())
          same += (same.empty() ? "" : ", ") + quantity.name + " = " + number_text(plot.curves[0].y[0], 6);
      }
      if (plots.empty())
        continue;
      page.heading("Quantities against " + axes_[a].path);
      page.plots(plots);
    }
    if (!same.empty())
      page.paragraph("The same in all cases: " + same + ".");
  }

  void add_extrapolation(output::Page& page) const {
    if (!record_.contains("extrapolation"))
      return;
    output::PageTable table{{"quantity", "parameters", "extrapolated", "order", "error of the finest"}, {}, true};
    auto const number = [](Json const& row, char const* key, int digits) {
      Json const value = row.value(key, Json());
      return value.is_number() ? output::PageCell{number_text(value, digits), value.get<double>()} : output::PageCell{"-"};
    };
    for (Json const& group : record_["extrapolation"]) {
      std::string parameters;
      Json const of_group = group.value("parameters", Json::object()), quantities = group.value("quantities", Json::object());
      for (auto const& [path, value] : of_group.items())
        parameters += (parameters.empty() ? "" : ", ") + short_name(path) + " = " +
                      (value.is_string() ? value.get<std::string>() : value.dump());
      for (auto const& [name, row] : quantities.items())
        if (text_in(row, "/note") != "does not change" && !is_of_part(name))
          table.rows.push_back({{name}, {parameters}, number(row, "value", 8), number(row, "order", 3), number(row, "error", 3)});
    }
    if (table.rows.empty())
      return;
    page.heading("Richardson extrapolation over the meshes");
    page.table(table);
  }

  void add_until(output::Page& page) const {
    auto const rows = until_table(cases_, config_.sweep);
    if (rows.empty())
      return;
    page.heading(until_title(*config_.sweep.until));
    page.table(page_table(rows));
  }

  /// What the spread of sampled parameters does: a table, and histograms of the quantities in it.
  void add_statistics(output::Page& page, std::vector<SampleStatistics> const& statistics) const {
    for (SampleStatistics const& group : statistics) {
      page.heading(title_of(group));
      auto const rows = table_of(group, config_);
      std::vector<output::PagePlot> plots;
      for (std::size_t r = 1; r < rows.size(); ++r) {
        auto const found = std::find_if(group.quantities.begin(), group.quantities.end(),
                                        [&](QuantityStatistics const& q) { return q.name == rows[r][0]; });
        if (found == group.quantities.end() || found->counts.empty())
          continue;
        output::Curve outline{"", {found->edges.front()}, {0}};
        for (std::size_t i = 0; i < found->counts.size(); ++i)
          for (std::size_t const edge : {i, i + 1}) {
            outline.x.push_back(found->edges[edge]);
            outline.y.push_back(static_cast<double>(found->counts[i]));
          }
        outline.x.push_back(found->edges.back());
        outline.y.push_back(0);
        output::PagePlot& plot = plots.emplace_back(output::PagePlot{"Histogram of " + found->name, found->name, "cases"});
        plot.markers = false;
        plot.curves = {std::move(outline)};
      }
      page.table(page_table(rows));
      page.paragraph(config_.sweep.sample->indices ? "+-: 95 % confidence of the mean, and of the indices. S: the share of the "
                                                     "variance that a parameter has alone; total: with all "
                                                     "others together."
                                                   : "+-: 95 % confidence of the mean, as of independent cases.");
      page.plots(plots);
    }
  }

private:
  /// A table of the terminal.
  static output::PageTable page_table(std::vector<std::vector<std::string>> const& rows) {
    output::PageTable table{rows[0], {}};
    for (std::size_t r = 1; r < rows.size(); ++r) {
      std::vector<output::PageCell>& row = table.rows.emplace_back();
      for (std::string const& text : rows[r])
        row.push_back({text});
    }
    return table;
  }

  /// The most x of a curve.
  static std::size_t several_x(std::vector<output::Curve> const& curves) {
    std::set<double> all;
    for (auto const& curve : curves)
      all.insert(curve.x.begin(), curve.x.end());
    return all.size() > 1 ? all.size() : 0;
  }

  [[nodiscard]] bool changes_size(SweepAxis const& axis) const {
    return axis.path.starts_with("problem.mesh.cells") || axis.path.starts_with("problem.mesh.refinements") ||
           axis.path == "problem.mesh";
  }

  /// A curve for each combination of the axes that do not change the mesh's size; labels have the fitted exponent times `factor`.
  [[nodiscard]] output::PagePlot against_size(Shown const& shown, char const* size, char const* size_name, double factor,
                                              char const* fit_name) const {
    std::vector<bool> separate;
    for (std::size_t a = 0; a < axes_.size(); ++a) {
      bool with_size = changes_size(axes_[a]) || axes_[a].is_sampled;
      for (std::size_t b = 0; b < axes_.size(); ++b)
        with_size = with_size || (changes_size(axes_[b]) && change_together(config_.sweep.group, a, b));
      separate.push_back(!with_size);
    }
    output::PagePlot plot{shown.name + " against " + size_name, size_name, shown.name};
    plot.curves = curves_of(
        cases_, axes_, separate, [&](SweepCase const& c) { return number_in(c.result, size); },
        [&](SweepCase const& c) { return value_of(c, shown); });
    plot.x_log = spread_over(plot.curves, &output::Curve::x, 8);
    plot.y_log = spread_over(plot.curves, &output::Curve::y, 8);
    for (output::Curve& curve : plot.curves)
      if (double const a = factor * fitted_exponent(curve); std::isfinite(a))
        curve.label += (curve.label.empty() ? "" : ": ") + std::string(fit_name) + " " + number_text(a, 3);
    return plot;
  }

  [[nodiscard]] output::PagePlot against_axis(Shown const& shown, std::size_t a) const {
    SweepAxis const& axis = axes_[a];
    std::vector<bool> separate;
    for (std::size_t b = 0; b < axes_.size(); ++b)
      separate.push_back(b != a && !change_together(config_.sweep.group, a, b));
    bool const numbers = std::all_of(axis.values.begin(), axis.values.end(),
                                     [](std::string const& value) { return std::isfinite(axis_number(value)); });
    output::PagePlot plot{shown.name, axis.path, shown.name};
    plot.lines = !axis.is_sampled;  // others change with it
    if (!numbers)
      plot.x_names = axis.values;
    plot.curves = curves_of(
        cases_, axes_, separate,
        [&](SweepCase const& c) {
          return numbers
                     ? axis_number(c.values[a])
                     : static_cast<double>(std::find(axis.values.begin(), axis.values.end(), c.values[a]) - axis.values.begin());
        },
        [&](SweepCase const& c) { return value_of(c, shown); });
    plot.x_log = numbers && spread_over(plot.curves, &output::Curve::x, 10);
    plot.y_log = spread_over(plot.curves, &output::Curve::y, 50);
    return plot;
  }

  [[nodiscard]] std::vector<output::PageCell> row_of(std::size_t i) const {
    SweepCase const& c = cases_[i];
    auto const number = [](double value, std::string text) {
      return std::isfinite(value) ? output::PageCell{std::move(text), value} : output::PageCell{"-"};
    };
    auto const short_number = [&](double value) { return number(value, number_text(value, 6)); };
    bool const has_page = c.result.is_object() && c.result.contains("files") &&
                          std::find(c.result["files"].begin(), c.result["files"].end(), report_file) != c.result["files"].end();
    std::vector<output::PageCell> row{
        {std::to_string(i), static_cast<double>(i), c.directory.empty() ? "" : c.directory + "/" + (has_page ? report_file : "")}};
    for (std::size_t a = 0; a < c.values.size(); ++a) {
      std::string const text = shown_value(axes_[a], c.values[a]);
      double const as_number = axis_number(c.values[a]);
      row.push_back(std::isfinite(as_number) ? output::PageCell{text, as_number} : output::PageCell{text});
    }
    for (std::size_t q = 0; q < n_own_; ++q)
      row.push_back(number(value_of(c, quantities_[q]), quantity_text(c, quantities_[q].name)));
    row.push_back({status_of(c)});
    if (config_.sweep.greedy)
      row.push_back(number(number_in(c.result, "/estimate"), number_text(number_in(c.result, "/estimate"))));
    double const dofs = number_in(c.result, "/dofs"), bytes = number_in(c.result, "/memory/host_peak_bytes");
    row.push_back(number(dofs, std::isfinite(dofs) ? with_thousands(static_cast<std::int64_t>(dofs)) : ""));
    row.push_back(short_number(number_in(c.result, "/solver/iterations")));
    row.push_back(number(number_in(c.result, "/solver/residual_true"), number_text(number_in(c.result, "/solver/residual_true"))));
    row.push_back(number(number_in(c.result, "/timing/total"), number_text(number_in(c.result, "/timing/total"))));
    row.push_back(number(bytes, bytes_text(bytes)));
    if (has_errors_)
      for (char const* name : {"l2", "h1_seminorm"}) {
        double const error = number_in(c.result, (std::string("/errors/") + name).c_str());
        double const order = number_in(record_["cases"][i], (std::string("/observed_orders/") + name).c_str());
        row.push_back(number(error, number_text(error, 4)));
        row.push_back(number(order, number_text(order)));
      }
    for (std::size_t q = n_own_; q < quantities_.size(); ++q)
      row.push_back(short_number(value_of(c, quantities_[q])));
    return row;
  }

  RunConfig const& config_;
  std::vector<SweepAxis> const& axes_;
  std::vector<SweepCase> const& cases_;
  Json const& record_;
  std::vector<Shown> quantities_;
  std::size_t n_own_ = 0;  ///< how many of them are the user's own; these come first
  bool has_errors_ = false;
};

}  // namespace

std::string report_of_sweep(RunConfig const& config, std::vector<SweepCase> const& cases, SweepAnalysis const& analysis,
                            Json const& record) {
  auto const count = [&](auto const& of) { return std::to_string(std::count_if(cases.begin(), cases.end(), of)); };
  auto const converged = [](SweepCase const& c) { return text_in(c.result, "/status") == "converged"; };
  auto const is_left_out = [](SweepCase const& c) { return c.left_out; };
  bool const good =
      std::all_of(cases.begin(), cases.end(), [&](SweepCase const& c) { return converged(c) || c.left_out || is_predicted(c); });
  bool const predicted = std::any_of(cases.begin(), cases.end(), is_predicted);
  bool const fewer = std::any_of(cases.begin(), cases.end(), is_left_out);
  std::string const name =
      config.output.title.empty() ? fs::path(text_in(record, "/configuration")).stem().string() : config.output.title;
  output::Page page(name + ": sweep of " + std::to_string(cases.size()) + " cases", "poisson " POISSON_VERSION ", " + date_text(),
                    good && !fewer && !predicted
                        ? "all converged"
                        : count(converged) + " converged" + (predicted ? ", " + count(is_predicted) + " predicted" : "") +
                              (fewer ? ", " + count(is_left_out) + " left out" : ""),
                    good);
  if (record.contains("complete") && !record["complete"].get<bool>())
    page.warning("The sweep is not complete; poisson sweep --resume does what is missing.");
  constexpr std::size_t most_failures = 20;
  std::vector<std::string> const failures = failures_text(cases);
  for (std::size_t i = 0; i < std::min(failures.size(), most_failures); ++i)
    page.warning("C" + failures[i].substr(1));
  if (failures.size() > most_failures)
    page.warning("Other cases failed for " + std::to_string(failures.size() - most_failures) +
                 " more reasons, which are in sweep.json.");
  page.heading("Problem");
  RunConfig common = config;  // without what no case has
  for (SweepAxis const& axis : config.sweep.axes)
    if (constexpr std::string_view of_parameters = "parameters."; axis.path.starts_with(of_parameters))
      common.parameters.erase(axis.path.substr(of_parameters.size()));
  auto rows = problem_in_words(common);
  for (SweepAxis const& axis : config.sweep.axes) {
    std::string values;
    for (std::string const& value : axis.values)
      values += (values.empty() ? "" : ", ") + value;
    if (!axis.is_sampled)
      rows.emplace_back("Swept", axis.path + " = " + (axis.given.empty() ? values : axis.given));
  }
  if (auto const& sample = config.sweep.sample) {
    for (auto const& parameter : sample->parameters)
      rows.emplace_back("Sampled", parameter.path + ": " + std::string(name_of(parameter.distribution)) + " [" +
                                       number_text(parameter.numbers[0], 6) + ", " + number_text(parameter.numbers[1], 6) + "]");
    rows.emplace_back("Sample", std::string(name_of(sample->method)) + ", " + std::to_string(sample->count) + " points, seed " +
                                    std::to_string(sample->seed) + (sample->indices ? ", with Sobol indices" : ""));
  }
  if (!config.sweep.when.empty())
    rows.emplace_back("Cases with", config.sweep.when);
  if (config.sweep.group.mode == SweepMode::zip)
    rows.emplace_back("Mode", "zip: the first values together, then the second ones and so on");
  page.facts(rows);

  SweepPage const sweep(config, cases, record);
  sweep.add_cases(page);
  if (!analysis.greedy_text.empty())
    page.paragraph(analysis.greedy_text);
  sweep.add_statistics(page, analysis.statistics);
  sweep.add_errors(page);
  sweep.add_extrapolation(page);
  sweep.add_until(page);
  sweep.add_quantities(page);
  sweep.add_cost(page);
  page.heading("Files");
  std::vector<std::string> files;
  for (Json const& file : record["files"])
    files.push_back(file.get<std::string>());
  page.links(files);
  page.facts({{"versions", versions_text()}});
  page.heading("Configuration");
  page.listing("every key with its value", resolved_yaml(with_absolute_files(config)));
  return page.html();
}

}  // namespace poisson::app
