#pragma once

#include "gpu/core/array.hpp"
#include "gpu/core/communicator.hpp"
#include "gpu/core/linear_operator.hpp"
#include "gpu/core/rank_rows.hpp"
#include "gpu/core/shared_lattices.hpp"
#include "gpu/core/vector.hpp"
#include "gpu/exchange/halo.hpp"
#include "gpu/formats/added_diagonal.hpp"
#include "gpu/formats/csr.hpp"
#include "gpu/formats/matrix.hpp"
#include "gpu/formats/stored_rim.hpp"

#include <memory>
#include <span>

namespace poisson {

/// The rows of this rank of a square matrix whose other rows are on other ranks: n_rows and n_columns are those of this rank, and
/// x, y and b hold its entries only. Own rows among themselves are a block in any format; few rows on the rim are coupled with
/// entries of other ranks. A product sends the rim's x, multiplies the block while that is under way, and adds the couplings.
/// Products are collective, and so is the constructor. A dot is that of this rank's rows.
///
/// In a box that repeats itself, rows beside one of its faces are coupled with own rows at the opposite face: these are
/// own_columns(). So a rank without others may have such a matrix, too.
///
/// On a mesh of lattices the block takes x with ghosts, and is all of the rank's rows: half_cds (LatticeHalfCds::share) or
/// matrix-free (LatticeOperator::share).
class RankMatrix final : public MultiPrecisionOperator {
public:
  /// `local`: rows.local in any format; rows.local itself is not needed. The context of `local`, and `ranks`, outlive this.
  RankMatrix(std::unique_ptr<Matrix> local, SplitRows const& rows, std::vector<RankNeighbor> const& neighbors, Communicator& ranks);
  /// Takes a rim that was made where `local` is.
  RankMatrix(std::unique_ptr<Matrix> local, StoredRim rim, std::vector<RankNeighbor> const& neighbors, Communicator& ranks);
  /// `local` is shared by the ranks that have these lattices.
  RankMatrix(std::unique_ptr<Matrix> local, std::shared_ptr<SharedLattices const> lattices, Communicator& ranks);

  std::int64_t n_rows() const override { return local_->n_rows(); }
  std::int64_t n_columns() const override { return local_->n_rows(); }
  std::int64_t bytes_read(double) const override { return bytes_of(double()); }
  std::int64_t bytes_read(DoubleDouble) const override { return bytes_of(DoubleDouble()); }
  void product(double alpha, double const* x, double beta, double* y) const override;
  void product(DoubleDouble alpha, ConstPointer<DoubleDouble> x, DoubleDouble beta, Pointer<DoubleDouble> y) const override;
  void product_dot(double const* x, double* y, double* dot, std::int32_t const* stop) const override;
  void product_dot(ConstPointer<DoubleDouble> x, Pointer<DoubleDouble> y, DoubleDouble* dot,
                   std::int32_t const* stop) const override;
  /// Without neighbours the block multiplies all columns in one pass.
  void product_dots(std::span<ProductColumn<double> const> columns) const override;
  void diagonal(double* d) const override { add_up_diagonal<double>(d); }
  void diagonal(Pointer<DoubleDouble> d) const override { add_up_diagonal<DoubleDouble>(d); }
  Context& context() const override { return local_->context(); }
  std::int64_t first_row_not_finite() const override { return row_not_finite_; }

  [[nodiscard]] Matrix const& local() const { return *local_; }
  /// Returns own rows of lattices in host memory; columns are own unknowns, then ghosts. Precondition: lattices(). Collective.
  [[nodiscard]] CsrMatrix rows_of_lattices() const;
  [[nodiscard]] Communicator& ranks() const { return ranks_; }
  [[nodiscard]] std::vector<RankNeighbor> const& neighbors() const { return neighbors_; }
  /// Returns the couplings of the rows on the rim, by rows, in host memory. Their columns are the ghosts, and then own_columns().
  [[nodiscard]] CsrMatrix couplings() const { return stored_couplings().to_csr(); }
  [[nodiscard]] std::vector<std::int32_t> const& own_columns() const { return rim_.own_columns; }
  [[nodiscard]] SharedLattices const* lattices() const { return lattices_.get(); }
  [[nodiscard]] HostVector<std::int32_t> rim() const;
  /// stored_couplings() and stored_rim() are the couplings and the rim in the backend's memory. Entries are in the precision of
  /// local().
  [[nodiscard]] Csr const& stored_couplings() const { return *rim_.couplings; }
  [[nodiscard]] std::int32_t const* stored_rim() const { return rim_.rows.data(); }
  [[nodiscard]] BlockRim const& formulas_of_rim() const { return rim_.formulas; }  ///< of a rim that was made where `local` is
  /// Counts the bytes of the block, the couplings and the rim, without the buffers of messages.
  [[nodiscard]] std::int64_t bytes() const { return local_->bytes() + bytes_of_rim(); }
  /// Returns own entries with those of the ghosts, and then those of own_columns(), as couplings have them. Collective.
  [[nodiscard]] Array<double> with_columns(Array<double> const& own) const;
  /// Entries that come from other ranks in a product.
  [[nodiscard]] std::int64_t n_ghosts() const { return stored_couplings().n_columns() - std::ssize(rim_.own_columns); }

private:
  RankMatrix(std::unique_ptr<Matrix>&& local, StoredRim rim, std::vector<RankNeighbor> const& neighbors, Communicator& ranks,
             std::shared_ptr<SharedLattices const> lattices);
  [[nodiscard]] std::int64_t bytes_of_rim() const { return stored_couplings().bytes() + rim_.rows.bytes(); }
  template <class T>
  std::int64_t bytes_of(T zero) const {
    return local_->bytes_read(zero) + stored_couplings().bytes_read(zero) + rim_.rows.bytes();
  }
  template <class T>
  Halo<T>& halo() const;
  /// x with its ghosts, for a block that takes them. Collective.
  template <class T>
  ConstPointer<T> with_ghosts(ConstPointer<T> x) const;
  template <class T>
  Vector<T>& whole_x() const;
  template <class T>
  void multiply(T alpha, ConstPointer<T> x, T beta, Pointer<T> y) const;
  template <class T>
  void multiply_dot(ConstPointer<T> x, Pointer<T> y, T* dot, std::int32_t const* stop) const;

  template <class T>
  void add_up_diagonal(Pointer<T> d) const;

  std::unique_ptr<Matrix> local_;
  Communicator& ranks_;
  std::vector<RankNeighbor> neighbors_;
  std::shared_ptr<SharedLattices const> lattices_;
  StoredRim rim_;
  AddedDiagonal added_diagonal_;  ///< of the couplings with own columns

  mutable Halo<double> halo_;
  mutable Halo<DoubleDouble> extended_halo_;
  mutable Vector<double> whole_x_;
  mutable Vector<DoubleDouble> extended_whole_x_;
  std::int64_t row_not_finite_ = -1;
};

}  // namespace poisson
