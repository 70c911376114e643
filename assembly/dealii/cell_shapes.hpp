#pragma once

#include "assembly/dealii/raw.hpp"

#include <cstdint>
#include <string>

/// The shapes of the cells of a mesh file. Internal to assembly/dealii.
namespace poisson::assembly {

/// What examine_shapes has found. Messages count the cells, and tell where a few of them are.
struct CellShapes {
  struct Bad {
    std::int64_t count = 0, line = 0;  ///< the line of the first
    std::string places;                ///< of a few
    void add(RawMesh const& mesh, RawMesh::Cell const& cell);
    /// "; its centre is at (0.5, 1, -2)"
    [[nodiscard]] std::string text() const;
  };
  Bad inverted, degenerate;
  std::int64_t turned = 0;  ///< cells that were numbered the other way round, and are right now
  CellQuality quality;
};

/// Examines the cells of a mesh, one at least, and turns those over that are numbered the other way round.
[[nodiscard]] CellShapes examine_shapes(RawMesh& mesh);

/// Throws InputError where cells are inverted or have no volume.
void require_good_shapes(std::string const& path, RawMesh const& mesh, CellShapes const& shapes);

}  // namespace poisson::assembly
