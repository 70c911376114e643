#include "assembly/space/lattice_numbering.hpp"

#include "assembly/parallel.hpp"

#include <algorithm>
#include <cassert>
#include <limits>
#include <tuple>

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

LatticeNumbering::LatticeNumbering(std::shared_ptr<LatticeTopology const> topology, int refinements, int order, bool with_copies)
    : m((std::int64_t{order} << refinements) + 1),
      lattice_kinds(order, std::int64_t{1} << refinements),
      face_kinds(order, std::int64_t{1} << refinements),
      edge_kinds(order, std::int64_t{1} << refinements),
      topology_(std::move(topology)) {
  first_face = topology_->n_lattices() * lattice_kinds.size();
  first_edge = first_face + topology_->at_face.size() * face_kinds.size();
  first_vertex = first_edge + topology_->at_edge.size() * edge_kinds.size();
  n_unknowns = first_vertex + topology_->at_vertex.size();
  assert(n_unknowns <= std::numeric_limits<std::int32_t>::max());
  if (with_copies)
    list_copies();
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

void LatticeNumbering::unknowns(std::int32_t lattice, std::int64_t first_plane, std::int64_t end, std::int32_t* out) const {
  std::int64_t const first = lattice * lattice_kinds.size(), p = lattice_kinds.order();
  auto const inner = [&](std::int64_t i) { return i > 0 && i < m - 1; };
  for (std::int64_t k = first_plane; k < end; ++k)
    for (std::int64_t j = 0; j < m; ++j, out += m) {
      if (!inner(j) || !inner(k)) {
        for (std::int64_t i = 0; i < m; ++i)
          out[i] = static_cast<std::int32_t>(unknown(lattice, i, j, k));
        continue;
      }
      out[0] = static_cast<std::int32_t>(unknown(lattice, 0, j, k));
      out[m - 1] = static_cast<std::int32_t>(unknown(lattice, m - 1, j, k));
      // Nodes of a kind follow one another along x.
      for (std::int64_t begin = 1; begin <= p && begin < m - 1; ++begin) {
        std::int64_t next = first + lattice_kinds.place({begin, j, k});
        for (std::int64_t i = begin; i < m - 1; i += p)
          out[i] = static_cast<std::int32_t>(next++);
      }
    }
}

void LatticeNumbering::list_copies() {
  offsets.resize(static_cast<std::size_t>(n_rim()) + 1);
  std::int64_t n_copies = 0;
  for (auto const& [parts, nodes] :
       {std::pair(&topology_->at_face, face_kinds.size()), std::pair(&topology_->at_edge, edge_kinds.size()),
        std::pair(&topology_->at_vertex, std::int64_t{1})})
    n_copies += nodes * static_cast<std::int64_t>(parts->parts.size());
  copies.resize(static_cast<std::size_t>(n_copies));

  // Each node of part e has as many copies as there are lattices at e. `places` are those of the nodes, `node` their local numbers.
  std::int64_t first_unknown = 0, first_copy = 0;
  auto const list = [&](LatticeParts const& all, std::vector<std::int64_t> const& places, auto const& node) {
    auto const count = static_cast<std::int64_t>(places.size());
    parallel_for(n_parts(all.size(), 64), [&](std::int64_t block) {
      auto const [begin, end] = part(all.size(), 64, block);
      for (std::int64_t e = begin; e < end; ++e) {
        std::int64_t const n_parts_here = all.offsets[e + 1] - all.offsets[e];
        for (std::int64_t i = 0; i < count; ++i) {
          std::int64_t const at = first_copy + all.offsets[e] * count + places[i] * n_parts_here;
          offsets[first_unknown + e * count + places[i]] = at;
          for (std::int64_t c = 0; c < n_parts_here; ++c) {
            LatticePart const& here = all.parts[all.offsets[e] + c];
            copies[at + c] = {here.lattice, static_cast<std::int32_t>(node(here, i))};
          }
          // A lattice may meet itself.
          std::sort(copies.begin() + at, copies.begin() + at + n_parts_here, [](LatticeNode const& a, LatticeNode const& b) {
            return std::tie(a.lattice, a.node) < std::tie(b.lattice, b.node);
          });
        }
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
  offsets[first_unknown] = first_copy;
}

LatticeLayout LatticeNumbering::layout() const {
  std::int64_t const p = lattice_kinds.order(), n_lattices = topology_->n_lattices();
  LatticeLayout result;
  result.n_lattices = n_lattices;
  result.n_unknowns = n_unknowns;
  result.order = static_cast<std::int32_t>(p);
  result.cells = static_cast<std::int32_t>((m - 1) / p);
  result.kind_first.resize(static_cast<std::size_t>(p * p * p));
  for (NodeKinds<3>::Kind const& kind : lattice_kinds.kinds())
    result.kind_first[(kind.residue[2] * p + kind.residue[1]) * p + kind.residue[0]] = static_cast<std::int32_t>(kind.first);
  LatticeRim const rim = result.rim();
  result.rim_unknowns.resize(static_cast<std::size_t>(n_lattices * rim.size()));
  result.copy_offsets = offsets;
  result.copies.resize(copies.size());
  parallel_for(n_parts(n_rim(), 4096), [&](std::int64_t block) {
    auto const [begin, end] = part(n_rim(), 4096, block);
    for (std::int64_t i = begin; i < end; ++i) {
      for (auto c = offsets[i]; c < offsets[i + 1]; ++c) {
        std::int64_t const node = copies[c].node;
        std::int64_t const place = copies[c].lattice * rim.size() + rim.place(node % m, node / m % m, node / (m * m));
        result.copies[c] = static_cast<std::int32_t>(place);
        result.rim_unknowns[place] = static_cast<std::int32_t>(first_face + i);
      }
      std::sort(result.copies.begin() + offsets[i], result.copies.begin() + offsets[i + 1]);
    }
  });
  return result;
}

}  // namespace poisson::assembly
