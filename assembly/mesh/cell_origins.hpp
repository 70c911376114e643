#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace poisson::assembly {

/// Where the cells of a mesh come from in the mesh of the refinement cycle before (LocalRefinement). Cells are numbered as
/// deal.II's active cells there.
struct CellOrigins {
  /// What the cell was: `child` 0 to 7 is that child of the cell (x fastest), `same` is the cell itself, and `merged` are the 8
  /// children in an entry of CellOrigins::merged.
  struct Origin {
    std::int32_t cell = -1;  ///< or the number of the entry
    std::int8_t child = 0;
  };
  static constexpr std::int8_t same = 8, merged_children = 9;
  std::vector<Origin> of_cell;                        ///< empty before the first cycle
  std::vector<std::array<std::int32_t, 8>> merged{};  ///< x fastest
};

}  // namespace poisson::assembly
