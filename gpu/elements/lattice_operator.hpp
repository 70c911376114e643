#pragma once

#include "gpu/core/array.hpp"
#include "gpu/core/lattice_layout.hpp"
#include "gpu/formats/kernel_matrix.hpp"
#include "gpu/kernels/lattice_operator.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

namespace poisson {

/// The matrix of elements of order p on a mesh of lattices, matrix-free: six numbers at every Gauss point, and its diagonal. An
/// operator in float, double and double-double.
class LatticeOperator final : public ProductsOfKernels<LatticeOperatorKernels> {
public:
  /// What it consists of, in the context's memory.
  struct Data {
    LatticeArrays lattices;
    StoredEntries tensors;  ///< as LatticeOperatorView says
    Array<std::uint8_t> fixed;
    Array<std::int32_t> mass_faces;
    Array<double> face_mass, diagonal;

    /// Copies the data to `target`, but for the tensors: those of the copy are `with`.
    [[nodiscard]] Data copy_to(Context& target, StoredEntries with) const;
    [[nodiscard]] std::int64_t bytes() const;
  };
  /// Computes the diagonal. `data` is complete but for that; its tensors are in double.
  static std::unique_ptr<LatticeOperator> make(Context& context, Data data);
  std::unique_ptr<Matrix> in_single() const override;
  /// Numbers that `tensors` hold.
  [[nodiscard]] static std::int64_t n_tensor_values(std::int64_t n_cells, std::int32_t order);

  Format format() const override { return Format::matrix_free; }
  std::int64_t bytes() const override { return data_.bytes(); }
  double padding_ratio() const override { return 1; }
  std::int64_t n_rows() const override { return view_.lattices.n_unknowns; }
  std::int64_t n_columns() const override { return data_.diagonal.size(); }
  std::int64_t bytes_read(float) const override { return bytes_of_product(); }
  std::int64_t bytes_read(double) const override { return bytes_of_product(); }
  std::int64_t bytes_read(DoubleDouble) const override { return bytes_of_product(); }

  void diagonal(float* d) const override;
  void diagonal(double* d) const override;
  void diagonal(Pointer<DoubleDouble> d) const override;
  bool residual(double const* x, double const* x_low, double const* b, double* r) const override;

  /// Keeps only the first n unknowns as rows, for the lattices of a rank. Vectors that are read still have entries for all
  /// unknowns.
  void keep_rows(std::int64_t n);
  /// product, or product_dot where `dot` is not null; see LatticeOperatorView::after_cells. T: float, double, DoubleDouble.
  template <class T>
  void multiply(std::function<void()> const& after_cells, T alpha, ConstPointer<T> x, T beta, Pointer<T> y, T* dot,
                std::int32_t const* stop) const {
    LatticeOperatorView view = view_;
    view.after_cells = &after_cells;
    if (dot != nullptr)
      kernels_.product_dot(context(), view, x, y, dot, stop);
    else
      kernels_.product(context(), view, alpha, x, beta, y);
  }
  /// See LatticeOperatorKernels. T as above.
  template <class T>
  void sums_on_rims(std::int64_t first, std::int64_t n, T* out) const {
    kernels_.sums_on_rims(context(), view_, first, n, out);
  }
  [[nodiscard]] std::int64_t n_inner() const { return view_.lattices.n_inner(); }
  /// Replaces the diagonal by `d`, which is in host memory and has an entry for every row of the rank.
  void set_diagonal(std::span<double const> d);

  /// rhs -= A x, where A is the matrix before Dirichlet values were eliminated.
  void subtract_whole_product(double const* x, double* rhs) const;

protected:
  std::unique_ptr<Matrix> copied_to(Context& target) const override;
  /// Entries as straightforward sums over points, the same on both sides of the diagonal.
  CsrMatrix host_csr() const override;

private:
  LatticeOperator(Context& context, Data data);
  [[nodiscard]] std::int64_t bytes_of_product() const { return data_.bytes() - data_.diagonal.bytes(); }

  Data data_;
};

}  // namespace poisson
