#pragma once

#include "assembly/mesh/counts.hpp"
#include "assembly/space/mesh_cells.hpp"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace poisson::assembly {

/// Which cells of a mesh are taken out. Each cell has the number of the surface that it leaves, from 1 on; 0: it stays.
struct VoidCells {
  std::vector<std::uint16_t> surface;
  std::vector<std::string> names;  ///< of surfaces
  unsigned first_id = 0;           ///< of the surfaces: surface 1 has it

  static constexpr std::uint16_t stays = 0, left_out = 65535;  ///< left_out: no face of another part is that of such a cell

  [[nodiscard]] std::uint16_t& of(std::int64_t cell) { return surface[static_cast<std::size_t>(cell)]; }
  [[nodiscard]] std::uint16_t of(std::int64_t cell) const { return surface[static_cast<std::size_t>(cell)]; }
  [[nodiscard]] std::uint16_t number(std::string const& name) {
    auto const at = std::find(names.begin(), names.end(), name);
    auto const result = static_cast<std::uint16_t>(at - names.begin() + 1);
    if (at == names.end())
      names.push_back(name);
    return result;
  }
};

/// Finds the cells that are void (MeshSpec::has_void), and with them parts of what is left that no condition fixes. `names`: those
/// of the mesh, which gets notes and what is told of such parts; `of_expressions`: those of the expressions of regions. Errors:
/// InputError where a region or a material takes nothing, or nothing is left; EnvironmentError where memory is short.
[[nodiscard]] VoidCells find_void_cells(MeshNames& names, MeshCells const& cells, MeshSpec const& spec,
                                        ExpressionNames const& of_expressions);

/// Names the surfaces of what is void, and forgets the groups that hold nothing any more. Precondition: `names` has the ids of what
/// is left. `materials`: of all cells; `exposed`: surfaces inside of the mesh that are on the boundary now; `inside`: those that
/// are not.
void name_what_is_left(MeshNames& names, VoidCells const& found, std::set<unsigned> const& materials,
                       std::set<unsigned> const& exposed, std::set<unsigned> const& inside);

}  // namespace poisson::assembly
