#include "app/run/solution_files.hpp"

#include "app/config/config.hpp"
#include "app/io/console.hpp"
#include "app/io/output_mesh.hpp"
#include "gpu/core/threads.hpp"
#include "output/files/atomic_file.hpp"
#include "output/picture/picture.hpp"
#include "output/vtk/vtk_files.hpp"

#include <algorithm>
#include <filesystem>
#include <future>
#include <sstream>
#include <string>
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

void write_vtk(fs::path const& path, output::Mesh const& mesh, std::vector<output::Field> const& points,
               std::vector<output::Field> const& cells, RunConfig const& config) {
  if (vtk_format(config) == output::VtkFormat::vtu)
    output::write_vtu(path, mesh, points, cells, config.output.vtk);
  else if (vtk_format(config) == output::VtkFormat::hdf)
    output::write_hdf(path, mesh, points, cells, config.output.vtk);
  else if (output::ImageGrid const* const image = mesh.image())
    output::write_vti(path, *image, points, cells, config.output.vtk);
  else
    output::write_vtr(path, *mesh.rectilinear(), points, cells, config.output.vtk);
}

}  // namespace

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
  return config.problem.order == 1 ? "solution.vti" : "solution.vtr";
}

bool pvd_may_name(std::string const& vtk_file) {
  return fs::path(vtk_file).extension() != ".hdf";
}

void write_solution_files(assembly::Discretization const& discretization, std::span<double const> u, RunConfig const& config,
                          ResultRecord const& record, ResultsDirectory& directory) {
  if (!config.output.vtk_enabled && !(config.output.picture && output::pictures_built()))
    return;
  // Lagrange cells need equidistant nodes; all else takes those of the unknowns.
  auto const places = config.output.vtk_enabled && vtk_format(config) != output::VtkFormat::image
                          ? assembly::OutputNodes::equidistant
                          : assembly::OutputNodes::unknowns;
  assembly::OutputMesh const nodes = discretization.output_mesh(places);
  assembly::SolutionFields const f = discretization.fields(u, places);
  output::Mesh const mesh = as_output(nodes);
  auto const write_files = [&] {
    std::vector<output::Field> points, cells;
    auto const add = [&](std::vector<output::Field>& fields, SolutionField field, int components, std::span<double const> values,
                         std::span<int const> integers = {}) {
      auto const& chosen = config.output.vtk_fields;
      if (std::find(chosen.begin(), chosen.end(), field) != chosen.end() && !(values.empty() && integers.empty()))
        fields.push_back({std::string(name_of(field)), components, values, integers});
    };
    add(points, SolutionField::u, 1, f.u);
    add(points, SolutionField::exact, 1, f.exact);  // these two are empty without problem.exact
    add(points, SolutionField::error, 1, f.error);
    add(cells, SolutionField::material, 1, {}, f.material);
    add(cells, SolutionField::coefficient, f.coefficient_components, f.coefficient);
    add(cells, SolutionField::flux, 3, f.flux);
    std::string const name = vtk_file_name(config);
    if (directory.try_write(name, [&](fs::path const& path) { write_vtk(path, mesh, points, cells, config); }) &&
        pvd_may_name(name))
      directory.try_write("solution.pvd", [&](fs::path const& path) { output::write_pvd(path, {{0.0, name}}); });
  };
  if (!config.output.picture || !output::pictures_built()) {
    write_files();
    return;
  }
  output::PictureOptions options;
  options.title = configuration_stem(record.configuration_file) + ": " + with_thousands(record.mesh.cells) + " cells of order " +
                  std::to_string(record.order) +
                  (record.status == SolverStatus::converged ? "" : ", " + std::string(name_of(record.status)));
  options.quantity = "u";
  // The picture is drawn while the files are written: neither keeps all threads busy.
  bool written = !config.output.vtk_enabled;
  directory.try_write("solution.png", [&](fs::path const& path) {
    auto drawing = std::async([&] {
      set_thread_count(record.threads);
      output::write_picture(path, mesh, f.u, options);
    });
    if (!std::exchange(written, true))
      write_files();
    drawing.get();
  });
  if (!written)
    write_files();
}

void write_surface(assembly::Discretization const& discretization, std::span<double const> u, RunConfig const& config,
                   ResultsDirectory& directory) {
  assembly::BoundarySurface const s = discretization.surface(u);
  directory.try_write("surface.vtp", [&](fs::path const& path) {
    output::write_vtp(path, s.points, s.quads, {{"u", 1, s.u, {}}, {"flux", 3, s.flux, {}}},
                      {{"boundary", 1, {}, s.boundary}, {"material", 1, {}, s.material}, {"outward_flux", 1, s.outward_flux, {}}},
                      config.output.vtk);
  });
}

void write_residual_files(ResultRecord const& record, bool picture, ResultsDirectory& directory) {
  auto const& history = record.result.history;
  directory.try_write("residuals.csv", [&](fs::path const& path) { output::write_text_file(path, residuals_csv(history)); });
  if (!picture || !output::pictures_built())
    return;
  output::Curve curve{std::string(name_of(record.solver.method)), {}, history};
  for (std::size_t i = 0; i < history.size(); ++i)
    curve.x.push_back(static_cast<double>(i));
  output::PlotOptions options;
  options.title = "Relative residual";
  options.x_label = "iteration";
  options.y_label = "||r|| / ||b||";
  options.reference_y = record.solver.tolerance;
  directory.try_write("residuals.png", [&](fs::path const& path) { output::write_plot(path, {curve}, options); });
}

}  // namespace poisson::app
