#include "gpu/preconditioners/triangular_solve.hpp"

#include "gpu/core/error.hpp"
#include "gpu/core/number_text.hpp"
#include "gpu/core/place_text.hpp"

namespace poisson {

namespace {

class IncompleteLuSetup final : public PreconditionerSetup {
public:
  IncompleteLuSetup(CsrMatrix const& csr, PreconditionerOptions const& options, Context& context)
      : context_(context), factors_(csr, options.shift, options.kind == PreconditionerKind::ic0, options.ordering, context) {
    BadPivot const bad = factors_.bad_pivot();
    if (bad.row < 0)
      return;
    failure_ =
        std::string(name_of(options.kind)) + " has the pivot " + number(bad.value) + " in " + row_text(bad.row) +
        (options.kind == PreconditionerKind::ic0 ? ", which is not positive" : ", which is zero to rounding") +
        (options.shift > 0 ? "; try a diagonal shift above " + number(options.shift) : "; try a diagonal shift of 0.01, or more") +
        (has_zero_on_diagonal(csr) ? "" : ", or the preconditioner jacobi");
  }

  [[nodiscard]] std::unique_ptr<Preconditioner<double>> applied_in(double) const override {
    return std::make_unique<TriangularSolve<double>>(factors_, context_);
  }
  [[nodiscard]] std::unique_ptr<Preconditioner<DoubleDouble>> applied_in(DoubleDouble) const override {
    return std::make_unique<TriangularSolve<DoubleDouble>>(factors_, context_);
  }
  [[nodiscard]] Ordering ordering() const override { return factors_.ordering(); }
  [[nodiscard]] std::int64_t levels() const override { return factors_.levels(); }

private:
  /// Jacobi could not divide by it.
  static bool has_zero_on_diagonal(CsrMatrix const& a) {
    for (std::int64_t row = 0; row < a.n_rows; ++row) {
      double diagonal = 0;
      for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e)
        if (a.columns[e] == row)
          diagonal = a.values[e];
      if (diagonal == 0)
        return true;
    }
    return false;
  }

  Context& context_;
  IncompleteLu factors_;
};

}  // namespace

std::unique_ptr<PreconditionerSetup> make_incomplete_lu(MultiPrecisionOperator const& a, PreconditionerOptions const& options) {
  auto const csr = options.csr ? options.csr() : nullptr;
  if (csr == nullptr)
    throw InputError(
        "the preconditioner " + std::string(name_of(options.kind)) +
        " is made from the entries of the matrix, and this operator stores none; use jacobi, or a format that stores them");
  return std::make_unique<IncompleteLuSetup>(*csr, options, a.context());
}

}  // namespace poisson
