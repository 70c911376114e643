// ranks_bench [OPTION ...] weak|strong:N:R ...; see `help` below, or ranks_bench --help.
//
// It sets NCCL_P2P_DIRECT_DISABLE=1 (needed for threads) and CUDA_MODULE_LOADING=EAGER (code that is loaded later may wait for
// kernels that wait for other ranks), unless they are set. Where the driver cannot map memory for multicast, set
// NCCL_NVLS_ENABLE=0.
#include "gpu/core/error.hpp"
#include "gpu/elements/block_system.hpp"
#include "gpu/formats/rank_matrix.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/device_ranks.hpp"
#include "gpu/preconditioners/multigrid.hpp"
#include "gpu/preconditioners/multigrid_hierarchy.hpp"
#include "gpu/solvers/gathered_sum.hpp"
#include "gpu/solvers/solver.hpp"
#include "tests/gpu/elements/functions.hpp"
#include "tests/gpu/thread_ranks.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <omp.h>
#include <span>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace poisson;
using nlohmann::json;

struct Job {
  bool weak = false;
  std::int64_t n = 0;
  int ranks = 1;
};

Job job_of(std::string const& word) {
  std::istringstream text(word);
  std::string kind;
  Job job;
  char colon = ' ';
  if (!std::getline(text, kind, ':') || !(text >> job.n >> colon >> job.ranks) || colon != ':' ||
      (kind != "weak" && kind != "strong") || job.ranks < 1 || job.n < 3 * job.ranks + 1)
    throw InputError("expected weak:N:R or strong:N:R with N > 3 R, found " + word);
  job.weak = kind == "weak";
  return job;
}

/// A box of nodes in blocks, as many in z and y as have the least surface; lines in x stay whole.
struct Cut {
  RankBlocks blocks;    ///< of all ranks
  NodeBox own, around;  ///< of this one; with the nodes beside them
  std::int64_t n = 0;   ///< nodes a side of the job
  int rank = 0;

  Cut(Job const& job, int number) : n(job.n), rank(number) {
    std::int64_t const planes = job.weak ? (n - 1) * job.ranks + 1 : n;
    blocks.nodes = {n, n, planes};
    int in_y = 1;
    for (int b = 2; b * b <= job.ranks; ++b)
      if (job.ranks % b == 0 && surface(b, job.ranks / b) < surface(in_y, job.ranks / in_y))
        in_y = b;
    int const in_z = job.ranks / in_y;
    for (int z = 0; z < in_z; ++z)
      for (int y = 0; y < in_y; ++y)
        blocks.own.push_back({{0, n * y / in_y, planes * z / in_z}, {n, n * (y + 1) / in_y, planes * (z + 1) / in_z}});
    own = blocks.own[static_cast<std::size_t>(rank)];
    around = with_neighbours(blocks.own, blocks.nodes)[static_cast<std::size_t>(rank)];
  }

private:
  /// Nodes beside an inner block.
  [[nodiscard]] double surface(int in_y, int in_z) const {
    double const y = static_cast<double>(blocks.nodes[1]) / in_y, z = static_cast<double>(blocks.nodes[2]) / in_z;
    return (in_y > 1 ? std::min(in_y - 1, 2) * z : 0) + (in_z > 1 ? std::min(in_z - 1, 2) * y : 0);
  }
};

/// u = 0 all around and f = 1 on the cells around the block's nodes, which are cubes.
BoxProblem problem_of(Cut const& cut) {
  std::array<std::int64_t, 3> cells{};
  std::array<double, 3> origin{}, extent{};
  double const edge = 1.0 / static_cast<double>(cut.n - 1);
  for (std::size_t d = 0; d < 3; ++d) {
    cells[d] = cut.around.count(d) - 1;
    origin[d] = edge * static_cast<double>(cut.around.low[d]);
    extent[d] = edge * static_cast<double>(cells[d]);
  }
  ExpressionCode const zero = testing::constant(0).code, one = testing::constant(1).code;
  BoxProblem problem{cells, origin, extent, {one}, one, {}};
  for (std::size_t face = 0; face < 6; ++face) {
    bool const inside = face % 2 == 0 ? cut.own.low[face / 2] > 0 : cut.own.high[face / 2] < cut.blocks.nodes[face / 2];
    problem.faces[face] = {inside ? BoxProblem::Face::Type::cut : BoxProblem::Face::Type::dirichlet, static_cast<int>(face), zero,
                           zero};
  }
  return problem;
}

