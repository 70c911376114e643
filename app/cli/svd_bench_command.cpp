#include "app/cli/svd_bench_command.hpp"

#include "app/analysis/dense_svd.hpp"
#include "app/bench/svd.hpp"
#include "app/cli/options.hpp"
#include "app/launch/exit_code.hpp"

namespace poisson::app {

namespace po = boost::program_options;

namespace {

SvdPeer parse_peer(std::string const& word) {
  std::vector<std::string> names;
  std::string known;
  for (auto const& [peer, name] : Names<SvdPeer>::values) {
    if (word == peer_option(name))
      return peer;
    names.push_back(peer_option(name));
    known += (known.empty() ? "" : ", ") + names.back();
  }
  std::string const near = nearest_name(word, names);
  throw usage_error("bench svd", "unknown peer '" + word + "'" + (near.empty() ? "" : "; did you mean '" + near + "'?") +
                                     "; there are " + known);
}

struct SvdBenchArguments {
  SvdBenchOptions options;
  bool quiet = false, help = false;
};

SvdBenchArguments parse(std::vector<std::string> const& words) {
  SvdBenchArguments a;
  SvdBenchOptions& options = a.options;
  std::string sizes, widths, peers, seed, repeats, backend, threads;
  bool only_values = false, only_vectors = false;
  po::options_description visible("poisson bench svd\n\n"
                                  "Decomposes random matrices in two stages, and beside it by LAPACK and, on a GPU, cuSOLVER; "
                                  "reports the seconds of each step and how\n"
                                  "accurate the results are.\n\nOptions");
  auto add = visible.add_options();
  add("help,h", po::bool_switch(&a.help), "this text");
  add("size", po::value(&sizes)->value_name("N[,N...]"), "rows and columns (default: 512,1024)");
  add("band-width", po::value(&widths)->value_name("L[,L...]"), "of the band between the stages (default: tuned)");
  add("values", po::bool_switch(&only_values), "without vectors only");
  add("vectors", po::bool_switch(&only_vectors), "with vectors only (default: both)");
  add("symmetric", po::bool_switch(&options.symmetric), "symmetric matrices, with syevd beside");
  add("peer", po::value(&peers)->value_name("P[,P...]"),
      "of gesdd (LAPACK), gesvd, gesvdj, gesvdp, syevd (cuSOLVER), or none (default: those that take no minutes)");
  add("seed", po::value(&seed)->value_name("S"), "of the matrices (default: 1)");
  add("repeat", po::value(&repeats)->value_name("N"), "runs, of which the fastest is reported (default: 1)");
  add("backend", po::value(&backend)->value_name("auto|cpu|cuda"), "where to measure");
  add("threads", po::value(&threads)->value_name("N"), "CPU threads (default: all)");
  add("json", po::value(&options.json)->value_name("FILE"),
      "write all figures, in SI units; -: to standard output, without tables");
  add("quiet", po::bool_switch(&a.quiet), "print errors and warnings only");
  po::variables_map const map = read_options("bench svd", words, visible).map;
  if (a.help)
    return a;
  auto const given = [&](char const* option) { return map.count(option) > 0; };
  options.sizes = given("size") ? parse_integers<std::int64_t>("bench svd", "--size", sizes, 1, largest_dense)
                                : std::vector<std::int64_t>{512, 1024};
  if (given("band-width"))
    options.band_widths = parse_integers<int>("bench svd", "--band-width", widths, 1, static_cast<int>(largest_dense));
  options.values = !only_vectors || only_values;
  options.vectors = !only_values || only_vectors;
  options.choose_peers = given("peer");
  for (std::size_t begin = 0; given("peer") && peers != "none" && begin <= peers.size();) {
    std::size_t const end = std::min(peers.find(',', begin), peers.size());
    options.peers.push_back(parse_peer(peers.substr(begin, end - begin)));
    if (options.peers.back() == SvdPeer::cusolver_syevd && !options.symmetric)
      throw usage_error("bench svd", "--peer syevd decomposes symmetric matrices; add --symmetric");
    begin = end + 1;
  }
  if (given("seed"))
    options.seed = parse_integer<std::int64_t>("bench svd", "--seed", seed, 0, std::int64_t{1} << 62);
  if (given("repeat"))
    options.repeats = parse_integer("bench svd", "--repeat", repeats, 1, 1000);
  if (given("backend") && backend != "auto")
    options.backend = parse_named<Backend>("bench svd", "backend", backend);
  if (given("threads"))
    options.threads = parse_integer("bench svd", "--threads", threads, 1, 4096);
  if (given("json") && options.json.empty())
    throw usage_error("bench svd", "--json must name a file, or - for standard output, found ''");
  a.quiet = a.quiet || options.json == "-";
  return a;
}

}  // namespace

int run_svd_bench_command(std::vector<std::string> const& words) {
  SvdBenchArguments const a = parse(words);
  if (a.help)
    return exit_done;
  Console console(a.quiet);
  return run_svd_bench(a.options, console);
}

}  // namespace poisson::app
