#include "gpu/core/number_text.hpp"
#include "gpu/core/place_text.hpp"
#include "gpu/formats/csr.hpp"
#include "gpu/formats/rank_matrix.hpp"
#include "gpu/kernels/aggregation.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/block.hpp"
#include "gpu/kernels/smoother.hpp"
#include "gpu/preconditioners/block_exchange.hpp"
#include "gpu/preconditioners/multigrid_hierarchy.hpp"
#include "gpu/preconditioners/rank_entries.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <type_traits>
#include <utility>

namespace poisson {

namespace {

constexpr int steps_of_power = 14;
constexpr double shrink_worth_a_level = 0.8;

/// How rows, or columns, are numbered over all ranks: those of rank r from first[r] on.
struct Numbering {
  std::vector<std::int64_t> first;
  std::size_t me = 0;

  Numbering() = default;
  Numbering(Communicator& ranks, std::int64_t n) : first{0}, me(static_cast<std::size_t>(ranks.rank())) {
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

/// The numbers of others that a rank needs, ascending, and which of its own others need, by rank.
struct Ghosts {
  std::vector<std::int64_t> numbers;
  std::vector<std::vector<std::int32_t>> sent;

  Ghosts() = default;
  Ghosts(Communicator& ranks, Numbering const& numbering, std::vector<std::int64_t> needed) : numbers(std::move(needed)) {
    std::sort(numbers.begin(), numbers.end());
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
    std::vector<std::vector<std::int64_t>> wanted(static_cast<std::size_t>(ranks.size()));
    for (std::int64_t const number : numbers)
      wanted[numbering.owner(number)].push_back(number);
    for (auto const& list : swap_lists(ranks, wanted)) {
      auto& of_rank = sent.emplace_back();
      for (std::int64_t const number : list)
        of_rank.push_back(static_cast<std::int32_t>(number - numbering.first[numbering.me]));
    }
  }
  [[nodiscard]] std::int64_t place(Numbering const& numbering, std::int64_t number) const {
    if (numbering.is_own(number))
      return number - numbering.first[numbering.me];
    return numbering.n_own() + (std::lower_bound(numbers.begin(), numbers.end(), number) - numbers.begin());
  }
  [[nodiscard]] std::int64_t number_at(Numbering const& numbering, std::int64_t place) const {
    std::int64_t const n = numbering.n_own();
    return place < n ? numbering.first[numbering.me] + place : numbers[static_cast<std::size_t>(place - n)];
  }
  /// What others have at the ghosts, from own entries. Collective.
  template <class T>
  [[nodiscard]] std::vector<T> values(Communicator& ranks, std::span<T const> own) const {
    std::vector<std::vector<T>> to(sent.size());
    for (std::size_t other = 0; other < sent.size(); ++other)
      for (std::int32_t const row : sent[other])
        to[other].push_back(own[static_cast<std::size_t>(row)]);
    std::vector<T> result;
    for (auto const& list : swap_lists(ranks, to))
      result.insert(result.end(), list.begin(), list.end());
    return result;
  }
};

/// Fills in the ghosts at the end of a vector of own entries. Collective, also to make.
template <class V>
std::unique_ptr<BlockExchange<V>> exchange_of(Context& context, Communicator& ranks, Numbering const& numbering,
                                              Ghosts const& ghosts) {
  using Places = typename BlockExchange<V>::Places;
  std::vector<Places> sends, receives;
  for (std::size_t other = 0; other < ghosts.sent.size(); ++other)
    if (!ghosts.sent[other].empty())
      sends.push_back({static_cast<int>(other), ghosts.sent[other]});
  std::int64_t place = numbering.n_own();
  for (std::int64_t const number : ghosts.numbers) {
    auto const owner = static_cast<int>(numbering.owner(number));
    if (receives.empty() || receives.back().rank != owner)
      receives.push_back({owner, {}});
    receives.back().of_x.push_back(static_cast<std::int32_t>(place++));
  }
  return std::make_unique<BlockExchange<V>>(context, ranks, sends, receives);
}

/// Entries of own rows with columns of all ranks, in any order; those at the same place are added in theirs.
struct Entry {
  std::int64_t row, column;  ///< row: of own ones, from 0
  double value;
};

CsrMatrix rows_of(std::vector<Entry> const& entries, std::int64_t n_rows, std::int64_t n_columns) {
  std::vector<std::int64_t> first(static_cast<std::size_t>(n_rows) + 1, 0);
  for (Entry const& entry : entries)
    ++first[static_cast<std::size_t>(entry.row) + 1];
  for (std::size_t row = 0; row < static_cast<std::size_t>(n_rows); ++row)
    first[row + 1] += first[row];
  using Pair = std::pair<std::int32_t, double>;
  std::vector<Pair> sorted(entries.size());
  std::vector<std::int64_t> next(first.begin(), first.end() - 1);
  for (Entry const& entry : entries)
    sorted[static_cast<std::size_t>(next[static_cast<std::size_t>(entry.row)]++)] = {static_cast<std::int32_t>(entry.column),
                                                                                     entry.value};
  CsrMatrix result;
  result.n_rows = n_rows;
  result.n_columns = n_columns;
  result.row_ptr.push_back(0);
  result.columns.reserve(entries.size());
  result.values.reserve(entries.size());
  for (std::size_t row = 0; row < static_cast<std::size_t>(n_rows); ++row) {
    auto const begin = sorted.begin() + first[row], end = sorted.begin() + first[row + 1];
    auto const before = [](Pair const& a, Pair const& b) { return a.first < b.first; };
    if (!std::is_sorted(begin, end, before))
      std::stable_sort(begin, end, before);
    for (auto entry = begin; entry != end; ++entry)
      if (entry != begin && entry->first == (entry - 1)->first)
        result.values.back() += entry->second;
      else {
        result.columns.push_back(entry->first);
        result.values.push_back(entry->second);
      }
    result.row_ptr.push_back(std::ssize(result.columns));
  }
  return result;
}

/// A level's rows on this rank; columns are own ones, then ghosts.
struct LevelRows {
  Numbering numbering;
  Ghosts ghosts;
  std::shared_ptr<CsrMatrix const> matrix;
};

LevelRows finest_rows(RankMatrix const& a) {
  Communicator& ranks = a.ranks();
  LevelRows level;
  std::int64_t const n = a.n_rows();
  level.numbering = Numbering(ranks, n);
  // The ghosts of the matrix are numbered as those here: by rank, and within a rank as it sends them, which need not ascend.
  std::vector<std::vector<std::int64_t>> to(static_cast<std::size_t>(ranks.size()));
  for (RankNeighbor const& neighbor : a.neighbors())
    for (std::int32_t const row : neighbor.sent)
      to[static_cast<std::size_t>(neighbor.rank)].push_back(level.numbering.first[level.numbering.me] + row);
  std::vector<std::int64_t> numbers;
  for (auto const& list : swap_lists(ranks, to))
    numbers.insert(numbers.end(), list.begin(), list.end());
  level.ghosts = Ghosts(ranks, level.numbering, numbers);
  std::vector<Entry> entries;
  CsrMatrix const local = a.local().to_csr(), couplings = a.couplings();
  HostVector<std::int32_t> const rim = a.rim();
  entries.reserve(static_cast<std::size_t>(local.nnz() + couplings.nnz()));
  for (std::int64_t row = 0; row < local.n_rows; ++row)
    for (std::int64_t e = local.row_ptr[row]; e < local.row_ptr[row + 1]; ++e)
      entries.push_back({row, local.columns[e], local.values[e]});
  for (std::int64_t row = 0; row < couplings.n_rows; ++row)
    for (std::int64_t e = couplings.row_ptr[row]; e < couplings.row_ptr[row + 1]; ++e)
      entries.push_back({rim[static_cast<std::size_t>(row)],
                         level.ghosts.place(level.numbering, numbers[static_cast<std::size_t>(couplings.columns[e])]),
                         couplings.values[e]});
  level.matrix = std::make_shared<CsrMatrix const>(rows_of(entries, n, n + std::ssize(level.ghosts.numbers)));
  return level;
}

/// Own rows and own columns only.
CsrMatrix own_block(CsrMatrix const& a) {
  std::vector<Entry> entries;
  for (std::int64_t row = 0; row < a.n_rows; ++row)
    for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e)
      if (a.columns[e] < a.n_rows)
        entries.push_back({row, a.columns[e], a.values[e]});
  return rows_of(entries, a.n_rows, a.n_rows);
}

/// The largest eigenvalue of D^-1 A, as largest_by_power; NaN where it finds none. Collective.
double largest_on_ranks(Communicator& ranks, LevelRows const& level, std::span<double const> diagonal) {
  CsrMatrix const& a = *level.matrix;
  auto const n = static_cast<std::size_t>(a.n_rows);
  std::vector<double> x(n);
  std::uint32_t state = 1 + static_cast<std::uint32_t>(ranks.rank());
  for (double& v : x) {
    state = state * 1664525U + 1013904223U;
    v = static_cast<double>(state) / 4294967296.0 - 0.5;
  }
  auto const host = make_cpu_context();
  auto const exchange = exchange_of<double>(*host, ranks, level.numbering, level.ghosts);
  x.resize(static_cast<std::size_t>(a.n_columns));
  std::vector<double> y(n);
  double estimate = 0;
  for (int step = 0; step < steps_of_power; ++step) {
    exchange->fill(x.data());
    double before = 0, after = 0;
    for (std::size_t i = 0; i < n; ++i) {
      double sum = 0;
      for (std::int64_t e = a.row_ptr[i]; e < a.row_ptr[i + 1]; ++e)
        sum += a.values[e] * x[static_cast<std::size_t>(a.columns[e])];
      y[i] = sum / diagonal[i];
      before += std::abs(diagonal[i]) * x[i] * x[i];
      after += std::abs(diagonal[i]) * y[i] * y[i];
    }
    before = sum_over(&ranks, before);
    after = sum_over(&ranks, after);
    if (!(before > 0) || !(after > 0))
      return std::nan("");
    estimate = std::sqrt(after / before);
    for (std::size_t i = 0; i < n; ++i)
      x[i] = y[i] / std::sqrt(after);
  }
  return estimate;
}

template <class V>
std::unique_ptr<Matrix> in_precision(std::shared_ptr<CsrMatrix const> rows, Context& context) {
  FormatOptions options;
  options.precision = std::is_same_v<V, float> ? MatrixPrecision::single : MatrixPrecision::double_;
  options.conversion = Conversion::host;
  return make_matrix(Format::csr, std::move(rows), context, options);
}

/// P, and P^T by rows of own coarse unknowns, with the vectors that they read. The next level has its own unknowns and ghosts, or
/// all on every rank.
template <class V>
class RowsTransfer final : public GridTransfer<V> {
public:
  RowsTransfer(Context& context, Communicator& ranks, std::shared_ptr<CsrMatrix const> p, std::shared_ptr<CsrMatrix const> r,
               Numbering const& fine, Ghosts const& of_r, Numbering const& coarse, Ghosts const& of_p)
      : context_(context),
        blocks_(kernels_for<BlockKernels<V>>(context)),
        p_(in_precision<V>(std::move(p), context)),
        r_(in_precision<V>(std::move(r), context)),
        n_fine_(fine.n_own()),
        n_coarse_(coarse.n_own()),
        fine_(context, n_fine_ + std::ssize(of_r.numbers)),
        coarse_(context, n_coarse_ + std::ssize(of_p.numbers)),
        halo_of_fine_(exchange_of<V>(context, ranks, fine, of_r)),
        halo_of_coarse_(exchange_of<V>(context, ranks, coarse, of_p)) {
    fine_.set_zero();
    coarse_.set_zero();
  }
  /// The next level has all unknowns on every rank.
  void goes_on_whole(Communicator& ranks, Numbering const& coarse, Ghosts const& of_p) {
    std::vector<NodeBox> const own = coarse.boxes();
    gather_ = std::make_unique<BlockGather<V>>(context_, ranks, own, own[coarse.me], NodeBox{{}, {coarse.n_of_all(), 1, 1}});
    std::vector<std::int32_t> places;
    for (std::int64_t place = 0; place < coarse_.size(); ++place)
      places.push_back(static_cast<std::int32_t>(of_p.number_at(coarse, place)));
    places_in_whole_ = Array<std::int32_t>(context_, std::span<std::int32_t const>(places));
    of_own_ = Array<V>(context_, n_coarse_);
    n_next_ = coarse.n_of_all();
  }

