#include "assembly/mesh/lattice_mesh.hpp"

#include "assembly/dealii/lattice_manifolds.hpp"
#include "assembly/dealii/mesh.hpp"
#include "assembly/dealii/sources.hpp"
#include "assembly/parallel.hpp"
#include "gpu/core/memory.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <deal.II/base/exceptions.h>
#include <numeric>

namespace poisson::assembly {
namespace {

/// Nodes of MappingQ(p) on one curved cell: the (p + 1)^3 Gauss-Lobatto nodes, found from the cell's vertices and manifolds as
/// MappingQ::compute_mapping_support_points does.
class CurvedCell {
public:
  explicit CurvedCell(std::vector<double> const& nodes)
      : p_(static_cast<int>(nodes.size()) - 1), inner_(p_ - 1), place_((p_ + 1) * (p_ + 1) * (p_ + 1)), weights_(nodes) {
    int const q = inner_, n_edge = 12 * q, n_face = 6 * q * q;
    auto const side = [&](double t, int at) { return at == 0 ? 1 - t : t; };
    auto const lexicographic = [&](int i, int j, int k) { return (k * (p_ + 1) + j) * (p_ + 1) + i; };
    for (int vertex = 0; vertex < 8; ++vertex)
      order_.push_back(lexicographic((vertex & 1) * p_, (vertex >> 1 & 1) * p_, (vertex >> 2) * p_));
    for (HexEdge const& edge : hex_edges)
      for (int i = 1; i < p_; ++i) {
        std::array<int, 3> index{edge.at[0] * p_, edge.at[1] * p_, edge.at[2] * p_};
        index[edge.direction] = i;
        order_.push_back(lexicographic(index[0], index[1], index[2]));
      }
    for (int face = 0; face < 6; ++face)
      for (int v = 1; v < p_; ++v)
        for (int u = 1; u < p_; ++u) {
          std::array<int, 3> index{};
          index[face / 2] = face % 2 * p_;
          index[face_u(face)] = u;
          index[face_v(face)] = v;
          order_.push_back(lexicographic(index[0], index[1], index[2]));
        }
    for (int k = 1; k < p_; ++k)
      for (int j = 1; j < p_; ++j)
        for (int i = 1; i < p_; ++i)
          order_.push_back(lexicographic(i, j, k));
    for (std::size_t i = 0; i < order_.size(); ++i)
      place_[order_[i]] = static_cast<int>(i);

    cell_weights_.reinit(q * q * q, 8 + n_edge + n_face);
    vertex_weights_.reinit(order_.size() - 8, 8);
    for (int k = 0; k < q; ++k)
      for (int j = 0; j < q; ++j)
        for (int i = 0; i < q; ++i) {
          std::array<int, 3> const index{i, j, k};
          std::array<double, 3> const x{nodes[i + 1], nodes[j + 1], nodes[k + 1]};
          int const row = (k * q + j) * q + i;
          for (int vertex = 0; vertex < 8; ++vertex)
            cell_weights_(row, vertex) = side(x[0], vertex & 1) * side(x[1], vertex >> 1 & 1) * side(x[2], vertex >> 2);
          for (int e = 0; e < 12; ++e) {
            HexEdge const& edge = hex_edges[e];
            double weight = -1;
            for (int d = 0; d < 3; ++d)
              if (d != edge.direction)
                weight *= side(x[d], edge.at[d]);
            cell_weights_(row, 8 + e * q + index[edge.direction]) = weight;
          }
          for (int face = 0; face < 6; ++face)
            cell_weights_(row, 8 + n_edge + (face * q + index[face_v(face)]) * q + index[face_u(face)]) =
                side(x[face / 2], face % 2);
        }
    for (std::size_t row = 8; row < order_.size(); ++row) {
      int const i = order_[row];
      double const x = nodes[i % (p_ + 1)], y = nodes[i / (p_ + 1) % (p_ + 1)], z = nodes[i / (p_ + 1) / (p_ + 1)];
      for (int vertex = 0; vertex < 8; ++vertex)
        vertex_weights_(row - 8, vertex) = side(x, vertex & 1) * side(y, vertex >> 1 & 1) * side(z, vertex >> 2);
    }
    for (int face = 0; face < 6; ++face)
      for (int s = 0; s < 4; ++s) {
        HexEdge edge{s < 2 ? face_v(face) : face_u(face), {}};
        edge.at[face / 2] = face % 2;
        edge.at[s < 2 ? face_u(face) : face_v(face)] = s % 2;
        edge_of_face_[face][s] = static_cast<int>(std::find(hex_edges.begin(), hex_edges.end(), edge) - hex_edges.begin());
      }
    points_.resize(order_.size());
    perimeter_.resize(4 + 4 * q);
  }

