#pragma once

#include "gpu/core/array.hpp"
#include "gpu/core/communicator.hpp"
#include "gpu/core/lattice_layout.hpp"
#include "gpu/core/shared_lattices.hpp"
#include "gpu/exchange/ghost_sums.hpp"
#include "gpu/formats/added_diagonal.hpp"
#include "gpu/formats/kernel_matrix.hpp"
#include "gpu/kernels/lattice_half_cds.hpp"

#include <cstdint>
#include <memory>

namespace poisson {

/// half_cds on a mesh of lattices of order 1 (LatticeHalfCdsView): 14 values for every node of every lattice. A matrix of the
/// mesh's unknowns, whose entries are sums over the lattices that have both nodes. It is assembled, not converted. Entries in
/// double_double do not exist, as nothing assembles them.
///
/// After share() it has the rows of one rank. Vectors that are read have entries for own unknowns and for ghosts (SharedLattices).
/// What the lattices here make at ghosts goes to the ranks whose rows these are, which add it to theirs: products, smoothers and
/// residuals are collective. A dot is the part of x . Ax that the lattices here contribute, those of all ranks
/// together are x . Ax. It stays in the memory where it was made.
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

  /// Goes on with the rows of one rank. `lattices` are those of this matrix. `ranks` outlives this. Collective. Throws
  /// OutOfMemoryError.
  void share(SharedLattices const& lattices, Communicator& ranks);

  [[nodiscard]] LatticeHalfCdsView const& view() const { return view_; }
  [[nodiscard]] LatticeArrays const& lattices() const { return lattices_; }

  CsrMatrix rows_of_cells() const override;
  /// Collective where it is shared.
  std::unique_ptr<Matrix> in_single() const override;
  Format format() const override { return Format::half_cds; }
  std::int64_t bytes() const override;
  double padding_ratio() const override;
  std::int64_t n_rows() const override { return view_.lattices.n_unknowns; }
  std::int64_t n_columns() const override { return shared_ != nullptr ? shared_->places->n_columns : n_rows(); }
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

private:
  /// What is known of other ranks.
  struct Places {
    std::int64_t n_columns;  ///< own unknowns and ghosts
    HaloPlaces sums;         ///< of ghosts that lattices here have; of own unknowns, numbered among those on rims
    AddedDiagonal diagonal;  ///< what other ranks contribute
  };
  struct Shared {
    Communicator& ranks;
    std::shared_ptr<Places const> places;
    Array<std::int32_t> ghosts;  ///< those of places->sums
    GhostSums sums;
    // What other ranks contribute to the product with x, by own unknown on rims: in single, or in double and double-double.
    Array<float> added_single;
    Array<double> added;
    Vector<DoubleDouble> added_extended;
    SumsOfRanks<float> of_single{};
    SumsOfRanks<double> of_double{};
    SumsOfRanks<DoubleDouble> of_extended{};
  };

  LatticeHalfCds(Context& context, LatticeArrays lattices, StoredEntries entries);

  void set_shared(std::shared_ptr<Places const> places, Communicator& ranks);

  LatticeArrays lattices_;
  StoredEntries entries_;
  std::unique_ptr<Shared> shared_;  ///< null where this has all rows
};

}  // namespace poisson
