#pragma once

#include "gpu/core/array.hpp"
#include "gpu/formats/matrix.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/preconditioners/incomplete_lu.hpp"
#include "gpu/preconditioners/options.hpp"

#include <optional>
#include <string>

namespace poisson {

/// M, made from a matrix in double precision. Applied to vectors in any arithmetic, in that arithmetic, so that it is one and the
/// same linear map to all the digits that the vectors have.
class Preconditioner {
public:
  /// Throws OutOfMemoryError.
  Preconditioner(Matrix const& matrix, PreconditionerOptions const& options, Context& context);

  /// Empty when it stands; otherwise why it does not, for the user.
  [[nodiscard]] std::string const& failure() const { return failure_; }
  /// 1 / a_ii of jacobi; null for the others.
  [[nodiscard]] double const* inverse_diagonal() const { return inverse_diagonal_.data(); }
  /// The factors of ic0 and ilu0; null for the others.
  [[nodiscard]] IncompleteLu const* factors() const { return factors_ ? &*factors_ : nullptr; }
  [[nodiscard]] bool is_none() const { return inverse_diagonal() == nullptr && factors() == nullptr; }

private:
  Array<double> inverse_diagonal_;
  std::optional<IncompleteLu> factors_;
  std::string failure_;
};

/// z = M^-1 r by triangular solves in the arithmetic T.
template <class T>
class TriangularSolve {
public:
  TriangularSolve() = default;
  TriangularSolve(IncompleteLu const& factors, Context& context)
      : context_(&context), factors_(&factors), work_(context, factors.view().work_size()) {
    kernels().prepare(context, work_.size(), work_.data());
  }
  /// Precondition: made with factors. Nothing happens when *stop is not 0.
  void operator()(ConstPointer<T> r, Pointer<T> z, std::int32_t const* stop) {
    kernels().solve(*context_, factors_->view(), r, z, work_.data(), stop);
  }
  [[nodiscard]] std::int64_t bytes() const { return IluSolveKernels<T>::bytes(factors_->view()); }

private:
  [[nodiscard]] IluSolveKernels<T> const& kernels() const { return kernels_for<IluSolveKernels<T>>(*context_); }
  Context* context_ = nullptr;
  IncompleteLu const* factors_ = nullptr;
  Vector<T> work_;
};

}  // namespace poisson
