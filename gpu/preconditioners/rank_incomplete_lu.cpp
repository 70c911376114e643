#include "gpu/preconditioners/rank_incomplete_lu.hpp"

#include "gpu/core/memory.hpp"
#include "gpu/core/row_map.hpp"
#include "gpu/kernels/ilu_elimination.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

namespace poisson {

namespace {

/// Calls visit(row, values) for own rows, each after all of its columns that come before it by their keys, which may be on other
/// ranks. What it returns, 0 or more, is the row's value. The result are the values of own rows and ghosts. Collective.
template <class Visit>
std::vector<std::int32_t> values_along(Communicator& ranks, RankRows const& rows, std::span<std::int64_t const> keys,
                                       bool backwards, Visit const& visit) {
  CsrMatrix const& a = *rows.matrix;
  auto const n = static_cast<std::size_t>(a.n_rows), n_all = static_cast<std::size_t>(a.n_columns);
  constexpr std::int32_t none = -1;
  std::vector<std::int32_t> value(n_all, none);
  std::vector<std::int64_t> next_entry(a.row_ptr.begin(), a.row_ptr.end());
  std::vector<std::int32_t> waiting(n_all, none), waits_too(n, none);  // lists of the rows that wait for a column
  std::vector<std::int32_t> known;                                     // columns whose lists are still to be looked at
  std::size_t done = 0;
  auto const go_on = [&](std::int32_t row) {
    auto const i = static_cast<std::size_t>(row);
    for (std::int64_t& e = next_entry[i]; e < a.row_ptr[i + 1]; ++e) {
      auto const column = static_cast<std::size_t>(a.columns[e]);
      if (value[column] == none && (backwards ? keys[column] > keys[i] : keys[column] < keys[i])) {
        waits_too[i] = std::exchange(waiting[column], row);
        return;
      }
    }
    value[i] = visit(i, value);
    ++done;
    known.push_back(row);
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
  for (std::size_t i = 0; i < n; ++i) {
    go_on(static_cast<std::int32_t>(backwards ? n - 1 - i : i));
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

/// Levels of own rows and ghosts in the lower triangle by keys, or in the upper one: as levels_of, over all ranks. Collective.
RowLevels levels_on_ranks(Communicator& ranks, RankRows const& rows, std::span<std::int64_t const> keys, bool upper) {
  CsrMatrix const& a = *rows.matrix;
  auto const level = values_along(ranks, rows, keys, upper, [&](std::size_t row, std::vector<std::int32_t> const& levels) {
    std::int32_t mine = 0;
    for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e) {
      auto const column = static_cast<std::size_t>(a.columns[e]);
      if (upper ? keys[column] > keys[row] : keys[column] < keys[row])
        mine = std::max(mine, levels[column] + 1);
    }
    return mine;
  });
  RowLevels result{HostVector<std::int32_t>(level.begin(), level.end())};
  for (std::int32_t const mine : level)
    result.n_levels = std::max<std::int64_t>(result.n_levels, mine + 1);
  result.n_levels = max_over(ranks, result.n_levels);
  return result;
}

/// Colors of own rows and ghosts: as multicolor_order gives them, over all ranks. Collective.
std::vector<std::int32_t> colors_on_ranks(Communicator& ranks, RankRows const& rows, std::span<std::int64_t const> numbers) {
  CsrMatrix const& a = *rows.matrix;
  std::vector<std::size_t> last_user;  // the row, plus 1, that last found this color at a neighbour
  return values_along(ranks, rows, numbers, false, [&](std::size_t row, std::vector<std::int32_t> const& colors) {
    for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e) {
      auto const column = static_cast<std::size_t>(a.columns[e]);
      if (numbers[column] >= numbers[row])
        continue;
      auto const color = static_cast<std::size_t>(colors[column]);
      if (color >= last_user.size())
        last_user.resize(color + 1, 0);
      last_user[color] = row + 1;
    }
    auto const free = std::find_if(last_user.begin(), last_user.end(), [&](std::size_t user) { return user != row + 1; });
    return static_cast<std::int32_t>(free - last_user.begin());
  });
}

/// The fewest levels before which ranks must exchange: a row of a level gets what it needs of others in one of them. Collective.
std::vector<std::int64_t> exchange_points(Communicator& ranks, RankRows const& rows, std::span<std::int64_t const> keys,
                                          RowLevels const& levels, bool upper) {
  CsrMatrix const& a = *rows.matrix;
  struct Need {
    std::int32_t level, of;  // the highest level of others that rows of this level need
  };
  std::vector<std::int32_t> highest(static_cast<std::size_t>(levels.n_levels), -1);
  for (std::int64_t row = 0; row < a.n_rows; ++row)
    for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e)
      if (std::int32_t const column = a.columns[e];
          column >= a.n_rows && (upper ? keys[column] > keys[row] : keys[column] < keys[row])) {
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

/// What ranks tell each other before level points[i] is of levels points[i - 1] ... points[i] - 1.
struct Phases {
  std::vector<std::int64_t> const& points;
  [[nodiscard]] bool has(std::size_t phase, std::int32_t level) const {
    return (phase == 0 || points[phase - 1] <= level) && level < points[phase];
  }
};

/// Calls body(rank, row) for own rows that others have as ghosts, or for ghosts, of levels in a phase; a neighbour after the other,
/// in the order of its ghosts.
template <class Body>
void for_sent(RankRows const& rows, RowLevels const& levels, Phases const& phases, std::size_t phase, Body const& body) {
  for (RankNeighbor const& neighbor : rows.neighbors)
    for (std::int32_t const row : neighbor.sent)
      if (phases.has(phase, levels.level[row]))
        body(neighbor.rank, row);
}
template <class Body>
void for_ghosts(RankRows const& rows, RowLevels const& levels, Phases const& phases, std::size_t phase, Body const& body) {
  auto ghost = static_cast<std::int32_t>(rows.matrix->n_rows);
  for (RankNeighbor const& neighbor : rows.neighbors)
    for (std::int64_t i = 0; i < neighbor.n_ghosts; ++i, ++ghost)
      if (phases.has(phase, levels.level[ghost]))
        body(neighbor.rank, ghost);
}

/// `place`: of own rows and ghosts in vectors in the order of the factors. Collective.
RankTriangle triangle_of(Communicator& ranks, RankRows const& rows, RowLevels const& levels, std::vector<std::int64_t> points,
                         std::span<std::int32_t const> place, Context& context) {
  RowLevels of_own{HostVector<std::int32_t>(place.size(), -1), levels.n_levels};
  for (std::int64_t row = 0; row < rows.matrix->n_rows; ++row)
    of_own.level[place[row]] = levels.level[row];
  RankTriangle result{StoredSchedule(of_own, 1, context), std::move(points), {}};
  Phases const phases{result.exchanged_before};
  for (std::size_t phase = 0; phase < phases.points.size(); ++phase) {
    RankLists<std::int32_t> sent, received;
    auto const add_to = [&](RankLists<std::int32_t>& lists) {
      return [&](int rank, std::int32_t index) { lists[rank].push_back(place[static_cast<std::size_t>(index)]); };
    };
    for_sent(rows, levels, phases, phase, add_to(sent));
    for_ghosts(rows, levels, phases, phase, add_to(received));
    result.exchanges.push_back(std::make_unique<BlockExchange<double>>(context, ranks, sent, received));
  }
  return result;
}

/// Factors in host memory. Own rows and ghosts are numbered in the order of elimination; of ghosts there are the diagonal and those
/// entries above it that own rows have columns for.
struct HostFactors {
  HostVector<std::int64_t> row_ptr, diagonal;
  HostVector<std::int32_t> columns;
  HostVector<double> values;
  /// The rows of ghosts come from the diagonal on, and a part of each is kept. `length` is that of the row that comes, by ghost.
  /// `kept` lists the places in it of the entries that are kept, from kept_ptr of the ghost on.
  std::vector<std::int64_t> length, kept_ptr;
  std::vector<std::int32_t> kept;
};

/// Own rows with what ranks that share them need to know of each other's. `numbers`: of own rows and ghosts. Collective.
HostFactors factors_of(Communicator& ranks, RankRows const& rows, std::span<std::int64_t const> numbers,
                       std::span<std::int32_t const> place, std::span<std::int32_t const> order, double shift) {
  CsrMatrix const& a = *rows.matrix;
  auto const n = static_cast<std::size_t>(a.n_rows), n_all = static_cast<std::size_t>(a.n_columns);
  // The columns of own rows that others need, from the diagonal on.
  auto const in_order = [&](std::size_t row) {
    std::vector<std::pair<std::int32_t, std::int64_t>> entries;  // place of the column, place of the entry
    for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e)
      entries.emplace_back(place[static_cast<std::size_t>(a.columns[e])], e);
    std::sort(entries.begin(), entries.end());
    return entries;
  };
  RankLists<std::int64_t> told;
  for (RankNeighbor const& neighbor : rows.neighbors) {
    auto& list = told[neighbor.rank];
    for (std::int32_t const row : neighbor.sent) {
      std::size_t const count_at = list.size();
      list.push_back(0);
      for (auto const& [column, e] : in_order(static_cast<std::size_t>(row)))
        if (column >= place[static_cast<std::size_t>(row)])
          list.push_back(numbers[static_cast<std::size_t>(a.columns[e])]);
      list[count_at] = std::ssize(list) - static_cast<std::int64_t>(count_at) - 1;
    }
  }
  auto const heard = swap_lists(ranks, told);
  std::vector<std::int32_t> by_number(n_all);  // own rows and ghosts
  std::iota(by_number.begin(), by_number.end(), 0);
  auto const number_of = [&](std::int32_t index) { return numbers[static_cast<std::size_t>(index)]; };
  std::ranges::sort(by_number, {}, number_of);

  HostFactors result;
  result.kept_ptr.push_back(0);
  std::vector<std::int32_t> ghost_columns;  // where in the order of elimination
  for (RankNeighbor const& neighbor : rows.neighbors) {
    auto const& list = heard[neighbor.rank];
    std::size_t at = 0;
    for (std::int64_t i = 0; i < neighbor.n_ghosts; ++i) {
      std::int64_t const length = list[at++];
      for (std::int64_t j = 0; j < length; ++j, ++at) {
        auto const found = std::ranges::lower_bound(by_number, list[at], {}, number_of);
        if (found == by_number.end() || number_of(*found) != list[at])
          continue;
        result.kept.push_back(static_cast<std::int32_t>(j));
        ghost_columns.push_back(place[static_cast<std::size_t>(*found)]);
      }
      result.length.push_back(length);
      result.kept_ptr.push_back(std::ssize(result.kept));
    }
  }

  result.row_ptr.resize(n_all + 1);
  result.row_ptr[0] = 0;
  result.diagonal.resize(n_all);
  auto const length_of = [&](std::size_t index) {
    return index < n ? a.row_ptr[index + 1] - a.row_ptr[index] : result.kept_ptr[index - n + 1] - result.kept_ptr[index - n];
  };
  for (std::size_t i = 0; i < n_all; ++i)
    result.row_ptr[i + 1] = result.row_ptr[i] + length_of(static_cast<std::size_t>(order[i]));
  result.columns.resize(static_cast<std::size_t>(result.row_ptr[n_all]));
  result.values.resize(static_cast<std::size_t>(result.row_ptr[n_all]));
#pragma omp parallel for schedule(static)
  for (std::size_t i = 0; i < n_all; ++i) {
    auto const index = static_cast<std::size_t>(order[i]);
    std::int64_t to = result.row_ptr[i];
    if (index >= n) {
      result.diagonal[i] = to;
      for (std::int64_t k = result.kept_ptr[index - n]; k < result.kept_ptr[index - n + 1]; ++k, ++to) {
        result.columns[to] = ghost_columns[static_cast<std::size_t>(k)];
        result.values[to] = 0;
      }
      continue;
    }
    for (auto const& [column, e] : in_order(index)) {
      result.columns[to] = column;
      result.values[to] = a.values[e];
      if (column == static_cast<std::int32_t>(i))
        result.diagonal[i] = to;
      ++to;
    }
    if (shift != 0) {
      std::span<double const> const row(result.values.data() + result.row_ptr[i], result.values.data() + to);
      double& diagonal = result.values[result.diagonal[i]];
      diagonal += shift_of(row, diagonal, shift);
    }
  }
  return result;
}

/// Brings the rows of ghosts that were eliminated in a phase. Collective.
void exchange_rows(Communicator& ranks, RankRows const& rows, RowLevels const& levels, Phases const& phases, std::size_t phase,
                   std::span<std::int32_t const> place, HostFactors& factors) {
  RankLists<double> to;
  for_sent(rows, levels, phases, phase, [&](int rank, std::int32_t row) {
    auto const i = static_cast<std::size_t>(place[static_cast<std::size_t>(row)]);
    auto& list = to[rank];
    list.insert(list.end(), factors.values.begin() + factors.diagonal[i], factors.values.begin() + factors.row_ptr[i + 1]);
  });
  auto const from = swap_lists(ranks, to);
  std::map<int, std::size_t> places;  // in the lists
  for_ghosts(rows, levels, phases, phase, [&](int rank, std::int32_t index) {
    auto const& list = from[rank];
    std::size_t& at = places[rank];
    auto const ghost = static_cast<std::size_t>(index - rows.matrix->n_rows);
    std::int64_t entry = factors.row_ptr[place[static_cast<std::size_t>(index)]];
    for (std::int64_t k = factors.kept_ptr[ghost]; k < factors.kept_ptr[ghost + 1]; ++k)
      factors.values[entry++] = list[at + static_cast<std::size_t>(factors.kept[static_cast<std::size_t>(k)])];
    at += static_cast<std::size_t>(factors.length[ghost]);
  });
}

/// A row with its key in the order of elimination and its number in the whole matrix.
struct NumberedPivot {
  std::int64_t key, number;
  double value;
};

/// The first bad pivot over all ranks. Collective.
BadPivot factorize_on_ranks(Communicator& ranks, RankRows const& rows, RowLevels const& levels,
                            std::vector<std::int64_t> const& points, std::span<std::int32_t const> place,
                            std::span<std::int64_t const> keys, std::span<std::int64_t const> numbers, bool positive,
                            HostFactors& factors) {
  auto const host = make_cpu_context();
  std::int64_t const n = rows.matrix->n_rows;
  RowLevels const own{HostVector<std::int32_t>(levels.level.begin(), levels.level.begin() + n), levels.n_levels};
  StoredSchedule const stored(own, 1, *host);
  LevelSchedule const schedule = stored.view();
  IluView view;
  view.n_rows = std::ssize(factors.diagonal);
  view.row_ptr = factors.row_ptr.data();
  view.columns = factors.columns.data();
  view.values = factors.values.data();
  view.diagonal = factors.diagonal.data();
  constexpr std::int64_t none = -1;
  NumberedPivot bad{none, none, 0};
  std::size_t phase = 0;
  for (std::int64_t level = 0; level < levels.n_levels; ++level) {
    if (phase < points.size() && points[phase] == level)
      exchange_rows(ranks, rows, levels, Phases{points}, phase++, place, factors);
    constexpr std::int64_t worth_threads = 512;
    std::int64_t const begin = schedule.level_ptr[level], end = schedule.level_ptr[level + 1];
#pragma omp parallel for schedule(static) if (end - begin >= worth_threads)
    for (std::int64_t slot = begin; slot < end; ++slot) {
      std::int32_t const row = schedule.rows[slot];
      if (auto const pivot = bad_pivot_of(view, place[static_cast<std::size_t>(row)], positive)) {
#pragma omp critical(poisson_rank_ilu_bad_pivot)
        if (auto const i = static_cast<std::size_t>(row); bad.number == none || keys[i] < bad.key)
          bad = {keys[i], numbers[i], *pivot};
      }
    }
  }
  NumberedPivot const first = combined(ranks, bad, [](NumberedPivot& one, NumberedPivot const& other) {
    if (other.number != none && (one.number == none || other.key < one.key))
      one = other;
  });
  return first.number == none ? BadPivot() : BadPivot{first.number, first.value};
}

}  // namespace

RankIncompleteLu::RankIncompleteLu(NumberedRows const& own, double shift, bool positive, Ordering ordering, Context& context,
                                   Communicator& ranks) {
  RankRows rows = own.rows;
  if (auto completed = with_diagonal(*rows.matrix))
    rows.matrix = std::make_shared<CsrMatrix const>(std::move(*completed));
  CsrMatrix const& a = *rows.matrix;
  std::int64_t const n = a.n_rows, n_all = a.n_columns;
  bool zero = false;
  for (std::int64_t row = 0; row < n && !zero; ++row)
    zero = a.values[place_of_diagonal(a, row)] == 0;
  has_zero_on_diagonal_ = any_of_ranks(ranks, zero);

  RowMap const by_rank(ranks, n);
  std::vector<std::int64_t> numbers = own.numbers;
  if (numbers.empty()) {
    numbers.resize(static_cast<std::size_t>(n));
    std::iota(numbers.begin(), numbers.end(), by_rank.first[by_rank.me]);
  }
  auto const of_ghosts = values_of_ghosts<std::int64_t>(ranks, rows.neighbors, numbers);
  numbers.insert(numbers.end(), of_ghosts.begin(), of_ghosts.end());

  // Keys by which rows come one after another: their numbers, or colors first.
  std::vector<std::int64_t> keys = numbers;
  std::optional<RowLevels> levels;
  std::vector<std::int64_t> points;
  auto const find_levels = [&] {
    levels = levels_on_ranks(ranks, rows, keys, false);
    points = exchange_points(ranks, rows, keys, *levels, false);
  };
  std::int64_t waits = 0, n_colors = 1;
  if (ordering == Ordering::automatic) {
    find_levels();
    waits = context.backend() == Backend::cpu ? std::ssize(points) : levels->n_levels;
  }
  if (wants_colors(ordering, waits, n_colors)) {
    std::vector<std::int32_t> const colors = colors_on_ranks(ranks, rows, numbers);
    std::int64_t const mine = colors.empty() ? 0 : *std::max_element(colors.begin(), colors.end()) + 1;
    n_colors = std::max(n_colors, max_over(ranks, mine));
    if (wants_colors(ordering, waits, n_colors)) {
      ordering_ = Ordering::multicolor;
      for (std::size_t i = 0; i < keys.size(); ++i)
        keys[i] += colors[i] * by_rank.n_of_all();
      levels.reset();
    }
  }
  if (!levels)
    find_levels();
  RowLevels const of_upper = levels_on_ranks(ranks, rows, keys, true);

  HostVector<std::int32_t> order(static_cast<std::size_t>(n_all)), place(static_cast<std::size_t>(n_all));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](std::int32_t index) { return keys[static_cast<std::size_t>(index)]; });
  for (std::int64_t i = 0; i < n_all; ++i)
    place[order[i]] = static_cast<std::int32_t>(i);

  HostFactors factors = factors_of(ranks, rows, numbers, place, order, shift);
  bad_pivot_ = factorize_on_ranks(ranks, rows, *levels, points, place, keys, numbers, positive, factors);

  require_memory(context, IncompleteLu::bytes(n_all, std::ssize(factors.columns), true), "the incomplete factors",
                 "use the preconditioner jacobi, a coarser mesh, or the cpu backend");
  lower_ = triangle_of(ranks, rows, *levels, std::move(points), place, context);
  upper_ = triangle_of(ranks, rows, of_upper, exchange_points(ranks, rows, keys, of_upper, true), place, context);
  factors_ = StoredFactors(factors.row_ptr, factors.columns, factors.values, factors.diagonal, order, context);
  view_ = factors_.view();
  view_.level_launches = true;
  view_.threads_per_row = threads_for_rows(n_all, view_.nnz, view_.level_launches);
  view_.lower = lower_.schedule.view();
  view_.upper = upper_.schedule.view();
}

}  // namespace poisson
