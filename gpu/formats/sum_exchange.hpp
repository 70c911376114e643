#pragma once

#include "gpu/core/array.hpp"
#include "gpu/core/communicator.hpp"
#include "gpu/core/rank_rows.hpp"
#include "gpu/core/vector.hpp"
#include "gpu/formats/csr.hpp"
#include "gpu/kernels/rank_exchange.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace poisson {

/// Own rows that neighbours have as ghosts, in the order of their messages.
[[nodiscard]] std::vector<std::int32_t> all_sent(std::vector<RankNeighbor> const& neighbors);
/// The messages that these make, and those of the ghosts here.
template <class T>
[[nodiscard]] std::vector<typename RankExchange<T>::Part> parts_sent(std::vector<RankNeighbor> const& neighbors) {
  std::vector<typename RankExchange<T>::Part> parts;
  for (RankNeighbor const& neighbor : neighbors)
    parts.push_back({neighbor.rank, std::ssize(neighbor.sent)});
  return parts;
}
template <class T>
[[nodiscard]] std::vector<typename RankExchange<T>::Part> parts_of_ghosts(std::vector<RankNeighbor> const& neighbors) {
  std::vector<typename RankExchange<T>::Part> parts;
  for (RankNeighbor const& neighbor : neighbors)
    parts.push_back({neighbor.rank, neighbor.n_ghosts});
  return parts;
}

/// Brings what ranks contribute to ghosts to the ranks whose rows these are, which add it to their own: the transpose of
/// GhostExchange. T: float, double or DoubleDouble.
template <class T>
class SumExchange {
public:
  /// Collective.
  SumExchange(Context& context, Communicator& ranks, std::vector<RankNeighbor> const& neighbors);
  SumExchange(SumExchange const&) = delete;
  SumExchange& operator=(SumExchange const&) = delete;
  /// Where the entries for ghosts are to be written before start(), in the backend's memory, numbered as in RankNeighbor.
  [[nodiscard]] T* outgoing() { return exchange_.outgoing(); }
  void start() { exchange_.start(); }
  /// y += alpha times what came, in own rows, in the order of the ranks.
  void finish(T alpha, Pointer<T> y);
  [[nodiscard]] std::int64_t bytes() const { return rows_.bytes() + ones_->bytes(); }

private:
  Context& context_;
  Array<std::int32_t> rows_;   ///< that others contribute to
  std::unique_ptr<Csr> ones_;  ///< which of the entries that come belong to each of them
  RankExchange<T> exchange_;
};

}  // namespace poisson
