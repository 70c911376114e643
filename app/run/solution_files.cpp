#include "app/run/solution_files.hpp"

#include "app/config/config.hpp"
#include "app/io/console.hpp"
#include "app/io/output_mesh.hpp"
#include "app/run/pictures.hpp"
#include "gpu/core/threads.hpp"
#include "output/files/atomic_file.hpp"
#include "output/picture/picture.hpp"
#include "output/vtk/level_set.hpp"
#include "output/vtk/vtk_files.hpp"

#include <algorithm>
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

void write_vtk(fs::path const& path, output::Mesh const& mesh, std::vector<output::Field> const& points,
               std::vector<output::Field> const& cells, RunConfig const& config, output::PiecePlace const* place = nullptr) {
  if (vtk_format(config) == output::VtkFormat::vtu)
    output::write_vtu(path, mesh, points, cells, config.output.vtk);
  else if (vtk_format(config) == output::VtkFormat::hdf)
    output::write_hdf(path, mesh, points, cells, config.output.vtk);
  else if (output::ImageGrid const* const image = mesh.image())
    output::write_vti(path, *image, points, cells, config.output.vtk, place);
  else
    output::write_vtr(path, *mesh.rectilinear(), points, cells, config.output.vtk, place);
}

/// Lagrange cells need equidistant nodes; all else takes those of the unknowns.
assembly::OutputNodes output_nodes(RunConfig const& config) {
  return config.output.vtk_enabled && vtk_format(config) != output::VtkFormat::image ? assembly::OutputNodes::equidistant
                                                                                     : assembly::OutputNodes::unknowns;
}

/// Those that the configuration asks for.
PieceFields fields_of(assembly::SolutionFields const& f, RunConfig const& config) {
  PieceFields result;
  auto const add = [&](std::vector<output::Field>& fields, SolutionField field, int components, std::span<double const> values,
                       std::span<int const> integers = {}) {
    if (config.output.writes(field) && !(values.empty() && integers.empty()))
      fields.push_back({std::string(name_of(field)), components, values, integers});
  };
  add(result.points, SolutionField::u, 1, f.u);
  add(result.points, SolutionField::exact, 1, f.exact);  // these two are empty without problem.exact
  add(result.points, SolutionField::error, 1, f.error);
  add(result.points, SolutionField::flux_points, 3, f.flux_points);  // empty where it is not asked for
  add(result.cells, SolutionField::material, 1, {}, f.material);
  add(result.cells, SolutionField::coefficient, f.coefficient_components, f.coefficient);
  add(result.cells, SolutionField::flux, 3, f.flux);
  return result;
}

/// Triangles with the values of the solution on them.
class CutFile {
public:
  CutFile(output::Mesh const& mesh, assembly::SolutionFields const& fields) : mesh_(mesh), fields_(fields) {}

  void add(output::LevelSet const& set) {
    auto const first = static_cast<std::int64_t>(points_.size() / 3);
    for (output::LevelSet::Point const& point : set.points) {
      auto const a = mesh_.point(point.first), b = mesh_.point(point.second);
      for (std::size_t d = 0; d < 3; ++d)
        points_.push_back(point.interpolate(a[d], b[d]));
      auto const value = [&](std::vector<double>& to, auto const& from) {
        if (!from.empty())
          to.push_back(
              point.interpolate(from[static_cast<std::size_t>(point.first)], from[static_cast<std::size_t>(point.second)]));
      };
      value(u_, fields_.u);
      value(exact_, fields_.exact);
      value(error_, fields_.error);
    }
    for (std::int64_t const point : set.triangles)
      triangles_.push_back(first + point);
    for (std::int64_t const cell : set.cells) {
      for (std::size_t d = 0; d < 3; ++d)
        flux_.push_back(fields_.flux[3 * static_cast<std::size_t>(cell) + d]);
      material_.push_back(fields_.material.empty() ? 0 : fields_.material[static_cast<std::size_t>(cell)]);
    }
  }
  [[nodiscard]] bool empty() const { return triangles_.empty(); }

  void write(std::string const& name, output::VtkOptions const& options, ResultsDirectory& directory) const {
    std::vector<output::Field> of_points{{"u", 1, u_, {}}};
    if (!exact_.empty())
      of_points.insert(of_points.end(), {{"exact", 1, exact_, {}}, {"error", 1, error_, {}}});
    directory.try_write(name, [&](fs::path const& path) {
      output::write_vtp(path, points_, triangles_, 3, of_points, {{"flux", 3, flux_, {}}, {"material", 1, {}, material_}}, options);
    });
  }

private:
  output::Mesh const& mesh_;
  assembly::SolutionFields const& fields_;
  std::vector<double> points_, u_, exact_, error_, flux_;
  std::vector<std::int64_t> triangles_;
  std::vector<int> material_;
};

