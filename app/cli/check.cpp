#include "app/cli/check.hpp"

#include "app/config/problem.hpp"
#include "app/io/console.hpp"
#include "app/plan/format_choice.hpp"
#include "app/results/quantities.hpp"
#include "app/results/solution_fields.hpp"
#include "app/run/adaptive_target.hpp"
#include "app/run/memory_forecast.hpp"
#include "app/sweep/sweep_cases.hpp"
#include "assembly/discretization.hpp"
#include "assembly/image/image_file.hpp"
#include "gpu/kernels/backends.hpp"

#include <algorithm>
#include <array>
#include <iostream>
#include <map>
#include <set>
#include <utility>

namespace poisson::app {

namespace {

/// Where a run would compute.
Backend backend_of(RunConfig const& config) {
  return config.backend.value_or(why_no_cuda().empty() ? Backend::cuda : Backend::cpu);
}

/// Counts of a problem, and the memory of its run.
struct CaseForecast {
  assembly::MeshSummary mesh;
  std::vector<std::string> notes;  ///< on the mesh file
  MemoryForecast memory;
};

CaseForecast forecast_of_case(RunConfig const& config, int ranks) {
  assembly::ProblemSpec spec = problem_of(config);
  spec.mesh.shared = config.is_box() && ranks > 1;
  assembly::CheckedProblem const problem(spec);
  if (config.adaptive.is_asked())
    check_refinement(config, problem.mesh());
  if (!config.problem.mesh.has_places())  // `boundaries` and `regions` give names later
    check_quantities(config, problem.mesh());
  return {problem.mesh(), problem.notes(), forecast_memory(config, backend_of(config), problem, ranks)};
}

/// The stages as "mesh 1 MiB, solve 2 MiB".
std::string stages_text(std::vector<MemoryForecast::OfStage> const& stages) {
  std::string text;
  for (MemoryForecast::OfStage const& stage : stages)
    text += (text.empty() ? "" : ", ") + stage.name + " " + bytes_text(static_cast<double>(stage.bytes));
  return text;
}

/// How many cases a sweep has, and the sizes of the smallest and largest. Throws InputError when a case is not valid.
void print_sweep(Configuration const& configuration, int ranks, std::ostream& out) {
  std::vector<SweepCase> const cases = sweep_cases(configuration);
  auto const text_of = [&](SweepCase const& c) { return values_text(c, configuration.config().sweep.axes); };
  struct Size {
    std::size_t number = 0;
    CaseForecast forecast;
  };
  std::optional<Size> smallest, largest;
  std::map<std::string, CaseForecast> known;  // cases often differ in what no mesh knows of
  std::size_t n_wrong = 0;
  std::string first_wrong;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    std::string error = cases[i].error;
    if (cases[i].configuration)
      try {
        RunConfig const& config = cases[i].configuration->config();
        RunConfig relevant;
        relevant.problem = config.problem;
        relevant.fields = config.fields;
        relevant.matrix = config.matrix;
        relevant.solver = config.solver;
        relevant.effective = config.effective;
        relevant.adaptive = config.adaptive;
        relevant.output = config.output;
        relevant.output.directory.clear();
        relevant.backend = config.backend;
        std::string const key = resolved_yaml(relevant);
        auto found = known.find(key);
        if (found == known.end())
          found = known.emplace(key, forecast_of_case(config, ranks)).first;
        Size const size{i, found->second};
        auto const less = [](Size const& a, Size const& b) {
          return a.forecast.mesh.dofs != b.forecast.mesh.dofs
                     ? a.forecast.mesh.dofs < b.forecast.mesh.dofs
                     : a.forecast.memory.host_peak().bytes < b.forecast.memory.host_peak().bytes;
        };
        if (!smallest || less(size, *smallest))
          smallest = size;
        if (!largest || less(*largest, size))
          largest = size;
      } catch (InputError const& wrong) {
        error = cases[i].configuration->locate(wrong);
      }
    if (!error.empty() && n_wrong++ == 0)
      first_wrong = "case " + std::to_string(i) + " (" + text_of(cases[i]) + "): " + error;
  }
  out << "\n# Sweep\n#   cases          " << with_thousands(static_cast<std::int64_t>(cases.size()));
  if (auto const& greedy = configuration.config().sweep.greedy)
    out << ", of which at most " << with_thousands(greedy->max_cases) << " are solved, and the others predicted";
  out << "\n";
  auto const line = [&](char const* name, Size const& size) {
    assembly::MeshSummary const& mesh = size.forecast.mesh;
    out << "#   " << name << (mesh.exact_counts ? "" : "about ") << with_thousands(mesh.dofs) << " unknowns, about "
        << bytes_text(static_cast<double>(size.forecast.memory.host_peak().bytes)) << " on the host"
        << (size.forecast.memory.device_peak() == 0
                ? ""
                : ", " + bytes_text(static_cast<double>(size.forecast.memory.device_peak())) + " on the device")
        << (ranks > 1 ? " of the rank with most" : "") << "; case " << size.number << ": " << text_of(cases[size.number]) << "\n";
  };
  if (smallest) {
    line("smallest       ", *smallest);
    line("largest        ", *largest);
  }
  out << std::flush;
  if (n_wrong > 0)
    throw InputError("sweep", std::to_string(n_wrong) + " of " + std::to_string(cases.size()) +
                                  " cases are not valid; the first is " + first_wrong);
}

/// Meshes of more cells are not made for a table.
constexpr std::int64_t most_cells_for_parts = 1'000'000;

/// The groups that these ids of the mesh belong to, those that are ids only included; ascending by id.
std::vector<assembly::IdGroup> groups_with_ids(assembly::IdGroups const& groups, std::set<unsigned> const& ids) {
  std::vector<assembly::IdGroup> result;
  std::set<unsigned> alone = ids;
  for (assembly::IdGroup group : groups.list()) {
    for (unsigned const part : group.parts)
      alone.erase(part);
    std::erase_if(group.parts, [&](unsigned part) { return !ids.contains(part); });
    if (!group.parts.empty())
      result.push_back(std::move(group));
  }
  for (unsigned const id : alone)
    result.push_back({id, "", {id}});
  std::stable_sort(result.begin(), result.end(), [](auto const& a, auto const& b) { return a.id < b.id; });
  return result;
}

/// The boundaries and materials with their names, sizes and places, as comments, and notes. What is wrong with the named places of
/// the configuration shows as well. Of a large mesh, which is not made, the names and the notes on its file. Errors: InputError.
void print_parts(RunConfig const& config, CaseForecast const& forecast, std::ostream& out) {
  assembly::MeshSummary const& mesh = forecast.mesh;
  auto const print_notes = [&](std::vector<std::string> const& notes) {
    for (std::string const& note : notes)
      out << "# note: " << note << "\n";
  };
  if (mesh.cells > most_cells_for_parts) {
    auto const list = [](std::set<unsigned> const& ids, assembly::IdGroups const& groups) {
      std::string text;
      for (auto const& group : groups_with_ids(groups, ids))
        text += (text.empty() ? "" : ", ") + std::to_string(group.id) + (group.name.empty() ? "" : " (" + group.name + ")");
      return text;
    };
    out << "#   boundary ids   " << list(mesh.boundary_ids, mesh.boundary_groups) << "\n#   material ids   "
        << list(mesh.material_ids, mesh.material_groups) << "\n#                  (their sizes are listed for up to "
        << with_thousands(most_cells_for_parts) << " cells)\n";
    print_notes(forecast.notes);
    if (!config.problem.mesh.regions.empty() || !config.problem.mesh.boundaries.empty())
      out << "# note: whether mesh.regions and mesh.boundaries hold cells and faces, or cut them, is looked at for up to "
          << with_thousands(most_cells_for_parts) << " cells; a run looks in any case\n";
    return;
  }
  assembly::Discretization const discretization(problem_of(config), assembly::AssembledInto::half_cds_on_host);
  auto const parts = discretization.parts();
  double largest = 0;  // coordinate: what is less by far is rounding
  for (auto const* list : {&parts.boundaries, &parts.materials})
    for (auto const& [id, part] : *list)
      for (std::size_t d = 0; d < 3; ++d)
        largest = std::max({largest, std::abs(part.extent.low[d]), std::abs(part.extent.high[d])});
  auto const number = [&](double x) { return number_text(std::abs(x) < 1e-14 * largest ? 0 : x, 6); };
  auto const point = [&](std::array<double, 3> const& x) {
    return "(" + number(x[0]) + ", " + number(x[1]) + ", " + number(x[2]) + ")";
  };
  auto const print = [&](char const* title, char const* count, char const* size, auto const& list,
                         assembly::IdGroups const& groups) {
    std::vector<std::vector<std::string>> table{{"id", "name", count, size, "from", "to"}};
    std::set<unsigned> ids;
    for (auto const& [id, part] : list)
      ids.insert(id);
    for (auto const& group : groups_with_ids(groups, ids)) {
      assembly::MeshPart sum;
      for (unsigned const id : group.parts) {
        assembly::MeshPart const& part = list.at(id);
        sum.count += part.count;
        sum.size += part.size;
        sum.extent.add(part.extent);
      }
      table.push_back({std::to_string(group.id), group.name.empty() ? "-" : group.name, with_thousands(sum.count),
                       number_text(sum.size, 6), point(sum.extent.low), point(sum.extent.high)});
    }
    out << "\n# " << title << "\n";
    for (std::string const& line : grid_lines(table))
      out << "#   " << line << "\n";
    for (unsigned const id : ids)
      if (groups_with_ids(groups, {id}).size() > 1)
        out << "#   in several of them: " << with_thousands(list.at(id).count) << " " << count << " (" << size << " "
            << number_text(list.at(id).size, 6) << ") belong to " << groups.label(id) << "\n";
  };
  assembly::MeshSummary const& found = discretization.summary();
  if (config.adaptive.is_asked())
    check_refinement(config, found, true);
  check_quantities(config, found);
  print("Boundaries", "faces", "area", parts.boundaries, found.boundary_groups);
  if (!parts.surfaces.empty())
    print("Surfaces inside the mesh", "faces", "area", parts.surfaces, found.inner_groups);
  print("Materials", "cells", "volume", parts.materials, found.material_groups);
  print_notes(discretization.notes());
}

/// How many phases are listed.
constexpr std::size_t most_phases = 40;

/// The phases of an image with their shares, and whether they join opposite faces: all of it is known before a mesh is made.
void print_phases(assembly::LabelImage const& image, std::ostream& out) {
  std::vector<assembly::Phase> phases = assembly::phases_of(image);
  std::size_t const all = phases.size();
  if (all > most_phases) {
    std::stable_sort(phases.begin(), phases.end(), [](auto const& a, auto const& b) { return a.voxels > b.voxels; });
    phases.resize(most_phases);
  }
  auto const percent = [](std::int64_t part, std::int64_t whole) {
    return number_text(100. * static_cast<double>(part) / static_cast<double>(whole), 4) + " %";
  };
  std::vector<std::vector<std::string>> table{
      {"label", "name", "cells", "fraction", "components", "largest", "joining x", "joining y", "joining z"}};
  for (assembly::Phase const& phase : phases) {
    auto const name = image.names.find(phase.label);
    std::vector<std::string>& row = table.emplace_back(std::vector<std::string>{
        std::to_string(phase.label), name == image.names.end() ? "-" : name->second, with_thousands(phase.voxels),
        number_text(static_cast<double>(phase.voxels) / static_cast<double>(image.size()), 6), with_thousands(phase.components),
        percent(phase.largest, phase.voxels)});
    for (std::size_t d = 0; d < 3; ++d)
      row.push_back(phase.joining[d] == 0
                        ? "none"
                        : with_thousands(phase.joining[d]) + " (" + percent(phase.joining_voxels[d], phase.voxels) + ")");
  }
  out << "\n# Phases of the image\n";
  for (std::string const& line : grid_lines(table))
    out << "#   " << line << "\n";
  if (all > most_phases)
    out << "#   and " << with_thousands(static_cast<std::int64_t>(all - most_phases)) << " more, which are smaller\n";
  out << "#   components: cells of one label that have faces in common; joining x: components that reach both faces in x, and "
         "their "
         "share of the phase\n";
}

/// "25 x 10 x 0.5, from (0, 0, 0) to (25, 10, 0.5)": a wrong unit of length shows here.
std::string extent_text(RunConfig const& config, assembly::MeshSummary const& mesh) {
  std::string lengths, low, high;
  for (std::size_t d = 0; d < 3; ++d) {
    double const rounding = 1e-14 * std::max(std::abs(mesh.low[d]), std::abs(mesh.high[d]));
    auto const number = [&](double x) { return number_text(std::abs(x) <= rounding ? 0 : x, 6); };
    lengths += (d > 0 ? " x " : "") + number(mesh.high[d] - mesh.low[d]);
    low += (d > 0 ? ", " : "") + number(mesh.low[d]);
    high += (d > 0 ? ", " : "") + number(mesh.high[d]);
  }
  bool const may_bulge = config.problem.mesh.file.empty() && config.problem.mesh.generator != "box";
  return lengths + ", from (" + low + ") to (" + high + ")" + (may_bulge ? ", of the vertices before refinement" : "");
}

/// The format, and what `auto` has compared.
void print_format(RunConfig const& config, FormatChoice const& choice, std::ostream& out) {
  out << "#   format         " << name_of(choice.format) << (config.matrix.format ? "" : " (auto)") << ", predicted for "
      << name_of(backend_of(config)) << " at a nominal bandwidth:\n";
  for (std::string const& line : grid_lines(table_of(choice)))
    out << "#   " << line << "\n";
}

/// Where the answer goes: nowhere with --quiet. Begins with warnings, and the resolved configuration where it is asked for.
std::ostream& begin(Configuration const& configuration, CheckOptions const& options) {
  for (std::string const& warning : configuration.warnings())
    std::cerr << "poisson: warning: " << warning << std::endl;
  static std::ostream nowhere(nullptr);
  std::ostream& out = options.quiet ? nowhere : std::cout;
  if (options.verbose)
    out << resolved_yaml(configuration.config()) << "\n";
  return out;
}

}  // namespace

