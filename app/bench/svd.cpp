#include "app/bench/svd.hpp"

#include "app/analysis/dense_svd.hpp"
#include "app/analysis/svd_report.hpp"
#include "app/bench/session.hpp"
#include "gpu/spectral/accuracy.hpp"
#include "gpu/spectral/two_stage_rule.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace poisson::app {

using json = nlohmann::ordered_json;

namespace {

/// From this size on gesdd (beside a device) and gesvdj take minutes: they are measured only where they are named.
constexpr std::int64_t slow_peers_from = 5121;

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
          measure_one(all, a, "two stages", {{"band_width", width}}, vectors, true, [&, width] {
            SvdOptions how;
            how.vectors = vectors;
            how.band_width = width;
            return svd(a, how, session_.context);
          });
        for (auto const& [peer, name] : Names<SvdPeer>::values)
          if (is_wanted(peer))
            measure_peer(all, a, peer, std::string(name), vectors);
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
                               {"two_stages", rates.two_stages_faster()}};
    session_.console.end_progress();
    session_.console.line();
    session_.console.line("Two stages or one, with vectors, for " + with_thousands(n) +
                          " rows (Hirota et al. 2012, eq. 1; L = 64):");
    session_.console.line("  P_GEMV " + number_text(rates.matrix_vector / 1e9, 4) +
                          " GFLOP/s (the read bandwidth over 4 bytes), P_GEMM1 " + number_text(rates.block_vector / 1e9, 4) +
                          ", P_GEMM3 " + number_text(rates.chase_back / 1e9, 4));
    session_.console.line("  P_GEMV " + std::string(rates.two_stages_faster() ? "<" : ">=") +
                          " P_GEMM1 P_GEMM3 / (3 P_GEMM1 + P_GEMM3) = " + number_text(rates.threshold() / 1e9, 4) + ": " +
                          (rates.two_stages_faster() ? "two stages" : "one stage") + " should be the faster");
  }

private:
  [[nodiscard]] bool is_wanted(SvdPeer peer) const {
    if (options_.choose_peers)
      return std::find(options_.peers.begin(), options_.peers.end(), peer) != options_.peers.end();
    return (peer != SvdPeer::cusolver_syevd || options_.symmetric) &&
           (backend_of(peer) == Backend::cpu || session_.context.backend() == Backend::cuda);
  }

  void measure_peer(std::vector<Measured>& all, DenseMatrix const& a, SvdPeer peer, std::string const& label, bool vectors) {
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
                         "it takes minutes from " + with_thousands(slow_peers_from) + " rows on; --peer " + peer_option(label) +
                             " measures it");
    else
      measure_one(all, a, label, row, vectors, false, [&] { return peer_svd(peer, a, vectors, session_.context); });
  }

  template <class Make>
  void measure_one(std::vector<Measured>& all, DenseMatrix const& a, std::string const& label, json row, bool vectors, bool ours,
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
      session_.console.line("  values: largest distance to the values of " + reference->label +
                            ", over the largest value; x this: seconds over the fastest of two stages");
  }

  SvdBenchOptions const& options_;
  BenchSession& session_;
};

}  // namespace

std::string peer_option(std::string_view name) {
  return std::string(name.substr(name.find(' ') + 1));
}

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

}  // namespace poisson::app
