// multigrid_bench [--backend cpu|cuda] [--degree k] [--precision double|refined] [--cycle-precision single|double] [--algebraic
// yes]
//                 [--format half_cds|matrix_free|csr|sell_c_sigma] [--nested yes] [--json FILE] [SHAPE:K ...]
//                 [--right_hand_sides m] [--preconditioner multigrid|jacobi|none]
// Setup, iterations and seconds of cg with multigrid on a box with u = 0 all around and f = 1, to 1e-12 (1e-18 if refined); with
// --nested to the accuracy of the discretisation, from nested iteration. SHAPE:
// With --right_hand_sides m random right-hand sides are solved, at once and one by one with the same setup, and the ratio of both
// times is printed.
// cells n, or nx,ny,nz of a unit cube, with @ex,ey,ez of another extent. K: one; octants, where k = 1e6 in every other octant;
// ball, where it is 1e6 in a ball; stiff, where k_z = 1000 k_x.
#include "gpu/core/error.hpp"
#include "gpu/core/threads.hpp"
#include "gpu/elements/box_system.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/solvers/solver.hpp"
#include "tests/gpu/elements/functions.hpp"

#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <string>
#include <vector>

namespace {

using namespace poisson;

ExpressionCode constant(double value) {
  return testing::constant(value).code;
}

std::vector<ExpressionCode> coefficient(std::string const& name) {
  if (name == "octants")
    return {testing::octants(1e6).code};
  if (name == "ball")
    return {testing::ball(1e6).code};
  if (name == "stiff")
    return {constant(1), constant(1), constant(1000)};
  if (name != "one")
    throw InputError("unknown coefficient " + name);
  return {constant(1)};
}

template <class T>
void read(std::istringstream& from, std::array<T, 3>& to) {
  char comma = ' ';
  from >> to[0];
  to[1] = to[2] = to[0];
  if (from.peek() == ',')
    from >> comma >> to[1] >> comma >> to[2];
}

/// Seconds of all iterations for m random right-hand sides, at once and one by one; best of three runs by turns.
nlohmann::json measure_block(Matrix const& matrix, std::string const& job, SolverOptions const& options, int m) {
  std::vector<Array<double>> b, x(static_cast<std::size_t>(m)), x_low(static_cast<std::size_t>(m));
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> uniform(-1, 1);
  HostVector<double> entries(static_cast<std::size_t>(matrix.n_rows()));
  for (int j = 0; j < m; ++j) {
    for (double& entry : entries)
      entry = uniform(random);
    b.emplace_back(matrix.context(), std::span<double const>(entries));
  }
  double at_once = 1e300, one_by_one = 1e300;
  std::int64_t iterations = 0, iterations_alone = 0;
  bool converged = true;
  for (int run = 0; run < 4; ++run) {  // the first one loads kernels
    double together = 0, apart = 0;
    iterations = iterations_alone = 0;
    std::vector<SolverResult> const of_block = solve_block(matrix, b, x, x_low, options, std::min(m, most_columns));
    for (std::size_t j = 0; j < of_block.size(); ++j) {
      if (j % most_columns == 0)  // results of right-hand sides that were iterated together all have the seconds of these
        together += of_block[j].seconds;
      iterations = std::max(iterations, of_block[j].iterations);
      converged = converged && of_block[j].status == SolverStatus::converged;
    }
    for (SolverResult const& result : solve_block(matrix, b, x, x_low, options, 1)) {
      apart += result.seconds;
      iterations_alone = std::max(iterations_alone, result.iterations);
      converged = converged && result.status == SolverStatus::converged;
    }
    if (run > 0) {
      at_once = std::min(at_once, together);
      one_by_one = std::min(one_by_one, apart);
    }
  }
  std::printf("%-28s %11lld unknowns, %d right-hand sides (%s, %s): at once %8.2f ms (%lld iterations), one by one %8.2f ms (%lld "
              "iterations), ratio %.3f; %s\n",
              job.c_str(), static_cast<long long>(matrix.n_rows()), m, std::string(name_of(matrix.format())).c_str(),
              std::string(name_of(options.preconditioner)).c_str(), 1e3 * at_once, static_cast<long long>(iterations),
              1e3 * one_by_one, static_cast<long long>(iterations_alone), at_once / one_by_one,
              converged ? "all converged" : "not all converged");
  return {{"problem", job},
          {"rows", matrix.n_rows()},
          {"format", std::string(name_of(matrix.format()))},
          {"preconditioner", std::string(name_of(options.preconditioner))},
          {"tolerance", options.tolerance},
          {"right_hand_sides", m},
          {"iterations", iterations},
          {"seconds_at_once", at_once},
          {"seconds_one_by_one", one_by_one},
          {"ratio", at_once / one_by_one},
          {"converged", converged}};
}

nlohmann::json measure(Context& context, double bandwidth, std::string const& job, SolverOptions options, bool algebraic,
                       Format format, int right_hand_sides) {
  std::istringstream text(job);
  std::array<std::int64_t, 3> cells{};
  std::array<double, 3> extent{1, 1, 1};
  read(text, cells);
  char separator = ' ';
  text >> separator;
  if (separator == '@') {
    read(text, extent);
    text >> separator;
  }
  std::string name;
  text >> name;
  BoxProblem problem{cells, {0, 0, 0}, extent, coefficient(name), constant(1), {}};
  for (auto& face : problem.faces)
    face.value = constant(0);
  bool const of_box = format == Format::half_cds || format == Format::matrix_free;
  BoxSystem system(context, problem, of_box ? format : Format::half_cds);
  HostVector<double> const b = system.take_rhs().take_host();
  HostVector<double> x(b.size());
  auto const csr = algebraic || !of_box ? std::make_shared<CsrMatrix const>(system.matrix().to_csr()) : nullptr;
  std::unique_ptr<Matrix> const converted = of_box ? nullptr : make_matrix(format, csr, context);
  Matrix const& matrix = of_box ? system.matrix() : *converted;
  if (algebraic)
    options.csr = [csr] { return csr; };
  else
    options.box_nodes = {cells[0] + 1, cells[1] + 1, cells[2] + 1};
  if (right_hand_sides > 0)
    return measure_block(matrix, job, options, right_hand_sides);
  SolverResult result;
  SetupSteps steps;
  static_cast<void>(solve(matrix, b, x, options));  // loads kernels
  options.setup_steps = &steps;
  static_cast<void>(solve(matrix, b, x, options));
  options.setup_steps = nullptr;
  double setup = 1e300, seconds = 1e300;
  for (int run = 0; run < 3; ++run) {
    result = solve(matrix, b, x, options);
    setup = std::min(setup, result.setup_seconds);
    seconds = std::min(seconds, result.seconds);
  }
  double const floor = static_cast<double>(result.iterations) * result.bytes_per_iteration / bandwidth;
  std::printf("%-28s %11zu unknowns, %2zu levels: setup %8.2f ms, %3lld iterations in %8.2f ms (floor %8.2f), together %8.2f ms; "
              "residual %.1e, %s %s\n",
              job.c_str(), b.size(), result.multigrid_levels.size(), 1e3 * setup, static_cast<long long>(result.iterations),
              1e3 * seconds, 1e3 * floor, 1e3 * (setup + seconds), result.residual_recursive,
              std::string(name_of(result.status)).c_str(), result.reason.c_str());
  nlohmann::json of_steps;
  for (auto const& [step, step_seconds] : steps.seconds()) {
    std::printf("    %-20s %8.3f ms\n", step.c_str(), 1e3 * step_seconds);
    of_steps[step] = step_seconds;
  }
  return {{"problem", job},
          {"rows", b.size()},
          {"format", algebraic ? std::string(name_of(format)) + "_aggregation" : std::string(name_of(format))},
          {"tolerance", options.tolerance},
          {"initial", std::string(name_of(options.initial))},
          {"levels", result.multigrid_levels.size()},
          {"iterations", result.iterations},
          {"setup_seconds", setup},
          {"setup_steps", of_steps},
          {"seconds", seconds},
          {"floor_seconds", floor},
          {"residual", result.residual_recursive},
          {"status", std::string(name_of(result.status))}};
}

}  // namespace

