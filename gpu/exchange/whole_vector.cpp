#include "gpu/exchange/whole_vector.hpp"

#include "gpu/kernels/backends.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>

namespace poisson {

template <class V>
WholeVector<V>::WholeVector(Context& context, Communicator& ranks, std::vector<std::int64_t> const& first,
                            std::vector<std::int32_t> const& places, std::int32_t vectors)
    : context_(context),
      ranks_(ranks),
      kernels_(kernels_for<RimKernels<V>>(context)),
      transport_(rank_transport(context, ranks)),
      vectors_(vectors) {
  std::vector<std::int64_t> counts;
  for (std::size_t rank = 0; rank + 1 < first.size(); ++rank)
    counts.push_back(first[rank + 1] - first[rank]);
  n_here_ = counts[static_cast<std::size_t>(ranks.rank())];
  std::vector<std::int32_t> same;
  if (places.empty()) {
    same.resize(static_cast<std::size_t>(first.back()));
    std::iota(same.begin(), same.end(), 0);
  }
  make(counts, places.empty() ? same : places);
}

template <class V>
WholeVector<V>::WholeVector(Context& context, Communicator& ranks, std::vector<NodeBox> const& own, NodeBox const& part,
                            NodeBox const& whole, std::int32_t vectors)
    : context_(context),
      ranks_(ranks),
      kernels_(kernels_for<RimKernels<V>>(context)),
      transport_(rank_transport(context, ranks)),
      vectors_(vectors),
      n_here_(part.size()) {
  std::vector<std::int64_t> counts;
  std::vector<std::int32_t> places, here;
  for (NodeBox const& nodes : own) {
    counts.push_back(nodes.size());
    nodes.for_all([&](auto const& node) { places.push_back(static_cast<std::int32_t>(whole.index(node))); });
  }
  own[static_cast<std::size_t>(ranks.rank())].for_all(
      [&](auto const& node) { here.push_back(static_cast<std::int32_t>(part.index(node))); });
  if (std::ssize(here) < n_here_)
    own_ = Array<std::int32_t>(context, std::span<std::int32_t const>(here));
  make(counts, places);
}

template <class V>
void WholeVector<V>::make(std::vector<std::int64_t> const& counts, std::vector<std::int32_t> const& places) {
  n_own_ = counts[static_cast<std::size_t>(ranks_.rank())];
  n_of_all_ = std::ssize(places);
  longest_ = *std::max_element(counts.begin(), counts.end());
  std::vector<std::int32_t> in_messages(counts.size() * static_cast<std::size_t>(longest_), -1);
  auto from = places.begin();
  auto to = in_messages.begin();
  for (std::int64_t const count : counts) {
    std::copy_n(from, count, to);
    from += count;
    to += longest_;
  }
  places_ = Array<std::int32_t>(context_, std::span<std::int32_t const>(in_messages));
  packed_ = Array<V>(context_, longest_ * vectors_);
  packed_.set_zero();
  if (transport_.devices() != nullptr) {
    by_devices_ = transport_.devices()->make_gather(packed_.data(), packed_.bytes());
    return;
  }
  messages_ = Array<V>(context_, places_.size() * vectors_);
  if (context_.backend() != Backend::cpu) {
    packed_of_host_.resize(static_cast<std::size_t>(packed_.size()));
    messages_of_host_.resize(static_cast<std::size_t>(messages_.size()));
  }
}

template <class V>
void WholeVector<V>::gather(V const* x, V* all) {
  kernels_.pack(context_, n_own_, own_.data(), x, packed_.data(), vectors_, n_here_);
  std::int64_t const bytes = packed_.bytes();
  if (by_devices_ == nullptr && transport_.devices() != nullptr)  // since the last call
    by_devices_ = transport_.devices()->make_gather(packed_.data(), bytes);
  V const* come = messages_.data();
  if (by_devices_ != nullptr) {
    come = reinterpret_cast<V const*>(by_devices_->start());
    by_devices_->finish();
  } else if (ranks_.is_alone())
    context_.copy(messages_.data(), packed_.data(), bytes);
  else if (context_.backend() == Backend::cpu)
    ranks_.all_gather(packed_.data(), bytes, messages_.data());
  else {
    packed_.download(std::span<V>(packed_of_host_));
    ranks_.all_gather(packed_of_host_.data(), bytes, messages_of_host_.data());
    messages_.upload(std::span<V const>(messages_of_host_));
  }
  kernels_.put(context_, places_.size(), places_.data(), come, all, vectors_, n_of_all_);
}

template <class V>
void WholeVector<V>::own_entries(V const* all, V* own) const {
  kernels_.pack(context_, n_own_, places_.data() + ranks_.rank() * longest_, all, own);
}

template class WholeVector<float>;
template class WholeVector<double>;

}  // namespace poisson
