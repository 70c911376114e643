#include "gpu/elements/block_system.hpp"

#include "gpu/core/csr_entries.hpp"
#include "gpu/elements/box_operator.hpp"
#include "gpu/formats/half_cds.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/block.hpp"
#include "gpu/kernels/box_stencil_rows.hpp"
#include "gpu/kernels/rim.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>
#include <utility>
#include <vector>

namespace poisson {

namespace {

using Counts = std::array<std::int64_t, 3>;

constexpr int n_entries = std::tuple_size_v<RimEntries>;

/// A block of diagonals of half_cds, and the rows of nodes on its rim.
std::unique_ptr<Matrix> block_of(HalfCds const& matrix, NodeBox const& around, NodeBox const& own,
                                 std::vector<std::int32_t> const& rim, Context& context, RimEntries& entries) {
  double const* const values = matrix.view().values;
  std::int64_t const n = own.size(), n_around = around.size();
  auto const& kernels = kernels_for<BlockKernels<double>>(context);
  Array<double> block(context, half_stencil::diagonals * n);
  kernels.copy(context, common_nodes(own, around, own, half_stencil::diagonals), values, block.data());
  std::array<std::int32_t, 3> nodes{};
  std::vector<std::int32_t> offsets;
  for (std::size_t d = 0; d < 3; ++d)
    nodes[d] = static_cast<std::int32_t>(own.count(d));
  for (int s = 0; s < half_stencil::diagonals; ++s)
    offsets.push_back(static_cast<std::int32_t>(half_stencil::offset(s, own.count(0), own.count(0) * own.count(1))));
  kernels.clip(context, nodes, block.data());

  // Lower entries are stored in the rim's rows, the upper ones at their neighbours.
  std::int64_t const n_rim = std::ssize(rim), line = around.count(0), plane = line * around.count(1);
  std::vector<std::int32_t> at(rim.size());
  Array<double> packed(context, n_rim);
  for (int e = 0; e < n_entries; ++e) {
    int const s = e < 13 ? 13 - e : e - 13;  // lower entries, then the upper ones
    std::int64_t const offset = e > 13 ? half_stencil::offset(s, line, plane) : 0;
    for (std::size_t i = 0; i < rim.size(); ++i)  // beyond the box any place will do
      at[i] = static_cast<std::int32_t>(std::min(rim[i] + offset, n_around - 1));
    Array<std::int32_t> const from(context, std::span<std::int32_t const>(at));
    kernels_for<RimKernels<double>>(context).pack(context, n_rim, from.data(), values + s * n_around, packed.data());
    entries[static_cast<std::size_t>(e)].resize(rim.size());
    packed.download(std::span<double>(entries[static_cast<std::size_t>(e)]));
  }
  return HalfCds::from_diagonals(context, n, std::move(offsets), std::move(block), 1);
}

/// Returns the block's part of a matrix-free operator, and fills `entries` with the rows of the rim. The block's operator has the
/// rows of its own faces, without their couplings with nodes of others.
std::unique_ptr<Matrix> block_of(BoxOperator const& matrix, NodeBox const& around, NodeBox const& own,
                                 std::vector<std::int32_t> const& rim, Context& context, RimEntries& entries) {
  BoxStencilView const& a = matrix.view();
  HostVector<double> downloaded;
  std::span<double const> const face_rows = matrix.face_rows(downloaded);
  box_rows::Shell const shell_around(a.box, 0, a.box.nodes[2], 1);
  // Entry e of a node of `around`, which has this number on its faces.
  auto const entry = [&](box_rows::Node const& node, std::int64_t t, int e) {
    return t >= 0 ? face_rows[static_cast<std::size_t>(e * a.n_face_rows + t)] : box_rows::inner_entry(a, node, e);
  };
  for (auto& column : entries)
    column.resize(rim.size());
  std::int64_t const line = around.count(0), n_lines = around.count(1), n_rim = std::ssize(rim);
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < n_rim; ++i) {
    std::int64_t const place = rim[static_cast<std::size_t>(i)];
    box_rows::Node const node{{place % line, place / line % n_lines, place / (line * n_lines)}};
    std::int64_t const t = shell_around.number(node);
    for (int e = 0; e < n_entries; ++e)
      entries[static_cast<std::size_t>(e)][static_cast<std::size_t>(i)] = entry(node, t, e);
  }

