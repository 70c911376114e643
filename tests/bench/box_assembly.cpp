// box_assembly [--backend cpu|cuda] [--cells n,n,...]
// Seconds that a box of n^3 cells with k = 1 + x y and f = sin(pi x) sin(pi y) sin(pi z) takes from its description to the matrix
// in half_cds and the right-hand side, beside the time that writing them takes at the copy bandwidth; then with f = 1, and with k
// = 1.
#include "gpu/core/error.hpp"
#include "gpu/core/threads.hpp"
#include "gpu/elements/box_system.hpp"
#include "gpu/kernels/backends.hpp"

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

}  // namespace

int main(int argc, char** argv) {
  try {
    std::string backend = "cpu", sizes = "64,128";
    for (int i = 1; i + 1 < argc; i += 2)
      (std::string(argv[i]) == "--backend" ? backend : sizes) = argv[i + 1];
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
  } catch (std::exception const& error) {
    std::fprintf(stderr, "box_assembly: %s\n", error.what());
    return 1;
  }
}
