#pragma once

#include "gpu/core/lattice_layout.hpp"
#include "gpu/formats/added_diagonal.hpp"
#include "gpu/formats/csr.hpp"
#include "gpu/formats/kernel_matrix.hpp"
#include "gpu/kernels/lattice_half_cds.hpp"

#include <cstdint>
#include <memory>

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

  /// Keeps the rows of one rank; see LatticeArrays.
  void keep_rows(std::int64_t n, bool read_others);
  /// Keeps the first n unknowns as rows, and adds to them what the lattices of other ranks have there. `rows` has a row for each of
  /// these n that is on a rim. Its columns, and those of the matrix from now on, are the n unknowns, then others that x has entries
  /// of, too. From now on products are in the precision of the matrix, and a dot is the part of x . Ax that the lattices here
  /// contribute; those of all ranks together are x . Ax. There is no residual().
  void add_rows(std::int64_t n, std::shared_ptr<CsrMatrix const> const& rows);

  [[nodiscard]] LatticeHalfCdsView const& view() const { return view_; }
  [[nodiscard]] LatticeArrays const& lattices() const { return lattices_; }

  std::unique_ptr<Matrix> in_single() const override;
  Format format() const override { return Format::half_cds; }
  std::int64_t bytes() const override { return entries_.bytes() + lattices_.bytes() + (added_ != nullptr ? added_->bytes() : 0); }
  double padding_ratio() const override;
  std::int64_t n_rows() const override { return view_.lattices.n_unknowns; }
  std::int64_t n_columns() const override { return added_ != nullptr ? added_->n_columns() : n_rows(); }
  std::int64_t bytes_read(float) const override { return bytes(); }
  std::int64_t bytes_read(double) const override { return bytes(); }
  std::int64_t bytes_read(DoubleDouble) const override { return bytes(); }

  void diagonal(float* d) const override;
  void diagonal(double* d) const override;
  void diagonal(Pointer<DoubleDouble> d) const override;
  bool residual(double const* x, double const* x_low, double const* b, double* r) const override;

protected:
  std::unique_ptr<Matrix> copied_to(Context& target) const override;
  /// Entries are summed in DoubleDouble and rounded, so that both triangles are the same.
  CsrMatrix host_csr() const override;
  void fill_added(float const* x) const override;
  void fill_added(double const* x) const override;
  void fill_added(ConstPointer<DoubleDouble> x) const override;

private:
  LatticeHalfCds(Context& context, LatticeArrays lattices, StoredEntries entries);

  /// Takes `rows` as what add_rows() adds.
  void set_added(std::unique_ptr<Csr> rows, AddedDiagonal diagonal);

  LatticeArrays lattices_;
  StoredEntries entries_;
  // What other ranks' lattices add: null, and empty, where there is none.
  std::unique_ptr<Csr> added_;
  AddedDiagonal added_diagonal_;
  mutable Array<float> sums_single_;  ///< its product with x, by unknown on rims; in single, or in double
  mutable Array<double> sums_;
};

}  // namespace poisson
