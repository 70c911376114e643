#include "app/sweep/sweep_summary.hpp"

#include "app/config/sampling.hpp"
#include "app/io/csv.hpp"
#include "app/launch/exit_code.hpp"
#include "app/results/report_page.hpp"
#include "app/results/solution_fields.hpp"
#include "app/sweep/greedy_sweep.hpp"
#include "app/sweep/mesh_convergence.hpp"
#include "app/sweep/sweep_page.hpp"
#include "app/sweep/sweep_statistics.hpp"
#include "output/files/atomic_file.hpp"
#include "output/vtk/vtk_files.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <sstream>

namespace poisson::app {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

/// Observed order between two cases: how the error falls with the mesh width, h ~ cells^(-1/3), or, on one mesh, with
/// unknowns^(-1/3) when the element order changes.
double observed_order(Json const& coarse, Json const& fine, char const* error) {
  char const* const size = number_in(coarse, "/mesh/cells") != number_in(fine, "/mesh/cells") ? "/mesh/cells" : "/dofs";
  double const ratio = std::cbrt(number_in(fine, size) / number_in(coarse, size));
  double const order = std::log(number_in(coarse, error) / number_in(fine, error)) / std::log(ratio);
  return std::isfinite(order) ? order : std::numeric_limits<double>::quiet_NaN();
}

/// The earlier case that differs from case `i` in axes which change the mesh, or failing that the element order, only;
/// cases.size() if there is none.
std::size_t coarser_case(std::vector<SweepCase> const& cases, std::vector<SweepAxis> const& axes, std::size_t i) {
  auto const is_mesh = [](std::string const& path) { return path.rfind("problem.mesh", 0) == 0; };
  auto const is_order = [](std::string const& path) { return path == "problem.element.order" || path == "problem.element"; };
  bool const any_mesh = std::any_of(axes.begin(), axes.end(), [&](auto const& axis) { return is_mesh(axis.path); });
  auto const may_differ = [&](SweepAxis const& axis) { return any_mesh ? is_mesh(axis.path) : is_order(axis.path); };
  std::size_t best = cases.size();
  if (std::none_of(axes.begin(), axes.end(), may_differ))
    return best;  // none has a coarser mesh, or a lower order, and is the same otherwise
  double const cells = number_in(cases[i].result, "/mesh/cells"), dofs = number_in(cases[i].result, "/dofs");
  for (std::size_t j = 0; j < cases.size(); ++j) {
    bool comparable = cases[j].result.is_object();
    for (std::size_t a = 0; a < axes.size() && comparable; ++a)
      comparable = cases[i].values[a] == cases[j].values[a] || may_differ(axes[a]);
    if (!comparable)
      continue;
    double const other = number_in(cases[j].result, any_mesh ? "/mesh/cells" : "/dofs");
    if (other < (any_mesh ? cells : dofs) &&
        (best == cases.size() || other > number_in(cases[best].result, any_mesh ? "/mesh/cells" : "/dofs")))
      best = j;
  }
  return best;
}

struct Column {
  char const* name;     ///< in sweep.csv
  char const* pointer;  ///< in result.json
};
constexpr Column columns[] = {{"cells", "/mesh/cells"},
                              {"dofs", "/dofs"},
                              {"nnz", "/nnz"},
                              {"format", "/matrix/format"},
                              {"matrix_bytes", "/matrix/bytes"},
                              {"backend", "/backend"},
                              {"iterations", "/solver/iterations"},
                              {"residual_recursive", "/solver/residual_recursive"},
                              {"residual_true", "/solver/residual_true"},
                              {"solver_seconds", "/solver/seconds"},
                              {"total_seconds", "/timing/total"},
                              {"error_l2", "/errors/l2"},
                              {"error_h1_seminorm", "/errors/h1_seminorm"},
                              {"error_linf", "/errors/linf"}};
constexpr Column order_columns[] = {
    {"order_l2", "/errors/l2"}, {"order_h1_seminorm", "/errors/h1_seminorm"}, {"order_linf", "/errors/linf"}};

/// ParaView's list of files that one reader reads, with their times.
std::string series_text(std::vector<output::PvdEntry> const& steps) {
  Json files = Json::array();
  for (auto const& step : steps)
    files.push_back({{"name", step.file}, {"time", step.time}, {"values", step.name}});
  return Json{{"file-series-version", "1.0"}, {"files", files}}.dump(2) + "\n";
}

/// The file that names the pieces of this one where several ranks have written it: solution.pvti for solution.vti.
std::string name_of_pieces(fs::path const& file) {
  return file.stem().string() + ".p" + file.extension().string().substr(1);
}

/// The names of all numbers among the quantities of the cases.
std::vector<std::string> quantity_names(std::vector<SweepCase> const& cases) {
  std::vector<std::string> names;
  for (SweepCase const& c : cases)
    if (c.result.is_object() && c.result.contains("quantities"))
      for (auto const& [name, value] : c.result["quantities"].items())
        if (value.is_number() && std::find(names.begin(), names.end(), name) == names.end())
          names.push_back(name);
  return names;
}

}  // namespace

