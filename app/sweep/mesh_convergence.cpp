#include "app/sweep/mesh_convergence.hpp"

#include "app/io/console.hpp"
#include "app/launch/exit_code.hpp"
#include "app/results/quantities.hpp"
#include "assembly/mesh/counts.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/nearest_name.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>

namespace poisson::app {

using Json = nlohmann::ordered_json;

namespace {

constexpr double no_number = std::numeric_limits<double>::quiet_NaN();

/// Cells of the box in its three directions; of other meshes those that one coarse cell has become.
std::array<double, 3> cells_of(RunConfig const& config) {
  std::array<double, 3> cells{};
  for (std::size_t d = 0; d < 3; ++d)
    cells[d] = std::ldexp(config.problem.mesh.file.empty() && config.problem.mesh.generator == "box"
                              ? static_cast<double>(config.problem.mesh.cells[d])
                              : 1.,
                          config.problem.mesh.refinements);
  return cells;
}

/// Whether one mesh is the other with all its cells cut into the same number of parts in all directions.
bool similar(std::array<double, 3> const& a, std::array<double, 3> const& b) {
  return a[0] * b[1] == a[1] * b[0] && a[0] * b[2] == a[2] * b[0];
}

/// Why nothing can be extrapolated from these meshes, which are sorted; empty: it can.
std::string why_no_study(std::vector<std::size_t> const& numbers, std::vector<SweepCase> const& cases) {
  std::string note;
  RunConfig const& first = cases[numbers.front()].configuration->config();
  double before = 0;
  for (std::size_t const i : numbers) {
    RunConfig const& config = cases[i].configuration->config();
    auto const cells = cells_of(config);
    if (assembly::is_surface(config.problem.mesh))
      return "voxels of another size have another shape; sweep over problem.mesh.refinements, which halves every cell";
    if (!similar(cells, cells_of(first)))
      note = "the numbers of cells do not grow by one factor in all directions";
    else if (config.problem.mesh.is_graded() && config.problem.mesh.cells != first.problem.mesh.cells)
      note = "other cells of a graded box are no refinement; sweep over problem.mesh.refinements, which halves every cell";
    else if (cells[0] == before)
      note = "two cases have the same mesh";
    before = cells[0];
  }
  return note;
}

/// A quantity that a case has found; NaN where it has none that is finite.
double quantity_of(SweepCase const& c, std::string const& name) {
  auto const& quantities = c.result["quantities"];
  auto const found = quantities.find(name);
  return found != quantities.end() && found->is_number() ? found->get<double>() : no_number;
}

bool has_converged(SweepCase const& c) {
  return text_in(c.result, "/status") == "converged" && c.result.contains("quantities");
}

/// Throws InputError where a case that converged has no such quantity.
void require_quantity(MeshStudy const& study, std::vector<SweepCase> const& cases, UntilSpec const& until) {
  for (std::size_t const i : study.cases) {
    SweepCase const& c = cases[i];
    if (!has_converged(c) || c.result["quantities"].contains(until.quantity))
      continue;
    std::vector<std::string> names;
    for (auto const& [name, value] : c.result["quantities"].items())
      if (value.is_number())
        names.push_back(name);
    std::string const meant = nearest_name(until.quantity, names);
    std::string all;
    for (std::string const& name : names)
      all += (all.empty() ? "" : ", ") + name;
    throw InputError("sweep.until.quantity", "found '" + until.quantity + "', which case " + std::to_string(i) + " does not have" +
                                                 (meant.empty() ? "; its" : "; did you mean '" + meant + "'? Its") +
                                                 " quantities are: " + all);
  }
}

/// The widths of the meshes, as 1 / cells.
std::vector<double> widths_of(std::vector<std::size_t> const& numbers, std::vector<SweepCase> const& cases) {
  std::vector<double> h;
  for (std::size_t const i : numbers)
    h.push_back(1 / cells_of(cases[i].configuration->config())[0]);
  return h;
}

/// Null for what is not finite.
Json number_or_null(double x) {
  return std::isfinite(x) ? Json(x) : Json();
}

Json json_of(std::vector<std::pair<std::string, std::string>> const& parameters) {
  Json json = Json::object();
  for (auto const& [path, value] : parameters)
    json[path] = value;
  return json;
}

/// The cases of a study that `until` has left out.
std::vector<std::size_t> numbers_left_out(MeshStudy const& study, std::vector<SweepCase> const& cases) {
  std::vector<std::size_t> numbers;
  std::copy_if(study.cases.begin(), study.cases.end(), std::back_inserter(numbers),
               [&](std::size_t i) { return cases[i].left_out; });
  return numbers;
}

}  // namespace

std::vector<MeshStudy> mesh_studies(std::vector<SweepCase> const& cases, std::vector<SweepAxis> const& axes) {
  std::vector<MeshStudy> studies;
  if (std::none_of(axes.begin(), axes.end(), [](SweepAxis const& axis) { return axis.is_mesh_size(); }))
    return studies;
  std::map<std::vector<std::string>, std::size_t> known;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (!cases[i].configuration)
      continue;
    MeshStudy study;
    std::vector<std::string> values;
    for (std::size_t a = 0; a < axes.size(); ++a)
      if (!axes[a].is_mesh_size()) {
        study.parameters.emplace_back(axes[a].path, cases[i].values[a]);
        values.push_back(cases[i].values[a]);
      }
    auto const [at, is_new] = known.emplace(values, studies.size());
    if (is_new)
      studies.push_back(std::move(study));
    studies[at->second].cases.push_back(i);
  }
  for (MeshStudy& study : studies) {
    auto const size = [&](std::size_t i) { return cells_of(cases[i].configuration->config())[0]; };
    std::stable_sort(study.cases.begin(), study.cases.end(), [&](std::size_t a, std::size_t b) { return size(a) < size(b); });
    study.note = why_no_study(study.cases, cases);
  }
  return studies;
}

