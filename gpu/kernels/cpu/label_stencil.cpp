#include "gpu/kernels/label_stencil.hpp"

#include "gpu/kernels/cpu/accurate_sums.hpp"
#include "gpu/kernels/cpu/cpu.hpp"
#include "gpu/kernels/label_stencil_rows.hpp"

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <vector>

namespace poisson {

namespace {

using box_rows::Node;

/// Lines of nodes in y and planes in z that are one part of the work. What is kept of a plane, 9 lines of 8 numbers a node, fits
/// the second-level cache. A part computes a line of cells and a plane of them more than it has of nodes.
constexpr std::int64_t lines_of_part = 8, planes_of_part = 32;

/// Products in a part of the rows, by the modes of cells in x and y: 0 is the sum over the corners, 1 the difference in x, 2 that
/// in y, 3 both. It walks through planes of cells; of the plane of nodes below each it keeps the modes of x, and of what that plane
/// has to get, the modes of what came from the cells before.
template <class T, class S, class Label>
class PartProducts {
public:
  PartProducts(LabelStencilView const& a, Label const* labels, ConstPointer<T> x)
      : a_(a), labels_(labels), x_(x), nx_(a.box.nodes[0]), cx_(nx_ - 1) {
    for (auto* const line :
         {&line_, &sums_[0], &sums_[1], &differences_[0], &differences_[1], &q_[0], &q_[1], &high_[0], &high_[1], &values_})
      line->resize(static_cast<std::size_t>(nx_));
    for (auto& mode : modes_)
      mode.resize(static_cast<std::size_t>(cx_));
    for (int m = 0; m < 4; ++m) {
      below_[m].resize(static_cast<std::size_t>((lines_of_part + 1) * cx_));
      carried_[m].resize(static_cast<std::size_t>((lines_of_part + 1) * cx_));
    }
  }

  /// Calls line(y, z, values) for the lines first_y <= y < end_y of nodes in the planes first_z <= z < end_z. values[i] = (A x)_i
  /// in that line.
  template <class Line>
  void operator()(std::int64_t first_y, std::int64_t end_y, std::int64_t first_z, std::int64_t end_z, Line const& line) {
    std::int64_t const ny = a_.box.nodes[1] - 1, nz = a_.box.nodes[2] - 1;  // of cells
    std::int64_t const first_row = std::max<std::int64_t>(first_y - 1, 0), end_row = std::min(end_y, ny);
    std::int64_t const first = std::max<std::int64_t>(first_z - 1, 0);
    std::int64_t const kept = (end_row - first_row) * cx_;
    transform(first_row, first);
    for (std::int64_t r = first_row; r < end_row; ++r) {
      transform(r + 1, first);
      std::int64_t const at = (r - first_row) * cx_;
      S const *const s0 = sums(r), *const s1 = sums(r + 1), *const d0 = differences(r), *const d1 = differences(r + 1);
      S *const b0 = below_[0].data() + at, *const b1 = below_[1].data() + at, *const b2 = below_[2].data() + at,
               *const b3 = below_[3].data() + at;
#pragma omp simd
      for (std::int64_t i = 0; i < cx_; ++i) {
        b0[i] = s0[i] + s1[i];
        b1[i] = d0[i] + d1[i];
        b2[i] = s1[i] - s0[i];
        b3[i] = d1[i] - d0[i];
      }
    }
    for (auto& mode : carried_)
      std::fill_n(mode.begin(), kept, S(0));
    for (std::int64_t c = first; c < end_z; ++c) {  // cells of layer nz are none
      if (c < nz)
        transform(first_row, c + 1);
      std::fill(high_[0].begin(), high_[0].end(), S(0));
      std::fill(high_[1].begin(), high_[1].end(), S(0));
      for (std::int64_t r = first_row; r < end_row; ++r) {
        if (c < nz) {
          transform(r + 1, c + 1);
          if (a_.cubic)
            pass_cells<true>(r, (r - first_row) * cx_, labels_ + (c * ny + r) * cx_);
          else
            pass_cells<false>(r, (r - first_row) * cx_, labels_ + (c * ny + r) * cx_);
        } else
          pass_nothing((r - first_row) * cx_);
        if (c >= first_z && r >= first_y)
          finish(q_, r, c, line);
      }
      if (c >= first_z && end_y > end_row)
        finish(high_, end_row, c, line);
    }
  }

private:
  using Weight = std::conditional_t<std::is_same_v<S, float>, float, double>;
  [[nodiscard]] S* sums(std::int64_t y) {
    return sums_[y % 2].data();
  }
  [[nodiscard]] S* differences(std::int64_t y) {
    return differences_[y % 2].data();
  }

