#include "gpu/elements/operator_of_rank.hpp"
#include "gpu/formats/foreign_rows.hpp"
#include "gpu/formats/lattices_of_rank.hpp"
#include "gpu/formats/sum_exchange.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/lattice_levels.hpp"
#include "gpu/kernels/order_levels.hpp"
#include "gpu/preconditioners/level_rows.hpp"
#include "gpu/preconditioners/level_transfer.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <numeric>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace poisson {

namespace rank_lattices {
namespace {

/// A level's unknowns on this rank: own ones, ghosts that lattices here have (RankLattices), and more ghosts with which own ones
/// are coupled.
struct LevelUnknowns {
  RankLattices lattices;
  RowMap rows;    ///< with the ghosts of lattices.neighbors
  RowMap beyond;  ///< with those that no lattice here has

  [[nodiscard]] std::int64_t n() const { return lattices.layout.n_unknowns + std::ssize(beyond.ghosts); }
  /// By place in vectors, the number over all ranks.
  [[nodiscard]] std::int64_t number(std::int64_t place) const {
    std::int64_t const n_here = lattices.layout.n_unknowns;
    return place < n_here ? rows.number_at(place) : beyond.ghosts[static_cast<std::size_t>(place - n_here)];
  }
};

/// Fills in all ghosts. Collective.
template <class V>
std::unique_ptr<BlockExchange<V>> exchange_of(Context& context, Communicator& ranks, LevelUnknowns const& level) {
  RankLists<std::int32_t> sent, received;
  auto place = static_cast<std::int32_t>(level.lattices.n_rows);
  for (auto const* const neighbors : {&level.lattices.neighbors, &level.beyond.neighbors})
    for (RankNeighbor const& neighbor : *neighbors) {
      sent[neighbor.rank].insert(sent[neighbor.rank].end(), neighbor.sent.begin(), neighbor.sent.end());
      for (std::int64_t i = 0; i < neighbor.n_ghosts; ++i)
        received[neighbor.rank].push_back(place++);
    }
  return std::make_unique<BlockExchange<V>>(context, ranks, sent, received);
}

/// The matrix of a level, of half_cds on the lattices here and what others' lattices add.
template <class V>
std::unique_ptr<LatticesOfRank> matrix_of(Context& context, LevelUnknowns const& level, std::unique_ptr<Matrix> lattices,
                                          std::vector<MatrixEntry> const& added) {
  std::int64_t const n_inner = level.lattices.layout.n_inner(), n_rim = level.lattices.n_rows - n_inner;
  std::vector<MatrixEntry> of_rims;
  of_rims.reserve(added.size());
  for (MatrixEntry const& entry : added)
    of_rims.push_back({entry.row - n_inner, entry.column, entry.value});
  auto const rows = std::make_shared<CsrMatrix const>(csr_of_entries(n_rim, level.n(), of_rims));
  std::vector<std::int32_t> on_diagonal;
  std::vector<double> values;
  for (std::int64_t i = 0; i < n_rim; ++i)
    for (auto e = static_cast<std::size_t>(rows->row_ptr[static_cast<std::size_t>(i)]);
         e < static_cast<std::size_t>(rows->row_ptr[static_cast<std::size_t>(i) + 1]); ++e)
      if (rows->columns[e] == n_inner + i) {
        on_diagonal.push_back(rows->columns[e]);
        values.push_back(rows->values[e]);
      }
  return std::make_unique<LatticesOfRank>(std::unique_ptr<LatticeHalfCds>(static_cast<LatticeHalfCds*>(lattices.release())),
                                          level.lattices.n_rows, in_precision<V>(rows, context),
                                          AddedDiagonal(context, on_diagonal, values));
}

/// The next level's unknowns, without what is beyond. `coarse_of`: see coarse_layout. Collective.
LevelUnknowns coarse_unknowns(Communicator& ranks, LevelUnknowns const& fine, LatticeLayout layout,
                              std::vector<std::int32_t> const& coarse_of) {
  LevelUnknowns result;
  RankLattices const& lattices = fine.lattices;
  std::int64_t const n_inner = lattices.layout.n_inner(), n_own = lattices.n_rows - n_inner;
  result.lattices.n_rows =
      layout.n_inner() + std::count_if(coarse_of.begin(), coarse_of.begin() + n_own, [](std::int32_t i) { return i >= 0; });
  result.lattices.layout = std::move(layout);
  result.lattices.cut = lattices.cut;
  result.rows = RowMap(ranks, result.lattices.n_rows);
  // Owners tell the numbers of fine ghosts.
  std::vector<std::int64_t> numbers;
  for (std::int64_t row = 0; row < lattices.n_rows; ++row) {
    std::int32_t const coarse = row < n_inner ? -1 : coarse_of[static_cast<std::size_t>(row - n_inner)];
    numbers.push_back(coarse < 0 ? -1 : result.rows.first[result.rows.me] + coarse);
  }
  numbers = values_of_ghosts<std::int64_t>(ranks, lattices.neighbors, numbers);
  RankLists<std::int32_t> wanted;
  std::int64_t ghost = 0;
  for (RankNeighbor const& neighbor : lattices.neighbors)
    for (std::int64_t i = 0; i < neighbor.n_ghosts; ++i, ++ghost)
      if (coarse_of[static_cast<std::size_t>(n_own + ghost)] >= 0) {  // on rims
        result.rows.ghosts.push_back(numbers[static_cast<std::size_t>(ghost)]);
        auto const first = result.rows.first[static_cast<std::size_t>(neighbor.rank)];
        wanted[neighbor.rank].push_back(static_cast<std::int32_t>(result.rows.ghosts.back() - first));
      }
  result.lattices.neighbors = result.rows.neighbors = neighbors_of(ranks, wanted);
  return result;
}

/// What others' lattices add to own rows, with columns by place; sets level.beyond. Collective.
template <class V>
std::vector<MatrixEntry> entries_of_others(Context& context, Communicator& ranks, LevelUnknowns& level, V const* values) {
  ForeignRows const foreign(ranks, level.rows, level.lattices);
  GhostFinder const ghost_of(level.rows.ghosts);
  auto const find = [&](std::int64_t number) {
    std::int32_t const ghost = ghost_of(number);
    return ghost < 0 ? -1 : static_cast<std::int32_t>(level.lattices.n_rows + ghost);
  };
  std::vector<std::int64_t> beyond;
  std::vector<std::int32_t> columns;
  for (ForeignRows::Entry const& entry : foreign.come()) {
    bool const is_own = level.rows.is_own(entry.column);
    columns.push_back(is_own ? static_cast<std::int32_t>(entry.column - level.rows.first[level.rows.me]) : find(entry.column));
    if (columns.back() < 0)
      beyond.push_back(entry.column);
  }
  level.beyond = level.rows.with_ghosts(ranks, std::move(beyond));
  auto const& numbers = level.beyond.ghosts;
  for (std::size_t i = 0; i < columns.size(); ++i)
    if (columns[i] < 0)
      columns[i] =
          static_cast<std::int32_t>(level.lattices.layout.n_unknowns +
                                    (std::lower_bound(numbers.begin(), numbers.end(), foreign.come()[i].column) - numbers.begin()));
  auto const found = foreign.values(context, values);
  std::vector<MatrixEntry> added;
  added.reserve(columns.size());
  for (std::size_t i = 0; i < columns.size(); ++i)
    if (auto const value = static_cast<double>(found.come[i]); is_stored(value))
      added.push_back({foreign.come()[i].row, columns[i], value});
  return added;
}

/// P between levels of lattices, by the kernels of one rank. What P^T makes of own fine unknowns at coarse unknowns of others goes
/// to these ranks.
template <class V, class Kernels, class Levels>
class PiecesTransfer : public LevelTransfer<V> {
  using Base = LevelTransfer<V>;
  using Base::context_, Base::n_coarse_;

public:
  std::int64_t bytes() const override {
    return sums_.bytes() + parts_.bytes() + unused_.bytes() + ones_.bytes() + this->bytes_of_vectors();
  }

protected:
  PiecesTransfer(Context& context, Communicator& ranks, LevelUnknowns const& level, LevelUnknowns const& next)
      : Base(context, level.lattices.n_rows, next.lattices.n_rows, next.n() - next.lattices.n_rows,
             exchange_of<V>(context, ranks, next)),
        kernels_(kernels_for<Kernels>(context)),
        sums_(context, ranks, next.lattices.neighbors),
        parts_(context, next.lattices.layout.n_unknowns),
        unused_(context, parts_.size()) {
    std::vector<V> const ones(static_cast<std::size_t>(parts_.size()), V(1));
    ones_ = Array<V>(context, std::span<V const>(ones));
  }
  /// Sets the levels, with all unknowns on lattices here. It is called before anything else.
  void set_levels(Levels const& levels) {
    levels_ = of_rows_ = levels;
    of_rows_.fine.n_unknowns = this->n_fine_;
  }
  [[nodiscard]] Levels const& levels() const { return levels_; }

private:
  void restrict_and_begin(V const* r, V const* diagonal, V factor, V* b, V* x, std::int32_t const* stop) const final {
    kernels_.restrict_residual(context_, levels_, r, diagonal, factor, b, x, stop);
  }
  void to_coarse(V const* r, V* own, std::int32_t const* stop) const final {
    kernels_.restrict_residual(context_, levels_, r, ones_.data(), V(0), parts_.data(), unused_.data(), stop);
    this->blocks_.copy(context_, all_rows(parts_.size() - n_coarse_), parts_.data() + n_coarse_, sums_.outgoing());
    sums_.start();
    this->blocks_.copy(context_, all_rows(n_coarse_), parts_.data(), own);
    sums_.finish(V(1), own);
  }
  void to_fine(V const* e, V* x, std::int32_t const* stop) const final { kernels_.prolong(context_, of_rows_, e, x, stop); }

