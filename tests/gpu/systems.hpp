#pragma once

#include "gpu/solvers/solver.hpp"
#include "tests/gpu/cases.hpp"

#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <vector>

namespace poisson::testing {

inline double norm(std::vector<double> const& v) {
  return std::sqrt(std::inner_product(v.begin(), v.end(), v.begin(), 0.0));
}

inline double distance(std::vector<double> a, std::vector<double> const& b) {
  for (std::size_t i = 0; i < a.size(); ++i)
    a[i] -= b[i];
  return norm(a);
}

template <class C>
class SolvesOnCase : public OnCase<C> {
protected:
  SolverResult solve(std::shared_ptr<CsrMatrix const> const& csr, std::vector<double> const& b, SolverOptions options = {}) {
    auto const matrix = this->make(csr);
    if (!options.csr)
      options.csr = [&] { return std::make_shared<CsrMatrix const>(matrix->to_csr()); };
    solution.assign(b.size(), std::numeric_limits<double>::quiet_NaN());
    return poisson::solve(*matrix, b, solution, options);
  }
  std::vector<double> solution;
};

}  // namespace poisson::testing