  /// Sums and differences of neighbours in the line y of plane z; Dirichlet nodes count as 0.
  void transform(std::int64_t y, std::int64_t z) {
    S* const x = line_.data();
    if (box_rows::is_dirichlet_plane(a_.box, 1, y) || box_rows::is_dirichlet_plane(a_.box, 2, z))
      std::fill_n(x, nx_, S(0));
    else {
      ConstPointer<T> const from = x_ + (z * a_.box.nodes[1] + y) * nx_;
      for (std::int64_t i = 0; i < nx_; ++i)
        x[i] = static_cast<S>(load(from, i));
      if (box_rows::is_dirichlet_plane(a_.box, 0, 0))
        x[0] = S(0);
      if (box_rows::is_dirichlet_plane(a_.box, 0, nx_ - 1))
        x[nx_ - 1] = S(0);
    }
    S *const sum = sums(y), *const difference = differences(y);
#pragma omp simd
    for (std::int64_t i = 0; i < cx_; ++i) {
      sum[i] = x[i] + x[i + 1];
      difference[i] = x[i + 1] - x[i];
    }
  }

  /// The cells of line r: the plane above is in sums_ and differences_. q_ becomes what the lower line of nodes gets in the plane
  /// below, in modes of x, and high_ what the upper one gets from here.
  template <bool cubic>
  void pass_cells(std::int64_t r, std::int64_t at, Label const* labels) {
    S const *const s0 = sums(r), *const s1 = sums(r + 1), *const d0 = differences(r), *const d1 = differences(r + 1);
    S *const b0 = below_[0].data() + at, *const b1 = below_[1].data() + at, *const b2 = below_[2].data() + at,
             *const b3 = below_[3].data() + at;
    S *const c0 = carried_[0].data() + at, *const c1 = carried_[1].data() + at, *const c2 = carried_[2].data() + at,
             *const c3 = carried_[3].data() + at;
    S *const q0 = q_[0].data(), *const q1 = q_[1].data(), *const h0 = high_[0].data(), *const h1 = high_[1].data();
    // Looked up first, so that the loop below vectorises.
    for (std::int64_t i = 0; i < cx_; ++i) {
      double const* const of = a_.modes + 7 * std::int64_t{labels[i]};
      if constexpr (cubic) {
        modes_[0][i] = static_cast<Weight>(of[0]);
        modes_[2][i] = static_cast<Weight>(of[2]);
      } else
        for (int m = 0; m < 6; ++m)
          modes_[m][i] = static_cast<Weight>(of[m]);
      modes_[6][i] = static_cast<Weight>(of[6]);
    }
    Weight const *const t1 = modes_[0].data(), *const t2 = modes_[cubic ? 0 : 1].data(), *const t3 = modes_[2].data(),
                        *const t4 = modes_[cubic ? 0 : 3].data(), *const t5 = modes_[cubic ? 2 : 4].data(),
                        *const t6 = modes_[cubic ? 2 : 5].data(), *const t7 = modes_[6].data();
#pragma omp simd
    for (std::int64_t i = 0; i < cx_; ++i) {
      S const w0 = s0[i] + s1[i], w1 = d0[i] + d1[i], w2 = s1[i] - s0[i], w3 = d1[i] - d0[i];
      // In each mode of x and y the sum over both planes, and the difference; times t.
      S const p1 = t1[i] * (w1 + b1[i]), p2 = t2[i] * (w2 + b2[i]), p3 = t3[i] * (w3 + b3[i]);
      S const m0 = t4[i] * (w0 - b0[i]), m1 = t5[i] * (w1 - b1[i]), m2 = t6[i] * (w2 - b2[i]), m3 = t7[i] * (w3 - b3[i]);
      S const y0 = c0[i] - m0, y1 = c1[i] + (p1 - m1), y2 = c2[i] + (p2 - m2), y3 = c3[i] + (p3 - m3);
      c0[i] = m0;
      c1[i] = p1 + m1;
      c2[i] = p2 + m2;
      c3[i] = p3 + m3;
      b0[i] = w0;
      b1[i] = w1;
      b2[i] = w2;
      b3[i] = w3;
      q0[i] = h0[i] + (y0 - y2);
      q1[i] = h1[i] + (y1 - y3);
      h0[i] = y0 + y2;
      h1[i] = y1 + y3;
    }
  }
  /// The same where there are no cells above.
  void pass_nothing(std::int64_t at) {
    S const *const c0 = carried_[0].data() + at, *const c1 = carried_[1].data() + at, *const c2 = carried_[2].data() + at,
                   *const c3 = carried_[3].data() + at;
    S *const q0 = q_[0].data(), *const q1 = q_[1].data(), *const h0 = high_[0].data(), *const h1 = high_[1].data();
#pragma omp simd
    for (std::int64_t i = 0; i < cx_; ++i) {
      q0[i] = h0[i] + (c0[i] - c2[i]);
      q1[i] = h1[i] + (c1[i] - c3[i]);
      h0[i] = c0[i] + c2[i];
      h1[i] = c1[i] + c3[i];
    }
  }