  Kernels const& kernels_;
  Levels levels_{}, of_rows_{};  ///< the latter with own fine unknowns only
  mutable SumExchange<V> sums_;
  mutable Array<V> parts_;  ///< of P^T r, on lattices here
  mutable Array<V> unused_, ones_;
};

/// By place on a rim: 1 where this copy is the first one of an own unknown.
Array<std::uint8_t> first_copies_of_own(Context& context, RankLattices const& lattices) {
  HostVector<std::uint8_t> owned = first_copies(lattices.layout);
  for (std::size_t place = 0; place < owned.size(); ++place)
    if (lattices.layout.rim_unknowns[place] >= lattices.n_rows)
      owned[place] = 0;
  return Array<std::uint8_t>(context, std::span<std::uint8_t const>(owned));
}

/// Restricts and prolongs between lattices and those with cells twice as large.
template <class V>
class LatticesTransfer final : public PiecesTransfer<V, LatticeLevelKernels<V>, LatticeLevels> {
  using Base = PiecesTransfer<V, LatticeLevelKernels<V>, LatticeLevels>;

public:
  /// `fine`, `coarse`: with all unknowns on lattices here.
  LatticesTransfer(Context& context, Communicator& ranks, LevelUnknowns const& level, LevelUnknowns const& next,
                   std::shared_ptr<LatticeArrays const> fine, std::shared_ptr<LatticeArrays const> coarse,
                   std::shared_ptr<Array<std::uint8_t> const> free_of_fine,
                   std::shared_ptr<Array<std::uint8_t> const> free_of_coarse, Array<std::uint8_t> owned)
      : Base(context, ranks, level, next),
        fine_(std::move(fine)),
        coarse_(std::move(coarse)),
        free_of_fine_(std::move(free_of_fine)),
        free_of_coarse_(std::move(free_of_coarse)),
        owned_(std::move(owned)) {
    this->set_levels({fine_->view(), coarse_->view(), free_of_fine_->data(), free_of_coarse_->data(), owned_.data()});
  }

