#include "assembly/dealii/lattice_share.hpp"

#include "assembly/dealii/mesh.hpp"
#include "assembly/mesh/coarse_mesh.hpp"
#include "assembly/mesh/lattice_mesh.hpp"
#include "assembly/parallel.hpp"
#include "assembly/space/lattice_numbering.hpp"
#include "assembly/space/lattice_pieces.hpp"
#include "assembly/space/nested_spaces.hpp"
#include "assembly/space/reference_element.hpp"
#include "assembly/space/space.hpp"

#include <algorithm>
#include <array>
#include <deal.II/grid/cell_id.h>
#include <deal.II/grid/tria_accessor.h>
#include <deal.II/grid/tria_iterator.h>
#include <limits>
#include <numeric>
#include <tuple>

namespace poisson::assembly {
namespace {

/// Bytes of nodes that are made at once; nodes and cells of a thread.
constexpr std::int64_t bytes_at_once = 16 << 20, nodes_at_once = 1 << 14, cells_at_once = 1 << 12;

bool are_connected(LatticeTopology const& topology) {
  std::vector<char> found(topology.lattices.size(), 0);
  std::vector<std::int32_t> next{0};
  found[0] = 1;
  std::size_t n = 0;
  while (!next.empty()) {
    std::int32_t const lattice = next.back();
    next.pop_back();
    ++n;
    for (std::int32_t const v : topology.lattices[lattice].vertices)
      for (auto p = topology.at_vertex.offsets[v]; p < topology.at_vertex.offsets[v + 1]; ++p)
        if (std::int32_t const other = topology.at_vertex.parts[p].lattice; found[other] == 0) {
          found[other] = 1;
          next.push_back(other);
        }
  }
  return n == found.size();
}

/// Pieces with a common face are neighbours.
Graph graph_of(LatticeTopology const& pieces) {
  Graph graph{{0}, {}};
  for (LatticeTopology::Lattice const& piece : pieces.lattices) {
    auto const self = static_cast<std::int32_t>(graph.offsets.size()) - 1;
    for (std::int32_t const face : piece.faces)
      for (auto p = pieces.at_face.offsets[face]; p < pieces.at_face.offsets[face + 1]; ++p)
        if (pieces.at_face.parts[p].lattice != self)
          graph.neighbors.push_back(pieces.at_face.parts[p].lattice);
    graph.offsets.push_back(static_cast<std::int64_t>(graph.neighbors.size()));
  }
  return graph;
}

/// Everything of one share; see share_of_lattices.
class Share {
public:
  Share(Mesh& mesh, std::shared_ptr<LatticeTopology const> whole, int refinements, ReferenceElement const& element, int rank,
        int ranks)
      : mesh_(mesh), element_(element), rank_(rank), n_coarse_(whole->n_lattices()) {
    int const depth = mesh.curved_cells ? 0 : depth_of_pieces(n_coarse_, refinements, ranks);
    std::shared_ptr<LatticeTopology const> pieces = whole;
    if (depth > 0) {
      mesh.triangulation->refine_global(static_cast<unsigned>(depth));
      pieces = std::make_shared<LatticeTopology const>(mesh, depth);
    }
    left_ = refinements - depth;
    std::vector<LatticePieces::Piece> places;
    for (auto const& cell : mesh.triangulation->active_cell_iterators()) {
      dealii::CellId const id = cell->id();
      LatticePieces::Piece piece{static_cast<std::int32_t>(id.get_coarse_cell_id()), {0, 0, 0}};
      for (auto const child : id.get_child_indices())
        for (int d = 0; d < 3; ++d)
          piece.first[d] = 2 * piece.first[d] + (child >> d & 1);
      places.push_back(piece);
    }
    std::vector<std::int32_t> rank_of = divide(graph_of(*pieces), ranks);  // all pieces are as much work
    pieces_ = std::make_shared<LatticePieces const>(LatticeNumbering(std::move(whole), refinements, element.order, false),
                                                    element.order, depth, std::int64_t{1} << left_, std::move(pieces),
                                                    std::move(places), std::move(rank_of));
  }

