#pragma once

#include "gpu/core/communicator.hpp"
#include "gpu/core/host_vector.hpp"
#include "gpu/core/rank_lattices.hpp"
#include "gpu/elements/lattice_operator.hpp"
#include "gpu/exchange/halo.hpp"
#include "gpu/formats/matrix.hpp"

#include <cstdint>
#include <memory>

namespace poisson {

/// The matrix-free operator on the lattices of one rank. Vectors that are read have entries for own unknowns and for ghosts
/// (RankLattices). What the lattices here make at ghosts goes to the ranks whose rows these are, which add it to theirs: products
/// are collective. A dot is the part of x . Ax that the lattices here contribute, those of all ranks together are x . Ax.
class OperatorOfRank final : public Matrix {
public:
  /// `lattices`: with all unknowns as rows. `fixed`: of the unknowns on rims, then of ghosts; 1 where there is a Dirichlet value.
  /// `ranks` and the context outlive this. Collective.
  OperatorOfRank(std::unique_ptr<LatticeOperator> lattices, std::shared_ptr<RankLattices const> shared,
                 std::shared_ptr<HostVector<std::uint8_t> const> fixed, Communicator& ranks);
  /// Rounded to single precision. Collective.
  [[nodiscard]] std::unique_ptr<OperatorOfRank> in_single_on_rank() const;
  /// Own rows in host memory; columns are own unknowns, then ghosts. Collective.
  [[nodiscard]] CsrMatrix own_rows() const;

  std::int64_t n_rows() const override { return lattices_->n_rows(); }
  std::int64_t n_columns() const override { return lattices_->n_columns(); }
  MatrixPrecision precision() const override { return lattices_->precision(); }
  Format format() const override { return Format::matrix_free; }
  std::int64_t bytes() const override { return lattices_->bytes(); }
  double padding_ratio() const override { return 1; }
  std::int64_t bytes_read(float zero) const override { return lattices_->bytes_read(zero); }
  std::int64_t bytes_read(double zero) const override { return lattices_->bytes_read(zero); }
  std::int64_t bytes_read(DoubleDouble zero) const override { return lattices_->bytes_read(zero); }

  void product(float alpha, float const* x, float beta, float* y) const override;
  void product(double alpha, double const* x, double beta, double* y) const override;
  void product(DoubleDouble alpha, ConstPointer<DoubleDouble> x, DoubleDouble beta, Pointer<DoubleDouble> y) const override;
  void product_dot(float const* x, float* y, float* dot, std::int32_t const* stop) const override;
  void product_dot(double const* x, double* y, double* dot, std::int32_t const* stop) const override;
  void product_dot(ConstPointer<DoubleDouble> x, Pointer<DoubleDouble> y, DoubleDouble* dot,
                   std::int32_t const* stop) const override;
  void diagonal(float* d) const override { lattices_->diagonal(d); }
  void diagonal(double* d) const override { lattices_->diagonal(d); }
  void diagonal(Pointer<DoubleDouble> d) const override { lattices_->diagonal(d); }
  bool residual(double const* x, double const* x_low, double const* b, double* r) const override;

protected:
  std::unique_ptr<Matrix> copied_to(Context& target) const override;
  CsrMatrix host_csr() const override;

private:
  [[nodiscard]] bool is_fixed(std::int64_t unknown) const {
    std::int64_t const on_rim = unknown - lattices_->n_inner();
    return on_rim >= 0 && (*fixed_)[static_cast<std::size_t>(on_rim)] != 0;
  }
  template <class T>
  Halo<T>& sums() const;
  template <class T>
  void multiply(T alpha, ConstPointer<T> x, T beta, Pointer<T> y, T* dot, std::int32_t const* stop) const;

  std::unique_ptr<LatticeOperator> lattices_;
  std::shared_ptr<RankLattices const> shared_;
  std::shared_ptr<HostVector<std::uint8_t> const> fixed_;
  Communicator& ranks_;
  // In single precision only sums_in_single_ is there, in double precision only the two others. A rank without lattices has all
  // three.
  std::unique_ptr<Halo<float>> sums_in_single_;
  std::unique_ptr<Halo<double>> sums_in_double_;
  std::unique_ptr<Halo<DoubleDouble>> extended_sums_;
};

}  // namespace poisson
