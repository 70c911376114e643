#include "gpu/kernels/lattice_elements.hpp"

#include "gpu/kernels/cpu/cpu.hpp"
#include "gpu/kernels/lattice_element_rows.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

namespace poisson {

namespace {

/// Neighbouring rows that are made together, so that their sums fill vector registers.
constexpr int cells_of_strip = 8;

/// lowest = min(lowest, found).
void lower(std::atomic<std::int64_t>& lowest, std::int64_t found) {
  std::int64_t known = lowest;
  while (found < known && !lowest.compare_exchange_weak(known, found)) {
  }
}

class CpuLatticeElements final : public LatticeElementKernels {
public:
  void evaluate(Context&, LatticeElements const& elements, CellLayers const& layers, ListedCells const& listed, ExpressionView code,
                int, ValueCheck check, double* values, std::int64_t* failed) const override {
    MapTables const tables = map_tables(elements.lattices.order, elements.map_order());
    int const n1 = tables.points, points = elements.points();
    std::int64_t const n_cells = layers.count * elements.cells_of_layer(), first = layers.first * elements.cells_of_layer();
    std::int64_t const lowest =
        for_cells(elements, layers, listed, points * code.size, [&](lattice_rows::Place const& cell, std::int64_t number) {
          return lattice_rows::with_map(elements, tables, cell, [&](auto const& map) {
            std::int64_t found = std::numeric_limits<std::int64_t>::max();
            int q = 0;
            for (int qz = 0; qz < n1; ++qz)
              for (int qy = 0; qy < n1; ++qy)
                for (int qx = 0; qx < n1; ++qx, ++q) {
                  double const value = poisson::evaluate<expression_stack_size>(
                      code, map.coordinate(0, qx, qy, qz), map.coordinate(1, qx, qy, qz), map.coordinate(2, qx, qy, qz));
                  values[q * n_cells + number] = value;
                  if (!passes(check, value))
                    found = std::min(found, points * (first + number) + q);
                }
            return found;
          });
        });
    *failed = std::min(*failed, lowest);
  }

  void tensors(Context&, LatticeElements const& elements, CellLayers const& layers, ListedCells const& listed, int components,
               LatticeCoefficient const& k, LatticeField const& f, double shift, LatticeTensors const& tensors, double* load,
               std::int64_t* inverted, std::int64_t* not_definite) const override {
    MapTables const tables = map_tables(elements.lattices.order, elements.map_order());
    int const n1 = tables.points, points = elements.points();
    std::int64_t const first = layers.first * elements.cells_of_layer();
    std::atomic<std::int64_t> indefinite = *not_definite;
    std::int64_t const lowest =
        for_cells(elements, layers, listed, 100 * points, [&](lattice_rows::Place const& cell, std::int64_t number) {
          return lattice_rows::with_map(elements, tables, cell, [&](auto const& map) {
            std::int64_t found = std::numeric_limits<std::int64_t>::max();
            for (int qz = 0; qz < n1; ++qz) {
              lattice_rows::TensorFindings const of_plane =
                  lattice_rows::store_tensors(elements, map, qz, layers, components, k, f, shift, number, tensors, load);
              if (of_plane.inverted)
                found = std::min<std::int64_t>(found, points * (first + number) + qz * n1 * n1);
              if (of_plane.not_definite >= 0)
                lower(indefinite, points * (first + number) + of_plane.not_definite);
            }
            return found;
          });
        });
    *inverted = std::min(*inverted, lowest);
    *not_definite = indefinite;
  }

  void largest_of_lines(Context&, LatticeElements const& elements, CellLayers const& layers, double const* load,
                        double* largest) const override {
    std::int64_t const n = elements.lattices.cells, n_cells = layers.count * n * n, lines = layers.count * n;
    int const points = elements.points();
#pragma omp parallel for schedule(static) if (points * n_cells >= cpu::work_worth_threads)
    for (std::int64_t line = 0; line < lines; ++line) {
      double most = 0;
      for (std::int64_t cell = line * n; cell < (line + 1) * n; ++cell)
        most = std::max(most, lattice_rows::absolute_of_cell(points, load, n_cells, cell));
      largest[line] = most;
    }
  }

