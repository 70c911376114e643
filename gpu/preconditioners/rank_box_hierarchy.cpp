#include "gpu/formats/rank_matrix.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/block.hpp"
#include "gpu/kernels/box_stencil_rows.hpp"
#include "gpu/kernels/conversion.hpp"
#include "gpu/kernels/smoother.hpp"
#include "gpu/preconditioners/block_exchange.hpp"
#include "gpu/preconditioners/box_coarsening.hpp"
#include "gpu/preconditioners/rank_entries.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

namespace poisson {

namespace {

using Counts = std::array<std::int64_t, 3>;

/// How far a row of P^T A P looks beyond the fine node of its unknown: rows of A at a distance of two, with their entries.
constexpr std::int64_t reach_of_coarsening = 3;
/// Layers around own nodes that an exchange brings; what is kept of a level is enough for them.
constexpr int most_layers = 3;
static_assert(most_layers <= reach_of_coarsening);

/// What a rank keeps of a level: its own nodes, and so many around them that the rows of coarser levels need no others. It begins
/// with a node that stays when its direction is halved, and ends with one.
NodeBox extended(NodeBox const& own, Counts const& nodes) {
  NodeBox result;
  for (std::size_t d = 0; d < 3; ++d) {
    std::int64_t const low = own.size() > 0 ? own.low[d] : 0, high = own.size() > 0 ? own.high[d] : 1;
    result.low[d] = std::max<std::int64_t>(low - reach_of_coarsening, 0) / 2 * 2;
    std::int64_t const last = high - 1 + reach_of_coarsening;
    result.high[d] = std::min(last + last % 2 + 1, nodes[d]);
  }
  return result;
}

std::vector<NodeBox> extended(std::vector<NodeBox> const& own, Counts const& nodes) {
  std::vector<NodeBox> result;
  for (NodeBox const& box : own)
    result.push_back(extended(box, nodes));
  return result;
}

/// The box of the coarse nodes in a box that is extended().
template <class V>
NodeBox coarse_box(NodeBox const& fine, BoxCoarsening<V> const& coarsening) {
  NodeBox result = fine;
  for (std::size_t d = 0; d < 3; ++d)
    if (coarsening.halved[d]) {
      result.low[d] = fine.low[d] / 2;
      result.high[d] = result.low[d] + BoxCoarsening<V>::coarse_nodes(static_cast<std::int32_t>(fine.count(d)));
    }
  return result;
}

/// The coarse nodes at the places of the fine ones of `own`.
template <class V>
NodeBox coarse_own(NodeBox const& own, BoxCoarsening<V> const& coarsening, Counts const& fine, Counts const& coarse) {
  NodeBox result = own;
  if (own.size() == 0)
    return {};
  for (std::size_t d = 0; d < 3; ++d)
    if (coarsening.halved[d]) {
      result.low[d] = (own.low[d] + 1) / 2;
      result.high[d] = own.high[d] == fine[d] ? coarse[d] : (own.high[d] + 1) / 2;
    }
  return result;
}

/// The coarse nodes that the fine ones of `own` depend on.
template <class V>
NodeBox coarse_parents(NodeBox const& own, BoxCoarsening<V> const& coarsening, Counts const& fine, Counts const& coarse) {
  NodeBox result = own;
  if (own.size() == 0)
    return {};
  for (std::size_t d = 0; d < 3; ++d)
    if (coarsening.halved[d]) {
      result.low[d] = own.low[d] / 2;
      result.high[d] = own.high[d] == fine[d] ? coarse[d] : own.high[d] / 2 + 1;
    }
  return result;
}

template <class V>
BoxLevel<V> level_of(NodeBox const& box) {
  BoxLevel<V> level;
  for (std::size_t d = 0; d < 3; ++d)
    level.nodes[d] = static_cast<std::int32_t>(box.count(d));
  return level;
}

template <class V>
std::unique_ptr<Matrix> matrix_of(Context& context, NodeBox const& box, Array<V> values) {
  if constexpr (std::is_same_v<V, float>)
    return HalfCds::from_diagonals(context, box.size(), box_offsets(box.count(0), box.count(1)), std::move(values));
  else
    return HalfCds::from_diagonals(context, box.size(), box_offsets(box.count(0), box.count(1)), std::move(values), 1);
}

/// The nodes of a rank's rows, and of its ghosts after them.
class NodesOfRows {
public:
  NodesOfRows(RankBlocks const& blocks, std::size_t me) : own_(blocks.own[me]) {
    std::vector<NodeBox> const around = with_neighbours(blocks.own, blocks.nodes);
    for (std::size_t other = 0; other < blocks.own.size(); ++other)
      if (other != me)
        common(blocks.own[other], around[me]).for_all([&](Counts const& node) { ghosts_.push_back(node); });
  }
  [[nodiscard]] Counts operator()(std::int64_t i) const {
    if (i >= own_.size())
      return ghosts_[static_cast<std::size_t>(i - own_.size())];
    std::int64_t const nx = own_.count(0), ny = own_.count(1);
    return {own_.low[0] + i % nx, own_.low[1] + i / nx % ny, own_.low[2] + i / (nx * ny)};
  }
  /// Calls entry(row, column, value) for the couplings of own rows with ghosts.
  template <class Entry>
  void for_couplings(RankMatrix const& a, Entry const& entry) const {
    CsrMatrix const couplings = a.couplings();
    HostVector<std::int32_t> const rim = a.rim();
    for (std::int64_t row = 0; row < couplings.n_rows; ++row)
      for (std::int64_t e = couplings.row_ptr[row]; e < couplings.row_ptr[row + 1]; ++e)
        entry((*this)(rim[static_cast<std::size_t>(row)]), (*this)(own_.size() + couplings.columns[e]), couplings.values[e]);
  }

private:
  NodeBox own_;
  std::vector<Counts> ghosts_;
};

/// A matrix-free operator on the whole box, of which ranks have blocks.
struct WholeStencil {
  BoxElements box;
  int components = 1;
  BoxField k;