  /// From the modes of x to the rows of a line of nodes.
  template <class Line>
  void finish(std::vector<S> const (&modes)[2], std::int64_t y, std::int64_t z, Line const& line) {
    S* const values = values_.data();
    S const *const q0 = modes[0].data(), *const q1 = modes[1].data();
    values[0] = q0[0] - q1[0];
#pragma omp simd
    for (std::int64_t i = 1; i < cx_; ++i)
      values[i] = (q0[i - 1] + q1[i - 1]) + (q0[i] - q1[i]);
    values[cx_] = q0[cx_ - 1] + q1[cx_ - 1];
    ConstPointer<T> const x = x_ + (z * a_.box.nodes[1] + y) * nx_;
    auto const take_diagonal = [&](std::int64_t i) {
      values[i] = label_rows::dirichlet_row(a_, {{i, y, z}}, static_cast<S>(load(x, i)));
    };
    if (box_rows::is_dirichlet_plane(a_.box, 1, y) || box_rows::is_dirichlet_plane(a_.box, 2, z)) {
      for (std::int64_t i = 0; i < nx_; ++i)
        take_diagonal(i);
    } else {
      for (std::int64_t const i : {std::int64_t{0}, nx_ - 1})
        if (box_rows::is_dirichlet_plane(a_.box, 0, i))
          take_diagonal(i);
    }
    line(y, z, values);
  }

