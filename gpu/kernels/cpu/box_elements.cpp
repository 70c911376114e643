#include "gpu/kernels/box_elements.hpp"

#include "gpu/kernels/box_element_rows.hpp"
#include "gpu/kernels/cpu/cpu.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <type_traits>
#include <utility>

namespace poisson {

namespace {

using box_rows::Node;

/// Neighbouring rows that are made together, so that their sums fill vector registers.
constexpr int strip = 8;

/// Values at the Gauss points of the cells around a strip of nodes: [cy + 2 cz of the cell, 0 or 1 before and after the node][q][x
/// of the cell], the first cell being the one before the first node.
using StripValues = double[4][8][strip + 1];

/// Loads the values of component c of a field. The component is not constant.
void load_strip(BoxElements const& box, BoxField const& field, int c, Node const& node, StripValues& values) {
  std::int64_t const nx = 2 * (box.nodes[0] - 1), ny = 2 * (box.nodes[1] - 1);
  for (int line = 0; line < 4; ++line) {
    std::int64_t const cy = node.i[1] - 1 + (line & 1), cz = node.i[2] - 1 + (line >> 1) - field.first_plane;
    for (int q = 0; q < 8; q += 2) {
      double const* const first =
          field.points[static_cast<std::size_t>(c)] + ((2 * cz + (q >> 2)) * ny + 2 * cy + (q >> 1 & 1)) * nx + 2 * (node.i[0] - 1);
      for (int x = 0; x <= strip; ++x) {
        values[line][q][x] = first[2 * x];
        values[line][q + 1][x] = first[2 * x + 1];
      }
    }
  }
}

/// Multiplies by what scale_of has for component c, or for the volume (c = of_volume), of each cell around the strip.
constexpr int of_volume = -1;
void scale_strip(BoxElements const& box, int c, Node const& node, StripValues& values) {
  for (int line = 0; line < 4; ++line)
    for (int x = 0; x <= strip; ++x) {
      auto const scale = box_rows::scale_of(box, node.i[0] - 1 + x, node.i[1] - 1 + (line & 1), node.i[2] - 1 + (line >> 1));
      double const factor = c == of_volume ? scale.volume : scale.stiffness[c];
      for (int q = 0; q < 8; ++q)
        values[line][q][x] *= factor;
    }
}

void fill_strip(double constant, StripValues& values) {
  for (auto& line : values)
    for (auto& of_point : line)
      std::fill_n(of_point, strip + 1, constant);
}

/// What one of the eight cells contributes to deep_rows. Its number is a constant, so that entries are registers and no loop is
/// left.
template <int cell, int components>
inline void add_cell(BoxTables<components> const& tables, int c, StripValues const& values, double (&entries)[14][strip]) {
  constexpr int a = 7 - cell, line = cell >> 1, first = cell & 1;
  auto const add = [&]<int b>(std::integral_constant<int, b>) {
    constexpr int before = 9 * ((a >> 2) - (b >> 2)) + 3 * ((a >> 1 & 1) - (b >> 1 & 1)) + ((a & 1) - (b & 1));
    if constexpr (before >= 0) {
      double sums[strip];
      std::copy_n(entries[before], strip, sums);
      for (int q = 0; q < 8; ++q)
#pragma omp simd
        for (int w = 0; w < strip; ++w)
          sums[w] += values[line][q][first + w] * tables.stiffness[c][q][a][b];
      std::copy_n(sums, strip, entries[before]);
    }
  };
  [&]<int... b>(std::integer_sequence<int, b...>) {
    (add(std::integral_constant<int, b>()), ...);
  }
  (std::make_integer_sequence<int, 8>());
}

/// The loads of `strip` neighbouring nodes, none of them on a face. `of_f` holds the constant of a field that does not vary; others
/// are loaded.
template <int components, bool graded>
void load_rows(BoxElements const& box, BoxTables<components> const& tables, BoxField const& f, Node const& node, StripValues& of_f,
               double (&load)[strip]) {
  if (f.points[0] != nullptr)
    load_strip(box, f, 0, node, of_f);
  else if constexpr (graded)
    fill_strip(f.constant[0], of_f);
  double shift = f.shift;
  if constexpr (graded) {
    for (auto& line : of_f)
      for (auto& of_point : line)
        for (double& value : of_point)
          value -= shift;
    scale_strip(box, of_volume, node, of_f);
    shift = 0;
  }
  std::fill_n(load, strip, 0.0);
  for (int cell = 0; cell < 8; ++cell)
    for (int q = 0; q < 8; ++q)
#pragma omp simd
      for (int w = 0; w < strip; ++w)
        load[w] += (of_f[cell >> 1][q][(cell & 1) + w] - shift) * tables.load[q][7 - cell];
}

/// deep_row for `strip` neighbouring nodes: the same sums, with components one after the other. `of_k` and `of_f` hold the
/// constants of fields that do not vary; others are loaded.
template <int components, bool graded>
void deep_rows(BoxElements const& box, BoxTables<components> const& tables, BoxField const& k, BoxField const& f, Node const& node,
               StripValues (&of_k)[components], StripValues& of_f, double (&entries)[14][strip], double (&load)[strip]) {
  for (auto& entry : entries)
    std::fill_n(entry, strip, 0.0);
  for (int c = 0; c < components; ++c) {
    if (k.points[static_cast<std::size_t>(c)] != nullptr)
      load_strip(box, k, c, node, of_k[c]);
    else if constexpr (graded)
      fill_strip(k.constant[static_cast<std::size_t>(c)], of_k[c]);
    if constexpr (graded)
      scale_strip(box, c, node, of_k[c]);
    [&]<int... cell>(std::integer_sequence<int, cell...>) {
      (add_cell<cell>(tables, c, of_k[c], entries), ...);
    }
    (std::make_integer_sequence<int, 8>());
  }
  load_rows<components, graded>(box, tables, f, node, of_f, load);
}

template <int components, bool graded>
void make_rows(BoxElements const& box, std::int64_t first_plane, std::int64_t end_plane, BoxField const& k, BoxField const& f,
               double* values, double* rhs) {
  auto const tables = box_tables<components>(box.cell);
  std::int64_t const nx = box.nodes[0], ny = box.nodes[1], n = box.n_rows();
  auto const fill_constants = [&](StripValues(&of_k)[components]) {
    for (int c = 0; c < components; ++c)
      fill_strip(k.constant[static_cast<std::size_t>(c)], of_k[c]);
  };
  // Where k is constant, and cells are equal, the entries of all deep rows are those of one.
  bool const is_constant =
      !graded && std::all_of(k.points.begin(), k.points.begin() + components, [](double const* of) { return of == nullptr; });
  double constant_entries[14][strip];
  if (is_constant) {
    StripValues of_k[components], unused{};
    fill_constants(of_k);
    double ignored[strip];
    BoxElements const block{{strip + 4, 5, 5}, box.cell, {}};
    deep_rows<components, graded>(block, tables, k, BoxField{}, Node{{2, 2, 2}}, of_k, unused, constant_entries, ignored);
  }
#pragma omp parallel if ((end_plane - first_plane) * ny * nx * 300 >= cpu::work_worth_threads)
  {
    StripValues of_k[components], of_f;
    fill_constants(of_k);
    fill_strip(f.constant[0], of_f);
#pragma omp for collapse(2) schedule(static)
    for (std::int64_t z = first_plane; z < end_plane; ++z)
      for (std::int64_t y = 0; y < ny; ++y) {
        std::int64_t const line = (z * ny + y) * nx;
        for (std::int64_t x = 0; x < nx;) {
          Node const node{{x, y, z}};
          if (box_rows::is_deep(box, node) && nx >= strip + 4) {
            // The last strip begins earlier, and makes some rows again.
            std::int64_t const from = std::min(x, nx - 2 - strip);
            double entries[14][strip], load[strip];
            if (is_constant)
              load_rows<components, graded>(box, tables, f, Node{{from, y, z}}, of_f, load);
            else
              deep_rows<components, graded>(box, tables, k, f, Node{{from, y, z}}, of_k, of_f, entries, load);
            auto const& made = is_constant ? constant_entries : entries;
            for (int s = 0; s < 14 && values != nullptr; ++s)
              std::copy_n(made[s], strip, values + s * n + line + from);
            std::copy_n(load, strip, rhs + line + from);
            x = from + strip;
            continue;
          }
          if (box_rows::is_deep(box, node)) {
            double entries[14];
            box_rows::deep_row<components, graded>(box, tables, k, f, node, entries, rhs[line + x]);
            for (int s = 0; s < 14 && values != nullptr; ++s)
              values[s * n + line + x] = entries[s];
          } else {
            double entries[27];
            if (box_rows::is_only_fixed(box, node)) {
              std::fill_n(entries, 27, -0.0);
              entries[13] = box_rows::diagonal_entry<components, graded>(box, tables, k, node);
              rhs[line + x] = 0;
            } else
              box_rows::any_row<components, graded>(box, tables, k, f, node, entries, rhs[line + x]);
            if (values != nullptr)
              box_rows::store_row(n, line + x, entries, values);
          }
          ++x;
        }
      }
  }
}

/// The right-hand side alone. Precondition: no Dirichlet face has values, which would need entries of the matrix.
template <int components, bool graded>
void make_loads(BoxElements const& box, std::int64_t first_plane, std::int64_t end_plane, BoxField const& f, double* rhs) {
  auto const tables = box_tables<components>(box.cell);
  std::int64_t const nx = box.nodes[0], ny = box.nodes[1];
#pragma omp parallel if ((end_plane - first_plane) * ny * nx * 100 >= cpu::work_worth_threads)
  {
    StripValues of_f;
    fill_strip(f.constant[0], of_f);
#pragma omp for collapse(2) schedule(static)
    for (std::int64_t z = first_plane; z < end_plane; ++z)
      for (std::int64_t y = 0; y < ny; ++y) {
        double* const line = rhs + (z * ny + y) * nx;
        bool const on_face = z == 0 || z == box.nodes[2] - 1 || y == 0 || y == ny - 1;
        for (std::int64_t x = 0; x < nx;) {
          Node const node{{x, y, z}};
          if (!on_face && x > 0 && x < nx - 1 && nx >= strip + 2) {
            std::int64_t const from = std::min(x, nx - 1 - strip);  // the last strip begins earlier, and makes some rows again
            double load[strip];
            load_rows<components, graded>(box, tables, f, Node{{from, y, z}}, of_f, load);
            std::copy_n(load, strip, line + from);
            x = from + strip;
            continue;
          }
          double unused = 0;
          line[x] =
              box_rows::dirichlet_value(box, node, unused) ? 0 : box_rows::load_of_row<components, graded>(box, tables, f, node);
          ++x;
        }
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
      LineEvaluator line_values(instructions, nx, grid.coordinates[0]);
#pragma omp for schedule(static)
      for (std::int64_t line = 0; line < lines; ++line) {
        double* const out = values + line * nx;
        line_values(grid.coordinates[1][line % grid.n[1]], grid.coordinates[2][line / grid.n[1]], out);
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

  void spread(Context&, std::array<std::int64_t, 3> const& cells, std::uint8_t const* labels, double const* table,
              double* values) const override {
    std::int64_t const nx = cells[0], lines = cells[1] * cells[2];
#pragma omp parallel for schedule(static) if (nx * lines >= cpu::work_worth_threads)
    for (std::int64_t line = 0; line < lines; ++line) {
      std::int64_t const y = line % cells[1], z = line / cells[1];
      double* const first = values + (4 * z * cells[1] + 2 * y) * 2 * nx;
      for (std::int64_t x = 0; x < nx; ++x)
        first[2 * x] = first[2 * x + 1] = table[labels[line * nx + x]];
      for (std::int64_t const copy : {2 * nx, 4 * nx * cells[1], 4 * nx * cells[1] + 2 * nx})
        std::copy_n(first, 2 * nx, first + copy);
    }
  }

  void weigh(Context&, TensorGrid const& weights, double const* values, double* weighted) const override {
    std::int64_t const nx = weights.n[0], lines = weights.n[1] * weights.n[2];
#pragma omp parallel for schedule(static) if (weights.size() >= cpu::work_worth_threads)
    for (std::int64_t line = 0; line < lines; ++line) {
      double const of_line = weights.coordinates[1][line % weights.n[1]] * weights.coordinates[2][line / weights.n[1]];
      for (std::int64_t x = 0; x < nx; ++x)
        weighted[line * nx + x] = values[line * nx + x] * (weights.coordinates[0][x] * of_line);
    }
  }

  void add_products(Context&, TensorGrid const& numbers, double factor, double* values) const override {
    std::int64_t const nx = numbers.n[0], lines = numbers.n[1] * numbers.n[2];
#pragma omp parallel for schedule(static) if (numbers.size() >= cpu::work_worth_threads)
    for (std::int64_t line = 0; line < lines; ++line) {
      double const of_line = factor * (numbers.coordinates[1][line % numbers.n[1]] * numbers.coordinates[2][line / numbers.n[1]]);
      for (std::int64_t x = 0; x < nx; ++x)
        values[line * nx + x] += numbers.coordinates[0][x] * of_line;
    }
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

  void largest_of_lattice(Context&, std::array<std::int64_t, 3> const& cells, int steps, double const* values,
                          double* largest) const override {
    std::int64_t const lines = cells[1] * cells[2], nx = steps * cells[0] + 1, ny = steps * cells[1] + 1;
#pragma omp parallel for schedule(static) if (lines * nx >= cpu::work_worth_threads)
    for (std::int64_t line = 0; line < lines; ++line) {
      double most = 0;
      for (std::int64_t z = line / cells[1] * steps, end_z = z + steps; z <= end_z; ++z)
        for (std::int64_t y = line % cells[1] * steps, end_y = y + steps; y <= end_y; ++y)
          most = std::max(most, box_rows::largest_finite(values + (z * ny + y) * nx, nx, 0, 1));
      largest[line] = most;
    }
  }

  void check_definite(Context&, std::int64_t n, BoxField const& k, std::int64_t* failed) const override {
    std::int64_t lowest = *failed;
#pragma omp parallel for schedule(static) reduction(min : lowest) if (20 * n >= cpu::work_worth_threads)
    for (std::int64_t i = 0; i < n; ++i)
      if (!box_rows::is_definite(k, i))
        lowest = std::min(lowest, i);
    *failed = lowest;
  }

  void rows(Context&, BoxElements const& box, std::int64_t first_plane, std::int64_t end_plane, int components, BoxField const& k,
            BoxField const& f, double* values, double* rhs) const override {
    bool const lifts = std::any_of(std::begin(box.faces), std::end(box.faces), [](BoxFace const& face) {
      return face.type == BoxFace::Type::dirichlet && face.value != nullptr;
    });
    if (values == nullptr && !lifts && box.is_graded())
      make_loads<3, true>(box, first_plane, end_plane, f, rhs);
    else if (values == nullptr && !lifts)
      make_loads<1, false>(box, first_plane, end_plane, f, rhs);
    else if (box.is_graded() && components == tensor_entries)
      make_rows<tensor_entries, true>(box, first_plane, end_plane, k, f, values, rhs);
    else if (box.is_graded())
      make_rows<3, true>(box, first_plane, end_plane, k, f, values, rhs);
    else if (components == 1)
      make_rows<1, false>(box, first_plane, end_plane, k, f, values, rhs);
    else if (components == tensor_entries)
      make_rows<tensor_entries, false>(box, first_plane, end_plane, k, f, values, rhs);
    else
      make_rows<3, false>(box, first_plane, end_plane, k, f, values, rhs);
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
