#pragma once

#include "gpu/core/lattice_layout.hpp"
#include "gpu/formats/kernel_matrix.hpp"
#include "gpu/kernels/lattice_half_cds.hpp"

namespace poisson {

/// half_cds on a mesh of lattices of order 1 (LatticeHalfCdsView): 14 values for every node of every lattice. A matrix of the
/// mesh's unknowns, whose entries are sums over the lattices that have both nodes. It is assembled, not converted. Entries in
/// double_double do not exist, as nothing assembles them.
class LatticeHalfCds final : public ProductsOfKernels<LatticeHalfCdsKernels> {
public:
  /// Estimates a matrix on lattices (MatrixShape::n_lattices > 0). It takes 14 values for each of their nodes, and the tables of
  /// their rims. Refused when that is more than CSR takes.
  static FormatEstimate estimate(MatrixShape const& shape, FormatOptions const& options);
  /// Makes the matrix from the values that an assembly has filled in. They are in the context's memory, laid out as
  /// LatticeHalfCdsView says. `precision` is double_, or single, to which values are rounded; that takes 12 bytes a value
  /// meanwhile.
  static std::unique_ptr<Matrix> from_diagonals(Context& context, LatticeArrays lattices, Array<double> values,
                                                MatrixPrecision precision = MatrixPrecision::double_);

  /// Makes the matrix from values in single, laid out in the same way.
  static std::unique_ptr<Matrix> from_diagonals(Context& context, LatticeArrays lattices, Array<float> values);

  /// See LatticeArrays.
  void keep_rows(std::int64_t n, bool read_others);

  [[nodiscard]] LatticeHalfCdsView const& view() const { return view_; }
  [[nodiscard]] LatticeArrays const& lattices() const { return lattices_; }

  std::unique_ptr<Matrix> in_single() const override;
  Format format() const override { return Format::half_cds; }
  std::int64_t bytes() const override { return entries_.bytes() + lattices_.bytes(); }
  double padding_ratio() const override;
  std::int64_t n_rows() const override { return view_.lattices.n_unknowns; }
  std::int64_t n_columns() const override { return view_.lattices.n_unknowns; }
  std::int64_t bytes_read(float) const override { return bytes(); }
  std::int64_t bytes_read(double) const override { return bytes(); }
  std::int64_t bytes_read(DoubleDouble) const override { return bytes(); }

  void diagonal(float* d) const override;
  void diagonal(double* d) const override { kernels_.diagonal(context(), view_, d, nullptr); }
  void diagonal(Pointer<DoubleDouble> d) const override { kernels_.diagonal(context(), view_, d.hi, d.lo); }
  bool residual(double const* x, double const* x_low, double const* b, double* r) const override;

protected:
  std::unique_ptr<Matrix> copied_to(Context& target) const override;
  /// Entries are summed in DoubleDouble and rounded, so that both triangles are the same.
  CsrMatrix host_csr() const override;

private:
  LatticeHalfCds(Context& context, LatticeArrays lattices, StoredEntries entries);

  LatticeArrays lattices_;
  StoredEntries entries_;
};

}  // namespace poisson
