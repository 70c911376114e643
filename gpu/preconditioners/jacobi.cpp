#include "gpu/preconditioners/jacobi.hpp"

#include "gpu/core/array.hpp"
#include "gpu/core/number_text.hpp"
#include "gpu/core/place_text.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/fields.hpp"
#include "gpu/kernels/vectors.hpp"

namespace poisson {

namespace {

template <class T>
class Jacobi final : public Preconditioner<T> {
public:
  Jacobi(Array<double> const& inverse_diagonal, Context& context) : inverse_diagonal_(inverse_diagonal), context_(context) {}

  void apply(ConstPointer<T> r, Pointer<T> z, std::int32_t const* stop) override {
    kernels_for<VectorKernels<T>>(context_).scale(context_, inverse_diagonal_.size(), inverse_diagonal_.data(), r, z, stop);
  }
  [[nodiscard]] std::int64_t bytes_per_apply() const override {
    return inverse_diagonal_.size() * std::int64_t{sizeof(double) + 2 * sizeof(T)};
  }
  [[nodiscard]] double const* inverse_diagonal() const override {
    // Never null, which would say that M is not diagonal: also for a rank without rows.
    return inverse_diagonal_.size() > 0 ? inverse_diagonal_.data() : &nothing_;
  }

private:
  static constexpr double nothing_ = 0;
  Array<double> const& inverse_diagonal_;
  Context& context_;
};

class JacobiSetup final : public PreconditionerSetup {
public:
  JacobiSetup(MultiPrecisionOperator const& a, bool positive) : context_(a.context()), inverse_diagonal_(context_, a.n_rows()) {
    a.diagonal(inverse_diagonal_.data());
    std::int64_t const bad =
        first_failing(context_, a.n_rows(), inverse_diagonal_.data(), positive ? EntryCheck::positive : EntryCheck::not_zero);
    if (bad < a.n_rows()) {
      double entry = 0;
      context_.download(&entry, inverse_diagonal_.data() + bad, sizeof entry);
      failure_ = std::string("the jacobi preconditioner ") + (positive ? "of cg and minres needs a positive" : "needs a non-zero") +
                 " diagonal, and " + row_text(bad) + " has " + number(entry) +
                 (positive ? ": the matrix is not positive definite; try the method bicgstab, or minres without preconditioner"
                           : "; try ilu0 with a diagonal shift, or no preconditioner");
    }
    kernels_for<VectorKernels<double>>(context_).invert(context_, a.n_rows(), inverse_diagonal_.data());
  }

  [[nodiscard]] std::unique_ptr<Preconditioner<double>> applied_in(double) const override {
    return std::make_unique<Jacobi<double>>(inverse_diagonal_, context_);
  }
  [[nodiscard]] std::unique_ptr<Preconditioner<DoubleDouble>> applied_in(DoubleDouble) const override {
    return std::make_unique<Jacobi<DoubleDouble>>(inverse_diagonal_, context_);
  }

private:
  Context& context_;
  Array<double> inverse_diagonal_;
};

}  // namespace

std::unique_ptr<PreconditionerSetup> make_jacobi(MultiPrecisionOperator const& a, PreconditionerOptions const& options) {
  return std::make_unique<JacobiSetup>(a, options.positive);
}

}  // namespace poisson