  /// Sets a vertex; they come first.
  void set_vertex(int vertex, Point const& point) { points_[vertex] = point; }
  /// Node (i, j, k), lexicographic, after compute.
  [[nodiscard]] Point const& node(int i) const { return points_[place_[i]]; }

  void compute(Manifolds const& manifolds) {
    auto const view = [&](std::size_t begin, std::size_t size) { return dealii::ArrayView<Point>(points_.data() + begin, size); };
    auto const known_points = [&](std::size_t size) { return dealii::ArrayView<Point const>(points_.data(), size); };
    auto const q = static_cast<std::size_t>(inner_), n_outer = 8 + 12 * q + 6 * q * q;
    auto const of = [&](int entry) -> Manifold const& { return manifolds[entry] ? *manifolds[entry] : flat_; };
    // One manifold for all sees the vertices only; so does transfinite interpolation, which knows faces and edges itself.
    Manifold const* const own = manifolds[inside];
    bool single = true;
    for (int face = 0; face < 6; ++face)
      single = single && manifolds[face_entry(face)] == own;
    for (int edge = 0; edge < 12; ++edge)
      single = single && manifolds[edge_entry(edge)] == own;
    single = single || dynamic_cast<dealii::TransfiniteInterpolationManifold<3> const*>(own) != nullptr;
    if (single) {
      of(inside).get_new_points(known_points(8), vertex_weights_, view(8, points_.size() - 8));
      return;
    }
    for (int e = 0; e < 12; ++e) {
      HexEdge const& edge = hex_edges[e];
      int const first = edge.at[0] + 2 * edge.at[1] + 4 * edge.at[2];
      std::array<Point, 2> const ends{points_[first], points_[first + (1 << edge.direction)]};
      of(edge_entry(e)).get_new_points(dealii::ArrayView<Point const>(ends.data(), 2), weights_.of_edge, view(8 + e * q, q));
    }
    for (int face = 0; face < 6; ++face) {
      // The perimeter is listed in the face's coordinates: vertices first, then the points of edges.
      int const d = face / 2, u = face_u(face), v = face_v(face), base = face % 2 << d;
      for (int vertex = 0; vertex < 4; ++vertex)
        perimeter_[vertex] = points_[base | (vertex & 1) << u | (vertex >> 1) << v];
      for (int side = 0; side < 4; ++side) {
        auto const number = static_cast<std::size_t>(edge_of_face_[face][side]);
        std::copy_n(points_.begin() + static_cast<std::ptrdiff_t>(8 + number * q), q,
                    perimeter_.begin() + static_cast<std::ptrdiff_t>(4 + side * q));
      }
      of(face_entry(face))
          .get_new_points(dealii::ArrayView<Point const>(perimeter_.data(), perimeter_.size()), weights_.of_face,
                          view(8 + 12 * q + face * q * q, q * q));
    }
    of(inside).get_new_points(known_points(n_outer), cell_weights_, view(n_outer, q * q * q));
  }

private:
  int p_, inner_;
  std::vector<int> order_;                            ///< of each point in MappingQ's order the lexicographic node
  std::vector<int> place_;                            ///< the inverse
  std::array<std::array<int, 4>, 6> edge_of_face_{};  ///< edges u = 0, u = 1, v = 0, v = 1
  NodeWeights weights_;
  dealii::Table<2, double> cell_weights_, vertex_weights_;
  std::vector<Point> points_, perimeter_;
  dealii::FlatManifold<3> flat_;
};

/// What a lattice is made from, and its 3 m^3 coordinates, direction by direction.
struct StraightLattice {
  std::array<Point, 8> vertices;
  double* points;
};
struct PolynomialLattice {
  std::span<Point const> nodes;
  double* points;
};
struct CurvedLattice {
  Manifolds manifolds;
  RimFrames frames;
  double* points;
};

/// Fills the nodes of lattices.
class Builder {
public:
  Builder(LatticeMesh const& mesh, std::vector<double> const& nodes)
      : n_(mesh.n), m_(mesh.m), p_(mesh.order), isoparametric_(mesh.isoparametric), nodes_(nodes), parameter_(mesh.m) {
    for (std::int64_t i = 0; i < m_; ++i)
      parameter_[i] = (static_cast<double>(i / p_) + nodes[i % p_]) / static_cast<double>(n_);
    for (unsigned directions = 1; directions < 8; ++directions)
      stencils_[directions] = make_stencil(directions);
  }

