#pragma once

#include "app/bench/bench.hpp"
#include "gpu/peers/svd_peers.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace poisson::app {

/// Options of `poisson bench svd`: the SVD of random matrices by this program and by other libraries.
struct SvdBenchOptions : BenchTarget {
  std::vector<std::int64_t> sizes;  ///< empty: 512 and 1024
  std::vector<int> band_widths;     ///< empty: the tuned default
  bool values = true;               ///< measure without vectors
  bool vectors = true;              ///< measure with vectors
  bool symmetric = false;           ///< the matrices are made symmetric
  bool choose_peers = false;        ///< measure exactly `peers`; otherwise all that do not take minutes
  std::vector<SvdPeer> peers;
  std::int64_t seed = 1;
  int repeats = 1;  ///< number of runs; the fastest is reported
};

/// Prints a table per matrix and writes JSON: seconds of each step, accuracy, other libraries in the same run, and the criterion of
/// Hirota et al. (2012, eq. 1) for two stages being faster than one, with measured rates. Exit codes and exceptions as of
/// run_bench.
[[nodiscard]] ExitCode run_svd_bench(SvdBenchOptions const& options, Console& console);

/// The name of a peer as an argument of --peer: "gesdd" for "lapack gesdd".
[[nodiscard]] std::string peer_option(std::string_view name);

}  // namespace poisson::app
