#include "assembly/space/lattice_numbering.hpp"

#include "assembly/parallel.hpp"

#include <algorithm>
#include <cassert>
#include <limits>
#include <tuple>
#include <utility>

namespace poisson::assembly {

template <int D>
NodeKinds<D>::NodeKinds(std::int64_t p, std::int64_t n) : p_(p) {
  std::int64_t count = 1;
  for (int d = 0; d < D; ++d)
    count *= p;
  for (std::int64_t residues = 0; residues < count; ++residues) {
    Kind kind{};
    std::int64_t rest = residues;
    for (int d = 0; d < D; ++d, rest /= p) {
      kind.residue[d] = rest % p;
      kind.size[d] = kind.residue[d] == 0 ? n - 1 : n;
    }
    kinds_.push_back(kind);
  }
  // Kinds are sorted by the dimension of the part of the cell, then by its directions, then lexicographically.
  auto const key = [](Kind const& kind) {
    int dimension = 0, directions = 0;
    for (int d = 0; d < D; ++d)
      if (kind.residue[d] != 0) {
        ++dimension;
        directions |= 1 << d;
      }
    return std::tuple(dimension, directions);
  };
  std::stable_sort(kinds_.begin(), kinds_.end(), [&](Kind const& a, Kind const& b) { return key(a) < key(b); });
  kind_of_residue_.resize(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < kinds_.size(); ++i) {
    std::int64_t residues = 0, size = 1;
    for (int d = D - 1; d >= 0; --d) {
      residues = residues * p + kinds_[i].residue[d];
      size *= kinds_[i].size[d];
    }
    kind_of_residue_[residues] = static_cast<int>(i);
    kinds_[i].first = size_;
    size_ += size;
  }
}

template class NodeKinds<1>;
template class NodeKinds<2>;
template class NodeKinds<3>;

LatticeNumbering::LatticeNumbering(std::shared_ptr<LatticeTopology const> topology, int refinements, int order, bool with_tables)
    : m((std::int64_t{order} << refinements) + 1),
      lattice_kinds(order, std::int64_t{1} << refinements),
      face_kinds(order, std::int64_t{1} << refinements),
      edge_kinds(order, std::int64_t{1} << refinements),
      refinements_(refinements),
      topology_(std::move(topology)) {
  first_face = topology_->n_lattices() * lattice_kinds.size();
  first_edge = first_face + topology_->at_face.size() * face_kinds.size();
  first_vertex = first_edge + topology_->at_edge.size() * edge_kinds.size();
  n_unknowns = first_vertex + topology_->at_vertex.size();
  assert(n_unknowns <= std::numeric_limits<std::int32_t>::max());
  first_kept_ = n_unknowns;
  list_nodes_of_cell();
  make_layout(with_tables);
}

LatticeNumbering::LatticeNumbering(LatticeLayout with_tables, int refinements)
    : m(with_tables.nodes()),
      n_unknowns(with_tables.n_unknowns),
      first_face(with_tables.n_inner()),
      first_edge(first_face),
      first_vertex(first_face),
      lattice_kinds(with_tables.order, with_tables.cells),
      face_kinds(with_tables.order, with_tables.cells),
      edge_kinds(with_tables.order, with_tables.cells),
      layout(std::move(with_tables)),
      refinements_(refinements),
      first_kept_(n_unknowns) {
  assert(layout.cells == 1 << refinements && !layout.all_on_rim);
  list_nodes_of_cell();
}

void LatticeNumbering::list_nodes_of_cell() {
  std::int64_t const p = lattice_kinds.order();
  for (std::int64_t c = 0; c <= p; ++c)
    for (std::int64_t b = 0; b <= p; ++b)
      for (std::int64_t a = 0; a <= p; ++a) {
        std::array<std::int64_t, 3> const residue{a % p, b % p, c % p};
        NodeKinds<3>::Kind const& kind = *std::find_if(lattice_kinds.kinds().begin(), lattice_kinds.kinds().end(),
                                                       [&](NodeKinds<3>::Kind const& k) { return k.residue == residue; });
        // The first nodes of a kind with the residue 0 are those between cells 0 and 1.
        auto const shift = [p](std::int64_t index) { return index / p - (index % p == 0 ? 1 : 0); };
        std::int64_t const row = kind.size[0], plane = kind.size[0] * kind.size[1];
        nodes_of_cell_.push_back({kind.first + shift(c) * plane + shift(b) * row + shift(a), plane, row});
      }
}

std::int64_t LatticeNumbering::unknown(std::int32_t lattice, std::int64_t i, std::int64_t j, std::int64_t k) const {
  LatticeTopology::Lattice const& place = topology_->lattices[lattice];
  std::array<std::int64_t, 3> const index{i, j, k};
  auto const rim = [&](int d) { return index[d] == 0 || index[d] == m - 1; };
  auto const high = [&](int d) { return index[d] == 0 ? 0 : 1; };
  int const n_rims = int{rim(0)} + int{rim(1)} + int{rim(2)};
  if (n_rims == 0)
    return lattice * lattice_kinds.size() + lattice_kinds.place(index);
  if (n_rims == 1) {
    int const d = rim(0) ? 0 : rim(1) ? 1 : 2, face = 2 * d + high(d);
    auto const own = to_own(place.orientations[face], index[face_u(face)], index[face_v(face)], m - 1);
    return first_face + place.faces[face] * face_kinds.size() + face_kinds.place(own);
  }
  if (n_rims == 2) {
    int const d = !rim(0) ? 0 : !rim(1) ? 1 : 2;
    int const edge = LatticeTopology::edge_at(d, {high(0), high(1), high(2)});
    bool const reversed = place.reversed_edges >> edge & 1;
    return first_edge + place.edges[edge] * edge_kinds.size() + edge_kinds.place({reversed ? m - 1 - index[d] : index[d]});
  }
  return first_vertex + place.vertices[high(0) + 2 * high(1) + 4 * high(2)];
}

void LatticeNumbering::unknowns_of_cell(std::int64_t number, std::int32_t* out) const {
  auto const [lattice, x, y, z] = cell(number);
  std::int64_t const first = lattice * lattice_kinds.size();
  auto const inner = [&, i = x, j = y, k = z](CellNode const& node) {
    return static_cast<std::int32_t>(first + node.first + k * node.plane + j * node.row + i);
  };
  std::int32_t const last = layout.cells - 1, p = layout.order;
  auto const at_end = [last](std::int32_t i) { return i == 0 || i == last; };
  if (!at_end(x) && !at_end(y) && !at_end(z)) {
    for (CellNode const& node : nodes_of_cell_)
      *out++ = inner(node);
    return;
  }
  LatticeRim const rim = layout.rim();
  std::int32_t const* const on_rim = layout.tables->rim_unknowns.data() + lattice * rim.size();
  CellNode const* node = nodes_of_cell_.data();
  for (std::int32_t k = z * p; k <= (z + 1) * p; ++k)
    for (std::int32_t j = y * p; j <= (y + 1) * p; ++j)
      for (std::int32_t i = x * p; i <= (x + 1) * p; ++i, ++node)
        *out++ = rim.holds(i, j, k) ? new_number(on_rim[rim.place(i, j, k)]) : inner(*node);
}

LatticeNumbering LatticeNumbering::with_few(std::int64_t first, std::vector<std::int32_t> kept) const {
  assert(first_kept_ == layout.n_unknowns && first_face <= first && first <= n_unknowns);
  LatticeNumbering result = *this;
  result.first_kept_ = first;
  result.n_unknowns = first + std::ssize(kept);
  result.kept_ = std::move(kept);
  return result;
}

LatticeNode LatticeNumbering::first_node(std::int64_t unknown) const {
  auto const at = [this](std::int64_t lattice, std::int64_t i, std::int64_t j, std::int64_t k) {
    return LatticeNode{static_cast<std::int32_t>(lattice), static_cast<std::int32_t>((k * m + j) * m + i)};
  };
  if (unknown < first_face) {
    LatticeView::Node const node = layout.view().inner_node(unknown);
    return at(node.lattice, node.i, node.j, node.k);
  }
  LatticeRim const rim = layout.rim();
  std::int64_t const in_layout = unknown < first_kept_ ? unknown : kept_[unknown - first_kept_];
  std::int64_t const place = layout.tables->copies[layout.tables->copy_offsets[in_layout - first_face]];
  LatticeRim::Node const node = rim.node(place % rim.size());
  return at(place / rim.size(), node.i, node.j, node.k);
}

void LatticeNumbering::make_layout(bool with_tables) {
  std::int64_t const p = lattice_kinds.order();
  layout.n_lattices = topology_->n_lattices();
  layout.n_unknowns = n_unknowns;
  layout.order = static_cast<std::int32_t>(p);
  layout.cells = std::int32_t{1} << refinements_;
  RimTables tables;
  tables.kind_first.resize(static_cast<std::size_t>(p * p * p));
  for (NodeKinds<3>::Kind const& kind : lattice_kinds.kinds())
    tables.kind_first[(kind.residue[2] * p + kind.residue[1]) * p + kind.residue[0]] = static_cast<std::int32_t>(kind.first);
  if (!with_tables) {
    layout.set_tables(std::move(tables));
    return;
  }
  LatticeRim const rim = layout.rim();
  tables.rim_unknowns.resize(static_cast<std::size_t>(layout.n_lattices * rim.size()));
  tables.copy_offsets.resize(static_cast<std::size_t>(n_rim()) + 1);
  tables.copies.resize(tables.rim_unknowns.size());

  // Each node of part e has as many copies as there are lattices at e. `places` are those of the nodes, `node` their local numbers.
  std::int64_t first_unknown = 0, first_copy = 0;
  auto const list = [&](LatticeParts const& all, std::vector<std::int64_t> const& places, auto const& node) {
    auto const count = static_cast<std::int64_t>(places.size());
    constexpr std::int64_t at_once = 4096;  // nodes: there may be few parts
    parallel_for(n_parts(all.size() * count, at_once), [&](std::int64_t block) {
      auto const [begin, end] = part(all.size() * count, at_once, block);
      for (std::int64_t number = begin; number < end; ++number) {
        std::int64_t const e = number / count, i = number % count, n_parts_here = all.offsets[e + 1] - all.offsets[e];
        std::int64_t const on_rim = first_unknown + e * count + places[i],
                           at = first_copy + all.offsets[e] * count + places[i] * n_parts_here;
        tables.copy_offsets[on_rim] = at;
        for (std::int64_t c = 0; c < n_parts_here; ++c) {
          LatticePart const& here = all.parts[all.offsets[e] + c];
          std::int64_t const local = node(here, i);
          std::int64_t const place = here.lattice * rim.size() + rim.place(local % m, local / m % m, local / (m * m));
          tables.copies[at + c] = static_cast<std::int32_t>(place);
          tables.rim_unknowns[place] = static_cast<std::int32_t>(first_face + on_rim);
        }
        std::sort(tables.copies.begin() + at, tables.copies.begin() + at + n_parts_here);
      }
    });
    first_unknown += all.size() * count;
    first_copy += count * static_cast<std::int64_t>(all.parts.size());
  };
  std::int64_t const inner = m - 2;
  std::vector<std::int64_t> face_places, edge_places;
  for (std::int64_t i = 0; i < inner * inner; ++i)
    face_places.push_back(face_kinds.place({1 + i % inner, 1 + i / inner}));
  for (std::int64_t i = 0; i < inner; ++i)
    edge_places.push_back(edge_kinds.place({1 + i}));
  list(topology_->at_face, face_places,
       [&](LatticePart face, std::int64_t i) { return topology_->face_node(face, 1 + i % inner, 1 + i / inner, m); });
  list(topology_->at_edge, edge_places, [&](LatticePart edge, std::int64_t i) { return topology_->edge_node(edge, 1 + i, m); });
  list(topology_->at_vertex, {0}, [&](LatticePart vertex, std::int64_t) { return LatticeTopology::vertex_node(vertex.number, m); });
  tables.copy_offsets[first_unknown] = first_copy;
  layout.set_tables(std::move(tables));
}

}  // namespace poisson::assembly
