// ranks_bench [--iterations n] [--transport nccl|host] [--backend cuda|cpu] [--json FILE] weak|strong:N:R ...
// Seconds of an iteration of cg (half_cds, double) on R devices that share a box of N x N nodes and N planes of nodes (strong), or
// N planes each (weak), with u = 0 all around and f = 1; of a product, an exchange of ghosts and a sum over the ranks alone; bytes
// of messages. A JSON line for each job. Ranks are threads of this process, each on the device of its number; messages go by NCCL,
// or with --transport host through host memory. The residual after the iterations is to be the same for every R to rounding.
//
// It sets NCCL_P2P_DIRECT_DISABLE=1 (needed for threads) and CUDA_MODULE_LOADING=EAGER (code that is loaded later may wait for
// kernels that wait for other ranks), unless they are set. Where the driver cannot map memory for multicast, set
// NCCL_NVLS_ENABLE=0.
#include "gpu/core/error.hpp"
#include "gpu/elements/box_system.hpp"
#include "gpu/formats/rank_matrix.hpp"
#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/device_ranks.hpp"
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
      (kind != "weak" && kind != "strong") || job.ranks < 1 || job.n < 2 * job.ranks + 2)
    throw InputError("expected weak:N:R or strong:N:R with N >= 2 R + 2, found " + word);
  job.weak = kind == "weak";
  return job;
}

/// Planes of nodes of a rank, and what it shares with the ranks below and above it.
struct Slab {
  std::int64_t n = 0, low = 0, high = 0, planes = 0;  ///< nodes a side; its planes; planes of all
  int rank = 0, ranks = 1;

  Slab(Job const& job, int number) : n(job.n), planes(job.weak ? job.n * job.ranks : job.n), rank(number), ranks(job.ranks) {
    low = planes * rank / ranks;
    high = planes * (rank + 1) / ranks;
  }
  [[nodiscard]] std::int64_t of_plane() const { return n * n; }
  [[nodiscard]] bool has_lower() const { return rank > 0; }
  [[nodiscard]] bool has_upper() const { return rank + 1 < ranks; }
  [[nodiscard]] double edge() const { return 1.0 / static_cast<double>(n - 1); }
  /// Of the block: own planes, and one of each neighbour, whose nodes have Dirichlet values there. So they couple with nothing and
  /// stay 0, while rows of own nodes have what they have in the whole box.
  [[nodiscard]] std::int64_t block_planes() const { return high - low + (has_lower() ? 1 : 0) + (has_upper() ? 1 : 0); }
  [[nodiscard]] std::int64_t first_own_plane() const { return has_lower() ? 1 : 0; }
  [[nodiscard]] std::int64_t last_own_plane() const { return first_own_plane() + high - low - 1; }
  [[nodiscard]] std::int64_t rows() const { return of_plane() * block_planes(); }
};

BoxProblem problem_of(Slab const& slab) {
  std::int64_t const cells = slab.n - 1, layers = slab.block_planes() - 1;
  double const height = slab.edge() * static_cast<double>(layers);
  ExpressionCode const zero = testing::constant(0).code, one = testing::constant(1).code;
  BoxProblem problem{{cells, cells, layers}, {0, 0, 0}, {1, 1, height}, {one}, one, {}};
  for (auto& face : problem.faces)
    face.value = zero;
  return problem;
}

/// Appends the couplings of a plane of own rows, the first of which is `row`, with a neighbour's plane, whose ghosts begin with
/// `ghost`: of trilinear elements on cubes, k = 1, with the node beside 0, with those at its edges -h/6, at its corners -h/12.
void add_couplings(Slab const& slab, std::int64_t row, std::int64_t ghost, SplitRows& rows, CsrMatrix& couplings) {
  std::int64_t const n = slab.n;
  for (std::int64_t y = 1; y + 1 < n; ++y)
    for (std::int64_t x = 1; x + 1 < n; ++x) {
      rows.rim.push_back(static_cast<std::int32_t>(row + y * n + x));
      for (std::int64_t v = std::max<std::int64_t>(y - 1, 1); v <= std::min(y + 1, n - 2); ++v)
        for (std::int64_t u = std::max<std::int64_t>(x - 1, 1); u <= std::min(x + 1, n - 2); ++u)
          if (u != x || v != y) {
            couplings.columns.push_back(static_cast<std::int32_t>(ghost + v * n + u));
            couplings.values.push_back(u == x || v == y ? -slab.edge() / 6 : -slab.edge() / 12);
          }
      couplings.row_ptr.push_back(static_cast<std::int64_t>(couplings.columns.size()));
    }
}

