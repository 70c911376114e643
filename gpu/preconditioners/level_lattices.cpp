#include "gpu/preconditioners/level_lattices.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace poisson {

LevelUnknowns unknowns_of(LatticeLayout layout) {
  LevelUnknowns result;
  result.lattices.n_rows = layout.n_unknowns;
  result.lattices.layout = std::move(layout);
  result.rows = RowMap(alone(), result.lattices.n_rows);
  return result;
}

LevelUnknowns coarse_unknowns(Communicator& ranks, LevelUnknowns const& fine, LatticeLayout layout,
                              std::vector<std::int32_t> const& coarse_of) {
  if (!fine.rows.is_shared())
    return unknowns_of(std::move(layout));
  LevelUnknowns result;
  SharedLattices const& lattices = fine.lattices;
  std::int64_t const n_inner = lattices.layout.n_inner(), n_own = lattices.n_rows - n_inner;
  result.lattices.n_rows =
      layout.n_inner() + std::count_if(coarse_of.begin(), coarse_of.begin() + n_own, [](std::int32_t i) { return i >= 0; });
  result.lattices.layout = std::move(layout);
  result.lattices.cut = lattices.cut;
  result.rows = RowMap(ranks, result.lattices.n_rows);
  // Owners tell the numbers of fine ghosts.
  auto const number_of = [&](std::int32_t row) -> std::int64_t {
    std::int32_t const coarse = row < n_inner ? -1 : coarse_of[static_cast<std::size_t>(row - n_inner)];
    return coarse < 0 ? -1 : result.rows.first[result.rows.me] + coarse;
  };
  std::vector<std::int64_t> const numbers = values_of_ghosts<std::int64_t>(ranks, lattices.neighbors, number_of);
  RankLists<std::int32_t> wanted;
  std::int64_t ghost = 0;
  for (RankNeighbor const& neighbor : lattices.neighbors)
    for (std::int64_t i = 0; i < neighbor.n_ghosts; ++i, ++ghost)
      if (coarse_of[static_cast<std::size_t>(n_own + ghost)] >= 0) {  // on rims
        result.rows.ghosts.push_back(numbers[static_cast<std::size_t>(ghost)]);
        auto const first = result.rows.first[static_cast<std::size_t>(neighbor.rank)];
        wanted[neighbor.rank].push_back(static_cast<std::int32_t>(result.rows.ghosts.back() - first));
      }
  result.lattices.neighbors = result.rows.neighbors = neighbors_of(ranks, wanted);
  return result;
}

Array<std::uint8_t> first_copies_of_own(Context& context, SharedLattices const& lattices) {
  HostVector<std::uint8_t> owned = first_copies(lattices.layout);
  for (std::size_t place = 0; place < owned.size(); ++place)
    if (lattices.layout.tables->rim_unknowns[place] >= lattices.n_rows)
      owned[place] = 0;
  return Array<std::uint8_t>(context, std::span<std::uint8_t const>(owned));
}

