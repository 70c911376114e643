#include "app/results/output.hpp"

#include "gpu/core/communicator.hpp"
#include "gpu/core/error.hpp"
#include "output/vtk/vtk_files.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <system_error>
#include <type_traits>
#include <utility>

namespace poisson::app {

namespace fs = std::filesystem;

namespace {

/// The fields of a file or a piece: those that the configuration asks for. The solution outlives the result.
struct PieceFields {
  std::vector<output::Field> points, cells;
};
PieceFields solution_fields(Solution const& solution, RunConfig const& config) {
  assembly::SolutionFields const& f = solution.fields();
  PieceFields result;
  auto const add = [&]<class T>(std::vector<output::Field>& fields, SolutionField field, int components,
                                assembly::FieldValues<T> const& values, std::string const& end = "") {
    if (!config.output.writes(field) || values.empty())
      return;
    output::Field& to = fields.emplace_back();
    to.name = (field == SolutionField::u ? config.output.name : std::string(name_of(field))) + end;
    to.components = components;
    if (values.fill())
      to.n_made = static_cast<std::int64_t>(values.size());
    if constexpr (std::is_same_v<T, int>) {
      to.make_integers = values.fill();
      if (!values.fill())
        to.integers = values;
    } else {
      to.make_values = values.fill();
      if (!values.fill())
        to.values = values;
    }
  };
  add(result.points, SolutionField::u, 1, f.u);
  add(result.points, SolutionField::exact, 1, f.exact);  // these two are empty without problem.exact
  add(result.points, SolutionField::error, 1, f.error);
  add(result.points, SolutionField::flux_points, 3, f.flux_points);  // empty where it is not asked for
  add(result.cells, SolutionField::material, 1, f.material);
  add(result.cells, SolutionField::coefficient, f.coefficient_components, f.coefficient);
  add(result.cells, SolutionField::flux, 3, f.flux);
  add(result.cells, SolutionField::gradient, 3, f.gradient);
  if (config.output.writes(SolutionField::level) && !solution.level.empty()) {
    output::Field& level = result.cells.emplace_back();
    level.name = name_of(SolutionField::level);
    level.integers = solution.level;
  }
  if (config.output.writes(SolutionField::estimator) && !solution.estimator.empty()) {
    output::Field& estimator = result.cells.emplace_back();
    estimator.name = name_of(SolutionField::estimator);
    estimator.values = solution.estimator;
  }
  for (std::size_t i = 0; i < solution.own_cells->of_others.size(); ++i) {
    assembly::SolutionFields const& other = solution.own_cells->of_others[i];
    std::string const end = "_" + solution.others[i].first;
    add(result.points, SolutionField::u, 1, other.u, end);
    add(result.cells, SolutionField::flux, 3, other.flux, end);
  }
  return result;
}

/// Writes fields on a mesh to `path`, in the format of the configuration; with a place, on a part as a piece of the mesh that
/// `summary` tells of (not hdf). Throws EnvironmentError.
void write_vtk(fs::path const& path, output::Mesh const& mesh, PieceFields const& fields, RunConfig const& config,
               assembly::MeshSummary const& summary, output::PiecePlace const* place = nullptr) {
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

class SolutionFile final : public Output {
public:
  SolutionFile(RunConfig const& config, int n_ranks)
      : config_(config), name_(vtk_file_name(config)), in_pieces_(n_ranks > 1 && vtk_format(config) != output::VtkFormat::hdf) {}

  [[nodiscard]] std::vector<std::string> names() const override {
    std::vector<std::string> names{name_};
    if (pvd_may_name(name_))
      names.emplace_back("solution.pvd");
    if (config_.adaptive.keep_cycles)
      names.insert(names.end(), {"cycle_*", "cycles.pvd"});
    if (in_pieces_)  // the file that names the pieces, and these
      names.insert(names.end(), {"solution.pvti", "solution.pvtr", "solution.pvtu", "solution_*"});
    return names;
  }

  [[nodiscard]] bool takes_fields() const override { return true; }
  [[nodiscard]] std::int64_t bytes(OutputSizes const& sizes) const override {
    return output::writer_bytes(vtk_format(config_), config_.output.vtk.compression, sizes.largest_field);
  }

  void keep(Solution const& solution, fs::path const& folder) override {
    Team& team = solution.team;
    auto const have_cells = gather(team.communicator(), static_cast<std::int32_t>(solution.mesh.own ? 1 : 0));
    writers_.clear();
    for (int rank = 0; rank < team.size(); ++rank)
      if (have_cells[static_cast<std::size_t>(rank)] != 0)
        writers_.push_back(rank);
    PieceFields fields;
    std::optional<output::Mesh> mesh;
    team.together([&] {
      if (!solution.own_cells)
        return;
      fields = solution_fields(solution, config_);
      mesh = solution.cells();
    });
    auto const attempt = [&](auto const& write) {
      try {
        write();
      } catch (EnvironmentError const& error) {
        failure_ = error.what();
      }
    };
    assembly::MeshSummary const& whole = solution.mesh.whole;
    // Some of the pieces are no solution; and nobody would know them as ours, as they are not listed.
    auto const remove_piece = [&] {
      std::error_code ignored;
      fs::remove(folder / name_of_piece(team.rank()), ignored);
    };
    auto const write_piece = [&] {
      if (!mesh)
        return;
      output::PiecePlace const at = place(solution.mesh, team.rank());
      attempt([&] { write_vtk(folder / name_of_piece(team.rank()), *mesh, fields, config_, whole, &at); });
      // The file that names the pieces tells whether values are integers.
      static int const integer = 0;
      for (auto* const list : {&fields.points, &fields.cells})
        for (output::Field& field : *list) {
          output::Field without_values{field.name, field.components, {}, {}};
          if (field.has_integers())
            without_values.integers = std::span<int const>(&integer, 1);
          field = std::move(without_values);
        }
      fields_ = std::move(fields);
    };
    if (in_pieces_)
      try {
        team.together(write_piece);
      } catch (...) {
        remove_piece();
        throw;
      }
    else if (!solution.mesh.is_whole() && vtk_format(config_) == output::VtkFormat::hdf)
      attempt([&] {
        output::write_hdf_on_ranks(folder / name_, team.communicator(), mesh ? &*mesh : nullptr, fields.points, fields.cells,
                                   config_.output.vtk, whole_arrays(config_, whole));
      });
    else
      attempt([&] { write_vtk(folder / name_, *mesh, fields, config_, whole); });
    failure_ = first_message(team.communicator(), failure_);
    if (in_pieces_ && !failure_.empty())
      remove_piece();
  }

  void write(Solution const& solution, RunLog&, ResultsDirectory& directory) override {
    // The files are there already: they are listed, or the failure.
    auto const list = [&](std::string const& file) {
      return directory.try_write(file, [&](fs::path const& path) {
        if (!failure_.empty() || !fs::exists(path))
          throw EnvironmentError(failure_.empty() ? path.string() + " was written and is not there" : failure_);
      });
    };
    std::string whole = name_;
    if (!in_pieces_) {
      if (!list(whole) || !pvd_may_name(whole))
        return;
    } else {
      for (int const rank : writers_)
        if (!list(name_of_piece(rank)))
          return;
      output::PiecesOfMesh const mesh = pieces(solution.mesh);
      whole = "solution" + output::extension_of(mesh.kind);
      if (!directory.try_write(whole, [&](fs::path const& path) {
            output::write_pieces(path, mesh, fields_.points, fields_.cells, config_.output.vtk);
          }))
        return;
    }
    directory.try_write("solution.pvd", [&](fs::path const& path) { output::write_pvd(path, {{0.0, whole}}); });
  }

private:
  [[nodiscard]] std::string name_of_piece(int rank) const {
    return "solution_" + std::to_string(rank) + fs::path(name_).extension().string();
  }

  [[nodiscard]] output::PiecePlace place(Domain const& mesh, int rank) const {
    output::PiecePlace result{{}, config_.problem.mesh.origin};
    if (mesh.box)
      for (std::size_t d = 0; d < 3; ++d)
        result.first[d] = config_.problem.order * mesh.box->cells(rank).first[d];
    return result;
  }

  [[nodiscard]] output::PiecesOfMesh pieces(Domain const& mesh) const {
    using Kind = output::PiecesOfMesh::Kind;
    assembly::MeshSpec const& spec = config_.problem.mesh;
    output::PiecesOfMesh result;
    result.kind = vtk_format(config_) != output::VtkFormat::image   ? Kind::unstructured
                  : config_.problem.order == 1 && !spec.is_graded() ? Kind::image
                                                                    : Kind::rectilinear;
    std::array<std::int64_t, 3> const cells = spec.refined_cells();
    result.low = spec.origin;
    for (std::size_t d = 0; d < 3; ++d) {
      result.n[d] = config_.problem.order * cells[d] + 1;
      result.spacing[d] = spec.extent[d] / static_cast<double>(cells[d]);
    }
    for (int const rank : writers_) {
      output::PiecesOfMesh::Piece piece{name_of_piece(rank), place(mesh, rank).first, {}};
      if (mesh.box)
        for (std::size_t d = 0; d < 3; ++d)
          piece.n[d] = config_.problem.order * mesh.box->cells(rank).cells[d] + 1;
      result.pieces.push_back(piece);
    }
    return result;
  }

  RunConfig const& config_;
  std::string name_;
  bool in_pieces_;
  std::vector<int> writers_;  ///< the ranks that have cells
  PieceFields fields_;        ///< without their values
  std::string failure_;
};

}  // namespace

void write_cycle(Solution& solution, RunConfig const& config, std::int64_t number, ResultsDirectory& directory) {
  if (!config.output.vtk_enabled)
    return;
  std::string const extension = fs::path(vtk_file_name(config)).extension().string();
  auto const name = [&](std::int64_t cycle) { return "cycle_" + std::to_string(cycle) + extension; };
  solution.own_cells = solution_output(solution, config);
  PieceFields const fields = solution_fields(solution, config);
  bool const written = directory.try_write(
      name(number), [&](fs::path const& path) { write_vtk(path, solution.cells(), fields, config, solution.mesh.whole); });
  solution.own_cells.reset();
  if (!written || !pvd_may_name(name(number)))
    return;
  std::vector<output::PvdEntry> all;
  for (std::int64_t cycle = 1; cycle <= number; ++cycle)
    all.push_back({static_cast<double>(cycle), name(cycle)});
  directory.try_write("cycles.pvd", [&](fs::path const& path) { output::write_pvd(path, all); });
}

std::unique_ptr<Output> make_solution_file(RunConfig const& config, int n_ranks) {
  return std::make_unique<SolutionFile>(config, n_ranks);
}

}  // namespace poisson::app
