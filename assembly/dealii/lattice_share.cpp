#include "assembly/dealii/lattice_share.hpp"

#include "assembly/dealii/mesh.hpp"
#include "assembly/mesh/coarse_mesh.hpp"
#include "assembly/mesh/lattice_mesh.hpp"
#include "assembly/parallel.hpp"
#include "assembly/space/lattice_numbering.hpp"
#include "assembly/space/lattice_pieces.hpp"
#include "assembly/space/reference_element.hpp"
#include "assembly/space/space.hpp"

#include <algorithm>
#include <array>
#include <deal.II/grid/cell_id.h>
#include <deal.II/grid/tria_accessor.h>
#include <deal.II/grid/tria_iterator.h>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

namespace poisson::assembly {
namespace {

/// Cells of a thread.
constexpr std::int64_t cells_at_once = 1 << 12;

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

/// The faces, edges and vertices that cells of a piece lie at, by the sides of the cell.
class Sides {
public:
  using Index = std::array<std::int64_t, 3>;

  void add_face(int face) { faces_ |= 1U << face; }
  void add_edge(int edge) { edges_ |= 1U << edge; }
  void add_vertex(int vertex) { vertices_ |= 1U << vertex; }
  [[nodiscard]] bool empty() const { return (faces_ | edges_ | vertices_) == 0; }
  /// Whether a cell of n a side lies at one of them.
  [[nodiscard]] bool touch(Index const& cell, std::int64_t n) const {
    auto const at = [&](int d, int side) { return cell[d] == (side == 0 ? 0 : n - 1); };
    for (int face = 0; face < 6; ++face)
      if ((faces_ >> face & 1) != 0 && at(face / 2, face % 2))
        return true;
    for (int edge = 0; edge < 12; ++edge)
      if ((edges_ >> edge & 1) != 0) {
        HexEdge const& place = hex_edges[edge];
        int const d = (place.direction + 1) % 3, e = (place.direction + 2) % 3;
        if (at(d, place.at[d]) && at(e, place.at[e]))
          return true;
      }
    for (int vertex = 0; vertex < 8; ++vertex)
      if ((vertices_ >> vertex & 1) != 0 && at(0, vertex & 1) && at(1, vertex >> 1 & 1) && at(2, vertex >> 2))
        return true;
    return false;
  }

private:
  unsigned faces_ = 0, edges_ = 0, vertices_ = 0;
};

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
  std::optional<ShareOfLattices> make(bool leave_nodes, FillLattices const& fill) {
    if (!pieces_->topology->obstacle.empty())
      return std::nullopt;
    own_ = std::make_shared<OwnPieces>();
    own_->pieces = pieces_;
    own_->rank = rank_;
    local_.assign(pieces_->places.size(), -1);
    for (std::size_t piece = 0; piece < pieces_->places.size(); ++piece)
      if (pieces_->rank_of[piece] == rank_) {
        local_[piece] = static_cast<std::int32_t>(own_->own.size());
        own_->own.push_back(static_cast<std::int32_t>(piece));
      }
    make_shape();
    list_parts();
    number_own_rims();
    look_at_cuts();
    number_ghosts();
    ShareOfLattices share;
    if (own_->n_cells() > 0) {
      SpaceOfPieces space;
      if (!(leave_nodes ? leave_out_nodes(space, fill) : make_nodes(space)))
        return std::nullopt;
      fill_cells(space);
      space.layout = std::move(layout_);
      share.around = std::make_shared<Space>(element_, std::move(space));
    }
    share.pieces = std::move(own_);
    return share;
  }

private:
  using Index = std::array<std::int64_t, 3>;

  /// A face, edge or vertex that own pieces have.
  struct Part {
    std::vector<LatticePart> here;  ///< those of own pieces, which are counted
    std::int64_t first = -1;        ///< the first of its unknowns on rims, where they belong to this rank
    std::int64_t first_copy = 0;    ///< of these unknowns
  };
  /// All parts of a kind: of each node inside of a part its place in the order of the part's unknowns.
  struct Kind {
    LatticeParts const* all;
    std::vector<std::int64_t> places;
    std::vector<Part> parts;
  };
  /// A cell at a cut between ranks.
  struct CellAtCut {
    std::int32_t piece;
    Index index;
  };
  /// What cells at cuts have, with repetition.
  struct Found {
    std::map<int, std::vector<std::int32_t>> ghosts;                         ///< numbers in the whole mesh, by their rank
    std::map<int, std::vector<std::pair<std::int32_t, std::int32_t>>> sent;  ///< such numbers and rows, by the rank that needs them
    std::vector<std::int32_t> other_cells;

