#include "app/results/result_record.hpp"

#include "app/io/console.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

namespace poisson::app {

namespace {

using json = nlohmann::ordered_json;

json estimates_of(std::vector<PreconditionerEstimate> const& estimates) {
  json rows = json::array();
  for (PreconditionerEstimate const& e : estimates) {
    json row = {{"preconditioner", name_of(e.kind)}};
    if (e.refusal.empty())
      row.update({{"iterations", e.iterations},
                  {"setup_seconds", e.setup_seconds},
                  {"iteration_seconds", e.iteration_seconds},
                  {"total_seconds", e.seconds()}});
    else
      row["refusal"] = e.refusal;
    rows.push_back(std::move(row));
  }
  return rows;
}

/// What `auto` decided from; a format that refuses has no seconds.
json estimates_of(FormatChoice const& choice) {
  json rows = json::array();
  for (FormatEstimate const& f : choice.estimates) {
    json row = {{"format", name_of(f.format)}, {"bytes", f.bytes}, {"bytes_per_product", f.bytes_per_product}};
    if (f.refusal.empty())
      row.update({{"product_seconds", f.product_seconds},
                  {"conversion_seconds", f.conversion_seconds},
                  {"total_seconds", total_seconds(f, choice.forecast.products)},
                  {"padding_ratio", f.padding_ratio},
                  {"at_least", f.is_lower_bound}});
    row["refusal"] = f.refusal;
    rows.push_back(std::move(row));
  }
  return rows;
}

/// A system from files is read, and has neither mesh nor fields.
bool has_stage(ResultRecord const& r, Stage stage) {
  switch (stage) {
  case Stage::read:
    return r.system.has_value();
  case Stage::mesh:
  case Stage::assembly:
  case Stage::reconstruct:
  case Stage::analysis:
    return !r.system;
  default:
    return true;
  }
}

json json_of(RankFigures const& figures) {
  return {{"min", figures.smallest}, {"max", figures.largest}, {"mean", figures.mean}};
}

}  // namespace

RankFigures::RankFigures(Communicator& ranks, double mine)
    : smallest(-max_over(ranks, -mine)), largest(max_over(ranks, mine)), mean(sum_over(ranks, mine) / ranks.size()) {}

std::string to_json(ResultRecord const& r) {
  json out = {{"poisson_version", POISSON_VERSION},
              {"status", name_of(r.status)},
              {"reason", r.reason},
              {"exit_code", r.exit_code},
              {"warnings", r.warnings},
              {"provenance", r.provenance},
              {"solution", {{"name", r.name}, {"unit", r.unit}}}};
  if (!r.error.empty())
    out["error"] = r.error;
  if (r.system) {
    out["system"] = {{"matrix", r.system->matrix}, {"rhs", r.system->rhs_name()}};
    out["fingerprint"] = r.fingerprint;
  } else {
    std::array<double, 3> lengths{};
    for (std::size_t d = 0; d < 3; ++d)
      lengths[d] = r.extent.high[d] - r.extent.low[d];
    out.update({{"configuration", r.configuration_file},
                {"fingerprint", r.fingerprint},
                {"mesh",
                 {{"cells", r.mesh.cells},
                  {"vertices", r.mesh.vertices},
                  {"origin", r.extent.low},
                  {"extent", lengths},
                  {"boundary_ids", r.mesh.boundary_ids},
                  {"material_ids", r.mesh.material_ids}}},
                {"order", r.order}});
    if (r.mesh.surface)
      out["mesh"]["surface"] = {{"volume", r.mesh.surface->volume},
                                {"area", r.mesh.surface->area},
                                {"voxels_volume", r.mesh.surface->voxels_volume},
                                {"voxels_area", r.mesh.surface->voxels_area}};
    if (r.mesh.quality)
      out["mesh"]["quality"] = {{"worst", r.mesh.quality->worst}, {"mean", r.mesh.quality->mean}, {"worst_at", r.mesh.quality->at}};
    if (assembly::LeftOut const& left_out = r.mesh.left_out; left_out.parts > 0)
      out["mesh"]["left_out"] = {{"parts", left_out.parts}, {"cells", left_out.cells}, {"volume", left_out.volume}};
  }
  out.update({
      {"dofs", r.dofs},
      {"nnz", r.nnz},
      {"matrix",
       {{"format", name_of(r.format)}, {"bytes", r.matrix_bytes}, {"csr_bytes", r.csr_bytes}, {"padding_ratio", r.padding_ratio}}},
      {"backend", r.backend},
      {"device", r.device},
      {"threads", r.threads},
      {"ranks", r.ranks},
      {"solver",
       {{"method", name_of(r.solver.method)},
        {"precision", name_of(r.solver.precision)},
        {"preconditioner", name_of(r.solver.preconditioner)},
        {"shift", r.solver.shift},
        {"tolerance", r.solver.tolerance},
        {"initial", name_of(r.solver.initial)},
        {"iterations", r.result.iterations},
        {"residual_recursive", r.result.residual_recursive},
        {"residual_true", r.residual_true},
        {"residual_scaled", r.residual_scaled},
        {"cycles", r.result.cycles},
        {"setup_seconds", r.result.setup_seconds},
        {"seconds", r.result.seconds},
        {"bytes_per_iteration", r.result.bytes_per_iteration},
        {"bytes_per_second", r.bandwidth()},
        {"copy_bytes_per_second", r.copy_bandwidth > 0 ? json(r.copy_bandwidth) : json()}}},
  });
  if (r.solver.initial == InitialGuess::neighbour)
    out["solver"]["neighbour"] = r.neighbour ? json(*r.neighbour) : json();
  if (r.resumed)
    out["solver"]["resumed"] = {{"iteration", r.resumed->iteration}, {"exact", r.resumed->exact}};
  if (r.corrections > 0)
    out["solver"].update({{"corrections", r.corrections}, {"correction_iterations", r.correction_iterations}});
  if (r.result.discretization_error >= 0)
    out["solver"].update({{"discretization_error", r.result.discretization_error}, {"algebraic_error", r.result.algebraic_error}});
  if (r.result.levels > 0)
    out["solver"].update({{"ordering", name_of(r.result.ordering)}, {"levels", r.result.levels}});
  if (!r.result.multigrid_levels.empty()) {
    auto const& levels = r.result.multigrid_levels;
    json list = json::array();
    std::int64_t nnz = 0, bytes = 0;
    for (MultigridLevelSummary const& level : levels) {
      list.push_back({{"rows", level.rows}, {"nnz", level.nnz}, {"bytes", level.bytes}, {"largest_eigenvalue", level.largest}});
      nnz += level.nnz;
      bytes += level.bytes;
    }
    double const last = r.result.history.empty() ? 0 : r.result.history.back();
    out["solver"]["multigrid"] = {{"levels", std::move(list)},
                                  {"bytes", bytes},
                                  {"operator_complexity", static_cast<double>(nnz) / static_cast<double>(levels.front().nnz)},
                                  {"convergence_factor", r.result.iterations > 0 && last > 0
                                                             ? json(std::pow(last, 1.0 / static_cast<double>(r.result.iterations)))
                                                             : json()}};
  }
  if (!r.result.estimates.empty())
    out["solver"]["auto"] = estimates_of(r.result.estimates);
  if (!r.result.notes.empty())
    out["solver"]["notes"] = r.result.notes;
  if (r.result.extended_from >= 0)
    out["solver"]["extended_from"] = r.result.extended_from;
  if (r.choice) {
    out["matrix"]["expected_products"] = static_cast<std::int64_t>(r.choice->forecast.products);
    out["matrix"]["auto"] = estimates_of(*r.choice);
  }
  // The names of ids; and of groups that overlap the ids that they are made of.
  auto const add_groups = [&](std::string const& what, assembly::IdGroups const& groups, std::set<unsigned> const& all) {
    json names = json::object(), parts = json::object();
    for (unsigned const id : all)
      if (std::string const label = groups.label(id); label != std::to_string(id))
        names[std::to_string(id)] = label;
    for (assembly::IdGroup const& group : groups.list())
      if (!group.parts.empty() && group.parts != std::set<unsigned>{group.id})
        parts[group.name.empty() ? std::to_string(group.id) : group.name] =
            group.name.empty() ? group.parts : groups.with_name(group.name);
    if (!names.empty())
      out["mesh"][what + "_names"] = names;
    if (!parts.empty())
      out["mesh"][what + "_groups"] = parts;
  };
  add_groups("boundary", r.mesh.boundary_groups, r.mesh.boundary_ids);
  add_groups("material", r.mesh.material_groups, r.mesh.material_ids);
  add_groups("surface", r.mesh.inner_groups, r.mesh.inner_ids);
  for (auto const& [name, value] : r.quantities)
    out["quantities"][name] = value;
  if (r.adaptive) {
    AdaptiveRecord const& adaptive = *r.adaptive;
    json cycles = json::array();
    for (AdaptiveCycle const& cycle : adaptive.cycles) {
      json& entry = cycles.emplace_back(json{{"cells", cycle.cells},
                                             {"dofs", cycle.dofs},
                                             {"levels", cycle.levels},
                                             {"value", cycle.value},
                                             {"estimate", cycle.estimate},
                                             {"guaranteed", cycle.guaranteed},
                                             {"iterations", cycle.iterations},
                                             {"seconds", cycle.seconds}});
      if (cycle.raised != 1)
        entry["raised"] = cycle.raised;
      if (!cycle.why_not.empty())
        entry["not_guaranteed_because"] = cycle.why_not;
      if (cycle.error) {
        entry["error"] = *cycle.error;
        entry["effectivity"] = *cycle.error > 0 ? json(cycle.estimate / *cycle.error) : json();
      }
    }
    out["adaptive"] = {{"target", adaptive.target},
                       {"tolerance", adaptive.tolerance.value},
                       {"relative", adaptive.tolerance.relative},
                       {"ended", adaptive.ended},
                       {"reason", adaptive.reason},
                       {"cycles", std::move(cycles)}};
    for (TriedOrder const& tried : adaptive.orders)
      out["adaptive"]["orders"].push_back({{"order", tried.order},
                                           {"dofs", tried.dofs},
                                           {"estimate", tried.estimate},
                                           {"dofs_needed", tried.dofs_needed},
                                           {"work", tried.work}});
    if (!adaptive.cycles.empty() && adaptive.ended != AdaptiveRecord::not_judged)
      out["errors_of"][adaptive.target] = {{"estimate", adaptive.cycles.back().estimate},
                                           {"guaranteed", adaptive.cycles.back().guaranteed}};
  }
  if (r.effective)
    out["effective"] = json_of(*r.effective);
  if (r.errors)
    out["errors"] = {{"l2", r.errors->l2}, {"h1_seminorm", r.errors->h1_seminorm}, {"linf", r.errors->linf}};
  if (r.compatibility_defect)
    out["compatibility_defect"] = *r.compatibility_defect;
  if (!r.analysis.empty())
    out["analysis"] = r.analysis;
  json timing = json::object();
  for (auto const& [stage, name] : Names<Stage>::values)
    if (has_stage(r, stage))
      timing[std::string(name)] = r.clock.seconds(stage);
  timing["total"] = r.clock.total();
  out["timing"] = timing;
  if (r.ranks > 1) {
    json seconds = json::object();
    for (auto const& [stage, figures] : r.seconds_of_ranks)
      if (has_stage(r, stage))
        seconds[std::string(name_of(stage))] = json_of(figures);
    out["of_ranks"] = {{"rows", json_of(r.rows_of_ranks)},
                       {"matrix_bytes", json_of(r.bytes_of_ranks)},
                       {"host_peak_bytes", json_of(r.host_peak_of_ranks)},
                       {"devices", r.devices_of_ranks},
                       {"timing", std::move(seconds)}};
  }
  out["memory"] = {{"host_peak_bytes", r.host_peak_bytes}, {"device_peak_bytes", r.device_peak_bytes}};
  out["files"] = r.files;
  out["files_failed"] = json_of(r.files_failed);
  // A file name that is not UTF-8 must not cost the record.
  return out.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string AdaptiveCycle::answer() const {
  if (std::isnan(estimate))
    return "not estimated";
  return text_with_error(value, estimate) + (guaranteed ? " (guaranteed)" : " (estimated)");
}

}  // namespace poisson::app