  /// The operator on a part of the box. Rows on cuts, which others own, are those of a face without a condition. So are rows on
  /// Robin faces, whose data are not known here.
  [[nodiscard]] std::unique_ptr<BoxOperator> on(Context& context, NodeBox const& nodes) const {
    BoxElements part = box;
    for (std::size_t d = 0; d < 3; ++d) {
      part.nodes[d] = nodes.count(d);
      for (std::size_t side = 0; side < 2; ++side)
        if (side == 0 ? nodes.low[d] > 0 : nodes.high[d] < box.nodes[d])
          part.faces[2 * d + side].type = BoxFace::Type::neumann;
    }
    return std::make_unique<BoxOperator>(context, part, components, k);
  }
};

/// What the blocks of the ranks are parts of; nothing where one of them is no such operator. Collective.
std::optional<WholeStencil> whole_stencil(RankMatrix const& a, RankBlocks const& blocks) {
  struct Block {
    std::int32_t has_rows = 0, is_stencil = 0, components = 0;
    std::array<std::int32_t, 6> faces{};
    std::array<double, 3> cell{}, k{};
  } mine;
  NodeBox const& own = blocks.own[static_cast<std::size_t>(a.ranks().rank())];
  mine.has_rows = own.size() > 0 ? 1 : 0;
  if (auto const* const stencil = dynamic_cast<BoxOperator const*>(&a.local()); stencil != nullptr) {
    mine.is_stencil = 1;
    mine.components = stencil->components();
    mine.cell = stencil->view().box.cell;
    mine.k = stencil->coefficient().constant;
    for (std::size_t face = 0; face < 6; ++face)
      mine.faces[face] = static_cast<std::int32_t>(stencil->view().box.faces[face].type);
  }
  auto const all = gather(a.ranks(), mine);
  WholeStencil result;
  result.box.nodes = blocks.nodes;
  bool found = false;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    Block const& block = all[rank];
    if (block.has_rows == 0)
      continue;
    if (block.is_stencil == 0)
      return std::nullopt;
    if (!found) {
      result.box.cell = block.cell;
      result.components = block.components;
      result.k.constant = block.k;
      found = true;
    }
    for (std::size_t d = 0; d < 3; ++d) {
      if (blocks.own[rank].low[d] == 0)
        result.box.faces[2 * d].type = static_cast<BoxFace::Type>(block.faces[2 * d]);
      if (blocks.own[rank].high[d] == blocks.nodes[d])
        result.box.faces[2 * d + 1].type = static_cast<BoxFace::Type>(block.faces[2 * d + 1]);
    }
  }
  return found ? std::optional(result) : std::nullopt;
}

/// The finest level of the rank on `box`, matrix-free. Where there are Robin faces own rows on faces are those of `a`.
std::unique_ptr<BoxOperator> finest_operator(RankMatrix const& a, RankBlocks const& blocks, WholeStencil const& stencil,
                                             NodeBox const& box) {
  auto result = stencil.on(a.context(), box);
  BoxElements const& of_result = result->view().box;
  auto const* const local = dynamic_cast<BoxOperator const*>(&a.local());
  if (local == nullptr || std::ranges::none_of(stencil.box.faces, [](auto const& f) { return f.type == BoxFace::Type::robin; }))
    return result;
  auto const me = static_cast<std::size_t>(a.ranks().rank());
  NodeBox const& own = blocks.own[me];
  HostVector<double> copy, copy_of_own;
  std::span<double const> const face_rows = result->face_rows(copy), own_rows = local->face_rows(copy_of_own);
  std::vector<double> rows(face_rows.begin(), face_rows.end());
  std::int64_t const n = result->view().n_face_rows, n_own = local->view().n_face_rows;
  box_rows::Shell const shell(of_result, 0, of_result.nodes[2], 1), own_shell(local->view().box, 0, own.count(2), 1);
  auto const number_of = [&](Counts const& node) {
    return shell.number({{node[0] - box.low[0], node[1] - box.low[1], node[2] - box.low[2]}});
  };
  for (std::int64_t t = 0; t < n_own; ++t) {
    box_rows::Node const node = own_shell(t);
    std::int64_t const number = number_of({own.low[0] + node.i[0], own.low[1] + node.i[1], own.low[2] + node.i[2]});
    for (int e = 0; e < 27 && number >= 0; ++e)
      rows[static_cast<std::size_t>(e * n + number)] = own_rows[static_cast<std::size_t>(e * n_own + t)];
  }
  NodesOfRows(blocks, me).for_couplings(a, [&](Counts const& row, Counts const& column, double value) {
    std::int64_t const e = 13 + 9 * (column[2] - row[2]) + 3 * (column[1] - row[1]) + column[0] - row[0];
    if (std::int64_t const number = number_of(row); number >= 0)
      rows[static_cast<std::size_t>(e * n + number)] = value;
  });
  return std::make_unique<BoxOperator>(a.context(), of_result, stencil.components, stencil.k,
                                       Array<double>(a.context(), std::span<double const>(rows)));
}

/// Puts a matrix of some own rows, whose columns are nodes of the boxes `columns`, one after another, into diagonals on `box`.
template <class V>
void add_entries(Context& context, Csr const& entries, std::int32_t const* rows, NodeBox const& own, NodeBox const& box,
                 std::vector<NodeBox> const& columns, V* values) {
  auto const& kernels = kernels_for<BlockKernels<V>>(context);
  Array<std::int32_t> places(context, entries.n_columns());
  std::int64_t first = 0;
  for (NodeBox const& nodes : columns) {
    kernels.list_places(context, common_nodes(nodes, nodes, box), places.data() + first);
    first += nodes.size();
  }
  BoxLevel<V> const level = level_of<V>(box);
  kernels.add_entries(context, entries.view(), rows, common_nodes(own, own, box), {level.nodes[0], level.nodes[1], level.nodes[2]},
                      places.data(), values);
}

/// The diagonals of own rows at their places in `box`, which holds own nodes and those beside them. Of a block of a box in its
/// memory, else by way of CSR.
template <class V>
Array<V> own_diagonals(RankMatrix const& a, RankBlocks const& blocks, NodeBox const& box) {
  Context& context = a.context();
  auto const& kernels = kernels_for<BlockKernels<V>>(context);
  auto const me = static_cast<std::size_t>(a.ranks().rank());
  NodeBox const& own = blocks.own[me];
  std::int64_t const n = box.size();
  Array<V> values(context, half_stencil::diagonals * n);
  CommonNodes const all = common_nodes(own, own, box, half_stencil::diagonals);
  if (auto const* const stencil = dynamic_cast<BoxOperator const*>(&a.local()); stencil != nullptr) {
    Array<V> of_own(context, half_stencil::diagonals * own.size());
    stencil->fill_diagonals(of_own.data());
    kernels.copy(context, all, of_own.data(), values.data());
  } else if (is_box(a.local(), {own.count(0), own.count(1), own.count(2)})) {
    auto const& local = dynamic_cast<HalfCds const&>(a.local());
    kernels.copy_from_double(context, all, local.view().values, values.data());
  } else if (own.size() > 0) {
    values.set_zero();
    CsrMatrix const local = a.local().to_csr();
    HostVector<std::int32_t> rows(static_cast<std::size_t>(local.n_rows));
    std::iota(rows.begin(), rows.end(), 0);
    add_entries(context, Csr(std::make_shared<CsrMatrix const>(local), context), Array<std::int32_t>(context, rows).data(), own,
                box, {own}, values.data());
  }
  std::vector<NodeBox> const around = with_neighbours(blocks.own, blocks.nodes);
  std::vector<NodeBox> ghosts;
  for (std::size_t other = 0; other < blocks.own.size(); ++other)
    if (other != me)
      ghosts.push_back(common(blocks.own[other], around[me]));
  Csr const& couplings = a.stored_couplings();
  if (couplings.precision() == MatrixPrecision::single)
    add_entries(context, Csr(std::make_shared<CsrMatrix const>(couplings.to_csr()), context), a.stored_rim(), own, box, ghosts,
                values.data());
  else
    add_entries(context, couplings, a.stored_rim(), own, box, ghosts, values.data());
  return values;
}

/// Restricts and prolongs between a level of blocks and the next one, which is of blocks or whole on every rank. In between vectors
/// are those of the coarse nodes in the block's box.
template <class V>
class BlockTransfer final : public GridTransfer<V> {
public:
  BlockTransfer(Context& context, NodeBox const& fine, NodeBox const& coarse, BoxCoarsening<V> const& coarsening, Array<V> weights,
                Array<std::uint8_t> free_of_fine)
      : context_(context),
        kernels_(kernels_for<BoxLevelKernels<V>>(context)),
        blocks_(kernels_for<BlockKernels<V>>(context)),
        fine_(level_of<V>(fine)),
        coarse_(level_of<V>(coarse)),
        coarsening_(coarsening),
        weights_(std::move(weights)),
        free_of_fine_(std::move(free_of_fine)),
        b_(context, coarse.size()),
        x_(context, coarse.size()),
        ones_(context, coarse.size()) {
    kernels_for<SmootherKernels<V>>(context).fill(context, coarse.size(), V(1), ones_.data());
    coarsening_.weights = weights_.data();
    fine_.free = free_of_fine_.data();
    b_.set_zero();
    x_.set_zero();
  }
  /// The next level's vectors have the nodes of `box`, those of the rank and some around them. Where the nodes that own fine ones
  /// depend on are, on every rank, own ones and those beside them, P takes them from there; else from the other ranks.
  void goes_on_in_blocks(Communicator& ranks, std::vector<NodeBox> const& own, std::vector<NodeBox> const& parents,
                         NodeBox const& coarse, NodeBox const& box, NodeBox const& whole) {
    auto const me = static_cast<std::size_t>(ranks.rank());
    std::vector<NodeBox> const around = with_neighbours(own, whole.high);
    to_next_ = common_nodes(own[me], coarse, box);
    prolongs_around_ = true;
    for (std::size_t rank = 0; rank < own.size(); ++rank)
      prolongs_around_ = prolongs_around_ && common(parents[rank], around[rank]).size() == parents[rank].size();
    from_next_ = common_nodes(prolongs_around_ ? common(box, coarse) : own[me], box, coarse);
    if (!prolongs_around_)
      halo_ = std::make_unique<BlockExchange<V>>(context_, ranks, own, parents, coarse);
  }
  /// They have all nodes, on every rank.
  void goes_on_whole(std::unique_ptr<BlockGather<V>> gather, NodeBox const& coarse, NodeBox const& whole) {
    gather_ = std::move(gather);
    from_next_ = common_nodes(coarse, whole, coarse);
  }