    void merge() {
      for (auto& [rank, list] : ghosts)
        sort_and_merge(list);
      for (auto& [rank, list] : sent) {
        std::sort(list.begin(), list.end());
        list.erase(std::unique(list.begin(), list.end()), list.end());
      }
    }
    void append(Found const& other) {
      auto const add = [](auto& to, auto const& from) { to.insert(to.end(), from.begin(), from.end()); };
      for (auto const& [rank, list] : other.ghosts)
        add(ghosts[rank], list);
      for (auto const& [rank, list] : other.sent)
        add(sent[rank], list);
      add(other_cells, other.other_cells);
    }
  };

  [[nodiscard]] std::int32_t number(std::int32_t piece, Index const& index) const {
    return pieces_->unknown(pieces_->places[piece].lattice, pieces_->in_lattice(piece, index));
  }
  [[nodiscard]] Index index_of(std::int64_t node) const {
    std::int64_t const m = pieces_->m;
    return {node % m, node / m % m, node / (m * m)};
  }

  void make_shape() {
    std::int64_t const p = element_.order;
    layout_.n_lattices = std::ssize(own_->own);
    layout_.order = element_.order;
    layout_.cells = static_cast<std::int32_t>(pieces_->n);
    tables_.kind_first.resize(static_cast<std::size_t>(p * p * p));
    NodeKinds<3> const kinds(p, pieces_->n);
    for (NodeKinds<3>::Kind const& kind : kinds.kinds())
      tables_.kind_first[(kind.residue[2] * p + kind.residue[1]) * p + kind.residue[0]] = static_cast<std::int32_t>(kind.first);
  }

  /// The parts that own pieces have, and their own unknowns, kind by kind.
  void list_parts() {
    std::int64_t const p = element_.order, inner = pieces_->m - 2;
    NodeKinds<2> const in_face(p, pieces_->n);
    NodeKinds<1> const in_edge(p, pieces_->n);
    kinds_[0].all = &pieces_->topology->at_face;
    kinds_[1].all = &pieces_->topology->at_edge;
    kinds_[2].all = &pieces_->topology->at_vertex;
    for (std::int64_t i = 0; i < inner * inner; ++i)
      kinds_[0].places.push_back(in_face.place({1 + i % inner, 1 + i / inner}));
    for (std::int64_t i = 0; i < inner; ++i)
      kinds_[1].places.push_back(in_edge.place({1 + i}));
    kinds_[2].places.push_back(0);
    for (Kind& kind : kinds_) {
      auto const count = std::ssize(kind.places);
      kind.parts.resize(static_cast<std::size_t>(kind.all->size()));
      for (std::size_t number = 0; number < kind.parts.size(); ++number) {
        Part& part = kind.parts[number];
        std::int64_t const begin = kind.all->offsets[number], end = kind.all->offsets[number + 1];
        for (std::int64_t at = begin; at < end; ++at)
          if (auto const& [piece, local] = kind.all->parts[at]; local_[piece] >= 0)
            part.here.push_back({local_[piece], local});
        if (part.here.empty() || pieces_->rank_of[kind.all->parts[begin].lattice] != rank_)
          continue;
        part.first = n_own_rim_;
        part.first_copy = n_own_copies_;
        n_own_rim_ += count;
        n_own_copies_ += count * std::ssize(part.here);
      }
    }
    own_->n_rows = layout_.n_inner() + n_own_rim_;
  }

