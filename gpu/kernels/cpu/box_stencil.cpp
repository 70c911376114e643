#include "gpu/kernels/box_stencil.hpp"

#include "gpu/kernels/box_stencil_rows.hpp"
#include "gpu/kernels/cpu/cpu.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace poisson {

namespace {

using box_rows::Node;
using box_rows::Sum;

/// Products of inner rows, line by line: nine lines of x become four (the row's own, the sums of those that differ from it in y, in
/// z, and in both), whose neighbours in x complete the stencil.
template <class T, class S = Sum<T>>
class LineProducts {
public:
  LineProducts(BoxStencilView const& a, ConstPointer<T> x) : a_(a), x_(x) {
    for (auto& line : lines_)
      line.resize(static_cast<std::size_t>(a.box.nodes[0]));
  }

  /// row(i, (A x)_i) for the inner nodes of a line; i counts all nodes.
  template <class Row>
  void operator()(std::int64_t y, std::int64_t z, Row const& row) {
    BoxElements const& box = a_.box;
    std::int64_t const nx = box.nodes[0];
    gather(lines_[0], {{y, z}});
    gather(lines_[1], {{y - 1, z}, {y + 1, z}});
    gather(lines_[2], {{y, z - 1}, {y, z + 1}});
    gather(lines_[3], {{y - 1, z - 1}, {y + 1, z - 1}, {y - 1, z + 1}, {y + 1, z + 1}});
    std::conditional_t<std::is_same_v<S, float>, float, double> w[8];
    for (int k = 0; k < 8; ++k)
      w[k] = static_cast<std::remove_reference_t<decltype(w[0])>>(a_.weights[k]);
    std::int64_t const first = (z * box.nodes[1] + y) * nx;
    S const *const l0 = lines_[0].data(), *const l1 = lines_[1].data(), *const l2 = lines_[2].data(), *const l3 = lines_[3].data();
    for (std::int64_t i = 1; i + 1 < nx; ++i)
      row(first + i, w[0] * l0[i] + w[1] * (l0[i - 1] + l0[i + 1]) + (w[2] * l1[i] + w[3] * (l1[i - 1] + l1[i + 1])) +
                         (w[4] * l2[i] + w[5] * (l2[i - 1] + l2[i + 1])) + (w[6] * l3[i] + w[7] * (l3[i - 1] + l3[i + 1])));
  }

private:
  struct Place {
    std::int64_t y, z;
  };
  void gather(std::vector<S>& sum, std::initializer_list<Place> places) {
    BoxElements const& box = a_.box;
    std::int64_t const nx = box.nodes[0];
    bool begun = false;
    for (Place const& place : places) {
      if (box_rows::is_dirichlet_plane(box, 1, place.y) || box_rows::is_dirichlet_plane(box, 2, place.z))
        continue;
      std::int64_t const first = (place.z * box.nodes[1] + place.y) * nx;
      if (begun)
        for (std::int64_t i = 0; i < nx; ++i)
          sum[static_cast<std::size_t>(i)] = sum[static_cast<std::size_t>(i)] + static_cast<S>(load(x_, first + i));
      else
        for (std::int64_t i = 0; i < nx; ++i)
          sum[static_cast<std::size_t>(i)] = static_cast<S>(load(x_, first + i));
      begun = true;
    }
    if (!begun)
      std::fill(sum.begin(), sum.end(), S(0));
    if (box_rows::is_dirichlet_plane(box, 0, 0))
      sum.front() = 0;
    if (box_rows::is_dirichlet_plane(box, 0, nx - 1))
      sum.back() = 0;
  }

