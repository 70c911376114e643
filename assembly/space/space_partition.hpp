#pragma once

#include "gpu/core/host_vector.hpp"
#include "gpu/core/rank_rows.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace poisson::assembly {

class Space;
struct OwnPieces;

/// What one rank of several has of a mesh that is not one of lattices. Every cell of the mesh and every unknown belongs to one
/// rank: a cell to that which has its first unknown. Numbers of cells and unknowns are those of the whole mesh, of 32 bits.
struct PartOfSpace {
  std::vector<std::int32_t> own_cells;     ///< of which every cell of the mesh has one owner
  std::vector<std::int32_t> around_cells;  ///< all cells with unknowns of this rank, own ones among them
  std::vector<std::int32_t> unknowns;      ///< of around_cells: n_rows own ones, ascending, then those of others, by their rank
  std::vector<std::int32_t> in_own_cells;  ///< places in `unknowns` of those of own cells
  std::int64_t n_rows = 0;
  std::vector<RankNeighbor> neighbors;  ///< whose ghosts are the unknowns from n_rows on
};

/// What one rank of several has of a mesh of lattices. A cell belongs to the rank of its piece.
struct ShareOfLattices {
  std::shared_ptr<OwnPieces const> pieces;
  std::shared_ptr<Space> around;  ///< the cells of own pieces and around own rows (Space); null where there are none
};

/// A mesh that METIS divides by the common faces of cells (divide, coarse_mesh.hpp); an unknown belongs to the rank with the first
/// of its cells. The first rank has cells; others may have none where there are few.
class DividedSpace {
public:
  /// `space` outlives it.
  DividedSpace(Space const& space, int ranks);
  /// Looks at all cells. Precondition: 0 <= rank < ranks.
  [[nodiscard]] PartOfSpace part(int rank) const;

private:
  Space const& space_;
  HostVector<std::int32_t> owner_;  ///< by unknown
};

/// Sorts a list, and leaves one of equal numbers. Long lists of numbers that lie close together go by a bit for each number.
void sort_and_merge(std::vector<std::int32_t>& list);

/// The places in an ascending list of some of its entries, ascending too.
[[nodiscard]] std::vector<std::int32_t> places_in(std::vector<std::int32_t> const& list, std::vector<std::int32_t> const& some);

/// Finds the place of a number in a list without repetition, in memory of the list's size.
class PlaceInList {
public:
  explicit PlaceInList(std::span<std::int32_t const> list);
  /// Precondition: the list has it.
  [[nodiscard]] std::int32_t operator()(std::int32_t number) const {
    std::size_t at = slot(number);
    while (list_[static_cast<std::size_t>(places_[at])] != number)
      at = (at + 1) & mask_;
    return places_[at];
  }

private:
  [[nodiscard]] std::size_t slot(std::int32_t number) const {
    return static_cast<std::size_t>((static_cast<std::uint64_t>(number) * 0x9E3779B97F4A7C15U) >> 32) & mask_;
  }
  std::span<std::int32_t const> list_;
  std::vector<std::int32_t> places_;  ///< open addressing; -1: free
  std::size_t mask_;
};

}  // namespace poisson::assembly
