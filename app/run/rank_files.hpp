#pragma once

#include "app/io/results_directory.hpp"
#include "app/run/cuts.hpp"
#include "app/run/pictures.hpp"
#include "app/run/rank_mesh.hpp"
#include "app/run/rank_team.hpp"
#include "app/run/result_record.hpp"
#include "app/run/solution_files.hpp"
#include "output/vtk/vtk_files.hpp"

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace poisson::app {

/// The files of the solution on several ranks. Each one writes its piece, and the first one the file that names all of them; or the
/// first one writes one file (hdf). It also writes what is gathered from the parts: slices, contours, the surface and pictures.
/// Functions but write_files are collective.
class RankFiles {
public:
  /// `writers`: the ranks that have cells. `u_around` and `u`: of the unknowns of mesh.around and mesh.own. All arguments outlive
  /// this.
  RankFiles(RankMesh const& mesh, RankTeam& team, std::vector<int> writers, RunConfig const& config,
            std::span<double const> u_around, std::span<double const> u)
      : mesh_(mesh), team_(team), writers_(std::move(writers)), config_(config), u_around_(u_around), u_(u) {}

  /// Writes the piece of this rank, or the one file of all, into `folder`, also when that is interrupted. Returns whether it was.
  /// What went wrong with files is kept for write_files. Throws InputError where `exact` is not finite.
  [[nodiscard]] bool write_piece(std::filesystem::path const& folder);

  /// Makes all else. `finite`: u is so, on all ranks. Throws as Discretization::surface.
  void gather(ResultRecord const& record, assembly::Extent const& extent, bool finite);

  /// Lists the pieces, and writes what was gathered; captions of pictures go to the record. Returns notes on contours and slices
  /// that are empty. To be called by the first rank.
  [[nodiscard]] std::vector<std::string> write_files(ResultRecord& record, ResultsDirectory& directory) const;

private:
  [[nodiscard]] bool is_one_file() const;  ///< in place of pieces
  void write_one_file(std::filesystem::path const& path);
  [[nodiscard]] std::string name(int rank) const;
  [[nodiscard]] output::PiecePlace place(int rank) const;
  [[nodiscard]] output::PiecesOfMesh pieces() const;
  [[nodiscard]] assembly::BoundarySurface gathered_surface() const;
  [[nodiscard]] HostVector<double> flux_at_own_nodes() const;
  void list_pieces(ResultsDirectory& directory) const;

  RankMesh const& mesh_;
  RankTeam& team_;
  std::vector<int> writers_;
  RunConfig const& config_;
  std::span<double const> u_around_, u_;
  std::optional<SolutionOutput> output_;  ///< of own cells
  PieceFields fields_;
  std::string failure_;
  Cuts cuts_;
  std::vector<DrawnPicture> pictures_;
  std::optional<assembly::BoundarySurface> surface_;
};

}  // namespace poisson::app