  std::int64_t bytes() const override { return coarse_->bytes() + free_of_fine_->bytes() + owned_.bytes() + Base::bytes(); }
  std::int64_t bytes_moved() const override {
    std::int64_t const number = sizeof(V);
    return this->levels().fine.n_unknowns * (3 * number + 2) + this->levels().coarse.n_unknowns * (12 * number + 9);
  }

private:
  std::shared_ptr<LatticeArrays const> fine_, coarse_;
  std::shared_ptr<Array<std::uint8_t> const> free_of_fine_, free_of_coarse_;
  Array<std::uint8_t> owned_;
};

/// Restricts and prolongs between elements of order p and elements of order 1 on the same cells.
template <class V>
class OrderOfRankTransfer final : public PiecesTransfer<V, OrderLevelKernels<V>, OrderLevels> {
  using Base = PiecesTransfer<V, OrderLevelKernels<V>, OrderLevels>;

public:
  /// `fixed`: of fine unknowns on rims; `coarse_of`: see layout_of_vertices.
  OrderOfRankTransfer(Context& context, Communicator& ranks, LevelUnknowns const& level, LevelUnknowns const& next,
                      HostVector<std::uint8_t> const& fixed, std::vector<std::int32_t> const& coarse_of)
      : Base(context, ranks, level, next),
        fine_(context, level.lattices.layout),
        coarse_(context, next.lattices.layout),
        owned_(first_copies_of_own(context, level.lattices)),
        fixed_of_fine_(context, std::span<std::uint8_t const>(fixed)) {
    LatticeLayout const& layout = next.lattices.layout;
    HostVector<std::uint8_t> of_coarse(static_cast<std::size_t>(layout.n_unknowns - layout.n_inner()));
    for (std::size_t i = 0; i < coarse_of.size(); ++i)
      if (coarse_of[i] >= 0)
        of_coarse[static_cast<std::size_t>(coarse_of[i] - layout.n_inner())] = fixed[i];
    fixed_of_coarse_ = Array<std::uint8_t>(context, std::span<std::uint8_t const>(of_coarse));
    OrderLevels levels = order_levels_of(fine_.view(), coarse_.view());
    levels.fixed_of_fine = fixed_of_fine_.data();
    levels.fixed_of_coarse = fixed_of_coarse_.data();
    levels.owned = owned_.data();
    this->set_levels(levels);
  }

