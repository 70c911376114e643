#include "gpu/exchange/halo.hpp"

#include "gpu/kernels/backends.hpp"
#include "gpu/kernels/block.hpp"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <numeric>
#include <span>

namespace poisson {

namespace {

/// Layers around own nodes of which halos bring entries at most, and one for boxes that begin with a node that stays.
constexpr std::int64_t farthest = 4;

std::vector<NodeBox> boxes_of(std::map<int, std::vector<NodeBox>> const& of_ranks) {
  std::vector<NodeBox> result;
  for (auto const& [rank, boxes] : of_ranks)
    result.insert(result.end(), boxes.begin(), boxes.end());
  return result;
}

}  // namespace

HaloPlaces::HaloPlaces(int me, std::vector<NodeBox> const& owned, std::vector<NodeBox> const& needed, NodeBox const& extended,
                       std::array<std::int64_t, 3> const& period)
    : box(extended) {
  auto const mine = static_cast<std::size_t>(me);
  auto const add_nodes = [](std::map<int, std::vector<NodeBox>>& of_ranks, std::size_t other, NodeBox const& nodes) {
    if (nodes.size() > 0)
      of_ranks[static_cast<int>(other)].push_back(nodes);
  };
  for (std::size_t other = 0; other < owned.size(); ++other)
    for_moves(period, farthest, [&](std::array<std::int64_t, 3> const& times) {
      std::array<std::int64_t, 3> const back{-times[0], -times[1], -times[2]};
      NodeBox const sent = moved(common(moved(owned[mine], period, times), needed[other]), period, back),
                    images = common(moved(owned[other], period, times), needed[mine]);
      if (other != mine) {
        add_nodes(own_nodes, other, sent);
        add_nodes(ghost_nodes, other, images);
      } else if (times != std::array<std::int64_t, 3>{} && images.size() > 0) {
        copied_nodes.push_back(sent);
        image_nodes.push_back(images);
      }
    });
}

std::int64_t HaloPlaces::add(std::int64_t place, std::vector<RankNeighbor> const& neighbors) {
  for (RankNeighbor const& neighbor : neighbors) {
    auto& sent = own[neighbor.rank];
    sent.insert(sent.end(), neighbor.sent.begin(), neighbor.sent.end());
    auto& received = ghosts[neighbor.rank];
    std::size_t const known = received.size();
    received.resize(known + static_cast<std::size_t>(neighbor.n_ghosts));
    std::iota(received.begin() + static_cast<std::ptrdiff_t>(known), received.end(), static_cast<std::int32_t>(place));
    place += neighbor.n_ghosts;
  }
  return place;
}

template <class T>
Halo<T>::Places::Places(Context& context, std::vector<std::int32_t> const& places) : n(std::ssize(places)) {
  if (places.empty())
    return;
  if (std::adjacent_find(places.begin(), places.end(), [](std::int32_t a, std::int32_t b) { return b != a + 1; }) == places.end())
    first = places.front();
  else
    list = Array<std::int32_t>(context, std::span<std::int32_t const>(places));
}

template <class T>
Halo<T>::Places::Places(Context& context, std::vector<NodeBox> const& nodes, NodeBox const& box) {
  std::vector<CommonNodes> boxes;
  bool follow = true;  // one another
  for (NodeBox const& some : nodes) {
    CommonNodes const& next = boxes.emplace_back(joined(common_nodes(some, some, box)));
    first = n == 0 ? next.first_to : first;
    follow = follow && next.count[1] == 1 && next.count[2] == 1 && next.first_to == first + n;
    n += next.size();
  }
  if (follow)
    return;
  first = 0;
  list = Array<std::int32_t>(context, n);
  std::int64_t at = 0;
  for (CommonNodes const& of_rank : boxes) {
    kernels_for<BlockKernels<double>>(context).list(context, of_rank, list.data() + at);
    at += of_rank.size();
  }
}

template <class T>
Halo<T>::Halo(Context& context, Communicator& ranks, HaloPlaces const& places, HaloDirection direction, std::int32_t vectors,
              std::int64_t step)
    : context_(context),
      kernels_(kernels_for<RimKernels<T>>(context)),
      transport_(rank_transport(context, ranks)),
      is_alone_(ranks.is_alone()),
      staged_(context.backend() != Backend::cpu),
      vectors_(vectors),
      step_(step),
      behind_(context, places.behind) {
  bool const to_ghosts = direction == HaloDirection::to_ghosts;
  bool const in_box = !places.own_nodes.empty() || !places.ghost_nodes.empty() || !places.copied_nodes.empty();
  RankLists<std::int32_t> const &from = to_ghosts ? places.own : places.ghosts, &to = to_ghosts ? places.ghosts : places.own;
  assert(to_ghosts || (vectors == 1 && !in_box));
  if (in_box) {
    std::vector<NodeBox> all = boxes_of(places.ghost_nodes);
    all.insert(all.end(), places.image_nodes.begin(), places.image_nodes.end());
    sent_ = Places(context, boxes_of(places.own_nodes), places.box);
    received_ = Places(context, all, places.box);
    behind_ = Places(context, places.copied_nodes, places.box);
  } else {
    sent_ = Places(context, from.joined());
    if (std::vector<std::int32_t> const all = to.joined(); to_ghosts)
      received_ = Places(context, all);
    else
      make_sums(all);
  }
  std::map<int, std::int64_t> n_from, n_to;  // entries by rank
  for (auto const& [rank, list] : from)
    n_from[rank] += std::ssize(list);
  for (auto const& [rank, list] : to)
    n_to[rank] += std::ssize(list);
  for (auto const& [rank, boxes] : places.own_nodes)
    for (NodeBox const& nodes : boxes)
      n_from[rank] += nodes.size();
  for (auto const& [rank, boxes] : places.ghost_nodes)
    for (NodeBox const& nodes : boxes)
      n_to[rank] += nodes.size();
  outgoing_ = Array<T>(context, sent_.n * vectors);
  auto const messages = [&](std::map<int, std::int64_t> const& counts, T* buffer) {
    std::vector<Message> result;
    for (auto const& [rank, n] : counts)
      if (n > 0) {
        result.push_back({rank, buffer, n * vectors * std::int64_t{sizeof(T)}});
        buffer = buffer == nullptr ? nullptr : buffer + n * vectors;
      }
    return result;
  };
  for (auto const& [rank, n] : n_to)
    n_incoming_ += n * vectors;
  sends_ = messages(n_from, outgoing_.data());
  if (!is_alone_ && transport_.devices() != nullptr) {
    receives_ = messages(n_to, nullptr);
    exchange_between_devices();
    return;
  }
  incoming_ = Array<T>(context, n_incoming_ + behind_.n * vectors);
  receives_ = messages(n_to, incoming_.data());
  if (is_alone_)
    return;
  if (staged_) {
    outgoing_of_host_.resize(static_cast<std::size_t>(outgoing_.size()));
    incoming_of_host_.resize(static_cast<std::size_t>(n_incoming_));
    exchange_ = ranks.make_exchange(messages(n_from, outgoing_of_host_.data()), messages(n_to, incoming_of_host_.data()));
  } else {
    exchange_ = ranks.make_exchange(sends_, receives_);
  }
}

template <class T>
void Halo<T>::make_sums(std::vector<std::int32_t> const& own) {
  std::vector<std::int32_t> order(own.size()), rows;
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::int32_t i) { return own[static_cast<std::size_t>(i)]; });
  std::vector<std::int64_t> row_ptr;
  for (std::size_t i = 0; i < order.size(); ++i)
    if (std::int32_t const row = own[static_cast<std::size_t>(order[i])]; rows.empty() || rows.back() != row) {
      rows.push_back(row);
      row_ptr.push_back(static_cast<std::int64_t>(i));
    }
  row_ptr.push_back(std::ssize(order));
  rows_ = Array<std::int32_t>(context_, std::span<std::int32_t const>(rows));
  row_ptr_ = Array<std::int64_t>(context_, std::span<std::int64_t const>(row_ptr));
  columns_ = Array<std::int32_t>(context_, std::span<std::int32_t const>(order));
  ones_ = Array<double>(context_, std::span<double const>(std::vector<double>(order.size(), 1.0)));
}