  LabelStencilView const& a_;
  Label const* labels_;
  ConstPointer<T> x_;
  std::int64_t nx_, cx_;
  std::vector<S> line_, sums_[2], differences_[2], q_[2], high_[2], values_;
  std::vector<S> below_[4], carried_[4];
  std::vector<Weight> modes_[7];  ///< of the cells of a line
};

[[nodiscard]] std::int64_t parts_in_y(LabelStencilView const& a) {
  return (a.box.nodes[1] + lines_of_part - 1) / lines_of_part;
}
[[nodiscard]] std::int64_t n_parts(LabelStencilView const& a) {
  return parts_in_y(a) * ((a.box.nodes[2] + planes_of_part - 1) / planes_of_part);
}

/// Calls line(part, first, values), where values[i] = (A x)_(first + i), for all lines of nodes; those of a part by one thread, in
/// order.
template <class T, class S, class Label, class Line>
void for_lines(LabelStencilView const& a, Label const* labels, ConstPointer<T> x, Line const& line) {
  std::int64_t const nx = a.box.nodes[0], ny = a.box.nodes[1], nz = a.box.nodes[2], in_y = parts_in_y(a), parts = n_parts(a);
#pragma omp parallel if (parts > 1 && 40 * a.box.n_rows() * cpu::work_of <T> >= cpu::work_worth_threads)
  {
    PartProducts<T, S, Label> products(a, labels, x);
#pragma omp for schedule(static)
    for (std::int64_t part = 0; part < parts; ++part) {
      std::int64_t const y = part % in_y * lines_of_part, z = part / in_y * planes_of_part;
      products(y, std::min(ny, y + lines_of_part), z, std::min(nz, z + planes_of_part),
               [&](std::int64_t of_y, std::int64_t of_z, S const* values) { line(part, (of_z * ny + of_y) * nx, values); });
    }
  }
}
template <class T, class S, class Line>
void for_lines(LabelStencilView const& a, ConstPointer<T> x, Line const& line) {
  if (a.bytes != nullptr)
    for_lines<T, S>(a, a.bytes, x, line);
  else
    for_lines<T, S>(a, a.words, x, line);
}

template <class T>
void multiply(LabelStencilView const& a, T alpha, ConstPointer<T> x, T beta, Pointer<T> y) {
  std::int64_t const nx = a.box.nodes[0];
  for_lines<T, box_rows::Sum<T>>(a, x, [=](std::int64_t, std::int64_t first, box_rows::Sum<T> const* values) {
    Pointer<T> const to = y + first;
    for (std::int64_t i = 0; i < nx; ++i) {
      box_rows::Sum<T> const scaled = box_rows::wide(alpha) * values[i];
      store(to, i,
            beta == T(0) ? static_cast<T>(scaled) : static_cast<T>(scaled + box_rows::wide(beta) * box_rows::wide(load(to, i))));
    }
  });
}

template <class T>
[[nodiscard]] DotSum<T> sum_of(box_rows::Sum<T> value) {
  if constexpr (std::is_same_v<T, DoubleDouble>)
    return {value.hi, value.lo};
  else
    return {value};
}

template <class T>
void multiply_dot(Context& context, LabelStencilView const& a, ConstPointer<T> x, Pointer<T> y, T* dot, std::int32_t const* stop) {
  if (*stop != 0)
    return;
  std::int64_t const parts = n_parts(a), nx = a.box.nodes[0];
  auto* const sums = static_cast<cpu::CpuContext&>(context).partial_sums<DotSum<T>>(parts);
  std::fill_n(sums, parts, DotSum<T>{});
  for_lines<T, box_rows::Sum<T>>(a, x, [=](std::int64_t part, std::int64_t first, box_rows::Sum<T> const* values) {
    for (std::int64_t i = 0; i < nx; ++i)
      store(y, first + i, static_cast<T>(values[i]));
    sums[part].add(sum_of<T>(cpu::dot_of_rows(0, nx, x + first, ConstPointer<T>(y + first))));
  });
  DotSum<T> sum{};
  for (std::int64_t part = 0; part < parts; ++part)
    sum.add(sums[part]);
  *dot = sum.value();
}

/// Calls row(i, (A x)_i) for all rows, by sums in V.
template <class V, class Row>
void for_rows(LabelStencilView const& a, V const* x, Row const& row) {
  std::int64_t const nx = a.box.nodes[0];
  for_lines<V, V>(a, x, [=](std::int64_t, std::int64_t first, V const* values) {
#pragma omp simd
    for (std::int64_t i = 0; i < nx; ++i)
      row(first + i, values[i]);
  });
}

/// Calls action(row, node) for the rows in the planes first <= z < end.
template <class Action>
void for_nodes(LabelStencilView const& a, std::int64_t first, std::int64_t end, Action const& action) {
  std::int64_t const lines = a.box.nodes[1] * end;
#pragma omp parallel for schedule(static) if (40 * a.box.n_rows() >= cpu::work_worth_threads)
  for (std::int64_t line = a.box.nodes[1] * first; line < lines; ++line)
    for (std::int64_t i = 0; i < a.box.nodes[0]; ++i)
      action(line * a.box.nodes[0] + i, Node{{i, line % a.box.nodes[1], line / a.box.nodes[1]}});
}

class CpuLabelStencil final : public LabelStencilKernels {
public:
  void product(Context&, LabelStencilView const& a, float alpha, float const* x, float beta, float* y) const override {
    multiply<float>(a, alpha, x, beta, y);
  }
  void product(Context&, LabelStencilView const& a, double alpha, double const* x, double beta, double* y) const override {
    multiply<double>(a, alpha, x, beta, y);
  }
  void product(Context&, LabelStencilView const& a, DoubleDouble alpha, ConstPointer<DoubleDouble> x, DoubleDouble beta,
               Pointer<DoubleDouble> y) const override {
    multiply<DoubleDouble>(a, alpha, x, beta, y);
  }
  void product_dot(Context& context, LabelStencilView const& a, float const* x, float* y, float* dot,
                   std::int32_t const* stop) const override {
    multiply_dot<float>(context, a, x, y, dot, stop);
  }
  void product_dot(Context& context, LabelStencilView const& a, double const* x, double* y, double* dot,
                   std::int32_t const* stop) const override {
    multiply_dot<double>(context, a, x, y, dot, stop);
  }
  void product_dot(Context& context, LabelStencilView const& a, ConstPointer<DoubleDouble> x, Pointer<DoubleDouble> y,
                   DoubleDouble* dot, std::int32_t const* stop) const override {
    multiply_dot<DoubleDouble>(context, a, x, y, dot, stop);
  }
  void smooth(Context&, LabelStencilView const& a, SmoothingStep<float> const& step, float const* x,
              std::int32_t const* stop) const override {
    take_steps(a, step, x, stop);
  }
  void smooth(Context&, LabelStencilView const& a, SmoothingStep<double> const& step, double const* x,
              std::int32_t const* stop) const override {
    take_steps(a, step, x, stop);
  }
  void subtract_product(Context&, LabelStencilView const& a, float const* b, float const* x, float* r,
                        std::int32_t const* stop) const override {
    rest(a, b, x, r, stop);
  }
  void subtract_product(Context&, LabelStencilView const& a, double const* b, double const* x, double* r,
                        std::int32_t const* stop) const override {
    rest(a, b, x, r, stop);
  }
  void fill_diagonals(Context&, LabelStencilView const& a, std::int64_t first, std::int64_t end, float* values) const override {
    fill(a, first, end, values);
  }
  void fill_diagonals(Context&, LabelStencilView const& a, std::int64_t first, std::int64_t end, double* values) const override {
    fill(a, first, end, values);
  }
  void diagonal(Context&, LabelStencilView const& a, float* d) const override { fill_diagonal(a, d); }
  void diagonal(Context&, LabelStencilView const& a, double* d) const override { fill_diagonal(a, d); }

