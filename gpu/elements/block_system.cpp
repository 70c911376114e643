#include "gpu/elements/block_system.hpp"

#include "gpu/elements/box_operator.hpp"
#include "gpu/formats/half_cds.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/block.hpp"

#include <array>
#include <utility>
#include <vector>

namespace poisson {

namespace {

/// A block of diagonals of half_cds.
std::unique_ptr<Matrix> block_of(HalfCds const& matrix, NodeBox const& around, NodeBox const& own, Context& context) {
  std::int64_t const n = own.size();
  auto const& kernels = kernels_for<BlockKernels<double>>(context);
  Array<double> block(context, half_stencil::diagonals * n);
  kernels.copy(context, common_nodes(own, around, own, half_stencil::diagonals), matrix.view().values, block.data());
  std::array<std::int32_t, 3> nodes{};
  std::vector<std::int32_t> offsets;
  for (std::size_t d = 0; d < 3; ++d)
    nodes[d] = static_cast<std::int32_t>(own.count(d));
  for (int s = 0; s < half_stencil::diagonals; ++s)
    offsets.push_back(static_cast<std::int32_t>(half_stencil::offset(s, own.count(0), own.count(0) * own.count(1))));
  kernels.clip(context, nodes, block.data());
  return HalfCds::from_diagonals(context, n, std::move(offsets), std::move(block), 1);
}

/// The block's part of a matrix-free operator. It has the rows of its own faces, without their couplings with nodes of others.
std::unique_ptr<Matrix> block_of(BoxOperator const& matrix, NodeBox const& around, NodeBox const& own, Context& context) {
  BoxElements box = matrix.view().box;
  std::array<std::int64_t, 3> offset{};
  for (std::size_t d = 0; d < 3; ++d) {
    box.nodes[d] = own.count(d);
    offset[d] = own.low[d] - around.low[d];
    for (std::size_t side = 0; side < 2; ++side)
      if (side == 0 ? own.low[d] > around.low[d] : own.high[d] < around.high[d])
        box.faces[2 * d + side].type = BoxFace::Type::neumann;
  }
  Array<double> rows(context, 27 * box_rows::Shell(box, 0, box.nodes[2], 1).size());
  kernels_for<BlockRimKernels>(context).fill_face_rows(context, matrix.view(), box, offset, rows.data());
  return std::make_unique<BoxOperator>(context, box, matrix.components(), matrix.coefficient(), std::move(rows));
}

StoredRim rim_of(Matrix const& matrix, BoxElements const& box, BlockPlaces const& places, Context& context) {
  std::array<bool, 6> dirichlet{};
  for (std::size_t face = 0; face < 6; ++face)
    dirichlet[face] = box.faces[face].type == BoxFace::Type::dirichlet;
  StoredRim result;
  result.formulas = BlockRim(places, dirichlet);
  std::int64_t const n = result.formulas.size(), n_couplings = result.formulas.n_couplings();
  result.rows = Array<std::int32_t>(context, n);
  Array<std::int64_t> row_ptr(context, n + 1);
  Array<std::int32_t> columns(context, n_couplings);
  Array<double> values(context, n_couplings);
  LowestFailure not_finite(context);
  auto const& kernels = kernels_for<BlockRimKernels>(context);
  block_rim::Couplings const to{result.rows.data(), row_ptr.data(), columns.data(), values.data()};
  if (auto const* const stencil = dynamic_cast<BoxOperator const*>(&matrix); stencil != nullptr)
    kernels.fill(context, result.formulas, stencil->view(), to, not_finite.data());
  else
    kernels.fill(context, result.formulas, box.nodes, dynamic_cast<HalfCds const&>(matrix).view().values, to, not_finite.data());
  result.couplings = std::make_unique<Csr>(context, places.around().size() - places.own().size(), std::move(row_ptr),
                                           std::move(columns), std::move(values));
  result.row_not_finite = not_finite.found();
  return result;
}

}  // namespace

BlockSystem take_block(BoxSystem& around, BlockPlaces const& places, Context& context) {
  NodeBox const &around_nodes = places.around(), &own = places.own();
  std::unique_ptr<Matrix> const matrix = around.take_matrix();
  BlockSystem result;
  if (auto const* const stencil = dynamic_cast<BoxOperator const*>(matrix.get()); stencil != nullptr)
    result.local = block_of(*stencil, around_nodes, own, context);
  else
    result.local = block_of(dynamic_cast<HalfCds const&>(*matrix), around_nodes, own, context);
  result.rim = rim_of(*matrix, around.box(), places, context);
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