  BoxStencilView const& a_;
  ConstPointer<T> x_;
  std::vector<S> lines_[4];
};

/// Parts that threads work on: inner lines, then blocks of the rows on faces.
[[nodiscard]] std::int64_t n_parts(BoxStencilView const& a) {
  return (a.box.nodes[1] - 2) * (a.box.nodes[2] - 2) + cpu::n_blocks(a.n_face_rows);
}
/// Calls row(part, i, (A x)_i) for all rows; those of a part by one thread, in order.
template <class T, class Row>
void for_rows(BoxStencilView const& a, ConstPointer<T> x, Row const& row) {
  std::int64_t const ny = a.box.nodes[1] - 2, lines = ny * (a.box.nodes[2] - 2), parts = n_parts(a);
#pragma omp parallel if (27 * a.box.n_rows() * cpu::work_of <T> >= cpu::work_worth_threads)
  {
    LineProducts<T> line_products(a, x);
    box_rows::Shell const shell(a.box, 0, a.box.nodes[2], 1);
#pragma omp for schedule(static)
    for (std::int64_t part = 0; part < parts; ++part)
      if (part < lines)
        line_products(1 + part % ny, 1 + part / ny, [&](std::int64_t i, Sum<T> value) { row(part, i, value); });
      else
        for (std::int64_t t = (part - lines) * cpu::block_rows; t < std::min(a.n_face_rows, (part - lines + 1) * cpu::block_rows);
             ++t) {
          std::int64_t const i = box_rows::index_of(a.box, shell(t));
          row(part, i, box_rows::face_row_product<T>(a, t, shell(t), x));
        }
  }
}

/// Calls row(i, (A x)_i) for all rows, without parts, by sums in V.
template <class V, class Row>
void for_rows_in_lines(BoxStencilView const& a, V const* x, Row const& row) {
  std::int64_t const ny = a.box.nodes[1] - 2, lines = ny * (a.box.nodes[2] - 2), parts = n_parts(a);
#pragma omp parallel if (27 * a.box.n_rows() >= cpu::work_worth_threads)
  {
    LineProducts<V, V> line_products(a, x);
    box_rows::Shell const shell(a.box, 0, a.box.nodes[2], 1);
    std::vector<V> y(static_cast<std::size_t>(a.box.nodes[0]));
#pragma omp for schedule(static)
    for (std::int64_t part = 0; part < parts; ++part)
      if (part < lines) {
        std::int64_t const j = 1 + part % ny, k = 1 + part / ny, first = (k * a.box.nodes[1] + j) * a.box.nodes[0];
        V* const of_line = y.data();
        line_products(j, k, [&](std::int64_t i, V value) { of_line[i - first] = value; });
#pragma omp simd
        for (std::int64_t i = 1; i < a.box.nodes[0] - 1; ++i)
          row(first + i, of_line[i]);
      } else
        for (std::int64_t t = (part - lines) * cpu::block_rows; t < std::min(a.n_face_rows, (part - lines + 1) * cpu::block_rows);
             ++t)
          row(box_rows::index_of(a.box, shell(t)), static_cast<V>(box_rows::face_row_product<V>(a, t, shell(t), x)));
  }
}

template <class T>
void multiply(BoxStencilView const& a, T alpha, ConstPointer<T> x, T beta, Pointer<T> y) {
  for_rows<T>(a, x, [&](std::int64_t, std::int64_t i, Sum<T> value) {
    Sum<T> const scaled = box_rows::wide(alpha) * value;
    store(y, i, beta == T(0) ? static_cast<T>(scaled) : static_cast<T>(scaled + box_rows::wide(beta) * box_rows::wide(load(y, i))));
  });
}

template <class T>
void multiply_dot(Context& context, BoxStencilView const& a, ConstPointer<T> x, Pointer<T> y, T* dot, std::int32_t const* stop) {
  if (*stop != 0)
    return;
  std::int64_t const parts = n_parts(a);
  auto* const sums = static_cast<cpu::CpuContext&>(context).partial_sums<DotSum<T>>(parts);
  std::fill_n(sums, parts, DotSum<T>{});
  for_rows<T>(a, x, [&](std::int64_t part, std::int64_t i, Sum<T> value) {
    T const rounded = static_cast<T>(value);
    store(y, i, rounded);
    sums[part].add(load(x, i), rounded);
  });
  DotSum<T> sum{};
  for (std::int64_t part = 0; part < parts; ++part)
    sum.add(sums[part]);
  *dot = sum.value();
}

class CpuBoxStencil final : public BoxStencilKernels {
public:
  void product(Context&, BoxStencilView const& a, float alpha, float const* x, float beta, float* y) const override {
    multiply<float>(a, alpha, x, beta, y);
  }
  void product(Context&, BoxStencilView const& a, double alpha, double const* x, double beta, double* y) const override {
    multiply<double>(a, alpha, x, beta, y);
  }
  void product(Context&, BoxStencilView const& a, DoubleDouble alpha, ConstPointer<DoubleDouble> x, DoubleDouble beta,
               Pointer<DoubleDouble> y) const override {
    multiply<DoubleDouble>(a, alpha, x, beta, y);
  }
  void product_dot(Context& context, BoxStencilView const& a, float const* x, float* y, float* dot,
                   std::int32_t const* stop) const override {
    multiply_dot<float>(context, a, x, y, dot, stop);
  }
  void product_dot(Context& context, BoxStencilView const& a, double const* x, double* y, double* dot,
                   std::int32_t const* stop) const override {
    multiply_dot<double>(context, a, x, y, dot, stop);
  }
  void product_dot(Context& context, BoxStencilView const& a, ConstPointer<DoubleDouble> x, Pointer<DoubleDouble> y,
                   DoubleDouble* dot, std::int32_t const* stop) const override {
    multiply_dot<DoubleDouble>(context, a, x, y, dot, stop);
  }

  void fill_face_rows(Context&, BoxElements const& box, int components, BoxField const& k, double* rows) const override {
    box_rows::Shell const shell(box, 0, box.nodes[2], 1);
    std::int64_t const n = shell.size();
    auto const fill = [&](auto const& tables) {
#pragma omp parallel for schedule(static) if (n * 500 >= cpu::work_worth_threads)
      for (std::int64_t t = 0; t < n; ++t) {
        double entries[27], load = 0;
        box_rows::any_row(box, tables, k, BoxField{}, shell(t), entries, load);
        for (int s = 0; s < 27; ++s)
          rows[s * n + t] = entries[s];
      }
    };
    if (components == 1)
      fill(box_tables<1>(box.cell));
    else
      fill(box_tables<3>(box.cell));
  }

