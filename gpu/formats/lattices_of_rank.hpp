#pragma once

#include "gpu/core/array.hpp"
#include "gpu/formats/added_diagonal.hpp"
#include "gpu/formats/csr.hpp"
#include "gpu/formats/lattice_half_cds.hpp"
#include "gpu/formats/matrix.hpp"

#include <cstdint>
#include <memory>

namespace poisson {

/// A level of multigrid on the lattices of one rank: half_cds on them, and in CSR what other ranks' lattices add to own rows.
/// Columns are own unknowns, then others that x has entries of, too. Entries are in double or single, and so are vectors. A dot is
/// the part of x . Ax that the lattices here contribute, those of all ranks together are x . Ax.
class LatticesOfRank final : public Matrix {
public:
  /// `added`: a row for each own unknown on rims, in the precision of `lattices`, of which the first n_rows unknowns are own ones.
  LatticesOfRank(std::unique_ptr<LatticeHalfCds> lattices, std::int64_t n_rows, std::unique_ptr<Matrix> added,
                 AddedDiagonal added_diagonal);

  [[nodiscard]] LatticeHalfCds const& lattices() const { return *lattices_; }

  std::int64_t n_rows() const override { return lattices_->n_rows(); }
  std::int64_t n_columns() const override { return added_->n_columns(); }
  MatrixPrecision precision() const override { return lattices_->precision(); }
  Format format() const override { return Format::half_cds; }
  std::int64_t bytes() const override { return lattices_->bytes() + added_->bytes(); }
  double padding_ratio() const override { return lattices_->padding_ratio(); }
  std::int64_t bytes_read(float) const override { return bytes(); }
  std::int64_t bytes_read(double) const override { return bytes(); }
  std::int64_t bytes_read(DoubleDouble) const override { return bytes(); }

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
  bool smooth(SmoothingStep<float> const& step, float const* x, std::int32_t const* stop) const override;
  bool smooth(SmoothingStep<double> const& step, double const* x, std::int32_t const* stop) const override;
  bool subtract_product(float const* b, float const* x, float* r, std::int32_t const* stop) const override;
  bool subtract_product(double const* b, double const* x, double* r, std::int32_t const* stop) const override;

protected:
  std::unique_ptr<Matrix> copied_to(Context& target) const override;
  CsrMatrix host_csr() const override;

private:
  /// Returns the view of the lattices for a product with x, with what is added to the rims of A x.
  [[nodiscard]] LatticeHalfCdsView view_for(float const* x) const;
  [[nodiscard]] LatticeHalfCdsView view_for(double const* x) const;

  std::unique_ptr<LatticeHalfCds> lattices_;
  std::unique_ptr<Matrix> added_;
  AddedDiagonal added_diagonal_;
  LatticeHalfCdsKernels const& kernels_;
  mutable Array<float> sums_single_;
  mutable Array<double> sums_;
};

}  // namespace poisson
