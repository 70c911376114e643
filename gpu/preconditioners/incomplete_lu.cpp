#include "gpu/preconditioners/incomplete_lu.hpp"

#include "gpu/core/memory.hpp"
#include "gpu/core/row_map.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/ilu_elimination.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

namespace poisson {

namespace {

/// Returns the place of the diagonal entry in a row, or of the first entry after it.
std::int64_t place_of_diagonal(CsrMatrix const& a, std::int64_t row) {
  auto const* const columns = a.columns.data();
  return std::lower_bound(columns + a.row_ptr[row], columns + a.row_ptr[row + 1], static_cast<std::int32_t>(row)) - columns;
}

bool has_diagonal(CsrMatrix const& a) {
  bool all = true;
#pragma omp parallel for schedule(static) reduction(&& : all)
  for (std::int64_t row = 0; row < a.n_rows; ++row) {
    std::int64_t const place = place_of_diagonal(a, row);
    all = all && place < a.row_ptr[row + 1] && a.columns[place] == row;
  }
  return all;
}

/// Returns `a` with the diagonal entries that it does not store, as zeros; nothing where it stores all. It may have more columns
/// than rows.
std::optional<CsrMatrix> with_diagonal(CsrMatrix const& a) {
  if (has_diagonal(a))
    return std::nullopt;
  CsrMatrix b;
  b.n_rows = a.n_rows;
  b.n_columns = a.n_columns;
  b.row_ptr.push_back(0);
  for (std::int64_t row = 0; row < a.n_rows; ++row) {
    std::int64_t const diagonal = place_of_diagonal(a, row), end = a.row_ptr[row + 1];
    b.columns.insert(b.columns.end(), a.columns.begin() + a.row_ptr[row], a.columns.begin() + diagonal);
    b.values.insert(b.values.end(), a.values.begin() + a.row_ptr[row], a.values.begin() + diagonal);
    if (diagonal == end || a.columns[diagonal] != row) {
      b.columns.push_back(static_cast<std::int32_t>(row));
      b.values.push_back(0);
    }
    b.columns.insert(b.columns.end(), a.columns.begin() + diagonal, a.columns.begin() + end);
    b.values.insert(b.values.end(), a.values.begin() + diagonal, a.values.begin() + end);
    b.row_ptr.push_back(static_cast<std::int64_t>(b.columns.size()));
  }
  return b;
}

/// Returns what a shift adds to the diagonal entry of a row with these entries: see IncompleteLu.
double shift_of(std::span<double const> row, double diagonal, double shift) {
  double largest = 0;
  for (double const value : row)
    largest = std::max(largest, std::abs(value));
  return diagonal < 0 ? -shift * largest : shift * largest;
}

/// Whether the multicolor order is taken: where it is asked for or, with `automatic`, a solve in the natural order has many waits
/// one after another, and many more than there are colors.
bool wants_colors(Ordering ordering, std::int64_t waits, std::int64_t n_colors) {
  constexpr std::int64_t many = 64, many_more = 4;
  if (ordering != Ordering::automatic)
    return ordering == Ordering::multicolor;
  return waits > many && waits > many_more * n_colors;
}

/// Returns the threads that share a row of a solve: see IluView.
int threads_for_rows(std::int64_t n_rows, std::int64_t nnz, bool level_launches) {
  // Two terms a thread or so, four where they are loaded together: half of a row's entries are in each triangle.
  std::int64_t const terms = level_launches ? 4 : 2;
  int threads = 1;
  while (threads < 32 && 2 * terms * n_rows * threads < nnz)
    threads *= 2;
  return threads;
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

/// The levels of a triangle, and those before which ranks exchange.
struct TriangleLevels {
  RowLevels levels;
  std::vector<std::int64_t> points;
};

/// Makes a triangle from its levels, of which those of own rows fill up whole groups of `group_size` rows. Collective.
Triangle triangle_of(Communicator& ranks, RankRows const& rows, RowOrder const& order, TriangleLevels of, std::int64_t group_size,
                     Context& context) {
  RowLevels const& levels = of.levels;
  RowLevels of_own{HostVector<std::int32_t>(order.place.size(), -1), levels.n_levels};
  for (std::int64_t row = 0; row < rows.matrix->n_rows; ++row)
    of_own.level[order.place[row]] = levels.level[row];
  Triangle result{StoredSchedule(of_own, group_size, context), std::move(of.points), {}};
  Phases const phases{result.exchanged_before};
  for (std::size_t phase = 0; phase < phases.points.size(); ++phase) {
    HaloPlaces places;
    auto const add_to = [&](RankLists<std::int32_t>& lists) {
      return [&](int rank, std::int32_t index) { lists[rank].push_back(order.place[index]); };
    };
    for_sent(rows, levels, phases, phase, add_to(places.own));
    for_ghosts(rows, levels, phases, phase, add_to(places.ghosts));
    result.exchanges.push_back(std::make_unique<Halo<double>>(context, ranks, places));
  }
  return result;
}

/// The rows of ghosts, as far as this rank needs them: the diagonal entry, and those behind it that own rows have columns for.
/// They come from the diagonal on, all of a row in one, and a part is kept.
struct GhostRows {
  CsrMatrix rows;                    ///< by ghost; columns are own rows and ghosts, values 0
  std::vector<std::int64_t> length;  ///< of the row that comes, by ghost
  std::vector<std::int32_t> kept;    ///< places in the row that comes of the entries in `rows`
};

/// Tells ranks of each other's rows. `numbers`: of own rows and ghosts. Collective.
GhostRows rows_of_ghosts(Communicator& ranks, RankRows const& rows, std::span<std::int64_t const> numbers, RowOrder const& order) {
  CsrMatrix const& a = *rows.matrix;
  // The columns of own rows that others need, from the diagonal on.
  RankLists<std::int64_t> told;
  std::vector<std::int32_t> columns;
  for (RankNeighbor const& neighbor : rows.neighbors) {
    auto& list = told[neighbor.rank];
    for (std::int32_t const row : neighbor.sent) {
      columns.clear();
      for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e)
        if (order.place[a.columns[e]] >= order.place[row])
          columns.push_back(a.columns[e]);
      std::ranges::sort(columns, {}, [&](std::int32_t column) { return order.place[column]; });
      list.push_back(std::ssize(columns));
      for (std::int32_t const column : columns)
        list.push_back(numbers[static_cast<std::size_t>(column)]);
    }
  }
  auto const heard = swap_lists(ranks, told);
  auto const number_of = [&](std::int32_t index) { return numbers[static_cast<std::size_t>(index)]; };
  HostVector<std::int32_t> const by_number = natural_order(numbers).rows;
  GhostRows result;
  result.rows.n_columns = a.n_columns;
  result.rows.row_ptr.push_back(0);
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
        result.rows.columns.push_back(*found);
      }
      result.length.push_back(length);
      result.rows.row_ptr.push_back(std::ssize(result.kept));
    }
  }
  result.rows.n_rows = std::ssize(result.length);
  result.rows.values.resize(result.kept.size(), 0.0);
  return result;
}

