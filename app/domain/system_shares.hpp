#pragma once

#include "app/launch/team.hpp"
#include "gpu/core/csr_matrix.hpp"
#include "gpu/core/host_vector.hpp"
#include "gpu/core/rank_rows.hpp"

#include <memory>

namespace poisson::app {

/// What a rank has of a system.
struct SystemShare {
  RankRows rows;
  HostVector<double> b;  ///< of own rows; empty where there is none
};

/// Shares out a system that only the first rank has, and which it gives up here: rows follow each other from rank to rank, with
/// about as many entries each (share_out_rows). On other ranks `matrix` is null. `b` may be empty. Collective. Throws
/// InputError on several ranks where the matrix is not square.
[[nodiscard]] SystemShare shared_out(std::shared_ptr<CsrMatrix const> matrix, HostVector<double> b, Team& team);

}  // namespace poisson::app
