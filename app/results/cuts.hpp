#pragma once

#include "app/config/run_config.hpp"
#include "app/domain/domain.hpp"
#include "app/io/results_directory.hpp"
#include "app/launch/team.hpp"
#include "assembly/system/fields.hpp"
#include "output/grid.hpp"
#include "output/vtk/vtk_options.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace poisson::app {

/// Triangles with the values of the solution on them.
struct CutTriangles {
  struct Point {
    std::array<std::int64_t, 2> between{};  ///< nodes, in the whole mesh
    std::array<double, 3> x{};
    double u = 0, exact = 0, error = 0;
  };
  struct Triangle {
    std::array<std::int64_t, 3> points{};
    std::int64_t cell = 0;  ///< in the whole mesh
    std::array<double, 3> flux{};
    int material = 0;
  };
  std::vector<Point> points;
  std::vector<Triangle> triangles;
};

/// The slices and contours of a configuration.
struct Cuts {
  struct File {
    std::string name;
    CutTriangles triangles;
  };
  bool has_exact = false;
  std::vector<File> files;
  std::vector<std::string> notes;  ///< on what is empty
};

/// The part of a mesh that a rank has.
struct RankPart {
  Domain const& mesh;
  Team& team;
};

/// Cuts the mesh. Precondition: u is finite. `mesh` and `fields` are those of own cells (no nodes where there are none), and the
/// first rank gets all triangles, in an order that does not depend on the parts; the others get none. Collective.
[[nodiscard]] Cuts cut_solution(output::Mesh const& mesh, assembly::SolutionFields const& fields, RunConfig const& config,
                                RankPart const& part);

/// Writes the files (.vtp). `mesh` is the whole one.
void write_cuts(Cuts const& cuts, RunConfig const& config, assembly::MeshSummary const& mesh, ResultsDirectory& directory);

}  // namespace poisson::app
