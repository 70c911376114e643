#pragma once

#include "gpu/core/array.hpp"
#include "gpu/formats/kernel_matrix.hpp"
#include "gpu/kernels/label_stencil.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace poisson {

/// The matrix of trilinear elements on a box of equal cells from labels of cells and a table of their k, matrix-free: one byte a
/// cell (two with more than 256 labels), whatever k is. An operator in float, double and double-double.
class LabelOperator final : public ProductsOfKernels<LabelStencilKernels> {
public:
  /// `labels`, x fastest and in the context's memory, are less than the number of `k`, which are kx, ky, kz of each label. Of the
  /// faces of `box` only the types count. Preconditions: k >= 0 and finite, two nodes or more per direction, no Robin face; cells
  /// are not graded; one k at least, and not more than the labels of their type can name.
  LabelOperator(Context& context, BoxElements const& box, Array<std::uint8_t> labels, std::span<std::array<double, 3> const> k);
  LabelOperator(Context& context, BoxElements const& box, Array<std::uint16_t> labels, std::span<std::array<double, 3> const> k);

  [[nodiscard]] LabelStencilView const& view() const { return view_; }
  /// The same labels with other k, as many as before; in the same memory.
  [[nodiscard]] std::unique_ptr<LabelOperator> with(std::span<std::array<double, 3> const> k) const;

  Format format() const override { return Format::matrix_free; }
  std::int64_t bytes() const override { return bytes_.bytes() + words_.bytes() + modes_.bytes() + entries_.bytes(); }
  double padding_ratio() const override { return 1; }
  std::int64_t n_rows() const override { return view_.box.n_rows(); }
  std::int64_t n_columns() const override { return view_.box.n_rows(); }
  std::int64_t bytes_read(float) const override { return bytes(); }
  std::int64_t bytes_read(double) const override { return bytes(); }
  std::int64_t bytes_read(DoubleDouble) const override { return bytes(); }

  void diagonal(float* d) const override { kernels_.diagonal(context(), view_, d); }
  void diagonal(double* d) const override { kernels_.diagonal(context(), view_, d); }
  void diagonal(Pointer<DoubleDouble> d) const override;
  bool residual(double const* x, double const* x_low, double const* b, double* r) const override;
  /// The diagonals of half_stencil in the planes first <= z < end of nodes, laid out as HalfCdsView says of these rows alone; -0.0
  /// where nothing is stored, and where a coupling leaves these planes. Precondition: three nodes or more in x and y.
  template <class V>
  void fill_diagonals(std::int64_t first, std::int64_t end, V* values) const {
    kernels_.fill_diagonals(context(), view_, first, end, values);
  }
  /// In all planes.
  template <class V>
  void fill_diagonals(V* values) const {
    fill_diagonals(0, view_.box.nodes[2], values);
  }

protected:
  std::unique_ptr<Matrix> copied_to(Context& target) const override;
  CsrMatrix host_csr() const override;

private:
  LabelOperator(Context& context, LabelOperator const& other);
  void set_tables(BoxElements const& box, std::span<std::array<double, 3> const> k);
  void set_pointers();

  Array<std::uint8_t> bytes_;
  Array<std::uint16_t> words_;
  Array<double> modes_, entries_;
};

}  // namespace poisson