  std::int64_t bytes() const override {
    return fine_.bytes() + coarse_.bytes() + owned_.bytes() + fixed_of_fine_.bytes() + fixed_of_coarse_.bytes() + Base::bytes();
  }
  std::int64_t bytes_moved() const override {
    std::int64_t const number = sizeof(V);
    return this->levels().fine.n_unknowns * 3 * number + this->levels().coarse.n_unknowns * 5 * number;
  }

private:
  LatticeArrays fine_, coarse_;
  Array<std::uint8_t> owned_, fixed_of_fine_, fixed_of_coarse_;
};

/// All lattices of a level, on every rank, put together from their pieces.
struct WholeLevel {
  LatticeLayout layout;
  LatticeCut cut;                    ///< of all ranks: the pieces of one after those of the other
  std::vector<std::int32_t> order;   ///< by unknown, the row's number over all ranks
  std::vector<std::int32_t> places;  ///< of own unknowns and of ghosts on lattices here
};
WholeLevel whole_level(Communicator& ranks, LevelUnknowns const& level) {
  WholeLevel result;
  LatticeLayout const& mine = level.lattices.layout;
  LatticeCut& cut = result.cut;
  cut = level.lattices.cut;
  std::int64_t const m = mine.nodes(), a_side = cut.a_side;
  LatticeLayout& layout = result.layout;
  layout.n_lattices = cut.n_lattices;
  layout.cells = static_cast<std::int32_t>(mine.cells * a_side);
  layout.kind_first.assign(1, 0);
  layout.n_unknowns = level.rows.n_of_all();
  std::vector<std::int32_t> table;  // the numbers over all ranks of what is on the rims of pieces
  table.reserve(mine.rim_unknowns.size());
  for (std::int32_t const unknown : mine.rim_unknowns)
    table.push_back(static_cast<std::int32_t>(level.number(unknown)));
  table = gather_lists(ranks, std::move(table));
  std::vector<std::int64_t> const n_pieces = gather(ranks, mine.n_lattices);
  cut.places = gather_lists(ranks, std::move(cut.places));

  // By number over all ranks: the place in the whole. Unknowns on rims are numbered as they are met.
  std::vector<std::int32_t> place(static_cast<std::size_t>(layout.n_unknowns), -1);
  LatticeView const view = layout.view();
  LatticeRim const rim = layout.rim(), of_piece = mine.rim();
  auto next = static_cast<std::int32_t>(layout.n_inner());
  layout.rim_unknowns.resize(static_cast<std::size_t>(layout.n_lattices * rim.size()));
  std::size_t piece = 0;
  for (std::size_t r = 0; r < n_pieces.size(); ++r) {
    std::int64_t inner = level.rows.first[r];
    for (std::int64_t i = 0; i < n_pieces[r]; ++i, ++piece) {
      LatticeCut::Place const& at = cut.places[piece];
      std::array<std::int32_t, 3> const first{at.x * mine.cells, at.y * mine.cells, at.z * mine.cells};
      for (std::int32_t z = 1; z < m - 1; ++z)
        for (std::int32_t y = 1; y < m - 1; ++y)
          for (std::int32_t x = 1; x < m - 1; ++x)
            place[static_cast<std::size_t>(inner++)] =
                static_cast<std::int32_t>(view.inner_unknown(at.lattice, first[0] + x, first[1] + y, first[2] + z));
      for (std::int64_t p = 0; p < of_piece.size(); ++p) {
        LatticeRim::Node const node = of_piece.node(p);
        std::int32_t const x = first[0] + node.i, y = first[1] + node.j, z = first[2] + node.k;
        std::int32_t& here =
            place[static_cast<std::size_t>(table[piece * static_cast<std::size_t>(of_piece.size()) + static_cast<std::size_t>(p)])];
        if (!rim.holds(x, y, z)) {
          here = static_cast<std::int32_t>(view.inner_unknown(at.lattice, x, y, z));
          continue;
        }
        if (here < 0)
          here = next++;
        layout.rim_unknowns[static_cast<std::size_t>(at.lattice * rim.size() + rim.place(x, y, z))] = here;
      }
    }
  }
  list_copies(layout);
  result.order.resize(place.size());
  for (std::size_t number = 0; number < place.size(); ++number)
    result.order[static_cast<std::size_t>(place[number])] = static_cast<std::int32_t>(number);
  for (std::int64_t i = 0; i < mine.n_unknowns; ++i)
    result.places.push_back(place[static_cast<std::size_t>(level.number(i))]);
  return result;
}

/// The values of all lattices. `values`: of the pieces here. Collective.
template <class V>
Array<V> all_values(Context& context, Communicator& ranks, WholeLevel const& whole, LatticeLayout const& mine, V const* values) {
  std::int64_t const nodes = mine.nodes() * mine.nodes() * mine.nodes(), n = mine.n_lattices * nodes;
  RowMap const numbers(ranks, n);
  Array<V> of_pieces(context, half_stencil::diagonals * numbers.n_of_all());
  BlockGather<V>(context, ranks, numbers.boxes(), numbers.boxes()[numbers.me], {{}, {numbers.n_of_all(), 1, 1}},
                 half_stencil::diagonals)
      .gather(values, of_pieces.data());
  LatticeCut const& cut = whole.cut;
  std::vector<std::int32_t> numbers_of_pieces(cut.places.size());
  for (std::size_t piece = 0; piece < cut.places.size(); ++piece) {
    LatticeCut::Place const& at = cut.places[piece];
    numbers_of_pieces[static_cast<std::size_t>(((std::int64_t{at.lattice} * cut.a_side + at.z) * cut.a_side + at.y) * cut.a_side +
                                               at.x)] = static_cast<std::int32_t>(piece);
  }
  Array<std::int32_t> const there(context, std::span<std::int32_t const>(numbers_of_pieces));
  std::int64_t const m = whole.layout.nodes();
  Array<V> result(context, half_stencil::diagonals * whole.layout.n_lattices * m * m * m);
  kernels_for<LatticeLevelKernels<V>>(context).merge(context, {cut.n_lattices, cut.a_side, mine.cells, there.data()},
                                                     of_pieces.data(), result.data());
  return result;
}

}  // namespace
}  // namespace rank_lattices

