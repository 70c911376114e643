#include "gpu/kernels/lattice_elements.hpp"

#include "gpu/kernels/cpu/cpu.hpp"
#include "gpu/kernels/lattice_element_rows.hpp"

#include <algorithm>
#include <cmath>

namespace poisson {

namespace {

using lattice_rows::Place;

/// Neighbouring rows that are made together, so that their sums fill vector registers.
constexpr int strip = 8;

class CpuLatticeElements final : public LatticeElementKernels {
public:
  void evaluate(Context&, LatticeElements const& elements, CellLayers const& layers, std::int64_t const* listed,
                std::int64_t n_listed, ExpressionView code, int, ValueCheck check, double* values,
                std::int64_t* failed) const override {
    LatticeTables const tables = lattice_tables();
    std::int64_t const n = elements.lattices.cells, n_cells = layers.count * n * n;
    std::int64_t lowest = *failed;
#pragma omp parallel for schedule(static) collapse(2)                                                                              \
    reduction(min                                                                                                                  \
              : lowest) if (n_listed * n * n * 8 * code.size >= cpu::work_worth_threads)
    for (std::int64_t l = 0; l < n_listed; ++l)
      for (std::int64_t y = 0; y < n; ++y) {
        std::int64_t const lattice = listed[l] / n, z = listed[l] % n;
        for (std::int64_t x = 0; x < n; ++x) {
          auto const vertices = lattice_rows::vertices_of(
              elements, {lattice, {static_cast<std::int32_t>(x), static_cast<std::int32_t>(y), static_cast<std::int32_t>(z)}});
          std::int64_t const cell = lattice_rows::number_in(elements, layers, lattice, x, y, z);
          for (int q = 0; q < 8; ++q) {
            double const value = poisson::evaluate<expression_stack_size>(code, lattice_rows::coordinate(tables, vertices.x[0], q),
                                                                          lattice_rows::coordinate(tables, vertices.x[1], q),
                                                                          lattice_rows::coordinate(tables, vertices.x[2], q));
            values[q * n_cells + cell] = value;
            if (!passes(check, value))
              lowest = std::min(lowest, 8 * (layers.first * n * n + cell) + q);
          }
        }
      }
    *failed = lowest;
  }

  void tensors(Context&, LatticeElements const& elements, CellLayers const& layers, std::int64_t const* listed,
               std::int64_t n_listed, int components, std::array<LatticeField, 3> const& k, LatticeField const& f, double shift,
               double* tensor, double* load, std::int64_t* failed) const override {
    LatticeTables const tables = lattice_tables();
    std::int64_t const n = elements.lattices.cells, n_cells = layers.count * n * n;
    std::int64_t lowest = *failed;
#pragma omp parallel for schedule(static) collapse(2) reduction(min : lowest) if (n_listed * n * n * 800 >= cpu::work_worth_threads)
    for (std::int64_t l = 0; l < n_listed; ++l)
      for (std::int64_t y = 0; y < n; ++y) {
        std::int64_t const lattice = listed[l] / n, z = listed[l] % n;
        for (std::int64_t x = 0; x < n; ++x) {
          auto const vertices = lattice_rows::vertices_of(
              elements, {lattice, {static_cast<std::int32_t>(x), static_cast<std::int32_t>(y), static_cast<std::int32_t>(z)}});
          std::int64_t const cell = lattice_rows::number_in(elements, layers, lattice, x, y, z);
          if (!lattice_rows::store_tensors(tables, vertices, components, k, f, shift, n_cells, cell, tensor, load))
            lowest = std::min(lowest, 8 * (layers.first * n * n + cell));
        }
      }
    *failed = lowest;
  }

  void largest_of_lines(Context&, LatticeElements const& elements, CellLayers const& layers, double const* load,
                        double* largest) const override {
    std::int64_t const n = elements.lattices.cells, n_cells = layers.count * n * n, lines = layers.count * n;
#pragma omp parallel for schedule(static) if (8 * n_cells >= cpu::work_worth_threads)
    for (std::int64_t line = 0; line < lines; ++line) {
      double most = 0;
      for (std::int64_t cell = line * n; cell < (line + 1) * n; ++cell)
        most = std::max(most, lattice_rows::absolute_of_cell(load, n_cells, cell));
      largest[line] = most;
    }
  }

  void rows(Context&, LatticeElements const& elements, CellLayers const& layers, std::int64_t first_plane, std::int64_t end_plane,
            double const* tensor, double const* load, double* values, double* rhs, double* rim_rhs) const override {
    LatticeTables const tables = lattice_tables();
    std::int32_t const m = elements.lattices.m;
    std::int64_t const n_values = elements.n_values();
#pragma omp parallel for schedule(static) collapse(2) if ((end_plane - first_plane) * m * m * 1000 >= cpu::work_worth_threads)
    for (std::int64_t plane = first_plane; plane < end_plane; ++plane)
      for (std::int32_t y = 0; y < m; ++y) {
        Place node{plane / m, {0, y, static_cast<std::int32_t>(plane % m)}};
        for (std::int32_t x = 0; x < m;) {
          node.i[0] = x;
          if (!lattice_rows::is_deep(m, node)) {
            lattice_rows::store_any_row(elements, tables, layers, node, tensor, load, values, rhs, rim_rhs);
            ++x;
            continue;
          }
          auto const make = [&]<int width>(std::integral_constant<int, width>) {
            // The last strip begins earlier, and makes some rows again.
            node.i[0] = std::min(x, m - 2 - width);
            double entries[14][width], loads[width];
            lattice_rows::deep_rows(elements, tables, layers, node, tensor, load, entries, loads);
            std::int64_t const row = lattice_rows::row_of(elements, node);
            for (int s = 0; s < 14; ++s)
              std::copy_n(entries[s], width, values + s * n_values + row);
            std::copy_n(loads, width, rhs + elements.lattices.inner_unknown(node.lattice, node.i[0], node.i[1], node.i[2]));
            x = node.i[0] + width;
          };
          if (m >= strip + 4)
            make(std::integral_constant<int, strip>());
          else
            make(std::integral_constant<int, 1>());
        }
      }
  }

  void sum_copies(Context&, LatticeElements const& elements, double const* rim_values, double* out) const override {
    LatticeView const& lattices = elements.lattices;
    std::int64_t const n_rim = lattices.n_rim(), n_inner = lattices.n_inner();
#pragma omp parallel for schedule(static) if (2 * n_rim >= cpu::work_worth_threads)
    for (std::int64_t i = 0; i < n_rim; ++i)
      out[n_inner + i] = lattice_rows::sum_of_copies(elements, rim_values, i);
  }
};

}  // namespace

LatticeElementKernels const& LatticeElementKernels::cpu() {
  static CpuLatticeElements const kernels;
  return kernels;
}

}  // namespace poisson
