#pragma once

#include "gpu/core/array.hpp"
#include "gpu/core/context.hpp"
#include "gpu/core/csr_matrix.hpp"
#include "gpu/kernels/ilu.hpp"
#include "gpu/preconditioners/options.hpp"

#include <cstdint>
#include <vector>

namespace poisson {

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
