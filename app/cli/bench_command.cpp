#include "app/cli/bench_command.hpp"

#include "app/bench/bench.hpp"
#include "app/cli/options.hpp"
#include "app/cli/svd_bench_command.hpp"
#include "app/launch/exit_code.hpp"
#include "app/launch/processors.hpp"
#include "app/launch/same_configuration.hpp"

#include <bit>

namespace poisson::app {

namespace po = boost::program_options;

namespace {

struct BenchArguments {
  BenchOptions options;
  std::vector<std::string> sets;
  bool quiet = false;
  bool help = false;
};

/// What stands behind the options, as it was given.
struct BenchWords {
  std::string nodes, order, rows, formats, slice_sizes, sigma, threads_per_row, backend, threads, samples, products, methods,
      precisions, matrix_precisions, preconditioners, orderings, shift, tolerance, max_iterations, max_seconds;
};

po::options_description describe_bench(BenchArguments& a, BenchWords& w) {
  po::options_description visible("poisson bench spmv|convert|solve [CONFIG]\n\n"
                                  "Measures products (spmv), conversions from CSR (convert) or solvers (solve), of every matrix "
                                  "that is named, in every format that\n"
                                  "holds it. With none named: --nodes 64 --band --random; of solve --nodes 64. solve takes the "
                                  "right-hand side of CONFIG, or all\n"
                                  "ones. Dense matrices have another command: poisson bench svd --help.\n\nMatrices");
  auto matrices = visible.add_options();
  matrices("nodes", po::value(&w.nodes)->value_name("N[,N...]"), "box of N^3 nodes");
  matrices("order", po::value(&w.order)->value_name("P"),
           "of the boxes' elements (1: the 27-point matrix; more: assembled on (N-1)/P cells a side)");
  matrices("band", po::bool_switch(&a.options.band), "32 consecutive diagonals");
  matrices("random", po::bool_switch(&a.options.random), "32 random columns a row");
  matrices("rows", po::value(&w.rows)->value_name("N"), "rows of band and random (default: 131072)");
  matrices("matrix", po::value(&a.options.files)->composing()->value_name("FILE"),
           "Matrix Market file, .mtx or .mtx.gz; may be given several times");
  matrices("set", po::value(&a.sets)->composing()->value_name("key.path=value"),
           "override a key of CONFIG, whose assembled matrix is taken");
  po::options_description measuring("Options");
  auto add = measuring.add_options();
  add("help,h", po::bool_switch(&a.help), "this text");
  add("format", po::value(&w.formats)->value_name("F[,F...]"),
      "formats to measure (default: all); of solve also auto, the one that it takes");
  add("slice-size", po::value(&w.slice_sizes)->value_name("C[,C...]"), "rows of a slice (default: 32)");
  add("sigma", po::value(&w.sigma)->value_name("S"), "rows sorted by length together (0: all; default: each format's own)");
  add("threads-per-row", po::value(&w.threads_per_row)->value_name("T"), "of crs_t on a GPU (default: 0, by its rule)");
  add("backend", po::value(&w.backend)->value_name("auto|cpu|cuda"), "where to measure");
  add("threads", po::value(&w.threads)->value_name("N"), "CPU threads (default: all)");
  add("repeat", po::value(&w.samples)->value_name("N"),
      "samples of each product's time, of which the median is reported (default: 15); of solve at most 5 runs, as long as they are "
      "short");
  add("products", po::value(&w.products)->value_name("N"),
      "products after one conversion, for which spmv tells what auto takes and which format was fastest (default: 1000)");
  add("method", po::value(&w.methods)->value_name("M[,M...]|all"), "of solve (default: cg; for unsymmetric matrices another)");
  add("precision", po::value(&w.precisions)->value_name("P[,P...]|all"), "of solve (default: double)");
  add("matrix-precision", po::value(&w.matrix_precisions)->value_name("P[,P...]|all"),
      "of solve, of the stored values (default: double)");
  add("preconditioner", po::value(&w.preconditioners)->value_name("P[,P...]|all"), "of solve (default: none)");
  add("ordering", po::value(&w.orderings)->value_name("O[,O...]|all"),
      "of solve, of the rows in ic0 and ilu0 (default: auto), see the key solver.ordering");
  add("shift", po::value(&w.shift)->value_name("S"), "of solve, of ic0 and ilu0 (default: 0), see the key solver.shift");
  add("tolerance", po::value(&w.tolerance)->value_name("T"), "of solve, on ||b - A x|| / ||b|| (default: 1e-12)");
  add("max-iterations", po::value(&w.max_iterations)->value_name("N"), "of one solve (default: 10000)");
  add("max-seconds", po::value(&w.max_seconds)->value_name("S"), "of one solve (default: 60)");
  add("cupy", po::value(&a.options.cupy)->value_name("SCRIPT"),
      "of solve, on a GPU: runs SCRIPT (tests/bench/cupy_cg.py) by python3, to have CuPy's cg beside");
  add("json", po::value(&a.options.json)->value_name("FILE"),
      "write all figures, in SI units; -: to standard output, without tables");
  add("quiet", po::bool_switch(&a.quiet), "print errors and warnings only");
  visible.add(measuring);
  return visible;
}

void parse_matrices(po::variables_map const& map, BenchWords const& w, BenchOptions& options) {
  if (map.count("nodes") > 0)
    options.nodes = parse_integers<std::int64_t>("bench", "--nodes", w.nodes, 1, 1290);
  if (map.count("order") > 0)
    options.order = parse_integer("bench", "--order", w.order, 1, 8);
  if (options.order > 1 && options.nodes.empty())
    throw usage_error("bench", "--order sets the order of elements on boxes; give the size of boxes with --nodes");
  if (map.count("rows") > 0)
    options.rows = parse_integer<std::int64_t>("bench", "--rows", w.rows, 1, std::int64_t{1} << 30);
  if (map.count("rows") > 0 && !options.band && !options.random)
    throw usage_error("bench", "--rows is the size of the band and the random matrix; add --band or --random");
  if (options.kind == BenchKind::solve && (options.band || options.random))
    throw usage_error("bench",
                      "--band and --random make matrices to multiply with; poisson bench solve takes --nodes, --matrix or CONFIG");
}

void parse_formats(po::variables_map const& map, BenchWords const& w, BenchOptions& options) {
  if (map.count("format") > 0) {
    // auto is no format, so it is removed from the list.
    std::string rest;
    for (std::size_t begin = 0; begin <= w.formats.size();) {
      std::size_t const end = std::min(w.formats.find(',', begin), w.formats.size());
      std::string const word = w.formats.substr(begin, end - begin);
      if (options.kind == BenchKind::solve && word == "auto")
        options.automatic = true;
      else
        rest += (rest.empty() ? "" : ",") + word;
      begin = end + 1;
    }
    if (!rest.empty() || !options.automatic)
      options.formats = parse_names<Format>("bench", "format", rest);
    if (rest.find(name_of(Format::matrix_free)) != std::string::npos)
      throw InputError("--format", "matrix_free is made from a problem, and benchmarks measure matrices");
    std::erase(options.formats, Format::matrix_free);  // of "all"
  }
  if (map.count("slice-size") > 0)
    options.slice_sizes = parse_integers("bench", "--slice-size", w.slice_sizes, 1, 1024, true);
  if (map.count("sigma") > 0)
    options.sigma = parse_integer<std::int64_t>("bench", "--sigma", w.sigma, 0, std::int64_t{1} << 31);
  if (map.count("threads-per-row") > 0) {
    options.threads_per_row = parse_integer("bench", "--threads-per-row", w.threads_per_row, 0, 32);
    if (options.threads_per_row != 0 && !std::has_single_bit(static_cast<unsigned>(options.threads_per_row)))
      throw usage_error("bench", "--threads-per-row must be a power of two from 1 to 32, or 0, found '" + w.threads_per_row + "'");
  }
}

void parse_solvers(po::variables_map const& map, BenchWords const& w, BenchOptions& options) {
  for (char const* const option : {"method", "precision", "matrix-precision", "preconditioner", "ordering", "shift", "tolerance",
                                   "max-iterations", "max-seconds", "cupy"})
    if (map.count(option) > 0 && options.kind != BenchKind::solve)
      throw usage_error("bench", "--" + std::string(option) + " is an option of poisson bench solve");
  if (map.count("method") > 0)
    options.methods = parse_names<Method>("bench", "method", w.methods);
  // Benchmarks measure what they name: `auto` takes one of the others.
  if (map.count("precision") > 0)
    options.precisions = parse_names<Precision>("bench", "precision", w.precisions, false);
  if (map.count("matrix-precision") > 0)
    options.matrix_precisions = parse_names<MatrixPrecision>("bench", "matrix precision", w.matrix_precisions);
  if (map.count("preconditioner") > 0)
    options.preconditioners = parse_names<PreconditionerKind>("bench", "preconditioner", w.preconditioners, false);
  if (w.preconditioners == "all")
    std::erase(options.preconditioners, PreconditionerKind::direct);  // it is of one rank on the host only
  if (map.count("ordering") > 0)
    options.orderings = parse_names<Ordering>("bench", "ordering", w.orderings);
  if (map.count("shift") > 0)
    options.shift = parse_real("bench", "--shift", w.shift, 0, 1e6);
  if (map.count("tolerance") > 0)
    options.tolerance = parse_real("bench", "--tolerance", w.tolerance, 0, 1);
  if (map.count("max-iterations") > 0)
    options.max_iterations = parse_integer<std::int64_t>("bench", "--max-iterations", w.max_iterations, 1, std::int64_t{1} << 40);
  if (map.count("max-seconds") > 0)
    options.max_seconds = parse_real("bench", "--max-seconds", w.max_seconds, 0, 1e9);
}

BenchArguments parse_bench(std::vector<std::string> const& words) {
  BenchArguments a;
  BenchWords w;
  po::options_description const visible = describe_bench(a, w);
  auto const [map, given] = read_options("bench", words, visible, "words");
  if (a.help)
    return a;
  if (given.empty())
    throw usage_error(
        "bench", "what to measure is missing: poisson bench spmv, poisson bench convert, poisson bench solve or poisson bench svd");
  BenchOptions& options = a.options;
  options.kind = parse_named<BenchKind>("bench", "benchmark", given[0]);
  if (options.kind == BenchKind::svd)
    throw usage_error("bench", "the options of svd stand behind it: poisson bench svd ...");
  if (given.size() > 2)
    throw usage_error("bench", "one configuration file is taken, found also '" + given[2] + "'");
  if (given.size() == 2)
    options.config = given[1];
  if (!a.sets.empty() && options.config.empty())
    throw usage_error("bench", "--set needs a configuration file to change: poisson bench " + given[0] + " CONFIG");
  parse_matrices(map, w, options);
  parse_formats(map, w, options);
  parse_solvers(map, w, options);
  if (map.count("backend") > 0 && w.backend != "auto")
    options.backend = parse_named<Backend>("bench", "backend", w.backend);
  if (map.count("threads") > 0)
    options.threads = parse_integer("bench", "--threads", w.threads, 1, 4096);
  if (map.count("repeat") > 0)
    options.samples = parse_integer("bench", "--repeat", w.samples, 1, 10000);
  if (map.count("products") > 0)
    options.products = parse_integer<std::int64_t>("bench", "--products", w.products, 1, std::int64_t{1} << 40);
  if (map.count("json") > 0 && options.json.empty())
    throw usage_error("bench", "--json must name a file, or - for standard output, found ''");
  a.quiet = a.quiet || options.json == "-";
  return a;
}

}  // namespace

int run_bench_command(std::vector<std::string> const& words, Team& team, std::function<int()> const& threads,
                      std::optional<Configuration>& configuration) {
  if (!words.empty() && words.front() == "svd")
    return run_svd_bench_command({words.begin() + 1, words.end()});
  BenchArguments a;
  team.together([&] {
    a = parse_bench(words);
    if (!a.help && !a.options.config.empty())
      configuration.emplace(load_configuration(a.options.config, a.sets));
  });
  if (a.help)
    return exit_done;
  if (int const of_rank = threads(); a.options.threads == 0)
    a.options.threads = of_rank;
  if (configuration)
    require_same_configuration(configuration->config(), team);
  Console console = team.is_first() ? Console(a.quiet) : Console::silent();
  return run_bench(a.options, configuration ? &*configuration : nullptr, console, team);
}

}  // namespace poisson::app
