#include "assembly/system/box_boundary.hpp"

#include "assembly/parallel.hpp"
#include "assembly/system/boundary_flux.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace poisson::assembly {

namespace {

using Index = std::array<std::int64_t, 3>;

struct Range : RangeOfBox {
  Range() = default;
  Range(Index const& low, Index const& high) : RangeOfBox{low, high} {}
  [[nodiscard]] bool is_empty() const { return first[0] >= end[0] || first[1] >= end[1] || first[2] >= end[2]; }
  [[nodiscard]] Index count() const { return {end[0] - first[0], end[1] - first[1], end[2] - first[2]}; }
  [[nodiscard]] Range within(Range const& other) const {
    Range both;
    for (std::size_t d = 0; d < 3; ++d) {
      both.first[d] = std::max(first[d], other.first[d]);
      both.end[d] = std::min(end[d], other.end[d]);
    }
    return both;
  }
  [[nodiscard]] bool holds(Range const& other) const {
    if (other.is_empty())
      return true;
    Range const both = within(other);
    return both.first == other.first && both.end == other.end;
  }
};

/// Cells a side of a tile: so few that what a thread keeps of them stays in its cache.
constexpr std::int64_t tile_cells = 32;

/// Those at `wanted` nodes among the values at `nodes`, which hold them.
HostVector<double> part_of_nodes(Range const& nodes, std::span<double const> values, Range const& wanted) {
  Index const n = nodes.count(), m = wanted.count();
  HostVector<double> result;
  result.reserve(static_cast<std::size_t>(m[0] * m[1] * m[2]));
  for (std::int64_t z = wanted.first[2]; z < wanted.end[2]; ++z)
    for (std::int64_t y = wanted.first[1]; y < wanted.end[1]; ++y) {
      auto const line = ((z - nodes.first[2]) * n[1] + y - nodes.first[1]) * n[0] - nodes.first[0];
      result.insert(result.end(), values.begin() + line + wanted.first[0], values.begin() + line + wanted.end[0]);
    }
  return result;
}

/// 1 for those of `all` cells or nodes, x fastest, that are in `marked`, which they hold.
std::vector<std::uint8_t> marks_of(Range const& all, Range const& marked) {
  Index const n = all.count();
  std::vector<std::uint8_t> marks(static_cast<std::size_t>(n[0] * n[1] * n[2]), 0);
  for (std::int64_t z = marked.first[2]; z < marked.end[2]; ++z)
    for (std::int64_t y = marked.first[1]; y < marked.end[1]; ++y)
      for (std::int64_t x = marked.first[0]; x < marked.end[0]; ++x)
        marks[static_cast<std::size_t>(((z - all.first[2]) * n[1] + y - all.first[1]) * n[0] + x - all.first[0])] = 1;
  return marks;
}

/// A side of the box, with the cells and nodes that count there: of `own` cells and their nodes, where those at an edge or a corner
/// of the mesh count at one of their sides, and those between two parts of it at the part above.
class Side {
public:
  Side(Space const& space, Range const& own, int side)
      : order_(space.order),
        cells_{{}, space.box->cells},
        nodes_{{}, space.box_nodes},
        number_(static_cast<unsigned>(side)),
        d_(number_ / 2) {
    BoxGrid const& box = *space.box;
    bool const upper = side % 2 == 1;
    std::int64_t const n = cells_.end[d_];
    cells_.first[d_] = upper ? n - 1 : 0;
    cells_.end[d_] = cells_.first[d_] + 1;
    counted_cells_ = cells_;
    if (upper && n == 1 && box.is_boundary(side - 1))
      counted_cells_.end[d_] = counted_cells_.first[d_];
    counted_nodes_ = nodes_;
    counted_nodes_.first[d_] = upper ? n * order_ : 0;
    counted_nodes_.end[d_] = counted_nodes_.first[d_] + 1;
    Range own_nodes = nodes_of(own);
    for (std::size_t e = 0; e < 3; ++e) {
      int const lower_side = 2 * static_cast<int>(e), upper_side = lower_side + 1;
      if (own.end[e] < box.cells[e] || !box.is_boundary(upper_side))
        own_nodes.end[e] -= 1;
      if (e > d_ && box.is_boundary(lower_side)) {
        counted_cells_.first[e] += 1;
        counted_nodes_.first[e] += 1;
      }
      if (e > d_ && box.is_boundary(upper_side)) {
        counted_cells_.end[e] -= 1;
        counted_nodes_.end[e] -= 1;
      }
    }
    counted_cells_ = counted_cells_.within(own);
    counted_nodes_ = counted_nodes_.within(own_nodes);
    nodes_ = nodes_of(cells_);
    inner_cells_ = counted_cells_;
    inner_nodes_ = counted_nodes_;
    for (std::size_t e = 0; e < 3; ++e) {
      if (e != d_ && box.is_boundary(2 * static_cast<int>(e))) {
        inner_cells_.first[e] = std::max<std::int64_t>(inner_cells_.first[e], 1);
        inner_nodes_.first[e] = std::max<std::int64_t>(inner_nodes_.first[e], 1);
      }
      if (e != d_ && box.is_boundary(2 * static_cast<int>(e) + 1)) {
        inner_cells_.end[e] = std::min(inner_cells_.end[e], box.cells[e] - 1);
        inner_nodes_.end[e] = std::min(inner_nodes_.end[e], box.cells[e]);
      }
    }
    if (order_ > 1 || n == 1 || inner_cells_.is_empty() || inner_nodes_.is_empty())
      inner_cells_ = inner_nodes_ = {};
  }

