#pragma once

#include "app/io/console.hpp"
#include "gpu/core/context.hpp"
#include "gpu/spectral/random_matrix.hpp"
#include "gpu/spectral/svd.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace poisson::app {

/// The largest number of rows and columns of a dense matrix: its square fits 32 bits, as LAPACK counts.
inline constexpr std::int64_t largest_dense = 46340;

/// Options of `poisson svd`: the SVD of a matrix from a file, or of a random one.
struct DenseSvdOptions {
  std::string matrix;       ///< path of a Matrix Market file, array or coordinate; empty: random
  std::int64_t random = 0;  ///< rows and columns, entries uniform in [-0.5, 0.5]
  std::int64_t seed = 1;    ///< of the random matrix
  bool vectors = false;
  int band_width = 0;  ///< 0: the tuned default
  std::string output;  ///< directory for files; empty: none are written
  bool overwrite = false;
  std::optional<Backend> backend;  ///< no value: cuda where it is available, else cpu
  int threads = 0;                 ///< of the host; 0: all that the process may use
  bool picture = true;             ///< the plot of the spectrum, among the files
};

/// Computes the SVD, prints the results and, where an output directory is given, writes them. Throws InputError for a wrong file or
/// a directory that may not be replaced; EnvironmentError for a missing device, too little memory, or files that cannot be written
/// (then after all others are); Interrupted.
void run_svd(DenseSvdOptions const& work, Console& console);

}  // namespace poisson::app