  void restrict_residual(V const* r, V const* diagonal, V factor, V* b, V* x, std::int32_t const* stop) const override {
    copy(n_fine_, r, fine_.data());
    halo_of_fine_->fill(fine_.data());
    V* const own = gather_ != nullptr ? of_own_.data() : b;
    if (n_coarse_ > 0)
      static_cast<LinearOperator<V> const&>(*r_).product(1, fine_.data(), 0, own);
    if (gather_ != nullptr)
      gather_->gather(own, b);
    std::int64_t const n = gather_ != nullptr ? n_next_ : n_coarse_;
    kernels_for<SmootherKernels<V>>(context_).begin(context_, n, diagonal, b, factor, x, stop);
  }
  void prolong(V const* e, V* x, std::int32_t const* stop) const override {
    if (gather_ != nullptr)
      blocks_.pack(context_, coarse_.size(), places_in_whole_.data(), e, coarse_.data());
    else {
      copy(n_coarse_, e, coarse_.data());
      halo_of_coarse_->fill(coarse_.data());
    }
    if (n_fine_ > 0 && (context_.backend() != Backend::cpu || *stop == 0))
      static_cast<LinearOperator<V> const&>(*p_).product(1, coarse_.data(), 1, x);
  }
  std::int64_t bytes() const override { return p_->bytes() + r_->bytes() + fine_.bytes() + coarse_.bytes(); }
  std::int64_t bytes_moved() const override { return bytes() + (4 * n_fine_ + 6 * n_coarse_) * std::int64_t{sizeof(V)}; }

private:
  void copy(std::int64_t n, V const* from, V* to) const {
    NodeBox const all{{}, {n, 1, 1}};
    blocks_.copy(context_, common_nodes(all, all, all), from, to);
  }

