#pragma once

#include "app/domain/domain.hpp"
#include "app/io/results_directory.hpp"
#include "app/launch/team.hpp"
#include "app/results/cuts.hpp"
#include "app/results/pictures.hpp"
#include "app/results/result_record.hpp"
#include "app/results/solution_fields.hpp"
#include "output/vtk/vtk_files.hpp"

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace poisson::app {

/// The files of a solution: for ParaView, pictures, slices, contours and the surface, as far as the configuration asks for them. A
/// rank that has the whole mesh writes one file for ParaView. Of several each one writes its piece, and the first one the file that
/// names all of them; or the first one writes one file (hdf). The rest is gathered on the first rank.
class SolutionFiles {
public:
  /// `u_around` and `u`: of the unknowns of mesh.around and mesh.own. All arguments outlive this. Collective.
  SolutionFiles(RunConfig const& config, Domain const& mesh, Team& team, std::span<double const> u_around,
                std::span<double const> u);

  /// Writes the solution for ParaView into `folder`, also when that is interrupted, and makes all else. What goes wrong with files
  /// is kept for write(). `finite`: u is so, on all ranks. Collective. Throws InputError where `exact` is not finite, Interrupted.
  void make(std::filesystem::path const& folder, ResultRecord const& record, assembly::Extent const& extent, bool finite);

  /// Lists what is written, and writes what was made but the surface; captions of pictures go to the record. Returns notes on
  /// contours and slices that are empty. To be called by the first rank.
  [[nodiscard]] std::vector<std::string> write(ResultRecord& record, ResultsDirectory& directory) const;
  /// Writes surface.vtp, if it was made.
  void write_surface(ResultsDirectory& directory) const;

private:
  void make_fields();
  void write_vtk_files(std::filesystem::path const& folder);
  [[nodiscard]] std::vector<DrawnPicture> draw(ResultRecord const& record, assembly::Extent const& extent,
                                               output::Mesh const& mesh) const;
  [[nodiscard]] bool is_one_file() const;  ///< in place of pieces
  [[nodiscard]] std::string name(int rank) const;
  [[nodiscard]] output::PiecePlace place(int rank) const;
  [[nodiscard]] output::PiecesOfMesh pieces() const;
  [[nodiscard]] assembly::BoundarySurface gathered_surface() const;
  [[nodiscard]] HostVector<double> flux_at_own_nodes() const;
  void list_vtk_files(ResultsDirectory& directory) const;

  RunConfig const& config_;
  Domain const& mesh_;
  Team& team_;
  std::span<double const> u_around_, u_;
  std::vector<int> writers_;              ///< the ranks that have cells
  std::optional<SolutionOutput> output_;  ///< of own cells
  PieceFields fields_;                    ///< without their values
  std::string failure_;
  Cuts cuts_;
  std::vector<DrawnPicture> pictures_;
  std::optional<assembly::BoundarySurface> surface_;
};

}  // namespace poisson::app