WholeLevel whole_level(Communicator& ranks, LevelUnknowns const& level) {
  WholeLevel result;
  LatticeLayout const& mine = level.lattices.layout;
  LatticeCut& cut = result.cut;
  cut = level.lattices.cut;
  std::int64_t const m = mine.nodes(), a_side = cut.a_side;
  LatticeLayout& layout = result.layout;
  layout.n_lattices = cut.n_lattices;
  layout.cells = static_cast<std::int32_t>(mine.cells * a_side);
  RimTables tables;
  tables.kind_first.assign(1, 0);
  layout.n_unknowns = level.rows.n_of_all();
  std::vector<std::int32_t> table;  // the numbers over all ranks of what is on the rims of pieces
  table.reserve(mine.tables->rim_unknowns.size());
  for (std::int32_t const unknown : mine.tables->rim_unknowns)
    table.push_back(static_cast<std::int32_t>(level.rows.number_at(unknown)));
  table = gather_lists(ranks, std::move(table));
  std::vector<std::int64_t> const n_pieces = gather(ranks, mine.n_lattices);
  cut.places = gather_lists(ranks, std::move(cut.places));

  // By number over all ranks: the place in the whole. Unknowns on rims are numbered as they are met.
  std::vector<std::int32_t>& place = result.place;
  place.assign(static_cast<std::size_t>(layout.n_unknowns), -1);
  LatticeView const view = layout.view();
  LatticeRim const rim = layout.rim(), of_piece = mine.rim();
  auto next = static_cast<std::int32_t>(layout.n_inner());
  tables.rim_unknowns.resize(static_cast<std::size_t>(layout.n_lattices * rim.size()));
  std::size_t piece = 0;
  for (std::size_t r = 0; r < n_pieces.size(); ++r) {
    std::int64_t inner = level.rows.first[r];
    for (std::int64_t i = 0; i < n_pieces[r]; ++i, ++piece) {
      LatticeCut::Place const& at = cut.places[piece];
      std::array<std::int32_t, 3> const first{at.x * mine.cells, at.y * mine.cells, at.z * mine.cells};
      for (std::int32_t z = 1; z < m - 1; ++z)
        for (std::int32_t y = 1; y < m - 1; ++y)
          for (std::int32_t x = 1; x < m - 1; ++x)
            place[static_cast<std::size_t>(inner++)] =
                static_cast<std::int32_t>(view.inner_unknown(at.lattice, first[0] + x, first[1] + y, first[2] + z));
      for (std::int64_t p = 0; p < of_piece.size(); ++p) {
        LatticeRim::Node const node = of_piece.node(p);
        std::int32_t const x = first[0] + node.i, y = first[1] + node.j, z = first[2] + node.k;
        std::int32_t& here =
            place[static_cast<std::size_t>(table[piece * static_cast<std::size_t>(of_piece.size()) + static_cast<std::size_t>(p)])];
        if (!rim.holds(x, y, z)) {
          here = static_cast<std::int32_t>(view.inner_unknown(at.lattice, x, y, z));
          continue;
        }
        if (here < 0)
          here = next++;
        tables.rim_unknowns[static_cast<std::size_t>(at.lattice * rim.size() + rim.place(x, y, z))] = here;
      }
    }
  }
  list_copies(layout, tables);
  layout.set_tables(std::move(tables));
  for (std::int64_t i = 0; i < mine.n_unknowns; ++i)
    result.places.push_back(place[static_cast<std::size_t>(level.rows.number_at(i))]);
  return result;
}

template <class V>
Array<V> all_values(Context& context, Communicator& ranks, WholeLevel const& whole, LatticeLayout const& mine, V const* values) {
  std::int64_t const nodes = mine.nodes() * mine.nodes() * mine.nodes(), n = mine.n_lattices * nodes;
  RowMap const numbers(ranks, n);
  Array<V> of_pieces(context, half_stencil::diagonals * numbers.n_of_all());
  WholeVector<V>(context, ranks, numbers.first, {}, half_stencil::diagonals).gather(values, of_pieces.data());
  LatticeCut const& cut = whole.cut;
  std::vector<std::int32_t> numbers_of_pieces(cut.places.size());
  for (std::size_t piece = 0; piece < cut.places.size(); ++piece) {
    LatticeCut::Place const& at = cut.places[piece];
    numbers_of_pieces[static_cast<std::size_t>(((std::int64_t{at.lattice} * cut.a_side + at.z) * cut.a_side + at.y) * cut.a_side +
                                               at.x)] = static_cast<std::int32_t>(piece);
  }
  Array<std::int32_t> const there(context, std::span<std::int32_t const>(numbers_of_pieces));
  std::int64_t const m = whole.layout.nodes();
  Array<V> result(context, half_stencil::diagonals * whole.layout.n_lattices * m * m * m);
  kernels_for<LatticeLevelKernels<V>>(context).merge(context, {cut.n_lattices, cut.a_side, mine.cells, there.data()},
                                                     of_pieces.data(), result.data());
  return result;
}

template Array<float> all_values(Context&, Communicator&, WholeLevel const&, LatticeLayout const&, float const*);
template Array<double> all_values(Context&, Communicator&, WholeLevel const&, LatticeLayout const&, double const*);

}  // namespace poisson
