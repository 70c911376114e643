#include "app/domain/gathered_rows.hpp"

#include "gpu/core/communicator.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/interrupt.hpp"
#include "gpu/core/row_map.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

namespace poisson::app {

namespace {

/// add(row, list) appends what is to be gathered of an own row.
template <class Add>
void gather_in_turns(std::span<std::int64_t const> numbers, Team& team, Add const& add,
                     std::function<void(EntryOfWhole const&)> const& take) {
  Communicator& ranks = team.communicator();
  auto const in_order = [](EntryOfWhole const& a, EntryOfWhole const& b) {
    return std::tie(a.row, a.column) < std::tie(b.row, b.column);
  };
  std::vector<std::size_t> order(numbers.size());  // of own rows, by their numbers
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return numbers[a] < numbers[b]; });
  std::int64_t const n = sum_over(ranks, std::ssize(numbers));
  constexpr std::int64_t at_a_time = 1 << 14;  // rows of the whole: some megabytes of entries
  auto next = order.begin();
  for (std::int64_t first = 0; first < n; first += at_a_time) {
    std::vector<EntryOfWhole> mine;
    team.together([&] {
      if (interrupt_requested())
        throw Interrupted();
      for (; next != order.end() && numbers[*next] < first + at_a_time; ++next)
        add(*next, mine);
    });
    auto all = joined_on_first(ranks, std::move(mine));
    team.together([&] {
      std::sort(all.begin(), all.end(), in_order);
      for (EntryOfWhole const& entry : all)
        take(entry);
    });
  }
}

}  // namespace

std::vector<std::int64_t> column_numbers(RankRows const& rows, std::span<std::int64_t const> numbers, Team& team) {
  std::vector<std::int64_t> columns(numbers.begin(), numbers.end());
  auto const of_ghosts = values_of_ghosts(team.communicator(), rows.neighbors, numbers);
  columns.insert(columns.end(), of_ghosts.begin(), of_ghosts.end());
  return columns;
}

void gather_entries(CsrMatrix const& matrix, std::span<std::int64_t const> numbers, std::span<std::int64_t const> columns,
                    bool lower, Team& team, std::function<void(EntryOfWhole const&)> const& take) {
  auto const add = [&](std::size_t row, std::vector<EntryOfWhole>& list) {
    for (auto e = matrix.row_ptr[row]; e < matrix.row_ptr[row + 1]; ++e)
      if (std::int64_t const column = columns[static_cast<std::size_t>(matrix.columns[e])]; !lower || column <= numbers[row])
        list.push_back({numbers[row], column, matrix.values[e]});
  };
  gather_in_turns(numbers, team, add, take);
}

void gather_values(std::span<double const> values, std::span<std::int64_t const> numbers, Team& team,
                   std::function<void(EntryOfWhole const&)> const& take) {
  auto const add = [&](std::size_t row, std::vector<EntryOfWhole>& list) { list.push_back({numbers[row], 0, values[row]}); };
  gather_in_turns(numbers, team, add, take);
}

HostVector<double> gathered_values(std::span<double const> values, std::span<std::int64_t const> numbers, Team& team) {
  HostVector<double> all;
  gather_values(values, numbers, team, [&](EntryOfWhole const& entry) { all.push_back(entry.value); });
  return all;
}

CsrMatrix gathered_matrix(RankRows const& rows, std::span<std::int64_t const> numbers, Team& team) {
  Communicator& ranks = team.communicator();
  std::int64_t const n = sum_over(ranks, std::ssize(numbers)), nnz = sum_over(ranks, rows.matrix->nnz());
  std::vector<std::int64_t> const columns = column_numbers(rows, numbers, team);
  CsrMatrix all;
  team.together([&] {
    if (!team.is_first())
      return;
    all.n_rows = all.n_columns = n;
    all.row_ptr.resize(static_cast<std::size_t>(n) + 1, 0);
    all.columns.reserve(static_cast<std::size_t>(nnz));
    all.values.reserve(static_cast<std::size_t>(nnz));
  });
  gather_entries(*rows.matrix, numbers, columns, false, team, [&](EntryOfWhole const& entry) {
    all.columns.push_back(static_cast<std::int32_t>(entry.column));
    all.values.push_back(entry.value);
    ++all.row_ptr[entry.row + 1];
  });
  std::partial_sum(all.row_ptr.begin(), all.row_ptr.end(), all.row_ptr.begin());
  return all;
}

}  // namespace poisson::app
