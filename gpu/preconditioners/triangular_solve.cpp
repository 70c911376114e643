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

bool has_zero_on_diagonal(CsrMatrix const& a) {
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

/// Keeps the factors of IncompleteLu or RankIncompleteLu, and applies them by their solves.
template <class Factors, template <class> class Solve>
class IncompleteLuSetup final : public PreconditionerSetup {
public:
  IncompleteLuSetup(Factors factors, std::string failure, Context& context) : context_(context), factors_(std::move(factors)) {
    failure_ = std::move(failure);
  }
  [[nodiscard]] std::unique_ptr<Preconditioner<double>> applied_in(double) const override {
    return std::make_unique<Solve<double>>(factors_, context_);
  }
  [[nodiscard]] std::unique_ptr<Preconditioner<DoubleDouble>> applied_in(DoubleDouble) const override {
    return std::make_unique<Solve<DoubleDouble>>(factors_, context_);
  }
  [[nodiscard]] Ordering ordering() const override { return factors_.ordering(); }
  [[nodiscard]] std::int64_t levels() const override { return factors_.view().lower.n_levels; }

private:
  Context& context_;
  Factors factors_;
};

}  // namespace

std::unique_ptr<PreconditionerSetup> make_incomplete_lu(MultiPrecisionOperator const& a, PreconditionerOptions const& options) {
  Context& context = a.context();
  bool const positive = options.kind == PreconditionerKind::ic0;
  auto const* const of_rank = dynamic_cast<RankMatrix const*>(&a);
  auto const csr = of_rank == nullptr && options.csr ? options.csr() : nullptr;
  if (of_rank != nullptr ? !options.rows_of_rank : csr == nullptr)
    throw InputError(
        "the preconditioner " + std::string(name_of(options.kind)) +
        " is made from the entries of the matrix, and this operator stores none; use jacobi, or a format that stores them");
  if (of_rank != nullptr) {
    RankIncompleteLu factors(options.rows_of_rank(), options.shift, positive, options.ordering, context, of_rank->ranks());
    BadPivot const bad = factors.bad_pivot();
    std::string failure = bad.row < 0 ? "" : failure_of(bad, options, factors.has_zero_on_diagonal());
    return std::make_unique<IncompleteLuSetup<RankIncompleteLu, RankTriangularSolve>>(std::move(factors), std::move(failure),
                                                                                      context);
  }
  IncompleteLu factors(*csr, options.shift, positive, options.ordering, context);
  BadPivot const bad = factors.bad_pivot();
  std::string failure = bad.row < 0 ? "" : failure_of(bad, options, has_zero_on_diagonal(*csr));
  return std::make_unique<IncompleteLuSetup<IncompleteLu, TriangularSolve>>(std::move(factors), std::move(failure), context);
}

}  // namespace poisson
