#pragma once

#include "gpu/core/array.hpp"
#include "gpu/core/communicator.hpp"
#include "gpu/core/context.hpp"
#include "gpu/core/csr_matrix.hpp"
#include "gpu/exchange/halo.hpp"
#include "gpu/kernels/ilu.hpp"
#include "gpu/preconditioners/options.hpp"
#include "gpu/preconditioners/ordering.hpp"

#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <vector>

namespace poisson {

/// A LevelSchedule with its arrays.
class StoredSchedule {
public:
  StoredSchedule() = default;
  /// Every level is filled up to whole groups of `rows_at_once`. Rows with a level below 0 are left out.
  StoredSchedule(RowLevels const& levels, std::int64_t rows_at_once, Context& context);
  [[nodiscard]] LevelSchedule view() const {
    return {rows_.data(), level_ptr_.back(), level_ptr_.data(), std::ssize(level_ptr_) - 1, side_by_side_};
  }

private:
  Array<std::int32_t> rows_;
  std::vector<std::int64_t> level_ptr_;
  bool side_by_side_ = false;
};

/// The factors of an IluView, without its schedules.
class StoredFactors {
public:
  StoredFactors() = default;
  /// Copies of arrays in host memory. `order`: empty, where it is the natural one.
  StoredFactors(std::span<std::int64_t const> row_ptr, std::span<std::int32_t const> columns, std::span<double const> values,
                std::span<std::int64_t const> diagonal, std::span<std::int32_t const> order, Context& context);
  [[nodiscard]] IluView view();

private:
  Array<std::int64_t> row_ptr_, diagonal_;
  Array<std::int32_t> columns_, order_;
  Array<double> values_;
};

/// A triangle of the factors. Its levels are those of the whole triangle, of all ranks.
struct Triangle {
  StoredSchedule schedule;                     ///< of own rows
  std::vector<std::int64_t> exchanged_before;  ///< levels before which ranks exchange what they have; ascending, the same on all
  /// Each exchange belongs to an entry of exchanged_before. It brings what the levels since the exchange before have made.
  std::vector<std::unique_ptr<Halo<double>>> exchanges;
};

/// ILU(0) (Meijerink, van der Vorst 1977): L U agrees with A on the pattern of A, to which the main diagonal is added. For a
/// symmetric A, U = D L^T, so that this is IC(0) without its square roots: one factorisation serves both, and `positive` demands
/// the positive pivots of Cholesky's. The level schedules are made on the host.
///
/// Where several ranks share the rows of A, every rank has its rows of the factors that one rank would have, to the last bit. A
/// rank needs rows of others, so ranks exchange between levels where one of them needs that. By colors of a box that is eight times
/// a triangle; in the natural order of a box it is nearly every level, hundreds of times. The factorisation is then on the host;
/// where no rank needs another it is on the context's backend.
class IncompleteLu {
public:
  /// Before the factorisation, `shift` times the largest |a_ij| of its row is added to every diagonal entry, with that entry's
  /// sign. With the multicolor ordering these are the factors of P A P^T. Preconditions: A is square and finite. Throws
  /// OutOfMemoryError. A bad pivot does not throw: see bad_pivot(). Collective.
  IncompleteLu(NumberedRows const& own, double shift, bool positive, Ordering ordering, Context& context,
               Communicator& ranks = alone());

  /// Bytes in the backend's memory that the factors keep; `reordered`: in another order than the natural one.
  [[nodiscard]] static constexpr std::int64_t bytes(std::int64_t n_rows, std::int64_t nnz, bool reordered) {
    return 12 * nnz + (reordered ? 28 : 24) * n_rows;
  }

  /// The first bad pivot, with the row's number in A; the same on all ranks.
  [[nodiscard]] BadPivot const& bad_pivot() const { return bad_pivot_; }
  /// Whether a row of A has 0 on its diagonal. It is known where there is a bad pivot.
  [[nodiscard]] bool has_zero_on_diagonal() const { return has_zero_on_diagonal_; }
  /// Vectors in the order of the factors have own entries and, among them, entries of others that own rows need. The order of the
  /// view has own rows' numbers on this rank. Precondition: there was no bad pivot.
  [[nodiscard]] IluView const& view() const { return view_; }
  [[nodiscard]] Triangle const& lower() const { return lower_; }
  [[nodiscard]] Triangle const& upper() const { return upper_; }
  /// Whether a rank needs rows of others; the same on all ranks.
  [[nodiscard]] bool is_shared() const { return is_shared_; }
  [[nodiscard]] Ordering ordering() const { return ordering_; }
  [[nodiscard]] std::int64_t levels() const { return view_.lower.n_levels; }

private:
  Ordering ordering_ = Ordering::natural;
  bool is_shared_ = false, has_zero_on_diagonal_ = false;
  StoredFactors factors_;
  Triangle lower_, upper_;
  IluView view_;
  BadPivot bad_pivot_;
};

}  // namespace poisson