  Context& context_;
  BlockKernels<V> const& blocks_;
  std::unique_ptr<Matrix> p_, r_;
  std::int64_t n_fine_, n_coarse_, n_next_ = 0;
  mutable Array<V> fine_, coarse_;  ///< with ghosts
  std::unique_ptr<BlockExchange<V>> halo_of_fine_, halo_of_coarse_;
  std::unique_ptr<BlockGather<V>> gather_;
  Array<std::int32_t> places_in_whole_;
  mutable Array<V> of_own_;
};

/// The rows of all ranks, on every rank.
std::shared_ptr<CsrMatrix const> whole_matrix(Communicator& ranks, LevelRows const& level) {
  struct Item {
    std::int64_t row, column;
    double value;
  };
  std::vector<Item> mine;
  CsrMatrix const& a = *level.matrix;
  for (std::int64_t row = 0; row < a.n_rows; ++row)
    for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e)
      mine.push_back(
          {level.numbering.first[level.numbering.me] + row, level.ghosts.number_at(level.numbering, a.columns[e]), a.values[e]});
  std::vector<Entry> entries;
  for (auto const& list : swap_lists(ranks, std::vector<std::vector<Item>>(static_cast<std::size_t>(ranks.size()), mine)))
    for (Item const& item : list)
      entries.push_back({item.row, item.column, item.value});
  std::int64_t const n = level.numbering.n_of_all();
  return std::make_shared<CsrMatrix const>(rows_of(entries, n, n));
}

CsrMatrix to_host_matrix(SparseArrays const& a) {
  CsrMatrix result;
  CsrView const view = a.view();
  result.n_rows = view.n_rows;
  result.n_columns = view.n_columns;
  result.row_ptr.assign(view.row_ptr, view.row_ptr + view.n_rows + 1);
  result.columns.assign(view.columns, view.columns + view.nnz);
  result.values.assign(view.values, view.values + view.nnz);
  return result;
}

/// A coarser level with P and P^T.
struct Coarser {
  LevelRows level;
  std::shared_ptr<CsrMatrix const> p, r;
  Ghosts of_p, of_r;
};

/// P by aggregates of own unknowns, smoothed across ranks, and P^T A P. Collective.
Coarser coarser_level(Communicator& ranks, Context& host, LevelRows const& fine, Couplings const& couplings,
                      Aggregates const& aggregates, double damping) {
  auto const& kernels = AggregationKernels::cpu();
  CsrMatrix const& a = *fine.matrix;
  std::int64_t const n = a.n_rows, n_ghosts = std::ssize(fine.ghosts.numbers);
  Coarser result;
  Numbering const coarse(ranks, aggregates.count);
  std::int64_t const first = coarse.first[coarse.me];
  // Aggregates of own unknowns and of ghosts, by their numbers over all ranks.
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 0; i < n; ++i)
    numbers.push_back(aggregates.of.data()[i] < 0 ? -1 : first + aggregates.of.data()[i]);
  auto const of_ghosts = fine.ghosts.values<std::int64_t>(ranks, numbers);
  auto const strongest_of_ghosts = fine.ghosts.values<double>(ranks, {couplings.strongest.data(), static_cast<std::size_t>(n)});
  std::vector<std::int64_t> needed;
  for (std::int64_t const number : of_ghosts)
    if (number >= 0)
      needed.push_back(number);
  result.of_p = Ghosts(ranks, coarse, needed);