  void residual(Context&, LabelStencilView const& a, double const* x, double const* x_low, double const* b,
                double* r) const override {
    if (a.bytes != nullptr)
      residuals(a, a.bytes, x, x_low, b, r);
    else
      residuals(a, a.words, x, x_low, b, r);
  }

private:
  template <class V>
  static void take_steps(LabelStencilView const& a, SmoothingStep<V> const& step, V const* x, std::int32_t const* stop) {
    if (*stop == 0)
      for_rows(a, x, [=](std::int64_t i, V y) { take_step(step, i, y, x[i]); });
  }
  template <class V>
  static void rest(LabelStencilView const& a, V const* b, V const* x, V* r, std::int32_t const* stop) {
    if (*stop == 0)
      for_rows(a, x, [=](std::int64_t i, V y) { r[i] = b[i] - y; });
  }
  template <class V>
  static void fill(LabelStencilView const& a, std::int64_t first, std::int64_t end, V* values) {
    for_nodes(a, first, end, [&](std::int64_t, Node const& node) { label_rows::fill_row(a, first, end, node, values); });
  }
  template <class V>
  static void fill_diagonal(LabelStencilView const& a, V* d) {
    for_nodes(a, 0, a.box.nodes[2],
              [&](std::int64_t row, Node const& node) { d[row] = static_cast<V>(label_rows::entry(a, node, 0, 0, 0)); });
  }

