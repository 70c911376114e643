#include "app/results/solution_files.hpp"

#include "app/io/output_mesh.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"
#include "gpu/core/row_map.hpp"
#include "gpu/core/threads.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <future>
#include <utility>
#include <vector>

namespace poisson::app {

namespace fs = std::filesystem;

std::string SolutionFiles::name(int rank) const {
  return "solution_" + std::to_string(rank) + fs::path(vtk_file_name(config_)).extension().string();
}

output::PiecePlace SolutionFiles::place(int rank) const {
  output::PiecePlace result{{}, config_.problem.mesh.origin};
  if (mesh_.box)
    for (std::size_t d = 0; d < 3; ++d)
      result.first[d] = config_.problem.order * mesh_.box->cells(rank).first[d];
  return result;
}

output::PiecesOfMesh SolutionFiles::pieces() const {
  using Kind = output::PiecesOfMesh::Kind;
  assembly::MeshSpec const& spec = config_.problem.mesh;
  output::PiecesOfMesh mesh;
  mesh.kind = vtk_format(config_) != output::VtkFormat::image   ? Kind::unstructured
              : config_.problem.order == 1 && !spec.is_graded() ? Kind::image
                                                                : Kind::rectilinear;
  std::array<std::int64_t, 3> const cells = spec.refined_cells();
  mesh.low = spec.origin;
  for (std::size_t d = 0; d < 3; ++d) {
    mesh.n[d] = config_.problem.order * cells[d] + 1;
    mesh.spacing[d] = spec.extent[d] / static_cast<double>(cells[d]);
  }
  for (int const rank : writers_) {
    output::PiecesOfMesh::Piece piece{name(rank), place(rank).first, {}};
    if (mesh_.box)
      for (std::size_t d = 0; d < 3; ++d)
        piece.n[d] = config_.problem.order * mesh_.box->cells(rank).cells[d] + 1;
    mesh.pieces.push_back(piece);
  }
  return mesh;
}

bool SolutionFiles::is_one_file() const {
  return mesh_.is_whole() || vtk_format(config_) == output::VtkFormat::hdf;
}

SolutionFiles::SolutionFiles(RunConfig const& config, Domain const& mesh, Team& team, std::span<double const> u_around,
                             std::span<double const> u)
    : config_(config), mesh_(mesh), team_(team), u_around_(u_around), u_(u) {
  auto const have_cells = gather(team.communicator(), static_cast<std::int32_t>(mesh.own ? 1 : 0));
  for (int rank = 0; rank < team.size(); ++rank)
    if (have_cells[static_cast<std::size_t>(rank)] != 0)
      writers_.push_back(rank);
}

void SolutionFiles::make_fields() {
  HostVector<double> const flux =
      !mesh_.is_whole() && config_.output.writes(SolutionField::flux_points) ? flux_at_own_nodes() : HostVector<double>();
  team_.together([&] {
    if (!mesh_.own || !needs_fields(config_))
      return;
    output_ = solution_output(*mesh_.own, u_, config_);
    if (!flux.empty())
      output_->fields.flux_points = flux;
  });
}

void SolutionFiles::write_vtk_files(fs::path const& folder) {
  PieceFields fields;
  std::optional<output::Mesh> mesh;
  team_.together([&] {
    if (!output_)
      return;
    fields = solution_fields(output_->fields, config_);
    mesh.emplace(as_output(output_->nodes));
  });
  auto const attempt = [&](auto const& write) {
    try {
      write();
    } catch (EnvironmentError const& error) {
      failure_ = error.what();
    }
  };
  if (mesh_.is_whole())
    attempt([&] { write_vtk(folder / vtk_file_name(config_), *mesh, fields, config_, mesh_.whole); });
  else if (is_one_file())
    attempt([&] {
      output::write_hdf_on_ranks(folder / vtk_file_name(config_), team_.communicator(), mesh ? &*mesh : nullptr, fields.points,
                                 fields.cells, config_.output.vtk, whole_arrays(config_, mesh_.whole));
    });
  else
    team_.together([&] {
      if (!mesh)
        return;
      output::PiecePlace const at = place(team_.rank());
      attempt([&] { write_vtk(folder / name(team_.rank()), *mesh, fields, config_, mesh_.whole, &at); });
      // The file that names the pieces tells whether values are integers.
      static int const integer = 0;
      for (auto* const list : {&fields.points, &fields.cells})
        for (output::Field& field : *list) {
          field.values = {};
          field.integers = field.integers.empty() ? std::span<int const>() : std::span<int const>(&integer, 1);
        }
      fields_ = std::move(fields);
    });
}

/// The mean over all cells around a node: the rank of its row has them.
HostVector<double> SolutionFiles::flux_at_own_nodes() const {
  HostVector<double> around, result;
  team_.together([&] {
    if (mesh_.around)
      around = mesh_.around->flux_at_nodes(u_around_, output_nodes(config_));
    result.resize(3 * mesh_.in_own.size());
  });
  std::vector<std::array<double, 3>> rows(static_cast<std::size_t>(mesh_.n_rows));
  for (std::size_t i = 0; i < mesh_.places.size(); ++i)
    if (mesh_.places[i] < mesh_.n_rows)
      std::copy_n(&around[3 * i], 3, rows[static_cast<std::size_t>(mesh_.places[i])].begin());
  auto const ghosts = values_of_ghosts<std::array<double, 3>>(team_.communicator(), mesh_.neighbors, rows);
  rows.insert(rows.end(), ghosts.begin(), ghosts.end());
  for (std::size_t i = 0; i < mesh_.in_own.size(); ++i) {
    auto const place = mesh_.places[static_cast<std::size_t>(mesh_.in_own[i])];
    std::copy_n(rows[static_cast<std::size_t>(place)].begin(), 3, &result[3 * i]);
  }
  return result;
}

std::vector<DrawnPicture> SolutionFiles::draw(ResultRecord const& record, assembly::Extent const& extent,
                                              output::Mesh const& mesh) const {
  if (picture_files(config_).empty())
    return {};
  assembly::SolutionFields const nothing;
  assembly::SolutionFields const& fields = output_ ? output_->fields : nothing;
  PictureMesh const of_mesh{mesh_.whole, extent};
  if (mesh_.is_whole())
    return draw_pictures(config_, of_mesh, mesh, fields, picture_title(record));
  std::vector<output::BoundaryFace> faces;
  team_.together([&] {
    if (mesh_.own)
      for (assembly::CellFace const& face : mesh_.own->boundary_faces())
        faces.push_back({face.cell, face.face});
  });
  output::PicturePart const part{team_.communicator(), faces, [&](std::int64_t node) { return mesh_.unknown_of_whole(node); }};
  return draw_pictures(config_, of_mesh, mesh, fields, picture_title(record), &part);
}

void SolutionFiles::make(fs::path const& folder, ResultRecord const& record, assembly::Extent const& extent, bool finite) {
  bool interrupted = false;
  auto const whatever_happens = [&](auto const& body) {  // the solution is there: it is written first
    for (bool done = false; !done;)
      try {
        body();
        done = true;
      } catch (Interrupted const&) {
        clear_interrupt();
        interrupted = true;
      }
  };
  whatever_happens([&] { make_fields(); });
  output::Mesh const mesh = output_ ? as_output(output_->nodes) : output::Mesh(output::Grid{config_.problem.order, {}, {}});
  // Pictures are drawn while a file is written: neither keeps all threads busy. Of several ranks only one thread sends messages.
  bool const beside = mesh_.is_whole() && output_ && !picture_files(config_).empty();
  auto drawing = std::async(beside ? std::launch::async | std::launch::deferred : std::launch::deferred, [&] {
    if (beside)
      set_thread_count_or_one(record.threads);
    return draw(record, extent, mesh);
  });
  if (config_.output.vtk_enabled)
    whatever_happens([&] { write_vtk_files(folder); });
  failure_ = first_message(team_.communicator(), failure_);
  if (interrupted)
    throw Interrupted();
  if (finite && cuts_solution(config_)) {
    assembly::SolutionFields const nothing;
    cuts_ = cut_solution(mesh, output_ ? output_->fields : nothing, config_, {mesh_, team_});
  }
  pictures_ = drawing.get();
  output_.reset();
  if (finite && config_.output.surface)
    surface_ = gathered_surface();
}

/// Nodes that several ranks have are one; its flux is the mean over the faces around it, of all ranks.
assembly::BoundarySurface SolutionFiles::gathered_surface() const {
  if (mesh_.is_whole())
    return mesh_.own->surface(u_);
  assembly::BoundarySurface mine;
  team_.together([&] {
    if (!mesh_.own)
      return;
    mine = mesh_.own->surface(u_);
    for (std::int64_t& unknown : mine.unknowns)
      unknown = mesh_.unknown_of_whole(unknown);
  });
  Communicator& ranks = team_.communicator();
  auto const points = gather_on_first(ranks, mine.points), u = gather_on_first(ranks, mine.u),
             flux = gather_on_first(ranks, mine.flux), outward = gather_on_first(ranks, mine.outward_flux);
  auto const unknowns = gather_on_first(ranks, mine.unknowns), quads = gather_on_first(ranks, mine.quads);
  auto const around = gather_on_first(ranks, mine.faces_around), boundary = gather_on_first(ranks, mine.boundary),
             material = gather_on_first(ranks, mine.material);
  assembly::BoundarySurface all;
  for (auto const& list : unknowns)
    all.unknowns.insert(all.unknowns.end(), list.begin(), list.end());
  std::sort(all.unknowns.begin(), all.unknowns.end());
  all.unknowns.erase(std::unique(all.unknowns.begin(), all.unknowns.end()), all.unknowns.end());
  std::size_t const n = all.unknowns.size();
  all.points.resize(3 * n);
  all.u.resize(n);
  all.flux.resize(3 * n);
  all.faces_around.resize(n);
  for (std::size_t rank = 0; rank < unknowns.size(); ++rank) {
    auto const place = [&](std::int64_t node) {
      return std::lower_bound(all.unknowns.begin(), all.unknowns.end(), unknowns[rank][static_cast<std::size_t>(node)]) -
             all.unknowns.begin();
    };
    for (std::size_t i = 0; i < unknowns[rank].size(); ++i) {
      auto const at = static_cast<std::size_t>(place(static_cast<std::int64_t>(i)));
      all.u[at] = u[rank][i];
      all.faces_around[at] += around[rank][i];
      for (std::size_t d = 0; d < 3; ++d) {
        all.points[3 * at + d] = points[rank][3 * i + d];
        all.flux[3 * at + d] += around[rank][i] * flux[rank][3 * i + d];
      }
    }
    for (std::int64_t const node : quads[rank])
      all.quads.push_back(place(node));
    all.boundary.insert(all.boundary.end(), boundary[rank].begin(), boundary[rank].end());
    all.material.insert(all.material.end(), material[rank].begin(), material[rank].end());
    all.outward_flux.insert(all.outward_flux.end(), outward[rank].begin(), outward[rank].end());
  }
  for (std::size_t i = 0; i < all.flux.size(); ++i)
    all.flux[i] /= all.faces_around[i / 3];
  return all;
}

void SolutionFiles::list_vtk_files(ResultsDirectory& directory) const {
  // They are written already: they are listed, or the failure.
  auto const list = [&](std::string const& file) {
    return directory.try_write(file, [&](fs::path const& path) {
      if (!failure_.empty() || !fs::exists(path))
        throw EnvironmentError(failure_.empty() ? path.string() + " was written and is not there" : failure_);
    });
  };
  std::string whole = vtk_file_name(config_);
  if (is_one_file()) {
    if (!list(whole) || !pvd_may_name(whole))
      return;
  } else {
    for (int const rank : writers_)
      if (!list(name(rank)))
        return;
    output::PiecesOfMesh const mesh = pieces();
    whole = "solution" + output::extension_of(mesh.kind);
    if (!directory.try_write(whole, [&](fs::path const& path) {
          output::write_pieces(path, mesh, fields_.points, fields_.cells, config_.output.vtk);
        }))
      return;
  }
  directory.try_write("solution.pvd", [&](fs::path const& path) { output::write_pvd(path, {{0.0, whole}}); });
}

std::vector<std::string> SolutionFiles::write(ResultRecord& record, ResultsDirectory& directory) const {
  std::vector<std::string> notes;
  if (!config_.output.pictures.empty() && !output::pictures_built())
    notes.emplace_back(no_pictures_note);
  notes.insert(notes.end(), cuts_.notes.begin(), cuts_.notes.end());
  write_cuts(cuts_, config_, mesh_.whole, directory);
  if (config_.output.vtk_enabled)
    list_vtk_files(directory);
  write_drawn(pictures_, record, directory);
  return notes;
}

void SolutionFiles::write_surface(ResultsDirectory& directory) const {
  if (surface_)
    app::write_surface(*surface_, mesh_.whole, config_, directory);
}

}  // namespace poisson::app