/// Brings the rows of ghosts that were eliminated in a phase. Collective.
void exchange_rows(Communicator& ranks, RankRows const& rows, RowLevels const& levels, Phases const& phases, std::size_t phase,
                   RowOrder const& order, GhostRows const& ghosts, IluView const& factors) {
  RankLists<double> to;
  for_sent(rows, levels, phases, phase, [&](int rank, std::int32_t row) {
    std::int64_t const i = order.place[row];
    to[rank].insert(to[rank].end(), factors.values + factors.diagonal[i], factors.values + factors.row_ptr[i + 1]);
  });
  auto const from = swap_lists(ranks, to);
  std::map<int, std::size_t> places;  // in the lists
  for_ghosts(rows, levels, phases, phase, [&](int rank, std::int32_t index) {
    auto const& list = from[rank];
    std::size_t& at = places[rank];
    std::int64_t const ghost = index - rows.matrix->n_rows;
    std::int64_t entry = factors.row_ptr[order.place[index]];
    for (std::int64_t k = ghosts.rows.row_ptr[ghost]; k < ghosts.rows.row_ptr[ghost + 1]; ++k)
      factors.values[entry++] = list[at + static_cast<std::size_t>(ghosts.kept[static_cast<std::size_t>(k)])];
    at += static_cast<std::size_t>(ghosts.length[static_cast<std::size_t>(ghost)]);
  });
}

/// Eliminates own rows on the host, level by level, with the rows of others as they come. Returns the first bad pivot of this rank,
/// whose row is that in the order of elimination here. Collective.
BadPivot factorize_with_others(Communicator& ranks, RankRows const& rows, TriangleLevels const& lower, RowOrder const& order,
                               GhostRows const& ghosts, bool positive, IluView const& factors) {
  auto const host = make_cpu_context();
  RowLevels const own{HostVector<std::int32_t>(lower.levels.level.begin(), lower.levels.level.begin() + rows.matrix->n_rows),
                      lower.levels.n_levels};
  StoredSchedule const stored(own, 1, *host);
  LevelSchedule const schedule = stored.view();
  BadPivot bad;
  std::size_t phase = 0;
  for (std::int64_t level = 0; level < own.n_levels; ++level) {
    if (phase < lower.points.size() && lower.points[phase] == level)
      exchange_rows(ranks, rows, lower.levels, Phases{lower.points}, phase++, order, ghosts, factors);
    constexpr std::int64_t worth_threads = 512;
    std::int64_t const begin = schedule.level_ptr[level], end = schedule.level_ptr[level + 1];
#pragma omp parallel for schedule(static) if (end - begin >= worth_threads)
    for (std::int64_t slot = begin; slot < end; ++slot) {
      std::int64_t const row = order.place[schedule.rows[slot]];
      if (auto const pivot = bad_pivot_of(factors, row, positive)) {
#pragma omp critical(poisson_rank_ilu_bad_pivot)
        if (bad.row < 0 || row < bad.row)
          bad = {row, *pivot};
      }
    }
  }
  return bad;
}

