#include "app/results/solution_fields.hpp"

#include "app/config/config.hpp"
#include "app/io/console.hpp"
#include "app/io/output_mesh.hpp"
#include "app/results/pictures.hpp"
#include "app/results/problem_words.hpp"
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

}  // namespace

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

PieceFields solution_fields(assembly::SolutionFields const& f, RunConfig const& config) {
  PieceFields result;
  auto const add = [&](std::vector<output::Field>& fields, SolutionField field, int components, std::span<double const> values,
                       std::span<int const> integers = {}) {
    if (config.output.writes(field) && !(values.empty() && integers.empty()))
      fields.push_back(
          {field == SolutionField::u ? config.output.name : std::string(name_of(field)), components, values, integers});
  };
  add(result.points, SolutionField::u, 1, f.u);
  add(result.points, SolutionField::exact, 1, f.exact);  // these two are empty without problem.exact
  add(result.points, SolutionField::error, 1, f.error);
  add(result.points, SolutionField::flux_points, 3, f.flux_points);  // empty where it is not asked for
  add(result.cells, SolutionField::material, 1, {}, f.material);
  add(result.cells, SolutionField::coefficient, f.coefficient_components, f.coefficient);
  add(result.cells, SolutionField::flux, 3, f.flux);
  add(result.cells, SolutionField::gradient, 3, f.gradient);
  return result;
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

bool cuts_solution(RunConfig const& config) {
  return !config.output.slices.empty() || !config.output.contours.empty();
}

bool needs_fields(RunConfig const& config) {
  return config.output.vtk_enabled || cuts_solution(config) || !picture_files(config).empty();
}

std::string picture_title(ResultRecord const& record) {
  return (record.title.empty() ? configuration_stem(record.configuration_file) : record.title) + ": " +
         with_thousands(record.mesh.cells) + " cells of order " + std::to_string(record.order) +
         (record.status == SolverStatus::converged ? "" : ", " + std::string(name_of(record.status)));
}

void write_drawn(std::vector<DrawnPicture> const& pictures, ResultRecord& record, ResultsDirectory& directory) {
  for (DrawnPicture const& picture : pictures) {
    bool const written = directory.try_write(picture.file, [&](fs::path const& path) {
      if (picture.error)
        std::rethrow_exception(picture.error);
      output::write_text_file(path, picture.png);
    });
    if (written)
      record.captions[picture.file] = picture.caption;
    for (auto const& [file, bytes] : picture.more)
      directory.try_write(file, [&, &text = bytes](fs::path const& path) { output::write_text_file(path, text); });
  }
}

assembly::OutputNodes output_nodes(RunConfig const& config) {
  return config.output.vtk_enabled && vtk_format(config) != output::VtkFormat::image ? assembly::OutputNodes::equidistant
                                                                                     : assembly::OutputNodes::unknowns;
}

SolutionOutput solution_output(assembly::Discretization const& discretization, std::span<double const> u, RunConfig const& config) {
  auto const places = output_nodes(config);
  return {discretization.output_mesh(places),
          discretization.fields(u, places,
                                {config.output.writes(SolutionField::flux_points), config.output.writes(SolutionField::gradient)})};
}

void write_vtk(fs::path const& path, output::Mesh const& mesh, PieceFields const& fields, RunConfig const& config,
               assembly::MeshSummary const& summary, output::PiecePlace const* place) {
  auto const& [points, cells] = fields;
  auto const of_all = whole_arrays(config, summary);
  if (vtk_format(config) == output::VtkFormat::vtu)
    output::write_vtu(path, mesh, points, cells, config.output.vtk, of_all);
  else if (vtk_format(config) == output::VtkFormat::hdf)
    output::write_hdf(path, mesh, points, cells, config.output.vtk, of_all);
  else if (output::ImageGrid const* const image = mesh.image())
    output::write_vti(path, *image, points, cells, config.output.vtk, place, of_all);
  else
    output::write_vtr(path, *mesh.rectilinear(), points, cells, config.output.vtk, place, of_all);
}

void write_surface(assembly::BoundarySurface const& s, assembly::MeshSummary const& mesh, RunConfig const& config,
                   ResultsDirectory& directory) {
  directory.try_write("surface.vtp", [&](fs::path const& path) {
    output::write_vtp(path, s.points, s.quads, 4, {{config.output.name, 1, s.u, {}}, {"flux", 3, s.flux, {}}},
                      {{"boundary", 1, {}, s.boundary}, {"material", 1, {}, s.material}, {"outward_flux", 1, s.outward_flux, {}}},
                      config.output.vtk, whole_arrays(config, mesh));
  });
}

void write_residual_files(ResultRecord const& record, OutputSpec const& output, ResultsDirectory& directory) {
  auto const& history = record.result.history;
  directory.try_write("residuals.csv", [&](fs::path const& path) { output::write_text_file(path, residuals_csv(history)); });
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