  Couplings with_ghosts;
  with_ghosts.diagonal = couplings.diagonal.copy_to(host);
  std::vector<double> strongest(couplings.strongest.data(), couplings.strongest.data() + n);
  strongest.insert(strongest.end(), strongest_of_ghosts.begin(), strongest_of_ghosts.end());
  with_ghosts.strongest = Array<double>(host, std::span<double const>(strongest));
  std::vector<std::int32_t> of;
  numbers.insert(numbers.end(), of_ghosts.begin(), of_ghosts.end());
  for (std::int64_t const number : numbers)
    of.push_back(number < 0 ? -1 : static_cast<std::int32_t>(result.of_p.place(coarse, number)));
  Aggregates const all{Array<std::int32_t>(host, std::span<std::int32_t const>(of)),
                       aggregates.count + std::ssize(result.of_p.numbers)};
  auto const p =
      std::make_shared<CsrMatrix const>(to_host_matrix(kernels.prolongation(host, view_of(a), with_ghosts, all, damping)));
  result.p = p;

  // The rows of P of ghosts, with columns that others own.
  std::vector<std::vector<std::int64_t>> lengths(fine.ghosts.sent.size()), columns(lengths.size());
  std::vector<std::vector<double>> values(lengths.size());
  for (std::size_t other = 0; other < fine.ghosts.sent.size(); ++other)
    for (std::int32_t const row : fine.ghosts.sent[other]) {
      lengths[other].push_back(p->row_ptr[row + 1] - p->row_ptr[row]);
      for (std::int64_t e = p->row_ptr[row]; e < p->row_ptr[row + 1]; ++e) {
        columns[other].push_back(result.of_p.number_at(coarse, p->columns[e]));
        values[other].push_back(p->values[e]);
      }
    }
  lengths = swap_lists(ranks, lengths);
  columns = swap_lists(ranks, columns);
  values = swap_lists(ranks, values);
  std::vector<std::int64_t> beyond = result.of_p.numbers;
  for (auto const& list : columns)
    for (std::int64_t const number : list)
      if (!coarse.is_own(number))
        beyond.push_back(number);
  std::sort(beyond.begin(), beyond.end());
  beyond.erase(std::unique(beyond.begin(), beyond.end()), beyond.end());
  auto const place_beyond = [&](std::int64_t number) {
    return coarse.is_own(number) ? number - first
                                 : coarse.n_own() + (std::lower_bound(beyond.begin(), beyond.end(), number) - beyond.begin());
  };
  auto const number_beyond = [&](std::int64_t place) {
    return place < coarse.n_own() ? first + place : beyond[static_cast<std::size_t>(place - coarse.n_own())];
  };
  std::int64_t const width = coarse.n_own() + std::ssize(beyond);
  std::vector<Entry> of_own_p, of_ghost_p;
  for (std::int64_t row = 0; row < n; ++row)
    for (std::int64_t e = p->row_ptr[row]; e < p->row_ptr[row + 1]; ++e)
      of_own_p.push_back({row, place_beyond(result.of_p.number_at(coarse, p->columns[e])), p->values[e]});
  std::int64_t ghost = n;
  for (std::size_t other = 0; other < lengths.size(); ++other) {
    std::size_t e = 0;
    for (std::int64_t const length : lengths[other]) {
      for (std::int64_t k = 0; k < length; ++k, ++e)
        of_ghost_p.push_back({ghost, place_beyond(columns[other][e]), values[other][e]});
      ++ghost;
    }
  }
  CsrMatrix const own_p = rows_of(of_own_p, n, width);
  of_own_p.insert(of_own_p.end(), of_ghost_p.begin(), of_ghost_p.end());
  CsrMatrix const all_p = rows_of(of_own_p, n + n_ghosts, width);
  SparseArrays const ap = kernels.product(host, view_of(a), view_of(all_p), false);
  SparseArrays const pt = kernels.transposed(host, view_of(own_p));
  SparseArrays const product = kernels.product(host, pt.view(), ap.view(), true);

