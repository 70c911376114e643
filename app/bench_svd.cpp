#include "app/bench_svd.hpp"

#include "app/bench_session.hpp"
#include "app/command_words.hpp"
#include "app/dense_svd.hpp"
#include "app/svd_report.hpp"
#include "gpu/svd/accuracy.hpp"
#include "gpu/svd/two_stage_rule.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace poisson {

namespace po = boost::program_options;
using json = nlohmann::ordered_json;

namespace {

/// From this size on gesdd (beside a device) and gesvdj take minutes: they are measured only where they are named.
constexpr std::int64_t slow_peers_from = 5121;

/// "gesdd" of "lapack gesdd": how options call it.
std::string short_name(std::string_view name) {
  return std::string(name.substr(name.find(' ') + 1));
}

SvdPeer parse_peer(std::string const& word) {
  std::vector<std::string> names;
  std::string known;
  for (auto const& [peer, name] : Names<SvdPeer>::values) {
    if (word == short_name(name))
      return peer;
    names.push_back(short_name(name));
    known += (known.empty() ? "" : ", ") + names.back();
  }
  std::string const near = nearest_name(word, names);
  throw usage_error("bench svd", "unknown peer '" + word + "'" + (near.empty() ? "" : "; did you mean '" + near + "'?") +
                                     "; there are " + known);
}

/// How far a result may be off, of 1: some hundred times what rounding does.
double largest_error(std::int64_t n) {
  return 10 * static_cast<double>(std::max<std::int64_t>(n, 10)) * std::numeric_limits<double>::epsilon();
}

struct Measured {
  std::string label;
  json row;
  bool ours = false;
  bool vectors = false;
  Svd svd;  ///< the vectors are given up once they are checked
  std::optional<SvdAccuracy> accuracy;
};

class SvdBench {
public:
  SvdBench(SvdBenchOptions const& options, BenchSession& session) : options_(options), session_(session) {}

  void measure(std::int64_t n) {
    require_host_memory(8 * n * n + svd_host_bytes(n, n, options_.vectors),
                        "the decomposition of a matrix of " + with_thousands(n) + " rows");
    session_.working("making a matrix of " + with_thousands(n) + " rows");
    DenseMatrix a = random_matrix(n, n, options_.seed);
    if (options_.symmetric)
      for (std::int64_t j = 0; j < n; ++j)
        for (std::int64_t i = 0; i < j; ++i)
          a(i, j) = a(j, i);
    std::string const kind = options_.symmetric ? "random, symmetric" : "random";
    session_.console.line();
    session_.console.line(kind + ", " + with_thousands(n) + " x " + with_thousands(n) + ", uniform in [-0.5, 0.5]");
    session_.report["matrices"].push_back({{"name", kind + " " + std::to_string(n)},
                                           {"kind", options_.symmetric ? "symmetric" : "random"},
                                           {"n_rows", n},
                                           {"n_columns", n},
                                           {"results", json::array()},
                                           {"peers", json::array()},
                                           {"left_out", json::array()}});
    std::vector<Measured> all;
    try {
      for (bool const vectors : {true, false}) {
        if (!(vectors ? options_.vectors : options_.values))
          continue;
        for (int const width : options_.band_widths.empty() ? std::vector<int>{0} : options_.band_widths)
          take(all, a, "two stages", {{"band_width", width}}, vectors, true, [&, width] {
            SvdOptions how;
            how.vectors = vectors;
            how.band_width = width;
            return svd(a, how, session_.context);
          });
        for (auto const& [peer, name] : Names<SvdPeer>::values)
          if (is_wanted(peer))
            take_peer(all, a, peer, std::string(name), vectors);
      }
    } catch (Interrupted const&) {
      finish(all, n);
      throw;
    }
    finish(all, n);
  }