  /// Of the box, and of its boundary.
  [[nodiscard]] unsigned number() const { return number_; }
  /// Counted cells with one face on the boundary, and counted nodes that are on this side only; of order 1.
  [[nodiscard]] Range const& inner_cells() const { return inner_cells_; }
  [[nodiscard]] Range const& inner_nodes() const { return inner_nodes_; }

  [[nodiscard]] Range const& nodes() const { return nodes_; }
  [[nodiscard]] std::int64_t n_nodes() const {
    Index const n = nodes_.count();
    return n[0] * n[1] * n[2];
  }

  /// Cells and nodes that count, and the cells that are needed for them.
  struct Tile {
    Range own, counted;  ///< cells, nodes
    Range around;        ///< the cells, and those that the nodes touch
  };
  /// All that counts, cut into squares.
  [[nodiscard]] std::vector<Tile> tiles() const {
    std::vector<Tile> all;
    for (std::int64_t i = 0; i < in(first_other()) * in(second_other()); ++i)
      if (Tile const one = tile(i); !one.own.is_empty() || !one.counted.is_empty())
        all.push_back(one);
    return all;
  }
  /// What counts around inner cells and nodes: below and above them in the second direction, and beside them in the first one.
  /// There may be nothing: in a whole box the edges count at sides of higher numbers. Precondition: there are inner ones.
  [[nodiscard]] std::vector<Tile> strips() const {
    std::vector<Tile> all;
    for (bool const beside : {false, true})
      for (bool const upper : {false, true}) {
        Tile const strip =
            tile_of(strip_of(counted_cells_, inner_cells_, beside, upper), strip_of(counted_nodes_, inner_nodes_, beside, upper));
        if (!strip.own.is_empty() || !strip.counted.is_empty())
          all.push_back(strip);
      }
    return all;
  }
  [[nodiscard]] Range nodes_of(Range const& cells) const {
    Range nodes;
    for (std::size_t d = 0; d < 3; ++d) {
      nodes.first[d] = cells.first[d] * order_;
      nodes.end[d] = cells.end[d] * order_ + 1;
    }
    return nodes;
  }

private:
  [[nodiscard]] Tile tile(std::int64_t i) const {
    Range own = cells_, counted = nodes_;
    std::array<std::int64_t, 2> const at{i % in(first_other()), i / in(first_other())};
    for (std::size_t k = 0; k < 2; ++k) {
      std::size_t const e = k == 0 ? first_other() : second_other();
      std::int64_t const n = cells_.end[e], first = at[k] * tile_cells, end = std::min(n, first + tile_cells);
      own.first[e] = first;
      own.end[e] = end;
      counted.first[e] = first * order_;
      counted.end[e] = end == n ? end * order_ + 1 : end * order_;
    }
    return tile_of(own.within(counted_cells_), counted.within(counted_nodes_));
  }
  [[nodiscard]] Range strip_of(Range const& counted, Range const& inner, bool beside, bool upper) const {
    std::size_t const e = beside ? first_other() : second_other();
    Range strip = counted;
    if (beside) {
      strip.first[second_other()] = inner.first[second_other()];
      strip.end[second_other()] = inner.end[second_other()];
    }
    if (upper)
      strip.first[e] = inner.end[e];
    else
      strip.end[e] = inner.first[e];
    return strip;
  }
  [[nodiscard]] Tile tile_of(Range const& own, Range const& counted) const {
    if (counted.is_empty())
      return {own, counted, own};
    Tile tile{own, counted, {}};
    for (std::size_t e = 0; e < 3; ++e) {
      // The node of a vertex is in two cells.
      tile.around.first[e] = counted.first[e] == 0 ? 0 : (counted.first[e] - 1) / order_;
      tile.around.end[e] = (counted.end[e] - 1) / order_ + 1;
      if (!own.is_empty()) {
        tile.around.first[e] = std::min(tile.around.first[e], own.first[e]);
        tile.around.end[e] = std::max(tile.around.end[e], own.end[e]);
      }
    }
    tile.around = tile.around.within(cells_);
    return tile;
  }
  [[nodiscard]] std::size_t first_other() const { return d_ == 0 ? 1 : 0; }
  [[nodiscard]] std::size_t second_other() const { return d_ == 2 ? 1 : 2; }
  [[nodiscard]] std::int64_t in(std::size_t direction) const { return n_parts(cells_.end[direction], tile_cells); }

