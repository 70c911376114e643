#pragma once

#include "app/launch/team.hpp"
#include "gpu/core/csr_matrix.hpp"
#include "gpu/core/host_vector.hpp"
#include "gpu/core/rank_rows.hpp"

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

/// Rows and values of all ranks on the first one, in the numbering of the whole mesh. `numbers`: of own rows there (Domain). All
/// functions are collective, and end by Interrupted on all ranks; the first one gets some thousand rows at a time.
namespace poisson::app {

/// An entry of a matrix, or of a vector in column 0.
struct EntryOfWhole {
  std::int64_t row, column;
  double value;
};

/// The numbers of the columns of `rows`.
[[nodiscard]] std::vector<std::int64_t> column_numbers(RankRows const& rows, std::span<std::int64_t const> numbers, Team& team);

/// Calls take(entry) on the first rank for the entries of all ranks, by row and column; with `lower` for those of the lower
/// triangle. What take throws, all throw.
void gather_entries(CsrMatrix const& matrix, std::span<std::int64_t const> numbers, std::span<std::int64_t const> columns,
                    bool lower, Team& team, std::function<void(EntryOfWhole const&)> const& take);
/// Calls take(entry) on the first rank for the values at own rows of all ranks, by row, with column 0. What take throws, all throw.
void gather_values(std::span<double const> values, std::span<std::int64_t const> numbers, Team& team,
                   std::function<void(EntryOfWhole const&)> const& take);

/// All values; other ranks get none.
[[nodiscard]] HostVector<double> gathered_values(std::span<double const> values, std::span<std::int64_t const> numbers, Team& team);
/// The whole matrix; other ranks get none.
[[nodiscard]] CsrMatrix gathered_matrix(RankRows const& rows, std::span<std::int64_t const> numbers, Team& team);

}  // namespace poisson::app