  void smooth(Context&, BoxStencilView const& a, SmoothingStep<float> const& step, float const* x,
              std::int32_t const* stop) const override {
    take_steps(a, step, x, stop);
  }
  void smooth(Context&, BoxStencilView const& a, SmoothingStep<double> const& step, double const* x,
              std::int32_t const* stop) const override {
    take_steps(a, step, x, stop);
  }
  void subtract_product(Context&, BoxStencilView const& a, float const* b, float const* x, float* r,
                        std::int32_t const* stop) const override {
    rest(a, b, x, r, stop);
  }
  void subtract_product(Context&, BoxStencilView const& a, double const* b, double const* x, double* r,
                        std::int32_t const* stop) const override {
    rest(a, b, x, r, stop);
  }
  void fill_diagonals(Context&, BoxStencilView const& a, float* values) const override {
    fill(a, values);
  }
  void fill_diagonals(Context&, BoxStencilView const& a, double* values) const override {
    fill(a, values);
  }

  void diagonal(Context&, BoxStencilView const& a, float* d) const override {
    fill_diagonal(a, d);
  }
  void diagonal(Context&, BoxStencilView const& a, double* d) const override {
    fill_diagonal(a, d);
  }

  void residual(Context&, BoxStencilView const& a, double const* x, double const* x_low, double const* b,
                double* r) const override {
    std::int64_t const lines = a.box.nodes[1] * a.box.nodes[2];
#pragma omp parallel for schedule(static)
    for (std::int64_t line = 0; line < lines; ++line)
      for (std::int64_t i = 0; i < a.box.nodes[0]; ++i) {
        Node const node{{i, line % a.box.nodes[1], line / a.box.nodes[1]}};
        std::int64_t const row = box_rows::index_of(a.box, node);
        if (!box_rows::on_face(a.box, node))
          r[row] = box_rows::inner_residual(a, node, x, x_low, b[row]);
      }
    box_rows::Shell const shell(a.box, 0, a.box.nodes[2], 1);
#pragma omp parallel for schedule(static)
    for (std::int64_t t = 0; t < a.n_face_rows; ++t) {
      std::int64_t const row = box_rows::index_of(a.box, shell(t));
      r[row] = box_rows::face_residual(a, t, row, x, x_low, b[row]);
    }
  }

private:
  template <class V>
  static void fill_diagonal(BoxStencilView const& a, V* d) {
    std::int64_t const n = a.box.n_rows();
#pragma omp parallel for schedule(static) if (n >= cpu::work_worth_threads)
    for (std::int64_t i = 0; i < n; ++i)
      d[i] = static_cast<V>(a.weights[0]);
    box_rows::Shell const shell(a.box, 0, a.box.nodes[2], 1);
    for (std::int64_t t = 0; t < a.n_face_rows; ++t)
      d[box_rows::index_of(a.box, shell(t))] = static_cast<V>(a.face_rows[13 * a.n_face_rows + t]);
  }
  template <class V>
  static void take_steps(BoxStencilView const& a, SmoothingStep<V> const& step, V const* x, std::int32_t const* stop) {
    if (*stop == 0)
      for_rows_in_lines(a, x, [=](std::int64_t i, V y) { take_step(step, i, y, x[i]); });
  }
  template <class V>
  static void rest(BoxStencilView const& a, V const* b, V const* x, V* r, std::int32_t const* stop) {
    if (*stop == 0)
      for_rows_in_lines(a, x, [=](std::int64_t i, V y) { r[i] = b[i] - y; });
  }
  template <class V>
  static void fill(BoxStencilView const& a, V* values) {
    std::int64_t const n = a.box.n_rows(), lines = a.box.nodes[1] * a.box.nodes[2];
#pragma omp parallel for schedule(static)
    for (std::int64_t line = 0; line < lines; ++line) {
      std::int64_t const nx = a.box.nodes[0], j = line % a.box.nodes[1], z = line / a.box.nodes[1];
      if (j == 0 || z == 0 || j == a.box.nodes[1] - 1 || z == a.box.nodes[2] - 1)
        continue;
      for (int k = 0; k < half_stencil::diagonals; ++k) {
        V* const of_line = values + k * n + line * nx;
        for (std::int64_t const i : {std::int64_t{1}, nx - 2})
          of_line[i] = static_cast<V>(box_rows::inner_diagonal(a, {{i, j, z}}, k));
        if (nx > 4)  // those between are alike
          std::fill(of_line + 2, of_line + nx - 2, static_cast<V>(box_rows::inner_diagonal(a, {{2, j, z}}, k)));
      }
    }
    box_rows::Shell const shell(a.box, 0, a.box.nodes[2], 1);
#pragma omp parallel for schedule(static)
    for (std::int64_t t = 0; t < a.n_face_rows; ++t)
      for (int k = 0; k < half_stencil::diagonals; ++k)
        values[k * n + box_rows::index_of(a.box, shell(t))] = static_cast<V>(a.face_rows[(13 - k) * a.n_face_rows + t]);
  }
};

}  // namespace

BoxStencilKernels const& BoxStencilKernels::cpu() {
  static CpuBoxStencil const kernels;
  return kernels;
}

}  // namespace poisson
