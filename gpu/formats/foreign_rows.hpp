#pragma once

#include "gpu/core/context.hpp"
#include "gpu/core/row_map.hpp"
#include "gpu/core/shared_lattices.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace poisson {

/// The values at these places of a matrix in half_cds on lattices (LatticeHalfCdsView), in the context's memory. V: float or
/// double.
template <class V>
[[nodiscard]] std::vector<V> values_at(Context& context, V const* stored, std::vector<std::int64_t> const& places);

/// Returns n + 1 numbers: where the entries of each of n rows begin in a list that has those of one row after those of the other.
/// count_of(row) is called by threads.
template <class CountOf>
[[nodiscard]] std::vector<std::int64_t> first_entries(std::int64_t n, CountOf const& count_of) {
  std::vector<std::int64_t> first(static_cast<std::size_t>(n) + 1);
#pragma omp parallel for schedule(static)
  for (std::int64_t row = 0; row < n; ++row)
    first[static_cast<std::size_t>(row) + 1] = count_of(row);
  for (std::size_t row = 1; row < first.size(); ++row)
    first[row] += first[row - 1];
  return first;
}

/// The matrix of a mesh of lattices is the sum of the lattices' own. Of those that one rank has some entries are in rows that other
/// ranks own: these go there. Entries in one place stay apart; that stand where nothing is stored are -0.0.
class ForeignRows {
public:
  struct Entry {
    std::int64_t row, column;
  };
  template <class V>
  struct Values {
    std::vector<V> here, come;
  };

  /// `rows` has the ghosts of lattices.neighbors. Collective.
  ForeignRows(Communicator& ranks, RowMap const& rows, SharedLattices const& lattices);

  /// Returns the entries of the lattices here. Rows and columns are unknowns as in SharedLattices; each row is a ghost.
  [[nodiscard]] std::vector<Entry> const& here() const { return here_; }
  /// Returns the entries of other ranks' lattices, in the order of the ranks. Rows are own rows; columns have their numbers over
  /// all ranks.
  [[nodiscard]] std::vector<Entry> const& come() const { return come_; }
  /// Returns the values of the entries that here() and come() list. `stored` has those of the lattices here, in the context's
  /// memory, laid out as LatticeHalfCdsView says; float or double. Collective.
  template <class V>
  [[nodiscard]] Values<V> values(Context& context, V const* stored) const;

private:
  Communicator& ranks_;
  std::vector<Entry> here_, come_;
  std::vector<std::pair<int, std::size_t>> of_ranks_;  ///< how many of here_ are rows of which rank, one after another
  std::vector<std::int64_t> places_;                   ///< of here_, in values
};

/// Some of the numbers from 0 to n - 1, and their places among them in ascending order: n / 8 bytes, and n / 16 more.
class NumberSet {
public:
  explicit NumberSet(std::int64_t n) : words_(static_cast<std::size_t>((n + 63) / 64)) {}
  void add(std::int64_t number) { words_[static_cast<std::size_t>(number / 64)] |= std::uint64_t{1} << (number % 64); }
  /// Numbers the places, when all numbers are there. Returns them, ascending.
  [[nodiscard]] std::vector<std::int32_t> close() {
    std::vector<std::int32_t> numbers;
    before_.reserve(words_.size());
    for (std::size_t w = 0; w < words_.size(); ++w) {
      before_.push_back(static_cast<std::int32_t>(numbers.size()));
      for (std::uint64_t rest = words_[w]; rest != 0; rest &= rest - 1)
        numbers.push_back(static_cast<std::int32_t>(64 * w) + std::countr_zero(rest));
    }
    return numbers;
  }
  /// The place of a number that is in it.
  [[nodiscard]] std::int32_t place(std::int64_t number) const {
    auto const w = static_cast<std::size_t>(number / 64);
    return before_[w] + std::popcount(words_[w] & ((std::uint64_t{1} << (number % 64)) - 1));
  }

private:
  std::vector<std::uint64_t> words_;
  std::vector<std::int32_t> before_;  ///< how many numbers are in the words before
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

}  // namespace poisson
