#include "gpu/preconditioners/triangular_solve.hpp"

#include "gpu/core/error.hpp"
#include "gpu/core/number_text.hpp"
#include "gpu/core/place_text.hpp"
#include "gpu/formats/rank_matrix.hpp"

#include <string>
#include <utility>

namespace poisson {

namespace {

/// Why a factorisation with this bad pivot is of no use.
std::string failure_of(BadPivot const& bad, PreconditionerOptions const& options, bool has_zero_on_diagonal) {
  return std::string(name_of(options.kind)) + " has the pivot " + number(bad.value) + " in " + row_text(bad.row) +
         (options.kind == PreconditionerKind::ic0 ? ", which is not positive" : ", which is zero to rounding") +
         (options.shift > 0 ? "; try a diagonal shift above " + number(options.shift) : "; try a diagonal shift of 0.01, or more") +
         (has_zero_on_diagonal ? "" : ", or the preconditioner jacobi");  // which could not divide by it
}

/// Keeps the factors, and applies them by triangular solves.
class IncompleteLuSetup final : public PreconditionerSetup {
public:
  IncompleteLuSetup(IncompleteLu factors, PreconditionerOptions const& options, Context& context)
      : context_(context), factors_(std::move(factors)) {
    if (factors_.bad_pivot().row >= 0)
      failure_ = failure_of(factors_.bad_pivot(), options, factors_.has_zero_on_diagonal());
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
  Context& context_;
  IncompleteLu factors_;
};

}  // namespace

std::unique_ptr<PreconditionerSetup> make_incomplete_lu(MultiPrecisionOperator const& a, PreconditionerOptions const& options) {
  auto const* const of_rank = dynamic_cast<RankMatrix const*>(&a);
  NumberedRows rows;
  if (of_rank != nullptr && options.rows_of_rank)
    rows = options.rows_of_rank();
  else if (of_rank == nullptr && options.csr)
    rows.rows.matrix = options.csr();
  if (rows.rows.matrix == nullptr)
    throw InputError(
        "the preconditioner " + std::string(name_of(options.kind)) +
        " is made from the entries of the matrix, and this operator stores none; use jacobi, or a format that stores them");
  return std::make_unique<IncompleteLuSetup>(IncompleteLu(rows, options.shift, options.kind == PreconditionerKind::ic0,
                                                          options.ordering, a.context(),
                                                          of_rank != nullptr ? of_rank->ranks() : alone()),
                                             options, a.context());
}

}  // namespace poisson
