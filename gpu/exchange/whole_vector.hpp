#pragma once

#include "gpu/core/array.hpp"
#include "gpu/core/communicator.hpp"
#include "gpu/core/node_box.hpp"
#include "gpu/kernels/device_ranks.hpp"
#include "gpu/kernels/rim.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace poisson {

/// Gives every rank the whole of a vector that ranks share, and takes own entries out of it again. Of several vectors, one behind
/// another, it moves all in the same messages. V: float or double. Its messages are as long as that of the rank with most entries.
template <class V>
class WholeVector {
public:
  /// Entries are numbered over all ranks, those of rank r from first[r] on, as in RowMap. `places`: by this number, the place in
  /// the whole vector; without any it is the number. Collective, as the other constructor is. Throws OutOfMemoryError.
  WholeVector(Context& context, Communicator& ranks, std::vector<std::int64_t> const& first,
              std::vector<std::int32_t> const& places = {}, std::int32_t vectors = 1);
  /// `own`: of every rank; together they are the nodes of `whole`. The vectors of this rank have the nodes of `part`.
  WholeVector(Context& context, Communicator& ranks, std::vector<NodeBox> const& own, NodeBox const& part, NodeBox const& whole,
              std::int32_t vectors = 1);
  WholeVector(WholeVector const&) = delete;
  WholeVector& operator=(WholeVector const&) = delete;

  [[nodiscard]] std::int64_t n_own() const { return n_own_; }
  [[nodiscard]] std::int64_t n_of_all() const { return n_of_all_; }
  /// `x` has the entries of this rank, `all` those of all ranks; both are in the backend's memory. Collective.
  void gather(V const* x, V* all);
  /// own[i] = the i-th own entry in `all`, of one vector.
  void own_entries(V const* all, V* own) const;

private:
  /// `places`: of all entries, those of one rank after those of the other.
  void make(std::vector<std::int64_t> const& counts, std::vector<std::int32_t> const& places);

  Context& context_;
  Communicator& ranks_;
  RimKernels<V> const& kernels_;
  RankTransport& transport_;
  std::int32_t vectors_;
  std::int64_t n_own_ = 0, n_of_all_ = 0, n_here_ = 0;  ///< n_here_: of one vector of this rank
  std::int64_t longest_ = 0;                            ///< entries of a rank, in one vector
  Array<std::int32_t> own_;                             ///< places of own entries in x; empty: they are all, in order
  Array<std::int32_t> places_;                          ///< in the whole, longest_ for each rank; -1: no entry
  Array<V> packed_, messages_;                          ///< in the backend's memory
  HostVector<V> packed_of_host_, messages_of_host_;
  std::unique_ptr<DeviceExchange> by_devices_;  ///< null: not yet, or never
};

}  // namespace poisson