  int order_;
  Range cells_, nodes_;  ///< of the layer
  unsigned number_;
  std::size_t d_;  ///< the direction that the side is normal to
  Range counted_cells_, counted_nodes_, inner_cells_, inner_nodes_;
};

/// The node of an unknown, as a range.
Range node_of(Space const& space, std::int64_t unknown) {
  std::int64_t const nx = space.box_nodes[0], ny = space.box_nodes[1];
  Index const at{unknown % nx, unknown / nx % ny, unknown / (nx * ny)};
  return {at, {at[0] + 1, at[1] + 1, at[2] + 1}};
}

/// The data with the loads of the unknowns at these nodes, numbered among them.
ProblemData data_at(ProblemData const& data, Space const& space, Range const& nodes) {
  ProblemData result = data;
  result.point_loads.loads.clear();
  Index const n = nodes.count();
  for (PointLoads::Load load : data.point_loads.loads) {
    Range const node = node_of(space, load.unknown);
    if (!nodes.holds(node))
      continue;
    Index const& at = node.first;
    load.unknown =
        static_cast<std::int32_t>(((at[2] - nodes.first[2]) * n[1] + at[1] - nodes.first[1]) * n[0] + at[0] - nodes.first[0]);
    load.cell = -1;
    result.point_loads.loads.push_back(load);
  }
  return result;
}

/// Nodes in the layers of sides whose tiles threads work on together. A small box has fewer tiles at a side than there are threads.
constexpr std::int64_t most_nodes_at_once = std::int64_t{1} << 17;

/// A side with u in its layer.
struct SideValues {
  Side side;
  std::vector<Side::Tile> tiles;
  HostVector<double> high, low;          ///< empty: there are no tiles
  std::optional<BoundaryFlux> inside{};  ///< of inner cells and nodes, which are in no tile then
};

/// Takes out of `found` the nodes of `nodes` that are on one periodic side only: what leaves there is their residual. The others
/// get their numbers in the box.
void add_nodes_of_one_side(Space const& space, Range const& nodes, BoundaryFluxes& found) {
  Index const n = nodes.count();
  std::vector<PeriodicFlux> others;
  for (auto first = found.periodic.begin(); first != found.periodic.end();) {
    auto const last =
        std::find_if(first, found.periodic.end(), [&](PeriodicFlux const& flux) { return flux.node.number != first->node.number; });
    if (last - first == 1) {
      found.boundaries[first->node.boundary].flux -= first->residual;
      first = last;
      continue;
    }
    for (; first != last; ++first) {
      std::int64_t const i = first->node.number;
      Index const at{nodes.first[0] + i % n[0], nodes.first[1] + i / n[0] % n[1], nodes.first[2] + i / (n[0] * n[1])};
      others.push_back(*first);
      others.back().node.number = (at[2] * space.box_nodes[1] + at[1]) * space.box_nodes[0] + at[0];
    }
  }
  found.periodic = std::move(others);
}

/// Adds the fluxes of the tiles of these sides, in their order.
void add_tiles(Space const& space, ReferenceElement const& element, FluxTables const& tables, ProblemData const& data,
               std::vector<SideValues> const& sides, BoundaryFluxes& result) {
  std::vector<std::pair<SideValues const*, Side::Tile const*>> tiles;
  for (SideValues const& of : sides)
    for (Side::Tile const& tile : of.tiles)
      tiles.emplace_back(&of, &tile);
  std::vector<BoundaryFluxes> of_tiles(tiles.size());
  parallel_for(std::ssize(tiles), [&](std::int64_t i) {
    SideValues const& of = *tiles[static_cast<std::size_t>(i)].first;
    Side::Tile const& tile = *tiles[static_cast<std::size_t>(i)].second;
    // Areas, and what natural conditions say, are those of own faces; residuals need all cells around a node.
    Range const nodes = of.side.nodes_of(tile.around);
    HostVector<double> const values = part_of_nodes(of.side.nodes(), of.high, nodes),
                             low_values = of.low.empty() ? HostVector<double>() : part_of_nodes(of.side.nodes(), of.low, nodes);
    std::optional<ProblemData> of_nodes;
    if (!data.point_loads.loads.empty())
      of_nodes.emplace(data_at(data, space, nodes));
    BoundaryFluxes& found = of_tiles[static_cast<std::size_t>(i)];
    found =
        boundary_fluxes(Space(space, element, tile.around.first, tile.around.count()), element, tables, of_nodes ? *of_nodes : data,
                        values, marks_of(nodes, tile.counted), low_values, marks_of(tile.around, tile.own));
    add_nodes_of_one_side(space, nodes, found);
  });
  auto of_tile = of_tiles.begin();
  for (SideValues const& of : sides) {
    if (of.inside)
      result.boundaries[of.side.number()].add(*of.inside);
    for (std::size_t i = 0; i < of.tiles.size(); ++i, ++of_tile) {
      for (auto const& [id, flux] : of_tile->boundaries)
        result.boundaries[id].add(flux);
      result.periodic.insert(result.periodic.end(), of_tile->periodic.begin(), of_tile->periodic.end());
    }
  }
}

}  // namespace

