#pragma once

#include "app/bench/bench.hpp"
#include "gpu/formats/coo.hpp"
#include "gpu/formats/csr.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace poisson::app {

/// A matrix to be measured, in the memory of a backend.
struct BenchMatrix {
  std::unique_ptr<Csr> csr;
  std::optional<CooMatrix> coo;  ///< where it came as a list of entries
  HostVector<double> rhs;        ///< where a problem gave one; empty: none
  bool constant_null_space = false;
};

struct BenchSource {
  std::string name;
  std::string kind;  ///< "box", "band", "random", "file", "problem"
  std::function<BenchMatrix(Context&)> make;
  std::vector<std::string> script_words;  ///< arguments with which a script of tests/bench makes the same matrix; empty: it cannot
};

/// The matrices that the options name; none is built yet. Throws InputError when a file is missing.
[[nodiscard]] std::vector<BenchSource> bench_sources(BenchOptions const& options, Configuration const* problem);

/// Throws EnvironmentError when the context's memory, or the host's, has no room for `bytes`.
void require_room(Context const& context, std::int64_t bytes, std::string const& what);

/// The entries row by row.
[[nodiscard]] CooMatrix coo_from_csr(CsrMatrix const& csr);

}  // namespace poisson::app
