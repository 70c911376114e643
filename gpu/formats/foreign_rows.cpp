#include "gpu/formats/foreign_rows.hpp"

#include "gpu/core/array.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/lattice_half_cds.hpp"
#include "gpu/kernels/rim.hpp"

#include <span>

namespace poisson {

template <class V>
std::vector<V> values_at(Context& context, V const* stored, std::vector<std::int64_t> const& places) {
  std::vector<V> result(places.size());
  Array<std::int64_t> const places_there(context, std::span<std::int64_t const>(places));
  Array<V> values(context, places_there.size());
  kernels_for<RimKernels<V>>(context).pick(context, places_there.size(), places_there.data(), stored, values.data());
  values.download(std::span<V>(result));
  return result;
}
template std::vector<float> values_at(Context&, float const*, std::vector<std::int64_t> const&);
template std::vector<double> values_at(Context&, double const*, std::vector<std::int64_t> const&);

ForeignRows::ForeignRows(Communicator& ranks, RowMap const& rows, SharedLattices const& lattices) : ranks_(ranks) {
  LatticeHalfCdsView view;
  view.lattices = lattices.layout.view();
  std::int64_t const n_rows = lattices.n_rows, n_ghosts = view.lattices.n_unknowns - n_rows;
  std::vector<std::int64_t> const first = first_entries(n_ghosts, [&](std::int64_t ghost) {
    std::int64_t count = 0;
    for_nodes_of(view.lattices, n_rows + ghost,
                 [&](std::int64_t, std::int32_t x, std::int32_t y, std::int32_t z) { count += n_couplings(view, x, y, z); });
    return count;
  });
  here_.resize(static_cast<std::size_t>(first.back()));
  places_.resize(here_.size());
  RankLists<Entry> to;
  std::int64_t ghost = 0;
  for (RankNeighbor const& neighbor : lattices.neighbors) {
    std::int64_t const begin = ghost, end = begin + neighbor.n_ghosts, before = first[static_cast<std::size_t>(begin)];
    std::int64_t const first_row = rows.first[static_cast<std::size_t>(neighbor.rank)];
    ghost = end;
    auto& list = to[neighbor.rank];
    list.resize(static_cast<std::size_t>(first[static_cast<std::size_t>(end)] - before));
#pragma omp parallel for schedule(static)
    for (std::int64_t i = begin; i < end; ++i) {
      std::int64_t const unknown = n_rows + i, row = rows.number_at(unknown) - first_row;
      std::int64_t e = first[static_cast<std::size_t>(i)];
      for_nodes_of(view.lattices, unknown, [&](std::int64_t lattice, std::int32_t x, std::int32_t y, std::int32_t z) {
        for_couplings(view, lattice, x, y, z, [&](std::int64_t place, std::int32_t x2, std::int32_t y2, std::int32_t z2) {
          std::int64_t const column = view.lattices.unknown(lattice, x2, y2, z2);
          here_[static_cast<std::size_t>(e)] = {unknown, column};
          places_[static_cast<std::size_t>(e)] = place;
          list[static_cast<std::size_t>(e - before)] = {row, rows.number_at(column)};
          ++e;
        });
      });
    }
  }
  for (auto const& [rank, list] : to)
    of_ranks_.emplace_back(rank, list.size());
  come_ = swap_lists(ranks, to).joined();
}

template <class V>
ForeignRows::Values<V> ForeignRows::values(Context& context, V const* stored) const {
  Values<V> result;
  result.here = values_at(context, stored, places_);
  RankLists<V> to;
  auto next = result.here.begin();
  for (auto const& [rank, size] : of_ranks_) {
    auto const begin = next;
    next += static_cast<std::ptrdiff_t>(size);
    to[rank].assign(begin, next);
  }
  result.come = swap_lists(ranks_, to).joined();
  return result;
}

template ForeignRows::Values<float> ForeignRows::values(Context&, float const*) const;
template ForeignRows::Values<double> ForeignRows::values(Context&, double const*) const;

}  // namespace poisson