  void restrict_residual(V const* r, V const* diagonal, V factor, V* b, V* x, std::int32_t const* stop) const override {
    kernels_.restrict_residual(context_, fine_, coarsening_, coarse_, r, ones_.data(), V(1), b_.data(), x_.data(), stop);
    if (gather_ != nullptr)
      gather_->gather(b_.data(), b);
    else
      blocks_.copy(context_, to_next_, b_.data(), b);
    if (x != nullptr)
      kernels_for<SmootherKernels<V>>(context_).begin(context_, n_of_next_, diagonal, b, factor, x, stop);
  }
  void prolong(V const* e, V* x, std::int32_t const* stop) const override {
    blocks_.copy(context_, from_next_, e, x_.data());
    if (halo_ != nullptr)
      halo_->fill(x_.data());
    kernels_.prolong(context_, fine_, coarsening_, coarse_, x_.data(), x, stop);
  }
  bool prolongs_around() const override { return prolongs_around_; }
  std::int64_t bytes() const override { return weights_.bytes() + free_of_fine_.bytes() + 3 * b_.bytes(); }
  std::int64_t bytes_moved() const override {
    return 2 * weights_.bytes() + fine_.n() * std::int64_t{3 * sizeof(V)} + 8 * coarse_.n() * std::int64_t{sizeof(V)};
  }
  void set_next(std::int64_t n) { n_of_next_ = n; }

private:
  Context& context_;
  BoxLevelKernels<V> const& kernels_;
  BlockKernels<V> const& blocks_;
  BoxLevel<V> fine_, coarse_;
  BoxCoarsening<V> coarsening_;
  Array<V> weights_;
  Array<std::uint8_t> free_of_fine_;
  mutable Array<V> b_, x_;  ///< of the coarse nodes
  Array<V> ones_;
  CommonNodes to_next_, from_next_;
  bool prolongs_around_ = false;
  std::unique_ptr<BlockExchange<V>> halo_;
  std::unique_ptr<BlockGather<V>> gather_;
  std::int64_t n_of_next_ = 0;
};

/// All diagonals of the whole level on every rank, from those in `part`.
template <class V>
Array<V> gather_diagonals(Context& context, Communicator& ranks, std::vector<NodeBox> const& own, V const* values,
                          NodeBox const& part, NodeBox const& whole) {
  Array<V> result(context, half_stencil::diagonals * whole.size());
  BlockGather<V>(context, ranks, own, part, whole, half_stencil::diagonals).gather(values, result.data());
  return result;
}

}  // namespace

