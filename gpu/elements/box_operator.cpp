#include "gpu/elements/box_operator.hpp"

#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/box_stencil_rows.hpp"

#include <cassert>
#include <cmath>

namespace poisson {

BoxOperator::BoxOperator(Context& context, BoxElements const& box, int components, BoxField const& k)
    : ProductsOfKernels(context, {}), components_(components), k_(k) {
  set_stencil(box);
  face_rows_ = Array<double>(context, 27 * view_.n_face_rows);
  kernels_.fill_face_rows(context, box, components, k_, face_rows_.data());
  view_.face_rows = face_rows_.data();
}

BoxOperator::BoxOperator(Context& context, BoxElements const& box, int components, BoxField const& k, Array<double> face_rows)
    : ProductsOfKernels(context, {}), components_(components), k_(k), face_rows_(std::move(face_rows)) {
  set_stencil(box);
  assert(face_rows_.size() == 27 * view_.n_face_rows);
  view_.face_rows = face_rows_.data();
}

void BoxOperator::set_stencil(BoxElements const& box) {
  k_.points = {};
  k_.first_plane = 0;
  view_.box = box;
  // The row of any node that is deep is the stencil.
  BoxElements const cube{{5, 5, 5}, box.cell, {}};
  double entries[14], load = 0;
  if (components_ == 1)
    box_rows::deep_row(cube, box_tables<1>(box.cell), k_, BoxField{}, {{2, 2, 2}}, entries, load);
  else
    box_rows::deep_row(cube, box_tables<3>(box.cell), k_, BoxField{}, {{2, 2, 2}}, entries, load);
  for (int dz = 0; dz < 2; ++dz)
    for (int dy = 0; dy < 2; ++dy)
      for (int dx = 0; dx < 2; ++dx)
        view_.weights[4 * dz + 2 * dy + dx] = entries[9 * dz + 3 * dy + dx];
  view_.n_face_rows = box_rows::Shell(box, 0, box.nodes[2], 1).size();
  // What the faces' data were is in their rows; only the types are looked at from here on.
  for (BoxFace& face : view_.box.faces)
    face.value = face.alpha = nullptr;
}

BoxOperator::BoxOperator(Context& context, BoxOperator const& other)
    : ProductsOfKernels(context, other.view_),
      components_(other.components_),
      k_(other.k_),
      face_rows_(other.face_rows_.copy_to(context)) {
  view_.face_rows = face_rows_.data();
}

std::optional<BoxElements> BoxOperator::coarser(BoxElements const& box, std::array<bool, 3> const& halved) {
  BoxElements result = box;
  for (BoxFace const& face : box.faces)
    if (face.type == BoxFace::Type::robin)
      return std::nullopt;
  for (std::size_t d = 0; d < 3; ++d)
    if (halved[d]) {
      if (box.nodes[d] % 2 == 0 || box.nodes[d] < 5)
        return std::nullopt;
      result.nodes[d] = box.nodes[d] / 2 + 1;
      result.cell[d] *= 2;
    }
  return result;
}

std::unique_ptr<BoxOperator> BoxOperator::coarser(std::array<bool, 3> const& halved) const {
  std::optional<BoxElements> const box = coarser(view_.box, halved);
  return box ? std::make_unique<BoxOperator>(context(), *box, components_, k_) : nullptr;
}

std::span<double const> BoxOperator::face_rows(HostVector<double>& copy) const {
  auto const size = static_cast<std::size_t>(face_rows_.size());
  if (context().backend() == Backend::cpu)
    return {face_rows_.data(), size};
  copy.resize(size);
  face_rows_.download(std::span<double>(copy));
  return copy;
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
  return std::unique_ptr<Matrix>(new BoxOperator(target, *this));
}

CsrMatrix BoxOperator::host_csr() const {
  BoxElements const& box = view_.box;
  std::int64_t const n = n_rows();
  box_rows::Shell const shell(box, 0, box.nodes[2], 1);
  // Calls entry(column, value) for the entries of a row, by ascending column.
  auto const for_row = [&](std::int64_t row, auto const& entry) {
    std::int64_t const x = row % box.nodes[0], y = row / box.nodes[0] % box.nodes[1], z = row / (box.nodes[0] * box.nodes[1]);
    std::int64_t const t = shell.number({{x, y, z}});
    for (int s = 0; s < 27; ++s) {
      std::int64_t const column = row + ((s / 9 - 1) * box.nodes[1] + s / 3 % 3 - 1) * box.nodes[0] + s % 3 - 1;
      if (t >= 0) {
        double const value = view_.face_rows[s * view_.n_face_rows + t];
        if (value != 0 || !std::signbit(value))
          entry(column, value);
      } else if (double const value = box_rows::inner_entry(view_, {{x, y, z}}, s); value != 0 || !std::signbit(value)) {
        entry(column, value);
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
