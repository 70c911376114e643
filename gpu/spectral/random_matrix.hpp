#pragma once

#include "gpu/spectral/svd.hpp"

#include <cstdint>

namespace poisson {

/// Entries uniform in [-0.5, 0.5], from `seed`: the same on every machine.
[[nodiscard]] DenseMatrix random_matrix(std::int64_t n_rows, std::int64_t n_columns, std::int64_t seed);

}  // namespace poisson
