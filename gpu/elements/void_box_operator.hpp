#pragma once

#include "gpu/core/array.hpp"
#include "gpu/core/box_problem.hpp"
#include "gpu/core/host_vector.hpp"
#include "gpu/core/vector.hpp"
#include "gpu/elements/label_operator.hpp"
#include "gpu/formats/matrix.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace poisson {

/// The matrix of trilinear elements on the cells of a box that are left where others are void, matrix-free: the labels of all cells
/// and a table of k, in which void has 0. Rows are the nodes of what is left, in their order in the box. Products go by vectors of
/// all nodes of the box, whose entries inside of what is void are 0: 17 bytes of such a node, and 40 of a row, in double.
///
/// `stop` keeps the whole product from being made, but y is written all the same, with an earlier one.
class VoidBoxOperator final : public Matrix {
public:
  /// `box`: of all cells, in which void has k = 0. `k`: kx, ky, kz of its labels, of which the first is void. `nodes`: those of the
  /// rows, ascending; every node of a cell that is not void, and no other.
  VoidBoxOperator(Context& context, std::unique_ptr<LabelOperator> box, std::vector<std::array<double, 3>> k,
                  Array<std::int32_t> nodes);

  [[nodiscard]] std::array<std::int64_t, 3> const& box_nodes() const { return box_->view().box.nodes; }
  [[nodiscard]] std::int64_t n_of_box() const { return box_->n_rows(); }
  /// The matrix of the whole box, where void conducts a little. It is positive definite where this matrix is. The inverse of its
  /// Schur complement in the nodes that are left is nearly that of this matrix, so that a preconditioner of the one serves the
  /// other, with right-hand sides that are 0 at the other nodes. On the host in half_cds, from which levels are made in a third of
  /// the time.
  [[nodiscard]] std::unique_ptr<Matrix> filled() const;
  /// Writes entries of rows to the places of their nodes in the box; other entries of `of_box` stay. And back. 20 bytes a row.
  void spread(double const* of_rows, double* of_box) const;
  void gather(double const* of_box, double* of_rows) const;

  Format format() const override { return Format::matrix_free; }
  MatrixPrecision precision() const override { return MatrixPrecision::double_; }
  std::int64_t bytes() const override { return box_->bytes() + nodes_.bytes(); }
  double padding_ratio() const override { return 1; }
  std::int64_t n_rows() const override { return nodes_.size(); }
  std::int64_t n_columns() const override { return nodes_.size(); }
  std::int64_t bytes_read(float) const override { return bytes_beside_vectors(4); }
  std::int64_t bytes_read(double) const override { return bytes_beside_vectors(8); }
  std::int64_t bytes_read(DoubleDouble) const override { return bytes_beside_vectors(16); }
  using Matrix::bytes_per_product;
  /// Of a product in double, with labels of one byte.
  [[nodiscard]] static std::int64_t bytes_per_product(std::int64_t box_nodes, std::int64_t rows) {
    return 17 * box_nodes + 40 * rows;
  }

  void product(float alpha, float const* x, float beta, float* y) const override;
  void product(double alpha, double const* x, double beta, double* y) const override;
  void product(DoubleDouble alpha, ConstPointer<DoubleDouble> x, DoubleDouble beta, Pointer<DoubleDouble> y) const override;
  void product_dot(float const* x, float* y, float* dot, std::int32_t const* stop) const override;
  void product_dot(double const* x, double* y, double* dot, std::int32_t const* stop) const override;
  void product_dot(ConstPointer<DoubleDouble> x, Pointer<DoubleDouble> y, DoubleDouble* dot,
                   std::int32_t const* stop) const override;
  void diagonal(float* d) const override;
  void diagonal(double* d) const override;
  void diagonal(Pointer<DoubleDouble> d) const override;
  bool residual(double const* x, double const* x_low, double const* b, double* r) const override;

protected:
  std::unique_ptr<Matrix> copied_to(Context& target) const override;
  /// Without entries that are 0.
  CsrMatrix host_csr() const override;

private:
  /// What a product moves besides x and y, with numbers of so many bytes.
  [[nodiscard]] std::int64_t bytes_beside_vectors(std::int64_t number) const {
    return box_->bytes() + 2 * number * n_of_box() + (8 + 2 * number) * n_rows();
  }
  /// Vectors of all nodes of the box; x is 0 where no row is.
  template <class T>
  struct Vectors {
    Vector<T> x, y;
  };
  template <class T>
  [[nodiscard]] Vectors<T>& vectors() const;
  template <class T>
  void multiply(T alpha, ConstPointer<T> x, T beta, Pointer<T> y) const;
  template <class T>
  void multiply_dot(ConstPointer<T> x, Pointer<T> y, T* dot, std::int32_t const* stop) const;
  template <class T>
  void take_diagonal(Pointer<T> d) const;

  std::unique_ptr<LabelOperator> box_;
  std::vector<std::array<double, 3>> k_;
  Array<std::int32_t> nodes_;
  mutable Vectors<float> in_float_;
  mutable Vectors<double> in_double_;
  mutable Vectors<DoubleDouble> in_double_double_;
};

/// The system of such a box. Its right-hand side has what f and Dirichlet values on the sides of the box make of it.
struct VoidBoxSystem {
  std::unique_ptr<VoidBoxOperator> matrix;
  Array<double> rhs;
};
/// Assembles it. `nodes` as above. Preconditions: problem.materials has void, k is constant in each, cells are equal, no face is a
/// Robin one or periodic, some face has Dirichlet values, and f is 0 in void. Throws as BoxSystem does.
[[nodiscard]] VoidBoxSystem make_void_box(Context& context, BoxProblem const& problem, std::span<std::int32_t const> nodes);

}  // namespace poisson
