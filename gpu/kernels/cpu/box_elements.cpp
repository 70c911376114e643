#include "gpu/kernels/box_elements.hpp"

#include "gpu/kernels/box_element_rows.hpp"
#include "gpu/kernels/cpu/cpu.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace poisson {

namespace {

using box_rows::Node;

/// Neighbouring rows that are made together, so that their sums fill vector registers.
constexpr int strip = 8;

/// The strip's values of one component at Gauss point q of the cells that begin with (cx, cy, cz).
inline void strip_values(BoxElements const& box, BoxField const& field, int c, std::int64_t cx, std::int64_t cy, std::int64_t cz,
                         int q, double (&values)[strip]) {
  if (field.points[static_cast<std::size_t>(c)] == nullptr) {
    for (double& value : values)
      value = field.constant[static_cast<std::size_t>(c)];
    return;
  }
  std::int64_t const nx = 2 * (box.nodes[0] - 1), ny = 2 * (box.nodes[1] - 1);
  double const* const first = field.points[static_cast<std::size_t>(c)] +
                              ((2 * (cz - field.first_plane) + (q >> 2)) * ny + 2 * cy + (q >> 1 & 1)) * nx + 2 * cx + (q & 1);
  for (int w = 0; w < strip; ++w)
    values[w] = first[2 * w];
}

/// deep_row for `strip` neighbouring nodes: the same sums in the same order.
template <int components>
void deep_rows(BoxElements const& box, BoxTables<components> const& tables, BoxField const& k, BoxField const& f, Node const& node,
               double (&entries)[14][strip], double (&load)[strip]) {
  for (auto& entry : entries)
    std::fill_n(entry, strip, 0.0);
  std::fill_n(load, strip, 0.0);
  for (int cell = 0; cell < 8; ++cell) {
    int const a = 7 - cell;
    std::int64_t const cx = node.i[0] - 1 + (cell & 1), cy = node.i[1] - 1 + (cell >> 1 & 1), cz = node.i[2] - 1 + (cell >> 2);
    for (int q = 0; q < 8; ++q) {
      double values[strip];
      for (int c = 0; c < components; ++c) {
        strip_values(box, k, c, cx, cy, cz, q, values);
        for (int b = 0; b < 8; ++b) {
          int const before = 9 * ((a >> 2) - (b >> 2)) + 3 * ((a >> 1 & 1) - (b >> 1 & 1)) + ((a & 1) - (b & 1));
          if (before < 0)
            continue;
          double const factor = tables.stiffness[c][q][a][b];
#pragma omp simd
          for (int w = 0; w < strip; ++w)
            entries[before][w] += values[w] * factor;
        }
      }
      strip_values(box, f, 0, cx, cy, cz, q, values);
#pragma omp simd
      for (int w = 0; w < strip; ++w)
        load[w] += (values[w] - f.shift) * tables.load[q][a];
    }
  }
}

template <int components>
void make_rows(BoxElements const& box, std::int64_t first_plane, std::int64_t end_plane, BoxField const& k, BoxField const& f,
               double* values, double* rhs) {
  auto const tables = box_tables<components>(box.cell);
  std::int64_t const nx = box.nodes[0], ny = box.nodes[1], n = box.n_rows();
#pragma omp parallel for collapse(2) schedule(static) if ((end_plane - first_plane) * ny * nx * 300 >= cpu::work_worth_threads)
  for (std::int64_t z = first_plane; z < end_plane; ++z)
    for (std::int64_t y = 0; y < ny; ++y) {
      std::int64_t const line = (z * ny + y) * nx;
      for (std::int64_t x = 0; x < nx;) {
        Node const node{{x, y, z}};
        if (box_rows::is_deep(box, node) && x + strip + 2 <= nx) {
          double entries[14][strip], load[strip];
          deep_rows(box, tables, k, f, node, entries, load);
          for (int s = 0; s < 14; ++s)
            std::copy_n(entries[s], strip, values + s * n + line + x);
          std::copy_n(load, strip, rhs + line + x);
          x += strip;
          continue;
        }
        if (box_rows::is_deep(box, node)) {
          double entries[14];
          box_rows::deep_row(box, tables, k, f, node, entries, rhs[line + x]);
          for (int s = 0; s < 14; ++s)
            values[s * n + line + x] = entries[s];
        } else {
          double entries[27];
          box_rows::any_row(box, tables, k, f, node, entries, rhs[line + x]);
          box_rows::store_row(n, line + x, entries, values);
        }
        ++x;
      }
    }
}

class CpuBoxElements final : public BoxElementKernels {
public:
  void evaluate(Context&, ExpressionView code, int, TensorGrid const& grid, ValueCheck check, double* values,
                std::int64_t* failed) const override {
    ExpressionCode const instructions(code.instructions, code.instructions + code.size);
    std::int64_t const nx = grid.n[0], lines = grid.n[1] * grid.n[2];
    std::int64_t lowest = *failed;
#pragma omp parallel reduction(min : lowest) if (grid.size() * code.size >= cpu::work_worth_threads)
    {
      std::vector<double> y(static_cast<std::size_t>(nx)), z(static_cast<std::size_t>(nx));
#pragma omp for schedule(static)
      for (std::int64_t line = 0; line < lines; ++line) {
        std::fill(y.begin(), y.end(), grid.coordinates[1][line % grid.n[1]]);
        std::fill(z.begin(), z.end(), grid.coordinates[2][line / grid.n[1]]);
        double* const out = values + line * nx;
        evaluate_points(instructions, nx, grid.coordinates[0], y.data(), z.data(), out);
        bool all = true;
        for (std::int64_t i = 0; i < nx; ++i)
          all = all && passes(check, out[i]);
        for (std::int64_t i = 0; !all && i < nx; ++i)
          if (!passes(check, out[i]))
            lowest = std::min(lowest, line * nx + i);
      }
    }
    *failed = lowest;
  }