int main(int argc, char** argv) {
  try {
    Backend backend = Backend::cpu;
    SolverOptions options;
    bool algebraic = false;
    int right_hand_sides = 0;
    Format format = Format::half_cds;
    options.preconditioner = PreconditionerKind::multigrid;
    std::vector<std::string> jobs;
    std::string json_file;
    for (int i = 1; i < argc; ++i) {
      std::string const word = argv[i];
      if (word.starts_with("--") && i + 1 == argc)
        throw InputError(word + " needs a value");
      if (word == "--backend")
        backend = std::string(argv[++i]) == "cuda" ? Backend::cuda : Backend::cpu;
      else if (word == "--degree")
        options.multigrid.degree = std::stoi(argv[++i]);
      else if (word == "--right_hand_sides") {
        right_hand_sides = std::stoi(argv[++i]);
        if (right_hand_sides < 1)
          throw InputError("--right_hand_sides needs a number from 1 on");
      } else if (word == "--preconditioner") {
        auto const kind = parse_name<PreconditionerKind>(argv[++i]);
        if (!kind)
          throw InputError("unknown preconditioner");
        options.preconditioner = *kind;
      } else if (word == "--json")
        json_file = argv[++i];
      else if (word == "--algebraic")
        algebraic = std::string(argv[++i]) == "yes";
      else if (word == "--nested") {
        options.to_discretization = std::string(argv[++i]) == "yes";
        options.initial = options.to_discretization ? InitialGuess::nested : InitialGuess::zero;
      } else if (word == "--format") {
        std::string const name = argv[++i];
        auto const found = parse_name<Format>(name);
        if (!found)
          throw InputError("unknown format " + name);
        format = *found;
      } else if (word == "--cycle-precision")
        options.multigrid.precision = std::string(argv[++i]) == "double" ? MultigridPrecision::double_ : MultigridPrecision::single;
      else if (word == "--precision") {
        if (std::string(argv[++i]) == "refined") {
          options.precision = Precision::refined;
          options.tolerance = 1e-18;
        }
      } else
        jobs.push_back(word);
    }
    auto const context = make_context(backend);
    double const bandwidth = measure_copy_bandwidth(*context);
    std::printf("%s, copy %.0f GB/s\n", context->description().name.c_str(), bandwidth / 1e9);
    nlohmann::json report{
        {"bench", "multigrid"},      {"device", context->description().name}, {"backend", std::string(name_of(backend))},
        {"threads", thread_count()}, {"copy_bytes_per_second", bandwidth},    {"rows", nlohmann::json::array()}};
    for (std::string const& job : jobs)
      report["rows"].push_back(measure(*context, bandwidth, job, options, algebraic, format, right_hand_sides));
    if (!json_file.empty())
      std::ofstream(json_file) << report.dump(2) << '\n';
  } catch (std::exception const& error) {
    std::fprintf(stderr, "multigrid_bench: %s\n", error.what());
    return 1;
  }
}
