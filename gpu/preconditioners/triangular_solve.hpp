#pragma once

#include "gpu/core/linear_operator.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/preconditioners/incomplete_lu.hpp"
#include "gpu/preconditioners/preconditioner.hpp"

#include <cstdint>

namespace poisson {

/// z = U^-1 L^-1 r by two triangular solves in the arithmetic T. Preconditions: the factors outlive it, and have no bad pivot.
template <class T>
class TriangularSolve final : public Preconditioner<T> {
public:
  TriangularSolve(IncompleteLu const& factors, Context& context)
      : context_(context), factors_(factors), work_(context, factors.view().work_size()) {
    kernels().prepare(context, work_.size(), work_.data());
  }
  void apply(ConstPointer<T> r, Pointer<T> z, std::int32_t const* stop) override {
    kernels().solve(context_, factors_.view(), r, z, work_.data(), stop);
  }
  [[nodiscard]] std::int64_t bytes_per_apply() const override { return IluSolveKernels<T>::bytes(factors_.view()); }
  [[nodiscard]] std::int64_t dependent_steps() const override {
    return factors_.view().lower.n_levels + factors_.view().upper.n_levels;
  }

private:
  [[nodiscard]] IluSolveKernels<T> const& kernels() const { return kernels_for<IluSolveKernels<T>>(context_); }
  Context& context_;
  IncompleteLu const& factors_;
  Vector<T> work_;
};

/// ic0 and ilu0: incomplete factors, applied by triangular solves. A bad pivot is the setup's failure(). Throws InputError when
/// options.csr provides no matrix; OutOfMemoryError.
[[nodiscard]] std::unique_ptr<PreconditionerSetup> make_incomplete_lu(MultiPrecisionOperator const& a,
                                                                      PreconditionerOptions const& options);

}  // namespace poisson
