#include "gpu/preconditioners/ordering.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <tuple>
#include <utility>

namespace poisson {

namespace {

void set_places(RowOrder& order) {
  order.place.resize(order.rows.size());
#pragma omp parallel for schedule(static)
  for (std::size_t i = 0; i < order.rows.size(); ++i)
    order.place[static_cast<std::size_t>(order.rows[i])] = static_cast<std::int32_t>(i);
}

/// Tells whether a row depends on a column, in the lower triangle or, if `upper`, in the upper one.
struct Dependence {
  HostVector<std::int32_t> const& place;
  bool upper;
  [[nodiscard]] bool operator()(std::size_t row, std::size_t column) const {
    return upper ? place[column] > place[row] : place[column] < place[row];
  }
};

/// Calls visit(row, values) for own rows, each after all columns that it depends on, which may be on other ranks. What it returns,
/// 0 or more, is the row's value. The result are the values of own rows and ghosts. Collective.
template <class Visit>
HostVector<std::int32_t> values_along(Communicator& ranks, RankRows const& rows, RowOrder const& order, bool upper,
                                      Visit const& visit) {
  CsrMatrix const& a = *rows.matrix;
  Dependence const depends{order.place, upper};
  auto const n = static_cast<std::size_t>(a.n_rows), n_all = static_cast<std::size_t>(a.n_columns);
  bool const has_ghosts = n_all > n;  // else no row has to wait for others
  constexpr std::int32_t none = -1;
  HostVector<std::int32_t> value(n_all, none);
  std::vector<std::int64_t> next_entry(a.row_ptr.begin(), has_ghosts ? a.row_ptr.end() : a.row_ptr.begin());
  // Lists of the rows that wait for a column.
  std::vector<std::int32_t> waiting(has_ghosts ? n_all : 0, none), waits_too(has_ghosts ? n : 0, none);
  std::vector<std::int32_t> known;  // columns whose lists are still to be looked at
  std::size_t done = 0;
  auto const go_on = [&](std::int32_t row) {
    auto const i = static_cast<std::size_t>(row);
    if (has_ghosts) {
      for (std::int64_t& e = next_entry[i]; e < a.row_ptr[i + 1]; ++e) {
        auto const column = static_cast<std::size_t>(a.columns[static_cast<std::size_t>(e)]);
        if (value[column] == none && depends(i, column)) {
          waits_too[i] = std::exchange(waiting[column], row);
          return;
        }
      }
      known.push_back(row);
    }
    value[i] = visit(i, value);
    ++done;
  };
  auto const wake_all = [&] {
    while (!known.empty()) {
      auto const column = static_cast<std::size_t>(known.back());
      known.pop_back();
      for (std::int32_t row = std::exchange(waiting[column], none); row != none;) {
        std::int32_t const next = waits_too[static_cast<std::size_t>(row)];
        go_on(row);
        row = next;
      }
    }
  };
  for (std::size_t i = 0; i < n_all; ++i)
    if (std::int32_t const row = order.rows[upper ? n_all - 1 - i : i]; static_cast<std::size_t>(row) < n) {
      go_on(row);
      wake_all();
    }

  struct News {
    std::int32_t ghost, value;  // by number among those of this neighbour
  };
  std::vector<std::vector<std::int32_t>> untold;  // by neighbour: places in `sent`
  for (RankNeighbor const& neighbor : rows.neighbors) {
    untold.emplace_back(neighbor.sent.size());
    std::iota(untold.back().begin(), untold.back().end(), 0);
  }
  for (bool finished = false; !finished;) {
    finished = !any_of_ranks(ranks, done < n);
    RankLists<News> news;
    for (std::size_t k = 0; k < rows.neighbors.size(); ++k) {
      RankNeighbor const& neighbor = rows.neighbors[k];
      std::erase_if(untold[k], [&](std::int32_t place) {
        std::int32_t const of_row = value[static_cast<std::size_t>(neighbor.sent[static_cast<std::size_t>(place)])];
        if (of_row != none)
          news[neighbor.rank].push_back({place, of_row});
        return of_row != none;
      });
    }
    auto const heard = swap_lists(ranks, news);
    std::int64_t first = a.n_rows;
    for (RankNeighbor const& neighbor : rows.neighbors) {
      for (News const& item : heard[neighbor.rank]) {
        auto const ghost = static_cast<std::int32_t>(first + item.ghost);
        value[static_cast<std::size_t>(ghost)] = item.value;
        known.push_back(ghost);
      }
      first += neighbor.n_ghosts;
    }
    wake_all();
  }
  return value;
}

}  // namespace

RowOrder natural_order(std::span<std::int64_t const> numbers) {
  RowOrder result;
  result.rows.resize(numbers.size());
  std::iota(result.rows.begin(), result.rows.end(), 0);
  if (!std::ranges::is_sorted(numbers))
    std::ranges::sort(result.rows, {}, [&](std::int32_t row) { return numbers[static_cast<std::size_t>(row)]; });
  set_places(result);
  return result;
}

RowOrder multicolor_order(Communicator& ranks, RankRows const& rows, RowOrder const& natural) {
  CsrMatrix const& a = *rows.matrix;
  Dependence const depends{natural.place, false};
  std::vector<std::size_t> last_user;  // the row, plus 1, that last found this color at a neighbour
  RowOrder result;
  result.color = values_along(ranks, rows, natural, false, [&](std::size_t row, HostVector<std::int32_t> const& colors) {
    for (auto e = static_cast<std::size_t>(a.row_ptr[row]); e < static_cast<std::size_t>(a.row_ptr[row + 1]); ++e) {
      auto const column = static_cast<std::size_t>(a.columns[e]);
      if (!depends(row, column))
        continue;
      auto const color = static_cast<std::size_t>(colors[column]);
      if (color >= last_user.size())
        last_user.resize(color + 1, 0);
      last_user[color] = row + 1;
    }
    auto const free = std::find_if(last_user.begin(), last_user.end(), [&](std::size_t user) { return user != row + 1; });
    return static_cast<std::int32_t>(free - last_user.begin());
  });
  std::vector<std::size_t> begin(1, 0);  // places of each color, one further
  for (std::int32_t const color : result.color) {
    begin.resize(std::max(begin.size(), static_cast<std::size_t>(color) + 2), 0);
    ++begin[static_cast<std::size_t>(color) + 1];
  }
  result.n_colors = max_over(ranks, std::ssize(begin) - 1);
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  result.rows.resize(natural.rows.size());
  for (std::int32_t const row : natural.rows)
    result.rows[begin[static_cast<std::size_t>(result.color[static_cast<std::size_t>(row)])]++] = row;
  set_places(result);
  return result;
}

CsrMatrix reordered(CsrMatrix const& a, RowOrder const& order, CsrMatrix const& of_ghosts) {
  std::int64_t const n = std::ssize(order.rows);
  struct Source {
    CsrMatrix const& matrix;
    std::int64_t row;
    [[nodiscard]] std::int64_t begin() const { return matrix.row_ptr[row]; }
    [[nodiscard]] std::int64_t length() const { return matrix.row_ptr[row + 1] - matrix.row_ptr[row]; }
  };
  auto const source = [&](std::int64_t i) {
    std::int64_t const row = order.rows[i];
    return row < a.n_rows ? Source{a, row} : Source{of_ghosts, row - a.n_rows};
  };
  CsrMatrix b;
  b.n_rows = b.n_columns = n;
  b.row_ptr.resize(static_cast<std::size_t>(n + 1));
  b.row_ptr[0] = 0;
  for (std::int64_t i = 0; i < n; ++i)
    b.row_ptr[i + 1] = b.row_ptr[i] + source(i).length();
  b.columns.resize(static_cast<std::size_t>(b.row_ptr[n]));
  b.values.resize(static_cast<std::size_t>(b.row_ptr[n]));
#pragma omp parallel
  {
    std::vector<std::pair<std::int32_t, double>> entries;
#pragma omp for schedule(static)
    for (std::int64_t i = 0; i < n; ++i) {
      Source const from = source(i);
      std::int64_t const begin = from.begin(), to = b.row_ptr[i], length = from.length();
      entries.resize(static_cast<std::size_t>(length));
      for (std::int64_t e = 0; e < length; ++e)
        entries[static_cast<std::size_t>(e)] = {order.place[from.matrix.columns[begin + e]], from.matrix.values[begin + e]};
      std::sort(entries.begin(), entries.end(), [](auto const& one, auto const& other) { return one.first < other.first; });
      for (std::int64_t e = 0; e < length; ++e)
        std::tie(b.columns[to + e], b.values[to + e]) = entries[static_cast<std::size_t>(e)];
    }
  }
  return b;
}

RowLevels levels_of(Communicator& ranks, RankRows const& rows, RowOrder const& order, bool upper) {
  CsrMatrix const& a = *rows.matrix;
  Dependence const depends{order.place, upper};
  RowLevels result;
  result.level = values_along(ranks, rows, order, upper, [&](std::size_t row, HostVector<std::int32_t> const& levels) {
    std::int32_t mine = 0;
    for (auto e = static_cast<std::size_t>(a.row_ptr[row]); e < static_cast<std::size_t>(a.row_ptr[row + 1]); ++e)
      if (auto const column = static_cast<std::size_t>(a.columns[e]); depends(row, column))
        mine = std::max(mine, levels[column] + 1);
    return mine;
  });
  for (std::int32_t const mine : result.level)
    result.n_levels = std::max<std::int64_t>(result.n_levels, mine + 1);
  result.n_levels = max_over(ranks, result.n_levels);
  return result;
}

std::vector<std::int64_t> exchange_points(Communicator& ranks, RankRows const& rows, RowOrder const& order, RowLevels const& levels,
                                          bool upper) {
  CsrMatrix const& a = *rows.matrix;
  Dependence const depends{order.place, upper};
  struct Need {
    std::int32_t level, of;  // the highest level of others that rows of this level need
  };
  bool const has_ghosts = a.n_columns > a.n_rows;
  std::vector<std::int32_t> highest(has_ghosts ? static_cast<std::size_t>(levels.n_levels) : 0, -1);
  for (std::int64_t row = 0; has_ghosts && row < a.n_rows; ++row)
    for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e)
      if (std::int32_t const column = a.columns[e];
          column >= a.n_rows && depends(static_cast<std::size_t>(row), static_cast<std::size_t>(column))) {
        std::int32_t& of = highest[static_cast<std::size_t>(levels.level[row])];
        of = std::max(of, levels.level[column]);
      }
  std::vector<Need> needs;
  for (std::size_t level = 0; level < highest.size(); ++level)
    if (highest[level] >= 0)
      needs.push_back({static_cast<std::int32_t>(level), highest[level]});
  std::vector<Need> all = gather_lists(ranks, std::move(needs));
  std::sort(all.begin(), all.end(), [](Need const& one, Need const& other) { return one.level < other.level; });
  std::vector<std::int64_t> points;
  for (Need const& need : all)
    if (points.empty() || need.of >= points.back())
      points.push_back(need.level);
  return points;
}

}  // namespace poisson
