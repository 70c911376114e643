#include "gpu/preconditioners/ordering.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

namespace poisson {

RowOrder multicolor_order(CsrMatrix const& a) {
  std::int64_t const n = a.n_rows;
  HostVector<std::int32_t> color(static_cast<std::size_t>(n));
  std::vector<std::int64_t> last_user;    // the row that last found this color at a neighbour
  std::vector<std::int64_t> begin(1, 0);  // rows of each color, one place further
  for (std::int64_t row = 0; row < n; ++row) {
    for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1] && a.columns[e] < row; ++e)
      last_user[static_cast<std::size_t>(color[a.columns[e]])] = row;
    auto const free = std::find_if(last_user.begin(), last_user.end(), [&](std::int64_t user) { return user != row; });
    auto const mine = free - last_user.begin();
    color[row] = static_cast<std::int32_t>(mine);
    if (free == last_user.end()) {
      last_user.push_back(-1);
      begin.push_back(0);
    }
    ++begin[static_cast<std::size_t>(mine) + 1];
  }
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  RowOrder order{HostVector<std::int32_t>(static_cast<std::size_t>(n)), static_cast<std::int64_t>(last_user.size())};
  for (std::int64_t row = 0; row < n; ++row)
    order.rows[begin[static_cast<std::size_t>(color[row])]++] = static_cast<std::int32_t>(row);
  return order;
}

CsrMatrix reordered(CsrMatrix const& a, RowOrder const& order) {
  std::int64_t const n = a.n_rows;
  HostVector<std::int32_t> place(static_cast<std::size_t>(n));
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < n; ++i)
    place[order.rows[i]] = static_cast<std::int32_t>(i);
  CsrMatrix b;
  b.n_rows = b.n_columns = n;
  b.row_ptr.resize(static_cast<std::size_t>(n + 1));
  b.row_ptr[0] = 0;
  for (std::int64_t i = 0; i < n; ++i)
    b.row_ptr[i + 1] = b.row_ptr[i] + a.row_ptr[order.rows[i] + 1] - a.row_ptr[order.rows[i]];
  b.columns.resize(static_cast<std::size_t>(a.nnz()));
  b.values.resize(static_cast<std::size_t>(a.nnz()));
#pragma omp parallel
  {
    std::vector<std::pair<std::int32_t, double>> entries;
#pragma omp for schedule(static)
    for (std::int64_t i = 0; i < n; ++i) {
      std::int64_t const from = a.row_ptr[order.rows[i]], to = b.row_ptr[i], length = b.row_ptr[i + 1] - to;
      entries.resize(static_cast<std::size_t>(length));
      for (std::int64_t e = 0; e < length; ++e)
        entries[static_cast<std::size_t>(e)] = {place[a.columns[from + e]], a.values[from + e]};
      std::sort(entries.begin(), entries.end(), [](auto const& one, auto const& other) { return one.first < other.first; });
      for (std::int64_t e = 0; e < length; ++e)
        std::tie(b.columns[to + e], b.values[to + e]) = entries[static_cast<std::size_t>(e)];
    }
  }
  return b;
}

RowLevels levels_of(CsrMatrix const& a, bool upper) {
  RowLevels result{HostVector<std::int32_t>(static_cast<std::size_t>(a.n_rows))};
  for (std::int64_t i = 0; i < a.n_rows; ++i) {
    std::int64_t const row = upper ? a.n_rows - 1 - i : i;
    std::int32_t mine = 0;
    for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e)
      if (upper ? a.columns[e] > row : a.columns[e] < row)
        mine = std::max(mine, result.level[a.columns[e]] + 1);
    result.level[row] = mine;
    result.n_levels = std::max<std::int64_t>(result.n_levels, mine + 1);
  }
  return result;
}

}  // namespace poisson
