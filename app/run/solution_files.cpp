#include "app/run/solution_files.hpp"

#include "app/io/console.hpp"
#include "app/io/output_mesh.hpp"
#include "output/files/atomic_file.hpp"
#include "output/picture/picture.hpp"
#include "output/vtk/vtk_files.hpp"

#include <filesystem>
#include <sstream>
#include <string>
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

}  // namespace

void write_solution_files(assembly::Discretization const& discretization, std::span<double const> u, RunConfig const& config,
                          ResultRecord const& record, ResultsDirectory& directory) {
  if (!config.output.vtk_enabled && !(config.output.picture && output::pictures_built()))
    return;
  assembly::OutputMesh const nodes = discretization.output_mesh();
  assembly::SolutionFields const f = discretization.fields(u);
  output::Mesh const mesh = as_output(nodes);
  if (config.output.vtk_enabled) {
    std::vector<output::Field> points{{"u", 1, f.u, {}}};
    if (!f.exact.empty()) {
      points.push_back({"exact", 1, f.exact, {}});
      points.push_back({"error", 1, f.error, {}});
    }
    std::vector<output::Field> const cells{
        {"material", 1, {}, f.material}, {"coefficient", f.coefficient_components, f.coefficient, {}}, {"flux", 3, f.flux, {}}};
    if (directory.try_write("solution.vtu",
                            [&](fs::path const& path) { output::write_vtu(path, mesh, points, cells, config.output.vtk); }))
      directory.try_write("solution.pvd", [&](fs::path const& path) { output::write_pvd(path, {{0.0, "solution.vtu"}}); });
  }
  if (config.output.picture && output::pictures_built()) {
    output::PictureOptions options;
    options.title = fs::path(record.configuration_file).stem().string() + ": " + with_thousands(record.mesh.cells) +
                    " cells of order " + std::to_string(record.order) +
                    (record.status == SolverStatus::converged ? "" : ", " + std::string(name_of(record.status)));
    options.quantity = "u";
    directory.try_write("solution.png", [&](fs::path const& path) { output::write_picture(path, mesh, f.u, options); });
  }
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