/// The nodes beside the block are its ghosts, by rank.
std::vector<RankNeighbor> neighbors_of(Cut const& cut) {
  std::vector<NodeBox> const around = with_neighbours(cut.blocks.own, cut.blocks.nodes);
  std::vector<RankNeighbor> neighbors;
  for (std::size_t other = 0; other < around.size(); ++other) {
    NodeBox const ghosts = common(cut.blocks.own[other], cut.around), sent = common(cut.own, around[other]);
    if (static_cast<int>(other) == cut.rank || ghosts.size() == 0)
      continue;
    RankNeighbor& neighbor = neighbors.emplace_back();
    neighbor.rank = static_cast<int>(other);
    neighbor.n_ghosts = ghosts.size();
    sent.for_all([&](auto const& node) { neighbor.sent.push_back(static_cast<std::int32_t>(cut.own.index(node))); });
  }
  return neighbors;
}

double since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Seconds of one of `count` calls of action(), all enqueued before the host waits; the best of three, after one that warms up. All
/// ranks begin together.
template <class Action>
double seconds_of(Context& context, Communicator& ranks, int count, Action const& action) {
  double best = 1e300;
  for (int run = 0; run < 4; ++run) {
    context.synchronize();
    ranks.barrier();
    auto const start = std::chrono::steady_clock::now();
    for (int i = 0; i < (run == 0 ? 2 : count); ++i)
      action();
    context.synchronize();
    if (run > 0)
      best = std::min(best, since(start) / count);
  }
  return max_over(ranks, best);
}

struct Settings {
  Backend backend = Backend::cuda;
  Format format = Format::half_cds;
  std::int64_t iterations = 100;
  bool multigrid = false;
  SolverOptions solver{};  ///< of multigrid
};

/// The rows of a rank, with its part of the right-hand side.
struct RankSystem {
  std::vector<RankNeighbor> neighbors;
  HostVector<double> b;
  std::unique_ptr<RankMatrix> a;
};

RankSystem assemble(Context& context, Cut const& cut, Format format, Communicator& ranks) {
  RankSystem result;
  result.neighbors = neighbors_of(cut);
  BoxSystem system(context, problem_of(cut), format);
  BlockSystem block;
  if (cut.blocks.own.size() > 1) {
    block = take_block(system, BlockPlaces(cut.around, cut.blocks, static_cast<std::size_t>(cut.rank)), context);
  } else {
    auto couplings = std::make_shared<CsrMatrix>();
    couplings->row_ptr.push_back(0);
    block.rim.couplings = std::make_unique<Csr>(couplings, context);
    block.rhs = system.take_rhs();
    block.local = system.take_matrix();
  }
  result.b = block.rhs.take_host();
  result.a = std::make_unique<RankMatrix>(std::move(block.local), std::move(block.rim), result.neighbors, ranks);
  return result;
}

/// Setup, a cycle, and cg to the tolerance. `a` is what one rank solves with where there is one only.
void measure_multigrid(MultiPrecisionOperator const& a, std::span<double const> b, SolverOptions const& options,
                       Communicator& ranks, json& report) {
  Context& context = a.context();
  PreconditionerOptions cycle;
  cycle.kind = PreconditionerKind::multigrid;
  cycle.box_nodes = options.box_nodes;
  cycle.blocks = options.blocks;
  cycle.multigrid = options.multigrid;
  {
    auto const setup = make_multigrid(a, cycle);
    if (!setup->failure().empty())
      throw InputError(setup->failure());
    auto const applied = setup->applied_in(0.0);
    Array<double> r(context, b), z(context, a.n_rows());
    Array<std::int32_t> running(context, 1);
    running.set_zero();
    report["cycle_seconds"] = seconds_of(context, ranks, 5, [&] { applied->apply(r.data(), z.data(), running.data()); });
  }
  HostVector<double> x(b.size());
  SolverResult result;
  double setup = 1e300, seconds = 1e300;
  SetupSteps steps;  // of the first run
  SolverOptions first = options;
  first.setup_steps = &steps;
  static_cast<void>(solve(a, b, x, first));
  for (auto const& [name, took] : steps.seconds())
    report["multigrid_setup_steps"][name] = max_over(ranks, took);
  for (int run = 0; run < 2; ++run) {
    ranks.barrier();
    result = solve(a, b, x, options);
    setup = std::min(setup, max_over(ranks, result.setup_seconds));
    seconds = std::min(seconds, max_over(ranks, result.seconds));
  }
  report["multigrid_levels"] = result.multigrid_levels.size();
  report["multigrid_setup_seconds"] = setup;
  report["multigrid_seconds"] = seconds;
  report["multigrid_iterations"] = result.iterations;
  report["multigrid_residual"] = result.residual_recursive;
  report["multigrid_tolerance"] = options.tolerance;
  report["multigrid_status"] = std::string(name_of(result.status));
}

