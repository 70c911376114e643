// box_assembly [--backend cpu|cuda] [--cells n,n,...] [--matrix-free n,n,...] [--lattice-matrix-free p:n:lattices,...]
// Seconds that a box of n^3 cells with k = 1 + x y and f = sin(pi x) sin(pi y) sin(pi z) takes from its description to the matrix
// in half_cds and the right-hand side, beside the time that writing them takes at the copy bandwidth; then with f = 1, and with k
// = 1.
// --matrix-free: seconds of a product, of a product with its dot, and of an iteration of cg, matrix-free with k = 1, beside the
// time that their compulsory bytes take at the copy bandwidth.
// --lattice-matrix-free: the same for elements of order p on a row of lattices of n^3 trilinear cells, which are not boxes, and the
// seconds of the assembly, upload included.
#include "gpu/core/error.hpp"
#include "gpu/core/threads.hpp"
#include "gpu/elements/box_system.hpp"
#include "gpu/elements/lattice_system.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/solvers/solver.hpp"
#include "tests/gpu/lattices.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <numbers>
#include <sstream>
#include <string>
#include <utility>
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

void measure_products(Context& context, ElementSystem& system, double bandwidth) {
  HostVector<double> const b = system.take_rhs().take_host();
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
  auto const rate = [&](double per_call) { return 1e-9 * static_cast<double>(b.size()) / per_call; };
  std::printf("%11zu unknowns: product %.6f s, floor %.6f, %.2f GDoF/s; with dot %.6f s, %.2f GDoF/s; cg iteration %.6f s, floor "
              "%.6f, %.2f GDoF/s (%lld iterations, residual %.2e)\n",
              b.size(), product, static_cast<double>(a.bytes_per_product()) / bandwidth, rate(product), with_dot, rate(with_dot),
              result.seconds / iterations, result.bytes_per_iteration / bandwidth, rate(result.seconds / iterations),
              static_cast<long long>(result.iterations), result.residual_recursive);
}

void measure_matrix_free(Context& context, std::int64_t n, double bandwidth) {
  BoxSystem system(context, cube(n), Format::matrix_free);
  std::printf("%6lld ", static_cast<long long>(n));
  measure_products(context, system, bandwidth);
}

/// A row of lattices that widens and is sheared; k = f = 1, and u = 0 all around.
LatticeProblem row_of_lattices(std::int32_t order, std::int32_t cells, std::int64_t count) {
  bool const all_on_rim = cells == 0;
  test::LatticeBox const box = all_on_rim ? test::make_lattice_box({count, count, count}, 1, order, true)
                                          : test::make_lattice_box({count, 1, 1}, cells, order);
  LatticeProblem problem;
  problem.layout = box.layout;
  problem.coefficients = {{constant(1)}};
  problem.source = constant(1);
  std::int64_t const n_lattices = box.layout.n_lattices;
  problem.material.assign(static_cast<std::size_t>(n_lattices), 0);
  std::int64_t const m = box.layout.nodes();
  HostVector<double> coordinates(static_cast<std::size_t>(3 * m * m * m * n_lattices));
  double const h = 1 / static_cast<double>(m - 1);
  for (std::int64_t l = 0; l < n_lattices; ++l)
    for (std::int64_t node = 0; node < m * m * m; ++node) {
      double const x = static_cast<double>(l % count) + h * static_cast<double>(node % m),
                   y = static_cast<double>(l / count % count) + h * static_cast<double>(node / m % m),
                   z = static_cast<double>(l / (count * count)) + h * static_cast<double>(node / (m * m));
      std::array<double, 3> const at{x, y * (1 + 0.2 * x / static_cast<double>(count)),
                                     z + 0.1 * x * y / static_cast<double>(count)};
      for (std::int64_t d = 0; d < 3; ++d)
        coordinates[static_cast<std::size_t>((3 * l + d) * m * m * m + node)] = at[static_cast<std::size_t>(d)];
    }
  problem.coordinates = std::make_shared<HostVector<double> const>(std::move(coordinates));
  auto const n_rim = static_cast<std::size_t>(box.layout.n_unknowns - box.layout.n_inner());
  problem.fixed.resize(n_rim);
  problem.fixed_value.resize(n_rim, 0.0);
  problem.rim_load.resize(n_rim, 0.0);
  for (std::size_t node = 0; node < box.unknown_of.size(); ++node)
    if (std::int64_t const i = box.unknown_of[node] - box.layout.n_inner(); i >= 0) {
      std::array<std::int64_t, 3> const index{static_cast<std::int64_t>(node) % box.nodes[0],
                                              static_cast<std::int64_t>(node) / box.nodes[0] % box.nodes[1],
                                              static_cast<std::int64_t>(node) / (box.nodes[0] * box.nodes[1])};
      bool outside = false;
      for (std::size_t d = 0; d < 3; ++d)
        outside = outside || index[d] == 0 || index[d] == box.nodes[d] - 1;
      problem.fixed[static_cast<std::size_t>(i)] = outside ? 1 : 0;
    }
  return problem;
}

void measure_lattices(Context& context, std::string const& shape, double bandwidth) {
  std::istringstream numbers(shape);
  std::int32_t order = 1, cells = 2;
  std::int64_t count = 1;
  char colon = ' ';
  numbers >> order >> colon >> cells >> colon >> count;
  LatticeProblem const problem = row_of_lattices(order, cells, count);
  double seconds = 1e300;
  for (int run = 0; run < 2; ++run) {
    auto const start = std::chrono::steady_clock::now();
    LatticeSystem const system(context, problem, Format::matrix_free);
    context.synchronize();
    seconds = std::min(seconds, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  LatticeSystem system(context, problem, Format::matrix_free);
  std::printf("%s assembled in %.3f s; ", shape.c_str(), seconds);
  measure_products(context, system, bandwidth);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    std::string backend = "cpu", sizes = "64,128", matrix_free, lattices;
    for (int i = 1; i + 1 < argc; i += 2) {
      std::string const key = argv[i];
      (key == "--backend"               ? backend
       : key == "--matrix-free"         ? matrix_free
       : key == "--lattice-matrix-free" ? lattices
                                        : sizes) = argv[i + 1];
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
    list = std::istringstream(lattices);
    for (std::string word; std::getline(list, word, ',');)
      measure_lattices(*context, word, bandwidth);
  } catch (std::exception const& error) {
    std::fprintf(stderr, "box_assembly: %s\n", error.what());
    return 1;
  }
}