  // Rows of coarse unknowns that others own go to them: of P^T A P and of P^T, whose columns are fine unknowns.
  struct Item {
    std::int64_t row, column;
    double value;
  };
  auto const share_out = [&](CsrView const& rows, auto const& number_of_column) {
    std::vector<std::vector<Item>> to(static_cast<std::size_t>(ranks.size()));
    for (std::int64_t row = 0; row < rows.n_rows; ++row) {
      std::int64_t const number = number_beyond(row);
      auto& list = to[coarse.owner(number)];
      for (std::int64_t e = rows.row_ptr[row]; e < rows.row_ptr[row + 1]; ++e)
        list.push_back({number, number_of_column(rows.columns[e]), rows.values[e]});
    }
    return swap_lists(ranks, to);
  };
  auto const collect = [&](std::vector<std::vector<Item>> const& lists, Numbering const& of_columns, Ghosts& ghosts) {
    std::vector<std::int64_t> foreign;
    std::vector<Entry> entries;
    for (auto const& list : lists)
      for (Item const& item : list)
        if (!of_columns.is_own(item.column))
          foreign.push_back(item.column);
    ghosts = Ghosts(ranks, of_columns, foreign);
    for (auto const& list : lists)
      for (Item const& item : list)
        entries.push_back({item.row - first, ghosts.place(of_columns, item.column), item.value});
    return std::make_shared<CsrMatrix const>(rows_of(entries, coarse.n_own(), of_columns.n_own() + std::ssize(ghosts.numbers)));
  };
  result.level.numbering = coarse;
  result.level.matrix = collect(share_out(product.view(), number_beyond), coarse, result.level.ghosts);
  result.r = collect(share_out(pt.view(), [&](std::int64_t row) { return fine.numbering.first[fine.numbering.me] + row; }),
                     fine.numbering, result.of_r);
  return result;
}

}  // namespace

