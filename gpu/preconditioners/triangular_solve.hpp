#pragma once

#include "gpu/core/linear_operator.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/preconditioners/incomplete_lu.hpp"
#include "gpu/preconditioners/preconditioner.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

namespace poisson {

/// z = U^-1 L^-1 r by two triangular solves in the arithmetic T. Preconditions: the factors outlive it, and have no bad pivot.
/// Collective.
template <class T>
class TriangularSolve final : public Preconditioner<T> {
public:
  TriangularSolve(IncompleteLu const& factors, Context& context)
      : context_(context), factors_(factors), work_(context, factors.view().work_size()) {
    if (!factors.is_shared() && work_.size() > 0)  // a rank may have no rows
      kernels().prepare(context, work_.size(), work_.data());
  }
  void apply(ConstPointer<T> r, Pointer<T> z, std::int32_t const* stop) override {
    IluView const& a = factors_.view();
    Pointer<T> const work = work_.data();
    if (!factors_.is_shared()) {
      kernels().solve(context_, a, r, z, work, stop);
      return;
    }
    Pointer<T> const ordered_z = work + a.n_rows;
    for_levels(factors_.lower(), work,
               [&](std::int64_t first, std::int64_t end) { kernels().lower(context_, a, first, end, r, work, stop); });
    for_levels(factors_.upper(), ordered_z,
               [&](std::int64_t first, std::int64_t end) { kernels().upper(context_, a, first, end, work, ordered_z, z, stop); });
  }
  [[nodiscard]] std::int64_t bytes_per_apply() const override { return IluSolveKernels<T>::bytes(factors_.view()); }
  [[nodiscard]] std::int64_t dependent_steps() const override {
    return factors_.view().lower.n_levels + factors_.view().upper.n_levels;
  }

private:
  [[nodiscard]] IluSolveKernels<T> const& kernels() const { return kernels_for<IluSolveKernels<T>>(context_); }
  /// Calls solve(first, end) for levels first ... end - 1, and before it brings what others have of `x`.
  template <class Solve>
  void for_levels(Triangle const& triangle, Pointer<T> x, Solve const& solve) const {
    std::int64_t first = 0;
    for (std::size_t i = 0; i < triangle.exchanges.size(); ++i) {
      solve(first, triangle.exchanged_before[i]);
      first = triangle.exchanged_before[i];
      if constexpr (std::is_same_v<T, double>)
        triangle.exchanges[i]->fill(x);
      else {
        triangle.exchanges[i]->fill(x.hi);
        triangle.exchanges[i]->fill(x.lo);
      }
    }
    solve(first, triangle.schedule.view().n_levels);
  }

  Context& context_;
  IncompleteLu const& factors_;
  Vector<T> work_;
};

/// ic0 and ilu0: incomplete factors, applied by triangular solves. A bad pivot is the setup's failure(). Of a RankMatrix they
/// are made from options.rows_of_rank, else from options.csr: throws InputError when that provides no matrix; OutOfMemoryError.
[[nodiscard]] std::unique_ptr<PreconditionerSetup> make_incomplete_lu(MultiPrecisionOperator const& a,
                                                                      PreconditionerOptions const& options);

}  // namespace poisson
