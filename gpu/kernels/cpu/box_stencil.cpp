#include "gpu/kernels/box_stencil.hpp"

#include "gpu/kernels/box_stencil_rows.hpp"
#include "gpu/kernels/check.hpp"
#include "gpu/kernels/cpu/accurate_sums.hpp"
#include "gpu/kernels/cpu/cpu.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace poisson {

namespace {

using box_rows::Node;

/// Products of inner rows, line by line: nine lines of x become four (the row's own, the sums of those that differ from it in y, in
/// z, and in both), whose neighbours in x complete the stencil.
template <class T, class S = box_rows::Sum<T>>
class LineProducts {
public:
  LineProducts(BoxStencilView const& a, ConstPointer<T> x) : a_(a), x_(x) {
    for (auto& line : lines_)
      line.resize(static_cast<std::size_t>(a.box.nodes[0]));
    values_.resize(static_cast<std::size_t>(a.box.nodes[0]));
  }
  /// Room for the products of a line.
  [[nodiscard]] S* values() { return values_.data(); }

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
  std::vector<S> lines_[4], values_;
};

/// Calls run(t, node, n) for the face rows from `first` to before `end`, some at a time: the nodes of rows t ... t + n - 1 follow
/// each other in x, from `node` on.
template <class Run>
void for_runs(box_rows::Shell const& shell, std::int64_t first, std::int64_t end, Run const& run) {
  for (std::int64_t t = first, n = 1; t < end; t += n) {
    Node const node = shell(t);
    bool const along_face = node.i[1] == 0 || node.i[1] == shell.nodes[1] - 1 || node.i[2] == 0 || node.i[2] == shell.nodes[2] - 1;
    n = along_face ? std::min(end - t, shell.nodes[0] - node.i[0]) : 1;
    run(t, node, n);
  }
}

/// sums[i] = (A x) in face row t + i, for the n rows of a run.
template <class T>
void product_of_run(BoxStencilView const& a, std::int64_t t, Node const& node, std::int64_t n, ConstPointer<T> x,
                    box_rows::Sum<T>* sums) {
  if (n == 1) {
    *sums = box_rows::face_row_product<T>(a, t, node, x);
    return;
  }
  BoxElements const& box = a.box;
  std::int64_t const first = box_rows::index_of(box, node), nx = box.nodes[0];
  auto const take_diagonal = [&](std::int64_t i) {
    sums[i] = box_rows::Sum<T>(0) + a.face_rows[13 * a.n_face_rows + t + i] * box_rows::wide(load(x, first + i));
  };
  if (box_rows::is_dirichlet_plane(box, 1, node.i[1]) || box_rows::is_dirichlet_plane(box, 2, node.i[2])) {
    for (std::int64_t i = 0; i < n; ++i)
      take_diagonal(i);
    return;
  }
  std::fill_n(sums, n, box_rows::Sum<T>(0));
  for (int s = 0; s < 27; ++s) {
    std::int64_t const dx = s % 3 - 1, y = node.i[1] + s / 3 % 3 - 1, z = node.i[2] + s / 9 - 1;
    if (y < 0 || z < 0 || y >= box.nodes[1] || z >= box.nodes[2])
      continue;
    std::int64_t const begin = node.i[0] + dx < 0 ? 1 : 0, end = node.i[0] + n + dx > nx ? n - 1 : n;
    double const* const entries = a.face_rows + s * a.n_face_rows + t;
    ConstPointer<T> const of_line = x + ((z * box.nodes[1] + y) * nx + node.i[0] + dx);
#pragma omp simd
    for (std::int64_t i = begin; i < end; ++i)
      sums[i] = sums[i] + entries[i] * box_rows::wide(load(of_line, i));
  }
  for (std::int64_t const i : {std::int64_t{0}, n - 1})
    if (box_rows::is_dirichlet_plane(box, 0, node.i[0] + i))
      take_diagonal(i);
}

/// Parts that threads work on: inner lines, then blocks of the rows on faces.
[[nodiscard]] std::int64_t n_parts(BoxStencilView const& a) {
  return (a.box.nodes[1] - 2) * (a.box.nodes[2] - 2) + cpu::n_blocks(a.n_face_rows);
}
/// Calls in_line(line, part, y, z) for the inner lines, with the LineProducts of a thread, and of_run(part, i, values, n) with the
/// products in rows i ... i + n - 1 on faces. What belongs to a part is called by one thread, in order.
template <class T, class S, class InLine, class OfRun>
void for_parts(BoxStencilView const& a, ConstPointer<T> x, bool threaded, InLine const& in_line, OfRun const& of_run) {
  std::int64_t const ny = a.box.nodes[1] - 2, lines = ny * (a.box.nodes[2] - 2), parts = n_parts(a);
#pragma omp parallel if (threaded)
  {
    LineProducts<T, S> line_products(a, x);
    std::vector<box_rows::Sum<T>> of_faces(static_cast<std::size_t>(a.box.nodes[0]));
    box_rows::Shell const shell(a.box, 0, a.box.nodes[2], 1);
#pragma omp for schedule(static)
    for (std::int64_t part = 0; part < parts; ++part)
      if (part < lines) {
        in_line(line_products, part, 1 + part % ny, 1 + part / ny);
      } else {
        std::int64_t const first = (part - lines) * cpu::block_rows;
        for_runs(shell, first, std::min(a.n_face_rows, first + cpu::block_rows),
                 [&](std::int64_t t, Node const& node, std::int64_t n) {
                   product_of_run<T>(a, t, node, n, x, of_faces.data());
                   of_run(part, box_rows::index_of(a.box, node), of_faces.data(), n);
                 });
      }
  }
}
/// Calls row(part, i, (A x)_i) for all rows; those of a part by one thread, in order.
template <class T, class Row>
void for_rows(BoxStencilView const& a, ConstPointer<T> x, Row const& row) {
  for_parts<T, box_rows::Sum<T>>(
      a, x, 27 * a.box.n_rows() * cpu::work_of<T> >= cpu::work_worth_threads,
      [&](auto& products, std::int64_t part, std::int64_t y, std::int64_t z) {
        products(y, z, [&](std::int64_t i, box_rows::Sum<T> value) { row(part, i, value); });
      },
      [&](std::int64_t part, std::int64_t first, box_rows::Sum<T> const* values, std::int64_t n) {
        for (std::int64_t i = 0; i < n; ++i)
          row(part, first + i, values[i]);
      });
}

/// Calls row(i, (A x)_i) for all rows, without parts, by sums in V.
template <class V, class Row>
void for_rows_in_lines(BoxStencilView const& a, V const* x, Row const& row) {
  std::int64_t const nx = a.box.nodes[0];
  for_parts<V, V>(
      a, x, 27 * a.box.n_rows() >= cpu::work_worth_threads,
      [&](auto& products, std::int64_t, std::int64_t y, std::int64_t z) {
        V* const of_line = products.values();
        std::int64_t const first = (z * a.box.nodes[1] + y) * nx;
        products(y, z, [&](std::int64_t i, V value) { of_line[i - first] = value; });
#pragma omp simd
        for (std::int64_t i = 1; i < nx - 1; ++i)
          row(first + i, of_line[i]);
      },
      [&](std::int64_t, std::int64_t first, box_rows::Sum<V> const* values, std::int64_t n) {
#pragma omp simd
        for (std::int64_t i = 0; i < n; ++i)
          row(first + i, static_cast<V>(values[i]));
      });
}

template <class T>
void multiply(BoxStencilView const& a, T alpha, ConstPointer<T> x, T beta, Pointer<T> y) {
  for_rows<T>(a, x, [&](std::int64_t, std::int64_t i, box_rows::Sum<T> value) {
    box_rows::Sum<T> const scaled = box_rows::wide(alpha) * value;
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
  for_rows<T>(a, x, [&](std::int64_t part, std::int64_t i, box_rows::Sum<T> value) {
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
    if (components == 1)
      fill_rows(box, box_tables<1>(box.cell), k, rows);
    else
      fill_rows(box, box_tables<3>(box.cell), k, rows);
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
  void fill_diagonals(Context&, BoxStencilView const& a, float* values) const override { fill(a, values); }
  void fill_diagonals(Context&, BoxStencilView const& a, double* values) const override { fill(a, values); }

  void diagonal(Context&, BoxStencilView const& a, float* d) const override { fill_diagonal(a, d); }
  void diagonal(Context&, BoxStencilView const& a, double* d) const override { fill_diagonal(a, d); }

  void residual(Context&, BoxStencilView const& a, double const* x, double const* x_low, double const* b,
                double* r) const override {
    std::int64_t const lines = a.box.nodes[1] * a.box.nodes[2];
#pragma omp parallel for schedule(static)
    for (std::int64_t line = 0; line < lines; ++line) {
      std::int64_t const nx = a.box.nodes[0], y = line % a.box.nodes[1], z = line / a.box.nodes[1];
      if (box_rows::on_face(a.box, {{1, y, z}}))
        continue;
      for (std::int64_t const i : {std::int64_t{1}, nx - 2}) {
        std::int64_t const row = line * nx + i;
        r[row] = box_rows::inner_residual(a, {{i, y, z}}, x, x_low, b[row]);
      }
      residual_between(a, {{2, y, z}}, nx - 2, x, x_low, b, r);
    }
    box_rows::Shell const shell(a.box, 0, a.box.nodes[2], 1);
#pragma omp parallel for schedule(static)
    for (std::int64_t t = 0; t < a.n_face_rows; ++t) {
      std::int64_t const row = box_rows::index_of(a.box, shell(t));
      r[row] = box_rows::face_residual(a, t, row, x, x_low, b[row]);
    }
  }

private:
  /// A node's place between two faces, as far as a row of constants depends on it: on the lower face, beside it, between, beside
  /// the upper face, on it.
  static constexpr int n_places = 5;
  static int place_between(std::int64_t i, std::int64_t n) {
    return static_cast<int>(i < 2 ? i : i >= n - 2 ? n_places - (n - i) : 2);
  }

  template <class Tables>
  static void fill_rows(BoxElements const& box, Tables const& tables, BoxField const& k, double* rows) {
    box_rows::Shell const shell(box, 0, box.nodes[2], 1);
    std::int64_t const n = shell.size();
    auto const make_row = [&](Node const& node, double(&entries)[27]) {
      double load = 0;
      box_rows::any_row(box, tables, k, BoxField{}, node, entries, load);
    };
    if (std::any_of(std::begin(box.faces), std::end(box.faces), [](BoxFace const& face) { return face.alpha != nullptr; })) {
#pragma omp parallel for schedule(static) if (n * 500 >= cpu::work_worth_threads)
      for (std::int64_t t = 0; t < n; ++t) {
        double entries[27];
        make_row(shell(t), entries);
        for (int s = 0; s < 27; ++s)
          rows[s * n + t] = entries[s];
      }
      return;
    }
    // Rows of nodes at such places are alike: one of each is made.
    std::vector<double> alike(std::size_t{27} * n_places * n_places * n_places);  // [z place][y place][entry][x place]
    for (int z = 0; z < n_places; ++z)
      for (int y = 0; y < n_places; ++y)
        for (int x = 0; x < n_places; ++x) {
          Node node{{x, y, z}};
          for (int d = 0; d < 3; ++d)
            if (node.i[d] > 2)
              node.i[d] += box.nodes[d] - n_places;
          double entries[27];
          make_row(node, entries);
          for (int s = 0; s < 27; ++s)
            alike[static_cast<std::size_t>((((z * n_places + y) * 27) + s) * n_places + x)] = entries[s];
        }
    std::vector<int> places;
    for (std::int64_t i = 0; i < box.nodes[0]; ++i)
      places.push_back(place_between(i, box.nodes[0]));
    cpu::for_blocks(n, 27 * n, [&](std::int64_t begin, std::int64_t end, std::int64_t) {
      for_runs(shell, begin, end, [&](std::int64_t t, Node const& node, std::int64_t count) {
        int const line = place_between(node.i[2], box.nodes[2]) * n_places + place_between(node.i[1], box.nodes[1]);
        int const* const of_run = places.data() + node.i[0];
        for (int s = 0; s < 27; ++s)
          for (std::int64_t i = 0; i < count; ++i)
            rows[s * n + t + i] = alike[static_cast<std::size_t>((line * 27 + s) * n_places + of_run[i])];
      });
    });
  }

  /// The residuals of inner rows i of a line, first <= i < end, where no neighbour in x is on a face.
  static void residual_between(BoxStencilView const& a, Node node, std::int64_t end, double const* x, double const* x_low,
                               double const* b, double* r) {
    constexpr int rows_at_once = 16;
    for (; node.i[0] < end; node.i[0] += rows_at_once) {
      std::int64_t const row = box_rows::index_of(a.box, node);
      int const n = static_cast<int>(std::min<std::int64_t>(rows_at_once, end - node.i[0]));
      cpu::AccurateSums<rows_at_once> sums(n, b + row);
      for (int s = 0; s < 27; ++s) {
        std::int64_t const y = node.i[1] + s / 3 % 3 - 1, z = node.i[2] + s / 9 - 1;
        if (box_rows::is_dirichlet_plane(a.box, 1, y) || box_rows::is_dirichlet_plane(a.box, 2, z))
          continue;
        std::int64_t const column = (z * a.box.nodes[1] + y) * a.box.nodes[0] + node.i[0] + s % 3 - 1;
        auto const factor = [entry = -box_rows::stencil_entry(a, s)](int) { return entry; };
        sums.add_products(0, n, factor, x + column);
        if (x_low != nullptr)
          sums.add_products(0, n, factor, x_low + column);
      }
      sums.store_values(n, r + row);
    }
  }

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