  FieldSums sums(Context& context, std::int64_t n, double const* values) const override {
    FieldSums result;
    result.sum = cpu::sum_blocks(context, n, n, [=](std::int64_t begin, std::int64_t end) {
      double sum = 0;
#pragma omp simd reduction(+ : sum)
      for (std::int64_t i = begin; i < end; ++i)
        sum += values[i];
      return sum;
    });
    result.absolute = cpu::sum_blocks(context, n, n, [=](std::int64_t begin, std::int64_t end) {
      double sum = 0;
#pragma omp simd reduction(+ : sum)
      for (std::int64_t i = begin; i < end; ++i)
        sum += std::abs(values[i]);
      return sum;
    });
    return result;
  }

  void largest_of_lines(Context&, std::array<std::int64_t, 3> const& cells, double const* values, double* largest) const override {
    std::int64_t const lines = cells[1] * cells[2];
#pragma omp parallel for schedule(static) if (8 * lines * cells[0] >= cpu::work_worth_threads)
    for (std::int64_t line = 0; line < lines; ++line) {
      double most = 0;
      for (std::int64_t x = 0; x < cells[0]; ++x)
        most = std::max(most, box_rows::absolute_of_cell(values, 2 * cells[0], 2 * cells[1], x, line % cells[1], line / cells[1]));
      largest[line] = most;
    }
  }

  void rows(Context&, BoxElements const& box, std::int64_t first_plane, std::int64_t end_plane, int components, BoxField const& k,
            BoxField const& f, double* values, double* rhs) const override {
    if (components == 1)
      make_rows<1>(box, first_plane, end_plane, k, f, values, rhs);
    else
      make_rows<3>(box, first_plane, end_plane, k, f, values, rhs);
  }

  void set_dirichlet(Context&, BoxElements const& box, double* x) const override {
    box_rows::Shell const shell(box, 0, box.nodes[2]);
    std::int64_t const size = shell.size();
#pragma omp parallel for schedule(static) if (size >= cpu::work_worth_threads)
    for (std::int64_t t = 0; t < size; ++t) {
      Node const node = shell(t);
      if (double value = 0; box_rows::dirichlet_value(box, node, value))
        x[box_rows::index_of(box, node)] = value;
    }
  }
};

}  // namespace

BoxElementKernels const& BoxElementKernels::cpu() {
  static CpuBoxElements const kernels;
  return kernels;
}

}  // namespace poisson
