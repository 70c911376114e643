#include "app/config/config.hpp"
#include "app/io/console.hpp"
#include "app/results/problem_words.hpp"
#include "app/results/quantities.hpp"
#include "app/results/report_page.hpp"
#include "app/results/versions.hpp"
#include "output/report/page.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace poisson::app {

namespace fs = std::filesystem;

namespace {

using Facts = std::vector<std::pair<std::string, std::string>>;

std::string title_of(ResultRecord const& r) {
  if (!r.title.empty())
    return r.title;
  return r.system ? fs::path(r.system->matrix).filename().string() : configuration_stem(r.configuration_file);
}

std::string percent_text(double share) {
  return number_text(100 * share) + " %";
}

void add_main_figures(output::Page& page, ResultRecord const& r) {
  Facts figures;
  if (!r.system && r.mesh.cells > 0)
    figures.emplace_back("cells", with_thousands(r.mesh.cells));
  if (r.dofs > 0)
    figures.emplace_back("unknowns", with_thousands(r.dofs));
  figures.emplace_back("iterations", with_thousands(r.result.iterations));
  if (!std::isnan(r.residual_true))
    figures.emplace_back("true residual", number_text(r.residual_true));
  figures.emplace_back("time", seconds_text(r.clock.total()));
  figures.emplace_back("memory", bytes_text(static_cast<double>(std::max(r.host_peak_bytes, r.device_peak_bytes))));
  page.figures(figures);
}

/// A number, or a point.
std::string value_text(nlohmann::ordered_json const& value) {
  if (value.is_number())
    return number_text(value, 8);
  if (!value.is_array())
    return "not a finite number";
  std::string text;
  for (auto const& part : value)
    text += (text.empty() ? "(" : ", ") + (part.is_number() ? number_text(part, 6) : "-");
  return text + ")";
}

/// Describes the boundary of a quantity, whose name ends in that of the boundary.
std::string boundary_in_words(std::string_view name, RunConfig const& config) {
  std::string const side = side_of_box(name.substr(name.rfind('.') + 1), config);
  return side.empty() ? "that boundary" : "the side " + side;
}

/// Describes a quantity of analysis.effective by what follows "effective." in its name.
std::string meaning_of_effective(std::string_view name) {
  if (name.starts_with("principal."))
    return "eigenvalue of the effective tensor";
  if (name == "voigt" || name == "reuss")
    return name == "voigt" ? "mean of k, an upper bound" : "harmonic mean of k, a lower bound";
  if (name.starts_with("hashin_shtrikman."))
    return "bound of isotropic mixtures";
  if (name.starts_with("relative_diffusivity."))
    return "effective k over that of the phase that conducts";
  if (name.starts_with("tortuosity_factor."))
    return "share of that phase, over the relative diffusivity";
  if (name.starts_with("sub_volumes."))
    return std::string(name.starts_with("sub_volumes.mean.") ? "mean of sub-volumes, " : "deviation of a sub-volume, ") +
           std::string(name.substr(name.size() - 2));
  return std::string("mean flux along ") + name[name.size() - 2] + " for a mean gradient of 1 along " + name.back() +
         (name.starts_with("fixed.") ? ", fixed conditions" : "");
}

/// What a quantity is, for those that every run has.
std::string meaning_of(std::string_view name, RunConfig const& config, std::set<std::string> const& free_surfaces) {
  std::string const u = config.output.label();
  if (name == "min" || name == "max")
    return "of " + u + ", over the nodes";
  if (name == "min_at" || name == "max_at")
    return "where that is";
  if (name == "mean")
    return "of " + u + " over the domain";
  if (name == "energy")
    return "1/2 ∫ k |∇u|²";
  if (name == "integral_u")
    return "∫ " + config.output.name;
  if (name == "integral_f")
    return "∫ f, all sources";
  if (name == "balance")
    return "|sum of fluxes − ∫ f|, of the largest flux";
  if (name.starts_with("flux.") && free_surfaces.contains(std::string(name.substr(5))))
    return "flux −k ∂u/∂n through that surface, from the material with the lower id to the other one, or to larger x";
  if (name.starts_with("flux."))
    return "flux −k ∂u/∂n out of " + boundary_in_words(name, config) + " (positive: leaves)";
  if (name.starts_with("area."))
    return "of " + boundary_in_words(name, config);
  if (name.starts_with("volume."))
    return "of that material";
  if (name.starts_with("effective."))
    return meaning_of_effective(name.substr(name.find('.') + 1));
  if (name.starts_with("probe."))
    return name.ends_with(".gradient") ? "∇u there" : name.ends_with(".flux") ? "−k ∇u there" : u + " there";
  return "";
}

/// u in every material and on every boundary.
void add_parts_table(output::Page& page, RunConfig const& config, ResultRecord const& r) {
  std::vector<std::string> kinds, parts;
  std::map<std::pair<std::string, std::string>, std::string> values;
  auto const add = [](std::vector<std::string>& list, std::string const& name) {
    if (std::find(list.begin(), list.end(), name) == list.end())
      list.push_back(name);
  };
  for (auto const& [name, value] : r.quantities)
    if (is_of_part(name)) {
      std::size_t const dot = name.find('.');
      add(kinds, name.substr(0, dot));
      add(parts, name.substr(dot + 1));
      values[{name.substr(0, dot), name.substr(dot + 1)}] = value_text(value);
    }
  if (parts.empty())
    return;
  output::PageTable table{{config.output.label() + " in or on"}, {}, false};
  table.head.insert(table.head.end(), kinds.begin(), kinds.end());
  for (std::string const& part : parts) {
    std::string const side = side_of_box(std::string_view(part).substr(part.rfind('.') + 1), config);
    std::vector<output::PageCell> row{{part + (side.empty() ? "" : " (" + side + ")")}};
    for (std::string const& kind : kinds) {
      auto const value = values.find({kind, part});
      row.push_back({value == values.end() ? "" : value->second});
    }
    table.rows.push_back(std::move(row));
  }
  page.table(table);
}

/// The user's own quantities first.
void add_quantity_table(output::Page& page, RunConfig const& config, ResultRecord const& r) {
  if (r.quantities.empty())
    return;
  page.heading("Quantities");
  output::PageTable table{{"name", "value", "meaning"}, {}, false};
  auto const own = [&](std::string const& name) {
    return std::find_if(config.output.quantities.begin(), config.output.quantities.end(),
                        [&](QuantitySpec const& q) { return q.name == name; });
  };
  std::set<std::string> const free_surfaces = r.mesh.free_surfaces();
  for (bool const of_user : {true, false})
    for (auto const& [name, value] : r.quantities)
      if (auto const spec = own(name); !is_of_part(name) && (spec != config.output.quantities.end()) == of_user)
        table.rows.push_back({{name}, {value_text(value)}, {of_user ? spec->value : meaning_of(name, config, free_surfaces)}});
  page.table(table);
  add_parts_table(page, config, r);
}

/// Makes the caption of a picture of a line, circle or plane. Any other picture has its name as caption.
std::string caption_by_name(std::string const& stem, std::string const& u) {
  for (auto const& [start, words] :
       {std::pair{"line_", " along the line "}, {"circle_", " along the circle "}, {"plane_", " on the plane "}})
    if (stem.starts_with(start))
      return u + words + stem.substr(std::string_view(start).size());
  return stem;
}

void add_convergence(output::Page& page, ResultRecord const& r) {
  if (r.result.history.empty())
    return;
  page.heading("Solver");
  output::PagePlot plot{"Relative residual", "iteration", "||r|| / ||b||"};
  plot.y_log = true;
  plot.markers = r.result.history.size() <= 60;
  plot.reference_y = r.solver.tolerance;
  plot.reference_label = "tolerance";
  output::Curve curve{"", {}, r.result.history};
  for (std::size_t i = 0; i < curve.y.size(); ++i)
    curve.x.push_back(static_cast<double>(i));
  plot.curves.push_back(std::move(curve));
  page.plots({plot});

  Facts facts{
      {"method", std::string(name_of(r.solver.method)) + ", preconditioner " + std::string(name_of(r.solver.preconditioner)) +
                     ", precision " + std::string(name_of(r.solver.precision))},
      {"iterations", with_thousands(r.result.iterations)},
      {"residual", number_text(r.result.residual_recursive) + " by the recursion, " + number_text(r.residual_true) +
                       " recomputed; tolerance " + number_text(r.solver.tolerance)},
      {"time", seconds_text(r.result.setup_seconds) + " setup, " + seconds_text(r.result.seconds) + " iterations"},
      {"matrix", std::string(name_of(r.format)) + ", " + with_thousands(r.nnz) + " non-zeros, " +
                     bytes_text(static_cast<double>(r.matrix_bytes)) +
                     (r.csr_bytes > 0
                          ? ", " + percent_text(static_cast<double>(r.matrix_bytes) / static_cast<double>(r.csr_bytes)) + " of csr"
                          : "") +
                     (r.format_reason.empty() ? "" : " (" + r.format_reason + ")")},
      {"memory traffic",
       number_text(r.bandwidth() / 1e9) + " GB/s" +
           (r.copy_bandwidth > 0 ? ", " + percent_text(r.bandwidth() / r.copy_bandwidth) + " of the copy bandwidth measured"
                                 : "")}};
  for (std::string const& note : r.result.notes)
    facts.emplace_back("note", note);
  page.facts(facts);

  if (!r.result.multigrid_levels.empty()) {
    output::PageTable levels{{"level", "rows", "non-zeros", "bytes", "largest eigenvalue"}, {}, false};
    auto const number = [](double value, std::string text) { return output::PageCell{std::move(text), value}; };
    for (std::size_t i = 0; i < r.result.multigrid_levels.size(); ++i) {
      MultigridLevelSummary const& level = r.result.multigrid_levels[i];
      levels.rows.push_back({number(static_cast<double>(i), std::to_string(i)),
                             number(static_cast<double>(level.rows), with_thousands(level.rows)),
                             number(static_cast<double>(level.nnz), with_thousands(level.nnz)),
                             number(static_cast<double>(level.bytes), bytes_text(static_cast<double>(level.bytes))),
                             // Where the coarsest level is solved directly nothing is damped: this number would say nothing.
                             i + 1 < r.result.multigrid_levels.size() ? number(level.largest, number_text(level.largest, 4))
                                                                      : output::PageCell{"-"}});
    }
    page.table(levels);
  }
}

void add_times(output::Page& page, ResultRecord const& r) {
  page.heading("Time and memory");
  std::vector<output::PageBar> bars;
  for (auto const& [stage, name] : Names<Stage>::values)
    if (double const seconds = r.clock.seconds(stage); seconds > 0)
      bars.push_back({std::string(name), seconds, seconds_text(seconds)});
  page.bars(bars);
  Facts facts{{"machine", r.device + (r.backend == "cpu" ? ", " + std::to_string(r.threads) + " threads" : "")},
              {"host memory", bytes_text(static_cast<double>(r.host_peak_bytes)) + " at most"}};
  if (r.device_peak_bytes > 0)
    facts.emplace_back("device memory", bytes_text(static_cast<double>(r.device_peak_bytes)) + " at most");
  facts.emplace_back("versions", versions_text());
  page.facts(facts);
}

}  // namespace

