#include "gpu/core/row_map.hpp"

#include "gpu/core/csr_entries.hpp"

namespace poisson {

std::vector<NumberedEntry> entries_of_sum(Communicator& ranks, RowMap const& rows, CsrMatrix const& here) {
  std::vector<NumberedEntry> result;
  RankLists<NumberedEntry> to;
  for_entries(here, [&](std::int64_t row, std::int32_t column, double value) {
    if (!is_stored(value))
      return;
    std::int64_t const number = rows.number_at(row);
    NumberedEntry const entry{row, rows.number_at(column), value};
    if (rows.is_own(number)) {
      result.push_back(entry);
    } else {
      int const owner = rows.owner(number);
      to[owner].push_back({number - rows.first[static_cast<std::size_t>(owner)], entry.column, value});
    }
  });
  auto const come = swap_lists(ranks, to).joined();
  result.insert(result.end(), come.begin(), come.end());
  return result;
}

}  // namespace poisson
