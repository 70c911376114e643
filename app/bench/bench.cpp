#include "app/bench/bench.hpp"

#include "app/bench/matrices.hpp"
#include "app/bench/session.hpp"
#include "gpu/core/communicator.hpp"

namespace poisson::app {

namespace {

using json = nlohmann::ordered_json;

json json_of(BenchOptions const& options) {
  json result{{"slice_sizes", options.slice_sizes},
              {"sigma", options.sigma ? json(*options.sigma) : json()},  // null: each format's own
              {"threads_per_row", options.threads_per_row},
              {"samples", options.samples},
              {"products", options.products}};
  if (options.kind == BenchKind::solve)
    result.update({{"tolerance", options.tolerance},
                   {"shift", options.shift},
                   {"max_iterations", options.max_iterations},
                   {"max_seconds", options.max_seconds}});
  return result;
}

void measure(BenchSource const& source, Benchmark& benchmark, BenchSession& session) {
  session.working("making " + source.name);
  Timer const timer;
  BenchMatrix const matrix = source.make(session.context, session.team);
  session.context.synchronize();
  double const seconds = max_over(session.ranks, timer.seconds());
  session.console.line();
  session.console.line(source.name + ": " + with_thousands(matrix.n_rows) +
                       (matrix.n_rows == matrix.n_columns ? "" : " x " + with_thousands(matrix.n_columns)) + " rows, " +
                       with_thousands(matrix.nnz) + " non-zeros, " + bytes_text(static_cast<double>(matrix.csr_bytes)) +
                       " in csr, made in " + seconds_text(seconds));
  session.report["matrices"].push_back({{"name", source.name},
                                        {"kind", source.kind},
                                        {"n_rows", matrix.n_rows},
                                        {"n_columns", matrix.n_columns},
                                        {"nnz", matrix.nnz},
                                        {"csr_bytes", matrix.csr_bytes},
                                        {"make_seconds", seconds},
                                        {"results", json::array()},
                                        {"peers", json::array()},
                                        {"left_out", json::array()}});
  benchmark.measure(source, matrix);
}

}  // namespace

ExitCode run_bench(BenchOptions const& options, Configuration const* problem, Console& console, Team& team) {
  std::vector<BenchSource> sources;
  team.together([&] { sources = bench_sources(options, problem); });
  team.on_first([&] { require_matrix_files(options); });
  auto const body = [&](BenchSession& session) {
    session.report["options"] = json_of(options);
    auto const benchmark = options.kind == BenchKind::spmv    ? make_product_bench(options, session)
                           : options.kind == BenchKind::solve ? make_solve_bench(options, session)
                                                              : make_conversion_bench(options, session);
    for (BenchSource const& source : sources) {
      if (any_of_ranks(session.ranks, interrupt_requested()))
        throw Interrupted();
      measure(source, *benchmark, session);
    }
    benchmark->finish();
  };
  return run_benchmark(std::string(name_of(options.kind)), options, console, body, team);
}

}  // namespace poisson::app
