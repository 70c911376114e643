#include "gpu/preconditioners/block_exchange.hpp"

#include "gpu/kernels/backends.hpp"

#include <algorithm>
#include <span>
#include <utility>

namespace poisson {

namespace {

struct SharedNodes {
  int rank;
  NodeBox nodes;
};

/// The nodes that each other rank needs of those that this one owns, or the other way round.
std::vector<SharedNodes> shared_nodes(std::vector<NodeBox> const& own, std::vector<NodeBox> const& needed, bool sends,
                                      std::size_t me) {
  std::vector<SharedNodes> result;
  for (std::size_t other = 0; other < own.size(); ++other) {
    NodeBox const nodes = sends ? common(own[me], needed[other]) : common(own[other], needed[me]);
    if (other != me && nodes.size() > 0)
      result.push_back({static_cast<int>(other), nodes});
  }
  return result;
}

template <class V>
Array<std::int32_t> places_in(Context& context, std::vector<SharedNodes> const& shared, NodeBox const& extended,
                              std::vector<typename RankExchange<V>::Part>& parts) {
  std::int64_t n = 0;
  for (SharedNodes const& with : shared) {
    parts.push_back({with.rank, with.nodes.size()});
    n += with.nodes.size();
  }
  Array<std::int32_t> places(context, n);
  std::int64_t first = 0;
  for (SharedNodes const& with : shared) {
    kernels_for<BlockKernels<V>>(context).list_places(context, common_nodes(with.nodes, with.nodes, extended),
                                                      places.data() + first);
    first += with.nodes.size();
  }
  return places;
}

}  // namespace

template <class V>
BlockExchange<V>::BlockExchange(Context& context, Communicator& ranks, std::vector<NodeBox> const& own,
                                std::vector<NodeBox> const& needed, NodeBox const& extended, int layers, int vectors)
    : LevelHalo<V>(layers),
      context_(context),
      kernels_(kernels_for<BlockKernels<V>>(context)),
      vectors_(vectors),
      step_(extended.size()) {
  auto const me = static_cast<std::size_t>(ranks.rank());
  std::vector<typename RankExchange<V>::Part> sends, receives;
  sent_ = places_in<V>(context, shared_nodes(own, needed, true, me), extended, sends);
  received_ = places_in<V>(context, shared_nodes(own, needed, false, me), extended, receives);
  auto const widen = [&](auto& parts, std::int64_t n, std::vector<std::int64_t>& sizes) {
    for (auto& part : parts) {
      sizes.push_back(part.size);
      part.size *= vectors;
    }
    if (vectors == 1)
      sizes = {n};  // at once
  };
  widen(sends, sent_.size(), n_packed_);
  widen(receives, received_.size(), n_unpacked_);
  exchange_ = std::make_unique<RankExchange<V>>(context, ranks, sends, receives);
}

template <class V>
BlockExchange<V>::BlockExchange(Context& context, Communicator& ranks, RankLists<std::int32_t> const& sent,
                                RankLists<std::int32_t> const& received)
    : LevelHalo<V>(1), context_(context), kernels_(kernels_for<BlockKernels<V>>(context)) {
  auto const parts = [&](RankLists<std::int32_t> const& lists, Array<std::int32_t>& places) {
    places = Array<std::int32_t>(context, std::span<std::int32_t const>(lists.joined()));
    std::vector<typename RankExchange<V>::Part> result;
    for (auto const& [rank, list] : lists)
      result.push_back({rank, std::ssize(list)});
    return result;
  };
  auto const sends = parts(sent, sent_), receives = parts(received, received_);
  n_packed_ = {sent_.size()};
  n_unpacked_ = {received_.size()};
  exchange_ = std::make_unique<RankExchange<V>>(context, ranks, sends, receives);
}

template <class V>
void BlockExchange<V>::fill(V* x) const {
  std::int32_t const* places = sent_.data();
  V* to = exchange_->outgoing();
  for (std::int64_t const n : n_packed_) {
    kernels_.pack(context_, n, places, x, to, vectors_, step_);
    places += n;
    to += n * vectors_;
  }
  exchange_->start();
  V const* from = exchange_->finish();
  places = received_.data();
  for (std::int64_t const n : n_unpacked_) {
    kernels_.unpack(context_, n, places, from, x, vectors_, step_);
    places += n;
    from += n * vectors_;
  }
}

template <class V>
BlockGather<V>::BlockGather(Context& context, Communicator& ranks, std::vector<NodeBox> own, NodeBox const& part,
                            NodeBox const& whole, int vectors)
    : context_(context),
      ranks_(ranks),
      devices_(rank_transport(context, ranks).devices.get()),
      own_(std::move(own)),
      part_(part),
      whole_(whole),
      vectors_(vectors) {
  for (NodeBox const& nodes : own_)
    longest_ = std::max(longest_, nodes.size() * vectors);
  packed_ = Array<V>(context, longest_);
  packed_.set_zero();
  messages_ = Array<V>(context, longest_ * static_cast<std::int64_t>(own_.size()));
  if (context.backend() != Backend::cpu && devices_ == nullptr) {
    packed_of_host_.resize(static_cast<std::size_t>(packed_.size()));
    messages_of_host_.resize(static_cast<std::size_t>(messages_.size()));
  }
}

template <class V>
void BlockGather<V>::gather(V const* x, V* all) {
  auto const& kernels = kernels_for<BlockKernels<V>>(context_);
  NodeBox const& mine = own_[static_cast<std::size_t>(ranks_.rank())];
  kernels.copy(context_, common_nodes(mine, part_, mine, vectors_), x, packed_.data());
  std::int64_t const bytes = packed_.bytes();
  if (devices_ != nullptr)
    devices_->all_gather(packed_.data(), bytes, messages_.data());
  else if (context_.backend() == Backend::cpu)
    ranks_.all_gather(packed_.data(), bytes, messages_.data());
  else {
    packed_.download(std::span<V>(packed_of_host_));
    ranks_.all_gather(packed_of_host_.data(), bytes, messages_of_host_.data());
    messages_.upload(std::span<V const>(messages_of_host_));
  }
  for (std::size_t rank = 0; rank < own_.size(); ++rank)
    kernels.copy(context_, common_nodes(own_[rank], own_[rank], whole_, vectors_),
                 messages_.data() + static_cast<std::int64_t>(rank) * longest_, all);
}

template class BlockExchange<float>;
template class BlockExchange<double>;
template class BlockGather<float>;
template class BlockGather<double>;

}  // namespace poisson
