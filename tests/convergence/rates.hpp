#pragma once

#include "tests/convergence/support.hpp"

#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

/// Observed rates of manufactured solutions.
namespace poisson::assembly::test {

/// u = sin(2x + y) e^z
struct Waves {
  static constexpr char const* u = "sin(2*x + y)*exp(z)";
  static constexpr char const* f = "4*sin(2*x + y)*exp(z)";
  static constexpr char const* dx = "2*cos(2*x + y)*exp(z)";
};

/// Solves a problem and gives its errors.
using Measure = std::function<ErrorNorms(ProblemSpec const&)>;

/// Solves on meshes whose cell size halves from one to the next and checks the last observed rates: at most 0.2 below those of
/// theory, and at most `above` better, which coarse curved meshes are before they settle.
inline void expect_rates(std::vector<ProblemSpec> const& specs, double above = 0.2, Measure const& measure = &solve_and_measure) {
  std::vector<ErrorNorms> errors;
  for (auto const& spec : specs)
    errors.push_back(measure(spec));
  auto const& coarse = errors[errors.size() - 2];
  auto const& fine = errors.back();
  double const p = specs[0].order;
  double const l2_rate = std::log2(coarse.l2 / fine.l2), h1_rate = std::log2(coarse.h1_seminorm / fine.h1_seminorm);
  EXPECT_GT(l2_rate, p + 1 - 0.2) << "order " << p << ", L2 " << coarse.l2 << " -> " << fine.l2;
  EXPECT_LT(l2_rate, p + 1 + above) << "order " << p << ", L2 " << coarse.l2 << " -> " << fine.l2;
  EXPECT_GT(h1_rate, p - 0.2) << "order " << p << ", H1 " << coarse.h1_seminorm << " -> " << fine.h1_seminorm;
  EXPECT_LT(h1_rate, p + above) << "order " << p << ", H1 " << coarse.h1_seminorm << " -> " << fine.h1_seminorm;
  EXPECT_LT(fine.linf, coarse.linf / std::pow(2, p + 0.5));
}

inline ProblemSpec waves(int order, MeshSpec mesh) {
  ProblemSpec spec;
  spec.mesh = std::move(mesh);
  spec.order = order;
  spec.source = Waves::f;
  spec.boundary = {dirichlet(Waves::u)};
  spec.exact = Waves::u;
  return spec;
}

/// Cells per direction that reach the asymptotic rate quickly enough.
inline std::vector<int> resolutions(int order) {
  return order == 1 ? std::vector<int>{8, 16} : std::vector<int>{4, 8};
}

}  // namespace poisson::assembly::test