/// Returns the first of the bad pivots that ranks have found, with the row's number in the whole matrix. Collective.
BadPivot first_of_ranks(Communicator& ranks, BadPivot const& mine, RowOrder const& order, std::span<std::int64_t const> numbers,
                        std::int64_t n_of_all) {
  struct NumberedPivot {
    std::int64_t key, number;  // in the order of elimination of all ranks; in the whole matrix
    double value;
  };
  constexpr std::int64_t none = -1;
  NumberedPivot bad{none, none, 0};
  if (mine.row >= 0) {
    std::int32_t const row = order.rows[mine.row];
    std::int64_t const number = numbers[static_cast<std::size_t>(row)];
    bad = {number + (order.color.empty() ? 0 : order.color[row] * n_of_all), number, mine.value};
  }
  NumberedPivot const first = combined(ranks, bad, [](NumberedPivot& one, NumberedPivot const& other) {
    if (other.number != none && (one.number == none || other.key < one.key))
      one = other;
  });
  return first.number == none ? BadPivot() : BadPivot{first.number, first.value};
}

}  // namespace

StoredSchedule::StoredSchedule(RowLevels const& levels, std::int64_t rows_at_once, Context& context) {
  level_ptr_.assign(static_cast<std::size_t>(levels.n_levels) + 1, 0);  // counts, one place further
  for (std::int32_t const mine : levels.level)
    if (mine >= 0)
      ++level_ptr_[static_cast<std::size_t>(mine) + 1];
  for (std::size_t l = 1; l < level_ptr_.size(); ++l)
    level_ptr_[l] = level_ptr_[l - 1] + (level_ptr_[l] + rows_at_once - 1) / rows_at_once * rows_at_once;
  HostVector<std::int32_t> rows;
  rows.resize(static_cast<std::size_t>(level_ptr_.back()), -1);
  std::vector<std::int64_t> next(level_ptr_.begin(), level_ptr_.end() - 1);
  for (std::size_t row = 0; row < levels.level.size(); ++row)
    if (levels.level[row] >= 0)
      rows[next[static_cast<std::size_t>(levels.level[row])]++] = static_cast<std::int32_t>(row);
  std::int64_t neighbors = 0;
  for (std::size_t slot = 1; slot < rows.size(); ++slot)
    neighbors += rows[slot] == rows[slot - 1] + 1 ? 1 : 0;
  side_by_side_ = 2 * neighbors > std::ssize(rows);
  rows_ = Array<std::int32_t>(context, std::span<std::int32_t const>(rows));
}

StoredFactors::StoredFactors(std::span<std::int64_t const> row_ptr, std::span<std::int32_t const> columns,
                             std::span<double const> values, std::span<std::int64_t const> diagonal,
                             std::span<std::int32_t const> order, Context& context)
    : row_ptr_(context, row_ptr), diagonal_(context, diagonal), columns_(context, columns), values_(context, values) {
  if (!order.empty())
    order_ = Array<std::int32_t>(context, order);
}

IluView StoredFactors::view() {
  IluView result;
  result.n_rows = diagonal_.size();
  result.nnz = columns_.size();
  result.row_ptr = row_ptr_.data();
  result.columns = columns_.data();
  result.values = values_.data();
  result.diagonal = diagonal_.data();
  result.order = order_.data();
  return result;
}

