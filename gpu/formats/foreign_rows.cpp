#include "gpu/formats/foreign_rows.hpp"

#include "gpu/core/array.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/block.hpp"
#include "gpu/kernels/lattice_half_cds.hpp"

#include <span>

namespace poisson {

ForeignRows::ForeignRows(Communicator& ranks, RankNumbering const& rows, RankLattices const& lattices,
                         std::vector<std::int64_t> const& ghosts)
    : ranks_(ranks) {
  LatticeHalfCdsView view;
  view.lattices = lattices.layout.view();
  n_nodes_ = view.n_nodes();
  std::int64_t const n_rows = lattices.n_rows, mine = rows.first[rows.me];
  auto const number = [&](std::int64_t unknown) {
    return unknown < n_rows ? mine + unknown : ghosts[static_cast<std::size_t>(unknown - n_rows)];
  };
  std::vector<std::vector<Entry>> to(static_cast<std::size_t>(ranks.size()));
  std::vector<std::int64_t> places;  // in values
  std::int64_t ghost = 0;
  first_of_rank_.assign(to.size() + 1, 0);
  for (RankNeighbor const& neighbor : lattices.neighbors) {
    auto const owner = static_cast<std::size_t>(neighbor.rank);
    for (std::int64_t i = 0; i < neighbor.n_ghosts; ++i, ++ghost) {
      std::int64_t const unknown = n_rows + ghost, row = ghosts[static_cast<std::size_t>(ghost)] - rows.first[owner];
      for_nodes_of(view.lattices, unknown, [&](std::int64_t lattice, std::int32_t x, std::int32_t y, std::int32_t z) {
        for_couplings(view, lattice, x, y, z, [&](std::int64_t place, std::int32_t x2, std::int32_t y2, std::int32_t z2) {
          std::int64_t const column = view.lattices.unknown(lattice, x2, y2, z2);
          here_.push_back({unknown, column});
          places.push_back(place);
          to[owner].push_back({row, number(column)});
        });
      });
    }
  }
  for (std::size_t r = 0; r < to.size(); ++r)
    first_of_rank_[r + 1] = first_of_rank_[r] + std::ssize(to[r]);
  for (auto const& list : swap_lists(ranks, to))
    come_.insert(come_.end(), list.begin(), list.end());

  for (std::int64_t const place : places)
    ++first_of_diagonal_[static_cast<std::size_t>(place / n_nodes_) + 1];
  for (std::size_t d = 1; d < first_of_diagonal_.size(); ++d)
    first_of_diagonal_[d] += first_of_diagonal_[d - 1];
  auto next = first_of_diagonal_;
  nodes_.resize(places.size());
  for (std::int64_t const place : places) {
    std::int64_t const at = next[static_cast<std::size_t>(place / n_nodes_)]++;
    nodes_[static_cast<std::size_t>(at)] = static_cast<std::int32_t>(place % n_nodes_);
    places_.push_back(static_cast<std::int32_t>(at));
  }
}

template <class V>
ForeignRows::Values<V> ForeignRows::values(Context& context, V const* stored) const {
  std::vector<V> by_diagonal(nodes_.size());
  if (!nodes_.empty()) {
    Array<std::int32_t> const nodes(context, std::span<std::int32_t const>(nodes_));
    Array<V> packed(context, std::ssize(nodes_));
    for (std::int64_t d = 0; d < half_stencil::diagonals; ++d) {
      std::int64_t const first = first_of_diagonal_[static_cast<std::size_t>(d)],
                         n = first_of_diagonal_[static_cast<std::size_t>(d) + 1] - first;
      if (n > 0)
        kernels_for<BlockKernels<V>>(context).pack(context, n, nodes.data() + first, stored + d * n_nodes_, packed.data() + first);
    }
    packed.download(std::span<V>(by_diagonal));
  }
  Values<V> result;
  result.here.reserve(places_.size());
  for (std::int32_t const place : places_)
    result.here.push_back(by_diagonal[static_cast<std::size_t>(place)]);
  std::vector<std::vector<V>> to;
  for (std::size_t r = 0; r + 1 < first_of_rank_.size(); ++r)
    to.emplace_back(result.here.begin() + first_of_rank_[r], result.here.begin() + first_of_rank_[r + 1]);
  result.come.reserve(come_.size());
  for (auto const& list : swap_lists(ranks_, to))
    result.come.insert(result.come.end(), list.begin(), list.end());
  return result;
}

template ForeignRows::Values<float> ForeignRows::values(Context&, float const*) const;
template ForeignRows::Values<double> ForeignRows::values(Context&, double const*) const;

}  // namespace poisson