std::vector<MeshConvergence> mesh_convergence(std::vector<SweepCase> const& cases, std::vector<SweepAxis> const& axes) {
  std::vector<MeshConvergence> groups;
  for (MeshStudy& study : mesh_studies(cases, axes)) {
    std::erase_if(study.cases, [&](std::size_t i) { return !has_converged(cases[i]); });
    if (study.cases.size() < 2)
      continue;
    study.note = why_no_study(study.cases, cases);
    MeshConvergence& group = groups.emplace_back(MeshConvergence{std::move(study)});
    auto const& numbers = group.study.cases;
    if (!group.study.note.empty())
      continue;
    for (auto const& [name, value] : cases[numbers.back()].result["quantities"].items()) {
      std::vector<double> q;
      for (std::size_t const i : numbers)
        if (double const of_case = quantity_of(cases[i], name); !std::isnan(of_case))
          q.push_back(of_case);
      if (q.size() == numbers.size())
        group.quantities.emplace_back(name, assembly::extrapolate(widths_of(numbers, cases), q));
    }
  }
  return groups;
}

StudyProgress progress_of(MeshStudy const& study, std::vector<SweepCase> const& cases, UntilSpec const& until) {
  StudyProgress progress{0, false, no_number, no_number, "no mesh is done"};
  std::vector<std::size_t> converged;
  std::vector<double> q;
  for (std::size_t const i : study.cases) {
    SweepCase const& c = cases[i];
    if (c.exit_code < 0 || c.left_out || progress.reached)
      break;
    ++progress.meshes;
    if (!has_converged(c))
      continue;
    if (!c.result["quantities"].contains(until.quantity)) {
      progress.note = "case " + std::to_string(i) + " has no " + until.quantity;
      break;
    }
    converged.push_back(i);
    q.push_back(quantity_of(c, until.quantity));
    auto const found = assembly::extrapolate(widths_of(converged, cases), q);
    bool const is_same = q.size() > 2 && found.note == "does not change";
    progress.note = is_same ? "" : found.note;
    progress.value = found.value;
    progress.error = progress.note.empty() ? found.error : no_number;
    if (q.size() == 3 && !is_same)
      progress.error = std::max(progress.error, std::abs(q[2] - q[1]));  // NaN stays
    progress.reached = progress.error <= until.relative * std::abs(progress.value);
  }
  return progress;
}

std::vector<MeshStudy> studies_until(std::vector<SweepCase> const& cases, SweepSpec const& sweep) {
  auto studies = mesh_studies(cases, sweep.axes);
  std::size_t most = 0;
  for (MeshStudy const& study : studies) {
    most = std::max(most, study.cases.size());
    if (!study.note.empty())
      throw InputError("sweep.until", "nothing can be extrapolated from cases " + ranges_text(study.cases) + ": " + study.note);
  }
  if (most < 3)
    throw InputError("sweep.until", "the extrapolation takes three meshes or more that nothing else changes with; found " +
                                        std::to_string(most) +
                                        ". Give problem.mesh.cells or problem.mesh.refinements more values, outside of any zip");
  return studies;
}