  void rule(std::int64_t n) {
    constexpr int width = 64;
    session_.working("measuring rates of products");
    BidiagonalizationRates const rates = measure_bidiagonalization_rates(session_.context, n, width);
    session_.report["rule"] = {{"n", n},
                               {"band_width", width},
                               {"gemv_flops_per_second", rates.matrix_vector},
                               {"gemm1_flops_per_second", rates.block_vector},
                               {"gemm3_flops_per_second", rates.chase_back},
                               {"threshold_flops_per_second", rates.threshold()},
                               {"two_stages", rates.two_stages_win()}};
    session_.console.end_progress();
    session_.console.line();
    session_.console.line("Two stages or one, with vectors, for " + with_thousands(n) +
                          " rows (Hirota et al. 2012, eq. 1; L = 64):");
    session_.console.line("  P_GEMV " + number_text(rates.matrix_vector / 1e9, 4) +
                          " GFLOP/s (the read bandwidth over 4 bytes), P_GEMM1 " + number_text(rates.block_vector / 1e9, 4) +
                          ", P_GEMM3 " + number_text(rates.chase_back / 1e9, 4));
    session_.console.line("  P_GEMV " + std::string(rates.two_stages_win() ? "<" : ">=") +
                          " P_GEMM1 P_GEMM3 / (3 P_GEMM1 + P_GEMM3) = " + number_text(rates.threshold() / 1e9, 4) + ": " +
                          (rates.two_stages_win() ? "two stages" : "one stage") + " should be the faster");
  }

private:
  [[nodiscard]] bool is_wanted(SvdPeer peer) const {
    if (options_.choose_peers)
      return std::find(options_.peers.begin(), options_.peers.end(), peer) != options_.peers.end();
    return (peer != SvdPeer::cusolver_syevd || options_.symmetric) &&
           (backend_of(peer) == Backend::cpu || session_.context.backend() == Backend::cuda);
  }

  void take_peer(std::vector<Measured>& all, DenseMatrix const& a, SvdPeer peer, std::string const& label, bool vectors) {
    json const row{{"peer", label}};
    bool const slow =
        peer == SvdPeer::cusolver_gesvdj || (peer == SvdPeer::lapack_gesdd && session_.context.backend() == Backend::cuda);
    std::string const missing = backend_of(peer) == Backend::cpu              ? ""
                                : session_.context.backend() == Backend::cuda ? why_no_cusolver()
                                                                              : "it works on a CUDA device";
    if (!missing.empty())
      session_.leave_out(label, row, missing);
    else if (slow && !options_.choose_peers && a.n_rows >= slow_peers_from)
      session_.leave_out(label, row,
                         "it takes minutes from " + with_thousands(slow_peers_from) + " rows on; --peer " + short_name(label) +
                             " measures it");
    else
      take(all, a, label, row, vectors, false, [&] { return peer_svd(peer, a, vectors, session_.context); });
  }

  template <class Make>
  void take(std::vector<Measured>& all, DenseMatrix const& a, std::string const& label, json row, bool vectors, bool ours,
            Make const& make) {
    if (interrupt_requested())
      throw Interrupted();
    row["vectors"] = vectors;
    session_.unless_refused(label, row, [&] {
      session_.working("decomposing with " + label);
      Measured measured{label, row, ours, vectors, make(), {}};
      for (int i = 1; i < options_.repeats; ++i)
        if (Svd again = make(); again.seconds.total < measured.svd.seconds.total)
          measured.svd = std::move(again);
      if (ours) {
        measured.row["band_width"] = measured.svd.band_width;
        measured.label += ", L = " + std::to_string(measured.svd.band_width);
        measured.row["seconds"] = json_of(measured.svd.seconds);
      } else
        measured.row["seconds"] = measured.svd.seconds.total;
      if (measured.svd.u.n_columns > 0) {
        session_.working("checking " + label);
        measured.accuracy = svd_accuracy(session_.context, a, measured.svd);
        put(*measured.accuracy, measured.row);
        measured.svd.u = {};
        measured.svd.v = {};
      }
      all.push_back(std::move(measured));
    });
  }

