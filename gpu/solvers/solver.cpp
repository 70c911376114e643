#include "gpu/solvers/solver.hpp"

#include "gpu/core/error.hpp"
#include "gpu/solvers/cg.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace poisson {

namespace {

struct MethodEntry {
  Method method;
  SolverResult (*solve)(Operator<double> const&, std::span<double const>, std::span<double>, SolverOptions const&, Context&);
};

constexpr std::array methods{MethodEntry{Method::cg, &cg<double>}};
static_assert(methods.size() == Names<Method>::values.size(), "every method has its row");

}  // namespace

SolverResult solve(Matrix const& matrix, std::span<double const> b, std::span<double> x, SolverOptions const& options,
                   Context& context) {
  std::int64_t const n = matrix.n_rows();
  if (matrix.n_columns() != n)
    throw InputError("the matrix is not square: it has " + std::to_string(n) + " rows and " + std::to_string(matrix.n_columns()) +
                     " columns");
  if (static_cast<std::int64_t>(b.size()) != n || static_cast<std::int64_t>(x.size()) != n)
    throw InputError("the matrix has " + std::to_string(n) + " rows, but the right-hand side has " + std::to_string(b.size()) +
                     " entries and the solution " + std::to_string(x.size()));
  if (matrix.row_not_finite >= 0)
    throw InputError("the matrix has a NaN or an infinity in row " + std::to_string(matrix.row_not_finite));
  bool zero = true;
  for (std::int64_t i = 0; i < n; ++i) {
    if (!std::isfinite(b[i]))
      throw InputError("the right-hand side is " + std::to_string(b[i]) + " in row " + std::to_string(i));
    zero = zero && b[i] == 0;
  }
  if (zero) {
    std::fill(x.begin(), x.end(), 0.0);
    SolverResult result;
    result.status = SolverStatus::converged;
    result.history = {0};
    return result;
  }
  auto const entry = std::find_if(methods.begin(), methods.end(), [&](MethodEntry const& m) { return m.method == options.method; });
  return entry->solve(matrix, b, x, options, context);
}

}  // namespace poisson