std::string status_of(SweepCase const& c) {
  if (c.result.is_object())
    return text_in(c.result, "/status");
  return c.left_out ? "left out" : c.exit_code >= 0 ? "failed" : c.writer.empty() ? "not run" : "running";
}

std::vector<std::pair<std::string, std::vector<std::size_t>>> reasons_of_failures(std::span<SweepCase const> cases) {
  std::vector<std::pair<std::string, std::vector<std::size_t>>> reasons;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (cases[i].error.empty())
      continue;
    auto found = std::find_if(reasons.begin(), reasons.end(), [&](auto const& known) { return known.first == cases[i].error; });
    if (found == reasons.end())
      found = reasons.insert(found, {cases[i].error, {}});
    found->second.push_back(i);
  }
  return reasons;
}

std::vector<std::string> failures_text(std::span<SweepCase const> cases) {
  std::vector<std::string> lines;
  for (auto const& [error, numbers] : reasons_of_failures(cases))
    lines.push_back((numbers.size() == 1 ? "case " : "cases ") + ranges_text(numbers) + " failed: " + error);
  return lines;
}

void write_summary(std::vector<SweepCase> const& cases, RunConfig const& config, std::string const& configuration,
                   SweepEnd const& end, std::string const& collection, SweepAnalysis const& analysis, ResultsDirectory& directory) {
  SweepSpec const& sweep = config.sweep;
  std::ostringstream csv;
  csv.exceptions(std::ios::badbit);  // a stream would leave out what it has no memory for, without a word
  csv << "case";
  for (auto const& axis : sweep.axes)
    csv << "," << csv_field(axis.path);
  auto const& own = config.output.quantities;
  for (QuantitySpec const& quantity : own)
    csv << "," << csv_field(quantity.name);
  csv << ",status,exit_code";
  for (auto const& column : columns)
    csv << "," << column.name;
  for (auto const& column : order_columns)
    csv << "," << column.name;
  std::vector<std::string> quantities = quantity_names(cases);
  std::erase_if(quantities, [&](std::string const& name) {
    return std::any_of(own.begin(), own.end(), [&](QuantitySpec const& quantity) { return quantity.name == name; });
  });
  for (auto const& name : quantities)
    csv << "," << csv_field(name);
  if (sweep.greedy)
    csv << ",estimate";
  csv << ",directory,error\n";

  Json list = Json::array();
  std::vector<output::PvdEntry> steps;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    SweepCase const& c = cases[i];
    Json parameters = Json::object(), orders = Json::object();
    csv << i;
    for (std::size_t a = 0; a < sweep.axes.size(); ++a) {
      csv << "," << csv_field(c.values[a]);
      parameters[sweep.axes[a].path] = c.values[a];
    }
    auto const plain_text = [&](std::string const& name) {
      Json const value =
          c.result.is_object() && c.result.contains("quantities") ? c.result["quantities"].value(name, Json()) : Json();
      return value.is_number() ? value.dump() : std::string();
    };
    for (QuantitySpec const& quantity : own)
      csv << "," << plain_text(quantity.name);
    std::string status = status_of(c);
    std::replace(status.begin(), status.end(), ' ', '_');
    csv << "," << status << "," << c.exit_code;
    for (auto const& column : columns)
      csv << "," << csv_field(text_in(c.result, column.pointer));
    std::size_t const j = coarser_case(cases, sweep.axes, i);
    for (auto const& column : order_columns) {
      double const order =
          j < cases.size() ? observed_order(cases[j].result, c.result, column.pointer) : std::numeric_limits<double>::quiet_NaN();
      csv << "," << (std::isnan(order) ? "" : number_text(order, 5));
      if (!std::isnan(order))
        orders[std::string(column.name).substr(6)] = order;
    }
    for (auto const& name : quantities)
      csv << "," << plain_text(name);
    if (sweep.greedy)
      csv << "," << text_in(c.result, "/estimate");
    csv << "," << csv_field(c.directory) << "," << csv_field(c.error) << "\n";
    Json row = {{"case", i},          {"parameters", parameters},     {"status", status},        {"exit_code", c.exit_code},
                {"reused", c.reused}, {"fingerprint", c.fingerprint}, {"directory", c.directory}};
    if (!c.error.empty())
      row["error"] = c.error;
    if (!orders.empty())
      row["observed_orders"] = orders;
    row["result"] = c.result;
    list.push_back(std::move(row));
    if (!c.result.is_object() || !c.configuration || c.directory.empty())
      continue;
    std::string const name = vtk_file_name(c.configuration->config());
    for (std::string const& file : {name, name_of_pieces(name)})
      if (fs::exists(directory.path() / c.directory / file)) {
        steps.push_back({static_cast<double>(i), c.directory + "/" + file, values_text(c, sweep.axes)});
        break;
      }
  }
  directory.try_write("sweep.csv", [&](fs::path const& path) { output::write_text_file(path, csv.str()); });
  directory.try_write(collection, [&](fs::path const& path) {
    if (path.extension() == ".pvd")
      output::write_pvd(path, steps);
    else
      output::write_text_file(path, series_text(steps));
  });
  Json axes = Json::object();
  for (auto const& axis : sweep.axes)
    axes[axis.path] = axis.values;
  Json all = {{"poisson_version", POISSON_VERSION},
              {"configuration", configuration},
              {"complete", end.complete},
              {"exit_code", directory.failure() ? std::max<int>(end.exit_code, exit_environment) : end.exit_code},
              {"mode", name_of(sweep.group.mode)},
              {"axes", axes},
              {"when", sweep.when.empty() ? Json() : Json(sweep.when)},
              {"cases", std::move(list)}};
  if (auto const convergence = mesh_convergence(cases, sweep.axes); !convergence.empty())
    all["extrapolation"] = to_json(convergence);
  if (sweep.until)
    all["until"] = until_json(cases, sweep);
  if (sweep.greedy)
    all["greedy"] = analysis.greedy;
  if (sweep.sample) {
    Json& sample = all["sample"] = {{"method", name_of(sweep.sample->method)},
                                    {"count", sweep.sample->count},
                                    {"seed", sweep.sample->seed},
                                    {"indices", sweep.sample->indices}};
    for (auto const& parameter : sweep.sample->parameters)
      sample["parameters"][name_of_parameter(parameter)] = {{"distribution", name_of(parameter.distribution)},
                                                            {"numbers", parameter.numbers}};
  }
  if (auto const& groups = analysis.statistics; groups.size() == 1)
    all["statistics"] = to_json(groups[0], *sweep.sample);
  else
    for (SampleStatistics const& group : groups) {
      Json parameters = Json::object();
      for (auto const& [path, value] : group.parameters)
        parameters[path] = value;
      all["statistics_of"].push_back({{"parameters", parameters}, {"statistics", to_json(group, *sweep.sample)}});
    }
  if (!analysis.entries.empty())
    all.update({{"analysis", analysis.entries}, {"analysis_seconds", analysis.seconds}});
  auto const files_with = [&](char const* more) {
    auto files = directory.files();
    if (std::find(files.begin(), files.end(), more) == files.end())
      files.emplace_back(more);
    return files;
  };
  if (config.output.report) {
    all["files"] = files_with("sweep.json");
    directory.try_write(
        report_file, [&](fs::path const& path) { output::write_text_file(path, report_of_sweep(config, cases, analysis, all)); });
  }
  all["files"] = files_with("sweep.json");
  all["files_failed"] = json_of(directory.failures());
  directory.write_record(all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

void print_summary(std::vector<SweepCase> const& cases, RunConfig const& config, SweepAnalysis const& analysis, Console& console) {
  SweepSpec const& sweep = config.sweep;
  bool const errors =
      std::any_of(cases.begin(), cases.end(), [](SweepCase const& c) { return !std::isnan(number_in(c.result, "/errors/l2")); });
  std::vector<std::vector<std::string>> rows(1);
  rows[0] = {"case"};
  for (auto const& axis : sweep.axes)
    rows[0].push_back(short_name(axis.path));
  for (QuantitySpec const& own : config.output.quantities)
    rows[0].push_back(own.name);
  rows[0].emplace_back("status");
  if (sweep.greedy)
    rows[0].emplace_back("estimate");
  for (auto const* name : {"unknowns", "iterations", "true residual", "seconds"})
    rows[0].emplace_back(name);
  if (errors)
    for (auto const* name : {"L2 error", "order", "H1 error", "order"})
      rows[0].emplace_back(name);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    SweepCase const& c = cases[i];
    std::vector<std::string> row{std::to_string(i)};
    for (std::size_t a = 0; a < c.values.size(); ++a)
      row.push_back(shown_value(sweep.axes[a], c.values[a]));
    for (QuantitySpec const& own : config.output.quantities)
      row.push_back(quantity_text(c, own.name));
    row.push_back(status_of(c));
    if (sweep.greedy)
      row.push_back(number_text(number_in(c.result, "/estimate")));
    row.push_back(number_text(number_in(c.result, "/dofs"), 10));
    row.push_back(number_text(number_in(c.result, "/solver/iterations"), 10));
    row.push_back(number_text(number_in(c.result, "/solver/residual_true")));
    row.push_back(number_text(number_in(c.result, "/timing/total")));
    if (errors) {
      std::size_t const j = coarser_case(cases, sweep.axes, i);
      for (auto const* error : {"/errors/l2", "/errors/h1_seminorm"}) {
        row.push_back(number_text(number_in(c.result, error), 4));
        row.push_back(j < cases.size() ? number_text(observed_order(cases[j].result, c.result, error)) : "-");
      }
    }
    rows.push_back(row);
  }
  console.line();
  console.grid(rows);
  if (!analysis.greedy_text.empty())
    console.line("  " + analysis.greedy_text);
  for (MeshConvergence const& group : mesh_convergence(cases, sweep.axes)) {
    if (group.study.cases.size() < 3)
      continue;
    std::string of;
    for (auto const& [path, value] : group.study.parameters)
      of += ", " + short_name(path) + " = " + value;
    console.line();
    console.line("  Richardson extrapolation" + of + (group.study.note.empty() ? "" : ": none, " + group.study.note));
    if (group.study.note.empty())
      console.grid(table_of(group));
  }
  if (auto const studies = until_table(cases, sweep); !studies.empty()) {
    console.line();
    console.line("  " + until_title(*sweep.until));
    console.grid(studies);
  }
  for (SampleStatistics const& group : analysis.statistics) {
    console.line();
    console.line("  " + title_of(group));
    console.grid(table_of(group, config));
  }
  for (std::string const& failure : failures_text(cases))
    console.line("  " + failure);
}

}  // namespace poisson::app
