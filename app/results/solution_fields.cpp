#include "app/results/solution_fields.hpp"

#include "app/config/config.hpp"
#include "app/io/console.hpp"
#include "app/results/output.hpp"
#include "app/results/problem_words.hpp"
#include "assembly/image/image_file.hpp"
#include "gpu/core/row_map.hpp"
#include "gpu/kernels/cpu/lapack.hpp"
#include "output/files/atomic_file.hpp"
#include "output/picture/picture.hpp"
#include "output/vtk/vtk_files.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <functional>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace poisson::app {

namespace fs = std::filesystem;

namespace {

std::string residuals_csv(std::vector<double> const& history) {
  std::ostringstream out;
  out.exceptions(std::ios::badbit);  // a stream would leave out what it has no memory for, without a word
  out.imbue(std::locale::classic());
  out.precision(17);
  out << "iteration,relative_residual\n";
  for (std::size_t i = 0; i < history.size(); ++i)
    out << i << "," << history[i] << "\n";
  return out.str();
}

/// The names of ids of the mesh, as the arrays WHAT_ids and WHAT_names.
void add_names(std::vector<output::WholeArray>& arrays, std::string const& what, std::set<unsigned> const& ids,
               std::function<std::string(unsigned)> const& name_of_id) {
  std::vector<int> numbers;
  std::vector<std::string> names;
  for (unsigned const id : ids) {
    numbers.push_back(static_cast<int>(id));
    names.push_back(name_of_id(id));
  }
  arrays.push_back({what + "_ids", std::move(numbers)});
  arrays.push_back({what + "_names", std::move(names)});
}

/// An array of one value for every key that a sweep's case has, by its path.
std::vector<output::WholeArray> arrays_of_case(RunConfig const& config) {
  std::vector<output::WholeArray> arrays;
  for (SweepAxis const& axis : config.sweep.axes) {
    if (!axis.of_case)
      continue;
    std::string const& text = *axis.of_case;
    double number = 0;
    auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    constexpr std::string_view of_parameters = "parameters.";
    auto const parameter = axis.path.starts_with(of_parameters) ? config.parameters.find(axis.path.substr(of_parameters.size()))
                                                                : config.parameters.end();
    if (parameter != config.parameters.end())
      arrays.push_back({axis.path, std::vector<double>{parameter->second}});
    else if (error == std::errc() && end == text.data() + text.size())
      arrays.push_back({axis.path, std::vector<double>{number}});
    else
      arrays.push_back({axis.path, std::vector<std::string>{text}});
  }
  return arrays;
}

/// The mean over all cells around a node: the rank of its row has them.
HostVector<double> flux_at_own_nodes(Solution const& solution, RunConfig const& config) {
  Domain const& mesh = solution.mesh;
  HostVector<double> around, result;
  solution.team.together([&] {
    if (mesh.around)
      around = mesh.around->flux_at_nodes(solution.u.of_around(), output_nodes(config));
    result.resize(3 * mesh.n_in_own());
  });
  std::vector<std::array<double, 3>> rows(static_cast<std::size_t>(mesh.n_rows));
  for (std::size_t i = 0; i < mesh.places.size(); ++i)
    if (mesh.places[i] < mesh.n_rows)
      std::copy_n(&around[3 * i], 3, rows[static_cast<std::size_t>(mesh.places[i])].begin());
  auto const ghosts = values_of_ghosts<std::array<double, 3>>(solution.team.communicator(), mesh.neighbors, rows);
  rows.insert(rows.end(), ghosts.begin(), ghosts.end());
  for (std::size_t i = 0; i < mesh.n_in_own(); ++i) {
    auto const place = mesh.places[static_cast<std::size_t>(mesh.in_own(static_cast<std::int64_t>(i)))];
    std::copy_n(rows[static_cast<std::size_t>(place)].begin(), 3, &result[3 * i]);
  }
  return result;
}

}  // namespace

std::vector<output::WholeArray> whole_arrays(RunConfig const& config, assembly::MeshSummary const& mesh) {
  std::vector<output::WholeArray> arrays;
  add_names(arrays, "material", mesh.material_ids, [&](unsigned id) { return mesh.material_groups.label(id); });
  add_names(arrays, "boundary", mesh.boundary_ids, [&](unsigned id) {
    std::string const label = mesh.boundary_groups.label(id);
    std::string const side = side_of_box(label, config);
    return side.empty() ? label : side;
  });
  auto const of_case = arrays_of_case(config);
  arrays.insert(arrays.end(), of_case.begin(), of_case.end());
  return arrays;
}