  /// The node in its piece of node i inside of a part of kind k; `part.lattice` is a number of all pieces.
  [[nodiscard]] std::int64_t node_of(std::size_t k, LatticePart part, std::int64_t i) const {
    std::int64_t const m = pieces_->m, inner = m - 2;
    LatticeTopology const& topology = *pieces_->topology;
    if (k == 0)
      return topology.face_node(part, 1 + i % inner, 1 + i / inner, m);
    return k == 1 ? topology.edge_node(part, 1 + i, m) : LatticeTopology::vertex_node(part.number, m);
  }
  /// The same of an own piece; and the place on rims.
  [[nodiscard]] std::int64_t node_here(std::size_t k, LatticePart part, std::int64_t i) const {
    return node_of(k, {own_->own[part.lattice], part.number}, i);
  }
  [[nodiscard]] std::int64_t place_here(std::size_t k, LatticePart part, std::int64_t i) const {
    LatticeRim const rim = layout_.rim();
    auto const [x, y, z] = index_of(node_here(k, part, i));
    return part.lattice * rim.size() + rim.place(x, y, z);
  }
  /// action(kind, part) for all parts that own pieces have, on all threads.
  template <class Action>
  void for_parts(Action const& action) {
    for (std::size_t k = 0; k < kinds_.size(); ++k)
      parallel_for(std::ssize(kinds_[k].parts), [&](std::int64_t number) {
        if (!kinds_[k].parts[number].here.empty())
          action(k, kinds_[k].parts[number]);
      });
  }

  void number_own_rims() {
    std::int64_t const n_inner = layout_.n_inner();
    tables_.rim_unknowns.resize(static_cast<std::size_t>(layout_.n_lattices * layout_.rim().size()));
    for_parts([&](std::size_t k, Part const& part) {
      if (part.first < 0)
        return;
      for (std::int64_t i = 0; i < std::ssize(kinds_[k].places); ++i)
        for (LatticePart const& here : part.here)
          tables_.rim_unknowns[place_here(k, here, i)] = static_cast<std::int32_t>(n_inner + part.first + kinds_[k].places[i]);
    });
    rows_ = layout_.view();
    rows_.kind_first = tables_.kind_first.data();
    rows_.rim_unknowns = tables_.rim_unknowns.data();
  }

  /// The cells where pieces of several ranks meet.
  [[nodiscard]] std::vector<CellAtCut> cells_at_cuts() const {
    LatticeTopology const& topology = *pieces_->topology;
    std::vector<Sides> sides(pieces_->places.size());
    for (std::size_t k = 0; k < kinds_.size(); ++k)
      for (std::size_t number = 0; number < kinds_[k].parts.size(); ++number) {
        LatticeParts const& all = *kinds_[k].all;
        auto const begin = all.parts.begin() + all.offsets[number], end = all.parts.begin() + all.offsets[number + 1];
        if (kinds_[k].parts[number].here.empty() || std::ssize(kinds_[k].parts[number].here) == end - begin)
          continue;
        for (auto at = begin; at != end; ++at) {
          Sides& of_piece = sides[at->lattice];
          k == 0 ? of_piece.add_face(at->number) : k == 1 ? of_piece.add_edge(at->number) : of_piece.add_vertex(at->number);
        }
      }
    std::vector<std::vector<CellAtCut>> found(sides.size());
    std::int64_t const n = pieces_->n;
    parallel_for(topology.n_lattices(), [&](std::int64_t piece) {
      if (sides[piece].empty())
        return;
      auto const at_end = [n](std::int64_t i) { return i == 0 || i == n - 1; };
      for (std::int64_t z = 0; z < n; ++z)
        for (std::int64_t y = 0; y < n; ++y)
          for (std::int64_t x = 0; x < n; x += at_end(y) || at_end(z) ? 1 : std::max<std::int64_t>(n - 1, 1))
            if (sides[piece].touch({x, y, z}, n))
              found[piece].push_back({static_cast<std::int32_t>(piece), {x, y, z}});
    });
    std::vector<CellAtCut> cells;
    for (auto const& of_piece : found)
      cells.insert(cells.end(), of_piece.begin(), of_piece.end());
    return cells;
  }

