#pragma once

#include "gpu/core/communicator.hpp"
#include "gpu/core/node_box.hpp"
#include "gpu/core/rank_rows.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

namespace poisson {

/// How rows, or columns, are numbered over all ranks: those of rank r from first[r] on.
struct RankNumbering {
  std::vector<std::int64_t> first;
  std::size_t me = 0;

  RankNumbering() = default;
  /// Of n on this rank. Collective.
  RankNumbering(Communicator& ranks, std::int64_t n) : first{0}, me(static_cast<std::size_t>(ranks.rank())) {
    for (std::int64_t const count : gather(ranks, n))
      first.push_back(first.back() + count);
  }
  [[nodiscard]] std::int64_t n_own() const { return first[me + 1] - first[me]; }
  [[nodiscard]] std::int64_t n_of_all() const { return first.back(); }
  [[nodiscard]] bool is_own(std::int64_t number) const { return first[me] <= number && number < first[me + 1]; }
  [[nodiscard]] std::size_t owner(std::int64_t number) const {
    return static_cast<std::size_t>(std::upper_bound(first.begin(), first.end(), number) - first.begin()) - 1;
  }
  [[nodiscard]] std::vector<NodeBox> boxes() const {
    std::vector<NodeBox> result;
    for (std::size_t r = 0; r + 1 < first.size(); ++r)
      result.push_back({{first[r], 0, 0}, {first[r + 1], 1, 1}});
    return result;
  }
};

/// What other ranks have at the ghosts of these neighbours, in their order, from own entries. Collective.
template <class T>
[[nodiscard]] std::vector<T> values_of_ghosts(Communicator& ranks, std::vector<RankNeighbor> const& neighbors,
                                              std::span<T const> own) {
  std::vector<std::vector<T>> to(static_cast<std::size_t>(ranks.size()));
  for (RankNeighbor const& neighbor : neighbors)
    for (std::int32_t const row : neighbor.sent)
      to[static_cast<std::size_t>(neighbor.rank)].push_back(own[static_cast<std::size_t>(row)]);
  std::vector<T> values;
  for (auto const& list : swap_lists(ranks, to))
    values.insert(values.end(), list.begin(), list.end());
  return values;
}

/// The numbers over all ranks of the ghosts of these neighbours, in their order. Collective.
[[nodiscard]] inline std::vector<std::int64_t> numbers_of_ghosts(Communicator& ranks, RankNumbering const& rows,
                                                                 std::vector<RankNeighbor> const& neighbors) {
  std::vector<std::int64_t> own(static_cast<std::size_t>(rows.n_own()));
  std::iota(own.begin(), own.end(), rows.first[rows.me]);
  return values_of_ghosts<std::int64_t>(ranks, neighbors, own);
}

}  // namespace poisson
