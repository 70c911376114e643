#pragma once

#include "app/io/results_directory.hpp"
#include "app/run/rank_mesh.hpp"
#include "app/run/rank_team.hpp"
#include "app/run/solution_files.hpp"
#include "output/vtk/vtk_files.hpp"

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace poisson::app {

/// The files of the solution on several ranks: each one writes its piece, and the first one the file that names all of them.
class SolutionPieces {
public:
  /// `writers`: the ranks that have cells. Mesh and configuration outlive this.
  SolutionPieces(RankMesh const& mesh, std::vector<int> writers, RunConfig const& config)
      : mesh_(mesh), writers_(std::move(writers)), config_(config) {}

  /// Writes the piece of this rank into `folder`, also when that is interrupted. Collective. Returns whether it was interrupted.
  /// What went wrong with files is kept for list_in. Throws InputError where `exact` is not finite.
  [[nodiscard]] bool write(RankTeam& team, std::span<double const> u, std::filesystem::path const& folder);

  /// Lists the pieces among the files of the run, and writes the file that names them. To be called by the first rank.
  void list_in(ResultsDirectory& directory) const;

private:
  [[nodiscard]] std::string name(int rank) const;
  [[nodiscard]] output::PiecePlace place(int rank) const;
  [[nodiscard]] output::PiecesOfMesh pieces() const;

  RankMesh const& mesh_;
  std::vector<int> writers_;
  RunConfig const& config_;
  PieceFields fields_;
  std::string failure_;
};

}  // namespace poisson::app