  void add(std::array<Point, 8> const& vertices, Manifolds const& manifolds, LatticeTopology::Lattice const& lattice,
           double* points) {
    if (straight(manifolds)) {
      straight_.push_back({vertices, points});
      return;
    }
    for (int vertex = 0; vertex < 8; ++vertex)
      set(points, LatticeTopology::vertex_node(vertex, m_), vertices[vertex]);
    curved_.push_back({manifolds, RimFrames(lattice), points});
  }

  /// A cell of a file that has its own shape.
  void add(std::span<Point const> shape_nodes, double* points) { polynomial_.push_back({shape_nodes, points}); }

  /// `order`: that of the shapes.
  void build(int order) const {
    if (!polynomial_.empty()) {
      auto const n = static_cast<std::size_t>(order + 1);
      std::vector<double> values(m_ * n);
      for (std::int64_t i = 0; i < m_; ++i)
        lagrange_values(order, parameter_[i], std::span(values).subspan(i * n, n));
      for_rows(std::ssize(polynomial_), m_ * m_, m_ * n, [&](std::int64_t lattice, std::int64_t row) {
        polynomial_row(polynomial_[lattice], row % m_, row / m_, n, values);
      });
    }
    for_rows(std::ssize(straight_), m_ * m_, m_, [&](std::int64_t lattice, std::int64_t row) {
      trilinear_row(straight_[lattice].vertices, row % m_, row / m_, straight_[lattice].points);
    });
    // Each step halves cells of 2 `step` fine cells a side: edges get new points before the faces that they bound, and these before
    // cells. So planes that are there are completed before those between them, and in a plane line after line, which finds what
    // it needs in the cache. A pass over all lattices for each kind of entity would read and write 340 bytes a node.
    for (std::int64_t step = n_ / 2; step >= 1; step /= 2) {
      StepOffsets const offsets = offsets_of(step);
      for (bool const between : {false, true})
        for_rows(std::ssize(curved_), n_ / (2 * step) + (between ? 0 : 1), (n_ / step + 1) * (n_ / step + 1),
                 [&](std::int64_t lattice, std::int64_t plane) {
                   halve_plane(curved_[lattice], offsets, step, 2 * step * plane + (between ? step : 0), between);
                 });
    }
    if (p_ > 1)
      for_rows(
          std::ssize(curved_), n_ * n_, n_ * p_ * p_ * p_, [&] { return CurvedCell(nodes_); },
          [&](CurvedCell& cell, std::int64_t lattice, std::int64_t row) {
            for (std::int64_t i = 0; i < n_; ++i)
              fill_cell({i, row % n_, row / n_}, curved_[lattice].manifolds, cell, curved_[lattice].points);
          });
  }

private:
  [[nodiscard]] std::int64_t size() const { return m_ * m_ * m_; }
  [[nodiscard]] std::int64_t node(std::int64_t i, std::int64_t j, std::int64_t k) const { return (k * m_ + j) * m_ + i; }
  [[nodiscard]] Point get(double const* points, std::int64_t at) const {
    return {points[at], points[size() + at], points[2 * size() + at]};
  }
  void set(double* points, std::int64_t at, Point const& point) const {
    for (unsigned d = 0; d < 3; ++d)
      points[d * size() + at] = point[d];
  }

  /// Row (j, k) of the trilinear image of the regular grid.
  void trilinear_row(std::array<Point, 8> const& vertices, std::int64_t j, std::int64_t k, double* points) const {
    double const t = parameter_[j], s = parameter_[k];
    for (unsigned d = 0; d < 3; ++d) {
      auto const end = [&](int x) {
        double const low = (1 - t) * vertices[x][d] + t * vertices[x + 2][d];
        double const high = (1 - t) * vertices[x + 4][d] + t * vertices[x + 6][d];
        return (1 - s) * low + s * high;
      };
      double const begin = end(0), last = end(1);
      double* const x = points + d * size() + node(0, j, k);
      for (std::int64_t i = 0; i < m_; ++i)
        x[i] = (1 - parameter_[i]) * begin + parameter_[i] * last;
    }
  }

