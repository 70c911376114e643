#pragma once

#include "gpu/core/array.hpp"
#include "gpu/core/communicator.hpp"
#include "gpu/core/node_box.hpp"
#include "gpu/core/rank_rows.hpp"
#include "gpu/core/vector.hpp"
#include "gpu/kernels/device_ranks.hpp"
#include "gpu/kernels/rim.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace poisson {

/// Own entries and then those of the ghosts of these neighbours, which own them. Both vectors are in the backend's memory.
/// Collective. Throws OutOfMemoryError.
[[nodiscard]] Array<double> with_ghosts(Context& context, Communicator& ranks, std::vector<RankNeighbor> const& neighbors,
                                        Array<double> const& own);

/// The places, in the vectors of this rank, of entries that it shares with other ranks. A rank is not among its own neighbours:
/// what it has as ghosts of itself is copied. What `own` of one rank names for another one stands, in the same order, at the places
/// that `ghosts` of that one names.
struct HaloPlaces {
  RankLists<std::int32_t> own;     ///< by rank that has them as ghosts
  RankLists<std::int32_t> ghosts;  ///< by rank that owns them
  /// own_nodes and ghost_nodes say the same as formulas, where there are no lists: the nodes of boxes, x fastest, in vectors that
  /// have the nodes of `box`.
  std::map<int, std::vector<NodeBox>> own_nodes{}, ghost_nodes{};
  NodeBox box{};
  /// In a box that repeats itself: own nodes, and where they stand as ghosts of this rank itself, moved by periods.
  std::vector<NodeBox> copied_nodes{}, image_nodes{};
  std::vector<std::int32_t> behind{};  ///< own entries that follow those that have come (Halo::finish)

  HaloPlaces() = default;
  /// The ghosts of these neighbours stand one after another behind n_own own entries.
  HaloPlaces(std::int64_t n_own, std::vector<RankNeighbor> const& neighbors) { add(n_own, neighbors); }
  /// In a box of nodes: `owned` and `needed` are, of every rank, the nodes that it owns, and those whose entries it wants, its own
  /// among them or not. The vectors of this rank have the nodes of `extended`. Preconditions: every node has one owner; `extended`
  /// holds both boxes of this rank. `period`: counts the nodes after which the box repeats itself, in directions in which it does;
  /// else 0. Boxes that are needed have nodes before the first one then, and after the last one.
  HaloPlaces(int me, std::vector<NodeBox> const& owned, std::vector<NodeBox> const& needed, NodeBox const& extended,
             std::array<std::int64_t, 3> const& period = {});
  /// Adds neighbours whose ghosts stand one after another from `place` on. Returns the place behind them.
  std::int64_t add(std::int64_t place, std::vector<RankNeighbor> const& neighbors);
};

/// Which way a Halo brings entries.
enum class HaloDirection {
  to_ghosts,  ///< the entries of owners are put at the ghosts of other ranks
  to_owners   ///< what ranks have at ghosts is added to the entries of the owners
};

/// Moves entries of vectors of T between ranks: it packs them into messages, sends these, and puts what comes into a vector, or
/// adds it there. Messages go from device to device where rank_transport can, else through host memory. Of several vectors, one
/// behind another, it moves all in the same messages. T: float, double or DoubleDouble.
template <class T>
class Halo {
public:
  /// `step`: from one of the vectors to the next; HaloDirection::to_owners takes one vector only. `context` and `ranks` outlive
  /// this. Collective. Throws OutOfMemoryError.
  Halo(Context& context, Communicator& ranks, HaloPlaces const& places, HaloDirection direction = HaloDirection::to_ghosts,
       std::int32_t vectors = 1, std::int64_t step = 0);
  Halo(Halo const&) = delete;
  Halo& operator=(Halo const&) = delete;

  /// Brings the entries of owners to the ghosts in x, which is in the backend's memory. Collective.
  void fill(Pointer<T> x) {
    start(x);
    put(x);
  }

  // The same in two steps. Every start() is followed by one finish(), put(), add() or set().

  /// Sends entries of x, in the backend's memory, which may be read, but not written, until the second step.
  void start(ConstPointer<T> x);
  /// Sends what was written to outgoing() instead.
  void start();
  /// The messages to be sent, in the order of the ranks and of the places. May be written by what is enqueued after the second step
  /// and before start().
  [[nodiscard]] T* outgoing() { return outgoing_.data(); }
  /// Returns what has come, in the order of the ranks and of the places, then the entries `behind`, until the next start(). What is
  /// enqueued from now on may read it; on the cpu it is there.
  [[nodiscard]] T const* finish();
  /// Puts what has come at the ghosts in x.
  void put(Pointer<T> x);
  /// y += alpha times what has come, at own entries, in the order of the ranks. Only HaloDirection::to_owners.
  void add(T alpha, Pointer<T> y);

  /// The same, in place of what was there, at own entries that others have as ghosts; the other ones stay.
  void set(Pointer<T> y);

  /// Bytes of the lists by which add() adds.
  [[nodiscard]] std::int64_t bytes_of_sums() const;

private:
  /// Places in a vector. Those that follow one another need no list: of vectors of rows all ghosts do, of a box the nodes of whole
  /// planes.
  struct Places {
    std::int64_t n = 0, first = 0;
    Array<std::int32_t> list;  ///< empty where they follow one another, from `first` on

    Places() = default;
    Places(Context& context, std::vector<std::int32_t> const& places);
    Places(Context& context, std::vector<NodeBox> const& nodes, NodeBox const& box);
  };
  void exchange_between_devices();
  void make_sums(std::vector<std::int32_t> const& own);
  [[nodiscard]] CsrView sums() const;

  Context& context_;
  RimKernels<T> const& kernels_;
  RankTransport& transport_;
  bool is_alone_;  ///< there are no messages
  bool staged_;    ///< messages through the host are copied to and from its memory
  std::int32_t vectors_;
  std::int64_t step_;
  Places sent_, received_, behind_;
  std::int64_t n_incoming_ = 0;
  Array<T> outgoing_, incoming_;
  HostVector<T> outgoing_of_host_, incoming_of_host_;
  T* come_ = nullptr;                           ///< where what was sent last comes
  std::vector<Message> sends_, receives_;       ///< without the copies on the host
  std::unique_ptr<Exchange> exchange_;          ///< through the host; null: never
  std::unique_ptr<DeviceExchange> by_devices_;  ///< null: not yet, or never

  // Which of the entries that come are added to each row, as a matrix of ones.
  Array<std::int32_t> rows_, columns_;
  Array<std::int64_t> row_ptr_;
  Array<double> ones_;
};

}  // namespace poisson