json measure(Job const& job, Settings const& settings, Communicator& ranks) {
  omp_set_num_threads(std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / ranks.size()));
  auto const begin = std::chrono::steady_clock::now();
  auto const context = make_context(settings.backend, ranks.rank());
  std::string const transport = rank_transport(*context, ranks).name();
  double const connected = since(begin), bandwidth = measure_copy_bandwidth(*context);
  Cut const cut(job, ranks.rank());

  auto const build = std::chrono::steady_clock::now();
  RankSystem const system = assemble(*context, cut, settings.format, ranks);
  double const built = since(build);
  RankMatrix const& a = *system.a;
  std::int64_t const n = a.n_rows();
  auto const rows_of_all = static_cast<double>(cut.blocks.whole().size());
  std::int64_t message_bytes = 0;
  for (RankNeighbor const& neighbor : system.neighbors)
    message_bytes = std::max(message_bytes, 8 * neighbor.n_ghosts);
  json report{{"job", std::string(job.weak ? "weak" : "strong") + ":" + std::to_string(job.n) + ":" + std::to_string(job.ranks)},
              {"device", context->description().name},
              {"transport", transport},
              {"format", std::string(name_of(a.local().format()))},
              {"rows", rows_of_all},
              {"matrix_bytes", a.bytes()},
              {"message_bytes", message_bytes},
              {"copy_bytes_per_second", bandwidth},
              {"connect_seconds", connected},
              {"build_seconds", built}};

  Halo<double> halo(*context, ranks, HaloPlaces(n, system.neighbors));
  GatheredSum<double> sum(*context, ranks);
  {
    Array<double> x(*context, n), y(*context, n), numbers(*context, 8);
    Array<std::int32_t> running(*context, 1);
    x.set_zero();
    numbers.set_zero();
    running.set_zero();
    report["block_product_seconds"] =
        seconds_of(*context, ranks, 20, [&] { a.local().product_dot(x.data(), y.data(), numbers.data(), running.data()); });
    report["product_seconds"] =
        seconds_of(*context, ranks, 20, [&] { a.product_dot(x.data(), y.data(), numbers.data(), running.data()); });
    report["exchange_seconds"] = seconds_of(*context, ranks, 100, [&] {
      halo.start(x.data());
      static_cast<void>(halo.finish());
    });
    report["sum_seconds"] = seconds_of(*context, ranks, 200, [&] { sum.add(*context, numbers.data(), 4); });
  }

  if (settings.iterations > 0) {
    SolverOptions options;
    options.ranks = ranks.size() > 1 ? ranks : alone();
    options.max_iterations = settings.iterations;
    options.tolerance = 1e-300;
    HostVector<double> solution(system.b.size());
    double seconds = 1e300;
    SolverResult result;
    for (int run = 0; run < 2; ++run) {
      result = solve(a, system.b, solution, options);
      seconds = std::min(seconds, max_over(ranks, result.seconds));
    }
    report["iterations"] = result.iterations;
    report["residual"] = result.residual_recursive;
    report["iteration_seconds"] = seconds / static_cast<double>(std::max<std::int64_t>(result.iterations, 1));
    report["rows_per_second"] = rows_of_all * static_cast<double>(result.iterations) / seconds;
  }
  if (settings.multigrid) {
    SolverOptions options = settings.solver;
    if (ranks.size() > 1) {
      options.ranks = ranks;
      options.blocks = std::make_shared<RankBlocks const>(cut.blocks);
      measure_multigrid(a, system.b, options, ranks, report);
    } else {
      options.box_nodes = cut.blocks.nodes;
      measure_multigrid(a.local(), system.b, options, ranks, report);
    }
  }
  report["device_peak_bytes"] = static_cast<std::int64_t>(max_over(ranks, static_cast<double>(context->memory_peak())));
  return report;
}

constexpr char const* help = R"(ranks_bench [OPTION ...] JOB ...

