#include "app/domain/system_shares.hpp"

#include "app/domain/packed.hpp"
#include "gpu/core/error.hpp"
#include "gpu/core/memory.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace poisson::app {

namespace {

std::vector<char> packed_system(CsrMatrix const& matrix, std::span<double const> b, std::vector<std::int64_t> const& first_rows,
                                int rank) {
  RankRows const rows = rows_of_rank(matrix, first_rows, rank);
  auto const begin = static_cast<std::size_t>(first_rows[static_cast<std::size_t>(rank)]),
             end = static_cast<std::size_t>(first_rows[static_cast<std::size_t>(rank) + 1]);
  Packer<std::vector<char>> to;
  to.put_list(b.empty() ? b : b.subspan(begin, end - begin));
  to.put_neighbors(rows.neighbors);
  to.put(rows.matrix->n_rows);
  to.put(rows.matrix->n_columns);
  to.put_list(rows.matrix->row_ptr);
  to.put_list(rows.matrix->columns);
  to.put_list(rows.matrix->values);
  return std::move(to.bytes);
}

SystemShare unpacked_system(std::vector<char> const& bytes) {
  Unpacker<std::vector<char>> from(bytes);
  SystemShare share;
  from.take_list(share.b);
  from.take_neighbors(share.rows.neighbors);
  auto matrix = std::make_shared<CsrMatrix>();
  from.take(matrix->n_rows);
  from.take(matrix->n_columns);
  from.take_list(matrix->row_ptr);
  from.take_list(matrix->columns);
  from.take_list(matrix->values);
  share.rows.matrix = std::move(matrix);
  return share;
}

}  // namespace

SystemShare shared_out(std::shared_ptr<CsrMatrix const> matrix, HostVector<double> b, Team& team) {
  if (team.size() == 1)
    return {{{}, std::move(matrix)}, std::move(b)};
  std::vector<std::int64_t> first_rows;
  team.on_first([&] {
    if (matrix->n_rows != matrix->n_columns)
      throw InputError("the matrix has " + std::to_string(matrix->n_rows) + " rows and " + std::to_string(matrix->n_columns) +
                       " columns; several ranks share matrices with as many rows as columns");
    first_rows = share_out_rows(*matrix, team.size());
  });
  std::vector<char> mine;
  for (int rank = 0; rank < team.size(); ++rank) {
    std::vector<char> bytes;
    team.on_first([&] { bytes = packed_system(*matrix, b, first_rows, rank); });
    std::vector<char> received = team.sent_by_first(rank, bytes);
    if (rank == team.rank())
      mine = std::move(received);
  }
  matrix.reset();
  free_memory(b);
  return unpacked_system(mine);
}

}  // namespace poisson::app
