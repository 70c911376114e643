#pragma once

#include "app/bench/bench.hpp"
#include "app/launch/team.hpp"
#include "gpu/core/node_box.hpp"
#include "gpu/core/rank_rows.hpp"
#include "gpu/formats/coo.hpp"
#include "gpu/formats/csr.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace poisson::app {

/// What a rank has of a matrix besides the couplings of own rows with each other. Without other ranks there is no rim.
struct BenchRows {
  SplitRows split;     ///< without `local`
  CsrMatrix rim_rows;  ///< the whole rows of the rim; columns are own rows, then ghosts
  std::vector<RankNeighbor> neighbors;
  std::vector<std::int64_t> numbers;         ///< of own rows, without `blocks`: see NumberedRows
  std::shared_ptr<RankBlocks const> blocks;  ///< see SolverOptions
};

/// A matrix to be measured, in the memory of a backend.
struct BenchMatrix {
  std::unique_ptr<Csr> csr;  ///< the couplings of own rows with each other
  BenchRows rows{};
  std::int64_t n_rows = 0, n_columns = 0, nnz = 0, csr_bytes = 0;  ///< of all ranks
  std::optional<CooMatrix> coo;                                    ///< only if it was given as a list of entries
  HostVector<double> rhs;                                          ///< right-hand side of a problem; empty: none
  bool symmetric = true, constant_null_space = false;
  std::array<std::int64_t, 3> box_nodes{};  ///< see SolverOptions
};

/// How to make a matrix to be measured.
struct BenchSource {
  std::string name;
  std::string kind;                                  ///< "box", "band", "random", "file", "problem"
  std::function<BenchMatrix(Context&, Team&)> make;  ///< collective
  std::vector<std::string> script_words;  ///< arguments for a script of tests/bench to make the same matrix; empty: not possible
};

/// Throws InputError for a matrix file that is not there: before other matrices are measured, not after.
void require_matrix_files(BenchOptions const& options);

/// The matrices of the options, none of them built.
[[nodiscard]] std::vector<BenchSource> bench_sources(BenchOptions const& options, Configuration const* problem);

/// Throws EnvironmentError when the context's memory, or the host's, has less than `bytes` available; `what` names the object.
void require_memory(Context const& context, std::int64_t bytes, std::string const& what);

/// The entries of a matrix in host memory, row by row.
[[nodiscard]] CooMatrix coo_from_csr(CsrMatrix const& csr);

}  // namespace poisson::app
