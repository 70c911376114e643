#include "gpu/preconditioners/block_exchange.hpp"

#include "gpu/kernels/backends.hpp"

#include <algorithm>
#include <span>
#include <utility>

namespace poisson {

template <class V>
BlockExchange<V>::BlockExchange(Context& context, Communicator& ranks, std::vector<NodeBox> const& own,
                                std::vector<NodeBox> const& needed, NodeBox const& extended)
    : context_(context), kernels_(kernels_for<BlockKernels<V>>(context)) {
  auto const me = static_cast<std::size_t>(ranks.rank());
  struct Part {
    int rank;
    std::int64_t size;
  };
  std::vector<std::int32_t> sent, received;
  std::vector<Part> sends, receives;
  auto const add = [&](NodeBox const& nodes, std::size_t other, std::vector<std::int32_t>& places, std::vector<Part>& parts) {
    if (nodes.size() == 0)
      return;
    nodes.for_all([&](auto const& node) { places.push_back(static_cast<std::int32_t>(extended.index(node))); });
    parts.push_back({static_cast<int>(other), nodes.size()});
  };
  for (std::size_t other = 0; other < own.size(); ++other)
    if (other != me) {
      add(common(own[me], needed[other]), other, sent, sends);
      add(common(own[other], needed[me]), other, received, receives);
    }
  sent_ = Array<std::int32_t>(context, std::span<std::int32_t const>(sent));
  received_ = Array<std::int32_t>(context, std::span<std::int32_t const>(received));
  outgoing_.resize(sent.size());
  incoming_.resize(received.size());
  if (context.backend() != Backend::cpu) {
    outgoing_of_device_ = Array<V>(context, sent_.size());
    incoming_of_device_ = Array<V>(context, received_.size());
  }
  auto const messages = [](std::vector<Part> const& parts, V* buffer) {
    std::vector<Message> result;
    for (Part const& part : parts) {
      result.push_back({part.rank, buffer, part.size * std::int64_t{sizeof(V)}});
      buffer += part.size;
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
