#include "gpu/preconditioners/block_exchange.hpp"

#include "gpu/kernels/backends.hpp"

#include <algorithm>
#include <span>
#include <utility>

namespace poisson {

namespace {

/// The nodes that each other rank needs of those that this one owns, or the other way round.
template <class V>
std::vector<typename BlockExchange<V>::Places> places_of(std::vector<NodeBox> const& a, std::vector<NodeBox> const& b, bool sends,
                                                         std::size_t me, NodeBox const& extended) {
  std::vector<typename BlockExchange<V>::Places> result;
  for (std::size_t other = 0; other < a.size(); ++other) {
    NodeBox const nodes = sends ? common(a[me], b[other]) : common(a[other], b[me]);
    if (other == me || nodes.size() == 0)
      continue;
    auto& places = result.emplace_back();
    places.rank = static_cast<int>(other);
    nodes.for_all([&](auto const& node) { places.of_x.push_back(static_cast<std::int32_t>(extended.index(node))); });
  }
  return result;
}

}  // namespace

template <class V>
BlockExchange<V>::BlockExchange(Context& context, Communicator& ranks, std::vector<NodeBox> const& own,
                                std::vector<NodeBox> const& needed, NodeBox const& extended)
    : BlockExchange(context, ranks, places_of<V>(own, needed, true, static_cast<std::size_t>(ranks.rank()), extended),
                    places_of<V>(own, needed, false, static_cast<std::size_t>(ranks.rank()), extended)) {}

template <class V>
BlockExchange<V>::BlockExchange(Context& context, Communicator& ranks, std::vector<Places> const& sends,
                                std::vector<Places> const& receives)
    : context_(context), kernels_(kernels_for<BlockKernels<V>>(context)) {
  std::vector<std::int32_t> sent, received;
  for (Places const& places : sends)
    sent.insert(sent.end(), places.of_x.begin(), places.of_x.end());
  for (Places const& places : receives)
    received.insert(received.end(), places.of_x.begin(), places.of_x.end());
  sent_ = Array<std::int32_t>(context, std::span<std::int32_t const>(sent));
  received_ = Array<std::int32_t>(context, std::span<std::int32_t const>(received));
  outgoing_.resize(sent.size());
  incoming_.resize(received.size());
  if (context.backend() != Backend::cpu) {
    outgoing_of_device_ = Array<V>(context, sent_.size());
    incoming_of_device_ = Array<V>(context, received_.size());
  }
  auto const messages = [](std::vector<Places> const& of_ranks, V* buffer) {
    std::vector<Message> result;
    for (Places const& places : of_ranks)
      if (!places.of_x.empty()) {
        result.push_back({places.rank, buffer, std::ssize(places.of_x) * std::int64_t{sizeof(V)}});
        buffer += places.of_x.size();
      }
    return result;
  };
  exchange_ = ranks.make_exchange(messages(sends, outgoing_.data()), messages(receives, incoming_.data()));
}

template <class V>
void BlockExchange<V>::fill(V* x) {
  bool const device = context_.backend() != Backend::cpu;
  kernels_.pack(context_, sent_.size(), sent_.data(), x, device ? outgoing_of_device_.data() : outgoing_.data());
  if (device)
    outgoing_of_device_.download(std::span<V>(outgoing_));
  exchange_->start();
  exchange_->finish();
  if (device)
    incoming_of_device_.upload(std::span<V const>(incoming_));
  kernels_.unpack(context_, received_.size(), received_.data(), device ? incoming_of_device_.data() : incoming_.data(), x);
}

template <class V>
BlockGather<V>::BlockGather(Context& context, Communicator& ranks, std::vector<NodeBox> own, NodeBox const& part,
                            NodeBox const& whole)
    : context_(context), ranks_(ranks), own_(std::move(own)), part_(part), whole_(whole) {
  for (NodeBox const& nodes : own_)
    longest_ = std::max(longest_, nodes.size());
  mine_.resize(static_cast<std::size_t>(longest_));
  std::fill(mine_.begin(), mine_.end(), V(0));
  messages_.resize(static_cast<std::size_t>(longest_) * own_.size());
  if (context.backend() != Backend::cpu) {
    packed_ = Array<V>(context, longest_);
    packed_.set_zero();
    all_.resize(static_cast<std::size_t>(whole.size()));
  }
}

template <class V>
void BlockGather<V>::gather(V const* x, V* all) {
  bool const device = context_.backend() != Backend::cpu;
  NodeBox const& mine = own_[static_cast<std::size_t>(ranks_.rank())];
  kernels_for<BlockKernels<V>>(context_).copy(context_, common_nodes(mine, part_, mine), x, device ? packed_.data() : mine_.data());
  if (device)
    packed_.download(std::span<V>(mine_));
  ranks_.all_gather(mine_.data(), longest_ * std::int64_t{sizeof(V)}, messages_.data());
  V* const target = device ? all_.data() : all;
  for (std::size_t rank = 0; rank < own_.size(); ++rank)
    BlockKernels<V>::cpu().copy(context_, common_nodes(own_[rank], own_[rank], whole_),
                                messages_.data() + static_cast<std::int64_t>(rank) * longest_, target);
  if (device)
    context_.upload(all, all_.data(), whole_.size() * std::int64_t{sizeof(V)});
}

template class BlockExchange<float>;
template class BlockExchange<double>;
template class BlockGather<float>;
template class BlockGather<double>;

}  // namespace poisson