  /// Null where deal.II cannot place the nodes.
  std::optional<ShareOfSpace> make() {
    LatticePieces const& pieces = *pieces_;
    if (!pieces.topology->obstacle.empty())
      return std::nullopt;
    ShareOfSpace share;
    list_own_nodes();
    InsideOfPart const within = list_candidates();
    std::vector<std::int32_t> cells;
    for (Candidate const& candidate : candidates_)
      cells.push_back(candidate.cell);
    auto const look_at = [&](std::int64_t i, std::int32_t* unknowns, std::int32_t* owners) {
      Candidate const& candidate = candidates_[i];
      if (std::int64_t const first = first_node(candidate.piece); first >= 0)
        for_nodes(candidate, [&](auto const&, auto const& index) {
          std::int64_t const node = first + node_of(index);
          *unknowns++ = unknowns_[node];
          *owners++ = owners_[node];
        });
      else
        for_nodes(candidate, [&](auto const& place, auto const& index) {
          *unknowns++ = unknown(place, index);
          *owners++ = pieces.rank_of[pieces.topology->first_copy(place, index, pieces.m).lattice];
        });
    };
    share.part = part_of(cells, element_.n_nodes, rank_, look_at, within);
    candidates_ = {};
    owners_ = {};
    PlaceInList const place(share.part.unknowns);
    parallel_for(n_parts(std::ssize(unknowns_), nodes_at_once), [&](std::int64_t block) {
      auto const [begin, end] = assembly::part(std::ssize(unknowns_), nodes_at_once, block);
      for (std::int64_t node = begin; node < end; ++node)
        unknowns_[node] = place(unknowns_[node]);
    });
    SpaceArrays arrays;
    from_.resize(static_cast<std::size_t>(share.part.n_rows));
    fill_cells(arrays, share.part.around_cells, place);
    find_rows();
    share.part.own_nodes = std::move(unknowns_);
    if (!share.part.around_cells.empty()) {
      arrays.points.resize(3 * share.part.unknowns.size());
      std::fill(arrays.points.begin() + 3 * share.part.n_rows, arrays.points.end(), std::numeric_limits<double>::quiet_NaN());
      if (!fill_points(arrays))
        return std::nullopt;
      share.around = std::make_shared<Space>(element_, std::move(arrays));
    }
    auto const end_of_own = share.part.unknowns.begin() + share.part.n_rows;
    share.part.pieces = pieces_;
    share.part.nested = std::make_shared<NestedLattices const>(
        pieces_, rank_, std::vector<std::int32_t>(share.part.unknowns.begin(), end_of_own), std::move(from_), element_.nodes);
    return share;
  }

private:
  /// A cell: its number in the whole mesh, its piece, and its place there, x fastest.
  struct Candidate {
    std::int32_t cell, piece;
    std::int32_t local;
  };

  [[nodiscard]] std::array<std::int64_t, 3> index_of(std::int32_t local) const {
    std::int64_t const n = pieces_->n;
    return {local % n, local / n % n, local / (n * n)};
  }

  [[nodiscard]] std::int32_t unknown(std::int32_t piece, std::array<std::int64_t, 3> const& index) const {
    return pieces_->unknown(pieces_->places[piece].lattice, pieces_->in_lattice(piece, index));
  }

  [[nodiscard]] std::int64_t node_of(std::array<std::int64_t, 3> const& index) const {
    return (index[2] * pieces_->m + index[1]) * pieces_->m + index[0];
  }
  /// Returns where the nodes of an own piece begin in unknowns_; -1 for a piece that is not there.
  [[nodiscard]] std::int64_t first_node(std::int32_t piece) const { return first_nodes_[piece]; }

  /// The unknowns of own pieces, and their ranks; not where pieces have one cell, and maybe no own unknown.
  void list_own_nodes() {
    std::int64_t const m = pieces_->m, size = m * m * m;
    first_nodes_.assign(pieces_->places.size(), -1);
    if (pieces_->n == 1)
      return;
    for (std::size_t piece = 0; piece < pieces_->places.size(); ++piece)
      if (pieces_->rank_of[piece] == rank_) {
        first_nodes_[piece] = std::ssize(own_) * size;
        own_.push_back(static_cast<std::int32_t>(piece));
      }
    unknowns_.resize(own_.size() * static_cast<std::size_t>(size));
    owners_.resize(unknowns_.size());
    parallel_for(std::ssize(own_), [&](std::int64_t i) {
      std::int32_t const piece = own_[i];
      std::int64_t node = i * size;
      for (std::int64_t z = 0; z < m; ++z)
        for (std::int64_t y = 0; y < m; ++y)
          for (std::int64_t x = 0; x < m; ++x, ++node) {
            unknowns_[node] = unknown(piece, {x, y, z});
            owners_[node] = pieces_->rank_of[pieces_->topology->first_copy(piece, {x, y, z}, m).lattice];
          }
    });
  }

  /// Where own unknowns lie: their first copy, which is in an own piece. unknowns_ are places in the part by now.
  void find_rows() {
    std::int64_t const m = pieces_->m, size = m * m * m, n_rows = std::ssize(from_);
    parallel_for(std::ssize(own_), [&](std::int64_t i) {
      std::int64_t node = i * size;
      for (std::int64_t z = 0; z < m; ++z)
        for (std::int64_t y = 0; y < m; ++y)
          for (std::int64_t x = 0; x < m; ++x, ++node)
            if (auto const first = pieces_->topology->first_copy(own_[i], {x, y, z}, m);
                unknowns_[node] < n_rows && first.lattice == own_[i] && first.node == node - i * size)
              from_[unknowns_[node]] = {first.lattice, static_cast<std::int32_t>(first.node)};
    });
  }

