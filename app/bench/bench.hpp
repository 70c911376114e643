#pragma once

#include "app/config/config.hpp"
#include "app/io/console.hpp"
#include "app/launch/team.hpp"
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
  std::optional<Backend> backend;  ///< no value: cuda where it is available, else cpu
  int threads = 0;                 ///< 0: all that the process may use
  std::string json;                ///< file for the JSON record; "-": standard output; empty: none
};

/// Options of `poisson bench spmv|convert|solve`. Without any matrix in them: a box of 64^3 nodes, and for spmv and convert also
/// the band and the random matrix.
struct BenchOptions : BenchTarget {
  BenchKind kind{};                 ///< not svd: see SvdBenchOptions
  std::vector<std::int64_t> nodes;  ///< boxes with nodes^3 nodes
  int order = 1;                    ///< of the boxes' elements
  bool band = false, random = false;
  std::int64_t rows = std::int64_t{1} << 17;  ///< of band and random
  std::vector<std::string> files;             ///< paths of Matrix Market files
  std::string config;                         ///< path of a configuration whose assembled matrix is measured too; empty: none
  std::vector<Format> formats;                ///< empty: all
  std::vector<int> slice_sizes{32};           ///< sliced formats are measured with each
  std::optional<std::int64_t> sigma;          ///< no value: the default of each format
  int threads_per_row = 0;
  int samples = 15;              ///< measurements of each time; their median is reported
  std::int64_t products = 1000;  ///< number of products that `auto` optimises for
  // for solve only
  bool automatic = false;             ///< also the format that `auto` chooses; alone if `formats` is empty
  std::vector<Method> methods;        ///< empty: cg; for a matrix that is not symmetric the first method that allows it
  std::vector<Precision> precisions;  ///< empty: double
  std::vector<MatrixPrecision> matrix_precisions;   ///< empty: double
  std::vector<PreconditionerKind> preconditioners;  ///< empty: none
  std::vector<Ordering> orderings;                  ///< of ic0 and ilu0; empty: auto
  double shift = 0;                                 ///< SolverOptions::shift
  double tolerance = 1e-12;
  std::int64_t max_iterations = 10000;
  double max_seconds = 60;  ///< limit of one solve, in seconds
  std::string cupy;         ///< path of tests/bench/cupy_cg.py, to measure CuPy's cg too; empty: not measured
};

/// `poisson bench`: prints a table per matrix with all formats that can hold it, and writes JSON. spmv also compares the choice of
/// `auto` with the fastest format measured, conversion and products together. solve measures all combinations of the formats,
/// methods, precisions and preconditioners requested. `problem` (may be null) is a configuration whose assembled matrix is measured
/// too. Returns exit_done; exit_not_converged when a result was wrong; interrupted_code() after an interrupt, with what was
/// measured until then. The ranks of a team all call it alike: they share every matrix, times are those of the
/// slowest one, and only spmv and solve are measured. Throws InputError or EnvironmentError, after the JSON of what was measured is
/// written.
[[nodiscard]] ExitCode run_bench(BenchOptions const& options, Configuration const* problem, Console& console,
                                 Team& team = alone_team());

}  // namespace poisson::app