bool has_levels(RankLattices const* lattices) {
  return lattices != nullptr && (lattices->layout.all_on_rim || has_levels(lattices->layout.cells));
}

template <class V>
MultigridHierarchy<V> rank_lattice_hierarchy(RankMatrix const& a, PreconditionerOptions const& options) {
  using namespace rank_lattices;
  Context& context = a.context();
  Communicator& ranks = a.ranks();
  auto const& kernels = kernels_for<LatticeLevelKernels<V>>(context);
  MultigridOptions const& multigrid = options.multigrid;
  PreconditionerOptions rest = options;
  MultigridHierarchy<V> result;
  // The level and all that follow, on every rank; `values` are those of the lattices here.
  auto const go_on_whole = [&](WholeLevel const& whole, LatticeLayout const& mine, V const* values) {
    std::unique_ptr<Matrix> matrix = LatticeHalfCds::from_diagonals(context, LatticeArrays(context, whole.layout),
                                                                    all_values(context, ranks, whole, mine, values));
    rest.multigrid.levels = multigrid.levels - static_cast<int>(result.levels.size());
    options.done(context, "gathered lattices");
    auto next = lattice_hierarchy<V>(static_cast<LatticeHalfCds const&>(*matrix), rest);
    if (!next.levels.empty() && next.levels.front().matrix == matrix.get())
      next.levels.front().own = std::move(matrix);
    append(result, std::move(next));
  };

  LevelUnknowns level;
  level.lattices = *a.lattices();
  level.rows = RowMap(ranks, a.n_rows(), level.lattices.neighbors);
  std::unique_ptr<LatticesOfRank> matrix;  // of the level
  std::shared_ptr<LatticeArrays const> arrays;
  std::shared_ptr<Array<std::uint8_t> const> free;
  // What the level with this matrix adds to the hierarchy, but for the transfer; whether it is the last one.
  auto const add_level = [&](Matrix const& of_level) {
    MultigridLevel<V>& added = result.levels.emplace_back();
    added.matrix = &of_level;
    added.diagonal = Array<V>(context, level.lattices.n_rows);
    static_cast<LinearOperator<V> const&>(of_level).diagonal(added.diagonal.data());
    added.halo = exchange_of<V>(context, ranks, level);
    added.rows_of_all = level.rows.n_of_all();
    std::int64_t const of_line = 2 * level.lattices.layout.order + 1;
    added.nnz = of_line * of_line * of_line * added.rows_of_all;
    double const largest = largest_of_symmetric(ranks, added, level.rows);
    if (!(largest > 0) || !std::isfinite(largest)) {
      result.failure = "the matrix is not positive definite on level " + std::to_string(result.levels.size()) + " of multigrid";
      return true;
    }
    added.largest = safety * largest;
    options.done(context, "level of lattices");
    return static_cast<int>(result.levels.size()) == multigrid.levels;
  };
  // Goes on to `next`, whose lattices here have this matrix; whether all levels are made then.
  auto const descend = [&](LevelUnknowns next, std::shared_ptr<LatticeArrays const> next_arrays, std::unique_ptr<Matrix> half_cds,
                           auto const& make_transfer) {
    MultigridLevel<V>& added = result.levels.back();
    V const* const values = values_in<V>(static_cast<LatticeHalfCds const&>(*half_cds));
    if (next.rows.n_of_all() <= multigrid.gathered_size) {
      auto transfer = make_transfer(next);
      WholeLevel const whole = whole_level(ranks, next);
      transfer->goes_on_whole(std::make_unique<RowGather<V>>(context, ranks, next.rows, whole.order), whole.places);
      added.to_coarse = std::move(transfer);
      go_on_whole(whole, next.lattices.layout, values);
      return true;
    }
    std::vector<MatrixEntry> const entries = entries_of_others<V>(context, ranks, next, values);
    auto transfer = make_transfer(next);
    matrix = matrix_of<V>(context, next, std::move(half_cds), entries);
    options.done(context, "rows of other ranks");
    if (!has_levels(next.lattices.layout.cells)) {  // many small lattices: goes on by rows
      std::vector<std::int64_t> needed = next.rows.ghosts;
      needed.insert(needed.end(), next.beyond.ghosts.begin(), next.beyond.ghosts.end());
      RowMap const rows = next.rows.with_ghosts(ranks, std::move(needed));
      CsrMatrix const by_place = matrix->to_csr();
      std::vector<MatrixEntry> all;
      all.reserve(static_cast<std::size_t>(by_place.nnz()));
      for (std::int64_t row = 0; row < by_place.n_rows; ++row)
        for (auto e = static_cast<std::size_t>(by_place.row_ptr[static_cast<std::size_t>(row)]);
             e < static_cast<std::size_t>(by_place.row_ptr[static_cast<std::size_t>(row) + 1]); ++e)
          all.push_back({row, static_cast<std::int32_t>(rows.place(next.number(by_place.columns[e]))), by_place.values[e]});
      rest.multigrid.levels = multigrid.levels - static_cast<int>(result.levels.size());
      RankMatrix const of_rows = matrix_of_rows(
          context, ranks, {rows.neighbors, std::make_shared<CsrMatrix const>(csr_of_entries(by_place.n_rows, rows.n_here(), all))});
      MultigridHierarchy<V> coarser = algebraic_hierarchy<V>(of_rows, {}, rest);
      if (coarser.failure.empty())
        transfer->goes_on_in(std::move(coarser.entry), coarser.levels.front().n());
      added.to_coarse = std::move(transfer);
      append(result, std::move(coarser));
      return true;
    }
    added.to_coarse = std::move(transfer);
    level = std::move(next);
    arrays = std::move(next_arrays);
    return false;
  };

  auto const enter_by_rows = [&] {
    std::vector<NodeBox> const boxes = level.rows.boxes();
    result.entry = std::make_unique<BlockEntry<V>>(context, boxes[level.rows.me], boxes[level.rows.me]);
  };
  if (auto const* const of_rank = dynamic_cast<OperatorOfRank const*>(&a.local()); of_rank != nullptr) {
    OrderOne order_one = options.order_one ? options.order_one() : OrderOne{};
    bool const is_box = level.lattices.layout.all_on_rim;
    if (any_of_ranks(ranks, is_box ? order_one.own_rows == nullptr
                                   : dynamic_cast<LatticeHalfCds const*>(order_one.matrix.get()) == nullptr)) {
      // The levels are made from the entries.
      RankRows const rows{a.neighbors(), std::make_shared<CsrMatrix const>(of_rank->own_rows())};
      SplitRows const parts = split(rows);
      RankMatrix const of_entries(make_matrix(Format::csr, parts.local, context), parts, rows.neighbors, ranks);
      return algebraic_hierarchy<V>(of_entries, options.nested_spaces ? options.nested_spaces() : RankNestedSpaces{}, options);
    }
    options.done(context, "elements of order 1");
    auto const levels_of_box = [&](PreconditionerOptions const& of_levels) {
      return has_levels(order_one.blocks.get()) ? rank_box_hierarchy<V>(*order_one.own_rows, *order_one.blocks, of_levels)
                                                : algebraic_hierarchy<V>(*order_one.own_rows, {}, of_levels);
    };
    if (is_box && level.lattices.layout.order == 1)  // the same matrix, with entries
      return levels_of_box(options);
    enter_by_rows();
    auto const add_operator = [&] {  // whether it is the last level
      std::unique_ptr<OperatorOfRank> own = std::is_same_v<V, float> ? of_rank->in_single_on_rank() : nullptr;
      if (add_level(own != nullptr ? *own : *of_rank))
        return true;
      result.levels.back().own = std::move(own);
      result.levels.back().more_steps = std::max(level.lattices.layout.order - 2, 0);
      return false;
    };
    std::vector<std::int32_t> coarse_of;
    if (is_box) {
      if (add_operator())
        return result;
      LatticeLayout vertices = layout_of_vertices(level.lattices.layout.view(), &coarse_of);
      LevelUnknowns const next = coarse_unknowns(ranks, level, std::move(vertices), coarse_of);
      auto transfer = std::make_unique<OrderOfRankTransfer<V>>(context, ranks, level, next, order_one.fixed, coarse_of);
      rest.multigrid.levels = multigrid.levels - 1;
      MultigridHierarchy<V> coarser = levels_of_box(rest);
      if (coarser.failure.empty())
        transfer->goes_on_in(std::move(coarser.entry), coarser.levels.front().n());
      result.levels.back().to_coarse = std::move(transfer);
      append(result, std::move(coarser));
      return result;
    }
    std::unique_ptr<Matrix> half_cds = std::is_same_v<V, float> ? order_one.matrix->in_single() : std::move(order_one.matrix);
    if (level.lattices.layout.order == 1) {
      V const* const values = values_in<V>(static_cast<LatticeHalfCds const&>(*half_cds));
      std::vector<MatrixEntry> const entries = entries_of_others<V>(context, ranks, level, values);
      arrays = std::make_shared<LatticeArrays const>(context, level.lattices.layout);
      matrix = matrix_of<V>(context, level, std::move(half_cds), entries);
    } else {
      if (add_operator())
        return result;
      LatticeLayout coarse = layout_of_vertices(level.lattices.layout.view(), &coarse_of);
      auto coarse_arrays = std::make_shared<LatticeArrays const>(context, coarse);
      LevelUnknowns next = coarse_unknowns(ranks, level, std::move(coarse), coarse_of);
      if (descend(std::move(next), std::move(coarse_arrays), std::move(half_cds), [&](LevelUnknowns const& coarser) {
            return std::make_unique<OrderOfRankTransfer<V>>(context, ranks, level, coarser, order_one.fixed, coarse_of);
          }))
        return result;
    }
  } else {
    auto const& stored = static_cast<LatticeHalfCds const&>(a.local());
    std::unique_ptr<Matrix> half_cds = std::is_same_v<V, float> ? stored.in_single() : stored.copy_to(context);
    if (level.rows.n_of_all() <= multigrid.gathered_size) {
      WholeLevel const whole = whole_level(ranks, level);
      std::vector<std::int32_t> const own(whole.places.begin(), whole.places.begin() + level.lattices.n_rows);
      result.entry = std::make_unique<GatheredRowsEntry<V>>(
          context, std::make_unique<RowGather<V>>(context, ranks, level.rows, whole.order), own);
      go_on_whole(whole, level.lattices.layout, values_in<V>(static_cast<LatticeHalfCds const&>(*half_cds)));
      return result;
    }
    enter_by_rows();
    matrix = matrix_of<V>(context, level, std::move(half_cds), level.lattices.added);
    arrays = std::make_shared<LatticeArrays const>(context, level.lattices.layout);
  }
  for (;;) {
    std::unique_ptr<LatticesOfRank> own = std::exchange(matrix, nullptr);
    V const* const values = values_in<V>(own->lattices());
    bool const is_last = add_level(*own);
    result.levels.back().own = std::move(own);
    if (is_last)
      return result;
    LatticeView const view = arrays->view();
    if (free == nullptr) {
      auto found = std::make_shared<Array<std::uint8_t>>(context, view.n_unknowns);
      kernels.find_free(context, view, values, found->data());
      free = std::move(found);
    }
    std::vector<std::int32_t> coarse_of;
    LatticeLayout coarse = coarse_layout(level.lattices.layout.view(), &coarse_of);
    auto coarse_arrays = std::make_shared<LatticeArrays const>(context, coarse);
    auto free_of_coarse = std::make_shared<Array<std::uint8_t>>(context, coarse.n_unknowns);
    kernels.copy_free(context, view, coarse_arrays->view(), free->data(), free_of_coarse->data());
    LevelUnknowns next = coarse_unknowns(ranks, level, std::move(coarse), coarse_of);
    std::int64_t const m = next.lattices.layout.nodes();
    Array<std::uint8_t> const owned = first_copies_of_own(context, level.lattices);
    Array<V> coarse_values(context, half_stencil::diagonals * next.lattices.layout.n_lattices * m * m * m);
    kernels.coarsen(context, {view, coarse_arrays->view(), free->data(), free_of_coarse->data(), owned.data()}, values,
                    coarse_values.data());
    options.done(context, "P^T A P");
    auto const fine_arrays = arrays;
    if (descend(std::move(next), coarse_arrays,
                LatticeHalfCds::from_diagonals(context, coarse_arrays->copy_to(context), std::move(coarse_values)),
                [&](LevelUnknowns const& coarser) {
                  return std::make_unique<LatticesTransfer<V>>(context, ranks, level, coarser, fine_arrays, coarse_arrays, free,
                                                               free_of_coarse, owned.copy_to(context));
                }))
      return result;
    free = std::move(free_of_coarse);
  }
}

template MultigridHierarchy<float> rank_lattice_hierarchy(RankMatrix const&, PreconditionerOptions const&);
template MultigridHierarchy<double> rank_lattice_hierarchy(RankMatrix const&, PreconditionerOptions const&);

}  // namespace poisson
