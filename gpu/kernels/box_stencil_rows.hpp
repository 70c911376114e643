#pragma once

#include "gpu/kernels/box_element_rows.hpp"
#include "gpu/kernels/box_stencil.hpp"
#include "gpu/kernels/check.hpp"
#include "gpu/kernels/half_cds.hpp"

/// What both backends do row by row for BoxStencilKernels.
namespace poisson::box_rows {

/// Sums of vectors of float are in double.
template <class T>
struct SumOf {
  using Type = T;
};
template <>
struct SumOf<float> {
  using Type = double;
};
template <class T>
using Sum = typename SumOf<T>::Type;

[[nodiscard]] inline POISSON_HOST_DEVICE double wide(float v) {
  return static_cast<double>(v);
}
[[nodiscard]] inline POISSON_HOST_DEVICE double wide(double v) {
  return v;
}
[[nodiscard]] inline POISSON_HOST_DEVICE DoubleDouble wide(DoubleDouble v) {
  return v;
}

/// Row t of the face rows, which is that of `node`. A Dirichlet node has a diagonal entry only.
template <class T>
[[nodiscard]] inline POISSON_HOST_DEVICE Sum<T> face_row_product(BoxStencilView const& a, std::int64_t t, Node const& node,
                                                                 ConstPointer<T> x) {
  std::int64_t const row = index_of(a.box, node);
  Sum<T> sum = 0;
  for (int d = 0; d < 3; ++d)
    if (is_dirichlet_plane(a.box, d, node.i[d])) {
      sum = sum + a.face_rows[13 * a.n_face_rows + t] * wide(load(x, row));
      return sum;
    }
  for (int s = 0; s < 27; ++s) {
    double const entry = a.face_rows[s * a.n_face_rows + t];
    if (entry == 0)
      continue;
    std::int64_t const column = row + ((s / 9 - 1) * a.box.nodes[1] + s / 3 % 3 - 1) * a.box.nodes[0] + s % 3 - 1;
    sum = sum + entry * wide(load(x, column));
  }
  return sum;
}

/// The stencil by the |differences| of two nodes.
[[nodiscard]] inline POISSON_HOST_DEVICE double stencil_entry(BoxStencilView const& a, int s) {
  int const dx = s % 3 - 1, dy = s / 3 % 3 - 1, dz = s / 9 - 1;
  return a.weights[4 * (dz != 0 ? 1 : 0) + 2 * (dy != 0 ? 1 : 0) + (dx != 0 ? 1 : 0)];
}

/// Entry k of half_stencil in the row of a node that is on no face; -0.0 where it couples to a Dirichlet node.
[[nodiscard]] inline POISSON_HOST_DEVICE double inner_diagonal(BoxStencilView const& a, Node const& node, int k) {
  if (k > 0 && (is_dirichlet_plane(a.box, 0, node.i[0] - half_stencil::dx(k)) ||
                is_dirichlet_plane(a.box, 1, node.i[1] - half_stencil::dy(k)) ||
                is_dirichlet_plane(a.box, 2, node.i[2] - half_stencil::dz(k))))
    return -0.0;
  return stencil_entry(a, 13 - k);
}

/// b - A (x + x_low) in the row of a node that is on no face.
[[nodiscard]] inline POISSON_HOST_DEVICE double inner_residual(BoxStencilView const& a, Node const& node, double const* x,
                                                               double const* x_low, double b) {
  AccurateSum sum(b);
  for (int s = 0; s < 27; ++s) {
    Node const other{{node.i[0] + s % 3 - 1, node.i[1] + s / 3 % 3 - 1, node.i[2] + s / 9 - 1}};
    if (s != 13 && (is_dirichlet_plane(a.box, 0, other.i[0]) || is_dirichlet_plane(a.box, 1, other.i[1]) ||
                    is_dirichlet_plane(a.box, 2, other.i[2])))
      continue;
    std::int64_t const column = index_of(a.box, other);
    sum.add_product(-stencil_entry(a, s), x[column]);
    if (x_low != nullptr)
      sum.add_product(-stencil_entry(a, s), x_low[column]);
  }
  return sum.value();
}
[[nodiscard]] inline POISSON_HOST_DEVICE double face_residual(BoxStencilView const& a, std::int64_t t, std::int64_t row,
                                                              double const* x, double const* x_low, double b) {
  AccurateSum sum(b);
  for (int s = 0; s < 27; ++s) {
    double const entry = a.face_rows[s * a.n_face_rows + t];
    if (entry == 0)
      continue;
    std::int64_t const column = row + ((s / 9 - 1) * a.box.nodes[1] + s / 3 % 3 - 1) * a.box.nodes[0] + s % 3 - 1;
    sum.add_product(-entry, x[column]);
    if (x_low != nullptr)
      sum.add_product(-entry, x_low[column]);
  }
  return sum.value();
}

/// Entry s of that row; -0.0 where it couples to a Dirichlet node.
[[nodiscard]] inline POISSON_HOST_DEVICE double inner_entry(BoxStencilView const& a, Node const& node, int s) {
  if (s != 13 && (is_dirichlet_plane(a.box, 0, node.i[0] + s % 3 - 1) || is_dirichlet_plane(a.box, 1, node.i[1] + s / 3 % 3 - 1) ||
                  is_dirichlet_plane(a.box, 2, node.i[2] + s / 9 - 1)))
    return -0.0;
  return stencil_entry(a, s);
}

[[nodiscard]] inline POISSON_HOST_DEVICE bool on_face(BoxElements const& box, Node const& node) {
  bool found = false;
  for (int d = 0; d < 3; ++d)
    found = found || node.i[d] == 0 || node.i[d] == box.nodes[d] - 1;
  return found;
}

}  // namespace poisson::box_rows
