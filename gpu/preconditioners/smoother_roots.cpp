#include "gpu/preconditioners/smoother_roots.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace poisson {

namespace {

std::vector<double> roots_by_size(int degree, SmootherPolynomial polynomial) {
  switch (polynomial == SmootherPolynomial::optimal
              ? degree
              : 0) {  // of 1 - sum_k beta_k (W_{k-1} - W_k), with the beta of the papers and W of the fourth kind, W_k(0) = 1
  case 1:
    return {0.666666666666667};
  case 2:
    return {0.276393202250022, 0.894427190999916};
  case 3:
    return {0.145967180593476, 0.5910090485061, 0.947904916398314};
  case 4:
    return {0.0895235543024205, 0.394930843634697, 0.74222719896856, 0.968908795874236};
  case 5:
    return {0.0603418549469005, 0.277662623923063, 0.562292300469644, 0.823862973380258, 0.979327802175899};
  case 6:
    return {0.0433730671382693, 0.204408403704699, 0.431471456768468, 0.672544817279176, 0.872401483592457, 0.985256701990458};
  default:
    break;
  }
  std::vector<double> roots;  // sin^2(pi j / (2 degree + 1))
  for (int j = 1; j <= degree; ++j) {
    double const sine = std::sin(std::numbers::pi * j / (2 * degree + 1));
    roots.push_back(sine * sine);
  }
  return roots;
}

}  // namespace

std::vector<double> smoother_roots(int degree, SmootherPolynomial polynomial) {
  std::vector<double> left = roots_by_size(degree, polynomial), result;
  while (!left.empty()) {
    auto const distance = [&](double t) {
      double sum = 0;
      for (double const taken : result)
        sum += std::log(std::abs(t - taken));
      return result.empty() ? t : sum;
    };
    auto const farthest = std::max_element(left.begin(), left.end(), [&](double a, double b) { return distance(a) < distance(b); });
    result.push_back(*farthest);
    left.erase(farthest);
  }
  return result;
}

}  // namespace poisson
