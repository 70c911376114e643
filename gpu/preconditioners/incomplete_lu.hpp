#pragma once

#include "gpu/core/array.hpp"
#include "gpu/core/context.hpp"
#include "gpu/core/csr_matrix.hpp"
#include "gpu/kernels/ilu.hpp"
#include "gpu/preconditioners/options.hpp"
#include "gpu/preconditioners/ordering.hpp"

#include <cstdint>
#include <iterator>
#include <optional>
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
  [[nodiscard]] bool has_order() const { return order_.size() > 0; }

private:
  Array<std::int64_t> row_ptr_, diagonal_;
  Array<std::int32_t> columns_, order_;
  Array<double> values_;
};

/// a with the diagonal entries that it does not store, as zeros; null where it stores all. It may have more columns than rows.
[[nodiscard]] std::optional<CsrMatrix> with_diagonal(CsrMatrix const& a);
/// Place of the diagonal entry in a row, or of the first entry after it.
[[nodiscard]] std::int64_t place_of_diagonal(CsrMatrix const& a, std::int64_t row);
/// What a shift adds to the diagonal entry of a row with these entries: see IncompleteLu.
[[nodiscard]] double shift_of(std::span<double const> row, double diagonal, double shift);
/// Whether the multicolor order is taken: where it is asked for or, with `automatic`, a solve in the natural order has many waits
/// one after another, and many more than there are colors.
[[nodiscard]] bool wants_colors(Ordering ordering, std::int64_t waits, std::int64_t n_colors);
/// Threads that share a row of a solve: see IluView.
[[nodiscard]] int threads_for_rows(std::int64_t n_rows, std::int64_t nnz, bool level_launches);

/// ILU(0) (Meijerink, van der Vorst 1977): L U agrees with A on the pattern of A, to which the main diagonal is added. For a
/// symmetric A, U = D L^T, so that this is IC(0) without its square roots: one factorisation serves both, and `positive` demands
/// the positive pivots of Cholesky's. The level schedules are made on the host, the factors on the context's backend.
class IncompleteLu {
public:
  /// Before the factorisation, `shift` times the largest |a_ij| of its row is added to every diagonal entry, with that entry's
  /// sign. With the multicolor ordering these are the factors of P A P^T. Preconditions: `a` is square and finite. Throws
  /// OutOfMemoryError. A bad pivot does not throw: see bad_pivot().
  IncompleteLu(CsrMatrix const& a, double shift, bool positive, Ordering ordering, Context& context);

  /// Bytes in the backend's memory that the factors keep; `reordered`: in another order than the natural one.
  [[nodiscard]] static constexpr std::int64_t bytes(std::int64_t n_rows, std::int64_t nnz, bool reordered) {
    return 12 * nnz + (reordered ? 28 : 24) * n_rows;
  }

  /// The first bad pivot, with the row's number in A.
  [[nodiscard]] BadPivot const& bad_pivot() const { return bad_pivot_; }
  /// Precondition: there was no bad pivot.
  [[nodiscard]] IluView const& view() const { return view_; }
  [[nodiscard]] Ordering ordering() const { return factors_.has_order() ? Ordering::multicolor : Ordering::natural; }
  [[nodiscard]] std::int64_t levels() const { return view_.lower.n_levels; }

private:
  StoredFactors factors_;
  StoredSchedule lower_, upper_;
  IluView view_;
  BadPivot bad_pivot_;
};

}  // namespace poisson
