#pragma once

#include "app/config/config.hpp"
#include "app/io/console.hpp"
#include "app/run/run.hpp"
#include "gpu/core/context.hpp"
#include "gpu/formats/format.hpp"
#include "gpu/solvers/solver.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace poisson::app {

enum class BenchKind { spmv, convert, solve, svd };
}  // namespace poisson::app

template <>
struct poisson::Names<poisson::app::BenchKind> {
  static constexpr std::array<Named<app::BenchKind>, 4> values{{{app::BenchKind::spmv, "spmv"},
                                                                {app::BenchKind::convert, "convert"},
                                                                {app::BenchKind::solve, "solve"},
                                                                {app::BenchKind::svd, "svd"}}};
};

namespace poisson::app {

/// Backend, threads and JSON file of a benchmark.
struct BenchTarget {
  std::optional<Backend> backend;  ///< nothing: cuda where it can be used
  int threads = 0;                 ///< 0: all that the process may use
  std::string json;                ///< file for all figures; "-": standard output; empty: none
};

/// Options of `poisson bench spmv|convert|solve`. With no matrix named: the box of 64^3 nodes, and for products and
/// conversions the band and the random matrix.
struct BenchOptions : BenchTarget {
  BenchKind kind{};                 ///< not svd, which has options of its own: SvdBenchOptions
  std::vector<std::int64_t> nodes;  ///< boxes of nodes^3
  int order = 1;                    ///< of the boxes' elements
  bool band = false, random = false;
  std::int64_t rows = std::int64_t{1} << 17;  ///< of band and random
  std::vector<std::string> files;             ///< Matrix Market
  std::string config;                         ///< path of a configuration, whose assembled matrix is one more; empty: none
  std::vector<Format> formats;                ///< empty: all
  std::vector<int> slice_sizes{32};           ///< sliced formats are measured with each
  std::optional<std::int64_t> sigma;          ///< nothing: each format's own
  int threads_per_row = 0;
  int samples = 15;              ///< of each time; medians are reported
  std::int64_t products = 1000;  ///< that `auto` expects
  // of solve
  bool automatic = false;             ///< the format that `auto` picks, beside `formats`, or alone when those are empty
  std::vector<Method> methods;        ///< empty: cg, or for a matrix that is not symmetric the first that takes it
  std::vector<Precision> precisions;  ///< empty: double
  std::vector<MatrixPrecision> matrix_precisions;   ///< empty: double
  std::vector<PreconditionerKind> preconditioners;  ///< empty: none
  std::vector<Ordering> orderings;                  ///< of ic0 and ilu0; empty: auto
  double shift = 0;                                 ///< SolverOptions::shift
  double tolerance = 1e-12;
  std::int64_t max_iterations = 10000;
  double max_seconds = 60;  ///< of one solve
  std::string cupy;         ///< path of tests/bench/cupy_cg.py, to run CuPy's cg as well; empty: not
};

/// `poisson bench`: for every matrix a table of all formats that hold it, and JSON; with spmv also which of them `auto` takes, and
/// how much longer that is than the fastest measured, conversion and products together; with solve every format by every method,
/// precision and preconditioner asked for. `problem` (may be null) is one more matrix: that which its configuration assembles.
/// Returns exit_done; exit_not_converged when a product or a conversion was wrong; interrupted_code() after an interrupt: what was
/// measured until then is told. Throws InputError or EnvironmentError; JSON of what was measured is then written as well.
[[nodiscard]] ExitCode run_bench(BenchOptions const& options, Configuration const* problem, Console& console);

}  // namespace poisson::app