  /// action(piece, index of the node in it) for the nodes of a cell.
  template <class Action>
  void for_nodes(Candidate const& candidate, Action const& action) const {
    auto const [x, y, z] = index_of(candidate.local);
    std::int64_t const p = element_.order;
    for (std::int64_t k = 0; k <= p; ++k)
      for (std::int64_t j = 0; j <= p; ++j)
        for (std::int64_t i = 0; i <= p; ++i)
          action(candidate.piece, std::array<std::int64_t, 3>{x * p + i, y * p + j, z * p + k});
  }

  /// The cells on the rims of own pieces and of their neighbours; what own ones have inside.
  InsideOfPart list_candidates() {
    auto const& [places, topology, rank_of, n] = std::tie(pieces_->places, *pieces_->topology, pieces_->rank_of, pieces_->n);
    std::vector<char> near(places.size(), 0);
    for (std::size_t piece = 0; piece < places.size(); ++piece)
      if (rank_of[piece] == rank_)
        for (std::int32_t const v : topology.lattices[piece].vertices)
          for (auto p = topology.at_vertex.offsets[v]; p < topology.at_vertex.offsets[v + 1]; ++p)
            near[topology.at_vertex.parts[p].lattice] = 1;
    std::int64_t const last = n - 1, m = pieces_->m, p = element_.order;
    std::vector<std::vector<Candidate>> candidates(places.size());
    std::vector<InsideOfPart> insides(places.size());
    parallel_for(std::ssize(places), [&](std::int64_t piece) {
      if (near[piece] == 0)
        return;
      InsideOfPart& within = insides[piece];
      bool const own = rank_of[piece] == rank_;
      auto const on_rim = [last](std::int64_t i) { return i == 0 || i == last; };
      for (std::int64_t z = 0; z < n; ++z)
        for (std::int64_t y = 0; y < n; ++y) {
          std::int64_t const first = pieces_->number_of({static_cast<std::int32_t>(piece), {0, y, z}});
          bool const line_on_rim = on_rim(y) || on_rim(z);
          for (std::int64_t x = 0; x < n; x += line_on_rim || own || x == last ? 1 : last)
            if (line_on_rim || on_rim(x))
              candidates[piece].push_back({static_cast<std::int32_t>(first + x), static_cast<std::int32_t>(piece),
                                           static_cast<std::int32_t>((z * n + y) * n + x)});
            else
              within.cells.push_back(static_cast<std::int32_t>(first + x));
        }
      if (std::int64_t const first = first_node(static_cast<std::int32_t>(piece)); first >= 0 && n >= 3)
        for (std::int64_t z = p; z < m - p; ++z)
          for (std::int64_t y = p; y < m - p; ++y)
            for (std::int64_t x = p; x < m - p; ++x)
              within.unknowns.push_back(unknowns_[first + node_of({x, y, z})]);
    });
    InsideOfPart within;
    for (std::size_t piece = 0; piece < places.size(); ++piece) {
      auto const append = [](auto& to, auto& from) {
        to.insert(to.end(), from.begin(), from.end());
        from = {};
      };
      append(candidates_, candidates[piece]);
      append(within.cells, insides[piece].cells);
      append(within.unknowns, insides[piece].unknowns);
    }
    return within;
  }

