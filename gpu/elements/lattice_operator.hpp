#pragma once

#include "gpu/core/array.hpp"
#include "gpu/core/communicator.hpp"
#include "gpu/core/host_vector.hpp"
#include "gpu/core/lattice_layout.hpp"
#include "gpu/core/shared_lattices.hpp"
#include "gpu/exchange/ghost_sums.hpp"
#include "gpu/formats/kernel_matrix.hpp"
#include "gpu/kernels/lattice_operator.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <span>

namespace poisson {

/// The matrix of elements of order p on a mesh of lattices, matrix-free: six numbers at every Gauss point, on a box k alone, and
/// its diagonal. An operator in float, double and double-double.
///
/// After share() it has the rows of one rank. Vectors that are read have entries for own unknowns and for ghosts (SharedLattices).
/// What the lattices here make at ghosts goes to the ranks whose rows these are, which add it to theirs: products and residuals are
/// collective. A dot is the part of x . Ax that the lattices here contribute, those of all ranks together are x . Ax. It stays in
/// the memory where it was made.
class LatticeOperator final : public ProductsOfKernels<LatticeOperatorKernels> {
public:
  /// What it consists of, in the context's memory.
  struct Data {
    LatticeArrays lattices;
    StoredEntries tensors;                 ///< as LatticeOperatorView says
    CoefficientPlaces of_k{};              ///< on a box: where k is in `tensors`
    std::array<Array<double>, 3> edges{};  ///< on a box, of the cells in every direction
    Array<std::uint8_t> fixed;
    Array<std::int32_t> mass_faces;
    Array<double> face_mass, diagonal;

    /// Copies the data to `target`, but for the tensors: those of the copy are `with`.
    [[nodiscard]] Data copy_to(Context& target, StoredEntries with) const;
    [[nodiscard]] std::int64_t bytes() const;
  };
  /// Computes the diagonal. `data` is complete but for that; its tensors are in double.
  static std::unique_ptr<LatticeOperator> make(Context& context, Data data);
  /// Goes on with the rows of one rank. `lattices` are those of this operator. `fixed` has an entry for each of the unknowns on
  /// rims, then for each ghost: 1 where there is a Dirichlet value. `diagonal`, in the context's memory, has that of own rows,
  /// with what all ranks contribute. `ranks` outlives this. Collective.
  void share(std::shared_ptr<SharedLattices const> lattices, std::shared_ptr<HostVector<std::uint8_t> const> fixed,
             Array<double> const& diagonal, Communicator& ranks);
  CsrMatrix rows_of_cells() const override;
  /// Collective where it is shared.
  std::unique_ptr<Matrix> in_single() const override;
  /// Numbers that `tensors` hold, elsewhere than on a box.
  [[nodiscard]] static std::int64_t n_tensor_values(std::int64_t n_cells, std::int32_t order);

  Format format() const override { return Format::matrix_free; }
  std::int64_t bytes() const override { return data_.bytes(); }
  double padding_ratio() const override { return 1; }
  std::int64_t n_rows() const override { return view_.lattices.n_unknowns; }
  std::int64_t n_columns() const override { return data_.diagonal.size(); }
  std::int64_t bytes_read(float) const override { return bytes_of_product(); }
  std::int64_t bytes_read(double) const override { return bytes_of_product(); }
  std::int64_t bytes_read(DoubleDouble) const override { return bytes_of_product(); }

  void product(float alpha, float const* x, float beta, float* y) const override {
    multiply<float>(alpha, x, beta, y, nullptr, nullptr);
  }
  void product(double alpha, double const* x, double beta, double* y) const override {
    multiply<double>(alpha, x, beta, y, nullptr, nullptr);
  }
  void product(DoubleDouble alpha, ConstPointer<DoubleDouble> x, DoubleDouble beta, Pointer<DoubleDouble> y) const override {
    multiply<DoubleDouble>(alpha, x, beta, y, nullptr, nullptr);
  }
  void product_dot(float const* x, float* y, float* dot, std::int32_t const* stop) const override {
    multiply<float>(1, x, 0, y, dot, stop);
  }
  void product_dot(double const* x, double* y, double* dot, std::int32_t const* stop) const override {
    multiply<double>(1, x, 0, y, dot, stop);
  }
  void product_dot(ConstPointer<DoubleDouble> x, Pointer<DoubleDouble> y, DoubleDouble* dot,
                   std::int32_t const* stop) const override {
    multiply<DoubleDouble>(1, x, 0, y, dot, stop);
  }
  void diagonal(float* d) const override;
  void diagonal(double* d) const override;
  void diagonal(Pointer<DoubleDouble> d) const override;
  bool residual(double const* x, double const* x_low, double const* b, double* r) const override;

  /// rhs -= A x, where A is the matrix before Dirichlet values were eliminated.
  void subtract_whole_product(double const* x, double* rhs) const;

protected:
  std::unique_ptr<Matrix> copied_to(Context& target) const override;
  /// Entries as straightforward sums over points, the same on both sides of the diagonal.
  CsrMatrix host_csr() const override;

private:
  /// What there is of other ranks.
  struct Shared {
    std::shared_ptr<SharedLattices const> lattices;
    std::shared_ptr<HostVector<std::uint8_t> const> fixed;
    Communicator& ranks;
    GhostSums sums;
  };

  LatticeOperator(Context& context, Data data);
  /// Keeps only the first n unknowns as rows. Vectors that are read still have entries for all unknowns.
  void keep_rows(std::int64_t n);
  void set_shared(std::shared_ptr<SharedLattices const> lattices, std::shared_ptr<HostVector<std::uint8_t> const> fixed,
                  Communicator& ranks);
  /// product, or product_dot where `dot` is not null. T: float, double, DoubleDouble.
  template <class T>
  void multiply(T alpha, ConstPointer<T> x, T beta, Pointer<T> y, T* dot, std::int32_t const* stop) const;
  /// Replaces what residual() made in rows on rims, which other ranks add to.
  void set_residual_on_rims(double const* b, double* r) const;
  [[nodiscard]] std::int64_t bytes_of_product() const { return data_.bytes() - data_.diagonal.bytes(); }

  Data data_;
  std::unique_ptr<Shared> shared_;  ///< null where this has all rows
};

}  // namespace poisson