Times on R devices that share a box of nodes, in blocks of the least surface that have whole lines of nodes in x; ranks are threads
of this process, each on the device of its number. u = 0 all around, f = 1, cells are cubes. A line of JSON for each job:
  strong:N:R   a box of N x N x N nodes on R devices
  weak:N:R     a box of N x N x ((N - 1) R + 1) nodes, N - 1 layers of cells on each device
Of every job: seconds of a product (product_seconds), of its block alone, of an exchange of ghosts, of a sum over the ranks, and of an
iteration of cg without preconditioner (iteration_seconds; the residual after them is the same for every R to rounding).

  --format half_cds|matrix_free   of the matrix; half_cds by default. matrix_free keeps stencils on coarser levels, too, as long as
                            cells are even in number: N = 2^k m + 1
  --iterations n            of that cg; 100 by default, 0: none
  --multigrid               also cg with multigrid: multigrid_setup_seconds, multigrid_seconds (iterations only; the best of two),
                            multigrid_iterations, and the seconds of one cycle (cycle_seconds) and of the setup's steps
  --tolerance t             of that; 1e-12 by default
  --gathered-size n         unknowns from which on every rank has the whole level of multigrid
  --transport direct|nccl|host  how messages go; direct by default, where devices can write into each other's memory
  --backend cuda|cpu        cuda by default; with cpu ranks share the cores
  --json FILE               writes the lines as one report, too

For example:
  ranks_bench --multigrid --json weak.json weak:513:1 weak:513:2 strong:513:1 strong:513:2 strong:257:1 strong:257:2
  ranks_bench --multigrid --format matrix_free --iterations 0 --json free.json weak:1001:1 weak:1001:2
  ranks_bench --multigrid --backend cpu --iterations 20 strong:48:1 strong:48:2
)";

}  // namespace

int main(int argc, char** argv) {
  try {
    setenv("NCCL_P2P_DIRECT_DISABLE", "1", 0);
    setenv("CUDA_MODULE_LOADING", "EAGER", 0);
    Settings settings;
    settings.solver.preconditioner = PreconditionerKind::multigrid;
    std::vector<Job> jobs;
    std::string json_file;
    for (int i = 1; i < argc; ++i) {
      std::string const word = argv[i];
      if (word == "--help") {
        std::fputs(help, stdout);
        return 0;
      }
      if (word == "--multigrid") {
        settings.multigrid = true;
        continue;
      }
      if (!word.starts_with("--")) {
        jobs.push_back(job_of(word));
        continue;
      }
      if (i + 1 == argc)
        throw InputError(word + " needs a value");
      std::string const value = argv[++i];
      if (word == "--iterations")
        settings.iterations = std::stoll(value);
      else if (word == "--format") {
        if (value != "half_cds" && value != "matrix_free")
          throw InputError("the formats are half_cds and matrix_free");
        settings.format = value == "half_cds" ? Format::half_cds : Format::matrix_free;
      } else if (word == "--tolerance")
        settings.solver.tolerance = std::stod(value);
      else if (word == "--gathered-size")
        settings.solver.multigrid.gathered_size = std::stoll(value);
      else if (word == "--backend")
        settings.backend = value == "cpu" ? Backend::cpu : Backend::cuda;
      else if (word == "--transport")
        value == "direct" ? unsetenv("POISSON_NCCL") : setenv("POISSON_NCCL", value == "host" ? "0" : "1", 1);
      else if (word == "--json")
        json_file = value;
      else
        throw InputError("unknown option " + word + "; see ranks_bench --help");
    }
    json report{{"bench", "ranks"}, {"rows", json::array()}};
    for (Job const& job : jobs) {
      if (settings.backend == Backend::cuda && job.ranks > cuda_device_count())
        throw InputError(std::to_string(job.ranks) + " ranks, and " + std::to_string(cuda_device_count()) + " devices");
      testing::ThreadRanks::run(job.ranks, [&](Communicator& ranks) {
        json const row = measure(job, settings, ranks);
        if (ranks.rank() != 0)
          return;
        std::printf("%s\n", row.dump().c_str());
        std::fflush(stdout);
        report["rows"].push_back(row);
      });
    }
    if (!json_file.empty())
      std::ofstream(json_file) << report.dump(2) << '\n';
  } catch (std::exception const& error) {
    std::fprintf(stderr, "ranks_bench: %s\n", error.what());
    return 1;
  }
}