IncompleteLu::IncompleteLu(NumberedRows const& own, double shift, bool positive, Ordering ordering, Context& context,
                           Communicator& ranks) {
  RankRows rows = own.rows;
  if (auto completed = with_diagonal(*rows.matrix))
    rows.matrix = std::make_shared<CsrMatrix const>(std::move(*completed));
  CsrMatrix const& a = *rows.matrix;
  std::int64_t const n = a.n_rows, n_all = a.n_columns;
  bool const device = context.backend() == Backend::cuda;
  is_shared_ = any_of_ranks(ranks, n_all > n);
  RowMap const by_rank(ranks, n);
  std::vector<std::int64_t> numbers = own.numbers;
  if (numbers.empty()) {
    numbers.resize(static_cast<std::size_t>(n));
    std::iota(numbers.begin(), numbers.end(), by_rank.first[by_rank.me]);
  }
  auto const of_ghosts = values_of_ghosts<std::int64_t>(ranks, rows.neighbors, numbers);
  numbers.insert(numbers.end(), of_ghosts.begin(), of_ghosts.end());

  RowOrder order = natural_order(numbers);
  auto const levels_in_order = [&](bool upper) {
    TriangleLevels result{levels_of(ranks, rows, order, upper), {}};
    result.points = exchange_points(ranks, rows, order, result.levels, upper);
    return result;
  };
  // A device takes some microseconds a level. On the host, rows after one another in their own order are what threads do well, and
  // only other ranks are waited for.
  std::optional<TriangleLevels> of_lower;
  std::int64_t waits = 0;
  if (ordering == Ordering::automatic) {
    of_lower = levels_in_order(false);
    waits = device ? of_lower->levels.n_levels : std::ssize(of_lower->points);
  }
  if (wants_colors(ordering, waits, 1)) {
    RowOrder colored = multicolor_order(ranks, rows, order);
    if (wants_colors(ordering, waits, std::max<std::int64_t>(colored.n_colors, 1))) {
      ordering_ = Ordering::multicolor;
      order = std::move(colored);
      of_lower.reset();
    }
  }
  if (!of_lower)
    of_lower = levels_in_order(false);

  GhostRows const ghosts = is_shared_ ? rows_of_ghosts(ranks, rows, numbers, order) : GhostRows{};
  bool const reorders = is_shared_ || !std::ranges::is_sorted(order.rows);
  CsrMatrix in_order = reorders ? reordered(a, order, ghosts.rows) : CsrMatrix{};
  CsrMatrix const& f = reorders ? in_order : a;
  constexpr std::int64_t scratch_of_row = 16;  // while they are computed on the backend
  require_memory(context, bytes(n_all, f.nnz(), reorders) + (is_shared_ ? 0 : scratch_of_row * n_all), "the incomplete factors",
                 "use the preconditioner jacobi, a coarser mesh, or the cpu backend");

  HostVector<std::int64_t> diagonal(static_cast<std::size_t>(n_all));
#pragma omp parallel for schedule(static)
  for (std::int64_t row = 0; row < n_all; ++row)
    diagonal[row] = place_of_diagonal(f, row);
  HostVector<double> changed;  // entries, unless they are those of A
  if (reorders)
    changed = std::move(in_order.values);
  else if (shift != 0)
    changed = a.values;
  if (shift != 0) {
#pragma omp parallel for schedule(static)
    for (std::int64_t row = 0; row < n_all; ++row)
      if (order.rows[row] < n) {
        double& entry = changed[diagonal[row]];
        entry +=
            shift_of(std::span<double const>(changed).subspan(f.row_ptr[row], f.row_ptr[row + 1] - f.row_ptr[row]), entry, shift);
      }
  }
  BadPivot bad;
  if (is_shared_) {
    IluView of_host;
    of_host.n_rows = n_all;
    of_host.row_ptr = f.row_ptr.data();
    of_host.columns = f.columns.data();
    of_host.values = changed.data();
    of_host.diagonal = diagonal.data();
    bad = factorize_with_others(ranks, rows, *of_lower, order, ghosts, positive, of_host);
  }
  factors_ = StoredFactors(f.row_ptr, f.columns, changed.empty() ? a.values : changed, diagonal,
                           reorders ? std::span<std::int32_t const>(order.rows) : std::span<std::int32_t const>(), context);
  free_memory(changed);
  view_ = factors_.view();
  // A launch takes about 2 microseconds, in which a device works on as many rows.
  constexpr std::int64_t rows_worth_a_launch = 1 << 16;
  view_.level_launches = is_shared_ || (device && ordering_ == Ordering::multicolor && n >= rows_worth_a_launch * order.n_colors);
  view_.threads_per_row = threads_for_rows(n_all, view_.nnz, view_.level_launches);
  // Rows of a warp do not wait for each other: levels begin with a warp of their own.
  std::int64_t const rows_at_once = device && !view_.level_launches ? 32 / view_.threads_per_row : 1;
  lower_ = triangle_of(ranks, rows, order, std::move(*of_lower), rows_at_once, context);
  upper_ = triangle_of(ranks, rows, order, levels_in_order(true), rows_at_once, context);
  view_.lower = lower_.schedule.view();
  view_.upper = upper_.schedule.view();
  if (!is_shared_)
    bad = kernels_for<IluKernels>(context).factorize(context, view_, positive);
  bad_pivot_ = first_of_ranks(ranks, bad, order, numbers, by_rank.n_of_all());
  if (bad_pivot_.row >= 0) {
    bool has_zero = false;
    for (std::int64_t row = 0; row < n && !has_zero; ++row)
      has_zero = a.values[place_of_diagonal(a, row)] == 0;
    has_zero_on_diagonal_ = any_of_ranks(ranks, has_zero);
  }
}

}  // namespace poisson