  /// action(index of the node in its piece) for the nodes of a cell.
  template <class Action>
  void for_nodes(CellAtCut const& cell, Action const& action) const {
    std::int64_t const p = element_.order;
    for (std::int64_t k = 0; k <= p; ++k)
      for (std::int64_t j = 0; j <= p; ++j)
        for (std::int64_t i = 0; i <= p; ++i)
          action(Index{cell.index[0] * p + i, cell.index[1] * p + j, cell.index[2] * p + k});
  }
  /// The row of a node by its first copy, which is in an own piece.
  [[nodiscard]] std::int32_t row_of(LatticeTopology::Node const& copy) const {
    auto const [x, y, z] = index_of(copy.node);
    return static_cast<std::int32_t>(rows_.unknown(local_[copy.lattice], static_cast<std::int32_t>(x), static_cast<std::int32_t>(y),
                                                   static_cast<std::int32_t>(z)));
  }

  /// Finds ghosts, what others need of own unknowns, and other cells around these. A cell needs all of its unknowns on every rank
  /// that has one of them or its piece.
  void look_at_cuts() {
    LatticeTopology const& topology = *pieces_->topology;
    std::vector<CellAtCut> const cells = cells_at_cuts();
    std::vector<Found> blocks(static_cast<std::size_t>(n_parts(std::ssize(cells), cells_at_once)));
    auto const n_local = static_cast<std::size_t>(element_.n_nodes);
    parallel_for(
        std::ssize(blocks), [&] { return std::vector<LatticeTopology::Node>(n_local); },
        [&](std::vector<LatticeTopology::Node>& copies, std::int64_t block) {
          auto const [begin, end] = part(std::ssize(cells), cells_at_once, block);
          Found& found = blocks[block];
          std::vector<std::int32_t> numbers(n_local);
          for (std::int64_t c = begin; c < end; ++c) {
            CellAtCut const& cell = cells[c];
            std::set<int> ranks{pieces_->rank_of[cell.piece]};
            std::size_t at = 0;
            for_nodes(cell, [&](Index const& index) {
              copies[at] = topology.first_copy(cell.piece, index, pieces_->m);
              ranks.insert(pieces_->rank_of[copies[at].lattice]);
              numbers[at++] = number(cell.piece, index);
            });
            if (ranks.erase(rank_) == 0)
              continue;
            if (local_[cell.piece] < 0)
              found.other_cells.push_back(static_cast<std::int32_t>(pieces_->number_of({cell.piece, cell.index})));
            for (std::size_t i = 0; i < n_local; ++i)
              if (std::int32_t const owner = pieces_->rank_of[copies[i].lattice]; owner != rank_)
                found.ghosts[owner].push_back(numbers[i]);
              else
                for (int const other : ranks)
                  found.sent[other].push_back({numbers[i], row_of(copies[i])});
          }
          found.merge();
        });
    Found all;
    for (Found& found : blocks) {
      all.append(found);
      found = {};
    }
    all.merge();
    sort_and_merge(all.other_cells);
    own_->other_cells = std::move(all.other_cells);
    for (auto const& [rank, list] : all.sent)
      all.ghosts[rank];
    for (auto const& [rank, list] : all.ghosts) {
      RankNeighbor neighbor;
      neighbor.rank = rank;
      neighbor.n_ghosts = std::ssize(list);
      for (auto const& [number, row] : all.sent[rank])
        neighbor.sent.push_back(row);
      own_->neighbors.push_back(std::move(neighbor));
      own_->ghosts.insert(own_->ghosts.end(), list.begin(), list.end());
    }
    ghost_.emplace(own_->ghosts);
  }
  [[nodiscard]] std::int32_t unknown_of_ghost(std::int32_t number) const {
    return static_cast<std::int32_t>(own_->n_rows) + (*ghost_)(number);
  }