  BoxElements box = a.box;
  Counts offset{};
  for (std::size_t d = 0; d < 3; ++d) {
    box.nodes[d] = own.count(d);
    offset[d] = own.low[d] - around.low[d];
    for (std::size_t side = 0; side < 2; ++side)
      if (side == 0 ? own.low[d] > around.low[d] : own.high[d] < around.high[d])
        box.faces[2 * d + side].type = BoxFace::Type::neumann;
  }
  box_rows::Shell const shell(box, 0, box.nodes[2], 1);
  std::int64_t const n_rows = shell.size();
  std::unique_ptr<Context> const host = context.backend() == Backend::cpu ? nullptr : make_cpu_context();
  Array<double> all_rows(host != nullptr ? *host : context, n_entries * n_rows);
  double* const rows = all_rows.data();
  // Some nodes at a time, entry by entry: rows are read and written as they lie.
  constexpr std::int64_t at_once = 256;
#pragma omp parallel for schedule(static)
  for (std::int64_t first = 0; first < n_rows; first += at_once) {
    std::int64_t const n = std::min(at_once, n_rows - first);
    std::array<box_rows::Node, at_once> in_around;
    std::array<std::int64_t, at_once> number;
    std::array<std::array<std::uint8_t, 3>, at_once> beside;  // bit 0: there is a node below, bit 1: above, in a direction
    for (std::int64_t i = 0; i < n; ++i) {
      auto const at = static_cast<std::size_t>(i);
      box_rows::Node const node = shell(first + i);
      for (std::size_t d = 0; d < 3; ++d) {
        in_around[at].i[d] = node.i[d] + offset[d];
        beside[at][d] = static_cast<std::uint8_t>((node.i[d] > 0 ? 1 : 0) + (node.i[d] + 1 < box.nodes[d] ? 2 : 0));
      }
      number[at] = shell_around.number(in_around[at]);
    }
    for (int e = 0; e < n_entries; ++e) {
      std::array<int, 3> const step{e % 3 - 1, e / 3 % 3 - 1, e / 9 - 1};
      std::array<std::uint8_t, 3> needed{};
      for (std::size_t d = 0; d < 3; ++d)
        needed[d] = static_cast<std::uint8_t>(step[d] < 0 ? 1 : step[d] > 0 ? 2 : 0);
      for (std::int64_t i = 0; i < n; ++i) {
        auto const at = static_cast<std::size_t>(i);
        bool const inside =
            (needed[0] & ~beside[at][0]) == 0 && (needed[1] & ~beside[at][1]) == 0 && (needed[2] & ~beside[at][2]) == 0;
        rows[e * n_rows + first + i] = inside ? entry(in_around[at], number[at], e) : -0.0;
      }
    }
  }
  return std::make_unique<BoxOperator>(context, box, matrix.components(), matrix.coefficient(),
                                       host != nullptr ? all_rows.copy_to(context) : std::move(all_rows));
}

}  // namespace

std::vector<std::int32_t> nodes_on_rim(NodeBox const& around, NodeBox const& own) {
  std::vector<std::int32_t> result;
  auto const is_inner = [&](std::size_t d, std::int64_t i) {
    return (i > own.low[d] || own.low[d] == around.low[d]) && (i < own.high[d] - 1 || own.high[d] == around.high[d]);
  };
  for (std::int64_t z = own.low[2]; z < own.high[2]; ++z)
    for (std::int64_t y = own.low[1]; y < own.high[1]; ++y) {
      bool const line_is_inner = is_inner(1, y) && is_inner(2, z);
      for (std::int64_t x = own.low[0]; x < own.high[0]; ++x) {
        if (line_is_inner && is_inner(0, x)) {
          x = std::max(x, own.high[0] - 2);  // the last one is next
          continue;
        }
        result.push_back(static_cast<std::int32_t>(around.index({x, y, z})));
      }
    }
  return result;
}