  template <class Label>
  static void residuals(LabelStencilView const& a, Label const* labels, double const* x, double const* x_low, double const* b,
                        double* r) {
    std::int64_t const nx = a.box.nodes[0], ny = a.box.nodes[1], lines = ny * a.box.nodes[2];
#pragma omp parallel for schedule(static)
    for (std::int64_t line = 0; line < lines; ++line) {
      std::int64_t const y = line % ny, z = line / ny;
      bool const alone = box_rows::is_dirichlet_plane(a.box, 1, y) || box_rows::is_dirichlet_plane(a.box, 2, z);
      // Nodes from 2 to before nx - 2 have no neighbour on a face in x.
      for (std::int64_t i = 0; i < nx; ++i)
        if (alone || i < 2 || i >= nx - 2)
          r[line * nx + i] = label_rows::residual_of_row(a, {{i, y, z}}, x, x_low, b[line * nx + i]);
      if (!alone)
        residuals_between(a, labels, y, z, x, x_low, b, r);
    }
  }
  template <class Label>
  static void residuals_between(LabelStencilView const& a, Label const* labels, std::int64_t y, std::int64_t z, double const* x,
                                double const* x_low, double const* b, double* r) {
    constexpr int rows_at_once = 16;
    std::int64_t const nx = a.box.nodes[0], ny = a.box.nodes[1], nz = a.box.nodes[2];
    for (std::int64_t i = 2; i < nx - 2; i += rows_at_once) {
      int const n = static_cast<int>(std::min<std::int64_t>(rows_at_once, nx - 2 - i));
      std::int64_t const row = (z * ny + y) * nx + i;
      cpu::AccurateSums<rows_at_once> sums(n, b + row);
      for (int cell = 0; cell < 8; ++cell) {
        std::int64_t const cx = i - 1 + (cell & 1), cy = y - 1 + (cell >> 1 & 1), cz = z - 1 + (cell >> 2);
        if (cy < 0 || cz < 0 || cy >= ny - 1 || cz >= nz - 1)
          continue;
        Label const* const of_line = labels + (cz * (ny - 1) + cy) * (nx - 1) + cx;
        for (int corner = 0; corner < 8; ++corner) {
          std::int64_t const of_y = cy + (corner >> 1 & 1), of_z = cz + (corner >> 2);
          if (box_rows::is_dirichlet_plane(a.box, 1, of_y) || box_rows::is_dirichlet_plane(a.box, 2, of_z))
            continue;
          double const* const entries = a.entries + (corner ^ (7 - cell));
          auto const factor = [&](int lane) { return -entries[8 * std::int64_t{of_line[lane]}]; };
          std::int64_t const column = (of_z * ny + of_y) * nx + cx + (corner & 1);
          sums.add_products(0, n, factor, x + column);
          if (x_low != nullptr)
            sums.add_products(0, n, factor, x_low + column);
        }
      }
      sums.store_values(n, r + row);
    }
  }
};

}  // namespace

LabelStencilKernels const& LabelStencilKernels::cpu() {
  static CpuLabelStencil const kernels;
  return kernels;
}

}  // namespace poisson