/// Slices and contours. Returns what is empty.
std::vector<std::string> write_cuts(output::Mesh const& mesh, assembly::SolutionFields const& fields, RunConfig const& config,
                                    ResultsDirectory& directory) {
  std::vector<std::string> notes;
  for (SliceSpec const& slice : config.output.slices) {
    CutFile file(mesh, fields);
    file.add(output::level_set(
        mesh,
        [&](std::int64_t node) {
          auto const x = mesh.point(node);
          return slice.normal[0] * (x[0] - slice.origin[0]) + slice.normal[1] * (x[1] - slice.origin[1]) +
                 slice.normal[2] * (x[2] - slice.origin[2]);
        },
        0));
    if (file.empty())
      notes.push_back("the slice " + slice.name + " meets no cell");
    file.write("slice_" + slice.name + ".vtp", config.output.vtk, directory);
  }
  for (ContourSpec const& contour : config.output.contours) {
    CutFile file(mesh, fields);
    for (double const level : contour.values) {
      output::LevelSet const set = output::level_set(
          mesh, [&](std::int64_t node) { return fields.u[static_cast<std::size_t>(node)]; }, level);
      if (set.triangles.empty()) {
        auto const [low, high] = std::minmax_element(fields.u.begin(), fields.u.end());
        notes.push_back("contour " + contour.name + ": u is nowhere " + number_text(level, 6) + "; it is from " +
                        number_text(*low, 6) + " to " + number_text(*high, 6));
      }
      file.add(set);
    }
    file.write("contour_" + contour.name + ".vtp", config.output.vtk, directory);
  }
  return notes;
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
  return config.problem.order == 1 && !config.problem.mesh.is_graded() ? "solution.vti" : "solution.vtr";
}

bool pvd_may_name(std::string const& vtk_file) {
  return fs::path(vtk_file).extension() != ".hdf";
}

std::vector<std::string> write_solution_files(assembly::Discretization const& discretization, std::span<double const> u,
                                              RunConfig const& config, ResultRecord& record, ResultsDirectory& directory) {
  bool const cuts = !config.output.slices.empty() || !config.output.contours.empty();
  bool const draws = !picture_files(config).empty();
  std::vector<std::string> notes;
  if (!config.output.pictures.empty() && !output::pictures_built())
    notes.emplace_back("output.pictures: this build has no pictures; build with POISSON_PICTURES=ON and Cairo");
  if (!config.output.vtk_enabled && !cuts && !draws)
    return notes;
  auto const places = output_nodes(config);
  assembly::OutputMesh const nodes = discretization.output_mesh(places);
  assembly::SolutionFields const f = discretization.fields(u, places, config.output.writes(SolutionField::flux_points));
  output::Mesh const mesh = as_output(nodes);
  if (cuts && std::all_of(f.u.begin(), f.u.end(), [](double value) { return std::isfinite(value); }))
    for (std::string& note : write_cuts(mesh, f, config, directory))
      notes.push_back(std::move(note));
  auto const write_files = [&] {
    if (!config.output.vtk_enabled)
      return;
    auto const [points, cells] = fields_of(f, config);
    std::string const name = vtk_file_name(config);
    if (directory.try_write(
            name, [&, &points = points, &cells = cells](fs::path const& path) { write_vtk(path, mesh, points, cells, config); }) &&
        pvd_may_name(name))
      directory.try_write("solution.pvd", [&](fs::path const& path) { output::write_pvd(path, {{0.0, name}}); });
  };
  // Pictures are drawn while the files are written: neither keeps all threads busy.
  std::string const title = configuration_stem(record.configuration_file) + ": " + with_thousands(record.mesh.cells) +
                            " cells of order " + std::to_string(record.order) +
                            (record.status == SolverStatus::converged ? "" : ", " + std::string(name_of(record.status)));
  auto drawing = std::async(draws ? std::launch::async : std::launch::deferred, [&, threads = record.threads] {
    set_thread_count(threads);
    return draw_pictures(config, discretization, mesh, f, title);
  });
  write_files();
  if (!draws)
    return notes;
  for (DrawnPicture const& picture : drawing.get()) {
    bool const written = directory.try_write(picture.file, [&](fs::path const& path) {
      if (picture.error)
        std::rethrow_exception(picture.error);
      output::write_text_file(path, picture.png);
    });
    if (written)
      record.captions[picture.file] = picture.caption;
  }
  return notes;
}

PieceFields write_piece(assembly::Discretization const& part, std::span<double const> u, RunConfig const& config,
                        fs::path const& path, output::PiecePlace const& place) {
  auto const nodes = output_nodes(config);
  assembly::OutputMesh const mesh = part.output_mesh(nodes);
  assembly::SolutionFields const values = part.fields(u, nodes);
  PieceFields fields = fields_of(values, config);
  write_vtk(path, as_output(mesh), fields.points, fields.cells, config, &place);
  static int const integer = 0;
  for (auto* const list : {&fields.points, &fields.cells})
    for (output::Field& field : *list) {
      field.values = {};
      field.integers = field.integers.empty() ? std::span<int const>() : std::span<int const>(&integer, 1);
    }
  return fields;
}

void write_surface(assembly::Discretization const& discretization, std::span<double const> u, RunConfig const& config,
                   ResultsDirectory& directory) {
  assembly::BoundarySurface const s = discretization.surface(u);
  assembly::MeshSummary const& mesh = discretization.summary();
  auto const names_of = [](char const* what, std::set<unsigned> const& ids, assembly::IdNames const& names) {
    output::IdTable table{what, {}, {}};
    for (unsigned const id : ids) {
      auto const named = names.find(id);
      table.ids.push_back(static_cast<int>(id));
      table.names.push_back(named == names.end() ? std::to_string(id) : named->second);
    }
    return table;
  };
  directory.try_write("surface.vtp", [&](fs::path const& path) {
    output::write_vtp(path, s.points, s.quads, 4, {{"u", 1, s.u, {}}, {"flux", 3, s.flux, {}}},
                      {{"boundary", 1, {}, s.boundary}, {"material", 1, {}, s.material}, {"outward_flux", 1, s.outward_flux, {}}},
                      config.output.vtk,
                      {names_of("boundary", mesh.boundary_ids, mesh.boundary_names),
                       names_of("material", mesh.material_ids, mesh.material_names)});
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
