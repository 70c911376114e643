#pragma once

#include "gpu/spectral/svd.hpp"

#include <cstdint>

namespace poisson {

/// An n_rows x n_columns matrix with random entries, uniform in [-0.5, 0.5]; a seed gives the same matrix on every machine.
[[nodiscard]] DenseMatrix random_matrix(std::int64_t n_rows, std::int64_t n_columns, std::int64_t seed);

}  // namespace poisson
