// box_assembly [--backend cpu|cuda] [--cells n,n,...] [--matrix-free n,n,...]
// Seconds that a box of n^3 cells with k = 1 + x y and f = sin(pi x) sin(pi y) sin(pi z) takes from its description to the matrix
// in half_cds and the right-hand side, beside the time that writing them takes at the copy bandwidth; then with f = 1, and with k
// = 1.
// --matrix-free: seconds of a product, of a product with its dot, and of an iteration of cg, matrix-free with k = 1, beside the
// time that their compulsory bytes take at the copy bandwidth.
#include "gpu/core/error.hpp"
#include "gpu/core/threads.hpp"
#include "gpu/elements/box_system.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/solvers/solver.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <numbers>
#include <sstream>
#include <string>
#include <vector>

namespace {

using namespace poisson;
using I = Instruction;

ExpressionCode constant(double value) {
  return {I(Op::constant, value)};
}
void append_sine(ExpressionCode& code, Op direction) {
  for (I const& i : {I(Op::constant, std::numbers::pi), I(direction), I(Op::multiply), I(Op::sin)})
    code.push_back(i);
}

double seconds_of(Context& context, BoxProblem const& problem) {
  double best = 1e300;
  for (int run = 0; run < 4; ++run) {
    auto const start = std::chrono::steady_clock::now();
    BoxSystem const system(context, problem);
    context.synchronize();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

BoxProblem cube(std::int64_t n) {
  BoxProblem problem{{n, n, n}, {0, 0, 0}, {1, 1, 1}, {constant(1)}, constant(1), {}};
  for (auto& face : problem.faces)
    face.value = constant(0);
  return problem;
}

void measure_matrix_free(Context& context, std::int64_t n, double bandwidth) {
  BoxSystem system(context, cube(n), Format::matrix_free);
  HostVector<double> const b = system.take_rhs();
  HostVector<double> x(b.size());
  Array<double> on_x(context, std::span<double const>(b)), on_y(context, static_cast<std::int64_t>(b.size())), dot(context, 1);
  Array<std::int32_t> stop(context, 1);
  stop.set_zero();
  LinearOperator<double> const& a = system.matrix();
  auto const seconds = [&](auto const& call) {
    double best = 1e300;
    for (int run = 0; run < 5; ++run) {
      context.synchronize();
      auto const start = std::chrono::steady_clock::now();
      for (int i = 0; i < 20; ++i)
        call();
      context.synchronize();
      best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / 20);
    }
    return best;
  };
  double const product = seconds([&] { a.product(1, on_x.data(), 0, on_y.data()); });
  double const with_dot = seconds([&] { a.product_dot(on_x.data(), on_y.data(), dot.data(), stop.data()); });
  on_x = {};
  on_y = {};
  SolverOptions options;
  options.max_iterations = 200;
  SolverResult const result = solve(system.matrix(), b, x, options);
  auto const iterations = static_cast<double>(result.iterations);
  std::printf(
      "%6lld product %.6f s, floor %.6f; with dot %.6f s; cg iteration %.6f s, floor %.6f (%lld iterations, residual %.2e)\n",
      static_cast<long long>(n), product, static_cast<double>(a.bytes_per_product()) / bandwidth, with_dot,
      result.seconds / iterations, result.bytes_per_iteration / bandwidth, static_cast<long long>(result.iterations),
      result.residual_recursive);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    std::string backend = "cpu", sizes = "64,128", matrix_free;
    for (int i = 1; i + 1 < argc; i += 2) {
      std::string const key = argv[i];
      (key == "--backend" ? backend : key == "--matrix-free" ? matrix_free : sizes) = argv[i + 1];
    }
    set_thread_count(0);
    auto const context = make_context(backend == "cuda" ? Backend::cuda : Backend::cpu);
    double const bandwidth = measure_copy_bandwidth(*context);
    std::printf("%s, copy %.0f GB/s\n%6s %12s %12s %12s %12s\n", context->description().name.c_str(), 1e-9 * bandwidth, "cells",
                "seconds", "f = 1", "k = f = 1", "floor");
    std::istringstream list(sizes);
    for (std::string word; std::getline(list, word, ',');) {
      std::int64_t const n = std::stoll(word);
      BoxProblem problem{{n, n, n}, {0, 0, 0}, {1, 1, 1}, {}, {}, {}};
      problem.coefficient = {{I(Op::constant, 1), I(Op::x), I(Op::y), I(Op::multiply), I(Op::add)}};
      append_sine(problem.source, Op::x);
      append_sine(problem.source, Op::y);
      problem.source.emplace_back(Op::multiply);
      append_sine(problem.source, Op::z);
      problem.source.emplace_back(Op::multiply);
      for (auto& face : problem.faces)
        face.value = constant(0);
      double const all = seconds_of(*context, problem);
      problem.source = constant(1);
      double const variable_k = seconds_of(*context, problem);
      problem.coefficient = {constant(1)};
      double const constants = seconds_of(*context, problem);
      double const rows = static_cast<double>((n + 1) * (n + 1) * (n + 1));
      std::printf("%6lld %12.5f %12.5f %12.5f %12.5f\n", static_cast<long long>(n), all, variable_k, constants,
                  15 * 8 * rows / bandwidth);
    }
    list = std::istringstream(matrix_free);
    for (std::string word; std::getline(list, word, ',');)
      measure_matrix_free(*context, std::stoll(word), bandwidth);
  } catch (std::exception const& error) {
    std::fprintf(stderr, "box_assembly: %s\n", error.what());
    return 1;
  }
}
