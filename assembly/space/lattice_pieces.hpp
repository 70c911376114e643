#pragma once

#include "assembly/mesh/lattice_topology.hpp"
#include "assembly/space/lattice_numbering.hpp"
#include "gpu/core/rank_rows.hpp"
#include "gpu/core/shared_lattices.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace poisson::assembly {

/// How often lattices are halved in every direction for so many ranks, so that METIS has room for balance.
[[nodiscard]] inline int depth_of_pieces(std::int64_t n_lattices, int refinements, int ranks) {
  constexpr std::int64_t fewest = 16;  // a rank
  int depth = 0;
  while (depth < refinements && n_lattices << (3 * depth) < fewest * ranks)
    ++depth;
  return depth;
}

/// A mesh of lattices that several ranks share: each lattice is cut into 2^depth pieces a side, which are the lattices of a finer
/// coarse mesh, and a rank has pieces. Unknowns have the numbers of the whole mesh; one belongs to the rank of the first piece that
/// has it.
struct LatticePieces {
  /// The cube of a lattice's cells that begins at `first`, in units of the piece's side.
  struct Piece {
    std::int32_t lattice;
    std::array<std::int64_t, 3> first;
  };
  using Index = std::array<std::int64_t, 3>;

  LatticePieces(LatticeNumbering numbering, int elements_order, int cut_depth, std::int64_t cells_of_piece,
                std::shared_ptr<LatticeTopology const> of_pieces, std::vector<Piece> at, std::vector<std::int32_t> ranks)
      : numbers(std::move(numbering)),
        order(elements_order),
        depth(cut_depth),
        n(cells_of_piece),
        m(elements_order * cells_of_piece + 1),
        topology(std::move(of_pieces)),
        places(std::move(at)),
        rank_of(std::move(ranks)),
        numbers_of_pieces_(places.size()) {
    for (std::size_t piece = 0; piece < places.size(); ++piece)
      numbers_of_pieces_[place_in_order(places[piece])] = static_cast<std::int32_t>(piece);
  }

  LatticeNumbering numbers;  ///< of the whole mesh
  int order;
  int depth;
  std::int64_t n, m;  ///< of a piece: cells and nodes a side
  std::shared_ptr<LatticeTopology const> topology;
  std::vector<Piece> places;
  std::vector<std::int32_t> rank_of;  ///< of pieces

  [[nodiscard]] std::int64_t cells_of_lattice() const { return n << depth; }  ///< a side
  /// Returns the indices in the lattice of node (i, j, k) of a piece.
  [[nodiscard]] Index in_lattice(std::int32_t piece, Index const& index) const {
    Index result{};
    for (std::size_t d = 0; d < 3; ++d)
      result[d] = places[static_cast<std::size_t>(piece)].first[d] * (m - 1) + index[d];
    return result;
  }
  /// The unknown of a node of a lattice.
  [[nodiscard]] std::int32_t unknown(std::int32_t lattice, Index const& index) const {
    return static_cast<std::int32_t>(numbers.unknown(lattice, index[0], index[1], index[2]));
  }
  /// The first copy of a node of a lattice in a piece.
  [[nodiscard]] LatticeTopology::Node first_copy(std::int32_t lattice, Index const& index) const {
    Piece piece{lattice, {}};
    Index rest{};
    for (std::size_t d = 0; d < 3; ++d) {
      piece.first[d] = std::min(index[d] / (m - 1), (std::int64_t{1} << depth) - 1);
      rest[d] = index[d] - piece.first[d] * (m - 1);
    }
    return topology->first_copy(numbers_of_pieces_[place_in_order(piece)], rest, m);
  }

  struct Cell {
    std::int32_t piece;
    Index index;  ///< in the piece
  };
  /// The cell with this number in the whole mesh, where cells of a lattice follow one another, x fastest.
  [[nodiscard]] Cell cell(std::int64_t number) const {
    std::int64_t const side = cells_of_lattice();
    Piece piece{static_cast<std::int32_t>(number / (side * side * side)), {}};
    Cell result{};
    for (std::size_t d = 0; d < 3; ++d, number /= side) {
      piece.first[d] = number % side / n;
      result.index[d] = number % side % n;
    }
    result.piece = numbers_of_pieces_[place_in_order(piece)];
    return result;
  }

  /// Returns the number of a cell in the whole mesh.
  [[nodiscard]] std::int64_t number_of(Cell const& cell) const {
    Piece const& at = places[static_cast<std::size_t>(cell.piece)];
    std::int64_t const side = cells_of_lattice();
    std::int64_t number = at.lattice;
    for (std::size_t d = 3; d-- > 0;)
      number = number * side + at.first[d] * n + cell.index[d];
    return number;
  }

private:
  [[nodiscard]] std::size_t place_in_order(Piece const& piece) const {
    std::int64_t place = piece.lattice;
    for (std::size_t d = 3; d-- > 0;)
      place = (place << depth) + piece.first[d];
    return static_cast<std::size_t>(place);
  }

  std::vector<std::int32_t> numbers_of_pieces_;  ///< by lattice, then lexicographically
};

/// What a rank has of pieces: its own ones as lattices of their own (gpu/core/shared_lattices.hpp), and the cells of others around
/// its rows. Unknowns have the numbers of a LatticeLayout: own ones, the rows, come first, and begin with the inner nodes of the
/// own pieces; then come ghosts. Cells are those of own pieces, piece by piece, x fastest, then others. All lists are of the size
/// of cuts between ranks.
struct OwnPieces {
  std::shared_ptr<LatticePieces const> pieces;
  int rank = 0;
  std::vector<std::int32_t> own;  ///< numbers of pieces, ascending
  std::int64_t n_rows = 0;
  std::vector<RankNeighbor> neighbors;         ///< of the ghosts
  std::vector<std::int32_t> ghosts;            ///< their numbers in the whole mesh; by their rank, ascending for each
  std::vector<std::int32_t> other_cells;       ///< around own rows, but in no own piece: numbers in the whole mesh, ascending
  std::vector<std::int32_t> ghosts_of_pieces;  ///< the unknowns of others that own pieces have, ascending

  [[nodiscard]] std::int64_t n_unknowns() const { return n_rows + static_cast<std::int64_t>(ghosts.size()); }
  [[nodiscard]] std::int64_t cells_of_piece() const { return pieces->n * pieces->n * pieces->n; }
  [[nodiscard]] std::int64_t n_own_cells() const { return static_cast<std::int64_t>(own.size()) * cells_of_piece(); }
  [[nodiscard]] std::int64_t n_cells() const { return n_own_cells() + static_cast<std::int64_t>(other_cells.size()); }

  /// The unknowns that own pieces have: the rows, then ghosts_of_pieces.
  [[nodiscard]] std::int64_t n_in_pieces() const { return n_rows + static_cast<std::int64_t>(ghosts_of_pieces.size()); }
  [[nodiscard]] std::int32_t in_pieces(std::int64_t i) const {
    return i < n_rows ? static_cast<std::int32_t>(i) : ghosts_of_pieces[static_cast<std::size_t>(i - n_rows)];
  }
  /// The number in the whole mesh of a cell; and of a row, a node of an own piece, own[node.lattice].
  [[nodiscard]] std::int64_t cell_of_whole(std::int64_t cell) const;
  [[nodiscard]] std::int32_t number_of(LatticeNode const& node) const;
  /// Tells of which lattices the own pieces are pieces.
  [[nodiscard]] LatticeCut cut() const;
};

}  // namespace poisson::assembly