  void finish(std::vector<Measured>& all, std::int64_t n) {
    auto const find = [&](std::string const& part) {
      return std::find_if(all.begin(), all.end(), [&](Measured const& m) { return !m.ours && m.label.ends_with(part); });
    };
    auto reference = find(" gesdd");
    if (reference == all.end())
      reference = find(" gesvd");
    std::vector<std::vector<std::string>> table{{"", "vectors", "reduce s", "chase s", "bidiagonal s", "back s", "total s", "I-U'U",
                                                 "I-V'V", "residual", "values", "x this"}};
    double ours[2] = {std::nan(""), std::nan("")};
    for (auto const& m : all)
      if (double& best = ours[m.vectors ? 1 : 0]; m.ours && !(best <= m.svd.seconds.total))
        best = m.svd.seconds.total;
    for (auto& m : all) {
      double values_error = std::nan("");
      if (reference != all.end() && &*reference != &m) {
        values_error = 0;
        for (std::size_t i = 0; i < m.svd.values.size(); ++i)
          values_error = std::max(values_error, std::abs(m.svd.values[i] - reference->svd.values[i]));
        values_error /= reference->svd.values.front();
        m.row["values_error"] = values_error;
      }
      double const worst = std::max({m.accuracy ? m.accuracy->orthogonality_u : 0, m.accuracy ? m.accuracy->orthogonality_v : 0,
                                     m.accuracy ? m.accuracy->residual_relative : 0, std::isnan(values_error) ? 0 : values_error});
      if (m.ours && !(worst <= largest_error(n)))
        session_.wrong(m.label + " is off by " + number_text(worst));
      SvdSeconds const& s = m.svd.seconds;
      double const relative = s.total / ours[m.vectors ? 1 : 0];
      if (!m.ours)
        m.row["seconds_over_ours"] = relative;
      auto const step = [&](double seconds) { return m.ours ? number_text(seconds, 4) : std::string("-"); };
      auto const figure = [&](double SvdAccuracy::*member) { return m.accuracy ? number_text((*m.accuracy).*member) : "-"; };
      table.push_back({m.label, m.vectors ? "yes" : "no", step(s.reduce), step(s.chase), step(s.bidiagonal), step(s.back),
                       number_text(s.total, 4), figure(&SvdAccuracy::orthogonality_u), figure(&SvdAccuracy::orthogonality_v),
                       figure(&SvdAccuracy::residual_relative), number_text(values_error), number_text(relative)});
      session_.of_matrix()[m.ours ? "results" : "peers"].push_back(m.row);
    }
    session_.show(table);
    if (reference != all.end())
      session_.console.line("  values: largest distance to those of " + reference->label +
                            ", over the largest value; x this: seconds over the fastest of two stages");
  }

  SvdBenchOptions const& options_;
  BenchSession& session_;
};

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
                                  "tells the seconds of each step and how\n"
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
  add("repeat", po::value(&repeats)->value_name("N"), "runs, of which the fastest is told (default: 1)");
  add("backend", po::value(&backend)->value_name("auto|cpu|cuda"), "where to measure");
  add("threads", po::value(&threads)->value_name("N"), "CPU threads (default: all)");
  add("json", po::value(&options.json)->value_name("FILE"),
      "write all figures, in SI units; -: to standard output, without tables");
  add("quiet", po::bool_switch(&a.quiet), "print errors and warnings only");
  po::variables_map const map = read_options("bench svd", words, visible).map;
  if (a.help)
    return a;
  auto const given = [&](char const* option) { return map.count(option) > 0; };
  options.sizes = given("size") ? parse_list<std::int64_t>("bench svd", "--size", sizes, 1, largest_dense)
                                : std::vector<std::int64_t>{512, 1024};
  if (given("band-width"))
    options.band_widths = parse_list<int>("bench svd", "--band-width", widths, 1, static_cast<int>(largest_dense));
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
    options.seed = parse_one<std::int64_t>("bench svd", "--seed", seed, 0, std::int64_t{1} << 62);
  if (given("repeat"))
    options.repeats = parse_one("bench svd", "--repeat", repeats, 1, 1000);
  if (given("backend") && backend != "auto")
    options.backend = parse_named<Backend>("bench svd", "backend", backend);
  if (given("threads"))
    options.threads = parse_one("bench svd", "--threads", threads, 1, 4096);
  if (given("json") && options.json.empty())
    throw usage_error("bench svd", "--json must name a file, or - for standard output, found ''");
  a.quiet = a.quiet || options.json == "-";
  return a;
}

}  // namespace

ExitCode run_svd_bench(SvdBenchOptions const& options, Console& console) {
  return run_benchmark("svd", options, console, [&](BenchSession& session) {
    session.report["options"] = {{"seed", options.seed}, {"repeats", options.repeats}, {"symmetric", options.symmetric}};
    SvdBench bench(options, session);
    // The first decomposition on a device loads libraries and code.
    SvdOptions warm_up;
    static_cast<void>(svd(random_matrix(256, 256, 1), warm_up, session.context));
    for (std::int64_t const n : options.sizes)
      bench.measure(n);
    if (options.vectors)
      bench.rule(*std::max_element(options.sizes.begin(), options.sizes.end()));
  });
}

int run_svd_bench_command(std::vector<std::string> const& words) {
  SvdBenchArguments const a = parse(words);
  if (a.help)
    return exit_done;
  Console console(a.quiet);
  return run_svd_bench(a.options, console);
}

}  // namespace poisson