output::VtkFormat vtk_format(RunConfig const& config) {
  return config.output.vtk_format.value_or(config.is_box() ? output::VtkFormat::image : output::VtkFormat::vtu);
}

std::string vtk_file_name(RunConfig const& config) {
  switch (vtk_format(config)) {
  case output::VtkFormat::vtu:
    return "solution.vtu";
  case output::VtkFormat::hdf:
    return "solution.hdf";
  case output::VtkFormat::image:
    break;
  }
  return config.problem.order == 1 && !config.problem.mesh.is_graded() ? "solution.vti" : "solution.vtr";
}

bool pvd_may_name(std::string const& vtk_file) {
  return fs::path(vtk_file).extension() != ".hdf";
}

assembly::OutputNodes output_nodes(RunConfig const& config) {
  return config.output.vtk_enabled && vtk_format(config) != output::VtkFormat::image ? assembly::OutputNodes::equidistant
                                                                                     : assembly::OutputNodes::unknowns;
}

std::optional<SolutionOutput> solution_output(Solution const& solution, RunConfig const& config) {
  bool const with_flux = config.output.writes(SolutionField::flux_points);
  HostVector<double> flux;
  if (with_flux && !solution.mesh.is_whole())
    flux = flux_at_own_nodes(solution, config);
  std::optional<SolutionOutput> result;
  solution.team.together([&] {
    if (!solution.mesh.own)
      return;
    auto const places = output_nodes(config);
    assembly::Discretization const& own = *solution.mesh.own;
    result = {own.output_mesh(places),
              own.fields_of(solution.u.of_own_cells(), places, {with_flux, config.output.writes(SolutionField::gradient), true})};
    if (!flux.empty())
      result->fields.flux_points = std::move(flux);
    for (auto const& [name, u] : solution.others) {
      std::span<double const> values = u.host();
      if (!solution.mesh.is_whole())
        values = result->values_of_others.emplace_back(solution.mesh.of_own_cells(values));
      result->of_others.push_back(own.fields(values, places, {false, false, true}));
    }
  });
  return result;
}

bool lists_nodes(RunConfig const& config) {
  return !config.is_box() || (output_nodes(config) == assembly::OutputNodes::equidistant &&
                              (config.problem.order > 1 || config.problem.mesh.is_graded()));
}

void load_libraries(RunConfig const& config) {
  bool const has_mesh = !config.system;
  if (has_mesh)
    assembly::prepare_for(config.problem.mesh.image);
  if (output::pictures_built() && (config.output.picture || (has_mesh && !config.output.pictures.empty())))
    output::load_pictures();
  if (has_mesh && config.output.vtk_enabled && vtk_format(config) == output::VtkFormat::hdf)
    output::load_vtk();
  if (has_mesh && !config.analysis.empty())
    static_cast<void>(lapack());
}

std::vector<std::string> residual_files(OutputSpec const& output) {
  std::vector<std::string> names{"residuals.csv"};
  if (output.picture && output::pictures_built())
    for (std::string const& ending : output.picture_endings())
      names.push_back("residuals" + ending);
  return names;
}

void write_residuals(ResultRecord const& record, ResultsDirectory& directory) {
  directory.try_write("residuals.csv",
                      [&](fs::path const& path) { output::write_text_file(path, residuals_csv(record.result.history)); });
}

void plot_residuals(ResultRecord const& record, OutputSpec const& output, ResultsDirectory& directory) {
  auto const& history = record.result.history;
  if (!output.picture || !output::pictures_built())
    return;
  output::Curve curve{std::string(name_of(record.solver.method)), {}, history};
  for (std::size_t i = 0; i < history.size(); ++i)
    curve.x.push_back(static_cast<double>(i));
  output::PlotOptions options;
  options.title = "Relative residual";
  options.x_label = "iteration";
  options.y_label = "||r|| / ||b||";
  options.reference_y = record.solver.tolerance;
  for (std::string const& ending : output.picture_endings())
    directory.try_write("residuals" + ending, [&](fs::path const& path) { output::write_plot(path, {curve}, options); });
}

}  // namespace poisson::app