  /// Completes the tables of rims.
  void number_ghosts() {
    std::int64_t const n_ghosts = std::ssize(own_->ghosts);
    HostVector<std::int64_t>& offsets = tables_.copy_offsets;
    offsets.resize(static_cast<std::size_t>(n_own_rim_ + n_ghosts + 1));
    std::fill(offsets.begin() + n_own_rim_, offsets.end(), 0);
    for_parts([&](std::size_t k, Part const& part) {
      auto const n_copies = std::ssize(part.here);
      for (std::int64_t i = 0; i < std::ssize(kinds_[k].places); ++i) {
        if (part.first >= 0) {
          std::int64_t const place = kinds_[k].places[i];
          offsets[part.first + place] = part.first_copy + place * n_copies;
          continue;
        }
        LatticePart const& first = part.here.front();
        std::int32_t const unknown = unknown_of_ghost(number(own_->own[first.lattice], index_of(node_here(k, first, i))));
        offsets[n_own_rim_ + unknown - own_->n_rows] = n_copies;
        for (LatticePart const& here : part.here)
          tables_.rim_unknowns[place_here(k, here, i)] = unknown;
      }
    });
    std::int64_t next = n_own_copies_;
    for (std::int64_t ghost = 0; ghost <= n_ghosts; ++ghost) {
      std::int64_t const count = ghost < n_ghosts ? offsets[n_own_rim_ + ghost] : 0;
      if (count > 0)
        own_->ghosts_of_pieces.push_back(static_cast<std::int32_t>(own_->n_rows + ghost));
      offsets[n_own_rim_ + ghost] = next;
      next += count;
    }
    tables_.copies.resize(tables_.rim_unknowns.size());
    std::int64_t const n_inner = layout_.n_inner();
    for_parts([&](std::size_t k, Part const& part) {
      for (std::int64_t i = 0; i < std::ssize(kinds_[k].places); ++i) {
        std::int64_t const begin = offsets[tables_.rim_unknowns[place_here(k, part.here.front(), i)] - n_inner];
        auto out = tables_.copies.begin() + begin;
        for (LatticePart const& here : part.here)
          *out++ = static_cast<std::int32_t>(place_here(k, here, i));
        std::sort(tables_.copies.begin() + begin, out);
      }
    });
    layout_.n_unknowns = own_->n_unknowns();
    layout_.set_tables(std::move(tables_));
  }

  /// Places the nodes of own pieces: those of own unknowns where their first copy is. Returns false where deal.II cannot.
  bool make_nodes(SpaceOfPieces& space) {
    LatticeMesh made(mesh_, pieces_->topology, left_, element_.nodes, own_->own);
    if (!made.obstacle.empty())
      return false;
    space.isoparametric = made.isoparametric;
    HostVector<double> nodes = made.take_points();
    std::int64_t const size = pieces_->m * pieces_->m * pieces_->m;
    for_parts([&](std::size_t k, Part const& part) {
      for (std::size_t other = 1; part.first >= 0 && other < part.here.size(); ++other)
        for (std::int64_t i = 0; i < std::ssize(kinds_[k].places); ++i)
          for (std::int64_t d = 0; d < 3; ++d)
            nodes[(3 * part.here[other].lattice + d) * size + node_here(k, part.here[other], i)] =
                nodes[(3 * part.here[0].lattice + d) * size + node_here(k, part.here[0], i)];
    });
    space.nodes = std::make_shared<LatticeNodes>(std::move(nodes), pieces_->m, element_.order);
    return true;
  }

  /// The same without the nodes inside of pieces.
  bool leave_out_nodes(SpaceOfPieces& space, FillLattices const& fill) const {
    LatticeMesh const shape(mesh_, pieces_->topology, left_, element_.nodes, {});
    if (!shape.obstacle.empty())
      return false;
    space.isoparametric = shape.isoparametric;
    try {
      space.nodes = std::make_shared<LatticeNodes>(layout_, element_.nodes, maker_of_faces(mesh_, shape, element_.nodes, own_->own),
                                                   pieces_->topology->outer_sides(own_->own, pieces_->rank_of), fill);
    } catch (InputError const&) {
      return false;
    }
    return true;
  }

  void add_boundary_face(SpaceOfPieces& space, std::int64_t cell, std::uint32_t id, int face) const {
    if (id != LatticeTopology::no_boundary)
      space.boundary_faces.push_back({static_cast<std::int32_t>(cell), id, face});
  }

