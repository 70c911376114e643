#include "app/run/rank_files.hpp"

#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"

#include <array>
#include <cstdint>

namespace poisson::app {

namespace fs = std::filesystem;

std::string SolutionPieces::name(int rank) const {
  return "solution_" + std::to_string(rank) + fs::path(vtk_file_name(config_)).extension().string();
}

output::PiecePlace SolutionPieces::place(int rank) const {
  output::PiecePlace result{{}, config_.problem.mesh.origin};
  if (mesh_.box)
    for (std::size_t d = 0; d < 3; ++d)
      result.first[d] = config_.problem.order * mesh_.box->cells(rank).first[d];
  return result;
}

output::PiecesOfMesh SolutionPieces::pieces() const {
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

bool SolutionPieces::write(RankTeam& team, std::span<double const> u, fs::path const& folder) {
  bool interrupted = false;
  for (bool done = false; !done;)
    try {
      team.together([&] {
        if (mesh_.own)
          try {
            fields_ = write_piece(*mesh_.own, u, config_, folder / name(team.rank()), place(team.rank()));
          } catch (EnvironmentError const& error) {
            failure_ = error.what();
          }
      });
      done = true;
    } catch (Interrupted const&) {  // the solution is there: it is written first
      clear_interrupt();
      interrupted = true;
    }
  failure_ = first_message(&team.communicator(), failure_);
  return interrupted;
}

void SolutionPieces::list_in(ResultsDirectory& directory) const {
  // Written already: they are listed, or the failure.
  for (int const rank : writers_)
    if (!directory.try_write(name(rank), [&](fs::path const& path) {
          if (!failure_.empty() || !fs::exists(path))
            throw EnvironmentError(failure_.empty() ? path.string() + " was written and is not there" : failure_);
        }))
      return;
  output::PiecesOfMesh const mesh = pieces();
  std::string const whole = "solution" + output::extension_of(mesh.kind);
  if (directory.try_write(whole, [&](fs::path const& path) {
        output::write_pieces(path, mesh, fields_.points, fields_.cells, config_.output.vtk);
      }))
    directory.try_write("solution.pvd", [&](fs::path const& path) { output::write_pvd(path, {{0.0, whole}}); });
}

}  // namespace poisson::app