template <class V>
MultigridHierarchy<V> rank_algebraic_hierarchy(RankMatrix const& a, PreconditionerOptions const& options) {
  Context& context = a.context();
  Communicator& ranks = a.ranks();
  MultigridOptions const& multigrid = options.multigrid;
  auto const host = make_cpu_context();
  auto const& kernels = AggregationKernels::cpu();
  MultigridHierarchy<V> result;
  PreconditionerOptions rest = options;
  rest.box_nodes = {};
  // Kernels of a device are not launched for nothing.
  auto const any_has_none = [&](Numbering const& numbering) {
    return any_of_ranks(&ranks, context.backend() != Backend::cpu && numbering.n_own() == 0);
  };
  auto const go_on_whole = [&](LevelRows const& level) {
    auto const matrix = whole_matrix(ranks, level);
    auto coarser = algebraic_hierarchy<V>(
        nullptr, [&] { return matrix; }, context, rest);
    for (MultigridLevel<V>& next : coarser.levels)
      result.levels.push_back(std::move(next));
    result.coarsest = std::move(coarser.coarsest);
    result.failure = std::move(coarser.failure);
  };
  LevelRows rows = finest_rows(a);
  options.done(context, "CSR");
  std::vector<NodeBox> const boxes = rows.numbering.boxes();
  if (rows.numbering.n_of_all() <= multigrid.coarse_size || any_has_none(rows.numbering)) {
    result.entry = std::make_unique<GatheredEntry<V>>(context, ranks, boxes, NodeBox{{}, {rows.numbering.n_of_all(), 1, 1}});
    go_on_whole(rows);
    return result;
  }
  result.entry = std::make_unique<BlockEntry<V>>(context, boxes[rows.numbering.me], boxes[rows.numbering.me]);
  for (;;) {
    CsrMatrix const& matrix = *rows.matrix;
    Couplings const couplings = kernels.couplings(*host, view_of(matrix), options.positive);
    std::string failure;
    if (couplings.bad_row >= 0)
      failure = std::string("multigrid ") + (options.positive ? "for cg needs a positive" : "needs a non-zero") +
                " diagonal, and " + row_text(couplings.bad_row) + " of this rank has " + number(couplings.bad_value) +
                (result.levels.empty() ? "" : " on level " + std::to_string(result.levels.size() + 1)) +
                (options.positive ? ": the matrix is not positive definite" : "");
    result.failure = first_message(&ranks, failure);
    if (!result.failure.empty())
      return result;
    MultigridLevel<V>& level = result.levels.emplace_back();
    level.own = in_precision<V>(rows.matrix, context);
    level.matrix = level.own.get();
    std::vector<V> const diagonal(couplings.diagonal.data(), couplings.diagonal.data() + matrix.n_rows);
    level.diagonal = Array<V>(context, std::span<V const>(diagonal));
    level.halo = std::make_unique<BlockHalo<V>>(exchange_of<V>(context, ranks, rows.numbering, rows.ghosts));
    level.rows_of_all = rows.numbering.n_of_all();
    level.nnz = sum_over(&ranks, matrix.nnz());
    double const bound = max_over(&ranks, couplings.bound),
                 largest = largest_on_ranks(ranks, rows, {couplings.diagonal.data(), static_cast<std::size_t>(matrix.n_rows)});
    level.largest = std::isfinite(largest) ? std::min(safety * largest, bound) : bound;
    options.done(context, "level of rows");
    if (static_cast<int>(result.levels.size()) == multigrid.levels)
      return result;
    CsrMatrix const block = own_block(matrix);
    Aggregates const aggregates = kernels.aggregate(*host, view_of(block), couplings);
    auto const count = static_cast<double>(sum_over(&ranks, aggregates.count));
    options.done(context, "aggregates");
    if (count == 0 || count > shrink_worth_a_level * static_cast<double>(rows.numbering.n_of_all()))
      return result;
    Coarser coarser = coarser_level(ranks, *host, rows, couplings, aggregates, 4 / (3 * level.largest));
    auto transfer = std::make_unique<RowsTransfer<V>>(context, ranks, coarser.p, coarser.r, rows.numbering, coarser.of_r,
                                                      coarser.level.numbering, coarser.of_p);
    options.done(context, "P and P^T A P");
    if (coarser.level.numbering.n_of_all() <= multigrid.gathered_size || any_has_none(coarser.level.numbering)) {
      transfer->goes_on_whole(ranks, coarser.level.numbering, coarser.of_p);
      level.to_coarse = std::move(transfer);
      rest.multigrid.levels = multigrid.levels - static_cast<int>(result.levels.size());
      go_on_whole(coarser.level);
      return result;
    }
    level.to_coarse = std::move(transfer);
    rows = std::move(coarser.level);
  }
}

template MultigridHierarchy<float> rank_algebraic_hierarchy(RankMatrix const&, PreconditionerOptions const&);
template MultigridHierarchy<double> rank_algebraic_hierarchy(RankMatrix const&, PreconditionerOptions const&);

}  // namespace poisson