  void element_loads(Context&, LatticeElements const& elements, CellLayers const& layers, double const* load, std::int64_t stride,
                     double* vectors) const override {
    ElementTables const tables = element_tables(elements.lattices.order);
    constexpr std::int64_t at_once = 128;  // cells, whatever lattices they are of: their loads at all points fit the cache
    std::int64_t const n = elements.lattices.cells, n_cells = layers.count * n * n, blocks = (n_cells + at_once - 1) / at_once;
    int const n1 = tables.points(), points = elements.points();
#pragma omp parallel for schedule(static) if (points * n_cells >= cpu::work_worth_threads)
    for (std::int64_t block = 0; block < blocks; ++block) {
      std::int64_t const first = block * at_once, count = std::min(at_once, n_cells - first);
      for (int a = 0; a < points; ++a) {
        double* const out = vectors + a * stride + layers.first * n * n + first;
        std::fill_n(out, count, 0.0);
        for (int q = 0; q < points; ++q) {
          double const value = lattice_rows::value_at(tables, n1, a, q);
          double const* const of_point = load + q * n_cells + first;
#pragma omp simd
          for (std::int64_t cell = 0; cell < count; ++cell)
            out[cell] += value * of_point[cell];
        }
      }
    }
  }

  void add_rim_loads(Context&, LatticeElements const& elements, double* rhs) const override {
    std::int64_t const n_rim = elements.lattices.n_rim(), n_inner = elements.lattices.n_inner();
#pragma omp parallel for schedule(static) if (2 * n_rim >= cpu::work_worth_threads)
    for (std::int64_t i = 0; i < n_rim; ++i)
      rhs[n_inner + i] = elements.fixed[i] != 0 ? 0 : rhs[n_inner + i] + elements.rim_load[i];
  }

  void rows(Context&, LatticeElements const& elements, CellLayers const& layers, std::int64_t first_plane, std::int64_t end_plane,
            double const* tensor, double const* load, double* values, double* rhs, double* rim_rhs) const override {
    LatticeTables const tables = lattice_tables();
    std::int32_t const m = elements.lattices.m;
    std::int64_t const n_values = elements.n_values();
#pragma omp parallel for schedule(static) collapse(2) if ((end_plane - first_plane) * m * m * 1000 >= cpu::work_worth_threads)
    for (std::int64_t plane = first_plane; plane < end_plane; ++plane)
      for (std::int32_t y = 0; y < m; ++y) {
        lattice_rows::Place node{plane / m, {0, y, static_cast<std::int32_t>(plane % m)}};
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
          if (m >= cells_of_strip + 4)
            make(std::integral_constant<int, cells_of_strip>());
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

  void vertices(Context&, LatticeView const& lattices, double const* nodes, double* vertices) const override {
    std::int64_t const n = n_vertex_coordinates(lattices);
#pragma omp parallel for schedule(static) if (2 * n >= cpu::work_worth_threads)
    for (std::int64_t i = 0; i < n; ++i)
      vertices[i] = nodes[place_of_vertex(lattices, i)];
  }

private:
  /// Calls visit(cell, its number in `layers`) for the cells listed, and returns the lowest number that it returned.
  template <class Visit>
  static std::int64_t for_cells(LatticeElements const& elements, CellLayers const& layers, ListedCells const& listed,
                                std::int64_t work_of_cell, Visit const& visit) {
    std::int64_t const n = elements.lattices.cells;
    std::int64_t lowest = std::numeric_limits<std::int64_t>::max();
#pragma omp parallel for schedule(static) collapse(2)                                                                              \
    reduction(min                                                                                                                  \
              : lowest) if (listed.n_layers * n * n * work_of_cell >= cpu::work_worth_threads)
    for (std::int64_t l = 0; l < listed.n_layers; ++l)
      for (std::int64_t y = 0; y < n; ++y) {
        std::int64_t const lattice = listed.layers[l] / n, z = listed.layers[l] % n;
        for (std::int64_t x = 0; x < n; ++x)
          if (std::int64_t const number = lattice_rows::number_in(elements, layers, lattice, x, y, z); listed.has(number))
            lowest = std::min(lowest, visit(lattice_rows::Place{lattice,
                                                                {static_cast<std::int32_t>(x), static_cast<std::int32_t>(y),
                                                                 static_cast<std::int32_t>(z)}},
                                            number));
      }
    return lowest;
  }
};

}  // namespace

LatticeElementKernels const& LatticeElementKernels::cpu() {
  static CpuLatticeElements const kernels;
  return kernels;
}

}  // namespace poisson