int print_check(Configuration const& configuration, int ranks, CheckOptions const& options) {
  RunConfig const& config = configuration.config();
  load_libraries(config);
  CaseForecast const forecast = forecast_of_case(config, ranks);
  MemoryForecast const& memory = forecast.memory;
  assembly::MeshSummary const& mesh = forecast.mesh;
  char const* const about = mesh.exact_counts ? "" : "about ";

  std::ostream& out = begin(configuration, options);
  out << "# Estimates" << (ranks > 1 ? " for " + std::to_string(ranks) + " ranks" : "") << "\n";
  out << "#   extent         " << extent_text(config, mesh) << "\n";
  out << "#   cells          " << about << with_thousands(mesh.cells) << "\n";
  out << "#   vertices       " << about << with_thousands(mesh.vertices) << "\n";
  if (mesh.surface) {
    assembly::SurfaceFit const& fit = *mesh.surface;
    auto const compared = [](double of_surface, double of_voxels) {
      return number_text(of_surface, 5) + ", in voxels " + number_text(of_voxels, 5) + " (" + (of_voxels > of_surface ? "+" : "") +
             number_text(100 * (of_voxels / of_surface - 1), 3) + " %)";
    };
    out << "#   surface        volume " << compared(fit.volume, fit.voxels_volume) << "; area "
        << compared(fit.area, fit.voxels_area) << ", which are stairs where it is slanted\n";
  }
  if (mesh.quality)
    out << "#   scaled Jacobian " << number_text(mesh.quality->mean, 3) << " in the mean, " << number_text(mesh.quality->worst, 3)
        << " at worst, at (" << number_text(mesh.quality->at[0], 4) << ", " << number_text(mesh.quality->at[1], 4) << ", "
        << number_text(mesh.quality->at[2], 4) << "); 1: bricks\n";
  out << "#   unknowns       " << about << with_thousands(mesh.dofs) << "\n";
  out << "#   non-zeros      " << about << with_thousands(mesh.nnz) << " (before Dirichlet rows are emptied)\n";
  if (!memory.division.empty()) {
    char const* const about_rank = memory.is_exact ? "" : "about ";
    out << "#   " << memory.division << "\n# Of the rank with most of them\n"
        << "#   unknowns       " << about_rank << with_thousands(memory.rows);
    if (memory.ghosts > 0)
      out << ", and " << about_rank << with_thousands(memory.ghosts) << " that come from "
          << (memory.neighbors > 0 ? std::to_string(memory.neighbors) + " " : "") << "other rank"
          << (memory.neighbors == 1 ? "" : "s") << " in each product";
    out << "\n";
  }
  out << "#   host memory    about " << bytes_text(static_cast<double>(memory.host_peak().bytes)) << " at most, "
      << bytes_text(static_cast<double>(memory.program)) << " of them for the program\n"
      << "#     by stage     " << stages_text(memory.host) << "\n";
  out << "#   assembly       " << memory.plan.text() << "\n";
  print_format(config, memory.format, out);
  out << "#   preconditioner " << name_of(memory.preconditioner)
      << (config.solver.preconditioner == PreconditionerKind::automatic ? " (auto), predicted" : "") << "\n";
  if (config.effective.is_asked())
    out << "#   effective      " << (config.effective.conditions == EffectiveConditions::both ? 6 : 3) << " problems with "
        << (config.effective.conditions == EffectiveConditions::both ? "periodic and fixed" : name_of(config.effective.conditions))
        << " conditions; the solution that is shown is that along " << name_of(config.effective.direction) << "\n";
  if (auto const& parts = config.effective.sub_volumes; parts.is_asked())
    out << "#   sub-volumes    " << parts.count << " of " << parts.size[0] << " x " << parts.size[1] << " x " << parts.size[2]
        << " cells, with 3 problems each\n";
  if (backend_of(config) == Backend::cuda) {
    out << "#   device memory  about " << bytes_text(static_cast<double>(memory.device_peak())) << " at most\n"
        << "#     by stage     " << stages_text(memory.device) << "\n";
  } else
    out << "#   device memory  none: the backend is cpu\n";
  if (config.problem.mesh.image.is_given())
    print_phases(*assembly::labels_of_image(config.problem.mesh.image, config.problem.mesh.array), out);
  print_parts(config, forecast, out);
  if (!config.sweep.axes.empty())
    print_sweep(configuration, ranks, out);
  return 0;
}

}  // namespace poisson::app
