#include "gpu/elements/box_operator.hpp"

#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/box_stencil_rows.hpp"
#include "gpu/kernels/conversion.hpp"

#include <numeric>

namespace poisson {

BoxOperator::BoxOperator(Context& context, BoxStencilView const& view, Array<double> face_rows)
    : Matrix(context), kernels_(kernels_for<BoxStencilKernels>(context)), view_(view), face_rows_(std::move(face_rows)) {
  view_.face_rows = face_rows_.data();
  view_.n_face_rows = face_rows_.size() / 27;
  // What the faces' data were is in their rows; only the types are looked at from here on.
  for (BoxFace& face : view_.box.faces)
    face.value = face.alpha = nullptr;
}

void BoxOperator::diagonal(float* d) const {
  Array<double> wide(context(), n_rows());
  diagonal(wide.data());
  kernels_for<ConversionKernels>(context()).round(context(), n_rows(), wide.data(), d);
}

void BoxOperator::diagonal(Pointer<DoubleDouble> d) const {
  diagonal(d.hi);
  context().set_zero(d.lo, 8 * n_rows());
}

bool BoxOperator::residual(double const* x, double const* x_low, double const* b, double* r) const {
  kernels_.residual(context(), view_, x, x_low, b, r);
  return true;
}

std::unique_ptr<Matrix> BoxOperator::copied_to(Context& target) const {
  return std::make_unique<BoxOperator>(target, view_, face_rows_.copy_to(target));
}

CsrMatrix BoxOperator::host_csr() const {
  BoxElements const& box = view_.box;
  std::int64_t const n = n_rows();
  HostVector<std::int32_t> face_row_of(static_cast<std::size_t>(n));
  std::fill(face_row_of.begin(), face_row_of.end(), -1);
  box_rows::Shell const shell(box, 0, box.nodes[2], 1);
  for (std::int64_t t = 0; t < view_.n_face_rows; ++t)
    face_row_of[static_cast<std::size_t>(box_rows::index_of(box, shell(t)))] = static_cast<std::int32_t>(t);
  // Calls entry(column, value) for the entries of a row, by ascending column.
  auto const for_row = [&](std::int64_t row, auto const& entry) {
    std::int64_t const x = row % box.nodes[0], y = row / box.nodes[0] % box.nodes[1], z = row / (box.nodes[0] * box.nodes[1]);
    std::int32_t const t = face_row_of[static_cast<std::size_t>(row)];
    for (int s = 0; s < 27; ++s) {
      std::int64_t const column = row + ((s / 9 - 1) * box.nodes[1] + s / 3 % 3 - 1) * box.nodes[0] + s % 3 - 1;
      if (t >= 0) {
        double const value = view_.face_rows[s * view_.n_face_rows + t];
        if (value != 0 || !std::signbit(value))
          entry(column, value);
      } else if (s == 13 ||
                 !(box_rows::is_dirichlet_plane(box, 0, x + s % 3 - 1) || box_rows::is_dirichlet_plane(box, 1, y + s / 3 % 3 - 1) ||
                   box_rows::is_dirichlet_plane(box, 2, z + s / 9 - 1))) {
        entry(column, box_rows::stencil_entry(view_, s));
      }
    }
  };
  CsrMatrix result;
  result.n_rows = result.n_columns = n;
  result.row_ptr.resize(static_cast<std::size_t>(n) + 1);
  result.row_ptr[0] = 0;
  for (std::int64_t row = 0; row < n; ++row) {
    std::int64_t length = 0;
    for_row(row, [&](std::int64_t, double) { ++length; });
    result.row_ptr[static_cast<std::size_t>(row) + 1] = result.row_ptr[static_cast<std::size_t>(row)] + length;
  }
  result.columns.resize(static_cast<std::size_t>(result.row_ptr.back()));
  result.values.resize(static_cast<std::size_t>(result.row_ptr.back()));
  for (std::int64_t row = 0; row < n; ++row) {
    auto e = static_cast<std::size_t>(result.row_ptr[static_cast<std::size_t>(row)]);
    for_row(row, [&](std::int64_t column, double value) {
      result.columns[e] = static_cast<std::int32_t>(column);
      result.values[e++] = value;
    });
  }
  return result;
}

}  // namespace poisson
