#pragma once

#include "app/bench/bench.hpp"
#include "gpu/peers/svd_peers.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace poisson::app {

/// Options of `poisson bench svd`: random matrices, decomposed by us and by other libraries.
struct SvdBenchOptions : BenchTarget {
  std::vector<std::int64_t> sizes;  ///< empty: 512 and 1024
  std::vector<int> band_widths;     ///< empty: the tuned default
  bool values = true;               ///< without vectors
  bool vectors = true;              ///< with them
  bool symmetric = false;           ///< the matrices are made symmetric
  bool choose_peers = false;        ///< measure exactly `peers`; otherwise all that do not take minutes
  std::vector<SvdPeer> peers;
  std::int64_t seed = 1;
  int repeats = 1;  ///< of which the fastest is reported
};

/// A table for each matrix, and JSON: seconds of each step, accuracy, other libraries in the same run, and the rule of Hirota et
/// al. (2012, eq. 1) for when two stages pay, with rates measured here. Exit codes and exceptions as run_bench.
[[nodiscard]] ExitCode run_svd_bench(SvdBenchOptions const& options, Console& console);

/// How --peer calls a peer of that name: "gesdd" of "lapack gesdd".
[[nodiscard]] std::string peer_option(std::string_view name);

}  // namespace poisson::app
