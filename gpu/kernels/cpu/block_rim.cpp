#include "gpu/kernels/block_rim.hpp"

#include "gpu/kernels/cpu/cpu.hpp"

#include <algorithm>

namespace poisson {

namespace {

using box_rows::Node;

constexpr std::int64_t work_of_row = 200;  ///< of the rim, in multiplications

class CpuBlockRim final : public BlockRimKernels {
public:
  void fill(Context&, BlockRim const& rim, BoxStencilView const& around, block_rim::Couplings const& to,
            std::int64_t* not_finite) const override {
    fill_rows(rim, block_rim::StencilRows(around), to, not_finite);
  }
  void fill(Context&, BlockRim const& rim, std::array<std::int64_t, 3> const& nodes, double const* around,
            block_rim::Couplings const& to, std::int64_t* not_finite) const override {
    fill_rows(rim, block_rim::HalfRows(nodes, around), to, not_finite);
  }

  void fill(Context&, BlockRim const& rim, block_rim::FoldedRows const& rows, block_rim::Couplings const& to,
            std::int64_t* not_finite) const override {
    fill_rows(rim, rows, to, not_finite);
  }

  void fold(Context&, block_rim::TiedBox const& box, double* values, double* b) const override {
    if (values != nullptr && (box.jump[0] != 0 || box.jump[1] != 0 || box.jump[2] != 0))
      for_lines(box, [&](Node const& node) {
        if (box.is_near_tied(node))
          b[box.row(node)] = block_rim::without_jumps(box, block_rim::HalfRows(box.nodes[0], box.nodes[1], box.nodes[2], values),
                                                      node, b[box.row(node)]);
      });
    for_lines(box, [&](Node const& node) { block_rim::fold_row(box, node, values, b); });
    for_lines(box, [&](Node const& node) { block_rim::clear_ties(box, node, values, b); });
  }
  void set_tied(Context&, block_rim::TiedBox const& box, double* u) const override {
    for_lines(box, [&](Node const& node) { block_rim::set_tied(box, node, u); });
  }

  void residual(Context&, BlockRim const& rim, BoxStencilView const& block, CsrView const& couplings, double const* x,
                double const* x_low, double const* b, double* r) const override {
    residuals(rim, block_rim::StencilRows(block), couplings, x, x_low, b, r);
  }
  void residual(Context&, BlockRim const& rim, std::array<std::int64_t, 3> const& nodes, double const* block,
                CsrView const& couplings, double const* x, double const* x_low, double const* b, double* r) const override {
    residuals(rim, block_rim::HalfRows(nodes, block), couplings, x, x_low, b, r);
  }

  void fill_face_rows(Context&, BoxStencilView const& around, BoxElements const& block, std::array<std::int64_t, 3> const& offset,
                      double* rows) const override {
    box_rows::Shell const shell(block, 0, block.nodes[2], 1), shell_around(around.box, 0, around.box.nodes[2], 1);
    std::int64_t const n_rows = shell.size();
    // Some nodes at a time, entry by entry: rows are read and written as they lie.
    constexpr std::int64_t at_once = 256;
#pragma omp parallel for schedule(static)
    for (std::int64_t first = 0; first < n_rows; first += at_once) {
      std::int64_t const n = std::min(at_once, n_rows - first);
      std::array<Node, at_once> in_around;
      std::array<std::int64_t, at_once> number;
      std::array<std::array<std::uint8_t, 3>, at_once> beside;  // bit 0: there is a node below, bit 1: above, in a direction
      for (std::int64_t i = 0; i < n; ++i) {
        auto const at = static_cast<std::size_t>(i);
        Node const node = shell(first + i);
        for (std::size_t d = 0; d < 3; ++d) {
          in_around[at].i[d] = node.i[d] + offset[d];
          beside[at][d] = static_cast<std::uint8_t>((node.i[d] > 0 ? 1 : 0) + (node.i[d] + 1 < block.nodes[d] ? 2 : 0));
        }
        number[at] = shell_around.number(in_around[at]);
      }
      for (int e = 0; e < 27; ++e) {
        std::array<int, 3> const step{e % 3 - 1, e / 3 % 3 - 1, e / 9 - 1};
        std::array<std::uint8_t, 3> needed{};
        for (std::size_t d = 0; d < 3; ++d)
          needed[d] = static_cast<std::uint8_t>(step[d] < 0 ? 1 : step[d] > 0 ? 2 : 0);
        for (std::int64_t i = 0; i < n; ++i) {
          auto const at = static_cast<std::size_t>(i);
          bool const inside =
              (needed[0] & ~beside[at][0]) == 0 && (needed[1] & ~beside[at][1]) == 0 && (needed[2] & ~beside[at][2]) == 0;
          rows[e * n_rows + first + i] = !inside           ? -0.0
                                         : number[at] >= 0 ? around.face_rows[e * around.n_face_rows + number[at]]
                                                           : box_rows::inner_entry(around, in_around[at], e);
        }
      }
    }
  }

private:
  /// Calls action(node) for all nodes whose rows or values the ties change: of a line inside of the box the ends alone.
  template <class Action>
  static void for_lines(block_rim::TiedBox const& box, Action const& action) {
    std::int64_t const lines = box.nodes[1] * box.nodes[2], line = box.nodes[0];
#pragma omp parallel for schedule(static) if (box.n() >= cpu::work_worth_threads)
    for (std::int64_t l = 0; l < lines; ++l) {
      std::int64_t const y = l % box.nodes[1], z = l / box.nodes[1];
      auto const near_face = [&](int d, std::int64_t i) { return box.periodic[d] && (i == 0 || i >= box.nodes[d] - 2); };
      if (near_face(1, y) || near_face(2, z) || line < 6) {
        for (std::int64_t x = 0; x < line; ++x)
          action(Node{{x, y, z}});
        continue;
      }
      for (std::int64_t const x : {std::int64_t{0}, std::int64_t{1}, line - 2, line - 1})
        action(Node{{x, y, z}});
    }
  }
  template <class Rows>
  static void fill_rows(BlockRim const& rim, Rows const& rows, block_rim::Couplings const& to, std::int64_t* not_finite) {
    std::int64_t const n = rim.size();
    std::int64_t lowest = *not_finite;
#pragma omp parallel for schedule(static) reduction(min : lowest) if (n * work_of_row >= cpu::work_worth_threads)
    for (std::int64_t t = 0; t < n; ++t)
      if (!block_rim::fill_row(rim, rows, t, to))
        lowest = std::min<std::int64_t>(lowest, to.rows[t]);
    to.row_ptr[n] = rim.n_couplings();
    *not_finite = lowest;
  }
  template <class Rows>
  static void residuals(BlockRim const& rim, Rows const& rows, CsrView const& couplings, double const* x, double const* x_low,
                        double const* b, double* r) {
    std::int64_t const n = rim.size();
#pragma omp parallel for schedule(static) if (n * work_of_row >= cpu::work_worth_threads)
    for (std::int64_t t = 0; t < n; ++t) {
      std::int64_t const row = rim.row(rim(t));
      r[row] = block_rim::residual(rim, rows, couplings, t, x, x_low, b[row]);
    }
  }
};

}  // namespace

BlockRimKernels const& BlockRimKernels::cpu() {
  static CpuBlockRim const kernels;
  return kernels;
}

}  // namespace poisson