  void fill_cells(SpaceOfPieces& space) {
    LatticeTopology const& topology = *pieces_->topology;
    std::int64_t const n = pieces_->n, of_piece = own_->cells_of_piece();
    std::array<std::int64_t, 3> const to_next{1, n, n * n};
    for (std::int64_t i = 0; i < std::ssize(own_->own); ++i) {
      LatticeTopology::Lattice const& lattice = topology.lattices[own_->own[i]];
      space.materials.push_back(lattice.material);
      space.first_cells.push_back(own_->cell_of_whole(i * of_piece));
      std::int64_t const first = std::ssize(space.boundary_faces);
      for (int face = 0; face < 6; ++face) {
        int const d = face / 2, e = d == 0 ? 1 : 0, f = d == 2 ? 1 : 2;
        for (std::int64_t b = 0; b < n && lattice.boundary_ids[face] != LatticeTopology::no_boundary; ++b)
          for (std::int64_t a = 0; a < n; ++a)
            add_boundary_face(space, i * of_piece + (face % 2) * (n - 1) * to_next[d] + b * to_next[f] + a * to_next[e],
                              lattice.boundary_ids[face], face);
      }
      std::sort(space.boundary_faces.begin() + first, space.boundary_faces.end(),
                [](auto const& a, auto const& b) { return std::tie(a.cell, a.face) < std::tie(b.cell, b.face); });
    }
    space.to_next_line = pieces_->cells_of_lattice();
    space.to_next_plane = space.to_next_line * space.to_next_line;
    std::int64_t const n_others = std::ssize(own_->other_cells);
    space.other_cells = own_->other_cells;
    space.cell_dofs.resize(static_cast<std::size_t>(n_others * element_.n_nodes));
    parallel_for(n_parts(n_others, cells_at_once), [&](std::int64_t block) {
      auto const [begin, end] = part(n_others, cells_at_once, block);
      for (std::int64_t c = begin; c < end; ++c) {
        std::int32_t* out = space.cell_dofs.data() + c * element_.n_nodes;
        auto const [piece, cell_index] = pieces_->cell(own_->other_cells[c]);
        for_nodes({piece, cell_index}, [&, of = piece](Index const& index) {
          LatticeTopology::Node const copy = topology.first_copy(of, index, pieces_->m);
          *out++ = local_[copy.lattice] >= 0 ? row_of(copy) : unknown_of_ghost(number(of, index));
        });
      }
    });
    for (std::int64_t c = 0; c < n_others; ++c) {
      LatticePieces::Cell const at = pieces_->cell(own_->other_cells[c]);
      LatticeTopology::Lattice const& lattice = topology.lattices[at.piece];
      space.materials.push_back(lattice.material);
      for (int face = 0; face < 6; ++face)
        if (at.index[face / 2] == (face % 2 == 0 ? 0 : n - 1))
          add_boundary_face(space, own_->n_own_cells() + c, lattice.boundary_ids[face], face);
    }
    space.boundary_faces.shrink_to_fit();
    space.boundary_ids = mesh_.boundary_ids;
    space.material_ids = mesh_.material_ids;
    space.n_own = own_->n_rows;
    space.n_cells_of_whole = n_coarse_ * (n * n * n << (3 * pieces_->depth));
  }

  Mesh& mesh_;
  ReferenceElement const& element_;
  int rank_, left_ = 0;  ///< left_: refinements of a piece
  std::int64_t n_coarse_;
  std::shared_ptr<LatticePieces const> pieces_;
  std::shared_ptr<OwnPieces> own_;
  std::vector<std::int32_t> local_;  ///< by piece: its number among own ones, or -1
  LatticeLayout layout_;             ///< of own pieces
  RimTables tables_;                 ///< of it, until they are complete; they stay where they are in memory
  LatticeView rows_;                 ///< of it, once own unknowns on rims have their numbers
  std::array<Kind, 3> kinds_;        ///< faces, edges, vertices
  std::int64_t n_own_rim_ = 0, n_own_copies_ = 0;
  std::optional<PlaceInList> ghost_;
};

}  // namespace

std::optional<ShareOfLattices> share_of_lattices(Mesh& mesh, int refinements, ReferenceElement const& element, int rank, int ranks,
                                                 bool leave_nodes, FillLattices const& fill) {
  if (!mesh.inner_faces.empty())  // whose faces the pieces do not have
    return std::nullopt;
  auto whole = std::make_shared<LatticeTopology const>(mesh);
  if (!whole->obstacle.empty() || !are_connected(*whole))
    return std::nullopt;
  return Share(mesh, std::move(whole), refinements, element, rank, ranks).make(leave_nodes, fill);
}

}  // namespace poisson::assembly
