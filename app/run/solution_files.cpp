#include "app/run/solution_files.hpp"

#include "app/config/config.hpp"
#include "app/io/console.hpp"
#include "app/io/output_mesh.hpp"
#include "app/run/cuts.hpp"
#include "app/run/pictures.hpp"
#include "gpu/core/threads.hpp"
#include "output/files/atomic_file.hpp"
#include "output/picture/picture.hpp"
#include "output/vtk/vtk_files.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <future>
#include <set>
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

/// The names of ids of the mesh.
output::IdTable names_of(char const* what, std::set<unsigned> const& ids, assembly::IdGroups const& groups) {
  output::IdTable table{what, {}, {}};
  for (unsigned const id : ids) {
    table.ids.push_back(static_cast<int>(id));
    table.names.push_back(groups.label(id));
  }
  return table;
}

void write_vtk(fs::path const& path, output::Mesh const& mesh, std::vector<output::Field> const& points,
               std::vector<output::Field> const& cells, RunConfig const& config, assembly::MeshSummary const& summary,
               output::PiecePlace const* place = nullptr) {
  std::vector<output::IdTable> names;
  if (!summary.material_groups.names().empty())
    names.push_back(names_of("material", summary.material_ids, summary.material_groups));
  if (vtk_format(config) == output::VtkFormat::vtu)
    output::write_vtu(path, mesh, points, cells, config.output.vtk, names);
  else if (vtk_format(config) == output::VtkFormat::hdf)
    output::write_hdf(path, mesh, points, cells, config.output.vtk);
  else if (output::ImageGrid const* const image = mesh.image())
    output::write_vti(path, *image, points, cells, config.output.vtk, place, names);
  else
    output::write_vtr(path, *mesh.rectilinear(), points, cells, config.output.vtk, place, names);
}

}  // namespace

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

std::vector<std::string> write_solution_files(assembly::Discretization const& discretization, std::span<double const> u,
                                              RunConfig const& config, ResultRecord& record, ResultsDirectory& directory) {
  bool const cuts = cuts_solution(config);
  bool const draws = !picture_files(config).empty();
  std::vector<std::string> notes;
  if (!config.output.pictures.empty() && !output::pictures_built())
    notes.emplace_back(no_pictures_note);
  if (!needs_fields(config))
    return notes;
  auto const [nodes, f] = solution_output(discretization, u, config);
  output::Mesh const mesh = as_output(nodes);
  if (cuts && std::all_of(f.u.begin(), f.u.end(), [](double value) { return std::isfinite(value); })) {
    auto const found = cut_solution(mesh, f, config);
    write_cuts(found, config, directory);
    notes.insert(notes.end(), found.notes.begin(), found.notes.end());
  }
  auto const write_files = [&, &fields = f] {
    if (!config.output.vtk_enabled)
      return;
    auto const [points, cells] = solution_fields(fields, config);
    std::string const name = vtk_file_name(config);
    if (directory.try_write(name,
                            [&, &points = points, &cells = cells](fs::path const& path) {
                              write_vtk(path, mesh, points, cells, config, discretization.summary());
                            }) &&
        pvd_may_name(name))
      directory.try_write("solution.pvd", [&](fs::path const& path) { output::write_pvd(path, {{0.0, name}}); });
  };
  // Pictures are drawn while the files are written: neither keeps all threads busy.
  std::string const title = picture_title(record);
  PictureMesh const of_mesh{discretization.summary(), discretization.extent()};
  auto drawing = std::async(draws ? std::launch::async | std::launch::deferred : std::launch::deferred,
                            [&, &fields = f, threads = record.threads] {
                              set_thread_count_or_one(threads);
                              return draw_pictures(config, of_mesh, mesh, fields, title);
                            });
  write_files();
  if (draws)
    write_drawn(drawing.get(), record, directory);
  return notes;
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

PieceFields write_piece(SolutionOutput const& part, RunConfig const& config, fs::path const& path,
                        assembly::MeshSummary const& whole, output::PiecePlace const& place) {
  PieceFields fields = solution_fields(part.fields, config);
  write_vtk(path, as_output(part.nodes), fields.points, fields.cells, config, whole, &place);
  static int const integer = 0;
  for (auto* const list : {&fields.points, &fields.cells})
    for (output::Field& field : *list) {
      field.values = {};
      field.integers = field.integers.empty() ? std::span<int const>() : std::span<int const>(&integer, 1);
    }
  return fields;
}

void write_surface(assembly::BoundarySurface const& s, assembly::MeshSummary const& mesh, RunConfig const& config,
                   ResultsDirectory& directory) {
  constexpr std::array<char const*, 6> sides{"-x", "+x", "-y", "+y", "-z", "+z"};
  output::IdTable boundaries = names_of("boundary", mesh.boundary_ids, mesh.boundary_groups);
  for (std::size_t i = 0; i < boundaries.ids.size(); ++i)
    if (auto const id = static_cast<std::size_t>(boundaries.ids[i]);
        config.is_box() && id < sides.size() && boundaries.names[i] == std::to_string(id))
      boundaries.names[i] = sides[id];
  directory.try_write("surface.vtp", [&](fs::path const& path) {
    output::write_vtp(path, s.points, s.quads, 4, {{config.output.name, 1, s.u, {}}, {"flux", 3, s.flux, {}}},
                      {{"boundary", 1, {}, s.boundary}, {"material", 1, {}, s.material}, {"outward_flux", 1, s.outward_flux, {}}},
                      config.output.vtk, {boundaries, names_of("material", mesh.material_ids, mesh.material_groups)});
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
