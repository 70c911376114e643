// svd_bench [--backend cpu|cuda] [--n N,N,...] [--band L,L,...] [--vectors yes|no|both] [--peers none|fast|all] [--repeat R]
//           [--accuracy yes|no] [--json FILE]
// Times each step of the two-stage SVD of uniform random matrices, beside cuSOLVER's and LAPACK's in the same run. Band 0 is the
// tuned default. `fast` peers are those that take seconds: all but gesvdj and, from N = 8000 on, LAPACK. The best of R runs counts.
#include "gpu/core/error.hpp"
#include "gpu/kernels/svd_peers.hpp"
#include "gpu/svd/accuracy.hpp"
#include "gpu/svd/svd.hpp"
#include "gpu/svd/two_stage_rule.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

namespace {

using namespace poisson;

struct Options {
  Backend backend = Backend::cpu;
  std::vector<std::int64_t> sizes{1024};
  std::vector<int> bands{0};
  std::vector<bool> vectors{false, true};
  std::string peers = "fast";
  int repeat = 2;
  bool accuracy = true;
  std::string json_file;
};

DenseMatrix uniform(std::int64_t n, bool symmetric) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> entry(-0.5, 0.5);
  DenseMatrix a(n, n);
  for (double& value : a.values)
    value = entry(random);
  if (symmetric)
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t i = 0; i < j; ++i)
        a(i, j) = a(j, i);
  return a;
}

std::vector<std::int64_t> numbers(std::string const& text) {
  std::vector<std::int64_t> result;
  std::istringstream list(text);
  for (std::string n; std::getline(list, n, ',');)
    result.push_back(std::max(0, std::atoi(n.c_str())));
  return result;
}

