#include "gpu/preconditioners/box_blocks.hpp"

#include "gpu/core/block_places.hpp"
#include "gpu/core/csr_entries.hpp"
#include "gpu/formats/half_cds.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/block.hpp"
#include "gpu/kernels/box_stencil_rows.hpp"
#include "gpu/preconditioners/multigrid_hierarchy.hpp"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

namespace poisson {

namespace {

using Counts = std::array<std::int64_t, 3>;

/// How far a row of P^T A P looks beyond the fine node of its unknown: rows of A at a distance of two, with their entries.
constexpr std::int64_t reach_of_coarsening = 3;
static_assert(most_layers <= reach_of_coarsening);

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
    HostVector<std::int32_t> const rim = a.rim();
    for_entries(a.couplings(), [&](std::int64_t row, std::int32_t column, double value) {
      entry((*this)(rim[static_cast<std::size_t>(row)]), (*this)(own_.size() + column), value);
    });
  }

private:
  NodeBox own_;
  std::vector<Counts> ghosts_;
};

/// Puts a matrix of some own rows, whose columns are nodes of the boxes `columns`, one after another, into diagonals on `box`.
template <class V>
void add_entries(Context& context, Csr const& entries, std::int32_t const* rows, NodeBox const& own, NodeBox const& box,
                 std::vector<NodeBox> const& columns, V* values) {
  std::vector<std::int32_t> places;
  places.reserve(static_cast<std::size_t>(entries.n_columns()));
  for (NodeBox const& nodes : columns)
    nodes.for_all([&](Counts const& node) { places.push_back(static_cast<std::int32_t>(box.index(node))); });
  Array<std::int32_t> const there(context, std::span<std::int32_t const>(places));
  BoxLevel<V> const level = level_of<V>(box);
  kernels_for<BlockKernels<V>>(context).add_entries(context, entries.view(), rows, common_nodes(own, own, box),
                                                    {level.nodes[0], level.nodes[1], level.nodes[2]}, there.data(), values);
}

}  // namespace

NodeBox extended(NodeBox const& own, Counts const& nodes, std::array<bool, 3> const& periodic) {
  NodeBox result;
  for (std::size_t d = 0; d < 3; ++d) {
    std::int64_t const low = own.size() > 0 ? own.low[d] : 0, high = own.size() > 0 ? own.high[d] : 1;
    std::int64_t const first = periodic[d] ? low - reach_of_coarsening : std::max<std::int64_t>(low - reach_of_coarsening, 0);
    result.low[d] = first - (first % 2 != 0 ? 1 : 0);
    std::int64_t const last = high - 1 + reach_of_coarsening;
    result.high[d] = periodic[d] ? last + last % 2 + 1 : std::min(last + last % 2 + 1, nodes[d]);
  }
  return result;
}

std::vector<NodeBox> extended(std::vector<NodeBox> const& own, Counts const& nodes, std::array<bool, 3> const& periodic) {
  std::vector<NodeBox> result;
  for (NodeBox const& box : own)
    result.push_back(extended(box, nodes, periodic));
  return result;
}

std::vector<NodeBox> with_neighbours(std::vector<NodeBox> const& own, std::array<std::int64_t, 3> const& nodes, int layers,
                                     std::array<bool, 3> const& periodic) {
  std::vector<NodeBox> result = own;
  for (NodeBox& box : result) {
    bool const has_nodes = box.size() > 0;
    for (std::size_t d = 0; d < 3 && has_nodes; ++d) {
      box.low[d] = periodic[d] ? box.low[d] - layers : std::max<std::int64_t>(box.low[d] - layers, 0);
      box.high[d] = periodic[d] ? box.high[d] + layers : std::min(box.high[d] + layers, nodes[d]);
    }
  }
  return result;
}

std::int64_t nodes_of_block(RankBlocks const& blocks, int rank) {
  return extended(blocks.untied(blocks.own[static_cast<std::size_t>(rank)]), blocks.untied(blocks.whole()).high, blocks.periodic)
      .size();
}

std::optional<WholeStencil> whole_stencil(RankMatrix const& a, RankBlocks const& blocks) {
  struct Block {
    std::int32_t has_rows = 0, is_stencil = 0, components = 0;
    std::array<std::int32_t, 6> faces{};
    std::array<double, 3> cell{};
    std::array<double, tensor_entries> k{};
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

template <class V>
Array<V> own_diagonals(RankMatrix const& a, RankBlocks const& blocks, NodeBox const& box) {
  Context& context = a.context();
  auto const& kernels = kernels_for<BlockKernels<V>>(context);
  auto const me = static_cast<std::size_t>(a.ranks().rank());
  NodeBox const& own = blocks.own[me];
  std::int64_t const n = box.size();
  Array<V> values(context, half_stencil::diagonals * n);
  NodeBox const whole = blocks.untied(blocks.whole());
  std::vector<NodeBox> const untied = blocks.untied();
  CommonNodes const all = common_nodes(untied[me], own, box, half_stencil::diagonals);
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
  std::vector<NodeBox> const around = with_neighbours(untied, whole.high, 1, blocks.periodic);
  std::vector<NodeBox> ghosts;
  for (std::size_t other = 0; other < untied.size(); ++other)
    if (other != me)
      ghosts.push_back(common(untied[other], around[me]));
  std::vector<NodeBox> const images = images_around(untied[me], around[me], period_of(whole.high, blocks.periodic));
  ghosts.insert(ghosts.end(), images.begin(), images.end());
  Csr const& couplings = a.stored_couplings();
  if (couplings.precision() == MatrixPrecision::single)
    add_entries(context, Csr(std::make_shared<CsrMatrix const>(couplings.to_csr()), context), a.stored_rim(), own, box, ghosts,
                values.data());
  else
    add_entries(context, couplings, a.stored_rim(), own, box, ghosts, values.data());
  return values;
}

template Array<float> own_diagonals(RankMatrix const&, RankBlocks const&, NodeBox const&);
template Array<double> own_diagonals(RankMatrix const&, RankBlocks const&, NodeBox const&);

}  // namespace poisson