  /// Row (j, k) of the image of the regular grid under polynomials. `values`: of n polynomials at the m nodes of a side.
  void polynomial_row(PolynomialLattice const& lattice, std::int64_t j, std::int64_t k, std::size_t n,
                      std::vector<double> const& values) const {
    std::array<Point, 16> line;  // the polynomial of this row
    for (std::size_t a = 0; a < n; ++a) {
      line[a] = Point();
      for (std::size_t c = 0; c < n; ++c)
        for (std::size_t b = 0; b < n; ++b)
          line[a] += values[k * n + c] * values[j * n + b] * lattice.nodes[(c * n + b) * n + a];
    }
    for (std::int64_t i = 0; i < m_; ++i) {
      Point point;
      for (std::size_t a = 0; a < n; ++a)
        point += values[i * n + a] * line[a];
      set(lattice.points, node(i, j, k), point);
    }
  }

  /// How far from a new point the points are that it is made of, by the directions in which its entity extends.
  using StepOffsets = std::array<std::vector<std::int64_t>, 8>;
  [[nodiscard]] StepOffsets offsets_of(std::int64_t step) const {
    StepOffsets offsets;
    for (unsigned directions = 1; directions < 8; ++directions)
      for (auto const& offset : stencils_[directions].offsets)
        offsets[directions].push_back(step * p_ * node(offset[0], offset[1], offset[2]));
    return offsets;
  }

  /// The new points in plane k; `between`: of entities that extend in z.
  void halve_plane(CurvedLattice const& lattice, StepOffsets const& offsets, std::int64_t step, std::int64_t k,
                   bool between) const {
    auto const line = [&](unsigned directions, std::int64_t j) {
      unsigned const all = directions | (between ? 4U : 0U);
      if (all != 0)
        halve_line(all, lattice, offsets[all], step, j, k);
    };
    for (std::int64_t j = 0; j <= n_; j += 2 * step) {
      line(0, j);
      line(1, j);
      if (j > 0) {
        line(2, j - step);
        line(3, j - step);
      }
    }
  }

  /// The new points in line (j, k) of entities that extend in `directions`.
  void halve_line(unsigned directions, CurvedLattice const& lattice, std::vector<std::int64_t> const& offsets, std::int64_t step,
                  std::int64_t j, std::int64_t k) const {
    auto const& [manifolds, frames, points] = lattice;
    Stencil const& stencil = stencils_[directions];
    bool const on_edge = std::popcount(directions) == 1;
    int const face = std::popcount(directions) == 2 ? 2 * std::countr_zero(~directions) : -1;
    auto const side = [&](std::int64_t i) { return i == 0 ? 0 : i == n_ ? 2 : 1; };
    auto const entry = stride[1] * side(j) + stride[2] * side(k);
    // Along the line only the ends can differ in their manifold.
    for (std::int64_t i = (directions & 1U) != 0 ? step : 0; i <= n_; i += 2 * step) {
      Manifold const* const manifold = manifolds[entry + side(i)];
      std::int64_t const at = node(i, j, k) * p_;
      if (manifold == nullptr) {
        std::int64_t const alike = side(i) == 1 ? (n_ - 1 - i) / (2 * step) + 1 : 1;
        mean(offsets, stencil.weights, at, 2 * step * p_, alike, points);
        i += (alike - 1) * 2 * step;
        continue;
      }
      std::array<Point, 26> surrounding;
      for (std::size_t s = 0; s < offsets.size(); ++s)
        surrounding[s] = get(points, at + offsets[s]);
      auto const here = entry + side(i);
      if (on_edge && frames.reversed[here][std::countr_zero(directions)])
        std::swap(surrounding[0], surrounding[1]);
      for (int const f : {face, face + 1})
        if (face >= 0 && here == face_entry(f))
          for (std::size_t s = 0; s < 8; ++s) {
            auto const& offset = frames.around[f][s];
            surrounding[s] = get(points, at + step * p_ * node(offset[0], offset[1], offset[2]));
          }
      set(points, at,
          manifold->get_new_point(dealii::ArrayView<Point const>(surrounding.data(), offsets.size()),
                                  dealii::ArrayView<double const>(stencil.weights.data(), stencil.weights.size())));
    }
  }