BlockSystem rows_of_rim(BlockPlaces const& places, std::span<std::int32_t const> rim, RimEntries const& entries) {
  NodeBox const &around = places.around(), &own = places.own();
  std::int64_t const n = own.size();
  // Threads make the rows of some nodes each, which are then put together in their order.
  struct Rows {
    std::vector<std::int32_t> rim, lengths, couplings, columns;
    std::vector<double> values;
  };
  constexpr std::int64_t at_once = 1024;
  std::int64_t const n_rim = std::ssize(rim), n_parts = (n_rim + at_once - 1) / at_once;
  std::vector<Rows> parts(static_cast<std::size_t>(n_parts));
#pragma omp parallel for schedule(static)
  for (std::int64_t part = 0; part < n_parts; ++part) {
    Rows& made = parts[static_cast<std::size_t>(part)];
    std::vector<std::pair<std::int32_t, double>> row;
    for (std::int64_t i = part * at_once; i < std::min(n_rim, (part + 1) * at_once); ++i) {
      Counts const node = around.node(rim[static_cast<std::size_t>(i)]);
      row.clear();
      for (int e = 0; e < n_entries; ++e) {
        Counts const other{node[0] + e % 3 - 1, node[1] + e / 3 % 3 - 1, node[2] + e / 9 - 1};
        double const value = entries[static_cast<std::size_t>(e)][static_cast<std::size_t>(i)];
        if (around.holds(other) && is_stored(value))
          row.emplace_back(places.at(other), value);
      }
      for (std::size_t k = 1; k < row.size(); ++k)  // almost in order
        for (std::size_t l = k; l > 0 && row[l].first < row[l - 1].first; --l)
          std::swap(row[l], row[l - 1]);
      if (row.empty() || row.back().first < n)  // a Dirichlet value, or beside one
        continue;
      made.rim.push_back(places.at(node));
      made.lengths.push_back(static_cast<std::int32_t>(row.size()));
      made.couplings.push_back(0);
      for (auto const& [column, value] : row) {
        made.columns.push_back(column);
        made.values.push_back(value);
        made.couplings.back() += column >= n ? 1 : 0;
      }
    }
  }

  BlockSystem result;
  auto couplings = std::make_shared<CsrMatrix>();
  couplings->n_columns = around.size() - n;
  couplings->row_ptr.push_back(0);
  CsrMatrix& rows = result.rim_rows;
  rows.n_columns = around.size();
  rows.row_ptr.push_back(0);
  std::vector<std::int32_t>& of_rim = result.rows.rim;
  for (Rows const& part : parts) {
    of_rim.insert(of_rim.end(), part.rim.begin(), part.rim.end());
    rows.columns.insert(rows.columns.end(), part.columns.begin(), part.columns.end());
    rows.values.insert(rows.values.end(), part.values.begin(), part.values.end());
    for (std::size_t i = 0; i < part.rim.size(); ++i) {
      rows.row_ptr.push_back(rows.row_ptr.back() + part.lengths[i]);
      couplings->row_ptr.push_back(couplings->row_ptr.back() + part.couplings[i]);
    }
    for (std::size_t e = 0; e < part.columns.size(); ++e)
      if (part.columns[e] >= n) {
        couplings->columns.push_back(static_cast<std::int32_t>(part.columns[e] - n));
        couplings->values.push_back(part.values[e]);
      }
  }
  couplings->n_rows = rows.n_rows = std::ssize(of_rim);
  result.rows.couplings = std::move(couplings);
  return result;
}

BlockSystem take_block(BoxSystem& around, BlockPlaces const& places, Context& context) {
  NodeBox const &around_nodes = places.around(), &own = places.own();
  std::unique_ptr<Matrix> const matrix = around.take_matrix();
  std::vector<std::int32_t> const rim = nodes_on_rim(around_nodes, own);
  RimEntries entries;
  auto const* const stencil = dynamic_cast<BoxOperator const*>(matrix.get());
  std::unique_ptr<Matrix> local = stencil != nullptr
                                      ? block_of(*stencil, around_nodes, own, rim, context, entries)
                                      : block_of(dynamic_cast<HalfCds const&>(*matrix), around_nodes, own, rim, context, entries);
  BlockSystem result = rows_of_rim(places, rim, entries);
  result.local = std::move(local);
  std::int64_t const n = own.size();
  if (std::int64_t const row_not_finite = matrix->row_not_finite; row_not_finite >= 0)
    if (std::int32_t const place = places[static_cast<std::size_t>(row_not_finite)]; place < n)
      result.local->row_not_finite = place;
  Array<double> rhs(context, n);
  kernels_for<BlockKernels<double>>(context).copy(context, common_nodes(own, around_nodes, own), around.rhs().data(), rhs.data());
  result.rhs = Field(std::move(rhs));
  return result;
}

}  // namespace poisson
