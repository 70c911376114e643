#pragma once

#include "gpu/core/array.hpp"
#include "gpu/core/context.hpp"
#include "gpu/core/csr_matrix.hpp"
#include "gpu/kernels/ilu.hpp"
#include "gpu/preconditioners/options.hpp"

#include <cstdint>
#include <vector>

namespace poisson {

/// L U = A on the pattern of A and its main diagonal: ILU(0) (Meijerink, van der Vorst 1977). On a symmetric matrix U = D L^T, and
/// this is IC(0) with its square roots left out: both are one factorisation here, and `positive` asks for what makes it Cholesky's.
/// Levels of rows are found on the host; the numbers are computed where they will be used.
class IncompleteLu {
public:
  /// `shift` times the largest entry of its row is added to every diagonal entry first, away from 0. With the multicolor ordering
  /// these are factors of P A P^T. Preconditions: a is square and finite. Throws OutOfMemoryError.
  IncompleteLu(CsrMatrix const& a, double shift, bool positive, Ordering ordering, Context& context);

  /// Bytes that the factors take for good, with or without an order of their own.
  [[nodiscard]] static constexpr std::int64_t bytes(std::int64_t n_rows, std::int64_t nnz, bool reordered) {
    return 12 * nnz + (reordered ? 28 : 24) * n_rows;
  }

  /// With the row as it is numbered in A.
  [[nodiscard]] BadPivot const& bad_pivot() const { return bad_pivot_; }
  /// Precondition: there was no bad pivot.
  [[nodiscard]] IluView const& view() const { return view_; }
  [[nodiscard]] Ordering ordering() const { return order_.size() > 0 ? Ordering::multicolor : Ordering::natural; }
  [[nodiscard]] std::int64_t levels() const { return view_.lower.n_levels; }

private:
  struct Schedule {
    Array<std::int32_t> rows;
    std::vector<std::int64_t> level_ptr;
  };
  static LevelSchedule make_schedule(CsrMatrix const& a, bool upper, std::int64_t rows_at_once, Context& context,
                                     Schedule& schedule);

  Array<std::int64_t> row_ptr_, diagonal_;
  Array<std::int32_t> columns_, order_;
  Array<double> values_;
  Schedule lower_, upper_;
  IluView view_;
  BadPivot bad_pivot_;
};

}  // namespace poisson
