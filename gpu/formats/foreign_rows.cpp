#include "gpu/formats/foreign_rows.hpp"

#include "gpu/core/array.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/lattice_half_cds.hpp"
#include "gpu/kernels/rim.hpp"

#include <array>
#include <span>

namespace poisson {

template <class V>
std::vector<V> values_at(Context& context, V const* stored, std::int64_t n_nodes, std::vector<std::int64_t> const& places) {
  // Diagonal by diagonal: nodes have 32 bits.
  std::array<std::int64_t, half_stencil::diagonals + 1> first{};
  for (std::int64_t const place : places)
    ++first[static_cast<std::size_t>(place / n_nodes) + 1];
  for (std::size_t d = 1; d < first.size(); ++d)
    first[d] += first[d - 1];
  auto next = first;
  std::vector<std::int32_t> nodes(places.size());
  std::vector<std::int64_t> at;
  at.reserve(places.size());
  for (std::int64_t const place : places) {
    at.push_back(next[static_cast<std::size_t>(place / n_nodes)]++);
    nodes[static_cast<std::size_t>(at.back())] = static_cast<std::int32_t>(place % n_nodes);
  }
  std::vector<V> packed(places.size()), result;
  if (!places.empty()) {
    Array<std::int32_t> const nodes_there(context, std::span<std::int32_t const>(nodes));
    Array<V> packed_there(context, std::ssize(nodes));
    for (std::size_t d = 0; d < half_stencil::diagonals; ++d)
      if (first[d + 1] > first[d])
        kernels_for<RimKernels<V>>(context).pack(context, first[d + 1] - first[d], nodes_there.data() + first[d],
                                                 stored + static_cast<std::int64_t>(d) * n_nodes, packed_there.data() + first[d]);
    packed_there.download(std::span<V>(packed));
  }
  result.reserve(places.size());
  for (std::int64_t const place : at)
    result.push_back(packed[static_cast<std::size_t>(place)]);
  return result;
}
template std::vector<float> values_at(Context&, float const*, std::int64_t, std::vector<std::int64_t> const&);
template std::vector<double> values_at(Context&, double const*, std::int64_t, std::vector<std::int64_t> const&);

ForeignRows::ForeignRows(Communicator& ranks, RowMap const& rows, SharedLattices const& lattices) : ranks_(ranks) {
  LatticeHalfCdsView view;
  view.lattices = lattices.layout.view();
  n_nodes_ = view.n_nodes();
  std::int64_t const n_rows = lattices.n_rows;
  RankLists<Entry> to;
  std::int64_t ghost = 0;
  for (RankNeighbor const& neighbor : lattices.neighbors) {
    auto const first_row = rows.first[static_cast<std::size_t>(neighbor.rank)];
    auto& list = to[neighbor.rank];
    for (std::int64_t i = 0; i < neighbor.n_ghosts; ++i, ++ghost) {
      std::int64_t const unknown = n_rows + ghost, row = rows.number_at(unknown) - first_row;
      for_nodes_of(view.lattices, unknown, [&](std::int64_t lattice, std::int32_t x, std::int32_t y, std::int32_t z) {
        for_couplings(view, lattice, x, y, z, [&](std::int64_t place, std::int32_t x2, std::int32_t y2, std::int32_t z2) {
          std::int64_t const column = view.lattices.unknown(lattice, x2, y2, z2);
          here_.push_back({unknown, column});
          places_.push_back(place);
          list.push_back({row, rows.number_at(column)});
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
  result.here = values_at(context, stored, n_nodes_, places_);
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
