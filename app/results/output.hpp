#pragma once

#include "app/domain/domain.hpp"
#include "app/domain/solution_values.hpp"
#include "app/io/results_directory.hpp"
#include "app/launch/team.hpp"
#include "app/results/run_log.hpp"
#include "app/results/solution_fields.hpp"
#include "gpu/core/field.hpp"
#include "output/grid.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace poisson::app {

/// Solutions of other problems on the same mesh, at the unknowns of Domain::around, each with what its fields' names end in.
using OtherSolutions = std::vector<std::pair<std::string, Field>>;

/// A solution, from which outputs are made.
struct Solution {
  Domain const& mesh;
  Team& team;
  ResultRecord const& record;
  SolutionValues const& u;
  bool finite = false;                          ///< u is finite, on all ranks
  std::optional<std::array<double, 2>> ends{};  ///< the least and the largest u of the whole mesh, if they were computed
  /// On the first rank, at requested_points: null outside of the mesh. Empty if they were not evaluated.
  std::vector<assembly::PointValues const*> at_points{};
  OtherSolutions others{};                    ///< their u and flux are in the file for ParaView, too
  std::vector<int> level{};                   ///< by own cell; of adaptive refinement, and so is
  std::vector<double> estimator{};            ///< the estimated energy norm of the error
  std::optional<SolutionOutput> own_cells{};  ///< while outputs take fields; none on a rank without cells

  /// The nodes and cells of own_cells, and their fields; empty where there are none.
  [[nodiscard]] output::Mesh cells() const;
  [[nodiscard]] assembly::SolutionFields const& fields() const;
  /// The values at the points of a set; none if they were not evaluated.
  [[nodiscard]] std::span<assembly::PointValues const* const> at(PointSet const& set) const {
    return at_points.empty() ? std::span<assembly::PointValues const* const>()
                             : std::span(at_points).subspan(set.first, set.points.size());
  }
};

/// Sizes from which the memory for outputs follows.
struct OutputSizes {
  std::int64_t unknowns = 0, cells = 0;             ///< own ones of the rank that has most
  std::int64_t cells_of_all = 0, faces_of_all = 0;  ///< of the whole mesh; faces on its boundary
  std::int64_t fields = 0, largest_field = 0;       ///< bytes of the fields that every run has, and of the largest array
  assembly::MadeFields made{};
  int n_ranks = 1;  ///< set by Outputs

  /// Bytes of what the first rank makes: on several ranks it is there twice while it is gathered.
  [[nodiscard]] std::int64_t gathered(std::int64_t bytes) const { return n_ranks > 1 ? 2 * bytes : bytes; }
};

/// One kind of file that a run writes. Its functions are called in the order of their declaration.
class Output {
public:
  virtual ~Output() = default;

  /// All files that it may write, in the results directory; a '*' at the end of a name matches any text.
  [[nodiscard]] virtual std::vector<std::string> names() const = 0;
  /// Whether it is made from Solution::own_cells.
  [[nodiscard]] virtual bool takes_fields() const { return false; }
  /// Which of the fields that are made while they are written (assembly::MadeFields) it takes as arrays. With u: all of u in host
  /// memory, where it would else be read in pages.
  [[nodiscard]] virtual std::set<SolutionField> arrays() const { return {}; }
  /// Whether make() may run in a thread beside keep() of the others. It never does on several ranks.
  [[nodiscard]] virtual bool is_made_beside() const { return false; }
  /// Bytes on the host that it takes besides the fields, on the rank that needs most.
  [[nodiscard]] virtual std::int64_t bytes(OutputSizes const& /*sizes*/) const { return 0; }
  /// Points at which it takes the solution. Null: none.
  [[nodiscard]] virtual PointSet* points() { return nullptr; }
  /// Throws InputError if what it shows does not meet the mesh, whose extent this is.
  virtual void require_in_mesh(assembly::Extent const& /*extent*/) const {}

  /// Keeps what has to be there even if the run is interrupted now: the call is then repeated. Files that are too large to gather
  /// are written into `folder`. Errors of files are left for write(). Collective.
  virtual void keep(Solution const& /*solution*/, std::filesystem::path const& /*folder*/) {}
  /// Makes what is written, and gathers it on the first rank. Collective.
  virtual void make(Solution const& /*solution*/) {}
  /// Writes it, or lists what keep() has written. Called on the first rank.
  virtual void write(Solution const& solution, RunLog& log, ResultsDirectory& directory) = 0;
};

// Every kind of output is a class in a file of its name, and has a function here that makes it. The constructor of Outputs is the
// list of what a configuration asks for. The configuration outlives the outputs.
[[nodiscard]] std::unique_ptr<Output> make_cuts(RunConfig const& config);  ///< slices and contours (.vtp)
/// The solution for ParaView: one file, and a .pvd that names it. On several ranks each one writes its piece, and the first one the
/// file that names all of them; but all write one file of format hdf.
[[nodiscard]] std::unique_ptr<Output> make_solution_file(RunConfig const& config, int n_ranks);
/// Writes the solution on the mesh of a cycle of adaptive refinement (`keep_cycles`), and the file that names all of them.
void write_cycle(Solution& solution, RunConfig const& config, std::int64_t number, ResultsDirectory& directory);
/// solution.png, materials.png where there are several materials, and output.pictures.
[[nodiscard]] std::unique_ptr<Output> make_pictures(RunConfig const& config);
/// Tables and pictures of the solution at points: of an entry of output.lines, circles or planes.
[[nodiscard]] std::unique_ptr<Output> make_line(RunConfig const& config, std::size_t index);
[[nodiscard]] std::unique_ptr<Output> make_circle(RunConfig const& config, std::size_t index);
[[nodiscard]] std::unique_ptr<Output> make_plane(RunConfig const& config, std::size_t index);
[[nodiscard]] std::unique_ptr<Output> make_surface(RunConfig const& config);      ///< the boundary of the mesh (surface.vtp)
[[nodiscard]] std::unique_ptr<Output> make_sub_volumes(RunConfig const& config);  ///< those of analysis.effective: a table, a plot

/// The files of a solution that a configuration asks for: the one list of them.
class Outputs {
public:
  /// On so many ranks. `keeps_unknowns`: also the unknowns of the whole mesh. `config` must outlive this.
  Outputs(RunConfig const& config, int n_ranks, bool keeps_unknowns = false);

  /// All files that may be written, known before anything is computed.
  [[nodiscard]] std::vector<std::string> names() const;
  /// Bytes on the host that fields and outputs take at most, on the rank that needs most.
  [[nodiscard]] std::int64_t bytes(OutputSizes sizes) const;
  [[nodiscard]] PointSets const& point_sets() const { return point_sets_; }
  /// Throws InputError for an output that does not meet the mesh.
  void require_in_mesh(assembly::Extent const& extent) const;

  /// Makes all outputs, and writes the solution for ParaView into `folder`, also if that is interrupted. Collective. Throws
  /// InputError where `exact` is not finite, Interrupted.
  void make(Solution& solution, std::filesystem::path const& folder) const;
  /// Writes what was made. To be called by the first rank.
  void write(Solution const& solution, RunLog& log, ResultsDirectory& directory) const;

private:
  [[nodiscard]] bool take_fields() const;

  RunConfig const& config_;
  int n_ranks_;
  std::vector<std::unique_ptr<Output>> list_;  ///< in the order in which they are written
  PointSets point_sets_;
};

}  // namespace poisson::app