RankNeighbor neighbor_of(Slab const& slab, int rank, std::int64_t plane) {
  RankNeighbor neighbor{rank, std::vector<std::int32_t>(static_cast<std::size_t>(slab.of_plane())), slab.of_plane()};
  for (std::int64_t i = 0; i < slab.of_plane(); ++i)
    neighbor.sent[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(plane * slab.of_plane() + i);
  return neighbor;
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
  return max_over(&ranks, best);
}

json measure(Job const& job, Backend backend, std::int64_t iterations, Communicator& ranks) {
  omp_set_num_threads(std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / ranks.size()));
  auto const begin = std::chrono::steady_clock::now();
  auto const context = make_context(backend, ranks.rank());
  std::string const transport = rank_transport(*context, ranks).name;
  double const connected = since(begin), bandwidth = measure_copy_bandwidth(*context);
  Slab const slab(job, ranks.rank());

  auto const build = std::chrono::steady_clock::now();
  std::vector<RankNeighbor> neighbors;
  auto local = std::make_shared<CsrMatrix>(), couplings = std::make_shared<CsrMatrix>();
  SplitRows rows;
  local->n_rows = local->n_columns = slab.rows();  // RankMatrix asks for no more of it
  couplings->row_ptr.push_back(0);
  if (slab.has_lower()) {
    neighbors.push_back(neighbor_of(slab, slab.rank - 1, slab.first_own_plane()));
    add_couplings(slab, slab.first_own_plane() * slab.of_plane(), 0, rows, *couplings);
  }
  if (slab.has_upper()) {
    std::int64_t const ghost = slab.has_lower() ? slab.of_plane() : 0;
    neighbors.push_back(neighbor_of(slab, slab.rank + 1, slab.last_own_plane()));
    add_couplings(slab, slab.last_own_plane() * slab.of_plane(), ghost, rows, *couplings);
  }
  couplings->n_rows = static_cast<std::int64_t>(rows.rim.size());
  couplings->n_columns = static_cast<std::int64_t>(neighbors.size()) * slab.of_plane();
  rows.local = local;
  rows.couplings = couplings;
  HostVector<double> b;
  std::unique_ptr<Matrix> block;
  {
    BoxSystem system(*context, problem_of(slab));
    b = system.take_rhs();
    block = system.take_matrix();
  }
  Matrix const& of_block = *block;
  RankMatrix const a(std::move(block), rows, neighbors, ranks);
  double const built = since(build);

  GhostExchange<double> exchange(*context, ranks, neighbors);
  GatheredSum<double> sum(*context, &ranks);
  Array<double> x(*context, slab.rows()), y(*context, slab.rows()), numbers(*context, 8);
  Array<std::int32_t> running(*context, 1);
  x.set_zero();
  numbers.set_zero();
  running.set_zero();
  double const block_seconds =
      seconds_of(*context, ranks, 20, [&] { of_block.product_dot(x.data(), y.data(), numbers.data(), running.data()); });
  double const product =
      seconds_of(*context, ranks, 20, [&] { a.product_dot(x.data(), y.data(), numbers.data(), running.data()); });
  double const exchanged = seconds_of(*context, ranks, 100, [&] {
    exchange.start(x.data());
    static_cast<void>(exchange.finish());
  });
  double const summed = seconds_of(*context, ranks, 200, [&] { sum.add(*context, numbers.data(), 4); });
  x = Array<double>();
  y = Array<double>();

  SolverOptions options;
  options.ranks = ranks.size() > 1 ? &ranks : nullptr;
  options.max_iterations = iterations;
  options.tolerance = 1e-300;
  HostVector<double> solution(b.size());
  double seconds = 1e300, residual = 0;
  std::int64_t done = 0;
  for (int run = 0; run < 2; ++run) {
    SolverResult const result = solve(a, b, solution, options);
    done = result.iterations;
    seconds = std::min(seconds, max_over(&ranks, result.seconds));
    residual = result.residual_recursive;
  }
  double const rows_of_all = static_cast<double>(slab.planes * slab.of_plane());
  return {{"job", std::string(job.weak ? "weak" : "strong") + ":" + std::to_string(job.n) + ":" + std::to_string(job.ranks)},
          {"device", context->description().name},
          {"transport", transport},
          {"rows", rows_of_all},
          {"iterations", done},
          {"residual", residual},
          {"iteration_seconds", seconds / static_cast<double>(std::max<std::int64_t>(done, 1))},
          {"rows_per_second", rows_of_all * static_cast<double>(done) / seconds},
          {"block_product_seconds", block_seconds},
          {"product_seconds", product},
          {"exchange_seconds", exchanged},
          {"sum_seconds", summed},
          {"message_bytes", neighbors.empty() ? 0 : 8 * slab.of_plane()},
          {"copy_bytes_per_second", bandwidth},
          {"connect_seconds", connected},
          {"build_seconds", built},
          {"device_peak_bytes", context->memory_peak()}};
}

}  // namespace

int main(int argc, char** argv) {
  try {
    setenv("NCCL_P2P_DIRECT_DISABLE", "1", 0);
    setenv("CUDA_MODULE_LOADING", "EAGER", 0);
    Backend backend = Backend::cuda;
    std::int64_t iterations = 100;
    std::vector<Job> jobs;
    std::string json_file;
    for (int i = 1; i < argc; ++i) {
      std::string const word = argv[i];
      if (word.starts_with("--") && i + 1 == argc)
        throw InputError(word + " needs a value");
      if (word == "--iterations")
        iterations = std::stoll(argv[++i]);
      else if (word == "--backend")
        backend = std::string(argv[++i]) == "cpu" ? Backend::cpu : Backend::cuda;
      else if (word == "--transport")
        setenv("POISSON_NCCL", std::string(argv[++i]) == "host" ? "0" : "1", 1);
      else if (word == "--json")
        json_file = argv[++i];
      else
        jobs.push_back(job_of(word));
    }
    json report{{"bench", "ranks"}, {"rows", json::array()}};
    for (Job const& job : jobs) {
      if (backend == Backend::cuda && job.ranks > cuda_device_count())
        throw InputError(std::to_string(job.ranks) + " ranks, and " + std::to_string(cuda_device_count()) + " devices");
      testing::ThreadRanks::run(job.ranks, [&](Communicator& ranks) {
        json const row = measure(job, backend, iterations, ranks);
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