  /// Weighted means at `count` nodes from `at` on, `distance` apart.
  void mean(std::vector<std::int64_t> const& offsets, std::vector<double> const& weights, std::int64_t at, std::int64_t distance,
            std::int64_t count, double* points) const {
    // Many sums side by side fill vector registers, if the compiler knows how far apart their terms are; most are so on the last
    // level. No node here is a term of another.
    constexpr std::int64_t at_once = 64;
    std::array<double, at_once> sums;
    for (int d = 0; d < 3; ++d)
      for (std::int64_t first = 0; first < count; first += at_once) {
        std::int64_t const n = std::min(at_once, count - first);
        double* const x = points + d * size() + at + first * distance;
        std::fill_n(sums.begin(), n, 0.0);
        for (std::size_t s = 0; s < offsets.size(); ++s) {
          double const weight = weights[s];
          double const* const from = x + offsets[s];
          auto const add = [&](std::int64_t apart) {
            for (std::int64_t i = 0; i < n; ++i)
              sums[i] += weight * from[i * apart];
          };
          distance == 2 ? add(2) : add(distance);
        }
        for (std::int64_t i = 0; i < n; ++i)
          x[i * distance] = sums[i];
      }
  }

  /// The nodes of one cell that are not vertices, and not on the low sides unless these are the lattice's: of the cells at a node
  /// the first one sets it.
  void fill_cell(std::array<std::int64_t, 3> const& cell, Manifolds const& manifolds, CurvedCell& curved, double* points) const {
    std::int64_t const origin = node(cell[0], cell[1], cell[2]) * p_;
    std::array<Point, 8> vertices;
    for (int vertex = 0; vertex < 8; ++vertex)
      vertices[vertex] = get(points, origin + p_ * node(vertex & 1, vertex >> 1 & 1, vertex >> 2));
    Manifolds own{};
    if (isoparametric_)
      for (int entry = 0; entry < 27; ++entry) {
        int place = 0;
        for (int d = 0; d < 3; ++d) {
          int const side = entry / stride[d] % 3;
          bool const rim = (side == 0 && cell[d] == 0) || (side == 2 && cell[d] == n_ - 1);
          place += stride[d] * (rim ? side : 1);
        }
        own[entry] = manifolds[place];
      }
    bool const flat = straight(own);
    if (!flat) {
      for (int vertex = 0; vertex < 8; ++vertex)
        curved.set_vertex(vertex, vertices[vertex]);
      curved.compute(own);
    }
    auto const begin = [&](int d) { return cell[d] == 0 ? 0 : 1; };
    for (int k = begin(2); k <= p_; ++k)
      for (int j = begin(1); j <= p_; ++j)
        for (int i = begin(0); i <= p_; ++i) {
          if (i % p_ == 0 && j % p_ == 0 && k % p_ == 0)
            continue;
          Point point;
          if (flat)
            for (int vertex = 0; vertex < 8; ++vertex)
              point += (vertex & 1 ? nodes_[i] : 1 - nodes_[i]) * (vertex & 2 ? nodes_[j] : 1 - nodes_[j]) *
                       (vertex & 4 ? nodes_[k] : 1 - nodes_[k]) * vertices[vertex];
          else
            point = curved.node((k * (p_ + 1) + j) * (p_ + 1) + i);
          set(points, origin + node(i, j, k), point);
        }
  }

