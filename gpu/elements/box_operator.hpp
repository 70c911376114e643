#pragma once

#include "gpu/core/array.hpp"
#include "gpu/core/host_vector.hpp"
#include "gpu/formats/kernel_matrix.hpp"
#include "gpu/kernels/box_stencil.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

namespace poisson {

/// The matrix of trilinear elements with constant k on a box, matrix-free: a stencil, and the stored rows of nodes on faces, 216
/// bytes each. An operator in float, double and double-double.
class BoxOperator final : public ProductsOfKernels<BoxStencilKernels> {
public:
  /// k is the constant of `k`, or with three components its constants kx, ky, kz; the data of `box` on Robin faces are in the
  /// context's memory, and not needed later. Precondition: three nodes or more in every direction.
  BoxOperator(Context& context, BoxElements const& box, int components, BoxField const& k);

  /// Takes the rows of nodes on faces as they are given, for instance those of a part of a larger box. `face_rows` is laid out as
  /// BoxStencilView::face_rows, in the context's memory. Of the faces of `box` only the types count. `components` and `k` are as in
  /// the other constructor, and so is the precondition.
  BoxOperator(Context& context, BoxElements const& box, int components, BoxField const& k, Array<double> face_rows);

  /// Returns the operator of the same problem with cells twice as long in the directions that are `halved`. Its matrix is P^T A P
  /// with linear interpolation P, because its trial functions are among those of this one. The result is null where that is not
  /// known: with an odd number of cells in such a direction, with fewer than three nodes left, or with a Robin face, whose alpha
  /// may vary.
  [[nodiscard]] std::unique_ptr<BoxOperator> coarser(std::array<bool, 3> const& halved) const;
  /// Returns the coarser box, where there is one.
  [[nodiscard]] static std::optional<BoxElements> coarser(BoxElements const& box, std::array<bool, 3> const& halved);
  [[nodiscard]] BoxStencilView const& view() const { return view_; }
  [[nodiscard]] int components() const { return components_; }
  [[nodiscard]] BoxField const& coefficient() const { return k_; }  ///< its constants
  /// Returns the rows of nodes on faces, laid out as BoxStencilView says, in host memory. They are there already, or are copied to
  /// `copy`.
  [[nodiscard]] std::span<double const> face_rows(HostVector<double>& copy) const;

  Format format() const override { return Format::matrix_free; }
  std::int64_t bytes() const override { return face_rows_.bytes(); }
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
  /// The diagonals of half_stencil, laid out as HalfCdsView says; -0.0 where nothing is stored.
  void fill_diagonals(float* values) const { kernels_.fill_diagonals(context(), view_, values); }
  void fill_diagonals(double* values) const { kernels_.fill_diagonals(context(), view_, values); }

protected:
  std::unique_ptr<Matrix> copied_to(Context& target) const override;
  CsrMatrix host_csr() const override;

private:
  BoxOperator(Context& context, BoxOperator const& other);
  void set_stencil(BoxElements const& box);

  int components_;
  BoxField k_;
  Array<double> face_rows_;
};

}  // namespace poisson