std::string report_of_run(RunConfig const& config, ResultRecord const& r, fs::path const& directory) {
  output::Page page(title_of(r), "poisson " POISSON_VERSION ", " + date_text(), name_of(r.status),
                    r.status == SolverStatus::converged);
  if (!r.reason.empty())
    page.warning(r.reason);
  if (!r.error.empty())
    page.warning(r.error);
  for (std::string const& warning : r.warnings)
    page.warning(warning);
  add_main_figures(page, r);

  page.heading("Problem");
  page.facts(problem_in_words(config));
  std::vector<std::string> pictures;
  for (std::string const& file : r.files)
    if (file.ends_with(".png") && file != "residuals.png")
      pictures.push_back(file);
  // Those of the solution first.
  std::stable_partition(pictures.begin(), pictures.end(), [&](std::string const& file) { return r.captions.contains(file); });
  if (!pictures.empty())
    page.heading("Solution");
  std::vector<output::PagePicture> shown;
  for (std::string const& file : pictures) {
    auto const caption = r.captions.find(file);
    shown.push_back({directory / file, caption != r.captions.end()
                                           ? caption->second
                                           : caption_by_name(fs::path(file).stem().string(), config.output.name)});
  }
  page.pictures(shown);
  add_quantity_table(page, config, r);
  if (r.errors) {
    page.heading("Errors");
    page.facts({{"L2", number_text(r.errors->l2, 6)},
                {"H1 seminorm", number_text(r.errors->h1_seminorm, 6)},
                {"largest at a node", number_text(r.errors->linf, 6)}});
  }
  add_convergence(page, r);
  add_times(page, r);

  page.heading("Files");
  page.links(r.files);
  page.heading("Configuration");
  if (std::find(r.files.begin(), r.files.end(), "configuration.yaml") != r.files.end()) {
    std::ifstream in(directory / "configuration.yaml");
    page.listing("as it was written", std::string{std::istreambuf_iterator<char>(in), {}});
  }
  page.listing("every key with its value", resolved_yaml(with_absolute_files(config)));
  return page.html();
}

}  // namespace poisson::app
