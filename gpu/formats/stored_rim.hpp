#pragma once

#include "gpu/core/array.hpp"
#include "gpu/formats/csr.hpp"
#include "gpu/kernels/block_rim.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace poisson {

/// The rows of a rank that are coupled with ghosts, in the memory of a backend.
struct StoredRim {
  Array<std::int32_t> rows;          ///< which own rows they are, ascending
  std::unique_ptr<Csr> couplings;    ///< of these with the ghosts; null: no rows are here
  std::int64_t row_not_finite = -1;  ///< the lowest own row with a coupling that is not finite; -1: none
  BlockRim formulas{};               ///< of a block of a box
  /// Own rows whose entries follow those of other ranks, as columns of the couplings: in a box that repeats itself.
  std::vector<std::int32_t> own_columns{};
};

}  // namespace poisson