NodesOfBox nodes_among(Space const& space, ValuesOfUnknowns const& u) {
  return [&space, u](Index const& first, Index const& count, HostVector<double>& part) {
    std::vector<std::int32_t> unknowns;
    unknowns.reserve(static_cast<std::size_t>(count[0] * count[1] * count[2]));
    for (std::int64_t z = first[2]; z < first[2] + count[2]; ++z)
      for (std::int64_t y = first[1]; y < first[1] + count[1]; ++y)
        for (std::int64_t x = first[0]; x < first[0] + count[0]; ++x)
          unknowns.push_back(static_cast<std::int32_t>((z * space.box_nodes[1] + y) * space.box_nodes[0] + x));
    part = u(unknowns);
  };
}

std::map<unsigned, BoundaryFlux> box_boundary_fluxes(Space const& space, ReferenceElement const& element, ProblemData const& data,
                                                     NodesOfBox const& u, NodesOfBox const& u_low,
                                                     std::optional<BoxPart> const& own, InsideOfSide const& inside) {
  Range cells{{}, space.box->cells};
  for (std::size_t d = 0; own && d < 3; ++d) {
    cells.first[d] = own->first[d];
    cells.end[d] = own->first[d] + own->cells[d];
  }
  BoundaryFluxes result;
  FluxTables const tables(space, element);
  std::vector<SideValues> sides;
  std::int64_t n_nodes = 0;  // of those in `sides`
  for (int s = 5; s >= 0; --s) {
    if (!space.box->is_boundary(s))
      continue;
    Side const side(space, cells, s);
    bool const knows_inside = inside && !side.inner_cells().is_empty();
    auto tiles = knows_inside ? side.strips() : side.tiles();
    std::int64_t const n_of_side = tiles.empty() ? 0 : side.n_nodes();
    if (n_nodes + n_of_side > most_nodes_at_once) {
      add_tiles(space, element, tables, data, sides, result);
      sides.clear();
      n_nodes = 0;
    }
    n_nodes += n_of_side;
    SideValues& values = sides.emplace_back(SideValues{side, std::move(tiles), {}, {}});
    if (n_of_side > 0) {
      u(side.nodes().first, side.nodes().count(), values.high);
      if (u_low)
        u_low(side.nodes().first, side.nodes().count(), values.low);
    }
    if (!knows_inside)
      continue;
    values.inside = inside(s, side.inner_cells(), side.inner_nodes());
    if (!data.boundary_at(static_cast<unsigned>(s)).is_natural())
      for (PointLoads::Load const& load : data.point_loads.loads)
        if (side.inner_nodes().holds(node_of(space, load.unknown)))
          values.inside->flux += load.value;
  }
  add_tiles(space, element, tables, data, sides, result);
  // Nodes that are on one side only, and their images: as add_periodic_fluxes has it for two nodes and the flow between them.
  for (BoundaryData const& condition : data.boundary)
    if (condition.type == BoundaryType::periodic) {
      double &first = result.boundaries[condition.sides[0]].flux, &second = result.boundaries[condition.sides[1]].flux;
      double const flow = (second - first) / 2;
      first = -flow;
      second = flow;
    }
  if (!result.periodic.empty())
    add_periodic_fluxes(result.periodic, data, result);
  return std::move(result.boundaries);
}

}  // namespace poisson::assembly