std::vector<NodeBox> with_neighbours(std::vector<NodeBox> const& own, std::array<std::int64_t, 3> const& nodes, int layers) {
  std::vector<NodeBox> result = own;
  for (NodeBox& box : result) {
    bool const has_nodes = box.size() > 0;
    for (std::size_t d = 0; d < 3 && has_nodes; ++d) {
      box.low[d] = std::max<std::int64_t>(box.low[d] - layers, 0);
      box.high[d] = std::min(box.high[d] + layers, nodes[d]);
    }
  }
  return result;
}

std::int64_t nodes_of_block(RankBlocks const& blocks, int rank) {
  return extended(blocks.own[static_cast<std::size_t>(rank)], blocks.nodes).size();
}

template <class V>
MultigridHierarchy<V> rank_box_hierarchy(RankMatrix const& a, RankBlocks const& blocks, PreconditionerOptions const& options) {
  Context& context = a.context();
  Communicator& ranks = a.ranks();
  auto const& kernels = kernels_for<BoxLevelKernels<V>>(context);
  auto const& conversion = kernels_for<ConversionKernels>(context);
  auto const me = static_cast<std::size_t>(ranks.rank());
  MultigridOptions const& multigrid = options.multigrid;
  MultigridHierarchy<V> result;
  std::vector<NodeBox> own = blocks.own;
  NodeBox whole = blocks.whole();
  PreconditionerOptions rest = options;
  if (whole.size() <= multigrid.coarse_size) {
    NodeBox const around = with_neighbours(own, whole.high)[me];
    Array<V> const values = own_diagonals<V>(a, blocks, around);
    rest.box_nodes = whole.high;
    append(result, levels_of_box<V>(context, gather_diagonals<V>(context, ranks, own, values.data(), around, whole), rest));
    result.entry = std::make_unique<GatheredEntry<V>>(context, ranks, own, whole);
    return result;
  }
  NodeBox box = extended(own[me], whole.high);
  result.entry = std::make_unique<BlockEntry<V>>(context, own[me], box);
  std::optional<WholeStencil> stencil = whole_stencil(a, blocks);  // of the level, as long as it is known
  BoxLevel<V> fine;
  Array<V> scratch;  // diagonals of a matrix-free level, where they are needed to make the next one
  auto const add_level = [&](std::unique_ptr<Matrix> matrix, int layers) -> MultigridLevel<V>& {
    MultigridLevel<V>& level = result.levels.emplace_back();
    level.own = std::move(matrix);
    level.matrix = level.own.get();
    level.diagonal = Array<V>(context, box.size());
    level.halo = std::make_unique<BlockExchange<V>>(context, ranks, own, with_neighbours(own, whole.high, layers), box, layers);
    level.rows_of_all = whole.size();
    level.nnz = half_stencil::diagonals * 2 * whole.size() - whole.size();
    return level;
  };
  // Entries of own rows are there: brings the others.
  auto const complete = [&](Array<V>& values) {
    BlockExchange<V>(context, ranks, own, extended(own, whole.high), box, 1, half_stencil::diagonals).fill(values.data());
    fine = level_of<V>(box);
    kernels_for<BlockKernels<V>>(context).clip(context, {fine.nodes[0], fine.nodes[1], fine.nodes[2]}, values.data());
    fine.values = values.data();
  };
  auto const add_stored = [&](Array<V> values) {
    complete(values);
    MultigridLevel<V>& level =
        add_level(matrix_of<V>(context, box, std::move(values)), most_layers);  // the entries stay where they are
    conversion.copy_diagonal(context, box.size(), fine.values, level.diagonal.data());
  };
  auto const add_stencil = [&](std::unique_ptr<BoxOperator> next) {
    fine = level_of<V>(box);
    // Rows of others on Robin faces are not known.
    bool const has_robin = std::ranges::any_of(stencil->box.faces, [](auto const& f) { return f.type == BoxFace::Type::robin; });
    MultigridLevel<V>& level = add_level(std::move(next), has_robin ? 1 : most_layers);
    static_cast<LinearOperator<V> const&>(*level.matrix).diagonal(level.diagonal.data());
    level.halo->fill(level.diagonal.data());  // rows on cuts are not those of their owners
  };
  if (stencil)
    add_stencil(finest_operator(a, blocks, *stencil, box));
  else
    add_stored(own_diagonals<V>(a, blocks, box));
  for (;;) {
    MultigridLevel<V>& level = result.levels.back();
    auto const* const free_of_entries = dynamic_cast<BoxOperator const*>(level.matrix);
    options.done(context, "level of blocks");
    Array<std::uint8_t> free;
    BoxLevelAnalysis analysis;
    if (stencil)
      analysis = analysis_of(*free_of_entries);
    else {
      if (fine.values == nullptr) {
        scratch = Array<V>(context, half_stencil::diagonals * box.size());
        free_of_entries->fill_diagonals(scratch.data());
        complete(scratch);
      }
      free = Array<std::uint8_t>(context, box.size());
      analysis = kernels.analyse(context, fine, free.data());
      fine.free = free.data();
      for (double& coupling : analysis.coupling)
        coupling = sum_over(ranks, coupling);
      analysis.largest = max_over(ranks, analysis.largest);
      analysis.bound = max_over(ranks, analysis.bound);
    }
    if (!(analysis.largest > 0) || !std::isfinite(analysis.bound)) {
      result.failure = "the matrix is not positive definite on level " + std::to_string(result.levels.size()) + " of multigrid";
      return result;
    }
    set_largest(level, analysis);
    bool const deepest = static_cast<int>(result.levels.size()) == multigrid.levels;
    auto coarsening = deepest ? std::nullopt : next_coarsening<V>(whole.high, analysis, multigrid.coarse_size);
    if (!coarsening)
      return result;
    set_smoother(level, analysis, *coarsening, stencil.has_value(), [&] {
      return max_over(ranks, weighted_bound<V>(context, fine, level.diagonal, [&](V* z) { level.halo->fill(z); }));
    });
    options.done(context, "analysis");
    if (stencil) {
      auto const coarser =
          BoxOperator::coarser(stencil->box, {coarsening->halved[0], coarsening->halved[1], coarsening->halved[2]});
      if (!coarser) {  // from here on by entries; the level is looked at again
        stencil.reset();
        continue;
      }
      stencil->box = *coarser;
      for (std::size_t face = 0; face < 6; ++face)
        coarsening->held[face] = free_of_entries->view().box.faces[face].type == BoxFace::Type::dirichlet;
    }

    NodeBox const coarse = coarse_box(box, *coarsening), coarse_whole = coarse_box(whole, *coarsening);
    std::vector<NodeBox> parents, own_of_coarse;
    for (NodeBox const& nodes : own) {
      parents.push_back(coarse_parents(nodes, *coarsening, whole.high, coarse_whole.high));
      own_of_coarse.push_back(coarse_own(nodes, *coarsening, whole.high, coarse_whole.high));
    }
    Array<V> coarse_values, weights;  // of stencils none are needed
    if (!stencil) {
      BoxLevel<V> of_coarse = level_of<V>(coarse);
      coarse_values = Array<V>(context, half_stencil::diagonals * coarse.size());
      weights = Array<V>(context, 27 * coarse.size());
      Array<std::uint8_t> free_of_coarse(context, coarse.size());
      coarsening->weights = weights.data();
      of_coarse.free = free_of_coarse.data();
      kernels.coarsen(context, fine, *coarsening, of_coarse, weights.data(), free_of_coarse.data(), coarse_values.data());
      scratch = {};
    }
    auto transfer = std::make_unique<BlockTransfer<V>>(context, box, coarse, *coarsening, std::move(weights), std::move(free));
    whole = coarse_whole;
    own = std::move(own_of_coarse);
    options.done(context, "P and P^T A P");
    if (whole.size() <= multigrid.gathered_size) {
      auto gather = std::make_unique<BlockGather<V>>(context, ranks, own, coarse, whole);
      rest.box_nodes = whole.high;
      rest.multigrid.levels = multigrid.levels - static_cast<int>(result.levels.size());
      MultigridHierarchy<V> on_every_rank =
          stencil ? levels_of_stencil<V>(stencil->on(context, whole), rest)
                  : levels_of_box<V>(context, gather_diagonals<V>(context, ranks, own, coarse_values.data(), coarse, whole), rest);
      transfer->goes_on_whole(std::move(gather), coarse, whole);
      transfer->set_next(whole.size());
      level.to_coarse = std::move(transfer);
      append(result, std::move(on_every_rank));
      return result;
    }
    box = extended(own[me], whole.high);
    transfer->goes_on_in_blocks(ranks, own, parents, coarse, box, whole);
    transfer->set_next(box.size());
    level.to_coarse = std::move(transfer);
    if (stencil) {
      add_stencil(stencil->on(context, box));
      continue;
    }
    Array<V> values(context, half_stencil::diagonals * box.size());
    kernels_for<BlockKernels<V>>(context).copy(context, common_nodes(own[me], coarse, box, half_stencil::diagonals),
                                               coarse_values.data(), values.data());
    coarse_values = {};
    add_stored(std::move(values));
  }
}

template MultigridHierarchy<float> rank_box_hierarchy(RankMatrix const&, RankBlocks const&, PreconditionerOptions const&);
template MultigridHierarchy<double> rank_box_hierarchy(RankMatrix const&, RankBlocks const&, PreconditionerOptions const&);

}  // namespace poisson
