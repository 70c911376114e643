#pragma once

#include "gpu/core/communicator.hpp"
#include "gpu/core/rank_rows.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace poisson {

/// What other ranks have at the ghosts of these neighbours, in their order: value_of(row) of their own rows, of which only those
/// are asked that others have as ghosts. Collective.
template <class T, class ValueOf>
requires std::is_invocable_v<ValueOf const&, std::int32_t>
[[nodiscard]] std::vector<T> values_of_ghosts(Communicator& ranks, std::vector<RankNeighbor> const& neighbors,
                                              ValueOf const& value_of) {
  RankLists<T> to;
  for (RankNeighbor const& neighbor : neighbors) {
    auto& list = to[neighbor.rank];
    list.reserve(neighbor.sent.size());
    for (std::int32_t const row : neighbor.sent)
      list.push_back(value_of(row));
  }
  return swap_lists(ranks, to).joined();
}
/// The same from a list of own entries.
template <class T>
[[nodiscard]] std::vector<T> values_of_ghosts(Communicator& ranks, std::vector<RankNeighbor> const& neighbors,
                                              std::span<T const> own) {
  return values_of_ghosts<T>(ranks, neighbors, [own](std::int32_t row) { return own[static_cast<std::size_t>(row)]; });
}

/// Returns the ranks with which this rank shares rows. `wanted` has the rows of other ranks that this rank needs, by their numbers
/// there, in the order of its ghosts. It may name rows of several ranks. Collective.
[[nodiscard]] inline std::vector<RankNeighbor> neighbors_of(Communicator& ranks, RankLists<std::int32_t> const& wanted) {
  std::map<int, RankNeighbor> neighbors;
  for (auto const& [rank, rows] : wanted)
    if (!rows.empty())
      neighbors[rank].n_ghosts = std::ssize(rows);
  for (auto const& [rank, rows] : swap_lists(ranks, wanted))
    neighbors[rank].sent = rows;
  std::vector<RankNeighbor> result;
  for (auto& [rank, neighbor] : neighbors) {
    neighbor.rank = rank;
    result.push_back(std::move(neighbor));
  }
  return result;
}

/// The rows, or columns, of all ranks: which are own ones, which of others this rank needs, and who needs which own ones. Rows are
/// numbered over all ranks, those of rank r from first[r] on. In vectors own rows come first, then the ghosts.
struct RowMap {
  std::vector<std::int64_t> first;  ///< of every rank; then the number of all rows
  std::size_t me = 0;
  std::vector<std::int64_t> ghosts;  ///< their numbers over all ranks, in the order of neighbors
  std::vector<RankNeighbor> neighbors;

  RowMap() = default;
  /// Makes the map of n own rows without ghosts. Collective.
  RowMap(Communicator& ranks, std::int64_t n) : first{0}, me(static_cast<std::size_t>(ranks.rank())) {
    for (std::int64_t const count : gather(ranks, n))
      first.push_back(first.back() + count);
  }
  /// Makes the map of n own rows with the ghosts of the neighbours `sharing`, in their order. Collective.
  RowMap(Communicator& ranks, std::int64_t n, std::vector<RankNeighbor> sharing) : RowMap(ranks, n) {
    neighbors = std::move(sharing);
    ghosts = values_of_ghosts<std::int64_t>(ranks, neighbors, [this](std::int32_t row) { return first[me] + row; });
  }
  /// Returns the map of the same own rows with other ghosts. These are the rows `needed` of other ranks, by their numbers over all
  /// ranks, which then ascend. Collective.
  [[nodiscard]] RowMap with_ghosts(Communicator& ranks, std::vector<std::int64_t> needed) const {
    RowMap result;
    result.first = first;
    result.me = me;
    std::sort(needed.begin(), needed.end());
    needed.erase(std::unique(needed.begin(), needed.end()), needed.end());
    RankLists<std::int32_t> wanted;
    for (std::int64_t const number : needed)
      wanted[owner(number)].push_back(static_cast<std::int32_t>(number - first[static_cast<std::size_t>(owner(number))]));
    result.ghosts = std::move(needed);
    result.neighbors = neighbors_of(ranks, wanted);
    return result;
  }

  [[nodiscard]] std::int64_t n_own() const { return first[me + 1] - first[me]; }
  /// Own rows and ghosts.
  [[nodiscard]] std::int64_t n_here() const { return n_own() + std::ssize(ghosts); }
  [[nodiscard]] std::int64_t n_of_all() const { return first.back(); }
  /// Whether it is of several ranks; the same on all. Else this rank has all rows.
  [[nodiscard]] bool is_shared() const { return first.size() > 2; }
  [[nodiscard]] bool is_own(std::int64_t number) const { return first[me] <= number && number < first[me + 1]; }
  [[nodiscard]] int owner(std::int64_t number) const {
    return static_cast<int>(std::upper_bound(first.begin(), first.end(), number) - first.begin()) - 1;
  }
  /// The place in vectors of a row of this number. Precondition: it is here, and the numbers of ghosts ascend.
  [[nodiscard]] std::int64_t place(std::int64_t number) const {
    if (is_own(number))
      return number - first[me];
    return n_own() + (std::lower_bound(ghosts.begin(), ghosts.end(), number) - ghosts.begin());
  }
  [[nodiscard]] std::int64_t number_at(std::int64_t place) const {
    std::int64_t const n = n_own();
    return place < n ? first[me] + place : ghosts[static_cast<std::size_t>(place - n)];
  }
};

/// Finds ghosts by their numbers over all ranks.
class GhostFinder {
public:
  explicit GhostFinder(std::vector<std::int64_t> const& numbers) {
    for (std::size_t i = 0; i < numbers.size(); ++i)
      sorted_.emplace_back(numbers[i], static_cast<std::int32_t>(i));
    std::sort(sorted_.begin(), sorted_.end());
  }
  /// The place in the list; -1: it is not there.
  [[nodiscard]] std::int32_t operator()(std::int64_t number) const {
    auto const found = std::lower_bound(sorted_.begin(), sorted_.end(), std::pair(number, std::int32_t{-1}));
    return found != sorted_.end() && found->first == number ? found->second : -1;
  }

private:
  std::vector<std::pair<std::int64_t, std::int32_t>> sorted_;
};

/// An entry of a matrix, with the number of its column over all ranks.
struct NumberedEntry {
  std::int64_t row, column;
  double value;
};
/// Returns the entries of own rows of a matrix that is a sum over ranks. `here` is this rank's part of it: its rows and columns are
/// own rows, then the ghosts of `rows`. Entries in one place stay apart, in the order of the ranks after own ones; those that are
/// -0.0 are left out. Collective.
[[nodiscard]] std::vector<NumberedEntry> entries_of_sum(Communicator& ranks, RowMap const& rows, CsrMatrix const& here);

}  // namespace poisson