  void fill_cells(SpaceArrays& arrays, std::vector<std::int32_t> const& cells, PlaceInList const& place) {
    LatticeTopology const& topology = *pieces_->topology;
    std::int64_t const n = pieces_->n, n_cells = std::ssize(cells);
    arrays.cell_dofs.resize(cells.size() * static_cast<std::size_t>(element_.n_nodes));
    arrays.materials.resize(cells.size());
    std::vector<std::vector<BoundaryFace>> faces(static_cast<std::size_t>(n_parts(n_cells, cells_at_once)));
    parallel_for(std::ssize(faces), [&](std::int64_t block) {
      auto const [begin, end] = assembly::part(n_cells, cells_at_once, block);
      for (std::int64_t c = begin; c < end; ++c) {
        LatticePieces::Cell const at = pieces_->cell(cells[c]);
        std::int32_t* out = arrays.cell_dofs.data() + c * element_.n_nodes;
        std::int64_t const first = first_node(at.piece);
        for_nodes({cells[c], at.piece, static_cast<std::int32_t>((at.index[2] * n + at.index[1]) * n + at.index[0])},
                  [&](auto const& piece, auto const& index) {
                    *out++ = first >= 0 ? unknowns_[first + node_of(index)] : place(unknown(piece, index));
                  });
        LatticeTopology::Lattice const& lattice = topology.lattices[at.piece];
        arrays.materials[c] = lattice.material;
        for (int face = 0; face < 6; ++face)
          if (lattice.boundary_ids[face] != LatticeTopology::no_boundary && at.index[face / 2] == (face % 2 == 0 ? 0 : n - 1))
            faces[block].push_back({static_cast<std::int32_t>(c), lattice.boundary_ids[face], face});
      }
    });
    for (auto const& of_block : faces)
      arrays.boundary_faces.insert(arrays.boundary_faces.end(), of_block.begin(), of_block.end());
    if (n == 1)  // own pieces have no tables: their cells tell where own unknowns lie
      for (std::int64_t c = 0; c < n_cells; ++c) {
        std::int32_t const* out = arrays.cell_dofs.data() + c * element_.n_nodes;
        for_nodes({cells[c], pieces_->cell(cells[c]).piece, 0}, [&](auto const& piece, auto const& index) {
          auto const copy = topology.first_copy(piece, index, pieces_->m);
          if (*out < std::ssize(from_))
            from_[*out] = {copy.lattice, static_cast<std::int32_t>(copy.node)};
          ++out;
        });
      }
    arrays.boundary_ids = mesh_.boundary_ids;
    arrays.material_ids = mesh_.material_ids;
    arrays.n_cells_of_whole = n_coarse_ * (n * n * n << (3 * pieces_->depth));
  }

  /// Writes the points of own unknowns. It makes a few pieces at a time, each for the unknowns of which it has the first copy.
  /// Returns false where deal.II cannot place the nodes.
  bool fill_points(SpaceArrays& arrays) {
    // Own unknowns by piece.
    std::vector<std::int64_t> first(pieces_->places.size() + 1, 0);
    for (LatticeNode const& from : from_)
      ++first[from.lattice + 1];
    std::partial_sum(first.begin(), first.end(), first.begin());
    std::vector<std::int32_t> by_piece(from_.size());
    auto next = first;
    for (std::size_t i = 0; i < from_.size(); ++i)
      by_piece[next[from_[i].lattice]++] = static_cast<std::int32_t>(i);
    std::vector<std::int32_t> with_unknowns;
    for (std::size_t piece = 0; piece < pieces_->places.size(); ++piece)
      if (first[piece] < first[piece + 1])
        with_unknowns.push_back(static_cast<std::int32_t>(piece));
    std::int64_t const m = pieces_->m, at_once = std::max<std::int64_t>(1, bytes_at_once / (24 * m * m * m));
    for (std::int64_t block = 0; block < n_parts(std::ssize(with_unknowns), at_once); ++block) {
      auto const [begin, end] = part(std::ssize(with_unknowns), at_once, block);
      std::vector<std::int32_t> const of(with_unknowns.begin() + begin, with_unknowns.begin() + end);
      LatticeMesh const made(mesh_, pieces_->topology, left_, element_.nodes, of);
      if (!made.obstacle.empty())
        return false;
      arrays.isoparametric = made.isoparametric;
      parallel_for(std::ssize(of), [&](std::int64_t piece) {
        for (std::int64_t at = first[of[piece]]; at < first[of[piece] + 1]; ++at)
          for (int d = 0; d < 3; ++d)
            arrays.points[3 * static_cast<std::int64_t>(by_piece[at]) + d] =
                made.coordinates(static_cast<std::int32_t>(piece), d)[from_[by_piece[at]].node];
      });
    }
    return true;
  }

  Mesh& mesh_;
  ReferenceElement const& element_;
  int rank_, left_ = 0;  ///< left_: refinements of a piece
  std::int64_t n_coarse_;
  std::shared_ptr<LatticePieces const> pieces_;
  std::vector<Candidate> candidates_;
  std::vector<std::int32_t> own_;          ///< pieces
  std::vector<std::int64_t> first_nodes_;  ///< by piece
  HostVector<std::int32_t> unknowns_;      ///< of the nodes of own pieces; then their places in the part
  HostVector<std::int32_t> owners_;        ///< of the same
  std::vector<LatticeNode> from_;          ///< of every own unknown the copy whose place it has
};

}  // namespace

std::optional<ShareOfSpace> share_of_lattices(Mesh& mesh, int refinements, ReferenceElement const& element, int rank, int ranks) {
  if (!mesh.inner_faces.empty())  // whose faces the pieces do not have
    return std::nullopt;
  auto whole = std::make_shared<LatticeTopology const>(mesh);
  if (!whole->obstacle.empty() || !are_connected(*whole))
    return std::nullopt;
  return Share(mesh, std::move(whole), refinements, element, rank, ranks).make();
}

}  // namespace poisson::assembly