void leave_out_finer(MeshStudy const& study, std::vector<SweepCase>& cases, UntilSpec const& until) {
  require_quantity(study, cases, until);
  auto const progress = progress_of(study, cases, until);
  for (std::size_t n = progress.meshes; progress.reached && n < study.cases.size(); ++n)
    if (SweepCase& c = cases[study.cases[n]]; c.exit_code < 0 && c.writer.empty()) {
      c.left_out = true;
      c.exit_code = exit_done;
      c.directory.clear();
    }
}

double estimated_size(RunConfig const& config) {
  auto const cells = cells_of(config);
  return cells[0] * cells[1] * cells[2] * std::pow(config.problem.order, 3);
}

Json to_json(std::vector<MeshConvergence> const& groups) {
  Json list = Json::array();
  for (MeshConvergence const& group : groups) {
    Json quantities = Json::object();
    for (auto const& [name, found] : group.quantities) {
      quantities[name] = {
          {"value", number_or_null(found.value)}, {"order", number_or_null(found.order)}, {"error", number_or_null(found.error)}};
      if (!found.note.empty())
        quantities[name]["note"] = found.note;
    }
    list.push_back({{"parameters", json_of(group.study.parameters)}, {"cases", group.study.cases}, {"quantities", quantities}});
    if (!group.study.note.empty())
      list.back()["note"] = group.study.note;
  }
  return list;
}

std::vector<std::vector<std::string>> table_of(MeshConvergence const& group) {
  std::vector<std::vector<std::string>> rows{{"quantity", "extrapolated", "order", "error of the finest", ""}};
  for (auto const& [name, found] : group.quantities) {
    if (found.note == "does not change" || is_of_part(name))  // those are in sweep.json
      continue;
    bool const known = std::isfinite(found.order);
    rows.push_back({name, known ? number_text(found.value, 8) : "-", known ? number_text(found.order, 3) : "-",
                    known ? number_text(found.error, 2) : "-", found.note});
  }
  return rows;
}

Json until_json(std::vector<SweepCase> const& cases, SweepSpec const& sweep) {
  if (!sweep.until)
    return {};
  Json studies = Json::array();
  for (MeshStudy const& study : mesh_studies(cases, sweep.axes)) {
    auto const progress = progress_of(study, cases, *sweep.until);
    auto const end = study.cases.begin() + static_cast<std::ptrdiff_t>(progress.meshes);
    Json& row = studies.emplace_back(Json{{"parameters", json_of(study.parameters)},
                                          {"reached", progress.reached},
                                          {"cases", std::vector<std::size_t>(study.cases.begin(), end)},
                                          {"left_out", numbers_left_out(study, cases)},
                                          {"value", number_or_null(progress.value)},
                                          {"error", number_or_null(progress.error)}});
    if (!progress.note.empty())
      row["note"] = progress.note;
  }
  return {{"quantity", sweep.until->quantity}, {"relative", sweep.until->relative}, {"studies", studies}};
}

std::string until_title(UntilSpec const& until) {
  return "Until the error of " + until.quantity + " is " + number_text(until.relative, 6) + " of it";
}

std::vector<std::vector<std::string>> until_table(std::vector<SweepCase> const& cases, SweepSpec const& sweep) {
  std::vector<std::vector<std::string>> rows;
  if (!sweep.until)
    return rows;
  for (MeshStudy const& study : mesh_studies(cases, sweep.axes)) {
    auto const progress = progress_of(study, cases, *sweep.until);
    if (rows.empty()) {
      rows.push_back({});
      for (auto const& [path, value] : study.parameters)
        rows[0].push_back(short_name(path));
      rows[0].insert(rows[0].end(),
                     {"case", "limit of " + sweep.until->quantity, "error of that case", "relative", "why it stopped"});
    }
    auto& row = rows.emplace_back();
    for (auto const& [path, value] : study.parameters)
      row.push_back(value);
    row.push_back(progress.meshes > 0 ? std::to_string(study.cases[progress.meshes - 1]) : "-");
    row.push_back(number_text(progress.value, 8));
    row.push_back(number_text(progress.error, 2));
    row.push_back(number_text(progress.error / std::abs(progress.value), 2));
    std::size_t const n = numbers_left_out(study, cases).size();
    if (progress.reached)
      row.push_back("accurate enough" + (n > 0 ? ", " + std::to_string(n) + " finer left out" : std::string()));
    else
      row.push_back(std::string(progress.meshes == study.cases.size() ? "no finer mesh; not reached" : "not done yet") +
                    (progress.note.empty() ? "" : ": " + progress.note));
  }
  return rows;
}

}  // namespace poisson::app