void run(Options const& options) {
  set_thread_count(0);
  auto const context = make_context(options.backend), host = make_context(Backend::cpu);
  std::printf("%s, %d threads on the host\n", context->description().name.c_str(), thread_count());
  nlohmann::json report{{"device", context->description().name},
                        {"backend", name_of(options.backend)},
                        {"threads", thread_count()},
                        {"rows", nlohmann::json::array()}};
  std::printf("%6s %-16s %8s %4s %9s %9s %9s %9s %9s %10s %10s %10s\n", "N", "what", "vectors", "L", "reduce", "chase", "bidiag",
              "back", "total", "I - U^T U", "I - V^T V", "A - USV^T");
  for (std::int64_t const n : options.sizes) {
    DenseMatrix const a = uniform(n, false);
    HostVector<double> values;
    auto const print = [&](std::string const& what, bool vectors, Svd const& result, DenseMatrix const& of) {
      auto const& s = result.seconds;
      nlohmann::json row{{"n", n},
                         {"what", what},
                         {"vectors", vectors},
                         {"band", result.band_width},
                         {"reduce", s.reduce},
                         {"chase", s.chase},
                         {"bidiagonal", s.bidiagonal},
                         {"back", s.back},
                         {"steps", s.reduce + s.chase + s.bidiagonal + s.back},
                         {"total", s.total}};
      std::printf("%6lld %-16s %8s %4d %9.4f %9.4f %9.4f %9.4f %9.4f", static_cast<long long>(n), what.c_str(),
                  vectors ? "yes" : "no", result.band_width, s.reduce, s.chase, s.bidiagonal, s.back, s.total);
      if (options.accuracy && result.u.n_columns > 0) {
        SvdAccuracy const accuracy = svd_accuracy(*context, of, result);
        std::printf(" %10.2e %10.2e %10.2e", accuracy.orthogonality_u, accuracy.orthogonality_v, accuracy.residual);
        row.update({{"orthogonality_u", accuracy.orthogonality_u},
                    {"orthogonality_v", accuracy.orthogonality_v},
                    {"residual", accuracy.residual}});
      }
      if (!values.empty() && &of == &a) {
        double const error = largest_value_error(result.values, values);
        std::printf("   values differ by %.1e", error);
        row["values_differ"] = error;
      }
      std::printf("\n");
      std::fflush(stdout);
      report["rows"].push_back(row);
    };
    for (bool const vectors : options.vectors)
      for (int const band : options.bands) {
        Svd best;
        for (int repeat = 0; repeat < options.repeat; ++repeat) {
          Svd result = svd(a, {vectors, 0, band}, *context);
          if (repeat == 0 || result.seconds.total < best.seconds.total)
            best = std::move(result);
        }
        print("two-stage", vectors, best, a);
        values = std::move(best.values);
      }
    if (options.peers != "none")
      for (auto const& [peer, name] : Names<SvdPeer>::values)
        for (bool const vectors : options.vectors) {
          if (options.peers == "fast" && (peer == SvdPeer::cusolver_gesvdj || (peer == SvdPeer::lapack_gesdd && n > 8000)))
            continue;
          if (backend_of(peer) == Backend::cuda && options.backend != Backend::cuda)
            continue;
          bool const symmetric = peer == SvdPeer::cusolver_syevd;
          DenseMatrix const b = symmetric ? uniform(n, true) : DenseMatrix();
          try {
            print(std::string(name), vectors,
                  peer_svd(peer, symmetric ? b : a, vectors, backend_of(peer) == Backend::cuda ? *context : *host),
                  symmetric ? b : a);
          } catch (EnvironmentError const& error) {
            std::printf("%6lld %-16s left out: %s\n", static_cast<long long>(n), std::string(name).c_str(), error.what());
          }
        }
    BidiagonalizationRates const rates = measure_bidiagonalization_rates(*context, n, default_band_width(n, true, options.backend));
    std::printf("%6lld rates in GFLOP/s: matrix by vector %.0f, by block of vectors %.0f, chase back %.0f; two stages win below "
                "%.0f: %s\n\n",
                static_cast<long long>(n), rates.matrix_vector / 1e9, rates.block_vector / 1e9, rates.chase_back / 1e9,
                rates.threshold() / 1e9, rates.two_stages_win() ? "yes" : "no");
    report["rules"].push_back({{"n", n},
                               {"matrix_vector", rates.matrix_vector},
                               {"block_vector", rates.block_vector},
                               {"chase_back", rates.chase_back},
                               {"threshold", rates.threshold()},
                               {"two_stages_win", rates.two_stages_win()}});
    if (!options.json_file.empty())  // after every size: a run that is cut off leaves what it has
      std::ofstream(options.json_file) << report.dump(2) << '\n';
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  options.backend = why_no_cuda().empty() ? Backend::cuda : Backend::cpu;
  for (int i = 1; i < argc; i += 2) {
    std::string const key = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
    if (key == "--backend" && parse_name<Backend>(value))
      options.backend = *parse_name<Backend>(value);
    else if (key == "--n" && !value.empty())
      options.sizes = numbers(value);
    else if (key == "--band" && !value.empty()) {
      options.bands.clear();
      for (std::int64_t const band : numbers(value))
        options.bands.push_back(static_cast<int>(band));
    } else if (key == "--vectors" && (value == "yes" || value == "no" || value == "both"))
      options.vectors = value == "both" ? std::vector<bool>{false, true} : std::vector<bool>{value == "yes"};
    else if (key == "--peers" && (value == "none" || value == "fast" || value == "all"))
      options.peers = value;
    else if (key == "--repeat" && !value.empty())
      options.repeat = std::max(1, std::atoi(value.c_str()));
    else if (key == "--accuracy" && (value == "yes" || value == "no"))
      options.accuracy = value == "yes";
    else if (key == "--json" && !value.empty())
      options.json_file = value;
    else {
      std::fprintf(stderr, "usage: svd_bench [--backend cpu|cuda] [--n N,N,...] [--band L,L,...] [--vectors yes|no|both] "
                           "[--peers none|fast|all] [--repeat R] [--accuracy yes|no] [--json FILE]\n");
      return 1;
    }
  }
  try {
    run(options);
    return 0;
  } catch (std::exception const& error) {
    std::fprintf(stderr, "svd_bench: %s\n", error.what());
    return 3;
  }
}
