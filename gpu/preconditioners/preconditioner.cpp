#include "gpu/preconditioners/preconditioner.hpp"

#include "gpu/core/place_text.hpp"
#include "gpu/kernels/vectors.hpp"
#include "gpu/core/number_text.hpp"

namespace poisson {

namespace {

/// Row of the first entry by which a method with a need for positive ones, or only for a quotient, cannot divide; or -1.
std::int64_t first_bad_diagonal(HostVector<double> const& diagonal, bool positive) {
  for (std::size_t i = 0; i < diagonal.size(); ++i)
    if (positive ? !(diagonal[i] > 0) : diagonal[i] == 0)
      return static_cast<std::int64_t>(i);
  return -1;
}

}  // namespace

Preconditioner::Preconditioner(Matrix const& matrix, PreconditionerOptions const& options, Context& context) {
  std::int64_t const n = matrix.n_rows();
  switch (options.kind) {
  case PreconditionerKind::none:
    break;
  case PreconditionerKind::jacobi: {
    bool const positive = options.positive;
    inverse_diagonal_ = Array<double>(context, n);
    matrix.diagonal(inverse_diagonal_.data());
    HostVector<double> diagonal(static_cast<std::size_t>(n));
    inverse_diagonal_.download(diagonal);
    if (std::int64_t const row = first_bad_diagonal(diagonal, positive); row >= 0)
      failure_ = std::string("the jacobi preconditioner needs a ") + (positive ? "positive" : "non-zero") + " diagonal, and " +
                 row_text(row) + " has " + number(diagonal[static_cast<std::size_t>(row)]);
    kernels_for<VectorKernels<double>>(context).invert(context, n, inverse_diagonal_.data());
    break;
  }
  case PreconditionerKind::ic0:
  case PreconditionerKind::ilu0: {
    bool const positive = options.kind == PreconditionerKind::ic0;
    if (options.csr != nullptr)
      factors_.emplace(*options.csr, options.shift, positive, options.ordering, context);
    else
      factors_.emplace(matrix.to_csr(), options.shift, positive, options.ordering, context);
    if (BadPivot const bad = factors_->bad_pivot(); bad.row >= 0)
      failure_ = std::string(name_of(options.kind)) + " has the pivot " + number(bad.value) + " in " + row_text(bad.row) +
                 (positive ? ", which is not positive" : ", which is zero to rounding") +
                 (options.shift > 0 ? "; use a solver.shift above " + number(options.shift)
                                    : "; a diagonal shift may help (solver.shift=0.01, or more)") +
                 ", or the preconditioner jacobi";
    break;
  }
  }
}

}  // namespace poisson