template <class T>
std::int64_t Halo<T>::bytes_of_sums() const {
  return rows_.bytes() + row_ptr_.bytes() + columns_.bytes() + ones_.bytes();
}

template <class T>
void Halo<T>::exchange_between_devices() {
  incoming_ = Array<T>();
  by_devices_ = transport_.devices()->make_exchange(sends_, receives_, behind_.n * vectors_ * std::int64_t{sizeof(T)});
}

template <class T>
void Halo<T>::start(ConstPointer<T> x) {
  if (!is_alone_)
    kernels_.pack(context_, sent_.n, sent_.list.data(), x + sent_.first, outgoing_.data(), vectors_, step_);
  start();
  if (behind_.n > 0)
    kernels_.pack(context_, behind_.n, behind_.list.data(), x + behind_.first, come_ + n_incoming_, vectors_, step_);
}

template <class T>
void Halo<T>::start() {
  come_ = incoming_.data();
  if (is_alone_)
    return;
  if (by_devices_ == nullptr && transport_.devices() != nullptr)  // since the last start()
    exchange_between_devices();
  if (by_devices_ != nullptr) {
    come_ = reinterpret_cast<T*>(by_devices_->start());
    return;
  }
  if (staged_)
    outgoing_.download(std::span<T>(outgoing_of_host_));
  exchange_->start();
}

template <class T>
T const* Halo<T>::finish() {
  if (by_devices_ != nullptr) {
    by_devices_->finish();
  } else if (!is_alone_) {
    exchange_->finish();
    if (staged_ && n_incoming_ > 0)
      context_.upload(incoming_.data(), incoming_of_host_.data(), n_incoming_ * std::int64_t{sizeof(T)});
  }
  return come_;
}

template <class T>
void Halo<T>::put(Pointer<T> x) {
  T const* const come = finish();
  kernels_.put(context_, received_.n, received_.list.data(), come, x + received_.first, vectors_, step_);
}

template <class T>
CsrView Halo<T>::sums() const {
  CsrView sums;
  sums.n_rows = rows_.size();
  sums.n_columns = sums.nnz = columns_.size();
  sums.row_ptr = row_ptr_.data();
  sums.columns = columns_.data();
  sums.values = ones_.data();
  return sums;
}

template <class T>
void Halo<T>::add(T alpha, Pointer<T> y) {
  T const* const come = finish();
  kernels_.add(context_, sums(), rows_.data(), alpha, come, y);
}

template <class T>
void Halo<T>::set(Pointer<T> y) {
  T const* const come = finish();
  kernels_.set(context_, sums(), rows_.data(), come, y);
}

Array<double> with_ghosts(Context& context, Communicator& ranks, std::vector<RankNeighbor> const& neighbors,
                          Array<double> const& own) {
  std::int64_t n = own.size();
  for (RankNeighbor const& neighbor : neighbors)
    n += neighbor.n_ghosts;
  Array<double> all(context, n);
  context.copy(all.data(), own.data(), own.bytes());
  Halo<double>(context, ranks, HaloPlaces(own.size(), neighbors)).fill(all.data());
  return all;
}

template class Halo<float>;
template class Halo<double>;
template class Halo<DoubleDouble>;

}  // namespace poisson