  std::int64_t n_, m_;
  int p_;
  bool isoparametric_;
  std::vector<double> const& nodes_;
  std::vector<double> parameter_;  ///< reference coordinates of the m nodes of a side
  std::array<Stencil, 8> stencils_;
  std::vector<StraightLattice> straight_;
  std::vector<PolynomialLattice> polynomial_;
  std::vector<CurvedLattice> curved_;
};

}  // namespace

LatticeMesh::LatticeMesh(Mesh const& coarse, int refinements_, std::vector<double> const& nodes)
    : LatticeMesh(coarse, std::make_shared<LatticeTopology const>(coarse), refinements_, nodes, {}) {
  std::vector<std::int32_t> all(obstacle.empty() ? topology->lattices.size() : 0);
  std::iota(all.begin(), all.end(), 0);
  make_nodes(coarse, nodes, all, true);
}

LatticeMesh::LatticeMesh(Mesh const& coarse, std::shared_ptr<LatticeTopology const> topology_, int refinements_,
                         std::vector<double> const& nodes, std::vector<std::int32_t> const& of)
    : topology(std::move(topology_)),
      refinements(refinements_),
      order(static_cast<int>(nodes.size()) - 1),
      n(std::int64_t{1} << refinements_),
      m(order * n + 1),
      isoparametric(coarse.curved && order > 1) {
  assert(refinements >= 0 && order >= 1);
  obstacle = topology->obstacle;
  dealii::Triangulation<3> const& triangulation = *coarse.triangulation;
  for (auto const id : triangulation.get_manifold_ids())
    if (id != dealii::numbers::flat_manifold_id && !known(triangulation.get_manifold(id)) && obstacle.empty())
      obstacle = "manifold " + std::to_string(id) + " is of a kind whose new points are not known to be weighted by get_new_point";
  make_nodes(coarse, nodes, of, false);
}

bool LatticeMesh::is_made_easily(Mesh const& coarse, LatticeTopology const& topology) {
  if (!topology.obstacle.empty() || coarse.curved_cells)
    return false;
  for (auto const& cell : coarse.triangulation->active_cell_iterators())
    if (auto const id = cell->manifold_id();
        id != dealii::numbers::flat_manifold_id && !plain(coarse.triangulation->get_manifold(id)))
      return false;
  auto const meet_others = [](LatticeParts const& all) {
    for (std::int64_t e = 0; e < all.size(); ++e)
      for (std::int64_t i = all.offsets[e] + 1; i < all.offsets[e + 1]; ++i)
        if (all.parts[i].lattice == all.parts[i - 1].lattice)
          return false;
    return true;
  };
  return meet_others(topology.at_face) && meet_others(topology.at_edge) && meet_others(topology.at_vertex);
}

void LatticeMesh::make_nodes(Mesh const& coarse, std::vector<double> const& nodes, std::vector<std::int32_t> const& of,
                             bool share) {
  if (!obstacle.empty() || of.empty())
    return;
  dealii::Triangulation<3> const& triangulation = *coarse.triangulation;
  std::int64_t const size = 3 * m * m * m;
  check_memory(static_cast<std::int64_t>(sizeof(double)) * size * std::ssize(of), "the nodes of the mesh");
  points_.resize(static_cast<std::size_t>(size * std::ssize(of)));
  Builder builder(*this, nodes);
  double* points = points_.data();
  auto next = of.begin();
  for (auto const& cell : triangulation.active_cell_iterators()) {
    if (next == of.end() || static_cast<std::int32_t>(cell->active_cell_index()) != *next)
      continue;
    ++next;
    if (coarse.curved_cells) {
      builder.add(coarse.curved_cells->of_cell(cell->active_cell_index()), points);
      points += size;
      continue;
    }
    std::array<Point, 8> vertices;
    for (unsigned v = 0; v < 8; ++v)
      vertices[v] = cell->vertex(v);
    builder.add(vertices, manifolds_of(triangulation, cell), topology->lattices[cell->active_cell_index()], points);
    points += size;
  }
  try {
    builder.build(coarse.curved_cells ? coarse.curved_cells->order : 1);
    if (share)
      share_rims();
  } catch (dealii::ExceptionBase const& exception) {
    obstacle = "deal.II says: " + brief_message(exception);
    free_memory(points_);
  }
}

void LatticeMesh::share_rims() {
  std::int64_t const size = m * m * m;
  // The nodes of a part are copied from the first lattice that has it, `node(part, i)` for i in [0, count).
  auto const share = [&](LatticeParts const& all, std::int64_t count, auto const& node) {
    parallel_for(n_parts(all.size(), 64), [&](std::int64_t block) {
      auto const [begin, end] = part(all.size(), 64, block);
      for (std::int64_t e = begin; e < end; ++e) {
        LatticePart const first = all.parts[all.offsets[e]];
        for (std::int64_t other = all.offsets[e] + 1; other < all.offsets[e + 1]; ++other)
          for (std::int64_t i = 0; i < count; ++i)
            for (int d = 0; d < 3; ++d)
              points_[(3 * static_cast<std::int64_t>(all.parts[other].lattice) + d) * size + node(all.parts[other], i)] =
                  points_[(3 * static_cast<std::int64_t>(first.lattice) + d) * size + node(first, i)];
      }
    });
  };
  std::int64_t const inner = m - 2;
  share(topology->at_face, inner * inner,
        [&](LatticePart face, std::int64_t i) { return topology->face_node(face, 1 + i % inner, 1 + i / inner, m); });
  share(topology->at_edge, inner, [&](LatticePart edge, std::int64_t i) { return topology->edge_node(edge, 1 + i, m); });
  share(topology->at_vertex, 1, [&](LatticePart vertex, std::int64_t) { return LatticeTopology::vertex_node(vertex.number, m); });
}

}  // namespace poisson::assembly
