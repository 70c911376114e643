#include "app/cli/svd_command.hpp"

#include "app/analysis/dense_svd.hpp"
#include "app/cli/options.hpp"
#include "app/config/config.hpp"
#include "app/launch/exit_code.hpp"

#include <algorithm>

namespace poisson::app {

namespace po = boost::program_options;

namespace {

struct SvdArguments {
  DenseSvdOptions work;
  bool quiet = false;
  bool help = false;
};

SvdArguments parse_svd(std::vector<std::string> const& words) {
  SvdArguments a;
  DenseSvdOptions& work = a.work;
  std::string random, seed, band_width, backend, threads;
  std::vector<std::string> sets;
  po::options_description visible("poisson svd --matrix FILE | --random N\n\nOptions");
  auto add = visible.add_options();
  add("help,h", po::bool_switch(&a.help), "this text");
  add("matrix", po::value(&work.matrix)->value_name("FILE"),
      "the matrix: a Matrix Market file, array or coordinate, .mtx or .mtx.gz; taken as dense");
  add("random", po::value(&random)->value_name("N"), "an N x N matrix with entries uniform in [-0.5, 0.5]");
  add("seed", po::value(&seed)->value_name("S"), "of --random (default: 1)");
  add("vectors", po::bool_switch(&work.vectors), "singular vectors too, and how accurate they are");
  add("band-width", po::value(&band_width)->value_name("L"), "of the band between the two stages (default: tuned)");
  add("output", po::value(&work.output)->value_name("DIR"),
      "write singular_values.csv, spectrum.png, result.json and, with --vectors, u.mtx and v.mtx (default: nothing is written)");
  add("set", po::value(&sets)->composing()->value_name("key.path=value"), "backend, output.directory or output.picture");
  add("overwrite", po::bool_switch(&work.overwrite), "replace the results of an earlier run");
  add("backend", po::value(&backend)->value_name("auto|cpu|cuda"), "where to compute");
  add("threads", po::value(&threads)->value_name("N"), "CPU threads (default: all)");
  add("quiet", po::bool_switch(&a.quiet), "print errors and warnings only");
  po::variables_map const map = read_options("svd", words, visible).map;
  if (a.help)
    return a;
  auto const refuse = [](std::string const& message) { throw usage_error("svd", message); };
  auto const given = [&](char const* option) { return map.count(option) > 0; };
  if (given("matrix") == given("random"))
    refuse(given("matrix") ? "--matrix and --random exclude each other" : "a matrix is needed: --matrix FILE or --random N");
  if (given("matrix") && work.matrix.empty())
    refuse("--matrix must name a file, found ''");
  if (given("random"))
    work.random = parse_integer<std::int64_t>("svd", "--random", random, 1, largest_dense);
  if (given("seed") && !given("random"))
    refuse("--seed belongs to --random, and the matrix comes from a file");
  if (given("seed"))
    work.seed = parse_integer<std::int64_t>("svd", "--seed", seed, 0, std::int64_t{1} << 62);
  if (given("band-width"))
    work.band_width = parse_integer<int>("svd", "--band-width", band_width, 1, static_cast<int>(largest_dense));
  if (given("threads"))
    work.threads = parse_integer("svd", "--threads", threads, 1, 4096);
  if (given("output") && work.output.empty())
    refuse("--output must name a directory, found ''");
  for (auto const& set : sets)
    if (!set.starts_with("backend=") && !set.starts_with("output.directory=") && !set.starts_with("output.picture="))
      refuse("--set takes backend, output.directory and output.picture here, found '" + set + "'");
  SystemSpec system;
  system.matrix = given("matrix") ? work.matrix : "random";
  RunConfig const config = system_configuration(system, sets).config();
  if (!given("output") && std::any_of(sets.begin(), sets.end(), [](auto const& s) { return s.starts_with("output.directory="); }))
    work.output = config.output.directory;
  work.picture = config.output.picture;
  work.backend = config.backend;
  if (given("backend"))
    work.backend = backend == "auto" ? std::nullopt : std::optional(parse_named<Backend>("svd", "backend", backend));
  return a;
}

}  // namespace

int run_svd_command(std::vector<std::string> const& words) {
  SvdArguments const a = parse_svd(words);
  if (a.help)
    return exit_done;
  Console console(a.quiet);
  run_svd(a.work, console);
  return exit_done;
}

}  // namespace poisson::app
